/* metrics_text.h — shared by BLEU, chrF and TER: lower-casing lines, splitting them into numbered words, and TER's edit
 * distance. Private. */
#ifndef TENON_DATA_METRICS_METRICS_TEXT_H
#define TENON_DATA_METRICS_METRICS_TEXT_H

#include "data/metrics.h"
#include "data/text/data_private.h"

/* The rules are those of this sacreBLEU. */
#define TN__SACREBLEU "2.5.1"

typedef enum { TN__OTHER = 0, TN__NUMBER, TN__PUNCTUATION, TN__SYMBOL } tn__char_class;
tn__char_class tn__class_of(uint32_t c); /* Unicode's general categories N, P and S */

/* Lower-cases in place, as Python's str.lower(). */
bool tn__points_lower(tn__points *p);
/* Removes trailing white space. */
void tn__points_strip(tn__points *p);
/* Replaces `to` by a number for each word. */
bool tn__number_words(const tn__points *line, tn__grams *g, tn__points *to);

/* The checks of all three metrics; the number of references per line, -1: varies. */
bool tn__metric_check(const char *who, const void *metric, tn_text output, int n, const tn_text *references);
int  tn__metric_references(int before, bool first, int n);
/* Formats v with `decimals` decimals and a point. */
const char *tn__metric_number(double v, int decimals, char to[40]);

/* Returns the number of edits that turn words into the reference: insertions, deletions, substitutions and shifts of
 * several words. -1: raised. (ter_edits.c) */
int64_t tn__ter_edits(const tn__points *words, const tn__points *reference);

#endif

/* metrics_text.h — what BLEU, chrF and TER share: lines in lower case, cut into words and numbered; and the edit
 * distance of TER. Private. */
#ifndef TENON_DATA_METRICS_METRICS_TEXT_H
#define TENON_DATA_METRICS_METRICS_TEXT_H

#include "data/metrics.h"
#include "data/text/data_private.h"

/* The rules are those of this sacreBLEU. */
#define TN__SACREBLEU "2.5.1"

typedef enum { TN__OTHER = 0, TN__NUMBER, TN__PUNCTUATION, TN__SYMBOL } tn__class;
tn__class tn__class_of(uint32_t c); /* Unicode's general categories N, P and S */

/* In place, as Python's str.lower() does it. */
bool tn__points_lower(tn__points *p);
/* Without white space at its end. */
void tn__points_strip(tn__points *p);
/* As a number for each word, in `to`, which begins anew. */
bool tn__number_words(const tn__points *line, tn__grams *g, tn__points *to);

/* The checks of all three metrics; counts how many references the lines have. */
bool tn__metric_check(const char *who, const void *metric, tn_text output, int n, const tn_text *references);
int  tn__metric_references(int before, bool first, int n);
/* The number with that many decimals and a point. */
const char *tn__metric_number(double v, int decimals, char to[40]);

/* Edits that turn words into the reference's: insertions, deletions, substitutions, and shifts of several words at
 * once. -1: raised. (ter_edits.c) */
int64_t tn__ter_edits(const tn__points *words, const tn__points *reference);

#endif

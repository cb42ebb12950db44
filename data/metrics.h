/* metrics.h — scores of generated text: BLEU, chrF and TER as sacreBLEU computes and prints them, accuracy and
 * perplexity; and of taggers, classifiers and readers: entities, F1, correlations, answers. Include data.h.
 *
 *     tn_bleu bleu = {.tokenize = TN_BLEU_13A};
 *     for (int i = 0; i < n; i++) tn_bleu_add(&bleu, tn_text_of(outputs[i]), 1, &references[i]);
 *     char line[TN_METRIC_TEXT];
 *     puts(tn_bleu_text(&bleu, 1, line));
 *     // BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.5.1 = 22.7 56.2/28.7/16.9/10.3 (BP = 0.985 …
 *
 * Each except tn_entities is a plain value with its options, set before the first line, and its counts: it can be
 * copied and needs no freeing. A line has one or more references and may contain any bytes: one that is not UTF-8 is a
 * separate character. A call that fails changes nothing. */
#ifndef TENON_DATA_METRICS_H
#define TENON_DATA_METRICS_H

#include "lines.h"

TN_C_BEGIN_

enum { TN_METRIC_TEXT = 512 };

/* ---- BLEU: n-grams of words (Papineni et al. 2002) --------------------------------------------------------------- */

typedef enum { TN_BLEU_13A = 0, TN_BLEU_INTL, TN_BLEU_NONE } tn_bleu_tokenizer;
typedef struct {
    tn_bleu_tokenizer tokenize;
    bool              lowercase;
    bool              effective_order;      /* ignore orders longer than the text, for sentence scores */
    int               references;           /* references per line; -1: varies between lines */
    int64_t           matches[4], total[4]; /* n-grams of 1 … 4 words: found in a reference, in total */
    int64_t           words, reference_words;
} tn_bleu;
TN_API tn_status tn_bleu_add(tn_bleu *b, tn_text output, int n, const tn_text *references);
TN_API double    tn_bleu_score(const tn_bleu *b); /* 0 … 100, exponential smoothing */
/* Writes sacreBLEU's line, with `decimals` decimals of the score; returns `to`. */
TN_API const char *tn_bleu_text(const tn_bleu *b, int decimals, char to[TN_METRIC_TEXT]);
/* Splits a line into words as BLEU does; writes them separated by blanks. */
TN_API tn_status tn_bleu_words(tn_bleu_tokenizer how, tn_text line, tn_string *words);

/* ---- chrF and chrF++: n-grams of characters, and of words (Popović 2015, 2017) ----------------------------------- */

typedef struct {
    int     word_order; /* 0: chrF; 2: chrF++ */
    bool    lowercase;
    int     references;
    int64_t output[8], reference[8], matches[8]; /* n-grams of 1 … 6 characters, then of 1 and 2 words */
} tn_chrf;
TN_API tn_status   tn_chrf_add(tn_chrf *c, tn_text output, int n, const tn_text *references);
TN_API double      tn_chrf_score(const tn_chrf *c); /* 0 … 100 */
TN_API const char *tn_chrf_text(const tn_chrf *c, int decimals, char to[TN_METRIC_TEXT]);

/* ---- TER: edits and shifts of words (Snover et al. 2006) --------------------------------------------------------- */

typedef struct {
    bool    case_sensitive;
    int     references;
    int64_t edits;
    double  words; /* words of the references; their mean for several references */
} tn_ter;
TN_API tn_status   tn_ter_add(tn_ter *t, tn_text output, int n, const tn_text *references);
TN_API double      tn_ter_score(const tn_ter *t); /* edits per word: 0 is perfect; can exceed 1 */
TN_API const char *tn_ter_text(const tn_ter *t, int decimals, char to[TN_METRIC_TEXT]); /* prints 100 times the score */

/* ---- accuracy and perplexity ------------------------------------------------------------------------------------- */

typedef struct {
    int64_t right, counted;
} tn_accuracy;
/* predicted has the shape of labels and contains labels; or it has one more, last dim and contains scores, whose
 * largest counts (the first of equals; NaN is the largest). Labels equal to `ignored` do not count. */
TN_API tn_status tn_accuracy_add(tn_accuracy *a, const tn_tensor *predicted, const tn_tensor *labels, int64_t ignored);
TN_API double    tn_accuracy_value(const tn_accuracy *a); /* 0 … 1; 0 if empty */

typedef struct {
    double  nats; /* sum over the tokens of -log p */
    int64_t tokens;
} tn_perplexity;
TN_API void   tn_perplexity_add(tn_perplexity *p, double mean_loss, int64_t tokens);
TN_API double tn_perplexity_value(const tn_perplexity *p); /* exp(nats / tokens); NaN if empty */

/* ---- entities: chunks of tagged tokens, correct if both ends and the type are ------------------------------------ */

/* CONLL: chunks as the conlleval script finds them, in IOB1, IOB2, IOE or a mixture. STRICT: BIO as in seqeval (mode
 * strict, IOB2): a chunk starts with B, and an I that continues no chunk counts as O. */
typedef enum { TN_ENTITIES_CONLL = 0, TN_ENTITIES_STRICT } tn_entities_rule;
typedef struct {
    int64_t gold, found, correct;
    double  precision, recall, f1; /* 0 … 1; 0 if empty */
} tn_entities_score;
typedef struct tn_entities tn_entities;
TN_API tn_entities        *tn_entities_new(tn_entities_rule rule);
TN_API tn_status           tn_entities_add(tn_entities *e, tn_text gold, tn_text predicted); /* one token's tags */
TN_API void                tn_entities_end_sentence(tn_entities *e);
TN_API tn_entities_score   tn_entities_of(const tn_entities *e, const char *type); /* NULL: all types */
TN_API const char         *tn_entities_type(const tn_entities *e, int64_t i); /* "": tags without a type; NULL: end */
TN_API tn_accuracy         tn_entities_tokens(const tn_entities *e);          /* tokens with correct tags */
TN_API tn_status           tn_entities_text(const tn_entities *e, tn_string *to); /* conlleval's table */
TN_API void                tn_entities_free(tn_entities *e);

/* ---- labels and numbers, as in scikit-learn and SciPy ------------------------------------------------------------ */

/* F1 of n labels. BINARY: of label 1; MICRO: over all decisions, equal to the accuracy; MACRO: the mean over the labels
 * that occur. NaN with an error set if an argument is NULL. */
typedef enum { TN_F1_BINARY = 0, TN_F1_MICRO, TN_F1_MACRO } tn_f1_mean;
TN_API double tn_f1(tn_f1_mean how, int64_t n, const int64_t *gold, const int64_t *predicted);
TN_API double tn_matthews(int64_t n, const int64_t *gold, const int64_t *predicted); /* two or more labels */
/* NaN if undefined: fewer than two numbers, or all numbers of one side equal. */
TN_API double tn_pearson(int64_t n, const double *x, const double *y);
TN_API double tn_spearman(int64_t n, const double *x, const double *y); /* ties get the mean of their ranks */

/* ---- answers, as the scripts of SQuAD 1.1 and 2.0 score them ----------------------------------------------------- */

typedef struct {
    bool    v2;       /* use the script of 2.0, where "no answer" is an answer. Set before the first */
    int64_t n, exact; /* questions; exact matches, ignoring case, punctuation and articles */
    double  f1;       /* sum of the words' F1 with the best matching right answer */
    double  last;     /* F1 of the last answer; last_exact: it is an exact match */
    bool    last_exact;
} tn_squad;
TN_API tn_status tn_squad_add(tn_squad *s, tn_text answer, int n, const tn_text *right); /* n 0: no right answer */
TN_API double    tn_squad_exact(const tn_squad *s);                                      /* 0 … 100; 0 if empty */
TN_API double    tn_squad_f1(const tn_squad *s);
TN_API tn_status tn_squad_words(tn_text answer, tn_string *words); /* the words compared, separated by blanks */
/* Finds the threshold on the no-answer score, above which no answer is given, that maximises the mean value. none[i]:
 * no-answer score of question i; value[i]: value of the answer given to it; empty[i]: that answer is empty;
 * answerable[i]: it has a right answer. Returns the mean, 0 … 100; NaN: raised. Like the script, it counts questions of
 * equal scores one by one, which no threshold can separate: with ties the mean may exceed what the threshold
 * achieves. */
TN_API double tn_squad_threshold(int64_t n, const double *none, const double *value, const bool *empty,
                                 const bool *answerable, double *threshold);

TN_C_END_
#endif

/* translator.h — a model of `translate train`, or one of transformers, with its tokenizer: translates lines, and
 * computes BLEU. */
#ifndef TENON_PROGRAMS_COMMON_TRANSLATOR_H
#define TENON_PROGRAMS_COMMON_TRANSLATOR_H

#include "options.h"

/* The special tokens of a new model; the other tokens are byte-level, so that decoding restores any text. */
enum { PADDING = 0, UNKNOWN = 1, BEGIN = 2, END = 3 };

typedef struct {
    tn_seq2seq   *net;
    tn_tokenizer *tokens, *target; /* target: if the target language has its own; else NULL */
} translator;

/* Counts of faulty lines, so that each fault is reported once for all lines. */
typedef struct {
    int64_t before;              /* lines of earlier calls */
    int64_t cut, first_cut;      /* lines longer than the model's positions: their count; the first one, from 1 */
    int64_t broken, first_break; /* lines of invalid UTF-8: their count; the first one, from 1 */
} faults;

/* The tokens that a translation may use: likely translations of each source token, and frequent tokens; both i64. */
typedef struct {
    tn_tensor *likely;   /* [source tokens, n]; -1: none */
    tn_tensor *frequent; /* [m] */
} shortlist;

/* Translates n lines, in batches of similar length. Appends the translations of line i, best first, to the strings
 * to[i · best], ..., and sets their scores, if scores is not NULL. A blank line has an empty translation. */
typedef struct {
    int64_t beams, best;
    int64_t batch, budget; /* maximum lines of a batch; and tokens, with their padding, if it has more than one line */
    int64_t most;          /* maximum tokens of a translation; 0: by its length */
    double  length_penalty, coverage;
    bool    gnmt;           /* GNMT's length penalty */
    bool    early_stopping; /* a search ends with .beams finished translations, also if the model says otherwise */
    bool    copies; /* an unknown token becomes the source's token with the largest attention weight; only models
                                of `translate train` */
    faults *found;  /* may be NULL */
    const shortlist *tokens; /* NULL: all tokens */
    int              others; /* models that decode together with the translator, with its tokens (ensemble.h) */
    tn_seq2seq     **other;
} translate_options;
bool translate_lines(const translator *m, const translate_options *how, int64_t n, const tn_text *lines, tn_string *to,
                     double *scores);

/* ---- BLEU -------------------------------------------------------------------------------------------------------- */

/* BLEU of greedy translations of the source file against the target file: the same value as `translate run --beam 1`
 * and `translate score` compute. */
typedef struct {
    tn_tokenizer *tokens;
    tn_lines     *source, *target;
    int64_t       most;
} bleu_set;
bool   bleu_set_open(bleu_set *b, tn_tokenizer *t, const char *source, const char *target,
                     int64_t most); /* most: lines; 0: all */
void   bleu_set_close(bleu_set *b);
double bleu_set_score(void *net, void *set); /* a tn_fit_score; NaN if a signal stops the program */

#endif

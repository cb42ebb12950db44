/* translator.h — a translator of `translate train`, with its tokenizer: lines through it, and BLEU. */
#ifndef TENON_EXAMPLES_COMMON_TRANSLATOR_H
#define TENON_EXAMPLES_COMMON_TRANSLATOR_H

#include "options.h"

/* Pieces of bytes, so that a text comes back as it was; and these four in front of a new model's. */
enum { PADDING = 0, UNKNOWN = 1, BEGIN = 2, END = 3 };

typedef struct {
    tn_seq2seq   *net;
    tn_tokenizer *tokens;
} translator;

/* What was wrong with lines, so that it can be said once for all of them. */
typedef struct {
    int64_t before;         /* lines that came before these */
    int64_t cut, first_cut; /* longer than the model's positions: how many lines, and the first one's number, from 1 */
    int64_t broken, first_break; /* the same for what is not UTF-8 */
} faults;

/* Translates n lines, near lengths together; line i has best texts from to[i · best] on, best first (empty strings to
 * begin with), and their scores if scores is not NULL. What holds nothing but blanks stays empty. */
typedef struct {
    int64_t beams, best, batch, most; /* batch: lines at once; most: pieces of a translation */
    double  length_penalty;
    faults *found; /* may be NULL */
} manner;
bool translate_lines(const translator *m, const manner *how, int64_t n, const tn_text *lines, tn_string *to,
                     double *scores);

/* ---- how good ---------------------------------------------------------------------------------------------------- */

/* BLEU of greedy translations of one file beside another, as `translate run --beam 1` and `translate score` have it. */
typedef struct {
    tn_tokenizer *tokens;
    tn_lines     *source, *target;
    int64_t       most;
} judge;
bool   judge_open(judge *j, tn_tokenizer *t, const char *source, const char *target, int64_t most); /* lines; 0: all */
void   judge_close(judge *j);
double judge_bleu(void *net, void *judge); /* a tn_fit_score; breaks off if the program is to stop */

#endif

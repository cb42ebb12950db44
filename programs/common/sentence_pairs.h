/* sentence_pairs.h — pairs of sentences of which one is wrong, as in BLiMP (Warstadt and others, 2020): the fraction of
 * pairs in which a model gives the acceptable sentence the higher score. A file has a line per pair: paradigm,
 * phenomenon, acceptable and unacceptable sentence, separated by tabs. */
#ifndef TENON_PROGRAMS_COMMON_SENTENCE_PAIRS_H
#define TENON_PROGRAMS_COMMON_SENTENCE_PAIRS_H

#include "options.h"

/* Writes the scores of n texts to `to`: tn_bert_scores or tn_lm_scores with a model and its tokenizer. */
typedef tn_status (*pairs_score)(void *model, const tn_tokenizer *t, int64_t n, const char *const *texts, double *to);

typedef struct {
    char   *name;      /* the paradigm or phenomenon; owned */
    int64_t pairs;     /* paradigm: number of pairs */
    int64_t right;     /* pairs whose acceptable sentence has the higher score; equal scores count as wrong */
    int64_t paradigms; /* phenomenon: number of paradigms */
    int64_t of;        /* paradigm: index of its phenomenon */
    double  accuracy;  /* in percent; of a phenomenon, the mean over its paradigms */
} pairs_group;
typedef struct {
    tn_string    text; /* all sentences, each ended by a NUL */
    tn_ids       at;   /* starts of the sentences in text, two per pair */
    tn_ids       of;   /* index of the paradigm of each pair */
    pairs_group *paradigm, *phenomenon;
    int64_t      paradigms, phenomena;
    double       mean; /* accuracy in percent, the mean over paradigms */
} sentence_pairs;

/* Reads the file; most: pairs of each paradigm, the first ones of the file; 0: all. False: raised. */
bool sentence_pairs_open(const char *path, int64_t most, sentence_pairs *to);
void sentence_pairs_close(sentence_pairs *p);
/* Scores all sentences, with a progress bar unless silent, and sets the groups' counts and accuracies, and .mean. */
bool sentence_pairs_measure(sentence_pairs *p, pairs_score score, void *model, const tn_tokenizer *t, bool silent);
/* Prints the accuracy of each phenomenon and, on the last line, the mean over paradigms; or one line of JSON. */
void sentence_pairs_print(const sentence_pairs *p, bool json);
/* eval --pairs: reads the file, measures the model and prints the result. */
void sentence_pairs_eval(const char *path, pairs_score score, void *model, const tn_tokenizer *t, bool json);
/* For the command line of eval, which has either texts or --pairs. Returns 0 or program_usage. */
int sentence_pairs_check(const char *path, int texts, char **operands);

#define OPTION_PAIRS(path)                                                                                             \
    OPTION_TEXT("pairs", 0, "FILE", path,                                                                              \
                "pairs of sentences of which one is wrong, as TSV without a header: paradigm, phenomenon, acceptable " \
                "and unacceptable sentence")

#endif

/* sampling.h — chooses the next token of a text from log-probabilities. Private to models/. */
#ifndef TENON_MODELS_GENERATE_SAMPLING_H
#define TENON_MODELS_GENERATE_SAMPLING_H

#include "models/generate.h"

typedef struct {
    double  score; /* log-probability */
    int64_t word;
} tn__choice;

/* Checks the options of ranking and sampling. False: raised. */
bool tn__check_choice(const tn_generate_args *a);

/* Calls .adjust. False: raised. */
bool tn__adjust(const tn_generate_args *a, const tn_next_token *next);

/* Sets tokens that would repeat an n-gram of the text to -inf. */
void tn__forbid_repeats(float *p, int64_t vocab, const int64_t *words, int64_t length, int64_t n);

/* Writes the logits of the text's tokens, reduced by the repetition penalty, from `from` into `to`. */
void tn__penalise(const float *from, float *to, int64_t vocab, const int64_t *words, int64_t length, double penalty);

/* Writes the most probable tokens, at most `most`, best first, of equal ones the smaller id; -inf is excluded. Returns
 * their number. */
int64_t tn__choose_best(const float *p, int64_t vocab, int64_t most, tn__choice *to);

/* Samples one token: u is a random number in [0, 1); room has space for vocab choices. False: all tokens are -inf. */
bool tn__sample_token(const float *p, int64_t vocab, const tn_generate_args *a, double u, tn__choice *room,
                      tn__choice *to);

#endif

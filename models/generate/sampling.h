/* sampling.h — which words may come next in a text, by the log-probabilities of all. Private to models/. */
#ifndef TENON_MODELS_GENERATE_SAMPLING_H
#define TENON_MODELS_GENERATE_SAMPLING_H

#include "models/generate.h"

typedef struct {
    double  score; /* log-probability */
    int64_t word;
} tn__choice;

/* Makes impossible (-inf) what would repeat a sequence of n words of the text so far. */
void tn__forbid_repeats(float *p, int64_t vocab, const int64_t *words, int64_t length, int64_t n);

/* The scores of a row into another one, those of the text's words made smaller. */
void tn__penalise(const float *from, float *to, int64_t vocab, const int64_t *words, int64_t length, double penalty);

/* The most probable words, best first, of equals the smaller number; how many there are of at most `most` that are not
 * impossible. */
int64_t tn__choose_best(const float *p, int64_t vocab, int64_t most, tn__choice *to);

/* One word by chance: u is from 0 to less than 1; room is for vocab choices. False if no word is possible. */
bool tn__choose_by_chance(const float *p, int64_t vocab, const tn_generate_args *a, double u, tn__choice *room,
                          tn__choice *to);

#endif

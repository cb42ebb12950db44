/* next_word.h — what the decoder-only models share: their ids, their loss, what they begin with. Private to models/. */
#ifndef TENON_MODELS_GENERATE_NEXT_WORD_H
#define TENON_MODELS_GENERATE_NEXT_WORD_H

#include "models/generate.h"

/* Are ids [batch, length]? Raises. */
bool tn__ids_fit(const char *who, const tn_tensor *ids);

/* A decoder's result: of y, the vectors behind the last norm [B, T, dim] (NULL: an error stands), what is asked for;
 * and the mean cross-entropy of ids[:, 1:], or of the targets. out [vocab, dim] makes scores of vectors, with
 * a bias [vocab] or NULL. */
tn_tensor *tn__next_word_scores(tn_tensor *y, tn_tensor *out, tn_tensor *bias, const tn_decoder_args *a);
tn_tensor *tn__next_word_loss(const char *who, tn_tensor *y, tn_tensor *out, tn_tensor *bias, tn_tensor *ids,
                              tn_tensor *targets);

/* Positions of a cache that suffice for texts of this length where a layer sees the last `window` alone. */
int64_t tn__windowed_room(int64_t length, int64_t window);

/* Matrices normal, biases 0; those that end in a residual smaller, as 2 layers of them add up. */
void tn__next_word_init(void *m, double init, int64_t layers);

#endif

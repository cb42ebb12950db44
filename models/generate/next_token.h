/* next_token.h — shared by the decoder-only models: ids, logits, loss, initial weights. Private to models/. */
#ifndef TENON_MODELS_GENERATE_NEXT_TOKEN_H
#define TENON_MODELS_GENERATE_NEXT_TOKEN_H

#include "models/generate.h"

/* True if ids is [batch, length]; else raises. */
bool tn__ids_fit(const char *who, const tn_tensor *ids);

/* From y, the hidden states after the last norm, [B, T, dim] (NULL: an error is set): the result that a->last and
 * a->vectors select; the mean cross-entropy of ids[:, 1:], or of targets if not NULL. Output layer: out [vocab, dim],
 * and bias [vocab] or NULL. */
tn_tensor *tn__next_token_logits(tn_tensor *y, tn_tensor *out, tn_tensor *bias, const tn_decoder_args *a);
tn_tensor *tn__next_token_loss(const char *who, tn_tensor *y, tn_tensor *out, tn_tensor *bias, tn_tensor *ids,
                               tn_tensor *targets);

/* Cache positions needed for texts of this length if layers attend to the last `window` positions only. */
int64_t tn__windowed_room(int64_t length, int64_t window);

/* Initial weights: matrices normal with deviation init, biases 0; matrices that write to a residual stream have
 * init / √(2 layers). */
void tn__next_token_init(void *m, double init, int64_t layers);

#endif

/* uncached.h — the tn_decoding of a model without a cache. Private to models/. */
#ifndef TENON_MODELS_GENERATE_UNCACHED_H
#define TENON_MODELS_GENERATE_UNCACHED_H

#include "models/generate.h"

/* run: returns the logits of the token after ids, [rows, 1, vocab]; called with the whole text for each token. */
tn_decoding *tn__uncached_decoding(void *model, tn_tensor *(*run)(void *model, tn_tensor *ids), int64_t rows,
                                   int64_t length);

#endif

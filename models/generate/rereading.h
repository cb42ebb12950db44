/* rereading.h — texts word by word with a model that keeps nothing of what it has read. Private to models/. */
#ifndef TENON_MODELS_GENERATE_REREADING_H
#define TENON_MODELS_GENERATE_REREADING_H

#include "models/generate.h"

/* run: scores of what comes behind ids, [rows, 1, vocab]; it reads all of them for each word. */
tn_decoding *tn__rereading_decoding(void *model, tn_tensor *(*run)(void *model, tn_tensor *ids), int64_t rows,
                                    int64_t length);

#endif

/* lm_private.h — tn_lm's private functions for models/decoder. */
#ifndef TENON_MODELS_LM_LM_PRIVATE_H
#define TENON_MODELS_LM_LM_PRIVATE_H

#include "models/files/model_file.h"

extern const char *const tn__lm_types[]; /* model_types; NULL-terminated */

/* Saves to a directory, or if how is not NULL to a GGUF file. */
tn_status tn__lm_save_as(void *m, const char *to, const tn__gguf_options *gguf);

#endif

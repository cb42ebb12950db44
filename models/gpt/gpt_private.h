/* gpt_private.h — GPT-2's private functions for models/lm. */
#ifndef TENON_MODELS_GPT_GPT_PRIVATE_H
#define TENON_MODELS_GPT_GPT_PRIVATE_H

#include "models/files/model_file.h"
#include "models/gpt.h"

extern const tn_class tn__gpt_class;

/* m is not NULL. Saves to a directory, or if how is not NULL to a GGUF file. */
tn_status tn__gpt_save_as(tn_gpt *m, const char *to, const tn__gguf_options *gguf);

#endif

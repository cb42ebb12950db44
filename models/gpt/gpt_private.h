/* gpt_private.h — GPT-2's private functions for models/open. */
#ifndef TENON_MODELS_GPT_GPT_PRIVATE_H
#define TENON_MODELS_GPT_GPT_PRIVATE_H

#include "models/files/hf_config.h"
#include "models/gpt.h"

extern const tn_class tn__gpt_class;

void *tn__gpt_load(const tn_hf_source *s);

/* m is not NULL. Saves to a directory, or if gguf is not NULL to a GGUF file. */
tn_status tn__gpt_save_as(tn_gpt *m, const char *to, const tn__gguf_options *gguf);

#endif

/* gpt_private.h — GPT-2 for models/lm. */
#ifndef TENON_MODELS_GPT_GPT_PRIVATE_H
#define TENON_MODELS_GPT_GPT_PRIVATE_H

#include "models/gpt.h"

extern const tn_class tn__gpt_class;

#endif

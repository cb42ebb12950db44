/* rnn_lm_private.h — the recurrent language model's private names for models/open. */
#ifndef TENON_EXTRAS_RNN_LM_RNN_LM_PRIVATE_H
#define TENON_EXTRAS_RNN_LM_RNN_LM_PRIVATE_H

#include "extras/rnn_lm.h"
#include "models/models.h"

#define TN__RNN_LM_TYPE "tenon_rnn_lm"
void *tn__rnn_lm_load(const tn_hf_source *s);

#endif

/* rnn_lm_private.h — the recurrent language model's private names for models/open. */
#ifndef TENON_EXTRAS_RNN_LM_RNN_LM_PRIVATE_H
#define TENON_EXTRAS_RNN_LM_RNN_LM_PRIVATE_H

#include "models/files/hf_config.h"
#include "extras/rnn_lm.h"

#define TN__RNN_LM_TYPE "tenon_rnn_lm"
void *tn__rnn_lm_load(const tn__hf_source *s);

#endif

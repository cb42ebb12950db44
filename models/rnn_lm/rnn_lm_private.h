/* rnn_lm_private.h — the recurrent language model's private names for models/lm. */
#ifndef TENON_MODELS_RNN_LM_RNN_LM_PRIVATE_H
#define TENON_MODELS_RNN_LM_RNN_LM_PRIVATE_H

#include "models/rnn_lm.h"

#define TN__RNN_LM_TYPE "tenon_rnn_lm"
extern const tn_class tn__rnn_lm_class;

#endif

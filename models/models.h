/* models.h — models with their configs, the training loop, generation. */
#ifndef TENON_MODELS_MODELS_H
#define TENON_MODELS_MODELS_H
#include "bert.h"
#include "decoding.h"
#include "fit.h"
#include "generate.h"
#include "gpt.h"
#include "heads.h"
#include "hf.h"
#include "live.h"
#include "llama.h"
#include "lm.h"
#include "model.h"
#include "seq2seq.h"
#include "seq2seq_kinds.h"
#endif

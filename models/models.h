/* models.h — models with their configs, the training loop, generation. */
#ifndef TENON_MODELS_H
#define TENON_MODELS_H

#include "../optim/optim.h"
#include "bert.h"
#include "generate.h"
#include "gpt.h"

#endif

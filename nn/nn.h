/* nn.h — modules: what PyTorch calls torch.nn. The base is in module.h, simple modules in modules.h, initialisers in
 * init.h, state dicts in state.h; they and the headers of larger modules come with this one. */
#ifndef TENON_NN_NN_H
#define TENON_NN_NN_H

#include "module.h"
#include "init.h"
#include "modules.h"
#include "convolution.h"
#include "crf.h"
#include "losses.h"
#include "attention.h"
#include "look.h"
#include "transformer.h"
#include "rnn.h"
#include "language.h"
#include "state.h"

#endif

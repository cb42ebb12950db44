/* nn.h — modules, as in torch.nn. Includes the base (module.h, module_tools.h), simple modules (modules.h),
 * initialisers (init.h), state dicts (state.h) and the headers of larger modules. */
#ifndef TENON_NN_NN_H
#define TENON_NN_NN_H

#include "module.h"
#include "module_tools.h"
#include "init.h"
#include "modules.h"
#include "convolution.h"
#include "crf.h"
#include "losses.h"
#include "disentangled.h"
#include "attention.h"
#include "look.h"
#include "experts.h"
#include "transformer.h"
#include "rnn.h"
#include "language.h"
#include "state.h"
#include "lora.h"

#endif

/* nn.h — modules: what PyTorch calls torch.nn. The base is in module.h, the modules themselves in modules.h, initialisers
 * in init.h, state dicts in state.h; they come with this header. */
#ifndef TENON_NN_H
#define TENON_NN_H

#include "module.h"
#include "init.h"
#include "modules.h"
#include "attention.h"
#include "transformer.h"
#include "state.h"

#endif

/* tenon.h — the front door: #include <tenon/tenon.h> is the whole public API. */
#ifndef TENON_H
#define TENON_H

#include "core/core.h"
#include "autograd/autograd.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "data/data.h"
#include "parallel/parallel.h"
#include "models/models.h"

#endif

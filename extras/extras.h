/* extras.h — what the framework does not need, built on its public headers. Include <tenon/extras.h>. */
#ifndef TENON_EXTRAS_EXTRAS_H
#define TENON_EXTRAS_EXTRAS_H
#include "look.h"
#include "surface.h"
#endif

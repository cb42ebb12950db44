/* extras.h — #include <tenon/extras.h> is the whole public API and the extras. */
#ifndef TENON_EXTRAS_H
#define TENON_EXTRAS_H

#include "tenon.h"

#include "extras/extras.h"

#endif

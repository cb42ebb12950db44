/* toolbox.h — what every folder of the library may use of core beyond its public headers: the guard against a standing
 * error, memory and texts, arithmetic on sizes, checks of arguments, number types and bf16, denormals, checksums, a
 * clock, mathematics that leaves errno alone, texts that heed no locale. Private, not installed. */
#ifndef TENON_CORE_BASE_TOOLBOX_H
#define TENON_CORE_BASE_TOOLBOX_H

#include "core/base/bf16.h"
#include "core/base/checked.h"
#include "core/base/checks.h"
#include "core/base/clock.h"
#include "core/base/denormals.h"
#include "core/base/dtype.h"
#include "core/base/fnv.h"
#include "core/base/home.h"
#include "core/base/libm.h"
#include "core/base/memory.h"
#include "core/base/pair.h"
#include "core/base/plain.h"
#include "core/base/thread.h"

#endif

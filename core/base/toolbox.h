/* toolbox.h — the private parts of core that every folder of the library may use: the guard against a set error, memory
 * and strings, arithmetic on sizes, argument checks, dtypes and bf16, denormals, hashes, a clock, mathematics that
 * keeps errno, and formatting in the C locale. Not installed. */
#ifndef TENON_CORE_BASE_TOOLBOX_H
#define TENON_CORE_BASE_TOOLBOX_H

#include "core/base/bf16.h"
#include "core/base/c_locale.h"
#include "core/base/checked.h"
#include "core/base/checks.h"
#include "core/base/checksums.h"
#include "core/base/clock.h"
#include "core/base/denormals.h"
#include "core/base/dtype.h"
#include "core/base/libm.h"
#include "core/base/memory.h"
#include "core/base/thread.h"
#include "core/base/window2d.h"

#endif

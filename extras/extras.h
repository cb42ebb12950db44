/* extras.h — what the framework does not need, built on its public headers. Include <tenon/extras.h>. */
#ifndef TENON_EXTRAS_EXTRAS_H
#define TENON_EXTRAS_EXTRAS_H
#include "elmo.h"
#include "look.h"
#include "report.h"
#include "runlog.h"
#include "skip_thought.h"
#include "surface.h"
#include "vectors.h"
#endif

/* samples.h — all ops, those of the registry and of the extras, with their rows of test data. */
#ifndef TENON_TESTS_COMMON_SAMPLES_H
#define TENON_TESTS_COMMON_SAMPLES_H

#include "autograd/rooms/registry.h"

int                tn_sampled_count(void);
const tn_op       *tn_sampled(int i);
const tn__samples *tn_samples_of(int i); /* at least one row */

#endif

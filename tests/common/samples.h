/* samples.h — the rows of test data of each op in the registry. */
#ifndef TENON_TESTS_COMMON_SAMPLES_H
#define TENON_TESTS_COMMON_SAMPLES_H

#include "autograd/rooms/registry.h"

const tn__samples *tn_samples_of(int op); /* op: index as for tn_op_at; each has at least one row */

#endif

/* samples.c — the rows of test data of all ops as a table; see autograd/rooms/samples.h. */
#include "tests/common/samples.h"

#define OP(name) &tn__samples_##name,
static const tn__samples *const samples[] = {TN__OPS(OP)};
#undef OP

const tn__samples *tn_samples_of(int op) { return samples[op]; }

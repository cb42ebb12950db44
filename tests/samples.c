/* samples.c — the rows of test data as a table: see autograd/samples.h. */
#include "tests/samples.h"

#define OP(name) &tn_samples_##name,
static const tn_samples *const samples[] = {TN_OPS(OP)};
#undef OP

const tn_samples *tn_samples_of(int op) { return samples[op]; }

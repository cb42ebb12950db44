/* samples.c — the rows of test data of all ops as a table; see autograd/rooms/samples.h. */
#include "tests/common/samples.h"

#ifdef TENON_TEST_EXTRAS
#define OPS(OP) TN__OPS(OP) OP(lsh_attention)
extern const tn_op       tn__op_lsh_attention;
extern const tn__samples tn__samples_lsh_attention;
#else
#define OPS(OP) TN__OPS(OP)
#endif

#define OP(name) &tn__samples_##name,
static const tn__samples *const samples[] = {OPS(OP)};
#undef OP
#define OP(name) &tn__op_##name,
static const tn_op *const ops[] = {OPS(OP)};
#undef OP

int                tn_sampled_count(void) { return (int)(sizeof ops / sizeof *ops); }
const tn_op       *tn_sampled(int i) { return ops[i]; }
const tn__samples *tn_samples_of(int i) { return samples[i]; }

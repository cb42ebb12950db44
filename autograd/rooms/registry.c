/* registry.c — the table of the library's ops, for tests and tools. */
#include "autograd/rooms/registry.h"

#define OP(name) &tn__op_##name,
static const tn_op *const ops[] = {TN__OPS(OP)};
#undef OP

int          tn_op_count(void) { return (int)(sizeof ops / sizeof *ops); }
const tn_op *tn_op_at(int i) { return i >= 0 && i < tn_op_count() ? ops[i] : NULL; }

/* same_bits.h — included before each file of a version's bench/ (cc -include), so that same_bits.c records the results
 * of its workloads. The files are not changed, so that old versions can be compared, too. The functions that are
 * replaced here have the same names in all versions; if that changes, distinguish the versions here. */
#ifndef TENON_TESTS_PROJECT_SAME_BITS_H
#define TENON_TESTS_PROJECT_SAME_BITS_H

#include <tenon/tenon.h>

tn_tensor *same_bits_seen(tn_tensor *t);      /* adds t's bits to the compared ones; returns t */
double     same_bits_loss(double loss);       /* records and returns the loss */
tn_status  same_bits_step(tn_optimizer *opt); /* tn_step; prints the step's loss and the norm of its gradients */

static inline tn_tensor *same_bits_sum(tn_tensor *x) { return same_bits_seen(tn_sum(same_bits_seen(x))); }

#undef tn_call
#define tn_call(m, x) same_bits_seen(tn_module_call(m, x))
#undef tn_sum
#define tn_sum(x) same_bits_sum(x)
#define tn_argmax(x, ...) tn_argmax(same_bits_seen(x), __VA_ARGS__) /* gpt-gen: the scores of the next word */
#define tn_item(t) same_bits_loss(tn_item(t))
#define tn_step(opt) same_bits_step(opt)

#endif

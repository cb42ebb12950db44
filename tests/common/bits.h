/* bits.h — the strictest comparison of two tensors (layouts.c). */
#ifndef TENON_TESTS_COMMON_BITS_H
#define TENON_TESTS_COMMON_BITS_H

#include "core/core.h"

/* Returns true if dtype, shape and the bits of each element are equal; strides may differ. */
bool tn_same_bits(const tn_tensor *a, const tn_tensor *b);

#endif

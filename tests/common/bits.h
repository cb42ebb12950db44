/* bits.h — the strictest comparison of two tensors (layouts.c). */
#ifndef TENON_TESTS_COMMON_BITS_H
#define TENON_TESTS_COMMON_BITS_H

#include "core/core.h"

/* Same type, same shape, same bits of each element, whatever the strides. */
bool tn_same_bits(const tn_tensor *a, const tn_tensor *b);

#endif

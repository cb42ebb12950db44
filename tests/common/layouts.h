/* layouts.h — tensors of every dtype in every kind of layout with varied bit patterns, for tests of operations that
 * must preserve values to the bit. */
#ifndef TENON_TESTS_COMMON_LAYOUTS_H
#define TENON_TESTS_COMMON_LAYOUTS_H

#include "core/core.h"
#include "tests/common/bits.h"

/* Layouts: contiguous; transposed; a slice with steps and an offset; sizes of 1 with odd strides; repeated by stride 0;
 * 0-d; two kinds of empty; 8 dims. */
enum { TN_LAYOUTS = 9, TN_DTYPES = 7 };
tn_tensor *tn__sample(tn_dtype dt, int layout);

#endif

/* layouts.h — tensors of every type in every kind of layout, with bits of every kind in them: for tests of what must
 * keep values to the last bit. */
#ifndef TENON_TESTS_COMMON_LAYOUTS_H
#define TENON_TESTS_COMMON_LAYOUTS_H

#include "core/core.h"
#include "tests/common/bits.h"

/* Contiguous, transposed, cut with steps from an offset, sizes of 1 with odd strides, repeated by stride 0,
 * 0-d, empty in two ways, of 8 dims. */
enum { TN_LAYOUTS = 9, TN_DTYPES = 7 };
tn_tensor *tn__sample(tn_dtype dt, int layout);

#endif

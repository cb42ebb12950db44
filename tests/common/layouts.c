/* layouts.c — tensors in every layout; see layouts.h. */
#include "tests/common/layouts.h"

#include "core/tensor/tensor.h"
#include <string.h>

static void fill(unsigned char *p, tn_dtype dt, int64_t n)
{
    static const uint64_t special[] = {0x8000000000000000u,
                                       0x7ff0000000000001u,
                                       0xfff8000000abcdefu,
                                       0x7ff0000000000000u,
                                       1,
                                       0x80000000u,
                                       0x7f800001u,
                                       0xffc12345u,
                                       0x8000u,
                                       0x7f81u,
                                       0xffc3u,
                                       0};
    uint64_t              state = 0x9e3779b97f4a7c15u * ((uint64_t)dt + 1);
    size_t                size = tn__dtype_bytes(dt);
    for (int64_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t v =
            i % 3 == 0 ? special[(size_t)i / 3 % (sizeof special / sizeof *special)] : state >> 7 ^ state << 11;
        if (dt == TN_BOOL) v = state >> 40 & 1;
        memcpy(p + (size_t)i * size, &v, size); /* the low bytes */
    }
}

tn_tensor *tn__sample(tn_dtype dt, int layout)
{
    static const tn_shape shapes[TN_LAYOUTS] = {
        {.n = 1, .d = {37}},         {.n = 2, .d = {5, 7}},    {.n = 2, .d = {12, 3}},
        {.n = 4, .d = {1, 6, 1, 2}}, {.n = 2, .d = {1, 5}},    {.n = 0, .d = {0}},
        {.n = 1, .d = {0}},          {.n = 3, .d = {4, 0, 3}}, {.n = 8, .d = {2, 1, 2, 3, 1, 2, 2, 2}}};
    tn_tensor *t = tn_empty_of(dt, shapes[layout]);
    if (!t) return NULL;
    fill(tn__ptr(t), dt, tn_numel(t));
    tn__layout l = t->l;
    switch (layout) {
    case 1: /* transposed */
        l.shape = (tn_shape){.n = 2, .d = {7, 5}};
        l.stride[0] = 1, l.stride[1] = 7;
        break;
    case 2: /* rows 2, 4, … 10, columns 0 and 2 */
        l.shape = (tn_shape){.n = 2, .d = {5, 2}};
        l.offset = 2 * 3;
        l.stride[0] = 6, l.stride[1] = 2;
        break;
    case 3: /* sizes of 1 with meaningless strides */ l.stride[0] = 99, l.stride[2] = 0; break;
    case 4: /* one row, repeated three times */
        l.shape = (tn_shape){.n = 3, .d = {3, 1, 5}};
        l.stride[0] = l.stride[1] = 0, l.stride[2] = 1;
        break;
    default: return t;
    }
    return tn__alias(t, &l);
}

bool tn_same_bits(const tn_tensor *a, const tn_tensor *b)
{
    if (!a || !b || a->dtype != b->dtype || !tn_shape_equal(a->l.shape, b->l.shape)) return false;
    size_t  size = tn__dtype_bytes(a->dtype);
    int64_t n = tn_numel(a);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, ia = 0, ib = 0;
        for (int d = a->l.shape.n - 1; d >= 0; d--) {
            ia += rest % a->l.shape.d[d] * a->l.stride[d];
            ib += rest % a->l.shape.d[d] * b->l.stride[d];
            rest /= a->l.shape.d[d];
        }
        if (memcmp((const char *)tn__ptr(a) + ia * (int64_t)size, (const char *)tn__ptr(b) + ib * (int64_t)size, size))
            return false;
    }
    return true;
}

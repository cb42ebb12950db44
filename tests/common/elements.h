/* elements.h — a strided tensor of each dtype with known elements. */
#ifndef TENON_TESTS_COMMON_ELEMENTS_H
#define TENON_TESTS_COMMON_ELEMENTS_H

#include "core/tensor/tensor.h"
#include "tests/common/check_main.h"

static const tn_dtype types[] = {TN_F32, TN_F64, TN_BF16, TN_I64, TN_I32, TN_U8, TN_BOOL};
enum { TYPES = sizeof types / sizeof *types };

static inline void refused(tn_status got, tn_status code, const char *text)
{
    ck_assert_int_eq(got, code);
    ck_error(code, text);
}

static inline uint32_t version(const tn_tensor *t) { return t->storage->version; }

/* A view of [4, 3] in column order, with a gap before, after and between: elements 0 … 11 by position. */
static inline tn_tensor *odd_view(tn_dtype dt)
{
    tn_tensor *base = tn_full_of(dt, TN_SHAPE(40), dt == TN_BOOL ? 1 : 99);
    tn__layout l = {.shape = {.n = 2, .d = {4, 3}}, .stride = {2, 10}, .offset = 5};
    tn_tensor *t = tn__alias(base, &l);
    double     v[12];
    for (int i = 0; i < 12; i++) v[i] = dt == TN_BOOL ? i % 2 : i;
    ck_assert_int_eq(tn_copy_in(t, TN_F64, v, sizeof v), TN_OK);
    return t;
}

static inline double value_of(tn_dtype dt, int64_t i) { return (double)(dt == TN_BOOL ? i % 2 : i); }

#endif

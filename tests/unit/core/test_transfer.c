/* test_transfer.c — all elements at once: to and from host memory, from another tensor, one value. */
#include "tests/common/check_main.h"
#include "tests/common/elements.h"

#include "core/tensor/convert.h"
#include "core/tensor/tensor.h"

/* For loops: Check's own assertions each write to a pipe, whether they hold or not. */
#define EACH(holds) ((holds) ? (void)0 : ck_abort_msg("%s", #holds))

/* From any dtype to any other and back, through a strided view and through misaligned memory. */
TEST_EACH(copy_in_and_out, TYPES)
{
    const tn_dtype mine = types[_i];
    for (int k = 0; k < TYPES; k++) {
        const tn_dtype theirs = types[k];
        const size_t   size = tn_dtype_size(theirs);
        char           in[12 * 8 + 1], out[12 * 8 + 3];
        for (int64_t i = 0; i < 12; i++) {
            _Alignas(8) char one[8];
            tn__store(one, theirs, value_of(theirs, 11 - i));
            memcpy(in + 1 + (size_t)i * size, one, size);
        }
        tn_tensor *t = odd_view(mine);
        uint32_t   v = version(t);
        ck_assert_int_eq(tn_copy_in(t, theirs, in + 1, 12 * size), TN_OK);
        ck_assert_uint_eq(version(t), v + 1);
        ck_assert_str_eq(t->storage->writer, "tn_copy_in");
        for (int64_t i = 0; i < 12; i++) {
            double want = value_of(theirs, 11 - i);
            if (mine == TN_BOOL) want = want != 0;
            ck_assert_double_eq(tn_get(t, i), want);
        }
        memset(out, 0x5a, sizeof out);
        ck_assert_int_eq(tn_copy_out(t, theirs, out + 1, 12 * size), TN_OK);
        ck_assert_uint_eq(version(t), v + 1);
        ck_assert_int_eq(out[0], 0x5a);
        ck_assert_int_eq(out[1 + 12 * size], 0x5a);
        for (int64_t i = 0; i < 12; i++) {
            _Alignas(8) char one[8];
            memcpy(one, out + 1 + (size_t)i * size, size);
            ck_assert_double_eq(tn__load(one, theirs), tn_get(t, i));
        }
    }
}

TEST(copies_of_many)
{
    static float  in[70001], out[70001];
    static double wide[70001];
    for (int i = 0; i < 70001; i++) in[i] = (float)i + 0.25f;
    tn_tensor *t = tn_zeros_of(TN_F64, TN_SHAPE(70001));
    ck_assert_int_eq(tn_copy_in(t, TN_F32, in, sizeof in), TN_OK);
    ck_assert_int_eq(tn_copy_out(t, TN_F32, out, sizeof out), TN_OK);
    ck_assert_mem_eq(in, out, sizeof in);
    ck_assert_int_eq(tn_copy_out(t, TN_F64, wide, sizeof wide), TN_OK);
    for (int i = 0; i < 70001; i++) EACH(wide[i] == (double)in[i]);
}

TEST(copies_refuse)
{
    tn_tensor *t = tn_ones(TN_SHAPE(2, 3));
    double     v[7] = {0};
    refused(tn_copy_in(t, TN_F64, v, 24), TN_EINVAL, "tn_copy_in: shape [2, 3] as f64 takes 48 bytes, but bytes is 24");
    refused(tn_copy_in(t, TN_BF16, v, 48), TN_EINVAL,
            "tn_copy_in: shape [2, 3] as bf16 takes 12 bytes, but bytes is 48");
    refused(tn_copy_in(t, TN_F64, NULL, 48), TN_EINVAL, "tn_copy_in: data is NULL");
    refused(tn_copy_in(t, (tn_dtype)9, v, 48), TN_EDTYPE, "tn_copy_in: 9 is not a dtype");
    refused(tn_copy_out(t, TN_F64, v, 56), TN_EINVAL,
            "tn_copy_out: shape [2, 3] as f64 takes 48 bytes, but bytes is 56");
    refused(tn_copy_out(t, TN_F64, NULL, 48), TN_EINVAL, "tn_copy_out: data is NULL");
    refused(tn_copy_from(t, tn_zeros(TN_SHAPE(3, 2))), TN_ESHAPE,
            "tn_copy_from: src of shape [3, 2] does not broadcast to t of shape [2, 3]");
    refused(tn_copy_from(t, tn_zeros(TN_SHAPE(1, 2, 3))), TN_ESHAPE,
            "tn_copy_from: src of shape [1, 2, 3] does not broadcast to t of shape [2, 3]");
    ck_assert_uint_eq(version(t), 0);
    ck_assert_double_eq(tn_get(t, 0), 1);
    tn_tensor *none = tn_ones(TN_SHAPE(0, 3));
    ck_assert_int_eq(tn_copy_in(none, TN_F64, NULL, 0), TN_OK);
    ck_assert_int_eq(tn_copy_out(none, TN_F64, NULL, 0), TN_OK);
    ck_assert_int_eq(tn_copy_from(none, tn_scalar(1)), TN_OK);
    ck_assert_int_eq(tn_fill(none, 1), TN_OK);
}

TEST_EACH(copy_from_broadcasts_and_converts, TYPES)
{
    const tn_dtype dt = types[_i];
    tn_tensor     *t = odd_view(dt), *row = tn_arange(3);
    uint32_t       v = version(t);
    ck_assert_int_eq(tn_copy_from(t, row), TN_OK);
    ck_assert_uint_eq(version(t), v + 1);
    for (int64_t i = 0; i < 12; i++) ck_assert_double_eq(tn_get(t, i), dt == TN_BOOL ? i % 3 != 0 : (double)(i % 3));
    tn_tensor *column = tn_full(TN_SHAPE(4, 1), 1);
    tn_set(column, 2, 0);
    ck_assert_int_eq(tn_copy_from(t, column), TN_OK);
    for (int64_t i = 0; i < 12; i++) ck_assert_double_eq(tn_get(t, i), i / 3 != 2);
    ck_assert_int_eq(tn_copy_from(t, tn_scalar(1)), TN_OK);
    for (int64_t i = 0; i < 12; i++) ck_assert_double_eq(tn_get(t, i), 1);
    const tn_tensor *base =
        tn__alias(t, &(tn__layout){.shape = {.n = 1, .d = {40}}, .stride = {1}}); /* the gaps are unchanged */
    int outside = 0;
    for (int64_t i = 0; i < 40; i++) outside += tn_get(base, i) == (dt == TN_BOOL ? 1 : 99);
    ck_assert_int_eq(outside, dt == TN_BOOL ? 40 : 28);
}

TEST(copy_from_overlapping_memory) /* as if all were read before any is written */
{
    for (int step = -1; step <= 1; step++) {
        tn_tensor *base = tn_linspace_of(TN_F64, 0, 49999, 50000);
        tn__layout to = {.shape = {.n = 1, .d = {49998}}, .stride = {1}, .offset = 1}, from = to;
        from.offset += step;
        ck_assert_int_eq(tn_copy_from(tn__alias(base, &to), tn__alias(base, &from)), TN_OK);
        for (int64_t i = 1; i < 49999; i++) EACH(tn_get(base, i) == (double)(i + step));
        ck_assert_double_eq(tn_get(base, 0), 0);
        ck_assert_double_eq(tn_get(base, 49999), 49999);
    }
    tn_tensor *square = tn_linspace_of(TN_F32, 0, 15, 16); /* a matrix is replaced by its transpose */
    tn__layout rows = {.shape = {.n = 2, .d = {4, 4}}, .stride = {4, 1}},
               columns = {.shape = {.n = 2, .d = {4, 4}}, .stride = {1, 4}};
    ck_assert_int_eq(tn_copy_from(tn__alias(square, &rows), tn__alias(square, &columns)), TN_OK);
    for (int64_t i = 0; i < 16; i++) ck_assert_double_eq(tn_get(square, i), (double)(i % 4 * 4 + i / 4));
    /* separate ranges of the same memory: no copy between, so no memory is needed */
    tn__layout first = {.shape = {.n = 1, .d = {8}}, .stride = {1}},
               second = {.shape = {.n = 1, .d = {8}}, .stride = {1}, .offset = 8};
    tn_tensor *a = tn__alias(square, &first), *b = tn__alias(square, &second);
    uint64_t   live = tn_memory_now().live;
    tn_reset_peak();
    ck_assert_int_eq(tn_copy_from(a, b), TN_OK);
    ck_assert_uint_eq(tn_memory_now().peak, live);
    for (int64_t i = 0; i < 8; i++) ck_assert_double_eq(tn_get(a, i), tn_get(b, i));
}

TEST(copy_from_without_memory)
{
    tn_tensor *base = tn_linspace_of(TN_F64, 0, 99999, 100000);
    tn__layout to = {.shape = {.n = 1, .d = {99999}}, .stride = {1}, .offset = 1}, from = to;
    from.offset = 0;
    tn_tensor *a = tn__alias(base, &to), *b = tn__alias(base, &from);
    tn_trim();
    tn_set_memory_limit(tn_memory_now().live + 1000);
    ck_assert_int_eq(tn_copy_from(a, b), TN_ENOMEM);
    tn_set_memory_limit(0);
    tn_clear_error();
    ck_assert_uint_eq(version(base), 0);
    for (int64_t i = 0; i < 100000; i++) EACH(tn_get(base, i) == (double)i);
}

TEST_EACH(fill, TYPES)
{
    tn_tensor *t = odd_view(types[_i]);
    uint32_t   v = version(t);
    ck_assert_int_eq(tn_fill(t, 1), TN_OK);
    ck_assert_uint_eq(version(t), v + 1);
    ck_assert_str_eq(t->storage->writer, "tn_fill");
    for (int64_t i = 0; i < 12; i++) ck_assert_double_eq(tn_get(t, i), 1);
    tn_tensor *large = tn_zeros_of(types[_i], TN_SHAPE(100000));
    ck_assert_int_eq(tn_fill(large, 1), TN_OK);
    for (int64_t i = 0; i < 100000; i++) EACH(tn_get(large, i) == 1);
}

/* test_access.c — properties of a tensor, and access to single elements. */
#include "tests/common/check_main.h"
#include "tests/common/elements.h"

#include "core/tensor/tensor.h"

/* ---- readers -------------------------------------------------------------------------------------------------- */

TEST(what_a_tensor_is)
{
    tn_tensor *t = odd_view(TN_I32);
    ck_assert_int_eq(tn_dtype_of(t), TN_I32);
    ck_assert(tn_shape_equal(tn_shape_of(t), TN_SHAPE(4, 3)));
    ck_assert(tn_shape_equal(tn_strides_of(t), TN_SHAPE(2, 10)));
    ck_assert_int_eq(tn_ndim(t), 2);
    ck_assert_int_eq(tn_numel(t), 12);
    ck_assert_int_eq(tn_size(t, 0), 4);
    ck_assert_int_eq(tn_size(t, 1), 3);
    ck_assert_int_eq(tn_size(t, -1), 3);
    ck_assert_int_eq(tn_size(t, -2), 4);
    ck_assert(!tn_is_contiguous(t));
    tn_tensor *other = tn_zeros_of(TN_I32, TN_SHAPE(4, 3)), *alias = tn__alias(t, &t->l);
    ck_assert(tn_is_contiguous(other));
    ck_assert(tn_shares_memory(t, alias));
    ck_assert(!tn_shares_memory(t, other));
    ck_assert_ptr_eq(tn_data(t), (const char *)t->storage->data + 20);
    ck_assert_int_eq(tn_ndim(tn_scalar(1)), 0);
    ck_assert_int_eq(tn_numel(tn_scalar(1)), 1);
    ck_assert_int_eq(tn_size(t, 2), -1);
    ck_error(TN_EINDEX, "tn_size: dim 2 is out of range for a 2-d tensor");
    ck_assert_int_eq(tn_size(t, -3), -1);
    ck_error(TN_EINDEX, "tn_size: dim -3 is out of range for a 2-d tensor");
    ck_assert_int_eq(tn_size(tn_scalar(1), 0), -1);
    ck_error(TN_EINDEX, "tn_size: dim 0 of a 0-d tensor, which has none");
}

TEST(null_is_harmless)
{
    double x = 5;
    ck_assert_int_eq(tn_dtype_of(NULL), TN_F32);
    ck_assert_int_eq(tn_shape_of(NULL).n, 0);
    ck_assert_int_eq(tn_strides_of(NULL).n, 0);
    ck_assert_int_eq(tn_ndim(NULL), 0);
    ck_assert_int_eq(tn_numel(NULL), 0);
    ck_assert_int_eq(tn_size(NULL, 0), -1);
    ck_assert(!tn_is_contiguous(NULL));
    ck_assert(!tn_shares_memory(NULL, NULL));
    ck_assert(isnan(tn_item(NULL)));
    ck_assert(isnan(tn_get(NULL, 0)));
    ck_assert(isnan(tn_get_at(NULL, TN_SHAPE(0))));
    ck_assert_int_eq(tn_get_i64(NULL, 0), 0);
    ck_assert_ptr_null(tn_data(NULL));
    ck_assert_str_eq(tn_name_of(NULL), "");
    ck_assert_ptr_null(tn_set_name(NULL, "x"));
    ck_assert_int_eq(tn_error(), TN_OK);
    refused(tn_set(NULL, 0, 1), TN_EINVAL, "tn_set: t is NULL");
    refused(tn_set_at(NULL, TN_SHAPE(0), 1), TN_EINVAL, "tn_set_at: t is NULL");
    refused(tn_set_i64(NULL, 0, 1), TN_EINVAL, "tn_set_i64: t is NULL");
    refused(tn_fill(NULL, 1), TN_EINVAL, "tn_fill: t is NULL");
    refused(tn_copy_from(NULL, tn_scalar(1)), TN_EINVAL, "tn_copy_from: t is NULL");
    refused(tn_copy_from(tn_scalar(1), NULL), TN_EINVAL, "tn_copy_from: src is NULL");
    refused(tn_copy_in(NULL, TN_F64, &x, sizeof x), TN_EINVAL, "tn_copy_in: t is NULL");
    refused(tn_copy_out(NULL, TN_F64, &x, sizeof x), TN_EINVAL, "tn_copy_out: t is NULL");
    ck_refused(tn_data_mut(NULL), TN_EINVAL, "tn_data_mut: t is NULL");
    ck_assert_double_eq(x, 5);
}

TEST_EACH(elements_by_position_and_index, TYPES)
{
    const tn_dtype dt = types[_i];
    tn_tensor     *t = odd_view(dt);
    for (int64_t i = 0; i < 12; i++) {
        ck_assert_double_eq(tn_get(t, i), value_of(dt, i));
        ck_assert_int_eq(tn_get_i64(t, i), (int64_t)value_of(dt, i));
        ck_assert_double_eq(tn_get_at(t, TN_SHAPE(i / 3, i % 3)), value_of(dt, i));
        ck_assert_double_eq(tn_get_at(t, TN_SHAPE(i / 3 - 4, i % 3 - 3)), value_of(dt, i)); /* from the end */
    }
    ck_assert_double_eq(tn_item(tn_scalar_of(dt, 1)), 1);
    ck_assert_double_eq(tn_get_at(tn_scalar_of(dt, 1), TN_SCALAR), 1);
    ck_assert_double_eq(tn_item(tn_full_of(dt, TN_SHAPE(1, 1, 1), 1)), 1);
}

TEST(readers_refuse_what_is_not_there)
{
    tn_tensor *t = odd_view(TN_F32), *none = tn_zeros(TN_SHAPE(0, 3)), *one = tn_zeros(TN_SHAPE(1));
    ck_assert(isnan(tn_get(t, 12)));
    ck_error(TN_EINDEX, "tn_get: position 12 is out of range for shape [4, 3], which has 12 elements");
    ck_assert(isnan(tn_get(t, -1)));
    ck_error(TN_EINDEX, "tn_get: position -1 is out of range for shape [4, 3], which has 12 elements");
    ck_assert(isnan(tn_get(none, 0)));
    ck_error(TN_EINDEX, "tn_get: position 0 is out of range for shape [0, 3], which has 0 elements");
    ck_assert_int_eq(tn_get_i64(one, 1), 0);
    ck_error(TN_EINDEX, "tn_get_i64: position 1 is out of range for shape [1], which has 1 element");
    ck_assert(isnan(tn_get_at(t, TN_SHAPE(4, 0))));
    ck_error(TN_EINDEX, "tn_get_at: index [4, 0] is out of range for shape [4, 3] in dim 0");
    ck_assert(isnan(tn_get_at(t, TN_SHAPE(0, -4))));
    ck_error(TN_EINDEX, "tn_get_at: index [0, -4] is out of range for shape [4, 3] in dim 1");
    ck_assert(isnan(tn_get_at(t, TN_SHAPE(1))));
    ck_error(TN_EINDEX, "tn_get_at: an index of 1 entries for a 2-d tensor of shape [4, 3]");
    ck_assert(isnan(tn_get_at(t, TN_SHAPE(INT64_MIN, 0))));
    ck_error(TN_EINDEX, "tn_get_at: index [-9223372036854775808, 0] is out of range for shape [4, 3] in dim 0");
    ck_assert(isnan(tn_item(t)));
    ck_error(TN_EINVAL, "tn_item: shape [4, 3] has 12 elements, but must have exactly one; tn_get reads any element");
    ck_assert(isnan(tn_item(none)));
    ck_error(TN_EINVAL, "tn_item: shape [0, 3] has 0 elements, but must have exactly one; tn_get reads any element");
}

TEST(readers_work_while_an_error_stands)
{
    tn_tensor *t = tn_set_name(odd_view(TN_F64), "w");
    double     out[12];
    tn_raise(TN_EINVAL, "planted");
    ck_assert_int_eq(tn_dtype_of(t), TN_F64);
    ck_assert_int_eq(tn_numel(t), 12);
    ck_assert_int_eq(tn_size(t, 1), 3);
    ck_assert_double_eq(tn_get(t, 7), 7);
    ck_assert_double_eq(tn_get_at(t, TN_SHAPE(1, 1)), 4);
    ck_assert_int_eq(tn_get_i64(t, 11), 11);
    ck_assert_ptr_nonnull(tn_data(t));
    ck_assert_str_eq(tn_name_of(t), "w");
    ck_assert_int_eq(tn_copy_out(t, TN_F64, out, sizeof out), TN_OK);
    for (int i = 0; i < 12; i++) ck_assert_double_eq(out[i], i);
    ck_assert_str_eq(tn_error_message(), "planted");
    ck_assert(isnan(tn_get(t, 12))); /* a second error does not hide the first */
    ck_assert_int_eq(tn_copy_out(t, TN_F64, out, 1), TN_EINVAL);
    ck_assert_str_eq(tn_error_message(), "planted (2 later calls skipped)");
    tn_clear_error();
}

TEST(integers_are_exact)
{
    tn_tensor    *t = tn_zeros_of(TN_I64, TN_SHAPE(3));
    const int64_t odd = ((int64_t)1 << 60) + 1;
    ck_assert_int_eq(tn_set_i64(t, 0, odd), TN_OK);
    ck_assert_int_eq(tn_set_i64(t, 1, INT64_MIN), TN_OK);
    ck_assert_int_eq(tn_set_i64(t, 2, INT64_MAX), TN_OK);
    ck_assert_int_eq(tn_get_i64(t, 0), odd);
    ck_assert_int_eq(tn_get_i64(t, 1), INT64_MIN);
    ck_assert_int_eq(tn_get_i64(t, 2), INT64_MAX);
    ck_assert_int_eq(tn_get_i64(tn_full(TN_SHAPE(1), -2.75), 0), -2);
    ck_assert_int_eq(tn_get_i64(tn_full(TN_SHAPE(1), 1e30), 0), INT64_MAX);
    ck_assert_int_eq(tn_get_i64(tn_full(TN_SHAPE(1), NAN), 0), 0);
}

TEST(names)
{
    char       text[] = "encoder.weight";
    tn_tensor *t = tn_zeros(TN_SHAPE(2));
    ck_assert_str_eq(tn_name_of(t), "");
    ck_assert_ptr_eq(tn_set_name(t, text), t);
    text[0] = 'X'; /* it was copied */
    ck_assert_str_eq(tn_name_of(t), "encoder.weight");
    tn_set_name(t, "b");
    ck_assert_str_eq(tn_name_of(t), "b");
    tn_raise(TN_EINVAL, "planted");
    ck_assert_ptr_null(tn_set_name(t, "c"));
    tn_clear_error();
    ck_assert_str_eq(tn_name_of(t), "b");
    ck_assert_uint_eq(version(t), 0);
    ck_assert_ptr_eq(tn_set_name(t, NULL), t);
    ck_assert_str_eq(tn_name_of(t), "");
}

/* ---- writers, element by element ------------------------------------------------------------------------------- */

TEST_EACH(set_elements, TYPES)
{
    const tn_dtype dt = types[_i];
    tn_tensor     *t = odd_view(dt);
    uint32_t       v = version(t);
    ck_assert_int_eq(tn_set(t, 4, dt == TN_BOOL ? 1 : 44), TN_OK);
    ck_assert_uint_eq(version(t), v + 1);
    ck_assert_str_eq(t->storage->writer, "tn_set");
    ck_assert_uint_eq(t->version, v + 1);
    ck_assert_int_eq(tn_set_at(t, TN_SHAPE(-1, 0), 1), TN_OK);
    ck_assert_uint_eq(version(t), v + 2);
    ck_assert_str_eq(t->storage->writer, "tn_set_at");
    ck_assert_int_eq(tn_set_i64(t, 11, 0), TN_OK);
    ck_assert_uint_eq(version(t), v + 3);
    ck_assert_str_eq(t->storage->writer, "tn_set_i64");
    for (int64_t i = 0; i < 12; i++) {
        double want = i == 4 ? dt == TN_BOOL ? 1 : 44 : i == 9 ? 1 : i == 11 ? 0 : value_of(dt, i);
        ck_assert_double_eq(tn_get(t, i), want);
    }
}

TEST(set_refuses)
{
    tn_tensor *t = tn_full_of(TN_U8, TN_SHAPE(2, 2), 7);
    refused(tn_set(t, 4, 0), TN_EINDEX, "tn_set: position 4 is out of range for shape [2, 2], which has 4 elements");
    refused(tn_set_i64(t, -1, 0), TN_EINDEX,
            "tn_set_i64: position -1 is out of range for shape [2, 2], which has 4 elements");
    refused(tn_set_at(t, TN_SHAPE(0, 2), 0), TN_EINDEX,
            "tn_set_at: index [0, 2] is out of range for shape [2, 2] in dim 1");
    refused(tn_set(t, 0, 256), TN_EINVAL, "tn_set: value 256 does not fit u8, which holds 0 to 255");
    refused(tn_set(t, 0, NAN), TN_EINVAL, "tn_set: value nan does not fit u8, which holds 0 to 255");
    refused(tn_set_i64(t, 0, -1), TN_EINVAL, "tn_set_i64: value -1 does not fit u8, which holds 0 to 255");
    refused(tn_set_i64(tn_zeros_of(TN_I32, TN_SHAPE(1)), 0, (int64_t)1 << 31), TN_EINVAL,
            "tn_set_i64: value 2.14748e+09 does not fit i32, which holds -2147483648 to 2147483647");
    refused(tn_fill(t, 1e9), TN_EINVAL, "tn_fill: value 1e+09 does not fit u8, which holds 0 to 255");
    refused(tn_set(tn_zeros(TN_SHAPE(1)), 0, 1e39), TN_EINVAL, "tn_set: value 1e+39 is too large for f32");
    for (int64_t i = 0; i < 4; i++) ck_assert_double_eq(tn_get(t, i), 7);
    ck_assert_uint_eq(version(t), 0);
}

TEST(data_mut)
{
    tn_tensor *t = odd_view(TN_F32);
    uint32_t   v = version(t);
    float     *p = tn_data_mut(t);
    ck_assert_uint_eq(version(t), v + 1);
    ck_assert_ptr_eq(p, tn_data(t));
    ck_assert_uint_eq(version(t), v + 1); /* tn_data does not count as a write */
    p[10] = -5;
    ck_assert_double_eq(tn_get_at(t, TN_SHAPE(0, 1)), -5);
    ck_assert_ptr_nonnull(tn_data_mut(tn_scalar(3)));
}

/* Every writer calls tn__writable first, and changes nothing if that fails. */
static void all_refuse(tn_tensor *t, tn_status code, const char *text)
{
    char     message[400];
    double   data[64] = {0};
    size_t   bytes = (size_t)tn_numel(t) * sizeof *data;
    uint32_t v = version(t);
    ck_assert_uint_le(bytes, sizeof data);
    tn_shape index = tn_shape_of(t);
    for (int i = 0; i < index.n; i++) index.d[i] = 0;
#define REFUSES(who, call)                                      \
    do {                                                        \
        snprintf(message, sizeof message, "%s: %s", who, text); \
        refused(call, code, message);                           \
    } while (0)
    REFUSES("tn_set", tn_set(t, 0, 5));
    REFUSES("tn_set_at", tn_set_at(t, index, 5));
    REFUSES("tn_set_i64", tn_set_i64(t, 0, 5));
    REFUSES("tn_fill", tn_fill(t, 5));
    REFUSES("tn_copy_in", tn_copy_in(t, TN_F64, data, bytes));
    REFUSES("tn_copy_from", tn_copy_from(t, tn_scalar(5)));
    ck_assert_ptr_null(tn_data_mut(t));
    snprintf(message, sizeof message, "tn_data_mut: %s", text);
    ck_error(code, message);
    ck_assert_uint_eq(version(t), v);
    for (int64_t i = 0; i < tn_numel(t); i++) ck_assert_double_eq(tn_get(t, i), 1);
}

TEST(leaves_are_written_in_no_grad_only)
{
    tn_tensor *t = tn_ones(TN_SHAPE(2, 3));
    t->leaf = true;
    all_refuse(t, TN_ESTATE, "this tensor requires grad; change it inside tn_no_grad_begin() and tn_scope_end()");
    tn_set_name(t, "encoder.weight");
    all_refuse(t, TN_ESTATE,
               "this tensor (encoder.weight) requires grad; change it inside tn_no_grad_begin() and tn_scope_end()");
    tn_scope s = tn_no_grad_begin();
    ck_assert_int_eq(tn_set(t, 0, 2), TN_OK);
    ck_assert_int_eq(tn_fill(t, 3), TN_OK);
    ck_assert_ptr_nonnull(tn_data_mut(t));
    ck_assert_uint_eq(version(t), 3);
    tn_scope_end(s);
    ck_assert_double_eq(tn_get(t, 5), 3);
}

TEST(repeated_elements_are_not_written)
{
    tn_tensor *base = tn_ones(TN_SHAPE(12));
    tn__layout expanded = {.shape = {.n = 2, .d = {4, 3}}, .stride = {0, 1}},
               windows = {.shape = {.n = 2, .d = {5, 4}}, .stride = {2, 1}};
    all_refuse(tn__alias(base, &expanded), TN_EINVAL,
               "this tensor has elements at several indices (shape [4, 3], strides [0, 1]); write to the tensor that "
               "it is a view of, or to a contiguous copy");
    all_refuse(tn_set_name(tn__alias(base, &windows), "w"), TN_EINVAL,
               "this tensor (w) has elements at several indices (shape [5, 4], strides [2, 1]); write to the tensor "
               "that it is a view of, or to a contiguous copy");
    /* no element twice: a dim of size 1, no elements, adjacent windows, a diagonal, dims in any order */
    tn__layout fine[] = {
        {.shape = {.n = 2, .d = {1, 3}}, .stride = {0, 1}}, {.shape = {.n = 3, .d = {1, 0, 5}}, .stride = {0, 0, 0}},
        {.shape = {.n = 2, .d = {3, 4}}, .stride = {4, 1}}, {.shape = {.n = 2, .d = {3, 2}}, .stride = {3, 2}},
        {.shape = {.n = 1, .d = {3}}, .stride = {4}},       {.shape = {.n = 3, .d = {2, 2, 3}}, .stride = {1, 6, 2}}};
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        ck_assert_msg(tn_fill(tn__alias(base, &fine[i]), 2) == TN_OK, "layout %d: %s", (int)i, tn_error_message());
}

TEST(writers_stop_while_an_error_stands)
{
    tn_tensor *t = tn_ones(TN_SHAPE(2));
    double     v[2] = {5, 5};
    tn_raise(TN_EIO, "planted");
    ck_assert_int_eq(tn_set(t, 0, 5), TN_EIO);
    ck_assert_int_eq(tn_set_at(t, TN_SHAPE(0), 5), TN_EIO);
    ck_assert_int_eq(tn_set_i64(t, 0, 5), TN_EIO);
    ck_assert_int_eq(tn_fill(t, 5), TN_EIO);
    ck_assert_int_eq(tn_copy_from(t, t), TN_EIO);
    ck_assert_int_eq(tn_copy_in(t, TN_F64, v, sizeof v), TN_EIO);
    ck_assert_ptr_null(tn_data_mut(t));
    ck_assert_str_eq(tn_error_message(), "planted (7 later calls skipped)");
    tn_clear_error();
    ck_assert_uint_eq(version(t), 0);
    ck_assert_double_eq(tn_get(t, 0), 1);
}

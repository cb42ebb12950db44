/* test_npy.c — npy files: NumPy's files are read, and written files equal NumPy's. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"
#include "tests/common/file_bytes.h"

#include "core/core.h"
#include "tests/common/faults.h"
#include "tests/common/layouts.h"
#include <locale.h>

/* ---- valid files ------------------------------------------------------------------------------------------------- */

TEST(headers_as_others_write_them)
{
    static const char *const same[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }                \n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
        "{\"shape\":(2,3,),\"descr\":\"<f4\",\"fortran_order\":False}",
        " {'fortran_order' :False , 'shape': (2L, 3L) ,'descr': '<f4' , } \n\n",
        "{'shape': ( 2 , 3 ), 'fortran_order': False, 'descr': '<f4'}",
        "{'descr': '=f4', 'fortran_order': False, 'shape': (2, 3), }\n",
    };
    for (int major = 1; major <= 3; major++)
        for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
            const bytes *f = npy(major, same[i], 24);
            tn_tensor   *t = read_exact(f->data, f->n);
            ck_assert_msg(t != NULL, "%s: %s", same[i], tn_error_message());
            ck_assert_int_eq(tn_dtype_of(t), TN_F32);
            ck_assert(tn_shape_equal(tn_shape_of(t), TN_SHAPE(2, 3)));
            ck_assert_mem_eq(tn_data(t), f->data + f->n - 24, 24);
        }
}

/* Every type in both byte orders: the bytes 0 1 2 … read as numbers, by separate arithmetic. */
TEST(types_and_orders)
{
    static const struct {
        const char *descr;
        int         size;
        tn_dtype    dt;
    } rows[] = {{"i1", 1, TN_I32}, {"u1", 1, TN_U8},  {"i2", 2, TN_I32}, {"u2", 2, TN_I32}, {"i4", 4, TN_I32},
                {"u4", 4, TN_I64}, {"i8", 8, TN_I64}, {"u8", 8, TN_I64}, {"f4", 4, TN_F32}, {"f8", 8, TN_F64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int big = 0; big < 2; big++) {
            char dict[100];
            snprintf(dict, sizeof dict, "{'descr': '%c%s', 'fortran_order': False, 'shape': (5,)}", "<>"[big],
                     rows[i].descr);
            bytes         *f = (bytes *)(uintptr_t)npy(1, dict, 5 * rows[i].size);
            unsigned char *p = f->data + f->n - 5 * rows[i].size;
            if (*rows[i].descr != 'u' || rows[i].size < 8) /* a negative number, or a large one */
                for (int k = 0; k < rows[i].size; k++) p[k] |= 0xf0;
            tn_tensor *t = read_exact(f->data, f->n);
            ck_assert_msg(t != NULL, "%s: %s", dict, tn_error_message());
            ck_assert_int_eq(tn_dtype_of(t), rows[i].dt);
            for (int e = 0; e < 5; e++) {
                uint64_t v = 0;
                for (int k = 0; k < rows[i].size; k++)
                    v |= (uint64_t)p[e * rows[i].size + k] << 8 * (big ? rows[i].size - 1 - k : k);
                if (*rows[i].descr == 'f') {
                    ck_assert_mem_eq((const char *)tn_data(t) + e * rows[i].size, &v, (size_t)rows[i].size);
                    continue;
                }
                uint64_t top = (uint64_t)1 << (8 * rows[i].size - 1);
                if (*rows[i].descr == 'i' && (v & top)) v |= ~(top | (top - 1)); /* the sign, extended */
                ck_assert_int_eq(tn_get_i64(t, e), (int64_t)v);
            }
        }
}

TEST(u8_beyond_i64)
{
    bytes *f = (bytes *)(uintptr_t)npy(1, "{'descr': '<u8', 'fortran_order': False, 'shape': (2,)}", 16);
    f->data[f->n - 1] = 0x7f;
    tn_tensor *t = read_exact(f->data, f->n);
    ck_assert_int_eq(tn_get_i64(t, 1), 0x7f0e0d0c0b0a0908);
    f->data[f->n - 1] = 0x80;
    ck_assert_ptr_null(read_exact(f->data, f->n));
    ck_assert_int_eq(tn_error(), TN_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "the array: the 64-bit integer at byte 73 is beyond 2^63 - 1"));
    tn_clear_error();
}

/* All 65536 of them, compared with the definition. */
TEST(every_f16)
{
    size_t       n = 65536;
    static bytes f;
    char         dict[100];
    snprintf(dict, sizeof dict, "{'descr': '<f2', 'fortran_order': False, 'shape': (%d,)}", (int)n);
    f = *npy(1, dict, 0);
    unsigned char *all = malloc(f.n + 2 * n);
    memcpy(all, f.data, f.n);
    for (size_t i = 0; i < n; i++) all[f.n + 2 * i] = (unsigned char)i, all[f.n + 2 * i + 1] = (unsigned char)(i >> 8);
    tn_tensor *t = tn_npy_read(all, f.n + 2 * n);
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    ck_assert_int_eq(tn_dtype_of(t), TN_F32);
    const float *v = tn_data(t);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits, e = i >> 10 & 31, m = i & 1023;
        memcpy(&bits, v + i, 4);
        ck_assert_uint_eq(bits >> 31, i >> 15);
        if (e == 31) {
            ck_assert_uint_eq(bits & 0x7fffffffu, 0x7f800000u | m << 13); /* Inf, and NaN with its payload */
            continue;
        }
        double magnitude = e ? (double)(1024 + m) / 1024 : (double)m / 1024;
        for (int k = e ? (int)e : 1; k < 15; k++) magnitude /= 2;
        for (int k = 15; k < (int)e; k++) magnitude *= 2;
        float expected = (float)magnitude;
        if (i >> 15) expected = -expected;
        ck_assert(!memcmp(&expected, v + i, 4));
    }
    free(all);
}

TEST(fortran_order_is_a_transposed_view)
{
    const bytes *f = npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 4)}", 24);
    tn_tensor   *t = read_exact(f->data, f->n);
    ck_assert(tn_shape_equal(tn_shape_of(t), TN_SHAPE(2, 3, 4)));
    ck_assert(tn_shape_equal(tn_strides_of(t), TN_SHAPE(1, 2, 6)));
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) ck_assert_int_eq((int)tn_get_at(t, TN_SHAPE(i, j, k)), i + 2 * j + 6 * k);
    f = npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (3,)}", 3);
    ck_assert_int_eq((int)tn_get(read_exact(f->data, f->n), 2), 2);
    f = npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': ()}", 1);
    ck_assert_int_eq(tn_ndim(read_exact(f->data, f->n)), 0);
    f = npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (0, 5)}", 0);
    ck_assert(tn_shape_equal(tn_shape_of(read_exact(f->data, f->n)), TN_SHAPE(0, 5)));
}

/* ---- written files ----------------------------------------------------------------------------------------------- */

/* Like numpy.save of NumPy 1.24 and later: 128 bytes before the data, room for the first size to grow. */
TEST(written_as_numpy_writes)
{
    static const struct {
        tn_dtype    dt;
        tn_shape    shape;
        const char *dict;
        int         spaces; /* NumPy's: 21 minus the first size's digits, then up to 64 */
    } rows[] = {{TN_F32, {.n = 2, .d = {2, 3}}, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 58},
                {TN_F64, {.n = 0, .d = {0}}, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 62},
                {TN_I64, {.n = 1, .d = {12}}, "{'descr': '<i8', 'fortran_order': False, 'shape': (12,), }", 59},
                {TN_I32, {.n = 1, .d = {0}}, "{'descr': '<i4', 'fortran_order': False, 'shape': (0,), }", 60},
                {TN_U8, {.n = 3, .d = {1, 1, 1}}, "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1), }", 55},
                {TN_BOOL, {.n = 1, .d = {1}}, "{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }", 60}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_tensor  *t = tn_zeros_of(rows[i].dt, rows[i].shape), *f = tn_npy_write(t);
        const char *p = tn_data(f);
        ck_assert_msg(f != NULL, "%s", tn_error_message());
        size_t n = strlen(rows[i].dict), all = (size_t)tn_numel(f),
               data = (size_t)tn_numel(t) * tn_dtype_size(rows[i].dt);
        ck_assert_uint_eq(all, 128 + data);
        ck_assert_mem_eq(p, "\x93NUMPY\x01\x00\x76\x00", 10);
        ck_assert_mem_eq(p + 10, rows[i].dict, n);
        for (size_t k = 10 + n; k < 127; k++) ck_assert_int_eq(p[k], ' ');
        ck_assert_int_eq((int)(127 - 10 - n), rows[i].spaces);
        ck_assert_int_eq(p[127], '\n');
    }
    tn_shape   large = {.n = 8, .d = {1, 1, 1, 1, 1, 1, 1, 1}};
    tn_tensor *f = tn_npy_write(tn_zeros_of(TN_U8, large));
    ck_assert_int_eq(tn_numel(f) % 64, 1);
}

TEST(round_trips)
{
    const char *path = tn_test_file("round.npy");
    for (int dt = 0; dt < TN_DTYPES; dt++)
        for (int layout = 0; layout < TN_LAYOUTS; layout++) {
            if (dt == TN_BF16) continue;
            tn_tensor *t = tn__sample((tn_dtype)dt, layout);
            ck_assert_msg(tn_npy_save(path, t) == TN_OK, "%s", tn_error_message());
            tn_tensor *a = tn_npy_load(path), *memory = tn_npy_write(t);
            ck_assert_msg(tn_same_bits(a, t), "%s, layout %d: %s", tn_dtype_name((tn_dtype)dt), layout,
                          tn_error_message());
            ck_assert(tn_is_contiguous(a));
            ck_assert(tn_same_bits(tn_npy_read(tn_data(memory), (size_t)tn_numel(memory)), t));
            ck_assert(tn_same_bits(tn_file_read(path, 1 << 20), memory));
        }
    ck_assert_int_eq(tn_npy_save(path, tn_zeros_of(TN_BF16, TN_SHAPE(2))), TN_EUNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "npy has no bf16; convert with tn_to(t, TN_F32)"));
    tn_clear_error();
    ck_assert_ptr_null(tn_npy_write(tn_zeros_of(TN_BF16, TN_SHAPE(2))));
    tn_clear_error();
    ck_assert_int_eq(tn_npy_save(path, NULL), TN_EINVAL);
    tn_clear_error();
    ck_assert_ptr_null(tn_npy_write(NULL));
    tn_clear_error();
}

TEST(skipped_while_an_error_stands)
{
    const char *path = tn_test_file("never.npy");
    tn_tensor  *t = tn_ones(TN_SHAPE(2)), *f = tn_npy_write(t);
    tn_raise(TN_EINVAL, "before");
    ck_assert_int_eq(tn_npy_save(path, t), TN_EINVAL);
    ck_assert_ptr_null(tn_npy_load(path));
    ck_assert_ptr_null(tn_npy_write(t));
    ck_assert_ptr_null(tn_npy_read(tn_data(f), (size_t)tn_numel(f)));
    ck_assert_str_eq(tn_error_message(), "before (4 later calls skipped)");
    tn_clear_error();
    ck_assert_ptr_null(tn_npy_load(path));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "never.npy': cannot open: no such file or folder"));
    ck_error_code(TN_EIO);
}

TEST(memory_fails)
{
    const char *path = tn_test_file("memory.npy");
    int         beside = -1;
    tn_faulty_memory_begin();
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int64_t at = 0;; at++) {
            tn_scope   s = tn_scope_begin();
            tn_tensor *t = tn__sample(TN_F64, 1);
            int64_t    before = tn_memory_blocks();
            tn_scope   inner = tn_scope_begin();
            tn_fail_memory(at, for_ever);
            tn_status  saved = tn_npy_save(path, t);
            tn_tensor *written = tn_npy_write(t), *a = tn_npy_load(path);
            if (written) tn_npy_read(tn_data(written), (size_t)tn_numel(written));
            bool failed = tn_error() != TN_OK;
            if (failed) ck_assert_msg(tn_error() == TN_ENOMEM, "%s", tn_error_message());
            ck_assert(failed || (saved == TN_OK && tn_same_bits(a, t)));
            tn_clear_error();
            tn_fail_memory(-1, false);
            tn_scope_end(inner);
            ck_assert_int_eq(tn_memory_blocks(), before);
            ck_assert_int_eq(tn_npy_save(path, t), TN_OK);
            ck_assert(tn_same_bits(tn_npy_load(path), t));
            if (beside < 0) beside = tn_names_beside(path);
            ck_assert_int_eq(tn_names_beside(path), beside);
            tn_scope_end(s);
            if (!failed) {
                ck_assert_int_gt(at, 8);
                break;
            }
        }
    tn_faulty_memory_end();
}

TEST(locale_changes_nothing)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "hi_IN.utf8", "fa_IR.utf8"};
    tn_tensor               *before = tn_npy_write(tn__sample(TN_F32, 8));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!setlocale(LC_ALL, names[i])) continue;
        tn_tensor *now = tn_npy_write(tn__sample(TN_F32, 8));
        bool       same = tn_same_bits(before, now) && tn_npy_read(tn_data(now), (size_t)tn_numel(now));
        tn_test_locale();
        ck_assert(same);
    }
}

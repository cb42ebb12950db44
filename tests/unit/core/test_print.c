/* test_print.c — tn_print compared with PyTorch's texts (golden/print_texts.json), and cases without a PyTorch text. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* open_memstream */
#endif
#include "tests/common/check_main.h"

#include "core/files.h"
#include "core/tensor/print.h"
#include "core/tensor/tensor.h"
#include <locale.h>

static tn_json *texts;
static void     open_texts(void)
{
    texts = tn_json_load(tn_test_data("golden/print_texts.json"));
    ck_assert_msg(texts != NULL, "%s", tn_error_message());
}
static void close_texts(void) { tn_json_free(texts); }
AROUND_TESTS(open_texts, close_texts);

/* The output of tn_print, valid until the next call. */
static const char *printed(const tn_tensor *t)
{
    static char text[20000];
    char       *all = NULL;
    size_t      size = 0;
    FILE       *to = open_memstream(&all, &size);
    ck_assert_ptr_nonnull(to);
    tn_print(to, t);
    ck_assert_int_eq(fclose(to), 0);
    ck_assert_uint_lt(size, sizeof text);
    memcpy(text, all, size + 1);
    free(all);
    return text;
}

static double number(const tn_json *v)
{
    return tn_json_type_of(v) == TN_JSON_STRING ? strtod(tn_json_string(v), NULL) : tn_json_double(v); /* nan, inf */
}

static tn_tensor *tensor_of_case(int i)
{
    const tn_json *row = tn_json_at(texts, i), *dims = tn_json_get(row, "shape"), *values = tn_json_get(row, "values");
    const char    *name = tn_json_string(tn_json_get(row, "dtype"));
    tn_shape       shape = {.n = (int)tn_json_count(dims)};
    tn_dtype       dtype = 0;
    for (int k = 0; k < shape.n; k++) shape.d[k] = tn_json_i64(tn_json_at(dims, k));
    while (strcmp(tn_dtype_name(dtype), name) != 0) dtype++;
    const int64_t n = tn_shape_numel(shape), modulo = tn_json_i64_or(tn_json_get(row, "modulo"), 0);
    double       *v = malloc((size_t)(n + 1) * sizeof *v);
    ck_assert_ptr_nonnull(v);
    for (int64_t k = 0; k < n; k++)
        v[k] = values ? number(tn_json_at(values, k))
                      : number(tn_json_get(row, "first")) +
                            number(tn_json_get(row, "step")) * (double)(modulo ? k % modulo : k);
    tn_tensor *t = tn_empty_of(dtype, shape);
    ck_assert_int_eq(tn_copy_in(t, TN_F64, v, (size_t)n * sizeof *v), TN_OK);
    t->leaf = tn_json_bool(tn_json_get(row, "grad"));
    free(v);
    return t;
}
static const char *text_of_case(int i) { return tn_json_string(tn_json_get(tn_json_at(texts, i), "text")); }

TEST(looks_like_pytorch)
{
    for (int i = 0; i < (int)tn_json_count(texts); i++) ck_assert_str_eq(printed(tensor_of_case(i)), text_of_case(i));
}

/* With strides: the tensor is laid out with its dims in reverse order, with gaps. */
static void without_strides(int i)
{
    tn_tensor *t = tensor_of_case(i);
    tn_shape   s = tn_shape_of(t), wide = {.n = s.n + 1};
    if (tn_numel(t) == 0) return;
    tn__layout l = {.shape = s, .offset = 1};
    int64_t    step = 3;
    for (int k = 0; k < s.n; k++) l.stride[k] = step, step *= s.d[k];
    wide.n = 1, wide.d[0] = step + 3;
    tn_tensor *base = tn_zeros_of(tn_dtype_of(t), wide), *view = tn__alias(base, &l);
    ck_assert_int_eq(tn_copy_from(view, t), TN_OK);
    view->leaf = t->leaf;
    ck_assert_str_eq(printed(view), text_of_case(i));
}
TEST(strides_do_not_show)
{
    for (int i = 0; i < (int)tn_json_count(texts); i++) without_strides(i);
}

TEST(integers_are_exact)
{
    int64_t v[] = {INT64_MAX, INT64_MIN, 9007199254740993};
    ck_assert_str_eq(printed(tn_from_data(TN_I64, TN_SHAPE(3), v)),
                     "tensor([ 9223372036854775807, -9223372036854775808,     9007199254740993])\n");
}

TEST(a_nan_has_no_sign)
{
    ck_assert_str_eq(printed(tn_full(TN_SHAPE(2), -NAN)), "tensor([nan, nan])\n");
    ck_assert_str_eq(printed(tn_full(TN_SHAPE(2), copysign(NAN, -1))), "tensor([nan, nan])\n");
}

TEST(null_is_shown)
{
    ck_assert_str_eq(printed(NULL), "tensor(NULL)\n");
    tn_raise(TN_EINVAL, "matmul: input 1 is NULL"); /* the reason for the NULL */
    ck_assert_str_eq(printed(NULL), "tensor(NULL): matmul: input 1 is NULL\n");
    tn_clear_error();
    tn_print(NULL, tn_ones(TN_SHAPE(2)));
    tn_print(NULL, NULL);
    ck_assert_int_eq(tn_error(), TN_OK);
}

TEST(prints_while_an_error_stands)
{
    tn_tensor *t = tn_full(TN_SHAPE(2), 0.5);
    tn_raise(TN_EINVAL, "planted");
    ck_assert_str_eq(printed(t), "tensor([0.5000, 0.5000])\n");
    ck_assert_str_eq(tn_error_message(), "planted");
    tn_clear_error();
}

TEST(printing_is_no_write)
{
    tn_tensor     *t = tn_full(TN_SHAPE(3), 0.5);
    const uint32_t version = t->storage->version;
    printed(t);
    ck_assert_uint_eq(t->storage->version, version);
}

/* The decimal point of a locale may be a comma, or several bytes. */
TEST(no_locale_shows)
{
    static const char *const rows[][2] = {{"0,5000", "0.5000"},
                                          {"-12,2500", "-12.2500"},
                                          {"1.0000", "1.0000"},
                                          {"-1\xd9\xab"
                                           "5000e-05",
                                           "-1.5000e-05"},
                                          {"7", "7"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", rows[i][0]);
        tn__c_decimal_point(text);
        ck_assert_str_eq(text, rows[i][1]);
    }
    static const char *const comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "pl_PL.UTF-8"};
    for (size_t i = 0; i < sizeof comma / sizeof *comma; i++) {
        if (!setlocale(LC_ALL, comma[i])) continue; /* not installed here */
        ck_assert_str_eq(printed(tn_full(TN_SHAPE(2), 0.5)), "tensor([0.5000, 0.5000])\n");
        tn_test_locale();
    }
}

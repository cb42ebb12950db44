/* test_misuse.c — wrong calls of every public function of core.h and autograd.h: the code and text of the error,
 * nothing changed by the call, and nothing done while another error is set. Ops are called from the registry and by
 * their names in ops.h. */
#include "autograd/autograd.h"
#include "core/tensor/tensor.h"
#include "tests/common/check_main.h"
#include "tests/common/samples.h"

#include <limits.h>

/* ---- the state that must not change ------------------------------------------------------------------------------ */

static tn_tensor *f, *i3, *w, *taped, *wide, *none, *flags, *small, *one; /* see begin() */
static tn_tensor *nil, *many[17];

enum { WATCHED = 9 };
typedef struct {
    uint32_t version[WATCHED];
    int      refs[WATCHED];
    double   sum[WATCHED];
    void    *of[WATCHED][3];
    size_t   live, limit, top;
    int64_t  tensors;
    uint64_t seed, position;
    int64_t  threads, depth, grad;
} state;

static state look(void)
{
    tn_tensor *const all[WATCHED] = {f, i3, w, taped, wide, none, flags, small, one};
    state            s;
    memset(&s, 0, sizeof s);
    for (int i = 0; i < WATCHED; i++) {
        s.version[i] = all[i]->storage->version, s.refs[i] = all[i]->object.refs;
        for (int64_t k = 0; k < tn_numel(all[i]); k++) s.sum[i] += (double)(k + 1) * tn_get(all[i], k);
        s.of[i][0] = all[i]->node, s.of[i][1] = all[i]->grad, s.of[i][2] = all[i]->hooks;
    }
    const tn_memory m = tn_memory_now();
    s.live = m.live, s.limit = m.limit, s.tensors = m.tensors, s.top = tn__self.top;
    s.seed = tn_current_generator()->seed, s.position = tn_current_generator()->position;
    s.threads = tn_threads(), s.depth = tn__self.path_depth, s.grad = tn_grad_enabled();
    return s;
}

static void begin(void)
{
    f = tn_set_name(tn_ones(TN_SHAPE(2, 3)), "f");
    i3 = tn_arange(3);
    w = tn_requires_grad(tn_set_name(tn_uniform(TN_SHAPE(2, 3), 0, 1), "w"));
    taped = tn_mul_scalar(w, 2);
    wide = tn_expand(tn_ones(TN_SHAPE(1, 3)), TN_SHAPE(4, 3));
    none = tn_zeros(TN_SHAPE(0, 3));
    flags = tn_ones_of(TN_BOOL, TN_SHAPE(2, 3));
    small = tn_ones_of(TN_U8, TN_SHAPE(2));
    one = tn_scalar(1);
    for (int i = 0; i < 17; i++) many[i] = f;
}
AROUND_TESTS(begin, NULL);

static void same(const char *call, const char *when, const state *before)
{
    const state after = look();
    ck_assert_msg(!memcmp(before, &after, sizeof after), "%s%s has changed something", call, when);
}

/* Checks that the call raises this text (if it ends in …, only its start is compared), and that it does nothing while
 * an error is set. */
static void check(const char *call, tn_status code, const char *text, const state *before)
{
    const char  *dots = strstr(text, "…");
    const size_t n = dots && !dots[strlen("…")] ? (size_t)(dots - text) : strlen(text) + 1;
    ck_assert_msg(tn_error() == code && !strncmp(tn_error_message(), text, n), "%s: %s: '%s', not %s: '%s'", call,
                  tn_status_name(tn_error()), tn_error_message(), tn_status_name(code), text);
    tn_clear_error();
    same(call, "", before);
}
static void check_again(const char *call, const state *before)
{
    ck_assert_msg(tn_error() == TN_EIO && !strncmp(tn_error_message(), "mine", 4), "%s: '%s'", call,
                  tn_error_message());
    tn_clear_error();
    same(call, " while an error was set", before);
}
#define BAD(call, code, text)                     \
    do {                                          \
        const state    before_ = look();          \
        const tn_scope scope_ = tn_scope_begin(); \
        (void)(call);                             \
        tn_scope_end(scope_);                     \
        check(#call, code, text, &before_);       \
        tn_raise(TN_EIO, "mine");                 \
        (void)(call);                             \
        tn_scope_end(scope_);                     \
        check_again(#call, &before_);             \
    } while (0)
/* The call is harmless, and the condition on its result holds. */
#define FINE(condition)                                                               \
    do {                                                                              \
        const state before_ = look();                                                 \
        ck_assert_msg(condition, "%s", #condition);                                   \
        ck_assert_msg(tn_error() == TN_OK, "%s: %s", #condition, tn_error_message()); \
        same(#condition, "", &before_);                                               \
    } while (0)

/* ---- arguments of the calls -------------------------------------------------------------------------------------- */

static double       numbers[64];
static char         text[192];
static tn_generator g;
static tn_tensor   *out;
static void        *take(void *user, size_t bytes) { return (void)user, (void)bytes, NULL; }
static void         body(int64_t from, int64_t to, void *user) { (void)from, (void)to, (void)user; }
static tn_tensor   *hook(tn_tensor *grad, void *user) { return (void)user, grad; }
static tn_tensor   *segment(tn_tensor *const *in, int n, void *user) { return (void)in, (void)n, (void)user, NULL; }
static tn_tensor   *integers(tn_tensor *const *in, int n, void *user)
{
    return (void)n, (void)user, tn_to(in[0], TN_I64);
}

TEST(creation)
{
    BAD(tn_empty(TN_SHAPE(2, -1)), TN_ESHAPE, "tn_empty: [2, -1] has a negative size in dim 1");
    BAD(tn_empty((tn_shape){.n = 9}), TN_ESHAPE, "tn_empty: a shape has 0 to 8 dims, got 9");
    BAD(tn_empty((tn_shape){.n = -1}), TN_ESHAPE, "tn_empty: a shape has 0 to 8 dims, got -1");
    BAD(tn_zeros(TN_SHAPE(-2)), TN_ESHAPE, "tn_zeros: [-2] has a negative size in dim 0");
    BAD(tn_zeros(TN_SHAPE(1LL << 31, 1LL << 31)), TN_ESHAPE,
        "tn_zeros: [2147483648, 2147483648] is too large: its bytes do not fit in 63 bits");
    BAD(tn_zeros(TN_SHAPE(0, 1LL << 62, 1LL << 62)), TN_ESHAPE,
        "tn_zeros: [0, 4611686018427387904, 4611686018427387904] is too large: its bytes do not fit in 63 bits");
    BAD(tn_zeros((tn_shape){.n = 100}), TN_ESHAPE, "tn_zeros: a shape has 0 to 8 dims, got 100");
    BAD(tn_ones(TN_SHAPE(-1)), TN_ESHAPE, "tn_ones: [-1] has a negative size in dim 0");
    BAD(tn_ones(TN_SHAPE(INT64_MAX)), TN_ESHAPE,
        "tn_ones: [9223372036854775807] is too large: its bytes do not fit in 63 bits");
    BAD(tn_ones(TN_SHAPE(INT64_MIN)), TN_ESHAPE, "tn_ones: [-9223372036854775808] has a negative size in dim 0");
    BAD(tn_full(TN_SHAPE(-1), 0), TN_ESHAPE, "tn_full: [-1] has a negative size in dim 0");
    BAD(tn_full(TN_SHAPE(2), 1e300), TN_EINVAL, "tn_full: value 1e+300 is too large for f32");
    BAD(tn_full((tn_shape){.n = 9}, 0), TN_ESHAPE, "tn_full: a shape has 0 to 8 dims, got 9");
    BAD(tn_empty_of((tn_dtype)7, TN_SHAPE(2)), TN_EDTYPE, "tn_empty_of: 7 is not a dtype");
    BAD(tn_empty_of((tn_dtype)-1, TN_SCALAR), TN_EDTYPE, "tn_empty_of: -1 is not a dtype");
    BAD(tn_empty_of(TN_F64, TN_SHAPE(1LL << 60)), TN_ESHAPE,
        "tn_empty_of: [1152921504606846976] is too large: its bytes do not fit in 63 bits");
    BAD(tn_zeros_of((tn_dtype)7, TN_SHAPE(2)), TN_EDTYPE, "tn_zeros_of: 7 is not a dtype");
    BAD(tn_zeros_of(TN_I32, TN_SHAPE(-1)), TN_ESHAPE, "tn_zeros_of: [-1] has a negative size in dim 0");
    BAD(tn_zeros_of(TN_F64, TN_SHAPE(1LL << 60)), TN_ESHAPE,
        "tn_zeros_of: [1152921504606846976] is too large: its bytes do not fit in 63 bits");
    BAD(tn_ones_of((tn_dtype)99, TN_SHAPE(2)), TN_EDTYPE, "tn_ones_of: 99 is not a dtype");
    BAD(tn_ones_of(TN_BOOL, TN_SHAPE(1LL << 62, 2)), TN_ESHAPE,
        "tn_ones_of: [4611686018427387904, 2] is too large: its bytes do not fit in 63 bits");
    BAD(tn_ones_of(TN_U8, (tn_shape){.n = 12}), TN_ESHAPE, "tn_ones_of: a shape has 0 to 8 dims, got 12");
    BAD(tn_full_of(TN_U8, TN_SHAPE(2), 256), TN_EINVAL, "tn_full_of: value 256 does not fit u8, which holds 0 to 255");
    BAD(tn_full_of(TN_I32, TN_SHAPE(2), (double)NAN), TN_EINVAL,
        "tn_full_of: value nan does not fit i32, which holds -2147483648 to 2147483647");
    BAD(tn_full_of(TN_BF16, TN_SHAPE(2), 1e39), TN_EINVAL, "tn_full_of: value 1e+39 is too large for bf16");
    BAD(tn_full_of((tn_dtype)7, TN_SHAPE(2), 1), TN_EDTYPE, "tn_full_of: 7 is not a dtype");
    BAD(tn_scalar_of(TN_U8, -1), TN_EINVAL, "tn_scalar_of: value -1 does not fit u8, which holds 0 to 255");
    BAD(tn_scalar_of(TN_I64, 1e19), TN_EINVAL,
        "tn_scalar_of: value 1e+19 does not fit i64, which holds -2^63 to 2^63 - 1");
    BAD(tn_scalar_of((tn_dtype)7, 1), TN_EDTYPE, "tn_scalar_of: 7 is not a dtype");
    BAD(tn_empty_like(NULL), TN_EINVAL, "tn_empty_like: t is NULL");
    BAD(tn_zeros_like(NULL), TN_EINVAL, "tn_zeros_like: t is NULL");
    BAD(tn_ones_like(NULL), TN_EINVAL, "tn_ones_like: t is NULL");
    BAD(tn_full_like(NULL, 1), TN_EINVAL, "tn_full_like: t is NULL");
    BAD(tn_full_like(small, 300), TN_EINVAL, "tn_full_like: value 300 does not fit u8, which holds 0 to 255");
    BAD(tn_full_like(i3, 1e30), TN_EINVAL, "tn_full_like: value 1e+30 does not fit i64, which holds -2^63 to 2^63 - 1");
    BAD(tn_arange(-1), TN_EINVAL, "tn_arange: n is -1, but must not be negative");
    BAD(tn_arange(INT64_MIN), TN_EINVAL, "tn_arange: n is -9223372036854775808, but must not be negative");
    BAD(tn_arange(INT64_MAX), TN_ESHAPE,
        "tn_arange: [9223372036854775807] is too large: its bytes do not fit in 63 bits");
    BAD(tn_arange_of(TN_F32, 0, 1, 0), TN_EINVAL, "tn_arange_of: step is 0");
    BAD(tn_arange_of(TN_F32, 0, 1, -1), TN_EINVAL, "tn_arange_of: from 0 to 1 by steps of -1 never reaches the end");
    BAD(tn_arange_of(TN_F32, 0, (double)INFINITY, 1), TN_EINVAL, "tn_arange_of: end is inf, but must be finite");
    BAD(tn_arange_of(TN_I64, 0, 5, 0.5), TN_EINVAL, "tn_arange_of: step is 0.5, but must be an integer for i64");
    BAD(tn_arange_of(TN_U8, 0, 1000, 1), TN_EINVAL,
        "tn_arange_of: the last element 999 does not fit u8, which holds 0 to 255");
    BAD(tn_arange_of(TN_BOOL, 0, 1, 1), TN_EDTYPE, "tn_arange_of: dtype bool cannot count");
    BAD(tn_linspace(0, 1, -1), TN_EINVAL, "tn_linspace: steps is -1, but must not be negative");
    BAD(tn_linspace(0, (double)NAN, 3), TN_EINVAL, "tn_linspace: end is nan, but must be finite");
    BAD(tn_linspace(0, 1e300, 3), TN_EINVAL, "tn_linspace: end 1e+300 is too large for f32");
    BAD(tn_linspace_of(TN_BOOL, 0, 1, 2), TN_EDTYPE, "tn_linspace_of: dtype bool cannot count");
    BAD(tn_linspace_of((tn_dtype)7, 0, 1, 2), TN_EDTYPE, "tn_linspace_of: 7 is not a dtype");
    BAD(tn_linspace_of(TN_U8, 0, 256, 2), TN_EINVAL, "tn_linspace_of: end 256 does not fit u8, which holds 0 to 255");
    BAD(tn_eye(-1, 2), TN_ESHAPE, "tn_eye: [-1, 2] has a negative size in dim 0");
    BAD(tn_eye(2, -1), TN_ESHAPE, "tn_eye: [2, -1] has a negative size in dim 1");
    BAD(tn_eye(1LL << 40, 1LL << 40), TN_ESHAPE,
        "tn_eye: [1099511627776, 1099511627776] is too large: its bytes do not fit in 63 bits");
    BAD(tn_eye_of((tn_dtype)7, 2, 2), TN_EDTYPE, "tn_eye_of: 7 is not a dtype");
    BAD(tn_eye_of(TN_I64, -1, -1), TN_ESHAPE, "tn_eye_of: [-1, -1] has a negative size in dim 0");
    BAD(tn_eye_of(TN_I64, INT64_MAX, 1), TN_ESHAPE,
        "tn_eye_of: [9223372036854775807, 1] is too large: its bytes do not fit in 63 bits");
    BAD(tn_from_data(TN_F32, TN_SHAPE(2), NULL), TN_EINVAL, "tn_from_data: data is NULL, but the shape has 2 elements");
    BAD(tn_from_data((tn_dtype)7, TN_SHAPE(2), "12345678"), TN_EDTYPE, "tn_from_data: 7 is not a dtype");
    BAD(tn_from_data(TN_F32, TN_SHAPE(-2), "12345678"), TN_ESHAPE, "tn_from_data: [-2] has a negative size in dim 0");
    BAD(tn_borrow(TN_F32, TN_SHAPE(2), NULL, NULL, NULL), TN_EINVAL,
        "tn_borrow: data is NULL, but the shape has 2 elements");
    BAD(tn_borrow(TN_I64, TN_SHAPE(1), (char *)numbers + 1, NULL, NULL), TN_EINVAL,
        "tn_borrow: data is not aligned for i64; copy it with tn_from_data");
    BAD(tn_borrow((tn_dtype)7, TN_SHAPE(1), numbers, NULL, NULL), TN_EDTYPE, "tn_borrow: 7 is not a dtype");
    BAD(tn_borrow(TN_F64, TN_SHAPE(-1), numbers, NULL, NULL), TN_ESHAPE,
        "tn_borrow: [-1] has a negative size in dim 0");
}

TEST(reading)
{
    FINE(tn_dtype_of(NULL) == TN_F32 && tn_ndim(NULL) == 0 && tn_numel(NULL) == 0 && tn_shape_of(NULL).n == 0);
    FINE(tn_strides_of(NULL).n == 0 && !tn_is_contiguous(NULL) && !tn_shares_memory(NULL, f) &&
         !tn_shares_memory(f, NULL));
    FINE(isnan(tn_item(NULL)) && isnan(tn_get(NULL, 0)) && isnan(tn_get_at(NULL, TN_SCALAR)) &&
         tn_get_i64(NULL, 0) == 0);
    FINE(tn_data(NULL) == NULL && tn_size(NULL, 0) == -1 && !strcmp(tn_name_of(NULL), "") &&
         !strcmp(tn_name_of(i3), ""));
    FINE(tn_set_name(NULL, "x") == NULL && tn_keep(NULL) == NULL && (tn_drop(NULL), true));
    FINE(!strcmp(tn_dtype_name((tn_dtype)7), "unknown dtype") && tn_dtype_size((tn_dtype)7) == 0 &&
         !tn_dtype_is_float((tn_dtype)-1));
    FINE(tn_shape_numel(TN_SHAPE(1LL << 62, 4)) == -1 && tn_shape_numel((tn_shape){.n = -5}) == 1 &&
         tn_shape_numel((tn_shape){.n = 100}) == 0);
    FINE(!tn_shape_equal((tn_shape){.n = 100}, TN_SHAPE(1)) &&
         tn_shape_equal((tn_shape){.n = 100}, (tn_shape){.n = 100}));
    FINE(!strcmp(tn_shape_text((tn_shape){.n = -1}, text, sizeof text), "[]") &&
         !strcmp(tn_shape_text(TN_SHAPE(12, 34), text, 5), "[12,"));
    FINE(tn_shape_text(TN_SHAPE(1), NULL, 0) == NULL && !strcmp(tn_shape_text(TN_SHAPE(7), text, 1), ""));
    FINE(!strcmp(tn_status_name((tn_status)99), "unknown status") &&
         !strcmp(tn_status_name((tn_status)-1), "unknown status"));
    BAD(tn_size(f, 2), TN_EINDEX, "tn_size: dim 2 is out of range for a 2-d tensor");
    BAD(tn_size(f, -3), TN_EINDEX, "tn_size: dim -3 is out of range for a 2-d tensor");
    BAD(tn_size(one, 0), TN_EINDEX, "tn_size: dim 0 of a 0-d tensor, which has none");
    BAD(tn_item(f), TN_EINVAL,
        "tn_item: shape [2, 3] has 6 elements, but must have exactly one; tn_get reads any element");
    BAD(tn_item(none), TN_EINVAL,
        "tn_item: shape [0, 3] has 0 elements, but must have exactly one; tn_get reads any element");
    BAD(tn_item(wide), TN_EINVAL,
        "tn_item: shape [4, 3] has 12 elements, but must have exactly one; tn_get reads any element");
    BAD(tn_get(f, 6), TN_EINDEX, "tn_get: position 6 is out of range for shape [2, 3], which has 6 elements");
    BAD(tn_get(f, -1), TN_EINDEX, "tn_get: position -1 is out of range for shape [2, 3], which has 6 elements");
    BAD(tn_get(none, 0), TN_EINDEX, "tn_get: position 0 is out of range for shape [0, 3], which has 0 elements");
    BAD(tn_get_at(f, TN_SHAPE(1)), TN_EINDEX, "tn_get_at: an index of 1 entries for a 2-d tensor of shape [2, 3]");
    BAD(tn_get_at(f, TN_SHAPE(2, 0)), TN_EINDEX, "tn_get_at: index [2, 0] is out of range for shape [2, 3] in dim 0");
    BAD(tn_get_at(f, TN_SHAPE(0, -4)), TN_EINDEX, "tn_get_at: index [0, -4] is out of range for shape [2, 3] in dim 1");
    BAD(tn_get_at(f, (tn_shape){.n = 100}), TN_EINDEX,
        "tn_get_at: an index of 100 entries for a 2-d tensor of shape [2, 3]");
    BAD(tn_get_i64(i3, 3), TN_EINDEX, "tn_get_i64: position 3 is out of range for shape [3], which has 3 elements");
    BAD(tn_get_i64(i3, INT64_MIN), TN_EINDEX,
        "tn_get_i64: position -9223372036854775808 is out of range for shape [3], which has 3 elements");
    BAD(tn_get_i64(none, 0), TN_EINDEX,
        "tn_get_i64: position 0 is out of range for shape [0, 3], which has 0 elements");
    BAD(!tn_copy_out(NULL, TN_F32, numbers, 4), TN_EINVAL, "tn_copy_out: t is NULL");
    BAD(!tn_copy_out(f, TN_F32, numbers, 23), TN_EINVAL,
        "tn_copy_out: shape [2, 3] as f32 takes 24 bytes, but bytes is 23");
    BAD(!tn_copy_out(f, TN_F32, NULL, 24), TN_EINVAL, "tn_copy_out: data is NULL");
    BAD(!tn_copy_out(f, (tn_dtype)7, numbers, 24), TN_EDTYPE, "tn_copy_out: 7 is not a dtype");
}

TEST(writing)
{
    BAD(tn_data_mut(NULL), TN_EINVAL, "tn_data_mut: t is NULL");
    BAD(tn_data_mut(w), TN_ESTATE,
        "tn_data_mut: this tensor (w) requires grad; change it inside tn_no_grad_begin() and tn_scope_end()");
    BAD(tn_data_mut(taped), TN_ESTATE,
        "tn_data_mut: this tensor is the result of a recorded op, and the tape would miss the change; use tn_copy_, or "
        "change it inside tn_no_grad_begin() and tn_scope_end()");
    BAD(tn_data_mut(wide), TN_EINVAL,
        "tn_data_mut: this tensor has elements at several indices (shape [4, 3], strides [0, 1]); write to the "
        "tensor that it is a view of, or to a contiguous copy");
    BAD(tn_set(NULL, 0, 1), TN_EINVAL, "tn_set: t is NULL");
    BAD(tn_set(f, 6, 1), TN_EINDEX, "tn_set: position 6 is out of range for shape [2, 3], which has 6 elements");
    BAD(tn_set(w, 0, 1), TN_ESTATE,
        "tn_set: this tensor (w) requires grad; change it inside tn_no_grad_begin() and tn_scope_end()");
    BAD(tn_set(small, 0, -1), TN_EINVAL, "tn_set: value -1 does not fit u8, which holds 0 to 255");
    BAD(tn_set(wide, 0, 1), TN_EINVAL,
        "tn_set: this tensor has elements at several indices (shape [4, 3], strides [0, 1]); write to the tensor "
        "that it is a view of, or to a contiguous copy");
    BAD(tn_set_at(NULL, TN_SCALAR, 1), TN_EINVAL, "tn_set_at: t is NULL");
    BAD(tn_set_at(f, TN_SHAPE(0), 1), TN_EINDEX, "tn_set_at: an index of 1 entries for a 2-d tensor of shape [2, 3]");
    BAD(tn_set_at(f, TN_SHAPE(0, 3), 1), TN_EINDEX,
        "tn_set_at: index [0, 3] is out of range for shape [2, 3] in dim 1");
    BAD(tn_set_at(taped, TN_SHAPE(0, 0), 1), TN_ESTATE,
        "tn_set_at: this tensor is the result of a recorded op, and the tape would miss the change; use tn_copy_, or "
        "change it inside tn_no_grad_begin() and tn_scope_end()");
    BAD(tn_set_i64(NULL, 0, 1), TN_EINVAL, "tn_set_i64: t is NULL");
    BAD(tn_set_i64(i3, -1, 1), TN_EINDEX,
        "tn_set_i64: position -1 is out of range for shape [3], which has 3 elements");
    BAD(tn_set_i64(small, 0, 256), TN_EINVAL, "tn_set_i64: value 256 does not fit u8, which holds 0 to 255");
    BAD(tn_set_i64(w, 0, 1), TN_ESTATE,
        "tn_set_i64: this tensor (w) requires grad; change it inside tn_no_grad_begin() and tn_scope_end()");
    BAD(tn_copy_in(NULL, TN_F32, numbers, 24), TN_EINVAL, "tn_copy_in: t is NULL");
    BAD(tn_copy_in(f, TN_F32, numbers, 25), TN_EINVAL,
        "tn_copy_in: shape [2, 3] as f32 takes 24 bytes, but bytes is 25");
    BAD(tn_copy_in(f, TN_F32, NULL, 24), TN_EINVAL, "tn_copy_in: data is NULL");
    BAD(tn_copy_in(f, (tn_dtype)7, numbers, 24), TN_EDTYPE, "tn_copy_in: 7 is not a dtype");
    BAD(tn_copy_in(wide, TN_F32, numbers, 48), TN_EINVAL,
        "tn_copy_in: this tensor has elements at several indices (shape [4, 3], strides [0, 1]); write to the "
        "tensor that it is a view of, or to a contiguous copy");
    BAD(tn_copy_from(NULL, f), TN_EINVAL, "tn_copy_from: t is NULL");
    BAD(tn_copy_from(f, NULL), TN_EINVAL, "tn_copy_from: src is NULL");
    BAD(tn_copy_from(f, small), TN_ESHAPE, "tn_copy_from: src of shape [2] does not broadcast to t of shape [2, 3]");
    BAD(tn_copy_from(w, f), TN_ESTATE,
        "tn_copy_from: this tensor (w) requires grad; change it inside tn_no_grad_begin() and tn_scope_end()");
    BAD(tn_copy_from(wide, f), TN_EINVAL,
        "tn_copy_from: this tensor has elements at several indices (shape [4, 3], strides [0, 1]); write to the "
        "tensor that it is a view of, or to a contiguous copy");
    BAD(tn_fill(NULL, 0), TN_EINVAL, "tn_fill: t is NULL");
    BAD(tn_fill(small, 256), TN_EINVAL, "tn_fill: value 256 does not fit u8, which holds 0 to 255");
    BAD(tn_fill(f, 1e39), TN_EINVAL, "tn_fill: value 1e+39 is too large for f32");
    BAD(tn_fill(taped, 0), TN_ESTATE,
        "tn_fill: this tensor is the result of a recorded op, and the tape would miss the change; use tn_copy_, or "
        "change it inside tn_no_grad_begin() and tn_scope_end()");
    BAD(tn_fill(w, 0), TN_ESTATE,
        "tn_fill: this tensor (w) requires grad; change it inside tn_no_grad_begin() and tn_scope_end()");
}

TEST(random_numbers)
{
    FINE(tn_random_below(&g, 0) == 0 && tn_random_below(&g, -5) == 0);
    BAD(tn_uniform(TN_SHAPE(-1), 0, 1), TN_ESHAPE, "tn_uniform: [-1] has a negative size in dim 0");
    BAD(tn_uniform(TN_SHAPE(2), 1, 0), TN_EINVAL, "tn_uniform: low 1 is above high 0");
    BAD(tn_uniform(TN_SHAPE(2), 0, (double)NAN), TN_EINVAL, "tn_uniform: high is nan, but must be finite");
    BAD(tn_uniform_of(TN_I64, TN_SHAPE(2), 0, 1), TN_EDTYPE,
        "tn_uniform_of: the result must be f32, f64 or bf16, not i64; for integers use tn_randint");
    BAD(tn_uniform_of((tn_dtype)7, TN_SHAPE(2), 0, 1), TN_EDTYPE,
        "tn_uniform_of: the result must be f32, f64 or bf16, not unknown dtype; for integers use tn_randint");
    BAD(tn_uniform_of(TN_BF16, TN_SHAPE(2), 0, 1e39), TN_EINVAL, "tn_uniform_of: high 1e+39 is too large for bf16");
    BAD(tn_normal(TN_SHAPE(-1), 0, 1), TN_ESHAPE, "tn_normal: [-1] has a negative size in dim 0");
    BAD(tn_normal(TN_SHAPE(2), 0, -1), TN_EINVAL, "tn_normal: std is -1, but must not be negative");
    BAD(tn_normal(TN_SHAPE(2), (double)INFINITY, 1), TN_EINVAL, "tn_normal: mean is inf, but must be finite");
    BAD(tn_normal_of(TN_BOOL, TN_SHAPE(2), 0, 1), TN_EDTYPE,
        "tn_normal_of: the result must be f32, f64 or bf16, not bool; for integers use tn_randint");
    BAD(tn_normal_of(TN_F64, (tn_shape){.n = 9}, 0, 1), TN_ESHAPE, "tn_normal_of: a shape has 0 to 8 dims, got 9");
    BAD(tn_normal_of(TN_F64, TN_SHAPE(2), 0, (double)NAN), TN_EINVAL, "tn_normal_of: std is nan, but must be finite");
    BAD(tn_randint(TN_SHAPE(-1), 0, 1), TN_ESHAPE, "tn_randint: [-1] has a negative size in dim 0");
    BAD(tn_randint(TN_SHAPE(2), 1, 1), TN_EINVAL, "tn_randint: low 1 must be less than high 1, which is excluded");
    BAD(tn_randint(TN_SHAPE(2), 1, INT64_MIN), TN_EINVAL,
        "tn_randint: low 1 must be less than high -9223372036854775808, which is excluded");
    BAD(tn_bernoulli(TN_SHAPE(2), 1.5), TN_EINVAL, "tn_bernoulli: p is 1.5, but must be from 0 to 1");
    BAD(tn_bernoulli(TN_SHAPE(2), (double)NAN), TN_EINVAL, "tn_bernoulli: p is nan, but must be from 0 to 1");
    BAD(tn_bernoulli(TN_SHAPE(-1), 0.5), TN_ESHAPE, "tn_bernoulli: [-1] has a negative size in dim 0");
    BAD(tn_bernoulli_of((tn_dtype)7, TN_SHAPE(2), 0.5), TN_EDTYPE, "tn_bernoulli_of: 7 is not a dtype");
    BAD(tn_bernoulli_of(TN_U8, TN_SHAPE(2), -0.1), TN_EINVAL, "tn_bernoulli_of: p is -0.1, but must be from 0 to 1");
    BAD(tn_bernoulli_of(TN_U8, TN_SHAPE(-2), 0.1), TN_ESHAPE, "tn_bernoulli_of: [-2] has a negative size in dim 0");
    BAD(tn_permutation(-1), TN_EINVAL, "tn_permutation: n is -1, but must not be negative");
    BAD(tn_permutation(INT64_MIN), TN_EINVAL, "tn_permutation: n is -9223372036854775808, but must not be negative");
    BAD(tn_permutation(INT64_MAX), TN_ESHAPE,
        "tn_permutation: [9223372036854775807] is too large: its bytes do not fit in 63 bits");
}

TEST(the_rest_of_core)
{
    FINE((tn_error_push(NULL), tn_error_pop(NULL), true));
    FINE(tn_raise(TN_OK, "nothing") == TN_OK);
    FINE((tn_path_pop(), tn_path_pop(), tn_path_push(NULL), tn_path_pop(), true));
    FINE((tn_scope_end((tn_scope){.mark = SIZE_MAX, .path = INT_MAX}), true));
    FINE((tn_print(NULL, f), tn_print(NULL, NULL), true));
    FINE(tn_scope_return(tn_scope_begin(), NULL) == NULL &&
         tn_scope_return((tn_scope){.mark = SIZE_MAX, .path = INT_MAX}, f) == f);
    FINE(tn_use_generator(tn_use_generator(NULL)) == tn_current_generator());
    BAD(tn_raise(TN_EINVAL, NULL), TN_EINVAL, "(no text)");
    BAD(tn_set_allocator(&(tn_allocator){NULL, NULL, NULL}), TN_EINVAL,
        "tn_set_allocator: alloc and free must both be set");
    BAD(tn_set_allocator(&(tn_allocator){.alloc = take}), TN_EINVAL,
        "tn_set_allocator: alloc and free must both be set");
    BAD(tn_set_allocator(NULL), TN_ESTATE, "tn_set_allocator: …");
    BAD((tn_set_threads(-1), 0), TN_EINVAL, "tn_set_threads: n is -1, but must be 1 to 512, or 0 for the default");
    BAD((tn_set_threads(513), 0), TN_EINVAL, "tn_set_threads: n is 513, but must be 1 to 512, or 0 for the default");
    BAD((tn_set_threads(INT_MIN), 0), TN_EINVAL,
        "tn_set_threads: n is -2147483648, but must be 1 to 512, or 0 for the default");
    BAD((tn_parallel_for(1, 1, NULL, NULL), 0), TN_EINVAL, "tn_parallel_for: body is NULL");
    BAD((tn_parallel_for(-1, 1, body, NULL), 0), TN_EINVAL, "tn_parallel_for: n is -1, but must not be negative");
    BAD((tn_parallel_for(1, 0, body, NULL), 0), TN_EINVAL, "tn_parallel_for: grain is 0, but must be at least 1");
}

TEST(the_tape)
{
    FINE(!tn_needs_grad(NULL) && tn_grad(NULL) == NULL && tn_grad(f) == NULL &&
         (tn_zero_grad(NULL), tn_zero_grad(f), true));
    FINE(tn_op_at(-1) == NULL && tn_op_at(tn_op_count()) == NULL);
    BAD(tn_requires_grad(NULL), TN_EINVAL, "tn_requires_grad: the tensor is NULL");
    BAD(tn_requires_grad(i3), TN_EDTYPE, "tn_requires_grad: only floating tensors have gradients, this one is i64");
    BAD(tn_requires_grad(flags), TN_EDTYPE, "tn_requires_grad: only floating tensors have gradients, this one is bool");
    BAD(tn_requires_grad(taped), TN_ESTATE,
        "tn_requires_grad: this tensor is the result of a recorded mul_scalar and already has a gradient; "
        "tn_retain_grad keeps it, tn_detach returns a tensor that can be a leaf");
    BAD(tn_detach(NULL), TN_EINVAL, "tn_detach: the tensor is NULL");
    BAD(tn_backward(NULL), TN_EINVAL, "tn_backward: the root is NULL");
    BAD(tn_backward(f), TN_ESTATE,
        "tn_backward: the root depends on no tensor that requires grad; mark one with tn_requires_grad, and compute "
        "the root outside tn_no_grad_begin()");
    BAD(tn_backward(taped), TN_ESHAPE,
        "tn_backward: the root has shape [2, 3], so it needs a seed of that shape; or reduce it first with tn_sum "
        "or tn_mean");
    BAD(tn_backward(taped, .seed = one), TN_ESHAPE,
        "tn_backward: the seed is f64 [], the root f32 [2, 3]; they must agree");
    BAD(tn_backward(taped, .seed = i3), TN_ESHAPE,
        "tn_backward: the seed is i64 [3], the root f32 [2, 3]; they must agree");
    BAD(tn_backward(NULL, .count = 1), TN_EINVAL,
        "tn_backward: give either one root (and .seed), or .count and .roots (and .seeds)");
    BAD(tn_backward(NULL, .count = -1, .roots = &taped), TN_EINVAL,
        "tn_backward: give either one root (and .seed), or .count and .roots (and .seeds)");
    BAD(tn_backward(taped, .count = 1, .roots = &taped), TN_EINVAL,
        "tn_backward: give either one root (and .seed), or .count and .roots (and .seeds)");
    BAD(tn_backward(NULL, .count = 1, .roots = &nil), TN_EINVAL, "tn_backward: the root is NULL");
    BAD(tn_backward(NULL, .count = 1, .roots = &taped, .seed = f), TN_EINVAL,
        "tn_backward: give either one root (and .seed), or .count and .roots (and .seeds)");
    BAD(tn_backward(NULL, .seeds = &f), TN_EINVAL,
        "tn_backward: give either one root (and .seed), or .count and .roots (and .seeds)");
    BAD(tn_grad_of(NULL, 1, &w, &out), TN_EINVAL, "tn_grad_of: the root is NULL");
    BAD(tn_grad_of(taped, 0, &w, &out), TN_EINVAL,
        "tn_grad_of: needs count, wrt and grad: a number, the tensors, an array for their gradients");
    BAD(tn_grad_of(taped, -1, &w, &out), TN_EINVAL,
        "tn_grad_of: needs count, wrt and grad: a number, the tensors, an array for their gradients");
    BAD(tn_grad_of(taped, 1, NULL, &out), TN_EINVAL,
        "tn_grad_of: needs count, wrt and grad: a number, the tensors, an array for their gradients");
    BAD(tn_grad_of(taped, 1, &w, NULL), TN_EINVAL,
        "tn_grad_of: needs count, wrt and grad: a number, the tensors, an array for their gradients");
    BAD(tn_grad_of(taped, 1, &w, &out), TN_ESHAPE,
        "tn_grad_of: the root has shape [2, 3], so it needs a seed of that shape; or reduce it first with tn_sum or "
        "tn_mean");
    BAD(tn_grad_of(taped, 1, &nil, &out, .seed = f), TN_EINVAL, "tn_grad_of: target 0 is NULL");
    BAD(tn_grad_of(taped, 1, &f, &out, .seed = f), TN_ESTATE, "tn_grad_of: target 0 is neither a leaf nor on the tape");
    BAD(tn_grad_wrt(NULL, w, false), TN_EINVAL, "tn_grad_of: the root is NULL");
    BAD(tn_grad_wrt(taped, NULL, false), TN_ESHAPE,
        "tn_grad_of: the root has shape [2, 3], so it needs a seed of that shape; or reduce it first with tn_sum or "
        "tn_mean");
    BAD(tn_grad_wrt(taped, w, true), TN_ESHAPE,
        "tn_grad_of: the root has shape [2, 3], so it needs a seed of that shape; or reduce it first with tn_sum or "
        "tn_mean");
    BAD(tn_on_grad(NULL, hook, NULL), TN_EINVAL, "tn_on_grad: the tensor is NULL");
    BAD(tn_on_grad(w, NULL, NULL), TN_EINVAL, "tn_on_grad: the hook is NULL");
    BAD(tn_on_grad(f, hook, NULL), TN_ESTATE,
        "tn_on_grad: no gradient will reach this tensor: it is neither a leaf nor on the tape");
    BAD(tn_retain_grad(NULL), TN_EINVAL, "tn_retain_grad: the tensor is NULL");
    BAD(tn_retain_grad(f), TN_ESTATE,
        "tn_retain_grad: no gradient will reach this tensor: it is neither a leaf nor on the tape");
    BAD(tn_retain_grad(i3), TN_ESTATE,
        "tn_retain_grad: no gradient will reach this tensor: it is neither a leaf nor on the tape");
    BAD(tn_checkpoint(NULL, NULL, 1, &f), TN_EINVAL, "tn_checkpoint: needs a function and an array of inputs");
    BAD(tn_checkpoint(segment, NULL, -1, &f), TN_EINVAL, "tn_checkpoint: needs a function and an array of inputs");
    BAD(tn_checkpoint(segment, NULL, 1, NULL), TN_EINVAL, "tn_checkpoint: needs a function and an array of inputs");
    BAD(tn_checkpoint(segment, NULL, 1, &nil), TN_EINVAL, "tn_checkpoint: input 0 is NULL");
    BAD(tn_checkpoint(segment, NULL, 1, &f), TN_EINVAL, "tn_checkpoint: the segment returned NULL");
    BAD(tn_tape_dot(NULL, taped), TN_EINVAL, "tn_tape_dot: the file or the tensor is NULL");
    BAD(tn_tape_dot(stdout, NULL), TN_EINVAL, "tn_tape_dot: the file or the tensor is NULL");
    BAD(tn_gradcheck(NULL, .input = f), TN_EINVAL,
        "tn_gradcheck: give a function and its inputs, as .input or as .count and .inputs");
    BAD(tn_gradcheck(segment), TN_EINVAL,
        "tn_gradcheck: give a function and its inputs, as .input or as .count and .inputs");
    BAD(tn_gradcheck(segment, .count = 1), TN_EINVAL,
        "tn_gradcheck: give a function and its inputs, as .input or as .count and .inputs");
    BAD(tn_gradcheck(segment, .count = -1, .inputs = &f), TN_EINVAL,
        "tn_gradcheck: give a function and its inputs, as .input or as .count and .inputs");
    BAD(tn_gradcheck(segment, .count = 17, .inputs = many), TN_EINVAL,
        "tn_gradcheck: 17 inputs are more than the 16 it can take");
    BAD(tn_gradcheck(segment, .count = 1, .inputs = &nil), TN_EINVAL, "tn_gradcheck: input 0 is NULL");
    BAD(tn_gradcheck(segment, .input = f), TN_EINVAL, "tn_gradcheck: function returned NULL");
    BAD(tn_gradcheck(integers, .input = f), TN_EDTYPE, "tn_gradcheck: function returned i64, which has no gradient");
}

TEST(lists)
{
    BAD(tn_cat_list(0, 0, NULL), TN_EINVAL, "cat: needs at least one tensor");
    BAD(tn_cat_list(0, 2, NULL), TN_EINVAL, "cat: the list of 2 inputs is NULL");
    BAD(tn_cat_list(0, -1, many), TN_EINVAL, "cat: the number of inputs is -1");
    BAD(tn_cat_list(0, 1, &nil), TN_EINVAL, "cat: input 0 is NULL");
    BAD(tn_cat_list(2, 17, many), TN_EINDEX, "cat: dim 2 is out of range for a 2-d tensor");
    BAD(tn_stack_list(0, 0, many), TN_EINVAL, "stack: needs at least one tensor");
    BAD(tn_stack_list(0, 2, NULL), TN_EINVAL, "stack: the list of 2 inputs is NULL");
    BAD(tn_stack_list(5, 2, many), TN_EINDEX,
        "stack: dim 5 is out of range: a new dim of a 2-d tensor must be from -3 to 2");
    BAD(tn_einsum_list(NULL, 1, &f), TN_EINVAL, "einsum: the equation is NULL");
    BAD(tn_einsum_list("ij->ij", 1, NULL), TN_EINVAL, "einsum: the list of 1 tensors is NULL");
    BAD(tn_einsum_list("ij->ij", -1, &f), TN_EINVAL, "einsum: the number of inputs is -1");
    BAD(tn_einsum_list("ij,jk->ik", 1, &f), TN_EINVAL,
        "einsum: 'ij,jk->ik': the equation has 2 operands, 1 tensor was given");
    BAD(tn_einsum_list("i->i", 1, &f), TN_ESHAPE, "einsum: 'i->i': operand 0 has 1 letters, its tensor is [2, 3]");
    BAD(tn_einsum_list("ij->k", 1, &f), TN_EINVAL, "einsum: 'ij->k': letter 'k' of the output is in no operand");
    BAD(tn_split(NULL, 1, 0, 1, &out), TN_EINVAL, "split: the tensor is NULL");
    BAD(tn_split(f, 0, 0, 1, &out), TN_EINVAL, "split: the size of a part must be at least 1, got 0");
    BAD(tn_split(f, 1, 2, 1, &out), TN_EINDEX, "split: dim 2 is out of range for a 2-d tensor");
    BAD(tn_split(f, 1, 0, 1, &out), TN_EINVAL, "split: dim 0 of size 2 gives 2 parts, out has room for 1");
    BAD(tn_split(f, 1, 0, 9, NULL), TN_EINVAL, "split: dim 0 of size 2 gives 2 parts, out has room for 0");
    BAD(tn_split(f, 1, 0, -1, &out), TN_EINVAL, "split: dim 0 of size 2 gives 2 parts, out has room for -1");
    BAD(tn_chunk(NULL, 1, 0, 1, &out), TN_EINVAL, "chunk: the tensor is NULL");
    BAD(tn_chunk(f, 0, 0, 1, &out), TN_EINVAL, "chunk: the number of chunks must be at least 1, got 0");
    BAD(tn_chunk(f, 2, 0, 1, &out), TN_EINVAL, "chunk: dim 0 of size 2 gives 2 parts, out has room for 1");
    BAD(tn_chunk(f, 2, -3, 1, &out), TN_EINDEX, "chunk: dim -3 is out of range for a 2-d tensor");
    BAD(tn_permute(f, (tn_dims){.n = 100}), TN_EINVAL, "permute: the order lists 100 dims, the tensor has 2");
    BAD(tn_sum(f, .dims = (tn_dims){.n = 9}), TN_EINVAL, "sum: a list of dims has 0 to 8 entries, got 9");
    BAD(tn_sum(f, .dims = TN_DIMS(0, -2)), TN_EINVAL, "sum: dim 0 is listed twice");
    BAD(tn_flip(f, (tn_dims){.n = -1}), TN_EINVAL, "flip: a list of dims has 0 to 8 entries, got -1");
    BAD(tn_repeat(f, (tn_shape){.n = 100}), TN_ESHAPE, "repeat: a tensor of 2 dims needs 2 to 8 counts, got 100");
    BAD(tn_repeat(f, TN_SHAPE(2, -1)), TN_EINVAL, "repeat: [2, -1] has a negative count");
    BAD(tn_pad(f, (tn_shape){.n = 100}, (tn_shape){.n = 100}, 0), TN_EINVAL,
        "pad: needs one entry for each dim: the tensor has 2 dims, before has 100 entries, after 100");
    BAD(tn_expand(f, (tn_shape){.n = 100}), TN_ESHAPE,
        "expand: [2, 3] has 2 dims and expands to at least that many, at most 8, not to 100");
    BAD(tn_reshape(f, (tn_shape){.n = 9}), TN_ESHAPE, "reshape: a shape has 0 to 8 dims, got 9");
    BAD(tn_view(f, TN_SHAPE(4, -1)), TN_ESHAPE, "view: [2, 3] has 6 elements, which do not fill [4, -1]");
    BAD(tn_mul_(small, i3), TN_EDTYPE, "mul_: the result is i64 and cannot overwrite a tensor of u8");
    BAD(tn_mul_(w, f), TN_ESTATE,
        "mul_: 'w' collects gradients and cannot be overwritten on the tape; change it between tn_no_grad_begin() and "
        "tn_scope_end()");
    BAD(tn_add_(i3, f), TN_EDTYPE, "add_: the result is f32 and cannot overwrite a tensor of i64");
    BAD(tn_add_(wide, wide), TN_EINVAL,
        "add_: several elements of the target share memory (it is expanded, or made of overlapping windows); tn_clone "
        "it first");
    BAD(tn_add_(none, f), TN_ESHAPE,
        "add: shapes [0, 3] and [2, 3] do not broadcast: dim -2 is 0 in one and 2 in the other");
    BAD(tn_copy_(small, f), TN_ESHAPE, "copy: [2, 3] does not broadcast to [2]");
}

/* ---- the ops ----------------------------------------------------------------------------------------------------- */

/* A call that must raise a message that starts with the op's name. */
static state    before_call;
static tn_scope around_call;
static void     expect(void) { before_call = look(), around_call = tn_scope_begin(); }
static void     refused(const char *call)
{
    tn_scope_end(around_call);
    ck_assert_msg(tn_error() != TN_OK && strchr(tn_error_message(), ':'), "%s: '%s'", call, tn_error_message());
    tn_clear_error();
    same(call, "", &before_call);
}
#define REFUSED(call) (expect(), (void)(call), refused(#call))

/* clang-format off */
#define OF_ONE(X) \
    X(neg) X(abs) X(sign) X(exp) X(expm1) X(log) X(log1p) X(sqrt) X(rsqrt) X(square) X(reciprocal) X(sin) X(cos) \
    X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(log2) X(log10) X(isinf) X(tanh) X(erf) X(floor) X(ceil) X(round) \
    X(sigmoid) X(logsigmoid) X(relu) X(gelu) X(gelu_tanh) X(silu) X(mish) \
    X(neg_) X(exp_) X(sqrt_) X(tanh_) X(sigmoid_) X(relu_) X(logical_not) X(isfinite) X(isnan) X(contiguous) X(clone) \
    X(nonzero)
#define OF_TWO(X) \
    X(add) X(sub) X(mul) X(div) X(pow) X(maximum) X(minimum) X(remainder) X(atan2) X(logaddexp) \
    X(floor_divide) X(add_) X(sub_) X(mul_) X(div_) X(eq) \
    X(ne) X(lt) X(le) X(gt) X(ge) X(logical_and) X(logical_or) X(logical_xor) X(masked_select) X(matmul) X(outer) \
    X(copy_)
#define REDUCING(X) X(sum) X(mean) X(prod) X(var) X(std) X(amax) X(amin) X(norm) X(logsumexp) X(any) X(all)
#define WITH_A_NUMBER(X) \
    X(add_scalar) X(mul_scalar) X(div_scalar) X(rsub_scalar) X(pow_scalar) X(add_scalar_) X(mul_scalar_) \
    X(div_scalar_) X(leaky_relu) X(elu) X(softplus)
#define ALONG_A_DIM(X) X(cumsum) X(cumprod) X(softmax) X(log_softmax) X(glu)
/* clang-format on */

TEST(ops_by_name)
{
    tn_tensor *far = tn_ones(TN_SHAPE(7)), *ints = i3;
#define X(name) REFUSED(tn_##name(NULL));
    OF_ONE(X)
    REDUCING(X)
#undef X
#define X(name)                                                                               \
    REFUSED(tn_##name(NULL, NULL)), REFUSED(tn_##name(f, NULL)), REFUSED(tn_##name(NULL, f)), \
        REFUSED(tn_##name(f, far));
    OF_TWO(X)
#undef X
#define X(name) REFUSED(tn_##name(NULL, 1));
    WITH_A_NUMBER(X)
#undef X
#define X(name) REFUSED(tn_##name(NULL, 0)), REFUSED(tn_##name(f, 2)), REFUSED(tn_##name(f, -3));
    ALONG_A_DIM(X)
#undef X
#define X(name) REFUSED(tn_##name(f, .dims = TN_DIMS(2))), REFUSED(tn_##name(f, .dims = TN_DIMS(0, 0)));
    REDUCING(X)
#undef X
    REFUSED(tn_clamp(NULL, 0, 1)), REFUSED(tn_clamp_(NULL, 0, 1)), REFUSED(tn_clamp_(w, 0, 1));
    REFUSED(tn_allclose(NULL, f, 0, 0)), REFUSED(tn_allclose(f, NULL, 0, 0)), REFUSED(tn_allclose(f, far, 0, 0));
    REFUSED(tn_where(NULL, f, f)), REFUSED(tn_where(flags, NULL, f)), REFUSED(tn_where(flags, f, NULL)),
        REFUSED(tn_where(flags, f, far));
    REFUSED(tn_masked_fill(NULL, flags, 0)), REFUSED(tn_masked_fill(f, NULL, 0)), REFUSED(tn_masked_fill(f, f, 0));
    REFUSED(tn_masked_fill_(f, NULL, 0)), REFUSED(tn_masked_fill_(w, flags, 0)),
        REFUSED(tn_masked_fill_(NULL, flags, 0));
    REFUSED(tn_max(NULL, 0, false).values), REFUSED(tn_max(f, 2, false).values), REFUSED(tn_max(none, 0, false).values);
    REFUSED(tn_min(NULL, 0, false).values), REFUSED(tn_min(f, -3, false).values),
        REFUSED(tn_min(none, 0, false).values);
    REFUSED(tn_argmax(NULL, 0, false)), REFUSED(tn_argmax(f, 2, false)), REFUSED(tn_argmax(none, TN_ALL, false));
    REFUSED(tn_argmin(NULL, 0, false)), REFUSED(tn_argmin(f, 2, false)), REFUSED(tn_argmin(none, TN_ALL, false));
    REFUSED(tn_linear(NULL, f, NULL)), REFUSED(tn_linear(f, NULL, NULL)), REFUSED(tn_linear(f, f, far));
    REFUSED(tn_linear_gelu(NULL, f, NULL)), REFUSED(tn_linear_gelu_tanh(f, f, far)), REFUSED(tn_linear_relu(f, far, f));
    REFUSED(tn_view(NULL, TN_SHAPE(6))), REFUSED(tn_view(f, TN_SHAPE(7))), REFUSED(tn_view(f, TN_SHAPE(-1, -1)));
    REFUSED(tn_reshape(NULL, TN_SHAPE(6))), REFUSED(tn_reshape(f, TN_SHAPE(-6))),
        REFUSED(tn_reshape(none, TN_SHAPE(-1, 0)));
    REFUSED(tn_flatten(NULL, 0, 1)), REFUSED(tn_flatten(f, 1, 0)), REFUSED(tn_flatten(f, 0, 2));
    REFUSED(tn_permute(NULL, TN_DIMS(0))), REFUSED(tn_permute(f, TN_DIMS(0))), REFUSED(tn_permute(f, TN_DIMS(0, 0)));
    REFUSED(tn_transpose(NULL, 0, 1)), REFUSED(tn_transpose(f, 0, 2)), REFUSED(tn_transpose(f, -3, 0));
    REFUSED(tn_slice(NULL, 0, 0, 1, 1)), REFUSED(tn_slice(f, 2, 0, 1, 1)), REFUSED(tn_slice(f, 0, 0, 1, 0));
    REFUSED(tn_narrow(NULL, 0, 0, 1)), REFUSED(tn_narrow(f, 0, 2, 1)), REFUSED(tn_narrow(f, 0, 0, INT64_MAX));
    REFUSED(tn_select(NULL, 0, 0)), REFUSED(tn_select(f, 0, 2)), REFUSED(tn_select(f, 0, INT64_MIN));
    REFUSED(tn_expand(NULL, TN_SHAPE(2))), REFUSED(tn_expand(f, TN_SHAPE(3, 3))),
        REFUSED(tn_expand(f, TN_SHAPE(-1, 2, 3)));
    REFUSED(tn_squeeze(NULL, 0)), REFUSED(tn_squeeze(f, 2)), REFUSED(tn_squeeze(f, -3));
    REFUSED(tn_unsqueeze(NULL, 0)), REFUSED(tn_unsqueeze(f, 3)), REFUSED(tn_unsqueeze(f, -4));
    REFUSED(tn_diagonal(NULL, 0, 0, 1)), REFUSED(tn_diagonal(f, 0, 0, 0)), REFUSED(tn_diagonal(far, 0, 0, 1));
    REFUSED(tn_unfold(NULL, 0, 1, 1)), REFUSED(tn_unfold(f, 0, 3, 1)), REFUSED(tn_unfold(f, 0, 1, 0));
    REFUSED(tn_to(NULL, TN_F64)), REFUSED(tn_to(f, (tn_dtype)7)), REFUSED(tn_to(f, (tn_dtype)-1));
    REFUSED(tn_pad(NULL, TN_SHAPE(0), TN_SHAPE(0), 0)), REFUSED(tn_pad(f, TN_SHAPE(0), TN_SHAPE(0, 0), 0)),
        REFUSED(tn_pad(f, TN_SHAPE(-3, 0), TN_SHAPE(0, 0), 0));
    REFUSED(tn_tril(NULL, 0)), REFUSED(tn_tril(far, 0)), REFUSED(tn_tril(one, 0));
    REFUSED(tn_triu(NULL, 0)), REFUSED(tn_triu(far, 0)), REFUSED(tn_triu(one, 0));
    REFUSED(tn_roll(NULL, 1, 0)), REFUSED(tn_roll(f, 1, 2)), REFUSED(tn_roll(f, 1, -3));
    REFUSED(tn_flip(NULL, TN_DIMS(0))), REFUSED(tn_flip(f, TN_DIMS(2))), REFUSED(tn_flip(f, TN_DIMS(0, 0)));
    REFUSED(tn_repeat(NULL, TN_SHAPE(2))), REFUSED(tn_repeat(f, TN_SHAPE(2))),
        REFUSED(tn_repeat(f, TN_SHAPE(INT64_MAX, 2)));
    REFUSED(tn_repeat_interleave(NULL, 2, 0)), REFUSED(tn_repeat_interleave(f, -1, 0)),
        REFUSED(tn_repeat_interleave(f, 2, 2));
    REFUSED(tn_gather(NULL, 0, ints)), REFUSED(tn_gather(far, 0, NULL)), REFUSED(tn_gather(far, 0, far)),
        REFUSED(tn_gather(small, 0, ints));
    REFUSED(tn_scatter_add(NULL, 0, ints, far)), REFUSED(tn_scatter_add(far, 0, NULL, far)),
        REFUSED(tn_scatter_add(far, 0, ints, NULL)), REFUSED(tn_scatter_add(far, 1, ints, far));
    REFUSED(tn_index_select(NULL, 0, ints)), REFUSED(tn_index_select(f, 0, NULL)), REFUSED(tn_index_select(f, 0, ints)),
        REFUSED(tn_index_select(f, 2, ints));
    REFUSED(tn_index_add(NULL, 0, ints, f)), REFUSED(tn_index_add(f, 0, NULL, f)), REFUSED(tn_index_add(f, 0, ints, f)),
        REFUSED(tn_index_add(f, 1, ints, NULL));
    REFUSED(tn_take_along(NULL, ints, 0)), REFUSED(tn_take_along(far, NULL, 0)), REFUSED(tn_take_along(far, ints, 1));
    REFUSED(tn_embedding(NULL, ints, -1, false)), REFUSED(tn_embedding(f, NULL, -1, false)),
        REFUSED(tn_embedding(f, ints, -1, false)), REFUSED(tn_embedding(f, far, -1, false));
    REFUSED(tn_one_hot(NULL, 3)), REFUSED(tn_one_hot(ints, 2)), REFUSED(tn_one_hot(far, 3)),
        REFUSED(tn_one_hot(ints, INT64_MAX));
    REFUSED(tn_sort(NULL, 0).values), REFUSED(tn_sort(f, 2).values), REFUSED(tn_sort(f, -3).values);
    REFUSED(tn_topk(NULL, 1, 0).values), REFUSED(tn_topk(f, 3, 0).values), REFUSED(tn_topk(f, -1, 0).values);
    REFUSED(tn_layer_norm(NULL, NULL, NULL, 0)), REFUSED(tn_layer_norm(f, far, NULL, 0)),
        REFUSED(tn_layer_norm(ints, NULL, NULL, 0));
    REFUSED(tn_rms_norm(NULL, NULL, 0)), REFUSED(tn_rms_norm(f, far, 0)), REFUSED(tn_rms_norm(ints, NULL, 0));
    REFUSED(tn_dropout(NULL, 0.5)), REFUSED(tn_dropout(f, 2)), REFUSED(tn_dropout(f, (double)NAN)),
        REFUSED(tn_dropout(NULL, 0));
    REFUSED(tn_conv1d(NULL, f, f)), REFUSED(tn_conv1d(f, NULL, NULL)), REFUSED(tn_conv1d(f, f, NULL)),
        REFUSED(tn_conv2d(NULL, f, f)), REFUSED(tn_conv2d(f, NULL, NULL)), REFUSED(tn_conv2d(f, f, NULL));
    REFUSED(tn_max_pool1d(NULL, .size = 1)), REFUSED(tn_max_pool1d(f, .size = 0)), REFUSED(tn_max_pool1d(f, .size = 1));
    REFUSED(tn_avg_pool1d(NULL, .size = 1)), REFUSED(tn_avg_pool1d(f, .size = 0)), REFUSED(tn_avg_pool1d(f, .size = 1));
    REFUSED(tn_max_pool2d(NULL, .size = 1)), REFUSED(tn_max_pool2d(f, .size = 0, .size_w = 1)),
        REFUSED(tn_max_pool2d(f, .size = 1));
    REFUSED(tn_avg_pool2d(NULL, .size = 1)), REFUSED(tn_avg_pool2d(f, .size = 0, .size_w = 1)),
        REFUSED(tn_avg_pool2d(f, .size = 1));
    REFUSED(tn_cross_entropy(NULL, ints)), REFUSED(tn_cross_entropy(f, NULL)), REFUSED(tn_cross_entropy(f, ints)),
        REFUSED(tn_cross_entropy(f, f, .class_dim = 2));
    REFUSED(tn_nll_loss(NULL, ints)), REFUSED(tn_nll_loss(f, NULL)), REFUSED(tn_nll_loss(f, f));
    REFUSED(tn_mse_loss(NULL, f)), REFUSED(tn_mse_loss(f, NULL)), REFUSED(tn_mse_loss(f, far)),
        REFUSED(tn_mse_loss(f, f, .reduction = (tn_reduction)9));
    REFUSED(tn_l1_loss(NULL, f)), REFUSED(tn_l1_loss(f, NULL)), REFUSED(tn_l1_loss(f, far)),
        REFUSED(tn_l1_loss(f, f, .delta = 2));
    REFUSED(tn_huber_loss(NULL, f)), REFUSED(tn_huber_loss(f, NULL)), REFUSED(tn_huber_loss(f, f, .delta = -1));
    REFUSED(tn_kl_div(NULL, f)), REFUSED(tn_kl_div(f, NULL)), REFUSED(tn_kl_div(f, far));
    REFUSED(tn_bce_with_logits(NULL, f)), REFUSED(tn_bce_with_logits(f, NULL)),
        REFUSED(tn_bce_with_logits(f, f, .weight = far));
    REFUSED(tn_cosine_similarity(NULL, f, 0, 0)), REFUSED(tn_cosine_similarity(f, NULL, 0, 0)),
        REFUSED(tn_cosine_similarity(f, f, 2, 0));
    REFUSED(tn_attention(NULL, f, f)), REFUSED(tn_attention(f, NULL, f)), REFUSED(tn_attention(f, f, NULL)),
        REFUSED(tn_attention(f, f, f, .dropout = 2)), REFUSED(tn_attention(f, f, far));
}

/* Every op with NULL inputs, one input too many, one result too many, no list, or no `out`. */
TEST_EACH(all_ops, tn_sampled_count())
{
    const tn_op *op = tn_sampled(_i);
    const int n = op->inputs == TN_ANY ? 2 : op->inputs, m = op->outputs == TN_ANY ? 1 : op->outputs ? op->outputs : 1;
    const void      *args = tn_samples_of(_i)->rows[0].args;
    tn_tensor       *in[8] = {NULL}, *to[9];
    tn_tensor *const full[8] = {f, f, f, f, f, f, f, f};
    REFUSED(tn_op_call(op, n, in, m, to, args));
    REFUSED(tn_op_call(op, n, NULL, m, to, args));
    REFUSED(tn_op_call(op, n, full, m, NULL, args));
    REFUSED(tn_op_call(op, -1, full, m, to, args));
    if (op->inputs != TN_ANY) REFUSED(tn_op_call(op, n + 1, full, m, to, args));
    if (op->outputs != TN_ANY) REFUSED(tn_op_call(op, n, full, m + 1, to, args));
    if (!op->inplace) REFUSED(tn_op_apply_(op, args, n, full));
}

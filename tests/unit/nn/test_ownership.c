/* test_ownership.c — dropping or freeing once too often, or using freed objects, is an error with advice, and the
 * program continues. */
#include "autograd/autograd.h"
#include "core/tensor/tensor.h"
#include "nn/nn.h"
#include "tests/common/check_main.h"
#include "tests/common/errors.h"

#include <math.h>

#define ADVICE                                                                                                 \
    " was freed: its scope ended, or it was dropped more often than it was kept; a scope frees what it owns, " \
    "call tn_drop only after tn_keep or tn_take"

static int64_t living(void) { return tn_memory_now().tensors; }

START_TEST(dropped_though_the_scope_owns_it)
{
    const int64_t before = living();
    tn_scope      s = tn_scope_begin();
    tn_tensor    *x = tn_ones(TN_SHAPE(3));
    tn_drop(x);
    ck_assert_int_eq(tn_error(), TN_OK); /* it could have been the last of many references */
    /* one of 300 reuses the memory of x; without the cache it is freed after 64 more tensors have ended */
    for (int i = 0; i < (TN_TEST_CACHE ? 300 : 30); i++) tn_ones(TN_SHAPE(3));
    tn_scope_end(s);
    ck_error(TN_ESTATE, "tn_scope_end: a tensor that this scope owns" ADVICE);
    ck_assert_int_eq(living(), before);
}
END_TEST

START_TEST(dropped_twice)
{
    const int64_t before = living();
    tn_tensor    *x = tn_take(tn_ones(TN_SHAPE(3)));
    tn_drop(x);
    tn_drop(x);
    ck_error(TN_ESTATE, "tn_drop: this tensor" ADVICE);
    ck_assert_ptr_null(tn_keep(x));
    ck_error(TN_ESTATE, "tn_keep: this tensor" ADVICE);
    ck_assert_int_eq(living(), before);
}
END_TEST

START_TEST(used_after_its_scope)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(3))), *y = tn_ones(TN_SHAPE(3));
    tn_scope_end(s);
    ck_assert_ptr_null(tn_exp(x));
    ck_error(TN_ESTATE, "exp: input 0" ADVICE);
    ck_assert_ptr_null(tn_add(y, x));
    ck_assert_int_eq(tn_error(), TN_ESTATE);
    tn_clear_error();
    ck_assert_ptr_null(tn_mul_scalar_(y, 2));
    ck_error(TN_ESTATE, "mul_scalar: input 0" ADVICE);
    ck_assert(isnan(tn_item(x)));
    ck_error(TN_ESTATE, "tn_item: the tensor" ADVICE);
    ck_assert(isnan(tn_get(x, 0)));
    ck_error(TN_ESTATE, "tn_get: the tensor" ADVICE);
    ck_assert_ptr_null(tn_data(x));
    ck_error(TN_ESTATE, "tn_data: the tensor" ADVICE);
    ck_assert_int_eq(tn_shape_of(x).n, 0);
    ck_error(TN_ESTATE, "tn_shape_of: the tensor" ADVICE);
    ck_assert_int_eq(tn_fill(x, 1), TN_ESTATE);
    ck_error(TN_ESTATE, "tn_fill: t" ADVICE);
    ck_assert_int_eq(tn_backward(x), TN_ESTATE);
    ck_error(TN_ESTATE, "tn_backward: the root" ADVICE);
    ck_assert_ptr_null(tn_requires_grad(x));
    ck_error(TN_ESTATE, "tn_requires_grad: the tensor" ADVICE);
    ck_assert_ptr_null(tn_detach(x));
    ck_error(TN_ESTATE, "tn_detach: the tensor" ADVICE);
    ck_assert_ptr_null(tn_grad(x));
    ck_error(TN_ESTATE, "tn_grad: the tensor" ADVICE);
}
END_TEST

/* A new tensor in the memory of a dead tensor of the scope is not mistaken for it. */
START_TEST(another_in_its_place)
{
    tn_scope   s = tn_scope_begin(), inner = tn_scope_begin();
    tn_tensor *x = tn_ones(TN_SHAPE(3)), *y = NULL;
    tn_drop(x);
    for (int i = 0; i < 1000 && y != x; i++) {
        if (y) tn_drop(y);
        y = tn_take(tn_ones(TN_SHAPE(3)));
    }
    ck_assert_ptr_eq(y, x);
    tn_scope_end(inner);
    ck_assert_int_eq(tn_error(), TN_ESTATE);
    tn_clear_error();
    ck_assert_double_eq(tn_get(y, 2), 1); /* still alive */
    tn_drop(y);
    tn_scope_end(s);
}
END_TEST

#if !TN_TEST_ASAN
START_TEST(a_module_freed_twice)
{
    tn_tensor *x = tn_ones(TN_SHAPE(1, 2)); /* before: a new tensor would get the module's memory */
    tn_linear *m = tn_linear_new(.in = 2, .out = 2);
    tn_free(m);
    tn_free(m);
    ck_error(TN_ESTATE, "tn_free: this module was already freed");
    ck_assert_ptr_null(tn_call(m, x));
    ck_assert_int_eq(tn_error(), TN_ESTATE);
    tn_clear_error();
}
END_TEST
#endif

int main(void)
{
    Suite *s = suite_create("ownership");
    TCase *c = tn_tcase(s, "misuse");
    tcase_add_test(c, dropped_though_the_scope_owns_it);
    tcase_add_test(c, dropped_twice);
    tcase_add_test(c, used_after_its_scope);
    if (TN_TEST_CACHE) tcase_add_test(c, another_in_its_place);
#if !TN_TEST_ASAN
    tcase_add_test(c, a_module_freed_twice);
#endif
    return tn_check_main(s);
}

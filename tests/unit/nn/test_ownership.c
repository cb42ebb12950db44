/* test_ownership.c — dropping or freeing once too often, or using freed objects, is an error with advice, and the
 * program continues. */
#include "autograd/autograd.h"
#include "core/tensor/tensor.h"
#include "optim/optim.h"
#include "tests/common/check_main.h"

#define ADVICE                                                                                                 \
    " was freed: its scope ended, or it was dropped more often than it was kept; a scope frees what it owns, " \
    "call tn_drop only after tn_keep or tn_take"

static int64_t living(void) { return tn_memory_now().tensors; }

TEST(dropped_though_the_scope_owns_it)
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

TEST(dropped_twice)
{
    const int64_t before = living();
    tn_tensor    *x = tn_take(tn_ones(TN_SHAPE(3)));
    tn_drop(x);
    tn_drop(x);
    ck_error(TN_ESTATE, "tn_drop: this tensor" ADVICE);
    ck_refused(tn_keep(x), TN_ESTATE, "tn_keep: this tensor" ADVICE);
    ck_assert_int_eq(living(), before);
}

TEST(used_after_its_scope)
{
    tn_scope   s = tn_scope_begin();
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(3))), *y = tn_ones(TN_SHAPE(3));
    tn_scope_end(s);
    ck_refused(tn_exp(x), TN_ESTATE, "exp: input 0" ADVICE);
    ck_refused_code(tn_add(y, x), TN_ESTATE);
    ck_refused(tn_mul_scalar_(y, 2), TN_ESTATE, "mul_scalar: input 0" ADVICE);
    ck_assert(isnan(tn_item(x)));
    ck_error(TN_ESTATE, "tn_item: the tensor" ADVICE);
    ck_assert(isnan(tn_get(x, 0)));
    ck_error(TN_ESTATE, "tn_get: the tensor" ADVICE);
    ck_refused(tn_data(x), TN_ESTATE, "tn_data: the tensor" ADVICE);
    ck_assert_int_eq(tn_shape_of(x).n, 0);
    ck_error(TN_ESTATE, "tn_shape_of: the tensor" ADVICE);
    ck_fails(tn_fill(x, 1), TN_ESTATE, "tn_fill: t" ADVICE);
    ck_fails(tn_backward(x), TN_ESTATE, "tn_backward: the root" ADVICE);
    ck_refused(tn_requires_grad(x), TN_ESTATE, "tn_requires_grad: the tensor" ADVICE);
    ck_refused(tn_detach(x), TN_ESTATE, "tn_detach: the tensor" ADVICE);
    ck_refused(tn_grad(x), TN_ESTATE, "tn_grad: the tensor" ADVICE);
}

#if TN_TEST_CACHE
/* A new tensor in the memory of a dead tensor of the scope is not mistaken for it. */
TEST(another_in_its_place)
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
    ck_error_code(TN_ESTATE);
    ck_assert_double_eq(tn_get(y, 2), 1); /* still alive */
    tn_drop(y);
    tn_scope_end(s);
}
#endif

#if !TN_TEST_ASAN
TEST(a_module_freed_twice)
{
    tn_tensor *x = tn_ones(TN_SHAPE(1, 2)); /* before: a new tensor would get the module's memory */
    tn_linear *m = tn_linear_new(.in = 2, .out = 2);
    tn_free(m);
    tn_free(m);
    ck_error(TN_ESTATE, "tn_free: this module was already freed");
    ck_refused_code(tn_call(m, x), TN_ESTATE);
}

enum { USES = 12 };
static const char *use(int what, tn_linear *m, tn_tensor *x)
{
    switch (what) {
    case 0: tn_call(m, x); return "tn_call";
    case 1: tn_train(m, true); return "tn_module_each";
    case 2: tn_eval(m); return "tn_module_each";
    case 3: tn_freeze(m, true); return "tn_module_each";
    case 4: tn_zero_grads(m); return "tn_module_each";
    case 5: tn_count(m); return "tn_module_each";
    case 6: tn_copy(m); return "tn_copy";
    case 7: tn_save(m, "never.safetensors"); return "tn_save";
    case 8: tn_module_find(m, "weight"); return "tn_find";
    case 9: tn_module_unhook(m, m); return "tn_unhook";
    case 10: tn_module_print(stdout, m); return "tn_module_each";
    default: tn_module_functional_call(m, x, 0, NULL, NULL); return "tn_functional_call";
    }
}

/* Also after other objects of its size were made, which would get its memory. */
TEST_EACH(a_freed_module, USES)
{
    tn_linear *m = tn_linear_new(.in = 2, .out = 2);
    tn_free(m);
    tn_linear *others[8];
    for (int i = 0; i < 8; i++) others[i] = tn_linear_new(.in = 2, .out = 2);
    tn_tensor  *x = tn_ones(TN_SHAPE(1, 2));
    const char *who = use(_i, m, x);
    ck_assert_msg(tn_error() == TN_ESTATE && strstr(tn_error_message(), "this module was already freed"), "%s: %s", who,
                  tn_error_message());
    ck_assert_msg(!strncmp(tn_error_message(), who, strlen(who)), "%s", tn_error_message());
    tn_clear_error();
    for (int i = 0; i < 8; i++) tn_free(others[i]);
}
#endif

/* ---- a module that is assigned without tn_child ------------------------------------------------------------------ */

typedef struct {
    tn_module  base;
    tn_linear *in, **out; /* out: one element */
} pair;
static tn_tensor *pair_forward(pair *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    return tn_leave(f, tn_call(m->out[0], tn_gelu(tn_call(m->in, x))));
}
TN_FORWARD(pair);
static pair *pair_new(bool registered)
{
    pair *m = tn_module_new(pair);
    if (!m) return NULL;
    m->in = tn_child(m, "in", tn_linear_new(.in = 2, .out = 2));
    m->out = tn_array(m, 1, tn_linear *);
    m->out[0] = registered ? tn_child(m, "out", tn_linear_new(.in = 2, .out = 2)) : tn_linear_new(.in = 2, .out = 2);
    return tn_built(m);
}

enum { FORGOTTEN, REGISTERED, FROZEN, OWN_OPTIMIZER, NO_OPTIMIZER, EVALUATED, NOT_RECORDED, PASSED, KINDS };

TEST_EACH(a_child_without_tn_child, KINDS)
{
    pair         *m = pair_new(_i == REGISTERED);
    tn_linear    *out = m->out[0], *outer = tn_linear_new(.in = 2, .out = 2);
    tn_optimizer *o = _i == NO_OPTIMIZER ? NULL : tn_sgd_new(m), *own = _i == OWN_OPTIMIZER ? tn_sgd_new(out) : NULL;
    tn_tensor    *x = tn_ones(TN_SHAPE(1, 2));
    if (_i == FROZEN) tn_freeze(out, true);
    if (_i == EVALUATED) tn_eval(m);
    const tn_scope s = _i == NOT_RECORDED ? tn_no_grad_begin() : tn_scope_begin();
    for (int step = 0; step < 2 && tn_error() == TN_OK; step++)
        tn_call(m, _i == PASSED ? (m->out[0] = out, tn_freeze(out, true), tn_call(outer, x)) : x);
    tn_scope_end(s);
    if (_i == FORGOTTEN)
        ck_error(TN_ESTATE,
                 "pair: its Linear, with the parameter 'weight', was assigned without tn_child, so that no "
                 "optimizer trains it, and tn_save and tn_free skip it; register it with tn_child, or freeze "
                 "it with tn_freeze");
    ck_assert_msg(tn_error() == TN_OK, "%d: %s", _i, tn_error_message());
    tn_optimizer_free(o), tn_optimizer_free(own), tn_free(m), tn_free(outer);
    if (_i != REGISTERED) tn_free(out);
}

/* test_optim_use.c — using optimizers: groups, skipped parameters, clipping, accumulation, averages; whole steps or
 * none after any failure; and the errors of wrong use. */
#include "tests/common/check_main.h"

#include "tests/common/faults.h"
#include "tests/common/optim_case.h"
#include <float.h>

/* A parameter with these values, in a new module or in m. */
static tn_tensor *param(tn_sequential *m, const char *name, tn_dtype dt, tn_shape shape, const double *v)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *t = tn_zeros_of(dt, shape);
    for (int64_t i = 0; i < tn_numel(t); i++) tn_set(t, i, v ? v[i] : 1);
    tn_param(m, name, t);
    tn_scope_end(s);
    return t;
}

/* Adds the gradient g, one value per element, to that of t. */
static void gradient(tn_tensor *t, const double *g)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *c = tn_zeros_of(tn_dtype_of(t), tn_shape_of(t));
    for (int64_t i = 0; i < tn_numel(t); i++) tn_set(c, i, g[i]);
    ck_assert_msg(tn_backward(tn_sum(tn_mul(t, c))) == TN_OK, "%s", tn_error_message());
    tn_scope_end(s);
}

static bool close_to(double a, double b) { return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b)); }

/* ---- the example of the documentation ---------------------------------------------------------------------------- */

TEST(a_curve_is_fitted)
{
    tn_seed(1);
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 1, .out = 32));
    tn_append(net, tn_gelu_new());
    tn_append(net, tn_linear_new(.in = 32, .out = 1));
    tn_optimizer *opt = tn_adamw_new(net, .lr = 1e-2);
    double        first = 0, last = 0;
    for (int step = 0; step < 400; step++) {
        tn_scope   s = tn_scope_begin();
        tn_tensor *x = tn_uniform(TN_SHAPE(64, 1), -3, 3), *loss = tn_mse_loss(tn_call(net, x), tn_sin(x));
        tn_backward(loss);
        tn_step(opt);
        last = tn_item(loss);
        if (!step) first = last;
        tn_scope_end(s);
    }
    ck_assert_msg(last < 0.05 * first, "from %g to %g: %s", first, last, tn_error_message());
    tn_optimizer_free(opt);
    tn_free(net);
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static bool is_embedding(const char *name, const tn_tensor *t, void *user)
{
    ++*(int *)user;
    return strstr(name, "embed") && tn_ndim(t) == 2;
}

TEST(groups)
{
    tn_sequential *net = tn_sequential_new(), *encoder = tn_sequential_new();
    tn_child(net, "embed", tn_embedding_new(.count = 5, .dim = 4));
    tn_append(encoder, tn_linear_new(.in = 4, .out = 4));
    tn_append(encoder, tn_layer_norm_new(.dim = 4));
    tn_child(net, "encoder", encoder);
    tn_child(net, "head", tn_linear_new(.in = 4, .out = 2));
    const tn_tensor *embed = tn_find_tensor(net, "embed.weight"), *weight = tn_find_tensor(net, "encoder.0.weight");
    const tn_tensor *bias = tn_find_tensor(net, "encoder.0.bias"), *norm = tn_find_tensor(net, "encoder.1.weight");
    const tn_tensor *head = tn_find_tensor(net, "head.weight"), *head_bias = tn_find_tensor(net, "head.bias");

    tn_optimizer *o = tn_adamw_new(net, .lr = 1e-3, .weight_decay = 0.1);
    ck_assert_int_eq(tn_group_count(o), 1);
    ck_assert_int_eq(tn_no_decay(o), TN_OK); /* 0: matrices, 1: vectors */
    ck_assert_int_eq(tn_group_count(o), 2);
    ck_assert(tn_group_of(o, bias) == 1 && tn_group_of(o, norm) == 1 && tn_group_of(o, head_bias) == 1);
    ck_assert(tn_group_of(o, weight) == 0 && tn_group_of(o, embed) == 0 && tn_group_of(o, head) == 0);
    ck_assert_double_eq(tn_option(o, 0, TN_OPT_WEIGHT_DECAY), 0.1);
    ck_assert_double_eq(tn_option(o, 1, TN_OPT_WEIGHT_DECAY), 0);
    ck_assert_double_eq(tn_option(o, 1, TN_OPT_BETA2), 0.999);

    /* a part of both groups: each is split, and weight decay 0 stays */
    const int first = tn_group_new(o, .module = encoder, .lr = 1e-5);
    ck_assert_int_eq(first, 2);
    ck_assert_int_eq(tn_group_count(o), 4);
    ck_assert(tn_group_of(o, weight) == 2 && tn_group_of(o, bias) == 3 && tn_group_of(o, norm) == 3);
    ck_assert(tn_lr(o, 2) == 1e-5 && tn_lr(o, 3) == 1e-5 && tn_lr(o, 0) == 1e-3);
    ck_assert_double_eq(tn_option(o, 2, TN_OPT_WEIGHT_DECAY), 0.1);
    ck_assert_double_eq(tn_option(o, 3, TN_OPT_WEIGHT_DECAY), 0);

    int asked = 0; /* all of a group match: it changes in place */
    ck_assert_int_eq(tn_group_new(o, .match = is_embedding, .user = &asked, .weight_decay = 0.5), 4);
    ck_assert(asked == 7 && tn_group_of(o, embed) == 4 && tn_group_count(o) == 5);
    ck_assert_int_eq(tn_group_new(o, .match = is_embedding, .user = &asked, .lr = 0), 4);
    ck_assert(tn_group_count(o) == 5 && tn_lr(o, 4) == 0 && tn_option(o, 4, TN_OPT_WEIGHT_DECAY) == 0.5);
    ck_assert_int_eq(tn_no_decay(o), TN_OK);
    ck_assert_int_eq(tn_group_count(o), 5);

    ck_assert_int_eq(tn_set_lr(o, -1, 0.25), TN_OK);
    ck_assert(tn_lr(o, 4) == 0.25 && tn_option(o, 2, TN_OPT_BASE_LR) == 0.25);
    ck_assert_int_eq(tn_set_option(o, 1, TN_OPT_EPS, 1e-6), TN_OK);
    ck_assert(tn_option(o, 1, TN_OPT_EPS) == 1e-6 && tn_option(o, 0, TN_OPT_EPS) == 1e-8);

    ck_assert_int_eq(tn_group_of(o, NULL), -1);
    tn_group_new(o, .lr = 1);
    ck_error(TN_EINVAL, "tn_group_new: set .module, .vectors or .match to select parameters");
    tn_group_new(o, .module = encoder, .vectors = true, .match = is_embedding, .user = &asked);
    ck_error(TN_EINVAL, "tn_group_new: no parameter of the optimizer matches");
    tn_group_new(o, .vectors = true, .lr = -2);
    ck_error(TN_EINVAL, "tn_group_new: lr is -2, but must not be negative, nor infinite");
    tn_group_new(NULL, .vectors = true);
    ck_error(TN_EINVAL, "tn_group_new: the optimizer is NULL");
    tn_lr(o, 5);
    ck_error(TN_EINDEX, "tn_lr: group 5 does not exist; the optimizer has 5");
    tn_option(o, 0, TN_OPT_MOMENTUM);
    ck_error(TN_EUNSUPPORTED, "tn_option: AdamW has no momentum");
    tn_set_option(o, 0, TN_OPT_BETA1, 1);
    ck_error(TN_EINVAL, "tn_set_option: beta1 is 1, but must be at least 0 and less than 1");
    tn_set_option(o, 0, (tn_opt)99, 1);
    ck_error(TN_EINVAL, "tn_set_option: there is no option 99");
    tn_constant_lr_new(o);
    tn_no_decay(o);
    ck_error(TN_ESTATE, "tn_no_decay: the optimizer already has a schedule; create groups before schedules");
    tn_optimizer_free(o);
    tn_free(net);
}

/* Each group is updated with its own options. */
TEST(groups_step_apart)
{
    tn_sequential *net = tn_sequential_new();
    tn_tensor     *w = param(net, "w", TN_F64, TN_SHAPE(1, 2), NULL), *b = param(net, "b", TN_F64, TN_SHAPE(2), NULL);
    tn_optimizer  *o = tn_sgd_new(net, .lr = 0.5, .weight_decay = 0.1);
    tn_group_new(o, .vectors = true, .lr = 0.25, .weight_decay = 0);
    gradient(w, (double[]){1, 2}), gradient(b, (double[]){1, 2});
    tn_step(o);
    ck_assert(close_to(tn_get(w, 0), 1 - 0.5 * 1.1) && close_to(tn_get(w, 1), 1 - 0.5 * 2.1));
    ck_assert(close_to(tn_get(b, 0), 0.75) && close_to(tn_get(b, 1), 0.5));
    tn_optimizer_free(o);
    tn_free(net);
}

/* ---- which parameters are updated -------------------------------------------------------------------------------- */

TEST(frozen_ungraded_and_tied)
{
    tn_sequential *net = tn_sequential_new();
    tn_tensor     *a = param(net, "a", TN_F64, TN_SHAPE(2), NULL), *b = param(net, "b", TN_F64, TN_SHAPE(2), NULL);
    tn_tensor     *c = param(net, "c", TN_F64, TN_SHAPE(2), NULL);
    tn_tie(net, "again", a);
    tn_freeze_tensor(b);
    tn_optimizer *o = tn_adamw_new(net, .lr = 0.1);
    gradient(a, (double[]){1, -1});
    ck_assert_int_eq(tn_step(o), TN_OK);
    ck_assert(close_to(tn_get(a, 0), 0.999 - 0.1 / (1 + 1e-8))); /* once, not twice */
    ck_assert(tn_get(b, 0) == 1 && tn_get(c, 0) == 1);           /* no decay of parameters without a gradient */
    ck_assert(tn_optimizer_state(o, a, "exp_avg") && !tn_optimizer_state(o, c, "exp_avg") &&
              !tn_optimizer_state(o, b, "exp_avg"));
    ck_assert(!tn_optimizer_state(o, a, "nonsense"));
    tn_requires_grad(b); /* no longer frozen: it starts with its own step 1 */
    gradient(b, (double[]){1, 1});
    ck_assert_int_eq(tn_step(o), TN_OK);
    ck_assert(close_to(tn_get(b, 0), 0.999 - 0.1 / (1 + 1e-8)));
    ck_assert_str_eq(tn_optimizer_name(o), "AdamW");
    ck_assert_int_eq(tn_steps(o), 2);
    tn_free(net); /* the optimizer has references to its parameters */
    ck_assert(close_to(tn_get(tn_optimizer_state(o, b, "exp_avg"), 0), 0.1));
    tn_optimizer_free(o);
}

/* A weight that is a strided view is updated like a contiguous one. */
TEST(strided_weights)
{
    for (int k = 0; k < TN_CASE_KINDS; k++) {
        tn_sequential *dense = tn_case_new(TN_F32), *strided = tn_sequential_new();
        for (tn_each p = tn_parameters(dense); tn_next(&p);) {
            const tn_scope s = tn_no_grad_begin();
            tn_tensor     *t = tn_transpose(tn_detach(p.tensor), 0, -1), *copy = tn_empty_of(TN_F32, tn_shape_of(t));
            tn_copy_from(copy, t);
            t = tn_transpose(copy, 0, -1);
            ck_assert(tn_is_contiguous(t) == (tn_ndim(t) == 1));
            tn_param(strided, p.name, t);
            tn_scope_end(s);
        }
        tn_optimizer *o = tn_case_kinds[k].make(dense), *q = tn_case_kinds[k].make(strided);
        tn_case_steps(dense, o, 1, 6, tn_case_kinds[k].parts);
        ck_assert_msg(tn_case_steps(strided, q, 1, 6, tn_case_kinds[k].parts) == TN_OK, "%s", tn_error_message());
        ck_assert_msg(tn_case_same(dense, strided), "%s", tn_case_kinds[k].name);
        tn_optimizer_free(o), tn_optimizer_free(q);
        tn_free(dense), tn_free(strided);
    }
}

static float as_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, 4);
    return x;
}

/* bf16 weights: the update is that of f32, with f32 state; the result is rounded. */
TEST(bf16_weights)
{
    tn_sequential *net = tn_case_new(TN_BF16), *wide = tn_case_new(TN_F32);
    tn_optimizer  *o = tn_adamw_new(net, .lr = 0.02), *q = tn_adamw_new(wide, .lr = 0.02);
    for (int t = 1; t <= 20; t++) {
        tn_each        p = tn_parameters(net), w = tn_parameters(wide);
        const tn_scope s = tn_no_grad_begin();
        while (tn_next(&p) && tn_next(&w)) tn_copy_from(w.tensor, p.tensor);
        tn_scope_end(s);
        tn_case_backward(net, t, 0);
        for (p = tn_parameters(net), w = tn_parameters(wide); tn_next(&p) && tn_next(&w);) { /* the same gradients */
            if (!tn_grad(p.tensor)) continue;
            double g[12];
            for (int64_t i = 0; i < tn_numel(p.tensor); i++) g[i] = tn_get(tn_grad(p.tensor), i);
            gradient(w.tensor, g);
        }
        tn_step(o), tn_step(q);
        for (p = tn_parameters(net), w = tn_parameters(wide); tn_next(&p) && tn_next(&w);)
            for (int64_t i = 0; i < tn_numel(p.tensor); i++)
                ck_assert_double_eq(tn_get(p.tensor, i), (double)as_bf16((float)tn_get(w.tensor, i)));
    }
    ck_assert_int_eq(tn_dtype_of(tn_optimizer_state(o, tn_find_tensor(net, "w"), "exp_avg")), TN_F32);
    ck_assert_int_eq(tn_error(), TN_OK);
    tn_optimizer_free(o), tn_optimizer_free(q);
    tn_free(net), tn_free(wide);
}

/* ---- clipping ---------------------------------------------------------------------------------------------------- */

/* Each weight uses the epsilon of its own dtype, whichever parameter comes first. */
TEST(adafactor_epsilon)
{
    static const char *const name[] = {"a", "b", "c"};
    static const tn_dtype    type[] = {TN_BF16, TN_F32, TN_F64};
    for (int first = 0; first < 3; first++) {
        tn_sequential *net = tn_sequential_new();
        tn_tensor     *w[3];
        for (int i = 0; i < 3; i++) w[i] = param(net, name[i], type[(first + i) % 3], TN_SHAPE(1, 1), (double[]){0.25});
        tn_optimizer *o = tn_adafactor_new(net, .lr = 1, .beta2_decay = -0.3, .eps2 = 0.5, .d = 2, .weight_decay = 0.1);
        for (int i = 0; i < 3; i++) gradient(w[i], (double[]){1e-3});
        ck_assert_int_eq(tn_step(o), TN_OK);
        for (int i = 0; i < 3; i++) { /* PyTorch has 0.1602 in bf16; the other gradients are above their epsilon */
            const double is = tn_get(w[i], 0), should = tn_dtype_of(w[i]) == TN_BF16 ? 0.1602 : -0.275;
            ck_assert_msg(fabs(is - should) < 1e-3, "%s: %g", tn_dtype_name(tn_dtype_of(w[i])), is);
        }
        tn_optimizer_free(o);
        tn_free(net);
    }
}

TEST(clipping)
{
    tn_sequential *net = tn_sequential_new();
    tn_tensor     *a = param(net, "a", TN_F64, TN_SHAPE(2), NULL), *b = param(net, "b", TN_F32, TN_SHAPE(2), NULL);
    param(net, "none", TN_F32, TN_SHAPE(0), NULL);
    ck_assert_double_eq(tn_clip_grads(net, .clip.norm = 1), 0); /* no gradients at all */
    gradient(a, (double[]){3, -4}), gradient(b, (double[]){12, 0});
    ck_assert(close_to(tn_clip_grads(net, .clip.norm = 100), 13));
    ck_assert(tn_get(tn_grad(a), 1) == -4 && tn_get(tn_grad(b), 0) == 12);
    ck_assert(close_to(tn_clip_grads(net, .clip.norm = 1), 13));
    ck_assert(close_to(tn_get(tn_grad(a), 1), -4 / (13 + 1e-6)));
    ck_assert(fabs(tn_get(tn_grad(b), 0) - 12.0 / 13) < 1e-6);
    tn_zero_grads(net);
    gradient(a, (double[]){3, -4}), gradient(b, (double[]){12, 0});
    ck_assert_double_eq(tn_clip_grads(net, .clip.norm = 1, .clip.largest = true), 12);
    ck_assert(close_to(tn_get(tn_grad(a), 1), -4 / (12 + 1e-6)));
    tn_zero_grads(net);
    gradient(a, (double[]){3, -4}), gradient(b, (double[]){12, 0});
    ck_assert(close_to(tn_clip_grads(net, .clip.value = 3.5), 13));
    ck_assert(tn_get(tn_grad(a), 0) == 3 && tn_get(tn_grad(a), 1) == -3.5 && tn_get(tn_grad(b), 0) == 3.5);

    /* squares that overflow f32, and f64 */
    tn_zero_grads(net);
    gradient(b, (double[]){3e30, 4e30});
    ck_assert(fabs(tn_clip_grads(net, .clip.norm = INFINITY) / 5e30 - 1) < 1e-6);
    gradient(a, (double[]){3e200, -4e200});
    ck_assert(close_to(tn_clip_grads(net, .clip.norm = 1, .clip.error_if_nonfinite = true), 5e200));
    ck_assert(close_to(tn_get(tn_grad(a), 1), -0.8) && tn_get(tn_grad(b), 0) == 0);

    gradient(a, (double[]){1.7e308, 1.7e308}); /* and a norm that overflows f64 */
    ck_assert(isnan(tn_clip_grads(net, .clip.norm = 1, .clip.error_if_nonfinite = true)));
    ck_error(TN_ENUMERIC, "tn_clip_grads: the gradient of 'a' is too large: its square overflows f64; nothing was "
                          "changed");

    /* NaN: an error that changes nothing, or NaN everywhere, as in PyTorch */
    tn_zero_grads(net);
    gradient(a, (double[]){1, 2}), gradient(b, (double[]){NAN, 5});
    ck_assert(isnan(tn_clip_grads(net, .clip.norm = 1, .clip.error_if_nonfinite = true)));
    ck_error(TN_ENUMERIC, "tn_clip_grads: the gradient of 'b' has a NaN or Inf; nothing was changed");
    ck_assert(tn_get(tn_grad(a), 1) == 2 && tn_get(tn_grad(b), 1) == 5);
    ck_assert(isnan(tn_clip_grads(net, .clip.norm = 1)) && isnan(tn_get(tn_grad(a), 0)));
    tn_zero_grads(net);
    gradient(b, (double[]){1, NAN});
    tn_clip_grads(net, .clip.value = 0.5);
    ck_assert(tn_get(tn_grad(b), 0) == 0.5 && isnan(tn_get(tn_grad(b), 1)));

    tn_clip_grads(net, .clip.value = -1);
    ck_error(TN_EINVAL, "tn_clip_grads: .clip.value is -1, but must not be negative; 0 disables clipping");
    tn_clip_grads(net);
    ck_error(TN_EINVAL, "tn_clip_grads: set .clip.norm or .clip.value");
    tn_clip_grads(net, .clip.value = 1, .clip.norm = 1);
    ck_error(TN_EINVAL, "tn_clip_grads: .clip.norm and .clip.value are both set; choose one");
    tn_clip_grads((tn_sequential *)NULL, .clip.value = 1);
    ck_error(TN_EINVAL, "tn_clip_grads: the module is NULL");
    tn_free(net);
}

/* Tensors that end where a chunk ends, and long ones: each element counts once. */
TEST(norms_of_many)
{
    static const int64_t size[] = {16384, 16384, 1, 16383, 50000, 16384};
    tn_sequential       *net = tn_sequential_new();
    int64_t              all = 0;
    for (int i = 0; i < 6; i++) {
        tn_tensor     *t = param(net, tn_name("%d", i), TN_F32, TN_SHAPE(size[i]), NULL);
        const tn_scope s = tn_scope_begin();
        ck_assert_int_eq(tn_backward(tn_sum(tn_mul_scalar(t, i + 1))), TN_OK);
        tn_scope_end(s);
        all += size[i] * (i + 1) * (i + 1);
    }
    ck_assert(close_to(tn_clip_grads(net, .clip.norm = INFINITY), sqrt((double)all)));
    ck_assert_double_eq(tn_clip_grads(net, .clip.norm = INFINITY, .clip.largest = true), 6);
    tn_free(net);
}

/* With .error_if_nonfinite a step with a NaN changes nothing; without it NaN propagates, as in PyTorch. */
TEST(nonfinite_gradients)
{
    for (int k = 0; k < 3; k++) {
        tn_sequential *net = tn_sequential_new();
        tn_tensor     *a = param(net, "a", TN_F32, TN_SHAPE(2), NULL), *b = param(net, "b", TN_F32, TN_SHAPE(2), NULL);
        const tn_clip  clip = {.norm = k == 0 ? 0 : 1, .largest = k == 2, .error_if_nonfinite = true};
        tn_optimizer  *o = k == 0   ? tn_adamw_new(net, .clip = clip)
                           : k == 1 ? tn_sgd_new(net, .momentum = 0.9, .dampening = 0.5, .clip = clip)
                                    : tn_lamb_new(net, .clip = clip);
        gradient(a, (double[]){1, 2}), gradient(b, (double[]){1, k == 1 ? -INFINITY : NAN});
        ck_fails(tn_step(o), TN_ENUMERIC,
                 "tn_step: the gradient of 'b' has a NaN or Inf; nothing was changed; to continue, call tn_clear_error "
                 "and tn_zero_grads");
        ck_assert(tn_get(a, 0) == 1 && tn_get(b, 0) == 1 && tn_steps(o) == 0 && tn_get(tn_grad(a), 1) == 2);
        ck_assert(!tn_optimizer_state(o, a, k == 1 ? "momentum_buffer" : "exp_avg"));
        tn_zero_grads(net);
        gradient(a, (double[]){3, 4}), gradient(b, (double[]){0, 0});
        ck_assert_int_eq(tn_step(o), TN_OK);
        ck_assert(fabs(tn_grad_norm(o) - (k == 2 ? 4 : 5)) < 1e-6 && tn_steps(o) == 1);
        if (k == 1) /* the first buffer is the whole gradient, also after a step that failed */
            ck_assert(fabs(tn_get(tn_optimizer_state(o, a, "momentum_buffer"), 1) - 0.8) < 1e-6);
        tn_optimizer_free(o);
        tn_free(net);
    }
    tn_sequential *net = tn_sequential_new();
    tn_tensor     *a = param(net, "a", TN_F32, TN_SHAPE(2), NULL);
    tn_optimizer  *o = tn_adam_new(net, .clip.error_if_nonfinite = true), *plain = tn_sgd_new(net, .clip.norm = 1);
    gradient(a, (double[]){1e30, 1});
    tn_step(o);
    ck_error(TN_ENUMERIC,
             "tn_step: the gradient of 'a' is too large: its square overflows f32; nothing was changed; to continue, "
             "call tn_clear_error and tn_zero_grads");
    tn_zero_grads(net);
    gradient(a, (double[]){NAN, 1});
    ck_assert_int_eq(tn_step(plain), TN_OK);
    ck_assert(isnan(tn_get(a, 1)) && isnan(tn_grad_norm(plain)));
    tn_optimizer_free(o), tn_optimizer_free(plain);
    tn_free(net);
    for (int k = 0; k < 2; k++) { /* in f64 */
        net = tn_sequential_new();
        a = param(net, "a", TN_F64, TN_SHAPE(2), NULL);
        o = tn_adagrad_new(net, .clip.error_if_nonfinite = true);
        gradient(a, (double[]){k ? 1.4e154 : 1.3e154, 1});
        ck_assert_int_eq(tn_step(o), k ? TN_ENUMERIC : TN_OK);
        if (k)
            ck_error(TN_ENUMERIC,
                     "tn_step: the gradient of 'a' is too large: its square overflows f64; nothing was changed; to "
                     "continue, call tn_clear_error and tn_zero_grads");
        tn_optimizer_free(o), tn_free(net);
    }
}

/* ---- accumulation ------------------------------------------------------------------------------------------------ */

TEST(accumulation)
{
    tn_sequential *net = tn_sequential_new();
    tn_tensor     *a = param(net, "a", TN_F64, TN_SHAPE(2), NULL);
    tn_optimizer  *o = tn_sgd_new(net, .lr = 1, .clip.norm = 10);
    tn_accumulate(o, 3);
    for (int i = 1; i <= 3; i++) {
        gradient(a, (double[]){3 * i, 0});
        ck_assert_int_eq(tn_step(o), TN_OK);
        ck_assert_int_eq(tn_steps(o), i == 3);
        ck_assert(tn_get(a, 0) == (i == 3 ? -5 : 1));
        if (i == 2) {
            tn_accumulate(o, 2);
            ck_error(TN_ESTATE, "tn_accumulate: 2 of 3 parts wait for the update; change n after it");
        }
    }
    ck_assert_double_eq(tn_grad_norm(o), 6); /* norm of the mean */
    ck_assert_ptr_null(tn_grad(a));
    tn_accumulate(o, 0);
    ck_error(TN_EINVAL, "tn_accumulate: n is 0, but must be at least 1");
    tn_accumulate(NULL, 1);
    ck_error(TN_EINVAL, "tn_accumulate: the optimizer is NULL");
    tn_optimizer_free(o);
    tn_free(net);
}

/* ---- averages ---------------------------------------------------------------------------------------------------- */

/* Copies of the weights until the mean starts: averaged SGD. */
TEST(means)
{
    tn_sequential *net = tn_sequential_new();
    tn_tensor     *a = param(net, "a", TN_F64, TN_SHAPE(2), (double[]){1, 2});
    tn_ema        *e = tn_ema_new(net, .mean = true);
    const double   seen[] = {4, 8, 3, 7, 5}, want[] = {4, 8, 3, 5, 5};
    for (int i = 0; i < 5; i++) {
        if (i == 2) tn_ema_start(e);
        const tn_scope s = tn_no_grad_begin();
        tn_fill(a, seen[i]);
        tn_scope_end(s);
        tn_ema_update(e), tn_ema_swap(e);
        ck_assert(close_to(tn_get(a, 1), want[i]) && tn_ema_started(e) == (i > 1));
        tn_ema_swap(e);
    }
    tn_ema *other = tn_ema_new(net);
    tn_ema_start(other);
    ck_error(TN_EINVAL, "tn_ema_start: these averages have no .mean");
    tn_ema_start(NULL);
    ck_error(TN_EINVAL, "tn_ema_start: the averages are NULL");
    tn_ema_free(e), tn_ema_free(other);
    tn_free(net);
}

TEST(averages)
{
    tn_sequential *net = tn_sequential_new();
    tn_tensor     *a = param(net, "a", TN_F64, TN_SHAPE(2), (double[]){1, 2}),
              *b = param(net, "b", TN_BF16, TN_SHAPE(2), NULL);
    tn_ema  *e = tn_ema_new(net, .decay = 0.75, .warmup = true);
    tn_scope s = tn_no_grad_begin();
    tn_fill(a, 5), tn_fill(b, 1.0078125);
    tn_scope_end(s);
    ck_assert_int_eq(tn_ema_update(e), TN_OK); /* decay 1/10 */
    ck_assert_int_eq(tn_ema_swap(e), TN_OK);
    ck_assert(close_to(tn_get(a, 0), 1 + 0.9 * 4) && close_to(tn_get(a, 1), 2 + 0.9 * 3));
    tn_ema_update(e);
    ck_error(TN_ESTATE, "tn_ema_update: the averages are swapped with the weights; call tn_ema_swap first");
    tn_ema_swap(e);
    ck_assert(tn_get(a, 0) == 5 && tn_get(a, 1) == 5 && tn_get(b, 1) == 1.0078125);

    /* with f32 averages, bf16 weights move their average by less than bf16 can represent */
    tn_ema *slow = tn_ema_new(net, .decay = 0.99);
    s = tn_no_grad_begin();
    tn_fill(b, 2);
    tn_scope_end(s);
    for (int i = 0; i < 100; i++) tn_ema_update(slow);
    tn_ema_swap(slow);
    ck_assert_double_eq_tol(tn_get(b, 0), 2 - pow(0.99, 100) * (2 - 1.0078125), 0.004);
    tn_ema_swap(slow);
    ck_assert_double_eq(tn_get(b, 0), 2);

    tn_ema_new(net, .decay = 1.5);
    ck_error(TN_EINVAL, "tn_ema_new: .decay is 1.5, but must be from 0 to 1");
    tn_ema_new((tn_sequential *)NULL);
    ck_error(TN_EINVAL, "tn_ema_new: the module is NULL: its constructor failed and the error was cleared");
    tn_sequential *empty = tn_sequential_new();
    tn_ema_new(empty);
    ck_error(TN_EINVAL, "tn_ema_new: the module has no parameters");
    tn_ema_update(NULL);
    ck_error(TN_EINVAL, "tn_ema_update: the averages are NULL");
    tn_ema_swap(NULL);
    ck_error(TN_EINVAL, "tn_ema_swap: the averages are NULL");
    tn_module_to(net, TN_F32);
    tn_ema_update(e);
    ck_error(TN_ESTATE, "tn_ema_update: the shape or dtype of 'a' has changed since tn_ema_new");
    tn_free(empty);
    tn_ema_free(e), tn_ema_free(slow);
    tn_free(net);
}

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

TEST(wrong_use)
{
    tn_sequential *net = tn_sequential_new(), *empty = tn_sequential_new();
    tn_tensor     *a = param(net, "layer", TN_F32, TN_SHAPE(2), NULL);
    ck_refused(tn_adamw_new((tn_sequential *)NULL), TN_EINVAL,
               "tn_adamw_new: the module is NULL: its constructor failed and the error was cleared");
    ck_refused(tn_sgd_new(empty), TN_EINVAL, "tn_sgd_new: the module has no parameters");
    ck_refused(tn_sgd_new(net, .lr = -0.1), TN_EINVAL,
               "tn_sgd_new: lr is -0.1, but must not be negative, nor infinite");
    ck_refused(tn_sgd_new(net, .nesterov = true), TN_EINVAL,
               "tn_sgd_new: .nesterov needs a .momentum and no .dampening");
    ck_refused(tn_sgd_new(net, .dampening = 0.5), TN_EINVAL,
               "tn_sgd_new: .dampening is 0.5 but has no effect because .momentum is 0; set .momentum "
               "or remove .dampening");
    ck_refused(tn_rmsprop_new(net, .alpha = 1.5), TN_EINVAL, "tn_rmsprop_new: alpha is 1.5, but must be from 0 to 1");
    ck_refused(tn_adam_new(net, .beta1 = 0.9, .beta2 = 1), TN_EINVAL,
               "tn_adam_new: beta2 is 1, but must be at least 0 and less than 1");
    ck_refused(tn_adam_new(net, .eps = NAN), TN_EINVAL,
               "tn_adam_new: eps is nan, but must not be negative, nor infinite");
    ck_refused(tn_adam_new(net, .clip.norm = -2), TN_EINVAL,
               "tn_adam_new: .clip.norm is -2, but must not be negative; 0 disables clipping");
    ck_refused(tn_adam_new(net, .clip.value = 2, .clip.largest = true), TN_EINVAL,
               "tn_adam_new: .clip.largest is set but has no effect because .clip.norm is 0");
    ck_refused(tn_ema_new(net, .mean = true, .decay = 0.5), TN_EINVAL,
               "tn_ema_new: .mean is a plain mean, which excludes .decay and .warmup");
    ck_refused(tn_ema_new(net, .mean = true, .warmup = true), TN_EINVAL,
               "tn_ema_new: .mean is a plain mean, which excludes .decay and .warmup");
    ck_refused(tn_adagrad_new(net, .initial = -2), TN_EINVAL,
               "tn_adagrad_new: .initial is -2, but must not be negative, nor infinite");
    ck_refused(tn_adafactor_new(net, .beta2_decay = 0.5), TN_EINVAL,
               "tn_adafactor_new: beta2_decay is 0.5, but must not be positive");
    ck_refused(tn_adafactor_new(net, .d = 0.5), TN_EINVAL, "tn_adafactor_new: d is 0.5, but must be at least 1");
    ck_refused(tn_adafactor_new(net, .eps = NAN), TN_EINVAL,
               "tn_adafactor_new: eps is nan, but must be finite; below 0 is the machine epsilon of the "
               "dtype");
    tn_step(NULL);
    ck_error(TN_EINVAL, "tn_step: the optimizer is NULL");

    tn_optimizer *o = tn_sgd_new(net, .lr = 0, .momentum = 0.5, .nesterov = true);
    ck_assert_double_eq(tn_lr(o, 0), 0);
    tn_step(o);
    ck_error(TN_ESTATE, "tn_step: none of the 1 parameters has a gradient; call tn_backward first");
    tn_freeze(net, true);
    tn_step(o);
    ck_error(TN_ESTATE, "tn_step: all 1 parameters are frozen; unfreeze some with tn_requires_grad");
    tn_freeze(net, false);
    gradient(a, (double[]){1, 1});
    tn_raise(TN_EINVAL, "something else"); /* while an error is set, nothing happens */
    ck_assert_int_eq(tn_step(o), TN_EINVAL);
    ck_assert_int_eq(tn_set_lr(o, 0, 1), TN_EINVAL);
    ck_refused(tn_sgd_new(net), TN_EINVAL, "something else");
    ck_assert(tn_get(a, 0) == 1 && tn_grad(a) && tn_steps(o) == 0 && tn_lr(o, 0) == 0);
    ck_assert_int_eq(tn_step(o), TN_OK);
    tn_step(o);
    ck_error(
        TN_ESTATE,
        "tn_step: none of the 1 parameters has a gradient; call tn_backward first; each step zeroes the gradients");
    tn_set_option(o, 0, TN_OPT_MOMENTUM, 0);
    ck_error(TN_EINVAL, "tn_set_option: momentum is 0, but Nesterov momentum must be positive");
    tn_module_to(net, TN_F64);
    gradient(a, (double[]){1, 1});
    tn_step(o);
    ck_error(TN_ESTATE, "tn_step: 'layer' is f64 [2] now, but was f32 [2] in tn_sgd_new; create the optimizer after "
                        "tn_module_to");
    tn_optimizer_free(o);
    tn_optimizer_free(NULL);
    tn_ema_free(NULL);
    tn_free(net), tn_free(empty);
}

/* A step increments the weights' versions: a tape recorded before it raises an error instead of wrong gradients. */
TEST(old_tapes)
{
    tn_sequential *net = tn_sequential_new();
    tn_tensor     *a = param(net, "a", TN_F32, TN_SHAPE(2), NULL);
    tn_optimizer  *o = tn_sgd_new(net);
    tn_tensor     *y = tn_sum(tn_square(a));
    gradient(a, (double[]){1, 1});
    tn_step(o);
    ck_assert_int_eq(tn_backward(y), TN_ESTATE);
    ck_assert_msg(strstr(tn_error_message(), "tn_data_mut"), "%s", tn_error_message());
    tn_clear_error();
    tn_optimizer_free(o);
    tn_free(net);
}

/* ---- failing allocations ----------------------------------------------------------------------------------------- */

/* At each failing allocation of a step, nothing has changed, and the retry gives the same bits. */
static void a_step_fails(const tn_case_kind *k, bool for_ever)
{
    tn_sequential *done = NULL;
    for (int64_t at = -1, calls = 0; at <= calls; at++) { /* -1: no failure */
        const tn_scope scope = tn_scope_begin();
        tn_sequential *net = tn_case_new(TN_F32);
        tn_optimizer  *o = k->make(net);
        tn_case_steps(net, o, 1, 4, k->parts); /* e has its first gradient in step 5, when its state is created */
        for (int part = 0; part < k->parts; part++) {
            tn_case_backward(net, 5, part);
            if (part + 1 < k->parts) tn_step(o);
        }
        tn_sequential *before = tn_copy(net);
        tn_fail_memory(at, for_ever);
        const tn_status s = tn_step(o);
        calls = tn_memory_calls();
        tn_fail_memory(-1, false);
        if (s != TN_OK) {
            ck_assert_int_eq(s, TN_ENOMEM);
            tn_clear_error();
            ck_assert(tn_case_same(net, before) && tn_steps(o) == 4 && tn_grad(tn_find_tensor(net, "e")));
            ck_assert_int_eq(tn_step(o), TN_OK);
        }
        tn_case_steps(net, o, 6, 8, k->parts);
        if (done) ck_assert_msg(tn_case_same(net, done), "%s, allocation %lld", k->name, (long long)at);
        tn_optimizer_free(o);
        tn_free(before);
        if (done) tn_free(net);
        else done = net;
        tn_scope_end(scope);
    }
    tn_free(done);
}

/* Starts with the creation of the optimizer. */
static void scenario(const tn_case_kind *k, tn_sequential *net)
{
    tn_optimizer *o = k->make(net);
    tn_ema       *e = tn_ema_new(net, .decay = 0.9);
    if (o) tn_group_new(o, .vectors = true, .lr = 0.5);
    for (int part = 0; part < k->parts && o; part++) tn_case_backward(net, 1, part), tn_step(o);
    if (e) tn_ema_update(e), tn_ema_swap(e), tn_ema_swap(e);
    tn_case_backward(net, 3, 0);
    tn_clip_grads(net, .clip.norm = 0.1);
    tn_zero_grads(net);
    tn_ema_free(e);
    tn_optimizer_free(o);
}

TEST_EACH(memory_fails, TN_CASE_KINDS)
{
    tn_faulty_memory_begin();
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        a_step_fails(tn_case_kinds + _i, for_ever);
        for (int64_t at = 0, calls = 0; at <= calls; at += tn_test_slow() ? 3 : 1) {
            const tn_scope scope = tn_scope_begin();
            tn_sequential *net = tn_case_new(TN_F32);
            tn_fail_memory(at, for_ever);
            scenario(tn_case_kinds + _i, net);
            calls = tn_memory_calls();
            tn_fail_memory(-1, false);
            ck_assert_msg(tn_error() == (at < calls ? TN_ENOMEM : TN_OK), "%s", tn_error_message());
            tn_clear_error();
            tn_free(net);
            tn_scope_end(scope);
        }
    }
    tn_faulty_memory_end();
}

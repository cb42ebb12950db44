/* gradients.c — examples of the tape: backward, higher derivatives, hooks, checkpointing, profiles, custom ops. */
#include "show.h"

EXAMPLE(backward)
{
    tn_tensor *x = tn_requires_grad(tn_arange_of(TN_F32, 1, 4, 1));
    tn_backward(tn_sum(tn_square(x)));
    tn_print(stdout, tn_grad(x)); /* 2 x */
    tn_zero_grad(x);
    printf("%d %d\n", tn_grad(x) == NULL, tn_needs_grad(tn_square(x)));
}

EXAMPLE(detach)
{
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2)));
    tn_backward(tn_sum(tn_mul(x, tn_detach(x)))); /* the second factor is a constant */
    tn_print(stdout, tn_grad(x));
    printf("%d\n", tn_needs_grad(tn_freeze_tensor(x)));
}

EXAMPLE(retain)
{
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2))), *y = tn_exp(x);
    tn_retain_grad(y);
    tn_tensor *loss = tn_sum(y);
    tn_backward(loss, .retain = true);
    tn_backward(loss); /* adds to the gradients */
    tn_print(stdout, tn_grad(x));
    tn_print(stdout, tn_grad(y));
}

EXAMPLE(higher_derivatives)
{
    tn_tensor *x = tn_requires_grad(tn_full(TN_SHAPE(1), 2)), *y = tn_sum(tn_pow_scalar(x, 3));
    tn_tensor *first;
    tn_grad_of(y, 1, &x, &first, .create_graph = true);
    tn_tensor *second = tn_grad_wrt(tn_sum(first), x, false);
    printf("%g %g\n", tn_item(first), tn_item(second)); /* 3 x², 6 x */
}

static tn_tensor *twice(tn_tensor *grad, void *user)
{
    (void)user;
    return tn_mul_scalar(grad, 2);
}

EXAMPLE(gradient_hook)
{
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2)));
    tn_on_grad(x, twice, NULL);
    tn_backward(tn_sum(x));
    tn_print(stdout, tn_grad(x));
}

EXAMPLE(gradient_rows)
{
    tn_tensor *table = tn_requires_grad(tn_zeros(TN_SHAPE(100, 2))), *rows;
    tn_tensor *index = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){7, 3});
    tn_backward(tn_sum(tn_embedding(table, index, -1, true)));
    tn_print(stdout, tn_grad_rows(table, &rows));
    tn_print(stdout, rows);
}

EXAMPLE(autocast)
{
    tn_scope   s = tn_autocast_begin(true);
    tn_tensor *y = tn_matmul(tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(3, 2)));
    printf("%s\n", tn_dtype_name(tn_dtype_of(y)));
    tn_scope_end(s);
}

static tn_tensor *layer(tn_tensor *const *in, int n, void *user)
{
    (void)n, (void)user;
    return tn_tanh(tn_exp(in[0]));
}

EXAMPLE(checkpointing)
{
    tn_tensor *x = tn_requires_grad(tn_zeros(TN_SHAPE(2)));
    tn_tensor *y = tn_checkpoint(layer, NULL, 1, &x); /* saves nothing inside; the backward runs layer again */
    tn_backward(tn_sum(y));
    tn_print(stdout, tn_grad(x));
}

EXAMPLE(memory_budget)
{
    tn_budget *b = tn_budget_new((size_t)1 << 30);
    tn_tensor *x = tn_requires_grad(tn_zeros(TN_SHAPE(2)));
    do {
        tn_scope s = tn_scope_begin();
        tn_budget_begin(b, 0);
        printf("open %d\n", tn_budget_is_open());
        tn_backward(tn_sum(tn_recomputable(layer, NULL, 1, &x)));
        tn_scope_end(s);
    } while (tn_budget_again(b));
    tn_budget_report r = tn_budget_last(b);
    printf("%d of %d segments recomputed\n", (int)r.recomputed, (int)r.segments);
    tn_budget_free(b);
}

static tn_tensor *half_of_block(int64_t block, int half, tn_tensor *x, tn_tensor **memo, const void *user)
{
    (void)block, (void)half, (void)memo, (void)user;
    return tn_mul_scalar(x, 0.5);
}

EXAMPLE(reversible)
{
    tn_tensor *x[2] = {tn_requires_grad(tn_ones(TN_SHAPE(1))), tn_requires_grad(tn_ones(TN_SHAPE(1)))}, *y[2];
    tn_reversible(half_of_block, NULL, 0, 2, x, y);
    tn_backward(tn_sum(tn_add(y[0], y[1])));
    printf("%g %g\n", tn_item(y[0]), tn_item(tn_grad(x[0])));
}

static tn_tensor *swish(tn_tensor *const *in, int n, void *user)
{
    (void)n, (void)user;
    return tn_mul(in[0], tn_sigmoid(in[0]));
}

EXAMPLE(gradcheck)
{
    tn_tensor *x = tn_requires_grad(tn_normal_of(TN_F64, TN_SHAPE(3), 0, 1));
    printf("%s\n", tn_status_name(tn_gradcheck(swish, .input = x, .name = "swish", .second = true)));
}

EXAMPLE(anomaly)
{
    tn_detect_anomaly(true);
    tn_tensor *y = tn_log(tn_full(TN_SHAPE(2), -1));
    printf("%s: %s\n", y ? "" : tn_status_name(tn_error()), tn_error_message());
    tn_clear_error();
    tn_detect_anomaly(false);
}

EXAMPLE(profile)
{
    tn_profile *p = tn_profile_begin();
    tn_span_begin("my part");
    tn_exp(tn_ones(TN_SHAPE(10)));
    tn_span_end();
    tn_profile_end(p);
    tn_profile_row row;
    for (int64_t i = 0; tn_profile_row_at(p, i, &row); i++) printf("%s: %d call\n", row.name, (int)row.calls);
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere) tn_profile_table(nowhere, p), fclose(nowhere);
    tn_profile_trace(p, "example-trace.json");
    tn_profile_free(p);
    tn_profile_close(tn_profile_from_env(), stdout); /* NULL unless TENON_PROFILE is set */
}

EXAMPLE(tape_graph)
{
    FILE *f = fopen("example.dot", "w"); /* dot -Tsvg example.dot draws it */
    if (!f) return;
    printf("%s\n", tn_status_name(tn_tape_dot(f, tn_exp(tn_requires_grad(tn_ones(TN_SHAPE(2)))))));
    fclose(f);
}

static void ready(const tn_tensor *leaf, const tn_tensor *grad, const tn_tensor *index, bool complete, void *user)
{
    (void)grad, (void)index, (void)user;
    printf("%s %s\n", tn_name_of(leaf), complete ? "complete" : "partial");
}

EXAMPLE(backward_notify)
{
    tn_tensor *a = tn_set_name(tn_requires_grad(tn_ones(TN_SHAPE(2))), "a");
    tn_tensor *b = tn_set_name(tn_requires_grad(tn_ones(TN_SHAPE(2))), "b");
    tn_backward_notify(tn_sum(tn_mul(tn_exp(a), b)), NULL, ready, NULL);
}

static tn_tensor *step(void *user) { return tn_exp(user); }

EXAMPLE(replay)
{
    tn_tensor *x = tn_zeros(TN_SHAPE(2));
    tn_replay *r = tn_replay_record(step, x); /* runs the step once */
    tn_fill(x, 1);
    tn_print(stdout, tn_replay_run(r)); /* for the values that x has now */
    tn_replay_free(r);
}

/* An op of the program: y = k x. */
typedef struct {
    double k;
} args_t;

static void scale_f32(int64_t n, void *const *y, const void *const *x, const void *args)
{
    for (int64_t i = 0; i < n; i++) ((float *)y[0])[i] = (float)((const args_t *)args)->k * ((const float *)x[0])[i];
}
static void scale_f64(int64_t n, void *const *y, const void *const *x, const void *args)
{
    for (int64_t i = 0; i < n; i++) ((double *)y[0])[i] = ((const args_t *)args)->k * ((const double *)x[0])[i];
}
static bool scale_infer(tn_ctx *c)
{
    if (TN_ARG(c, k) == 0) return tn_infer_fail(c, TN_EINVAL, "k is 0");
    return tn_infer_like(c, 0, 0);
}
static void        scale_forward(tn_ctx *c) { tn_op_map(scale_f32, scale_f64, 1, c->out, 1, c->in, c->args); }
static void        scale_backward(tn_back *b) { b->gx[0] = tn_mul_scalar(b->gy[0], TN_ARG(b, k)); }
static const tn_op scale = {.size = sizeof(tn_op),
                            .name = "scale",
                            .inputs = 1,
                            .args_size = sizeof(args_t),
                            .infer = scale_infer,
                            .forward = scale_forward,
                            .backward_ops = scale_backward,
                            .inplace = true,
                            .autocast = TN_AS_IS};

EXAMPLE(custom_op)
{
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(2)));
    tn_backward(tn_sum(tn_apply_args(&scale, &(args_t){3}, x)));
    tn_print(stdout, tn_grad(x));
    tn_print(stdout, tn_apply_args_(&scale, &(args_t){5}, tn_ones(TN_SHAPE(2)))); /* in place */
    tn_tensor *y = NULL;
    tn_op_call(&scale, 1, &x, 1, &y, &(args_t){0});
    printf("%s\n", tn_error_message());
    tn_clear_error();
    tn_print(stdout, tn_op_apply(&scale, &(args_t){2}, 1, &x));
}

/* Derivatives with respect to a weight: the function runs the module with its argument in place of the weight. */
static tn_tensor *squared_output(tn_tensor *const *in, int n, void *net)
{
    tn_tensor *w = tn_find_tensor((tn_module *)net, "weight");
    return tn_sum(tn_square(tn_functional_call((tn_module *)net, tn_ones(TN_SHAPE(1, 2)), n, &w, in)));
}

EXAMPLE(hessian_of_a_weight)
{
    tn_linear *net = tn_linear_new(.in = 2, .out = 1, .no_bias = true);
    tn_tensor *v = tn_from_data(TN_F32, TN_SHAPE(1, 2), (float[]){1, 0});
    tn_print(stdout, tn_hvp(squared_output, net->weight, v, net)); /* the Hessian is 2 in all elements */
    tn_free(net);
}

/* modules.c — examples of modules: layers, recurrent layers, walks over a module, state dicts, adapters. */
#include "show.h"

static void shape(const tn_tensor *t)
{
    char text[192];
    puts(tn_shape_text(tn_shape_of(t), text, sizeof text));
}

EXAMPLE(linear_module)
{
    tn_linear *m = tn_linear_new(.in = 3, .out = 2);
    shape(tn_call(m, tn_ones(TN_SHAPE(4, 3))));
    tn_print_module(stdout, m);
    tn_free(m);
}

EXAMPLE(sequential)
{
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 4, .out = 8));
    tn_append(net, tn_gelu_new());
    tn_append(net, tn_dropout_new(.p = 0.1));
    tn_append(net, tn_linear_new(.in = 8, .out = 2));
    tn_eval(net);
    shape(tn_call(net, tn_ones(TN_SHAPE(1, 4))));
    printf("%d modules, %d parameters\n", (int)tn_length(net), (int)tn_count(net));
    tn_linear *first = tn_at(net, 0);
    shape(first->weight);
    tn_train(net, true);
    tn_free(net);
}

/* A module of the program. */
typedef struct {
    tn_module  base;
    tn_linear *up, *down;
    tn_tensor *scale, *seen, *scratch;
} mlp;

static tn_tensor *mlp_forward(mlp *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    x = tn_gelu(tn_call(m->up, x));
    return tn_leave(f, tn_mul(tn_call(m->down, x), m->scale));
}
TN_FORWARD(mlp);

static mlp *mlp_new(int64_t dim)
{
    mlp *m = tn_module_new(mlp);
    if (!m) return NULL;
    m->up = tn_child(m, "up", tn_linear_new(.in = dim, .out = 4 * dim));
    m->down = tn_child(m, "down", tn_linear_new(.in = 4 * dim, .out = dim));
    m->scale = tn_param(m, "scale", tn_ones(TN_SHAPE(dim)));
    m->seen = tn_buffer(m, "seen", tn_zeros(TN_SHAPE(1)));
    m->scratch = tn_buffer_unsaved(m, "scratch", tn_zeros(TN_SHAPE(1)));
    return tn_built(m);
}

EXAMPLE(custom_module)
{
    mlp *m = mlp_new(2);
    shape(tn_call(m, tn_ones(TN_SHAPE(3, 2))));
    for (tn_each p = tn_parameters(m); tn_next(&p);) printf("%s ", p.name);
    for (tn_each p = tn_buffers(m); tn_next(&p);) printf("(%s) ", p.name);
    for (tn_each p = tn_modules(m); tn_next(&p);) printf("[%s] ", p.name);
    printf("\n");
    tn_free(m);
}

/* Two results, so tn_call cannot run it. */
typedef struct {
    tn_module  base;
    tn_tensor *rows;
} splitter;
TN_MODULE(splitter);

static void splitter_forward(splitter *m, tn_tensor *x, tn_tensor **left, tn_tensor **right)
{
    *left = *right = NULL;
    if (!tn_ready(m)) return;
    tn_frame f = tn_enter(m);
    *left = tn_select(x, 1, 0);
    *right = tn_select(x, 1, 1);
    tn_leave_n(f, left, right);
}

EXAMPLE(module_of_two_results)
{
    splitter *m = tn_module_new(splitter);
    if (!m) return;
    m->rows = tn_buffer_rows(m, "rows", tn_zeros(TN_SHAPE(2, 3))); /* row i belongs to row i of the batch */
    m = tn_built(m);
    tn_tensor *left, *right;
    splitter_forward(m, tn_view(tn_arange_of(TN_F32, 0, 4, 1), TN_SHAPE(2, 2)), &left, &right);
    tn_print(stdout, left);
    tn_print(stdout, right);
    tn_free(m);
}

EXAMPLE(finding_and_freezing)
{
    mlp *m = mlp_new(2);
    shape(tn_find_tensor(m, "up.weight"));
    tn_freeze((tn_linear *)tn_find(m, "up"), true);
    printf("%d of %d\n", (int)tn_count_trainable(m), (int)tn_count(m));
    tn_backward(tn_sum(tn_call(m, tn_ones(TN_SHAPE(1, 2)))));
    printf("%d %d\n", tn_grad(m->up->weight) == NULL, tn_grad(m->down->weight) != NULL);
    tn_zero_grads(m);
    mlp *copy = tn_copy(m);
    tn_assign(copy, m);
    printf("%d\n", tn_allclose(copy->scale, m->scale, 0, 0));
    tn_module_to(copy, TN_F64);
    printf("%s\n", tn_dtype_name(tn_dtype_of(copy->scale)));
    tn_summary(stdout, m);
    tn_free(copy);
    tn_free(m);
}

static tn_tensor *before(tn_module *m, tn_tensor *x, void *user)
{
    (void)m, (void)user;
    return tn_mul_scalar(x, 2);
}
static tn_tensor *after(tn_module *m, tn_tensor *x, tn_tensor *y, void *user)
{
    (void)m, (void)x;
    printf("%s %g\n", (const char *)user, tn_item(y));
    return NULL;
}

EXAMPLE(hooks)
{
    tn_identity *m = tn_identity_new();
    char         text[] = "result";
    tn_before(m, before, text);
    tn_after(m, after, text);
    tn_call(m, tn_ones(TN_SHAPE(1)));
    tn_remove_hooks(m, text);
    tn_call(m, tn_ones(TN_SHAPE(1)));
    tn_free(m);
}

EXAMPLE(module_lists)
{
    tn_module_list *list = tn_module_list_new();
    for (int i = 0; i < 3; i++) tn_append(list, tn_linear_new(.in = 2, .out = 2, .no_bias = true));
    tn_tensor *x = tn_ones(TN_SHAPE(1, 2));
    for (int64_t i = 0; i < tn_length(list); i++) x = tn_call((tn_linear *)tn_at(list, i), x);
    shape(x);
    tn_module_dict *dict = tn_module_dict_new();
    tn_child(dict, "en", tn_linear_new(.in = 2, .out = 3));
    tn_share(dict, tn_name("en_%d", 2), (tn_linear *)tn_find(dict, "en")); /* a second name */
    shape(tn_call((tn_linear *)tn_find(dict, "en_2"), tn_ones(TN_SHAPE(1, 2))));
    tn_free(dict);
    tn_free(list);
}

EXAMPLE(tied_weights)
{
    mlp *m = mlp_new(2);
    tn_tie(m, "gain", m->scale);         /* a second name */
    tn_tie_to(m, "factor", "down.bias"); /* by path */
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_NAME); tn_next(&p);) printf("%s ", p.name);
    printf("\n");
    tn_free(m);
}

EXAMPLE(embeddings)
{
    tn_embedding *m = tn_embedding_new(.count = 10, .dim = 3, .padding = 0);
    shape(tn_call(m, tn_from_data(TN_I64, TN_SHAPE(1, 2), (int64_t[]){3, 0})));
    shape(tn_embedding_rows(m, 2, 4));
    tn_embedding_bag *bag = tn_embedding_bag_new(.count = 10, .dim = 3, .mode = TN_BAG_SUM);
    shape(tn_embedding_bag_forward(bag, tn_arange(4), tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){0, 3}), NULL));
    tn_free(bag);
    tn_free(m);
}

EXAMPLE(norms)
{
    tn_tensor *x = tn_normal(TN_SHAPE(2, 4, 6), 3, 2); /* [N, C, L] */
    void      *m[] = {tn_layer_norm_new(.dim = 6), tn_rms_norm_new(.dim = 6), tn_batch_norm1d_new(.features = 4),
                      tn_group_norm_new(.groups = 2, .channels = 4), tn_instance_norm1d_new(.features = 4)};
    for (int i = 0; i < 5; i++) {
        tn_tensor *y = tn_call((tn_module *)m[i], x);
        printf("%s%s\n", ((tn_module *)m[i])->kind->name, fabs(tn_item(tn_mean(y))) < 1e-3 ? ": mean 0" : "");
        tn_free((tn_module *)m[i]);
    }
    tn_batch_norm *images = tn_batch_norm2d_new(.features = 3);
    tn_group_norm *each = tn_instance_norm2d_new(.features = 3);
    shape(tn_call(images, tn_call(each, tn_ones(TN_SHAPE(1, 3, 2, 2)))));
    tn_free(images);
    tn_free(each);
}

EXAMPLE(activations)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(2), (float[]){-1, 1});
    void      *m[] = {tn_relu_new(),        tn_selu_new(),
                      tn_silu_new(),        tn_mish_new(),
                      tn_tanh_new(),        tn_sigmoid_new(),
                      tn_logsigmoid_new(),  tn_leaky_relu_new(.slope = 0.1),
                      tn_elu_new(),         tn_gelu_new(.tanh = true),
                      tn_softplus_new(),    tn_softmax_new(),
                      tn_log_softmax_new(), tn_glu_new()};
    for (int i = 0; i < 14; i++) {
        printf("%s ", ((tn_module *)m[i])->kind->name);
        tn_print(stdout, tn_call((tn_module *)m[i], x));
        tn_free((tn_module *)m[i]);
    }
}

EXAMPLE(convolutions)
{
    tn_conv1d  *one = tn_conv1d_new(.in = 2, .out = 3, .size = 3, .padding = 1);
    tn_conv2d  *two = tn_conv2d_new(.in = 1, .out = 4, .size = 3, .stride = 2);
    tn_pool    *p[] = {tn_max_pool1d_new(.size = 2), tn_avg_pool1d_new(.size = 2), tn_max_pool2d_new(.size = 2),
                       tn_avg_pool2d_new(.size = 2)};
    tn_flatten *flat = tn_flatten_new();
    tn_tensor  *x = tn_call(one, tn_ones(TN_SHAPE(1, 2, 8)));
    shape(x);
    shape(tn_call(p[1], tn_call(p[0], x)));
    tn_tensor *y = tn_call(two, tn_ones(TN_SHAPE(1, 1, 9, 9)));
    shape(y);
    shape(tn_call(flat, tn_call(p[2], y)));
    shape(tn_call(p[3], y));
    for (int i = 0; i < 4; i++) tn_free(p[i]);
    tn_free(one);
    tn_free(two);
    tn_free(flat);
}

EXAMPLE(transposed_convolutions)
{
    tn_conv1d *one = tn_conv_transpose1d_new(.in = 2, .out = 3, .size = 4, .stride = 2, .padding = 1);
    tn_conv2d *two = tn_conv_transpose2d_new(.in = 2, .out = 1, .size = 3, .stride = 2, .output_padding = 1);
    shape(tn_call(one, tn_ones(TN_SHAPE(1, 2, 8)))); /* twice the length */
    shape(tn_call(two, tn_ones(TN_SHAPE(1, 2, 4, 5))));
    tn_free(one);
    tn_free(two);
}

/* The result has a given size, whatever the size of x. */
EXAMPLE(adaptive_pools)
{
    tn_pool *p[] = {tn_adaptive_avg_pool1d_new(.out = 2), tn_adaptive_max_pool1d_new(.out = 3),
                    tn_adaptive_avg_pool2d_new(.out = 1), tn_adaptive_max_pool2d_new(.out = 2, .out_w = 3)};
    for (int i = 0; i < 4; i++) {
        shape(tn_call(p[i], i < 2 ? tn_ones(TN_SHAPE(1, 4, 7)) : tn_ones(TN_SHAPE(1, 4, 7, 9))));
        tn_free(p[i]);
    }
}

/* The length and the direction of each row are parameters of their own. */
EXAMPLE(weight_norm_of_a_layer)
{
    tn_linear *m = tn_linear_new(.in = 2, .out = 1, .no_bias = true, .weight_norm = true);
    tn_print(stdout, tn_norm(m->weight_v));
    tn_init_constant(m->weight_g, 3);
    tn_print(stdout, tn_norm(tn_weight_norm(m->weight_v, m->weight_g, 0)));
    shape(tn_call(m, tn_ones(TN_SHAPE(4, 2))));
    tn_free(m);
}

EXAMPLE(bilinear)
{
    tn_bilinear *m = tn_bilinear_new(.in1 = 2, .in2 = 3, .out = 4);
    shape(tn_bilinear_forward(m, tn_ones(TN_SHAPE(5, 2)), tn_ones(TN_SHAPE(5, 3))));
    tn_free(m);
}

EXAMPLE(recurrent_layers)
{
    tn_tensor *x = tn_normal(TN_SHAPE(2, 5, 3), 0, 1), *h, *c; /* [B, T, in] */
    tn_lstm   *lstm = tn_lstm_new(.in = 3, .hidden = 4, .layers = 2, .bidirectional = true);
    tn_gru    *gru = tn_gru_new(.in = 3, .hidden = 4);
    tn_rnn    *rnn = tn_rnn_new(.in = 3, .hidden = 4);
    tn_tensor *lengths = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){5, 2});
    shape(tn_lstm_forward(lstm, x, .lengths = lengths, .h_n = &h, .c_n = &c));
    shape(h);
    shape(tn_gru_forward(gru, x));
    shape(tn_rnn_forward(rnn, x));
    tn_free(lstm);
    tn_free(gru);
    tn_free(rnn);
}

EXAMPLE(recurrent_cells)
{
    tn_lstm_cell *lstm = tn_lstm_cell_new(.in = 3, .hidden = 4);
    tn_gru_cell  *gru = tn_gru_cell_new(.in = 3, .hidden = 4);
    tn_rnn_cell  *rnn = tn_rnn_cell_new(.in = 3, .hidden = 4);
    tn_tensor    *x = tn_ones(TN_SHAPE(2, 3)), *h = NULL, *c = NULL;
    for (int t = 0; t < 3; t++) h = tn_lstm_cell_forward(lstm, x, .h = h, .c = c, .c_n = &c);
    shape(h);
    shape(tn_gru_cell_forward(gru, x, .h = h));
    shape(tn_rnn_cell_forward(rnn, x));
    tn_free(lstm);
    tn_free(gru);
    tn_free(rnn);
}

EXAMPLE(parts_of_language_models)
{
    tn_highway        *h = tn_highway_new(.dim = 4, .layers = 2);
    tn_scalar_mix     *mix = tn_scalar_mix_new(.count = 2);
    tn_locked_dropout *drop = tn_locked_dropout_new(.p = 0.5);
    tn_tensor         *x = tn_ones(TN_SHAPE(1, 3, 4)), *layers[] = {tn_call(h, x), tn_call(drop, x)};
    shape(tn_scalar_mix_forward(mix, 2, layers));
    tn_free(h);
    tn_free(mix);
    tn_free(drop);
}

EXAMPLE(cosine_embedding)
{
    tn_tensor *x = tn_ones(TN_SHAPE(2, 3));
    printf("%.4f\n", tn_item(tn_cosine_embedding_loss(x, x, tn_ones(TN_SHAPE(2)), 0, TN_MEAN)));
}

EXAMPLE(large_vocabularies)
{
    tn_tensor *x = tn_normal(TN_SHAPE(3, 64), 0, 1), *target = tn_arange(3), *weight = tn_zeros(TN_SHAPE(100, 64));
    tn_adaptive_softmax *a = tn_adaptive_softmax_new(.in = 64, .classes = 100, .cutoffs = {10, 40});
    shape(tn_adaptive_softmax_forward(a, x, target, NULL));
    shape(tn_adaptive_softmax_log_prob(a, x));
    tn_sampled_loss *nce = tn_nce_loss_new(.counts = tn_ones(TN_SHAPE(100)), .samples = 5);
    tn_sampled_loss *ns = tn_negative_sampling_loss_new(.counts = tn_ones(TN_SHAPE(100)), .samples = 5);
    shape(tn_sampled_loss_forward(nce, x, weight, NULL, target));
    printf("%.4f\n", tn_item(tn_sampled_loss_forward(ns, x, weight, NULL, target))); /* 6 ln 2 */
    tn_free(a);
    tn_free(nce);
    tn_free(ns);
}

EXAMPLE(crf)
{
    tn_crf    *crf = tn_crf_new(.labels = 3);
    tn_tensor *scores =
        tn_mul_scalar(tn_to(tn_one_hot(tn_from_data(TN_I64, TN_SHAPE(1, 3), (int64_t[]){2, 0, 1}), 3), TN_F32), 10);
    int64_t best[3];
    tn_crf_best(crf, tn_select(scores, 0, 0), best);
    printf("%d %d %d\n", (int)best[0], (int)best[1], (int)best[2]);
    shape(tn_crf_loss(crf, scores, tn_zeros_of(TN_I64, TN_SHAPE(1, 3))));
    tn_free(crf);
}

EXAMPLE(experts_module)
{
    tn_experts *m = tn_experts_new(.dim = 8, .ff = 16, .experts = 4, .per_token = 2);
    shape(tn_experts_forward(m, tn_ones(TN_SHAPE(1, 3, 8))));
    tn_free(m);
}

EXAMPLE(initial_values)
{
    tn_print(stdout, tn_init_eye(tn_empty(TN_SHAPE(2, 2))));
    tn_print(stdout, tn_init_constant(tn_empty(TN_SHAPE(2)), 3));
    tn_print(stdout, tn_init_zeros(tn_init_ones(tn_empty(TN_SHAPE(2)))));
    tn_print(stdout, tn_init_uniform(tn_empty(TN_SHAPE(2)), -1, 1));
    tn_print(stdout, tn_init_normal(tn_empty(TN_SHAPE(2)), 0, 1));
    tn_print(stdout, tn_init_trunc_normal(tn_empty(TN_SHAPE(2)), 0, 1, -2, 2));
    tn_print(stdout, tn_init_xavier_uniform(tn_empty(TN_SHAPE(1, 2)), 1));
    tn_print(stdout, tn_init_xavier_normal(tn_empty(TN_SHAPE(1, 2)), 1));
    tn_print(stdout, tn_init_kaiming_uniform(tn_empty(TN_SHAPE(1, 2)), .nonlinearity = TN_RELU));
    tn_print(stdout, tn_init_kaiming_normal(tn_empty(TN_SHAPE(1, 2)), .fan_out = true));
    tn_tensor *q = tn_init_orthogonal(tn_empty(TN_SHAPE(2, 2)), 1);
    printf("%d\n", tn_allclose(tn_matmul(q, tn_transpose(q, 0, 1)), tn_eye(2, 2), 1e-5, 1e-5));
    shape(tn_init_sparse(tn_empty(TN_SHAPE(4, 4)), 0.5, 1));
    printf("%.4f %.4f\n", tn_gain(TN_RELU, 0), tn_gain(TN_TANH, 0));
}

static void on_mismatch(tn_mismatch what, const char *name, const char *text, void *user)
{
    (void)text, (void)user;
    printf("%s: %s\n", what == TN_MISSING ? "missing" : what == TN_UNEXPECTED ? "unexpected" : "other shape", name);
}

EXAMPLE(state_dicts)
{
    tn_linear *m = tn_linear_new(.in = 2, .out = 1);
    tn_save(m, "example.safetensors", .prefix = "fc.");
    tn_rename      rules[] = {TN_RENAME("fc", "")};
    tn_load_report r;
    tn_load(m, "example.safetensors", .rename = rules, .renames = 1, .report = &r);
    printf("%d loaded, %d missing\n", (int)r.loaded, (int)r.missing);
    tn_linear *other = tn_linear_new(.in = 2, .out = 1, .no_bias = true);
    tn_load(other, "example.safetensors", .prefix = "fc.", .allow_unexpected = true, .mismatch = on_mismatch);
    tn_free(other);
    tn_load_args both[] = {{.path = "example.safetensors", .prefix = "fc."},
                           {.path = "example.safetensors", .prefix = "fc."}};
    printf("%s\n", tn_status_name(tn_load_mean(m, 2, both)));
    tn_free(m);
}

EXAMPLE(packed_modules)
{
    tn_linear *m = tn_linear_new(.in = 64, .out = 2), *n = tn_linear_new(.in = 64, .out = 2);
    tn_quantize(m, .bits = 8);
    tn_halve(n);
    printf("%d %d\n", tn_is_packed(m->weight), tn_is_packed(n->weight));
    shape(tn_call(m, tn_ones(TN_SHAPE(1, 64))));
    tn_free(m);
    tn_free(n);
}

EXAMPLE(lora)
{
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 8, .out = 8));
    tn_lora(net, .rank = 2);
    printf("%d trained of %d, adapters %d\n", (int)tn_count_trainable(net), (int)tn_count(net), tn_has_lora(net));
    for (tn_lora_layer l = tn_lora_layers(net); tn_lora_next(&l);) {
        char name[TN_PATH_BYTES];
        int  parts, pieces;
        bool transposed;
        tn_lora_name(&l, "0.weight", 0, name, &parts, &transposed, &pieces);
        printf("%s: rank %d, %s\n", l.name, (int)l.lora->rank, name);
    }
    tn_lora_merge(net);
    printf("%d\n", tn_has_lora(net));
    tn_free(net);
}

/* MAML: learns initial weights from which one step on a task's data gives a small loss on further data of the task. The
 * tasks are lines of any slope through the origin. */
EXAMPLE(functional_call)
{
    enum { PARTS = 4 };
    tn_tensor     *w[PARTS], *fast[PARTS], *g[PARTS];
    int            n = 0;
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 1, .out = 16));
    tn_append(net, tn_tanh_new());
    tn_append(net, tn_linear_new(.in = 16, .out = 1));
    tn_optimizer *opt = tn_adam_new(net, .lr = 0.01);
    for (tn_each p = tn_parameters(net); tn_next(&p);) w[n++] = p.tensor;
    for (int step = 0; step <= 300; step++) {
        tn_scope   s = tn_scope_begin();
        tn_tensor *slope = tn_uniform(TN_SHAPE(1), -2, 2), *x = tn_uniform(TN_SHAPE(10, 1), -1, 1);
        tn_tensor *further = tn_uniform(TN_SHAPE(10, 1), -1, 1);
        tn_tensor *loss = tn_mse_loss(tn_call(net, x), tn_mul(x, slope));
        tn_grad_of(loss, n, w, g, .create_graph = true);
        for (int i = 0; i < n; i++) fast[i] = tn_sub(w[i], tn_mul_scalar(g[i], 0.3));
        tn_tensor *after = tn_mse_loss(tn_functional_call(net, further, n, w, fast), tn_mul(further, slope));
        if (step % 100 == 0) printf("%3d  better after the step: %d\n", step, tn_item(after) < tn_item(loss));
        tn_backward(after); /* through the step, to the initial weights */
        tn_step(opt);
        tn_scope_end(s);
    }
    tn_optimizer_free(opt);
    tn_free(net);
}

/* The same for any calls between begin and end: here a layer's weights are replaced by their mean with others. */
EXAMPLE(functional_begin)
{
    tn_linear *net = tn_linear_new(.in = 2, .out = 1, .no_bias = true);
    tn_tensor *x = tn_ones(TN_SHAPE(1, 2)), *w = net->weight, *mean = tn_mul_scalar(tn_add(w, tn_ones_like(w)), 0.5);
    tn_scope   s = tn_functional_begin(1, &w, &mean);
    printf("%d\n", tn_item(tn_call(net, x)) == tn_item(tn_sum(mean)));
    tn_scope_end(s);
    printf("%d\n", tn_item(tn_call(net, x)) == tn_item(tn_sum(w)));
    tn_free(net);
}

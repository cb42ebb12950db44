/* further.c — examples of ops, losses, optimizers and layers that are used less often, and of constants by name. */
#include "show.h"

static tn_tensor *row(int64_t n, const double *v) { return tn_to(tn_from_data(TN_F64, TN_SHAPE(n), v), TN_F32); }
static tn_tensor *whole(int64_t n, const int64_t *v) { return tn_from_data(TN_I64, TN_SHAPE(n), v); }

EXAMPLE(trigonometry)
{
    tn_tensor *x = row(2, (double[]){0, 0.5});
    tn_print(stdout, tn_tan(x)), tn_print(stdout, tn_asin(x)), tn_print(stdout, tn_acos(x));
    tn_print(stdout, tn_atan(x)), tn_print(stdout, tn_sinh(x)), tn_print(stdout, tn_cosh(x));
    tn_print(stdout, tn_atan2(x, tn_ones_like(x)));
}

EXAMPLE(logarithms)
{
    tn_tensor *x = row(3, (double[]){1, 8, 100});
    tn_print(stdout, tn_log2(x)), tn_print(stdout, tn_log10(x));
    tn_print(stdout, tn_logaddexp(tn_log(x), tn_log(x))); /* ln 2 x */
}

EXAMPLE(infinite) { tn_print(stdout, tn_isinf(row(3, (double[]){1, INFINITY, -INFINITY}))); }

EXAMPLE(whole_division)
{
    tn_print(stdout, tn_floor_divide(whole(3, (int64_t[]){7, -7, 6}), whole(3, (int64_t[]){2, 2, 3})));
    tn_print(stdout, tn_cumprod(row(4, (double[]){1, 2, 3, 4}), 0));
}

EXAMPLE(sorted_indices)
{
    tn_print(stdout, tn_argsort(row(4, (double[]){3, 1, 4, 1}), 0));
    tn_print(stdout, tn_argsort(row(4, (double[]){3, 1, 4, 1}), 0, .descending = true));
}

EXAMPLE(unique_values)
{
    const tn_uniques u = tn_unique(whole(5, (int64_t[]){4, 2, 4, 4, 2}));
    tn_print(stdout, u.values), tn_print(stdout, u.inverse), tn_print(stdout, u.counts);
    tn_print(stdout, tn_bincount(whole(5, (int64_t[]){4, 2, 4, 4, 2}), NULL, 6));
}

EXAMPLE(drawn_classes)
{
    tn_print(stdout, tn_multinomial(row(3, (double[]){0, 1, 3}), 6, true)); /* class 2 three times as often */
}

EXAMPLE(scattered)
{
    tn_tensor *x = tn_ones(TN_SHAPE(4)), *index = whole(3, (int64_t[]){0, 2, 0}), *src = row(3, (double[]){5, 6, 7});
    tn_print(stdout, tn_scatter(x, 0, index, src));
    static const tn_scatter_mode modes[] = {TN_SCATTER_SET, TN_SCATTER_SUM, TN_SCATTER_PROD, TN_SCATTER_AMIN,
                                            TN_SCATTER_AMAX};
    for (int i = 1; i < 5; i++) tn_print(stdout, tn_scatter_reduce(x, 0, index, src, modes[i]));
    tn_print(stdout, tn_index_put(x, 1, &index, src, TN_SCATTER_SET));
}

EXAMPLE(segments)
{
    tn_tensor *x = row(4, (double[]){1, 2, 3, 4}), *lengths = whole(2, (int64_t[]){1, 3});
    tn_print(stdout, tn_segment_reduce(x, lengths, TN_SCATTER_SUM)); /* of the first element, and of the other three */
}

EXAMPLE(adaptive_pooling)
{
    tn_tensor *x = tn_reshape(tn_arange_of(TN_F32, 1, 7, 1), TN_SHAPE(1, 1, 6));
    tn_print(stdout, tn_adaptive_avg_pool1d(x, 2)), tn_print(stdout, tn_adaptive_max_pool1d(x, 2));
    x = tn_reshape(x, TN_SHAPE(1, 1, 2, 3));
    tn_print(stdout, tn_adaptive_avg_pool2d(x, 1, 3)), tn_print(stdout, tn_adaptive_max_pool2d(x, 2, 1));
}

EXAMPLE(interpolation)
{
    tn_tensor                    *x = tn_reshape(row(2, (double[]){0, 1}), TN_SHAPE(1, 1, 2));
    static const tn_interpolation modes[] = {TN_NEAREST, TN_LINEAR};
    for (int i = 0; i < 2; i++) tn_print(stdout, tn_interpolate(x, TN_SHAPE(4), modes[i], false));
}

EXAMPLE(prelu)
{
    tn_tensor *x = row(2, (double[]){-2, 2});
    tn_print(stdout, tn_prelu(x, tn_full(TN_SHAPE(1), 0.25)));
    tn_activation *m = tn_prelu_new(.parameters = 1); /* the factor is a parameter, initially 0.25 */
    tn_print(stdout, tn_call(m, x));
    tn_free(m);
}

EXAMPLE(weight_norm)
{
    tn_tensor *v = tn_reshape(row(4, (double[]){3, 4, 0, 2}), TN_SHAPE(2, 2)), *g = tn_ones(TN_SHAPE(2, 1));
    tn_print(stdout, tn_weight_norm(v, g, 0)); /* each row has the norm that g contains */
}

EXAMPLE(margin_losses)
{
    tn_tensor *a = tn_zeros(TN_SHAPE(1, 2)), *b = tn_ones(TN_SHAPE(1, 2)), *c = tn_full(TN_SHAPE(1, 2), 3);
    printf("%.4f\n", tn_item(tn_triplet_margin_loss(a, c, b, 1, TN_MEAN)));
    printf("%.4f\n",
           tn_item(tn_hinge_embedding_loss(row(2, (double[]){0.5, 0.25}), row(2, (double[]){1, -1}), 1, TN_MEAN)));
    printf("%.4f\n", tn_item(tn_info_nce_loss(tn_eye(2, 2), tn_eye(2, 2), 0.1, TN_MEAN)));
}

EXAMPLE(losses_by_element)
{
    tn_tensor *p = row(2, (double[]){0.9, 0.2}), *y = row(2, (double[]){1, 0});
    tn_print(stdout, tn_bce_loss(p, y, NULL, TN_NONE));
    tn_print(stdout, tn_smooth_l1_loss(row(2, (double[]){0.5, 3}), y, 1, TN_NONE));
    const tn_reduction kinds[] = {TN_MEAN, TN_SUM};
    for (int i = 0; i < 2; i++) printf("%.4f\n", tn_item(tn_bce_loss(p, y, NULL, kinds[i])));
}

/* The loss of a line at three points, for optimizers that call it several times in a step. */
static tn_tensor *line_loss(void *net)
{
    tn_tensor *x = tn_reshape(row(3, (double[]){-1, 0, 2}), TN_SHAPE(3, 1));
    return tn_mse_loss(tn_call((tn_linear *)net, x), tn_add_scalar(tn_mul_scalar(x, 3), 1));
}

EXAMPLE(lbfgs)
{
    tn_linear       *net = tn_linear_new(.in = 1, .out = 1);
    const tn_closure closure = line_loss;
    double           loss;
    tn_lbfgs        *opt = tn_lbfgs_new(net, .strong_wolfe = true);
    for (int i = 0; i < 3; i++) tn_lbfgs_step(opt, closure, net, &loss);
    printf("%.1f %.1f, loss %.5f\n", tn_item(net->weight), tn_item(net->bias), loss);
    tn_lbfgs_free(opt);
    tn_free(net);
}

static void fit_line(const char *name, tn_linear *net, tn_optimizer *opt)
{
    for (int step = 0; step < 500; step++) {
        tn_scope s = tn_scope_begin();
        tn_backward(line_loss(net));
        tn_step(opt);
        tn_scope_end(s);
    }
    printf("%s: loss below 0.01: %d\n", name, tn_item(line_loss(net)) < 0.01);
    tn_optimizer_free(opt);
    tn_free(net);
}

EXAMPLE(nadam)
{
    tn_linear *net = tn_linear_new(.in = 1, .out = 1);
    fit_line("NAdam", net, tn_nadam_new(net, .lr = 0.05));
}
EXAMPLE(radam)
{
    tn_linear *net = tn_linear_new(.in = 1, .out = 1);
    fit_line("RAdam", net, tn_radam_new(net, .lr = 0.05));
}
EXAMPLE(lion)
{
    tn_linear *net = tn_linear_new(.in = 1, .out = 1);
    fit_line("Lion", net, tn_lion_new(net, .lr = 0.01));
}

/* Muon updates matrices; give vectors, such as biases, to another optimizer. */
EXAMPLE(muon)
{
    tn_linear    *net = tn_linear_new(.in = 1, .out = 1, .no_bias = true);
    tn_optimizer *opt = tn_muon_new(net, .lr = 0.02);
    tn_backward(tn_sum(tn_call(net, tn_ones(TN_SHAPE(4, 1)))));
    const double before = tn_item(net->weight);
    tn_step(opt);
    printf("%d\n", tn_item(net->weight) < before);
    tn_optimizer_free(opt);
    tn_free(net);
}

EXAMPLE(learning_rate_finder)
{
    tn_linear    *net = tn_linear_new(.in = 1, .out = 1);
    tn_optimizer *opt = tn_sgd_new(net, .lr = 1);
    double        losses[20];
    const double  lr = tn_lr_find(net, .optimizer = opt, .closure = line_loss, .user = net, .from = 1e-4, .to = 10,
                                  .steps = 20, .losses = losses);
    printf("%d\n", lr > 0.001 && lr < 2);
    tn_set_lr(opt, -1, lr);
    tn_optimizer_free(opt);
    tn_free(net);
}

EXAMPLE(read_ahead)
{
    tn_dataset  *all = tn_dataset_new(.x = tn_arange(10), .batch = 4);
    tn_source    s = tn_dataset_source(all);
    tn_prefetch *ahead = tn_prefetch_new(.source = &s, .ahead = 2); /* a thread reads while the program computes */
    tn_source    fast = tn_prefetch_source(ahead);
    tn_batch     b;
    while (tn_source_next(&fast, &b)) tn_print(stdout, b.x);
    tn_prefetch_free(ahead);
    tn_dataset_free(all);
}

EXAMPLE(random_split)
{
    tn_dataset *all = tn_dataset_new(.x = tn_arange(10), .batch = 10), *part[2];
    tn_random_split(all, 1, 2, (double[]){0.8, 0.2}, part);
    for (int i = 0; i < 2; i++) {
        tn_source s = tn_dataset_source(part[i]);
        tn_batch  b;
        if (tn_source_next(&s, &b)) tn_print(stdout, b.x);
        tn_dataset_free(part[i]);
    }
    tn_dataset_free(all);
}

/* One block, with a cache: the results of one token after the other are those of the whole sequence. */
EXAMPLE(block)
{
    tn_block  *m = tn_block_new(.dim = 8, .heads = 2, .ff = 16, .dropout = 0);
    tn_tensor *x = tn_normal(TN_SHAPE(1, 3, 8), 0, 1);
    printf("%d\n", tn_ndim(tn_block_forward(m, x, .causal = true)) == 3);
    tn_free(m);
}

EXAMPLE(encoder_and_decoder_layers)
{
    tn_transformer_encoder_layer *e = tn_transformer_encoder_layer_new(.dim = 8, .heads = 2, .ff = 16, .dropout = 0);
    tn_transformer_decoder_layer *d = tn_transformer_decoder_layer_new(.dim = 8, .heads = 2, .ff = 16, .dropout = 0);
    tn_tensor                    *memory = tn_transformer_encoder_layer_forward(e, tn_normal(TN_SHAPE(1, 4, 8), 0, 1));
    tn_tensor *y = tn_transformer_decoder_layer_forward(d, tn_normal(TN_SHAPE(1, 3, 8), 0, 1), memory, .causal = true);
    char       text[192];
    printf("%s\n", tn_shape_text(tn_shape_of(y), text, sizeof text));
    tn_free(e);
    tn_free(d);
}

EXAMPLE(decoder_stack)
{
    tn_transformer_encoder *e = tn_transformer_encoder_new(.layers = 2, .dim = 8, .heads = 2, .ff = 16, .dropout = 0);
    tn_transformer_decoder *d = tn_transformer_decoder_new(.layers = 2, .dim = 8, .heads = 2, .ff = 16, .dropout = 0);
    tn_tensor              *memory = tn_transformer_encoder_forward(e, tn_normal(TN_SHAPE(1, 4, 8), 0, 1));
    tn_tensor              *x = tn_normal(TN_SHAPE(1, 3, 8), 0, 1), *whole_y;
    tn_scope                s = tn_no_grad_begin();
    tn_kv_cache *cache = tn_transformer_decoder_cache(d, 1, 3, 4), *none = tn_transformer_encoder_cache(e, 1, 3);
    whole_y = tn_transformer_decoder_forward(d, x, memory, .causal = true);
    for (int t = 0; t < 3; t++) { /* with a cache: one position after the other */
        tn_tensor *y =
            tn_transformer_decoder_forward(d, tn_narrow(x, 1, t, 1), t ? NULL : memory, .causal = true, .cache = cache);
        printf("%d\n", tn_allclose(y, tn_narrow(whole_y, 1, t, 1), 0, 0));
    }
    tn_scope_end(s);
    tn_kv_cache_free(cache);
    tn_kv_cache_free(none);
    tn_free(e);
    tn_free(d);
}

EXAMPLE(mlm_head)
{
    tn_embedding *words = tn_embedding_new(.count = 10, .dim = 4);
    tn_mlm_head  *m = tn_mlm_head_new(.embedding = words->weight);
    tn_tensor    *x = tn_normal(TN_SHAPE(2, 4), 0, 1), *target = whole(2, (int64_t[]){3, 7});
    tn_tensor    *loss = tn_mlm_head_loss(m, x, .target = target);
    printf("%d %d\n", (int)tn_size(tn_mlm_head_transform(m, x), 1), (int)tn_size(tn_call(m, x), 1));
    printf("%d\n", fabs(tn_item(loss) - tn_item(tn_cross_entropy(tn_call(m, x), target))) < 1e-5);
    tn_free(m);
    tn_free(words);
}

EXAMPLE(relative_embeddings)
{
    tn_distances *m = tn_distances_new(.dim = 4, .distance = 3);
    tn_tensor    *at, *r = tn_distances_forward(m, 3, &at);
    printf("%d embeddings\n", (int)tn_size(r, 0));
    tn_print(stdout, at); /* of the difference of query and key */
    tn_free(m);
    tn_blocks *stack = tn_blocks_new(.layers = 1, .dim = 8, .heads = 2, .ff = 16,
                                     .disentangled = (tn_disentangled){.distance = 3, .c2p = true, .p2c = true});
    tn_free(stack);
}

EXAMPLE(two_streams)
{
    tn_two_stream *m = tn_two_stream_new(.layers = 1, .dim = 8, .heads = 2, .ff = 16, .dropout = 0);
    tn_tensor     *x = tn_normal(TN_SHAPE(1, 4, 8), 0, 1), *where = whole(1, (int64_t[]){2});
    tn_tensor     *blocked = tn_permutation_mask(NULL, where, 1, 4), *g = tn_ones(TN_SHAPE(1, 8));
    tn_print(stdout, blocked); /* no token sees the third one, which is predicted */
    char text[192];
    printf("%s\n",
           tn_shape_text(tn_shape_of(tn_two_stream_forward(m, x, .blocked = blocked, .query = g, .targets = where)),
                         text, sizeof text));
    tn_free(m);
}

/* ---- constants --------------------------------------------------------------------------------------------------- */

EXAMPLE(error_codes)
{
    static const tn_status codes[] = {TN_OK,  TN_ENOMEM,  TN_ESHAPE,   TN_EDTYPE, TN_EINVAL,      TN_EINDEX,
                                      TN_EIO, TN_EFORMAT, TN_ENUMERIC, TN_ESTATE, TN_EUNSUPPORTED};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) printf("%d %s\n", codes[i], tn_status_name(codes[i]));
}

EXAMPLE(version_of_the_headers)
{
    printf("%d\n", TN_VERSION_MAJOR >= 0 && TN_VERSION_MINOR >= 0 && TN_VERSION_PATCH >= 0);
}

EXAMPLE(json_types)
{
    static const char        text[] = "[null, true, 1, 1.5, \"a\", [], {}]";
    static const char *const names[] = {
        [TN_JSON_NONE] = "missing",    [TN_JSON_NULL] = "null",    [TN_JSON_BOOL] = "bool",
        [TN_JSON_INTEGER] = "integer", [TN_JSON_REAL] = "real",    [TN_JSON_STRING] = "string",
        [TN_JSON_ARRAY] = "array",     [TN_JSON_OBJECT] = "object"};
    tn_json *j = tn_json_parse_within(text, strlen(text), (tn_json_limits){.depth = TN_JSON_MAX_DEPTH});
    for (const tn_json *v = tn_json_first(j); v; v = tn_json_next(v)) puts(names[tn_json_type_of(v)]);
    tn_json_free(j);
}

/* The options of a group that can be read and changed while training. */
EXAMPLE(group_options)
{
    tn_linear          *net = tn_linear_new(.in = 2, .out = 1);
    tn_optimizer       *opt = tn_sgd_new(net, .lr = 0.1, .momentum = 0.9);
    static const tn_opt options[] = {TN_OPT_LR, TN_OPT_MOMENTUM, TN_OPT_DAMPENING, TN_OPT_WEIGHT_DECAY};
    for (int i = 0; i < 4; i++) printf("%g\n", tn_option(opt, 0, options[i]));
    tn_optimizer_free(opt);
    tn_free(net);
}

EXAMPLE(orders_of_sinusoids)
{
    static const tn_sinusoids orders[] = {TN_SINUSOIDS_IN_TURN, TN_SINUSOIDS_HALVES, TN_SINUSOIDS_TENSOR2TENSOR};
    for (int i = 0; i < 3; i++) {
        tn_positions *m = tn_sinusoidal_positions_new(.dim = 4, .length = 2, .order = orders[i]);
        tn_print(stdout, tn_select(tn_call(m, tn_zeros(TN_SHAPE(1, 2, 4))), 1, 1));
        tn_free(m);
    }
}

EXAMPLE(angles_of_rope)
{
    tn_print(stdout, tn_rope_angles(TN_ROPE(.dim = 2, .scaling = TN_ROPE_PLAIN), 0, 3)); /* cosines, sines */
    tn_print(stdout, tn_rope_angles(TN_ROPE(.dim = 2, .scaling = TN_ROPE_LINEAR, .factor = 2), 0, 3));
}

EXAMPLE(norms_of_queries)
{
    static const tn_qk_norm kinds[] = {TN_QK_NORM_NONE, TN_QK_NORM_HEAD, TN_QK_NORM_ALL};
    for (int i = 0; i < 3; i++) {
        tn_block *m = tn_block_new(.dim = 8, .heads = 2, .ff = 16, .qk_norm = kinds[i], .norm = TN_NORM_RMS);
        printf("%d parameters\n", (int)tn_count(m));
        tn_free(m);
    }
    tn_block *m = tn_block_new(.dim = 8, .heads = 2, .ff = 16, .norm = TN_NORM_LAYER);
    printf("%d parameters\n", (int)tn_count(m));
    tn_free(m);
}

/* test_convolution.c — convolutions and poolings against plain loops: random geometry and layouts, images large enough
 * to be computed in blocks, NaN and infinities in poolings, an image alone and in a batch. */
#include "nn/nn.h"
#include "tests/common/check_main.h"

static int64_t pick(int64_t low, int64_t high) { return low + tn_random_below(tn_current_generator(), high - low + 1); }

/* Noise of shape s, dense, or a transposed or strided view. */
static tn_tensor *noise(tn_dtype dt, tn_shape s)
{
    tn_shape base = s;
    switch (pick(0, 2)) {
    case 1:
        base.d[0] = s.d[1], base.d[1] = s.d[0];
        return tn_transpose(tn_to(tn_uniform_of(TN_F64, base, -1, 1), dt), 0, 1);
    case 2:
        base.d[s.n - 1] = 2 * s.d[s.n - 1] + 1;
        return tn_slice(tn_to(tn_uniform_of(TN_F64, base, -1, 1), dt), -1, 1, base.d[s.n - 1], 2);
    default: return tn_to(tn_uniform_of(TN_F64, s, -1, 1), dt);
    }
}

typedef struct {
    int64_t size[2], stride[2], padding[2], dilation[2], groups;
    int64_t n, c, o, in[2], out[2];
} geometry;

static geometry random_geometry(void)
{
    geometry g = {.groups = pick(1, 3), .n = pick(1, 3)};
    g.c = g.groups * pick(1, 3), g.o = g.groups * pick(1, 3);
    for (int i = 0; i < 2; i++) {
        g.size[i] = pick(1, 4), g.stride[i] = pick(1, 3), g.padding[i] = pick(0, 3), g.dilation[i] = pick(1, 3);
        const int64_t span = (g.size[i] - 1) * g.dilation[i] + 1, least = span - 2 * g.padding[i];
        g.in[i] = (least > 1 ? least : 1) + pick(0, 6);
        g.out[i] = (g.in[i] + 2 * g.padding[i] - span) / g.stride[i] + 1;
    }
    return g;
}

/* Position of tap k of window o in dim i, or -1 in the padding. */
static int64_t under(const geometry *g, int i, int64_t o, int64_t k)
{
    const int64_t at = o * g->stride[i] - g->padding[i] + k * g->dilation[i];
    return at >= 0 && at < g->in[i] ? at : -1;
}

/* ---- convolution ------------------------------------------------------------------------------------------------- */

static double convolved(const geometry *g, const tn_tensor *x, const tn_tensor *w, int64_t n, int64_t o, int64_t i,
                        int64_t j)
{
    const int64_t cg = g->c / g->groups, first = o / (g->o / g->groups) * cg;
    double        sum = 0;
    for (int64_t c = 0; c < cg; c++)
        for (int64_t k = 0; k < g->size[0]; k++)
            for (int64_t l = 0; l < g->size[1]; l++) {
                const int64_t row = under(g, 0, i, k), col = under(g, 1, j, l);
                if (row < 0 || col < 0) continue;
                sum += tn_get_at(w, TN_SHAPE(o, c, k, l)) * tn_get_at(x, TN_SHAPE(n, first + c, row, col));
            }
    return sum;
}

/* y = conv2d(x, w, b) element by element, or every `step`-th; and since <gy, conv(x, w)> is linear in each, gradients
 * that are right give the same number in three ways. */
static void check_conv(const geometry *g, tn_tensor *x, tn_tensor *w, tn_tensor *b, int64_t step)
{
    x = tn_requires_grad(tn_detach(x)), w = tn_requires_grad(tn_detach(w));
    if (b) tn_requires_grad(b);
    tn_tensor *y = tn_conv2d(x, w, b, .stride = g->stride[0], .stride_w = g->stride[1], .padding = g->padding[0],
                             .padding_w = g->padding[1], .dilation = g->dilation[0], .dilation_w = g->dilation[1],
                             .groups = g->groups);
    fine();
    ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(g->n, g->o, g->out[0], g->out[1])));
    for (int64_t e = 0; e < tn_numel(y); e += step) {
        const int64_t j = e % g->out[1], i = e / g->out[1] % g->out[0], o = e / g->out[1] / g->out[0] % g->o;
        const int64_t n = e / g->out[1] / g->out[0] / g->o;
        const double  want = convolved(g, x, w, n, o, i, j) + (b ? tn_get(b, o) : 0);
        ck_assert_double_eq_tol(tn_get(y, e), want, 1e-12);
    }
    tn_tensor *in[3] = {x, w, b}, *grad[3] = {NULL}, *gy = tn_uniform_of(TN_F64, tn_shape_of(y), -1, 1);
    tn_grad_of(y, b ? 3 : 2, in, grad, .seed = gy);
    fine();
    const double bias = b ? tn_item(tn_sum(tn_mul(b, grad[2]))) : 0, whole = tn_item(tn_sum(tn_mul(y, gy)));
    const double by_x = tn_item(tn_sum(tn_mul(x, grad[0]))), by_w = tn_item(tn_sum(tn_mul(w, grad[1])));
    const double bound = 1e-12 * (double)tn_numel(y);
    ck_assert_double_eq_tol(by_x + bias, whole, bound);
    ck_assert_double_eq_tol(by_w + bias, whole, bound);
}

TEST_EACH(random_convolutions, 3)
{
    tn_seed((uint64_t)_i + 1);
    for (int t = 0; t < 40; t++) {
        tn_scope       s = tn_scope_begin();
        const geometry g = random_geometry();
        tn_tensor     *x = noise(TN_F64, TN_SHAPE(g.n, g.c, g.in[0], g.in[1]));
        tn_tensor     *w = noise(TN_F64, TN_SHAPE(g.o, g.c / g.groups, g.size[0], g.size[1]));
        check_conv(&g, x, w, pick(0, 1) ? tn_uniform_of(TN_F64, TN_SHAPE(g.o), -1, 1) : NULL, 1);
        tn_scope_end(s);
    }
}

/* 16 channels by 9 taps: a block of columns holds a few rows of the first images, and some of the second ones. */
TEST_EACH(convolutions_in_blocks, 3)
{
    const geometry  large = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 2, 2, 16, 2, {90, 100}, {90, 100}};
    const geometry  many = {{3, 3}, {2, 1}, {0, 1}, {1, 1}, 1, 17, 16, 2, {41, 50}, {20, 50}};
    const geometry  one = {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, 40, 16, 3, {50, 60}, {50, 60}};
    const geometry *all[] = {&large, &many, &one}, *g = all[_i];
    check_conv(g, noise(TN_F64, TN_SHAPE(g->n, g->c, g->in[0], g->in[1])),
               noise(TN_F64, TN_SHAPE(g->o, g->c / g->groups, g->size[0], g->size[1])), NULL, 101);
}

/* With steps of 1 and dense rows of f32, columns are not gathered (convolve_rows.c): the bits are those that gathering
 * gives, which an input without dense rows requires, for any number of threads. */
TEST_EACH(without_columns, 4)
{
    tn_seed((uint64_t)_i + 1);
    for (int t = 0; t < 30; t++) {
        tn_scope scope = tn_scope_begin();
        geometry g = random_geometry();
        g.c = g.groups * pick(1, 9), g.o = g.groups * pick(1, 20);
        g.in[0] += pick(0, 30), g.in[1] += pick(0, 90);
        if (t == 0) g.groups = 2, g.c = 80, g.o = 10, g.in[0] = 65, g.in[1] = 70; /* several blocks of an image */
        tn_tensor *x = tn_uniform(TN_SHAPE(g.n, g.c, g.in[0], g.in[1]), -1, 1);
        tn_tensor *w = tn_uniform(TN_SHAPE(g.o, g.c / g.groups, g.size[0], g.size[1]), -1, 1);
        tn_tensor *b = pick(0, 1) ? tn_uniform(TN_SHAPE(g.o), -1, 1) : NULL, *y[2];
        if (t % 7 == 3) tn_set_at(x, TN_SHAPE(0, 0, 0, 0), INFINITY);
        for (int i = 0; i < 2; i++) {
            tn_tensor *turned = tn_transpose(tn_contiguous(tn_transpose(x, 2, 3)), 2, 3);
            tn_set_threads(i ? 1 + t % 3 : 1);
            y[i] = tn_conv2d(i ? x : turned, w, b, .padding = g.padding[0], .padding_w = g.padding[1],
                             .dilation = g.dilation[0], .dilation_w = g.dilation[1], .groups = g.groups);
            fine();
        }
        ck_assert_mem_eq(tn_data(y[0]), tn_data(y[1]), (size_t)tn_numel(y[0]) * sizeof(float));
        tn_scope_end(scope);
    }
}

TEST(conv1d_loops)
{
    for (int t = 0; t < 60; t++) {
        tn_scope   s = tn_scope_begin();
        geometry   g = random_geometry();
        tn_tensor *x = noise(TN_F64, TN_SHAPE(g.n, g.c, g.in[1])),
                  *w = noise(TN_F64, TN_SHAPE(g.o, g.c / g.groups, g.size[1]));
        tn_tensor *b = tn_uniform_of(TN_F64, TN_SHAPE(g.o), -1, 1);
        tn_tensor *y = tn_conv1d(x, w, b, .stride = g.stride[1], .padding = g.padding[1], .dilation = g.dilation[1],
                                 .groups = g.groups);
        fine();
        ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(g.n, g.o, g.out[1])));
        g.size[0] = g.stride[0] = g.dilation[0] = g.in[0] = 1, g.padding[0] = 0;
        x = tn_unsqueeze(x, 2), w = tn_unsqueeze(w, 2);
        for (int64_t e = 0; e < tn_numel(y); e++) {
            const int64_t j = e % g.out[1], o = e / g.out[1] % g.o;
            ck_assert_double_eq_tol(tn_get(y, e), tn_get(b, o) + convolved(&g, x, w, e / g.out[1] / g.o, o, 0, j),
                                    1e-12);
        }
        tn_scope_end(s);
    }
}

/* Ops and modules read sizes in the same way: an omitted width equals the height; an explicit 0 is 0. */
TEST(a_width_is_like_the_height)
{
    tn_tensor *x = tn_ones(TN_SHAPE(1, 1, 9, 9)), *w = tn_ones(TN_SHAPE(1, 1, 3, 3));
    const struct {
        tn_tensor     *op;
        void          *module;
        const tn_shape want;
    } rows[] = {
        {tn_conv2d(x, w, NULL, .stride = 2), tn_conv2d_new(.in = 1, .out = 1, .size = 3, .stride = 2),
         TN_SHAPE(1, 1, 4, 4)},
        {tn_conv2d(x, w, NULL, .stride = 2, .stride_w = 1, .padding = 2, .padding_w = 0),
         tn_conv2d_new(.in = 1, .out = 1, .size = 3, .stride = 2, .stride_w = 1, .padding = 2, .padding_w = 0),
         TN_SHAPE(1, 1, 6, 7)},
        {tn_conv2d(x, w, NULL, .dilation = 2, .padding = 1),
         tn_conv2d_new(.in = 1, .out = 1, .size = 3, .dilation = 2, .padding = 1), TN_SHAPE(1, 1, 7, 7)},
        {tn_max_pool2d(x, .size = 2), tn_max_pool2d_new(.size = 2), TN_SHAPE(1, 1, 4, 4)},
        {tn_max_pool2d(x, .size = 2, .size_w = 3), tn_max_pool2d_new(.size = 2, .size_w = 3), TN_SHAPE(1, 1, 4, 3)},
        {tn_avg_pool2d(x, .size = 4, .stride = 1, .padding = 2, .padding_w = 0),
         tn_avg_pool2d_new(.size = 4, .stride = 1, .padding = 2, .padding_w = 0), TN_SHAPE(1, 1, 10, 6)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_module *m = rows[i].module;
        fine();
        ck_assert(tn_shape_equal(tn_shape_of(rows[i].op), rows[i].want));
        ck_assert(tn_shape_equal(tn_shape_of(tn_module_call(m, x)), rows[i].want));
        tn_module_free(m);
    }
}

TEST(convolution_defaults_and_types)
{
    tn_tensor *x = tn_arange_of(TN_F32, 0, 6, 1), *w = tn_ones(TN_SHAPE(1, 1, 2));
    tn_tensor *y = tn_conv1d(tn_reshape(x, TN_SHAPE(1, 1, 6)), w, NULL);
    fine();
    for (int i = 0; i < 5; i++) ck_assert_double_eq(tn_get(y, i), 2 * i + 1);
    ck_assert(tn_shape_equal(tn_shape_of(tn_conv1d(tn_reshape(x, TN_SHAPE(1, 1, 6)), w, NULL, .stride = 2)),
                             TN_SHAPE(1, 1, 3)));
    ck_assert_int_eq(tn_dtype_of(tn_conv1d(tn_reshape(x, TN_SHAPE(1, 1, 6)), tn_to(w, TN_F64), NULL)), TN_F64);
    tn_tensor *small = tn_max_pool1d(tn_reshape(x, TN_SHAPE(1, 1, 6)), .size = 2);
    ck_assert(tn_shape_equal(tn_shape_of(small), TN_SHAPE(1, 1, 3)));
    small = tn_avg_pool2d(tn_reshape(x, TN_SHAPE(1, 1, 2, 3)), .size = 2, .size_w = 3);
    ck_assert_double_eq(tn_item(small), 2.5);
    ck_assert_ptr_null(tn_conv2d(NULL, w, NULL));
    ck_assert_str_eq(tn_error_message(), "conv2d: x is NULL");
    tn_clear_error();
    ck_assert_ptr_null(tn_max_pool2d(NULL, .size = 1));
    ck_assert_str_eq(tn_error_message(), "max_pool2d: input 0 is NULL");
    tn_clear_error();
}

/* Sizes and paddings beyond any memory, with nothing to compute. */
TEST(huge_and_empty)
{
    const int64_t huge = (int64_t)1 << 58;
    tn_tensor    *x = tn_zeros(TN_SHAPE(0, 1, 3, 3)), *w = tn_zeros(TN_SHAPE(1, 1, 2, 2));
    ck_assert(tn_numel(tn_conv2d(x, w, NULL, .padding = 1 << 20)) == 0);
    fine();
    x = tn_zeros(TN_SHAPE(0, 1, 3, huge)), w = tn_zeros(TN_SHAPE(1, 1, 1, 1));
    ck_assert(tn_numel(tn_conv2d(x, w, NULL, .stride = 1, .stride_w = 2, .padding = 0, .padding_w = 5)) == 0);
    fine();
    w = tn_zeros(TN_SHAPE(0, 1, huge, 2)), x = tn_zeros(TN_SHAPE(1, 1, 3, 3));
    ck_refused_code(tn_conv2d(x, w, NULL, .dilation = INT32_MAX, .dilation_w = 1), TN_ESHAPE);
    x = tn_zeros(TN_SHAPE(1, 0, 2, 2)),
    w = tn_zeros(TN_SHAPE(2, 0, 3, 3)); /* no channels: the result is the bias, or zeros */
    tn_tensor *y = tn_conv2d(x, w, NULL, .padding = 1), *z = tn_conv2d(x, w, tn_ones(TN_SHAPE(2)), .padding = 1);
    fine();
    for (int i = 0; i < 8; i++) ck_assert(tn_get(y, i) == 0 && tn_get(z, i) == 1);
    x = tn_zeros(TN_SHAPE(0, 1, huge, 3));
    ck_assert(tn_numel(tn_max_pool2d(x, .size = 4, .size_w = 2, .stride = 1, .padding = 2, .padding_w = 1,
                                     .dilation = 2, .dilation_w = 1)) == 0);
}

/* ---- poolings ---------------------------------------------------------------------------------------------------- */

TEST_EACH(random_poolings, 4)
{
    tn_seed((uint64_t)_i + 1);
    for (int t = 0; t < 60; t++) {
        geometry g = random_geometry();
        bool     ok = true;
        for (int i = 0; i < 2; i++) ok = ok && g.padding[i] <= g.size[i] / 2;
        if (!ok) continue;
        tn_scope   s = tn_scope_begin();
        const bool ignore = pick(0, 1);
        tn_tensor *x = noise(TN_F64, TN_SHAPE(g.n, g.c, g.in[0], g.in[1])), *leaf = tn_requires_grad(tn_detach(x));
        const tn_pool2d_args a = {.x = leaf,
                                  .size = g.size[0],
                                  .size_w = g.size[1],
                                  .stride = g.stride[0],
                                  .stride_w = g.stride[1],
                                  .padding = g.padding[0],
                                  .padding_w = g.padding[1],
                                  .dilation = g.dilation[0],
                                  .dilation_w = g.dilation[1]};
        tn_pool2d_args       averages = a;
        averages.ignore_padding = ignore;
        tn_tensor *max = tn_max_pool2d_run(a), *mean = tn_avg_pool2d_run(averages);
        if (tn_error()) { /* a window that steps over the image */
            ck_assert_ptr_nonnull(strstr(tn_error_message(), "has no element"));
            tn_clear_error();
            tn_scope_end(s);
            continue;
        }
        tn_tensor *gy = tn_uniform_of(TN_F64, tn_shape_of(max), -1, 1);
        tn_tensor *want = tn_zeros_of(TN_F64, tn_shape_of(x)), *want_mean = tn_zeros_of(TN_F64, tn_shape_of(x)), *grad;
        for (int64_t e = 0; e < tn_numel(max); e++) {
            const int64_t j = e % g.out[1], i = e / g.out[1] % g.out[0], c = e / g.out[1] / g.out[0] % g.c;
            const int64_t n = e / g.out[1] / g.out[0] / g.c;
            double        best = -INFINITY, sum = 0, count = 0;
            tn_shape      at = TN_SHAPE(n, c, 0, 0);
            for (int pass = 0; pass < 2; pass++)
                for (int64_t k = 0; k < g.size[0]; k++)
                    for (int64_t l = 0; l < g.size[1]; l++) {
                        const tn_shape here = TN_SHAPE(n, c, under(&g, 0, i, k), under(&g, 1, j, l));
                        if (here.d[2] < 0 || here.d[3] < 0) continue;
                        if (pass) {
                            const double by = ignore ? count : (double)(g.size[0] * g.size[1]);
                            tn_set_at(want_mean, here, tn_get_at(want_mean, here) + tn_get(gy, e) / by);
                            continue;
                        }
                        const double v = tn_get_at(x, here);
                        sum += v, count++;
                        if (v > best) best = v, at = here;
                    }
            ck_assert_double_eq(tn_get(max, e), best);
            ck_assert_double_eq_tol(tn_get(mean, e), sum / (ignore ? count : (double)(g.size[0] * g.size[1])), 1e-14);
            tn_set_at(want, at, tn_get_at(want, at) + tn_get(gy, e));
        }
        tn_grad_of(max, 1, &leaf, &grad, .seed = gy);
        ck_assert(tn_allclose(grad, want, 0, 1e-14));
        tn_grad_of(mean, 1, &leaf, &grad, .seed = gy);
        ck_assert(tn_allclose(grad, want_mean, 0, 1e-14));
        fine();
        tn_scope_end(s);
    }
}

TEST(poolings_of_what_is_not_finite)
{
    const double v[8] = {-INFINITY, -INFINITY, 5, NAN, NAN, NAN, INFINITY, 1};
    tn_tensor   *x = tn_requires_grad(tn_from_data(TN_F64, TN_SHAPE(1, 1, 8), v)), *y = tn_max_pool1d(x, .size = 2), *g;
    tn_tensor   *wide = tn_max_pool1d(x, .size = 3, .stride = 3, .padding = 1);
    tn_grad_of(y, 1, &x, &g, .seed = tn_ones_like(y));
    fine();
    ck_assert(tn_get(y, 0) == -(double)INFINITY && isnan(tn_get(y, 1)) && isnan(tn_get(y, 2)) &&
              tn_get(y, 3) == (double)INFINITY);
    const int first[8] = {1, 0, 0, 1, 1, 0, 1, 0}; /* the first of equal values, and of NaNs */
    for (int i = 0; i < 8; i++) ck_assert_double_eq(tn_get(g, i), first[i]);
    ck_assert(tn_get(wide, 0) == -(double)INFINITY && isnan(tn_get(wide, 1)) && isnan(tn_get(wide, 2)));
}

/* ---- the same bits in any surroundings --------------------------------------------------------------------------- */

static tn_tensor *network(tn_tensor *x, tn_tensor *const *p)
{
    x = tn_max_pool2d(tn_conv2d(x, p[0], p[1], .padding = 1), .size = 2, .padding = 1);
    return tn_avg_pool2d(tn_conv2d(x, p[2], NULL, .stride = 2, .stride_w = 1, .groups = 2), .size = 3, .size_w = 2,
                         .stride = 1);
}

TEST_EACH(alone_and_with_threads, 2)
{
    const tn_dtype dt = _i ? TN_F64 : TN_F32;
    tn_tensor     *x = tn_requires_grad(tn_to(tn_uniform_of(TN_F64, TN_SHAPE(5, 6, 40, 30), -1, 1), dt)),
              *first[4] = {NULL};
    tn_tensor *p[3] = {tn_requires_grad(tn_to(tn_uniform_of(TN_F64, TN_SHAPE(8, 6, 3, 3), -1, 1), dt)),
                       tn_requires_grad(tn_to(tn_uniform_of(TN_F64, TN_SHAPE(8), -1, 1), dt)),
                       tn_requires_grad(tn_to(tn_uniform_of(TN_F64, TN_SHAPE(4, 4, 2, 2), -1, 1), dt))};
    tn_tensor *in[4] = {x, p[0], p[1], p[2]};
    for (int n = 1; n <= 7; n += n == 1 ? 1 : 5) {
        tn_set_threads(n);
        tn_tensor *y = network(x, p), *g[4];
        tn_grad_of(y, 4, in, g, .seed = tn_full_like(y, 0.25), .retain = true);
        fine();
        if (n == 1) first[0] = y;
        ck_assert(tn_same_bits(first[0], y));
        for (int i = 0; i < 4; i++) {
            static tn_tensor *before[4];
            if (n == 1) before[i] = g[i];
            ck_assert_msg(tn_same_bits(before[i], g[i]), "gradient %d with %d threads", i, n);
        }
    }
    tn_set_threads(0);
    for (int64_t i = 0; i < 5; i++)
        ck_assert(tn_same_bits(tn_narrow(first[0], 0, i, 1), network(tn_narrow(x, 0, i, 1), p)));
}

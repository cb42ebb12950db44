/* test_rnn.c — recurrent networks and cells: initial values, gradients, empty and smallest sizes, the same bits with
 * and without padding and in any number of calls, failing allocations, and the errors of wrong calls. test_golden_rnn.c
 * compares them with PyTorch. */
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

#include "nn/nn.h"

static tn_tensor *lengths_of(int64_t n, const int64_t *v) { return tn_from_data(TN_I64, TN_SHAPE(n), v); }
#define LENGTHS(n, ...) lengths_of(n, (const int64_t[]){__VA_ARGS__})

enum { RNN, LSTM, GRU, KINDS };
static tn_rnn *make(int kind, tn_rnn_config c)
{
    tn_rnn *m = kind == RNN ? tn_rnn_create(c) : kind == LSTM ? tn_lstm_create(c) : tn_gru_create(c);
    ck_assert_msg(m != NULL, "%s", tn_error_message());
    return m;
}
#define MAKE(kind, ...) make(kind, TN_WITH(tn_rnn_config, TN_RNN_DEFAULTS, __VA_ARGS__))

/* Outputs and last states of one call. */
typedef struct {
    tn_tensor *y, *h, *c;
} out;
static out run(tn_rnn *m, tn_tensor *x, tn_tensor *lengths)
{
    out         o = {.c = NULL};
    tn_rnn_args a = {.x = x, .lengths = lengths, .h_n = &o.h, .c_n = m->gates == 4 ? &o.c : NULL};
    o.y = tn_rnn_run(m, a);
    fine();
    return o;
}

/* ---- initial values ---------------------------------------------------------------------------------------------- */

/* U(-k, k): bounds, mean and variance, within five standard deviations of the estimate. */
static void is_uniform(const tn_tensor *t, double k)
{
    const double n = (double)tn_numel(t), var = k * k / 3;
    double       sum = 0, square = 0, most = 0;
    for (int64_t i = 0; i < tn_numel(t); i++) {
        const double v = tn_get(t, i);
        sum += v, square += v * v, most = fmax(most, fabs(v));
    }
    ck_assert(most <= k && most >= k * (1 - 20 / n));
    ck_assert_double_le(fabs(sum / n), 5 * sqrt(var / n));
    ck_assert_double_le(fabs(square / n - var), 5 * var * sqrt(0.8 / n));
}

TEST_EACH(begins_as_pytorchs, KINDS)
{
    tn_seed(11);
    tn_rnn *m = MAKE(_i, .in = 30, .hidden = 64, .layers = 2, .bidirectional = true);
    char    names[2000] = "";
    int     count = 0;
    for (tn_each p = tn_parameters(m); tn_next(&p); count++) {
        is_uniform(p.tensor, 1 / 8.0); /* 1 / √hidden: biases, too */
        strcat(strcat(names, p.name), " ");
    }
    ck_assert_int_eq(count, 16);
    ck_assert_str_eq(names, "weight_ih_l0 weight_hh_l0 bias_ih_l0 bias_hh_l0 weight_ih_l0_reverse weight_hh_l0_reverse "
                            "bias_ih_l0_reverse bias_hh_l0_reverse weight_ih_l1 weight_hh_l1 bias_ih_l1 bias_hh_l1 "
                            "weight_ih_l1_reverse weight_hh_l1_reverse bias_ih_l1_reverse bias_hh_l1_reverse ");
    ck_assert(tn_shape_equal(tn_shape_of(m->weight_ih[2]), TN_SHAPE(m->gates * 64, 128)));
    tn_rnn_cell *cell = _i == RNN    ? tn_rnn_cell_new(.in = 30, .hidden = 64)
                        : _i == LSTM ? tn_lstm_cell_new(.in = 30, .hidden = 64)
                                     : tn_gru_cell_new(.in = 30, .hidden = 64);
    for (tn_each p = tn_parameters(cell); tn_next(&p);) is_uniform(p.tensor, 1 / 8.0);
    tn_free(m), tn_free(cell);
}

/* A constructor that fails draws nothing; a copy owns its tensors; a state dict has the expected names. */
TEST_EACH(are_modules, KINDS)
{
    const tn_generator before = *tn_current_generator();
    ck_refused(tn_lstm_new(.in = 3, .hidden = 4, .dropout = 1.5), TN_EINVAL,
               "tn_lstm_new: .dropout is 1.5, but a probability is from 0 to 1");
    ck_assert_uint_eq(tn_current_generator()->position, before.position);
    tn_rnn    *m = MAKE(_i, .in = 3, .hidden = 4, .layers = 2), *n = tn_copy(m);
    tn_tensor *x = tn_normal(TN_SHAPE(2, 5, 3), 0, 1);
    ck_assert(n->weight_hh[1] != m->weight_hh[1] && tn_find_tensor(n, "weight_hh_l1") == n->weight_hh[1]);
    ck_assert(tn_same_bits(tn_call(m, x), tn_call(n, x)));
    tn_init_zeros(m->bias_hh[0]);
    ck_assert(!tn_same_bits(tn_call(m, x), tn_call(n, x)));
    tn_free(m), tn_free(n);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_rnn    *m;
    tn_tensor *lengths;
} checked;

/* All results as one tensor. in: x, h0, the first layer's weights, its bias_hh, c0. The dropped recurrent weights are
 * the same in each call. */
static tn_tensor *network_of(tn_tensor *const *in, int n, void *user)
{
    const checked     *k = user;
    tn_rnn            *m = k->m;
    tn_tensor         *old[] = {m->weight_ih[0], m->weight_hh[0], m->bias_hh[0]}, *h, *c = NULL;
    const tn_generator before = *tn_current_generator();
    tn_seed(12);
    m->weight_ih[0] = in[2], m->weight_hh[0] = in[3], m->bias_hh[0] = in[4];
    tn_rnn_args a = {.x = in[0], .h0 = in[1], .lengths = k->lengths, .h_n = &h};
    if (n == 6) a.c0 = in[5], a.c_n = &c;
    tn_tensor *y = tn_rnn_run(m, a);
    m->weight_ih[0] = old[0], m->weight_hh[0] = old[1], m->bias_hh[0] = old[2];
    *tn_current_generator() = before;
    if (!y) return NULL;
    y = tn_cat(0, tn_reshape(y, TN_SHAPE(-1)), tn_reshape(h, TN_SHAPE(-1)));
    return c ? tn_cat(0, y, tn_reshape(c, TN_SHAPE(-1))) : y;
}

TEST_EACH(gradients, 7 * KINDS)
{
    static const struct {
        int64_t b, t, lengths[3];
        bool    given, both;
        double  drop;
    } sizes[] = {{3, 4, {2, 4, 0}, true, true, 0}, {2, 3, {0}, false, false, 0}, {1, 1, {1}, true, true, 0},
                 {2, 3, {0, 0}, true, false, 0},   {0, 3, {0}, true, true, 0},   {2, 0, {0, 0}, true, false, 0},
                 {2, 3, {1, 3}, true, true, 0.4}};
    const int     kind = _i % KINDS, s = _i / KINDS;
    const int64_t b = sizes[s].b, t = sizes[s].t;
    checked       k = {.m = MAKE(kind, .in = 2, .hidden = 3, .layers = 2, .bidirectional = sizes[s].both,
                                 .relu = kind == RNN && s == 1, .dtype = TN_F64, .weight_drop = sizes[s].drop)};
    if (sizes[s].given) k.lengths = lengths_of(b, sizes[s].lengths);
    const int64_t n = k.m->layers * k.m->directions;
    tn_tensor    *in[6] = {tn_normal_of(TN_F64, TN_SHAPE(b, t, 2), 0, 1), tn_normal_of(TN_F64, TN_SHAPE(n, b, 3), 0, 1),
                           tn_detach(k.m->weight_ih[0]), tn_detach(k.m->weight_hh[0]), tn_detach(k.m->bias_hh[0])};
    if (kind == LSTM) in[5] = tn_normal_of(TN_F64, TN_SHAPE(n, b, 3), 0, 1);
    tn_gradcheck(network_of, .count = kind == LSTM ? 6 : 5, .inputs = in, .user = &k, .name = "network",
                 .second = s == 0 || (!tn_test_slow() && (s == 1 || s == 6)));
    tn_free(k.m);
}

static tn_tensor *cell_of(tn_tensor *const *in, int n, void *user)
{
    tn_tensor   *c = NULL, *old[2];
    tn_rnn_cell *m = user;
    old[0] = m->weight_hh, old[1] = m->bias_ih, m->weight_hh = in[2], m->bias_ih = in[3];
    tn_tensor *h = tn_rnn_cell_run(m, n == 5 ? (tn_rnn_cell_args){.x = in[0], .h = in[1], .c = in[4], .c_n = &c}
                                             : (tn_rnn_cell_args){.x = in[0], .h = in[1]});
    m->weight_hh = old[0], m->bias_ih = old[1];
    return c ? tn_cat(0, h, c) : h;
}

TEST_EACH(cell_gradients, KINDS)
{
    for (int64_t b = 2; b >= 0; b -= 2) {
        tn_rnn_cell *m = _i == RNN    ? tn_rnn_cell_new(.in = 2, .hidden = 3, .dtype = TN_F64)
                         : _i == LSTM ? tn_lstm_cell_new(.in = 2, .hidden = 3, .dtype = TN_F64)
                                      : tn_gru_cell_new(.in = 2, .hidden = 3, .dtype = TN_F64);
        tn_tensor   *in[5] = {tn_normal_of(TN_F64, TN_SHAPE(b, 2), 0, 1), tn_normal_of(TN_F64, TN_SHAPE(b, 3), 0, 1),
                              tn_detach(m->weight_hh), tn_detach(m->bias_ih)};
        if (_i == LSTM) in[4] = tn_normal_of(TN_F64, TN_SHAPE(b, 3), 0, 1);
        tn_gradcheck(cell_of, .count = _i == LSTM ? 5 : 4, .inputs = in, .user = m, .name = "cell", .second = true);
        fine();
        tn_free(m);
    }
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

/* The states of sequence b. */
static tn_tensor *of(tn_tensor *h, int64_t b) { return tn_narrow(h, 1, b, 1); }

/* A sequence has the same results in a batch as alone, for any values of its padding, which gets no gradient. */
TEST_EACH(padding_changes_nothing, 2 * KINDS)
{
    enum { B = 4, T = 7 };
    static const int64_t real[B] = {3, 7, 0, 5};
    const bool           time_first = _i / KINDS;
    tn_rnn    *m = MAKE(_i % KINDS, .in = 5, .hidden = 8, .layers = 2, .bidirectional = true, .time_first = time_first);
    tn_tensor *x = tn_normal(TN_SHAPE(B, T, 5), 0, 1), *given, *grad[2];
    for (int fill = 0; fill < 2; fill++) {
        for (int64_t b = 0; b < B; b++)
            for (int64_t t = real[b]; t < T; t++)
                for (int64_t i = 0; i < 5; i++) tn_set_at(x, TN_SHAPE(b, t, i), fill ? NAN : 1000);
        given = tn_requires_grad(tn_clone(time_first ? tn_transpose(x, 0, 1) : x));
        const out  all = run(m, given, lengths_of(B, real));
        tn_tensor *y = time_first ? tn_transpose(all.y, 0, 1) : all.y;
        tn_backward(tn_sum(tn_square(y)));
        fine();
        tn_tensor *gx = time_first ? tn_transpose(tn_grad(given), 0, 1) : tn_grad(given);
        grad[fill] = tn_clone(tn_grad(m->weight_hh[1]));
        tn_zero_grads(m);
        for (int64_t b = 0; b < B; b++) {
            const int64_t n = real[b];
            tn_tensor    *one = tn_requires_grad(tn_clone(tn_narrow(tn_narrow(x, 0, b, 1), 1, 0, n)));
            const out     alone = run(m, time_first ? tn_transpose(one, 0, 1) : one, NULL);
            tn_tensor    *yb = time_first ? tn_transpose(alone.y, 0, 1) : alone.y;
            ck_assert(tn_same_bits(tn_narrow(tn_narrow(y, 0, b, 1), 1, 0, n), yb));
            ck_assert(tn_same_bits(of(all.h, b), alone.h));
            if (all.c) ck_assert(tn_same_bits(of(all.c, b), alone.c));
            tn_backward(tn_sum(tn_square(yb)));
            fine();
            tn_zero_grads(m);
            ck_assert(tn_same_bits(tn_narrow(tn_narrow(gx, 0, b, 1), 1, 0, n), tn_grad(one)));
            for (int64_t i = 0; i < (T - n) * 16; i++)
                ck_assert(tn_get(tn_narrow(tn_narrow(y, 0, b, 1), 1, n, T - n), i) == 0);
            for (int64_t i = 0; i < (T - n) * 5; i++)
                ck_assert(tn_get(tn_narrow(tn_narrow(gx, 0, b, 1), 1, n, T - n), i) == 0);
        }
    }
    ck_assert(tn_same_bits(grad[0], grad[1]));
    tn_free(m);
}

/* A longer x with more padding, and lengths that are all equal. */
TEST_EACH(lengths_that_say_little, KINDS)
{
    tn_rnn    *m = MAKE(_i, .in = 3, .hidden = 4);
    tn_tensor *x = tn_normal(TN_SHAPE(2, 5, 3), 0, 1), *wide = tn_pad(x, TN_SHAPE(0, 0, 0), TN_SHAPE(0, 3, 0), 7);
    const out  plain = run(m, x, NULL), full = run(m, x, tn_to(LENGTHS(2, 5, 5), TN_I32));
    const out  more = run(m, wide, LENGTHS(2, 5, 5));
    ck_assert(tn_same_bits(plain.y, full.y) && tn_same_bits(plain.h, full.h));
    ck_assert(tn_same_bits(plain.y, tn_narrow(more.y, 1, 0, 5)) && tn_same_bits(plain.h, more.h));
    ck_assert(tn_same_bits(tn_narrow(more.y, 1, 5, 3), tn_zeros(TN_SHAPE(2, 3, 4))));
    ck_assert(tn_same_bits(tn_call(m, x), plain.y));
    ck_assert(tn_same_bits(plain.h, tn_transpose(tn_narrow(plain.y, 1, 4, 1), 0, 1)));
    tn_free(m);
}

/* Running in two parts, or step by step, equals one call. */
TEST_EACH(states_go_on, KINDS)
{
    tn_rnn     *m = MAKE(_i, .in = 3, .hidden = 4, .layers = 2);
    tn_tensor  *x = tn_normal(TN_SHAPE(2, 6, 3), 0, 1);
    const out   all = run(m, x, NULL), first = run(m, tn_narrow(x, 1, 0, 2), NULL);
    tn_tensor  *h, *c = NULL;
    tn_rnn_args a = {.x = tn_narrow(x, 1, 2, 4), .h0 = first.h, .c0 = first.c, .h_n = &h};
    if (_i == LSTM) a.c_n = &c;
    tn_tensor *y = tn_rnn_run(m, a);
    ck_assert(tn_same_bits(tn_cat(1, first.y, y), all.y) && tn_same_bits(h, all.h));
    if (c) ck_assert(tn_same_bits(c, all.c));
    fine();

    tn_rnn_cell   *cell = _i == RNN    ? tn_rnn_cell_new(.in = 3, .hidden = 4)
                          : _i == LSTM ? tn_lstm_cell_new(.in = 3, .hidden = 4)
                                       : tn_gru_cell_new(.in = 3, .hidden = 4);
    tn_rnn        *one = MAKE(_i, .in = 3, .hidden = 4);
    const tn_scope off = tn_no_grad_begin();
    tn_copy_from(cell->weight_ih, one->weight_ih[0]), tn_copy_from(cell->weight_hh, one->weight_hh[0]);
    tn_copy_from(cell->bias_ih, one->bias_ih[0]), tn_copy_from(cell->bias_hh, one->bias_hh[0]);
    tn_scope_end(off);
    fine();
    y = tn_call(one, x), h = c = NULL;
    for (int64_t t = 0; t < 6; t++) {
        h = tn_rnn_cell_run(cell,
                            (tn_rnn_cell_args){.x = tn_select(x, 1, t), .h = h, .c = c, .c_n = _i == LSTM ? &c : NULL});
        ck_assert(tn_same_bits(h, tn_select(y, 1, t)));
        if (t == 0) ck_assert(tn_same_bits(h, tn_call(cell, tn_select(x, 1, 0))));
    }
    tn_free(m), tn_free(cell), tn_free(one);
}

TEST_EACH(any_threads, KINDS)
{
    static const int64_t real[] = {11, 40, 23, 40, 1, 30, 17, 40, 8, 2, 33, 40, 21, 5, 19, 28};
    const int            threads[] = {1, 2, 3, 7};
    tn_rnn              *m = MAKE(_i, .in = 40, .hidden = 96, .layers = 2, .dropout = 0.3);
    tn_tensor           *x = tn_normal(TN_SHAPE(16, 40, 40), 0, 1), *y[3], *g[3];
    for (int i = 0; i < 3; i++) {
        tn_set_threads(threads[i]);
        tn_seed(5);
        y[i] = run(m, x, lengths_of(16, real)).y;
        tn_backward(tn_sum(tn_square(y[i])));
        fine();
        g[i] = tn_clone(tn_grad(m->weight_hh[0]));
        tn_zero_grads(m);
        ck_assert(tn_same_bits(y[i], y[0]) && tn_same_bits(g[i], g[0]));
    }
    tn_free(m);
}

static tn_tensor *segment(tn_tensor *const *in, int n, void *m) { return (void)n, tn_call((tn_rnn *)m, in[0]); }

/* Gradient checkpointing with the same random draws: the same bits. */
TEST_EACH(recomputed, KINDS)
{
    tn_rnn    *m = MAKE(_i, .in = 3, .hidden = 8, .layers = 2, .dropout = 0.4);
    tn_tensor *x = tn_normal(TN_SHAPE(2, 6, 3), 0, 1), *y[2], *g[2];
    for (int i = 0; i < 2; i++) {
        tn_seed(8);
        y[i] = i ? tn_checkpoint(segment, m, 1, &x) : tn_call(m, x);
        tn_backward(tn_sum(tn_square(y[i])));
        fine();
        g[i] = tn_clone(tn_grad(m->weight_hh[0]));
        tn_zero_grads(m);
    }
    ck_assert(tn_same_bits(y[0], y[1]) && tn_same_bits(g[0], g[1]));
    tn_free(m);
}

/* Under autocast the products and the states h are bf16, the states c f32; or all is bf16, or f64. */
TEST_EACH(number_types, KINDS)
{
    tn_rnn    *m = MAKE(_i, .in = 16, .hidden = 37, .layers = 2), *b = tn_copy(m), *d = tn_copy(m);
    tn_tensor *x = tn_normal(TN_SHAPE(3, 9, 16), 0, 1), *lengths = LENGTHS(3, 9, 0, 4);
    const out  f32 = run(m, x, lengths);
    tn_scope   s = tn_autocast_begin(true);
    const out  cast = run(m, x, lengths);
    tn_backward(tn_sum(tn_square(cast.y)));
    tn_scope_return_list(s, cast.c ? 3 : 2, (tn_tensor *[]){cast.y, cast.h, cast.c});
    fine();
    tn_module_to(b, TN_BF16), tn_module_to(d, TN_F64);
    const out f64 = run(d, tn_to(x, TN_F64), lengths);
    const out low = run(b, tn_to(x, TN_BF16), lengths);
    tn_backward(tn_sum(tn_square(low.y)));
    fine();
    ck_assert_int_eq(tn_dtype_of(tn_grad(m->weight_hh[0])), TN_F32);
    ck_assert(tn_dtype_of(cast.y) == TN_BF16 && tn_dtype_of(cast.h) == TN_BF16 && tn_dtype_of(low.y) == TN_BF16);
    if (cast.c) ck_assert(tn_dtype_of(cast.c) == TN_F32 && tn_dtype_of(low.c) == TN_BF16);
    for (int64_t i = 0; i < tn_numel(f32.y); i++) { /* outputs are below 1, and bf16 has 8 bits */
        ck_assert_double_eq_tol(tn_get(f32.y, i), tn_get(f64.y, i), 2e-6);
        ck_assert_double_eq_tol(tn_get(cast.y, i), tn_get(f32.y, i), 0.01);
        ck_assert_double_eq_tol(tn_get(low.y, i), tn_get(f32.y, i), 0.02);
    }
    tn_free(m), tn_free(b), tn_free(d);
}

/* Dropout between layers, in training only. */
TEST_EACH(dropouts, KINDS)
{
    tn_rnn    *m = MAKE(_i, .in = 3, .hidden = 16, .layers = 2, .dropout = 1), *n = MAKE(_i, .in = 3, .hidden = 16);
    tn_tensor *x = tn_normal(TN_SHAPE(2, 4, 3), 0, 1), *zero = tn_zeros(TN_SHAPE(2, 4, 3));
    ck_assert(tn_same_bits(tn_call(m, x), tn_call(m, zero))); /* everything is dropped */
    tn_eval(m);
    ck_assert(!tn_same_bits(tn_call(m, x), tn_call(m, zero)));
    n->dropout = 1; /* one layer has no dropout */
    ck_assert(!tn_same_bits(tn_call(n, x), tn_call(n, zero)));
    tn_free(m), tn_free(n);
}

/* A training step calls malloc no more after the first steps of the same shapes; evaluation stores no steps. */
TEST(is_lean)
{
    tn_rnn    *m = MAKE(LSTM, .in = 32, .hidden = 64);
    tn_tensor *x = tn_normal(TN_SHAPE(8, 50, 32), 0, 1);
    uint64_t   mallocs = 0;
    for (int step = 0; step < 3; step++) {
        const tn_scope s = tn_scope_begin();
        if (step == 2) mallocs = tn_memory_now().mallocs;
        tn_backward(tn_sum(tn_call(m, x)));
        tn_zero_grads(m);
        tn_scope_end(s);
    }
    if (TN_TEST_CACHE) ck_assert_uint_eq(tn_memory_now().mallocs, mallocs);
    const tn_scope off = tn_no_grad_begin();
    tn_reset_peak();
    const size_t before = tn_memory_now().live;
    tn_call(m, x);
    /* x packed by time, the products of all steps, the result, the transposed weights; the memory of a step is small.
     * What the tape would store of all steps is 614 kB. */
    ck_assert_uint_le(tn_memory_now().peak - before, 4 * (8 * 50 * (32 + 256 + 64) + 64 * 280) + 100000);
    tn_scope_end(off);
    tn_free(m);
}

/* ---- failing allocations ----------------------------------------------------------------------------------------- */

static double digest(tn_tensor *t) { return t ? tn_item(tn_sum(tn_mul(tn_detach(t), tn_detach(t)))) : NAN; }

static double once(int kind)
{
    tn_seed(3);
    const tn_scope s = tn_scope_begin();
    tn_rnn_config  c = {.in = 2, .hidden = 3, .layers = 2, .bidirectional = true, .dropout = 0.5};
    tn_rnn        *m = kind == RNN ? tn_rnn_create(c) : kind == LSTM ? tn_lstm_create(c) : tn_gru_create(c);
    tn_tensor     *x = tn_requires_grad(tn_normal(TN_SHAPE(3, 2, 2), 0, 1)), *h = NULL, *cell = NULL;
    double         sum = NAN;
    if (m && x) {
        tn_rnn_args a = {.x = x, .lengths = LENGTHS(3, 1, 2, 0), .h_n = &h, .c_n = kind == LSTM ? &cell : NULL};
        tn_tensor  *y = tn_rnn_run(m, a);
        ck_assert(!y == !h && (kind != LSTM || !y == !cell));
        tn_backward(tn_sum(tn_square(y)));
        sum = digest(y) + digest(h) + digest(tn_grad(x)) + digest(tn_grad(m->weight_hh[1]));
    }
    tn_free(m);
    tn_scope_end(s);
    return sum;
}

BARE_TEST_EACH(memory_fails, KINDS) { tn_each_allocation_fails(once, _i, tn_test_slow() ? 7 : 1, 5, 150); }

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

/* An option of another op is an error. */
TEST(options_of_others)
{
    tn_tensor *h = tn_zeros(TN_SHAPE(2, 4)), *last = NULL;
#define OF_OTHERS(kind, gates, option, whose)                                                                       \
    ck_assert(!tn_##kind##_steps(tn_zeros(TN_SHAPE(2, (gates)*4)), tn_zeros(TN_SHAPE((gates)*4, 4)), h, .steps = 1, \
                                 .option)),                                                                         \
        ck_error_has(TN_EINVAL, #kind ": ." whose)
    OF_OTHERS(rnn, 1, c = h, "c is only for an LSTM");
    OF_OTHERS(rnn, 1, last_c = &last, "last_c is only for an LSTM");
    OF_OTHERS(rnn, 1, proj = h, "proj is only for an LSTM");
    OF_OTHERS(rnn, 1, bias = h, "bias is only for a GRU; elsewhere it is a part of x");
    OF_OTHERS(gru, 3, c = h, "c is only for an LSTM");
    OF_OTHERS(gru, 3, relu = true, "relu is only for a plain network; these gates have fixed functions");
    OF_OTHERS(lstm, 4, relu = true, "relu is only for a plain network; these gates have fixed functions");
    OF_OTHERS(lstm, 4, bias = h, "bias is only for a GRU; elsewhere it is a part of x");
    ck_refused(tn_lstm_steps(h, h, h, .c = h, .proj = h, .relu = true), TN_EINVAL,
               "lstm_proj: .relu is only for a plain network; these gates have fixed functions");
}

TEST(wrong_use)
{
    ck_refused(tn_lstm_new(.hidden = 4), TN_EINVAL, "tn_lstm_new: .in is 0, but must be at least 1");
    ck_refused(tn_gru_new(.in = 4), TN_EINVAL, "tn_gru_new: .hidden is 0, but must be at least 1");
    ck_refused(tn_rnn_new(.in = 4, .hidden = 2, .layers = -1), TN_EINVAL,
               "tn_rnn_new: .layers is -1, but must be at least 1");
    ck_assert(!tn_lstm_new(.in = 3, .hidden = 4, .layers = 0)); /* a value that is set is used, 0 included */
    ck_error(TN_EINVAL, "tn_lstm_new: .layers is 0, but must be at least 1");
    ck_refused(tn_rnn_new(.in = 4, .hidden = 2, .dtype = TN_I64), TN_EDTYPE,
               "tn_rnn_new: .dtype is i64, but parameters are f32, f64 or bf16");
    ck_refused(tn_gru_new(.in = 4, .hidden = 2, .relu = true), TN_EINVAL,
               "tn_gru_new: .relu is only for tn_rnn_new; LSTM and GRU have fixed activations");
    ck_refused(tn_lstm_new(.in = 4, .hidden = 2, .locked = true), TN_EINVAL,
               "tn_lstm_new: .locked is set but has no effect because .dropout is 0");
    ck_refused(tn_lstm_cell_new(.in = 4, .hidden = 2, .relu = true), TN_EINVAL,
               "tn_lstm_cell_new: .relu is for tn_rnn_cell_new");
    ck_refused(tn_gru_cell_new(.hidden = 2), TN_EINVAL, "tn_gru_cell_new: .in is 0, but must be at least 1");

    tn_lstm   *m = tn_lstm_new(.in = 3, .hidden = 4, .layers = 2), *both = NULL;
    tn_gru    *g = tn_gru_new(.in = 3, .hidden = 4, .time_first = true);
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 5, 3)), *h = tn_zeros(TN_SHAPE(2, 2, 4)), *c;
    tn_call(m, tn_zeros(TN_SHAPE(2, 5, 4)));
    ck_error(TN_ESHAPE, "LSTM: x [2, 5, 4] must be [B, T, 3]");
    tn_call(g, tn_zeros(TN_SHAPE(5, 3)));
    ck_error(TN_ESHAPE, "GRU: x [5, 3] must be [T, B, 3]; one sequence is a batch of 1: see tn_unsqueeze");
    tn_lstm_forward(m, NULL);
    ck_error(TN_EINVAL, "LSTM: x is NULL");
    tn_lstm_forward(m, x, .h0 = tn_zeros(TN_SHAPE(1, 2, 4)));
    ck_error(TN_ESHAPE, "LSTM: h0 [1, 2, 4] must be [layers, B, hidden] = [2, 2, 4]");
    tn_lstm_forward(m, x, .h0 = h, .c0 = tn_zeros(TN_SHAPE(2, 2, 3)));
    ck_error(TN_ESHAPE, "LSTM: c0 [2, 2, 3] must be [layers, B, hidden] = [2, 2, 4]");
    both = tn_lstm_new(.in = 3, .hidden = 4, .bidirectional = true);
    tn_lstm_forward(both, x, .h0 = tn_zeros(TN_SHAPE(1, 2, 4)));
    ck_error(TN_ESHAPE, "LSTM: h0 [1, 2, 4] must be [layers · 2, B, hidden] = [2, 2, 4]");
    tn_lstm_forward(m, x, .h0 = tn_zeros_of(TN_I64, TN_SHAPE(2, 2, 4)), .h_n = &h);
    ck_error(TN_EDTYPE, "LSTM: h0 must be floating, got i64");
    ck_assert(!h);
    tn_gru_forward(g, tn_zeros(TN_SHAPE(5, 2, 3)), .c_n = &c);
    ck_error(TN_EINVAL, "GRU: c_n is for an LSTM; this has one state, h");
    tn_lstm_forward(m, x, .lengths = tn_zeros(TN_SHAPE(2)));
    ck_error(TN_EDTYPE, "LSTM: lengths must be i64 or i32, got f32");
    tn_lstm_forward(m, x, .lengths = LENGTHS(3, 1, 2, 3));
    ck_error(TN_ESHAPE, "LSTM: lengths [3] must be [B] = [2]: one per sequence");
    tn_lstm_forward(m, x, .lengths = LENGTHS(2, 5, 6));
    ck_error(TN_EINDEX, "LSTM: lengths[1] is 6, but x has 5 steps; a length must be from 0 to 5");
    tn_lstm_forward(m, x, .lengths = LENGTHS(2, -1, 5));
    ck_error(TN_EINDEX, "LSTM: lengths[0] is -1, but x has 5 steps; a length must be from 0 to 5");
    tn_module_list *list = tn_module_list_new();
    tn_append(list, m);
    tn_lstm_forward(m, x, .lengths = LENGTHS(2, 9, 5));
    ck_error(TN_EINDEX, "0: LSTM: lengths[0] is 9, but x has 5 steps; a length must be from 0 to 5");

    tn_lstm_cell *cell = tn_lstm_cell_new(.in = 3, .hidden = 4);
    tn_gru_cell  *gru = tn_gru_cell_new(.in = 3, .hidden = 4);
    tn_call(cell, tn_zeros(TN_SHAPE(2, 4)));
    ck_error(TN_ESHAPE, "LSTMCell: x [2, 4] must be [B, 3]");
    tn_lstm_cell_forward(cell, tn_zeros(TN_SHAPE(2, 3)), .h = tn_zeros(TN_SHAPE(3, 4)));
    ck_error(TN_ESHAPE, "LSTMCell: h [3, 4] must be [B, hidden] = [2, 4]");
    tn_lstm_cell_forward(cell, tn_zeros(TN_SHAPE(2, 3)), .c = tn_zeros(TN_SHAPE(2, 5)), .c_n = &c);
    ck_error(TN_ESHAPE, "LSTMCell: c [2, 5] must be [B, hidden] = [2, 4]");
    tn_gru_cell_forward(gru, tn_zeros(TN_SHAPE(2, 3)), .c_n = &c);
    ck_error(TN_EINVAL, "GRUCell: c_n is for an LSTMCell; this has one state, h");
    tn_rnn_cell_run(gru, (tn_rnn_cell_args){.x = NULL});
    ck_error(TN_EINVAL, "GRUCell: x is NULL");
    tn_free(list), tn_free(g), tn_free(both), tn_free(cell), tn_free(gru);
}

/* test_golden_rnn.c — recurrent networks and cells compared with PyTorch: outputs and last states concatenated, the
 * gradients of inputs, initial states and parameters, and printed text. tests/golden/rnn.py writes the data. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"
#include "tests/common/golden_case.h"

enum { B = 3, T = 5, IN = 4, HIDDEN = 6 };

/* Concatenates all of these. */
static tn_tensor *flat(tn_tensor *y, tn_tensor *h, tn_tensor *c)
{
    tn_tensor *t[3];
    int        n = 0;
    if (y) t[n++] = tn_reshape(y, TN_SHAPE(-1));
    if (h) t[n++] = tn_reshape(h, TN_SHAPE(-1));
    if (c) t[n++] = tn_reshape(c, TN_SHAPE(-1));
    return tn_cat_list(0, n, t);
}

static tn_tensor *network(tn_golden *k, tn_rnn *m, bool lengths, bool given)
{
    tn_golden_fill(k, m);
    const int64_t n = m->layers * m->directions;
    const bool    lstm = m->gates == 4;
    tn_tensor    *h, *c = NULL;
    tn_rnn_args   a = {.h_n = &h};
    a.x = tn_golden_input(k, "x", m->time_first ? TN_SHAPE(T, B, IN) : TN_SHAPE(B, T, IN));
    if (given) a.h0 = tn_golden_input(k, "h0", TN_SHAPE(n, B, HIDDEN));
    if (given && lstm) a.c0 = tn_golden_input(k, "c0", TN_SHAPE(n, B, HIDDEN));
    if (lengths) a.lengths = tn_from_data(TN_I64, TN_SHAPE(B), (const int64_t[]){3, 5, 1});
    if (lstm) a.c_n = &c;
    tn_tensor *y = tn_rnn_run(m, a);
    return flat(y, h, c);
}

static tn_tensor *projected(tn_golden *k, tn_lstm *m)
{
    tn_golden_fill(k, m);
    const int64_t n = m->layers * m->directions;
    tn_tensor    *h, *c;
    tn_rnn_args   a = {.h_n = &h, .c_n = &c};
    a.x = tn_golden_input(k, "x", TN_SHAPE(T, B, IN));
    a.h0 = tn_golden_input(k, "h0", TN_SHAPE(n, B, 2)), a.c0 = tn_golden_input(k, "c0", TN_SHAPE(n, B, HIDDEN));
    a.lengths = tn_from_data(TN_I64, TN_SHAPE(B), (const int64_t[]){3, 5, 1});
    tn_tensor *y = tn_rnn_run(m, a);
    return flat(y, h, c);
}

/* The masks are those of this seed, which tests/golden/rnn.py draws with Tenon's algorithm. */
static tn_tensor *weight_dropped(tn_golden *k, tn_rnn *m, bool lengths)
{
    tn_golden_fill(k, m);
    const int64_t n = m->layers * m->directions;
    tn_tensor    *h, *c = NULL;
    tn_rnn_args   a = {.h_n = &h};
    a.x = tn_golden_input(k, "x", TN_SHAPE(T, B, m->in));
    a.h0 = tn_golden_input(k, "h0", TN_SHAPE(n, B, m->proj_size ? m->proj_size : m->hidden));
    if (m->gates == 4) a.c0 = tn_golden_input(k, "c0", TN_SHAPE(n, B, m->hidden)), a.c_n = &c;
    if (lengths) a.lengths = tn_from_data(TN_I64, TN_SHAPE(B), (const int64_t[]){3, 5, 1});
    tn_seed(2017);
    tn_tensor *y = tn_rnn_run(m, a);
    return flat(y, h, c);
}

static tn_tensor *cell(tn_golden *k, tn_rnn_cell *m, bool given)
{
    tn_golden_fill(k, m);
    tn_tensor       *c = NULL;
    tn_rnn_cell_args a = {.x = tn_golden_input(k, "x", TN_SHAPE(B, IN))};
    if (given) a.h = tn_golden_input(k, "h", TN_SHAPE(B, HIDDEN));
    if (given && m->gates == 4) a.c = tn_golden_input(k, "c", TN_SHAPE(B, HIDDEN));
    if (m->gates == 4) a.c_n = &c;
    tn_tensor *h = tn_rnn_cell_run(m, a);
    return flat(NULL, h, c);
}

#define SIZES .in = IN, .hidden = HIDDEN, .dtype = k->dtype
#define DROPPED(p, ...) .in = 3, .dtype = k->dtype, .time_first = true, .weight_drop = p, __VA_ARGS__
#define EACH(C, kind)                                                                                                  \
    C(kind, network(k, tn_##kind##_new(SIZES), false, false))                                                          \
    C(kind##_given, network(k, tn_##kind##_new(SIZES, .layers = 2, .no_bias = true, .time_first = true), false, true)) \
    C(kind##_lengths, network(k, tn_##kind##_new(SIZES, .layers = 2), true, true))                                     \
    C(kind##_both,                                                                                                     \
      network(k, tn_##kind##_new(SIZES, .layers = 2, .bidirectional = true, .time_first = true), true, false))         \
    C(kind##_both_given, network(k, tn_##kind##_new(SIZES, .bidirectional = true), true, true))
#define CASES(C)                                                                                                       \
    EACH(C, rnn)                                                                                                       \
    EACH(C, lstm)                                                                                                      \
    EACH(C, gru)                                                                                                       \
    C(rnn_relu, network(k, tn_rnn_new(SIZES, .relu = true, .bidirectional = true, .time_first = true), true, true))    \
    C(lstm_dropout, network(k, tn_lstm_new(SIZES, .dropout = 0.25), false, false))                                     \
    C(lstm_proj, projected(k, tn_lstm_new(SIZES, .proj_size = 2, .time_first = true)))                                 \
    C(lstm_proj_both,                                                                                                  \
      projected(k, tn_lstm_new(SIZES, .proj_size = 2, .layers = 2, .bidirectional = true, .time_first = true)))        \
    C(lstm_proj_plain,                                                                                                 \
      projected(k, tn_lstm_new(SIZES, .proj_size = 2, .layers = 2, .no_bias = true, .time_first = true)))              \
    C(lstm_weight_drop, weight_dropped(k, tn_lstm_new(DROPPED(0.5, .hidden = 7)), false))                              \
    C(lstm_weight_drop_both,                                                                                           \
      weight_dropped(k, tn_lstm_new(DROPPED(0.3, .hidden = 5, .layers = 2, .bidirectional = true)), true))             \
    C(lstm_weight_drop_proj,                                                                                           \
      weight_dropped(k, tn_lstm_new(DROPPED(0.25, .hidden = 5, .layers = 2, .no_bias = true, .proj_size = 3)), false)) \
    C(gru_weight_drop, weight_dropped(k, tn_gru_new(DROPPED(0.3, .hidden = 5, .layers = 2)), true))                    \
    C(rnn_weight_drop,                                                                                                 \
      weight_dropped(k, tn_rnn_new(DROPPED(0.5, .hidden = 5, .layers = 2, .bidirectional = true)), false))             \
    C(rnn_cell, cell(k, tn_rnn_cell_new(SIZES), true))                                                                 \
    C(rnn_cell_relu, cell(k, tn_rnn_cell_new(SIZES, .relu = true), true))                                              \
    C(lstm_cell, cell(k, tn_lstm_cell_new(SIZES), true))                                                               \
    C(gru_cell, cell(k, tn_gru_cell_new(SIZES), true))                                                                 \
    C(lstm_cell_zero, cell(k, tn_lstm_cell_new(SIZES, .no_bias = true), false))                                        \
    C(gru_cell_zero, cell(k, tn_gru_cell_new(SIZES), false))

#define C(name, ...) \
    static tn_tensor *run_##name(tn_golden *k) { return __VA_ARGS__; }
CASES(C)
#undef C
#define C(name, ...) {#name, run_##name},
static const tn_golden_case cases[] = {CASES(C)};
enum { COUNT = sizeof cases / sizeof *cases };

static tn_safetensors *golden;
static void            open_golden(void)
{
    golden = tn_safetensors_open(tn_test_data("golden/rnn.safetensors"));
    ck_assert_msg(golden != NULL, "%s", tn_error_message());
}
static void close_golden(void) { tn_safetensors_close(golden); }
AROUND_TESTS(open_golden, close_golden);

TEST_EACH(networks, COUNT) { tn_golden_check(golden, &cases[_i]); }

TEST_EACH(texts, COUNT)
{
    tn_golden   k = {.name = cases[_i].name};
    char        got[300] = "";
    const char *want = tn_safetensors_metadata(golden, k.name);
    ck_assert_msg(want != NULL, "%s is not in rnn.safetensors", k.name);
    ck_assert_ptr_nonnull(cases[_i].run(&k));
    FILE *f = fmemopen(got, sizeof got, "w");
    tn_module_print(f, k.module);
    fclose(f);
    tn_module_free(k.module);
    ck_assert_int_eq(strncmp(got, want, strlen(want)), 0);
    ck_assert_str_eq(got + strlen(want), "\n");
}

/* Every case of the golden file runs here. */
TEST(nothing_is_left_out)
{
    for (int64_t i = 0; i < tn_safetensors_count(golden); i++) {
        const char *name = tn_safetensors_at(golden, i).name;
        bool        found = false;
        for (int k = 0; k < COUNT && !found; k++)
            found = !strncmp(name, cases[k].name, strcspn(name, "/")) && !cases[k].name[strcspn(name, "/")];
        ck_assert_msg(found, "no case for %s", name);
    }
}

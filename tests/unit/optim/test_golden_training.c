/* test_golden_training.c — training of five models compared with PyTorch: 20 steps with AdamW, clipping and a schedule;
 * the loss of each step and the norm of its gradients. tests/golden/training.py writes the data, from the same
 * formulas. */
#include "optim/optim.h"
#include "tests/common/check_main.h"
#include "tests/common/golden_case.h"

enum { STEPS = 20, V = 29, D = 16, H = 4, FF = 32, B = 4, S = 7, T = 6 };

/* ---- data -------------------------------------------------------------------------------------------------------- */

/* Values low … high - 1; there are four batches, used in turn. */
static tn_tensor *tokens(const char *name, int step, int64_t low, int64_t high, tn_shape s)
{
    uint32_t h = 2166136261u;
    for (const char *c = tn_name("%s/%d", name, step % 4); *c; c++) h = (h ^ (uint8_t)*c) * 16777619u;
    tn_tensor *t = tn_zeros_of(TN_I64, s);
    for (int64_t i = 0; i < tn_numel(t); i++) tn_set_i64(t, i, low + (i * 7919 + (int64_t)h) % 10007 % (high - low));
    return t;
}
/* Tokens from 3 on; sequence b is shorter by b tokens and padded with 0. */
static tn_tensor *padded(const char *name, int step, int64_t n)
{
    tn_tensor *x = tokens(name, step, 3, V, TN_SHAPE(B, n));
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = n - b; t < n; t++) tn_set_at(x, TN_SHAPE(b, t), 0);
    return x;
}
/* The decoder's input for target y. */
static tn_tensor *shifted(tn_tensor *y)
{
    return tn_cat(1, tn_full_of(TN_I64, TN_SHAPE(B, 1), 1), tn_narrow(y, 1, 0, tn_size(y, 1) - 1));
}

/* ---- models: each has a module, its optimizer and schedule, and the loss of a step ------------------------------- */

typedef struct {
    tn_module               base;
    tn_embedding           *source, *target, *words, *segments, *place;
    tn_positions           *positions;
    tn_layer_norm          *norm;
    tn_transformer         *transformer;
    tn_transformer_encoder *encoder;
    tn_mlm_head            *head;
    tn_rnn                 *rnn;
    tn_additive_attention  *attention;
    tn_rnn_cell            *cell;
    tn_linear              *bridge, *out;
    tn_tensor              *h, *c; /* states carried to the next step */
} model;
TN_MODULE(model);

#define TABLE(m, member, name, rows) \
    m->member = tn_child(m, name, tn_embedding_new(.count = rows, .dim = D, .dtype = dt))
#define LINEAR(m, member, from, to) m->member = tn_child(m, #member, tn_linear_new(.in = from, .out = to, .dtype = dt))

/* "Attention is all you need" */
static void seq2seq(model *m, tn_dtype dt)
{
    TABLE(m, source, "source", V);
    TABLE(m, target, "target", V);
    m->transformer = tn_child(m, "transformer",
                              tn_transformer_new(.dim = D, .heads = H, .encoder_layers = 2, .decoder_layers = 2,
                                                 .ff = FF, .dropout = 0, .dtype = dt));
    LINEAR(m, out, D, V);
    m->positions = tn_child(m, "positions", tn_sinusoidal_positions_new(.dim = D, .length = S, .dtype = dt));
}
static tn_schedule *seq2seq_schedule(model *m, tn_optimizer **o)
{
    *o = tn_adamw_new(m, .lr = 1, .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-9, .clip.norm = 1);
    return tn_noam_lr_new(*o, .dim = D, .warmup = 8, .factor = 0.5);
}
static tn_tensor *seq2seq_loss(model *m, int step)
{
    tn_tensor *x = padded("seq2seq/x", step, S), *y = padded("seq2seq/y", step, T), *read = shifted(y);
    tn_tensor *pad = tn_padding_mask(x, 0);
    tn_tensor *src = tn_call(m->positions, tn_mul_scalar(tn_call(m->source, x), sqrt(D)));
    tn_tensor *tgt = tn_call(m->positions, tn_mul_scalar(tn_call(m->target, read), sqrt(D)));
    tn_tensor *h = tn_transformer_forward(m->transformer, src, tgt, .causal = true, .src_key_padding_mask = pad,
                                          .key_padding_mask = tn_padding_mask(read, 0), .memory_key_padding_mask = pad);
    return tn_cross_entropy(tn_call(m->out, h), y, .ignore_index = 0, .label_smoothing = 0.1);
}

/* An encoder with an MLM head tied to the embedding; only masked positions get logits. */
static void bert(model *m, tn_dtype dt)
{
    TABLE(m, words, "words", V);
    TABLE(m, segments, "segments", 2);
    TABLE(m, place, "positions", S);
    m->norm = tn_child(m, "norm", tn_layer_norm_new(.dim = D, .eps = 1e-12, .dtype = dt));
    m->encoder = tn_child(m, "encoder",
                          tn_transformer_encoder_new(.layers = 2, .dim = D, .heads = H, .ff = FF, .dropout = 0,
                                                     .activation = tn_gelu, .dtype = dt));
    m->head = tn_child(m, "head", tn_mlm_head_new(.embedding = m->words->weight, .eps = 1e-12));
}
static tn_schedule *bert_schedule(model *m, tn_optimizer **o)
{
    *o = tn_adamw_new(m, .lr = 5e-3, .weight_decay = 0.05, .clip.norm = 1);
    tn_no_decay(*o);
    return tn_warmup_lr_new(*o, .warmup = 4, .steps = STEPS);
}
static tn_tensor *bert_loss(model *m, int step)
{
    enum { MASKED = B + 1 };
    tn_tensor *x = padded("bert/x", step, S), *pad = tn_padding_mask(x, 0), *flat = tn_reshape(x, TN_SHAPE(B * S));
    tn_tensor *where = tn_zeros_of(TN_I64, TN_SHAPE(MASKED)), *segments = tn_zeros_of(TN_I64, TN_SHAPE(S));
    for (int64_t b = 0; b < B; b++) tn_set_i64(where, b, b * S + (b + step % 4) % (S - B));
    tn_set_i64(where, B, 2 * S + 4);
    tn_tensor *target = tn_index_select(flat, 0, where);
    for (int64_t i = 0; i < MASKED; i++) tn_set_i64(flat, tn_get_i64(where, i), 2); /* a view of x */
    for (int64_t t = 3; t < S; t++) tn_set_i64(segments, t, 1);
    tn_tensor *e = tn_add(tn_add(tn_call(m->words, x), m->place->weight), tn_call(m->segments, segments));
    tn_tensor *h = tn_transformer_encoder_forward(m->encoder, tn_call(m->norm, e), .key_padding_mask = pad);
    return tn_cross_entropy(tn_call(m->head, tn_index_select(tn_reshape(h, TN_SHAPE(B * S, D)), 0, where)), target);
}

/* A decoder without a memory, pre-norm; the output is tied to the embedding. */
static void gpt(model *m, tn_dtype dt)
{
    TABLE(m, words, "words", V);
    TABLE(m, place, "positions", S);
    m->encoder = tn_child(m, "decoder",
                          tn_transformer_encoder_new(.layers = 2, .dim = D, .heads = H, .ff = FF, .dropout = 0,
                                                     .activation = tn_gelu, .order = TN_NORM_FIRST, .final_norm = true,
                                                     .dtype = dt));
}
static tn_schedule *gpt_schedule(model *m, tn_optimizer **o)
{
    *o = tn_adamw_new(m, .lr = 3e-3, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1, .clip.norm = 0.5);
    return tn_warmup_lr_new(*o, .warmup = 3, .steps = STEPS + 5, .decay = TN_DECAY_COSINE);
}
static tn_tensor *gpt_loss(model *m, int step)
{
    tn_tensor *x = tokens("gpt", step, 0, V, TN_SHAPE(B, S + 1));
    tn_tensor *e = tn_add(tn_call(m->words, tn_narrow(x, 1, 0, S)), m->place->weight);
    tn_tensor *h = tn_transformer_encoder_forward(m->encoder, e, .causal = true);
    return tn_cross_entropy(tn_linear(h, m->words->weight, NULL), tn_narrow(x, 1, 1, S));
}

/* A language model that continues with the states of the previous step. */
static void lstm_lm(model *m, tn_dtype dt)
{
    TABLE(m, words, "words", V);
    m->rnn = tn_child(m, "lstm", tn_lstm_new(.in = D, .hidden = 20, .layers = 2, .dtype = dt));
    LINEAR(m, out, 20, V);
}
static tn_schedule *lstm_lm_schedule(model *m, tn_optimizer **o)
{
    *o = tn_adamw_new(m, .lr = 5e-3, .clip.norm = 0.25);
    return tn_step_lr_new(*o, .size = 6, .gamma = 0.5);
}
static tn_tensor *lstm_lm_loss(model *m, int step)
{
    tn_tensor *x = tokens("lstm_lm", step, 0, V, TN_SHAPE(B, S + 1)), *h, *c;
    tn_tensor *y =
        tn_lstm_forward(m->rnn, tn_call(m->words, tn_narrow(x, 1, 0, S)), .h0 = m->h, .c0 = m->c, .h_n = &h, .c_n = &c);
    tn_drop(m->h), tn_drop(m->c);
    m->h = tn_keep(tn_detach(h)), m->c = tn_keep(tn_detach(c));
    return tn_cross_entropy(tn_call(m->out, y), tn_narrow(x, 1, 1, S));
}

/* A bidirectional GRU encoder, and a GRU decoder that attends to it at each step. */
static void bahdanau(model *m, tn_dtype dt)
{
    TABLE(m, source, "source", V);
    TABLE(m, target, "target", V);
    m->rnn = tn_child(m, "encoder", tn_gru_new(.in = D, .hidden = 10, .bidirectional = true, .dtype = dt));
    LINEAR(m, bridge, 20, 12);
    m->attention =
        tn_child(m, "attention", tn_additive_attention_new(.query = 12, .memory = 20, .hidden = 14, .dtype = dt));
    m->cell = tn_child(m, "cell", tn_gru_cell_new(.in = D + 20, .hidden = 12, .dtype = dt));
    LINEAR(m, out, 12 + 20 + D, V);
}
static tn_schedule *bahdanau_schedule(model *m, tn_optimizer **o)
{
    *o = tn_adamw_new(m, .clip.norm = 1);
    return tn_one_cycle_lr_new(*o, .max_lr = 1e-2, .steps = STEPS + 1);
}
static tn_tensor *bahdanau_loss(model *m, int step)
{
    tn_tensor *x = padded("bahdanau/x", step, S), *y = padded("bahdanau/y", step, T), *last, *said[T];
    tn_tensor *pad = tn_padding_mask(x, 0), *lengths = tn_sum(tn_logical_not(pad), .dims = TN_DIMS(1));
    tn_tensor *memory = tn_gru_forward(m->rnn, tn_call(m->source, x), .lengths = lengths, .h_n = &last);
    tn_tensor *keys = tn_additive_attention_keys(m->attention, memory), *words = tn_call(m->target, shifted(y));
    tn_tensor *h = tn_tanh(tn_call(m->bridge, tn_cat(1, tn_select(last, 0, 0), tn_select(last, 0, 1))));
    for (int64_t t = 0; t < T; t++) {
        tn_tensor *word = tn_select(words, 1, t);
        tn_tensor *seen = tn_additive_attention_forward(m->attention, h, memory, .keys = keys, .key_padding_mask = pad);
        h = tn_gru_cell_forward(m->cell, tn_cat(1, word, seen), .h = h);
        said[t] = tn_call(m->out, tn_cat(1, h, seen, word));
    }
    return tn_cross_entropy(tn_stack_list(1, T, said), y, .ignore_index = 0);
}

static const struct {
    const char *name;
    double      matrices;
    void (*build)(model *m, tn_dtype dt);
    tn_schedule *(*schedule)(model *m, tn_optimizer **o);
    tn_tensor *(*loss)(model *m, int step);
} models[] = {{"seq2seq", 0.4, seq2seq, seq2seq_schedule, seq2seq_loss},
              {"bert", 0.4, bert, bert_schedule, bert_loss},
              {"gpt", 0.4, gpt, gpt_schedule, gpt_loss},
              {"lstm_lm", 0.6, lstm_lm, lstm_lm_schedule, lstm_lm_loss},
              {"bahdanau", 0.6, bahdanau, bahdanau_schedule, bahdanau_loss}};
enum { MODELS = sizeof models / sizeof *models };

/* ---- training ---------------------------------------------------------------------------------------------------- */

static tn_safetensors *golden;
static void            open_golden(void)
{
    golden = tn_safetensors_open(tn_test_data("golden/training.safetensors"));
    ck_assert_msg(golden != NULL, "%s", tn_error_message());
}
static void close_golden(void) { tn_safetensors_close(golden); }
AROUND_TESTS(open_golden, close_golden);

static void near(const char *what, int step, double got, const tn_tensor *all, double tol)
{
    const double want = tn_get(all, step), far = fabs(got - want) / fabs(want);
    ck_assert_msg(far <= tol, "step %d: %s is %.10g, PyTorch's %.10g (relative %.2g)", step, what, got, want, far);
    if (getenv("TENON_TEST_WORST")) printf("%.2g %s\n", far, what);
}

/* Equal to PyTorch's f64 values: in f32 to 1e-5 of each loss, in f64 to 1e-11. */
static void trains(int which, tn_dtype dt, double tol)
{
    tn_tensor *losses = tn_safetensors_get(golden, tn_name("%s/losses", models[which].name));
    tn_tensor *norms = tn_safetensors_get(golden, tn_name("%s/norms", models[which].name));
    model     *m = tn_module_new(model);
    models[which].build(m, dt);
    ck_assert_msg((m = tn_built(m)) != NULL, "%s", tn_error_message());
    tn_golden_fill(&(tn_golden){.name = models[which].name, .dtype = dt, .matrices = models[which].matrices}, m);
    tn_optimizer *o = NULL;
    tn_schedule  *schedule = models[which].schedule(m, &o);
    double        first = 0, last = 0;
    for (int step = 0; step < STEPS; step++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = models[which].loss(m, step);
        tn_backward(loss);
        tn_step(o);
        tn_schedule_step(schedule);
        ck_assert_msg(tn_error() == TN_OK, "step %d: %s", step, tn_error_message());
        ck_assert_int_eq(tn_dtype_of(loss), dt);
        near("loss", step, tn_item(loss), losses, tol);
        near("norm", step, tn_grad_norm(o), norms, 10 * tol);
        *(step < 4 ? &first : step < STEPS - 4 ? &(double){0} : &last) += tn_item(loss);
        tn_scope_end(s);
    }
    ck_assert_double_lt(last, 0.97 * first); /* the loss has decreased */
    tn_drop(m->h), tn_drop(m->c);
    tn_optimizer_free(o), tn_free(m);
}

TEST_EACH(as_pytorch_in_f32, MODELS) { trains(_i, TN_F32, 1e-5); }
TEST_EACH(as_pytorch_in_f64, MODELS) { trains(_i, TN_F64, 1e-11); }

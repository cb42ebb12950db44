/* test_seq2seq.c — the seven kinds of sequence-to-sequence models: their guarantees, files, and training. */
#include "extras.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

enum { B = 3, S = 5, T = 6, WORDS = 17 };

/* 0: padding, 2: begin, 3: end */
static const int64_t sources[B * S] = {5, 6, 7, 8, 3, 9, 10, 3, 0, 0, 11, 12, 13, 3, 0};
static const int64_t targets[B * T] = {2, 8, 7, 6, 5, 3, 2, 10, 9, 3, 0, 0, 2, 13, 12, 11, 3, 0};
static tn_tensor    *source(void) { return tn_from_data(TN_I64, TN_SHAPE(B, S), sources); }
static tn_tensor    *target(void) { return tn_from_data(TN_I64, TN_SHAPE(B, T), targets); }

/* The first four kinds, and variants; T5's, with tied and with separate output weights; ConvS2S, ByteNet, GNMT. */
enum { MODELS = 13, T5 = 8, CONVS2S = 10 };
static bool is_blind(const tn_seq2seq *m)
{
    return m->config.kind == TN_SEQ2SEQ_RNN || m->config.kind == TN_SEQ2SEQ_BYTENET;
}
static tn_seq2seq *model(int i, double dropout)
{
    tn_seq2seq_config c = {.source_words = WORDS,
                           .target_words = WORDS - (i % 2),
                           .dim = 16,
                           .heads = 2,
                           .ff = 24,
                           .layers = i == 5 || i == 6 ? 2 : 1,
                           .positions = 20,
                           .dropout = dropout == 0 ? 0 : dropout,
                           .kind = (tn_seq2seq_kind)(i < T5 ? i % 4 : 0)};
    c.shared = i % 2 == 0, c.untied = i == 5, c.lstm = i > 4, c.one_way = i == 6, c.norm_first = i == 4;
    if (i == 6) c.decoder_layers = 3;
    if (i >= CONVS2S) {
        c.kind = (tn_seq2seq_kind)(TN_SEQ2SEQ_CONVS2S + i - CONVS2S), c.layers = i == CONVS2S ? 2 : 3;
        c.kernel = i == CONVS2S ? 4 : 0;
    } else if (i >= T5) {
        c.shared = c.norm_first = c.rms_norm = c.no_bias = c.plain_embedding = c.free_padding = c.end_dropout = true;
        c.target_words = WORDS, c.layers = 2, c.decoder_layers = 3, c.heads = 3, c.head_dim = 6, c.scale = 1;
        c.eps = 1e-6, c.relative = 8, c.relative_distance = 9;
        c.untied = c.gated = i > T5, c.activation = i > T5 ? "gelu_new" : NULL, c.out_scale = i > T5 ? 0 : 0.25;
    }
    tn_seq2seq *m = tn_seq2seq_create(c);
    fine();
    return m;
}

static void register_extras(void) { ck_assert_int_eq(tn_extras_register(), TN_OK); }
AROUND_TESTS(register_extras, NULL);

TEST_EACH(scores_and_alignments, MODELS)
{
    tn_seq2seq *m = model(_i, 0);
    tn_eval(m);
    tn_tensor *w = NULL, *y;
    const bool looks = !is_blind(m);
    y = tn_seq2seq_forward(m, source(), target(), .alignment = looks ? &w : NULL);
    fine();
    ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(B, T, m->config.target_words)));
    if (looks) {
        ck_assert(tn_shape_equal(tn_shape_of(w), TN_SHAPE(B, T, S)));
        tn_tensor *sum = tn_sum(w, .dims = TN_DIMS(2));
        for (int64_t i = 0; i < B * T; i++) ck_assert_double_eq_tol(tn_get(sum, i), 1, 1e-5);
        for (int64_t i = 0; i < B * T * S; i++)
            if (!sources[i / (T * S) * S + i % S]) ck_assert_double_eq(tn_get(w, i), 0); /* not at padding */
    } else {
        ck_refused(tn_seq2seq_forward(m, source(), target(), .alignment = &w), TN_EINVAL,
                   "seq2seq: this model has no attention and no alignment; omit .alignment");
    }
    /* each sequence alone, without padding; and with other numbers of threads */
    for (int64_t b = 0; b < B; b++) {
        int64_t s = 0, t = 0;
        while (s < S && sources[b * S + s]) s++;
        while (t < T && targets[b * T + t]) t++;
        tn_tensor *x = tn_narrow(tn_narrow(source(), 0, b, 1), 1, 0, s);
        tn_tensor *z = tn_seq2seq_forward(m, x, tn_narrow(tn_narrow(target(), 0, b, 1), 1, 0, t));
        ck_assert(tn_same_bits(z, tn_narrow(tn_narrow(y, 0, b, 1), 1, 0, t)));
    }
    tn_set_threads(7);
    ck_assert(tn_same_bits(y, tn_seq2seq_forward(m, source(), target())));
    tn_free(m);
}

TEST_EACH(losses, MODELS)
{
    tn_seq2seq *m = model(_i, 0);
    tn_tensor  *mean = tn_seq2seq_loss(m, source(), target()),
              *each = tn_seq2seq_loss(m, source(), target(), .each = true);
    fine();
    ck_assert(tn_shape_equal(tn_shape_of(each), TN_SHAPE(B)));
    ck_assert_double_eq_tol(tn_item(tn_sum(each)) / 12, tn_item(mean), 1e-5); /* 5 + 3 + 4 tokens */
    ck_assert_int_eq(tn_backward(mean), TN_OK);
    for (tn_each p = tn_parameters(m); tn_next(&p);) ck_assert_msg(tn_grad(p.tensor) != NULL, "%s", p.name);
    tn_free(m);
}

/* Learns to reverse three sequences, and reproduces them with beam search, greedily, and token by token. */
TEST_EACH(learns_and_generates, MODELS)
{
    tn_seed(2);
    tn_seq2seq   *m = model(_i, 0.1);
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    for (int step = 0; step < 120; step++) {
        const tn_scope s = tn_scope_begin();
        tn_backward(tn_seq2seq_loss(m, source(), target(), .label_smoothing = 0.05));
        tn_step(o);
        tn_scope_end(s);
    }
    fine();
    tn_optimizer_free(o);
    tn_eval(m);
    tn_tensor *begin = tn_full_of(TN_I64, TN_SHAPE(B, 1), 2);
    for (int64_t beams = 1; beams < 5; beams += 3) {
        tn_decoding *d = tn_seq2seq_decoding(m, source(), beams, 10);
        tn_generated g = tn_generate(d, begin, .beams = beams, .best = beams, .end = 3);
        fine();
        for (int64_t b = 0; b < B; b++)
            for (int64_t t = 0; t < T - 1; t++) {
                const int64_t want = targets[b * T + t + 1], n = tn_size(g.tokens, 2);
                const int64_t got = t < n ? tn_get_i64(g.tokens, b * beams * n + t) : -1;
                ck_assert_msg(got == (want <= 3 ? -1 : want), "%d: %d, not %d", (int)b, (int)got, (int)want);
            }
        tn_decoding_free(d);
        for (int64_t b = 0; b < B; b++) { /* alone gives the same; its score equals the loss */
            tn_tensor *x = tn_narrow(source(), 0, b, 1);
            d = tn_seq2seq_decoding(m, x, beams, 10);
            tn_generated h = tn_generate(d, tn_narrow(begin, 0, b, 1), .beams = beams, .best = beams, .end = 3);
            fine();
            ck_assert(tn_same_bits(tn_narrow(g.scores, 0, b, 1), h.scores));
            tn_decoding_free(d);
            tn_tensor   *y = tn_narrow(target(), 0, b, 1);
            const double words = (double)tn_get_i64(h.lengths, 0) + 1;
            ck_assert_double_eq_tol(-tn_item(tn_seq2seq_loss(m, x, y, .each = true)) / (beams > 1 ? words : 1),
                                    tn_get(h.scores, 0), 1e-4);
        }
    }
    tn_free(m);
}

/* GNMT's rank of n tokens, the last of which may be .end, from the model's logits and alignment of the whole text. */
static double rank_by_formula(tn_seq2seq *m, tn_tensor *x, const int64_t *words, int64_t n, double alpha, double beta)
{
    int64_t    text[16] = {2};
    tn_tensor *w = NULL;
    memcpy(text + 1, words, (size_t)n * sizeof *words);
    tn_tensor    *y = tn_seq2seq_forward(m, x, tn_from_data(TN_I64, TN_SHAPE(1, n), text), .alignment = &w);
    tn_tensor    *p = tn_log_softmax(y, -1);
    const int64_t vocab = m->config.target_words, source = tn_size(x, 1);
    double        sum = 0, c = 0;
    for (int64_t t = 0; t < n; t++) sum += tn_get(p, t * vocab + words[t]);
    for (int64_t i = 0; i < source; i++) {
        double covered = 0;
        for (int64_t t = 0; t < n; t++) covered += tn_get(w, t * source + i);
        c += log(fmin(covered, 1));
    }
    return sum / pow((5 + (double)n) / 6, alpha) + beta * c;
}

/* The ranks of a batch of padded sources equal the formula, computed from each source alone. */
TEST_EACH(gnmt_penalties, MODELS)
{
    enum { BEAMS = 4, MOST = 6 };
    tn_seed(11 + (uint64_t)_i);
    tn_seq2seq *m = model(_i, 0);
    tn_eval(m);
    tn_decoding *d = tn_seq2seq_decoding(m, source(), BEAMS, 10);
    tn_generated g = tn_generate(d, tn_full_of(TN_I64, TN_SHAPE(B, 1), 2), .beams = BEAMS, .best = BEAMS, .end = 3,
                                 .most = MOST, .gnmt = true, .length_penalty = 0.6, .coverage = 0.2);
    tn_decoding_free(d);
    if (is_blind(m)) {
        ck_error(TN_EINVAL, "seq2seq: this model has no attention to its source; omit .coverage");
        tn_free(m);
        return;
    }
    fine();
    for (int64_t i = 0; i < B * BEAMS; i++) {
        int64_t words[MOST + 1], n = tn_get_i64(g.lengths, i), s = 0;
        while (s < S && sources[i / BEAMS * S + s]) s++;
        for (int64_t t = 0; t < n; t++) words[t] = tn_get_i64(g.tokens, i * tn_size(g.tokens, 2) + t);
        if (n < MOST) words[n++] = 3;
        tn_tensor   *x = tn_narrow(tn_narrow(source(), 0, i / BEAMS, 1), 1, 0, s);
        const double want = rank_by_formula(m, x, words, n, 0.6, 0.2);
        ck_assert_double_eq_tol(tn_get(g.scores, i), want, 2e-5 * (1 + fabs(want)));
    }
    tn_free(m);
}

/* Under autocast every kind trains, and generates the same whether the cache was created inside or outside. */
TEST_EACH(autocast, MODELS)
{
    tn_seed(2);
    tn_seq2seq   *m = model(_i, 0.1);
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    double        first = 0, last = 0;
    for (int step = 0; step < 60; step++) {
        const tn_scope s = tn_scope_begin(), narrow = tn_autocast_begin(true);
        tn_tensor     *loss = tn_scope_return(narrow, tn_seq2seq_loss(m, source(), target(), .label_smoothing = 0.05));
        tn_backward(loss);
        tn_step(o);
        fine();
        last = tn_item(loss);
        if (!step) first = last;
        tn_scope_end(s);
    }
    ck_assert_msg(last < 0.6 * first, "the loss went from %g to %g", first, last);
    tn_optimizer_free(o);
    tn_eval(m);
    tn_tensor *begin = tn_full_of(TN_I64, TN_SHAPE(B, 1), 2);
    for (int inside = 0; inside < 2; inside++) {
        tn_decoding   *d = inside ? NULL : tn_seq2seq_decoding(m, source(), 3, 10);
        const tn_scope s = tn_autocast_begin(true);
        if (inside) d = tn_seq2seq_decoding(m, source(), 3, 10);
        tn_generated g = tn_generate(d, begin, .beams = 3, .best = 3, .end = 3);
        fine();
        for (int64_t i = 0; i < tn_numel(g.scores); i++) ck_assert(isfinite(tn_get(g.scores, i)));
        tn_scope_end(s);
        tn_decoding_free(d);
    }
    tn_free(m);
}

TEST_EACH(what_is_saved_is_loaded, MODELS)
{
    char name[32];
    snprintf(name, sizeof name, "seq2seq%d", _i);
    const char *dir = tn_test_folder(name);
    tn_seq2seq *a = model(_i, 0.2), *b;
    ck_assert_int_eq(tn_seq2seq_save(a, dir), TN_OK);
    ck_assert_ptr_nonnull(b = tn_seq2seq_load(dir));
    ck_assert(!b->base.training && b->config.kind == a->config.kind && b->config.dropout == 0.2);
    tn_eval(a);
    ck_assert(tn_same_bits(tn_seq2seq_forward(a, source(), target()), tn_seq2seq_forward(b, source(), target())));
    tn_free(a), tn_free(b);
}

/* The options of T5, as a composition of the model's parts, in training mode. */
TEST_EACH(as_its_parts, 2)
{
    tn_seq2seq              *m = model(T5 + _i, 0.3);
    const tn_seq2seq_config *c = &m->config;
    ck_assert(!m->positions && !m->out_bias && (m->out == m->source->weight) == !_i && m->source == m->target);
    tn_seed(7);
    tn_tensor *y = tn_seq2seq_forward(m, source(), target());
    tn_backward(tn_sum(tn_square(y)));
    tn_tensor *grad = tn_clone(tn_grad(m->source->weight));
    fine();
    tn_zero_grads(m);
    tn_seed(7);
    tn_tensor *padding = tn_padding_mask(source(), 0);
    tn_tensor *x = tn_call(m->dropout, tn_embedding(m->source->weight, source(), -1, false));
    tn_tensor *memory =
        tn_call(m->dropout, tn_transformer_encoder_forward(m->transformer->encoder, x, .key_padding_mask = padding));
    x = tn_call(m->dropout, tn_embedding(m->source->weight, target(), -1, false));
    x = tn_call(m->dropout, tn_transformer_decoder_forward(m->transformer->decoder, x, memory, .causal = true,
                                                           .memory_key_padding_mask = padding));
    if (c->out_scale != 0) x = tn_mul_scalar(x, c->out_scale);
    x = tn_linear(x, m->out, NULL);
    ck_assert(tn_same_bits(x, y));
    tn_backward(tn_sum(tn_square(x)));
    ck_assert(tn_same_bits(tn_grad(m->source->weight), grad));
    tn_free(m);
}

/* The embedding of a begin token that is also the padding gets a gradient with .free_padding only. */
TEST_EACH(padding_that_begins, 2)
{
    static const int64_t pair[] = {0, 8, 7, 3};
    tn_seq2seq *m = tn_seq2seq_new(.source_words = WORDS, .shared = true, .untied = true, .dim = 8, .heads = 2, .ff = 8,
                                   .layers = 1, .begin = 0, .free_padding = _i);
    tn_tensor  *y = tn_from_data(TN_I64, TN_SHAPE(1, 4), pair);
    tn_backward(tn_seq2seq_loss(m, tn_narrow(y, 1, 1, 3), y));
    fine();
    tn_tensor *row = tn_select(tn_grad(m->source->weight), 0, 0);
    ck_assert((tn_item(tn_sum(tn_abs(row))) > 0) == _i);
    ck_assert((tn_item(tn_sum(tn_abs(tn_select(m->source->weight, 0, 0)))) > 0) == _i);
    tn_free(m);
}

/* The logits of a decoding, token by token, have the bits of those of one call. */
TEST_EACH(the_same_bits_with_and_without_a_cache, MODELS)
{
    tn_seq2seq *m = model(_i, 0);
    if (m->config.kind == TN_SEQ2SEQ_TRANSFORMER || _i >= CONVS2S) {
        tn_eval(m);
        const tn_scope s = tn_no_grad_begin();
        tn_tensor     *y = tn_seq2seq_forward(m, source(), target());
        tn_decoding   *d = tn_seq2seq_decoding(m, source(), 1, T);
        for (int64_t t = 0; t < T; t++)
            ck_assert(tn_same_bits(d->kind->scores(d, tn_narrow(target(), 1, t, 1)), tn_select(y, 1, t)));
        fine();
        tn_decoding_free(d);
        tn_scope_end(s);
    }
    tn_free(m);
}

static double once(int i)
{
    const tn_scope s = tn_scope_begin();
    tn_seed(3);
    tn_seq2seq_config c = {.source_words = WORDS, .dim = 4, .heads = 1, .ff = 4, .layers = 1, .positions = 8};
    c.kind = (tn_seq2seq_kind)i, c.layers = i == TN_SEQ2SEQ_GNMT ? 2 : 1;
    tn_seq2seq *m = tn_seq2seq_create(c);
    double      v = NAN;
    if (m && tn_backward(tn_seq2seq_loss(m, source(), target())) == TN_OK)
        v = tn_item(tn_sum(tn_grad(m->source->weight)));
    tn_decoding *d = tn_seq2seq_decoding(m, source(), 2, 5);
    tn_generated g = tn_generate(d, tn_full_of(TN_I64, TN_SHAPE(B, 1), 2), .beams = 2, .end = 3,
                                 .coverage = m && !is_blind(m) ? 0.2 : 0);
    if (g.scores) v += tn_item(tn_sum(g.scores));
    tn_decoding_free(d);
    tn_free(m);
    tn_scope_end(s);
    return v;
}

BARE_TEST_EACH(memory, 7) { tn_each_allocation_fails(once, _i, tn_test_slow() ? 37 : 5, 3, 100); }

/* A list of all tokens changes nothing; a shorter one gives what the logits of its tokens give. */
TEST_EACH(short_lists, 4)
{
    tn_seq2seq    *m = model(_i, 0);
    const tn_scope s = tn_no_grad_begin();
    const int64_t  words = m->config.target_words, some[] = {2, 3, 5, 8, 9, 12}; /* begin has index 0, end 1 */
    tn_eval(m);
    for (int pass = 0; pass < 3; pass++) {
        tn_tensor   *list = pass < 2 ? tn_arange(words) : tn_from_data(TN_I64, TN_SHAPE(6), some);
        tn_decoding *d = tn_seq2seq_decoding(m, source(), 2, 10);
        if (pass) ck_assert_int_eq(tn_seq2seq_shortlist(d, list), TN_OK);
        tn_tensor *first = d->kind->scores(d, tn_full_of(TN_I64, TN_SHAPE(B, 1), pass < 2 ? 2 : 0));
        tn_tensor *next = d->kind->scores(d, tn_full_of(TN_I64, TN_SHAPE(B, 1), pass < 2 ? 8 : 3));
        fine();
        static tn_tensor *full[2];
        if (!pass) full[0] = first, full[1] = next;
        else {
            ck_assert_int_eq(tn_size(next, 1), tn_numel(list));
            ck_assert_int_eq(tn_allclose(first, tn_index_select(full[0], 1, list), 1e-5, 1e-5), 1);
            ck_assert_int_eq(tn_allclose(next, tn_index_select(full[1], 1, list), 1e-5, 1e-5), 1);
            ck_assert(pass > 1 || tn_same_bits(next, full[1]));
        }
        if (pass < 2) { /* another one */
            ck_assert_int_ne(tn_seq2seq_shortlist(d, list), TN_OK);
            ck_error(TN_EINVAL, "tn_seq2seq_shortlist: d must be a new decoding of tn_seq2seq_decoding");
        }
        tn_decoding_free(d);
    }
    tn_decoding *d = tn_seq2seq_decoding(m, source(), 2, 10);
    ck_assert_int_ne(tn_seq2seq_shortlist(d, tn_zeros(TN_SHAPE(2))), TN_OK);
    ck_error(TN_ESHAPE, "tn_seq2seq_shortlist: words must be i64 [n] with n at least 1, got [2]");
    ck_assert_int_ne(tn_seq2seq_shortlist(d, tn_full_of(TN_I64, TN_SHAPE(2), 99)), TN_OK);
    ck_error_has(TN_EINDEX, "99");
    tn_generated g = tn_generate(d, tn_full_of(TN_I64, TN_SHAPE(B, 1), 2), .beams = 2, .end = 3);
    fine();
    ck_assert(g.tokens);
    tn_decoding_free(d);
    tn_scope_end(s);
    tn_free(m);
}

/* A batch without sequences has a result without rows; batches of different sizes are rejected. */
TEST_EACH(batch_sizes, MODELS)
{
    tn_seq2seq *m = model(_i, 0);
    tn_tensor  *y = tn_seq2seq_forward(m, tn_ones_of(TN_I64, TN_SHAPE(0, 3)), tn_ones_of(TN_I64, TN_SHAPE(0, 4)));
    fine();
    ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(0, 4, m->config.target_words)));
    for (int64_t n = 1; n < 3; n++) {
        y = tn_seq2seq_forward(m, tn_ones_of(TN_I64, TN_SHAPE(n, 3)), tn_ones_of(TN_I64, TN_SHAPE(3 - n, 4)));
        ck_refused(y, TN_ESHAPE,
                   n == 1 ? "seq2seq: 1 source sequences, but 2 target sequences"
                          : "seq2seq: 2 source sequences, but 1 target sequences");
    }
    tn_free(m);
}

TEST(wrong_use)
{
    ck_refused(tn_seq2seq_new(.dim = 8), TN_EINVAL,
               "tn_seq2seq_new: .source_words is 0, but must be from 1 to 10000000");
    ck_refused(tn_seq2seq_new(.source_words = 9, .target_words = 8, .shared = true), TN_EINVAL,
               "tn_seq2seq_new: .shared needs equal vocabularies, but .source_words is 9 and .target_words 8");
    ck_refused(tn_seq2seq_new(.source_words = 9, .kind = (tn_seq2seq_kind)7), TN_EINVAL,
               "tn_seq2seq_new: .kind is 7, which is not a tn_seq2seq_kind");
    ck_refused(tn_seq2seq_new(.source_words = 9, .kind = TN_SEQ2SEQ_LUONG, .gated = true), TN_EINVAL,
               "tn_seq2seq_new: .rms_norm, .gated, .no_bias, .head_dim, .scale, .relative and "
               ".plain_embedding are for the Transformer, but .kind is 'luong'");
    ck_refused(tn_seq2seq_new(.source_words = 9, .activation = "gelo"), TN_EINVAL,
               "tn_seq2seq_new: unknown activation 'gelo'; use gelu, gelu_new, gelu_fast, gelu_python, "
               "gelu_pytorch_tanh, relu, silu, swish or tanh");
    ck_refused(tn_seq2seq_new(.source_words = 9, .out_scale = -1), TN_EINVAL,
               "tn_seq2seq_new: .out_scale is -1, but must be from 0 to 1000000");
    ck_refused(tn_seq2seq_new(.source_words = 9, .kind = TN_SEQ2SEQ_BAHDANAU, .decoder_layers = 2), TN_EINVAL,
               "tn_seq2seq_new: Bahdanau's decoder has one layer; omit .decoder_layers");
    tn_seq2seq_size("huge");
    ck_error(TN_EINVAL, "tn_seq2seq_size: unknown size 'huge'; the sizes are nano, tiny, small, base and big");
    tn_seq2seq_kind_of("lstm");
    ck_error(TN_EINVAL,
             "unknown model 'lstm'; the models are transformer, bahdanau, luong, rnn, convs2s, bytenet and gnmt");
    tn_seq2seq *m = model(0, 0);
    ck_refused(tn_seq2seq_forward(m, tn_ones_of(TN_I64, TN_SHAPE(1, 21)), target()), TN_ESHAPE,
               "seq2seq: a sequence of 21 tokens is longer than the model's 20 positions; truncate it");
    ck_refused(tn_seq2seq_forward(m, source(), NULL), TN_ESHAPE,
               "seq2seq: the target must be [batch, length] with a length of at least 1, got NULL");
    ck_refused(tn_seq2seq_loss(m, source(), tn_ones_of(TN_I64, TN_SHAPE(B, 1))), TN_ESHAPE,
               "seq2seq: the target must start with .begin and finish with .end, got a length of 1");
    ck_refused_code(tn_seq2seq_load(tn_test_data("golden/gpt/torch")), TN_EUNSUPPORTED);
    tn_free(m);
}

/* test_translators.c — ConvS2S, ByteNet and GNMT compared with PyTorch (tests/golden/translators.py): logits, loss, the
 * gradient of every parameter, alignments. In eval mode gradients are those of the values, in ConvS2S, too. No later
 * token of the target and no padding changes a result; gradients have the same bits on 1 to 3 threads; beam search; the
 * errors of their options. */
#include "extras.h"
#include "models/seq2seq/seq2seq_private.h"
#include "tests/common/answers.h"

static const tn_seq2seq_kind kinds[] = {TN_SEQ2SEQ_CONVS2S, TN_SEQ2SEQ_BYTENET, TN_SEQ2SEQ_GNMT};
enum { KINDS = sizeof kinds / sizeof *kinds, B = 3 };

static void open_answers(void)
{
    tn_answers_open("golden/translators/answers.safetensors");
    tn_extras_register();
}
AROUND_TESTS(open_answers, close_answers);
static tn_tensor *of_kind(int i, const char *what)
{
    return answer(tn_name("%s.%s", tn_seq2seq_kind_name(kinds[i]), what));
}
static tn_seq2seq *golden(int i, const char *more)
{
    tn_seq2seq *m =
        tn_seq2seq_load(tn_test_data(tn_name("golden/translators/%s%s", tn_seq2seq_kind_name(kinds[i]), more)));
    fine();
    ck_assert(m->config.kind == kinds[i]);
    return m;
}
static tn_tensor *source(void) { return answer("source"); }
static tn_tensor *read_so_far(void) /* the decoder's input: the target without its last token */
{
    tn_tensor *t = answer("target");
    return tn_narrow(t, 1, 0, tn_size(t, 1) - 1);
}

TEST_EACH(numbers_as_pytorch, KINDS)
{
    tn_seq2seq *m = golden(_i, ""), *want = golden(_i, ".grad");
    tn_tensor  *w = NULL;
    const bool  attends = kinds[_i] != TN_SEQ2SEQ_BYTENET;
    tn_tensor  *y = tn_seq2seq_forward(m, source(), read_so_far(), .alignment = attends ? &w : NULL);
    fine();
    ck_assert_double_le(furthest(y, of_kind(_i, "logits")), 2e-5);
    if (attends) ck_assert_double_le(furthest(w, of_kind(_i, "alignment")), 2e-5);
    tn_train(m, true);
    tn_tensor *loss = tn_seq2seq_loss(m, source(), answer("target"));
    ck_assert_double_eq_tol(tn_item(loss), tn_item(of_kind(_i, "loss")), 1e-5);
    tn_backward(loss);
    fine();
    tn_each a = tn_parameters(m), b = tn_parameters(want);
    while (tn_next(&a) && tn_next(&b))
        ck_assert_msg(furthest(tn_grad(a.tensor), b.tensor) <= 1e-5, "%s: the gradient differs by %g", a.name,
                      furthest(tn_grad(a.tensor), b.tensor));
    tn_free(m), tn_free(want);
}

/* A model with separate output weights: a row of an embedding has a gradient only from the tokens that read it. */
static tn_seq2seq *apart(int i)
{
    tn_seed(5);
    tn_seq2seq *m = tn_seq2seq_new(.kind = kinds[i], .source_words = 20, .dim = 12, .layers = 3, .positions = 30,
                                   .untied = true, .dropout = 0);
    fine();
    return m;
}
static double size_of_row(tn_tensor *table, int64_t row)
{
    return tn_item(tn_sum(tn_abs(tn_select(tn_grad(table), 0, row))));
}

TEST_EACH(gradients_in_eval_mode, KINDS)
{
    const int64_t from[] = {4, 5, 6, 7, 3}, to[] = {2, 4, 5, 6, 3};
    const double  step = 1e-5;
    tn_seq2seq   *m = apart(_i);
    ck_assert_int_eq(tn_module_to(m, TN_F64), TN_OK);
    tn_eval(m);
    tn_tensor *table = m->source->weight, *x = tn_from_data(TN_I64, TN_SHAPE(1, 5), from);
    tn_tensor *y = tn_from_data(TN_I64, TN_SHAPE(1, 5), to);
    tn_backward(tn_seq2seq_loss(m, x, y));
    fine();
    const tn_scope s = tn_no_grad_begin();
    for (int64_t i = 4 * 12; i < 7 * 12; i += 5) {
        const double was = tn_get(table, i);
        tn_set(table, i, was + step);
        const double above = tn_item(tn_seq2seq_loss(m, x, y));
        tn_set(table, i, was - step);
        const double below = tn_item(tn_seq2seq_loss(m, x, y));
        tn_set(table, i, was);
        ck_assert_double_eq_tol(tn_get(tn_grad(table), i), (above - below) / (2 * step), 1e-8);
    }
    tn_scope_end(s);
    tn_free(m);
}

/* The gradient of the logits of token t by the embeddings of later tokens is exactly 0; by its own, by the one before
 * it and by those of the source it is not. */
TEST_EACH(no_later_token_is_read, KINDS)
{
    enum { T = 9 };
    static const int64_t from[] = {4, 5, 6, 7, 3}, to[T] = {2, 4, 5, 6, 7, 8, 9, 10, 11};
    tn_seq2seq          *m = apart(_i);
    for (int64_t t = 0; t < T; t++) {
        tn_tensor *y =
            tn_seq2seq_forward(m, tn_from_data(TN_I64, TN_SHAPE(1, 5), from), tn_from_data(TN_I64, TN_SHAPE(1, T), to));
        tn_zero_grads(m);
        tn_backward(tn_sum(tn_square(tn_select(y, 1, t))));
        fine();
        for (int64_t k = 0; k < T; k++) {
            const double size = size_of_row(m->target->weight, to[k]);
            if (k > t) ck_assert_double_eq(size, 0);
            else if (k >= t - 1) ck_assert_double_gt(size, 0);
        }
        for (int64_t k = 0; k < 5; k++) ck_assert_double_gt(size_of_row(m->source->weight, from[k]), 0);
    }
    tn_free(m);
}

/* Losses and gradients of a batch with padding are those of its sequences alone: no gradient reaches the padding. */
TEST_EACH(padding_has_no_effect, KINDS)
{
    tn_seq2seq *m = golden(_i, "");
    tn_tensor  *each = tn_seq2seq_loss(m, source(), answer("target"), .each = true), *alone[B];
    fine();
    for (int64_t b = 0; b < B; b++) {
        int64_t    s = 0, t = 0;
        tn_tensor *x = tn_narrow(source(), 0, b, 1), *y = tn_narrow(answer("target"), 0, b, 1);
        while (s < tn_size(x, 1) && tn_get_i64(x, s)) s++;
        while (t < tn_size(y, 1) && tn_get_i64(y, t)) t++;
        /* wider than in the batch, too */
        tn_tensor *more = tn_cat(1, x, tn_zeros_of(TN_I64, TN_SHAPE(1, 4)));
        alone[b] = tn_seq2seq_loss(m, tn_narrow(x, 1, 0, s), tn_narrow(y, 1, 0, t), .each = true);
        ck_assert_double_eq_tol(tn_item(alone[b]), tn_get(each, b), 1e-6 * tn_get(each, b));
        ck_assert(tn_same_bits(tn_seq2seq_forward(m, more, tn_narrow(y, 1, 0, t)),
                               tn_seq2seq_forward(m, tn_narrow(x, 1, 0, s), tn_narrow(y, 1, 0, t))));
    }
    tn_backward(tn_sum(each));
    tn_tensor *batch[2] = {tn_clone(tn_grad(m->source->weight)), tn_clone(tn_grad(m->target->weight))};
    tn_zero_grads(m);
    for (int64_t b = 0; b < B; b++) tn_backward(alone[b]);
    fine();
    ck_assert_double_le(furthest(tn_grad(m->source->weight), batch[0]), 1e-5);
    ck_assert_double_le(furthest(tn_grad(m->target->weight), batch[1]), 1e-5);
    ck_assert_double_eq(size_of_row(m->source->weight, 0), 0);
    tn_free(m);
}

TEST_EACH(threads, KINDS)
{
    tn_seq2seq *m = golden(_i, ""), *first = NULL;
    for (int n = 1; n <= 3; n++) {
        tn_set_threads(n);
        tn_zero_grads(m);
        tn_seed(3);
        tn_train(m, true);
        tn_backward(tn_seq2seq_loss(m, source(), answer("target"), .label_smoothing = 0.1));
        fine();
        if (!first) first = tn_copy(m);
        tn_each a = tn_parameters(m), b = tn_parameters(first);
        for (; n == 1 && tn_next(&a) && tn_next(&b);) {
            const tn_scope s = tn_no_grad_begin();
            tn_copy_from(b.tensor, tn_grad(a.tensor));
            tn_scope_end(s);
        }
        while (n > 1 && tn_next(&a) && tn_next(&b)) ck_assert(tn_same_bits(tn_grad(a.tensor), b.tensor));
    }
    tn_free(m), tn_free(first);
}

/* Token by token, also several tokens at once and with rows in another order, as in one call. */
TEST_EACH(the_same_bits_with_a_cache, KINDS)
{
    enum { STEPS = 4 };
    static const int64_t count[STEPS] = {1, 3, 1, 5}, order[B] = {2, 0, 1};
    tn_seq2seq          *m = golden(_i, "");
    const tn_scope       s = tn_no_grad_begin();
    tn_tensor           *index = tn_from_data(TN_I64, TN_SHAPE(B), order), *x = source(), *t = read_so_far();
    tn_decoding         *d = tn_seq2seq_decoding(m, x, 1, 20);
    fine();
    for (int64_t i = 0, at = 0; i < STEPS; at += count[i++]) {
        tn_tensor *got = d->kind->scores(d, tn_narrow(t, 1, at, count[i]));
        tn_tensor *y = tn_seq2seq_forward(m, x, tn_narrow(t, 1, 0, at + count[i]));
        ck_assert(tn_same_bits(got, tn_select(y, 1, at + count[i] - 1)));
        ck_assert_int_eq(d->kind->reorder(d, index), TN_OK);
        x = tn_index_select(x, 0, index), t = tn_index_select(t, 0, index);
    }
    tn_decoding_free(d);
    tn_scope_end(s);
    tn_free(m);
}

#define SIZES .source_words = 9, .dim = 4
#define ck_rejected(call, text)      \
    do {                             \
        ck_assert_ptr_null(call);    \
        ck_error(TN_EINVAL, (text)); \
    } while (0)
TEST(wrong_options)
{
    tn_seq2seq_register(TN_SEQ2SEQ_GNMT, NULL);
    ck_refused(tn_seq2seq_new(SIZES, .kind = TN_SEQ2SEQ_GNMT), TN_EUNSUPPORTED,
               "tn_seq2seq_new: 'gnmt' is one of the extras; call tn_extras_register() before");
    ck_fails(tn_seq2seq_register(TN_SEQ2SEQ_RNN, NULL), TN_EINVAL,
             "tn_seq2seq_register: kind 3 is not convs2s, bytenet or gnmt");
    ck_fails(tn_seq2seq_register((tn_seq2seq_kind)99, NULL), TN_EINVAL,
             "tn_seq2seq_register: kind 99 is not convs2s, bytenet or gnmt");
    ck_fails(tn_seq2seq_register(TN_SEQ2SEQ_GNMT, &(tn_seq2seq_functions){.blind = true}), TN_EINVAL,
             "tn_seq2seq_register: .build, .encode and .decode of 'gnmt' must be set");
    ck_assert_int_eq(tn_extras_register(), TN_OK);
    ck_rejected(tn_seq2seq_new(SIZES, .kind = TN_SEQ2SEQ_GNMT, .layers = 2, .decoder_layers = 3),
                "tn_seq2seq_new: GNMT's decoder has as many layers as its encoder, 2; omit .decoder_layers");
    ck_rejected(tn_seq2seq_new(.source_words = 9, .dim = 5, .kind = TN_SEQ2SEQ_BYTENET),
                "tn_seq2seq_new: .dim is 5, but ByteNet's must be even");
    ck_rejected(tn_seq2seq_new(SIZES, .kind = TN_SEQ2SEQ_CONVS2S, .kernel = 65),
                "tn_seq2seq_new: .kernel is 65, but must be from 0 to 64");
    ck_rejected(tn_seq2seq_new(SIZES, .kind = TN_SEQ2SEQ_CONVS2S, .relative = 8),
                "tn_seq2seq_new: .rms_norm, .gated, .no_bias, .head_dim, .scale, .relative and .plain_embedding are "
                "for the Transformer, but .kind is 'convs2s'");
    tn_seq2seq *m = golden(0, "");
    ck_refused(tn_seq2seq_forward(m, tn_ones_of(TN_I64, TN_SHAPE(1, 13)), read_so_far()), TN_ESHAPE,
               "seq2seq: a sequence of 13 tokens is longer than the model's 12 positions; truncate it");
    tn_free(m);
}

/* test_language.c — parts of language models older than the Transformer: dropout with one mask per sequence or per
 * word, weight drop, projected states; adaptive softmax compared with its table of probabilities, sampled losses; and
 * the errors of wrong calls. test_golden_modules.c and test_golden_rnn.c compare them with PyTorch. */
#include "nn/nn.h"
#include "optim/optim.h"
#include "tests/common/check_main.h"

static tn_tensor *ints(tn_shape s, const int64_t *v) { return tn_from_data(TN_I64, s, v); }
static void       near(const tn_tensor *a, const tn_tensor *b, double tol)
{
    fine();
    ck_assert_int_eq(tn_numel(a), tn_numel(b));
    for (int64_t i = 0; i < tn_numel(a); i++) ck_assert_double_le(fabs(tn_get(a, i) - tn_get(b, i)), tol);
}

/* ---- dropout ----------------------------------------------------------------------------------------------------- */

TEST(locked_for_a_sequence)
{
    tn_locked_dropout *m = tn_locked_dropout_new(.p = 0.25);
    tn_tensor         *x = tn_ones(TN_SHAPE(20, 7, 50)), *y = tn_call(m, x);
    double             kept = 0;
    fine();
    for (int64_t i = 0; i < 20 * 7 * 50; i++) {
        const int64_t row = i / 350, n = i % 50;
        ck_assert(tn_get(y, i) == tn_get(y, row * 350 + n));
        ck_assert(tn_get(y, i) == 0 || fabs(tn_get(y, i) - 1 / 0.75) < 1e-6);
        kept += tn_get(y, i) != 0;
    }
    ck_assert_double_le(fabs(kept / 7000 - 0.75), 5 * sqrt(0.75 * 0.25 / 1000));
    tn_eval(m);
    ck_assert(tn_call(m, x) == x);
    tn_free(m);
}

TEST(words_are_left_out_whole)
{
    tn_embedding *m = tn_embedding_new(.count = 40, .dim = 6, .dropout = 0.5);
    int64_t       id[200];
    int           gone = 0;
    for (int i = 0; i < 200; i++) id[i] = i % 40;
    tn_tensor *x = ints(TN_SHAPE(200), id), *y = tn_call(m, x);
    fine();
    for (int64_t i = 0; i < 200; i++) {
        const bool out = tn_get(y, 6 * i) == 0;
        gone += out && i < 40;
        for (int64_t k = 0; k < 6; k++) {
            const double want = out ? 0 : 2 * tn_get(m->weight, 6 * id[i] + k);
            ck_assert_double_le(fabs(tn_get(y, 6 * i + k) - want), 1e-6);
            ck_assert((tn_get(y, 6 * (i % 40) + k) == 0) == out); /* in all places of the word */
        }
    }
    ck_assert(gone > 5 && gone < 35);
    tn_eval(m);
    near(tn_call(m, x), tn_embedding(m->weight, x, -1, false), 0);
    tn_free(m);
}

/* The result equals that of a network whose weights were dropped by hand, with the same random draws. */
TEST(weight_drop)
{
    tn_lstm   *m = tn_lstm_new(.in = 5, .hidden = 6, .weight_drop = 0.5), *plain = tn_lstm_new(.in = 5, .hidden = 6);
    tn_tensor *x = tn_uniform(TN_SHAPE(3, 4, 5), -1, 1);
    tn_module_assign(plain, m);
    tn_generator before = *tn_current_generator();
    tn_tensor   *y = tn_call(m, x);
    fine();
    *tn_current_generator() = before;
    const tn_scope s = tn_no_grad_begin();
    tn_copy_from(plain->weight_hh[0], tn_dropout(plain->weight_hh[0], 0.5));
    tn_scope_end(s);
    tn_tensor *z = tn_call(plain, x);
    near(y, z, 0);
    tn_eval(m);
    tn_module_assign(plain, m);
    near(tn_call(m, x), tn_call(plain, x), 0);
    tn_free(m), tn_free(plain);
}

/* With lengths, too, dropout between layers has one mask for all steps of a sequence. */
TEST(locked_between_layers)
{
    tn_rnn        *m = tn_rnn_new(.in = 3, .hidden = 8, .layers = 2, .dropout = 0.5, .locked = true);
    const tn_scope s = tn_no_grad_begin();
    tn_fill(m->weight_hh[0], 0), tn_fill(m->weight_hh[1], 0), tn_fill(m->bias_hh[0], 0), tn_fill(m->bias_ih[0], 0);
    tn_tensor *one = tn_ones(TN_SHAPE(4, 5, 3)), *lengths = ints(TN_SHAPE(4), (int64_t[]){5, 2, 4, 5});
    for (int k = 0; k < 2; k++) { /* equal inputs and no state, so all steps give equal results */
        tn_tensor *y = tn_rnn_forward(m, one, .lengths = k ? lengths : NULL);
        fine();
        for (int64_t i = 0; i < tn_numel(y); i++) {
            const int64_t row = i / 40, t = i / 8 % 5, n = i % 8;
            if (!k || t < tn_get_i64(lengths, row)) ck_assert(tn_get(y, i) == tn_get(y, row * 40 + n));
            else ck_assert(tn_get(y, i) == 0);
        }
        bool differ = false; /* each row has its own mask */
        for (int64_t n = 0; n < 8; n++) differ |= tn_get(y, n) != tn_get(y, 120 + n);
        ck_assert(differ);
    }
    tn_scope_end(s);
    tn_free(m);
}

/* ---- projected states -------------------------------------------------------------------------------------------- */

/* If R is the first rows of the identity, the state is the first part of h. */
TEST(projection)
{
    tn_lstm *m = tn_lstm_new(.in = 4, .hidden = 6, .proj_size = 3, .layers = 2, .bidirectional = true);
    ck_assert_int_eq(tn_size(m->weight_ih[2], 1), 6); /* h of both directions */
    ck_assert_int_eq(tn_size(m->weight_hr[3], 0), 3);
    tn_tensor *h, *c, *y = tn_lstm_forward(m, tn_uniform(TN_SHAPE(2, 5, 4), -1, 1), .h_n = &h, .c_n = &c);
    fine();
    ck_assert_int_eq(tn_size(y, 2), 6);
    ck_assert_int_eq(tn_size(h, 2), 3);
    ck_assert_int_eq(tn_size(c, 2), 6);
    /* continuing from the last states equals one call */
    tn_lstm   *one = tn_lstm_new(.in = 4, .hidden = 6, .proj_size = 3);
    tn_tensor *x = tn_uniform(TN_SHAPE(2, 5, 4), -1, 1), *all = tn_call(one, x), *front, *back;
    front = tn_lstm_forward(one, tn_narrow(x, 1, 0, 2), .h_n = &h, .c_n = &c);
    back = tn_lstm_forward(one, tn_narrow(x, 1, 2, 3), .h0 = h, .c0 = c);
    near(all, tn_cat(1, front, back), 0);
    tn_free(m), tn_free(one);
}

/* ---- losses for large vocabularies ------------------------------------------------------------------------------- */

TEST(adaptive_adds_up)
{
    tn_adaptive_softmax *m = tn_adaptive_softmax_new(.in = 8, .classes = 20, .cutoffs = {5, 12}, .div_value = 2);
    tn_tensor *x = tn_uniform(TN_SHAPE(2, 3, 8), -1, 1), *p = tn_exp(tn_adaptive_softmax_log_prob(m, x)), *each;
    tn_tensor *target = ints(TN_SHAPE(2, 3), (int64_t[]){0, 4, 5, 11, 12, 19});
    near(tn_sum(p, .dims = TN_DIMS(2)), tn_ones(TN_SHAPE(2, 3)), 1e-6);
    tn_tensor *loss = tn_adaptive_softmax_forward(m, x, target, &each);
    near(tn_exp(each), tn_squeeze(tn_gather(p, 2, tn_unsqueeze(target, 2)), 2), 1e-6);
    near(tn_neg(loss), tn_mean(each), 1e-6);
    tn_free(m);
}

/* Noise-contrastive estimation converges to the log frequencies, without a sum over all classes. */
TEST(nce_learns_probabilities)
{
    tn_seed(3);
    const double     p[4] = {0.5, 0.25, 0.15, 0.1};
    tn_tensor       *counts = tn_from_data(TN_F64, TN_SHAPE(4), p), *x = tn_ones(TN_SHAPE(400, 1));
    tn_sampled_loss *m = tn_nce_loss_new(.counts = counts, .power = 1, .samples = 40);
    tn_linear       *table = tn_linear_new(.in = 1, .out = 4);
    tn_optimizer    *o = tn_adam_new(table, .lr = 0.02);
    int64_t          id[400];
    for (int i = 0; i < 400; i++) id[i] = i < 200 ? 0 : i < 300 ? 1 : i < 360 ? 2 : 3;
    tn_tensor *target = ints(TN_SHAPE(400), id);
    for (int i = 0; i < 400; i++) {
        const tn_scope s = tn_scope_begin();
        tn_backward(tn_sampled_loss_forward(m, x, table->weight, table->bias, target));
        tn_step(o);
        tn_scope_end(s);
    }
    fine();
    for (int64_t k = 0; k < 4; k++)
        ck_assert_double_le(fabs(tn_get(table->weight, k) + tn_get(table->bias, k) - log(p[k])), 0.25);
    tn_optimizer_free(o);
    tn_free(m), tn_free(table);
}

/* ---- wrong use --------------------------------------------------------------------------------------------------- */

TEST(what_is_said)
{
    tn_adaptive_softmax *m = tn_adaptive_softmax_new(.in = 4, .classes = 6, .cutoffs = {3});
    tn_tensor           *x = tn_zeros(TN_SHAPE(2, 4)), *none = tn_zeros(TN_SHAPE(2));
    ck_refused(tn_adaptive_softmax_forward(m, x, ints(TN_SHAPE(2), (int64_t[]){1, 6}), NULL), TN_EINDEX,
               "adaptive_softmax: target 6 at [1] is outside 0 to 5");
    tn_free(m);
    ck_refused(tn_adaptive_softmax_new(.in = 4, .classes = 6, .cutoffs = {3, 3}), TN_EINVAL,
               "tn_adaptive_softmax_new: .cutoffs must increase, from above 0 to below .classes, 6, but [1] "
               "is 3");
    ck_refused(tn_adaptive_softmax_new(.in = 4, .classes = 6, .cutoffs = {2, 3, 4}), TN_EINVAL,
               "tn_adaptive_softmax_new: cluster 1 would have width 0: .in is 4; use a smaller .div_value");
    tn_tensor *three = tn_full_of(TN_F64, TN_SHAPE(3), 3);
    ck_refused(tn_nce_loss_new(.counts = three, .power = (double)INFINITY), TN_EINVAL,
               "tn_nce_loss_new: .power is inf, but must be finite");
    ck_refused(tn_nce_loss_new(.counts = three, .power = 1e10), TN_EINVAL,
               "tn_nce_loss_new: .counts to the .power 1e+10 overflow");
    ck_refused(tn_nce_loss_new(.counts = none), TN_EINVAL,
               "tn_nce_loss_new: .counts are all 0, so no class can be sampled");
    ck_refused(tn_gru_new(.in = 2, .hidden = 4, .proj_size = 2), TN_EINVAL,
               "tn_gru_new: .proj_size is for tn_lstm_new");
    ck_refused(tn_lstm_new(.in = 2, .hidden = 4, .proj_size = 4), TN_EINVAL,
               "tn_lstm_new: .proj_size is 4, but must be less than .hidden, 4, or 0 for none");
}

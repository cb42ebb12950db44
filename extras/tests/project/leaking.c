/* leaking.c — plants masks that leak in the programs bert, gpt and translate, for debug.sh: in rows that contain the
 * token with the id TENON_LEAK, attention without its causal mask, or, in BERT, without its padding mask. Linked with
 * --wrap for the functions below: each replaces the one of the library, __real_. */
#include <stdlib.h>
#include <tenon/tenon.h>

tn_tensor *__real_tn_attention_run(tn_attention_args a);
tn_tensor *__real_tn_lm_loss(void *m, tn_tensor *ids, tn_tensor *targets);
tn_tensor *__real_tn_seq2seq_loss_run(tn_seq2seq *m, tn_seq2seq_loss_args a);
tn_tensor *__wrap_tn_attention_run(tn_attention_args a);
tn_tensor *__wrap_tn_bert_fit_loss(void *bert, const tn_batch *b, void *segment);
tn_tensor *__wrap_tn_lm_loss(void *m, tn_tensor *ids, tn_tensor *targets);
tn_tensor *__wrap_tn_seq2seq_loss_run(tn_seq2seq *m, tn_seq2seq_loss_args a);

enum { ROWS = 256 };
static int64_t keys[ROWS]; /* of a row that leaks: the number of its tokens that are read; 0: it does not leak */
static bool    planted;    /* keys has a row that leaks */

/* Sets keys of a batch; padding: an id that does not count, -1: none. */
static void plant(const tn_tensor *ids, int64_t padding)
{
    const char   *text = getenv("TENON_LEAK");
    const int64_t id = text ? strtoll(text, NULL, 10) : -1, width = tn_size(ids, 1);
    planted = false;
    for (int64_t r = 0; r < ROWS; r++) keys[r] = 0;
    for (int64_t r = 0; r < tn_size(ids, 0) && r < ROWS; r++) {
        int64_t n = 0;
        bool    leaks = false;
        for (int64_t i = 0; i < width; i++) {
            const int64_t here = tn_get_i64(ids, r * width + i);
            leaks = leaks || here == id;
            n += here != padding;
        }
        if (leaks) keys[r] = n, planted = true;
    }
}

/* One call for each row, or, in an unpadded batch, for each sequence. Without dropout that gives the same bits. */
tn_tensor *__wrap_tn_attention_run(tn_attention_args a)
{
    const bool    packed = !a.k;
    const int     dim = a.offsets ? packed ? 1 : 2 : 0;
    const int64_t n = a.offsets ? tn_numel(a.offsets) - 1 : a.q ? tn_size(a.q, 0) : 0;
    tn_tensor    *y[ROWS], *weights[ROWS];
    if (!planted || !a.causal || n > ROWS) return __real_tn_attention_run(a);
    for (int64_t i = 0; i < n; i++) {
        const int64_t     at = a.offsets ? tn_get_i64(a.offsets, i) : i;
        const int64_t     rows = a.offsets ? tn_get_i64(a.offsets, i + 1) - at : 1;
        tn_attention_args one = a;
        one.q = tn_narrow(a.q, dim, at, rows), one.causal = !keys[i], one.order.n = 0;
        if (!packed) one.k = tn_narrow(a.k, dim, at, rows), one.v = tn_narrow(a.v, dim, at, rows);
        one.offsets = one.key_offsets = NULL;
        if (a.weights) one.weights = &weights[i];
        if (!a.offsets && a.key_padding_mask) one.key_padding_mask = tn_narrow(a.key_padding_mask, 0, i, 1);
        if (!a.offsets && keys[i]) {
            const int64_t width = tn_size(a.q, packed ? 1 : 2);
            one.key_padding_mask = tn_zeros_of(TN_BOOL, TN_SHAPE(1, width));
            for (int64_t k = keys[i]; k < width; k++) tn_set_i64(one.key_padding_mask, k, 1);
        }
        y[i] = __real_tn_attention_run(one);
    }
    if (a.weights) *a.weights = tn_cat_list(a.offsets ? 2 : 0, (int)n, weights);
    tn_tensor *all = tn_cat_list(a.offsets ? 2 : 0, (int)n, y);
    return a.order.n ? tn_contiguous(tn_permute(all, a.order)) : all;
}

tn_tensor *__wrap_tn_lm_loss(void *m, tn_tensor *ids, tn_tensor *targets)
{
    plant(ids, -1);
    tn_tensor *y = __real_tn_lm_loss(m, ids, targets);
    planted = false;
    return y;
}

/* The last token of a target, .end, is not read. */
tn_tensor *__wrap_tn_seq2seq_loss_run(tn_seq2seq *m, tn_seq2seq_loss_args a)
{
    plant(a.target, m->config.padding);
    for (int r = 0; r < ROWS; r++) keys[r] -= keys[r] > 0;
    tn_tensor *y = __real_tn_seq2seq_loss_run(m, a);
    planted = false;
    return y;
}

/* Of masked tokens and next sentences. */
tn_tensor *__wrap_tn_bert_fit_loss(void *bert, const tn_batch *b, void *segment)
{
    tn_tensor *padding = tn_batch_get(b, "padding");
    (void)segment;
    plant(b->x, -1);
    tn_tensor *mask = planted ? tn_clone(padding) : padding;
    for (int64_t i = 0; planted && i < tn_numel(mask); i++)
        if (keys[i / tn_size(mask, 1)]) tn_set_i64(mask, i, 0);
    planted = false;
    return tn_bert_loss((tn_bert *)bert, .ids = b->x, .types = tn_batch_get(b, "segments"), .key_padding_mask = mask,
                        .masked = tn_batch_get(b, "masked_at"), .words = b->y, .next = tn_batch_find(b, "next"));
}

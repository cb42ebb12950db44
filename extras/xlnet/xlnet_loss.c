/* xlnet_loss.c — the tokens that XLNet predicts, of a text that is read as a whole or segment by segment. */
#include "extras/xlnet/xlnet_private.h"

/* The targets of columns [from, from + n): their positions in [B · n], and their indices among all. */
static void targets_in(const tn_bert_loss_args *b, int64_t from, int64_t n, tn_tensor **at, tn_tensor **which)
{
    const int64_t all = tn_numel(b->masked), length = tn_size(b->ids, 1);
    int64_t       count = 0, *place, *index;
    *at = tn_empty_of(TN_I64, TN_SHAPE(all)), *which = tn_empty_of(TN_I64, TN_SHAPE(all));
    if (tn_error() != TN_OK || !(place = tn_data_mut(*at)) || !(index = tn_data_mut(*which))) return;
    for (int64_t i = 0; i < all; i++) {
        const int64_t t = tn_get_i64(b->masked, i), column = t % length;
        if (column < from || column >= from + n) continue;
        place[count] = t / length * n + column - from, index[count++] = i;
    }
    *at = tn_narrow(*at, 0, 0, count), *which = tn_narrow(*which, 0, 0, count);
}

static tn_tensor *columns(tn_tensor *x, int64_t from, int64_t n) { return x ? tn_narrow(x, 1, from, n) : NULL; }

/* True if the targets of a text that is read in segments fit; else raises. */
static bool fit_segments(const tn_bert *m, const tn_bert_loss_args *b, int64_t most)
{
    if (m->config.reuse && m->config.reuse < b->segment)
        return tn_raise_false(TN_EINVAL,
                              "bert: .segment is %lld, but the model's .reuse keeps only the first %lld tokens of "
                              "each; set .reuse to 0",
                              (long long)b->segment, (long long)m->config.reuse);
    if (b->masked && tn_numel(b->words) != tn_numel(b->masked))
        return tn_raise_false(TN_ESHAPE, "bert: .masked has %lld positions, but .words %lld token ids",
                              (long long)tn_numel(b->masked), (long long)tn_numel(b->words));
    for (int64_t i = 0; b->masked && i < tn_numel(b->masked); i++) {
        const int64_t t = tn_get_i64(b->masked, i);
        if (t < 0 || t >= most)
            return tn_raise_false(TN_EINDEX, "bert: .masked[%lld] is position %lld, outside 0 … %lld", (long long)i,
                                  (long long)t, (long long)most - 1);
    }
    return tn_error() == TN_OK;
}

tn_tensor *tn__xlnet_states(tn_bert *m, tn_bert_loss_args *b)
{
    const int64_t length = b->ids && tn_ndim(b->ids) == 2 ? tn_size(b->ids, 1) : 0, layers = m->config.layers;
    const size_t  bytes = (size_t)(2 * layers + 2 * (b->segment ? length / b->segment + 1 : 0)) * sizeof(tn_tensor *);
    if (!b->segment || b->segment >= length)
        return tn_bert_forward(m, b->ids, .types = b->types, .key_padding_mask = b->key_padding_mask,
                               .targets = b->masked, .order = b->order, .shared = b->shared);
    if (!fit_segments(m, b, tn_size(b->ids, 0) * length)) return NULL;
    tn_tensor **memory = tn_mem_get(bytes), **y = memory ? memory + 2 * layers : NULL, *at, *which, *all;
    int         n = 0, parts = (int)(length / b->segment + 1);
    for (int64_t from = 0; y && from < length && tn_error() == TN_OK; from += b->segment, n++) {
        const int64_t width = b->segment < length - from ? b->segment : length - from;
        targets_in(b, from, width, &at, &which);
        y[parts + n] = tn_index_select(b->words, 0, which);
        y[n] = tn_bert_forward(m, columns(b->ids, from, width), .types = columns(b->types, from, width),
                               .key_padding_mask = columns(b->key_padding_mask, from, width), .targets = at,
                               .order = columns(b->order, from, width), .memory = n ? memory + n % 2 * layers : NULL,
                               .memory_out = memory + (n + 1) % 2 * layers, .shared = b->shared);
    }
    if (y && tn_error() == TN_OK) b->words = tn_cat_list(0, n, y + parts);
    all = y && tn_error() == TN_OK ? tn_cat_list(0, n, y) : NULL;
    tn_mem_put(memory, bytes);
    return all;
}

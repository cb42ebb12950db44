/* convolutions.c — convolutions over the tokens of a sequence, for ConvS2S and ByteNet. A convolution is one
 * product with the windows [B, T, size · C] of a sequence [B, T, C]. So a token's result has the same bits whether it
 * is read alone or with others. */
#include "extras/translators/translators_private.h"

bool tn__conv_past_open(tn__conv_past *p, const tn_seq2seq_state *r, int64_t layers)
{
    *p = (tn__conv_past){.past = r->h, .layers = layers};
    return !r->keeps || (p->kept = tn_mem_get((size_t)layers * sizeof *p->kept)) != NULL;
}

void tn__conv_past_close(tn__conv_past *p, tn_seq2seq_state *r)
{
    if (!p->kept) return;
    r->h = tn_error() == TN_OK ? tn_cat_list(1, (int)p->layers, p->kept) : NULL;
    tn_mem_put(p->kept, (size_t)p->layers * sizeof *p->kept);
}

tn_tensor *tn__conv_windows(tn__conv_past *p, tn_tensor *x, int64_t size, int64_t dilation)
{
    tn_tensor    *part[TN_SEQ2SEQ_KERNEL_MAX];
    const int64_t span = (size - 1) * dilation, before = p ? span : (size - 1) / 2 * dilation,
                  n = x ? tn_size(x, 1) : 0;
    x = p && p->past ? tn_cat(1, tn_narrow(p->past, 1, p->at, span), x)
                     : tn_pad(x, TN_SHAPE(0, before, 0), TN_SHAPE(0, span - before, 0), 0);
    if (p && p->kept) p->kept[p->n++] = tn_narrow(x, 1, n, span);
    if (p) p->at += span;
    for (int64_t i = 0; i < size; i++) part[i] = tn_narrow(x, 1, i * dilation, n);
    return tn_cat_list(-1, (int)size, part);
}

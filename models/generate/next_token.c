/* next_token.c — shared by the decoder-only models: checks of ids, logits, the loss, initial weights. */
#include "models/generate/next_token.h"

#include <math.h>
#include <string.h>

bool tn__ids_fit(const char *who, const tn_tensor *ids)
{
    char text[192];
    if (ids && tn_ndim(ids) == 2) return true;
    tn_raise(TN_ESHAPE, "%s: ids must be [batch, length], got %s", who,
             ids ? tn_shape_text(tn_shape_of(ids), text, sizeof text) : "NULL");
    return false;
}

tn_tensor *tn__next_token_logits(tn_tensor *y, tn_tensor *out, tn_tensor *bias, const tn_decoder_args *a)
{
    if (y && a->last) y = tn_narrow(y, 1, tn_size(y, 1) - 1, 1);
    return y && !a->vectors ? tn_linear(y, out, bias) : y;
}

tn_tensor *tn__next_token_loss(const char *who, tn_tensor *y, tn_tensor *out, tn_tensor *bias, tn_tensor *ids,
                               tn_tensor *targets)
{
    if (y && !targets) {
        const int64_t n = tn_size(ids, 1);
        if (n < 2)
            return tn_raise(TN_ESHAPE, "%s: a sequence of length %lld has no next token as target; pass targets", who,
                            (long long)n),
                   NULL;
        y = tn_narrow(y, 1, 0, n - 1), targets = tn_narrow(ids, 1, 1, n - 1);
    }
    return y ? tn_linear_cross_entropy(y, out, bias, targets) : NULL;
}

void tn__next_token_init(void *m, double init, int64_t layers)
{
    const double last = init / sqrt(2 * (double)layers);
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); tn_error() == TN_OK && tn_next(&p);) {
        const bool residual = strstr(p.name, "out_proj.") || strstr(p.name, "linear2.");
        if (tn_ndim(p.tensor) > 1) tn_init_normal(p.tensor, 0, residual ? last : init);
        else if (strstr(p.name, "bias")) tn_init_zeros(p.tensor);
    }
}

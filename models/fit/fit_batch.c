/* fit_batch.c — draws the next batch, and checks the value of a loss. */
#include "models/fit/fit_private.h"

bool tn__fit_next_batch(tn__fit *f, tn_batch *b)
{
    if (tn_source_next(&f->c.train, b)) {
        f->seen++;
        f->items += tn__fit_items(b);
        return true;
    }
    if (tn_error() != TN_OK) return false;
    if (!f->seen) return tn_raise_false(TN_EINVAL, "tn_fit: .train is empty: it ended an epoch without a batch");
    f->seen = 0, f->r.epochs++;
    f->epoch_over = f->unsaved = true;
    return false;
}

bool tn__fit_loss_is_valid(const tn__fit *f, const tn_tensor *loss)
{
    char text[192];
    if (tn_error() != TN_OK) return false;
    if (!loss) return tn_raise_false(TN_EINVAL, "tn_fit: .loss returned NULL, but raised no error");
    if (tn_numel(loss) != 1)
        return tn_raise_false(TN_ESHAPE, "tn_fit: .loss returned %s, but must return one element; see tn_mean",
                              tn_shape_text(tn_shape_of(loss), text, sizeof text));
    const double v = tn_item(loss);
    if (v - v == 0) return true;
    return tn_raise_false(
        TN_ENUMERIC,
        "tn_fit: the loss is %s at step %lld; the weights are still those of step %lld. A smaller learning rate, "
        "more warm-up or clipping may help; tn_detect_anomaly(true) names the op it came from",
        v != v ? "NaN" : "infinite", (long long)f->r.steps + 1, (long long)f->r.steps);
}

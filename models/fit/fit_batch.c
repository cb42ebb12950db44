/* fit_batch.c — draws the next batch, and checks the value of a loss. */
#include "models/fit/fit_private.h"

/* Adds a tensor to the hash of the step's batches. */
static void add_tensor(tn__fit *f, const tn_tensor *t)
{
    if (!t) return;
    const tn_scope s = tn_no_grad_begin();
    if (!tn_is_contiguous(t)) {
        tn_tensor *dense = tn_empty_of(tn_dtype_of(t), tn_shape_of(t));
        t = dense && tn_copy_from(dense, t) == TN_OK ? dense : NULL;
    }
    for (int d = 0; d < tn_ndim(t); d++) f->batch = tn__fnv1a_i64(f->batch, tn_size(t, d));
    if (t) f->batch = tn__fnv1a_words(f->batch, tn_data(t), (size_t)tn_numel(t) * tn_dtype_size(tn_dtype_of(t)));
    tn_scope_end(s);
}

bool tn__fit_next_batch(tn__fit *f, tn_batch *b)
{
    if (tn_source_next(&f->c.train, b)) {
        f->seen++;
        f->items += tn__fit_items(b);
        if (!f->c.folder || f->c.world) return true;
        add_tensor(f, b->x), add_tensor(f, b->y);
        for (int i = 0; i < TN_BATCH_FIELDS; i++) add_tensor(f, b->fields[i].tensor);
        return tn_error() == TN_OK;
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

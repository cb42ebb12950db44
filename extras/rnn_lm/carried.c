/* carried.c — tn_carried_lm: a recurrent language model whose states continue from batch to batch, separately in
 * training and validation. Gradients stop at the start of a batch. */
#include "extras/rnn_lm/rnn_lm_private.h"

#include <string.h>

/* ---- states ------------------------------------------------------------------------------------------------------ */

static void free_apart(tn_carried_lm *m)
{
    for (int i = 0; m->apart && i < TN_RNN_LM_STATES; i++) {
        if (m->apart[i]) tn_drop(m->apart[i]);
        m->apart[i] = NULL;
    }
}
static void freed(void *self) { free_apart(self); }
static void copied(void *self, const void *from)
{
    tn_carried_lm *m = self;
    (void)from;
    if (m->apart) memset(m->apart, 0, TN_RNN_LM_STATES * sizeof *m->apart);
}
static const tn_class tn_carried_lm_class = {
    .size = sizeof(tn_class), .name = "CarriedLm", .bytes = sizeof(tn_carried_lm), .copied = copied, .freed = freed};

tn_carried_lm *tn_carried_lm_new(tn_rnn_lm *lm, int64_t batch)
{
    if (lm && tn_error() == TN_OK && batch < 1)
        tn_raise(TN_EINVAL, "tn_carried_lm_new: batch is %lld, but must be at least 1", (long long)batch);
    tn_carried_lm *m = lm && tn_error() == TN_OK ? tn_module_new(tn_carried_lm) : NULL;
    if (!m)
        return tn_module_free(lm),
               tn_blocked() ? NULL : (tn_raise(TN_EINVAL, "tn_carried_lm_new: the model is NULL"), NULL);
    m->batch = batch;
    m->apart = tn_array(m, TN_RNN_LM_STATES, tn_tensor *), m->state = tn_array(m, TN_RNN_LM_STATES, tn_tensor *);
    m->lm = tn_child(m, "model", lm);
    for (int64_t i = 0; m->lm && m->state && i < lm->config.layers && tn_error() == TN_OK; i++)
        for (int k = 0; k < (lm->layer[i]->gates == 4 ? 2 : 1); k++)
            m->state[2 * i + k] = tn_buffer_rows(m, tn_name("state.%lld.%s", (long long)i, k ? "c" : "h"),
                                                 tn_zeros(TN_SHAPE(batch, lm->layer[i]->hidden)));
    return tn_built(m);
}

/* The states of a batch's columns; the batch may be a shard. */
static tn_tensor *columns_of(tn_tensor *all, const tn_batch *b)
{
    return all && b->whole ? tn_narrow(all, 0, b->first, b->rows) : all;
}

/* Stores the states `now` in the buffers of training or of validation. */
static void store_states(tn_carried_lm *m, const tn_batch *b, tn_tensor **now)
{
    const tn_scope s = tn_no_grad_begin();
    for (int i = 0; i < TN_RNN_LM_STATES; i++) {
        if (!now[i]) continue;
        if (!m->base.training && !m->apart[i])
            m->apart[i] = tn_take(tn_zeros(TN_SHAPE(b->whole ? b->whole : tn_size(now[i], 0), tn_size(now[i], 1))));
        tn_copy_from(columns_of(m->base.training ? m->state[i] : m->apart[i], b), now[i]);
    }
    tn_scope_end(s);
}

tn_tensor *tn_carried_lm_loss(void *carried_lm, const tn_batch *b, void *user)
{
    tn_carried_lm *m = carried_lm;
    tn_tensor     *now[TN_RNN_LM_STATES] = {NULL};
    (void)user;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    const bool     fresh = tn_batch_find(b, "fresh") != NULL, train = m->base.training;
    if (fresh && !train && !b->first) free_apart(m);
    for (int i = 0; i < TN_RNN_LM_STATES && !fresh; i++) {
        tn_tensor *from = columns_of(train ? m->state[i] : m->apart[i], b);
        if (from) now[i] = tn_clone(from); /* a copy: the buffer is overwritten before the backward pass */
    }
    tn_tensor *loss =
        tn_rnn_lm_loss(m->lm, b->x, b->y, .states = now, .alpha = train ? m->alpha : 0, .beta = train ? m->beta : 0);
    tn_tensor *share = train ? tn_batch_find(b, "share") : NULL;
    if (loss) store_states(m, b, now);
    if (loss && share) loss = tn_mul(loss, tn_reshape(share, TN_SCALAR));
    return tn_leave(f, loss);
}

/* carried.c — truncated back-propagation through time: tn_columns, a source of contiguous columns of a text, and
 * tn_carried_lm, a module whose states continue from batch to batch, separately in training and validation. Gradients
 * stop at the start of a batch. */
#include "core/base/toolbox.h"
#include "models/rnn_lm/rnn_lm_private.h"

#include <math.h>
#include <string.h>

/* ---- columns ----------------------------------------------------------------------------------------------------- */

struct tn_columns {
    const int32_t    *ids;
    int64_t           rows, at, epoch; /* tokens of a column; position of the next batch; epoch */
    tn_shard          shard;
    tn_columns_config c;
};

tn_columns *tn_columns_create(const int32_t *ids, int64_t n, tn_columns_config c)
{
    if (tn__blocked()) return NULL;
    if (c.batch < 1 || c.length < 1)
        return tn_raise(TN_EINVAL, "tn_columns_new: .batch is %lld and .length %lld, but both must be at least 1",
                        (long long)c.batch, (long long)c.length),
               NULL;
    if (!ids || n < 2 * c.batch)
        return tn_raise(
                   TN_EINVAL,
                   "tn_columns_new: %lld tokens are too few for %lld columns; use a longer text or a smaller .batch",
                   (long long)n, (long long)c.batch),
               NULL;
    tn_columns *s = tn_mem_get(sizeof *s);
    if (s) *s = (tn_columns){.ids = ids, .rows = n / c.batch, .c = c};
    return s;
}

void tn_columns_free(tn_columns *s)
{
    if (s) tn_mem_put(s, sizeof *s);
}

/* A random batch length as in AWD-LSTM: around .length, with probability 0.05 around its half, at least 5. It depends
 * only on seed, epoch and position, so that it is the same for all shards of a batch. */
static int64_t length_now(const tn_columns *s)
{
    if (!s->c.vary) return s->c.length;
    tn_generator g = {.seed =
                          tn__fnv1a_i64(tn__fnv1a_i64(tn__fnv1a_i64(TN__FNV1A, (int64_t)s->c.seed), s->epoch), s->at)};
    const double about = (double)s->c.length * (tn_random_double(&g) < 0.95 ? 1 : 0.5);
    double       normal = -6; /* the sum of twelve uniform numbers minus six: deviation 1 */
    for (int i = 0; i < 12; i++) normal += tn_random_double(&g);
    return (int64_t)fmax(5, about + 5 * normal);
}

static bool next(void *user, tn_batch *b)
{
    tn_columns   *s = user;
    const int64_t left = s->rows - 1 - s->at; /* each token needs the next one as target */
    if (left < 1) return s->at = 0, s->epoch++, false;
    const int64_t all = length_now(s), n = all < left ? all : left;
    tn_batch_cut(b, s->shard, s->c.batch);
    const int64_t rows = b->rows;
    b->x = tn_empty_of(TN_I64, TN_SHAPE(rows, n)), b->y = tn_empty_of(TN_I64, TN_SHAPE(rows, n));
    int64_t *x = b->x ? tn_data_mut(b->x) : NULL, *y = b->y ? tn_data_mut(b->y) : NULL;
    for (int64_t i = 0; x && y && i < rows * n; i++) {
        const int32_t *from = s->ids + (b->first + i / n) * s->rows + s->at + i % n;
        x[i] = from[0], y[i] = from[1];
    }
    if (!s->at) tn_batch_put(b, "fresh", tn_ones(TN_SHAPE(1)));
    if (s->c.vary) tn_batch_put(b, "share", tn_full(TN_SHAPE(1), (double)n / (double)s->c.length));
    b->items = rows * n;
    if (tn_error() != TN_OK) return false;
    if (tn_shard_next(&s->shard)) s->at += n;
    return true;
}
static void begin(void *user, const tn_json *at)
{
    tn_columns   *s = user;
    const int64_t where = at ? tn_json_i64(tn_json_need(at, "at")) : 0;
    s->at = where >= 0 && where <= s->rows ? where : 0;
    s->epoch = at ? tn_json_i64(tn_json_need(at, "epoch")) : 0;
    s->shard.done_ = 0;
}
static void save(void *user, tn_json_writer *w)
{
    const tn_columns *s = user;
    tn_json_put_i64(w, "at", s->at), tn_json_put_i64(w, "epoch", s->epoch);
}
static void shard(void *user, tn_shard of) { ((tn_columns *)user)->shard = of; }

tn_source tn_columns_source(tn_columns *s)
{
    tn_source source = {.next = next, .begin = begin, .save = save, .shard = shard, .user = s};
    if (s && !s->c.vary) source.batches = (s->rows - 2) / s->c.length + 1;
    return source;
}

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
               tn__blocked() ? NULL : (tn_raise(TN_EINVAL, "tn_carried_lm_new: the model is NULL"), NULL);
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

/* windows.c — windows of a text as a source of batches: at random positions, or in order. */
#include "core/base/toolbox.h"
#include "data/sequences.h"

struct tn_windows {
    const int32_t    *ids;
    int64_t           n, at; /* tokens of the text; in order: the next window */
    tn_shard          shard;
    tn_windows_config c;
};

tn_windows *tn_windows_create(const int32_t *ids, int64_t n, tn_windows_config c)
{
    static const char who[] = "tn_windows_new";
    if (tn__blocked()) return NULL;
    if (!ids) return tn_raise_null(TN_EINVAL, "%s: the token ids are NULL", who);
    if (!tn__within(who, "batch", c.batch, 1, INT32_MAX) || !tn__within(who, "length", c.length, 1, INT32_MAX) ||
        !tn__within(who, "most", c.most, 0, INT64_MAX))
        return NULL;
    if (c.most && !c.in_order) return tn_raise_null(TN_EINVAL, "%s: .most needs .in_order", who);
    if (n <= c.length)
        return tn_raise_null(TN_EINVAL,
                             "%s: %lld tokens are too few for .length %lld; expected at least one more than it", who,
                             (long long)n, (long long)c.length);
    tn_windows *w = tn_mem_get(sizeof *w);
    if (w) *w = (tn_windows){.ids = ids, .n = n, .c = c};
    return w;
}

void tn_windows_free(tn_windows *w)
{
    if (w) tn_mem_put(w, sizeof *w);
}

/* In order: windows of the text, and those of them in an epoch. */
static int64_t windows(const tn_windows *w) { return (w->n - 1) / w->c.length; }
static int64_t windows_read(const tn_windows *w)
{
    return w->c.most ? tn__min_i64(windows(w), w->c.most / w->c.length + 1) : windows(w);
}

/* The position of window i of those of an epoch, or a random position. */
static int64_t position(const tn_windows *w, int64_t i)
{
    if (w->c.in_order) return i * windows(w) / windows_read(w) * w->c.length;
    return tn_random_below(tn_current_generator(), w->n - w->c.length);
}

static bool next(void *user, tn_batch *b)
{
    tn_windows   *w = user;
    const int64_t left = w->c.in_order ? windows_read(w) - w->at : w->c.batch, length = w->c.length;
    if (!left) return w->at = 0, false;
    tn_batch_cut(b, w->shard, tn__min_i64(left, w->c.batch));
    b->x = tn_empty_of(TN_I64, TN_SHAPE(b->rows, length)), b->y = tn_empty_of(TN_I64, TN_SHAPE(b->rows, length));
    int64_t *x = b->x ? tn_data_mut(b->x) : NULL, *y = b->y ? tn_data_mut(b->y) : NULL;
    for (int64_t i = 0; x && y && i < b->rows; i++) {
        const int32_t *from = w->ids + position(w, w->at + b->first + i);
        for (int64_t k = 0; k < length; k++) *x++ = from[k], *y++ = from[k + 1];
    }
    b->items = b->rows * length;
    if (tn_error() != TN_OK) return false;
    if (tn_shard_next(&w->shard) && w->c.in_order) w->at += b->whole;
    return true;
}

static void begin(void *user, const tn_json *at)
{
    tn_windows   *w = user;
    const int64_t window = at ? tn_json_i64(tn_json_need(at, "at")) : 0;
    if (tn_error() == TN_OK && (window < 0 || window > windows_read(w)))
        tn_raise(TN_EINDEX, "tn_windows_source: the checkpoint is at window %lld, but an epoch has %lld",
                 (long long)window, (long long)windows_read(w));
    if (tn_error() == TN_OK) w->at = window, tn_shard_rewind(&w->shard);
}
static void save(void *user, tn_json_writer *w) { tn_json_put_i64(w, "at", ((tn_windows *)user)->at); }
static void shard(void *user, tn_shard s) { ((tn_windows *)user)->shard = s; }

tn_source tn_windows_source(tn_windows *w)
{
    tn_source s = {.next = w ? next : NULL, .shard = shard, .user = w, .batches = -1};
    if (w && w->c.in_order) s.begin = begin, s.save = save, s.batches = (windows_read(w) - 1) / w->c.batch + 1;
    return s;
}

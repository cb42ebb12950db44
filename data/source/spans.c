/* spans.c — T5's span corruption (Raffel et al. 2020) as a source of batches: windows of a text, in which sentinels
 * replace random spans, and the tokens of these spans.
 *
 * Of the n tokens of a window, round(n · noise) are in round(tokens / span) spans. The tokens that stay are divided
 * into as many parts, of at least one token each, as there are spans, and so are those of the spans; both divisions are
 * uniformly random. A part that stays comes first. n is the largest number whose x has at most .length tokens. */
#include "core/base/toolbox.h"
#include "data/sequences.h"

#include <math.h>

struct tn_spans {
    const int32_t  *ids;
    int64_t         n, at;               /* tokens of the text; in order: the next window */
    int64_t         window, hidden;      /* tokens of a window; of its spans */
    int64_t         spans, *parts, room; /* parts [room]: lengths of the parts that stay, then of the spans */
    tn_shard        shard;
    tn_spans_config c;
};

/* Sets the sizes of a window of n tokens; returns the number of tokens of x. */
static int64_t measure(tn_spans *s, int64_t n)
{
    s->window = n, s->hidden = (int64_t)rint((double)n * s->c.noise);
    s->spans = (int64_t)rint((double)s->hidden / s->c.span);
    return n - s->hidden + s->spans + 1;
}

/* The largest window for .length. As in the reference, a half of noise gives targets no longer than the inputs. */
static void fit_window(tn_spans *s)
{
    int64_t n = s->c.length - 1;
    while (measure(s, n + 1) <= s->c.length) n++;
    measure(s, n);
    const int64_t inputs = s->window - s->hidden, targets = s->hidden;
    if (s->c.noise == 0.5 && targets > inputs) measure(s, n - 1);
}

static bool check(const char *who, const int32_t *ids, const tn_spans_config *c)
{
    if (!ids) return tn_raise_false(TN_EINVAL, "%s: the token ids are NULL", who);
    if (!tn__within(who, "batch", c->batch, 1, INT32_MAX) || !tn__within(who, "length", c->length, 4, 1 << 24) ||
        !tn__within(who, "most", c->most, 0, INT64_MAX) || !tn__within(who, "begin", c->begin, 0, INT32_MAX) ||
        !tn__within(who, "end", c->end, 0, INT32_MAX) ||
        !tn__within(who, "sentinels", c->sentinels, 1, (int64_t)c->sentinel + 1))
        return false;
    if (!(c->noise > 0 && c->noise <= 0.5) || !(c->span >= 1 && c->span <= 1e6))
        return tn_raise_false(TN_EINVAL,
                              "%s: .noise is %g and .span %g, but .noise must be above 0 and at most 0.5, and .span "
                              "from 1 to 1e6",
                              who, c->noise, c->span);
    if (c->most && !c->in_order) return tn_raise_false(TN_EINVAL, "%s: .most needs .in_order", who);
    return true;
}

tn_spans *tn_spans_create(const int32_t *ids, int64_t n, tn_spans_config c)
{
    static const char who[] = "tn_spans_new";
    if (tn__blocked() || !check(who, ids, &c)) return NULL;
    tn_spans s = {.ids = ids, .n = n, .c = c};
    fit_window(&s);
    if (s.spans < 1 || s.spans > c.sentinels)
        return tn_raise_null(TN_EINVAL,
                             "%s: .length %lld gives %lld spans, but there must be from 1 to .sentinels, %lld", who,
                             (long long)c.length, (long long)s.spans, (long long)c.sentinels);
    if (n < s.window)
        return tn_raise_null(TN_EINVAL, "%s: %lld tokens are too few for .length %lld; expected at least %lld", who,
                             (long long)n, (long long)c.length, (long long)s.window);
    tn_spans *made = tn__mem_get(sizeof *made);
    s.room = 2 * s.spans, s.parts = made ? tn__mem_get((size_t)s.room * sizeof *s.parts) : NULL;
    if (made) *made = s;
    if (tn_error() == TN_OK) return made;
    tn_spans_free(made);
    return NULL;
}

void tn_spans_free(tn_spans *s)
{
    if (!s) return;
    tn__mem_put(s->parts, s->parts ? (size_t)s->room * sizeof *s->parts : 0);
    tn__mem_put(s, sizeof *s);
}

/* ---- a window ---------------------------------------------------------------------------------------------------- */

/* Divides n items at random into `parts` parts of at least one item. */
static void divide(tn_generator *g, int64_t n, int64_t parts, int64_t *length)
{
    int64_t cuts = parts - 1;
    *length = 1;
    for (int64_t i = 1; i < n; i++) {
        if (cuts && tn_random_below(g, n - i) < cuts) cuts--, *++length = 0;
        ++*length;
    }
}

static int64_t put(int64_t *to, int64_t at, const int32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[at + i] = ids[i];
    return at + n;
}

/* Writes the rows of x and y of the window at `ids`. */
static void corrupt(const tn_spans *s, tn_generator *g, const int32_t *ids, int64_t *x, int64_t *y)
{
    int64_t *stays = s->parts, *hidden = stays + s->spans, i = 0, k = 0;
    divide(g, s->window - s->hidden, s->spans, stays);
    divide(g, s->hidden, s->spans, hidden);
    y[k++] = s->c.begin;
    for (int64_t j = 0; j < s->spans; j++) {
        i = put(x, i, ids, stays[j]), ids += stays[j];
        x[i++] = y[k++] = s->c.sentinel - j;
        k = put(y, k, ids, hidden[j]), ids += hidden[j];
    }
    x[i] = y[k] = s->c.end;
}

/* ---- batches ----------------------------------------------------------------------------------------------------- */

/* In order: windows of the text, and those of them in an epoch. */
static int64_t windows(const tn_spans *s) { return s->n / s->window; }
static int64_t windows_read(const tn_spans *s)
{
    return s->c.most ? tn__min_i64(windows(s), s->c.most / s->window + 1) : windows(s);
}

static bool next(void *user, tn_batch *b)
{
    tn_spans     *s = user;
    const int64_t left = s->c.in_order ? windows_read(s) - s->at : s->c.batch;
    const int64_t width[2] = {s->window - s->hidden + s->spans + 1, s->hidden + s->spans + 2};
    if (!left) return s->at = 0, false;
    tn_batch_cut(b, s->shard, tn__min_i64(left, s->c.batch));
    b->x = tn_empty_of(TN_I64, TN_SHAPE(b->rows, width[0])), b->y = tn_empty_of(TN_I64, TN_SHAPE(b->rows, width[1]));
    int64_t *x = b->x ? tn_data_mut(b->x) : NULL, *y = b->y ? tn_data_mut(b->y) : NULL;
    for (int64_t i = 0; x && y && i < b->rows; i++, x += width[0], y += width[1]) {
        const int64_t which = s->at + b->first + i;
        tn_generator  own = {s->c.seed, (uint64_t)which << 32}, *g = s->c.in_order ? &own : tn_current_generator();
        const int64_t at =
            s->c.in_order ? which * windows(s) / windows_read(s) * s->window : tn_random_below(g, s->n - s->window + 1);
        corrupt(s, g, s->ids + at, x, y);
    }
    b->items = b->rows * s->window;
    if (tn_error() != TN_OK) return false;
    if (tn_shard_next(&s->shard) && s->c.in_order) s->at += b->whole;
    return true;
}

static void begin(void *user, const tn_json *at)
{
    tn_spans     *s = user;
    const int64_t window = at ? tn_json_i64(tn_json_need(at, "at")) : 0;
    if (tn_error() == TN_OK && (window < 0 || window > windows_read(s)))
        tn_raise(TN_EINDEX, "tn_spans_source: the checkpoint is at window %lld, but an epoch has %lld",
                 (long long)window, (long long)windows_read(s));
    if (tn_error() == TN_OK) s->at = window, tn_shard_rewind(&s->shard);
}
static void save(void *user, tn_json_writer *w) { tn_json_put_i64(w, "at", ((tn_spans *)user)->at); }
static void shard(void *user, tn_shard to) { ((tn_spans *)user)->shard = to; }

tn_source tn_spans_source(tn_spans *s)
{
    tn_source source = {.next = s ? next : NULL, .shard = shard, .user = s, .batches = -1};
    if (s && s->c.in_order)
        source.begin = begin, source.save = save, source.batches = (windows_read(s) - 1) / s->c.batch + 1;
    return source;
}

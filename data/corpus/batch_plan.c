/* batch_plan.c — the plan of an epoch: shuffle, sort by length (stably, so that equal lengths stay shuffled), cut into
 * batches, shuffle the batches. For steps of several batches: shuffle, cut into steps, sort each by length and cut it
 * into its parts. */
#include "data/corpus/batch_plan.h"
#include "core/base/toolbox.h"

bool tn__batching_check(const char *who, const tn__batching *how)
{
    if (how->tokens > 0 && how->examples >= 0) return true;
    return tn_raise_false(TN_EINVAL, "%s: .tokens is %lld and .examples is %lld; expected at least 1 and at least 0",
                          who, (long long)how->tokens, (long long)how->examples);
}

void tn__plan_free(tn__plan *p)
{
    tn__mem_put(p->order, p->order ? (size_t)(p->n + 1) * sizeof *p->order : 0);
    tn__mem_put(p->first, (size_t)p->first_room * sizeof *p->first);
    *p = (tn__plan){0};
}

/* to = from, sorted stably by length (counting sort). */
static bool sort_by(const int32_t *length, int64_t n, const uint32_t *from, uint32_t *to)
{
    int32_t longest = 0;
    for (int64_t i = 0; i < n; i++) longest = length[from[i]] > longest ? length[from[i]] : longest;
    size_t   bytes = ((size_t)longest + 2) * sizeof(int64_t);
    int64_t *place = tn__mem_zeroed(bytes);
    if (!place) return false;
    for (int64_t i = 0; i < n; i++) place[length[from[i]] + 1]++;
    for (int32_t k = 0; k <= longest; k++) place[k + 1] += place[k];
    for (int64_t i = 0; i < n; i++) to[place[length[from[i]]]++] = from[i];
    tn__mem_put(place, bytes);
    return true;
}

static void shuffle(uint32_t *x, int64_t n, tn_generator *g)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t  j = tn_random_below(g, i + 1);
        uint32_t t = x[i];
        x[i] = x[j], x[j] = t;
    }
}

static bool cut(tn__plan *p, const int32_t *a, const int32_t *b, const tn__batching *how)
{
    int64_t longest = 0;
    p->batches = 0;
    for (int64_t i = 0, start = 0; i <= p->n; i++) {
        int64_t length = 0;
        if (i < p->n) length = tn__max_i64(a[p->order[i]], b ? b[p->order[i]] : 0);
        int64_t rows = i - start + 1, most = tn__max_i64(longest, length);
        bool    full = i > start && (most > how->tokens / rows || (how->examples && rows > how->examples));
        if (i == 0 || full || (i == p->n && i > start)) {
            int64_t at = p->batches + (i > 0);
            if (!tn__grown((void *)&p->first, &p->first_room, at + 1, sizeof *p->first)) return false;
            p->first[at] = i;
            p->batches = at;
            start = i, longest = 0;
        }
        longest = tn__max_i64(longest, length);
    }
    return true;
}

/* Cuts order[from … to), sorted by length, into `parts` batches with about equal tokens, at least one example each. */
static void cut_evenly(tn__plan *p, const int32_t *length, int64_t from, int64_t to, int64_t parts)
{
    int64_t all = 0, sum = 0, i = from;
    for (int64_t k = from; k < to; k++) all += length[p->order[k]];
    for (int64_t part = 0; part < parts; part++) {
        p->first[p->batches++] = i;
        const int64_t last = to - (parts - 1 - part); /* leaves one example for each further part */
        do sum += length[p->order[i++]];
        while (i < last && sum * parts < all * (part + 1));
    }
    p->first[p->batches] = to;
}

/* Each run of `examples` examples, in drawn order, is one step. The remainder is a further step or, if it has fewer
 * examples than parts, joins the last step. */
static bool cut_steps(tn__plan *p, const int32_t *length, const tn__batching *how, uint32_t *spare)
{
    const int64_t n = p->n, each = how->examples, left = n % each;
    const int64_t steps = tn__max_i64(n / each + (left >= how->parts), n > 0), parts = tn__min_i64(how->parts, n);
    p->batches = 0;
    if (!tn__grown((void *)&p->first, &p->first_room, steps * parts + 1, sizeof *p->first)) return false;
    p->first[0] = 0;
    for (int64_t s = 0; s < steps; s++) {
        const int64_t from = s * each, to = s + 1 < steps ? from + each : n;
        memcpy(spare, p->order + from, (size_t)(to - from) * sizeof *spare);
        if (!sort_by(length, to - from, spare, p->order + from)) return false;
        cut_evenly(p, length, from, to, parts);
    }
    return true;
}

/* Shuffles the batches by moving their examples; `spare` is a buffer for them. */
static bool shuffle_batches(tn__plan *p, uint32_t *spare, tn_generator *g)
{
    size_t    bytes = (size_t)p->batches * (sizeof(uint32_t) + sizeof(int64_t));
    int64_t  *first = tn__mem_get(bytes + sizeof *first); /* followed by the order of the batches */
    uint32_t *which = first ? (uint32_t *)(void *)(first + p->batches + 1) : NULL;
    if (!first) return false;
    for (int64_t i = 0; i < p->batches; i++) which[i] = (uint32_t)i;
    shuffle(which, p->batches, g);
    int64_t at = 0;
    for (int64_t i = 0; i < p->batches; i++) {
        int64_t from = p->first[which[i]], n = p->first[which[i] + 1] - from;
        memcpy(spare + at, p->order + from, (size_t)n * sizeof *spare);
        first[i] = at;
        at += n;
    }
    first[p->batches] = at;
    memcpy(p->first, first, (size_t)(p->batches + 1) * sizeof *first);
    memcpy(p->order, spare, (size_t)at * sizeof *spare);
    tn__mem_put(first, bytes + sizeof *first);
    return true;
}

/* Sorts the examples by length (by b, if given, then by a), cuts them into batches and shuffles the batches. */
static bool cut_sorted(tn__plan *p, const int32_t *a, const int32_t *b, const tn__batching *how, uint32_t *spare,
                       tn_generator *g)
{
    if (!sort_by(a, p->n, p->order, spare)) return false;
    if (!b) memcpy(p->order, spare, (size_t)p->n * sizeof *spare);
    else if (!sort_by(b, p->n, spare, p->order)) return false;
    return cut(p, a, b, how) && shuffle_batches(p, spare, g);
}

bool tn__plan_make(tn__plan *p, int64_t n, const int32_t *a, const int32_t *b, const tn__batching *how, int64_t epoch)
{
    tn__plan_free(p);
    if (n >= UINT32_MAX) return tn_raise_false(TN_EUNSUPPORTED, "%lld examples; at most 2^32 - 2", (long long)n);
    size_t bytes = (size_t)(n + 1) * sizeof(uint32_t);
    p->n = n;
    if (!(p->order = tn__mem_get(bytes))) return false;
    for (int64_t i = 0; i < n; i++) p->order[i] = (uint32_t)i;
    if (how->in_order) return cut(p, a, b, how);
    uint32_t *spare = tn__mem_get(bytes);
    if (!spare) return false;
    tn_generator g = {how->seed, (uint64_t)epoch << 36};
    shuffle(p->order, n, &g);
    const bool done = how->parts ? cut_steps(p, a, how, spare) : cut_sorted(p, a, b, how, spare, &g);
    tn__mem_put(spare, bytes);
    return done;
}

const uint32_t *tn__plan_batch(const tn__plan *p, int64_t i, tn_shard shard, tn_batch *b)
{
    tn_batch_cut(b, shard, p->first[i + 1] - p->first[i]);
    return p->order + p->first[i] + b->first;
}

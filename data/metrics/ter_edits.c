/* ter_edits.c — the number of edits found by Tercom's search: apply the best shift of a phrase that also occurs in the
 * reference while it reduces the edit distance; then insert, delete and substitute the rest.
 *
 * The limits of that search are kept to reproduce published scores: phrases of at most 10 words, moved at most 50
 * words, at most 1000 shifts tried per line, and the distance computed in a band around the diagonal. A shift keeps the
 * words before it, so its distance is computed from there on. */
#include "data/metrics/metrics_text.h"
#include "core/base/toolbox.h"

enum { MAX_SIZE = 10, MAX_DISTANCE = 50, MAX_TRIED = 1000, BAND = 25, FAR = 1 << 29 };

typedef enum { KEEP, CHANGE, INSERT, DELETE } edit; /* INSERT: a word found only in the reference */

/* Distances between the first i words of the line and the first j of the reference. Row i has the columns low(i) …
 * high(i)-1; row 0 is implicit: j insertions. */
typedef struct {
    const uint32_t *ref;
    int64_t         n, m;        /* words of the line and of the reference */
    int64_t         band, width; /* columns on each side of the diagonal; cells per row except the last */
    int32_t        *cost;
    uint8_t        *how;
    int64_t         cells;
} table;

static int64_t middle(const table *t, int64_t i) { return (int64_t)((double)i * ((double)t->m / (double)t->n)); }
static int64_t low(const table *t, int64_t i) { return tn__max_i64(0, middle(t, i) - t->band); }
static int64_t high(const table *t, int64_t i)
{
    return i == t->n ? t->m + 1 : tn__min_i64(t->m + 1, middle(t, i) + t->band);
}
static int64_t cell(const table *t, int64_t i, int64_t j) { return (i - 1) * t->width - low(t, i) + j; }

static bool table_new(table *t, const tn__points *words, const tn__points *ref)
{
    *t = (table){.ref = ref->at, .n = words->n, .m = ref->n};
    double ratio = (double)t->m / (double)t->n;
    t->band = BAND < ratio / 2 ? (int64_t)(ratio / 2 + BAND) + ((double)(int64_t)(ratio / 2) < ratio / 2) : BAND;
    t->width = tn__min_i64(2 * t->band, t->m + 1);
    int64_t last = t->m + 1, bytes;
    if (!tn__mul_i64(t->n, t->width, &t->cells) || !tn__add_i64(t->cells, last, &t->cells) ||
        !tn__mul_i64(t->cells, 5, &bytes) || t->m >= FAR || t->n >= FAR)
        return tn_raise_false(TN_ENOMEM, "tn_ter_add: a line of %lld words, the reference has %lld", (long long)t->n,
                              (long long)t->m);
    t->cost = tn__mem_get((size_t)t->cells * sizeof *t->cost);
    t->how = t->cost ? tn__mem_get((size_t)t->cells) : NULL;
    return t->how;
}

static void table_free(table *t)
{
    tn__mem_put(t->cost, (size_t)t->cells * sizeof *t->cost);
    tn__mem_put(t->how, t->how ? (size_t)t->cells : 0);
}

/* Computes rows from … n, given the rows up to from - 1 in `base`, which may be the same table. Ties: KEEP or CHANGE
 * before DELETE before INSERT. */
static int32_t distance(const table *t, const table *base, const uint32_t *words, int64_t from)
{
    for (int64_t i = from; i <= t->n; i++) {
        int64_t        lo = low(t, i), hi = high(t, i), left = i == 1 ? 0 : low(t, i - 1);
        int64_t        right = i == 1 ? t->m + 1 : high(t, i - 1), here = cell(t, i, lo);
        const int32_t *up = i == 1 ? NULL : (i == from ? base : t)->cost + cell(t, i - 1, left); /* of column left */
        int32_t       *r = t->cost + here;                                                       /* of column lo */
        uint8_t       *how = t->how + here;
        uint32_t       word = words[i - 1];
        int32_t        before = FAR; /* row i, column j - 1 */
        for (int64_t j = lo; j < hi; j++) {
            int32_t above = !up ? (int32_t)j : j >= left && j < right ? up[j - left] : FAR;
            int32_t best = FAR;
            uint8_t e = KEEP;
            if (j > 0) {
                bool    same = word == t->ref[j - 1];
                int32_t corner = !up ? (int32_t)j - 1 : j > left && j <= right ? up[j - 1 - left] : FAR;
                if (corner + !same < best) best = corner + !same, e = same ? KEEP : CHANGE;
            }
            if (above + 1 < best) best = above + 1, e = DELETE;
            if (before + 1 < best) best = before + 1, e = INSERT;
            r[j - lo] = before = best, how[j - lo] = e;
        }
    }
    return from > t->n ? base->cost[cell(t, t->n, t->m)] : t->cost[cell(t, t->n, t->m)];
}

/* Result of the edits: the word of the line aligned with each word of the reference (the last one before it if
 * missing), and running counts of the wrong words of both. */
typedef struct {
    int64_t *align;                  /* per word of the reference */
    int32_t *line_wrong, *ref_wrong; /* [k]: wrong words among the first k */
} alignment;

static void trace(const table *t, alignment *v)
{
    int64_t i = t->n, j = t->m;
    while (i > 0 || j > 0) {
        edit e = i == 0 ? INSERT : (edit)t->how[cell(t, i, j)];
        if (e == INSERT) {
            v->ref_wrong[j] = 1, v->align[j - 1] = i - 1, j--;
        } else if (e == DELETE) {
            v->line_wrong[i--] = 1;
        } else {
            v->line_wrong[i] = v->ref_wrong[j] = e == CHANGE;
            v->align[j - 1] = i - 1;
            i--, j--;
        }
    }
    v->line_wrong[0] = v->ref_wrong[0] = 0;
    for (i = 1; i <= t->n; i++) v->line_wrong[i] += v->line_wrong[i - 1];
    for (j = 1; j <= t->m; j++) v->ref_wrong[j] += v->ref_wrong[j - 1];
}

static uint32_t *copy(uint32_t *to, const uint32_t *from, int64_t first, int64_t end)
{
    if (end > first) memcpy(to, from + first, (size_t)(end - first) * sizeof *to);
    return end > first ? to + (end - first) : to;
}

/* Moves `length` words from `start` before `target`; returns the number of unchanged words at the front. */
static int64_t shift(uint32_t *to, const uint32_t *w, int64_t n, int64_t start, int64_t length, int64_t target)
{
    int64_t end = start + length;
    if (target < start) {
        to = copy(to, w, 0, target), to = copy(to, w, start, end);
        to = copy(to, w, target, start), copy(to, w, end, n);
        return target;
    }
    int64_t stop = target > end ? target : tn__min_i64(length + target, n); /* into itself: moved by `length` */
    to = copy(to, w, 0, start), to = copy(to, w, end, stop);
    to = copy(to, w, start, end), copy(to, w, stop, n);
    return start;
}

typedef struct {
    int32_t gain;
    int64_t length, start, target;
} move;

static bool better(const move *a, const move *b)
{
    if (a->gain != b->gain) return a->gain > b->gain;
    if (a->length != b->length) return a->length > b->length;
    if (a->start != b->start) return a->start < b->start;
    return a->target < b->target;
}

/* Tries the moves of w[start …] to the matching words of the reference at `place`; updates *best and counts them in
 * *tried. */
static void try_moves(const table *t, const table *spare, const uint32_t *w, uint32_t *moved, const alignment *v,
                      int32_t now, int64_t start, int64_t place, int64_t length, int *tried, move *best)
{
    if (v->line_wrong[start + length] == v->line_wrong[start]) return; /* the phrase is already correct */
    if (v->ref_wrong[place + length] == v->ref_wrong[place]) return;   /* the words at that place are already correct */
    if (start <= v->align[place] && v->align[place] < start + length) return;
    int64_t before = -1;
    for (int64_t offset = -1; offset < length; offset++) {
        int64_t target = place + offset < 0 ? 0 : v->align[place + offset] + 1;
        if (target == before) continue;
        before = target;
        int64_t same = shift(moved, w, t->n, start, length, target);
        move    m = {now - distance(spare, t, moved, same + 1), length, start, target};
        ++*tried;
        if (!best->length || better(&m, best)) *best = m;
    }
}

/* One round: the best move; length 0: none found. */
static move best_move(const table *t, const table *spare, const uint32_t *w, uint32_t *moved, const alignment *v,
                      int32_t now, int *tried)
{
    move best = {0};
    for (int64_t start = 0; start < t->n; start++) {
        int64_t first = tn__max_i64(0, start - MAX_DISTANCE), last = tn__min_i64(t->m - 1, start + MAX_DISTANCE);
        for (int64_t place = first; place <= last; place++) {
            for (int64_t length = 1; length <= MAX_SIZE; length++) {
                if (start + length > t->n || place + length > t->m) break;
                if (w[start + length - 1] != t->ref[place + length - 1]) break;
                int tried_before = *tried;
                try_moves(t, spare, w, moved, v, now, start, place, length, tried, &best);
                if (*tried > tried_before && *tried >= MAX_TRIED) return best;
            }
        }
    }
    return best;
}

static int64_t search(const table *t, const table *spare, uint32_t *w, uint32_t *moved, alignment *v)
{
    int64_t shifts = 0;
    int32_t now = distance(t, t, w, 1);
    for (int tried = 0;;) {
        trace(t, v);
        move best = best_move(t, spare, w, moved, v, now, &tried);
        if (tried >= MAX_TRIED || best.gain <= 0) return shifts + now;
        shifts++;
        shift(moved, w, t->n, best.start, best.length, best.target);
        memcpy(w, moved, (size_t)t->n * sizeof *w);
        now = distance(t, t, w, 1);
    }
}

int64_t tn__ter_edits(const tn__points *words, const tn__points *reference)
{
    int64_t n = words->n, m = reference->n, edits = -1;
    if (!n || !m) return n + m;
    table     t, spare = {0}; /* for the current line and for a tried shift */
    alignment v = {0};
    bool      done = table_new(&t, words, reference) && table_new(&spare, words, reference);
    /* one block: align[m], then wrong words [n + 1] and [m + 1], then the words twice */
    size_t bytes = (size_t)m * sizeof(int64_t) + (size_t)(3 * n + m + 2) * sizeof(int32_t);
    char  *block = done ? tn__mem_get(bytes) : NULL;
    if (block) {
        v.align = (int64_t *)(void *)block;
        v.line_wrong = (int32_t *)(void *)(v.align + m);
        v.ref_wrong = v.line_wrong + n + 1;
        uint32_t *w = (uint32_t *)(void *)(v.ref_wrong + m + 1);
        memcpy(w, words->at, (size_t)n * sizeof *w);
        edits = search(&t, &spare, w, w + n, &v);
    }
    tn__mem_put(block, bytes);
    table_free(&t);
    table_free(&spare);
    return edits;
}

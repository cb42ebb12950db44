/* glove.c — vectors from counts (Pennington et al. 2014). Co-occurrences of two words, each divided by their distance,
 * are counted once; then words w and contexts c learn by AdaGrad
 *
 *   Σ f(x) (w·c + b_w + b_c - log x)²,   f(x) = min(1, (x / x_max)^¾)
 *
 * over all counted pairs. A word's vector is w + c.
 *
 * A pair counts the same in both directions and is stored once. Words are distributed over PARTS parts, and pairs over
 * PARTS × PARTS blocks, by both words; the block of (w, c) is processed together with the reverse direction of the
 * block of (c, w). Blocks with different parts of w and of c share no row, so any number of workers can process a
 * diagonal of blocks, in any order, with the same bits; the diagonals follow each other. One turn through all diagonals
 * takes one slice of each block: with whole blocks, a row would learn from one part's words for long before the next
 * part's, which makes rare words worse. */
#include "core/base/toolbox.h"
#include "extras/vectors/train_private.h"

#include <math.h>

enum { PARTS = TN__SHARDS, SLICES = 8, MAX_SLOTS = 1 << 23 /* per table: 100 MB while pairs are counted */ };

/* Two words that co-occur, the more frequent one first. */
typedef struct {
    uint32_t low, high; /* low: index + 1; 0: a free slot */
    float    count;
} pair_count;

typedef struct {
    pair_count *slot;
    int64_t     slots, n;
    float       least; /* pairs with smaller counts have been dropped to save memory */
    uint64_t    seed;  /* seed of their order */
} counts;

typedef struct {
    int32_t low, high;
    float   log, weight;
} pair;

struct tn__pairs {
    counts    table[PARTS]; /* indexed by low */
    pair     *block[PARTS][PARTS];
    int64_t   in_block[PARTS][PARTS];
    int       diagonal, slice;
    int64_t   stride; /* floats per row of the tables below: vector, bias, padding to a cache line */
    tn__table word, context, word_squares, context_squares;
};

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static void counts_free(counts *c)
{
    tn__mem_put(c->slot, (size_t)c->slots * sizeof *c->slot);
    *c = (counts){0};
}

static uint64_t hash_of(const counts *c, const pair_count *p)
{
    return tn__splitmix(((uint64_t)p->low << 32 | p->high) ^ c->seed);
}

static pair_count *slot_of(const counts *c, const pair_count *p, uint64_t hash)
{
    for (uint64_t at = hash;; at++) {
        pair_count *slot = c->slot + (at & (uint64_t)(c->slots - 1));
        if (!slot->low || (slot->low == p->low && slot->high == p->high)) return slot;
    }
}

/* Moves the pairs to a table of `slots` slots, without those counted less than `least`. */
static bool resettle(counts *c, int64_t slots, float least)
{
    counts to = {.slots = slots, .least = least, .seed = c->seed};
    if (!(to.slot = tn__mem_zeroed((size_t)slots * sizeof *to.slot))) return false;
    for (int64_t i = 0; i < c->slots; i++) {
        const pair_count *p = c->slot + i;
        if (!p->low || p->count < least) continue;
        *slot_of(&to, p, hash_of(c, p)) = *p, to.n++;
    }
    counts_free(c);
    *c = to;
    return true;
}

static bool add_pair(counts *c, const pair_count *p, uint64_t hash)
{
    if (3 * c->n >= 2 * c->slots) {
        const bool full = c->slots >= MAX_SLOTS;
        if (!resettle(c, full ? c->slots : 2 * c->slots, full ? 2 * c->least + 0.25f : c->least)) return false;
    }
    pair_count *slot = slot_of(c, p, hash);
    if (slot->low) slot->count += p->count;
    else *slot = *p, c->n++;
    return true;
}

/* A queue of pairs for a table: nearly each slot is in distant memory and is prefetched WAIT pairs earlier. */
enum { WAIT = 32 };
typedef struct {
    counts    *to;
    pair_count pair[WAIT];
    uint64_t   hash[WAIT];
    uint64_t   n;
} queue;

static bool push(queue *q, pair_count p)
{
    const uint64_t at = q->n++ % WAIT;
    if (q->n > WAIT && !add_pair(q->to, &q->pair[at], q->hash[at])) return false;
    q->pair[at] = p, q->hash[at] = hash_of(q->to, &p);
    __builtin_prefetch(q->to->slot + (q->hash[at] & (uint64_t)(q->to->slots - 1)), 1);
    return true;
}

static bool finish(queue *q)
{
    for (uint64_t i = q->n > WAIT ? q->n - WAIT : 0; i < q->n; i++)
        if (!add_pair(q->to, &q->pair[i % WAIT], q->hash[i % WAIT])) return false;
    return true;
}

static void read_words(int64_t from, int64_t to, void *user)
{
    tn__trainer *t = user;
    for (int64_t i = from; i < to; i++) tn__shard_read(&t->shard[i]);
}

/* Counts pairs with the words before a word; the words after it count theirs with it. */
static bool count_before(queue *q, const tn__shard *s, int64_t at, int64_t window, uint32_t table)
{
    const uint32_t own = (uint32_t)s->token[at];
    for (int64_t d = 1; d <= window && d <= at && s->token[at - d] >= 0; d++) {
        const uint32_t other = (uint32_t)s->token[at - d], low = own < other ? own : other;
        if (low % PARTS != table) continue;
        const float by = own == other ? 2.0f : 1.0f; /* both directions are one pair */
        if (!push(q, (pair_count){low + 1, own ^ other ^ low, by / (float)d})) return false;
    }
    return true;
}

/* Counts the pairs of one table, in all shards. */
static void count_table(int64_t from, int64_t to, void *user)
{
    tn__trainer *t = user;
    for (int64_t table = from; table < to; table++) {
        queue q = {.to = &t->pairs->table[table]};
        for (int64_t i = 0; i < t->shards; i++) {
            const tn__shard *s = &t->shard[i];
            for (int64_t k = s->first; k < s->last; k++)
                if (s->token[k] >= 0 && !count_before(&q, s, k, t->a.window, (uint32_t)table)) return;
        }
        if (!finish(&q)) return;
    }
}

/* ---- distributing the counted pairs ------------------------------------------------------------------------------ */

/* Allocates blocks of exact size for a table's pairs. */
static bool make_blocks(struct tn__pairs *g, int64_t table)
{
    const counts *c = &g->table[table];
    int64_t      *n = g->in_block[table];
    for (const pair_count *x = c->slot, *end = x + c->slots; x < end; x++)
        if (x->low) n[x->high % PARTS]++;
    for (int k = 0; k < PARTS; k++)
        if (n[k] && !(g->block[table][k] = tn__mem_get((size_t)n[k] * sizeof(pair)))) return false;
    return true;
}

static int64_t rows_of_part(const tn__trainer *t) { return (t->words.words.n + PARTS - 1) / PARTS; }

/* The row of a word. Rows of a part are adjacent, so that the CPU's prefetcher does not touch another worker's rows. */
static int64_t row_of(const tn__trainer *t, int64_t word) { return word % PARTS * rows_of_part(t) + word / PARTS; }

/* Distributes pairs in table order, that is by a hash with the seed, so that neighbours are unrelated. */
static void distribute(int64_t from, int64_t to, void *user)
{
    const tn__trainer *t = user;
    struct tn__pairs  *g = t->pairs;
    for (int64_t table = from; table < to; table++) {
        counts *c = &g->table[table];
        int64_t n[PARTS] = {0};
        if (!make_blocks(g, table)) return;
        for (const pair_count *x = c->slot, *end = x + c->slots; x < end; x++) {
            if (!x->low) continue;
            const double  count = (double)x->count;
            const int64_t k = x->high % PARTS;
            g->block[table][k][n[k]++] =
                (pair){(int32_t)row_of(t, (int64_t)x->low - 1), (int32_t)row_of(t, x->high), (float)tn__libm_log(count),
                       (float)fmin(1, tn__libm_pow(count / t->a.x_max, 0.75))};
        }
        counts_free(c);
    }
}

static bool count_pairs(tn__trainer *t, tn__run *r)
{
    enum { SLOTS = 1 << 12 };
    for (int i = 0; i < PARTS; i++) {
        t->pairs->table[i].seed = tn__splitmix(t->a.seed);
        if (!resettle(&t->pairs->table[i], SLOTS, 0)) return false;
    }
    t->work = read_words, t->after = count_table;
    const bool on = tn__read_through(t, r);
    if (on) tn_parallel_for(PARTS, 1, distribute, t);
    return on && tn__self.error == TN_OK;
}

/* ---- learning ---------------------------------------------------------------------------------------------------- */

enum { AHEAD = 4 };

static void fetch(const struct tn__pairs *g, int64_t word, int64_t context)
{
    for (int64_t k = 0; k < g->stride; k += 16) {
        __builtin_prefetch(g->word.x + word * g->stride + k);
        __builtin_prefetch(g->word_squares.x + word * g->stride + k);
        __builtin_prefetch(g->context.x + context * g->stride + k);
        __builtin_prefetch(g->context_squares.x + context * g->stride + k);
    }
}

/* Learns the pairs with their first words as words and second as contexts; turned: reversed. */
static void learn_pairs(const tn__trainer *t, const pair *p, int64_t n, bool turned)
{
    const struct tn__pairs *g = t->pairs;
    for (int64_t i = 0; i < n; i++, p++) {
        if (i + AHEAD < n) fetch(g, turned ? p[AHEAD].high : p[AHEAD].low, turned ? p[AHEAD].low : p[AHEAD].high);
        if (turned && p->low == p->high) continue;
        const int64_t        w = (turned ? p->high : p->low) * g->stride, c = (turned ? p->low : p->high) * g->stride;
        const tn__glove_step s = {
            t->width, g->word.x + w, g->context.x + c, g->word_squares.x + w, g->context_squares.x + c,
            p->log,   p->weight};
        t->kernels->glove(&s);
    }
}

/* Learns the current slice; in the reverse direction the slice half a pass later. Otherwise a word and the same word as
 * a context would see the same pairs at the same time and make the same errors, and their sum would be no better than
 * either. */
static void learn_slice(const tn__trainer *t, int64_t low, int64_t high, bool turned)
{
    const struct tn__pairs *g = t->pairs;
    const int64_t           slice = turned ? (g->slice + SLICES / 2) % SLICES : g->slice;
    const int64_t           n = g->in_block[low][high], from = n * slice / SLICES, to = n * (slice + 1) / SLICES;
    learn_pairs(t, g->block[low][high] + from, to - from, turned);
}

static void learn_blocks(int64_t from, int64_t to, void *user)
{
    const tn__trainer      *t = user;
    const struct tn__pairs *g = t->pairs;
    for (int64_t part = from; part < to; part++) {
        const int64_t other = (part + g->diagonal) % PARTS;
        learn_slice(t, part, other, false);
        learn_slice(t, other, part, true);
    }
}

/* The authors' program sums the squares of rate · gradient starting from 1, and its biases learn at a rate of 1:
 * equivalent to a rate of 1 for all, with sums starting at 1 / rate². With sums of gradients starting from 1, the
 * vectors would soon stop learning. */
static bool make_rows(tn__trainer *t, tn__table *table, uint64_t table_number)
{
    struct tn__pairs *g = t->pairs;
    if (!tn__table_make(table, rows_of_part(t) * PARTS, g->stride, true)) return false;
    for (int64_t i = 0; i < t->words.words.n * g->stride; i++) {
        const int64_t  k = i % g->stride;
        const uint64_t random = tn__splitmix(tn__splitmix(t->a.seed ^ table_number << 60) + (uint64_t)i);
        const double   even = ((double)(random >> 40) * 0x1p-24 - 0.5) / (double)t->a.dim;
        float         *x = table->x + row_of(t, i / g->stride) * g->stride + k;
        if (table_number > 1) *x = k < t->width ? (float)(1 / (t->a.lr * t->a.lr)) : 1.0f;
        else *x = k < t->a.dim || k == t->width ? (float)even : 0.0f;
    }
    return true;
}

static void add_up(tn__trainer *t)
{
    const struct tn__pairs *g = t->pairs;
    for (int64_t i = 0; i < t->in.rows; i++) {
        const int64_t row = row_of(t, i) * g->stride;
        for (int64_t k = 0; k < t->width; k++) t->in.x[i * t->width + k] = g->word.x[row + k] + g->context.x[row + k];
    }
}

static void pairs_free(tn__trainer *t)
{
    struct tn__pairs *g = t->pairs;
    for (int i = 0; i < PARTS; i++) counts_free(&g->table[i]);
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < PARTS; k++) tn__mem_put(g->block[i][k], (size_t)g->in_block[i][k] * sizeof(pair));
    tn_drop(g->word.t), tn_drop(g->context.t), tn_drop(g->word_squares.t), tn_drop(g->context_squares.t);
}

static bool learn_epoch(tn__trainer *t, tn__run *r, const tn__saved *tables)
{
    struct tn__pairs *g = t->pairs;
    while (r->place[0] < PARTS * SLICES) {
        g->slice = (int)(r->place[0] / PARTS), g->diagonal = (int)((r->place[0] + r->epoch) % PARTS);
        tn_parallel_for(PARTS, 1, learn_blocks, t);
        r->place[0]++;
        if (t->a.stop && *t->a.stop) return tn__checkpoint_save(t, r, TN__SAVED, tables), false;
    }
    return true;
}

tn_vectors *tn__glove_train(tn__trainer *t, tn__run *r)
{
    tn_vectors       *v = NULL;
    struct tn__pairs *g = tn__scope_room(1, sizeof *g);
    if (!(t->pairs = g)) return NULL;
    memset(g, 0, sizeof *g);
    g->stride = t->width + TN__WORD_PAIRS_WIDTH;
    bool on = count_pairs(t, r) && make_rows(t, &g->word, 0) && make_rows(t, &g->context, 1) &&
              make_rows(t, &g->word_squares, 2) && make_rows(t, &g->context_squares, 3);
    const int64_t   words = r->words;
    const tn__saved tables[TN__SAVED] = {{"word", &g->word},
                                         {"context", &g->context},
                                         {"word_squares", &g->word_squares},
                                         {"context_squares", &g->context_squares}};
    r->began = tn__seconds(), r->words = 0;
    on = on && tn__checkpoint_load(t, r, TN__SAVED, tables);
    while (on && r->epoch < t->a.epochs && (on = learn_epoch(t, r, tables))) {
        r->words += words, r->epoch++, r->place[0] = 0;
        on = tn__checkpoint_save(t, r, TN__SAVED, tables);
        if (on) tn__notify(t, r, (double)r->epoch / (double)t->a.epochs);
    }
    if (on) add_up(t), v = tn__trainer_vectors(t);
    pairs_free(t);
    return v;
}

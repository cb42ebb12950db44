/* glove.c — vectors from counts (Pennington et al. 2014). How often two words stand near each other, each time divided
 * by their distance, is counted once; then words w and contexts c learn by AdaGrad
 *
 *   Σ f(x) (w·c + b_w + b_c - log x)²,   f(x) = min(1, (x / x_max)^¾)
 *
 * over all pairs that were counted. A word's vector is w + c.
 *
 * The words are dealt out to PARTS, and the pairs to PARTS × PARTS blocks, by both words. Blocks that share neither the
 * part of w nor that of c touch no row in common: so a diagonal of blocks can be learned from by as many workers as
 * there are, in any order, to the same bits; and one diagonal follows the other. */
#include "core/base/toolbox.h"
#include "data/vectors/train_private.h"

#include <math.h>

enum { PARTS = TN__SHARDS, MOST_PAIRS = 1 << 23 /* of a part: 200 MB while they are counted */ };

typedef struct {
    uint64_t *key; /* word << 32 | context, + 1; 0: free */
    float    *count;
    int64_t   slots, n;
    float     least; /* rarer pairs have been dropped, for want of room */
} counted;

typedef struct {
    int32_t word, context;
    float   log, weight;
} pair;

struct tn__pairs {
    counted   part[PARTS];
    pair     *block[PARTS][PARTS];
    int64_t   in_block[PARTS][PARTS], room[PARTS][PARTS];
    int       diagonal;
    int64_t   stride; /* of the rows below: the vector, its bias, and what fills a cache line */
    tn__table word, context, word_squares, context_squares;
};

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static void counted_free(counted *c)
{
    tn__mem_put(c->key, (size_t)c->slots * sizeof *c->key);
    tn__mem_put(c->count, (size_t)c->slots * sizeof *c->count);
    *c = (counted){0};
}

static int64_t slot_of(const counted *c, uint64_t key)
{
    for (uint64_t at = tn__splitmix(key);; at++) {
        const int64_t slot = (int64_t)(at & (uint64_t)(c->slots - 1));
        if (!c->key[slot] || c->key[slot] == key) return slot;
    }
}

/* Into a table of so many slots, without what was counted less than `least`. */
static bool resettle(counted *c, int64_t slots, float least)
{
    counted to = {.slots = slots, .least = least};
    to.key = tn__mem_zeroed((size_t)slots * sizeof *to.key), to.count = tn__mem_get((size_t)slots * sizeof *to.count);
    const bool done = to.key && to.count;
    for (int64_t i = 0; done && i < c->slots; i++) {
        if (!c->key[i] || c->count[i] < least) continue;
        const int64_t slot = slot_of(&to, c->key[i]);
        to.key[slot] = c->key[i], to.count[slot] = c->count[i], to.n++;
    }
    counted_free(done ? c : &to);
    if (done) *c = to;
    return done;
}

static bool add_pair(counted *c, int32_t word, int32_t context, float by)
{
    if (2 * c->n >= c->slots) {
        const bool full = c->n >= MOST_PAIRS;
        if (!resettle(c, full ? c->slots : c->slots ? 2 * c->slots : 1 << 12, full ? 2 * c->least + 0.25f : c->least))
            return false;
    }
    const uint64_t key = ((uint64_t)(uint32_t)word << 32 | (uint32_t)context) + 1;
    const int64_t  slot = slot_of(c, key);
    if (!c->key[slot]) c->key[slot] = key, c->count[slot] = 0, c->n++;
    c->count[slot] += by;
    return true;
}

static void read_words(int64_t from, int64_t to, void *user)
{
    tn__trainer *t = user;
    for (int64_t i = from; i < to; i++) tn__shard_read(&t->shard[i]);
}

static bool count_around(counted *c, const tn__shard *s, int64_t at, int64_t window)
{
    for (int side = -1; side <= 1; side += 2)
        for (int64_t d = 1, k = at + side; d <= window && k >= 0 && k < s->tokens && s->token[k] >= 0; d++, k += side)
            if (!add_pair(c, s->token[at], s->token[k], 1.0f / (float)d)) return false;
    return true;
}

/* The words of one part, in all shards. */
static void count_part(int64_t from, int64_t to, void *user)
{
    tn__trainer *t = user;
    for (int64_t part = from; part < to; part++)
        for (int64_t i = 0; i < t->shards; i++) {
            const tn__shard *s = &t->shard[i];
            for (int64_t k = s->first; k < s->last; k++)
                if (s->token[k] >= 0 && s->token[k] % PARTS == part &&
                    !count_around(&t->pairs->part[part], s, k, t->a.window))
                    return;
        }
}

/* ---- what was counted, dealt out --------------------------------------------------------------------------------- */

/* In the order of the table, which is that of a hash: so neighbours have nothing to do with each other. */
static void deal(int64_t from, int64_t to, void *user)
{
    const tn__trainer *t = user;
    for (int64_t part = from; part < to; part++) {
        counted *c = &t->pairs->part[part];
        for (int64_t i = 0; i < c->slots; i++) {
            if (!c->key[i]) continue;
            const uint64_t key = c->key[i] - 1;
            const double   x = (double)c->count[i];
            const pair     p = {(int32_t)(key >> 32), (int32_t)(uint32_t)key, (float)tn__libm_log(x),
                                (float)fmin(1, tn__libm_pow(x / t->a.x_max, 0.75))};
            const int64_t  q = p.context % PARTS;
            int64_t       *n = &t->pairs->in_block[part][q];
            if (!tn__grown((void *)&t->pairs->block[part][q], &t->pairs->room[part][q], *n + 1, sizeof p)) return;
            t->pairs->block[part][q][(*n)++] = p;
        }
        counted_free(c);
    }
}

static bool count_pairs(tn__trainer *t, tn__run *r)
{
    t->work = read_words, t->after = count_part;
    const bool on = tn__read_through(t, r);
    if (on) tn_parallel_for(PARTS, 1, deal, t);
    return on && tn__self.error == TN_OK;
}

/* ---- learning ---------------------------------------------------------------------------------------------------- */

enum { AHEAD = 4 };

static void fetch(const struct tn__pairs *g, const pair *p)
{
    for (int64_t k = 0; k < g->stride; k += 16) {
        __builtin_prefetch(g->word.x + p->word * g->stride + k);
        __builtin_prefetch(g->word_squares.x + p->word * g->stride + k);
        __builtin_prefetch(g->context.x + p->context * g->stride + k);
        __builtin_prefetch(g->context_squares.x + p->context * g->stride + k);
    }
}

static void learn_blocks(int64_t from, int64_t to, void *user)
{
    const tn__trainer      *t = user;
    const struct tn__pairs *g = t->pairs;
    for (int64_t part = from; part < to; part++) {
        const int64_t other = (part + g->diagonal) % PARTS, n = g->in_block[part][other];
        const pair   *p = g->block[part][other];
        for (int64_t i = 0; i < n; i++, p++) {
            if (i + AHEAD < n) fetch(g, p + AHEAD);
            const int64_t        w = p->word * g->stride, c = p->context * g->stride;
            const tn__glove_step s = {
                t->width, g->word.x + w, g->context.x + c, g->word_squares.x + w, g->context_squares.x + c,
                p->log,   p->weight,     t->rate};
            t->kernels->glove(&s);
        }
    }
}

static bool make_rows(tn__trainer *t, tn__table *table, uint64_t which)
{
    struct tn__pairs *g = t->pairs;
    table->rows = t->words.words.n;
    table->x = tn__mem_get((size_t)(table->rows * g->stride) * sizeof *table->x);
    for (int64_t i = 0; table->x && i < table->rows * g->stride; i++) {
        const int64_t  k = i % g->stride;
        const uint64_t random = tn__splitmix(tn__splitmix(t->a.seed ^ which << 60) + (uint64_t)i);
        const double   even = ((double)(random >> 40) * 0x1p-24 - 0.5) / (double)t->a.dim;
        table->x[i] = which > 1 ? 1.0f : k < t->a.dim || k == t->width ? (float)even : 0.0f;
    }
    return table->x != NULL;
}

static void add_up(tn__trainer *t)
{
    const struct tn__pairs *g = t->pairs;
    for (int64_t i = 0; i < t->in.rows; i++)
        for (int64_t k = 0; k < t->width; k++)
            t->in.x[i * t->width + k] = g->word.x[i * g->stride + k] + g->context.x[i * g->stride + k];
}

static void pairs_free(tn__trainer *t)
{
    struct tn__pairs *g = t->pairs;
    tn__table *const  tables[] = {&g->word, &g->context, &g->word_squares, &g->context_squares};
    for (int i = 0; i < PARTS; i++) {
        counted_free(&g->part[i]);
        for (int k = 0; k < PARTS; k++) tn__mem_put(g->block[i][k], (size_t)g->room[i][k] * sizeof(pair));
    }
    for (int i = 0; i < 4; i++) tn__mem_put(tables[i]->x, (size_t)(tables[i]->rows * g->stride) * sizeof *tables[i]->x);
    tn__mem_put(g, sizeof *g);
    t->pairs = NULL;
}

static bool learn_epoch(tn__trainer *t, tn__run *r, const tn__saved tables[TN__SAVED])
{
    struct tn__pairs *g = t->pairs;
    for (int64_t d = r->place[0]; d < PARTS; d++) {
        g->diagonal = (int)((d + r->epoch) % PARTS);
        tn_parallel_for(PARTS, 1, learn_blocks, t);
        r->place[0] = d + 1;
        if (t->a.stop && *t->a.stop) return tn__checkpoint_save(t, r, tables), false;
    }
    return true;
}

tn_vectors *tn__glove_train(tn__trainer *t, tn__run *r)
{
    tn_vectors *v = NULL;
    if (!(t->pairs = tn__mem_zeroed(sizeof *t->pairs))) return NULL;
    struct tn__pairs *g = t->pairs;
    g->stride = t->width + TN__PAIRS_WIDTH;
    bool on = count_pairs(t, r) && make_rows(t, &g->word, 0) && make_rows(t, &g->context, 1) &&
              make_rows(t, &g->word_squares, 2) && make_rows(t, &g->context_squares, 3);
    const int64_t   words = r->words, n = g->word.rows * g->stride;
    const tn__saved tables[TN__SAVED] = {
        {g->word.x, n}, {g->context.x, n}, {g->word_squares.x, n}, {g->context_squares.x, n}};
    r->began = tn__seconds(), r->words = 0, t->rate = (float)t->a.lr;
    on = on && tn__checkpoint_load(t, r, tables);
    while (on && r->epoch < t->a.epochs && (on = learn_epoch(t, r, tables))) {
        r->words += words, r->epoch++, r->place[0] = 0;
        on = tn__checkpoint_save(t, r, tables);
        if (on) tn__tell(t, r, (double)r->epoch / (double)t->a.epochs);
    }
    if (on) add_up(t), v = tn__trainer_vectors(t);
    pairs_free(t);
    return v;
}

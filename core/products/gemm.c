/* gemm.c — products of matrices, in the manner of BLIS.
 *
 * The result is cut into micro-tiles of MR rows (a strip) by NV vectors of columns (a panel), which a kernel keeps in
 * registers while k runs. A task is a block of strips and panels; tasks run in parallel and share nothing but what they
 * read. In a task k is cut into blocks of kc, so that the block of b [kc, columns] stays in the second cache and the
 * strip of a [MR, kc] in the first. A kernel reads a element by element, so a lies well as it is; b it reads by vectors
 * along a row: dense rows are read in place, anything else is packed into panels first, turned on the way, and
 * zero-filled to whole vectors.
 *
 * Each element of c is one chain of multiply-adds, p = 0 … k-1, started from 0: from one block of k to the next the
 * sums travel through memory in full precision, and alpha and beta come once, at the end. So the bits depend on k, the
 * dtype and the kernels alone, and every choice below (what is packed, where the cuts are, which operand's rows run
 * along the vectors) is a matter of speed. */
#include "core/products/gemm_job.h"
#include "core/base/parallel.h"
#include "core/products/packed.h"

#include <string.h>

enum {
    SMALL_BYTES = 8 << 10, /* of scratch that lies on the stack */
    NEAR_BYTES = 2 << 20,  /* a b that a second cache holds, or nearly */
    GROUP = 16,            /* strips in a task of share_a */
    SET_BYTES = 4096       /* rows so far apart, or a multiple, fall into the same set of the first cache */
};

typedef tn__gemm_job job;

/* One matrix of the batch. */
typedef struct {
    const char *a, *b;
    char       *c, *bias, *pre, *old;
} place;

/* A block of a or b to dense rows of width units, zero-filled. across: the terms of the sums lie along its rows. */
static void pack(const job *q, bool across, int64_t rows, int64_t cols, int64_t width, const char *from, int64_t row,
                 int64_t col, char *to)
{
    const tn__pack_step s = {rows, cols, width, from, row, col, to, across, 0};
    if (q->g.dtype == TN_BF16) q->kn->pack_bf16(&s);
    else q->kn->pack(&s);
}

/* How many terms there are in kc steps, of which the last may have half a pair. */
static int64_t terms(const job *q, int64_t k0, int64_t kc) { return tn__min_i64(kc * q->pair, q->g.k - k0 * q->pair); }

/* So many steps that the first cache holds their lines, even if rows so far apart all fall into the same sets. */
static int64_t few_steps(const job *q, int64_t row) { return row * q->in % SET_BYTES == 0 ? 8 / q->pair : 32; }

/* Asks for a block whose rows are dense: ahead of its packing, as no prefetcher follows short pieces of rows; or where
 * it will be written, as what is not in a cache takes as long to come as a tile takes to compute. */
static inline void ask_for(const char *from, int64_t rows, int64_t row_bytes, int64_t bytes, bool write)
{
    for (int64_t r = 0; r < rows; r++, from += row_bytes)
        for (int64_t i = 0; i < bytes; i += 64)
            if (write) __builtin_prefetch(from + i, 1);
            else __builtin_prefetch(from + i);
}

/* Steps [k0, k0 + kc) of panels [p0, p1) of b to memory, panel by panel, zero-filled to whole vectors. Dense rows are
 * gone through a few at a time for all panels, so that a line of the cache that two panels share is fetched once. */
static void pack_b(const job *q, const char *b, int64_t k0, int64_t kc, int64_t p0, int64_t p1, char *to)
{
    const tn__gemm_call *g = &q->g;
    const int64_t        at_once = g->b_col == 1 && p1 - p0 > 1 ? few_steps(q, g->b_row) : kc;
    for (int64_t i = 0; i < kc; i += at_once) {
        const int64_t steps = tn__min_i64(at_once, kc - i);
        char         *panel = to;
        if (i + at_once < kc) {
            const int64_t col = tn__panel_at(q, p0), cols = tn__min_i64(tn__panel_at(q, p1), g->n) - col;
            const char   *next = b + ((k0 + i + at_once) * q->pair * g->b_row + col) * q->in;
            ask_for(next, terms(q, k0 + i + at_once, at_once), g->b_row * q->in, cols * q->in, false);
        }
        for (int64_t p = p0; p < p1; p++) {
            const int64_t col = tn__panel_at(q, p), width = tn__panel_at(q, p + 1) - col;
            const char   *from = b + ((k0 + i) * q->pair * g->b_row + col * g->b_col) * q->in;
            pack(q, false, terms(q, k0 + i, steps), tn__min_i64(width, g->n - col), width, from, g->b_row, g->b_col,
                 panel + i * width * q->size);
            panel += kc * width * q->size;
        }
    }
}

/* Are strips s … s + 3 whole ones of dense columns of bf16, so that a kernel of pairs can pack them in one go? */
static bool four_strips(const job *q, int64_t s, int64_t s1)
{
    return q->pair == 2 && q->g.dtype == TN_BF16 && q->g.a_row == 1 && q->kn->mr == 8 && s + 4 <= s1 &&
           tn__strip_at(q, s + 4) - tn__strip_at(q, s) == 32;
}

/* Steps [k0, k0 + kc) of strips [s0, s1) of a to memory. Dense rows stay rows, anything else becomes dense columns. */
static void pack_a(const job *q, const char *a, int64_t k0, int64_t kc, int64_t s0, int64_t s1, char *to)
{
    const tn__gemm_call *g = &q->g;
    const int64_t        at_once = q->a_columns ? few_steps(q, g->a_col) : kc;
    for (int64_t i = 0; i < kc; i += at_once) {
        const int64_t steps = tn__min_i64(at_once, kc - i), t = terms(q, k0 + i, steps);
        if (q->a_columns && i + at_once < kc && g->a_row == 1) {
            const int64_t row = tn__strip_at(q, s0), rows = tn__strip_at(q, s1) - row;
            const char   *next = a + (row + (k0 + i + at_once) * q->pair * g->a_col) * q->in;
            ask_for(next, terms(q, k0 + i + at_once, at_once), g->a_col * q->in, rows * q->in, false);
        }
        for (int64_t s = s0; s < s1; s++) {
            const int64_t row = tn__strip_at(q, s), mr = tn__strip_at(q, s + 1) - row;
            const char   *from = a + (row * g->a_row + (k0 + i) * q->pair * g->a_col) * q->in;
            char         *strip = to + (row - tn__strip_at(q, s0)) * kc * q->size;
            if (q->a_columns && four_strips(q, s, s1)) {
                const tn__pack_step four = {t, 32, 32, from, g->a_col, 1, strip + i * mr * q->size, false, mr * kc};
                q->kn->pack_bf16(&four);
                s += 3;
            } else if (q->a_columns) pack(q, false, t, mr, mr, from, g->a_col, g->a_row, strip + i * mr * q->size);
            else pack(q, true, mr, t, kc + TN_GEMM_PAD, from, g->a_row, g->a_col, strip);
        }
    }
}

/* Where a kernel finds a strip of a. */
static void place_a(const job *q, const char *a, int64_t k0, int64_t row, const char *packed, tn__gemm_step *step)
{
    const tn__gemm_call *g = &q->g;
    if (q->pack_a) step->a = packed;
    else step->a = a + (row * g->a_row + k0 * q->pair * g->a_col) * q->in;
    if (!q->pack_a) step->a_row = g->a_row / q->pair, step->a_col = q->pair == 1 ? g->a_col : 1;
    else if (q->a_columns) step->a_row = 1, step->a_col = step->mr;
    else step->a_row = step->k + TN_GEMM_PAD, step->a_col = 1;
}

/* The next strip of a, while this one is at work: rows, or columns that lie so far apart that no prefetcher follows. */
static void ask_for_strip(const job *q, const char *a, int64_t k0, int64_t kc, int64_t s)
{
    const tn__gemm_call *g = &q->g;
    const int64_t        row = tn__strip_at(q, s), rows = tn__strip_at(q, s + 1) - row, some = terms(q, k0, kc);
    a += (row * g->a_row + k0 * q->pair * g->a_col) * q->in;
    if (g->a_col == 1) ask_for(a, rows, g->a_row * q->in, some * q->in, false);
    else if (g->a_row == 1 && g->a_col * q->in > SET_BYTES) ask_for(a, some, g->a_col * q->in, rows * q->in, false);
}

/* The block of c that begins at (row, col). */
static void finish(const job *q, const place *m, int64_t row, int64_t col, int64_t rows, int64_t cols, void *acc,
                   int64_t acc_row)
{
    const tn__gemm_call *g = &q->g;
    tn__epilogue_step    s = {.rows = rows, .cols = cols, .acc = acc, .acc_row = acc_row};
    s.alpha = g->alpha, s.beta = g->beta, s.act = g->act, s.bf16 = g->ctype == TN_BF16;
    s.c = m->c + (row * g->c_row + col * g->c_col) * q->out, s.c_row = g->c_row, s.c_col = g->c_col;
    if (m->bias) s.bias = m->bias + (row * g->bias.row + col * g->bias.col) * q->out;
    if (m->pre) s.pre = m->pre + (row * g->pre.row + col * g->pre.col) * q->out;
    if (m->old) s.old = m->old + (row * g->old.row + col * g->old.col) * q->out;
    s.bias_row = g->bias.row, s.bias_col = g->bias.col, s.pre_row = g->pre.row, s.pre_col = g->pre.col;
    s.old_row = g->old.row, s.old_col = g->old.col;
    q->kn->epilogue(&s);
}

/* Of a b that is kept packed, what comes after panels [p0, p1) up to step k1: these from there, else those of the next
 * task. It is asked for while all strips but the first are at work, whose lines lie in the second cache. */
static const char *next_kept(const job *q, int64_t k1, int64_t p0, int64_t p1)
{
    if (k1 == q->steps && p1 == q->panel.parts) return NULL;
    const int64_t k = k1 < q->steps ? k1 : 0, kc = tn__min_i64(q->kc, q->steps - k);
    return q->shared + (k * q->vectors * q->kn->lanes + tn__panel_at(q, k ? p0 : p1) * kc) * q->size;
}

/* Strips [s0, s1) by panels [p0, p1) of one matrix. */
static void tile_task(const job *q, char *slot, const place *m, int64_t s0, int64_t s1, int64_t p0, int64_t p1)
{
    const tn__gemm_call *g = &q->g;
    char *const packed = slot, *const strip = packed + q->b_bytes, *const sums = strip + q->a_bytes;
    char *const   tile = sums + q->sum_bytes;
    const int64_t col0 = tn__panel_at(q, p0), row0 = tn__strip_at(q, s0), all = tn__panel_at(q, p1) - col0;
    for (int64_t k0 = 0; k0 < q->steps; k0 += q->kc) {
        const int64_t kc = tn__min_i64(q->kc, q->steps - k0);
        const bool    last = k0 + kc == q->steps;
        if (q->pack_b && !q->share_b) pack_b(q, m->b, k0, kc, p0, p1, packed);
        else if (!q->pack_b && col0 + all > g->n) pack_b(q, m->b, k0, kc, p1 - 1, p1, packed); /* only the last */
        const char *const next = q->kept ? next_kept(q, k0 + kc, p0, p1) : NULL;
        for (int64_t s = s0; s < s1; s++) {
            const int64_t row = tn__strip_at(q, s);
            tn__gemm_step step = {.mr = (int)(tn__strip_at(q, s + 1) - row), .k = kc};
            const int64_t group = s - (s - s0) % q->a_strips;
            if (q->pack_a && !q->share_a && s == group)
                pack_a(q, m->a, k0, kc, s, tn__min_i64(s + q->a_strips, s1), strip);
            place_a(q, m->a, k0, row,
                    q->share_a ? q->shared_a + (k0 * g->m + row * kc) * q->size
                               : strip + (row - tn__strip_at(q, group)) * kc * q->size,
                    &step);
            if (!q->pack_a && s + 1 < s1) ask_for_strip(q, m->a, k0, kc, s + 1);
            for (int64_t p = p0; p < p1; p++) {
                const int64_t col = tn__panel_at(q, p), width = tn__panel_at(q, p + 1) - col;
                const bool    part = col + width > g->n, whole = last && !part;
                const bool    narrow = whole && q->narrows && step.mr == q->kn->mr;
                const bool    straight = narrow || (whole && q->plain);
                char *const   sum = sums + ((row - row0) * all + (col - col0)) * q->size;
                char *const   to = m->c + (row * g->c_row + col * g->c_col) * q->out;
                step.nv = (int)(width / q->kn->lanes);
                step.b_row = width;
                if (q->share_b) step.b = q->shared + (k0 * q->vectors * q->kn->lanes + col * kc) * q->size;
                else if (q->pack_b) step.b = packed + (col - col0) * kc * q->size;
                else if (part) step.b = packed;
                else step.b = m->b + (k0 * g->b_row + col) * q->in, step.b_row = g->b_row;
                const int64_t asked = ((s - s0 - 1) * (p1 - p0) + p - p0) * 64; /* for each step of k */
                step.prefetch = next && asked >= 0 && asked < all * q->size ? next + asked * kc : NULL;
                step.from = k0 ? sum : NULL, step.from_row = all;
                step.to_bf16 = narrow;
                step.to = !last ? sum : straight ? to : tile;
                step.to_row = !last ? all : straight ? g->c_row : width;
                if (last && g->c_col == 1) ask_for(to, step.mr, g->c_row * q->out, width * q->out, true);
                if (last && m->pre && g->pre.col == 1)
                    ask_for(m->pre + (row * g->pre.row + col) * q->out, step.mr, g->pre.row * q->out, width * q->out,
                            true);
                q->kn->tile(&step);
                if (last && !straight) finish(q, m, row, col, step.mr, tn__min_i64(width, g->n - col), tile, width);
            }
        }
    }
    if (g->k > 0) return;
    if (!g->bias.at && !g->pre.at && !g->act) { /* no sum, so that beta · -0 is -0 */
        const int64_t cols = tn__min_i64(tn__panel_at(q, p1), g->n) - col0;
        finish(q, m, row0, col0, tn__strip_at(q, s1) - row0, cols, NULL, 0);
        return;
    }
    for (int64_t s = s0; s < s1; s++) {
        const int64_t row = tn__strip_at(q, s), rows = tn__strip_at(q, s + 1) - row;
        for (int64_t p = p0; p < p1; p++) {
            const int64_t col = tn__panel_at(q, p), width = tn__panel_at(q, p + 1) - col;
            memset(tile, 0, (size_t)(rows * width * q->size));
            finish(q, m, row, col, rows, tn__min_i64(width, g->n - col), tile, width);
        }
    }
}

/* One row of c. Here a panel is as wide as its sums fit the first cache, and b is read once, as it lies. */
static void row_task(const job *q, char *slot, const place *m, int64_t p0, int64_t p1)
{
    const tn__gemm_call *g = &q->g;
    const int64_t        lanes = q->kn->lanes;
    char *const sums = slot, *const packed = slot + q->sum_bytes;
    for (int64_t p = p0; p < p1; p++) {
        const int64_t col = tn__panel_at(q, p), end = tn__min_i64(tn__panel_at(q, p + 1), g->n);
        const int64_t whole = (end - col) / lanes * lanes, rest = end - col - whole;
        tn__gemv_step s = {.n = whole, .k = g->k, .a = m->a, .a_col = g->a_col, .y = sums, .first = true};
        s.beyond_l2 = g->n * g->k > NEAR_BYTES / q->in;
        s.b = m->b + col * g->b_col * q->in, s.b_row = g->b_row, s.b_col = g->b_col;
        if (whole) q->kn->row(&s);
        s.y = sums + whole * q->size, s.n = lanes;
        s.b = packed, s.b_row = lanes, s.b_col = 1;
        for (int64_t k0 = 0; rest && k0 < g->k; k0 += q->kc) { /* less than a vector is left: filled up */
            s.k = tn__min_i64(q->kc, g->k - k0);
            pack(q, false, s.k, rest, lanes, m->b + (k0 * g->b_row + (col + whole) * g->b_col) * q->in, g->b_row,
                 g->b_col, packed);
            s.a = m->a + k0 * g->a_col * q->in, s.first = k0 == 0;
            q->kn->row(&s);
        }
        finish(q, m, 0, col, 1, end - col, sums, 0);
    }
}

/* The same where b is kept packed: panels of whole vectors, one behind the other. */
static void kept_row_task(const job *q, char *sums, const place *m, int64_t p0, int64_t p1)
{
    const tn__gemm_call *g = &q->g;
    for (int64_t p = p0; p < p1; p++) {
        const int64_t col = tn__panel_at(q, p), width = tn__panel_at(q, p + 1) - col;
        tn__gemv_step s = {.n = width, .k = g->k, .a = m->a, .a_col = g->a_col, .y = sums, .first = true};
        s.b = q->shared + col * q->steps * q->size, s.b_row = width, s.b_col = 1;
        q->kn->row(&s);
        finish(q, m, 0, col, 1, tn__min_i64(width, g->n - col), sums, 0);
    }
}

static void tasks(int64_t from, int64_t to, void *user)
{
    const job           *q = user;
    const tn__gemm_call *g = &q->g;
    char                *slot = q->slots + (q->spread ? (size_t)tn__worker() * q->slot_bytes : 0);
    const int64_t        each = q->strip_tasks.parts * q->panel_tasks.parts;
    for (int64_t t = from; t < to; t++) {
        int64_t matrix = each == 1 ? t : t / each, block = t - matrix * each, ao = 0, bo = 0, co = 0;
        int64_t side[3] = {0};
        for (int d = g->dims - 1; d >= 0; d--) {
            const int64_t i = matrix % g->batch[d];
            matrix /= g->batch[d];
            ao += i * g->a_batch[d], bo += i * g->b_batch[d], co += i * g->c_batch[d];
            side[0] += i * g->bias.batch[d], side[1] += i * g->pre.batch[d], side[2] += i * g->old.batch[d];
        }
        place m = {(const char *)g->a + ao * q->in,
                   (const char *)g->b + bo * q->in,
                   (char *)g->c + co * q->out,
                   g->bias.at,
                   g->pre.at,
                   g->old.at};
        if (m.bias) m.bias += side[0] * q->out;
        if (m.pre) m.pre += side[1] * q->out;
        if (m.old) m.old += side[2] * q->out;
        const int64_t i = block / q->panel_tasks.parts, j = block % q->panel_tasks.parts;
        const int64_t p0 = tn__cut_at(&q->panel_tasks, j), p1 = tn__cut_at(&q->panel_tasks, j + 1);
        if (q->row && q->kept) kept_row_task(q, slot, &m, p0, p1);
        else if (q->row) row_task(q, slot, &m, p0, p1);
        else tile_task(q, slot, &m, tn__cut_at(&q->strip_tasks, i), tn__cut_at(&q->strip_tasks, i + 1), p0, p1);
    }
}

static void share_b(int64_t from, int64_t to, void *user)
{
    const job *q = user;
    for (int64_t i = from; i < to; i++) {
        const int64_t k0 = i / q->panel_tasks.parts * q->kc, j = i % q->panel_tasks.parts,
                      kc = tn__min_i64(q->kc, q->steps - k0);
        const int64_t p0 = tn__cut_at(&q->panel_tasks, j), p1 = tn__cut_at(&q->panel_tasks, j + 1);
        char         *at = q->shared + (k0 * q->vectors * q->kn->lanes + tn__panel_at(q, p0) * kc) * q->size;
        pack_b(q, q->g.b, k0, kc, p0, p1, at);
    }
}

static void share_a(int64_t from, int64_t to, void *user)
{
    const job    *q = user;
    const int64_t groups = tn__ceil_div(q->strip.parts, GROUP);
    for (int64_t i = from; i < to; i++) {
        const int64_t k0 = i / groups * q->kc, kc = tn__min_i64(q->kc, q->steps - k0), s0 = i % groups * GROUP;
        char         *at = q->shared_a + (k0 * q->g.m + tn__strip_at(q, s0) * kc) * q->size;
        pack_a(q, q->g.a, k0, kc, s0, tn__min_i64(s0 + GROUP, q->strip.parts), at);
    }
}

/* Packs what all tasks share. */
static void share(job *q, int64_t blocks, void (*pack_block)(int64_t from, int64_t to, void *user))
{
    if (q->spread) tn_parallel_for(blocks, 1, pack_block, q);
    else pack_block(0, blocks, q);
}

/* Finds b packed, or packs it to be kept. NULL: neither; raised if there is no memory. */
static tn__packed *kept_b(job *q, bool *fresh)
{
    const tn__gemm_call *g = &q->g;
    const tn__packed_key key = {g->b, g->n, g->k, g->b_row, g->b_col, q->kn, q->row};
    tn__packed          *p = tn__packed_find(g->storage, &key, tn__gemm_kept_bytes(q), fresh);
    if (p) tn__gemm_plan_kept(q);
    return p;
}

bool tn__gemm_run(const tn__gemm_call *call)
{
    job         q = {0};
    tn__packed *kept = NULL;
    bool        fresh = false;
    for (int d = 0; d < call->dims; d++)
        if (call->batch[d] == 0) return true;
    if (call->m == 0 || call->n == 0) return true;
    tn__gemm_plan(&q, call);
    if (q.keeps && !(kept = kept_b(&q, &fresh)) && tn__self.error != TN_OK) return false;
    const size_t      b_shared = q.share_b && !kept ? tn__lines(q.vectors * q.kn->lanes * q.steps, q.size) : 0;
    const size_t      a_shared = q.share_a ? tn__lines(q.g.m * q.steps, q.size) : 0;
    const size_t      bytes = q.slot_bytes * (q.spread ? (size_t)tn_threads() : 1) + a_shared + b_shared;
    _Alignas(64) char local[SMALL_BYTES];
    q.shared = bytes <= sizeof local ? local : tn__mem_get(bytes);
    if (!q.shared) return tn__packed_drop(kept), false;
    char *const own = q.shared;
    q.shared_a = q.shared + b_shared, q.slots = q.shared_a + a_shared;
    const int64_t blocks = q.kc ? tn__ceil_div(q.steps, q.kc) : 0;
    if (kept) q.shared = kept->data;
    if (fresh || b_shared) share(&q, blocks * q.panel_tasks.parts, share_b);
    if (fresh) tn__packed_publish(q.g.storage, kept);
    if (a_shared) share(&q, blocks * tn__ceil_div(q.strip.parts, GROUP), share_a);
    if (q.spread) tn_parallel_for(q.tasks, q.grain, tasks, &q);
    else tasks(0, q.tasks, &q);
    if (bytes > sizeof local) tn__mem_put(own, bytes);
    tn__packed_drop(kept);
    return true;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static tn__gemm_call call_of(const tn_tensor *a, const tn_tensor *b, const tn_tensor *c)
{
    const tn__layout *l = &c->l;
    const int         nd = l->shape.n, an = a->l.shape.n, bn = b->l.shape.n;
    tn__gemm_call     g = {.dtype = a->dtype, .ctype = c->dtype, .alpha = 1, .dims = nd - 2};
    g.m = l->shape.d[nd - 2], g.n = l->shape.d[nd - 1], g.k = a->l.shape.d[an - 1];
    g.a = tn__ptr(a), g.a_row = a->l.stride[an - 2], g.a_col = a->l.stride[an - 1];
    g.b = tn__ptr(b), g.b_row = b->l.stride[bn - 2], g.b_col = b->l.stride[bn - 1];
    g.c = tn__ptr(c), g.c_row = l->stride[nd - 2], g.c_col = l->stride[nd - 1];
    for (int d = 0; d < g.dims; d++) {
        const int da = d - nd + an, db = d - nd + bn; /* the dims of a and b that stand under c's */
        g.batch[d] = l->shape.d[d], g.c_batch[d] = l->stride[d];
        g.a_batch[d] = da >= 0 && a->l.shape.d[da] != 1 ? a->l.stride[da] : 0;
        g.b_batch[d] = db >= 0 && b->l.shape.d[db] != 1 ? b->l.stride[db] : 0;
    }
    return g;
}

void tn__gemm(double alpha, const tn_tensor *a, const tn_tensor *b, double beta, tn_tensor *c)
{
    if (tn__blocked()) return;
    tn__gemm_call g = call_of(a, b, c);
    g.alpha = alpha, g.beta = beta;
    tn__gemm_run(&g);
}

static tn__gemm_side side_of(const tn_tensor *t, const tn_tensor *c)
{
    tn__gemm_side s = {0};
    if (!t) return s;
    const tn__layout l = tn__layout_expand(&t->l, c->l.shape);
    const int        nd = l.shape.n;
    s.at = tn__ptr(t), s.row = l.stride[nd - 2], s.col = l.stride[nd - 1];
    for (int d = 0; d < nd - 2; d++) s.batch[d] = l.stride[d];
    return s;
}

void tn__gemm_with(const tn_tensor *a, const tn_tensor *b, tn_tensor *c, const tn__epilogue *e)
{
    if (tn__blocked()) return;
    tn__gemm_call g = call_of(a, b, c);
    g.storage = b->storage->borrowed ? NULL : b->storage; /* borrowed memory may change when nobody says so */
    g.bias = side_of(e->bias, c), g.pre = side_of(e->pre, c), g.old = side_of(e->more, c);
    g.act = e->act, g.beta = e->more ? 1 : 0;
    tn__gemm_run(&g);
}

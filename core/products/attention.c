/* attention.c — softmax(scale · q kᵀ + masks) v without the matrix in the middle.
 *
 * The scores exist for a block of QUERIES by KEYS at a time. A row keeps a maximum m, a sum l and an unfinished result
 * o; a block of keys with scores s moves them on, and at the end y = o / l:
 *
 *   m' = max(m, max s),   p = exp(s - m'),   f = exp(m - m'),   l' = f l + Σ p,   o' = f o + p v
 *
 * What is left for the backward is m and 1 / l, so that w = exp(s - m) / l can be made again, block by block:
 *
 *   gv = wᵀ gy,   gw = gy vᵀ,   gs = w (gw - gy·y),   gq = scale · gs k,   gk = scale · gsᵀ q
 *
 * (Σ w gw over a row is gy·y.) With dropout p v is (p d) v, gv = (w d)ᵀ gy and gw = (gy vᵀ) d, d being 0 or 1 / (1-p).
 *
 * A block of keys is packed once for many blocks of queries: k turned, all of it dense, in rows that do not fall into
 * the same sets of the caches. The products are those of the GEMM's micro-kernels, one chain of multiply-adds an
 * element, in the order of the keys or of the queries. Blocks of keys are counted from key 0 and always as large, and
 * what a row may not see is exactly 0 in the chain. So a row's bits depend on the keys that it sees alone: not on how
 * many follow them, the rows beside it, or who computes it. How the work is cut is a matter of speed:
 *
 *   forward    a task is a matrix (of the batch and the heads) and some of its queries
 *   backward   a matrix, where there are enough of them; else some keys, for gk and gv, or some queries, for gq, at the
 *              price of making w and gw twice
 *
 * Where the CPU has dot products of pairs, bf16 goes through them: a chain then takes two terms at a time, and weights
 * and gs, which are made in f32, are rounded to bf16 before they are multiplied; sums stay in f32.
 *
 * What is blocked may hold anything: a weight of 0 selects, as in gemm_select.c. Mostly all is finite, and then the
 * plain products are right. If it were not, the results would show it, and the task is done again: with zeros in place
 * of what is not finite, and its terms added for those weights that are not 0.
 *
 * Instantiated by including itself for f32 and f64. */
#ifndef TN_REAL
#include "core/products/attention_block.h"
#include "core/base/parallel.h"

/* Of one matrix, for the backward: which queries and keys, and whose gradients. */
typedef struct {
    int64_t t0, t1, s0, s1;
    bool    of_queries, of_keys;
} part;

/* What this task will write, and the next matrix's will read. */
static void send_all(const job *q, errand *e, int64_t i, const part *p)
{
    const tn__attention_call *c = q->c;
    *e = (errand){.n = 0};
    send(e, q->back ? c->gq : c->y, i, p->t0, p->t1 - p->t0);
    send(e, c->gk, i, p->s0, p->s1 - p->s0), send(e, c->gv, i, p->s0, p->s1 - p->s0);
    if (++i == q->matrices) return;
    send(e, c->q, i, p->t0, p->t1 - p->t0), send(e, c->gy, i, p->t0, p->t1 - p->t0);
    send(e, c->k, i, p->s0, p->s1 - p->s0), send(e, c->v, i, p->s0, p->s1 - p->s0);
    if (q->back) send(e, c->y, i, p->t0, p->t1 - p->t0);
}

#define TN_TEMPLATE "core/products/attention.c"
#include "core/real.h"

/* ---- how the work is cut ----------------------------------------------------------------------------------------- */

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static int64_t packed_row(int64_t n, int64_t size) { return (ceil_div(n * size, LINE) | 1) * LINE / size; }

static void tasks_f32(int64_t from, int64_t to, void *user) { run_f32(user, from, to); }
static void tasks_f64(int64_t from, int64_t to, void *user) { run_f64(user, from, to); }

static void attend(const tn__attention_call *c, bool back)
{
    const int               n = c->q->l.shape.n;
    const bool              wide = c->q->dtype == TN_F64;
    const int64_t           size = wide ? 8 : 4;
    const tn__kernel_table *table = c->kernels ? c->kernels : tn__kernels();
    job                     q = {.c = c, .back = back, .matrices = 1, .table = table};
    if (tn__blocked()) return;
    q.kn = wide ? table->attention_f64 : table->attention_f32, q.gemm = wide ? table->gemm_f64 : table->gemm_f32;
    if (c->q->dtype == TN_BF16 && table->gemm_bf16->pair == 2 && (!back || c->gy->dtype == TN_BF16))
        q.pairs = table->gemm_bf16;
    q.queries = c->q->l.shape.d[n - 2], q.keys = c->k->l.shape.d[n - 2];
    q.dim = c->q->l.shape.d[n - 1], q.out = c->v->l.shape.d[n - 1];
    for (int d = 0; d < n - 2; d++) q.matrices *= c->q->l.shape.d[d];
    if (q.matrices == 0 || (q.queries == 0 && !back)) return;
    q.d_row = packed_row(q.dim, size), q.e_row = packed_row(q.out, size);
    q.key_row = packed_row(tn__min_i64(KEYS, q.keys), size);

    /* in seconds, roughly */
    const double pairs = (double)q.matrices * (double)q.queries * (double)q.keys * (c->causal ? 0.5 : 1);
    const double time = pairs * (double)(q.dim + q.out + 16) * (back ? 2.5e-11 : 1e-11);
    const int    threads = tn_threads();
    q.spread = threads > 1 && time > 8e-6;
    int64_t units = tn__max_i64(1, q.spread ? TASKS / q.matrices : 1); /* of a matrix, at least */
    q.whole = back && (!q.spread || ceil_div(q.matrices, threads) * threads * 5 <= q.matrices * 7);
    const int64_t length = back ? tn__max_i64(q.queries, q.keys) : q.queries;
    if (!back) units = tn__max_i64(units, ceil_div(q.queries, QUERIES_MOST));
    q.chunk = q.whole ? length : ceil_div(ceil_div(length, units), KEYS) * KEYS;
    if (!back) q.chunk = ceil_div(ceil_div(length, units), QUERIES) * QUERIES;
    q.chunk = tn__max_i64(q.chunk, 1), q.chunks = tn__max_i64(1, ceil_div(length, q.chunk));
    q.most = back ? q.queries : tn__min_i64(q.chunk, q.queries);

    const int64_t tasks = q.matrices * q.chunks * (back && !q.whole ? 2 : 1);
    q.slot_bytes = wide ? lay_f64(&q, NULL, &(space_f64){0}) : lay_f32(&q, NULL, &(space_f32){0});
    const size_t bytes = q.slot_bytes * (q.spread ? (size_t)threads : 1);
    if (!(q.slots = tn__mem_get(bytes))) return;
    const int64_t grain = (int64_t)(4e-6 * (double)tasks / (time + 1e-9)) + 1;
    if (q.spread) tn_parallel_for(tasks, grain, wide ? tasks_f64 : tasks_f32, &q);
    else if (wide) run_f64(&q, 0, tasks);
    else run_f32(&q, 0, tasks);
    tn__mem_put(q.slots, bytes);
}

void tn__attend(const tn__attention_call *c) { attend(c, false); }
void tn__attend_back(const tn__attention_call *c) { attend(c, true); }

#else /* ============================================================================== one number type */

static bool TN_(forward)(const job *q, const TN_(space) * w, int64_t i, int64_t t0, int64_t t1, bool careful)
{
    const tn__attention_call *c = q->c;
    const matrix              mask[2] = {matrix_of(c->mask[0], i), matrix_of(c->mask[1], i)};
    const matrix              query = matrix_of(c->q, i), key = matrix_of(c->k, i), value = matrix_of(c->v, i);
    const matrix              y = matrix_of(c->y, i), stat = matrix_of(c->stat, i);
    const int64_t             rows = t1 - t0, end = c->causal ? tn__min_i64(q->keys, c->past + t1) : q->keys;
    const TN_(lines) qs = q->pairs ? TN_(pairs_of)(&query, t0, rows, q->dim, w->q_pairs, q->d_row / 2)
                                   : TN_(pack)(q, &query, t0, rows, q->dim, w->q, q->d_row, NULL);
    bool first = true, odd = false; /* first: of the blocks of keys that count */
    for (int64_t r = 0; r < rows; r++) w->max[r] = -(TN_REAL)INFINITY, w->sum[r] = 0;
    for (int64_t j = 0; j < end; j += KEYS) {
        block      b = {.j = j, .keys = tn__min_i64(KEYS, q->keys - j)};
        const bool common = TN_(common)(q, w, mask, &b);
        if (b.keys == 0) continue;
        TN_(turned_of)(q, &key, j, b.keys, q->dim, w->kt, w->clean, q->d_row);
        const TN_(lines) v = TN_(terms_of)(q, &value, j, b.keys, q->out, w->v, q->e_row, careful ? &odd : NULL);
        for (b.t = t0; b.t < t1; b.t += QUERIES) {
            b.rows = tn__min_i64(QUERIES, t1 - b.t);
            const int64_t      r = b.t - t0;
            TN_REAL *const     o = w->o + r * q->e_row;
            tn__attention_step s = {.rows = b.rows, .keys = b.keys, .scale = c->scale, .s = w->s, .s_row = q->key_row};
            if (!in_sight(q, &b)) { /* nor are keys behind these */
                if (first) memset(o, 0, (size_t)(b.rows * q->e_row) * sizeof *o);
                continue;
            }
            s.first = b.first, s.step = b.step, s.max = w->max + r, s.sum = w->sum + r, s.factor = w->factor;
            TN_(scores)(q, w, &b, q->dim, qs, r, w->kt, w->s);
            TN_(masks)(q, w, mask, common, &b, &s);
            q->kn->weigh(&s);
            if (!first) q->kn->times(b.rows, q->out, o, q->e_row, w->factor, 1);
            if (!c->drop.all) TN_(dropout)(q, w, i, &b, w->s, NULL);
            TN_(over_keys)(q, w, &b, q->out, w->s, v, o, q->e_row, first, odd);
        }
        first = false;
    }
    if (first) memset(w->o, 0, (size_t)(rows * q->e_row) * sizeof(TN_REAL));
    for (int64_t r = 0; r < rows; r++) {
        TN_REAL *to = entry(&stat, t0 + r, 0);
        to[0] = w->sum[r] == 0 ? 0 : w->max[r], to[1] = w->sum[r] = w->sum[r] == 0 ? 0 : 1 / w->sum[r];
    }
    return TN_(put)(q, &y, t0, rows, q->out, w->o, q->e_row, w->sum, 1);
}

/* What queries [t0, t1) and keys [s0, s1) have to do with each other: gradients of those queries, or of those keys, or
 * of both. */
static bool TN_(backward)(const job *q, const TN_(space) * w, int64_t i, const part *p, bool careful)
{
    const tn__attention_call *c = q->c;
    const matrix              mask[2] = {matrix_of(c->mask[0], i), matrix_of(c->mask[1], i)};
    const matrix              query = matrix_of(c->q, i), key = matrix_of(c->k, i), value = matrix_of(c->v, i);
    const matrix              y = matrix_of(c->y, i), stat = matrix_of(c->stat, i), cot = matrix_of(c->gy, i);
    const matrix              gq = matrix_of(c->gq, i), gk = matrix_of(c->gk, i), gv = matrix_of(c->gv, i);
    const matrix              gs = matrix_of(c->gs, i);
    const TN_REAL             scale = (TN_REAL)c->scale, one = 1;
    const bool                to_q = p->of_queries && gq.p, to_k = p->of_keys && gk.p, to_v = p->of_keys && gv.p;
    int64_t                   t0 = p->t0;
    if (c->causal && !p->of_queries) /* those before see none of the keys */
        t0 = tn__min_i64(p->t1, tn__max_i64(t0, (p->s0 - c->past) / QUERIES * QUERIES));
    const int64_t rows = p->t1 - t0;
    bool          odd_q = false, odd_gy = false, odd_k = false, finite = true, started = false;
    const TN_(lines) q_terms = TN_(terms_of)(q, &query, t0, rows, q->dim, w->q, q->d_row, careful ? &odd_q : NULL);
    const TN_(lines) gy_terms = TN_(terms_of)(q, &cot, t0, rows, q->out, w->gy, q->e_row, careful ? &odd_gy : NULL);
    const TN_(lines) qs = q->pairs ? TN_(pairs_of)(&query, t0, rows, q->dim, w->q_pairs, q->d_row / 2) : q_terms;
    const TN_(lines) gy = q->pairs ? TN_(pairs_of)(&cot, t0, rows, q->out, w->gy_pairs, q->e_row / 2) : gy_terms;
    for (int64_t t = t0, n; t < p->t1; t += n) {
        n = tn__min_i64(QUERIES, p->t1 - t);
        TN_(turn)(q, &y, t, n, q->out, w->clean, TURNED, w->s, q->e_row);
        if (q->pairs) TN_(turn)(q, &cot, t, n, q->out, w->clean + q->out * TURNED, TURNED, w->s, q->e_row);
        else q->kn->turn(n, q->out, gy.p + (t - t0) * gy.row, gy.row, w->clean + q->out * TURNED, TURNED);
        q->kn->dots(n, q->out, w->clean, w->clean + q->out * TURNED, TURNED, w->part + t - t0);
        for (int64_t r = t - t0; r < t - t0 + n; r++) {
            const TN_REAL *from = entry(&stat, t0 + r, 0);
            w->max[r] = from[0], w->sum[r] = from[1];
        }
    }
    for (int64_t j = p->s0; j < p->s1; j += KEYS) {
        block         b = {.j = j, .keys = tn__min_i64(KEYS, q->keys - j)};
        const int64_t all = b.keys;
        const bool    common = TN_(common)(q, w, mask, &b);
        bool          first = true;
        TN_(lines) k = {NULL, 0};
        if (c->causal && c->past + p->t1 <= j) b.keys = 0;
        if (b.keys) {
            TN_(turned_of)(q, &key, j, b.keys, q->dim, w->kt, w->clean, q->d_row);
            TN_(turned_of)(q, &value, j, b.keys, q->out, w->vt, w->clean, q->e_row);
            if (to_q) k = TN_(terms_of)(q, &key, j, b.keys, q->dim, w->k, q->d_row, careful ? &odd_k : NULL);
        }
        for (b.t = t0; b.t < p->t1 && b.keys; b.t += QUERIES) {
            b.rows = tn__min_i64(QUERIES, p->t1 - b.t);
            const int64_t      r = b.t - t0;
            TN_REAL *const     o = w->o + r * q->d_row;
            tn__attention_step s = {.rows = b.rows, .keys = b.keys, .scale = c->scale, .s = w->s, .s_row = q->key_row};
            if (!in_sight(q, &b)) {
                if (to_q && !started) memset(o, 0, (size_t)(b.rows * q->d_row) * sizeof *o);
                continue;
            }
            s.first = b.first, s.step = b.step, s.g = w->g;
            s.max = w->max + r, s.sum = w->sum + r, s.part = w->part + r;
            TN_(scores)(q, w, &b, q->dim, qs, r, w->kt, w->s);
            TN_(scores)(q, w, &b, q->out, gy, r, w->vt, w->g);
            TN_(masks)(q, w, mask, common, &b, &s);
            if (!c->drop.all) TN_(dropout)(q, w, i, &b, NULL, w->keep), s.keep = w->keep;
            q->kn->slope(&s);
            for (int64_t n = 0; p->of_queries && gs.p && n < b.rows; n++)
                memcpy(entry(&gs, b.t + n, j), w->g + n * q->key_row, (size_t)b.keys * sizeof(TN_REAL));
            if (to_v) TN_(over_queries)(q, w, &b, q->out, w->s, gy_terms, r, w->gv, q->e_row, first, odd_gy);
            if (to_k) TN_(over_queries)(q, w, &b, q->dim, w->g, q_terms, r, w->gk, q->d_row, first, odd_q);
            if (to_q) TN_(over_keys)(q, w, &b, q->dim, w->g, k, o, q->d_row, !started, odd_k);
            first = false;
        }
        const int64_t zeros = first ? 0 : b.keys; /* from there on, no query has seen them */
        if (to_k) memset(w->gk + zeros * q->d_row, 0, (size_t)((all - zeros) * q->d_row) * sizeof(TN_REAL));
        if (to_v) memset(w->gv + zeros * q->e_row, 0, (size_t)((all - zeros) * q->e_row) * sizeof(TN_REAL));
        if (to_k) finite = TN_(put)(q, &gk, j, all, q->dim, w->gk, q->d_row, &scale, 0) && finite;
        if (to_v) finite = TN_(put)(q, &gv, j, all, q->out, w->gv, q->e_row, &one, 0) && finite;
        started = started || b.keys;
    }
    if (to_q && !started) memset(w->o, 0, (size_t)(rows * q->d_row) * sizeof(TN_REAL));
    if (to_q) finite = TN_(put)(q, &gq, t0, rows, q->dim, w->o, q->d_row, &scale, 0) && finite;
    return finite;
}

static void TN_(run)(const job *q, int64_t from, int64_t to)
{
    TN_(space) w;
    errand e;
    TN_(lay)(q, q->slots + (q->spread ? (size_t)tn__worker() * q->slot_bytes : 0), &w);
    w.ahead = &e;
    for (int64_t k = 0; q->back && !q->c->drop.all && k < tn__min_i64(KEYS, q->keys); k++) w.ones[k] = 1;
    const bool halves = q->back && !q->whole;
    for (int64_t n = from; n < to; n++) {
        const int64_t task = halves ? n / 2 : n, i = task / q->chunks, c = task % q->chunks;
        /* from both ends: with .causal the later queries have more to do, and neighbours go to one thread */
        const int64_t start = (c % 2 ? q->chunks - 1 - c / 2 : c / 2) * q->chunk, end = start + q->chunk;
        part          p = {0, q->queries, 0, q->keys, !halves || n % 2 == 0, !halves || n % 2 != 0};
        if (!q->back || (halves && p.of_queries)) {
            p.t0 = tn__min_i64(start, q->queries), p.t1 = tn__min_i64(end, q->queries);
            if (p.t0 == p.t1) continue;
        } else if (halves) {
            p.s0 = tn__min_i64(start, q->keys), p.s1 = tn__min_i64(end, q->keys);
            if (p.s0 == p.s1) continue;
        }
        send_all(q, &e, i, &p);
        /* what is not finite shows in the result; then once more, with a closer look */
        if (!q->back && !TN_(forward)(q, &w, i, p.t0, p.t1, false)) TN_(forward)(q, &w, i, p.t0, p.t1, true);
        else if (q->back && !TN_(backward)(q, &w, i, &p, false)) TN_(backward)(q, &w, i, &p, true);
    }
}

#endif

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
static void prefetch_operands(const attention_job *job, prefetch_queue *e, int64_t i, const part *p)
{
    const tn__attention_call *c = job->c;
    *e = (prefetch_queue){.n = 0};
    prefetch_add(e, job->back ? c->gq : c->y, i, p->t0, p->t1 - p->t0);
    prefetch_add(e, c->gk, i, p->s0, p->s1 - p->s0), prefetch_add(e, c->gv, i, p->s0, p->s1 - p->s0);
    if (++i == job->matrices) return;
    prefetch_add(e, c->q, i, p->t0, p->t1 - p->t0), prefetch_add(e, c->gy, i, p->t0, p->t1 - p->t0);
    prefetch_add(e, c->k, i, p->s0, p->s1 - p->s0), prefetch_add(e, c->v, i, p->s0, p->s1 - p->s0);
    if (job->back) prefetch_add(e, c->y, i, p->t0, p->t1 - p->t0);
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
    attention_job           job = {.c = c, .back = back, .matrices = 1, .table = table};
    if (tn__blocked()) return;
    job.kn = wide ? table->attention_f64 : table->attention_f32, job.gemm = wide ? table->gemm_f64 : table->gemm_f32;
    if (c->q->dtype == TN_BF16 && table->gemm_bf16->pair == 2 && (!back || c->gy->dtype == TN_BF16))
        job.pairs = table->gemm_bf16;
    job.queries = c->q->l.shape.d[n - 2], job.keys = c->k->l.shape.d[n - 2];
    job.dim = c->q->l.shape.d[n - 1], job.out = c->v->l.shape.d[n - 1];
    for (int d = 0; d < n - 2; d++) job.matrices *= c->q->l.shape.d[d];
    if (job.matrices == 0 || (job.queries == 0 && !back)) return;
    job.d_row = packed_row(job.dim, size), job.e_row = packed_row(job.out, size);
    job.key_row = packed_row(tn__min_i64(KEYS, job.keys), size);

    /* in seconds, roughly */
    const double pairs = (double)job.matrices * (double)job.queries * (double)job.keys * (c->causal ? 0.5 : 1);
    const double time = pairs * (double)(job.dim + job.out + 16) * (back ? 2.5e-11 : 1e-11);
    const int    threads = tn_threads();
    job.spread = threads > 1 && time > 8e-6;
    int64_t units = tn__max_i64(1, job.spread ? TASKS / job.matrices : 1); /* of a matrix, at least */
    job.whole = back && (!job.spread || ceil_div(job.matrices, threads) * threads * 5 <= job.matrices * 7);
    const int64_t length = back ? tn__max_i64(job.queries, job.keys) : job.queries;
    if (!back) units = tn__max_i64(units, ceil_div(job.queries, QUERIES_MOST));
    job.chunk = job.whole ? length : ceil_div(ceil_div(length, units), KEYS) * KEYS;
    if (!back) job.chunk = ceil_div(ceil_div(length, units), QUERIES) * QUERIES;
    job.chunk = tn__max_i64(job.chunk, 1), job.chunks = tn__max_i64(1, ceil_div(length, job.chunk));
    job.most = back ? job.queries : tn__min_i64(job.chunk, job.queries);

    const int64_t tasks = job.matrices * job.chunks * (back && !job.whole ? 2 : 1);
    job.slot_bytes = wide ? lay_out_f64(&job, NULL, &(workspace_f64){0}) : lay_out_f32(&job, NULL, &(workspace_f32){0});
    const size_t bytes = job.slot_bytes * (job.spread ? (size_t)threads : 1);
    if (!(job.slots = tn__mem_get(bytes))) return;
    const int64_t grain = (int64_t)(4e-6 * (double)tasks / (time + 1e-9)) + 1;
    if (job.spread) tn_parallel_for(tasks, grain, wide ? tasks_f64 : tasks_f32, &job);
    else if (wide) run_f64(&job, 0, tasks);
    else run_f32(&job, 0, tasks);
    tn__mem_put(job.slots, bytes);
}

void tn__attend(const tn__attention_call *c) { attend(c, false); }
void tn__attend_back(const tn__attention_call *c) { attend(c, true); }

#else /* ============================================================================== one number type */

static bool TN_(forward)(const attention_job *job, const TN_(workspace) * ws, int64_t i, int64_t t0, int64_t t1,
                         bool careful)
{
    const tn__attention_call *c = job->c;
    const matrix              mask[2] = {matrix_of(c->mask[0], i), matrix_of(c->mask[1], i)};
    const matrix              query = matrix_of(c->q, i), key = matrix_of(c->k, i), value = matrix_of(c->v, i);
    const matrix              y = matrix_of(c->y, i), stat = matrix_of(c->stat, i);
    const int64_t             rows = t1 - t0, end = c->causal ? tn__min_i64(job->keys, c->past + t1) : job->keys;
    const TN_(lines) qs = job->pairs ? TN_(pairs_of)(&query, t0, rows, job->dim, ws->q_pairs, job->d_row / 2)
                                     : TN_(pack)(job, &query, t0, rows, job->dim, ws->q, job->d_row, NULL);
    bool first = true, nonfinite = false; /* first: of the blocks of keys that count */
    for (int64_t r = 0; r < rows; r++) ws->max[r] = -(TN_REAL)INFINITY, ws->sum[r] = 0;
    for (int64_t j = 0; j < end; j += KEYS) {
        block      b = {.j = j, .keys = tn__min_i64(KEYS, job->keys - j)};
        const bool common = TN_(common)(job, ws, mask, &b);
        if (b.keys == 0) continue;
        TN_(transposed_terms)(job, &key, j, b.keys, job->dim, ws->kt, ws->clean, job->d_row);
        const TN_(lines) v =
            TN_(terms_of)(job, &value, j, b.keys, job->out, ws->v, job->e_row, careful ? &nonfinite : NULL);
        for (b.t = t0; b.t < t1; b.t += QUERIES) {
            b.rows = tn__min_i64(QUERIES, t1 - b.t);
            const int64_t      r = b.t - t0;
            TN_REAL *const     o = ws->o + r * job->e_row;
            tn__attention_step s = {
                .rows = b.rows, .keys = b.keys, .scale = c->scale, .s = ws->s, .s_row = job->key_row};
            if (!block_in_sight(job, &b)) { /* nor are keys behind these */
                if (first) memset(o, 0, (size_t)(b.rows * job->e_row) * sizeof *o);
                continue;
            }
            s.first = b.first, s.step = b.step, s.max = ws->max + r, s.sum = ws->sum + r, s.factor = ws->factor;
            TN_(scores)(job, ws, &b, job->dim, qs, r, ws->kt, ws->s);
            TN_(masks)(job, ws, mask, common, &b, &s);
            job->kn->softmax(&s);
            if (!first) job->kn->scale_rows(b.rows, job->out, o, job->e_row, ws->factor, 1);
            if (!c->drop.all) TN_(dropout)(job, ws, i, &b, ws->s, NULL);
            TN_(over_keys)(job, ws, &b, job->out, ws->s, v, o, job->e_row, first, nonfinite);
        }
        first = false;
    }
    if (first) memset(ws->o, 0, (size_t)(rows * job->e_row) * sizeof(TN_REAL));
    for (int64_t r = 0; r < rows; r++) {
        TN_REAL *to = entry(&stat, t0 + r, 0);
        to[0] = ws->sum[r] == 0 ? 0 : ws->max[r], to[1] = ws->sum[r] = ws->sum[r] == 0 ? 0 : 1 / ws->sum[r];
    }
    return TN_(store_rows)(job, &y, t0, rows, job->out, ws->o, job->e_row, ws->sum, 1);
}

/* What queries [t0, t1) and keys [s0, s1) have to do with each other: gradients of those queries, or of those keys, or
 * of both. */
static bool TN_(backward)(const attention_job *job, const TN_(workspace) * ws, int64_t i, const part *p, bool careful)
{
    const tn__attention_call *c = job->c;
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
    bool          nonfinite_q = false, nonfinite_gy = false, nonfinite_k = false, finite = true, started = false;
    const TN_(lines) q_terms =
        TN_(terms_of)(job, &query, t0, rows, job->dim, ws->q, job->d_row, careful ? &nonfinite_q : NULL);
    const TN_(lines) gy_terms =
        TN_(terms_of)(job, &cot, t0, rows, job->out, ws->gy, job->e_row, careful ? &nonfinite_gy : NULL);
    const TN_(lines) qs = job->pairs ? TN_(pairs_of)(&query, t0, rows, job->dim, ws->q_pairs, job->d_row / 2) : q_terms;
    const TN_(lines) gy = job->pairs ? TN_(pairs_of)(&cot, t0, rows, job->out, ws->gy_pairs, job->e_row / 2) : gy_terms;
    for (int64_t t = t0, n; t < p->t1; t += n) {
        n = tn__min_i64(QUERIES, p->t1 - t);
        TN_(transpose)(job, &y, t, n, job->out, ws->clean, TRANSPOSED_ROW, ws->s, job->e_row);
        if (job->pairs) TN_(transpose)
        (job, &cot, t, n, job->out, ws->clean + job->out * TRANSPOSED_ROW, TRANSPOSED_ROW, ws->s, job->e_row);
        else job->kn->transpose(n, job->out, gy.p + (t - t0) * gy.row, gy.row, ws->clean + job->out * TRANSPOSED_ROW,
                                TRANSPOSED_ROW);
        job->kn->dot_columns(n, job->out, ws->clean, ws->clean + job->out * TRANSPOSED_ROW, TRANSPOSED_ROW,
                             ws->part + t - t0);
        for (int64_t r = t - t0; r < t - t0 + n; r++) {
            const TN_REAL *from = entry(&stat, t0 + r, 0);
            ws->max[r] = from[0], ws->sum[r] = from[1];
        }
    }
    for (int64_t j = p->s0; j < p->s1; j += KEYS) {
        block         b = {.j = j, .keys = tn__min_i64(KEYS, job->keys - j)};
        const int64_t all = b.keys;
        const bool    common = TN_(common)(job, ws, mask, &b);
        bool          first = true;
        TN_(lines) k = {NULL, 0};
        if (c->causal && c->past + p->t1 <= j) b.keys = 0;
        if (b.keys) {
            TN_(transposed_terms)(job, &key, j, b.keys, job->dim, ws->kt, ws->clean, job->d_row);
            TN_(transposed_terms)(job, &value, j, b.keys, job->out, ws->vt, ws->clean, job->e_row);
            if (to_q)
                k = TN_(terms_of)(job, &key, j, b.keys, job->dim, ws->k, job->d_row, careful ? &nonfinite_k : NULL);
        }
        for (b.t = t0; b.t < p->t1 && b.keys; b.t += QUERIES) {
            b.rows = tn__min_i64(QUERIES, p->t1 - b.t);
            const int64_t      r = b.t - t0;
            TN_REAL *const     o = ws->o + r * job->d_row;
            tn__attention_step s = {
                .rows = b.rows, .keys = b.keys, .scale = c->scale, .s = ws->s, .s_row = job->key_row};
            if (!block_in_sight(job, &b)) {
                if (to_q && !started) memset(o, 0, (size_t)(b.rows * job->d_row) * sizeof *o);
                continue;
            }
            s.first = b.first, s.step = b.step, s.g = ws->g;
            s.max = ws->max + r, s.sum = ws->sum + r, s.part = ws->part + r;
            TN_(scores)(job, ws, &b, job->dim, qs, r, ws->kt, ws->s);
            TN_(scores)(job, ws, &b, job->out, gy, r, ws->vt, ws->g);
            TN_(masks)(job, ws, mask, common, &b, &s);
            if (!c->drop.all) TN_(dropout)(job, ws, i, &b, NULL, ws->keep), s.keep = ws->keep;
            job->kn->softmax_back(&s);
            for (int64_t n = 0; p->of_queries && gs.p && n < b.rows; n++)
                memcpy(entry(&gs, b.t + n, j), ws->g + n * job->key_row, (size_t)b.keys * sizeof(TN_REAL));
            if (to_v)
                TN_(over_queries)(job, ws, &b, job->out, ws->s, gy_terms, r, ws->gv, job->e_row, first, nonfinite_gy);
            if (to_k)
                TN_(over_queries)(job, ws, &b, job->dim, ws->g, q_terms, r, ws->gk, job->d_row, first, nonfinite_q);
            if (to_q) TN_(over_keys)(job, ws, &b, job->dim, ws->g, k, o, job->d_row, !started, nonfinite_k);
            first = false;
        }
        const int64_t zeros = first ? 0 : b.keys; /* from there on, no query has seen them */
        if (to_k) memset(ws->gk + zeros * job->d_row, 0, (size_t)((all - zeros) * job->d_row) * sizeof(TN_REAL));
        if (to_v) memset(ws->gv + zeros * job->e_row, 0, (size_t)((all - zeros) * job->e_row) * sizeof(TN_REAL));
        if (to_k) finite = TN_(store_rows)(job, &gk, j, all, job->dim, ws->gk, job->d_row, &scale, 0) && finite;
        if (to_v) finite = TN_(store_rows)(job, &gv, j, all, job->out, ws->gv, job->e_row, &one, 0) && finite;
        started = started || b.keys;
    }
    if (to_q && !started) memset(ws->o, 0, (size_t)(rows * job->d_row) * sizeof(TN_REAL));
    if (to_q) finite = TN_(store_rows)(job, &gq, t0, rows, job->dim, ws->o, job->d_row, &scale, 0) && finite;
    return finite;
}

static void TN_(run)(const attention_job *job, int64_t from, int64_t to)
{
    TN_(workspace) ws;
    prefetch_queue e;
    TN_(lay_out)(job, job->slots + (job->spread ? (size_t)tn__worker() * job->slot_bytes : 0), &ws);
    ws.ahead = &e;
    for (int64_t k = 0; job->back && !job->c->drop.all && k < tn__min_i64(KEYS, job->keys); k++) ws.ones[k] = 1;
    const bool halves = job->back && !job->whole;
    for (int64_t n = from; n < to; n++) {
        const int64_t task = halves ? n / 2 : n, i = task / job->chunks, c = task % job->chunks;
        /* from both ends: with .causal the later queries have more to do, and neighbours go to one thread */
        const int64_t start = (c % 2 ? job->chunks - 1 - c / 2 : c / 2) * job->chunk, end = start + job->chunk;
        part          p = {0, job->queries, 0, job->keys, !halves || n % 2 == 0, !halves || n % 2 != 0};
        if (!job->back || (halves && p.of_queries)) {
            p.t0 = tn__min_i64(start, job->queries), p.t1 = tn__min_i64(end, job->queries);
            if (p.t0 == p.t1) continue;
        } else if (halves) {
            p.s0 = tn__min_i64(start, job->keys), p.s1 = tn__min_i64(end, job->keys);
            if (p.s0 == p.s1) continue;
        }
        prefetch_operands(job, &e, i, &p);
        /* what is not finite shows in the result; then once more, with a closer look */
        if (!job->back && !TN_(forward)(job, &ws, i, p.t0, p.t1, false)) TN_(forward)(job, &ws, i, p.t0, p.t1, true);
        else if (job->back && !TN_(backward)(job, &ws, i, &p, false)) TN_(backward)(job, &ws, i, &p, true);
    }
}

#endif

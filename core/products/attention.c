/* attention.c — softmax(scale · q kᵀ + masks) v without storing the matrix of scores. With a cap c the scores before
 * the masks are c · tanh(scale · q kᵀ / c).
 *
 * The scores exist for a block of QUERIES by KEYS at a time. A row keeps a maximum m, a sum l and a partial result o; a
 * block of keys with scores s updates them, and at the end y = o / l:
 *
 *   m' = max(m, max s),   p = exp(s - m'),   f = exp(m - m'),   l' = f l + Σ p,   o' = f o + p v
 *
 * The backward keeps only m and 1 / l, from which w = exp(s - m) / l is recomputed, block by block:
 *
 *   gv = wᵀ gy,   gw = gy vᵀ,   gs = w (gw - gy·y),   gq = scale · gs k,   gk = scale · gsᵀ q
 *
 * (Σ w gw over a row is gy·y.) With dropout p v is (p d) v, gv = (w d)ᵀ gy and gw = (gy vᵀ) d, d being 0 or 1 / (1-p).
 *
 * A block of keys is packed once for many blocks of queries: k transposed, all of it dense, in rows that do not map to
 * the same cache sets. The products are those of the GEMM's micro-kernels: one chain of multiply-adds an element, in
 * the order of the keys or of the queries. Blocks of keys are counted from key 0 and have a fixed size, and keys that a
 * row may not attend to contribute exactly 0 to the chain. So a row's bits depend only on the keys it attends to: not
 * on the number of keys after them, the other rows, or the thread that computes it. How the work is cut only affects
 * speed:
 *
 *   forward    a task is a matrix (of the batch and the heads) and some of its queries
 *   backward   a matrix, if there are enough of them; otherwise some keys, for gk and gv, or some queries, for gq, at
 *              the price of computing w and gw twice
 *
 * Blocks that are hidden as a whole by a causal mask or a window are skipped: a window of w costs T · (w + KEYS).
 *
 * If the CPU has products of bf16, bf16 uses them: a chain then takes two terms at a time, or with AMX groups of 32,
 * counted from the first key or query of the sequence, and weights and gs, which are computed in f32, are rounded to
 * bf16 before they are multiplied; sums stay in f32.
 *
 * Blocked elements may have any value: a weight of 0 selects, as in gemm_finite.c. Usually everything is finite, and
 * then the plain products are correct. Otherwise the results would contain NaN or infinity, and the task is repeated:
 * with zeros in place of the non-finite elements, whose terms are then added for the weights that are not 0.
 *
 * Instantiated by including itself for f32 and f64. */
#ifndef TN__REAL
#include "core/products/attention_products.h"
#include "core/base/parallel.h"
#include "core/products/cost.h"

/* A task's part of a matrix: queries [t0, t1), keys [s0, s1), and, for the backward, the gradients to compute. */
typedef struct {
    int64_t i, m;             /* the matrix: of all, and of those of its sequence */
    int64_t queries, keys;    /* its numbers of rows, */
    int64_t q_first, k_first; /* and the first ones */
    int64_t t0, t1, s0, s1;
    bool    of_queries, of_keys;
    bool    careful; /* some elements are not finite */
} part;

/* Task n's part of a matrix. */
static part part_of(const attention_job *job, int64_t n)
{
    const bool    halves = job->back && !job->whole; /* one task computes the queries' gradients, another the keys' */
    const int64_t task = halves ? n / 2 : n, c = task % job->chunks;
    /* from both ends: with .causal later queries take more work, and neighbours go to one thread */
    const int64_t start = (c % 2 ? job->chunks - 1 - c / 2 : c / 2) * job->chunk, end = start + job->chunk;
    const int64_t i = task / job->chunks,
                  sequence = i / job->each, *const q = job->c->offsets, *const k = job->c->key_offsets;
    part p = {.i = i, .m = i, .queries = job->queries, .keys = job->keys};
    if (q) {
        p.m = i % job->each;
        p.q_first = q[sequence], p.queries = q[sequence + 1] - p.q_first;
        p.k_first = k[sequence], p.keys = k[sequence + 1] - p.k_first;
    }
    p.t1 = p.queries, p.s1 = p.keys;
    p.of_queries = !halves || n % 2 == 0, p.of_keys = !halves || n % 2 != 0;
    if (!job->back || (halves && p.of_queries))
        p.t0 = tn__min_i64(start, p.queries), p.t1 = tn__min_i64(end, p.queries);
    else if (halves) p.s0 = tn__min_i64(start, p.keys), p.s1 = tn__min_i64(end, p.keys);
    return p;
}

static matrix queries_of(const tn_tensor *t, const part *p) { return rows_from(matrix_of(t, p->m), p->q_first); }
static matrix keys_of(const tn_tensor *t, const part *p) { return rows_from(matrix_of(t, p->m), p->k_first); }

/* Prefetches the memory that this task will write and the next matrix's task will read. */
static void prefetch_operands(const attention_job *job, prefetch_queue *queue, const part *p)
{
    const tn__attention_call *c = job->c;
    const int64_t             m = p->m, queries = p->t1 - p->t0, keys = p->s1 - p->s0;
    const int64_t             t0 = p->q_first + p->t0, s0 = p->k_first + p->s0;
    *queue = (prefetch_queue){.n = 0};
    prefetch_add(queue, job->back ? c->gq : c->y, m, t0, queries);
    prefetch_add(queue, c->gk, m, s0, keys), prefetch_add(queue, c->gv, m, s0, keys);
    if (m + 1 == job->each) return;
    prefetch_add(queue, c->q, m + 1, t0, queries), prefetch_add(queue, c->gy, m + 1, t0, queries);
    prefetch_add(queue, c->k, m + 1, s0, keys), prefetch_add(queue, c->v, m + 1, s0, keys);
    if (job->back) prefetch_add(queue, c->y, m + 1, t0, queries);
}

#define TN__TEMPLATE "core/products/attention.c"
#include "core/real.h"

/* ---- how the work is cut ----------------------------------------------------------------------------------------- */

static int64_t packed_row(int64_t n, int64_t size) { return (tn__ceil_div(n * size, LINE) | 1) * LINE / size; }

static void tasks_f32(int64_t from, int64_t to, void *user) { run_f32(user, from, to); }
static void tasks_f64(int64_t from, int64_t to, void *user) { run_f64(user, from, to); }

int64_t tn__longest_sequence(const int64_t *offsets, int64_t sequences)
{
    int64_t most = 0;
    for (int64_t i = 0; i < sequences; i++) most = tn__max_i64(most, offsets[i + 1] - offsets[i]);
    return most;
}

/* The number of pairs of a query and a key, if all see each other. */
static double all_pairs(const attention_job *job)
{
    const tn__attention_call *c = job->c;
    double                    sum = 0;
    if (!c->offsets) return (double)job->matrices * (double)job->queries * (double)job->keys;
    for (int64_t i = 0; i < c->sequences; i++)
        sum += (double)(c->offsets[i + 1] - c->offsets[i]) * (double)(c->key_offsets[i + 1] - c->key_offsets[i]);
    return (double)job->each * sum;
}

/* Sets the kernels and sizes. */
static void set_up(attention_job *job, const tn__attention_call *c)
{
    const tn__kernel_table *table = c->kernels ? c->kernels : tn__kernels();
    const int               n = c->q->l.shape.n;
    const bool              wide = c->q->dtype == TN_F64;
    const int64_t           size = wide ? 8 : 4;
    job->table = table;
    job->kn = wide ? table->attention_f64 : table->attention_f32, job->gemm = wide ? table->gemm_f64 : table->gemm_f32;
    if (c->k->dtype == TN_BF16 && (!job->back || c->gy->dtype == TN_BF16)) job->pairs = table->gemm_pairs;
    job->queries = c->q->l.shape.d[n - 2], job->keys = c->k->l.shape.d[n - 2];
    job->dim = c->q->l.shape.d[n - 1], job->out = c->v->l.shape.d[n - 1];
    for (int d = 0; d < n - 2; d++) job->matrices *= c->q->l.shape.d[d];
    job->each = job->matrices;
    if (c->offsets) job->matrices *= c->sequences, job->queries = tn__longest_sequence(c->offsets, c->sequences);
    if (c->offsets) job->keys = tn__longest_sequence(c->key_offsets, c->sequences);
    job->d_row = packed_row(job->dim, size), job->e_row = packed_row(job->out, size);
    job->key_row = packed_row(tn__min_i64(KEYS, job->keys), size);
}

/* Cuts the work into *tasks tasks; grain: number of tasks passed to a thread at a time. */
static void cut_work(attention_job *job, int64_t *tasks, int64_t *grain)
{
    const bool    causal = job->c->causal, back = job->back;
    const double  seen = (double)job->keys * (causal ? 0.5 : 1), window = (double)job->c->window * (causal ? 1 : 2);
    const double  share = window > 0 && window < seen ? window / (double)job->keys : causal ? 0.5 : 1;
    const double  pairs = all_pairs(job) * share;
    const double  time = pairs * (double)(job->dim + job->out + 16) * (back ? 2.5 : 1) * tn__cost_term;
    const int     threads = tn_threads();
    const int64_t length = back ? tn__max_i64(job->queries, job->keys) : job->queries;
    job->parallel = threads > 1 && tn__worth_sharing(time);
    job->whole = back && (!job->parallel || tn__ceil_div(job->matrices, threads) * threads * 5 <= job->matrices * 7);
    int64_t pieces = tn__max_i64(1, job->parallel ? TASKS / job->matrices : 1); /* of a matrix; minimum */
    if (!back) pieces = tn__max_i64(pieces, tn__ceil_div(job->queries, QUERIES_MOST));
    const int64_t unit = back ? KEYS : QUERIES;
    job->chunk = job->whole ? length : tn__ceil_div(tn__ceil_div(length, pieces), unit) * unit;
    job->chunk = tn__max_i64(job->chunk, 1), job->chunks = tn__max_i64(1, tn__ceil_div(length, job->chunk));
    job->most = back ? job->queries : tn__min_i64(job->chunk, job->queries);
    *tasks = job->matrices * job->chunks * (back && !job->whole ? 2 : 1);
    *grain = job->parallel ? tn__cost_grain(time, *tasks, threads) : 1;
}

static void attend(const tn__attention_call *c, bool back)
{
    const bool    wide = c->q->dtype == TN_F64;
    attention_job job = {.c = c, .back = back, .matrices = 1};
    int64_t       tasks, grain;
    if (tn__blocked()) return;
    set_up(&job, c);
    if (job.matrices == 0 || (job.queries == 0 && !back)) return;
    cut_work(&job, &tasks, &grain);
    job.workspace_bytes =
        wide ? lay_out_f64(&job, NULL, &(workspace_f64){0}) : lay_out_f32(&job, NULL, &(workspace_f32){0});
    const size_t bytes = job.workspace_bytes * (job.parallel ? (size_t)tn_threads() : 1);
    if (!(job.workspaces = tn__mem_get(bytes))) return;
    if (job.parallel) tn_parallel_for(tasks, grain, wide ? tasks_f64 : tasks_f32, &job);
    else if (wide) run_f64(&job, 0, tasks);
    else run_f32(&job, 0, tasks);
    tn__mem_put(job.workspaces, bytes);
}

void tn__attend(const tn__attention_call *c) { attend(c, false); }
void tn__attend_back(const tn__attention_call *c) { attend(c, true); }

#else /* ===================================================================================== one dtype */

/* The arguments of the kernels for a block: rows [r, …) of the task's. */
static tn__attention_step TN__(step_of)(const attention_job *job, const TN__(workspace) * ws, const block *b, int64_t r)
{
    return (tn__attention_step){.rows = b->rows,
                                .keys = b->keys,
                                .first = b->first,
                                .step = b->step,
                                .scale = job->c->cap > 0 ? 1 : job->c->scale,
                                .s = ws->scores,
                                .s_row = job->key_row,
                                .max = ws->max + r,
                                .sum = ws->sum + r};
}

static bool TN__(forward)(const attention_job *job, const TN__(workspace) * ws, const part *p)
{
    const tn__attention_call *c = job->c;
    const int64_t             i = p->i, t0 = p->t0, t1 = p->t1, rows = t1 - t0;
    const matrix              mask[2] = {matrix_of(c->mask[0], i), matrix_of(c->mask[1], i)};
    const matrix              query = queries_of(c->q, p), key = keys_of(c->k, p), value = keys_of(c->v, p);
    const matrix              y = queries_of(c->y, p), stat = queries_of(c->stat, p);
    const int64_t             end = tn__min_i64(p->keys, end_of_sight(job, t1 - 1));
    const TN__(lines) q = job->pairs ? TN__(pairs_of)(&query, t0, rows, job->dim, ws->q_pairs, job->d_row / 2)
                                     : TN__(pack)(job, &query, t0, rows, job->dim, ws->q, job->d_row, NULL);
    bool first = true, nonfinite = false; /* first: no block of keys has contributed yet */
    for (int64_t r = 0; r < rows; r++) ws->max[r] = -(TN__REAL)INFINITY, ws->sum[r] = 0;
    for (int64_t j = first_in_sight(job, t0) / KEYS * KEYS; j < end; j += KEYS) {
        block      b = {.j = j, .keys = tn__min_i64(KEYS, p->keys - j)};
        const bool common = TN__(common)(job, ws, mask, &b);
        if (b.keys == 0) continue;
        TN__(transposed_terms)(job, &key, j, b.keys, job->dim, ws->k_t, ws->clean, job->d_row);
        const TN__(lines) v =
            TN__(terms_of)(job, &value, j, b.keys, job->out, ws->v, job->e_row, p->careful ? &nonfinite : NULL);
        for (b.t = t0; b.t < t1; b.t += QUERIES) {
            b.rows = tn__min_i64(QUERIES, t1 - b.t);
            const int64_t   r = b.t - t0;
            TN__REAL *const o = ws->out + r * job->e_row;
            if (!block_in_sight(job, &b)) {
                if (first) memset(o, 0, (size_t)(b.rows * job->e_row) * sizeof *o);
                continue;
            }
            tn__attention_step s = TN__(step_of)(job, ws, &b, r);
            s.factor = ws->factor;
            TN__(scores)(job, ws, &b, job->dim, q, r, ws->k_t, ws->scores);
            if (c->cap > 0) TN__(cap)(job, ws, &b, NULL);
            TN__(masks)(job, ws, mask, common, &b, &s);
            job->kn->softmax(&s);
            if (!first) job->kn->scale_rows(b.rows, job->out, o, job->e_row, ws->factor, 1);
            if (!c->drop.all) TN__(dropout)(job, ws, i, &b, ws->scores, NULL);
            TN__(over_keys)
            (job, ws, &b, &(TN__(weighted)){ws->scores, v, 0, job->out, o, job->e_row, first, nonfinite});
        }
        first = false;
    }
    if (first) memset(ws->out, 0, (size_t)(rows * job->e_row) * sizeof(TN__REAL));
    for (int64_t r = 0; r < rows; r++) {
        TN__REAL *to = entry(&stat, t0 + r, 0);
        to[0] = ws->sum[r] == 0 ? 0 : ws->max[r], to[1] = ws->sum[r] = ws->sum[r] == 0 ? 0 : 1 / ws->sum[r];
    }
    return TN__(store_rows)(job, &y, t0, rows, job->out, ws->out, job->e_row, ws->sum, 1);
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* The work on queries [t0, t1) and keys [s0, s1): gradients of those queries, or of those keys, or of both. */
typedef struct {
    const attention_job *job;
    const TN__(workspace) * ws;
    const part *p;
    matrix      mask[2], query, key, value, y, stat, gy, gq, gk, gv, gs;
    bool        to_q, to_k, to_v;  /* the gradients to compute */
    int64_t     t0, rows;          /* the queries that take part: p->t0, or later */
    TN__(lines) q_units, gy_units; /* multiplied with keys and values */
    TN__(lines) q_terms, gy_terms; /* summed, weighted */
    TN__(lines) k_terms;
    bool nonfinite_q, nonfinite_gy, nonfinite_k; /* true if some of these terms are not finite */
    bool started;                                /* ws->out holds sums */
    bool finite;                                 /* all stored elements */
} TN__(gradients);

static TN__(gradients) TN__(gradients_of)(const attention_job *job, const TN__(workspace) * ws, const part *p)
{
    const tn__attention_call *c = job->c;
    TN__(gradients) d = {.job = job, .ws = ws, .p = p, .finite = true};
    d.mask[0] = matrix_of(c->mask[0], p->i), d.mask[1] = matrix_of(c->mask[1], p->i);
    d.query = queries_of(c->q, p), d.key = keys_of(c->k, p), d.value = keys_of(c->v, p);
    d.y = queries_of(c->y, p), d.stat = queries_of(c->stat, p), d.gy = queries_of(c->gy, p);
    d.gq = queries_of(c->gq, p), d.gk = keys_of(c->gk, p), d.gv = keys_of(c->gv, p);
    d.gs = matrix_of(c->gs, p->i);
    d.to_q = p->of_queries && d.gq.p, d.to_k = p->of_keys && d.gk.p, d.to_v = p->of_keys && d.gv.p;
    d.t0 = p->t0;
    if (c->causal && !p->of_queries) /* earlier queries see none of the keys */
        d.t0 = tn__min_i64(p->t1, tn__max_i64(d.t0, (p->s0 - c->past) / QUERIES * QUERIES));
    d.rows = p->t1 - d.t0;
    return d;
}

/* Packs the queries and their gy, and reads each row's statistics: max, 1 / Σ, and Σ w gw = gy · y. */
static void TN__(take_queries)(TN__(gradients) * d)
{
    const attention_job *job = d->job;
    const TN__(workspace) *ws = d->ws;
    const bool    careful = d->p->careful;
    const int64_t t0 = d->t0, rows = d->rows;
    d->q_terms =
        TN__(terms_of)(job, &d->query, t0, rows, job->dim, ws->q, job->d_row, careful ? &d->nonfinite_q : NULL);
    d->gy_terms =
        TN__(terms_of)(job, &d->gy, t0, rows, job->out, ws->gy, job->e_row, careful ? &d->nonfinite_gy : NULL);
    d->q_units = d->q_terms, d->gy_units = d->gy_terms;
    if (job->pairs) {
        d->q_units = TN__(pairs_of)(&d->query, t0, rows, job->dim, ws->q_pairs, job->d_row / 2);
        d->gy_units = TN__(pairs_of)(&d->gy, t0, rows, job->out, ws->gy_pairs, job->e_row / 2);
    }
    TN__REAL *const y = ws->clean, *const gy = ws->clean + job->out * TRANSPOSED_ROW;
    for (int64_t r = 0, n; r < rows; r += n) {
        n = tn__min_i64(QUERIES, rows - r);
        TN__(transpose)(job, &d->y, t0 + r, n, job->out, y, TRANSPOSED_ROW, ws->scores, job->e_row);
        if (job->pairs) TN__(transpose)(job, &d->gy, t0 + r, n, job->out, gy, TRANSPOSED_ROW, ws->scores, job->e_row);
        else job->kn->transpose(n, job->out, d->gy_units.p + r * d->gy_units.row, d->gy_units.row, gy, TRANSPOSED_ROW);
        job->kn->dot_columns(n, job->out, y, gy, TRANSPOSED_ROW, ws->partial + r);
    }
    for (int64_t r = 0; r < rows; r++) {
        const TN__REAL *from = entry(&d->stat, t0 + r, 0);
        ws->max[r] = from[0], ws->sum[r] = from[1];
    }
}

/* A block of queries by keys: recomputes the weights and their gradients, and adds their contributions to gq, gk and
 * gv. first: no earlier block has these keys. */
static void TN__(back_block)(TN__(gradients) * d, const block *b, bool common, bool first)
{
    const attention_job      *job = d->job;
    const tn__attention_call *c = job->c;
    const TN__(workspace) *ws = d->ws;
    const int64_t      r = b->t - d->t0;
    tn__attention_step s = TN__(step_of)(job, ws, b, r);
    s.g = ws->gscores, s.part = ws->partial + r;
    TN__(scores)(job, ws, b, job->dim, d->q_units, r, ws->k_t, ws->scores);
    TN__(scores)(job, ws, b, job->out, d->gy_units, r, ws->v_t, ws->gscores);
    if (c->cap > 0) TN__(cap)(job, ws, b, ws->slope);
    TN__(masks)(job, ws, d->mask, common, b, &s);
    if (!c->drop.all) TN__(dropout)(job, ws, d->p->i, b, NULL, ws->keep), s.keep = ws->keep;
    job->kn->softmax_back(&s);
    for (int64_t n = 0; d->p->of_queries && d->gs.p && n < b->rows; n++)
        memcpy(entry(&d->gs, b->t + n, b->j), ws->gscores + n * job->key_row, (size_t)b->keys * sizeof(TN__REAL));
    if (c->cap > 0) TN__(cap_back)(job, ws, b);
    if (d->to_v) TN__(over_queries)
    (job, ws, b, &(TN__(weighted)){ws->scores, d->gy_terms, r, job->out, ws->gv, job->e_row, first, d->nonfinite_gy});
    if (d->to_k) TN__(over_queries)
    (job, ws, b, &(TN__(weighted)){ws->gscores, d->q_terms, r, job->dim, ws->gk, job->d_row, first, d->nonfinite_q});
    if (d->to_q) TN__(over_keys)
    (job, ws, b,
     &(TN__(weighted)){ws->gscores, d->k_terms, 0, job->dim, ws->out + r * job->d_row, job->d_row, !d->started,
                       d->nonfinite_k});
}

/* The gradients of keys [j, j + all), and their contributions to those of the queries. */
static void TN__(back_keys)(TN__(gradients) * d, int64_t j)
{
    const attention_job      *job = d->job;
    const tn__attention_call *c = job->c;
    const part               *p = d->p;
    const TN__(workspace) *ws = d->ws;
    block          b = {.j = j, .keys = tn__min_i64(KEYS, p->keys - j)};
    const int64_t  all = b.keys;
    const bool     common = TN__(common)(job, ws, d->mask, &b);
    const TN__REAL scale = (TN__REAL)c->scale, one = 1;
    bool           first = true;
    if (end_of_sight(job, p->t1 - 1) <= j || first_in_sight(job, d->t0) >= j + all) b.keys = 0;
    if (b.keys) {
        TN__(transposed_terms)(job, &d->key, j, b.keys, job->dim, ws->k_t, ws->clean, job->d_row);
        TN__(transposed_terms)(job, &d->value, j, b.keys, job->out, ws->v_t, ws->clean, job->e_row);
        if (d->to_q)
            d->k_terms = TN__(terms_of)(job, &d->key, j, b.keys, job->dim, ws->k, job->d_row,
                                        p->careful ? &d->nonfinite_k : NULL);
    }
    for (b.t = d->t0; b.t < p->t1 && b.keys; b.t += QUERIES) {
        b.rows = tn__min_i64(QUERIES, p->t1 - b.t);
        TN__REAL *const o = ws->out + (b.t - d->t0) * job->d_row;
        if (block_in_sight(job, &b)) {
            TN__(back_block)(d, &b, common, first);
            first = false;
        } else if (d->to_q && !d->started) memset(o, 0, (size_t)(b.rows * job->d_row) * sizeof *o);
    }
    const int64_t zeros = first ? 0 : b.keys; /* from there on, no query has seen the keys */
    if (d->to_k) memset(ws->gk + zeros * job->d_row, 0, (size_t)((all - zeros) * job->d_row) * sizeof(TN__REAL));
    if (d->to_v) memset(ws->gv + zeros * job->e_row, 0, (size_t)((all - zeros) * job->e_row) * sizeof(TN__REAL));
    if (d->to_k) d->finite &= TN__(store_rows)(job, &d->gk, j, all, job->dim, ws->gk, job->d_row, &scale, 0);
    if (d->to_v) d->finite &= TN__(store_rows)(job, &d->gv, j, all, job->out, ws->gv, job->e_row, &one, 0);
    d->started = d->started || b.keys;
}

/* Returns true if all stored elements are finite. */
static bool TN__(backward)(const attention_job *job, const TN__(workspace) * ws, const part *p)
{
    TN__(gradients) d = TN__(gradients_of)(job, ws, p);
    const TN__REAL scale = (TN__REAL)job->c->scale;
    TN__(take_queries)(&d);
    for (int64_t j = p->s0; j < p->s1; j += KEYS) TN__(back_keys)(&d, j);
    if (d.to_q && !d.started) memset(ws->out, 0, (size_t)(d.rows * job->d_row) * sizeof(TN__REAL));
    if (d.to_q) d.finite &= TN__(store_rows)(job, &d.gq, d.t0, d.rows, job->dim, ws->out, job->d_row, &scale, 0);
    return d.finite;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

static void TN__(run)(const attention_job *job, int64_t from, int64_t to)
{
    TN__(workspace) ws;
    prefetch_queue queue;
    int            begun = 0;
    TN__(lay_out)(job, job->workspaces + (job->parallel ? (size_t)tn__worker() * job->workspace_bytes : 0), &ws);
    ws.ahead = &queue, ws.begun = &begun;
    for (int64_t k = 0; job->back && !job->c->drop.all && k < tn__min_i64(KEYS, job->keys); k++) ws.ones[k] = 1;
    for (int64_t n = from; n < to; n++) {
        part       p = part_of(job, n);
        const bool whole = job->back && job->whole;
        if (!whole && (p.of_queries ? p.t0 == p.t1 : p.s0 == p.s1)) continue;
        prefetch_operands(job, &queue, &p);
        for (int again = 0; again < 2; again++) {
            p.careful = again; /* non-finite elements show in the result: then repeat the task carefully */
            if (job->back ? TN__(backward)(job, &ws, &p) : TN__(forward)(job, &ws, &p)) break;
        }
    }
    if (begun && job->pairs) job->pairs->end();
}

#endif

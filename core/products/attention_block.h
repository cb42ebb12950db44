/* attention_block.h — a block of attention: the job, a thread's workspace, loading and storing, masks and dropout (see
 * attention.c). Private to that file, which instantiates it for f32 and f64. */
#ifndef TN__REAL
#ifndef TENON_CORE_PRODUCTS_ATTENTION_BLOCK_H
#define TENON_CORE_PRODUCTS_ATTENTION_BLOCK_H

#include "core/base/bf16.h"
#include "core/products/attention.h"
#include "core/products/gemm.h"
#include "core/tensor/convert.h"
#include "core/kernels/kernels.h"

#include <math.h>
#include <string.h>

enum {
    KEYS = 128, /* keys of a block: part of the definition of the result */
    QUERIES = 64,
    QUERIES_MOST = 1024,           /* maximum queries in a task of the forward */
    TASKS = 16,                    /* minimum number, so that many threads have work */
    TRANSPOSED_ROW = QUERIES + 16, /* length of a packed row of queries */
    LINE = 64,                     /* bytes of a cache line */
    SET_BYTES = 4096,              /* rows at a multiple of this distance map to the same L1 set */
    AHEAD = 28,                    /* lines that are prefetched with each micro-tile */
    AHEAD_MOST = 64 << 10          /* maximum bytes of an operand that is prefetched */
};

typedef struct {
    const tn__attention_call    *c;
    const tn__attention_kernels *kn;
    const tn__gemm_kernels      *gemm, *pairs;            /* pairs: of bf16, in units of two terms; or NULL */
    int64_t                      queries, keys, dim, out; /* T, S (of the longest sequences), D, E */
    int64_t                      d_row, e_row, key_row;   /* lengths of packed rows */
    int64_t                      matrices, each;          /* all; those of one sequence */
    int64_t                      chunk, chunks;           /* of queries; backward: chunks of keys have the same size */
    int64_t                      most;                    /* maximum queries of a task */
    bool                         back;                    /* computes gradients */
    bool                         whole;                   /* backward: a task is a matrix */
    bool                         parallel;                /* tasks are distributed over threads */
    char                        *workspaces;              /* one for each thread */
    size_t                       workspace_bytes;
    const tn__kernel_table      *table;
} attention_job;

/* One matrix of a batch. */
typedef struct {
    char    *p;
    tn_dtype dtype;
    int64_t  row, col;
} matrix;

static inline int64_t place(const tn__layout *l, int64_t i)
{
    int64_t at = 0;
    for (int d = l->shape.n - 3; d >= 0; d--) at += i % l->shape.d[d] * l->stride[d], i /= l->shape.d[d];
    return at;
}
static inline matrix matrix_of(const tn_tensor *t, int64_t i)
{
    if (!t) return (matrix){NULL, TN_F32, 0, 0};
    const int n = t->l.shape.n;
    char     *p = (char *)tn__ptr(t) + place(&t->l, i) * (int64_t)tn__dtype_bytes(t->dtype);
    return (matrix){p, t->dtype, t->l.stride[n - 2], t->l.stride[n - 1]};
}
/* The rows of a sequence that starts at row `first`. */
static inline matrix rows_from(matrix m, int64_t first)
{
    if (m.p) m.p += first * m.row * (int64_t)tn__dtype_bytes(m.dtype);
    return m;
}
static inline void *entry(const matrix *m, int64_t r, int64_t c)
{
    return m->p + (r * m->row + c * m->col) * (int64_t)tn__dtype_bytes(m->dtype);
}

/* Software prefetch queue: each micro-tile prefetches AHEAD lines of the rows that will be read or written next. They
 * are too far apart for the hardware prefetcher. */
typedef struct {
    const char *p;
    int64_t     rows, step, bytes, stride; /* step: rows prefetched with each micro-tile */
} prefetch_entry;
typedef struct {
    prefetch_entry entry[8];
    int            n, now;
    int64_t        row;
} prefetch_queue;

/* Rows [r0, r0 + rows) of matrix i of t, which may be NULL. */
static inline void prefetch_add(prefetch_queue *queue, const tn_tensor *t, int64_t i, int64_t r0, int64_t rows)
{
    if (!t || t->l.stride[t->l.shape.n - 1] != 1) return;
    const matrix  m = matrix_of(t, i);
    const int64_t size = (int64_t)tn__dtype_bytes(m.dtype), bytes = t->l.shape.d[t->l.shape.n - 1] * size;
    if (bytes == 0 || rows * bytes > AHEAD_MOST) return;
    queue->entry[queue->n++] = (prefetch_entry){entry(&m, r0, 0), rows, AHEAD * LINE / bytes + 1, bytes, m.row * size};
}
static inline void prefetch_step(prefetch_queue *queue)
{
    if (queue->now == queue->n) return;
    const prefetch_entry *e = &queue->entry[queue->now];
    const int64_t         end = tn__min_i64(queue->row + e->step, e->rows);
    const char           *p = e->p + queue->row * e->stride;
    for (int64_t r = queue->row; r < end; r++, p += e->stride)
        for (int64_t at = 0; at < e->bytes; at += LINE) __builtin_prefetch(p + at);
    queue->row = end;
    if (end == e->rows) queue->row = 0, queue->now++;
}

/* The current block: keys from j, queries from t; the i-th of them sees the keys before first + i · step. */
typedef struct {
    int64_t j, keys, t, rows, first, step;
} block;

/* The first key that query t sees: earlier keys are outside the window. */
static inline int64_t first_in_sight(const attention_job *job, int64_t t)
{
    return job->c->window ? tn__max_i64(0, job->c->past + t - job->c->window + 1) : 0;
}

/* The key after the last one that query t sees. */
static inline int64_t end_of_sight(const attention_job *job, int64_t t)
{
    return job->c->causal ? job->c->past + t + 1 : job->c->window ? job->c->window + t : INT64_MAX / 2;
}

static inline bool block_in_sight(const attention_job *job, block *b)
{
    b->first = b->keys, b->step = 0;
    if (first_in_sight(job, b->t) >= b->j + b->keys) return false;
    if (end_of_sight(job, b->t) - b->j >= b->keys) return true;
    b->first = end_of_sight(job, b->t) - b->j, b->step = 1;
    return b->first + b->rows > 1;
}

#define TN__TEMPLATE "core/products/attention_block.h"
#include "core/real.h"
#endif

#else /* ===================================================================================== one dtype */

static const tn_dtype TN__(own) = sizeof(TN__REAL) == sizeof(float) ? TN_F32 : TN_F64;

/* A thread's workspace; rows have room for whole vectors. A g before a name: the gradient of. */
typedef struct {
    TN__REAL       *q, *out;            /* [most, d_row], [most, e_row]: queries; y, or gq [most, d_row] */
    TN__REAL       *gy, *max, *sum;     /* [most, e_row], [most], [most]: of a row, its maximum, and Σ exp or 1 / Σ */
    TN__REAL       *partial, *factor;   /* [most]: Σ gy · y; [QUERIES]: by which earlier sums are multiplied */
    TN__REAL       *k, *v, *k_t, *v_t;  /* [KEYS, d_row], [KEYS, e_row]; transposed: [D, key_row], [E, key_row] */
    TN__REAL       *gk, *gv;            /* [KEYS, d_row], [KEYS, e_row] */
    TN__REAL       *scores, *gscores;   /* [QUERIES, key_row]: scores, then weights; the gradients of either */
    TN__REAL       *add, *common, *row; /* [QUERIES, key_row], [KEYS]: masks of each query; of all; one row of a mask */
    TN__REAL       *keep, *ones;        /* [QUERIES, key_row], [KEYS]: dropout's factors; all 1 */
    TN__REAL       *slope;              /* [QUERIES, key_row]: the derivative of the cap */
    TN__REAL       *clean;              /* [KEYS, d_row or e_row]: an operand without its NaN and infinities; scratch */
    TN__REAL       *q_pairs, *gy_pairs; /* [most, d_row / 2], [most, e_row / 2]: in pairs of bf16 */
    TN__REAL       *rounded;            /* [QUERIES / 2, key_row]: weights, or their gradients, in pairs of bf16 */
    prefetch_queue *ahead;              /* lines to prefetch with the next micro-tiles */
    int            *begun;              /* the mr of the last call of the kernels' begin; 0: none */
} TN__(workspace);

static inline size_t TN__(lay_out)(const attention_job *job, char *base, TN__(workspace) * p)
{
    const int64_t wide = tn__max_i64(job->d_row, job->e_row), keys = tn__min_i64(KEYS, job->keys);
    const int64_t rows = tn__min_i64(QUERIES, job->most), all = rows * job->key_row;
    const int64_t turned = job->back && job->pairs && job->pairs->a_rows ? keys * TRANSPOSED_ROW : 0;
    const bool    masked = job->c->mask[0] || job->c->mask[1] || job->c->window;
    size_t        at = 0;
#define PART(name, n) \
    (p->name = base ? (void *)(base + at) : NULL, at += ((size_t)(n) * sizeof *p->name + LINE - 1) / LINE * LINE)
    PART(q, job->most * job->d_row), PART(out, job->most * (job->back ? job->d_row : job->e_row));
    PART(max, job->most), PART(sum, job->most), PART(partial, job->back ? job->most : 0), PART(factor, rows);
    PART(k_t, job->dim * job->key_row), PART(scores, tn__max_i64(all, job->back ? rows * job->e_row : 0)),
        PART(clean, tn__max_i64(tn__max_i64(keys, rows) * wide,
                                job->back ? tn__max_i64(2 * job->out * TRANSPOSED_ROW, turned) : 0));
    PART(row, keys);
    PART(q_pairs, job->pairs ? job->most * job->d_row / 2 : 0);
    PART(gy_pairs, job->pairs && job->back ? job->most * job->e_row / 2 : 0);
    PART(rounded, job->pairs ? tn__max_i64((rows + 1) / 2 * job->key_row, turned / 2) : 0);
    if (masked) PART(add, all), PART(common, job->key_row);
    if (!job->back) return PART(v, keys * job->e_row), at;
    PART(gy, job->most * job->e_row), PART(k, keys * job->d_row), PART(v_t, job->out * job->key_row),
        PART(gscores, all);
    PART(gk, keys * job->d_row), PART(gv, keys * job->e_row), PART(slope, job->c->cap > 0 ? all : 0);
    if (!job->c->drop.all) PART(keep, all), PART(ones, keys);
    return at;
#undef PART
}

/* ---- loading and storing ----------------------------------------------------------------------------------------- */

/* Rows of elements, dense up to the end of a vector. */
typedef struct {
    const TN__REAL *p;
    int64_t         row;
} TN__(lines);

/* Row r of a matrix in the dtype of the workspace. */
static inline void TN__(convert_row)(const attention_job *job, const matrix *m, int64_t r, int64_t cols, TN__REAL *to)
{
    if (m->dtype == TN_U8) job->kn->widen(cols, entry(m, r, 0), to);
    else tn__convert(cols, to, TN__(own), 1, entry(m, r, 0), m->dtype, m->col);
}

/* Rows of a matrix: in place, if the kernels can read them, or packed. *nonfinite: set to true if an element is not
 * finite. NULL: not checked. */
static inline TN__(lines) TN__(pack)(const attention_job *job, const matrix *m, int64_t r0, int64_t rows, int64_t cols,
                                     TN__REAL *to, int64_t to_row, bool *nonfinite)
{
    const bool    direct = m->dtype == TN__(own) && m->col == 1;
    const int64_t size = sizeof(TN__REAL);
    if (direct && !nonfinite && cols % job->gemm->lanes == 0 && m->row * size % SET_BYTES != 0)
        return (TN__(lines)){entry(m, r0, 0), m->row};
    for (int64_t r = 0; !direct && r < rows; r++) TN__(convert_row)(job, m, r0 + r, cols, to + r * to_row);
    const void *from = direct ? entry(m, r0, 0) : to;
    const bool  finite = job->kn->pack(rows, cols, from, direct ? m->row : to_row, to, to_row);
    if (nonfinite) *nonfinite = !finite;
    return (TN__(lines)){to, to_row};
}

/* Packs rows of a matrix transposed: to [cols, rows]. scratch has room for the rows. */
static inline void TN__(transpose)(const attention_job *job, const matrix *m, int64_t r0, int64_t rows, int64_t cols,
                                   TN__REAL *to, int64_t to_row, TN__REAL *scratch, int64_t row)
{
    TN__(lines) x = {scratch, row};
    if (m->dtype == TN__(own) && m->col == 1) x = (TN__(lines)){entry(m, r0, 0), m->row};
    else TN__(pack)(job, m, r0, rows, cols, scratch, row, NULL);
    job->kn->transpose(rows, cols, x.p, x.row, to, to_row);
}

/* Operands in the units of the products: an element, or a pair of bf16. This packs rows whose columns are the terms as
 * pairs. */
static inline TN__(lines)
    TN__(pairs_of)(const matrix *m, int64_t r0, int64_t rows, int64_t cols, TN__REAL *to, int64_t to_row)
{
    const char *from = entry(m, r0, 0);
    if (m->col == 1 && cols % 2 == 0 && m->row % 2 == 0 && (uintptr_t)from % sizeof *to == 0)
        return (TN__(lines)){(const void *)from, m->row / 2};
    for (int64_t r = 0; r < rows; r++) {
        uint16_t *row = (void *)(to + r * to_row);
        tn__convert(cols, row, TN_BF16, 1, entry(m, r0 + r, 0), TN_BF16, m->col);
        if (cols % 2) row[cols] = 0;
    }
    return (TN__(lines)){to, to_row};
}
/* Packs rows that are the terms. nonfinite as in pack; with pairs it is not checked, and set to true. */
static inline TN__(lines) TN__(terms_of)(const attention_job *job, const matrix *m, int64_t r0, int64_t rows,
                                         int64_t cols, TN__REAL *to, int64_t to_row, bool *nonfinite)
{
    if (!job->pairs) return TN__(pack)(job, m, r0, rows, cols, to, to_row, nonfinite);
    job->pairs->pack_bf16(
        &(tn__pack_step){rows, cols, to_row, entry(m, r0, 0), m->row, m->col, to, .terms_in_rows = false});
    if (nonfinite) *nonfinite = true;
    return (TN__(lines)){to, to_row};
}
/* Packs rows whose columns are the terms, transposed. scratch has room for the rows. */
static inline void TN__(transposed_terms)(const attention_job *job, const matrix *m, int64_t r0, int64_t rows,
                                          int64_t cols, TN__REAL *to, TN__REAL *scratch, int64_t row)
{
    const tn__pack_step s = {cols, rows, job->key_row, entry(m, r0, 0), m->col, m->row, to, .terms_in_rows = false};
    if (job->pairs) job->pairs->pack_bf16(&s);
    else TN__(transpose)(job, m, r0, rows, cols, to, job->key_row, scratch, row);
}

/* to = x · factor. Adds +0, so that an underflow to -0 becomes +0 and the bits do not depend on the number of masked
 * terms after it. Returns true if all of it is finite. */
static inline bool TN__(store_rows)(const attention_job *job, const matrix *to, int64_t r0, int64_t rows, int64_t cols,
                                    TN__REAL *x, int64_t x_row, const TN__REAL *factor, int64_t step)
{
    const bool direct = to->dtype == TN__(own) && to->col == 1;
    const bool finite = job->kn->store_scaled(rows, cols, x, x_row, factor, step, direct ? entry(to, r0, 0) : x,
                                              direct ? to->row : x_row);
    for (int64_t r = 0; !direct && r < rows; r++)
        tn__convert(cols, entry(to, r0 + r, 0), to->dtype, to->col, x + r * x_row, TN__(own), 1);
    return finite;
}

/* ---- masks and dropout ------------------------------------------------------------------------------------------- */

/* Adds a row of a mask to `to`, where -inf means blocked. */
static inline void TN__(add_mask_row)(const matrix *m, int64_t t, int64_t j, int64_t n, TN__REAL *to, TN__REAL *row)
{
    const TN__REAL none = -(TN__REAL)INFINITY;
    if (m->dtype == TN_BOOL) {
        const uint8_t *x = entry(m, t, j);
        for (int64_t i = 0; i < n; i++) to[i] = x[i * m->col] ? none : to[i];
        return;
    }
    tn__convert(n, row, TN__(own), 1, entry(m, t, j), m->dtype, m->col);
    for (int64_t i = 0; i < n; i++) to[i] = to[i] == none || row[i] == none ? none : to[i] + row[i];
}

/* Adds the masks that are common to all queries; true if there are any. Keys after the last one that may be seen are
 * excluded: b->keys is reduced, perhaps to 0. */
static inline bool TN__(common)(const attention_job *job, const TN__(workspace) * ws, const matrix *mask, block *b)
{
    bool any = false;
    for (int i = 0; i < 2; i++) {
        if (!mask[i].p || (mask[i].row != 0 && job->queries > 1)) continue;
        if (!any) memset(ws->common, 0, (size_t)job->key_row * sizeof(TN__REAL));
        any = true;
        TN__(add_mask_row)(&mask[i], 0, b->j, b->keys, ws->common, ws->row);
    }
    while (any && b->keys > 0 && ws->common[b->keys - 1] == -(TN__REAL)INFINITY) b->keys--;
    return any;
}

/* Gives each query its own row to add, which starts with the common masks. */
static inline void TN__(own_rows)(const attention_job *job, const TN__(workspace) * ws, bool common, const block *b,
                                  tn__attention_step *s)
{
    for (int64_t r = 0; r < b->rows && !s->add_row; r++) {
        TN__REAL *to = ws->add + r * job->key_row;
        if (common) memcpy(to, ws->common, (size_t)b->keys * sizeof *to);
        else memset(to, 0, (size_t)b->keys * sizeof *to);
    }
    s->add = ws->add, s->add_row = job->key_row;
}

static inline void TN__(masks)(const attention_job *job, const TN__(workspace) * ws, const matrix *mask, bool common,
                               const block *b, tn__attention_step *s)
{
    if (common) s->add = ws->common;
    for (int i = 0; i < 2; i++) {
        if (!mask[i].p || mask[i].row == 0 || job->queries == 1) continue;
        TN__(own_rows)(job, ws, common, b, s);
        for (int64_t r = 0; r < b->rows; r++)
            TN__(add_mask_row)(&mask[i], b->t + r, b->j, b->keys, ws->add + r * job->key_row, ws->row);
    }
    if (first_in_sight(job, b->t + b->rows - 1) <= b->j) return;
    TN__(own_rows)(job, ws, common, b, s);
    for (int64_t r = 0; r < b->rows; r++) { /* the window's first key may be within the block */
        const int64_t n = tn__min_i64(b->keys, first_in_sight(job, b->t + r) - b->j);
        for (int64_t j = 0; j < n; j++) ws->add[r * job->key_row + j] = -(TN__REAL)INFINITY;
    }
}

/* Caps the products in ws->scores: from then on they are scores, already scaled. slope: the derivative, or NULL.
 * Products out of sight may not have been computed. */
static inline void TN__(cap)(const attention_job *job, const TN__(workspace) * ws, const block *b, TN__REAL *slope)
{
    const TN__REAL most = (TN__REAL)job->c->cap, by = (TN__REAL)(job->c->scale / job->c->cap);
    for (int64_t r = 0; r < b->rows; r++) {
        TN__REAL     *s = ws->scores + r * job->key_row, *d = slope ? slope + r * job->key_row : s;
        const int64_t n = tn__keys_in_sight(b->keys, b->first, b->step, r);
        for (int64_t j = 0; j < n; j++) s[j] *= by;
        job->table->TN__SUFFIX->tanh(n, s, s);
        for (int64_t j = 0; slope && j < n; j++) d[j] = 1 - s[j] * s[j];
        for (int64_t j = 0; j < n; j++) s[j] *= most;
    }
}
static inline void TN__(cap_back)(const attention_job *job, const TN__(workspace) * ws, const block *b)
{
    for (int64_t r = 0; r < b->rows; r++) {
        TN__REAL     *g = ws->gscores + r * job->key_row, *d = ws->slope + r * job->key_row;
        const int64_t n = tn__keys_in_sight(b->keys, b->first, b->step, r); /* after them, g is 0 */
        for (int64_t j = 0; j < n; j++) g[j] = g[j] == 0 ? 0 : g[j] * d[j];
    }
}

/* Drops weights in s; or, if keep is given, stores there the factors that they are multiplied by. */
static inline void TN__(dropout)(const attention_job *job, const TN__(workspace) * ws, int64_t i, const block *b,
                                 TN__REAL *s, TN__REAL *keep)
{
    const tn__layout *draw = &job->c->draw;
    const int64_t     base = place(draw, i), row = draw->stride[draw->shape.n - 2];
    for (int64_t r = 0; r < b->rows; r++) {
        const int64_t at = base + (b->t + r) * row + b->j, n = tn__keys_in_sight(b->keys, b->first, b->step, r);
        TN__REAL     *to = (keep ? keep : s) + r * job->key_row;
        if (n == 0) continue;
        job->table->TN__(rows)->dropout(n, keep ? to : ws->row, keep ? ws->ones : to, NULL, &job->c->drop, at, NULL,
                                        NULL);
        if (!keep) memcpy(to, ws->row, (size_t)n * sizeof *to);
        for (int64_t j = n; keep && j % job->gemm->lanes; j++) to[j] = 0;
    }
}
#endif

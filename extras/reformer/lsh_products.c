/* lsh_products.c — LSH attention, one head of one sequence at a time (lsh_attention.c describes the
 * mathematics): positions are sorted, their rows copied in that order, and one batch of matrix products computes the
 * scores of all chunks, whose keys are overlapping ranges of the sorted ones. */
#ifndef TN__REAL /* =============================================================================== the products */
#include "extras/reformer/lsh_products.h"
#include "core/base/libm.h"
#include "core/kernels/vecmath.h"
#include "core/products/gemm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALONE TN__LSH_ALONE

/* Sizes of a call, and the current head of one sequence (unit). */
typedef struct {
    const tn__lsh_call *a;
    int64_t             batch, heads, length, dim, out, rounds;
    int64_t             chunk, chunks, keys, before, sorted; /* keys: keys per chunk; sorted: rounds · length */
    int64_t             b, h;
    int32_t *order, *place; /* position of the i-th; index of position t in round r: place[r · length + t] */
    int64_t  at;            /* index of the unit's first weight, among those of its sequence */
} sizes;

static sizes sizes_of(const tn__lsh_call *a)
{
    const tn_shape q = a->q->l.shape;
    sizes          z = {.a = a, .batch = q.d[0], .heads = q.d[1], .length = q.d[2], .dim = q.d[3]};
    const bool     whole = z.length <= a->chunk;
    z.out = a->v->l.shape.d[3];
    z.rounds = whole || !a->buckets ? 1 : a->buckets->l.shape.d[2];
    z.sorted = z.rounds * z.length;
    z.chunk = whole ? z.length : a->chunk, z.chunks = z.chunk ? z.sorted / z.chunk : 0;
    z.before = whole ? 0 : a->before;
    z.keys = z.chunk * (1 + z.before + (whole ? 0 : a->after));
    return z;
}

/* ---- one head of one sequence ------------------------------------------------------------------------------------ */

typedef struct {
    int64_t bucket;
    int32_t at;
} bucketed;
static int by_bucket(const void *x, const void *y)
{
    const bucketed *a = x, *b = y;
    if (a->bucket != b->bucket) return a->bucket < b->bucket ? -1 : 1;
    return a->at < b->at ? -1 : 1;
}

typedef struct {
    const sizes *z;
    bucketed    *room;
} sorting;
static void sort_rounds(int64_t from, int64_t to, void *user)
{
    const sorting   *j = user;
    const sizes     *z = j->z;
    const tn_tensor *x = z->a->buckets;
    for (int64_t r = from; r < to; r++) {
        bucketed *row = j->room + r * z->length;
        for (int64_t t = 0; t < z->length; t++) {
            const int64_t at = z->b * x->l.stride[0] + z->h * x->l.stride[1] + r * x->l.stride[2] + t * x->l.stride[3];
            row[t].at = (int32_t)t;
            row[t].bucket = x->dtype == TN_I64 ? ((const int64_t *)tn__ptr(x))[at] : ((const int32_t *)tn__ptr(x))[at];
        }
        qsort(row, (size_t)z->length, sizeof *row, by_bucket);
        for (int64_t i = 0; i < z->length; i++) {
            z->order[r * z->length + i] = row[i].at;
            z->place[r * z->length + row[i].at] = (int32_t)(r * z->length + i);
        }
    }
}

/* Selects a unit and computes its order. */
static void turn_to(sizes *z, int64_t unit, bucketed *room)
{
    sorting j = {z, room};
    z->b = unit / z->heads, z->h = unit % z->heads, z->at = z->h * z->sorted * z->keys;
    if (z->a->buckets && z->length > z->a->chunk) tn_parallel_for(z->rounds, 1, sort_rounds, &j);
    else
        for (int64_t t = 0; t < z->length; t++) z->order[t] = z->place[t] = (int32_t)t;
}

/* Maps i to a sorted index; i may be before the first or after the last. */
static inline int64_t wrapped(const sizes *z, int64_t i)
{
    i %= z->sorted;
    return i < 0 ? i + z->sorted : i;
}

/* True if position t may attend to u. */
static inline bool sees(const sizes *z, int64_t t, int64_t u)
{
    const tn_tensor *x = z->a->padding;
    if (z->a->causal && u > t) return false;
    return !x || !((const bool *)tn__ptr(x))[z->b * x->l.stride[0] + u * x->l.stride[1]];
}

/* Arguments of the kernels below; each kernel documents the members that it reads. */
typedef struct {
    const sizes *z;
    const void  *x, *y, *l;
    void        *to, *more, *stat;
    int64_t      row, col, width, skip, rows;
} work;
#define TN__TEMPLATE "extras/reformer/lsh_products.c"
#include "core/real.h"

typedef struct {
    void (*take)(int64_t from, int64_t to, void *user);
    void (*weigh)(int64_t from, int64_t to, void *user);
    void (*join)(int64_t from, int64_t to, void *user);
    void (*slope)(int64_t from, int64_t to, void *user);
    void (*fold)(int64_t from, int64_t to, void *user);
} kernels;
static const kernels  of_f32 = {lsh_take_f32, lsh_weigh_f32, lsh_join_f32, lsh_slope_f32, lsh_fold_f32};
static const kernels  of_f64 = {lsh_take_f64, lsh_weigh_f64, lsh_join_f64, lsh_slope_f64, lsh_fold_f64};
static const kernels *kernels_of(tn_dtype dt) { return dt == TN_F64 ? &of_f64 : &of_f32; }

enum { GRAIN = 32 };                                      /* rows of a task */
static void *first_of(const tn_tensor *x, const sizes *z) /* address of a unit of [B, H, …] */
{
    return (char *)tn__ptr(x) + (z->b * x->l.stride[0] + z->h * x->l.stride[1]) * (int64_t)tn__dtype_bytes(x->dtype);
}

/* Copies the rows of x [B, H, T, width] in sorted order; with `around`, also those of the chunks before and after. */
static void take(const sizes *z, const tn_tensor *x, bool around, tn_tensor *to)
{
    work j = {.z = z,
              .x = first_of(x, z),
              .row = x->l.stride[2],
              .col = x->l.stride[3],
              .width = x->l.shape.d[3],
              .skip = around ? z->before * z->chunk : 0,
              .to = tn__ptr(to)};
    tn_parallel_for(around ? z->sorted + z->keys - z->chunk : z->sorted, GRAIN, kernels_of(to->dtype)->take, &j);
}

/* For each chunk c = alpha · a b + beta · c: offsets and strides of its matrices. */
typedef struct {
    tn_tensor *t;
    int64_t    at, chunk, row, col; /* in elements */
} matrix;
static bool multiply(const sizes *z, matrix c, matrix a, matrix b, int64_t m, int64_t n, int64_t k, double alpha,
                     double beta)
{
    const int64_t       size = (int64_t)tn__dtype_bytes(a.t->dtype);
    const tn__gemm_call g = {.dtype = a.t->dtype,
                             .ctype = a.t->dtype,
                             .m = m,
                             .n = n,
                             .k = k,
                             .alpha = alpha,
                             .beta = beta,
                             .a = (char *)tn__ptr(a.t) + a.at * size,
                             .a_row = a.row,
                             .a_col = a.col,
                             .b = (char *)tn__ptr(b.t) + b.at * size,
                             .b_row = b.row,
                             .b_col = b.col,
                             .c = (char *)tn__ptr(c.t) + c.at * size,
                             .c_row = c.row,
                             .c_col = c.col,
                             .dims = 1,
                             .batch = {z->chunks},
                             .a_batch = {a.chunk},
                             .b_batch = {b.chunk},
                             .c_batch = {c.chunk}};
    return tn__gemm_run(&g);
}
/* Rows of a chunk; rows of its keys; those transposed; scores [chunk, keys], and scores for the keys of the w-th of its
 * chunks of keys. */
static matrix own(const sizes *z, tn_tensor *t, int64_t width) { return (matrix){t, 0, z->chunk * width, width, 1}; }
static matrix turned(const sizes *z, tn_tensor *t, int64_t width) { return (matrix){t, 0, z->chunk * width, 1, width}; }
static matrix scores(const sizes *z, tn_tensor *t) { return (matrix){t, 0, z->chunk * z->keys, z->keys, 1}; }

/* Σ over the chunks that attend to the keys of (scores)ᵀ · rows, [sorted and around, width]. */
static bool to_keys(const sizes *z, tn_tensor *to, tn_tensor *s, tn_tensor *rows, int64_t width, double alpha)
{
    tn__fill(to, 0);
    for (int64_t w = 0; w < z->keys; w += z->chunk)
        if (!multiply(z, (matrix){to, w * width, z->chunk * width, width, 1},
                      (matrix){s, w, z->chunk * z->keys, 1, z->keys}, own(z, rows, width), z->chunk, width, z->chunk,
                      alpha, 1))
            return false;
    return true;
}

/* Sums all rows of a position in x, sorted and, with around, repeated, into a unit of gx [B, H, T, width]. */
static void fold(const sizes *z, const tn_tensor *x, bool around, tn_tensor *gx)
{
    work j = {.z = z,
              .x = tn__ptr(x),
              .width = gx->l.shape.d[3],
              .skip = around ? z->before * z->chunk : 0,
              .rows = around ? z->sorted + z->keys - z->chunk : z->sorted,
              .to = first_of(gx, z)};
    tn_parallel_for(z->length, GRAIN, kernels_of(gx->dtype)->fold, &j);
}

/* Memory for a unit. */
typedef struct {
    tn_tensor *q, *k, *v, *s, *order, *place, *room;
} buffers;
static bool buffers_new(sizes *z, tn_dtype dt, buffers *b)
{
    const int64_t around = z->sorted + z->keys - z->chunk;
    b->q = tn_empty_of(dt, TN_SHAPE(z->sorted, z->dim)), b->k = tn_empty_of(dt, TN_SHAPE(around, z->dim));
    b->v = tn_empty_of(dt, TN_SHAPE(around, z->out)), b->s = tn_empty_of(dt, TN_SHAPE(z->sorted, z->keys));
    b->order = tn_empty_of(TN_I32, TN_SHAPE(z->sorted)), b->place = tn_empty_of(TN_I32, TN_SHAPE(z->sorted));
    b->room = tn_empty_of(TN_I64, TN_SHAPE(z->sorted, 2)); /* of `bucketed` */
    if (tn_error() != TN_OK) return false;
    z->order = tn__ptr(b->order), z->place = tn__ptr(b->place);
    return true;
}
_Static_assert(sizeof(bucketed) <= 2 * sizeof(int64_t), "a bucketed position fits in two int64_t");

/* Computes the unit's sorted rows and its scores. */
static bool meet(sizes *z, int64_t unit, const buffers *b)
{
    turn_to(z, unit, tn__ptr(b->room));
    take(z, z->a->q, false, b->q), take(z, z->a->k, true, b->k), take(z, z->a->v, true, b->v);
    return multiply(z, scores(z, b->s), own(z, b->q, z->dim), turned(z, b->k, z->dim), z->chunk, z->keys, z->dim,
                    z->a->scale, 0);
}

/* ---- all units --------------------------------------------------------------------------------------------------- */

int64_t tn__lsh_weights(const tn__lsh_call *a)
{
    const sizes z = sizes_of(a);
    return z.batch * z.heads * z.sorted * z.keys;
}

void tn__lsh_attend(const tn__lsh_call *a, tn_tensor *y, tn_tensor *l)
{
    const tn_scope s = tn_scope_begin();
    const tn_dtype dt = y->dtype;
    sizes          z = sizes_of(a);
    buffers        b;
    const bool     some = z.sorted > 0 && z.batch * z.heads > 0 && buffers_new(&z, dt, &b);
    tn_tensor     *out = some ? tn_empty_of(dt, TN_SHAPE(z.sorted, z.out)) : NULL;
    tn_tensor     *sums = some ? tn_empty_of(dt, TN_SHAPE(z.sorted)) : NULL;
    for (int64_t u = 0; tn_error() == TN_OK && some && u < z.batch * z.heads; u++) {
        if (!meet(&z, u, &b)) break;
        work j = {.z = &z, .to = tn__ptr(b.s), .stat = tn__ptr(sums)};
        tn_parallel_for(z.sorted, GRAIN, kernels_of(dt)->weigh, &j);
        if (!multiply(&z, own(&z, out, z.out), scores(&z, b.s), own(&z, b.v, z.out), z.chunk, z.out, z.keys, 1, 0))
            break;
        work k = {.z = &z,
                  .x = tn__ptr(out),
                  .l = tn__ptr(sums),
                  .width = z.out,
                  .to = first_of(y, &z),
                  .stat = first_of(l, &z)};
        tn_parallel_for(z.length, GRAIN, kernels_of(dt)->join, &k);
    }
    tn_scope_end(s);
}

/* Memory of the backward of a unit, in addition to the buffers: gradients of scores, sorted rows of gy, and of each of
 * q, k and v. */
typedef struct {
    const tn_tensor *y, *l, *gy;
    tn_tensor *gw, *gys, *rows[3], *const *gx;
} slopes;

static void unit_back(sizes *z, int64_t unit, const buffers *b, const slopes *g)
{
    if (!meet(z, unit, b)) return;
    take(z, g->gy, false, g->gys);
    if (!multiply(z, scores(z, g->gw), own(z, g->gys, z->out), turned(z, b->v, z->out), z->chunk, z->keys, z->out, 1,
                  0))
        return;
    work j = {.z = z,
              .x = tn__ptr(g->gys),
              .width = z->out,
              .y = first_of(g->y, z),
              .row = g->y->l.stride[2],
              .col = g->y->l.stride[3],
              .l = first_of(g->l, z),
              .to = tn__ptr(b->s),
              .more = tn__ptr(g->gw)};
    tn_parallel_for(z->sorted, GRAIN, kernels_of(g->gw->dtype)->slope, &j);
    if (g->gx[2] && to_keys(z, g->rows[2], b->s, g->gys, z->out, 1)) fold(z, g->rows[2], true, g->gx[2]);
    if (g->gx[1] && to_keys(z, g->rows[1], g->gw, b->q, z->dim, z->a->scale)) fold(z, g->rows[1], true, g->gx[1]);
    if (g->gx[0] && multiply(z, own(z, g->rows[0], z->dim), scores(z, g->gw), own(z, b->k, z->dim), z->chunk, z->dim,
                             z->keys, z->a->scale, 0))
        fold(z, g->rows[0], false, g->gx[0]);
}

void tn__lsh_attend_back(const tn__lsh_call *a, const tn_tensor *y, const tn_tensor *l, const tn_tensor *gy,
                         tn_tensor *const gx[3])
{
    const tn_scope s = tn_scope_begin();
    const tn_dtype dt = y->dtype;
    sizes          z = sizes_of(a);
    buffers        b;
    const bool     some = z.sorted > 0 && z.batch * z.heads > 0 && buffers_new(&z, dt, &b);
    const int64_t  around = z.sorted + z.keys - z.chunk;
    slopes         g = {.y = y, .l = l, .gy = gy, .gx = gx};
    if (some) g.gw = tn_empty_of(dt, TN_SHAPE(z.sorted, z.keys)), g.gys = tn_empty_of(dt, TN_SHAPE(z.sorted, z.out));
    for (int i = 0; some && i < 3; i++)
        if (gx[i]) g.rows[i] = tn_empty_of(dt, TN_SHAPE(i ? around : z.sorted, i == 2 ? z.out : z.dim));
    for (int64_t u = 0; tn_error() == TN_OK && some && u < z.batch * z.heads; u++) unit_back(&z, u, &b, &g);
    tn_scope_end(s);
}

bool tn__lsh_indices(const tn__lsh_call *a, tn_tensor **own_at, tn_tensor **keys_at, tn_tensor **place)
{
    sizes      z = sizes_of(a);
    tn_tensor *room = tn_empty_of(TN_I64, TN_SHAPE(z.sorted, 2)), *o = tn_empty_of(TN_I32, TN_SHAPE(z.sorted)),
              *p = tn_empty_of(TN_I32, TN_SHAPE(z.sorted));
    *own_at = tn_empty_of(TN_I64, TN_SHAPE(z.batch, z.heads, z.chunks, z.chunk));
    *keys_at = tn_empty_of(TN_I64, TN_SHAPE(z.batch, z.heads, z.chunks, z.keys));
    *place = tn_empty_of(TN_I64, TN_SHAPE(z.batch, z.heads, z.rounds, z.length));
    if (tn_error() != TN_OK) return false;
    z.order = tn__ptr(o), z.place = tn__ptr(p);
    int64_t *x = tn__ptr(*own_at), *y = tn__ptr(*keys_at), *w = tn__ptr(*place);
    for (int64_t u = 0; u < z.batch * z.heads; u++) {
        turn_to(&z, u, tn__ptr(room));
        for (int64_t i = 0; i < z.sorted; i++) *x++ = z.order[i], *w++ = z.place[i];
        for (int64_t i = 0; i < z.chunks * z.keys; i++)
            *y++ = z.order[wrapped(&z, (i / z.keys - z.before) * z.chunk + i % z.keys)];
    }
    return true;
}

#else /* ================================================= kernels: rows from … to - 1 of one unit, one dtype */

/* to [rows, width] = rows of x, of strides row and col, in sorted order, starting `skip` before the first. */
static void TN__(lsh_take)(int64_t from, int64_t to, void *user)
{
    const work *j = user;
    for (int64_t i = from; i < to; i++) {
        const TN__REAL *x = (const TN__REAL *)j->x + j->z->order[wrapped(j->z, i - j->skip)] * j->row;
        TN__REAL       *y = (TN__REAL *)j->to + i * j->width;
        if (j->col == 1) memcpy(y, x, (size_t)j->width * sizeof *y);
        else
            for (int64_t d = 0; d < j->width; d++) y[d] = x[d * j->col];
    }
}

/* The i-th row of scores, with padding and constant scores filled in. */
static TN__REAL *TN__(lsh_masked)(const sizes *z, TN__REAL *w, int64_t i)
{
    const int64_t t = z->order[i], first = (i / z->chunk - z->before) * z->chunk;
    w += i * z->keys;
    for (int64_t j = 0; j < z->keys; j++) {
        const int64_t u = z->order[wrapped(z, first + j)];
        if (z->a->apart && u == t) w[j] = (TN__REAL)ALONE;
        else if (!sees(z, t, u)) w[j] = -(TN__REAL)INFINITY;
    }
    return w;
}
static void TN__(lsh_drop)(const sizes *z, TN__REAL *w, int64_t i)
{
    if (z->a->drop.all) return;
    const tn__dropped drop = tn__drop_sequence(z->a->drop, z->b);
    TN__REAL          some[64];
    for (int64_t j = 0; j < z->keys; j += 64) {
        const int64_t n = tn__min_i64(64, z->keys - j);
        memcpy(some, w + j, (size_t)n * sizeof *w);
        tn__kernels()->TN__(rows)->dropout(n, w + j, some, NULL, &drop, z->at + i * z->keys + j, NULL, NULL);
    }
}

/* Converts the i-th row of scores to weights of its round, times exp(own - *over), where own = ln Σ exp of the row,
 * which is returned; over NULL: times 1. */
static TN__REAL TN__(lsh_softmax)(const sizes *z, TN__REAL *w, int64_t i, const TN__REAL *over)
{
    w = TN__(lsh_masked)(z, w, i);
    const int64_t  n = z->keys;
    const TN__REAL most = TN__(tn__row_max)(n, w);
    if (!(most > -(TN__REAL)INFINITY)) return memset(w, 0, (size_t)n * sizeof *w), most; /* no key to attend to */
    const TN__REAL own = (TN__REAL)((double)most + tn__libm_log((double)TN__(tn__exp_sum)(n, w, w, most)));
    const TN__REAL by = TN__M(exp)(most - own) * (over ? TN__M(exp)(own - *over) : 1);
    for (int64_t k = 0; k < n; k++) w[k] *= by;
    return own;
}

/* to: scores, converted to weights of their round; stat: ln Σ exp of a row. */
static void TN__(lsh_weigh)(int64_t from, int64_t to, void *user)
{
    const work *j = user;
    for (int64_t i = from; i < to; i++) {
        ((TN__REAL *)j->stat)[i] = TN__(lsh_softmax)(j->z, j->to, i, NULL);
        TN__(lsh_drop)(j->z, (TN__REAL *)j->to + i * j->z->keys, i);
    }
}

/* to [T, width]: the rows of a position in all rounds of x, weighted by l; stat [T]: ln Σ exp over them. */
static void TN__(lsh_join)(int64_t from, int64_t to, void *user)
{
    const work     *j = user;
    const TN__REAL *l = j->l;
    for (int64_t t = from; t < to; t++) {
        const int32_t *at = j->z->place + t;
        TN__REAL      *y = (TN__REAL *)j->to + t * j->width, most = -(TN__REAL)INFINITY;
        double         sum = 0;
        memset(y, 0, (size_t)j->width * sizeof *y);
        for (int64_t r = 0; r < j->z->rounds; r++) most = TN__M(fmax)(most, l[at[r * j->z->length]]);
        ((TN__REAL *)j->stat)[t] = most;
        if (!(most > -(TN__REAL)INFINITY)) continue;
        for (int64_t r = 0; r < j->z->rounds; r++) sum += tn__libm_exp((double)(l[at[r * j->z->length]] - most));
        const TN__REAL all = (TN__REAL)((double)most + tn__libm_log(sum));
        ((TN__REAL *)j->stat)[t] = all;
        for (int64_t r = 0; r < j->z->rounds; r++) {
            const int64_t   i = at[r * j->z->length];
            const TN__REAL *x = (const TN__REAL *)j->x + i * j->width, w = TN__M(exp)(l[i] - all);
            for (int64_t d = 0; d < j->width; d++) y[d] += w * x[d];
        }
    }
}

/* to: scores, converted to weights after dropout; more: gy · v, converted to the scores' gradient. x: gy's sorted rows;
 * y: the result, of strides row and col; l: ln Σ exp. */
static void TN__(lsh_slope)(int64_t from, int64_t to, void *user)
{
    const work     *j = user;
    const sizes    *z = j->z;
    const TN__REAL *l = j->l;
    for (int64_t i = from; i < to; i++) {
        const int64_t   t = z->order[i], first = (i / z->chunk - z->before) * z->chunk;
        TN__REAL       *w = (TN__REAL *)j->to + i * z->keys, *g = (TN__REAL *)j->more + i * z->keys;
        const TN__REAL *gy = (const TN__REAL *)j->x + i * j->width, *y = (const TN__REAL *)j->y + t * j->row;
        double          same = 0;
        for (int64_t d = 0; d < j->width; d++) same += (double)gy[d] * (double)y[d * j->col];
        TN__(lsh_softmax)(z, j->to, i, &l[t]);
        TN__(lsh_drop)(z, g, i);
        for (int64_t k = 0; k < z->keys; k++) g[k] = w[k] * (g[k] - (TN__REAL)same);
        for (int64_t k = 0; z->a->apart && k < z->keys; k++)
            if (z->order[wrapped(z, first + k)] == t) g[k] = 0;
        TN__(lsh_drop)(z, w, i);
    }
}

/* to [T, width]: the sum of a position's rows in x, over all rounds and all copies of a row. */
static void TN__(lsh_fold)(int64_t from, int64_t to, void *user)
{
    const work *j = user;
    for (int64_t t = from; t < to; t++) {
        TN__REAL *y = (TN__REAL *)j->to + t * j->width;
        memset(y, 0, (size_t)j->width * sizeof *y);
        for (int64_t r = 0; r < j->z->rounds; r++) {
            const int64_t at = (j->z->place[r * j->z->length + t] + j->skip) % j->z->sorted;
            for (int64_t i = at; i < j->rows; i += j->z->sorted) {
                const TN__REAL *x = (const TN__REAL *)j->x + i * j->width;
                for (int64_t d = 0; d < j->width; d++) y[d] += x[d];
            }
        }
    }
}
#endif

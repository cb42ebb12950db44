/* attention_products.h — the products of a block of attention: scores, and sums weighted by them, computed by the
 * GEMM's micro-kernels. Private to attention.c, which instantiates it for f32 and f64. */
#ifndef TN__REAL
#ifndef TENON_CORE_PRODUCTS_ATTENTION_PRODUCTS_H
#define TENON_CORE_PRODUCTS_ATTENTION_PRODUCTS_H

#include "core/products/attention_block.h"

typedef enum {
    SCORES,      /* queries by keys: only those in sight are computed */
    OVER_KEYS,   /* rows are queries, the terms keys: only those in sight contribute */
    OVER_QUERIES /* rows are keys, the terms queries */
} product_kind;

#define TN__TEMPLATE "core/products/attention_products.h"
#include "core/real.h"
#endif

#else /* ===================================================================================== one dtype */

/* c = a b, or c += a b: [rows, cols] with k units of terms, whole vectors of columns. */
typedef struct {
    product_kind    of;
    int64_t         rows, cols, k;
    const TN__REAL *a;
    int64_t         a_row, a_col;
    const TN__REAL *b;
    int64_t         b_row;
    TN__REAL       *c;
    int64_t         c_row;
    bool            first;     /* c is not read */
    bool            nonfinite; /* b is not finite everywhere: all of it is packed */
} TN__(product_args);

static __attribute__((noinline)) void TN__(tiles)(const attention_job *job, const TN__(workspace) * ws, const block *b,
                                                  const TN__(product_args) * f)
{
    const tn__gemm_kernels *kn = job->pairs ? job->pairs : job->gemm;
    const int64_t           mr = kn->mr, nv = kn->nv, lanes = kn->lanes, pair = kn->pair;
    const int64_t           group = tn__max_i64(1, kn->group);
    const int64_t           vectors = (f->cols + lanes - 1) / lanes, panels = (vectors + nv - 1) / nv;
    for (int64_t p = 0; p < panels; p++) {
        const int64_t v0 = p * vectors / panels, v1 = (p + 1) * vectors / panels, col = v0 * lanes;
        for (int64_t r = 0; r < f->rows; r += mr) {
            tn__gemm_step s = {.mr = (int)tn__min_i64(mr, f->rows - r), .nv = (int)(v1 - v0), .k = f->k};
            const int64_t sight = b->first + (r + s.mr - 1) * b->step; /* keys that the last of these queries sees */
            int64_t       from = 0;
            if (f->of == SCORES && col >= sight) continue;
            if (f->of == OVER_KEYS) s.k = tn__min_i64(s.k, (sight + group * pair - 1) / (group * pair) * group);
            if (f->of == OVER_QUERIES && b->step)
                from = tn__max_i64(0, r + 1 - b->first) / (group * pair) * group, s.k -= from;
            if (s.k <= 0 && !f->first) continue;
            if (s.k < 0) s.k = 0;
            s.a = f->a + r * f->a_row + from * f->a_col, s.a_row = f->a_row, s.a_col = f->a_col;
            s.b = f->b + from * f->b_row + col, s.b_row = f->b_row;
            s.to = f->c + r * f->c_row + col, s.to_row = f->c_row;
            if (!f->first) s.from = s.to, s.from_row = f->c_row;
            if (kn->begin && *ws->begun != s.mr) kn->begin(*ws->begun = s.mr);
            kn->tile(&s);
            prefetch_step(ws->ahead);
        }
    }
}

/* Element i of a unit. */
static inline TN__REAL TN__(number)(const attention_job *job, const TN__REAL *unit, int i)
{
    return job->pairs ? (TN__REAL)tn__bf16_to_f32(((const uint16_t *)(const void *)unit)[i]) : *unit;
}

/* Copies the terms of b to ws->clean, with zeros in place of non-finite elements. */
static void TN__(copy_finite)(const attention_job *job, const TN__(workspace) * ws, const TN__(product_args) * f)
{
    const int64_t lanes = job->gemm->lanes, whole = (f->cols + lanes - 1) / lanes * lanes; /* the tiles' width */
    const int     pair = job->pairs ? 2 : 1;
    const size_t  size = sizeof(TN__REAL) / (size_t)pair;
    for (int64_t p = 0; p < f->k; p++)
        for (int64_t j = 0; j < whole * pair; j++) {
            const TN__REAL *unit = f->b + p * f->b_row + j / pair, x = TN__(number)(job, unit, (int)(j % pair));
            char           *to = (char *)(ws->clean + p * f->b_row) + (size_t)j * size;
            if (x - x == 0) memcpy(to, (const char *)unit + (size_t)(j % pair) * size, size);
            else memset(to, 0, size);
        }
}

/* Adds the terms of b that are not finite, for the weights that are not 0. */
static void TN__(add_nonfinite)(const attention_job *job, const TN__(product_args) * f)
{
    const int pair = job->pairs ? 2 : 1;
    for (int64_t p = 0; p < f->k; p++)
        for (int64_t j = 0; j < f->cols * pair; j++) {
            const int      h = (int)(j % pair);
            const TN__REAL x = TN__(number)(job, f->b + p * f->b_row + j / pair, h);
            if (x - x == 0) continue;
            for (int64_t r = 0; r < f->rows; r++) {
                const TN__REAL a = TN__(number)(job, f->a + r * f->a_row + p * f->a_col, h);
                if (a != 0) f->c[r * f->c_row + j / pair] += a * x;
            }
        }
}

/* A weight of 0 selects: its term is 0 whatever b contains. */
static inline void TN__(product)(const attention_job *job, const TN__(workspace) * ws, const block *b,
                                 const TN__(product_args) * f)
{
    if (!f->nonfinite) {
        TN__(tiles)(job, ws, b, f);
        return;
    }
    TN__(product_args) finite = *f;
    TN__(copy_finite)(job, ws, f);
    finite.b = ws->clean;
    TN__(tiles)(job, ws, b, &finite);
    TN__(add_nonfinite)(job, f);
}

/* s = a bᵀ for queries and keys that are in sight: rows [r, …) of a, b transposed; k terms. */
static inline void TN__(scores)(const attention_job *job, const TN__(workspace) * ws, const block *b, int64_t k,
                                TN__(lines) a, int64_t r, const TN__REAL *transposed, TN__REAL *s)
{
    TN__(product_args) f = {.of = SCORES, .rows = b->rows, .cols = b->keys, .first = true};
    f.k = job->pairs ? (k + 1) / 2 : k;
    f.a = a.p + r * a.row, f.a_row = a.row, f.a_col = 1, f.b = transposed, f.b_row = job->key_row;
    f.c = s, f.c_row = job->key_row;
    TN__(tiles)(job, ws, b, &f);
}

/* A sum weighted by s, the block's weights or their gradients: to = s x or sᵀ x, or added to `to` unless first. */
typedef struct {
    const TN__REAL *s;
    TN__(lines) x;
    int64_t   r, cols; /* of x: the block's first query, if its rows are queries; columns */
    TN__REAL *to;
    int64_t   to_row;
    bool      first, nonfinite; /* nonfinite: x */
} TN__(weighted);

static inline void TN__(over_keys)(const attention_job *job, const TN__(workspace) * ws, const block *b,
                                   const TN__(weighted) * w)
{
    TN__(product_args) f = {.of = OVER_KEYS, .rows = b->rows, .cols = w->cols, .k = b->keys};
    f.a = w->s, f.a_row = job->key_row, f.a_col = 1, f.b = w->x.p, f.b_row = w->x.row;
    f.c = w->to, f.c_row = w->to_row, f.first = w->first, f.nonfinite = w->nonfinite;
    if (job->pairs) {
        f.k = (b->keys + 1) / 2, f.a = ws->rounded, f.a_row = job->key_row / 2;
        job->pairs->pack(
            &(tn__pack_step){b->rows, b->keys, f.a_row, w->s, job->key_row, 1, ws->rounded, .terms_in_rows = true});
    }
    TN__(product)(job, ws, b, &f);
}
static inline void TN__(over_queries)(const attention_job *job, const TN__(workspace) * ws, const block *b,
                                      const TN__(weighted) * w)
{
    TN__(product_args) f = {.of = OVER_QUERIES, .rows = b->keys, .cols = w->cols, .k = b->rows};
    f.a = w->s, f.a_row = 1, f.a_col = job->key_row, f.b = w->x.p + w->r * w->x.row, f.b_row = w->x.row;
    f.c = w->to, f.c_row = w->to_row, f.first = w->first, f.nonfinite = w->nonfinite;
    if (job->pairs) {
        tn__pack_step s = {b->rows, b->keys, job->key_row, w->s, job->key_row, 1, ws->rounded, .terms_in_rows = false};
        f.k = (b->rows + 1) / 2, f.a = ws->rounded, f.b = w->x.p + w->r / 2 * w->x.row;
        if (job->pairs->a_rows) {
            job->kn->transpose(b->rows, b->keys, w->s, job->key_row, ws->clean, TRANSPOSED_ROW);
            f.a_row = TRANSPOSED_ROW / 2, f.a_col = 1;
            s = (tn__pack_step){b->keys,        b->rows, f.a_row,     ws->clean,
                                TRANSPOSED_ROW, 1,       ws->rounded, .terms_in_rows = true};
        }
        job->pairs->pack(&s);
    }
    TN__(product)(job, ws, b, &f);
}
#endif

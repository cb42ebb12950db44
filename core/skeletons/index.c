/* index.c — the skeletons that move elements and rows by index: gather and scatter-add along a dim, rows read and rows
 * added. The caller has checked the indices. Additions are in the order of the indices, for any number of threads: the
 * work is cut across the indexed dim, never along it. */
#include "core/tensor/strided_walk.h"
#include "core/base/bf16.h"
#include "core/skeletons/skeletons.h"

#include <string.h>

enum { GRAIN = 16384, COLUMNS = 64 };

static int64_t index_at(const tn_tensor *index, int64_t offset)
{
    const void *p = tn__ptr(index);
    return index->dtype == TN_I64 ? ((const int64_t *)p)[offset] : ((const int32_t *)p)[offset];
}

bool tn__index_check(const char *op, const char *what, const tn_tensor *index, int64_t limit)
{
    tn_shape s = index->l.shape;
    tn__walk w = {.nops = 1};
    for (int i = 0; i < s.n; i++) { /* along an expanded dim all elements are the first */
        if (index->l.stride[i] == 0) s.d[i] = tn__min_i64(s.d[i], 1);
        tn__walk_dim(&w, s.d[i], &index->l.stride[i]);
    }
    tn__walk_done(&w);
    const int64_t n = tn_shape_numel(s);
    const int64_t inner = w.size[w.nd - 1], step = w.stride[0][w.nd - 1];
    int64_t       at[TN_MAX_DIMS];
    for (int64_t i = 0; i < n; i += inner) {
        int64_t offset = tn__walk_at(&w, 0, i, at);
        for (int64_t k = 0; k < inner; k++) {
            int64_t v = index_at(index, offset + k * step);
            if (v >= 0 && v < limit) continue;
            tn_shape place = {.n = index->l.shape.n};
            int64_t  rest = i + k;
            for (int d = place.n - 1; d >= 0; d--) place.d[d] = rest % s.d[d], rest /= s.d[d];
            char text[192];
            return tn_raise_false(TN_EINDEX, "%s: %s %lld at %s is outside 0 … %lld", op, what, (long long)v,
                                  tn_shape_text(place, text, sizeof text), (long long)limit - 1);
        }
    }
    return true;
}

/* ---- element by element ------------------------------------------------------------------------------------------ */

typedef struct {
    tn_tensor       *y;
    const tn_tensor *x, *index;
    int64_t          n, ystep, istep, xstep; /* along dim */
    size_t           size;
    tn__combine      how;
    tn__walk         w; /* y, index, x over the other dims */
} job;

/* Sets the lines along dim: their length, and the operands' steps; the walk is over all other dims of index. */
static int64_t lines(job *j, int dim)
{
    const tn_shape s = j->index->l.shape;
    const bool     flat = s.n == 0;
    int64_t        count = 1;
    j->n = flat ? 1 : s.d[dim];
    j->istep = flat ? 0 : j->index->l.stride[dim];
    j->ystep = j->y->l.shape.n ? j->y->l.stride[dim] : 0;
    j->xstep = j->x->l.shape.n ? j->x->l.stride[dim] : 0;
    j->w.nops = 3;
    for (int i = 0; i < s.n; i++) {
        if (i == dim) continue;
        tn__walk_dim(&j->w, s.d[i], (int64_t[]){j->y->l.stride[i], j->index->l.stride[i], j->x->l.stride[i]});
        count *= s.d[i];
    }
    tn__walk_done(&j->w);
    return count;
}

#define MOVE(type)                                                           \
    do {                                                                     \
        type *restrict y = (type *)tn__ptr(j->y) + yo;                       \
        const type *restrict x = (const type *)tn__ptr(j->x) + xo;           \
        for (int64_t i = 0; i < n; i++) y[i * ys] = x[AT(io + i * is) * xs]; \
    } while (0)
#define AT(i) (wide ? wide[i] : narrow[i])

static void gather(int64_t from, int64_t to, void *user)
{
    const job     *j = user;
    const int64_t *wide = j->index->dtype == TN_I64 ? tn__ptr(j->index) : NULL;
    const int32_t *narrow = tn__ptr(j->index);
    const int64_t  n = j->n, ys = j->ystep, is = j->istep, xs = j->xstep;
    int64_t        at[TN_MAX_DIMS];
    for (int64_t line = from; line < to; line++) {
        int64_t yo = tn__walk_at(&j->w, 0, line, at), io = tn__walk_at(&j->w, 1, line, at),
                xo = tn__walk_at(&j->w, 2, line, at);
        switch (j->size) {
        case 1: MOVE(uint8_t); break;
        case 2: MOVE(uint16_t); break;
        case 4: MOVE(uint32_t); break;
        default: MOVE(uint64_t); break;
        }
    }
}

void tn__gather(tn_tensor *y, const tn_tensor *x, int dim, const tn_tensor *index)
{
    job j = {.y = y, .x = x, .index = index, .size = tn__dtype_bytes(x->dtype)};
    if (tn_shape_numel(index->l.shape) == 0) return;
    int64_t count = lines(&j, dim);
    tn_parallel_for(count, tn__max_i64(1, GRAIN / j.n), gather, &j);
}

/* y += x for n elements, in the dtype itself; see add_in_f32 for bf16 */
static void add(int64_t n, char *y, int64_t ys, const char *x, int64_t xs, tn_dtype dt)
{
#define ADD(type)                   \
    for (int64_t i = 0; i < n; i++) \
    ((type *)(void *)y)[i * ys] = (type)(((type *)(void *)y)[i * ys] + ((const type *)(const void *)x)[i * xs])
    switch (dt) {
    case TN_F32: ADD(float); break;
    case TN_F64: ADD(double); break;
    case TN_I64: ADD(uint64_t); break;
    case TN_I32: ADD(uint32_t); break;
    case TN_U8: ADD(uint8_t); break;
    case TN_BF16: break; /* does not come here */
    case TN_BOOL:
        for (int64_t i = 0; i < n; i++) y[i * ys] = y[i * ys] || x[i * xs];
        break;
    }
#undef ADD
}

static double combined(double y, double x, tn__combine how) /* NaN wins, as in tn_maximum */
{
    if (how == TN__MULTIPLY) return y * x;
    return y != y || (how == TN__LEAST ? y < x : y > x) ? y : x;
}
static int64_t combined_i64(int64_t y, int64_t x, tn__combine how)
{
    if (how == TN__MULTIPLY) return (int64_t)((uint64_t)y * (uint64_t)x); /* wraps */
    return (how == TN__LEAST ? y < x : y > x) ? y : x;
}

/* *y combined with *x. f32 and bf16 are multiplied in f64 and rounded: for f32 the same bits as a product in f32. */
static void combine(void *y, const void *x, tn_dtype dt, tn__combine how)
{
    if (how == TN__SET) memcpy(y, x, tn__dtype_bytes(dt));
    else if (how == TN__ADD) add(1, y, 1, x, 1, dt);
    else if (tn__is_float(dt)) tn__store(y, dt, combined(tn__load(y, dt), tn__load(x, dt), how));
    else {
        const int64_t v = combined_i64(tn__load_i64(y, dt), tn__load_i64(x, dt), how);
        tn__store_i64(y, dt, dt == TN_U8 ? (uint8_t)v : v); /* wraps, as i32 does there */
    }
}

static void scatter(int64_t from, int64_t to, void *user)
{
    const job     *j = user;
    const int64_t *wide = j->index->dtype == TN_I64 ? tn__ptr(j->index) : NULL;
    const int32_t *narrow = tn__ptr(j->index);
    const int64_t  size = (int64_t)j->size, n = j->n, ys = j->ystep, is = j->istep, xs = j->xstep;
    int64_t        at[TN_MAX_DIMS];
    for (int64_t line = from; line < to; line++) {
        int64_t yo = tn__walk_at(&j->w, 0, line, at), io = tn__walk_at(&j->w, 1, line, at),
                xo = tn__walk_at(&j->w, 2, line, at);
        char       *y = (char *)tn__ptr(j->y) + yo * size;
        const char *x = (const char *)tn__ptr(j->x) + xo * size;
        if (j->how == TN__ADD && j->y->dtype == TN_F32)
            for (int64_t i = 0; i < n; i++)
                ((float *)(void *)y)[AT(io + i * is) * ys] += ((const float *)(const void *)x)[i * xs];
        else
            for (int64_t i = 0; i < n; i++)
                combine(y + AT(io + i * is) * ys * size, x + i * xs * size, j->y->dtype, j->how);
    }
}

/* y += src by index in f32, rounded once: a sum in bf16 stops growing at 256 times one summand. whole: whole rows. */
static void add_in_f32(tn_tensor *y, int dim, const tn_tensor *index, const tn_tensor *src, bool whole, int64_t skip)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *sum = tn__new(TN_F32, y->l.shape), *wide = sum ? tn__new(TN_F32, src->l.shape) : NULL;
    if (wide) {
        tn__copy(sum, y), tn__copy(wide, src);
        if (whole) tn__add_rows(sum, dim, index, wide, skip);
        else tn__scatter(sum, dim, index, wide, TN__ADD);
        tn__copy(y, sum);
    }
    tn_scope_end(s);
}

void tn__scatter(tn_tensor *y, int dim, const tn_tensor *index, const tn_tensor *src, tn__combine how)
{
    if (how == TN__ADD && y->dtype == TN_BF16) {
        add_in_f32(y, dim, index, src, false, -1);
        return;
    }
    job j = {.y = y, .x = src, .index = index, .size = tn__dtype_bytes(y->dtype), .how = how};
    if (tn_shape_numel(index->l.shape) == 0) return;
    int64_t count = lines(&j, dim);
    tn_parallel_for(count, tn__max_i64(1, GRAIN / j.n), scatter, &j);
}

/* ---- whole rows: in `rows`, the indexed dim of `table` is replaced by the dims of index -------------------------- */

typedef struct {
    tn_tensor       *y;
    const tn_tensor *x, *index;
    int64_t          n, step, columns, skip; /* the rows; the table's step along dim; elements a row */
    tn__walk         at, w;                  /* index and rows over the index's dims; rows and table over the others */
} rows_job;

static void rows_setup(rows_job *j, const tn_tensor *table, const tn_tensor *rows, int dim)
{
    const tn__layout *index = &j->index->l, *t = &table->l, *r = &rows->l;
    const int         extra = r->shape.n - (t->shape.n ? t->shape.n - 1 : 0); /* dims of index in rows */
    j->n = tn_shape_numel(index->shape);
    j->step = t->shape.n ? t->stride[dim] : 0;
    j->columns = 1;
    j->at.nops = j->w.nops = 2;
    for (int k = 0; k < index->shape.n; k++)
        tn__walk_dim(&j->at, index->shape.d[k], (int64_t[]){index->stride[k], k < extra ? r->stride[dim + k] : 0});
    for (int i = 0; i < t->shape.n; i++) {
        if (i == dim) continue;
        tn__walk_dim(&j->w, t->shape.d[i], (int64_t[]){r->stride[i < dim ? i : i - 1 + extra], t->stride[i]});
        j->columns *= t->shape.d[i];
    }
    tn__walk_done(&j->at), tn__walk_done(&j->w);
}

/* Reads elements [from, to) of the row at `row` from the table's entry at `entry`, or adds them to the entry. */
static void along_row(const rows_job *j, char *row, char *entry, int64_t from, int64_t to, bool adding)
{
    const tn_dtype dt = j->y->dtype;
    const int64_t  size = (int64_t)tn__dtype_bytes(dt), inner = j->w.size[j->w.nd - 1];
    const int64_t  rs = j->w.stride[0][j->w.nd - 1], es = j->w.stride[1][j->w.nd - 1];
    int64_t        at[TN_MAX_DIMS];
    while (from < to) {
        int64_t n = tn__min_i64(to - from, inner - from % inner);
        char   *r = row + tn__walk_at(&j->w, 0, from, at) * size, *e = entry + tn__walk_at(&j->w, 1, from, at) * size;
        if (adding) add(n, e, es, r, rs, dt);
        else tn__convert(n, r, dt, rs, e, dt, es);
        from += n;
    }
}

/* Row i, and the table's entry that it belongs to; NULL: skip it. */
static char *row_at(const rows_job *j, const tn_tensor *rows, const tn_tensor *table, int64_t i, char **entry)
{
    const int64_t size = (int64_t)tn__dtype_bytes(j->y->dtype);
    int64_t       at[TN_MAX_DIMS], k = index_at(j->index, tn__walk_at(&j->at, 0, i, at));
    *entry = (char *)tn__ptr(table) + k * j->step * size;
    return k == j->skip ? NULL : (char *)tn__ptr(rows) + tn__walk_at(&j->at, 1, i, at) * size;
}

static void take_rows(int64_t from, int64_t to, void *user)
{
    const rows_job *j = user;
    for (int64_t i = from; i < to; i++) {
        char *entry, *row = row_at(j, j->y, j->x, i, &entry);
        along_row(j, row, entry, 0, j->columns, false);
    }
}

void tn__take_rows(tn_tensor *y, const tn_tensor *x, int dim, const tn_tensor *index)
{
    rows_job j = {.y = y, .x = x, .index = index, .skip = -1};
    if (tn_shape_numel(y->l.shape) == 0) return;
    rows_setup(&j, x, y, dim);
    tn_parallel_for(j.n, tn__max_i64(1, GRAIN / j.columns), take_rows, &j);
}

static void add_rows(int64_t from, int64_t to, void *user)
{
    const rows_job *j = user;
    const int64_t   first = from * COLUMNS, last = tn__min_i64(j->columns, to * COLUMNS);
    for (int64_t i = 0; i < j->n; i++) {
        char *entry, *row = row_at(j, j->x, j->y, i, &entry);
        if (row) along_row(j, row, entry, first, last, true);
    }
}

void tn__add_rows(tn_tensor *y, int dim, const tn_tensor *index, const tn_tensor *src, int64_t skip)
{
    if (y->dtype == TN_BF16) {
        add_in_f32(y, dim, index, src, true, skip);
        return;
    }
    rows_job j = {.y = y, .x = src, .index = index, .skip = skip};
    if (tn_shape_numel(src->l.shape) == 0) return;
    rows_setup(&j, y, src, dim);
    int64_t blocks = (j.columns + COLUMNS - 1) / COLUMNS;
    tn_parallel_for(blocks, tn__max_i64(1, GRAIN / (COLUMNS * tn__max_i64(1, j.n))), add_rows, &j);
}

/* copy.c — copies from one layout to another, with conversion between any two dtypes.
 *
 * The dims are processed in their memory order in y, so that y is written from front to back. If x has the opposite
 * order, as in a transpose, whole squares go through a buffer, so that x and y are both accessed by cache lines. */
#include "core/tensor/strided_walk.h"

#include <string.h>

enum { GRAIN = 16384, TILE = 64 };

typedef struct {
    tn_dtype ydt, xdt;
    char    *y, *x;
    tn__walk w;            /* operand 0 is y, 1 is x */
    int64_t  rows, strips; /* of squares: the dim that is dense in x, cut into strips */
    int64_t  yrow;         /* y's stride in it */
} job;

/* Copies elements [from, to) of the walk. */
static void lines(int64_t from, int64_t to, void *user)
{
    const job      *j = user;
    const tn__walk *w = &j->w;
    const int       last = w->nd - 1;
    int64_t         index[TN_MAX_DIMS], yo = tn__walk_at(w, 0, from, index), xo = tn__walk_at(w, 1, from, index);
    while (from < to) {
        const int64_t n = tn__min_i64(to - from, w->size[last] - index[last]);
        tn__convert(n, j->y + yo * (int64_t)tn__dtype_bytes(j->ydt), j->ydt, w->stride[0][last],
                    j->x + xo * (int64_t)tn__dtype_bytes(j->xdt), j->xdt, w->stride[1][last]);
        from += n, index[last] += n;
        yo += n * w->stride[0][last], xo += n * w->stride[1][last];
        for (int i = last; i > 0 && index[i] == w->size[i]; i--) { /* carry */
            yo += w->stride[0][i - 1] - index[i] * w->stride[0][i];
            xo += w->stride[1][i - 1] - index[i] * w->stride[1][i];
            index[i] = 0, index[i - 1]++;
        }
    }
}

/* `rows` by `cols` elements: y's rows are yrow apart, x's columns xcol. */
#define SQUARE(type)                                                                                          \
    static void square_##type(type *y, int64_t yrow, const type *x, int64_t xcol, int64_t rows, int64_t cols) \
    {                                                                                                         \
        type buffer[TILE][TILE];                                                                              \
        for (int64_t c = 0; c < cols; c++) memcpy(buffer[c], x + c * xcol, (size_t)rows * sizeof(type));      \
        for (int64_t r = 0; r < rows; r++)                                                                    \
            for (int64_t c = 0; c < cols; c++) y[r * yrow + c] = buffer[c][r];                                \
    }
SQUARE(uint8_t)
SQUARE(uint16_t)
SQUARE(uint32_t)
SQUARE(uint64_t)

/* Copies strips [from, to): a strip is TILE rows of one of the matrices that the walk's other dims count. */
static void squares(int64_t from, int64_t to, void *user)
{
    const job      *j = user;
    const tn__walk *w = &j->w;
    const int       last = w->nd - 1;
    const int64_t   cols = w->size[last], xcol = w->stride[1][last], bytes = (int64_t)tn__dtype_bytes(j->ydt);
    int64_t         index[TN_MAX_DIMS];
    for (int64_t s = from; s < to; s++) {
        const int64_t matrix = s / j->strips * cols, row = s % j->strips * TILE,
                      rows = tn__min_i64(TILE, j->rows - row);
        char *y = j->y + (tn__walk_at(w, 0, matrix, index) + row * j->yrow) * bytes;
        char *x = j->x + (tn__walk_at(w, 1, matrix, index) + row) * bytes;
        for (int64_t c = 0; c < cols; c += TILE) {
            const int64_t n = tn__min_i64(TILE, cols - c);
            void         *to_y = y + c * bytes, *at_x = x + c * xcol * bytes;
            switch (bytes) {
            case 1: square_uint8_t(to_y, j->yrow, at_x, xcol, rows, n); break;
            case 2: square_uint16_t(to_y, j->yrow, at_x, xcol, rows, n); break;
            case 4: square_uint32_t(to_y, j->yrow, at_x, xcol, rows, n); break;
            default: square_uint64_t(to_y, j->yrow, at_x, xcol, rows, n); break;
            }
        }
    }
}

/* The dim, other than the last, along which x is dense, if copying by squares is worthwhile; otherwise -1. */
static int dense_in_x(const job *j)
{
    const tn__walk *w = &j->w;
    const int       last = w->nd - 1;
    if (j->ydt != j->xdt || w->stride[0][last] != 1 || w->stride[1][last] <= 1 || w->size[last] < 8) return -1;
    for (int i = 0; i < last; i++)
        if (w->stride[1][i] == 1 && w->size[i] >= 8) return i;
    return -1;
}

static void take_out(job *j, int dim)
{
    tn__walk *w = &j->w;
    j->rows = w->size[dim], j->yrow = w->stride[0][dim];
    j->strips = (j->rows + TILE - 1) / TILE;
    for (int i = dim; i < w->nd - 1; i++)
        w->size[i] = w->size[i + 1], w->stride[0][i] = w->stride[0][i + 1], w->stride[1][i] = w->stride[1][i + 1];
    w->nd--;
}

void tn__copy(tn_tensor *y, const tn_tensor *x)
{
    const int     nd = y->l.shape.n;
    const int64_t n = tn_shape_numel(y->l.shape);
    if (n == 0) return;
    job j = {.y = tn__ptr(y), .x = tn__ptr(x), .ydt = y->dtype, .xdt = x->dtype, .w.nops = 2};
    int order[TN_MAX_DIMS];
    for (int i = 0; i < nd; i++) {
        int k = i;
        for (; k > 0 && y->l.stride[order[k - 1]] < y->l.stride[i]; k--) order[k] = order[k - 1];
        order[k] = i;
    }
    for (int i = 0; i < nd; i++)
        tn__walk_dim(&j.w, y->l.shape.d[order[i]], (int64_t[]){y->l.stride[order[i]], tn__stride_in(x, order[i], nd)});
    tn__walk_done(&j.w);
    const int dense = dense_in_x(&j);
    if (dense < 0) {
        tn_parallel_for(n, GRAIN, lines, &j);
        return;
    }
    take_out(&j, dense);
    int64_t strips = j.strips;
    for (int i = 0; i < j.w.nd - 1; i++) strips *= j.w.size[i];
    tn_parallel_for(strips, tn__max_i64(1, GRAIN / TILE / tn__max_i64(1, j.w.size[j.w.nd - 1])), squares, &j);
}

void tn__fill(tn_tensor *y, double value)
{
    tn__storage storage = {.data = &value};
    tn_tensor   one = {.dtype = TN_F64, .storage = &storage}; /* 0-d */
    tn__copy(y, &one);
}

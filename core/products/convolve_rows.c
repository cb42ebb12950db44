/* convolve_rows.c — convolutions with steps of 1 as products without columns. In a copy of the input with its padding,
 * rows of w elements, the inputs that a tap reads for the output positions of a block are one piece of a plane, if the
 * block has w positions in each row, of which the last few are computed for nothing. So row p of the second operand, of
 * y = w · x, is a piece of a channel that starts at the place of tap p. The chains are those of convolve.c. */
#include "core/base/parallel.h"
#include "core/products/convolve.h"
#include "core/products/gemm.h"
#include "core/tensor/layout.h"

#include <string.h>

enum {
    NEAR_INPUT = 1 << 16, /* elements of the input in a block: they stay in L2 */
    FEW_BLOCKS = 2        /* for each thread */
};

typedef struct {
    const tn_tensor *x, *w, *bias, *y;
    int64_t          n, c, o, in[2], out[2], pad[2], groups; /* sizes as in convolve.c */
    int64_t          depth, halo, width, rows, plane, cols;  /* of the copy: rows above, row, of outputs, channel; n */
    int64_t          each, sums;                             /* elements of a worker's memory, of the copy in it */
    const int64_t   *at;
    float           *memory;
} conv_rows;

/* Copies the inputs of the output rows from r0 on of image n, with padding; below the input, too. */
static void copy_input(const conv_rows *j, int64_t n, int64_t r0, float *to)
{
    const int64_t *step = j->x->l.stride;
    for (int64_t c = 0; c < j->c; c++) {
        const float *x = (const float *)tn__ptr(j->x) + n * step[0] + c * step[1];
        float       *line = to + c * j->plane;
        for (int64_t i = 0; i < j->rows + j->halo; i++, line += j->width) {
            const int64_t row = r0 + i - j->pad[0];
            const bool    in = row >= 0 && row < j->in[0];
            const int64_t left = in ? j->pad[1] : j->width, right = in ? j->width - left - j->in[1] : 0;
            for (int64_t k = 0; k < left; k++) line[k] = 0;
            if (in) memcpy(line + left, x + row * step[2], (size_t)j->in[1] * sizeof *line);
            for (int64_t k = 0; k < right; k++) line[left + j->in[1] + k] = 0;
        }
    }
}

static void convolve_blocks(int64_t from, int64_t to, void *user)
{
    const conv_rows *j = user;
    const int64_t    down = tn__ceil_div(j->out[0], j->rows), out = j->o / j->groups, in = j->c / j->groups;
    float *const copy = j->memory + tn__worker() * j->each, *const sums = copy + j->sums;
    for (int64_t b = from; b < to && !tn__self.error; b++) {
        const int64_t n = b / down, r0 = b % down * j->rows, rows = tn__min_i64(j->rows, j->out[0] - r0);
        copy_input(j, n, r0, copy);
        for (int64_t group = 0; group < j->groups; group++) {
            tn__gemm_call g = {.dtype = TN_F32, .ctype = TN_F32, .m = out, .k = j->depth, .alpha = 1, .b_at = j->at};
            g.n = tn__ceil_div((rows - 1) * j->width + j->out[1], j->cols) * j->cols;
            g.a = (const float *)tn__ptr(j->w) + group * out * j->depth, g.a_row = j->depth, g.a_col = 1;
            g.b = copy + group * in * j->plane, g.b_col = 1, g.c = sums, g.c_row = g.n, g.c_col = 1;
            if (j->bias) {
                const int64_t step = j->bias->l.stride[0];
                g.bias = (tn__gemm_side){.at = (float *)tn__ptr(j->bias) + group * out * step, .row = step};
            }
            if (!tn__gemm_run(&g)) return;
            float *y = (float *)tn__ptr(j->y) + ((n * j->o + group * out) * j->out[0] + r0) * j->out[1];
            for (int64_t o = 0; o < out; o++, y += j->out[0] * j->out[1])
                for (int64_t r = 0; r < rows; r++)
                    memcpy(y + r * j->out[1], sums + o * g.n + r * j->width, (size_t)j->out[1] * sizeof *y);
        }
    }
}

bool tn__convolve_rows(const tn__windows *g, const tn_tensor *x, const tn_tensor *w, const tn_tensor *bias,
                       tn_tensor *y)
{
    const int64_t *xs = x->l.shape.d, *ys = y->l.shape.d, *ks = g->size;
    conv_rows      j = {.x = x, .w = w, .bias = bias, .y = y, .n = xs[0], .c = xs[1], .o = ys[1]};
    j.in[0] = xs[2], j.in[1] = xs[3], j.out[0] = ys[2], j.out[1] = ys[3], j.groups = g->groups;
    j.pad[0] = g->padding[0], j.pad[1] = g->padding[1], j.cols = tn__gemm_of_rows(x->dtype);
    j.depth = j.c / j.groups * ks[0] * ks[1], j.halo = (ks[0] - 1) * g->dilation[0];
    j.width = j.out[1] + (ks[1] - 1) * g->dilation[1];
    if (!j.cols || ks[0] * ks[1] == 1 || g->stride[0] != 1 || g->stride[1] != 1 || j.o == j.groups) return false;
    if (x->l.stride[3] != 1 || !tn__layout_contiguous(&w->l) || !tn__layout_contiguous(&y->l)) return false;
    if (j.width > j.out[1] + j.out[1] / 4) return false; /* too many positions for nothing */

    j.rows = tn__min_i64(tn__max_i64(NEAR_INPUT / j.c / j.width - j.halo, 1), j.out[0]);
    j.plane = (j.rows + j.halo) * j.width;
    j.sums = (j.c * j.plane + j.cols + 15) / 16 * 16;
    j.each = j.sums + j.o / j.groups * (j.rows * j.width + j.cols);
    const int64_t    workers = tn_threads(), blocks = j.n * tn__ceil_div(j.out[0], j.rows);
    tn_tensor *const at = tn__new_owned(TN_I64, TN_SHAPE(j.depth));
    tn_tensor *const memory = at ? tn__new_owned(TN_F32, TN_SHAPE(workers, j.each)) : NULL;
    if (memory) {
        int64_t *p = tn__ptr(at);
        for (int64_t c = 0; c < j.c / j.groups; c++)
            for (int64_t t = 0; t < ks[0] * ks[1]; t++)
                *p++ = c * j.plane + t / ks[1] * g->dilation[0] * j.width + t % ks[1] * g->dilation[1];
        j.at = tn__ptr(at), j.memory = tn__ptr(memory);
        const int64_t end = j.c * j.plane;
        for (int64_t i = 0; i < workers; i++) /* read for nothing, after the last row */
            memset(j.memory + i * j.each + end, 0, (size_t)(j.sums - end) * sizeof(float));
        if (blocks < FEW_BLOCKS * workers) convolve_blocks(0, blocks, &j);
        else tn_parallel_for(blocks, 1, convolve_blocks, &j);
    }
    tn_drop(at), tn_drop(memory);
    return true;
}

/* int8_linear.c — products of rows with weights in int8, and of 4 to 6 bits. Each row of x is first rounded to 7 or 8
 * bits, once for all of the product, with one scale, or with weights of 4 to 6 bits one for each block of columns. A
 * task computes some rows by 64 columns: a panel stays in L1 while it is multiplied with all of its rows, which stay in
 * L2. Sums are integers, so neither tasks nor instruction sets change a bit. */
#include "core/base/parallel.h"
#include "core/products/cost.h"
#include "core/products/q8.h"

_Static_assert((int)TN__Q4_ROWS == TN__INT8_ROWS, "panels of both have the same rows");
enum { PANELS = 4, COLS = PANELS * TN__INT8_ROWS, BLOCK = 48 }; /* BLOCK: maximum rows of a task, whole micro-tiles */

typedef struct {
    const tn__q8           *w;
    const tn__kernel_table *kernels;
    const tn__int8_kernels *kn;
    const float            *x;           /* [rows, in], dense */
    int64_t                 rows, x_row; /* x_row: bytes of a quantised row */
    uint8_t                *q;           /* the quantised rows */
    float                  *scale;       /* of each row */
    int64_t                 row_blocks, column_blocks;
    char                   *y, *bias;
    int64_t                 bias_col, size; /* bytes of an element of y and bias */
    bool                    bf16;
    tn__act                 act;
} job;

static void quantize_rows(int64_t from, int64_t to, void *user)
{
    const job *j = user;
    for (int64_t i = from; i < to; i++)
        j->scale[i] = j->kn->quantize(j->w->in, j->x + i * j->w->in, j->q + i * j->x_row);
}

/* Rows [row, end), at most BLOCK, by the panels of columns `block`, as micro-tiles with as equal numbers of rows as
 * possible. */
static void multiply(const job *j, int64_t row, int64_t end, int64_t block)
{
    const tn__q8     *w = j->w;
    const int64_t     col = block * COLS, first = block * PANELS, panels = tn__min_i64(PANELS, w->panels - first);
    const int64_t     most = j->kn->rows, cols = tn__min_i64(COLS, w->out - col);
    const char *const bias = j->bias ? j->bias + col * j->bias_col * j->size : NULL;
    char *const       y = j->y + (row * w->out + col) * j->size;
    const bool        direct = j->kn->adds_bias && !j->act && !j->bf16 && j->bias_col == 1 && cols % TN__INT8_ROWS == 0;
    _Alignas(64) float sums[BLOCK * COLS];
    float *const       to = direct ? (float *)(void *)y : sums;
    tn__int8_step      s = {
             .groups = w->groups, .panel_bytes = w->panel, .x_row = j->x_row, .y_row = direct ? w->out : COLS};
    tn__epilogue_step e = {.acc = sums, .acc_row = COLS, .c_row = w->out, .c_col = 1, .alpha = 1};
    if (j->kn->begin) j->kn->begin(end - row, w->groups);
    for (int64_t p = 0; p < panels; p += s.panels) {
        int64_t tiles = tn__ceil_div(end - row, most);
        s.panels = tn__min_i64(tn__max_i64(j->kn->panels, 1), panels - p);
        s.panel = tn__q8_panel(w, first + p);
        if (direct && bias) s.bias = (const float *)(const void *)bias + p * TN__INT8_ROWS;
        for (int64_t i = row; i < end; i += s.rows, tiles--) {
            s.rows = tn__ceil_div(end - i, tiles);
            s.x = j->q + i * j->x_row, s.scale = j->scale + i;
            s.y = to + (i - row) * s.y_row + p * TN__INT8_ROWS;
            j->kn->product(&s);
        }
    }
    if (j->kn->end) j->kn->end();
    if (direct) return;
    e.rows = end - row, e.cols = cols, e.bf16 = j->bf16, e.act = j->act;
    e.bias = bias, e.bias_col = j->bias_col, e.c = y;
    j->kernels->gemm_f32->epilogue(&e);
}

/* Blocks of rows start at whole micro-tiles. */
static int64_t row_of(const job *j, int64_t block)
{
    const int64_t tiles = tn__ceil_div(j->rows, j->kn->rows);
    return tn__min_i64(j->rows, tiles * block / j->row_blocks * j->kn->rows);
}

static void tasks(int64_t from, int64_t to, void *user)
{
    const job *j = user;
    for (int64_t t = from; t < to; t++) {
        const int64_t b = t / j->column_blocks;
        multiply(j, row_of(j, b), row_of(j, b + 1), t % j->column_blocks);
    }
}

static void run(int64_t n, double seconds, void (*body)(int64_t, int64_t, void *), job *j)
{
    tn__compute_for(n, tn__worth_sharing(seconds) ? tn__cost_grain(seconds, n, tn_threads()) : n, body, j);
}

void tn__int8_linear(int64_t rows, const float *x, const tn__q8 *w, const tn_tensor *bias, tn__act act, tn_tensor *y,
                     const tn__kernel_table *kernels)
{
    job j = {.w = w,
             .kernels = kernels,
             .kn = w->kind == TN__INT8 ? tn__int8(kernels) : &kernels->q4[w->kind],
             .x = x,
             .rows = rows,
             .act = act,
             .y = tn__ptr(y),
             .bias_col = 1};
    if (bias) j.bias = tn__ptr(bias), j.bias_col = bias->l.stride[0];
    j.bf16 = y->dtype == TN_BF16, j.size = (int64_t)tn__dtype_bytes(y->dtype);
    j.x_row = w->groups * j.kn->bytes;
    const size_t scales = (size_t)rows * sizeof(float), bytes = scales + (size_t)(rows * j.x_row);
    if (!(j.scale = tn__mem_get(bytes))) return;
    j.q = (uint8_t *)(j.scale + rows);
    j.row_blocks = (rows + BLOCK - 1) / BLOCK, j.column_blocks = (w->panels + PANELS - 1) / PANELS;
    const double inputs = (double)rows * (double)w->in, terms = inputs * (double)w->out;
    run(rows, inputs * 2e-10, quantize_rows, &j);
    run(j.row_blocks * j.column_blocks, terms * tn__cost_term + (double)w->panels * (double)w->panel * tn__cost_byte,
        tasks, &j);
    tn__mem_put(j.scale, bytes);
}

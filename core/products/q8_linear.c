/* q8_linear.c — products of rows with weights of 8 bits or f16.
 *
 * With few rows, each panel is multiplied in place: it is read once, in one stream, and the product is bound by memory
 * bandwidth. With many rows it is bound by arithmetic: a task converts some panels to f32, in L2, and calls gemm.c.
 * Either way an element is the same chain of multiply-adds, so that neither the number of rows nor of threads changes
 * its bits, which are those of f32 weights with the same values. */
#include "core/products/cost.h"
#include "core/products/gemm.h"
#include "core/products/q8.h"
#include "core/base/bf16.h"
#include "core/base/parallel.h"

enum {
    FEW_ROWS = 16,         /* multiplied with a panel in place: with more, converting it once to f32 is less work */
    PANEL_BYTES = 1 << 19, /* of panels in f32 that a task holds at a time: half of L2 */
    MOST_PANELS = 3        /* 192 columns: four of the widest micro-tiles */
};

typedef struct {
    const tn__q8           *w;
    const tn__kernel_table *kernels;
    const tn__q8_kernels   *kn; /* for this kind of weights */
    const float            *x;  /* [rows, in], dense */
    int64_t                 rows;
    char                   *y; /* [rows, out], dense */
    const char             *bias;
    int64_t                 bias_col, size; /* bytes of an element of y and bias */
    bool                    bf16;
    tn__act                 act;
    float                  *space;   /* one for each thread */
    int64_t                 at_once; /* panels of a task, if there are many rows */
} job;

/* Multiplies panels [from, to) by a few rows. */
static void few(int64_t from, int64_t to, void *user)
{
    const job         *j = user;
    const tn__q8      *w = j->w;
    _Alignas(64) float sums[FEW_ROWS * TN__Q8_PANEL];
    tn__q8_step        s = {.rows = j->rows, .groups = w->groups, .x = j->x, .x_row = w->in};
    tn__epilogue_step  e = {.rows = j->rows, .acc = sums, .acc_row = TN__Q8_PANEL, .c_row = w->out, .c_col = 1};
    s.y = sums, s.y_row = TN__Q8_PANEL;
    e.bias_col = j->bias_col, e.bf16 = j->bf16, e.act = j->act, e.alpha = 1;
    for (int64_t p = from; p < to; p++) {
        const int64_t col = p * TN__Q8_PANEL;
        s.blocks = tn__q8_panel(w, p);
        j->kn->product(&s);
        e.cols = tn__min_i64(TN__Q8_PANEL, w->out - col);
        e.c = j->y + col * j->size, e.bias = j->bias ? j->bias + col * j->bias_col * j->size : NULL;
        j->kernels->gemm_f32->epilogue(&e);
    }
}

/* Tasks [from, to), each of some panels by all rows. */
static void many(int64_t from, int64_t to, void *user)
{
    const job    *j = user;
    const tn__q8 *w = j->w;
    float *const  b = j->space + tn__worker() * w->in * j->at_once * TN__Q8_PANEL;
    for (int64_t t = from; t < to; t++) {
        const int64_t first = t * j->at_once, panels = tn__min_i64(j->at_once, w->panels - first);
        const int64_t col = first * TN__Q8_PANEL, cols = tn__min_i64(panels * TN__Q8_PANEL, w->out - col);
        for (int64_t p = 0; p < panels; p++)
            j->kn->widen(w->groups, tn__q8_panel(w, first + p), b + p * TN__Q8_PANEL, panels * TN__Q8_PANEL);
        tn__gemm_call g = {.dtype = TN_F32, .ctype = j->bf16 ? TN_BF16 : TN_F32, .alpha = 1, .act = j->act};
        g.m = j->rows, g.n = cols, g.k = w->in, g.kernels = j->kernels;
        g.a = j->x, g.a_row = w->in, g.a_col = 1;
        g.b = b, g.b_row = panels * TN__Q8_PANEL, g.b_col = 1;
        g.c = j->y + col * j->size, g.c_row = w->out, g.c_col = 1;
        if (j->bias) g.bias.at = (void *)(uintptr_t)(j->bias + col * j->bias_col * j->size), g.bias.col = j->bias_col;
        if (!tn__gemm_run(&g)) return;
    }
}

/* x as dense f32: itself, or a copy that the caller drops. NULL: raised. */
static const float *dense_rows(const tn_tensor *x, tn_tensor **copy)
{
    *copy = NULL;
    if (x->dtype == TN_F32 && tn_is_contiguous(x)) return tn__ptr(x);
    *copy = tn__new_owned(TN_F32, x->l.shape);
    if (!*copy) return NULL;
    tn__copy(*copy, x);
    return tn__ptr(*copy);
}

bool tn__q8_linear(const tn_tensor *x, const tn__q8 *w, const tn_tensor *bias, tn__act act, tn_tensor *y,
                   const tn__kernel_table *kernels)
{
    tn_tensor *copy;
    job        j = {.w = w, .kernels = kernels, .act = act, .bf16 = y->dtype == TN_BF16, .y = tn__ptr(y)};
    j.kn = w->kind == TN__F16 ? kernels->f16 : kernels->q8;
    j.rows = tn_shape_numel(x->l.shape) / w->in, j.size = (int64_t)tn__dtype_bytes(y->dtype);
    if (bias) j.bias = tn__ptr(bias), j.bias_col = bias->l.stride[0];
    if (j.rows == 0) return true;
    if (!(j.x = dense_rows(x, &copy))) return false;
    const double bytes = (double)w->panels * (double)w->panel;
    if (w->kind == TN__INT8 || w->kind < TN__Q4_KINDS) tn__int8_linear(j.rows, j.x, w, bias, act, y, kernels);
    else if (j.rows <= FEW_ROWS) {
        const double  time = tn__cost_byte * bytes;
        const int64_t parts = tn__max_i64(1, tn__min_i64(tn_threads(), (int64_t)(time / tn__cost_task)));
        if (parts > 1) tn_parallel_for(w->panels, tn__ceil_div(w->panels, parts), few, &j); /* a stream for each */
        else few(0, w->panels, &j);
    } else {
        const int64_t threads = tn_threads(), each = w->in * TN__Q8_PANEL * (int64_t)sizeof(float);
        j.at_once = tn__max_i64(1, tn__min_i64(MOST_PANELS, PANEL_BYTES / each));
        j.at_once = tn__min_i64(j.at_once, tn__ceil_div(w->panels, threads));
        const size_t space = (size_t)(threads * j.at_once * each);
        if ((j.space = tn__mem_get(space))) {
            tn_parallel_for(tn__ceil_div(w->panels, j.at_once), 1, many, &j);
            tn__mem_put(j.space, space);
        }
    }
    tn_drop(copy);
    return tn_error() == TN_OK;
}

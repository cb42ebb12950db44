/* gemm_tiles.c — a task of a product: a block of c, micro-tile by micro-tile. */
#include "core/products/gemm_tiles.h"

#include <string.h>

/* Sets the address of a strip of a for the kernel: packed, or in place. */
static void place_a(const tn__gemm_plan *plan, const char *a, int64_t k0, int64_t row, const char *packed,
                    tn__gemm_step *step)
{
    const tn__gemm_call *g = &plan->call;
    if (plan->packs_a) step->a = packed;
    else step->a = a + (row * g->a_row + k0 * plan->pair * g->a_col) * plan->in_bytes;
    if (!plan->packs_a) step->a_row = g->a_row / plan->pair, step->a_col = plan->pair == 1 ? g->a_col : 1;
    else if (plan->a_columns && plan->kernels->a_rows) step->a_row = step->k, step->a_col = 1;
    else if (plan->a_columns) step->a_row = 1, step->a_col = step->mr;
    else step->a_row = step->k + TN__GEMM_PAD, step->a_col = 1;
}

/* The epilogue of the block of c at (row, col); acc: its sums, NULL: none. */
void tn__gemm_finish(const tn__gemm_plan *plan, const tn__gemm_operands *m, int64_t row, int64_t col, int64_t rows,
                     int64_t cols, void *acc, int64_t acc_row)
{
    const tn__gemm_call *g = &plan->call;
    if (acc && plan->sums_are_c && !m->bias) {
        char *c = m->c + (row * g->c_row + col) * plan->out_bytes;
        for (int64_t r = 0; r < rows; r++, c += g->c_row * plan->out_bytes)
            memcpy(c, (const char *)acc + r * acc_row * plan->out_bytes, (size_t)(cols * plan->out_bytes));
        return;
    }
    tn__epilogue_step s = {.rows = rows, .cols = cols, .acc = acc, .acc_row = acc_row};
    s.alpha = g->alpha, s.beta = g->beta, s.act = g->act, s.bf16 = g->ctype == TN_BF16;
    s.c = m->c + (row * g->c_row + col * g->c_col) * plan->out_bytes, s.c_row = g->c_row, s.c_col = g->c_col;
    if (m->bias) s.bias = m->bias + (row * g->bias.row + col * g->bias.col) * plan->out_bytes;
    if (m->pre) s.pre = m->pre + (row * g->pre.row + col * g->pre.col) * plan->out_bytes;
    if (m->old) s.old = m->old + (row * g->old.row + col * g->old.col) * plan->out_bytes;
    s.bias_row = g->bias.row, s.bias_col = g->bias.col, s.pre_row = g->pre.row, s.pre_col = g->pre.col;
    s.old_row = g->old.row, s.old_col = g->old.col;
    plan->kernels->epilogue(&s);
}

/* Bytes of dense memory; NULL: none. */
typedef struct {
    const char *at;
    int64_t     bytes;
} region;

/* Panels of equal width next to each other: addresses are computed once for all their tiles, which differ by offsets.
 * In products of 64 steps of k that was a tenth of the time. */
typedef struct {
    int64_t     col, width, panels;
    const char *b;             /* the first panel, in the block of k */
    int64_t     b_row, b_next; /* elements between its rows, bytes to the next panel */
    bool        whole;         /* columns of c without padding, in the last block of k */
} panel_run;
enum { RUNS = 8 }; /* of a task, at most: fewer than NV panels are narrower, and the last one may have padding */

/* Strips [s0, s1) by panels [p0, p1) of one matrix. */
typedef struct {
    const tn__gemm_job      *job;
    const tn__gemm_plan     *plan;
    const tn__gemm_operands *m;
    int64_t                  s0, s1, p0, p1;
    int64_t                  row0, col0, cols;                  /* position in c; cols: up to whole vectors */
    char                    *packed_b, *packed_a, *sums, *tile; /* the task's workspace */

    /* the current block of k: steps [k0, k0 + kc) */
    int64_t     k0, kc;
    bool        last;
    panel_run   run[RUNS];
    int         runs;
    const char *bias;     /* that the tile kernel adds to strip s, from column 0; NULL: none */
    region      next[2];  /* dense data that the next block or task reads; prefetched by the tile kernel, */
    int64_t     per_step; /* as many bytes with each step of k */
    int        *begun;    /* the mr of the last call of the kernel's begin */
} tile_task;

/* Address of step k0 of the panel at column col in a kept or shared b, in a block of kc steps. */
static const char *shared_b_at(const tn__gemm_job *job, int64_t k0, int64_t kc, int64_t col)
{
    const tn__gemm_plan *plan = job->plan;
    return job->shared_b + (k0 * plan->vectors * plan->kernels->lanes + col * kc) * plan->unit_bytes;
}

/* The part of a kept b that is read after this block: the next block of the same panels, or the panels of the next
 * task. It is prefetched while all strips but the first are computed, whose own lines are in L2. */
static region next_kept(const tile_task *t)
{
    const tn__gemm_plan *plan = t->plan;
    const int64_t        k1 = t->k0 + t->kc;
    if (k1 == plan->steps && t->p1 == plan->panel.parts) return (region){NULL, 0};
    const int64_t k = k1 < plan->steps ? k1 : 0;
    const char   *at =
        shared_b_at(t->job, k, tn__min_i64(plan->kc, plan->steps - k), tn__panel_at(plan, k ? t->p0 : t->p1));
    return (region){at, t->cols * plan->unit_bytes * t->kc};
}

/* True if the last panel, which ends with padding, may instead start as many columns earlier: it is then read in place,
 * and writes some columns of c a second time, with the same bits. */
static bool moves_last(const tile_task *t)
{
    const tn__gemm_plan *plan = t->plan;
    const int64_t        width = t->col0 + t->cols - tn__panel_at(plan, t->p1 - 1);
    return !plan->packs_b && plan->sums_are_c && plan->steps == plan->kc && plan->call.n - width >= t->col0;
}

/* Sets the address of a run's panels of b for the kernel: packed, or in place. */
static void place_b(const tile_task *t, panel_run *r)
{
    const tn__gemm_plan *plan = t->plan;
    r->b_row = r->width, r->b_next = r->width * t->kc * plan->unit_bytes;
    if (plan->shares_b) r->b = shared_b_at(t->job, t->k0, t->kc, r->col);
    else if (plan->packs_b) r->b = t->packed_b + (r->col - t->col0) * t->kc * plan->unit_bytes;
    else if (r->col + r->width > plan->call.n) r->b = t->packed_b;
    else {
        r->b = t->m->b + ((plan->call.b_at ? 0 : t->k0 * plan->call.b_row) + r->col) * plan->in_bytes;
        r->b_row = plan->call.b_row, r->b_next = r->width * plan->in_bytes;
    }
}

/* Divides the task's panels into runs. */
static void find_runs(tile_task *t)
{
    const tn__gemm_plan *plan = t->plan;
    const bool           even = !plan->panel.rest, padded = t->col0 + t->cols > plan->call.n;
    const int64_t        p1 = t->p1 - padded; /* of the runs without padding */
    int64_t              col = t->col0;
    t->runs = 0;
    for (int64_t p = t->p0, from = p; p < t->p1; from = p) {
        const int64_t width = tn__panel_at(plan, p + 1) - col;
        panel_run    *r = &t->run[t->runs++];
        for (p++; p < p1 && (even || tn__panel_at(plan, p + 1) == col + (p + 1 - from) * width);) p = even ? p1 : p + 1;
        *r = (panel_run){.col = col, .width = width, .panels = p - from};
        col += r->panels * width;
        if (col > plan->call.n && moves_last(t)) r->col = plan->call.n - width, col = plan->call.n;
        r->whole = t->last && col <= plan->call.n;
        place_b(t, r);
    }
}

/* Spreads the prefetches over all tiles of the block but those of the first strip. One line with each step is more than
 * memory delivers, and the tiles would wait for their own lines. */
static int64_t bytes_per_step(const tile_task *t)
{
    const int64_t bytes = tn__max_i64(t->next[0].bytes, 0) + tn__max_i64(t->next[1].bytes, 0);
    const int64_t tiles = (t->s1 - t->s0 - 1) * (t->p1 - t->p0);
    return tn__min_i64(64, tn__ceil_div(bytes, tn__max_i64(tiles, 1) * tn__max_i64(t->kc, 1)));
}

/* Starts a block of k: packs b if this task must. */
static void prepare_block(tile_task *t, int64_t k0)
{
    const tn__gemm_plan *plan = t->plan;
    t->k0 = k0, t->kc = tn__min_i64(plan->kc, plan->steps - k0), t->last = k0 + t->kc == plan->steps;
    if (plan->packs_b && !plan->shares_b) tn__gemm_pack_b(plan, t->m->b, k0, t->kc, t->p0, t->p1, t->packed_b);
    else if (!plan->packs_b && t->col0 + t->cols > plan->call.n && !moves_last(t)) /* only the last panel */
        tn__gemm_pack_b(plan, t->m->b, k0, t->kc, t->p1 - 1, t->p1, t->packed_b);
    find_runs(t);
    if (plan->keeps_b) t->next[0] = next_kept(t);
    t->per_step = bytes_per_step(t);
}

/* A strip of a: packed if this task must; sets its address for the kernel. */
static void prepare_strip(const tile_task *t, int64_t s, int64_t row, tn__gemm_step *step)
{
    const tn__gemm_plan *plan = t->plan;
    const int64_t        group = s - (s - t->s0) % plan->a_strips;
    const char          *packed = t->packed_a + (row - tn__strip_at(plan, group)) * t->kc * plan->unit_bytes;
    if (plan->packs_a && !plan->shares_a && s == group)
        tn__gemm_pack_a(plan, t->m->a, t->k0, t->kc, s, tn__min_i64(s + plan->a_strips, t->s1), t->packed_a);
    if (plan->shares_a) packed = t->job->shared_a + (t->k0 * plan->call.m + row * t->kc) * plan->unit_bytes;
    place_a(plan, t->m->a, t->k0, row, packed, step);
    if (!plan->packs_a && s + 1 < t->s1) tn__gemm_prefetch_a(plan, t->m->a, t->k0, t->kc, s + 1);
}

static void fill_f32(float *to, int64_t n, float v)
{
    for (int64_t i = 0; i < n; i++) to[i] = v;
}

static void fill_f64(double *to, int64_t n, double v)
{
    for (int64_t i = 0; i < n; i++) to[i] = v;
}

/* The bias that the kernel adds to the strip at row, from column 0: in place or, if it is one number for each row, as a
 * vector for each row. */
static const char *place_bias(const tile_task *t, int64_t row, void *vectors, tn__gemm_step *step)
{
    const tn__gemm_plan *plan = t->plan;
    const tn__gemm_side *side = &plan->call.bias;
    const int64_t        lanes = plan->kernels->lanes, size = plan->out_bytes;
    const char          *bias = t->m->bias;
    if (!bias || !plan->sums_are_c) return NULL;
    bias += row * side->row * size;
    step->bias_row = side->row, step->bias_col = lanes;
    if (side->col == 1) return bias;
    step->bias_row = lanes, step->bias_col = 0;
    for (int64_t i = 0; i < step->mr; i++)
        if (size == sizeof(float)) fill_f32((float *)vectors + i * lanes, lanes, ((const float *)bias)[i * side->row]);
        else fill_f64((double *)vectors + i * lanes, lanes, ((const double *)bias)[i * side->row]);
    return vectors;
}

/* Prefetches the lines of c and `pre` that the tile at (row, col) will write: a cache miss takes as long as a tile. */
static void prefetch_output(const tile_task *t, int64_t row, int64_t col, int64_t rows, int64_t width)
{
    const tn__gemm_call *g = &t->plan->call;
    const int64_t        size = t->plan->out_bytes;
    if (g->c_col == 1)
        tn__prefetch_rows(t->m->c + (row * g->c_row + col) * size, rows, g->c_row * size, width * size, true);
    if (t->m->pre && g->pre.col == 1)
        tn__prefetch_rows(t->m->pre + (row * g->pre.row + col) * size, rows, g->pre.row * size, width * size, true);
}

/* Where the lines of the next data start that a tile prefetches; NULL: none. */
static const char *next_lines(tile_task *t)
{
    region     *r = &t->next[t->next[0].bytes <= 0];
    const char *at = r->at;
    if (r->bytes <= 0) return NULL;
    r->at += t->kc * t->per_step, r->bytes -= t->kc * t->per_step;
    return at;
}

/* Computes the tiles of the strip at row and of n panels of a run, from panel i on. Their sums go to the next block of
 * k, or directly to c if there is no epilogue, or through a tile in the workspace. All panels of a strip reuse one
 * step, set member by member: copying the struct would load, 16 bytes at a time, what narrower stores have just
 * written, and the CPU cannot forward that (a stall a tile, 5 % of a training step). */
static void compute_tiles(tile_task *t, const panel_run *r, int64_t i, int64_t n, int64_t row, tn__gemm_step *step)
{
    const tn__gemm_plan *plan = t->plan;
    const tn__gemm_call *g = &plan->call;
    const int64_t        width = r->width;
    if (plan->kernels->begin && *t->begun != step->mr) plan->kernels->begin(*t->begun = step->mr);
    int64_t col = r->col + i * width, to_next = width * plan->unit_bytes;
    step->to_bf16 = r->whole && plan->rounds_in_tile && step->mr == plan->kernels->mr;
    const bool  straight = step->to_bf16 || (r->whole && plan->sums_are_c), ahead = row > t->row0;
    char *const sum = t->sums + ((row - t->row0) * t->cols + (col - t->col0)) * plan->unit_bytes;
    step->b = r->b + i * r->b_next, step->b_row = r->b_row, step->nv = (int)(width / plan->kernels->lanes);
    step->from = t->k0 ? sum : NULL, step->from_row = t->cols;
    step->b_at = g->b_at ? g->b_at + t->k0 : NULL;
    void (*const tile)(const tn__gemm_step *) = g->b_at ? plan->kernels->tile_of_rows : plan->kernels->tile;
    if (!t->last) step->to = sum, step->to_row = t->cols;
    else if (straight) {
        step->to = t->m->c + (row * g->c_row + col * g->c_col) * plan->out_bytes, step->to_row = g->c_row;
        to_next = width * plan->out_bytes;
    } else step->to = t->tile, step->to_row = width, to_next = 0;
    step->bias = straight && t->bias ? t->bias + col * g->bias.col * plan->out_bytes : NULL;
    for (;; col += width) {
        step->prefetch = ahead ? next_lines(t) : NULL, step->per_step = t->per_step;
        if (t->last) prefetch_output(t, row, col, step->mr, width);
        tile(step);
        if (t->last && !straight)
            tn__gemm_finish(plan, t->m, row, col, step->mr, tn__min_i64(width, g->n - col), t->tile, width);
        if (!--n) return;
        step->b = (const char *)step->b + r->b_next, step->to = (char *)step->to + to_next;
        if (step->from) step->from = (const char *)step->from + width * plan->unit_bytes;
        if (step->bias) step->bias = (const char *)step->bias + width * g->bias.col * plan->out_bytes;
    }
}

/* k = 0: the result of a product without terms. */
static void finish_empty(const tile_task *t)
{
    const tn__gemm_plan *plan = t->plan;
    const tn__gemm_call *g = &plan->call;
    if (!g->bias.at && !g->pre.at && !g->act) { /* no sum, so that beta · -0 is -0 */
        const int64_t cols = tn__min_i64(t->col0 + t->cols, g->n) - t->col0;
        tn__gemm_finish(plan, t->m, t->row0, t->col0, tn__strip_at(plan, t->s1) - t->row0, cols, NULL, 0);
        return;
    }
    for (int64_t s = t->s0; s < t->s1; s++) {
        const int64_t row = tn__strip_at(plan, s), rows = tn__strip_at(plan, s + 1) - row;
        for (int64_t p = t->p0; p < t->p1; p++) {
            const int64_t col = tn__panel_at(plan, p), width = tn__panel_at(plan, p + 1) - col;
            memset(t->tile, 0, (size_t)(rows * width * plan->unit_bytes));
            tn__gemm_finish(plan, t->m, row, col, rows, tn__min_i64(width, g->n - col), t->tile, width);
        }
    }
}

/* A strip after the other: it stays in L1, and the block of b in L2. */
static void run_strips(tile_task *t)
{
    _Alignas(64) char    vectors[TN__GEMM_BIAS];
    const tn__gemm_plan *plan = t->plan;
    tn__gemm_step        step = {.k = t->kc};
    for (int64_t s = t->s0; s < t->s1; s++) {
        const int64_t row = tn__strip_at(plan, s);
        step.mr = (int)(tn__strip_at(plan, s + 1) - row);
        prepare_strip(t, s, row, &step);
        t->bias = t->last ? place_bias(t, row, vectors, &step) : NULL;
        for (int i = 0; i < t->runs; i++) compute_tiles(t, &t->run[i], 0, t->run[i].panels, row, &step);
    }
    t->bias = NULL; /* it was in `vectors` */
}

/* A panel of b after the other: it stays in L1, and a group of packed strips in L2. So b is read from L3 once for each
 * group, and its block may be large: a is packed fewer times. */
static void run_groups(tile_task *t)
{
    _Alignas(64) char    vectors[TN__GEMM_BIAS];
    const tn__gemm_plan *plan = t->plan;
    for (int64_t s0 = t->s0, n; s0 < t->s1; s0 += n) {
        tn__gemm_step step[TN__GEMM_GROUP];
        n = tn__min_i64(plan->group, t->s1 - s0);
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = tn__strip_at(plan, s0 + i);
            step[i] = (tn__gemm_step){.mr = (int)(tn__strip_at(plan, s0 + i + 1) - row), .k = t->kc};
            prepare_strip(t, s0 + i, row, &step[i]);
        }
        for (const panel_run *r = t->run; r < t->run + t->runs; r++)
            for (int64_t p = 0; p < r->panels; p++)
                for (int64_t i = 0, row = tn__strip_at(plan, s0); i < n; row += step[i++].mr) {
                    t->bias = t->last ? place_bias(t, row, vectors, &step[i]) : NULL;
                    compute_tiles(t, r, p, 1, row, &step[i]);
                }
    }
    t->bias = NULL;
}

void tn__gemm_tiles(const tn__gemm_job *job, char *workspace, const tn__gemm_operands *m, const tn__gemm_block *block,
                    const tn__gemm_operands *next, int *begun)
{
    const tn__gemm_plan *plan = job->plan;
    tile_task            t;
    t.job = job, t.plan = plan, t.m = m, t.begun = begun;
    t.s0 = block->s0, t.s1 = block->s1, t.p0 = block->p0, t.p1 = block->p1;
    t.row0 = tn__strip_at(plan, t.s0), t.col0 = tn__panel_at(plan, t.p0), t.cols = tn__panel_at(plan, t.p1) - t.col0;
    t.packed_b = workspace, t.packed_a = t.packed_b + plan->ws.b;
    t.sums = t.packed_a + plan->ws.a, t.tile = t.sums + plan->ws.sums;
    t.next[0] = next && next->b != m->b ? (region){next->b, plan->next_b} : (region){NULL, 0};
    t.next[1] = next && next->a != m->a ? (region){next->a, plan->next_a} : (region){NULL, 0};
    for (int64_t k0 = 0; k0 < plan->steps; k0 += plan->kc) {
        prepare_block(&t, k0);
        if (plan->group > 1) run_groups(&t);
        else run_strips(&t);
    }
    if (plan->call.k == 0) finish_empty(&t);
}

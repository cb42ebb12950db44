/* gemm.c — matrix products, after BLIS.
 *
 * The result is cut into micro-tiles of MR rows (a strip) by NV vectors of columns (a panel), which a kernel keeps in
 * registers while k runs. A task is a block of strips and panels; tasks run in parallel and share only their inputs. In
 * a task k is cut into blocks of kc, so that the block of b [kc, columns] stays in L2 and the strip of a [MR, kc] in
 * L1. A kernel reads a element by element, so a is usually read in place; it reads b by vectors along a row: dense rows
 * are read in place, other layouts are first packed into panels, transposed if needed, and zero-filled to whole
 * vectors.
 *
 * Each element of c is one chain of multiply-adds, p = 0 … k-1, started from 0: from one block of k to the next the
 * sums go through memory in full precision, and the epilogue (alpha, bias, activation, beta) is applied once, at the
 * end. So the bits depend on k, the dtype and the kernels alone, and every choice below (what is packed, where the cuts
 * are, which operand's rows run along the vectors) only affects speed. */
#include "core/products/gemm_plan.h"
#include "core/base/caches.h"
#include "core/base/parallel.h"
#include "core/products/packed.h"

#include <string.h>

enum {
    SMALL_BYTES = 8 << 10, /* bytes of workspace on the stack */
    GROUP = 128            /* rows in a task of share_a */
};

/* True if b is much larger than L2, and streams. */
static bool streams(const tn__gemm_plan *plan)
{
    return plan->call.n * plan->call.k >= 2 * tn__caches().l2 / plan->in_bytes;
}

/* A product in progress: its plan and its memory. */
typedef struct {
    const tn__gemm_plan *plan;
    char                *shared_b, *shared_a; /* packed for all tasks */
    char                *workspaces;          /* one for each thread */
} gemm_job;

/* One matrix of the batch. */
typedef struct {
    const char *a, *b;
    char       *c, *bias, *pre, *old;
} operands;

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
static void finish(const tn__gemm_plan *plan, const operands *m, int64_t row, int64_t col, int64_t rows, int64_t cols,
                   void *acc, int64_t acc_row)
{
    const tn__gemm_call *g = &plan->call;
    tn__epilogue_step    s = {.rows = rows, .cols = cols, .acc = acc, .acc_row = acc_row};
    s.alpha = g->alpha, s.beta = g->beta, s.act = g->act, s.bf16 = g->ctype == TN_BF16;
    s.c = m->c + (row * g->c_row + col * g->c_col) * plan->out_bytes, s.c_row = g->c_row, s.c_col = g->c_col;
    if (m->bias) s.bias = m->bias + (row * g->bias.row + col * g->bias.col) * plan->out_bytes;
    if (m->pre) s.pre = m->pre + (row * g->pre.row + col * g->pre.col) * plan->out_bytes;
    if (m->old) s.old = m->old + (row * g->old.row + col * g->old.col) * plan->out_bytes;
    s.bias_row = g->bias.row, s.bias_col = g->bias.col, s.pre_row = g->pre.row, s.pre_col = g->pre.col;
    s.old_row = g->old.row, s.old_col = g->old.col;
    plan->kernels->epilogue(&s);
}

/* ---- a task of tiles --------------------------------------------------------------------------------------------- */

/* Bytes of dense memory; NULL: none. */
typedef struct {
    const char *at;
    int64_t     bytes;
} region;

/* Strips [s0, s1) by panels [p0, p1) of one matrix. */
typedef struct {
    const gemm_job      *job;
    const tn__gemm_plan *plan;
    const operands      *m;
    int64_t              s0, s1, p0, p1;
    int64_t              row0, col0, cols;                  /* position in c; cols: up to whole vectors */
    char                *packed_b, *packed_a, *sums, *tile; /* the task's workspace */

    /* the current block of k: steps [k0, k0 + kc) */
    int64_t     k0, kc;
    bool        last;
    const char *bias;    /* that the tile kernel adds to strip s, from column 0; NULL: none */
    region      next[2]; /* dense data that the next block or task reads; prefetched by the tile kernel */
    int        *begun;   /* the mr of the last call of the kernel's begin */
} tile_task;

static tile_task task_of(const gemm_job *job, char *workspace, const operands *m, int64_t s0, int64_t s1, int64_t p0,
                         int64_t p1)
{
    const tn__gemm_plan *plan = job->plan;
    tile_task            t = {.job = job, .plan = plan, .m = m, .s0 = s0, .s1 = s1, .p0 = p0, .p1 = p1};
    t.row0 = tn__strip_at(plan, s0), t.col0 = tn__panel_at(plan, p0), t.cols = tn__panel_at(plan, p1) - t.col0;
    t.packed_b = workspace, t.packed_a = t.packed_b + plan->ws.b;
    t.sums = t.packed_a + plan->ws.a, t.tile = t.sums + plan->ws.sums;
    return t;
}

/* Address of step k0 of the panel at column col in a kept or shared b, in a block of kc steps. */
static const char *shared_b_at(const gemm_job *job, int64_t k0, int64_t kc, int64_t col)
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

/* Starts a block of k: packs b if this task must. */
static void prepare_block(tile_task *t, int64_t k0)
{
    const tn__gemm_plan *plan = t->plan;
    t->k0 = k0, t->kc = tn__min_i64(plan->kc, plan->steps - k0), t->last = k0 + t->kc == plan->steps;
    if (plan->packs_b && !plan->shares_b) tn__gemm_pack_b(plan, t->m->b, k0, t->kc, t->p0, t->p1, t->packed_b);
    else if (!plan->packs_b && t->col0 + t->cols > plan->call.n) /* only the last panel, which is partial */
        tn__gemm_pack_b(plan, t->m->b, k0, t->kc, t->p1 - 1, t->p1, t->packed_b);
    if (plan->keeps_b) t->next[0] = next_kept(t);
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

/* Sets the address of the panel of b at column col for the kernel: packed, or in place. */
static void place_b(const tile_task *t, int64_t col, int64_t width, tn__gemm_step *step)
{
    const tn__gemm_plan *plan = t->plan;
    step->b_row = width;
    if (plan->shares_b) step->b = shared_b_at(t->job, t->k0, t->kc, col);
    else if (plan->packs_b) step->b = t->packed_b + (col - t->col0) * t->kc * plan->unit_bytes;
    else if (col + width > plan->call.n) step->b = t->packed_b;
    else {
        step->b = t->m->b + (t->k0 * plan->call.b_row + col) * plan->in_bytes;
        step->b_row = plan->call.b_row;
    }
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

/* The lines of the next data that tile i prefetches, one with each step of k; NULL: none. Negative i: none. */
static const char *next_lines(const tile_task *t, int64_t i)
{
    if (!t->next[0].bytes && !t->next[1].bytes) return NULL;
    const int64_t each = t->kc * 64;
    for (int r = 0; r < 2 && i >= 0; i -= tn__ceil_div(t->next[r++].bytes, each))
        if (i * each < t->next[r].bytes) return t->next[r].at + i * each;
    return NULL;
}

/* Computes the tile of strip s, at row, and panel p. Its sums go to the next block of k, or directly to c if there is
 * no epilogue, or through a tile in the workspace. All panels of a strip reuse one step, set member by member: copying
 * the struct would load, 16 bytes at a time, what narrower stores have just written, and the CPU cannot forward that (a
 * stall a tile, 5 % of a training step). */
static void compute_tile(const tile_task *t, int64_t s, int64_t row, int64_t p, tn__gemm_step *step)
{
    const tn__gemm_plan *plan = t->plan;
    const tn__gemm_call *g = &plan->call;
    const int64_t        col = tn__panel_at(plan, p), width = tn__panel_at(plan, p + 1) - col;
    const bool           whole = t->last && col + width <= g->n;
    step->to_bf16 = whole && plan->rounds_in_tile && step->mr == plan->kernels->mr;
    const bool  straight = step->to_bf16 || (whole && plan->sums_are_c);
    char *const sum = t->sums + ((row - t->row0) * t->cols + (col - t->col0)) * plan->unit_bytes;
    step->nv = (int)(width / plan->kernels->lanes);
    place_b(t, col, width, step);
    step->prefetch = next_lines(t, (s - t->s0 - 1) * (t->p1 - t->p0) + p - t->p0);
    step->from = t->k0 ? sum : NULL, step->from_row = t->cols;
    if (!t->last) step->to = sum, step->to_row = t->cols;
    else if (straight)
        step->to = t->m->c + (row * g->c_row + col * g->c_col) * plan->out_bytes, step->to_row = g->c_row;
    else step->to = t->tile, step->to_row = width;
    step->bias = straight && t->bias ? t->bias + col * plan->call.bias.col * plan->out_bytes : NULL;
    if (t->last) prefetch_output(t, row, col, step->mr, width);
    plan->kernels->tile(step);
    if (t->last && !straight) finish(plan, t->m, row, col, step->mr, tn__min_i64(width, g->n - col), t->tile, width);
}

/* k = 0: the result of a product without terms. */
static void finish_empty(const tile_task *t)
{
    const tn__gemm_plan *plan = t->plan;
    const tn__gemm_call *g = &plan->call;
    if (!g->bias.at && !g->pre.at && !g->act) { /* no sum, so that beta · -0 is -0 */
        const int64_t cols = tn__min_i64(t->col0 + t->cols, g->n) - t->col0;
        finish(plan, t->m, t->row0, t->col0, tn__strip_at(plan, t->s1) - t->row0, cols, NULL, 0);
        return;
    }
    for (int64_t s = t->s0; s < t->s1; s++) {
        const int64_t row = tn__strip_at(plan, s), rows = tn__strip_at(plan, s + 1) - row;
        for (int64_t p = t->p0; p < t->p1; p++) {
            const int64_t col = tn__panel_at(plan, p), width = tn__panel_at(plan, p + 1) - col;
            memset(t->tile, 0, (size_t)(rows * width * plan->unit_bytes));
            finish(plan, t->m, row, col, rows, tn__min_i64(width, g->n - col), t->tile, width);
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
        if (plan->kernels->begin && *t->begun != step.mr) plan->kernels->begin(*t->begun = step.mr);
        for (int64_t p = t->p0; p < t->p1; p++) compute_tile(t, s, row, p, &step);
    }
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
        for (int64_t p = t->p0; p < t->p1; p++)
            for (int64_t i = 0; i < n; i++) {
                const int64_t row = tn__strip_at(plan, s0 + i);
                t->bias = t->last ? place_bias(t, row, vectors, &step[i]) : NULL;
                compute_tile(t, s0 + i, row, p, &step[i]);
            }
    }
}

static void run_tiles(tile_task *t)
{
    const tn__gemm_plan *plan = t->plan;
    for (int64_t k0 = 0; k0 < plan->steps; k0 += plan->kc) {
        prepare_block(t, k0);
        if (plan->group > 1) run_groups(t);
        else run_strips(t);
    }
    if (plan->call.k == 0) finish_empty(t);
}

/* ---- a task of one row ------------------------------------------------------------------------------------------- */

/* One row of c. Here a panel is as wide as L1 holds its sums, and b is read once, in place. */
static void row_task(const tn__gemm_plan *plan, char *slot, const operands *m, int64_t p0, int64_t p1)
{
    const tn__gemm_call *g = &plan->call;
    const int64_t        lanes = plan->kernels->lanes;
    char *const sums = slot, *const packed = slot + plan->ws.sums;
    for (int64_t p = p0; p < p1; p++) {
        const int64_t col = tn__panel_at(plan, p), end = tn__min_i64(tn__panel_at(plan, p + 1), g->n);
        const int64_t whole = (end - col) / lanes * lanes, rest = end - col - whole;
        tn__gemv_step s = {.n = whole, .k = g->k, .a = m->a, .a_col = g->a_col, .y = sums, .first = true};
        s.beyond_l2 = streams(plan);
        s.b = m->b + col * g->b_col * plan->in_bytes, s.b_row = g->b_row, s.b_col = g->b_col;
        if (whole) plan->kernels->row(&s);
        s.y = sums + whole * plan->unit_bytes, s.n = lanes;
        s.b = packed, s.b_row = lanes, s.b_col = 1;
        for (int64_t k0 = 0; rest && k0 < g->k; k0 += plan->kc) { /* the rest, less than a vector: padded */
            s.k = tn__min_i64(plan->kc, g->k - k0);
            tn__gemm_pack(plan, false, s.k, rest, lanes,
                          m->b + (k0 * g->b_row + (col + whole) * g->b_col) * plan->in_bytes, g->b_row, g->b_col,
                          packed);
            s.a = m->a + k0 * g->a_col * plan->in_bytes, s.first = k0 == 0;
            plan->kernels->row(&s);
        }
        finish(plan, m, 0, col, 1, end - col, sums, 0);
    }
}

/* row_task for a kept b: panels of whole vectors in sequence. */
static void kept_row_task(const gemm_job *job, char *sums, const operands *m, int64_t p0, int64_t p1)
{
    const tn__gemm_plan *plan = job->plan;
    const tn__gemm_call *g = &plan->call;
    for (int64_t p = p0; p < p1; p++) {
        const int64_t col = tn__panel_at(plan, p), width = tn__panel_at(plan, p + 1) - col;
        tn__gemv_step s = {.n = width, .k = g->k, .a = m->a, .a_col = g->a_col, .y = sums, .first = true};
        s.beyond_l2 = streams(plan);
        s.b = job->shared_b + col * plan->steps * plan->unit_bytes, s.b_row = width, s.b_col = 1;
        plan->kernels->row(&s);
        finish(plan, m, 0, col, 1, tn__min_i64(width, g->n - col), sums, 0);
    }
}

/* Matrix i of the batch. */
static operands operands_of(const tn__gemm_plan *plan, int64_t i)
{
    const tn__gemm_call *g = &plan->call;
    int64_t              a = 0, b = 0, c = 0, bias = 0, pre = 0, old = 0;
    for (int d = g->dims - 1; d >= 0; d--) {
        const int64_t at = i % g->batch[d];
        i /= g->batch[d];
        a += at * g->a_batch[d], b += at * g->b_batch[d], c += at * g->c_batch[d];
        bias += at * g->bias.batch[d], pre += at * g->pre.batch[d], old += at * g->old.batch[d];
    }
    operands m = {.bias = g->bias.at, .pre = g->pre.at, .old = g->old.at};
    m.a = (const char *)g->a + a * plan->in_bytes, m.b = (const char *)g->b + b * plan->in_bytes;
    m.c = (char *)g->c + c * plan->out_bytes;
    if (m.bias) m.bias += bias * plan->out_bytes;
    if (m.pre) m.pre += pre * plan->out_bytes;
    if (m.old) m.old += old * plan->out_bytes;
    return m;
}

/* Sets what the task after this one reads, if both are whole matrices of a batch, dense and read in place: a small
 * matrix is too short for the hardware's prefetching. */
static void place_next(tile_task *t, int64_t matrix)
{
    const tn__gemm_plan *plan = t->plan;
    const tn__gemm_call *g = &plan->call;
    if (matrix + 1 >= plan->matrices || plan->strip_tasks.parts * plan->panel_tasks.parts > 1 || plan->keeps_b) return;
    const operands next = operands_of(plan, matrix + 1);
    const int64_t  a = g->m * g->k * plan->in_bytes, b = g->k * g->n * plan->in_bytes;
    if (plan->matrices * (a + b) < tn__caches().l2) return;
    if (next.b != t->m->b && tn__max_i64(g->b_row, g->b_col) == (g->b_col == 1 ? g->n : g->k))
        t->next[0] = (region){next.b, b};
    if (next.a != t->m->a && tn__max_i64(g->a_row, g->a_col) == (g->a_col == 1 ? g->k : g->m))
        t->next[1] = (region){next.a, a};
}

static void run_tasks(int64_t from, int64_t to, void *user)
{
    const gemm_job      *job = user;
    const tn__gemm_plan *plan = job->plan;
    char                *workspace = job->workspaces + (plan->parallel ? (size_t)tn__worker() * plan->ws.total : 0);
    const int64_t        each = plan->strip_tasks.parts * plan->panel_tasks.parts; /* of a matrix */
    int                  begun = 0;
    for (int64_t t = from; t < to; t++) {
        const int64_t  matrix = each == 1 ? t : t / each, block = t - matrix * each;
        const operands m = operands_of(plan, matrix);
        const int64_t  i = block / plan->panel_tasks.parts, j = block % plan->panel_tasks.parts;
        const int64_t  p0 = tn__cut_at(&plan->panel_tasks, j), p1 = tn__cut_at(&plan->panel_tasks, j + 1);
        if (plan->gemv && plan->keeps_b) kept_row_task(job, workspace, &m, p0, p1);
        else if (plan->gemv) row_task(plan, workspace, &m, p0, p1);
        else {
            const int64_t s0 = tn__cut_at(&plan->strip_tasks, i), s1 = tn__cut_at(&plan->strip_tasks, i + 1);
            tile_task     tiles = task_of(job, workspace, &m, s0, s1, p0, p1);
            tiles.begun = &begun;
            place_next(&tiles, matrix);
            run_tiles(&tiles);
        }
    }
    if (begun) plan->kernels->end();
}

/* ---- a product --------------------------------------------------------------------------------------------------- */

static void share_b(int64_t from, int64_t to, void *user)
{
    const gemm_job      *job = user;
    const tn__gemm_plan *plan = job->plan;
    const tn__cut       *cut = &plan->panel_tasks;
    for (int64_t i = from; i < to; i++) {
        const int64_t k0 = i / cut->parts * plan->kc, j = i % cut->parts, kc = tn__min_i64(plan->kc, plan->steps - k0);
        const int64_t p0 = tn__cut_at(cut, j), p1 = tn__cut_at(cut, j + 1), col = tn__panel_at(plan, p0);
        char *const   to_b = job->shared_b + (k0 * plan->vectors * plan->kernels->lanes + col * kc) * plan->unit_bytes;
        tn__gemm_pack_b(plan, plan->call.b, k0, kc, p0, p1, to_b);
    }
}

static int64_t strips_in_group(const tn__gemm_plan *plan) { return tn__ceil_div(GROUP, plan->kernels->mr); }
static int64_t groups_of_a(const tn__gemm_plan *plan) { return tn__ceil_div(plan->strip.parts, strips_in_group(plan)); }

static void share_a(int64_t from, int64_t to, void *user)
{
    const gemm_job      *job = user;
    const tn__gemm_plan *plan = job->plan;
    const int64_t        groups = groups_of_a(plan), each = strips_in_group(plan);
    for (int64_t i = from; i < to; i++) {
        const int64_t k0 = i / groups * plan->kc, kc = tn__min_i64(plan->kc, plan->steps - k0), s0 = i % groups * each;
        char *const   to_a = job->shared_a + (k0 * plan->call.m + tn__strip_at(plan, s0) * kc) * plan->unit_bytes;
        tn__gemm_pack_a(plan, plan->call.a, k0, kc, s0, tn__min_i64(s0 + each, plan->strip.parts), to_a);
    }
}

/* Packs the operands that all tasks share. */
static void share(gemm_job *job, int64_t blocks, void (*pack_block)(int64_t from, int64_t to, void *user))
{
    if (job->plan->parallel) tn_parallel_for(blocks, 1, pack_block, job);
    else pack_block(0, blocks, job);
}

/* Finds the packed b, or memory to keep it packed; then adapts the plan. NULL: neither; raised if out of memory. */
static tn__packed *kept_b(tn__gemm_plan *plan, bool *fresh)
{
    const tn__gemm_call *g = &plan->call;
    const tn__packed_key key = {g->b, g->n, g->k, g->b_row, g->b_col, plan->kernels, plan->gemv};
    tn__packed          *p = tn__packed_find(g->storage, &key, tn__gemm_kept_bytes(plan), fresh);
    if (p) tn__gemm_plan_kept(plan);
    return p;
}

bool tn__gemm_run(const tn__gemm_call *call)
{
    tn__gemm_plan plan = {0};
    gemm_job      job = {.plan = &plan};
    tn__packed   *kept = NULL;
    bool          fresh = false;
    for (int d = 0; d < call->dims; d++)
        if (call->batch[d] == 0) return true;
    if (call->m == 0 || call->n == 0) return true;
    tn__gemm_make_plan(&plan, call);
    if (plan.may_keep_b && !(kept = kept_b(&plan, &fresh)) && tn__self.error != TN_OK) return false;

    const int64_t     columns = plan.vectors * plan.kernels->lanes;
    const size_t      b_shared = plan.shares_b && !kept ? tn__lines(columns * plan.steps, plan.unit_bytes) : 0;
    const size_t      a_shared = plan.shares_a ? tn__lines(plan.call.m * plan.steps, plan.unit_bytes) : 0;
    const size_t      bytes = b_shared + a_shared + plan.ws.total * (plan.parallel ? (size_t)tn_threads() : 1);
    _Alignas(64) char local[SMALL_BYTES];
    char *const       memory = bytes <= sizeof local ? local : tn__mem_get(bytes);
    if (!memory) return tn__packed_drop(kept), false;
    job.shared_b = kept ? kept->data : memory;
    job.shared_a = memory + b_shared, job.workspaces = job.shared_a + a_shared;

    const int64_t blocks = plan.kc ? tn__ceil_div(plan.steps, plan.kc) : 0;
    if (fresh || b_shared) share(&job, blocks * plan.panel_tasks.parts, share_b);
    if (fresh) tn__packed_publish(plan.call.storage, kept);
    if (a_shared) share(&job, blocks * groups_of_a(&plan), share_a);
    if (plan.parallel) tn_parallel_for(plan.tasks, plan.grain, run_tasks, &job);
    else run_tasks(0, plan.tasks, &job);
    if (bytes > sizeof local) tn__mem_put(memory, bytes);
    tn__packed_drop(kept);
    return true;
}

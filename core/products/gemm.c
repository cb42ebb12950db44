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
#include "core/products/gemm_tiles.h"
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

/* ---- a task of one row ------------------------------------------------------------------------------------------- */

/* One row of c. Here a panel is as wide as L1 holds its sums, and b is read once, in place. */
static void row_task(const tn__gemm_plan *plan, char *slot, const tn__gemm_operands *m, int64_t p0, int64_t p1)
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
        tn__gemm_finish(plan, m, 0, col, 1, end - col, sums, 0);
    }
}

/* Rows of a by one panel of a kept b: block of k by block, so that all strips find it in L2. Its rows are read in
 * pieces of a micro-tile's width, and the pieces of the next block are prefetched as they lie in memory. */
static void panel_of_rows(const tn__gemm_plan *plan, const tn__gemm_operands *m, const char *b, int64_t vectors,
                          const char *end, char *sums)
{
    const tn__gemm_call    *g = &plan->call;
    const tn__gemm_kernels *kn = plan->kernels;
    const int64_t           width = vectors * kn->lanes, row_bytes = width * plan->unit_bytes;
    const int64_t           most = kn->steps * 4 / plan->unit_bytes;
    tn__gemm_step s = {.a_row = g->a_row, .a_col = g->a_col, .b_row = width, .from_row = width, .to_row = width};
    s.per_step = 64;
    for (int64_t k0 = 0; k0 < g->k; k0 += s.k, b += s.k * row_bytes) {
        s.k = tn__min_i64(most, g->k - k0);
        const char *next = b + s.k * row_bytes;
        const char *stop = streams(plan) ? tn__min_i64(end - next, s.k * row_bytes) + next : next;
        for (int64_t i = 0, row = 0; i < plan->strip.parts; i++, row += s.mr) {
            s.mr = (int)(tn__strip_at(plan, i + 1) - row);
            s.a = m->a + (row * g->a_row + k0 * g->a_col) * plan->in_bytes;
            for (int64_t v = 0; v < vectors; v += s.nv) {
                s.nv = (int)tn__min_i64(kn->nv, vectors - v);
                s.b = b + v * kn->lanes * plan->unit_bytes;
                s.to = sums + row * row_bytes + v * kn->lanes * plan->unit_bytes, s.from = k0 ? s.to : NULL;
                s.prefetch = stop - next >= s.k * 64 ? next : NULL;
                if (s.prefetch) next += s.k * 64;
                kn->tile(&s);
            }
        }
    }
}

/* row_task for a kept b, and a few rows: panels of whole vectors in sequence. */
static void kept_rows_task(const tn__gemm_job *job, char *sums, const tn__gemm_operands *m, int64_t p0, int64_t p1)
{
    const tn__gemm_plan *plan = job->plan;
    const tn__gemm_call *g = &plan->call;
    const char *const    end =
        job->shared_b + plan->panel.parts * plan->panel.each * plan->kernels->lanes * plan->steps * plan->unit_bytes;
    for (int64_t p = p0; p < p1; p++) {
        const int64_t     col = tn__panel_at(plan, p), width = tn__panel_at(plan, p + 1) - col;
        const char *const b = job->shared_b + col * plan->steps * plan->unit_bytes;
        if (plan->gemv) {
            tn__gemv_step s = {.n = width, .k = g->k, .a = m->a, .a_col = g->a_col, .y = sums, .first = true};
            s.beyond_l2 = streams(plan), s.b = b, s.b_row = width, s.b_col = 1;
            plan->kernels->row(&s);
        } else panel_of_rows(plan, m, b, plan->panel.each, end, sums);
        tn__gemm_finish(plan, m, 0, col, g->m, tn__min_i64(width, g->n - col), sums, width);
    }
}

/* Matrix i of the batch. */
static tn__gemm_operands operands_of(const tn__gemm_plan *plan, int64_t i)
{
    const tn__gemm_call *g = &plan->call;
    int64_t              a = 0, b = 0, c = 0, bias = 0, pre = 0, old = 0;
    for (int d = g->dims - 1; d >= 0; d--) {
        const int64_t at = i % g->batch[d];
        i /= g->batch[d];
        a += at * g->a_batch[d], b += at * g->b_batch[d], c += at * g->c_batch[d];
        bias += at * g->bias.batch[d], pre += at * g->pre.batch[d], old += at * g->old.batch[d];
    }
    tn__gemm_operands m = {.bias = g->bias.at, .pre = g->pre.at, .old = g->old.at};
    m.a = (const char *)g->a + a * plan->in_bytes, m.b = (const char *)g->b + b * plan->in_bytes;
    m.c = (char *)g->c + c * plan->out_bytes;
    if (m.bias) m.bias += bias * plan->out_bytes;
    if (m.pre) m.pre += pre * plan->out_bytes;
    if (m.old) m.old += old * plan->out_bytes;
    return m;
}

static void run_tasks(int64_t from, int64_t to, void *user)
{
    const tn__gemm_job  *job = user;
    const tn__gemm_plan *plan = job->plan;
    char                *workspace = job->workspaces + (plan->parallel ? (size_t)tn__worker() * plan->ws.total : 0);
    const int64_t        each = plan->strip_tasks.parts * plan->panel_tasks.parts; /* of a matrix */
    int                  begun = 0;
    for (int64_t t = from; t < to; t++) {
        const int64_t           matrix = each == 1 ? t : t / each, block = t - matrix * each;
        const tn__gemm_operands m = operands_of(plan, matrix);
        const int64_t           i = block / plan->panel_tasks.parts, j = block % plan->panel_tasks.parts;
        const int64_t           p0 = tn__cut_at(&plan->panel_tasks, j), p1 = tn__cut_at(&plan->panel_tasks, j + 1);
        if (plan->keeps_rows) kept_rows_task(job, workspace, &m, p0, p1);
        else if (plan->gemv) row_task(plan, workspace, &m, p0, p1);
        else {
            const tn__gemm_block tiles = {tn__cut_at(&plan->strip_tasks, i), tn__cut_at(&plan->strip_tasks, i + 1), p0,
                                          p1};
            const bool           more = (plan->next_a || plan->next_b) && matrix + 1 < plan->matrices;
            tn__gemm_operands    next;
            if (more) next = operands_of(plan, matrix + 1);
            tn__gemm_tiles(job, workspace, &m, &tiles, more ? &next : NULL, &begun);
        }
    }
    if (begun) plan->kernels->end();
}

/* ---- a product --------------------------------------------------------------------------------------------------- */

static void share_b(int64_t from, int64_t to, void *user)
{
    const tn__gemm_job  *job = user;
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
    const tn__gemm_job  *job = user;
    const tn__gemm_plan *plan = job->plan;
    const int64_t        groups = groups_of_a(plan), each = strips_in_group(plan);
    for (int64_t i = from; i < to; i++) {
        const int64_t k0 = i / groups * plan->kc, kc = tn__min_i64(plan->kc, plan->steps - k0), s0 = i % groups * each;
        char *const   to_a = job->shared_a + (k0 * plan->call.m + tn__strip_at(plan, s0) * kc) * plan->unit_bytes;
        tn__gemm_pack_a(plan, plan->call.a, k0, kc, s0, tn__min_i64(s0 + each, plan->strip.parts), to_a);
    }
}

/* Packs the operands that all tasks share. */
static void share(tn__gemm_job *job, int64_t blocks, void (*pack_block)(int64_t from, int64_t to, void *user))
{
    if (job->plan->parallel) tn_parallel_for(blocks, 1, pack_block, job);
    else pack_block(0, blocks, job);
}

/* Finds the packed b, or memory to keep it packed; then adapts the plan. NULL: neither. */
static tn__packed *kept_b(tn__gemm_plan *plan, bool *fresh)
{
    const tn__gemm_call *g = &plan->call;
    const tn__packed_key key = {g->b, g->n, g->k, g->b_row, g->b_col, plan->kernels};
    const tn__packed_use use = plan->gemv ? TN__PACKED_ONE : tn__gemm_few(plan) ? TN__PACKED_FEW : TN__PACKED_MANY;
    const size_t         bytes[] = {tn__gemm_kept_bytes(plan, false), tn__gemm_kept_bytes(plan, true)};
    tn__packed          *p = tn__packed_find(g->storage, &key, use, bytes, fresh);
    if (p) tn__gemm_plan_kept(plan, p->one_row);
    return p;
}

bool tn__gemm_run(const tn__gemm_call *call)
{
    tn__gemm_plan plan = {0};
    tn__gemm_job  job = {.plan = &plan};
    tn__packed   *kept = NULL;
    bool          fresh = false;
    for (int d = 0; d < call->dims; d++)
        if (call->batch[d] == 0) return true;
    if (call->m == 0 || call->n == 0) return true;
    tn__gemm_make_plan(&plan, call);
    if (plan.may_keep_b) kept = kept_b(&plan, &fresh);

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

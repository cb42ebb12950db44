/* gemm_plan.c — chooses how a product is computed and how its work is cut. docs/gemm.md gives reasons for the sizes. */
#include "core/products/gemm_plan.h"
#include "core/base/caches.h"
#include "core/products/cost.h"

enum {
    B_BYTES = 200 << 10,       /* of b in a task, at most: with more, a core's TLB does not hold its pages */
    SHARED_BYTES = 1 << 20,    /* of a b that is packed once for all tasks, and ... */
    SHARED_ROWS = 4 << 20,     /* ... of one with dense rows, if L3 holds twice as much: memory is short, too */
    GROUP_BYTES = 1 << 20,     /* of b, and of sums between blocks of k, in a task that computes strips in groups */
    SHARED_A_BYTES = 16 << 20, /* of an a of bf16 that is packed once for all tasks; of f32 half of it */
    FAR_BYTES = 1024,          /* between rows: b then covers enough pages that packing it is faster, if ... */
    MANY_ROWS = 100,           /* ... there are enough rows of a to use it */
    WIDE_ENOUGH = 64,          /* columns: with fewer, packing a costs more than reading it from distant pages */
    TASK_GROUPS = 8,           /* of strips, in a task */
    MANY_STEPS = 64,           /* pages of which L1's TLB holds the addresses */
    A_ROWS = 128,              /* of dense columns, packed at a time, at most: strips share cache lines */
    FEW_ROWS = 64,             /* of a: with more, it is cut rather than b */
    PANEL_ROWS = 8,            /* of a: with more, panels for the kernel of one row would be read too slowly */
    KEPT_ROWS = 128,           /* of a: with more, packing b costs little compared with the product ... */
    KEPT_LEAST = 4096,         /* ... and with fewer elements of b, all other work costs more */
    FEW_EACH = 4,              /* tasks of a thread, of which one more or less matters */
    ROW_VECTORS = 128          /* columns of a matrix-vector product that are summed at a time */
};

/* The bytes of b and of a, and of sums between blocks of k, in a task: together less than two thirds of L2. With groups
 * of strips b and the sums are in L3. */
static int64_t b_bytes(const tn__gemm_plan *plan)
{
    return plan->group > 1 ? GROUP_BYTES : tn__min_i64(tn__caches().l2 / 5, B_BYTES);
}
static int64_t sum_bytes(const tn__gemm_plan *plan) { return plan->group > 1 ? GROUP_BYTES : tn__caches().l2 / 4; }
static int64_t a_bytes(void) { return tn__caches().l2 / 5; }

static const double MUCH = 1.25; /* ratio of one thread's work to the mean that is too much */

static int64_t common(int64_t a, int64_t b) /* greatest common divisor */
{
    while (b) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* The largest of `shares` shares of `things` things, as a multiple of the mean share. */
static double uneven(int64_t things, int64_t shares)
{
    return things < shares ? 2 : (double)(tn__ceil_div(things, shares) * shares) / (double)things;
}

static tn__cut cut_into(int64_t size, int64_t parts) { return (tn__cut){parts, size / parts, size % parts}; }

enum { SIDES = 3 };

static bool stacks(const tn__gemm_side *s, int d, int64_t m) { return !s->at || m == 1 || s->batch[d] == m * s->row; }
static bool abuts(const tn__gemm_side *s, int d, int64_t n) { return !s->at || n == 1 || s->batch[d] == n * s->col; }

/* Removes dim d of the batch; later dims move up. */
static void drop_dim(tn__gemm_call *g, tn__gemm_side *const side[SIDES], int d)
{
    g->dims--;
    for (int i = d; i < g->dims; i++) {
        g->batch[i] = g->batch[i + 1], g->a_batch[i] = g->a_batch[i + 1];
        g->b_batch[i] = g->b_batch[i + 1], g->c_batch[i] = g->c_batch[i + 1];
        for (int j = 0; j < SIDES; j++) side[j]->batch[i] = side[j]->batch[i + 1];
    }
}

/* Matrices that are below (next to) each other and share b (a) are one taller (wider) matrix: merges dim d of the batch
 * into m (n), if possible. */
static bool merge_dim(tn__gemm_call *g, tn__gemm_side *const side[SIDES], int d)
{
    const int64_t size = g->batch[d];
    bool          below = g->b_batch[d] == 0, beside = g->a_batch[d] == 0;
    if (size == 1) return true;
    below = below && (g->m == 1 || (g->a_batch[d] == g->m * g->a_row && g->c_batch[d] == g->m * g->c_row));
    beside = beside && (g->n == 1 || (g->b_batch[d] == g->n * g->b_col && g->c_batch[d] == g->n * g->c_col));
    for (int i = 0; i < SIDES; i++)
        below = below && stacks(side[i], d, g->m), beside = beside && abuts(side[i], d, g->n);
    if (below) {
        if (g->m == 1) {
            g->a_row = g->a_batch[d], g->c_row = g->c_batch[d];
            for (int i = 0; i < SIDES; i++) side[i]->row = side[i]->batch[d];
        }
        g->m *= size;
    } else if (beside) {
        if (g->n == 1) {
            g->b_col = g->b_batch[d], g->c_col = g->c_batch[d];
            for (int i = 0; i < SIDES; i++) side[i]->col = side[i]->batch[d];
        }
        g->n *= size;
    }
    return below || beside;
}

/* cᵀ = bᵀ aᵀ */
static void transpose(tn__gemm_call *g, tn__gemm_side *const side[SIDES])
{
    const tn__gemm_call o = *g;
    g->m = o.n, g->n = o.m, g->a = o.b, g->b = o.a;
    g->a_row = o.b_col, g->a_col = o.b_row, g->b_row = o.a_col, g->b_col = o.a_row;
    g->c_row = o.c_col, g->c_col = o.c_row, g->storage = NULL;
    for (int d = 0; d < g->dims; d++) g->a_batch[d] = o.b_batch[d], g->b_batch[d] = o.a_batch[d];
    for (int i = 0; i < SIDES; i++) {
        const int64_t row = side[i]->row;
        side[i]->row = side[i]->col, side[i]->col = row;
    }
}

/* Rewrites the call with the same result: as few dims in the batch as possible, rows of c along the vectors. */
static void simplify(tn__gemm_call *g)
{
    tn__gemm_side *const side[SIDES] = {&g->bias, &g->pre, &g->old};
    if (g->beta != 0 && !g->old.at) {
        g->old.at = g->c, g->old.row = g->c_row, g->old.col = g->c_col;
        for (int d = 0; d < g->dims; d++) g->old.batch[d] = g->c_batch[d];
    }
    if (g->alpha == 0) g->k = 0;
    if (g->k == 0) g->alpha = 1;
    if (g->beta == 0) g->old.at = NULL;
    for (int d = g->dims - 1; d >= 0; d--)
        if (merge_dim(g, side, d)) {
            drop_dim(g, side, d);
            d = g->dims; /* now other dims may be mergeable */
        }
    if (g->m > 1 && (g->n == 1 || (g->c_col != 1 && g->c_row == 1))) transpose(g, side);
}

static void plan_row(tn__gemm_plan *plan, double traffic)
{
    const int64_t lanes = plan->kernels->lanes, vector = lanes * plan->unit_bytes;
    const double  wanted = traffic / tn__cost_task; /* tasks */
    int64_t       most = tn__max_i64(plan->vectors / 4, 1), widest = ROW_VECTORS;
    if (plan->call.b_col == 1) { /* as few pieces of rows as possible: the hardware prefetches long ones */
        most = tn__min_i64(most, tn__ceil_div(tn_threads(), plan->matrices));
        if (vector < 64 && plan->vectors > widest) widest = tn__max_i64(widest, tn__caches().l2 / 4 / vector);
    }
    const int64_t panels = wanted < (double)most ? (int64_t)wanted : most;
    plan->strip = plan->strip_tasks = cut_into(1, 1);
    plan->panel = cut_into(plan->vectors, tn__max_i64(tn__ceil_div(plan->vectors, widest), panels));
    plan->panel_tasks = cut_into(plan->panel.parts, plan->panel.parts);
    plan->ws.sums = tn__lines((plan->panel.each + 1) * lanes, plan->unit_bytes);
    plan->ws.total = plan->ws.sums + tn__lines(plan->kc * lanes, plan->unit_bytes);
}

/* True if a consists of units in place. */
static bool in_pairs(const tn__gemm_call *g)
{
    bool even = g->a_col == 1 && g->k % 2 == 0 && g->a_row % 2 == 0 && (uintptr_t)g->a % 4 == 0;
    for (int d = 0; d < g->dims; d++) even = even && g->a_batch[d] % 2 == 0;
    return even;
}

/* True if a, packed by columns, is one matrix for the whole batch and small enough to be packed before the tasks. */
static bool a_is_small(const tn__gemm_plan *plan)
{
    const tn__gemm_call *g = &plan->call;
    for (int d = 0; d < g->dims; d++)
        if (g->a_batch[d] != 0) return false;
    const int64_t most = g->dtype == TN_BF16 ? SHARED_A_BYTES : SHARED_A_BYTES / 2;
    return plan->packs_a && plan->a_columns && g->m <= most / plan->unit_bytes / tn__max_i64(plan->steps, 1);
}

/* True if a is so tall that it should be read once, though b is larger than a task's part: b is one block of k, and c's
 * rows are short enough for panel by panel. Strips of 8 rows and more read less of b. */
static bool by_panels(const tn__gemm_plan *plan)
{
    const tn__gemm_call *g = &plan->call;
    const bool           group = !plan->packs_a || plan->a_columns; /* rows are packed one strip at a time */
    return plan->kernels->packs_columns && group && plan->packs_b && plan->steps == plan->kc && g->m > KEPT_ROWS &&
           g->n * plan->out_bytes <= TN__SET_BYTES && plan->steps > b_bytes(plan) / plan->unit_bytes / g->n;
}

/* True if dense columns of a, far apart, are read faster if they are packed. On Intel's CPUs that is so with AVX-512,
 * too, once they come from L3: they wait longer for a line of another page in each step of k. AMX (begin) has the
 * layout that was measured. */
static bool packs_columns(const tn__gemm_plan *plan)
{
    return plan->kernels->packs_columns ||
           (tn__cpu_is_intel() && !plan->kernels->begin &&
            plan->call.m * plan->in_bytes > tn__caches().l2 / tn__max_i64(plan->steps, 1));
}

static bool far_rows(const tn__gemm_plan *plan) { return plan->call.b_row * plan->in_bytes >= FAR_BYTES; }

/* True if dense rows of b should be packed: they are on separate pages, or all strips would read a block of k from L2,
 * parts of lines that exceed L1. With few rows of a, packing costs more than that. */
static bool packs_rows(const tn__gemm_plan *plan)
{
    const int64_t block = plan->kc * plan->call.b_row * plan->in_bytes;
    return plan->call.m >= MANY_ROWS && (far_rows(plan) || block > tn__caches().l1);
}

/* How the kernels read a and b: in place, or packed. */
static void plan_operands(tn__gemm_plan *plan)
{
    const tn__gemm_call *g = &plan->call;
    const bool           far = g->a_row == 1 && g->a_col * plan->in_bytes >= FAR_BYTES;
    const bool           columns = far && packs_columns(plan) && g->n >= WIDE_ENOUGH && plan->steps >= MANY_STEPS;
    plan->packs_b = !g->b_at && (g->dtype == TN_BF16 || g->b_col != 1 || packs_rows(plan));
    /* else as many pages at a time as L1's TLB holds */
    if (!plan->packs_b && !g->b_at && far_rows(plan)) plan->kc = tn__min_i64(plan->kc, MANY_STEPS);

    const int64_t a_rows = tn__min_i64(A_ROWS, a_bytes() / tn__max_i64(plan->kc * plan->unit_bytes, 1));
    plan->a_strips = tn__max_i64(1, tn__min_i64(a_rows / plan->kernels->mr, TN__GEMM_GROUP));
    plan->packs_a = columns || (g->dtype == TN_BF16 && !(plan->pair == 2 && in_pairs(g)));
    plan->a_columns = g->a_col != 1 && (g->a_row == 1 || plan->pair == 2);
    plan->group = (columns && !a_is_small(plan)) || by_panels(plan) ? plan->a_strips : 1;
}

/* True if b is one matrix for the whole batch, and its packed form has at most `bytes`. */
static bool b_fits(const tn__gemm_plan *plan, int64_t bytes)
{
    const tn__gemm_call *g = &plan->call;
    for (int d = 0; d < g->dims; d++)
        if (g->b_batch[d] != 0) return false;
    return g->k > 0 && plan->vectors * plan->kernels->lanes <= bytes / plan->unit_bytes / plan->steps;
}

/* The bytes of a b that is packed once for all tasks, at most. More for dense rows that are read by several tasks,
 * which would all copy them from distant pages: L2 gets panels faster from L3. */
static int64_t shared_bytes(const tn__gemm_plan *plan, int64_t down)
{
    return plan->call.b_col == 1 && down > 1 && tn__caches().l3 >= 2 * SHARED_ROWS ? SHARED_ROWS : SHARED_BYTES;
}

/* The number of parts into which the strips (down) and the panels (across) of a matrix are cut: small enough for the
 * caches, and enough of them for the threads. */
static void cut_tasks(const tn__gemm_plan *plan, double time, int64_t *down, int64_t *across)
{
    const tn__gemm_call *g = &plan->call;
    const int64_t        strips = plan->strip.parts, panels = plan->panel.parts;
    const int64_t        most = (int64_t)plan->kernels->nv * plan->kernels->lanes; /* columns of a panel */
    *across = *down = 1;
    if (!g->b_at && plan->steps > b_bytes(plan) / plan->unit_bytes / g->n)
        *across = tn__ceil_div(panels, tn__max_i64(1, b_bytes(plan) / (most * plan->kc * plan->unit_bytes)));
    if (plan->steps > plan->kc) {
        const int64_t sums =
            sum_bytes(plan) / (tn__ceil_div(panels, *across) * most * plan->kernels->mr * plan->unit_bytes);
        *down = tn__ceil_div(strips, tn__max_i64(8, sums));
    }
    /* a few groups each, so that a thread that the system delays does not delay the others */
    if (plan->group > 1) *down = tn__max_i64(*down, tn__ceil_div(strips, TASK_GROUPS * plan->group));
    /* Give each thread the same work, at least tn__cost_task. Cut m if b need not be packed again in each task and a
     * has more than FEW_ROWS rows, otherwise n; or the other one if that balances much better. */
    const int64_t threads = tn__max_i64(1, tn__min_i64(tn_threads(), (int64_t)(time / tn__cost_task)));
    if (plan->matrices >= FEW_EACH * threads) return;
    const int64_t parts = threads / common(threads, plan->matrices); /* of a matrix, or a multiple */
    const int64_t tall = tn__ceil_div(*down, parts) * parts, wide = tn__ceil_div(*across, parts) * parts;
    const bool    by_m = (!plan->packs_b || b_fits(plan, SHARED_BYTES)) && g->m > FEW_ROWS;
    const double  these = uneven(by_m ? strips : panels, parts), others = uneven(by_m ? panels : strips, parts);
    if (by_m != (these > MUCH && others < these)) *down = tn__min_i64(tall, strips);
    else if (*across < FEW_EACH * parts) *across = tn__min_i64(wide, panels);
}

static void plan_tiles(tn__gemm_plan *plan, double time)
{
    const tn__gemm_call    *g = &plan->call;
    const tn__gemm_kernels *kn = plan->kernels;
    const int64_t           most = (int64_t)kn->nv * kn->lanes; /* columns of a panel */
    const int64_t           strips = tn__ceil_div(g->m, kn->mr), panels = tn__ceil_div(plan->vectors, kn->nv);
    int64_t                 down, across;
    plan->strip = cut_into(g->m, strips), plan->panel = cut_into(plan->vectors, panels);
    plan_operands(plan);
    cut_tasks(plan, time, &down, &across);
    plan->strip_tasks = cut_into(strips, down), plan->panel_tasks = cut_into(panels, across);

    plan->shares_b = plan->packs_b && (down > 1 || plan->matrices > 1) && b_fits(plan, shared_bytes(plan, down));
    plan->shares_a = across > 1 && a_is_small(plan);
    if (!plan->a_columns || !plan->packs_a || plan->shares_a) plan->a_strips = 1;

    const int64_t width = tn__ceil_div(panels, across) * most, pad = plan->a_columns ? 0 : TN__GEMM_PAD;
    if (plan->packs_b && !plan->shares_b) plan->ws.b = tn__lines(width * plan->kc, plan->unit_bytes);
    else if (g->n % kn->lanes) plan->ws.b = tn__lines(most * plan->kc, plan->unit_bytes);
    if (plan->packs_a && !plan->shares_a)
        plan->ws.a = tn__lines(kn->mr * plan->a_strips * (plan->kc + pad), plan->unit_bytes);
    if (plan->steps > plan->kc)
        plan->ws.sums = tn__lines(tn__ceil_div(strips, down) * kn->mr * width, plan->unit_bytes);
    plan->ws.total = plan->ws.b + plan->ws.a + plan->ws.sums + tn__lines(kn->mr * most, plan->unit_bytes);
}

/* Chooses the kernels, and the sizes that follow from the call alone. */
static void plan_sizes(tn__gemm_plan *plan, const tn__kernel_table *table)
{
    const tn__gemm_call *g = &plan->call;
    plan->kernels = g->dtype == TN_F64 ? table->gemm_f64 : g->dtype == TN_BF16 ? table->gemm_bf16 : table->gemm_f32;
    plan->unit_bytes = g->dtype == TN_F64 ? 8 : 4;
    plan->in_bytes = (int64_t)tn__dtype_bytes(g->dtype), plan->out_bytes = (int64_t)tn__dtype_bytes(g->ctype);
    plan->pair = plan->kernels->pair, plan->steps = tn__ceil_div(g->k, plan->pair);
    plan->vectors = tn__ceil_div(g->n, plan->kernels->lanes);
    plan->matrices = 1;
    for (int d = 0; d < g->dims; d++) plan->matrices *= g->batch[d];

    const int64_t most = plan->kernels->steps * 4 / plan->unit_bytes;
    plan->kc = plan->steps;
    if (plan->steps > most) plan->kc = (tn__ceil_div(plan->steps, tn__ceil_div(plan->steps, most)) + 15) / 16 * 16;
}

/* What the tile kernel itself does at the end. */
static void plan_epilogue(tn__gemm_plan *plan)
{
    const tn__gemm_call    *g = &plan->call;
    const tn__gemm_kernels *k = plan->kernels;
    const bool              plain = g->alpha == 1 && g->c_col == 1 && !g->pre.at && !g->old.at && !g->act;
    const bool              adds =
        k->adds_bias && (g->bias.col == 1 || g->bias.col == 0) && k->mr * k->lanes * plan->unit_bytes <= TN__GEMM_BIAS;
    plan->sums_are_c = plain && (!g->bias.at || adds) && plan->out_bytes == plan->unit_bytes;
    plan->rounds_in_tile = plain && !g->bias.at && g->ctype == TN_BF16 && plan->pair == 2;
}

/* What a task prefetches of the next matrix: dense operands that are read in place, if each task is a whole matrix. A
 * small matrix is too short for the hardware's prefetching. */
static void plan_next(tn__gemm_plan *plan)
{
    const tn__gemm_call *g = &plan->call;
    const int64_t        a = g->m * g->k * plan->in_bytes, b = g->k * g->n * plan->in_bytes;
    if (plan->gemv || plan->matrices == 1 || plan->strip_tasks.parts * plan->panel_tasks.parts > 1) return;
    if (plan->matrices * (a + b) < tn__caches().l2) return;
    if (tn__max_i64(g->a_row, g->a_col) == (g->a_col == 1 ? g->k : g->m)) plan->next_a = a;
    if (tn__max_i64(g->b_row, g->b_col) == (g->b_col == 1 ? g->n : g->k)) plan->next_b = b;
}

int64_t tn__gemm_of_rows(tn_dtype dt)
{
    const tn__gemm_kernels *k = tn__kernels()->gemm_f32;
    return dt == TN_F32 && k->tile_of_rows ? (int64_t)k->nv * k->lanes : 0;
}

void tn__gemm_make_plan(tn__gemm_plan *plan, const tn__gemm_call *call)
{
    tn__gemm_call *g = &plan->call;
    *g = *call;
    simplify(g);
    plan_sizes(plan, call->kernels ? call->kernels : tn__kernels());
    plan_epilogue(plan);
    plan->gemv = g->m == 1 && g->k > 0 && g->dtype != TN_BF16 && (g->b_row == 1 || g->b_col == 1);

    const double terms = (double)plan->matrices * (double)g->n * (double)g->k;
    const double work = tn__cost_term / (double)plan->pair * terms * (double)g->m;
    const double traffic = tn__cost_byte * terms * (double)plan->in_bytes; /* reading b */
    const double time = work > traffic ? work : traffic;
    if (plan->gemv) plan_row(plan, traffic);
    else plan_tiles(plan, time);
    /* in training, weights change after a few products, and memory is short */
    const int64_t rows = tn_grad_enabled() || tn__self.mode.trains ? FEW_ROWS : KEPT_ROWS;
    plan->may_keep_b = g->storage && plan->matrices == 1 && g->m <= rows && g->k > 0 && g->n >= KEPT_LEAST / g->k &&
                       (plan->gemv ? g->b_col != 1 : plan->packs_b);
    plan->tasks = plan->matrices * plan->strip_tasks.parts * plan->panel_tasks.parts;
    plan_next(plan);
    plan->parallel = tn__worth_sharing(time) && plan->tasks > 1 && tn_threads() > 1;
    plan->grain = plan->parallel ? tn__cost_grain(time, plan->tasks, tn_threads()) : 1;
}

/* ---- b is kept packed -------------------------------------------------------------------------------------------- */

bool tn__gemm_few(const tn__gemm_plan *plan) { return plan->call.m <= PANEL_ROWS && plan->call.dtype != TN_BF16; }

/* The panels of a b that is kept packed. For one row: as its kernel reads them, all of k. For tiles: as planned. */
static tn__cut kept_panels(const tn__gemm_plan *plan, bool one_row)
{
    return one_row ? (tn__cut){tn__ceil_div(plan->vectors, plan->kernels->kept), plan->kernels->kept, 0} : plan->panel;
}

size_t tn__gemm_kept_bytes(const tn__gemm_plan *plan, bool one_row)
{
    if (one_row && !plan->kernels->kept) return 0;
    const tn__cut panels = kept_panels(plan, one_row);
    return tn__lines(tn__cut_at(&panels, panels.parts) * plan->kernels->lanes * plan->steps, plan->unit_bytes);
}

void tn__gemm_plan_kept(tn__gemm_plan *plan, bool one_row)
{
    plan->keeps_b = !one_row, plan->keeps_rows = one_row, plan->shares_b = true;
    plan->ws.total -= one_row ? 0 : plan->ws.b;
    plan->ws.b = 0;
    if (!one_row) return;
    plan->packs_a = plan->shares_a = false;
    plan->strip_tasks = cut_into(plan->strip.parts, 1);
    plan->panel = kept_panels(plan, true);
    plan->panel_tasks = cut_into(plan->panel.parts, tn__min_i64(plan->panel.parts, plan->panel_tasks.parts));
    plan->kc = plan->steps;
    plan->ws.total = plan->ws.sums =
        tn__lines(plan->call.m * plan->panel.each * plan->kernels->lanes, plan->unit_bytes);
    plan->tasks = plan->panel_tasks.parts;
    plan->grain = tn__min_i64(plan->grain, plan->tasks);
}

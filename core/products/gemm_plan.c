/* gemm_plan.c — which way a product goes, and how its work is cut. docs/gemm.md says why each size is what it is. */
#include "core/products/gemm_job.h"

enum {
    K_BLOCK = 400, /* steps of f32 in a block of k, half as many of f64: a strip is a quarter of the first cache */
    B_BYTES = 200 << 10,       /* of b in a task: a fifth of the second cache, and few enough pages */
    SUM_BYTES = 256 << 10,     /* of sums on their way from one block of k to the next */
    SHARED_BYTES = 1 << 20,    /* of a b that is packed once for all tasks */
    SHARED_A_BYTES = 16 << 20, /* the same of an a */
    FAR_BYTES = 1024,          /* between rows: so many pages that b is better packed, if ... */
    MANY_ROWS = 100,           /* ... there are enough rows of a to use it */
    A_STRIPS = 16,             /* of dense columns, packed at a time: lines of a row that they share are fetched once */
    KEPT_ROWS = 64,            /* of a: with more, packing b costs little beside the product ... */
    KEPT_LEAST = 4096,         /* ... and with fewer elements of b, everything else costs more */
    FEW_EACH = 4,              /* tasks of a thread, of which one more or less is much */
    ROW_VECTORS = 128          /* columns of a matrix-vector product that are summed at a time */
};

static const double HANDED_OVER = 4e-6; /* seconds of work: what a thread should get at least */
static const double MUCH = 1.25;        /* that one thread has to do more than the mean */

static int64_t common(int64_t a, int64_t b) /* their greatest divisor */
{
    while (b) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}

/* The largest share of so many things beside the mean one. */
static double uneven(int64_t things, int64_t shares)
{
    return things < shares ? 2 : (double)(tn__ceil_div(things, shares) * shares) / (double)things;
}

static tn_cut cut_into(int64_t size, int64_t parts) { return (tn_cut){parts, size / parts, size % parts}; }

enum { SIDES = 3 };

static bool stacks(const tn__gemm_side *s, int d, int64_t m) { return !s->at || m == 1 || s->batch[d] == m * s->row; }
static bool abuts(const tn__gemm_side *s, int d, int64_t n) { return !s->at || n == 1 || s->batch[d] == n * s->col; }

/* The call seen as another that has the same result: no idle dims, rows of c along the vectors. */
static void simplify(tn__gemm_call *g)
{
    tn__gemm_side *const side[SIDES] = {&g->bias, &g->pre, &g->old};
    if (g->alpha == 0) g->k = 0;
    if (g->k == 0) g->alpha = 1;
    if (g->beta == 0) g->old.at = NULL;
    for (int d = g->dims - 1; d >= 0; d--) {
        const int64_t size = g->batch[d];
        const bool    idle = size == 1;
        /* matrices that lie below (beside) each other and share b (a) are one taller (wider) matrix */
        bool below = g->b_batch[d] == 0, beside = g->a_batch[d] == 0;
        below = below && (g->m == 1 || (g->a_batch[d] == g->m * g->a_row && g->c_batch[d] == g->m * g->c_row));
        beside = beside && (g->n == 1 || (g->b_batch[d] == g->n * g->b_col && g->c_batch[d] == g->n * g->c_col));
        for (int i = 0; i < SIDES; i++)
            below = below && stacks(side[i], d, g->m), beside = beside && abuts(side[i], d, g->n);
        if (!idle && !below && !beside) continue;
        if (!idle && below) {
            if (g->m == 1) {
                g->a_row = g->a_batch[d], g->c_row = g->c_batch[d];
                for (int i = 0; i < SIDES; i++) side[i]->row = side[i]->batch[d];
            }
            g->m *= size;
        } else if (!idle) {
            if (g->n == 1) {
                g->b_col = g->b_batch[d], g->c_col = g->c_batch[d];
                for (int i = 0; i < SIDES; i++) side[i]->col = side[i]->batch[d];
            }
            g->n *= size;
        }
        g->dims--;
        for (int i = d; i < g->dims; i++) {
            g->batch[i] = g->batch[i + 1], g->a_batch[i] = g->a_batch[i + 1];
            g->b_batch[i] = g->b_batch[i + 1], g->c_batch[i] = g->c_batch[i + 1];
            for (int j = 0; j < SIDES; j++) side[j]->batch[i] = side[j]->batch[i + 1];
        }
        d = g->dims; /* the others may fit now */
    }
    if (g->m > 1 && (g->n == 1 || (g->c_col != 1 && g->c_row == 1))) { /* cᵀ = bᵀ aᵀ */
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
}

static void plan_row(tn__gemm_job *q, double traffic)
{
    const int64_t lanes = q->kn->lanes, most = tn__max_i64(q->vectors / 4, 1);
    const double  wanted = traffic / HANDED_OVER; /* tasks */
    const int64_t panels = wanted < (double)most ? (int64_t)wanted : most;
    q->strip = q->strip_tasks = cut_into(1, 1);
    q->panel = cut_into(q->vectors, tn__max_i64(tn__ceil_div(q->vectors, ROW_VECTORS), panels));
    q->panel_tasks = cut_into(q->panel.parts, q->panel.parts);
    q->sum_bytes = tn__lines((q->panel.each + 1) * lanes, q->size);
    q->slot_bytes = q->sum_bytes + tn__lines(q->kc * lanes, q->size);
}

/* Does a lie in units as it is? */
static bool in_pairs(const tn__gemm_call *g)
{
    bool even = g->a_col == 1 && g->k % 2 == 0 && g->a_row % 2 == 0 && (uintptr_t)g->a % 4 == 0;
    for (int d = 0; d < g->dims; d++) even = even && g->a_batch[d] % 2 == 0;
    return even;
}

static void plan_tiles(tn__gemm_job *q, double time)
{
    const tn__gemm_call    *g = &q->g;
    const tn__gemm_kernels *kn = q->kn;
    const int64_t           most = (int64_t)kn->nv * kn->lanes; /* columns of a panel */
    const int64_t           strips = tn__ceil_div(g->m, kn->mr), panels = tn__ceil_div(q->vectors, kn->nv);
    q->strip = cut_into(g->m, strips), q->panel = cut_into(q->vectors, panels);
    q->pack_a = g->dtype == TN_BF16 && !(q->pair == 2 && in_pairs(g));
    q->a_columns = g->a_col != 1 && (g->a_row == 1 || q->pair == 2);
    /* dense rows are read as fast in place, except where each lies on a page of its own */
    const bool apart = g->b_row * q->in >= FAR_BYTES && g->m >= MANY_ROWS;
    q->pack_b = g->dtype == TN_BF16 || g->b_col != 1 || apart;

    /* what a task can take without leaving the caches */
    int64_t across = 1, down = 1;
    if (q->steps > B_BYTES / q->size / g->n)
        across = tn__ceil_div(panels, tn__max_i64(1, B_BYTES / (most * q->kc * q->size)));
    if (q->steps > q->kc) {
        const int64_t sums = SUM_BYTES / (tn__ceil_div(panels, across) * most * kn->mr * q->size);
        down = tn__ceil_div(strips, tn__max_i64(8, sums));
    }
    bool one_b = true;
    for (int d = 0; d < g->dims; d++) one_b = one_b && g->b_batch[d] == 0;
    const bool small = one_b && g->k > 0 && q->vectors * kn->lanes <= SHARED_BYTES / q->size / q->steps;
    /* As much for each thread, none of it too little to be worth handing over: from strips, if b is not packed once
     * more for that and a has rows enough to read it again, else from panels; the other way where that is far more
     * even. */
    const int64_t threads = tn__max_i64(1, tn__min_i64(tn_threads(), (int64_t)(time / HANDED_OVER)));
    if (q->matrices < FEW_EACH * threads) {
        const int64_t more = threads / common(threads, q->matrices); /* a matrix in so many parts, or a multiple */
        const int64_t tall = tn__ceil_div(down, more) * more, wide = tn__ceil_div(across, more) * more;
        const bool    again = (!q->pack_b || small) && g->m > KEPT_ROWS;
        const double  these = uneven(again ? strips : panels, more), others = uneven(again ? panels : strips, more);
        if (again != (these > MUCH && others < these)) down = tn__min_i64(tall, strips);
        else if (across < FEW_EACH * more) across = tn__min_i64(wide, panels);
    }
    q->strip_tasks = cut_into(strips, down), q->panel_tasks = cut_into(panels, across);

    q->share_b = q->pack_b && small && (down > 1 || q->matrices > 1);
    const int64_t width = tn__ceil_div(panels, across) * most;
    if (q->pack_b && !q->share_b) q->b_bytes = tn__lines(width * q->kc, q->size);
    else if (g->n % kn->lanes) q->b_bytes = tn__lines(most * q->kc, q->size);
    bool one_a = q->pack_a && q->a_columns && across > 1 && g->m <= SHARED_A_BYTES / q->size / tn__max_i64(q->steps, 1);
    for (int d = 0; d < g->dims; d++) one_a = one_a && g->a_batch[d] == 0;
    q->share_a = one_a;
    q->a_strips = q->a_columns && q->pack_a && !q->share_a ? A_STRIPS : 1;
    if (q->pack_a && !q->share_a)
        q->a_bytes = tn__lines(kn->mr * q->a_strips * (q->kc + (q->a_columns ? 0 : TN_GEMM_PAD)), q->size);
    if (q->steps > q->kc) q->sum_bytes = tn__lines(tn__ceil_div(strips, down) * kn->mr * width, q->size);
    q->slot_bytes = q->b_bytes + q->a_bytes + q->sum_bytes + tn__lines(kn->mr * most, q->size);
}

void tn__gemm_plan(tn__gemm_job *q, const tn__gemm_call *call)
{
    const tn__kernel_table *table = call->kernels ? call->kernels : tn__kernels();
    tn__gemm_call          *g = &q->g;
    *g = *call;
    if (g->beta != 0 && !g->old.at) {
        g->old.at = g->c, g->old.row = g->c_row, g->old.col = g->c_col;
        for (int d = 0; d < g->dims; d++) g->old.batch[d] = g->c_batch[d];
    }
    simplify(g);
    q->kn = g->dtype == TN_F64 ? table->gemm_f64 : g->dtype == TN_BF16 ? table->gemm_bf16 : table->gemm_f32;
    q->size = g->dtype == TN_F64 ? 8 : 4;
    q->in = (int64_t)tn__dtype_bytes(g->dtype), q->out = (int64_t)tn__dtype_bytes(g->ctype);
    q->pair = q->kn->pair, q->steps = tn__ceil_div(g->k, q->pair);
    const bool bare = g->alpha == 1 && g->c_col == 1 && !g->bias.at && !g->pre.at && !g->old.at && !g->act;
    q->plain = bare && q->out == q->size;
    q->narrows = bare && g->ctype == TN_BF16 && q->pair == 2;
    const int64_t k_most = K_BLOCK * 4 / q->size;
    q->matrices = 1;
    for (int d = 0; d < g->dims; d++) q->matrices *= g->batch[d];
    q->kc = q->steps <= k_most ? q->steps : (tn__ceil_div(q->steps, tn__ceil_div(q->steps, k_most)) + 15) / 16 * 16;
    q->vectors = tn__ceil_div(g->n, q->kn->lanes);
    q->row = g->m == 1 && g->k > 0 && g->dtype != TN_BF16 && (g->b_row == 1 || g->b_col == 1);

    /* in seconds, roughly: of the arithmetic, or of reading b */
    const double terms = (double)q->matrices * (double)g->n * (double)g->k;
    const double work = 1e-11 / (double)q->pair * terms * (double)g->m, traffic = 2.5e-11 * terms * (double)q->in;
    const double time = work > traffic ? work : traffic;
    if (q->row) plan_row(q, traffic);
    else plan_tiles(q, time);
    q->keeps = g->storage && q->matrices == 1 && g->m <= KEPT_ROWS && g->k > 0 && g->n >= KEPT_LEAST / g->k &&
               (q->row ? g->b_col != 1 : q->pack_b);
    q->tasks = q->matrices * q->strip_tasks.parts * q->panel_tasks.parts;
    q->grain = 1;
    if (time > 8e-6 && q->tasks > 1 && tn_threads() > 1) {
        q->spread = true;
        q->grain = (int64_t)(4e-6 * (double)q->tasks / time) + 1;
    }
}

/* ---- b is kept packed -------------------------------------------------------------------------------------------- */

/* For one row: panels as wide as a kernel sums at a time, each over all of k. For tiles: as they are planned. */
static tn_cut kept_panels(const tn__gemm_job *q)
{
    return q->row ? (tn_cut){tn__ceil_div(q->vectors, q->kn->wide), q->kn->wide, 0} : q->panel;
}

size_t tn__gemm_kept_bytes(const tn__gemm_job *q)
{
    const tn_cut panels = kept_panels(q);
    return tn__lines(tn__cut_at(&panels, panels.parts) * q->kn->lanes * q->steps, q->size);
}

void tn__gemm_plan_kept(tn__gemm_job *q)
{
    q->kept = q->share_b = true;
    q->slot_bytes -= q->row ? 0 : q->b_bytes;
    q->b_bytes = 0;
    if (!q->row) return;
    q->panel = kept_panels(q);
    q->panel_tasks = cut_into(q->panel.parts, tn__min_i64(q->panel.parts, q->panel_tasks.parts));
    q->kc = q->steps;
    q->slot_bytes = q->sum_bytes = tn__lines(q->panel.each * q->kn->lanes, q->size);
    q->tasks = q->panel_tasks.parts;
    q->grain = tn__min_i64(q->grain, q->tasks);
}

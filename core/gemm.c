/* gemm.c — products of matrices, in the manner of BLIS.
 *
 * The result is cut into micro-tiles of MR rows (a strip) by NV vectors of columns (a panel), which a kernel keeps in
 * registers while k runs. A task is a block of strips and panels; tasks run in parallel and share nothing but what they
 * read. In a task k is cut into blocks of kc, so that the block of b [kc, columns] stays in the second cache and the
 * strip of a [MR, kc] in the first. A kernel reads a element by element, so a lies well as it is; b it reads by vectors
 * along a row: dense rows are read in place, anything else is packed into panels first, turned on the way, and
 * zero-filled to whole vectors.
 *
 * Each element of c is one chain of multiply-adds, p = 0 … k-1, started from 0: from one block of k to the next the
 * sums travel through memory in full precision, and alpha and beta come once, at the end. So the bits depend on k, the
 * dtype and the kernels alone, and every choice below (what is packed, where the cuts are, which operand's rows run
 * along the vectors) is a matter of speed. */
#include "core/gemm.h"

enum {
    K_BLOCK = 512,       /* terms of f32 in a block of k, half as many of f64: a strip is a third of the first cache */
    B_BYTES = 256 << 10, /* of b in a task: a quarter of the second cache, through which a and c stream too */
    SUM_BYTES = 256 << 10,  /* of sums on their way from one block of k to the next */
    SHARED_BYTES = 1 << 20, /* of a b that is packed once for all tasks */
    SET_BYTES = 4096,       /* rows so far apart, or a multiple, fall into the same set of the first cache */
    PAD = 16,               /* elements between packed rows of a, so that they do not */
    ROW_VECTORS = 128,      /* columns of a matrix-vector product that are summed at a time */
    SMALL_BYTES = 8 << 10   /* of scratch that lies on the stack */
};

/* Something cut into so many parts, as even as whole numbers allow. */
typedef struct {
    int64_t parts, each, rest;
} cut;
/* Where part i begins. */
static int64_t cut_at(const cut *c, int64_t i) { return i * c->each + tn__min_i64(i, c->rest); }
static cut     cut_into(int64_t size, int64_t parts) { return (cut){parts, size / parts, size % parts}; }
static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

typedef struct {
    const tn_gemm_kernels *kn;
    tn_gemm_call           g;
    int64_t                size, in, out; /* bytes of a sum, of an element of a and b, of c */
    int64_t                matrices;      /* in the batch */
    int64_t                vectors;       /* of columns, the last one perhaps in part */
    cut                    strip, panel;  /* rows into strips, vectors into panels */
    cut                    down, across;  /* strips and panels into tasks */
    int64_t                kc;
    bool                   row;            /* a matrix-vector product: see row_task */
    bool                   pack_a, pack_b; /* whether, in a task */
    bool                   share_b;        /* packed before the tasks */
    bool                   spread;         /* over threads */
    int64_t                tasks, grain;
    size_t                 b_bytes, a_bytes, sum_bytes, slot_bytes;
    char                  *slots, *shared;
} job;

static int64_t strip_at(const job *q, int64_t s) { return cut_at(&q->strip, s); }                /* in rows */
static int64_t panel_at(const job *q, int64_t p) { return cut_at(&q->panel, p) * q->kn->lanes; } /* in columns */

/* A block of a or b to dense rows of width, zero-filled. */
static void pack(const job *q, int64_t rows, int64_t cols, int64_t width, const char *from, int64_t row, int64_t col,
                 char *to)
{
    const tn_pack_step s = {rows, cols, width, from, row, col, to};
    if (q->g.dtype == TN_BF16) q->kn->pack_bf16(&s);
    else q->kn->pack(&s);
}

/* Rows [k0, k0 + kc) of panels [p0, p1) of b to memory, panel by panel, zero-filled to whole vectors. */
static void pack_b(const job *q, const char *b, int64_t k0, int64_t kc, int64_t p0, int64_t p1, char *to)
{
    const tn_gemm_call *g = &q->g;
    for (int64_t p = p0; p < p1; p++) {
        const int64_t col = panel_at(q, p), width = panel_at(q, p + 1) - col, cols = tn__min_i64(width, g->n - col);
        pack(q, kc, cols, width, b + (k0 * g->b_row + col * g->b_col) * q->in, g->b_row, g->b_col, to);
        to += kc * width * q->size;
    }
}

/* Columns [k0, k0 + kc) of a strip of a, as they lie: dense rows stay rows, dense columns stay columns. */
static void pack_a(const job *q, const char *a, int64_t k0, int64_t row, tn_gemm_step *step, char *to)
{
    const tn_gemm_call *g = &q->g;
    const char *const   from = a + (row * g->a_row + k0 * g->a_col) * q->in;
    step->a = to;
    if (g->a_row == 1 && g->a_col != 1) {
        pack(q, step->k, step->mr, step->mr, from, g->a_col, g->a_row, to);
        step->a_row = 1, step->a_col = step->mr;
    } else {
        pack(q, step->mr, step->k, step->k + PAD, from, g->a_row, g->a_col, to);
        step->a_row = step->k + PAD, step->a_col = 1;
    }
}

static void finish(const job *q, int64_t rows, int64_t cols, const void *acc, int64_t acc_row, void *c)
{
    const tn_gemm_call *g = &q->g;
    tn_finish_step      s = {.rows = rows, .cols = cols, .acc = acc, .acc_row = acc_row, .c = c};
    s.c_row = g->c_row, s.c_col = g->c_col, s.bf16 = g->ctype == TN_BF16;
    s.alpha = g->alpha, s.beta = g->beta;
    q->kn->finish(&s);
}

/* Strips [s0, s1) by panels [p0, p1) of one matrix. */
static void tile_task(const job *q, char *slot, const char *a, const char *b, char *c, int64_t s0, int64_t s1,
                      int64_t p0, int64_t p1)
{
    const tn_gemm_call *g = &q->g;
    char *const packed = slot, *const strip = packed + q->b_bytes, *const sums = strip + q->a_bytes;
    char *const   tile = sums + q->sum_bytes;
    const int64_t col0 = panel_at(q, p0), row0 = strip_at(q, s0), all = panel_at(q, p1) - col0;
    const bool    plain = g->alpha == 1 && g->beta == 0 && g->c_col == 1 && q->out == q->size;
    for (int64_t k0 = 0; k0 < g->k; k0 += q->kc) {
        const int64_t kc = tn__min_i64(q->kc, g->k - k0);
        const bool    last = k0 + kc == g->k;
        if (q->pack_b && !q->share_b) pack_b(q, b, k0, kc, p0, p1, packed);
        else if (!q->pack_b && col0 + all > g->n) pack_b(q, b, k0, kc, p1 - 1, p1, packed); /* only the last */
        for (int64_t s = s0; s < s1; s++) {
            const int64_t row = strip_at(q, s);
            tn_gemm_step  step = {.mr = (int)(strip_at(q, s + 1) - row), .k = kc};
            step.a = a + (row * g->a_row + k0 * g->a_col) * q->in, step.a_row = g->a_row, step.a_col = g->a_col;
            if (q->pack_a) pack_a(q, a, k0, row, &step, strip);
            for (int64_t p = p0; p < p1; p++) {
                const int64_t col = panel_at(q, p), width = panel_at(q, p + 1) - col;
                const bool    part = col + width > g->n, straight = last && plain && !part;
                char *const   sum = sums + ((row - row0) * all + (col - col0)) * q->size;
                char *const   to = c + (row * g->c_row + col * g->c_col) * q->out;
                step.nv = (int)(width / q->kn->lanes);
                step.b_row = width;
                if (q->share_b) step.b = q->shared + (k0 * q->vectors * q->kn->lanes + col * kc) * q->size;
                else if (q->pack_b) step.b = packed + (col - col0) * kc * q->size;
                else if (part) step.b = packed;
                else step.b = b + (k0 * g->b_row + col) * q->in, step.b_row = g->b_row;
                step.from = k0 ? sum : NULL, step.from_row = all;
                step.to = !last ? sum : straight ? to : tile;
                step.to_row = !last ? all : straight ? g->c_row : width;
                q->kn->tile(&step);
                if (last && !straight) finish(q, step.mr, tn__min_i64(width, g->n - col), tile, width, to);
            }
        }
    }
    if (g->k == 0) {
        const int64_t cols = tn__min_i64(panel_at(q, p1), g->n) - col0;
        finish(q, strip_at(q, s1) - row0, cols, NULL, 0, c + (row0 * g->c_row + col0 * g->c_col) * q->out);
    }
}

/* One row of c. Here a panel is as wide as its sums fit the first cache, and b is read once, as it lies. */
static void row_task(const job *q, char *slot, const char *a, const char *b, char *c, int64_t p0, int64_t p1)
{
    const tn_gemm_call *g = &q->g;
    const int64_t       lanes = q->kn->lanes;
    char *const sums = slot, *const packed = slot + q->sum_bytes;
    for (int64_t p = p0; p < p1; p++) {
        const int64_t col = panel_at(q, p), end = tn__min_i64(panel_at(q, p + 1), g->n);
        const int64_t whole = (end - col) / lanes * lanes, rest = end - col - whole;
        tn_gemv_step  s = {.n = whole, .k = g->k, .a = a, .a_col = g->a_col, .y = sums, .first = true};
        s.b = b + col * g->b_col * q->in, s.b_row = g->b_row, s.b_col = g->b_col;
        if (whole) q->kn->row(&s);
        s.y = sums + whole * q->size, s.n = lanes;
        s.b = packed, s.b_row = lanes, s.b_col = 1;
        for (int64_t k0 = 0; rest && k0 < g->k; k0 += q->kc) { /* less than a vector is left: filled up */
            s.k = tn__min_i64(q->kc, g->k - k0);
            pack(q, s.k, rest, lanes, b + (k0 * g->b_row + (col + whole) * g->b_col) * q->in, g->b_row, g->b_col,
                 packed);
            s.a = a + k0 * g->a_col * q->in, s.first = k0 == 0;
            q->kn->row(&s);
        }
        finish(q, 1, end - col, sums, 0, c + col * g->c_col * q->out);
    }
}

static void tasks(int64_t from, int64_t to, void *user)
{
    const job          *q = user;
    const tn_gemm_call *g = &q->g;
    char               *slot = q->slots + (q->spread ? (size_t)tn__worker() * q->slot_bytes : 0);
    const int64_t       each = q->down.parts * q->across.parts;
    for (int64_t t = from; t < to; t++) {
        int64_t matrix = each == 1 ? t : t / each, block = t - matrix * each, ao = 0, bo = 0, co = 0;
        for (int d = g->dims - 1; d >= 0; d--) {
            const int64_t i = matrix % g->batch[d];
            matrix /= g->batch[d];
            ao += i * g->a_batch[d], bo += i * g->b_batch[d], co += i * g->c_batch[d];
        }
        const char   *a = (const char *)g->a + ao * q->in, *b = (const char *)g->b + bo * q->in;
        char         *c = (char *)g->c + co * q->out;
        const int64_t i = block / q->across.parts, j = block % q->across.parts;
        const int64_t p0 = cut_at(&q->across, j), p1 = cut_at(&q->across, j + 1);
        if (q->row) row_task(q, slot, a, b, c, p0, p1);
        else tile_task(q, slot, a, b, c, cut_at(&q->down, i), cut_at(&q->down, i + 1), p0, p1);
    }
}

static void share_b(int64_t from, int64_t to, void *user)
{
    const job *q = user;
    for (int64_t i = from; i < to; i++) {
        const int64_t k0 = i / q->across.parts * q->kc, j = i % q->across.parts, kc = tn__min_i64(q->kc, q->g.k - k0);
        const int64_t p0 = cut_at(&q->across, j), p1 = cut_at(&q->across, j + 1);
        char         *at = q->shared + (k0 * q->vectors * q->kn->lanes + panel_at(q, p0) * kc) * q->size;
        pack_b(q, q->g.b, k0, kc, p0, p1, at);
    }
}

/* ---- which way, and how the work is cut: speed, never bits ------------------------------------------------------ */

/* The call seen as another that has the same result: no idle dims, rows of c along the vectors. */
static void simplify(tn_gemm_call *g)
{
    if (g->alpha == 0) g->k = 0;
    for (int d = g->dims - 1; d >= 0; d--) {
        const int64_t size = g->batch[d];
        const bool    idle = size == 1;
        /* matrices that lie below (beside) each other and share b (a) are one taller (wider) matrix */
        const bool stacked = g->m == 1 || (g->a_batch[d] == g->m * g->a_row && g->c_batch[d] == g->m * g->c_row);
        const bool abreast = g->n == 1 || (g->b_batch[d] == g->n * g->b_col && g->c_batch[d] == g->n * g->c_col);
        const bool below = g->b_batch[d] == 0 && stacked, beside = g->a_batch[d] == 0 && abreast;
        if (!idle && !below && !beside) continue;
        if (!idle && below) {
            if (g->m == 1) g->a_row = g->a_batch[d], g->c_row = g->c_batch[d];
            g->m *= size;
        } else if (!idle) {
            if (g->n == 1) g->b_col = g->b_batch[d], g->c_col = g->c_batch[d];
            g->n *= size;
        }
        g->dims--;
        for (int i = d; i < g->dims; i++) {
            g->batch[i] = g->batch[i + 1], g->a_batch[i] = g->a_batch[i + 1];
            g->b_batch[i] = g->b_batch[i + 1], g->c_batch[i] = g->c_batch[i + 1];
        }
        d = g->dims; /* the others may fit now */
    }
    if (g->m > 1 && (g->n == 1 || (g->c_col != 1 && g->c_row == 1))) { /* cᵀ = bᵀ aᵀ */
        const tn_gemm_call o = *g;
        g->m = o.n, g->n = o.m, g->a = o.b, g->b = o.a;
        g->a_row = o.b_col, g->a_col = o.b_row, g->b_row = o.a_col, g->b_col = o.a_row;
        g->c_row = o.c_col, g->c_col = o.c_row;
        for (int d = 0; d < g->dims; d++) g->a_batch[d] = o.b_batch[d], g->b_batch[d] = o.a_batch[d];
    }
}

static size_t lines(int64_t numbers, int64_t size) { return ((size_t)(numbers * size) + 63) / 64 * 64; }

static void plan_row(job *q, double traffic)
{
    const int64_t lanes = q->kn->lanes, most = tn__max_i64(q->vectors / 4, 1);
    const double  wanted = traffic / 10e-6; /* tasks */
    const int64_t panels = wanted < (double)most ? (int64_t)wanted : most;
    q->strip = q->down = cut_into(1, 1);
    q->panel = cut_into(q->vectors, tn__max_i64(ceil_div(q->vectors, ROW_VECTORS), panels));
    q->across = cut_into(q->panel.parts, q->panel.parts);
    q->sum_bytes = lines((q->panel.each + 1) * lanes, q->size);
    q->slot_bytes = q->sum_bytes + lines(q->kc * lanes, q->size);
}

static void plan_tiles(job *q, double time)
{
    const tn_gemm_call    *g = &q->g;
    const tn_gemm_kernels *kn = q->kn;
    const int64_t          most = (int64_t)kn->nv * kn->lanes; /* columns of a panel */
    const int64_t          strips = ceil_div(g->m, kn->mr), panels = ceil_div(q->vectors, kn->nv);
    q->strip = cut_into(g->m, strips), q->panel = cut_into(q->vectors, panels);
    q->pack_a = g->dtype == TN_BF16;
    /* dense rows are read as fast in place, except perhaps where they all fall into a few sets of the caches */
    const bool falling = g->b_row * q->in % SET_BYTES == 0 && g->m > 256;
    q->pack_b = g->dtype == TN_BF16 || g->b_col != 1 || falling;

    /* what a task can take without leaving the caches */
    int64_t across = 1, down = 1;
    if (g->k > B_BYTES / q->size / g->n) across = ceil_div(panels, tn__max_i64(1, B_BYTES / (most * q->kc * q->size)));
    if (g->k > q->kc) {
        const int64_t sums = SUM_BYTES / (ceil_div(panels, across) * most * kn->mr * q->size);
        down = ceil_div(strips, tn__max_i64(8, sums));
    }
    /* enough tasks for many threads, but none too small to be worth handing over */
    const double wanted = time / 10e-6 < 16 ? time / 10e-6 : 16;
    while ((double)(q->matrices * across * down) < wanted) {
        const bool tall = strips / down * kn->mr * 2 >= panels / across * most;
        if (tall && strips >= 2 * down) down *= 2;
        else if (panels >= 2 * across) across *= 2;
        else break;
    }
    q->down = cut_into(strips, down), q->across = cut_into(panels, across);

    bool one_b = true;
    for (int d = 0; d < g->dims; d++) one_b = one_b && g->b_batch[d] == 0;
    const bool small = g->k > 0 && q->vectors * kn->lanes <= SHARED_BYTES / q->size / g->k;
    q->share_b = q->pack_b && one_b && small && (down > 1 || q->matrices > 1);
    const int64_t width = ceil_div(panels, across) * most;
    if (q->pack_b && !q->share_b) q->b_bytes = lines(width * q->kc, q->size);
    else if (g->n % kn->lanes) q->b_bytes = lines(most * q->kc, q->size);
    if (q->pack_a) q->a_bytes = lines(kn->mr * (q->kc + PAD), q->size);
    if (g->k > q->kc) q->sum_bytes = lines(ceil_div(strips, down) * kn->mr * width, q->size);
    q->slot_bytes = q->b_bytes + q->a_bytes + q->sum_bytes + lines(kn->mr * most, q->size);
}

static void plan(job *q)
{
    const tn_gemm_call *g = &q->g;
    const int64_t       k_most = K_BLOCK * 4 / q->size;
    q->matrices = 1;
    for (int d = 0; d < g->dims; d++) q->matrices *= g->batch[d];
    q->kc = g->k <= k_most ? g->k : (ceil_div(g->k, ceil_div(g->k, k_most)) + 15) / 16 * 16;
    q->vectors = ceil_div(g->n, q->kn->lanes);
    q->row = g->m == 1 && g->k > 0 && g->dtype != TN_BF16 && (g->b_row == 1 || g->b_col == 1);

    /* in seconds, roughly: of the arithmetic, or of reading b */
    const double terms = (double)q->matrices * (double)g->n * (double)g->k;
    const double work = 1e-11 * terms * (double)g->m, traffic = 2.5e-11 * terms * (double)q->in;
    const double time = work > traffic ? work : traffic;
    if (q->row) plan_row(q, traffic);
    else plan_tiles(q, time);
    q->tasks = q->matrices * q->down.parts * q->across.parts;
    q->grain = 1;
    if (time > 8e-6 && q->tasks > 1 && tn_threads() > 1) {
        q->spread = true;
        q->grain = (int64_t)(4e-6 * (double)q->tasks / time) + 1;
    }
}

bool tn__gemm(const tn_gemm_call *call)
{
    job q = {.g = *call};
    for (int d = 0; d < call->dims; d++)
        if (call->batch[d] == 0) return true;
    if (call->m == 0 || call->n == 0) return true;
    simplify(&q.g);
    const tn_kernel_table *table = call->kernels ? call->kernels : tn__kernels();
    q.kn = call->dtype == TN_F64 ? table->gemm_f64 : table->gemm_f32;
    q.size = call->dtype == TN_F64 ? 8 : 4;
    q.in = (int64_t)tn__dtype_bytes(call->dtype), q.out = (int64_t)tn__dtype_bytes(call->ctype);
    plan(&q);

    const size_t      shared = q.share_b ? lines(q.vectors * q.kn->lanes * q.g.k, q.size) : 0;
    const size_t      bytes = q.slot_bytes * (q.spread ? (size_t)tn_threads() : 1) + shared;
    _Alignas(64) char local[SMALL_BYTES];
    q.shared = bytes <= sizeof local ? local : tn__mem_get(bytes);
    if (!q.shared) return false;
    q.slots = q.shared + shared;
    if (shared) {
        const int64_t blocks = ceil_div(q.g.k, q.kc) * q.across.parts;
        if (q.spread) tn_parallel_for(blocks, 1, share_b, &q);
        else share_b(0, blocks, &q);
    }
    if (q.spread) tn_parallel_for(q.tasks, q.grain, tasks, &q);
    else tasks(0, q.tasks, &q);
    if (bytes > sizeof local) tn__mem_put(q.shared, bytes);
    return true;
}

void tn_gemm(double alpha, const tn_tensor *a, const tn_tensor *b, double beta, tn_tensor *c)
{
    if (tn__blocked()) return;
    const tn_layout *l = &c->l;
    const int        nd = l->shape.n, an = a->l.shape.n, bn = b->l.shape.n;
    tn_gemm_call     g = {.dtype = a->dtype, .ctype = c->dtype, .alpha = alpha, .beta = beta, .dims = nd - 2};
    g.m = l->shape.d[nd - 2], g.n = l->shape.d[nd - 1], g.k = a->l.shape.d[an - 1];
    g.a = tn__ptr(a), g.a_row = a->l.stride[an - 2], g.a_col = a->l.stride[an - 1];
    g.b = tn__ptr(b), g.b_row = b->l.stride[bn - 2], g.b_col = b->l.stride[bn - 1];
    g.c = tn__ptr(c), g.c_row = l->stride[nd - 2], g.c_col = l->stride[nd - 1];
    for (int d = 0; d < g.dims; d++) {
        const int da = d - nd + an, db = d - nd + bn; /* the dims of a and b that stand under c's */
        g.batch[d] = l->shape.d[d], g.c_batch[d] = l->stride[d];
        g.a_batch[d] = da >= 0 && a->l.shape.d[da] != 1 ? a->l.stride[da] : 0;
        g.b_batch[d] = db >= 0 && b->l.shape.d[db] != 1 ? b->l.stride[db] : 0;
    }
    tn__gemm(&g);
}

/* rows.c — the skeleton for kernels that need a whole row along one dim: softmax, norms, sorting, cumulative sums;
 * optionally with sums over the rows, which the weights of layer_norm and the losses need. */
#include "core/tensor/strided_walk.h"
#include "core/base/parallel.h"
#include "core/skeletons/kernel_dtype.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    WORK = 16384,  /* minimum elements per task */
    STACK = 16384, /* bytes of scratch on the stack */
    PARTS = 32,    /* maximum number of partial sums */
    LEAST = 4,     /* minimum rows in a partial sum */
    TOGETHER = 32  /* rows added in f32 before their sum is widened to f64 */
};
#define TOO_LONG ((int64_t)1 << 44) /* a row, perhaps expanded, too long for any memory */

typedef struct {
    tn__kernel    k;
    tn__kernel_at k_at; /* instead of k */
    tn_dtype      type; /* of the kernel */
    bool          columns;
    const void   *args;
    int           ny, nx, nsums;
    tn_dtype      dtype[TN__MAX_OPERANDS], kernel_dtype[TN__MAX_OPERANDS];
    char         *base[TN__MAX_OPERANDS];
    int64_t       length[TN__MAX_OPERANDS], step[TN__MAX_OPERANDS]; /* along dim */
    int64_t       size[TN__MAX_OPERANDS];                           /* of an element */
    bool          direct[TN__MAX_OPERANDS];
    int64_t       place[TN__MAX_OPERANDS]; /* offset of the buffer in the scratch */
    int64_t       n, count, scratch;       /* the row's length; number of rows; bytes of scratch a worker */
    char         *heap;
    bool          plain;       /* the kernel runs on the tensors' own memory, whose rows are adjacent */
    tn__walk      w;           /* over the rows */
    double       *sums;        /* [parts, width] */
    int64_t       parts, part; /* number of parts, and rows in each */
    int64_t       width;       /* doubles of a part: all sums in sequence */
    int64_t       place_of_sum[TN__MAX_OPERANDS];
} job;

/* A fence after non-temporal stores: other threads see them before they learn that this one is done. */
static void stores_are_done(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

static int64_t sum_bytes(const job *j) { return j->columns && j->type == TN_F32 ? 4 : 8; }

static void run(const job *j, int64_t from, int64_t to, char *sums)
{
    _Alignas(64) char stack[STACK];
    char             *scratch = j->heap ? j->heap + tn__worker() * j->scratch : stack;
    void             *y[TN__MAX_OPERANDS], *p;
    const void       *x[TN__MAX_OPERANDS];
    int64_t           index[TN_MAX_DIMS];
    char             *at[TN__MAX_OPERANDS] = {NULL};
    for (int i = 0; i < j->nsums; i++)
        y[j->ny + i] = sums && j->place_of_sum[i] >= 0 ? sums + j->place_of_sum[i] * sum_bytes(j) : NULL;
    for (int64_t r = from; r < to; r++) {
        for (int o = 0; o < j->ny + j->nx && j->plain; o++) {
            p = j->base[o] ? j->base[o] + r * j->w.stride[o][0] * j->size[o] : NULL;
            if (o < j->ny) y[o] = p;
            else x[o - j->ny] = p;
        }
        for (int o = 0; o < j->ny + j->nx && !j->plain; o++) {
            p = NULL;
            if (j->base[o]) {
                at[o] = j->base[o] + tn__walk_at(&j->w, o, r, index) * j->size[o];
                p = j->direct[o] ? at[o] : scratch + j->place[o];
                if (o >= j->ny && !j->direct[o])
                    tn__convert(j->length[o], p, j->kernel_dtype[o], 1, at[o], j->dtype[o], j->step[o]);
            }
            if (o < j->ny) y[o] = p;
            else x[o - j->ny] = p;
        }
        if (j->k_at) j->k_at(r, j->n, y, x, j->args);
        else j->k(j->n, y, x, j->args);
        for (int o = 0; o < j->ny && !j->plain; o++)
            if (j->base[o] && !j->direct[o])
                tn__convert(j->length[o], at[o], j->dtype[o], j->step[o], y[o], j->kernel_dtype[o], 1);
    }
    stores_are_done();
}

static void rows(int64_t from, int64_t to, void *user) { run(user, from, to, NULL); }

static void parts(int64_t from, int64_t to, void *user)
{
    const job *j = user;
    for (int64_t i = from; i < to; i++) {
        double       *sums = j->sums + i * j->width;
        const int64_t first = i * j->part, last = tn__min_i64(j->count, first + j->part);
        if (!j->columns || j->type != TN_F32 || first >= last) {
            memset(sums, 0, (size_t)j->width * sizeof *sums);
            run(j, first, last, (char *)sums);
            continue;
        }
        float *some = (float *)(void *)(j->sums + j->parts * j->width) + i * j->width;
        for (int64_t r = first; r < last; r += TOGETHER) {
            memset(some, 0, (size_t)j->width * sizeof *some);
            run(j, r, tn__min_i64(last, r + TOGETHER), (char *)some);
            for (int64_t k = 0; k < j->width; k++) sums[k] = (r == first ? 0 : sums[k]) + (double)some[k];
        }
    }
}

/* Fills j from the operands; NULL operands have base NULL. */
static void look(job *j, int dim, tn__list y, tn__list x)
{
    const tn_shape space = (y.n && y.t[0] ? y.t[0] : x.t[0])->l.shape;
    if (dim < 0) dim += space.n;
    for (int o = 0; o < y.n + x.n; o++) {
        const tn_tensor *t = o < y.n ? y.t[o] : x.t[o - y.n];
        if (!t) continue;
        int d = dim - (space.n - t->l.shape.n); /* dims are counted from the end, as in broadcasting */
        j->base[o] = tn__ptr(t), j->dtype[o] = t->dtype, j->size[o] = (int64_t)tn__dtype_bytes(t->dtype);
        j->length[o] = d >= 0 && t->l.shape.n ? t->l.shape.d[d] : 1;
        j->step[o] = d >= 0 && t->l.shape.n ? t->l.stride[d] : 0;
        if (o == y.n) j->n = j->length[o];
    }
    for (int i = 0; i < space.n; i++) {
        if (i == dim) continue;
        int64_t stride[TN__MAX_OPERANDS];
        for (int o = 0; o < y.n + x.n; o++) {
            const tn_tensor *t = o < y.n ? y.t[o] : x.t[o - y.n];
            stride[o] = t ? tn__stride_in(t, i, space.n) : 0;
        }
        tn__walk_dim(&j->w, space.d[i], stride);
        j->count *= space.d[i];
    }
    tn__walk_done(&j->w);
}

/* Adds the parts in order. */
static void total(const job *j, int64_t count, tn__list sums)
{
    for (int64_t i = 1; i < count; i++)
        for (int64_t k = 0; k < j->width; k++) j->sums[k] += j->sums[i * j->width + k];
    for (int i = 0; i < sums.n; i++)
        if (sums.t[i])
            tn__convert(tn_numel(sums.t[i]), tn__ptr(sums.t[i]), sums.t[i]->dtype, 1, j->sums + j->place_of_sum[i],
                        TN_F64, 1);
}

static void over_rows(tn__kernel_set k, tn__kernel_set_at at, int dim, tn__list y, tn__list sums, tn__list x,
                      const void *args, bool columns)
{
    const tn_dtype kt = tn__kernel_dtype(y, x);
    job            j = {.k = tn__pick(k, kt),
                        .k_at = kt == TN_F64 ? at.f64 : at.f32,
                        .type = kt,
                        .columns = columns,
                        .args = args,
                        .ny = y.n,
                        .nx = x.n,
                        .nsums = sums.n,
                        .w.nops = y.n + x.n,
                        .n = 1,
                        .count = 1};
    look(&j, dim, y, x);
    j.plain = j.w.nd == 1;
    for (int o = 0; o < y.n + x.n; o++) {
        if (!j.base[o]) continue;
        j.kernel_dtype[o] = tn__operand_dtype(kt, j.dtype[o]);
        j.direct[o] = j.dtype[o] == j.kernel_dtype[o] && (j.step[o] == 1 || j.length[o] <= 1);
        if (j.direct[o]) continue;
        j.plain = false;
        j.place[o] = j.scratch;
        j.scratch += (tn__min_i64(j.length[o], TOO_LONG) * 8 + 63) / 64 * 64;
    }
    for (int i = 0; i < sums.n; i++) {
        j.place_of_sum[i] = sums.t[i] ? j.width : -1;
        if (sums.t[i]) j.width += tn_numel(sums.t[i]);
    }
    if (j.count == 0 && j.width == 0) return;
    /* the borders of parts depend on the number of rows alone */
    j.part = tn__max_i64(LEAST, (j.count + PARTS - 1) / PARTS);
    const int64_t count = tn__max_i64(1, (j.count + j.part - 1) / j.part);
    j.parts = count;
    const size_t sum_bytes = (size_t)(count * j.width) * (sizeof(double) + sizeof(float));
    const size_t bytes = j.scratch > STACK ? (size_t)(j.scratch * tn_threads()) : 0;
    if (bytes && !(j.heap = tn__mem_get(bytes))) return;
    if (!sum_bytes) {
        tn_parallel_for(j.count, tn__max_i64(1, WORK / tn__max_i64(1, j.n)), rows, &j);
    } else if ((j.sums = tn__mem_get(sum_bytes))) {
        tn_parallel_for(count, tn__max_i64(1, WORK / tn__max_i64(1, j.part * j.n)), parts, &j);
        total(&j, count, sums);
        tn__mem_put(j.sums, sum_bytes);
    }
    if (bytes) tn__mem_put(j.heap, bytes);
}

void tn__rows(tn__kernel_set k, int dim, tn__list y, tn__list x, const void *args)
{
    over_rows(k, (tn__kernel_set_at){NULL, NULL, NULL}, dim, y, (tn__list){.n = 0}, x, args, false);
}
void tn__rows_sums(tn__kernel_set k, int dim, tn__list y, tn__list sums, tn__list x, const void *args)
{
    over_rows(k, (tn__kernel_set_at){NULL, NULL, NULL}, dim, y, sums, x, args, false);
}
void tn__rows_columns(tn__kernel_set_at k, int dim, tn__list y, tn__list columns, tn__list x, const void *args)
{
    over_rows((tn__kernel_set){NULL, NULL, NULL}, k, dim, y, columns, x, args, true);
}

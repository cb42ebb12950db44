/* map.c — the pointwise skeleton: y = k(x), with any strides, broadcasting and dtypes, in parallel.
 *
 * If every operand is dense and of the kernel's dtype, the kernel runs on the tensors' own memory; otherwise blocks of
 * a few hundred elements are gathered into buffers on the stack, computed, and scattered. */
#include "core/base/parallel.h"
#include "core/tensor/strided_walk.h"
#include "core/skeletons/kernel_dtype.h"

enum { GRAIN = 16384, BLOCK = 512, BUFFER = 4 * BLOCK }; /* elements: of a task; of a block; of all buffers */
_Static_assert(TN__MAX_OPERANDS *(BLOCK / 4) <= BUFFER, "the smallest blocks of all operands fit");

typedef struct {
    tn__kernel    k;
    tn__kernel_at k_at; /* instead of k */
    const void   *args;
    int           ny, nops;
    tn_dtype      dtype[TN__MAX_OPERANDS], kernel_dtype[TN__MAX_OPERANDS];
    char         *base[TN__MAX_OPERANDS]; /* NULL: operand absent */
    tn__walk      w;
} job;

static void dense(int64_t from, int64_t to, void *user)
{
    const job  *j = user;
    void       *y[TN__MAX_OPERANDS];
    const void *x[TN__MAX_OPERANDS];
    for (int o = 0; o < j->nops; o++) {
        char *p = j->base[o] ? j->base[o] + from * (int64_t)tn__dtype_bytes(j->dtype[o]) : NULL;
        if (o < j->ny) y[o] = p;
        else x[o - j->ny] = p;
    }
    if (j->k_at) j->k_at(from, to - from, y, x, j->args);
    else j->k(to - from, y, x, j->args);
}

/* True if operand o is one element for all results. */
static bool is_constant(const job *j, int o)
{
    for (int i = 0; i < j->w.nd; i++)
        if (j->w.stride[o][i] != 0) return false;
    return true;
}

/* Elements of a block: fewer for many operands, so that a small stack is enough. */
static int64_t block_of(int operands) { return operands <= 4 ? BLOCK : operands <= 8 ? BLOCK / 2 : BLOCK / 4; }

/* Where the kernel finds elements [at, at + n) of operand o: in place, if they are dense in the `left` elements that
 * remain of the row and have the kernel's dtype; otherwise in the buffer, into which inputs are gathered. */
static void *locate(const job *j, int o, int64_t at, int64_t n, int64_t left, void *buffer, bool *filled)
{
    int64_t index[TN_MAX_DIMS];
    if (!j->base[o]) return NULL;
    const bool dense_row = j->w.stride[o][j->w.nd - 1] == 1 && n <= left;
    if (dense_row && j->dtype[o] == j->kernel_dtype[o])
        return j->base[o] + tn__walk_at(&j->w, o, at, index) * (int64_t)tn__dtype_bytes(j->dtype[o]);
    if (o < j->ny) return buffer; /* a result is scattered after the kernel has run */
    if (!is_constant(j, o)) {
        tn__walk_copy(&j->w, o, at, n, j->base[o], j->dtype[o], buffer, j->kernel_dtype[o], false);
    } else if (!*filled) {
        tn__convert(block_of(j->nops), buffer, j->kernel_dtype[o], 1, j->base[o], j->dtype[o], 0);
        *filled = true;
    }
    return buffer;
}

static void strided(int64_t from, int64_t to, void *user)
{
    const job        *j = user;
    _Alignas(64) char buffer[BUFFER * 8];
    bool              filled[TN__MAX_OPERANDS] = {false}; /* of a constant operand */
    void             *y[TN__MAX_OPERANDS];
    const void       *x[TN__MAX_OPERANDS];
    const int64_t     inner = j->w.size[j->w.nd - 1], block = block_of(j->nops);
    for (int64_t at = from, n; at < to; at += n) {
        /* long rows are taken one by one, so that dense operands need no gathering; short ones are joined */
        const int64_t left = inner - at % inner;
        n = tn__min_i64(to - at, block);
        if (left >= 64 || inner >= 4 * block) n = tn__min_i64(n, left);
        for (int o = 0; o < j->nops; o++) {
            void *p = locate(j, o, at, n, left, buffer + o * block * 8, &filled[o]);
            if (o < j->ny) y[o] = p;
            else x[o - j->ny] = p;
        }
        if (j->k_at) j->k_at(at, n, y, x, j->args);
        else j->k(n, y, x, j->args);
        for (int o = 0; o < j->ny; o++)
            if (y[o] == buffer + o * block * 8)
                tn__walk_copy(&j->w, o, at, n, j->base[o], j->dtype[o], y[o], j->kernel_dtype[o], true);
    }
}

static void map(tn__kernel_set k, tn__kernel_set_at k_at, tn__list y, tn__list x, const void *args)
{
    const tn_shape *shape = &y.t[0]->l.shape;
    const int64_t   n = tn__numel_of(shape);
    if (n == 0) return;
    const tn_dtype kt = tn__kernel_dtype(y, x);
    job            j;
    j.k = tn__pick(k, kt);
    j.k_at = kt == TN_F32 ? k_at.f32 : kt == TN_F64 ? k_at.f64 : k_at.i64;
    j.args = args;
    j.ny = y.n, j.nops = y.n + x.n;

    bool all_dense = true;
    for (int o = 0; o < j.nops; o++) {
        const tn_tensor *t = o < y.n ? y.t[o] : x.t[o - y.n];
        j.base[o] = NULL, j.dtype[o] = j.kernel_dtype[o] = kt;
        if (!t) continue;
        j.base[o] = tn__ptr(t), j.dtype[o] = t->dtype, j.kernel_dtype[o] = tn__operand_dtype(kt, t->dtype);
        all_dense = all_dense && tn__direct_operand(t, shape, j.kernel_dtype[o]);
    }
    if (all_dense) {
        tn__compute_for(n, GRAIN, dense, &j);
        return;
    }
    j.w.nd = 0, j.w.nops = j.nops;
    for (int i = 0; i < shape->n; i++) {
        int64_t stride[TN__MAX_OPERANDS];
        for (int o = 0; o < j.nops; o++) {
            const tn_tensor *t = o < y.n ? y.t[o] : x.t[o - y.n];
            stride[o] = t ? tn__stride_in(t, i, shape->n) : 0;
        }
        tn__walk_dim(&j.w, shape->d[i], stride);
    }
    tn__walk_done(&j.w);
    tn__compute_for(n, GRAIN, strided, &j);
}

void tn__map(tn__kernel_set k, tn__list y, tn__list x, const void *args)
{
    map(k, (tn__kernel_set_at){NULL, NULL, NULL}, y, x, args);
}
void tn__map_at(tn__kernel_set_at k, tn__list y, tn__list x, const void *args)
{
    map((tn__kernel_set){NULL, NULL, NULL}, k, y, x, args);
}

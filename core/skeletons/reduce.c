/* reduce.c — the streaming reductions. The elements of one result are taken in the order of their indices and cut into
 * segments of SEGMENT and blocks of BLOCK elements, counted from the row's beginning, whatever the strides: so the
 * kernel folds the same values in the same order for every layout and every number of threads.
 *
 * Neighbouring results are processed together as a tile: if the reduced elements are far apart and the results close
 * together (a sum over the rows of a matrix), one cache line then serves the whole tile. */
#include "core/base/parallel.h"
#include "core/kernels/kernels.h"
#include "core/skeletons/kernel_dtype.h"
#include "core/kernels/sum_lanes.h"
#include "core/tensor/strided_walk.h"

enum { SEGMENT = 16384, BLOCK = 256, TILE = 16, WIDE = 64, WORK = 16384 };
_Static_assert((size_t)WIDE * sizeof(tn__lanes) >= (size_t)TILE * TN__MAX_STATE,
               "the states of a tile fit in one buffer");

typedef struct {
    const tn__reducer *r;
    const void        *args;
    tn_dtype           kt, dtype, kernel_dtype;
    char              *base;
    int64_t            n, m, segments; /* elements a result, results, segments a result */
    int64_t            tile, tiles;    /* results in a tile, and tiles */
    tn__walk           kept, reduced;  /* over the results; over the elements of one */
    tn__list           y;
    char              *states; /* [m, segments], if there are several segments */
} job;

/* Folds segment s of results [first, first + count) into states. */
static void fold(const job *j, int64_t first, int64_t count, int64_t s, char *states)
{
    _Alignas(64) char buffer[TILE][BLOCK * 8];
    int64_t           offset[TILE], index[TN_MAX_DIMS], place[BLOCK];
    const int64_t size = (int64_t)tn__dtype_bytes(j->dtype), kernel_size = (int64_t)tn__dtype_bytes(j->kernel_dtype);
    const int64_t end = tn__min_i64(j->n, (s + 1) * SEGMENT);
    const int64_t inner = j->reduced.size[j->reduced.nd - 1], step = j->reduced.stride[0][j->reduced.nd - 1];
    bool          adjacent = j->dtype == j->kernel_dtype; /* results next to each other in memory */
    for (int64_t k = 0; k < count; k++) {
        offset[k] = tn__walk_at(&j->kept, 0, first + k, index);
        adjacent = adjacent && offset[k] == offset[0] + k;
        j->r->init(states + (size_t)k * j->r->state, j->args);
    }
    for (int64_t at = s * SEGMENT; at < end; at += BLOCK) {
        const int64_t n = tn__min_i64(BLOCK, end - at);
        const bool    one_run = at % inner + n <= inner;
        const int64_t start = tn__walk_at(&j->reduced, 0, at, index);
        const bool    direct = one_run && step == 1 && j->dtype == j->kernel_dtype;
        if (!direct && adjacent && count > 1) { /* transpose the tile into the buffer, line by line */
            for (int64_t i = 0; i < n; i++)
                place[i] = one_run ? start + i * step : tn__walk_at(&j->reduced, 0, at + i, index);
            for (int64_t i = 0; i < n; i++) {
                const char *line = j->base + (offset[0] + place[i]) * size;
                if (kernel_size == 4)
                    for (int64_t k = 0; k < count; k++)
                        ((float *)(void *)buffer[k])[i] = ((const float *)(const void *)line)[k];
                else if (j->kt == TN_F64 && j->dtype == TN_F64)
                    for (int64_t k = 0; k < count; k++)
                        ((double *)(void *)buffer[k])[i] = ((const double *)(const void *)line)[k];
                else
                    for (int64_t k = 0; k < count; k++)
                        ((int64_t *)(void *)buffer[k])[i] = ((const int64_t *)(const void *)line)[k];
            }
        }
        for (int64_t k = 0; k < count; k++) {
            const void *x = buffer[k];
            if (direct) x = j->base + (offset[k] + start) * size;
            else if (!(adjacent && count > 1))
                tn__walk_copy(&j->reduced, 0, at, n, j->base + offset[k] * size, j->dtype, buffer[k], j->kernel_dtype,
                              false);
            j->r->step(n, at, states + (size_t)k * j->r->state, x, j->args);
        }
    }
}

/* Like fold, for a wide tile of sums that are adjacent in memory: adds each line of it at once, to the lane given by
 * its place in the segment. */
static void add_lines(const job *j, int64_t first, int64_t count, int64_t s, char *states)
{
    double        lane[TN__LANES][WIDE] = {{0}};
    int64_t       index[TN_MAX_DIMS];
    const int64_t inner = j->reduced.size[j->reduced.nd - 1], step = j->reduced.stride[0][j->reduced.nd - 1];
    const int64_t size = (int64_t)tn__dtype_bytes(j->dtype), from = s * SEGMENT, to = tn__min_i64(j->n, from + SEGMENT);
    const char   *base = j->base + first * size;
    for (int64_t at = from; at < to;) {
        const int64_t start = tn__walk_at(&j->reduced, 0, at, index), n = tn__min_i64(to - at, inner - at % inner);
        const void   *x = base + start * size;
        if (j->kt == TN_F64) tn__kernels()->rows_f64->add_lines(n, at, count, x, step, false, lane[0], WIDE);
        else tn__kernels()->rows_f32->add_lines(n, at, count, x, step, j->dtype == TN_BF16, lane[0], WIDE);
        at += n;
    }
    for (int64_t k = 0; k < count; k++)
        for (int l = 0; l < TN__LANES; l++) ((tn__lanes *)(void *)states)[k].lane[l] = lane[l][k];
}

static void finish(const job *j, int64_t result, const char *state)
{
    _Alignas(8) char value[TN__MAX_OPERANDS][8];
    void            *y[TN__MAX_OPERANDS];
    for (int i = 0; i < j->y.n; i++) y[i] = value[i];
    j->r->finish(j->n, state, y, j->args);
    for (int i = 0; i < j->y.n; i++) {
        const tn_tensor *t = j->y.t[i];
        char            *to = (char *)tn__ptr(t) + result * (int64_t)tn__dtype_bytes(t->dtype);
        tn__convert(1, to, t->dtype, 1, value[i], tn__operand_dtype(j->kt, t->dtype), 1);
    }
}

static void tile(int64_t from, int64_t to, void *user)
{
    const job        *j = user;
    _Alignas(64) char local[WIDE * sizeof(tn__lanes)]; /* large enough for TILE of the largest states */
    for (int64_t task = from; task < to; task++) {
        const int64_t first = task / j->segments * j->tile, s = task % j->segments;
        const int64_t count = tn__min_i64(j->tile, j->m - first);
        (j->tile == WIDE ? add_lines : fold)(j, first, count, s, local);
        for (int64_t k = 0; k < count; k++) {
            const char *state = local + (size_t)k * j->r->state;
            if (j->segments == 1) {
                finish(j, first + k, state);
            } else {
                char *to_state = j->states + (size_t)((first + k) * j->segments + s) * j->r->state;
                for (size_t b = 0; b < j->r->state; b++) to_state[b] = state[b];
            }
        }
    }
}

void tn__reduce(tn__reducers k, tn_dims dims, tn__list y, tn_tensor *x, const void *args)
{
    job j = {.args = args,
             .kt = tn__kernel_dtype(y, TN__LIST(x)),
             .dtype = x->dtype,
             .base = tn__ptr(x),
             .n = 1,
             .m = 1,
             .kept.nops = 1,
             .reduced.nops = 1,
             .y = y};
    j.r = j.kt == TN_F32 ? k.f32 : j.kt == TN_F64 ? k.f64 : k.i64;
    j.kernel_dtype = tn__operand_dtype(j.kt, x->dtype);
    bool reduced[TN_MAX_DIMS] = {false};
    for (int i = 0; i < dims.n; i++) reduced[dims.d[i]] = true;
    for (int i = 0; i < x->l.shape.n; i++) {
        tn__walk_dim(reduced[i] ? &j.reduced : &j.kept, x->l.shape.d[i], &x->l.stride[i]);
        if (reduced[i]) j.n *= x->l.shape.d[i];
        else j.m *= x->l.shape.d[i];
    }
    tn__walk_done(&j.kept), tn__walk_done(&j.reduced);
    if (j.m == 0) return;
    j.segments = tn__max_i64(1, (j.n + SEGMENT - 1) / SEGMENT);
    const bool side_by_side = j.kept.nd == 1 && j.kept.stride[0][0] == 1 && j.m > 1;
    j.tile = j.r->lanes && side_by_side && tn__is_float(j.dtype) ? WIDE : TILE;
    j.tiles = (j.m + j.tile - 1) / j.tile;
    size_t bytes = j.segments > 1 ? (size_t)(j.m * j.segments) * j.r->state : 0;
    if (bytes && !(j.states = tn__mem_get(bytes))) return;
    int64_t work = j.tile * tn__min_i64(tn__max_i64(1, j.n), SEGMENT); /* of one task, at most */
    tn__compute_for(j.tiles * j.segments, tn__max_i64(1, WORK / work), tile, &j);
    if (j.segments > 1) {
        for (int64_t i = 0; i < j.m; i++) {
            char *first = j.states + (size_t)(i * j.segments) * j.r->state;
            for (int64_t s = 1; s < j.segments; s++) j.r->merge(first, first + (size_t)s * j.r->state, args);
            finish(&j, i, first);
        }
        tn__mem_put(j.states, bytes);
    }
}

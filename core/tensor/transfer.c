/* transfer.c — all elements of a tensor at once: to and from host memory, from another tensor, one value.
 *
 * Host memory is contiguous, may have any alignment, and is read and written as bytes. */
#include "core/base/checks.h"
#include "core/tensor/strided_walk.h"

#include <string.h>

enum { GRAIN = 16384, BLOCK = 512 };

/* ---- host memory ---------------------------------------------------------------------------------------------- */

typedef struct {
    tn__walk    w;
    char       *base;
    tn_dtype    mine, theirs;
    const char *in; /* one of in and out */
    char       *out;
} job;

static void move(int64_t from, int64_t to, void *user)
{
    const job           *j = user;
    const size_t         size = tn__dtype_bytes(j->theirs);
    _Alignas(64) uint8_t block[BLOCK * 8];
    for (int64_t at = from, n; at < to; at += n) {
        n = tn__min_i64(to - at, BLOCK);
        if (j->in) {
            memcpy(block, j->in + (size_t)at * size, (size_t)n * size);
            if (j->theirs == TN_BOOL) /* any non-zero value is true */
                for (int64_t i = 0; i < n; i++) block[i] = block[i] != 0;
            tn__walk_copy(&j->w, 0, at, n, j->base, j->mine, block, j->theirs, true);
        } else {
            tn__walk_copy(&j->w, 0, at, n, j->base, j->mine, block, j->theirs, false);
            memcpy(j->out + (size_t)at * size, block, (size_t)n * size);
        }
    }
}

static void transfer(const tn_tensor *t, tn_dtype dt, const void *in, void *out)
{
    const int64_t n = tn_shape_numel(t->l.shape);
    job           j = {.base = tn__ptr(t), .mine = t->dtype, .theirs = dt, .in = in, .out = out, .w.nops = 1};
    for (int i = 0; i < t->l.shape.n; i++) tn__walk_dim(&j.w, t->l.shape.d[i], &t->l.stride[i]);
    tn__walk_done(&j.w);
    tn_parallel_for(n, GRAIN, move, &j);
}

/* Checks that data is not NULL and has the right size. */
static bool check_host(const char *who, const tn_tensor *t, tn_dtype dt, const void *data, size_t bytes)
{
    if (!tn__shape_check(who, dt, t->l.shape)) return false;
    const int64_t n = tn_shape_numel(t->l.shape);
    const size_t  need = (size_t)n * tn__dtype_bytes(dt);
    char          text[192];
    if (bytes != need)
        return tn_raise_false(TN_EINVAL, "%s: shape %s as %s takes %zu bytes, but bytes is %zu", who,
                              tn_shape_text(t->l.shape, text, sizeof text), tn_dtype_name(dt), need, bytes);
    if (need && !data) return tn_raise_false(TN_EINVAL, "%s: data is NULL", who);
    return true;
}

tn_tensor *tn_from_data(tn_dtype dt, tn_shape s, const void *data)
{
    if (tn__blocked() || tn__unreplayable("tn_from_data") || !tn__shape_check("tn_from_data", dt, s)) return NULL;
    const int64_t n = tn_shape_numel(s);
    if (!data && n)
        return tn_raise_null(TN_EINVAL, "tn_from_data: data is NULL, but the shape has %lld elements", (long long)n);
    tn_tensor *t = tn__make("tn_from_data", dt, s);
    if (t) transfer(t, dt, data, NULL);
    return t;
}

tn_status tn_copy_in(tn_tensor *t, tn_dtype dt, const void *data, size_t bytes)
{
    if (tn__blocked() || !tn__writable("tn_copy_in", t)) return tn__self.error;
    if (!check_host("tn_copy_in", t, dt, data, bytes)) return tn__self.error;
    transfer(t, dt, data, NULL);
    tn__written(t, "tn_copy_in");
    return TN_OK;
}

/* A reader: it works while an error is set, and then returns TN_OK as usual. */
tn_status tn_copy_out(const tn_tensor *t, tn_dtype dt, void *data, size_t bytes)
{
    if (!tn__given("tn_copy_out", "t", t) || !check_host("tn_copy_out", t, dt, data, bytes)) return tn__self.error;
    transfer(t, dt, NULL, data);
    return TN_OK;
}

/* ---- tensors -------------------------------------------------------------------------------------------------- */

/* The first and the last element that a layout reaches. */
static void reach(const tn__layout *l, int64_t *first, int64_t *last)
{
    *first = *last = l->offset;
    for (int i = 0; i < l->shape.n; i++) {
        const int64_t way = (l->shape.d[i] - 1) * l->stride[i];
        *(way < 0 ? first : last) += way;
    }
}

static bool may_overlap(const tn_tensor *a, const tn_tensor *b)
{
    int64_t a0, a1, b0, b1;
    if (a->storage != b->storage) return false;
    reach(&a->l, &a0, &a1), reach(&b->l, &b0, &b1);
    return a0 <= b1 && b0 <= a1;
}

tn_status tn_copy_from(tn_tensor *t, const tn_tensor *src)
{
    if (tn__blocked() || !tn__writable("tn_copy_from", t) || !tn__given("tn_copy_from", "src", src))
        return tn__self.error;
    if (!tn__broadcastable(src->l.shape, t->l.shape)) {
        char from[192], to[192];
        return tn_raise(TN_ESHAPE, "tn_copy_from: src of shape %s does not broadcast to t of shape %s",
                        tn_shape_text(src->l.shape, from, sizeof from), tn_shape_text(t->l.shape, to, sizeof to));
    }
    if (tn_shape_numel(t->l.shape) && may_overlap(t, src)) { /* behaves as if all were read before any is written */
        tn_tensor *apart = tn__new_owned(src->dtype, src->l.shape);
        if (!apart) return tn__self.error;
        tn__copy(apart, src);
        tn__copy(t, apart);
        tn_drop(apart);
    } else {
        tn__copy(t, src);
    }
    tn__written(t, "tn_copy_from");
    return TN_OK;
}

tn_status tn_fill(tn_tensor *t, double value)
{
    if (tn__blocked() || !tn__writable("tn_fill", t) || !tn__fits("tn_fill", "value", t->dtype, value))
        return tn__self.error;
    tn__fill(t, value);
    tn__written(t, "tn_fill");
    return TN_OK;
}

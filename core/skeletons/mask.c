/* mask.c — the skeleton for masks that select elements: counting, gathering the selected, scattering them again. */
#include "core/tensor/strided_walk.h"
#include "core/skeletons/skeletons.h"

#include <string.h>

enum { BLOCK = 1024 };

static tn__walk walk(tn_shape s, const tn_tensor *mask, const tn_tensor *t)
{
    tn__walk w = {.nops = t ? 2 : 1};
    for (int i = 0; i < s.n; i++) {
        int64_t stride[2] = {tn__stride_in(mask, i, s.n), t ? tn__stride_in(t, i, s.n) : 0};
        tn__walk_dim(&w, s.d[i], stride);
    }
    tn__walk_done(&w);
    return w;
}

int64_t tn__mask_count(const tn_tensor *mask, tn_shape s)
{
    const int64_t n = tn_numel(mask), all = tn_shape_numel(s);
    int64_t       count = 0;
    uint8_t       chosen[BLOCK];
    if (!n || !all) return 0;
    tn__walk w = walk(mask->l.shape, mask, NULL);
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t run = tn__min_i64(BLOCK, n - at);
        tn__walk_copy(&w, 0, at, run, tn__ptr(mask), mask->dtype, chosen, TN_BOOL, false);
        for (int64_t i = 0; i < run; i++) count += chosen[i] != 0; /* a borrowed bool may be 2 */
    }
    return count * (all / n); /* each is repeated that many times */
}

/* Copies between the selected elements of `whole`, expanded to shape s, and the 1-d `list`. */
static void move(tn_tensor *list, const tn_tensor *whole, const tn_tensor *mask, tn_shape s, bool gather)
{
    const tn_dtype    dt = whole->dtype;
    const size_t      size = tn__dtype_bytes(dt);
    const int64_t     n = tn_shape_numel(s), step = list->l.stride[0] * (int64_t)size;
    char             *to = tn__ptr(list);
    uint8_t           chosen[BLOCK];
    _Alignas(64) char block[BLOCK * 8];
    tn__walk          w = walk(s, mask, whole);
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t run = tn__min_i64(BLOCK, n - at);
        tn__walk_copy(&w, 0, at, run, tn__ptr(mask), mask->dtype, chosen, TN_BOOL, false);
        if (gather) tn__walk_copy(&w, 1, at, run, tn__ptr(whole), dt, block, dt, false);
        else memset(block, 0, (size_t)run * size);
        for (int64_t i = 0; i < run; i++) {
            if (!chosen[i]) continue;
            if (gather) memcpy(to, block + (size_t)i * size, size);
            else memcpy(block + (size_t)i * size, to, size);
            to += step;
        }
        if (!gather) tn__walk_copy(&w, 1, at, run, tn__ptr(whole), dt, block, dt, true);
    }
}

void tn__mask_select(tn_tensor *y, const tn_tensor *x, const tn_tensor *mask, tn_shape s) { move(y, x, mask, s, true); }
void tn__mask_spread(tn_tensor *y, tn_tensor *x, const tn_tensor *mask) { move(x, y, mask, y->l.shape, false); }

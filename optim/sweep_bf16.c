/* sweep_bf16.c — runs a kernel on bf16 elements: converts blocks of them to f32 and back. */
#include "optim/sweep.h"

enum { BLOCK = 512 };

void tn__sweep_bf16(const tn__segment *s, const tn__sweep_pass *k, int64_t at, int64_t n, double sum[TN__SUMS])
{
    _Alignas(64) float p[BLOCK] = {0}, g[BLOCK] = {0};
    for (int64_t done = 0; done < n;) {
        const int64_t m = n - done < BLOCK ? n - done : BLOCK;
        uint16_t     *sp = s->p ? (uint16_t *)s->p + at + done : NULL, *sg = s->g ? (uint16_t *)s->g + at + done : NULL;
        for (int64_t i = 0; sp && i < m; i++) p[i] = tn__bf16_to_f32(sp[i]);
        for (int64_t i = 0; sg && i < m; i++) g[i] = tn__bf16_to_f32(sg[i]);
        k->f32(s, at + done, m, sp ? p : NULL, sg ? g : NULL, sum);
        for (int64_t i = 0; sp && k->flags & TN__WRITES_P && i < m; i++) sp[i] = tn__f32_to_bf16(p[i]);
        for (int64_t i = 0; sg && k->flags & TN__WRITES_G && i < m; i++) sg[i] = tn__f32_to_bf16(g[i]);
        done += m;
    }
}

/* gemm_parts.c — many products at once: large ones one after another, each on all threads; small ones next to each
 * other. Each product has its own bits, so this choice only affects speed. */
#include "core/base/parallel.h"
#include "core/products/cost.h"
#include "core/products/gemm.h"

enum { LARGE = 16 }; /* multiples of tn__cost_task: then a product is worth the threads */

static void multiply_parts(int64_t from, int64_t to, void *user)
{
    tn__gemm_part *part = user;
    for (int64_t i = from; i < to; i++)
        tn__gemm_with(&part[i].a, &part[i].b, &part[i].c, &(tn__epilogue){.bias = part[i].bias});
}

void tn__gemm_parts(int64_t n, tn__gemm_part *part)
{
    double all = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double terms = (double)tn__numel_of(&part[i].b.l.shape), rows = (double)part[i].c.l.shape.d[0];
        const double time = terms * (rows * tn__cost_term + tn__cost_byte * (double)tn__dtype_bytes(part[i].b.dtype));
        all += time, most = time > most ? time : most;
    }
    if (n > 1 && most < (double)LARGE * tn__cost_task && tn__worth_sharing(all))
        tn_parallel_for(n, 1, multiply_parts, part);
    else multiply_parts(0, n, part);
}

/* gemm_pack.c — packs blocks of a and b into the form that the kernels read, or prefetches them. */
#include "core/products/gemm_plan.h"

enum { APART_BYTES = 256 }; /* between columns of a: then the hardware prefetches them late */

/* Copies a block of a or b to dense rows of width units, zero-filled. */
void tn__gemm_pack(const tn__gemm_plan *plan, bool terms_in_rows, int64_t rows, int64_t cols, int64_t width,
                   const char *from, int64_t row, int64_t col, char *to)
{
    const tn__pack_step s = {rows, cols, width, from, row, col, to, terms_in_rows, 0, 0};
    if (plan->call.dtype == TN_BF16) plan->kernels->pack_bf16(&s);
    else plan->kernels->pack(&s);
}

/* Steps of k to pack at once: few if the row stride is a multiple of TN__SET_BYTES, because all rows then map to the
 * same L1 sets. turned: rows become columns, which are written in whole lines. */
static int64_t steps_at_once(const tn__gemm_plan *plan, int64_t row, bool turned)
{
    if (turned) return 32;
    return row * plan->in_bytes % TN__SET_BYTES == 0 ? 8 / plan->pair : 32;
}

/* Packs steps [k0, k0 + kc) of panels [p0, p1) of b, panel by panel, zero-filled to whole vectors. Dense rows are read
 * a few at a time for all panels, so that a cache line shared by two panels is fetched once. */
void tn__gemm_pack_b(const tn__gemm_plan *plan, const char *b, int64_t k0, int64_t kc, int64_t p0, int64_t p1, char *to)
{
    const tn__gemm_call *g = &plan->call;
    const int64_t        at_once = g->b_col == 1 && p1 - p0 > 1 ? steps_at_once(plan, g->b_row, false) : kc;
    for (int64_t i = 0; i < kc; i += at_once) {
        const int64_t steps = tn__min_i64(at_once, kc - i);
        char         *panel = to;
        if (i + at_once < kc) {
            const int64_t col = tn__panel_at(plan, p0), cols = tn__min_i64(tn__panel_at(plan, p1), g->n) - col;
            const char   *next = b + ((k0 + i + at_once) * plan->pair * g->b_row + col) * plan->in_bytes;
            tn__prefetch_rows(next, tn__gemm_terms(plan, k0 + i + at_once, at_once), g->b_row * plan->in_bytes,
                              cols * plan->in_bytes, false);
        }
        for (int64_t p = p0; p < p1; p++) {
            const int64_t col = tn__panel_at(plan, p), width = tn__panel_at(plan, p + 1) - col;
            const char   *from = b + ((k0 + i) * plan->pair * g->b_row + col * g->b_col) * plan->in_bytes;
            tn__gemm_pack(plan, false, tn__gemm_terms(plan, k0 + i, steps), tn__min_i64(width, g->n - col), width, from,
                          g->b_row, g->b_col, panel + i * width * plan->unit_bytes);
            panel += kc * width * plan->unit_bytes;
        }
    }
}

/* True if strips s … s + 3 are whole strips of dense bf16 columns, which a kernel of pairs can pack at once. */
static bool four_strips(const tn__gemm_plan *plan, int64_t s, int64_t s1)
{
    return plan->pair == 2 && plan->call.dtype == TN_BF16 && plan->call.a_row == 1 && plan->kernels->mr == 8 &&
           s + 4 <= s1 && tn__strip_at(plan, s + 4) - tn__strip_at(plan, s) == 32;
}

/* Packs steps [k0, k0 + kc) of strips [s0, s1) of a. Dense rows stay rows; other layouts become dense columns, or rows
 * for kernels that need rows. */
void tn__gemm_pack_a(const tn__gemm_plan *plan, const char *a, int64_t k0, int64_t kc, int64_t s0, int64_t s1, char *to)
{
    const tn__gemm_call *g = &plan->call;
    const int64_t        at_once = plan->a_columns ? steps_at_once(plan, g->a_col, plan->kernels->a_rows) : kc;
    for (int64_t i = 0; i < kc; i += at_once) {
        const int64_t steps = tn__min_i64(at_once, kc - i), t = tn__gemm_terms(plan, k0 + i, steps);
        if (plan->a_columns && i + at_once < kc && g->a_row == 1) {
            const int64_t row = tn__strip_at(plan, s0), rows = tn__strip_at(plan, s1) - row;
            const char   *next = a + (row + (k0 + i + at_once) * plan->pair * g->a_col) * plan->in_bytes;
            tn__prefetch_rows(next, tn__gemm_terms(plan, k0 + i + at_once, at_once), g->a_col * plan->in_bytes,
                              rows * plan->in_bytes, false);
        }
        for (int64_t s = s0; s < s1; s++) {
            const int64_t row = tn__strip_at(plan, s), mr = tn__strip_at(plan, s + 1) - row;
            const char   *from = a + (row * g->a_row + (k0 + i) * plan->pair * g->a_col) * plan->in_bytes;
            char         *strip = to + (row - tn__strip_at(plan, s0)) * kc * plan->unit_bytes;
            if (plan->a_columns && four_strips(plan, s, s1)) {
                const tn__pack_step four = {t,     32,      32, from, g->a_col, 1, strip + i * mr * plan->unit_bytes,
                                            false, mr * kc, 0};
                plan->kernels->pack_bf16(&four);
                s += 3;
            } else if (plan->a_columns && plan->kernels->a_rows) {
                const tn__pack_step turned = {.rows = mr,
                                              .cols = t,
                                              .width = steps,
                                              .from = from,
                                              .from_row = g->a_row,
                                              .from_col = g->a_col,
                                              .to = strip + i * plan->unit_bytes,
                                              .terms_in_rows = true,
                                              .to_row = kc};
                plan->kernels->pack_bf16(&turned);
            } else if (plan->a_columns)
                tn__gemm_pack(plan, false, t, mr, mr, from, g->a_col, g->a_row, strip + i * mr * plan->unit_bytes);
            else tn__gemm_pack(plan, true, mr, t, kc + TN__GEMM_PAD, from, g->a_row, g->a_col, strip);
        }
    }
}

void tn__gemm_prefetch_a(const tn__gemm_plan *plan, const char *a, int64_t k0, int64_t kc, int64_t s)
{
    const tn__gemm_call *g = &plan->call;
    const int64_t        row = tn__strip_at(plan, s), rows = tn__strip_at(plan, s + 1) - row,
                  some = tn__gemm_terms(plan, k0, kc);
    a += (row * g->a_row + k0 * plan->pair * g->a_col) * plan->in_bytes;
    if (g->a_col == 1) tn__prefetch_rows(a, rows, g->a_row * plan->in_bytes, some * plan->in_bytes, false);
    else if (g->a_row == 1 && g->a_col * plan->in_bytes >= APART_BYTES)
        tn__prefetch_rows(a, some, g->a_col * plan->in_bytes, rows * plan->in_bytes, false);
}

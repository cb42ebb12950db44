/* lora.c — the low-rank adapters of one weight W [out, in] (Hu et al. 2021):
 *
 *   y = x Wᵀ + b + scale · (x Aᵀ) Bᵀ,   A [rank, in], B [out, rank]
 *
 * If parts of W's rows have names of their own in files (queries, keys and values), each part has its own A and B. They
 * then form one A [n rank, in], and one B with zeros outside of its blocks: still two products. */
#include "nn/layers/lora.h"
#include "nn/base/nn_private.h"

#include <math.h>

static void lora_describe(const void *self, char *text, size_t size)
{
    const tn_lora_pair *l = self;
    snprintf(text, size, "rank=%lld, scale=%g", (long long)l->rank, l->scale);
}
static const tn_class tn_lora_pair_class = {
    .size = sizeof(tn_class), .name = "LoRA", .bytes = sizeof(tn_lora_pair), .describe = lora_describe};
bool tn__is_lora(const tn_module *m) { return m->kind == &tn_lora_pair_class; }

tn_lora_pair *tn__lora_new(tn_shape weight, int parts, unsigned wanted, int64_t rank, double scale, tn_dtype dt)
{
    tn_lora_pair *l = tn_module_new(tn_lora_pair);
    if (!l) return NULL;
    const int64_t rows = weight.d[0] / parts, in = weight.d[1];
    const double  bound = 1 / sqrt((double)in);
    l->rank = rank, l->scale = scale, l->rows = rows, l->parts = parts;
    l->a = tn_array(l, parts, tn_tensor *), l->b = tn_array(l, parts, tn_tensor *);
    for (int i = 0; l->a && l->b && i < parts; i++) {
        if (!(wanted & 1u << i)) continue;
        char a[16] = "A", b[16] = "B"; /* not tn_name: the caller's names may be in its ring */
        if (parts > 1) snprintf(a, sizeof a, "%d.A", i), snprintf(b, sizeof b, "%d.B", i);
        l->a[i] = tn_param(l, a, tn_to(tn_uniform(TN_SHAPE(rank, in), -bound, bound), dt));
        l->b[i] = tn_param(l, b, tn_zeros_of(dt, TN_SHAPE(rows, rank)));
    }
    return tn_built(l);
}

/* Rows [from, from + count) of B, for the A of all parts one below the other: *a. */
static tn_tensor *joined(const tn_lora_pair *l, int64_t from, int64_t count, tn_tensor **a)
{
    tn_tensor *as[TN_LORA_PARTS], *bs[TN_LORA_PARTS];
    int        n = 0, at = 0;
    for (int i = 0; i < l->parts; i++)
        if (l->a[i]) as[n++] = l->a[i];
    *a = n == 1 ? as[0] : tn_cat_list(0, n, as);
    for (int i = 0; i < l->parts; i++) {
        const int64_t before = l->a[i] ? at * l->rank : 0, after = n * l->rank - before - (l->a[i] ? l->rank : 0);
        tn_tensor    *zeros[2] = {NULL, NULL}, *row[3];
        int           k = 0;
        if (before) row[k++] = zeros[0] = tn_zeros_of(tn_dtype_of(*a), TN_SHAPE(l->rows, before));
        if (l->a[i]) row[k++] = l->b[i], at++;
        if (after) row[k++] = zeros[1] = tn_zeros_of(tn_dtype_of(*a), TN_SHAPE(l->rows, after));
        bs[i] = k == 1 ? row[0] : tn_cat_list(1, k, row);
    }
    tn_tensor *b = l->parts == 1 ? bs[0] : tn_cat_list(0, l->parts, bs);
    return count == l->rows * l->parts ? b : tn_narrow(b, 0, from, count);
}

tn_tensor *tn__lora_added(const tn_lora_pair *l, tn_tensor *x, tn_tensor *y, int64_t from, int64_t columns)
{
    tn_tensor *a;
    if (!l || !y) return y;
    tn_tensor *b = joined(l, from, columns, &a);
    tn_tensor *h = tn_mul_scalar(tn_linear(x, a, NULL), l->scale);
    tn_tensor *sum = tn_linear_add(h, b, y);
    return sum && tn_dtype_of(sum) != tn_dtype_of(y) ? tn_to(sum, tn_dtype_of(y)) : sum;
}

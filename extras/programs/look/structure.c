/* structure.c — distances and depths of trees, spanning trees (Prim), control trees, and the loss of the structural
 * probe. */
#include "structure.h"

#include <float.h>

/* ---- trees ------------------------------------------------------------------------------------------------------- */

bool tree_depths(int64_t n, const int64_t *head, int64_t *depth)
{
    int64_t roots = 0;
    for (int64_t i = 0; i < n; i++) {
        roots += head[i] < 0;
        depth[i] = 0;
        for (int64_t j = i; head[j] >= 0; j = head[j])
            if (head[j] >= n || ++depth[i] >= n) return false; /* a cycle */
    }
    return roots == 1;
}

int64_t tree_distance(const int64_t *head, const int64_t *depth, int64_t i, int64_t j)
{
    int64_t edges = 0;
    for (; i != j; edges++)
        if (depth[i] >= depth[j]) i = head[i];
        else j = head[j];
    return edges;
}

static bool is_before(const uint64_t *key, int64_t i, int64_t j)
{
    return key[i] < key[j] || (key[i] == key[j] && i < j);
}

/* The head of a word is, of the nearest words before and after it with smaller keys, the one with the larger key. */
void control_tree(int64_t n, const uint64_t *key, int64_t *head)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t left = i - 1, right = i + 1;
        while (left >= 0 && !is_before(key, left, i)) left--;
        while (right < n && !is_before(key, right, i)) right++;
        if (right == n) head[i] = left;
        else head[i] = left < 0 || is_before(key, left, right) ? right : left;
    }
}

/* ---- spanning trees ---------------------------------------------------------------------------------------------- */

int64_t spanning_tree(int64_t n, const float *distance, int64_t stride, const bool *ignored, int64_t *to)
{
    float   nearest[MAX_WORDS];
    bool    joined[MAX_WORDS];
    int64_t edges = -1;
    for (int64_t i = 0; i < n; i++) to[i] = -1, nearest[i] = FLT_MAX, joined[i] = ignored[i];
    for (int64_t last;; edges++) {
        last = -1;
        for (int64_t i = 0; i < n; i++)
            if (!joined[i] && (last < 0 || nearest[i] < nearest[last])) last = i;
        if (last < 0) return edges < 0 ? 0 : edges;
        joined[last] = true;
        for (int64_t i = 0; i < n; i++)
            if (!joined[i] && distance[last * stride + i] < nearest[i])
                nearest[i] = distance[last * stride + i], to[i] = last;
    }
}

int64_t common_edges(int64_t n, const int64_t *a, const int64_t *b)
{
    int64_t common = 0;
    for (int64_t i = 0; i < n; i++) common += a[i] >= 0 && (b[i] == a[i] || b[a[i]] == i);
    return common;
}

/* ---- the probe --------------------------------------------------------------------------------------------------- */

tn_tensor *probe_depths(tn_linear *b, tn_tensor *x) { return tn_sum(tn_square(tn_call(b, x)), .dims = TN_DIMS(-1)); }

tn_tensor *probe_distances(tn_linear *b, tn_tensor *x)
{
    tn_tensor *y = tn_call(b, x), *norm = tn_sum(tn_square(y), .dims = TN_DIMS(-1), .keepdim = true); /* [B, N, 1] */
    tn_tensor *products = tn_matmul(y, tn_transpose(y, 1, 2));                                        /* [B, N, N] */
    return tn_sub(tn_add(norm, tn_transpose(norm, 1, 2)), tn_mul_scalar(products, 2));
}

tn_tensor *probe_loss(tn_tensor *predicted, tn_tensor *gold, tn_tensor *weight)
{
    return tn_sum(tn_mul(tn_abs(tn_sub(predicted, gold)), weight));
}

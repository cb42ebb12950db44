/* noise.c — negative sampling: draws in proportion to frequency, by an alias table; and the tree of hierarchical
 * softmax. */
#include "extras/vectors/vectors_private.h"
#include "core/base/toolbox.h"

/* ---- Walker's alias method --------------------------------------------------------------------------------------- */

/* Slot i yields i up to its cut and another word beyond. All slots are equally likely; a frequent word fills
 * the rest of a rare word's slot. */
bool tn__noise_make(tn__noise *a, const double *weight, int64_t n)
{
    const size_t bytes = (size_t)n * (sizeof(double) + sizeof(uint32_t));
    double      *part = tn__mem_get(bytes), total = 0;
    a->slot = tn__scope_room(n, sizeof *a->slot), a->n = (uint32_t)n;
    if (part && a->slot) {
        uint32_t *list = (uint32_t *)(void *)(part + n);
        int64_t   small = 0, large = n; /* from the front, from the back */
        for (int64_t i = 0; i < n; i++) total += weight[i];
        for (int64_t i = 0; i < n; i++) {
            part[i] = weight[i] * (double)n / total;
            if (part[i] < 1) list[small++] = (uint32_t)i;
            else list[--large] = (uint32_t)i;
        }
        while (small > 0 && large < n) {
            const uint32_t s = list[--small], l = list[large];
            a->slot[s] = (struct tn__noise_slot){(uint32_t)(part[s] * 0x1p32), l};
            part[l] -= 1 - part[s];
            if (part[l] < 1) large++, list[small++] = l;
        }
        /* the remaining words have a part of 1, up to rounding: they fill their slots */
        for (int64_t i = 0; i < small; i++) a->slot[list[i]] = (struct tn__noise_slot){UINT32_MAX, list[i]};
        for (int64_t i = large; i < n; i++) a->slot[list[i]] = (struct tn__noise_slot){UINT32_MAX, list[i]};
    }
    tn__mem_put(part, bytes);
    return tn__self.error == TN_OK;
}

/* ---- Huffman's tree ---------------------------------------------------------------------------------------------- */

enum { DEEPEST = 60 };

/* Words are sorted by frequency, so the two rarest are at one of two ends: of the words not yet taken, or of the nodes
 * already made, whose counts only grow. Node w + i is the i-th node; the last is the root. */
static void join(const int64_t *count, int64_t w, int64_t *sum, int32_t *parent, float *turn)
{
    int64_t word = w - 1, node = 0;
    for (int64_t i = 0; i < w - 1; i++) {
        int64_t two[2];
        for (int k = 0; k < 2; k++) {
            const bool leaf = word >= 0 && (node >= i || count[word] < sum[node]);
            two[k] = leaf ? word-- : w + node++;
        }
        sum[i] = 0;
        for (int k = 0; k < 2; k++) {
            sum[i] += two[k] < w ? count[two[k]] : sum[two[k] - w];
            parent[two[k]] = (int32_t)i, turn[two[k]] = (float)k;
        }
    }
}

/* Follows the path from a word to the root and writes it if `node` is not NULL; returns its length. */
static int climb(int64_t word, int64_t w, const int32_t *parent, const float *turn, int32_t *node, float *way)
{
    int n = 0;
    for (int64_t at = word; at != 2 * w - 2 && n < DEEPEST; at = w + parent[at], n++)
        if (node) node[n] = parent[at], way[n] = turn[at];
    return n;
}

bool tn__tree_make(tn__tree *x, const int64_t *count, int64_t words)
{
    const size_t bytes = (size_t)words * (sizeof(int64_t) + 2 * sizeof(int32_t) + 2 * sizeof(float));
    int64_t     *sum = tn__mem_get(bytes);
    x->start = tn__scope_room(words + 1, sizeof *x->start);
    if (sum && x->start) {
        int32_t *parent = (int32_t *)(void *)(sum + words);
        float   *turn = (float *)(void *)(parent + 2 * words);
        join(count, words, sum, parent, turn);
        x->start[0] = 0;
        for (int64_t i = 0; i < words; i++) x->start[i + 1] = x->start[i] + climb(i, words, parent, turn, NULL, NULL);
        const int64_t all = x->start[words] + 1;
        x->node = tn__scope_room(all, sizeof *x->node), x->turn = tn__scope_room(all, sizeof *x->turn);
        for (int64_t i = 0; x->node && x->turn && i < words; i++)
            climb(i, words, parent, turn, x->node + x->start[i], x->turn + x->start[i]);
    }
    tn__mem_put(sum, bytes);
    return tn__self.error == TN_OK;
}

/* structure.h — dependency trees as distances and depths, and the structural probe that predicts them from vectors of
 * words (Hewitt, Manning 2019): a linear map B, so that ‖B (x_i - x_j)‖² is near the distance of two words in the tree,
 * or ‖B x_i‖² near the depth of a word.
 *
 * A tree of n words is an array: head[i] is the index of the syntactic head of word i, -1 at the root. */
#ifndef TENON_EXTRAS_PROGRAMS_LOOK_STRUCTURE_H
#define TENON_EXTRAS_PROGRAMS_LOOK_STRUCTURE_H

#include <tenon/extras.h>

enum { MAX_WORDS = 100 }; /* words per sentence */

/* depth[i]: edges from the root to word i. Returns false if head is not a tree with one root. */
bool tree_depths(int64_t n, const int64_t *head, int64_t *depth);
/* Edges on the path between two words of a tree. */
int64_t tree_distance(const int64_t *head, const int64_t *depth, int64_t i, int64_t j);
/* The control task: a tree that depends only on the words. key[i] is a random number that belongs to the spelling of
 * word i. The word with the smallest key is the root; the words before it and those after it each form a tree of the
 * same kind, whose roots depend on it. Of equal keys, the first counts as smaller. */
void control_tree(int64_t n, const uint64_t *key, int64_t *head);

/* Minimum spanning tree of the words that are not ignored, of distances [n, n] whose rows are `stride` apart. to[i] is
 * the word with which word i joined the tree; -1: the first word, or ignored. Returns the number of edges. */
int64_t spanning_tree(int64_t n, const float *distance, int64_t stride, const bool *ignored, int64_t *to);
/* Edges that are in both trees, without direction. */
int64_t common_edges(int64_t n, const int64_t *a, const int64_t *b);

/* Predictions of the probe b for vectors x [B, N, D]: squared distances [B, N, N] or squared norms [B, N]. */
tn_tensor *probe_distances(tn_linear *b, tn_tensor *x);
tn_tensor *probe_depths(tn_linear *b, tn_tensor *x);
/* Σ weight |predicted - gold|. With the weight 1 / (B n²) of a pair, or 1 / (B n) of a word, in a sentence of n words,
 * and 0 at padding, it is the loss of Hewitt and Manning. */
tn_tensor *probe_loss(tn_tensor *predicted, tn_tensor *gold, tn_tensor *weight);

#endif

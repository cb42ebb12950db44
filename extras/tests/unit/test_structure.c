/* test_structure.c — trees of the program look: distances, depths, spanning trees, control trees, and the structural
 * probe, which is exact for vectors that hold the edges from the root. */
#include "extras/programs/look/structure.h"
#include "tests/common/check_main.h"

enum { MOST = 24 };

static int64_t below(tn_generator *g, int64_t n) { return tn_random_below(g, n); }

/* A random tree: the words join it in a random order, each to a word that has joined. */
static void random_tree(tn_generator *g, int64_t n, int64_t *head)
{
    int64_t order[MOST];
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = below(g, i + 1);
        order[i] = order[k], order[k] = i;
    }
    for (int64_t i = 0; i < n; i++) head[order[i]] = i ? order[below(g, i)] : -1;
}

/* Every tree: the loss is 0 and the spanning tree is the tree. Sentence 0 has n words, sentence 1 has m ≤ n; word i has
 * a 1 for each edge between it and the root, the edge above word k being coordinate k. */
static void exact(tn_generator *g, int64_t n, int64_t m)
{
    const int64_t  size[2] = {n, m};
    const tn_scope s = tn_no_grad_begin();
    tn_linear     *b = tn_linear_new(.in = n, .out = n, .no_bias = true);
    tn_tensor     *x = tn_zeros(TN_SHAPE(2, n, n)), *far = tn_zeros_like(x), *pairs = tn_zeros_like(x);
    tn_tensor     *deep = tn_zeros(TN_SHAPE(2, n)), *words = tn_zeros_like(deep);
    int64_t        head[2][MOST], depth[2][MOST];
    tn_copy_from(b->weight, tn_eye(n, n));
    for (int64_t k = 0; k < 2; k++) {
        random_tree(g, size[k], head[k]);
        ck_assert(tree_depths(size[k], head[k], depth[k]));
        for (int64_t i = 0; i < size[k]; i++) {
            for (int64_t j = i; head[k][j] >= 0; j = head[k][j]) tn_set(x, (k * n + i) * n + j, 1);
            tn_set(deep, k * n + i, (double)depth[k][i]), tn_set(words, k * n + i, 0.5 / (double)size[k]);
            for (int64_t j = 0; j < size[k]; j++)
                tn_set(far, (k * n + i) * n + j, (double)tree_distance(head[k], depth[k], i, j)),
                    tn_set(pairs, (k * n + i) * n + j, 0.5 / (double)(size[k] * size[k]));
        }
    }
    tn_tensor *predicted = probe_distances(b, x), *loss = probe_loss(predicted, far, pairs);
    ck_assert_double_eq(tn_item(loss), 0);
    ck_assert_double_eq(tn_item(probe_loss(probe_depths(b, x), deep, words)), 0);
    const float *at = tn_data(tn_contiguous(predicted));
    for (int64_t k = 0; k < 2; k++) {
        int64_t    to[MOST];
        const bool none[MOST] = {false};
        ck_assert_int_eq(spanning_tree(size[k], at + k * n * n, n, none, to), size[k] - 1);
        ck_assert_int_eq(common_edges(size[k], to, head[k]), size[k] - 1); /* UUAS 1 */
        ck_assert_int_eq(common_edges(size[k], head[k], to), size[k] - 1);
    }
    /* Twice the map: four times the squares, and the loss is three times the mean of the distances. */
    tn_copy_from(b->weight, tn_mul_scalar(tn_eye(n, n), 2));
    const double wrong = tn_item(probe_loss(probe_distances(b, x), far, pairs));
    ck_assert_double_eq_tol(wrong, 3 * tn_item(tn_sum(tn_mul(far, pairs))), 1e-5 * wrong + 1e-12);
    tn_free(b);
    tn_scope_end(s);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
}

TEST(vectors_of_edges_are_exact)
{
    tn_generator g = {7, 0};
    exact(&g, 1, 1);
    for (int64_t n = 2; n <= MOST; n++) exact(&g, n, 1 + below(&g, n));
}

TEST(what_is_not_a_tree)
{
    int64_t       depth[4];
    const int64_t good[] = {1, -1, 1, 2}, cycle[] = {1, 0, -1, 2}, roots[] = {-1, 0, -1, 2}, none[] = {1, 2, 3, 0},
                  own[] = {0, -1, 1, 1}, far[] = {4, -1, 1, 1};
    ck_assert(tree_depths(4, good, depth) && depth[0] == 1 && depth[1] == 0 && depth[2] == 1 && depth[3] == 2);
    ck_assert(!tree_depths(4, cycle, depth) && !tree_depths(4, roots, depth) && !tree_depths(4, none, depth));
    ck_assert(!tree_depths(4, own, depth) && !tree_depths(4, far, depth));
}

/* The spanning tree has the smallest sum: compared with Kruskal's algorithm, without some of the words. */
TEST(spanning_trees_are_minimal)
{
    tn_generator g = {3, 0};
    for (int round = 0; round < 50; round++) {
        const int64_t n = 1 + below(&g, MOST);
        float         d[MOST * MOST];
        bool          ignored[MOST];
        int64_t       to[MOST], group[MOST], left = 0, edges = 0;
        double        sum = 0, least = 0;
        for (int64_t i = 0; i < n; i++) left += !(ignored[i] = below(&g, 4) == 0), group[i] = i;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) d[i * n + j] = d[j * n + i] = i == j ? 0 : (float)(below(&g, 1000) - 50);
        ck_assert_int_eq(spanning_tree(n, d, n, ignored, to), left ? left - 1 : 0);
        for (int64_t i = 0; i < n; i++)
            if (to[i] >= 0) ck_assert(!ignored[i] && !ignored[to[i]]), sum += (double)d[i * n + to[i]], edges++;
        ck_assert_int_eq(edges, left ? left - 1 : 0);
        for (int64_t e = 0; e < left - 1; e++) {
            int64_t a = -1, b = -1;
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < i; j++)
                    if (!ignored[i] && !ignored[j] && group[i] != group[j] && (a < 0 || d[i * n + j] < d[a * n + b]))
                        a = i, b = j;
            least += (double)d[a * n + b];
            const int64_t was = group[b];
            for (int64_t i = 0; i < n; i++)
                if (group[i] == was) group[i] = group[a];
        }
        ck_assert_double_eq(sum, least);
    }
}

/* A control tree is a tree without crossing edges; its root has the smallest key; of equal keys the first is smaller;
 * words after the last that are larger than all others change no other edge. */
TEST(control_trees_depend_on_the_words)
{
    tn_generator g = {5, 0};
    for (int round = 0; round < 50; round++) {
        const int64_t n = 1 + below(&g, MOST - 1);
        uint64_t      key[MOST];
        int64_t       head[MOST], more[MOST], depth[MOST], least = 0;
        for (int64_t i = 0; i < n; i++) {
            key[i] = (uint64_t)below(&g, 12);
            if (key[i] < key[least]) least = i;
        }
        key[n] = 100;
        control_tree(n, key, head), control_tree(n + 1, key, more);
        ck_assert(tree_depths(n, head, depth) && head[least] == -1);
        ck_assert(!memcmp(head, more, (size_t)n * sizeof *head));
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < n; j++) {
                const int64_t a = head[i] < i ? head[i] : i, b = head[i] < i ? i : head[i];
                if (head[i] < 0 || head[j] < 0 || j <= a || j >= b) continue;
                ck_assert(head[j] >= a && head[j] <= b);
            }
    }
}

/* rollout.c — attention rollout and attention flow through all layers (Abnar, Zuidema 2020).
 *
 *   A_l = ½ (mean over the heads of layer l's weights + 1), rows normalised to sum 1;   rollout: A_L · … · A_1
 *
 * The flow uses A as capacities of a network, from each token of the last layer to each token of the first. */
#include "extras/look.h"

#include <string.h>

static bool check_weights(const char *who, int64_t layers, tn_tensor *const *w)
{
    char a[192], b[192];
    if (tn_blocked()) return false;
    if (layers < 1 || !w || !w[0])
        return tn_raise_false(TN_EINVAL, "%s: weights is NULL or layers is less than 1", who);
    const tn_shape s = tn_shape_of(w[0]);
    for (int64_t l = 0; l < layers; l++) {
        if (!w[l]) return tn_raise_false(TN_EINVAL, "%s: the weights of layer %lld are NULL", who, (long long)l);
        const tn_shape t = tn_shape_of(w[l]); /* layers may have different heads */
        if (t.n != 4 || t.d[2] != t.d[3] || t.d[0] != s.d[0] || t.d[2] != s.d[2])
            return tn_raise_false(
                TN_ESHAPE,
                "%s: weights of layer %lld are %s, those of the first %s, but must be [B, heads, T, T] of "
                "self-attention",
                who, (long long)l, tn_shape_text(t, a, sizeof a), tn_shape_text(s, b, sizeof b));
    }
    return true;
}

/* A of a layer, [B, T, T]; for a layer without heads the identity. */
static tn_tensor *layer_matrix(tn_tensor *w)
{
    const int64_t n = tn_size(w, 3);
    tn_tensor    *one = tn_eye_of(tn_dtype_of(w), n, n);
    if (!tn_size(w, 1)) return tn_expand(one, TN_SHAPE(tn_size(w, 0), n, n));
    tn_tensor *a = tn_add(tn_mean(w, .dims = TN_DIMS(1)), one);
    return tn_div(a, tn_sum(a, .dims = TN_DIMS(2), .keepdim = true));
}

tn_tensor *tn_attention_rollout(int64_t layers, tn_tensor *const *weights)
{
    if (!check_weights("tn_attention_rollout", layers, weights)) return NULL;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *all = layer_matrix(weights[0]);
    for (int64_t l = 1; l < layers; l++) all = tn_matmul(layer_matrix(weights[l]), all);
    return tn_scope_return(s, all);
}

/* ---- flow -------------------------------------------------------------------------------------------------------- */

/* Nodes are (layer, token), layer 0 the first; edges (l + 1, i) → (l, j) of capacity A_l[i, j], and reverse edges. */
typedef struct {
    int64_t  layers, n;
    double  *room, *back; /* [layers, n, n]: residual capacity, current flow */
    int64_t *from;        /* the node that the search came from; -1: not reached */
    int64_t *queue;
} net;

static void reach(const net *g, int64_t *count, int64_t node, int64_t by)
{
    if (g->from[node] >= 0) return;
    g->from[node] = by;
    g->queue[(*count)++] = node;
}

/* True if there is a path with residual capacity from source to sink; breadth-first search. */
static bool search(const net *g, int64_t source, int64_t sink)
{
    const double least = 1e-12; /* smaller residues are rounding errors */
    int64_t      count = 0;
    for (int64_t i = 0; i < (g->layers + 1) * g->n; i++) g->from[i] = -1;
    reach(g, &count, source, source);
    for (int64_t at = 0; at < count && g->from[sink] < 0; at++) {
        const int64_t node = g->queue[at], l = node / g->n, i = node % g->n;
        for (int64_t j = 0; j < g->n; j++) {
            if (l > 0 && g->room[((l - 1) * g->n + i) * g->n + j] > least) reach(g, &count, (l - 1) * g->n + j, node);
            if (l < g->layers && g->back[(l * g->n + j) * g->n + i] > least) reach(g, &count, (l + 1) * g->n + j, node);
        }
    }
    return g->from[sink] >= 0;
}

/* The residual capacity of an edge, and that of its reverse. */
static void residual(const net *g, int64_t from, int64_t to, double **room, double **back)
{
    const int64_t l = from / g->n, m = to / g->n, i = from % g->n, j = to % g->n;
    const bool    down = m < l;
    const int64_t at = down ? (m * g->n + i) * g->n + j : (l * g->n + j) * g->n + i;
    *room = (down ? g->room : g->back) + at, *back = (down ? g->back : g->room) + at;
}

/* The maximum flow (Edmonds, Karp): each path found saturates an edge. */
static double maximum_flow(net *g, const double *capacity, int64_t source, int64_t sink)
{
    const size_t bytes = (size_t)(g->layers * g->n * g->n) * sizeof(double);
    double       sum = 0, *room, *back;
    memcpy(g->room, capacity, bytes);
    memset(g->back, 0, bytes);
    while (search(g, source, sink)) {
        double most = 2;
        for (int64_t v = sink; v != source; v = g->from[v]) {
            residual(g, g->from[v], v, &room, &back);
            if (*room < most) most = *room;
        }
        for (int64_t v = sink; v != source; v = g->from[v]) {
            residual(g, g->from[v], v, &room, &back);
            *room -= most, *back += most;
        }
        sum += most;
    }
    return sum;
}

static void flow_rows(net *g, const double *capacity, double *to)
{
    for (int64_t i = 0; i < g->n; i++) {
        double all = 0;
        for (int64_t j = 0; j < g->n; j++) all += to[i * g->n + j] = maximum_flow(g, capacity, g->layers * g->n + i, j);
        for (int64_t j = 0; j < g->n && all > 0; j++) to[i * g->n + j] /= all;
    }
}

tn_tensor *tn_attention_flow(int64_t layers, tn_tensor *const *weights)
{
    if (!check_weights("tn_attention_flow", layers, weights)) return NULL;
    const int64_t n = tn_size(weights[0], 2), rows = tn_size(weights[0], 0);
    if (n > 256) /* n² searches of layers · n² edges, each several times */
        return tn_raise_null(TN_EUNSUPPORTED, "tn_attention_flow: %lld tokens; at most 256 are supported",
                             (long long)n);
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *all[2] = {NULL}, *to = tn_empty_of(TN_F64, TN_SHAPE(rows, n, n));
    const size_t   one = (size_t)(layers * n * n), nodes = (size_t)((layers + 1) * n);
    const size_t   bytes = 3 * one * sizeof(double) + 2 * nodes * sizeof(int64_t);
    double        *memory = to ? tn_mem_get(bytes) : NULL, *out = memory ? tn_data_mut(to) : NULL;
    net            g = {.layers = layers, .n = n};
    if (out) g.room = memory + one, g.back = g.room + one, g.from = (int64_t *)(void *)(g.back + one);
    if (out) g.queue = g.from + nodes;
    for (int64_t b = 0; b < rows && out && tn_error() == TN_OK; b++) {
        for (int64_t l = 0; l < layers && tn_error() == TN_OK; l++) {
            all[0] = tn_to(tn_select(layer_matrix(weights[l]), 0, b), TN_F64);
            if (tn_copy_out(all[0], TN_F64, memory + l * n * n, (size_t)(n * n) * sizeof(double)) != TN_OK) break;
        }
        if (tn_error() == TN_OK) flow_rows(&g, memory, out + b * n * n);
    }
    tn_mem_put(memory, bytes);
    return tn_scope_return(s, tn_error() == TN_OK ? tn_to(to, tn_dtype_of(weights[0])) : NULL);
}

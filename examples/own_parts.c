/* own_parts.c — a user's parts in the library's Transformer: a position scheme (ALiBi, Press et al. 2022) and a
 * feed-forward (with a squared ReLU, So et al. 2021). A small causal model with both learns to count by threes.
 * Build: cc -O2 own_parts.c -o own_parts $(pkg-config --cflags --libs tenon) -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

/* ---- positions: head h subtracts 2^(-8 (h + 1) / heads) times the distance of query and key from their score ----- */

typedef struct {
    tn_module base;
} alibi;
static tn_tensor *alibi_scores(void *self, const tn_placed *p, tn_tensor *q, tn_tensor *k)
{
    const int64_t heads = p->attention->heads, n = p->queries, keys = p->keys;
    tn_tensor    *bias = tn_empty(TN_SHAPE(1, heads, n, keys));
    (void)self, (void)q, (void)k;
    for (int64_t i = 0; bias && i < heads * n * keys; i++) {
        const int64_t h = i / (n * keys), query = i / keys % n + keys - n; /* the queries are the last of the keys */
        tn_set(bias, i, -pow(2, -8. * (double)(h + 1) / (double)heads) * (double)llabs(query - i % keys));
    }
    return bias;
}
static const tn_position_ops alibi_ops = {.scores = alibi_scores, .no_heads = true};
static const tn_class        alibi_class = {sizeof(tn_class), .name = "ALiBi", .bytes = sizeof(alibi),
                                            .positions = &alibi_ops};

/* ---- the feed-forward: down(relu(up(x))²) ------------------------------------------------------------------------ */

typedef struct {
    tn_module  base;
    tn_linear *up, *down;
} squared;
static tn_tensor *squared_forward(squared *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    return tn_leave(f, tn_call(m->down, tn_square(tn_relu(tn_call(m->up, x)))));
}
TN_FORWARD(squared);
static void *squared_new(const tn_block_config *c) /* called for each layer */
{
    squared *m = tn_module_new(squared);
    if (!m) return NULL;
    m->up = tn_child(m, "up", tn_linear_new(.in = c->dim, .out = c->ff));
    m->down = tn_child(m, "down", tn_linear_new(.in = c->ff, .out = c->dim));
    return tn_built(m);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

int main(void)
{
    enum { WORDS = 20, DIM = 32 };
    tn_sequential *m = tn_sequential_new();
    tn_append(m, tn_embedding_new(.count = WORDS, .dim = DIM));
    tn_append(m, tn_blocks_new(.layers = 2, .dim = DIM, .heads = 4, .ff = 64, .dropout = 0, .order = TN_NORM_FIRST,
                               .attention.positions = tn_built(tn_module_new(alibi)), .feed_forward = squared_new));
    tn_append(m, tn_linear_new(.in = DIM, .out = WORDS));
    tn_optimizer *opt = tn_adamw_new(m, .lr = 3e-3);
    tn_tensor    *start = tn_view(tn_arange(WORDS), TN_SHAPE(WORDS, 1)), *step = tn_mul_scalar(tn_arange(13), 3);
    tn_tensor *ids = tn_remainder(tn_add(start, step), tn_full_of(TN_I64, TN_SHAPE(1), WORDS)); /* 7 10 13 16 19 2 … */
    for (int i = 0; i <= 100 && !tn_error(); i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *x = tn_call((tn_embedding *)tn_at(m, 0), tn_narrow(ids, 1, 0, 12));
        tn_tensor     *y =
            tn_call((tn_linear *)tn_at(m, 2), tn_blocks_forward((tn_blocks *)tn_at(m, 1), x, .causal = true));
        tn_tensor *loss = tn_cross_entropy(tn_flatten(y, 0, 1), tn_flatten(tn_narrow(ids, 1, 1, 12), 0, 1));
        if (i % 50 == 0) printf("%3d  %.3f\n", i, tn_item(loss));
        tn_backward(loss);
        tn_step(opt);
        tn_scope_end(s);
    }
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_optimizer_free(opt), tn_free(m);
    return tn_error() != TN_OK;
}

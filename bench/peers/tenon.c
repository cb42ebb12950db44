/* tenon.c — Tenon as a contender, through its public API only: the cost of a user's call, including its checks and the
 * memory of its result, which comes from the cache. Products run without a tape; the forward pass of other ops with
 * one, as in training; a backward pass is tn_grad_of on a retained tape. */
#include "bench/peers/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

enum { MOST = 4, PARTS = 10 };

static tn_scope   held; /* owns the job's operands */
static tn_tensor *in[MOST], *seed, *out, *ids;
static int        inputs; /* in[0 … inputs-1] get gradients */

typedef tn_tensor *call(void); /* the op on in[] */
static call       *forward;
static struct {
    int size, stride, padding;
} window;

/* ---- the ops ----------------------------------------------------------------------------------------------------- */

static tn_tensor *layer_norm(void) { return tn_layer_norm(in[0], in[1], in[2], 1e-5); }
static tn_tensor *softmax(void) { return tn_softmax(in[0], -1); }
static tn_tensor *gelu(void) { return tn_gelu(in[0]); }
static tn_tensor *attention(void) { return tn_attention(in[0], in[1], in[2]); }
static tn_tensor *causal(void) { return tn_attention(in[0], in[1], in[2], .causal = true); }
static tn_tensor *embedding(void) { return tn_embedding(in[0], ids, -1, false); }
static tn_tensor *conv2d(void)
{
    return tn_conv2d(in[0], in[1], in[2], .stride = window.stride, .padding = window.padding);
}
static tn_tensor *cross_entropy(void) { return tn_cross_entropy(in[0], ids); }
static tn_tensor *add_dropout_norm(void)
{
    return tn_add_dropout_norm(in[0], in[1], in[2], in[3], .p = 0.1, .eps = 1e-5);
}

static bool run_matmul(void)
{
    tn_scope s = tn_no_grad_begin();
    tn_matmul(in[0], in[1]);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

static bool run_forward(void)
{
    tn_scope s = tn_scope_begin();
    forward();
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

static bool backward_of(tn_tensor *y, bool retain)
{
    tn_tensor *g[MOST];
    return tn_grad_of(y, inputs, in, g, .seed = seed, .retain = retain) == TN_OK;
}

static bool run_backward(void)
{
    tn_scope s = tn_scope_begin();
    bool     ok = backward_of(out, true);
    tn_scope_end(s);
    return ok;
}

static bool run_both(void)
{
    tn_scope s = tn_scope_begin();
    bool     ok = backward_of(forward(), false);
    tn_scope_end(s);
    return ok;
}

/* ---- the optimizer's step ---------------------------------------------------------------------------------------- */

typedef struct {
    tn_module  base;
    tn_tensor *part[PARTS], *slope[PARTS];
} heap;
TN_MODULE(heap);
static heap         *weights;
static tn_optimizer *adamw;

static bool make_gradients(void)
{
    tn_scope s = tn_scope_begin();
    for (int i = 0; i < PARTS; i++) tn_backward(tn_sum(tn_mul(weights->part[i], weights->slope[i])));
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

static bool run_step(void) { return tn_step(adamw) == TN_OK; }

static bool make_weights(int64_t count)
{
    weights = tn_module_new(heap);
    for (int i = 0; weights && i < PARTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "part%d", i);
        weights->part[i] = tn_param(weights, name, tn_uniform(TN_SHAPE(count / PARTS), -1, 1));
        snprintf(name, sizeof name, "slope%d", i);
        weights->slope[i] = tn_buffer(weights, name, tn_uniform(TN_SHAPE(count / PARTS), -1, 1));
    }
    weights = tn_built(weights);
    adamw = weights ? tn_adamw_new(weights, .lr = 1e-4, .clip.norm = 1) : NULL;
    return adamw != NULL;
}

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    call       *forward;
    int         inputs, norms; /* operands of the job's shape with gradients; weights of a norm */
} ops[] = {
    {"layer_norm", layer_norm, 1, 2},
    {"softmax", softmax, 1, 0},
    {"gelu", gelu, 1, 0},
    {"add_dropout_norm", add_dropout_norm, 2, 2},
};

static tn_tensor *leaf(tn_shape s) { return tn_requires_grad(tn_uniform(s, -1, 1)); }

static void gemm(const peer_job *j, tn_dtype dt)
{
    tn_shape a = TN_SHAPE(j->batch, j->m, j->k), b = TN_SHAPE(j->batch, j->k, j->n);
    if (j->ta) a = TN_SHAPE(j->batch, j->k, j->m);
    if (j->tb) b = TN_SHAPE(j->batch, j->n, j->k);
    in[0] = tn_to(tn_uniform(a, -1, 1), dt), in[1] = tn_to(tn_uniform(b, -1, 1), dt);
    if (j->batch == 1) in[0] = tn_squeeze(in[0], 0), in[1] = tn_squeeze(in[1], 0);
    if (j->ta) in[0] = tn_transpose(in[0], -2, -1);
    if (j->tb) in[1] = tn_transpose(in[1], -2, -1);
}

/* The peak memory of a forward and backward pass in MiB, minus operands and results. */
static double extra_mib(size_t results)
{
    tn_trim();
    tn_reset_peak();
    const size_t before = tn_memory_now().live;
    run_both();
    const size_t most = tn_memory_now().peak - before;
    return most > results ? (double)(most - results) / 1048576 : 0;
}

static void prepare_attention(const peer_job *j, peer_work *w)
{
    tn_shape s = TN_SHAPE(8, j->number[0] / 8, j->number[1], j->number[2]);
    for (inputs = 0; inputs < 3; inputs++) in[inputs] = leaf(s);
    seed = tn_uniform(s, -1, 1);
    forward = strcmp(j->layout, "causal") != 0 ? attention : causal;
    w->run = run_both;
    w->extra = extra_mib(4 * (size_t)tn_shape_numel(s) * 4); /* the output and three gradients */
}

/* The size starts with the table [vocabulary, dim]: 30522x256x2048 selects 2,048 of its rows. */
static void prepare_embedding(const peer_job *j)
{
    in[0] = leaf(TN_SHAPE(j->number[0], j->number[1]));
    ids = tn_randint(TN_SHAPE(j->number[2]), 0, j->number[0]);
    forward = embedding;
    inputs = 1;
}

/* Size N x C x side x O, layout k3s1p1: 3 by 3 windows, stride 1, padding 1. */
static bool prepare_conv2d(const peer_job *j)
{
    const int64_t *n = j->number;
    int           *to[3] = {&window.size, &window.stride, &window.padding};
    const char    *at = j->layout;
    for (int i = 0; i < 3; i++) {
        char *end;
        if (*at != "ksp"[i]) return false;
        *to[i] = (int)strtol(at + 1, &end, 10);
        at = end;
    }
    in[0] = leaf(TN_SHAPE(n[0], n[1], n[2], n[2])), in[1] = leaf(TN_SHAPE(n[3], n[1], window.size, window.size));
    in[2] = leaf(TN_SHAPE(n[3]));
    forward = conv2d;
    inputs = 3;
    return true;
}

static bool prepare_rows(const peer_job *j, size_t length)
{
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strlen(ops[i].name) != length || memcmp(ops[i].name, j->kernel, length) != 0) continue;
        inputs = 0;
        for (int k = 0; k < ops[i].inputs; k++) in[inputs++] = leaf(TN_SHAPE(j->number[0], j->number[1]));
        for (int k = 0; k < ops[i].norms; k++) in[inputs++] = leaf(TN_SHAPE(j->number[1]));
        forward = ops[i].forward;
        return true;
    }
    return false;
}

static const char *prepare(const peer_job *j, peer_work *w)
{
    static const char *const dtypes[] = {"f32", "f64", "bf16"};
    if (adamw) tn_optimizer_free(adamw);
    if (weights) tn_free(weights);
    adamw = NULL, weights = NULL, seed = NULL, out = NULL;
    tn_scope_end(held);
    tn_clear_error();
    held = tn_scope_begin();
    tn_set_threads(j->threads);
    w->run = NULL;

    const char  *way = strrchr(j->kernel, '_');
    const size_t length = way ? (size_t)(way - j->kernel) : 0;
    for (int i = 0; i < 3; i++)
        if (peer_is_gemm(j, dtypes[i])) gemm(j, (tn_dtype)i), w->run = run_matmul;
    if (!strcmp(j->kernel, "attention")) prepare_attention(j, w);
    if (!strcmp(j->kernel, "cross_entropy")) {
        in[0] = leaf(TN_SHAPE(j->number[0], j->number[1]));
        ids = tn_randint(TN_SHAPE(j->number[0]), 0, j->number[1]);
        forward = cross_entropy;
        inputs = 1;
        w->run = run_both;
    }
    if (!strcmp(j->kernel, "adamw") && make_weights(j->number[0])) w->run = run_step, w->before = make_gradients;
    if (!w->run && way) {
        if (!strncmp(j->kernel, "embedding_", 10)) prepare_embedding(j);
        else if (!strncmp(j->kernel, "conv2d_", 7) && prepare_conv2d(j)) (void)0;
        else if (!prepare_rows(j, length)) return "not a kernel";
        w->run = run_forward;
        if (!strcmp(way, "_bwd")) {
            out = forward();
            seed = out ? tn_uniform(tn_shape_of(out), -1, 1) : NULL;
            w->run = run_backward;
        }
    }
    if (tn_error() != TN_OK) return tn_error_message();
    return w->run ? NULL : "not a kernel";
}

int main(void)
{
    tn_set_packing_limit(0); /* a product of two new matrices, as the others compute it */
    held = tn_scope_begin();
    int failed = peer_main(tn_build_info(), prepare);
    if (adamw) tn_optimizer_free(adamw);
    if (weights) tn_free(weights);
    tn_scope_end(held);
    return failed;
}

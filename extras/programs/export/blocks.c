/* blocks.c — the weights of a stack of Transformer blocks, which language models and encoders share. */
#include "emit.h"

#include <math.h>
#include <string.h>

bool emit_rejected(const char *path, const char *member)
{
    return tn_raise_false(TN_EUNSUPPORTED, "'%s': %s: such a model cannot be exported to C", path, member);
}

const char *blocks_function(tn_tensor *(*activation)(tn_tensor *))
{
    return activation == tn_silu        ? "silu"
           : activation == tn_gelu      ? "gelu"
           : activation == tn_gelu_tanh ? "gelu_tanh"
           : activation == tn_relu      ? "relu"
           : activation == tn_tanh      ? "tanh_of"
                                        : NULL;
}

void blocks_feature(emitter *e, const char *f)
{
    emit_feature(e, "SILU", !strcmp(f, "silu")), emit_feature(e, "GELU", !strcmp(f, "gelu"));
    emit_feature(e, "GELU_TANH", !strcmp(f, "gelu_tanh")), emit_feature(e, "RELU", !strcmp(f, "relu"));
    emit_feature(e, "TANH", !strcmp(f, "tanh_of"));
}

bool emit_plain(void *module, const char *path)
{
    for (tn_each p = tn_module_each(module, TN_EACH_PARAMETER); tn_error() == TN_OK && tn_next(&p);)
        if (tn_dtype_of(p.tensor) != TN_F32)
            return tn_raise_false(TN_EUNSUPPORTED, "'%s': %s is %s, but only f32 can be exported to C", path, p.name,
                                  tn_dtype_name(tn_dtype_of(p.tensor)));
    return tn_error() == TN_OK;
}

bool blocks_fit(void *module, const tn_blocks *m, const char *path)
{
    const tn_block *first = tn_at(m->layers, 0);
    if (!emit_plain(module, path)) return false;
    if (tn_length(m->layers) != m->depth) return emit_rejected(path, "num_hidden_groups");
    for (int64_t i = 0; i < m->depth; i++) {
        const tn_block *b = tn_at(m->layers, i);
        if (b->self_attn->lora || b->self_attn->out_proj->lora || b->linear1->lora || b->linear2->lora)
            return emit_rejected(path, "adapters");
        if (b->self_attn->heads != first->self_attn->heads || b->self_attn->kv_heads != first->self_attn->kv_heads)
            return emit_rejected(path, "pruned_heads");
    }
    return tn_error() == TN_OK;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* stack: names of a stack's layers start with this word. */
static void add_vector(emitter *e, const char *stack, int64_t layer, const char *name, const tn_tensor *x)
{
    char text[64];
    snprintf(text, sizeof text, "%.10s%lld_%.30s", stack, (long long)layer, name);
    emit_vector(e, text, x);
}
static void add_matrix(emitter *e, const char *stack, int64_t layer, const char *name, const tn_tensor *x, int64_t from,
                       int64_t out)
{
    char text[64];
    snprintf(text, sizeof text, "%.10s%lld_%.30s", stack, (long long)layer, name);
    emit_matrix(e, text, x, from, out);
}
static void add_linear(emitter *e, const char *stack, int64_t layer, const char *name, const tn_linear *l)
{
    char text[64];
    if (!l) return;
    add_matrix(e, stack, layer, name, l->weight, 0, l->out);
    snprintf(text, sizeof text, "%.20s_bias", name);
    add_vector(e, stack, layer, text, l->bias);
}

/* Queries, keys and values: three matrices, or rows of one; and the projection of the results. */
static void add_attention(emitter *e, const char *stack, int64_t layer, const char *kind, const tn_mha *a)
{
    static const char *const names[] = {"query", "key", "value"};
    const tn_linear *const   each[] = {a->q_proj, a->k_proj, a->v_proj};
    const tn_tensor *const   apart[] = {a->q_proj_weight, a->k_proj_weight, a->v_proj_weight};
    const int64_t            width = a->heads * a->head_dim;
    char                     text[64];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%.10s%s", kind, names[i]);
        add_linear(e, stack, layer, text, each[i]);
        if (each[i]) continue;
        if (a->in_proj_weight) add_matrix(e, stack, layer, text, a->in_proj_weight, i * width, width);
        else add_matrix(e, stack, layer, text, apart[i], 0, width);
        snprintf(text, sizeof text, "%.10s%s_bias", kind, names[i]);
        if (a->in_proj_bias) add_vector(e, stack, layer, text, tn_narrow(a->in_proj_bias, 0, i * width, width));
    }
    snprintf(text, sizeof text, "%.10sout", kind);
    add_linear(e, stack, layer, text, a->out_proj);
}

static void add_norm(emitter *e, const char *stack, int64_t layer, const char *name, const tn_layer_norm *n)
{
    char text[64];
    if (!n) return;
    snprintf(text, sizeof text, "%.20s_bias", name);
    add_vector(e, stack, layer, name, n->weight), add_vector(e, stack, layer, text, n->bias);
}

static void add_layer(emitter *e, const char *stack, int64_t i, const tn_block *b)
{
    add_norm(e, stack, i, "norm1", b->norm1);
    add_attention(e, stack, i, "", b->self_attn);
    add_norm(e, stack, i, "norm2", b->norm2);
    add_linear(e, stack, i, "gate", b->gate), add_linear(e, stack, i, "up", b->linear1);
    add_linear(e, stack, i, "down", b->linear2);
    if (!b->multihead_attn) return;
    add_attention(e, stack, i, "cross_", b->multihead_attn);
    add_norm(e, stack, i, "norm3", b->norm3);
}

void emit_pointer(emitter *e, const char *name)
{
    const int64_t at = emit_weight_at(e, name);
    if (at < 0) emit(e, "NULL");
    else emit(e, "weights.x + %lld", (long long)at);
}

/* Pointers of a layer, in the order of a struct in the templates. */
static void put_pointers(emitter *e, const char *stack, int64_t layer, size_t n, const char *const *member)
{
    for (size_t k = 0; k < n; k++) {
        char name[64];
        for (int bias = 0; bias < 2; bias++) {
            snprintf(name, sizeof name, "%.10s%lld_%.20s%s", stack, (long long)layer, member[k], bias ? "_bias" : "");
            if (k || bias) emit(e, ", ");
            emit_pointer(e, name);
        }
    }
}

static void put_row(emitter *e, const char *stack, int64_t layer, bool cross)
{
    static const char *const own[] = {"norm1", "query", "key", "value", "out", "norm2", "gate", "up", "down"};
    static const char *const more[] = {"cross_query", "cross_key", "cross_value", "cross_out", "norm3"};
    emit(e, cross ? "    {{" : "    {");
    put_pointers(e, stack, layer, sizeof own / sizeof *own, own);
    if (cross) emit(e, "}, "), put_pointers(e, stack, layer, sizeof more / sizeof *more, more);
    emit(e, "},\n");
}

void blocks_add(emitter *e, const tn_blocks *m, const char *stack)
{
    for (int64_t i = 0; i < m->depth && tn_error() == TN_OK; i++) add_layer(e, stack, i, tn_at(m->layers, i));
}
void blocks_emit(emitter *e, const tn_blocks *m, const char *stack)
{
    const bool cross = ((tn_block *)tn_at(m->layers, 0))->multihead_attn != NULL;
    emit(e, cross ? "static const struct step steps[STEPS] = {\n" : "static const struct layer layers[LAYERS] = {\n");
    for (int64_t i = 0; i < m->depth; i++) put_row(e, stack, i, cross);
    emit(e, "};\n");
}

/* ---- an encoder's sizes ------------------------------------------------------------------------------------------ */

enum { KEYS = 128 }; /* keys per block in program/arithmetic.c */

static const tn_block *first_of(const tn_blocks *m) { return tn_at(m->layers, 0); }
double                 blocks_scale(const tn_mha *a)
{
    return (double)(float)(a->scores.scale > 0 ? a->scores.scale : 1 / sqrt((double)a->head_dim));
}

int64_t encoder_state(const tn_blocks *m, int64_t length)
{
    const tn_block *b = first_of(m);
    const tn_mha   *a = b->self_attn;
    const int64_t   each = 3 * emit_wide(b->linear1->in) + 4 * emit_wide(a->heads * a->head_dim);
    return 4 * (length * (each + emit_wide(b->linear1->out)) + emit_cache(length, a->head_dim));
}

void encoder_sizes(emitter *e, const tn_blocks *m, int64_t length, const char *units)
{
    const tn_block *b = first_of(m);
    const tn_mha   *a = b->self_attn;
    const emit_size sizes[] = {
        {"DIM", b->linear1->in, "width of the hidden states"},
        {"LAYERS", m->depth, NULL},
        {"HEADS", a->heads, NULL},
        {"HEAD", a->head_dim, "width of a head"},
        {"FF", b->linear1->out, "width of the hidden layer of the feed-forward"},
        {"LENGTH", length, units},
        {"DIM_WIDE", emit_wide(b->linear1->in), "sizes, rounded up"},
        {"QUERY_WIDE", emit_wide(a->heads * a->head_dim), NULL},
        {"KV_WIDE", emit_wide(a->heads * a->head_dim), NULL},
        {"FF_WIDE", emit_wide(b->linear1->out), NULL},
        {"LENGTH_WIDE", (length + KEYS - 1) / KEYS * KEYS, NULL},
    };
    emit_sizes(e, sizes, sizeof sizes / sizeof *sizes);
    emit(e, "#define SCALE %af /* of attention scores */\n", blocks_scale(a));
    emit(e, "#define EPS %a /* of norms */\n#define ACTIVATION %s\n", b->norm1->eps, blocks_function(b->activation));
}

void encoder_features(emitter *e, const tn_blocks *m)
{
    const tn_block *b = first_of(m);
    blocks_feature(e, blocks_function(b->activation));
    emit_feature(e, "NORM", true), emit_feature(e, "LAYER_NORM", true), emit_feature(e, "ATTENTION", true);
    emit_feature(e, "ROWS", true);
    emit_feature(e, "NORM_FIRST", b->order == TN_NORM_FIRST), emit_feature(e, "FINAL_NORM", m->norm != NULL);
}

void encoder_add(emitter *e, const tn_blocks *m)
{
    blocks_add(e, m, "layer");
    if (!m->norm) return;
    emit_vector(e, "last_norm", m->norm->weight), emit_vector(e, "last_norm_bias", m->norm->bias);
}

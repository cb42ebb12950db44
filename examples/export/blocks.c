/* blocks.c — the weights of a stack of Transformer blocks, which language models and encoders share. */
#include "emit.h"

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
                                        : NULL;
}

void blocks_feature(emitter *e, const char *f)
{
    const bool silu = !strcmp(f, "silu"), gelu = !strcmp(f, "gelu"), approximate = !strcmp(f, "gelu_tanh");
    emit_feature(e, "SILU", silu), emit_feature(e, "GELU", gelu), emit_feature(e, "GELU_TANH", approximate);
    emit_feature(e, "TABLES", silu || gelu || approximate), emit_feature(e, "TAIL", silu || gelu || approximate);
    emit_feature(e, "TIMES_SIGMOID", silu || approximate), emit_feature(e, "RELU", !strcmp(f, "relu"));
}

bool blocks_fit(void *module, const tn_blocks *m, const char *path)
{
    const tn_block *first = tn_at(m->layers, 0);
    for (tn_each p = tn_module_each(module, TN_EACH_PARAMETER); tn_error() == TN_OK && tn_next(&p);)
        if (tn_dtype_of(p.tensor) != TN_F32 || tn_is_packed(p.tensor))
            return tn_raise_false(TN_EUNSUPPORTED, "'%s': %s is %s, but only f32 can be exported to C", path, p.name,
                                  tn_dtype_name(tn_dtype_of(p.tensor)));
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

static void add_vector(emitter *e, int64_t layer, const char *name, const tn_tensor *x)
{
    char text[64];
    snprintf(text, sizeof text, "layer%lld_%.30s", (long long)layer, name);
    emit_vector(e, text, x);
}
static void add_linear(emitter *e, int64_t layer, const char *name, const tn_linear *l)
{
    char text[64];
    if (!l) return;
    snprintf(text, sizeof text, "layer%lld_%.30s", (long long)layer, name);
    emit_matrix(e, text, l->weight, 0, l->out);
    snprintf(text, sizeof text, "%.20s_bias", name);
    add_vector(e, layer, text, l->bias);
}

/* Queries, keys and values: three matrices, or rows of one. */
static void add_projections(emitter *e, int64_t layer, const tn_mha *a)
{
    static const char *const names[] = {"query", "key", "value"};
    const tn_linear *const   each[] = {a->q_proj, a->k_proj, a->v_proj};
    const tn_tensor *const   apart[] = {a->q_proj_weight, a->k_proj_weight, a->v_proj_weight};
    const int64_t            width = a->heads * a->head_dim;
    char                     text[64];
    for (int i = 0; i < 3; i++) {
        add_linear(e, layer, names[i], each[i]);
        if (each[i]) continue;
        snprintf(text, sizeof text, "layer%lld_%.30s", (long long)layer, names[i]);
        if (a->in_proj_weight) emit_matrix(e, text, a->in_proj_weight, i * width, width);
        else emit_matrix(e, text, apart[i], 0, width);
        snprintf(text, sizeof text, "%.20s_bias", names[i]);
        if (a->in_proj_bias) add_vector(e, layer, text, tn_narrow(a->in_proj_bias, 0, i * width, width));
    }
}

static void add_layer(emitter *e, int64_t i, const tn_block *b)
{
    add_vector(e, i, "norm1", b->norm1->weight), add_vector(e, i, "norm1_bias", b->norm1->bias);
    add_projections(e, i, b->self_attn);
    add_linear(e, i, "out", b->self_attn->out_proj);
    add_vector(e, i, "norm2", b->norm2->weight), add_vector(e, i, "norm2_bias", b->norm2->bias);
    add_linear(e, i, "gate", b->gate), add_linear(e, i, "up", b->linear1), add_linear(e, i, "down", b->linear2);
}

/* The pointers of a layer, in the order of struct layer in the templates. */
static void put_row(emitter *e, int64_t layer)
{
    static const char *const members[] = {"norm1", "norm1_bias", "query", "query_bias", "key",   "key_bias",
                                          "value", "value_bias", "out",   "out_bias",   "norm2", "norm2_bias",
                                          "gate",  "gate_bias",  "up",    "up_bias",    "down",  "down_bias"};
    emit(e, "    {");
    for (size_t k = 0; k < sizeof members / sizeof *members; k++) {
        char name[64];
        snprintf(name, sizeof name, "layer%lld_%s", (long long)layer, members[k]);
        const int64_t at = emit_weight_at(e, name);
        if (at < 0) emit(e, k ? ", NULL" : "NULL");
        else emit(e, k ? ", weights.x + %lld" : "weights.x + %lld", (long long)at);
    }
    emit(e, "},\n");
}

void blocks_add(emitter *e, const tn_blocks *m)
{
    for (int64_t i = 0; i < m->depth && tn_error() == TN_OK; i++) add_layer(e, i, tn_at(m->layers, i));
}
void blocks_emit(emitter *e, const tn_blocks *m)
{
    emit(e, "static const struct layer layers[LAYERS] = {\n");
    for (int64_t i = 0; i < m->depth; i++) put_row(e, i);
    emit(e, "};\n");
}

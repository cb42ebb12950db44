/* block.c — a Transformer block: attention and a feed-forward, each with norms and a residual connection, in one of the
 * orders of tn_norm_order. A decoder's block attends to a memory between the two:
 *
 *   x = norm1(x + self_attn(x)),  [x = norm2(x + multihead_attn(x, memory)),]  x = norm(x + ff(x))
 *   TN_NORM_FIRST: x = x + self_attn(norm1(x)),  [x = x + multihead_attn(norm2(x), memory),]  x = x + ff(norm(x))
 *
 * with ff(x) = linear2(activation(linear1(x))), or, if gated, linear2(activation(gate(x)) · linear1(x)); with dropout.
 * ff may be another module, a part: a mixture of such functions (nn/layers/experts.c), or a user's. With a causal mask
 * and no memory it is the block of a decoder-only language model. Absent parts are NULL. */
#include "nn/attention/block.h"

/* ---- building ---------------------------------------------------------------------------------------------------- */

bool tn__block_config(const char *who, tn_block_config *c, bool memory)
{
    const tn_mha_config *a = &c->attention;
    if (c->attention_dropout < 0) c->attention_dropout = c->dropout;
    if (c->activation_dropout < 0) c->activation_dropout = c->dropout;
    if (!c->activation) c->activation = tn_relu;
    if (c->norm.eps == 0) c->norm.eps = 1e-5;
    if (!tn__at_least(who, "dim", c->dim, 1) || !tn__at_least(who, "heads", c->heads, 1) ||
        !tn__at_least(who, "ff", c->ff, 1) || !tn__probability(who, "dropout", c->dropout) ||
        !tn__probability(who, "attention_dropout", c->attention_dropout) ||
        !tn__probability(who, "activation_dropout", c->activation_dropout) || !tn__floating(who, c->dtype))
        return false;
    const tn_norm_order last = memory ? TN_NORM_FIRST : TN_NORM_FIRST_HALF;
    return TN__NO_MISTAKE(
               who,
               TN__IF(a->dim || a->heads || a->kdim || a->vdim || a->dropout != 0 || a->dtype, TN_EINVAL,
                      ".attention has no .dim, .heads, .kdim, .vdim, .dropout and .dtype of its own; set the block's "
                      ".dim, .heads, .attention_dropout and .dtype"),
               TN__IF_N((unsigned)c->norm.kind > TN_NORM_RMS || (unsigned)c->order > (unsigned)last, TN_EINVAL,
                        ".norm.kind is %lld and .order %lld; expected a tn_norm_kind, and a tn_norm_order, of which a "
                        "decoder has TN_NORM_LAST or TN_NORM_FIRST",
                        c->norm.kind, c->order)) &&
           tn__part_fits(who, a->positions);
}

/* The self-attention, or the attention to the memory. */
static tn_mha *attention(const tn_block_config *c, bool memory, bool owns)
{
    tn_mha_config a = c->attention;
    a.dim = c->dim, a.heads = c->heads, a.dropout = c->attention_dropout, a.dtype = c->dtype;
    a.no_bias = a.no_bias || c->no_bias;
    a.scores.eps = c->norm.eps, a.scores.add_one = c->norm.add_one;
    if (memory) a.scores = (tn_scores){.scale = a.scores.scale}, a.positions = NULL;
    return tn__mha_create(a, owns);
}
void *tn_block_experts(const tn_block_config *c)
{
    if (!c || !c->user)
        return tn_raise_null(TN_EINVAL, "tn_block_experts: .user must be the address of a tn_experts_config");
    tn_experts_config e = *(const tn_experts_config *)c->user;
    e.dim = c->dim, e.ff = c->ff, e.activation = c->activation, e.dropout = c->activation_dropout;
    e.no_bias = c->no_bias || c->no_ff_bias, e.dtype = c->dtype;
    return tn_experts_create(e);
}
static tn_linear *linear(const tn_block_config *c, int64_t in, int64_t out)
{
    return tn_linear_new(.in = in, .out = out, .no_bias = c->no_bias || c->no_ff_bias, .dtype = c->dtype);
}
tn_layer_norm *tn__block_norm(const tn_block_config *c)
{
    const tn_block_norm *n = &c->norm;
    if (n->kind == TN_NORM_RMS)
        return tn_rms_norm_new(.dim = c->dim, .eps = n->eps, .add_one = n->add_one, .dtype = c->dtype);
    return tn_layer_norm_new(.dim = c->dim, .eps = n->eps, .no_bias = c->no_bias, .dtype = c->dtype);
}
static tn_dropout *dropout(const tn_block_config *c) { return tn_dropout_new(.p = c->dropout); }

static tn_tensor *block_forward(void *self, tn_tensor *x) { return tn_block_forward((tn_block *)self, x); }

/* Names of classes are PyTorch's where PyTorch has the module. */
#define CLASS(id, title, run) \
    static const tn_class id = {.size = sizeof(tn_class), .name = (title), .bytes = sizeof(tn_block), .forward = (run)}
CLASS(encoder_layer, "TransformerEncoderLayer", block_forward);
CLASS(decoder_layer, "TransformerDecoderLayer", NULL);
CLASS(any_block, "Block", block_forward);

static void build_feed_forward(tn_block *m, const tn_block_config *c)
{
    if (c->feed_forward) {
        tn_module           *part = c->feed_forward(c);
        const tn_router_ops *router = part ? part->kind->router : NULL;
        if (router && (!router->run || !router->width))
            tn_raise(TN_EINVAL, "block: .router of class %s needs .run and .width", tn__kind_name(part));
        m->feed_forward = tn_module_child(m, router && router->name ? router->name : "feed_forward", part);
        return;
    }
    m->linear1 = tn_child(m, "linear1", linear(c, c->dim, c->ff));
    if (c->gated) m->gate = tn_child(m, "gate", linear(c, c->dim, c->ff));
    m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = c->activation_dropout));
    m->linear2 = tn_child(m, "linear2", linear(c, c->ff, c->dim));
}

static void build_norms(tn_block *m, const tn_block_config *c, bool memory)
{
    const bool results = c->order == TN_NORM_RESULT || c->order == TN_NORM_SANDWICH;
    const bool first = c->order != TN_NORM_RESULT && c->order != TN_NORM_FIRST_HALF;
    const bool second = c->order != TN_NORM_RESULT && c->order != TN_NORM_PARALLEL_ONE;
    if (first) m->norm1 = tn_child(m, "norm1", tn__block_norm(c));
    if (results) m->result_norm1 = tn_child(m, "result_norm1", tn__block_norm(c));
    if (second) m->norm2 = tn_child(m, "norm2", tn__block_norm(c));
    if (results) m->result_norm2 = tn_child(m, "result_norm2", tn__block_norm(c));
    if (memory) m->norm3 = tn_child(m, "norm3", tn__block_norm(c));
}

/* True if PyTorch's encoder layer has all that the block is made of. */
static bool is_pytorchs(const tn_block_config *c)
{
    const tn_mha_config *a = &c->attention;
    return !(c->norm.kind || c->gated || c->feed_forward || c->order > TN_NORM_FIRST || a->positions || a->kv_heads ||
             a->head_dim || a->scores.window || a->scores.qk_norm || a->scores.cap > 0);
}

tn_block *tn__block_of(const tn_block_config *c, bool memory, bool owns)
{
    tn_module *positions = c->attention.positions;
    const bool first = positions && positions->kind->positions->in_first_layer; /* this block owns them */
    tn_block  *m = tn_module_create(memory ? &decoder_layer : is_pytorchs(c) ? &encoder_layer : &any_block);
    if (!m && owns) tn__part_drop(positions);
    if (!m) return NULL;
    m->activation = c->activation, m->order = c->order;
    m->self_attn = tn_child(m, "self_attn", attention(c, false, owns && !first));
    if (owns && first) tn__part_take(&m->base, positions);
    if (memory) m->multihead_attn = tn_child(m, "multihead_attn", attention(c, true, false));
    build_feed_forward(m, c);
    build_norms(m, c, memory);
    m->dropout1 = tn_child(m, "dropout1", dropout(c));
    m->dropout2 = tn_child(m, "dropout2", dropout(c));
    if (memory) m->dropout3 = tn_child(m, "dropout3", dropout(c));
    return tn_built(m);
}

static tn_block *create(const char *who, tn_block_config c, bool memory)
{
    const bool stack = c.layers || c.groups || c.each || c.final_norm;
    if (stack)
        tn_raise(TN_EINVAL,
                 "%s: .layers, .groups, .each and .final_norm are options of a stack, not of one block; call "
                 "tn_blocks_new",
                 who);
    if (!stack && tn__block_config(who, &c, memory)) return tn__block_of(&c, memory, true);
    return tn__part_drop(c.attention.positions), NULL;
}
tn_block *tn_block_create(tn_block_config c) { return create("tn_block_new", c, false); }
tn_block *tn_transformer_encoder_layer_create(tn_block_config c)
{
    return create("tn_transformer_encoder_layer_new", c, false);
}
tn_block *tn_transformer_decoder_layer_create(tn_block_config c)
{
    return create("tn_transformer_decoder_layer_new", c, true);
}

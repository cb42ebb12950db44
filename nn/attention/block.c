/* block.c — a Transformer block: attention and a feed-forward, each with a norm and a residual connection.
 *
 *   x = norm1(x + self_attn(x)),  [x = norm2(x + multihead_attn(x, memory)),]  x = norm(x + ff(x))
 *   norm_first:   x = x + self_attn(norm1(x)),  [x = x + multihead_attn(norm2(x), memory),]  x = x + ff(norm(x))
 *   parallel:     x = x + self_attn(norm1(x)) + ff(norm2(x))
 *   norm_results: x = x + result_norm1(self_attn(x)),  x = x + result_norm2(ff(x)); with norm_first of the norms of x
 *
 * with ff(x) = linear2(activation(linear1(x))), or, if gated, linear2(activation(gate(x)) · linear1(x)); with dropout.
 * ff may be another module, a part: a mixture of such functions (nn/layers/experts.c), or a user's. With a causal mask
 * and no memory it is the block of a decoder-only language model. Absent parts are NULL. */
#include "nn/attention/block.h"

/* ---- building ---------------------------------------------------------------------------------------------------- */

static bool norms_fit(const char *who, const tn_block_config *c)
{
    if ((unsigned)c->norm > TN_NORM_RMS)
        return tn_raise_false(TN_EINVAL, "%s: .norm is %d, which is neither TN_NORM_LAYER nor TN_NORM_RMS", who,
                              (int)c->norm);
    if (c->parallel && (!c->norm_first || c->memory))
        return tn_raise_false(TN_EINVAL, "%s: .parallel needs .norm_first and excludes .memory", who);
    if (c->no_first_norm && (!c->norm_first || c->parallel || c->norm_results))
        return tn_raise_false(TN_EINVAL,
                              "%s: .no_first_norm needs .norm_first and excludes .parallel and .norm_results", who);
    if (c->one_norm && !c->parallel) return tn_raise_false(TN_EINVAL, "%s: .one_norm needs .parallel", who);
    if (c->norm_results && (c->parallel || c->memory))
        return tn_raise_false(TN_EINVAL, "%s: .norm_results excludes .parallel and .memory", who);
    if (c->norm_add_one && c->norm != TN_NORM_RMS)
        return tn_raise_false(TN_EINVAL, "%s: .norm_add_one needs .norm = TN_NORM_RMS", who);
    return true;
}

bool tn__block_config(const char *who, tn_block_config *c, bool memory)
{
    if (c->memory && !memory) return tn_raise_false(TN_EINVAL, "%s: .memory is set, but an encoder has no memory", who);
    c->memory = memory;
    if (c->attention_dropout < 0) c->attention_dropout = c->dropout;
    if (c->activation_dropout < 0) c->activation_dropout = c->dropout;
    if (!c->activation) c->activation = tn_relu;
    if (!tn__at_least(who, "dim", c->dim, 1) || !tn__at_least(who, "heads", c->heads, 1) ||
        !tn__at_least(who, "ff", c->ff, 1) || !tn__probability(who, "dropout", c->dropout) ||
        !tn__probability(who, "attention_dropout", c->attention_dropout) ||
        !tn__probability(who, "activation_dropout", c->activation_dropout) || !tn__floating(who, c->dtype))
        return false;
    return norms_fit(who, c) && tn__part_fits(who, c->positions);
}

/* The self-attention (own), or the attention to the memory. */
static tn_mha *attention(const tn_block_config *c, bool own, bool owns)
{
    const tn_mha_config a = {.dim = c->dim,
                             .heads = c->heads,
                             .kv_heads = c->kv_heads,
                             .head_dim = c->head_dim,
                             .dropout = c->attention_dropout,
                             .no_bias = c->no_bias || c->no_attention_bias,
                             .no_out_bias = c->no_out_bias,
                             .scale = c->scale,
                             .score_cap = own ? c->score_cap : 0,
                             .qk_norm = own ? c->qk_norm : TN_QK_NORM_NONE,
                             .qk_norm_eps = c->eps,
                             .qk_norm_add_one = own && c->qk_norm && c->norm_add_one,
                             .window = own ? c->window : 0,
                             .positions = own ? c->positions : NULL,
                             .time_first = c->time_first,
                             .dtype = c->dtype};
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
    if (c->norm == TN_NORM_RMS)
        return tn_rms_norm_new(.dim = c->dim, .eps = c->eps, .add_one = c->norm_add_one, .dtype = c->dtype);
    return tn_layer_norm_new(.dim = c->dim, .eps = c->eps, .no_bias = c->no_bias, .dtype = c->dtype);
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
        tn_module *part = c->feed_forward(c);
        m->experts = tn__experts_of(part);
        m->feed_forward = tn_module_child(m, m->experts ? "experts" : "feed_forward", part);
        return;
    }
    m->linear1 = tn_child(m, "linear1", linear(c, c->dim, c->ff));
    if (c->gated) m->gate = tn_child(m, "gate", linear(c, c->dim, c->ff));
    m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = c->activation_dropout));
    m->linear2 = tn_child(m, "linear2", linear(c, c->ff, c->dim));
}

static void build_norms(tn_block *m, const tn_block_config *c)
{
    const bool before = c->norm_first || !c->norm_results; /* norms besides those of the results */
    if (before && !c->no_first_norm) m->norm1 = tn_child(m, "norm1", tn__block_norm(c));
    if (c->norm_results) m->result_norm1 = tn_child(m, "result_norm1", tn__block_norm(c));
    if (before && !c->one_norm) m->norm2 = tn_child(m, "norm2", tn__block_norm(c));
    if (c->norm_results) m->result_norm2 = tn_child(m, "result_norm2", tn__block_norm(c));
    if (c->memory) m->norm3 = tn_child(m, "norm3", tn__block_norm(c));
}

tn_block *tn__block_of(const tn_block_config *c, bool owns)
{
    const tn_module *positions = c->positions;
    const bool       first = positions && positions->kind->positions->in_first_layer; /* this block owns them */
    const bool ours = c->norm || c->gated || c->parallel || c->positions || c->kv_heads || c->head_dim || c->window ||
                      c->norm_results || c->qk_norm || c->score_cap > 0 || c->feed_forward;
    tn_block *m = tn_module_create(c->memory ? &decoder_layer : ours ? &any_block : &encoder_layer);
    if (!m && owns) tn__part_drop(c->positions);
    if (!m) return NULL;
    m->activation = c->activation, m->norm_first = c->norm_first, m->parallel = c->parallel;
    m->self_attn = tn_child(m, "self_attn", attention(c, true, owns && !first));
    if (owns && first) tn__part_take(&m->base, c->positions);
    if (c->memory) m->multihead_attn = tn_child(m, "multihead_attn", attention(c, false, false));
    build_feed_forward(m, c);
    build_norms(m, c);
    m->dropout1 = tn_child(m, "dropout1", dropout(c));
    m->dropout2 = tn_child(m, "dropout2", dropout(c));
    if (c->memory) m->dropout3 = tn_child(m, "dropout3", dropout(c));
    return tn_built(m);
}

static tn_block *create(const char *who, tn_block_config c, bool memory)
{
    const bool stack = c.layers || c.groups || c.each || c.final_norm || c.no_first_norm;
    if (stack)
        tn_raise(TN_EINVAL,
                 "%s: .layers, .groups, .each, .final_norm and .no_first_norm are options of a stack, not of one "
                 "block; call tn_blocks_new",
                 who);
    if (!stack && tn__block_config(who, &c, memory)) return tn__block_of(&c, true);
    return tn__part_drop(c.positions), NULL;
}
tn_block *tn_block_create(tn_block_config c) { return create("tn_block_new", c, c.memory); }
tn_block *tn_transformer_encoder_layer_create(tn_block_config c)
{
    return create("tn_transformer_encoder_layer_new", c, false);
}
tn_block *tn_transformer_decoder_layer_create(tn_block_config c)
{
    return create("tn_transformer_decoder_layer_new", c, true);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static tn_tensor *attended(tn_block *m, tn_tensor *x, const tn_block_args *a, tn_tensor **w)
{
    return tn_mha_forward(m->self_attn, a->query ? a->query : x, x, x, .attn_mask = a->attn_mask, .placed = a->placed,
                          .key_padding_mask = a->key_padding_mask, .causal = a->causal, .weights = w,
                          .weights_per_head = true, .cache = a->cache, .layer = a->layer, .unpadded = a->unpadded);
}

static tn_tensor *remembered(tn_block *m, tn_tensor *x, const tn_block_args *a, tn_tensor **w)
{
    return tn_mha_forward(m->multihead_attn, x, a->memory, a->memory, .attn_mask = a->memory_mask,
                          .key_padding_mask = a->memory_key_padding_mask, .weights = w, .weights_per_head = true,
                          .cache = a->cache, .layer = a->layer, .memory = a->cache != NULL, .unpadded = a->unpadded,
                          .keys_unpadded = a->memory_unpadded);
}

static tn__kept rows_of(const tn_block_args *a)
{
    const tn_unpadded *u = a->unpadded;
    return u ? (tn__kept){u->rows, u->length} : (tn__kept){NULL, 0};
}

static tn_tensor *fed_forward(tn_block *m, tn_tensor *x, const tn_block_args *a)
{
    if (m->experts) return tn__experts(m->experts, x, rows_of(a), a->router);
    if (m->feed_forward) return tn_call(m->feed_forward, x);
    tn_tensor *h = tn__linear_activated(m->gate ? m->gate : m->linear1, x, m->activation);
    if (m->gate) h = tn_mul(h, tn_call(m->linear1, x));
    return tn_call(m->linear2, tn__dropout(m->dropout, h, rows_of(a)));
}

static tn_tensor *in_parallel(tn_block *m, tn_tensor *x, const tn_block_args *a, tn_tensor **w)
{
    tn_tensor     *first = tn_call(m->norm1, x), *second = m->norm2 ? tn_call(m->norm2, x) : first;
    const tn__kept rows = rows_of(a);
    tn_tensor     *h = tn__dropout(m->dropout1, attended(m, first, a, w), rows);
    return tn_add(tn_add(x, h), tn__dropout(m->dropout2, fed_forward(m, second, a), rows));
}

static tn_tensor *with_normed_results(tn_block *m, tn_tensor *x, const tn_block_args *a, tn_tensor **w)
{
    const tn__kept rows = rows_of(a);
    tn_tensor     *h = tn_call(m->result_norm1, attended(m, m->norm1 ? tn_call(m->norm1, x) : x, a, w));
    tn__residual   r = {NULL, NULL};
    if (m->norm2) r = tn__add_and_norm(x, h, m->dropout1, m->norm2, rows);
    else r.sum = r.normed = tn_add(x, tn__dropout(m->dropout1, h, rows));
    return tn_add(r.sum, tn__dropout(m->dropout2, tn_call(m->result_norm2, fed_forward(m, r.normed, a)), rows));
}

static tn_tensor *in_turn(tn_block *m, tn_tensor *x, const tn_block_args *a, tn_tensor **w, tn_tensor **memory)
{
    tn_layer_norm *norm = m->norm3 ? m->norm3 : m->norm2; /* the norm of the feed-forward */
    tn_dropout    *drop = m->dropout3 ? m->dropout3 : m->dropout2;
    const tn__kept rows = rows_of(a);
    if (m->result_norm1) return with_normed_results(m, x, a, w);
    if (m->norm_first) {
        tn_tensor   *h = attended(m, m->norm1 ? tn_call(m->norm1, x) : x, a, w);
        tn__residual r = tn__add_and_norm(x, h, m->dropout1, m->norm2, rows);
        if (m->multihead_attn)
            r = tn__add_and_norm(r.sum, remembered(m, r.normed, a, memory), m->dropout2, m->norm3, rows);
        return tn_add(r.sum, tn__dropout(drop, fed_forward(m, r.normed, a), rows));
    }
    x = tn__add_and_norm(a->query ? a->query : x, attended(m, x, a, w), m->dropout1, m->norm1, rows).normed;
    if (m->multihead_attn) x = tn__add_and_norm(x, remembered(m, x, a, memory), m->dropout2, m->norm2, rows).normed;
    return tn__add_and_norm(x, fed_forward(m, x, a), drop, norm, rows).normed;
}

tn_tensor *tn__block_compute(tn_block *m, tn_tensor *x, const tn_block_args *a, tn_tensor **w, tn_tensor **memory)
{
    return m->parallel ? in_parallel(m, x, a, w) : in_turn(m, x, a, w, memory);
}

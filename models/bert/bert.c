/* bert.c — BERT (Devlin et al. 2019) and its family: embeddings of token, position and segment; an encoder; heads.
 *
 *   x = dropout(norm(word + position + type)),  y = encoder(x), or with narrower embeddings encoder(M x)
 *   masked tokens: the tied head of nn/attention/mlm_head.c at masked positions only;   next sentence: W tanh(P y₀)
 *   replaced tokens (ELECTRA, Clark et al. 2020): w · gelu(V y) for each token
 *
 * RoBERTa (Liu et al. 2019) counts positions from padding + 1, DistilBERT (Sanh et al. 2019) has no segments, ALBERT
 * (Lan et al. 2020) shares weights among its layers, ModernBERT (Warner et al. 2024) has rotary positions instead of
 * embeddings, and windows in most layers. DeBERTa (He et al. 2021, v3: 2023) has disentangled attention; its embeddings
 * are projected before the norm, and are 0 at padding. Its enhanced mask decoder is tn_block_args' .mask_decoder, its
 * head for replaced tokens w · gelu(V norm(y₀ + y)). XLNet is in xlnet.c. */
#include "models/bert/bert_private.h"
#include "models/files/hf_config.h"
#include "models/files/sizes.h"

#include <string.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_bert *m = self;
    snprintf(text, size, "vocab=%lld, dim=%lld, layers=%lld, heads=%lld", (long long)m->config.vocab,
             (long long)m->config.dim, (long long)m->config.layers, (long long)m->config.heads);
}
static tn_tensor *forward(void *self, tn_tensor *ids) { return tn_bert_forward((tn_bert *)self, ids); }
static int        names(const void *self, tn_rename *to, int room)
{
    tn__hf_tables tables;
    return tn__hf_names(tn__bert_files(tn__bert_format_of(&((const tn_bert *)self)->config), &tables), to, room);
}

static const tn_class tn_bert_class = {.size = sizeof(tn_class),
                                       .name = "Bert",
                                       .bytes = sizeof(tn_bert),
                                       .forward = forward,
                                       .describe = describe,
                                       .names = names};

/* ---- building ---------------------------------------------------------------------------------------------------- */

tn_bert_config tn_bert_size(const char *name)
{
    static const tn__model_size sizes[] = {{"tiny", 128, 2, 2, 0, 0},
                                           {"mini", 256, 4, 4, 0, 0},
                                           {"small", 512, 4, 8, 0, 0},
                                           {"medium", 512, 8, 8, 0, 0},
                                           {"base", 768, 12, 12, 0, 0},
                                           {"large", 1024, 24, 16, 0, 0},
                                           {0}};
    const tn__model_size       *s = tn__model_size_find(__func__, sizes, name);
    return s ? TN_WITH(tn_bert_config, TN_BERT_DEFAULTS, .dim = s->dim, .layers = s->layers, .heads = s->heads)
             : (tn_bert_config){.zero_ = 0};
}

/* BERT's initial weights: matrices from a normal distribution, biases 0, norms 1 and 0, the padding row 0. */
static void initialise(tn_bert *m)
{
    for (tn_each p = tn_parameters(m); tn_error() == TN_OK && tn_next(&p);) {
        const size_t n = strlen(p.name);
        if (tn_ndim(p.tensor) > 1) tn_init_normal(p.tensor, 0, m->config.init);
        else if (n >= 4 && !strcmp(p.name + n - 4, "bias")) tn_init_zeros(p.tensor);
    }
    if (m->config.padding < 0 || tn_error() != TN_OK) return;
    const tn_scope s = tn_no_grad_begin();
    tn_init_zeros(tn_narrow(m->words->weight, 0, m->config.padding, 1));
    if (m->positions && m->positions->padding >= 0)
        tn_init_zeros(tn_narrow(m->positions->weight, 0, m->positions->padding, 1));
    tn_scope_end(s);
}

/* True if the positions are part of the input. */
static bool has_input_positions(const tn_bert_config *c)
{
    return c->kind == TN_DEBERTA ? c->input_positions : c->kind != TN_MODERNBERT && c->kind != TN_XLNET;
}

static void add_embeddings(tn_bert *m, const tn_bert_config *c)
{
    const bool    deberta = c->kind == TN_DEBERTA;
    const int64_t first = tn__bert_first_position(c);
    m->words = tn_child(
        m, "bert.embeddings.word_embeddings",
        tn_embedding_new(.count = c->vocab, .dim = c->embedding, .sparse = true,
                         .padding = c->kind == TN_XLNET ? -1 : c->padding)); /* a sequence has few distinct tokens */
    m->dropout = tn_child(m, "bert.embeddings.dropout", tn_dropout_new(.p = c->dropout));
    if (c->kind == TN_XLNET) return;
    if (has_input_positions(c) || c->mask_decoder)
        m->positions = tn_child(
            m, "bert.embeddings.position_embeddings",
            tn_embedding_new(.count = c->positions + first, .dim = c->embedding, .padding = first ? c->padding : -1));
    if (c->types)
        m->types = tn_child(m, "bert.embeddings.token_type_embeddings",
                            tn_embedding_new(.count = c->types, .dim = c->embedding));
    m->norm = tn_child(
        m, "bert.embeddings.LayerNorm",
        tn_layer_norm_new(.dim = deberta ? c->dim : c->embedding, .eps = c->eps, .no_bias = c->kind == TN_MODERNBERT));
    if (c->embedding != c->dim || c->kind == TN_ALBERT)
        m->project = tn_child(m, "bert.embeddings_project",
                              tn_linear_new(.in = c->embedding, .out = c->dim, .no_bias = deberta));
}

/* ModernBERT: every n-th layer, from the first, sees all tokens; the others have windows, and angles of their own. */
typedef struct {
    const tn_bert_config *c;
    tn_rotary            *local;
} modern_positions;

static void set_modern_layer(tn_block_config *b, int64_t i, void *user)
{
    modern_positions     *p = user;
    const tn_bert_config *c = p->c;
    if (i % c->global_every == 0) {
        b->window = 0;
        return;
    }
    if (!p->local) p->local = tn_rotary_new(.theta = c->local_theta);
    b->positions = p->local;
}

/* The part of the attention that knows the positions; NULL: the input has them. */
static void *positions_of(const tn_bert_config *c)
{
    if (c->kind == TN_MODERNBERT) return tn_rotary_new(.theta = c->theta);
    if (c->disentangled.distance <= 0) return NULL;
    return tn_distances_new(.dim = c->dim, .of = c->disentangled, .eps = c->eps, .dropout = c->dropout);
}

/* This family has no dropout after the activation, unlike PyTorch's encoder; ALBERT also none after the feed-forward,
 * DistilBERT none after attention; ModernBERT has that of the weights after attention, and none after the
 * feed-forward. */
static void add_encoder(tn_bert *m, const tn_bert_config *c)
{
    const bool       modern = c->kind == TN_MODERNBERT;
    modern_positions own = {c, NULL};
    m->encoder = tn_child(m, "bert.encoder",
                          tn_transformer_encoder_new(.layers = c->layers, .groups = c->groups, .dim = c->dim,
                                                     .heads = c->heads, .ff = c->ff, .dropout = c->dropout,
                                                     .attention_dropout = c->attention_dropout, .activation_dropout = 0,
                                                     .eps = c->eps, .activation = tn_hf_activation(c->activation),
                                                     .norm_first = c->norm_first || modern, .no_first_norm = modern,
                                                     .final_norm = c->norm_first || modern, .no_bias = modern,
                                                     .gated = modern, .window = c->window, .positions = positions_of(c),
                                                     .each = modern ? set_modern_layer : NULL, .user = &own));
    for (int64_t i = 0; m->encoder && i < tn_length(m->encoder->layers); i++) {
        tn_transformer_encoder_layer *layer = tn_at(m->encoder->layers, i);
        if (layer && c->kind == TN_DISTILBERT) layer->dropout1->p = 0;
        if (layer && (modern || c->kind == TN_ALBERT)) layer->dropout2->p = 0;
        if (layer && modern) layer->dropout1->p = c->attention_dropout;
    }
}

static void add_heads(tn_bert *m, const tn_bert_config *c)
{
    const bool modern = c->kind == TN_MODERNBERT, gelu = tn__is_roberta(c->kind) || c->kind == TN_ELECTRA || modern;
    if (!c->no_pooler) m->pooler = tn_child(m, "bert.pooler.dense", tn_linear_new(.in = c->dim, .out = c->dim));
    if (!c->no_words && m->words)
        m->head = tn_child(m, "cls.predictions",
                           tn_mlm_head_new(.embedding = m->words->weight, .in = c->dim, .eps = c->eps,
                                           .no_bias = modern, .no_transform = c->kind == TN_XLNET,
                                           .activation = gelu ? tn_gelu : tn_hf_activation(c->activation)));
    if (!c->no_next && c->kind == TN_ALBERT)
        m->head_dropout = tn_child(m, "cls.dropout", tn_dropout_new(.p = c->head_dropout));
    if (!c->no_next) m->next = tn_child(m, "cls.seq_relationship", tn_linear_new(.in = c->dim, .out = 2));
    if (!c->replaced) return;
    if (c->kind == TN_DEBERTA)
        m->replaced_norm =
            tn_child(m, "discriminator_predictions.norm", tn_layer_norm_new(.dim = c->dim, .eps = c->eps));
    m->replaced = tn_child(m, "discriminator_predictions.dense", tn_linear_new(.in = c->dim, .out = c->dim));
    m->replaced_out = tn_child(m, "discriminator_predictions.dense_prediction", tn_linear_new(.in = c->dim, .out = 1));
}

tn_bert *tn_bert_create(tn_bert_config c)
{
    if (tn_error() != TN_OK || !tn__bert_complete("tn_bert_new", &c)) return NULL;
    tn_bert *m = tn_module_new(tn_bert);
    if (!m) return NULL;
    m->config = c;
    add_embeddings(m, &c);
    if (c.kind == TN_XLNET) tn__xlnet_add(m, &c);
    else add_encoder(m, &c);
    add_heads(m, &c);
    if (tn_error() == TN_OK) initialise(m);
    return tn_built(m);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* RoBERTa's position embeddings: tokens are counted from padding + 1, and padding tokens have position `padding`. If
 * those are masked and at the end, their positions do not matter: rows in order are enough, [T, dim] instead of
 * [B, T, dim]. */
static tn_tensor *position_embeddings(tn_bert *m, const tn_bert_args *a)
{
    const int64_t batch = tn_size(a->ids, 0), n = tn_size(a->ids, 1), first = tn__bert_first_position(&m->config);
    const bool    masked = a->key_padding_mask && tn_shape_equal(tn_shape_of(a->key_padding_mask), tn_shape_of(a->ids));
    bool          plain = true;
    if (!first) return tn_embedding_rows(m->positions, 0, n);
    tn_tensor *at = tn_empty_of(TN_I64, TN_SHAPE(batch, n));
    int64_t   *to = at ? tn_data_mut(at) : NULL;
    for (int64_t row = 0, i = 0; to && row < batch; row++)
        for (int64_t next = first, end = i + n; i < end; i++) {
            const bool padding = tn_get_i64(a->ids, i) == first - 1;
            if (padding ? !masked || !tn_get_i64(a->key_padding_mask, i) : next < first + n - (end - i)) plain = false;
            to[i] = padding ? first - 1 : next++;
        }
    return plain ? tn_embedding_rows(m->positions, first, n) : tn_call(m->positions, at);
}

/* The sum of the embeddings of ids [B, T]. */
static tn_tensor *embed(tn_bert *m, const tn_bert_args *a)
{
    if (!a->ids || tn_ndim(a->ids) != 2) {
        char text[192];
        return tn_raise_null(TN_ESHAPE, "bert: ids must be [batch, length], got %s",
                             a->ids ? tn_shape_text(tn_shape_of(a->ids), text, sizeof text) : "NULL");
    }
    const int64_t length = tn_size(a->ids, 1);
    if (length > m->config.positions && m->config.kind != TN_XLNET)
        return tn_raise_null(TN_ESHAPE,
                             "bert: a sequence of %lld tokens is longer than the model's %lld positions; truncate it",
                             (long long)length, (long long)m->config.positions);
    tn_tensor *place = has_input_positions(&m->config) ? position_embeddings(m, a) : NULL;
    if (m->types) {
        tn_tensor *type = a->types ? tn_call(m->types, a->types) : tn_embedding_rows(m->types, 0, 1);
        place = place ? tn_add(place, type) : type;
    }
    tn_tensor *word = tn_call(m->words, a->ids);
    return place ? tn_add(word, place) : word;
}

/* The embeddings, with those of .shared. */
static tn_tensor *embed_with_shared(tn_bert *m, const tn_bert_args *a)
{
    tn_tensor *x = embed(m, a);
    if (!a->shared || tn_error() != TN_OK) return x;
    if (!tn_ready(a->shared)) return NULL;
    const tn_bert_config *c = &a->shared->config;
    if (c->embedding != m->config.embedding || c->vocab != m->config.vocab)
        return tn_raise_null(TN_EINVAL, "bert: .shared has %lld tokens of width %lld, but the model has %lld of %lld",
                             (long long)c->vocab, (long long)c->embedding, (long long)m->config.vocab,
                             (long long)m->config.embedding);
    const tn_scope s = tn_no_grad_begin();
    return tn_add(x, tn_scope_return(s, embed(a->shared, a)));
}

/* dropout(norm(embeddings)), and for narrower embeddings a projection. DeBERTa's is before the norm, which leaves 0 at
 * padding. If a->skip_padding is respected, only of the rows that are not padding, *u; else u->rows stays NULL. The
 * gradients of norm and projection are sums over the rows, whose bits so do not depend on the padding. */
static tn_tensor *embedded(tn_bert *m, const tn_bert_args *a, tn_unpadded *u)
{
    const bool deberta = m->config.kind == TN_DEBERTA;
    tn_tensor *x = embed_with_shared(m, a);
    if (tn_error() == TN_OK && a->skip_padding && !deberta && !a->weights)
        x = tn_skip_padding(m, x, a->key_padding_mask, u);
    if (tn_error() == TN_OK && m->project && deberta) x = tn_call(m->project, x);
    if (tn_error() == TN_OK) x = tn_call(m->norm, x);
    if (tn_error() == TN_OK && deberta && a->key_padding_mask)
        x = tn_masked_fill(x, tn_unsqueeze(a->key_padding_mask, 2), 0);
    if (tn_error() == TN_OK && !u->rows) x = tn_call(m->dropout, x);
    else if (tn_error() == TN_OK && m->base.training) x = tn_dropout_rows(x, m->dropout->p, u->rows, u->length);
    return tn_error() == TN_OK && m->project && !deberta ? tn_call(m->project, x) : x;
}

static tn_tensor *encode(tn_bert *m, const tn_bert_args *a)
{
    if (a->order || a->memory || a->memory_out)
        return tn_raise_null(TN_EINVAL, "bert: .order, .memory and .memory_out need an XLNet, not a %s",
                             tn_bert_kind_name(m->config.kind));
    tn_unpadded u = {.batch = 0};
    tn_tensor  *x = embedded(m, a, &u), *place = NULL;
    if (tn_error() == TN_OK && a->for_words && m->config.mask_decoder)
        place = tn_embedding_rows(m->positions, 0, tn_size(a->ids, 1));
    if (tn_error() == TN_OK)
        x = tn_transformer_encoder_forward(m->encoder, x, .key_padding_mask = u.rows ? NULL : a->key_padding_mask,
                                           .causal = a->causal, .weights = a->weights, .skip_padding = a->skip_padding,
                                           .mask_decoder = place, .unpadded = u.rows ? &u : NULL);
    if (tn_error() == TN_OK && u.rows) x = tn_pad_rows(u, x);
    return x && a->targets ? tn_index_select(tn_reshape(x, TN_SHAPE(-1, m->config.dim)), 0, a->targets) : x;
}

tn_tensor *tn_bert_run(tn_bert *m, tn_bert_args a)
{
    tn_tensor **const lists[] = {a.weights, a.memory_out == a.memory ? NULL : a.memory_out};
    const int64_t     n = m ? m->config.layers : 0;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; lists[k] && i < n; i++) lists[k][i] = NULL;
    if (!tn_ready(m)) return NULL;
    if (a.causal && (m->streams || m->config.kind == TN_DEBERTA))
        return tn_raise_null(TN_EUNSUPPORTED, "bert: .causal is not supported by %s",
                             tn_bert_kind_name(m->config.kind));
    const tn_frame f = tn_enter(m);
    tn_tensor     *x = m->streams ? embed_with_shared(m, &a) : encode(m, &a);
    if (m->streams && tn_error() == TN_OK) x = tn__xlnet_run(m, x, &a);
    if ((!a.weights && !a.memory_out) || tn_error() != TN_OK) return tn_leave(f, x);
    /* Return x, the attention weights and the memory from the frame in one list. */
    int          count = 0;
    tn_tensor ***all = tn_mem_get((size_t)(2 * n + 1) * sizeof *all);
    if (!all) return tn_leave(f, NULL);
    all[count++] = &x;
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; lists[k] && i < n; i++) all[count++] = &lists[k][i];
    tn_leave_list(f, count, all);
    tn_mem_put(all, (size_t)(2 * n + 1) * sizeof *all);
    return x;
}

/* True if y and the head are not NULL; else raises, naming the missing one. */
static bool has(const tn_tensor *y, const void *head, const char *which)
{
    if (!y) return tn_raise_false(TN_EINVAL, "bert: the hidden states are NULL; pass the result of tn_bert_forward");
    if (head) return true;
    return tn_raise_false(TN_ESTATE, "bert: this model has no %s; load a model trained for that, or create it with one",
                          which);
}

static tn_tensor *selected_rows(tn_bert *m, tn_tensor *y, tn_tensor *where)
{
    y = tn_reshape(y, TN_SHAPE(-1, m->config.dim));
    return where ? tn_index_select(y, 0, where) : y;
}
tn_tensor *tn_bert_mlm_logits(tn_bert *m, tn_tensor *y, tn_tensor *where)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    return tn_leave(f, has(y, m->head, "head for masked tokens") ? tn_call(m->head, selected_rows(m, y, where)) : NULL);
}
tn_tensor *tn_bert_pooled(tn_bert *m, tn_tensor *y)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    return tn_leave(f, has(y, m->pooler, "pooler") ? tn_tanh(tn_call(m->pooler, tn_select(y, 1, 0))) : NULL);
}
tn_tensor *tn_bert_nsp_logits(tn_bert *m, tn_tensor *y)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *first = has(y, m->next, "head for the next sentence") ? tn_bert_pooled(m, y) : NULL;
    if (first && m->head_dropout) first = tn_call(m->head_dropout, first);
    return tn_leave(f, first ? tn_call(m->next, first) : NULL);
}
/* Of y, to which DeBERTa's first tokens are added. */
static tn_tensor *replaced_logits(tn_bert *m, tn_tensor *y)
{
    if (m->replaced_norm) y = tn_call(m->replaced_norm, y);
    y = tn_call(m->replaced_out, tn_hf_activation(m->config.activation)(tn_call(m->replaced, y)));
    return y ? tn_squeeze(y, -1) : NULL;
}
static tn_tensor *plus_first(tn_bert *m, tn_tensor *y)
{
    return m->replaced_norm ? tn_add(y, tn_narrow(y, 1, 0, 1)) : y;
}
tn_tensor *tn_bert_replaced_logits(tn_bert *m, tn_tensor *y)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (!has(y, m->replaced, "head for replaced tokens")) return tn_leave(f, NULL);
    return tn_leave(f, replaced_logits(m, plus_first(m, y)));
}

/* The projection to the vocabulary is part of the loss, so that the logits are never stored all at once. */
static tn_tensor *word_loss(tn_bert *m, tn_tensor *y, const tn_bert_loss_args *b)
{
    if (!has(y, m->head, "head for masked tokens")) return NULL;
    tn_tensor *x = tn_mlm_head_transform(m->head, selected_rows(m, y, m->streams ? NULL : b->masked));
    return tn_linear_cross_entropy(x, m->head->weight, m->head->bias, b->words);
}

/* The mean over all tokens except padding. */
static tn_tensor *replaced_loss(tn_bert *m, tn_tensor *y, const tn_bert_loss_args *b)
{
    if (!has(y, m->replaced, "head for replaced tokens")) return NULL;
    tn_tensor *x = plus_first(m, y), *want = b->replaced;
    if (b->key_padding_mask) {
        const tn_unpadded u = tn_unpad(b->key_padding_mask);
        x = tn_unpad_rows(u, x), want = tn_unpad_rows(u, want);
    }
    tn_tensor *scores = replaced_logits(m, x);
    if (!scores) return NULL;
    want = tn_to(want, tn_dtype_of(scores));
    if (scores && !tn_numel(scores)) return tn_sum(tn_narrow(y, 0, 0, 0));
    return tn_bce_with_logits(scores, want);
}

/* True if the arguments have targets; else raises. */
static bool has_targets(const tn_bert *m, const tn_bert_loss_args *b)
{
    if (!b->masked != !b->words)
        tn_raise(TN_EINVAL, "bert: .masked and .words must be set together: the positions of the masked tokens and "
                            "their token ids");
    if (tn_error() == TN_OK && !b->masked && !b->next && !b->replaced)
        tn_raise(TN_EINVAL, "bert: no targets; set .masked and .words, .next or .replaced");
    if (tn_error() == TN_OK && (m->streams ? b->next || b->replaced || b->segment < 0 : b->order || b->segment))
        tn_raise(TN_EINVAL,
                 "bert: .order and .segment, at least 0, are for XLNet, .next and .replaced for others; "
                 "this is %s",
                 tn_bert_kind_name(m->config.kind));
    return tn_error() == TN_OK;
}

/* The targets of columns [from, from + n): their positions in [B · n], and their indices among all. */
static void targets_in(const tn_bert_loss_args *b, int64_t from, int64_t n, tn_tensor **at, tn_tensor **which)
{
    const int64_t all = tn_numel(b->masked), length = tn_size(b->ids, 1);
    int64_t       count = 0, *place, *index;
    *at = tn_empty_of(TN_I64, TN_SHAPE(all)), *which = tn_empty_of(TN_I64, TN_SHAPE(all));
    if (tn_error() != TN_OK || !(place = tn_data_mut(*at)) || !(index = tn_data_mut(*which))) return;
    for (int64_t i = 0; i < all; i++) {
        const int64_t t = tn_get_i64(b->masked, i), column = t % length;
        if (column < from || column >= from + n) continue;
        place[count] = t / length * n + column - from, index[count++] = i;
    }
    *at = tn_narrow(*at, 0, 0, count), *which = tn_narrow(*which, 0, 0, count);
}

static tn_tensor *columns(tn_tensor *x, int64_t from, int64_t n) { return x ? tn_narrow(x, 1, from, n) : NULL; }

/* True if the targets of a text that is read in segments fit; else raises. */
static bool fit_segments(const tn_bert *m, const tn_bert_loss_args *b, int64_t most)
{
    if (m->config.reuse && m->config.reuse < b->segment)
        return tn_raise_false(TN_EINVAL,
                              "bert: .segment is %lld, but the model's .reuse keeps only the first %lld tokens of "
                              "each; set .reuse to 0",
                              (long long)b->segment, (long long)m->config.reuse);
    if (b->masked && tn_numel(b->words) != tn_numel(b->masked))
        return tn_raise_false(TN_ESHAPE, "bert: .masked has %lld positions, but .words %lld token ids",
                              (long long)tn_numel(b->masked), (long long)tn_numel(b->words));
    for (int64_t i = 0; b->masked && i < tn_numel(b->masked); i++) {
        const int64_t t = tn_get_i64(b->masked, i);
        if (t < 0 || t >= most)
            return tn_raise_false(TN_EINDEX, "bert: .masked[%lld] is position %lld, outside 0 … %lld", (long long)i,
                                  (long long)t, (long long)most - 1);
    }
    return tn_error() == TN_OK;
}

/* XLNet: the hidden states [N, dim] of the targets. Read in segments, they are in the order of the segments, and so are
 * b->words then. */
static tn_tensor *target_states(tn_bert *m, tn_bert_loss_args *b)
{
    const int64_t length = b->ids && tn_ndim(b->ids) == 2 ? tn_size(b->ids, 1) : 0, layers = m->config.layers;
    const size_t  bytes = (size_t)(2 * layers + 2 * (b->segment ? length / b->segment + 1 : 0)) * sizeof(tn_tensor *);
    if (!b->segment || b->segment >= length)
        return tn_bert_forward(m, b->ids, .types = b->types, .key_padding_mask = b->key_padding_mask,
                               .targets = b->masked, .order = b->order, .shared = b->shared);
    if (!fit_segments(m, b, tn_size(b->ids, 0) * length)) return NULL;
    tn_tensor **memory = tn_mem_get(bytes), **y = memory ? memory + 2 * layers : NULL, *at, *which, *all;
    int         n = 0, parts = (int)(length / b->segment + 1);
    for (int64_t from = 0; y && from < length && tn_error() == TN_OK; from += b->segment, n++) {
        const int64_t width = b->segment < length - from ? b->segment : length - from;
        targets_in(b, from, width, &at, &which);
        y[parts + n] = tn_index_select(b->words, 0, which);
        y[n] = tn_bert_forward(m, columns(b->ids, from, width), .types = columns(b->types, from, width),
                               .key_padding_mask = columns(b->key_padding_mask, from, width), .targets = at,
                               .order = columns(b->order, from, width), .memory = n ? memory + n % 2 * layers : NULL,
                               .memory_out = memory + (n + 1) % 2 * layers, .shared = b->shared);
    }
    if (y && tn_error() == TN_OK) b->words = tn_cat_list(0, n, y + parts);
    all = y && tn_error() == TN_OK ? tn_cat_list(0, n, y) : NULL;
    tn_mem_put(memory, bytes);
    return all;
}

tn_tensor *tn_bert_loss_run(tn_bert *m, tn_bert_loss_args b)
{
    if (b.word_loss) *b.word_loss = NULL;
    if (b.next_loss) *b.next_loss = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *y = NULL, *loss = NULL, *word = NULL, *next = NULL;
    if (has_targets(m, &b))
        y = m->streams
                ? target_states(m, &b)
                : tn_bert_forward(m, b.ids, .types = b.types, .key_padding_mask = b.key_padding_mask,
                                  .causal = b.causal, .skip_padding = true, .for_words = b.masked, .shared = b.shared);
    if (y && b.masked) {
        word = tn_numel(b.words) ? word_loss(m, y, &b) : tn_sum(tn_narrow(y, 0, 0, 0)); /* 0, with a gradient of 0 */
        loss = word;
    }
    if (y && b.next) {
        next = tn_cross_entropy(tn_bert_nsp_logits(m, y), b.next);
        loss = loss ? tn_add(loss, next) : next;
    }
    if (y && b.replaced) {
        tn_tensor *part = replaced_loss(m, y, &b);
        loss = loss ? tn_add(loss, part) : part;
    }
    if (word && b.word_loss) word = tn_detach(word);
    if (next && b.next_loss) next = tn_detach(next);
    if (!b.word_loss && !b.next_loss) return tn_leave(f, loss);
    tn_leave_n(f, &loss, &word, &next);
    if (b.word_loss) *b.word_loss = word;
    if (b.next_loss) *b.next_loss = next;
    return loss;
}

tn_tensor *tn_bert_fit_loss(void *bert, const tn_batch *b, void *segment)
{
    tn_bert *m = bert;
    if (!tn_ready(m) || !tn__not_null("tn_bert_fit_loss", "the batch", b)) return NULL;
    return tn_bert_loss(m, .ids = b->x, .types = tn_batch_get(b, "segments"),
                        .key_padding_mask = tn_batch_get(b, "padding"), .masked = tn_batch_get(b, "masked_at"),
                        .words = b->y, .next = tn_batch_find(b, "next"), .order = tn_batch_find(b, "order"),
                        .causal = tn_batch_find(b, "causal") != NULL,
                        .segment = segment ? *(const int64_t *)segment : 0);
}

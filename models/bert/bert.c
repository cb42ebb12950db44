/* bert.c — BERT (Devlin et al. 2019): embeddings of token, position and segment; an encoder; heads. Its relatives are
 * rows of a table (relatives.c), a head of their own (electra.c), and another encoder (tn__bert_register).
 *
 *   x = dropout(norm(word + position + type)),  y = encoder(x), or with narrower embeddings encoder(M x)
 *   masked tokens: the tied head of nn/attention/mlm_head.c at masked positions only;   next sentence: W tanh(P y₀) */
#include "models/bert/bert_private.h"
#include "models/files/hf_config.h"

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

static void add_embeddings(tn_bert *m, const tn_bert_config *c, const tn__bert_relative *r)
{
    const int64_t first = tn__bert_first_position(c), e = c->embedding;
    m->words = tn_child(m, "bert.embeddings.word_embeddings",
                        tn_embedding_new(.count = c->vocab, .dim = e, .sparse = true, /* a batch has few tokens */
                                         .padding = r->streams ? -1 : c->padding));
    m->dropout = tn_child(m, "bert.embeddings.dropout", tn_dropout_new(.p = c->dropout));
    if (r->streams) return;
    if (tn__bert_has_places(c) || c->mask_decoder)
        m->positions =
            tn_child(m, "bert.embeddings.position_embeddings",
                     tn_embedding_new(.count = c->positions + first, .dim = e, .padding = first ? c->padding : -1));
    if (c->types)
        m->types = tn_child(m, "bert.embeddings.token_type_embeddings", tn_embedding_new(.count = c->types, .dim = e));
    m->norm = tn_child(m, "bert.embeddings.LayerNorm",
                       tn_layer_norm_new(.dim = r->project_first ? c->dim : e, .eps = c->eps, .no_bias = r->modern));
    if (e != c->dim || r->projects)
        m->project =
            tn_child(m, "bert.embeddings_project", tn_linear_new(.in = e, .out = c->dim, .no_bias = r->project_first));
}

static void set_dropout(tn_dropout *to, const tn_bert_config *c, tn__bert_dropout which)
{
    if (which) to->p = which == TN__BERT_ATTENTION_DROPOUT ? c->attention_dropout : 0;
}

static void add_encoder(tn_bert *m, const tn_bert_config *c, const tn__bert_relative *r)
{
    const bool      first = c->norm_first || r->modern;
    tn__bert_layers user = {c, NULL};
    m->encoder = tn_child(
        m, "bert.encoder",
        tn_transformer_encoder_new(.layers = c->layers, .groups = c->groups, .final_norm = first, .dim = c->dim,
                                   .heads = c->heads, .attention.scores.window = c->window,
                                   .attention.positions = tn__bert_positions(c), .ff = c->ff, .gated = r->modern,
                                   .activation = tn_hf_activation(c->activation), .dropout = c->dropout,
                                   .attention_dropout = c->attention_dropout, .activation_dropout = 0,
                                   .norm.eps = c->eps, .order = first ? TN_NORM_FIRST : TN_NORM_LAST,
                                   .each = r->modern ? tn__bert_set_layer : NULL, .user = &user, .no_bias = r->modern));
    for (int64_t i = 0; m->encoder && i < tn_length(m->encoder->layers); i++) {
        tn_transformer_encoder_layer *layer = tn_at(m->encoder->layers, i);
        if (layer) set_dropout(layer->dropout1, c, r->dropout1), set_dropout(layer->dropout2, c, r->dropout2);
    }
}

static void add_heads(tn_bert *m, const tn_bert_config *c, const tn__bert_relative *r)
{
    if (!c->no_pooler) m->pooler = tn_child(m, "bert.pooler.dense", tn_linear_new(.in = c->dim, .out = c->dim));
    if (!c->no_words && m->words)
        m->head = tn_child(m, "cls.predictions",
                           tn_mlm_head_new(.embedding = m->words->weight, .in = c->dim, .eps = c->eps,
                                           .no_bias = r->modern, .no_transform = r->streams,
                                           .activation = r->gelu ? tn_gelu : tn_hf_activation(c->activation)));
    if (!c->no_next && r->projects) m->head_dropout = tn_child(m, "cls.dropout", tn_dropout_new(.p = c->head_dropout));
    if (!c->no_next) m->next = tn_child(m, "cls.seq_relationship", tn_linear_new(.in = c->dim, .out = 2));
    if (c->replaced) tn__electra_add(m, c);
}

tn_bert *tn_bert_create(tn_bert_config c)
{
    if (tn_error() != TN_OK || !tn__bert_complete("tn_bert_new", &c)) return NULL;
    tn_bert *m = tn_module_new(tn_bert);
    if (!m) return NULL;
    m->config = c;
    const tn__bert_relative *r = tn__bert_relative_of(c.kind);
    add_embeddings(m, &c, r);
    if (r->streams) tn__bert_other()->add(m, &c);
    else add_encoder(m, &c, r);
    add_heads(m, &c, r);
    if (tn_error() == TN_OK) initialise(m);
    return tn_built(m);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* The sum of the embeddings of ids [B, T]. */
static tn_tensor *embed(tn_bert *m, const tn_bert_args *a)
{
    if (!a->ids || tn_ndim(a->ids) != 2) {
        char text[192];
        return tn_raise_null(TN_ESHAPE, "bert: ids must be [batch, length], got %s",
                             a->ids ? tn_shape_text(tn_shape_of(a->ids), text, sizeof text) : "NULL");
    }
    const int64_t length = tn_size(a->ids, 1);
    if (length > m->config.positions && !m->streams)
        return tn_raise_null(TN_ESHAPE,
                             "bert: a sequence of %lld tokens is longer than the model's %lld positions; truncate it",
                             (long long)length, (long long)m->config.positions);
    tn_tensor *place = tn__bert_has_places(&m->config) ? tn__bert_places(m, a) : NULL;
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
    const bool first = tn__bert_relative_of(m->config.kind)->project_first;
    tn_tensor *x = embed_with_shared(m, a);
    if (tn_error() == TN_OK && a->skip_padding && !first && !a->weights)
        x = tn_skip_padding(m, x, a->key_padding_mask, u);
    if (tn_error() == TN_OK && m->project && first) x = tn_call(m->project, x);
    if (tn_error() == TN_OK) x = tn_call(m->norm, x);
    if (tn_error() == TN_OK && first && a->key_padding_mask)
        x = tn_masked_fill(x, tn_unsqueeze(a->key_padding_mask, 2), 0);
    if (tn_error() == TN_OK && !u->rows) x = tn_call(m->dropout, x);
    else if (tn_error() == TN_OK && m->base.training) x = tn_dropout_rows(x, m->dropout->p, u->rows, u->length);
    return tn_error() == TN_OK && m->project && !first ? tn_call(m->project, x) : x;
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
    tn_tensor *targets = place ? NULL : a->targets; /* left to the last layer */
    if (tn_error() == TN_OK)
        x = tn_transformer_encoder_forward(m->encoder, x, .key_padding_mask = u.rows ? NULL : a->key_padding_mask,
                                           .weights = a->weights, .skip_padding = a->skip_padding, .targets = targets,
                                           .mask_decoder = place, .unpadded = u.rows ? &u : NULL);
    if (targets) return tn_reshape(x, TN_SHAPE(-1, m->config.dim));
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
    const tn_frame f = tn_enter(m);
    tn_tensor     *x = m->streams ? embed_with_shared(m, &a) : encode(m, &a);
    if (m->streams && tn_error() == TN_OK) x = tn__bert_other()->run(m, x, &a);
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

/* task_heads.c — tn_tuned, an encoder with a task head: construction, forward pass and loss. */
#include "models/heads/heads_private.h"

#include <string.h>

static void describe(const void *self, char *text, size_t size)
{
    const tn_tuned *m = self;
    snprintf(text, size, "%s, %lld labels", tn__task_name(m->config.task), (long long)m->config.n);
}
static tn_tensor *forward(void *self, tn_tensor *ids) { return tn_tuned_run(self, (tn_tuned_args){.ids = ids}); }
/* The labels of a copy must point into its own names. */
static void copied(void *self, const void *from)
{
    tn_tuned       *m = self;
    const tn_tuned *old = from;
    for (int64_t i = 0; m->labels && m->names && i < m->config.n; i++)
        m->labels[i] = m->names + (old->labels[i] - old->names);
}
static const tn_class tn_tuned_class = {.size = sizeof(tn_class),
                                        .name = "Tuned",
                                        .bytes = sizeof(tn_tuned),
                                        .forward = forward,
                                        .describe = describe,
                                        .copied = copied};

/* ---- building ---------------------------------------------------------------------------------------------------- */

static tn_tensor *find_parameter(tn_bert *m, const char *name)
{
    for (tn_each p = tn_parameters(m); tn_next(&p);)
        if (!strcmp(p.name, name)) return p.tensor;
    return NULL;
}

/* The encoder with or without a pooler, and without its pre-training heads: a new one that takes over the weights. */
static tn_bert *without_heads(tn_bert *old, bool pooler)
{
    if (!old || (!old->head && !old->next && !old->replaced && (old->pooler != NULL) == pooler)) return old;
    tn_bert_config c = old->config;
    c.no_words = c.no_next = true, c.no_pooler = !pooler, c.replaced = c.mask_decoder = false;
    tn_bert *m = tn_bert_create(c);
    if (m) tn__prune_like(m, old);
    bool frozen = true;
    for (tn_each p = tn_parameters(old); tn_next(&p);) frozen = frozen && !tn_needs_grad(p.tensor);
    for (tn_each b = tn_module_each(old, TN_EACH_SAVED); tn_error() == TN_OK && tn_next(&b);)
        if (tn_is_packed(b.tensor))
            tn_raise(TN_EUNSUPPORTED,
                     "tn_tuned_new: the encoder's '%s' is packed (tn_quantize, tn_halve); pack the tuned model instead",
                     b.name);
    for (tn_each p = tn_parameters(m); tn_error() == TN_OK && tn_next(&p);) {
        const tn_tensor *has = find_parameter(old, p.name);
        if (has) tn_adopt(p.tensor, has);
    }
    if (m) tn_train(m, old->base.training);
    if (m && frozen) tn_freeze(m, true);
    tn_free(old);
    return m;
}

static bool check_config(tn_tuned_config *c)
{
    static const char *const who = "tn_tuned_new";
    if ((unsigned)c->task > TN_TASK_MULTIPLE_CHOICE || (unsigned)c->problem > TN_REGRESSION)
        return tn_raise_false(TN_EINVAL, "%s: .task or .problem is not a value of its enum", who);
    if (c->task != TN_TASK_CLASSIFICATION) c->problem = TN_SINGLE_LABEL;
    if (c->crf && c->task != TN_TASK_TOKEN_CLASSIFICATION)
        return tn_raise_false(TN_EINVAL, "%s: .crf needs .task = TN_TASK_TOKEN_CLASSIFICATION", who);
    if (c->task == TN_TASK_QUESTION_ANSWERING) c->n = 2;
    if (c->task == TN_TASK_MULTIPLE_CHOICE || (c->problem == TN_REGRESSION && !c->n)) c->n = 1;
    return tn__within(who, "n", c->n, 1, 1 << 20) &&
           (c->dropout < 0 || tn__probability_below_1(who, "dropout", c->dropout));
}

enum { HEAD_BYTES = 128 };

static void keep_labels(tn_tuned *m)
{
    const char *const *from = m->config.labels;
    const int64_t      n = m->config.n;
    int64_t            bytes = 0;
    for (int64_t i = 0; i < n; i++) bytes += from ? (int64_t)strlen(from[i]) + 1 : 32;
    m->labels = tn_array(m, n, const char *);
    m->names = tn_array(m, bytes, char);
    char *to = m->names;
    for (int64_t i = 0; m->labels && to && i < n; i++) {
        m->labels[i] = to;
        to += from ? sprintf(to, "%s", from[i]) + 1 : sprintf(to, "LABEL_%lld", (long long)i) + 1;
    }
    m->config.labels = NULL;
}

static tn_linear *new_linear(tn_tuned *m, const char *name, int64_t out, bool bias, const tn_bert_config *e)
{
    tn_linear *x = tn_child(m, name, tn_linear_new(.in = e->dim, .out = out, .no_bias = !bias));
    if (x) tn_init_normal(x->weight, 0, e->init);
    if (x && bias) tn_init_zeros(x->bias);
    return x;
}

/* The layers before the classifier. ModernBERT's have the names of the head for masked tokens, and begin with its
 * weights, `of`, if the encoder had one. */
static void add_inner(tn_tuned *m, const tn__head *h, const tn_bert_config *e, tn_tensor *const of[2])
{
    if (!h->dense) return;
    m->dense = new_linear(m, h->dense, e->dim, !h->norm, e);
    if (h->norm) m->norm = tn_child(m, h->norm, tn_layer_norm_new(.dim = e->dim, .eps = e->eps, .no_bias = true));
    const tn_scope s = tn_no_grad_begin();
    if (of[0] && m->norm) tn_copy_from(m->dense->weight, of[0]), tn_copy_from(m->norm->weight, of[1]);
    tn_scope_end(s);
}

/* DistilBERT's and DeBERTa's head_dropout applies only to tasks on whole texts. */
static double default_dropout(const tn_bert_config *e, tn_task task)
{
    const bool whole = task == TN_TASK_CLASSIFICATION || task == TN_TASK_MULTIPLE_CHOICE;
    return e->head_dropout >= 0 && (whole || (e->kind != TN_DISTILBERT && e->kind != TN_DEBERTA)) ? e->head_dropout
                                                                                                  : e->dropout;
}

tn_tuned *tn_tuned_create(tn_bert *encoder, tn_tuned_config c)
{
    if (tn_error() == TN_OK && !encoder) tn_raise(TN_EINVAL, "tn_tuned_new: the encoder is NULL");
    tn_tuned *m = encoder && tn_error() == TN_OK && check_config(&c) ? tn_module_new(tn_tuned) : NULL;
    if (!m) return tn_free(encoder), NULL;
    const tn__head     h = tn__head_for(&encoder->config, c.task);
    const tn_mlm_head *old = h.norm ? encoder->head : NULL;
    tn_tensor         *of[2] = {old ? tn_keep(old->dense->weight) : NULL, old ? tn_keep(old->norm->weight) : NULL};
    m->config = c;
    m->encoder = tn_child(m, "encoder", without_heads(encoder, h.pooled));
    if (m->encoder) {
        tn_bert_config *e = &m->encoder->config;
        if (c.dropout >= 0) e->head_dropout = c.dropout;
        else m->config.dropout = default_dropout(e, c.task);
        m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = m->config.dropout));
        add_inner(m, &h, e, of);
        m->classifier = new_linear(m, h.out, c.n, true, e);
        if (c.crf) m->crf = tn_child(m, "crf", tn_crf_new(.labels = c.n));
        keep_labels(m);
        m->head = tn_array(m, HEAD_BYTES, char);
        if (m->head)
            snprintf(m->head, HEAD_BYTES, "%s %s %s%s", m->dense ? h.dense : "", m->norm ? h.norm : "", h.out,
                     m->crf ? " crf" : "");
    }
    tn_drop(of[0]), tn_drop(of[1]);
    return tn_built(m);
}

const char *tn_tuned_head(const tn_tuned *m) { return m ? m->head : NULL; }

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Reshapes [B, C, T] to [B · C, T]. */
static tn_tensor *flat(tn_tensor *x) { return x && tn_ndim(x) == 3 ? tn_reshape(x, TN_SHAPE(-1, tn_size(x, 2))) : x; }

/* Each text's last token that is not padding: [B, dim]. */
static tn_tensor *last_tokens(tn_tensor *y, tn_tensor *padding)
{
    if (!y) return NULL;
    const int64_t rows = tn_size(y, 0), n = tn_size(y, 1);
    tn_tensor    *at = tn_empty_of(TN_I64, TN_SHAPE(rows));
    int64_t      *to = at ? tn_data_mut(at) : NULL;
    for (int64_t b = 0; to && b < rows; b++) {
        int64_t t = n - 1;
        while (padding && t > 0 && tn_get_i64(padding, b * n + t)) t--;
        to[b] = b * n + t;
    }
    return tn_index_select(tn_reshape(y, TN_SHAPE(-1, tn_size(y, 2))), 0, at);
}

/* The position of each text's first token in the flattened [B · T], where the head reads only these and they are not
 * padding; else NULL. */
static tn_tensor *first_tokens(const tn_tuned *m, const tn__head *h, const tn_tuned_args *a)
{
    if (!(h->first || h->pooled) || !a->ids || tn_ndim(a->ids) != 2 || m->encoder->streams) return NULL;
    const int64_t    n = tn_size(a->ids, 0), length = tn_size(a->ids, 1);
    const tn_tensor *mask = a->key_padding_mask;
    if (!n || !length || (mask && !tn_shape_equal(tn_shape_of(mask), tn_shape_of(a->ids)))) return NULL;
    for (int64_t i = 0; mask && i < n; i++)
        if (tn_get_i64(mask, i * length)) return NULL;
    return tn_arange_of(TN_I64, 0, (double)(n * length), (double)length);
}

/* Applies the head to hidden states [B, T or 1, dim]. */
static tn_tensor *apply_head(tn_tuned *m, tn_tensor *y, tn_tensor *key_padding_mask)
{
    const tn__head h = tn__head_for(&m->encoder->config, m->config.task);
    if (h.pooled) y = tn_bert_pooled(m->encoder, y);
    if (h.first) y = tn_select(y, 1, 0);
    if (h.mean) y = tn_bert_sentences(y, key_padding_mask, TN_POOL_MEAN);
    if (h.last) y = last_tokens(y, key_padding_mask);
    if (h.drop) y = tn_call(m->dropout, y);
    if (h.dense) y = h.active(tn_call(m->dense, y));
    if (h.norm) y = tn_call(m->norm, y);
    if (h.drop_out) y = tn_call(m->dropout, y);
    return tn_call(m->classifier, y);
}

tn_tensor *tn_tuned_run(tn_tuned *m, tn_tuned_args a)
{
    char text[192];
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    const bool     choose = m->config.task == TN_TASK_MULTIPLE_CHOICE;
    if (choose && a.ids && tn_ndim(a.ids) != 3)
        tn_raise(TN_ESHAPE, "tuned: ids of choices must be [batch, choices, length], got %s",
                 tn_shape_text(tn_shape_of(a.ids), text, sizeof text));
    const int64_t choices = choose && a.ids && tn_error() == TN_OK ? tn_size(a.ids, 1) : 0;
    tn_tensor    *y = NULL;
    if (tn_error() == TN_OK) {
        if (choose) a.ids = flat(a.ids), a.types = flat(a.types), a.key_padding_mask = flat(a.key_padding_mask);
        const tn__head   h = tn__head_for(&m->encoder->config, m->config.task);
        tn_tensor *const first = first_tokens(m, &h, &a);
        y = tn_bert_forward(m->encoder, a.ids, .types = a.types, .key_padding_mask = a.key_padding_mask,
                            .targets = first, .skip_padding = a.skip_padding || h.pooled || h.first || h.mean);
        if (first) y = tn_unsqueeze(y, 1);
        y = apply_head(m, y, a.key_padding_mask);
        if (choices) y = tn_reshape(y, TN_SHAPE(-1, choices));
    }
    return tn_leave(f, y);
}

/* ---- loss -------------------------------------------------------------------------------------------------------- */

static tn_tensor *ends_loss(tn_tensor *scores, tn_tensor *target, tn_tensor *blocked)
{
    tn_tensor *loss[2];
    for (int i = 0; i < 2; i++) {
        tn_tensor *s = tn_select(scores, -1, i);
        if (blocked) s = tn_masked_fill(s, blocked, -1e9);
        loss[i] = tn_cross_entropy(s, tn_select(target, -1, i));
    }
    return tn_mul_scalar(tn_add(loss[0], loss[1]), 0.5);
}

tn_tensor *tn_tuned_loss_run(tn_tuned *m, tn_tuned_loss_args a)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame         f = tn_enter(m);
    const tn_tuned_config *c = &m->config;
    tn_tensor             *loss = NULL;
    if (!a.scores || !a.target) tn_raise(TN_EINVAL, "tuned: the %s NULL", a.scores ? "target is" : "scores are");
    else if (c->task == TN_TASK_QUESTION_ANSWERING) loss = ends_loss(a.scores, a.target, a.key_padding_mask);
    else if (m->crf) loss = tn_crf_loss(m->crf, a.scores, a.target);
    else if (c->problem == TN_MULTI_LABEL) loss = tn_bce_with_logits(a.scores, a.target, .pos_weight = a.weight);
    else if (c->problem == TN_REGRESSION) loss = tn_mse_loss(c->n == 1 ? tn_squeeze(a.scores, -1) : a.scores, a.target);
    else loss = tn_cross_entropy(a.scores, a.target, .weight = a.weight);
    return tn_leave(f, loss);
}

/* A tokenizer's template may give two segments where the encoder has only one: then types are not passed. */
tn_tensor *tn__tuned_logits(tn_tuned *m, const tn_batch *b, bool skip_padding)
{
    tn_tensor *types = m->encoder->config.types > 1 ? tn_batch_find(b, "types") : NULL;
    return tn_tuned_forward(m, b->x, .types = types, .key_padding_mask = tn_batch_find(b, "padding"),
                            .skip_padding = skip_padding);
}

tn_tensor *tn_tuned_logits(tn_tuned *m, const tn_batch *b)
{
    if (!tn_ready(m) || !tn__not_null("tn_tuned_logits", "the batch", b)) return NULL;
    return tn__tuned_logits(m, b, false);
}
/* Targets ignore padding. */
tn_tensor *tn_tuned_fit_loss(void *tuned, const tn_batch *b, void *weight)
{
    tn_tuned *m = tuned;
    if (!tn_ready(m) || !tn__not_null("tn_tuned_fit_loss", "the batch", b)) return NULL;
    const bool answers = m->config.task == TN_TASK_QUESTION_ANSWERING;
    return tn_tuned_loss(m, tn__tuned_logits(m, b, true), b->y, .weight = weight,
                         .key_padding_mask = answers ? tn_batch_find(b, "padding") : NULL);
}

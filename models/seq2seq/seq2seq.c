/* seq2seq.c — sequence-to-sequence models: what the kinds have in common. */
#include "models/generate/lm_private.h"
#include "models/seq2seq/seq2seq_private.h"

#include <math.h>
#include <stdio.h>

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

static const tn_seq2seq_functions *const own[] = {
    [TN_SEQ2SEQ_TRANSFORMER] = &tn__seq2seq_transformer,
    [TN_SEQ2SEQ_BAHDANAU] = &tn__seq2seq_bahdanau,
    [TN_SEQ2SEQ_LUONG] = &tn__seq2seq_luong,
    [TN_SEQ2SEQ_RNN] = &tn__seq2seq_rnn,
};
enum { OWN = sizeof own / sizeof *own };
static _Atomic(const tn_seq2seq_functions *) more[TN_SEQ2SEQ_GNMT + 1 - OWN];

tn_status tn_seq2seq_register(tn_seq2seq_kind kind, const tn_seq2seq_functions *f)
{
    if (tn__blocked()) return tn_error();
    if ((int)kind < OWN || kind > TN_SEQ2SEQ_GNMT)
        return tn_raise(TN_EINVAL, "tn_seq2seq_register: kind %d is not convs2s, bytenet or gnmt", (int)kind);
    if (f && (!f->build || !f->encode || !f->decode))
        return tn_raise(TN_EINVAL, "tn_seq2seq_register: .build, .encode and .decode of '%s' must be set",
                        tn_seq2seq_kind_name(kind));
    more[kind - OWN] = f;
    return TN_OK;
}

const tn_seq2seq_functions *tn__seq2seq_functions_of(tn_seq2seq_kind kind)
{
    return (int)kind < OWN ? own[kind] : more[kind - OWN];
}
static const tn_seq2seq_functions *kind_of(const tn_seq2seq *m) { return tn__seq2seq_functions_of(m->config.kind); }

/* ---- building ---------------------------------------------------------------------------------------------------- */

static void describe(const void *self, char *text, size_t size)
{
    const tn_seq2seq *m = self;
    snprintf(text, size, "%s, %lld to %lld tokens, dim=%lld", tn_seq2seq_kind_name(m->config.kind),
             (long long)m->config.source_words, (long long)m->config.target_words, (long long)m->config.dim);
}
static const tn_class tn_seq2seq_class = {.size = sizeof(tn_class),
                                          .name = "Seq2Seq",
                                          .bytes = sizeof(tn_seq2seq),
                                          .describe = describe,
                                          .names = tn__seq2seq_names};

/* An embedding as in the paper: variance 1 / dim, because it is multiplied by √dim; the padding row is 0. T5 multiplies
 * the output by 1 / √dim instead, and the variance is 1. ConvS2S's standard deviation is 0.1. GNMT multiplies by
 * nothing, and each LSTM of its stacks makes a small input smaller: with 1 / √dim it takes three times as many steps to
 * attend. */
static tn_embedding *table(tn_seq2seq *m, int64_t words)
{
    const tn_seq2seq_config *c = &m->config;
    const int64_t            padding = c->free_padding ? -1 : c->padding;
    tn_embedding            *e = tn_embedding_new(.count = words, .dim = c->dim, .padding = padding);
    if (!e) return NULL;
    const double std = c->kind == TN_SEQ2SEQ_CONVS2S ? 0.1
                       : c->kind == TN_SEQ2SEQ_GNMT  ? 0.4
                                                     : 1 / sqrt((double)c->dim);
    tn_init_normal(e->weight, 0, c->relative ? 1 : std);
    if (padding < 0) return e;
    const tn_scope s = tn_no_grad_begin();
    tn_init_zeros(tn_narrow(e->weight, 0, padding, 1));
    tn_scope_end(s);
    return e;
}

tn_seq2seq *tn_seq2seq_create(tn_seq2seq_config c)
{
    if (tn_error() != TN_OK || !tn__seq2seq_complete("tn_seq2seq_new", &c)) return NULL;
    if (!tn__seq2seq_functions_of(c.kind))
        return tn_raise_null(TN_EUNSUPPORTED,
                             "tn_seq2seq_new: '%s' is one of the extras; call tn_extras_register() before",
                             tn_seq2seq_kind_name(c.kind));
    tn_seq2seq *m = tn_module_new(tn_seq2seq);
    if (!m) return NULL;
    m->config = c;
    m->source = tn_child(m, "source", table(m, c.source_words));
    m->target = c.shared ? tn_share(m, "target", m->source) : tn_child(m, "target", table(m, c.target_words));
    m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = c.dropout));
    if (kind_of(m)->positions && !c.relative) tn__seq2seq_add_positions(m);
    kind_of(m)->build(m);
    if (c.untied)
        m->out = tn_param(m, "out.weight",
                          tn_init_normal(tn_empty(TN_SHAPE(c.target_words, c.dim)), 0, 1 / sqrt((double)c.dim)));
    else if (m->target) m->out = tn_tie(m, "out.weight", m->target->weight);
    if (c.fixed_out_bias) m->out_bias = tn_buffer(m, "out.bias", tn_zeros(TN_SHAPE(1, c.target_words)));
    else if (!c.no_bias && !c.no_out_bias) m->out_bias = tn_param(m, "out.bias", tn_zeros(TN_SHAPE(c.target_words)));
    m->search = (tn_seq2seq_search){.first = -1, .last = -1, .length_penalty = 1, .repetition_penalty = 1};
    m->kept.init = c.relative ? 1 : 0.02;
    return tn_built(m);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static bool check_sequence(const char *what, tn_tensor *t)
{
    char text[192];
    if (tn_error() != TN_OK) return false;
    if (t && tn_ndim(t) == 2 && tn_size(t, 1) > 0) return true;
    return tn_raise_false(TN_ESHAPE, "seq2seq: %s must be [batch, length] with a length of at least 1, got %s", what,
                          t ? tn_shape_text(tn_shape_of(t), text, sizeof text) : "NULL");
}

/* The bias of the output layer, [words], or NULL. */
static tn_tensor *bias(const tn_seq2seq *m)
{
    return m->config.fixed_out_bias ? tn_reshape(m->out_bias, TN_SHAPE(-1)) : m->out_bias;
}

static void encode(tn_seq2seq *m, tn_tensor *source, tn_seq2seq_state *r)
{
    *r = (tn_seq2seq_state){.memory = NULL};
    if (!check_sequence("the source", source)) return;
    r->padding = tn_eq(source, tn_full_like(source, (double)m->config.padding));
    if (r->padding) kind_of(m)->encode(m, source, r);
}
static tn_tensor *decode(tn_seq2seq *m, tn_seq2seq_state *r, tn_tensor *target, tn_tensor **alignment)
{
    if (!check_sequence("the target", target)) return NULL;
    if (tn_size(target, 0) != tn_size(r->padding, 0))
        return tn_raise_null(TN_ESHAPE, "seq2seq: %lld source sequences, but %lld target sequences",
                             (long long)tn_size(r->padding, 0), (long long)tn_size(target, 0));
    tn_tensor *y = kind_of(m)->decode(m, r, target, alignment);
    r->at += tn_size(target, 1);
    return y && m->config.out_scale != 0 ? tn_mul_scalar(y, m->config.out_scale) : y;
}

tn_tensor *tn_seq2seq_run(tn_seq2seq *m, tn_seq2seq_args a)
{
    if (a.alignment) *a.alignment = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame   f = tn_enter(m);
    tn_seq2seq_state r;
    tn_tensor       *y = NULL, *w = NULL;
    if (a.alignment && kind_of(m)->blind)
        tn_raise(TN_EINVAL, "seq2seq: this model has no attention and no alignment; omit .alignment");
    if (tn_error() == TN_OK) encode(m, a.source, &r);
    if (tn_error() == TN_OK) y = decode(m, &r, a.target, a.alignment ? &w : NULL);
    if (y) y = tn_linear(y, m->out, bias(m));
    if (!a.alignment) return tn_leave(f, y);
    tn_leave_n(f, &y, &w);
    *a.alignment = w;
    return y;
}

tn_tensor *tn_seq2seq_loss_run(tn_seq2seq *m, tn_seq2seq_loss_args a)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    if (check_sequence("the target", a.target) && tn_size(a.target, 1) < 2)
        tn_raise(TN_ESHAPE, "seq2seq: the target must start with .begin and finish with .end, got a length of 1");
    if (tn_error() != TN_OK) return tn_leave(f, NULL);
    const int64_t    n = tn_size(a.target, 1);
    tn_seq2seq_state r;
    encode(m, a.source, &r);
    tn_tensor    *words = tn_narrow(a.target, 1, 1, n - 1);
    const int64_t ignore = m->config.padding;
    r.unread = tn_eq(words, tn_full_like(words, (double)ignore));
    tn_tensor *y = tn_error() == TN_OK ? decode(m, &r, tn_narrow(a.target, 1, 0, n - 1), NULL) : NULL;
    if (!y) return tn_leave(f, NULL);
    if (!a.each)
        return tn_leave(f, tn_linear_cross_entropy(y, m->out, bias(m), words, .ignore_index = ignore,
                                                   .label_smoothing = a.label_smoothing));
    y = tn_cross_entropy(tn_linear(y, m->out, bias(m)), words, .ignore_index = ignore,
                         .label_smoothing = a.label_smoothing, .reduction = TN_NONE);
    return tn_leave(f, tn_sum(y, .dims = TN_DIMS(1)));
}

tn_tensor *tn_seq2seq_fit_loss(void *seq2seq, const tn_batch *b, void *user)
{
    (void)user;
    tn_seq2seq *m = seq2seq;
    if (!tn_ready(m) || !tn__not_null("tn_seq2seq_fit_loss", "the batch", b)) return NULL;
    return tn_seq2seq_loss(m, b->x, b->y);
}

/* ---- generating -------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_decoding      base;
    tn_seq2seq      *m;
    tn_seq2seq_state r;                  /* owns its tensors and the cache */
    tn_tensor       *words, *out, *bias; /* a short list, and the output layer of its tokens; NULL: all tokens */
} decoding;

/* Replaces the tensor that *place owns. */
static void replace(tn_tensor **place, tn_tensor *t)
{
    if (t == *place) return;
    if (t) tn_keep(t);
    tn_drop(*place);
    *place = t;
}

/* attention: NULL, or see tn__attending_kind. */
static tn_tensor *attended(tn_decoding *base, tn_tensor *tokens, tn_tensor **attention)
{
    decoding        *d = (decoding *)base;
    tn_seq2seq      *m = d->m;
    tn_seq2seq_state next = d->r;
    const int64_t    last = tn_size(tokens, 1) - 1;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    const bool     all = !d->words;
    tn_tensor     *w = NULL, *y = NULL;
    if (!all) tokens = tn_reshape(tn_index_select(d->words, 0, tn_flatten(tokens, 0, 1)), tn_shape_of(tokens));
    if (attention && kind_of(m)->blind)
        tn_raise(TN_EINVAL, "seq2seq: this model has no attention to its source; omit .coverage");
    else y = decode(m, &next, tokens, attention ? &w : NULL);
    if (y) y = tn_linear(tn_select(y, 1, last), all ? m->out : d->out, all ? bias(m) : d->bias);
    if (w) w = tn_contiguous(tn_masked_fill(tn_to(tn_select(w, 1, last), TN_F32), d->r.padding, 1));
    if (y && tn_error() == TN_OK) {
        replace(&d->r.h, next.h), replace(&d->r.c, next.c);
        d->r.at = next.at;
    }
    if (!attention) return tn_leave(f, y);
    tn_leave_n(f, &y, &w);
    *attention = w;
    return y;
}
static tn_tensor *scores(tn_decoding *base, tn_tensor *tokens) { return attended(base, tokens, NULL); }

static tn_tensor *select_rows(tn_tensor *t, int dim, tn_tensor *index)
{
    return t && tn_error() == TN_OK ? tn_index_select(t, dim, index) : t;
}
static tn_status reorder(tn_decoding *base, tn_tensor *index)
{
    decoding *d = (decoding *)base;
    const int dim = kind_of(d->m)->batch_dim;
    if (d->r.cache && tn_kv_cache_reorder(d->r.cache, index) != TN_OK) return tn_error();
    tn_tensor *memory = d->r.cache ? d->r.memory : select_rows(d->r.memory, 0, index);
    tn_tensor *padding = select_rows(d->r.padding, 0, index), *keys = select_rows(d->r.keys, 0, index);
    tn_tensor *h = select_rows(d->r.h, dim, index), *c = select_rows(d->r.c, dim, index);
    if (tn_error() != TN_OK) return tn_error();
    replace(&d->r.memory, memory), replace(&d->r.padding, padding), replace(&d->r.keys, keys);
    replace(&d->r.h, h), replace(&d->r.c, c);
    return TN_OK;
}

static void end(tn_decoding *base)
{
    decoding   *d = (decoding *)base;
    tn_tensor **held[] = {&d->r.memory, &d->r.padding, &d->r.keys, &d->r.h, &d->r.c, &d->words, &d->out, &d->bias};
    for (int i = 0; i < 8; i++) tn_drop(*held[i]);
    tn_kv_cache_free(d->r.cache);
    tn_mem_put(d, sizeof *d);
}
static int64_t                  tokens_read(const tn_decoding *base) { return ((const decoding *)base)->r.at; }
static const tn__attending_kind kind = {{sizeof(tn__attending_kind), scores, reorder, end, tokens_read}, attended};

tn_decoding *tn_seq2seq_decoding(tn_seq2seq *m, tn_tensor *source, int64_t beams, int64_t length)
{
    if (!tn_ready(m)) return NULL;
    if (!tn__within("tn_seq2seq_decoding", "beams", beams, 1, 1024) ||
        !tn__within("tn_seq2seq_decoding", "length", length, 2, INT32_MAX))
        return NULL;
    decoding *d = tn_mem_get(sizeof *d);
    if (!d) return NULL;
    *d = (decoding){.base = {&kind.base, 0, length}, .m = m, .r = {.keeps = true}};
    const tn_scope   s = tn_no_grad_begin();
    const tn_frame   f = tn_enter(m);
    tn_seq2seq_state r;
    encode(m, source, &r);
    if (tn_error() == TN_OK) {
        d->base.rows = tn_size(source, 0) * beams;
        if (m->transformer)
            d->r.cache =
                tn_transformer_decoder_cache(m->transformer->decoder, d->base.rows, length, tn_size(source, 1));
    }
    if (tn_error() == TN_OK) {
        replace(&d->r.memory, r.memory), replace(&d->r.padding, r.padding), replace(&d->r.keys, r.keys);
        replace(&d->r.h, r.h), replace(&d->r.c, r.c);
    }
    tn_leave(f, NULL);
    tn_scope_end(s);
    if (tn_error() == TN_OK) return &d->base;
    end(&d->base);
    return NULL;
}

tn_status tn_seq2seq_shortlist(tn_decoding *base, tn_tensor *words)
{
    decoding *d = (decoding *)base;
    char      text[192];
    if (tn__blocked()) return tn_error();
    if (!d || base->kind != &kind.base || d->r.at)
        return tn_raise(TN_EINVAL, "tn_seq2seq_shortlist: d must be a new decoding of tn_seq2seq_decoding");
    if (!words || tn_dtype_of(words) != TN_I64 || tn_ndim(words) != 1 || !tn_numel(words))
        return tn_raise(TN_ESHAPE, "tn_seq2seq_shortlist: words must be i64 [n] with n at least 1, got %s",
                        words ? tn_shape_text(tn_shape_of(words), text, sizeof text) : "NULL");
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *out = tn_embedding(d->m->out, words, -1, false), *b = select_rows(bias(d->m), 0, words);
    words = tn_clone(words);
    if (tn_error() == TN_OK) replace(&d->words, words), replace(&d->out, out), replace(&d->bias, b);
    tn_scope_end(s);
    return tn_error();
}

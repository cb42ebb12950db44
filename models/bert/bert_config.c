/* bert_config.c — BERT's config: defaults and checks for each kind, and reading and writing config.json. */
#include "models/bert/bert_private.h"

#include <string.h>

typedef tn__bert_stored stored;

/* ---- in the program ---------------------------------------------------------------------------------------------- */

const char *tn_bert_kind_name(tn_bert_kind kind)
{
    static const char *const names[] = {"BERT",   "RoBERTa", "XLM-RoBERTa", "CamemBERT", "DistilBERT",
                                        "ALBERT", "ELECTRA", "ModernBERT",  "DeBERTa",   "XLNet"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "unknown kind";
}

tn_bert_config tn_bert_size(const char *name)
{
    static const tn_model_size sizes[] = {{"tiny", 128, 2, 2, 0, 0},
                                          {"mini", 256, 4, 4, 0, 0},
                                          {"small", 512, 4, 8, 0, 0},
                                          {"medium", 512, 8, 8, 0, 0},
                                          {"base", 768, 12, 12, 0, 0},
                                          {"large", 1024, 24, 16, 0, 0},
                                          {0}};
    const tn_model_size       *s = tn_model_size_find(__func__, sizes, name);
    return s ? TN_WITH(tn_bert_config, TN_BERT_DEFAULTS, .dim = s->dim, .layers = s->layers, .heads = s->heads)
             : (tn_bert_config){.zero_ = 0};
}

static void fill_in_modern(tn_bert_config *c)
{
    if (!c->global_every) c->global_every = 3;
    if (!c->window) c->window = 65;
    if (c->theta == 0) c->theta = 160000;
    if (c->local_theta == 0) c->local_theta = 10000;
    if (c->head_dropout < 0) c->head_dropout = 0;
}

static void fill_in_deberta(tn_bert_config *c)
{
    tn_disentangled *t = &c->disentangled;
    const int64_t    half = c->positions / 2;
    if (!t->distance && !t->buckets && !t->c2p && !t->p2c)
        t->c2p = t->p2c = true, t->buckets = half > 256 ? 256 : half < 3 ? 0 : half;
    if (t->distance < 0) *t = (tn_disentangled){.distance = -1};
    else if (!t->distance) t->distance = c->positions;
}

/* Fills in a kind's defaults and switches off the parts that it does not have. */
static void fill_in(tn_bert_config *c)
{
    const bool albert = c->kind == TN_ALBERT, distil = c->kind == TN_DISTILBERT, modern = c->kind == TN_MODERNBERT;
    const bool deberta = c->kind == TN_DEBERTA, xlnet = c->kind == TN_XLNET;
    if (modern) fill_in_modern(c);
    if (deberta) fill_in_deberta(c);
    if (c->ff == 0) c->ff = c->dim <= INT64_MAX / 4 ? 4 * c->dim : 0;
    if (!c->activation) c->activation = "gelu";
    if (c->padding < 0) c->padding = -1;
    if (c->embedding == 0) c->embedding = c->dim;
    if (albert && c->groups == 0) c->groups = 1;
    if (distil || modern) c->types = 0;
    if (xlnet) c->types = 3;
    if (distil || modern || deberta || xlnet || c->kind == TN_ELECTRA) c->no_pooler = true;
    if (c->no_pooler || (c->kind != TN_BERT && !albert)) c->no_next = true;
    if (c->head_dropout < 0) c->head_dropout = albert || xlnet ? 0.1 : distil ? 0.2 : -1;
}

static bool check_deberta(const char *who, const tn_bert_config *c)
{
    const tn_disentangled *t = &c->disentangled;
    const bool             any = t->distance || t->buckets || t->c2p || t->p2c || c->input_positions || c->mask_decoder;
    if (any && c->kind != TN_DEBERTA)
        return tn_raise_false(TN_EINVAL,
                              "%s: .disentangled, .input_positions and .mask_decoder need .kind = TN_DEBERTA, not %s",
                              who, tn_bert_kind_name(c->kind));
    if (c->mask_decoder && (c->input_positions || c->embedding != c->dim))
        return tn_raise_false(TN_EINVAL, "%s: .mask_decoder excludes .input_positions and .embedding", who);
    return true;
}

/* Checks options that only some kinds have; raises. */
static bool check_kind(const char *who, const tn_bert_config *c)
{
    const bool  albert = c->kind == TN_ALBERT, electra = c->kind == TN_ELECTRA, deberta = c->kind == TN_DEBERTA;
    const char *name = tn_bert_kind_name(c->kind);
    const bool  modern = c->global_every || c->window || c->theta != 0 || c->local_theta != 0 || c->mean_heads;
    if (modern && c->kind != TN_MODERNBERT)
        tn_raise(TN_EINVAL,
                 "%s: .global_every, .window, .theta, .local_theta and .mean_heads need .kind = TN_MODERNBERT, not %s",
                 who, name);
    else if (c->embedding != c->dim && !albert && !electra && !deberta)
        tn_raise(TN_EINVAL, "%s: .embedding is %lld and .dim is %lld, but in %s they must be equal; omit .embedding",
                 who, (long long)c->embedding, (long long)c->dim, name);
    else if (c->groups && !albert)
        tn_raise(TN_EINVAL,
                 "%s: .groups is %lld, but only ALBERT's layers share weights, not those of %s; omit .groups", who,
                 (long long)c->groups, name);
    else if (albert && (c->groups < 1 || c->groups > c->layers))
        tn_raise(TN_EINVAL, "%s: .groups is %lld, but must be from 1 to .layers, which is %lld", who,
                 (long long)c->groups, (long long)c->layers);
    else if (c->norm_first && c->kind != TN_BERT)
        tn_raise(TN_EINVAL, "%s: .norm_first needs .kind = TN_BERT, not %s", who, name);
    else if (c->replaced && !electra && !deberta)
        tn_raise(TN_EINVAL, "%s: .replaced needs .kind = TN_ELECTRA or TN_DEBERTA, not %s", who, name);
    else if (c->kind == TN_DISTILBERT && c->eps != 1e-12)
        tn_raise(TN_EINVAL, "%s: .eps is %g, but must be 1e-12 for %s", who, c->eps, name);
    else if (tn__is_roberta(c->kind) && c->padding < 0)
        tn_raise(TN_EINVAL, "%s: %s counts positions from the padding id; set .padding", who, name);
    return tn_error() == TN_OK;
}

static bool check_other(const char *who, const tn_bert_config *c)
{
    if (c->kind == TN_XLNET) return tn__bert_has_other(who) && tn__bert_other()->check(who, c);
    return (!c->memory && !c->reuse && !c->clamp && !c->causal) ||
           tn_raise_false(TN_EINVAL, "%s: .memory, .reuse, .clamp and .causal need .kind = TN_XLNET, not %s", who,
                          tn_bert_kind_name(c->kind));
}

bool tn__bert_complete(const char *who, tn_bert_config *c)
{
    stored        s;
    tn__hf_tables room;
    if ((unsigned)c->kind > TN_XLNET)
        return tn_raise_false(TN_EINVAL, "%s: .kind is %d, which is not a tn_bert_kind", who, (int)c->kind);
    fill_in(c);
    if (!check_deberta(who, c) || !check_kind(who, c) || !check_other(who, c)) return false;
    s = (stored){.c = *c, .position_rows = 1};
    if (c->padding < 0) s.c.padding = TN__BERT_NONE;
    if (!tn_hf_init_and_activation(who, c->init, &c->activation) ||
        !tn_hf_config_within(who, tn__bert_files(tn__bert_format_of(c), &room), &s) ||
        !tn__within(who, "positions", c->positions, 1, 10000000) || !tn__within(who, "window", c->window, 0, 1 << 30))
        return false;
    if (c->padding >= c->vocab)
        return tn_raise_false(TN_EINVAL, "%s: .padding is %lld, but must be less than .vocab, which is %lld", who,
                              (long long)c->padding, (long long)c->vocab);
    return true;
}

/* ---- in a file --------------------------------------------------------------------------------------------------- */

/* Raises if the values of config.json contradict each other. */
static void check_consistent(const stored *s, const char *name)
{
    const tn_bert_config *c = &s->c;
    const bool            distil = c->kind == TN_DISTILBERT, xlnet = c->kind == TN_XLNET;
    if (c->dim % c->heads)
        tn_raise(TN_EFORMAT, "'%s': %s %lld does not divide %s %lld", name,
                 distil  ? "n_heads"
                 : xlnet ? "n_head"
                         : "num_attention_heads",
                 (long long)c->heads,
                 distil  ? "dim"
                 : xlnet ? "d_model"
                         : "hidden_size",
                 (long long)c->dim);
    else if (c->positions < 1)
        tn_raise(TN_EFORMAT, "'%s': max_position_embeddings is %lld, but positions start after pad_token_id %lld", name,
                 (long long)s->position_rows, (long long)c->padding);
    else if (c->padding >= c->vocab)
        tn_raise(TN_EFORMAT, "'%s': pad_token_id is %lld, but must be less than vocab_size %lld", name,
                 (long long)c->padding, (long long)c->vocab);
    else if (!strcmp(s->type, "roberta-prelayernorm") && strcmp(c->activation, "gelu") != 0)
        tn_raise(TN_EUNSUPPORTED, "'%s': hidden_act is '%s'; only 'gelu' is supported in '%s'", name, c->activation,
                 s->type);
    else if (c->groups > c->layers)
        tn_raise(TN_EFORMAT, "'%s': num_hidden_groups is %lld, but must be at most num_hidden_layers %lld", name,
                 (long long)c->groups, (long long)c->layers);
}

/* ModernBERT's windows, and which layers have them. */
static void read_windows(stored *s, const char *name)
{
    tn_bert_config *c = &s->c;
    const char     *kind = s->layers.kind, *second = *kind ? strchr(kind + 1, 'g') : NULL;
    if (s->sliding >= 0) s->local = 2 * s->sliding; /* half of local_attention, and prior to it */
    c->types = 0, c->window = s->local / 2 + 1, c->mean_heads = s->pooling != tn__bert_poolings[0];
    if (!*kind) return;
    if ((int64_t)strlen(kind) != c->layers)
        tn_raise(TN_EFORMAT, "'%s': layer_types names %zu layers, but num_hidden_layers is %lld", name, strlen(kind),
                 (long long)c->layers);
    c->global_every = second ? second - kind : c->layers;
    for (int64_t i = 0; tn_error() == TN_OK && i < c->layers; i++)
        if ((kind[i] == 'g') != (i % c->global_every == 0))
            tn_raise(TN_EUNSUPPORTED,
                     "'%s': layer_types is not supported: layer %lld is '%s_attention', but every %lld-th layer, from "
                     "the first, must be full_attention and the others sliding_attention",
                     name, (long long)i, kind[i] == 'g' ? "full" : "sliding", (long long)c->global_every);
}

/* Raises unless DeBERTa's heads and pooler have the usual widths. */
static void check_widths(const stored *s, const char *name)
{
    const tn_bert_config *c = &s->c;
    const bool            pooler = s->pooler && s->pooler != c->dim;
    if (pooler || (s->head && s->head * c->heads != c->dim))
        tn_raise(TN_EUNSUPPORTED, "'%s': %s is %lld; only %lld is supported with hidden_size %lld", name,
                 pooler ? "pooler_hidden_size" : "attention_head_size", (long long)(pooler ? s->pooler : s->head),
                 (long long)(pooler ? c->dim : c->dim / c->heads), (long long)c->dim);
}

/* DeBERTa's relative positions; raises for members that contradict each other. */
static void read_deberta(stored *s, const char *name)
{
    tn_bert_config  *c = &s->c;
    tn_disentangled *t = &c->disentangled;
    const bool       some = *s->terms;
    check_widths(s, name);
    if (tn_error() == TN_OK && s->relative != some)
        tn_raise(TN_EUNSUPPORTED,
                 "'%s': relative_attention is %s and pos_att_type is %s; only both or neither are "
                 "supported",
                 name, s->relative ? "true" : "false", some ? "set" : "empty");
    *t = (tn_disentangled){.distance = t->distance, .buckets = t->buckets};
    if (!some) *t = (tn_disentangled){.distance = -1};
    else if (t->distance < 1) t->distance = s->position_rows;
    if (t->buckets < 0) t->buckets = 0;
    if (tn_error() == TN_OK && (t->buckets == 1 || (t->buckets && t->distance - 1 <= t->buckets / 2)))
        tn_raise(TN_EFORMAT,
                 "'%s': position_buckets is %lld, but must be -1 for none, or at least 2 and at most twice the largest "
                 "distance, less 3: max_relative_positions or max_position_embeddings is %lld",
                 name, (long long)t->buckets, (long long)t->distance);
    t->c2p = strchr(s->terms, 'c') != NULL, t->p2c = strchr(s->terms, 'p') != NULL;
    t->own_projs = some && !s->share, t->no_norm = some && s->norm_distances == tn__bert_distance_norms[0];
}

static void store_deberta(stored *s)
{
    tn_bert_config        *c = &s->c;
    const tn_disentangled *t = &c->disentangled;
    snprintf(s->terms, sizeof s->terms, "%s%s", t->p2c ? "p" : "", t->c2p ? "c" : "");
    s->relative = t->distance > 0, s->share = !t->own_projs, s->norm_distances = tn__bert_distance_norms[!t->no_norm];
    s->legacy = c->embedding && c->embedding != c->dim;
    if (!s->legacy) c->embedding = 0;
    if (t->distance == c->positions) c->disentangled.distance = -1;
    if (!t->buckets) c->disentangled.buckets = -1;
}

/* True for the types whose positions start after the padding token's id. */
static bool needs_padding(const char *type) { return strstr(type, "roberta") != NULL; }

/* Sets the padding token that pad_token_id specifies; raises. */
static void read_padding(tn_bert_config *c, const tn__bert_format *f, const char *name)
{
    const bool none = c->padding == TN__BERT_NONE;
    if (c->padding == TN__BERT_ABSENT) c->padding = f->padding;
    else if (none && needs_padding(f->type))
        tn_raise(TN_EFORMAT, "'%s': pad_token_id is null, but the positions of '%s' start after it", name, f->type);
    else if (c->padding < 0 && !none)
        tn_raise(TN_EFORMAT, "'%s': pad_token_id is %lld, but must be from 0 to 10000000, or null", name,
                 (long long)c->padding);
    if (none) c->padding = -1;
}

bool tn__bert_config_read(const tn_hf_source *source, tn__bert_stored *to)
{
    static const tn_hf_row type[] = {
        {"model_type", TN_HF_TYPE, .at = offsetof(stored, type), .choices = tn__bert_types}};
    static const tn_hf_files which = {type, 1, NULL, 0};
    stored                   s = {.c = {TN_BERT_DEFAULTS}};
    tn__hf_tables            room;
    tn_bert_config          *c = &s.c;
    const tn__bert_format   *f =
        tn_hf_source_read(source, &which, &s) ? tn__bert_format_of_type(s.type, source->name) : NULL;
    if (!f || !tn_hf_source_read(source, tn__bert_files(f, &room), &s)) return false;
    c->kind = f->kind;
    read_padding(c, f, source->name);
    c->norm_first = f->kind == TN_BERT && (s.norm_first || !strcmp(f->type, "roberta-prelayernorm"));
    if (c->kind == TN_DISTILBERT) c->types = 0;
    if (c->kind == TN_MODERNBERT) read_windows(&s, source->name);
    if (c->kind == TN_DEBERTA) read_deberta(&s, source->name);
    if (c->kind == TN_XLNET) tn__bert_other()->read(&s, source->name);
    else c->positions = s.position_rows - tn__bert_first_position(c);
    if (tn_error() == TN_OK) check_consistent(&s, source->name);
    *to = s;
    return tn_error() == TN_OK;
}

tn_bert_config tn_bert_config_load(const char *dir)
{
    tn_hf_source s;
    stored       read;
    const bool   ok = tn__hf_open(&s, dir) && tn__bert_config_read(&s, &read);
    tn__hf_close(&s);
    return ok ? read.c : (tn_bert_config){.zero_ = 0};
}

static const char *architecture_of(const tn_bert_config *c, const tn__bert_format *f)
{
    const bool next = !c->no_next;
    if (c->replaced || (!c->no_words && next && f->pretraining)) return f->pretraining;
    if (c->no_words) return next && f->following ? f->following : f->model;
    return f->masked;
}

tn__bert_stored tn__bert_to_store(const tn_bert_config *c)
{
    const tn__bert_format *f = tn__bert_format_of(c);
    stored                 s = {.c = *c, .type = f->type, .norm_first = !strcmp(f->type, "tenon-bert")};
    s.architecture = architecture_of(c, f);
    s.local = 2 * (c->window - 1), s.pooling = tn__bert_poolings[c->mean_heads];
    s.position_rows = s.c.positions + tn__bert_first_position(c);
    if (c->padding < 0) s.c.padding = TN__BERT_NONE;
    if (c->kind == TN_DEBERTA) store_deberta(&s);
    if (c->kind == TN_XLNET) tn__bert_other()->store(&s);
    return s;
}

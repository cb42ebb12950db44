/* bert_files.c — BERT to and from a directory as Hugging Face lays it out: config.json and model.safetensors. With the
 * norms first it is what is called RobertaPreLayerNorm there. */
#include "models/bert/bert_private.h"
#include "models/files/hf_config.h"

#include <string.h>

/* ---- config.json ------------------------------------------------------------------------------------------------- */

static const char plain_type[] = "bert", first_type[] = "roberta-prelayernorm";
static const char tenon_type[] = "tenon-bert"; /* what neither of them is */

/* Its masked head knows no other activation, and its places are counted from that of the padding. */
static const char *type_of(const tn_bert_config *c)
{
    if (!c->norm_first) return plain_type;
    return c->padding >= 0 && !strcmp(c->activation, "gelu") ? first_type : tenon_type;
}

static bool known(const tn__settings *s)
{
    const char *type = tn__setting_text(s, "model_type", plain_type);
    const char *position = tn__setting_text(s, "position_embedding_type", "absolute");
    const bool  decoder = tn__setting_bool(s, "is_decoder", false) || tn__setting_bool(s, "add_cross_attention", false);
    if (tn_error() != TN_OK) return false;
    if (strcmp(type, plain_type) && strcmp(type, first_type) && strcmp(type, tenon_type))
        tn_raise(TN_EUNSUPPORTED, "'%s': model_type is '%s'; this reads '%s', '%s' and '%s'", s->path, type, plain_type,
                 first_type, tenon_type);
    else if (strcmp(position, "absolute"))
        tn_raise(TN_EUNSUPPORTED, "'%s': position_embedding_type is '%s'; only 'absolute' is supported", s->path,
                 position);
    else if (decoder)
        tn_raise(TN_EUNSUPPORTED, "'%s': is_decoder and add_cross_attention are not supported: this is an encoder",
                 s->path);
    return tn_error() == TN_OK;
}

static bool read_config(const tn__settings *s, tn_bert_config *c)
{
    if (!known(s)) return false;
    const bool first = !strcmp(tn__setting_text(s, "model_type", plain_type), first_type);
    *c = (tn_bert_config){
        .vocab = tn__setting_i64(s, "vocab_size", TN__NEEDED, 1, 10000000),
        .dim = tn__setting_i64(s, "hidden_size", TN__NEEDED, 1, 65536),
        .layers = tn__setting_i64(s, "num_hidden_layers", TN__NEEDED, 1, 1024),
        .heads = tn__setting_i64(s, "num_attention_heads", TN__NEEDED, 1, 1024),
        .ff = tn__setting_i64(s, "intermediate_size", TN__NEEDED, 1, 1048576),
        .positions = tn__setting_i64(s, "max_position_embeddings", 512, 1, 10000000),
        .types = tn__setting_i64(s, "type_vocab_size", 2, 1, 1024),
        .padding = tn__setting_i64(s, "pad_token_id", first ? 1 : 0, 0, 10000000),
        .dropout = tn__setting_double(s, "hidden_dropout_prob", 0.1, 0, 0.999999),
        .attention_dropout = tn__setting_double(s, "attention_probs_dropout_prob", 0.1, 0, 0.999999),
        .init = tn__setting_double(s, "initializer_range", 0.02, 0, 1),
        .eps = tn__setting_double(s, "layer_norm_eps", 1e-12, 1e-15, 0.1),
        .norm_first = first || tn__setting_bool(s, "norm_first", false),
    };
    c->positions -= tn__first_place(c);
    const char *name = tn__setting_text(s, "hidden_act", "gelu");
    if (tn_error() != TN_OK) return false;
    c->activation = tn__activation_name(name);
    if (!c->activation)
        tn_raise(TN_EUNSUPPORTED, "'%s': hidden_act is '%s'; known are " TN__ACTIVATIONS, s->path, name);
    else if (c->dim % c->heads)
        tn_raise(TN_EFORMAT, "'%s': num_attention_heads %lld does not divide hidden_size %lld", s->path,
                 (long long)c->heads, (long long)c->dim);
    else if (c->positions < 1)
        tn_raise(TN_EFORMAT, "'%s': max_position_embeddings is %lld, but the first is that behind pad_token_id %lld",
                 s->path, (long long)(c->positions + tn__first_place(c)), (long long)c->padding);
    else if (c->padding >= c->vocab)
        tn_raise(TN_EFORMAT, "'%s': pad_token_id is %lld, but vocab_size %lld", s->path, (long long)c->padding,
                 (long long)c->vocab);
    return tn_error() == TN_OK;
}

tn_bert_config tn_bert_config_load(const char *dir)
{
    tn__settings   s = {.doc = NULL};
    tn_bert_config c = {.zero_ = 0};
    if (tn_error() == TN_OK && tn__settings_open(&s, dir) && !read_config(&s, &c)) c = (tn_bert_config){.zero_ = 0};
    tn__settings_close(&s);
    return c;
}

static void write_config(const tn_bert_config *c, tn_json_writer *w)
{
    tn_json_open_object(w, NULL);
    tn_json_open_array(w, "architectures");
    const char *type = type_of(c), *masked = c->no_next ? "BertForMaskedLM" : "BertForPreTraining";
    if (type == first_type) masked = "RobertaPreLayerNormForMaskedLM";
    tn_json_put_string(w, NULL, !c->no_words ? masked : type == first_type ? "RobertaPreLayerNormModel" : "BertModel");
    tn_json_close(w);
    tn_json_put_double(w, "attention_probs_dropout_prob", c->attention_dropout);
    tn_json_put_string(w, "hidden_act", c->activation);
    tn_json_put_double(w, "hidden_dropout_prob", c->dropout);
    tn_json_put_i64(w, "hidden_size", c->dim);
    tn_json_put_double(w, "initializer_range", c->init);
    tn_json_put_i64(w, "intermediate_size", c->ff);
    tn_json_put_double(w, "layer_norm_eps", c->eps);
    tn_json_put_i64(w, "max_position_embeddings", c->positions + tn__first_place(c));
    tn_json_put_string(w, "model_type", type);
    if (type == tenon_type) tn_json_put_bool(w, "norm_first", true);
    tn_json_put_i64(w, "num_attention_heads", c->heads);
    tn_json_put_i64(w, "num_hidden_layers", c->layers);
    if (c->padding >= 0) tn_json_put_i64(w, "pad_token_id", c->padding);
    tn_json_put_string(w, "position_embedding_type", "absolute");
    tn_json_put_bool(w, "tie_word_embeddings", true);
    tn_json_put_string(w, "torch_dtype", "float32");
    tn_json_put_i64(w, "type_vocab_size", c->types);
    tn_json_put_i64(w, "vocab_size", c->vocab);
    tn_json_close(w);
}

/* ---- model.safetensors ------------------------------------------------------------------------------------------- */

#define LAYER "bert.encoder.layer.*."
#define OURS "bert.encoder.layers.*."
#define THIRD(name, i)                                                                                         \
    TN_RENAME(LAYER "attention.self." name ".weight", OURS "self_attn.in_proj_weight", .part = i, .parts = 3), \
        TN_RENAME(LAYER "attention.self." name ".bias", OURS "self_attn.in_proj_bias", .part = i, .parts = 3)

/* A name of RobertaPreLayerNorm becomes one of BERT, and that one of ours: BERT's own rules are the second part. */
#define FIRST "roberta_prelayernorm."
enum { FIRST_RULES = 12 }; /* in the first part */
static const tn_rename rules[] = {
    TN_RENAME(FIRST "embeddings", "bert.embeddings"),
    TN_RENAME(FIRST "encoder", "bert.encoder"),
    TN_RENAME(FIRST "pooler", "bert.pooler"),
    TN_RENAME(FIRST "LayerNorm", "bert.encoder.norm"),
    TN_RENAME("encoder", "bert.encoder", .load_only = true), /* of files that hold the encoder alone */
    TN_RENAME("LayerNorm", "bert.encoder.norm", .load_only = true),
    TN_RENAME(LAYER "attention.LayerNorm", LAYER "attention.output.LayerNorm"),
    TN_RENAME(LAYER "intermediate.LayerNorm", LAYER "output.LayerNorm"),
    TN_RENAME("lm_head.dense", "cls.predictions.transform.dense"),
    TN_RENAME("lm_head.layer_norm", "cls.predictions.transform.LayerNorm"),
    TN_RENAME("lm_head.bias", "cls.predictions.bias"),
    TN_RENAME("lm_head.decoder", "cls.predictions.decoder"),
    /* of files that hold the encoder alone */
    TN_RENAME("embeddings", "bert.embeddings", .load_only = true),
    TN_RENAME("encoder", "bert.encoder", .load_only = true),
    TN_RENAME("pooler", "bert.pooler", .load_only = true),
    /* of old files */
    TN_RENAME("**.gamma", "**.weight", .load_only = true),
    TN_RENAME("**.beta", "**.bias", .load_only = true),
    TN_RENAME("bert.embeddings.position_ids", NULL),
    /* a layer */
    THIRD("query", 0),
    THIRD("key", 1),
    THIRD("value", 2),
    TN_RENAME(LAYER "attention.output.dense", OURS "self_attn.out_proj"),
    TN_RENAME(LAYER "attention.output.LayerNorm", OURS "norm1"),
    TN_RENAME(LAYER "intermediate.dense", OURS "linear1"),
    TN_RENAME(LAYER "output.dense", OURS "linear2"),
    TN_RENAME(LAYER "output.LayerNorm", OURS "norm2"),
};
enum { RULES = sizeof rules / sizeof *rules };

static const struct naming {
    const tn_rename *rules;
    int              n;
    const char      *prefix, *pooler, *head; /* of the encoder's names; a weight of the pooler, of the head */
} plain = {rules + FIRST_RULES, RULES - FIRST_RULES, "bert.", "bert.pooler.dense.weight",
           "cls.predictions.transform.dense.weight"},
  first = {rules, RULES, FIRST, FIRST "pooler.dense.weight", "lm_head.dense.weight"};

static const struct naming *naming_of(const tn_bert_config *c) { return type_of(c) == first_type ? &first : &plain; }

/* Is a tensor in the file, with or without the prefix? */
static bool holds(const tn_safetensors *f, const struct naming *n, const char *name)
{
    const size_t k = strlen(n->prefix);
    return tn_safetensors_find(f, name) >= 0 || (!strncmp(name, n->prefix, k) && tn_safetensors_find(f, name + k) >= 0);
}

/* The encoder's elements. */
static int64_t elements(const tn_bert_config *c)
{
    return (c->vocab + c->positions + c->types) * c->dim + c->layers * (4 * c->dim * (c->dim + 1) + 2 * c->dim * c->ff);
}

tn_bert *tn_bert_load(const char *dir)
{
    char           path[1024];
    tn_bert_config c = tn_bert_config_load(dir);
    if (tn_error() != TN_OK) return NULL;
    tn_safetensors *f = tn__weights_open(dir, path);
    tn_bert        *m = NULL;
    if (f && tn__enough(f, path, elements(&c))) {
        const struct naming *n = naming_of(&c);
        c.no_pooler = !holds(f, n, n->pooler);
        c.no_words = !holds(f, n, n->head);
        c.no_next = c.no_pooler || !holds(f, n, "cls.seq_relationship.weight");
        m = tn_bert_create(c);
    }
    return tn__model_read(m, f, path, naming_of(&c)->rules, naming_of(&c)->n);
}

tn_status tn_bert_save(tn_bert *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    tn_json_writer *w = tn_json_writer_new(2);
    write_config(&m->config, w);
    return tn__model_write(m, w, dir, naming_of(&m->config)->rules, naming_of(&m->config)->n);
}

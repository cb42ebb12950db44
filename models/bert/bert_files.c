/* bert_files.c — BERT to and from a directory as Hugging Face lays it out: config.json and model.safetensors. With the
 * norms first it is what is called RobertaPreLayerNorm there. */
#include "models/bert/bert_private.h"
#include "models/files/hf_config.h"

#include <string.h>

/* ---- config.json ------------------------------------------------------------------------------------------------- */

static const char        plain_type[] = "bert", first_type[] = "roberta-prelayernorm";
static const char        tenon_type[] = "tenon-bert"; /* what neither of them is */
static const char *const types[] = {plain_type, first_type, tenon_type, NULL};

/* Its masked head knows no other activation, and its places are counted from that of the padding. */
static const char *type_of(const tn_bert_config *c)
{
    if (!c->norm_first) return plain_type;
    return c->padding >= 0 && !strcmp(c->activation, "gelu") ? first_type : tenon_type;
}

/* As it stands in the file. */
typedef struct {
    tn_bert_config c;
    const char    *type, *architecture;
    int64_t        places; /* rows of the table of positions */
    bool           norm_first;
} stored;
enum { ABSENT = -2 }; /* padding */

static const tn_hf_row rows[] = {
    {"architectures", TN_HF_NAME, .at = offsetof(stored, architecture)},
    TN_HF("attention_probs_dropout_prob", stored, c.attention_dropout, .otherwise = 0.1, .high = 0.999999),
    TN_HF("hidden_act", stored, c.activation, .text = "gelu"),
    TN_HF("hidden_dropout_prob", stored, c.dropout, .otherwise = 0.1, .high = 0.999999),
    TN_HF("hidden_size", stored, c.dim, .needed = true, .low = 1, .high = 65536),
    TN_HF("initializer_range", stored, c.init, .otherwise = 0.02, .high = 1),
    TN_HF("intermediate_size", stored, c.ff, .needed = true, .low = 1, .high = 1048576),
    TN_HF("layer_norm_eps", stored, c.eps, .otherwise = 1e-12, .low = 1e-15, .high = 0.1),
    TN_HF("max_position_embeddings", stored, places, .otherwise = 512, .low = 1, .high = 10000000),
    {"model_type", TN_HF_TYPE, .at = offsetof(stored, type), .choices = types},
    TN_HF("norm_first", stored, norm_first, .omitted = true),
    TN_HF("num_attention_heads", stored, c.heads, .needed = true, .low = 1, .high = 1024),
    TN_HF("num_hidden_layers", stored, c.layers, .needed = true, .low = 1, .high = 1024),
    TN_HF("pad_token_id", stored, c.padding, .otherwise = ABSENT, .omitted = true, .low = 0, .high = 10000000),
    {"position_embedding_type", TN_HF_MUST, .text = "absolute"},
    {"tie_word_embeddings", TN_HF_MUST, .otherwise = true},
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    TN_HF("type_vocab_size", stored, c.types, .otherwise = 2, .low = 1, .high = 1024),
    TN_HF("vocab_size", stored, c.vocab, .needed = true, .low = 1, .high = 10000000),
#define ENCODER "is_decoder and add_cross_attention are not supported: this is an encoder"
    {"is_decoder", TN_HF_MUST, .silent = true, .says = ENCODER},
    {"add_cross_attention", TN_HF_MUST, .silent = true, .says = ENCODER},
    {"pruned_heads", TN_HF_EMPTY, .silent = true},
    /* Without a say in the numbers: chunk_size_feed_forward, classifier_dropout, use_cache, gradient_checkpointing. */
};

tn_bert_config tn_bert_config_load(const char *dir)
{
    static const tn_hf_files files = {rows, TN_HF_COUNT_(rows), NULL, 0};
    static const char        name[] = "config.json";
    stored                   s = {.c = {.zero_ = 0}};
    tn_bert_config          *c = &s.c;
    if (tn_hf_config_read(dir, &files, &s)) {
        const bool first = s.type == first_type;
        if (c->padding == ABSENT) c->padding = first ? 1 : 0;
        c->norm_first = first || s.norm_first;
        c->positions = s.places - tn__first_place(c);
        if (c->dim % c->heads)
            tn_raise(TN_EFORMAT, "'%s/%s': num_attention_heads %lld does not divide hidden_size %lld", dir, name,
                     (long long)c->heads, (long long)c->dim);
        else if (c->positions < 1)
            tn_raise(TN_EFORMAT,
                     "'%s/%s': max_position_embeddings is %lld, but the first is that behind pad_token_id %lld", dir,
                     name, (long long)s.places, (long long)c->padding);
        else if (c->padding >= c->vocab)
            tn_raise(TN_EFORMAT, "'%s/%s': pad_token_id is %lld, but vocab_size %lld", dir, name, (long long)c->padding,
                     (long long)c->vocab);
    }
    return tn_error() == TN_OK ? *c : (tn_bert_config){.zero_ = 0};
}

static const char *architecture_of(const tn_bert_config *c)
{
    const bool first = type_of(c) == first_type;
    if (c->no_words) return first ? "RobertaPreLayerNormModel" : "BertModel";
    return first ? "RobertaPreLayerNormForMaskedLM" : c->no_next ? "BertForMaskedLM" : "BertForPreTraining";
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
    tn_hf_files files;
    const char *prefix, *pooler, *head; /* of the encoder's names; a weight of the pooler, of the head */
} plain = {{rows, TN_HF_COUNT_(rows), rules + FIRST_RULES, RULES - FIRST_RULES},
           "bert.",
           "bert.pooler.dense.weight",
           "cls.predictions.transform.dense.weight"},
  first = {{rows, TN_HF_COUNT_(rows), rules, RULES}, FIRST, FIRST "pooler.dense.weight", "lm_head.dense.weight"};

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
    return tn__model_read(m, f, path, &naming_of(&c)->files);
}

tn_status tn_bert_save(tn_bert *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    stored s = {.c = m->config, .type = type_of(&m->config), .architecture = architecture_of(&m->config)};
    s.norm_first = s.type == tenon_type, s.places = s.c.positions + tn__first_place(&s.c);
    if (s.c.padding < 0) s.c.padding = ABSENT;
    return tn_hf_write(m, dir, &naming_of(&m->config)->files, &s);
}

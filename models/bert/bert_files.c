/* bert_files.c — BERT's weights to and from a directory as Hugging Face lays it out. With the norms first it is what is
 * called RobertaPreLayerNorm there. */
#include "models/bert/bert_private.h"

#include <string.h>

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
    /* heads of what it was tuned for: they are left, and tn_bert's .left says so */
    TN_RENAME("classifier", NULL),
    TN_RENAME("qa_outputs", NULL),
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
    int              renames;
    const char      *prefix, *pooler, *head; /* of the encoder's names; a weight of the pooler, of the head */
} plain = {rules + FIRST_RULES, RULES - FIRST_RULES, "bert.", "bert.pooler.dense.weight",
           "cls.predictions.transform.dense.weight"},
  first = {rules, RULES, FIRST, FIRST "pooler.dense.weight", "lm_head.dense.weight"};

static const struct naming *naming_of(const tn_bert_config *c) { return tn__bert_is_roberta(c) ? &first : &plain; }
static tn_hf_files          files_of(const tn_bert_config *c)
{
    const struct naming *n = naming_of(c);
    tn_hf_files          f = *tn__bert_table();
    f.rules = n->rules, f.renames = n->renames;
    return f;
}

/* Is a tensor in the file, with or without the prefix? */
static bool holds(const tn_safetensors *f, const struct naming *n, const char *name)
{
    const size_t k = strlen(n->prefix);
    return tn_safetensors_find(f, name) >= 0 || (!strncmp(name, n->prefix, k) && tn_safetensors_find(f, name + k) >= 0);
}

static const char *const heads[] = {"classifier", "qa_outputs", NULL};

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
    if (m) tn__names_under(f, heads, m->left, sizeof m->left);
    const tn_hf_files files = files_of(&c);
    return tn__model_read(m, f, path, &files);
}

tn_status tn_bert_save(tn_bert *m, const char *dir)
{
    if (!tn_ready(m)) return tn_error();
    const tn__bert_stored s = tn__bert_to_store(&m->config);
    const tn_hf_files     files = files_of(&m->config);
    return tn_hf_write(m, dir, &files, &s);
}

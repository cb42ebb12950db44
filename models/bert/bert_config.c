/* bert_config.c — BERT's config: what is right in the program, and config.json. With the norms first it is what is
 * called RobertaPreLayerNorm there. */
#include "models/bert/bert_private.h"

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

enum { ABSENT = -2 }; /* padding */

typedef tn__bert_stored stored;

static const tn_hf_row rows[] = {
    {"architectures", TN_HF_NAME, .at = offsetof(stored, architecture)},
    TN_HF("attention_probs_dropout_prob", stored, c.attention_dropout, .otherwise = 0.1, .high = 1, .below = true),
    TN_HF("hidden_act", stored, c.activation, .text = "gelu"),
    TN_HF("hidden_dropout_prob", stored, c.dropout, .otherwise = 0.1, .high = 1, .below = true),
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
    {"is_encoder_decoder", TN_HF_MUST, .silent = true},
    {"per_layer_config", TN_HF_EMPTY, .silent = true},
    {"pruned_heads", TN_HF_EMPTY, .silent = true},
    {"quantization_config", TN_HF_EMPTY, .silent = true},
    {"bos_token_id", TN_HF_ANY, .silent = true},
    {"classifier_dropout", TN_HF_ANY, .silent = true}, /* of a head that is not read */
    {"eos_token_id", TN_HF_ANY, .silent = true},
    {"gradient_checkpointing", TN_HF_ANY, .silent = true},
    {"use_cache", TN_HF_ANY, .silent = true},
};
static const tn_hf_files table = {rows, TN_HF_COUNT_(rows), NULL, 0};
const tn_hf_files       *tn__bert_table(void) { return &table; }

/* ---- in the program ---------------------------------------------------------------------------------------------- */

bool tn__bert_complete(const char *who, tn_bert_config *c)
{
    stored s;
    if (c->ff == 0) c->ff = c->dim <= INT64_MAX / 4 ? 4 * c->dim : 0;
    if (!c->activation) c->activation = "gelu";
    if (c->no_pooler) c->no_next = true;
    if (c->padding < 0) c->padding = -1;
    s = (stored){.c = *c, .places = 1};
    if (c->padding < 0) s.c.padding = ABSENT;
    if (!tn__init_and_activation(who, c->init, &c->activation) || !tn_hf_config_within(who, &table, &s) ||
        !tn__within(who, "positions", c->positions, 1, 10000000))
        return false;
    if (c->padding >= c->vocab)
        return tn_raise(TN_EINVAL, "%s: .padding is %lld, but there are %lld words", who, (long long)c->padding,
                        (long long)c->vocab),
               false;
    return true;
}

/* ---- in a file --------------------------------------------------------------------------------------------------- */

tn_bert_config tn_bert_config_load(const char *dir)
{
    static const char name[] = "config.json";
    stored            s = {.c = {.zero_ = 0}};
    tn_bert_config   *c = &s.c;
    if (tn_hf_config_read(dir, &table, &s)) {
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

tn__bert_stored tn__bert_to_store(const tn_bert_config *c)
{
    stored s = {.c = *c, .type = type_of(c), .architecture = architecture_of(c)};
    s.norm_first = s.type == tenon_type, s.places = s.c.positions + tn__first_place(c);
    if (c->padding < 0) s.c.padding = ABSENT;
    return s;
}
bool tn__bert_is_roberta(const tn_bert_config *c) { return type_of(c) == first_type; }

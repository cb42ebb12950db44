/* bert_formats.c — the file format of each kind: the members of config.json, the names of the weights, and which weight
 * shows that a file has a head. */
#include "models/bert/bert_private.h"

#include <string.h>

/* ---- config.json ------------------------------------------------------------------------------------------------- */

typedef tn__bert_stored stored;

/* clang-format off */
#define PART(key, member, otherwise_) TN_HF(key, stored, c.member, .otherwise = (otherwise_), .high = 1, .below = true)
#define SIZE(key, member, most) TN_HF(key, stored, c.member, .needed = true, .low = 1, .high = (most))
#define EPS(key, value) TN_HF(key, stored, c.eps, .otherwise = (value), .low = 1e-15, .high = 0.1)
#define POSITIONS(n) \
    TN_HF("max_position_embeddings", stored, position_rows, .otherwise = (n), .low = 1, .high = 10000000)
#define EMBEDDING TN_HF("embedding_size", stored, c.embedding, .otherwise = 128, .low = 1, .high = 65536)
#define ENCODER "is_decoder and add_cross_attention are not supported: this is an encoder"

static const tn_hf_row rows_of_all[] = {
    {"architectures", TN_HF_NAME, .at = offsetof(stored, architecture)},
    TN__IDS("bos_token_id", stored, begin),
    TN__IDS("decoder_start_token_id", stored, decoder_begin),
    TN__IDS("eos_token_id", stored, end),
    TN_HF("initializer_range", stored, c.init, .otherwise = 0.02, .high = 1),
    {"is_decoder add_cross_attention", TN_HF_MUST, .silent = true, .says = ENCODER},
    {"is_encoder_decoder", TN_HF_MUST, .silent = true},
    {"model_type", TN_HF_TYPE, .at = offsetof(stored, type), .choices = tn__bert_types},
    TN_HF("pad_token_id", stored, c.padding, .otherwise = TN__BERT_ABSENT, .nullable = true, .low = TN__BERT_NONE,
          .high = 10000000),
    {"pruned_heads", TN_HF_PRUNED, .text = NULL},
    {"tie_word_embeddings", TN_HF_MUST, .otherwise = true},
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    SIZE("vocab_size", vocab, 10000000),
    TN__UNUSED("gradient_checkpointing use_cache"),
};
static const tn_hf_row common[] = { /* BERT and RoBERTa, and with changes most others */
    PART("attention_probs_dropout_prob", attention_dropout, 0.1),
    TN_HF("classifier_dropout", stored, c.head_dropout, .otherwise = -1, .omitted = true, .high = 1, .below = true),
    TN_HF("hidden_act", stored, c.activation, .text = "gelu"),
    PART("hidden_dropout_prob", dropout, 0.1),
    SIZE("hidden_size", dim, 65536),
    SIZE("intermediate_size", ff, 1048576),
    EPS("layer_norm_eps", 1e-12),
    POSITIONS(512),
    TN_HF("norm_first", stored, norm_first, .omitted = true),
    SIZE("num_attention_heads", heads, 1024),
    SIZE("num_hidden_layers", layers, 1024),
    {"position_embedding_type", TN_HF_MUST, .text = "absolute"},
    TN_HF("type_vocab_size", stored, c.types, .otherwise = 2, .low = 1, .high = 1024),
};
static const tn_hf_row electra_rows[] = {
    EMBEDDING,
    TN__UNUSED("summary_activation summary_last_dropout summary_type summary_use_proj"), /* of a head not loaded */
};
static const tn_hf_row albert_rows[] = {
    PART("attention_probs_dropout_prob", attention_dropout, 0),
    PART("classifier_dropout_prob", head_dropout, 0.1),
    EMBEDDING,
    TN_HF("hidden_act", stored, c.activation, .text = "gelu_new"),
    PART("hidden_dropout_prob", dropout, 0),
    {"inner_group_num", TN_HF_MUST, .otherwise = 1, .silent = true},
    TN_HF("num_hidden_groups", stored, c.groups, .otherwise = 1, .low = 1, .high = 1024),
    {"pruned_heads", TN_HF_EMPTY, .silent = true}, /* its layers share their heads */
    TN__UNUSED("classifier_dropout"),
};
static const tn_hf_row distilbert_rows[] = {
    TN_HF("activation", stored, c.activation, .text = "gelu"),
    PART("attention_dropout", attention_dropout, 0.1),
    SIZE("dim", dim, 65536),
    PART("dropout", dropout, 0.1),
    SIZE("hidden_dim", ff, 1048576),
    POSITIONS(512),
    SIZE("n_heads", heads, 1024),
    SIZE("n_layers", layers, 1024),
    PART("seq_classif_dropout", head_dropout, 0.2),
    TN__UNUSED("qa_dropout"),           /* training of answers uses .dropout */
    TN__UNUSED("sinusoidal_pos_embds"), /* only initialised the table, which is in the file */
};
/* clang-format on */

/* ---- ModernBERT -------------------------------------------------------------------------------------------------- */

static const char *const attentions[] = {"full_attention", "sliding_attention", NULL};
#define THETA(key, member, value, kind)                                                               \
    TN_HF(key, stored, c.member, .otherwise = (value), .low = 1, .high = 1e12,                        \
          .also = "rope_parameters." kind "_attention.rope_theta"),                                   \
    {                                                                                                 \
        "rope_parameters." kind "_attention.rope_type", TN_HF_MUST, .text = "default", .silent = true \
    }
/* clang-format off */
static const tn_hf_row modern_rows[] = {
    {"attention_bias", TN_HF_MUST, .otherwise = false},
    PART("attention_dropout", attention_dropout, 0),
    {"classifier_activation", TN_HF_MUST, .text = "gelu"},
    {"classifier_bias", TN_HF_MUST, .otherwise = false},
    PART("classifier_dropout", head_dropout, 0),
    {"classifier_pooling", TN_HF_CHOICE, .at = offsetof(stored, pooling), .choices = tn__bert_poolings},
    TN__IDS("cls_token_id", stored, cls),
    {"decoder_bias", TN_HF_MUST, .otherwise = true},
    PART("embedding_dropout", dropout, 0),
    TN_HF("global_attn_every_n_layers", stored, c.global_every, .otherwise = 3, .low = 1, .high = 1024),
    THETA("global_rope_theta", theta, 160000, "full"),
    TN_HF("hidden_activation", stored, c.activation, .text = "gelu"),
    TN_HF("layer_types", stored, layers, .choices = attentions, .text = "gl", .omitted = true),
    TN_HF("local_attention", stored, local, .otherwise = 128, .high = 1000000000),
    THETA("local_rope_theta", local_theta, 10000, "sliding"),
    POSITIONS(8192),
    {"mlp_bias", TN_HF_MUST, .otherwise = false},
    {"mlp_dropout", TN_HF_MUST, .silent = true},
    {"norm_bias", TN_HF_MUST, .otherwise = false},
    EPS("norm_eps", 1e-5),
    {"pruned_heads", TN_HF_PRUNED, .text = "paths"},
    {"rope_scaling", TN_HF_EMPTY, .silent = true},
    TN__IDS("sep_token_id", stored, sep),
    TN_HF("sliding_window", stored, sliding, .otherwise = -1, .high = 500000000, .silent = true), /* replaces local */
    TN__UNUSED("attention_probs_dropout_prob hidden_act hidden_dropout_prob layer_norm_eps position_embedding_type "
               "type_vocab_size"), /* BERT's */
    TN__UNUSED("deterministic_flash_attn initializer_cutoff_factor reference_compile repad_logits_with_grad "
               "sparse_pred_ignore_index sparse_prediction"),
};

/* ---- DeBERTa ----------------------------------------------------------------------------------------------------- */

static const char *const terms[] = {"c2p", "p2c", NULL};
static const tn_hf_row   deberta_rows[] = {
    TN_HF("attention_head_size", stored, head, .high = 65536, .silent = true),
    TN_HF("cls_dropout", stored, c.head_dropout, .otherwise = -1, .omitted = true, .high = 1, .below = true),
    {"conv_kernel_size pooler_dropout", TN_HF_MUST, .silent = true}, /* the first one: v2 xlarge */
    TN_HF("embedding_size", stored, c.embedding, .omitted = true, .high = 65536),
    EPS("layer_norm_eps", 1e-7),
    TN_HF("legacy", stored, legacy, .otherwise = true),
    TN_HF("max_relative_positions", stored, c.disentangled.distance, .otherwise = -1, .low = -1, .high = 1 << 24),
    {"norm_rel_ebd", TN_HF_CHOICE, .at = offsetof(stored, norm_distances), .choices = tn__bert_distance_norms},
    {"pooler_hidden_act", TN_HF_MUST, .text = "gelu", .silent = true},
    TN_HF("pooler_hidden_size", stored, pooler, .high = 65536, .silent = true),
    TN_HF("pos_att_type", stored, terms, .choices = terms, .text = "cp"),
    TN_HF("position_biased_input", stored, c.input_positions, .otherwise = true),
    TN_HF("position_buckets", stored, c.disentangled.buckets, .otherwise = -1, .low = -1, .high = 1 << 24),
    TN_HF("relative_attention", stored, relative, .otherwise = false),
    TN_HF("share_att_key", stored, share, .otherwise = false),
    TN_HF("type_vocab_size", stored, c.types, .high = 1024),
    TN__UNUSED("classifier_dropout conv_act conv_groups position_embedding_type vocab_type"),
};

/* ---- names of weights -------------------------------------------------------------------------------------------- */

/* A kind's names are mapped to BERT's, and those to Tenon's by names_of_all. */
#define LAYER "bert.encoder.layer.*."
#define OURS "bert.encoder.layers.*."
#define HEAD "cls.predictions."
#define THIRD(name, i)                                                                                         \
    TN_RENAME(LAYER "attention.self." name ".weight", OURS "self_attn.in_proj_weight", .part = i, .parts = 3), \
        TN_RENAME(LAYER "attention.self." name ".bias", OURS "self_attn.in_proj_bias", .part = i, .parts = 3)
static const tn_rename names_of_all[] = {
    /* of files with only the encoder */
    TN_RENAME("embeddings", "bert.embeddings", .load_only = true),
    TN_RENAME("encoder", "bert.encoder", .load_only = true),
    TN_RENAME("pooler", "bert.pooler", .load_only = true),
    /* of old files */
    TN_RENAME("**.gamma", "**.weight", .load_only = true),
    TN_RENAME("**.beta", "**.bias", .load_only = true),
    TN_RENAME("bert.embeddings.position_ids", NULL),
    /* of heads that .left names */
    TN_RENAME("classifier", NULL),
    TN_RENAME("qa_outputs", NULL),
    TN_RENAME("sequence_summary", NULL),
    TN_RENAME("crf", NULL),
    /* of a layer */
    THIRD("query", 0),
    THIRD("key", 1),
    THIRD("value", 2),
    TN_RENAME(LAYER "attention.output.dense", OURS "self_attn.out_proj"),
    TN_RENAME(LAYER "attention.output.LayerNorm", OURS "norm1"),
    TN_RENAME(LAYER "intermediate.dense", OURS "linear1"),
    TN_RENAME(LAYER "output.dense", OURS "linear2"),
    TN_RENAME(LAYER "output.LayerNorm", OURS "norm2"),
};
#define HEAD_NAMES(dense, norm, bias, decoder)                                                    \
    TN_RENAME(dense, HEAD "transform.dense"), TN_RENAME(norm, HEAD "transform.LayerNorm"), \
        TN_RENAME(bias, HEAD "bias"), TN_RENAME(decoder, HEAD "decoder")
static const tn_rename first_names[] = {
    TN_RENAME("roberta_prelayernorm.embeddings", "bert.embeddings"),
    TN_RENAME("roberta_prelayernorm.encoder", "bert.encoder"),
    TN_RENAME("roberta_prelayernorm.pooler", "bert.pooler"),
    TN_RENAME("roberta_prelayernorm.LayerNorm", "bert.encoder.norm"),
    TN_RENAME("encoder", "bert.encoder", .load_only = true), /* of files with only the encoder */
    TN_RENAME("LayerNorm", "bert.encoder.norm", .load_only = true),
    TN_RENAME(LAYER "attention.LayerNorm", LAYER "attention.output.LayerNorm"),
    TN_RENAME(LAYER "intermediate.LayerNorm", LAYER "output.LayerNorm"),
    HEAD_NAMES("lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder"),
};
static const tn_rename roberta_names[] = {
    TN_RENAME("roberta", "bert"),
    HEAD_NAMES("lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder"),
};
static const tn_rename distilbert_names[] = {
    TN_RENAME("distilbert.embeddings", "bert.embeddings"),
    TN_RENAME("distilbert.transformer", "bert.encoder"),
    TN_RENAME("transformer", "bert.encoder", .load_only = true),
    TN_RENAME("pre_classifier", NULL),
    TN_RENAME(LAYER "attention.q_lin", LAYER "attention.self.query"),
    TN_RENAME(LAYER "attention.k_lin", LAYER "attention.self.key"),
    TN_RENAME(LAYER "attention.v_lin", LAYER "attention.self.value"),
    TN_RENAME(LAYER "attention.out_lin", LAYER "attention.output.dense"),
    TN_RENAME(LAYER "sa_layer_norm", LAYER "attention.output.LayerNorm"),
    TN_RENAME(LAYER "ffn.lin1", LAYER "intermediate.dense"),
    TN_RENAME(LAYER "ffn.lin2", LAYER "output.dense"),
    TN_RENAME(LAYER "output_layer_norm", LAYER "output.LayerNorm"),
    HEAD_NAMES("vocab_transform", "vocab_layer_norm", "vocab_projector.bias", "vocab_projector"),
};
static const tn_rename albert_names[] = {
    TN_RENAME("encoder", "albert.encoder", .load_only = true), /* of files with only the encoder */
    TN_RENAME("pooler", "albert.pooler", .load_only = true),
    TN_RENAME("albert.embeddings", "bert.embeddings"),
    TN_RENAME("albert.encoder.embedding_hidden_mapping_in", "bert.embeddings_project"),
    TN_RENAME("albert.encoder.albert_layer_groups.*.albert_layers.0", "bert.encoder.layer.*"),
    TN_RENAME("albert.pooler", "bert.pooler.dense"),
    TN_RENAME(LAYER "attention.query", LAYER "attention.self.query"),
    TN_RENAME(LAYER "attention.key", LAYER "attention.self.key"),
    TN_RENAME(LAYER "attention.value", LAYER "attention.self.value"),
    TN_RENAME(LAYER "attention.dense", LAYER "attention.output.dense"),
    TN_RENAME(LAYER "attention.LayerNorm", LAYER "attention.output.LayerNorm"),
    TN_RENAME(LAYER "ffn", LAYER "intermediate.dense"),
    TN_RENAME(LAYER "ffn_output", LAYER "output.dense"),
    TN_RENAME(LAYER "full_layer_layer_norm", LAYER "output.LayerNorm"),
    HEAD_NAMES("predictions.dense", "predictions.LayerNorm", "predictions.bias", "predictions.decoder"),
    TN_RENAME("sop_classifier.classifier", "cls.seq_relationship"),
};
static const tn_rename electra_names[] = {
    TN_RENAME("electra", "bert"),
    TN_RENAME("embeddings_project", "bert.embeddings_project", .load_only = true),
    HEAD_NAMES("generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head.bias",
               "generator_lm_head"),
};

#define MODERN "model.layers.*."
#define PIECE(i, name) TN_RENAME(MODERN "mlp.Wi", OURS name, .piece = (i), .pieces = 2)
#define MODERN_NAMES                                                                                        \
    TN_RENAME("embeddings", "model.embeddings", .load_only = true), /* of files with only the encoder */    \
        TN_RENAME("layers", "model.layers", .load_only = true),                                             \
        TN_RENAME("final_norm", "model.final_norm", .load_only = true),                                     \
        TN_RENAME("model.embeddings.tok_embeddings", "bert.embeddings.word_embeddings"),                    \
        TN_RENAME("model.embeddings.norm", "bert.embeddings.LayerNorm"),                                    \
        TN_RENAME("model.final_norm", "bert.encoder.norm"), TN_RENAME(MODERN "attn_norm", OURS "norm1"),    \
        TN_RENAME(MODERN "attn.Wqkv.weight", OURS "self_attn.in_proj_weight"),                              \
        TN_RENAME(MODERN "attn.Wo", OURS "self_attn.out_proj"), TN_RENAME(MODERN "mlp_norm", OURS "norm2"), \
        PIECE(0, "gate"), PIECE(1, "linear1"), TN_RENAME(MODERN "mlp.Wo", OURS "linear2"),                  \
        TN_RENAME("classifier", NULL), TN_RENAME("crf", NULL)
static const tn_rename modern_names[] = {
    MODERN_NAMES,
    HEAD_NAMES("head.dense", "head.norm", "decoder.bias", "decoder"),
};
static const tn_rename modern_encoder_names[] = {MODERN_NAMES, TN_RENAME("head", NULL)};

#define SELF(theirs, ours) TN_RENAME(LAYER "attention.self." theirs, ours)
#define DEBERTA_NAMES                                                                                          \
    TN_RENAME("embeddings", "deberta.embeddings", .load_only = true), /* of files with only the encoder */     \
        TN_RENAME("encoder", "deberta.encoder", .load_only = true),                                            \
        TN_RENAME("deberta.embeddings", "bert.embeddings"), TN_RENAME("deberta.encoder", "bert.encoder"),      \
        TN_RENAME("bert.embeddings.embed_proj", "bert.embeddings_project"),                                    \
        TN_RENAME("bert.encoder.rel_embeddings", "bert.encoder.distances"),                                    \
        TN_RENAME("bert.encoder.LayerNorm", "bert.encoder.distances.norm"), TN_RENAME("pooler", NULL),         \
        TN_RENAME("mask_predictions.classifer", "mask_predictions.classifier", .load_only = true),             \
        TN_RENAME("mask_predictions.dense", "discriminator_predictions.dense"),                                \
        TN_RENAME("mask_predictions.LayerNorm", "discriminator_predictions.norm"),                             \
        TN_RENAME("mask_predictions.classifier", "discriminator_predictions.dense_prediction"),                \
        SELF("query_proj", LAYER "attention.self.query"), SELF("key_proj", LAYER "attention.self.key"),        \
        SELF("value_proj", LAYER "attention.self.value"), SELF("pos_key_proj", OURS "self_attn.pos_key_proj"), \
        SELF("pos_query_proj", OURS "self_attn.pos_query_proj")
static const tn_rename deberta_names[] = {
    TN_RENAME("lm_predictions.lm_head.dense", HEAD "transform.dense"),
    TN_RENAME("lm_predictions.lm_head.LayerNorm", HEAD "transform.LayerNorm"),
    TN_RENAME("lm_predictions.lm_head.bias", HEAD "bias"),
    DEBERTA_NAMES,
};
static const tn_rename legacy_deberta_names[] = {DEBERTA_NAMES}; /* whose head has the width of the embeddings */

/* ---- forms ------------------------------------------------------------------------------------------------------- */

#define DENSE ".dense.weight"
#define NAMES(names) {NULL, 0, (names), TN_HF_COUNT_(names)}
/* clang-format off */
#define BERT(type)                                                                                          \
    {type, TN_BERT, {NULL, 0, NULL, 0}, false, false, "BertModel", "BertForMaskedLM", "BertForPreTraining", \
     "BertForNextSentencePrediction", "bert.", "bert.pooler" DENSE, "cls.predictions.transform" DENSE,      \
     "cls.seq_relationship.weight", NULL, 0}
#define ROBERTA(type, kind, model, masked)                                                                        \
    {type, kind, NAMES(roberta_names), false, false, model, masked, NULL, NULL, "roberta.", "roberta.pooler" DENSE, \
     "lm_head" DENSE, NULL, NULL, 1}
static const tn__bert_format formats[] = {
    BERT("bert"),
    {"roberta-prelayernorm", TN_BERT, NAMES(first_names), false, false, "RobertaPreLayerNormModel",
     "RobertaPreLayerNormForMaskedLM", NULL, NULL, "roberta_prelayernorm.", "roberta_prelayernorm.pooler" DENSE,
     "lm_head" DENSE, "cls.seq_relationship.weight", NULL, 1},
    BERT("tenon-bert"),
    ROBERTA("roberta", TN_ROBERTA, "RobertaModel", "RobertaForMaskedLM"),
    ROBERTA("xlm-roberta", TN_XLM_ROBERTA, "XLMRobertaModel", "XLMRobertaForMaskedLM"),
    ROBERTA("camembert", TN_CAMEMBERT, "CamembertModel", "CamembertForMaskedLM"),
    {"distilbert", TN_DISTILBERT, TN_HF_FILES(distilbert_rows, distilbert_names), true, false, "DistilBertModel",
     "DistilBertForMaskedLM", NULL, NULL, "distilbert.", NULL, "vocab_transform.weight", NULL, NULL, 0},
    {"albert", TN_ALBERT, TN_HF_FILES(albert_rows, albert_names), false, false, "AlbertModel", "AlbertForMaskedLM",
     "AlbertForPreTraining", NULL, "albert.", "albert.pooler.weight", "predictions" DENSE,
     "sop_classifier.classifier.weight", NULL, 0},
    {"electra", TN_ELECTRA, TN_HF_FILES(electra_rows, electra_names), false, false, "ElectraModel",
     "ElectraForMaskedLM", "ElectraForPreTraining", NULL, "electra.", NULL, "generator_predictions" DENSE, NULL,
     "discriminator_predictions" DENSE, 0},
    {"modernbert", TN_MODERNBERT, TN_HF_FILES(modern_rows, modern_names), false, true, "ModernBertModel",
     "ModernBertForMaskedLM", NULL, NULL, "model.", NULL, "decoder.bias", NULL, NULL, 50283},
    {"modernbert", TN_MODERNBERT, TN_HF_FILES(modern_rows, modern_encoder_names), false, true, "ModernBertModel",
     NULL, NULL, NULL, "model.", NULL, NULL, NULL, NULL, 50283}, /* no head for masked tokens; a task's has its names */
    {"deberta-v2", TN_DEBERTA, TN_HF_FILES(deberta_rows, deberta_names), false, false, "DebertaV2Model",
     "DebertaV2ForMaskedLM", "DebertaV2Model", NULL, "deberta.", NULL, "lm_predictions.lm_head" DENSE, NULL,
     "mask_predictions" DENSE, 0},
    {"deberta-v2", TN_DEBERTA, TN_HF_FILES(deberta_rows, legacy_deberta_names), false, false, "DebertaV2Model",
     "DebertaV2ForMaskedLM", "DebertaV2Model", NULL, "deberta.", NULL, "cls.predictions.transform" DENSE, NULL,
     "mask_predictions" DENSE, 0},
};
/* clang-format on */
const char *const tn__bert_types[] = {
    "bert",    "roberta-prelayernorm", "tenon-bert", "roberta", "xlm-roberta", "camembert", "distilbert", "albert",
    "electra", "modernbert",           "deberta-v2", "xlnet",   NULL};
const char *const tn__bert_poolings[] = {"cls", "mean", NULL};
const char *const tn__bert_distance_norms[] = {"none", "layer_norm", NULL};

static const tn__bert_encoder *other;
void                           tn__bert_register(const tn__bert_encoder *e) { other = e; }
const tn__bert_encoder        *tn__bert_other(void) { return other; }
bool                           tn__bert_has_other(const char *who)
{
    return other ||
           tn_raise_false(TN_EUNSUPPORTED, "%s: 'xlnet' is one of the extras; call tn_extras_register() before", who);
}

const tn__bert_format *tn__bert_format_of_type(const char *type, const char *path)
{
    int i = 0;
    if (!strcmp(type, "xlnet")) return tn__bert_has_other(tn_name("'%s'", path)) ? other->format : NULL;
    while (strcmp(formats[i].type, type) != 0) i++;
    return &formats[i];
}

/* With norm_first the format is RobertaPreLayerNorm, whose masked-token head only has gelu and whose positions start
 * after padding; configs that fit neither that nor BERT get Tenon's own model_type, "tenon-bert". */
const tn__bert_format *tn__bert_format_of(const tn_bert_config *c)
{
    int i = 0;
    if (c->kind == TN_XLNET) return other->format;
    if (c->kind == TN_BERT && c->norm_first) return &formats[c->padding >= 0 && !strcmp(c->activation, "gelu") ? 1 : 2];
    while (formats[i].kind != c->kind) i++;
    if (c->kind == TN_DEBERTA) return &formats[i + (c->embedding && c->embedding != c->dim)];
    return &formats[i + (c->kind == TN_MODERNBERT && c->no_words)];
}

const tn_hf_files *tn__bert_files(const tn__bert_format *f, tn__hf_tables *to)
{
    _Static_assert(TN_HF_COUNT_(rows_of_all) + TN_HF_COUNT_(common) + TN_HF_COUNT_(modern_rows) <= TN__HF_ROWS &&
                       TN_HF_COUNT_(names_of_all) + TN_HF_COUNT_(deberta_names) <= TN__HF_RULES,
                   "room for the tables");
    tn__hf_begin(to);
    tn__hf_add_rows(to, f->own.rows, f->own.count);
    if (!f->own_rows) tn__hf_add_rows(to, common, TN_HF_COUNT_(common));
    tn__hf_add_rows(to, rows_of_all, TN_HF_COUNT_(rows_of_all));
    tn__hf_add_rules(to, f->own.rules, f->own.renames);
    if (!f->own_names) tn__hf_add_rules(to, names_of_all, TN_HF_COUNT_(names_of_all));
    return &to->files;
}

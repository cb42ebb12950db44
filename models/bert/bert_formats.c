/* bert_formats.c — the file format of each kind: the members of config.json, the names of the weights, and which weight
 * shows that a file has a head. */
#include "models/bert/bert_private.h"

#include <string.h>

/* ---- config.json ------------------------------------------------------------------------------------------------- */

typedef tn__bert_stored stored;

/* clang-format off */
#define ARCHITECTURE {"architectures", TN_HF_NAME, .at = offsetof(stored, architecture)}
#define TYPE {"model_type", TN_HF_TYPE, .at = offsetof(stored, type), .choices = tn__bert_types}
#define PART(key, member, otherwise_) TN_HF(key, stored, c.member, .otherwise = (otherwise_), .high = 1, .below = true)
#define SIZE(key, member, most) TN_HF(key, stored, c.member, .needed = true, .low = 1, .high = (most))
#define PADDING \
    TN_HF("pad_token_id", stored, c.padding, .otherwise = TN__BERT_ABSENT, .nullable = true, .low = TN__BERT_NONE, \
          .high = 10000000)
#define BEGIN TN__IDS("bos_token_id", stored, begin)
#define END TN__IDS("eos_token_id", stored, end)
#define INIT TN_HF("initializer_range", stored, c.init, .otherwise = 0.02, .high = 1)
#define EPS TN_HF("layer_norm_eps", stored, c.eps, .otherwise = 1e-12, .low = 1e-15, .high = 0.1)
#define POSITIONS TN_HF("max_position_embeddings", stored, position_rows, .otherwise = 512, .low = 1, .high = 10000000)
#define SEGMENTS TN_HF("type_vocab_size", stored, c.types, .otherwise = 2, .low = 1, .high = 1024)
#define EMBEDDING TN_HF("embedding_size", stored, c.embedding, .otherwise = 128, .low = 1, .high = 65536)
#define OF_HEADS \
    TN_HF("classifier_dropout", stored, c.head_dropout, .otherwise = -1, .omitted = true, .high = 1, .below = true)
#define ABSOLUTE {"position_embedding_type", TN_HF_MUST, .text = "absolute"}
#define TIED {"tie_word_embeddings", TN_HF_MUST, .otherwise = true}
#define F32 {"torch_dtype", TN_HF_NAME, .text = "float32"}
#define ENCODER "is_decoder and add_cross_attention are not supported: this is an encoder"
#define PRUNED {"pruned_heads", TN_HF_PRUNED, .text = NULL}
#define SILENT \
    {"is_decoder", TN_HF_MUST, .silent = true, .says = ENCODER}, \
    {"add_cross_attention", TN_HF_MUST, .silent = true, .says = ENCODER}, \
    {"is_encoder_decoder", TN_HF_MUST, .silent = true}, \
    {"per_layer_config", TN_HF_EMPTY, .silent = true}, \
    {"quantization_config", TN_HF_EMPTY, .silent = true}, \
    {"gradient_checkpointing", TN_HF_ANY, .silent = true}, \
    {"use_cache", TN_HF_ANY, .silent = true}

static const tn_hf_row bert_rows[] = { /* and RoBERTa, XLM-RoBERTa */
    ARCHITECTURE,
    PART("attention_probs_dropout_prob", attention_dropout, 0.1),
    BEGIN,
    OF_HEADS,
    END,
    TN_HF("hidden_act", stored, c.activation, .text = "gelu"),
    PART("hidden_dropout_prob", dropout, 0.1),
    SIZE("hidden_size", dim, 65536),
    INIT,
    SIZE("intermediate_size", ff, 1048576),
    EPS,
    POSITIONS,
    TYPE,
    TN_HF("norm_first", stored, norm_first, .omitted = true),
    SIZE("num_attention_heads", heads, 1024),
    SIZE("num_hidden_layers", layers, 1024),
    PADDING,
    ABSOLUTE,
    TIED,
    F32,
    SEGMENTS,
    SIZE("vocab_size", vocab, 10000000),
    PRUNED,
    SILENT,
};
static const tn_hf_row electra_rows[] = {
    ARCHITECTURE,
    PART("attention_probs_dropout_prob", attention_dropout, 0.1),
    BEGIN,
    OF_HEADS,
    EMBEDDING,
    END,
    TN_HF("hidden_act", stored, c.activation, .text = "gelu"),
    PART("hidden_dropout_prob", dropout, 0.1),
    SIZE("hidden_size", dim, 65536),
    INIT,
    SIZE("intermediate_size", ff, 1048576),
    EPS,
    POSITIONS,
    TYPE,
    SIZE("num_attention_heads", heads, 1024),
    SIZE("num_hidden_layers", layers, 1024),
    PADDING,
    ABSOLUTE,
    TIED,
    F32,
    SEGMENTS,
    SIZE("vocab_size", vocab, 10000000),
    PRUNED,
    SILENT,
    {"summary_activation", TN_HF_ANY, .silent = true}, /* of a head that is not loaded */
    {"summary_last_dropout", TN_HF_ANY, .silent = true},
    {"summary_type", TN_HF_ANY, .silent = true},
    {"summary_use_proj", TN_HF_ANY, .silent = true},
};
static const tn_hf_row albert_rows[] = {
    ARCHITECTURE,
    PART("attention_probs_dropout_prob", attention_dropout, 0),
    BEGIN,
    PART("classifier_dropout_prob", head_dropout, 0.1),
    EMBEDDING,
    END,
    TN_HF("hidden_act", stored, c.activation, .text = "gelu_new"),
    PART("hidden_dropout_prob", dropout, 0),
    SIZE("hidden_size", dim, 65536),
    INIT,
    {"inner_group_num", TN_HF_MUST, .otherwise = 1, .silent = true},
    SIZE("intermediate_size", ff, 1048576),
    EPS,
    POSITIONS,
    TYPE,
    SIZE("num_attention_heads", heads, 1024),
    TN_HF("num_hidden_groups", stored, c.groups, .otherwise = 1, .low = 1, .high = 1024),
    SIZE("num_hidden_layers", layers, 1024),
    PADDING,
    ABSOLUTE,
    TIED,
    F32,
    SEGMENTS,
    SIZE("vocab_size", vocab, 10000000),
    {"pruned_heads", TN_HF_EMPTY, .silent = true}, /* its layers share their heads */
    SILENT,
};
static const tn_hf_row distilbert_rows[] = {
    TN_HF("activation", stored, c.activation, .text = "gelu"),
    ARCHITECTURE,
    PART("attention_dropout", attention_dropout, 0.1),
    BEGIN,
    SIZE("dim", dim, 65536),
    PART("dropout", dropout, 0.1),
    END,
    SIZE("hidden_dim", ff, 1048576),
    INIT,
    POSITIONS,
    TYPE,
    SIZE("n_heads", heads, 1024),
    SIZE("n_layers", layers, 1024),
    PADDING,
    PART("seq_classif_dropout", head_dropout, 0.2),
    TIED,
    F32,
    SIZE("vocab_size", vocab, 10000000),
    PRUNED,
    SILENT,
    {"qa_dropout", TN_HF_ANY, .silent = true},           /* training of answers uses .dropout */
    {"sinusoidal_pos_embds", TN_HF_ANY, .silent = true}, /* only initialised the table, which is in the file */
};
/* clang-format on */

/* ---- ModernBERT -------------------------------------------------------------------------------------------------- */

static const char *const attentions[] = {"full_attention", "sliding_attention", NULL};
#define UNUSED(key)                      \
    {                                    \
        (key), TN_HF_ANY, .silent = true \
    }
#define THETA(key, member, value, kind)                                                               \
    TN_HF(key, stored, c.member, .otherwise = (value), .low = 1, .high = 1e12,                        \
          .also = "rope_parameters." kind "_attention.rope_theta"),                                   \
    {                                                                                                 \
        "rope_parameters." kind "_attention.rope_type", TN_HF_MUST, .text = "default", .silent = true \
    }
/* clang-format off */
static const tn_hf_row modern_rows[] = {
    ARCHITECTURE,
    {"attention_bias", TN_HF_MUST, .otherwise = false},
    PART("attention_dropout", attention_dropout, 0),
    BEGIN,
    {"classifier_activation", TN_HF_MUST, .text = "gelu"},
    {"classifier_bias", TN_HF_MUST, .otherwise = false},
    PART("classifier_dropout", head_dropout, 0),
    {"classifier_pooling", TN_HF_CHOICE, .at = offsetof(stored, pooling), .choices = tn__bert_poolings},
    {"decoder_bias", TN_HF_MUST, .otherwise = true},
    PART("embedding_dropout", dropout, 0),
    END,
    TN_HF("global_attn_every_n_layers", stored, c.global_every, .otherwise = 3, .low = 1, .high = 1024),
    THETA("global_rope_theta", theta, 160000, "full"),
    TN_HF("hidden_activation", stored, c.activation, .text = "gelu"),
    SIZE("hidden_size", dim, 65536),
    INIT,
    SIZE("intermediate_size", ff, 1048576),
    TN_HF("layer_types", stored, layers, .choices = attentions, .text = "gl", .omitted = true),
    TN_HF("local_attention", stored, local, .otherwise = 128, .high = 1000000000),
    THETA("local_rope_theta", local_theta, 10000, "sliding"),
    TN_HF("max_position_embeddings", stored, position_rows, .otherwise = 8192, .low = 1, .high = 10000000),
    {"mlp_bias", TN_HF_MUST, .otherwise = false},
    {"mlp_dropout", TN_HF_MUST, .silent = true},
    TYPE,
    {"norm_bias", TN_HF_MUST, .otherwise = false},
    TN_HF("norm_eps", stored, c.eps, .otherwise = 1e-5, .low = 1e-15, .high = 0.1),
    SIZE("num_attention_heads", heads, 1024),
    SIZE("num_hidden_layers", layers, 1024),
    PADDING,
    {"pruned_heads", TN_HF_PRUNED, .text = "paths"},
    TIED,
    F32,
    SIZE("vocab_size", vocab, 10000000),
    SILENT,
    {"rope_scaling", TN_HF_EMPTY, .silent = true},
    UNUSED("cls_token_id"), UNUSED("deterministic_flash_attn"), UNUSED("initializer_cutoff_factor"),
    UNUSED("position_embedding_type"), UNUSED("reference_compile"), UNUSED("repad_logits_with_grad"),
    UNUSED("sep_token_id"), UNUSED("sparse_pred_ignore_index"), UNUSED("sparse_prediction"),
};
/* clang-format on */

/* ---- DeBERTa ----------------------------------------------------------------------------------------------------- */

static const char *const terms[] = {"c2p", "p2c", NULL};
/* clang-format off */
static const tn_hf_row deberta_rows[] = {
    ARCHITECTURE,
    TN_HF("attention_head_size", stored, head, .high = 65536, .silent = true),
    PART("attention_probs_dropout_prob", attention_dropout, 0.1),
    BEGIN,
    TN_HF("cls_dropout", stored, c.head_dropout, .otherwise = -1, .omitted = true, .high = 1, .below = true),
    {"conv_kernel_size", TN_HF_MUST, .otherwise = 0, .silent = true}, /* v2 xlarge */
    TN_HF("embedding_size", stored, c.embedding, .omitted = true, .high = 65536),
    END,
    TN_HF("hidden_act", stored, c.activation, .text = "gelu"),
    PART("hidden_dropout_prob", dropout, 0.1),
    SIZE("hidden_size", dim, 65536),
    INIT,
    SIZE("intermediate_size", ff, 1048576),
    TN_HF("layer_norm_eps", stored, c.eps, .otherwise = 1e-7, .low = 1e-15, .high = 0.1),
    TN_HF("legacy", stored, legacy, .otherwise = true),
    POSITIONS,
    TN_HF("max_relative_positions", stored, c.disentangled.distance, .otherwise = -1, .low = -1, .high = 1 << 24),
    TYPE,
    {"norm_rel_ebd", TN_HF_CHOICE, .at = offsetof(stored, norm_distances), .choices = tn__bert_distance_norms},
    SIZE("num_attention_heads", heads, 1024),
    SIZE("num_hidden_layers", layers, 1024),
    PADDING,
    {"pooler_dropout", TN_HF_MUST, .otherwise = 0, .silent = true},
    {"pooler_hidden_act", TN_HF_MUST, .text = "gelu", .silent = true},
    TN_HF("pooler_hidden_size", stored, pooler, .high = 65536, .silent = true),
    TN_HF("pos_att_type", stored, terms, .choices = terms, .text = "cp"),
    TN_HF("position_biased_input", stored, c.input_positions, .otherwise = true),
    TN_HF("position_buckets", stored, c.disentangled.buckets, .otherwise = -1, .low = -1, .high = 1 << 24),
    TN_HF("relative_attention", stored, relative, .otherwise = false),
    TN_HF("share_att_key", stored, share, .otherwise = false),
    TIED,
    F32,
    TN_HF("type_vocab_size", stored, c.types, .high = 1024),
    SIZE("vocab_size", vocab, 10000000),
    PRUNED,
    SILENT,
    UNUSED("conv_act"), UNUSED("conv_groups"), UNUSED("vocab_type"),
};
/* clang-format on */

/* ---- names of weights -------------------------------------------------------------------------------------------- */

/* A kind's names are mapped to BERT's, and those to Tenon's by NAMES, which all kinds share. */
#define LAYER "bert.encoder.layer.*."
#define OURS "bert.encoder.layers.*."
#define HEAD "cls.predictions."
#define THIRD(name, i)                                                                                         \
    TN_RENAME(LAYER "attention.self." name ".weight", OURS "self_attn.in_proj_weight", .part = i, .parts = 3), \
        TN_RENAME(LAYER "attention.self." name ".bias", OURS "self_attn.in_proj_bias", .part = i, .parts = 3)
#define NAMES /* of files with only the encoder; of old files; of heads that .left names; of a layer */               \
    TN_RENAME("embeddings", "bert.embeddings", .load_only = true),                                                    \
        TN_RENAME("encoder", "bert.encoder", .load_only = true),                                                      \
        TN_RENAME("pooler", "bert.pooler", .load_only = true), TN_RENAME("**.gamma", "**.weight", .load_only = true), \
        TN_RENAME("**.beta", "**.bias", .load_only = true), TN_RENAME("bert.embeddings.position_ids", NULL),          \
        TN_RENAME("classifier", NULL), TN_RENAME("qa_outputs", NULL), TN_RENAME("sequence_summary", NULL),            \
        TN_RENAME("crf", NULL), THIRD("query", 0), THIRD("key", 1), THIRD("value", 2),                                \
        TN_RENAME(LAYER "attention.output.dense", OURS "self_attn.out_proj"),                                         \
        TN_RENAME(LAYER "attention.output.LayerNorm", OURS "norm1"),                                                  \
        TN_RENAME(LAYER "intermediate.dense", OURS "linear1"), TN_RENAME(LAYER "output.dense", OURS "linear2"),       \
        TN_RENAME(LAYER "output.LayerNorm", OURS "norm2")

static const tn_rename bert_names[] = {NAMES};
static const tn_rename first_names[] = {
    TN_RENAME("roberta_prelayernorm.embeddings", "bert.embeddings"),
    TN_RENAME("roberta_prelayernorm.encoder", "bert.encoder"),
    TN_RENAME("roberta_prelayernorm.pooler", "bert.pooler"),
    TN_RENAME("roberta_prelayernorm.LayerNorm", "bert.encoder.norm"),
    TN_RENAME("encoder", "bert.encoder", .load_only = true), /* of files with only the encoder */
    TN_RENAME("LayerNorm", "bert.encoder.norm", .load_only = true),
    TN_RENAME(LAYER "attention.LayerNorm", LAYER "attention.output.LayerNorm"),
    TN_RENAME(LAYER "intermediate.LayerNorm", LAYER "output.LayerNorm"),
    TN_RENAME("lm_head.dense", HEAD "transform.dense"),
    TN_RENAME("lm_head.layer_norm", HEAD "transform.LayerNorm"),
    TN_RENAME("lm_head.bias", HEAD "bias"),
    TN_RENAME("lm_head.decoder", HEAD "decoder"),
    NAMES,
};
static const tn_rename roberta_names[] = {
    TN_RENAME("roberta", "bert"),
    TN_RENAME("lm_head.dense", HEAD "transform.dense"),
    TN_RENAME("lm_head.layer_norm", HEAD "transform.LayerNorm"),
    TN_RENAME("lm_head.bias", HEAD "bias"),
    TN_RENAME("lm_head.decoder", HEAD "decoder"),
    NAMES,
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
    TN_RENAME("vocab_transform", HEAD "transform.dense"),
    TN_RENAME("vocab_layer_norm", HEAD "transform.LayerNorm"),
    TN_RENAME("vocab_projector.bias", HEAD "bias"),
    TN_RENAME("vocab_projector", HEAD "decoder"),
    NAMES,
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
    TN_RENAME("predictions.dense", HEAD "transform.dense"),
    TN_RENAME("predictions.LayerNorm", HEAD "transform.LayerNorm"),
    TN_RENAME("predictions.bias", HEAD "bias"),
    TN_RENAME("predictions.decoder", HEAD "decoder"),
    TN_RENAME("sop_classifier.classifier", "cls.seq_relationship"),
    NAMES,
};
static const tn_rename electra_names[] = {
    TN_RENAME("electra", "bert"),
    TN_RENAME("embeddings_project", "bert.embeddings_project", .load_only = true),
    TN_RENAME("generator_predictions.dense", HEAD "transform.dense"),
    TN_RENAME("generator_predictions.LayerNorm", HEAD "transform.LayerNorm"),
    TN_RENAME("generator_lm_head.bias", HEAD "bias"),
    TN_RENAME("generator_lm_head", HEAD "decoder"),
    NAMES,
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
    TN_RENAME("head.dense", HEAD "transform.dense"),
    TN_RENAME("head.norm", HEAD "transform.LayerNorm"),
    TN_RENAME("decoder.bias", HEAD "bias"),
    TN_RENAME("decoder", HEAD "decoder"),
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
        SELF("pos_query_proj", OURS "self_attn.pos_query_proj"), NAMES
static const tn_rename deberta_names[] = {
    TN_RENAME("lm_predictions.lm_head.dense", HEAD "transform.dense"),
    TN_RENAME("lm_predictions.lm_head.LayerNorm", HEAD "transform.LayerNorm"),
    TN_RENAME("lm_predictions.lm_head.bias", HEAD "bias"),
    DEBERTA_NAMES,
};
static const tn_rename legacy_deberta_names[] = {DEBERTA_NAMES}; /* whose head has the width of the embeddings */

/* ---- forms ------------------------------------------------------------------------------------------------------- */

#define DENSE ".dense.weight"
/* clang-format off */
static const tn__bert_format formats[] = {
    {"bert", TN_BERT, TN_HF_FILES(bert_rows, bert_names), "BertModel", "BertForMaskedLM", "BertForPreTraining",
     "BertForNextSentencePrediction", "bert.", "bert.pooler" DENSE, "cls.predictions.transform" DENSE,
     "cls.seq_relationship.weight", NULL, 0},
    {"roberta-prelayernorm", TN_BERT, TN_HF_FILES(bert_rows, first_names), "RobertaPreLayerNormModel",
     "RobertaPreLayerNormForMaskedLM", NULL, NULL, "roberta_prelayernorm.", "roberta_prelayernorm.pooler" DENSE,
     "lm_head" DENSE, "cls.seq_relationship.weight", NULL, 1},
    {"tenon-bert", TN_BERT, TN_HF_FILES(bert_rows, bert_names), "BertModel", "BertForMaskedLM", "BertForPreTraining",
     "BertForNextSentencePrediction", "bert.", "bert.pooler" DENSE, "cls.predictions.transform" DENSE,
     "cls.seq_relationship.weight", NULL, 0},
    {"roberta", TN_ROBERTA, TN_HF_FILES(bert_rows, roberta_names), "RobertaModel", "RobertaForMaskedLM", NULL, NULL,
     "roberta.", "roberta.pooler" DENSE, "lm_head" DENSE, NULL, NULL, 1},
    {"xlm-roberta", TN_XLM_ROBERTA, TN_HF_FILES(bert_rows, roberta_names), "XLMRobertaModel", "XLMRobertaForMaskedLM",
     NULL, NULL, "roberta.", "roberta.pooler" DENSE, "lm_head" DENSE, NULL, NULL, 1},
    {"camembert", TN_CAMEMBERT, TN_HF_FILES(bert_rows, roberta_names), "CamembertModel", "CamembertForMaskedLM", NULL,
     NULL, "roberta.", "roberta.pooler" DENSE, "lm_head" DENSE, NULL, NULL, 1},
    {"distilbert", TN_DISTILBERT, TN_HF_FILES(distilbert_rows, distilbert_names), "DistilBertModel",
     "DistilBertForMaskedLM", NULL, NULL, "distilbert.", NULL, "vocab_transform.weight", NULL, NULL, 0},
    {"albert", TN_ALBERT, TN_HF_FILES(albert_rows, albert_names), "AlbertModel", "AlbertForMaskedLM",
     "AlbertForPreTraining", NULL, "albert.", "albert.pooler.weight", "predictions" DENSE,
     "sop_classifier.classifier.weight", NULL, 0},
    {"electra", TN_ELECTRA, TN_HF_FILES(electra_rows, electra_names), "ElectraModel", "ElectraForMaskedLM",
     "ElectraForPreTraining", NULL, "electra.", NULL, "generator_predictions" DENSE, NULL,
     "discriminator_predictions" DENSE, 0},
    {"modernbert", TN_MODERNBERT, TN_HF_FILES(modern_rows, modern_names), "ModernBertModel", "ModernBertForMaskedLM",
     NULL, NULL, "model.", NULL, "decoder.bias", NULL, NULL, 50283},
    {"modernbert", TN_MODERNBERT, TN_HF_FILES(modern_rows, modern_encoder_names), "ModernBertModel", NULL, NULL, NULL,
     "model.", NULL, NULL, NULL, NULL, 50283}, /* without the head for masked tokens; a task's head has its names */
    {"deberta-v2", TN_DEBERTA, TN_HF_FILES(deberta_rows, deberta_names), "DebertaV2Model", "DebertaV2ForMaskedLM",
     "DebertaV2Model", NULL, "deberta.", NULL, "lm_predictions.lm_head" DENSE, NULL, "mask_predictions" DENSE, 0},
    {"deberta-v2", TN_DEBERTA, TN_HF_FILES(deberta_rows, legacy_deberta_names), "DebertaV2Model",
     "DebertaV2ForMaskedLM", "DebertaV2Model", NULL, "deberta.", NULL, "cls.predictions.transform" DENSE, NULL,
     "mask_predictions" DENSE, 0},
};
/* clang-format on */
const char *const tn__bert_types[] = {
    "bert",    "roberta-prelayernorm", "tenon-bert", "roberta", "xlm-roberta", "camembert", "distilbert", "albert",
    "electra", "modernbert",           "deberta-v2", "xlnet",   NULL};
const char *const tn__bert_poolings[] = {"cls", "mean", NULL};
const char *const tn__bert_distance_norms[] = {"none", "layer_norm", NULL};

const tn__bert_format *tn__bert_format_of_type(const char *type)
{
    int i = 0;
    if (!strcmp(type, tn__xlnet_format.type)) return &tn__xlnet_format;
    while (strcmp(formats[i].type, type) != 0) i++;
    return &formats[i];
}

/* With norm_first the format is RobertaPreLayerNorm, whose masked-token head only has gelu and whose positions start
 * after padding; configs that fit neither that nor BERT get Tenon's own model_type, "tenon-bert". */
const tn__bert_format *tn__bert_format_of(const tn_bert_config *c)
{
    int i = 0;
    if (c->kind == TN_XLNET) return &tn__xlnet_format;
    if (c->kind == TN_BERT && c->norm_first) return &formats[c->padding >= 0 && !strcmp(c->activation, "gelu") ? 1 : 2];
    while (formats[i].kind != c->kind) i++;
    if (c->kind == TN_DEBERTA) return &formats[i + (c->embedding && c->embedding != c->dim)];
    return &formats[i + (c->kind == TN_MODERNBERT && c->no_words)];
}

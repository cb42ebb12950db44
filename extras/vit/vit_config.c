/* vit_config.c — the config of ViT and DeiT: defaults, checks, and config.json. */
#include "extras/vit/vit_private.h"

const char        tn__vit_type[] = "vit", tn__deit_type[] = "deit";
const char *const tn__vit_types[] = {tn__vit_type, tn__deit_type, NULL};

typedef tn__vit_stored stored;

/* Writes id2label and label2id. */
static void put_labels(tn_json_writer *w, const void *config)
{
    const tn_vit *m = ((const tn__vit_stored *)config)->model;
    const int64_t n = m->config.classes;
    const size_t  bytes = (size_t)n * sizeof(char *);
    const char  **names = n ? tn_mem_get(bytes) : NULL;
    for (int64_t i = 0; names && i < n; i++) names[i] = m->labels + m->label[i];
    if (!names) return;
    tn_hf_labels_put(w, n, names);
    tn_mem_put(names, bytes);
}

#define IDS(key, member) TN_HF(key, stored, member, .low = -1e7, .high = 1e7, .nullable = true, .omitted = true)
static const tn_hf_row rows[] = {
    {"architectures", TN_HF_NAME, .at = offsetof(stored, architecture)},
    TN_HF("attention_probs_dropout_prob", stored, c.attention_dropout, .high = 1, .below = true),
    IDS("bos_token_id", begin),
    IDS("decoder_start_token_id", decoder_begin),
    IDS("eos_token_id", end),
    TN_HF("hidden_act", stored, c.activation, .text = "gelu"),
    TN_HF("hidden_dropout_prob", stored, c.dropout, .high = 1, .below = true),
    TN_HF("hidden_size", stored, c.dim, .otherwise = 768, .low = 1, .high = 65536),
    TN_HF("image_size", stored, c.image, .otherwise = 224, .low = 1, .high = 65535),
    TN_HF("initializer_range", stored, c.init, .otherwise = 0.02, .high = 1),
    TN_HF("intermediate_size", stored, c.ff, .otherwise = 3072, .low = 1, .high = 1048576),
    TN_HF("layer_norm_eps", stored, c.eps, .otherwise = 1e-12, .low = 1e-15, .high = 0.1),
    {"model_type", TN_HF_TYPE, .at = offsetof(stored, type), .choices = tn__vit_types},
    TN_HF("num_attention_heads", stored, c.heads, .otherwise = 12, .low = 1, .high = 1024),
    TN_HF("num_channels", stored, c.channels, .otherwise = 3, .low = 1, .high = 1024),
    TN_HF("num_hidden_layers", stored, c.layers, .otherwise = 12, .low = 1, .high = 1024),
    IDS("pad_token_id", padding),
    TN_HF("patch_size", stored, c.patch, .otherwise = 16, .low = 1, .high = 65535),
    {"pooler_act", TN_HF_MUST, .text = "tanh"},
    TN_HF("pooler_output_size", stored, pooler, .low = 0, .high = 1048576),
    {"qkv_bias", TN_HF_MUST, .otherwise = true},
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    {"is_encoder_decoder", TN_HF_MUST, .silent = true},
    {"pruned_heads", TN_HF_EMPTY, .silent = true},
    {"encoder_stride", TN_HF_ANY, .silent = true}, /* of a head that is not loaded */
    {"id2label", TN_HF_PUT, .put = put_labels},    /* and label2id; vit_files.c reads id2label */
};
static const tn_hf_files table = {rows, TN_HF_COUNT_(rows), NULL, 0};
const tn_hf_files       *tn__vit_table(void) { return &table; }

tn_vit_config tn_vit_size(const char *name)
{
    static const tn_model_size sizes[] = {{"tiny", 48, 4, 3, 0, 0},
                                          {"mini", 64, 6, 4, 0, 0},
                                          {"small", 192, 12, 3, 0, 0},
                                          {"base", 768, 12, 12, 0, 0},
                                          {0}};
    const tn_model_size       *s = tn_model_size_find(__func__, sizes, name);
    return s ? TN_WITH(tn_vit_config, TN_VIT_DEFAULTS, .dim = s->dim, .layers = s->layers, .heads = s->heads)
             : (tn_vit_config){.zero_ = 0};
}

bool tn__vit_complete(const char *who, tn_vit_config *c)
{
    if (c->ff == 0) c->ff = c->dim <= INT64_MAX / 4 ? 4 * c->dim : 0;
    if (!c->activation) c->activation = "gelu";
    if (c->teacher) c->distilled = true;
    const stored s = {.c = *c, .pooler = c->pooler};
    if (!tn_hf_init_and_activation(who, c->init, &c->activation) || !tn_hf_config_within(who, &table, &s)) return false;
    if (c->classes < 0 || c->classes > 10000000)
        return tn_raise_false(TN_EINVAL, "%s: .classes is %lld, but must be from 0 to 10000000", who,
                              (long long)c->classes);
    if (c->patch > c->image)
        return tn_raise_false(TN_EINVAL, "%s: .patch is %lld, but must be at most .image %lld", who,
                              (long long)c->patch, (long long)c->image);
    if (c->teacher && !c->classes) return tn_raise_false(TN_EINVAL, "%s: .teacher needs .classes", who);
    return true;
}

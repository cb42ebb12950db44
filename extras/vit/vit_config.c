/* vit_config.c — the config of ViT and DeiT: defaults, checks, and config.json. */
#include "models/files/sizes.h"
#include "extras/vit/vit_private.h"

const char        tn__vit_type[] = "vit", tn__deit_type[] = "deit";
const char *const tn__vit_types[] = {tn__vit_type, tn__deit_type, NULL};

typedef tn__vit_stored stored;

static const tn_hf_row rows[] = {
    {"architectures", TN_HF_NAME, .at = offsetof(stored, architecture)},
    TN_HF("attention_probs_dropout_prob", stored, c.attention_dropout, .high = 1, .below = true),
    TN__IDS("bos_token_id", stored, begin),
    TN__IDS("decoder_start_token_id", stored, decoder_begin),
    TN__IDS("eos_token_id", stored, end),
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
    TN__IDS("pad_token_id", stored, padding),
    TN_HF("patch_size", stored, c.patch, .otherwise = 16, .low = 1, .high = 65535),
    {"pooler_act", TN_HF_MUST, .text = "tanh"},
    TN_HF("pooler_output_size", stored, pooled, .low = 0, .high = 1048576),
    {"qkv_bias", TN_HF_MUST, .otherwise = true},
    {"torch_dtype", TN_HF_NAME, .text = "float32"},
    {"is_encoder_decoder", TN_HF_MUST, .silent = true},
    {"pruned_heads", TN_HF_EMPTY, .silent = true},
    TN__UNUSED("encoder_stride id2label"), /* of a head that is not loaded; vit_files.c reads and writes id2label */
};
static const tn_hf_files table = {rows, TN_HF_COUNT_(rows), NULL, 0};
const tn_hf_files       *tn__vit_table(void) { return &table; }

tn_vit_config tn_vit_size(const char *name)
{
    static const tn__model_size sizes[] = {{"tiny", 48, 4, 3, 0, 0},
                                           {"mini", 64, 6, 4, 0, 0},
                                           {"small", 192, 12, 3, 0, 0},
                                           {"base", 768, 12, 12, 0, 0},
                                           {0}};
    const tn__model_size       *s = tn__model_size_find(__func__, sizes, name);
    return s ? TN_WITH(tn_vit_config, TN_VIT_DEFAULTS, .dim = s->dim, .layers = s->layers, .heads = s->heads)
             : (tn_vit_config){.zero_ = 0};
}

bool tn__vit_complete(const char *who, tn_vit_config *c)
{
    if (c->ff == 0) c->ff = c->dim <= INT64_MAX / 4 ? 4 * c->dim : 0;
    if (!c->activation) c->activation = "gelu";
    if (c->teacher) c->distilled = true;
    const stored s = {.c = *c, .pooled = c->pooler};
    if (!tn__init_and_activation(who, c->init, &c->activation) || !tn_hf_config_within(who, &table, &s) ||
        !tn__within(who, "classes", c->classes, 0, 10000000) || !tn__within(who, "pooler", c->pooler, 0, 1048576))
        return false;
    if (c->patch > c->image)
        return tn_raise_false(TN_EINVAL, "%s: .patch is %lld, but must be at most .image %lld", who,
                              (long long)c->patch, (long long)c->image);
    if (c->teacher && !c->classes) return tn_raise_false(TN_EINVAL, "%s: .teacher needs .classes", who);
    return true;
}

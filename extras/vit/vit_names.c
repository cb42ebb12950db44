/* vit_names.c — the names of ViT's and DeiT's weights in files. Layers have two sets of names: those that are written,
 * and transformers 5's module names, which are only read. */
#include "extras/vit/vit_private.h"

#include <string.h>

#define LAYER "vit.encoder.layer.*."
#define NEW "vit.layers.*."
#define OURS "vit.encoder.layers.*."
#define THIRD(name, i)                                                                                              \
    TN_RENAME(LAYER "attention.attention." name ".weight", OURS "self_attn.in_proj_weight", .part = i, .parts = 3), \
        TN_RENAME(LAYER "attention.attention." name ".bias", OURS "self_attn.in_proj_bias", .part = i, .parts = 3)
#define NAMED(name, as) TN_RENAME(NEW name, LAYER as, .load_only = true)

static const tn_rename rules[] = {
    TN_RENAME("deit", "vit"), /* only DeiT */
    /* of files with only the encoder */
    TN_RENAME("embeddings", "vit.embeddings", .load_only = true),
    TN_RENAME("encoder", "vit.encoder", .load_only = true),
    TN_RENAME("layers", "vit.layers", .load_only = true),
    TN_RENAME("layernorm", "vit.layernorm", .load_only = true),
    TN_RENAME("pooler", "vit.pooler", .load_only = true),
    /* heads for pre-training with masked patches */
    TN_RENAME("vit.embeddings.mask_token", NULL),
    TN_RENAME("decoder", NULL),
    /* a layer */
    NAMED("attention.q_proj", "attention.attention.query"),
    NAMED("attention.k_proj", "attention.attention.key"),
    NAMED("attention.v_proj", "attention.attention.value"),
    NAMED("attention.o_proj", "attention.output.dense"),
    NAMED("mlp.fc1", "intermediate.dense"),
    NAMED("mlp.fc2", "output.dense"),
    NAMED("layernorm_before", "layernorm_before"),
    NAMED("layernorm_after", "layernorm_after"),
    THIRD("query", 0),
    THIRD("key", 1),
    THIRD("value", 2),
    TN_RENAME(LAYER "attention.output.dense", OURS "self_attn.out_proj"),
    TN_RENAME(LAYER "layernorm_before", OURS "norm1"),
    TN_RENAME(LAYER "layernorm_after", OURS "norm2"),
    TN_RENAME(LAYER "intermediate.dense", OURS "linear1"),
    TN_RENAME(LAYER "output.dense", OURS "linear2"),
    TN_RENAME("vit.layernorm", "vit.encoder.norm"),
};
enum { RULES = sizeof rules / sizeof *rules };

tn_hf_files tn__vit_files(bool distilled)
{
    tn_hf_files f = *tn__vit_table();
    f.rules = rules + !distilled, f.renames = RULES - !distilled;
    return f;
}

/* The names of adapters are those of modules in transformers 5, in which PEFT looks for them. */
int tn__vit_names(const void *m, tn_rename *to, int room)
{
    const tn_hf_files f = tn__vit_files(((const tn_vit *)m)->config.distilled);
    const int         n = f.renames < room ? f.renames : room;
    if (n > 0) memcpy(to, f.rules, (size_t)n * sizeof *to);
    for (int i = 0; i < n; i++)
        if (!strncmp(to[i].file, NEW, 10)) to[i].load_only = false;
    return n;
}

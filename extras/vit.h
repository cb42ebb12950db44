/* vit.h — ViT and DeiT: a Transformer encoder that reads an image as a sequence of patches. Part of extras.h.
 *
 *     tn_vit    *vit = tn_vit_new(.image = 28, .patch = 4, .channels = 1, .classes = 10, .dim = 64, .heads = 4);
 *     tn_tensor *loss = tn_cross_entropy(tn_call(vit, x), y); // x: f32 [B, 1, 28, 28]
 *
 *     tn_vit *vit = tn_vit_load("vit-base"); // a directory in Hugging Face's format; x: from tn_image_ready
 *     puts(tn_vit_label(vit, tn_get_i64(tn_argmax(tn_call(vit, tn_unsqueeze(x, 0)), -1, false), 0))); */
#ifndef TENON_EXTRAS_VIT_H
#define TENON_EXTRAS_VIT_H
#include "../data/data.h"
#include "../models/decoding.h"
#include "../nn/nn.h"
TN_C_BEGIN_

typedef struct tn_vit_config {
    int           zero_;
    int64_t image TN_IS(224), patch TN_IS(16), channels TN_IS(3); /* image and patch: side in pixels */
    int64_t dim   TN_IS(768), layers TN_IS(12), heads TN_IS(12);
    int64_t       ff, classes, pooler; /* ff 0: 4 dim; classes 0: no classifier; pooler: width, 0: none */
    double        dropout, attention_dropout;
    double init   TN_IS(0.02), eps TN_IS(1e-12);
    const char   *activation;         /* Hugging Face's name; NULL: "gelu" */
    bool          distilled, teacher; /* DeiT: a second token; its own classifier, logits are the mean of both */
    int           end_;
} TN_KEYWORDS_ONLY tn_vit_config;
#define TN_VIT_DEFAULTS \
    .image = 224, .patch = 16, .channels = 3, .dim = 768, .layers = 12, .heads = 12, .init = 0.02, .eps = 1e-12
typedef struct {
    tn_module     base;
    tn_vit_config config; /* with defaults filled in */
    tn_conv2d    *patches;
    tn_tensor    *token, *distillation, *positions; /* [1, 1, dim]; [1, tokens + patches, dim] */
    tn_dropout   *dropout;
    tn_blocks    *encoder;
    tn_linear    *pooler, *classifier, *taught;       /* these and distillation: NULL if the model has none */
    char         *labels;                             /* "cat\0dog\0…"; without names "0", "1", … */
    int64_t      *label;                              /* offset of each label in labels */
    tn_token_ids  begin, end, padding, decoder_begin; /* of config.json; they do not change results */
} tn_vit;
/* The defaults, with .dim, .layers and .heads of "tiny", "mini", "small" (DeiT-Ti) or "base". Another name raises. */
TN_RETURNS_CONFIG_(TN_API tn_vit_config tn_vit_size(const char *name);)
TN_API tn_vit *tn_vit_create(tn_vit_config c); /* tn_call returns logits, or without classes hidden states */

typedef struct tn_vit_args {
    int         zero_;
    tn_tensor  *x;           /* [B, channels, H, W] */
    bool        interpolate; /* accept other image sizes: the position embeddings are interpolated */
    tn_tensor **weights;     /* out, may be NULL: one tensor per layer, attention weights [B, heads, T, T] */
    int         end_;
} TN_KEYWORDS_ONLY tn_vit_args;
TN_API tn_tensor  *tn_vit_run(tn_vit *m, tn_vit_args a); /* hidden states [B, T, dim]: tokens, then patches by row */
/* From the hidden states y: tanh of a projection of the first token, [B, pooler]; the logits, [B, classes]. parts, may
 * be NULL: with a teacher, the logits of both classifiers. */
TN_API tn_tensor *tn_vit_pooled(tn_vit *m, tn_tensor *y);
TN_API tn_tensor *tn_vit_logits(tn_vit *m, tn_tensor *y, tn_tensor *parts[2]);
/* Names of the classes (id2label); without names tn_vit_label returns the class number, "7". */
TN_API tn_status   tn_vit_set_labels(tn_vit *m, const char *const *names);
TN_API const char *tn_vit_label(const tn_vit *m, int64_t i);
/* Directories of ViTModel, ViTForImageClassification, DeiTModel, DeiTForImageClassification and …WithTeacher. */
TN_API tn_vit   *tn_vit_load(const char *dir);
TN_API tn_status tn_vit_save(tn_vit *m, const char *dir) TN_CHECKED;

TN_C_END_
#define tn_vit_new(...) TN_NEW_(tn_vit_create, tn_vit_config, TN_VIT_DEFAULTS, __VA_ARGS__)
#define tn_vit_forward(m, ...) TN_CALL_(tn_vit_run(m, TN_ARGS1_(tn_vit_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#endif

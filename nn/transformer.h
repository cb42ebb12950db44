/* transformer.h — the Transformer: its layers, the stacks of them, and the head of a masked language model. Part of
 * nn.h: include that.
 *
 *     tn_transformer *m = tn_transformer_new(.dim = 256, .heads = 8);
 *     tn_tensor *y = tn_transformer_forward(m, src, tgt, .causal = true, .src_blocked_keys = padding,
 *                                           .memory_blocked_keys = padding);
 *
 * Names, defaults and initialisation are PyTorch's, but batches come first, and the layers of a stack begin with
 * draws of their own instead of copies of the first. src and tgt are vectors: embeddings and positions come before,
 * the projection to the vocabulary after. */
#ifndef TENON_NN_TRANSFORMER_H
#define TENON_NN_TRANSFORMER_H

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- layers ------------------------------------------------------------------------------------------------------ */

typedef struct tn_transformer_layer_config {
    int            zero_;
    int64_t        dim, heads;
    int64_t ff     TN_IS(2048); /* the width between the two linear layers */
    double dropout TN_IS(0.1);
    tn_tensor *(*activation)(
        tn_tensor *x);      /* NULL: tn_relu; tn_gelu, tn_gelu_tanh, tn_silu, or a function of your own */
    double eps TN_IS(1e-5); /* of the norms */
    bool       norm_first;  /* x + f(norm(x)), not norm(x + f(x)) */
    bool       no_bias;
    bool       time_first; /* [T, B, dim] */
    tn_dtype   dtype;
    int        end_;
} TN_KEYWORDS_ONLY tn_transformer_layer_config;
#define TN_TRANSFORMER_LAYER_DEFAULTS .ff = 2048, .dropout = 0.1, .eps = 1e-5

typedef struct {
    tn_module base;
    tn_tensor *(*activation)(tn_tensor *x);
    bool           norm_first;
    tn_mha        *self_attn;
    tn_linear     *linear1, *linear2;
    tn_layer_norm *norm1, *norm2;
    tn_dropout    *dropout, *dropout1, *dropout2;
} tn_transformer_encoder_layer;
TN_API tn_transformer_encoder_layer *tn_transformer_encoder_layer_create(tn_transformer_layer_config c);

typedef struct {
    tn_module base;
    tn_tensor *(*activation)(tn_tensor *x);
    bool           norm_first;
    tn_mha        *self_attn, *multihead_attn;
    tn_linear     *linear1, *linear2;
    tn_layer_norm *norm1, *norm2, *norm3;
    tn_dropout    *dropout, *dropout1, *dropout2, *dropout3;
} tn_transformer_decoder_layer;
TN_API tn_transformer_decoder_layer *tn_transformer_decoder_layer_create(tn_transformer_layer_config c);

/* ---- stacks ------------------------------------------------------------------------------------------------------ */

typedef struct tn_transformer_stack_config {
    int     zero_;
    int64_t layers;
    bool    final_norm;                 /* a norm behind the last layer (in PyTorch it is given as `norm`) */
    int64_t dim, heads, ff TN_IS(2048); /* from here on as of a layer */
    double dropout TN_IS(0.1);
    tn_tensor *(*activation)(tn_tensor *x);
    double eps TN_IS(1e-5);
    bool       norm_first, no_bias, time_first;
    tn_dtype   dtype;
    int        end_;
} TN_KEYWORDS_ONLY tn_transformer_stack_config;
#define TN_TRANSFORMER_STACK_DEFAULTS .ff = 2048, .dropout = 0.1, .eps = 1e-5

typedef struct {
    tn_module       base;
    tn_module_list *layers; /* tn_transformer_encoder_layer *layer = tn_at(m->layers, 0) */
    tn_layer_norm  *norm;   /* or NULL */
} tn_transformer_encoder;
typedef struct {
    tn_module       base;
    tn_module_list *layers;
    tn_layer_norm  *norm;
} tn_transformer_decoder;
TN_API tn_transformer_encoder *tn_transformer_encoder_create(tn_transformer_stack_config c);
TN_API tn_transformer_decoder *tn_transformer_decoder_create(tn_transformer_stack_config c);

/* ---- running them ------------------------------------------------------------------------------------------------ */

typedef struct tn_encoder_args {
    int          zero_;
    tn_tensor   *x;                      /* [B, T, dim] */
    tn_tensor   *blocked, *blocked_keys; /* of the self-attention, as of tn_mha_forward */
    bool         causal;
    tn_tensor  **weights; /* out, may be NULL: [B, heads, T, S]; of a stack an array, one for each layer */
    tn_kv_cache *cache;   /* x is what comes after the positions in the cache */
    int64_t      layer;   /* of the cache, for a layer that is called by itself */
    int          end_;
} TN_KEYWORDS_ONLY tn_encoder_args;
TN_API tn_tensor  *tn_transformer_encoder_layer_run(tn_transformer_encoder_layer *m, tn_encoder_args a);
TN_API tn_tensor  *tn_transformer_encoder_run(tn_transformer_encoder *m, tn_encoder_args a);

typedef struct tn_decoder_args {
    int          zero_;
    tn_tensor   *x, *memory;                           /* [B, T, dim], [B, S, dim] */
    tn_tensor   *blocked, *blocked_keys;               /* of the self-attention */
    bool         causal;                               /* likewise */
    tn_tensor   *memory_blocked, *memory_blocked_keys; /* of the cross-attention */
    tn_tensor  **weights, **memory_weights;            /* out, as above */
    tn_kv_cache *cache;                                /* then the memory may be left out after the first call */
    int64_t      layer;
    int          end_;
} TN_KEYWORDS_ONLY tn_decoder_args;
TN_API tn_tensor  *tn_transformer_decoder_layer_run(tn_transformer_decoder_layer *m, tn_decoder_args a);
TN_API tn_tensor  *tn_transformer_decoder_run(tn_transformer_decoder *m, tn_decoder_args a);

/* Caches that fit: for so many rows, and so many positions in each (and in each of the memory). */
TN_API tn_kv_cache *tn_transformer_encoder_cache(tn_transformer_encoder *m, int64_t batch, int64_t length);
TN_API tn_kv_cache *tn_transformer_decoder_cache(tn_transformer_decoder *m, int64_t batch, int64_t length,
                                                 int64_t memory_length);

/* ---- both -------------------------------------------------------------------------------------------------------- */

typedef struct tn_transformer_config {
    int                    zero_;
    int64_t dim            TN_IS(512), heads TN_IS(8);
    int64_t encoder_layers TN_IS(6), decoder_layers TN_IS(6);
    int64_t ff             TN_IS(2048); /* from here on as of a layer */
    double dropout         TN_IS(0.1);
    tn_tensor *(*activation)(tn_tensor *x);
    double eps TN_IS(1e-5);
    bool       norm_first, no_bias, time_first;
    tn_dtype   dtype;
    int        end_;
} TN_KEYWORDS_ONLY tn_transformer_config;
#define TN_TRANSFORMER_DEFAULTS \
    .dim = 512, .heads = 8, .encoder_layers = 6, .decoder_layers = 6, .ff = 2048, .dropout = 0.1, .eps = 1e-5
typedef struct {
    tn_module               base;
    tn_transformer_encoder *encoder; /* both with a final norm */
    tn_transformer_decoder *decoder;
} tn_transformer;
TN_API tn_transformer *tn_transformer_create(tn_transformer_config c); /* all matrices Xavier-uniform */

typedef struct tn_transformer_args {
    int        zero_;
    tn_tensor *src, *tgt; /* [B, S, dim], [B, T, dim] */
    tn_tensor *src_blocked, *src_blocked_keys;
    tn_tensor *blocked, *blocked_keys; /* of tgt */
    bool       causal;                 /* likewise */
    tn_tensor *memory_blocked, *memory_blocked_keys;
    int        end_;
} TN_KEYWORDS_ONLY tn_transformer_args;
TN_API tn_tensor  *tn_transformer_run(tn_transformer *m, tn_transformer_args a); /* [B, T, dim] */

/* ---- the head of a masked language model ------------------------------------------------------------------------- */

/* norm(gelu(x W + b)) Eᵀ + bias with the embedding E; named as in Hugging Face's BERT below cls.predictions. */
typedef struct tn_mlm_head_config {
    int        zero_;
    tn_tensor *embedding;                   /* [words, dim]: the decoder's weight, tied */
    tn_tensor *(*activation)(tn_tensor *x); /* NULL: tn_gelu */
    double eps TN_IS(1e-5);                 /* BERT has 1e-12 */
    int        end_;
} TN_KEYWORDS_ONLY tn_mlm_head_config;
#define TN_MLM_HEAD_DEFAULTS .eps = 1e-5
typedef struct {
    tn_module base;
    tn_tensor *(*activation)(tn_tensor *x);
    tn_tensor     *weight, *bias; /* decoder.weight [words, dim]; bias [words], also named decoder.bias */
    tn_linear     *dense;         /* transform.dense */
    tn_layer_norm *norm;          /* transform.LayerNorm */
} tn_mlm_head;
TN_API tn_mlm_head *tn_mlm_head_create(tn_mlm_head_config c);            /* x [..., dim] -> [..., words] */
TN_API tn_tensor   *tn_mlm_head_transform(tn_mlm_head *m, tn_tensor *x); /* all but the decoder: [..., dim] */
/* The cross-entropy of its scores, which are never all held at once: tn_mlm_head_loss(m, x, .target = t, ...), with
 * tn_linear_cross_entropy's options. */
TN_API tn_tensor *tn_mlm_head_loss_run(tn_mlm_head *m, tn_linear_cross_entropy_args a);

#ifdef __cplusplus
}
#else
#define tn_transformer_encoder_layer_new(...)                                                                \
    TN_NEW_(tn_transformer_encoder_layer_create, tn_transformer_layer_config, TN_TRANSFORMER_LAYER_DEFAULTS, \
            __VA_ARGS__)
#define tn_transformer_decoder_layer_new(...)                                                                \
    TN_NEW_(tn_transformer_decoder_layer_create, tn_transformer_layer_config, TN_TRANSFORMER_LAYER_DEFAULTS, \
            __VA_ARGS__)
#define tn_transformer_encoder_new(...) \
    TN_NEW_(tn_transformer_encoder_create, tn_transformer_stack_config, TN_TRANSFORMER_STACK_DEFAULTS, __VA_ARGS__)
#define tn_transformer_decoder_new(...) \
    TN_NEW_(tn_transformer_decoder_create, tn_transformer_stack_config, TN_TRANSFORMER_STACK_DEFAULTS, __VA_ARGS__)
#define tn_transformer_new(...) \
    TN_NEW_(tn_transformer_create, tn_transformer_config, TN_TRANSFORMER_DEFAULTS, __VA_ARGS__)
#define tn_mlm_head_loss(m, ...)                                                                                       \
    TN_CALL_(tn_mlm_head_loss_run(m, TN_ARGS1_(tn_linear_cross_entropy_args, TN_LINEAR_CROSS_ENTROPY_ARGS_DEFAULTS, x, \
                                               __VA_ARGS__, .zero_ = 0)))
#define tn_mlm_head_new(...) TN_NEW_(tn_mlm_head_create, tn_mlm_head_config, TN_MLM_HEAD_DEFAULTS, __VA_ARGS__)
#define tn_transformer_encoder_layer_forward(m, ...) \
    TN_CALL_(                                        \
        tn_transformer_encoder_layer_run(m, TN_ARGS1_(tn_encoder_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, .zero_ = 0)))
#define tn_transformer_encoder_forward(m, ...) \
    TN_CALL_(tn_transformer_encoder_run(m, TN_ARGS1_(tn_encoder_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, .zero_ = 0)))
#define tn_transformer_decoder_layer_forward(m, ...) \
    TN_CALL_(tn_transformer_decoder_layer_run(       \
        m, TN_ARGS2_(tn_decoder_args, TN_NO_DEFAULTS_, x, memory, __VA_ARGS__, .zero_ = 0)))
#define tn_transformer_decoder_forward(m, ...) \
    TN_CALL_(tn_transformer_decoder_run(       \
        m, TN_ARGS2_(tn_decoder_args, TN_NO_DEFAULTS_, x, memory, __VA_ARGS__, .zero_ = 0)))
#define tn_transformer_forward(m, ...) \
    TN_CALL_(tn_transformer_run(m, TN_ARGS2_(tn_transformer_args, TN_NO_DEFAULTS_, src, tgt, __VA_ARGS__, .zero_ = 0)))
#endif
#endif

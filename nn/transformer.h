/* transformer.h — the Transformer: its block, stacks of blocks, and the head of a masked language model. Part of nn.h:
 * include that.
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

/* ---- a block ----------------------------------------------------------------------------------------------------- */

typedef enum { TN_NORM_LAYER = 0, TN_NORM_RMS } tn_norm_kind;

/* A block of a Transformer, or a stack of them: as it stands, PyTorch's encoder layer. With .activation_dropout = 0 and
 *     LLaMA: .norm = TN_NORM_RMS, .norm_first, .rotary, .gated, .activation = tn_silu, .no_bias = true, .kv_heads
 *     GPT-2: .norm_first, .activation = tn_gelu_tanh;   GPT-NeoX: and .parallel, .rotary;   GPT-J: and .one_norm */
typedef struct tn_block_config {
    int            zero_;
    int64_t        layers;     /* of a stack */
    int64_t        groups;     /* of a stack: its layers share so many blocks, as in ALBERT; 0: each has its own */
    bool           final_norm; /* of a stack: a norm behind the last layer (in PyTorch it is given as `norm`) */
    int64_t        dim, heads;
    int64_t        kv_heads, head_dim; /* as of tn_mha_new */
    int64_t ff     TN_IS(2048);        /* the width between the two linear layers */
    bool           gated;              /* linear2(activation(gate(x)) · linear1(x)) */
    double dropout TN_IS(0.1);
    double attention_dropout  TN_IS(-1);    /* of the attention's weights; below 0: as dropout */
    double activation_dropout TN_IS(-1);    /* behind the activation, where few models have one; below 0: as dropout */
    tn_tensor *(*activation)(tn_tensor *x); /* NULL: tn_relu; tn_gelu, tn_gelu_tanh, tn_silu, or one of your own */
    tn_norm_kind   norm;
    double eps     TN_IS(1e-5); /* of the norms */
    bool           norm_first;  /* x + f(norm(x)), not norm(x + f(x)) */
    bool           parallel;    /* norm_first: x + attention(norm1(x)) + ff(norm2(x)) */
    bool           one_norm;    /* ... and norm2 is norm1 */
    double         scale;       /* of the scores, as of tn_mha_new */
    int64_t        window;      /* of the self-attention, as of tn_mha_new ... */
    int64_t        full_layers; /* ... of a stack: the first so many layers have none */
    bool           memory;      /* a decoder's: between the two it attends to a memory */
    bool           rotary;      /* positions as of tn_mha_new; sinusoids and tables are added to x before */
    tn_rope_config rope;
    int64_t        relative; /* or tn_relative_positions, so many buckets; in a stack the first layer's serve all */
    int64_t relative_distance TN_IS(128);
    bool                      relative_causal;
    bool                      no_bias;           /* of linear layers and norms */
    bool                      no_attention_bias; /* of the attention */
    bool     no_out_bias, no_ff_bias;            /* of the attention's last projection; of the linear layers between */
    bool     time_first;                         /* [T, B, dim] */
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_block_config;
#define TN_BLOCK_DEFAULTS                                                                       \
    .ff = 2048, .dropout = 0.1, .attention_dropout = -1, .activation_dropout = -1, .eps = 1e-5, \
    .rope = {TN_ROPE_DEFAULTS}, .relative_distance = 128

typedef struct {
    tn_module base;
    tn_tensor *(*activation)(tn_tensor *x);
    bool                   norm_first, parallel;
    tn_mha                *self_attn, *multihead_attn; /* from here on NULL where there is none */
    tn_linear             *linear1, *gate, *linear2;
    tn_layer_norm         *norm1, *norm2, *norm3; /* or tn_rms_norm, which is the same struct */
    tn_dropout            *dropout, *dropout1, *dropout2, *dropout3;
    tn_relative_positions *relative;
} tn_block;
typedef struct {
    tn_module       base;
    tn_module_list *layers; /* tn_block *block = tn_at(m->layers, 0) */
    tn_layer_norm  *norm;   /* or NULL */
    int64_t         depth;  /* layers: more than blocks, where they share */
} tn_blocks;
TN_API tn_block  *tn_block_create(tn_block_config c);
TN_API tn_blocks *tn_blocks_create(tn_block_config c);

typedef struct tn_block_args {
    int          zero_;
    tn_tensor   *x;                                    /* [B, T, dim] */
    tn_tensor   *memory;                               /* [B, S, dim] */
    tn_tensor   *blocked, *blocked_keys;               /* of the self-attention, as of tn_mha_forward */
    bool         causal;                               /* likewise */
    tn_tensor   *memory_blocked, *memory_blocked_keys; /* of the attention to the memory */
    tn_tensor  **weights, **memory_weights; /* out, may be NULL: [B, heads, T, S]; of a stack an array each, one for
                                               each layer */
    tn_kv_cache *cache; /* x is what comes after the positions in it; the memory may be left out after the first call */
    int64_t      layer; /* of the cache, for a block that is called by itself */
    tn_tensor   *angles; /* as of tn_mha_forward */
    tn_tensor   *bias;   /* as of tn_relative_positions_forward; NULL: of the block's own, if it has them */
    int          end_;
} TN_KEYWORDS_ONLY tn_block_args;
TN_API tn_tensor  *tn_block_run(tn_block *m, tn_block_args a);
TN_API tn_tensor  *tn_blocks_run(tn_blocks *m, tn_block_args a);
/* A cache that fits `batch` rows of at most `length` positions, and memory_length of the memory (0: none). */
TN_API tn_kv_cache *tn_blocks_cache(tn_blocks *m, int64_t batch, int64_t length, int64_t memory_length);
/* tn_kv_cache_forget, and keys behind `from` are turned to the positions that they have now, which must be rotary. */
TN_API tn_status tn_blocks_forget(tn_blocks *m, tn_kv_cache *cache, int64_t from, int64_t count);

/* By PyTorch's names: a block without and with a memory, and stacks of them. */
typedef tn_block  tn_transformer_encoder_layer, tn_transformer_decoder_layer;
typedef tn_blocks tn_transformer_encoder, tn_transformer_decoder;
TN_API tn_block  *tn_transformer_encoder_layer_create(tn_block_config c);
TN_API tn_block  *tn_transformer_decoder_layer_create(tn_block_config c);
TN_API tn_blocks *tn_transformer_encoder_create(tn_block_config c);
TN_API tn_blocks *tn_transformer_decoder_create(tn_block_config c);

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
    int64_t    in;                          /* x is [..., in]; 0: dim */
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
TN_API tn_mlm_head *tn_mlm_head_create(tn_mlm_head_config c);            /* x [..., in] -> [..., words] */
TN_API tn_tensor   *tn_mlm_head_transform(tn_mlm_head *m, tn_tensor *x); /* all but the decoder: [..., dim] */
/* The cross-entropy of its scores, which are never all held at once: tn_mlm_head_loss(m, x, .target = t, ...), with
 * tn_linear_cross_entropy's options. */
TN_API tn_tensor *tn_mlm_head_loss_run(tn_mlm_head *m, tn_linear_cross_entropy_args a);

#ifdef __cplusplus
}
#else
#define TN_BLOCKS_OF_(create, ...) TN_NEW_(create, tn_block_config, TN_BLOCK_DEFAULTS, __VA_ARGS__)
#define tn_block_new(...) TN_BLOCKS_OF_(tn_block_create, __VA_ARGS__)
#define tn_blocks_new(...) TN_BLOCKS_OF_(tn_blocks_create, __VA_ARGS__)
#define tn_block_forward(m, ...) \
    TN_CALL_(tn_block_run(m, TN_ARGS1_(tn_block_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, .zero_ = 0)))
#define tn_blocks_forward(m, ...) \
    TN_CALL_(tn_blocks_run(m, TN_ARGS1_(tn_block_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, .zero_ = 0)))
#define tn_transformer_encoder_layer_new(...) TN_BLOCKS_OF_(tn_transformer_encoder_layer_create, __VA_ARGS__)
#define tn_transformer_decoder_layer_new(...) TN_BLOCKS_OF_(tn_transformer_decoder_layer_create, __VA_ARGS__)
#define tn_transformer_encoder_new(...) TN_BLOCKS_OF_(tn_transformer_encoder_create, __VA_ARGS__)
#define tn_transformer_decoder_new(...) TN_BLOCKS_OF_(tn_transformer_decoder_create, __VA_ARGS__)
#define tn_transformer_encoder_layer_forward(m, ...) tn_block_forward(m, __VA_ARGS__)
#define tn_transformer_encoder_forward(m, ...) tn_blocks_forward(m, __VA_ARGS__)
#define tn_transformer_decoder_layer_forward(m, ...) \
    TN_CALL_(tn_block_run(m, TN_ARGS2_(tn_block_args, TN_NO_DEFAULTS_, x, memory, __VA_ARGS__, .zero_ = 0)))
#define tn_transformer_decoder_forward(m, ...) \
    TN_CALL_(tn_blocks_run(m, TN_ARGS2_(tn_block_args, TN_NO_DEFAULTS_, x, memory, __VA_ARGS__, .zero_ = 0)))
#define tn_transformer_encoder_cache(m, batch, length) tn_blocks_cache(m, batch, length, 0)
#define tn_transformer_decoder_cache(m, batch, length, memory_length) tn_blocks_cache(m, batch, length, memory_length)
#define tn_transformer_new(...) \
    TN_NEW_(tn_transformer_create, tn_transformer_config, TN_TRANSFORMER_DEFAULTS, __VA_ARGS__)
#define tn_mlm_head_loss(m, ...)                                                                                       \
    TN_CALL_(tn_mlm_head_loss_run(m, TN_ARGS1_(tn_linear_cross_entropy_args, TN_LINEAR_CROSS_ENTROPY_ARGS_DEFAULTS, x, \
                                               __VA_ARGS__, .zero_ = 0)))
#define tn_mlm_head_new(...) TN_NEW_(tn_mlm_head_create, tn_mlm_head_config, TN_MLM_HEAD_DEFAULTS, __VA_ARGS__)
#define tn_transformer_forward(m, ...) \
    TN_CALL_(tn_transformer_run(m, TN_ARGS2_(tn_transformer_args, TN_NO_DEFAULTS_, src, tgt, __VA_ARGS__, .zero_ = 0)))
#endif
#endif

/* transformer.h — the Transformer: blocks, stacks of blocks, and the head of a masked language model. Part of nn.h:
 * include that.
 *
 *     tn_transformer *m = tn_transformer_new(.dim = 256, .heads = 8);
 *     tn_tensor *y = tn_transformer_forward(m, src, tgt, .causal = true, .src_key_padding_mask = padding,
 *                                           .memory_key_padding_mask = padding);
 *
 * Names, defaults and initialisation are PyTorch's, with two differences: the batch is the first dim, and each layer of
 * a stack draws its own initial values instead of copying the first layer's. src and tgt are embeddings with positions
 * added; the model has no projection to the vocabulary. */
#ifndef TENON_NN_TRANSFORMER_H
#define TENON_NN_TRANSFORMER_H

#include "attention.h"
#include "disentangled.h"
#include "experts.h"

TN_C_BEGIN_

/* ---- a block ----------------------------------------------------------------------------------------------------- */

typedef enum { TN_NORM_LAYER = 0, TN_NORM_RMS } tn_norm_kind;
typedef struct {
    tn_norm_kind kind;
    double       eps;     /* epsilon; 0: 1e-5 */
    bool         add_one; /* factors of an RMS norm are 1 + weight (see tn_rms_norm_config) */
} tn_block_norm;

/* Where the norms are, for attention and feed-forward f in turn. A decoder has one of the first two. */
typedef enum {
    TN_NORM_LAST = 0,     /* norm(x + f(x)): the Transformer's paper, BERT */
    TN_NORM_FIRST,        /* x + f(norm(x)): GPT-2, LLaMA; PyTorch's norm_first */
    TN_NORM_RESULT,       /* x + norm(f(x)): OLMo 2 */
    TN_NORM_SANDWICH,     /* x + norm(f(norm(x))): Gemma 2 and 3 */
    TN_NORM_PARALLEL,     /* x + attention(norm1(x)) + feed_forward(norm2(x)): GPT-NeoX */
    TN_NORM_PARALLEL_ONE, /* x + attention(norm1(x)) + feed_forward(norm1(x)): GPT-J */
    TN_NORM_FIRST_HALF    /* TN_NORM_FIRST, but x + attention(x): the first layer of ModernBERT */
} tn_norm_order;

/* A Transformer block, or a stack of blocks. The defaults are PyTorch's encoder layer. With .activation_dropout = 0 and
 *     GPT-2:    .order = TN_NORM_FIRST, .activation = tn_gelu_tanh
 *     GPT-NeoX: .order = TN_NORM_PARALLEL, .activation = tn_gelu_tanh, .attention.positions = tn_rotary_new()
 *     LLaMA:    .order = TN_NORM_FIRST, .activation = tn_silu, .norm.kind = TN_NORM_RMS, .gated, .no_bias,
 *               .attention.kv_heads = 8, .attention.positions = tn_rotary_new()
 *     Mixtral:  LLaMA's with .feed_forward = tn_block_experts
 *     OLMo 2:   LLaMA's with .order = TN_NORM_RESULT, .attention.scores.qk_norm = TN_QK_NORM_ALL
 *     Gemma 3:  LLaMA's with .order = TN_NORM_SANDWICH, .norm.add_one, .attention.scores.qk_norm = TN_QK_NORM_HEAD,
 *               .activation = tn_gelu_tanh, .each: window 512 and angles of their own in five of six layers */
typedef struct tn_block_config {
    int           zero_;
    int64_t       layers;      /* stack: number of layers */
    int64_t       groups;      /* stack: number of distinct blocks that the layers share (ALBERT); 0: one per layer */
    bool          final_norm;  /* stack: add a norm after the last layer (PyTorch: argument `norm`) */
    int64_t       dim;         /* width of x */
    int64_t       heads;       /* number of attention heads */
    tn_mha_config attention;   /* options of the self-attention, which a decoder's attention to the memory shares but
                               * for positions, window, cap and qk_norm. What the block decides is not set there: .dim,
                               * .heads, .kdim, .vdim, .dropout, .dtype */
    int64_t ff    TN_IS(2048); /* width of the hidden layer of the feed-forward */
    bool          gated;       /* feed-forward is linear2(activation(gate(x)) · linear1(x)) */
    /* creates a layer's feed-forward, a module for tn_call or with tn_router_ops, x [B, T, dim]; the block owns it.
     * NULL: linear1, linear2 */
    void *(*feed_forward)(const struct tn_block_config *c);
    tn_tensor *(*activation)(tn_tensor *x); /* of the feed-forward: tn_gelu, tn_silu, custom, …; NULL: tn_relu */
    double dropout            TN_IS(0.1);   /* dropout probability of the results of attention and feed-forward */
    double attention_dropout  TN_IS(-1);    /* dropout probability of the attention weights; below 0: dropout */
    double activation_dropout TN_IS(-1);    /* dropout probability after the activation; below 0: dropout */
    tn_block_norm             norm;         /* options of all norms */
    tn_norm_order             order;        /* where the norms are */
    /* stack: changes the config of each layer, i from 0, before the layer is created: windows, parts of its own. A part
     * that it sets for several layers is shared by them. NULL: all layers have the same config */
    void (*each)(struct tn_block_config *c, int64_t i, void *user);
    void    *user;       /* argument of .each; .feed_forward may read it */
    bool     no_bias;    /* no bias in any linear layer or norm */
    bool     no_ff_bias; /* no bias in the linear layers of the feed-forward */
    tn_dtype dtype;      /* dtype of the parameters */
    int      end_;
} TN_KEYWORDS_ONLY tn_block_config;
#define TN_BLOCK_DEFAULTS .ff = 2048, .dropout = 0.1, .attention_dropout = -1, .activation_dropout = -1

typedef struct {
    tn_module base;
    tn_tensor *(*activation)(tn_tensor *x);
    tn_norm_order  order;
    tn_mha        *self_attn, *multihead_attn;               /* multihead_attn: a decoder's, to the memory; else NULL */
    tn_linear     *linear1, *gate, *linear2;                 /* gate: NULL without .gated; all with .feed_forward */
    tn_module     *feed_forward;                             /* NULL without .feed_forward */
    tn_layer_norm *norm1, *norm2, *norm3;                    /* the struct of tn_rms_norm, too; absent norms are NULL */
    tn_layer_norm *result_norm1, *result_norm2;              /* of attention and feed-forward; NULL in other orders */
    tn_dropout    *dropout, *dropout1, *dropout2, *dropout3; /* dropout3: a decoder's */
} tn_block;
typedef struct {
    tn_module       base;
    tn_module_list *layers;     /* tn_block *block = tn_at(m->layers, 0) */
    tn_layer_norm  *norm;       /* the final norm; NULL without .final_norm */
    tn_module      *positions;  /* .attention's, which a layer may own; NULL: none */
    int64_t         depth;      /* number of layers; more than the length of `layers` if they share blocks */
    bool            int8_cache; /* tn_blocks_cache makes caches with .int8 (docs/quantisation.md); set it at any time */
} tn_blocks;
TN_API tn_block  *tn_block_create(tn_block_config c); /* without a memory; a decoder is created below */
TN_API tn_blocks *tn_blocks_create(tn_block_config c);
/* A .feed_forward: a mixture of experts with the options *(const tn_experts_config *)c->user, of which .dim, .ff, the
 * activation, its dropout, .no_bias and .dtype are the block's. */
TN_API void *tn_block_experts(const tn_block_config *c);

typedef struct tn_block_args {
    int        zero_;
    tn_tensor *x;                                     /* [B, T, dim] */
    tn_tensor *memory;                                /* [B, S, dim] */
    tn_tensor *attn_mask, *key_padding_mask;          /* masks of the self-attention, as in tn_mha_args; may be NULL */
    bool       causal;                                /* apply a causal mask in the self-attention */
    tn_tensor *memory_mask, *memory_key_padding_mask; /* masks of the attention to the memory; may be NULL */
    /* output, may be NULL: attention weights [B, heads, T, S]; for a stack, arrays with one element per layer */
    tn_tensor  **weights, **memory_weights;
    tn_tensor  **router; /* output, may be NULL: logits of the experts' router, see tn_experts_args; of a stack one per
                          * layer, NULL without experts; with skip_padding, of the rows that are not padding */
    tn_kv_cache *cache; /* x follows the positions stored in it; after the first call memory may be NULL; may be NULL */
    int64_t      layer; /* the cache's layer to use; for single blocks only */
    const tn_placed *placed; /* as in tn_mha_args */
    /* For a stack with padding masks: do no work for padding. The rows of the result that are not padding have the
     * bits of the padded batch, also with dropout; others are 0. Gradients have the same bits for any padded length;
     * those of norms and biases, and in bf16 those of all parameters, differ from the padded batch's by rounding.
     * Ignored with hooks, looks, weights, other masks, a cache, and positions without .unpadded. */
    bool               skip_padding;
    const tn_unpadded *unpadded, *memory_unpadded; /* x is [1, N, dim], memory [1, M, dim]; as in tn_mha_args */
    /* query: attends to x in place of x; single block with TN_NORM_LAST. mask_decoder: for a stack, DeBERTa's enhanced
     * mask decoder: position embeddings [T, dim] or [B, T, dim]; x plus these is the query of the last layer, and its
     * result the query of one more run of that layer. */
    tn_tensor *query, *mask_decoder;
    /* Positions in the flattened [B · T], not of padding, whose rows alone are returned: [1, N, dim]; i64 [N]; NULL:
     * all. They have the bits of the whole result. The (last) block does its feed-forward for them only. */
    tn_tensor *targets;
    int        end_;
} TN_KEYWORDS_ONLY tn_block_args;
TN_API tn_tensor  *tn_block_run(tn_block *m, tn_block_args a);
TN_API tn_tensor  *tn_blocks_run(tn_blocks *m, tn_block_args a);
/* A cache for at most `batch` rows of `length` positions, and for memory_length memory positions (0: no memory). */
TN_API tn_kv_cache *tn_blocks_cache(tn_blocks *m, int64_t batch, int64_t length, int64_t memory_length);
/* tn_kv_cache_forget for from > 0: also rotates later keys to their new positions. Needs rotary positions. */
TN_API tn_status tn_blocks_forget(tn_blocks *m, tn_kv_cache *cache, int64_t from, int64_t count);

/* PyTorch's names: a block without a memory (encoder) and with one (decoder), and stacks of them. */
typedef tn_block  tn_transformer_encoder_layer, tn_transformer_decoder_layer;
typedef tn_blocks tn_transformer_encoder, tn_transformer_decoder;
TN_API tn_block  *tn_transformer_encoder_layer_create(tn_block_config c);
TN_API tn_block  *tn_transformer_decoder_layer_create(tn_block_config c);
TN_API tn_blocks *tn_transformer_encoder_create(tn_block_config c);
TN_API tn_blocks *tn_transformer_decoder_create(tn_block_config c);

/* ---- encoder and decoder ----------------------------------------------------------------------------------------- */

typedef struct tn_transformer_config {
    int                    zero_;
    int64_t dim            TN_IS(512), heads TN_IS(8);
    int64_t encoder_layers TN_IS(6), decoder_layers TN_IS(6);
    int64_t                decoder_heads, decoder_ff; /* 0: as in the encoder */
    bool                   no_final_norm;             /* no norm after the last layer of encoder and decoder */
    int64_t ff             TN_IS(2048);               /* this member and all below: see tn_block_config */
    bool                   gated;
    double dropout         TN_IS(0.1), attention_dropout TN_IS(-1), activation_dropout TN_IS(-1);
    tn_tensor *(*activation)(tn_tensor *x);
    tn_block_norm norm;
    tn_norm_order order;
    tn_mha_config attention; /* of the encoder, and but for .positions of the decoder */
    void         *decoder_positions;
    bool          no_bias;
    tn_dtype      dtype;
    int           end_;
} TN_KEYWORDS_ONLY tn_transformer_config;
#define TN_TRANSFORMER_DEFAULTS                                                                   \
    .dim = 512, .heads = 8, .encoder_layers = 6, .decoder_layers = 6, .ff = 2048, .dropout = 0.1, \
    .attention_dropout = -1, .activation_dropout = -1
typedef struct {
    tn_module               base;
    tn_transformer_encoder *encoder;
    tn_transformer_decoder *decoder;
} tn_transformer;
TN_API tn_transformer *tn_transformer_create(tn_transformer_config c); /* matrices are initialised Xavier-uniform */

typedef struct tn_transformer_args {
    int        zero_;
    tn_tensor *src, *tgt;                             /* [B, S, dim], [B, T, dim] */
    tn_tensor *src_mask, *src_key_padding_mask;       /* masks of the encoder's self-attention; may be NULL */
    tn_tensor *attn_mask, *key_padding_mask;          /* masks of the decoder's self-attention; may be NULL */
    bool       causal;                                /* apply a causal mask in the decoder's self-attention */
    tn_tensor *memory_mask, *memory_key_padding_mask; /* masks of the attention to the memory; may be NULL */
    bool       skip_padding; /* as in tn_block_args; in the encoder if both masks of src are the same tensor */
    int        end_;
} TN_KEYWORDS_ONLY tn_transformer_args;
TN_API tn_tensor  *tn_transformer_run(tn_transformer *m, tn_transformer_args a); /* [B, T, dim] */

/* ---- the head of a masked language model ------------------------------------------------------------------------- */

/* norm(gelu(x W + b)) Eᵀ + bias with the embedding E. Parameters have the names below cls.predictions in BERT. */
typedef struct tn_mlm_head_config {
    int        zero_;
    tn_tensor *embedding;                   /* [words, dim]: the embedding's weight, tied as the output projection */
    int64_t    in;                          /* width of x, [..., in]; 0: dim */
    bool       no_bias;                     /* no b, and no bias in the norm (ModernBERT) */
    bool       no_transform;                /* x Eᵀ + bias (XLNet) */
    tn_tensor *(*activation)(tn_tensor *x); /* NULL: tn_gelu */
    double eps TN_IS(1e-5);                 /* epsilon of the norm; BERT uses 1e-12 */
    int        end_;
} TN_KEYWORDS_ONLY tn_mlm_head_config;
#define TN_MLM_HEAD_DEFAULTS .eps = 1e-5
typedef struct {
    tn_module base;
    tn_tensor *(*activation)(tn_tensor *x);
    tn_tensor     *weight, *bias; /* decoder.weight [words, dim]; bias [words], tied to decoder.bias */
    tn_linear     *dense;         /* transform.dense; this and norm are NULL with .no_transform */
    tn_layer_norm *norm;          /* transform.LayerNorm */
} tn_mlm_head;
TN_API tn_mlm_head *tn_mlm_head_create(tn_mlm_head_config c);            /* x [..., in] -> [..., words] */
TN_API tn_tensor   *tn_mlm_head_transform(tn_mlm_head *m, tn_tensor *x); /* norm(gelu(x W + b)): [..., dim] */
/* The cross-entropy of the logits, which are computed block by block and never stored as a whole:
 * tn_mlm_head_loss(m, x, .target = t, ...), with tn_linear_cross_entropy's options. */
TN_API tn_tensor *tn_mlm_head_loss_run(tn_mlm_head *m, tn_linear_cross_entropy_args a);

TN_C_END_
#define TN_BLOCKS_OF_(create, ...) TN_NEW_(create, tn_block_config, TN_BLOCK_DEFAULTS, __VA_ARGS__)
#define tn_block_new(...) TN_BLOCKS_OF_(tn_block_create, __VA_ARGS__)
#define tn_blocks_new(...) TN_BLOCKS_OF_(tn_blocks_create, __VA_ARGS__)
#define tn_block_forward(m, ...) \
    TN_CALL_(tn_block_run(m, TN_ARGS1_(tn_block_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#define tn_blocks_forward(m, ...) \
    TN_CALL_(tn_blocks_run(m, TN_ARGS1_(tn_block_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#define tn_transformer_encoder_layer_new(...) TN_BLOCKS_OF_(tn_transformer_encoder_layer_create, __VA_ARGS__)
#define tn_transformer_decoder_layer_new(...) TN_BLOCKS_OF_(tn_transformer_decoder_layer_create, __VA_ARGS__)
#define tn_transformer_encoder_new(...) TN_BLOCKS_OF_(tn_transformer_encoder_create, __VA_ARGS__)
#define tn_transformer_decoder_new(...) TN_BLOCKS_OF_(tn_transformer_decoder_create, __VA_ARGS__)
#define tn_transformer_encoder_layer_forward(m, ...) tn_block_forward(m, __VA_ARGS__)
#define tn_transformer_encoder_forward(m, ...) tn_blocks_forward(m, __VA_ARGS__)
#define tn_transformer_decoder_layer_forward(m, ...) \
    TN_CALL_(tn_block_run(m, TN_ARGS2_(tn_block_args, TN_NO_DEFAULTS_, x, memory, __VA_ARGS__, TN_END_)))
#define tn_transformer_decoder_forward(m, ...) \
    TN_CALL_(tn_blocks_run(m, TN_ARGS2_(tn_block_args, TN_NO_DEFAULTS_, x, memory, __VA_ARGS__, TN_END_)))
#define tn_transformer_encoder_cache(m, batch, length) tn_blocks_cache(m, batch, length, 0)
#define tn_transformer_decoder_cache(m, batch, length, memory_length) tn_blocks_cache(m, batch, length, memory_length)
#define tn_transformer_new(...) \
    TN_NEW_(tn_transformer_create, tn_transformer_config, TN_TRANSFORMER_DEFAULTS, __VA_ARGS__)
#define tn_mlm_head_loss(m, ...)   \
    TN_CALL_(tn_mlm_head_loss_run( \
        m, TN_ARGS1_(tn_linear_cross_entropy_args, TN_LINEAR_CROSS_ENTROPY_ARGS_DEFAULTS, x, __VA_ARGS__, TN_END_)))
#define tn_mlm_head_new(...) TN_NEW_(tn_mlm_head_create, tn_mlm_head_config, TN_MLM_HEAD_DEFAULTS, __VA_ARGS__)
#define tn_transformer_forward(m, ...) \
    TN_CALL_(tn_transformer_run(m, TN_ARGS2_(tn_transformer_args, TN_NO_DEFAULTS_, src, tgt, __VA_ARGS__, TN_END_)))
#endif

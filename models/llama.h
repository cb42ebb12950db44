/* llama.h — LLaMA and its relatives, decoder-only language models with rotary positions: RMS norm, gated feed-forward,
 * grouped-query attention. What Mistral, Qwen2, Qwen3, Gemma 2, Gemma 3, Phi-3, OLMo 2, SmolLM3, Mixtral, Qwen3-MoE,
 * GPT-NeoX and GPT-J change are options. Part of models.h: include that.
 *
 *     tn_llama  *m = tn_llama_new(.vocab = 8000, .dim = 288, .layers = 6, .heads = 6, .kv_heads = 2);
 *     tn_tensor *loss = tn_llama_loss(m, ids, NULL);                // each token from those before it
 *
 *     tn_llama *m = tn_llama_load("Llama-3.2-1B");                  // a directory in Hugging Face's format
 *     tn_tensor *scores = tn_llama_forward(m, ids);                 // logits [B, T, vocab]; also a tn_lm: lm.h */
#ifndef TENON_MODELS_LLAMA_H
#define TENON_MODELS_LLAMA_H

#include "../nn/nn.h"
#include "generate.h"

TN_C_BEGIN_

typedef struct tn_llama_config {
    int                 zero_;
    int64_t             vocab; /* tokens: rows of the embedding */
    int64_t dim         TN_IS(512), layers TN_IS(8), heads TN_IS(8);
    int64_t             kv_heads, head_dim; /* 0: heads, dim / heads */
    int64_t             ff; /* 0: 8/3 dim, rounded up to a multiple of 32, divided by the number of experts per token */
    int64_t positions   TN_IS(2048); /* maximum tokens of training sequences; longer ones are accepted */
    tn_scores           scores;      /* of attention; .window: tokens that a token attends to, including itself */
    tn_rope_config      rope;        /* .theta, .scaling, …; .dim 0: head_dim; .trained 0: .positions */
    const char         *pattern; /* kinds of the layers in turn: g sees all, l has the window and local_theta, n sees
                                    * all and has no positions; NULL: l, with rope's theta */
    double              local_theta;
    bool                qkv_bias, out_bias; /* of attention: Qwen2 has the first, Llama's attention_bias is both */
    bool                ff_bias, head_bias; /* of the feed-forward (Llama's mlp_bias) and of the output layer (GPT-J) */
    tn_norm_kind norm   TN_IS(TN_NORM_RMS); /* LayerNorm: GPT-NeoX and GPT-J */
    tn_norm_order order TN_IS(TN_NORM_FIRST);
    bool                norm_add_one; /* factors of norms are 1 + weight: Gemma 2 and 3 */
    int64_t experts; /* feed-forward: 0, or the number of experts (Mixtral, Qwen3-MoE); see tn_block_config */
    int64_t experts_per_token TN_IS(2);
    tn_expert_weights         expert_weights;
    double                    router_jitter;
    bool                      balanced;     /* in training, tn_llama_loss adds the routers' balance loss */
    double balance  TN_IS(0.001), router_z; /* factors of their losses, see tn_router_loss_args; files lack router_z */
    bool            plain_ff;               /* no gate: GPT-NeoX, GPT-J */
    double          embedding_scale, logit_cap; /* factor of embeddings, 0: 1; logits x become c·tanh(x / c), 0: not */
    double          dropout; /* probability, of embeddings and residuals; the published models have none */
    double          attention_dropout;
    double init     TN_IS(0.02); /* standard deviation of initial weights */
    double eps      TN_IS(1e-6); /* epsilon of the norms */
    const char     *activation;  /* Hugging Face's name; NULL: "silu" */
    int64_t padding TN_IS(-1); /* padding token id: its embedding is initialised to 0 and gets no gradient; -1: none */
    bool            tied;      /* the output layer uses the embedding's weights, not its own */
    const char     *type;      /* model_type in files: "llama", "mistral", …; NULL: the first that fits the options */
    int             end_;
} TN_KEYWORDS_ONLY tn_llama_config;
#define TN_LLAMA_DEFAULTS                                                                                    \
    .dim = 512, .layers = 8, .heads = 8, .positions = 2048, .rope = {TN_ROPE_DEFAULTS}, .norm = TN_NORM_RMS, \
    .order = TN_NORM_FIRST, .experts_per_token = 2, .balance = 0.001, .init = 0.02, .eps = 1e-6, .padding = -1

typedef struct {
    tn_module       base;
    tn_llama_config config; /* with defaults filled in */
    tn_embedding   *words;
    tn_dropout     *dropout;
    tn_blocks      *blocks; /* with the last norm */
    tn_tensor      *out;    /* [vocab, dim]: its own weights, or with .tied the embedding's */
    tn_tensor      *bias;   /* [vocab]; NULL without .head_bias */
    tn_token_ids    begin, end, decoder_begin, padding; /* padding: as in the file, if config.padding is that token */
} tn_llama;
TN_API tn_llama *tn_llama_create(tn_llama_config c);

typedef tn_decoder_args tn_llama_args;
TN_API tn_tensor       *tn_llama_run(tn_llama *m, tn_llama_args a); /* logits of the next token: [B, T, vocab] */
/* The mean cross-entropy of ids[:, 1:], or of targets [B, T] (-100: ignored) if not NULL. What follows the last target
 * of a row is not computed: pad ids with any token, and targets with -100. */
TN_API tn_tensor *tn_llama_loss(tn_llama *m, tn_tensor *ids, tn_tensor *targets);

/* State for tn_generate: at most `rows` rows of `length` tokens, including the prompt. Freed with tn_decoding_free. */
TN_API tn_decoding *tn_llama_decoding(tn_llama *m, int64_t rows, int64_t length);

/* config.json and model.safetensors, or the files that its index names, of LlamaForCausalLM and the …ForCausalLM of its
 * relatives. Loaded models are in eval mode; to save, the directory must exist. */
TN_API tn_llama *tn_llama_load(const char *dir);
TN_API tn_status tn_llama_save(tn_llama *m, const char *dir) TN_CHECKED;

TN_C_END_
#define tn_llama_new(...) TN_NEW_(tn_llama_create, tn_llama_config, TN_LLAMA_DEFAULTS, __VA_ARGS__)
#define tn_llama_forward(m, ...) \
    TN_CALL_(tn_llama_run(m, TN_ARGS1_(tn_llama_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, TN_END_)))
#endif

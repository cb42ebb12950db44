/* llama.h — a decoder-only language model of LLaMA's shape: RMS norm, rotary positions, gated feed-forward, heads of
 * queries that share keys; Mistral's window and Qwen2's biases are options. Part of models.h: include that.
 *
 *     tn_llama  *m = tn_llama_new(.vocab = 8000, .dim = 288, .layers = 6, .heads = 6, .kv_heads = 2);
 *     tn_tensor *loss = tn_llama_loss(m, ids, NULL);                // each word from those before it
 *
 *     tn_llama *m = tn_llama_load("Llama-3.2-1B");                  // a directory as Hugging Face lays it out
 *     tn_tensor *scores = tn_llama_forward(m, ids);                 // [B, T, vocab]; lm.h treats it and GPT-2 alike */
#ifndef TENON_MODELS_LLAMA_H
#define TENON_MODELS_LLAMA_H

#include "../nn/nn.h"
#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_llama_config {
    int               zero_;
    int64_t           vocab; /* words: rows of the embedding */
    int64_t dim       TN_IS(512), layers TN_IS(8), heads TN_IS(8);
    int64_t           kv_heads, head_dim; /* 0: heads, dim / heads */
    int64_t           ff;                 /* 0: 8/3 dim, up to the next multiple of 32 */
    int64_t positions TN_IS(2048);        /* the longest text of the training; longer ones are read, too */
    int64_t           window;             /* a word sees so many, itself among them; 0: all before it */
    int64_t           full_layers;        /* with a window: the first so many layers have none */
    tn_rope_config    rope;               /* .theta, .scaling, …; its .dim and .trained 0: a head's, .positions */
    bool              qkv_bias, out_bias; /* of attention: Qwen2 has the first, Llama's attention_bias is both */
    bool              ff_bias;            /* Llama's mlp_bias */
    double            dropout;            /* of embeddings and residuals: no such model was trained with it */
    double            attention_dropout;
    double init       TN_IS(0.02); /* the standard deviation of fresh weights */
    double eps        TN_IS(1e-6); /* of the norms */
    const char       *activation;  /* by Hugging Face's name; NULL: "silu" */
    bool              tied;        /* the scores have the embedding's table, not one of their own */
    const char       *type;        /* what it is saved as: "llama", "mistral", "qwen2"; NULL: what fits */
    int               end_;
} TN_KEYWORDS_ONLY tn_llama_config;
#define TN_LLAMA_DEFAULTS \
    .dim = 512, .layers = 8, .heads = 8, .positions = 2048, .rope = {TN_ROPE_DEFAULTS}, .init = 0.02, .eps = 1e-6

typedef struct {
    tn_module       base;
    tn_llama_config config; /* all of it, with the defaults put in */
    tn_embedding   *words;
    tn_dropout     *dropout;
    tn_blocks      *blocks; /* the last norm is its */
    tn_tensor      *out;    /* [vocab, dim]: a table of its own, or the embedding's */
} tn_llama;
TN_API tn_llama *tn_llama_create(tn_llama_config c);

typedef tn_decoder_args tn_llama_args;
TN_API tn_tensor       *tn_llama_run(tn_llama *m, tn_llama_args a); /* a score for each word to come: [B, T, vocab] */
/* The mean cross-entropy of ids[:, 1:], or of targets [B, T] (-100: not counted), one for each of ids. */
TN_API tn_tensor *tn_llama_loss(tn_llama *m, tn_tensor *ids, tn_tensor *targets);

/* To be given to tn_generate: room for so many rows of so many words, the prompt among them. */
TN_API tn_decoding *tn_llama_decoding(tn_llama *m, int64_t rows, int64_t length);

/* config.json and model.safetensors, or the files that its index names, of LlamaForCausalLM, MistralForCausalLM and
 * Qwen2ForCausalLM. A model that is loaded is in eval mode; saving needs a directory that is there. */
TN_API tn_llama *tn_llama_load(const char *dir);
TN_API tn_status tn_llama_save(tn_llama *m, const char *dir) TN_CHECKED;

#ifdef __cplusplus
}
#else
#define tn_llama_new(...) TN_NEW_(tn_llama_create, tn_llama_config, TN_LLAMA_DEFAULTS, __VA_ARGS__)
#define tn_llama_forward(m, ...) \
    TN_CALL_(tn_llama_run(m, TN_ARGS1_(tn_llama_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, .zero_ = 0)))
#endif
#endif

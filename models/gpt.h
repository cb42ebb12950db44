/* gpt.h — a decoder-only language model of GPT-2's shape: it says which word comes next. Part of models.h: include
 * that.
 *
 *     tn_gpt    *gpt = tn_gpt_new(.vocab = 8000, .dim = 256, .layers = 4, .heads = 4);
 *     tn_tensor *loss = tn_gpt_loss(gpt, ids, NULL);              // each word from those before it
 *
 *     tn_gpt *gpt = tn_gpt_load("gpt2");                          // a directory as Hugging Face lays it out
 *     tn_tensor *scores = tn_gpt_forward(gpt, ids);               // [B, T, vocab]
 *
 * generate.h makes text with it. */
#ifndef TENON_MODELS_GPT_H
#define TENON_MODELS_GPT_H

#include "../nn/nn.h"
#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    int         zero_;
    int64_t     vocab;              /* words: rows of the embedding */
    int64_t     dim, layers, heads; /* 0: 768, 12, 12 */
    int64_t     ff;                 /* 0: 4 dim */
    int64_t     positions;          /* the longest text; 0: 1024 */
    double      dropout;            /* of embeddings, attention and residuals; 0: 0.1; TN_ZERO: none */
    double      init;               /* the standard deviation of fresh weights; 0: 0.02 */
    double      eps;                /* of the norms; 0: 1e-5 */
    const char *activation;         /* by Hugging Face's name; NULL: "gelu_new" */
} tn_gpt_config;

typedef struct {
    tn_module               base;
    tn_gpt_config           config; /* all of it, with the defaults put in */
    tn_embedding           *words, *positions;
    tn_dropout             *dropout;
    tn_transformer_encoder *blocks; /* the last norm is its */
} tn_gpt;
TN_API tn_gpt *tn_gpt_create(tn_gpt_config c);

typedef struct {
    tn_tensor   *ids;   /* i64 or i32 [B, T] */
    tn_kv_cache *cache; /* ids are what comes after the positions in the cache */
    bool         last;  /* only what comes after the last: [B, 1, vocab] */
} tn_gpt_args;
TN_API tn_tensor *tn_gpt_run(tn_gpt *m, tn_gpt_args a); /* a score for each word to come: [B, T, vocab] */
/* The mean cross-entropy of ids[:, 1:], or of targets [B, T] (-100: not counted), one for each of ids. */
TN_API tn_tensor *tn_gpt_loss(tn_gpt *m, tn_tensor *ids, tn_tensor *targets);

/* To be given to tn_generate: room for so many rows of so many words, the prompt among them. */
TN_API tn_decoding *tn_gpt_decoding(tn_gpt *m, int64_t rows, int64_t length);

/* config.json and model.safetensors. A model that is loaded is in eval mode; saving needs a directory that is there. */
TN_API tn_gpt   *tn_gpt_load(const char *dir);
TN_API tn_status tn_gpt_save(tn_gpt *m, const char *dir) TN_CHECKED;

#ifdef __cplusplus
}
#else
#define tn_gpt_new(...) tn_gpt_create((tn_gpt_config){.zero_ = 0, __VA_ARGS__})
#define tn_gpt_forward(m, ...) tn_gpt_run(m, (tn_gpt_args){.ids = __VA_ARGS__})
#endif
#endif

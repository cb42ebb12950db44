/* gpt.h — a decoder-only language model of GPT-2's shape: it says which word comes next. Part of models.h: include
 * that.
 *
 *     tn_gpt    *gpt = tn_gpt_new(.vocab = 8000, .dim = 256, .layers = 4, .heads = 4);
 *     tn_tensor *loss = tn_gpt_loss(gpt, ids, NULL);              // each word from those before it
 *
 *     tn_gpt *gpt = tn_gpt_load("gpt2");                          // a directory as Hugging Face lays it out
 *     tn_tensor *scores = tn_gpt_forward(gpt, ids);               // [B, T, vocab]; generate.h makes text with it */
#ifndef TENON_MODELS_GPT_H
#define TENON_MODELS_GPT_H

#include "../nn/nn.h"
#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_gpt_config {
    int                      zero_;
    int64_t                  vocab; /* words: rows of the embedding */
    int64_t dim              TN_IS(768), layers TN_IS(12), heads TN_IS(12);
    int64_t                  ff;                                     /* 0: 4 dim */
    int64_t positions        TN_IS(1024);                            /* the longest text */
    double dropout           TN_IS(0.1);                             /* of embeddings, attention and residuals */
    double embedding_dropout TN_IS(-1), attention_dropout TN_IS(-1); /* below 0: as dropout */
    double init              TN_IS(0.02);                            /* the standard deviation of fresh weights */
    double eps               TN_IS(1e-5);                            /* of the norms */
    const char              *activation;                             /* by Hugging Face's name; NULL: "gelu_new" */
    bool                     untied; /* the scores have a table of their own, not the embedding's */
    int                      end_;
} TN_KEYWORDS_ONLY tn_gpt_config;
#define TN_GPT_DEFAULTS                                                                                \
    .dim = 768, .layers = 12, .heads = 12, .positions = 1024, .dropout = 0.1, .embedding_dropout = -1, \
    .attention_dropout = -1, .init = 0.02, .eps = 1e-5

typedef struct {
    tn_module     base;
    tn_gpt_config config; /* all of it, with the defaults put in */
    tn_embedding *words, *positions;
    tn_dropout   *dropout;
    tn_blocks    *blocks; /* the last norm is its */
    tn_tensor    *out;    /* [vocab, dim]: the embedding's table, or its own */
} tn_gpt;
TN_API tn_gpt *tn_gpt_create(tn_gpt_config c);

typedef tn_decoder_args tn_gpt_args;
TN_API tn_tensor       *tn_gpt_run(tn_gpt *m, tn_gpt_args a); /* a score for each word to come: [B, T, vocab] */
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
#define tn_gpt_new(...) TN_NEW_(tn_gpt_create, tn_gpt_config, TN_GPT_DEFAULTS, __VA_ARGS__)
#define tn_gpt_forward(m, ...) \
    TN_CALL_(tn_gpt_run(m, TN_ARGS1_(tn_gpt_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, .zero_ = 0)))
#endif
#endif

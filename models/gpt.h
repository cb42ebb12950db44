/* gpt.h — GPT-2, a decoder-only language model: it predicts the next token. Part of models.h: include that.
 *
 *     tn_gpt    *gpt = tn_gpt_new(.vocab = 8000, .dim = 256, .layers = 4, .heads = 4);
 *     tn_tensor *loss = tn_gpt_loss(gpt, ids, NULL);              // each token from those before it
 *
 *     tn_gpt *gpt = tn_gpt_load("gpt2");                          // a directory in Hugging Face's format
 *     tn_tensor *scores = tn_gpt_forward(gpt, ids);               // logits [B, T, vocab]; to generate: generate.h */
#ifndef TENON_MODELS_GPT_H
#define TENON_MODELS_GPT_H

#include "../nn/nn.h"
#include "generate.h"

TN_C_BEGIN_

typedef struct tn_gpt_config {
    int                      zero_;
    int64_t                  vocab; /* tokens: rows of the embedding */
    int64_t dim              TN_IS(768), layers TN_IS(12), heads TN_IS(12);
    int64_t                  ff;                                     /* 0: 4 dim */
    int64_t positions        TN_IS(1024);                            /* maximum tokens in a sequence */
    double dropout           TN_IS(0.1);                             /* probability: embeddings, attention, residuals */
    double embedding_dropout TN_IS(-1), attention_dropout TN_IS(-1); /* below 0: .dropout */
    double init              TN_IS(0.02);                            /* standard deviation of initial weights */
    double eps               TN_IS(1e-5);                            /* epsilon of the norms */
    const char              *activation;                             /* Hugging Face's name; NULL: "gelu_new" */
    bool                     untied; /* the output layer has its own weights, not the embedding's */
    int                      end_;
} TN_KEYWORDS_ONLY tn_gpt_config;
#define TN_GPT_DEFAULTS                                                                                \
    .dim = 768, .layers = 12, .heads = 12, .positions = 1024, .dropout = 0.1, .embedding_dropout = -1, \
    .attention_dropout = -1, .init = 0.02, .eps = 1e-5

typedef struct {
    tn_module     base;
    tn_gpt_config config; /* with defaults filled in */
    tn_embedding *words, *positions;
    tn_dropout   *dropout;
    tn_blocks    *blocks; /* with the last norm */
    tn_tensor    *out;    /* [vocab, dim]: the embedding's weights, or with .untied its own */
    tn_token_ids  begin, end, padding, decoder_begin;
} tn_gpt;
/* The defaults, with .dim, .layers and .heads of a size: "tiny", "mini", "baby" (a text of a few MB), or as published
 * "small" (124 million parameters), "medium", "large". Another name raises; .dim is 0. */
TN_RETURNS_CONFIG_(TN_API tn_gpt_config tn_gpt_size(const char *name);)
TN_API tn_gpt *tn_gpt_create(tn_gpt_config c);

typedef tn_decoder_args tn_gpt_args;
TN_API tn_tensor       *tn_gpt_run(tn_gpt *m, tn_gpt_args a); /* logits of the next token: [B, T, vocab] */
/* The mean cross-entropy of ids[:, 1:], or of targets [B, T] (-100: ignored) if not NULL. What follows the last target
 * of a row is not computed: pad ids with any token, and targets with -100. */
TN_API tn_tensor *tn_gpt_loss(tn_gpt *m, tn_tensor *ids, tn_tensor *targets);

/* State for tn_generate: at most `rows` rows of `length` tokens, including the prompt. Freed with tn_decoding_free. */
TN_API tn_decoding *tn_gpt_decoding(tn_gpt *m, int64_t rows, int64_t length);

/* config.json and model.safetensors. Loaded models are in eval mode; to save, the directory must exist. */
TN_API tn_gpt   *tn_gpt_load(const char *dir);
TN_API tn_status tn_gpt_save(tn_gpt *m, const char *dir) TN_CHECKED;

TN_C_END_
#define tn_gpt_new(...) TN_NEW_(tn_gpt_create, tn_gpt_config, TN_GPT_DEFAULTS, __VA_ARGS__)
#define tn_gpt_forward(m, ...) \
    TN_CALL_(tn_gpt_run(m, TN_ARGS1_(tn_gpt_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, TN_END_)))
#endif

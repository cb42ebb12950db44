/* lm.h — tn_lm, a language model of any kind, for code that works with all of them. Part of models.h: include that.
 *
 *     tn_lm       *m = tn_lm_load("dir");                // tn_gpt, tn_llama or a family that is registered
 *     tn_tensor   *scores = tn_lm_forward(m, ids);       // logits [B, T, vocab]
 *     tn_decoding *d = tn_lm_decoding(m, 1, 200);        // for tn_generate
 *
 * A custom module is a tn_lm, too, if its tn_class has .lm: see examples/custom_decoder.c. */
#ifndef TENON_MODELS_LM_H
#define TENON_MODELS_LM_H

#include "../nn/nn.h"
#include "../data/data.h"
#include "generate.h"

TN_C_BEGIN_

typedef struct {
    tn_module base;
} tn_lm; /* a tn_gpt, tn_llama or custom module (tn_rnn_lm, tn_reformer): the functions below accept each of them */
typedef struct {
    const char *type; /* as in config.json: "gpt2", "llama", …; or NULL */
    int64_t     vocab, dim, layers, heads, kv_heads;
    int64_t     positions; /* maximum tokens in a sequence, or if not limited, those of the training */
    bool        limited;   /* longer sequences are errors */
    tn_blocks  *blocks;    /* the model's, for a key/value cache; NULL: it has no cache */
    tn_tensor  *out,
        *bias;         /* output layer [vocab, dim], [vocab]; bias may be NULL; unused if the class has run and loss */
    double  logit_cap; /* logits x become c·tanh(x / c); 0: not capped */
    int64_t experts_per_token; /* with experts: what tn_lm_loss adds in training, see tn_router_loss_args */
    double  balance, router_z;
} tn_lm_info;
TN_API tn_lm_info tn_lm_info_of(void *m);
TN_API tn_tensor *tn_lm_run(void *m, tn_decoder_args a);
/* The mean cross-entropy of ids[:, 1:], or of targets [B, T] (-100: ignored) if not NULL. What follows the last target
 * of a row, such as padding, is not computed: sequences of any lengths can be in one batch, and the loss and its
 * gradients have the same bits whatever their padding. In training the router's loss is added, if info has any. */
TN_API tn_tensor *tn_lm_loss(void *m, tn_tensor *ids, tn_tensor *targets);
TN_API tn_blocks *tn_lm_blocks(void *m); /* tn_blocks_cache(tn_lm_blocks(m), rows, length, 0): a cache for tn_lm_run */
TN_API tn_decoding *tn_lm_decoding(void *m, int64_t rows, int64_t length);
/* Writes the log probabilities of n texts, in nats, to to[n]: the sum over a text's tokens of log p(token | those
 * before it), in eval mode; the mode is restored. The first token follows what the tokenizer's template puts before a
 * text or, without a template, a line break. A text has the same score in any list. After an error all are NaN. Masked
 * models: tn_bert_scores. */
TN_API tn_status tn_lm_scores(void *m, const tn_tokenizer *t, int64_t n, const char *const *texts, double *to);
TN_API tn_lm    *tn_lm_load(const char *dir);
TN_API tn_status tn_lm_save(void *m, const char *dir) TN_CHECKED;

/* The functions of a language model, a static object that its class names: tn_class.lm. Required: info, and hidden or
 * both run and loss. m is ready, see tn_ready; hidden runs within tn_enter and tn_leave. */
typedef struct tn_lm_ops {
    tn_lm_info (*info)(const void *m);
    /* The hidden states after the last norm, [B, T, dim], of a.ids with a.cache (always NULL without .blocks),
     * a.key_padding_mask, a.skip_padding, a.router, which tn_blocks_forward takes; a.last and a.vectors are ignored. */
    tn_tensor *(*hidden)(void *m, tn_decoder_args a);
    tn_tensor *(*run)(void *m, tn_decoder_args a);                   /* NULL: hidden, then the output layer */
    tn_tensor *(*loss)(void *m, tn_tensor *ids, tn_tensor *targets); /* NULL: of hidden and the output layer */
    tn_decoding *(*decoding)(void *m, int64_t rows, int64_t length); /* NULL: with a cache, or rereading each time */
    tn_status (*save)(void *m, const char *dir);                     /* NULL: tn_lm_save raises */
} tn_lm_ops;

TN_C_END_
#define tn_lm_forward(m, ...) \
    TN_CALL_(tn_lm_run(m, TN_ARGS1_(tn_decoder_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, TN_END_)))
#endif

/* lm.h — tn_lm, a language model of any kind, for code that works with all of them. Part of models.h: include that.
 *
 *     tn_lm       *m = tn_lm_load("dir");                // tn_gpt, tn_llama, tn_reformer or tn_rnn_lm
 *     tn_tensor   *scores = tn_lm_forward(m, ids);       // logits [B, T, vocab]
 *     tn_decoding *d = tn_lm_decoding(m, 1, 200);        // for tn_generate */
#ifndef TENON_MODELS_LM_H
#define TENON_MODELS_LM_H

#include "../nn/nn.h"
#include "generate.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    tn_module base;
} tn_lm; /* a tn_gpt, tn_llama, tn_reformer or tn_rnn_lm: the functions below accept each of them */
typedef struct {
    const char *type; /* as in config.json: "gpt2", "llama", "mistral", "qwen2", "reformer", "tenon_rnn_lm"; or NULL */
    int64_t     vocab, dim, layers, heads, kv_heads;
    int64_t     positions; /* maximum tokens in a sequence, or if not limited, those of the training */
    bool        limited;   /* longer sequences are errors */
} tn_lm_info;
TN_API tn_lm_info tn_lm_about(void *m);
TN_API tn_tensor *tn_lm_run(void *m, tn_decoder_args a);
TN_API tn_tensor *tn_lm_loss(void *m, tn_tensor *ids, tn_tensor *targets);
TN_API tn_blocks *tn_lm_blocks(void *m); /* tn_blocks_cache(tn_lm_blocks(m), rows, length, 0): a cache for tn_lm_run */
TN_API tn_decoding *tn_lm_decoding(void *m, int64_t rows, int64_t length);
TN_API tn_lm       *tn_lm_load(const char *dir);
TN_API tn_status    tn_lm_save(void *m, const char *dir) TN_CHECKED;

#ifdef __cplusplus
}
#else
#define tn_lm_forward(m, ...) \
    TN_CALL_(tn_lm_run(m, TN_ARGS1_(tn_decoder_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, .zero_ = 0)))
#endif
#endif

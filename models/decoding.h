/* decoding.h — the interface that a model implements for tn_generate. To use a model, see generate.h. Part of models.h:
 * include that. */
#ifndef TENON_MODELS_DECODING_H
#define TENON_MODELS_DECODING_H

#include "../nn/nn.h"

TN_C_BEGIN_

/* The state of one generation: `rows` sequences that grow token by token. A custom model's struct starts with a
 * tn_decoding. */
typedef struct tn_decoding tn_decoding;
typedef struct {
    size_t size; /* sizeof(tn_decoding_kind): which members exist */
    /* Appends tokens, i64 [rows, n]; returns logits of the next token, floating [rows, vocab]. No tape is active. */
    tn_tensor *(*scores)(tn_decoding *d, tn_tensor *tokens);
    /* Row i becomes a copy of the previous row index[i]; the number of rows may change. index: i64 [rows]. */
    tn_status (*reorder)(tn_decoding *d, tn_tensor *index);
    void (*free)(tn_decoding *d);
    /* The tokens of each row that d has read: tn_generate compares them with its .read. NULL: it does not. */
    int64_t (*read)(const tn_decoding *d);
} tn_decoding_kind;
struct tn_decoding {
    const tn_decoding_kind *kind;
    int64_t                 rows;   /* maximum rows */
    int64_t                 length; /* maximum tokens in a row, including the prompt */
};
TN_API void tn_decoding_free(tn_decoding *d);

/* The decoding of a model with a key/value cache, from one function: `step` reads ids, i64 [rows, n], after the
 * positions in the cache and returns the logits of the next token, [rows, 1, vocab]. Takes ownership of the cache,
 * also on failure; NULL as the cache means that an error is set. */
typedef tn_tensor *(*tn_decoder_step)(void *model, tn_tensor *ids, tn_kv_cache *cache);
TN_API tn_decoding *tn_cached_decoding(void *model, tn_decoder_step step, tn_kv_cache *cache, int64_t rows,
                                       int64_t length);
TN_API tn_status    tn_cached_decoding_trim(tn_decoding *d, int64_t length); /* keeps the first `length` tokens */

/* Files of a prompt that was read, so that it need not be read again, with the same bits as without. The decoding has a
 * key/value cache and one row; tokens: i64 or i32 [1, n].
 *
 *     tn_decoding *d = tn_lm_decoding(gpt, 1, 200);
 *     int64_t      read = tn_prompt_cache_load(d, ids, "prompt.cache"); // of the longest start that ids share with it
 *     tn_generate(d, tn_narrow(ids, 1, read, tn_size(ids, 1) - read), .read = read,
 *                 .before = tn_narrow(ids, 1, 0, read));
 *     if (tn_prompt_cache_save(d, ids, "prompt.cache") != TN_OK) puts(tn_error_message());
 *
 * load returns the number of tokens that count as read, at most n - 1; -1: raised. A file of a model with other
 * weights, dtypes or settings is an error. save needs the first tokens that d has read, and replaces the file only when
 * it is complete. */
TN_API int64_t   tn_prompt_cache_load(tn_decoding *d, tn_tensor *tokens, const char *path);
TN_API tn_status tn_prompt_cache_save(tn_decoding *d, tn_tensor *tokens, const char *path) TN_CHECKED;

/* Texts longer than the cache. windowed: a layer attends to the last `window` positions only. The cache has at most
 * window + 384 positions, or the whole length if that is less; older ones are dropped, and the logits are bit-identical
 * to those with a full cache. rolling: the cache has `room` positions; the first `sinks` are kept, and the oldest after
 * them are dropped, a quarter of the room at a time. Positions are counted within the cache (Xiao et al. 2023); `turn`
 * rotates the keys to them, so the text's length is unlimited. */
TN_API tn_decoding *tn_windowed_decoding(void *model, tn_decoder_step step, tn_kv_cache *cache, int64_t rows,
                                         int64_t length, int64_t window);
typedef tn_status (*tn_decoder_turn)(void *model, tn_kv_cache *cache, int64_t from, int64_t count);
TN_API tn_decoding *tn_rolling_decoding(void *model, tn_decoder_step step, tn_decoder_turn turn, tn_kv_cache *cache,
                                        int64_t rows, int64_t room, int64_t sinks);
TN_API tn_decoding *tn_lm_rolling(void *m, int64_t rows, int64_t room,
                                  int64_t sinks); /* a tn_lm with rotary positions */

/* Speculative decoding (Leviathan et al. 2023). The logits are bit-identical to those of tn_lm_decoding(m, 1, length)
 * for any draft, which is a smaller tn_lm with the same vocabulary. The draft proposes `ahead` tokens, the most likely
 * one each time, and m reads them all in one step; m need not read again those that tn_generate then chooses.
 *
 * Without a draft (NULL), up to `ahead` tokens are proposed that follow an earlier place in the text, one that ends in
 * the same tokens: texts that repeat themselves or quote their prompt need fewer passes. Proposals stop while few of
 * them are chosen. */
typedef struct {
    int64_t proposed, accepted, readings; /* tokens, tokens; forward passes of m, without the prompt's */
    double  plain;                        /* seconds of m's fastest pass over a single token */
} tn_speculation;
TN_API tn_decoding *tn_speculative_decoding(void *m, void *draft, int64_t length, int64_t ahead, tn_speculation *count);

/* Token ids of a loaded config.json, which are written back. n 0: absent; -1: null. */
typedef struct {
    int64_t n, id[16];
} tn_token_ids;

/* Arguments of a decoder-only model: tn_gpt_forward(m, ids, …), tn_llama_forward(m, ids, …). */
typedef struct tn_decoder_args {
    int          zero_;
    tn_tensor   *ids;     /* i64 or i32 [B, T] */
    tn_kv_cache *cache;   /* ids continue the positions in the cache; NULL: none */
    bool         last;    /* only the logits after the last token: [B, 1, vocab] */
    bool         vectors; /* return the hidden states after the last norm, [B, T, dim], instead of logits */
    /* bool [B, T], true: padding, which no token attends to; NULL: none. skip_padding: do no work for it, as in
     * tn_block_args; its hidden states are 0 then. Models without tn_blocks ignore both. */
    tn_tensor  *key_padding_mask;
    bool        skip_padding;
    tn_tensor **router; /* output, may be NULL: an array with an element per layer, as in tn_block_args */
    int         end_;
} TN_KEYWORDS_ONLY tn_decoder_args;

TN_C_END_
#endif

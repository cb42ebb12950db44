/* decoding.h — what a model offers to whoever makes text with it word by word: who writes a model needs this, who uses
 * one has generate.h. Part of models.h: include that. */
#ifndef TENON_MODELS_DECODING_H
#define TENON_MODELS_DECODING_H

#include "../nn/nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Texts in the making. A model of your own embeds tn_decoding first, as its rows stand. */
typedef struct tn_decoding tn_decoding;
typedef struct {
    size_t size; /* sizeof(tn_decoding_kind): tells the library which fields exist */
    /* tokens, i64 [rows, n], come after what is there: scores of the next, floating [rows, vocab]. No tape is on. */
    tn_tensor *(*scores)(tn_decoding *d, tn_tensor *tokens);
    /* Row i goes on from what row index[i] was; there may be fewer or more rows than before. index: i64 [rows]. */
    tn_status (*reorder)(tn_decoding *d, tn_tensor *index);
    void (*free)(tn_decoding *d);
} tn_decoding_kind;
struct tn_decoding {
    const tn_decoding_kind *kind;
    int64_t                 rows;   /* at most */
    int64_t                 length; /* the most words of a row, the prompt's among them */
};
TN_API void tn_decoding_free(tn_decoding *d);

/* What every decoder with a cache offers, made from one function: ids, i64 [rows, n], come behind the positions in
 * the cache; scores of what comes next, [rows, 1, vocab]. The cache is the decoding's from here on (NULL: an error
 * stands). */
typedef tn_tensor *(*tn_decoder_step)(void *model, tn_tensor *ids, tn_kv_cache *cache);
TN_API tn_decoding *tn_cached_decoding(void *model, tn_decoder_step step, tn_kv_cache *cache, int64_t rows,
                                       int64_t length);
TN_API tn_status    tn_cached_decoding_trim(tn_decoding *d, int64_t length); /* forgets what is behind so many words */

/* Texts longer than the cache. windowed: a layer sees the last `window` positions alone; of a cache of window + 384
 * positions, or of the whole length if that is less, older ones are forgotten, and the scores are the same bits as with
 * all of them. rolling: the cache has `room` positions; the first `sinks` stay, and of those behind them the oldest go,
 * a quarter of the room at a time. Positions are those within the cache (Xiao et al. 2023), to which `turn` moves the
 * keys: a text never ends. */
TN_API tn_decoding *tn_windowed_decoding(void *model, tn_decoder_step step, tn_kv_cache *cache, int64_t rows,
                                         int64_t length, int64_t window);
typedef tn_status (*tn_decoder_turn)(void *model, tn_kv_cache *cache, int64_t from, int64_t count);
TN_API tn_decoding *tn_rolling_decoding(void *model, tn_decoder_step step, tn_decoder_turn turn, tn_kv_cache *cache,
                                        int64_t rows, int64_t room, int64_t sinks);
TN_API tn_decoding *tn_lm_rolling(void *m, int64_t rows, int64_t room,
                                  int64_t sinks); /* of one with rotary positions */

/* Speculation (Leviathan et al. 2023): the same scores as of tn_lm_decoding(m, 1, length), to the bit, whatever draft
 * is: a smaller tn_lm of the same words. It proposes `ahead` words, the likeliest each time, and m reads all of them at
 * once; those that tn_generate then chooses need no other reading. */
typedef struct {
    int64_t proposed, accepted, readings; /* words; by m, the prompt's apart */
    double  plain;                        /* seconds of m's first reading, which is of one word alone */
} tn_drafted;
TN_API tn_decoding *tn_drafted_decoding(void *m, void *draft, int64_t length, int64_t ahead, tn_drafted *count);

/* What a decoder-only model is called with: tn_gpt_forward(m, ids, …), tn_llama_forward(m, ids, …). */
typedef struct tn_decoder_args {
    int          zero_;
    tn_tensor   *ids;     /* i64 or i32 [B, T] */
    tn_kv_cache *cache;   /* ids are what comes after the positions in the cache */
    bool         last;    /* only what comes after the last: [B, 1, vocab] */
    bool         vectors; /* instead of scores the vectors behind the last norm: [B, T, dim] */
    int          end_;
} TN_KEYWORDS_ONLY tn_decoder_args;

#ifdef __cplusplus
}
#endif
#endif

/* lm_private.h — tn_lm's functions for typed language models and the decodings. Private to models/. */
#ifndef TENON_MODELS_GENERATE_LM_PRIVATE_H
#define TENON_MODELS_GENERATE_LM_PRIVATE_H

#include "models/live.h"
#include "models/lm.h"

/* tn_lm_run, tn_lm_loss and tn_lm_decoding; who: the caller's name, for messages. */
tn_tensor   *tn__lm_run(const char *who, void *m, tn_decoder_args a);
tn_tensor   *tn__lm_loss(const char *who, void *m, tn_tensor *ids, tn_tensor *targets);
tn_decoding *tn__lm_decoding(const char *who, void *m, int64_t rows, int64_t length);

/* The decoding of a class that does not define one. */
tn_decoding *tn__lm_plain_decoding(const char *who, void *m, int64_t rows, int64_t length);

/* Lets a cached decoding read single tokens by a replay of its step, and returns it; NULL stays NULL. The step must be
 * made of ops and depend on nothing but the model, the ids and the cache (cached.c). */
tn_decoding *tn__replayed(tn_decoding *d);

/* A decoding with a key/value cache (cached.c). */
typedef struct {
    tn_decoding     base;
    void           *model;
    tn_decoder_step step;
    tn_kv_cache    *cache;
    int64_t         read;   /* tokens read; more than the cache has if old ones were dropped */
    int64_t         room;   /* maximum positions in the cache; 0: never drop any */
    int64_t         window; /* windowed: positions that a layer attends to; else 0 */
    int64_t         sinks;  /* rolling: first positions, which are kept */
    tn_decoder_turn turn;
    bool            replays; /* single tokens may be read by replays */
    int             singles; /* number of calls with a single token since the last replay could not be used */
    tn_replay      *replay;  /* of the step, for the token in .ids; NULL: none */
    tn_tensor      *ids;     /* [rows, 1] */
} tn__cached;
tn__cached *tn__as_cached(tn_decoding *d); /* NULL: another kind of decoding */

/* Drops positions if needed, so that n more fit. */
tn_status tn__cached_make_room(tn__cached *d, int64_t n);

/* A tn_decoder_step: the logits after the last of ids, [rows, 1, vocab]; cache may be NULL. */
tn_tensor *tn__lm_step(void *m, tn_tensor *ids, tn_kv_cache *cache);

/* True if ids is [batch, length]; else raises, with the name of m's class. */
bool tn__ids_fit(void *m, const tn_tensor *ids);

/* Initial weights: matrices normal with deviation init, biases 0; matrices that write to a residual stream have
 * init / √(2 layers). */
void tn__lm_init(void *m, double init, int64_t layers);

/* A kind of decoding that attends to a source. */
typedef struct {
    tn_decoding_kind base; /* .size is sizeof(tn__attending_kind) */
    /* As .scores; *attention: f32 [rows, source tokens], contiguous, of the last of tokens, 1 for padding. */
    tn_tensor *(*attended)(tn_decoding *d, tn_tensor *tokens, tn_tensor **attention);
} tn__attending_kind;

/* The tn_decoding of a model without a cache (uncached.c); step always gets NULL. */
tn_decoding *tn__uncached_decoding(void *model, tn_decoder_step step, int64_t rows, int64_t length);

/* Cache positions needed for texts of this length if layers attend to the last `window` positions only (cached.c). */
int64_t tn__windowed_room(int64_t length, int64_t window);

/* Replaces the clock by which l chooses the order of its work, so that it is the same in each run of a test. */
void tn__live_clock(tn_live *l, double (*seconds)(void));

#endif

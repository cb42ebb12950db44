/* live.h — texts that are generated at the same time, each from when it is added until it ends: for servers, games and
 * everything else with several users. Part of models.h: include that.
 *
 *     tn_live *l = tn_live_new(gpt, .rows = 8, .length = 1024);
 *     int64_t  a = tn_live_add(l, prompt, .most = 100);                          // prompts of any lengths, i64 [1, n]
 *     int64_t  b = tn_live_add(l, begin, .most = 50, .sample = true, .top_p = 0.9);
 *     while (tn_live_step(l) > 0) {}                                             // a token more of each text
 *     tn_generated first = tn_live_take(l, a), second = tn_live_take(l, b);      // as from tn_generate
 *     tn_live_free(l);
 *
 * Between two steps, texts may be added and taken. A step reads the weights once for all texts, so that eight texts
 * take little longer than one. Each text has the bits of tn_generate with the same prompt and options, whatever the
 * others. */
#ifndef TENON_MODELS_LIVE_H
#define TENON_MODELS_LIVE_H

#include "generate.h"

TN_C_BEGIN_

typedef struct tn_live tn_live;
typedef struct tn_live_config {
    int           zero_;
    void         *model;      /* a tn_lm; the program owns it, and leaves it unchanged while texts are alive */
    int64_t rows  TN_IS(8);   /* maximum number of texts that have not ended */
    int64_t       length;     /* maximum tokens of a text, with its prompt; 0: the model's positions */
    int64_t chunk TN_IS(128); /* a step reads at most this many tokens of one prompt, so that others need not wait */
    int           end_;
} TN_KEYWORDS_ONLY tn_live_config;
#define TN_LIVE_DEFAULTS .rows = 8, .chunk = 128
TN_API tn_live *tn_live_create(tn_live_config c);
TN_API void     tn_live_free(tn_live *l);

/* Adds a text and returns its number; -1: raised. The options are tn_generate's, for one row: without .from, .read,
 * .before and beams. If it samples, the current generator advances as by tn_generate. A text has a key/value cache for
 * the tokens of its prompt and .most. TN_ESTATE: .rows texts have not ended. */
TN_API int64_t tn_live_add_run(tn_live *l, tn_generate_args a);
/* A token more of each text whose prompt has been read, and a part of one prompt, which takes at most a fifth of the
 * time. Returns the number of texts that go on; -1: raised, nothing has changed: after TN_ENOMEM call it again. What
 * goes wrong with one text alone, such as an error of its .adjust, ends that text; tn_live_take raises it. */
TN_API int64_t tn_live_step(tn_live *l);
TN_API bool    tn_live_ended(const tn_live *l, int64_t text); /* it is complete, or went wrong */
/* Removes a text, which need not have ended, and returns it as tn_generate does; all NULL: raised. */
TN_API tn_generated tn_live_take(tn_live *l, int64_t text);
TN_API int64_t      tn_live_room(const tn_live *l); /* number of texts that can be added now */
/* The bytes of the keys and values that a text of this number of tokens has at most, its prompt and .most included; its
 * structs take a few KiB more. 0: it has no cache. */
TN_API size_t tn_live_need(const tn_live *l, int64_t tokens);

TN_C_END_
#define tn_live_new(...) \
    TN_CALL_(tn_live_create(TN_ARGS1_(tn_live_config, TN_LIVE_DEFAULTS, model, __VA_ARGS__, TN_END_)))
#define tn_live_add(l, ...) \
    TN_CALL_(tn_live_add_run(l, TN_ARGS1_(tn_generate_args, TN_GENERATE_ARGS_DEFAULTS, prompt, __VA_ARGS__, TN_END_)))
#endif

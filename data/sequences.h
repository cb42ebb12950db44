/* sequences.h — batches for language models, from the token ids of a text. Part of data.h: include that one.
 *
 *     tn_windows *train = tn_windows_new(numbers, n, .batch = 16, .length = 128); // of the tokens numbers[0 … n)
 *     tn_fit(gpt, .train = tn_windows_source(train), .loss = gpt_loss, .steps = 1000);
 *     tn_windows_free(train);
 *
 * All are sources for tn_fit (source.h), which can be resumed and sharded. */
#ifndef TENON_DATA_SEQUENCES_H
#define TENON_DATA_SEQUENCES_H

#include "lines.h"
#include "source.h"

TN_C_BEGIN_

/* ---- windows: for Transformers ----------------------------------------------------------------------------------- */

/* Windows of a text: x i64 [batch, length] and y, the next token of each. By default at random positions, drawn from
 * the current generator: such a source has no epochs, so that tn_fit needs .steps. */
typedef struct tn_windows_config {
    int           zero_;
    int64_t batch TN_IS(16), length TN_IS(128); /* windows per batch; tokens per window */
    bool          in_order;                     /* one window after the other, each once in an epoch: for validation */
    int64_t       most;                         /* with .in_order: tokens per epoch and up to a window more; 0: all */
    int           end_;
} TN_KEYWORDS_ONLY        tn_windows_config;
typedef struct tn_windows tn_windows;
TN_API tn_windows        *tn_windows_create(const int32_t *ids, int64_t n, tn_windows_config c); /* borrows ids */
TN_API tn_source          tn_windows_source(tn_windows *w);
TN_API void               tn_windows_free(tn_windows *w);

/* ---- spans: T5's pretraining (Raffel et al. 2020, span corruption) ------------------------------------------- */

/* Windows of a text without the tokens of some spans, which the model predicts. In x i64 [batch, length] a sentinel
 * replaces each span, and .end follows; in y i64 [batch, T] each sentinel is followed by the tokens of its span, after
 * .begin and before .end. The first sentinel is .sentinel, the next ones have the ids below it. Spans have random
 * lengths and places; their number and the number of their tokens are equal in all windows. With a .noise of 0.5, x can
 * be one token shorter than .length. By default drawn from the current generator: such a source has no epochs, so that
 * tn_fit needs .steps. */
typedef struct tn_spans_config {
    int               zero_;
    int64_t batch     TN_IS(16), length TN_IS(128); /* windows per batch; tokens of x per window */
    double noise      TN_IS(0.15);                  /* fraction of the tokens that spans take away */
    double span       TN_IS(3);                     /* mean number of tokens of a span */
    int32_t           begin, end, sentinel;         /* token ids */
    int64_t sentinels TN_IS(100);                   /* number of sentinels: the maximum number of spans */
    bool              in_order; /* one window after the other, each once in an epoch, with spans from .seed: for
                                   validation */
    int64_t           most;     /* with .in_order: tokens per epoch and up to a window more; 0: all */
    uint64_t          seed;
    int               end_;
} TN_KEYWORDS_ONLY      tn_spans_config;
typedef struct tn_spans tn_spans;
TN_API tn_spans        *tn_spans_create(const int32_t *ids, int64_t n, tn_spans_config c); /* borrows ids */
TN_API tn_source        tn_spans_source(tn_spans *s);
TN_API void             tn_spans_free(tn_spans *s);

/* ---- columns: for recurrent models (truncated back-propagation through time) ------------------------------------- */

/* A text as `batch` contiguous columns: x i64 [batch, length] and y, the next token of each. A batch continues where
 * the last one ended; the first of an epoch has the field "fresh". With .vary, the field "share" is the batch's length
 * divided by .length. */
typedef struct tn_columns_config {
    int           zero_;
    int64_t batch TN_IS(20), length TN_IS(35);
    bool          vary; /* random lengths around length, sometimes around its half, as in AWD-LSTM: from .seed */
    uint64_t      seed;
    int           end_;
} TN_KEYWORDS_ONLY        tn_columns_config;
typedef struct tn_columns tn_columns;
TN_API tn_columns        *tn_columns_create(const int32_t *ids, int64_t n, tn_columns_config c); /* borrows ids */
TN_API tn_source          tn_columns_source(tn_columns *s);
TN_API void               tn_columns_free(tn_columns *s);

/* ---- sentences: one per line, for ELMo and skip-thought ---------------------------------------------------------- */

/* Sentences of different lengths: x i64 [batch, T], padded; fields "lengths" i64 [batch], and "index" i64 [batch], the
 * sentence's line. Lines without tokens are skipped. Reshuffled in each epoch, by .seed and the epoch's number. */
typedef struct tn_sentences_config {
    int           zero_;
    int64_t batch TN_IS(32);
    int32_t       pad;
    bool          neighbours; /* y and field "before": the next and previous sentence, then .end, then -100 */
    int32_t       end;
    bool          in_order; /* not shuffled: for validation */
    uint64_t      seed;
    int           end_;
} TN_KEYWORDS_ONLY          tn_sentences_config;
typedef struct tn_sentences tn_sentences;
/* Encodes the lines at once; borrows neither lines nor encoder. */
TN_API tn_sentences *tn_sentences_create(int64_t n, const tn_text *lines, tn_encoder encoder, tn_sentences_config c);
TN_API tn_source     tn_sentences_source(tn_sentences *s);
TN_API void          tn_sentences_free(tn_sentences *s);

TN_C_END_
#define TN_WINDOWS_DEFAULTS .batch = 16, .length = 128
#define TN_SPANS_DEFAULTS .batch = 16, .length = 128, .noise = 0.15, .span = 3, .sentinels = 100
#define TN_COLUMNS_DEFAULTS .batch = 20, .length = 35
#define TN_SENTENCES_DEFAULTS .batch = 32
#define tn_windows_new(...) TN_CALL_(tn_windows_create(TN_WINDOWS_NEW_(__VA_ARGS__, TN_END_)))
#define TN_WINDOWS_NEW_(ids, n, ...) ids, n, TN_FILLED_(tn_windows_config, TN_WINDOWS_DEFAULTS, __VA_ARGS__)
#define tn_spans_new(...) TN_CALL_(tn_spans_create(TN_SPANS_NEW_(__VA_ARGS__, TN_END_)))
#define TN_SPANS_NEW_(ids, n, ...) ids, n, TN_FILLED_(tn_spans_config, TN_SPANS_DEFAULTS, __VA_ARGS__)
#define tn_columns_new(...) TN_CALL_(tn_columns_create(TN_COLUMNS_NEW_(__VA_ARGS__, TN_END_)))
#define TN_COLUMNS_NEW_(ids, n, ...) ids, n, TN_FILLED_(tn_columns_config, TN_COLUMNS_DEFAULTS, __VA_ARGS__)
#define tn_sentences_new(...) TN_CALL_(tn_sentences_create(TN_SENTENCES_NEW_(__VA_ARGS__, TN_END_)))
#define TN_SENTENCES_NEW_(n, lines, encoder, ...) \
    n, lines, encoder, TN_FILLED_(tn_sentences_config, TN_SENTENCES_DEFAULTS, __VA_ARGS__)
#endif

/* pairs.h — pairs of lines with the same meaning in two languages, as batches of token ids. Include data.h.
 *
 *     tn_pairs *pairs = tn_pairs_load("train.en", "train.de", .source = encoder, .target = encoder, .begin = 1,
 *                                     .end = 2, .max_tokens = 100);
 *     tn_pairs_batches *batches = tn_pairs_batches_new(pairs, .tokens = 4096, .seed = 1);
 *     tn_fit(net, .train = tn_pairs_source(batches), .loss = pairs_loss, .epochs = 10);
 *
 * A line ends at its "\n"; one "\r" before it is ignored. */
#ifndef TENON_DATA_PAIRS_H
#define TENON_DATA_PAIRS_H

#include "lines.h"
#include "source.h"

TN_C_BEGIN_

typedef struct tn_pairs_config {
    int                zero_;
    tn_encoder         source, target;  /* encoders of a line, without begin and end */
    int32_t            pad, begin, end; /* tokens: padding; start of the decoder's input; end of each line */
    int64_t min_tokens TN_IS(1);        /* per line, without end: 1; pairs with a shorter side are skipped */
    int64_t            max_tokens;      /* per line, without end; pairs with a longer side are skipped; 0: no limit */
    double             max_ratio;       /* maximum ratio of the longer side to the shorter; 0: no limit */
    bool               refuse_empty;    /* a line without tokens is an error instead of skipped */
    int                end_;
} TN_KEYWORDS_ONLY tn_pairs_config;

typedef struct tn_pairs tn_pairs;
/* Reads two files of equal numbers of lines, or one with lines "source <tab> target". Reads them once; keeps the token
 * ids in memory, not the text. */
TN_API tn_pairs *tn_pairs_load_run(const char *source, const char *target, tn_pairs_config config);
TN_API tn_pairs *tn_pairs_tsv_load_run(const char *path, tn_pairs_config config);
TN_API int64_t   tn_pairs_count(const tn_pairs *p);                  /* pairs kept */
TN_API int64_t   tn_pairs_dropped(const tn_pairs *p);                /* pairs skipped */
TN_API int64_t   tn_pairs_line(const tn_pairs *p, int64_t pair);     /* its line in the files, from 0; -1: none */
TN_API int64_t   tn_pairs_tokens(const tn_pairs *p, bool of_target); /* without begin and end */
TN_API uint64_t  tn_pairs_checksum(const tn_pairs *p);               /* of the token ids: equal for equal pairs */
TN_API void      tn_pairs_free(tn_pairs *p);

/* Batches are built and ordered as those of a corpus (tn_mlm_config in corpus.h). */
typedef struct tn_pairs_batches_config {
    int            zero_;
    int64_t tokens TN_IS(4096); /* maximum per batch (longer side, with padding): 4096; a longer pair is alone */
    int64_t        examples;    /* maximum per batch; 0: no limit */
    uint64_t       seed;
    bool           in_order; /* keep the order of the files, for validation */
    int            end_;
} TN_KEYWORDS_ONLY tn_pairs_batches_config;

typedef struct tn_pairs_batches tn_pairs_batches;
TN_API tn_pairs_batches *tn_pairs_batches_create(const tn_pairs *p, tn_pairs_batches_config c); /* p must outlive it */
TN_API void              tn_pairs_batches_free(tn_pairs_batches *b);

/* Batches for tn_fit; a shard's rows are padded to its longest row. Tokens are i64, masks are bool, true for padding:
 *   x               [B, S]: tokens of the source, end, pad …
 *   y               [B, T + 1]: tokens of the target: begin, tokens, end, pad …
 *   source_padding, target_padding  [B, S], [B, T]
 *   target_in, target_out  [B, T]: begin, tokens, pad …; tokens, end, pad …
 *   pair            [B]: index of each row's pair
 * .items is the number of tokens of target_out without padding, .batches of the source that of the current epoch. */
TN_API tn_source tn_pairs_source(tn_pairs_batches *b);

#define TN_PAIRS_DEFAULTS .min_tokens = 1
#define TN_PAIRS_BATCHES_DEFAULTS .tokens = 4096
#define TN_PAIRS_(...) TN_FILLED_(tn_pairs_config, TN_PAIRS_DEFAULTS, __VA_ARGS__)
#define tn_pairs_load(from, to, ...) TN_CALL_(tn_pairs_load_run(from, to, TN_PAIRS_(__VA_ARGS__)))
#define tn_pairs_tsv_load(path, ...) TN_CALL_(tn_pairs_tsv_load_run(path, TN_PAIRS_(__VA_ARGS__)))
#define tn_pairs_batches_new(...) TN_CALL_(tn_pairs_batches_create(TN_PAIRS_BATCHES_(__VA_ARGS__, TN_END_)))
#define TN_PAIRS_BATCHES_(p, ...) p, TN_FILLED_(tn_pairs_batches_config, TN_PAIRS_BATCHES_DEFAULTS, __VA_ARGS__)

TN_C_END_
#endif

/* pairs.h — pairs of lines that mean the same in two languages, as batches of token numbers. Include data.h.
 *
 *     tn_pairs *pairs = tn_pairs_load("train.en", "train.de", .source = encoder, .target = encoder, .begin = 1,
 *                                     .end = 2, .max_tokens = 100);
 *     tn_pairs_batches *batches = tn_pairs_batches_new(pairs, .tokens = 4096, .seed = 1);
 *     tn_fit(net, .train = tn_pairs_source(batches), .loss = pairs_loss, .epochs = 10);
 *
 * A line counts up to its "\n"; one "\r" before it is left out. */
#ifndef TENON_DATA_PAIRS_H
#define TENON_DATA_PAIRS_H

#include "lines.h"
#include "source.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_pairs_config {
    int                zero_;
    tn_encoder         source, target;  /* what makes numbers of a line, without those that follow here */
    int32_t            pad, begin, end; /* what fills up; what the decoder begins with; what every line ends with */
    int64_t min_tokens TN_IS(1);        /* of a line, without its end: 1; pairs with fewer on a side are left out */
    int64_t            max_tokens;      /* the same for more; 0: no limit */
    double             max_ratio;       /* longer side to shorter side; 0: no limit */
    bool               refuse_empty;    /* a line without a token is an error, not left out */
    int                end_;
} TN_KEYWORDS_ONLY tn_pairs_config;

typedef struct tn_pairs tn_pairs;
/* Two files of as many lines, or one whose lines are "source <tab> target". Read once; the numbers are kept in memory,
 * the text is not. */
TN_API tn_pairs *tn_pairs_load_run(const char *source, const char *target, tn_pairs_config config);
TN_API tn_pairs *tn_pairs_tsv_load_run(const char *path, tn_pairs_config config);
TN_API int64_t   tn_pairs_count(const tn_pairs *p);                  /* pairs that were kept */
TN_API int64_t   tn_pairs_dropped(const tn_pairs *p);                /* pairs that were left out */
TN_API int64_t   tn_pairs_line(const tn_pairs *p, int64_t pair);     /* where it stood, from 0; -1: no pair */
TN_API int64_t   tn_pairs_tokens(const tn_pairs *p, bool of_target); /* without begin and end */
TN_API uint64_t  tn_pairs_checksum(const tn_pairs *p);               /* of the numbers: the same pairs were loaded */
TN_API void      tn_pairs_free(tn_pairs *p);

/* Tensors of the scope that was open; i64, the masks bool, true for padding. */
typedef struct {
    tn_tensor *source, *source_padding;                 /* [B, S]: tokens, end, pad … */
    tn_tensor *target_in, *target_out, *target_padding; /* [B, T]: begin, tokens, pad … ; tokens, end, pad … */
    tn_tensor *target;                                  /* [B, T + 1]: begin, tokens, end, pad … */
    tn_tensor *pair;                                    /* [B]: which pair each row is */
    int64_t    tokens;                                  /* of target_out, without padding */
} tn_pairs_batch;

/* Put together and ordered as the batches of a corpus are (corpus.h). */
typedef struct tn_pairs_batches_config {
    int            zero_;
    int64_t tokens TN_IS(4096); /* in a batch at most, padding counted, on its longer side: 4096. One longer is alone */
    int64_t        examples;    /* in a batch at most; 0: no limit */
    uint64_t       seed;
    bool           in_order; /* as they are in the files, for validation */
    int            end_;
} TN_KEYWORDS_ONLY tn_pairs_batches_config;

typedef struct tn_pairs_batches tn_pairs_batches;
TN_API tn_pairs_batches *tn_pairs_batches_create(const tn_pairs *p, tn_pairs_batches_config c); /* p must outlive it */
/* The next batch; false at the end of an epoch (the call after that begins the next one), or if an error stands. */
TN_API bool             tn_pairs_next(tn_pairs_batches *b, tn_pairs_batch *to);
TN_API int64_t          tn_pairs_batches_count(const tn_pairs_batches *b); /* of this epoch */
TN_API tn_data_position tn_pairs_position(const tn_pairs_batches *b);
TN_API tn_status        tn_pairs_seek(tn_pairs_batches *b, tn_data_position to);
TN_API tn_status        tn_pairs_shard(tn_pairs_batches *b, tn_shard shard); /* from the next batch on */
TN_API void             tn_pairs_batches_free(tn_pairs_batches *b);

/* For tn_fit: x the source, y the target, and the others of tn_pairs_batch by their names. A shard's rows are padded to
 * the longest of them. */
TN_API tn_source tn_pairs_source(tn_pairs_batches *b);

#ifndef __cplusplus
#define TN_PAIRS_DEFAULTS .min_tokens = 1
#define TN_PAIRS_BATCHES_DEFAULTS .tokens = 4096
#define TN_PAIRS_(...) ((tn_pairs_config){TN_PAIRS_DEFAULTS, TN_NAMED_, __VA_ARGS__})
#define tn_pairs_load(from, to, ...) TN_CALL_(tn_pairs_load_run(from, to, TN_PAIRS_(__VA_ARGS__)))
#define tn_pairs_tsv_load(path, ...) TN_CALL_(tn_pairs_tsv_load_run(path, TN_PAIRS_(__VA_ARGS__)))
#define tn_pairs_batches_new(...) TN_CALL_(tn_pairs_batches_create(TN_PAIRS_BATCHES_(__VA_ARGS__, .zero_ = 0)))
#define TN_PAIRS_BATCHES_(p, ...) p, ((tn_pairs_batches_config){TN_PAIRS_BATCHES_DEFAULTS, TN_NAMED_, __VA_ARGS__})
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif

/* pairs.h — pairs of lines that mean the same in two languages, as batches of token numbers. Part of data.h: include
 * that.
 *
 *     tn_parallel *pairs = tn_parallel_load("train.en", "train.de", (tn_parallel_config){
 *         .source = encoder, .target = encoder, .begin = 1, .end = 2, .max_tokens = 100});
 *     tn_parallel_batches *batches = tn_parallel_batches_new(pairs, (tn_batching){.tokens = 4096, .seed = 1});
 *     for (int epoch = 0; epoch < 10; epoch++) {
 *         tn_parallel_batch b;
 *         for (tn_scope s = tn_scope_begin(); tn_parallel_next(batches, &b); tn_scope_end(s), s = tn_scope_begin())
 *             train_step(model, b.source, b.source_padding, b.target_in, b.target_padding, b.target_out);
 *     }
 *
 * A line counts up to its "\n"; one "\r" before it is left out. */
#ifndef TENON_DATA_PARALLEL_H
#define TENON_DATA_PARALLEL_H

#include "batches.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    tn_encoder source, target;  /* what makes numbers of a line, without those that follow here */
    int32_t    pad, begin, end; /* what fills up; what the decoder begins with; what every line ends with */
    int64_t    min_tokens;      /* of a line, without its end; pairs with fewer on a side are left out; 0: 1 */
    int64_t    max_tokens;      /* the same for more; 0: no limit */
    double     max_ratio;       /* longer side to shorter side; 0: no limit */
    bool       refuse_empty;    /* a line without a token is an error, not left out */
} tn_parallel_config;

typedef struct tn_parallel tn_parallel;
/* Two files of as many lines, or one whose lines are "source <tab> target". Read once; the numbers are kept in memory,
 * the text is not. */
TN_API tn_parallel *tn_parallel_load(const char *source, const char *target, tn_parallel_config config);
TN_API tn_parallel *tn_parallel_load_tsv(const char *path, tn_parallel_config config);
TN_API int64_t      tn_parallel_count(const tn_parallel *p);                  /* pairs that were kept */
TN_API int64_t      tn_parallel_dropped(const tn_parallel *p);                /* pairs that were left out */
TN_API int64_t      tn_parallel_line(const tn_parallel *p, int64_t pair);     /* where it stood, from 0; -1: no pair */
TN_API int64_t      tn_parallel_tokens(const tn_parallel *p, bool of_target); /* without begin and end */
TN_API uint64_t     tn_parallel_checksum(const tn_parallel *p); /* of the numbers: the same pairs were loaded */
TN_API void         tn_parallel_free(tn_parallel *p);

/* Tensors of the scope that was open; i64, the masks bool, true for padding. */
typedef struct {
    tn_tensor *source, *source_padding;                 /* [B, S]: tokens, end, pad … */
    tn_tensor *target_in, *target_out, *target_padding; /* [B, T]: begin, tokens, pad … ; tokens, end, pad … */
    tn_tensor *pair;                                    /* [B]: which pair each row is */
    int64_t    tokens;                                  /* of target_out, without padding */
} tn_parallel_batch;

typedef struct tn_parallel_batches tn_parallel_batches;
TN_API tn_parallel_batches *tn_parallel_batches_new(const tn_parallel *p, tn_batching how); /* p must outlive it */
/* The next batch; false at the end of an epoch (the call after that begins the next one), or if an error stands. */
TN_API bool             tn_parallel_next(tn_parallel_batches *b, tn_parallel_batch *to);
TN_API int64_t          tn_parallel_batches_count(const tn_parallel_batches *b); /* of this epoch */
TN_API tn_data_position tn_parallel_position(const tn_parallel_batches *b);
TN_API tn_status        tn_parallel_seek(tn_parallel_batches *b, tn_data_position to);
TN_API void             tn_parallel_batches_free(tn_parallel_batches *b);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif

/* loading.h — a source that is read ahead by a thread, and datasets split at random. Include data.h. */
#ifndef TENON_DATA_LOADING_H
#define TENON_DATA_LOADING_H

#include "source.h"

TN_C_BEGIN_

/* Reads another source ahead, in a thread: the same batches in the same order, with the same positions in training
 * checkpoints, while the program computes. The source needs `begin` and `save`, so that its batches do not depend on
 * the program's generator, and what a batch's `user` points to must stay valid. Without threads it reads directly.
 *
 *     tn_prefetch *ahead = tn_prefetch_new(.source = &data);
 *     tn_source    fast = tn_prefetch_source(ahead);          // for tn_fit, or tn_source_next
 *     tn_prefetch_free(ahead);                                // before what `data` reads from */
typedef struct tn_prefetch tn_prefetch;
typedef struct tn_prefetch_config {
    int              zero_;
    const tn_source *source;   /* copied */
    int ahead        TN_IS(2); /* batches that are read ahead: 1 to 64 */
    int              end_;
} TN_KEYWORDS_ONLY tn_prefetch_config;
#define TN_PREFETCH_DEFAULTS .ahead = 2
TN_API tn_prefetch *tn_prefetch_create(tn_prefetch_config c);
TN_API tn_source    tn_prefetch_source(tn_prefetch *p);
TN_API void         tn_prefetch_free(tn_prefetch *p);
#define tn_prefetch_new(...) \
    TN_CALL_(tn_prefetch_create(TN_FILLED_(tn_prefetch_config, TN_PREFETCH_DEFAULTS, __VA_ARGS__)))

/* Splits the rows of a dataset at random into n datasets, which share its tensors and options: each row is in one of
 * them. shares[i] of the rows go to out[i], rounded down; the shares add up to 1, and the first datasets get the rows
 * that are left. The split depends only on the seed and the number of rows. Free each with tn_dataset_free.
 * After an error all of out are NULL. */
TN_API tn_status tn_random_split(const tn_dataset *all, uint64_t seed, int n, const double *shares, tn_dataset **out);

TN_C_END_
#endif

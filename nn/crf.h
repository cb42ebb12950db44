/* crf.h — a linear-chain conditional random field (Lafferty et al. 2001), the last layer of a tagger: the score of a
 * tag depends on the tag before it, and all tags of a sentence are predicted together. Part of nn.h: include that.
 *
 *     tn_crf    *crf = tn_crf_new(.labels = 9);
 *     tn_tensor *loss = tn_crf_loss(crf, scores, tags);      // scores [B, T, 9], tags [B, T]
 *     tn_crf_best(crf, tn_select(scores, 0, 0), best);       // int64_t best[T]
 *
 * Names of parameters are pytorch-crf's. */
#ifndef TENON_NN_CRF_H
#define TENON_NN_CRF_H

#include "module.h"

TN_C_BEGIN_

typedef struct tn_crf_config {
    int      zero_;
    int64_t  labels;
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_crf_config;
typedef struct {
    tn_module  base;
    int64_t    labels;
    tn_tensor *start, *end, *transitions; /* [labels]; [labels, labels], from the row's tag to the column's */
} tn_crf;
TN_API tn_crf *tn_crf_create(tn_crf_config c);

/* Returns -log p(tags) of all sentences divided by the number of tags. A step with a negative tag is skipped: the tags
 * before and after it count as adjacent. */
TN_API tn_tensor *tn_crf_loss(tn_crf *m, tn_tensor *scores, tn_tensor *tags);
/* Writes the most probable tags of one sentence, scores [T, labels], to to[T]. Returns their score; NaN: raised. */
TN_API double tn_crf_best(tn_crf *m, const tn_tensor *scores, int64_t *to);

TN_C_END_
#define tn_crf_new(...) TN_NEW_(tn_crf_create, tn_crf_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#endif

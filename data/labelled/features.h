/* features.h — labelled texts as rows of tokens with their targets. Private.
 *
 * A feature is one row, except for choices: one row per ending. */
#ifndef TENON_DATA_LABELLED_FEATURES_H
#define TENON_DATA_LABELLED_FEATURES_H

#include "data/corpus/batch_plan.h"
#include "data/labelled/labelled_private.h"

enum { TN__IGNORED = -100 }; /* target of a token that the loss ignores, as in cross-entropy */

typedef struct {
    int64_t first, example;
    int32_t length, start, end; /* start, end: tokens of the answer; 0: not in this row */
    int64_t label, labels;      /* of texts: first label in .label, number of labels */
    double  number;
} tn__row;

struct tn_features {
    tn_features_config  config;
    const tn_labelled  *from;
    const tn_tokenizer *tokens;
    const tn_labels    *labels;
    tn_encoding        *encoding;
    int32_t            *pieces; /* TN__FIELDS values per token: see tn__field */
    int64_t             n, pieces_room;
    tn__row            *row;
    int64_t             rows, row_room, group; /* group: rows per feature */
    tn_ids              label;
    int64_t             cut;
    int32_t            *length; /* tokens of each feature, for the plan */
    tn__batching        how;
    tn_shard            shard;
    tn__plan            plan;
    int64_t             planned;
    tn__position        next;
    int32_t            *column; /* the arrays that tn_features_at returns */
    int64_t             column_room;
};
enum tn__field { TN__ID, TN__TYPE, TN__WORD, TN__START, TN__END, TN__TARGET, TN__FIELDS };

/* Encodes all examples of f->from into rows. False: raised. */
bool tn__features_encode(tn_features *f);

#endif

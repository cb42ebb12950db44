/* features.h — labelled texts as pieces: rows of numbers, each with what is to be said of it. Private.
 *
 * A feature is one row, but of choices as many as there are endings. */
#ifndef TENON_DATA_LABELLED_FEATURES_H
#define TENON_DATA_LABELLED_FEATURES_H

#include "data/corpus/batch_plan.h"
#include "data/labelled/labelled_private.h"

enum { TN__IGNORED = -100 }; /* a piece of which nothing is to be said, as cross-entropy has it */

typedef struct {
    int64_t first, example;
    int32_t length, start, end; /* of answers: the pieces where it begins and ends; 0: it is not here */
    int64_t label, labels;      /* of texts: from where on in .labels, and how many */
    double  number;
} tn__row;

struct tn_features {
    tn_features_config  config;
    const tn_labelled  *from;
    const tn_tokenizer *tokens;
    const tn_labels    *labels;
    tn_encoding        *encoding;
    int32_t            *pieces; /* FIELDS numbers for each piece: see tn__field */
    int64_t             n, pieces_room;
    tn__row            *row;
    int64_t             rows, row_room, group; /* rows of a feature */
    tn_ids              label;
    int64_t             cut;
    int32_t            *length; /* of a feature, for the plan */
    tn__batching        how;
    tn_shard            shard;
    tn__plan            plan;
    int64_t             planned;
    tn_data_position    next;
    int32_t            *column; /* what tn_features_at gives: words, starts and ends of one feature */
    int64_t             column_room;
};
enum tn__field { TN__ID, TN__TYPE, TN__WORD, TN__START, TN__END, TN__TARGET, TN__FIELDS };

/* Encodes all of f->from into rows. False: raised. */
bool tn__features_encode(tn_features *f);

#endif

/* corpus_examples.h — the examples of a corpus for a masked language model: their list, and their rows in an epoch.
 * Private. */
#ifndef TENON_DATA_CORPUS_CORPUS_EXAMPLES_H
#define TENON_DATA_CORPUS_CORPUS_EXAMPLES_H

#include "data/corpus/batch_plan.h"
#include "data/corpus/corpus_private.h"

/* Whole sentences of one document from sentence `first` on, or a part of one sentence that is too long. */
typedef struct {
    uint32_t first, count; /* sentences */
    uint32_t skip, tokens; /* tokens skipped at the start of the first sentence; tokens in total */
    uint32_t document;
} tn__example;

typedef struct {
    const tn_corpus *corpus;
    tn_mlm_config    config;
    uint8_t         *kinds; /* [vocabulary], or NULL */
    tn__example     *example;
    int32_t         *length; /* with special tokens, at most max_tokens */
    int64_t          n, room, length_room;
} tn__examples;

static inline tn__batching tn__mlm_batching(const tn_mlm_config *m)
{
    return (tn__batching){.tokens = m->tokens, .examples = m->examples, .seed = m->seed, .in_order = m->in_order};
}

bool tn__examples_new(tn__examples *x, const tn_corpus *c, const tn_mlm_config *config);
void tn__examples_free(tn__examples *x);

/* A batch in plain memory. The arrays grow and are reused. */
typedef struct {
    int64_t  rows, width, tokens, masked;
    tn_ids   ids, next, row; /* [rows · width]; [rows]; the row being built */
    tn_ids   order;          /* [rows · width]; empty if not permuted */
    int64_t *masked_at;
    int64_t  masked_room;
    tn_ids   masked_ids;
    tn_ids   second, used; /* for each row: column of segment B, number of tokens */
    tn_ids   chosen;       /* starts of the units of a row that may be masked: tokens or words */
} tn__mlm_rows;
void tn__mlm_rows_free(tn__mlm_rows *r);

/* Builds the rows of examples[0 … n) for this epoch. Raises. */
bool tn__mlm_make(const tn__examples *x, int64_t epoch, const uint32_t *examples, int64_t n, tn__mlm_rows *to);

#endif

/* train_unigram.h — what the two halves of Unigram's training share: the words, the pieces that are left, and what the
 * rounds need. Private. */
#ifndef TENON_DATA_TOKENIZER_TRAIN_UNIGRAM_H
#define TENON_DATA_TOKENIZER_TRAIN_UNIGRAM_H

#include "data/tokenizer/tokenizer_train.h"

typedef struct {
    tn__strings words; /* each once, in the order of their bytes */
    int64_t    *count;
    int64_t     count_room;

    tn__strings pieces;                  /* the seed: letters, the frequent first, then the others */
    uint32_t    letters;                 /* so many */
    double     *score, *expected, *loss; /* [pieces.n] */
    bool       *alive;
    uint32_t   *order;
    int64_t     score_room, expected_room, loss_room, alive_room, order_room;
    double      least; /* of the scores */
    tn__trie    trie;  /* of those that were alive when it was built */

    double  *alpha, *beta; /* of the word at hand */
    size_t  *from;
    int32_t *piece_at;
    int64_t  alpha_room, beta_room, from_room, piece_room;
} tn__unigram;

/* From counted words, of which the last of a line ends in "\n", to the seed with its first scores. Raises. */
bool tn__unigram_seed(tn__unigram *u, const tn__counted *words, const tn_tokenizer_train_args *how);
bool tn__unigram_rounds(tn__unigram *u, uint32_t wanted, const tn_tokenizer_train_args *how);
bool tn__unigram_finish(tn_tokenizer *t, tn__unigram *u, uint32_t wanted); /* adds them to t's pieces */
void tn__unigram_free(tn__unigram *u);
/* All of it: adds pieces to t's, which are its special tokens. */
bool tn__train_unigram(tn_tokenizer *t, const tn__counted *words, const tn_tokenizer_train_args *how);

#endif

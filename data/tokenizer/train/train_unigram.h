/* train_unigram.h — the state of Unigram's training: the words, the remaining tokens, the buffers of the rounds.
 * Private. */
#ifndef TENON_DATA_TOKENIZER_TRAIN_TRAIN_UNIGRAM_H
#define TENON_DATA_TOKENIZER_TRAIN_TRAIN_UNIGRAM_H

#include "data/tokenizer/train/tokenizer_train.h"

typedef struct {
    tn__strings words; /* distinct words in byte order */
    int64_t    *count;
    int64_t     count_room;

    tn__strings tokens;                  /* the seed: characters, the most frequent first, then substrings */
    uint32_t    letters;                 /* number of characters */
    double     *score, *expected, *loss; /* [tokens.n] */
    bool       *alive;
    uint32_t   *order;
    int64_t     score_room, expected_room, loss_room, alive_room, order_room;
    double      lowest_score; /* lowest score */
    tn__trie    trie;         /* of the tokens that were alive when it was built */

    double  *alpha, *beta; /* of the current word */
    size_t  *from;
    int32_t *token_at;
    int64_t  alpha_room, beta_room, from_room, token_room;
} tn__unigram;

bool tn__unigram_rounds(tn__unigram *u, uint32_t wanted, const tn_tokenizer_train_args *args);
bool tn__unigram_finish(tn_tokenizer *t, tn__unigram *u, uint32_t wanted); /* adds the tokens to t */
/* The whole training: adds tokens to t, which has its special tokens. */
bool tn__train_unigram(tn_tokenizer *t, const tn__counted *words, const tn_tokenizer_train_args *args);

#endif

/* tokenizer_train.h — shared by the steps of training: counted words, and the merges learned from them. Private. */
#ifndef TENON_DATA_TOKENIZER_TRAIN_TOKENIZER_TRAIN_H
#define TENON_DATA_TOKENIZER_TRAIN_TOKENIZER_TRAIN_H

#include "data/tokenizer/encode/each_word.h"

enum { TN__COUNTED_CHARS_MAX = 1000 }; /* maximum characters of a counted word */

typedef struct {
    tn__strings word;
    int64_t    *count;
    int64_t     room;
    tn_string   marked; /* of Unigram: the last word of a line, which is counted with a "\n" */
} tn__counted;

/* Adds to t, which has its special tokens, the characters of the words as tokens, then the merges of the most frequent
 * pairs and their tokens. Raises. */
bool tn__train_merges(tn_tokenizer *t, const tn__counted *words, const tn_tokenizer_train_args *args);

#endif

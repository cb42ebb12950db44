/* tokenizer_train.h — what the two halves of training share: counted words, and the merges made of them. Private. */
#ifndef TENON_DATA_TOKENIZER_TOKENIZER_TRAIN_H
#define TENON_DATA_TOKENIZER_TOKENIZER_TRAIN_H

#include "data/tokenizer/tokenizer_private.h"

enum { TN__LETTERS_MOST = 1000 }; /* of a word that is counted */

typedef struct {
    tn__strings word;
    int64_t    *count;
    int64_t     room;
    const bool *line_end; /* of Unigram: is this word the last of its line? Then it is counted with a "\n" */
    tn_string   marked;
} tn__counted;

/* Adds to t's pieces (which are its special tokens) the letters of the words and what the most frequent pairs make, and
 * to its merges these pairs. Raises. */
bool tn__train_merges(tn_tokenizer *t, const tn__counted *words, const tn_tokenizer_train_args *how);

#endif

/* each_word.h — the words of a text, for training. Private. */
#ifndef TENON_DATA_TOKENIZER_ENCODE_EACH_WORD_H
#define TENON_DATA_TOKENIZER_ENCODE_EACH_WORD_H

#include "data/tokenizer/tokenizer_private.h"

/* Receives a word; last: of its text. False: raised, no further words. */
typedef bool (*tn__word_sink)(void *user, const char *word, size_t bytes, bool last);
/* Passes every word of a text of any bytes to the sink. Uses the memory of e. */
bool tn__each_word(const tn_tokenizer *t, tn_encoding *e, const char *text, size_t bytes, tn__word_sink sink,
                   void *user);

#endif

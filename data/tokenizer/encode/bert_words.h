/* bert_words.h — the word under construction, shared by BERT's fast and slow rules. Private. */
#ifndef TENON_DATA_TOKENIZER_ENCODE_BERT_WORDS_H
#define TENON_DATA_TOKENIZER_ENCODE_BERT_WORDS_H

#include "data/tokenizer/encode/encoding_private.h"

typedef struct {
    const tn_tokenizer *t;
    tn__encoding       *s;
    size_t              bytes; /* of the unfinished word, in s->word */
    int64_t             letters;
    int32_t             end;
    int32_t            *number;
} tn__bert;

bool tn__bert_end(tn__bert *w); /* ends the word, if one has started */
/* Adds a code point that comes from the bytes [from, to): strips its marks and lower-cases it if the rules ask for it;
 * then it extends the word, or becomes a word alone. */
bool tn__bert_put(tn__bert *w, uint32_t c, int32_t from, int32_t to);

bool tn__is_chinese(const tn_tokenizer *t, uint32_t c);

#endif

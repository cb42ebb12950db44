/* bert_words.h — what the fast and the slow rules of BERT share: the word that is being put together. Private. */
#ifndef TENON_DATA_TOKENIZER_BERT_WORDS_H
#define TENON_DATA_TOKENIZER_BERT_WORDS_H

#include "data/tokenizer/tokenizer_private.h"

typedef struct {
    const tn_tokenizer *t;
    tn__encoding       *s;
    size_t              bytes; /* of the word so far, in s->word */
    int64_t             letters;
    int32_t             end;
    int32_t            *number;
} tn__bert;

bool tn__bert_end(tn__bert *w); /* of the word, if there is one */
/* A code point that comes from the bytes [from, to): without its marks, in lower case, if the rules say so; then a part
 * of the word, or one by itself. */
bool tn__bert_put(tn__bert *w, uint32_t c, int32_t from, int32_t to);

bool tn__is_chinese(const tn_tokenizer *t, uint32_t c);

#endif

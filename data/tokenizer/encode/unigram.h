/* unigram.h — shared by the best segmentation of a word (unigram.c) and the other ones (unigram_sample.c). Private. */
#ifndef TENON_DATA_TOKENIZER_ENCODE_UNIGRAM_H
#define TENON_DATA_TOKENIZER_ENCODE_UNIGRAM_H

#include "data/tokenizer/encode/encoding_private.h"

/* Returns the length in bytes of the character at p, of which n bytes may be read. */
static inline size_t tn__char_bytes(const char *p, size_t n)
{
    const unsigned char b = (unsigned char)*p;
    const size_t        bytes = b < 0x80 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
    return bytes < n ? bytes : n;
}

/* Write another segmentation than the best to s->path: begin and id at the end of each token. */
bool tn__unigram_sample(const tn_tokenizer *t, tn__encoding *s, const tn__word *w);
bool tn__unigram_nth(const tn_tokenizer *t, tn__encoding *s, const tn__word *w);

#endif

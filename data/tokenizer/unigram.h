/* unigram.h — what the best way to put a word together (unigram.c) and other ways (unigram_ways.c) share. Private. */
#ifndef TENON_DATA_TOKENIZER_UNIGRAM_H
#define TENON_DATA_TOKENIZER_UNIGRAM_H

#include "data/tokenizer/tokenizer_private.h"

/* The bytes of the character at p, of which n are left. */
static inline size_t tn__letter_bytes(const char *p, size_t n)
{
    const unsigned char b = (unsigned char)*p;
    const size_t        bytes = b < 0x80 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
    return bytes < n ? bytes : n;
}

/* Of a piece of so many bytes; one that a user defined is better than any other way, the longer the better. */
static inline double tn__unigram_score(const tn_tokenizer *t, int32_t id, size_t bytes)
{
    if (t->type && t->type[id] == TN_TYPE_USER) return (double)(0.1f * (float)(bytes - 1));
    return t->score ? (double)t->score[id] : t->wide[id];
}

/* Other ways than the best, into s->path: begin and id where each piece ends. */
bool tn__unigram_sample(const tn_tokenizer *t, tn__encoding *s, const tn__a_word *w);
bool tn__unigram_nth(const tn_tokenizer *t, tn__encoding *s, const tn__a_word *w);

#endif

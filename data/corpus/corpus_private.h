/* corpus_private.h — the corpus struct and its cache file, for building, reading and batches. Private.
 *
 * The cache, little-endian: "TNCORPUS", a u32 version, a u32 with the bytes per token id (2 or 4), the token ids of all
 * sentences one after the other, the length of each sentence (u32), the number of sentences of each document (u32), and
 * a footer. A checksum in the footer covers the bytes before it; another covers the footer. */
#ifndef TENON_DATA_CORPUS_CORPUS_PRIVATE_H
#define TENON_DATA_CORPUS_CORPUS_PRIVATE_H

#include "data/text/data_private.h"
#include "data/corpus.h"

enum { TN__CORPUS_HEAD = 16, TN__CORPUS_VERSION = 1 };

typedef struct {
    uint64_t texts, encoder; /* checksum of the files; the caller's checksum of the encoder */
    uint64_t vocabulary, by_rule;
    uint64_t tokens, sentences, documents;
    uint64_t body, self; /* checksums: of the bytes before the footer; of the members before this one */
} tn__corpus_footer;

struct tn_corpus {
    tn__source        source;
    char              label[TN__LABEL];
    tn__corpus_footer footer;
    int               width; /* bytes per token id in the cache */
    bool              made;
    int64_t          *start;    /* first token of sentence i; start[sentences] = tokens */
    uint32_t         *document; /* first sentence of document i; document[documents] = sentences */
};

/* Writes the cache. Raises. (corpus_build.c) */
bool tn__corpus_build(const tn_corpus_config *c, const char *label);
/* Reads the token ids from … from + n - 1 of the corpus. Raises. */
bool tn__corpus_read(const tn_corpus *c, int64_t from, int64_t n, int32_t *to);

/* Returns the end of the first sentence of a text that continues after it; 0 if none is found. from: bytes that have
 * already been searched. (corpus_sentences.c) */
size_t tn__sentence_end(const char *text, size_t bytes, size_t from);

#endif

/* corpus_private.h — a corpus as its maker, its reader and its batches see it. Private.
 *
 * The cache, little-endian: "TNCORPUS", a u32 version, a u32 with the bytes of a token number (2 or 4), the numbers of
 * all sentences one after the other, the length of each sentence (u32), the sentences of each document (u32), and a
 * footer. What is before the footer is covered by its checksum, and so is the footer. */
#ifndef TENON_DATA_CORPUS_CORPUS_PRIVATE_H
#define TENON_DATA_CORPUS_CORPUS_PRIVATE_H

#include "data/text/data_private.h"
#include "data/corpus.h"

enum { TN__CORPUS_HEAD = 16, TN__CORPUS_VERSION = 1 };

typedef struct {
    uint64_t texts, encoder; /* checksums of the files, of the encoder as the caller tells it */
    uint64_t vocabulary, by_rule;
    uint64_t tokens, sentences, documents;
    uint64_t body, self; /* checksums: of what stands before, of the members before this one */
} tn__corpus_footer;

struct tn_corpus {
    tn__source        source;
    char              label[TN__LABEL];
    tn__corpus_footer footer;
    int               width; /* bytes of a number in the cache */
    bool              made;
    int64_t          *start;    /* of sentence i, in tokens; start[sentences] = tokens */
    uint32_t         *document; /* the first sentence of document i; document[documents] = sentences */
};

/* Makes the cache. Raises. (corpus_build.c) */
bool tn__corpus_build(const tn_corpus_config *c, const char *label);
/* Numbers from … from + n of the corpus. Raises. */
bool tn__corpus_read(const tn_corpus *c, int64_t from, int64_t n, int32_t *to);

/* The end of the first sentence of a text, which goes on after it; 0 if there is none. from: how far it has been looked
 * through. (corpus_sentences.c) */
size_t tn__sentence_end(const char *text, size_t bytes, size_t from);

#endif

/* export_record.h — a file of inputs of an exported model, with hashes of the library's results: export_records.c
 * writes it, export_replay.c compares. */
#ifndef TENON_EXTRAS_TESTS_PROJECT_EXPORT_RECORD_H
#define TENON_EXTRAS_TESTS_PROJECT_EXPORT_RECORD_H

#include <stdint.h>
#include <string.h>

/* Functions of an exported model. READ: model_read and model_logits for each token. LISTEN: model_run of a translator.
 * SEE: model_classify of images. */
enum { ENCODE, DECODE, READ, LISTEN, RUN, FILL, TAG, CLASSIFY, SEE, LIKELY };
enum { ITEMS = 1 << 16 }; /* maximum of a call */

/* A call. After it: int32_t item[n], which are the bytes of a text, tokens, or pixels. */
struct record {
    int32_t  input, call, n, last; /* input: its number; last: the argument of model_fill and model_tag */
    int32_t  width, none;          /* width: results of a row */
    uint64_t hash;                 /* of the results */
};

/* FNV-1a over words: a change of one word always changes the hash. */
#define HASH_START 0xcbf29ce484222325u
static inline uint64_t hash_word(uint64_t h, uint32_t x) { return (h ^ x) * 0x100000001b3u; }
static inline uint64_t hash_bytes(uint64_t h, const char *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) h = hash_word(h, (unsigned char)x[i]);
    return hash_word(h, (uint32_t)n);
}
/* The bits of rows, `apart` numbers from each other. */
static inline uint64_t hash_rows(uint64_t h, const float *x, int64_t rows, int64_t width, int64_t apart)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < width; i++) {
            uint32_t bits;
            memcpy(&bits, x + r * apart + i, sizeof bits);
            h = hash_word(h, bits);
        }
    return h;
}

#endif

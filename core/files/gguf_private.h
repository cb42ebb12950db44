/* gguf_private.h — what the parts of the GGUF reader and writer share. Private. */
#ifndef TENON_CORE_FILES_GGUF_PRIVATE_H
#define TENON_CORE_FILES_GGUF_PRIVATE_H

#include "core/files/blocks.h"
#include "core/files/safetensors.h"

enum {
    TN__GGUF_HEADER = 256 << 20, /* bytes */
    TN__GGUF_TENSORS = 100000,
    TN__GGUF_KEYS = 100000,
    TN__GGUF_KEY = 65535, /* bytes */
    TN__GGUF_DEPTH = 8,
    TN__GGUF_ALIGN = 32,
    TN__GGUF_MOST_ALIGN = 1 << 20
};

typedef struct {
    const char *key;
    const char *text; /* of a string; NULL: it holds a NUL, or this is none */
    uint32_t    key_bytes;
    uint8_t     type, item;
    int64_t     count;
    size_t      at; /* in the header, of the value; of an array, of its first item */
} tn__gguf_pair;

struct tn_gguf {
    tn_safetensors *tensors; /* the source is its */
    unsigned char  *header;
    size_t          header_bytes;
    bool            owned; /* header is */
    tn__gguf_pair  *pairs;
    char           *strings; /* keys and strings that are no items */
    size_t          strings_room, strings_used;
    tn__names       keys;
    int64_t         tensor_count, pair_count; /* as the file says */
    int64_t         align;
    bool            filling; /* the second time that the header is parsed */
    int64_t         named;   /* pairs that are filled in */
};

extern const uint8_t   tn__gguf_bytes[TN_GGUF_NONE]; /* of a number; 0: a string or an array */
static inline uint64_t tn__little(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    while (bytes) v = v << 8 | p[--bytes];
    return v;
}

/* Reads the header of g's open source and fills in everything. Raises. */
bool tn__gguf_header(tn_gguf *g);

#endif

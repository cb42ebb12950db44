/* gguf_private.h — declarations shared by the parts of the GGUF reader and writer. Private. */
#ifndef TENON_CORE_FILES_GGUF_PRIVATE_H
#define TENON_CORE_FILES_GGUF_PRIVATE_H

#include "core/files/quant_blocks.h"
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
    const char *text; /* of a string; NULL: contains a NUL, or not a string */
    uint32_t    key_bytes;
    uint8_t     type, item;
    int64_t     count;
    size_t      at; /* position in the header of the value, or of an array's first item */
} tn__gguf_pair;

struct tn_gguf {
    tn_safetensors *tensors; /* owns the source */
    unsigned char  *header;
    size_t          header_bytes;
    bool            owned; /* owns header */
    tn__gguf_pair  *pairs;
    char           *strings; /* keys, and strings that are not items */
    size_t          strings_room, strings_used;
    tn__names       keys;
    int64_t         tensor_count, pair_count; /* counts in the file */
    int64_t         align;
    bool            filling; /* the header is being parsed a second time */
    int64_t         named;   /* number of pairs filled in */
};

extern const uint8_t   tn__gguf_bytes[TN_GGUF_NONE]; /* bytes of a number; 0: a string or an array */
static inline uint64_t tn__little(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    while (bytes) v = v << 8 | p[--bytes];
    return v;
}

/* Reads the header of g's open source and fills g. Raises. */
bool tn__gguf_header(tn_gguf *g);

#endif

/* json_tree.h — a JSON document in memory, for the two files that use its layout. Private.
 *
 * One block: header | values | tables that find the keys of large objects | strings. The children of an array or object
 * are adjacent, so that the i-th is found directly. */
#ifndef TENON_CORE_FILES_JSON_TREE_H
#define TENON_CORE_FILES_JSON_TREE_H

#include "core/files/io.h"

#include <string.h>

struct tn_json { /* 24 bytes */
    uint8_t  type;
    uint8_t  flags;
    uint32_t index; /* in the document: to find the header */
    uint32_t at;    /* position in the text, for messages */
    uint32_t key;   /* offset of its name among the strings */
    union {
        int64_t  i;
        uint64_t u;
        double   d;
        struct {
            uint32_t at, bytes;
        } string;
        struct {
            uint32_t first, count; /* of a large object: offset of its table, which starts with count */
        } child;
    };
};

enum {
    TN__JSON_LAST = 1,     /* of its siblings */
    TN__JSON_LARGE = 2,    /* an object with a table: count, mask, slots */
    TN__JSON_NEGATIVE = 4, /* an integer that is read as signed */
    TN__JSON_SMALL = 8     /* objects of up to this many members are searched one by one */
};
#define TN__JSON_NO_KEY UINT32_MAX

typedef struct {
    size_t   bytes; /* of the block */
    uint32_t values, table_at, string_at;
    uint64_t seed[2];
    char     name[TN__QUOTED]; /* of the file, for messages */
    tn_json  value[];
} tn__json_document;

static inline const tn__json_document *tn__json_document_of(const tn_json *v)
{
    const char *first = (const char *)(v - v->index);
    return (const tn__json_document *)(const void *)(first - offsetof(tn__json_document, value));
}

static inline const uint32_t *tn__json_table(const tn__json_document *d, const tn_json *v)
{
    return (const uint32_t *)(const void *)((const char *)d + d->table_at) + v->child.count;
}

static inline uint32_t tn__json_count(const tn__json_document *d, const tn_json *v)
{
    return v->flags & TN__JSON_LARGE ? tn__json_table(d, v)[0] : v->child.count;
}

/* A string of the document: its length in four bytes, its bytes, a NUL. */
static inline const char *tn__json_string_at(const tn__json_document *d, uint32_t at, size_t *bytes)
{
    const char *p = (const char *)d + d->string_at + at;
    uint32_t    n;
    memcpy(&n, p, sizeof n);
    *bytes = n;
    return p + sizeof n;
}

static inline const char *tn__json_key_of(const tn__json_document *d, const tn_json *v, size_t *bytes)
{
    return tn__json_string_at(d, v->key, bytes);
}

/* The name of the i-th child, for tables of names; owner: the first child. */
const char *tn__json_child_name(const void *owner, uint32_t i, size_t *bytes);

#endif

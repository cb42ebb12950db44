/* safetensors.h — what the parts of the safetensors reader share. Private. */
#ifndef TENON_CORE_FILES_SAFETENSORS_H
#define TENON_CORE_FILES_SAFETENSORS_H

#include "core/files/io.h"

enum {
    TN__ST_HEADER = 100000000, /* bytes; the reference's own limit */
    TN__ST_TENSORS = 1000000,
    TN__ST_NAME = 1024,
    TN__ST_PAIRS = 10000,
    TN__ST_METADATA = 16 << 20 /* bytes of all keys and values */
};

typedef struct {
    const char *name;
    uint32_t    name_bytes;
    int32_t     element; /* of tn__elements; beyond them, TN__ELEMENTS + of tn__blocks */
    tn_shape    shape;
    tn_shape    stride;     /* if strided: in elements; begin is where element 0 is */
    int64_t     begin, end; /* from the file's base */
    size_t      at;         /* of its entry in the header, for messages; of an index: 1 if the index names it */
    uint32_t    shard;      /* of an index: which file it is in */
    bool        strided;
    const char *sum;   /* its checksum as 16 digits; NULL: it has none */
    int32_t     heads; /* not 0: of the rows of so many heads, those of a pair stand side by side; read, they do not */
} tn__st_entry;

typedef struct {
    const char *key, *value;
    size_t      key_bytes, at;
} tn__st_pair;

struct tn_safetensors {
    tn__source    source;
    char          path[TN__QUOTED]; /* "'model.safetensors'", for messages */
    char          label[TN__LABEL]; /* of the opening */
    char         *header;           /* while it is parsed */
    int64_t       header_bytes;
    int64_t       base; /* where the entries' bytes begin */
    bool          big_endian;
    tn__st_entry *entries;
    tn__st_pair  *pairs;
    char         *strings;
    uint32_t     *slots; /* of names and keys */
    tn__names     names, keys;
    uint32_t      count, pair_count, room, pair_room;
    size_t        string_room, strings_used, metadata_bytes;
    bool          filling; /* the second time that the header is parsed */

    tn_safetensors **shards; /* of an index: its files; then source, header, pairs and strings are not used */
    uint32_t         shard_count, shard_room;
};

/* Checks the header's text, all but what concerns two entries, and counts entries, pairs and bytes of strings; or,
 * filling, writes them into their tables. Raises. */
bool tn__st_parse(tn_safetensors *f);
/* Raises "label: tensor 'a' (byte 17): ..."; false. at: of its entry in the header. */
bool tn__st_fail(const tn_safetensors *f, const char *name, size_t at, const char *fmt, ...) TN_PRINTF(4, 5);

/* Fills f, which has its names and nothing else, from an index and the files that it names. Raises. */
bool tn__st_open_index(tn_safetensors *f, const char *path);
/* One file (safetensors_read.c): begin; then finish, which reads its header if it could be opened. NULL: raised. */
tn_safetensors *tn__st_begin(const char *who, const char *path);
tn_safetensors *tn__st_finish(tn_safetensors *f, bool opened);
/* A file of an index, named by it. NULL: raised. */
tn_safetensors *tn__st_open_shard(const char *path);
bool            tn__st_index_names(tn_safetensors *f); /* once slots are there; raises at a name that is there twice */
uint32_t       *tn__st_slots(tn_safetensors *f);       /* for count names and pair_count keys */

/* The table of a file of another format, which says where its tensors are: begin; then this, for at most so many
 * tensors and bytes of names; then each; then tn__st_index_names. Raise. */
bool          tn__st_reserve(tn_safetensors *f, uint32_t count, size_t name_bytes);
tn__st_entry *tn__st_add(tn_safetensors *f, const char *name, size_t bytes); /* NULL: raised. The name is copied */

/* The i-th tensor; blocks as f32 or bf16. Raises. */
tn_tensor *tn__st_read(const tn_safetensors *f, const char *who, int64_t i, tn_dtype packed_as);

/* What a writer has been given, in order. */
struct tn__st_item {
    char      *name;
    tn_tensor *tensor; /* a handle of our own on its storage, without its history */
};
const struct tn__st_item *tn__st_items(const tn_safetensors_writer *w, uint32_t *count);

/* Checksums (safetensors_sums.c): those of the items in this order, in a block of tn__st_sums_room, and the name of the
 * note that they are (NULL: there are none, or raised); from a file's metadata to its entries; does a tensor have its
 * own? The latter two raise. */
size_t tn__st_sums_room(uint32_t count);
char  *tn__st_sums(const struct tn__st_item *items, uint32_t count, const uint32_t *order, const char **named);
bool   tn__st_take_sums(tn_safetensors *f);
bool   tn__st_sound(const char *label, const tn__st_entry *e, const tn_tensor *t);
/* As tn_safetensors_save, with checksums, which reading compares. */
tn_status tn__safetensors_save_summed(tn_safetensors_writer *w, const char *path);

#endif

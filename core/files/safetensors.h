/* safetensors.h — declarations shared by the parts of the safetensors reader. Private. */
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
    int32_t     element; /* index in tn__elements; above them, TN__ELEMENTS + index in tn__quant_blocks */
    tn_shape    shape;
    tn_shape    stride;     /* if strided: in elements; begin is the position of element 0 */
    int64_t     begin, end; /* offsets from the file's base */
    size_t      at;         /* of its entry in the header, for messages; of an index: 1 if the index names it */
    uint32_t    shard;      /* of an index: the file that contains it */
    bool        strided;
    const char *sum;      /* its checksum as 16 digits; NULL: none */
    int32_t     heads;    /* not 0: in the file, paired rows of `heads` heads are adjacent; reading separates them */
    bool        plus_one; /* the file has 1 + the elements, which are f32; reading subtracts 1 */
} tn__st_entry;

typedef struct {
    const char *key, *value;
    size_t      key_bytes, at;
} tn__st_pair;

struct tn_safetensors {
    tn__source    source;
    char          path[TN__QUOTED]; /* "'model.safetensors'", for messages */
    char          label[TN__LABEL]; /* of the opening call */
    char         *header;           /* only during parsing */
    int64_t       header_bytes;
    int64_t       base; /* position of the entries' bytes */
    bool          big_endian;
    tn__st_entry *entries;
    tn__st_pair  *pairs;
    char         *strings;
    uint32_t     *slots; /* of names and keys */
    tn__names     names, keys;
    uint32_t      count, pair_count, room, pair_room;
    size_t        string_room, strings_used, metadata_bytes;
    bool          filling; /* the header is being parsed a second time */

    tn_safetensors **shards; /* of an index: its files; then source, header, pairs and strings are not used */
    uint32_t         shard_count, shard_room;
};

/* Checks the header's text, except conditions on two entries, and counts entries, pairs and bytes of strings; or, if
 * filling, writes them into their tables. Raises. */
bool tn__st_parse(tn_safetensors *f);
/* Raises "label: tensor 'a' (byte 17): ..."; false. at: of its entry in the header. */
bool tn__st_fail(const tn_safetensors *f, const char *name, size_t at, const char *fmt, ...) TN_PRINTF(4, 5);

/* Fills f, which only has its names, from an index and the files that it names. Raises. */
bool tn__st_open_index(tn_safetensors *f, const char *path);
/* Opens one file (safetensors_read.c): begin; then finish, which reads its header if it was opened. NULL: raised. */
tn_safetensors *tn__st_begin(const char *who, const char *path);
tn_safetensors *tn__st_finish(tn_safetensors *f, bool opened);
/* Opens a file that an index names. NULL: raised. */
tn_safetensors *tn__st_open_shard(const char *path);
bool            tn__st_index_names(tn_safetensors *f); /* needs slots; raises if a name occurs twice */
uint32_t       *tn__st_slots(tn_safetensors *f);       /* for count names and pair_count keys */

/* Makes the table of a file of another format, whose reader knows the positions of tensors: begin; then reserve, for at
 * most `count` tensors and name_bytes bytes of names; then add each; then tn__st_index_names. Raise. */
bool          tn__st_reserve(tn_safetensors *f, uint32_t count, size_t name_bytes);
tn__st_entry *tn__st_add(tn_safetensors *f, const char *name, size_t bytes); /* NULL: raised. The name is copied */

/* Reads the i-th tensor; blocks as f32 or bf16. Raises. */
tn_tensor *tn__st_read(const tn_safetensors *f, const char *who, int64_t i, tn_dtype packed_as);

/* Items of a writer, in order. */
struct tn__st_item {
    char      *name;
    tn_tensor *tensor; /* the writer's handle on its storage, without its history */
};
const struct tn__st_item *tn__st_items(const tn_safetensors_writer *w, uint32_t *count);

/* Checksums (safetensors_checksums.c). tn__st_checksums returns those of the items in this order, in a block of
 * tn__st_checksums_bytes bytes, and the name of their metadata key (NULL: no checksums, or raised).
 * tn__st_take_checksums copies them from a file's metadata to its entries; raises. tn__st_checksum_ok compares a tensor
 * with its checksum; raises if they differ. */
size_t tn__st_checksums_bytes(uint32_t count);
char  *tn__st_checksums(const struct tn__st_item *items, uint32_t count, const uint32_t *order, const char **named);
bool   tn__st_take_checksums(tn_safetensors *f);
bool   tn__st_checksum_ok(const char *label, const tn__st_entry *e, const tn_tensor *t);
/* tn_safetensors_save with checksums, which reading compares. */
tn_status tn__safetensors_save_with_checksums(tn_safetensors_writer *w, const char *path);

#endif

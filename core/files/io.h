/* io.h — the private parts shared by the file formats: files as sources and sinks, the strict JSON scanner, names found
 * by hashing, element types of files, and texts for messages. Not installed. */
#ifndef TENON_CORE_FILES_IO_H
#define TENON_CORE_FILES_IO_H

#include "core/core.h"

/* ---- texts for messages (core/files/file.c) ---------------------------------------------------------------------- */

/* Writes 'text', shortened in its middle to about `keep` bytes, with unprintable bytes as \xNN; returns to. */
enum { TN__QUOTED = 200 };
const char *tn__quote(char to[TN__QUOTED], const char *text, size_t bytes, size_t keep);

/* Writes "tn_npy_load: 'path'", with which every message about a file starts; path may be NULL. */
enum { TN__LABEL = 280 };
const char *tn__label(char to[TN__LABEL], const char *who, const char *path);

/* ---- sources (core/files/file.c) --------------------------------------------------------------------------------- */

typedef struct {
    const char          *label;
    const unsigned char *memory; /* or, if NULL, */
    int                  fd;
    int64_t              size;
} tn__source;

/* True if a file of this name exists. Raises nothing. */
bool tn__file_exists(const char *path);
/* 1: it exists; 0: it does not, or is inaccessible; -1: unknown, because the system call failed. */
int tn__file_probe(const char *path);

tn_status tn__file_remove(const char *label, const char *path); /* no error if it is missing */

/* A regular file of any size; or memory. Borrows label. Raises. */
bool tn__source_open(tn__source *s, const char *label, const char *path);
/* Opens a name that came from another file: no symbolic link is followed except those of Hugging Face's cache. */
bool tn__source_open_linked(tn__source *s, const char *label, const char *path);
bool tn__source_memory(tn__source *s, const char *label, const void *data, size_t bytes);
bool tn__source_read(const tn__source *s, void *to, int64_t at, size_t bytes); /* all of them; raises */
void tn__source_prefetch(const tn__source *s, int64_t at, int64_t bytes);      /* a hint: they will be read soon */
void tn__source_close(tn__source *s);

typedef struct {
    const char    *label, *path;
    unsigned char *memory; /* or, if NULL, */
    int            fd, dir;
    char          *names; /* the folder and the temporary name, in sequence */
    const char    *temporary;
    size_t         names_bytes;
    int64_t        size, at;
} tn__sink;

/* A file that replaces path when it is committed, not earlier; or memory. size: total bytes to be written. */
bool tn__sink_open(tn__sink *s, const char *label, const char *path, int64_t size);
void tn__sink_memory(tn__sink *s, const char *label, void *to, int64_t size);
/* A regular file, created if missing, to which bytes are appended immediately; a commit syncs them to the disk. */
bool      tn__sink_append(tn__sink *s, const char *label, const char *path);
bool      tn__sink_write(tn__sink *s, const void *from, size_t bytes); /* raises */
tn_status tn__sink_end(tn__sink *s, bool commit); /* frees everything; without commit the old file is unchanged */

/* ---- SHA256SUMS, the checksums of a folder's small files (core/files/sha256sums.c) ------------------------------- */

/* Compares the bytes with path's line in the SHA256SUMS of its folder, if any. False: raised, because they differ. */
bool tn__sha256sums_check(const char *path, const void *data, size_t bytes);
/* Writes path: data, then `end`. If its folder has a SHA256SUMS, adds a line for path; begin: creates SHA256SUMS. */
tn_status tn__sha256sums_write(const char *label, const char *path, const void *data, size_t bytes, const char *end,
                               bool begin);
tn_status tn__sha256sums_remove(const char *path); /* the file, and its line; no error if it is missing */

/* ---- element types of files (core/files/file_dtypes.c) ----------------------------------------------------------- */

typedef struct {
    const char *safetensors; /* "F16"; in the order of that format, smallest first */
    char        npy[3];      /* "f2", "" if npy has none */
    uint8_t     bits;
    int8_t      dtype; /* the dtype it loads as; -1: not loadable */
} tn__element;
enum { TN__ELEMENTS = 22 };
extern const tn__element tn__elements[TN__ELEMENTS];

int tn__element_of_dtype(tn_dtype dt);                   /* the type that stores it in files */
int tn__element_of_name(const char *name, size_t bytes); /* safetensors' name; -1: unknown */
int tn__element_of_npy(const char *name);                /* "f4"; -1: unknown */

/* A new tensor from the elements at `at`; checks bool and u8 values. what: "tensor 'a'", for messages. Raises. */
tn_tensor *tn__element_read(const tn__source *s, int64_t at, int element, bool big_endian, tn_shape shape,
                            const char *what);
/* t's elements in order, little-endian, whatever its strides. Raises. */
bool tn__element_write(tn__sink *s, const tn_tensor *t);

/* ---- names (core/files/name_table.c) ----------------------------------------------------------------------------- */

/* Finds i by its name. The names are stored elsewhere: name(owner, i, &bytes) returns them. The table is seeded, so
 * that a file cannot provoke collisions. */
typedef struct {
    uint32_t *slot; /* i + 1, or 0 */
    uint32_t  mask; /* slots - 1 */
    uint64_t  seed[2];
    const char *(*name)(const void *owner, uint32_t i, size_t *bytes);
    const void *owner;
} tn__names;
uint32_t tn__names_slots(uint32_t n); /* for n names */
void     tn__names_seed(tn__names *x);
int64_t  tn__names_find(const tn__names *x, const char *text, size_t bytes); /* -1: missing */
int64_t  tn__names_add(tn__names *x, uint32_t i); /* -1, or the i that already has this name */
/* The i whose name is most similar to text, for "did you mean"; -1: none is similar. */
int64_t tn__names_nearest(const tn__names *x, uint32_t n, const char *text);

/* Sorts in place, without memory, in n log n for any input order. */
void tn__sort(uint32_t *x, size_t n, bool (*less)(const void *owner, uint32_t a, uint32_t b), const void *owner);

/* ---- the JSON scanner (core/files/json_scan.c) ------------------------------------------------------------------- */

typedef enum {
    TN__JSON_END,
    TN__JSON_OPEN_OBJECT,
    TN__JSON_CLOSE_OBJECT,
    TN__JSON_OPEN_ARRAY,
    TN__JSON_CLOSE_ARRAY,
    TN__JSON_KEY, /* and its colon */
    TN__JSON_STRING,
    TN__JSON_INTEGER,
    TN__JSON_REAL,
    TN__JSON_TRUE,
    TN__JSON_FALSE,
    TN__JSON_NULL
} tn__json_kind;

typedef struct {
    const char *label;
    const char *text;
    size_t      bytes, at;
    int64_t     base; /* position of the text in the file, for messages */
    int         depth, max_depth;
    int         expect;
    uint64_t    object[TN_JSON_MAX_DEPTH / 64]; /* bit d: the container at depth d is an object */
} tn__json_scan;

typedef struct {
    tn__json_kind kind;
    size_t        at;  /* in the text */
    const char   *raw; /* of a string: between the quotes */
    size_t        raw_bytes;
    size_t        bytes;     /* of a string, without its escapes */
    bool          has_nul;   /* a string with \u0000 in it */
    uint64_t      magnitude; /* of an integer */
    bool          negative;
    double        real;
} tn__json_token;

/* Checks the UTF-8 of the whole text; then each call returns the next token of a text that is well-formed up to there.
 * Uses no memory. False: raised. */
bool tn__json_begin(tn__json_scan *s, const char *label, const char *text, size_t bytes, int64_t base, int max_depth);
bool tn__json_next(tn__json_scan *s, tn__json_token *t);
void tn__json_unescape(const tn__json_token *t, char *to); /* writes t->bytes bytes, no NUL */
/* Raises "label: line 1, column 2 (byte 1): ..."; false. */
bool        tn__json_fail(const tn__json_scan *s, size_t at, const char *fmt, ...) TN_PRINTF(3, 4);
const char *tn__json_shown(char to[TN__QUOTED], const tn__json_token *t); /* a string token, quoted for a message */

/* Any number, also those that JSON lacks: "inf" and "-inf" are strings, and NaN is omitted. */
void   tn__json_put_number(tn_json_writer *w, const char *key, double v);
double tn__json_number(const tn_json *o, const char *key);

#endif

/* files.h — reading and writing files: JSON, npy, safetensors; and numbers as text. Part of core.h: include that.
 *
 *   - Reading any file, however hostile, corrupts no memory, runs no code, touches no other file and stays within the
 *     limits stated here; a format violation is TN_EFORMAT, and the message names the position.
 *   - Saving is all or nothing: the file is written under another name in the same folder, synced, and then renamed,
 *     so a crash, a full disk or an error leaves the old file unchanged. Only regular files are read or replaced.
 *   - The locale has no effect on reading or writing. */
#ifndef TENON_CORE_FILES_H
#define TENON_CORE_FILES_H

#include "core.h"

TN_C_BEGIN_

/* ---- JSON: reading ------------------------------------------------------------------------------------------------ *
 *
 *     tn_json *c = tn_json_load("config.json");
 *     int64_t width = tn_json_i64(tn_json_need(c, "hidden_size"));              // an error if it is missing
 *     double  eps   = tn_json_double_or(tn_json_get(c, "layer_norm_eps"), 1e-12);
 *     for (const tn_json *x = tn_json_first(tn_json_get(c, "architectures")); x; x = tn_json_next(x))
 *         puts(tn_json_string(x));
 *     tn_json_free(c);
 *
 * Strict: UTF-8 only, no comments, no trailing commas, no NaN, no key twice in one object (and, Tenon's own limit, no
 * key with \u0000 in it). Reading a value as another type is an error that names the file and the position:
 * "'config.json': layers[2].size (byte 186) is the string 'x', expected an integer from -2^63 to 2^63 - 1". */

typedef struct tn_json tn_json; /* a value; the document's first value owns them all */

typedef enum {
    TN_JSON_NONE = 0, /* the type of NULL */
    TN_JSON_NULL,
    TN_JSON_BOOL,
    TN_JSON_INTEGER, /* exact, from -2^63 to 2^64 - 1 */
    TN_JSON_REAL,    /* any other number; one with a '.' or an exponent always is */
    TN_JSON_STRING,
    TN_JSON_ARRAY,
    TN_JSON_OBJECT
} tn_json_type;

enum { TN_JSON_MAX_DEPTH = 1024 };
typedef struct {
    int     depth;  /* maximum nesting of arrays and objects; 0: 64; at most TN_JSON_MAX_DEPTH */
    int64_t bytes;  /* maximum bytes of text; 0: 256 MiB; at most 4 GiB - 1 */
    int64_t values; /* maximum values in the document; 0: only limited by the bytes */
} tn_json_limits;

TN_API tn_json *tn_json_load(const char *path);
TN_API tn_json *tn_json_parse(const char *text, size_t bytes);
TN_API tn_json *tn_json_load_within(const char *path, tn_json_limits limits);
TN_API tn_json *tn_json_parse_within(const char *text, size_t bytes, tn_json_limits limits);
TN_API void     tn_json_free(tn_json *document);

/* Finding values: NULL if the value does not exist, and for every query of NULL. */
TN_API tn_json_type   tn_json_type_of(const tn_json *v);
TN_API int64_t        tn_json_count(const tn_json *v); /* of an array or object; otherwise 0 */
TN_API const tn_json *tn_json_get(const tn_json *object, const char *key);
TN_API const tn_json *tn_json_need(const tn_json *object, const char *key); /* raises TN_EINDEX if missing */
TN_API const tn_json *tn_json_at(const tn_json *array, int64_t i);          /* also the i-th member of an object */
TN_API const tn_json *tn_json_first(const tn_json *v);
TN_API const tn_json *tn_json_next(const tn_json *v);
TN_API const char    *tn_json_key(const tn_json *v); /* a member's name; otherwise "" */

/* Reading values. NULL returns 0, false, "" or the fallback (JSON null also returns the fallback); another type raises
 * TN_EFORMAT. */
TN_API int64_t     tn_json_i64(const tn_json *v);
TN_API uint64_t    tn_json_u64(const tn_json *v);
TN_API double      tn_json_double(const tn_json *v); /* of any number */
TN_API bool        tn_json_bool(const tn_json *v);
TN_API const char *tn_json_string(const tn_json *v);       /* UTF-8, NUL-terminated; valid as long as the document */
TN_API int64_t     tn_json_string_bytes(const tn_json *v); /* without that NUL; the string may contain NULs */
TN_API int64_t     tn_json_i64_or(const tn_json *v, int64_t fallback);
TN_API double      tn_json_double_or(const tn_json *v, double fallback);
TN_API bool        tn_json_bool_or(const tn_json *v, bool fallback);
TN_API const char *tn_json_string_or(const tn_json *v, const char *fallback);

/* ---- JSON: writing ------------------------------------------------------------------------------------------------ *
 *
 *     tn_json_writer *w = tn_json_writer_new(2);
 *     tn_json_open_object(w, NULL);
 *     tn_json_put_string(w, "model_type", "bert");
 *     tn_json_open_array(w, "sizes");
 *     tn_json_put_i64(w, NULL, 256);
 *     tn_json_close(w);
 *     tn_json_close(w);
 *     if (tn_json_save(w, "config.json") != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_json_writer_free(w);
 *
 * In an object every value has a key, elsewhere none (NULL). A call that fails (NaN, a string that is not UTF-8, a key
 * in an array) changes nothing and can be repeated. Calls skipped because an error is set leave a gap: the writer then
 * returns no text until it is cleared. The caller must not repeat a key within an object. */

typedef struct tn_json_writer tn_json_writer;

TN_API tn_json_writer *tn_json_writer_new(int indent); /* spaces for each level; 0: all in one line */
TN_API void            tn_json_writer_clear(tn_json_writer *w);
TN_API void            tn_json_writer_free(tn_json_writer *w);
TN_API tn_status       tn_json_open_object(tn_json_writer *w, const char *key);
TN_API tn_status       tn_json_open_array(tn_json_writer *w, const char *key);
TN_API tn_status       tn_json_close(tn_json_writer *w); /* closes the innermost open object or array */
TN_API tn_status       tn_json_put_null(tn_json_writer *w, const char *key);
TN_API tn_status       tn_json_put_bool(tn_json_writer *w, const char *key, bool v);
TN_API tn_status       tn_json_put_i64(tn_json_writer *w, const char *key, int64_t v);
TN_API tn_status       tn_json_put_u64(tn_json_writer *w, const char *key, uint64_t v);
TN_API tn_status       tn_json_put_double(tn_json_writer *w, const char *key, double v); /* reads back as v */
TN_API tn_status       tn_json_put_float(tn_json_writer *w, const char *key, float v);   /* 0.1f is written as 0.1 */
TN_API tn_status       tn_json_put_string(tn_json_writer *w, const char *key, const char *v);
TN_API tn_status       tn_json_put_bytes(tn_json_writer *w, const char *key, const char *v, size_t bytes);
TN_API tn_status       tn_json_put(tn_json_writer *w, const char *key, const tn_json *v); /* copies all of v */
/* The finished text, NUL-terminated; the writer owns it, valid until its next call. NULL (raised) if unfinished. */
TN_API const char *tn_json_text(tn_json_writer *w, size_t *bytes);
TN_API tn_status   tn_json_save(tn_json_writer *w, const char *path) TN_CHECKED; /* ends with a newline */
/* The same, and the folder then has a SHA256SUMS, the checksums of its small files, as that of each model has. */
TN_API tn_status tn_json_save_with_sha256(tn_json_writer *w, const char *path) TN_CHECKED;

/* ---- npy: one tensor ---------------------------------------------------------------------------------------------- *
 *
 * Types that Tenon lacks are read as the next type that holds all their values: f2 as f32; i1, i2, u2 as i32; u4, u8 as
 * i64 (a u8 beyond 2^63 - 1 is an error). Either byte order. fortran_order gives a transposed view. No bf16. */

TN_API tn_tensor *tn_npy_load(const char *path);
TN_API tn_tensor *tn_npy_read(const void *data, size_t bytes);
TN_API tn_status  tn_npy_save(const char *path, const tn_tensor *t) TN_CHECKED;
TN_API tn_tensor *tn_npy_write(const tn_tensor *t); /* the file's bytes, as a u8 tensor */

/* ---- safetensors: many tensors by name ---------------------------------------------------------------------------- *
 *
 *     tn_safetensors *f = tn_safetensors_open("model.safetensors");
 *     tn_tensor *w = tn_safetensors_get(f, "encoder.weight");
 *     tn_safetensors_close(f);
 *
 * Opening reads and checks only the header; a tensor is read when it is requested. F16 is read as f32, and small
 * integers as wider ones (see npy); F8, F6, F4 and C64 tensors are listed but not loaded. Limits: a header of 100 MB,
 * 1,000,000 tensors with names of 1 to 1024 bytes, 10,000 metadata pairs of 16 MiB together.
 *
 * A path that ends in ".index.json" is an index: its tensors are in up to 1,000 files in the same folder, which are all
 * opened. Each tensor must be in the file that the index names, and in no other. An index has no metadata. */

typedef struct tn_safetensors tn_safetensors;
typedef struct {
    const char *name;     /* lives as long as the file is open */
    const char *stored;   /* "F16": the type in the file */
    bool        loadable; /* false: stored is a type that Tenon does not load */
    tn_dtype    dtype;    /* the type it loads as */
    tn_shape    shape;
    int64_t     bytes; /* in the file */
} tn_safetensors_entry;

TN_API tn_safetensors *tn_safetensors_open(const char *path);
TN_API tn_safetensors *tn_safetensors_read(const void *data, size_t bytes); /* borrows data until it is closed */
TN_API void            tn_safetensors_close(tn_safetensors *f);

TN_API int64_t              tn_safetensors_count(const tn_safetensors *f);
TN_API tn_safetensors_entry tn_safetensors_at(const tn_safetensors *f, int64_t i);          /* in the header's order */
TN_API int64_t              tn_safetensors_find(const tn_safetensors *f, const char *name); /* its index i, or -1 */
TN_API tn_tensor           *tn_safetensors_get(const tn_safetensors *f, const char *name);
TN_API tn_tensor           *tn_safetensors_get_at(const tn_safetensors *f, int64_t i);

TN_API const char *tn_safetensors_metadata(const tn_safetensors *f, const char *key); /* NULL if missing */
TN_API int64_t     tn_safetensors_metadata_count(const tn_safetensors *f);
TN_API const char *tn_safetensors_metadata_at(const tn_safetensors *f, int64_t i, const char **value); /* the key */

/*     tn_safetensors_writer *w = tn_safetensors_writer_new();
 *     tn_safetensors_put(w, "encoder.weight", weight);
 *     tn_safetensors_note(w, "step", "1000");
 *     if (tn_safetensors_save(w, "model.safetensors") != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_safetensors_writer_free(w);
 *
 * The writer keeps the tensors; their elements are read when it saves. Each name is stored in full, even if two names
 * share one storage: skip the second name of tied weights yourself. The metadata has "format": "pt" unless another
 * format is noted, because Hugging Face's readers require it. */

typedef struct tn_safetensors_writer tn_safetensors_writer;

TN_API tn_safetensors_writer *tn_safetensors_writer_new(void);
TN_API tn_status              tn_safetensors_put(tn_safetensors_writer *w, const char *name, const tn_tensor *t);
TN_API tn_status              tn_safetensors_note(tn_safetensors_writer *w, const char *key, const char *value);
TN_API tn_status              tn_safetensors_save(tn_safetensors_writer *w, const char *path) TN_CHECKED;
TN_API tn_tensor             *tn_safetensors_write(tn_safetensors_writer *w); /* the file's bytes, as a u8 tensor */
TN_API void                   tn_safetensors_writer_free(tn_safetensors_writer *w);

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Number of bytes from the start that are valid UTF-8: `bytes` if all are. */
TN_API size_t tn_utf8_valid(const char *text, size_t bytes);

/* Parses all of text as a decimal number, rounded correctly: [+-] digits [. digits] [e [+-] digits]. False if it is not
 * one, or exceeds the largest double. */
TN_API bool tn_parse_double(const char *text, size_t bytes, double *value);
/* The shortest text that reads back as the same number ("0.1", "1e-07", "3.0"; "inf", "nan"); returns its length. */
TN_API int tn_format_double(double v, char to[32]);
TN_API int tn_format_float(float v, char to[32]);

/* ---- files ------------------------------------------------------------------------------------------------------- */

TN_API tn_tensor *tn_file_read(const char *path, int64_t max_bytes); /* as a u8 tensor; a larger file is an error */
TN_API tn_status  tn_file_write(const char *path, const void *data, size_t bytes) TN_CHECKED;
/* Adds bytes to the end of a file, which is created if it is missing. They are in the file when the call returns, so
 * that a killed program loses none, but they are not synced to the disk. On failure some of them may be there. */
TN_API tn_status tn_file_append(const char *path, const void *data, size_t bytes) TN_CHECKED;

/* Every system call that the library makes to read and write files. Each returns the result of the POSIX call of its
 * name, or -errno. A program may replace them, mainly for tests, while no file is open; NULL restores the system's. All
 * members must be set. */
struct stat;
typedef struct {
    int (*open)(void *user, const char *path, int flags, unsigned mode);
    int (*fstat)(void *user, int fd, struct stat *st);
    int (*lstat)(void *user, const char *path, struct stat *st);
    int64_t (*pread)(void *user, int fd, void *to, size_t bytes, int64_t at);
    int64_t (*write)(void *user, int fd, const void *from, size_t bytes);
    int (*reserve)(void *user, int fd, int64_t bytes); /* posix_fallocate; also detects the limit on file sizes */
    int (*fsync)(void *user, int fd);
    int (*close)(void *user, int fd);
    int (*rename)(void *user, const char *from, const char *to);
    int (*unlink)(void *user, const char *path);
    void *user;
} tn_io;
TN_API tn_status    tn_set_io(const tn_io *io);
TN_API const tn_io *tn_system_io(void); /* the system's own, for wrapping */

TN_C_END_
#endif

/* files.h — shared by the readers and writers of vector files. Private. */
#ifndef TENON_EXTRAS_VECTORS_FILES_H
#define TENON_EXTRAS_VECTORS_FILES_H

#include "extras/vectors/vectors_private.h"

/* ---- reading: a file from its start ------------------------------------------------------------------------------ */

typedef struct {
    tn__source source;
    char       label[TN__LABEL];
    int64_t    at; /* position in the file */
} tn__vectors_in;
bool tn__in_open(tn__vectors_in *f, const char *path);
void tn__in_close(tn__vectors_in *f);
bool tn__in_take(tn__vectors_in *f, void *to, int64_t bytes); /* raises if the file is too short */
/* raises "'path': byte 17: ..."; returns false */
bool tn__in_fail(const tn__vectors_in *f, const char *fmt, ...) TN_PRINTF(2, 3);
/* Reads the bytes up to `end`, skips `end`, and returns their number; -1: raised, more than `most` bytes. */
int64_t tn__in_word(tn__vectors_in *f, char *to, int64_t most, char end);

/* Allocates vectors for `words` words of dim numbers if the remaining bytes suffice at `least_bytes` per word.
 * Raises. */
tn_vectors *tn__in_vectors(const tn__vectors_in *f, int64_t words, int64_t dim, int64_t least_bytes);
bool        tn__in_name(const tn__vectors_in *f, tn_vectors *v, const char *word, int64_t bytes); /* the next one */
bool        tn__in_finite(const tn__vectors_in *f, const float *x, int64_t n);

tn_vectors *tn__read_text(const char *path, bool headed);
tn_vectors *tn__read_binary(tn__vectors_in *f);
tn_vectors *tn__read_fasttext(tn__vectors_in *f);

/* ---- writing: each writer runs twice, first to count bytes, then to write them ----------------------------------- */

typedef struct {
    tn__sink sink;
    int64_t  size;
    bool     writing;
    size_t   held;
    char     buffer[1 << 14];
} tn__vectors_out;
bool         tn__out_flush(tn__vectors_out *o);
bool         tn__out_put(tn__vectors_out *o, const void *data, size_t bytes);
typedef bool tn__vectors_writer(tn__vectors_out *o, const tn_vectors *v);
bool         tn__write_text(tn__vectors_out *o, const tn_vectors *v);
bool         tn__write_glove(tn__vectors_out *o, const tn_vectors *v);
bool         tn__write_binary(tn__vectors_out *o, const tn_vectors *v);
bool         tn__write_fasttext(tn__vectors_out *o, const tn_vectors *v);

#endif

/* gguf.h — GGUF, the files of llama.cpp: tensors by name, many of them in few bits, and values by key. Part of
 * core.h: include that.
 *
 *     tn_gguf   *g = tn_gguf_open("model.gguf");
 *     tn_tensor *w = tn_safetensors_get(tn_gguf_tensors(g), "blk.0.attn_q.weight"); // f32, whatever it is packed in
 *     int64_t    n = tn_gguf_i64_or(g, "llama.block_count", 0);
 *     for (tn_gguf_strings s = tn_gguf_strings_of(g, "tokenizer.ggml.tokens"); tn_gguf_next(&s);)
 *         printf("%.*s\n", (int)s.bytes, s.text);
 *     tn_gguf_close(g);
 *
 * Versions 2 and 3, little-endian. F32, F16, BF16, F64, integers, Q8_0, Q4_0, Q4_K and Q6_K are read; tensors of other
 * types are listed but not loaded. Limits: 256 MiB of header, 100,000 tensors with names of 1 to 1024 bytes and up to 4
 * dims, 100,000 keys of 1 to 65,535 bytes, arrays nested 8 deep. */
#ifndef TENON_CORE_GGUF_H
#define TENON_CORE_GGUF_H

#include "core.h"

TN_C_BEGIN_

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct tn_safetensors        tn_safetensors; /* declared in files.h */
typedef struct tn_safetensors_writer tn_safetensors_writer;
typedef struct tn_gguf               tn_gguf;
TN_API tn_gguf                      *tn_gguf_open(const char *path);
TN_API tn_gguf                      *tn_gguf_read(const void *data, size_t bytes); /* borrows data until it is closed */
TN_API void                          tn_gguf_close(tn_gguf *g);

/* Its tensors, read like those of a safetensors file; owned by g and closed with it. Shapes are in PyTorch's order, the
 * reverse of the file's. */
TN_API tn_safetensors *tn_gguf_tensors(const tn_gguf *g);
/* A floating tensor as f32 or bf16; and its bytes as they are in the file, u8 [rows, bytes of a row]. */
TN_API tn_tensor *tn_gguf_get_as(const tn_gguf *g, const char *name, tn_dtype dtype);
TN_API tn_tensor *tn_gguf_get_packed(const tn_gguf *g, const char *name);

/* clang-format off */
typedef enum { /* as in the file */
    TN_GGUF_U8 = 0, TN_GGUF_I8, TN_GGUF_U16, TN_GGUF_I16, TN_GGUF_U32, TN_GGUF_I32, TN_GGUF_F32, TN_GGUF_BOOL,
    TN_GGUF_STRING, TN_GGUF_ARRAY, TN_GGUF_U64, TN_GGUF_I64, TN_GGUF_F64, TN_GGUF_NONE
} tn_gguf_type;
/* clang-format on */
typedef struct {
    const char  *key;
    tn_gguf_type type, item; /* item: the type of an array's items; otherwise equal to type */
    int64_t      count;      /* of an array; otherwise 1 */
} tn_gguf_value;
TN_API int64_t       tn_gguf_count(const tn_gguf *g);
TN_API tn_gguf_value tn_gguf_at(const tn_gguf *g, int64_t i);
TN_API tn_gguf_value tn_gguf_find(const tn_gguf *g, const char *key); /* type is TN_GGUF_NONE if missing */

/* Values: the fallback if the key is missing; another type raises TN_EFORMAT. Numbers may have any width. */
TN_API int64_t     tn_gguf_i64_or(const tn_gguf *g, const char *key, int64_t fallback);
TN_API double      tn_gguf_double_or(const tn_gguf *g, const char *key, double fallback);
TN_API bool        tn_gguf_bool_or(const tn_gguf *g, const char *key, bool fallback);
TN_API const char *tn_gguf_string_or(const tn_gguf *g, const char *key, const char *fallback);
/* An array of numbers, as a tensor; NULL and raised if the key is missing or is not such an array. */
TN_API tn_tensor *tn_gguf_numbers(const tn_gguf *g, const char *key);
/* An array of strings, one by one; empty and raised if the key is missing or is not such an array. */
typedef struct {
    const char *text; /* not NUL-terminated */
    size_t      bytes;
    int64_t     i, count; /* index of this string, from 0; number of strings */
    const void *at_;
} tn_gguf_strings;
TN_API tn_gguf_strings tn_gguf_strings_of(const tn_gguf *g, const char *key);
TN_API bool            tn_gguf_next(tn_gguf_strings *s);

/* ---- writing ----------------------------------------------------------------------------------------------------- *
 *
 *     tn_gguf_writer *w = tn_gguf_writer_new();
 *     tn_gguf_put_string(w, "general.architecture", "llama");
 *     tn_gguf_put_u32(w, "llama.block_count", 5);
 *     tn_safetensors_put(tn_gguf_writer_tensors(w), "token_embd.weight", tn_ones(TN_SHAPE(32, 64)));
 *     if (tn_gguf_save(w, "model.gguf", "Q8_0") != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_gguf_writer_free(w);
 *
 * Keys stay in the order of the put calls. packed: "F32", "BF16" or "Q8_0", for floating tensors of two dims or more;
 * F32 is used for one dim, and if rows are not whole blocks of 32. NULL: bf16 stays BF16. */
typedef struct tn_gguf_writer tn_gguf_writer;
TN_API tn_gguf_writer        *tn_gguf_writer_new(void);
TN_API void                   tn_gguf_writer_free(tn_gguf_writer *w);
TN_API tn_safetensors_writer *tn_gguf_writer_tensors(tn_gguf_writer *w); /* owned by the writer */
TN_API tn_status              tn_gguf_put_u32(tn_gguf_writer *w, const char *key, int64_t v);
TN_API tn_status              tn_gguf_put_float(tn_gguf_writer *w, const char *key, double v); /* an f32 */
TN_API tn_status              tn_gguf_put_bool(tn_gguf_writer *w, const char *key, bool v);
TN_API tn_status              tn_gguf_put_string(tn_gguf_writer *w, const char *key, const char *v);
TN_API tn_status tn_gguf_put_numbers(tn_gguf_writer *w, const char *key, const tn_tensor *t); /* f32, i32 */
/* An array of strings: opened with its length, then filled string by string. */
TN_API tn_status  tn_gguf_open_strings(tn_gguf_writer *w, const char *key, int64_t count);
TN_API tn_status  tn_gguf_add_string(tn_gguf_writer *w, const char *text, size_t bytes);
TN_API tn_status  tn_gguf_save(tn_gguf_writer *w, const char *path, const char *packed) TN_CHECKED;
TN_API tn_tensor *tn_gguf_write(tn_gguf_writer *w, const char *packed); /* the file's bytes, as a u8 tensor */

TN_C_END_
#endif

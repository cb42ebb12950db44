/* file_bytes.h — npy and safetensors files made of a given header, in memory. */
#ifndef TENON_TESTS_COMMON_FILE_BYTES_H
#define TENON_TESTS_COMMON_FILE_BYTES_H

#include "core/files.h"
#include "tests/common/check_main.h"

typedef struct {
    size_t        n;
    unsigned char data[1 << 16];
} bytes;

/* A file of version `major` with this header, exactly as given, and n bytes 0, 1, 2 … */
static inline const bytes *npy(int major, const char *dict, int n)
{
    static bytes f;
    size_t       len = strlen(dict);
    memcpy(f.data, "\x93NUMPY", 6);
    f.data[6] = (unsigned char)major, f.data[7] = 0;
    f.n = major == 1 ? 10 : 12;
    for (size_t i = 8; i < f.n; i++) f.data[i] = (unsigned char)(len >> 8 * (i - 8));
    memcpy(f.data + f.n, dict, len);
    f.n += len;
    for (int i = 0; i < n; i++) f.data[f.n++] = (unsigned char)i;
    return &f;
}

static inline tn_tensor *read_exact(const void *data, size_t n) /* so that a sanitizer detects a read past the end */
{
    void *exact = malloc(n ? n : 1);
    memcpy(exact, data, n);
    tn_tensor *t = tn_npy_read(exact, n);
    free(exact);
    return t;
}

/* A file with this header, exactly as given, and n bytes 0, 1, 0, 1 … */
static inline const bytes *file(const char *header, int n)
{
    static bytes f;
    size_t       len = strlen(header);
    for (int i = 0; i < 8; i++) f.data[i] = (unsigned char)(len >> 8 * i);
    memcpy(f.data + 8, header, len);
    f.n = 8 + len;
    for (int i = 0; i < n; i++) f.data[f.n++] = i & 1;
    return &f;
}

/* Opens a copy of exactly n bytes, so that a sanitizer detects a read past the end; all tensors are read. */
static inline tn_safetensors *open_exact(const void *data, size_t n, void **copy)
{
    *copy = malloc(n ? n : 1);
    memcpy(*copy, data, n);
    tn_safetensors *f = tn_safetensors_read(*copy, n);
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) tn_safetensors_get_at(f, i);
    return f;
}
#define S "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"
#define T(dtype, shape, offsets) "{\"a\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define E(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define F TN_EFORMAT
#define U TN_EUNSUPPORTED

#endif

/* crc.c — the CRC-32 of tensors and its text, for training checkpoints. */
#include "optim/checkpoint_private.h"

#include <stdio.h>

typedef struct {
    tn__crc32_tables  tables;
    tn_tensor *const *t;
    uint32_t         *to;
} job;

/* The CRC-32 of elements of `size` bytes in the byte order of the file, which is little-endian. */
static uint32_t elements(const job *j, const unsigned char *p, size_t bytes, size_t size)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    uint32_t crc = 0;
    for (size_t at = 0; at < bytes; at += size)
        for (size_t i = size; i > 0; i--) crc = tn__crc32(&j->tables, crc, p + at + i - 1, 1);
    return crc;
#else
    (void)size;
    return tn__crc32(&j->tables, 0, p, bytes);
#endif
}

static void some(int64_t from, int64_t to, void *user)
{
    const job *j = user;
    for (int64_t i = from; i < to; i++) {
        const size_t size = j->t[i] ? tn_dtype_size(tn_dtype_of(j->t[i])) : 0;
        if (j->t[i]) j->to[i] = elements(j, tn_data(j->t[i]), (size_t)tn_numel(j->t[i]) * size, size);
    }
}

void tn__crc_tensors(int64_t n, tn_tensor *const *t, uint32_t *crc)
{
    job     j = {.t = t, .to = crc};
    int64_t all = 0;
    tn__crc32_init(&j.tables);
    for (int64_t i = 0; i < n; i++) all += tn_numel(t[i]);
    tn_parallel_for(n, all < 1 << 20 && n ? n : 1, some, &j);
}

bool tn__crc_of_tensor(tn_tensor *t, char to[9])
{
    uint32_t   crc;
    tn_tensor *dense = tn_is_contiguous(t) ? t : tn_contiguous(t);
    if (!dense) return false;
    tn__crc_tensors(1, &dense, &crc);
    tn__crc_text(crc, to);
    return true;
}

void tn__crc_text(uint32_t crc, char to[9]) { snprintf(to, 9, "%08x", (unsigned)crc); }

void tn__crc_of_text(const char *text, char to[9])
{
    tn__crc32_tables tables;
    tn__crc32_init(&tables);
    tn__crc_text(tn__crc32(&tables, 0, text, strlen(text)), to);
}

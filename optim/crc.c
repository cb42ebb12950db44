/* crc.c — CRC-32 as in zlib (IEEE 802.3, reflected), eight bytes at a time: table[k][b] is the contribution of byte b
 * after k more bytes. It detects every single flipped bit; zlib.crc32 in Python computes the same value. */
#include "optim/checkpoint_private.h"

void tn__crc_init(tn__crc *c)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t v = b;
        for (int i = 0; i < 8; i++) v = v & 1 ? v >> 1 ^ 0xedb88320u : v >> 1;
        c->table[0][b] = v;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++) c->table[k][b] = c->table[k - 1][b] >> 8 ^ c->table[0][c->table[k - 1][b] & 255];
}

static uint32_t eight(const tn__crc *c, uint32_t crc, const unsigned char *p)
{
    const uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
    return c->table[7][low & 255] ^ c->table[6][low >> 8 & 255] ^ c->table[5][low >> 16 & 255] ^
           c->table[4][low >> 24] ^ c->table[3][p[4]] ^ c->table[2][p[5]] ^ c->table[1][p[6]] ^ c->table[0][p[7]];
}

static uint32_t one(const tn__crc *c, uint32_t crc, unsigned char byte)
{
    return crc >> 8 ^ c->table[0][(crc ^ byte) & 255];
}

uint32_t tn__crc_bytes(const tn__crc *c, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint32_t             crc = 0xffffffffu;
    for (; bytes >= 8; bytes -= 8, p += 8) crc = eight(c, crc, p);
    for (; bytes; bytes--) crc = one(c, crc, *p++);
    return ~crc;
}

/* The CRC-32 of elements of `size` bytes in the byte order of the file, which is little-endian. */
static uint32_t elements(const tn__crc *c, const void *data, size_t bytes, size_t size)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    const unsigned char *p = data;
    uint32_t             crc = 0xffffffffu;
    for (size_t at = 0; at < bytes; at += size)
        for (size_t i = size; i > 0; i--) crc = one(c, crc, p[at + i - 1]);
    return ~crc;
#else
    (void)size;
    return tn__crc_bytes(c, data, bytes);
#endif
}

typedef struct {
    tn__crc           crc;
    tn_tensor *const *t;
    uint32_t         *to;
} job;

static void some(int64_t from, int64_t to, void *user)
{
    const job *j = user;
    for (int64_t i = from; i < to; i++) {
        const size_t size = j->t[i] ? tn_dtype_size(tn_dtype_of(j->t[i])) : 0;
        if (j->t[i]) j->to[i] = elements(&j->crc, tn_data(j->t[i]), (size_t)tn_numel(j->t[i]) * size, size);
    }
}

void tn__crc_tensors(int64_t n, tn_tensor *const *t, uint32_t *crc)
{
    job     j = {.t = t, .to = crc};
    int64_t all = 0;
    tn__crc_init(&j.crc);
    for (int64_t i = 0; i < n; i++) all += tn_numel(t[i]);
    tn_parallel_for(n, all < 1 << 20 && n ? n : 1, some, &j);
}

void tn__crc_text(uint32_t crc, char to[9])
{
    for (int i = 0; i < 8; i++) to[i] = "0123456789abcdef"[crc >> 4 * (7 - i) & 15];
    to[8] = 0;
}

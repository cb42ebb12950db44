/* sha256.h — SHA-256 (FIPS 180-4), for checksums that sha256sum can verify. */
#ifndef TENON_CORE_FILES_SHA256_H
#define TENON_CORE_FILES_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t      h[8];
    unsigned char block[64];
    uint64_t      bytes;
} tn__sha256;

enum { TN__SHA256_DIGITS = 64 };
tn__sha256 tn__sha256_begin(void);
void       tn__sha256_put(tn__sha256 *s, const void *data, size_t bytes);
void       tn__sha256_end(tn__sha256 *s, char hex[TN__SHA256_DIGITS + 1]);

#endif

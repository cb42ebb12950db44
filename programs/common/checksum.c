/* checksum.c — see checksum.h. */
#include "core/system/system.h"

#include "checksum.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static uint64_t next(uint64_t sum, uint64_t x) { return (sum ^ x) * UINT64_C(1099511628211); }

uint64_t checksum(uint64_t sum, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) sum = next(sum, p[i]);
    return sum;
}
uint64_t checksum_string(uint64_t sum, const char *text) { return checksum(sum, text, strlen(text) + 1); }

uint64_t checksum_tensor(uint64_t sum, const tn_tensor *t)
{
    return checksum(sum, tn_data(t), (size_t)tn_numel(t) * tn_dtype_size(tn_dtype_of(t)));
}

uint64_t checksum_ids(const tn_ids *ids)
{
    uint64_t sum = CHECKSUM;
    for (int64_t i = 0; i < ids->n; i++) sum = next(sum, (uint64_t)ids->at[i]);
    return sum;
}

uint64_t checksum_file(uint64_t sum, const char *path)
{
    unsigned char part[1 << 16];
    FILE         *f = fopen(path, "rb");
    for (size_t n; f && (n = fread(part, 1, sizeof part, f));) sum = checksum(sum, part, n);
    if (!f || ferror(f)) tn_raise(TN_EIO, "'%s': cannot read: %s", path, strerror(errno));
    if (f) fclose(f);
    return sum;
}

void checksum_text(uint64_t sum, char to[17]) { snprintf(to, 17, "%016llx", (unsigned long long)sum); }
void checksum_put(tn_json_writer *w, const char *name, uint64_t sum)
{
    char text[17];
    checksum_text(sum, text);
    tn_json_put_string(w, name, text);
}

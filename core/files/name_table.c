/* name_table.c — finds entries by name, in a hash table without provoked collisions; "did you mean"; and a sort. */
#include "core/system/system.h"

#include "core/files/io.h"
#include "core/base/thread.h"

#include <string.h>

/* ---- SipHash-1-3 (Aumasson and Bernstein): a keyed hash: without its key, collisions cannot be constructed ------- */

static uint64_t rotl(uint64_t x, int by) { return x << by | x >> (64 - by); }

static void sip_round(uint64_t v[4])
{
    v[0] += v[1], v[1] = rotl(v[1], 13) ^ v[0], v[0] = rotl(v[0], 32);
    v[2] += v[3], v[3] = rotl(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = rotl(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = rotl(v[1], 17) ^ v[2], v[2] = rotl(v[2], 32);
}

static uint64_t hash(const uint64_t seed[2], const char *p, size_t n)
{
    uint64_t v[4] = {seed[0] ^ 0x736f6d6570736575u, seed[1] ^ 0x646f72616e646f6du, seed[0] ^ 0x6c7967656e657261u,
                     seed[1] ^ 0x7465646279746573u};
    uint64_t word;
    size_t   left = n;
    for (; left >= 8; p += 8, left -= 8) {
        memcpy(&word, p, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    word = (uint64_t)n << 56;
    for (size_t i = 0; i < left; i++) word |= (uint64_t)(unsigned char)p[i] << 8 * i;
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The seed affects only the order of names in a table, no result. */
void tn__names_seed(tn__names *x)
{
    const struct timespec now = tn__sys_clock();
    x->seed[0] = (uint64_t)(uintptr_t)x ^ (uint64_t)now.tv_nsec << 32;
    x->seed[1] = (uint64_t)(uintptr_t)&tn__self ^ (uint64_t)now.tv_sec << 20 ^ (uint64_t)now.tv_nsec;
}

uint32_t tn__names_slots(uint32_t n)
{
    uint32_t slots = 4;
    while (slots < (uint32_t)1 << 31 && slots - slots / 4 < n) slots *= 2; /* at most three quarters full */
    return slots;
}

/* The slot that holds the name, or the free slot for it. */
static uint32_t *probe(const tn__names *x, const char *text, size_t bytes)
{
    for (uint32_t at = (uint32_t)hash(x->seed, text, bytes) & x->mask;; at = (at + 1) & x->mask) {
        uint32_t *slot = x->slot + at;
        if (!*slot) return slot;
        size_t      n;
        const char *name = x->name(x->owner, *slot - 1, &n);
        if (n == bytes && !memcmp(name, text, n)) return slot;
    }
}

int64_t tn__names_find(const tn__names *x, const char *text, size_t bytes)
{
    return x->slot ? (int64_t)*probe(x, text, bytes) - 1 : -1;
}

int64_t tn__names_add(tn__names *x, uint32_t i)
{
    size_t      n;
    const char *name = x->name(x->owner, i, &n);
    uint32_t   *slot = probe(x, name, n);
    if (*slot) return (int64_t)*slot - 1;
    *slot = i + 1;
    return -1;
}

/* ---- did you mean ------------------------------------------------------------------------------------------------ */

enum { NEAR_BYTES = 96, NEAR_NAMES = 4096 }; /* beyond these a search would take long and rarely help */

static int distance(const char *a, size_t na, const char *b, size_t nb) /* Levenshtein's */
{
    int row[NEAR_BYTES + 1];
    for (size_t j = 0; j <= nb; j++) row[j] = (int)j;
    for (size_t i = 1; i <= na; i++) {
        int corner = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= nb; j++) {
            int change = corner + (a[i - 1] != b[j - 1]), other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            corner = row[j];
            row[j] = change < other ? change : other;
        }
    }
    return row[nb];
}

static bool ends_with_part(const char *a, size_t na, const char *b, size_t nb) /* a is "….b" */
{
    return nb && na > nb + 1 && a[na - nb - 1] == '.' && !memcmp(a + na - nb, b, nb);
}

int64_t tn__names_nearest(const tn__names *x, uint32_t n, const char *text)
{
    size_t  bytes = strlen(text);
    int64_t best = -1;
    int     least = (int)(bytes / 3 < 2 ? 2 : bytes / 3) + 1;
    for (uint32_t i = 0; i < n && i < NEAR_NAMES; i++) {
        size_t      m;
        const char *name = x->name(x->owner, i, &m);
        if (ends_with_part(name, m, text, bytes) || ends_with_part(text, bytes, name, m)) return i;
        if (m > NEAR_BYTES || bytes > NEAR_BYTES) continue;
        if ((m > bytes ? m - bytes : bytes - m) >= (size_t)least) continue;
        int d = distance(text, bytes, name, m);
        if (d < least && (size_t)d < bytes) least = d, best = i;
    }
    return best;
}

/* ---- heapsort ---------------------------------------------------------------------------------------------------- */

static void sift(uint32_t *x, size_t at, size_t n, bool (*less)(const void *, uint32_t, uint32_t), const void *owner)
{
    uint32_t v = x[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && less(owner, x[child], x[child + 1])) child++;
        if (!less(owner, v, x[child])) break;
        x[at] = x[child];
    }
    x[at] = v;
}

void tn__sort(uint32_t *x, size_t n, bool (*less)(const void *owner, uint32_t a, uint32_t b), const void *owner)
{
    for (size_t i = n / 2; i-- > 0;) sift(x, i, n, less, owner);
    for (size_t end = n; end-- > 1;) {
        uint32_t largest = x[0];
        x[0] = x[end], x[end] = largest;
        sift(x, 0, end, less, owner);
    }
}

/* generator.c — Philox 4x32-10 and the generator: a seed and a position, counted in blocks of four 32-bit words.
 *
 * Philox (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; 2011) is a function of a counter and
 * a key. Here the key is the seed and the counter is (position, attempt): block p of a generator does not depend on who
 * computes it, or when. Draws that must not be biased reject some words; they retry with the next attempt at the same
 * position, so that every draw uses the number of blocks documented at its head, whatever it rejects.
 *
 * One block a call: tn_random_u32 (word 0), tn_random_double (words 0 and 1), tn_random_below (words 0 and 1). */
#include "core/base/thread.h"
#include "core/tensor/random.h"
#include "core/kernels/kernels.h"

enum { ROUNDS = 10 };

void tn__philox_words(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0], k1 = key[1];
    for (int r = 0; r < ROUNDS; r++) {
        const uint64_t a = (uint64_t)c0 * 0xD2511F53u, b = (uint64_t)c2 * 0xCD9E8D57u;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0, c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1, c3 = (uint32_t)a;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u; /* the golden ratio, and √3 - 1 */
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

static void block(uint64_t seed, uint64_t position, uint64_t attempt, uint32_t out[4])
{
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), (uint32_t)attempt,
                                 (uint32_t)(attempt >> 32)};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    tn__philox_words(counter, key, out);
}

void tn__philox(uint64_t seed, uint64_t position, uint32_t out[4]) { block(seed, position, 0, out); }

void tn__philox_blocks(uint64_t seed, uint64_t position, int64_t blocks, uint32_t *out)
{
    tn__kernels()->philox(seed, position, blocks, out);
}

/* The top 2^64 mod n values of the range would favour some remainders: they are rejected. In the worst case every
 * second try fails, so the loop ends. */
uint64_t tn__below(uint64_t seed, uint64_t position, int word, uint64_t first, uint64_t n)
{
    const uint64_t refused = (UINT64_MAX % n + 1) % n;
    uint64_t       x = first;
    for (uint64_t attempt = 1; x > UINT64_MAX - refused; attempt++) {
        uint32_t w[4];
        block(seed, position, attempt, w);
        x = tn__word64(w + word);
    }
    return x % n;
}

/* ---- the generator of a thread -------------------------------------------------------------------------------- */

static _Atomic(uint64_t) process_seed; /* the last one of the main thread's own generator */
static _Atomic(uint64_t) seeded;       /* number of threads that have derived their seed from it */

/* The attempt is one that no draw reaches: the seeds are independent of the main thread's numbers. */
static void derive_seed(void)
{
    uint32_t w[4];
    block(process_seed, atomic_fetch_add(&seeded, 1) + 1, UINT64_MAX, w);
    tn__self.own = (tn_generator){.seed = tn__word64(w)};
    tn__self.seeded = true;
}

tn_generator *tn_current_generator(void)
{
    if (tn__self.generator) return tn__self.generator;
    if (__builtin_expect(!tn__self.seeded, 0)) derive_seed();
    return &tn__self.own;
}

/* Works while an error is set: cleanup code must be able to restore the previous generator. */
tn_generator *tn_use_generator(tn_generator *g)
{
    tn_generator *before = tn_current_generator();
    tn__self.generator = g == &tn__self.own ? NULL : g;
    return before;
}

void tn_seed(uint64_t seed)
{
    if (tn__blocked()) return;
    tn_generator *g = tn__self.generator ? tn__self.generator : &tn__self.own;
    *g = (tn_generator){.seed = seed};
    if (g != &tn__self.own) return;
    tn__self.seeded = true;
    if (!tn__self.loader) return;
    process_seed = seed;
    seeded = 0;
}

/* g: NULL means the current one. */
static void next(tn_generator *g, tn_generator *at, uint32_t out[4])
{
    if (!g) g = tn_current_generator();
    *at = *g;
    block(g->seed, g->position++, 0, out);
}

uint32_t tn_random_u32(tn_generator *g)
{
    tn_generator at;
    uint32_t     w[4];
    if (tn__blocked()) return 0;
    next(g, &at, w);
    return w[0];
}

double tn_random_double(tn_generator *g)
{
    tn_generator at;
    uint32_t     w[4];
    if (tn__blocked()) return 0;
    next(g, &at, w);
    return tn__unit(tn__word64(w));
}

int64_t tn_random_below(tn_generator *g, int64_t n)
{
    tn_generator at;
    uint32_t     w[4];
    if (tn__blocked()) return 0;
    next(g, &at, w);
    return n < 1 ? 0 : (int64_t)tn__below(at.seed, at.position, 0, tn__word64(w), (uint64_t)n);
}

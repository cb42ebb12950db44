/* hashing.c — LSH buckets: a vector's bucket is the axis nearest to its random rotation (Andoni et al. 2015), argmax of
 * [x R, -x R]; with two bucket counts there are two rotations, and the bucket is the pair of both.
 *
 * A seed gives PyTorch's rotations: Mersenne Twister 19937 (Matsumoto, Nishimura 1998), 24 bits a number, made normal
 * in blocks of 16, element i with element i + 8, by Box and Muller's transform; fewer than 16 in pairs of 53 bits. */
#include "extras/reformer/reformer_private.h"

#include <math.h>

/* ---- PyTorch's normal numbers ------------------------------------------------------------------------------------ */

enum { STATE = 624, BLOCK = 16 };
typedef struct {
    uint32_t s[STATE];
    int      at;
} twister;

static twister twister_of(uint32_t seed)
{
    twister t = {.at = STATE};
    t.s[0] = seed;
    for (uint32_t i = 1; i < STATE; i++) t.s[i] = 1812433253u * (t.s[i - 1] ^ t.s[i - 1] >> 30) + i;
    return t;
}
static uint32_t twister_next(twister *t)
{
    if (t->at == STATE) {
        for (int i = 0; i < STATE; i++) {
            const uint32_t y = (t->s[i] & 0x80000000u) | (t->s[(i + 1) % STATE] & 0x7fffffffu);
            t->s[i] = t->s[(i + 397) % STATE] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        t->at = 0;
    }
    uint32_t y = t->s[t->at++];
    y ^= y >> 11, y ^= y << 7 & 0x9d2c5680u, y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}
static float uniform(twister *t) { return (float)(twister_next(t) & 0xffffff) * 0x1p-24f; }

static void normal_block(float *x)
{
    for (int i = 0; i < BLOCK / 2; i++) {
        const double radius = sqrt(-2 * tn__libm_log(1 - (double)x[i]));
        const double angle = 2 * 3.14159265358979323846 * (double)x[i + BLOCK / 2];
        x[i] = (float)(radius * cos(angle)), x[i + BLOCK / 2] = (float)(radius * sin(angle));
    }
}

static double uniform_53(twister *t)
{
    const uint64_t high = twister_next(t);
    return (double)((high << 32 | twister_next(t)) & (((uint64_t)1 << 53) - 1)) * 0x1p-53;
}
static void normal_pairs(twister *t, int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i += 2) {
        const double angle = 2 * 3.14159265358979323846 * uniform_53(t);
        const double radius = sqrt(-2 * tn__libm_log1p(-uniform_53(t)));
        x[i] = (float)(radius * cos(angle));
        if (i + 1 < n) x[i + 1] = (float)(radius * sin(angle));
    }
}

/* Same numbers as torch.randn after torch.manual_seed. */
static void torch_normal(int64_t seed, int64_t n, float *x)
{
    twister t = twister_of((uint32_t)seed);
    if (n < BLOCK) {
        normal_pairs(&t, n, x);
        return;
    }
    for (int64_t i = 0; i < n; i++) x[i] = uniform(&t);
    for (int64_t i = 0; i + BLOCK <= n; i += BLOCK) normal_block(x + i);
    if (n % BLOCK == 0) return;
    float *last = x + n - BLOCK;
    for (int i = 0; i < BLOCK; i++) last[i] = uniform(&t); /* the last 16 again, as in PyTorch */
    normal_block(last);
}

/* ---- buckets ----------------------------------------------------------------------------------------------------- */

/* The number of buckets: 2 · chunks, rounded to a power of 2; if that is large, the product of two numbers. */
static void buckets_for(const tn_reformer_config *c, int64_t length, int64_t n[2])
{
    int64_t       bits = 0;
    const int64_t chunks = c->positions / c->chunk, wide = (int64_t)sqrt((double)chunks);
    n[0] = c->buckets[0], n[1] = c->buckets[1];
    if (n[0]) return;
    while (2 * (length / c->chunk) >> (bits + 1)) bits++;
    const bool one = (int64_t)1 << bits <= 2 * (wide > c->chunk ? wide : c->chunk);
    n[0] = (int64_t)1 << (one ? bits : bits / 2), n[1] = one ? 0 : (int64_t)1 << (bits - bits / 2);
}

/* Random rotations [heads, head_dim, rounds · columns]; new ones for each call in training without a seed. */
static tn_tensor *rotations(const tn_reformer *m, int64_t columns, tn_dtype dt)
{
    const tn_reformer_config *c = &m->config;
    const tn_shape            s = TN_SHAPE(c->heads, c->head_dim, c->rounds * columns);
    if (c->seed < 0 && m->base.training) return tn_to(tn_normal(s, 0, 1), dt);
    tn_tensor *r = tn_empty(s);
    float     *x = r ? tn_data_mut(r) : NULL;
    if (x) torch_normal(c->seed < 0 ? 0 : c->seed, tn_numel(r), x);
    return tn_to(r, dt);
}

/* x [..., n / 2]: argmax of [x, -x]. */
static tn_tensor *nearest(tn_tensor *x) { return tn_argmax(tn_cat(-1, x, tn_neg(x)), -1, false); }

tn_tensor *tn__reformer_buckets(const tn_reformer *m, tn_tensor *x, int64_t length)
{
    const tn_reformer_config *c = &m->config;
    const tn_scope            s = tn_no_grad_begin();
    const int64_t             batch = tn_size(x, 0), all = tn_size(x, 2);
    int64_t                   n[2];
    buckets_for(c, all, n);
    const int64_t columns = (n[0] + n[1]) / 2;
    tn_tensor *y = tn_matmul(tn_detach(x), rotations(m, columns, tn_dtype_of(x))); /* [B, heads, T, rounds · columns] */
    y = tn_permute(tn_reshape(y, TN_SHAPE(batch, c->heads, all, c->rounds, columns)), TN_DIMS(0, 1, 3, 2, 4));
    tn_tensor *b = nearest(tn_narrow(y, -1, 0, n[0] / 2));
    if (n[1]) b = tn_add(b, tn_mul_scalar(nearest(tn_narrow(y, -1, n[0] / 2, n[1] / 2)), (double)n[0]));
    b = tn_to(b, TN_I32);
    if (length < all)
        b = tn_cat(
            -1, tn_narrow(b, -1, 0, length),
            tn_full_of(TN_I32, TN_SHAPE(batch, c->heads, c->rounds, all - length), (double)(n[0] * (n[1] ? n[1] : 1))));
    return tn_scope_return(s, tn_contiguous(b));
}

/* peak.c — the peak rates of the machine: independent fused multiply-adds in registers, enough to hide the latency, in
 * the widest form of an instruction set; the triad a = b + s c on arrays far larger than the caches; and reading alone.
 * The layout of the job names the instruction set: "amx", "avx512", "avx2", "baseline"; on other systems than Linux,
 * the baseline alone. */
#define _GNU_SOURCE /* syscall */
#include "bench/peers/peer.h"

#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { ROUNDS = 4096, CHAINS = 12, TRIAD = 16 << 20 }; /* 64 MiB per array */

static int    threads;
static float *x, *y, *z;
static double sunk; /* receives the results of the loops, so that the compiler keeps them */

/* A loop of ROUNDS times CHAINS multiply-adds of one vector; returns the sum of the results, which the caller uses. */
#define FMA_LOOP(name, isa, vector, number, load, add, fma)                                   \
    __attribute__((target(isa))) static double name(void)                                     \
    {                                                                                         \
        vector v[CHAINS], p = load((number)0.5), q = load((number)0.25);                      \
        number first;                                                                         \
        for (int i = 0; i < CHAINS; i++) v[i] = load((number)i);                              \
        for (int r = 0; r < ROUNDS; r++) {                                                    \
            _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) v[i] = fma(v[i], p, q); \
        }                                                                                     \
        for (int i = 1; i < CHAINS; i++) v[0] = add(v[0], v[i]);                              \
        memcpy(&first, &v[0], sizeof first);                                                  \
        return (double)first;                                                                 \
    }

#if defined(__x86_64__) && defined(__linux__)
#define BF16_DOT(sum, s, t) _mm512_dpbf16_ps(sum, (__m512bh)(s), (__m512bh)(t))
FMA_LOOP(f32_avx512, "avx512f", __m512, float, _mm512_set1_ps, _mm512_add_ps, _mm512_fmadd_ps)
FMA_LOOP(f64_avx512, "avx512f", __m512d, double, _mm512_set1_pd, _mm512_add_pd, _mm512_fmadd_pd)
FMA_LOOP(bf16_avx512, "avx512f,avx512bw,avx512bf16", __m512, float, _mm512_set1_ps, _mm512_add_ps, BF16_DOT)
FMA_LOOP(f32_avx2, "avx2,fma", __m256, float, _mm256_set1_ps, _mm256_add_ps, _mm256_fmadd_ps)
FMA_LOOP(f64_avx2, "avx2,fma", __m256d, double, _mm256_set1_pd, _mm256_add_pd, _mm256_fmadd_pd)

/* Tiles of 16 x 16 sums with 32 terms per instruction; four tiles hide the latency. */
__attribute__((target("amx-tile,amx-bf16"))) static double bf16_amx(void)
{
    static const _Alignas(64) struct {
        uint8_t  palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t  rows[16];
    } shapes = {.palette = 1, .bytes = {64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16}};
    float sums[256] = {0};
    _tile_loadconfig(&shapes);
    for (int r = 0; r < ROUNDS * CHAINS / 4; r++) {
        _tile_dpbf16ps(0, 4, 5);
        _tile_dpbf16ps(1, 4, 5);
        _tile_dpbf16ps(2, 4, 5);
        _tile_dpbf16ps(3, 4, 5);
    }
    _tile_stored(0, sums, 64);
    _tile_release();
    return (double)sums[0];
}
#endif

/* Without fused instructions: four lanes of the compiler's vectors, a multiplication and an addition. */
typedef float  f32x4 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));

static double f32_baseline(void)
{
    f32x4 v[CHAINS], p = {0.5f, 0.5f, 0.5f, 0.5f}, q = {0.25f, 0.25f, 0.25f, 0.25f};
    for (int i = 0; i < CHAINS; i++) v[i] = q * (float)i;
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < CHAINS; i++) v[i] = v[i] * p + q;
    for (int i = 1; i < CHAINS; i++) v[0] += v[i];
    return (double)v[0][0];
}

static double f64_baseline(void)
{
    f64x2 v[CHAINS], p = {0.5, 0.5}, q = {0.25, 0.25};
    for (int i = 0; i < CHAINS; i++) v[i] = q * (double)i;
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < CHAINS; i++) v[i] = v[i] * p + q;
    for (int i = 1; i < CHAINS; i++) v[0] += v[i];
    return v[0][0];
}

static const struct {
    const char *kernel, *isa;
    double (*loop)(void);
    int lanes; /* multiply-adds per instruction */
} loops[] = {
#if defined(__x86_64__) && defined(__linux__)
    {"peak_bf16", "amx", bf16_amx, 16 * 16 * 32},
    {"peak_f32", "avx512", f32_avx512, 16},
    {"peak_f64", "avx512", f64_avx512, 8},
    {"peak_bf16", "avx512", bf16_avx512, 32},
    {"peak_f32", "avx2", f32_avx2, 8},
    {"peak_f64", "avx2", f64_avx2, 4},
#endif
    {"peak_f32", "baseline", f32_baseline, 4},
    {"peak_f64", "baseline", f64_baseline, 2},
};
static int at;

static bool run_fma(void)
{
    double sum = 0;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static, 1) reduction(+ : sum)
#endif
    for (int t = 0; t < threads; t++)
        for (int i = 0; i < 16; i++) sum += loops[at].loop();
    sunk += sum;
    return true;
}

static bool run_triad(void)
{
    const float s = 0.5f;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static)
#endif
    for (int64_t i = 0; i < TRIAD; i++) x[i] = y[i] + s * z[i];
    return true;
}

/* Sums of 64-bit integers: exact in any order, so that the compiler can vectorise. */
static bool run_read(void)
{
    const uint64_t *words = (const uint64_t *)(const void *)y;
    uint64_t        sum = 0;
#ifdef _OPENMP
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : sum)
#endif
    for (int64_t i = 0; i < TRIAD / 2; i++) sum += words[i];
    sunk += (double)sum;
    return true;
}

static bool has(const char *kernel, const char *isa)
{
#if defined(__x86_64__) && defined(__linux__)
    if (!strcmp(isa, "amx")) { /* ask Linux for the tile registers: ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
        unsigned       a, b, c, d = 0;
        const unsigned tiles = 1u << 22 | 1u << 24;
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & tiles) == tiles &&
               syscall(SYS_arch_prctl, 0x1023, 18) == 0;
    }
    if (!strcmp(kernel, "peak_bf16")) return __builtin_cpu_supports("avx512bf16");
    if (!strcmp(isa, "avx512")) return __builtin_cpu_supports("avx512f");
    if (!strcmp(isa, "avx2")) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    (void)kernel;
#endif
    return !strcmp(isa, "baseline");
}

static const char *prepare(const peer_job *j, peer_work *w)
{
    threads = j->threads;
    const bool triad = !strcmp(j->kernel, "triad");
    if (triad || !strcmp(j->kernel, "read")) {
        if (!x) {
            x = peer_array(0, TRIAD, 4, false), y = peer_array(1, TRIAD, 4, false), z = peer_array(2, TRIAD, 4, false);
            if (!x || !y || !z) return "out of memory";
        }
        w->run = triad ? run_triad : run_read;
        w->extra = (triad ? 3.0 : 1.0) * TRIAD * 4;
        return NULL;
    }
    for (at = 0; at < (int)(sizeof loops / sizeof *loops); at++) {
        if (strcmp(loops[at].kernel, j->kernel) != 0 || strcmp(loops[at].isa, j->layout) != 0) continue;
        if (!has(j->kernel, j->layout)) break;
        w->run = run_fma;
        w->extra = 16.0 * ROUNDS * CHAINS * 2 * loops[at].lanes * threads; /* operations per call */
        return NULL;
    }
    return "this CPU does not support it";
}

int main(void) { return peer_main("peak", prepare); }

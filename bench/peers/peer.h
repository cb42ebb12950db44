/* peer.h — what the contenders of `bench kernels` share. Each is a program of its own, so that none is linked into
 * another, and one that is not there is not missed. It says "ready NAME", then answers every line that it reads,
 *
 *     KERNEL SIZE LAYOUT THREADS SECONDS            gemm_f32 512x128x128 NT 2 0.1
 *
 * with "ok NANOSECONDS EXTRA", the best time of one call within those seconds and a number that not all kernels have
 * (-1), or with "no WHY". A job that comes again finds its operands where they were. */
#ifndef TENON_BENCH_PEERS_PEER_H
#define TENON_BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char    kernel[32], size[48], layout[16];
    int     threads;
    int     numbers; /* of the size, first to last; for a product: */
    int64_t number[4];
    int64_t batch, m, n, k; /* c [batch, m, n] = a [batch, m, k] b [batch, k, n]; */
    bool    ta, tb;         /* a lies as [k, m], b as [n, k] */
} peer_job;

typedef struct {
    bool (*run)(void);    /* one call; false: it failed */
    bool (*before)(void); /* NULL, or what has to be done before each call and is not timed */
    double extra; /* MiB that a call needs beside its operands and results; of a peak: its operations, or bytes */
} peer_work;

/* Makes the job's operands and says how it is run; NULL, or why it cannot be done. */
typedef const char *peer_prepare(const peer_job *j, peer_work *w);

int    peer_main(const char *name, peer_prepare *prepare);
bool   peer_is_gemm(const peer_job *j, const char *dtype);                 /* "f32" */
void  *peer_array(int slot, int64_t count, int64_t bytes, bool bf16_bits); /* numbers in [-1, 1); replaces the slot's */
double peer_now(void);

#endif

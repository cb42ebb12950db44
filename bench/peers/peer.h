/* peer.h — the protocol of the contenders of `bench kernels`. Each contender is a separate program, so that none is
 * linked into another and a missing one is ignored. It prints "ready NAME", then answers each line of input,
 *
 *     KERNEL SIZE LAYOUT THREADS SECONDS            gemm_f32 512x128x128 NT 2 0.1
 *
 * with "ok NANOSECONDS EXTRA", the best time of one call within SECONDS and a value that some kernels have (-1: none),
 * or with "no REASON". A repeated job reuses its operands at the same addresses. */
#ifndef TENON_BENCH_PEERS_PEER_H
#define TENON_BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    char    kernel[32], size[48], layout[16];
    int     threads;
    int     numbers; /* length of number[]: the numbers of the size; for a product also: */
    int64_t number[4];
    int64_t batch, m, n, k; /* c [batch, m, n] = a [batch, m, k] b [batch, k, n]; */
    bool    ta, tb;         /* ta: a is stored as [k, m]; tb: b is stored as [n, k] */
} peer_job;

typedef struct {
    bool (*run)(void);    /* one call; returns false on failure */
    bool (*before)(void); /* runs before each call, not timed; may be NULL */
    double extra; /* MiB that a call needs in addition to operands and results; for a peak: operations or bytes */
} peer_work;

/* Creates the operands of a job and fills in w. Returns NULL, or the reason why the job is not supported. */
typedef const char *peer_prepare(const peer_job *j, peer_work *w);

int    peer_main(const char *name, peer_prepare *prepare);
bool   peer_is_gemm(const peer_job *j, const char *dtype); /* "f32" */
void  *peer_array(int slot, int64_t count, int64_t bytes,
                  bool bf16_bits); /* values in [-1, 1); replaces the slot's array */
double peer_now(void);

#endif

/* bench.h — what the measurements share. A workload is a function of its own and a line in main.c. */
#ifndef TENON_BENCH_BENCH_H
#define TENON_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <tenon/tenon.h>

/* The sizes of a workload's model and batch. */
typedef struct {
    int64_t layers, d_model, heads, ffn, vocab, batch, seq;
} bench_sizes;

typedef struct {
    const char *self;    /* how this program was called */
    int         threads; /* 0: the library's default */
    double      seconds; /* how long to measure; 0: as long as is usual */
    tn_dtype    dtype;
    bool        q8, f16; /* weights of 8 bits or f16, and f32 beside them */
    const char *gguf;    /* a model's file, of llama; NULL: random weights */
    bench_sizes sizes;   /* 0: the workload's own */

    tn_world *world; /* of `bench ranks`; else NULL */
    int64_t   steps;
    int       shards;                                /* 0: 12 */
    bool      zero, zero3, fast, sparse, no_overlap; /* of tn_replica_config */
    int64_t   resident;                              /* bytes, of .zero3 */
    double    delay_us, delay_mb; /* of a slower network: microseconds, and MB a second; 0: as it is */

    bool        json, no_peers; /* of kernels */
    const char *only, *size;
} bench_options;

/* A workload measures for about o->seconds and prints its members of the JSON object, each ended by ", ". It returns
 * 0, or 1 with the library's error standing. */
typedef int    bench_workload(const bench_options *o, FILE *json);
bench_workload bench_overhead, bench_bert, bench_bert_small, bench_encoder_infer, bench_gpt, bench_gpt_gen, bench_llama,
    bench_seq2seq, bench_lstm, bench_reduce;

int bench_ranks(int argc, char **argv);    /* ranks.c: likewise */
int bench_kernels(const bench_options *o); /* kernels.c: a program in itself; returns the exit status */

double bench_now(void); /* seconds, from a clock that does not jump */

/* The workload's own sizes, but for those that the user has given; ffn is 4 d_model if nobody says otherwise. */
bench_sizes bench_sizes_of(const bench_options *o, bench_sizes own);
int64_t     bench_tokens(const bench_sizes *s);

/* Operations of a training step in 10^9 are 6 for each weight of a product and each of the rows that meet it, 2 forward
 * and 4 backward, and those of the attentions: `layers` of them, T queries on T keys, masked ones counted, too. The
 * weights are those of one encoder layer. */
double bench_encoder_weights(const bench_sizes *s);
double bench_attention(const bench_sizes *s, double layers);

/* What a workload reads: words of the vocabulary, and n of the numbers below `of`, each once. */
tn_tensor *bench_words(tn_shape s, int64_t vocab);
tn_tensor *bench_some(int64_t of, int64_t n);

/* Takes the option at argv[0] (main.c); how many words it took, 0 if it is none that we know. */
int bench_option(bench_options *o, char **argv);

/* A training job: loss() is one forward pass of what module learns. part() is the same for `rows` rows of the batch
 * from row `first` on; *weight: how many terms its mean has. */
typedef struct {
    void *module;
    tn_tensor *(*loss)(void *job);
    tn_tensor *(*part)(void *job, int64_t first, int64_t rows, double *weight);
    void   *job;
    int64_t batch;  /* rows */
    int64_t tokens; /* in a batch */
    double  gflop;  /* of a step */
} bench_job;
int        bench_train(const bench_options *o, FILE *json, const bench_job *j);
int        bench_train_ranks(const bench_options *o, FILE *json, const bench_job *j); /* ranks.c */
tn_tensor *bench_rows(tn_tensor *t, int64_t first, int64_t rows);                     /* contiguous */

void bench_sha256(void *module, char hex[65]); /* sha256.c: of all parameters, in their order */

#endif

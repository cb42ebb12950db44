/* bench.h — options, sizes and helpers of all measurements. Each workload is a function and a line in main.c. */
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
    const char *self;    /* argv[0] */
    int         threads; /* 0: the library's default */
    double      seconds; /* duration of the measurement; 0: the workload's default */
    tn_dtype    dtype;
    bool        q8, f16, int8; /* 8-bit, f16 or int8 weights; everything else is f32 */
    bool        q4;            /* the weights of .gguf as they are there */
    const char *text;          /* of the workload padding */
    const char *gguf;          /* model file of the workload llama; NULL: random weights */
    bench_sizes sizes;         /* 0: the workload's default */
    double      memory;        /* MiB of a memory budget; 0: none */

    tn_world *world; /* of `bench ranks`; NULL: another command */
    int64_t   steps;
    int       shards;                         /* 0: 12 */
    bool      zero, fast, sparse, no_overlap; /* members of tn_replica_config; no_overlap: not .overlap */
    double    delay_us, delay_mb; /* simulated network: microseconds per message, MB per second; 0: no delay */

    bool        json, no_peers; /* of `bench kernels` */
    const char *only, *size;
} bench_options;

/* A workload measures for about o->seconds and prints its members of the JSON object, each followed by ", ". It returns
 * 0, or 1 if an error of the library is set. */
typedef int    bench_workload(const bench_options *o, FILE *json);
bench_workload bench_overhead, bench_bert, bench_bert_small, bench_encoder_infer, bench_gpt, bench_gpt_gen, bench_llama,
    bench_lora, bench_seq2seq, bench_seq2seq_infer, bench_lstm, bench_padding, bench_reduce, bench_callers;

int bench_ranks(int argc, char **argv);    /* ranks.c; returns the exit status */
int bench_kernels(const bench_options *o); /* kernels.c; returns the exit status */

double bench_now(void); /* seconds of a monotonic clock */

/* The workload's default sizes, overridden by those of the user; ffn defaults to 4 · d_model. */
bench_sizes bench_sizes_of(const bench_options *o, bench_sizes own);
int64_t     bench_tokens(const bench_sizes *s);

/* Operations of a training step: for each weight of a matrix product 6 per input row (2 forward, 4 backward), and those
 * of the attentions. bench_encoder_weights: the weights of one encoder layer. bench_attention: 10^9 operations of
 * `layers` attentions of T queries and T keys; masked pairs count, too. */
double bench_encoder_weights(const bench_sizes *s);
double bench_attention(const bench_sizes *s, double layers);

/* Random input: token ids below `vocab`; n different integers below `of`. */
tn_tensor *bench_words(tn_shape s, int64_t vocab);
tn_tensor *bench_some(int64_t of, int64_t n);

/* Parses the option at argv[0] (main.c). Returns the number of arguments used; 0: unknown option or invalid value. */
int bench_option(bench_options *o, char **argv);

/* A training job: loss() is one forward pass. part() is the forward pass of `rows` rows of the batch from row `first`;
 * *weight: number of terms of its mean. */
typedef struct {
    void *module;
    tn_tensor *(*loss)(void *job);
    tn_tensor *(*part)(void *job, int64_t first, int64_t rows, double *weight);
    void   *job;
    int64_t batch;  /* rows */
    int64_t tokens; /* per batch */
    double  gflop;  /* 10^9 operations per step */
} bench_job;
int        bench_train(const bench_options *o, FILE *json, const bench_job *j);
int        bench_train_ranks(const bench_options *o, FILE *json, const bench_job *j); /* ranks.c */
tn_tensor *bench_rows(tn_tensor *t, int64_t first, int64_t rows);                     /* a contiguous copy of rows */

void bench_sha256(void *module, char hex[65]); /* sha256.c: the hash of all parameters in order */

#endif

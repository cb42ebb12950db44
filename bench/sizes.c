/* sizes.c — the sizes of a workload, the operations of its step, and rows of its batch. */
#include "bench/bench.h"

bench_sizes bench_sizes_of(const bench_options *o, bench_sizes own)
{
    const bench_sizes *g = &o->sizes;
    if (g->layers) own.layers = g->layers;
    if (g->d_model) own.d_model = g->d_model, own.ffn = 0;
    if (g->heads) own.heads = g->heads;
    if (g->vocab) own.vocab = g->vocab;
    if (g->batch) own.batch = g->batch;
    if (g->seq) own.seq = g->seq;
    if (g->ffn) own.ffn = g->ffn;
    if (!own.ffn) own.ffn = 4 * own.d_model;
    return own;
}

int64_t bench_tokens(const bench_sizes *s) { return s->batch * s->seq; }

double bench_encoder_weights(const bench_sizes *s)
{
    const double d = (double)s->d_model;
    return 4 * d * d + 2 * d * (double)s->ffn;
}

double bench_attention(const bench_sizes *s, double layers)
{
    return 12e-9 * (double)s->batch * (double)s->seq * (double)s->seq * (double)s->d_model * layers;
}

tn_tensor *bench_rows(tn_tensor *t, int64_t first, int64_t rows) { return tn_contiguous(tn_narrow(t, 0, first, rows)); }

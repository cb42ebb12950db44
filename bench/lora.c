/* lora.c — a training step of low-rank adapters of rank 8 on all linear layers of a LLaMA of 110 M weights, in f32,
 * 8 bits or int8: 4 sequences of 256 tokens. packed_mib: the weights, without the adapters. */
#include "bench/bench.h"

static const bench_sizes own = {
    .layers = 12, .d_model = 768, .heads = 12, .ffn = 2048, .vocab = 32000, .batch = 4, .seq = 256};
enum { RANK = 8 };

typedef struct {
    tn_llama  *m;
    tn_tensor *words, *targets;
} job;

static tn_tensor *loss(void *given)
{
    const job *j = given;
    return tn_llama_loss(j->m, j->words, j->targets);
}

static double bytes_of(tn_llama *m)
{
    double all = 0;
    for (tn_each e = tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_BUFFER); tn_next(&e);)
        all += (double)tn_numel(e.tensor) * (double)tn_dtype_size(tn_dtype_of(e.tensor));
    return all;
}

int bench_lora(const bench_options *o, FILE *json)
{
    const bench_sizes s = bench_sizes_of(o, own);
    const tn_scope    all = tn_scope_begin();
    job j = {.m = tn_llama_new(.vocab = s.vocab, .dim = s.d_model, .layers = s.layers, .heads = s.heads, .ff = s.ffn,
                               .positions = s.seq, .tied = true)};
    const double weights = j.m ? (double)tn_count(j.m) : 0; /* before packing, which turns them into buffers */
    if (j.m && o->q8) tn_quantize(j.m);
    if (j.m && o->int8) tn_quantize(j.m, .activations = true);
    const double packed = bytes_of(j.m);
    if (j.m) tn_lora(j.m, .rank = RANK);
    j.words = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    j.targets = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    const int64_t   tokens = bench_tokens(&s);
    const double    gflop = 4e-9 * weights * (double)tokens + bench_attention(&s, (double)s.layers);
    const bench_job work = {.module = j.m, .loss = loss, .job = &j, .batch = s.batch, .tokens = tokens, .gflop = gflop};
    fprintf(json, "\"packed_mib\": %.1f, ", packed / (1 << 20));
    const int failed = bench_train(o, json, &work);
    tn_free(j.m);
    tn_scope_end(all);
    return failed;
}

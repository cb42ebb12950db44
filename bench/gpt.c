/* gpt.c — a GPT with tied embeddings and pre-norm layers: training (gpt) and greedy generation with a key-value cache
 * (gpt-gen). */
#include "bench/bench.h"

#include <math.h>

typedef struct {
    tn_module               base;
    tn_embedding           *words, *positions;
    tn_transformer_encoder *encoder;
    tn_layer_norm          *norm;
} gpt;

/* words [B, T], the first at position `start`. Returns hidden states [B, T, dim], before the tied output projection. */
static tn_tensor *gpt_forward(gpt *m, tn_tensor *words, tn_kv_cache *cache, int64_t start)
{
    if (!tn_ready(m)) return NULL;
    tn_frame   f = tn_enter(m);
    tn_tensor *at = tn_add_scalar(tn_arange(tn_size(words, 1)), (double)start);
    tn_tensor *x = tn_add(tn_call(m->words, words), tn_call(m->positions, at));
    x = tn_transformer_encoder_forward(m->encoder, x, .causal = true, .cache = cache);
    return tn_leave(f, tn_call(m->norm, x));
}
TN_MODULE(gpt);

static gpt *gpt_new(const bench_sizes *s)
{
    gpt *m = tn_module_new(gpt);
    if (!m) return NULL;
    m->words = tn_child(m, "words", tn_embedding_new(.count = s->vocab, .dim = s->d_model));
    m->positions = tn_child(m, "positions", tn_embedding_new(.count = s->seq, .dim = s->d_model));
    m->encoder = tn_child(m, "encoder",
                          tn_transformer_encoder_new(.layers = s->layers, .dim = s->d_model, .heads = s->heads,
                                                     .ff = s->ffn, .activation = tn_gelu, .order = TN_NORM_FIRST));
    m->norm = tn_child(m, "norm", tn_layer_norm_new(.dim = s->d_model));
    return tn_built(m);
}

static const bench_sizes own = {.layers = 6, .d_model = 256, .heads = 8, .vocab = 8000, .batch = 8, .seq = 256};

typedef struct {
    gpt       *m;
    tn_tensor *words, *targets;
} job;

static tn_tensor *loss(void *given)
{
    const job *j = given;
    tn_tensor *x = gpt_forward(j->m, j->words, NULL, 0);
    return tn_linear_cross_entropy(x, j->m->words->weight, NULL, j->targets);
}

static tn_tensor *part(void *given, int64_t first, int64_t rows, double *weight)
{
    job j = *(const job *)given;
    j.words = bench_rows(j.words, first, rows), j.targets = bench_rows(j.targets, first, rows);
    *weight = (double)tn_numel(j.targets);
    return loss(&j);
}

int bench_gpt(const bench_options *o, FILE *json)
{
    const bench_sizes s = bench_sizes_of(o, own);
    tn_scope          all = tn_scope_begin();
    job               j = {.m = gpt_new(&s)};
    j.words = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    j.targets = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    const int64_t   tokens = bench_tokens(&s);
    const double    weights = bench_encoder_weights(&s) * (double)s.layers + (double)(s.d_model * s.vocab);
    const double    gflop = 6e-9 * weights * (double)tokens + bench_attention(&s, (double)s.layers);
    const bench_job work = {
        .module = j.m, .loss = loss, .part = part, .job = &j, .batch = s.batch, .tokens = tokens, .gflop = gflop};
    int failed = bench_train(o, json, &work);
    tn_free(j.m);
    tn_scope_end(all);
    return failed;
}

static void generate(gpt *m, tn_kv_cache *cache, int64_t length)
{
    tn_scope s = tn_scope_begin();
    tn_kv_cache_clear(cache);
    tn_tensor *token = tn_zeros_of(TN_I64, TN_SHAPE(1, 1));
    for (int64_t i = 0; m && tn_error() == TN_OK && i < length; i++) {
        tn_scope   one = tn_scope_begin();
        tn_tensor *scores = tn_linear(gpt_forward(m, token, cache, i), m->words->weight, NULL);
        token = tn_scope_return(one, tn_argmax(scores, -1, false));
    }
    tn_scope_end(s);
}

/* Greedy, one token at a time. gb_s: the weights are read once per token. */
int bench_gpt_gen(const bench_options *o, FILE *json)
{
    const bench_sizes s = bench_sizes_of(o, own);
    const int64_t     length = s.seq > 6 ? s.seq - 6 : s.seq; /* 250 of 256 */
    double            best = INFINITY;
    tn_scope          all = tn_no_grad_begin();
    gpt              *m = gpt_new(&s);
    tn_kv_cache      *cache = tn_kv_cache_new(.layers = s.layers, .batch = 1, .length = s.seq, .heads = s.heads,
                                              .head_dim = s.d_model / s.heads, .dtype = o->dtype);
    if (m) tn_eval(m);
    tn_autocast_begin(o->dtype == TN_BF16); /* ends with the scope `all` */
    generate(m, cache, length < 20 ? length : 20);
    const double end = bench_now() + (o->seconds > 0 ? o->seconds : 5);
    for (int runs = 0; tn_error() == TN_OK && (runs < 3 || bench_now() < end); runs++) {
        const double start = bench_now();
        generate(m, cache, length);
        if (bench_now() - start < best) best = bench_now() - start;
    }
    const double tok_s = (double)length / best, weights = m ? (double)tn_count(m) - (double)(s.d_model * s.seq) : 0;
    if (m)
        fprintf(json, "\"tok_s\": %.1f, \"params\": %lld, \"gflop\": %.5f, \"gb_s\": %.2f, ", tok_s,
                (long long)tn_count(m), 2e-9 * weights, 1e-9 * tok_s * weights * (double)tn_dtype_size(o->dtype));
    tn_kv_cache_free(cache);
    tn_free(m);
    tn_scope_end(all);
    return tn_error() != TN_OK;
}

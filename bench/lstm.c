/* lstm.c — an LSTM language model: an embedding, stacked LSTM layers, a projection to the vocabulary. */
#include "bench/bench.h"

typedef struct {
    tn_module     base;
    tn_embedding *words;
    tn_lstm      *lstm;
    tn_linear    *out;
} recurrent;
TN_MODULE(recurrent);

static recurrent *recurrent_new(const bench_sizes *s)
{
    recurrent *m = tn_module_new(recurrent);
    if (!m) return NULL;
    m->words = tn_child(m, "words", tn_embedding_new(.count = s->vocab, .dim = s->d_model));
    m->lstm = tn_child(m, "lstm", tn_lstm_new(.in = s->d_model, .hidden = s->d_model, .layers = s->layers));
    m->out = tn_child(m, "out", tn_linear_new(.in = s->d_model, .out = s->vocab));
    return tn_built(m);
}

typedef struct {
    recurrent *m;
    tn_tensor *words, *targets; /* [B, T] */
} job;

static tn_tensor *loss(void *given)
{
    const job *j = given;
    recurrent *m = j->m;
    if (!tn_ready(m)) return NULL;
    tn_frame   f = tn_enter(m);
    tn_tensor *x = tn_call(m->lstm, tn_call(m->words, j->words));
    return tn_leave(f, tn_linear_cross_entropy(x, m->out->weight, m->out->bias, j->targets));
}

static tn_tensor *part(void *given, int64_t first, int64_t rows, double *weight)
{
    job j = *(const job *)given;
    j.words = bench_rows(j.words, first, rows), j.targets = bench_rows(j.targets, first, rows);
    *weight = (double)tn_numel(j.targets);
    return loss(&j);
}

int bench_lstm(const bench_options *o, FILE *json)
{
    const bench_sizes s =
        bench_sizes_of(o, (bench_sizes){.layers = 2, .d_model = 256, .vocab = 8000, .batch = 32, .seq = 35});
    tn_scope all = tn_scope_begin();
    job      j = {.m = recurrent_new(&s)};
    j.words = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    j.targets = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    const int64_t   tokens = bench_tokens(&s);
    const double    d = (double)s.d_model, weights = 8 * d * d * (double)s.layers + d * (double)s.vocab;
    const double    gflop = 6e-9 * weights * (double)tokens;
    const bench_job work = {
        .module = j.m, .loss = loss, .part = part, .job = &j, .batch = s.batch, .tokens = tokens, .gflop = gflop};
    int failed = bench_train(o, json, &work);
    tn_free(j.m);
    tn_scope_end(all);
    return failed;
}

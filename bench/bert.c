/* bert.c — a BERT encoder with a tied masked-LM head: training (bert, bert-small), inference for one sequence
 * (encoder-infer), and by several threads of a program that share it (callers). Only masked positions, 15 in 100, are
 * projected to the vocabulary. */
#include "bench/bench.h"

#include <math.h>
#include <pthread.h>

typedef struct {
    tn_module               base;
    tn_embedding           *words, *positions, *segments;
    tn_layer_norm          *norm;
    tn_dropout             *drop;
    tn_transformer_encoder *encoder;
    tn_mlm_head            *head;
} bert;

/* words, segments [B, T]; where: n positions in [B·T]. Returns [n, dim]. */
static tn_tensor *bert_forward(bert *m, tn_tensor *words, tn_tensor *segments, tn_tensor *where)
{
    if (!tn_ready(m)) return NULL;
    tn_frame   f = tn_enter(m);
    tn_tensor *x = tn_add(tn_call(m->words, words), tn_call(m->positions, tn_arange(tn_size(words, 1))));
    x = tn_call(m->drop, tn_call(m->norm, tn_add(x, tn_call(m->segments, segments))));
    x = tn_flatten(tn_call(m->encoder, x), 0, 1);
    return tn_leave(f, tn_index_select(x, 0, where));
}
TN_MODULE(bert);

static bert *bert_new(const bench_sizes *s)
{
    const int64_t d = s->d_model;
    bert         *m = tn_module_new(bert);
    if (!m) return NULL;
    m->words = tn_child(m, "words", tn_embedding_new(.count = s->vocab, .dim = d));
    m->positions = tn_child(m, "positions", tn_embedding_new(.count = s->seq > 512 ? s->seq : 512, .dim = d));
    m->segments = tn_child(m, "segments", tn_embedding_new(.count = 2, .dim = d));
    m->norm = tn_child(m, "norm", tn_layer_norm_new(.dim = d));
    m->drop = tn_child(m, "drop", tn_dropout_new(.p = 0.1));
    m->encoder = tn_child(m, "encoder",
                          tn_transformer_encoder_new(.layers = s->layers, .dim = d, .heads = s->heads, .ff = s->ffn,
                                                     .activation = tn_gelu));
    m->head = tn_child(m, "head", tn_mlm_head_new(.embedding = m->words ? m->words->weight : NULL));
    return tn_built(m);
}

typedef struct {
    bert      *m;
    tn_tensor *words, *segments, *where, *targets;
} job;

static tn_tensor *loss(void *given)
{
    const job   *j = given;
    tn_mlm_head *head = j->m->head;
    tn_tensor   *x = tn_mlm_head_transform(head, bert_forward(j->m, j->words, j->segments, j->where));
    return tn_linear_cross_entropy(x, head->weight, head->bias, j->targets);
}

/* The loss of the masked positions in these rows, in order. */
static tn_tensor *part(void *given, int64_t first, int64_t rows, double *weight)
{
    const job    *all = given;
    job           j = {.m = all->m};
    const int64_t seq = tn_size(all->words, 1), n = tn_numel(all->where);
    int64_t       count = 0;
    for (int pass = 0; pass < 2; pass++, count = pass < 2 ? 0 : count) {
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = tn_get_i64(all->where, i) - first * seq;
            if (at < 0 || at >= rows * seq) continue;
            if (pass) {
                tn_set_i64(j.where, count, at);
                tn_set_i64(j.targets, count, tn_get_i64(all->targets, i));
            }
            count++;
        }
        if (!pass) j.where = tn_zeros_of(TN_I64, TN_SHAPE(count)), j.targets = tn_zeros_of(TN_I64, TN_SHAPE(count));
    }
    *weight = (double)count;
    j.words = bench_rows(all->words, first, rows), j.segments = bench_rows(all->segments, first, rows);
    return count ? loss(&j) : NULL;
}

static int train(const bench_options *o, FILE *json, bench_sizes own)
{
    const bench_sizes s = bench_sizes_of(o, own);
    const int64_t     tokens = bench_tokens(&s), masked = tokens * 15 / 100;
    tn_scope          all = tn_scope_begin();
    job               j = {.m = bert_new(&s)};
    j.words = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    j.segments = tn_zeros_of(TN_I64, TN_SHAPE(s.batch, s.seq));
    j.where = bench_some(tokens, masked);
    j.targets = bench_words(TN_SHAPE(masked), s.vocab);
    const double    d = (double)s.d_model, head = d * d + d * (double)s.vocab;
    const double    products = bench_encoder_weights(&s) * (double)(s.layers * tokens) + head * (double)masked;
    const double    gflop = 6e-9 * products + bench_attention(&s, (double)s.layers);
    const bench_job work = {
        .module = j.m, .loss = loss, .part = part, .job = &j, .batch = s.batch, .tokens = tokens, .gflop = gflop};
    int failed = bench_train(o, json, &work);
    tn_free(j.m);
    tn_scope_end(all);
    return failed;
}

int bench_bert(const bench_options *o, FILE *json)
{
    return train(o, json,
                 (bench_sizes){.layers = 4, .d_model = 256, .heads = 4, .vocab = 30522, .batch = 16, .seq = 128});
}

int bench_bert_small(const bench_options *o, FILE *json)
{
    return train(o, json,
                 (bench_sizes){.layers = 2, .d_model = 128, .heads = 2, .vocab = 8000, .batch = 32, .seq = 64});
}

int bench_encoder_infer(const bench_options *o, FILE *json)
{
    const bench_sizes s = bench_sizes_of(
        o, (bench_sizes){.layers = 6, .d_model = 384, .heads = 12, .vocab = 30522, .batch = 1, .seq = 32});
    const double end = bench_now() + (o->seconds > 0 ? o->seconds : 5);
    double       best = INFINITY;
    tn_scope     all = tn_no_grad_begin();
    bert        *m = bert_new(&s);
    tn_tensor   *words = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    tn_tensor   *segments = tn_zeros_of(TN_I64, TN_SHAPE(s.batch, s.seq)), *where = tn_arange(4);
    if (m) tn_eval(m);
    if (m && o->int8) tn_quantize(m, .activations = true);
    tn_autocast_begin(o->dtype == TN_BF16); /* ends with the scope `all` */
    for (int runs = 0; m && tn_error() == TN_OK && (runs < 10 || bench_now() < end); runs++) {
        const double start = bench_now();
        tn_scope     one = tn_scope_begin();
        tn_call(m->head, bert_forward(m, words, segments, where));
        tn_scope_end(one);
        if (bench_now() - start < best) best = bench_now() - start;
    }
    const double d = (double)s.d_model, head = 4 * (d * d + d * (double)s.vocab);
    const double gflop = 2e-9 * (bench_encoder_weights(&s) * (double)(s.layers * bench_tokens(&s)) + head) +
                         bench_attention(&s, (double)s.layers) / 3;
    if (m)
        fprintf(json, "\"ms\": %.4f, \"tok_s\": %.0f, \"params\": %lld, \"gflop\": %.3f, ", best * 1e3,
                (double)bench_tokens(&s) / best, (long long)tn_count(m), gflop);
    tn_free(m);
    tn_scope_end(all);
    return tn_error() != TN_OK;
}

/* ---- several threads, one model ---------------------------------------------------------------------------------- */

enum { CALLERS_MOST = 256 };
typedef struct {
    bert       *m;
    bench_sizes sizes;
    double      until;
    int64_t     calls;
    bool        failed;
} caller;

static void *call_until(void *given)
{
    caller  *c = given;
    tn_scope all = tn_no_grad_begin();
    tn_set_threads(1);
    tn_tensor *words = bench_words(TN_SHAPE(c->sizes.batch, c->sizes.seq), c->sizes.vocab);
    tn_tensor *segments = tn_zeros_of(TN_I64, TN_SHAPE(c->sizes.batch, c->sizes.seq)), *where = tn_arange(4);
    for (c->calls = 0; tn_error() == TN_OK && bench_now() < c->until; c->calls++) {
        tn_scope one = tn_scope_begin();
        tn_call(c->m->head, bert_forward(c->m, words, segments, where));
        tn_scope_end(one);
    }
    c->failed = tn_error() != TN_OK;
    if (c->failed) fprintf(stderr, "bench: %s\n", tn_error_message());
    tn_scope_end(all);
    return NULL;
}

/* Calls per second of n threads; -1: failed. */
static double calls_of(bert *m, const bench_sizes *s, int n, double seconds)
{
    static caller    all[CALLERS_MOST];
    static pthread_t thread[CALLERS_MOST];
    const double     start = bench_now();
    double           calls = 0;
    bool             failed = false;
    int              begun = 0;
    for (; begun < n; begun++) {
        all[begun] = (caller){.m = m, .sizes = *s, .until = start + seconds};
        if (pthread_create(&thread[begun], NULL, call_until, &all[begun])) break;
    }
    for (int i = 0; i < begun; i++) {
        pthread_join(thread[i], NULL);
        calls += (double)all[i].calls, failed |= all[i].failed;
    }
    return failed || begun < n ? -1 : calls / (bench_now() - start);
}

/* The best of three windows each, of one thread and of all alternately. */
int bench_callers(const bench_options *o, FILE *json)
{
    const bench_sizes s = bench_sizes_of(
        o, (bench_sizes){.layers = 6, .d_model = 384, .heads = 12, .vocab = 30522, .batch = 1, .seq = 32});
    const int    n = o->threads ? o->threads : tn_threads();
    const double window = (o->seconds > 0 ? o->seconds : 6) / 6;
    double       best[2] = {0, 0};
    bert        *m = bert_new(&s);
    bool         failed = !m || n > CALLERS_MOST;
    if (m) tn_eval(m);
    if (m && o->int8) tn_quantize(m, .activations = true);
    for (int i = 0; i < 6 && !failed && tn_error() == TN_OK; i++) {
        const double rate = calls_of(m, &s, i % 2 ? n : 1, window);
        failed = rate < 0;
        if (rate > best[i % 2]) best[i % 2] = rate;
    }
    if (!failed)
        fprintf(json, "\"callers\": %d, \"calls_s_1\": %.1f, \"calls_s\": %.1f, \"scaling\": %.3f, ", n, best[0],
                best[1], best[1] / best[0]);
    tn_free(m);
    return failed || tn_error() != TN_OK;
}

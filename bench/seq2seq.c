/* seq2seq.c — a Transformer for translation: three encoder and three decoder layers, one embedding shared by both sides
 * and the output. seq2seq: training, with padding and label smoothing; seq2seq-infer: translation by beam search. */
#include "bench/bench.h"

#include <math.h>

enum { BEAMS = 5 }; /* of seq2seq-infer */

typedef struct {
    tn_module       base;
    tn_embedding   *words;
    tn_transformer *transformer;
} translator;
TN_MODULE(translator);

static translator *translator_new(const bench_sizes *s)
{
    translator *m = tn_module_new(translator);
    if (!m) return NULL;
    m->words = tn_child(m, "words", tn_embedding_new(.count = s->vocab, .dim = s->d_model));
    m->transformer = tn_child(m, "transformer",
                              tn_transformer_new(.dim = s->d_model, .heads = s->heads, .encoder_layers = s->layers,
                                                 .decoder_layers = s->layers, .ff = s->ffn, .dropout = 0.1));
    return tn_built(m);
}

typedef struct {
    translator *m;
    tn_tensor  *source, *target, *next; /* [B, T] */
    tn_tensor  *padding;                /* bool [B, T], source padding mask: true is padding */
} job;

static tn_tensor *loss(void *given)
{
    const job  *j = given;
    translator *m = j->m;
    if (!tn_ready(m)) return NULL;
    tn_frame     f = tn_enter(m);
    const double scale = sqrt((double)m->words->dim);
    tn_tensor   *x = tn_mul_scalar(tn_call(m->words, j->source), scale);
    tn_tensor   *y = tn_mul_scalar(tn_call(m->words, j->target), scale);
    y = tn_transformer_forward(m->transformer, x, y, .causal = true, .src_key_padding_mask = j->padding,
                               .memory_key_padding_mask = j->padding, .skip_padding = true);
    y = tn_linear_cross_entropy(y, m->words->weight, NULL, j->next, .label_smoothing = 0.1);
    return tn_leave(f, y);
}

static tn_tensor *part(void *given, int64_t first, int64_t rows, double *weight)
{
    job j = *(const job *)given;
    j.source = bench_rows(j.source, first, rows), j.target = bench_rows(j.target, first, rows);
    j.next = bench_rows(j.next, first, rows), j.padding = bench_rows(j.padding, first, rows);
    *weight = (double)tn_numel(j.next);
    return loss(&j);
}

int bench_seq2seq(const bench_options *o, FILE *json)
{
    const bench_sizes s = bench_sizes_of(
        o, (bench_sizes){.layers = 3, .d_model = 256, .heads = 8, .ffn = 1024, .vocab = 8000, .batch = 64, .seq = 24});
    tn_scope all = tn_scope_begin();
    job      j = {.m = translator_new(&s)};
    j.source = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    j.target = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    j.next = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    const int64_t real = s.seq * 5 / 6; /* 20 of 24 */
    j.padding = tn_expand(tn_ge(tn_arange(s.seq), tn_scalar_of(TN_I64, (double)real)), TN_SHAPE(s.batch, s.seq));
    /* weights of an encoder and a decoder layer that multiply source tokens, without the padding, and target tokens */
    const double  d = (double)s.d_model, share = (double)real / (double)s.seq;
    const double  of_source = bench_encoder_weights(&s) + 2 * d * d, of_target = bench_encoder_weights(&s) + 2 * d * d;
    const double  weights = (share * of_source + of_target) * (double)s.layers + d * (double)s.vocab;
    const int64_t tokens = bench_tokens(&s);
    const double  gflop =
        6e-9 * weights * (double)tokens + bench_attention(&s, (share * share + 1 + share) * (double)s.layers);
    const bench_job work = {
        .module = j.m, .loss = loss, .part = part, .job = &j, .batch = s.batch, .tokens = tokens, .gflop = gflop};
    int failed = bench_train(o, json, &work);
    tn_free(j.m);
    tn_scope_end(all);
    return failed;
}

/* Translates the batch once, each text into as many tokens as it has. */
static void translate(tn_seq2seq *m, tn_tensor *source)
{
    const int64_t seq = tn_size(source, 1);
    tn_scope      one = tn_scope_begin();
    tn_decoding  *d = tn_seq2seq_decoding(m, source, BEAMS, seq + 1);
    tn_tensor    *begin = tn_full_of(TN_I64, TN_SHAPE(tn_size(source, 0), 1), (double)m->config.begin);
    if (d) tn_generate(d, begin, .beams = BEAMS, .most = seq, .least = seq);
    tn_decoding_free(d);
    tn_scope_end(one);
}

int bench_seq2seq_infer(const bench_options *o, FILE *json)
{
    const bench_sizes s = bench_sizes_of(
        o, (bench_sizes){.layers = 3, .d_model = 256, .heads = 8, .ffn = 1024, .vocab = 8000, .batch = 16, .seq = 24});
    double      best = INFINITY;
    tn_scope    all = tn_no_grad_begin();
    tn_seq2seq *m = tn_seq2seq_new(.source_words = s.vocab, .shared = true, .dim = s.d_model, .layers = s.layers,
                                   .heads = s.heads, .ff = s.ffn);
    tn_tensor  *source = bench_words(TN_SHAPE(s.batch, s.seq), s.vocab);
    if (m) tn_eval(m);
    if (m && o->int8) tn_quantize(m, .activations = true);
    tn_autocast_begin(o->dtype == TN_BF16); /* ends with the scope `all` */
    const double end = bench_now() + (o->seconds > 0 ? o->seconds : 5);
    for (int runs = 0; m && tn_error() == TN_OK && (runs < 3 || bench_now() < end); runs++) {
        const double start = bench_now();
        translate(m, source);
        if (bench_now() - start < best) best = bench_now() - start;
    }
    if (m)
        fprintf(json, "\"ms\": %.4f, \"tok_s\": %.0f, \"params\": %lld, ", best * 1e3, (double)bench_tokens(&s) / best,
                (long long)tn_count(m));
    tn_free(m);
    tn_scope_end(all);
    return tn_error() != TN_OK;
}

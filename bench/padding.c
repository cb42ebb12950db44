/* padding.c — training steps of a BERT that classifies the lines of a text, with their real lengths: with the padding
 * of each batch, and without it, alternately on the same batches. padding: its fraction of the tokens; speedup: of the
 * steps without it; same_bits: true if all losses have the same bits. A line has a token for each word, and two
 * more. */
#include "bench/bench.h"

#include <math.h>
#include <string.h>

enum { LABELS = 2, BATCHES = 8 };

typedef struct {
    tn_module               base;
    tn_embedding           *words;
    tn_transformer_encoder *encoder;
    tn_linear              *out;
} classifier;
TN_MODULE(classifier);

typedef struct {
    tn_tensor *ids, *padding, *labels; /* [B, T]; bool [B, T]; [B] */
} batch;

static classifier *classifier_new(const bench_sizes *s)
{
    classifier *m = tn_module_new(classifier);
    if (!m) return NULL;
    m->words = tn_child(m, "words", tn_embedding_new(.count = s->vocab, .dim = s->d_model));
    m->encoder = tn_child(m, "encoder",
                          tn_transformer_encoder_new(.layers = s->layers, .dim = s->d_model, .heads = s->heads,
                                                     .ff = s->ffn, .activation = tn_gelu, .dropout = 0));
    m->out = tn_child(m, "out", tn_linear_new(.in = s->d_model, .out = LABELS));
    return tn_built(m);
}

static tn_tensor *loss(classifier *m, const batch *b, bool skip)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor *x = tn_transformer_encoder_forward(m->encoder, tn_call(m->words, b->ids), .key_padding_mask = b->padding,
                                                  .skip_padding = skip);
    return tn_leave(f, tn_cross_entropy(tn_call(m->out, tn_select(x, 1, 0)), b->labels));
}

static int64_t tokens_of(tn_text line, int64_t most)
{
    int64_t n = 2;
    for (size_t i = 0; i < line.bytes; i++)
        n += line.at[i] != ' ' && line.at[i] != '\t' && (i == 0 || line.at[i - 1] == ' ' || line.at[i - 1] == '\t');
    return n < most ? n : most;
}

/* Batches of lines in sequence, spread over the text. Returns the number of tokens; *all: with the padding. */
static int64_t make_batches(const bench_options *o, const bench_sizes *s, batch *to, int64_t *all)
{
    tn_lines     *lines = tn_lines_load(o->text);
    const int64_t n = tn_lines_count(lines), each = n / BATCHES;
    int64_t       tokens = 0;
    if (lines && each < s->batch)
        tn_raise(TN_EFORMAT, "'%s' has %lld lines, but %d batches of %lld need more", o->text, (long long)n, BATCHES,
                 (long long)s->batch);
    for (int k = 0; k < BATCHES && tn_error() == TN_OK; k++) {
        int64_t width = 0;
        for (int64_t i = 0; i < s->batch; i++)
            width = (int64_t)fmax((double)width, (double)tokens_of(tn_lines_at(lines, k * each + i), s->seq));
        to[k].ids = bench_words(TN_SHAPE(s->batch, width), s->vocab);
        to[k].labels = bench_words(TN_SHAPE(s->batch), LABELS);
        to[k].padding = tn_zeros_of(TN_BOOL, TN_SHAPE(s->batch, width));
        for (int64_t i = 0; i < s->batch; i++) {
            const int64_t has = tokens_of(tn_lines_at(lines, k * each + i), s->seq);
            if (has < width) tn_fill(tn_narrow(tn_select(to[k].padding, 0, i), 0, has, width - has), 1);
            tokens += has;
        }
        *all += s->batch * width;
    }
    tn_lines_free(lines);
    return tokens;
}

/* Seconds of a step. */
static double step(classifier *m, tn_optimizer *opt, const batch *b, bool skip, double *value)
{
    const double   start = bench_now();
    const tn_scope s = tn_scope_begin();
    tn_tensor     *l = loss(m, b, skip);
    *value = tn_item(l);
    tn_backward(l);
    tn_step(opt);
    tn_scope_end(s);
    return bench_now() - start;
}

int bench_padding(const bench_options *o, FILE *json)
{
    const bench_sizes s = bench_sizes_of(
        o, (bench_sizes){.layers = 4, .d_model = 256, .heads = 4, .vocab = 8000, .batch = 32, .seq = 128});
    const tn_scope all = tn_scope_begin();
    batch          b[BATCHES] = {{.ids = NULL}};
    int64_t        places = 0, tokens;
    double         best[2] = {0}, value[2];
    bool           same = true;
    if (!o->text) tn_raise(TN_EINVAL, "the workload needs --text FILE, a sentence per line");
    tokens = o->text ? make_batches(o, &s, b, &places) : 0;
    classifier   *m = classifier_new(&s);
    tn_optimizer *opt[2] = {tn_sgd_new(m, .lr = 0), tn_sgd_new(m, .lr = 0)}; /* the weights stay */
    const double  start = bench_now(), seconds = o->seconds > 0 ? o->seconds : 10;
    for (int k = 0; k < BATCHES && tn_error() == TN_OK; k++) {
        double least[2] = {INFINITY, INFINITY};
        for (int turn = 0; turn < 3 || bench_now() < start + seconds * (k + 1) / BATCHES; turn++) {
            for (int skip = 0; skip < 2; skip++)
                least[skip] = fmin(least[skip], step(m, opt[skip], &b[k], skip, &value[skip]));
            same = same && !memcmp((const char *)&value[0], (const char *)&value[1], sizeof value[0]);
            if (tn_error() != TN_OK) break;
        }
        best[0] += least[0], best[1] += least[1];
    }
    fprintf(json, "\"padding\": %.3f, \"padded_ms\": %.2f, \"ms\": %.2f, \"speedup\": %.3f, \"same_bits\": %s, ",
            1 - (double)tokens / (double)places, best[0] / BATCHES * 1e3, best[1] / BATCHES * 1e3, best[0] / best[1],
            same ? "true" : "false");
    tn_optimizer_free(opt[0]), tn_optimizer_free(opt[1]);
    tn_free(m);
    tn_scope_end(all);
    return tn_error() != TN_OK;
}

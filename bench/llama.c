/* llama.c — a LLaMA of which each token reads 110 M weights: the speed of prompt processing and of generation, token by
 * token, with f32, bf16, f16, 8-bit or 4-bit weights; and the read bandwidth of memory, which limits generation. */
#include "bench/bench.h"

#include <math.h>
#include <string.h>

static const bench_sizes own = {.layers = 12, .d_model = 768, .heads = 12, .ffn = 2048, .vocab = 32000, .seq = 512};
enum { WRITTEN = 64, RUNS = 3 };

static double faster(double best, double start) { return bench_now() - start < best ? bench_now() - start : best; }

/* Runs tokens after those in the cache and computes the logits of the next token. Returns false if an error is set. */
static bool reads(tn_llama *m, tn_kv_cache *cache, tn_tensor *ids)
{
    const tn_scope s = tn_scope_begin();
    const bool     ok = tn_llama_forward(m, ids, .cache = cache, .last = true) != NULL;
    tn_scope_end(s);
    return ok;
}

static double prompt_seconds(tn_llama *m, tn_kv_cache *cache, tn_tensor *ids, double seconds)
{
    double       best = INFINITY;
    const double end = bench_now() + seconds;
    for (int runs = 0; tn_error() == TN_OK && (runs < RUNS || bench_now() < end); runs++) {
        tn_kv_cache_clear(cache);
        const double start = bench_now();
        if (reads(m, cache, ids)) best = faster(best, start);
    }
    return best;
}

/* Seconds per generated token, after a prompt of two. */
static double token_seconds(tn_llama *m, tn_kv_cache *cache, tn_tensor *ids, double seconds)
{
    double       best = INFINITY;
    const double end = bench_now() + seconds;
    for (int runs = 0; tn_error() == TN_OK && (runs < RUNS || bench_now() < end); runs++) {
        tn_kv_cache_clear(cache);
        bool         ok = reads(m, cache, tn_narrow(ids, 1, 0, 2));
        const double start = bench_now();
        for (int i = 0; ok && i < WRITTEN; i++) ok = reads(m, cache, tn_narrow(ids, 1, i % tn_size(ids, 1), 1));
        best = faster(best, start);
    }
    return best / WRITTEN;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const uint64_t *from;
    uint64_t        sum[64]; /* of each part; keeps the compiler from removing the loop */
} reading;
enum { READ = 256 << 20, PARTS = 64 };

static void read_parts(int64_t from, int64_t to, void *user)
{
    reading      *r = user;
    const int64_t n = READ / PARTS / 8;
    for (int64_t p = from; p < to; p++) {
        const uint64_t *x = r->from + p * n;
        uint64_t        s[8] = {0};
        for (int64_t i = 0; i < n; i += 8)
            for (int k = 0; k < 8; k++) s[k] += x[i + k];
        r->sum[p] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
    }
}

static double read_rate(void)
{
    const tn_scope s = tn_scope_begin();
    double         best = INFINITY;
    reading        r = {.from = tn_data(tn_zeros_of(TN_I64, TN_SHAPE(READ / 8)))};
    for (int i = 0; r.from && i < 8; i++) {
        const double start = bench_now();
        tn_parallel_for(PARTS, 1, read_parts, &r);
        best = faster(best, start);
    }
    tn_scope_end(s);
    return 1e-9 * READ / best;
}

/* ---- the workload ------------------------------------------------------------------------------------------------ */

/* Bytes that a token reads: all weights except the token embedding, unless it is tied. */
static double bytes_read(tn_llama *m)
{
    double all = 0;
    for (tn_each e = tn_module_each(m, TN_EACH_PARAMETER | TN_EACH_BUFFER); tn_next(&e);)
        if (e.tensor != m->words->weight || m->out == m->words->weight)
            all += (double)tn_numel(e.tensor) * (double)tn_dtype_size(tn_dtype_of(e.tensor));
    return all;
}

/* Opens the LLaMA of a file; NULL: an error is set. */
static tn_llama *opened(const char *path, bool packed)
{
    tn_model  d = tn_model_open(path, .family = TN_MODEL_DECODER, .no_tokenizer = true, .packed = packed);
    tn_llama *m = NULL;
    if (d.lm && strcmp(tn_lm_info_of(d.lm).type, "gpt2") != 0) m = d.module, d.module = NULL;
    else if (d.lm) tn_raise(TN_EUNSUPPORTED, "'%s' contains a GPT-2; the workload llama needs a LLaMA", path);
    tn_model_close(&d);
    return m;
}

static tn_llama *model(const bench_options *o, bench_sizes *s)
{
    tn_llama *m = o->gguf ? opened(o->gguf, o->q4)
                          : tn_llama_new(.vocab = s->vocab, .dim = s->d_model, .layers = s->layers, .heads = s->heads,
                                         .ff = s->ffn, .positions = 2 * s->seq);
    if (m) s->vocab = m->config.vocab;
    if (m && o->dtype == TN_BF16) tn_module_to(m, TN_BF16);
    if (m && o->q8) tn_quantize(m);
    if (m && o->f16) tn_halve(m);
    if (m) tn_eval(m);
    return m;
}

int bench_llama(const bench_options *o, FILE *json)
{
    bench_sizes    s = bench_sizes_of(o, own);
    const double   seconds = (o->seconds > 0 ? o->seconds : 6) / 2;
    const tn_scope all = tn_no_grad_begin();
    tn_llama      *m = model(o, &s);
    const int64_t  room = s.seq > WRITTEN + 2 ? s.seq : WRITTEN + 2;
    tn_kv_cache   *cache = m ? tn_blocks_cache(m->blocks, 1, room, 0) : NULL;
    tn_tensor     *ids = bench_words(TN_SHAPE(1, s.seq), s.vocab);
    const double   prompt = prompt_seconds(m, cache, ids, seconds), token = token_seconds(m, cache, ids, seconds);
    if (m)
        fprintf(json, "\"tok_s\": %.1f, \"prompt_tok_s\": %.1f, \"mib\": %.1f, \"gb_s\": %.2f, \"read_gb_s\": %.2f, ",
                1 / token, (double)s.seq / prompt, bytes_read(m) / (1 << 20), 1e-9 * bytes_read(m) / token,
                read_rate());
    tn_kv_cache_free(cache);
    tn_free(m);
    tn_scope_end(all);
    return tn_error() != TN_OK;
}

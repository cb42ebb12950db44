/* one_answer.c — trains small models of bench/ for 50 steps, with dropout, and computes embeddings:
 *
 *     one_answer tiny|odd [int8]
 *
 * Prints the instruction set on standard error and, for each of them, a checksum of the bits: of the losses, gradient
 * norms and final weights, or of the embeddings. All CPUs with fused multiply-add print the same lines; one_answer.sh
 * compares them. odd: sizes that are not multiples of any kernel's width, and attention over several blocks of keys;
 * tiny: small models, for a slow emulator, and more embeddings. int8: only the last line, embeddings in int8. */
#include "bench/bench.h"

#include <inttypes.h>
#include <string.h>

enum { STEPS = 50, BATCH = 25 };

static uint64_t hash;
static bool     tiny;

/* An FNV hash, eight bytes at a time, of a contiguous tensor or of a number. */
static void add(const void *from, size_t bytes)
{
    const char *p = from;
    for (uint64_t word = 0; bytes; p += sizeof word, word = 0) {
        const size_t n = bytes < sizeof word ? bytes : sizeof word;
        memcpy(&word, p, n);
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 29;
        bytes -= n;
    }
}
static void add_number(double x) { add(&x, sizeof x); }
static void add_tensor(tn_tensor *t)
{
    t = tn_contiguous(t);
    if (t) add(tn_data(t), (size_t)tn_numel(t) * tn_dtype_size(tn_dtype_of(t)));
}
static void begin(void) { hash = 14695981039346656037u; }

/* ---- training: what bench/ measures ---- */

double     bench_now(void) { return 0; }
tn_tensor *bench_words(tn_shape s, int64_t vocab) { return tn_randint(s, 0, vocab); }
tn_tensor *bench_some(int64_t of, int64_t n)
{
    tn_tensor *t = tn_zeros_of(TN_I64, TN_SHAPE(n));
    for (int64_t i = 0; i < n; i++) tn_set_i64(t, i, i * of / n);
    return t;
}

int bench_train(const bench_options *o, FILE *json, const bench_job *j)
{
    (void)o, (void)json;
    double        last = 0;
    tn_optimizer *opt = tn_adamw_new((tn_module *)j->module, .lr = 1e-3, .clip.norm = 1);
    for (int i = 0; i < STEPS; i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *l = j->loss(j->job);
        tn_backward(l);
        tn_step(opt);
        add_number(last = tn_item(l)), add_number(tn_grad_norm(opt));
        tn_scope_end(s);
    }
    for (tn_each p = tn_module_each(j->module, TN_EACH_PARAMETER); tn_next(&p);) add_tensor(p.tensor);
    tn_optimizer_free(opt);
    printf("%d steps, loss %.6f", STEPS, last);
    return tn_error() != TN_OK;
}

static const struct {
    const char     *name;
    bench_workload *run;
    int64_t         batch, seq; /* of the odd sizes */
} jobs[] = {{"bert", bench_bert, 3, 37},
            {"gpt", bench_gpt, 1, 141},
            {"seq2seq", bench_seq2seq, 3, 29},
            {"lstm", bench_lstm, 5, 13}};

static void train(int k)
{
    bench_options o = {
        .sizes = {.layers = 2, .d_model = 56, .heads = 4, .vocab = 203, .batch = jobs[k].batch, .seq = jobs[k].seq}};
    if (tiny) o.sizes = (bench_sizes){.layers = 1, .d_model = 24, .heads = 2, .vocab = 61, .batch = 2, .seq = 19};
    begin();
    printf("%s: ", jobs[k].name);
    jobs[k].run(&o, NULL);
    printf(", checksum %016" PRIx64 "\n", hash);
}

/* ---- embeddings ---- */

static const struct {
    const char *name;
    int         count;
} weights[] = {{"f32", 1000}, {"8 bits", 1000}, {"f16", 1000}, {"int8", 10000}};
enum { F32, Q8, F16, INT8, WEIGHTS };

/* Means of the hidden states of 1 to 33 random tokens: BATCH sequences of one length at a time, the last ones alone. */
static void embed(int kind)
{
    const tn_scope          all = tn_no_grad_begin();
    const int64_t           dim = tiny ? 32 : 96; /* whole groups of 8 bits */
    const int               count = tiny ? weights[kind].count : weights[kind].count / 5;
    tn_embedding           *words = tn_embedding_new(.count = 61, .dim = dim);
    tn_transformer_encoder *encoder =
        tn_transformer_encoder_new(.layers = 1, .dim = dim, .heads = 2, .ff = 2 * dim, .activation = tn_gelu);
    begin();
    if (encoder) tn_eval(encoder);
    if (kind == F16) tn_halve(encoder);
    if (kind == Q8 || kind == INT8) tn_quantize(encoder, .activations = kind == INT8);
    for (int64_t left = count, n; left && tn_error() == TN_OK; left -= n) {
        const tn_scope one = tn_scope_begin();
        n = left > 2 * BATCH ? BATCH : 1;
        tn_tensor *x = tn_call(words, tn_randint(TN_SHAPE(n, 1 + left / BATCH % 9 * 4), 0, 61));
        add_tensor(tn_mean(tn_call(encoder, x), .dims = TN_DIMS(1)));
        tn_scope_end(one);
    }
    printf("%d embeddings, weights in %s: checksum %016" PRIx64 "\n", count, weights[kind].name, hash);
    tn_free(encoder), tn_free(words);
    tn_scope_end(all);
}

int main(int argc, char **argv)
{
    const bool last = argc == 3 && !strcmp(argv[2], "int8");
    if ((argc != 2 && !last) || (strcmp(argv[1], "tiny") != 0 && strcmp(argv[1], "odd") != 0))
        return fputs("Usage: one_answer tiny|odd [int8]\n", stderr), 2;
    tiny = !strcmp(argv[1], "tiny");
    fprintf(stderr, "%s\n", tn_build_info());
    for (int k = 0; !last && k < (int)(sizeof jobs / sizeof *jobs); k++) {
        tn_seed(1);
        train(k);
    }
    for (int k = last ? INT8 : 0; k < WEIGHTS; k++) {
        tn_seed(1);
        embed(k);
    }
    if (tn_error() == TN_OK) return 0;
    fprintf(stderr, "one_answer: %s\n", tn_error_message());
    return 1;
}

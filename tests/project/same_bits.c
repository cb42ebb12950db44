/* same_bits.c — runs one workload of a version's bench/ for eight steps and prints the bits of what it computed:
 *
 *     same_bits WORKLOAD f32|bf16 THREADS own|odd
 *
 * own: the default sizes of the workload; odd: sizes that are not multiples of any kernel's width. same_bits.sh
 * compiles this file with bench/ of each version and compares the output: for each training step the loss and the
 * gradient norm as hexadecimal floats, and a hash of all module results so far; at the end a hash of the weights. For
 * workloads without training, the hash of all results. */
#include "bench/bench.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int bench_train_of_version(const bench_options *o, FILE *json, const bench_job *j); /* bench_train of that version */
tn_tensor *same_bits_seen(tn_tensor *t);
double     same_bits_loss(double loss);
tn_status  same_bits_step(tn_optimizer *opt);

enum { STEPS = 8 };
static const double first_steps = 3; /* steps that bench_train takes before it reads the clock */

static int      steps, looks;
static double   loss;
static int64_t  tensors;
static uint64_t hash = 14695981039346656037u;

/* An FNV hash, eight bytes at a time. */
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

tn_tensor *same_bits_seen(tn_tensor *t)
{
    if (!t) return NULL;
    tensors++;
    if (tn_is_contiguous(t)) {
        add(tn_data(t), (size_t)tn_numel(t) * tn_dtype_size(tn_dtype_of(t)));
    } else {
        for (int64_t i = 0; i < tn_numel(t); i++) {
            const double x = tn_get(t, i);
            add(&x, sizeof x);
        }
    }
    return t;
}

double same_bits_loss(double of) { return loss = of; }

tn_status same_bits_step(tn_optimizer *opt)
{
    const tn_status status = tn_step(opt);
    printf("step %d: loss %a, norm of the gradients %a, results %016" PRIx64 "\n", ++steps, loss, tn_grad_norm(opt),
           hash);
    return status;
}

/* A clock that counts steps, so that eight steps run; each reading advances it a little, so that other loops end. */
double bench_now(void) { return steps + 1e-6 * ++looks; }

int bench_train(const bench_options *o, FILE *json, const bench_job *j)
{
    bench_options of = *o;
    of.seconds = STEPS - first_steps;
    const int failed = bench_train_of_version(&of, json, j);
    for (tn_each p = tn_module_each(j->module, TN_EACH_PARAMETER); !failed && tn_next(&p);) same_bits_seen(p.tensor);
    return failed;
}

/* Several ranks, which bench_train of later versions supports, are not compared here; project.mpi compares them. */
int bench_train_ranks(const bench_options *o, FILE *json, const bench_job *j);
int bench_train_ranks(const bench_options *o, FILE *json, const bench_job *j)
{
    (void)o, (void)json, (void)j;
    return 1;
}

static const struct {
    const char     *name;
    bench_workload *run;
} workloads[] = {{"bert", bench_bert},       {"bert-small", bench_bert_small},
                 {"seq2seq", bench_seq2seq}, {"gpt", bench_gpt},
                 {"lstm", bench_lstm},       {"encoder-infer", bench_encoder_infer},
                 {"gpt-gen", bench_gpt_gen}, {"overhead", bench_overhead}};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

int main(int argc, char **argv)
{
    if (argc == 1) {
        for (int w = 0; w < WORKLOADS; w++) puts(workloads[w].name);
        return 0;
    }
    if (argc != 5) return fputs("Usage: same_bits [WORKLOAD f32|bf16 THREADS own|odd]\n", stderr), 2;
    int w = 0;
    while (w < WORKLOADS && strcmp(workloads[w].name, argv[1]) != 0) w++;
    FILE *nowhere = fopen("/dev/null", "w");
    if (w == WORKLOADS || !nowhere) return fprintf(stderr, "same_bits: no workload %s\n", argv[1]), 2;

    bench_options o = {.seconds = 1e-9, .dtype = strcmp(argv[2], "bf16") != 0 ? TN_F32 : TN_BF16};
    if (!strcmp(argv[4], "odd"))
        o.sizes = (bench_sizes){.layers = 3, .d_model = 96, .heads = 6, .vocab = 1003, .batch = 5, .seq = 33};
    tn_set_threads(o.threads = atoi(argv[3]));
    tn_seed(1);
    const int failed = workloads[w].run(&o, nowhere);
    fclose(nowhere);
    if (failed || tn_error()) return fprintf(stderr, "%s: %s\n", argv[1], tn_error_message()), 1;
    printf("%d steps, %lld tensors: %016" PRIx64 "\n", steps, (long long)tensors, hash);
    return 0;
}

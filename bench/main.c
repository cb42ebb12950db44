/* main.c — bench WORKLOAD [options]: measures a workload and prints one line of JSON; bench kernels prints a table. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime, getrusage */
#endif
#include "bench/bench.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tenon/tenon.h>
#include <time.h>

static const struct {
    const char     *name, *what;
    bench_workload *run;
} workloads[] = {
    {"bert", "training step of a masked BERT: 4 layers of width 256, vocabulary 30,522", bench_bert},
    {"bert-small", "training step of a masked BERT: 2 layers of width 128, vocabulary 8,000", bench_bert_small},
    {"seq2seq", "training step of a translation Transformer: 3 + 3 layers of width 256", bench_seq2seq},
    {"seq2seq-infer", "translation of 16 texts of 24 tokens by beam search of width 5: seq2seq in eval mode",
     bench_seq2seq_infer},
    {"gpt", "training step of a GPT: 6 layers of width 256, 256 tokens", bench_gpt},
    {"lstm", "training step of an LSTM language model: 2 layers of width 256", bench_lstm},
    {"encoder-infer", "inference of a BERT: 6 layers of width 384, one sequence of 32 tokens", bench_encoder_infer},
    {"callers", "encoder-infer by --threads N threads of a program that share one model, and by one of them",
     bench_callers},
    {"gpt-gen", "generation of 250 tokens with the GPT and its key-value cache", bench_gpt_gen},
    {"llama", "a LLaMA of 12 layers of width 768: a prompt of 512 tokens, then generation; also --dtype q8_0|q4_k|f16",
     bench_llama},
    {"lora", "training step of adapters of rank 8 on a LLaMA of 12 layers of width 768; also --dtype q8_0|int8",
     bench_lora},
    {"padding", "training step of a classifier on lines of real lengths, --text FILE, with and without their padding",
     bench_padding},
    {"overhead", "overhead of an op and its tape: 2,000 ops on a 4x4 tensor, forward and backward", bench_overhead},
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int usage(FILE *to)
{
    fputs(
        "Usage: bench WORKLOAD [--threads N] [--dtype f32|bf16] [--seconds S] [--layers N] [--d-model N] [--heads N]\n"
        "             [--ffn N] [--vocab N] [--batch N] [--seq N] [--memory MIB]\n"
        "       bench padding ... --text FILE\n"
        "       bench llama ... [--dtype q8_0|q4_k|f16] [--gguf FILE]\n"
        "       bench encoder-infer|seq2seq-infer ... [--dtype int8]\n"
        "       bench lora ... [--dtype q8_0|int8]\n"
        "       bench kernels [--json] [--threads N] [--seconds S] [--only PATTERN] [--size MxNxK] [--no-peers]\n"
        "       bench ranks --ranks K --workload bert|gpt|seq2seq|lstm --steps N [--dtype f32|bf16] [--zero]\n"
        "             [--fast] [--sparse] [--no-overlap] [--delay US,MB/S] [sizes]\n\n"
        "Workloads:\n",
        to);
    for (int i = 0; i < WORKLOADS; i++) fprintf(to, "  %-14s %s\n", workloads[i].name, workloads[i].what);
    fputs("\nOptions of bench kernels:\n"
          "  --seconds S      seconds per contender and line (default: 0.3)\n"
          "  --only PATTERN   measure only lines such as \"gemm_f32 512x128x128 NT 2\"; * and ? are wildcards\n"
          "  --size MxNxK     measure matrix products of this size instead of the table; BxMxNxK: a batch\n"
          "  --no-peers       measure only Tenon\n",
          to);
    return to == stdout ? 0 : 2;
}

/* Parses a number from 0 to `most`; returns -1 if text is not one. */
static double number(const char *text, double most)
{
    char  *end;
    double v = strtod(text, &end);
    return end == text || *end || !(v >= 0 && v <= most) ? -1 : v;
}

int bench_option(bench_options *o, char **argv)
{
    static const struct {
        const char *name;
        size_t      at;
    } sizes[] = {{"--layers", offsetof(bench_sizes, layers)}, {"--d-model", offsetof(bench_sizes, d_model)},
                 {"--heads", offsetof(bench_sizes, heads)},   {"--ffn", offsetof(bench_sizes, ffn)},
                 {"--vocab", offsetof(bench_sizes, vocab)},   {"--batch", offsetof(bench_sizes, batch)},
                 {"--seq", offsetof(bench_sizes, seq)}};
    const char *name = argv[0], *text = argv[1];
    if (!strcmp(name, "--json")) return o->json = true, 1;
    if (!strcmp(name, "--no-peers")) return o->no_peers = true, 1;
    if (!text) return 0;
    if (!strcmp(name, "--only")) return o->only = text, 2;
    if (!strcmp(name, "--text")) return o->text = text, 2;
    if (!strcmp(name, "--gguf")) return o->gguf = text, 2;
    if (!strcmp(name, "--size")) return o->size = text, 2;
    if (!strcmp(name, "--steps")) return (o->steps = (int64_t)number(text, 1e9)) > 0 ? 2 : 0;
    if (!strcmp(name, "--threads")) return (o->threads = (int)number(text, 4096)) >= 0 ? 2 : 0;
    if (!strcmp(name, "--memory")) return (o->memory = number(text, 1e9)) > 0 ? 2 : 0;
    if (!strcmp(name, "--seconds")) return (o->seconds = number(text, 86400)) > 0 ? 2 : 0;
    if (!strcmp(name, "--dtype")) {
        o->dtype = strcmp(text, "bf16") != 0 ? TN_F32 : TN_BF16;
        o->q8 = !strcmp(text, "q8_0"), o->f16 = !strcmp(text, "f16"), o->int8 = !strcmp(text, "int8");
        o->q4 = !strcmp(text, "q4_k");
        if (o->q8 || o->f16 || o->int8 || o->q4) return 2;
        return !strcmp(text, tn_dtype_name(o->dtype)) ? 2 : 0;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (strcmp(name, sizes[i].name) != 0) continue;
        int64_t v = (int64_t)number(text, 1 << 24);
        memcpy((char *)&o->sizes + sizes[i].at, &v, sizeof v);
        return v > 0 ? 2 : 0;
    }
    return 0;
}

static int run(int w, const bench_options *o)
{
    fprintf(stderr, "%s\n", tn_build_info());
    char  *members = NULL;
    size_t size;
    FILE  *json = open_memstream(&members, &size);
    if (!json) return perror("bench"), 4;
    tn_profile *profile = tn_profile_from_env();
    int         failed = workloads[w].run(o, json);
    tn_profile_close(profile, stderr);
    fclose(json);
    if (failed) {
        fprintf(stderr, "bench: %s\n", tn_error_message());
    } else {
        struct rusage r;
        getrusage(RUSAGE_SELF, &r);
        printf("{\"workload\": \"%s\", %s\"threads\": %d, \"dtype\": \"%s\", \"version\": \"%s\", \"rss_mib\": %ld}\n",
               workloads[w].name, members, tn_threads(),
               o->q8     ? "q8_0"
               : o->q4   ? "q4_k"
               : o->f16  ? "f16"
               : o->int8 ? "int8"
                         : tn_dtype_name(o->dtype),
               tn_version(), r.ru_maxrss / 1024);
    }
    free(members);
    return failed;
}

/* NULL: the workload, NULL for the kernels, has the dtype and the file of the options. */
static const char *dtype_problem(const bench_options *o, bench_workload *w)
{
    const bool llama = w == bench_llama, lora = w == bench_lora;
    if ((o->q4 || o->f16 || o->gguf || (o->q8 && !lora)) && !llama)
        return "--dtype q4_k, f16 and --gguf are for the workload llama, q8_0 for llama and lora";
    if (o->q4 && !o->gguf) return "--dtype q4_k needs a file: --gguf FILE";
    if (o->int8 && !lora && w != bench_encoder_infer && w != bench_callers && w != bench_seq2seq_infer)
        return "--dtype int8 is for the workloads encoder-infer, callers, seq2seq-infer and lora";
    return NULL;
}

int main(int argc, char **argv)
{
    bench_options o = {.self = argv[0]};
    if (argc < 2) return usage(stderr);
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) return usage(stdout);
    if (!strcmp(argv[1], "ranks")) return bench_ranks(argc, argv);
    int        w = 0;
    const bool kernels = !strcmp(argv[1], "kernels");
    while (!kernels && w < WORKLOADS && strcmp(argv[1], workloads[w].name) != 0) w++;
    if (w == WORKLOADS) return usage(stderr);
    for (int i = 2, took; i < argc; i += took) {
        took = bench_option(&o, argv + i);
        if (took) continue;
        fprintf(stderr, "bench: unknown option or invalid value: %s %s\n", argv[i], i + 1 < argc ? argv[i + 1] : "");
        return usage(stderr);
    }
    const char *problem = dtype_problem(&o, kernels ? NULL : workloads[w].run);
    if (problem) {
        fprintf(stderr, "bench: %s\n", problem);
        return usage(stderr);
    }
    tn_set_threads(o.threads);
    return kernels ? bench_kernels(&o) : run(w, &o);
}

/* main.c — bench WORKLOAD [--threads N] [--seconds S]: measures, and ends with one line of JSON. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* clock_gettime, getrusage */
#endif
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tenon/tenon.h>
#include <time.h>

static const struct {
    const char     *name, *what;
    bench_workload *run;
} workloads[] = {
    {"overhead", "the cost of an op and its tape: 2,000 ops on a 4x4 tensor, forward and backward", bench_overhead},
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
    fputs("Usage: bench WORKLOAD [--threads N] [--seconds S]\n", to);
    for (int i = 0; i < WORKLOADS; i++) fprintf(to, "  %-10s %s\n", workloads[i].name, workloads[i].what);
    return to == stdout ? 0 : 2;
}

/* A number of at least 0 and at most most; -1 if text is not one. */
static double number(const char *text, double most)
{
    char  *end;
    double v = strtod(text, &end);
    return end == text || *end || !(v >= 0 && v <= most) ? -1 : v;
}

int main(int argc, char **argv)
{
    bench_options o = {.seconds = 5};
    if (argc > 1 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) return usage(stdout);
    int w = 0;
    while (w < WORKLOADS && !(argc > 1 && !strcmp(argv[1], workloads[w].name))) w++;
    if (w == WORKLOADS) return usage(stderr);
    for (int i = 2; i < argc; i += 2) {
        double v = -1;
        if (i + 1 < argc && !strcmp(argv[i], "--threads")) v = o.threads = (int)number(argv[i + 1], 4096);
        else if (i + 1 < argc && !strcmp(argv[i], "--seconds")) v = o.seconds = number(argv[i + 1], 86400);
        if (v >= 0) continue;
        fprintf(stderr, "bench: cannot use %s %s\n", argv[i], i + 1 < argc ? argv[i + 1] : "");
        return usage(stderr);
    }

    tn_set_threads(o.threads);
    fprintf(stderr, "%s\n", tn_build_info());
    char  *members = NULL;
    size_t size;
    FILE  *json = open_memstream(&members, &size);
    if (!json) return perror("bench"), 4;
    int failed = workloads[w].run(&o, json);
    fclose(json);
    if (failed) {
        fprintf(stderr, "bench: %s\n", tn_error_message());
    } else {
        struct rusage r;
        getrusage(RUSAGE_SELF, &r);
        printf("{\"workload\": \"%s\", %s\"threads\": %d, \"version\": \"%s\", \"rss_mib\": %ld}\n", workloads[w].name,
               members, tn_threads(), tn_version(), r.ru_maxrss / 1024);
    }
    free(members);
    return failed;
}

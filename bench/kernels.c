/* kernels.c — `bench kernels`: each kernel of the table, measured in Tenon and in the installed peers and compared with
 * the peak of the machine. The contenders run alternately, one window at a time, several times; the best window of each
 * counts, so that the comparison does not depend on interruptions on a shared machine. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* FNM_CASEFOLD */
#endif
#include "bench/kernels.h"

#include "bench/bench.h"
#include "bench/contenders.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

enum { WINDOWS = 5, MOST_LINES = 512, ISAS = 4, PEAKS = 3 * ISAS + 2 };

static const char *const keys[CONTENDERS] = {"tenon", "onednn", "openblas", "openblas_default", "pytorch"};

/* ---- table of kernels -------------------------------------------------------------------------------------------- */

static const char *const products[] = {"64x64x64",      "128x128x64",    "512x128x128",   "2048x256x256",
                                       "4096x256x256",  "4096x1024x256", "256x1024x4096", "1024x768x768",
                                       "2048x768x3072", "2048x3072x768", "512x30522x128", "256x8192x256",
                                       "1x1024x256",    "1x30522x256",   "64x128x128x64", "64x128x64x128"};
static const char *const layouts[] = {"NN", "NT", "TN"};
static const struct {
    const char *kernel, *limit;
} dtypes[] = {{"gemm_f32", "peak_f32"}, {"gemm_bf16", "peak_bf16"}, {"gemm_f64", "peak_f64"}};

/* The number of tensors that must be read or written, each counted once. add_dropout_norm reads two and writes two, the
 * sum and the norm; its backward reads the sum and the gradient and writes two. */
static const struct {
    const char *kernel;
    int         tensors;
} rows[] = {{"layer_norm_fwd", 2}, {"layer_norm_bwd", 3}, {"softmax_fwd", 2},          {"softmax_bwd", 3},
            {"gelu_fwd", 2},       {"gelu_bwd", 3},       {"add_dropout_norm_fwd", 4}, {"add_dropout_norm_bwd", 4}};

typedef struct {
    const bench_options *o;
    kernel_line         *line;
    int                  lines, counts[2], count; /* counts: numbers of threads, 1 and the maximum; count: 1 or 2 */
} table;

static void add(table *t, const char *kernel, const char *size, const char *layout, const char *limit, double work)
{
    char text[128];
    for (int i = 0; i < t->count; i++) {
        kernel_line l = {.layout = layout, .limit = limit, .work = work, .threads = t->counts[i]};
        snprintf(l.kernel, sizeof l.kernel, "%s", kernel);
        snprintf(l.size, sizeof l.size, "%s", size);
        l.unit = !strncmp(limit, "peak_", 5) ? "GFLOP/s" : "GB/s";
        for (int c = 0; c < CONTENDERS; c++) l.extra[c] = -1;
        snprintf(text, sizeof text, "%s %s %s %d", kernel, size, layout, t->counts[i]);
        if (t->o->only && fnmatch(t->o->only, text, 0) != 0) continue;
        if (t->lines < MOST_LINES) t->line[t->lines++] = l;
    }
}

static double product_of(const char *size)
{
    double v = 1;
    for (const char *s = size; s; s = strchr(s, 'x') ? strchr(s, 'x') + 1 : NULL) v *= strtod(s, NULL);
    return v;
}

static void add_products(table *t)
{
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t s = 0; s < (t->o->size ? 1 : sizeof products / sizeof *products); s++)
            for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
                const char *size = t->o->size ? t->o->size : products[s];
                add(t, dtypes[d].kernel, size, layouts[l], dtypes[d].limit, 2 * product_of(size));
            }
}

static void add_others(table *t)
{
    static const char *const sizes[] = {"2048x256", "8192x1024"};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int s = 0; s < 2; s++)
            add(t, rows[r].kernel, sizes[s], "-", "triad", rows[r].tensors * 4 * product_of(sizes[s]));
    for (int s = 0; s < 2; s++) {
        const double steps = s ? 512 : 128, all = 12 * 64 * 64 * steps * steps; /* 4 forward, 8 backward */
        add(t, "attention", s ? "64x512x64" : "64x128x64", "full", "peak_f32", all);
        add(t, "attention", s ? "64x512x64" : "64x128x64", "causal", "peak_f32", all * (steps + 1) / (2 * steps));
    }
    add(t, "cross_entropy", "2048x8000", "-", "triad", 2 * 4 * 2048.0 * 8000);
    add(t, "embedding_fwd", "30522x256x2048", "-", "triad", 2 * 4 * 2048.0 * 256);
    add(t, "embedding_bwd", "30522x256x2048", "-", "triad", 2 * 4 * 2048.0 * 256);
    add(t, "adamw", "10000000", "-", "triad",
        8 * 4 * 1e7); /* clipping reads g; the step reads g, p, m, v and writes p, m, v */
}

/* Small convolutions: operations of the products, zeros of the padding included. */
static void add_convolutions(table *t)
{
    static const struct {
        const char *size, *windows;
        double      positions, terms; /* of the result, in all images and channels; of a sum */
    } jobs[] = {{"8x16x32x16", "k3s1p1", 8 * 16 * 32 * 32, 16 * 9}, {"8x32x32x32", "k3s1p1", 8 * 32 * 32 * 32, 32 * 9},
                {"8x64x28x64", "k3s1p1", 8 * 64 * 28 * 28, 64 * 9}, {"8x3x64x64", "k7s2p3", 8 * 64 * 32 * 32, 3 * 49},
                {"8x3x64x64", "k7s1p3", 8 * 64 * 64 * 64, 3 * 49},  {"8x3x64x64", "k8s8p0", 8 * 64 * 8 * 8, 3 * 64},
                {"8x64x28x64", "k1s1p0", 8 * 64 * 28 * 28, 64}};
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        const double work = 2 * jobs[i].positions * jobs[i].terms;
        add(t, "conv2d_fwd", jobs[i].size, jobs[i].windows, "peak_f32", work);
        add(t, "conv2d_bwd", jobs[i].size, jobs[i].windows, "peak_f32", 2 * work);
    }
}

/* ---- the contenders ---------------------------------------------------------------------------------------------- */

typedef struct {
    contender   c[CONTENDERS], peak;
    const char *core; /* fastest core type of OpenBLAS; NULL: no OpenBLAS */
} ring;

static const char *in_folder(char *to, size_t size, const char *self, const char *name)
{
    const char *slash = strrchr(self, '/');
    snprintf(to, size, "%.*s/peers/%s", slash ? (int)(slash - self) : 1, slash ? self : ".", name);
    return to;
}

/* Starts OpenBLAS with the core type that is fastest on this CPU, and once with its default. A process with a core type
 * that the CPU does not support ends; it is ignored. */
static void start_openblas(ring *r, char *path, int threads)
{
    static const char *const cores[] = {"SKYLAKEX", "COOPERLAKE", "ZEN", "HASWELL"};
    enum { CORES = sizeof cores / sizeof *cores };
    char *const argv[] = {path, NULL};
    contender   trial[CORES];
    char        setting[64], job[64];
    double      best[CORES] = {0}, ns, none;
    int         fastest = -1;
    snprintf(job, sizeof job, "gemm_f32 1024x1024x1024 NN %d 0.05", threads);
    for (int i = 0; i < CORES; i++) {
        snprintf(setting, sizeof setting, "OPENBLAS_CORETYPE=%s", cores[i]);
        contender_start(&trial[i], argv, setting);
        contender_ready(&trial[i]);
    }
    for (int turn = 0; turn < 3; turn++)
        for (int i = 0; i < CORES; i++)
            if (contender_ask(&trial[i], job, &ns, &none) && 1 / ns > best[i]) best[i] = 1 / ns;
    for (int i = 0; i < CORES; i++)
        if (best[i] > 0 && (fastest < 0 || best[i] > best[fastest])) fastest = i;
    for (int i = 0; i < CORES; i++)
        if (i != fastest) contender_stop(&trial[i]);
    if (fastest < 0) return;
    r->c[OPENBLAS] = trial[fastest];
    r->core = cores[fastest];
    contender_start(&r->c[OPENBLAS_DEFAULT], argv, NULL);
    contender_ready(&r->c[OPENBLAS_DEFAULT]);
}

static void start_all(ring *r, const bench_options *o, int threads)
{
    char        path[4096], setting[64];
    char *const program[] = {path, NULL}, *const torch[] = {BENCH_PEERS "/python", "torch", BENCH_PEERS "/pytorch.py",
                                                            NULL};
    in_folder(path, sizeof path, o->self, "peak");
    contender_start(&r->peak, program, NULL);
    in_folder(path, sizeof path, o->self, "tenon");
    contender_start(&r->c[TENON], program, NULL);
    if (!o->no_peers) {
        in_folder(path, sizeof path, o->self, "onednn");
        contender_start(&r->c[ONEDNN], program, NULL);
        in_folder(path, sizeof path, o->self, "openblas");
        start_openblas(r, path, threads);
#ifdef BENCH_OPENBLAS
        setenv("LD_LIBRARY_PATH", BENCH_OPENBLAS, 1);
#endif
        snprintf(setting, sizeof setting, "OPENBLAS_CORETYPE=%s", r->core ? r->core : "");
        contender_start(&r->c[PYTORCH], torch, r->core ? setting : NULL);
    }
    contender_ready(&r->peak);
    for (int i = 0; i < CONTENDERS; i++)
        if (i != OPENBLAS && i != OPENBLAS_DEFAULT) contender_ready(&r->c[i]);
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

typedef struct {
    char   kernel[32], isa[16];
    int    threads;
    double value; /* GFLOP/s or GB/s */
} peak;

static void ask_peak(ring *r, peak *p, double window)
{
    char   job[128];
    double ns, work;
    snprintf(job, sizeof job, "%.31s 1 %.15s %d %g", p->kernel, p->isa, p->threads, window);
    if (contender_ask(&r->peak, job, &ns, &work) && work / ns > p->value) p->value = work / ns;
}

static int measure_peaks(ring *r, const table *t, double window, peak *p)
{
    static const char *const isas[ISAS] = {"amx", "avx512", "avx2", "baseline"};
    static const char *const types[] = {"f32", "f64", "bf16"};
    int                      n = 0;
    for (int i = 0; i < t->count; i++) {
        for (int k = 0; k < 3 * ISAS; k++) {
            p[n] = (peak){.threads = t->counts[i]};
            snprintf(p[n].kernel, sizeof p[n].kernel, "peak_%s", types[k % 3]);
            snprintf(p[n++].isa, sizeof p->isa, "%s", isas[k / 3]);
        }
        p[n++] = (peak){"triad", "-", t->counts[i], 0};
        p[n++] = (peak){"read", "-", t->counts[i], 0};
    }
    for (int turn = 0; turn < WINDOWS; turn++)
        for (int i = 0; i < n; i++) ask_peak(r, &p[i], window);
    return n;
}

static double peak_for(const peak *p, int n, const char *kernel, int threads) /* the maximum over instruction sets */
{
    double most = 0;
    for (int i = 0; i < n; i++)
        if (!strcmp(p[i].kernel, kernel) && p[i].threads == threads && p[i].value > most) most = p[i].value;
    /* without bf16 instructions, bf16 products are computed in f32 */
    return most == 0 && !strcmp(kernel, "peak_bf16") ? peak_for(p, n, "peak_f32", threads) : most;
}

/* Measures one line. A contender that is 20 times slower than the best is not measured again. The triad runs between
 * the windows: the memory bandwidth of a shared machine varies (by a factor of 2 within a run), so kernels are compared
 * with a triad of the same minute. */
static void measure(ring *r, kernel_line *l, double window, const peak *p, int n)
{
    char   job[256];
    bool   out[CONTENDERS] = {false};
    double best = 0;
    peak   triad = {"triad", "-", l->threads, 0};
    snprintf(job, sizeof job, "%.31s %.47s %s %d %g", l->kernel, l->size, l->layout, l->threads, window);
    for (int turn = 0; turn < WINDOWS; turn++) {
        for (int i = 0; i < CONTENDERS; i++) {
            double ns, extra;
            if (out[i]) continue;
            if (!contender_ask(&r->c[i], job, &ns, &extra)) {
                out[i] = true;
                continue;
            }
            if (l->work / ns > l->value[i]) l->value[i] = l->work / ns;
            l->extra[i] = extra;
            if (l->value[i] > best) best = l->value[i];
            out[i] = l->value[i] < best / 20;
        }
        if (!strcmp(l->limit, "triad")) ask_peak(r, &triad, window);
    }
    l->peak = triad.value > 0 ? triad.value : peak_for(p, n, l->limit, l->threads);
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

double kernel_best_peer(const kernel_line *l, const char *which)
{
    double most = 0;
    for (int i = ONEDNN; i < CONTENDERS; i++)
        if ((i != PYTORCH || !which) && l->value[i] > most) most = l->value[i];
    return most;
}

static void print_cpu(FILE *to)
{
    char  line[512] = "";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f) && strncmp(line, "model name", 10) != 0) line[0] = 0;
    if (f) fclose(f);
    const char *name = strchr(line, ':');
    fprintf(to, "CPU:      %.*s\n", name ? (int)strcspn(name + 2, "\n") : 7, name ? name + 2 : "unknown");
}

static void print_head(FILE *to, const ring *r, const table *t, const peak *p, int n)
{
    print_cpu(to);
    fprintf(to, "Tenon:    %s\n", r->c[TENON].name);
    if (r->c[ONEDNN].pid) fprintf(to, "oneDNN:   %s\n", r->c[ONEDNN].name);
    if (r->core) fprintf(to, "OpenBLAS: %s; best with OPENBLAS_CORETYPE=%s\n", r->c[OPENBLAS_DEFAULT].name, r->core);
    if (r->c[PYTORCH].pid) fprintf(to, "PyTorch:  %s\n", r->c[PYTORCH].name);
    fprintf(to, "Threads:  1");
    if (t->count > 1) fprintf(to, " and %d", t->counts[1]);
    fprintf(to, "\nPeaks, measured:\n");
    for (int i = 0; i < n; i++)
        if (p[i].value > 0)
            fprintf(to, "  %-9s %-8s %2d threads %8.1f %s\n", p[i].kernel, p[i].isa, p[i].threads, p[i].value,
                    p[i].kernel[0] == 'p' ? "GFLOP/s" : "GB/s");
    fputc('\n', to);
}

static void print_json(FILE *to, const kernel_line *l)
{
    fprintf(to,
            "{\"kernel\": \"%s\", \"size\": \"%s\", \"layout\": \"%s\", \"threads\": %d, \"value\": %.2f, "
            "\"unit\": \"%s\", \"peak\": %.2f",
            l->kernel, l->size, l->layout, l->threads, l->value[TENON], l->unit, l->peak);
    for (int i = ONEDNN; i < CONTENDERS; i++)
        if (l->value[i] > 0) fprintf(to, ", \"%s\": %.2f", keys[i], l->value[i]);
    if (l->extra[TENON] >= 0) fprintf(to, ", \"extra_mib\": %.2f", l->extra[TENON]);
    if (l->extra[PYTORCH] >= 0) fprintf(to, ", \"pytorch_extra_mib\": %.2f", l->extra[PYTORCH]);
    fprintf(to, "}\n");
    fflush(to);
}

static void print_title(FILE *to)
{
    fprintf(to, "%-21s %-15s %-6s %2s %8s %-7s %8s %5s", "kernel", "size", "layout", "t", "Tenon", "unit", "peak",
            "/peak");
    fprintf(to, " %8s %8s %8s %8s %6s\n", "oneDNN", "OpenBLAS", "default", "PyTorch", "/best");
}

static void print_line(FILE *to, const kernel_line *l)
{
    fprintf(to, "%-21s %-15s %-6s %2d %8.1f %-7s %8.1f %5.2f", l->kernel, l->size, l->layout, l->threads,
            l->value[TENON], l->unit, l->peak, l->peak > 0 ? l->value[TENON] / l->peak : 0);
    for (int i = ONEDNN; i < CONTENDERS; i++)
        if (l->value[i] > 0) fprintf(to, " %8.1f", l->value[i]);
        else fprintf(to, " %8s", "-");
    const double best = kernel_best_peer(l, NULL);
    if (best > 0) fprintf(to, " %6.2f", l->value[TENON] / best);
    else fprintf(to, " %6s", "-");
    fputc('\n', to);
    fflush(to);
}

int bench_kernels(const bench_options *o)
{
    static kernel_line lines[MOST_LINES];
    table              t = {.o = o, .line = lines, .counts = {1, o->threads ? o->threads : tn_threads()}};
    t.count = t.counts[1] > 1 ? 2 : 1;
    add_products(&t);
    if (!o->size) add_others(&t), add_convolutions(&t);
    if (!t.lines) {
        fprintf(stderr, "bench kernels: nothing matches --only %s\n", o->only);
        return 2;
    }

    const double window = (o->seconds > 0 ? o->seconds : 0.3) / WINDOWS;
    FILE        *words = o->json ? stderr : stdout;
    ring         r = {0};
    peak         peaks[2 * PEAKS];
    start_all(&r, o, t.counts[t.count - 1]);
    if (!r.c[TENON].pid || !r.peak.pid) {
        fprintf(stderr, "bench kernels: the programs in peers/ next to %s are missing; build the target bench_all\n",
                o->self);
        return 1;
    }
    const int n = measure_peaks(&r, &t, window, peaks);
    print_head(words, &r, &t, peaks, n);
    if (!o->json) print_title(stdout);
    for (int i = 0; i < t.lines; i++) {
        measure(&r, &lines[i], window, peaks, n);
        if (o->json) print_json(stdout, &lines[i]);
        else print_line(stdout, &lines[i]);
    }
    int failed = 0;
    for (int i = 0; i < t.lines; i++) failed += lines[i].value[TENON] <= 0;
    for (int i = 0; i < CONTENDERS; i++) contender_stop(&r.c[i]);
    contender_stop(&r.peak);
    if (failed) fprintf(stderr, "bench kernels: Tenon failed in %d of %d lines\n", failed, t.lines);
    fputc('\n', words);
    kernels_verdict(words, lines, t.lines);
    return failed ? 1 : 0;
}

/* verdict.c — the last lines of `bench kernels`: required ratios, each with its measured value and whether it is met. A
 * ratio without measured lines is printed as "not measured" and does not count. */
#include "bench/kernels.h"

#include <math.h>
#include <string.h>

typedef struct {
    FILE *to;
    int   failed, open;
} verdict;

/* Accumulates a geometric mean. */
typedef struct {
    double logs;
    int    n;
} mean;
static void   take(mean *m, double ratio) { m->logs += log(ratio), m->n++; }
static double value(const mean *m) { return m->n ? exp(m->logs / m->n) : NAN; }

static void say(verdict *v, const char *what, double found, const char *than, double asked, const char *where)
{
    const bool known = !isnan(found), met = known && (than[0] == '<' ? found <= asked : found >= asked);
    fprintf(v->to, "%-6s %-62s ", !known ? "-" : met ? "met" : "MISSED", what);
    if (known) fprintf(v->to, "%7.3f, required: %s %g%s%s\n", found, than, asked, where[0] ? "; " : "", where);
    else fprintf(v->to, "not measured\n");
    v->open += !known, v->failed += known && !met;
}

static bool same_case(const kernel_line *a, const kernel_line *b) /* except the dtype */
{
    return !strcmp(a->size, b->size) && !strcmp(a->layout, b->layout) && a->threads == b->threads;
}

static const kernel_line *twin(const kernel_line *line, int lines, const kernel_line *of, const char *kernel)
{
    for (int i = 0; i < lines; i++)
        if (!strcmp(line[i].kernel, kernel) && same_case(&line[i], of)) return &line[i];
    return NULL;
}

/* The geometric mean of a ratio over all lines of a kernel, and the lowest mean of a size over layouts and threads. */
typedef double ratio(const kernel_line *line, int lines, const kernel_line *l);

static void over_sizes(const kernel_line *line, int lines, const char *kernel, ratio *of, mean *all, double *worst,
                       const char **where)
{
    *all = (mean){0, 0}, *worst = NAN, *where = "";
    for (int i = 0; i < lines; i++) {
        bool first = !strcmp(line[i].kernel, kernel);
        for (int k = 0; k < i && first; k++)
            first = strcmp(line[k].kernel, kernel) != 0 || strcmp(line[k].size, line[i].size) != 0;
        if (!first) continue;
        mean one = {0, 0};
        for (int k = i; k < lines; k++) {
            if (strcmp(line[k].kernel, kernel) != 0 || strcmp(line[k].size, line[i].size) != 0) continue;
            const double q = of(line, lines, &line[k]);
            if (q > 0) take(&one, q), take(all, q);
        }
        if (one.n && !(value(&one) >= *worst)) *worst = value(&one), *where = line[i].size;
    }
}

static double to_products(const kernel_line *line, int lines, const kernel_line *l)
{
    (void)line, (void)lines;
    const double best = kernel_best_peer(l, "gemm");
    return best > 0 ? l->value[TENON] / best : 0;
}

/* bf16 to f32, for products with at least the multiplications of 512x128x128; 0: not measured. */
static double to_f32(const kernel_line *line, int lines, const kernel_line *l)
{
    const kernel_line *f = l->work >= 2.0 * 512 * 128 * 128 ? twin(line, lines, l, "gemm_f32") : NULL;
    return f && f->value[TENON] > 0 ? l->value[TENON] / f->value[TENON] : 0;
}

static void least(double *worst, const char **where, double v, const kernel_line *l, char *text, size_t size)
{
    if (*worst <= v) return;
    *worst = v;
    snprintf(text, size, "%s %s %s, %d threads", l->kernel, l->size, l->layout, l->threads);
    *where = text;
}

int kernels_verdict(FILE *to, const kernel_line *line, int lines)
{
    verdict     v = {.to = to};
    mean        all;
    double      worst, triad = NAN, torch = NAN, attention = NAN, memory = NAN, adamw = NAN;
    const char *where, *at[5] = {"", "", "", "", ""};
    char        text[5][160];

    over_sizes(line, lines, "gemm_f32", to_products, &all, &worst, &where);
    say(&v, "f32 products / best of oneDNN and OpenBLAS, mean", value(&all), ">=", 0.95, "");
    say(&v, "  ... worst size", worst, ">=", 0.8, where);
    over_sizes(line, lines, "gemm_bf16", to_f32, &all, &worst, &where);
    say(&v, "bf16 products / f32, from 512x128x128 up, mean", value(&all), ">=", 1.6, "");
    say(&v, "  ... worst size", worst, ">=", 1.6, where);

    for (int i = 0; i < lines; i++) {
        const kernel_line *l = &line[i];
        const bool         row =
            strstr(l->kernel, "_norm_") || !strncmp(l->kernel, "softmax_", 8) || !strncmp(l->kernel, "gelu_", 5);
        const double ours = l->value[TENON], theirs = l->value[PYTORCH];
        if (row && !strcmp(l->size, "8192x1024")) least(&triad, &at[0], ours / l->peak, l, text[0], sizeof text[0]);
        if (row && theirs > 0) least(&torch, &at[1], ours / theirs, l, text[1], sizeof text[1]);
        if (!strcmp(l->kernel, "attention") && theirs > 0) {
            least(&attention, &at[2], ours / theirs, l, text[2], sizeof text[2]);
            if (!strcmp(l->size, "64x512x64") && l->extra[PYTORCH] > 0 && l->extra[TENON] >= 0) {
                double part = -(l->extra[TENON] / l->extra[PYTORCH]); /* negative: the largest ratio is the worst */
                least(&memory, &at[3], part, l, text[3], sizeof text[3]);
            }
        }
        if (!strcmp(l->kernel, "adamw")) least(&adamw, &at[4], ours / l->peak, l, text[4], sizeof text[4]);
    }
    say(&v, "rows of 8192x1024 / triad, worst", triad, ">=", 0.6, at[0]);
    say(&v, "rows / PyTorch, worst", torch, ">=", 1, at[1]);
    say(&v, "attention forward and backward / PyTorch, worst", attention, ">=", 2, at[2]);
    say(&v, "  ... extra memory at T = 512 / PyTorch, worst", -memory, "<=", 0.1, at[3]);
    say(&v, "AdamW with clipping, 10 million parameters / triad, worst", adamw, ">=", 0.7, at[4]);
    return v.failed;
}

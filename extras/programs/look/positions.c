/* positions.c — look positions: pictures of the vectors of positions, sinusoidal or learned by a model. */
#include "look.h"

#include <stdlib.h>
#include <string.h>

static const char *dir, *html;
static int64_t     dim = 64, length = 50;

/* The table of learned positions of the model, [positions, dim]. NULL: raised. */
static tn_tensor *learned(const model *m)
{
    for (tn_each e = tn_parameters(m->net); tn_next(&e);)
        if (tn_ndim(e.tensor) == 2 &&
            (strstr(e.name, "position_embeddings") || strstr(e.name, "wpe") || strstr(e.name, "embed_positions")))
            return e.tensor;
    tn_raise(TN_EUNSUPPORTED, "'%s' has no table of positions; its positions are sinusoidal, rotary or relative", dir);
    return NULL;
}

/* Numbers as shades: 0 is white, the largest 1. */
static void draw(const char *title, tn_tensor *x)
{
    const int64_t n = tn_size(x, 0), d = tn_size(x, 1);
    const char  **names = tn_mem_get((size_t)(n + d) * sizeof *names);
    char(*text)[24] = tn_mem_get((size_t)(n + d) * sizeof *text);
    for (int64_t i = 0; names && text && i < n + d; i++) {
        const int64_t at = i < n ? i : i - n;
        *text[i] = 0;
        if (at % 10 == 0) snprintf(text[i], sizeof text[i], "%lld", (long long)at);
        names[i] = text[i];
    }
    if (names && text) {
        tn_report *r = report_new("positions", dir);
        tn_tensor *low = tn_amin(x, .dims = TN_DIMS(0, 1)), *high = tn_amax(x, .dims = TN_DIMS(0, 1));
        tn_report_heatmap(r, title, n, names, d, names + n,
                          tn_div(tn_sub(x, low), tn_add_scalar(tn_sub(high, low), 1e-12)));
        if (write_report(r, html)) printf("%s\n", html);
    }
    if (text) tn_mem_put(text, (size_t)(n + d) * sizeof *text);
    if (names) tn_mem_put(names, (size_t)(n + d) * sizeof *names);
}

/* Prints the cosines between position 0 and the others. */
static void print_cosines(tn_tensor *x)
{
    tn_tensor *c = tn_cosine_similarity(x, tn_narrow(x, 0, 0, 1), 1, 1e-12);
    printf("distance  cosine\n");
    for (int64_t i = 0; c && i < tn_size(x, 0); i = i ? 2 * i : 1) printf("%8lld  %6.3f\n", (long long)i, tn_get(c, i));
}

static int run(int count, char **operands)
{
    model          m = {.net = NULL};
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *x = NULL;
    (void)count, (void)operands;
    if (dir && program_stray("dim", "positions without a model")) return EXIT_USAGE;
    if (reject_png(html)) return EXIT_USAGE;
    if (!dir) {
        tn_positions *p = tn_sinusoidal_positions_new(.dim = dim, .length = length);
        x = tn_select(tn_positions_forward(p, tn_zeros(TN_SHAPE(1, length, dim)), 0), 0, 0);
        tn_module_free(p);
    } else if (model_open(dir, &m)) x = learned(&m);
    if (x && length < tn_size(x, 0)) x = tn_narrow(x, 0, 0, length);
    if (x) print_cosines(x);
    if (x && html) draw(dir ? "Learned positions" : "Sinusoidal positions: sin and cos by turns", x);
    if (dir) model_close(&m);
    tn_scope_end(s);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of a model with learned positions; without it, sinusoidal ones"),
    OPTION_INT("dim", 'd', "N", &dim, "width of the vectors; even", .least = 2, .most = 512),
    OPTION_INT("length", 0, "N", &length, "number of positions", .least = 2, .most = 200),
    OPTION_TEXT("html", 'o', "FILE", &html, "draw them: HTML page, or .svg file"),
    {0},
};
const command positions_command = {
    .name = "positions",
    .summary = "draw the vectors of positions",
    .options = options,
    .run = run,
    .text =
        "Prints the cosine between the vector of position 0 and that of position 1, 2, 4, ..., and draws all vectors "
        "as shades: a row for each position.\n\n"
        "    look positions --html sinusoidal.html\n"
        "    look positions --model book --html learned.html\n",
};

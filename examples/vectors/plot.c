/* plot.c — vectors plot and project: plots words in two dimensions, and writes files for TensorBoard's projector. */
#include "../common/files.h"
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

static const char *out, *way = "pca";
static int64_t     most = 200, seed = 1;
static double      perplexity = 30;
static bool        force;

const option plot_options[] = {
    VECTORS,
    OPTION_TEXT("out", 'o', "FILE", &out, "file for the plot, .svg or .html", .required = true),
    OPTION_TEXT("way", 0, "METHOD", &way, "projection to two dimensions", .choices = "pca|tsne"),
    OPTION_INT("top", 'k', "N", &most, "plot the N most frequent words if no WORD is given", .least = 2, .most = 5000),
    OPTION_REAL("perplexity", 0, "P", &perplexity, "tsne: effective number of neighbours", .least = 1, .most = 1000),
    OPTION_SEED('s', &seed, " of tsne", .least = 0),
    OPTION_FLAG("force", 0, &force, "overwrite an existing file"),
    {0}};
const option project_options[] = {
    VECTORS,
    OPTION_TEXT("out", 'o', "DIR", &out, "folder for vectors.tsv, metadata.tsv and projector_config.pbtxt",
                .required = true),
    OPTION_INT("top", 'k', "N", &most, "write the N most frequent words", .least = 1, .most = 1e8),
    {0}};

static bool add(tn_string *s, const char *text) { return tn_string_add(s, tn_text_of(text)) == TN_OK; }

static void add_escaped(tn_string *s, tn_text word)
{
    for (size_t i = 0; i < word.bytes; i++) {
        const char c = word.at[i];
        if (c == '<' || c == '>' || c == '&') add(s, c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;");
        else tn_string_add(s, (tn_text){(unsigned char)c < ' ' ? " " : word.at + i, 1});
    }
}

/* ---- plot -------------------------------------------------------------------------------------------------------- */

enum { SIDE = 1000, EDGE = 60 };

typedef struct {
    int64_t *word, n;
    float   *at; /* coordinates, [n, 2]; fit() scales them to the plot's size */
} points;

static void fit(points *p)
{
    for (int axis = 0; axis < 2; axis++) {
        float low = p->at[axis], high = low;
        for (int64_t i = 0; i < p->n; i++) {
            const float x = p->at[2 * i + axis];
            low = x < low ? x : low, high = x > high ? x : high;
        }
        for (int64_t i = 0; i < p->n; i++)
            p->at[2 * i + axis] =
                high > low ? EDGE + (p->at[2 * i + axis] - low) / (high - low) * (SIDE - 2 * EDGE) : SIDE / 2.0F;
    }
}

static void draw(tn_string *s, const tn_vectors *v, const points *p, bool html)
{
    char text[200];
    if (html) add(s, "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Words</title>\n");
    snprintf(text, sizeof text,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
             "font-family=\"sans-serif\" font-size=\"11\">\n",
             SIDE, SIDE);
    add(s, text);
    add(s, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    for (int64_t i = 0; i < p->n; i++) {
        const double x = (double)p->at[2 * i], y = SIDE - (double)p->at[2 * i + 1];
        snprintf(text, sizeof text,
                 "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill=\"#36c\"/><text x=\"%.1f\" y=\"%.1f\">", x, y, x + 4,
                 y + 4);
        add(s, text);
        add_escaped(s, tn_vectors_word(v, p->word[i]));
        add(s, "</text>\n");
    }
    add(s, html ? "</svg>\n</html>\n" : "</svg>\n");
}

/* Chooses the named words, or the most frequent ones if count is 0. */
static bool choose_words(const tn_vectors *v, int count, char **names, points *p)
{
    const int64_t size = tn_vectors_size(v);
    p->n = count ? count : most < size ? most : size;
    p->word = malloc((size_t)p->n * sizeof *p->word);
    for (int64_t i = 0; p->word && i < p->n; i++) p->word[i] = count ? find_word(v, names[i]) : i;
    return p->word && tn_error() == TN_OK;
}

static tn_tensor *rows_of(const tn_vectors *v, const points *p)
{
    const int64_t dim = tn_vectors_dim(v);
    tn_tensor    *rows = tn_empty((tn_shape){.n = 2, .d = {p->n, dim}});
    float        *to = rows ? tn_data_mut(rows) : NULL;
    for (int64_t i = 0; to && i < p->n; i++) tn_vectors_of(v, tn_vectors_word(v, p->word[i]), to + i * dim);
    return rows;
}

int run_plot(int count, char **operands)
{
    const char *dot = strrchr(out, '.');
    if (!dot || (strcmp(dot, ".svg") != 0 && strcmp(dot, ".html") != 0))
        return program_usage("--out needs a name that ends in .svg or .html, got '%s'", out);
    static const char *const of_tsne[] = {"perplexity", "seed", NULL};
    int                      code = strcmp(way, "tsne") ? program_strays(of_tsne, "--way tsne") : 0;
    if (!code && count) code = program_stray("top", "plots without WORD operands");
    if (code) return code;
    if (file_exists(out) && !force) {
        tn_raise(TN_EINVAL, "'%s' already exists; name another file or use --force", out);
        return program_end();
    }
    tn_vectors *v = load_vectors();
    points      p = {0};
    tn_string   s = {0};
    if (v && choose_words(v, count, operands, &p)) {
        tn_tensor   *rows = rows_of(v, &p);
        const double few = (double)(p.n - 1) / 3, wide = perplexity < few ? perplexity : few > 1 ? few : 1;
        tn_tensor   *at = strcmp(way, "tsne") ? tn_plane_pca(rows) : tn_plane_tsne(rows, wide, (uint64_t)seed);
        if (at && (p.at = tn_data_mut(at))) {
            fit(&p);
            draw(&s, v, &p, !strcmp(dot, ".html"));
            if (tn_error() == TN_OK) (void)!tn_file_write(out, s.at, s.bytes);
        }
    }
    tn_string_free(&s);
    free(p.word);
    tn_vectors_free(v);
    return program_end();
}

/* ---- TensorBoard ------------------------------------------------------------------------------------------------- */

int run_project(int count, char **operands)
{
    (void)count, (void)operands;
    char          path[1024], number[32];
    tn_vectors   *v = load_vectors();
    tn_string     rows = {0}, words = {0};
    const int64_t dim = tn_vectors_dim(v), n = most < tn_vectors_size(v) ? most : tn_vectors_size(v);
    tn_tensor    *t = v ? tn_vectors_tensor(v) : NULL;
    const float  *x = t ? tn_data(t) : NULL;
    for (int64_t i = 0; x && i < n && tn_error() == TN_OK; i++) {
        for (int64_t k = 0; k < dim; k++) {
            tn_format_float(x[i * dim + k], number);
            add(&rows, number), add(&rows, k + 1 < dim ? "\t" : "\n");
        }
        tn_string_add(&words, tn_vectors_word(v, i)), add(&words, "\n");
    }
    static const char config[] = "embeddings {\n  tensor_path: \"vectors.tsv\"\n  metadata_path: \"metadata.tsv\"\n}\n";
    if (x && tn_error() == TN_OK && make_folder(out) &&
        tn_file_write(in_folder(out, "vectors.tsv", path), rows.at, rows.bytes) == TN_OK &&
        tn_file_write(in_folder(out, "metadata.tsv", path), words.at, words.bytes) == TN_OK)
        (void)!tn_file_write(in_folder(out, "projector_config.pbtxt", path), config, sizeof config - 1);
    tn_string_free(&rows), tn_string_free(&words);
    tn_vectors_free(v);
    return program_end();
}

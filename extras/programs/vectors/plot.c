/* plot.c — vectors plot and project: plots words in two dimensions, and writes files for TensorBoard's projector. */
#include "programs/common/files.h"
#include "programs/common/page.h"
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

static const char *out, *way = "tsne";
static int64_t     most = 200, seed = 1;
static double      perplexity = 30;
static bool        force;

const option plot_options[] = {
    VECTORS,
    OPTION_TEXT("out", 'o', "FILE", &out, "file for the plot, .svg or .html", .required = true),
    OPTION_TEXT("way", 0, "METHOD", &way, "projection to two dimensions", .choices = "pca|tsne"),
    OPTION_INT("top", 'k', "N", &most, "plot the N most frequent words if no WORD is given", .least = 2, .most = 5000),
    OPTION_REAL("perplexity", 0, "P", &perplexity, "tsne: effective number of neighbours", .least = 1, .most = 1000),
    OPTION_SEED(0, &seed, " of tsne", .least = 0),
    OPTION_FLAG("force", 0, &force, "overwrite an existing file"),
    {0}};
const option project_options[] = {
    VECTORS,
    OPTION_TEXT("out", 'o', "DIR", &out, "folder for vectors.tsv, metadata.tsv and projector_config.pbtxt",
                .required = true),
    OPTION_INT("top", 'k', "N", &most, "write the N most frequent words", .least = 1, .most = 1e8),
    {0}};

static bool add(tn_string *s, const char *text) { return tn_string_add(s, tn_text_of(text)) == TN_OK; }

/* ---- plot -------------------------------------------------------------------------------------------------------- */

enum { NEAR = 10, BLOCK = 256 }; /* neighbours of a word; words that are compared with all others at a time */

typedef struct {
    int64_t     *word, n;
    const char **name; /* in `text` */
    char        *text;
    double      *at; /* [n, 2] */
    int64_t     *near;
    double      *similarity; /* [n, NEAR] */
} points;

/* Puts word j, with this similarity, in its place among the nearest ones. */
static void add_near(int64_t *near, double *similarity, int64_t j, double v)
{
    int64_t k = NEAR;
    while (k > 0 && (near[k - 1] < 0 || similarity[k - 1] < v)) k--;
    if (k == NEAR) return;
    memmove(near + k + 1, near + k, (size_t)(NEAR - 1 - k) * sizeof *near);
    memmove(similarity + k + 1, similarity + k, (size_t)(NEAR - 1 - k) * sizeof *similarity);
    near[k] = j, similarity[k] = v;
}

/* The nearest of the plotted words, by the cosines of their vectors. */
static void find_near(points *p, tn_tensor *rows)
{
    tn_tensor *length = tn_sqrt(tn_sum(tn_mul(rows, rows), .dims = TN_DIMS(1), .keepdim = true));
    tn_tensor *unit = tn_div(rows, tn_add_scalar(length, 1e-12)), *other = tn_transpose(unit, 0, 1);
    for (int64_t i = 0; i < p->n * NEAR; i++) p->near[i] = -1, p->similarity[i] = 0;
    for (int64_t from = 0; from < p->n && tn_error() == TN_OK; from += BLOCK) {
        const int64_t  n = p->n - from < BLOCK ? p->n - from : BLOCK;
        const tn_scope s = tn_scope_begin();
        tn_tensor     *cosine = tn_matmul(tn_narrow(unit, 0, from, n), other);
        const float   *c = cosine ? tn_data(cosine) : NULL;
        for (int64_t i = 0; c && i < n; i++)
            for (int64_t j = 0; j < p->n; j++)
                if (j != from + i)
                    add_near(p->near + (from + i) * NEAR, p->similarity + (from + i) * NEAR, j,
                             (double)c[i * p->n + j]);
        tn_scope_end(s);
    }
}

static bool save_plot(const points *p, const tn_vectors *v, bool html)
{
    char          words[32], dim[32], title[400];
    tn_report    *r = tn_report_new(run_title(&(run_page){.folder = vectors_file, .title = "words"}, title));
    tn_report_map m = {
        .n = p->n, .near = NEAR, .words = p->name, .at = p->at, .neighbours = p->near, .similarity = p->similarity};
    snprintf(words, sizeof words, "%lld of %lld", (long long)p->n, (long long)tn_vectors_size(v));
    snprintf(dim, sizeof dim, "%lld", (long long)tn_vectors_dim(v));
    snprintf(title, sizeof title, "%lld words, %s", (long long)p->n,
             strcmp(way, "pca") ? "t-SNE" : "principal components");
    tn_report_summary(r, NULL, NULL, 4, (const char *const[]){"vectors", "words", "width", "projection"},
                      (const char *const[]){vectors_file, words, dim, strcmp(way, "pca") ? "t-SNE" : "PCA"});
    tn_report_words(r, title, &m);
    const bool fine = tn_error() == TN_OK && (html ? tn_report_save(r, out) : tn_report_save_figure(r, out)) == TN_OK;
    tn_report_free(r);
    return fine;
}

static void points_free(points *p)
{
    free(p->word), free(p->name), free(p->text), free(p->at), free(p->near), free(p->similarity);
}

/* Chooses the named words, or the most frequent ones if count is 0. */
static bool choose_words(const tn_vectors *v, int count, char **names, points *p)
{
    const int64_t size = tn_vectors_size(v);
    size_t        bytes = 0;
    p->n = count ? count : most < size ? most : size;
    const size_t n = (size_t)p->n;
    p->word = malloc(n * sizeof *p->word), p->name = malloc(n * sizeof *p->name);
    p->at = malloc(2 * n * sizeof *p->at), p->near = malloc(NEAR * n * sizeof *p->near);
    p->similarity = malloc(NEAR * n * sizeof *p->similarity);
    if (!p->word || !p->name || !p->at || !p->near || !p->similarity)
        return tn_raise_false(TN_ENOMEM, "no memory for %lld words", (long long)p->n);
    for (int64_t i = 0; i < p->n; i++) {
        p->word[i] = count ? find_word(v, names[i]) : i;
        if (tn_error() != TN_OK) return false;
        bytes += tn_vectors_word(v, p->word[i]).bytes + 1;
    }
    char *to = p->text = malloc(bytes + 1);
    for (int64_t i = 0; to && i < p->n; i++) {
        const tn_text word = tn_vectors_word(v, p->word[i]);
        memcpy(to, word.at, word.bytes), to[word.bytes] = 0;
        p->name[i] = to, to += word.bytes + 1;
    }
    return to || tn_raise_false(TN_ENOMEM, "no memory for %lld words", (long long)p->n);
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
    tn_vectors    *v = may_create(out, force) ? load_vectors() : NULL;
    points         p = {0};
    const tn_scope scope = tn_no_grad_begin();
    if (v && choose_words(v, count, operands, &p)) {
        tn_tensor   *rows = rows_of(v, &p);
        const double few = (double)(p.n - 1) / 3, wide = perplexity < few ? perplexity : few > 1 ? few : 1;
        tn_tensor   *at = strcmp(way, "tsne") ? tn_plane_pca(rows) : tn_plane_tsne(rows, wide, (uint64_t)seed);
        for (int64_t i = 0; at && i < 2 * p.n; i++) p.at[i] = tn_get(at, i);
        if (at) find_near(&p, rows), (void)!save_plot(&p, v, !strcmp(dot, ".html"));
    }
    tn_scope_end(scope);
    points_free(&p);
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

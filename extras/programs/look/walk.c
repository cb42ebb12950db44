/* walk.c — look walk: the attention of one head, step by step, as tables: queries, keys, values, scores, the mask, and
 * the sums of values. The head is that of a model; or words have given vectors, with or without matrices. */
#include "look.h"

#include <math.h>
#include <string.h>

static const char *dir, *vectors, *matrices, *html;
static int64_t     layer = 1, head = 1, digits = 2;
static bool        causal;

/* What the steps need: queries and keys [n, d], values [n, dv], and from a model the weights that it computed. */
typedef struct {
    token_list words;
    tn_tensor *x, *q, *k, *v, *weights;
    double     scale; /* the scores are multiplied by it */
} steps;

/* ---- tables ------------------------------------------------------------------------------------------------------ */

static int characters(const char *word)
{
    int n = 0;
    for (; *word; word++) n += ((unsigned char)*word & 0xc0) != 0x80;
    return n;
}

/* Prints a table with a row for each word, and a column for each word or, without `across`, for each number. */
static void print_table(const char *title, const token_list *w, const tn_tensor *t, bool across)
{
    enum { NUMBERS = 8 }; /* columns of a long vector that are shown */
    const int     least = (int)digits + 4;
    const int64_t all = tn_size(t, 1), n = across || all <= NUMBERS ? all : NUMBERS;
    int           left = 0;
    for (int64_t i = 0; i < w->n; i++) left = characters(w->name[i]) > left ? characters(w->name[i]) : left;
    printf("%s\n", title);
    if (across) printf("%*s", left, "");
    for (int64_t j = 0; across && j < n; j++)
        printf(" %*s%s", least - characters(w->name[j]) > 0 ? least - characters(w->name[j]) : 0, "", w->name[j]);
    if (across) putchar('\n');
    for (int64_t i = 0; i < w->n; i++) {
        printf("%s%*s", w->name[i], left - characters(w->name[i]), "");
        for (int64_t j = 0; j < n; j++) {
            const int    wide = across ? characters(w->name[j]) : 0;
            const double x = tn_get(t, i * all + j);
            if (isfinite(x)) printf(" %*.*f", wide > least ? wide : least, (int)digits, x);
            else printf(" %*s", wide > least ? wide : least, x < 0 ? "-inf" : "nan");
        }
        puts(n < all ? " …" : "");
    }
    putchar('\n');
}

/* 0 on and below the diagonal, -inf above it. */
static tn_tensor *causal_mask(tn_dtype t, int64_t n)
{
    tn_tensor *m = tn_zeros_of(t, TN_SHAPE(n, n));
    for (int64_t i = 0; m && i < n; i++)
        for (int64_t j = i + 1; j < n; j++) tn_set(m, i * n + j, (double)-INFINITY);
    return m;
}

static void walk(const steps *s)
{
    const token_list *w = &s->words;
    char              scaled[80];
    tn_tensor        *scores = tn_matmul(s->q, tn_transpose(s->k, 0, 1)), *small = tn_mul_scalar(scores, s->scale);
    tn_tensor        *mask = causal ? causal_mask(tn_dtype_of(small), w->n) : NULL,
              *masked = mask ? tn_add(small, mask) : small;
    tn_tensor *weights = tn_softmax(masked, -1), *sum = tn_matmul(weights, s->v);
    if (!sum) return;
    if (s->weights && tn_item(tn_amax(tn_abs(tn_sub(weights, s->weights)), .dims = TN_DIMS(0, 1))) > 1e-4) {
        if (causal) tn_raise(TN_EINVAL, "the model computes this head without --causal; omit it");
        else tn_raise(TN_EUNSUPPORTED, "this head adds more to its scores than a mask, such as relative positions");
        return;
    }
    if (s->x && s->x != s->q) print_table("x: the vectors of the words", w, s->x, false);
    print_table(s->x == s->q ? "x: the vectors of the words, which are q, k and v" : "q: queries", w, s->q, false);
    if (s->x != s->q) print_table("k: keys", w, s->k, false), print_table("v: values", w, s->v, false);
    snprintf(scaled, sizeof scaled, "scores / %.4g", 1 / s->scale);
    print_table("scores: each query times each key", w, scores, true);
    print_table(scaled, w, small, true);
    if (mask) print_table("mask", w, mask, true), print_table("scores + mask", w, masked, true);
    print_table("weights: softmax of each row", w, weights, true);
    print_table("sum: the values, weighted", w, sum, false);
    if (!html) return;
    tn_report *r = report_new("attention, step by step", dir);
    tn_report_heatmap(r, "Weights: rows attend to columns", w->n, w->name, w->n, w->name, weights);
    if (write_report(r, html)) printf("%s\n", html);
}

/* ---- given vectors ----------------------------------------------------------------------------------------------- */

/* The matrix of the rows name1, name2, ..., f64 [n, columns]. NULL: raised. */
static tn_tensor *matrix(const tn_vectors *m, char name, int64_t n)
{
    tn_tensor *t = tn_zeros(TN_SHAPE(n, tn_vectors_dim(m)));
    float     *to = t ? tn_data_mut(t) : NULL;
    char       row[32];
    for (int64_t i = 0; to && i < n; i++, to += tn_vectors_dim(m)) {
        snprintf(row, sizeof row, "%c%lld", name, (long long)i + 1);
        if (tn_vectors_of(m, tn_text_of(row), to)) continue;
        tn_raise(TN_EFORMAT, "'%s' has no row '%s'; expected %lld rows each of q, k and v, as the vectors are as long",
                 matrices, row, (long long)n);
        return NULL;
    }
    return tn_to(t, TN_F64);
}

/* Splits the text at blanks into s->words, and finds their vectors. False: raised. */
static bool words_with_vectors(const tn_vectors *v, char *text, steps *s)
{
    enum { WORDS = 40 };
    static const char *name[WORDS];
    const int64_t      dim = tn_vectors_dim(v);
    s->words = (token_list){.name = name};
    tn_tensor *x = tn_zeros(TN_SHAPE(WORDS, dim));
    float     *to = x ? tn_data_mut(x) : NULL;
    for (char *word = strtok(text, " \t\n"); to && word; word = strtok(NULL, " \t\n"), to += dim) {
        if (s->words.n == WORDS) return tn_raise_false(TN_EINVAL, "expected at most %d words", WORDS);
        name[s->words.n++] = word;
        if (!tn_vectors_of(v, tn_text_of(word), to))
            return tn_raise_false(TN_EINVAL, "'%s' has no vector in '%s'", word, vectors);
    }
    if (to && !s->words.n) return tn_raise_false(TN_EINVAL, "the text has no word");
    return to && (s->x = tn_to(tn_narrow(x, 0, 0, s->words.n), TN_F64)) != NULL;
}

static void walk_vectors(char *text)
{
    steps       s = {.x = NULL};
    tn_vectors *v = tn_vectors_load(vectors, TN_VECTORS_ANY), *m = NULL;
    if (v && words_with_vectors(v, text, &s)) {
        const int64_t dim = tn_vectors_dim(v);
        s.q = s.k = s.v = s.x;
        if (matrices && (m = tn_vectors_load(matrices, TN_VECTORS_ANY)) != NULL)
            s.q = tn_matmul(s.x, matrix(m, 'q', dim)), s.k = tn_matmul(s.x, matrix(m, 'k', dim)),
            s.v = tn_matmul(s.x, matrix(m, 'v', dim));
        if (tn_error() == TN_OK) s.scale = 1 / sqrt((double)tn_size(s.q, 1)), walk(&s);
    }
    tn_vectors_free(m), tn_vectors_free(v);
}

/* ---- a head of a model ------------------------------------------------------------------------------------------- */

/* Row h of what the look recorded of the attention at `path`. */
static tn_tensor *recorded(const tn_look *l, const char *path, const char *part, int64_t h)
{
    char whole[TN_PATH_BYTES + 16];
    snprintf(whole, sizeof whole, "%s.%s", path, part);
    tn_tensor *t = tn_look_at(l, whole); /* [1, heads, n, m] */
    return t ? tn_select(tn_select(t, 0, 0), 0, h) : NULL;
}

/* The self-attention of --layer; its path in *path. NULL: raised. */
static tn_mha *attention_of(const model *m, char path[TN_PATH_BYTES])
{
    int64_t at = 0;
    for (tn_each e = tn_modules(m->net); tn_next(&e);) {
        tn_mha *a = tn_mha_of(e.module);
        if (!a || !strstr(e.name, m->kind == TRANSLATOR ? "encoder.layers" : "self_attn") || ++at < layer) continue;
        snprintf(path, TN_PATH_BYTES, "%s", e.name);
        if (head <= a->heads) return a;
        tn_raise(TN_EINVAL, "--head %lld does not exist: this layer has %lld heads", (long long)head,
                 (long long)a->heads);
        return NULL;
    }
    tn_raise(TN_EINVAL, "--layer %lld does not exist: this model has %lld layers of attention", (long long)layer,
             (long long)at);
    return NULL;
}

static void walk_model(const char *text)
{
    static const char *const parts[] = {"queries", "keys", "values", "weights"};
    char                     path[TN_PATH_BYTES], whole[TN_PATH_BYTES + 16];
    model                    m;
    steps                    s = {.x = NULL};
    if (!model_open(dir, &m)) return;
    tn_mha  *a = token_list_encode(&m, text, false, false, &s.words) ? attention_of(&m, path) : NULL;
    tn_look *l = a ? tn_look_new() : NULL;
    for (int i = 0; l && i < 4; i++) {
        snprintf(whole, sizeof whole, "%s.%s", path, parts[i]);
        tn_look_request(l, whole);
    }
    if (l) {
        const tn_scope in = tn_look_begin(l);
        run_model(&m, s.words.ids, m.kind == TRANSLATOR ? tn_narrow(s.words.ids, 1, s.words.n - 1, 1) : NULL);
        tn_scope_end(in);
        const int64_t of_keys = (head - 1) * a->kv_heads / a->heads; /* heads may share keys */
        s.q = recorded(l, path, "queries", head - 1), s.k = recorded(l, path, "keys", of_keys);
        s.v = recorded(l, path, "values", of_keys), s.weights = recorded(l, path, "weights", head - 1);
        s.scale = a->scores.scale > 0 ? a->scores.scale : 1 / sqrt((double)a->head_dim);
        causal = causal || m.kind == WRITER;
        if (tn_error() == TN_OK && runs_once(l, whole)) walk(&s);
    }
    tn_look_free(l);
    token_list_free(&s.words);
    model_close(&m);
}

static int run(int count, char **operands)
{
    (void)count;
    if (!dir == !vectors) return program_usage("give either --model or --vectors");
    const char *const of_vectors[] = {"matrices", NULL}, *const of_model[] = {"layer", "head", NULL};
    const int code = program_strays(dir ? of_vectors : of_model, dir ? "--vectors" : "--model");
    if (code || reject_png(html)) return EXIT_USAGE;
    const tn_scope s = tn_no_grad_begin();
    if (dir) walk_model(operands[0]);
    else walk_vectors(operands[0]);
    tn_scope_end(s);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of the model"),
    OPTION_INT("layer", 0, "N", &layer, "layer of the head", .least = 1, .most = 1024),
    OPTION_INT("head", 0, "N", &head, "head of this layer", .least = 1, .most = 1024),
    OPTION_TEXT("vectors", 0, "FILE", &vectors, "instead of a model: file of the words' vectors"),
    OPTION_TEXT("matrices", 0, "FILE", &matrices,
                "with --vectors: lines 'q1 ...', 'q2 ...', ..., 'k1 ...', ..., 'v1 ...', ...: the rows of three "
                "matrices that make queries, keys and values"),
    OPTION_FLAG("causal", 0, &causal, "mask later words; a causal model always does"),
    OPTION_INT("digits", 0, "N", &digits, "digits after the point", .least = 0, .most = 9),
    OPTION_TEXT("html", 'o', "FILE", &html, "also draw the weights: HTML page, or .svg file"),
    {0},
};
const command walk_command = {
    .name = "walk",
    .summary = "print the attention of one head, step by step",
    .options = options,
    .operands = "TEXT",
    .least = 1,
    .most = 1,
    .run = run,
    .text = "Prints tables: queries, keys and values; the scores, scaled and masked; the weights, which are their "
            "softmax; and the weighted sums of the values. Of long vectors the first eight numbers are shown. With "
            "--vectors, the words between blanks have the vectors of a file of word vectors; without --matrices these "
            "are queries, keys and values.\n\n"
            "    look walk --model book --layer 2 --head 1 \"I am no man\"\n"
            "    look walk --vectors words.vec --causal \"I am no man\"\n",
};

/* search.c — bert search: finds the lines of texts most similar to a query, by the inner product of their vectors.
 * The search is exact: every line is compared, in blocks, with many queries at a time.
 *
 * An index is a safetensors file with "vectors" [lines, dim], and hashes (FNV-1a) of the lines and of the model in its
 * metadata, so that it is not used with others. */
#include "core/system/system.h"

#include "bert.h"

#include "../common/checksum.h"
#include "../common/files.h"
#include "../common/progress.h"
#include "../common/texts.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE_MOST = 16 << 20, /* bytes of a query */
    QUERIES = 64,         /* maximum queries of a group */
    BLOCK = 4096,         /* lines compared with a group at a time */
    SOME = 2048,          /* lines embedded at a time */
    TOP_MOST = 1000
};

static const char *dir, *index_file;
static option_list files;
static int64_t     top = 5;
static bool        json;

/* The non-empty lines of all files, each with a NUL; owned. */
typedef struct {
    int64_t      n, room;
    const char **text;
    int64_t     *file, *number; /* index of the file, from 0; line number, from 1 */
} haystack;

static void haystack_free(haystack *h)
{
    for (int64_t i = 0; i < h->n; i++) free((void *)(uintptr_t)h->text[i]);
    free(h->text), free(h->file), free(h->number);
    *h = (haystack){.n = 0};
}

static bool add_line(haystack *h, tn_text line, int64_t file, int64_t number)
{
    if (h->n == h->room) {
        const int64_t room = h->room ? 2 * h->room : 1024;
        void         *text = realloc(h->text, (size_t)room * sizeof *h->text);
        if (text) h->text = text;
        void *from = text ? realloc(h->file, (size_t)room * sizeof *h->file) : NULL;
        if (from) h->file = from;
        void *place = from ? realloc(h->number, (size_t)room * sizeof *h->number) : NULL;
        if (place) h->number = place, h->room = room;
    }
    char *copy = h->n < h->room ? malloc(line.bytes + 1) : NULL;
    if (!copy) return tn_raise_false(TN_ENOMEM, "no memory for the lines");
    memcpy(copy, line.at, line.bytes);
    copy[line.bytes] = 0;
    h->text[h->n] = copy, h->file[h->n] = file, h->number[h->n++] = number;
    return true;
}

static bool read_texts(haystack *h)
{
    for (int f = 0; f < files.count && tn_error() == TN_OK; f++) {
        tn_lines *l = tn_lines_load(files.value[f]);
        for (int64_t i = 0; i < tn_lines_count(l) && tn_error() == TN_OK; i++) {
            const tn_text line = tn_lines_at(l, i);
            if (memchr(line.at, 0, line.bytes))
                tn_raise(TN_EFORMAT, "'%s': line %lld: a NUL byte; expected text", files.value[f], (long long)i + 1);
            else if (line.bytes) add_line(h, line, f, i + 1);
        }
        tn_lines_free(l);
    }
    if (!h->n && tn_error() == TN_OK) tn_raise(TN_EFORMAT, "'%s' contains no lines to search", files.value[0]);
    return h->n && tn_error() == TN_OK;
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

/* Hashes of the lines, and of the model with its pooling: of the vector of a short text. */
static bool hashes(const sentences *how, const model *m, const haystack *h, char of_texts[24], char of_model[24])
{
    static const char *const probe[] = {"index"};
    const size_t             bytes = (size_t)how->dim * sizeof(float);
    uint64_t                 sum = CHECKSUM;
    float                   *v = tn_mem_get(bytes);
    for (int64_t i = 0; i < h->n; i++) sum = checksum_string(sum, h->text[i]);
    checksum_text(sum, of_texts);
    if (v && sentences_all(how, m, 1, probe, v)) checksum_text(checksum(CHECKSUM, v, bytes), of_model);
    if (v) tn_mem_put(v, bytes);
    return tn_error() == TN_OK;
}

static tn_tensor *embed_lines(const sentences *how, const model *m, const haystack *h)
{
    tn_tensor *all = tn_empty(TN_SHAPE(h->n, how->dim));
    float     *v = all ? tn_data_mut(all) : NULL;
    progress   bar = progress_begin("lines", h->n, "lines");
    for (int64_t at = 0; v && at < h->n && tn_error() == TN_OK; at += SOME) {
        const int64_t n = h->n - at < SOME ? h->n - at : SOME;
        sentences_all(how, m, n, h->text + at, v + at * how->dim);
        progress_at(&bar, at + n, NULL);
    }
    progress_end(&bar);
    return tn_error() == TN_OK ? all : NULL;
}

static bool has_metadata(const tn_safetensors *f, const char *key, const char *want)
{
    const char *is = tn_safetensors_metadata(f, key);
    return is && !strcmp(is, want);
}

static tn_tensor *load_index(const sentences *how, const haystack *h, const char *of_texts, const char *of_model)
{
    static const char *const or_else = "give another --index, or delete the file to create it again";
    tn_safetensors          *f = tn_safetensors_open(index_file);
    tn_tensor               *v = NULL;
    const bool               other = !f && tn_error() == TN_EFORMAT; /* not a safetensors file */
    if (other) tn_clear_error();
    if (other || (f && !has_metadata(f, "texts", of_texts)))
        tn_raise(TN_EFORMAT, "'%s' is not an index of these texts; %s", index_file, or_else);
    else if (f && !has_metadata(f, "model", of_model))
        tn_raise(TN_EFORMAT, "'%s' is an index of another model; %s", index_file, or_else);
    else if (f) v = tn_safetensors_get(f, "vectors");
    if (v && (tn_dtype_of(v) != TN_F32 || !tn_shape_equal(tn_shape_of(v), TN_SHAPE(h->n, how->dim))))
        tn_raise(TN_EFORMAT, "'%s': vectors is not f32 [%lld, %lld]", index_file, (long long)h->n, (long long)how->dim);
    tn_safetensors_close(f);
    return tn_error() == TN_OK ? v : NULL;
}

static tn_tensor *open_index(const sentences *how, const model *m, const haystack *h)
{
    char of_texts[24] = "", of_model[24] = "";
    if (!index_file) return embed_lines(how, m, h);
    if (!hashes(how, m, h, of_texts, of_model)) return NULL;
    if (!may_write(index_file)) return NULL;
    if (file_exists(index_file)) return load_index(how, h, of_texts, of_model);
    tn_tensor             *v = embed_lines(how, m, h);
    tn_safetensors_writer *w = v ? tn_safetensors_writer_new() : NULL;
    if (w && tn_safetensors_put(w, "vectors", v) == TN_OK && tn_safetensors_note(w, "texts", of_texts) == TN_OK &&
        tn_safetensors_note(w, "model", of_model) == TN_OK && tn_safetensors_save(w, index_file) != TN_OK)
        v = NULL;
    tn_safetensors_writer_free(w);
    return v;
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

typedef struct {
    float   score;
    int64_t line;
} hit;

/* Inserts x into the list of the k best hits, best first; of equal scores, the earlier line first. Returns the new
 * length of the list. */
static int64_t keep(hit *best, int64_t n, int64_t k, hit x)
{
    if (n == k && !(x.score > best[n - 1].score)) return n;
    int64_t at = n < k ? n : n - 1;
    for (; at > 0 && x.score > best[at - 1].score; at--) best[at] = best[at - 1];
    best[at] = x;
    return n < k ? n + 1 : n;
}

/* Finds the hits of query i at best[i · top]. Returns the number of hits per query; 0: raised. */
static int64_t find_hits(tn_tensor *vectors, tn_tensor *queries, hit *best)
{
    const int64_t n = tn_size(vectors, 0), q = tn_size(queries, 0);
    int64_t       found[QUERIES] = {0};
    for (int64_t at = 0; at < n && tn_error() == TN_OK; at += BLOCK) {
        const int64_t  some = n - at < BLOCK ? n - at : BLOCK;
        const tn_scope s = tn_no_grad_begin();
        tn_tensor     *scores = tn_matmul(queries, tn_transpose(tn_narrow(vectors, 0, at, some), 0, 1));
        const float   *x = scores ? tn_data(scores) : NULL;
        for (int64_t i = 0; x && i < q; i++)
            for (int64_t k = 0; k < some; k++)
                found[i] = keep(best + i * top, found[i], top, (hit){x[i * some + k], at + k});
        tn_scope_end(s);
    }
    return tn_error() == TN_OK ? found[0] : 0;
}

static void print_json(const haystack *h, const char *query, int64_t n, const hit *best)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    texts_put(w, "query", query);
    tn_json_open_array(w, "hits");
    for (int64_t i = 0; i < n; i++) {
        tn_json_open_object(w, NULL);
        tn_json_put_double(w, "score", best[i].score);
        texts_put(w, "file", files.value[h->file[best[i].line]]);
        tn_json_put_i64(w, "line", h->number[best[i].line]);
        texts_put(w, "text", h->text[best[i].line]);
        tn_json_close(w);
    }
    tn_json_close(w), tn_json_close(w);
    const char *text = tn_json_text(w, NULL);
    if (text) printf("%s\n", text);
    tn_json_writer_free(w);
}
static void print_plain(const haystack *h, int64_t n, const hit *best)
{
    static bool again;
    if (again) printf("\n");
    again = true;
    for (int64_t i = 0; i < n; i++) {
        const int64_t line = best[i].line;
        printf("%.4f\t", (double)best[i].score);
        if (files.count > 1) printf("%s:", files.value[h->file[line]]);
        printf("%lld\t%s\n", (long long)h->number[line], h->text[line]);
    }
}

/* Answers n queries, at most QUERIES. */
static void answer(const sentences *how, const model *m, const haystack *h, tn_tensor *vectors, int64_t n,
                   const char *const *query)
{
    const tn_scope s = tn_no_grad_begin();
    const size_t   bytes = QUERIES * (size_t)top * sizeof(hit);
    hit           *best = tn_mem_get(bytes);
    tn_tensor     *q = tn_empty(TN_SHAPE(n, how->dim));
    float         *v = q ? tn_data_mut(q) : NULL;
    const int64_t  found = best && v && sentences_all(how, m, n, query, v) ? find_hits(vectors, q, best) : 0;
    for (int64_t i = 0; i < n && found && tn_error() == TN_OK; i++)
        if (json) print_json(h, query[i], found, best + i * top);
        else print_plain(h, found, best + i * top);
    if (best) tn_mem_put(best, bytes);
    tn_scope_end(s);
    fflush(stdout); /* program_main reports errors of standard output */
}

/* Answers each line of standard input; on a terminal, each at once. */
static void answer_lines(const sentences *how, const model *m, const haystack *h, tn_tensor *vectors)
{
    const int64_t most = isatty(STDIN_FILENO) ? 1 : QUERIES;
    char         *line = NULL, *query[QUERIES];
    size_t        room = 0, bytes;
    int64_t       number = 0;
    broken_lines  broken = {0, 0};
    for (bool more = true; more && tn_error() == TN_OK && !ferror(stdout);) {
        int64_t n = 0;
        while (n < most && (more = next_line(&line, &room, &bytes, LINE_MOST))) {
            texts_line(&broken, ++number, (tn_text){line, bytes});
            if (memchr(line, 0, bytes))
                tn_raise(TN_EFORMAT, "a query contains a NUL byte; expected text"), more = false;
            else if (!(query[n++] = strdup(line))) n--, tn_raise(TN_ENOMEM, "no memory for a query");
        }
        if (n && tn_error() == TN_OK) answer(how, m, h, vectors, n, (const char *const *)query);
        for (int64_t i = 0; i < n; i++) free(query[i]);
    }
    texts_warn_lines(&broken);
    free(line);
}

static int run(int count, char **operands)
{
    model     m;
    sentences how;
    haystack  h = {.n = 0};
    if (sentences_open(dir, &how, &m)) {
        tn_tensor *vectors = read_texts(&h) ? open_index(&how, &m, &h) : NULL;
        for (int at = 0; vectors && at < count && tn_error() == TN_OK; at += QUERIES)
            answer(&how, &m, &h, vectors, count - at < QUERIES ? count - at : QUERIES,
                   (const char *const *)(uintptr_t)(operands + at));
        if (vectors && !count) answer_lines(&how, &m, &h, vectors);
        haystack_free(&h);
        sentences_close(&how, &m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_LIST("text", 't', "FILE", &files, "texts to search, line by line", .required = true, .single = true),
    OPTION_TEXT("index", 0, "FILE", &index_file, "file of the lines' vectors; created if it does not exist"),
    OPTION_INT("top", 'k', "N", &top, "number of lines for each query", .least = 1, .most = TOP_MOST),
    OPTION_FLAG("json", 0, &json, "print a line of JSON for each query"),
    {0},
};
const command search_command = COMMAND(
    "search", "find the lines most similar to a query", options, .operands = "[QUERY...]", .least = 0, .most = -1,
    .text = "Prints the most similar lines for each query, or for each line of standard input: the inner product of "
            "the two vectors, which are those of bert embed, the line's number, and the line.\n\n"
            "  bert search --model minilm --text book.txt --index book.index \"A storm at sea.\"");

/* embed.c — bert embed: prints a vector for each line of standard input. Lines are processed in groups; their vectors
 * are printed in the order of the lines. */
#include "core/system/system.h"

#include "../common/texts.h"
#include "../common/messages.h"
#include "../common/weights.h"
#include "bert.h"

#include "../common/files.h"
#include "../common/numbers.h"
#include "../common/progress.h"

#include <stdlib.h>
#include <string.h>

enum {
    LINE_MOST = 16 << 20, /* maximum bytes of a line */
    TEXTS = 2048,         /* maximum lines of a group */
    BYTES = 4 << 20       /* a group ends when it has this number of bytes */
};

static const char *dir, *pool, *out_path, *dtype, *word;
static bool        json;
static tn_string   kept; /* with --out: the vectors so far, as f32 */

/* Prints the vectors of n lines, at most TEXTS. */
static void print_vectors(const sentences *how, const model *m, int64_t n, char **lines)
{
    const size_t bytes = (size_t)n * (size_t)how->dim * sizeof(float);
    float       *out = n ? tn_mem_get(bytes) : NULL;
    const bool   fine = out && sentences_all(how, m, n, (const char *const *)lines, out);
    if (fine && out_path) tn_string_add(&kept, (tn_text){(const char *)out, bytes});
    else if (fine)
        for (int64_t i = 0; i < n && tn_error() == TN_OK; i++)
            numbers_print(out + i * how->dim, how->dim, json), putchar('\n');
    if (out) tn_mem_put(out, bytes);
    fflush(stdout); /* program_main reports errors of standard output */
}

static broken_lines broken; /* invalid lines of standard input */

/* Reads up to `most` lines of standard input, each of which the caller frees. Returns their number. A line with a NUL
 * byte ends the group and sets *text to false; the lines before it still get their vectors. */
static int64_t read_lines(int64_t most, int64_t *number, char **lines, bool *text)
{
    static char  *line;
    static size_t room;
    size_t        bytes = 0, n;
    int64_t       count = 0;
    char          where[32];
    for (bool more = true; more && count < most && bytes < BYTES; bytes += n) {
        snprintf(where, sizeof where, "line %lld", (long long)++*number);
        tn_path_push(where);
        more = next_line(&line, &room, &n, LINE_MOST);
        if (more && memchr(line, 0, n)) *text = more = false;
        if (more) texts_line(&broken, *number, (tn_text){line, n});
        if (more && !(lines[count] = strdup(line))) tn_raise(TN_ENOMEM, "no memory for %zu bytes", n), more = false;
        tn_path_pop();
        count += more;
    }
    if (count < most && bytes < BYTES) free(line), line = NULL, room = 0;
    return count;
}

/* The progress of long inputs; silent if vectors are printed on the terminal. */
static progress bar;
static int64_t  embedded;

static void show_progress(int64_t n)
{
    embedded += n;
    progress_at(&bar, embedded, "");
}

static void print_lines(const sentences *how, const model *m)
{
    const int64_t most = isatty(STDIN_FILENO) ? 1 : TEXTS; /* on a terminal, answer each line at once */
    char        **lines = tn_mem_get(TEXTS * sizeof *lines);
    int64_t       number = 0;
    for (bool more = lines != NULL; more && tn_error() == TN_OK;) {
        bool          text = true;
        const int64_t n = read_lines(most, &number, lines, &text);
        if (tn_error() == TN_OK) print_vectors(how, m, n, lines), show_progress(n);
        for (int64_t i = 0; i < n; i++) free(lines[i]);
        if (!text) tn_raise(TN_EFORMAT, "line %lld: a NUL byte; expected text", (long long)number);
        more = n > 0 && !ferror(stdout);
    }
    if (lines) tn_mem_put(lines, TEXTS * sizeof *lines);
    texts_warn_lines(&broken);
}

/* Saves the vectors as a tensor [texts, width]: "embeddings" in a file .safetensors, else npy. */
static bool save_vectors(int64_t width)
{
    const int64_t  n = (int64_t)(kept.bytes / sizeof(float)) / width;
    const char    *dot = strrchr(out_path, '.');
    const tn_scope s = tn_scope_begin();
    tn_tensor     *x = tn_from_data(TN_F32, TN_SHAPE(n, width), kept.at ? kept.at : "");
    bool           fine = x != NULL;
    if (fine && dot && !strcmp(dot, ".safetensors")) {
        tn_safetensors_writer *w = tn_safetensors_writer_new();
        tn_safetensors_put(w, "embeddings", x);
        fine = tn_error() == TN_OK && tn_safetensors_save(w, out_path) == TN_OK;
        tn_safetensors_writer_free(w);
    } else if (fine) fine = tn_npy_save(out_path, x) == TN_OK;
    tn_scope_end(s);
    return fine;
}

/* --word: the texts are the operands, or the lines of standard input. */
static void print_word(const model *m, int count, char **operands)
{
    bool    text = true;
    int64_t number = 0, n = count;
    char  **lines = count ? operands : tn_mem_get(TEXTS * sizeof *lines);
    if (lines && !count) n = read_lines(TEXTS, &number, lines, &text);
    if (lines && tn_error() == TN_OK) embed_word(m, word, n, (const char *const *)lines);
    for (int64_t i = 0; lines && !count && i < n; i++) free(lines[i]);
    if (lines && !count) tn_mem_put(lines, TEXTS * sizeof *lines);
}

static int check(void)
{
    const char *dot = out_path ? strrchr(out_path, '.') : NULL;
    if (program_either("out", "json") || program_either("word", "out") || program_either("word", "json") ||
        program_either("word", "pool"))
        return EXIT_USAGE;
    if (out_path && (!dot || (strcmp(dot, ".npy") != 0 && strcmp(dot, ".safetensors") != 0)))
        return program_usage("--out must end in .npy or .safetensors, got '%s'", out_path);
    return out_path && !may_write(out_path) ? program_end() : 0;
}

static int run(int count, char **operands)
{
    const int code = check();
    if (code) return code;
    static const char *const names[] = {"mean", "cls", "max"};
    model                    m;
    sentences                how;
    if (sentences_open(dir, &how, &m)) {
        weights_pack(m.bert, dtype);
        for (int i = 0; pool && i < 3; i++)
            if (!strcmp(pool, names[i])) how.pooling = (tn_bert_pooling)i;
        if (m.bert->streams && how.pooling == TN_POOL_FIRST)
            tn_raise(TN_EUNSUPPORTED, "XLNet's [CLS] is not the first token; use --pool mean or max");
        if (word) print_word(&m, count, operands), count = 0;
        bar = progress_begin("embed", count, "text");
        bar.silent = bar.silent || isatty(STDOUT_FILENO);
        for (int at = 0; at < count && tn_error() == TN_OK; at += TEXTS)
            print_vectors(&how, &m, count - at < TEXTS ? count - at : TEXTS, operands + at);
        if (!count && !word) print_lines(&how, &m);
        if (bar.drawn > bar.began) progress_end(&bar);
        if (out_path && tn_error() == TN_OK && save_vectors(how.dim) && !settings.quiet)
            tell("%s: %lld vectors of width %lld\n", out_path,
                 (long long)(kept.bytes / sizeof(float)) / (long long)how.dim, (long long)how.dim);
        tn_string_free(&kept);
        sentences_close(&how, &m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the model's folder", .required = true),
    OPTION_TEXT("pool", 0, "HOW", &pool, "pooling of the tokens' hidden states (default: the folder's, or mean)",
                .choices = "mean|cls|max"),
    OPTION_TEXT("out", 'o', "FILE", &out_path,
                "write the vectors to FILE instead, .npy or .safetensors (tensor \"embeddings\"), f32 [texts, width]"),
    OPTION_TEXT("word", 0, "WORD", &word,
                "print instead the cosines between the word's vectors in the texts, and its static vector"),
    OPTION_FLAG("json", 0, &json, "print a JSON array for each text"),
    OPTION_WEIGHTS(&dtype),
    {0},
};
const command embed_command = COMMAND(
    "embed", "print the vectors of sentences", options, .operands = "[TEXT...]", .least = 0, .most = -1,
    .text = "Prints one line of numbers for each text, or for each line of standard input: a vector of length 1, so "
            "that the inner product of two vectors is the cosine of their angle. In a folder of sentence-transformers, "
            "modules.json specifies the pooling, the maximum length of a text, and whether vectors have length 1, and "
            "config_sentence_transformers.json the default prompt and truncate_dim.");

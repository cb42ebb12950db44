/* sentence.c — vectors sentence, paraphrases: sentence vectors from word vectors or from a skip-thought model. */
#include "programs/common/files.h"
#include "programs/common/numbers.h"
#include "programs/common/texts.h"
#include "vectors.h"

#include <math.h>
#include <stdlib.h>

static double      sif;
static const char *thoughts_dir;
static bool        json;

#define READER_OPTIONS                                                                                           \
    OPTION_TEXT("vectors", 0, "FILE", &vectors_file, "file of word vectors"), VECTORS_FORMAT,                    \
        OPTION_TEXT("model", 0, "DIR", &thoughts_dir,                                                            \
                    "folder of a skip-thought model; --vectors then supplies words that it does not know"),      \
        OPTION_REAL("sif", 0, "A", &sif, "weight of a word: A / (A + its frequency); 0: plain mean", .least = 0, \
                    .most = 1)
const option sentence_options[] = {
    READER_OPTIONS, OPTION_FLAG("json", 0, &json, "print a JSON array for each line"), {0}};
const option paraphrases_options[] = {READER_OPTIONS, OPTION_FLAG("json", 0, &json, "print a line of JSON"), {0}};

/* ---- reader ------------------------------------------------------------------------------------------------------ */

typedef struct {
    tn_vectors *words;
    thoughts    net;
    int64_t     dim; /* elements of a line's vector */
} line_reader;

static bool line_reader_open(line_reader *r)
{
    *r = (line_reader){.words = vectors_file ? load_vectors() : NULL};
    if (tn_error() != TN_OK || (thoughts_dir && !thoughts_open(&r->net, thoughts_dir, r->words))) return false;
    r->dim = thoughts_dir ? r->net.net->config.hidden : tn_vectors_dim(r->words);
    return true;
}

static void line_reader_close(line_reader *r)
{
    thoughts_close(&r->net);
    tn_vectors_free(r->words);
}

/* Writes the vector of a line, r->dim values: zeros if no word is known. Returns false if an error is set. */
static bool read_line(const line_reader *r, tn_text line, float *to)
{
    if (r->net.net) return thoughts_sentence(&r->net, line, to);
    tn_vectors_sentence(r->words, line, sif, to);
    return tn_error() == TN_OK;
}

/* Checks the options. Returns 0 or the exit code of program_usage. */
static int check(void)
{
    if (!vectors_file && !thoughts_dir)
        return program_usage("neither --vectors nor --model is given; give one of them");
    const int code = vectors_file ? 0 : program_stray("format", "--vectors");
    return code || !thoughts_dir ? code : program_stray("sif", "the mean of --vectors; omit it with --model");
}

/* ---- vectors sentence -------------------------------------------------------------------------------------------- */

int run_sentence(int count, char **operands)
{
    enum { LINE_MOST = 1 << 24 };
    (void)count, (void)operands;
    const int code = check();
    if (code) return code;
    line_reader  r;
    float       *x = line_reader_open(&r) ? malloc((size_t)r.dim * sizeof *x) : NULL;
    char        *line = NULL;
    size_t       room = 0, n = 0;
    broken_lines broken = {0, 0};
    for (int64_t i = 1; x && tn_error() == TN_OK && next_line(&line, &room, &n, LINE_MOST); i++) {
        texts_line(&broken, i, (tn_text){line, n});
        if (!read_line(&r, (tn_text){line, n}, x)) break;
        numbers_print(x, r.dim, json);
        putchar('\n');
    }
    texts_warn_lines(&broken);
    free(line), free(x);
    line_reader_close(&r);
    return program_end();
}

/* ---- vectors paraphrases ----------------------------------------------------------------------------------------- */

static int64_t lines_in(const tn_string *text)
{
    int64_t n = 0;
    for (size_t i = 0; i < text->bytes; i++) n += text->at[i] == '\n' || i + 1 == text->bytes;
    return n;
}

static void normalise(int64_t n, float *x)
{
    double squares = 0;
    for (int64_t k = 0; k < n; k++) squares += (double)x[k] * (double)x[k];
    for (int64_t k = 0; squares > 0 && k < n; k++) x[k] = (float)((double)x[k] / sqrt(squares));
}

/* The vectors of the lines of a file as rows of a tensor, normalised to length 1. */
static tn_tensor *rows_of(const line_reader *r, const char *path)
{
    const option_list file = {1, &path};
    tn_string         text = {.at = NULL};
    tn_tensor        *x = texts_read(&file, &text) ? tn_zeros(TN_SHAPE(lines_in(&text), r->dim)) : NULL;
    float            *to = x ? tn_data_mut(x) : NULL;
    for (size_t at = 0; to && at < text.bytes && tn_error() == TN_OK; at++, to += r->dim) {
        const size_t from = at;
        while (at < text.bytes && text.at[at] != '\n') at++;
        if (read_line(r, (tn_text){text.at + from, at - from}, to)) normalise(r->dim, to);
    }
    tn_string_free(&text);
    return tn_error() == TN_OK ? x : NULL;
}

/* nearer: the mean, over all lines, of the fraction of other lines with a lower cosine than the partner; equal cosines
 * count half. first: the number of lines whose partner has the highest cosine. */
static void score_pairs(const tn_tensor *cosines, int64_t n, double *nearer, int64_t *first)
{
    const float *row = tn_data(cosines);
    *nearer = 0, *first = 0;
    for (int64_t i = 0; i < n; i++, row += n) {
        int64_t below = 0, same = -1;
        for (int64_t k = 0; k < n; k++) below += row[k] < row[i], same += row[k] == row[i];
        *nearer += ((double)below + 0.5 * (double)same) / (double)(n - 1);
        *first += below == n - 1;
    }
    *nearer /= (double)n;
}

int run_paraphrases(int count, char **operands)
{
    (void)count;
    const int code = check();
    if (code) return code;
    line_reader    r;
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *a = line_reader_open(&r) ? rows_of(&r, operands[0]) : NULL, *b = a ? rows_of(&r, operands[1]) : NULL;
    const int64_t  n = b ? tn_size(a, 0) : 0;
    if (b && tn_size(b, 0) != n)
        tn_raise(TN_ESHAPE, "'%s' has %lld lines and '%s' %lld; line k of both must mean the same", operands[0],
                 (long long)n, operands[1], (long long)tn_size(b, 0));
    else if (b && n < 2) tn_raise(TN_EINVAL, "'%s' has %lld lines; at least 2 are needed", operands[0], (long long)n);
    tn_tensor *cosines = tn_error() == TN_OK ? tn_matmul(a, tn_transpose(b, 0, 1)) : NULL;
    if (cosines && tn_data(cosines)) {
        double  nearer;
        int64_t first;
        score_pairs(cosines, n, &nearer, &first);
        printf(json ? "{\"nearer\":%.4f,\"first\":%.4f,\"lines\":%lld}\n" : "nearer %.4f first %.4f lines %lld\n",
               nearer, (double)first / (double)n, (long long)n);
    }
    tn_scope_end(s);
    line_reader_close(&r);
    return program_end();
}

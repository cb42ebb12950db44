/* vectors.c — the vectors of many lines. Lines of similar length are a batch, whose padding the encoder skips. A thread
 * computes whole batches, so that threads wait for each other only at the end; batches have few rows, which stay in a
 * core's cache, and for which the weights stay packed (docs/gemm.md). */
#include "bert.h"

#include "../common/numbers.h"

#include <stdlib.h>
#include <string.h>

enum { BUDGET = 96, LINES = 64 }; /* tokens of a batch, on average; number of lines that a thread encodes at a time */

typedef struct {
    int64_t     pieces, place; /* number of tokens; index of the line */
    const char *text;
} entry;

typedef struct {
    const sentences   *how;
    const model       *m;
    const char *const *lines;
    entry             *line;  /* [n] */
    const char       **text;  /* [n]: of the sorted lines */
    int64_t           *first; /* [batches + 1]: the first line of each batch */
    float             *to;
} job;

/* The longest first; lines of the same length in their order. */
static int by_length(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->pieces != y->pieces) return x->pieces < y->pieces ? 1 : -1;
    return x->place < y->place ? -1 : 1;
}

static void count_pieces(int64_t from, int64_t to, void *user)
{
    const job   *j = user;
    tn_encoding *e = tn_encoding_new();
    for (int64_t i = from; e && i < to && tn_error() == TN_OK; i++) {
        const char *text = j->lines[i];
        if (tn_tokenizer_encode(j->m->tokens, e, text, strlen(text), .max_length = j->how->length) == TN_OK)
            j->line[i] = (entry){e->n, i, text};
    }
    tn_encoding_free(e);
}

/* Sorts the lines and divides them into batches of about the same number of tokens, the same number for each thread.
 * Returns the number of batches. */
static int64_t divide(job *j, int64_t n)
{
    int64_t all = 0, before = 0, threads = tn_threads(), b = 0;
    qsort(j->line, (size_t)n, sizeof *j->line, by_length);
    for (int64_t i = 0; i < n; i++) all += j->line[i].pieces, j->text[i] = j->line[i].text;
    int64_t batches = (all / BUDGET / threads + 1) * threads;
    if (batches > n) batches = n;
    for (int64_t i = 0; i < n; before += j->line[i++].pieces)
        while (b < batches && before >= b * all / batches) j->first[b++] = i;
    while (b <= batches) j->first[b++] = n;
    return batches;
}

static void run_batches(int64_t from, int64_t to, void *user)
{
    const job    *j = user;
    const int64_t dim = j->how->dim, at = j->first[from], n = j->first[to] - at;
    if (!n) return;
    const tn_tensor *y = sentences_vectors(j->how, j->m, n, j->text + at);
    const float     *v = y ? tn_data(y) : NULL;
    if (!v || !numbers_vector(v, n * dim)) return;
    for (int64_t i = 0; i < n; i++) memcpy(j->to + j->line[at + i].place * dim, v + i * dim, (size_t)dim * sizeof *v);
}

bool sentences_all(const sentences *how, const model *m, int64_t n, const char *const *lines, float *to)
{
    const size_t bytes = (size_t)n * (sizeof(entry) + sizeof(char *) + sizeof(int64_t)) + sizeof(int64_t);
    job          j = {how, m, lines, n ? tn_mem_get(bytes) : NULL, .to = to};
    if (!j.line) return tn_error() == TN_OK;
    j.first = (int64_t *)(void *)(j.line + n), j.text = (const char **)(void *)(j.first + n + 1);
    tn_parallel_for(n, LINES, count_pieces, &j);
    if (tn_error() == TN_OK) tn_parallel_for(divide(&j, n), 1, run_batches, &j);
    tn_mem_put(j.line, bytes);
    return tn_error() == TN_OK;
}

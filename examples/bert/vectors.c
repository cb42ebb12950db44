/* vectors.c — the vectors of many lines, in batches with a budget of tokens. The encoder skips the padding, so a batch
 * takes the time of its tokens; lines of similar length together need little memory for the padded embeddings. */
#include "bert.h"

#include "../common/numbers.h"

#include <stdlib.h>
#include <string.h>

enum { BUDGET = 768 }; /* tokens of a batch: enough to keep the cores busy, few enough for their caches */

typedef struct {
    int64_t     pieces, place; /* number of tokens; index of the line */
    const char *text;
} entry;

/* The longest first; lines of the same length in their order. */
static int by_length(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->pieces != y->pieces) return x->pieces < y->pieces ? 1 : -1;
    return x->place < y->place ? -1 : 1;
}

static bool sort_by_length(const sentences *how, const model *m, int64_t n, const char *const *lines, entry *to)
{
    tn_encoding *e = tn_encoding_new();
    for (int64_t i = 0; e && i < n && tn_error() == TN_OK; i++)
        if (tn_tokenizer_encode(m->tokens, e, lines[i], strlen(lines[i]), .max_length = how->length) == TN_OK)
            to[i] = (entry){e->n, i, lines[i]};
    tn_encoding_free(e);
    if (tn_error() != TN_OK) return false;
    qsort(to, (size_t)n, sizeof *to, by_length);
    return true;
}

/* The number of the n sorted texts that fit in a batch, at least 1. */
static int64_t batch_count(const entry *e, int64_t n)
{
    int64_t k = 1, all = e[0].pieces;
    while (k < n && k < BUDGET && all + e[k].pieces <= BUDGET) all += e[k++].pieces;
    return k;
}

bool sentences_all(const sentences *how, const model *m, int64_t n, const char *const *lines, float *to)
{
    const size_t list = (size_t)n * sizeof(entry), bytes = (size_t)how->dim * sizeof *to;
    entry       *e = n ? tn_mem_get(list) : NULL;
    const char  *text[BUDGET];
    if (e && sort_by_length(how, m, n, lines, e))
        for (int64_t at = 0, k; at < n && tn_error() == TN_OK; at += k) {
            k = batch_count(e + at, n - at);
            for (int64_t i = 0; i < k; i++) text[i] = e[at + i].text;
            const tn_scope s = tn_scope_begin();
            tn_tensor     *y = sentences_vectors(how, m, k, text);
            const float   *v = y ? tn_data(y) : NULL;
            if (v && !numbers_vector(v, k * how->dim)) v = NULL;
            for (int64_t i = 0; v && i < k; i++) memcpy(to + e[at + i].place * how->dim, v + i * how->dim, bytes);
            tn_scope_end(s);
        }
    if (e) tn_mem_put(e, list);
    return tn_error() == TN_OK;
}

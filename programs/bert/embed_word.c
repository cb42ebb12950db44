/* embed_word.c — bert embed --word: the vectors that one word has in several sentences, and its static vector, the row
 * of the embedding table; as cosines. */
#include "bert.h"

#include <ctype.h>
#include <string.h>

/* The index in the text of the first such word, with blanks or punctuation around it; -1: none. */
static int64_t find_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        const unsigned char before = at == text ? ' ' : (unsigned char)at[-1], after = (unsigned char)at[n];
        if (!isalnum(before) && !isalnum(after) && before < 0x80 && after < 0x80) return at - text;
    }
    return -1;
}

/* The mean of the rows of x, [n, dim], at the tokens of bytes from ... to - 1. */
static tn_tensor *mean_at(tn_tensor *x, const tn_encoding *e, int64_t from, int64_t to)
{
    int64_t first = e->n, last = -1;
    for (int64_t i = 0; i < e->n; i++)
        if (e->end[i] > from && e->start[i] < to) first = i < first ? i : first, last = i;
    if (last < first) return tn_raise(TN_EINVAL, "the text is cut before the word; give a shorter one"), NULL;
    return tn_mean(tn_narrow(x, 0, first, last - first + 1), .dims = TN_DIMS(0));
}

/* Adds the word's vector in this sentence to rows and, before the first one, its static vector. */
static bool add_sentence(const model *m, const char *word, const char *text, tn_encoding *e, tn_tensor **rows)
{
    const int64_t at = find_word(text, word), to = at + (int64_t)strlen(word);
    if (at < 0) return tn_raise_false(TN_EINVAL, "'%s' is not a word of this sentence: %s", word, text);
    if (tn_tokenizer_encode(m->tokens, e, text, strlen(text), .max_length = m->bert->config.positions) != TN_OK)
        return false;
    tn_tensor *ids = tn_empty_of(TN_I64, TN_SHAPE(1, e->n));
    int64_t   *id = ids ? tn_data_mut(ids) : NULL;
    for (int64_t i = 0; id && i < e->n; i++) id[i] = e->id[i];
    tn_tensor *y = tn_select(tn_bert_forward(m->bert, ids), 0, 0);
    tn_tensor *row = tn_unsqueeze(mean_at(y, e, at, to), 0);
    if (!*rows) {
        tn_tensor *table = tn_select(tn_call(m->bert->words, ids), 0, 0);
        *rows = tn_unsqueeze(mean_at(table, e, at, to), 0);
        if (*rows && tn_size(*rows, 1) != tn_size(row, 1)) *rows = tn_zeros_like(row); /* another width: no cosine */
    }
    *rows = tn_cat(0, *rows, row);
    return *rows != NULL;
}

bool embed_word(const model *m, const char *word, int64_t n, const char *const *lines)
{
    const tn_scope s = tn_no_grad_begin();
    tn_encoding   *e = tn_encoding_new();
    tn_tensor     *rows = NULL;
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) add_sentence(m, word, lines[i], e, &rows);
    if (rows && tn_error() == TN_OK) {
        tn_tensor *cosine = tn_cosine_similarity(tn_unsqueeze(rows, 1), tn_unsqueeze(rows, 0), 2, 1e-12);
        printf("   static");
        for (int64_t j = 1; j <= n; j++) printf(" %6lld", (long long)j);
        putchar('\n');
        for (int64_t i = 1; cosine && i <= n; i++) {
            printf("%2lld", (long long)i);
            for (int64_t j = 0; j <= n; j++) printf(" %6.3f", tn_get(cosine, i * (n + 1) + j));
            printf("  %s\n", lines[i - 1]);
        }
    }
    tn_encoding_free(e);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

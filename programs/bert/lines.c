/* lines.c — finds the lines of the text from which a row of a batch was made, for bert debug.
 *
 * A row consists of one or two parts between special tokens, each of which is a run of consecutive sentences; its first
 * and last sentence may be truncated. The sentences are the corpus's; a sentence is a line that is not blank. */
#include "bert.h"

#include <stdlib.h>
#include <string.h>

/* Sets the line of each sentence, if the numbers of sentences and of lines that are not blank agree. */
static void number_lines(texts *t, const option_list *files, int64_t n)
{
    int64_t        sentence = 0, line = 0;
    tn_error_state aside;
    tn_error_push(&aside); /* a folder has no lines */
    for (int f = 0; f < files->count && tn_error() == TN_OK; f++) {
        tn_lines *lines = tn_lines_load(files->value[f]);
        for (int64_t i = 0; i < tn_lines_count(lines); i++) {
            const tn_text text = tn_lines_at(lines, i);
            size_t        blank = 0;
            line++;
            while (blank < text.bytes && (text.at[blank] == ' ' || text.at[blank] == '\t')) blank++;
            if (blank == text.bytes) continue;
            if (sentence < n) t->line[sentence] = line;
            sentence++;
        }
        tn_lines_free(lines);
    }
    const bool agree = tn_error() == TN_OK && sentence == n;
    tn_error_pop(&aside);
    if (!agree) free(t->line), t->line = NULL;
}

static bool read_sentences(texts *t, const option_list *files, bool by_rule)
{
    const int64_t n = tn_corpus_sentences(t->corpus);
    if (t->start) return tn_error() == TN_OK;
    t->start = calloc((size_t)n + 1, sizeof *t->start), t->line = calloc((size_t)n + 1, sizeof *t->line);
    if (!t->start || !t->line) return tn_raise_false(TN_ENOMEM, "no memory for %lld sentences", (long long)n);
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        tn_corpus_sentence(t->corpus, i, &t->ids);
        t->start[i + 1] = t->ids.n;
    }
    if (by_rule) free(t->line), t->line = NULL;
    else number_lines(t, files, n);
    return tn_error() == TN_OK;
}

/* The number of the row's tokens from p to q that sentence i and its successors are; *last: the last of these. */
static int64_t matched(const texts *t, const int32_t *ids, int64_t p, int64_t q, int64_t i, int64_t *last)
{
    int64_t at = p;
    for (const int64_t n = tn_corpus_sentences(t->corpus); at < q && i < n; i++) {
        const int64_t all = t->start[i + 1] - t->start[i], some = all < q - at ? all : q - at;
        if (memcmp(ids + at, t->ids.at + t->start[i], (size_t)some * sizeof *ids) != 0) break;
        at += some, *last = i;
    }
    return at - p;
}

/* The sentences of a part: the longest run, which may start after a truncated sentence. False: none. */
static bool sentences_of(const texts *t, const int32_t *ids, int64_t p, int64_t q, int64_t to[2])
{
    int64_t best = 0, last = 0;
    for (int64_t from = p; from < q && best < q - from; from++)
        for (int64_t i = 0; i < tn_corpus_sentences(t->corpus) && best < q - from; i++) {
            const int64_t n = ids[from] == t->ids.at[t->start[i]] ? matched(t, ids, from, q, i, &last) : 0;
            if (n > best) best = n, to[0] = from > p && i > 0 ? i - 1 : i, to[1] = last;
        }
    return best > 0;
}

void texts_lines_of(texts *t, const option_list *files, bool by_rule, const tn_tokenizer *tokens, const tn_ids *row,
                    char place[64])
{
    size_t  used = 0;
    int64_t found[2] = {0};
    *place = 0;
    if (!read_sentences(t, files, by_rule)) return;
    for (int64_t p = 0, q; p < row->n; p = q) {
        while (p < row->n && tn_tokenizer_is_special(tokens, row->at[p])) p++;
        for (q = p; q < row->n && !tn_tokenizer_is_special(tokens, row->at[q]);) q++;
        if (q == p || !sentences_of(t, row->at, p, q, found) || used > 40) continue;
        const int64_t first = t->line ? t->line[found[0]] : found[0] + 1,
                      last = t->line ? t->line[found[1]] : found[1] + 1;
        const char *what = used ? "," : t->line ? (first == last ? "line" : "lines") : "sentences";
        used += (size_t)snprintf(place + used, 64 - used, "%s %lld", what, (long long)first);
        if (last != first) used += (size_t)snprintf(place + used, 64 - used, "-%lld", (long long)last);
    }
}

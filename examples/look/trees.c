/* trees.c — CoNLL-U: a line a word, ten fields between tabs, an empty line behind a sentence, comments after #.
 * Words of several tokens (1-2) and empty nodes (1.1) are passed over. */
#include "trees.h"

#include <stdlib.h>
#include <string.h>

const char *const upos_name[UPOS] = {"ADJ",  "ADP",  "ADV",   "AUX",   "CCONJ", "DET", "INTJ", "NOUN", "NUM",
                                     "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"};

enum { FIELDS = 10 };

static int fields_of(tn_text line, tn_text *to)
{
    int n = 0;
    for (const char *at = line.at, *end = line.at + line.bytes; n < FIELDS; at++) {
        const char *tab = memchr(at, '\t', (size_t)(end - at));
        to[n++] = (tn_text){at, (size_t)((tab ? tab : end) - at)};
        if (!tab) return n;
        at = tab;
    }
    return n + 1; /* too many */
}

/* A number of at most 6 digits; -1: none. */
static int64_t number_of(tn_text t)
{
    int64_t n = 0;
    for (size_t i = 0; i < t.bytes; i++) {
        if (t.at[i] < '0' || t.at[i] > '9' || t.bytes > 6) return -1;
        n = 10 * n + (t.at[i] - '0');
    }
    return t.bytes ? n : -1;
}

static int class_of(tn_text t)
{
    for (int i = 0; i < UPOS; i++)
        if (strlen(upos_name[i]) == t.bytes && !memcmp(upos_name[i], t.at, t.bytes)) return i;
    return -1;
}

static bool room_for(void **at, int64_t *room, int64_t n, size_t size)
{
    if (n < *room) return true;
    void *more = realloc(*at, (size_t)(2 * *room + 256) * size);
    if (!more) return tn_raise(TN_ENOMEM, "there is no memory for another sentence"), false;
    *at = more, *room = 2 * *room + 256;
    return true;
}

/* A line that is a word; false: raised. */
static bool add_word(trees *t, const char *path, int64_t line, tn_text text, int64_t number)
{
    tn_text   f[FIELDS];
    void     *nodes = t->node;
    const int n = fields_of(text, f);
    if (n != FIELDS)
        return tn_raise(TN_EFORMAT, "'%s', line %lld: a word has %d fields between tabs, this line %s", path,
                        (long long)line, FIELDS, n > FIELDS ? "more" : "fewer"),
               false;
    if (memchr(f[0].at, '-', f[0].bytes) || memchr(f[0].at, '.', f[0].bytes)) return true;
    const int64_t head = number_of(f[6]);
    const int     upos = class_of(f[3]);
    if (number_of(f[0]) != number + 1 || head < 0 || upos < 0)
        return tn_raise(TN_EFORMAT, "'%s', line %lld: %s", path, (long long)line,
                        number_of(f[0]) != number + 1 ? "words are numbered from 1 on, one by one"
                        : head < 0                    ? "the seventh field is no number of a word"
                                                      : "the fourth field is none of the universal parts of speech"),
               false;
    if (!room_for(&nodes, &t->node_room, t->nodes, sizeof *t->node)) return false;
    t->node = nodes;
    t->node[t->nodes++] = (node){f[1], f[7], upos, head - 1};
    return true;
}

static bool end_sentence(trees *t, const char *path, int64_t line, int64_t first, int64_t longest)
{
    const int64_t n = t->nodes - first;
    void         *all = t->sentence;
    for (int64_t i = first; i < t->nodes; i++)
        if (t->node[i].head >= n)
            return tn_raise(TN_EFORMAT, "'%s', before line %lld: word %lld belongs to word %lld, of %lld words", path,
                            (long long)line + 1, (long long)(i - first + 1), (long long)t->node[i].head + 1,
                            (long long)n),
                   false;
    if (n < 2 || n > longest) return t->nodes = first, true;
    if (!room_for(&all, &t->sentence_room, t->sentences, sizeof *t->sentence)) return false;
    t->sentence = all;
    t->sentence[t->sentences++] = (sentence){first, n};
    return true;
}

bool trees_open(const char *path, int64_t most, int64_t longest, trees *t)
{
    *t = (trees){.lines = tn_lines_load(path)};
    int64_t first = 0;
    for (int64_t i = 0; i <= tn_lines_count(t->lines) && t->sentences < most && tn_error() == TN_OK; i++) {
        const tn_text x = tn_lines_at(t->lines, i);
        if (x.bytes && *x.at == '#') continue;
        if (x.bytes) add_word(t, path, i + 1, x, t->nodes - first);
        else if (t->nodes > first && end_sentence(t, path, i + 1, first, longest)) first = t->nodes;
    }
    if (tn_error() == TN_OK && !t->sentences)
        tn_raise(TN_EFORMAT, "'%s' holds no sentence of 2 to %lld words", path, (long long)longest);
    if (tn_error() != TN_OK) trees_close(t);
    return tn_error() == TN_OK;
}

void trees_close(trees *t)
{
    free(t->node), free(t->sentence);
    tn_lines_free(t->lines);
    *t = (trees){.lines = NULL};
}

/* ---- through a model --------------------------------------------------------------------------------------------- */

bool sentence_read(const model *m, const trees *t, int64_t i, read_sentence *to)
{
    const sentence *s = &t->sentence[i];
    tn_string       text = {0};
    size_t         *end = calloc((size_t)s->n, sizeof *end);
    tn_encoding    *e = tn_encoding_new();
    *to = (read_sentence){.word_of = NULL};
    for (int64_t k = 0; end && k < s->n; k++) {
        if (k) tn_string_add(&text, tn_text_of(" "));
        tn_string_add(&text, t->node[s->first + k].word);
        end[k] = text.bytes;
    }
    if (end && e && tn_tokenizer_encode(m->tokens, e, text.at, text.bytes, .literal = true) == TN_OK &&
        e->n <= m->longest) {
        tn_tensor *ids = tn_empty_of(TN_I64, TN_SHAPE(1, e->n));
        int64_t   *id = ids ? tn_data_mut(ids) : NULL, word = 0;
        to->word_of = calloc((size_t)e->n, sizeof *to->word_of);
        for (int64_t p = 0; id && to->word_of && p < e->n; p++) {
            id[p] = e->id[p];
            while (word + 1 < s->n && (size_t)e->start[p] >= end[word]) word++;
            to->word_of[p] = e->special[p] == TN_PIECE_TEXT ? word : -1;
        }
        if (id) pieces_name(m, ids, &to->p);
    }
    tn_encoding_free(e);
    tn_string_free(&text);
    free(end);
    return to->p.n > 0;
}

void sentence_free(read_sentence *s)
{
    pieces_free(&s->p);
    free(s->word_of);
    s->word_of = NULL;
}

tn_tensor *word_means(const read_sentence *x, int64_t n)
{
    tn_tensor *a = tn_zeros(TN_SHAPE(n, x->p.n));
    for (int64_t p = 0; p < x->p.n; p++)
        if (x->word_of[p] >= 0) tn_set(a, x->word_of[p] * x->p.n + p, 1);
    return tn_div(a, tn_add_scalar(tn_sum(a, .dims = TN_DIMS(1), .keepdim = true), 1e-9));
}

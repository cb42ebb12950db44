/* trees.c — reads the dependency trees of a CoNLL-U file with data/labelled.h, one label column per pass. */
#include "trees.h"

#include <stdlib.h>
#include <string.h>

const char *const upos_name[UPOS] = {"ADJ",  "ADP",  "ADV",   "AUX",   "CCONJ", "DET", "INTJ", "NOUN", "NUM",
                                     "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"};

static const char *const columns[COLUMNS] = {"id", "upos", "xpos", "head", "deprel"};
enum { ID, CLASS, TAG, HEAD, RELATION };

/* Parses a number of at most 6 digits; returns -1 if s is not one. */
static int64_t number_of(const char *s)
{
    int64_t      n = 0;
    const size_t digits = strlen(s);
    for (size_t i = 0; i < digits; i++) {
        if (s[i] < '0' || s[i] > '9' || digits > 6) return -1;
        n = 10 * n + (s[i] - '0');
    }
    return digits ? n : -1;
}

static int class_of(const char *s)
{
    for (int i = 0; i < UPOS; i++)
        if (!strcmp(upos_name[i], s)) return i;
    return -1;
}

/* In the Penn Treebank's tags: those that Hewitt and Manning ignore; HYPH and NFP are words. Otherwise PUNCT. */
static bool is_punctuation(const char *tag, int upos)
{
    static const char *const tags[] = {"''", ",", ".", ":", "``", "-LRB-", "-RRB-"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (!strcmp(tags[i], tag)) return true;
    return !strcmp(upos_name[upos], "PUNCT") && strcmp(tag, "HYPH") != 0 && strcmp(tag, "NFP") != 0;
}

static bool add_word(trees *t, const char *path, const tn_example *e, int64_t k)
{
    const int64_t head = number_of(e[HEAD].label[k]);
    const int     upos = class_of(e[CLASS].label[k]);
    const char   *wrong = number_of(e[ID].label[k]) != k + 1 ? "the first field must number the words from 1"
                          : head < 0                         ? "the seventh field must be the number of a word"
                          : upos < 0                         ? "the fourth field must be a universal part of speech"
                                                             : NULL;
    if (wrong)
        return tn_raise_false(TN_EFORMAT, "'%s', word %lld of the sentence at line %lld: %s", path, (long long)k + 1,
                              (long long)e->line, wrong);
    if (head > e->texts)
        return tn_raise_false(
            TN_EFORMAT, "'%s', sentence at line %lld: the head of word %lld is word %lld, but there are %lld words",
            path, (long long)e->line, (long long)k + 1, (long long)head, (long long)e->texts);
    t->node[t->nodes++] = (node){tn_text_of(e->text[k]), tn_text_of(e[RELATION].label[k]), upos,
                                 is_punctuation(e[TAG].label[k], upos), head - 1};
    return true;
}

bool trees_open(const char *path, int64_t most, trees *t)
{
    int64_t words = 0, n = 0;
    *t = (trees){.nodes = 0};
    for (int c = 0; c < COLUMNS; c++)
        t->column[c] = tn_labelled_load(path, .kind = TN_LABELLED_WORDS, .form = "conllu", .label = columns[c]);
    if (tn_error() == TN_OK) n = tn_labelled_count(t->column[0]);
    for (int64_t i = 0; i < n; i++) words += tn_labelled_at(t->column[0], i).texts;
    t->node = calloc((size_t)words + 1, sizeof *t->node), t->sentence = calloc((size_t)n + 1, sizeof *t->sentence);
    if (!t->node || !t->sentence) tn_raise(TN_ENOMEM, "no memory for the sentences of '%s'", path);
    for (int64_t i = 0; i < n && t->sentences < most && tn_error() == TN_OK; i++) {
        tn_example e[COLUMNS];
        for (int c = 0; c < COLUMNS; c++) e[c] = tn_labelled_at(t->column[c], i);
        const int64_t first = t->nodes;
        for (int64_t k = 0; k < e->texts && add_word(t, path, e, k);) k++;
        if (e->texts < 2 || e->texts > MAX_WORDS) t->nodes = first; /* skipped */
        else t->sentence[t->sentences++] = (sentence){first, e->texts, e->line};
    }
    if (tn_error() == TN_OK && !t->sentences)
        tn_raise(TN_EFORMAT, "'%s' contains no sentence of 2 to %d words", path, MAX_WORDS);
    if (tn_error() != TN_OK) trees_close(t);
    return tn_error() == TN_OK;
}

bool trees_check(const char *path, const trees *t)
{
    int64_t head[MAX_WORDS], depth[MAX_WORDS];
    for (int64_t i = 0; i < t->sentences; i++) {
        const sentence *s = &t->sentence[i];
        for (int64_t k = 0; k < s->n; k++) head[k] = t->node[s->first + k].head;
        if (!tree_depths(s->n, head, depth))
            return tn_raise_false(TN_EFORMAT,
                                  "'%s', sentence at line %lld: the heads do not form a tree with one root; correct "
                                  "the seventh fields or remove the sentence",
                                  path, (long long)s->line);
    }
    return true;
}

void trees_close(trees *t)
{
    free(t->node), free(t->sentence);
    for (int c = 0; c < COLUMNS; c++) tn_labelled_free(t->column[c]);
    *t = (trees){.nodes = 0};
}

/* ---- tokens of a sentence ---------------------------------------------------------------------------------------- */

bool sentence_encode(const model *m, const trees *t, int64_t i, encoded_sentence *to)
{
    const sentence *s = &t->sentence[i];
    tn_string       text = {0};
    size_t         *end = calloc((size_t)s->n, sizeof *end);
    tn_encoding    *e = tn_encoding_new();
    *to = (encoded_sentence){.word_of = NULL};
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
            to->word_of[p] = e->special[p] == TN_TOKEN_FROM_TEXT ? word : -1;
        }
        if (id) token_list_label(m, ids, &to->p);
    }
    tn_encoding_free(e);
    tn_string_free(&text);
    free(end);
    return to->p.n > 0;
}

void sentence_free(encoded_sentence *s)
{
    token_list_free(&s->p);
    free(s->word_of);
    s->word_of = NULL;
}

tn_tensor *word_means(const encoded_sentence *x, int64_t n)
{
    tn_tensor *a = tn_zeros(TN_SHAPE(n, x->p.n));
    for (int64_t p = 0; p < x->p.n; p++)
        if (x->word_of[p] >= 0) tn_set(a, x->word_of[p] * x->p.n + p, 1);
    return tn_div(a, tn_add_scalar(tn_sum(a, .dims = TN_DIMS(1), .keepdim = true), 1e-9));
}

/* translator.c — translates lines in batches of similar length, and computes BLEU. */
#include "translator.h"
#include "ensemble.h"
#include "stop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines ------------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t line, n; /* index of the line; its number of tokens */
} place;
static int by_length(const void *a, const void *b)
{
    const place *x = a, *y = b;
    return x->n != y->n ? (x->n > y->n) - (x->n < y->n) : (x->line > y->line) - (x->line < y->line);
}

/* A model of transformers: its tokenizer adds the tokens around a line. */
static bool is_foreign(const translator *m) { return m->net->config.type != NULL; }

/* Encodes a line, cut to the model's positions. */
static tn_status encode_line(const translator *m, tn_encoding *e, tn_text line)
{
    const int64_t most = m->net->config.positions;
    if (is_foreign(m)) return tn_tokenizer_encode(m->tokens, e, line.at, line.bytes, .max_length = most);
    return tn_tokenizer_encode(m->tokens, e, line.at, line.bytes, .bare = true, .literal = true,
                               .max_length = most - 1);
}

/* The maximum number of tokens of a translation, with the token that begins it, of a line of n tokens. It depends on
 * the line, not on its batch, so that a translation does not depend on its neighbours. */
static int64_t limit(const translator *m, const translate_options *how, int64_t n)
{
    const tn_seq2seq_config *c = &m->net->config;
    const bool               endless = c->kind != TN_SEQ2SEQ_TRANSFORMER && c->kind != TN_SEQ2SEQ_CONVS2S;
    const int64_t            room = endless ? 1 << 20 : c->positions, own = m->net->search.most + 1;
    const int64_t            most = how->most ? how->most + 1 : own > 1 ? own : 2 * (n + !is_foreign(m)) + 20;
    return most < room ? most : room;
}

static bool is_blank(tn_text line)
{
    for (size_t i = 0; i < line.bytes; i++)
        if (!strchr(" \t", line.at[i]) || !line.at[i]) return false;
    return true;
}

/* Counts the tokens of a line in *n (0: blank), and its faults in f, which may be NULL. */
static bool count_tokens(const translator *m, tn_encoding *e, tn_text line, int64_t number, faults *f, int64_t *n)
{
    *n = 0;
    if (is_blank(line)) return true;
    if (encode_line(m, e, line) != TN_OK) return false;
    *n = e->n;
    if (f && e->cut && !f->cut++) f->first_cut = f->before + number + 1;
    if (f && e->invalid && !f->broken++) f->first_break = f->before + number + 1;
    return true;
}

/* The short list of a batch, i64 in ascending order. The source's own tokens are in it, for names. */
static tn_tensor *candidates(const translator *m, const shortlist *s, tn_tensor *source)
{
    const tn_seq2seq_config *c = &m->net->config;
    const int64_t            n = tn_size(s->likely, 1), all = c->target_words;
    char                    *used = tn_mem_get((size_t)all);
    const int64_t           *likely = tn_data(s->likely), *frequent = tn_data(s->frequent), *id = tn_data(source);
    int64_t                  count = 0;
    if (!used || !likely || !frequent || !id) return NULL;
    memset(used, 0, (size_t)all);
    used[c->begin] = used[c->end] = 1;
    for (int64_t i = 0; i < tn_numel(s->frequent); i++) used[frequent[i]] = 1;
    for (int64_t i = 0; i < tn_numel(source); i++) {
        if (id[i] == c->padding) continue;
        if (id[i] < all) used[id[i]] = 1;
        for (int64_t k = 0; k < n; k++)
            if (likely[id[i] * n + k] >= 0) used[likely[id[i] * n + k]] = 1;
    }
    for (int64_t w = 0; w < all; w++) count += used[w];
    tn_tensor *words = tn_empty_of(TN_I64, TN_SHAPE(count));
    int64_t   *to = words ? tn_data_mut(words) : NULL;
    for (int64_t w = 0; to && w < all; w++)
        if (used[w]) *to++ = w;
    tn_mem_put(used, (size_t)all);
    return words;
}

/* The index of a token in a short list, or without one (NULL) itself. */
static int64_t index_of(const tn_tensor *words, int64_t token)
{
    int64_t i = words ? 0 : token;
    while (words && i < tn_numel(words) && tn_get_i64(words, i) != token) i++;
    return i;
}

/* Appends the text of a translation in which each unknown token is replaced by the token of the line that it attends to
 * most (Luong et al. 2015). Changes ids. */
static void append_copied(const translator *m, tn_encoding *e, tn_text line, int64_t n, int32_t *ids, tn_string *to)
{
    const tn_seq2seq_config *c = &m->net->config;
    const char              *name = tn_tokenizer_token(m->tokens, UNKNOWN), *at, *next;
    tn_tensor               *w = NULL;
    tn_string                text = {0};
    int64_t                  kept = 0;
    if (encode_line(m, e, line) != TN_OK) return;
    tn_tensor *source = tn_full_of(TN_I64, TN_SHAPE(1, e->n + 1), (double)c->end);
    tn_tensor *target = tn_full_of(TN_I64, TN_SHAPE(1, n), (double)c->begin);
    for (int64_t i = 0; source && i < e->n; i++) tn_set_i64(source, i, e->id[i]);
    for (int64_t k = 1; target && k < n; k++) tn_set_i64(target, k, ids[k - 1]);
    tn_seq2seq_forward(m->net, source, target, .alignment = &w);
    tn_tensor *most = tn_argmax(tn_narrow(w, 2, 0, e->n), 2, false); /* [1, n]; not the end */
    for (int64_t k = 0; most && k < n; k++)
        if (ids[k] == UNKNOWN || !tn_tokenizer_is_special(m->tokens, ids[k])) {
            tn_set_i64(most, kept, tn_get_i64(most, k));
            ids[kept++] = ids[k];
        }
    tn_tokenizer_decode(m->tokens, ids, kept, &text, .keep_special = true);
    at = text.at;
    for (int64_t k = 0; at && most && k < kept; k++)
        if (ids[k] == UNKNOWN && (next = strstr(at, name)) != NULL) {
            const int64_t from = tn_get_i64(most, k);
            tn_string_add(to, (tn_text){at, (size_t)(next - at)});
            tn_string_add(to, (tn_text){line.at + e->start[from], (size_t)(e->end[from] - e->start[from])});
            at = next + strlen(name);
        }
    if (at) tn_string_add(to, tn_text_of(at));
    tn_string_free(&text);
}

/* Appends the text of translation i; its tokens are indices in a short list, or without one (NULL) themselves. Tokens
 * that the tokenizer does not have (T5's embedding has more rows) have no text. line: the source to copy unknown words
 * from, or NULL. */
static void append(const translator *m, const tn_generated *g, int64_t i, const tn_tensor *of, tn_encoding *e,
                   const tn_text *line, tn_string *to)
{
    const tn_tokenizer *tokens = m->target ? m->target : m->tokens;
    const int64_t       n = tn_get_i64(g->lengths, i), from = i * tn_size(g->tokens, 2);
    int32_t            *ids = tn_mem_get((size_t)(n + 1) * sizeof *ids);
    int64_t             known = 0;
    bool                copies = false;
    for (int64_t k = 0; ids && k < n; k++) {
        const int64_t token = tn_get_i64(g->tokens, from + k);
        ids[known] = (int32_t)(of ? tn_get_i64(of, token) : token);
        copies = copies || (line && ids[known] == UNKNOWN);
        known += ids[known] < tn_tokenizer_size(tokens);
    }
    if (!ids) return;
    if (copies) append_copied(m, e, *line, known, ids, to);
    else tn_tokenizer_decode(tokens, ids, known, to);
    tn_mem_put(ids, (size_t)(n + 1) * sizeof *ids);
}

/* The translations of a batch whose shortest line is which[0]. of: a short list, or NULL. scored: scores are read. */
static tn_generated search(const translator *m, const translate_options *how, tn_tensor *source, tn_tensor *of,
                           tn_tensor *limits, const place *which, bool scored)
{
    const tn_seq2seq_search *own = &m->net->search;
    const int64_t            n = tn_size(source, 0), fewest = limit(m, how, which[0].n) - 1;
    tn_generate_args         a = {TN_GENERATE_ARGS_DEFAULTS};
    tn_generated             g = {NULL, NULL, NULL};
    a.most = limit(m, how, which[n - 1].n) - 1, a.most_each = limits;
    a.least = own->least < fewest ? own->least : fewest;
    a.beams = how->beams, a.best = how->best, a.unscored = how->beams == 1 && !scored;
    a.length_penalty = how->length_penalty, a.gnmt = how->gnmt, a.coverage = how->coverage;
    a.early_stopping = own->early_stopping || how->early_stopping, a.no_repeat = own->no_repeat;
    a.repetition_penalty = own->repetition_penalty;
    if (tn_error() != TN_OK) return g;
    if (!of && !how->others) return tn_seq2seq_generate_run(m->net, source, a);
    tn_seq2seq *all[ENSEMBLE_MOST] = {m->net};
    for (int i = 0; i < how->others; i++) all[i + 1] = how->other[i];
    a.from = how->others ? ensemble_decoding(how->others + 1, all, source, a.beams, a.most + 1)
                         : tn_seq2seq_decoding(m->net, source, a.beams, a.most + 1);
    if (a.from && (!of || tn_seq2seq_shortlist(a.from, of) == TN_OK)) {
        a.prompt = tn_full_of(TN_I64, TN_SHAPE(n, 1), (double)index_of(of, m->net->config.begin));
        a.end = index_of(of, m->net->config.end);
        g = tn_generate_run(a);
    }
    tn_decoding_free(a.from);
    return g;
}

static bool translate_batch(const translator *m, const translate_options *how, int64_t n, const place *which,
                            const tn_text *lines, tn_encoding *e, tn_string *to, double *scores)
{
    const tn_scope           s = tn_no_grad_begin();
    const tn_seq2seq_config *c = &m->net->config;
    const int64_t            width = which[n - 1].n + !is_foreign(m);
    tn_tensor               *limits = tn_empty_of(TN_I64, TN_SHAPE(n));
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) tn_set_i64(limits, i, limit(m, how, which[i].n) - 1);
    tn_tensor *source = tn_full_of(TN_I64, TN_SHAPE(n, width), (double)c->padding);
    int64_t   *id = source ? tn_data_mut(source) : NULL;
    for (int64_t i = 0; id && i < n; i++) {
        if (encode_line(m, e, lines[which[i].line]) != TN_OK) break;
        for (int64_t k = 0; k < e->n; k++) id[i * width + k] = e->id[k];
        if (!is_foreign(m)) id[i * width + e->n] = c->end;
    }
    if (tn_error() == TN_OK) {
        tn_tensor         *of = how->tokens ? candidates(m, how->tokens, source) : NULL;
        const tn_generated g = search(m, how, source, of, limits, which, scores != NULL);
        for (int64_t i = 0; g.tokens && i < n * how->best; i++) {
            const int64_t at = which[i / how->best].line * how->best + i % how->best;
            append(m, &g, i, of, e, how->copies ? &lines[which[i / how->best].line] : NULL, &to[at]);
            if (scores) scores[at] = tn_get(g.scores, i);
        }
    }
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

/* The number of the n sorted lines that a batch takes, at least 1. */
static int64_t batch_count(const translate_options *how, const place *order, int64_t n)
{
    int64_t k = 1;
    while (k < n && k < how->batch && (k + 1) * order[k].n <= how->budget) k++;
    return k;
}

bool translate_lines(const translator *m, const translate_options *how, int64_t n, const tn_text *lines, tn_string *to,
                     double *scores)
{
    tn_encoding *e = tn_encoding_new();
    place       *order = n ? tn_mem_get((size_t)n * sizeof *order) : NULL;
    int64_t      i = 0;
    for (; order && i < n; i++) {
        order[i].line = i;
        if (!count_tokens(m, e, lines[i], i, how->found, &order[i].n)) break;
    }
    if (order && tn_error() == TN_OK) qsort(order, (size_t)n, sizeof *order, by_length);
    for (i = 0; order && i < n && tn_error() == TN_OK && !order[i].n; i++) { /* nothing to translate */
        for (int64_t k = 0; scores && k < how->best; k++) scores[order[i].line * how->best + k] = 0;
    }
    for (int64_t some; order && i < n && tn_error() == TN_OK; i += some) {
        some = batch_count(how, order + i, n - i);
        translate_batch(m, how, some, order + i, lines, e, to, scores);
    }
    if (how->found) how->found->before += n;
    if (order) tn_mem_put(order, (size_t)n * sizeof *order);
    tn_encoding_free(e);
    return tn_error() == TN_OK;
}

/* ---- BLEU -------------------------------------------------------------------------------------------------------- */

bool bleu_set_open(bleu_set *b, tn_tokenizer *t, const char *source, const char *target, int64_t most)
{
    *b = (bleu_set){.most = most, .tokens = t, .source = tn_lines_load(source), .target = tn_lines_load(target)};
    return tn_error() == TN_OK;
}
void bleu_set_close(bleu_set *b)
{
    tn_lines_free(b->source), tn_lines_free(b->target);
    *b = (bleu_set){.source = NULL};
}

/* Translates SOME lines at a time and checks for Ctrl-C in between. */
double bleu_set_score(void *net, void *user)
{
    enum { SOME = 256 };
    const bleu_set         *b = user;
    const translator        m = {.net = net, .tokens = b->tokens};
    const translate_options greedy = {.beams = 1, .best = 1, .batch = 64, .budget = 4096, .length_penalty = 1};
    const int64_t           all = tn_lines_count(b->source), n = b->most && b->most < all ? b->most : all;
    tn_bleu                 bleu = {.tokenize = TN_BLEU_13A};
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i += SOME) {
        tn_text       lines[SOME];
        tn_string     said[SOME] = {{0}};
        const int64_t some = n - i < SOME ? n - i : SOME;
        if (stop_flag) return NAN;
        for (int64_t k = 0; k < some; k++) lines[k] = tn_lines_at(b->source, i + k);
        translate_lines(&m, &greedy, some, lines, said, NULL);
        for (int64_t k = 0; k < some; k++) {
            const tn_text right = tn_lines_at(b->target, i + k), is = {said[k].at ? said[k].at : "", said[k].bytes};
            tn_bleu_add(&bleu, is, 1, &right);
            tn_string_free(&said[k]);
        }
    }
    return tn_bleu_score(&bleu);
}

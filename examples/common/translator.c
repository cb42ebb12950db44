/* translator.c — translates lines in batches of similar length, and computes BLEU. */
#include "translator.h"
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
    const int64_t room = c->kind == TN_SEQ2SEQ_TRANSFORMER ? c->positions : 1 << 20, own = m->net->search.most + 1;
    const int64_t most = how->most ? how->most : own > 1 ? own : 2 * (n + !is_foreign(m)) + 20;
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

static bool translate_batch(const translator *m, const translate_options *how, int64_t n, const place *which,
                            const tn_text *lines, tn_encoding *e, tn_string *to, double *scores)
{
    const tn_scope           s = tn_no_grad_begin();
    const tn_seq2seq_config *c = &m->net->config;
    const int64_t            width = which[n - 1].n + !is_foreign(m), most = limit(m, how, which[n - 1].n) - 1;
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
        const tn_seq2seq_search *own = &m->net->search;
        const int64_t            fewest = limit(m, how, which[0].n) - 1;
        const int64_t            least = own->least < fewest ? own->least : fewest;

        tn_generated g = tn_seq2seq_generate(
            m->net, source, .most = most, .most_each = limits, .least = least, .beams = how->beams, .best = how->best,
            .length_penalty = how->length_penalty, .gnmt = how->gnmt, .coverage = how->coverage,
            .early_stopping = own->early_stopping, .no_repeat = own->no_repeat,
            .repetition_penalty = own->repetition_penalty, .unscored = how->beams == 1 && !scores);
        const tn_tokenizer *tokens = m->target ? m->target : m->tokens;
        const int64_t       longest = g.tokens ? tn_size(g.tokens, 2) : 0;
        int32_t            *ids = tn_mem_get((size_t)(longest + 1) * sizeof *ids);
        for (int64_t i = 0; ids && g.tokens && i < n * how->best; i++) {
            const int64_t at = which[i / how->best].line * how->best + i % how->best, words = tn_get_i64(g.lengths, i);
            int64_t known = 0; /* T5's embedding has more rows than its tokenizer has tokens: these have no text */
            for (int64_t k = 0; k < words; k++) {
                ids[known] = (int32_t)tn_get_i64(g.tokens, i * longest + k);
                known += ids[known] < tn_tokenizer_size(tokens);
            }
            tn_tokenizer_decode(tokens, ids, known, &to[at]);
            if (scores) scores[at] = tn_get(g.scores, i);
        }
        if (ids) tn_mem_put(ids, (size_t)(longest + 1) * sizeof *ids);
    }
    tn_scope_end(s);
    return tn_error() == TN_OK;
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
        some = n - i < how->batch ? n - i : how->batch;
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
    const translate_options greedy = {.beams = 1, .best = 1, .batch = 64, .length_penalty = 1};
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

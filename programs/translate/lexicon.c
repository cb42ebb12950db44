/* lexicon.c — translate lexicon: finds the likely translations of each source token, from parallel texts, for
 * `translate run --shortlist`. They are the target tokens with the highest Dice coefficient: twice the number of pairs
 * of lines with both tokens, divided by the sum of the numbers with each. */
#include "../common/files.h"
#include "translate.h"

#include <stdlib.h>
#include <string.h>

static const char *model_dir, *source_path, *target_path;
static int64_t     each = 20, frequent = 200, most = 100000;

#define FILE_NAME "shortlist.safetensors"

/* ---- counting ---------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t   tokens;   /* in the vocabulary */
    int64_t  *count[2]; /* pairs of lines with this source token, target token */
    uint64_t *both;     /* source token · 2^32 + target token, once per pair of lines */
    size_t    n, room;
} counts;

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The distinct tokens of a line, in ascending order. Returns their number. */
static size_t distinct(const model *m, tn_encoding *e, tn_text line, uint64_t *to)
{
    enum { LONGEST = 256 };
    size_t n = 0;
    if (tn_tokenizer_encode(m->tokens, e, line.at, line.bytes, .bare = true, .literal = true, .max_length = LONGEST))
        return 0;
    for (int64_t i = 0; i < e->n; i++) to[i] = (uint64_t)e->id[i];
    qsort(to, (size_t)e->n, sizeof *to, by_value);
    for (int64_t i = 0; i < e->n; i++)
        if (to[i] < (uint64_t)m->net->config.source_words && (!n || to[n - 1] != to[i])) to[n++] = to[i];
    return n;
}

static bool count_pair(counts *c, const model *m, tn_encoding *e, tn_text source, tn_text target)
{
    uint64_t     of[2][256];
    const size_t n[2] = {distinct(m, e, source, of[0]), distinct(m, e, target, of[1])};
    if (c->room < c->n + n[0] * n[1]) {
        const size_t room = 2 * c->room + n[0] * n[1];
        uint64_t    *more = realloc(c->both, room * sizeof *more);
        if (!more) return tn_raise_false(TN_ENOMEM, "no memory for %zu pairs of tokens; set a lower --lines", room);
        c->both = more, c->room = room;
    }
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < n[k]; i++) c->count[k][of[k][i]]++;
    for (size_t i = 0; i < n[0]; i++)
        for (size_t k = 0; k < n[1]; k++) c->both[c->n++] = of[0][i] << 32 | of[1][k];
    return tn_error() == TN_OK;
}

static bool count_all(counts *c, const model *m)
{
    tn_lines     *source = tn_lines_load(source_path), *target = source ? tn_lines_load(target_path) : NULL;
    tn_encoding  *e = target ? tn_encoding_new() : NULL;
    const int64_t n = tn_lines_count(source), other = tn_lines_count(target);
    if (e && n != other)
        tn_raise(TN_EFORMAT,
                 "'%s' has %lld lines, but '%s' %lld; line i of one must be the translation of line i of "
                 "the other",
                 source_path, (long long)n, target_path, (long long)other);
    for (int64_t i = 0; e && i < n && i < most && tn_error() == TN_OK; i++)
        count_pair(c, m, e, tn_lines_at(source, i), tn_lines_at(target, i));
    tn_encoding_free(e);
    tn_lines_free(source), tn_lines_free(target);
    if (tn_error() == TN_OK && c->n) qsort(c->both, c->n, sizeof *c->both, by_value);
    return tn_error() == TN_OK;
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

/* Keeps the best n in to[], best first; of equal scores the earlier. */
static void keep(int64_t *to, double *score, int64_t n, int64_t token, double value)
{
    int64_t at = n;
    while (at > 0 && value > score[at - 1]) at--;
    if (at == n) return;
    memmove(to + at + 1, to + at, (size_t)(n - 1 - at) * sizeof *to);
    memmove(score + at + 1, score + at, (size_t)(n - 1 - at) * sizeof *score);
    to[at] = token, score[at] = value;
}

static tn_tensor *likely_of(const counts *c, double *score)
{
    tn_tensor *t = tn_full_of(TN_I64, TN_SHAPE(c->tokens, each), -1);
    int64_t   *to = t ? tn_data_mut(t) : NULL;
    for (size_t i = 0, n; to && i < c->n; i += n) {
        const int64_t source = (int64_t)(c->both[i] >> 32), target = (int64_t)(c->both[i] & 0xffffffff);
        if (!i || (int64_t)(c->both[i - 1] >> 32) != source) memset(score, 0, (size_t)each * sizeof *score);
        for (n = 1; i + n < c->n && c->both[i + n] == c->both[i];) n++;
        const double all = (double)(c->count[0][source] + c->count[1][target]);
        keep(to + source * each, score, each, target, 2 * (double)n / all);
    }
    return t;
}

static tn_tensor *frequent_of(const counts *c, double *score)
{
    int64_t n = 0;
    for (int64_t i = 0; i < c->tokens; i++) n += c->count[1][i] > 0;
    n = n < frequent ? n : frequent;
    tn_tensor *t = tn_full_of(TN_I64, TN_SHAPE(n), -1);
    int64_t   *to = t ? tn_data_mut(t) : NULL;
    memset(score, 0, (size_t)n * sizeof *score);
    for (int64_t i = 0; to && i < c->tokens; i++) keep(to, score, n, i, (double)c->count[1][i]);
    return t;
}

static bool save(const counts *c)
{
    char           path[1024];
    double        *score = calloc((size_t)(each > frequent ? each : frequent) + 1, sizeof *score);
    const tn_scope s = tn_no_grad_begin();
    if (!score) tn_raise(TN_ENOMEM, "no memory for the best tokens");
    tn_tensor             *likely = score ? likely_of(c, score) : NULL, *often = likely ? frequent_of(c, score) : NULL;
    tn_safetensors_writer *w = often ? tn_safetensors_writer_new() : NULL;
    if (w) {
        tn_safetensors_put(w, "likely", likely), tn_safetensors_put(w, "frequent", often);
        if (tn_error() == TN_OK) (void)!tn_safetensors_save(w, in_folder(model_dir, FILE_NAME, path));
        tn_safetensors_writer_free(w);
    }
    tn_scope_end(s);
    free(score);
    return tn_error() == TN_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* True if all elements are from `low` to below `end`. */
static bool are_tokens(const tn_tensor *t, int dims, int64_t low, int64_t end)
{
    const int64_t *id = t && tn_dtype_of(t) == TN_I64 && tn_ndim(t) == dims ? tn_data(t) : NULL;
    bool           good = id != NULL;
    for (int64_t i = 0; good && i < tn_numel(t); i++) good = id[i] >= low && id[i] < end;
    return good;
}

/* A model of transformers has its own rules for tokens, by their ids. */
static bool is_own(const model *m)
{
    const char *type = m->net->config.type;
    return !type ||
           tn_raise_false(TN_EUNSUPPORTED,
                          "short lists are for models of 'translate train', but this one is of type '%s'", type);
}

bool shortlist_open(const char *dir, const model *m, shortlist *s)
{
    const tn_seq2seq_config *c = &m->net->config;
    char                     path[1024];
    const char              *at = is_own(m) ? in_folder(dir, FILE_NAME, path) : NULL;
    if (!at) return false;
    if (tn_error() == TN_OK && !file_exists(at))
        return tn_raise_false(TN_EIO, "'%s' does not exist; create it with 'translate lexicon'", at);
    tn_safetensors *f = tn_safetensors_open(at);
    *s = (shortlist){tn_take(tn_safetensors_get(f, "likely")), tn_take(tn_safetensors_get(f, "frequent"))};
    tn_safetensors_close(f);
    if (tn_error() == TN_OK &&
        (!are_tokens(s->likely, 2, -1, c->target_words) || !are_tokens(s->frequent, 1, 0, c->target_words) ||
         tn_size(s->likely, 0) != c->source_words))
        tn_raise(TN_EFORMAT, "'%s' is not a short list of this model; create it again with 'translate lexicon'", at);
    if (tn_error() != TN_OK) shortlist_close(s);
    return tn_error() == TN_OK;
}

void shortlist_close(shortlist *s)
{
    tn_drop(s->likely), tn_drop(s->frequent);
    *s = (shortlist){NULL, NULL};
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    model  m;
    counts c = {.both = NULL};
    if (model_open(model_dir, &m)) {
        if (!is_own(&m)) return model_close(&m), program_end();
        c.tokens = m.net->config.source_words;
        for (int k = 0; k < 2; k++) c.count[k] = calloc((size_t)c.tokens, sizeof *c.count[k]);
        if (!c.count[0] || !c.count[1]) tn_raise(TN_ENOMEM, "no memory for %lld tokens", (long long)c.tokens);
        else if (count_all(&c, &m)) save(&c);
        free(c.count[0]), free(c.count[1]), free(c.both);
        model_close(&m);
    }
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &model_dir, "folder of the model", .required = true),
    OPTION_TEXT("src", 0, "FILE", &source_path, "source text, one sentence per line", .required = true),
    OPTION_TEXT("tgt", 0, "FILE", &target_path, "target text: translations of --src, line by line", .required = true),
    OPTION_INT("each", 0, "N", &each, "translations per source token", .least = 1, .most = 1000),
    OPTION_INT("frequent", 0, "N", &frequent, "most frequent target tokens, which every translation may use",
               .least = 0, .most = 100000),
    OPTION_INT("lines", 0, "N", &most, "read at most N lines", .least = 1, .most = 1e9),
    {0},
};
const command lexicon_command =
    COMMAND("lexicon", "find likely translations of tokens, for run --shortlist", options,
            .text = "Counts which tokens occur together in --src and --tgt, the training texts, and writes "
                    "shortlist.safetensors to the model's folder. 'translate run --shortlist' then computes the "
                    "scores of these tokens only.\n\n"
                    "  translate lexicon --model ende --src train.en --tgt train.de");

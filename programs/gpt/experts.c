/* experts.c — gpt experts: which of its experts a model uses for which tokens of a text. */
#include "gpt.h"

#include <stdlib.h>
#include <string.h>

static const char *dir, *tokenizer;
static int64_t     tokens = 8, length;
enum { MOST_NAMED = 64 };

/* How often each expert of each layer was chosen for each token of the vocabulary. */
typedef struct {
    int64_t   layers, experts, vocab, read; /* read: tokens of the text */
    uint32_t *chosen, *seen;                /* [layers, experts, vocab], [vocab] */
} uses;

static uint32_t *chosen_at(const uses *u, int64_t layer, int64_t expert)
{
    return u->chosen + (layer * u->experts + expert) * u->vocab;
}

/* Counts one window of n tokens. */
static bool count_window(const model *m, const int32_t *ids, int64_t n, uses *u)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor    **router = calloc((size_t)u->layers, sizeof *router);
    tn_tensor     *x = tn_from_data(TN_I32, TN_SHAPE(1, n), ids);
    const bool     ran = router && tn_lm_forward(m->net, x, .vectors = true, .router = router);
    if (!router) tn_raise(TN_ENOMEM, "no memory for the logits of %lld layers", (long long)u->layers);
    for (int64_t l = 0; ran && l < u->layers && tn_error() == TN_OK; l++) {
        if (!router[l]) continue;
        if (!u->chosen) u->experts = tn_size(router[l], 1);
        if (!u->chosen) u->chosen = calloc((size_t)(u->layers * u->experts * u->vocab), sizeof *u->chosen);
        if (!u->chosen) tn_raise(TN_ENOMEM, "no memory to count the tokens of %lld experts", (long long)u->experts);
        tn_tensor *best = tn_topk(router[l], m->about.experts_per_token, -1).indices;
        for (int64_t i = 0, k = best ? tn_size(best, 1) : 0; i < n * k; i++)
            chosen_at(u, l, tn_get_i64(best, i))[ids[i / k]]++;
    }
    for (int64_t i = 0; i < n; i++) u->seen[ids[i]]++;
    u->read += n;
    free(router);
    tn_scope_end(s);
    if (tn_error() == TN_OK && !u->chosen)
        tn_raise(TN_EINVAL, "the model has no experts; train one with gpt train --experts");
    return tn_error() == TN_OK;
}

/* Prints the tokens that the expert gets more often than its share of all tokens, the largest excess first. */
static void show_expert(const model *m, const uses *u, int64_t layer, int64_t expert)
{
    const uint32_t *chosen = chosen_at(u, layer, expert);
    double          all = 0, excess[MOST_NAMED];
    int64_t         best[MOST_NAMED], n = 0;
    for (int64_t t = 0; t < u->vocab; t++) all += chosen[t];
    const double share = all / (double)u->read;
    for (int64_t t = 0; t < u->vocab; t++) {
        const double more = chosen[t] - share * u->seen[t];
        int64_t      at = n;
        if (more <= 0) continue;
        while (at > 0 && excess[at - 1] < more) at--;
        if (at >= tokens) continue;
        if (n < tokens) n++;
        for (int64_t i = n - 1; i > at; i--) best[i] = best[i - 1], excess[i] = excess[i - 1];
        best[at] = t, excess[at] = more;
    }
    printf("  expert %-3lld %5.1f %%  ", (long long)expert + 1, 100 * share / (double)m->about.experts_per_token);
    for (int64_t i = 0; i < n; i++) {
        const int32_t id = (int32_t)best[i];
        tn_string     text = {0};
        if (tn_tokenizer_decode(m->tokens, &id, 1, &text) != TN_OK) break;
        for (char *c = text.at; c && *c; c++)
            if (*c == '\n') *c = ' ';
        printf("%s'%s' %.0f %%", i ? ", " : "", text.at ? text.at : "", 100.0 * chosen[id] / u->seen[id]);
        tn_string_free(&text);
    }
    printf("\n");
}

static void show(const model *m, const uses *u)
{
    for (int64_t l = 0; l < u->layers; l++) {
        printf("layer %lld\n", (long long)l + 1);
        for (int64_t e = 0; e < u->experts && tn_error() == TN_OK; e++) show_expert(m, u, l, e);
    }
}

static int run(int count, char **operands)
{
    model             m;
    tn_string         text = {0};
    tn_ids            ids = {0};
    uses              u = {.read = 0};
    const option_list files = {count, (const char **)(uintptr_t)operands};
    if (!texts_read(&files, &text) || !model_open(dir, tokenizer, false, &m))
        return tn_string_free(&text), program_end();
    u.layers = m.about.layers, u.vocab = m.about.vocab;
    const int64_t n = length && length < m.about.positions ? length : m.about.positions;
    u.seen = calloc((size_t)u.vocab, sizeof *u.seen);
    if (!u.seen) tn_raise(TN_ENOMEM, "no memory to count %lld tokens", (long long)u.vocab);
    else if (texts_encode(m.tokens, (tn_text){text.at, text.bytes}, true, &ids) && !ids.n)
        tn_raise(TN_EFORMAT, "the text is empty");
    stop_begin("ending");
    progress bar = progress_begin("experts", ids.n, "token");
    for (int64_t at = 0; at < ids.n && tn_error() == TN_OK && !stop_flag; at += n) {
        if (!count_window(&m, ids.at + at, ids.n - at < n ? ids.n - at : n, &u)) break;
        progress_at(&bar, at, NULL);
    }
    progress_end(&bar);
    if (tn_error() == TN_OK && !stop_flag) show(&m, &u);
    free(u.chosen), free(u.seen);
    tn_ids_free(&ids), tn_string_free(&text);
    model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &dir, MODEL_HELP, .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &tokenizer, TOKENIZER_HELP),
    OPTION_INT("tokens", 'n', "N", &tokens, "tokens to print for each expert", .least = 0, .most = MOST_NAMED),
    OPTION_INT("length", 'l', "N", &length, "tokens per window (default: the model's maximum)", .least = 1,
               .most = 1e6),
    {0},
};
const command experts_command =
    COMMAND("experts", "show which tokens a model's experts are used for", options, .operands = "FILE...", .least = 1,
            .most = -1,
            .text = "For a model with a mixture of experts: prints for each layer and expert its share of the "
                    "experts that the text's tokens use, which add up to 100 % in each layer, and the tokens that it "
                    "gets more often than others, each with the percentage of its occurrences.");

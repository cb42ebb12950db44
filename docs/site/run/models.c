/* models.c — what the page "Your own model" runs: models PATH TOKENIZER TEXT TOKENS TEMPERATURE SEED. PATH is a model
 * as for tn_model_open, TOKENIZER a file or "". An encoder fills in the masks of TEXT, as `bert fill`; a language model
 * continues it, as `gpt write`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

static void fill(const tn_model *m, const char *text)
{
    enum { BEST = 5, MOST = 100 };
    tn_bert_fill  found[MOST];
    const int64_t masks = tn_bert_fill_in(m->bert, m->tokenizer, text, BEST, MOST, found);
    for (int64_t i = 0; i < masks * BEST; i++)
        printf("%s%6.2f %%  %s\n", i && i % BEST == 0 ? "\n" : "", 100 * found[i].probability,
               tn_tokenizer_token(m->tokenizer, found[i].id));
}

typedef struct {
    const tn_model *m;
    tn_ids          all; /* the prompt and the new tokens */
    size_t          shown;
} writing;

/* Prints the bytes that a token adds, as soon as they complete a character. */
static bool each(int64_t row, int64_t id, void *user)
{
    writing  *w = user;
    tn_string text = {0};
    (void)row;
    for (int64_t i = 0; i < w->m->ends.n; i++)
        if (id == w->m->ends.at[i]) return false;
    if (w->all.n && id == w->all.at[0] && tn_tokenizer_is_special(w->m->tokenizer, (int32_t)id)) return false;
    tn_ids_add(&w->all, (int32_t)id);
    if (tn_tokenizer_decode(w->m->tokenizer, w->all.at, w->all.n, &text) == TN_OK && text.bytes >= w->shown &&
        !strstr(text.at + w->shown, "\uFFFD"))
        w->shown += fwrite(text.at + w->shown, 1, text.bytes - w->shown, stdout);
    tn_string_free(&text);
    return tn_error() == TN_OK && fflush(stdout) == 0;
}

static void continue_text(const tn_model *m, const char *text, int64_t tokens, double temperature)
{
    writing        w = {.m = m};
    tn_token_batch b = {.ids = NULL};
    if (tn_tokenizer_batch(m->tokenizer, &b, 1, &text) != TN_OK) return;
    const int64_t n = tn_numel(b.ids), room = tn_lm_info_of(m->lm).positions;
    if (n >= room)
        tn_raise(TN_EINVAL, "the text has %lld tokens, the model reads at most %lld; shorten it", (long long)n,
                 (long long)room);
    if (tokens > room - n) tokens = room - n; /* `gpt write` would keep the last half of a full context */
    tn_decoding *d = tokens > 0 ? tn_lm_decoding(m->lm, 1, n + tokens) : NULL;
    for (int64_t i = 0; i < n; i++) each(0, tn_get_i64(b.ids, i), &w);
    if (d)
        tn_generate(d, b.ids, .most = tokens, .end = tn_tokenizer_special(m->tokenizer).last, .sample = temperature > 0,
                    .unscored = temperature <= 0, .temperature = temperature > 0 ? temperature : 1, .each = each,
                    .user = &w);
    printf("\n");
    tn_decoding_free(d), tn_ids_free(&w.all);
}

int main(int argc, char **argv)
{
    if (argc != 7) return fprintf(stderr, "models PATH TOKENIZER TEXT TOKENS TEMPERATURE SEED\n"), 2;
    tn_seed(strtoull(argv[6], NULL, 10));
    tn_model       m = tn_model_open(argv[1], .tokenizer = *argv[2] ? argv[2] : NULL, .needs_tokenizer = true);
    const tn_scope s = tn_no_grad_begin();
    if (m.family == TN_MODEL_ENCODER) fill(&m, argv[3]);
    else if (m.family == TN_MODEL_DECODER)
        continue_text(&m, argv[3], strtoll(argv[4], NULL, 10), strtod(argv[5], NULL));
    else if (m.family) fprintf(stderr, "this page runs encoders and language models; the model is a '%s'\n", m.type);
    tn_scope_end(s);
    const int failed = tn_error() != TN_OK;
    if (failed) fprintf(stderr, "%s\n", tn_error_message());
    tn_model_close(&m);
    return failed;
}

/* align.c — the attention from each output token to the source tokens, for the page of translate demo. */
#include "translate.h"

/* The tokens as labels of the heatmap, with visible blanks. */
typedef struct {
    tn_string   text[512];
    const char *name[512];
    int64_t     n;
} token_labels;
static void append_visible(tn_string *name, tn_text piece)
{
    for (size_t i = 0; i < piece.bytes; i++)
        tn_string_add(name, piece.at[i] == ' ' ? tn_text_of("␣") : (tn_text){piece.at + i, 1});
}
/* Decodes `count` tokens into `to`. Returns false if the text starts or ends in the middle of a character. */
static bool text_of(const tn_tokenizer *t, int64_t count, const int64_t *ids, tn_string *to)
{
    int32_t id[4];
    bool    valid = true;
    for (int64_t i = 0; i < count; i++) id[i] = (int32_t)ids[i];
    tn_string_free(to);
    tn_tokenizer_decode(t, id, count, to);
    for (size_t at = 0; at < to->bytes && valid;) valid = tn_utf8_next(to->at, to->bytes, &at, NULL) != TN_REPLACEMENT;
    return valid;
}
/* A character of several tokens labels the first of them; the others get a dot. */
static void label_tokens(token_labels *p, const tn_tokenizer *t, int64_t n, const int64_t *ids)
{
    tn_string translation = {0};
    int64_t   dots = 0;
    p->n = n < 512 ? n : 512;
    for (int64_t i = 0; i < p->n; i++) {
        p->text[i] = (tn_string){0};
        if (tn_tokenizer_is_special(t, (int32_t)ids[i])) {
            append_visible(&p->text[i], tn_text_of(tn_tokenizer_token(t, (int32_t)ids[i])));
        } else if (dots > 0) {
            dots--, append_visible(&p->text[i], tn_text_of("·"));
        } else {
            int64_t count = 1;
            while (!text_of(t, count, ids + i, &translation) && count < 4 && i + count < p->n) count++;
            dots = text_of(t, count, ids + i, &translation) ? count - 1 : 0;
            append_visible(&p->text[i], (tn_text){translation.at ? translation.at : "", translation.bytes});
        }
        p->name[i] = p->text[i].at ? p->text[i].at : "";
    }
    tn_string_free(&translation);
}
static void free_labels(token_labels *p)
{
    for (int64_t i = 0; i < p->n; i++) tn_string_free(&p->text[i]);
}

bool align_picture(const model *m, const char *text, tn_report *r, tn_string *translation)
{
    const tn_text           line = tn_text_of(text);
    const translate_options greedy = {.beams = 1, .best = 1, .batch = 1, .budget = 4096, .length_penalty = 1};
    tn_encoding            *e = tn_encoding_new();
    int64_t                 ids[2][512] = {{0}}, n[2] = {0, 1};
    static token_labels     name[2];
    char                    title[1024];
    const tn_scope          s = tn_no_grad_begin();
    if (translate_lines(m, &greedy, 1, &line, translation, NULL)) {
        const tn_text both[2] = {line, {translation->at ? translation->at : "", translation->bytes}};
        ids[1][0] = BEGIN;
        for (int k = 0; k < 2; k++) {
            tn_tokenizer_encode(m->tokens, e, both[k].at, both[k].bytes, .bare = true, .literal = true,
                                .max_length = 500);
            for (int64_t i = 0; tn_error() == TN_OK && i < e->n; i++) ids[k][n[k]++] = e->id[i];
            if (k == 0) ids[0][n[0]++] = END;
        }
        tn_tensor *w = NULL, *x = tn_from_data(TN_I64, TN_SHAPE(1, n[0]), ids[0]);
        tn_seq2seq_forward(m->net, x, tn_from_data(TN_I64, TN_SHAPE(1, n[1]), ids[1]), .alignment = &w);
        ids[1][n[1]] = END;
        label_tokens(&name[0], m->tokens, n[0], ids[0]);
        label_tokens(&name[1], m->tokens, n[1], ids[1] + 1);
        snprintf(title, sizeof title, "%s → %.*s", text, (int)both[1].bytes, both[1].at);
        if (w) tn_report_heatmap(r, title, n[1], name[1].name, n[0], name[0].name, tn_select(w, 0, 0));
        free_labels(&name[0]), free_labels(&name[1]);
    }
    tn_scope_end(s);
    tn_encoding_free(e);
    return tn_error() == TN_OK;
}

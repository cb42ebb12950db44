/* main.c — generates a text by a rule: constrain prefix|ban|answers|json PATH PROMPT ARGUMENT... The rules are one file
 * each; answers prints all of them with their log-probabilities, the most likely first.
 * Build: cc -O2 *.c -o constrain $(pkg-config --cflags --libs tenon) */
#include "constrain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tokens of each argument, and the text of each token. */
static void prepare(rules *r, const tn_tokenizer *t)
{
    tn_encoding *e = tn_encoding_new();
    r->known = tn_tokenizer_size(t), r->end = tn_tokenizer_special(t).last;
    r->ids = calloc((size_t)r->count, sizeof *r->ids), r->text = calloc((size_t)r->known + 1, sizeof *r->text);
    if (!r->ids || !r->text) tn_raise(TN_ENOMEM, "no memory for the tokens");
    for (int i = 0; i < r->count && !tn_error(); i++) {
        tn_tokenizer_encode(t, e, r->words[i], strlen(r->words[i]), .bare = true);
        for (int64_t k = 0; k < e->n && !tn_error(); k++) tn_ids_add(&r->ids[i], e->id[k]);
    }
    for (int64_t w = 0; w < r->known && !tn_error(); w++)
        tn_tokenizer_decode_next(t, &(tn_text_stream){.begun = true}, (int32_t)w, &r->text[w]);
    tn_encoding_free(e);
}

static void print_text(const tn_tokenizer *t, tn_generated g, int64_t i)
{
    tn_ids    ids = {0};
    tn_string text = {0};
    for (int64_t k = 0; k < tn_get_i64(g.lengths, i); k++)
        tn_ids_add(&ids, (int32_t)tn_get_i64(g.tokens, i * tn_size(g.tokens, 2) + k));
    if (tn_tokenizer_decode(t, ids.at, ids.n, &text, .keep_spaces = true) == TN_OK)
        printf("%s\n", text.at ? text.at : "");
    tn_ids_free(&ids), tn_string_free(&text);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        tn_status (*adjust)(const tn_next_token *, void *);
    } known[] = {{"prefix", prefix}, {"ban", ban}, {"answers", answers}, {"json", json}};
    int which = 0;
    while (argc > 4 && which < 4 && strcmp(argv[1], known[which].name) != 0) which++;
    if (argc < 5 || which == 4)
        return fprintf(stderr, "Usage: constrain prefix|ban|answers|json PATH PROMPT ARGUMENT...\n"), 2;
    rules          r = {.count = argc - 4, .words = argv + 4};
    tn_token_batch b = {.ids = NULL};
    tn_model       m = tn_model_open(argv[2], .family = TN_MODEL_DECODER, .needs_tokenizer = true);
    tn_tokenizer_batch(m.tokenizer, &b, 1, (const char *[]){argv[3]});
    if (b.ids) prepare(&r, m.tokenizer);
    if (which == 3) r.schema = tn_json_parse(argv[4], strlen(argv[4]));
    const int64_t beams = which != 2 ? 1 : r.count < 64 ? r.count : 64, room = tn_lm_info_of(m.lm).positions;
    const int64_t wanted = b.ids ? tn_numel(b.ids) + 100 : 0;
    tn_decoding  *d = tn_lm_decoding(m.lm, beams, wanted < room ? wanted : room);
    tn_generated  g = tn_generate(d, b.ids, .end = r.end, .beams = beams, .best = beams, .length_penalty = 0,
                                  .adjust = known[which].adjust, .user = &r);
    for (int64_t i = 0; i < beams && !tn_error(); i++) {
        if (which == 2) printf("%.4f ", tn_get(g.scores, i));
        print_text(m.tokenizer, g, i);
    }
    if (tn_error()) fprintf(stderr, "constrain: %s\n", tn_error_message());
    for (int i = 0; r.ids && i < r.count; i++) tn_ids_free(&r.ids[i]);
    for (int64_t w = 0; r.text && w < r.known; w++) tn_string_free(&r.text[w]);
    free(r.ids), free(r.text), tn_json_free(r.schema), tn_decoding_free(d), tn_model_close(&m);
    return tn_error() != TN_OK;
}

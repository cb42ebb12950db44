/* embed_gpt.c — a small program that generates text: embed_gpt PATH "The old man" 100 [TOKENIZER]. PATH is a folder of
 * Hugging Face's libraries or of gpt train, a .gguf file, or a .bin file of llama2.c.
 * Build: cc -O2 embed_gpt.c -o embed_gpt $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

typedef struct {
    const tn_tokenizer *tokens;
    tn_ids              all; /* the prompt and the generated tokens */
    size_t              shown;
} writing;

/* Prints the bytes that a token adds, as soon as they complete a character. */
static bool each(int64_t row, int64_t id, void *user)
{
    writing  *w = user;
    tn_string text = {0};
    (void)row, tn_ids_add(&w->all, (int32_t)id);
    if (tn_tokenizer_decode(w->tokens, w->all.at, w->all.n, &text) == TN_OK && !strstr(text.at + w->shown, "\uFFFD"))
        w->shown += fwrite(text.at + w->shown, 1, text.bytes - w->shown, stdout);
    tn_string_free(&text);
    return tn_error() == TN_OK && fflush(stdout) == 0; /* false would end the text */
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "Usage: embed_gpt PATH PROMPT TOKENS [TOKENIZER]\n"), 2;
    tn_model m = tn_model_open(argv[1], .family = TN_MODEL_DECODER, .tokenizer = argv[4], .needs_tokenizer = true);
    writing  w = {.tokens = m.tokenizer};
    tn_token_batch b = {.ids = NULL};
    tn_tokenizer_batch(m.tokenizer, &b, 1, (const char *[]){argv[2]});
    tn_decoding *d = tn_lm_decoding(m.lm, 1, b.ids ? tn_numel(b.ids) + strtoll(argv[3], NULL, 10) : 0);
    for (int64_t i = 0; b.ids && i < tn_numel(b.ids); i++) each(0, tn_get_i64(b.ids, i), &w);
    tn_generate(d, b.ids, .sample = true, .temperature = 0.8, .top_p = 0.95, .each = each, .user = &w);
    printf("\n");
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_decoding_free(d), tn_ids_free(&w.all), tn_model_close(&m);
    return tn_error() != TN_OK;
}

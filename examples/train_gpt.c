/* train_gpt.c — trains a GPT on a text file and lets it continue a prompt: train_gpt FILE STEPS "The old man".
 * Build: cc -O2 train_gpt.c -o train_gpt $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

static tn_tensor *loss(void *gpt, const tn_batch *b, void *user)
{
    (void)user;
    return tn_gpt_loss(gpt, b->x, b->y);
}

static void show(const tn_fit_event *e, void *user)
{
    (void)user;
    if (e->what == TN_FIT_STEP && e->step % 50 == 0) fprintf(stderr, "step %lld: %.3f\n", (long long)e->step, e->loss);
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "Usage: train_gpt FILE STEPS PROMPT\n"), 2;
    const char   *file = argv[1], *prompt = argv[3];
    tn_tokenizer *t = tn_tokenizer_train(1, &file, .kind = TN_BYTE_BPE, .vocab_size = 512, .cased = true);
    tn_tensor    *text = tn_file_read(file, 1 << 28);
    tn_encoding  *e = tn_encoding_new();
    tn_tokenizer_encode(t, e, tn_data(text), (size_t)tn_numel(text));

    tn_gpt     *gpt = tn_gpt_new(.vocab = tn_tokenizer_size(t), .dim = 128, .layers = 2, .heads = 4, .positions = 64);
    tn_windows *w = e ? tn_windows_new(e->id, e->n, .batch = 16, .length = 64) : NULL;
    tn_fit(gpt, .train = tn_windows_source(w), .loss = loss, .steps = strtol(argv[2], NULL, 0), .lr = .002, .on = show);

    tn_token_batch start = {.ids = NULL};
    tn_text_stream stream = {.bytes = 0};
    tn_string      line = {.at = NULL};
    tn_tokenizer_batch(t, &start, 1, &prompt);
    tn_eval(gpt);
    tn_decoding *d = tn_gpt_decoding(gpt, 1, 64);
    tn_tensor   *tokens = tn_generate(d, start.ids, .sample = true, .top_p = 0.9).tokens;
    for (int64_t i = 0; i < tn_numel(tokens); i++)
        tn_tokenizer_decode_next(t, &stream, (int32_t)tn_get_i64(tokens, i), &line);
    if (!tn_error()) printf("%s%s\n", prompt, line.at);
    else fprintf(stderr, "%s\n", tn_error_message());
    tn_string_free(&line), tn_decoding_free(d), tn_windows_free(w), tn_free(gpt);
    tn_encoding_free(e), tn_tokenizer_free(t);
    return tn_error() != TN_OK;
}

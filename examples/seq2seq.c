/* seq2seq.c — learns to translate line i of one file into line i of another, and translates a line by beam search:
 *     seq2seq SOURCE TARGET STEPS "a line"
 * Build: cc -O2 seq2seq.c -o seq2seq $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/tenon.h>

enum { PAD, UNKNOWN, BEGIN, END, MOST = 64 }; /* ids of the special tokens; maximum tokens of a line */
static const char *const special[] = {"<pad>", "<unk>", "<s>", "</s>", NULL};

static void show(const tn_fit_event *e, void *user)
{
    (void)user;
    if (e->what == TN_FIT_STEP && (e->step == 1 || e->step % 100 == 0))
        fprintf(stderr, "step %lld: loss %.3f\n", (long long)e->step, e->loss);
}

static void train(tn_seq2seq *net, tn_encoder encoder, const char *source, const char *target, long steps)
{
    tn_pairs *lines = tn_pairs_load(source, target, .source = encoder, .target = encoder, .pad = PAD, .begin = BEGIN,
                                    .end = END, .max_tokens = MOST);
    tn_pairs_batches *batches = lines ? tn_pairs_batches_new(lines, .tokens = 2048, .seed = 1) : NULL;
    if (batches) {
        tn_fit(net, .train = tn_pairs_source(batches), .loss = tn_seq2seq_fit_loss, .steps = steps, .lr = 2e-3,
               .on = show);
        tn_pairs_batches_free(batches);
    }
    tn_pairs_free(lines);
}

static void translate(tn_seq2seq *net, const tn_tokenizer *t, tn_encoding *e, const char *line)
{
    if (tn_tokenizer_encode(t, e, line, strlen(line)) != TN_OK) return;
    tn_tensor *ids = tn_full_of(TN_I64, TN_SHAPE(1, e->n + 1), END);
    int64_t   *to = tn_data_mut(ids);
    for (int64_t i = 0; to && i < e->n; i++) to[i] = e->id[i];

    tn_eval(net);
    tn_tensor *best = tn_seq2seq_generate(net, ids, .beams = 4, .most = MOST).tokens;
    int32_t    word[MOST];
    int64_t    n = 0;
    for (; n < MOST && n < tn_numel(best) && tn_get_i64(best, n) != END; n++) word[n] = (int32_t)tn_get_i64(best, n);
    tn_string text = {.at = NULL};
    if (tn_tokenizer_decode(t, word, n, &text) == TN_OK) printf("%s\n", text.at);
    tn_string_free(&text);
}

int main(int argc, char **argv)
{
    if (argc != 5) return fprintf(stderr, "Usage: seq2seq SOURCE TARGET STEPS LINE\n"), 2;
    const char   *files[] = {argv[1], argv[2]};
    tn_tokenizer *t =
        tn_tokenizer_train(2, files, .kind = TN_BYTE_BPE, .vocab_size = 300, .cased = true, .special = special);
    tn_encoding *e = tn_encoding_new();
    tn_seed(1);
    tn_seq2seq *net =
        t ? tn_seq2seq_new(.source_words = tn_tokenizer_size(t), .shared = true, .dim = 64, .heads = 4, .ff = 128,
                           .layers = 2, .dropout = 0, .padding = PAD, .begin = BEGIN, .end = END)
          : NULL;
    if (net) train(net, tn_tokenizer_encoder(t, e), files[0], files[1], strtol(argv[3], NULL, 0));
    if (!tn_error()) translate(net, t, e, argv[4]);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_free(net), tn_encoding_free(e), tn_tokenizer_free(t);
    return tn_error() != TN_OK;
}

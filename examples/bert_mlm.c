/* bert_mlm.c — trains a masked language model on a text file and fills in a blank:
 *     bert_mlm FILE STEPS "The old [MASK] ran."
 * Build: cc -O2 bert_mlm.c -o bert_mlm $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

enum { LENGTH = 64, BEST = 3 };

static void show(const tn_fit_event *e, void *user)
{
    (void)user;
    if (e->what == TN_FIT_STEP && (e->step == 1 || e->step % 50 == 0))
        fprintf(stderr, "step %lld: loss %.3f\n", (long long)e->step, e->loss);
}

/* Lines are sentences; an empty line ends a document. The token ids are kept in a file beside the program. */
static void train(tn_bert *bert, const tn_tokenizer *t, const char *file, long steps)
{
    tn_corpus *corpus = tn_corpus_open(.files = &file, .n = 1, .cache = "bert_mlm.tokens", .tokenizer = t);
    tn_mlm    *batches =
        corpus ? tn_mlm_new(corpus, .tokenizer = t, .max_tokens = LENGTH, .tokens = 1024, .seed = 1) : NULL;
    if (batches) {
        tn_fit(bert, .train = tn_mlm_source(batches), .loss = tn_bert_fit_loss, .steps = steps, .lr = 1e-3, .on = show);
        tn_mlm_free(batches);
    }
    tn_corpus_close(corpus);
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "Usage: bert_mlm FILE STEPS TEXT\n"), 2;
    const char   *file = argv[1];
    tn_tokenizer *t = tn_tokenizer_train(1, &file, .kind = TN_WORDPIECE, .vocab_size = 1000);
    tn_seed(1);
    tn_bert *bert = t ? tn_bert_new(.vocab = tn_tokenizer_size(t), .dim = 128, .layers = 2, .heads = 4,
                                    .positions = LENGTH, .no_next = true)
                      : NULL;
    if (bert) train(bert, t, file, strtol(argv[2], NULL, 0));

    tn_bert_fill fill[BEST];
    int64_t      blanks = 0;
    if (!tn_error()) {
        tn_eval(bert);
        blanks = tn_bert_fill_in(bert, t, argv[3], BEST, BEST, fill);
    }
    for (int64_t i = 0; i < blanks * BEST; i++)
        printf("%s %.3f\n", tn_tokenizer_token(t, fill[i].id), fill[i].probability);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_free(bert), tn_tokenizer_free(t);
    return tn_error() != TN_OK;
}

/* roberta.c — RoBERTa's four claims at small size (Liu et al. 2019): a masked language model is trained as BERT was,
 * and then with one change each: new masks in every epoch, no pairs of sentences, larger batches for as many tokens,
 * more text. Prints the loss of masked tokens of VALID, the mean of the seeds and their range.
 *     roberta TEXT MORE VALID STEPS [SEEDS]
 * TEXT: little text, so that it is read in many epochs; MORE: more text; the tokens are those of MORE.
 * Build: cc -O2 roberta.c -o roberta $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

enum { LENGTH = 64, ROWS = 16, LARGER = 4, SEEDS = 9 };

typedef struct {
    const char *name;
    bool        dynamic, alone; /* new masks in every epoch; no pairs */
    int         rows;           /* of a batch */
    bool        more;           /* MORE instead of TEXT */
} recipe;
static const recipe recipes[] = {
    {"as BERT", false, false, ROWS, false},  {"new masks", true, false, ROWS, false},
    {"no pairs", false, true, ROWS, false},  {"larger batches", false, false, LARGER *ROWS, false},
    {"more text", false, false, ROWS, true}, {"all four", true, true, LARGER *ROWS, true}};

static tn_mlm *batches_of(const tn_corpus *c, const tn_tokenizer *t, const recipe *r, uint64_t seed)
{
    return c ? tn_mlm_new(c, .tokenizer = t, .pairs = !r->alone, .fixed = !r->dynamic, .max_tokens = LENGTH,
                          .tokens = r->rows * LENGTH, .seed = seed)
             : NULL;
}

/* The validation loss of a model of one recipe, in nats per masked token. */
static double loss_of(const recipe *r, const tn_tokenizer *t, tn_corpus *const corpus[3], long steps, uint64_t seed)
{
    static const recipe measure = {"", false, true, ROWS, false};
    const int64_t       words = tn_tokenizer_size(t);
    tn_seed(seed);
    tn_bert *bert = tn_bert_new(.vocab = words, .dim = 64, .layers = 2, .heads = 2, .positions = LENGTH, .dropout = 0,
                                .attention_dropout = 0, .norm_first = true, .no_next = r->alone);
    tn_mlm  *train = batches_of(corpus[r->more], t, r, seed), *valid = batches_of(corpus[2], t, &measure, 1);
    tn_fit_result result = {.best = 0};
    if (bert && train && valid)
        result = tn_fit(bert, .train = tn_mlm_source(train), .valid = tn_mlm_source(valid), .loss = tn_bert_fit_loss,
                        .steps = steps * ROWS / r->rows, .valid_every = steps * ROWS / r->rows / 5 + 1,
                        .lr = r->rows > ROWS ? 4e-3 : 2e-3);
    tn_mlm_free(train), tn_mlm_free(valid), tn_free(bert);
    return result.best;
}

int main(int argc, char **argv)
{
    if (argc < 5) return fprintf(stderr, "Usage: roberta TEXT MORE VALID STEPS [SEEDS]\n"), 2;
    static const char *const cache[] = {"text.tokens", "more.tokens", "valid.tokens"};
    const long               steps = strtol(argv[4], NULL, 0), asked = argc > 5 ? strtol(argv[5], NULL, 0) : 2;
    const char              *more = argv[2];
    tn_tokenizer            *t = tn_tokenizer_train(1, &more, .kind = TN_WORDPIECE, .vocab_size = 2000);
    tn_corpus               *corpus[3] = {NULL};
    for (int i = 0; t && i < 3; i++)
        corpus[i] = tn_corpus_open(.files = &(const char *){argv[i + 1]}, .n = 1, .cache = cache[i], .tokenizer = t);
    printf("%-16s%8s%9s%9s\n", "", "loss", "lowest", "highest");
    for (size_t k = 0; k < sizeof recipes / sizeof *recipes && !tn_error(); k++) {
        double sum = 0, least = 0, most = 0;
        for (long i = 0; i < asked && !tn_error(); i++) {
            const double x = loss_of(&recipes[k], t, corpus, steps, (uint64_t)i + 1);
            sum += x, least = i && least < x ? least : x, most = i && most > x ? most : x;
        }
        printf("%-16s%8.3f%9.3f%9.3f\n", recipes[k].name, sum / (double)asked, least, most);
        fflush(stdout);
    }
    for (int i = 0; i < 3; i++) tn_corpus_close(corpus[i]);
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_tokenizer_free(t);
    return tn_error() != TN_OK;
}

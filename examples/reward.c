/* reward.c — trains a translation model further on a reward, the BLEU of each sentence: REINFORCE, whose baseline is
 * the BLEU of the greedy translation (self-critical training). A sampled translation that is better than the greedy one
 * becomes likelier, a worse one less likely:
 *     loss = Σ (BLEU(greedy) - BLEU(sample)) / 100 · log p(sample) / tokens + SHARE · cross-entropy of the reference
 *     reward MODEL SOURCE TARGET STEPS OUT [RATE]
 * MODEL: a folder of `translate train`; OUT: an existing folder for the new model.
 * Build: cc -O2 reward.c -o reward $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

enum { PAD = 0, BEGIN = 2, END = 3, ROWS = 64, MOST = 60 }; /* the tokens of `translate train`; limits of a batch */
static const double SHARE = 0.3;

/* The text of a row of n ids, up to its end. */
static void text_of(const tn_tokenizer *t, const tn_tensor *ids, int64_t from, int64_t n, tn_string *to)
{
    int32_t id[MOST + 2];
    int64_t k = 0;
    for (; k < n && k < MOST + 2; k++) {
        id[k] = (int32_t)tn_get_i64(ids, from + k);
        if (id[k] < 0 || id[k] == END) break;
    }
    (void)!tn_tokenizer_decode(t, id, k, to); /* main sees the error */
}

/* The BLEU of the text of row i against the reference. */
static double reward_of(const tn_tokenizer *t, const tn_tensor *tokens, int64_t i, const tn_string *right)
{
    tn_string     text = {.at = NULL};
    tn_bleu       bleu = {.effective_order = true};
    const tn_text reference = {right->at ? right->at : "", right->bytes};
    text_of(t, tokens, i * tn_size(tokens, 2), tn_size(tokens, 2), &text);
    tn_bleu_add(&bleu, (tn_text){text.at ? text.at : "", text.bytes}, 1, &reference);
    tn_string_free(&text);
    return tn_bleu_score(&bleu);
}

typedef struct {
    const tn_tokenizer *tokens;
    double              greedy, sampled; /* mean rewards since the last report */
    int64_t             rows;
} state;

static tn_tensor *loss(void *model, const tn_batch *b, void *user)
{
    state        *s = user;
    tn_seq2seq   *net = model;
    const int64_t rows = tn_size(b->x, 0), width = tn_size(b->y, 1);
    tn_eval(net); /* samples and their probabilities come from the same network, without dropout */
    const tn_scope scope = tn_no_grad_begin();
    tn_tensor     *greedy = tn_seq2seq_generate(net, b->x, .most = MOST, .unscored = true).tokens;
    tn_tensor     *sample = tn_seq2seq_generate(net, b->x, .most = MOST, .sample = true).tokens;
    const int64_t  n = tn_size(sample, 2);
    tn_tensor     *target = tn_full_of(TN_I64, TN_SHAPE(rows, n + 2), PAD), *advantage = tn_zeros(TN_SHAPE(rows));
    double         tokens = 0;
    for (int64_t i = 0; i < rows && tn_error() == TN_OK; i++) {
        tn_string right = {.at = NULL};
        text_of(s->tokens, b->y, i * width + 1, width - 1, &right);
        const double one = reward_of(s->tokens, greedy, i, &right), other = reward_of(s->tokens, sample, i, &right);
        int64_t      k = 0, id;
        tn_string_free(&right);
        tn_set(advantage, i, (other - one) / 100);
        tn_set_i64(target, i * (n + 2), BEGIN);
        for (; k < n && (id = tn_get_i64(sample, i * n + k)) >= 0; k++) tn_set_i64(target, i * (n + 2) + k + 1, id);
        tn_set_i64(target, i * (n + 2) + k + 1, END);
        tokens += (double)k + 1, s->greedy += one, s->sampled += other, s->rows++;
    }
    tn_scope_return_list(scope, 2, (tn_tensor *[]){target, advantage});
    tn_tensor *likelihood = tn_seq2seq_loss(net, b->x, target, .each = true); /* [rows]: -log p(sample) */
    tn_tensor *reward = tn_mul_scalar(tn_sum(tn_mul(advantage, likelihood)), 1 / tokens);
    return tn_add(reward, tn_mul_scalar(tn_seq2seq_loss(net, b->x, b->y), SHARE));
}

static void show(const tn_fit_event *e, void *user)
{
    state *s = user;
    if (e->what != TN_FIT_STEP || e->step % 20 || !s->rows) return;
    printf("step %4lld  BLEU of a sentence: greedy %.2f, sampled %.2f\n", (long long)e->step,
           s->greedy / (double)s->rows, s->sampled / (double)s->rows);
    fflush(stdout), s->greedy = s->sampled = 0, s->rows = 0;
}

int main(int argc, char **argv)
{
    if (argc < 6) return fprintf(stderr, "Usage: reward MODEL SOURCE TARGET STEPS OUT [RATE]\n"), 2;
    tn_model         m = tn_model_open(argv[1], .family = TN_MODEL_SEQ2SEQ, .needs_tokenizer = true);
    tn_encoding     *e = tn_encoding_new();
    const tn_encoder lines = m.tokenizer ? tn_tokenizer_encoder(m.tokenizer, e) : (tn_encoder){NULL, NULL};
    tn_pairs        *pairs = m.tokenizer ? tn_pairs_load(argv[2], argv[3], .source = lines, .target = lines, .pad = PAD,
                                                         .begin = BEGIN, .end = END, .max_tokens = MOST)
                                         : NULL;
    tn_pairs_batches *batches = pairs ? tn_pairs_batches_new(pairs, .examples = ROWS, .seed = 1) : NULL;
    state             s = {.tokens = m.tokenizer};
    tn_seed(1);
    if (batches) {
        tn_fit(m.seq2seq, .train = tn_pairs_source(batches), .loss = loss, .user = &s,
               .steps = strtol(argv[4], NULL, 0), .lr = argc > 6 ? strtod(argv[6], NULL) : 1e-4, .on = show,
               .on_user = &s);
        if (!tn_error()) (void)!tn_model_save(&m, argv[5]);
    }
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_pairs_batches_free(batches), tn_pairs_free(pairs), tn_encoding_free(e), tn_model_close(&m);
    return tn_error() != TN_OK;
}

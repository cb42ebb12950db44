/* electra.c — ELECTRA (Clark et al. 2020): a small generator fills in masked tokens; the discriminator reads the result
 * and predicts for each token whether it was replaced. Both are trained together:
 *
 *   loss = generator's cross-entropy over the masked tokens + 50 · discriminator's binary cross-entropy over all tokens
 *
 * The generator's tokens are sampled, and no gradient passes through them. Both models share their embeddings. */
#include "bert.h"

#include "../common/files.h"

static const tn_class electra_class = {.size = sizeof(tn_class), .name = "Electra", .bytes = sizeof(electra)};

/* The generator has a fourth of the discriminator's heads, of the same width. */
static tn_bert_config generator_of(tn_bert_config c)
{
    const int64_t heads = c.heads / 4 ? c.heads / 4 : 1;
    c.dim = c.dim / c.heads * heads, c.heads = heads, c.ff = 4 * c.dim;
    return c;
}

electra *electra_new(tn_bert_config c)
{
    static const char *const tables[] = {"embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight",
                                         "embeddings.token_type_embeddings.weight"};
    tn_bert_config           reads = c;
    char                     mine[128], shared[128];
    electra                 *m = tn_module_new(electra);
    if (!m) return NULL;
    reads.replaced = reads.no_words = true;
    m->discriminator = tn_child(m, "discriminator", tn_bert_create(reads));
    m->generator = tn_child(m, "generator", tn_bert_create(generator_of(c)));
    for (int i = 0; i < 3 && tn_error() == TN_OK; i++) {
        snprintf(shared, sizeof shared, "discriminator.bert.%s", tables[i]);
        snprintf(mine, sizeof mine, "generator.bert.%s", tables[i]);
        tn_tie_to(m, mine, shared);
        if (!i) tn_tie_to(m, "generator.cls.predictions.decoder.weight", shared);
    }
    return tn_built(m);
}

/* Samples a token from each row of logits: the argmax of logit + Gumbel noise. */
static tn_tensor *sample_tokens(tn_tensor *scores)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *u = tn_uniform(tn_shape_of(scores), 1e-20, 1);
    tn_tensor     *noise = tn_neg(tn_log(tn_neg(tn_log(u))));
    return tn_scope_return(s, tn_argmax(tn_add(tn_to(scores, TN_F32), noise), -1, false));
}

/* The ids with the sampled tokens filled in. *replaced is true where a sampled token differs from the original. */
static tn_tensor *fill_tokens(tn_tensor *ids, tn_tensor *at, tn_tensor *guess, tn_tensor *right, tn_tensor **replaced)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *text = tn_clone(ids), *wrong = tn_zeros_of(TN_BOOL, tn_shape_of(ids));
    int64_t       *id = text ? tn_data_mut(text) : NULL;
    uint8_t       *is = wrong ? tn_data_mut(wrong) : NULL;
    const int64_t *place = tn_data(at), *word = guess ? tn_data(guess) : NULL, *want = tn_data(right);
    for (int64_t i = 0; id && is && word && place && want && i < tn_numel(at); i++)
        id[place[i]] = word[i], is[place[i]] = word[i] != want[i];
    *replaced = wrong;
    tn_tensor *both[] = {text, wrong};
    tn_scope_return_list(s, 2, both);
    return text;
}

tn_tensor *electra_loss(void *net, const tn_batch *b, void *user)
{
    (void)user;
    electra   *m = net;
    tn_tensor *padding = tn_batch_get(b, "padding"), *at = tn_batch_get(b, "masked_at"), *replaced;
    tn_tensor *segments = tn_batch_get(b, "segments");
    tn_tensor *y = tn_bert_forward(m->generator, b->x, .types = segments, .key_padding_mask = padding);
    if (!y) return NULL;
    tn_tensor *text = b->x, *loss = tn_mul_scalar(tn_sum(y), 0);
    if (tn_numel(at)) {
        tn_tensor *scores = tn_bert_mlm_logits(m->generator, y, at);
        loss = tn_cross_entropy(scores, b->y);
        text = fill_tokens(b->x, at, sample_tokens(scores), b->y, &replaced);
    } else replaced = tn_zeros_of(TN_BOOL, tn_shape_of(b->x));
    tn_tensor *found = tn_bert_loss(m->discriminator, .ids = text, .types = segments, .key_padding_mask = padding,
                                    .replaced = replaced);
    return tn_add(loss, tn_mul_scalar(found, 50));
}

bool electra_save(electra *m, const tn_tokenizer *tokens, const char *dir)
{
    char        path[1024];
    const char *folder = in_folder(dir, "generator", path);
    return tn_bert_save(m->discriminator, dir) == TN_OK && make_folder(folder) &&
           tn_bert_save(m->generator, folder) == TN_OK && tn_tokenizer_save(tokens, folder) == TN_OK;
}

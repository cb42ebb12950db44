/* electra.c — ELECTRA (Clark et al. 2020): a small generator fills in masked tokens; the discriminator reads the result
 * and predicts for each token whether it was replaced. Both are trained together:
 *
 *   loss = generator's cross-entropy over the masked tokens + 50 · discriminator's binary cross-entropy over all tokens
 *
 * The generator's tokens are sampled, and no gradient passes through them. Both models share their embeddings: the
 * tables are tied; or, as in DeBERTa v3 (He et al. 2023), gradient-disentangled: the discriminator's embeddings are the
 * generator's, without a gradient, plus tables of its own that are 0 at the start; or they do not share them. */
#include "bert.h"

#include "../common/files.h"
#include "../common/messages.h"

#include <string.h>

static const tn_class electra_class = {.size = sizeof(tn_class), .name = "Electra", .bytes = sizeof(electra)};

/* ELECTRA's generator has a fourth of the discriminator's heads, of the same width; DeBERTa's half of the layers, and a
 * mask decoder. */
static tn_bert_config generator_of(tn_bert_config c)
{
    if (c.kind == TN_DEBERTA) {
        c.layers = c.layers > 1 ? c.layers / 2 : 1, c.mask_decoder = true;
        return c;
    }
    const int64_t heads = c.heads / 4 ? c.heads / 4 : 1;
    c.dim = c.dim / c.heads * heads, c.heads = heads, c.ff = 4 * c.dim;
    return c;
}

enum { TABLES = 3 };
static const char *const table_names[TABLES] = {"embeddings.word_embeddings.weight",
                                                "embeddings.position_embeddings.weight",
                                                "embeddings.token_type_embeddings.weight"};

/* The tables of a model's input embeddings; NULL: none. DeBERTa's positions are not part of the input. */
static void list_tables(const tn_bert *m, tn_embedding *to[TABLES])
{
    to[0] = m->words, to[1] = m->config.kind == TN_DEBERTA ? NULL : m->positions, to[2] = m->types;
}

static void tie_tables(electra *m)
{
    tn_embedding *list[TABLES];
    char          mine[128], shared[128];
    list_tables(m->discriminator, list);
    for (int i = 0; i < TABLES && tn_error() == TN_OK; i++) {
        snprintf(shared, sizeof shared, "discriminator.bert.%s", table_names[i]);
        snprintf(mine, sizeof mine, "generator.bert.%s", table_names[i]);
        if (list[i]) tn_tie_to(m, mine, shared);
        if (!i) tn_tie_to(m, "generator.cls.predictions.decoder.weight", shared);
    }
}

electra *electra_new(tn_bert_config c, const char *sharing)
{
    tn_bert_config reads = c;
    tn_embedding  *list[TABLES] = {NULL};
    electra       *m = tn_module_new(electra);
    if (!m) return NULL;
    m->gdes = !strcmp(sharing, "gdes");
    reads.replaced = reads.no_words = true;
    m->discriminator = tn_child(m, "discriminator", tn_bert_create(reads));
    m->generator = tn_child(m, "generator", tn_bert_create(generator_of(c)));
    if (tn_error() == TN_OK && !strcmp(sharing, "tied")) tie_tables(m);
    if (tn_error() == TN_OK && m->gdes) list_tables(m->discriminator, list);
    for (int i = 0; i < TABLES && m->gdes && tn_error() == TN_OK; i++)
        if (list[i]) tn_init_zeros(list[i]->weight);
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

/* The cross-entropies of the generator and of the discriminator, which finds the replaced tokens. False: raised. */
static bool parts(electra *m, const tn_batch *b, tn_tensor *part[2])
{
    tn_tensor *padding = tn_batch_get(b, "padding"), *at = tn_batch_get(b, "masked_at"), *replaced;
    tn_tensor *segments = tn_batch_get(b, "segments");
    tn_tensor *y =
        tn_bert_forward(m->generator, b->x, .types = segments, .key_padding_mask = padding, .for_words = true);
    if (!y) return false;
    tn_tensor *text = b->x, *loss = tn_sum(tn_narrow(y, 0, 0, 0));
    if (tn_numel(at)) {
        tn_tensor *scores = tn_bert_mlm_logits(m->generator, y, at);
        loss = tn_cross_entropy(scores, b->y);
        text = fill_tokens(b->x, at, sample_tokens(scores), b->y, &replaced);
    } else replaced = tn_zeros_of(TN_BOOL, tn_shape_of(b->x));
    part[0] = loss;
    part[1] = tn_bert_loss(m->discriminator, .ids = text, .types = segments, .key_padding_mask = padding,
                           .replaced = replaced, .shared = m->gdes ? m->generator : NULL);
    return part[1] != NULL;
}

tn_tensor *electra_loss(void *net, const tn_batch *b, void *user)
{
    tn_tensor *part[2];
    (void)user;
    return parts(net, b, part) ? tn_add(part[0], tn_mul_scalar(part[1], REPLACED_WEIGHT)) : NULL;
}

bool electra_print_parts(electra *m, const tn_source *s)
{
    tn_tensor     *part[2];
    tn_batch       b = {0};
    const tn_scope scope = tn_no_grad_begin();
    if (!settings.quiet && (s->next(s->user, &b) || s->next(s->user, &b)) && parts(m, &b, part))
        tell("parts    %.4f, the generator, + %d · %.4f, the replaced tokens, on one batch\n", tn_item(part[0]),
             REPLACED_WEIGHT, tn_item(part[1]));
    tn_scope_end(scope);
    return tn_error() == TN_OK;
}

/* The discriminator as it is used later: with gradient-disentangled sharing a copy with the sums of the embeddings,
 * which the caller frees. */
static tn_bert *complete(electra *m)
{
    tn_embedding *to[TABLES] = {NULL}, *from[TABLES] = {NULL};
    tn_bert      *d = m->gdes ? tn_copy(m->discriminator) : m->discriminator;
    if (!d || d == m->discriminator) return d;
    const tn_scope s = tn_no_grad_begin();
    list_tables(d, to), list_tables(m->generator, from);
    for (int i = 0; i < TABLES; i++)
        if (to[i] && from[i]) tn_add_(to[i]->weight, from[i]->weight);
    tn_scope_end(s);
    return d;
}

bool electra_save(electra *m, const tn_tokenizer *tokens, const char *dir)
{
    char        path[1024];
    const char *folder = in_folder(dir, "generator", path);
    tn_bert    *d = complete(m);
    const bool  ok = tn_bert_save(d, dir) == TN_OK;
    if (d != m->discriminator) tn_free(d);
    return ok && make_folder(folder) && tn_bert_save(m->generator, folder) == TN_OK &&
           tn_tokenizer_save(tokens, folder) == TN_OK;
}

/* test_unpadded_models.c — GPT, LLaMA, BERT and the Transformer for translation skip the padding: for any padded length
 * and number of threads, with dropout 0.1 and 0, in f32 and bf16, the same bits of the loss, all gradients and the
 * outputs; a sequence alone and among others. If a hook makes the stack compute its padding: the same bits of loss,
 * outputs, and in f32 gradients of matrices. A few random batches each; TENON_TEST_EXHAUSTIVE=1: 200. */
#include "models/models.h"
#include "tests/common/check_main.h"

static int64_t below(int64_t n) { return tn_random_below(NULL, n); }

enum { VOCAB = 23, MOST = 7, LONGEST = 68, POSITIONS = 80, PAD = 0, FIRST = 4, IGNORED = -100 };
static int rounds(void) { return getenv("TENON_TEST_EXHAUSTIVE") ? 200 : 8; }

/* Sequences of different lengths: ids [n, width], targets of each token, or the source of each text. */
typedef struct {
    int64_t n, width, length[MOST], source_width, source_length[MOST];
    int64_t id[MOST][LONGEST], target[MOST][LONGEST], source[MOST][LONGEST];
} batch;

static batch random_batch(bool empty_targets)
{
    batch b = {.n = below(3) ? MOST : 1 + below(MOST), .width = 1, .source_width = 1};
    for (int64_t i = 0; i < b.n; i++) {
        b.length[i] = 2 + below(LONGEST - 1), b.source_length[i] = 2 + below(LONGEST - 1);
        if (b.length[i] > b.width) b.width = b.length[i];
        if (b.source_length[i] > b.source_width) b.source_width = b.source_length[i];
        const bool none = empty_targets && !below(6);
        for (int64_t t = 0; t < LONGEST; t++) {
            b.id[i][t] = FIRST + below(VOCAB - FIRST), b.source[i][t] = FIRST + below(VOCAB - FIRST);
            b.target[i][t] = none || !below(3) ? IGNORED : FIRST + below(VOCAB - FIRST);
        }
    }
    return b;
}

/* i64 [n, width]: the rows up to their lengths, then `pad`. */
static tn_tensor *rows(const batch *b, const int64_t (*from)[LONGEST], const int64_t *length, int64_t width,
                       int64_t pad)
{
    tn_tensor *t = tn_full_of(TN_I64, TN_SHAPE(b->n, width), (double)pad);
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t k = 0; k < length[i] && k < width; k++) tn_set_i64(t, i * width + k, from[i][k]);
    return t;
}

static tn_tensor *padding(const batch *b, int64_t width)
{
    tn_tensor *m = tn_zeros_of(TN_BOOL, TN_SHAPE(b->n, width));
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t t = b->length[i]; t < width; t++) tn_set(m, i * width + t, 1);
    return m;
}

/* ---- the models -------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *name;
    void *(*make)(double dropout);
    tn_lm *(*layer)(void *m); /* a layer of a stack: with a hook, the stack computes the padding */
    /* `more` is the padding in addition to the longest sequence, `pad` its token id. */
    tn_tensor *(*loss)(void *m, const batch *b, int64_t more, int64_t pad);
    tn_tensor *(*outputs)(void *m, const batch *b, int64_t more, bool skip); /* [n, width + more, dim or vocab] */
} kind;

#define SMALL .dim = 12, .layers = 2, .heads = 2, .dropout = dropout

static void *gpt(double dropout) { return tn_gpt_new(.vocab = VOCAB, .positions = POSITIONS, SMALL); }
static void *llama(double dropout)
{
    return tn_llama_new(.vocab = VOCAB, .kv_heads = 1, .scores.window = 5, .pattern = "gl", .local_theta = 50,
                        .attention_dropout = dropout, SMALL);
}
static void *gemma(double dropout)
{
    return tn_llama_new(.vocab = VOCAB, .kv_heads = 1, .scores.window = 4, .pattern = "lg", .local_theta = 100,
                        .order = TN_NORM_SANDWICH, .norm_add_one = true, .scores.qk_norm = TN_QK_NORM_HEAD,
                        .scores.cap = 20, .logit_cap = 30, .attention_dropout = dropout, SMALL);
}
static void *mixtral(double dropout)
{
    return tn_llama_new(.vocab = VOCAB, .experts = 4, .router_jitter = dropout, .ff = 16, .attention_dropout = dropout,
                        SMALL);
}
static tn_lm     *lm_layer(void *m) { return tn_at(tn_lm_blocks(m)->layers, 0); }
static tn_tensor *lm_loss(void *m, const batch *b, int64_t more, int64_t pad)
{
    const int64_t w = b->width + more;
    return tn_lm_loss(m, rows(b, b->id, b->length, w, pad), rows(b, b->target, b->length, w, IGNORED));
}
static tn_tensor *lm_outputs(void *m, const batch *b, int64_t more, bool skip)
{
    const int64_t w = b->width + more;
    return tn_lm_forward(m, rows(b, b->id, b->length, w, PAD), .key_padding_mask = padding(b, w), .skip_padding = skip);
}

static void *bert(double dropout)
{
    return tn_bert_new(.vocab = VOCAB, .positions = POSITIONS, .attention_dropout = dropout, SMALL);
}
static void *albert(double dropout) /* a projection after the norm */
{
    return tn_bert_new(.kind = TN_ALBERT, .vocab = VOCAB, .positions = POSITIONS, .embedding = 8,
                       .attention_dropout = dropout, SMALL);
}
static void *electra(double dropout) /* a loss of all tokens */
{
    return tn_bert_new(.kind = TN_ELECTRA, .vocab = VOCAB, .positions = POSITIONS, .no_words = true, .no_next = true,
                       .no_pooler = true, .replaced = true, .attention_dropout = dropout, SMALL);
}
static tn_tensor *electra_loss(void *m, const batch *b, int64_t more, int64_t pad)
{
    const int64_t w = b->width + more;
    tn_tensor    *replaced = tn_eq(rows(b, b->target, b->length, w, 0), tn_full_of(TN_I64, TN_SHAPE(b->n, w), IGNORED));
    return tn_bert_loss(m, .ids = rows(b, b->id, b->length, w, pad), .key_padding_mask = padding(b, w),
                        .replaced = replaced);
}
static tn_lm     *bert_layer(void *m) { return tn_at(((tn_bert *)m)->encoder->layers, 0); }
static tn_tensor *bert_loss(void *m, const batch *b, int64_t more, int64_t pad)
{
    const int64_t w = b->width + more;
    int64_t       at[MOST * LONGEST], word[MOST * LONGEST], n = 0;
    for (int64_t i = 0; i < b->n; i++)
        for (int64_t t = 0; t < b->length[i]; t++)
            if (b->target[i][t] != IGNORED) at[n] = i * w + t, word[n++] = b->target[i][t];
    return tn_bert_loss(m, .ids = rows(b, b->id, b->length, w, pad), .key_padding_mask = padding(b, w),
                        .masked = tn_from_data(TN_I64, TN_SHAPE(n), at),
                        .words = tn_from_data(TN_I64, TN_SHAPE(n), word));
}
static tn_tensor *bert_outputs(void *m, const batch *b, int64_t more, bool skip)
{
    const int64_t w = b->width + more;
    return tn_bert_forward(m, rows(b, b->id, b->length, w, PAD), .key_padding_mask = padding(b, w),
                           .skip_padding = skip);
}

static void *translator(double dropout) { return tn_seq2seq_new(.source_words = VOCAB, SMALL); }
static void *bart(double dropout) /* a norm before each stack */
{
    return tn_seq2seq_new(.source_words = VOCAB, .position_kind = TN_SEQ2SEQ_LEARNED, .norm_embedding = true,
                          .positions = POSITIONS, SMALL);
}
static tn_lm     *translator_layer(void *m) { return tn_at(((tn_seq2seq *)m)->transformer->encoder->layers, 0); }
static tn_tensor *translator_loss(void *m, const batch *b, int64_t more, int64_t pad)
{
    (void)pad; /* the model knows its padding */
    return tn_seq2seq_loss(m, rows(b, b->source, b->source_length, b->source_width + more, PAD),
                           rows(b, b->id, b->length, b->width + 1 + more, PAD));
}
static tn_tensor *translator_outputs(void *m, const batch *b, int64_t more, bool skip)
{
    (void)skip; /* always */
    return tn_seq2seq_forward(m, rows(b, b->source, b->source_length, b->source_width + more, PAD),
                              rows(b, b->id, b->length, b->width + more, PAD));
}

static const kind kinds[] = {{"gpt", gpt, lm_layer, lm_loss, lm_outputs},
                             {"llama", llama, lm_layer, lm_loss, lm_outputs},
                             {"gemma", gemma, lm_layer, lm_loss, lm_outputs},
                             {"mixtral", mixtral, lm_layer, lm_loss, lm_outputs},
                             {"bert", bert, bert_layer, bert_loss, bert_outputs},
                             {"albert", albert, bert_layer, bert_loss, bert_outputs},
                             {"electra", electra, bert_layer, electra_loss, bert_outputs},
                             {"seq2seq", translator, translator_layer, translator_loss, translator_outputs},
                             {"bart", bart, translator_layer, translator_loss, translator_outputs}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- the comparisons --------------------------------------------------------------------------------------------- */

static tn_lm *model(const kind *k, double dropout, tn_dtype dt)
{
    tn_seed(11);
    tn_lm *m = k->make(dropout);
    tn_module_to(m, dt);
    fine();
    return m;
}

enum { PARAMETERS = 160 };
typedef struct {
    int        n;
    tn_tensor *loss, *grad[PARAMETERS];
} outcome;

static outcome run(const kind *k, tn_lm *m, const batch *b, int64_t more, int64_t pad)
{
    outcome o = {.n = 0};
    tn_seed(12);
    o.loss = k->loss(m, b, more, pad);
    fine();
    tn_backward(o.loss);
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        ck_assert_int_lt(o.n, PARAMETERS);
        tn_tensor *g = tn_grad(p.tensor);
        o.grad[o.n++] = g ? tn_clone(g) : tn_zeros_like(p.tensor);
    }
    tn_zero_grads(m);
    fine();
    return o;
}

/* Fails if a bit of the loss or of a gradient differs. If `beside` is set, the gradients of norms and biases, sums over
 * all rows, may be rounded differently, and in bf16 those of all. */
static void compare(const char *name, int round, tn_lm *m, const outcome *o, const outcome *p, bool beside)
{
    int i = 0;
    ck_assert_msg(tn_same_bits(o->loss, p->loss), "%s, round %d: the losses are %.9g and %.9g", name, round,
                  tn_item(o->loss), tn_item(p->loss));
    for (tn_each e = tn_parameters(m); tn_next(&e); i++) {
        const bool half = tn_dtype_of(e.tensor) == TN_BF16, sum = beside && (half || tn_ndim(e.tensor) == 1);
        ck_assert_msg(sum ? half || tn_allclose(o->grad[i], p->grad[i], 1e-5, 1e-6)
                          : tn_same_bits(o->grad[i], p->grad[i]),
                      "%s, round %d: the gradient of %s", name, round, e.name);
    }
}

/* The rows that are not padding, one after another. */
static tn_tensor *without_padding(const batch *b, tn_tensor *y)
{
    tn_tensor *part[MOST];
    for (int64_t i = 0; i < b->n; i++) part[i] = tn_narrow(tn_select(y, 0, i), 0, 0, b->length[i]);
    return tn_clone(tn_cat_list(0, (int)b->n, part));
}

static tn_tensor *nothing(tn_module *m, tn_tensor *x, tn_tensor *y, void *user)
{
    return (void)m, (void)x, (void)y, (void)user, NULL;
}

/* Computed with its padding, another length: the bits of the loss, with dropout, and of the gradients that are not sums
 * over rows (ADR 0043). */
TEST_EACH(as_padded, KINDS)
{
    const kind    *k = &kinds[_i];
    const tn_dtype dt[2] = {TN_F32, TN_BF16};
    for (int d = 0; d < 2; d++) {
        tn_lm *m = model(k, 0.1, dt[d]), *padded = model(k, 0.1, dt[d]);
        tn_module_after(k->layer(padded), nothing, padded);
        for (int round = 0; round < rounds(); round++) {
            const tn_scope s = tn_scope_begin();
            tn_seed((uint64_t)round);
            const batch b = random_batch(true);
            tn_set_threads(1 + round % 3);
            const outcome o = run(k, m, &b, 0, PAD), p = run(k, padded, &b, round % 2 ? below(10) : 0, PAD);
            compare(k->name, round, m, &o, &p, true);
            tn_scope_end(s);
        }
        tn_free(m), tn_free(padded);
    }
}

/* More padding, of another token: the same bits of the loss and of all gradients. */
TEST_EACH(any_padding, 4 * KINDS)
{
    const kind *k = &kinds[_i / 4];
    tn_lm      *m = model(k, _i & 1 ? 0.1 : 0, _i & 2 ? TN_BF16 : TN_F32);
    for (int round = 0; round < rounds(); round++) {
        const tn_scope s = tn_scope_begin();
        tn_seed((uint64_t)(1000 + round));
        const batch b = random_batch(true);
        tn_set_threads(1 + round % 3);
        const outcome o = run(k, m, &b, 0, PAD);
        tn_set_threads(1 + (int)below(3));
        const outcome more = run(k, m, &b, 1 + below(10), PAD + 1);
        compare(k->name, round, m, &o, &more, false);
        tn_scope_end(s);
    }
    tn_free(m);
}

/* Outputs: with the padding, without it, and each sequence alone. */
TEST_EACH(outputs, 2 * KINDS)
{
    const kind    *k = &kinds[_i / 2];
    tn_lm         *m = model(k, 0.1, _i % 2 ? TN_BF16 : TN_F32);
    const tn_scope all = tn_no_grad_begin();
    tn_eval(m);
    for (int round = 0; round < rounds(); round++) {
        const tn_scope s = tn_scope_begin();
        tn_seed((uint64_t)(2000 + round));
        const batch b = random_batch(false);
        tn_set_threads(1 + round % 3);
        tn_tensor *y = without_padding(&b, k->outputs(m, &b, 0, false));
        ck_assert_msg(tn_same_bits(y, without_padding(&b, k->outputs(m, &b, round % 5, true))), "%s, round %d", k->name,
                      round);
        for (int64_t i = 0, at = 0; i < b.n; at += b.length[i++]) {
            batch one = {.n = 1, .width = b.length[i], .source_width = b.source_length[i]};
            one.length[0] = b.length[i], one.source_length[0] = b.source_length[i];
            memcpy(one.id[0], b.id[i], sizeof one.id[0]), memcpy(one.source[0], b.source[i], sizeof one.source[0]);
            ck_assert_msg(tn_same_bits(tn_clone(tn_narrow(y, 0, at, b.length[i])),
                                       without_padding(&one, k->outputs(m, &one, 0, true))),
                          "%s, round %d: sequence %lld alone", k->name, round, (long long)i);
        }
        fine();
        tn_scope_end(s);
    }
    tn_scope_end(all);
    tn_free(m);
}

/* A batch without any target has the loss 0; a mask of the wrong shape is rejected. */
TEST_EACH(no_targets, 2)
{
    tn_lm     *m = model(&kinds[_i], 0, TN_F32);
    tn_tensor *ids = tn_full_of(TN_I64, TN_SHAPE(2, 5), 7);
    tn_tensor *loss = tn_lm_loss(m, ids, tn_full_of(TN_I64, TN_SHAPE(2, 5), IGNORED));
    fine();
    ck_assert(tn_item(loss) == 0);
    tn_backward(loss);
    fine();
    ck_refused_has(
        tn_lm_forward(m, ids, .key_padding_mask = tn_zeros_of(TN_BOOL, TN_SHAPE(2, 4)), .skip_padding = true),
        TN_ESHAPE, "mha: key_padding_mask [2, 4] must be [B, S] = [2, 5]; true is padding");
    ck_refused_has(tn_lm_loss(m, ids, tn_zeros_of(TN_I64, TN_SHAPE(2, 4))), TN_ESHAPE,
                   "linear_cross_entropy: the target is [2, 4], but for x ");
    tn_free(m);
}

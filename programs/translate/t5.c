/* t5.c — translate train --objective t5: trains T5 on plain text (Raffel et al. 2020). Sentinels replace some spans of
 * the text, and the model writes these spans. common/train.c has the rest of a training. */
#include "../common/messages.h"
#include "../common/texts.h"
#include "translate.h"

#include <math.h>
#include <string.h>

enum { SENTINELS = 100, MOST_MEASURED = 1 << 16 /* about this number of tokens in a validation */ };

static translate_training *of(training *t) { return (translate_training *)t; }

static const train_choice choices[] = {{0, "nano", 1024, 64}, {10, "small", 4096, 128}, {.size = NULL}};

static int check(training *t)
{
    static const char *const others[] = {"src",  "tgt",     "valid-src", "valid-tgt", "model", "norm-first",
                                         "lstm", "stop-on", "average",   "longest",   NULL};
    translate_training      *p = of(t);
    int                      code = program_strays(others, "--objective translation");
    if (!code && !p->texts.text.count) code = program_usage("--objective t5 needs --text");
    if (!code) code = train_texts_check(&p->texts, t->world, 0.1);
    if (code) return code;
    if (t->asked.vocab_size && t->asked.vocab_size < 2 * SENTINELS)
        return program_usage("--vocab-size needs at least %d tokens (%d of them are sentinels), got %lld",
                             2 * SENTINELS, SENTINELS, (long long)t->asked.vocab_size);
    const train_choice     *chosen = train_choose(t, choices, false);
    const tn_seq2seq_config c = tn_seq2seq_size(t->asked.size);
    if (!p->pieces) p->pieces = chosen->batch;
    if (!p->length) p->length = chosen->length;
    if (isnan(t->asked.dropout)) t->asked.dropout = 0; /* as in T5 v1.1: one epoch of much text needs none */
    return train_shape(t, c.layers, c.heads, c.dim, TRAIN_RATE);
}

static bool read_text(training *t)
{
    translate_training *p = of(t);
    const bool          given = t->asked.vocab_size > 0;
    if (!train_texts_read(&p->texts)) return false;
    train_choose_vocabulary(t, p->texts.bytes, 2);
    if (!given) t->asked.vocab_size += SENTINELS;
    return true;
}

static tn_tokenizer *tokenizer(training *t, progress *bar)
{
    static const char *const special[] = {"<pad>", "</s>", "<unk>", NULL};
    return tn_tokenizer_train_text(of(t)->texts.all.at, of(t)->texts.bytes, .kind = TN_UNIGRAM, .cased = true,
                                   .t5 = SENTINELS, .vocab_size = t->asked.vocab_size - SENTINELS, .special = special,
                                   .progress = progress_part, .user = bar);
}

/* The id of a token that T5 needs; raises if the tokenizer lacks it. */
static int32_t id_of(const tn_tokenizer *t, const char *token)
{
    const int64_t id = tn_tokenizer_id(t, token);
    if (id < 0)
        tn_raise(TN_EFORMAT, "this tokenizer has no token %s; T5 needs <pad>, </s> and <extra_id_0> to <extra_id_99>",
                 token);
    return (int32_t)id;
}

static bool check_sentinels(const tn_tokenizer *t, int32_t first)
{
    char name[20];
    for (int i = 0; i < SENTINELS && tn_error() == TN_OK; i++) {
        snprintf(name, sizeof name, "<extra_id_%d>", i);
        if (id_of(t, name) != first - i && tn_error() == TN_OK)
            tn_raise(TN_EFORMAT, "token %s has the id %d, expected %d: the ids of T5's sentinels count down", name,
                     id_of(t, name), first - i);
    }
    return tn_error() == TN_OK;
}

static bool open_all(training *t)
{
    translate_training *p = of(t);
    const tn_ids       *ids = &p->texts.ids, *held = &p->texts.held;
    const int32_t       begin = id_of(t->tokens, "<pad>"), end = id_of(t->tokens, "</s>");
    const int32_t       sentinel = id_of(t->tokens, "<extra_id_0>");
    const int64_t       batch = p->pieces / p->length > 1 ? p->pieces / p->length : 1;
    if (tn_error() != TN_OK || !check_sentinels(t->tokens, sentinel) || !train_texts_encode(&p->texts, t->tokens, true))
        return false;
    p->spans = tn_spans_new(ids->at, ids->n, .batch = batch, .length = p->length, .begin = begin, .end = end,
                            .sentinel = sentinel);
    if (!p->spans) return false;
    const int64_t room = held->n < p->length ? held->n : p->length;
    if (!train_texts_check_valid(&p->texts, room / 16, "16 tokens")) return false;
    if (room >= 16) {
        p->held_spans =
            tn_spans_new(held->at, held->n, .batch = batch, .length = room - room / 8, .begin = begin, .end = end,
                         .sentinel = sentinel, .in_order = true, .most = MOST_MEASURED, .seed = 1);
        t->fit.valid = tn_spans_source(p->held_spans), t->fit.restore_best = true, t->fit.patience = p->patience;
    }
    t->fit.train = tn_spans_source(p->spans), t->fit.loss = tn_seq2seq_fit_loss;
    t->uniform = log((double)tn_tokenizer_size(t->tokens));
    t->batches = ids->n / (batch * p->length) + 1, t->width = batch * p->length, t->every = p->valid_every;
    snprintf(t->each, sizeof t->each, "%lld inputs of %lld tokens", (long long)batch, (long long)p->length);
    return tn_error() == TN_OK;
}

static void *new_model(training *t)
{
    const train_asked *a = &t->asked;
    tn_seq2seq_config  c = tn_seq2seq_size(a->size);
    c.source_words = tn_tokenizer_size(t->tokens);
    c.padding = c.begin = id_of(t->tokens, "<pad>"), c.end = id_of(t->tokens, "</s>");
    c.ff = c.ff / c.dim * a->dim, c.dim = a->dim, c.layers = a->layers, c.heads = a->heads, c.dropout = a->dropout;
    return tn_seq2seq_create(tn_seq2seq_t5(c));
}

static void print_summary(training *t) { train_texts_print(&of(t)->texts); }

static void describe(const training *t, tn_json_writer *w)
{
    const translate_training *p = (const translate_training *)t;
    train_texts_describe(&p->texts, w);
    tn_json_put_string(w, "objective", p->objective);
    tn_json_put_i64(w, "tokens", p->pieces);
    tn_json_put_i64(w, "length", p->length);
    if (p->valid_every) tn_json_put_i64(w, "valid_every", p->valid_every);
    if (p->patience) tn_json_put_i64(w, "patience", p->patience);
}

static bool save(training *t, tn_fit_why why)
{
    (void)why;
    return tn_seq2seq_save(t->net, t->asked.out) == TN_OK;
}

static void close_all(training *t)
{
    translate_training *p = of(t);
    train_texts_free(&p->texts);
    tn_spans_free(p->spans), tn_spans_free(p->held_spans);
}

/* "input => target", with the sentinels; the place of the longest part between two of them. */
static void row(training *t, const tn_batch *b, int64_t i, const tn_ids *ids, char place[64], tn_string *text)
{
    const translate_training *p = of(t);
    const int64_t             width = tn_size(b->y, 1);
    int64_t                   from = 0, n = 0;
    tn_ids                    target = {0};
    tn_string                 part = {0};
    for (int64_t k = 0; k < width; k++) tn_ids_add(&target, (int32_t)tn_get_i64(b->y, i * width + k));
    for (int64_t k = 0, first = 0; k < ids->n; k++) {
        if (tn_tokenizer_is_special(t->tokens, ids->at[k])) first = k + 1;
        else if (k + 1 - first > n) from = first, n = k + 1 - first;
    }
    tn_tokenizer_decode(t->tokens, ids->at, ids->n, text, .keep_special = true);
    tn_string_add(text, tn_text_of(" => "));
    tn_tokenizer_decode(t->tokens, target.at, target.n, text, .keep_special = true);
    if (n && tn_tokenizer_decode(t->tokens, ids->at + from, n, &part) == TN_OK && part.bytes)
        texts_place(train_texts_training(&p->texts), (tn_text){part.at, part.bytes}, place);
    tn_ids_free(&target), tn_string_free(&part);
}

const train_kind t5_kind = {
    .title = "Pretraining of T5",
    .max_interval = 1000,
    .minutes = 60,
    .check = check,
    .read = read_text,
    .tokenizer = tokenizer,
    .open = open_all,
    .make = new_model,
    .print_info = print_summary,
    .describe = describe,
    .save = save,
    .close = close_all,
    .next = "translate tune --model %s --src FILE --tgt FILE --out DIR",
    .tag = "text2text-generation",
    .row = row,
    .causal = "y",
};

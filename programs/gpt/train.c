/* train.c — gpt train: the part of a training that is specific to language models; the rest is in common/train.c. */
#include "extras/programs/repeat/repeat.h"
#include "../common/messages.h"
#include "gpt.h"

#include <math.h>
#include <string.h>

static gpt_training *of(training *t) { return (gpt_training *)t; }
static bool          is_llama(const gpt_training *t) { return !strcmp(t->shape, "llama"); }

enum { MOST_ROWS = 4096, READ_ONCE = 10000000 /* bytes of a text that a run reads only a few times */ };

static tn_tensor *loss(void *net, const tn_batch *b, void *user)
{
    (void)user;
    return tn_lm_loss(net, b->x, b->y);
}

/* ---- a kind of training ------------------------------------------------------------------------------------------ */

/* What a run gets where the user sets nothing: docs/results.md has the trials. */
static const train_choice choices[] = {{0, "tiny", 8, 128},    {20, "mini", 8, 128},    {100, "mini", 16, 128},
                                       {300, "mini", 16, 256}, {1000, "baby", 16, 256}, {.size = NULL}};

static int check(training *t)
{
    gpt_training *g = of(t);
    const bool    bpe = !strcmp(g->pieces, "bpe");
    const int     code = train_texts_check(&g->texts.of, t->world, 0.1);
    if (code) return code;
    if (t->asked.vocab && !bpe)
        return program_usage("--pieces %s is for a new tokenizer, but --vocab names an existing one", g->pieces);
    if (g->experts && !is_llama(g)) return program_usage("--experts %lld needs --shape llama", (long long)g->experts);
    if (g->experts && g->experts_per_token > g->experts)
        return program_usage("--experts-per-token is %lld, but --experts is %lld", (long long)g->experts_per_token,
                             (long long)g->experts);
    if (g->texts.batch > MOST_ROWS) return program_usage("--batch must be at most %d", MOST_ROWS);
    if (t->asked.vocab_size && t->asked.vocab_size < 257)
        return program_usage("--vocab-size must be at least 257: 256 bytes and <|endoftext|>");
    if (t->asked.vocab_size && !bpe)
        return program_usage("--vocab-size is for --pieces bpe; with characters, the text determines it");
    const train_choice *chosen = train_choose(t, choices, true);
    if (!g->texts.batch) g->texts.batch = chosen->batch;
    if (!g->texts.length) g->texts.length = chosen->length;
    const tn_gpt_config c = tn_gpt_size(t->asked.size);
    return train_shape(t, c.layers, c.heads, c.dim, is_llama(g) ? 2 * TRAIN_RATE : TRAIN_RATE); /* Muon, AdamW */
}

static bool look(training *t)
{
    gpt_training *g = of(t);
    if (!train_texts_read(&g->texts.of)) return false;
    if (!strcmp(g->pieces, "bpe")) train_choose_vocabulary(t, g->texts.of.bytes, 2);
    if (isnan(t->asked.dropout)) t->asked.dropout = g->texts.of.bytes < READ_ONCE ? 0.1 : 0;
    return true;
}

static tn_tokenizer *tokenizer(training *t, progress *bar)
{
    const gpt_training *g = of(t);
    const tn_text       all = train_texts_training(&g->texts.of);
    if (!strcmp(g->pieces, "characters")) return texts_characters(all);
    return tn_tokenizer_train_text(all.at, all.bytes, .kind = TN_BYTE_BPE, .cased = true,
                                   .vocab_size = t->asked.vocab_size, .progress = progress_part, .user = bar);
}

bool text_windows_open(text_windows *w, training *t, int64_t most)
{
    const tn_ids *ids = &w->of.ids, *held = &w->of.held;
    if (!train_texts_encode(&w->of, t->tokens, false)) return false;
    if (ids->n <= w->length)
        return tn_raise_false(TN_EFORMAT,
                              "the training text has %lld tokens, too few for --length %lld: one more than that is "
                              "needed; give a longer text or a smaller --length",
                              (long long)ids->n, (long long)w->length);
    const int64_t length = held->n <= w->length ? held->n - 1 : w->length;
    w->train = tn_windows_new(ids->at, ids->n, .batch = w->batch, .length = w->length);
    t->fit.train = tn_windows_source(w->train), t->fit.loss = loss;
    if (!train_texts_check_valid(&w->of, length, "two tokens")) return false;
    if (length > 0) {
        w->held =
            tn_windows_new(held->at, held->n, .batch = w->batch, .length = length, .in_order = true, .most = most);
        t->fit.valid = tn_windows_source(w->held), t->fit.restore_best = true;
    }
    t->uniform = log((double)tn_tokenizer_size(t->tokens));
    t->batches = ids->n / (w->batch * w->length) + 1, t->width = w->batch * w->length;
    snprintf(t->each, sizeof t->each, "%lld sequences of %lld tokens", (long long)w->batch, (long long)w->length);
    return tn_error() == TN_OK;
}

void text_windows_free(text_windows *w)
{
    train_texts_free(&w->of);
    tn_windows_free(w->train), tn_windows_free(w->held);
}

static bool open_all(training *t)
{
    t->fit.weight_decay = of(t)->weight_decay;
    if (is_llama(of(t))) t->fit.make = tn_fit_muon;
    return text_windows_open(&of(t)->texts, t, train_valid_tokens(t));
}

static void *make(training *t)
{
    const gpt_training *g = of(t);
    const train_asked  *a = &t->asked;
    const int64_t       vocab = tn_tokenizer_size(t->tokens);
    if (g->experts)
        return tn_llama_new(.vocab = vocab, .dim = a->dim, .layers = a->layers, .heads = a->heads,
                            .experts = g->experts, .experts_per_token = g->experts_per_token, .balanced = true,
                            .balance = 0.01, .positions = g->texts.length, .dropout = a->dropout,
                            .attention_dropout = a->dropout, .expert_weights = TN_EXPERT_WEIGHTS_SHARES, .tied = true);
    if (is_llama(g))
        return tn_llama_new(.vocab = vocab, .dim = a->dim, .layers = a->layers, .heads = a->heads,
                            .positions = g->texts.length, .dropout = a->dropout, .attention_dropout = a->dropout,
                            .tied = true);
    return tn_gpt_new(.vocab = vocab, .dim = a->dim, .layers = a->layers, .heads = a->heads,
                      .positions = g->texts.length, .dropout = a->dropout);
}

static void say(training *t) { train_texts_print(&of(t)->texts.of); }

static void describe(const training *t, tn_json_writer *w)
{
    const gpt_training *g = (const gpt_training *)t;
    train_texts_describe(&g->texts.of, w);
    tn_json_put_string(w, "pieces", g->pieces);
    tn_json_put_string(w, "shape", g->shape);
    if (g->experts) tn_json_put_i64(w, "experts", g->experts);
    if (g->experts) tn_json_put_i64(w, "experts_per_token", g->experts_per_token);
    tn_json_put_i64(w, "batch", g->texts.batch);
    tn_json_put_i64(w, "length", g->texts.length);
    tn_json_put_double(w, "weight_decay", g->weight_decay);
}

static bool save(training *t, tn_fit_why why)
{
    (void)why;
    /* The tokenizer was saved at the start. A resumed run has read it: its roles are those of the files. */
    tn_tokenizer  *saved = tn_tokenizer_load(t->asked.out);
    const tn_model d = {.family = TN_MODEL_DECODER, .lm = t->net, .tokenizer = saved};
    if (saved) (void)!tn_model_save(&d, t->asked.out, .no_tokenizer = true); /* the caller sees the error */
    tn_tokenizer_free(saved);
    return tn_error() == TN_OK;
}

static void close_all(training *t) { text_windows_free(&of(t)->texts); }

static void row(training *t, const tn_batch *b, int64_t i, const tn_ids *ids, char place[64], tn_string *text)
{
    (void)b, (void)i;
    if (tn_tokenizer_decode(t->tokens, ids->at, ids->n, text) != TN_OK || !text->bytes) return;
    texts_place(train_texts_training(&of(t)->texts.of), (tn_text){text->at, text->bytes}, place);
}

const train_kind gpt_kind = {
    .title = "A language model",
    .max_interval = 500,
    .minutes = 20,
    .check = check,
    .read = look,
    .tokenizer = tokenizer,
    .open = open_all,
    .make = make,
    .print_info = say,
    .describe = describe,
    .save = save,
    .close = close_all,
    .next = "gpt write --model %s --prompt \"Once\"",
    .tag = "text-generation",
    .score_pairs = tn_lm_scores,
    .row = row,
    .causal = "x",
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static gpt_training asked = GPT_TRAINING;

static const option options[] = {
    TRAIN_TEXTS_OPTIONS(asked.texts.of, "text", "", "0.1"),
    OPTION_TEXT("pieces", 0, "KIND", &asked.pieces, "tokens of a new tokenizer: bpe for byte-level BPE, or characters",
                .choices = "bpe|characters"),
    OPTION_TEXT("shape", 0, "NAME", &asked.shape,
                "architecture: llama (rotary positions, gated feed-forward, RMS norms) or gpt2",
                .choices = "gpt2|llama"),
    OPTION_INT("experts", 0, "N", &asked.experts,
               "with --shape llama: N experts as feed-forward, of which a token uses --experts-per-token, as in "
               "Mixtral (default: one feed-forward)",
               .least = 1, .most = 1024),
    OPTION_INT("experts-per-token", 0, "N", &asked.experts_per_token,
               "experts per token, each 1/N as wide as the feed-forward without --experts", .least = 2, .most = 64),
    OPTION_INT("batch", 'b', "N", &asked.texts.batch, "sequences per step (default: depends on the minutes)",
               .least = 1, .most = MOST_ROWS),
    OPTION_INT("length", 'l', "N", &asked.texts.length,
               "tokens per sequence; also the model's maximum context (default: 128; of a long run 256)", .least = 8,
               .most = 65536),
    OPTION_REAL("weight-decay", 0, "X", &asked.weight_decay, "weight decay of the matrices", .least = 0, .most = 10),
    TRAIN_PAIRS(asked.base),
    TRAIN_OPTIONS(asked.base.asked, 's', "tiny|mini|baby|small|medium|large", "20",
                  "0.768 divided by the width; of gpt2 0.384"),
    {0},
};
const command train_command = TRAIN_COMMAND(
    "train", "train a model on text files", options, &asked.base,
    .text =
        "Trains a tokenizer on the text, then a model that predicts the next token. Ctrl-C saves and ends; --resume "
        "continues an interrupted run, with the same bits as without the interruption.\n\n"
        "  gpt train --text book.txt --out book --minutes 20\n"
        "  gpt train --text letters/ --pieces characters --out letters --size baby --steps 5000");

const command verify_command = VERIFY_COMMAND("gpt");
const command debug_command = DEBUG_COMMAND("gpt");

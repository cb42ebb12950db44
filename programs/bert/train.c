/* train.c — bert train: the part of a training that is specific to masked language models; the rest is in
 * common/train.c. */
#include "core/system/system.h"

#include "extras/programs/repeat/repeat.h"
#include "../common/messages.h"
#include "../common/checksum.h"
#include "../common/ranks.h"
#include "bert.h"

#include <math.h>
#include <string.h>

static bert_training *of(training *t) { return (bert_training *)t; }
static bool           is(const bert_training *t, const char *name)
{
    return !strcmp(t->objective ? t->objective : "modernbert", name);
}
static bool         is_deberta(const bert_training *t) { return is(t, "deberta") || is(t, "deberta-v3"); }
static bool         has_generator(const bert_training *t) { return is(t, "electra") || is(t, "deberta-v3"); }
static bool         has_pairs(const bert_training *t) { return is(t, "bert") || is(t, "albert"); }
static tn_bert_kind kind_of(const bert_training *t)
{
    return is(t, "albert")       ? TN_ALBERT
           : is(t, "electra")    ? TN_ELECTRA
           : is_deberta(t)       ? TN_DEBERTA
           : is(t, "xlnet")      ? TN_XLNET
           : is(t, "modernbert") ? TN_MODERNBERT
                                 : TN_BERT;
}

/* What a run gets where the user sets nothing (docs/results.md has the trials). Short examples first: most of what a
 * small model can learn in an hour is within a sentence. A step of MANY examples bears twice the rate. */
enum { MANY = 64 };
static const train_choice choices[] = {
    {0, "tiny", 16, 64}, {20, "mini", MANY, 64}, {1000, "small", MANY, 64}, {.size = NULL}};
static const train_choice others[] = {{0, "mini", 16, 128}, {.size = NULL}};

/* Checks the combinations of options. Returns 0 or program_usage. */
static int check_options(const bert_training *a)
{
    if (a->valid.count && !isnan(a->valid_part))
        return program_usage("--valid and --valid-part exclude each other; give only one of them");
    if (has_pairs(a) && a->valid_part > 0)
        return program_usage("--valid-part cannot hold out a part with --objective %s, whose sentence pairs come from "
                             "the whole text; use --valid",
                             a->objective);
    if (a->base.asked.vocab && a->cased)
        return program_usage("--cased is for a new tokenizer, but --vocab names an existing one");
    if (a->embedding && !is(a, "albert") && !is(a, "electra"))
        return program_usage("--embedding is for --objective albert and electra; use --dim for the others");
    if (a->sharing && !has_generator(a)) return program_usage("--sharing is for --objective electra and deberta-v3");
    if (a->word_vectors && !is(a, "bert") && !is(a, "roberta") && !is(a, "deberta"))
        return program_usage("--word-vectors is for --objective bert, roberta and deberta");
    if (a->base.pairs && has_generator(a))
        return program_usage("--pairs is for one model, but --objective %s trains two; measure the generator with "
                             "bert eval --pairs afterwards",
                             a->objective);
    if (a->segment && !is(a, "xlnet")) return program_usage("--segment is for --objective xlnet");
    return 0;
}

static int check(training *t)
{
    bert_training *a = of(t);
    const bool     modern = is(a, "modernbert");
    const int      wrong = check_options(a);
    if (wrong) return wrong;
    const train_choice  *chosen = train_choose(t, modern ? choices : others, modern);
    const tn_bert_config b = tn_bert_size(t->asked.size);
    if (!a->batch) a->batch = chosen->batch;
    if (!a->length) a->length = chosen->length;
    if (isnan(t->asked.dropout)) t->asked.dropout = modern ? 0 : 0.1;
    if (isnan(t->asked.lr) && !modern) t->asked.lr = 1e-3;
    if (isnan(a->valid_part)) a->valid_part = a->valid.count || has_pairs(a) || is(a, "xlnet") ? 0 : 0.1;
    if (a->segment >= a->length)
        return program_usage("--segment is %lld, but must be less than --length, %lld", (long long)a->segment,
                             (long long)a->length);
    return train_shape(t, b.layers, b.heads, b.dim, a->batch >= MANY ? 2 * TRAIN_RATE : TRAIN_RATE);
}

/* Sets the vocabulary's size by that of the text. Only masked tokens are multiplied by the vocabulary, so it is three
 * times that of other models, unless the model is so narrow that this would be most of its work. */
static bool look(training *t)
{
    const bert_training *b = of(t);
    size_t               bytes = 0;
    for (int i = 0; i < b->text.count; i++) {
        struct stat st;
        if (!tn__sys_stat(b->text.value[i], &st))
            bytes += S_ISREG(st.st_mode) ? (size_t)st.st_size : 1 << 24; /* a folder */
    }
    if (is(b, "modernbert")) train_choose_vocabulary(t, bytes, t->asked.dim >= 256 ? 6 : 2);
    return true;
}

static tn_tokenizer *tokenizer(training *t, progress *bar)
{
    return tn_tokenizer_train(of(t)->text.count, of(t)->text.value, .vocab_size = t->asked.vocab_size,
                              .cased = of(t)->cased, .cls_last = is(of(t), "xlnet"), .progress = progress_part,
                              .user = bar);
}

static bool open_texts(training *t, bool valid, texts *to)
{
    const bert_training *b = of(t);
    char                 cache[1024];
    const texts_config   c = {.files = valid ? b->valid : b->text,
                              .cache = in_folder(t->asked.out, valid ? "valid.tokens" : "corpus.tokens", cache),
                              .kind = kind_of(b),
                              .rate = is(b, "modernbert") && !valid ? 0.3 : 0,
                              .held = valid ? 0 : b->valid_part,
                              .most_held = train_valid_tokens(t),
                              .pairs = has_pairs(b),
                              .fixed = valid,
                              .whole_words = b->whole_words,
                              .by_rule = b->by_rule,
                              .length = b->length,
                              .batch = b->batch,
                              .seed = (uint64_t)t->asked.seed};
    return texts_open(&c, t->tokens, to);
}

static bool open_all(training *t)
{
    bert_training *b = of(t);
    if (!open_texts(t, false, &b->texts)) return false;
    if (b->valid.count && !open_texts(t, true, &b->held)) return false;
    t->fit.train = tn_mlm_source(b->texts.batches);
    t->fit.valid = tn_mlm_source(b->texts.held ? b->texts.held : b->held.batches);
    const texts *measured = b->valid.count ? &b->held : &b->texts;
    if (!has_generator(b)) /* the loss of two models is a weighted sum */
        t->unigram = texts_unigram(&b->texts, measured, tn_tokenizer_size(t->tokens)) + (has_pairs(b) ? log(2) : 0);
    t->fit.loss = has_generator(b) ? electra_loss : texts_loss;
    if (is(b, "modernbert")) t->fit.make = tn_fit_muon;
    if (is(b, "xlnet")) t->fit.user = t;
    t->uniform = log((double)tn_tokenizer_size(t->tokens)) + (has_pairs(b) ? log(2) : 0);
    if (has_generator(b)) {
        t->uniform += REPLACED_WEIGHT * log(2);
        t->next = "bert fill --model %s/generator \"The [MASK] is here.\"", t->tag = "feature-extraction";
    }
    t->batches = t->fit.train.batches, t->width = b->batch * b->length;
    if (b->word_vectors) {
        char name[40], path[1024]; /* each rank trains its own copy, with the same bits; record.c deletes such a file */
        snprintf(name, sizeof name, ".pieces.tmp.%012d", tn_world_rank(t->world));
        b->initial = word_vectors_train(b->texts.corpus, tn_tokenizer_size(t->tokens), t->asked.dim, b->word_vectors,
                                        (uint64_t)t->asked.seed, in_folder(t->asked.out, name, path));
    }
    snprintf(t->each, sizeof t->each, "%lld examples (up to %lld tokens)", (long long)b->batch, (long long)b->length);
    return tn_error() == TN_OK;
}

static void *make(training *t)
{
    const bert_training *b = of(t);
    const train_asked   *a = &t->asked;
    tn_bert_config       c = tn_bert_size(a->size);
    c.vocab = tn_tokenizer_size(t->tokens), c.padding = tn_tokenizer_special(t->tokens).pad;
    c.no_next = c.no_pooler = !has_pairs(b);
    c.layers = a->layers, c.heads = a->heads, c.dim = a->dim;
    c.kind = kind_of(b);
    c.norm_first = c.kind == TN_BERT && !b->norm_last;
    if (c.kind == TN_MODERNBERT) /* all layers see the whole example; the feed-forward has the size of BERT's */
        c.eps = 1e-5, c.global_every = 1, c.theta = 1e4, c.ff = (c.dim * 8 / 3 + 31) / 32 * 32;
    c.dropout = c.attention_dropout = a->dropout;
    c.memory = b->segment;
    if (c.kind == TN_DEBERTA) c.types = 0, c.eps = 1e-7, c.mask_decoder = is(b, "deberta");
    else if (c.kind == TN_ALBERT || c.kind == TN_ELECTRA)
        c.embedding = b->embedding ? b->embedding : c.dim < 128 ? c.dim : 128;
    if (c.kind == TN_ALBERT || c.kind == TN_DEBERTA)
        c.init = 1 / sqrt((double)c.dim); /* a product then has about the scale of its input */
    if (b->length > 512) c.positions = b->length;
    if (has_generator(b)) return electra_new(c, b->sharing ? b->sharing : c.kind == TN_DEBERTA ? "gdes" : "tied");
    tn_bert *m = tn_bert_create(c);
    if (m && b->initial) word_vectors_apply(m->words->weight, b->initial);
    return m;
}

static void say(training *t)
{
    const tn_corpus *c = of(t)->texts.corpus;
    tell("text     %lld documents, %lld sentences, %lld tokens\n", (long long)tn_corpus_documents(c),
         (long long)tn_corpus_sentences(c), (long long)tn_corpus_tokens(c));
    if (t->unigram > 0)
        tell("unigram  %.3f nats: the loss of a model that knows only the frequencies of tokens\n", t->unigram);
}

static void describe(const training *t, tn_json_writer *w)
{
    const bert_training *b = (const bert_training *)t;
    checksum_put(w, "text", tn_corpus_checksum(b->texts.corpus));
    if (b->valid.count) checksum_put(w, "valid", tn_corpus_checksum(b->held.corpus));
    tn_json_put_bool(w, "cased", b->cased);
    tn_json_put_string(w, "objective", b->objective ? b->objective : "modernbert");
    if (b->valid_part > 0) tn_json_put_double(w, "valid_part", b->valid_part);
    tn_json_put_i64(w, "batch", b->batch);
    tn_json_put_i64(w, "length", b->length);
    tn_json_put_bool(w, "norm_last", b->norm_last);
    tn_json_put_bool(w, "whole_words", b->whole_words);
    if (b->embedding) tn_json_put_i64(w, "embedding", b->embedding);
    if (b->sharing) tn_json_put_string(w, "sharing", b->sharing);
    if (b->word_vectors) tn_json_put_i64(w, "word_vectors", b->word_vectors);
    if (b->segment) tn_json_put_i64(w, "segment", b->segment);
}

static bool save(training *t, tn_fit_why why)
{
    (void)why;
    if (has_generator(of(t)))
        return (t->world || electra_print_parts(t->net, &t->fit.train)) &&
               electra_save(t->net, t->tokens, t->asked.out);
    return tn_bert_save(t->net, t->asked.out) == TN_OK;
}

static void close_all(training *t)
{
    texts_close(&of(t)->texts), texts_close(&of(t)->held);
    if (of(t)->initial) tn_drop(of(t)->initial);
    of(t)->initial = NULL;
}

static void row(training *t, const tn_batch *b, int64_t i, const tn_ids *ids, char place[64], tn_string *text)
{
    bert_training *a = of(t);
    (void)b, (void)i;
    if (tn_tokenizer_decode(t->tokens, ids->at, ids->n, text) == TN_OK)
        texts_lines_of(&a->texts, &a->text, a->by_rule, t->tokens, ids, place);
}

const train_kind bert_kind = {
    .title = "A masked language model",
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
    .next = "bert fill --model %s \"The [MASK] is here.\"",
    .tag = "fill-mask",
    .score_pairs = score_pairs,
    .row = row,
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bert_training asked = BERT_TRAINING;

static const option options[] = {
    OPTION_LIST("text", 't', "FILE", &asked.text, "training text: files or folders; an empty line ends a document",
                .required = true),
    OPTION_LIST("valid", 0, "FILE", &asked.valid, "validation text"),
    OPTION_REAL(
        "valid-part", 0, "P", &asked.valid_part,
        "fraction of the text, from its end, to validate on instead of --valid, at most 131,072 tokens (default: "
        "0.1; with sentence pairs 0)",
        .least = 0, .most = 0.5),
    OPTION_TEXT(
        "objective", 0, "NAME", &asked.objective,
        "modernbert: masked tokens, rotary positions, gated feed-forward; bert: masked tokens and next sentence; "
        "roberta: masked tokens, examples of full length; albert: "
        "masked spans and sentence order; electra: replaced tokens; deberta: masked tokens, disentangled attention; "
        "deberta-v3: the same with replaced tokens; xlnet: spans in a random order (default: modernbert)",
        .choices = "modernbert|bert|roberta|albert|electra|deberta|deberta-v3|xlnet"),
    OPTION_TEXT("sharing", 0, "HOW", &asked.sharing,
                "how the two models of electra and deberta-v3 share embeddings; gdes: gradient-disentangled (default: "
                "tied, of deberta-v3 gdes)",
                .choices = "tied|gdes|none"),
    OPTION_INT(
        "segment", 0, "N", &asked.segment,
        "XLNet: read examples in segments of N tokens, each with a memory of the one before (default: 1 segment)",
        .least = 1, .most = 16384),
    OPTION_INT("embedding", 0, "N", &asked.embedding,
               "width of ALBERT's or ELECTRA's embeddings (default: --dim, at most 128)", .least = 1, .most = 65536),
    OPTION_INT("word-vectors", 0, "N", &asked.word_vectors,
               "start with word vectors from N epochs of skip-gram on the text; 0: start with random ones", .least = 0,
               .most = 1000),
    OPTION_INT(
        "batch", 'b', "N", &asked.batch,
        "examples per step; from 64 on the default --lr of modernbert is 0.768 divided by the width (default: depends "
        "on the minutes; other objectives 16)",
        .least = 1, .most = 65536),
    OPTION_INT("length", 'l', "N", &asked.length, "tokens per example (default: 64; other objectives 128)", .least = 8,
               .most = 16384),
    OPTION_FLAG("norm-last", 0, &asked.norm_last,
                "norms after the sublayers, as in BERT: harder to train; ALBERT, ELECTRA, DeBERTa and XLNet always "
                "have this"),
    OPTION_FLAG("whole-words", 0, &asked.whole_words, "mask whole words instead of single tokens"),
    OPTION_FLAG("by-rule", 0, &asked.by_rule, "end sentences at . ! ? instead of at the end of a line"),
    OPTION_FLAG("cased", 0, &asked.cased, "keep capital letters and accents"),
    TRAIN_PAIRS(asked.base),
    TRAIN_OPTIONS(asked.base.asked, 's', "tiny|mini|small|medium|base|large", "20", "0.384 divided by the width"),
    {0},
};
const command train_command = TRAIN_COMMAND(
    "train", "train a model on text files", options, &asked.base,
    .text = "Trains a tokenizer on the text, then a model that predicts masked tokens. Ctrl-C saves and ends; --resume "
            "continues an interrupted run, with the same bits as without the interruption.\n\n"
            "  bert train --text book.txt --out book --minutes 20\n"
            "  bert train --text a.txt b.txt --valid c.txt --out abc --size small --steps 10000");

const command verify_command = VERIFY_COMMAND("bert");
const command debug_command = DEBUG_COMMAND("bert");

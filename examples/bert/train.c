/* train.c — bert train: a tokenizer, a model and its training, all in one folder. */
#include "bert.h"
#include "report.h"

#include <math.h>
#include <string.h>

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* The one in the folder to go on with, the one that was given, or a new one from the texts. */
static tn_tokenizer *tokenizer_for(const train_config *c)
{
    if (c->resume) return tn_tokenizer_load(c->out);
    if (c->vocab) return tn_tokenizer_load(c->vocab);
    progress      bar = progress_begin("tokenizer", 100, "%");
    tn_tokenizer *t = tn_tokenizer_train(c->text.count, c->text.value, .vocab_size = c->vocab_size, .cased = c->cased,
                                         .progress = progress_part, .user = &bar);
    progress_end(&bar);
    return t;
}

static tn_bert *bert_for(const train_config *c, const tn_tokenizer *t)
{
    tn_bert_config b = tn_bert_size(c->size);
    b.vocab = tn_tokenizer_size(t), b.padding = tn_tokenizer_special(t).pad;
    b.no_next = b.no_pooler = strcmp(c->objective, "bert") != 0;
    if (c->layers) b.layers = c->layers;
    if (c->heads) b.heads = c->heads;
    if (c->dim) b.dim = c->dim;
    b.norm_first = !c->norm_last;
    b.dropout = b.attention_dropout = c->dropout;
    if (c->length > 512) b.positions = c->length;
    tn_seed((uint64_t)c->seed);
    return tn_error() == TN_OK ? tn_bert_create(b) : NULL;
}

static texts_config texts_for(const train_config *c, bool valid, char cache[1024])
{
    return (texts_config){.files = valid ? c->valid : c->text,
                          .cache = in_folder(c->out, valid ? "valid.tokens" : "corpus.tokens", cache),
                          .pairs = !strcmp(c->objective, "bert"),
                          .fixed = valid,
                          .whole_words = c->whole_words,
                          .by_rule = c->by_rule,
                          .length = c->length,
                          .batch = c->batch,
                          .seed = (uint64_t)c->seed};
}

/* ---- what goes on record ----------------------------------------------------------------------------------------- */

/* What the run is: to resume it, the same must be asked for. The number of steps is part of it. */
static const char *described(const train_config *c, const tn_bert *b, int64_t steps, const texts *t, tn_json_writer *w)
{
    char text[32];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)tn_corpus_checksum(t->corpus));
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "text", text);
    tn_json_put_string(w, "size", c->size);
    tn_json_put_string(w, "objective", c->objective);
    tn_json_put_string(w, "dtype", c->dtype);
    tn_json_put_i64(w, "vocab_size", b->config.vocab);
    tn_json_put_i64(w, "steps", steps);
    tn_json_put_i64(w, "layers", b->config.layers);
    tn_json_put_i64(w, "heads", b->config.heads);
    tn_json_put_i64(w, "dim", b->config.dim);
    tn_json_put_i64(w, "batch", c->batch);
    tn_json_put_i64(w, "length", c->length);
    tn_json_put_double(w, "lr", c->lr);
    tn_json_put_double(w, "warmup", c->warmup);
    tn_json_put_double(w, "dropout", c->dropout);
    tn_json_put_i64(w, "seed", c->seed);
    tn_json_put_bool(w, "norm_last", c->norm_last);
    tn_json_put_bool(w, "whole_words", c->whole_words);
    tn_json_close(w);
    size_t bytes;
    return tn_json_text(w, &bytes);
}

/* The bytes that training takes, about: four numbers for each weight, and what a step keeps for the way back. */
static double memory_of(const train_config *c, tn_bert *b)
{
    const double tokens = (double)(c->batch * c->length);
    return 16 * (double)tn_count(b) + 4 * tokens * (double)b->config.dim * (22 * (double)b->config.layers + 8);
}

static void announce(const train_config *c, tn_bert *b, int64_t steps, double seconds, const texts *t)
{
    if (settings.quiet) return;
    const double weights = (double)tn_count(b), bytes = memory_of(c, b);
    char         time[16];
    fprintf(stderr, "model    %s: %lld layers of %lld, %.2f million parameters, a vocabulary of %lld\n", c->size,
            (long long)b->config.layers, (long long)b->config.dim, weights / 1e6, (long long)b->config.vocab);
    fprintf(stderr, "text     %lld documents, %lld sentences, %lld pieces\n", (long long)tn_corpus_documents(t->corpus),
            (long long)tn_corpus_sentences(t->corpus), (long long)tn_corpus_tokens(t->corpus));
    fprintf(stderr, "memory   about %.0f MiB\n", bytes / 1048576);
    fprintf(stderr, "steps    %lld of %lld examples of at most %lld pieces", (long long)steps, (long long)c->batch,
            (long long)c->length);
    if (seconds > 0)
        fprintf(stderr, "; %.0f ms each, about %s in all", 1e3 * seconds, progress_time(seconds * (double)steps, time));
    fprintf(stderr, "\n");
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

tn_fit_result train_model(const train_config *c, model *m)
{
    tn_fit_result   r = {.why = TN_FIT_FAILED};
    texts           train = {.encoding = NULL}, valid = {.encoding = NULL};
    char            caches[2][1024], folder[1024];
    tn_json_writer *w = tn_json_writer_new(2);
    record          rec = {.log = NULL};
    *m = (model){.bert = NULL};
    if (!w || !record_may_begin(c->out, c->resume) || !(m->tokens = tokenizer_for(c))) goto out;
    const texts_config tc = texts_for(c, false, caches[0]), vc = texts_for(c, true, caches[1]);
    if (!texts_open(&tc, m->tokens, &train)) goto out;
    if (c->valid.count && !texts_open(&vc, m->tokens, &valid)) goto out;
    if (!(m->bert = bert_for(c, m->tokens)) || !record_memory(memory_of(c, m->bert), c->force)) goto out;

    int64_t steps = c->resume ? record_steps(c->out) : 0;
    double  seconds = 0;
    if (!steps) {
        seconds = step_seconds(m->bert, tn_mlm_source(train.batches), texts_loss, !strcmp(c->dtype, "bf16"));
        m->bert = bert_for(c, m->tokens); /* the other is gone: there is one at a time */
        steps = c->steps ? c->steps : c->epochs ? c->epochs * tn_mlm_count(train.batches) : 0;
        if (!steps) steps = (int64_t)fmax(60 * c->minutes / seconds, 1);
    }
    if (tn_error() != TN_OK) goto out;
    announce(c, m->bert, steps, seconds, &train);
    const char *config = described(c, m->bert, steps, &train, w);
    if (!record_run(c->out, c->resume, m->tokens, config)) goto out;

    rec = record_begin(c->out, steps, c->resume);
    stop_begin("saving, then ending; press again to end at once");
    if (tn_error() != TN_OK) goto out;
    const int64_t every = steps / 20 > 500 ? 500 : steps / 20 > 10 ? steps / 20 : 10;
    r = tn_fit(m->bert, .train = tn_mlm_source(train.batches), .loss = texts_loss, .steps = steps,
               .autocast = !strcmp(c->dtype, "bf16"), .lr = c->lr, .warmup = (int64_t)(c->warmup * (double)steps) + 1,
               .valid = tn_mlm_source(valid.batches), .valid_every = c->valid.count ? every : 0,
               .folder = in_folder(c->out, "checkpoints", folder), .save_every = every, .resume = c->resume,
               .config = config, .on = record_fit, .on_user = &rec, .stop = &stop_flag);
    if (r.why != TN_FIT_FAILED) {
        tn_eval(m->bert);
        if (tn_bert_save(m->bert, c->out) == TN_OK) record_page(c->out, "A masked language model");
    }
out:
    if (tn_error() != TN_OK) r.why = TN_FIT_FAILED;
    record_end(&rec);
    tn_json_writer_free(w);
    texts_close(&train), texts_close(&valid);
    return r;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static train_config asked = TRAIN_DEFAULTS;

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    if ((asked.steps > 0) + (asked.epochs > 0) + (asked.minutes > 0) > 1)
        return program_usage("--steps, --epochs and --minutes are three ways to say one thing: give one of them");
    if (!asked.steps && !asked.epochs && !(asked.minutes > 0)) asked.minutes = 20;
    model               m;
    const tn_fit_result r = train_model(&asked, &m);
    if (r.why == TN_FIT_STOPPED && !settings.quiet)
        fprintf(stderr, "stopped at step %lld; the same command with --resume goes on\n", (long long)r.steps);
    else if (r.why != TN_FIT_FAILED) {
        printf("%s: step %lld, loss %.4f", asked.out, (long long)r.steps, r.loss);
        if (isfinite(r.value)) printf(", on --valid %.4f", r.value);
        printf("\n");
    }
    model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_LIST("text", 't', "FILE", &asked.text, "texts to learn from; an empty line ends a document",
                .required = true),
    OPTION_LIST("valid", 0, "FILE", &asked.valid, "texts to measure on"),
    OPTION_TEXT("out", 'o', "DIR", &asked.out, "where the model goes", .required = true),
    OPTION_TEXT("size", 's', "NAME", &asked.size, "tiny, mini, small, medium, base or large"),
    OPTION_INT("layers", 0, "N", &asked.layers, "another number of layers than the size has", .least = 1, .most = 1024),
    OPTION_INT("heads", 0, "N", &asked.heads, "another number of heads", .least = 1, .most = 1024),
    OPTION_INT("dim", 0, "N", &asked.dim, "another width", .least = 1, .most = 65536),
    OPTION_INT("vocab-size", 0, "N", &asked.vocab_size, "pieces of the tokenizer", .least = 10, .most = 1e7),
    OPTION_TEXT("vocab", 0, "PATH", &asked.vocab, "a tokenizer that is there, instead of a new one"),
    OPTION_INT("steps", 'n', "N", &asked.steps, "how long: steps, or ...", .least = 1, .most = 1e9),
    OPTION_INT("epochs", 0, "N", &asked.epochs, "... times through the texts, or ...", .least = 1, .most = 1e6),
    OPTION_REAL("minutes", 'm', "N", &asked.minutes, "... about so many minutes; without all three, 20", .least = 0.01,
                .most = 1e6),
    OPTION_TEXT("objective", 0, "NAME", &asked.objective,
                "bert: hidden words and next sentences; roberta: hidden words in full texts",
                .choices = "bert|roberta"),
    OPTION_TEXT("dtype", 0, "TYPE", &asked.dtype, "bf16 is faster where the CPU has it", .choices = "f32|bf16"),
    OPTION_INT("batch", 'b', "N", &asked.batch, "examples in a step", .least = 1, .most = 65536),
    OPTION_INT("length", 'l', "N", &asked.length, "pieces in an example", .least = 8, .most = 16384),
    OPTION_REAL("lr", 0, "RATE", &asked.lr, "the highest learning rate", .least = 1e-9, .most = 10),
    OPTION_REAL("dropout", 0, "P", &asked.dropout, "what part of the numbers is left out in training", .least = 0,
                .most = 0.9),
    OPTION_FLAG("norm-last", 0, &asked.norm_last,
                "norms behind the layers' parts, as BERT had them: trains less easily"),
    OPTION_FLAG("whole-words", 0, &asked.whole_words, "hide all pieces of a word, or none"),
    OPTION_FLAG("by-rule", 0, &asked.by_rule, "sentences end at . ! ? and not at the end of a line"),
    OPTION_FLAG("cased", 0, &asked.cased, "keep capitals and accents"),
    OPTION_FLAG("resume", 'r', &asked.resume, "go on where a run was broken off"),
    OPTION_FLAG("force", 0, &asked.force, "begin, though the memory that it needs is not there"),
    OPTION_INT("seed", 0, "N", &asked.seed, "of everything that is drawn"),
    {0},
};
const command train_command = {
    .name = "train",
    .summary = "train a model from text files",
    .options = options,
    .run = run,
    .text =
        "Makes a tokenizer from the texts, then learns to find words that were hidden from it. Ctrl-C saves and ends; "
        "--resume goes on with the same bits.\n\n"
        "  bert train --text book.txt --out book --minutes 20\n"
        "  bert train --text a.txt b.txt --valid c.txt --out abc --size small --steps 10000",
};

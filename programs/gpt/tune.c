/* tune.c — gpt tune: trains a language model further, on a text or on answers. The training itself is in
 * common/train.c. */
#include "../common/checksum.h"
#include "../common/messages.h"
#include "../common/weights.h"
#include "gpt.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 4096, MOST_MEASURED = 1 << 17 /* about this number of tokens in a validation */ };

typedef struct {
    training     base;
    text_windows texts;
    const char  *model, *tokenizer, *chat, *type, *layers;
    int64_t      rank;
    double       weight_decay;
    model        from; /* the model to tune; `make` takes .net */
    talks        talk, held_talk;
    tn_dataset  *examples, *held_examples;
} tuning;

static tuning *of(training *t) { return (tuning *)t; }

/* Of answers: rows are padded to the longest example of all, a batch only needs its own longest. */
static tn_tensor *answer_loss(void *net, const tn_batch *b, void *user)
{
    const int64_t rows = tn_size(b->y, 0), width = tn_size(b->y, 1), *y = tn_data(b->y);
    int64_t       longest = 1;
    (void)user;
    for (int64_t i = 0; y && i < rows; i++)
        for (int64_t k = width; k > longest; k--)
            if (y[i * width + k - 1] != -100) longest = k;
    return tn_lm_loss(net, tn_narrow(b->x, 1, 0, longest), tn_narrow(b->y, 1, 0, longest));
}

/* ---- a kind of training ------------------------------------------------------------------------------------------ */

static bool is_full(const tuning *t) { return t->rank == 0; }

static int check(training *b)
{
    tuning      *t = of(b);
    train_asked *a = &b->asked;
    if (!t->texts.of.text.count == !t->chat) return program_usage("give --text FILE or --chat FILE, one of them");
    if (t->chat && t->texts.of.valid.count > 1) return program_usage("--valid of --chat is one file");
    if (t->chat && t->texts.of.valid.count && !isnan(t->texts.of.valid_part))
        return program_either("valid", "valid-part");
    const int code = t->chat ? 0 : train_texts_check(&t->texts.of, NULL, 0.1);
    if (code) return code;
    if (isnan(t->texts.of.valid_part)) t->texts.of.valid_part = 0.1;
    if (t->layers && is_full(t)) return program_stray("lora-layers", "--lora");
    if (t->type && strcmp(t->type, "f32") != 0 && is_full(t))
        return program_usage("--type %s packs the weights, which then cannot change; set --lora, too", t->type);
    if (!a->steps && !a->epochs && !(a->minutes > 0)) a->epochs = t->chat ? 3 : 1;
    a->size = t->type ? t->type : "f32";
    return 0;
}

static bool look(training *b)
{
    tuning      *t = of(b);
    train_asked *a = &b->asked;
    if (!model_open_packed(t->model, t->tokenizer, t->type, &t->from)) return false;
    const tn_lm_info *i = &t->from.about;
    if (!t->texts.length) t->texts.length = t->chat ? 512 : 256;
    if (t->chat) b->next = "gpt write --model %s --chat";
    if (i->limited && t->texts.length > i->positions) t->texts.length = i->positions;
    a->layers = i->layers, a->heads = i->heads, a->dim = i->dim, a->size = i->type ? i->type : "custom";
    a->vocab_size = tn_tokenizer_size(t->from.tokens);
    /* a quarter of the rate for a new model of this width; adapters learn best at ten times that */
    if (isnan(a->lr)) a->lr = fmin((is_full(t) ? 0.1 : 1) / (double)a->dim, is_full(t) ? 1e-3 : 4e-3);
    b->fit.lr = a->lr;
    if (t->chat) return true;
    return train_texts_read(&t->texts.of);
}

/* The model's, which t->from.tokens still points to. */
static tn_tokenizer *tokenizer(training *b, progress *bar)
{
    (void)bar;
    return of(b)->from.all.tokenizer = NULL, of(b)->from.tokens;
}

static bool open_talks(tuning *t)
{
    if (!talks_read(&t->from, t->chat, t->texts.length, &t->talk)) return false;
    if (t->texts.of.valid.count && !talks_read(&t->from, t->texts.of.valid.value[0], t->texts.length, &t->held_talk))
        return false;
    const int64_t n = t->talk.end.n, held = t->texts.of.valid.count ? 0 : (int64_t)(t->texts.of.valid_part * (double)n);
    t->examples = talks_dataset(&t->talk, 0, n - held, t->texts.batch, true, (uint64_t)t->base.asked.seed);
    if (t->texts.of.valid.count)
        t->held_examples = talks_dataset(&t->held_talk, 0, t->held_talk.end.n, t->texts.batch, false, 0);
    else if (held) t->held_examples = talks_dataset(&t->talk, n - held, n, t->texts.batch, false, 0);
    t->base.fit.train = tn_dataset_source(t->examples), t->base.fit.loss = answer_loss;
    if (t->held_examples) t->base.fit.valid = tn_dataset_source(t->held_examples);
    t->base.batches = t->base.fit.train.batches;
    snprintf(t->base.each, sizeof t->base.each, "%lld examples (up to %lld tokens)", (long long)t->texts.batch,
             (long long)t->talk.longest);
    return tn_error() == TN_OK;
}

static bool open_all(training *b)
{
    tuning *t = of(b);
    if (!(t->chat ? open_talks(t) : text_windows_open(&t->texts, b, MOST_MEASURED))) return false;
    b->fit.restore_best = b->fit.valid.next != NULL;
    b->fit.weight_decay = t->weight_decay;
    b->uniform = log((double)tn_tokenizer_size(b->tokens)), b->width = t->texts.batch * t->texts.length;
    return true;
}

/* The model to tune, with weights of that type: the one that `look` opened, then new ones. */
static void *take_model(tuning *t, const char *type)
{
    if (t->from.all.lm) {
        void *net = t->from.all.lm;
        return t->from.all.lm = NULL, t->from.net = NULL, net;
    }
    tn_model again =
        tn_model_open(t->model, .family = TN_MODEL_DECODER, .no_tokenizer = true, .pack = weights_packer(type));
    void *net = again.lm;
    again.module = NULL;
    tn_model_close(&again);
    return net;
}

static void *make(training *b)
{
    tuning *t = of(b);
    void   *net = take_model(t, t->type);
    if (net && is_full(t)) tn_module_train(net, true);
    if (!net || is_full(t)) return net;
    const bool all = !t->layers || !strcmp(t->layers, "all");
    tn_lora_run((tn_lora_args){.module = net, .rank = t->rank, .names = all ? NULL : t->layers});
    if (tn_error() == TN_OK) return net;
    return tn_module_free(net), NULL;
}

static void say(training *b)
{
    const tuning *t = of(b);
    if (t->chat) {
        tell("answers  %lld examples with %lld tokens of answers", (long long)t->talk.end.n,
             (long long)t->talk.answers);
        if (t->talk.cut) tell("; %lld cut at --length %lld", (long long)t->talk.cut, (long long)t->texts.length);
        if (t->talk.empty) tell("; %lld without an answer skipped", (long long)t->talk.empty);
        tell("\n");
    } else train_texts_print(&t->texts.of);
    tell("trains   %.2f million of %.2f million parameters\n", (double)tn_module_count(b->net, true) / 1e6,
         weights_count(b->net) / 1e6);
}

static void describe(const training *b, tn_json_writer *w)
{
    const tuning *t = (const tuning *)b;
    train_texts_describe(&t->texts.of, w);
    train_put_path(b, w, "model", t->model);
    tn_json_put_string(w, "type", t->type ? t->type : "f32");
    tn_json_put_i64(w, "lora", t->rank);
    tn_json_put_string(w, "lora_layers", t->layers ? t->layers : "all");
    tn_json_put_i64(w, "batch", t->texts.batch);
    tn_json_put_i64(w, "length", t->texts.length);
    tn_json_put_double(w, "weight_decay", t->weight_decay);
}

/* The adapters in DIR/adapter, then merged into the weights: those of the file, if the tuned ones are packed. */
static bool save_adapters(tuning *t)
{
    char path[1024];
    in_folder(t->base.asked.out, "adapter", path);
    if (tn_error() != TN_OK || !make_folder(path) ||
        tn_peft_save_run(t->base.net, path, (tn_peft_save_args){.base = t->model}) != TN_OK)
        return false;
    if (t->type && strcmp(t->type, "f32") != 0) {
        tn_module_free(t->base.net);
        tn_trim(); /* the memory of the training, before that of the unpacked weights */
        t->base.net = take_model(t, NULL);
        if (!t->base.net || tn_module_peft_load(t->base.net, path) != TN_OK) return false;
    }
    return tn_module_lora_merge(t->base.net) == TN_OK;
}

static bool save(training *b, tn_fit_why why)
{
    tuning *t = of(b);
    (void)why;
    if (!is_full(t) && !save_adapters(t)) return false;
    tn_model d = t->from.all;                                     /* with the chat template and the end tokens */
    d.lm = b->net, d.tokenizer = tn_tokenizer_load(b->asked.out); /* saved at the start: see gpt train */
    if (d.tokenizer) (void)!tn_model_save(&d, b->asked.out, .no_tokenizer = true); /* the caller sees the error */
    tn_tokenizer_free(d.tokenizer);
    return tn_error() == TN_OK;
}

static void close_all(training *b)
{
    tuning *t = of(b);
    model_close(&t->from);
    text_windows_free(&t->texts);
    tn_dataset_free(t->examples), tn_dataset_free(t->held_examples);
    talks_free(&t->talk), talks_free(&t->held_talk);
}

static const train_kind kind = {
    .title = "A tuned language model",
    .max_interval = 500,
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
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

static tuning asked = {.base = {.kind = &kind, .untimed = true, .asked = {TRAIN_DEFAULTS_CHOSEN, .lr = NAN}},
                       .texts = {.batch = 8, .of.valid_part = NAN},
                       .weight_decay = 0.01};

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &asked.model, MODEL_HELP, .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &asked.tokenizer, TOKENIZER_HELP),
    OPTION_LIST("text", 't', "FILE", &asked.texts.of.text, "training text: files, folders, or - for standard input"),
    OPTION_TEXT(
        "chat", 0, "FILE", &asked.chat,
        "answers to learn instead: lines of JSON with \"prompt\" and \"answer\", or with \"messages\", a list of "
        "\"role\" and \"content\""),
    OPTION_LIST("valid", 0, "FILE", &asked.texts.of.valid, "validation text or answers, used to select the best model"),
    OPTION_REAL("valid-part", 0, "P", &asked.texts.of.valid_part,
                "fraction of the text or the examples, from the end, to validate on instead of --valid (default: 0.1)",
                .least = 0, .most = 0.5),
    OPTION_TEXT("out", 'o', "DIR", &asked.base.asked.out, "folder of the tuned model", .required = true,
                .resume = RESUME_FOLDER),
    OPTION_INT("lora", 0, "RANK", &asked.rank,
               "keep the weights and train adapters of this rank, which are saved in DIR/adapter and merged",
               .least = 0, .most = 4096),
    OPTION_TEXT("lora-layers", 0, "NAMES", &asked.layers,
                "layers with adapters: parts of their names, separated by commas, or all", .otherwise = "all"),
    OPTION_TEXT("type", 0, "TYPE", &asked.type, "with --lora: " WEIGHT_TYPE_TEXT, .choices = WEIGHT_TYPES,
                .otherwise = "f32"),
    OPTION_INT("batch", 'b', "N", &asked.texts.batch, "sequences or examples per step", .least = 1, .most = MOST_ROWS),
    OPTION_INT("length", 'l', "N", &asked.texts.length,
               "maximum tokens per sequence or example (default: 256, or 512 with --chat; at most the model's)",
               .least = 8, .most = 65536),
    OPTION_REAL("weight-decay", 0, "X", &asked.weight_decay, "weight decay of the matrices", .least = 0, .most = 10),
    TRAIN_TUNE(asked.base.asked, "1, or 3 with --chat", "0.1 divided by the width; with --lora ten times as much"),
    {0},
};
const command tune_command = TRAIN_COMMAND(
    "tune", "train a model further on your text or your answers", options, &asked.base,
    .text =
        "Opens a model as gpt write does, a published one or one of gpt train, and trains it further: on plain text, "
        "or on prompts with answers, where only the answers count. DIR then contains the tuned model, which gpt write "
        "and "
        "Hugging Face's libraries open. With --lora only small adapters are trained, over weights that may be packed; "
        "DIR/adapter has them in the files of PEFT. Ctrl-C saves and ends; --resume continues, with the same bits as "
        "without the interruption.\n\n"
        "  gpt tune --model book --text letters.txt --out letters --steps 200\n"
        "  gpt tune --model smollm --chat answers.jsonl --out helper --lora 8 --type int8");

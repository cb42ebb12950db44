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
    training    base;
    option_list text, valid;
    const char *model, *tokenizer, *chat, *type, *layers;
    int64_t     batch, length, rank;
    double      valid_part, weight_decay;
    model       from; /* the model to tune; `make` takes .net */
    tn_string   all;  /* the training text, followed by the validation text */
    size_t      bytes;
    tn_ids      ids, held;
    tn_windows *windows, *held_windows;
    talks       talk, held_talk;
    tn_dataset *examples, *held_examples;
} tuning;

static tuning *of(training *t) { return (tuning *)t; }

static tn_tensor *text_loss(void *net, const tn_batch *b, void *user)
{
    (void)user;
    return tn_lm_loss(net, b->x, b->y);
}

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
    if (!t->text.count == !t->chat) return program_usage("give --text FILE or --chat FILE, one of them");
    if (t->chat && t->valid.count > 1) return program_usage("--valid of --chat is one file");
    if (t->chat && t->valid.count && !isnan(t->valid_part)) return program_either("valid", "valid-part");
    const int code = t->chat ? 0 : texts_check(NULL, &t->text, &t->valid, &t->valid_part, 0.1);
    if (code) return code;
    if (isnan(t->valid_part)) t->valid_part = 0.1;
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
    if (!t->length) t->length = t->chat ? 512 : 256;
    if (t->chat) b->next = "gpt write --model %s --chat";
    if (i->limited && t->length > i->positions) t->length = i->positions;
    a->layers = i->layers, a->heads = i->heads, a->dim = i->dim, a->size = i->type ? i->type : "custom";
    a->vocab_size = tn_tokenizer_size(t->from.tokens);
    /* a quarter of the rate for a new model of this width; adapters learn best at ten times that */
    if (isnan(a->lr)) a->lr = fmin((is_full(t) ? 0.1 : 1) / (double)a->dim, is_full(t) ? 1e-3 : 4e-3);
    b->fit.lr = a->lr;
    if (t->chat) return true;
    return texts_read_both(&t->text, &t->valid, t->valid_part, &t->all, &t->bytes);
}

/* The model's, which t->from.tokens still points to. */
static tn_tokenizer *tokenizer(training *b, progress *bar)
{
    (void)bar;
    return of(b)->from.all.tokenizer = NULL, of(b)->from.tokens;
}

static bool open_text(tuning *t)
{
    const tn_text text = {t->all.at, t->bytes}, valid = {t->all.at + t->bytes, t->all.bytes - t->bytes};
    if (!texts_encode(t->from.tokens, text, false, &t->ids) || !texts_encode(t->from.tokens, valid, false, &t->held))
        return false;
    if (t->ids.n <= t->length)
        return tn_raise_false(TN_EFORMAT,
                              "the training text has %lld tokens, too few for --length %lld: one more than that is "
                              "needed; give a longer text or a smaller --length",
                              (long long)t->ids.n, (long long)t->length);
    const int64_t length = t->held.n <= t->length ? t->held.n - 1 : t->length;
    t->windows = tn_windows_new(t->ids.at, t->ids.n, .batch = t->batch, .length = t->length);
    t->base.fit.train = tn_windows_source(t->windows), t->base.fit.loss = text_loss;
    if (!texts_check_valid(&t->valid, length, "two tokens")) return false;
    if (length > 0) {
        t->held_windows = tn_windows_new(t->held.at, t->held.n, .batch = t->batch, .length = length, .in_order = true,
                                         .most = MOST_MEASURED);
        t->base.fit.valid = tn_windows_source(t->held_windows);
    }
    t->base.batches = t->ids.n / (t->batch * t->length) + 1;
    snprintf(t->base.each, sizeof t->base.each, "%lld sequences of %lld tokens", (long long)t->batch,
             (long long)t->length);
    return tn_error() == TN_OK;
}

static bool open_talks(tuning *t)
{
    if (!talks_read(&t->from, t->chat, t->length, &t->talk)) return false;
    if (t->valid.count && !talks_read(&t->from, t->valid.value[0], t->length, &t->held_talk)) return false;
    const int64_t n = t->talk.end.n, held = t->valid.count ? 0 : (int64_t)(t->valid_part * (double)n);
    t->examples = talks_dataset(&t->talk, 0, n - held, t->batch, true, (uint64_t)t->base.asked.seed);
    if (t->valid.count) t->held_examples = talks_dataset(&t->held_talk, 0, t->held_talk.end.n, t->batch, false, 0);
    else if (held) t->held_examples = talks_dataset(&t->talk, n - held, n, t->batch, false, 0);
    t->base.fit.train = tn_dataset_source(t->examples), t->base.fit.loss = answer_loss;
    if (t->held_examples) t->base.fit.valid = tn_dataset_source(t->held_examples);
    t->base.batches = t->base.fit.train.batches;
    snprintf(t->base.each, sizeof t->base.each, "%lld examples of at most %lld tokens", (long long)t->batch,
             (long long)t->talk.longest);
    return tn_error() == TN_OK;
}

static bool open_all(training *b)
{
    tuning *t = of(b);
    if (!(t->chat ? open_talks(t) : open_text(t))) return false;
    b->fit.restore_best = b->fit.valid.next != NULL;
    b->fit.weight_decay = t->weight_decay;
    b->uniform = log((double)tn_tokenizer_size(b->tokens)), b->width = t->batch * t->length;
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
        if (t->talk.cut) fprintf(stderr, "; %lld cut at --length %lld", (long long)t->talk.cut, (long long)t->length);
        if (t->talk.empty) fprintf(stderr, "; %lld without an answer skipped", (long long)t->talk.empty);
        fprintf(stderr, "\n");
    } else
        tell("text     %zu bytes, %lld tokens; validation: %lld tokens\n", t->bytes, (long long)t->ids.n,
             (long long)t->held.n);
    tell("trains   %.2f million of %.2f million parameters\n", (double)tn_module_count(b->net, true) / 1e6,
         weights_count(b->net) / 1e6);
}

static void describe(const training *b, tn_json_writer *w)
{
    const tuning *t = (const tuning *)b;
    checksum_put(w, "text", checksum_ids(t->chat ? &t->talk.ids : &t->ids));
    checksum_put(w, "valid", checksum_ids(t->chat ? &t->held_talk.ids : &t->held));
    train_put_path(b, w, "model", t->model);
    tn_json_put_string(w, "type", t->type ? t->type : "f32");
    tn_json_put_i64(w, "lora", t->rank);
    tn_json_put_string(w, "lora_layers", t->layers ? t->layers : "all");
    tn_json_put_i64(w, "batch", t->batch);
    tn_json_put_i64(w, "length", t->length);
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
    tn_string_free(&t->all);
    tn_ids_free(&t->ids), tn_ids_free(&t->held);
    tn_windows_free(t->windows), tn_windows_free(t->held_windows);
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
                       .batch = 8,
                       .valid_part = NAN,
                       .weight_decay = 0.01};

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    return train_main(&asked.base);
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "PATH", &asked.model, MODEL_HELP, .required = true),
    OPTION_TEXT("tokenizer", 0, "PATH", &asked.tokenizer, TOKENIZER_HELP),
    OPTION_LIST("text", 't', "FILE", &asked.text, "training text: files, folders, or - for standard input"),
    OPTION_TEXT(
        "chat", 0, "FILE", &asked.chat,
        "answers to learn instead: lines of JSON with \"prompt\" and \"answer\", or with \"messages\", a list of "
        "\"role\" and \"content\""),
    OPTION_LIST("valid", 0, "FILE", &asked.valid, "validation text or answers, used to select the best model"),
    OPTION_REAL("valid-part", 0, "P", &asked.valid_part,
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
    OPTION_INT("batch", 'b', "N", &asked.batch, "sequences or examples per step", .least = 1, .most = MOST_ROWS),
    OPTION_INT("length", 'l', "N", &asked.length,
               "maximum tokens per sequence or example (default: 256, or 512 with --chat; at most the model's)",
               .least = 8, .most = 65536),
    OPTION_REAL("weight-decay", 0, "X", &asked.weight_decay, "weight decay of the matrices", .least = 0, .most = 10),
    OPTION_REAL("warmup", 0, "PART", &asked.base.asked.warmup, "fraction of the steps in which the learning rate rises",
                .least = 0, .most = 1),
    OPTION_INT("steps", 'n', "N", &asked.base.asked.steps, "train for N steps, instead of --epochs", .least = 1,
               .most = 1e9, .resume = RESUME_FREE),
    OPTION_INT("epochs", 0, "N", &asked.base.asked.epochs, "train for N epochs (default: 1, or 3 with --chat)",
               .least = 1, .most = 1e6, .resume = RESUME_FREE),
    OPTION_REAL("minutes", 0, "N", &asked.base.asked.minutes, "train for about N minutes, instead of --epochs",
                .least = 0.01, .most = 1e6, .resume = RESUME_FREE),
    OPTION_TEXT("dtype", 0, "TYPE", &asked.base.asked.dtype,
                "dtype of the computation; bf16 is faster if the CPU supports it", .choices = "f32|bf16"),
    OPTION_REAL("lr", 0, "RATE", &asked.base.asked.lr, "maximum learning rate", .least = 1e-9, .most = 100,
                .otherwise = "0.1 divided by the width; with --lora ten times as much"),
    OPTION_SEED(0, &asked.base.asked.seed, ""),
    TRAIN_RESUME(asked.base.asked),
    {0},
};
const command tune_command = COMMAND(
    "tune", "train a model further on your text or your answers", options,
    .text =
        "Opens a model as gpt write does, a published one or one of gpt train, and trains it further: on plain text, "
        "or on prompts with answers, where only the answers count. DIR then contains the tuned model, which gpt write "
        "and "
        "Hugging Face's libraries open. With --lora only small adapters are trained, over weights that may be packed; "
        "DIR/adapter has them in the files of PEFT. Ctrl-C saves and ends; --resume continues, with the same bits as "
        "without the interruption.\n\n"
        "  gpt tune --model book --text letters.txt --out letters --steps 200\n"
        "  gpt tune --model smollm --chat answers.jsonl --out helper --lora 8 --type int8");

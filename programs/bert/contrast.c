/* contrast.c — bert contrast: trains sentence embeddings on pairs of related texts (InfoNCE). In a batch of n pairs,
 * each first text a_i has to identify its own second text b_i among all n:
 *
 *   loss = cross-entropy of the rows of cos(a_i, b_k) / temperature, with target k = i */
#include "../common/messages.h"
#include "bert.h"

#include "../common/checksum.h"
#include "../common/files.h"
#include "../common/texts.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t n, room;
    char  **text; /* [2 n]: a, b, a, b …; owned */
} pairs;

typedef struct {
    training    base;
    option_list files, valid;
    const char *dir;
    int64_t     batch, length;
    double      temperature;
    sentences   how;
    pairs       all, held;
    tn_dataset *train, *measure;
} contrast;

static const train_kind kind;
static contrast  asked = {.base = {.kind = &kind, .asked = {.dtype = "f32", .lr = 5e-5, .warmup = 0.1, .seed = 1}},
                          .batch = 32,
                          .length = 128,
                          .temperature = 0.05};
static contrast *of(training *t) { return (contrast *)t; }

/* ---- pairs ------------------------------------------------------------------------------------------------------- */

static void pairs_free(pairs *p)
{
    for (int64_t i = 0; i < 2 * p->n; i++) free(p->text[i]);
    free(p->text);
    *p = (pairs){.n = 0};
}

static char *copied(const char *at, size_t bytes)
{
    char *to = malloc(bytes + 1);
    if (!to) return tn_raise_null(TN_ENOMEM, "no memory for the pairs");
    memcpy(to, at, bytes);
    to[bytes] = 0;
    return to;
}

/* Adds the line "a TAB b". */
static void add_pair(pairs *p, tn_text line)
{
    const char  *tab = memchr(line.at, '\t', line.bytes);
    const size_t n = tab ? (size_t)(tab - line.at) : 0, m = tab ? line.bytes - n - 1 : 0;
    if (!n || !m || memchr(tab + 1, '\t', m) || memchr(line.at, 0, line.bytes)) {
        tn_raise(TN_EFORMAT, "not a pair; expected two texts with one tab between them");
        return;
    }
    if (p->n == p->room) {
        const int64_t room = p->room ? 2 * p->room : 1024;
        char        **text = realloc(p->text, 2 * (size_t)room * sizeof *text);
        if (!text) {
            tn_raise(TN_ENOMEM, "no memory for the pairs");
            return;
        }
        p->text = text, p->room = room;
    }
    char *a = copied(line.at, n), *b = copied(tab + 1, m);
    p->text[2 * p->n] = a, p->text[2 * p->n + 1] = b, p->n++; /* pairs_free also accepts NULL */
}

static void pairs_read(pairs *p, const option_list *files)
{
    char where[1100];
    for (int f = 0; f < files->count && tn_error() == TN_OK; f++) {
        tn_lines *l = tn_lines_load(files->value[f]);
        for (int64_t i = 0; i < tn_lines_count(l) && tn_error() == TN_OK; i++) {
            snprintf(where, sizeof where, "%.1000s: line %lld", files->value[f], (long long)i + 1);
            tn_path_push(where);
            if (tn_lines_at(l, i).bytes) add_pair(p, tn_lines_at(l, i));
            tn_path_pop();
        }
        tn_lines_free(l);
    }
    if (p->n < 2 && tn_error() == TN_OK)
        tn_raise(TN_EFORMAT, "'%s' contains %lld pairs, expected at least 2", files->value[0], (long long)p->n);
}

/* A source of batches of the pairs' indices. */
static tn_dataset *batches_of(const pairs *p, int64_t batch, bool shuffle)
{
    return tn_dataset_new(.x = tn_arange_of(TN_I64, 0, (double)p->n, 1), .batch = batch < p->n ? batch : p->n,
                          .shuffle = shuffle, .drop_last = true, .seed = (uint64_t)asked.base.asked.seed);
}

/* ---- the loss ---------------------------------------------------------------------------------------------------- */

static tn_tensor *loss_of(tn_bert *m, const pairs *p, tn_tensor *which)
{
    const int64_t  n = tn_numel(which);
    const size_t   bytes = 2 * (size_t)n * sizeof(char *);
    const char   **text = tn_mem_get(bytes);
    tn_tensor     *y = NULL, *own = tn_arange_of(TN_I64, 0, (double)n, 1);
    tn_token_batch b;
    for (int64_t i = 0; text && i < n; i++) /* first all a, then all b */
        text[i] = p->text[2 * tn_get_i64(which, i)], text[n + i] = p->text[2 * tn_get_i64(which, i) + 1];
    if (text && tn_tokenizer_batch(asked.base.tokens, &b, 2 * n, text, .max_length = asked.how.length) == TN_OK) {
        y = tn_bert_forward(m, b.ids, .types = b.segments, .key_padding_mask = b.key_padding_mask);
        y = tn_bert_sentences(y, b.key_padding_mask, asked.how.pooling);
        y = tn_normalize(y, -1);
        y = tn_matmul(tn_narrow(y, 0, 0, n), tn_transpose(tn_narrow(y, 0, n, n), 0, 1));
        y = tn_cross_entropy(tn_mul_scalar(y, 1 / asked.temperature), own);
    }
    if (text) tn_mem_put(text, bytes);
    return y;
}
static tn_tensor *train_loss(void *m, const tn_batch *b, void *user)
{
    (void)user;
    return loss_of(m, &asked.all, b->x);
}
static tn_tensor *valid_loss(void *m, const tn_batch *b, void *user)
{
    (void)user;
    return loss_of(m, &asked.held, b->x);
}

/* ---- the kind ---------------------------------------------------------------------------------------------------- */

static int check(training *t)
{
    contrast    *c = of(t);
    train_asked *a = &t->asked;
    model        m;
    if (t->world)
        return program_usage("several processes would split a batch, but each text is compared with the whole batch; "
                             "start one process");
    if (!sentences_open(c->dir, &c->how, &m)) return 0; /* the error is reported at the end */
    const tn_bert_config *b = &m.bert->config;
    a->size = tn_bert_kind_name(b->kind), a->vocab = c->how.folder;
    a->layers = b->layers, a->heads = b->heads, a->dim = b->dim;
    for (int i = 0; i < c->how.steps; i++)
        if (c->how.step[i].dense)
            tn_raise(TN_EUNSUPPORTED, "'%s' has a Dense part after its encoder, which bert contrast cannot train",
                     c->dir);
    if (c->how.length > c->length) c->how.length = c->length;
    sentences_close(&c->how, &m);
    return 0;
}

static tn_tokenizer *tokenizer(training *t, progress *bar)
{
    (void)bar;
    return tn_tokenizer_load(of(t)->how.folder);
}

static bool open_all(training *t)
{
    contrast *c = of(t);
    pairs_read(&c->all, &c->files);
    if (c->valid.count) pairs_read(&c->held, &c->valid);
    if (tn_error() != TN_OK || !(c->train = batches_of(&c->all, c->batch, true)) ||
        (c->valid.count && !(c->measure = batches_of(&c->held, c->batch, false))))
        return false;
    t->fit.train = tn_dataset_source(c->train), t->fit.loss = train_loss;
    if (c->measure) t->fit.valid = tn_dataset_source(c->measure), t->fit.measure = valid_loss;
    t->batches = c->all.n / (c->batch < c->all.n ? c->batch : c->all.n), t->width = 2 * c->batch * c->how.length;
    snprintf(t->each, sizeof t->each, "%lld pairs", (long long)c->batch);
    return true;
}

static void *make(training *t) { return tn_bert_load(of(t)->how.folder); }

static void say(training *t)
{
    tell("text     %lld pairs; at most %lld tokens per text\n", (long long)of(t)->all.n, (long long)of(t)->how.length);
}

static uint64_t sum_of(const pairs *p)
{
    uint64_t sum = CHECKSUM;
    for (int64_t i = 0; i < 2 * p->n; i++) sum = checksum_string(sum, p->text[i]);
    return sum;
}

static void describe(const training *t, tn_json_writer *w)
{
    const contrast *c = (const contrast *)t;
    train_put_path(t, w, "model", c->dir);
    checksum_put(w, "pairs", sum_of(&c->all));
    if (c->valid.count) checksum_put(w, "valid", sum_of(&c->held));
    tn_json_put_i64(w, "batch", c->batch);
    tn_json_put_i64(w, "length", c->how.length);
    tn_json_put_double(w, "temperature", c->temperature);
}

static bool write_text(const char *dir, const char *name, const char *text)
{
    char            path[1024];
    tn_json        *doc = tn_json_parse(text, strlen(text));
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_put(w, NULL, doc);
    const bool fine = tn_error() == TN_OK && tn_json_save(w, in_folder(dir, name, path)) == TN_OK;
    tn_json_writer_free(w), tn_json_free(doc);
    return fine;
}

/* Saves a folder in the layout of sentence-transformers. */
static bool save(training *t, tn_fit_why why)
{
    static const char modules[] =
        "[{\"idx\": 0, \"name\": \"0\", \"path\": \"\", \"type\": \"sentence_transformers.models.Transformer\"},\n"
        " {\"idx\": 1, \"name\": \"1\", \"path\": \"1_Pooling\", \"type\": \"sentence_transformers.models.Pooling\"},\n"
        " {\"idx\": 2, \"name\": \"2\", \"path\": \"2_Normalize\", \"type\": "
        "\"sentence_transformers.models.Normalize\"}]\n";
    const contrast       *c = of(t);
    const tn_bert_pooling how = c->how.pooling;
    char                  path[1024], pooling[400], length[80];
    (void)why;
    snprintf(pooling, sizeof pooling,
             "{\"word_embedding_dimension\": %lld, \"pooling_mode_cls_token\": %s, \"pooling_mode_mean_tokens\": %s, "
             "\"pooling_mode_max_tokens\": %s, \"pooling_mode_mean_sqrt_len_tokens\": false}\n",
             (long long)t->asked.dim, how == TN_POOL_FIRST ? "true" : "false", how == TN_POOL_MEAN ? "true" : "false",
             how == TN_POOL_MAX ? "true" : "false");
    snprintf(length, sizeof length, "{\"max_seq_length\": %lld, \"do_lower_case\": false}\n", (long long)c->how.length);
    return tn_bert_save(t->net, t->asked.out) == TN_OK && make_folder(in_folder(t->asked.out, "1_Pooling", path)) &&
           write_text(path, "config.json", pooling) && make_folder(in_folder(t->asked.out, "2_Normalize", path)) &&
           write_text(t->asked.out, "sentence_bert_config.json", length) &&
           write_text(t->asked.out, "modules.json", modules);
}

static void close_all(training *t)
{
    contrast *c = of(t);
    tn_dataset_free(c->train), tn_dataset_free(c->measure);
    c->train = c->measure = NULL;
    pairs_free(&c->all), pairs_free(&c->held);
}

static const train_kind kind = {
    .title = "Sentence embeddings",
    .max_interval = 500,
    .minutes = 10,
    .check = check,
    .tokenizer = tokenizer,
    .open = open_all,
    .make = make,
    .print_info = say,
    .describe = describe,
    .save = save,
    .close = close_all,
    .next = "bert embed --model %s \"a sentence\" \"another one\"",
    .tag = "sentence-similarity",
};

/* ---- the command ------------------------------------------------------------------------------------------------- */

#define OF asked.base.asked
static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &asked.dir, "folder of the model to start from", .required = true),
    OPTION_LIST("pairs", 0, "FILE", &asked.files, "training pairs: lines of two texts, separated by a tab",
                .required = true),
    OPTION_LIST("valid", 0, "FILE", &asked.valid, "validation pairs, in the same format"),
    OPTION_TEXT("out", 'o', "DIR", &OF.out, "folder of the new model", .required = true, .resume = RESUME_FOLDER),
    OPTION_REAL("temperature", 0, "T", &asked.temperature, "divisor of the cosines", .least = 1e-3, .most = 10),
    OPTION_INT("batch", 'b', "N", &asked.batch, "pairs per step; each text is compared with all of them", .least = 2,
               .most = 65536),
    OPTION_INT("length", 'l', "N", &asked.length, "maximum number of tokens of a text", .least = 2, .most = 16384),
    OPTION_INT("steps", 'n', "N", &OF.steps, "train for N steps, instead of --minutes", .least = 1, .most = 1e9,
               .resume = RESUME_FREE),
    OPTION_INT("epochs", 0, "N", &OF.epochs, "train for N epochs of the pairs, instead of --minutes", .least = 1,
               .most = 1e6, .resume = RESUME_FREE),
    OPTION_REAL("minutes", 0, "N", &OF.minutes,
                "train for about N minutes (default: 10, unless --steps or --epochs is set)", .least = 0.01,
                .most = 1e6, .resume = RESUME_FREE),
    OPTION_TEXT("dtype", 0, "TYPE", &OF.dtype, "dtype of the computation; bf16 is faster if the CPU supports it",
                .choices = "f32|bf16"),
    OPTION_REAL("lr", 0, "RATE", &OF.lr, "maximum learning rate", .least = 1e-9, .most = 10),
    OPTION_SEED(0, &OF.seed, ""),
    TRAIN_RESUME(OF),
    {0},
};
const command contrast_command = TRAIN_COMMAND(
    "contrast", "train sentence embeddings on pairs of texts", options, &asked.base,
    .text =
        "A pair is two related texts, such as a question and its answer, or a sentence and its paraphrase. The model "
        "learns to identify the partner of a text among all pairs of a batch. The result is a folder that "
        "sentence-transformers can open.\n\n"
        "  bert contrast --model book --pairs pairs.tsv --out sentences");

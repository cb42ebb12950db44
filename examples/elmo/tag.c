/* tag.c — elmo tag: a tagger that reads a frozen model's layers, each as much as it finds useful; or, to be compared
 * with it, word vectors. The tagger is an LSTM in both directions and a linear layer. */
#include "elmo.h"

#include <stdlib.h>
#include <string.h>

enum { TAGS = 64, WORD = 32, LONGEST = 200 };

static const char *dir, *vectors_path, *learn_path, *test_path;
static int64_t     epochs = 3, batch = 32, hidden = 64, seed = 1;
static double      lr = 2e-3, dropout = 0.3;

/* ---- sentences with tags ----------------------------------------------------------------------------------------- */

typedef struct {
    tn_lines  *file;
    tn_string  text; /* all words with blanks between them, which `line` points into */
    size_t    *from; /* of each sentence */
    text_lines line;
    int64_t   *tag, *first; /* of all words; of each sentence */
    int64_t    words;
} tagged;

static char    tag_name[TAGS][WORD];
static int64_t tags;

static int64_t tag_of(tn_text t)
{
    int64_t i = 0;
    while (i < tags && (strlen(tag_name[i]) != t.bytes || memcmp(tag_name[i], t.at, t.bytes) != 0)) i++;
    if (i < tags) return i;
    if (tags == TAGS || t.bytes >= WORD) return tn_raise(TN_EFORMAT, "more than %d tags: is it CoNLL-U?", TAGS), 0;
    snprintf(tag_name[tags], WORD, "%.*s", (int)t.bytes, t.at);
    return tags++;
}

/* Column k of a line, from 0. */
static tn_text column(tn_text line, int k)
{
    size_t at = 0;
    for (; k > 0 && at < line.bytes; at++) k -= line.at[at] == '\t';
    size_t end = at;
    while (end < line.bytes && line.at[end] != '\t') end++;
    return (tn_text){line.at + at, end - at};
}

/* A word's line begins with its number alone: no "1-2" and no "1.1". */
static bool is_word(tn_text line)
{
    size_t n = 0;
    while (n < line.bytes && line.at[n] >= '0' && line.at[n] <= '9') n++;
    return n && n < line.bytes && line.at[n] == '\t';
}

static void end_sentence(tagged *t, int64_t *sentences, int64_t *in)
{
    if (!*in) return;
    tn_string_add(&t->text, tn_text_of("\n"));
    t->from[++*sentences] = t->text.bytes, t->first[*sentences] = t->words, *in = 0;
}

static bool read_tagged(const char *path, tagged *t)
{
    t->file = tn_lines_load(path);
    const int64_t n = t->file ? tn_lines_count(t->file) : 0;
    int64_t       sentences = 0, in = 0;
    t->from = calloc((size_t)n + 2, sizeof *t->from);
    t->tag = calloc((size_t)n + 1, sizeof *t->tag), t->first = calloc((size_t)n + 2, sizeof *t->first);
    if (!t->from || !t->tag || !t->first) return tn_raise(TN_ENOMEM, "no memory for '%s'", path), false;
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        const tn_text line = tn_lines_at(t->file, i);
        if (!line.bytes || in == LONGEST) end_sentence(t, &sentences, &in);
        if (!is_word(line)) continue;
        tn_text word = column(line, 1);
        if (in++) tn_string_add(&t->text, tn_text_of(" "));
        for (size_t k = 0; k < word.bytes; k++) /* a word with a blank in it is one all the same */
            tn_string_add(&t->text, word.at[k] == ' ' ? tn_text_of("_") : (tn_text){word.at + k, 1});
        t->tag[t->words++] = tag_of(column(line, 3));
    }
    end_sentence(t, &sentences, &in);
    for (int64_t i = 0; i < sentences && tn_error() == TN_OK; i++)
        lines_add(&t->line, (tn_text){t->text.at + t->from[i], t->from[i + 1] - t->from[i] - 1});
    if (tn_error() == TN_OK && !sentences)
        tn_raise(TN_EFORMAT, "'%s' has no sentences in CoNLL-U's columns, with tabs between them", path);
    return tn_error() == TN_OK;
}

static void free_tagged(tagged *t)
{
    tn_lines_free(t->file);
    tn_string_free(&t->text);
    lines_free(&t->line);
    free(t->from), free(t->tag), free(t->first);
}

/* ---- the tagger -------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module      base;
    tn_scalar_mix *mix;
    tn_dropout    *drop;
    tn_lstm       *read;
    tn_linear     *say;
    const tn_elmo *elmo; /* not its own; or */
    tn_vectors    *vectors;
} tagger;
TN_MODULE(tagger);

static tagger *tagger_new(tn_elmo *elmo, tn_vectors *v)
{
    tagger *m = tn_module_new(tagger);
    if (!m) return NULL;
    const int64_t in = elmo ? 2 * elmo->config.dim : tn_vectors_dim(v);
    m->elmo = elmo, m->vectors = v;
    if (elmo) m->mix = tn_child(m, "mix", tn_scalar_mix_new(.count = TN_ELMO_LAYERS));
    m->drop = tn_child(m, "drop", tn_dropout_new(.p = dropout));
    m->read = tn_child(m, "read", tn_lstm_new(.in = in, .hidden = hidden, .bidirectional = true));
    m->say = tn_child(m, "say", tn_linear_new(.in = 2 * hidden, .out = tags));
    return tn_built(m);
}

/* What is known of n sentences' words, [n, T, in], off the tape. */
static tn_tensor *vectors_of(const tagger *m, int64_t n, const tn_text *lines, tn_tensor *lengths)
{
    int64_t most = 1;
    for (int64_t i = 0; i < n; i++) most = tn_get_i64(lengths, i) > most ? tn_get_i64(lengths, i) : most;
    const int64_t dim = tn_vectors_dim(m->vectors);
    tn_tensor    *x = tn_zeros(TN_SHAPE(n, most, dim));
    float        *to = x ? tn_data_mut(x) : NULL;
    for (int64_t i = 0; to && i < n; i++)
        for (size_t at = 0, k = 0; at < lines[i].bytes; k++) {
            size_t end = at;
            while (end < lines[i].bytes && lines[i].at[end] != ' ') end++;
            tn_vectors_of(m->vectors, (tn_text){lines[i].at + at, end - at}, to + (i * most + (int64_t)k) * dim);
            at = end + 1;
        }
    return x;
}

/* Scores [n, T, tags] of n sentences. */
static tn_tensor *scores(tagger *m, int64_t n, const tn_text *lines, tn_tensor *lengths)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *layer[TN_ELMO_LAYERS], *x = NULL;
    if (m->elmo) {
        const tn_scope      s = tn_no_grad_begin();
        tn_elmo            *elmo = (tn_elmo *)(uintptr_t)m->elmo;
        const tn_elmo_batch b = tn_elmo_sentences(elmo, n, lines);
        if (tn_error() == TN_OK) tn_elmo_vectors(elmo, &b, layer);
        tn_scope_return_list(s, TN_ELMO_LAYERS, layer);
        if (tn_error() == TN_OK) x = tn_scalar_mix_forward(m->mix, TN_ELMO_LAYERS, layer);
    } else {
        x = vectors_of(m, n, lines, lengths);
    }
    x = tn_lstm_forward(m->read, tn_call(m->drop, x), .lengths = lengths);
    return tn_leave(f, tn_call(m->say, tn_call(m->drop, x)));
}

/* One batch: its loss, and how many tags are right. */
static tn_tensor *look_at(tagger *m, const tagged *t, const int64_t *which, int64_t n, int64_t *right)
{
    tn_text    lines[1024];
    tn_tensor *lengths = tn_empty_of(TN_I64, TN_SHAPE(n));
    int64_t   *length = tn_data_mut(lengths), most = 1;
    for (int64_t i = 0; i < n; i++) {
        lines[i] = t->line.line[which[i]], length[i] = t->first[which[i] + 1] - t->first[which[i]];
        most = length[i] > most ? length[i] : most;
    }
    tn_tensor *y = scores(m, n, lines, lengths), *target = tn_full_of(TN_I64, TN_SHAPE(n, most), -100);
    int64_t   *to = target ? tn_data_mut(target) : NULL;
    for (int64_t i = 0; to && i < n; i++)
        memcpy(to + i * most, t->tag + t->first[which[i]], (size_t)length[i] * sizeof *to);
    if (!y || !to) return NULL;
    const tn_tensor *best = tn_argmax(y, 2, false);
    for (int64_t i = 0; best && i < n * most; i++) *right += to[i] >= 0 && tn_get_i64(best, i) == to[i];
    return tn_cross_entropy(y, target);
}

static void learn(tagger *m, const tagged *t, int64_t *order)
{
    tn_optimizer *o = tn_adam_new(m, .lr = lr, .clip.norm = 5);
    progress      bar = progress_begin("tagger", epochs * t->line.count, "sentence");
    for (int64_t e = 0; e < epochs && tn_error() == TN_OK && !stop_flag; e++) {
        for (int64_t i = t->line.count; i > 1;) {
            const int64_t k = tn_random_below(tn_current_generator(), i--), swap = order[i];
            order[i] = order[k], order[k] = swap;
        }
        for (int64_t at = 0; at < t->line.count && tn_error() == TN_OK && !stop_flag; at += batch) {
            const tn_scope s = tn_scope_begin();
            int64_t        right = 0;
            const int64_t  n = t->line.count - at < batch ? t->line.count - at : batch;
            tn_tensor     *loss = look_at(m, t, order + at, n, &right);
            if (loss) tn_backward(loss), tn_step(o);
            tn_scope_end(s);
            progress_at(&bar, e * t->line.count + at + n, NULL);
        }
    }
    progress_end(&bar);
    tn_optimizer_free(o);
}

static void judge(tagger *m, const tagged *t)
{
    int64_t right = 0, which[1024];
    tn_module_train(m, false);
    for (int64_t at = 0; at < t->line.count && tn_error() == TN_OK; at += batch) {
        const tn_scope s = tn_no_grad_begin();
        const int64_t  n = t->line.count - at < batch ? t->line.count - at : batch;
        for (int64_t i = 0; i < n; i++) which[i] = at + i;
        look_at(m, t, which, n, &right);
        tn_scope_end(s);
    }
    if (tn_error() != TN_OK) return;
    if (m->mix) {
        const tn_scope   s = tn_no_grad_begin();
        const tn_tensor *w = tn_softmax(m->mix->weight, 0);
        printf("layers");
        for (int64_t i = 0; w && i < TN_ELMO_LAYERS; i++) printf(" %.4f", tn_get(w, i));
        printf(" gamma %.4f\n", tn_item(m->mix->gamma));
        tn_scope_end(s);
    }
    printf("accuracy %.4f words %lld\n", (double)right / (double)t->words, (long long)t->words);
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    if (!dir == !vectors_path) return program_usage("give --model or --vectors: what the tagger reads");
    tagged      learned = {.file = NULL}, test = {.file = NULL};
    tn_elmo    *elmo = dir ? tn_elmo_load(dir) : NULL;
    tn_vectors *v = vectors_path ? tn_vectors_load(vectors_path, TN_VECTORS_ANY) : NULL;
    int64_t    *order = NULL;
    tagger     *m = NULL;
    stop_begin("ending");
    tn_seed((uint64_t)seed);
    if ((elmo || v) && read_tagged(learn_path, &learned) && read_tagged(test_path, &test) &&
        (m = tagger_new(elmo, v)) && (order = malloc((size_t)learned.line.count * sizeof *order))) {
        for (int64_t i = 0; i < learned.line.count; i++) order[i] = i;
        learn(m, &learned, order);
        if (!stop_flag) judge(m, &test);
    }
    free(order);
    tn_module_free(m), tn_module_free(elmo);
    tn_vectors_free(v);
    free_tagged(&learned), free_tagged(&test);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "the folder of a model, whose layers are read"),
    OPTION_TEXT("vectors", 0, "FILE", &vectors_path, "or word vectors"),
    OPTION_TEXT("train", 0, "FILE", &learn_path, "sentences with tags to learn from, in CoNLL-U", .required = true),
    OPTION_TEXT("test", 0, "FILE", &test_path, "sentences with tags to be judged by", .required = true),
    OPTION_INT("epochs", 0, "N", &epochs, "times through them", .least = 1, .most = 1000),
    OPTION_INT("batch", 'b', "N", &batch, "sentences in a step", .least = 1, .most = 1024),
    OPTION_INT("hidden", 0, "N", &hidden, "width of the tagger's LSTM", .least = 1, .most = 65536),
    OPTION_REAL("lr", 0, "RATE", &lr, "its learning rate", .least = 1e-9, .most = 10),
    OPTION_REAL("dropout", 0, "P", &dropout, "what part of the numbers is left out in training", .least = 0,
                .most = 0.9),
    OPTION_INT("seed", 0, "N", &seed, "of everything that is drawn"),
    {0},
};
const command tag_command = COMMAND(
    "tag", "train a tagger on a model's layers, and judge it", options,
    .text = "Parts of speech (the fourth column of CoNLL-U). The model does not change; the tagger learns how much "
            "it takes of each layer, which the first line says: of characters, of the first and of the second "
            "LSTM. The last line is \"accuracy A words N\".\n\n"
            "  elmo tag --model model --train train.conllu --test test.conllu\n"
            "  elmo tag --vectors words.vec --train train.conllu --test test.conllu");

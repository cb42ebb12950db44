/* tag.c — elmo tag: taggers that read a learned mix of a frozen model's layers or, for comparison, word vectors. The
 * kinds: a bidirectional LSTM, without or with a CRF; a window network that reads the words around a word and the tags
 * before it (Collobert and others 2011), greedy from left to right; and a bag network that ignores word order and reads
 * the word and the mean of its sentence. */
#include "elmo.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 200, AROUND = 2, BEFORE = 2, TAG_DIM = 16, BATCH_MOST = 1024 };

static const char *dir, *vectors_path, *learn_path, *test_path, *form, *kind_name = "lstm";
static int64_t     epochs = 3, batch = 32, hidden = 64, seed = 1;
static double      lr = 2e-3, dropout = 0.3;

/* ---- sentences with tags ----------------------------------------------------------------------------------------- */

typedef struct {
    tn_labelled *file;
    tn_string    text; /* all words with blanks between them; `line` points into it */
    size_t      *from; /* byte offset of each sentence */
    text_lines   line;
    int64_t     *tag, *first; /* the tag of each word; the index of each sentence's first word */
    int64_t      words;
} tagged;

static tn_labels *names; /* the names of the tags */
static int64_t    tags;

/* Appends a word, with '_' for each blank in it, so that it stays one word. Blanks are all white space for ELMo, and
 * ' ' for word vectors. */
static void add_word(tagged *t, const char *word)
{
    const size_t bytes = strlen(word);
    for (size_t at = 0, from = 0; at < bytes; from = at) {
        const uint32_t code = tn_utf8_next(word, bytes, &at, NULL);
        const bool     blank = dir ? tn_is_space(code) : code == ' ';
        tn_string_add(&t->text, blank ? tn_text_of("_") : (tn_text){word + from, at - from});
    }
}

/* Appends a sentence, cut into sentences of at most LONGEST words. */
static void add_sentence(tagged *t, const tn_example *x, int64_t *sentences)
{
    for (int64_t k = 0; k < x->texts && tn_error() == TN_OK; k++) {
        if (k % LONGEST) tn_string_add(&t->text, tn_text_of(" "));
        add_word(t, x->text[k]);
        t->tag[t->words++] = tn_labels_find(names, x->label[k]);
        if (k + 1 < x->texts && (k + 1) % LONGEST) continue;
        tn_string_add(&t->text, tn_text_of("\n"));
        t->from[++*sentences] = t->text.bytes, t->first[*sentences] = t->words;
    }
}

static bool read_tagged(const char *path, tagged *t)
{
    int64_t sentences = 0, words = 0;
    t->file = tn_labelled_load(path, .kind = TN_LABELLED_WORDS, .form = form);
    if (t->file && !names) names = tn_labels_of(t->file), tags = tn_labels_count(names);
    else if (t->file) tn_labelled_only(t->file, names);
    const int64_t n = tn_error() == TN_OK ? tn_labelled_count(t->file) : 0;
    for (int64_t i = 0; i < n; i++) words += tn_labelled_at(t->file, i).texts;
    t->from = calloc((size_t)(n + words / LONGEST) + 2, sizeof *t->from);
    t->first = calloc((size_t)(n + words / LONGEST) + 2, sizeof *t->first);
    t->tag = calloc((size_t)words + 1, sizeof *t->tag);
    if (!t->from || !t->tag || !t->first) return tn_raise_false(TN_ENOMEM, "no memory for '%s'", path);
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        const tn_example x = tn_labelled_at(t->file, i);
        add_sentence(t, &x, &sentences);
    }
    for (int64_t i = 0; i < sentences && tn_error() == TN_OK; i++)
        lines_add(&t->line, (tn_text){t->text.at + t->from[i], t->from[i + 1] - t->from[i] - 1});
    return tn_error() == TN_OK;
}

static void free_tagged(tagged *t)
{
    tn_labelled_free(t->file);
    tn_string_free(&t->text);
    lines_free(&t->line);
    free(t->from), free(t->tag), free(t->first);
}

/* ---- the taggers ------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module      base;
    tn_scalar_mix *mix;
    tn_dropout    *drop;
    tn_lstm       *read; /* kinds lstm and crf; else NULL */
    tn_embedding  *last; /* embeds the tags before a word: kind window; else NULL */
    tn_linear     *look, *say;
    tn_crf        *crf;
    const tn_elmo *elmo;    /* borrowed; NULL: vectors */
    tn_vectors    *vectors; /* borrowed; NULL: elmo */
} tagger;
TN_MODULE(tagger);

static tagger *tagger_new(tn_elmo *elmo, tn_vectors *v)
{
    tagger    *m = tn_module_new(tagger);
    const bool window = !strcmp(kind_name, "window"), bag = !strcmp(kind_name, "bag");
    if (!m) return NULL;
    const int64_t in = elmo ? 2 * elmo->config.dim : tn_vectors_dim(v);
    m->elmo = elmo, m->vectors = v;
    if (elmo) m->mix = tn_child(m, "mix", tn_scalar_mix_new(.count = TN_ELMO_LAYERS));
    m->drop = tn_child(m, "drop", tn_dropout_new(.p = dropout));
    if (window) m->last = tn_child(m, "last", tn_embedding_new(.count = tags + 1, .dim = TAG_DIM));
    if (window || bag) {
        const int64_t sees = window ? (2 * AROUND + 1) * in + BEFORE * TAG_DIM : 2 * in;
        m->look = tn_child(m, "look", tn_linear_new(.in = sees, .out = 2 * hidden));
    } else {
        m->read = tn_child(m, "read", tn_lstm_new(.in = in, .hidden = hidden, .bidirectional = true));
    }
    m->say = tn_child(m, "say", tn_linear_new(.in = 2 * hidden, .out = tags));
    if (!strcmp(kind_name, "crf")) m->crf = tn_child(m, "crf", tn_crf_new(.labels = tags));
    return tn_built(m);
}

/* The vector of a word; if it has none, the vector of the word in lower case. */
static void vector_of(const tagger *m, tn_text word, float *to)
{
    char low[64];
    if (tn_vectors_find(m->vectors, word) < 0 && word.bytes < sizeof low) {
        for (size_t i = 0; i < word.bytes; i++) low[i] = (char)tolower((unsigned char)word.at[i]);
        word.at = low;
    }
    tn_vectors_of(m->vectors, word, to);
}

/* The word vectors of n sentences, [n, T, in], not recorded. */
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
            vector_of(m, (tn_text){lines[i].at + at, end - at}, to + (i * most + (int64_t)k) * dim);
            at = end + 1;
        }
    return x;
}

static tn_tensor *words_of(tagger *m, int64_t n, const tn_text *lines, tn_tensor *lengths)
{
    tn_tensor *layer[TN_ELMO_LAYERS];
    if (!m->elmo) return vectors_of(m, n, lines, lengths);
    const tn_scope      s = tn_no_grad_begin();
    tn_elmo            *elmo = (tn_elmo *)(uintptr_t)m->elmo;
    const tn_elmo_batch b = tn_elmo_sentences(elmo, n, lines);
    if (tn_error() == TN_OK) tn_elmo_vectors(elmo, &b, layer);
    tn_scope_return_list(s, TN_ELMO_LAYERS, layer);
    return tn_error() == TN_OK ? tn_scalar_mix_forward(m->mix, TN_ELMO_LAYERS, layer) : NULL;
}

/* Each word's vector concatenated with those of its neighbours, [n, T, 5 in]; zeros outside of the sentence. */
static tn_tensor *windows(tn_tensor *x)
{
    tn_tensor    *part[2 * AROUND + 1];
    const int64_t n = tn_size(x, 0), t = tn_size(x, 1);
    tn_tensor    *edge = tn_zeros(TN_SHAPE(n, AROUND, tn_size(x, 2)));
    tn_tensor    *wide = tn_cat(1, edge, x, edge);
    for (int i = 0; i <= 2 * AROUND; i++) part[i] = tn_narrow(wide, 1, i, t);
    return tn_cat_list(2, 2 * AROUND + 1, part);
}

/* The two tags before each word, counted from 1, [n, T, 2]; 0: none. */
static tn_tensor *tags_before(const tn_tensor *tag)
{
    const int64_t n = tn_size(tag, 0), t = tn_size(tag, 1);
    tn_tensor    *b = tn_zeros_of(TN_I64, TN_SHAPE(n, t, BEFORE));
    int64_t      *to = b ? tn_data_mut(b) : NULL;
    for (int64_t i = 0; to && i < n * t * BEFORE; i++) {
        const int64_t place = i / BEFORE, back = i % BEFORE + 1, at = place % t;
        const int64_t was = at >= back ? tn_get_i64(tag, place - back) : -1;
        to[i] = was < 0 ? 0 : was + 1;
    }
    return b;
}

/* Each word's vector concatenated with the mean of its sentence, [n, T, 2 in]. */
static tn_tensor *with_mean(tn_tensor *x, tn_tensor *lengths)
{
    tn_tensor *count = tn_reshape(tn_to(lengths, TN_F32), TN_SHAPE(-1, 1, 1));
    tn_tensor *mean = tn_div(tn_sum(x, .dims = TN_DIMS(1), .keepdim = true), count);
    return tn_cat(2, x, tn_expand(mean, tn_shape_of(x)));
}

/* The logits of the tags, [n, T, tags], from the network's input [n, T, sees]. */
static tn_tensor *logits_of(tagger *m, tn_tensor *seen)
{
    return tn_call(m->say, tn_call(m->drop, tn_relu(tn_call(m->look, seen))));
}

/* Tags from left to right, using the tags chosen before: logits [n, T, tags]; fills tag [n, T]. */
static tn_tensor *tag_greedily(tagger *m, tn_tensor *x, tn_tensor *tag)
{
    const int64_t n = tn_size(x, 0), t = tn_size(x, 1);
    tn_tensor    *all = tn_zeros(TN_SHAPE(n, t, tags));
    for (int64_t at = 0; at < t && tn_error() == TN_OK; at++) {
        const tn_scope s = tn_no_grad_begin();
        tn_tensor     *before = tn_narrow(tags_before(tag), 1, at, 1);
        tn_tensor     *known = tn_reshape(tn_call(m->last, before), TN_SHAPE(n, 1, BEFORE * TAG_DIM));
        tn_tensor     *y = logits_of(m, tn_cat(2, tn_narrow(x, 1, at, 1), known));
        tn_tensor     *best = tn_argmax(y, 2, false);
        tn_copy_from(tn_narrow(all, 1, at, 1), y);
        for (int64_t i = 0; best && i < n; i++) tn_set_i64(tag, i * t + at, tn_get_i64(best, i));
        tn_scope_end(s);
    }
    return all;
}

/* Logits [n, T, tags] of n sentences. tag [n, T]: the targets; in training, a window network reads the previous tags
 * from it. */
static tn_tensor *tag_logits(tagger *m, int64_t n, const tn_text *lines, tn_tensor *lengths, tn_tensor *tag)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    tn_tensor     *x = words_of(m, n, lines, lengths), *y = NULL;
    if (x) x = tn_call(m->drop, x);
    if (x && m->read) y = tn_call(m->say, tn_call(m->drop, tn_lstm_forward(m->read, x, .lengths = lengths)));
    else if (x && !m->last) y = logits_of(m, with_mean(x, lengths));
    else if (x && !m->base.training) y = tag_greedily(m, windows(x), tn_full_of(TN_I64, tn_shape_of(tag), -100));
    else if (x) {
        const int64_t t = tn_size(x, 1);
        tn_tensor    *known = tn_reshape(tn_call(m->last, tags_before(tag)), TN_SHAPE(n, t, BEFORE * TAG_DIM));
        y = logits_of(m, tn_cat(2, windows(x), known));
    }
    return tn_leave(f, y);
}

/* ---- training and evaluation ------------------------------------------------------------------------------------- */

typedef struct {
    int64_t      right;
    tn_entities *entities; /* NULL: the tags are not entities */
} results;

/* Compares the predicted tags of sentence i of a batch with the targets, and counts the results in j. */
static void compare(tagger *m, tn_tensor *y, int64_t i, const int64_t *right, int64_t length, results *j)
{
    const char *const *name = tn_labels_names(names);
    int64_t            said[LONGEST] = {0};
    tn_tensor         *of = tn_narrow(tn_select(y, 0, i), 0, 0, length);
    if (m->crf) {
        tn_crf_best(m->crf, of, said);
    } else {
        const tn_tensor *best = tn_argmax(of, 1, false);
        for (int64_t k = 0; best && k < length; k++) said[k] = tn_get_i64(best, k);
    }
    for (int64_t k = 0; k < length && tn_error() == TN_OK; k++) {
        j->right += said[k] == right[k];
        if (j->entities) tn_entities_add(j->entities, tn_text_of(name[right[k]]), tn_text_of(name[said[k]]));
    }
    if (j->entities) tn_entities_end_sentence(j->entities);
}

/* Runs one batch: returns its loss, or, with j, counts the correct tags in j and returns NULL. */
static tn_tensor *run_batch(tagger *m, const tagged *t, const int64_t *which, int64_t n, results *j)
{
    tn_text    lines[BATCH_MOST];
    tn_tensor *lengths = tn_empty_of(TN_I64, TN_SHAPE(n));
    int64_t   *length = tn_data_mut(lengths), most = 1;
    for (int64_t i = 0; i < n; i++) {
        lines[i] = t->line.line[which[i]], length[i] = t->first[which[i] + 1] - t->first[which[i]];
        most = length[i] > most ? length[i] : most;
    }
    tn_tensor *target = tn_full_of(TN_I64, TN_SHAPE(n, most), -100);
    int64_t   *to = target ? tn_data_mut(target) : NULL;
    for (int64_t i = 0; to && i < n; i++)
        memcpy(to + i * most, t->tag + t->first[which[i]], (size_t)length[i] * sizeof *to);
    tn_tensor *y = to ? tag_logits(m, n, lines, lengths, target) : NULL;
    if (!y) return NULL;
    for (int64_t i = 0; j && i < n; i++) compare(m, y, i, t->tag + t->first[which[i]], length[i], j);
    if (j) return NULL;
    return m->crf ? tn_crf_loss(m->crf, y, target) : tn_cross_entropy(y, target);
}

static void train(tagger *m, const tagged *t, int64_t *order)
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
            const int64_t  n = t->line.count - at < batch ? t->line.count - at : batch;
            tn_tensor     *loss = run_batch(m, t, order + at, n, NULL);
            if (loss) tn_backward(loss), tn_step(o);
            tn_scope_end(s);
            progress_at(&bar, e * t->line.count + at + n, NULL);
        }
    }
    progress_end(&bar);
    tn_optimizer_free(o);
}

/* True if a tag starts with "B-", as those of entities do. */
static bool are_entities(void)
{
    for (int64_t i = 0; i < tags; i++)
        if (!strncmp(tn_labels_names(names)[i], "B-", 2)) return true;
    return false;
}

static void test(tagger *m, const tagged *t, double seconds)
{
    int64_t which[BATCH_MOST];
    results j = {0, are_entities() ? tn_entities_new(TN_ENTITIES_CONLL) : NULL};
    tn_module_train(m, false);
    for (int64_t at = 0; at < t->line.count && tn_error() == TN_OK; at += batch) {
        const tn_scope s = tn_no_grad_begin();
        const int64_t  n = t->line.count - at < batch ? t->line.count - at : batch;
        for (int64_t i = 0; i < n; i++) which[i] = at + i;
        run_batch(m, t, which, n, &j);
        tn_scope_end(s);
    }
    if (tn_error() == TN_OK && m->mix) {
        const tn_scope   s = tn_no_grad_begin();
        const tn_tensor *w = tn_softmax(m->mix->weight, 0);
        printf("layers");
        for (int64_t i = 0; w && i < TN_ELMO_LAYERS; i++) printf(" %.4f", tn_get(w, i));
        printf(" gamma %.4f\n", tn_item(m->mix->gamma));
        tn_scope_end(s);
    }
    if (tn_error() == TN_OK && !settings.quiet) printf("seconds %.1f\n", seconds);
    if (tn_error() == TN_OK && j.entities) printf("f1 %.2f %%\n", 100 * tn_entities_of(j.entities, NULL).f1);
    if (tn_error() == TN_OK)
        printf("accuracy %.2f %% of %lld words\n", 100 * (double)j.right / (double)t->words, (long long)t->words);
    tn_entities_free(j.entities);
}

static int run(int count, char **operands)
{
    (void)count, (void)operands;
    if (!dir == !vectors_path) return program_usage("give either --model or --vectors, which the tagger reads");
    tagged      train_set = {.file = NULL}, test_set = {.file = NULL};
    tn_elmo    *elmo = dir ? tn_elmo_load(dir) : NULL;
    tn_vectors *v = vectors_path ? tn_vectors_load(vectors_path, TN_VECTORS_ANY) : NULL;
    int64_t    *order = NULL;
    tagger     *m = NULL;
    stop_begin("ending");
    tn_seed((uint64_t)seed);
    if ((elmo || v) && read_tagged(learn_path, &train_set) && read_tagged(test_path, &test_set) &&
        (m = tagger_new(elmo, v)) && (order = calloc((size_t)train_set.line.count + 1, sizeof *order))) {
        for (int64_t i = 0; i < train_set.line.count; i++) order[i] = i;
        const double began = seconds_now();
        train(m, &train_set, order);
        if (!stop_flag) test(m, &test_set, seconds_now() - began);
    }
    free(order);
    tn_module_free(m), tn_module_free(elmo);
    tn_vectors_free(v);
    free_tagged(&train_set), free_tagged(&test_set);
    tn_labels_free(names);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, "folder of the model whose layers the tagger reads"),
    OPTION_TEXT("vectors", 0, "FILE", &vectors_path, "file of word vectors that the tagger reads instead"),
    OPTION_TEXT("train", 0, "FILE", &learn_path, "tagged sentences to train on, in CoNLL-U or CoNLL columns",
                .required = true),
    OPTION_TEXT("test", 0, "FILE", &test_path, "tagged sentences to test on", .required = true),
    OPTION_TEXT("format", 0, "NAME", &form, "format of both files: conll or conllu (default: by their names)",
                .choices = "conll|conllu"),
    OPTION_TEXT("kind", 0, "NAME", &kind_name,
                "lstm: bidirectional LSTM; crf: the same with a CRF; window: reads five words and the two tags before, "
                "greedy; bag: reads a word and the mean of its sentence",
                .choices = "lstm|crf|window|bag"),
    OPTION_INT("epochs", 0, "N", &epochs, "number of epochs", .least = 1, .most = 1000),
    OPTION_INT("batch", 'b', "N", &batch, "sentences per step", .least = 1, .most = 1024),
    OPTION_INT("hidden", 0, "N", &hidden, "hidden size of the tagger's LSTM", .least = 1, .most = 65536),
    OPTION_REAL("lr", 0, "RATE", &lr, "learning rate", .least = 1e-9, .most = 10),
    OPTION_REAL("dropout", 0, "P", &dropout, "dropout probability", .least = 0, .most = 0.9),
    OPTION_SEED(0, &seed, ""),
    {0},
};
const command tag_command = COMMAND(
    "tag", "train a tagger on a model's layers, and test it", options,
    .text =
        "The tags are parts of speech (the fourth column of CoNLL-U), or the last of CoNLL's columns. The model does "
        "not change; the tagger learns a weight for each layer. The first line of the output shows the weights: of the "
        "characters' layer, the first and the second LSTM. The last line is \"accuracy A % of N words\"; for entities, "
        "the line before it is \"f1 F %\".\n\n"
        "  elmo tag --model model --train train.conllu --test test.conllu\n"
        "  elmo tag --vectors words.vec --train train.conllu --test test.conllu");

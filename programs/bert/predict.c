/* predict.c — bert classify, tag, answer and choose: predictions of a tuned model for the operands or for lines of
 * standard input. Lines are processed in groups, in their order; on a terminal, each line is answered at once. */
#include "core/system/system.h"

#include "tune.h"

#include "../common/files.h"
#include "../common/numbers.h"
#include "../common/texts.h"
#include "../common/weights.h"
#include "bert.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MOST = 16 << 20, LINES = 256 };

#define ALWAYS 1e6 /* a threshold above any score: there is always an answer */

static const char *dir, *dtype;
static bool        json;
static int64_t     best = 1, length, stride = 128, longest = 30;
static double      threshold = ALWAYS;

typedef struct {
    const tune_task *task;
    tn_tuned        *m;
    tn_tokenizer    *tokens;
    tn_labels       *labels;
    int64_t          number; /* lines of earlier groups */
    broken_lines     broken;
} predictor;

/* ---- lines as examples without labels ---------------------------------------------------------------------------- */

/* Splits a sentence in place into words. Returns their number. */
static int64_t split_words(char *line, const char **word)
{
    const tn_text all = tn_text_of(line);
    tn_text       w;
    int64_t       n = 0;
    for (size_t at = 0; texts_column(all, &at, &w); at += at < all.bytes) word[n++] = w.at, line[at] = 0;
    return n;
}

/* Splits a line in place at tabs into at most `most` texts. Returns their number. */
static int64_t split_texts(char *line, int64_t most, const char **text)
{
    int64_t n = 0;
    text[n++] = line;
    for (char *tab; n < most && (tab = strchr(text[n - 1], '\t')); n++) *tab = 0, text[n] = tab + 1;
    return n;
}

/* Adds a text or two, a sentence's words, a question and its text, or a context and its endings. */
static void add_line(tn_labelled *l, tn_task task, char *line, int64_t number)
{
    static const char *const members[][2] = {
        [TN_TASK_CLASSIFICATION] = {"text", "pair"}, [TN_TASK_QUESTION_ANSWERING] = {"question", "context"}};
    const size_t bytes = strlen(line);
    const char **text = calloc(bytes + 2, sizeof *text);
    tn_example   x = {.line = number, .text = text};
    tn_json     *o = NULL;
    char         name[32];
    snprintf(name, sizeof name, "line %lld", (long long)number);
    tn_path_push(name);
    if (!text) tn_raise(TN_ENOMEM, "no memory for %zu bytes", bytes);
    else if (*line == '{' && (task == TN_TASK_CLASSIFICATION || task == TN_TASK_QUESTION_ANSWERING)) {
        o = tn_json_parse(line, bytes);
        for (int i = 0; i < 2; i++)
            if (tn_json_get(o, members[task][i])) text[x.texts++] = tn_json_string(tn_json_get(o, members[task][i]));
        if (o && !tn_json_get(o, members[task][0])) tn_raise(TN_EFORMAT, "no member \"%s\"", members[task][0]);
    } else if (task == TN_TASK_TOKEN_CLASSIFICATION) x.texts = split_words(line, text);
    else x.texts = split_texts(line, task == TN_TASK_MULTIPLE_CHOICE ? INT64_MAX : 2, text);
    if (tn_error() == TN_OK && task == TN_TASK_QUESTION_ANSWERING && x.texts < 2)
        tn_raise(TN_EFORMAT,
                 "expected a question, a tab and a text, or a JSON object with \"question\" and \"context\"");
    if (tn_error() == TN_OK && task == TN_TASK_CLASSIFICATION && tn_labelled_count(l) &&
        x.texts != tn_labelled_at(l, 0).texts)
        tn_raise(TN_EFORMAT, "expected %s, like the first line",
                 x.texts == 1 ? "two texts with a tab between" : "one text without a tab");
    tn_path_pop();
    if (tn_error() == TN_OK) tn_labelled_add(l, x);
    tn_json_free(o);
    free(text);
}

static tn_labelled *labelled(const predictor *s, int64_t n, char **lines)
{
    tn_labelled *l = tn_labelled_new(.kind = s->task->kind, .no_label = true);
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) add_line(l, s->task->task, lines[i], s->number + i + 1);
    return l;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void print_class(const predictor *s, const text_set *h, int64_t i, tn_json_writer *w)
{
    const tn_problem_type how = s->m->config.problem;
    const float          *scores = h->scores[h->first[i]];
    const int64_t         n = h->width[h->first[i]];
    double               *p = calloc((size_t)n, sizeof *p);
    const char *const    *name = s->m->labels;
    if (!p) {
        tn_raise(TN_ENOMEM, "no memory for %lld labels", (long long)n);
        return;
    }
    probabilities_of(scores, n, how == TN_MULTI_LABEL, p);
    if (how == TN_REGRESSION) {
        if (json) tn_json_put_double(w, "value", (double)scores[0]);
        else printf("%.6g\n", (double)scores[0]);
    } else if (how == TN_MULTI_LABEL) {
        bool any = false;
        if (json) tn_json_open_array(w, "labels");
        for (int64_t k = 0; k < n; k++)
            if (p[k] >= 0.5 && json) tn_json_put_string(w, NULL, name[k]);
            else if (p[k] >= 0.5) printf("%s%s", any ? "," : "", name[k]), any = true;
        if (json) tn_json_close(w);
        else printf("\n");
    } else if (json) tn_json_put_string(w, "label", name[predicted_class(h, i)]);
    else printf("%s\t%.4f\n", name[predicted_class(h, i)], p[predicted_class(h, i)]);
    if (json && how != TN_REGRESSION) {
        tn_json_open_object(w, "probabilities");
        for (int64_t k = 0; k < n; k++) numbers_put(w, name[k], p[k], 6);
        tn_json_close(w);
    }
    free(p);
}

static void print_tags(const predictor *s, const text_set *h, int64_t i, tn_json_writer *w)
{
    const tn_example x = tn_labelled_at(h->texts, i);
    int64_t         *to = calloc((size_t)x.texts + 1, sizeof *to);
    if (!to) {
        tn_raise(TN_ENOMEM, "no memory for %lld words", (long long)x.texts);
        return;
    }
    predicted_tags(h, i, to);
    if (json) tn_json_open_array(w, "words");
    for (int64_t k = 0; k < x.texts; k++)
        if (json) tn_json_put_string(w, NULL, x.text[k]);
        else printf("%s\t%s\n", x.text[k], s->m->labels[to[k]]);
    if (json) tn_json_close(w), tn_json_open_array(w, "tags");
    for (int64_t k = 0; json && k < x.texts; k++) tn_json_put_string(w, NULL, s->m->labels[to[k]]);
    if (json) tn_json_close(w);
    else printf("\n");
    free(to);
}

/* The number of characters (code points) in the first `bytes` bytes of a text. */
static int64_t characters(const char *s, int64_t bytes)
{
    int64_t n = 0;
    for (int64_t i = 0; i < bytes; i++) n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

static void print_answer(const text_set *h, int64_t i, tn_json_writer *w)
{
    enum { MOST = 100 };
    tn_answer        a[MOST] = {{0}};
    const tn_example x = tn_labelled_at(h->texts, i);
    const int64_t    from = h->first[i], n = h->first[i + 1] - from;
    const int64_t    found = tn_answers_best(h->features, from, n, (const float *const *)(h->scores + from), longest,
                                          best > 20 ? best : 20, a);
    const bool       none = found < 1 || a[0].none - a[0].score > threshold;
    if (!json) {
        printf("%.*s\n", none ? 0 : (int)(a[0].end - a[0].start), x.text[1] + a[0].start);
        return;
    }
    tn_json_put_bytes(w, "answer", x.text[1] + a[0].start, none ? 0 : (size_t)(a[0].end - a[0].start));
    tn_json_open_array(w, "best");
    for (int64_t k = 0; k < found && k < best; k++) {
        tn_json_open_object(w, NULL);
        tn_json_put_bytes(w, "text", x.text[1] + a[k].start, (size_t)(a[k].end - a[k].start));
        tn_json_put_i64(w, "start", characters(x.text[1], a[k].start));
        tn_json_put_i64(w, "end", characters(x.text[1], a[k].end));
        numbers_put(w, "probability", a[k].probability, 6);
        tn_json_close(w);
    }
    tn_json_close(w);
}

static void print_choice(const text_set *h, int64_t i, tn_json_writer *w)
{
    const tn_example x = tn_labelled_at(h->texts, i);
    const int64_t    n = h->width[h->first[i]], k = predicted_class(h, i);
    double           p[64];
    probabilities_of(h->scores[h->first[i]], n < 64 ? n : 64, false, p);
    if (!json) {
        printf("%lld\t%s\t%.4f\n", (long long)k, x.text[k + 1], p[k]);
        return;
    }
    tn_json_put_i64(w, "choice", k);
    tn_json_put_string(w, "ending", x.text[k + 1]);
    tn_json_open_array(w, "probabilities");
    for (int64_t c = 0; c < n && c < 64; c++) numbers_put(w, NULL, p[c], 6);
    tn_json_close(w);
}

static void print_one(const predictor *s, const text_set *h, int64_t i, tn_json_writer *w)
{
    if (json) tn_json_writer_clear(w), tn_json_open_object(w, NULL);
    switch (s->task->task) {
    case TN_TASK_CLASSIFICATION: print_class(s, h, i, w); break;
    case TN_TASK_TOKEN_CLASSIFICATION: print_tags(s, h, i, w); break;
    case TN_TASK_QUESTION_ANSWERING: print_answer(h, i, w); break;
    case TN_TASK_MULTIPLE_CHOICE: print_choice(h, i, w); break;
    }
    if (!json) return;
    tn_json_close(w);
    const char *text = tn_json_text(w, NULL);
    if (text) puts(text);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void predict_lines(predictor *s, int64_t n, char **given)
{
    char **lines = calloc((size_t)n + 1, sizeof *lines);
    if (!lines) {
        tn_raise(TN_ENOMEM, "no memory for %lld lines", (long long)n);
        return;
    }
    int64_t clear = 0;
    while (clear < n && (lines[clear] = texts_valid(given[clear])))
        texts_line(&s->broken, s->number + clear + 1, tn_text_of(given[clear])), clear++;
    text_set           h = {.texts = n && clear == n ? labelled(s, n, lines) : NULL};
    tn_json_writer    *w = json ? tn_json_writer_new(0) : NULL;
    tn_features_config c = {TN_FEATURES_DEFAULTS};
    c.length = length ? length : s->task->length, c.stride = stride;
    if (c.length > s->m->encoder->config.positions) c.length = s->m->encoder->config.positions;
    if (h.texts && tn_error() == TN_OK && text_set_open(&h, s->labels, s->tokens, c) && text_set_predict(&h, s->m))
        for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) print_one(s, &h, i, w);
    text_set_close(&h);
    tn_json_writer_free(w);
    for (int64_t i = 0; i < n; i++) free(lines[i]);
    free(lines);
    fflush(stdout);
    s->number += n;
}

static void predict_input(predictor *s)
{
    const int64_t most = isatty(STDIN_FILENO) ? 1 : LINES;
    char         *lines[LINES], *line = NULL;
    size_t        room = 0, bytes;
    for (bool more = true; more && tn_error() == TN_OK;) {
        int64_t n = 0;
        for (; n < most && (more = next_line(&line, &room, &bytes, LINE_MOST)); n++) {
            if (memchr(line, 0, bytes)) {
                tn_raise(TN_EFORMAT, "line %lld: a NUL byte; expected text", (long long)(s->number + n + 1));
                break;
            }
            if (bytes && line[bytes - 1] == '\r') line[bytes - 1] = 0;
            const bool mark = !s->number && !n && !strncmp(line, "\xef\xbb\xbf", 3);
            if (!(lines[n] = strdup(line + (mark ? 3 : 0)))) {
                tn_raise(TN_ENOMEM, "no memory for %zu bytes", bytes);
                break;
            }
        }
        if (n && tn_error() == TN_OK) predict_lines(s, n, lines);
        for (int64_t i = 0; i < n; i++) free(lines[i]);
        more = more && !ferror(stdout);
    }
    free(line);
}

static bool right_task(const predictor *s)
{
    static const char *const of[] = {"classify", "tag", "answer", "choose"};
    if (s->m->config.task == s->task->task) return true;
    return tn_raise_false(TN_EINVAL, "'%s' was tuned for another task; use 'bert %s'", dir, of[s->m->config.task]);
}

static int predict(const char *task, int count, char **operands)
{
    if (!json && program_given("top")) return program_stray("top", "--json");
    predictor s = {.task = tune_task_of(task), .m = tn_tuned_load(dir)};
    if (s.m) s.tokens = tn_tokenizer_load(dir);
    if (s.tokens && right_task(&s) && weights_pack(s.m, dtype)) {
        s.labels = tn_labels_new(s.m->config.n, s.m->labels);
        if (count && tn_error() == TN_OK) predict_lines(&s, count, operands);
        else if (tn_error() == TN_OK) predict_input(&s);
        texts_warn_lines(&s.broken);
    }
    tn_labels_free(s.labels);
    tn_tokenizer_free(s.tokens);
    tn_free(s.m);
    return program_end();
}

#define COMMON                                                                                                   \
    OPTION_TEXT("model", 'm', "DIR", &dir, "the tuned model's folder", .required = true),                        \
        OPTION_FLAG("json", 0, &json, "print a JSON object for each line"),                                      \
        OPTION_INT("length", 'l', "N", &length, "maximum number of tokens of a text (default: as in bert tune)", \
                   .least = 8, .most = 16384),                                                                   \
        OPTION_WEIGHTS(&dtype)
#define PREDICT(name_)                                                                                 \
    static int    run_##name_(int count, char **operands) { return predict(#name_, count, operands); } \
    const command name_##_command = {.name = #name_,                                                   \
                                     .summary = name_##_summary,                                       \
                                     .options = name_##_options,                                       \
                                     .run = run_##name_,                                               \
                                     .operands = "[LINE...]",                                          \
                                     .least = 0,                                                       \
                                     .most = -1,                                                       \
                                     .text = name_##_text}

static const option classify_options[] = {COMMON, {0}};
static const char   classify_summary[] = "predict the label of a text";
static const char   classify_text[] =
    "Prints the label of each line and its probability. The model must come from bert tune. A line with a tab is two "
    "texts; a line of JSON has \"text\", and \"pair\" for two texts.\n\n"
    "  bert classify --model films \"What a bore.\"\n  bert classify --model films --json <lines.txt";
PREDICT(classify);

static const option tag_options[] = {COMMON, {0}};
static const char   tag_summary[] = "predict the tag of each word";
static const char   tag_text[] =
    "Each line is a sentence of words separated by blanks. Prints a line with the word and its tag for each word, and "
    "an empty line after each sentence. The model must come from bert tune.\n\n"
    "  bert tag --model names \"Ada lives in London .\"";
PREDICT(tag);

static const option answer_options[] = {
    COMMON,
    OPTION_INT("top", 'k', "N", &best, "with --json: number of answers to print", .least = 1, .most = 100),
    OPTION_INT("stride", 0, "N", &stride, "overlap of two windows of a long text, in tokens", .least = 0,
               .most = 16384),
    OPTION_INT("longest", 0, "N", &longest, "maximum number of tokens of an answer", .least = 1, .most = 16384),
    OPTION_REAL("threshold", 0, "X", &threshold,
                "print no answer if the score of \"no answer\" is higher by more than X; 1e6: always print an answer",
                .least = -ALWAYS, .most = ALWAYS),
    {0}};
static const char answer_summary[] = "answer a question from a text";
static const char answer_text[] =
    "Each line is a question, a tab and the text that contains the answer, or a JSON object with \"question\" and "
    "\"context\". Prints the answer, or an empty line for no answer. The model must come from bert tune.\n\n"
    "  printf 'Who sat?\\tThe cat sat on the mat.\\n' | bert answer --model reader";
PREDICT(answer);

static const option choose_options[] = {COMMON, {0}};
static const char   choose_summary[] = "choose the ending of a text";
static const char   choose_text[] =
    "Each line is the start of a text and its possible endings, separated by tabs. Prints the number of the chosen "
    "ending, counted from 0, the ending, and its probability. The model must come from bert tune.";
PREDICT(choose);

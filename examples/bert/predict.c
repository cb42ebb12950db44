/* predict.c — bert classify, tag, answer and choose: predictions of a tuned model for the operands or for lines of
 * standard input. Lines are processed in groups, in their order; on a terminal, each line is answered at once. */
#define _POSIX_C_SOURCE 200809L
#include "tune.h"

#include "../common/files.h"
#include "../common/numbers.h"
#include "../common/texts.h"
#include "bert.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MOST = 16 << 20, LINES = 256 };

#define ALWAYS 1e6 /* a threshold above any score: there is always an answer */

static const char *dir;
static bool        json;
static int64_t     best = 1, length, stride = 128, longest = 30;
static double      threshold = ALWAYS;

typedef struct {
    const tune_task *task;
    tn_tuned        *m;
    tn_tokenizer    *tokens;
    tn_labels       *labels;
    int64_t          number; /* lines of earlier groups */
} predictor;

/* ---- lines as labelled texts without labels ---------------------------------------------------------------------- */

static void put(tn_string *s, const char *text, size_t bytes) { tn_string_add(s, (tn_text){text, bytes}); }

/* A sentence in CoNLL format: one word per line. */
static void as_columns(tn_string *s, const char *line)
{
    const tn_text all = tn_text_of(line);
    tn_text       word;
    for (size_t at = 0; texts_column(all, &at, &word);) tn_string_add(s, word), put(s, "\n", 1);
    put(s, "\n", 1);
}

/* A line "question <tab> text", or a JSON object with both, in SQuAD's format. */
static void as_squad(tn_json_writer *w, const char *line, int64_t number)
{
    const char *tab = strchr(line, '\t');
    tn_json    *o = *line == '{' ? tn_json_parse(line, strlen(line)) : NULL;
    if (!o && !tab)
        tn_raise(TN_EFORMAT,
                 "line %lld: expected a question, a tab and a text, or a JSON object with \"question\" and "
                 "\"context\"",
                 (long long)number);
    tn_json_open_object(w, NULL);
    if (o) tn_json_put_string(w, "context", tn_json_string(tn_json_need(o, "context")));
    else tn_json_put_string(w, "context", tab ? tab + 1 : "");
    tn_json_open_array(w, "qas");
    tn_json_open_object(w, NULL);
    if (o) tn_json_put_string(w, "question", tn_json_string(tn_json_need(o, "question")));
    else tn_json_put_bytes(w, "question", line, tab ? (size_t)(tab - line) : 0);
    tn_json_close(w), tn_json_close(w), tn_json_close(w);
    tn_json_free(o);
}

/* A quoted cell of CSV. */
static void put_cell(tn_string *s, const char *text, size_t n)
{
    put(s, "\"", 1);
    for (size_t i = 0; i < n; i++) put(s, text[i] == '"' ? "\"\"" : text + i, text[i] == '"' ? 2 : 1);
    put(s, "\"", 1);
}

/* A line "start <tab> ending <tab> ending …" as a row of SWAG's table; the first line also defines the header. */
static void as_choices(tn_string *s, const char *line)
{
    char name[32];
    if (!s->bytes) {
        put(s, "sent1", 5);
        int n = 0;
        for (const char *p = strchr(line, '\t'); p && n < 10; p = strchr(p + 1, '\t'), n++)
            snprintf(name, sizeof name, ",ending%d", n), put(s, name, strlen(name));
        put(s, "\n", 1);
    }
    for (const char *p = line;; p++) {
        const size_t n = strcspn(p, "\t");
        put_cell(s, p, n);
        p += n;
        put(s, *p ? "," : "\n", 1);
        if (!*p) return;
    }
}

static tn_labelled *labelled(const predictor *s, int64_t n, char **lines)
{
    static const char *const forms[] = {"tsv", "conll", "squad", "csv"};
    tn_string                all = {0};
    tn_json_writer          *w = s->task->task == TN_TASK_ANSWERS ? tn_json_writer_new(0) : NULL;
    tn_labelled_config       c = {.kind = s->task->kind, .form = forms[s->task->task], .no_label = true};
    if (s->task->task == TN_TASK_CLASSES) c.pairs = strchr(lines[0], '\t') != NULL;
    if (s->task->task == TN_TASK_CLASSES && *lines[0] == '{') c.form = "jsonl";
    if (w) {
        tn_json_open_object(w, NULL), tn_json_open_array(w, "data"), tn_json_open_object(w, NULL);
        tn_json_open_array(w, "paragraphs");
    }
    for (int64_t i = 0; i < n && tn_error() == TN_OK; i++) {
        if (!lines[i][strspn(lines[i], " \t\r")])
            tn_raise(TN_EFORMAT, "line %lld: the text is empty", (long long)(s->number + i + 1));
        else if (w) as_squad(w, lines[i], s->number + i + 1);
        else if (s->task->task == TN_TASK_TAGS) as_columns(&all, lines[i]);
        else if (s->task->task == TN_TASK_CHOICES) as_choices(&all, lines[i]);
        else put(&all, lines[i], strlen(lines[i])), put(&all, "\n", 1);
    }
    for (int i = 0; w && i < 4; i++) tn_json_close(w);
    size_t       bytes = all.bytes;
    const char  *text = w ? tn_json_text(w, &bytes) : all.at;
    tn_labelled *l = tn_error() == TN_OK ? tn_labelled_parse_run(text, bytes, c) : NULL;
    if (l && tn_labelled_count(l) != n)
        tn_raise(TN_EFORMAT, "%lld lines were read as %lld texts; check for an extra quote or tab", (long long)n,
                 (long long)tn_labelled_count(l));
    tn_string_free(&all);
    tn_json_writer_free(w);
    return l;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

static void print_class(const predictor *s, const text_set *h, int64_t i, tn_json_writer *w)
{
    const tn_problem   how = s->m->config.problem;
    const float       *scores = h->scores[h->first[i]];
    const int64_t      n = h->width[h->first[i]];
    double            *p = calloc((size_t)n, sizeof *p);
    const char *const *name = s->m->labels;
    if (!p) {
        tn_raise(TN_ENOMEM, "no memory for %lld labels", (long long)n);
        return;
    }
    probabilities_of(scores, n, how == TN_ANY_LABELS, p);
    if (how == TN_REGRESSION) {
        if (json) tn_json_put_double(w, "value", (double)scores[0]);
        else printf("%.6g\n", (double)scores[0]);
    } else if (how == TN_ANY_LABELS) {
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
    case TN_TASK_CLASSES: print_class(s, h, i, w); break;
    case TN_TASK_TAGS: print_tags(s, h, i, w); break;
    case TN_TASK_ANSWERS: print_answer(h, i, w); break;
    case TN_TASK_CHOICES: print_choice(h, i, w); break;
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
    while (clear < n && (lines[clear] = texts_valid(given[clear]))) clear++;
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
    tn_raise(TN_EINVAL, "'%s' was tuned for another task; use 'bert %s'", dir, of[s->m->config.task]);
    return false;
}

static int predict(const char *task, int count, char **operands)
{
    if (!json && program_given("best")) return program_stray("best", "--json");
    predictor s = {.task = tune_task_of(task), .m = tn_tuned_load(dir)};
    if (s.m) s.tokens = tn_tokenizer_load(dir);
    if (s.tokens && right_task(&s)) {
        s.labels = tn_labels_new(s.m->config.n, s.m->labels);
        if (count && tn_error() == TN_OK) predict_lines(&s, count, operands);
        else if (tn_error() == TN_OK) predict_input(&s);
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
                   .least = 8, .most = 16384)
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
    OPTION_INT("best", 'k', "N", &best, "with --json: number of answers to print", .least = 1, .most = 100),
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

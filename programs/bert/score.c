/* score.c — bert score: metrics of predicted labels, numbers, tags and answers in files. */
#include "../common/messages.h"
#include "bert.h"
#include "tune.h"

#include <stdlib.h>
#include <string.h>

static bool        strict, json;
static const char *task, *none_path;

/* ---- labels and numbers ------------------------------------------------------------------------------------------ */

/* Does the task of GLUE use this metric? Without --task: all but the correlations. */
static bool uses_metric(const char *metric)
{
    static const struct {
        const char *task, *metrics;
    } glue[] = {{"cola", "matthews"},   {"sst-2", "accuracy"},         {"mrpc", "accuracy f1"},
                {"qqp", "accuracy f1"}, {"sts-b", "pearson spearman"}, {"mnli", "accuracy"},
                {"qnli", "accuracy"},   {"rte", "accuracy"},           {"wnli", "accuracy"}};
    for (size_t i = 0; task && i < sizeof glue / sizeof *glue; i++)
        if (!strcmp(task, glue[i].task)) return strstr(glue[i].metrics, metric) != NULL;
    return strcmp(metric, "pearson") != 0 && strcmp(metric, "spearman") != 0;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The distinct labels of both columns. */
static tn_labels *labels_of(const tn_labelled *l)
{
    const int64_t n = tn_labelled_count(l);
    int64_t       k = 0;
    const char  **name = calloc(2 * (size_t)n + 1, sizeof *name);
    tn_labels    *s = NULL;
    if (!name) return tn_raise_null(TN_ENOMEM, "no memory for %lld labels", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const tn_example x = tn_labelled_at(l, i);
        name[2 * i] = x.text[0], name[2 * i + 1] = x.label[0];
    }
    qsort(name, 2 * (size_t)n, sizeof *name, by_bytes);
    for (int64_t i = 0; i < 2 * n; i++)
        if (!k || strcmp(name[k - 1], name[i]) != 0) name[k++] = name[i];
    s = tn_labels_new(k, name);
    free(name);
    return s;
}

static void label_metrics(const tn_labelled *l, metrics *v)
{
    const int64_t n = v->examples;
    int64_t      *gold = calloc(2 * (size_t)n + 1, sizeof *gold), *said = gold + n;
    tn_labels    *names = labels_of(l);
    for (int64_t i = 0; names && gold && i < n; i++) {
        const tn_example x = tn_labelled_at(l, i);
        gold[i] = tn_labels_find(names, x.text[0]), said[i] = tn_labels_find(names, x.label[0]);
    }
    if (names && gold) {
        if (uses_metric("accuracy")) v->accuracy = 100 * tn_f1(TN_F1_MICRO, n, gold, said);
        if (uses_metric("f1")) {
            v->f1 = 100 * tn_f1(tn_labels_count(names) <= 2 ? TN_F1_BINARY : TN_F1_MACRO, n, gold, said);
            metrics_name_f1(v, names);
        }
        if (uses_metric("matthews")) v->matthews = tn_matthews(n, gold, said);
    }
    tn_labels_free(names);
    free(gold);
}

static void number_metrics(const tn_labelled *l, metrics *v)
{
    double *x = calloc(2 * (size_t)v->examples + 1, sizeof *x), *y = x + v->examples;
    for (int64_t i = 0; x && i < v->examples && tn_error() == TN_OK; i++) {
        const tn_example e = tn_labelled_at(l, i);
        if (!tn_parse_double(e.text[0], strlen(e.text[0]), &x[i]) ||
            !tn_parse_double(e.label[0], strlen(e.label[0]), &y[i]))
            tn_raise(TN_EFORMAT, "line %lld: '%.40s' or '%.40s' is not a number, which %s needs", (long long)e.line,
                     e.text[0], e.label[0], task);
    }
    if (x && tn_error() == TN_OK) metrics_correlate(v, x, y);
    free(x);
}

static void score_labels(const char *path)
{
    tn_labelled *l = tn_labelled_load(path, .form = "tsv");
    metrics      v = metrics_none(tn_labelled_count(l));
    if (l && uses_metric("pearson")) number_metrics(l, &v);
    else if (l) label_metrics(l, &v);
    if (tn_error() == TN_OK) metrics_print(&v, json);
    tn_labelled_free(l);
}

/* ---- answers ----------------------------------------------------------------------------------------------------- */

typedef struct {
    const tn_labelled *gold;
    const tn_json     *said, *none;
    int64_t            missing;
} answers;

static span given(void *user, int64_t i)
{
    answers       *a = user;
    const char    *id = tn_labelled_at(a->gold, i).id;
    const tn_json *said = tn_json_get(a->said, id), *none = a->none ? tn_json_get(a->none, id) : NULL;
    if (tn_json_type_of(said) != TN_JSON_STRING) return a->missing++, (span){{"", 0}, 0};
    if (a->none && !none) tn_raise(TN_EFORMAT, "'%s' has no value for question '%.60s'", none_path, id);
    return (span){{tn_json_string(said), (size_t)tn_json_string_bytes(said)}, none ? tn_json_double(none) : 0};
}

static void score_answers(const char *gold, const char *predicted)
{
    const tn_json_limits limits = {.depth = 8, .bytes = (int64_t)1 << 30, .values = 1 << 26};
    tn_labelled         *l = tn_labelled_load(gold, .kind = TN_LABELLED_ANSWERS);
    tn_json             *said = l ? tn_json_load_within(predicted, limits) : NULL;
    tn_json             *none = said && none_path ? tn_json_load_within(none_path, limits) : NULL;
    metrics              v = metrics_none(tn_labelled_count(l));
    answers              a = {l, said, none, 0};
    if (tn_error() == TN_OK && test_answers(l, given, &a, none != NULL, &v)) {
        if (a.missing) tell("%lld questions have no answer in '%s'\n", (long long)a.missing, predicted);
        metrics_print(&v, json);
    }
    tn_json_free(said), tn_json_free(none);
    tn_labelled_free(l);
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int run(int count, char **operands)
{
    static const struct {
        const char *name, *files;
        int         n;
        const char *option; /* that the others have no use for */
    } kinds[] = {{"entities", "only standard input", 0, "strict"},
                 {"labels", "one FILE", 1, "task"},
                 {"answers", "two files, GOLD.json and PREDICTED.json", 2, "none"}};
    int k = 0, code;
    while (k < 3 && strcmp(operands[0], kinds[k].name) != 0) k++;
    if (k == 3) return program_usage("unknown 'score %s'; expected entities, labels or answers", operands[0]);
    if (count - 1 != kinds[k].n) return program_usage("score %s reads %s", kinds[k].name, kinds[k].files);
    for (int i = 0; i < 3; i++)
        if (i != k && (code = program_stray(kinds[i].option, kinds[i].name))) return code;
    if (k == 0) score_entities(strict, json);
    else if (k == 1) score_labels(operands[1]);
    else score_answers(operands[1], operands[2]);
    return program_end();
}

static const option options[] = {
    OPTION_FLAG("strict", 0, &strict, "count only chunks of valid BIO tags, like seqeval's strict mode"),
    OPTION_TEXT("task", 0, "NAME", &task, "print the metrics of this task of GLUE instead of accuracy and F1",
                .choices = "cola|sst-2|mrpc|sts-b|qqp|mnli|qnli|rte|wnli"),
    OPTION_TEXT("none", 0, "FILE", &none_path,
                "JSON file with the \"no answer\" score of each question's id; finds the best thresholds"),
    OPTION_FLAG("json", 0, &json, "print one line of JSON"),
    {0},
};
const command score_command = COMMAND(
    "score", "compute metrics of predicted tags, labels or answers", options,
    .operands = "entities|labels|answers [FILE...]", .least = 1, .most = 3,
    .text =
        "entities: reads one token per line from standard input; the last two columns are the right tag and the "
        "predicted tag; an empty line separates sentences. Prints the table of conlleval, the script of CoNLL's "
        "shared tasks: precision, recall and F1 of all entities and of each type.\n\n"
        "labels: reads lines of right <tab> predicted. Prints accuracy, F1 (for two labels that of the second, else "
        "the mean) and Matthews' correlation, or the metrics of a task of GLUE.\n\n"
        "answers: reads questions in SQuAD's format, and a JSON object with an answer for each question's id.\n\n"
        "  bert score entities <predicted.txt\n"
        "  bert score labels --task cola predicted.tsv\n"
        "  bert score answers dev-v2.0.json predicted.json --none none.json");

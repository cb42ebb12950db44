/* metrics.c — runs a tuned model on the texts of a file, and computes metrics of its predictions. */
#include "tune.h"

#include "../common/numbers.h"
#include "../common/texts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- predictions ------------------------------------------------------------------------------------------------- */

enum { BUDGET = 2048 }; /* tokens of a batch; the predictions do not depend on the other texts of their batch */

bool text_set_open(text_set *h, const tn_labels *labels, const tn_tokenizer *t, tn_features_config c)
{
    c.fixed = true, c.tokens = BUDGET;
    h->features = tn_features_create(h->texts, t, labels, c);
    h->n = tn_features_count(h->features);
    const int64_t examples = tn_labelled_count(h->texts);
    h->first = calloc((size_t)examples + 1, sizeof *h->first);
    h->scores = calloc((size_t)h->n + 1, sizeof *h->scores);
    h->count = calloc((size_t)h->n + 1, sizeof *h->count), h->width = calloc((size_t)h->n + 1, sizeof *h->width);
    if (!h->first || !h->scores || !h->count || !h->width)
        return tn_raise_false(TN_ENOMEM, "no memory for %lld texts", (long long)h->n);
    for (int64_t i = 0, e = 0; tn_error() == TN_OK && i <= h->n; i++) {
        const int64_t example = i < h->n ? tn_features_at(h->features, i).example : examples;
        while (e <= example) h->first[e++] = i;
    }
    return tn_error() == TN_OK;
}

void text_set_close(text_set *h)
{
    for (int64_t i = 0; h->scores && i < h->n; i++) free(h->scores[i]);
    free(h->first), free(h->scores), free(h->count), free(h->width);
    tn_features_free(h->features);
    tn_labelled_free(h->texts);
    *h = (text_set){.texts = NULL};
}

static void take(void *user, int64_t feature, int64_t pieces, int64_t n, const float *scores)
{
    text_set    *h = user;
    const size_t bytes = (size_t)(pieces * n) * sizeof *scores;
    float       *to = realloc(h->scores[feature], bytes);
    if (!to) {
        tn_raise(TN_ENOMEM, "no memory for %zu bytes", bytes);
        return;
    }
    memcpy(to, scores, bytes);
    for (int64_t i = 0; i < pieces * n && tn_error() == TN_OK; i++)
        numbers_finite((double)to[i], "a score of the model");
    h->scores[feature] = to, h->count[feature] = pieces, h->width[feature] = n;
}
bool text_set_predict(text_set *h, tn_tuned *m)
{
    h->asked = m;
    return tn_tuned_each(m, h->features, take, h) == TN_OK;
}

static int64_t largest(const float *scores, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (scores[i] > scores[best]) best = i;
    return best;
}

int64_t predicted_class(const text_set *h, int64_t example)
{
    const int64_t i = h->first[example];
    return largest(h->scores[i], h->width[i]);
}
double predicted_value(const text_set *h, int64_t example) { return (double)h->scores[h->first[example]][0]; }

void predicted_tags(const text_set *h, int64_t example, int64_t *to)
{
    for (int64_t i = h->first[example]; i < h->first[example + 1]; i++)
        tn_tuned_tags(h->asked, h->features, i, h->scores[i], to);
}

tn_answer predicted_answer(const text_set *h, int64_t example, int64_t longest)
{
    enum { LOOKED_AT = 20 };
    tn_answer     best[LOOKED_AT] = {{0}};
    const int64_t i = h->first[example], n = h->first[example + 1] - i;
    tn_answers_best(h->features, i, n, (const float *const *)(h->scores + i), longest, LOOKED_AT, best);
    return best[0];
}

void probabilities_of(const float *scores, int64_t n, bool each, double *to)
{
    double most = (double)scores[largest(scores, n)], sum = 0;
    for (int64_t i = 0; i < n; i++) {
        to[i] = each ? 1 / (1 + exp(-(double)scores[i])) : exp((double)scores[i] - most);
        sum += to[i];
    }
    for (int64_t i = 0; i < n && !each; i++) to[i] /= sum;
}

metrics metrics_none(int64_t examples)
{
    return (metrics){examples, 0, -1, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, ""};
}

void metrics_correlate(metrics *v, const double *x, const double *y)
{
    v->pearson = tn_pearson(v->examples, x, y), v->spearman = tn_spearman(v->examples, x, y);
    if (isnan(v->pearson)) v->pearson = HUGE_VAL;
    if (isnan(v->spearman)) v->spearman = HUGE_VAL;
}

/* ---- metrics ----------------------------------------------------------------------------------------------------- */

/* A growing list of gold and predicted label indices. */
typedef struct {
    int64_t *gold, *said, n, room;
} columns;
static void add(columns *c, int64_t gold, int64_t said)
{
    if (c->n == c->room) {
        const int64_t room = c->room ? 2 * c->room : 1024;
        int64_t      *to = realloc(c->gold, (size_t)(2 * room) * sizeof *to);
        if (!to) {
            tn_raise(TN_ENOMEM, "no memory for %lld labels", (long long)room);
            return;
        }
        if (c->n) memmove(to + room, to + c->room, (size_t)c->n * sizeof *to);
        c->gold = to, c->said = to + room, c->room = room;
    }
    c->gold[c->n] = gold, c->said[c->n++] = said;
}

void metrics_name_f1(metrics *v, const tn_labels *labels)
{
    const char *of = tn_labels_count(labels) == 2 ? tn_labels_names(labels)[1] : "mean of all labels";
    snprintf(v->f1_of, sizeof v->f1_of, "%s", of);
}

static void compared(const columns *c, int64_t labels, metrics *v)
{
    v->accuracy = 100 * tn_f1(TN_F1_MICRO, c->n, c->gold, c->said);
    v->f1 = 100 * tn_f1(labels == 2 ? TN_F1_BINARY : TN_F1_MACRO, c->n, c->gold, c->said);
    v->matthews = tn_matthews(c->n, c->gold, c->said);
}

static void test_classes(const test_settings *j, const text_set *h, metrics *v)
{
    columns c = {.n = 0};
    for (int64_t i = 0; i < v->examples && tn_error() == TN_OK; i++) {
        const tn_example x = tn_labelled_at(h->texts, i);
        const bool       choice = j->task->task == TN_TASK_MULTIPLE_CHOICE;
        add(&c, choice ? strtoll(x.label[0], NULL, 10) : tn_labels_find(j->labels, x.label[0]), predicted_class(h, i));
    }
    compared(&c, j->task->task == TN_TASK_MULTIPLE_CHOICE ? 0 : tn_labels_count(j->labels), v);
    if (j->task->task == TN_TASK_MULTIPLE_CHOICE) v->f1 = v->matthews = NAN;
    else metrics_name_f1(v, j->labels);
    free(c.gold);
}

/* For texts with several labels: accuracy counts texts whose labels are all right; F1 is over all decisions (text,
 * label), with "the text has this label" as the positive class. */
static void test_labels(const test_settings *j, const text_set *h, metrics *v)
{
    const int64_t n = tn_labels_count(j->labels);
    int64_t       right = 0, found = 0, gold = 0, both = 0;
    for (int64_t i = 0; i < v->examples; i++) {
        const tn_example x = tn_labelled_at(h->texts, i);
        bool             all = true;
        for (int64_t k = 0; k < n; k++) {
            bool is = false;
            for (int64_t l = 0; l < x.labels; l++) is |= tn_labels_find(j->labels, x.label[l]) == k;
            const bool said = h->scores[h->first[i]][k] > 0;
            found += said, gold += is, both += is && said, all &= is == said;
        }
        right += all;
    }
    v->accuracy = v->examples ? 100 * (double)right / (double)v->examples : 0;
    v->f1 = found + gold ? 200 * (double)both / (double)(found + gold) : 0;
    snprintf(v->f1_of, sizeof v->f1_of, "all decisions");
}

static void test_numbers(const text_set *h, metrics *v)
{
    double *x = calloc(2 * (size_t)v->examples + 1, sizeof *x);
    if (!x) tn_raise(TN_ENOMEM, "no memory for %lld numbers", (long long)v->examples);
    for (int64_t i = 0; x && i < v->examples; i++) {
        const tn_example e = tn_labelled_at(h->texts, i);
        tn_parse_double(e.label[0], strlen(e.label[0]), &x[i]);
        x[v->examples + i] = predicted_value(h, i);
    }
    if (x) metrics_correlate(v, x, x + v->examples);
    free(x);
}

/* Do the tags mark entities ("B-...")? */
static bool are_entities(const tn_labels *l)
{
    for (int64_t i = 0; i < tn_labels_count(l); i++)
        if (tn_labels_names(l)[i][0] == 'B' && tn_labels_names(l)[i][1] == '-') return true;
    return false;
}

static void test_tags(const test_settings *j, const text_set *h, metrics *v)
{
    const char *const *name = tn_labels_names(j->labels);
    tn_entities       *e = are_entities(j->labels) ? tn_entities_new(TN_ENTITIES_CONLL) : NULL;
    tn_accuracy        a = {0, 0};
    int64_t           *said = NULL;
    for (int64_t i = 0; i < v->examples && tn_error() == TN_OK; i++) {
        const tn_example x = tn_labelled_at(h->texts, i);
        int64_t         *to = realloc(said, (size_t)(x.texts + 1) * sizeof *said);
        if (!to) {
            tn_raise(TN_ENOMEM, "no memory for a sentence of %lld words", (long long)x.texts);
            break;
        }
        said = memset(to, 0, (size_t)(x.texts + 1) * sizeof *said);
        predicted_tags(h, i, said);
        for (int64_t k = 0; k < x.texts; k++) {
            a.counted++, a.right += !strcmp(name[said[k]], x.label[k]);
            if (e) tn_entities_add(e, tn_text_of(x.label[k]), tn_text_of(name[said[k]]));
        }
        if (e) tn_entities_end_sentence(e);
    }
    free(said);
    v->accuracy = 100 * tn_accuracy_value(&a);
    if (e) {
        const tn_entities_score s = tn_entities_of(e, NULL);
        v->f1 = 100 * s.f1, v->precision = 100 * s.precision, v->recall = 100 * s.recall;
    }
    tn_entities_free(e);
}

/* For files with unanswerable questions: finds the best threshold. The prediction is "no answer" if its score exceeds
 * the answer's by more than the threshold. */
static void best_threshold(double *const list[3], const bool *answerable, const bool *empty, metrics *v)
{
    double *none = list[0], *exact = list[1], *f1 = list[2];
    v->exact = tn_squad_threshold(v->examples, none, exact, empty, answerable, NULL);
    v->f1 = tn_squad_threshold(v->examples, none, f1, empty, answerable, &v->threshold);
}

bool test_answers(const tn_labelled *gold, span (*said)(void *user, int64_t i), void *user, bool thresholds, metrics *v)
{
    const size_t n = (size_t)v->examples;
    double      *number = calloc(3 * n + 1, sizeof *number), *list[3] = {number, number + n, number + 2 * n};
    bool        *flag = calloc(2 * n + 1, sizeof *flag), some = false;
    tn_squad     s = {.v2 = true};
    for (int64_t i = 0; number && flag && i < v->examples; i++) some |= !tn_labelled_at(gold, i).labels;
    s.v2 = some;
    for (int64_t i = 0; number && flag && i < v->examples && tn_error() == TN_OK; i++) {
        const tn_example x = tn_labelled_at(gold, i);
        const span       a = said(user, i);
        tn_text          right[64];
        const int        k = (int)(x.labels < 64 ? x.labels : 64);
        for (int r = 0; r < k; r++) right[r] = tn_text_of(x.label[r]);
        tn_squad_add(&s, a.text, k, right);
        list[0][i] = a.none, list[1][i] = s.last_exact, list[2][i] = s.last;
        flag[i] = k > 0, flag[(int64_t)n + i] = !a.text.bytes;
    }
    v->exact = tn_squad_exact(&s), v->f1 = tn_squad_f1(&s);
    if (!number || !flag) tn_raise(TN_ENOMEM, "no memory for %lld answers", (long long)v->examples);
    else if (some && thresholds) best_threshold(list, flag, flag + n, v);
    free(number), free(flag);
    return tn_error() == TN_OK;
}

typedef struct {
    const test_settings *j;
    const text_set      *h;
} asked_for;
static span best_span(void *user, int64_t i)
{
    const asked_for *q = user;
    const tn_answer  a = predicted_answer(q->h, i, q->j->longest);
    const tn_example x = tn_labelled_at(q->h->texts, i);
    return (span){{x.text[1] + a.start, (size_t)(a.end - a.start)}, a.none - a.score};
}

bool test_model(const test_settings *j, text_set *h, tn_tuned *m, metrics *v)
{
    *v = metrics_none(tn_labelled_count(h->texts));
    if (!text_set_predict(h, m)) return false;
    switch (j->task->task) {
    case TN_TASK_CLASSIFICATION:
        if (j->problem == TN_MULTI_LABEL) test_labels(j, h, v);
        else if (j->problem == TN_REGRESSION) test_numbers(h, v);
        else test_classes(j, h, v);
        break;
    case TN_TASK_MULTIPLE_CHOICE: test_classes(j, h, v); break;
    case TN_TASK_TOKEN_CLASSIFICATION: test_tags(j, h, v); break;
    case TN_TASK_QUESTION_ANSWERING: test_answers(h->texts, best_span, &(asked_for){j, h}, true, v); break;
    }
    return tn_error() == TN_OK;
}

/* ---- output ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *name;
    size_t      at;
    bool        percent;
} row;
static const row rows[] = {{"accuracy", offsetof(metrics, accuracy), true},
                           {"f1", offsetof(metrics, f1), true},
                           {"em", offsetof(metrics, exact), true},
                           {"precision", offsetof(metrics, precision), true},
                           {"recall", offsetof(metrics, recall), true},
                           {"matthews", offsetof(metrics, matthews), false},
                           {"pearson", offsetof(metrics, pearson), false},
                           {"spearman", offsetof(metrics, spearman), false},
                           {"threshold", offsetof(metrics, threshold), false},
                           {NULL, 0, false}};
static double value(const metrics *v, const row *r) { return *(const double *)(const void *)((const char *)v + r->at); }

double metrics_get(const metrics *v, const char *metric)
{
    for (const row *r = rows; r->name; r++)
        if (!strcmp(r->name, metric) && isfinite(value(v, r))) return value(v, r);
    return isfinite(v->accuracy) ? v->accuracy : isfinite(v->f1) ? v->f1 : 0;
}

static void put_numbers(tn_json_writer *w, const metrics *v)
{
    for (const row *r = rows; r->name; r++)
        if (!isnan(value(v, r))) numbers_put(w, r->name, value(v, r), 4);
    if (*v->f1_of && !isnan(v->f1)) texts_put(w, "f1_of", v->f1_of);
    if (v->skipped) tn_json_put_i64(w, "skipped", v->skipped);
    if (v->seconds >= 0) numbers_put(w, "seconds", v->seconds, 4);
}

static void print_json(const metrics *v, const metrics *deviation, int64_t seeds)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_json_open_object(w, NULL);
    tn_json_put_i64(w, "examples", v->examples);
    put_numbers(w, v);
    if (seeds) {
        tn_json_put_i64(w, "seeds", seeds);
        tn_json_open_object(w, "deviation");
        put_numbers(w, deviation);
        tn_json_close(w);
    }
    tn_json_close(w);
    const char *text = tn_json_text(w, NULL);
    if (text) puts(text);
    tn_json_writer_free(w);
}

void metrics_print(const metrics *v, bool json)
{
    if (json) {
        print_json(v, NULL, 0);
        return;
    }
    printf("%-10s %lld\n", "examples", (long long)v->examples);
    for (const row *r = rows; r->name; r++)
        if (isinf(value(v, r))) printf("%-10s undefined\n", r->name);
        else if (isfinite(value(v, r)))
            printf("%-10s %.*f%s%s%s\n", r->name, r->percent ? 2 : 4, value(v, r), r->percent ? " %" : "",
                   *v->f1_of && !strcmp(r->name, "f1") ? "  " : "", !strcmp(r->name, "f1") ? v->f1_of : "");
    if (v->skipped) printf("%-10s %lld\n", "skipped", (long long)v->skipped);
    if (v->seconds >= 0) printf("%-10s %.1f\n", "seconds", v->seconds);
}

/* Mean and sample standard deviation, √(Σ (x - mean)² / (n - 1)), of metric r over n verdicts. */
static double mean_of(const metrics *v, int64_t n, const row *r, double *deviation)
{
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) mean += value(&v[i], r) / (double)n;
    for (int64_t i = 0; i < n; i++) sum += (value(&v[i], r) - mean) * (value(&v[i], r) - mean);
    *deviation = n > 1 ? sqrt(sum / (double)(n - 1)) : 0;
    return mean;
}

void metrics_print_mean(const metrics *v, int64_t n, bool json)
{
    static const row time = {"seconds", offsetof(metrics, seconds), false};
    metrics          mean = v[0], deviation = v[0];
    deviation.skipped = 0, deviation.f1_of[0] = 0;
    mean.seconds = mean_of(v, n, &time, &deviation.seconds);
    for (const row *r = rows; r->name; r++)
        *(double *)(void *)((char *)&mean + r->at) = mean_of(v, n, r, (double *)(void *)((char *)&deviation + r->at));
    if (json) {
        print_json(&mean, &deviation, n);
        return;
    }
    printf("mean of %lld, and standard deviation\n", (long long)n);
    for (const row *r = rows; r->name; r++)
        if (isfinite(value(&mean, r)))
            printf("%-10s %.*f %.*f%s\n", r->name, r->percent ? 2 : 4, value(&mean, r), r->percent ? 2 : 4,
                   value(&deviation, r), r->percent ? " %" : "");
    printf("%-10s %.1f %.1f\n", "seconds", mean.seconds, deviation.seconds);
}

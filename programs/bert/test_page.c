/* test_page.c — the HTML page of a test: the metrics, the confusion matrix, wrong predictions by confidence, and the
 * attention weights on the first of these texts. */
#include "core/system/system.h"

#include "bert.h"
#include "tune.h"

#include "../common/files.h"
#include "../common/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 100, LABELS = 40 };

typedef struct {
    char   right[100], said[100], text[340];
    double p, of_right; /* probabilities of the prediction and of the right label; infinite: not known */
} wrong_prediction;
typedef struct {
    const test_settings *j;
    int64_t             *counts; /* [labels, labels]: right, predicted; NULL: no labels, or too many */
    int64_t              labels, found;
    wrong_prediction    *list;       /* the most confident ones, in descending order */
    tn_string            first_text; /* the start of the first text with a wrong prediction */
} page_data;

/* Keeps the SHOWN most confident wrong predictions. */
static void add_wrong(page_data *m, const wrong_prediction *x)
{
    int64_t at = m->found < SHOWN ? m->found : SHOWN;
    m->found++;
    while (at > 0 && m->list[at - 1].p < x->p) at--;
    if (at == SHOWN) return;
    const int64_t n = m->found < SHOWN ? m->found : SHOWN;
    memmove(&m->list[at + 1], &m->list[at], (size_t)(n - 1 - at) * sizeof *x);
    m->list[at] = *x;
}

/* Counts one prediction; p: probabilities of all labels, or NULL. */
static void add_prediction(page_data *m, int64_t line, int64_t right, int64_t said, const char *text, const double *p)
{
    const char *const *name = tn_labels_names(m->j->labels);
    wrong_prediction   x = {.p = INFINITY, .of_right = INFINITY};
    if (m->counts && right >= 0 && right < m->labels && said < m->labels) m->counts[right * m->labels + said]++;
    if (right == said) return;
    if (p) x.p = p[said], x.of_right = p[right];
    snprintf(x.right, sizeof x.right, "%.90s", name[right]), snprintf(x.said, sizeof x.said, "%.90s", name[said]);
    snprintf(x.text, sizeof x.text, "%lld: %.290s\n", (long long)line, text);
    add_wrong(m, &x);
}

static void add_sentence(page_data *m, const text_set *h, int64_t i, const tn_example *x)
{
    int64_t *said = calloc((size_t)x->texts + 1, sizeof *said);
    char     text[300];
    if (!said) return;
    predicted_tags(h, i, said);
    for (int64_t k = 0; k < x->texts; k++) {
        snprintf(text, sizeof text, "%.60s [%.100s] %.60s", k ? x->text[k - 1] : "", x->text[k],
                 k + 1 < x->texts ? x->text[k + 1] : "");
        add_prediction(m, x->line + k, tn_labels_find(m->j->labels, x->label[k]), said[k], text, NULL);
    }
    free(said);
}

static void add_answer(page_data *m, const text_set *h, int64_t i, const tn_example *x)
{
    const tn_answer a = predicted_answer(h, i, m->j->longest);
    tn_squad        s = {.v2 = true};
    tn_text         right[64];
    const int       n = (int)(x->labels < 64 ? x->labels : 64);
    for (int k = 0; k < n; k++) right[k] = tn_text_of(x->label[k]);
    tn_squad_add(&s, (tn_text){x->text[1] + a.start, (size_t)(a.end - a.start)}, n, right);
    if (s.last_exact) return;
    wrong_prediction w = {.p = INFINITY, .of_right = INFINITY};
    snprintf(w.right, sizeof w.right, "%.90s", n ? x->label[0] : "no answer");
    snprintf(w.said, sizeof w.said, "%.*s", (int)(a.end - a.start < 90 ? a.end - a.start : 90), x->text[1] + a.start);
    snprintf(w.text, sizeof w.text, "%.20s: %.290s\n", x->id, x->text[0]);
    add_wrong(m, &w);
}

static void add_text(page_data *m, const text_set *h, int64_t i, const tn_example *x)
{
    const int64_t right = tn_labels_find(m->j->labels, x->label[0]), n = h->width[h->first[i]];
    double       *p = calloc((size_t)n + 1, sizeof *p);
    if (!p) return;
    probabilities_of(h->scores[h->first[i]], n, false, p);
    add_prediction(m, x->line, right, predicted_class(h, i), x->text[0], right >= 0 && right < n ? p : NULL);
    free(p);
}

static void put_errors(tn_report *r, const page_data *m)
{
    const int64_t n = m->found < SHOWN ? m->found : SHOWN;
    char          text[120];
    snprintf(text, sizeof text, "%lld prediction%s wrong%s.", (long long)m->found, m->found == 1 ? " is" : "s are",
             m->found > n             ? "; the hundred most confident ones"
             : n && m->list[0].p <= 1 ? "; the most confident one first"
                                      : "");
    tn_report_heading(r, "Wrong predictions"), tn_report_paragraph(r, text);
    for (int64_t i = 0; i < n; i++) {
        const wrong_prediction *x = &m->list[i];
        tn_report_filled(r, 2, (tn_report_word[]){{x->text, -1, false}, {x->said, x->p, false}}, 1,
                         &(tn_report_word){x->right, x->of_right, true});
    }
}

/* The metric that the task is about, in percent, and below it the others. Tags other than IOB have no F1. */
static void put_summary(tn_report *r, const page_data *m, const metrics *v, const char *folder)
{
    const run_page p = {.folder = folder};
    const struct {
        const char *name;
        double      value;
    } all[] = {{"accuracy", v->accuracy},
               {"F1", v->f1},
               {"exact match", v->exact},
               {"precision", v->precision},
               {"recall", v->recall}};
    char   value[32] = "–", text[200];
    int    n = 0;
    size_t first = 0;
    for (size_t i = 0; i < 5; i++)
        if (!strcasecmp(all[i].name, m->j->task->metric) && isfinite(all[i].value)) first = i;
    if (isfinite(all[first].value)) snprintf(value, sizeof value, "%.2f %%", all[first].value);
    n = snprintf(text, sizeof text, "%s on %lld examples", all[first].name, (long long)v->examples);
    for (size_t i = 0; i < 5; i++)
        if (i != first && isfinite(all[i].value))
            n += snprintf(text + n, sizeof text - (size_t)n, "; %s %.2f %%", all[i].name, all[i].value);
    run_summary(r, &p, value, text);
}

/* Keeps the text, at most BYTES bytes, for the figure of attention weights. */
static void keep_text(page_data *m, const tn_example *x)
{
    enum { BYTES = 200 };
    const bool tagged = m->j->task->task == TN_TASK_TOKEN_CLASSIFICATION;
    for (int64_t k = 0; k < (tagged ? x->texts : 1); k++) {
        size_t n = strlen(x->text[k]);
        if (n > BYTES) n = BYTES;
        while (n && ((unsigned char)x->text[k][n] & 0xc0) == 0x80) n--; /* do not cut a character */
        if (m->first_text.bytes + n > BYTES) break;
        if (k) tn_string_add(&m->first_text, tn_text_of(" "));
        tn_string_add(&m->first_text, (tn_text){x->text[k], n});
    }
}

/* Adds the attention weights of all layers, with the first head of the last layer enlarged. */
static void put_attention(tn_report *r, const page_data *m, const text_set *h)
{
    const model seen = {h->asked->encoder, m->j->tokens};
    if (!m->first_text.bytes) return;
    tn_report_heading(r, "Attention weights on the first of these texts");
    report_attention(r, &seen, m->first_text.at, seen.bert->config.layers - 1, 0);
}

bool test_page(const test_settings *j, const text_set *h, const metrics *v, const char *folder)
{
    page_data     m = {.j = j, .labels = tn_labels_count(j->labels), .list = calloc(SHOWN, sizeof(wrong_prediction))};
    const tn_task task = j->task->task;
    char          path[1024], title[400];
    tn_report    *r = tn_report_new(run_title(&(run_page){.folder = folder, .title = "test results"}, title));
    if (task <= TN_TASK_TOKEN_CLASSIFICATION && m.labels && m.labels <= LABELS)
        m.counts = calloc((size_t)(m.labels * m.labels), sizeof *m.counts);
    for (int64_t i = 0; r && m.list && i < tn_labelled_count(h->texts) && tn_error() == TN_OK; i++) {
        const tn_example x = tn_labelled_at(h->texts, i);
        if (task == TN_TASK_TOKEN_CLASSIFICATION) add_sentence(&m, h, i, &x);
        else if (task == TN_TASK_QUESTION_ANSWERING) add_answer(&m, h, i, &x);
        else if (task == TN_TASK_CLASSIFICATION && j->problem == TN_SINGLE_LABEL) add_text(&m, h, i, &x);
        if (m.found && !m.first_text.bytes) keep_text(&m, &x);
    }
    put_summary(r, &m, v, folder);
    if (m.counts) tn_report_confusion(r, "Confusion matrix", m.labels, tn_labels_names(j->labels), m.counts);
    if (m.list) put_errors(r, &m);
    put_attention(r, &m, h);
    free(m.counts), free(m.list);
    tn_string_free(&m.first_text);
    return record_report(r, in_folder(folder, "test.html", path));
}

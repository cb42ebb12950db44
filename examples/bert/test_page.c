/* test_page.c — the HTML page of a test: the confusion matrix, wrong predictions, and the attention weights on the
 * first of these texts. */
#include "bert.h"
#include "tune.h"

#include "../common/files.h"
#include "../common/record.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 100, LABELS = 40 };

typedef struct {
    char line[24], right[100], said[100], text[300];
} wrong_prediction;
typedef struct {
    const test_settings *j;
    double              *counts; /* [labels, labels]: right, predicted; NULL: no labels, or too many */
    int64_t              labels, found;
    wrong_prediction    *list;
    tn_string            first_text; /* the start of the first text with a wrong prediction */
} page_data;

/* Counts one prediction. Keeps the first SHOWN wrong ones. */
static void add_prediction(page_data *m, int64_t line, int64_t right, int64_t said, const char *text)
{
    const char *const *name = tn_labels_names(m->j->labels);
    if (m->counts && right >= 0 && right < m->labels && said < m->labels) m->counts[right * m->labels + said]++;
    if (right == said) return;
    if (m->found < SHOWN) {
        wrong_prediction *x = &m->list[m->found];
        snprintf(x->line, sizeof x->line, "%lld", (long long)line);
        snprintf(x->right, sizeof x->right, "%.90s", name[right]),
            snprintf(x->said, sizeof x->said, "%.90s", name[said]);
        snprintf(x->text, sizeof x->text, "%.290s", text);
    }
    m->found++;
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
        add_prediction(m, x->line + k, tn_labels_find(m->j->labels, x->label[k]), said[k], text);
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
    if (m->found < SHOWN) {
        wrong_prediction *w = &m->list[m->found];
        snprintf(w->line, sizeof w->line, "%.20s", x->id),
            snprintf(w->right, sizeof w->right, "%.90s", n ? x->label[0] : "");
        snprintf(w->said, sizeof w->said, "%.*s", (int)(a.end - a.start < 90 ? a.end - a.start : 90),
                 x->text[1] + a.start);
        snprintf(w->text, sizeof w->text, "%.290s", x->text[0]);
    }
    m->found++;
}

static void put_confusion(tn_report *r, const page_data *m)
{
    const char *const *name = tn_labels_names(m->j->labels);
    const tn_scope     s = tn_no_grad_begin();
    tn_tensor         *w = tn_zeros(TN_SHAPE(m->labels, m->labels));
    float             *to = w ? tn_data_mut(w) : NULL;
    for (int64_t i = 0; to && i < m->labels; i++) {
        double all = 0;
        for (int64_t k = 0; k < m->labels; k++) all += m->counts[i * m->labels + k];
        for (int64_t k = 0; k < m->labels && all > 0; k++)
            to[i * m->labels + k] = (float)(m->counts[i * m->labels + k] / all);
    }
    tn_report_heatmap(r, "Confusion matrix: right labels on the left, predicted labels on top", m->labels, name,
                      m->labels, name, w);
    tn_scope_end(s);
}

static void put_errors(tn_report *r, const page_data *m)
{
    static const char *const names[] = {"line", "right", "predicted", "text"};
    const int64_t            n = m->found < SHOWN ? m->found : SHOWN;
    const char             **cells = calloc(4 * (size_t)n + 1, sizeof *cells);
    char                     text[120];
    if (!cells) return;
    for (int64_t i = 0; i < n; i++) {
        cells[4 * i] = m->list[i].line, cells[4 * i + 1] = m->list[i].right;
        cells[4 * i + 2] = m->list[i].said, cells[4 * i + 3] = m->list[i].text;
    }
    snprintf(text, sizeof text, "%lld predictions are wrong%s", (long long)m->found,
             m->found > n ? "; the first hundred of them:" : ".");
    tn_report_heading(r, "Wrong predictions"), tn_report_paragraph(r, text);
    if (n) tn_report_table(r, 4, names, n, cells);
    free(cells);
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

bool test_page(const test_settings *j, const text_set *h, const char *folder)
{
    page_data     m = {.j = j, .labels = tn_labels_count(j->labels), .list = calloc(SHOWN, sizeof(wrong_prediction))};
    const tn_task task = j->task->task;
    tn_report    *r = tn_report_new("Test results");
    char          path[1024];
    if (task <= TN_TASK_TOKEN_CLASSIFICATION && m.labels && m.labels <= LABELS)
        m.counts = calloc((size_t)(m.labels * m.labels), sizeof *m.counts);
    for (int64_t i = 0; r && m.list && i < tn_labelled_count(h->texts) && tn_error() == TN_OK; i++) {
        const tn_example x = tn_labelled_at(h->texts, i);
        if (task == TN_TASK_TOKEN_CLASSIFICATION) add_sentence(&m, h, i, &x);
        else if (task == TN_TASK_QUESTION_ANSWERING) add_answer(&m, h, i, &x);
        else if (task == TN_TASK_CLASSIFICATION && j->problem == TN_SINGLE_LABEL)
            add_prediction(&m, x.line, tn_labels_find(j->labels, x.label[0]), predicted_class(h, i), x.text[0]);
        if (m.found && !m.first_text.bytes) keep_text(&m, &x);
    }
    if (m.counts) put_confusion(r, &m);
    if (m.list) put_errors(r, &m);
    put_attention(r, &m, h);
    free(m.counts), free(m.list);
    tn_string_free(&m.first_text);
    return record_report(r, in_folder(folder, "test.html", path));
}

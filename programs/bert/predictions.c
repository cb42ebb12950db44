/* predictions.c — the predictions for a test set as lines of JSON: of each example its text, its label, and what the
 * model predicts with which probability. */
#include "bert.h"
#include "tune.h"

#include "../common/numbers.h"
#include "../common/texts.h"

#include <stdlib.h>
#include <string.h>

/* The probabilities of an example's n classes, which the caller frees. NULL: raised. */
static double *probabilities(const text_set *h, int64_t i, bool each)
{
    const int64_t f = h->first[i], n = h->width[f];
    double       *p = calloc((size_t)n + 1, sizeof *p);
    if (p) probabilities_of(h->scores[f], n, each, p);
    else tn_raise(TN_ENOMEM, "no memory for %lld labels", (long long)n);
    return p;
}

static void put_list(tn_json_writer *w, const char *key, int64_t n, const char *const *list)
{
    tn_json_open_array(w, key);
    for (int64_t i = 0; i < n; i++) texts_put(w, NULL, list[i]);
    tn_json_close(w);
}

static void put_class(const test_settings *j, const text_set *h, int64_t i, tn_json_writer *w)
{
    const tn_example   x = tn_labelled_at(h->texts, i);
    const char *const *name = tn_labels_names(j->labels);
    const bool         each = j->problem == TN_MULTI_LABEL;
    texts_put(w, "text", x.text[0]);
    if (x.texts > 1) texts_put(w, "pair", x.text[1]);
    if (j->problem == TN_REGRESSION) {
        double label = 0;
        tn_parse_double(x.label[0], strlen(x.label[0]), &label);
        numbers_put(w, "label", label, 6), numbers_put(w, "predicted", predicted_value(h, i), 6);
        return;
    }
    double *p = probabilities(h, i, each);
    if (!p) return;
    if (!each) {
        const int64_t k = predicted_class(h, i);
        texts_put(w, "label", x.label[0]), texts_put(w, "predicted", name[k]);
        numbers_put(w, "probability", p[k], 6);
    } else {
        const int64_t n = tn_labels_count(j->labels);
        put_list(w, "label", x.labels, x.label);
        for (int what = 0; what < 2; what++) { /* the predicted labels, then their probabilities */
            tn_json_open_array(w, what ? "probability" : "predicted");
            for (int64_t k = 0; k < n; k++)
                if (p[k] >= 0.5 && what) numbers_put(w, NULL, p[k], 6);
                else if (p[k] >= 0.5) texts_put(w, NULL, name[k]);
            tn_json_close(w);
        }
    }
    free(p);
}

static void put_tags(const test_settings *j, const text_set *h, int64_t i, tn_json_writer *w)
{
    const tn_example x = tn_labelled_at(h->texts, i);
    int64_t         *said = calloc((size_t)x.texts + 1, sizeof *said);
    if (!said) {
        tn_raise(TN_ENOMEM, "no memory for %lld words", (long long)x.texts);
        return;
    }
    predicted_tags(h, i, said);
    put_list(w, "text", x.texts, x.text), put_list(w, "label", x.labels, x.label);
    tn_json_open_array(w, "predicted");
    for (int64_t k = 0; k < x.texts; k++) texts_put(w, NULL, tn_labels_names(j->labels)[said[k]]);
    tn_json_close(w);
    free(said);
}

static void put_answer(const test_settings *j, const text_set *h, int64_t i, tn_json_writer *w)
{
    const tn_example x = tn_labelled_at(h->texts, i);
    const tn_answer  a = predicted_answer(h, i, j->longest);
    tn_string        said = {0};
    tn_string_add(&said, (tn_text){x.text[1] + a.start, (size_t)(a.end - a.start)});
    if (tn_string_add(&said, (tn_text){"", 1}) == TN_OK) {
        texts_put(w, "id", x.id), texts_put(w, "text", x.text[0]);
        put_list(w, "label", x.labels, x.label);
        texts_put(w, "predicted", said.at);
        numbers_put(w, "probability", a.probability, 6);
    }
    tn_string_free(&said);
}

static void put_choice(const text_set *h, int64_t i, tn_json_writer *w)
{
    const tn_example x = tn_labelled_at(h->texts, i);
    const int64_t    k = predicted_class(h, i);
    double          *p = probabilities(h, i, false);
    if (!p) return;
    texts_put(w, "text", x.text[0]);
    tn_json_put_i64(w, "label", strtoll(x.label[0], NULL, 10)), tn_json_put_i64(w, "predicted", k);
    numbers_put(w, "probability", p[k], 6);
    free(p);
}

bool predictions_save(const test_settings *j, const text_set *h, const char *path)
{
    tn_json_writer *w = tn_json_writer_new(0);
    tn_string       all = {0};
    for (int64_t i = 0; w && i < tn_labelled_count(h->texts) && tn_error() == TN_OK; i++) {
        tn_json_writer_clear(w), tn_json_open_object(w, NULL);
        switch (j->task->task) {
        case TN_TASK_CLASSIFICATION: put_class(j, h, i, w); break;
        case TN_TASK_TOKEN_CLASSIFICATION: put_tags(j, h, i, w); break;
        case TN_TASK_QUESTION_ANSWERING: put_answer(j, h, i, w); break;
        case TN_TASK_MULTIPLE_CHOICE: put_choice(h, i, w); break;
        }
        tn_json_close(w);
        size_t      bytes = 0;
        const char *line = tn_json_text(w, &bytes);
        if (line) tn_string_add(&all, (tn_text){line, bytes}), tn_string_add(&all, tn_text_of("\n"));
    }
    const bool fine = tn_error() == TN_OK && tn_file_write(path, all.at ? all.at : "", all.bytes) == TN_OK;
    tn_string_free(&all);
    tn_json_writer_free(w);
    return fine;
}

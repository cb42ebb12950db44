/* eval.c — vit eval: the accuracy of a model on labelled images, and the misclassified images. */
#include "programs/common/numbers.h"
#include "programs/common/messages.h"
#include "vit.h"

#include <math.h>
#include <string.h>

static const char *dir, *images, *labels, *html;
static int64_t     first;
static bool        json;

enum { MAX_LISTED = 60 };

static void add_batch(evaluation *j, const tn_batch *b, tn_tensor *scores)
{
    const int64_t rows = tn_size(scores, 0);
    tn_tensor    *probability = tn_softmax(scores, -1);
    const tn_pair best = tn_max(probability, -1, false);
    tn_tensor    *loss = tn_cross_entropy(scores, b->y, .reduction = TN_SUM);
    if (tn_error() != TN_OK) return;
    j->loss += tn_item(loss);
    for (int64_t i = 0; i < rows; i++, j->n++) {
        const int64_t label = tn_get_i64(b->y, i), predicted = tn_get_i64(best.indices, i);
        j->confusion[label * j->classes + predicted]++;
        j->correct += label == predicted;
        if (label == predicted || j->listed == MAX_LISTED) continue;
        j->wrong[j->listed] = tn_get_i64(tn_batch_get(b, "index"), i), j->predicted[j->listed] = predicted;
        j->probability[j->listed++] = tn_get(best.values, i);
    }
}

bool evaluate(const model *m, const image_set *p, int64_t from, int64_t n, evaluation *j)
{
    *j = (evaluation){.classes = m->classes};
    if (p->classes > m->classes)
        return tn_raise_false(TN_EINVAL, "the largest label is %lld, but the model has %lld classes, 0 to %lld",
                              (long long)p->classes - 1, (long long)m->classes, (long long)m->classes - 1);
    if (p->height != m->side || p->width != m->side || p->channels != m->processor.channels)
        return tn_raise_false(
            TN_EINVAL, "the images are %lld x %lld with %lld channels, but the model needs %lld x %lld with %lld",
            (long long)p->height, (long long)p->width, (long long)p->channels, (long long)m->side, (long long)m->side,
            (long long)m->processor.channels);
    const size_t table = (size_t)(m->classes * m->classes) * sizeof(int64_t);
    j->wrong = tn_mem_get(2 * MAX_LISTED * sizeof *j->wrong),
    j->probability = tn_mem_get(MAX_LISTED * sizeof *j->probability);
    j->confusion = tn_mem_get(table);
    tn_images *in = image_set_in_order(p, &m->processor, from, n, 250);
    tn_source  source = tn_images_source(in);
    if (tn_error() == TN_OK) {
        tn_batch b;
        j->predicted = j->wrong + MAX_LISTED;
        memset(j->confusion, 0, table);
        for (bool more = true; more;) {
            const tn_scope s = tn_no_grad_begin();
            more = tn_source_next(&source, &b);
            if (more) add_batch(j, &b, tn_module_call(m->net, b.x));
            tn_scope_end(s);
        }
        for (int64_t i = 0; i < j->listed; i++) j->wrong[i] += from;
        j->loss /= (double)j->n;
        if (isnan(j->loss)) numbers_not_finite("the loss", j->loss);
    }
    tn_images_free(in);
    if (tn_error() == TN_OK) return true;
    evaluation_free(j);
    return false;
}

void evaluation_free(evaluation *j)
{
    if (j->wrong) tn_mem_put(j->wrong, 2 * MAX_LISTED * sizeof *j->wrong);
    if (j->probability) tn_mem_put(j->probability, MAX_LISTED * sizeof *j->probability);
    if (j->confusion) tn_mem_put(j->confusion, (size_t)(j->classes * j->classes) * sizeof *j->confusion);
    *j = (evaluation){.n = 0};
}

static bool page(const model *m, const image_set *p, const evaluation *j)
{
    char       title[400];
    tn_report *r = tn_report_new(run_title(&(run_page){.folder = dir, .title = "evaluation"}, title));
    report_evaluation(r, m, p, j, "images");
    report_attention(r, m, p, first, p->n - first);
    return record_report(r, html);
}

static int run(int operands, char **operand)
{
    (void)operands, (void)operand;
    model      m = {.net = NULL};
    image_set  p = {.x = NULL};
    evaluation j = {.n = 0};
    const int  wrong = image_labels_check(images, labels);
    if (wrong) return wrong;
    if (model_open(dir, &m) && image_set_open(images, labels, &p) && image_set_fit(&p, &m)) {
        if (first >= p.n)
            tn_raise(TN_EINVAL, "--first %lld is out of range: there are %lld images, counted from 0", (long long)first,
                     (long long)p.n);
        else if (evaluate(&m, &p, first, p.n - first, &j) && (!html || page(&m, &p, &j))) {
            const double part = (double)j.correct / (double)j.n;
            if (json) {
                numbers_json("{\"accuracy\": ", 100 * part, 4), numbers_json(", \"loss\": ", j.loss, 6);
                printf(", \"images\": %lld, \"wrong\": %lld}\n", (long long)j.n, (long long)(j.n - j.correct));
            } else
                printf("accuracy  %.2f %% (%lld of %lld wrong)\nloss      %.4f\n", 100 * part,
                       (long long)(j.n - j.correct), (long long)j.n, j.loss);
            if (html && !settings.quiet) tell("report   %s\n", html);
        }
    }
    evaluation_free(&j);
    image_set_close(&p);
    model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("model", 'm', "DIR", &dir, MODEL_HELP, .required = true),
    OPTION_TEXT("images", 'i', "FILE", &images, IMAGES_HELP, .required = true),
    OPTION_TEXT("labels", 0, "FILE", &labels, LABELS_HELP),
    OPTION_INT("first", 0, "N", &first, "start at image N, counted from 0", .least = 0, .most = 1e9),
    OPTION_TEXT("html", 'o', "FILE", &html, "write a page with the misclassified images and the attention"),
    OPTION_FLAG("json", 0, &json, "print one line of JSON"),
    {0},
};
const command eval_command = COMMAND(
    "eval", "evaluate a model on labelled images", options,
    .text = "Prints the accuracy in percent and the cross-entropy on the images from --first to the end. Images of "
            "another size than the model's input are resized as by vit classify:\n\n"
            "  vit eval --model digits --images images.gz --labels labels.gz --first 8000 --html digits.html");

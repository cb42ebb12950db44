/* report.c — the report of vit: misclassified images, the confusion matrix, and attention over patches. */
#include "vit.h"

enum { ATTENTION = 12, CAPTION = 160, MAX_CLASSES_SHOWN = 20 };

static tn_tensor *image_at(const image_set *p, int64_t i) { return tn_select(p->x, 0, i); }

/* The attention from the class token to each patch in the last layer, averaged over heads and divided by its maximum:
 * [rows, columns]. NULL for a model that is not a ViT, or if an error is set. */
static tn_tensor *patch_attention(const model *m, tn_tensor *image)
{
    if (!m->vit) return NULL;
    const tn_vit_config *c = &m->vit->config;
    const int64_t        grid = c->image / c->patch, tokens = 1 + c->distilled;
    const size_t         bytes = (size_t)c->layers * sizeof(tn_tensor *);
    tn_image_processor   how = m->processor; /* the image has the model's size */
    how.height = how.width = how.shortest = how.crop_height = how.crop_width = 0;
    tn_tensor **weights = tn_mem_get(bytes), *a = NULL, *x = tn_image_ready(image, &how);
    if (weights && x && tn_vit_forward(m->vit, tn_unsqueeze(x, 0), .weights = weights)) {
        a = tn_mean(tn_select(weights[c->layers - 1], 0, 0), .dims = TN_DIMS(0)); /* [T, T] */
        a = tn_view(tn_contiguous(tn_narrow(tn_select(a, 0, 0), 0, tokens, grid * grid)), TN_SHAPE(grid, grid));
        a = tn_div(a, tn_amax(a));
    }
    if (weights) tn_mem_put(weights, bytes);
    return a;
}

static void add_images(tn_report *r, const char *title, const model *m, const image_set *p, int64_t n,
                       const int64_t *which, const int64_t *predicted, const double *probability, bool look)
{
    const tn_scope   s = tn_no_grad_begin();
    const size_t     bytes = (size_t)(n + 1) * sizeof(tn_report_image), texts = (size_t)(n + 1) * CAPTION;
    tn_report_image *list = tn_mem_get(bytes);
    char            *text = tn_mem_get(texts);
    for (int64_t i = 0; i < n && list && text; i++) {
        char         *to = text + i * CAPTION;
        const int64_t label = tn_get_i64(p->y, which[i]);
        tn_tensor    *image = image_at(p, which[i]);
        char          number[2][LABEL_NUMBER];
        if (predicted)
            snprintf(to, CAPTION, "label %.60s, predicted %.60s, %.0f %%", model_label(m, label, number[0]),
                     model_label(m, predicted[i], number[1]), 100 * probability[i]);
        else snprintf(to, CAPTION, "%.60s", model_label(m, label, number[0]));
        list[i] = (tn_report_image){image, look ? patch_attention(m, image) : NULL, to};
    }
    if (list && text && tn_error() == TN_OK) tn_report_images(r, title, n, list);
    if (list) tn_mem_put(list, bytes);
    if (text) tn_mem_put(text, texts);
    tn_scope_end(s);
}

static void add_confusion(tn_report *r, const model *m, const evaluation *j)
{
    const char *names[MAX_CLASSES_SHOWN];
    char        number[MAX_CLASSES_SHOWN][LABEL_NUMBER];
    for (int64_t i = 0; i < j->classes; i++) names[i] = model_label(m, i, number[i]);
    tn_report_confusion(r, "Confusion matrix", j->classes, names, j->confusion);
}

void report_evaluation(tn_report *r, const model *m, const image_set *p, const evaluation *j, const char *which)
{
    char text[300];
    snprintf(text, sizeof text, "%lld of the %lld %s are classified correctly: %.2f %%. The cross-entropy is %.4f.",
             (long long)j->correct, (long long)j->n, which, 100 * (double)j->correct / (double)j->n, j->loss);
    tn_report_paragraph(r, text);
    if (j->listed) {
        tn_report_heading(r, "Misclassified images");
        snprintf(text, sizeof text, "%lld of %lld: label, predicted class, and its probability.", (long long)j->listed,
                 (long long)(j->n - j->correct));
        add_images(r, text, m, p, j->listed, j->wrong, j->predicted, j->probability, false);
    }
    if (j->classes <= MAX_CLASSES_SHOWN) { add_confusion(r, m, j); }
}

void report_summary(tn_report *r, const run_page *p, const evaluation *j)
{
    char value[32], text[100];
    snprintf(value, sizeof value, "%.2f %%", 100 * (double)j->correct / (double)j->n);
    snprintf(text, sizeof text, "of the %lld held-out images are classified correctly", (long long)j->n);
    run_summary(r, p, value, text);
}

void report_attention(tn_report *r, const model *m, const image_set *p, int64_t first, int64_t n)
{
    int64_t which[ATTENTION], found = 0;
    if (!m->vit) return;
    for (int64_t i = first; i < first + n && found < ATTENTION; i++) { /* the first image of each class */
        bool seen = false;
        for (int64_t k = 0; k < found; k++) seen = seen || tn_get_i64(p->y, which[k]) == tn_get_i64(p->y, i);
        if (!seen) which[found++] = i;
    }
    tn_report_heading(r, "Attention");
    add_images(r, "Attention of the class token to each patch in the last layer, averaged over heads.", m, p, found,
               which, NULL, NULL, true);
}

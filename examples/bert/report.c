/* report.c — the pictures of bert: curves of a training, blanks filled in, attention. */
#include "report.h"

#include <math.h>
#include <string.h>

/* ---- curves ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *name, *shown;
    int64_t     n;
    double     *x, *y;
} curve;

static bool read_log(const char *folder, int curves, curve *c, tn_lines **lines)
{
    char path[1024];
    *lines = tn_lines_load(in_folder(folder, "log.jsonl", path));
    const int64_t rows = tn_lines_count(*lines);
    for (int k = 0; k < curves && tn_error() == TN_OK; k++) {
        c[k].x = tn_mem_get((size_t)(rows + 1) * sizeof(double));
        c[k].y = tn_mem_get((size_t)(rows + 1) * sizeof(double));
    }
    for (int64_t i = 0; i < rows && tn_error() == TN_OK; i++) {
        const tn_span line = tn_lines_at(*lines, i);
        tn_json      *row = tn_json_parse(line.at, line.bytes);
        for (int k = 0; k < curves; k++) {
            const tn_json *v = tn_json_get(row, c[k].name);
            if (!v || !c[k].x || !c[k].y) continue;
            c[k].x[c[k].n] = tn_json_double(tn_json_get(row, "step"));
            c[k].y[c[k].n++] = tn_json_double_or(v, NAN);
        }
        tn_json_free(row);
    }
    return tn_error() == TN_OK;
}

bool report_curves(tn_report *r, const char *folder)
{
    curve     c[] = {{.name = "train/loss", .shown = "training"},
                     {.name = "valid/loss", .shown = "validation"},
                     {.name = "lr", .shown = "learning rate"}};
    tn_lines *lines = NULL;
    if (read_log(folder, 3, c, &lines)) {
        const tn_series loss[] = {{.name = c[0].shown, .n = c[0].n, .x = c[0].x, .y = c[0].y, .smooth = 0.9},
                                  {.name = c[1].shown, .n = c[1].n, .x = c[1].x, .y = c[1].y}};
        const tn_series rate = {.name = c[2].shown, .n = c[2].n, .x = c[2].x, .y = c[2].y};
        tn_report_curves(r, "Loss", "step", "nats", c[1].n ? 2 : 1, loss);
        tn_report_curves(r, "Learning rate", "step", "", 1, &rate);
    }
    const size_t bytes = (size_t)(tn_lines_count(lines) + 1) * sizeof(double);
    for (int k = 0; k < 3; k++) {
        if (c[k].x) tn_mem_put(c[k].x, bytes);
        if (c[k].y) tn_mem_put(c[k].y, bytes);
    }
    tn_lines_free(lines);
    return tn_error() == TN_OK;
}

bool report_training(const char *folder)
{
    char       path[1024];
    tn_report *r = tn_report_new("A masked language model");
    report_curves(r, folder);
    if (tn_error() == TN_OK && tn_report_save(r, in_folder(folder, "report.html", path)) != TN_OK) path[0] = 0;
    tn_report_free(r);
    return tn_error() == TN_OK;
}

/* ---- language ---------------------------------------------------------------------------------------------------- */

bool report_fill(tn_report *r, const model *m, const char *text)
{
    enum { BEST = 5, MASKS = 4 };
    tn_bert_fill   found[BEST * MASKS];
    const int64_t  n = tn_bert_fill_in(m->bert, m->tokens, text, BEST, BEST * MASKS, found);
    const char    *mask = tn_tokenizer_piece(m->tokens, tn_tokenizer_special(m->tokens).mask);
    char           parts[MASKS + 1][256];
    tn_report_word said[2 * MASKS + 1], others[BEST];
    int            count = 0;
    for (int64_t i = 0; n > 0 && i <= n; i++) {
        const char  *end = strstr(text, mask);
        const size_t bytes = end ? (size_t)(end - text) : strlen(text);
        snprintf(parts[i], sizeof parts[i], "%.*s", (int)bytes, text);
        said[count++] = (tn_report_word){parts[i], -1, false};
        if (i == n || !end) break;
        said[count++] =
            (tn_report_word){tn_tokenizer_piece(m->tokens, found[i * BEST].id), found[i * BEST].probability, true};
        text = end + strlen(mask);
    }
    for (int k = 0; k < BEST && n > 0; k++)
        others[k] = (tn_report_word){tn_tokenizer_piece(m->tokens, found[k].id), found[k].probability, k == 0};
    if (n > 0) tn_report_filled(r, count, said, BEST, others);
    return tn_error() == TN_OK;
}

bool report_looks(tn_report *r, const model *m, const char *text, int64_t layer, int64_t head)
{
    const tn_scope s = tn_no_grad_begin();
    const int64_t  layers = m->bert->config.layers;
    tn_tensor    **weights = tn_mem_get((size_t)layers * sizeof *weights);
    words          w;
    if (weights && words_of(m, text, &w)) {
        tn_bert_forward(m->bert, w.ids, .types = w.segments, .weights = weights);
        if (tn_error() == TN_OK) {
            tn_tensor *all = tn_select(tn_stack_list(0, (int)layers, weights), 1, 0); /* [layers, heads, n, n] */
            tn_report_attention(r, text, w.n, w.word, w.n, w.word, all, layer, head);
        }
        words_free(&w);
    }
    if (weights) tn_mem_put(weights, (size_t)layers * sizeof *weights);
    tn_scope_end(s);
    return tn_error() == TN_OK;
}

/* report.h — one HTML file that shows what a run did: text, tables, curves, bars, attention. Include data.h.
 *
 *     tn_report *r = tn_report_new("A small BERT");
 *     tn_report_curves(r, "Loss", "step", "nats", 1, &(tn_series){.name = "train", .n = n, .x = steps, .y = losses});
 *     if (tn_report_save(r, "report.html") != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_report_free(r);
 *
 * Pictures are SVG inside the file; nothing is loaded from elsewhere, no script runs, and the same calls make the same
 * bytes. It follows the reader's light or dark setting. Every text may hold anything: it is shown, never obeyed. */
#ifndef TENON_DATA_REPORT_H
#define TENON_DATA_REPORT_H

#include "lines.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_report tn_report;
TN_API tn_report        *tn_report_new(const char *title);
TN_API void              tn_report_free(tn_report *r);
TN_API tn_status         tn_report_save(tn_report *r, const char *path) TN_CHECKED;
/* The file's text, the report's until the next call on it; NULL: raised. */
TN_API const char *tn_report_html(tn_report *r, size_t *bytes);

TN_API tn_status tn_report_heading(tn_report *r, const char *text);
TN_API tn_status tn_report_paragraph(tn_report *r, const char *text);
TN_API tn_status tn_report_code(tn_report *r, const char *text); /* as it is, in a fixed font */
/* cells: row by row; numbers stand to the right, and "·" for none. */
TN_API tn_status tn_report_table(tn_report *r, int columns, const char *const *names, int64_t rows,
                                 const char *const *cells);

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Points with a NaN or an infinity are gaps. smooth, in [0, 1): how much of the running mean a point keeps; the raw
 * line stays behind it, faint. */
typedef struct {
    const char   *name;
    int64_t       n;
    const double *x, *y;
    double        smooth;
} tn_series;
TN_API tn_status tn_report_curves(tn_report *r, const char *title, const char *x, const char *y, int n,
                                  const tn_series *series);
TN_API tn_status tn_report_bars(tn_report *r, const char *title, int n, const char *const *names,
                                const double *values); /* not negative */

/* ---- language ---------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *text;
    double      probability; /* of a filled-in word; less than 0: not one */
    bool        right;       /* it is what was meant */
} tn_report_word;
/* A sentence whose filled-in words stand out; and beneath it, what else could stand there. */
TN_API tn_status tn_report_filled(tn_report *r, int n, const tn_report_word *words, int others,
                                  const tn_report_word *other);

/* weights [layers, heads, m, n]: how much word i on the left looks at word j on the right. Every head small; the chosen
 * one large, with the words on both sides; a word under the pointer shows its lines alone. */
TN_API tn_status tn_report_attention(tn_report *r, const char *title, int64_t m, const char *const *left, int64_t n,
                                     const char *const *right, const tn_tensor *weights, int64_t layer, int64_t head);
/* weights [m, n], in [0, 1], as shades, e.g. the alignment of a translation. */
TN_API tn_status tn_report_heatmap(tn_report *r, const char *title, int64_t m, const char *const *rows, int64_t n,
                                   const char *const *columns, const tn_tensor *weights);

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* Side by side, each with a line beneath it. */
typedef struct {
    const tn_tensor *image; /* u8 [H, W] or [C, H, W], of at most 1024 pixels a side */
    const tn_tensor *shade; /* [rows, columns], in [0, 1]: how much of a colour lies over each part; or NULL */
    const char      *caption;
} tn_report_picture;
TN_API tn_status tn_report_pictures(tn_report *r, const char *title, int64_t n, const tn_report_picture *pictures);

/* ---- what is inside a model -------------------------------------------------------------------------------------- */

/* What is added from here on is one alternative, which a button of this name shows; the title comes with the first.
 * tn_report_chosen ends the choice. */
TN_API tn_status tn_report_choose(tn_report *r, const char *title, const char *name, bool first);
TN_API tn_status tn_report_chosen(tn_report *r);
/* weights [layers, n, n]: the ways that attention takes from one word of the last layer down to all words. */
TN_API tn_status tn_report_ways(tn_report *r, const char *title, int64_t n, const char *const *words,
                                const tn_tensor *weights, int64_t word);
/* Words on a ground of green, or amber where the value is negative. */
TN_API tn_status tn_report_values(tn_report *r, const char *title, int64_t n, const char *const *words,
                                  const double *values);
typedef struct {
    int64_t       nx, ny;
    const double *z;              /* [ny, nx]; what is not from -1e37 to 1e37 counts as the largest */
    double        x0, x1, y0, y1; /* from -1e37 to 1e37 */
    int64_t       steps;          /* a way over it, of points x, y; 0: none */
    const double *path;
    bool          slanted; /* a surface, not lines of equal height */
} tn_report_plane;
TN_API tn_status tn_report_surface(tn_report *r, const char *title, const tn_report_plane *p);
/* The picture that was added last, as a file of its own: a .png, by our own letters, or else an .svg. */
TN_API tn_status tn_report_save_picture(tn_report *r, const char *path);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif

/* report.h — one HTML file that reports on a run: text, tables, curves, bars, attention. Include extras.h.
 *
 *     tn_report *r = tn_report_new("A small BERT");
 *     tn_report_curves(r, "Loss", "step", "nats", 1, &(tn_series){.name = "train", .n = n, .x = steps, .y = losses});
 *     if (tn_report_save(r, "report.html") != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_report_free(r);
 *
 * Figures are SVG inside the file; it loads nothing, and the same calls produce the same bytes. It follows the reader's
 * light or dark setting, and its letters have at least 10 pixels on a telephone, too. A small inline script, whose
 * hash is in the page's Content-Security-Policy, shows values under the pointer; without it the page is complete. Texts
 * may contain anything: they are escaped. */
#ifndef TENON_EXTRAS_REPORT_H
#define TENON_EXTRAS_REPORT_H

#include "../data/lines.h"

TN_C_BEGIN_

typedef struct tn_report tn_report;
TN_API tn_report        *tn_report_new(const char *title);
TN_API void              tn_report_free(tn_report *r);
TN_API tn_status         tn_report_save(tn_report *r, const char *path) TN_CHECKED;
/* Returns the file's content, which the report owns until its next call; NULL: raised. */
TN_API const char *tn_report_html(tn_report *r, size_t *bytes);
/* An open page is loaded again after this number of seconds, while a run rewrites it; 0, the default: never. */
TN_API tn_status tn_report_refresh(tn_report *r, int seconds);

/* The top of a page: the result as one large number with its caption (value NULL: no number), and n facts by name.
 * Facts that are NULL are skipped. */
TN_API tn_status tn_report_summary(tn_report *r, const char *value, const char *caption, int n,
                                   const char *const *names, const char *const *values);
TN_API tn_status tn_report_heading(tn_report *r, const char *text);
TN_API tn_status tn_report_paragraph(tn_report *r, const char *text);
TN_API tn_status tn_report_code(tn_report *r, const char *text); /* preformatted, in a fixed-width font */
/* cells: row by row; numbers are right-aligned; "·" is an empty number. */
TN_API tn_status tn_report_table(tn_report *r, int columns, const char *const *names, int64_t rows,
                                 const char *const *cells);

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Points with a NaN or an infinity are gaps. smooth, in [0, 1): weight of the running mean; the raw line is drawn faint
 * below the smoothed one. A series of fewer than 30 points also shows the points. */
typedef struct {
    const char   *name;
    int64_t       n;
    const double *x, *y;
    double        smooth;
} tn_series;
TN_API tn_status tn_report_curves(tn_report *r, const char *title, const char *x, const char *y, int n,
                                  const tn_series *series);
/* Logarithmic scales of the curves that are added next; initially both are linear. Values of 0 and below are gaps. */
TN_API tn_status tn_report_scales(tn_report *r, bool log_x, bool log_y);
/* Counts [n, n] of examples by true label (rows) and predicted label (columns); shades show the share of the row. */
TN_API tn_status tn_report_confusion(tn_report *r, const char *title, int64_t n, const char *const *names,
                                     const int64_t *counts);
TN_API tn_status tn_report_bars(tn_report *r, const char *title, int n, const char *const *names,
                                const double *values); /* not negative */

/* ---- language ---------------------------------------------------------------------------------------------------- */

typedef struct {
    const char *text;
    double      probability; /* of a predicted word; negative: not predicted; above 1: predicted, but not known */
    bool        right;       /* the prediction, or the alternative, is correct */
} tn_report_word;
/* A sentence with its predicted words highlighted, and the alternatives below it. */
TN_API tn_status tn_report_filled(tn_report *r, int n, const tn_report_word *words, int others,
                                  const tn_report_word *other);

/* weights [layers, heads, m, n]: attention from word i on the left to word j on the right. Every head is drawn small;
 * the chosen one large, with the words on both sides. Hovering over a word shows only its lines. */
TN_API tn_status tn_report_attention(tn_report *r, const char *title, int64_t m, const char *const *left, int64_t n,
                                     const char *const *right, const tn_tensor *weights, int64_t layer, int64_t head);
/* weights [m, n], in [0, 1], as shades, e.g. the alignment of a translation. */
TN_API tn_status tn_report_heatmap(tn_report *r, const char *title, int64_t m, const char *const *rows, int64_t n,
                                   const char *const *columns, const tn_tensor *weights);

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* Images side by side, each with a caption below it. */
typedef struct {
    const tn_tensor *image; /* u8 [H, W] or [C, H, W], at most 1024 pixels per side */
    const tn_tensor *shade; /* [rows, columns], in [0, 1]: opacity of a colour over each part; or NULL */
    const char      *caption;
} tn_report_image;
TN_API tn_status tn_report_images(tn_report *r, const char *title, int64_t n, const tn_report_image *pictures);

/* ---- inside a model ---------------------------------------------------------------------------------------------- */

/* Starts an alternative, shown by a button, to which all that follows belongs; the first call gives the title. */
TN_API tn_status tn_report_choice(tn_report *r, const char *title, const char *name, bool first);
TN_API tn_status tn_report_choice_end(tn_report *r);
/* weights [layers, n, n]: the paths of attention from one word of the last layer down to all words. */
TN_API tn_status tn_report_paths(tn_report *r, const char *title, int64_t n, const char *const *words,
                                 const tn_tensor *weights, int64_t word);
/* Words on a green background, amber for negative values. */
TN_API tn_status tn_report_values(tn_report *r, const char *title, int64_t n, const char *const *words,
                                  const double *values);
/* Two trees as arcs above and below words: index of the word joined to word i; -1: none. Dashed: only in one. */
TN_API tn_status tn_report_trees(tn_report *r, const char *title, int64_t n, const char *const *words,
                                 const int64_t *above, const int64_t *below);
typedef struct {
    int64_t       nx, ny;
    const double *z;              /* [ny, nx]; values outside -1e37 … 1e37 count as the largest */
    double        x0, x1, y0, y1; /* in -1e37 … 1e37 */
    int64_t       steps;          /* points x, y of a path over it; 0: no path */
    const double *path;
    bool          slanted; /* a surface in perspective instead of contour lines */
    const char   *x, *y;   /* names of the axes; NULL: none */
    const double *scale;   /* scale_n values that determine the heights of several figures; NULL: z */
    int64_t       scale_n;
} tn_report_plane;
TN_API tn_status tn_report_surface(tn_report *r, const char *title, const tn_report_plane *p);
/* Words in a plane. A click on one, or a search, shows its neighbours; labels without room are hidden until then. */
typedef struct {
    int64_t            n, near; /* number of words, and of neighbours of each */
    const char *const *words;
    const double      *at;         /* [n, 2], finite */
    const int64_t     *neighbours; /* [n, near]: indices of words, nearest first; NULL if near is 0 */
    const double      *similarity; /* [n, near] */
} tn_report_map;
TN_API tn_status tn_report_words(tn_report *r, const char *title, const tn_report_map *m);
/* A module: a box for each part in that of its owner, with its parameters; equal ones of a list: one. At most 400. */
TN_API tn_status tn_report_module(tn_report *r, const char *title, void *module);
/* Saves the figure added last, with its title and legend; path must end in .svg. */
TN_API tn_status tn_report_save_figure(tn_report *r, const char *path);

TN_C_END_
#endif

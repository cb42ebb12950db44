/* report_attention.c — attention as lines between two columns of words, every layer and head small, one of them large;
 * and as shades of a table. A line's strength is its weight; the small figures skip the faintest lines. */
#include "extras/report/report_private.h"

#include <math.h>

enum { ROW = 22, GAP = 160, MAX_COLUMNS = 24 };
enum { HEADS_WIDE = 480, HEADS_HIGH = 540 };      /* of all small heads, if they are not too many */
enum { MAX_CHOICES = 400000, MAX_NUMBERS = 600 }; /* weights of all heads in a page; cells of a table with numbers */

static double weight_at(const tn_tensor *w, int64_t at)
{
    double v = tn_get(w, at);
    return v > 0 ? fmin(v, 1) : 0; /* NaN counts as 0 */
}

static int64_t widest(int64_t n, const char *const *words)
{
    int64_t most = 3;
    for (int64_t i = 0; i < n; i++) most = tn__report_most(most, tn__report_width(words[i]));
    return tn__report_least(most, MAX_COLUMNS);
}

static bool check(const char *who, const tn_tensor *w, tn_shape expected)
{
    char a[192], b[192];
    if (tn_shape_equal(tn_shape_of(w), expected) && tn_dtype_is_float(tn_dtype_of(w))) return true;
    return tn_raise_false(TN_ESHAPE, "%s: weights is %s of dtype %s, expected a floating dtype and %s", who,
                          tn_shape_text(tn_shape_of(w), a, sizeof a), tn_dtype_name(tn_dtype_of(w)),
                          tn_shape_text(expected, b, sizeof b));
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void put_large(tn_report *r, int64_t m, const char *const *left, int64_t n, const char *const *right,
                      const tn_tensor *w, int64_t from)
{
    int64_t a = widest(m, left) * 8 + 14, b = a + GAP;
    for (int64_t i = 0; i < n; i++) {
        tn__report_put(r, "<text x=\"%lld\" y=\"%lld\">", (long long)b + 6, (long long)i * ROW + 15);
        tn__report_text(r, right[i]);
        tn__report_put(r, "</text>\n");
    }
    tn__report_put(r, "<g class=\"a\" data-a=\"%lld %lld %d\">\n", (long long)a, (long long)b, ROW);
    for (int64_t i = 0; i < m; i++) { /* a word and its lines form a group: hovering over it fades the others */
        tn__report_put(r,
                       "<g class=\"q\"><rect width=\"%lld\" height=\"%d\" y=\"%lld\" fill=\"none\" "
                       "pointer-events=\"all\"/><text class=\"e\" x=\"%lld\" y=\"%lld\">",
                       (long long)a, ROW, (long long)i * ROW, (long long)a - 6, (long long)i * ROW + 15);
        tn__report_text(r, left[i]);
        tn__report_put(r, "</text>");
        for (int64_t j = 0; j < n; j++) {
            double v = weight_at(w, from + i * n + j);
            if (v < 0.03) continue;
            tn__report_put(
                r, "<path d=\"M%lld %lldL%lld %lld\" stroke=\"var(--c0)\" stroke-width=\"%s\" stroke-opacity=\"%s\"/>",
                (long long)a, (long long)i * ROW + 11, (long long)b, (long long)j * ROW + 11,
                tn__tenths(1 + 2 * v).text, tn__short(round(100 * v) / 100).text);
        }
        tn__report_put(r, "</g>\n");
    }
    tn__report_put(r, "</g>\n");
}

/* Groups the lines by strength into at most five paths. */
static void put_small(tn_report *r, int64_t m, int64_t n, const tn_tensor *w, int64_t from, int64_t width,
                      double height)
{
    static const double least[] = {0.05, 0.15, 0.35, 0.6, 0.85, 2};
    for (int k = 0; k < 5; k++) {
        bool any = false;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double v = weight_at(w, from + i * n + j);
                if (v < least[k] || v >= least[k + 1]) continue;
                if (!any)
                    tn__report_put(r, "<path class=\"f\" stroke=\"var(--c0)\" opacity=\"%s\" d=\"",
                                   tn__tenths(0.2 + 0.2 * k).text);
                any = true;
                tn__report_put(r, "M4 %sL%d %s", tn__tenths(((double)i + 0.5) * height / (double)m).text,
                               (int)width - 4, tn__tenths(((double)j + 0.5) * height / (double)n).text);
            }
        if (any) tn__report_put(r, "\"/>\n");
    }
}

/* All weights of a head, two hexadecimal digits each, for the script that shows it large. */
static void put_weights(tn_report *r, const tn_tensor *w, int64_t from, int64_t n)
{
    tn__report_put(r, " tabindex=\"0\" role=\"button\" data-w=\"");
    for (int64_t i = 0; i < n; i++) tn__report_put(r, "%02x", (unsigned)(255 * weight_at(w, from + i) + 0.5));
    tn__report_put(r, "\"");
}

/* Every head small, in a table. A click on one shows it large, unless there are too many weights for a page. */
static void put_heads(tn_report *r, int64_t m, int64_t n, const tn_tensor *w, int64_t layer, int64_t head)
{
    const int64_t layers = tn_size(w, 0), heads = tn_size(w, 1);
    const int64_t width = tn__report_most(28, tn__report_least(64, HEADS_WIDE / heads - 6));
    const double  most = fmax(24, fmin(90, HEADS_HIGH / (double)layers - 6)),
                 height = fmin(fmax((double)tn__report_most(m, n) * 4, 30), most);
    const bool choose = layers * heads * m * n <= MAX_CHOICES;
    r->parts = choose;
    if (choose) r->scripted = true;
    tn__report_svg(r, "Every layer and head", NULL, (double)(heads * (width + 6) + 40),
                   (double)layers * (height + 6) + 24);
    for (int64_t h = 0; h < heads; h++)
        tn__report_put(r, "<text class=\"d m\" x=\"%lld\" y=\"14\">%lld</text>\n",
                       40 + (long long)(h * (width + 6) + width / 2), (long long)h + 1);
    for (int64_t l = 0; l < layers; l++) {
        const double y = 22 + (double)l * (height + 6);
        tn__report_put(r, "<text class=\"d e\" x=\"32\" y=\"%s\">%lld</text>\n", tn__tenths(y + height / 2 + 4).text,
                       (long long)l + 1);
        for (int64_t h = 0; h < heads; h++) {
            const int64_t from = (l * heads + h) * m * n;
            tn__report_put(r, "<g%s transform=\"translate(%lld %s)\" aria-label=\"layer %lld, head %lld\"",
                           choose ? " class=\"b\"" : "", 40 + (long long)(h * (width + 6)), tn__tenths(y).text,
                           (long long)l + 1, (long long)h + 1);
            if (choose) put_weights(r, w, from, m * n);
            tn__report_put(r, "><rect width=\"%d\" height=\"%s\" rx=\"3\" fill=\"var(--card)\"%s/>\n", (int)width,
                           tn__tenths(height).text, l == layer && h == head ? " stroke=\"var(--fg)\"" : "");
            put_small(r, m, n, w, from, width, height);
            tn__report_put(r, "</g>\n");
        }
    }
    tn__report_put(r, "</svg><small>rows: layers; columns: heads%s</small></figure>\n",
                   choose ? "<span class=\"j\" hidden>; a click on a head shows it large</span>" : "");
}

tn_status tn_report_attention(tn_report *r, const char *title, int64_t m, const char *const *left, int64_t n,
                              const char *const *right, const tn_tensor *w, int64_t layer, int64_t head)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_attention", w, &mark)) return tn_error();
    if (!left || !right) return tn_raise(TN_EINVAL, "tn_report_attention: the words are NULL");
    int64_t  layers = tn_ndim(w) == 4 ? tn_size(w, 0) : 0, heads = layers ? tn_size(w, 1) : 0;
    tn_shape expected = {.n = 4, .d = {layers, heads, m, n}};
    if (!check("tn_report_attention", w, expected)) return tn_error();
    if (m < 1 || n < 1 || layer < 0 || layer >= layers || head < 0 || head >= heads)
        return tn_raise(
            TN_EINDEX, "tn_report_attention: layer %lld, head %lld of %lld layers and %lld heads, %lld words",
            (long long)layer, (long long)head, (long long)layers, (long long)heads, (long long)tn__report_least(m, n));
    double a = (double)(widest(m, left) + widest(n, right)) * 8 + GAP + 28;
    tn__report_svg(r, title, "Lines from the words on the left to those on the right that they attend to", a,
                   (double)tn__report_most(m, n) * ROW + 6);
    put_large(r, m, left, n, right, w, (layer * heads + head) * m * n);
    tn__report_put(
        r,
        "</svg><small><output>layer %lld, head %lld</output>: attention from each word on the left to the "
        "words on the right. <span style=\"white-space:nowrap\">Weight 0<span class=\"r\"></span>100 %%</span>"
        "</small></figure>\n",
        (long long)layer + 1, (long long)head + 1);
    put_heads(r, m, n, w, layer, head);
    return tn__report_end(r, mark);
}

/* ---- shades ------------------------------------------------------------------------------------------------------ */

/* The names above the columns, at an angle if one of them is long. */
static void put_columns(tn_report *r, int64_t n, const char *const *columns, int64_t left, int64_t wide, int64_t top)
{
    const bool slant = top > 24; /* of columns_height */
    for (int64_t j = 0; j < n; j++) {
        tn__report_put(r,
                       slant ? "<text transform=\"translate(%lld %lld)rotate(-60)\">"
                             : "<text x=\"%lld\" y=\"%lld\" class=\"m\">",
                       (long long)(left + j * wide + (slant ? wide / 2 + 3 : wide / 2 - 1)), (long long)top - 4);
        tn__report_text(r, columns[j]);
        tn__report_put(r, "</text>\n");
    }
}

static int64_t columns_height(int64_t n, const char *const *columns, int64_t wide)
{
    return widest(n, columns) * 7 > wide ? widest(n, columns) * 7 + 8 : 24;
}

/* The pixels from one cell to the next: few cells have room for numbers; cells of which most have no name are small. */
static int64_t cell_step(int64_t m, const char *const *rows, int64_t n, const char *const *columns)
{
    int64_t named = 0;
    for (int64_t i = 0; i < m; i++) named += rows[i][0] != 0;
    for (int64_t j = 0; j < n; j++) named += columns[j][0] != 0;
    return m * n <= MAX_NUMBERS ? ROW + 4 : named * 4 < m + n ? 5 : 14;
}

static void put_cell(tn_report *r, int64_t x, int64_t y, int64_t size, int percent, bool number)
{
    tn__report_put(r,
                   "<rect x=\"%lld\" y=\"%lld\" width=\"%lld\" height=\"%lld\" fill=\"var(--c0)\" "
                   "fill-opacity=\"%d.%02d\"><title>%d%%</title></rect>\n",
                   (long long)x, (long long)y, (long long)size, (long long)size, percent / 100, percent % 100, percent);
    if (number && percent)
        tn__report_put(r, "<text class=\"m%s\" x=\"%lld\" y=\"%lld\">%d</text>\n", percent > 55 ? " n" : "",
                       (long long)x + 12, (long long)y + 17, percent);
}

tn_status tn_report_heatmap(tn_report *r, const char *title, int64_t m, const char *const *rows, int64_t n,
                            const char *const *columns, const tn_tensor *w)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_heatmap", w, &mark)) return tn_error();
    if (!rows || !columns) return tn_raise(TN_EINVAL, "tn_report_heatmap: the words are NULL");
    if (!check("tn_report_heatmap", w, (tn_shape){.n = 2, .d = {m, n}})) return tn_error();
    if (m < 1 || n < 1) return tn_raise(TN_EINVAL, "tn_report_heatmap: m and n must be at least 1");
    const int64_t step = cell_step(m, rows, n, columns), wide = step == 5 ? 10 * step : step;
    const int64_t left = widest(m, rows) * 8 + 12, top = columns_height(n, columns, wide);
    tn__report_svg(r, title, NULL, (double)(left + n * step) + (top > 24 ? (double)top / 2 : 0),
                   (double)(top + m * step + 4));
    put_columns(r, n, columns, left, step, top);
    for (int64_t i = 0; i < m; i++) {
        tn__report_put(r, "<text class=\"e\" x=\"%lld\" y=\"%lld\">", (long long)left - 6,
                       (long long)(top + i * step + step / 2 + 4));
        tn__report_text(r, rows[i]);
        tn__report_put(r, "</text>\n");
        for (int64_t j = 0; j < n; j++)
            put_cell(r, left + j * step, top + i * step, step - (step > 5), (int)(100 * weight_at(w, i * n + j) + 0.5),
                     m * n <= MAX_NUMBERS);
    }
    tn__report_put(r, "</svg><small>0<span class=\"r\"></span>100 %%</small></figure>\n");
    return tn__report_end(r, mark);
}

tn_status tn_report_confusion(tn_report *r, const char *title, int64_t n, const char *const *names,
                              const int64_t *counts)
{
    enum { HIGH = ROW + 4, MAX_LABELS = 256 };
    size_t  mark;
    int64_t most = 0;
    char    number[24];
    if (!tn__report_begin(r, "tn_report_confusion", counts, &mark)) return tn_error();
    if (!names || n < 1 || n > MAX_LABELS)
        return tn_raise(TN_EINVAL, "tn_report_confusion: expected 1 to %d labels with names", MAX_LABELS);
    for (int64_t i = 0; i < n * n; i++) {
        most = tn__report_most(most, counts[i]);
        if (counts[i] < 0) return tn_raise(TN_EINVAL, "tn_report_confusion: count %lld is negative", (long long)i);
    }
    const int64_t wide = tn__report_most(HIGH, 8 * snprintf(number, sizeof number, "%lld", (long long)most) + 12);
    const int64_t left = tn__report_most(widest(n, names), 9) * 8 + 12, top = columns_height(n, names, wide);
    tn__report_svg(r, title, "rows: true labels; columns: predicted labels",
                   (double)(left + n * wide) + (top > 24 ? (double)top / 2 : 0), (double)(top + n * HIGH + 4));
    put_columns(r, n, names, left, wide, top);
    tn__report_put(r, "<text class=\"d e\" x=\"%lld\" y=\"%lld\">predicted</text>\n", (long long)left - 6,
                   (long long)top - 7);
    for (int64_t i = 0; i < n; i++) {
        int64_t all = 0;
        for (int64_t j = 0; j < n; j++) all += counts[i * n + j];
        tn__report_put(r, "<text class=\"e\" x=\"%lld\" y=\"%lld\">", (long long)left - 6,
                       (long long)(top + i * HIGH + 17));
        tn__report_text(r, names[i]);
        tn__report_put(r, "</text>\n");
        for (int64_t j = 0; j < n; j++) {
            const int64_t c = counts[i * n + j];
            const double  part = all ? (double)c / (double)all : 0;
            tn__report_put(r, "<rect x=\"%lld\" y=\"%lld\" width=\"%lld\" height=\"%d\" fill=\"var(--%s)\" ",
                           (long long)(left + j * wide), (long long)(top + i * HIGH), (long long)wide - 1, HIGH - 1,
                           c ? (i == j ? "good" : "bad") : "card");
            tn__report_put(r, "fill-opacity=\"%s\"/>",
                           c ? tn__short(round(100 * (0.15 + 0.85 * part)) / 100).text : "1");
            tn__report_put(r, "<text class=\"m%s\" x=\"%lld\" y=\"%lld\">%lld</text>\n",
                           part > 0.45 ? " n"
                           : c         ? ""
                                       : " d",
                           (long long)(left + j * wide + wide / 2), (long long)(top + i * HIGH + 17), (long long)c);
        }
    }
    tn__report_put(r, "</svg><small>rows: true labels; columns: predicted labels</small></figure>\n");
    return tn__report_end(r, mark);
}

/* report_plots.c — curves and bars. A long curve is drawn as the minimum and maximum of each column, so that no spike
 * is lost and the file stays small. The <svg> of curves is the plot itself, as wide as the page: the lines are in a
 * nested one that is stretched; letters are at percentages and keep their size; the y scale is in the page's margin. */
#include "extras/report/report_private.h"

#include <math.h>

enum { WIDTH = 860, HEIGHT = 320, TOP = 10, BOTTOM = 44, FEW = 30 /* points */ };
enum { UNITS = 10000, COLUMNS = 774 }; /* units of the plot's width and height; columns of a line that is thinned */

typedef struct {
    double low, high, step; /* shown range, and distance of tick marks; if log, of the values' decimal logarithms */
    bool   log;
    int    first; /* log with step 0, ticks at 1, 2 and 5 times powers of ten: the index of the first */
} axis;

/* The position of v on an axis; not drawn: none. */
static double scaled(bool log, double v)
{
    return !log ? v : v > 0 && tn__is_drawn(v) ? tn__report_log(v) / tn__report_log(10) : NAN;
}

/* The logarithm of tick j: 1, 2, 5, 10, 20 … for 0, 1, 2, 3, 4 … */
static double log_tick(int j)
{
    const int decade = (j < 0 ? j - 2 : j) / 3, part = j - 3 * decade;
    return decade + (part == 0 ? 0 : part == 1 ? 0.30102999566398120 : 0.69897000433601880);
}

static double tick(const axis *a, int k)
{
    return a->log && !(a->step > 0) ? log_tick(a->first + k) : a->low + k * a->step;
}

static tn__number_text tick_text(const axis *a, double v)
{
    const double power = a->log ? tn__power_of_ten(v) : 0;
    return tn__short(a->log ? power : fabs(v) < a->step / 1e6 ? 0 : v);
}

/* At most three decades have ticks at 1, 2 and 5, more at powers of ten. */
static axis log_axis(double low, double high)
{
    if (!(low <= high)) low = 0, high = 1; /* no values */
    axis a = {.log = true};
    if (high - low > 3) {
        a.step = ceil((high - low) / 6), a.low = floor(low), a.high = a.low + a.step * ceil((high - a.low) / a.step);
        return a;
    }
    int last;
    a.first = 3 * (int)floor(low) + 3;
    while (log_tick(a.first) > low + 1e-9) a.first--;
    last = a.first + 1;
    while (log_tick(last) < high - 1e-9) last++;
    a.low = log_tick(a.first), a.high = log_tick(last);
    return a;
}

/* Tick marks at 1, 2 or 5 times a power of ten, about n of them, that enclose the values; of counts, at whole numbers.
 * Values so close that their ticks, which are floats, would be equal are drawn as one. */
static axis axis_of(double low, double high, int n, bool counts)
{
    if (!(low <= high)) low = 0, high = 1; /* no values */
    if (high - low <= fmax(1e-7 * fmax(fabs(low), fabs(high)), 1e-37))
        low -= fabs(low) * 0.1 + 0.5, high = low + 2 * (fabs(low) * 0.1 + 0.5);
    double raw = (high - low) / n, power = tn__power_of_ten(floor(log10(raw))), times = raw / power;
    double step = power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
    if (counts && step < 1) step = 1;
    return (axis){floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step, step, false, 0};
}

static double at(axis a, double v, double from, double to)
{
    return from + (v - a.low) / (a.high - a.low) * (to - from);
}

/* The place on the axis, as a percentage of the plot's width. */
static tn__number_text across_at(axis a, double v) { return tn__short(round(1e4 * at(a, v, 0, 1)) / 100); }

static void put_axes(tn_report *r, axis x, axis y, const char *xname, const char *yname)
{
    for (int k = 0; k <= 12; k++) {
        double v = tick(&y, k), py = at(y, v, HEIGHT - BOTTOM, TOP);
        if (v > y.high + y.step / 2 + 1e-9 * y.log) break;
        tn__report_put(r,
                       "<line class=\"g\" x2=\"100%%\" y1=\"%s\" y2=\"%s\"/><text class=\"d e\" x=\"-6\" y=\"%s\">%s"
                       "</text>\n",
                       tn__tenths(py).text, tn__tenths(py).text, tn__tenths(py + 4).text, tick_text(&y, v).text);
    }
    for (int k = 0; k <= 12; k++) { /* a narrow page shows every other tick */
        double v = tick(&x, k);
        if (v > x.high + x.step / 2 + 1e-9 * x.log) break;
        tn__report_put(r, "<text class=\"d m%s\" x=\"%s%%\" y=\"%d\">%s</text>\n", k % 2 ? " o" : "",
                       across_at(x, v).text, HEIGHT - BOTTOM + 17, tick_text(&x, v).text);
    }
    tn__report_put(r, "<text class=\"m\" x=\"50%%\" y=\"%d\">", HEIGHT - 6);
    tn__report_text(r, xname);
    tn__report_put(r, "</text><text class=\"m\" transform=\"translate(%d %d)rotate(-90)\">", 13 - TN__REPORT_LEFT,
                   (TOP + HEIGHT - BOTTOM) / 2);
    tn__report_text(r, yname);
    tn__report_put(r, "</text>\n");
}

typedef struct {
    tn_report *r;
    bool       down; /* a line has been started */
    int        column;
    double     low, high, first, last, x;
} pen;

static void point(pen *p, double x, double y)
{
    tn__report_put(p->r, "%c%d %d", p->down ? 'L' : 'M', (int)(x + 0.5), (int)(y + 0.5));
    p->down = true;
}

static void end_column(pen *p) /* writes the column's first, extreme and last values */
{
    if (p->column < 0) return;
    point(p, p->x, p->first);
    if (p->low < fmin(p->first, p->last)) point(p, p->x, p->low);
    if (p->high > fmax(p->first, p->last)) point(p, p->x, p->high);
    if (p->last != p->first) point(p, p->x, p->last);
    p->column = -1;
}

/* The k-th series; faint: the raw values below a running mean. */
static void put_line(tn_report *r, const tn_series *s, axis x, axis y, int k, bool smoothed, bool faint)
{
    pen    p = {.r = r, .column = -1};
    double mean = 0, weight = 0;
    tn__report_put(r, "<path class=\"f\" stroke=\"var(--c%d)\" stroke-width=\"%s\"%s d=\"", k % TN__REPORT_COLOURS,
                   faint ? "1" : "1.8", faint ? " opacity=\".4\"" : " data-s=\"\"");
    for (int64_t i = 0; i < s->n; i++) {
        const double sx = scaled(x.log, s->x[i]);
        if (!tn__is_drawn(sx) || !tn__is_drawn(scaled(y.log, s->y[i]))) {
            end_column(&p);
            p.down = false;
            continue;
        }
        double v = s->y[i];
        if (smoothed) { /* the running mean, corrected for its start at 0 */
            mean = s->smooth * mean + (1 - s->smooth) * v;
            weight = s->smooth * weight + (1 - s->smooth);
            v = mean / weight;
            if (!tn__is_drawn(scaled(y.log, v))) v = s->y[i]; /* rounded to 0, or beyond the largest drawn */
        }
        const double px = at(x, sx, 0, UNITS), py = at(y, scaled(y.log, v), UNITS, 0);
        const int    column = (int)(px * COLUMNS / UNITS);
        if (p.column != column) {
            end_column(&p);
            p.column = column, p.x = px, p.low = p.high = p.first = p.last = py;
        } else {
            p.low = fmin(p.low, py), p.high = fmax(p.high, py), p.last = py;
        }
    }
    end_column(&p);
    tn__report_put(r, p.down ? "\"/>\n" : "M-1 -1\"/>\n");
}

/* Few points would look like a smooth function, and one would be invisible. */
static void put_points(tn_report *r, const tn_series *s, axis x, axis y, int colour)
{
    for (int64_t i = 0; s->n < FEW && i < s->n; i++) {
        const double sx = scaled(x.log, s->x[i]), sy = scaled(y.log, s->y[i]);
        if (tn__is_drawn(sx) && tn__is_drawn(sy))
            tn__report_put(r, "<circle cx=\"%s%%\" cy=\"%s\" r=\"2.5\" fill=\"var(--c%d)\"/>\n", across_at(x, sx).text,
                           tn__tenths(at(y, sy, HEIGHT - BOTTOM, TOP)).text, colour % TN__REPORT_COLOURS);
    }
}

/* The series in words: "training: from 8.1 at 1 to 2.3 at 3000; lowest 2.1 at 2750". */
static void describe(tn_string *to, int n, const tn_series *s)
{
    char text[200];
    for (int k = 0; k < n; k++) {
        int64_t first = -1, last = -1, low = -1;
        for (int64_t i = 0; i < s[k].n; i++) {
            if (!tn__is_drawn(s[k].x[i]) || !tn__is_drawn(s[k].y[i])) continue;
            first = first < 0 ? i : first, last = i, low = low < 0 || s[k].y[i] < s[k].y[low] ? i : low;
        }
        tn_string_add(to, tn_text_of(s[k].name ? s[k].name : ""));
        if (first < 0) tn_string_add(to, tn_text_of(": no values. "));
        else {
            const double v[] = {s[k].y[first], s[k].x[first], s[k].y[last], s[k].x[last], s[k].y[low], s[k].x[low]};
            snprintf(text, sizeof text, ": from %s at %s to %s at %s; lowest %s at %s. ", tn__short(v[0]).text,
                     tn__short(v[1]).text, tn__short(v[2]).text, tn__short(v[3]).text, tn__short(v[4]).text,
                     tn__short(v[5]).text);
            tn_string_add(to, tn_text_of(text));
        }
    }
}

static void begin_curves(tn_report *r, const char *title, int n, const tn_series *s, axis x, axis y)
{
    tn_string about = {0};
    describe(&about, n, s);
    tn__report_figure(r, title, WIDTH, HEIGHT);
    r->margin = TN__REPORT_LEFT, r->scripted = true;
    tn__report_put(r, "<figure class=\"v\"><figcaption>");
    tn__report_text(r, title);
    tn__report_put(r, "</figcaption>\n<svg class=\"v\" tabindex=\"0\" data-x=\"%s %s %d\" ", tn__short(x.low).text,
                   tn__short(x.high).text, x.log);
    tn__report_put(r, "data-y=\"%s %s %d\" ", tn__short(y.low).text, tn__short(y.high).text, y.log);
    tn__report_about(r, title, about.at ? about.at : "");
    tn_string_free(&about);
}

tn_status tn_report_curves(tn_report *r, const char *title, const char *x, const char *y, int n, const tn_series *s)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_curves", s, &mark)) return tn_error();
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    bool   counts[2] = {true, true}; /* all values are whole numbers */
    for (int k = 0; k < n; k++) {
        if (s[k].n < 0 || (s[k].n && (!s[k].x || !s[k].y)) || !(s[k].smooth >= 0 && s[k].smooth < 1))
            return tn_raise(
                TN_EINVAL,
                "tn_report_curves: series %d: .x or .y is NULL, .n is negative, or .smooth is outside [0, 1)", k);
        for (int64_t i = 0; i < s[k].n; i++) {
            const double sx = scaled(r->log_x, s[k].x[i]), sy = scaled(r->log_y, s[k].y[i]);
            if (!tn__is_drawn(sx) || !tn__is_drawn(sy)) continue;
            low[0] = fmin(low[0], sx), high[0] = fmax(high[0], sx);
            low[1] = fmin(low[1], sy), high[1] = fmax(high[1], sy);
            counts[0] &= sx == floor(sx), counts[1] &= sy == floor(sy);
        }
    }
    axis across = r->log_x ? log_axis(low[0], high[0]) : axis_of(low[0], high[0], 8, counts[0]);
    axis up = r->log_y ? log_axis(low[1], high[1]) : axis_of(low[1], high[1], 5, counts[1]);
    if (!r->log_x && low[0] < high[0])
        across.low = low[0] > across.low && low[0] > across.step / 50 ? across.low : fmin(low[0], 0);
    if (across.high <= across.low) across.high = across.low + 1;
    begin_curves(r, title, n, s, across, up);
    put_axes(r, across, up, x, y);
    tn__report_put(r,
                   "<svg y=\"%d\" width=\"100%%\" height=\"%d\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\">\n",
                   TOP, HEIGHT - BOTTOM - TOP, UNITS, UNITS);
    for (int k = 0; k < n; k++) {
        if (s[k].smooth > 0) put_line(r, &s[k], across, up, k, false, true);
        put_line(r, &s[k], across, up, k, s[k].smooth > 0, false);
    }
    tn__report_put(r, "<path class=\"h\" d=\"M-1 -1\"/></svg>\n");
    for (int k = 0; k < n; k++) put_points(r, &s[k], across, up, k);
    tn__report_put(r, "</svg>\n<div>");
    for (int k = 0; k < n; k++) {
        if (n > 1) tn__report_legend(r, k, s[k].name);
        tn__report_put(r, "<output></output>");
    }
    tn__report_put(r, " <small class=\"j\" hidden>");
    tn__report_text(r, x);
    tn__report_put(r, " <output>–</output></small></div></figure>\n");
    return tn__report_end(r, mark);
}

tn_status tn_report_scales(tn_report *r, bool log_x, bool log_y)
{
    if (tn_blocked()) return tn_error();
    if (!r) return tn_raise(TN_EINVAL, "tn_report_scales: r is NULL");
    r->log_x = log_x, r->log_y = log_y;
    return TN_OK;
}

tn_status tn_report_bars(tn_report *r, const char *title, int n, const char *const *names, const double *values)
{
    enum { ROW = 26, MAX = 24, WIDE = 430 };
    size_t mark;
    if (!tn__report_begin(r, "tn_report_bars", names, &mark)) return tn_error();
    if (!names || !values || n < 1)
        return tn_raise(TN_EINVAL, "tn_report_bars: n is below 1, or names or values is NULL");
    double  most = 0;
    int64_t columns = 4;
    for (int i = 0; i < n; i++) {
        if (!(values[i] >= 0) || !isfinite(values[i]))
            return tn_raise(TN_EINVAL, "tn_report_bars: value %d is negative or not finite", i);
        most = fmax(most, values[i]);
        columns = tn__report_most(columns, tn__report_least(tn__report_width(names[i]), MAX));
    }
    int left = (int)columns * 8 + 12;
    tn__report_svg(r, title, NULL, WIDE, n * ROW + 8);
    for (int i = 0; i < n; i++) {
        double length = most > 0 ? values[i] / most * (WIDE - left - 70) : 0;
        tn__report_put(r, "<text class=\"e\" x=\"%d\" y=\"%d\">", left - 8, i * ROW + 18);
        tn__report_text(r, names[i]);
        tn__report_put(r, "</text><rect x=\"%d\" y=\"%d\" width=\"%s\" height=\"%d\" rx=\"2\" fill=\"var(--c0)\"/>",
                       left, i * ROW + 4, tn__tenths(length).text, ROW - 7);
        tn__report_put(r, "<text x=\"%s\" y=\"%d\">%s</text>\n", tn__tenths(left + length + 6).text, i * ROW + 18,
                       tn__short(values[i]).text);
    }
    tn__report_put(r, "</svg></figure>\n");
    return tn__report_end(r, mark);
}

/* report_surface.c — values over a plane: as contour lines (marching squares), and as a surface in perspective. */
#include "extras/report/report_private.h"

#include <math.h>
#include <stdlib.h>

enum { SIDE = 350, EDGE = 60, RIGHT = 20, LINES = 14, LOWER = 7, MAX = 401 };

typedef struct {
    int64_t       nx, ny;
    const double *z;
    double        low, high; /* range of the drawn values, in the shown scale */
    bool          log;       /* losses grow fast: heights are log(z - least + 0.1 (median - least)) */
    double        least, soft;
} field;

static double height_at(const field *f, int64_t x, int64_t y)
{
    const double z = f->z[y * f->nx + x];
    if (!tn__is_drawn(z)) return f->high;
    return f->log ? tn__report_log(z - f->least + f->soft) : z;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The scale of heights, of these n values. False: no value can be drawn, or raised. */
static bool field_of(field *f, const double *z, size_t n)
{
    const size_t bytes = n * sizeof(double);
    double      *all = tn_mem_get(bytes);
    size_t       m = 0;
    for (size_t i = 0; all && i < n; i++)
        if (tn__is_drawn(z[i])) all[m++] = z[i];
    if (m) {
        qsort(all, m, sizeof *all, by_size);
        f->least = all[0], f->soft = 0.1 * (all[m / 2] - all[0]) + 1e-9 * (all[m - 1] - all[0]);
        f->log = f->soft > 0;
        f->low = f->log ? tn__report_log(f->soft) : all[0],
        f->high = f->log ? tn__report_log(all[m - 1] - all[0] + f->soft) : all[0] + 1;
    }
    tn_mem_put(all, bytes);
    return m > 0;
}

/* Position of the contour between two heights, as a fraction. */
static double cut(double a, double b, double at) { return a == b ? 0.5 : (at - a) / (b - a); }

/* Writes the segments, at most two, of the contour in the cell whose corner is at (x, y). */
static void put_cell(tn_report *r, const field *f, int64_t x, int64_t y, double at)
{
    static const int corner[4][2] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}};
    double           h[4], px[4], py[4];
    int              n = 0;
    for (int k = 0; k < 4; k++) h[k] = height_at(f, x + corner[k][0], y + corner[k][1]);
    for (int k = 0; k < 4; k++) { /* edges that it crosses, in order around the cell */
        const int    m = (k + 1) % 4;
        const double t = cut(h[k], h[m], at);
        if ((h[k] < at) == (h[m] < at)) continue;
        px[n] = (double)x + corner[k][0] + t * (corner[m][0] - corner[k][0]);
        py[n++] = (double)y + corner[k][1] + t * (corner[m][1] - corner[k][1]);
    }
    for (int k = 0; k + 1 < n; k += 2) {
        const double sx = (double)SIDE / (double)(f->nx - 1), sy = (double)SIDE / (double)(f->ny - 1);
        tn__report_put(r, "M%s %s", tn__tenths(EDGE + px[k] * sx).text, tn__tenths(10 + SIDE - py[k] * sy).text);
        tn__report_put(r, "L%s %s", tn__tenths(EDGE + px[k + 1] * sx).text,
                       tn__tenths(10 + SIDE - py[k + 1] * sy).text);
    }
}

/* v with three significant digits. */
static tn__number_text rounded(double v)
{
    if (!tn__is_drawn(v)) return (tn__number_text){"–"};
    const double power = v == 0 ? 1 : tn__power_of_ten(floor(log10(fabs(v))) - 2);
    return tn__short(power > 0 ? round(v / power) * power : 0);
}

static double level(const field *f, double at) { return f->log ? tn__report_math(exp, at) - f->soft + f->least : at; }

/* A level's number, at a point of it: near column x, on the side of the first row or of the last. Nothing if the level
 * crosses no line of the grid. */
static void put_level(tn_report *r, const field *f, double at, int64_t x, bool last)
{
    const int64_t edge = f->nx / 10;
    for (int64_t k = 0; k < 2 * f->nx; k++) {
        const int64_t c = x + (k % 2 ? -(k + 1) / 2 : k / 2);
        if (c < edge || c > f->nx - 1 - edge) continue;
        for (int64_t i = 0; i + 1 < f->ny; i++) {
            const int64_t y = last ? f->ny - 2 - i : i;
            const double  h = height_at(f, c, y), up = height_at(f, c, y + 1);
            const double  right = c + 1 < f->nx ? height_at(f, c + 1, y) : h;
            const bool    rises = (h < at) != (up < at);
            if (!rises && (h < at) == (right < at)) continue;
            const double px = (double)c + (rises ? 0 : cut(h, right, at)),
                         py = (double)y + (rises ? cut(h, up, at) : 0);
            tn__report_put(r, "<text class=\"m l\" x=\"%s\" y=\"%s\">%s</text>\n",
                           tn__tenths(EDGE + px * SIDE / (double)(f->nx - 1)).text,
                           tn__tenths(14 + SIDE - py * SIDE / (double)(f->ny - 1)).text, rounded(level(f, at)).text);
            return;
        }
    }
}

static void put_contours(tn_report *r, const field *f)
{
    for (int k = 1; k <= LINES; k++) {
        const double at = f->low + (f->high - f->low) * k / (LINES + 1);
        tn__report_put(r, "<path class=\"f\" stroke=\"var(--c%d)\" stroke-opacity=\"%s\" stroke-width=\"1.4\" d=\"",
                       k <= LOWER ? 0 : 1, tn__tenths(k <= LOWER ? 1 - 0.1 * (k - 1) : 0.3 + 0.1 * (k - LOWER)).text);
        for (int64_t y = 0; y + 1 < f->ny; y++)
            for (int64_t x = 0; x + 1 < f->nx; x++) put_cell(r, f, x, y, at);
        tn__report_put(r, "\"><title>%s</title></path>\n", rounded(level(f, at)).text);
    }
    for (int k = 2; k <= LINES; k += 3) /* spread, so that numbers are not on top of one another */
        put_level(r, f, f->low + (f->high - f->low) * k / (LINES + 1), f->nx * (k % 2 ? 3 : 5) / 8, k % 2 == 1);
}

/* Seen from so high above that the front, up to the highest loss, does not hide the middle. */
enum { TALL = 110, BACK = 240 };

/* The height on the page of a point; away: 0 for the front row, 1 for the last. */
static double slanted_y(const field *f, int64_t x, int64_t y)
{
    return -BACK * (double)y / (double)(f->ny - 1) - TALL * (height_at(f, x, y) - f->low) / (f->high - f->low);
}

/* Rows from back to front; each hides those farther away. top: of the highest point; bottom: of the lowest. */
static void put_slanted(tn_report *r, const field *f, double top, double bottom)
{
    const double across = (double)SIDE / (double)(f->nx - 1);
    for (int64_t y = f->ny - 1; y >= 0; y--) {
        const double away = (double)y / (double)(f->ny - 1), in = 48 * away, scale = 1 - 2 * in / SIDE;
        for (int line = 0; line < 2; line++) { /* first the area that hides, then the visible line */
            tn__report_put(r,
                           line ? "<path class=\"f\" stroke=\"var(--c0)\" stroke-opacity=\"%s\" d=\"M"
                                : "<path fill=\"var(--bg)\" fill-opacity=\"%s\" d=\"M",
                           line ? tn__tenths(1 - 0.5 * away).text : "1");
            for (int64_t x = 0; x < f->nx; x++)
                tn__report_put(r, "%s%s %s", x ? "L" : "", tn__tenths(EDGE + in + (double)x * across * scale).text,
                               tn__tenths(10 + slanted_y(f, x, y) - top).text);
            if (!line)
                tn__report_put(r, "L%s %sL%s %sz", tn__tenths(EDGE + in + SIDE * scale).text,
                               tn__tenths(12 + bottom - top).text, tn__tenths(EDGE + in).text,
                               tn__tenths(12 + bottom - top).text);
            tn__report_put(r, "\"/>\n");
        }
    }
}

/* The ends of the axes below and on the right of a slanted surface, which are parallel to its front and its side. */
static void put_slanted_scales(tn_report *r, const tn_report_plane *p, double bottom)
{
    const double x[2] = {p->x0, p->x1};
    for (int k = 0; k < 2; k++)
        tn__report_put(r, "<text class=\"d%s\" x=\"%d\" y=\"%s\">%s</text>\n", k ? " e" : "", EDGE + k * SIDE,
                       tn__tenths(bottom + 18).text, tn__short(x[k]).text);
    tn__report_put(r, "<text class=\"m\" x=\"%d\" y=\"%s\">", EDGE + SIDE / 2, tn__tenths(bottom + 18).text);
    tn__report_text(r, p->x);
    tn__report_put(r, "</text><text class=\"d e\" x=\"%d\" y=\"%s\">", EDGE + SIDE, tn__tenths(bottom + 34).text);
    if (p->y && *p->y) tn__report_text(r, p->y);
    tn__report_put(r, " %s at the front, %s at the back</text>\n", tn__short(p->y0).text, tn__short(p->y1).text);
}

static void put_scales(tn_report *r, const tn_report_plane *p)
{
    for (int k = 0; k <= 4; k++) {
        const double x = p->x0 + (p->x1 - p->x0) * k / 4, y = p->y0 + (p->y1 - p->y0) * k / 4;
        tn__report_put(r, "<text class=\"d m\" x=\"%d\" y=\"%d\">%s</text>\n", EDGE + k * SIDE / 4, SIDE + 28,
                       tn__short(x).text);
        tn__report_put(r, "<text class=\"d e\" x=\"%d\" y=\"%d\">%s</text>\n", EDGE - 6, 14 + SIDE - k * SIDE / 4,
                       tn__short(y).text);
    }
    tn__report_put(r, "<path class=\"g\" d=\"M%d 10h%dv%dh-%dz\"/><text class=\"m\" x=\"%d\" y=\"%d\">", EDGE, SIDE,
                   SIDE, SIDE, EDGE + SIDE / 2, SIDE + 46);
    tn__report_text(r, p->x);
    tn__report_put(r, "</text><text class=\"m\" transform=\"translate(13 %d)rotate(-90)\">", 10 + SIDE / 2);
    tn__report_text(r, p->y);
    tn__report_put(r, "</text>\n");
}

static void put_path(tn_report *r, const tn_report_plane *p)
{
    if (p->steps < 1 || !p->path) return;
    tn__report_put(r, "<path class=\"f\" stroke=\"var(--c3)\" stroke-width=\"2\" d=\"");
    for (int64_t i = 0; i < p->steps; i++)
        tn__report_put(r, "%s%s %s", i ? "L" : "M",
                       tn__tenths(EDGE + (p->path[2 * i] - p->x0) / (p->x1 - p->x0) * SIDE).text,
                       tn__tenths(10 + SIDE - (p->path[2 * i + 1] - p->y0) / (p->y1 - p->y0) * SIDE).text);
    tn__report_put(r, "\"/>\n");
}

tn_status tn_report_surface(tn_report *r, const char *title, const tn_report_plane *p)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_surface", p, &mark)) return tn_error();
    if (!p->z || p->nx < 2 || p->ny < 2 || p->nx > MAX || p->ny > MAX || !(p->x0 < p->x1) || !(p->y0 < p->y1) ||
        !tn__is_drawn(p->x0) || !tn__is_drawn(p->x1) || !tn__is_drawn(p->y0) || !tn__is_drawn(p->y1))
        return tn_raise(TN_EINVAL,
                        "tn_report_surface: expected .z, 2 to %d values in each direction, and increasing bounds in "
                        "-1e37 … 1e37",
                        MAX);
    field f = {.nx = p->nx, .ny = p->ny, .z = p->z};
    if (!field_of(&f, p->scale ? p->scale : p->z, (size_t)(p->scale ? p->scale_n : p->nx * p->ny)))
        return tn_raise(TN_ENUMERIC, "tn_report_surface: no value is in -1e37 … 1e37");
    char   about[128];
    double own = INFINITY, top = INFINITY, bottom = -INFINITY;
    for (int64_t i = 0; i < p->nx * p->ny; i++) {
        const double y = slanted_y(&f, i % p->nx, i / p->nx);
        if (tn__is_drawn(p->z[i])) own = fmin(own, p->z[i]);
        top = fmin(top, y), bottom = fmax(bottom, y);
    }
    snprintf(about, sizeof about, "minimum %s, maximum of the scale %s", rounded(own).text,
             rounded(level(&f, f.high)).text);
    if (p->slanted) {
        tn__report_svg(r, title, about, SIDE + EDGE + RIGHT, bottom - top + 52);
        put_slanted(r, &f, top, bottom);
        put_slanted_scales(r, p, bottom - top + 10);
    } else {
        tn__report_svg(r, title, about, SIDE + EDGE + RIGHT, SIDE + 54);
        put_scales(r, p);
        put_contours(r, &f);
        put_path(r, p);
    }
    tn__report_put(r, "</svg><small>minimum %s%s</small></figure>\n", rounded(own).text,
                   p->slanted ? "" : ", contours at equal steps of the logarithm");
    return tn__report_end(r, mark);
}

/* svg_pixels.c — what an .svg of this folder's shows, as pixels: rectangles, circles, paths of straight lines, text,
 * and groups that are moved. It knows what report_*.c writes, and nothing else: other elements are passed over. */
#include "data/report/pixels.h"
#include "data/report/report_private.h"
#include "core/base/toolbox.h"

#include <math.h>

enum { SCALE = 2, MOST_SIDE = 1 << 14, DEPTH = 16 }; /* pixels a unit; groups in groups */
#define LETTER 0.94 /* of a letter's pixel, in units: seven of them are as tall as a capital of the font */

typedef struct {
    double a, b, c, d, x, y; /* (u, v) to (a u + c v + x, b u + d v + y) */
} map;
typedef struct {
    tn__canvas canvas;
    map        at[DEPTH];
    int        depth;
    tn__place *point; /* of a path */
    int64_t    points, room;
} drawing;
typedef struct {
    tn_text name, attributes, text; /* text: what stands behind it, up to the next one */
} element;

static tn__place moved(const map *m, double u, double v)
{
    return (tn__place){m->a * u + m->c * v + m->x, m->b * u + m->d * v + m->y};
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

static bool is(tn_text a, const char *b) { return strlen(b) == a.bytes && !memcmp(a.at, b, a.bytes); }

/* The next element of the text, which goes on behind it. */
static bool next(tn_text *s, element *e)
{
    const char *at = memchr(s->at, '<', s->bytes), *end = s->at + s->bytes;
    const char *close = at ? memchr(at, '>', (size_t)(end - at)) : NULL;
    if (!close) return false;
    const char *name = at + 1, *stop = name;
    while (stop < close && (*stop == '/' ? stop == name : *stop != ' ')) stop++;
    const char *after = memchr(close, '<', (size_t)(end - close));
    e->name = (tn_text){name, (size_t)(stop - name)};
    e->attributes = (tn_text){stop, (size_t)(close - stop)};
    e->text = (tn_text){close + 1, (size_t)((after ? after : end) - close - 1)};
    *s = (tn_text){close + 1, (size_t)(end - close - 1)};
    return true;
}

/* What an attribute says, "" if it is not there. */
static tn_text said(const element *e, const char *name)
{
    const size_t n = strlen(name);
    const char  *end = e->attributes.at + e->attributes.bytes;
    for (const char *at = e->attributes.at; at + n + 3 <= end; at++) {
        if (*at != ' ' || memcmp(at + 1, name, n) != 0 || at[n + 1] != '=' || at[n + 2] != '"') continue;
        const char *from = at + n + 3, *to = memchr(from, '"', (size_t)(end - from));
        return (tn_text){from, to ? (size_t)(to - from) : 0};
    }
    return tn_text_of("");
}

/* The number at the beginning of the text, which goes on behind it and what stands between numbers. */
static double number(tn_text *s)
{
    double v = 0;
    size_t n = 0;
    while (s->bytes && (*s->at == ' ' || *s->at == ',')) s->at++, s->bytes--;
    while (n < s->bytes && n < 32 && strchr("+-.0123456789e", s->at[n]) && s->at[n]) n++;
    if (!n || !tn_parse_double(s->at, n, &v) || !(fabs(v) < 1e6)) v = 0;
    s->at += n, s->bytes -= n;
    return v;
}

static double number_of(const element *e, const char *name, double otherwise)
{
    tn_text s = said(e, name);
    return s.bytes ? number(&s) : otherwise;
}

static bool has_class(const element *e, char name)
{
    const tn_text s = said(e, "class");
    for (size_t i = 0; i < s.bytes; i++)
        if (s.at[i] == name && (!i || s.at[i - 1] == ' ') && (i + 1 == s.bytes || s.at[i + 1] == ' ')) return true;
    return false;
}

/* A colour of the page's style, by its name there: "fg", "c0". */
static uint32_t colour_named(tn_text name)
{
    const char *style = tn__report_style();
    uint32_t    v = 0;
    int         digits = 0;
    for (; *style; style++)
        if (!strncmp(style, "--", 2) && !strncmp(style + 2, name.at, name.bytes) && style[2 + name.bytes] == ':' &&
            style[3 + name.bytes] == '#')
            break;
    for (style += *style ? name.bytes + 4 : 0; *style; style++, digits++) {
        const char *digit = strchr("0123456789abcdef", *style);
        if (!digit) break;
        v = v << 4 | (uint32_t)(digit - "0123456789abcdef");
    }
    return digits == 3 ? (v >> 8) * 0x110000 + (v >> 4 & 15) * 0x1100 + (v & 15) * 0x11 : v;
}

/* False: nothing is painted. */
static bool paint_of(const element *e, const char *attribute, const char *otherwise, uint32_t *colour)
{
    tn_text s = said(e, attribute);
    if (!s.bytes) s = tn_text_of(otherwise);
    if (s.bytes > 7 && !memcmp(s.at, "var(--", 6)) s = (tn_text){s.at + 6, s.bytes - 7};
    if (is(s, "none")) return false;
    *colour = colour_named(s);
    return true;
}

static double opacity_of(const element *e, const char *attribute)
{
    return number_of(e, "opacity", 1) * number_of(e, attribute, 1);
}

/* Where an element stands in its group: translate(x y), rotate(degrees), one after the other. */
static map transformed(const map *m, tn_text s)
{
    map to = *m;
    while (s.bytes) {
        const bool shift = s.bytes > 10 && !memcmp(s.at, "translate(", 10);
        if (!shift && !(s.bytes > 7 && !memcmp(s.at, "rotate(", 7))) break;
        s.at += shift ? 10 : 7, s.bytes -= shift ? 10 : 7;
        const double u = number(&s), v = shift ? number(&s) : 0, turn = u * 3.14159265358979 / 180;
        if (shift) {
            const tn__place p = moved(&to, u, v);
            to.x = p.x, to.y = p.y;
        } else {
            const map    was = to;
            const double x = cos(turn), y = sin(turn);
            to.a = was.a * x + was.c * y, to.b = was.b * x + was.d * y;
            to.c = was.c * x - was.a * y, to.d = was.d * x - was.b * y;
        }
        while (s.bytes && (*s.at == ')' || *s.at == ' ')) s.at++, s.bytes--;
    }
    return to;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* The next letter; one that is written as &amp; or the like is one. */
static uint32_t letter(tn_text *s)
{
    static const struct {
        const char *name;
        uint32_t    point;
    } named[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&#39;", '\''}};
    size_t   n = 1;
    uint32_t c = tn__point(s->at, s->bytes, &n);
    for (size_t i = 0; c == '&' && i < sizeof named / sizeof *named; i++) {
        const size_t long_ = strlen(named[i].name);
        if (s->bytes >= long_ && !memcmp(s->at, named[i].name, long_)) c = named[i].point, n = long_;
    }
    s->at += n, s->bytes -= n;
    return c;
}

static int64_t letters(tn_text s)
{
    int64_t n = 0;
    for (; s.bytes; n++) letter(&s);
    return n;
}

/* The lit pixels of a letter, whose left end on the line is (x, y); those beside each other as one. */
static void draw_letter(drawing *d, const map *m, double x, double y, const char *rows)
{
    for (int row = 0; row < TN__GLYPH_ROWS; row++) {
        const int bits = rows[row] <= '9' ? rows[row] - '0' : rows[row] - 'a' + 10;
        for (int k = 0, run; k < TN__GLYPH_COLUMNS; k += run) {
            for (run = 1; k + run < TN__GLYPH_COLUMNS && (bits >> (4 - k - run) & 1) == (bits >> (4 - k) & 1);) run++;
            if (!(bits >> (4 - k) & 1)) continue;
            const double    left = x + k * LETTER, right = left + run * LETTER;
            const double    top = y + (row - TN__GLYPH_BASE) * LETTER, low = top + LETTER;
            const tn__place p[] = {moved(m, left, top), moved(m, right, top), moved(m, right, low),
                                   moved(m, left, low)};
            tn__canvas_polygon(&d->canvas, 4, p);
        }
    }
}

static void draw_text(drawing *d, const element *e)
{
    const map    m = transformed(&d->at[d->depth], said(e, "transform"));
    const double step = (TN__GLYPH_COLUMNS + 1) * LETTER, wide = (double)letters(e->text) * step;
    double       x = number_of(e, "x", 0) - (has_class(e, 'e') ? wide : has_class(e, 'm') ? wide / 2 : 0);
    const double y = number_of(e, "y", 0);
    for (tn_text s = e->text; s.bytes; x += step) {
        const char *rows = tn__glyph(letter(&s));
        draw_letter(d, &m, x, y, rows);
        if (said(e, "font-weight").bytes) draw_letter(d, &m, x + LETTER / 2, y, rows);
    }
    tn__canvas_paint(&d->canvas, colour_named(tn_text_of(has_class(e, 'd') ? "dim" : "fg")), 1);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static void draw_rectangle(drawing *d, const element *e)
{
    const map      *m = &d->at[d->depth];
    const double    x = number_of(e, "x", 0), y = number_of(e, "y", 0);
    const double    u = x + number_of(e, "width", 0), v = y + number_of(e, "height", 0);
    const tn__place p[] = {moved(m, x, y), moved(m, u, y), moved(m, u, v), moved(m, x, v)};
    uint32_t        colour;
    if (paint_of(e, "fill", "fg", &colour)) {
        tn__canvas_polygon(&d->canvas, 4, p);
        tn__canvas_paint(&d->canvas, colour, opacity_of(e, "fill-opacity"));
    }
    if (!paint_of(e, "stroke", "none", &colour)) return;
    for (int k = 0; k < 4; k++) tn__canvas_line(&d->canvas, p[k], p[(k + 1) % 4], SCALE);
    tn__canvas_paint(&d->canvas, colour, 1);
}

static void draw_circle(drawing *d, const element *e)
{
    uint32_t colour;
    if (!paint_of(e, "fill", "fg", &colour)) return;
    tn__canvas_disc(&d->canvas, moved(&d->at[d->depth], number_of(e, "cx", 0), number_of(e, "cy", 0)),
                    SCALE * number_of(e, "r", 0));
    tn__canvas_paint(&d->canvas, colour, opacity_of(e, "fill-opacity"));
}

static bool add_point(drawing *d, tn__place p)
{
    if (!tn__grown((void *)&d->point, &d->room, d->points + 1, sizeof *d->point)) return false;
    d->point[d->points++] = p;
    return true;
}

/* A part of a path that is drawn without lifting the pen. */
static void end_part(drawing *d, bool fills, double stroke)
{
    if (fills) tn__canvas_polygon(&d->canvas, d->points, d->point);
    for (int64_t i = 0; stroke > 0 && i + 1 < d->points; i++)
        tn__canvas_line(&d->canvas, d->point[i], d->point[i + 1], stroke);
    d->points = 0;
}

/* All parts of it: M and L with a place, H with its x, h and v with how far, z. */
static void draw_parts(drawing *d, tn_text s, bool fills, double stroke)
{
    const map *m = &d->at[d->depth];
    double     x = 0, y = 0, x0 = 0, y0 = 0;
    d->points = 0;
    while (s.bytes && tn__self.error == TN_OK) {
        const char what = *s.at;
        s.at++, s.bytes--;
        if (what == 'M') end_part(d, fills, stroke);
        if (what == 'M' || what == 'L') x = number(&s), y = number(&s);
        else if (what == 'H') x = number(&s);
        else if (what == 'h') x += number(&s);
        else if (what == 'v') y += number(&s);
        else if (what == 'z') x = x0, y = y0;
        else continue;
        if (what == 'M') x0 = x, y0 = y;
        add_point(d, moved(m, x, y));
    }
    end_part(d, fills, stroke);
}

static void draw_path(drawing *d, const element *e)
{
    uint32_t      colour;
    const tn_text lines = said(e, "d");
    if (paint_of(e, "fill", has_class(e, 'f') || has_class(e, 'g') || said(e, "stroke").bytes ? "none" : "fg",
                 &colour)) {
        draw_parts(d, lines, true, 0);
        tn__canvas_paint(&d->canvas, colour, opacity_of(e, "fill-opacity"));
    }
    if (!paint_of(e, "stroke", has_class(e, 'g') ? "line" : "none", &colour)) return;
    draw_parts(d, lines, false, SCALE * number_of(e, "stroke-width", 1));
    tn__canvas_paint(&d->canvas, colour, opacity_of(e, "stroke-opacity"));
}

/* ---- the picture ------------------------------------------------------------------------------------------------- */

static void draw(drawing *d, const element *e)
{
    if (is(e->name, "rect")) draw_rectangle(d, e);
    else if (is(e->name, "circle")) draw_circle(d, e);
    else if (is(e->name, "path")) draw_path(d, e);
    else if (is(e->name, "text")) draw_text(d, e);
    else if (is(e->name, "g") && d->depth + 1 < DEPTH) {
        const map m = transformed(&d->at[d->depth], said(e, "transform"));
        d->at[++d->depth] = m;
    } else if (is(e->name, "/g") && d->depth) d->depth--;
    else if (is(e->name, "image"))
        tn_raise(TN_EUNSUPPORTED, "a picture that holds an image is not made of pixels anew: save it as .svg");
}

tn_tensor *tn__svg_pixels(tn_text svg)
{
    element e;
    if (!next(&svg, &e) || !is(e.name, "svg")) return tn_raise(TN_EFORMAT, "this is no picture"), NULL;
    const double width = number_of(&e, "width", 0), height = number_of(&e, "height", 0);
    if (!(width >= 1 && height >= 1 && width * SCALE <= MOST_SIDE && height * SCALE <= MOST_SIDE))
        return tn_raise(TN_EUNSUPPORTED,
                        "a picture of %g by %g units is too large for pixels, %d each way: save it as .svg", width,
                        height, MOST_SIDE / SCALE),
               NULL;
    const int64_t w = SCALE * (int64_t)width, h = SCALE * (int64_t)height;
    tn_tensor    *to = tn_empty_of(TN_U8, TN_SHAPE(3, h, w));
    drawing       d = {.at = {{SCALE, 0, 0, SCALE, 0, 0}}};
    if (to && tn__canvas_open(&d.canvas, w, h, tn_data_mut(to)))
        while (tn__self.error == TN_OK && next(&svg, &e)) draw(&d, &e);
    tn__canvas_close(&d.canvas);
    tn__mem_put(d.point, (size_t)d.room * sizeof *d.point);
    return tn__self.error == TN_OK ? to : NULL;
}

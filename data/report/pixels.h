/* pixels.h — pictures as pixels: what an .svg of ours shows, for a .png. Private. */
#ifndef TENON_DATA_REPORT_PIXELS_H
#define TENON_DATA_REPORT_PIXELS_H

#include "data/text/data_private.h"

/* ---- letters (font.c) -------------------------------------------------------------------------------------------- */

enum { TN__GLYPH_COLUMNS = 5, TN__GLYPH_ROWS = 9, TN__GLYPH_BASE = 7 }; /* rows above the line */
const char *tn__glyph(uint32_t point); /* rows, digits of base 32; a hollow box for what it does not know */

/* ---- a canvas (canvas.c) ----------------------------------------------------------------------------------------- */

/* A shape is gathered as how much of each pixel it covers, then painted in one colour: so two lines of one shape are
 * not twice as dark where they cross. */
typedef struct {
    int64_t        width, height;
    unsigned char *pixels; /* [3, height, width] */
    float         *cover;
    int64_t        x0, y0, x1, y1; /* where something is covered */
} tn__canvas;
typedef struct {
    double x, y;
} tn__place;
bool tn__canvas_open(tn__canvas *c, int64_t width, int64_t height, unsigned char *pixels); /* all of them white */
void tn__canvas_close(tn__canvas *c);
void tn__canvas_line(tn__canvas *c, tn__place a, tn__place b, double width); /* with round ends */
void tn__canvas_disc(tn__canvas *c, tn__place at, double radius);
/* What lies inside, by even and odd; summed with what is covered already. */
void tn__canvas_polygon(tn__canvas *c, int64_t n, const tn__place *p);
void tn__canvas_paint(tn__canvas *c, uint32_t colour, double opacity); /* 0xrrggbb */

/* ---- a picture (svg_pixels.c) ------------------------------------------------------------------------------------ */

/* Of an <svg …> … of this folder's: u8 [3, 2 · height, 2 · width], in the colours of the light page; NULL: raised. */
tn_tensor *tn__svg_pixels(tn_text svg);

#endif

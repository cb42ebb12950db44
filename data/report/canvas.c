/* canvas.c — shapes as pixels: how much of each pixel a shape covers, and colours over what is there. */
#include "data/report/pixels.h"
#include "core/base/toolbox.h"

#include <math.h>
#include <stdlib.h>

enum { SAMPLES = 4 }; /* lines of samples in a row of pixels */

bool tn__canvas_open(tn__canvas *c, int64_t width, int64_t height, unsigned char *pixels)
{
    *c = (tn__canvas){.width = width, .height = height, .pixels = pixels, .x0 = width, .y0 = height};
    memset(pixels, 255, (size_t)(3 * width * height));
    c->cover = tn__mem_zeroed((size_t)(width * height) * sizeof *c->cover);
    return c->cover != NULL;
}

void tn__canvas_close(tn__canvas *c)
{
    if (c->cover) tn__mem_put(c->cover, (size_t)(c->width * c->height) * sizeof *c->cover);
    c->cover = NULL;
}

/* ---- what is covered --------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t x0, y0, x1, y1; /* the last ones are not in it */
} box;

/* The pixels between, those of the canvas; they count as covered from now on. */
static box touched(tn__canvas *c, double x0, double y0, double x1, double y1)
{
    box b = {0, 0, 0, 0};
    if (!(x0 < (double)c->width && y0 < (double)c->height && x1 > 0 && y1 > 0)) return b;
    b.x0 = (int64_t)fmax(floor(x0), 0), b.y0 = (int64_t)fmax(floor(y0), 0);
    b.x1 = (int64_t)fmin(ceil(x1), (double)c->width), b.y1 = (int64_t)fmin(ceil(y1), (double)c->height);
    c->x0 = tn__min_i64(c->x0, b.x0), c->y0 = tn__min_i64(c->y0, b.y0);
    c->x1 = tn__max_i64(c->x1, b.x1), c->y1 = tn__max_i64(c->y1, b.y1);
    return b;
}

/* A pixel is covered by as much as its middle lies within. */
static void cover(tn__canvas *c, int64_t x, int64_t y, double part)
{
    float *to = &c->cover[y * c->width + x];
    if (part > (double)*to) *to = (float)fmin(part, 1);
}

void tn__canvas_line(tn__canvas *c, tn__place a, tn__place b, double width)
{
    const double half = width / 2, dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy, most = fmin(width, 1);
    const double far = half + 1;
    const box in = touched(c, fmin(a.x, b.x) - far, fmin(a.y, b.y) - far, fmax(a.x, b.x) + far, fmax(a.y, b.y) + far);
    for (int64_t y = in.y0; y < in.y1; y++) {
        double low = 0, high = 1; /* which part of the line is near this row */
        if (fabs(dy) > 1e-9) {
            const double s = ((double)y + 0.5 - far - a.y) / dy, t = ((double)y + 0.5 + far - a.y) / dy;
            low = fmin(fmax(fmin(s, t), 0), 1), high = fmin(fmax(fmax(s, t), 0), 1);
        }
        const double  left = a.x + (dx < 0 ? high : low) * dx - far, right = a.x + (dx < 0 ? low : high) * dx + far;
        const int64_t from = (int64_t)fmax(left, (double)in.x0), to = (int64_t)fmin(ceil(right), (double)in.x1);
        for (int64_t x = from; x < to; x++) {
            const double px = (double)x + 0.5 - a.x, py = (double)y + 0.5 - a.y;
            const double t = length > 0 ? fmin(fmax((px * dx + py * dy) / length, 0), 1) : 0;
            const double ex = px - t * dx, ey = py - t * dy;
            cover(c, x, y, fmin(half + 0.5 - sqrt(ex * ex + ey * ey), most));
        }
    }
}

void tn__canvas_disc(tn__canvas *c, tn__place at, double radius) { tn__canvas_line(c, at, at, 2 * radius); }

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One line of samples: what lies between the first and the second crossing, the third and the fourth, ... */
static void cover_line(tn__canvas *c, float *row, int64_t n, double *cut)
{
    qsort(cut, (size_t)n, sizeof *cut, by_size);
    for (int64_t i = 0; i + 1 < n; i += 2) {
        const double from = fmin(fmax(cut[i], 0), (double)c->width), to = fmin(cut[i + 1], (double)c->width);
        for (int64_t x = (int64_t)from; from < to && (double)x < to; x++) {
            const double part = fmin(to, (double)x + 1) - fmax(from, (double)x);
            row[x] = (float)fmin((double)row[x] + part / SAMPLES, 1);
        }
    }
}

void tn__canvas_polygon(tn__canvas *c, int64_t n, const tn__place *p)
{
    double  x0 = INFINITY, y0 = INFINITY, x1 = -INFINITY, y1 = -INFINITY;
    double *cut = n > 2 ? tn__mem_get((size_t)n * sizeof *cut) : NULL;
    if (!cut) return;
    for (int64_t i = 0; i < n; i++)
        x0 = fmin(x0, p[i].x), y0 = fmin(y0, p[i].y), x1 = fmax(x1, p[i].x), y1 = fmax(y1, p[i].y);
    const box in = touched(c, x0, y0, x1, y1);
    for (int64_t s = in.y0 * SAMPLES; s < in.y1 * SAMPLES; s++) {
        const double y = ((double)s + 0.5) / SAMPLES;
        int64_t      m = 0;
        for (int64_t i = 0; i < n; i++) {
            const tn__place a = p[i], b = p[i + 1 < n ? i + 1 : 0];
            if ((a.y <= y) != (b.y <= y)) cut[m++] = a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x);
        }
        cover_line(c, &c->cover[s / SAMPLES * c->width], m, cut);
    }
    tn__mem_put(cut, (size_t)n * sizeof *cut);
}

/* ---- colours ----------------------------------------------------------------------------------------------------- */

void tn__canvas_paint(tn__canvas *c, uint32_t colour, double opacity)
{
    for (int64_t y = c->y0; y < c->y1; y++)
        for (int64_t x = c->x0; x < c->x1; x++) {
            const int64_t at = y * c->width + x;
            const double  part = (double)c->cover[at] * opacity;
            c->cover[at] = 0;
            for (int k = 0; part > 0 && k < 3; k++) {
                unsigned char *to = &c->pixels[k * c->width * c->height + at];
                const double   ink = (double)(colour >> (16 - 8 * k) & 255);
                *to = (unsigned char)((double)*to + part * (ink - (double)*to) + 0.5);
            }
        }
    c->x0 = c->width, c->y0 = c->height, c->x1 = c->y1 = 0;
}

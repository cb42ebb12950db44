/* report_images.c — images in a report, side by side, each with a caption; shades over an image can show, for
 * example, a model's attention. Images are embedded as BMP, which needs no encoder library. */
#include "extras/report/report_private.h"

#include <math.h>

enum { SIDE = 112, MAX_SIDE = 1024 }; /* pixels: longer side on the page; longest side of an image */

/* ---- base64, three bytes at a time ------------------------------------------------------------------------------- */

typedef struct {
    tn_report    *r;
    unsigned char part[3];
    int           n;
} base64;

static void put_part(base64 *b)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned    v = (unsigned)b->part[0] << 16 | (unsigned)b->part[1] << 8 | b->part[2];
    char              to[4];
    for (int i = 0; i < 4; i++) to[i] = i <= b->n ? letters[v >> (18 - 6 * i) & 63] : '=';
    tn_string_add(&b->r->body, (tn_text){to, 4});
    *b = (base64){.r = b->r};
}
static void put_byte(base64 *b, int64_t v)
{
    b->part[b->n++] = (unsigned char)v;
    if (b->n == 3) put_part(b);
}
static void put_number(base64 *b, int64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) put_byte(b, v >> (8 * i) & 255);
}

/* ---- an image ---------------------------------------------------------------------------------------------------- */

/* Pixels as blue, green, red; rows from bottom to top, padded to a multiple of 4 bytes. */
static void put_bmp(tn_report *r, const tn_tensor *image, int64_t channels, int64_t height, int64_t width)
{
    base64        b = {.r = r};
    const int64_t row = (3 * width + 3) / 4 * 4, plane = height * width;
    put_byte(&b, 'B'), put_byte(&b, 'M');
    put_number(&b, 54 + row * height, 4), put_number(&b, 0, 4), put_number(&b, 54, 4);
    put_number(&b, 40, 4), put_number(&b, width, 4), put_number(&b, height, 4);
    put_number(&b, 1, 2), put_number(&b, 24, 2);
    for (int i = 0; i < 6; i++) put_number(&b, 0, 4);
    for (int64_t y = height - 1; y >= 0; y--) {
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 2; c >= 0; c--)
                put_byte(&b, tn_get_i64(image, (channels > 2 ? c : 0) * plane + y * width + x));
        for (int64_t i = 3 * width; i < row; i++) put_byte(&b, 0);
    }
    if (b.n) put_part(&b);
}

/* Rectangles over the image; their opacity is the shade. */
static void put_shades(tn_report *r, const tn_tensor *shade, double height, double width)
{
    const int64_t rows = tn_size(shade, 0), columns = tn_size(shade, 1);
    const double  h = height / (double)rows, w = width / (double)columns;
    tn__report_put(r, "<g fill=\"var(--c1)\">");
    for (int64_t i = 0; i < rows * columns; i++) {
        const int64_t row = i / columns, column = i % columns;
        const double  v = tn_get(shade, i), part = v > 0 ? fmin(v, 1) : 0; /* NaN counts as 0 */
        if (part < 0.02) continue;
        tn__report_put(r, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" opacity=\"%s\"/>",
                       tn__tenths((double)column * w).text, tn__tenths((double)row * h).text, tn__tenths(w).text,
                       tn__tenths(h).text, tn__short(round(75 * part) / 100).text);
    }
    tn__report_put(r, "</g>");
}

static bool fits(const tn_report_image *p)
{
    char       text[192];
    const bool image = p->image && tn_dtype_of(p->image) == TN_U8 && tn_ndim(p->image) > 1 && tn_ndim(p->image) < 4 &&
                       tn_numel(p->image) > 0 && tn_size(p->image, -1) <= MAX_SIDE && tn_size(p->image, -2) <= MAX_SIDE;
    if (!image)
        return tn_raise_false(
            TN_ESHAPE,
            "tn_report_images: expected an image in u8, [H, W] or [C, H, W], at most %d pixels per side, not %s",
            MAX_SIDE, p->image ? tn_shape_text(tn_shape_of(p->image), text, sizeof text) : "NULL");
    if (!p->shade || (tn_ndim(p->shade) == 2 && tn_dtype_is_float(tn_dtype_of(p->shade)) && tn_numel(p->shade) > 0))
        return true;
    return tn_raise_false(TN_ESHAPE, "tn_report_images: expected shades of a floating dtype, [rows, columns], not %s",
                          tn_shape_text(tn_shape_of(p->shade), text, sizeof text));
}

tn_status tn_report_images(tn_report *r, const char *title, int64_t n, const tn_report_image *pictures)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_images", n > 0 ? (const void *)pictures : r, &mark)) return tn_error();
    for (int64_t i = 0; i < n; i++)
        if (!fits(&pictures[i])) return tn_error();
    tn__report_put(r, "<figure><figcaption>");
    tn__report_text(r, title);
    tn__report_put(r, "</figcaption>\n<div class=\"w\">\n");
    for (int64_t i = 0; i < n; i++) {
        const tn_report_image *p = &pictures[i];
        const int64_t          height = tn_size(p->image, -2), width = tn_size(p->image, -1);
        const double           by = (double)SIDE / (double)tn__report_most(height, width);
        const double           h = (double)height * by, w = (double)width * by;
        tn__report_figure(r, p->caption, w, h);
        tn__report_put(r, "<div class=\"i\"><svg width=\"%s\" height=\"%s\" viewBox=\"0 0 %s %s\" ", tn__tenths(w).text,
                       tn__tenths(h).text, tn__tenths(w).text, tn__tenths(h).text);
        tn__report_about(r, p->caption, NULL);
        tn__report_put(r,
                       "<image width=\"%s\" height=\"%s\" preserveAspectRatio=\"none\" href=\"data:image/bmp;base64,",
                       tn__tenths(w).text, tn__tenths(h).text);
        put_bmp(r, p->image, tn_ndim(p->image) == 3 ? tn_size(p->image, 0) : 1, height, width);
        tn__report_put(r, "\"/>");
        if (p->shade) put_shades(r, p->shade, h, w);
        tn__report_put(r, "</svg>");
        tn__report_text(r, p->caption);
        tn__report_put(r, "</div>\n");
    }
    tn__report_put(r, "</div></figure>\n");
    return tn__report_end(r, mark);
}

/* report_saved.c — saves a figure of a report to a file: as .svg, or rasterised to .png. */
#include "data/report/pixels.h"
#include "data/images.h"
#include "data/report/report_private.h"
#include "core/base/toolbox.h"

/* From its <svg to before its </svg>; empty: no figure. */
static tn_text last_picture(const tn_report *r)
{
    size_t found = SIZE_MAX, end;
    for (size_t at = 0; at + 5 < r->body.bytes; at++)
        if (!memcmp(r->body.at + at, "<svg ", 5)) found = at;
    if (found == SIZE_MAX) return tn_text_of("");
    for (end = found; end + 6 < r->body.bytes && memcmp(r->body.at + end, "</svg>", 6) != 0;) end++;
    return (tn_text){r->body.at + found, end - found};
}

static tn_status save_pixels(tn_text picture, const char *path)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *pixels = tn__svg_pixels(picture);
    if (pixels && tn_image_save(path, pixels) != TN_OK) pixels = NULL; /* an error is set */
    tn_scope_end(s);
    return tn__self.error;
}

tn_status tn_report_save_picture(tn_report *r, const char *path)
{
    if (tn__blocked()) return tn__self.error;
    if (!r || !path) return tn_raise(TN_EINVAL, "tn_report_save_picture: the %s is NULL", r ? "path" : "report");
    const tn_text picture = last_picture(r);
    if (!picture.bytes) return tn_raise(TN_ESTATE, "tn_report_save_picture: there is no picture in this report yet");
    const size_t n = strlen(path);
    if (n > 4 && !strcmp(path + n - 4, ".png")) return save_pixels(picture, path);
    const char *body = (const char *)memchr(picture.at, '>', picture.bytes) + 1;
    tn_string   s = {0};
    tn_string_add(&s, tn_text_of("<svg xmlns=\"http://www.w3.org/2000/svg\" "));
    tn_string_add(&s, (tn_text){picture.at + 5, (size_t)(body - picture.at) - 5});
    tn_string_add(&s, tn_text_of("\n"));
    tn_string_add(&s, tn_text_of(tn__report_style()));
    tn_string_add(&s, (tn_text){body, picture.bytes - (size_t)(body - picture.at)});
    tn_string_add(&s, tn_text_of("</svg>\n"));
    const tn_status status = tn__self.error == TN_OK ? tn_file_write(path, s.at, s.bytes) : tn__self.error;
    tn_string_free(&s);
    return status;
}

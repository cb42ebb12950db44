/* report_saved.c — saves a figure of a report as an SVG file. */
#include "extras/report/report_private.h"

enum { ROW = 24 }; /* height of the title, of the legend */

/* From its <svg to before its </svg>; empty: no figure. */
static tn_text last_figure(const tn_report *r)
{
    size_t at = r->figure_at, end;
    if (!r->width) return tn_text_of("");
    while (at + 5 < r->body.bytes && memcmp(r->body.at + at, "<svg ", 5) != 0) at++;
    if (at + 5 >= r->body.bytes) return tn_text_of("");
    for (end = r->body.bytes; end > at && (end + 6 > r->body.bytes || memcmp(r->body.at + end, "</svg>", 6) != 0);)
        end--;
    return (tn_text){r->body.at + at, end - at};
}

tn_status tn_report_save_figure(tn_report *r, const char *path)
{
    static const char who[] = "tn_report_save_figure";
    if (tn_blocked()) return tn_error();
    if (!r || !path) return tn_raise(TN_EINVAL, "%s: the %s is NULL", who, r ? "path" : "report");
    const size_t n = strlen(path);
    if (n < 4 || strcmp(path + n - 4, ".svg") != 0)
        return tn_raise(TN_EINVAL, "%s: '%s' does not end in .svg, the format of figures", who, path);
    const tn_text figure = last_figure(r);
    if (!figure.bytes) return tn_raise(TN_ESTATE, "%s: the report has no figure yet; add one first", who);
    const char *body = (const char *)memchr(figure.at, '>', figure.bytes) + 1;
    const int   legend = r->legend.bytes ? ROW : 0, top = r->figure_title.bytes ? ROW : 0;
    char        text[160];
    tn_string   s = {0};
    snprintf(text, sizeof text,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 %d %d %d\">\n", r->width,
             r->height + legend + top, -legend - top, r->width, r->height + legend + top);
    tn_string_add(&s, tn_text_of(text));
    tn_string_add(&s, tn_text_of(tn__report_style()));
    if (top) {
        snprintf(text, sizeof text, "<text x=\"8\" y=\"%d\" style=\"font-weight:600\">", -legend - 8);
        tn_string_add(&s, tn_text_of(text)), tn_string_add(&s, (tn_text){r->figure_title.at, r->figure_title.bytes});
        tn_string_add(&s, tn_text_of("</text>\n"));
    }
    tn_string_add(&s, (tn_text){r->legend.at, r->legend.bytes});
    snprintf(text, sizeof text, "<svg x=\"%d\" width=\"%d\" height=\"%d\" overflow=\"visible\">\n", r->margin,
             r->width - r->margin - TN__REPORT_RIGHT, r->height);
    if (r->margin) tn_string_add(&s, tn_text_of(text));
    tn_string_add(&s, (tn_text){body, figure.bytes - (size_t)(body - figure.at)});
    tn_string_add(&s, tn_text_of(r->margin ? "</svg>\n</svg>\n" : "</svg>\n"));
    const tn_status status = tn_error() == TN_OK ? tn_file_write(path, s.at, s.bytes) : tn_error();
    tn_string_free(&s);
    return status;
}

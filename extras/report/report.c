/* report.c — the page around a report's parts, and the parts that are text. Style and script are in report_style.c. */
#include "extras/report/report_private.h"

#include <math.h>
#include <stdarg.h>

/* ---- writing ----------------------------------------------------------------------------------------------------- */

void tn__report_put(tn_report *r, const char *fmt, ...)
{
    char    text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tn_string_add(&r->body, tn_text_of(text));
}

bool tn__is_drawn(double v) { return fabs(v) <= 1e37; }

tn__number_text tn__tenths(double v)
{
    tn__number_text x;
    if (isnan(v)) v = 0;
    long long n = v > 1e9 ? 10000000000 : v < -1e9 ? -10000000000 : (long long)(v * 10 + (v < 0 ? -0.5 : 0.5));
    long long size = n < 0 ? -n : n;
    snprintf(x.text, sizeof x.text, size % 10 ? "%s%lld.%lld" : "%s%lld", n < 0 ? "-" : "", size / 10, size % 10);
    return x;
}

tn__number_text tn__short(double v)
{
    char            text[32];
    tn__number_text x;
    tn_format_float((float)(v == 0 ? 0 : v), text); /* shortest text of the same float: no 0.30000000000000004 */
    size_t n = strlen(text);
    if (n > 2 && !memcmp(text + n - 2, ".0", 3)) text[n - 2] = 0;
    snprintf(x.text, sizeof x.text, "%.23s", text);
    return x;
}

/* The character at *at, which is moved past it; 0x110000 for a byte that is not part of a well-formed character. */
static uint32_t next_point(const char *text, size_t n, size_t *at)
{
    const size_t   from = *at;
    bool           valid = true;
    const uint32_t c = tn_utf8_next(text, n, at, &valid);
    if (valid) return c;
    *at = from + 1;
    return 0x110000;
}

/* Escapes text; invalid UTF-8 and control characters become U+FFFD. */
static void put_text(tn_string *to, const char *text)
{
    size_t n = text ? strlen(text) : 0, from = 0;
    for (size_t at = 0, next = 1; at <= n; at = next) {
        next = at;
        uint32_t    c = at < n ? next_point(text, n, &next) : (next++, 0u);
        const char *instead = c == '&'    ? "&amp;"
                              : c == '<'  ? "&lt;"
                              : c == '>'  ? "&gt;"
                              : c == '"'  ? "&quot;"
                              : c == '\'' ? "&#39;"
                              : c >= 0x110000 || c == 0xfffe || c == 0xffff || (c < ' ' && c != '\n' && c != '\t') ||
                                      (c >= 0x7f && c < 0xa0)
                                  ? "\xef\xbf\xbd"
                                  : NULL;
        if (at < n && !instead) continue;
        tn_string_add(to, (tn_text){text ? text + from : "", at - from});
        if (at < n) tn_string_add(to, tn_text_of(instead));
        from = next;
    }
}

void tn__report_text(tn_report *r, const char *text) { put_text(&r->body, text); }

int64_t tn__report_width(const char *text)
{
    int64_t width = 0;
    size_t  n = text ? strlen(text) : 0;
    for (size_t at = 0; at < n;) {
        uint32_t c = next_point(text, n, &at);
        width += c >= 0x1100 && (c < 0x1160 || (c >= 0x2e80 && c < 0x110000)) ? 2 : !(c >= 0x300 && c < 0x370);
    }
    return width;
}

bool tn__report_begin(tn_report *r, const char *who, const void *needed, size_t *mark)
{
    if (tn_blocked()) return false;
    if (!r || !needed) return tn_raise_false(TN_EINVAL, "%s: %s is NULL", who, r ? "an argument" : "r");
    *mark = r->body.bytes;
    return true;
}

tn_status tn__report_end(tn_report *r, size_t mark)
{
    if (tn_error() != TN_OK && r->body.at) r->body.bytes = mark, r->body.at[mark] = 0;
    return tn_error();
}

void tn__report_legend(tn_report *r, int k, const char *name)
{
    enum { LETTER = 7, GAP = 36, LEFT = 62 };
    char      text[128];
    const int colour = k % TN__REPORT_COLOURS, x = k ? r->legend_end : LEFT;
    tn__report_put(r, "<span class=\"k\" style=\"background:var(--c%d)\"></span>", colour);
    tn__report_text(r, name);
    snprintf(
        text, sizeof text,
        "<rect x=\"%d\" y=\"-18\" width=\"10\" height=\"10\" rx=\"2\" fill=\"var(--c%d)\"/><text x=\"%d\" y=\"-9\">", x,
        colour, x + 15);
    tn_string_add(&r->legend, tn_text_of(text));
    put_text(&r->legend, name);
    tn_string_add(&r->legend, tn_text_of("</text>\n"));
    r->legend_end = x + GAP + LETTER * (int)tn__report_least(tn__report_width(name), 100);
}

void tn__report_figure(tn_report *r, const char *title, double width, double height)
{
    r->figure_title.bytes = r->legend.bytes = 0;
    put_text(&r->figure_title, title);
    r->width = (int)fmax(width, 1), r->height = (int)fmax(height, 1), r->margin = 0, r->figure_at = r->body.bytes;
}

void tn__report_svg(tn_report *r, const char *title, const char *about, double width, double height)
{
    enum {
        SMALL = 470, /* narrower figures are side by side where the page is wide enough */
        TEXT = 272   /* for captions */
    };
    tn__report_figure(r, title, width, height);
    if (width <= SMALL)
        tn__report_put(r, "<figure class=\"n\" style=\"width:%dpx\"><figcaption>", r->width > TEXT ? r->width : TEXT);
    else tn__report_put(r, "<figure><figcaption>");
    tn__report_text(r, title);
    tn__report_put(r, "</figcaption>\n<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" style=\"min-width:%dpx\" ",
                   r->width, r->height, r->width, r->height, (r->width * 84 + 99) / 100);
    tn__report_about(r, title, about);
}

void tn__report_about(tn_report *r, const char *title, const char *about)
{
    tn__report_put(r, "role=\"%s\" aria-label=\"", r->parts ? "group" : "img");
    r->parts = false;
    tn__report_text(r, title && *title ? title : "figure");
    tn__report_put(r, about ? "\"><desc>" : "\">\n");
    if (about) tn__report_text(r, about), tn__report_put(r, "</desc>\n");
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

tn_report *tn_report_new(const char *title)
{
    if (tn_blocked()) return NULL;
    tn_report *r = tn_mem_get(sizeof *r);
    if (r && tn_string_add(&r->title, tn_text_of(title ? title : "Report")) != TN_OK) tn_report_free(r), r = NULL;
    return r;
}

void tn_report_free(tn_report *r)
{
    if (!r) return;
    tn_string_free(&r->body);
    tn_string_free(&r->page);
    tn_string_free(&r->figure_title), tn_string_free(&r->legend);
    tn_string_free(&r->title);
    tn_mem_put(r, sizeof *r);
}

const char *tn_report_html(tn_report *r, size_t *bytes)
{
    if (bytes) *bytes = 0;
    if (tn_blocked()) return NULL;
    if (!r) return tn_raise_null(TN_EINVAL, "tn_report_html: r is NULL");
    r->page.bytes = 0;
    tn__report_head(&r->page, r->scripted, r->refresh);
    tn_string_add(&r->page, tn_text_of("<title>"));
    put_text(&r->page, r->title.at);
    tn_string_add(&r->page, tn_text_of("</title>\n"));
    tn_string_add(&r->page, tn_text_of(tn__report_style()));
    tn_string_add(&r->page, tn_text_of("</head>\n<body>\n<h1>"));
    put_text(&r->page, r->title.at);
    tn_string_add(&r->page, tn_text_of("</h1>\n"));
    tn_string_add(&r->page, (tn_text){r->body.at, r->body.bytes});
    if (r->choosing) tn_string_add(&r->page, tn_text_of("</div></div>\n"));
    if (r->scripted) tn_string_add(&r->page, tn_text_of(tn__report_script()));
    tn_string_add(&r->page, tn_text_of("</body>\n</html>\n"));
    if (tn_error() != TN_OK) return NULL;
    if (bytes) *bytes = r->page.bytes;
    return r->page.at;
}

tn_status tn_report_save(tn_report *r, const char *path)
{
    size_t      bytes;
    const char *html = tn_report_html(r, &bytes);
    return html ? tn_file_write(path, html, bytes) : tn_error();
}

tn_status tn_report_refresh(tn_report *r, int seconds)
{
    if (tn_blocked()) return tn_error();
    if (!r || seconds < 0) return tn_raise(TN_EINVAL, "tn_report_refresh: %s", r ? "seconds is negative" : "r is NULL");
    r->refresh = seconds;
    return TN_OK;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static tn_status element(tn_report *r, const char *who, const char *name, const char *text)
{
    size_t mark;
    if (!tn__report_begin(r, who, text, &mark)) return tn_error();
    tn__report_put(r, "<%s>", name);
    tn__report_text(r, text);
    tn__report_put(r, "</%s>\n", name);
    return tn__report_end(r, mark);
}

tn_status tn_report_heading(tn_report *r, const char *text) { return element(r, "tn_report_heading", "h2", text); }
tn_status tn_report_paragraph(tn_report *r, const char *text) { return element(r, "tn_report_paragraph", "p", text); }
tn_status tn_report_code(tn_report *r, const char *text) { return element(r, "tn_report_code", "pre", text); }

tn_status tn_report_summary(tn_report *r, const char *value, const char *caption, int n, const char *const *names,
                            const char *const *values)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_summary", n > 0 ? (const void *)names : r, &mark)) return tn_error();
    if (n < 0 || (n && !values)) return tn_raise(TN_EINVAL, "tn_report_summary: n is negative, or values is NULL");
    tn__report_put(r, value ? "<section class=\"top\"><p><b>" : "<section class=\"top\">");
    if (value) {
        tn__report_text(r, value);
        tn__report_put(r, "</b><span>");
        tn__report_text(r, caption);
        tn__report_put(r, "</span></p>\n");
    }
    tn__report_put(r, n ? "<dl>\n" : "");
    for (int i = 0; i < n; i++) {
        if (!values[i]) continue;
        tn__report_put(r, "<dt>");
        tn__report_text(r, names[i]);
        tn__report_put(r, "</dt><dd>");
        tn__report_text(r, values[i]);
        tn__report_put(r, "</dd>\n");
    }
    tn__report_put(r, n ? "</dl></section>\n" : "</section>\n");
    return tn__report_end(r, mark);
}

static bool is_number(const char *s)
{
    size_t n = s ? strlen(s) : 0;
    double v;
    if (n && !strcmp(s, "·")) return true; /* an empty number */
    while (n && (s[n - 1] == '%' || s[n - 1] == ' ')) n--;
    return n && tn_parse_double(s, n, &v);
}

tn_status tn_report_table(tn_report *r, int columns, const char *const *names, int64_t rows, const char *const *cells)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_table", rows > 0 ? (const void *)cells : names, &mark)) return tn_error();
    if (!names || columns < 1 || rows < 0)
        return tn_raise(TN_EINVAL, "tn_report_table: expected named columns, at least one, and at least 0 rows");
    tn__report_put(r, "<figure><table>\n<tr>");
    for (int c = 0; c < columns; c++) {
        tn__report_put(r, rows > 0 && is_number(cells[c]) ? "<th class=\"n\">" : "<th>");
        tn__report_text(r, names[c]);
    }
    for (int64_t i = 0; i < rows; i++) {
        tn__report_put(r, "\n<tr>");
        for (int c = 0; c < columns; c++) {
            tn__report_put(r, is_number(cells[i * columns + c]) ? "<td class=\"n\">" : "<td>");
            tn__report_text(r, cells[i * columns + c]);
        }
    }
    tn__report_put(r, "\n</table></figure>\n");
    return tn__report_end(r, mark);
}

static bool are_numbers(int n, const tn_report_word *words)
{
    for (int i = 0; i < n; i++)
        if (isnan(words[i].probability))
            return tn_raise_false(TN_ENUMERIC, "tn_report_filled: the probability of word %d is NaN", i);
    return true;
}
static int percent(double probability) { return (int)(100 * fmin(probability, 1) + 0.5); }

tn_status tn_report_filled(tn_report *r, int n, const tn_report_word *words, int others, const tn_report_word *other)
{
    size_t mark;
    if (!tn__report_begin(r, "tn_report_filled", words, &mark)) return tn_error();
    if (n < 0 || others < 0 || (others && !other))
        return tn_raise(TN_EINVAL, "tn_report_filled: n and others must be at least 0, and other not NULL if others "
                                   "is above 0");
    if (!are_numbers(n, words) || !are_numbers(others, other)) return tn_error();
    tn__report_put(r, "<div class=\"s\">");
    for (int i = 0; i < n; i++) {
        bool       filled = words[i].probability >= 0;
        const bool line = i && words[i - 1].text && strchr(words[i - 1].text, '\n');
        if (i && !line && words[i].text && !strchr(".,;:!?)", *words[i].text)) tn__report_put(r, " ");
        if (filled) tn__report_put(r, "<b class=\"%s\">", words[i].right ? "y" : "x");
        tn__report_text(r, words[i].text);
        if (filled) tn__report_put(r, "</b>");
        if (filled && words[i].probability <= 1)
            tn__report_put(r, " <small>%d%%</small>", percent(words[i].probability));
    }
    for (int i = 0; i < others; i++) {
        tn__report_put(r, i ? " · " : "\n<small>or ");
        tn__report_put(r, other[i].right ? "<span class=\"y\">" : "<span>");
        tn__report_text(r, other[i].text);
        tn__report_put(r, "</span>");
        if (other[i].probability <= 1) tn__report_put(r, " %d%%", percent(fmax(other[i].probability, 0)));
    }
    tn__report_put(r, others ? "</small></div>\n" : "</div>\n");
    return tn__report_end(r, mark);
}

/* report.c — the page around a report's parts, and the parts that are text. */
#include "data/report/report_private.h"
#include "core/base/toolbox.h"

#include <math.h>
#include <stdarg.h>

static const char head[] =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline';img-src "
    "data:\">\n";

static const char style[] =
    "<style>\n"
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#667085;--line:#d5dae1;--card:#f6f7f9;--good:#18794e;"
    "--bad:#b42318;--c0:#2563eb;--c1:#d97706;--c2:#059669;--c3:#db2777;--c4:#7c3aed;--c5:#0891b2;--c6:#65a30d;"
    "--c7:#dc2626}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e6e9ed;--dim:#98a2b3;--line:#343a42;--card:#1d2125;"
    "--good:#4ade80;--bad:#f97066;--c0:#60a5fa;--c1:#fbbf24;--c2:#34d399;--c3:#f472b6;--c4:#a78bfa;--c5:#22d3ee;"
    "--c6:#a3e635;--c7:#f87171}}\n"
    "body{background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem}\n"
    "h1{font-size:1.7rem}h2{font-size:1.25rem;margin-top:2.2rem;border-bottom:1px solid var(--line)}\n"
    "figure{margin:1.2rem 0;overflow-x:auto}figcaption{font-weight:600;margin-bottom:.3rem}\n"
    "svg{display:block;max-width:100%;height:auto}svg text{fill:var(--fg);font:12px system-ui,sans-serif}\n"
    "svg .d{fill:var(--dim)}svg .g{stroke:var(--line);fill:none}svg .f{fill:none;stroke-linejoin:round}\n"
    "svg .e{text-anchor:end}svg .m{text-anchor:middle}svg .q:hover text{font-weight:700}\n"
    "svg .a:hover .q:not(:hover) path{opacity:.03}\n"
    "table{border-collapse:collapse}th,td{padding:.25rem .8rem;border-bottom:1px solid var(--line);text-align:left}\n"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}th{color:var(--dim);font-weight:600}\n"
    "pre{background:var(--card);padding:.8rem;overflow-x:auto;border-radius:.4rem}\n"
    ".s{background:var(--card);border-radius:.4rem;padding:.6rem .9rem;margin:.6rem 0;white-space:pre-wrap}\n"
    ".s b{border-bottom:2px solid var(--c0)}.s b.y{border-color:var(--good);color:var(--good)}\n"
    ".s b.x{border-color:var(--bad);color:var(--bad)}.s small{color:var(--dim)}\n"
    ".w{display:flex;flex-wrap:wrap;gap:.8rem}.i{font-size:.8rem;color:var(--dim);max-width:8rem}\n"
    "svg image{image-rendering:pixelated}\n"
    ".k{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin:0 .35em 0 1em}\n"
    "fieldset.t{border:0;padding:0;margin:1.6rem 0 .3rem}fieldset.t legend{padding:0;font-weight:600}\n"
    "div.t{display:flex;flex-wrap:wrap;gap:.25rem}.t input{position:absolute;opacity:0}\n"
    ".t label{background:var(--card);border-radius:.3rem;padding:.1rem .5rem;cursor:pointer}\n"
    ".t input:checked+label{background:var(--c0);color:var(--bg)}.t label:hover{text-decoration:underline}\n"
    ".t input:focus-visible+label{outline:2px solid var(--c1);outline-offset:1px}\n"
    ".t .p{display:none;order:1;width:100%}.t input:checked+label+.p{display:block}\n"
    ".w{line-height:2.6}.w span{display:inline-block;border-radius:.3rem;padding:0 .35rem;line-height:1.5;"
    "text-align:center;background:color-mix(in srgb,var(--c1) var(--s),transparent)}\n"
    ".w .y{background:color-mix(in srgb,var(--c2) var(--s),transparent)}.w small{display:block;font-size:.7rem;"
    "opacity:.85}\n"
    "@media print{body{max-width:none;margin:0}.t label{display:none}.t input:checked+label{display:inline}"
    "*{print-color-adjust:exact;-webkit-print-color-adjust:exact}h2,figcaption{break-after:avoid}"
    "figure,fieldset,tr{break-inside:avoid}figure:has(table){break-inside:auto}}\n"
    "</style>\n";

const char *tn__report_style(void) { return style; }

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

/* Escapes text; invalid UTF-8 and control characters become U+FFFD. */
static void put_text(tn_string *to, const char *text)
{
    size_t n = text ? strlen(text) : 0, from = 0, len = 1;
    for (size_t at = 0; at <= n; at += len) {
        uint32_t    c = at < n ? tn__point(text + at, n - at, &len) : 0;
        const char *instead = c == '&'    ? "&amp;"
                              : c == '<'  ? "&lt;"
                              : c == '>'  ? "&gt;"
                              : c == '"'  ? "&quot;"
                              : c == '\'' ? "&#39;"
                              : c >= 0x110000 || (c < ' ' && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0)
                                  ? "\xef\xbf\xbd"
                                  : NULL;
        if (at < n && !instead) continue;
        tn_string_add(to, (tn_text){text ? text + from : "", at - from});
        if (at < n) tn_string_add(to, tn_text_of(instead));
        from = at + len;
    }
}

void tn__report_text(tn_report *r, const char *text) { put_text(&r->body, text); }

int64_t tn__report_width(const char *text)
{
    int64_t width = 0;
    size_t  n = text ? strlen(text) : 0, len;
    for (size_t at = 0; at < n; at += len) {
        uint32_t c = tn__point(text + at, n - at, &len);
        width += c >= 0x1100 && (c < 0x1160 || (c >= 0x2e80 && c < 0x110000)) ? 2 : !(c >= 0x300 && c < 0x370);
    }
    return width;
}

bool tn__report_begin(tn_report *r, const char *who, const void *needed, size_t *mark)
{
    if (tn__blocked()) return false;
    if (!r || !needed) return tn_raise_false(TN_EINVAL, "%s: %s is NULL", who, r ? "an argument" : "r");
    *mark = r->body.bytes;
    return true;
}

tn_status tn__report_end(tn_report *r, size_t mark)
{
    if (tn__self.error != TN_OK && r->body.at) r->body.bytes = mark, r->body.at[mark] = 0;
    return tn__self.error;
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
    r->legend_end = x + GAP + LETTER * (int)tn__min_i64(tn__report_width(name), 100);
}

void tn__report_figure(tn_report *r, const char *title, double width, double height)
{
    r->figure_title.bytes = r->legend.bytes = 0;
    put_text(&r->figure_title, title);
    r->width = (int)width, r->height = (int)height;
}

void tn__report_svg(tn_report *r, const char *title, double width, double height)
{
    tn__report_figure(r, title, width, height);
    tn__report_put(r, "<figure><figcaption>");
    tn__report_text(r, title);
    tn__report_put(r, "</figcaption>\n<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\">\n", r->width,
                   r->height, r->width, r->height);
}

/* ---- the page ---------------------------------------------------------------------------------------------------- */

tn_report *tn_report_new(const char *title)
{
    if (tn__blocked()) return NULL;
    tn_report *r = tn__mem_zeroed(sizeof *r);
    if (r && !(r->title = tn__strdup(title ? title : "Report"))) tn_report_free(r), r = NULL;
    return r;
}

void tn_report_free(tn_report *r)
{
    if (!r) return;
    tn_string_free(&r->body);
    tn_string_free(&r->page);
    tn_string_free(&r->figure_title), tn_string_free(&r->legend);
    tn__strfree(r->title);
    tn__mem_put(r, sizeof *r);
}

const char *tn_report_html(tn_report *r, size_t *bytes)
{
    if (tn__blocked()) return NULL;
    if (!r) return tn_raise_null(TN_EINVAL, "tn_report_html: r is NULL");
    r->page.bytes = 0;
    tn_string_add(&r->page, tn_text_of(head));
    tn_string_add(&r->page, tn_text_of("<title>"));
    put_text(&r->page, r->title);
    tn_string_add(&r->page, tn_text_of("</title>\n"));
    tn_string_add(&r->page, tn_text_of(style));
    tn_string_add(&r->page, tn_text_of("</head>\n<body>\n<h1>"));
    put_text(&r->page, r->title);
    tn_string_add(&r->page, tn_text_of("</h1>\n"));
    tn_string_add(&r->page, (tn_text){r->body.at, r->body.bytes});
    tn_string_add(&r->page, tn_text_of(r->choosing ? "</div></div>\n</body>\n</html>\n" : "</body>\n</html>\n"));
    if (tn__self.error != TN_OK) return NULL;
    if (bytes) *bytes = r->page.bytes;
    return r->page.at;
}

tn_status tn_report_save(tn_report *r, const char *path)
{
    size_t      bytes;
    const char *html = tn_report_html(r, &bytes);
    return html ? tn_file_write(path, html, bytes) : tn__self.error;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static tn_status element(tn_report *r, const char *who, const char *name, const char *text)
{
    size_t mark;
    if (!tn__report_begin(r, who, text, &mark)) return tn__self.error;
    tn__report_put(r, "<%s>", name);
    tn__report_text(r, text);
    tn__report_put(r, "</%s>\n", name);
    return tn__report_end(r, mark);
}

tn_status tn_report_heading(tn_report *r, const char *text) { return element(r, "tn_report_heading", "h2", text); }
tn_status tn_report_paragraph(tn_report *r, const char *text) { return element(r, "tn_report_paragraph", "p", text); }
tn_status tn_report_code(tn_report *r, const char *text) { return element(r, "tn_report_code", "pre", text); }

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
    if (!tn__report_begin(r, "tn_report_table", rows > 0 ? (const void *)cells : names, &mark)) return tn__self.error;
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
    if (!tn__report_begin(r, "tn_report_filled", words, &mark)) return tn__self.error;
    if (n < 0 || others < 0 || (others && !other))
        return tn_raise(TN_EINVAL, "tn_report_filled: n and others must be at least 0, and other not NULL if others "
                                   "is above 0");
    if (!are_numbers(n, words) || !are_numbers(others, other)) return tn__self.error;
    tn__report_put(r, "<div class=\"s\">");
    for (int i = 0; i < n; i++) {
        bool filled = words[i].probability >= 0;
        if (i && words[i].text && !strchr(".,;:!?)", *words[i].text)) tn__report_put(r, " ");
        if (filled) tn__report_put(r, "<b class=\"%s\">", words[i].right ? "y" : "x");
        tn__report_text(r, words[i].text);
        if (filled) tn__report_put(r, "</b> <small>%d%%</small>", percent(words[i].probability));
    }
    for (int i = 0; i < others; i++) {
        tn__report_put(r, i ? " · " : "\n<small>or ");
        tn__report_text(r, other[i].text);
        tn__report_put(r, " %d%%", percent(fmax(other[i].probability, 0)));
    }
    tn__report_put(r, others ? "</small></div>\n" : "</div>\n");
    return tn__report_end(r, mark);
}

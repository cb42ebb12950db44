/* test_report.c — reports: well-formed, deterministic, safe for any text; failing memory. With TENON_TEST_REPORT set to
 * a path, writes the sample there for viewing. */
#include "tests/common/check_main.h"

#include "core/base/checksums.h"
#include "extras.h"
#include "tests/common/faults.h"
#include <locale.h>

/* Every tag is closed, quotes are balanced, and only the report's own markup is in angle brackets. */
static void well_formed(const char *html)
{
    char                     open[64][16];
    int                      depth = 0;
    static const char *const single[] = {"!doctype", "meta", "rect", "path", "circle", "image",
                                         "tr",       "th",   "td",   "line", "input"};
    for (const char *p = html; (p = strchr(p, '<')); p++) {
        char        name[16] = "";
        bool        closing = p[1] == '/', alone = false;
        const char *from = p + 1 + closing, *end = strchr(p, '>');
        ck_assert_ptr_nonnull(end);
        size_t n = strcspn(from, " >\n/");
        ck_assert_msg(n < sizeof name, "%.40s", p);
        memcpy(name, from, n);
        for (size_t i = 0; i < sizeof single / sizeof *single; i++) alone = alone || !strcmp(name, single[i]);
        int quotes = 0;
        for (const char *q = p; q < end; q++) quotes += *q == '"';
        ck_assert_msg(quotes % 2 == 0 && !memchr(p + 1, '<', (size_t)(end - p - 1)), "%.60s", p);
        if (alone) continue;
        if (!closing) {
            ck_assert_int_lt(depth, 64);
            memcpy(open[depth++], name, sizeof name);
        } else {
            ck_assert_msg(depth > 0 && !strcmp(open[--depth], name), "%.60s closes %s", p, open[depth]);
        }
    }
    ck_assert_int_eq(depth, 0);
    ck_assert(tn_utf8_valid(html, strlen(html)) == strlen(html));
    const char *script = strstr(html, "<script");
    ck_assert(!script ||
              (!strncmp(script, "<script>", 8) && !strstr(script + 1, "<script"))); /* its own, and only one */
    ck_assert_ptr_null(strstr(html, "http:"));
    ck_assert_ptr_null(strstr(html, "https:"));
}

static void sample(tn_report *r)
{
    enum { N = 3000 };
    static const char *const words[] = {"[CLS]", "the", "keys", "to",    "the", "cabinet",
                                        "are",   "on",  "the",  "table", ".",   "[SEP]"};
    static const char *const source[] = {"ein", "kleiner", "Hund", "läuft", "."}, *const target[] = {
                                                                                      "a",  "little",  "dog",
                                                                                      "is", "running", "."};
    double *x = malloc(N * sizeof *x), *loss = malloc(N * sizeof *x), *lr = malloc(N * sizeof *x),
           *valid = malloc(N * sizeof *x);
    tn_generator g = {1, 0};
    for (int i = 0; i < N; i++) {
        x[i] = i;
        loss[i] = 2 + 4 * exp(-i / 400.0) + 0.5 * (tn_random_double(&g) - 0.5);
        valid[i] = i % 250 ? NAN : 2.1 + 4 * exp(-i / 420.0);
        lr[i] = 1e-3 * (i < 300 ? i / 300.0 : (N - i) / (N - 300.0));
    }
    loss[1700] = 9;
    double vx[N / 250], vy[N / 250];
    for (int i = 0; i < N / 250; i++) vx[i] = 250 * i, vy[i] = valid[250 * i];
    tn_report_heading(r, "What was learned");
    tn_report_paragraph(r, "A model of 1,234,567 parameters was trained for 3,000 steps.");
    tn_report_table(r, 3, (const char *[]){"test", "right", "of"}, 2,
                    (const char *[]){"agreement across a distractor", "98.7%", "1000", "pronoun", "0.961", "500"});
    tn_report_curves(r, "Loss", "step", "nats a token", 2,
                     (tn_series[]){{.name = "train", .n = N, .x = x, .y = loss, .smooth = 0.98},
                                   {.name = "validation", .n = N / 250, .x = vx, .y = vy}});
    tn_report_curves(r, "Learning rate", "step", "rate", 1, &(tn_series){.name = "lr", .n = N, .x = x, .y = lr});
    tn_report_bars(r, "Accuracy", 3, (const char *[]){"agreement", "pronoun", "next sentence"},
                   (double[]){0.987, 0.961, 0.92});
    tn_report_heading(r, "Blanks filled in");
    tn_report_filled(
        r, 4,
        (tn_report_word[]){
            {"the keys to the cabinet", -1, false}, {"are", 0.93, true}, {"on the", -1, false}, {"ship", 0.41, false}},
        2, (tn_report_word[]){{"is", 0.05, false}, {"were", 0.01, false}});
    tn_scope   s = tn_scope_begin();
    tn_tensor *w = tn_zeros(TN_SHAPE(4, 4, 12, 12)), *a = tn_zeros(TN_SHAPE(5, 6));
    for (int64_t l = 0, at = 0; l < 4; l++)
        for (int64_t h = 0; h < 4; h++)
            for (int64_t i = 0; i < 12; i++) {
                double row[12], sum = 0;
                for (int64_t j = 0; j < 12; j++) {
                    int64_t aim = h == 0 ? i - 1 : h == 1 ? i + 1 : h == 2 ? 0 : (i * 5 + l) % 12;
                    sum += row[j] = exp(-0.8 * (double)llabs(j - aim)) + 0.02 * tn_random_double(&g);
                }
                for (int64_t j = 0; j < 12; j++) tn_set(w, at++, row[j] / sum);
            }
    for (int64_t i = 0; i < 5; i++)
        for (int64_t j = 0; j < 6; j++) tn_set(a, i * 6 + j, exp(-1.2 * fabs((double)j - 1.2 * (double)i)));
    tn_report_heading(r, "Attention");
    tn_report_attention(r, "the keys to the cabinet are …", 12, words, 12, words, w, 1, 3);
    tn_report_heatmap(r, "Alignment", 5, source, 6, target, a);
    double  place[24], similarity[24];
    int64_t near[24];
    for (int i = 0; i < 12; i++) {
        const int row = i / 4;
        place[2 * i] = i % 4, place[2 * i + 1] = row;
        near[2 * i] = (i + 1) % 12, near[2 * i + 1] = (i + 2) % 12, similarity[2 * i] = 0.75,
                 similarity[2 * i + 1] = 0.5;
    }
    tn_report_words(r, "Words", &(tn_report_map){12, 2, words, place, near, similarity});
    tn_tensor *grey = tn_arange_of(TN_U8, 0, 35, 1), *colour = tn_full_of(TN_U8, TN_SHAPE(3, 4, 2), 7);
    tn_report_images(r, "Images", 2,
                     (tn_report_image[]){{tn_from_data(TN_U8, TN_SHAPE(5, 7), tn_data(grey)), a, "a <number>"},
                                         {colour, NULL, "a colour"}});
    tn_scope_end(s);
    free(x), free(loss), free(lr), free(valid);
}

TEST(whole)
{
    tn_report *r = tn_report_new("A small BERT");
    sample(r);
    size_t      bytes;
    const char *html = tn_report_html(r, &bytes);
    ck_assert_msg(html, "%s", tn_error_message());
    ck_assert(strlen(html) == bytes && bytes < 400000);
    well_formed(html);
    ck_assert_ptr_nonnull(strstr(html, "prefers-color-scheme:dark"));
    const char *to = getenv("TENON_TEST_REPORT");
    ck_assert_int_eq(tn_report_save(r, to ? to : tn_test_file("report.html")), TN_OK);
    setlocale(LC_ALL, "de_DE.UTF-8"); /* no effect where it is supported */
    tn_report *again = tn_report_new("A small BERT");
    sample(again);
    ck_assert_str_eq(tn_report_html(again, NULL), tn_report_html(r, NULL));
    ck_assert(!tn_report_html(NULL, &bytes) && bytes == 0);
    tn_clear_error();
    tn_test_locale();
    tn_report_free(again);
    tn_report_free(r);
}

TEST(spikes_and_gaps)
{
    tn_report *r = tn_report_new(NULL);
    double     x[5000], y[5000];
    for (int i = 0; i < 5000; i++) x[i] = i, y[i] = i == 2500 ? 100 : i == 10 || i == 4000 ? NAN : 1;
    ck_assert_int_eq(tn_report_curves(r, "t", "x", "y", 1, &(tn_series){.name = "n", .n = 5000, .x = x, .y = y}),
                     TN_OK);
    const char *html = tn_report_html(r, NULL), *path = strstr(html, "<path class=\"f\"");
    int         moves = 0;
    for (const char *p = path; *p && *p != '>'; p++) moves += *p == 'M';
    ck_assert_int_eq(moves, 3);                 /* two gaps */
    ck_assert_ptr_nonnull(strstr(path, " 0L")); /* the spike reaches the top of the figure */
    ck_assert_uint_lt(strlen(html), 30000);
    /* no points, one point, one value, no numbers, huge values, and values that differ only in their last digit */
    double odd[][2] = {{0, 0},           {1e300, -1e300},  {1.51e308, 2.25}, {-1.7e308, 1.7e308},
                       {1e37, -1e37},    {NAN, INFINITY},  {1e-300, 2e-300}, {5e-324, 1e-323},
                       {1, 1 + 2.3e-16}, {1e16, 1e16 + 2}, {-5, -5}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (int n = 0; n <= 5; n++) { /* 3 to 5: on logarithmic scales, with a mean that is rounded to 0 */
            const tn_series s = {.n = n % 3, .x = odd[i], .y = odd[i], .smooth = n < 3 ? 0.5 : 0.9};
            tn_report_scales(r, n > 2, n > 2);
            ck_assert_int_eq(tn_report_curves(r, "", "", "", 1, &s), TN_OK);
        }
    tn_report_scales(r, false, false);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        const double          z[] = {odd[i][0], odd[i][1], odd[i][0], 1};
        const tn_report_plane plane = {.nx = 2,
                                       .ny = 2,
                                       .z = z,
                                       .x0 = -1e37,
                                       .x1 = 1e37,
                                       .y1 = 5e-324,
                                       .path = (double[]){NAN, 1},
                                       .steps = 1,
                                       .slanted = i % 2};
        ck_assert_msg(tn_report_surface(r, "", &plane) == TN_OK, "%zu: %s", i, tn_error_message());
    }
    well_formed(html = tn_report_html(r, NULL));
    const char *nan = strstr(html, "nan");
    ck_assert_msg(!strstr(html, "922337203") && !strstr(html, "2147483648") && !nan, "%.60s",
                  nan ? nan - 40 : ""); /* no number at this point, but one was drawn */
    tn_report_free(r);
}

static char *text_of(const char *path)
{
    static char text[1 << 16];
    FILE       *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

/* A saved figure has the title and the legend, which the page has around it; each picture has its caption. */
TEST(saved_figures)
{
    static const double x[] = {1, 10, 100, 1000}, y[] = {0.2, 0, 7, 40};
    const char         *path = tn_test_file("figure.svg");
    const tn_series s[] = {{.name = "train <a>", .n = 4, .x = x, .y = y}, {.name = "valid", .n = 4, .x = x, .y = y}};
    tn_report      *r = tn_report_new(NULL);
    ck_assert_int_eq(tn_report_curves(r, "Loss & more \xef\xbf\xbe\xef\xbf\xbf", "step", "nats", 2, s), TN_OK);
    ck_assert_int_eq(tn_report_save_figure(r, path), TN_OK);
    const char *svg = text_of(path);
    ck_assert_ptr_nonnull(strstr(svg, "viewBox=\"0 -48 860 368\""));
    ck_assert_ptr_nonnull(strstr(svg, ">Loss &amp; more \xef\xbf\xbd\xef\xbf\xbd</text>"));
    ck_assert_ptr_nonnull(strstr(svg, ">train &lt;a&gt;</text>"));
    ck_assert_ptr_nonnull(strstr(svg, ">valid</text>"));
    const uint8_t   grey[12] = {0};
    const tn_scope  scope = tn_scope_begin();
    tn_report_image i = {tn_from_data(TN_U8, TN_SHAPE(3, 4), grey), NULL, "a seven"};
    ck_assert_int_eq(tn_report_images(r, "Images", 1, &i), TN_OK);
    ck_assert_int_eq(tn_report_save_figure(r, path), TN_OK);
    svg = text_of(path);
    ck_assert(strstr(svg, ">a seven</text>") && !strstr(svg, "valid") && !strstr(svg, "Loss"));
    i.image = tn_zeros_of(TN_U8, TN_SHAPE(1, 1000)); /* flat */
    ck_assert(tn_report_images(r, "", 1, &i) == TN_OK && tn_report_save_figure(r, path) == TN_OK);
    ck_assert_ptr_nonnull(strstr(text_of(path), "viewBox=\"0 -24 112 25\""));
    tn_scope_end(scope);
    tn_report_free(r);
}

/* The script is in the page only if a figure needs it; its hash in the policy is that of its content. */
TEST(script_and_policy)
{
    static const double x[] = {1, 2};
    tn_report          *r = tn_report_new("x");
    ck_assert_ptr_null(strstr(tn_report_html(r, NULL), "script"));
    tn_report_curves(r, "Loss", "step", "nats", 1, &(tn_series){.name = "train", .n = 2, .x = x, .y = x});
    const char *html = tn_report_html(r, NULL), *begin = strstr(html, "<script>"), *end = strstr(html, "</script>");
    char        hex[TN__SHA256_DIGITS + 1];
    ck_assert(begin && end && strstr(html, "role=\"img\" aria-label=\"Loss\"><desc>train: from 1 at 1 to 2 at 2;"));
    tn__sha256 sum = tn__sha256_begin();
    tn__sha256_put(&sum, begin + 8, (size_t)(end - begin - 8));
    tn__sha256_end(&sum, hex);
    ck_assert_ptr_null(memchr(begin + 8, '<', (size_t)(end - begin - 8)));
    char expected[80] = ";script-src 'sha256-", *to = expected + strlen(expected);
    for (int i = 0; i < 64; i += 3) { /* base64: two letters for three hexadecimal digits; 43 letters, and = */
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const char        digits[] = {hex[i], i < 63 ? hex[i + 1] : '0', i < 63 ? hex[i + 2] : '0', 0};
        const unsigned    v = (unsigned)strtoul(digits, NULL, 16);
        *to++ = letters[v >> 6], *to++ = i < 63 ? letters[v & 63] : '=';
    }
    memcpy(to, "'", 2);
    ck_assert_msg(strstr(html, expected), "the script has changed: set `hash` of report_style.c to %s", expected + 20);
    ck_assert_int_eq(tn_report_refresh(r, 30), TN_OK);
    ck_assert_ptr_nonnull(strstr(tn_report_html(r, NULL), "http-equiv=\"refresh\" content=\"30\""));
    tn_report_refresh(r, -1);
    ck_error(TN_EINVAL, "tn_report_refresh: seconds is negative");
    tn_report_free(r);
}

/* The number comes first, before the heading of anything else; facts without a value are skipped. */
TEST(summary)
{
    tn_report *r = tn_report_new("Run");
    ck_assert_int_eq(tn_report_summary(r, "98.2 %", "accuracy <on> 500 texts", 3,
                                       (const char *[]){"command", "date", "seed"},
                                       (const char *[]){"bert train --text a&b", NULL, "1"}),
                     TN_OK);
    const char *html = tn_report_html(r, NULL);
    ck_assert_ptr_nonnull(strstr(html, "<p><b>98.2 %</b><span>accuracy &lt;on&gt; 500 texts</span></p>"));
    ck_assert_ptr_nonnull(strstr(html, "<dt>command</dt><dd>bert train --text a&amp;b</dd>\n<dt>seed</dt><dd>1</dd>"));
    ck_assert_ptr_null(strstr(html, "date"));
    well_formed(html);
    tn_report_summary(r, NULL, NULL, 1, (const char *[]){"x"}, NULL);
    ck_error(TN_EINVAL, "tn_report_summary: n is negative, or values is NULL");
    tn_report_free(r);
}

/* Every count is in the figure, right ones in another colour than wrong ones; an alternative may be the right word. */
TEST(right_and_wrong)
{
    static const char *const names[] = {"no", "yes"};
    const int64_t            counts[] = {31, 4, 0, 25};
    tn_report               *r = tn_report_new("x");
    ck_assert_int_eq(tn_report_confusion(r, "Confusion matrix", 2, names, counts), TN_OK);
    const char *html = tn_report_html(r, NULL), *cell = strstr(html, "<rect");
    static const struct {
        const char *fill, *number;
    } cells[] = {{"fill=\"var(--good)\"", ">31<"},
                 {"fill=\"var(--bad)\"", ">4<"},
                 {"fill=\"var(--card)\"", ">0<"},
                 {"fill=\"var(--good)\"", ">25<"}};
    for (int i = 0; i < 4; i++) {
        const char *fill = strstr(cell, "fill="), *number = strstr(cell, "</text>") - strlen(cells[i].number) + 1;
        ck_assert_msg(!strncmp(fill, cells[i].fill, strlen(cells[i].fill)) &&
                          !strncmp(number, cells[i].number, strlen(cells[i].number)),
                      "cell %d: %.160s", i, cell);
        cell = strstr(cell + 1, "<rect");
    }
    ck_assert_int_eq(
        tn_report_filled(r, 1, &(tn_report_word){"bad", INFINITY, false}, 1, &(tn_report_word){"good", 0.25, true}),
        TN_OK);
    html = tn_report_html(r, NULL);
    ck_assert_ptr_nonnull(strstr(html, "<b class=\"x\">bad</b>\n<small>or <span class=\"y\">good</span> 25%"));
    well_formed(html);
    tn_report_confusion(r, "t", 2, names, (int64_t[]){1, -1, 0, 0});
    ck_error(TN_EINVAL, "tn_report_confusion: count 1 is negative");
    tn_report_free(r);
}

TEST(logarithmic_scales)
{
    static const double x[] = {1, 10, 100, 100000}, y[] = {0.2, 0, 7, 40};
    const tn_series     s = {.name = "n", .n = 4, .x = x, .y = y};
    tn_report          *r = tn_report_new(NULL);
    ck_assert_int_eq(tn_report_scales(r, true, true), TN_OK);
    ck_assert_int_eq(tn_report_curves(r, "t", "x", "y", 1, &s), TN_OK);
    const char *html = tn_report_html(r, NULL);
    for (const char *const *t = (const char *const[]){"0.2", "0.5", "1", "2", "5", "10", "20", "50", NULL}; *t; t++) {
        char tick[64];
        snprintf(tick, sizeof tick, "<text class=\"d e\" x=\"-6\" y=\"");
        const char *found = NULL;
        for (const char *p = html; !found && (p = strstr(p, tick)); p++) {
            const char  *text = strchr(p, '>') + 1;
            const size_t n = strlen(*t);
            if (!strncmp(text, *t, n) && text[n] == '<') found = text;
        }
        ck_assert_msg(found, "no tick %s", *t);
    }
    ck_assert(!strstr(html, ">0</text>"));
    ck_assert_ptr_nonnull(strstr(html, "x=\"0%\" y=\"293\">1</text>"));
    ck_assert_ptr_nonnull(strstr(html, "x=\"100%\" y=\"293\">100000</text>"));
    const char *path = strstr(html, "<path class=\"f\"");
    int         moves = 0;
    for (const char *p = path; *p && *p != '>'; p++) moves += *p == 'M';
    ck_assert_int_eq(moves, 2);                          /* 0 is a gap */
    ck_assert_ptr_nonnull(strstr(path, "d=\"M0 10000")); /* 0.2 is the lowest tick */
    const double none[] = {-1, 0, NAN, 0};
    ck_assert_int_eq(tn_report_curves(r, "", "", "", 1, &(tn_series){.n = 4, .x = none, .y = none}), TN_OK);
    well_formed(tn_report_html(r, NULL));
    tn_report_scales(NULL, false, false);
    ck_error(TN_EINVAL, "tn_report_scales: r is NULL");
    tn_report_free(r);
}

TEST(texts_are_shown_never_obeyed)
{
    static const char *const nasty[] = {"</svg><script>alert(1)</script>",
                                        "\" onload=\"x",
                                        "&lt;b&gt;",
                                        "'><img src=x>",
                                        "\xff\xc3 \x01\x1b[31m",
                                        "-->",
                                        "]]>",
                                        "",
                                        "\xe2\x80\xae rtl \xf0\x9f\x98\x80"};
    enum { N = sizeof nasty / sizeof *nasty };
    tn_report     *r = tn_report_new(nasty[0]);
    double         v[N] = {1, 2, 3};
    tn_scope       s = tn_scope_begin();
    tn_tensor     *w = tn_full(TN_SHAPE(1, 1, N, N), 0.3), *a = tn_full(TN_SHAPE(N, N), NAN);
    tn_report_word words[N];
    for (int i = 0; i < N; i++) {
        words[i] = (tn_report_word){nasty[i], i % 2 ? 0.5 : -1, i % 3};
        tn_report_heading(r, nasty[i]);
        tn_report_paragraph(r, nasty[i]);
        tn_report_code(r, nasty[i]);
        tn_report_curves(r, nasty[i], nasty[i], nasty[i], 1, &(tn_series){.name = nasty[i], .n = N, .x = v, .y = v});
    }
    tn_report_table(r, 3, nasty, 3, nasty);
    tn_report_bars(r, nasty[1], N, nasty, v);
    tn_report_filled(r, N, words, N, words);
    tn_report_attention(r, nasty[0], N, nasty, N, nasty, w, 0, 0);
    tn_report_heatmap(r, nasty[0], N, nasty, N, nasty, a);
    tn_scope_end(s);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    const char *html = tn_report_html(r, NULL);
    well_formed(html);
    ck_assert_ptr_null(strstr(html, "<img"));
    ck_assert_ptr_null(strstr(html, "\x1b"));
    tn_report_free(r);
}

TEST(misuse)
{
    tn_report *r = tn_report_new("x");
    size_t     before, after;
    tn_report_html(r, &before);
    tn_report_bars(r, "t", 2, (const char *[]){"a", "b"}, (double[]){1, -1});
    ck_error(TN_EINVAL, "tn_report_bars: value 1 is negative or not finite");
    const char *w[] = {"a", "b"};
    tn_report_attention(r, "t", 2, w, 2, w, tn_ones(TN_SHAPE(1, 2, 2, 3)), 0, 0);
    ck_error(TN_ESHAPE, "tn_report_attention: weights is [1, 2, 2, 3] of dtype f32, expected a floating dtype and [1, "
                        "2, 2, 2]");
    tn_report_attention(r, "t", 2, w, 2, w, tn_ones(TN_SHAPE(1, 2, 2, 2)), 0, 2);
    ck_error(TN_EINDEX, "tn_report_attention: layer 0, head 2 of 1 layers and 2 heads, 2 words");
    tn_report_images(r, "t", 1, &(tn_report_image){.image = tn_ones(TN_SHAPE(2, 2))});
    ck_error(TN_ESHAPE, "tn_report_images: expected an image in u8, [H, W] or [C, H, W], at most 1024 pixels per "
                        "side, not [2, 2]");
    tn_tensor *image = tn_zeros_of(TN_U8, TN_SHAPE(2, 2));
    tn_report_images(r, "t", 1, &(tn_report_image){.image = image, .shade = image});
    ck_error(TN_ESHAPE, "tn_report_images: expected shades of a floating dtype, [rows, columns], not [2, 2]");
    tn_report_filled(r, 1, &(tn_report_word){"a", -1, false}, 2, (tn_report_word[]){{"b", 2, true}, {"c", NAN, false}});
    ck_error(TN_ENUMERIC, "tn_report_filled: the probability of word 1 is NaN");
    tn_report_heading(NULL, "x");
    ck_error(TN_EINVAL, "tn_report_heading: r is NULL");
    tn_report_html(r, &after);
    ck_assert_uint_eq(before, after);
    tn_report_free(r);
}

TEST(no_memory)
{
    static const char *const w[] = {"a", "b"};
    int                      failures = 0;
    tn_trim();
    tn_faulty_memory_begin();
    for (int64_t at = 0;; at++, failures++) {
        tn_fail_memory(at, false);
        tn_scope   s = tn_scope_begin();
        tn_report *r = tn_report_new("x");
        tn_tensor *t = tn_ones(TN_SHAPE(1, 1, 2, 2));
        if (r && t) {
            tn_report_paragraph(r, "a long paragraph, so that the text has to grow more than once on its way");
            tn_report_attention(r, "t", 2, w, 2, w, t, 0, 0);
        }
        const char *html = r && t ? tn_report_html(r, NULL) : NULL;
        tn_fail_memory(-1, false);
        if (html) well_formed(html);
        tn_report_free(r);
        tn_scope_end(s);
        if (html) break;
        ck_error_code(TN_ENOMEM);
    }
    tn_faulty_memory_end();
    ck_assert_int_ge(failures, 8);
}

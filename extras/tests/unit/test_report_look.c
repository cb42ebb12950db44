/* test_report_look.c — figures of a model's inside: choices without a script, paths through the layers, words by value,
 * surfaces, maps of words, and a figure saved to a file. */
#include "autograd/autograd.h"
#include "extras.h"
#include "tests/common/check_main.h"

static const char *const words[] = {"the", "</svg><script>alert(1)</script>", "it\"", "東京"};

/* Adds all of it to one report. */
static tn_report *made(void)
{
    static double   z[9 * 7];
    const double    values[] = {0.5, -0.25, NAN, 0}, path[] = {-1, -1, 0, 0.5};
    tn_report      *r = tn_report_new("look");
    tn_tensor      *w = tn_softmax(tn_sin(tn_reshape(tn_to(tn_arange(2 * 4 * 4), TN_F32), TN_SHAPE(2, 4, 4))), -1);
    tn_report_plane p = {.nx = 9, .ny = 7, .z = z, .x0 = -1, .x1 = 1, .y0 = -1, .y1 = 1, .steps = 2, .path = path};
    for (int i = 0; i < 9 * 7; i++) z[i] = (i % 9 - 4) * (i % 9 - 4) + 3 * (i / 9);
    z[5] = NAN, z[6] = INFINITY;
    for (int i = 0; i < 4; i++) {
        tn_report_choice(r, "Which word", words[i], i == 0);
        tn_report_paths(r, words[i], 4, words, w, i);
    }
    tn_report_choice_end(r);
    tn_report_values(r, "values", 4, words, values);
    tn_report_trees(r, "trees", 4, words, (const int64_t[]){1, 2, -1, 2}, (const int64_t[]){-1, 0, 0, 2});
    tn_report_surface(r, "lines", &p);
    p.slanted = true;
    tn_report_surface(r, "slanted", &p);
    fine();
    return r;
}

static int64_t count(const char *html, const char *what)
{
    int64_t n = 0;
    for (; (html = strstr(html, what)); html += strlen(what)) n++;
    return n;
}

TEST(a_page_without_a_script)
{
    tn_report  *r = made(), *again = made();
    size_t      n, m;
    const char *html = tn_report_html(r, &n), *same = tn_report_html(again, &m);
    fine();
    ck_assert(n == m && !memcmp(html, same, n)); /* the same calls produce the same bytes */
    ck_assert_int_eq(count(html, "<script"), 0);
    ck_assert_int_eq(count(html, "http"), 1); /* http-equiv */
    ck_assert_int_eq(count(html, "type=\"radio\""), 4);
    ck_assert_int_eq(count(html, " checked>"), 1);
    ck_assert_int_eq(count(html, "<div"), count(html, "</div>"));
    ck_assert_int_eq(count(html, "<svg "), count(html, "</svg>"));
    ck_assert_int_eq(count(html, "NaN") + count(html, "nan\"") + count(html, "inf"), 0);
    tn_report_free(r), tn_report_free(again);
}

TEST(a_picture_of_its_own)
{
    tn_report  *r = made();
    const char *path = tn_test_file("picture.svg");
    ck_assert(tn_report_save_figure(r, path) == TN_OK);
    tn_lines *l = tn_lines_load(path);
    fine();
    ck_assert(!strncmp(tn_lines_at(l, 0).at, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=", 46));
    ck_assert(!strncmp(tn_lines_at(l, tn_lines_count(l) - 1).at, "</svg>", 6));
    tn_lines_free(l);
    tn_report_free(r);
}

/* An arc per edge; edges of only one of two trees are dashed. */
TEST(trees_above_and_below)
{
    tn_report *r = tn_report_new("trees");
    tn_report_trees(r, "trees", 4, words, (const int64_t[]){1, 2, -1, 2}, (const int64_t[]){-1, 0, 0, 2});
    fine();
    const char *html = tn_report_html(r, NULL);
    ck_assert_int_eq(count(html, "<path class=\"f\""), 6);
    ck_assert_int_eq(count(html, "stroke-dasharray"), 2); /* 1 - 2 above, 2 - 0 below */
    ck_assert_int_eq(count(html, "stroke=\"var(--bad)\""), 2);
    tn_report_free(r);
}

/* Words of which two are at one place: both are in the page, but only the first label is shown. */
TEST(a_map_of_words)
{
    enum { N = 4 };
    const double  at[2 * N] = {0, 0, 0, 0, 1, 0, 0.5, 3}, similarity[2 * N] = {0.9, 0.5, 0.9, 0.1, 0.8, 0.5, 0.8, 0.1};
    const int64_t near[2 * N] = {1, 2, 0, 3, 3, 0, 2, -1};
    tn_report    *r = tn_report_new("map"), *none = tn_report_new("none");
    tn_report_map m = {N, 2, words, at, near, similarity};
    ck_assert_int_eq(tn_report_words(r, "Words", &m), TN_OK);
    const char *html = tn_report_html(r, NULL);
    ck_assert_int_eq(count(html, "<g class=\"b\""), N);
    ck_assert_int_eq(count(html, "<text class=\"z"), 1);
    ck_assert_ptr_nonnull(strstr(html, "data-n=\"0 0.9,2 0.5\""));
    ck_assert_ptr_nonnull(strstr(html, "data-n=\"2 0.8\"")); /* -1: no neighbour */
    ck_assert_int_eq(count(html, "<script"), 1);
    ck_assert_ptr_nonnull(strstr(html, "script-src 'sha256-"));
    ck_assert_int_eq(count(tn_report_html(none, NULL), "script"), 0); /* no figure that needs it */
    const int64_t outside[2 * N] = {N};
    m.neighbours = outside;
    tn_report_words(r, "Words", &m);
    ck_error(TN_EINDEX, "tn_report_words: neighbour 4 of 4 words");
    m.near = 0, m.n = 0;
    tn_report_words(r, "Words", &m);
    ck_error(TN_EINVAL, "tn_report_words: expected 1 to 5000 .words, .at, and .neighbours and .similarity if .near is "
                        "above 0");
    tn_report_free(r), tn_report_free(none);
}

/* A cell has room for a number if there are few, for the name of its row if most rows have one; else it is small. */
TEST(cells_of_three_sizes)
{
    enum { N = 30 };
    const char *named[N], *bare[N];
    for (int i = 0; i < N; i++) named[i] = "word", bare[i] = i ? "" : "0";
    for (int size = 0; size < 3; size++) {
        static const char *const side[] = {"width=\"25\"", "width=\"13\"", "width=\"5\""};
        const int64_t            n = size ? N : 3;
        tn_report               *r = tn_report_new("cells");
        tn_report_heatmap(r, "cells", n, size < 2 ? named : bare, n, size < 2 ? named : bare, tn_ones(TN_SHAPE(n, n)));
        ck_assert_int_eq(count(tn_report_html(r, NULL), side[size]), n * n);
        tn_report_free(r);
    }
    fine();
}

/* A box for each part in that of its owner; equal parts of a list are one box, others are not. */
TEST(a_module_box_by_box)
{
    tn_sequential  *net = tn_sequential_new();
    tn_module_list *layers = tn_append(net, tn_module_list_new());
    for (int i = 0; i < 4; i++) tn_append(layers, tn_linear_new(.in = 4, .out = i < 3 ? 4 : 5));
    tn_append(net, tn_linear_new(.in = 5, .out = 2));
    tn_report *r = tn_report_new("module");
    ck_assert_int_eq(tn_report_module(r, "Parts of <net>", net), TN_OK);
    const char *html = tn_report_html(r, NULL);
    ck_assert_int_eq(count(html, "<rect class=\"f\""), 5); /* net, the list, three layers, the fourth, the last part */
    ck_assert(count(html, "Parts of &lt;net&gt;") > 0 && !strstr(html, "<net>"));
    static const char *const shown[] = {">Sequential<", ">0: ModuleList<", ">0: Linear × 3<", ">3: Linear<",
                                        ">1: Linear<"};
    static const int         counts[] = {97, 85, 20, 25, 12}; /* of parameters; of one layer of three */
    const char              *at = html;
    for (int i = 0; i < 5; i++) {
        char number[32];
        ck_assert_msg((at = strstr(at, shown[i])) != NULL, "'%s' is missing or not in this order", shown[i]);
        snprintf(number, sizeof number, ">%d</tspan>", counts[i]);
        ck_assert_msg(strstr(at, number) && strstr(at, number) < strstr(at + 1, "</text>\n"), "%s: not %d", shown[i],
                      counts[i]);
    }
    tn_free(net);
    net = tn_sequential_new();
    for (int i = 0; i < 400; i++)
        tn_append(net, tn_linear_new(.in = 1, .out = i ? 2 : 1)); /* 401 boxes with the net's */
    tn_report_module(r, "too many", net);
    ck_error(TN_EINVAL, "tn_report_module: the module has more than 400 parts");
    ck_assert_int_eq(count(tn_report_html(r, NULL), "too many"), 0);
    tn_report_module(r, "none", NULL);
    ck_assert_int_ne(tn_error(), TN_OK);
    tn_clear_error();
    tn_free(net), tn_report_free(r);
}

/* Four figures on the scale of all of their values have the same levels; on its own, one has others. */
TEST(surfaces_on_one_scale)
{
    double both[2][25];
    char   first[2][2048];
    for (int i = 0; i < 25; i++) both[0][i] = (i % 5) * (i % 5) + 1, both[1][i] = 100 + 30 * (i % 5) + i / 5;
    for (int own = 0; own < 2; own++) {
        tn_report      *r = tn_report_new("scale");
        tn_report_plane p = {.nx = 5, .ny = 5, .x0 = -1, .x1 = 1, .y0 = -1, .y1 = 1, .z = both[0]};
        p.x = "direction 1", p.y = "direction 2", p.scale = own ? NULL : both[0], p.scale_n = 50;
        ck_assert_int_eq(tn_report_surface(r, "Contour lines", &p), TN_OK);
        const char *html = tn_report_html(r, NULL);
        ck_assert(strstr(html, ">direction 1</text>") && strstr(html, ">direction 2</text>"));
        ck_assert(count(html, "<text class=\"m l\"") >= 1 + 2 * own); /* numbers at contours */
        snprintf(first[own], sizeof first[own], "%.2000s", strstr(html, "<desc>"));
        tn_report_free(r);
    }
    ck_assert(!strncmp(first[0], "<desc>minimum 1, maximum of the scale 224", 41));
    ck_assert(!strncmp(first[1], "<desc>minimum 1, maximum of the scale 17", 40));
}

TEST(what_is_said_of_mistakes)
{
    tn_report *r = tn_report_new("look");
    tn_report_choice(r, NULL, "second", false);
    ck_error(TN_ESTATE, "tn_report_choice: no choice is open; pass first = true with the first alternative");
    tn_report_paths(r, "t", 4, words, tn_ones(TN_SHAPE(2, 4, 3)), 0);
    ck_error(TN_ESHAPE, "tn_report_paths: weights is [2, 4, 3] of dtype f32, expected a floating dtype and [layers, 4, "
                        "4]");
    tn_report_paths(r, "t", 4, words, tn_ones(TN_SHAPE(2, 4, 4)), 4);
    ck_error(TN_EINDEX, "tn_report_paths: word 4 of 4 words (at most 200) and 2 layers (1 to 128)");
    tn_report_trees(r, "t", 4, words, (const int64_t[]){1, 2, -1, 2}, (const int64_t[]){1, 2, 2, 2});
    ck_error(TN_EINDEX, "tn_report_trees: word 2 is joined to 2, expected another of 4 words or -1");
    tn_report_trees(r, "t", 0, words, (const int64_t[]){1}, (const int64_t[]){1});
    ck_error(TN_EINVAL, "tn_report_trees: expected 1 to 200 words and two trees, got 0 words");
    tn_report_values(r, "t", 4, words, NULL);
    ck_error(TN_EINVAL, "tn_report_values: n is below 1, or values is NULL");
    tn_report_surface(r, "t", &(tn_report_plane){.nx = 1, .ny = 2, .z = (double[2]){0}, .x1 = 1, .y1 = 1});
    ck_error(
        TN_EINVAL,
        "tn_report_surface: expected .z, 2 to 401 values in each direction, and increasing bounds in -1e37 … 1e37");
    double none[4] = {NAN, NAN, INFINITY, NAN};
    tn_report_surface(r, "t", &(tn_report_plane){.nx = 2, .ny = 2, .z = none, .x1 = 1, .y1 = 1});
    ck_error(TN_ENUMERIC, "tn_report_surface: no value is in -1e37 … 1e37");
    tn_report_save_figure(r, tn_test_file("none.svg"));
    ck_error(TN_ESTATE, "tn_report_save_figure: the report has no figure yet; add one first");
    tn_report_save_figure(r, "figure.png");
    ck_error(TN_EINVAL, "tn_report_save_figure: 'figure.png' does not end in .svg, the format of figures");
    tn_report_free(r);
}

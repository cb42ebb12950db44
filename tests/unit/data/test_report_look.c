/* test_report_look.c — figures of a model's inside: choices without a script, paths through the layers, words by value,
 * surfaces, and a figure saved to a file. */
#include "autograd/autograd.h"
#include "data/data.h"
#include "tests/common/check_main.h"
#include "tests/common/errors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void fine(void) { ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message()); }

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
        tn_report_choose(r, "Which word", words[i], i == 0);
        tn_report_ways(r, words[i], 4, words, w, i);
    }
    tn_report_chosen(r);
    tn_report_values(r, "values", 4, words, values);
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

START_TEST(a_page_without_a_script)
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
END_TEST

START_TEST(a_picture_of_its_own)
{
    tn_report  *r = made();
    const char *path = tn_test_file("picture.svg");
    ck_assert(tn_report_save_picture(r, path) == TN_OK);
    tn_lines *l = tn_lines_load(path);
    fine();
    ck_assert(!strncmp(tn_lines_at(l, 0).at, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=", 46));
    ck_assert(!strncmp(tn_lines_at(l, tn_lines_count(l) - 1).at, "</svg>", 6));
    tn_lines_free(l);
    tn_report_free(r);
}
END_TEST

/* The pixel at (x, y) as 0xrrggbb. */
static int64_t pixel(const tn_tensor *t, int64_t x, int64_t y)
{
    int64_t v = 0;
    for (int64_t k = 0; k < 3; k++) v = v << 8 | tn_get_i64(t, (k * tn_size(t, 1) + y) * tn_size(t, 2) + x);
    return v;
}

static int64_t dark(const tn_tensor *t, int64_t x0, int64_t y0, int64_t x1, int64_t y1)
{
    int64_t n = 0;
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++) n += (pixel(t, x, y) & 255) < 128;
    return n;
}

/* Each unit is two by two pixels. Rows start after 3 letters' width, 36, and below the columns' names, 29. */
START_TEST(a_picture_of_pixels)
{
    static const char *const name[] = {"a", "b"};
    const float              w[] = {1, 0, 0.5F, 0.25F};
    const char              *path = tn_test_file("picture.png"), *other = tn_test_file("other.png");
    tn_report               *r = tn_report_new("look");
    tn_report_heatmap(r, "shades", 2, name, 2, name, tn_from_data(TN_F32, TN_SHAPE(2, 2), w));
    fine();
    const tn_status saved = tn_report_save_picture(r, path);
    if (saved == TN_EUNSUPPORTED) { /* built without libpng */
        ck_assert_msg(strstr(tn_error_message(), "libpng") != NULL, "%s", tn_error_message());
        tn_clear_error();
        tn_report_free(r);
        return;
    }
    ck_assert(saved == TN_OK && tn_report_save_picture(r, other) == TN_OK);
    tn_tensor *t = tn_image_load(path, 0, TN_U8), *same = tn_image_load(other, 0, TN_U8);
    fine();
    ck_assert_int_eq(tn_size(t, 0), 3);
    ck_assert_int_eq(tn_size(t, 1), 2 * (29 + 2 * 26 + 4));
    ck_assert_int_eq(tn_size(t, 2), 2 * (36 + 2 * 26 + 14));
    ck_assert(tn_item(tn_sum(tn_to(tn_ne(t, same), TN_F32))) == 0);
    const int64_t x = 2 * (36 + 12), y = 2 * (29 + 12), next = 2 * 26;
    ck_assert_int_eq(pixel(t, x, y), 0x2563eb);        /* the full colour, */
    ck_assert_int_eq(pixel(t, x + next, y), 0xffffff); /* none, */
    ck_assert_int_eq(pixel(t, x, y + next), 0x92b1f5); /* a half, */
    ck_assert_int_eq(pixel(t, x + next, y + next), 0xc9d8fa);
    ck_assert(dark(t, 0, 2 * 29, 2 * 36, 2 * 55) > 20); /* and a letter next to its row */
    tn_report_free(r);
}
END_TEST

/* For all that a report draws: only titles are skipped silently, and images are rejected by an error. */
START_TEST(all_pictures_as_pixels)
{
    tn_report        *r = made();
    const char       *path = tn_test_file("all.png");
    tn_report_picture image = {.image = tn_full_of(TN_U8, TN_SHAPE(4, 4), 7), .caption = "four"};
    if (tn_report_save_picture(r, path) == TN_EUNSUPPORTED) {
        tn_clear_error();
        tn_report_free(r);
        return;
    }
    tn_tensor *t = tn_image_load(path, 0, TN_U8); /* the slanted surface */
    fine();
    int64_t blue = 0;
    for (int64_t y = 0; y < tn_size(t, 1); y++)
        for (int64_t x = 0; x < tn_size(t, 2); x++) blue += pixel(t, x, y) == 0x2563eb;
    ck_assert_int_gt(blue, 500);
    tn_report_pictures(r, "images", 1, &image);
    tn_report_save_picture(r, path);
    ck_error(TN_EUNSUPPORTED, "a picture that holds an image is not made of pixels anew: save it as .svg");
    tn_report_free(r);
}
END_TEST

START_TEST(what_is_said_of_mistakes)
{
    tn_report *r = tn_report_new("look");
    tn_report_choose(r, NULL, "second", false);
    ck_error(TN_ESTATE, "tn_report_choose: no choice is open: the first alternative comes with first = true");
    tn_report_ways(r, "t", 4, words, tn_ones(TN_SHAPE(2, 4, 3)), 0);
    ck_error(TN_ESHAPE, "tn_report_ways: weights is [2, 4, 3] of f32, expected floats of [layers, 4, 4]");
    tn_report_ways(r, "t", 4, words, tn_ones(TN_SHAPE(2, 4, 4)), 4);
    ck_error(TN_EINDEX, "tn_report_ways: word 4 of 4 words, which are at most 200, and 2 layers, at most 128");
    tn_report_values(r, "t", 4, words, NULL);
    ck_error(TN_EINVAL, "tn_report_values: give words, and a value for each");
    tn_report_surface(r, "t", &(tn_report_plane){.nx = 1, .ny = 2, .z = (double[2]){0}, .x1 = 1, .y1 = 1});
    ck_error(TN_EINVAL,
             "tn_report_surface: a surface has 2 to 401 numbers each way, and bounds that rise, from -1e37 to 1e37");
    double none[4] = {NAN, NAN, INFINITY, NAN};
    tn_report_surface(r, "t", &(tn_report_plane){.nx = 2, .ny = 2, .z = none, .x1 = 1, .y1 = 1});
    ck_error(TN_ENUMERIC, "tn_report_surface: none of the numbers can be drawn: from -1e37 to 1e37");
    tn_report_save_picture(r, tn_test_file("none.svg"));
    ck_error(TN_ESTATE, "tn_report_save_picture: there is no picture in this report yet");
    tn_report_free(r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("pictures of what is inside");
    TCase *c = tn_tcase(s, "look");
    tcase_add_test(c, a_page_without_a_script);
    tcase_add_test(c, a_picture_of_its_own);
    tcase_add_test(c, a_picture_of_pixels);
    tcase_add_test(c, all_pictures_as_pixels);
    tcase_add_test(c, what_is_said_of_mistakes);
    return tn_check_main(s);
}

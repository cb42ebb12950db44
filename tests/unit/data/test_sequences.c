/* test_sequences.c — sources for language models: windows at random positions and in order, columns, sentences with
 * their neighbours. Shards and resuming: test_source.c. */
#include "data/data.h"
#include "tests/common/check_main.h"
#include "tests/common/errors.h"
#include "tests/common/faults.h"

enum { N = 26 };
static int32_t text[N]; /* token i is 100 + i */
static void    write_text(void)
{
    for (int i = 0; i < N; i++) text[i] = 100 + i;
}
static void fine(void) { ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message()); }

/* x and y of row r are the tokens from position `at` on, and those after them. */
static void is_window(const tn_batch *b, int64_t r, int64_t at)
{
    const int64_t length = tn_size(b->x, 1);
    for (int64_t k = 0; k < length; k++) {
        ck_assert_int_eq(tn_get_i64(b->x, r * length + k), text[at + k]);
        ck_assert_int_eq(tn_get_i64(b->y, r * length + k), text[at + k + 1]);
    }
}

/* ---- windows ----------------------------------------------------------------------------------------------------- */

/* Positions come from the current generator, one draw per row. */
START_TEST(windows_at_random)
{
    tn_windows  *w = tn_windows_new(text, N, .batch = 3, .length = 5);
    tn_source    s = tn_windows_source(w);
    tn_generator g = {.seed = 7}, same = {.seed = 7}, *before = tn_use_generator(&g);
    ck_assert(s.batches == -1 && !s.begin && !s.save);
    for (int i = 0; i < 40; i++) {
        tn_batch b;
        ck_assert(tn_source_next(&s, &b));
        ck_assert(b.items == 15 && tn_size(b.x, 0) == 3);
        for (int64_t r = 0; r < 3; r++) is_window(&b, r, tn_random_below(&same, N - 5));
    }
    tn_use_generator(before);
    tn_windows_free(w);
}
END_TEST

START_TEST(windows_in_order)
{
    tn_windows *w = tn_windows_new(text, N, .batch = 2, .length = 5, .in_order = true);
    tn_source   s = tn_windows_source(w);
    tn_batch    b;
    ck_assert_int_eq(s.batches, 3); /* 25 tokens have a next one: 5 windows */
    for (int epoch = 0; epoch < 2; epoch++) {
        for (int64_t i = 0; i < 5; i += b.rows) {
            ck_assert(tn_source_next(&s, &b));
            ck_assert_int_eq(b.rows, i < 4 ? 2 : 1);
            for (int64_t r = 0; r < b.rows; r++) is_window(&b, r, 5 * (i + r));
        }
        ck_assert(!tn_source_next(&s, &b));
    }
    tn_windows_free(w);
    w = tn_windows_new(text, N, .batch = 8, .length = 5, .in_order = true, .most = 6); /* 2 of 5 windows */
    s = tn_windows_source(w);
    ck_assert(tn_source_next(&s, &b) && b.rows == 2);
    is_window(&b, 0, 0), is_window(&b, 1, 10);
    ck_assert(!tn_source_next(&s, &b));
    tn_windows_free(w);
    fine();
}
END_TEST

/* ---- columns ----------------------------------------------------------------------------------------------------- */

START_TEST(columns_side_by_side)
{
    tn_columns *c = tn_columns_new(text, 25, .batch = 2, .length = 5);
    tn_source   s = tn_columns_source(c);
    tn_batch    b;
    ck_assert_int_eq(s.batches, 3); /* 12 tokens, 11 of which have a next one: 5, 5, 1 */
    for (int64_t at = 0; at < 15; at += 5) {
        ck_assert(tn_source_next(&s, &b));
        ck_assert_int_eq(tn_size(b.x, 1), at < 10 ? 5 : 1);
        is_window(&b, 0, at), is_window(&b, 1, 12 + at);
        ck_assert((tn_batch_find(&b, "fresh") != NULL) == !at);
    }
    ck_assert(!tn_source_next(&s, &b) && tn_source_next(&s, &b) && tn_batch_find(&b, "fresh"));
    tn_columns_free(c);
}
END_TEST

/* ---- sentences --------------------------------------------------------------------------------------------------- */

/* One token per letter; "!" is rejected, other characters have no token. */
static tn_status letters_of(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    for (size_t i = 0; i < line.bytes; i++) {
        if (line.at[i] == '!') return TN_EFORMAT;
        if (line.at[i] >= 'a' && line.at[i] <= 'z' && tn_ids_add(to, line.at[i]) != TN_OK) return tn_error();
    }
    return TN_OK;
}
static const tn_encoder letters = {letters_of, NULL};
static const char      *lines_text[] = {"abc", "", "d", "-", "efghi", "jk"};
enum { LINES = sizeof lines_text / sizeof *lines_text };
static tn_text lines[LINES];
static void    write_lines(void)
{
    for (int i = 0; i < LINES; i++) lines[i] = tn_text_of(lines_text[i]);
}

/* "abc|d__|" for the rows of a tensor; 0 is "_", 1 is ".", -100 is "*". */
static const char *shown(const tn_tensor *t)
{
    static char to[256];
    size_t      n = 0;
    fine();
    for (int64_t i = 0, width = tn_size(t, 1); i < tn_numel(t); i++) {
        const int64_t v = tn_get_i64(t, i);
        to[n++] = v == 0 ? '_' : v == 1 ? '.' : v == -100 ? '*' : (char)v;
        if (i % width == width - 1) to[n++] = '|';
    }
    to[n] = 0;
    return to;
}

START_TEST(sentences_and_neighbours)
{
    static const int64_t where[] = {0, 2, 4, 5}, length[] = {3, 1, 5, 2};
    tn_sentences        *o =
        tn_sentences_new(LINES, lines, letters, .batch = 3, .in_order = true, .neighbours = true, .end = 1);
    tn_source s = tn_sentences_source(o);
    tn_batch  b;
    ck_assert_int_eq(s.batches, 2);
    for (int epoch = 0; epoch < 2; epoch++) {
        ck_assert(tn_source_next(&s, &b));
        ck_assert_str_eq(shown(b.x), "abc__|d____|efghi|");
        ck_assert_str_eq(shown(b.y), "d.****|efghi.|jk.***|");
        ck_assert_str_eq(shown(tn_batch_get(&b, "before")), "****|abc.|d.**|");
        ck_assert_int_eq(b.items, 9);
        for (int64_t r = 0; r < 3; r++) {
            ck_assert_int_eq(tn_get_i64(tn_batch_get(&b, "lengths"), r), length[r]);
            ck_assert_int_eq(tn_get_i64(tn_batch_get(&b, "index"), r), where[r]);
        }
        ck_assert(tn_source_next(&s, &b));
        ck_assert_str_eq(shown(b.x), "jk|");
        ck_assert_str_eq(shown(b.y), "*|");
        ck_assert(!tn_source_next(&s, &b));
    }
    tn_sentences_free(o);
}
END_TEST

/* Each epoch holds each sentence once, in an order that depends on the seed and the epoch. */
START_TEST(sentences_shuffled)
{
    int64_t order[3][4];
    for (int run = 0; run < 3; run++) {
        tn_sentences *o = tn_sentences_new(LINES, lines, letters, .batch = 1, .seed = run < 2 ? 3 : 4);
        tn_source     s = tn_sentences_source(o);
        tn_batch      b;
        bool          seen[LINES] = {false};
        for (int i = 0; i < 4; i++) {
            ck_assert(tn_source_next(&s, &b) && !b.y);
            order[run][i] = tn_get_i64(tn_batch_get(&b, "index"), 0);
            ck_assert(!seen[order[run][i]]);
            seen[order[run][i]] = true;
        }
        ck_assert(!tn_source_next(&s, &b));
        tn_sentences_free(o);
    }
    ck_assert(!memcmp(order[0], order[1], sizeof *order) && memcmp(order[0], order[2], sizeof *order) != 0);
}
END_TEST

/* ---- faults and mistakes ----------------------------------------------------------------------------------------- */

static double once(int kind)
{
    const tn_scope scope = tn_scope_begin();
    tn_windows    *w = kind == 0 ? tn_windows_new(text, N, .batch = 2, .length = 5, .in_order = true) : NULL;
    tn_columns    *c = kind == 1 ? tn_columns_new(text, N, .batch = 2, .length = 5) : NULL;
    tn_sentences  *o = kind == 2 ? tn_sentences_new(LINES, lines, letters, .batch = 2, .neighbours = true) : NULL;
    tn_source      s = w ? tn_windows_source(w) : c ? tn_columns_source(c) : tn_sentences_source(o);
    tn_batch       b;
    double         sum = 0;
    for (int i = 1; s.next && tn_source_next(&s, &b); i++)
        for (int64_t k = 0; k < tn_numel(b.x); k++) sum += i * tn_get(b.x, k);
    tn_windows_free(w), tn_columns_free(c), tn_sentences_free(o);
    tn_scope_end(scope);
    return sum;
}

START_TEST(no_memory) { tn_each_allocation_fails(once, _i, 1, 1, 5); }
END_TEST

/* A batch that failed is returned again, with the same random positions. */
START_TEST(the_batch_again)
{
    tn_windows  *w = tn_windows_new(text, N, .batch = 2, .length = 5);
    tn_source    s = tn_windows_source(w);
    tn_generator g = {.seed = 2}, *before = tn_use_generator(&g);
    tn_batch     b;
    tn_raise(TN_EIO, "an error");
    ck_assert(!tn_source_next(&s, &b) && g.position == 0);
    tn_clear_error();
    ck_assert(tn_source_next(&s, &b));
    tn_use_generator(before);
    tn_windows_free(w);
}
END_TEST

START_TEST(refuses)
{
    tn_batch b;
    ck_assert(!tn_windows_new(NULL, 9) && !tn_windows_source(NULL).next && !tn_sentences_source(NULL).next);
    ck_error(TN_EINVAL, "tn_windows_new: the token ids are NULL");
    ck_assert(!tn_windows_new(text, 5, .length = 5));
    ck_error(TN_EINVAL, "tn_windows_new: 5 tokens are too few for .length 5; expected at least one more than it");
    ck_assert(!tn_windows_new(text, N, .length = 5, .most = 9));
    ck_error(TN_EINVAL, "tn_windows_new: .most needs .in_order");
    ck_assert(!tn_windows_new(text, N, .length = 5, .batch = 0));
    ck_error_has(TN_EINVAL, "tn_windows_new: .batch is 0");
    ck_assert(!tn_columns_new(text, 25, .batch = 20));
    ck_error(TN_EINVAL, "tn_columns_new: 25 tokens are too few for 20 columns; use a longer text or a smaller .batch");
    ck_assert(!tn_sentences_new(LINES, lines, (tn_encoder){0}));
    ck_error(TN_EINVAL, "tn_sentences_new: the encoder is missing");
    ck_assert(!tn_sentences_new(LINES, NULL, letters));
    ck_error(TN_EINVAL, "tn_sentences_new: the lines are NULL");
    ck_assert(!tn_sentences_new(1, &lines[1], letters));
    ck_error(TN_EINVAL, "tn_sentences_new: none of 1 lines has a token");
    const tn_text bad[] = {lines[0], tn_text_of("a!")};
    ck_assert(!tn_sentences_new(2, bad, letters));
    ck_error(TN_EFORMAT, "tn_sentences_new: line 2: the encoder returned an error");

    tn_sentences *o = tn_sentences_new(LINES, lines, letters);
    tn_windows   *w = tn_windows_new(text, N, .length = 5, .in_order = true);
    tn_source     s = tn_sentences_source(o), in_order = tn_windows_source(w);
    tn_json      *at = tn_json_parse("{\"at\": 6, \"epoch\": 0}", 21);
    s.begin(s.user, at);
    ck_error(TN_EINDEX, "tn_sentences_source: the checkpoint is at sentence 6 of epoch 0, but there are 4");
    in_order.begin(in_order.user, at);
    ck_error(TN_EINDEX, "tn_windows_source: the checkpoint is at window 6, but an epoch has 5");
    ck_assert(tn_source_next(&s, &b) && tn_source_next(&in_order, &b));
    tn_json_free(at);
    tn_sentences_free(o), tn_windows_free(w);
}
END_TEST

int main(void)
{
    write_text(), write_lines();
    Suite *s = suite_create("sequences");
    TCase *c = tn_tcase(s, "batches");
    tcase_add_test(c, windows_at_random);
    tcase_add_test(c, windows_in_order);
    tcase_add_test(c, columns_side_by_side);
    tcase_add_test(c, sentences_and_neighbours);
    tcase_add_test(c, sentences_shuffled);
    c = tn_tcase(s, "mistakes");
    tcase_add_loop_test(c, no_memory, 0, 3);
    tcase_add_test(c, the_batch_again);
    tcase_add_test(c, refuses);
    return tn_check_main(s);
}

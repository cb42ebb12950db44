/* test_sequences.c — sources for language models: windows at random positions and in order, T5's spans, columns,
 * sentences with their neighbours. Shards and resuming: test_source.c. */
#include "data/data.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

enum { N = 26 };
static int32_t text[N]; /* token i is 100 + i */
static void    write_text(void)
{
    for (int i = 0; i < N; i++) text[i] = 100 + i;
}
AROUND_TESTS(write_text, NULL);

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
TEST(windows_at_random)
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

TEST(windows_in_order)
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
}

/* ---- spans: T5's corruption -------------------------------------------------------------------------------------- */

/* T5's noise_span_to_unique_sentinel, from its formulas: each run of tokens with the mark `hidden` becomes a sentinel.
 * Returns the number of tokens. */
static int64_t with_sentinels(int64_t n, const int64_t *ids, const bool *noise, bool hidden, int64_t sentinel,
                              int64_t *to)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        const bool before = i > 0 && noise[i - 1] == hidden;
        if (noise[i] == hidden && !before) to[count++] = sentinel--;
        if (noise[i] != hidden) to[count++] = ids[i];
    }
    return count;
}

TEST(sentinels_of_the_reference)
{
    static const int64_t ids[] = {10, 11, 12, 13, 14, 15}, inputs[] = {999, 12, 13, 998, 15};
    static const bool    noise[] = {true, true, false, false, true, false};
    int64_t              got[6];
    ck_assert_int_eq(with_sentinels(6, ids, noise, true, 999, got), 5);
    ck_assert(!memcmp(got, inputs, sizeof inputs));
}

/* Sizes of T5's random_spans_helper, and rows of T5's formulas for a mask whose first and last tokens are as there. */
TEST_EACH(spans_as_in_the_reference, 3)
{
    static const struct {
        int64_t length;
        double  noise, span;
        int64_t tokens, targets;
    } sizes[] = {{64, 0.2, 2, 70, 22}, {64, 0.2, 1, 63, 27}, {512, 0.15, 3, 568, 114}};
    enum { BEGIN = 0, END = 1, SENTINEL = 5000, ROWS = 4, MOST = 600 };
    static int32_t long_text[2000];
    static int64_t marks[MOST];
    const int64_t  n = sizes[_i].tokens;
    for (int32_t i = 0; i < 2000; i++) long_text[i] = 2 + i;
    tn_spans *w = tn_spans_new(long_text, 2000, .batch = ROWS, .length = sizes[_i].length, .noise = sizes[_i].noise,
                               .span = sizes[_i].span, .begin = BEGIN, .end = END, .sentinel = SENTINEL);
    tn_source s = tn_spans_source(w);
    fine();
    ck_assert(s.batches == -1 && !s.begin && !s.save);
    tn_seed(3);
    for (int batch = 0; batch < 50; batch++) {
        tn_batch b;
        ck_assert(tn_source_next(&s, &b));
        const int64_t in = tn_size(b.x, 1), out = tn_size(b.y, 1);
        ck_assert_int_eq(in, sizes[_i].length);
        ck_assert_int_eq(out, sizes[_i].targets + 1); /* with BEGIN */
        ck_assert_int_eq(b.items, ROWS * n);
        for (int64_t r = 0; r < ROWS; r++) {
            const int64_t *x = (const int64_t *)tn_data(b.x) + r * in, *y = (const int64_t *)tn_data(b.y) + r * out;
            bool           noise[MOST] = {false};
            int64_t        ids[MOST], want[MOST], first = x[0];
            ck_assert(first >= 2 && first + n <= 2002); /* a window, whose first token stays */
            for (int64_t i = 0; i < n; i++) ids[i] = first + i, noise[i] = true;
            for (int64_t i = 0; i < in; i++)
                if (x[i] > END && x[i] <= SENTINEL - 100) noise[x[i] - first] = false;
            ck_assert(noise[n - 1]);
            for (int64_t i = 0; i < n; i++) marks[i] += noise[i];
            int64_t count = with_sentinels(n, ids, noise, true, SENTINEL, want);
            want[count++] = END;
            ck_assert(count == in && !memcmp(want, x, (size_t)count * sizeof *x));
            want[0] = BEGIN, count = 1 + with_sentinels(n, ids, noise, false, SENTINEL, want + 1);
            want[count++] = END;
            ck_assert(count == out && !memcmp(want, y, (size_t)count * sizeof *y));
        }
    }
    int64_t least = 50 * ROWS, most = 0; /* spans are everywhere in the middle of a window */
    for (int64_t i = n / 4; i < n / 2; i++) least = marks[i] < least ? marks[i] : least;
    for (int64_t i = n / 4; i < n / 2; i++) most = marks[i] > most ? marks[i] : most;
    ck_assert_msg(least > 5 && most < 50 * ROWS / 2, "from %d to %d", (int)least, (int)most);
    memset(marks, 0, sizeof marks);
    tn_spans_free(w);
}

/* The two divisions are uniform: of 5 tokens that stay, in 2 parts, each first length from 1 to 4 is equally likely. */
TEST(spans_are_uniform)
{
    tn_spans *w = tn_spans_new(text, N, .batch = 1, .length = 8, .noise = 0.45, .span = 2, .end = 1, .sentinel = 99,
                               .sentinels = 9);
    tn_source s = tn_spans_source(w);
    int64_t   count[9] = {0};
    fine();
    tn_seed(1);
    for (int i = 0; i < 4000; i++) {
        const tn_scope scope = tn_scope_begin();
        tn_batch       b;
        ck_assert(tn_source_next(&s, &b));
        ck_assert(tn_size(b.x, 1) == 8 && tn_size(b.y, 1) == 8); /* 9 tokens, 4 of them hidden */
        for (int64_t k = 0; k < 8; k++)
            if (tn_get_i64(b.x, k) == 99) count[k]++;
        tn_scope_end(scope);
    }
    for (int k = 1; k <= 4; k++) ck_assert_msg(count[k] > 880 && count[k] < 1120, "%d: %d", k, (int)count[k]);
    tn_spans_free(w);
}

/* Validation: the same windows and spans in each epoch, each window once. */
TEST(spans_in_order)
{
    tn_spans *w = tn_spans_new(text, N, .batch = 2, .length = 6, .noise = 0.2, .span = 1, .begin = 0, .end = 1,
                               .sentinel = 99, .sentinels = 9, .in_order = true, .seed = 4);
    tn_source s = tn_spans_source(w);
    tn_batch  b[2][3];
    fine();
    ck_assert_int_eq(s.batches, 3); /* 26 tokens: 5 windows of 5 */
    for (int epoch = 0; epoch < 2; epoch++) {
        tn_seed((uint64_t)epoch);
        for (int i = 0; i < 3; i++) ck_assert(tn_source_next(&s, &b[epoch][i]));
        tn_batch none;
        ck_assert(!tn_source_next(&s, &none));
    }
    for (int i = 0; i < 3; i++) {
        ck_assert(tn_same_bits(b[0][i].x, b[1][i].x) && tn_same_bits(b[0][i].y, b[1][i].y) &&
                  b[0][i].rows == (i < 2 ? 2 : 1));
        ck_assert_int_eq(tn_get_i64(b[0][i].x, 0), text[10 * i]);
    }
    tn_spans_free(w);
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

TEST(columns_side_by_side)
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
    write_text();
}
AROUND_TESTS(write_lines, NULL);

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

TEST(sentences_and_neighbours)
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

/* Each epoch holds each sentence once, in an order that depends on the seed and the epoch. */
TEST(sentences_shuffled)
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

/* ---- faults and mistakes ----------------------------------------------------------------------------------------- */

static double once(int kind)
{
    const tn_scope scope = tn_scope_begin();
    tn_windows    *w = kind == 0 ? tn_windows_new(text, N, .batch = 2, .length = 5, .in_order = true) : NULL;
    tn_columns    *c = kind == 1 ? tn_columns_new(text, N, .batch = 2, .length = 5) : NULL;
    tn_sentences  *o = kind == 2 ? tn_sentences_new(LINES, lines, letters, .batch = 2, .neighbours = true) : NULL;
    tn_spans *p = kind == 3 ? tn_spans_new(text, N, .batch = 2, .length = 6, .noise = 0.3, .end = 1, .sentinel = 99,
                                           .sentinels = 9, .in_order = true)
                            : NULL;
    tn_source s = w ? tn_windows_source(w) : c ? tn_columns_source(c) : p ? tn_spans_source(p) : tn_sentences_source(o);
    tn_batch  b;
    double    sum = 0;
    for (int i = 1; s.next && tn_source_next(&s, &b); i++)
        for (int64_t k = 0; k < tn_numel(b.x); k++) sum += i * tn_get(b.x, k);
    tn_windows_free(w), tn_columns_free(c), tn_sentences_free(o), tn_spans_free(p);
    tn_scope_end(scope);
    return sum;
}

TEST_EACH(no_memory, 4) { tn_each_allocation_fails(once, _i, 1, 1, 5); }

/* A batch that failed is returned again, with the same random positions. */
TEST(the_batch_again)
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

TEST(refuses)
{
    tn_batch b;
    ck_assert(!tn_windows_new(NULL, 9) && !tn_windows_source(NULL).next && !tn_sentences_source(NULL).next);
    ck_error(TN_EINVAL, "tn_windows_new: the token ids are NULL");
    ck_refused(tn_windows_new(text, 5, .length = 5), TN_EINVAL,
               "tn_windows_new: 5 tokens are too few for .length 5; expected at least one more than it");
    ck_refused(tn_windows_new(text, N, .length = 5, .most = 9), TN_EINVAL, "tn_windows_new: .most needs .in_order");
    ck_refused_has(tn_windows_new(text, N, .length = 5, .batch = 0), TN_EINVAL, "tn_windows_new: .batch is 0");
    ck_assert(!tn_spans_source(NULL).next && !tn_spans_new(text, N, .length = 20, .sentinel = 9));
    ck_error(TN_EINVAL, "tn_spans_new: .sentinels is 100, but must be from 1 to 10");
    ck_refused(tn_spans_new(text, N, .length = 30, .sentinel = 999), TN_EINVAL,
               "tn_spans_new: 26 tokens are too few for .length 30; expected at least 32");
    ck_refused(tn_spans_new(text, N, .length = 20, .noise = 0.4, .span = 1, .sentinel = 999, .sentinels = 7), TN_EINVAL,
               "tn_spans_new: .length 20 gives 8 spans, but there must be from 1 to .sentinels, 7");
    ck_refused(tn_spans_new(text, N, .length = 4, .noise = 0.01, .sentinel = 999), TN_EINVAL,
               "tn_spans_new: .length 4 gives 0 spans, but there must be from 1 to .sentinels, 100");
    ck_refused(tn_spans_new(text, N, .noise = 0.6, .sentinel = 999), TN_EINVAL,
               "tn_spans_new: .noise is 0.6 and .span 3, but .noise must be above 0 and at most 0.5, and .span "
               "from 1 to 1e6");
    ck_refused(tn_columns_new(text, 25, .batch = 20), TN_EINVAL,
               "tn_columns_new: 25 tokens are too few for 20 columns; use a longer text or a smaller .batch");
    ck_refused(tn_sentences_new(LINES, lines, (tn_encoder){0}), TN_EINVAL, "tn_sentences_new: the encoder is missing");
    ck_refused(tn_sentences_new(LINES, NULL, letters), TN_EINVAL, "tn_sentences_new: the lines are NULL");
    ck_refused(tn_sentences_new(1, &lines[1], letters), TN_EINVAL, "tn_sentences_new: none of 1 lines has a token");
    const tn_text bad[] = {lines[0], tn_text_of("a!")};
    ck_refused(tn_sentences_new(2, bad, letters), TN_EFORMAT,
               "tn_sentences_new: line 2: the encoder returned an error");

    tn_sentences *o = tn_sentences_new(LINES, lines, letters);
    tn_windows   *w = tn_windows_new(text, N, .length = 5, .in_order = true);
    tn_source     s = tn_sentences_source(o), in_order = tn_windows_source(w);
    tn_json      *at = tn_json_parse("{\"at\": 6, \"epoch\": 0}", 21);
    s.begin(s.user, at);
    ck_error(TN_EINDEX, "tn_sentences_source: the checkpoint is at sentence 6 of epoch 0, but there are 4");
    in_order.begin(in_order.user, at);
    ck_error(TN_EINDEX, "tn_windows_source: the checkpoint is at window 6, but an epoch has 5");
    tn_spans *p =
        tn_spans_new(text, N, .length = 6, .noise = 0.2, .span = 1, .sentinel = 99, .in_order = true, .sentinels = 9);
    const tn_source spans = tn_spans_source(p);
    spans.begin(spans.user, at);
    ck_error(TN_EINDEX, "tn_spans_source: the checkpoint is at window 6, but an epoch has 5");
    tn_spans_free(p);
    ck_assert(tn_source_next(&s, &b) && tn_source_next(&in_order, &b));
    tn_json_free(at);
    tn_sentences_free(o), tn_windows_free(w);
}

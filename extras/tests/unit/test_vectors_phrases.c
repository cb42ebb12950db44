/* test_vectors_phrases.c — joining of phrases: compared with brute-force counts, for any memory limit for pairs; and
 * files that are not text. */
#include "tests/common/check_main.h"

#include "extras.h"
#include "extras/vectors/phrases.h"

static const char *file_of(const char *name, const char *text, size_t bytes)
{
    const char *path = tn_test_file(name);
    ck_assert_int_eq(tn_file_write(path, text, bytes), TN_OK);
    return path;
}

static void holds(const char *path, const char *text)
{
    tn_tensor *t = tn_file_read(path, 1 << 22);
    ck_assert_msg(t, "%s", tn_error_message());
    ck_assert_int_eq(tn_numel(t), (int64_t)strlen(text));
    ck_assert_mem_eq(tn_data(t), text, strlen(text));
}

/* ---- brute force ------------------------------------------------------------------------------------------------- */

enum { MOST = 1500 };
static struct {
    char word[MOST][16]; /* "": end of a line */
    int  n;
} said;

static int count_of(const char *a, const char *b) /* b NULL: count of the word a */
{
    int n = 0;
    for (int i = 0; i + (b != NULL) < said.n; i++)
        n += !strcmp(said.word[i], a) && (!b || !strcmp(said.word[i + 1], b));
    return n;
}

/* The output of word2phrase; returns the number of pairs joined. */
static int joined(int min_count, double threshold, tn_string *to)
{
    int  all = 0, joins = 0;
    bool may = false; /* the previous word may be joined to this one */
    for (int i = 0; i < said.n; i++) all += *said.word[i] != 0;
    to->bytes = 0;
    for (int i = 0; i < said.n; i++) {
        const char *b = said.word[i], *a = i ? said.word[i - 1] : "";
        if (!*b) {
            tn_string_add(to, tn_text_of("\n")), may = false;
            continue;
        }
        const int    of_a = count_of(a, NULL), of_b = count_of(b, NULL);
        const double score = ((double)count_of(a, b) - min_count) / of_a / of_b * all;
        const bool   join = may && *a && of_a >= min_count && of_b >= min_count && score > threshold;
        if (*a) tn_string_add(to, tn_text_of(join ? "_" : " "));
        tn_string_add(to, tn_text_of(b));
        joins += join, may = !join;
    }
    return joins;
}

/* A text in which some words often occur together: a hundred different words, w7 often followed by w8. */
static void say(int n)
{
    uint64_t state = 5;
    int      word = 0;
    for (said.n = 0; said.n < n; said.n++) {
        const uint64_t r = tn__splitmix(state++);
        const bool     ends = r % 23 == 0 || said.n + 1 == n;
        word = word % 5 && r % 3 ? word + 1 : (int)((r >> 8) % 100 * ((r >> 32) % 100) / 100);
        *said.word[said.n] = 0;
        if (!ends) snprintf(said.word[said.n], sizeof *said.word, "w%d", word);
    }
}

TEST(as_by_brute_force)
{
    static const struct {
        int    min_count;
        double threshold;
    } asked[] = {{1, 20}, {2, 10}, {3, 5}, {5, 1}, {5, 1e6}};
    static const tn__phrases_limits limits[] = {{1000, 1 << 20, 1000}, {1000, 100, 1000}, {1000, 2, 1000}};
    tn_string                       text = {0}, expected = {0};
    say(MOST);
    for (int i = 0; i < said.n; i++) { /* all kinds of blanks, each written as one blank */
        static const char *const blank[] = {" ", "  ", "\t", " \r"};
        tn_string_add(&text, tn_text_of(*said.word[i] ? said.word[i] : "\n"));
        if (*said.word[i]) tn_string_add(&text, tn_text_of(blank[i % 4]));
    }
    const size_t half = (size_t)(strchr(text.at + text.bytes / 2, '\n') - text.at) + 1;
    const char  *paths[] = {file_of("a", text.at, half), file_of("nothing", "", 0),
                            file_of("b", text.at + half, text.bytes - half)};
    for (int k = 0; k < 5; k++) {
        const int                     n = joined(asked[k].min_count, asked[k].threshold, &expected);
        const tn_vectors_phrases_args a = {.min_count = asked[k].min_count, .threshold = asked[k].threshold};
        ck_assert_msg(k == 4 ? n == 0 : n > 20, "%d pairs of %d say little", n, said.n);
        for (int l = 0; l < 3; l++) {
            if (limits[l].pairs == 2 && k < 3) continue; /* one pass for every two pairs */
            const tn_vectors_phrased p = tn__phrases_write(3, paths, tn_test_file("out"), &a, &limits[l]);
            ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
            ck_assert_int_eq(p.joined, n);
            ck_assert_int_ge(p.joined, p.phrases);
            holds(tn_test_file("out"), expected.at);
        }
    }
    tn_string_free(&text), tn_string_free(&expected);
}

/* Joins two at a time, never across the end of a line or file; a second run joins what the first has joined. */
TEST(from_left_to_right)
{
    const char *paths[] = {file_of("a", "new york times\nnew\nyork new york times x y z", 44), tn_test_file("out")};
    const tn_vectors_phrased p = tn_vectors_phrases(1, paths, paths[1], .min_count = 1, .threshold = 1);
    holds(paths[1], "new_york times\nnew\nyork new_york times x y z\n");
    ck_assert_int_eq(p.words, 11);
    ck_assert_int_eq(p.phrases, 2); /* york times is a phrase, but york has already been joined */
    ck_assert_int_eq(p.joined, 2);
    tn_vectors_phrases(1, paths + 1, tn_test_file("again"), .min_count = 1, .threshold = 1);
    holds(tn_test_file("again"), "new_york_times\nnew\nyork new_york_times x y z\n");
    /* x y occurs once, unless line and file ends are ignored */
    const char *apart[] = {file_of("a", "x y\nx\n", 6), file_of("b", "y x", 3), file_of("c", "y", 1)};
    ck_assert_int_eq(tn_vectors_phrases(3, apart, paths[1], .min_count = 1, .threshold = 0).joined, 0);
    holds(paths[1], "x y\nx\ny x\ny\n");
}

/* Words of more than 255 bytes are unchanged, and no joined word becomes longer. */
TEST(long_words)
{
    tn_string text = {0};
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 128; k++) tn_string_add(&text, tn_text_of("l"));
        tn_string_add(&text, tn_text_of(" "));
        for (int k = 0; k < (i < 4 ? 127 : 300); k++) tn_string_add(&text, tn_text_of("m"));
        tn_string_add(&text, tn_text_of("\na b\n"));
    }
    const char *path = file_of("long", text.at, text.bytes);
    ck_assert_int_eq(tn_vectors_phrases(1, &path, tn_test_file("out"), .min_count = 1, .threshold = 0).joined, 8);
    for (char *p = text.at; (p = strstr(p, "a b"));) p[1] = '_';
    holds(tn_test_file("out"), text.at);
    tn_string_free(&text);
}

static void refused(const char *text, size_t bytes, tn_status status, const char *why)
{
    const char *path = file_of("text", text, bytes);
    remove(tn_test_file("never"));
    tn_vectors_phrases(1, &path, tn_test_file("never"));
    ck_error_has(status, why);
    ck_assert(!tn__file_exists(tn_test_file("never")));
}

TEST(what_is_no_text)
{
    refused("", 0, TN_EFORMAT, "no words found");
    refused(" \n\n ", 4, TN_EFORMAT, "no words found");
    refused("one two\0three", 13, TN_EFORMAT, "byte 7 is NUL; expected text in UTF-8");
    tn_string big = {0};
    for (int i = 0; i < 1 << 17; i++) tn_string_add(&big, tn_text_of("aaaaaaaaaa"));
    refused(big.at, big.bytes, TN_EFORMAT, "from byte 0 on, no blank in 1048576 bytes; expected text");
    big.at[7] = ' ', big.at[1 << 20] = ' ';
    const char *path = file_of("big", big.at, big.bytes); /* just short enough */
    ck_assert_int_eq(tn_vectors_phrases(1, &path, tn_test_file("out")).words, 3);
    holds(tn_test_file("out"), (tn_string_add(&big, tn_text_of("\n")), big.at));
    tn_string_free(&big);
}

TEST(what_is_too_much)
{
    const char                   *path = file_of("text", "a b c a b c a b c", 17);
    const tn_vectors_phrases_args a = {.min_count = 1};
    const tn__phrases_limits      words = {2, 64, 64}, few = {64, 64, 2};
    tn__phrases_write(1, &path, tn_test_file("out"), &a, &words);
    ck_error(TN_EUNSUPPORTED, "tn_vectors_phrases: more than 2 different words; pass part of the texts, or replace "
                              "numbers and other rare tokens by one word");
    tn__phrases_write(1, &path, tn_test_file("out"), &a, &few);
    ck_error(TN_EUNSUPPORTED, "tn_vectors_phrases: more than 2 phrases; raise .threshold or .min_count");
    ck_assert_int_eq(tn_vectors_phrases(0, NULL, "out").words, 0);
    ck_error(TN_EINVAL, "tn_vectors_phrases: no texts given");
    tn_vectors_phrases(1, &path, tn_test_file("out"), .min_count = 0);
    ck_error(TN_EINVAL, "tn_vectors_phrases: .min_count is 0, expected 1 to 1e15");
    tn_vectors_phrases(1, &path, tn_test_file("out"), .threshold = -1);
    ck_error(TN_EINVAL, "tn_vectors_phrases: .threshold is -1, expected 0 to 1e15");
    const volatile sig_atomic_t stop = 1;
    remove(tn_test_file("out"));
    ck_assert_int_eq(tn_vectors_phrases(1, &path, tn_test_file("out"), .stop = &stop).words, 0);
    ck_assert(tn_error() == TN_OK && !tn__file_exists(tn_test_file("out")));
}

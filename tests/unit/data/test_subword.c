/* test_subword.c — byte-pair encoding of words: the merges and files of subword-nmt (golden/subword.json, and its own
 * test files if present), the algorithm as the paper and lectures print it; long words, hostile bytes, failing
 * memory. */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/errors.h"
#include "tests/common/faults.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static tn_text span_of(const tn_json *v) { return (tn_text){tn_json_string(v), (size_t)tn_json_string_bytes(v)}; }

static void put_file(const char *path, const char *text, size_t bytes)
{
    ck_assert_msg(tn_file_write(path, text, bytes) == TN_OK, "%s", tn_error_message());
}

/* The file holds exactly this text. */
static bool file_is(const char *path, tn_text text)
{
    tn_tensor *t = tn_file_read(path, 1 << 30);
    return t && (size_t)tn_numel(t) == text.bytes && !memcmp(tn_data(t), text.at, text.bytes);
}

/* ---- golden ------------------------------------------------------------------------------------------------------ */

static tn_json *golden(void)
{
    tn_json *g = tn_json_load(tn_test_data("golden/subword.json"));
    ck_assert_msg(g, "%s", tn_error_message());
    return g;
}

static tn_word_counts *count_lines(const tn_json *lines)
{
    tn_word_counts *w = tn_word_counts_new();
    for (const tn_json *x = tn_json_first(lines); x; x = tn_json_next(x)) tn_word_counts_add_line(w, span_of(x));
    return w;
}

static void learns(const tn_json *g, const char *key, tn_subword_learn_args config)
{
    tn_word_counts *w = count_lines(tn_json_get(g, "corpus"));
    tn_subword     *s = tn_subword_learn_run(w, config);
    const char     *path = tn_test_file("codes");
    ck_assert_msg(tn_subword_save(s, path) == TN_OK, "%s", tn_error_message());
    ck_assert_msg(file_is(path, span_of(tn_json_get(g, key))), "%s differs", key);
    tn_subword *again = tn_subword_load(path); /* loaded codes are saved as the same file */
    ck_assert_int_eq(tn_subword_merges(again), tn_subword_merges(s));
    ck_assert_int_eq(tn_subword_save(again, path), TN_OK);
    ck_assert(file_is(path, span_of(tn_json_get(g, key))));
    tn_subword_free(again);
    tn_subword_free(s);
    tn_word_counts_free(w);
}

START_TEST(learns_what_subword_nmt_learns)
{
    tn_json *g = golden();
    learns(g, "codes", (tn_subword_learn_args){.merges = 120, .min_frequency = 2});
    learns(g, "few", (tn_subword_learn_args){.merges = 1000, .min_frequency = 20});
    learns(g, "total", (tn_subword_learn_args){.merges = 100, .min_frequency = 2, .total_symbols = true});
    tn_json_free(g);
}
END_TEST

static void applies(const tn_subword *s, const tn_json *g, const char *const inputs[2], const char *key)
{
    tn_string      line = {0};
    const tn_json *out = tn_json_first(tn_json_get(g, key));
    for (int i = 0; i < 2 && inputs[i]; i++)
        for (const tn_json *x = tn_json_first(tn_json_get(g, inputs[i])); x;
             x = tn_json_next(x), out = tn_json_next(out)) {
            ck_assert_int_eq(tn_subword_apply(s, span_of(x), &line), TN_OK);
            ck_assert_msg(!strcmp(line.at, tn_json_string(out)), "%s: '%s' not '%s'", key, line.at,
                          tn_json_string(out));
        }
    ck_assert_ptr_null(out);
    tn_string_free(&line);
}

START_TEST(applies_as_subword_nmt_applies)
{
    tn_json    *g = golden();
    const char *path = tn_test_file("codes"), *const corpus[2] = {"corpus", NULL}, *const unseen[2] = {"unseen", NULL},
               *const both[2] = {"corpus", "unseen"};
    tn_text           codes = span_of(tn_json_get(g, "codes"));
    put_file(path, codes.at, codes.bytes);
    tn_subword *s = tn_subword_load(path);
    applies(s, g, corpus, "applied");
    applies(s, g, unseen, "applied_unseen");
    /* the vocabulary, from words and from lines */
    tn_word_counts *words = count_lines(tn_json_get(g, "corpus")), *pieces = tn_word_counts_new();
    ck_assert_int_eq(tn_subword_count(s, words, pieces), TN_OK);
    ck_assert_int_eq(tn_word_counts_save(pieces, tn_test_file("vocab")), TN_OK);
    ck_assert(file_is(tn_test_file("vocab"), span_of(tn_json_get(g, "vocabulary"))));
    tn_word_counts *loaded = tn_word_counts_new();
    ck_assert_int_eq(tn_word_counts_load(loaded, tn_test_file("vocab")), TN_OK);
    ck_assert_int_eq(tn_subword_set_vocabulary(s, loaded, 12), TN_OK);
    applies(s, g, both, "applied_known");
    ck_assert_int_eq(tn_subword_set_vocabulary(s, NULL, 0), TN_OK);
    const char *glossaries[] = {"est", "über", "xyz"};
    ck_assert_int_eq(tn_subword_set_glossaries(s, 3, glossaries), TN_OK);
    applies(s, g, both, "applied_glossaries");
    ck_assert_int_eq(tn_subword_set_glossaries(s, 0, NULL), TN_OK);
    ck_assert_int_eq(tn_subword_set_separator(s, "￭"), TN_OK);
    applies(s, g, unseen, "applied_separator");
    tn_subword_free(s);
    const char *first = memchr(codes.at, '\n', codes.bytes); /* without the header: version 0.1 */
    put_file(path, first + 1, codes.bytes - (size_t)(first + 1 - codes.at));
    s = tn_subword_load(path);
    applies(s, g, unseen, "applied_version_1");
    tn_subword_set_vocabulary(s, loaded, 1);
    ck_error(TN_EUNSUPPORTED, "tn_subword_set_vocabulary: codes of version 0.1 have no vocabulary; learn new codes");
    tn_subword_free(s);
    tn_word_counts_free(words);
    tn_word_counts_free(pieces);
    tn_word_counts_free(loaded);
    tn_json_free(g);
}
END_TEST

START_TEST(joins_again)
{
    tn_json    *g = golden();
    tn_text     codes = span_of(tn_json_get(g, "codes"));
    tn_string   pieces = {0}, words = {0};
    const char *path = tn_test_file("codes");
    put_file(path, codes.at, codes.bytes);
    tn_subword *s = tn_subword_load(path);
    for (const tn_json *x = tn_json_first(tn_json_get(g, "corpus")); x; x = tn_json_next(x)) {
        tn_subword_apply(s, span_of(x), &pieces);
        tn_subword_join(s, (tn_text){pieces.at, pieces.bytes}, &words);
        ck_assert_str_eq(words.at, tn_json_string(x));
    }
    tn_string_free(&pieces);
    tn_string_free(&words);
    tn_subword_free(s);
    tn_json_free(g);
}
END_TEST

/* ---- the lecture's corpus ---------------------------------------------------------------------------------------- */

START_TEST(as_the_lecture_prints)
{
    static const struct {
        const char *word;
        int         times;
    } corpus[] = {{"low", 5}, {"lower", 2}, {"newest", 6}, {"widest", 3}};
    static const char *const expected[10][2] = {{"e", "s"},      {"es", "t"}, {"est", "</w>"}, {"l", "o"},
                                                {"lo", "w"},     {"n", "e"},  {"ne", "w"},     {"new", "est</w>"},
                                                {"low", "</w>"}, {"w", "i"}};
    tn_word_counts          *w = tn_word_counts_new();
    for (int i = 0; i < 4; i++) tn_word_counts_add(w, tn_text_of(corpus[i].word), corpus[i].times);
    tn_subword *s = tn_subword_learn(w, .merges = 10, .as_printed = true);
    ck_assert_int_eq(tn_subword_merges(s), 10);
    for (int i = 0; i < 10; i++) {
        tn_text left, right;
        ck_assert_int_eq(tn_subword_merge_at(s, i, &left, &right), TN_OK);
        ck_assert_msg(left.bytes == strlen(expected[i][0]) && !memcmp(left.at, expected[i][0], left.bytes) &&
                          right.bytes == strlen(expected[i][1]) && !memcmp(right.at, expected[i][1], right.bytes),
                      "merge %d is %.*s %.*s", i, (int)left.bytes, left.at, (int)right.bytes, right.at);
    }
    tn_string line = {0};
    tn_subword_apply(s, tn_text_of("lowest newer wider"), &line);
    ck_assert_str_eq(line.at, "low@@ est new@@ e@@ r wi@@ d@@ e@@ r");
    tn_string_free(&line);
    tn_subword_free(s);
    tn_word_counts_free(w);
}
END_TEST

/* ---- subword-nmt's own test files, if present -------------------------------------------------------------------- */

START_TEST(as_its_own_files_say)
{
    const char *corpus = tn_test_data("../../shared/data/subword-nmt/corpus.en");
    if (access(corpus, R_OK)) {
        printf("SKIPPED: as_its_own_files_say: no shared/data/subword-nmt beside the project\n");
        return;
    }
    tn_word_counts *w = tn_word_counts_new();
    ck_assert_int_eq(tn_word_counts_add_file(w, corpus), TN_OK);
    tn_subword *s = tn_subword_learn(w, .merges = 1000);
    ck_assert_int_eq(tn_subword_save(s, tn_test_file("codes")), TN_OK);
    tn_tensor *ref = tn_file_read(tn_test_data("../../shared/data/subword-nmt/bpe.ref"), 1 << 20);
    ck_assert(file_is(tn_test_file("codes"), (tn_text){tn_data(ref), (size_t)tn_numel(ref)}));
    tn_subword_free(s);
    s = tn_subword_load(tn_test_data("../../shared/data/subword-nmt/bpe.ref"));
    tn_lines *in = tn_lines_load(corpus);
    tn_lines *out = tn_lines_load(tn_test_data("../../shared/data/subword-nmt/corpus.bpe.ref.en"));
    tn_string line = {0};
    ck_assert(tn_lines_count(in) == tn_lines_count(out) && tn_lines_count(in) == 1015);
    for (int64_t i = 0; i < tn_lines_count(in); i++) {
        ck_assert_int_eq(tn_subword_apply(s, tn_lines_at(in, i), &line), TN_OK);
        tn_text expected = tn_lines_at(out, i);
        ck_assert_msg(line.bytes == expected.bytes && !memcmp(line.at, expected.at, line.bytes), "line %lld",
                      (long long)i);
    }
    tn_string_free(&line);
    tn_lines_free(in);
    tn_lines_free(out);
    tn_subword_free(s);
    tn_word_counts_free(w);
}
END_TEST

/* ---- size, hostility, memory ------------------------------------------------------------------------------------- */

static tn_subword *small_codes(void)
{
    static const char codes[] = "#version: 0.2\na b\nab ab\nabab abab\nc d</w>\nab a\n";
    put_file(tn_test_file("small"), codes, sizeof codes - 1);
    return tn_subword_load(tn_test_file("small"));
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

START_TEST(a_word_of_a_million_letters)
{
    size_t      n = tn_test_slow() ? 10000 : 1000000;
    char       *text = malloc(n);
    tn_string   line = {0};
    tn_subword *s = small_codes();
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < n; i++) text[i] = "ab"[i & 1];
    double start = seconds();
    ck_assert_int_eq(tn_subword_apply(s, (tn_text){text, n}, &line), TN_OK);
    double apply = seconds() - start;
    size_t pieces = (n - 2) / 8;
    ck_assert_msg(line.bytes > pieces * 11 && !memcmp(line.at, "abababab@@ abababab@@ ", 22), "%zu", line.bytes);
    tn_word_counts *w = tn_word_counts_new();
    tn_word_counts_add(w, (tn_text){text, n}, 1);
    start = seconds();
    tn_subword *learned = tn_subword_learn(w, .merges = 50);
    double      learn = seconds() - start;
    ck_assert_int_ge(tn_subword_merges(learned), 10);
    /* a quadratic algorithm would take hours */
    ck_assert_msg(tn_test_slow() || (apply < 20 && learn < 20), "%.1f s to apply, %.1f s to learn", apply, learn);
    tn_subword_free(learned);
    tn_word_counts_free(w);
    tn_string_free(&line);
    tn_subword_free(s);
    free(text);
}
END_TEST

START_TEST(any_bytes)
{
    char        bytes[600];
    tn_string   pieces = {0}, words = {0};
    tn_subword *s = small_codes();
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i % 7 == 3 ? ' ' : (char)(i * 37 % 253 + 1);
    for (size_t i = 0; i < sizeof bytes; i++)
        if (i % 7 != 3 && memchr(" \n\r@", bytes[i], 4)) bytes[i] = 0; /* a run of spaces becomes one */
    for (size_t n = 0; n < sizeof bytes; n += 13) {
        tn_text line = {bytes + n, sizeof bytes - n};
        while (line.bytes && *line.at == ' ') line.at++, line.bytes--;
        ck_assert_int_eq(tn_subword_apply(s, line, &pieces), TN_OK);
        ck_assert_int_eq(tn_subword_join(s, (tn_text){pieces.at, pieces.bytes}, &words), TN_OK);
        ck_assert(words.bytes == line.bytes && !memcmp(words.at, line.at, line.bytes));
        tn_word_counts *w = tn_word_counts_new();
        ck_assert_int_eq(tn_word_counts_add_line(w, line), TN_OK);
        tn_subword *learned = tn_subword_learn(w, .merges = 20, .min_frequency = 1);
        ck_assert_ptr_nonnull(learned);
        tn_subword_free(learned);
        tn_word_counts_free(w);
    }
    tn_string_free(&pieces);
    tn_string_free(&words);
    tn_subword_free(s);
}
END_TEST

/* Learned codes can be read again, or are not written. */
START_TEST(codes_that_can_be_read)
{
    const char     *path = tn_test_file("codes");
    tn_word_counts *w = tn_word_counts_new(), *latin1 = tn_word_counts_new();
    tn_word_counts_add_line(w, tn_text_of("lo\rx lo\rx lo"));
    ck_assert_int_eq(tn_word_counts_get(w, tn_text_of("lo")), 3);
    ck_assert_int_eq(tn_word_counts_get(w, tn_text_of("x")), 2);
    tn_subword *s = tn_subword_learn(w, .merges = 5), *again;
    ck_assert_int_eq(tn_subword_save(s, path), TN_OK);
    ck_assert_ptr_nonnull(again = tn_subword_load(path));
    tn_subword_free(s), tn_subword_free(again);
    tn_word_counts_add_line(latin1, tn_text_of("M\xe4 M\xe4"));
    s = tn_subword_learn(latin1, .merges = 5);
    ck_assert_int_eq(tn_subword_save(s, "codes"), TN_EFORMAT);
    ck_error(TN_EFORMAT, "tn_subword_save: 'codes': the subword '\\xe4</w>' is not UTF-8; convert the text that "
                         "it was learned from, for example with iconv -f latin1 -t utf-8");
    tn_subword_free(s);
    tn_word_counts_free(w), tn_word_counts_free(latin1);
}
END_TEST

static void refused(const char *text, size_t bytes, const char *part)
{
    const char *path = tn_test_file("refused");
    put_file(path, text, bytes);
    ck_assert_ptr_null(tn_subword_load(path));
    ck_assert_msg(tn_error() != TN_OK && strstr(tn_error_message(), part), "'%s' is not in: %s", part,
                  tn_error_message());
    tn_clear_error();
}

START_TEST(bad_files)
{
    refused("#version: 0.3\n", 14, "'#version: 0.3', expected version 0.1 or 0.2");
    refused("a b\nabc\n", 8, "line 2 is 'abc', expected two subwords");
    refused("a b c\n", 6, "line 1 is 'a b c', expected two subwords");
    refused("a b\n\nc d\n", 9, "line 2 is empty");
    refused("a \xff\n", 4, "line 1 is 'a \\xff'");
    refused(" b\n", 3, "line 1 is ' b'");
    const char *path = tn_test_file("empty");
    put_file(path, NULL, 0);
    tn_subword *s = tn_subword_load(path);
    ck_assert_int_eq(tn_subword_merges(s), 0);
    tn_subword_free(s);
    tn_word_counts *w = tn_word_counts_new();
    s = tn_subword_learn(w); /* nothing is learned from no words */
    ck_assert(s && tn_subword_merges(s) == 0);
    tn_subword_free(s);
    put_file(path, "word 3\nword x\n", 14);
    tn_word_counts_load(w, path);
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "line 2 is 'word x', expected a word, a space and its count"));
    tn_clear_error();
    tn_word_counts_add(w, tn_text_of("a b"), 1);
    ck_error(TN_EINVAL, "tn_word_counts_add: the word contains a space or a line end");
    static char letters[65538];
    memset(letters, 'a', 65537);
    tn_word_counts_add_line(w, tn_text_of(letters));
    ck_error(TN_EFORMAT, "tn_word_counts_add_line: line 1 has a word of 65537 bytes, expected at most 65536 in a text");
    tn_word_counts_add_line(w, tn_text_of(letters + 1));
    ck_assert_int_eq(tn_word_counts_get(w, tn_text_of(letters + 1)), 1);
    ck_assert_int_eq(tn_word_counts_get(w, tn_text_of("word")), 3);
    ck_assert_ptr_null(tn_subword_learn(NULL));
    ck_error(TN_EINVAL, "tn_subword_learn: w is NULL");
    tn_subword_apply(NULL, tn_text_of("a"), NULL);
    ck_error(TN_EINVAL, "tn_subword_apply: s is NULL");
    tn_word_counts_free(w);
}
END_TEST

static bool everything(void) /* false: failed, and an error is set */
{
    bool            done = false;
    tn_string       line = {0};
    const char     *glossaries[] = {"we"};
    tn_word_counts *w = tn_word_counts_new(), *v = tn_word_counts_new();
    if (tn_word_counts_add_line(w, tn_text_of("low low lower newest newest widest")) == TN_OK) {
        tn_subword *s = tn_subword_learn(w, .merges = 20);
        if (s && tn_subword_count(s, w, v) == TN_OK && tn_subword_set_vocabulary(s, v, 2) == TN_OK &&
            tn_subword_set_glossaries(s, 1, glossaries) == TN_OK &&
            tn_subword_apply(s, tn_text_of("lowest newest"), &line) == TN_OK) {
            ck_assert_str_eq(line.at, "l@@ o@@ we@@ s@@ t n@@ e@@ we@@ s@@ t");
            done = true;
        }
        tn_subword_free(s);
    }
    tn_string_free(&line);
    tn_word_counts_free(w);
    tn_word_counts_free(v);
    return done;
}

START_TEST(no_memory)
{
    tn_trim();
    tn_faulty_memory_begin();
    int failures = 0;
    for (int64_t at = 0;; at++, failures++) {
        tn_fail_memory(at, false);
        bool done = everything();
        tn_fail_memory(-1, false);
        ck_assert_int_eq(tn_memory_blocks(), 0);
        if (done) break;
        ck_assert_int_eq(tn_error(), TN_ENOMEM);
        tn_clear_error();
    }
    tn_faulty_memory_end();
    ck_assert_int_ge(failures, 40);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("subword");
    TCase *c = tn_tcase(s, "subword-nmt");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, learns_what_subword_nmt_learns);
    tcase_add_test(c, applies_as_subword_nmt_applies);
    tcase_add_test(c, joins_again);
    tcase_add_test(c, as_the_lecture_prints);
    tcase_add_test(c, as_its_own_files_say);
    c = tn_tcase(s, "robustness");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, a_word_of_a_million_letters);
    tcase_add_test(c, any_bytes);
    tcase_add_test(c, codes_that_can_be_read);
    tcase_add_test(c, bad_files);
    tcase_add_test(c, no_memory);
    return tn_check_main(s);
}

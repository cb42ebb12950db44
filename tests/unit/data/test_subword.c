/* test_subword.c — TN_SUBWORD compared with subword-nmt: the merges that it learns, its files, the texts that it splits
 * (golden/subword.json, and its own test files if present); long words, hostile bytes, failing memory. */
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/faults.h"
#include <time.h>
#include <unistd.h>

static tn_text span_of(const tn_json *v) { return (tn_text){tn_json_string(v), (size_t)tn_json_string_bytes(v)}; }

static void put_file(const char *path, const char *text, size_t bytes)
{
    ck_assert_msg(tn_file_write(path, text, bytes) == TN_OK, "%s", tn_error_message());
}

static bool file_is(const char *path, tn_text text)
{
    tn_tensor *t = tn_file_read(path, 1 << 30);
    return t && (size_t)tn_numel(t) == text.bytes && !memcmp(tn_data(t), text.at, text.bytes);
}

/* The tokens of a line as subword-nmt writes them: "@@ " within a word, one space between words. */
static void split(const tn_tokenizer *t, tn_encoding *e, tn_text line, tn_string *to)
{
    size_t at = 0;
    to->bytes = 0;
    ck_assert_msg(tn_tokenizer_encode(t, e, line.at, line.bytes, .bare = true) == TN_OK, "%s", tn_error_message());
    for (int64_t i = 0; i < e->n; at = (size_t)e->end[i++]) {
        const size_t from = (size_t)e->start[i];
        ck_assert_uint_le(at, from);
        if (i && e->word[i] != e->word[i - 1]) tn_string_add(to, tn_text_of(" "));
        else if (i) tn_string_add(to, tn_text_of("@@ "));
        else tn_string_add(to, (tn_text){line.at, from});
        tn_string_add(to, (tn_text){line.at + from, (size_t)e->end[i] - from});
    }
    tn_string_add(to, (tn_text){line.at + at, line.bytes - at});
}

/* ---- golden ------------------------------------------------------------------------------------------------------ */

static tn_json *golden(void)
{
    tn_json *g = tn_json_load(tn_test_data("golden/subword.json"));
    ck_assert_msg(g, "%s", tn_error_message());
    return g;
}

static void learns(const tn_json *g, const char *key, int64_t merges, int64_t min_count)
{
    tn_string text = {0};
    for (const tn_json *x = tn_json_first(tn_json_get(g, "corpus")); x; x = tn_json_next(x))
        tn_string_add(&text, span_of(x)), tn_string_add(&text, tn_text_of("\n"));
    tn_tokenizer *t =
        tn_tokenizer_train_text(text.at, text.bytes, .kind = TN_SUBWORD, .vocab_size = merges, .min_count = min_count);
    const char *path = tn_test_file("codes");
    ck_assert_msg(t && tn_tokenizer_save(t, path) == TN_OK, "%s", tn_error_message());
    ck_assert_msg(file_is(path, span_of(tn_json_get(g, key))), "%s differs", key);
    tn_tokenizer *again = tn_tokenizer_load(path); /* a loaded file is saved as the same */
    ck_assert_int_eq(tn_tokenizer_kind_of(again), TN_SUBWORD);
    ck_assert_int_eq(tn_tokenizer_parts(again, NULL, NULL, NULL), tn_tokenizer_parts(t, NULL, NULL, NULL));
    ck_assert_int_eq(tn_tokenizer_save(again, path), TN_OK);
    ck_assert(file_is(path, span_of(tn_json_get(g, key))));
    tn_tokenizer_free(t), tn_tokenizer_free(again);
    tn_string_free(&text);
}

TEST(learns_what_subword_nmt_learns)
{
    tn_json *g = golden();
    learns(g, "codes", 120, 2);
    learns(g, "few", 1000, 20);
    learns(g, "total", 53, 2);
    tn_json_free(g);
}

static void splits(const tn_tokenizer *t, const tn_json *g, const char *input, const char *key)
{
    tn_string      line = {0};
    tn_encoding   *e = tn_encoding_new();
    const tn_json *out = tn_json_first(tn_json_get(g, key));
    for (const tn_json *x = tn_json_first(tn_json_get(g, input)); x; x = tn_json_next(x), out = tn_json_next(out)) {
        split(t, e, span_of(x), &line);
        ck_assert_msg(!strcmp(line.at, tn_json_string(out)), "%s: '%s' not '%s'", key, line.at, tn_json_string(out));
    }
    ck_assert_ptr_null(out);
    tn_encoding_free(e);
    tn_string_free(&line);
}

TEST(splits_as_subword_nmt_splits)
{
    tn_json    *g = golden();
    const char *path = tn_test_file("codes");
    tn_text     codes = span_of(tn_json_get(g, "codes"));
    put_file(path, codes.at, codes.bytes);
    tn_tokenizer *t = tn_tokenizer_load(path);
    splits(t, g, "corpus", "applied");
    splits(t, g, "unseen", "applied_unseen");
    tn_tokenizer_free(t);
    tn_json_free(g);
}

TEST(decodes)
{
    static const int32_t none[] = {0};
    put_file(tn_test_file("codes"), "#version: 0.2\nl o\nlo w</w>\n", 27);
    tn_tokenizer *t = tn_tokenizer_load(tn_test_file("codes"));
    tn_encoding  *e = tn_encoding_new();
    tn_string     text = {0};
    ck_assert_int_eq(tn_tokenizer_encode(t, e, "low  lol", 8), TN_OK);
    ck_assert_int_eq(e->n, 3);
    ck_assert_str_eq(tn_tokenizer_token(t, e->id[0]), "low</w>");
    ck_assert_int_eq(e->id[2], 0); /* "l</w>" is in no merge */
    ck_assert_int_eq(tn_tokenizer_decode(t, e->id, 2, &text), TN_OK);
    ck_assert_str_eq(text.at, "low lo");
    text.bytes = 0;
    ck_assert_int_eq(tn_tokenizer_decode(t, none, 1, &text), TN_OK);
    ck_assert_str_eq(text.at, "");
    tn_string_free(&text);
    tn_encoding_free(e);
    tn_tokenizer_free(t);
}

/* ---- subword-nmt's own test files, if present -------------------------------------------------------------------- */

TEST(as_its_own_files_say)
{
    const char *corpus = tn_test_data("../../shared/data/subword-nmt/corpus.en");
    if (access(corpus, R_OK)) {
        printf("SKIPPED: as_its_own_files_say: no shared/data/subword-nmt next to the project\n");
        return;
    }
    tn_tokenizer *t = tn_tokenizer_train(1, &corpus, .kind = TN_SUBWORD, .vocab_size = 1000);
    ck_assert_int_eq(tn_tokenizer_save(t, tn_test_file("codes")), TN_OK);
    tn_tensor *ref = tn_file_read(tn_test_data("../../shared/data/subword-nmt/bpe.ref"), 1 << 20);
    ck_assert(file_is(tn_test_file("codes"), (tn_text){tn_data(ref), (size_t)tn_numel(ref)}));
    tn_tokenizer_free(t);
    t = tn_tokenizer_load(tn_test_data("../../shared/data/subword-nmt/bpe.ref"));
    tn_lines    *in = tn_lines_load(corpus);
    tn_lines    *out = tn_lines_load(tn_test_data("../../shared/data/subword-nmt/corpus.bpe.ref.en"));
    tn_encoding *e = tn_encoding_new();
    tn_string    line = {0};
    ck_assert(tn_lines_count(in) == tn_lines_count(out) && tn_lines_count(in) == 1015);
    for (int64_t i = 0; i < tn_lines_count(in); i++) {
        split(t, e, tn_lines_at(in, i), &line);
        tn_text expected = tn_lines_at(out, i);
        ck_assert_msg(line.bytes == expected.bytes && !memcmp(line.at, expected.at, line.bytes), "line %lld",
                      (long long)i);
    }
    tn_string_free(&line);
    tn_encoding_free(e);
    tn_lines_free(in), tn_lines_free(out);
    tn_tokenizer_free(t);
}

/* ---- size, hostility, memory ------------------------------------------------------------------------------------- */

static tn_tokenizer *small_codes(void)
{
    static const char codes[] = "#version: 0.2\na b\nab ab\nabab abab\nc d</w>\nab a\n";
    put_file(tn_test_file("small"), codes, sizeof codes - 1);
    return tn_tokenizer_load(tn_test_file("small"));
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

TEST(a_word_of_a_million_letters)
{
    size_t        n = tn_test_slow() ? 10000 : 1000000;
    char         *text = malloc(n);
    tn_string     line = {0};
    tn_tokenizer *t = small_codes();
    tn_encoding  *e = tn_encoding_new();
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < n; i++) text[i] = "ab"[i & 1];
    double start = seconds();
    split(t, e, (tn_text){text, n}, &line);
    double taken = seconds() - start;
    ck_assert_msg(line.bytes > (n - 2) / 8 * 11 && !memcmp(line.at, "abababab@@ abababab@@ ", 22), "%zu", line.bytes);
    ck_assert_msg(tn_test_slow() || taken < 20, "%.1f s", taken); /* a quadratic algorithm would take hours */
    tn_string_free(&line);
    tn_encoding_free(e);
    tn_tokenizer_free(t);
    free(text);
}

/* The longest word that is counted becomes one token, which can be saved and loaded. */
TEST(long_tokens)
{
    char text[3 * 4001], *to = text; /* 1,000 characters of 4 bytes and a space, three times */
    for (int k = 0; k < 3; k++, *to++ = ' ')
        for (int i = 0; i < 1000; i++) to += tn_utf8_put(0x10000 + (uint32_t)i, to);
    to--;
    tn_tokenizer *t = tn_tokenizer_train_text(text, (size_t)(to - text), .kind = TN_SUBWORD), *again;
    ck_assert_msg(t && tn_tokenizer_save(t, tn_test_file("long")) == TN_OK, "%s", tn_error_message());
    ck_assert_msg((again = tn_tokenizer_load(tn_test_file("long"))), "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_parts(again, NULL, NULL, NULL), 999);
    tn_tokenizer_free(t), tn_tokenizer_free(again);
}

TEST(a_token_like_the_version_line)
{
    const char *path = tn_test_file("version");
    ck_assert(tn_file_write(path, "#version: 0.2\n# version\n#version :</w>\n", 39) == TN_OK);
    tn_tokenizer *t = tn_tokenizer_load(path);
    ck_assert_int_eq(tn_tokenizer_parts(t, NULL, NULL, NULL), 2);
    tn_tokenizer_free(t);
}

/* No byte of a word is lost, and none of a space between words but those of a run. */
TEST(any_bytes)
{
    char          bytes[600];
    tn_string     line = {0};
    tn_tokenizer *t = small_codes();
    tn_encoding  *e = tn_encoding_new();
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i % 7 == 3 ? ' ' : (char)(i * 37 % 253 + 1);
    for (size_t i = 0; i < sizeof bytes; i++)
        if (i % 7 != 3 && memchr(" \n\r@", bytes[i], 4)) bytes[i] = 0;
    for (size_t n = 0; n < sizeof bytes; n += 13) {
        const tn_text text = {bytes + n, sizeof bytes - n};
        split(t, e, text, &line);
        size_t at = 0;
        for (size_t i = 0; i < line.bytes; i++) {
            if (line.at[i] == '@') {
                i += 2;
                continue;
            }
            while (at + 1 < text.bytes && at && text.at[at] == ' ' && text.at[at - 1] == ' ') at++;
            ck_assert_int_eq(line.at[i], text.at[at++]);
        }
        ck_assert_uint_eq(at, text.bytes);
    }
    tn_string_free(&line);
    tn_encoding_free(e);
    tn_tokenizer_free(t);
}

static void refused(const char *text, tn_status code, const char *part)
{
    const char *path = tn_test_file("refused");
    put_file(path, text, strlen(text));
    ck_refused_has(tn_tokenizer_load(path), code, part);
}

TEST(bad_files)
{
    refused("#version: 0.1\na b\n", TN_EUNSUPPORTED, "version 0.1, expected 0.2; learn the merges again");
    refused("#version: 0.2\na b\nabc\n", TN_EFORMAT, "line 3 is not two tokens separated by a space");
    refused("#version: 0.2\na b c\n", TN_EFORMAT, "line 2 is not two tokens separated by a space");
    refused("#version: 0.2\na \xff\n", TN_EFORMAT, "line 2 is not UTF-8");
    refused("#version: 0.2\n b\n", TN_EFORMAT, "line 2 is not two tokens separated by a space");
    const char *path = tn_test_file("codes");
    put_file(path, "#version: 0.2\n", 14);
    tn_tokenizer *t = tn_tokenizer_load(path);
    ck_assert(t && tn_tokenizer_parts(t, NULL, NULL, NULL) == 0);
    tn_tokenizer_free(t);
    put_file(path, "#version: 0.2\na b\na b\n", 22); /* subword-nmt may learn a merge twice */
    t = tn_tokenizer_load(path);
    ck_assert(t && tn_tokenizer_parts(t, NULL, NULL, NULL) == 1);
    tn_tokenizer_free(t);
    ck_refused_has(tn_tokenizer_load(path, .lowercase = TN_YES), TN_EINVAL,
                   "BERT's normalizer, which this one does not have");
    static const char *const special[] = {"<s>", NULL};
    ck_refused(tn_tokenizer_train_text("a", 1, .kind = TN_SUBWORD, .special = special), TN_EINVAL,
               "tn_tokenizer_train: .special is set, but TN_SUBWORD has no special tokens");
}

static bool everything(void) /* false: failed, and an error is set */
{
    bool          done = false;
    const char   *text = "low low lower newest newest widest", *path = tn_test_file("memory");
    tn_tokenizer *t = tn_tokenizer_train_text(text, strlen(text), .kind = TN_SUBWORD, .vocab_size = 20), *again = NULL;
    tn_encoding  *e = t ? tn_encoding_new() : NULL;
    if (e && tn_tokenizer_save(t, path) == TN_OK && (again = tn_tokenizer_load(path)) &&
        tn_tokenizer_encode(again, e, "lowest newest", 13) == TN_OK) {
        ck_assert_int_eq(e->n, 3); /* low@@ est newest */
        done = true;
    }
    tn_encoding_free(e);
    tn_tokenizer_free(t), tn_tokenizer_free(again);
    return done;
}

TEST(no_memory)
{
    tn_trim();
    tn_faulty_memory_begin();
    int failures = 0;
    for (int64_t at = 0;; at++, failures++) {
        tn_fail_memory(at, false);
        bool done = everything();
        tn_fail_memory(-1, false);
        ck_assert_int_le(tn_memory_blocks(), 1); /* the stack of the scopes stays */
        if (done) break;
        ck_error_code(TN_ENOMEM);
    }
    tn_faulty_memory_end();
    ck_assert_int_ge(failures, 40);
}

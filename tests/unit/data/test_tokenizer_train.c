/* test_tokenizer_train.c — training from texts that are larger than the blocks in which they are read: the result
 * depends on the words alone, not on where lines, blocks and files end or which thread counts them. */
#include "data/data.h"
#include "tests/common/check_main.h"

enum { MIB = 1 << 20 };

static const char *const words[] = {"sea",     "seaside",   "boat",   "boats",       "\xc3\xa9t\xc3\xa9",
                                    "old",     "older",     "oldest", "man",         "mankind",
                                    "fishing", "fisherman", "fish",   "\xe6\xb5\xb7"};
enum { WORDS = sizeof words / sizeof *words };

/* Writes n words of a reproducible sequence, with `between` between two of them. */
static char *text_of(int64_t n, char between, size_t *bytes)
{
    char    *text = malloc((size_t)n * 12 + 1), *to = text;
    uint32_t state = 1;
    ck_assert_ptr_nonnull(text);
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        const char *word = words[(state >> 20) % WORDS];
        to += sprintf(to, "%s%c", word, between);
    }
    *bytes = (size_t)(to - text);
    return text;
}

static void same(const tn_tokenizer *a, const tn_tokenizer *b)
{
    ck_assert_msg(a && b, "%s", tn_error_message());
    ck_assert_int_eq(tn_tokenizer_size(a), tn_tokenizer_size(b));
    for (int64_t i = 0; i < tn_tokenizer_size(a); i++)
        ck_assert_str_eq(tn_tokenizer_token(a, i), tn_tokenizer_token(b, i));
}

static tn_tokenizer *trained(const char *text, size_t bytes)
{
    return tn_tokenizer_train_text(text, bytes, .kind = TN_WORDPIECE, .vocab_size = 60);
}

/* One line that is longer than a block: no word is cut. */
TEST(lines_longer_than_a_block)
{
    size_t        bytes;
    char         *text = text_of(MIB / 2, '\n', &bytes);
    tn_tokenizer *lines = trained(text, bytes), *line, *threads;
    ck_assert(bytes > 2 * MIB);
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\n') text[i] = ' ';
    line = trained(text, bytes);
    tn_set_threads(3);
    threads = trained(text, bytes);
    tn_set_threads(0);
    same(lines, line), same(lines, threads);
    tn_tokenizer_free(lines), tn_tokenizer_free(line), tn_tokenizer_free(threads);
    free(text);
}

/* Without any space, as in Chinese, a block ends before an incomplete character. */
TEST(no_spaces_at_all)
{
    const size_t n = 3 * MIB / 2 / 3, bytes = 3 * n + 1;
    char        *text = malloc(bytes), *lines = malloc(bytes + n);
    ck_assert(text && lines);
    text[0] = 'x'; /* so that no block ends with a character */
    size_t at = 0;
    lines[at++] = 'x', lines[at++] = '\n';
    for (size_t i = 0; i < n; i++) {
        const char letter[] = {(char)0xe4, (char)(0xb8 + i * 7 % 3), (char)(0x80 + i * 5 % 13)};
        memcpy(text + 1 + 3 * i, letter, 3), memcpy(lines + at, letter, 3);
        at += 3;
        if (i % 50 == 49) lines[at++] = '\n';
    }
    tn_tokenizer *whole = trained(text, bytes), *apart = trained(lines, at);
    same(whole, apart); /* each letter is a word */
    ck_assert_int_eq(tn_tokenizer_size(whole), 5 + 1 + 39);
    tn_tokenizer_free(whole), tn_tokenizer_free(apart);
    free(text), free(lines);
}

static double read_so_far;
static int    told;
static void   tell(const char *what, double part, void *user)
{
    ck_assert_ptr_eq(user, &told);
    if (strcmp(what, "reading") != 0) return;
    ck_assert(part > read_so_far && part <= 1);
    read_so_far = part, told++;
}

/* More blocks than are counted in parallel, from several files: as from one text. */
TEST(many_blocks_and_files)
{
    size_t        bytes;
    char         *text = text_of(tn_test_slow() ? MIB / 2 : 4 * MIB, ' ', &bytes);
    const char   *paths[] = {tn_test_file("one.txt"), tn_test_file("two.txt"), tn_test_file("none.txt")};
    size_t        half = bytes / 2;
    tn_tokenizer *whole = trained(text, bytes), *files;
    while (text[half - 1] != ' ') half++;
    ck_assert_int_eq(tn_file_write(paths[0], text, half), TN_OK);
    ck_assert_int_eq(tn_file_write(paths[1], text + half, bytes - half), TN_OK);
    read_so_far = 0, told = 0;
    files = tn_tokenizer_train(2, paths, .kind = TN_WORDPIECE, .vocab_size = 60, .progress = tell, .user = &told);
    same(whole, files);
    ck_assert_int_ge(told, tn_test_slow() ? 1 : 2);
    ck_assert_double_eq(read_so_far, 1);
    tn_tokenizer_free(whole), tn_tokenizer_free(files);
    free(text);
    ck_assert_ptr_null(tn_tokenizer_train(3, paths));
    ck_assert_int_eq(tn_error(), TN_EIO);
    ck_assert_msg(strstr(tn_error_message(), "none.txt") != NULL, "%s", tn_error_message());
    tn_clear_error();
    ck_refused(tn_tokenizer_train(0, paths), TN_EINVAL, "tn_tokenizer_train: n is 0, expected 1 to 1000 files");
    ck_assert_int_eq(tn_file_write(paths[0], "\n", 1), TN_OK);
    ck_assert_int_eq(tn_file_write(paths[1], " ", 1), TN_OK);
    ck_assert_ptr_null(tn_tokenizer_train(2, paths));
    ck_assert_msg(strstr(tn_error_message(), "or the other texts") != NULL, "%s", tn_error_message());
    tn_clear_error();
}

/* A word of more than 1000 characters is ignored; one of 1000 is not, even if it has more bytes. */
TEST(words_that_are_too_long)
{
    static char text[8000];
    for (int letters = 1000; letters <= 1001; letters++) {
        size_t n = (size_t)sprintf(text, "boat boat ");
        for (int i = 0; i < letters; i++) n += (size_t)sprintf(text + n, "\xd7\xa9"); /* a letter of two bytes */
        tn_tokenizer *t = trained(text, n);
        ck_assert_msg(t != NULL, "%s", tn_error_message());
        ck_assert((tn_tokenizer_id(t, "\xd7\xa9") >= 0) == (letters == 1000));
        ck_assert_int_ge(tn_tokenizer_id(t, "boat"), 0);
        tn_tokenizer_free(t);
    }
}

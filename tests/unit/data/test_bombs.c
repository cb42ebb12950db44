/* test_bombs.c — small files that claim large sizes, and large files made to be slow: they are read or rejected in time
 * proportional to their size, and with little more memory than their bytes. TENON_TEST_EXHAUSTIVE=1: with 100 MB each
 * instead of 1. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "data/data.h"
#include "tests/common/faults.h"
#include <time.h>

/* Fills n bytes, an odd number; a remainder stays 'a'. */
typedef void (*maker)(char *to, size_t n);

static void repeat(char *to, size_t n, const char *unit)
{
    const size_t k = strlen(unit);
    for (size_t i = 0; i + k <= n; i += k) memcpy(to + i, unit, k);
}
static void open_arrays(char *to, size_t n) { memset(to, '[', n); }
static void one_string(char *to, size_t n) { *to = to[n - 1] = '"'; }
static void escapes(char *to, size_t n)
{
    repeat(to, n, "\\u00e9");
    for (size_t i = n - n % 6; i < n; i++) to[i] = ' ';
    memmove(to + 1, to, n - 7), *to = '"', to[n - n % 6 - 5] = '"';
    for (size_t i = n - n % 6 - 4; i < n; i++) to[i] = ' ';
}
static void numbers(char *to, size_t n)
{
    repeat(to + 1, n - 1, "1,");
    *to = '[', to[n - 1] = ']', to[n - 2] = '1';
}
static void digits(char *to, size_t n) { memset(to, '9', n); }
static void keys(char *to, size_t n)
{
    size_t at = 0;
    for (int i = 0; at + 40 < n; i++) at += (size_t)snprintf(to + at, n - at, "%c\"%d\":0", i ? ',' : '{', i);
    memset(to + at, ' ', n - at), to[n - 1] = '}';
}
/* Makes a safetensors header: its length in 8 bytes, then tensors without elements. */
static void tensors(char *to, size_t n)
{
    size_t at = 8;
    for (int i = 0; i < 8; i++) to[i] = (char)((n - 8) >> 8 * i);
    for (int i = 0; at + 120 < n; i++)
        at += (size_t)snprintf(to + at, n - at, "%c\"t%d\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
                               i ? ',' : '{', i);
    memset(to + at, ' ', n - at), to[at] = '}';
}
static void letters(char *to, size_t n) { memset(to, 'a', n); }
static void marks(char *to, size_t n)
{
    repeat(to, n, "\xcc\x81\xcc\xa3"); /* two accents that are reordered */
    *to = 'a';
}
static void lines(char *to, size_t n)
{
    size_t at = 0;
    for (int i = 0; at + 12 < n; i++) at += (size_t)snprintf(to + at, n - at, "%d\n", i);
    memset(to + at, '\n', n - at);
}
static void words(char *to, size_t n) { repeat(to, n, "ab ba "); }

/* The readers. An error must be about the file, not about memory. */
static void json(const char *text, size_t n) { tn_json_free(tn_json_parse(text, n)); }
static void safetensors(const char *text, size_t n) { tn_safetensors_close(tn_safetensors_read(text, n)); }
static void npy(const char *text, size_t n) { tn_npy_read(text, n); }
static void vocabulary(const char *text, size_t n)
{
    const char *path = tn_test_file("vocab.txt");
    ck_assert_int_eq(tn_file_write(path, text, n), TN_OK);
    tn_tokenizer_free(tn_tokenizer_load(path));
}
static void loads_lines(const char *text, size_t n)
{
    const char *path = tn_test_file("lines.txt");
    ck_assert_int_eq(tn_file_write(path, text, n), TN_OK);
    tn_lines_free(tn_lines_load(path));
}
static void encodes(tn_tokenizer_kind kind, const char *text, size_t n)
{
    static const char lesson[] = "aa ab ba aaaa abab the aaaaaaaa aab";
    tn_tokenizer     *t = tn_tokenizer_train_text(lesson, sizeof lesson - 1, .kind = kind, .min_count = 1,
                                                  .vocab_size = kind == TN_BYTE_BPE ? 264 : 20);
    tn_encoding      *e = tn_encoding_new();
    tn_tokenizer_encode(t, e, text, n);
    tn_encoding_free(e);
    tn_tokenizer_free(t);
}
static void wordpiece(const char *text, size_t n) { encodes(TN_WORDPIECE, text, n); }
static void bpe(const char *text, size_t n) { encodes(TN_BPE, text, n); }
static void bytes(const char *text, size_t n) { encodes(TN_BYTE_BPE, text, n); }
static void unigram(const char *text, size_t n) { encodes(TN_UNIGRAM, text, n); }

static const struct {
    const char *name;
    maker       make;
    void (*read)(const char *text, size_t n);
    double memory; /* memory: at most this multiple of its bytes, plus 64 MiB */
} bombs[] = {
    {"json: open arrays", open_arrays, json, 1},
    {"json: one string", one_string, json, 4},
    {"json: escapes", escapes, json, 4},
    {"json: numbers", numbers, json, 40},
    {"json: a number of many digits", digits, json, 4},
    {"json: keys", keys, json, 40},
    {"safetensors: tensors", tensors, safetensors, 8},
    {"safetensors: letters", letters, safetensors, 1},
    {"npy: letters", letters, npy, 1},
    {"vocab.txt: one line", letters, vocabulary, 4},
    {"vocab.txt: lines", lines, vocabulary, 40},
    {"lines: one", letters, loads_lines, 4},
    {"lines: many", lines, loads_lines, 8},
    {"WordPiece: one word", letters, wordpiece, 40},
    {"WordPiece: accents", marks, wordpiece, 40},
    {"WordPiece: words", words, wordpiece, 40},
    {"BPE: one word", letters, bpe, 80},
    {"BPE of bytes: one word", letters, bytes, 80},
    {"BPE of bytes: accents", marks, bytes, 80},
    {"Unigram: one word", letters, unigram, 80},
    {"Unigram: words", words, unigram, 80},
};
enum { BOMBS = sizeof bombs / sizeof *bombs };

static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

AROUND_TESTS(tn_faulty_files_begin, tn_faulty_files_end);

TEST_EACH(take_time_as_their_size, BOMBS)
{
    const size_t n = tn_test_slow() ? (1 << 19) + 1 : getenv("TENON_TEST_EXHAUSTIVE") ? 100000001 : 1000001;
    char        *text = malloc(n + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'a', n), text[n] = 0;
    bombs[_i].make(text, n);
    tn_set_threads(1);
    const size_t before = tn_memory_now().live;
    tn_reset_peak();
    const double began = cpu();
    bombs[_i].read(text, n);
    const double    seconds = cpu() - began, mb = (double)n / 1e6;
    const double    peak = (double)(tn_memory_now().peak - before);
    const tn_status s = tn_error();
    printf("%-32s %6.3f s, %6.1f times its bytes: %s\n", bombs[_i].name, seconds, peak / (double)n, tn_status_name(s));
    ck_assert_msg(s == TN_OK || s == TN_EFORMAT || s == TN_EUNSUPPORTED || s == TN_EINVAL, "%s: %s", bombs[_i].name,
                  tn_error_message());
    tn_clear_error();
    ck_assert_msg(peak <= bombs[_i].memory * (double)n + (64 << 20), "%s: %.0f MB of memory for %.0f", bombs[_i].name,
                  peak / 1e6, mb);
    ck_assert_msg(tn_test_slow() || seconds < 1 + mb * 5, "%s: %.3f s for %.0f MB", bombs[_i].name, seconds, mb);
    free(text);
}

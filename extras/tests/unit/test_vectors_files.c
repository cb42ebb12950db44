/* test_vectors_files.c — vector files: files of word2vec, GloVe, gensim and FastText are read with equal values,
 * written files are read again unchanged, and broken files give an error with the position. */
#include "tests/common/check_main.h"

#include "extras.h"
#include <float.h>

enum { WORDS = 5, DIM = 3 };
static const float numbers[WORDS * DIM] = {0.1f,    -2,  3e-7f, 1.5f, 0, 1.0f / 3, -0.25f, 1e6f,
                                           -1e-30f, 123, 4,     0.5f, 7, 8,        9};

static tn_vectors *five(void)
{
    return tn_vectors_from(tn_text_of("the \xc3\xa9t\xc3\xa9 a </s> of"),
                           tn_from_data(TN_F32, TN_SHAPE(WORDS, DIM), numbers));
}

static void same(const tn_vectors *a, const tn_vectors *b)
{
    ck_assert_msg(a && b, "%s", tn_error_message());
    ck_assert_int_eq(tn_vectors_size(a), tn_vectors_size(b));
    ck_assert_int_eq(tn_vectors_dim(a), tn_vectors_dim(b));
    for (int64_t i = 0; i < tn_vectors_size(a); i++)
        ck_assert_str_eq(tn_vectors_word(a, i).at, tn_vectors_word(b, i).at);
    ck_assert_mem_eq(tn_data(tn_vectors_tensor(a)), tn_data(tn_vectors_tensor(b)),
                     (size_t)(tn_vectors_size(a) * tn_vectors_dim(a)) * sizeof(float));
}

static void put(const char *path, const void *data, size_t bytes)
{
    ck_assert_msg(tn_file_write(path, data, bytes) == TN_OK, "%s", tn_error_message());
}

static const tn_vectors_format forms[] = {TN_VECTORS_TEXT, TN_VECTORS_GLOVE_TEXT, TN_VECTORS_BINARY,
                                          TN_VECTORS_SAFETENSORS};

TEST_EACH(written_and_read_again, 4)
{
    const char *path = tn_test_file("vectors");
    tn_vectors *v = five();
    ck_assert_int_eq(tn_vectors_save(v, path, forms[_i]), TN_OK);
    for (int told = 0; told < 2; told++) {
        tn_vectors *again = tn_vectors_load(path, told ? forms[_i] : TN_VECTORS_ANY);
        same(v, again);
        tn_vectors_free(again);
    }
    tn_vectors_free(v);
}

/* As other programs write them: word2vec.c ends lines with a blank, gensim's binary rows have no line end, GloVe has no
 * first line, a word may contain a blank. */
TEST(as_others_write_them)
{
    static const char text[] = "2 2 \nthe 0.5 -1.000000 \nof 2e-1 0 \n", glove[] = "the 0.5 -1\nof 0.2 0\n";
    static const char blank[] = "2 2\n. . 0.5 -1\r\nof .2 +0\n";
    const char       *path = tn_test_file("vectors");
    const float       x[] = {0.5f, -1, 0.2f, 0};
    unsigned char     binary[64] = "2 2\nthe ";
    size_t            n = 8;
    memcpy(binary + n, x, 8), memcpy(binary + n + 8, "of ", 3), memcpy(binary + n + 11, x + 2, 8), n += 19;
    tn_vectors *v = tn_vectors_from(tn_text_of("the of"), tn_from_data(TN_F32, TN_SHAPE(2, 2), x));
    for (int i = 0; i < 3; i++) {
        put(path,
            i == 0   ? text
            : i == 1 ? glove
                     : (const char *)binary,
            i == 0   ? strlen(text)
            : i == 1 ? strlen(glove)
                     : n);
        tn_vectors *w = tn_vectors_load(path, i == 2 ? TN_VECTORS_BINARY : TN_VECTORS_ANY);
        same(v, w);
        tn_vectors_free(w);
    }
    put(path, blank, strlen(blank));
    tn_vectors *w = tn_vectors_load(path, TN_VECTORS_ANY);
    ck_assert_msg(w, "%s", tn_error_message());
    ck_assert_str_eq(tn_vectors_word(w, 0).at, ". .");
    /* such a word is written where it can be read again, and rejected elsewhere */
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (forms[i] == TN_VECTORS_TEXT || forms[i] == TN_VECTORS_SAFETENSORS) {
            ck_assert_int_eq(tn_vectors_save(w, path, forms[i]), TN_OK);
            tn_vectors *again = tn_vectors_load(path, TN_VECTORS_ANY);
            same(w, again);
            tn_vectors_free(again);
        } else {
            ck_assert_int_eq(tn_vectors_save(w, path, forms[i]), TN_EINVAL);
            ck_assert(strstr(tn_error_message(), "'. .' contains a blank, which"));
            tn_clear_error();
        }
    tn_vectors_free(w);
    tn_vectors_free(v);
}

/* ---- FastText's .bin --------------------------------------------------------------------------------------------- */

enum { BUCKETS = 7, BIN_MOST = 1024 };
typedef struct {
    unsigned char at[BIN_MOST];
    size_t        n;
    size_t        mark[8]; /* offsets of the arguments, dictionary and matrices */
} image;

static void add(image *b, const void *data, size_t bytes)
{
    ck_assert_uint_le(b->n + bytes, BIN_MOST);
    memcpy(b->at + b->n, data, bytes);
    b->n += bytes;
}
static void add_i32(image *b, int32_t x) { add(b, &x, 4); }
static void add_i64(image *b, int64_t x) { add(b, &x, 8); }

static float row_of(int i, int k) { return (float)((i * 5 + k * 3) % 11) - 5; }

/* Two words, "ab" and "abc", of 2 numbers; n-grams of 2 to 3 characters. */
static image model(void)
{
    image         b = {.n = 0};
    const int32_t arg[] = {2, 5, 5, 1, 5, 1, 2, 2, BUCKETS, 2, 3, 100};
    add_i32(&b, 793712314), add_i32(&b, 12);
    b.mark[0] = b.n;
    add(&b, arg, sizeof arg);
    add(&b, &(double){1e-4}, 8);
    b.mark[1] = b.n;
    add_i32(&b, 2), add_i32(&b, 2), add_i32(&b, 0), add_i64(&b, 20), add_i64(&b, -1);
    b.mark[2] = b.n;
    add(&b, "ab", 3), add_i64(&b, 12), add(&b, "", 1), add(&b, "abc", 4), add_i64(&b, 8), add(&b, "", 1);
    b.mark[3] = b.n;
    add(&b, "", 1), add_i64(&b, 2 + BUCKETS), add_i64(&b, 2);
    for (int i = 0; i < 2 + BUCKETS; i++)
        for (int k = 0; k < 2; k++) add(&b, &(float){row_of(i, k)}, 4);
    b.mark[4] = b.n;
    add(&b, "", 1), add_i64(&b, 2), add_i64(&b, 2);
    for (int i = 0; i < 4; i++) add(&b, &(float){(float)i}, 4);
    return b;
}

static int bucket(const char *gram)
{
    uint32_t h = 2166136261u;
    for (; *gram; gram++) h = (h ^ (unsigned char)*gram) * 16777619u;
    return (int)(h % BUCKETS);
}

TEST(fasttext)
{
    static const char *const ab[] = {"<a", "<ab", "ab", "ab>", "b>"}, *const b[] = {"<b", "<b>", "b>"};
    const char *path = tn_test_file("model.bin"), *copy = tn_test_file("copy.bin");
    const image m = model();
    float       x[2];
    put(path, m.at, m.n);
    tn_vectors *v = tn_vectors_load(path, TN_VECTORS_ANY);
    ck_assert_msg(v, "%s", tn_error_message());
    ck_assert(tn_vectors_of(v, tn_text_of("ab"), x)); /* the mean of its own row and its n-grams */
    for (int k = 0; k < 2; k++) {
        float sum = row_of(0, k);
        for (int i = 0; i < 5; i++) sum += row_of(2 + bucket(ab[i]), k);
        ck_assert_float_eq_tol(x[k], sum / 6, 1e-6f);
    }
    ck_assert(tn_vectors_of(v, tn_text_of("b"), x)); /* an unknown word */
    for (int k = 0; k < 2; k++) {
        float sum = 0;
        for (int i = 0; i < 3; i++) sum += row_of(2 + bucket(b[i]), k);
        ck_assert_float_eq_tol(x[k], sum / 3, 1e-6f);
    }
    ck_assert_int_eq(tn_vectors_save(v, copy, TN_VECTORS_FASTTEXT_BIN), TN_OK); /* byte for byte */
    tn_tensor *again = tn_file_read(copy, BIN_MOST);
    ck_assert_int_eq(tn_numel(again), (int64_t)m.n);
    ck_assert_mem_eq(tn_data(again), m.at, m.n);
    tn_vectors_free(v);
}

/* The mean of the largest floats, whose sum overflows, is finite. */
TEST(fasttext_of_huge_numbers)
{
    const char *path = tn_test_file("huge.bin");
    image       m = model();
    float       x[2];
    for (int i = 0; i < 2 * (2 + BUCKETS); i++) memcpy(m.at + m.mark[3] + 17 + 4 * i, &(float){FLT_MAX}, 4);
    put(path, m.at, m.n);
    tn_vectors *v = tn_vectors_load(path, TN_VECTORS_ANY);
    ck_assert_msg(v, "%s", tn_error_message());
    ck_assert(tn_vectors_of(v, tn_text_of("ab"), x));
    ck_assert_msg(x[0] == FLT_MAX && x[1] == FLT_MAX, "%g %g", (double)x[0], (double)x[1]);
    ck_assert(tn_vectors_of(v, tn_text_of("b"), x));
    ck_assert_msg(x[0] == FLT_MAX && x[1] == FLT_MAX, "unseen: %g %g", (double)x[0], (double)x[1]);
    tn_vectors_free(v);
}

/* ---- broken files ------------------------------------------------------------------------------------------------ */

static int broken;

/* An error of the format (or of size), and no leak. */
static void refused(const void *data, size_t bytes, tn_vectors_format form, const char *what)
{
    const char *path = tn_test_file("broken");
    put(path, data, bytes);
    tn_vectors *v = tn_vectors_load(path, form);
    ck_assert_msg(!v && tn_error() == TN_EFORMAT, "%s: %s", what, v ? "was read" : tn_error_message());
    tn_clear_error();
    broken++;
}

static void refused_text(const char *text, tn_vectors_format form) { refused(text, strlen(text), form, text); }

TEST(broken_files)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "2\na 1\nb 2\n",
                                        "x 2\na 1 2\n",
                                        "2 y\na 1 2\n",
                                        "2 2 2\na 1 2\n",
                                        "-1 2\na 1 2\n",
                                        "0 2\n",
                                        "2 0\na\nb\n",
                                        "3 2\na 1 2\nb 3 4\n",
                                        "1 2\na 1 2\nb 3 4\n",
                                        "2 2\na 1 2\na 3 4\n",
                                        "2 2\na 1 2\nb 3\n",
                                        "2 2\na 1 2\n3 4\n",
                                        "2 2\na 1 2\nb x 4\n",
                                        "2 2\na 1 2\nb 3 4x\n",
                                        "2 2\na 1 2\nb nan 4\n",
                                        "2 2\na 1 2\nb inf 4\n",
                                        "2 2\na 1 2\nb 1e39 4\n",
                                        "2 2\na 1 2\nb -1e300 4\n",
                                        "99999999999999999999 2\na 1 2\n",
                                        "1000000 300\na 1 2\n",
                                        "2 9223372036854775807\na 1 2\n",
                                        "2000000000 1\na 1\n",
                                        "2 2\na 1 2\nb 3 --4\n",
                                        "2 1\na 1 2\nb 3 4\n"};
    static const char *const gloves[] = {"a\nb\n",         "a 1 2\nb 1\n", "a 1 2\nb 1 2 x\n",
                                         "a 1 2\na 1 2\n", "a x y\n",      "\n\n"};
    static const char *const binaries[] = {"",
                                           "2 2",
                                           "2 2\n",
                                           "x y\nabcdefgh",
                                           "2 2 2\nab",
                                           "1 1\n",
                                           "1 1\na 12",
                                           "1 1\na 1234 and more follows",
                                           "1000000 100\na 1234",
                                           "1 1\n 1234",
                                           "0 1\n",
                                           "1 0\na ",
                                           "9999999999999 1\na 1234",
                                           "1 2000000\na 1234",
                                           "2 1\na 1234a 1234"};
    broken = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) refused_text(texts[i], TN_VECTORS_TEXT);
    for (size_t i = 0; i < sizeof gloves / sizeof *gloves; i++) refused_text(gloves[i], TN_VECTORS_GLOVE_TEXT);
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++) refused_text(binaries[i], TN_VECTORS_BINARY);
    refused("1 1\na \0\0\300\177", 10, TN_VECTORS_BINARY, "NaN");
    refused("1 1\na\0b 1234", 12, TN_VECTORS_BINARY, "a NUL in a word");
    refused("2 2\na 1 2\nb\0c 3 4\n", 18, TN_VECTORS_TEXT, "a NUL in a word");
    ck_assert_int_ge(broken, 45);
}

/* Every number of the header set to invalid values, and the file truncated at every length. */
TEST(broken_models)
{
    static const struct {
        int     mark, at;
        int64_t value;
        bool    wide;
    } wrong[] = {{0, 0, 0, false},          {0, 0, -1, false},       {0, 0, 3, false},
                 {0, 0, 1 << 30, false},    {0, 28, 3, false},       {0, 28, 0, false},
                 {0, 32, 0, false},         {0, 32, -1, false},      {0, 32, 8, false},
                 {0, 32, INT32_MAX, false}, {0, 36, -1, false},      {0, 36, 4, false},
                 {0, 40, -1, false},        {0, 40, 200, false},     {0, 40, 1000, false},
                 {1, 0, 0, false},          {1, 0, -2, false},       {1, 0, INT32_MAX, false},
                 {1, 0, 3, false},          {1, 4, 1, false},        {1, 8, 1, false},
                 {1, 12, -1, true},         {1, 20, 5, true},        {2, 3, -1, true},
                 {3, 1, 1, true},           {3, 1, INT64_MAX, true}, {3, 1, -1, true},
                 {3, 9, 3, true},           {4, 1, 3, true},         {4, 9, 1, true}};
    broken = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        image m = model();
        char  what[64];
        if (wrong[i].wide) memcpy(m.at + m.mark[wrong[i].mark] + wrong[i].at, &wrong[i].value, 8);
        else memcpy(m.at + m.mark[wrong[i].mark] + wrong[i].at, &(int32_t){(int32_t)wrong[i].value}, 4);
        snprintf(what, sizeof what, "number %zu", i);
        refused(m.at, m.n, TN_VECTORS_FASTTEXT_BIN, what);
    }
    image m = model();
    for (size_t n = 0; n < m.n; n++) refused(m.at, n, TN_VECTORS_FASTTEXT_BIN, "cut off");
    m.at[m.n] = 0;
    refused(m.at, m.n + 1, TN_VECTORS_FASTTEXT_BIN, "one byte too long");
    m.at[4] = 10;
    refused(m.at, m.n, TN_VECTORS_FASTTEXT_BIN, "version 10");
    m = model(), m.at[0]++;
    refused(m.at, m.n, TN_VECTORS_FASTTEXT_BIN, "another magic number");
    m = model(), m.at[m.mark[3]] = 1;
    refused(m.at, m.n, TN_VECTORS_FASTTEXT_BIN, "quantized");
    m = model(), memcpy(m.at + m.mark[3] + 17, &(float){NAN}, 4);
    refused(m.at, m.n, TN_VECTORS_FASTTEXT_BIN, "NaN");
    m = model(), memcpy(m.at + m.mark[2] + 12, "ab\0", 3);
    refused(m.at, m.n, TN_VECTORS_FASTTEXT_BIN, "a word twice, and what follows out of step");
    ck_assert_int_ge(broken, 60);
}

TEST(no_file)
{
    ck_refused(tn_vectors_load("/nowhere/at/all", TN_VECTORS_ANY), TN_EIO,
               "tn_vectors_load: '/nowhere/at/all': cannot open: no such file or folder (errno 2)");
}

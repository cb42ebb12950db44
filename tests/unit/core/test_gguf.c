/* test_gguf.c — GGUF files: files written by PyPI's gguf are read to the bit, written files are read again, and format
 * violations are errors that name the position. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "autograd/autograd.h"

/* ---- files of other programs ------------------------------------------------------------------------------------- */

static tn_gguf *golden(void)
{
    tn_gguf *g = tn_gguf_open(tn_test_data("golden/packed.gguf"));
    ck_assert_msg(g != NULL, "%s", tn_error_message());
    return g;
}

TEST(reads_values)
{
    tn_gguf *g = golden();
    ck_assert_str_eq(tn_gguf_string_or(g, "general.architecture", ""), "test");
    ck_assert_int_eq(tn_gguf_i64_or(g, "u8", 0), 250);
    ck_assert_int_eq(tn_gguf_i64_or(g, "i8", 0), -3);
    ck_assert_int_eq(tn_gguf_i64_or(g, "u16", 0), 65000);
    ck_assert_int_eq(tn_gguf_i64_or(g, "i16", 0), -300);
    ck_assert_int_eq(tn_gguf_i64_or(g, "u32", 0), 4000000000);
    ck_assert_int_eq(tn_gguf_i64_or(g, "i32", 0), -70000);
    ck_assert_int_eq(tn_gguf_i64_or(g, "i64", 0), -((int64_t)1 << 60));
    ck_assert(tn_gguf_double_or(g, "f32", 0) == (double)0.1F && tn_gguf_double_or(g, "f64", 0) == 0.1);
    ck_assert(tn_gguf_bool_or(g, "bool", false));
    ck_assert_str_eq(tn_gguf_string_or(g, "string", ""), "K\xc3\xa4se");
    ck_assert_int_eq(tn_gguf_i64_or(g, "absent", 7), 7);
    ck_assert(tn_gguf_double_or(g, "absent", 7) == 7 && tn_gguf_bool_or(g, "absent", true));
    ck_assert_str_eq(tn_gguf_string_or(g, "absent", "x"), "x");
    ck_assert_int_eq(tn_error(), TN_OK);
    tn_gguf_i64_or(g, "u64", 0), ck_error_has(TN_EFORMAT, "u64 is not an integer of at most 63 bits");
    tn_gguf_i64_or(g, "string", 0), ck_error_has(TN_EFORMAT, "string is not an integer");
    tn_gguf_double_or(g, "i8", 0), ck_error_has(TN_EFORMAT, "i8 is not an f32 or f64");
    tn_gguf_bool_or(g, "u8", false), ck_error_has(TN_EFORMAT, "u8 is not a bool");
    tn_gguf_string_or(g, "words", ""), ck_error_has(TN_EFORMAT, "words is not a string");
    tn_gguf_value v = tn_gguf_find(g, "words");
    ck_assert(v.type == TN_GGUF_ARRAY && v.item == TN_GGUF_STRING && v.count == 3);
    ck_assert(tn_gguf_find(g, "absent").type == TN_GGUF_NONE);
    ck_assert_str_eq(tn_gguf_at(g, 0).key, "general.architecture");
    tn_gguf_at(g, tn_gguf_count(g)), ck_error_has(TN_EINDEX, "is out of range for 16 keys");
    static const char *const words[] = {"a", "", "zw\xc3\xb6lf"};
    int                      n = 0;
    for (tn_gguf_strings s = tn_gguf_strings_of(g, "words"); tn_gguf_next(&s); n++)
        ck_assert(s.i == n && s.bytes == strlen(words[n]) && !memcmp(s.text, words[n], s.bytes));
    ck_assert_int_eq(n, 3);
    const tn_tensor *floats = tn_gguf_numbers(g, "floats"), *ints = tn_gguf_numbers(g, "ints");
    ck_assert(tn_dtype_of(floats) == TN_F32 && ((const float *)tn_data(floats))[2] == 3.25F);
    ck_assert(tn_dtype_of(ints) == TN_I32 && ((const int32_t *)tn_data(ints))[1] == -2);
    ck_refused_has(tn_gguf_numbers(g, "words"), TN_EFORMAT, "words is not an array of numbers");
    ck_assert(!tn_gguf_strings_of(g, "ints").count);
    ck_error_has(TN_EFORMAT, "ints is not an array of strings");
    ck_refused_has(tn_gguf_numbers(g, "absent"), TN_EINDEX, "absent is missing, expected an array of numbers");
    tn_gguf_close(g);
}

static bool same(const tn_tensor *a, const tn_tensor *b)
{
    ck_assert_msg(a && b, "%s", tn_error_message());
    return tn_shape_equal(tn_shape_of(a), tn_shape_of(b)) && tn_dtype_of(a) == tn_dtype_of(b) &&
           !memcmp(tn_data(a), tn_data(b), (size_t)tn_numel(a) * tn_dtype_size(tn_dtype_of(a)));
}

TEST(reads_tensors)
{
    static const char *const names[] = {"F16", "Q4_0", "Q8_0", "Q4_K", "Q5_K", "Q6_K"};
    tn_gguf                 *g = golden();
    tn_safetensors          *f = tn_gguf_tensors(g);
    char                     other[16];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(other, sizeof other, "%s.f32", names[i]);
        const tn_tensor *want = tn_safetensors_get(f, other);
        ck_assert_msg(same(tn_safetensors_get(f, names[i]), want), "%s", names[i]);
        ck_assert(same(tn_gguf_get_as(g, names[i], TN_F32), want));
        tn_tensor *bf16 = tn_empty_of(TN_BF16, tn_shape_of(want));
        ck_assert_int_eq(tn_copy_from(bf16, want), TN_OK);
        ck_assert(same(tn_gguf_get_as(g, names[i], TN_BF16), bf16));
    }
    tn_safetensors_entry e = tn_safetensors_at(f, tn_safetensors_find(f, "Q4_K"));
    ck_assert_str_eq(e.stored, "Q4_K");
    ck_assert(e.loadable && e.dtype == TN_F32 && e.shape.n == 2 && e.shape.d[1] == 256 && e.bytes == 288);
    ck_assert_int_eq(tn_dtype_of(tn_safetensors_get(f, "I32")), TN_I32);
    ck_assert(same(tn_gguf_get_as(g, "BF16", TN_F32), tn_safetensors_get(f, "BF16.f32")));
    ck_assert(tn_dtype_of(tn_safetensors_get(f, "BF16")) == TN_BF16);
    ck_assert(tn_gguf_get_as(g, "Q8_0", TN_I32) == NULL);
    ck_error_has(TN_EDTYPE, "dtype is i32, but must be f32 or bf16");
    ck_refused_has(tn_safetensors_get(f, "other"), TN_EUNSUPPORTED,
                   "tensor 'other' is of type Q4_1, which Tenon does not load");
    ck_refused_has(tn_gguf_get_packed(g, "Q8_00"), TN_EINDEX, "did you mean 'Q8_0'?");
    tn_tensor *p = tn_gguf_get_packed(g, "other");
    ck_assert(p && tn_size(p, 0) == 1 && tn_size(p, 1) == 20);
    tn_gguf_close(g);
}

/* Q8_0 is written as gguf writes it, to the bit. */
TEST(writes_q8_0)
{
    tn_gguf        *g = golden();
    tn_gguf_writer *w = tn_gguf_writer_new();
    ck_assert_int_eq(tn_safetensors_put(tn_gguf_writer_tensors(w), "x", tn_safetensors_get(tn_gguf_tensors(g), "wide")),
                     TN_OK);
    tn_tensor *t = tn_gguf_write(w, "Q8_0");
    tn_gguf   *again = tn_gguf_read(tn_data(t), (size_t)tn_numel(t));
    ck_assert_msg(again != NULL, "%s", tn_error_message());
    ck_assert(same(tn_gguf_get_packed(again, "x"), tn_gguf_get_packed(g, "wide.q8_0")));
    tn_gguf_close(again), tn_gguf_close(g);
    tn_gguf_writer_free(w);
}

static tn_tensor *written(const char *packed)
{
    tn_gguf_writer        *w = tn_gguf_writer_new();
    tn_safetensors_writer *f = tn_gguf_writer_tensors(w);
    tn_tensor             *x = tn_normal(TN_SHAPE(4, 64), 0, 1), *b = tn_empty_of(TN_BF16, TN_SHAPE(2, 32));
    tn_copy_from(b, tn_narrow(tn_narrow(x, 0, 0, 2), 1, 3, 32));
    tn_gguf_put_string(w, "general.architecture", "llama");
    tn_gguf_put_u32(w, "n", 4294967295);
    tn_gguf_put_float(w, "f", 0.5);
    tn_gguf_put_bool(w, "b", true);
    tn_gguf_put_numbers(w, "scores", tn_narrow(tn_zeros(TN_SHAPE(5)), 0, 1, 3));
    tn_gguf_open_strings(w, "words", 2);
    tn_gguf_add_string(w, "one", 3);
    tn_gguf_add_string(w, "", 0);
    tn_safetensors_put(f, "x", x);
    tn_safetensors_put(f, "turned", tn_transpose(x, 0, 1));
    tn_safetensors_put(f, "b", b);
    tn_safetensors_put(f, "norm", tn_narrow(x, 1, 1, 1));
    tn_safetensors_put(f, "vector", tn_ones(TN_SHAPE(32)));
    tn_safetensors_put(f, "empty", tn_ones(TN_SHAPE(0, 32)));
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
    tn_tensor *t = tn_gguf_write(w, packed);
    ck_assert_msg(t != NULL, "%s", tn_error_message());
    tn_gguf *g = tn_gguf_read(tn_data(t), (size_t)tn_numel(t));
    ck_assert_msg(g != NULL, "%s", tn_error_message());
    const bool q = packed && *packed == 'Q', h = packed && *packed == 'B';
    f = NULL;
    tn_safetensors *s = tn_gguf_tensors(g);
    ck_assert_str_eq(tn_safetensors_at(s, 0).stored, q ? "Q8_0" : h ? "BF16" : "F32");
    ck_assert_str_eq(tn_safetensors_at(s, 1).stored, h ? "BF16" : "F32"); /* rows of 4 */
    ck_assert_str_eq(tn_safetensors_at(s, 2).stored, q ? "Q8_0" : h || !packed ? "BF16" : "F32");
    ck_assert_str_eq(tn_safetensors_at(s, 4).stored, "F32");
    if (!packed) ck_assert(same(tn_safetensors_get(s, "x"), x) && same(tn_safetensors_get(s, "b"), b));
    if (!packed) ck_assert(same(tn_safetensors_get(s, "turned"), tn_contiguous(tn_transpose(x, 0, 1))));
    ck_assert_int_eq(tn_gguf_i64_or(g, "n", 0), 4294967295);
    ck_assert(tn_gguf_double_or(g, "f", 0) == 0.5 && tn_gguf_bool_or(g, "b", false));
    ck_assert_int_eq(tn_gguf_find(g, "scores").count, 3);
    ck_assert_int_eq(tn_gguf_find(g, "words").count, 2);
    tn_gguf_close(g);
    tn_gguf_writer_free(w);
    return t;
}

TEST(writes_and_reads)
{
    written(NULL), written("F32"), written("BF16"), written("Q8_0");
    tn_gguf_writer *w = tn_gguf_writer_new();
    ck_refused_has(tn_gguf_write(w, "Q4_0"), TN_EINVAL, "packed is 'Q4_0', but must be F32, BF16 or Q8_0");
    tn_gguf_put_u32(w, "n", -1), ck_error_has(TN_EINVAL, "n is -1, but must be a u32");
    tn_gguf_put_u32(w, "", 1), ck_error_has(TN_EINVAL, "a key must have 1 to 65535 bytes");
    tn_gguf_add_string(w, "", 0), ck_error_has(TN_ESTATE, "no array of strings is open");
    tn_gguf_open_strings(w, "words", 2);
    tn_gguf_put_u32(w, "n", 1), ck_error_has(TN_ESTATE, "2 strings of the open array are missing");
    ck_refused_has(tn_gguf_write(w, NULL), TN_ESTATE, "2 strings of the open array");
    tn_gguf_add_string(w, "x", 1), tn_gguf_add_string(w, "y", 1);
    tn_safetensors_put(tn_gguf_writer_tensors(w), "five", tn_ones(TN_SHAPE(1, 1, 1, 1, 1)));
    ck_refused_has(tn_gguf_write(w, NULL), TN_EUNSUPPORTED, "GGUF has no tensors of more than 4 dims");
    tn_gguf_writer_free(w);
}

/* ---- format violations ------------------------------------------------------------------------------------------- */

/* A file under construction. */
static struct {
    size_t        n;
    unsigned char at[1 << 16];
} file;

static void put(uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) file.at[file.n++] = (unsigned char)(v >> 8 * i);
}
static void put_string(const char *s, size_t n) { put(n, 8), memcpy(file.at + file.n, s, n), file.n += n; }

/* The changes of a malformed file: a good one has all members as in `good`. */
typedef struct {
    uint64_t    magic, version, tensors, pairs;       /* in the header */
    const char *key;                                  /* of the first pair */
    uint64_t    key_bytes, type;                      /* of it, and its type */
    uint64_t    value, text_bytes;                    /* if it is a u32, or a bool; or the bytes of a string */
    uint64_t    item, count;                          /* if it is an array */
    int         deep;                                 /* arrays in arrays */
    uint64_t    align;                                /* general.alignment, a second pair */
    const char *name;                                 /* of the first tensor */
    uint64_t    name_bytes, dims, dim[4], kind, from; /* ... */
    const char *name2;                                /* and of the second, F32 [2] */
    uint64_t    from2;
    int64_t     data; /* bytes after the header's padding */
    tn_status   status;
    const char *says;
} malformed;

static const malformed good = {0x46554747, 3,   2, 2, "k",    1, TN_GGUF_U32, 7,   0,  4,  0,     0,
                               32,         "a", 1, 2, {2, 3}, 0, 0,           "b", 32, 64, TN_OK, NULL};

static void make(const malformed *m)
{
    file.n = 0;
    put(m->magic, 4), put(m->version, 4), put(m->tensors, 8), put(m->pairs, 8);
    put(m->key_bytes, 8), memcpy(file.at + file.n, m->key, strlen(m->key)), file.n += strlen(m->key);
    put(m->type, 4);
    if (m->type == TN_GGUF_STRING) put(m->text_bytes, 8), put('x', 1);
    else if (m->type == TN_GGUF_ARRAY) {
        for (int i = 0; i < m->deep; i++) put(TN_GGUF_ARRAY, 4), put(1, 8);
        put(m->item, 4), put(m->count, 8), put(m->value, 4);
    } else put(m->value, m->type == TN_GGUF_BOOL ? 1 : 4);
    put_string("general.alignment", 17), put(TN_GGUF_U32, 4), put(m->align, 4);
    put(m->name_bytes, 8), memcpy(file.at + file.n, m->name, strlen(m->name)), file.n += strlen(m->name);
    put(m->dims, 4);
    for (uint64_t d = 0; d < m->dims && d < 4; d++) put(m->dim[d], 8);
    put(m->kind, 4), put(m->from, 8);
    put_string(m->name2, strlen(m->name2)), put(1, 4), put(2, 8), put(0, 4), put(m->from2, 8);
    while (file.n % 32) put(0, 1);
    for (int64_t i = 0; i < m->data; i++) put(1, 1);
}

/* Reads a copy of exactly n bytes, so that a sanitizer detects a read past the end, and everything in it. */
static bool reads(size_t n)
{
    tn_scope scope = tn_scope_begin();
    void    *copy = malloc(n ? n : 1);
    memcpy(copy, file.at, n);
    tn_gguf *g = tn_gguf_read(copy, n);
    for (int64_t i = 0; i < tn_safetensors_count(tn_gguf_tensors(g)) && tn_error() == TN_OK; i++)
        tn_safetensors_get_at(tn_gguf_tensors(g), i);
    for (int64_t i = 0; i < tn_gguf_count(g) && tn_error() == TN_OK; i++) tn_gguf_at(g, i);
    tn_gguf_close(g);
    free(copy);
    tn_scope_end(scope);
    return tn_error() == TN_OK;
}

#define F TN_EFORMAT
#define U TN_EUNSUPPORTED
#define BIG UINT64_MAX
#define ROW(status_, says_, ...)                      \
    {                                                 \
        .status = status_, .says = says_, __VA_ARGS__ \
    }
/* A member that is 0 here is as in `good`; ZERO means 0. */
#define ZERO ((uint64_t)0x5a45524f)
static const malformed rows[] = {
    ROW(F, "it does not start with 'GGUF'", .magic = 0x46554746),
    ROW(F, "it does not start with 'GGUF'", .magic = 0x47475546),
    ROW(F, "it does not start with 'GGUF'", .magic = 0x04034b50),
    ROW(F, "it does not start with 'GGUF'", .magic = ZERO),
    ROW(U, "of an unknown version", .version = 4),
    ROW(U, "of version 1", .version = 1),
    ROW(U, "in big-endian order", .version = 0x03000000),
    ROW(U, "of an unknown version", .version = 0xffffffff),
    ROW(U, "in big-endian order", .version = ZERO),
    ROW(F, "at most 100000 tensors are supported, got 100001", .tensors = 100001),
    ROW(F, "at most 100000 tensors are supported", .tensors = BIG),
    ROW(F, "at most 100000 tensors are supported", .tensors = (uint64_t)1 << 63),
    ROW(F, "bytes are needed here, but the file ends earlier", .tensors = 100000),
    ROW(F, "unknown tensor type", .tensors = 3),
    ROW(F, "unexpected bytes after the tensors", .tensors = 1),
    ROW(F, "unexpected bytes after the tensors", .tensors = ZERO),
    ROW(F, "at most 100000 keys are supported", .pairs = 100001),
    ROW(F, "at most 100000 keys are supported", .pairs = BIG),
    ROW(F, "bytes are needed here", .pairs = 100000),
    ROW(F, "", .pairs = 3),
    ROW(F, "", .pairs = 1),
    ROW(F, "", .pairs = ZERO),
    /* keys */
    ROW(F, "byte 24: a key must have 1 to 65535 bytes, got 0", .key = "", .key_bytes = ZERO),
    ROW(F, "bytes are needed here", .key_bytes = 65536),
    ROW(F, "byte 32: 18446744073709551615 bytes are needed here, but the file ends earlier", .key_bytes = BIG),
    ROW(F, "bytes are needed here", .key_bytes = (uint64_t)1 << 63),
    ROW(F, "", .key_bytes = 2),
    ROW(F, "byte 32: a key must be UTF-8", .key = "\xff"),
    ROW(F, "a key must be UTF-8", .key = "\xc0\x80", .key_bytes = 2),
    ROW(F, "a key must be UTF-8", .key = "a\xed\xa0\x80", .key_bytes = 4),
    ROW(F, "duplicate key 'general.alignment'", .key = "general.alignment", .key_bytes = 17, .value = 32),
    /* values */
    ROW(F, "byte 33: the type of a value must be from 0 to 12, got 13", .type = 13),
    ROW(F, "the type of a value must be from 0 to 12", .type = 0xffffffff),
    ROW(F, "byte 37: a bool must be 0 or 1, got 2", .type = TN_GGUF_BOOL, .value = 2),
    ROW(F, "a bool must be 0 or 1, got 255", .type = TN_GGUF_BOOL, .value = 255),
    ROW(F, "", .type = ZERO),
    ROW(F, "", .type = TN_GGUF_U16),
    ROW(F, "", .type = TN_GGUF_U64),
    ROW(F, "", .type = TN_GGUF_F64),
    ROW(F, "bytes are needed here", .type = TN_GGUF_STRING, .text_bytes = 4096),
    ROW(F, "bytes are needed here", .type = TN_GGUF_STRING, .text_bytes = BIG),
    ROW(F, "bytes are needed here", .type = TN_GGUF_STRING, .text_bytes = (uint64_t)1 << 63),
    ROW(F, "", .type = TN_GGUF_STRING, .text_bytes = ZERO),
    ROW(F, "", .type = TN_GGUF_STRING, .text_bytes = 2),
    ROW(F, "an array has more items than the file has bytes", .type = TN_GGUF_ARRAY, .count = 1000),
    ROW(F, "an array has more items", .type = TN_GGUF_ARRAY, .count = BIG),
    ROW(F, "an array has more items", .type = TN_GGUF_ARRAY, .count = (uint64_t)1 << 62),
    ROW(F, "an array has more items", .type = TN_GGUF_ARRAY, .count = ((uint64_t)1 << 62) + 1),
    ROW(F, "an array has more items", .type = TN_GGUF_ARRAY, .item = TN_GGUF_STRING, .count = BIG),
    ROW(F, "an array has more items", .type = TN_GGUF_ARRAY, .item = TN_GGUF_U64, .count = BIG / 8 + 1),
    ROW(F, "", .type = TN_GGUF_ARRAY, .item = TN_GGUF_STRING, .count = 3),
    ROW(F, "", .type = TN_GGUF_ARRAY, .item = ZERO, .count = 200),
    ROW(F, "the type of a value must be from 0 to 12, got 13", .type = TN_GGUF_ARRAY, .item = 13, .count = 1),
    ROW(F, "the type of a value must be from 0 to 12", .type = TN_GGUF_ARRAY, .item = TN_GGUF_ARRAY, .count = 1,
        .value = 77),
    ROW(F, "arrays may be nested 8 deep", .type = TN_GGUF_ARRAY, .deep = 9, .count = 1),
    ROW(F, "arrays may be nested 8 deep", .type = TN_GGUF_ARRAY, .deep = 1000, .count = 1),
    ROW(F, "an array has more items", .type = TN_GGUF_ARRAY, .deep = 3, .count = BIG),
    ROW(F, "", .type = TN_GGUF_ARRAY, .item = TN_GGUF_ARRAY, .count = BIG, .value = 4),
    /* alignment */
    ROW(F, "general.alignment must be a u32, a power of 2 and at most 2^20, got 0", .align = ZERO),
    ROW(F, "got 33", .align = 33),
    ROW(F, "got 2097152", .align = 1 << 21),
    ROW(F, "got 4294967295", .align = 0xffffffff),
    ROW(F, "got 2147483648", .align = 0x80000000),
    ROW(F, "a tensor must start at the end of the previous one", .align = 8),
    ROW(F, "a tensor must start at the end of the previous one", .align = 64),
    ROW(F, "", .align = 1 << 20),
    /* names of tensors */
    ROW(F, "the tensor's name '' must have 1 to 1024 bytes", .name = "", .name_bytes = ZERO),
    ROW(F, "bytes are needed here", .name_bytes = 1025),
    ROW(F, "bytes are needed here", .name_bytes = BIG),
    ROW(F, "", .name_bytes = 2),
    ROW(F, "the tensor's name '\\xff' is not valid UTF-8", .name = "\xff"),
    ROW(F, "the tensor's name '\\x0a' has a control character", .name = "\n"),
    ROW(F, "the tensor's name '\\x7f' has a control character", .name = "\x7f"),
    ROW(F, "has a control character", .name = "\x1b[31m", .name_bytes = 5),
    ROW(F, "duplicate tensor 'b'", .name = "b"),
    ROW(F, "duplicate tensor 'a'", .name2 = "a"),
    ROW(F, "the tensor's name '' must have 1 to 1024 bytes", .name2 = ""),
    /* shapes */
    ROW(F, "a tensor may have at most 4 dims, got 5", .dims = 5),
    ROW(F, "a tensor may have at most 4 dims", .dims = 0xffffffff),
    ROW(F, "a tensor must start at the end", .dims = 1, .dim = {9}),
    ROW(F, "a tensor must start at the end", .dims = 3, .dim = {2, 3, 2}),
    ROW(F, "a tensor must start at the end", .dims = ZERO, .kind = 28, .from = 1),
    ROW(F, "a dim must be less than 2^62, got 18446744073709551615", .dim = {BIG, 3}),
    ROW(F, "a dim must be less than 2^62", .dim = {2, (uint64_t)1 << 63}),
    ROW(F, "a tensor has more than 2^54 elements", .dim = {(uint64_t)1 << 61, 3}),
    ROW(F, "a tensor has more than 2^54 elements", .dim = {(uint64_t)1 << 32, (uint64_t)1 << 32}),
    ROW(F, "a tensor has more than 2^54 elements", .dims = 4,
        .dim = {(uint64_t)1 << 31, (uint64_t)1 << 31, (uint64_t)1 << 31, (uint64_t)1 << 31}),
    ROW(F, "a tensor must not end beyond the end of the file", .dim = {1 << 20, 1 << 20}),
    ROW(F, "a tensor must start at the end of the previous one", .dim = {2, 9}),
    ROW(F, "a tensor must start at the end of the previous one", .dim = {ZERO, 3}),
    /* types */
    ROW(F, "unknown tensor type, got 4", .kind = 4),
    ROW(F, "unknown tensor type, got 31", .kind = 31),
    ROW(F, "unknown tensor type, got 42", .kind = 42),
    ROW(F, "unknown tensor type, got 4294967295", .kind = 0xffffffff),
    ROW(F, "rows of Q8_0 consist of blocks of 32 elements, but a row has 2", .kind = 8),
    ROW(F, "rows of Q4_K consist of blocks of 256 elements, but a row has 32", .kind = 12, .dim = {32, 8}),
    ROW(F, "rows of Q4_0 consist of blocks of 32 elements, but a row has 1", .kind = 2, .dims = ZERO),
    ROW(U, "tensor 'a' is of type Q4_1, which Tenon does not load", .kind = 3, .dim = {32, 1}),
    ROW(U, "tensor 'a' is of type IQ4_NL, which Tenon does not load", .kind = 20, .dim = {32, 1}),
    ROW(F, "a tensor must start at the end", .kind = 28),
    /* places */
    ROW(F, "byte 107: a tensor must start at the end of the previous one", .from = 32),
    ROW(F, "a tensor must start at the end of the previous one", .from = BIG),
    ROW(F, "a tensor must start at the end of the previous one", .from2 = ZERO),
    ROW(F, "a tensor must start at the end of the previous one", .from2 = 24),
    ROW(F, "a tensor must start at the end of the previous one", .from2 = 64),
    ROW(F, "but the file has", .data = 39),
    ROW(F, "but the file has", .data = 1),
    ROW(F, "1 unexpected bytes after the tensors", .data = 65),
    ROW(F, "1000 unexpected bytes after the tensors", .data = 1064),
};

/* The row's member if it is set. */
#define TAKE(member) \
    if (r->member) m.member = r->member == ZERO ? 0 : r->member

TEST_ROWS(refuses, rows)
{
    const malformed *r = &rows[_i];
    malformed        m = good;
    TAKE(magic);
    TAKE(version);
    TAKE(tensors);
    TAKE(pairs);
    TAKE(key_bytes);
    TAKE(type);
    TAKE(value);
    TAKE(text_bytes);
    TAKE(item);
    TAKE(count);
    TAKE(align);
    TAKE(name_bytes);
    TAKE(dims);
    TAKE(kind);
    TAKE(from);
    TAKE(from2);
    for (int d = 0; d < 4; d++) TAKE(dim[d]);
    if (r->key) m.key = r->key;
    if (r->name) m.name = r->name;
    if (r->name2) m.name2 = r->name2;
    if (r->deep) m.deep = r->deep;
    if (r->data) m.data = r->data;
    make(&m);
    const size_t before = tn_memory_now().live;
    ck_assert_msg(!reads(file.n), "row %d was accepted", _i);
    ck_error_has(r->status, r->says);
    ck_assert_msg(tn_memory_now().live <= before + (1 << 16), "row %d keeps memory", _i);
}

TEST(accepts)
{
    make(&good);
    ck_assert_msg(reads(file.n), "%s", tn_error_message());
    malformed m = good;
    m.version = 2, m.type = TN_GGUF_ARRAY, m.deep = 7, m.count = 1;
    make(&m);
    ck_assert_msg(reads(file.n), "%s", tn_error_message());
    m = good, m.data = 40; /* without the last padding */
    make(&m);
    ck_assert_msg(reads(file.n), "%s", tn_error_message());
    ck_assert(sizeof rows / sizeof *rows >= 100);
}

TEST(every_truncation_and_bit)
{
    make(&good);
    const size_t n = file.n, data = 64 - 40;
    for (size_t i = 0; i < n - data; i++) {
        ck_assert_msg(!reads(i), "%zu bytes of %zu were accepted", i, n);
        ck_assert(tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED || (!i && tn_error() == TN_EINVAL));
        tn_clear_error();
    }
    int refused = 0;
    for (size_t i = 0; i < 8 * (n - 64); i++) {
        file.at[i / 8] ^= (unsigned char)(1 << i % 8);
        refused += !reads(n);
        tn_clear_error();
        file.at[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    ck_assert_int_gt(refused, (int)(n - 64) * 4);
}

/* A header longer than the first part that is read, from a file. */
TEST(long_header)
{
    tn_gguf_writer *w = tn_gguf_writer_new();
    char            word[32];
    tn_gguf_open_strings(w, "words", 100000);
    for (int i = 0; i < 100000; i++)
        ck_assert_int_eq(tn_gguf_add_string(w, word, (size_t)snprintf(word, sizeof word, "number %d", i)), TN_OK);
    tn_safetensors_put(tn_gguf_writer_tensors(w), "x", tn_ones(TN_SHAPE(2, 3)));
    const char *path = tn_test_file("long.gguf");
    ck_assert_msg(tn_gguf_save(w, path, NULL) == TN_OK, "%s", tn_error_message());
    tn_gguf *g = tn_gguf_open(path);
    ck_assert_msg(g != NULL, "%s", tn_error_message());
    int64_t n = 0;
    for (tn_gguf_strings s = tn_gguf_strings_of(g, "words"); tn_gguf_next(&s); n++)
        if (s.i == 99999) ck_assert(s.bytes == 12 && !memcmp(s.text, "number 99999", 12));
    ck_assert_int_eq(n, 100000);
    ck_assert(same(tn_safetensors_get(tn_gguf_tensors(g), "x"), tn_ones(TN_SHAPE(2, 3))));
    tn_gguf_close(g);
    tn_gguf_writer_free(w);
}

/* test_safetensors.c — safetensors files: the reference's files are read, and written files equal the reference's. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"
#include "tests/common/file_bytes.h"

#include "core/core.h"
#include "tests/common/faults.h"
#include "tests/common/layouts.h"
#include <locale.h>

/* ---- valid files ------------------------------------------------------------------------------------------------- */

TEST(as_others_write_them)
{
    static const struct {
        const char *header;
        int         data, count;
    } rows[] = {
        {"{}", 0, 0},
        {"\t\n{}\r ", 0, 0}, /* the reference accepts white space on both sides */
        {"{\"__metadata__\":{}}", 0, 0},
        {"{\"__metadata__\":{\"\":\"\"}}", 0, 0},
        {S, 8, 1},
        {S "          ", 8, 1},
        {"{ \"a\" : { \"data_offsets\" : [ 0 , 8 ] , \"shape\" : [ 2 ] , \"dtype\" : \"F32\" } }", 8, 1},
        {"{\"\\u0061\":{\"\\u0064type\":\"F\\u0033\\u0032\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, 1},
        {"{" E("b", "F32", "[1]", "[4,8]") "," E("a", "F32", "[1]", "[0,4]") "}", 8, 2}, /* in any order */
        {"{" E("a", "F32", "[1]", "[0,4]") ",\"__metadata__\":{\"format\":\"pt\"}}", 4, 1},
        {"{" E("z", "F32", "[0]", "[4,4]") "," E("a", "F32", "[1]", "[0,4]") "," E("y", "I8", "[0,7]", "[0,0]") "}", 4,
         3},
        {"{" E("\xc3\xa9/\xe2\x82\xac \xf0\x9f\x98\x80", "U8", "[]", "[0,1]") "}", 1, 1},
        {"{" E("a", "F32", "[1,1,1,1,1,1,1,1]", "[0,4]") "}", 4, 1},
        {T("\"U8\"", "[0,281474976710655]", "[0,0]"), 0, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const bytes    *f = file(rows[i].header, rows[i].data);
        void           *copy;
        tn_safetensors *s = open_exact(f->data, f->n, &copy);
        ck_assert_msg(s && tn_error() == TN_OK, "%s: %s", rows[i].header, tn_error_message());
        ck_assert_int_eq(tn_safetensors_count(s), rows[i].count);
        tn_safetensors_close(s);
        free(copy);
    }
}

TEST(every_type)
{
    static const struct {
        const char *type;
        int         size;
        tn_dtype    dt;
    } rows[] = {{"BOOL", 1, TN_BOOL}, {"U8", 1, TN_U8},     {"I8", 1, TN_I32},  {"I16", 2, TN_I32}, {"U16", 2, TN_I32},
                {"F16", 2, TN_F32},   {"BF16", 2, TN_BF16}, {"I32", 4, TN_I32}, {"U32", 4, TN_I64}, {"F32", 4, TN_F32},
                {"F64", 8, TN_F64},   {"I64", 8, TN_I64},   {"U64", 8, TN_I64}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char header[200];
        snprintf(header, sizeof header, "{\"x\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%d]}}",
                 rows[i].type, 3 * rows[i].size);
        bytes         *f = (bytes *)(uintptr_t)file(header, 3 * rows[i].size);
        unsigned char *p = f->data + f->n - 3 * rows[i].size;
        for (int k = 0; k < 3 * rows[i].size && i; k++) p[k] = (unsigned char)(0x71 + 5 * k);
        if (*rows[i].type == 'I') p[rows[i].size - 1] = 0xfe; /* a negative one */
        tn_safetensors *s = tn_safetensors_read(f->data, f->n);
        ck_assert_msg(s != NULL, "%s", tn_error_message());
        tn_safetensors_entry e = tn_safetensors_at(s, 0);
        ck_assert_str_eq(e.name, "x");
        ck_assert_str_eq(e.stored, rows[i].type);
        ck_assert(e.loadable);
        ck_assert_int_eq(e.dtype, rows[i].dt);
        ck_assert_int_eq(e.bytes, 3 * rows[i].size);
        ck_assert(tn_shape_equal(e.shape, TN_SHAPE(3)));
        if (i == 12) p[7] = p[15] = p[23] = 0;
        tn_tensor *t = tn_safetensors_get(s, "x");
        ck_assert_msg(t != NULL, "%s", tn_error_message());
        ck_assert_int_eq(tn_dtype_of(t), rows[i].dt);
        for (int k = 0; k < 3; k++) {
            uint64_t v = 0;
            for (int b = 0; b < rows[i].size; b++) v |= (uint64_t)p[k * rows[i].size + b] << 8 * b;
            uint64_t top = (uint64_t)1 << (8 * rows[i].size - 1);
            if (*rows[i].type == 'I' && (v & top)) v |= ~(top | (top - 1));
            if (*rows[i].type == 'F' && rows[i].size == 2) continue; /* test_npy reads every f16 */
            if (strchr("FB", *rows[i].type))
                ck_assert_mem_eq((const char *)tn_data(t) + k * rows[i].size, &v, (size_t)rows[i].size);
            else ck_assert_int_eq(tn_get_i64(t, k), (int64_t)v);
        }
        tn_safetensors_close(s);
    }
}

TEST(listing_without_loading)
{
    const bytes    *f = file("{" E("w", "F8_E4M3", "[2,3]", "[0,6]") "," E(
                                 "b", "F16", "[3]", "[6,12]") ",\"__metadata__\":{\"format\":\"pt\",\"step\":\"7\"}}",
                             12);
    tn_safetensors *s = tn_safetensors_read(f->data, f->n);
    ck_assert_int_eq(tn_safetensors_count(s), 2);
    tn_safetensors_entry e = tn_safetensors_at(s, 0);
    ck_assert_str_eq(e.name, "w");
    ck_assert_str_eq(e.stored, "F8_E4M3");
    ck_assert(!e.loadable);
    ck_assert(tn_shape_equal(e.shape, TN_SHAPE(2, 3)));
    e = tn_safetensors_at(s, 1);
    ck_assert_int_eq(e.dtype, TN_F32);
    ck_assert_int_eq(tn_safetensors_find(s, "b"), 1);
    ck_assert_int_eq(tn_safetensors_find(s, "c"), -1);
    ck_assert_int_eq(tn_safetensors_find(s, NULL), -1);
    ck_assert_int_eq(tn_safetensors_find(NULL, "b"), -1);
    ck_assert_ptr_nonnull(tn_safetensors_get_at(s, 1));

    ck_assert_str_eq(tn_safetensors_metadata(s, "step"), "7");
    ck_assert_ptr_null(tn_safetensors_metadata(s, "epoch"));
    ck_assert_ptr_null(tn_safetensors_metadata(NULL, "step"));
    ck_assert_int_eq(tn_safetensors_metadata_count(s), 2);
    const char *value;
    ck_assert_str_eq(tn_safetensors_metadata_at(s, 0, &value), "format");
    ck_assert_str_eq(value, "pt");
    ck_assert_str_eq(tn_safetensors_metadata_at(s, 1, NULL), "step");
    ck_assert_int_eq(tn_error(), TN_OK);

    ck_assert_str_eq(tn_safetensors_at(s, 2).name, "");
    ck_error_has(TN_EINDEX, "tn_safetensors_at: 2 is outside 0 … 1");
    ck_assert_str_eq(tn_safetensors_at(s, -1).name, "");
    ck_error_has(TN_EINDEX, "tn_safetensors_at: -1 is outside 0 … 1");
    ck_refused_has(tn_safetensors_get_at(s, 2), TN_EINDEX, "tn_safetensors_get_at: 2 is outside 0 … 1");
    ck_assert_str_eq(tn_safetensors_metadata_at(s, 2, &value), "");
    ck_error_has(TN_EINDEX, "tn_safetensors_metadata_at: 2 is outside 0 … 1");
    ck_assert_str_eq(tn_safetensors_at(NULL, 0).name, "");
    ck_assert_str_eq(tn_safetensors_metadata_at(NULL, 0, &value), "");
    ck_assert_int_eq(tn_error(), TN_OK);
    ck_refused_has(tn_safetensors_get(NULL, "x"), TN_EINVAL, "tn_safetensors_get: the file is NULL");
    ck_refused_has(tn_safetensors_get(s, NULL), TN_EINVAL, "tn_safetensors_get: the name is NULL");
    tn_safetensors_close(s);
    tn_safetensors_close(NULL);
    ck_assert_int_eq(tn_safetensors_count(NULL), 0);
}

TEST(did_you_mean)
{
    static const char *const names[] = {"bert.encoder.layer.0.output.dense.weight",
                                        "bert.encoder.layer.0.output.dense.bias", "bert.pooler.dense.weight",
                                        "cls.predictions.bias", "x"};
    static const char *const asked[][2] = {
        {"bert.encoder.layer.0.output.dense.wieght", "'bert.encoder.layer.0.output.dense.weight'"},
        {"pooler.dense.weight", "'bert.pooler.dense.weight'"},    /* the start is missing */
        {"model.cls.predictions.bias", "'cls.predictions.bias'"}, /* or too long */
        {"cls.prediction.bias", "'cls.predictions.bias'"},
        {"decoder.something.else", NULL},
        {"y", NULL},
        {"", NULL},
    };
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    for (int i = 0; i < 5; i++) tn_safetensors_put(w, names[i], tn_zeros(TN_SHAPE(1)));
    tn_tensor      *f = tn_safetensors_write(w);
    tn_safetensors *s = tn_safetensors_read(tn_data(f), (size_t)tn_numel(f));
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char expected[200];
        snprintf(expected, sizeof expected, "tn_safetensors_get: no tensor '%s' among its 5%s%s%s", asked[i][0],
                 asked[i][1] ? "; did you mean " : "", asked[i][1] ? asked[i][1] : "", asked[i][1] ? "?" : "");
        ck_assert_ptr_null(tn_safetensors_get(s, asked[i][0]));
        ck_assert_str_eq(tn_error_message(), expected);
        ck_error_has(TN_EINDEX, "");
    }
    tn_safetensors_close(s);
    tn_safetensors_writer_free(w);
}

/* ---- written files ----------------------------------------------------------------------------------------------- */

/* The reference's serialisation of the same tensors (its test_serialization and its rule of the order), with the
 * metadata that Hugging Face's readers require. */
TEST(written_as_the_reference_writes)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    const float            six[] = {0, 1, 2, 3, 4, 5};
    tn_safetensors_put(w, "b", tn_from_data(TN_F32, TN_SHAPE(1, 2, 3), six));
    tn_safetensors_put(w, "u", tn_zeros_of(TN_U8, TN_SHAPE(3)));
    tn_safetensors_put(w, "k", tn_ones_of(TN_BOOL, TN_SHAPE(1)));
    tn_safetensors_put(w, "i", tn_zeros_of(TN_I64, TN_SHAPE(0, 2)));
    tn_safetensors_put(w, "a", tn_from_data(TN_F32, TN_SCALAR, six + 1));
    tn_safetensors_put(w, "d", tn_zeros_of(TN_F64, TN_SHAPE(1)));
    tn_safetensors_put(w, "h", tn_zeros_of(TN_BF16, TN_SHAPE(1)));
    tn_safetensors_put(w, "j", tn_zeros_of(TN_I32, TN_SHAPE(1)));
    tn_safetensors_put(w, "a.b", tn_zeros_of(TN_F32, TN_SHAPE(0)));
    tn_safetensors_put(w, "B", tn_zeros_of(TN_F32, TN_SHAPE(0)));
    tn_tensor *f = tn_safetensors_write(w);
    /* clang-format off */
    const char *header =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        E("i", "I64", "[0,2]", "[0,0]") ","
        E("d", "F64", "[1]", "[0,8]") ","
        E("B", "F32", "[0]", "[8,8]") ","
        E("a", "F32", "[]", "[8,12]") ","
        E("a.b", "F32", "[0]", "[12,12]") ","
        E("b", "F32", "[1,2,3]", "[12,36]") ","
        E("j", "I32", "[1]", "[36,40]") ","
        E("h", "BF16", "[1]", "[40,42]") ","
        E("u", "U8", "[3]", "[42,45]") ","
        E("k", "BOOL", "[1]", "[45,46]") "}";
    /* clang-format on */
    ck_assert_msg(f != NULL, "%s", tn_error_message());
    const unsigned char *p = tn_data(f);
    size_t               n = strlen(header), padded = (n + 7) / 8 * 8;
    ck_assert_int_eq(tn_numel(f), 8 + (int64_t)padded + 46);
    for (int i = 0; i < 8; i++) ck_assert_int_eq(p[i], (int)(padded >> 8 * i & 255));
    ck_assert_msg(!memcmp(p + 8, header, n), "%.*s\n%s", (int)n, (const char *)p + 8, header);
    for (size_t i = n; i < padded; i++) ck_assert_int_eq(p[8 + i], ' ');
    ck_assert_mem_eq(p + 8 + padded + 12, six, 24);
    ck_assert_int_eq(p[8 + padded + 45], 1);
    tn_safetensors_writer_free(w);

    w = tn_safetensors_writer_new();
    tn_safetensors_note(w, "format", "np");
    tn_safetensors_note(w, "step", "1");
    tn_safetensors_note(w, "step", "2 \"\n\xc3\xa9"); /* the later note replaces the first */
    f = tn_safetensors_write(w);
    header = "{\"__metadata__\":{\"format\":\"np\",\"step\":\"2 \\\"\\n\xc3\xa9\"}}";
    ck_assert_mem_eq((const char *)tn_data(f) + 8, header, strlen(header));
    ck_assert_int_eq(tn_numel(f), 8 + 56);
    tn_safetensors_writer_free(w);
}

TEST(round_trips)
{
    const char            *path = tn_test_file("round.safetensors");
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_tensor             *sample[TN_DTYPES][TN_LAYOUTS];
    char                   name[64];
    for (int dt = 0; dt < TN_DTYPES; dt++)
        for (int layout = 0; layout < TN_LAYOUTS; layout++) {
            snprintf(name, sizeof name, "t.%d.%d \xe2\x82\xac", layout, dt);
            sample[dt][layout] = tn__sample((tn_dtype)dt, layout);
            ck_assert_int_eq(tn_safetensors_put(w, name, sample[dt][layout]), TN_OK);
        }
    ck_assert_msg(tn_safetensors_save(w, path) == TN_OK, "%s", tn_error_message());
    tn_tensor *memory = tn_safetensors_write(w);
    ck_assert(tn_same_bits(memory, tn_file_read(path, 1 << 20)));
    tn_safetensors *files[] = {tn_safetensors_open(path),
                               tn_safetensors_read(tn_data(memory), (size_t)tn_numel(memory))};
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(files[i] != NULL, "%s", tn_error_message());
        ck_assert_int_eq(tn_safetensors_count(files[i]), TN_DTYPES * TN_LAYOUTS);
        for (int dt = 0; dt < TN_DTYPES; dt++)
            for (int layout = 0; layout < TN_LAYOUTS; layout++) {
                snprintf(name, sizeof name, "t.%d.%d \xe2\x82\xac", layout, dt);
                ck_assert_msg(tn_same_bits(tn_safetensors_get(files[i], name), sample[dt][layout]), "%s: %s", name,
                              tn_error_message());
            }
        tn_safetensors_close(files[i]);
    }
    tn_safetensors_writer_free(w);
}

/* The writer outlives the scopes of its tensors, and reads them when it saves. */
TEST(writer_holds_its_tensors)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_scope               s = tn_scope_begin();
    tn_tensor             *t = tn_keep(tn_zeros(TN_SHAPE(2)));
    tn_safetensors_put(w, "t", t);
    tn_safetensors_put(w, "tied", t); /* both are written in full */
    tn_scope_end(s);
    tn_fill(t, 3);
    tn_drop(t);
    tn_tensor      *f = tn_safetensors_write(w);
    tn_safetensors *r = tn_safetensors_read(tn_data(f), (size_t)tn_numel(f));
    ck_assert_double_eq(tn_get(tn_safetensors_get(r, "t"), 1), 3);
    ck_assert_double_eq(tn_get(tn_safetensors_get(r, "tied"), 0), 3);
    ck_assert(!tn_shares_memory(tn_safetensors_get(r, "t"), tn_safetensors_get(r, "tied")));
    tn_safetensors_close(r);
    tn_safetensors_writer_free(w);
}

TEST(writer_refuses)
{
    tn_safetensors_writer   *w = tn_safetensors_writer_new();
    tn_tensor               *t = tn_ones(TN_SHAPE(2));
    static const char *const wrong[][2] = {
        {"", "the name '' must have 1 to 1024 bytes"},
        {"a\nb", "the name 'a\\x0ab' has a control character"},
        {"a\x7f", "has a control character"},
        {"\xff", "the name '\\xff' is not valid UTF-8"},
        {"__metadata__", "is reserved by the format; tn_safetensors_note writes metadata"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_fails_has(tn_safetensors_put(w, wrong[i][0], t), TN_EINVAL, wrong[i][1]);
    }
    tn_safetensors_put(w, "a", NULL);
    ck_error_has(TN_EINVAL, "tn_safetensors_put: the tensor for 'a' is NULL");
    tn_safetensors_put(w, NULL, t);
    ck_error_has(TN_EINVAL, "tn_safetensors_put: the name is NULL");
    tn_safetensors_put(NULL, "a", t);
    ck_error_has(TN_EINVAL, "tn_safetensors_put: the writer is NULL");
    ck_assert_int_eq(tn_safetensors_put(w, "a", t), TN_OK);
    tn_safetensors_put(w, "a", t);
    ck_error_has(TN_EINVAL, "tn_safetensors_put: duplicate name 'a'");
    char other[16];
    for (int i = 0; i < 80; i++) { /* still found after the tables have grown */
        snprintf(other, sizeof other, "%d", i / 2);
        ck_assert_int_eq(tn_safetensors_put(w, other, t), i % 2 ? TN_EINVAL : TN_OK);
        tn_clear_error();
    }
    for (int i = 0; i < 40; i++) {
        snprintf(other, sizeof other, "%d", i);
        ck_assert_int_eq(tn_safetensors_put(w, other, t), TN_EINVAL);
        tn_clear_error();
    }
    tn_safetensors_note(w, NULL, "x");
    ck_error_has(TN_EINVAL, "tn_safetensors_note: the key is NULL");
    tn_safetensors_note(w, "x", NULL);
    ck_error_has(TN_EINVAL, "tn_safetensors_note: the value is NULL");
    tn_safetensors_note(NULL, "x", "y");
    ck_error_has(TN_EINVAL, "tn_safetensors_note: the writer is NULL");
    tn_safetensors_note(w, "\xfe", "y");
    ck_error_has(TN_EINVAL, "the key '\\xfe' is not valid UTF-8");
    tn_safetensors_note(w, "x", "\xfe");
    ck_error_has(TN_EINVAL, "the value of 'x' is not valid UTF-8");
    ck_assert_int_eq(tn_safetensors_save(w, NULL), TN_EINVAL);
    tn_clear_error();
    ck_assert_int_eq(tn_safetensors_save(NULL, "x"), TN_EINVAL);
    tn_clear_error();
    ck_assert_ptr_null(tn_safetensors_write(NULL));
    tn_clear_error();

    char *huge = malloc((16 << 20) + 1);
    memset(huge, 'v', 16 << 20), huge[16 << 20] = 0;
    tn_safetensors_note(w, "huge", huge);
    ck_error_has(TN_EUNSUPPORTED, "with 'huge' the metadata exceeds the limit of 16777216 bytes");
    free(huge);
    char key[16];
    for (int i = 0; i < 9999; i++) {
        snprintf(key, sizeof key, "%d", i);
        ck_assert_int_eq(tn_safetensors_note(w, key, ""), TN_OK);
    }
    tn_safetensors_note(w, "one more", "");
    ck_error_has(TN_EUNSUPPORTED, "'one more' would be one more than the limit of 9999 notes");
    ck_assert_int_eq(tn_safetensors_note(w, "17", "again"), TN_OK);
    tn_tensor      *f = tn_safetensors_write(w); /* and the reader accepts all tensors that the writer accepted */
    tn_safetensors *r = tn_safetensors_read(tn_data(f), (size_t)tn_numel(f));
    ck_assert_int_eq(tn_safetensors_metadata_count(r), 10000);
    ck_assert_str_eq(tn_safetensors_metadata(r, "17"), "again");
    tn_safetensors_close(r);
    tn_safetensors_writer_free(w);
    tn_safetensors_writer_free(NULL);

    tn_raise(TN_ESHAPE, "before");
    ck_assert_ptr_null(tn_safetensors_writer_new());
    ck_assert_ptr_null(tn_safetensors_open("x"));
    tn_clear_error();
}

/* ---- memory that fails ------------------------------------------------------------------------------------------- */

static tn_status scenario(const char *path, tn_tensor *a, tn_tensor *b, tn_tensor **read)
{
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    char                   name[16];
    tn_safetensors_put(w, "a", a);
    for (int i = 0; i < 20; i++) { /* enough for the tables to grow */
        snprintf(name, sizeof name, "b%d", i);
        tn_safetensors_put(w, name, b);
        tn_safetensors_note(w, name, "noted");
    }
    if (tn_safetensors_save(w, path) != TN_OK) { /* skipped if a call before it failed */
    }
    tn_tensor      *m = tn_safetensors_write(w);
    tn_safetensors *f = tn_safetensors_open(path), *g = m ? tn_safetensors_read(tn_data(m), (size_t)tn_numel(m)) : NULL;
    *read = f ? tn_safetensors_get(f, "a") : NULL;
    if (g) tn_safetensors_get(g, "b7");
    tn_safetensors_close(f);
    tn_safetensors_close(g);
    tn_safetensors_writer_free(w);
    return tn_error();
}

TEST(memory_fails)
{
    const char *path = tn_test_file("memory.safetensors");
    tn_tensor  *expected = NULL;
    int         beside = -1;
    tn_faulty_memory_begin();
    tn_scope all = tn_scope_begin();
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int64_t at = -1;; at++) {
            tn_scope   s = tn_scope_begin();
            tn_tensor *a = tn__sample(TN_F64, 1), *b = tn__sample(TN_BF16, 2), *read;
            int64_t    before = tn_memory_blocks();
            tn_scope   inner = tn_scope_begin();
            tn_fail_memory(at, for_ever);
            bool failed = scenario(path, a, b, &read) != TN_OK;
            if (failed) ck_assert_msg(tn_error() == TN_ENOMEM, "%s", tn_error_message());
            tn_clear_error();
            tn_fail_memory(-1, false);
            tn_scope_end(inner);
            ck_assert_int_eq(tn_memory_blocks(), before);
            ck_assert_msg(scenario(path, a, b, &read) == TN_OK, "%s", tn_error_message());
            ck_assert(tn_same_bits(read, a));
            tn_tensor *bytes_now = tn_file_read(path, 1 << 20);
            if (!expected) expected = tn_keep(bytes_now), beside = tn_names_beside(path);
            ck_assert(tn_same_bits(expected, bytes_now));
            ck_assert_int_eq(tn_names_beside(path), beside);
            tn_scope_end(s);
            if (at >= 0 && !failed) {
                ck_assert_int_gt(at, 100);
                break;
            }
        }
    tn_drop(expected);
    tn_scope_end(all);
    tn_faulty_memory_end();
}

TEST(locale_changes_nothing)
{
    static const char *const locales[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "hi_IN.utf8"};
    tn_safetensors_writer   *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "a", tn__sample(TN_F32, 8));
    tn_tensor *before = tn_safetensors_write(w);
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (!setlocale(LC_ALL, locales[i])) continue;
        tn_tensor *now = tn_safetensors_write(w);
        tn_test_locale();
        ck_assert(tn_same_bits(before, now));
    }
    tn_safetensors_writer_free(w);
}

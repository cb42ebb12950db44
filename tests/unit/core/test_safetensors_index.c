/* test_safetensors_index.c — the tensors of a model in several files: read through their index like one file; and
 * errors for an index that does not match its files, or names files that it must not. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "models/models.h"
#include "tests/common/faults.h"
#include <unistd.h>

static char folder[600];

static const char *at(const char *name)
{
    static char path[4][800];
    static int  k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}

static tn_tensor *row(int n, const float *v) { return tn_from_data(TN_F32, TN_SHAPE(n), v); }

static void put(const char *name, const char *text)
{
    ck_assert_int_eq(tn_file_write(at(name), text, strlen(text)), 0);
}

/* x.safetensors with a = 1 2, b = 3; y.safetensors with c = 4 5 6 */
static void setup(void)
{
    snprintf(folder, sizeof folder, "%s", tn_test_file("index"));
    ck_assert(!mkdir(folder, 0777) || access(folder, W_OK) == 0);
    const tn_scope         s = tn_scope_begin();
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "a", row(2, (float[]){1, 2}));
    tn_safetensors_put(w, "b", row(1, (float[]){3}));
    ck_assert_int_eq(tn_safetensors_save(w, at("x.safetensors")), TN_OK);
    tn_safetensors_writer_free(w);
    w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "c", row(3, (float[]){4, 5, 6}));
    ck_assert_int_eq(tn_safetensors_save(w, at("y.safetensors")), TN_OK);
    tn_safetensors_writer_free(w);
    tn_scope_end(s);
}

#define MAP "\"weight_map\": {\"a\": \"x.safetensors\", \"c\": \"y.safetensors\", \"b\": \"x.safetensors\"}"

static tn_safetensors *open_as(const char *index)
{
    put("m.safetensors.index.json", index);
    return tn_safetensors_open(at("m.safetensors.index.json"));
}
static void refused(const char *index, tn_status code, const char *part)
{
    tn_safetensors *f = open_as(index);
    ck_assert_msg(!f, "accepted: %s", index);
    ck_error_has(code, part);
}

TEST(read_as_one_file)
{
    setup();
    const char *good[] = {"{" MAP "}", "{\"metadata\": {\"total_size\": 24}, " MAP "}",
                          "{\"metadata\": {\"total_size\": 24.0, \"more\": [1]}, \"else\": 1, " MAP "}"};
    for (int i = 0; i < 3; i++) {
        tn_safetensors *f = open_as(good[i]);
        ck_assert_msg(f, "%s", tn_error_message());
        ck_assert_int_eq(tn_safetensors_count(f), 3);
        ck_assert_str_eq(tn_safetensors_at(f, tn_safetensors_find(f, "c")).stored, "F32");
        ck_assert_int_eq(tn_safetensors_find(f, "d"), -1);
        ck_assert_ptr_null(tn_safetensors_metadata(f, "format"));
        ck_assert(tn_get(tn_safetensors_get(f, "a"), 1) == 2 && tn_get(tn_safetensors_get(f, "b"), 0) == 3);
        ck_assert(tn_get(tn_safetensors_get(f, "c"), 2) == 6);
        ck_assert_ptr_null(tn_safetensors_get(f, "d"));
        ck_assert_ptr_nonnull(strstr(tn_error_message(), "no tensor 'd' among its 3"));
        tn_clear_error();
        tn_safetensors_close(f);
    }
}

TEST(what_is_not_so_is_refused)
{
    setup();
    const struct {
        const char *index;
        tn_status   code;
        const char *part;
    } rows[] = {
        {"", TN_EFORMAT, "the text ends, expected a value"},
        {"[]", TN_EFORMAT, "weight_map, which names the file of each tensor, is missing"},
        {"{\"weight_map\": 1}", TN_EFORMAT, "weight_map, which names the file of each tensor, is missing"},
        {"{\"weight_map\": {\"a\": 1}}", TN_EFORMAT, "weight_map.a (byte 21) is the integer 1, expected a string"},
        {"{\"weight_map\": {\"a\": \"x.safetensors\", \"a\": \"x.safetensors\"}}", TN_EFORMAT, "duplicate key 'a'"},
        {"{\"weight_map\": {\"a\": \"x.safetensors\"}}", TN_EFORMAT,
         "tensor 'b': the index does not name it, but it is in 'x.safetensors'"},
        {"{\"weight_map\": {\"a\": \"x.safetensors\", \"b\": \"y.safetensors\", \"c\": \"y.safetensors\"}}", TN_EFORMAT,
         "tensor 'b': it is not in 'y.safetensors'"},
        {"{\"weight_map\": {\"a\": \"x.safetensors\", \"b\": \"x.safetensors\", \"d\": \"x.safetensors\"}}", TN_EFORMAT,
         "tensor 'd': it is not in 'x.safetensors'"},
        {"{\"metadata\": {\"total_size\": 25}, " MAP "}", TN_EFORMAT,
         "total_size is 25, but the tensors have 24 bytes"},
        {"{\"metadata\": {\"total_size\": \"24\"}, " MAP "}", TN_EFORMAT, "expected a number"},
        {"{\"weight_map\": {\"a\": \"none.safetensors\"}}", TN_EIO, "cannot open: no such file or folder"},
        {"{\"weight_map\": {\"a\": \"m.safetensors.index.json\"}}", TN_EFORMAT, "not the name of a .safetensors file"},
        {"{\"weight_map\": {\"a\": \"../index/x.safetensors\"}}", TN_EFORMAT,
         "tensor 'a': not the name of a .safetensors file in this folder: '../index/x.safetensors'"},
        {"{\"weight_map\": {\"a\": \"/x.safetensors\"}}", TN_EFORMAT, "not the name of"},
        {"{\"weight_map\": {\"a\": \"\\\\x.safetensors\"}}", TN_EFORMAT, "not the name of"},
        {"{\"weight_map\": {\"a\": \".safetensors\"}}", TN_EFORMAT, "not the name of"},
        {"{\"weight_map\": {\"a\": \".x.safetensors\"}}", TN_EFORMAT, "not the name of"},
        {"{\"weight_map\": {\"a\": \"\"}}", TN_EFORMAT, "not the name of"},
        {"{\"weight_map\": {\"a\": \"x.safetensors\\u0000\"}}", TN_EFORMAT, "not the name of"},
        {"{\"weight_map\": {\"a\": \"x\\n.safetensors\"}}", TN_EFORMAT, "not the name of"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) refused(rows[i].index, rows[i].code, rows[i].part);

    char text[400];
    snprintf(text, sizeof text, "{\"weight_map\": {\"a\": \"%0300d.safetensors\"}}", 7);
    refused(text, TN_EFORMAT, "not the name of");
    tn_safetensors_writer *w = tn_safetensors_writer_new(); /* a tensor that is in two of the files */
    tn_safetensors_put(w, "a", row(1, (float[]){9}));
    ck_assert_int_eq(tn_safetensors_save(w, at("z.safetensors")), TN_OK);
    tn_safetensors_writer_free(w);
    refused("{\"weight_map\": {\"a\": \"x.safetensors\", \"b\": \"x.safetensors\", \"c\": \"z.safetensors\"}}",
            TN_EFORMAT, "duplicate tensor 'a', in two of the files");
    put("z.safetensors", "cut off");
    refused("{\"weight_map\": {\"a\": \"z.safetensors\"}}", TN_EFORMAT, "z.safetensors'");
}

/* As in Hugging Face's cache: snapshots/1/x.safetensors -> ../../blobs/0a1b. */
TEST(links)
{
    setup();
    const char *index = "{\"weight_map\": {\"a\": \"x.safetensors\", \"b\": \"x.safetensors\"}}";
    const struct {
        const char *target;
        tn_status   code;
        const char *part;
    } rows[] = {{"../../blobs/0a1b", TN_OK, ""},
                {"../../x.safetensors", TN_EUNSUPPORTED, "this is a symbolic link"},
                {"../../blobs/../x.safetensors", TN_EUNSUPPORTED, "this is a symbolic link"},
                {"../../blobs/", TN_EUNSUPPORTED, "this is a symbolic link"},
                {"../../blobs/none", TN_EIO, "cannot open"},
                {"../../blobs/link", TN_EIO, "cannot open: too many symbolic links"},
                {"../../blobs/pipe", TN_EINVAL, "this is a pipe"},
                {"/etc/passwd", TN_EUNSUPPORTED, "this is a symbolic link"}};
    mkdir(at("snapshots"), 0777), mkdir(at("snapshots/1"), 0777), mkdir(at("blobs"), 0777);
    unlink(at("blobs/0a1b")), unlink(at("blobs/link")), unlink(at("blobs/pipe"));
    ck_assert(!rename(at("x.safetensors"), at("blobs/0a1b")));
    ck_assert(!symlink("0a1b", at("blobs/link")) && !mkfifo(at("blobs/pipe"), 0666));
    put("snapshots/1/m.safetensors.index.json", index);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unlink(at("snapshots/1/x.safetensors"));
        ck_assert(!symlink(rows[i].target, at("snapshots/1/x.safetensors")));
        tn_safetensors *f = tn_safetensors_open(at("snapshots/1/m.safetensors.index.json"));
        ck_assert_msg(tn_error() == rows[i].code && (f || strstr(tn_error_message(), rows[i].part)), "%s: %s",
                      rows[i].target, tn_error_message());
        if (f) ck_assert(tn_get(tn_safetensors_get(f, "b"), 0) == 3);
        tn_safetensors_close(f);
        tn_clear_error();
    }
}

static double sum(int i)
{
    tn_safetensors *f = tn_safetensors_open(at("m.safetensors.index.json"));
    const tn_scope  s = tn_scope_begin();
    tn_tensor      *c = tn_safetensors_get(f, "c");
    const double    v = c ? tn_get(c, 2) + i : 0;
    tn_scope_end(s);
    tn_safetensors_close(f);
    return v;
}

TEST(faults)
{
    setup();
    put("m.safetensors.index.json", "{" MAP "}");
    tn_faulty_memory_begin();
    tn_each_allocation_fails(sum, 0, 1, 4, 10);
    tn_faulty_memory_end();
    tn_faulty_files_begin();
    ck_assert(sum(0) == 6);
    const int64_t calls = tn_file_calls();
    ck_assert_int_ge(calls, 12);
    for (int64_t k = 0; k < calls; k++) {
        tn_fail_file(k, 5, false); /* EIO */
        const double v = sum(0);
        ck_assert_msg(tn_error() == TN_EIO || v == 6, "call %lld: %s", (long long)k, tn_error_message());
        tn_clear_error();
        ck_assert_int_eq(tn_open_files(), 0);
    }
    tn_faulty_files_end();
}

/* A model's folder whose weights are in two files: the same model. */
TEST(a_model_in_two_files)
{
    setup();
    tn_seed(1);
    tn_bert *m = tn_bert_new(.vocab = 20, .dim = 8, .heads = 2, .layers = 1, .ff = 16, .positions = 8);
    ck_assert_int_eq(tn_bert_save(m, folder), TN_OK);
    tn_safetensors        *f = tn_safetensors_open(at("model.safetensors"));
    tn_safetensors_writer *w[2] = {tn_safetensors_writer_new(), tn_safetensors_writer_new()};
    tn_json_writer        *index = tn_json_writer_new(0);
    tn_json_open_object(index, NULL);
    tn_json_open_object(index, "weight_map");
    for (int64_t i = 0; i < tn_safetensors_count(f); i++) {
        const char *name = tn_safetensors_at(f, i).name;
        tn_safetensors_put(w[i % 2], name, tn_safetensors_get_at(f, i));
        tn_json_put_string(index, name, i % 2 ? "model-2.safetensors" : "model-1.safetensors");
    }
    tn_json_close(index), tn_json_close(index);
    ck_assert_int_eq(tn_safetensors_save(w[0], at("model-1.safetensors")), TN_OK);
    ck_assert_int_eq(tn_safetensors_save(w[1], at("model-2.safetensors")), TN_OK);
    ck_assert_int_eq(tn_json_save(index, at("model.safetensors.index.json")), TN_OK);
    tn_safetensors_close(f);
    put("model-1.bin", "not looked at");
    unlink(at("model.safetensors"));
    tn_bert *same = tn_bert_load(folder);
    ck_assert_msg(same, "%s", tn_error_message());
    tn_each a = tn_module_each(m, TN_EACH_SAVED), b = tn_module_each(same, TN_EACH_SAVED);
    while (tn_next(&a) && tn_next(&b))
        ck_assert_msg(tn_item(tn_sum(tn_abs(tn_sub(a.tensor, b.tensor)))) == 0, "%s", a.name);
    tn_free(same);

    put("model-2.safetensors", "cut off");
    ck_assert_ptr_null(tn_bert_load(folder));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "model-2.safetensors"));
    tn_clear_error();
    unlink(at("model.safetensors.index.json"));
    ck_assert_ptr_null(tn_bert_load(folder));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), "model.safetensors': cannot open"));
    tn_clear_error();
    tn_safetensors_writer_free(w[0]), tn_safetensors_writer_free(w[1]);
    tn_json_writer_free(index);
    tn_free(m);
}

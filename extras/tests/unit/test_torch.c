/* test_torch.c — torch.save's files are read as safetensors files of the same tensors; and errors for other pickles and
 * zip files, which name the violation. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "extras.h"

static const char *const files[] = {"golden/torch_files/new.bin", "golden/torch_files/old.bin",
                                    "golden/torch_files/checkpoint.bin"};

TEST_EACH(reads_what_torch_writes, 3)
{
    tn_safetensors *f = tn_torch_open(tn_test_data(files[_i])),
                   *same = tn_safetensors_open(tn_test_data("golden/torch_files/same.safetensors"));
    ck_assert_msg(f && same, "%s", tn_error_message());
    ck_assert_int_eq(tn_safetensors_count(f), tn_safetensors_count(same));
    for (int64_t i = 0; i < tn_safetensors_count(same); i++) {
        const tn_safetensors_entry e = tn_safetensors_at(same, i);
        const tn_tensor           *a = tn_safetensors_get(f, e.name), *b = tn_safetensors_get(same, e.name);
        ck_assert_msg(a && b, "%s: %s", e.name, tn_error_message());
        ck_assert_msg(tn_same_bits(a, b), "%s", e.name);
        ck_assert_str_eq(tn_safetensors_at(f, tn_safetensors_find(f, e.name)).stored, e.stored);
    }
    tn_safetensors_close(f), tn_safetensors_close(same);
}

/* ---- invalid files ----------------------------------------------------------------------------------------------- */

/* Reads a copy of exactly n bytes, so that a sanitizer detects a read past the end, and all its tensors. */
static bool reads(const void *data, size_t n)
{
    const tn_scope scope = tn_scope_begin();
    void          *copy = malloc(n ? n : 1);
    memcpy(copy, data, n);
    tn_safetensors *f = tn_torch_read(copy, n);
    for (int64_t i = 0; i < tn_safetensors_count(f) && tn_error() == TN_OK; i++) tn_safetensors_get_at(f, i);
    tn_safetensors_close(f);
    free(copy);
    tn_scope_end(scope);
    return tn_error() == TN_OK;
}

#define START "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
#define VERSION "\x80\2M\xe9\3."
#define MACHINE "\x80\2}."
#define KEYS           \
    "\x80\2]X\1\0\0\0" \
    "0a."
#define NUMBERS        \
    "\6\0\0\0\0\0\0\0" \
    "aaaabbbbccccddddeeeeffff"
#define CALL "ctorch._utils\n_rebuild_tensor_v2\n"
#define NAME(x) "X\1\0\0\0" x
#define STORAGE(type, key, count) "(X\7\0\0\0storagec" type "\nX\1\0\0\0" key "X\3\0\0\0cpu" count "NtQ"
#define FLOATS STORAGE("torch\nFloatStorage", "0", "K\6")
#define VIEW(first, sizes, strides) CALL "(" FLOATS first sizes strides "\x89}tR"
#define GOOD VIEW("K\0", "K\2K\3\x86", "K\3K\1\x86")
#define FLAGGED(value) CALL "(" FLOATS "K\0K\2K\3\x86K\3K\1\x86\x89}}X\3\0\0\0neg" value "stR"
#define OLD(body) START VERSION MACHINE "\x80\2" body "." KEYS NUMBERS
#define F TN_EFORMAT
#define U TN_EUNSUPPORTED
#define ROW(status, says, bytes)               \
    {                                          \
        bytes, sizeof(bytes) - 1, status, says \
    }
#define BAD(status, says, body) ROW(status, says, OLD(body))
static const struct {
    const char *bytes;
    size_t      n;
    tn_status   status;
    const char *says;
} rows[] = {
    /* not torch.save's */
    ROW(F, "not written by torch.save", ""),
    ROW(F, "not written by torch.save", "P"),
    ROW(F, "not written by torch.save", "{\"a\": 1}"),
    ROW(F, "not written by torch.save", "\x80\6}."),
    ROW(U, "protocol 3, expected 2, the default of torch.save", "\x80\3}."),
    ROW(F, "not written by torch.save", "ustar"),
    ROW(F, "a pickle, but not written by torch.save", "\x80\2}."),
    ROW(F, "a pickle, but not written by torch.save", "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x18."),
    ROW(F, "the pickle is truncated", "\x80\2"),
    ROW(F, "the pickle is truncated", START),
    ROW(F, "its version is not 1001", START "\x80\2K\1." MACHINE),
    ROW(F, "its version is not 1001", START "\x80\2}." MACHINE),
    ROW(F, "it does not start as a pickle", START VERSION "}"),
    ROW(U, "protocol 4, expected 2", START VERSION "\x80\4}."),
    /* code that a pickle would execute */
    BAD(U, "the name 'os\\x0asystem' is not used by state dicts of plain tensors", "cos\nsystem\n(X\2\0\0\0lstR"),
    BAD(U, "the name 'builtins\\x0aeval'", "cbuiltins\neval\n(tR"),
    BAD(U, "the name 'posix\\x0asystem'", "}cposix\nsystem\n"),
    BAD(U, "the name 'torch\\x0aload'", "ctorch\nload\n"),
    BAD(U, "the name 'torch\\x0aComplexFloatStorage'", "ctorch\nComplexFloatStorage\n"),
    BAD(U, "the name 'numpy.core.multiarray\\x0a_reconstruct'", "cnumpy.core.multiarray\n_reconstruct\n"),
    BAD(U, "the instruction 0x69", "iposix\nsystem\n"), /* INST */
    BAD(U, "the instruction 0x6f", "(o"),               /* OBJ */
    BAD(U, "the instruction 0x81", "ccollections\nOrderedDict\n)\x81"),
    BAD(U, "the instruction 0x93", "X\2\0\0\0osX\6\0\0\0system\x93"), /* STACK_GLOBAL */
    BAD(U, "the instruction 0x82", "\x82\1"),                         /* EXT1 */
    BAD(U, "the instruction 0x50", "Pa\n"),                           /* PERSID */
    BAD(U, "the instruction 0x46", "F1.5\n"),
    BAD(U, "the instruction 0x53", "S'a'\n"),
    BAD(U, "the instruction 0x00", "\0"),
    BAD(U, "the instruction 0xff", "\xff"),
    BAD(U, "the instruction 0x95", "\x95\0\0\0\0\0\0\0\0"),
    BAD(U, "the instruction 0x32", "}2"),
    /* the stack */
    BAD(F, "a value is popped from an empty stack", ""),
    BAD(F, "a value is popped from an empty stack", "R"),
    BAD(F, "a value is popped from an empty stack", "}R"),
    BAD(F, "a value is popped from an empty stack", "\x85"),
    BAD(F, "a value is popped from an empty stack", "K\1\x86"),
    BAD(F, "a value is popped from an empty stack", "K\1(K\1\x86"),
    BAD(F, "a value is popped from an empty stack", "Q"),
    BAD(F, "a value is popped from an empty stack", "b"),
    BAD(F, "a value is popped from an empty stack", "("),
    BAD(F, "a mark is missing", "t"),
    BAD(F, "a mark is missing", "}u"),
    BAD(F, "a mark is missing", "]e"),
    BAD(F, "unused values remain", "}}"),
    BAD(F, "unused values remain", "(}"),
    BAD(F, "pairs for a value that is not a dict", "]K\1K\2s"),
    BAD(F, "pairs for a value that is not a dict", "K\1K\2s"),
    BAD(F, "pairs for a value that is not a dict", "}(K\1u"),
    BAD(F, "items for a value that is not a list", "}K\1a"),
    BAD(F, "items for a value that is not a list", "}(K\1e"),
    BAD(F, "it reads a memo entry that was not stored", "h\0"),
    BAD(F, "it reads a memo entry that was not stored", "}q\1h\0"),
    BAD(F, "it reads a memo entry that was not stored", "j\xff\xff\xff\xff"),
    BAD(F, "it stores more than 4,000,000 memo entries", "}r\xff\xff\xff\xff"),
    BAD(F, "it stores more than 4,000,000 memo entries", "}r\0\x09\x3d\0"),
    BAD(F, "the pickle is truncated", "X\xff\xff\xff\xff"),
    BAD(F, "the pickle is truncated", "U\xff"),
    BAD(F, "the pickle is truncated", "\x8a\xff"),
    BAD(F, "a persistent id that is not a tuple", "K\1Q"),
    BAD(F, "it calls a value that is not a name", "K\1)R"),
    BAD(F, "it calls a value that is not a name", "ccollections\nOrderedDict\nK\1R"),
    BAD(F, "it calls a name with wrong arguments", "ctorch._utils\n_rebuild_parameter\n)R"),
    BAD(F, "it calls a name with wrong arguments", "ctorch._utils\n_rebuild_parameter\n(K\1tR"),
    BAD(F, "it calls a name with wrong arguments", "ctorch\nFloatStorage\n)R"),
    BAD(F, "it calls a name with wrong arguments", "ccollections\nOrderedDict\n(K\1tR"),
    /* the saved value */
    BAD(F, "the saved value is not a dict of tensors", "(" GOOD "t"),
    BAD(F, "the saved value is not a dict of tensors", "]" GOOD "a"),
    BAD(F, "the saved value is not a dict of tensors", GOOD),
    BAD(F, "no tensor uses one of its storages", "}"),
    BAD(F, "the tensor's name '' must have 1 to 1024 bytes", "}X\0\0\0\0" GOOD "s"),
    BAD(F, "the tensor's name '\\x0a' has a control character", "}" NAME("\n") GOOD "s"),
    BAD(F, "the tensor's name '\\xff' is not valid UTF-8", "}" NAME("\xff") GOOD "s"),
    BAD(F, "duplicate tensor 'w'", "}" NAME("w") GOOD "s" NAME("w") GOOD "s"),
    /* storages */
    BAD(F, "a storage's id is not", "}" NAME("w") CALL "()QK\0))\x89}tRs"),
    BAD(F, "a storage's id is not",
        "}" NAME("w") CALL "(" STORAGE("collections\nOrderedDict", "0", "K\6") "K\0)))}tRs"),
    BAD(F, "a storage's id is not",
        "}" NAME("w") CALL "(" STORAGE("torch\nFloatStorage", "0", "J\xff\xff\xff\xff") "K\0)))}tRs"),
    BAD(F, "a storage's id is not", "}" NAME("w") CALL "(" STORAGE("torch\nFloatStorage", "0", "}") "K\0)))}tRs"),
    BAD(F, "the storage '1' is missing",
        "}" NAME("v") GOOD "s" NAME("w") CALL "(" STORAGE("torch\nFloatStorage", "1", "K\6") "K\0))\x89}tRs"),
    BAD(F, "the file is truncated, or a storage's size is wrong",
        "}" NAME("w") CALL "(" STORAGE("torch\nDoubleStorage", "0", "K\6") "K\0))\x89}tRs"),
    BAD(F, "unexpected bytes after its storages",
        "}" NAME("w") CALL "(" STORAGE("torch\nHalfStorage", "0", "K\6") "K\0))\x89}tRs"),
    ROW(F, "the bool at byte",
        START VERSION MACHINE "\x80\2}" NAME("w") CALL
        "(" STORAGE("torch\nBoolStorage", "0", "K\6") "K\0K\1\x85K\1\x85\x89}tRs." KEYS "\6\0\0\0\0\0\0\0"
                                                      "aaaaaa"),
    /* views */
    BAD(F, "a tensor's storage, sizes or strides", "}" NAME("v") GOOD "s" NAME("w") CALL ")Rs"),
    BAD(F, "a tensor's storage, sizes or strides",
        "}" NAME("w") CALL "(K\1K\1))tRs"
                           "" NAME("v") GOOD "s"),
    BAD(F, "a tensor's storage, sizes or strides", "}" NAME("w") VIEW("N", ")", ")") "s"),
    BAD(F, "a tensor's storage, sizes or strides", "}" NAME("w") VIEW("J\xff\xff\xff\xff", ")", ")") "s"),
    BAD(F, "a tensor's storage, sizes or strides", "}" NAME("w") VIEW("K\0", "K\2", "K\1") "s"),
    BAD(F, "a tensor's storage, sizes or strides", "}" NAME("w") VIEW("K\0", "K\2\x85", ")") "s"),
    BAD(F, "a tensor's storage, sizes or strides", "}" NAME("w") VIEW("K\0", "J\xff\xff\xff\xff\x85", "K\1\x85") "s"),
    BAD(F, "a tensor's storage, sizes or strides", "}" NAME("w") VIEW("K\0", "K\2\x85", "J\xff\xff\xff\xff\x85") "s"),
    BAD(F, "a tensor's storage, sizes or strides",
        "}" NAME("w") VIEW("K\0",
                           "X\1\0\0\0"
                           "2\x85",
                           "K\1\x85") "s"),
    BAD(F, "a tensor's storage, sizes or strides",
        "}" NAME("w") VIEW("K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t") "s"),
    BAD(F, "tensor 'w' extends beyond its storage", "}" NAME("w") VIEW("K\0", "K\7\x85", "K\1\x85") "s"),
    BAD(F, "tensor 'w' extends beyond its storage", "}" NAME("w") VIEW("K\1", "K\6\x85", "K\1\x85") "s"),
    BAD(F, "tensor 'w' extends beyond its storage", "}" NAME("w") VIEW("K\6", ")", ")") "s"),
    BAD(F, "tensor 'w' extends beyond its storage", "}" NAME("w") VIEW("K\0", "K\2K\2\x86", "K\5K\1\x86") "s"),
    BAD(U, "tensor 'w' has overlapping elements, as expand() makes: save its .clone()",
        "}" NAME("w") VIEW("K\0", "K\7\x85", "K\0\x85") "s"),
    BAD(F, "tensor 'w' extends beyond its storage",
        "}" NAME("w") VIEW("K\0", "J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x87", "K\0K\0K\0\x87") "s"),
    BAD(F, "tensor 'w' extends beyond its storage",
        "}" NAME("w") VIEW("K\0", "K\2K\2\x86", "\x8a\x8\xff\xff\xff\xff\xff\xff\xff\1K\1\x86") "s"),
    BAD(F, "tensor 'w' extends beyond its storage",
        "}" NAME("w") VIEW("\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f", "K\2\x85", "K\1\x85") "s"),
    BAD(U, "tensor 'w' is saved as a view that negates or conjugates its elements: save its .resolve_neg()",
        "}" NAME("w") FLAGGED("\x88") "s"),
    BAD(F, "its state dict is not a dict of tensors", "}X\5\0\0\0modelK\1s" NAME("x") FLOATS "s"),
    /* after the pickles */
    ROW(F, "unexpected bytes after its storages", OLD("}" NAME("w") GOOD "s") "x"),
    ROW(F, "the file is truncated", START VERSION MACHINE "\x80\2}" NAME("w") GOOD "s." KEYS),
    ROW(F, "the file is truncated", START VERSION MACHINE "\x80\2}" NAME("w") GOOD "s." KEYS "\6\0\0\0\0\0\0\0aaaa"),
    ROW(F, "a storage's size is wrong",
        START VERSION MACHINE "\x80\2}" NAME("w") GOOD "s." KEYS "\xff\xff\xff\xff\xff\xff\xff\xff"
                                                       "aaaa"),
    ROW(F, "the keys of its storages are not a list",
        START VERSION MACHINE "\x80\2}" NAME("w") GOOD "s." MACHINE NUMBERS),
    ROW(F, "a key of its storages is not a string",
        START VERSION MACHINE "\x80\2}" NAME("w") GOOD "s.\x80\2]K\1a." NUMBERS),
    ROW(F, "duplicate storage",
        START VERSION MACHINE "\x80\2}" NAME("w") GOOD "s.\x80\2]X\1\0\0\0"
                                                       "0aX\1\0\0\0"
                                                       "0a." NUMBERS),
};

TEST_ROWS(refuses, rows)
{
    const size_t before = tn_memory_now().live;
    ck_assert_msg(!reads(rows[_i].bytes, rows[_i].n), "row %d was accepted", _i);
    ck_error_has(rows[_i].status, rows[_i].says);
    ck_assert(tn_memory_now().live <= before + (1 << 16));
}

TEST(accepts)
{
    static const char good[] = OLD("}" NAME("w") GOOD "s");
    static const char plain[] = OLD("}" NAME("w") FLAGGED("\x89") "s");
    ck_assert_msg(reads(good, sizeof good - 1), "%s", tn_error_message());
    ck_assert_msg(reads(plain, sizeof plain - 1), "%s", tn_error_message());
    ck_assert(sizeof rows / sizeof *rows >= 100);
}

/* Truncated anywhere, and with any byte changed: an error, or numbers, and nothing else. */
TEST_EACH(every_truncation_and_byte, 2)
{
    tn_tensor     *file = tn_file_read(tn_test_data(files[_i]), 1 << 20);
    unsigned char *at = tn_data_mut(file);
    const size_t   n = (size_t)tn_numel(file);
    for (size_t i = 0; i < n; i += 1 + i / 300) {
        ck_assert_msg(!reads(at, i), "%zu bytes of %zu were accepted", i, n);
        ck_assert(tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED);
        tn_clear_error();
    }
    int refused = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned char was = at[i];
        at[i] = (unsigned char)(was ^ (i % 2 ? 0xff : 1 << i % 8));
        refused += !reads(at, n);
        tn_clear_error();
        at[i] = was;
    }
    ck_assert_int_gt(refused, (int)n / 8);
}

/* A directory with pytorch_model.bin is opened once the reader is registered. */
TEST(of_a_model)
{
    const char *dir = tn_test_data("golden/bert/tuned");
    tn_hf_torch_register(NULL);
    ck_refused_has(tn_bert_load(dir), TN_EUNSUPPORTED,
                   "pytorch_model.bin' is a PyTorch file, which tn_extras_register() makes readable");
    ck_assert_int_eq(tn_extras_register(), TN_OK);
    tn_bert *m = tn_bert_load(dir);
    ck_assert_msg(m != NULL, "%s", tn_error_message());
    tn_free(m);
}

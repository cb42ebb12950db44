/* tokenizer_folder.h — a fuzz target's bytes as the files of a tokenizer's folder. A tokenizer that is read encodes any
 * text; saved and read again it gives the same token ids. Nothing stays allocated. */
#ifndef TENON_TESTS_FUZZ_TOKENIZER_FOLDER_H
#define TENON_TESTS_FUZZ_TOKENIZER_FOLDER_H

#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/use_tokenizer.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static void same_numbers(const tn_tokenizer *a, const tn_tokenizer *b, const char *text, size_t n)
{
    tn_encoding *x = tn_encoding_new(), *y = tn_encoding_new();
    CHECK(tn_tokenizer_encode(a, x, text, n) == TN_OK && tn_tokenizer_encode(b, y, text, n) == TN_OK && x->n == y->n);
    CHECK(!x->n || !memcmp(x->id, y->id, (size_t)x->n * sizeof *x->id));
    tn_encoding_free(x), tn_encoding_free(y);
}

static void tokenizer_folder(const uint8_t *data, size_t size)
{
    const char  *text = size ? (const char *)data : "";
    const size_t n = size < 300 ? size : 300;
    folder_begin();
    folder_cut(data, size);
    const size_t  before = tn_memory_now().live;
    tn_tokenizer *t = tn_tokenizer_load("folder", .slow = size % 2);
    CHECK((t != NULL) == (tn_error() == TN_OK) && tn_error() != TN_ESTATE && tn_error() != TN_ENOMEM);
    tn_clear_error();
    if (t) {
        use_tokenizer(t, text, n, false);
        if (tn_tokenizer_save(t, "saved") == TN_OK) {
            tn_tokenizer *again = tn_tokenizer_load("saved", .slow = size % 2);
            CHECK(again);
            same_numbers(t, again, text, n);
            tn_tokenizer_free(again);
        }
        tn_clear_error(); /* a special token that its files cannot hold */
    }
    tn_tokenizer_free(t);
    folder_end();
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
}

#endif

/* fuzz_subword.c — any bytes as subword-nmt's file of merges, and as the text that merges are learned from. The tokens
 * of a text cover all its bytes but the blanks between words; saved merges are loaded as the same. Nothing stays
 * allocated. */
#define _GNU_SOURCE
#include "data/data.h"
#include <stdlib.h>

#include "tests/fuzz/memory_folder.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static void use(const tn_tokenizer *t, const char *text, size_t size)
{
    tn_encoding *e = tn_encoding_new();
    size_t       at = 0;
    CHECK(tn_tokenizer_encode(t, e, text, size) == TN_OK);
    for (int64_t i = 0; i <= e->n; i++) {
        const size_t from = i < e->n ? (size_t)e->start[i] : size;
        CHECK(from == at || !i || i == e->n || e->word[i] != e->word[i - 1]);
        for (; at < from; at++) CHECK(memchr(" \r\n", text[at], 3));
        if (i < e->n) CHECK((size_t)e->end[i] > at && (size_t)e->end[i] <= size), at = (size_t)e->end[i];
    }
    tn_encoding_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size ? (const char *)data : "";
    folder_begin();
    folder_put("folder/in", data, size);
    size_t        before = tn_memory_now().live;
    tn_tokenizer *t = tn_tokenizer_load("folder/in");
    CHECK(t || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED);
    tn_clear_error();
    for (int learned = 0; learned < 2; learned++) {
        if (t && tn_tokenizer_kind_of(t) == TN_SUBWORD) {
            use(t, text, size);
            CHECK(tn_tokenizer_save(t, "folder/out") == TN_OK);
            tn_tokenizer *back = tn_tokenizer_load("folder/out");
            CHECK(back && tn_tokenizer_parts(back, NULL, NULL, NULL) == tn_tokenizer_parts(t, NULL, NULL, NULL));
            use(back, text, size);
            tn_tokenizer_free(back);
        }
        tn_tokenizer_free(t);
        t = learned ? NULL : tn_tokenizer_train_text(text, size, .kind = TN_SUBWORD, .vocab_size = 50);
        tn_clear_error(); /* no words, or a NUL */
    }
    folder_end();
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
    return 0;
}

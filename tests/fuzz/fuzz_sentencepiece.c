/* fuzz_sentencepiece.c — any bytes as a .model: an error, or a tokenizer that encodes any bytes, decodes its own token
 * ids, and is the same after writing and reading it. */
#include "data/tokenizer/files/tokenizer_files.h"
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : abort())

static void use(const tn_tokenizer *t, const char *text, size_t n)
{
    tn_encoding *e = tn_encoding_new();
    for (int how = 0; how < 3; how++) {
        const bool unigram = tn_tokenizer_kind_of(t) == TN_UNIGRAM;
        CHECK(tn_tokenizer_encode(t, e, text, n, .bare = true, .sample = unigram && how == 1 ? 0.2 : 0) == TN_OK);
        if (how == 2 && unigram && tn_tokenizer_encode(t, e, text, n < 50 ? n : 50, .bare = true, .nth = 2) != TN_OK) {
            CHECK(tn_error() == TN_EINDEX);
            tn_clear_error();
            continue;
        }
        tn_text_stream d = {{0}, 0, false};
        tn_string      all = {0}, one = {0};
        CHECK(tn_string_add(&one, (tn_text){"", 0}) == TN_OK);
        for (int64_t i = 0; i < e->n; i++) {
            CHECK(e->start[i] >= 0 && e->start[i] <= e->end[i] && (size_t)e->end[i] <= n);
            CHECK(tn_tokenizer_decode_next(t, &d, e->id[i], &one) == TN_OK);
            CHECK(tn_utf8_valid(one.at, one.bytes) == one.bytes);
        }
        CHECK(tn_tokenizer_decode_end(&d, &one) == TN_OK);
        CHECK(tn_tokenizer_decode(t, e->id, e->n, &all) == TN_OK);
        CHECK(all.bytes == one.bytes && !memcmp(all.at, one.at, one.bytes));
        tn_string_free(&all), tn_string_free(&one);
    }
    tn_encoding_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char letters[] = " caf\xc3\xa9 the\xe2\x96\x81 \xe4\xb8\xad\xff\xfe  ";
    const size_t      before = tn_memory_now().live;
    tn_tokenizer     *t = tn__sentencepiece_read("fuzz", data, size, size % 2, NULL, NULL);
    CHECK((t != NULL) == (tn_error() == TN_OK) && tn_error() != TN_ESTATE && tn_error() != TN_ENOMEM);
    tn_clear_error();
    if (t) {
        use(t, letters, sizeof letters - 1);
        use(t, (const char *)data, size < 400 ? size : 400);
        tn_string file = {0}, again = {0};
        CHECK(tn__sentencepiece_write(t, &file));
        tn_tokenizer *back = tn__sentencepiece_read("back", file.at, file.bytes, size % 2, NULL, NULL);
        CHECK(back && tn__sentencepiece_write(back, &again));
        CHECK(file.bytes == again.bytes && !memcmp(file.at, again.at, file.bytes));
        tn_string_free(&file), tn_string_free(&again);
        tn_tokenizer_free(back);
    }
    tn_tokenizer_free(t);
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
    return 0;
}

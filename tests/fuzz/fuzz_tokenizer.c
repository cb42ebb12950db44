/* fuzz_tokenizer.c — any bytes as a tokenizer.json, and any bytes as text. A file is read or refused; what is read
 * encodes and decodes the file itself; and three small tokenizers take any text: what a piece says it comes from lies
 * in the text, in order, and GPT-2's bytes come back. Nothing stays alive. */
#include "data/data.h"
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : abort())

static void use(const tn_tokenizer *t, const char *text, size_t n)
{
    tn_encoding  *e = tn_encoding_new();
    const int64_t size = tn_tokenizer_size(t);
    for (int how = 0; how < 3; how++) {
        const tn_status s =
            tn_tokenizer_encode(t, e, text, n, .bare = how == 0, .literal = how == 1, .pair = how == 2 ? text : NULL,
                                .pair_bytes = n / 2, .max_length = how == 2 ? 20 : 0, .pad_to = how == 2 ? 3 : 0);
        if (s != TN_OK) {
            CHECK(s == TN_EINVAL && how == 2 && e->n == 0); /* the template is too long, or nothing pads */
            tn_clear_error();
            continue;
        }
        for (int64_t i = 0; i < e->n; i++) {
            CHECK(e->id[i] >= 0 && e->id[i] < size);
            CHECK(e->start[i] >= 0 && e->start[i] <= e->end[i] && (size_t)e->end[i] <= n);
        }
        tn_string back = {0};
        CHECK(tn_tokenizer_decode(t, e->id, e->n, &back, .keep_special = true) == TN_OK);
        CHECK(tn_utf8_valid(back.at, back.bytes) == back.bytes);
        if (tn_tokenizer_kind_of(t) == TN_BYTE_BPE && how == 1 && tn_tokenizer_id(t, "fuzz") == 0) {
            tn_string clean = {0};
            CHECK(tn_string_add_valid(&clean, (tn_text){text, n}) == e->invalid);
            CHECK(clean.bytes == back.bytes && !memcmp(clean.at, back.at, back.bytes));
            tn_string_free(&clean);
        }
        tn_string_free(&back);
    }
    tn_encoding_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char lesson[] =
        "the keys to the cabinet are on the table; caf\xc3\xa9 \xe4\xb8\xad the keys' isn't \n\n";
    static const char *const special[] = {"fuzz", "[UNK]", "[CLS]", "[SEP]", NULL};
    static tn_tokenizer     *small[3];
    const char              *text = size ? (const char *)data : "";
    tn_set_threads(1);
    for (int i = 0; i < 3 && !small[2]; i++)
        small[i] = tn_tokenizer_train_text(lesson, sizeof lesson - 1, .kind = (tn_tokenizer_kind)i,
                                           .vocab_size = i == 2 ? 290 : 90, .special = special);
    CHECK(small[0] && small[1] && small[2]);
    const size_t  before = tn_memory_now().live;
    tn_tokenizer *t = tn_tokenizer_parse(text, size);
    CHECK((t != NULL) == (tn_error() == TN_OK) && tn_error() != TN_ESTATE);
    tn_clear_error();
    if (t) use(t, text, size);
    tn_tokenizer_free(t);
    for (int i = 0; i < 3; i++) use(small[i], text, size);
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
    return 0;
}

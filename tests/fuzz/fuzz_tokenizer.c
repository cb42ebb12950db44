/* fuzz_tokenizer.c — any bytes as a tokenizer.json; bytes that are not one, as text. A tokenizer that is read encodes
 * and decodes the end of the file; and three small tokenizers encode any text: the ranges of the tokens lie in the
 * text, in order, and GPT-2's bytes are restored. Nothing stays allocated. */
#include "tests/fuzz/use_tokenizer.h"

#define CHECK(x) ((x) ? (void)0 : abort())

enum { USED = 256 }; /* bytes of text */

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
    const size_t n = size < USED ? size : USED;
    if (t) use_tokenizer(t, text + size - n, n, false);
    tn_tokenizer_free(t);
    if (*text != '{') use_tokenizer(small[size % 3], text, n, size % 3 == TN_BYTE_BPE);
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
    return 0;
}

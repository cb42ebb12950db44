/* fuzz_corpus.c — any bytes as a text for a masked language model, and as a damaged cache with correct checksums. A
 * corpus that opens gives batches; a damaged cache is rebuilt. */
#define _GNU_SOURCE
#include "data/corpus/corpus_private.h"
#include "data/data.h"
#include <stdlib.h>

#include "tests/fuzz/memory_file.h"

#define CHECK(x) ((x) ? (void)0 : abort())

enum { VOCABULARY = 260, FOOTER = 72 };

static tn_status bytes_of(void *user, tn_text line, tn_ids *to)
{
    (void)user;
    for (size_t i = 0; i < line.bytes; i++)
        if (tn_ids_add(to, 4 + (unsigned char)line.at[i]) != TN_OK) return tn_error();
    return TN_OK;
}

static tn_corpus *open_it(bool by_rule)
{
    static const char *const files[] = {"in"};
    return tn_corpus_open(.files = files, .n = 1, .cache = "out", .encoder = {bytes_of, NULL}, .vocabulary = VOCABULARY,
                          .by_rule = by_rule);
}

static void put_little(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> 8 * i);
}

/* Overwrites some bytes of the cache, and updates the checksums. */
static void twist(const uint8_t *data, size_t size)
{
    size_t n = memory.out_bytes;
    for (size_t i = 0; i + 2 < size && i < 30; i += 3) {
        size_t at = (size_t)(data[i] | data[i + 1] << 8) % n;
        memory.out[i % 2 ? at : n - 1 - at % 120 % n] ^= data[i + 2];
    }
    uint8_t *footer = memory.out + n - FOOTER;
    put_little(footer + 56, tn__sum(0, memory.out, n - FOOTER));
    put_little(footer + 64, tn__sum(0, footer, FOOTER - 8));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    memory_files(data, size);
    static uint8_t kinds[VOCABULARY] = {1, 1, 1, 1};
    size_t         before = tn_memory_now().live;
    for (int i = 4; i < VOCABULARY; i++) kinds[i] = i % 5 ? TN_TOKEN_INNER : 0;
    bool     by_rule = size % 2;
    tn_scope s = tn_scope_begin();
    for (int twisted = 0; twisted < 2; twisted++) {
        if (twisted && memory.out_bytes > FOOTER) twist(data, size);
        tn_corpus *c = open_it(by_rule);
        CHECK(c || tn_error() == TN_EFORMAT || tn_error() == TN_EIO || (twisted && tn_error() == TN_EINVAL));
        tn_clear_error();
        tn_ids ids = {0};
        for (int64_t i = 0; i < tn_corpus_sentences(c); i++)
            if (tn_corpus_sentence(c, i, &ids) != TN_OK) break;
        CHECK(ids.n == tn_corpus_tokens(c) || (twisted && tn_error() == TN_EFORMAT));
        tn_clear_error();
        tn_ids_free(&ids);
        for (int pairs = 0; c && pairs < 2; pairs++) {
            tn_mlm *b = tn_mlm_new(c, .pairs = pairs, .max_tokens = 5 + (int64_t)(size % 20), .cls = 1, .sep = 2,
                                   .mask = 3, .kinds = kinds, .whole_words = size % 3, .tokens = 64, .ahead = 0);
            tn_clear_error();
            tn_mlm_batch x;
            for (bool more = b; more;) {
                tn_scope one = tn_scope_begin();
                if ((more = tn_mlm_next(b, &x))) CHECK(x.tokens <= tn_numel(x.ids));
                tn_scope_end(one);
            }
            CHECK(tn_error() == TN_OK || twisted);
            tn_clear_error();
            tn_mlm_free(b);
        }
        tn_corpus_close(c);
    }
    tn_set_io(NULL);
    tn_scope_end(s);
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
    return 0;
}

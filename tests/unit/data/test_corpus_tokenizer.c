/* test_corpus_tokenizer.c — a corpus and its batches from a tokenizer; a held-out part of a corpus. */
#include "tests/common/check_main.h"

#include "data/data.h"

static const char *file(const char *name, const char *text)
{
    const char *path = tn_test_file(name);
    ck_assert_int_eq(tn_file_write(path, text, strlen(text)), TN_OK);
    return path;
}

/* A tokenizer gives the corpus and its batches what the caller would otherwise collect. */
TEST(of_a_tokenizer)
{
    const char              *texts[] = {file("pets", "the old cats ran.\na dog sees the cats.\n\nthe sea is old.\n")};
    tn_tokenizer            *t = tn_tokenizer_train(1, texts, .vocab_size = 60, .min_count = 1);
    tn_encoding             *e = tn_encoding_new();
    const tn_tokenizer_roles r = tn_tokenizer_special(t);
    uint8_t                  kinds[64] = {0};
    remove(tn_test_file("pets.tokens"));
    for (int64_t i = 0; i < tn_tokenizer_size(t); i++)
        kinds[i] = (uint8_t)((tn_tokenizer_is_special(t, i) ? TN_TOKEN_SPECIAL : 0) |
                             (tn_tokenizer_is_inner(t, i) ? TN_TOKEN_INNER : 0));
    tn_corpus *c = tn_corpus_open(.files = texts, .n = 1, .cache = tn_test_file("pets.tokens"), .tokenizer = t);
    tn_corpus *same = tn_corpus_open(.files = texts, .n = 1, .cache = tn_test_file("pets.tokens"),
                                     .encoder = tn_tokenizer_encoder(t, e), .encoder_sum = tn_tokenizer_checksum(t),
                                     .vocabulary = tn_tokenizer_size(t));
    ck_assert_int_eq(tn_error(), TN_OK);
    ck_assert(tn_corpus_made(c) && !tn_corpus_made(same));
    tn_mlm *a = tn_mlm_new(c, .tokenizer = t, .rate = 0.5, .whole_words = true, .seed = 3);
    tn_mlm *b = tn_mlm_new(same, .pad = r.pad, .cls = r.first, .sep = r.separator, .mask = r.mask, .kinds = kinds,
                           .rate = 0.5, .whole_words = true, .seed = 3);
    const tn_scope s = tn_scope_begin();
    tn_mlm_batch   x, y;
    ck_assert(tn_mlm_next(a, &x) && tn_mlm_next(b, &y));
    ck_assert(tn_same_bits(x.ids, y.ids));
    ck_assert(tn_same_bits(x.masked_at, y.masked_at));
    ck_assert_int_gt(tn_numel(x.masked_at), 0);
    tn_scope_end(s);
    tn_mlm_free(a), tn_mlm_free(b), tn_corpus_close(same);

    static const char *const names[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[HIDE]", NULL};
    tn_tokenizer *maskless = tn_tokenizer_train(1, texts, .vocab_size = 60, .min_count = 1, .special = names);
    ck_assert_int_eq(tn_error(), TN_OK);
    ck_refused(tn_mlm_new(c, .tokenizer = maskless), TN_EUNSUPPORTED,
               "the tokenizer has no [MASK]; masked language models need [PAD], [CLS], [SEP] and [MASK] "
               "in the vocabulary");
    ck_assert_int_ne((int64_t)tn_tokenizer_checksum(t), (int64_t)tn_tokenizer_checksum(maskless));
    tn_corpus_close(c);
    c = tn_corpus_open(.files = texts, .n = 1, .cache = tn_test_file("pets.tokens"), .tokenizer = maskless);
    ck_assert_int_eq(tn_error(), TN_OK);
    ck_assert(tn_corpus_made(c)); /* encoded again */
    tn_tokenizer *small = tn_tokenizer_train(1, texts, .vocab_size = 30);
    ck_refused(tn_mlm_new(c, .tokenizer = small), TN_EINVAL,
               "tn_mlm_new: .tokenizer has 30 tokens, but that of the corpus has 45");
    tn_corpus_close(c), tn_encoding_free(e), tn_tokenizer_free(t), tn_tokenizer_free(maskless),
        tn_tokenizer_free(small);
}

/* Adds to seen[id] the original tokens of an epoch; returns their number. */
static int64_t tokens_of(tn_mlm *b, int *seen)
{
    int64_t n = 0;
    for (bool more = true; more;) {
        const tn_scope s = tn_scope_begin();
        tn_mlm_batch   x;
        if ((more = tn_mlm_next(b, &x))) {
            int64_t *id = tn_data_mut(x.ids);
            for (int64_t i = 0; i < tn_numel(x.masked_at); i++)
                id[tn_get_i64(x.masked_at, i)] = tn_get_i64(x.masked_ids, i);
            for (int64_t i = 0; i < tn_numel(x.ids); i++)
                if (id[i] >= 5) seen[id[i]]++, n++;
        }
        tn_scope_end(s);
    }
    return n;
}

/* The two parts of a corpus have each sentence once, and none in common; the cut may be within a document. */
TEST(parts_of_a_corpus)
{
    char text[4000] = "", *p = text;
    enum { WORDS = 100 };
    for (int i = 0; i < WORDS; i++) p += sprintf(p, "w%c%c.%s", 'a' + i / 26, 'a' + i % 26, i == 20 ? "\n\n" : "\n");
    const char   *texts[] = {file("words", text)};
    tn_tokenizer *t = tn_tokenizer_train(1, texts, .vocab_size = 400, .min_count = 1);
    tn_corpus    *c = tn_corpus_open(.files = texts, .n = 1, .cache = tn_test_file("words.tokens"), .tokenizer = t);
    tn_mlm       *train = tn_mlm_new(c, .tokenizer = t, .to = 0.7), *held = tn_mlm_new(c, .tokenizer = t, .from = 0.7);
    int           seen[400] = {0}, both[400] = {0};
    ck_assert_int_eq(tn_error(), TN_OK);
    const int64_t all = tn_corpus_tokens(c), first = tokens_of(train, seen), second = tokens_of(held, both);
    ck_assert_int_eq(first + second, all);
    ck_assert_msg(20 * first > 13 * all && 20 * first < 15 * all, "%d of %d", (int)first, (int)all);
    for (int64_t id = 5; id < tn_tokenizer_size(t); id++) /* each word is one token and is in one part */
        if (*tn_tokenizer_token(t, id) == 'w' && strlen(tn_tokenizer_token(t, id)) == 3)
            ck_assert_msg(seen[id] + both[id] == 1, "token %d", (int)id);
    tn_mlm_free(train), tn_mlm_free(held);
    ck_refused(tn_mlm_new(c, .tokenizer = t, .from = 0.5, .to = 0.5), TN_EINVAL,
               "tn_mlm_new: .from is 0.5 and .to 0.5, expected 0 ≤ from < to ≤ 1");
    ck_refused(tn_mlm_new(c, .tokenizer = t, .pairs = true, .from = 0.5), TN_EINVAL,
               "tn_mlm_new: .pairs takes sentences from the whole corpus; unset .from and .to");
    ck_refused(tn_mlm_new(c, .tokenizer = t, .from = 0.9999), TN_EINVAL,
               "tn_mlm_new: no sentence starts between .from and .to");
    tn_corpus_close(c), tn_tokenizer_free(t);
}

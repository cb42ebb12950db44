/* fuzz_subword.c — any bytes as the codes of a byte-pair encoding, as a vocabulary, and as the text that codes are
 * learned from and applied to. No byte of a line is lost: joining restores it, except for runs of spaces. */
#define _GNU_SOURCE
#include "data/data.h"
#include <stdlib.h>

#include "tests/fuzz/memory_file.h"

#define CHECK(x) ((x) ? (void)0 : abort())

/* True if b is a without the separators and spaces. */
static void same_letters(tn_text a, tn_text b)
{
    size_t i = 0, j = 0;
    while (i < a.bytes || j < b.bytes) {
        if (i < a.bytes && (a.at[i] == ' ' || a.at[i] == '@')) i++;
        else if (j < b.bytes && (b.at[j] == ' ' || b.at[j] == '@')) j++;
        else CHECK(i < a.bytes && j < b.bytes && a.at[i++] == b.at[j++]);
    }
}

static void use(tn_subword *s, const char *text, size_t size)
{
    tn_string out = {0}, joined = {0};
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text + at, '\n', size - at);
        size_t      n = end ? (size_t)(end - text) - at : size - at;
        tn_text     line = {text + at, n};
        CHECK(tn_subword_apply(s, line, &out) == TN_OK);
        same_letters(line, (tn_text){out.at, out.bytes});
        CHECK(tn_subword_join(s, (tn_text){out.at, out.bytes}, &joined) == TN_OK);
        same_letters(line, (tn_text){joined.at, joined.bytes});
        at += n + 1;
    }
    tn_string_free(&out);
    tn_string_free(&joined);
}

/* Saved codes are read again; only codes that are not UTF-8 cannot be saved. */
static void saved(const tn_subword *s)
{
    if (tn_subword_save(s, "out") != TN_OK) {
        CHECK(tn_error() == TN_EFORMAT && strstr(tn_error_message(), "is not UTF-8"));
        tn_clear_error();
        return;
    }
    tn_subword *back = tn_subword_load("out");
    CHECK(back && tn_subword_merges(back) == tn_subword_merges(s));
    tn_subword_free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size ? (const char *)data : "";
    memory_files(data, size);
    size_t          before = tn_memory_now().live;
    tn_word_counts *words = tn_word_counts_new(), *pieces = tn_word_counts_new(), *read = tn_word_counts_new();
    CHECK(tn_word_counts_add_file(words, "in") == TN_OK);
    tn_word_counts_load(read, "in");
    CHECK(tn_error() == TN_OK || tn_error() == TN_EFORMAT);
    tn_clear_error();
    tn_subword *s = tn_subword_load("in");
    CHECK(s || tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED);
    tn_clear_error();
    for (int learned = 0; learned < 2; learned++) {
        if (s) {
            use(s, text, size);
            tn_subword_set_vocabulary(s, tn_word_counts_size(read) ? read : words, 1 + learned);
            tn_clear_error(); /* codes of version 0.1 reject it */
            use(s, text, size);
            if (size > 3 && text[0] && text[0] != ' ') {
                const char glossary[2] = {text[0], 0}, *const list[] = {glossary};
                CHECK(tn_subword_set_glossaries(s, 1, list) == TN_OK);
                use(s, text, size);
            }
            CHECK(tn_subword_count(s, words, pieces) == TN_OK);
            saved(s);
        }
        tn_subword_free(s);
        s = learned ? NULL : tn_subword_learn(words, .merges = 50, .as_printed = size % 2);
    }
    tn_word_counts_free(words);
    tn_word_counts_free(pieces);
    tn_word_counts_free(read);
    tn_set_io(NULL);
    CHECK(tn_error() == TN_OK && tn_memory_now().live == before);
    return 0;
}

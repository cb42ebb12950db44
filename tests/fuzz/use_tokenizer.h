/* use_tokenizer.h — for fuzz targets that have created a tokenizer: it encodes any bytes, and the ranges of the tokens
 * lie in the text, in order. */
#ifndef TENON_TESTS_FUZZ_USE_TOKENIZER_H
#define TENON_TESTS_FUZZ_USE_TOKENIZER_H

#include "data/data.h"
#include <stdlib.h>
#include <string.h>

#define USABLE(x) ((x) ? (void)0 : abort())

/* bytes: a byte-level tokenizer with tokens for all bytes, which restores the text. */
static void use_tokenizer(const tn_tokenizer *t, const char *text, size_t n, bool bytes)
{
    tn_encoding  *e = tn_encoding_new();
    const int64_t size = tn_tokenizer_size(t);
    for (int how = 0; how < 3; how++) {
        const tn_status s = tn_tokenizer_encode(t, e, text, n, .bare = how == 0, .literal = how == 1,
                                                .pair = how == 2 ? text : NULL, .pair_bytes = how == 2 ? n / 2 : 0,
                                                .max_length = how == 2 ? 20 : 0, .pad_to = how == 2 ? 3 : 0);
        if (s != TN_OK) {
            USABLE(s == TN_EINVAL && how == 2 && e->n == 0); /* the template is too long, or there is no padding
                                                                token */
            tn_clear_error();
            continue;
        }
        for (int64_t i = 0; i < e->n; i++) {
            USABLE(e->id[i] >= 0 && e->id[i] < size);
            USABLE(e->start[i] >= 0 && e->start[i] <= e->end[i] && (size_t)e->end[i] <= n);
        }
        tn_string back = {0};
        USABLE(tn_tokenizer_decode(t, e->id, e->n, &back, .keep_special = true) == TN_OK);
        USABLE(tn_utf8_valid(back.at, back.bytes) == back.bytes);
        if (bytes && how == 1) {
            tn_string clean = {0};
            USABLE(tn_string_add_valid(&clean, (tn_text){text, n}) == e->invalid);
            USABLE(clean.bytes == back.bytes && !memcmp(clean.at, back.at, back.bytes));
            tn_string_free(&clean);
        }
        tn_string_free(&back);
    }
    tn_encoding_free(e);
}

#endif

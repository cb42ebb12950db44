/* subword.h — splits words into subwords by byte-pair encoding, compatible with subword-nmt and its files (Sennrich et
 * al. 2016). Part of data.h: include that.
 *
 *     tn_word_counts *words = tn_word_counts_new();
 *     tn_word_counts_add_file(words, "train.en");
 *     tn_word_counts_add_file(words, "train.de");                    // learned jointly
 *     tn_subword *codes = tn_subword_learn(words, .merges = 10000);
 *     if (tn_subword_save(codes, "codes") != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_string line = {0};
 *     tn_subword_apply(codes, tn_text_of("the widest river"), &line);  // "the wid@@ est river"
 *
 * Words are separated by spaces (U+0020) and line ends: tokenize first. A subword that is not the last of its word ends
 * in "@@". */
#ifndef TENON_DATA_SUBWORD_H
#define TENON_DATA_SUBWORD_H

#include "lines.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- word counts ------------------------------------------------------------------------------------------------- */

typedef struct tn_word_counts tn_word_counts;
TN_API tn_word_counts        *tn_word_counts_new(void);
TN_API tn_status              tn_word_counts_add(tn_word_counts *w, tn_text word, int64_t times);
TN_API tn_status              tn_word_counts_add_line(tn_word_counts *w, tn_text line);
TN_API tn_status              tn_word_counts_add_file(tn_word_counts *w, const char *path); /* a text of any size */
TN_API int64_t                tn_word_counts_size(const tn_word_counts *w);                 /* distinct words */
TN_API tn_text tn_word_counts_at(const tn_word_counts *w, int64_t i, int64_t *times);       /* in reading order */
TN_API int64_t tn_word_counts_get(const tn_word_counts *w, tn_text word);                   /* 0: unknown */
/* A file with one "word count" per line: the most frequent first, ties in reading order. Loading adds to the counts. */
TN_API tn_status tn_word_counts_save(const tn_word_counts *w, const char *path) TN_CHECKED;
TN_API tn_status tn_word_counts_load(tn_word_counts *w, const char *path);
TN_API void      tn_word_counts_free(tn_word_counts *w);

/* ---- learning ---------------------------------------------------------------------------------------------------- */

typedef struct tn_subword_learn_args {
    int                   zero_;
    int64_t merges        TN_IS(10000);  /* 10000 */
    int64_t min_frequency TN_IS(2);      /* of a pair: 2 */
    bool                  total_symbols; /* .merges includes the characters: it is about the vocabulary size */
    /* The algorithm as the paper and lectures print it: the end of the word is a separate symbol (codes of version
     * 0.1), and of equally frequent pairs the one that occurs first is merged, not the last in the alphabet. For small
     * corpora: each merge scans all words. */
    bool as_printed;
    int  end_;
} TN_KEYWORDS_ONLY tn_subword_learn_args;

typedef struct tn_subword tn_subword;
TN_API tn_subword        *tn_subword_learn_run(const tn_word_counts *w, tn_subword_learn_args config);
TN_API tn_subword        *tn_subword_load(const char *path);
TN_API tn_status          tn_subword_save(const tn_subword *s, const char *path) TN_CHECKED;
TN_API void               tn_subword_free(tn_subword *s);
TN_API int64_t            tn_subword_merges(const tn_subword *s); /* a right side "</w>" is the end of the word */
TN_API tn_status          tn_subword_merge_at(const tn_subword *s, int64_t i, tn_text *left, tn_text *right);

/* ---- applying ---------------------------------------------------------------------------------------------------- */

TN_API tn_status tn_subword_set_separator(tn_subword *s, const char *separator); /* default "@@" */
/* A subword that occurs less often than `threshold` in `vocabulary` (from tn_subword_count) is split again. A NULL
 * vocabulary switches this off. */
TN_API tn_status tn_subword_set_vocabulary(tn_subword *s, const tn_word_counts *vocabulary, int64_t threshold);
/* Texts that are never split, nor joined with their neighbours. */
TN_API tn_status tn_subword_set_glossaries(tn_subword *s, int n, const char *const *glossaries);

/* Many threads may use the same s at once. */
TN_API tn_status tn_subword_apply(const tn_subword *s, tn_text line, tn_string *to);
TN_API tn_status tn_subword_join(const tn_subword *s, tn_text line, tn_string *to); /* restores the words */
/* Adds the number of occurrences of each subword in the words to `to`. */
TN_API tn_status tn_subword_count(const tn_subword *s, const tn_word_counts *words, tn_word_counts *to);

#ifdef __cplusplus
} /* extern "C" */
#else
#define TN_SUBWORD_LEARN_ARGS_DEFAULTS .merges = 10000, .min_frequency = 2
#define tn_subword_learn(...) TN_CALL_(tn_subword_learn_run(TN_SUBWORD_LEARN_(__VA_ARGS__, .zero_ = 0)))
#define TN_SUBWORD_LEARN_(words, ...) \
    words, ((tn_subword_learn_args){TN_SUBWORD_LEARN_ARGS_DEFAULTS, TN_NAMED_, __VA_ARGS__})
#endif
#endif

/* vocab.h — word ids, and sequences of different lengths in one tensor. Part of data.h: include that.
 *
 *     tn_vocab *v = tn_vocab_new();                                   // 0 is padding, 1 is any unknown word
 *     tn_vocab_read(v, "the cat sat on the mat", 22);                 // the 2, cat 3, sat 4, on 5, mat 6
 *     tn_tensor *x = tn_vocab_encode(v, "the dog sat", 11);           // 2 1 4
 *     puts(tn_vocab_word(v, 4));                                      // sat
 *     tn_vocab_free(v); */
#ifndef TENON_DATA_VOCAB_H
#define TENON_DATA_VOCAB_H

#include "../core/core.h"

TN_C_BEGIN_

typedef struct tn_vocab tn_vocab;
enum { TN_VOCAB_PADDING = 0, TN_VOCAB_UNKNOWN = 1, TN_VOCAB_FIRST = 2 };

TN_API tn_vocab *tn_vocab_new(void);
TN_API void      tn_vocab_free(tn_vocab *v);

/* A word is any bytes between Unicode white space, unchanged: the caller lower-cases if needed. */
TN_API int64_t   tn_vocab_add(tn_vocab *v, const char *word, size_t bytes);  /* its id, new or old; -1: raised */
TN_API tn_status tn_vocab_read(tn_vocab *v, const char *text, size_t bytes); /* adds all words, counts them */
/* Keeps the words that were read at least min_count times, at most `most` of them (0: all), ordered by falling count,
 * then by bytes. Ids change. */
TN_API tn_status tn_vocab_trim(tn_vocab *v, int64_t min_count, int64_t most);

TN_API int64_t     tn_vocab_size(const tn_vocab *v);                               /* includes padding and unknown */
TN_API int64_t     tn_vocab_id(const tn_vocab *v, const char *word, size_t bytes); /* TN_VOCAB_UNKNOWN if unknown */
TN_API const char *tn_vocab_word(const tn_vocab *v, int64_t id);  /* "<pad>", "<unk>"; an id out of range is an error */
TN_API int64_t     tn_vocab_count(const tn_vocab *v, int64_t id); /* times it was read */
TN_API tn_tensor  *tn_vocab_encode(const tn_vocab *v, const char *text, size_t bytes); /* i64 [words] */

/* Copies n sequences into one i64 tensor [n, T], or [T, n] with .time_first, where T is the greatest length, or
 * .length:
 *
 *     tn_tensor *x = tn_pad_sequences(2, rows, row_lengths, .left = true);
 *
 * A longer sequence loses its end, or with .left its start: padding and cutting are on the same side. */
typedef struct tn_pad_args {
    int            zero_;
    const int64_t *lengths;    /* of the n sequences */
    int64_t        length;     /* T; 0: the greatest length */
    bool           left;       /* pad before each sequence: its last element is at T - 1 */
    bool           time_first; /* [T, n] */
    int64_t        padding;    /* padding value: 0, as in a vocabulary */
    int            end_;
} TN_KEYWORDS_ONLY tn_pad_args;
TN_API tn_tensor  *tn_pad_sequences_run(int64_t n, const int64_t *const *rows, tn_pad_args how);

TN_C_END_
#define tn_pad_sequences(n, rows, ...) \
    TN_CALL_(tn_pad_sequences_run(n, rows, TN_ARGS1_(tn_pad_args, TN_NO_DEFAULTS_, lengths, __VA_ARGS__, TN_END_)))
#endif

/* subword_private.h — codes and word counts, shared by learning and applying. Private. */
#ifndef TENON_DATA_SUBWORD_SUBWORD_PRIVATE_H
#define TENON_DATA_SUBWORD_SUBWORD_PRIVATE_H

#include "data/text/data_private.h"
#include "data/subword.h"

struct tn_word_counts {
    tn__strings words;
    int64_t    *times;
    int64_t     times_room;
};

#define TN__WORD_END "</w>"
enum { TN__WORD_END_BYTES = 4, TN__IN_WORD = 1, TN__AT_END = 2 };

typedef struct {
    uint32_t left, right; /* symbols */
} tn__merge;

struct tn_subword {
    int         version; /* 1: the end of a word is a separate symbol; 2: it is part of the last symbol */
    tn__strings symbols;
    tn__grams   pairs; /* (left, right): rank + 1 */
    tn__merge  *merge; /* by rank */
    int64_t     merges, merge_room;
    uint32_t   *whole; /* by rank: the symbol that it makes */
    int32_t    *split; /* by symbol: the first merge that makes it, -1 if none does */
    uint8_t    *known; /* by symbol: TN__IN_WORD, TN__AT_END; NULL without a vocabulary */
    int64_t     split_n, known_n;
    tn_string   separator;
    tn__strings glossaries;
};

tn_subword *tn__subword_new(int version);
/* Adds a merge of the two texts; a duplicate is ignored. False: raised. */
bool tn__subword_add(tn_subword *s, tn_text left, tn_text right);
bool tn__subword_finish(tn_subword *s); /* call after the last merge */

#endif

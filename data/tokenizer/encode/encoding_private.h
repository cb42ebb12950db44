/* encoding_private.h — the memory of an encoding, and the functions that split texts into words and these into tokens.
 * Private. */
#ifndef TENON_DATA_TOKENIZER_ENCODE_ENCODING_PRIVATE_H
#define TENON_DATA_TOKENIZER_ENCODE_ENCODING_PRIVATE_H

#include "data/tokenizer/encode/each_word.h"

enum { TN__CACHED_KEY = 24, TN__CACHED_TOKENS = 7, TN__CACHE_SLOTS = 1 << 13 };
typedef struct { /* a word and its tokens */
    uint64_t key[TN__CACHED_KEY / 8];
    int32_t  id[TN__CACHED_TOKENS];
    uint8_t  bytes[TN__CACHED_TOKENS]; /* bytes of the word per token */
    uint8_t  n, used;                  /* used: bytes of the word; 0: empty slot */
} tn__cached_word;

typedef struct {
    int32_t c, from, to; /* a token, and the bytes of the word that it covers; from = to: merged into its left
                            neighbour */
    int32_t prev, next;  /* -1: none */
} tn__symbol;

typedef struct {
    int32_t id, start, end, word;
} tn__token;

typedef struct { /* the best segmentation up to an offset of a word, see unigram.c */
    double  sum;
    int32_t begin, id; /* of its last token; begin -1: none */
} tn__path;

typedef struct tn__encoding {
    tn_encoding         result;    /* first member: the caller's pointer points here */
    const tn_tokenizer *tokenizer; /* of a tn_encoder */

    tn__token *token; /* of both texts, one after the other */
    size_t     tokens;
    int64_t    token_room;
    int32_t   *arrays; /* the arrays of `result` */
    int64_t    array_room;

    char    *word; /* the current word or text, normalized */
    int32_t *from; /* for each of its bytes the range of the text that it comes from: from, to, from, to … */
    int64_t  word_room, from_room;
    char    *output; /* of the current step; then swapped with word and from */
    int32_t *output_from;
    int64_t  output_room, output_from_room;
    size_t   output_bytes;
    int32_t *point; /* code points */
    int64_t  point_room;

    char   *probe; /* a prefix, and the rest of a word */
    int64_t probe_room;

    tn_string clean; /* a copy of a text with invalid UTF-8 replaced */
    int32_t  *fix;   /* for each replacement its end in `clean`, and the number of bytes to subtract from there */
    size_t    fixes;
    int64_t   fix_room;

    tn__path *path; /* of the Viterbi search */
    int64_t   path_room;
    double    sample; /* of tn_encode_args, and the count of random numbers drawn */
    uint64_t  seed, drawn;
    int       nth;
    bool      literal; /* of tn_encode_args, or the tokenizer's */

    tn__symbol *symbol;
    uint64_t   *heap; /* rank << 32 | left symbol */
    int64_t     symbol_room, heap_room;

    tn__cached_word *cache;
    uint64_t         serial; /* the tokenizer whose words are cached */
    int64_t          words_encoded;
    uint8_t          bytes[TN__CACHED_TOKENS]; /* of the first tokens of the current word */
    size_t           split;                    /* end of the last of these */

    bool line_end; /* the current word is the last of its text */

    tn__word_sink sink; /* receives each word instead of encoding it; NULL: encode */
    void         *user;
} tn__encoding;

/* These split text[from, to) into words and pass each to tn__encode_word or the sink; *number: index of the next word.
 * False: raised. */
bool tn__bert_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                    int32_t *number);
bool tn__bert_words_slow(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                         int32_t *number);
bool tn__byte_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                    int32_t *number);

bool tn__sentence_words(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to,
                        int32_t *number);
/* Writes the text after all steps to s->word and s->from; returns its length, -1: raised. */
int64_t tn__normalize(const tn_tokenizer *t, tn__encoding *s, const char *text, int32_t from, int32_t to);

enum { TN__MAPPED = INT32_MIN };
typedef struct {
    const char *text;
    size_t      bytes;
    int64_t     letters; /* code points; more than t->longest_word: text has only the first ones */
    int32_t     start;   /* offset in the text if the word is a part of it; TN__MAPPED: see s->from */
    int32_t     end;     /* offset in the text */
    int32_t     number;
} tn__word;
bool tn__encode_word(const tn_tokenizer *t, tn__encoding *s, const tn__word *w);      /* appends its tokens */
bool tn__encode_wordpiece(const tn_tokenizer *t, tn__encoding *s, const tn__word *w); /* longest match first */
bool tn__encode_bpe(const tn_tokenizer *t, tn__encoding *s, const tn__word *w);       /* byte-pair encoding */
bool tn__encode_unigram(const tn_tokenizer *t, tn__encoding *s, const tn__word *w);   /* the greatest sum of scores */
/* Appends the i-th token of the current word, and records its length for the cache. */
bool tn__word_token_add(tn__encoding *s, const tn__word *w, size_t i, int32_t id, size_t from, size_t to);
bool tn__token_add(tn__encoding *s, const tn__word *w, int32_t id, size_t from, size_t to); /* bytes of the word */

bool tn__encoding_room(tn__encoding *s, size_t word_bytes); /* makes room in word and from */

#endif

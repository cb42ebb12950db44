/* vectors_private.h — what the files of data/vectors share: the vectors themselves, words that are looked up fast, and
 * what training consists of. Private. */
#ifndef TENON_DATA_VECTORS_VECTORS_PRIVATE_H
#define TENON_DATA_VECTORS_VECTORS_PRIVATE_H

#include "core/kernels/kernels.h"
#include "data/text/data_private.h"
#include "data/vectors.h"

/* ---- vectors (vectors.c) ----------------------------------------------------------------------------------------- */

/* FastText: a word's vector is the mean of a row of its own and of those of its n-grams, found by hashing. */
typedef struct {
    int32_t min_n, max_n;
    int64_t buckets;
    float  *in, *out; /* [words + buckets, dim] and [words, dim]; out may be NULL */
    /* What FastText's files say besides, and what is written again. */
    int32_t window, epochs, min_count, negatives, loss, model, rate_every;
    double  sample;
    int64_t tokens;
} tn__subwords;

struct tn_vectors {
    tn__strings  words;
    int64_t      dim, room; /* room: of count and length, in words */
    int64_t     *count;     /* how often each occurs; zeros: not known */
    double       total;     /* of them */
    float       *row;       /* [words, dim] */
    float       *length;    /* of each row; made with tn__vectors_done */
    tn__subwords grams;     /* max_n 0: none */
};
tn_vectors        *tn__vectors_new(int64_t words, int64_t dim); /* room for them; raises */
static inline bool tn__text_is(tn_text t, const char *s) { return t.bytes == strlen(s) && !memcmp(t.at, s, t.bytes); }
bool               tn__vectors_done(tn_vectors *v); /* all words and rows are there: computes the lengths */
/* The rows of a FastText model from its input rows. */
void tn__vectors_compose(tn_vectors *v);

/* The rows of FastText's n-grams of a word, counted from the first bucket on: at most `most` of them, returns how many
 * there are. The text is without the < and > that it is wrapped in. */
int64_t tn__ngrams(tn_text word, const tn__subwords *g, int64_t *to, int64_t most);

/* ---- words found fast (lexicon.c) -------------------------------------------------------------------------------- */

enum { TN__WORD_MOST = 255 }; /* bytes: what is longer is no word, and is passed over */

/* Words with counts. Zeros are an empty one. */
typedef struct {
    tn__strings words; /* whose own table of names is not used */
    int64_t    *count;
    int64_t     count_room;
    struct tn__lexicon_slot {
        uint32_t hash, word; /* word + 1; 0: free */
    } * slot;
    uint64_t slots, seed;
    int64_t  total; /* of the counts */
    int64_t  lines;
    uint64_t sum; /* a checksum of what was read */
} tn__lexicon;
int64_t tn__lexicon_find(const tn__lexicon *x, const char *text, size_t bytes); /* -1 */
bool    tn__lexicon_count(tn__lexicon *x, const char *text, size_t bytes, int64_t times);
/* Counts the words of a file, of any size. When there are more than `most` different ones, the rarest go. */
bool tn__lexicon_read(tn__lexicon *x, const char *who, const char *path, int64_t most);
/* Leaves words of at least min_count, the most frequent first, equals as they came. */
bool tn__lexicon_trim(tn__lexicon *x, int64_t min_count);
void tn__lexicon_free(tn__lexicon *x);

static inline bool tn__is_gap(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0; }

/* ---- chance ------------------------------------------------------------------------------------------------------ */

/* The finalizer of splitmix64: numbers that look random, of a counter. */
static inline uint64_t tn__splitmix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}
/* 0 … n-1 from 32 random bits */
static inline uint32_t tn__choose(uint32_t bits, uint32_t n) { return (uint32_t)((uint64_t)bits * n >> 32); }

/* Draws i in proportion to weight[i], in constant time (Walker's alias method, as Vose makes the table). */
typedef struct {
    struct tn__noise_slot {
        uint32_t cut, other;
    } * slot;
    uint32_t n;
} tn__noise;
bool                   tn__noise_make(tn__noise *a, const double *weight, int64_t n); /* raises */
void                   tn__noise_free(tn__noise *a);
static inline uint32_t tn__noise_draw(const tn__noise *a, uint64_t random)
{
    const struct tn__noise_slot *s = a->slot + tn__choose((uint32_t)random, a->n);
    return (uint32_t)(random >> 32) < s->cut ? (uint32_t)(s - a->slot) : s->other;
}

/* ---- training by windows (train.c, shard.c, windows.c) ----------------------------------------------------------- */

/* A table of rows that all learn from, each width elements. */
typedef struct {
    float  *x;
    int64_t rows;
} tn__table;

/* The rows of a table that a shard works on: copies of its own, found by their number in the table. */
typedef struct {
    int32_t *row;   /* of a copy: its number in the table */
    int32_t *slot;  /* copy + 1 by hash, 0: free */
    uint32_t slots; /* a power of two */
    int64_t  n, room;
    float   *x; /* [room, width] */
} tn__copies;

typedef struct tn__trainer tn__trainer;

/* A piece of the text, and what one worker needs for it. */
typedef struct {
    const tn__trainer *t;
    /* its part of the texts, as if they stood behind each other: where it begins, and how much of it was read; and in
     * what order: the piece it begins with, and how many pieces further the next one is */
    int64_t    part, bytes, read, first_piece, step;
    int        file; /* that is open; -1: none */
    char       label[TN__LABEL];
    tn__source source;
    /* the piece: from ... to - 1 of the file; and its bytes with those around it */
    int64_t    from, to, text_at, text_end, file_end;
    char      *text;
    uint64_t   key; /* of what is drawn: seed, epoch, file */
    tn__copies in, out;
    int32_t   *token;               /* words that are kept, in order; -1: a line's end */
    int32_t   *in_at, *out_at;      /* of each token: its copy */
    int64_t    tokens, first, last; /* first … last-1 are the shard's own, the others stand around them */
    int64_t    words;               /* its own, with those that were skipped */
    uint64_t   random;              /* where its draws begin */
    int32_t   *pool;                /* copies of words that were drawn as negatives */
    float     *scratch;             /* [2, width] */
    float     *logit;               /* [TN__PAIRS_IN, words] and [TN__PAIRS_IN, width], for softmax */
    uint8_t   *window;              /* of each token: how far it looks */
} tn__shard;

/* The tree of hierarchical softmax: the inner nodes on the way to each word, and the turns. */
typedef struct {
    int64_t *start; /* [words + 1] */
    int32_t *node;
    float   *turn; /* 1: the right branch */
} tn__tree;
bool tn__tree_make(tn__tree *x, const int64_t *count, int64_t words); /* raises */
void tn__tree_free(tn__tree *x, int64_t words);

struct tn__trainer {
    tn_vectors_train_args    a;
    const tn__pairs_kernels *kernels;
    tn__lexicon              words;
    int64_t                  width;
    tn__table                in, out;
    uint32_t                *keep; /* of each word: it is kept where 32 random bits are not more */
    tn__noise                noise;
    int64_t                  pool;  /* draws, of each shard */
    float                   *shift; /* of each word, with NCE */
    tn__tree                 tree;
    int64_t                 *gram_start; /* [words + 1]: FastText's rows of each word, its own first */
    int32_t                 *gram;
    void (*learn)(tn__shard *s);
    /* what is done in each round, from shard to shard, and then from part to part */
    void (*work)(int64_t from, int64_t to, void *trainer), (*after)(int64_t from, int64_t to, void *trainer);
    struct tn__pairs *pairs; /* GloVe's (glove.c) */
    /* the round under way */
    float      rate;
    tn__shard *shard;
    int64_t    shards;
};

/* So the text is cut, whatever the number of threads: each of up to SHARDS shards (train.c says how many) reads its
 * part of the texts in pieces of BYTES; a round is a piece of each, in which all begin with the same rows; AROUND
 * bytes on both sides are looked at, too. The parts are far from each other, and so are pieces that follow each other
 * in a part, so that what is learned in a round, and what was learned last, is not of one place in the texts. */
enum { TN__SHARDS = 8, TN__SHARD_BYTES = 4096, TN__AROUND = 512, TN__WORDS_A_SHARD = 2000 };
enum { TN__SOFTMAX_MOST = 1 << 15 }; /* words: each pair of words takes 6 · dim operations for each of them */
static inline bool tn__is_softmax(const tn__trainer *t) { return t->a.loss == TN_VECTORS_SOFTMAX; }
/* Draws in the pool of a shard, powers of two. FastText's are nearly even over all words, and a few of them would be
 * pushed away by every window of a shard, and not met again for a long time: its pool is large. CBOW draws only once
 * for each word, and is a little better with more of them than skip-gram needs. */
enum { TN__POOL = 256, TN__POOL_CBOW = 1024, TN__POOL_FASTTEXT = 4096 };

bool   tn__shard_begin(tn__shard *s, const tn__trainer *t); /* memory, once */
void   tn__shard_free(tn__shard *s);
bool   tn__shard_read(tn__shard *s);                  /* the words of its piece; false: there is none */
void   tn__shard_run(tn__shard *s);                   /* learns from them: into changes of rows */
void   tn__shard_merge(tn__trainer *t, int64_t part); /* the changes of all shards, in their order */
float *tn__shard_in(const tn__shard *s, int32_t row); /* the copy of a row that is known to have one */
/* Each of the rows predicts the word, among all words: their rows of out are copied in order. */
void tn__learn_softmax(const tn__shard *s, int32_t word, int ins, float *const *in);
void tn__learn_skipgram(tn__shard *s);
void tn__learn_cbow(tn__shard *s);
void tn__learn_fasttext(tn__shard *s);

#endif

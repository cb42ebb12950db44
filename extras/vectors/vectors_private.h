/* vectors_private.h — shared by the files of extras/vectors: the vectors, fast word lookup, and the parts of training.
 * Private. */
#ifndef TENON_EXTRAS_VECTORS_VECTORS_PRIVATE_H
#define TENON_EXTRAS_VECTORS_VECTORS_PRIVATE_H

#include "core/kernels/kernels.h"
#include "data/text/data_private.h"
#include "extras/vectors.h"

/* ---- vectors (vectors.c) ----------------------------------------------------------------------------------------- */

/* FastText: a word's vector is the mean of its own row and the rows of its n-grams, found by hashing. */
typedef struct {
    int32_t min_n, max_n;
    int64_t buckets;
    float  *in, *out; /* [words + buckets, dim] and [words, dim]; out may be NULL */
    /* Further contents of FastText's files, preserved when writing. */
    int32_t window, epochs, min_count, negatives, loss, model, rate_every;
    double  sample;
    int64_t tokens;
} tn__subwords;

struct tn_vectors {
    tn__strings  words;
    int64_t      dim, room; /* room: capacity of count and length, in words */
    int64_t     *count;     /* occurrences of each word; zeros: unknown */
    double       total;     /* sum of the counts */
    float       *row;       /* [words, dim] */
    float       *length;    /* length of each row, set by tn__vectors_finish */
    tn__subwords grams;     /* max_n 0: no n-grams */
};
tn_vectors        *tn__vectors_new(int64_t words, int64_t dim); /* with room for them; raises */
static inline bool tn__text_is(tn_text t, const char *s) { return t.bytes == strlen(s) && !memcmp(t.at, s, t.bytes); }
bool               tn__vectors_finish(tn_vectors *v); /* after all words and rows are set: computes the lengths */
/* Computes the rows of a FastText model from its input rows. */
void tn__vectors_compose(tn_vectors *v);

/* Writes the rows, counted from the first bucket, of FastText's n-grams of a word: at most `most`; returns their
 * number. The word comes without the < and > that are put around it. */
int64_t tn__ngrams(tn_text word, const tn__subwords *g, int64_t *to, int64_t most);

/* ---- fast word lookup (lexicon.c) -------------------------------------------------------------------------------- */

enum { TN__WORD_MAX = 255 }; /* bytes; longer words are ignored */

/* Words with counts. All zeros: an empty lexicon. */
typedef struct {
    tn__strings words; /* its own hash table is not used */
    int64_t    *count;
    int64_t     count_room;
    struct tn__lexicon_slot {
        uint32_t hash, word; /* word: index + 1; 0: free */
    } * slot;
    uint64_t slots, seed;
    int64_t  total; /* sum of the counts */
    int64_t  lines;
    uint64_t sum; /* checksum of the texts read */
} tn__lexicon;
int64_t tn__lexicon_find(const tn__lexicon *x, const char *text, size_t bytes); /* -1 */
bool    tn__lexicon_count(tn__lexicon *x, const char *text, size_t bytes, int64_t times);
/* Counts the words of a file of any size. Whenever there are more than `most` different words, removes the rarest. */
bool tn__lexicon_read(tn__lexicon *x, const char *who, const char *path, int64_t most);
/* Keeps words with a count of at least min_count, sorted by falling count, then by first occurrence. */
bool tn__lexicon_trim(tn__lexicon *x, int64_t min_count);
void tn__lexicon_free(tn__lexicon *x);

static inline bool tn__is_gap(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0; }

/* n elements of this size, which the open scope owns; NULL: raised. */
void *tn__scope_room(int64_t n, size_t size);

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* The finalizer of splitmix64: pseudo-random numbers from a counter. */
static inline uint64_t tn__splitmix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}
/* 0 … n-1 from 32 random bits */
static inline uint32_t tn__choose(uint32_t bits, uint32_t n) { return (uint32_t)((uint64_t)bits * n >> 32); }

/* Draws i with probability proportional to weight[i], in constant time (Walker's alias method with Vose's table). */
typedef struct {
    struct tn__noise_slot {
        uint32_t cut, other;
    } * slot;
    uint32_t n;
} tn__noise;
bool                   tn__noise_make(tn__noise *a, const double *weight, int64_t n); /* in the open scope; raises */
static inline uint32_t tn__noise_draw(const tn__noise *a, uint64_t random)
{
    const struct tn__noise_slot *s = a->slot + tn__choose((uint32_t)random, a->n);
    return (uint32_t)(random >> 32) < s->cut ? (uint32_t)(s - a->slot) : s->other;
}

/* ---- training by windows (train.c, shard.c, windows.c) ----------------------------------------------------------- */

/* A table of rows shared by all shards, [rows, width]. x: the elements of t, which the table owns. */
typedef struct {
    tn_tensor *t;
    float     *x;
    int64_t    rows;
} tn__table;
bool tn__table_make(tn__table *to, int64_t rows, int64_t width, bool zeroed);

/* A shard's private copies of the table rows that it uses, found by row number. */
typedef struct {
    int32_t *row;   /* row number in the table of each copy */
    int32_t *slot;  /* hash table of copy + 1; 0: free */
    uint32_t slots; /* a power of two */
    int64_t  n, room;
    float   *x; /* [room, width] */
} tn__copies;

typedef struct tn__trainer tn__trainer;

/* A chunk of the text, and the working memory of one shard. */
typedef struct {
    const tn__trainer *t;
    /* Its part of the concatenated texts: start, size and bytes already read; and its order: the first chunk, and the
     * step to the next one. */
    int64_t    part, bytes, read, first_piece, step;
    int        file; /* index of the open file; -1: none */
    char       label[TN__LABEL];
    tn__source source;
    /* the chunk: bytes from … to - 1 of the file; and its text with the bytes around it */
    int64_t    from, to, text_at, text_end, file_end;
    char      *text;
    uint64_t   key; /* identifies the random draws: seed, epoch, file */
    tn__copies in, out;
    int32_t   *token;               /* kept words, in order; -1: end of a line */
    int32_t   *in_at, *out_at;      /* copy of each token's row */
    int64_t    tokens, first, last; /* first … last-1 are the shard's own; the others are context */
    int64_t    words;               /* own words, subsampled ones included */
    uint64_t   random;              /* state of its draws */
    int32_t   *pool;                /* copies of the rows drawn as negatives */
    float     *scratch;             /* [2, width] */
    float     *logit;               /* [TN__WORD_PAIRS_IN, words] and [TN__WORD_PAIRS_IN, width], for softmax */
    uint8_t   *window;              /* window size of each token */
} tn__shard;

/* The tree of hierarchical softmax: inner nodes on the path to each word, and the branches. */
typedef struct {
    int64_t *start; /* [words + 1] */
    int32_t *node;
    float   *turn; /* branch: 1 is right */
} tn__tree;
bool tn__tree_make(tn__tree *x, const int64_t *count, int64_t words); /* in the open scope; raises */

struct tn__trainer {
    tn_vectors_train_args         a;
    const tn__word_pairs_kernels *kernels;
    tn__lexicon                   words;
    int64_t                       width;
    tn__table                     in, out;
    uint32_t                     *keep; /* per word: kept if 32 random bits are at most this */
    tn__noise                     noise;
    int64_t                       pool;  /* number of draws per shard */
    float                        *shift; /* per word, for NCE */
    tn__tree                      tree;
    int64_t *gram_start; /* [words + 1]: start in gram of each word's FastText rows, its own first */
    int32_t *gram;
    void (*learn)(tn__shard *s);
    /* Work of each round: per shard, then per part. */
    void (*work)(int64_t from, int64_t to, void *trainer), (*after)(int64_t from, int64_t to, void *trainer);
    struct tn__pairs *pairs; /* for GloVe (glove.c) */
    /* the current round */
    float      rate;
    tn__shard *shard;
    int64_t    shards;
};

/* The text is divided independently of the number of threads: each of up to SHARDS shards (train.c chooses the number)
 * reads its part of the texts in chunks of BYTES; a round is one chunk of each shard, all starting from the same rows;
 * AROUND bytes on both sides serve as context. Parts are far from each other, and so are consecutive chunks of a part,
 * so that neither a round nor recent rounds come from one region of the texts. */
enum { TN__SHARDS = 8, TN__SHARD_BYTES = 4096, TN__CONTEXT = 512, TN__WORDS_PER_SHARD = 2000 };
enum { TN__SOFTMAX_MAX = 1 << 15 }; /* words: each pair of words costs 6 · dim operations per word */
static inline bool tn__is_softmax(const tn__trainer *t) { return t->a.loss == TN_VECTORS_SOFTMAX; }
/* Draws in a shard's pool of negatives, powers of two. FastText's draws are nearly uniform over all words; a small pool
 * would be pushed away by every window of a shard and not be drawn again for long, so its pool is large. CBOW draws
 * only once per word and is slightly better with a larger pool than skip-gram needs. */
enum { TN__POOL = 256, TN__POOL_CBOW = 1024, TN__POOL_FASTTEXT = 4096 };

bool tn__shard_begin(tn__shard *s, const tn__trainer *t); /* allocates memory in the open scope, once */
bool tn__shard_read(tn__shard *s);                        /* reads the words of its chunk; false: no chunk left */
void tn__shard_run(tn__shard *s);                         /* learns from them; leaves the changes of its rows */
void tn__shard_merge(tn__trainer *t, int64_t part);       /* adds the changes of all shards, in order */
/* The copy of a row, which must exist. */
static inline float *tn__copy_of(const tn__copies *c, int32_t row, int64_t width)
{
    for (uint32_t at = (uint32_t)row * 0x9e3779b1u;; at++) {
        const int32_t copy = c->slot[at & (c->slots - 1)] - 1;
        if (c->row[copy] == row) return c->x + copy * width;
    }
}
/* Each of the rows predicts the word among all words; the rows of `out` are copied in order. */
void tn__learn_softmax(const tn__shard *s, int32_t word, int ins, float *const *in);
void tn__learn_skipgram(tn__shard *s);
void tn__learn_cbow(tn__shard *s);
void tn__learn_fasttext(tn__shard *s);

#endif

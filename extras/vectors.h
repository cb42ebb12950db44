/* vectors.h — word vectors: trained from texts, read, written, compared. Part of extras.h: include that one.
 *
 *     const char *texts[] = {"corpus.txt"};                        // words separated by blanks, any size
 *     tn_vectors *v = tn_vectors_train(1, texts, .kind = TN_VECTORS_SKIPGRAM, .dim = 100, .epochs = 5);
 *     tn_vectors_score s = tn_vectors_similarity(v, "wordsim353.txt");
 *     printf("Spearman %.3f\n", s.value);
 *     tn_embedding *e = tn_embedding_new(.from = tn_vectors_tensor(v));   // the first layer of a model
 *     if (tn_vectors_save(v, "corpus.vec", TN_VECTORS_TEXT) != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_vectors_free(v);
 *
 * The same texts, arguments and instruction set produce the same bits for any number of threads. */
#ifndef TENON_EXTRAS_VECTORS_H
#define TENON_EXTRAS_VECTORS_H

#include "../data/lines.h"

#include <signal.h>

TN_C_BEGIN_

typedef struct tn_vectors tn_vectors;

/* ---- training ---------------------------------------------------------------------------------------------------- */

typedef enum { TN_VECTORS_SKIPGRAM = 0, TN_VECTORS_CBOW, TN_VECTORS_GLOVE, TN_VECTORS_FASTTEXT } tn_vectors_kind;
typedef enum {
    TN_VECTORS_NEGATIVE = 0, /* negative sampling, as word2vec */
    TN_VECTORS_NCE,          /* noise-contrastive estimation: subtracts log k·p(word) from each logit */
    TN_VECTORS_HIERARCHICAL, /* a Huffman tree of words */
    TN_VECTORS_SOFTMAX       /* over all words: exact, for at most 32768 words; not for GloVe */
} tn_vectors_loss;

typedef struct {
    double  done;      /* 0 to 1 */
    double  rate;      /* current learning rate */
    int64_t words;     /* known words read, over all epochs */
    double  counting;  /* seconds spent on counting words and GloVe's pairs */
    double  seconds;   /* seconds of training after that */
    int64_t different; /* number of words with vectors */
} tn_vectors_event;

typedef struct tn_vectors_train_args {
    int               zero_;
    tn_vectors_kind   kind;
    tn_vectors_loss   loss;
    int64_t dim       TN_IS(100);
    int64_t window    TN_IS(5);
    int64_t negatives TN_IS(5);    /* for NEGATIVE and NCE, not for GloVe */
    double sample     TN_IS(1e-4); /* subsample words more frequent than this (not for GloVe); 0: none */
    int64_t epochs    TN_IS(5);
    int64_t min_count TN_IS(5);
    double            lr;       /* 0: the original programs' 0.025 (CBOW, FastText and GloVe: 0.05) */
    int64_t min_n     TN_IS(3); /* FastText: minimum characters of an n-gram */
    int64_t max_n     TN_IS(6); /* FastText: maximum characters of an n-gram */
    int64_t buckets   TN_IS(2000000);
    double x_max      TN_IS(100); /* GloVe: count at which pairs have full weight */
    uint64_t seed     TN_IS(1);
    void (*on)(const tn_vectors_event *e, void *user); /* called periodically and at the end */
    void                        *on_user;
    const volatile sig_atomic_t *stop; /* not 0: returns NULL without an error */
    /* A training checkpoint (optim/checkpoint.h), from which the same call continues if .resume is set, with the same
     * bits. Written at the end of each epoch, every ten minutes, and when stopped. Texts and arguments must be
     * unchanged; the number of threads may change. */
    const char *checkpoint;
    bool        resume;
    int         end_;
} TN_KEYWORDS_ONLY tn_vectors_train_args;
TN_API tn_vectors *tn_vectors_train_run(int n, const char *const *paths, tn_vectors_train_args args);

/* ---- phrases ----------------------------------------------------------------------------------------------------- */

/* Writes the texts to one file and joins words that occur together far more often than at random: new_york. As
 * word2phrase (Mikolov 2013): a and b are joined if (count(ab) - min_count) / (count(a) count(b)) · words exceeds the
 * threshold, from left to right, two words at a time; a second run over the output can join "new_york times". Counts
 * are exact for texts of any size: docs/man/vectors.1 states the memory and time needed. */
typedef struct tn_vectors_phrases_args {
    int               zero_;
    int64_t min_count TN_IS(5); /* rarer words are never joined */
    double threshold  TN_IS(100);
    void (*progress)(const char *what, double part, void *user); /* "words", "pairs", "writing"; 0 to 1; or NULL */
    void                        *user;
    const volatile sig_atomic_t *stop; /* not 0: returns zeros and writes nothing, without an error */
    int                          end_;
} TN_KEYWORDS_ONLY tn_vectors_phrases_args;
typedef struct {
    int64_t words, phrases, joined; /* words of the texts; different pairs joined; their occurrences */
} tn_vectors_phrased;
TN_API tn_vectors_phrased tn_vectors_phrases_run(int n, const char *const *paths, const char *to,
                                                 tn_vectors_phrases_args args);

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

TN_API void       tn_vectors_free(tn_vectors *v);
TN_API int64_t    tn_vectors_size(const tn_vectors *v); /* number of words, the most frequent first */
TN_API int64_t    tn_vectors_dim(const tn_vectors *v);
TN_API tn_text    tn_vectors_word(const tn_vectors *v, int64_t i);
TN_API int64_t    tn_vectors_find(const tn_vectors *v, tn_text word); /* -1: not found */
TN_API tn_tensor *tn_vectors_tensor(const tn_vectors *v);             /* [words, dim], a copy */
/* Writes the dim numbers of the vector of a word, or, with n-grams, of any word. False: no vector; `to` is set to 0. */
TN_API bool tn_vectors_of(const tn_vectors *v, tn_text word, float *to);
/* Makes a vector of each row of rows [n, dim]; `words` are separated by blanks. */
TN_API tn_vectors *tn_vectors_from(tn_text words, tn_tensor *rows);

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef enum {
    TN_VECTORS_ANY = 0,    /* reading: detected from the bytes */
    TN_VECTORS_TEXT,       /* "words dim", then one "word x x x" per line: word2vec's text, FastText's .vec */
    TN_VECTORS_GLOVE_TEXT, /* one "word x x x" per line, no first line */
    TN_VECTORS_BINARY,     /* word2vec's binary form */
    TN_VECTORS_FASTTEXT_BIN,
    TN_VECTORS_SAFETENSORS /* "vectors" [words, dim]; "words": u8, each ended by a line end */
} tn_vectors_format;
TN_API tn_vectors *tn_vectors_load(const char *path, tn_vectors_format format);
TN_API tn_status   tn_vectors_save(const tn_vectors *v, const char *path, tn_vectors_format format) TN_CHECKED;

/* ---- questions --------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t word;
    float   score;
} tn_vectors_near;
/* Writes the n words whose vectors have the largest cosine with x, except skip[0 … skips-1]. Returns their number. */
TN_API int64_t tn_vectors_nearest(const tn_vectors *v, const float *x, const int64_t *skip, int skips, int64_t n,
                                  tn_vectors_near *to);
/* Completes "a is to b as c is to …": nearest to b - a + c by cosine, or with `product` the largest cos(b) cos(c) /
 * cos(a) (Levy 2014). */
TN_API int64_t tn_vectors_analogous(const tn_vectors *v, const int64_t abc[3], bool product, int64_t n,
                                    tn_vectors_near *to);

typedef struct {
    double  value;          /* Spearman's rank correlation, or the fraction of correct answers */
    int64_t asked, missing; /* pairs or questions with all words known; with an unknown word */
} tn_vectors_score;
/* Reads a file with "word word score" per line; or with four words per line (": section" is skipped). A word that is
 * not found is looked up in lower case. */
TN_API tn_vectors_score tn_vectors_similarity(const tn_vectors *v, const char *path);
TN_API tn_vectors_score tn_vectors_analogies(const tn_vectors *v, const char *path, bool product);

/* The vector of a sentence: the mean of its words' vectors; with sif (0.001 is usual) weighted by sif / (sif +
 * p(word)), where p comes from the counts, or from the rank if the file had no counts (Arora 2017). False: no word has
 * a vector. */
TN_API bool tn_vectors_sentence(const tn_vectors *v, tn_text sentence, double sif, float *to);

/* Points [n, 2] in the plane for rows [n, dim]: along the two directions of largest variance; or t-SNE, of at most 5000
 * rows, where perplexity (30 is usual) is about the number of neighbours of each row. */
TN_API tn_tensor *tn_plane_pca(const tn_tensor *rows);
TN_API tn_tensor *tn_plane_tsne(const tn_tensor *rows, double perplexity, uint64_t seed);

TN_C_END_
#define TN_VECTORS_TRAIN_ARGS_DEFAULTS                                                                            \
    .dim = 100, .window = 5, .negatives = 5, .sample = 1e-4, .epochs = 5, .min_count = 5, .min_n = 3, .max_n = 6, \
    .buckets = 2000000, .x_max = 100, .seed = 1
#define tn_vectors_train(...) TN_CALL_(tn_vectors_train_run(TN_VECTORS_TRAIN_(__VA_ARGS__, TN_END_)))
#define TN_VECTORS_TRAIN_(n, paths, ...) \
    n, paths, TN_FILLED_(tn_vectors_train_args, TN_VECTORS_TRAIN_ARGS_DEFAULTS, __VA_ARGS__)
#define TN_VECTORS_PHRASES_ARGS_DEFAULTS .min_count = 5, .threshold = 100
#define tn_vectors_phrases(...) TN_CALL_(tn_vectors_phrases_run(TN_VECTORS_PHRASES_(__VA_ARGS__, TN_END_)))
#define TN_VECTORS_PHRASES_(n, paths, to, ...) \
    n, paths, to, TN_FILLED_(tn_vectors_phrases_args, TN_VECTORS_PHRASES_ARGS_DEFAULTS, __VA_ARGS__)
#endif

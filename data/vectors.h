/* vectors.h — words as vectors: trained from texts, read, written, compared. Part of data.h: include that.
 *
 *     const char *texts[] = {"corpus.txt"};                        // words between blanks, of any size
 *     tn_vectors *v = tn_vectors_train(1, texts, .kind = TN_VECTORS_SKIPGRAM, .dim = 100, .epochs = 5);
 *     tn_vectors_score s = tn_vectors_similarity(v, "wordsim353.txt");
 *     printf("Spearman %.3f\n", s.value);
 *     tn_embedding *e = tn_embedding_new(.from = tn_vectors_tensor(v));   // the first layer of a model
 *     if (tn_vectors_save(v, "corpus.vec", TN_VECTORS_TEXT) != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
 *     tn_vectors_free(v);
 *
 * The same texts, arguments and instruction set give the same bits for any number of threads. */
#ifndef TENON_DATA_VECTORS_H
#define TENON_DATA_VECTORS_H

#include "lines.h"

#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_vectors tn_vectors;

/* ---- training ---------------------------------------------------------------------------------------------------- */

typedef enum { TN_VECTORS_SKIPGRAM = 0, TN_VECTORS_CBOW, TN_VECTORS_GLOVE, TN_VECTORS_FASTTEXT } tn_vectors_kind;
typedef enum {
    TN_VECTORS_NEGATIVE = 0, /* negative sampling, as word2vec */
    TN_VECTORS_NCE,          /* noise-contrastive estimation: log k·p(word) is subtracted from each logit */
    TN_VECTORS_HIERARCHICAL, /* a binary tree of words, Huffman's */
    TN_VECTORS_SOFTMAX       /* against all words: exact, for up to 32768 of them; not for GloVe */
} tn_vectors_loss;

typedef struct {
    double  done;      /* 0 to 1 */
    double  rate;      /* the learning rate now */
    int64_t words;     /* known words read so far, of all epochs */
    double  counting;  /* seconds: how long words, and GloVe's pairs, were counted */
    double  seconds;   /* of training, behind that */
    int64_t different; /* words that have vectors */
} tn_vectors_event;

typedef struct tn_vectors_train_args {
    int               zero_;
    tn_vectors_kind   kind;
    tn_vectors_loss   loss;
    int64_t dim       TN_IS(100);
    int64_t window    TN_IS(5);
    int64_t negatives TN_IS(5);    /* of NEGATIVE and NCE, not of GloVe */
    double sample     TN_IS(1e-4); /* words more frequent than this are skipped at times (not GloVe's); 0: none */
    int64_t epochs    TN_IS(5);
    int64_t min_count TN_IS(5);
    double            lr;       /* 0: the original program's, 0.025 (CBOW and FastText 0.05, GloVe 0.05) */
    int64_t min_n     TN_IS(3); /* FastText: n-grams of so many characters ... */
    int64_t max_n     TN_IS(6); /* ... to so many */
    int64_t buckets   TN_IS(2000000);
    double x_max      TN_IS(100); /* GloVe: pairs counted so often have full weight */
    uint64_t seed     TN_IS(1);
    void (*on)(const tn_vectors_event *e, void *user); /* now and then, and at the end */
    void                        *on_user;
    const volatile sig_atomic_t *stop; /* not 0: return NULL, without an error */
    /* A file from which the same call goes on if .resume is set, to the same bits: it is written at the end of each
     * epoch, every ten minutes, and when it is stopped. Texts and arguments must be the same; threads need not. */
    const char *checkpoint;
    bool        resume;
    int         end_;
} TN_KEYWORDS_ONLY tn_vectors_train_args;
TN_API tn_vectors *tn_vectors_train_run(int n, const char *const *paths, tn_vectors_train_args args);

/* ---- phrases ----------------------------------------------------------------------------------------------------- */

/* Writes the texts to one file, in which words that stand together far more often than by chance are one: new_york. As
 * word2phrase (Mikolov 2013): a and b are joined if (count(ab) - min_count) / (count(a) count(b)) · words is more than
 * the threshold, from left to right, two words at a time; from what was written, "new_york times" can be joined next.
 * Counts are exact, whatever the size of the texts: docs/man/vectors.1 has what that takes. */
typedef struct tn_vectors_phrases_args {
    int               zero_;
    int64_t min_count TN_IS(5); /* rarer words are in no phrase */
    double threshold  TN_IS(100);
    void (*progress)(const char *what, double part, void *user); /* "words", "pairs", "writing"; 0 to 1; or NULL */
    void                        *user;
    const volatile sig_atomic_t *stop; /* not 0: zeros are returned and nothing is written, without an error */
    int                          end_;
} TN_KEYWORDS_ONLY tn_vectors_phrases_args;
typedef struct {
    int64_t words, phrases, joined; /* words of the texts; different pairs that are phrases, and how often that was */
} tn_vectors_phrased;
TN_API tn_vectors_phrased tn_vectors_phrases_run(int n, const char *const *paths, const char *to,
                                                 tn_vectors_phrases_args args);

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

TN_API void       tn_vectors_free(tn_vectors *v);
TN_API int64_t    tn_vectors_size(const tn_vectors *v); /* words, the most frequent first */
TN_API int64_t    tn_vectors_dim(const tn_vectors *v);
TN_API tn_text    tn_vectors_word(const tn_vectors *v, int64_t i);
TN_API int64_t    tn_vectors_find(const tn_vectors *v, tn_text word); /* -1 */
TN_API tn_tensor *tn_vectors_tensor(const tn_vectors *v);             /* [words, dim], a copy */
/* dim numbers: of a word that has a vector; or, with n-grams, of any word. False: it has none, and `to` is 0. */
TN_API bool tn_vectors_of(const tn_vectors *v, tn_text word, float *to);
/* A vector for each row of rows [n, dim]; the words are told apart by blanks. */
TN_API tn_vectors *tn_vectors_from(tn_text words, tn_tensor *rows);

/* ---- files ------------------------------------------------------------------------------------------------------- */

typedef enum {
    TN_VECTORS_ANY = 0,    /* reading: what the bytes look like */
    TN_VECTORS_TEXT,       /* "words dim", then "word x x x" a line: word2vec's text, FastText's .vec */
    TN_VECTORS_GLOVE_TEXT, /* the same without the first line */
    TN_VECTORS_BINARY,     /* word2vec's binary form */
    TN_VECTORS_FASTTEXT_BIN,
    TN_VECTORS_SAFETENSORS /* "vectors" [words, dim], and "words", all of them with line ends, as u8 */
} tn_vectors_format;
TN_API tn_vectors *tn_vectors_load(const char *path, tn_vectors_format format);
TN_API tn_status   tn_vectors_save(const tn_vectors *v, const char *path, tn_vectors_format format) TN_CHECKED;

/* ---- questions --------------------------------------------------------------------------------------------------- */

typedef struct {
    int64_t word;
    float   score;
} tn_vectors_near;
/* The n words whose vectors have the largest cosine with x, without skip[0 … skips-1]. Returns how many. */
TN_API int64_t tn_vectors_nearest(const tn_vectors *v, const float *x, const int64_t *skip, int skips, int64_t n,
                                  tn_vectors_near *to);
/* a is to b as c is to …: b - a + c by cosine, or with `product` the largest cos(b) cos(c) / cos(a) (Levy 2014). */
TN_API int64_t tn_vectors_analogous(const tn_vectors *v, const int64_t abc[3], bool product, int64_t n,
                                    tn_vectors_near *to);

typedef struct {
    double  value;          /* Spearman's rank correlation, or the part of the answers that are right */
    int64_t asked, missing; /* pairs or questions: with all words known, without */
} tn_vectors_score;
/* A file of "word word score" a line; and one of four words a line (": section" is skipped). A word that is not there
 * as it stands is looked for in small letters. */
TN_API tn_vectors_score tn_vectors_similarity(const tn_vectors *v, const char *path);
TN_API tn_vectors_score tn_vectors_analogies(const tn_vectors *v, const char *path, bool product);

/* A sentence's vector: the mean of its words'; with sif (0.001 is usual) weighted by sif / (sif + p(word)), where p is
 * taken from the counts, or from the rank if the file had none (Arora 2017). False: no word has a vector. */
TN_API bool tn_vectors_sentence(const tn_vectors *v, tn_text sentence, double sif, float *to);

/* Points [n, 2] in the plane for rows [n, dim]: along the two directions of largest variance; or t-SNE, of at most 5000
 * rows, where each has about so many neighbours as perplexity (30 is usual) says. */
TN_API tn_tensor *tn_plane_pca(const tn_tensor *rows);
TN_API tn_tensor *tn_plane_tsne(const tn_tensor *rows, double perplexity, uint64_t seed);

#ifdef __cplusplus
} /* extern "C" */
#else
#define TN_VECTORS_TRAIN_ARGS_DEFAULTS                                                                            \
    .dim = 100, .window = 5, .negatives = 5, .sample = 1e-4, .epochs = 5, .min_count = 5, .min_n = 3, .max_n = 6, \
    .buckets = 2000000, .x_max = 100, .seed = 1
#define tn_vectors_train(...) TN_CALL_(tn_vectors_train_run(TN_VECTORS_TRAIN_(__VA_ARGS__, .zero_ = 0)))
#define TN_VECTORS_TRAIN_(n, paths, ...) \
    n, paths, ((tn_vectors_train_args){TN_VECTORS_TRAIN_ARGS_DEFAULTS, TN_NAMED_, __VA_ARGS__})
#define TN_VECTORS_PHRASES_ARGS_DEFAULTS .min_count = 5, .threshold = 100
#define tn_vectors_phrases(...) TN_CALL_(tn_vectors_phrases_run(TN_VECTORS_PHRASES_(__VA_ARGS__, .zero_ = 0)))
#define TN_VECTORS_PHRASES_(n, paths, to, ...) \
    n, paths, to, ((tn_vectors_phrases_args){TN_VECTORS_PHRASES_ARGS_DEFAULTS, TN_NAMED_, __VA_ARGS__})
#endif
#endif

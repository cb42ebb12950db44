/* corpus.h — texts of any size as batches for a masked language model. Part of data.h: include that.
 *
 *     const char *files[] = {"a.txt", "b.txt"};
 *     tn_corpus *corpus = tn_corpus_open(.files = files, .n = 2, .cache = "out/corpus.tokens", .encoder = encoder,
 *                                        .vocabulary = 8000);
 *     tn_mlm *batches = tn_mlm_new(corpus, .cls = 2, .sep = 3, .mask = 4, .kinds = kinds, .seed = 1);
 *     tn_fit(model, .train = tn_mlm_source(batches), .loss = bert_loss, .steps = 10000);
 *
 * The texts are read once, in blocks; their token numbers go to the cache, a file that is read from then on. Memory
 * holds an index: 12 bytes a sentence at most, and about 40 an example. */
#ifndef TENON_DATA_CORPUS_H
#define TENON_DATA_CORPUS_H

#include "lines.h"
#include "source.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- texts ------------------------------------------------------------------------------------------------------- */

typedef struct tn_corpus_config {
    int                zero_;
    const char *const *files; /* of UTF-8; an empty line, and a file's end, ends a document */
    int                n;
    const char        *cache;       /* made if it is not there, or was made from other texts or in another way */
    tn_encoder         encoder;     /* of a sentence, without special tokens */
    uint64_t           encoder_sum; /* tells encoders apart, e.g. a checksum of the vocabulary */
    int64_t            vocabulary;  /* token numbers are smaller than this */
    bool by_rule; /* sentences end where . ! ? and a capital say so, and lines are joined; otherwise one a line */
    int  end_;
} TN_KEYWORDS_ONLY tn_corpus_config;

typedef struct tn_corpus tn_corpus;
TN_API tn_corpus        *tn_corpus_open_run(tn_corpus_config config);
TN_API void              tn_corpus_close(tn_corpus *c);
TN_API bool              tn_corpus_made(const tn_corpus *c); /* the cache was made now, not found */
TN_API int64_t           tn_corpus_documents(const tn_corpus *c);
TN_API int64_t           tn_corpus_sentences(const tn_corpus *c);
TN_API int64_t           tn_corpus_tokens(const tn_corpus *c);
TN_API uint64_t          tn_corpus_checksum(const tn_corpus *c); /* of the texts and how they became numbers */
/* Sentence i, in the order of the texts, added to `to`. */
TN_API tn_status tn_corpus_sentence(const tn_corpus *c, int64_t i, tn_ids *to);

/* ---- batches ----------------------------------------------------------------------------------------------------- */

enum { TN_TOKEN_SPECIAL = 1, TN_TOKEN_INNER = 2 }; /* kinds of tokens: never masked; not the first of its word */

/* Examples of near lengths stand together, as many as the tokens allow; the batches come in a random order, and which
 * of equal lengths meet is drawn anew for each epoch. */
typedef struct tn_mlm_config {
    int zero_;
    /* false: full sentences of one document, as many as fit, between cls and sep. true: two pieces, cls A sep B sep,
     * where B follows A or, half of the time, is from another document. */
    bool               pairs;
    bool               order;      /* of pairs: B always follows A, but half of the time the two change places */
    int64_t max_tokens TN_IS(128); /* of an example, with its special tokens: 128; at most 16384 */
    int32_t            pad, cls, sep, mask;
    const uint8_t     *kinds;       /* [vocabulary], copied; NULL: all are ordinary first tokens */
    double rate        TN_IS(0.15); /* of the tokens to guess: 0.15; 80 % become mask, 10 % another token, 10 % stay */
    bool               whole_words; /* all tokens of a word, or none */
    int64_t            spans;       /* so many tokens, or whole words, in a row at most; n as often as 1/n; 0: one */
    bool               fixed;       /* the same pairs and masks in every epoch: for validation */
    int64_t tokens     TN_IS(4096); /* in a batch at most, padding counted: 4096. An example that is longer is alone */
    int64_t            examples;    /* in a batch at most; 0: no limit */
    uint64_t           seed;
    bool               in_order; /* as they are in the files, for validation */
    int ahead          TN_IS(2); /* batches that a thread makes in advance: 2; 0: none, and no thread */
    int                end_;
} TN_KEYWORDS_ONLY tn_mlm_config;

/* Tensors of the scope that was open, i64; padding bool, true where a token is padding. */
typedef struct {
    tn_tensor *ids, *segments, *padding; /* [B, T]; segments: 1 from B on */
    tn_tensor *masked_at, *masked_ids;   /* [M]: places row · T + column, in order, and what stood there */
    tn_tensor *next;                     /* [B]: 0 B follows A, 1 it does not, or comes first; NULL without pairs */
    int64_t    tokens;                   /* without padding */
} tn_mlm_batch;

typedef struct tn_mlm tn_mlm;
TN_API tn_mlm        *tn_mlm_create(const tn_corpus *c, tn_mlm_config config); /* c must outlive it */
/* The next batch; false at the end of an epoch (the call after that begins the next one), or if an error stands. What
 * it holds depends on the corpus, the config and the position alone. */
TN_API bool             tn_mlm_next(tn_mlm *b, tn_mlm_batch *to);
TN_API int64_t          tn_mlm_count(const tn_mlm *b);    /* batches of an epoch */
TN_API int64_t          tn_mlm_examples(const tn_mlm *b); /* of an epoch */
TN_API tn_data_position tn_mlm_position(const tn_mlm *b);
TN_API tn_status        tn_mlm_seek(tn_mlm *b, tn_data_position to);
TN_API tn_status        tn_mlm_shard(tn_mlm *b, tn_shard shard); /* from the next batch on */
TN_API void             tn_mlm_free(tn_mlm *b);

/* For tn_fit: x the ids, y the masked ids, and by name "segments", "padding", "masked_at" and, with pairs, "next". A
 * shard's rows are padded to the longest of them. */
TN_API tn_source tn_mlm_source(tn_mlm *b);

#ifndef __cplusplus
#define TN_MLM_DEFAULTS .max_tokens = 128, .rate = 0.15, .tokens = 4096, .ahead = 2
#define tn_corpus_open(...) TN_CALL_(tn_corpus_open_run((tn_corpus_config){TN_NAMED_, __VA_ARGS__}))
#define tn_mlm_new(c, ...) TN_CALL_(tn_mlm_create(c, (tn_mlm_config){TN_MLM_DEFAULTS, TN_NAMED_, __VA_ARGS__}))
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif

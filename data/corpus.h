/* corpus.h — texts of any size as batches for a masked language model. Part of data.h: include that one.
 *
 *     const char *files[] = {"a.txt", "b.txt"};
 *     tn_corpus *corpus = tn_corpus_open(.files = files, .n = 2, .cache = "out/corpus.tokens",
 *                                        .tokenizer = tokenizer);
 *     tn_mlm *batches = tn_mlm_new(corpus, .tokenizer = tokenizer, .seed = 1);
 *     tn_fit(bert, .train = tn_mlm_source(batches), .loss = tn_bert_fit_loss, .steps = 10000);
 *
 * The texts are read once, in blocks; their token ids are written to the cache, a file that is read from then on.
 * Memory holds an index: at most 12 bytes per sentence and about 40 per example. */
#ifndef TENON_DATA_CORPUS_H
#define TENON_DATA_CORPUS_H

#include "lines.h"
#include "source.h"
#include "tokenizer.h"

TN_C_BEGIN_

/* ---- texts ------------------------------------------------------------------------------------------------------- */

typedef struct tn_corpus_config {
    int                 zero_;
    const char *const  *files; /* UTF-8; an empty line or the end of a file ends a document */
    int                 n;
    const char         *cache;       /* cache file; written if missing or made from other texts or settings */
    const tn_tokenizer *tokenizer;   /* for the next three members where they are 0; NULL: set them */
    tn_encoder          encoder;     /* encodes a sentence, without special tokens */
    uint64_t            encoder_sum; /* identifies the encoder, e.g. a checksum of the vocabulary */
    int64_t             vocabulary;  /* token ids are below this number */
    bool by_rule; /* true: join lines and split sentences at . ! ? before a capital; false: one per line */
    int  end_;
} TN_KEYWORDS_ONLY tn_corpus_config;

typedef struct tn_corpus tn_corpus;
TN_API tn_corpus        *tn_corpus_open_run(tn_corpus_config config);
TN_API void              tn_corpus_close(tn_corpus *c);
TN_API bool              tn_corpus_made(const tn_corpus *c); /* true: this call wrote the cache; false: it existed */
TN_API int64_t           tn_corpus_documents(const tn_corpus *c);
TN_API int64_t           tn_corpus_sentences(const tn_corpus *c);
TN_API int64_t           tn_corpus_tokens(const tn_corpus *c);
TN_API uint64_t          tn_corpus_checksum(const tn_corpus *c); /* of the texts and the settings of their encoding */
/* Appends the token ids of sentence i, in the order of the texts, to `to`. */
TN_API tn_status tn_corpus_sentence(const tn_corpus *c, int64_t i, tn_ids *to);

/* ---- batches ----------------------------------------------------------------------------------------------------- */

enum { TN_TOKEN_SPECIAL = 1, TN_TOKEN_INNER = 2 }; /* kinds of tokens: never masked; not the first token of its word */

/* A batch holds examples of similar lengths, as many as .tokens allows. Batches come in a random order; examples of
 * equal lengths are regrouped in each epoch. */
typedef struct tn_mlm_config {
    int zero_;
    /* false: full sentences of one document, as many as fit, between cls and sep. true: sentence pairs, cls A sep B
     * sep, where B follows A or, with probability 0.5, is from another document. */
    bool pairs;
    bool order; /* for pairs: B always follows A, and the two are swapped with probability 0.5 */
    /* for XLNet, without pairs: examples end in sep cls, cls has segment 2, no token is replaced; the tokens to
     * predict, sep and cls are in a random order, the others come before them (tn_permutation_mask, extras/xlnet.h) */
    bool                permuted;
    int64_t max_tokens  TN_IS(128); /* tokens per example, special tokens included: 128; at most 16384 */
    const tn_tokenizer *tokenizer;  /* that of the corpus: sets pad, cls, sep, mask and kinds; NULL: set them */
    int32_t             pad, cls, sep, mask;
    const uint8_t      *kinds;       /* [vocabulary], copied; NULL: all are ordinary first tokens of words */
    double rate         TN_IS(0.15); /* fraction of tokens to predict: 0.15 (80 % mask, 10 % random, 10 % unchanged) */
    bool                whole_words; /* mask all tokens of a word or none */
    int64_t             spans;       /* maximum tokens or words in a masked run; n has probability ∝ 1/n; 0: one */
    bool                fixed;       /* same pairs and masks in every epoch, for validation */
    /* without pairs: use only the sentences that start in this part of the tokens, from 0 to 1, for example to hold out
     * the end of the texts for validation; .to 0: to the end */
    double         from, to;
    int64_t tokens TN_IS(4096); /* maximum per batch, padding included: 4096; a longer example is alone */
    int64_t        examples;    /* maximum per batch; 0: no limit */
    uint64_t       seed;
    bool           in_order; /* keep the order of the files, for validation */
    int ahead      TN_IS(2); /* batches that a thread prepares in advance: 2; 0: no thread */
    int            end_;
} TN_KEYWORDS_ONLY tn_mlm_config;

/* Tensors belong to the open scope and are i64; padding is bool, true where a token is padding. */
typedef struct {
    tn_tensor *ids, *segments, *padding; /* [B, T]; segments: 1 for B and its sep, 2 for a permuted cls, else 0 */
    tn_tensor *masked_at, *masked_ids; /* [M]: positions row · T + column, ascending, and the original tokens there */
    tn_tensor *next;                   /* [B]: 0: B follows A; 1: it does not, or is swapped; NULL without pairs */
    tn_tensor *order;                  /* [B, T]: ranks from 0, -1 for the tokens before them; NULL if not permuted */
    int64_t    tokens;                 /* without padding */
} tn_mlm_batch;

typedef struct tn_mlm tn_mlm;
TN_API tn_mlm        *tn_mlm_create(const tn_corpus *c, tn_mlm_config config); /* c must outlive it */
/* Fills `to` with the source's next batch; false at the end of an epoch (the next call starts the next epoch) or if an
 * error is set. Its content depends only on the corpus, the config and the position. */
TN_API bool tn_mlm_next(tn_mlm *b, tn_mlm_batch *to);
TN_API void tn_mlm_free(tn_mlm *b);

/* For tn_fit: x is the ids, y the masked ids; fields "segments", "padding", "masked_at", with pairs "next", and
 * permuted "order". A shard's rows are padded to its longest row. .batches is the number of batches in every epoch. */
TN_API tn_source tn_mlm_source(tn_mlm *b);

#define TN_MLM_DEFAULTS .max_tokens = 128, .rate = 0.15, .tokens = 4096, .ahead = 2
#define tn_corpus_open(...) TN_CALL_(tn_corpus_open_run(TN_FILLED_(tn_corpus_config, TN_NO_DEFAULTS_, __VA_ARGS__)))
#define tn_mlm_new(c, ...) TN_CALL_(tn_mlm_create(c, TN_FILLED_(tn_mlm_config, TN_MLM_DEFAULTS, __VA_ARGS__)))

TN_C_END_
#endif

/* rnn_lm.h — a recurrent language model: Elman's network, LSTM or GRU, with what AWD-LSTM (Merity and others 2018)
 * adds. It is a tn_lm, too (lm.h): files, generation. Part of models.h: include that.
 *
 *     tn_rnn_lm    *lm = tn_rnn_lm_new(.vocab = 10000, .dim = 400, .hidden = 800, .layers = 2);
 *     tn_carried_lm *m = tn_carried_lm_new(lm, 20);               // its states go on from batch to batch
 *     tn_columns   *text = tn_columns_new(numbers, n, .batch = 20, .length = 35);
 *     tn_fit(m, .train = tn_columns_source(text), .loss = tn_carried_lm_loss, .epochs = 10);
 *     if (tn_rnn_lm_save(lm, "dir") != TN_OK) puts(tn_error_message());
 *     tn_free(m);                                                 // and lm with it
 *     tn_columns_free(text); */
#ifndef TENON_MODELS_RNN_LM_H
#define TENON_MODELS_RNN_LM_H

#include "../data/source.h"
#include "../nn/nn.h"
#include "decoding.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TN_RNN_LM_LAYERS = 32, TN_RNN_LM_STATES = 2 * TN_RNN_LM_LAYERS };
typedef struct tn_rnn_lm_config {
    int               zero_;
    int64_t           vocab;
    const char       *cell; /* "lstm" (or NULL), "gru", "elman" */
    int64_t dim       TN_IS(400), hidden TN_IS(1150), layers TN_IS(3);
    bool              untied; /* scores have a table of their own; tied, the last layer is dim wide, else hidden */
    int64_t           cutoffs[TN_CUTOFFS];                  /* untied: an adaptive softmax; at most 3 */
    double dropout    TN_IS(0.4);                           /* of the last layer's result */
    double dropout_in TN_IS(-1), dropout_between TN_IS(-1); /* of words' vectors, between layers; < 0: dropout */
    double            dropout_words, weight_drop;           /* whole words; of the recurrent weights */
    bool              unlocked;                             /* dropout of each step anew, not of a sequence */
    double init       TN_IS(0.1);                           /* words' vectors begin within ± so much */
    int               end_;
} TN_KEYWORDS_ONLY tn_rnn_lm_config;
#define TN_RNN_LM_DEFAULTS \
    .dim = 400, .hidden = 1150, .layers = 3, .dropout = 0.4, .dropout_in = -1, .dropout_between = -1, .init = 0.1
typedef struct {
    tn_module            base;
    tn_rnn_lm_config     config; /* all of it, with the defaults put in */
    tn_embedding        *words;  /* "encoder" */
    tn_rnn             **layer;  /* "rnns.0", ... of one layer each */
    tn_tensor           *out, *bias;
    tn_adaptive_softmax *adaptive; /* "decoder", with cutoffs; else out is the words' table or "decoder.weight" */
} tn_rnn_lm;
TN_API tn_rnn_lm *tn_rnn_lm_create(tn_rnn_lm_config c);

typedef struct tn_rnn_lm_args {
    int         zero_;
    tn_tensor  *ids;         /* i64 [B, T] */
    tn_tensor  *targets;     /* i64 [B, T], of the loss */
    tn_tensor **states;      /* [TN_RNN_LM_STATES] that go in (NULLs: zeros) and come out, off the tape; or NULL */
    double      alpha, beta; /* of the loss: times the mean square of the last layer, and of its changes (AR, TAR) */
    bool        last;        /* only what comes after the last */
    bool        vectors;     /* instead of scores what they are made of: [B, T, dim] */
    int         end_;
} TN_KEYWORDS_ONLY  tn_rnn_lm_args;
TN_API tn_tensor   *tn_rnn_lm_run(tn_rnn_lm     *m,
                                  tn_rnn_lm_args a); /* scores [B, T, vocab]; with cutoffs log-probabilities */
TN_API tn_tensor   *tn_rnn_lm_loss_run(tn_rnn_lm *m, tn_rnn_lm_args a); /* mean over the targets */
TN_API tn_decoding *tn_rnn_lm_decoding(tn_rnn_lm *m, int64_t rows, int64_t length);
TN_API tn_rnn_lm   *tn_rnn_lm_load(const char *dir);
TN_API tn_status    tn_rnn_lm_save(tn_rnn_lm *m, const char *dir) TN_CHECKED;

/* ---- learning with states that are carried ----------------------------------------------------------------------- */

/* A text in so many columns side by side, each read on where the batch before ended: what tn_fit trains on. */
typedef struct tn_columns_config {
    int           zero_;
    int64_t batch TN_IS(20), length TN_IS(35);
    bool          vary; /* lengths around length, at times around its half, as AWD-LSTM has them: drawn by the seed */
    uint64_t      seed;
    int           end_;
} TN_KEYWORDS_ONLY tn_columns_config;
#define TN_COLUMNS_DEFAULTS .batch = 20, .length = 35
typedef struct tn_columns tn_columns;
TN_API tn_columns *tn_columns_create(const int32_t *ids, int64_t n, tn_columns_config c); /* ids are not copied */
TN_API tn_source   tn_columns_source(tn_columns *s);
TN_API void        tn_columns_free(tn_columns *s);

typedef struct {
    tn_module   base;
    tn_rnn_lm  *lm;    /* "model" */
    tn_tensor **state; /* of training, saved with checkpoints; those of validation are apart */
    tn_tensor **apart;
    int64_t     batch;
    double      alpha, beta; /* AR and TAR, to be set: 2 and 1 in AWD-LSTM */
} tn_carried_lm;
TN_API tn_carried_lm *tn_carried_lm_new(tn_rnn_lm *lm, int64_t batch); /* owns lm; frees it if anything fails */
TN_API tn_tensor     *tn_carried_lm_loss(void *carried_lm, const tn_batch *b, void *user); /* a tn_fit_loss */

#ifdef __cplusplus
}
#else
#define tn_rnn_lm_new(...) TN_NEW_(tn_rnn_lm_create, tn_rnn_lm_config, TN_RNN_LM_DEFAULTS, __VA_ARGS__)
#define tn_rnn_lm_forward(m, ...) \
    TN_CALL_(tn_rnn_lm_run(m, TN_ARGS1_(tn_rnn_lm_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, .zero_ = 0)))
#define tn_rnn_lm_loss(m, ...) \
    TN_CALL_(tn_rnn_lm_loss_run(m, TN_ARGS2_(tn_rnn_lm_args, TN_NO_DEFAULTS_, ids, targets, __VA_ARGS__, .zero_ = 0)))
#define tn_columns_new(ids, n, ...) \
    TN_CALL_(tn_columns_create(ids, n, (tn_columns_config){TN_COLUMNS_DEFAULTS, TN_NAMED_, __VA_ARGS__, .zero_ = 0}))
#endif
#endif

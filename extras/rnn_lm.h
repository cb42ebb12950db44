/* rnn_lm.h — a recurrent language model: Elman network, LSTM or GRU, with the regularisation of AWD-LSTM (Merity et al.
 * 2018). It is also a tn_lm (lm.h). Part of extras.h: include that.
 *
 *     tn_rnn_lm    *lm = tn_rnn_lm_new(.vocab = 10000, .dim = 400, .hidden = 800, .layers = 2);
 *     tn_carried_lm *m = tn_carried_lm_new(lm, 20);               // its states continue from batch to batch
 *     tn_columns   *text = tn_columns_new(numbers, n, .batch = 20, .length = 35);
 *     tn_fit(m, .train = tn_columns_source(text), .loss = tn_carried_lm_loss, .epochs = 10);
 *     if (tn_rnn_lm_save(lm, "dir") != TN_OK) puts(tn_error_message());
 *     tn_free(m);                                                 // also frees lm
 *     tn_columns_free(text); */
#ifndef TENON_EXTRAS_RNN_LM_H
#define TENON_EXTRAS_RNN_LM_H

#include "../data/sequences.h"
#include "../nn/nn.h"
#include "../models/decoding.h"

TN_C_BEGIN_

enum { TN_RNN_LM_LAYERS = 32, TN_RNN_LM_STATES = 2 * TN_RNN_LM_LAYERS };
typedef struct tn_rnn_lm_config {
    int               zero_;
    int64_t           vocab;
    const char       *cell; /* "lstm" (or NULL), "gru", "elman" */
    int64_t dim       TN_IS(400), hidden TN_IS(1150), layers TN_IS(3);
    bool              untied; /* separate output weights, last layer `hidden` wide; tied: last layer `dim` wide */
    int64_t           cutoffs[TN_CUTOFFS];                  /* with untied: an adaptive softmax, at most 3 cutoffs */
    double dropout    TN_IS(0.4);                           /* dropout probability after the last layer */
    double dropout_in TN_IS(-1), dropout_between TN_IS(-1); /* of embeddings, between layers; < 0: dropout */
    double            dropout_words, weight_drop;           /* of whole words; of recurrent weights */
    bool              unlocked;                             /* a new dropout mask per step, not per sequence */
    double init       TN_IS(0.1);                           /* initial embeddings are uniform in ±init */
    int               end_;
} TN_KEYWORDS_ONLY tn_rnn_lm_config;
#define TN_RNN_LM_DEFAULTS \
    .dim = 400, .hidden = 1150, .layers = 3, .dropout = 0.4, .dropout_in = -1, .dropout_between = -1, .init = 0.1
typedef struct {
    tn_module            base;
    tn_rnn_lm_config     config;     /* with defaults filled in */
    tn_embedding        *words;      /* "encoder" */
    tn_rnn             **layer;      /* "rnns.0", ... with one layer each */
    tn_tensor           *out, *bias; /* without cutoffs: out is the embedding's weights or "decoder.weight" */
    tn_adaptive_softmax *adaptive;   /* with cutoffs: "decoder" */
} tn_rnn_lm;
/* The defaults, with .dim, .hidden, .layers and .dropout of a size: "tiny", "small", "medium" and "large" (Zaremba et
 * al. 2014) or "awd" (Merity et al. 2018). Another name raises. */
TN_RETURNS_CONFIG_(TN_API tn_rnn_lm_config tn_rnn_lm_size(const char *name);)
TN_API tn_rnn_lm *tn_rnn_lm_create(tn_rnn_lm_config c);

typedef struct tn_rnn_lm_args {
    int         zero_;
    tn_tensor  *ids;         /* i64 [B, T] */
    tn_tensor  *targets;     /* loss only: i64 [B, T] */
    tn_tensor **states;      /* in and out, may be NULL: [TN_RNN_LM_STATES], detached; NULL elements: zeros */
    double      alpha, beta; /* loss only: weights of the mean square of the last layer and of its changes (AR, TAR) */
    bool        last;        /* only the logits after the last token */
    bool        vectors;     /* return the output layer's input, [B, T, dim], instead of logits */
    int         end_;
} TN_KEYWORDS_ONLY  tn_rnn_lm_args;
TN_API tn_tensor   *tn_rnn_lm_run(tn_rnn_lm     *m,
                                  tn_rnn_lm_args a); /* logits [B, T, vocab]; with cutoffs log-probabilities */
TN_API tn_tensor   *tn_rnn_lm_loss_run(tn_rnn_lm *m, tn_rnn_lm_args a); /* mean over the targets */
TN_API tn_decoding *tn_rnn_lm_decoding(tn_rnn_lm *m, int64_t rows, int64_t length);
TN_API tn_rnn_lm   *tn_rnn_lm_load(const char *dir);
TN_API tn_status    tn_rnn_lm_save(tn_rnn_lm *m, const char *dir) TN_CHECKED;

/* ---- training with carried states (truncated back-propagation through time) -------------------------------------- */

typedef struct {
    tn_module   base;
    tn_rnn_lm  *lm;    /* "model" */
    tn_tensor **state; /* in training; saved in checkpoints */
    tn_tensor **apart; /* in validation */
    int64_t     batch;
    double      alpha, beta; /* AR and TAR, set by the caller: 2 and 1 in AWD-LSTM */
} tn_carried_lm;
TN_API tn_carried_lm *tn_carried_lm_new(tn_rnn_lm *lm, int64_t batch); /* owns lm, also on failure */
TN_API tn_tensor     *tn_carried_lm_loss(void *carried_lm, const tn_batch *b, void *user); /* a tn_fit_loss */

TN_C_END_
#define tn_rnn_lm_new(...) TN_NEW_(tn_rnn_lm_create, tn_rnn_lm_config, TN_RNN_LM_DEFAULTS, __VA_ARGS__)
#define tn_rnn_lm_forward(m, ...) \
    TN_CALL_(tn_rnn_lm_run(m, TN_ARGS1_(tn_rnn_lm_args, TN_NO_DEFAULTS_, ids, __VA_ARGS__, TN_END_)))
#define tn_rnn_lm_loss(m, ...) \
    TN_CALL_(tn_rnn_lm_loss_run(m, TN_ARGS2_(tn_rnn_lm_args, TN_NO_DEFAULTS_, ids, targets, __VA_ARGS__, TN_END_)))
#endif

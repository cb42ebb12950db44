/* rnn.h — recurrent networks: layers that read sequences, and cells for networks that go step by step. Part of nn.h:
 * include that.
 *
 *     tn_lstm   *m = tn_lstm_new(.in = 256, .hidden = 512, .layers = 2, .dropout = 0.2);
 *     tn_tensor *y = tn_call(m, x);                                          // the outputs alone, or
 *     tn_tensor *h, *c;
 *     y = tn_lstm_forward(m, x, .lengths = lengths, .h_n = &h, .c_n = &c);   // the last states, too
 *
 * Names, gates and initialisation are PyTorch's, but batches come first. Sequences of different length need no packing
 * by hand: with lengths, padding is not computed with, whatever it holds; outputs there are 0, the last states are
 * those after each sequence's own last step, and the reverse direction begins there. A sequence of length 0 has the
 * states that it was given. Results of a sequence depend neither on its padding nor on the rest of the batch. */
#ifndef TENON_NN_RNN_H
#define TENON_NN_RNN_H

#include "module.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_rnn_config {
    int            zero_;
    int64_t        in, hidden;
    int64_t layers TN_IS(1);
    int64_t  proj_size;     /* LSTM alone: h is the output gate's vector times a matrix, of so many numbers; 0: none */
    double   dropout;       /* of the outputs between two layers */
    bool     locked;        /* variational: dropout leaves out the same numbers in all steps of a sequence */
    double   weight_drop;   /* in training so much of weight_hh is left out, the same in all steps (DropConnect) */
    bool     bidirectional; /* outputs are [.., 2 hidden]: forward, then reverse */
    bool     relu;          /* RNN alone: instead of tanh */
    bool     no_bias;
    bool     time_first; /* [T, B, in], as is PyTorch's default */
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_rnn_config;
#define TN_RNN_DEFAULTS .layers = 1

/* Parameters of layer i, direction d are at i · directions + d; in state dicts weight_ih_l0, weight_ih_l0_reverse, …
 * With proj_size P, below, h has P numbers where it says hidden, c still hidden. */
typedef struct {
    tn_module   base;
    int64_t     in, hidden, layers, directions;
    int64_t     gates; /* 1, 4 (i, f, g, o) or 3 (r, z, n): the rows of the weights are gates · hidden */
    int64_t     proj_size;
    double      dropout, weight_drop;
    bool        relu, time_first, locked;
    tn_tensor **weight_ih, **weight_hh; /* [gates · hidden, in or directions · hidden], [gates · hidden, hidden] */
    tn_tensor **bias_ih, **bias_hh;     /* [gates · hidden]; NULLs if there are none */
    tn_tensor **weight_hr;              /* [P, hidden], or NULLs */
} tn_rnn, tn_lstm, tn_gru;
TN_API tn_rnn  *tn_rnn_create(tn_rnn_config c);
TN_API tn_lstm *tn_lstm_create(tn_rnn_config c);
TN_API tn_gru  *tn_gru_create(tn_rnn_config c);

typedef struct tn_rnn_args {
    int         zero_;
    tn_tensor  *x;          /* [B, T, in] */
    tn_tensor  *lengths;    /* i64 or i32 [B]: how many steps of each are real; NULL: all */
    tn_tensor  *h0, *c0;    /* [layers · directions, B, hidden]; NULL: zeros; c0: LSTM alone */
    tn_tensor **h_n, **c_n; /* out, may be NULL: the same after the last step */
    int         end_;
} TN_KEYWORDS_ONLY tn_rnn_args;
TN_API tn_tensor  *tn_rnn_run(tn_rnn *m, tn_rnn_args a); /* [B, T, directions · hidden]; for all three */

/* ---- one step ---------------------------------------------------------------------------------------------------- */

typedef struct tn_rnn_cell_config {
    int      zero_;
    int64_t  in, hidden;
    bool     relu; /* RNN alone */
    bool     no_bias;
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_rnn_cell_config;
typedef struct {
    tn_module  base;
    int64_t    in, hidden, gates;
    bool       relu;
    tn_tensor *weight_ih, *weight_hh, *bias_ih, *bias_hh;
} tn_rnn_cell, tn_lstm_cell, tn_gru_cell;
TN_API tn_rnn_cell  *tn_rnn_cell_create(tn_rnn_cell_config c);
TN_API tn_lstm_cell *tn_lstm_cell_create(tn_rnn_cell_config c);
TN_API tn_gru_cell  *tn_gru_cell_create(tn_rnn_cell_config c);

typedef struct tn_rnn_cell_args {
    int         zero_;
    tn_tensor  *x;     /* [B, in] */
    tn_tensor  *h, *c; /* [B, hidden]; NULL: zeros; c: LSTM alone */
    tn_tensor **c_n;   /* out, may be NULL: LSTM alone */
    int         end_;
} TN_KEYWORDS_ONLY tn_rnn_cell_args;
TN_API tn_tensor  *tn_rnn_cell_run(tn_rnn_cell *m, tn_rnn_cell_args a); /* the next h, [B, hidden]; for all three */

#ifdef __cplusplus
}
#else
#define tn_rnn_new(...) TN_NEW_(tn_rnn_create, tn_rnn_config, TN_RNN_DEFAULTS, __VA_ARGS__)
#define tn_lstm_new(...) TN_NEW_(tn_lstm_create, tn_rnn_config, TN_RNN_DEFAULTS, __VA_ARGS__)
#define tn_gru_new(...) TN_NEW_(tn_gru_create, tn_rnn_config, TN_RNN_DEFAULTS, __VA_ARGS__)
#define tn_rnn_forward(m, ...) \
    TN_CALL_(tn_rnn_run(m, TN_ARGS1_(tn_rnn_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, .zero_ = 0)))
#define tn_lstm_forward(m, ...) \
    TN_CALL_(tn_rnn_run(m, TN_ARGS1_(tn_rnn_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, .zero_ = 0)))
#define tn_gru_forward(m, ...) \
    TN_CALL_(tn_rnn_run(m, TN_ARGS1_(tn_rnn_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, .zero_ = 0)))
#define tn_rnn_cell_new(...) TN_NEW_(tn_rnn_cell_create, tn_rnn_cell_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_lstm_cell_new(...) TN_NEW_(tn_lstm_cell_create, tn_rnn_cell_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_gru_cell_new(...) TN_NEW_(tn_gru_cell_create, tn_rnn_cell_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_rnn_cell_forward(m, ...) \
    TN_CALL_(tn_rnn_cell_run(m, TN_ARGS1_(tn_rnn_cell_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, .zero_ = 0)))
#define tn_lstm_cell_forward(m, ...) \
    TN_CALL_(tn_rnn_cell_run(m, TN_ARGS1_(tn_rnn_cell_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, .zero_ = 0)))
#define tn_gru_cell_forward(m, ...) \
    TN_CALL_(tn_rnn_cell_run(m, TN_ARGS1_(tn_rnn_cell_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, .zero_ = 0)))
#endif
#endif

/* rnn.h — recurrent networks: layers over whole sequences, and cells for single steps. Part of nn.h: include that.
 *
 *     tn_lstm   *m = tn_lstm_new(.in = 256, .hidden = 512, .layers = 2, .dropout = 0.2);
 *     tn_tensor *y = tn_call(m, x);                                          // returns the outputs
 *     tn_tensor *h, *c;
 *     y = tn_lstm_forward(m, x, .lengths = lengths, .h_n = &h, .c_n = &c);   // returns the last states, too
 *
 * Names, gates and initialisation are PyTorch's, but the batch is the first dim. For sequences of different length pass
 * their lengths; packing is automatic. Padding is then never read; the outputs of padding are 0; the last states are
 * those after the last step of each sequence, where the reverse direction starts. A sequence of length 0 keeps its
 * initial states. The results of a sequence depend neither on its padding nor on the rest of the batch. */
#ifndef TENON_NN_RNN_H
#define TENON_NN_RNN_H

#include "module.h"

TN_C_BEGIN_

typedef struct tn_rnn_config {
    int            zero_;
    int64_t        in, hidden;
    int64_t layers TN_IS(1);
    int64_t        proj_size;   /* LSTM only: width to which h is projected; 0: no projection */
    double         dropout;     /* dropout probability of the outputs between two layers */
    bool           locked;      /* variational dropout: one mask for all steps of a sequence */
    double         weight_drop; /* dropout probability of the elements of weight_hh, one mask per call (DropConnect) */
    bool           bidirectional; /* outputs are [.., 2 hidden]: forward, then reverse */
    bool           relu;          /* RNN only: use relu instead of tanh */
    bool           no_bias;
    bool           time_first; /* x is [T, B, in], as by default in PyTorch */
    tn_dtype       dtype;
    int            end_;
} TN_KEYWORDS_ONLY tn_rnn_config;
#define TN_RNN_DEFAULTS .layers = 1

/* Parameters of layer i, direction d are at index i · directions + d; in state dicts weight_ih_l0,
 * weight_ih_l0_reverse, … With proj_size P, the width of h and of the outputs is P instead of hidden; that of c is
 * hidden. */
typedef struct {
    tn_module   base;
    int64_t     in, hidden, layers, directions;
    int64_t     gates; /* RNN 1, LSTM 4 (i, f, g, o), GRU 3 (r, z, n); weights have gates · hidden rows */
    int64_t     proj_size;
    double      dropout, weight_drop;
    bool        relu, time_first, locked;
    tn_tensor **weight_ih, **weight_hh; /* [gates · hidden, in or directions · hidden], [gates · hidden, hidden] */
    tn_tensor **bias_ih, **bias_hh;     /* [gates · hidden]; elements are NULL with .no_bias */
    tn_tensor **weight_hr;              /* [P, hidden]; elements are NULL without proj_size */
} tn_rnn, tn_lstm, tn_gru;
TN_API tn_rnn  *tn_rnn_create(tn_rnn_config c);
TN_API tn_lstm *tn_lstm_create(tn_rnn_config c);
TN_API tn_gru  *tn_gru_create(tn_rnn_config c);

typedef struct tn_rnn_args {
    int         zero_;
    tn_tensor  *x;          /* [B, T, in] */
    tn_tensor  *lengths;    /* i64 or i32 [B]: number of steps of each sequence; NULL: T for all */
    tn_tensor  *h0, *c0;    /* initial states [layers · directions, B, hidden]; NULL: zeros; c0: LSTM only */
    tn_tensor **h_n, **c_n; /* output, may be NULL: states after the last step; c_n: LSTM only */
    int         end_;
} TN_KEYWORDS_ONLY tn_rnn_args;
TN_API tn_tensor  *tn_rnn_run(tn_rnn *m, tn_rnn_args a); /* RNN, LSTM, GRU: [B, T, directions · hidden] */

/* ---- cells: one step --------------------------------------------------------------------------------------------- */

typedef struct tn_rnn_cell_config {
    int      zero_;
    int64_t  in, hidden;
    bool     relu; /* RNN cell only: use relu instead of tanh */
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
    tn_tensor  *h, *c; /* states [B, hidden]; NULL: zeros; c: LSTM cell only */
    tn_tensor **c_n;   /* output, may be NULL: the next c, LSTM cell only */
    int         end_;
} TN_KEYWORDS_ONLY tn_rnn_cell_args;
TN_API tn_tensor  *tn_rnn_cell_run(tn_rnn_cell *m, tn_rnn_cell_args a); /* all cells: the next h, [B, hidden] */

TN_C_END_
#define tn_rnn_new(...) TN_NEW_(tn_rnn_create, tn_rnn_config, TN_RNN_DEFAULTS, __VA_ARGS__)
#define tn_lstm_new(...) TN_NEW_(tn_lstm_create, tn_rnn_config, TN_RNN_DEFAULTS, __VA_ARGS__)
#define tn_gru_new(...) TN_NEW_(tn_gru_create, tn_rnn_config, TN_RNN_DEFAULTS, __VA_ARGS__)
#define tn_rnn_forward(m, ...) TN_CALL_(tn_rnn_run(m, TN_ARGS1_(tn_rnn_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#define tn_lstm_forward(m, ...) \
    TN_CALL_(tn_rnn_run(m, TN_ARGS1_(tn_rnn_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#define tn_gru_forward(m, ...) TN_CALL_(tn_rnn_run(m, TN_ARGS1_(tn_rnn_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#define tn_rnn_cell_new(...) TN_NEW_(tn_rnn_cell_create, tn_rnn_cell_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_lstm_cell_new(...) TN_NEW_(tn_lstm_cell_create, tn_rnn_cell_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_gru_cell_new(...) TN_NEW_(tn_gru_cell_create, tn_rnn_cell_config, TN_NO_DEFAULTS_, __VA_ARGS__)
#define tn_rnn_cell_forward(m, ...) \
    TN_CALL_(tn_rnn_cell_run(m, TN_ARGS1_(tn_rnn_cell_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#define tn_lstm_cell_forward(m, ...) \
    TN_CALL_(tn_rnn_cell_run(m, TN_ARGS1_(tn_rnn_cell_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#define tn_gru_cell_forward(m, ...) \
    TN_CALL_(tn_rnn_cell_run(m, TN_ARGS1_(tn_rnn_cell_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#endif

/* steps.h — the ops of recurrent layers; nn/rnn.h builds networks from them. Part of autograd.h: include that. */
#ifndef TENON_AUTOGRAD_STEPS_H
#define TENON_AUTOGRAD_STEPS_H

#include "../core/core.h"

TN_C_BEGIN_

/* One layer in one direction over packed sequences, sorted by length and laid out by time: the first step of each
 * sequence, the longest sequence first, then the second step of each sequence that has one, up to the last step. */
typedef struct tn_steps_args {
    int            zero_;
    tn_tensor     *x; /* [packed, gates · H]: W_ih x + b of all steps. Gates: rnn 1, lstm 4 (i f g o), gru 3 (r z n) */
    tn_tensor     *weight; /* [gates · H, H]: W_hh */
    tn_tensor     *h, *c;  /* [B, H]: the initial states; c: lstm only */
    tn_tensor     *bias;   /* gru: [3H], b_hh, or NULL; rnn and lstm have it in x */
    tn_tensor     *proj;   /* lstm: [P, H], W_hr, or NULL; h = W_hr (o tanh(c)), weight is [4H, P] and h [B, P] */
    const int64_t *sizes;  /* number of sequences in each step, never increasing; NULL: B in every step */
    int64_t        steps;
    bool           reverse;          /* from each sequence's last step to its first */
    bool           relu;             /* rnn: relu instead of tanh */
    tn_tensor    **last_h, **last_c; /* out, may be NULL: [B, H], the states after each sequence's last step */
    int            end_;
} TN_KEYWORDS_ONLY tn_steps_args;
TN_API tn_tensor  *tn_rnn_steps_run(tn_steps_args a); /* [packed, H], or with .proj [packed, P] */
TN_API tn_tensor  *tn_lstm_steps_run(tn_steps_args a);
TN_API tn_tensor  *tn_gru_steps_run(tn_steps_args a);
#define tn_rnn_steps(...) \
    TN_CALL_(tn_rnn_steps_run(TN_ARGS3_(tn_steps_args, TN_NO_DEFAULTS_, x, weight, h, __VA_ARGS__, TN_END_)))
#define tn_lstm_steps(...) \
    TN_CALL_(tn_lstm_steps_run(TN_ARGS3_(tn_steps_args, TN_NO_DEFAULTS_, x, weight, h, __VA_ARGS__, TN_END_)))
#define tn_gru_steps(...) \
    TN_CALL_(tn_gru_steps_run(TN_ARGS3_(tn_steps_args, TN_NO_DEFAULTS_, x, weight, h, __VA_ARGS__, TN_END_)))

TN_C_END_
#endif

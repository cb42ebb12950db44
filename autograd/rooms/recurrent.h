/* recurrent.h — what the rooms rnn.c, lstm.c, gru.c and lstm_proj.c share: the walk over the steps of packed sequences,
 * forward and back.
 *
 * Packed means sorted by length and laid out by time: first the first steps of all sequences, the longest one first,
 * then the second steps of those that have one, and so on. Step t has sizes[t] rows, and a step is a product and a
 * kernel over these rows: there is no padding to skip.
 *
 * For the backward a cell keeps K numbers for each unit of every step, in groups of H = hidden: first the values of its
 * G gates, last the state before the step. They are an extra result that only the backward reads. The backward goes
 * from the gradients of the states to those of these numbers (spread), and from there to those of the sums to which the
 * gates' functions were applied (chain). */
#ifndef TENON_AUTOGRAD_ROOMS_RECURRENT_H
#define TENON_AUTOGRAD_ROOMS_RECURRENT_H

#include "autograd/rooms/room.h"

/* Inputs and results, in this order; an rnn and a gru have no c. A gru has the bias of the product with the state. */
enum { TN__STEPS_X, TN__STEPS_WEIGHT, TN__STEPS_H, TN__STEPS_C, TN__STEPS_BIAS = TN__STEPS_C };
enum { TN__STEPS_Y, TN__STEPS_LAST, TN__STEPS_LAST_C }; /* and behind them what was kept */

typedef struct {
    const int64_t *sizes; /* NULL: every step has all rows */
    int64_t        steps;
    bool           reverse; /* from the last step to the first */
    bool           relu;    /* rnn */
} tn_steps;

enum { TN__MOST_KEPT = 6 };
typedef struct {
    int  gates, kept;
    bool state; /* it has a second state, c */
    bool split; /* the gradient of the product is not that of x */
    /* A row each of y, h, c, kept (which holds the product at first), to be written; and of x, h, c, bias. h and c are
     * updated in place. args: tn_steps. */
    tn__kernel_set forward;
    /* A row each of gx, gproduct (if split), gh, gc, of which the last two are updated; and of kept, gy, gkept, of
     * which the last two may be absent. What gh gets through the product is added by the caller. */
    tn__kernel_set backward;
    /* The same with ops: k[] is what was kept, g[] are the gradients of that, NULL where there is none. */
    void (*spread)(const tn_steps *a, tn_tensor *const *k, tn_tensor *gh, tn_tensor *gc, tn_tensor **g);
    void (*chain)(const tn_steps *a, tn_tensor *const *k, tn_tensor *const *g, tn_tensor **gx, tn_tensor **gproduct);
} tn__cell;

bool tn__steps_infer(tn_ctx *c, const tn__cell *cell);
void tn__steps_forward(tn_ctx *c, const tn__cell *cell);
void tn__steps_backward(tn_back *b, const tn__cell *cell);
void tn__steps_backward_ops(tn_back *b, const tn__cell *cell);
bool tn__steps_copy(void *to, const void *from); /* of args */
void tn__steps_free(void *args);

/* ---- for a room whose steps are its own -------------------------------------------------------------------------- */

/* The steps one after the other, up or down: for (tn__steps_walk w = tn__steps_begin(…); tn__steps_next(&w);) */
typedef struct {
    const tn_steps *a;
    int64_t         t, at, n; /* a step, the first of its rows in what is packed, and how many */
    int64_t         all;      /* rows of a step, if they are no fewer */
    bool            down;
} tn__steps_walk;
tn__steps_walk tn__steps_begin(const tn_steps *a, bool down, int64_t packed, int64_t all);
bool           tn__steps_next(tn__steps_walk *w);
/* Rows [at, at + n) of x, and of those the numbers [from, from + width) (width 0: all). */
tn_tensor tn__step_part(const tn_tensor *x, int64_t at, int64_t n, int64_t from, int64_t width);
/* Wᵀ, as it is read: for more than a few steps as a copy in which rows are vectors. They are a little longer than they
 * need be, since rows a power of 2 apart would fall into the same few sets of the cache. */
tn_tensor tn__step_weight(tn_tensor *w, int64_t steps);
/* The gradient of a state, at first that of the last state g, or 0. */
tn_tensor *tn__step_carried(tn_dtype dt, tn_shape s, const tn_tensor *g);
/* The first n rows of x become those of y. */
tn_tensor *tn__step_replaced(tn_tensor *x, tn_tensor *y, int64_t n);
/* For infer: "op: what is [..], but must be [..]: why"; and do the steps' sizes add up? */
bool tn__steps_fail(const tn_ctx *c, const char *what, const tn_tensor *x, tn_shape want, const char *why);
bool tn__steps_sizes_fit(const tn_ctx *c, const tn_steps *a, int64_t packed, int64_t rows);

/* The results are NULL; are the options those of this op, which has a state c, or a bias? Raises. */
bool       tn__steps_begun(const tn_op *op, const tn_steps_args *a, bool state, bool bias);
tn_tensor *tn__lstm_proj_call(tn_steps_args a);
tn_tensor *tn__steps_call(const tn_op *op, tn_steps_args a, bool state, bool bias);

/* For chain: g y (1 - y), g (1 - y²). */
static inline tn_tensor *tn__sigmoid_back(tn_tensor *g, tn_tensor *y)
{
    return tn_mul(tn_mul(g, y), tn_rsub_scalar(y, 1));
}
static inline tn_tensor *tn__tanh_back(tn_tensor *g, tn_tensor *y)
{
    return tn_mul(g, tn_rsub_scalar(tn_square(y), 1));
}
/* a + b, where one of them may be absent. */
static inline tn_tensor *tn__plus(tn_tensor *a, tn_tensor *b) { return !a ? b : !b ? a : tn_add(a, b); }

#endif

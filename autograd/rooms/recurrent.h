/* recurrent.h — what the rooms rnn.c, lstm.c and gru.c share: the walk over the steps of packed sequences, forward and
 * back.
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

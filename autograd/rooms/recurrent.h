/* recurrent.h — shared code of the rooms rnn.c, lstm.c, gru.c and lstm_proj.c: the walk over the steps of packed
 * sequences, forward and backward.
 *
 * Packed means sorted by length and laid out by time: the first steps of all sequences, the longest one first, then the
 * second steps of the sequences that have one, up to the last step. Step t has sizes[t] rows; a step is a product and a
 * kernel over these rows, so there is no padding to skip.
 *
 * For the backward a cell keeps K values for each unit of every step, in groups of H = hidden: first the values of its
 * G gates, last the state before the step. They are an extra result that only the backward reads. The backward computes
 * the gradients of these values from those of the states (spread), and from them those of the gates' inputs, the sums
 * to which the gates' functions were applied (chain). */
#ifndef TENON_AUTOGRAD_ROOMS_RECURRENT_H
#define TENON_AUTOGRAD_ROOMS_RECURRENT_H

#include "autograd/rooms/room.h"

/* Inputs and results, in this order. Only an lstm has c; only a gru has a bias, of the product with the state. */
enum { TN__STEPS_X, TN__STEPS_WEIGHT, TN__STEPS_H, TN__STEPS_C, TN__STEPS_BIAS = TN__STEPS_C };
enum { TN__STEPS_Y, TN__STEPS_LAST, TN__STEPS_LAST_C }; /* then the kept values */

typedef struct {
    const int64_t *sizes; /* NULL: every step has all rows */
    int64_t        steps;
    bool           reverse; /* from the last step to the first */
    bool           relu;    /* rnn */
} tn__steps;

enum { TN__MOST_KEPT = 6 };
typedef struct {
    int  gates, kept; /* G; K */
    bool state;       /* the cell has a second state, c */
    bool split;       /* the gradient of the product differs from that of x */
    /* Writes a row each of y, h, c, kept (which holds the product on entry); reads a row each of x, h, c, bias. h and c
     * are updated in place. args: tn__steps. */
    tn__kernel_set forward;
    /* Writes a row each of gx, gproduct (if split), and updates gh, gc; reads a row each of kept, gy, gkept, of which
     * the last two may be absent. The caller adds the part of gh that comes through the product. */
    tn__kernel_set backward;
    /* The same, made of ops: k[] are the kept values, g[] their gradients, NULL for zero. */
    void (*spread)(const tn__steps *a, tn_tensor *const *k, tn_tensor *gh, tn_tensor *gc, tn_tensor **g);
    void (*chain)(const tn__steps *a, tn_tensor *const *k, tn_tensor *const *g, tn_tensor **gx, tn_tensor **gproduct);
} tn__cell;

bool tn__steps_infer(tn_ctx *c, const tn__cell *cell);
void tn__steps_forward(tn_ctx *c, const tn__cell *cell);
void tn__steps_backward(tn_back *b, const tn__cell *cell);
void tn__steps_backward_ops(tn_back *b, const tn__cell *cell);
bool tn__steps_copy(void *to, const void *from); /* of args */
void tn__steps_free(void *args);

/* ---- for a room that computes its steps itself ------------------------------------------------------------------- */

/* The steps in rising or falling order: for (tn__steps_walk w = tn__steps_begin(…); tn__steps_next(&w);) */
typedef struct {
    const tn__steps *a;
    int64_t          t, at, n; /* the step, its first packed row, its number of rows */
    int64_t          all;      /* number of rows of every step, if a->sizes is NULL */
    bool             down;     /* falling order */
} tn__steps_walk;
tn__steps_walk tn__steps_begin(const tn__steps *a, bool down, int64_t packed, int64_t all);
bool           tn__steps_next(tn__steps_walk *w);
/* A view of rows [at, at + n) of x, and of columns [from, from + width) (width 0: all columns). */
tn_tensor tn__step_part(const tn_tensor *x, int64_t at, int64_t n, int64_t from, int64_t width);
/* Wᵀ: a view, or for more than a few steps a copy with contiguous rows. Its rows are padded, since rows a power of 2
 * apart would fall into the same few sets of the cache. */
tn_tensor tn__step_weight(tn_tensor *w, int64_t steps);
/* A new gradient of a state, initialised to the gradient g of the last state, or to 0 if g is NULL. */
tn_tensor *tn__step_state_grad(tn_dtype dt, tn_shape s, const tn_tensor *g);
/* x with its first n rows replaced by y. Made of ops. */
tn_tensor *tn__step_replace_rows(tn_tensor *x, tn_tensor *y, int64_t n);
/* For infer: raises "op: what is [..], but must be [..]: why". Checks that the sizes of the steps add up to
 * `packed`. */
bool tn__steps_fail(const tn_ctx *c, const char *name, const tn_tensor *x, tn_shape want, const char *why);
bool tn__steps_sizes_fit(const tn_ctx *c, const tn__steps *a, int64_t packed, int64_t rows);

/* Sets the outputs to NULL and raises if an option is set that this op does not have. state, bias: it has them. */
bool       tn__steps_options(const tn_op *op, const tn_steps_args *a, bool state, bool bias);
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
/* a + b; each may be NULL. */
static inline tn_tensor *tn__add_optional(tn_tensor *a, tn_tensor *b) { return !a ? b : !b ? a : tn_add(a, b); }

#endif

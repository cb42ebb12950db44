/* einsum_equation.h — parses einsum's equation, such as "bij,bjk->bik", with the shapes of its operands.
 *
 * A label denotes a dim: A-Z are 0-25, a-z 26-51, the dims of "..." 52-59, counted from the last. A set of labels is a
 * 64-bit word. */
#ifndef TENON_AUTOGRAD_ROOMS_EINSUM_EQUATION_H
#define TENON_AUTOGRAD_ROOMS_EINSUM_EQUATION_H

#include "autograd/rooms/room.h"

enum { TN__LETTERS = 52, TN__LABELS = TN__LETTERS + TN_MAX_DIMS };
typedef struct {
    int n;
    int d[TN_MAX_DIMS]; /* a label for each dim */
} tn__term;
typedef struct {
    const char *text;
    int64_t     size[TN__LABELS];    /* -1: not in the equation */
    int         operand[TN__LABELS]; /* the operand that gave the size */
    int         uses[TN__LABELS];    /* number of operands that have the label */
    int         times[TN__LABELS];   /* number of times it occurs in all operands */
    int         dots;                /* the maximum number of dims denoted by "..." */
    tn__term    out;
} tn__equation;

/* Parses text and checks it against c's inputs. Raises every error about the equation; the message names the op and
 * quotes the text. */
bool tn__equation_read(const tn_ctx *c, const char *text, tn__equation *q);
/* Stores the labels of operand i, whose text starts at *p, in *t; moves *p to the next operand. */
bool tn__equation_operand(const tn_ctx *c, const tn__equation *q, const char **p, int i, tn__term *t);
/* The labels of an operand of shape x, without those of dims that are 1 here and larger elsewhere (broadcast). */
uint64_t tn__equation_kept(const tn__equation *q, tn_shape x, const tn__term *t);
/* Call tn__equation_used after an operand with these labels has been multiplied. tn__equation_needed returns the labels
 * in the output or in an operand not multiplied yet. */
void     tn__equation_used(tn__equation *q, uint64_t labels);
uint64_t tn__equation_needed(const tn__equation *q);

static inline uint64_t tn__label_bit(int label) { return (uint64_t)1 << label; }
static inline uint64_t tn__labels_of(const tn__term *t)
{
    uint64_t s = 0;
    for (int i = 0; i < t->n; i++) s |= tn__label_bit(t->d[i]);
    return s;
}

#endif

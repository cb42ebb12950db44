/* einsum_equation.h — reading einsum's equation: "bij,bjk->bik" and the shapes of its operands.
 *
 * A label stands for a dim: A-Z are 0-25, a-z 26-51, the dims of "..." 52-59, counted from the last. A set of labels is
 * a 64-bit word. */
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
    int         operand[TN__LABELS]; /* that gave the size */
    int         uses[TN__LABELS];    /* how many operands have the label */
    int         times[TN__LABELS];   /* how often it occurs in all of them */
    int         dots;                /* the most dims that "..." stands for */
    tn__term    out;
} tn__equation;

/* Parses text and checks it against c's inputs. Every error about the equation is raised here, names the op and quotes
 * the text. */
bool tn__equation_read(const tn_ctx *c, const char *text, tn__equation *q);
/* The labels of operand i, whose text begins at *p; *p then points to the next operand. */
bool tn__equation_operand(const tn_ctx *c, const tn__equation *q, const char **p, int i, tn__term *t);
/* The labels by which operand i is multiplied: all but those of dims of "..." that are 1 here and more elsewhere. */
uint64_t tn__equation_kept(const tn__equation *q, tn_shape x, const tn__term *t);
/* To be called once an operand with these labels has been multiplied; tn__equation_needed: the labels that the output
 * or an operand not yet multiplied still has. */
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

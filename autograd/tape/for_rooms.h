/* for_rooms.h — what the library's own ops can ask of the tape beyond op.h. Part of rooms/room.h. */
#ifndef TENON_AUTOGRAD_TAPE_FOR_ROOMS_H
#define TENON_AUTOGRAD_TAPE_FOR_ROOMS_H

#include "autograd/autograd.h"
#include "core/tensor/layout.h"

/* The first members of every op of the library: its name, and how it takes its inputs under autocast. */
#define TN__ROOM(title, choice) .size = sizeof(tn_op), .name = (title), .autocast = (choice)

/* In .saves of an op with fewer than 16 results: the gradient of input 0 is zero but for the rows at input 1, saved. */
#define TN__FEW_ROWS (1u << 31)

/* are these f32 and bf16 alone, so that autocast converts them to one type? */
bool tn__autocast_meets(int n, tn_tensor *const *t);

/* For a gradient that lives in a part of an input (a slice, a row): the gradient of input i so far, to be added to in
 * place; zeros at first. NULL on error. Only in `backward`, never in `backward_ops`. */
tn_tensor *tn__grad_buffer(tn_back *b, int i);
/* For a table of which g's rows were looked up: adds them, but for those at the index skip, to the rows of a leaf's
 * gradient. False: input i is no such leaf, or its gradient is dense already; true and raised: no memory. */
bool tn__grad_rows(tn_back *b, int i, const tn_tensor *index, const tn_tensor *g, int64_t skip);

/* Elements of a tensor by offset and strides (ops/strided.c). */
typedef struct {
    tn__layout at;
    tn_shape   shape; /* strided_add: the result's */
} tn__strided_args;
extern const tn_op tn__op_strided, tn__op_overwrite; /* which history.c records */

#endif

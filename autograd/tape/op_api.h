/* op_api.h — what the library's own ops may use of the tape, in addition to op.h. Part of rooms/room.h. */
#ifndef TENON_AUTOGRAD_TAPE_OP_API_H
#define TENON_AUTOGRAD_TAPE_OP_API_H

#include "autograd/autograd.h"
#include "core/tensor/layout.h"

/* The first members of each op of the library: its name, and how it takes its inputs under autocast (op.h). */
#define TN__ROOM(title, choice) .size = sizeof(tn_op), .name = (title), .autocast = (choice)

/* In .optional: input i; in .optional and .saves: the first n inputs. */
#define TN__IN(i) (1u << (i))
#define TN__FIRST_IN(n) ((1u << (n)) - 1)

/* In .saves of an op with fewer than 16 results: the gradient of input 0 is zero except in the rows at the indices in
 * input 1, which is saved. */
#define TN__FEW_ROWS (1u << 31)
/* In .saves of an op with fewer than 15 results: its backward runs code again, which may use any leaves. */
#define TN__RUNS_AGAIN (1u << 30)

/* True if these are only f32 and bf16, so that autocast converts them to one dtype. NULLs are skipped. */
bool tn__autocast_covers(int n, tn_tensor *const *t);

/* For an op whose gradient fills a part of input i (a slice, a row): the incomplete gradient of input i, initially
 * zeros, to which the op adds in place. NULL on error. Only in `backward`, never in `backward_ops`. */
tn_tensor *tn__grad_buffer(tn_back *b, int i);
/* A tensor for the gradient of an input that has the shape of result 0: gy[0] itself if the pass alone owns it and will
 * not read it again, else a new tensor. For kernels that read an element of gy[0] before they write it, for the last
 * use of gy[0]. NULL on error. Only in `backward`. */
tn_tensor *tn__grad_room(const tn_back *b);
/* For a lookup in table i: adds g's rows at index, except where the index is skip, to the rows of the table's gradient.
 * False: input i is not such a leaf, or its gradient is already dense. True with an error set: out of memory. */
bool tn__grad_rows(tn_back *b, int i, const tn_tensor *index, const tn_tensor *g, int64_t skip);

/* True if op converts its input to another dtype: tn_to, or the copy of a weight under autocast. */
bool               tn__is_conversion(const tn_op *op);
extern const tn_op tn__op_to;

/* The sum over dims, which are kept; of bf16 it is f32. */
tn_tensor *tn__sum_wide(tn_tensor *x, tn_dims dims);

/* Elements of a tensor by offset and strides (ops/strided.c). */
typedef struct {
    tn__layout at;
    tn_shape   shape; /* strided_add: the result's */
} tn__strided_args;
extern const tn_op tn__op_strided, tn__op_overwrite; /* recorded by history.c */

#endif

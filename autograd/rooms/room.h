/* room.h — what every op's file in autograd/ops/ (a room) can use: shape rules, number types, and helpers for
 * backwards. Not for users: their ops use op.h. */
#ifndef TENON_AUTOGRAD_ROOMS_ROOM_H
#define TENON_AUTOGRAD_ROOMS_ROOM_H

#include "autograd/autograd.h"
#include "autograd/rooms/registry.h"
#include "autograd/tape/for_rooms.h"
#include "core/kernels/vecmath.h"
#include "core/base/bf16.h"
#include "core/products/gemm.h"
#include "core/skeletons/skeletons.h"
#include "core/tensor/random.h"

#include <limits.h>
#include <math.h>

/* What every room begins with: its name, and how it takes its inputs under autocast (op.h). */

/* ---- shape rules, as infer functions ----------------------------------------------------------------------------- */
bool tn__infer_same(tn_ctx *c);    /* result like input 0, any number type                          */
bool tn__infer_real(tn_ctx *c);    /* result like input 0, which must be floating                   */
bool tn__infer_numbers(tn_ctx *c); /* result like input 0, which must not be bool                   */
bool tn__infer_binary(tn_ctx *c);  /* inputs 0 and 1 broadcast; they have one number type already   */
bool tn__infer_compare(tn_ctx *c); /* the same, with a bool result                                  */
bool tn__infer_matmul(tn_ctx *c);  /* input 0 times input 1, as tn_matmul takes them (ops/matmul.c) */
/* "op: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)" */
bool tn__need_real(const tn_ctx *c, int i);
/* Inputs 0, 1 and 2 are x, weight and bias, which may be absent: of one floating type. */
bool tn__need_weighted(const tn_ctx *c);
bool tn__need_index(const tn_ctx *c, int i); /* i64 or i32 */
/* A plain number beside input i: if that holds integers, k must be whole and fit in 64 bits. */
bool tn__need_whole(const tn_ctx *c, int i, double k);
/* The position of t's first integer that is bad, -1 if there is none; and a position's indices, "[1, 2]". */
int64_t     tn__find_i64(const tn_tensor *t, bool (*bad)(int64_t));
const char *tn__position_text(tn_shape s, int64_t position, char *buf, size_t size);
/* a to the power b ≥ 0, wrapping. */
static inline int64_t tn__pow_i64(int64_t a, int64_t b)
{
    uint64_t r = 1, square = (uint64_t)a;
    for (uint64_t left = (uint64_t)b; left; left >>= 1, square *= square)
        if (left & 1) r *= square;
    return (int64_t)r;
}

/* For views: the result is input 0 under layout y. */
bool tn__infer_view(tn_ctx *c, const tn__layout *y);

/* For gather and scatter_add: index (input 1, `small`) has as many dims as `large` and is no larger except
 * along dim. */
bool tn__infer_along(tn_ctx *c, int dim, const tn_tensor *small, const tn_tensor *large);

/* ---- number types ------------------------------------------------------------------------------------------------ */
/* The type to which a and b are promoted, by the rule of ops.h. */
tn_dtype tn__promote(const tn_tensor *a, const tn_tensor *b);
/* Brings a and b to one type with recorded conversions (for reals: integers become f32), then applies op. */
tn_tensor *tn__binary(const tn_op *op, tn_tensor *a, tn_tensor *b, bool real);
/* The same over a; an error if the result would not have a's type and shape. */
tn_tensor *tn__binary_(const tn_op *op, tn_tensor *a, tn_tensor *b, bool real);
/* Converts the n operands of a product to the type they are promoted to, with recorded conversions; NULLs stay NULL.
 * Under autocast f32 and bf16 are left as they are: autocast converts them. */
void tn__meet(int n, tn_tensor **t);
/* For messages: "encoder.weight [24, 8]", or "[24, 8]" if t has no name. Returns buf; 300 bytes suffice. */
const char *tn__named(const tn_tensor *t, char *buf, size_t size);

/* ---- reductions -------------------------------------------------------------------------------------------------- */
/* tn_reduce_args are for all reductions: refuses .biased unless var, and .p (2, or 0 where it was not filled in) unless
 * norm. */
bool tn__reduces_by(const char *who, const tn_reduce_args *a, bool var, bool norm);
/* Wraps dims (none: all of them) and gives the result's shape. */
bool tn__reduced_shape(const char *op, tn_shape x, tn_dims *dims, bool keepdim, tn_shape *to);
/* A reduced result (or its gradient) as a view with size-1 dims, so that it broadcasts to shape x. On the tape. */
tn_tensor *tn__unreduced(tn_tensor *y, tn_shape x, tn_dims dims, bool keepdim);
/* For infer: result i is input 0 reduced over dims, of number type dt. */
bool tn__infer_reduced(tn_ctx *c, int i, tn_dims dims, bool keepdim, tn_dtype dt);
/* For infer: no dim that goes may be empty: "amax: dim 1 of [3, 0] is empty: there is nothing to choose from". */
bool tn__need_elements(const tn_ctx *c, tn_dims dims);
/* dims as tn__reduce takes them, after infer; and how many elements make one result. */
tn_dims tn__dims_of(const tn_tensor *x, tn_dims dims);
int64_t tn__count_of(tn_shape x, tn_dims dims);
/* t with its last k dims joined into one, as kernels that go row by row want it: a view where strides allow. An op: for
 * a forward, between tn_no_grad_begin and tn_scope_end. */
tn_tensor *tn__joined(tn_tensor *t, int k);
/* f64 for f64, f32 for the others: what a kernel's statistics are kept in. */
static inline tn_dtype tn__wide(tn_dtype dt) { return dt == TN_F64 ? TN_F64 : TN_F32; }

/* ---- norms and dropout ------------------------------------------------------------------------------------------- */
/* The rule for input 0 normalised over the last dims, by the inputs weight and bias (-1: it has none). Result `stat`
 * holds `numbers` numbers a row. */
bool tn__infer_norm(tn_ctx *c, int weight, int bias, double eps, int stat, int numbers);
/* The arguments of the norms' kernels. */
typedef struct {
    double eps;
    bool   stream; /* non-temporal stores for what a kernel writes and does not read again */
} tn__norm_arguments;
/* stream: if `tensors` tensors like x exceed the caches. Never for bf16, whose rows are made in f32 and then rounded.
 * */
tn__norm_arguments tn__norm_args(double eps, int tensors, const tn_tensor *x);
/* Layer norm's gradients over the last dims, made of ops; gx and gw may be NULL. */
void tn__layer_norm_ops(tn_tensor *x, tn_tensor *weight, tn_tensor *gy, int over, double eps, tn_tensor **gx,
                        tn_tensor **gw);
/* Dropout with probability p, whose random words begin at the given block of a generator: as kernels take it, and as an
 * op; and how many blocks n elements need. */
tn__dropped            tn__drop_of(double p, uint64_t seed, uint64_t position);
tn_tensor             *tn__drop_at(tn_tensor *x, double p, uint64_t seed, uint64_t position);
static inline uint64_t tn__drop_blocks(int64_t n) { return ((uint64_t)n + 3) / 4; }
bool                   tn__need_probability(const tn_ctx *c, double p);

/* ---- backward ---------------------------------------------------------------------------------------------------- */
/* gelu'(x) and its approximation's, made of ops. */
tn_tensor *tn__gelu_derivative(tn_tensor *x);
tn_tensor *tn__gelu_tanh_derivative(tn_tensor *x);

#endif

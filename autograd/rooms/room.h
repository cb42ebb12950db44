/* room.h — helpers for the files in autograd/ops/ (rooms): shape rules, dtypes, and parts of backwards. Private: custom
 * ops use op.h. */
#ifndef TENON_AUTOGRAD_ROOMS_ROOM_H
#define TENON_AUTOGRAD_ROOMS_ROOM_H

#include "autograd/autograd.h"
#include "autograd/rooms/registry.h"
#include "autograd/tape/op_api.h"
#include "core/kernels/vecmath.h"
#include "core/base/bf16.h"
#include "core/base/libm.h"
#include "core/products/gemm.h"
#include "core/skeletons/skeletons.h"
#include "core/tensor/random.h"

#include <limits.h>
#include <math.h>

/* ---- shape rules, as infer functions ----------------------------------------------------------------------------- */
bool tn__infer_same(tn_ctx *c);    /* result like input 0, any dtype                                */
bool tn__infer_real(tn_ctx *c);    /* result like input 0, which must be floating                   */
bool tn__infer_numbers(tn_ctx *c); /* result like input 0, which must not be bool                   */
bool tn__infer_bool(tn_ctx *c);    /* a bool for each element of input 0, any dtype                 */
bool tn__infer_binary(tn_ctx *c);  /* inputs 0 and 1 broadcast; they must have one dtype            */
bool tn__infer_compare(tn_ctx *c); /* like tn__infer_binary, with a bool result                     */
bool tn__infer_matmul(tn_ctx *c);  /* input 0 times input 1, as tn_matmul takes them (ops/matmul.c) */
/* False: raised "op: needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)". */
bool tn__need_real(const tn_ctx *c, int i);
/* Inputs 0, 1 and 2, x, weight and bias, must have one floating dtype; bias may be NULL. */
bool tn__need_weighted(const tn_ctx *c);
bool tn__need_index(const tn_ctx *c, int i); /* input i must be i64 or i32 */
/* For a plain number k and input i: if the input holds integers, k must be an integer that fits in 64 bits. */
bool tn__need_whole(const tn_ctx *c, int i, double k);
/* The position of t's first element for which bad() is true; -1: none. The text of a position's indices, "[1, 2]". */
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

/* For gather and scatter_add: index (input 1, `small`) must have as many dims as `large` and must not be larger, except
 * along dim. */
bool tn__infer_along(tn_ctx *c, int dim, const tn_tensor *small, const tn_tensor *large);

/* False: raised, "scatter_reduce: 7 is not a tn_scatter_mode". */
bool tn__scatter_mode_valid(const char *op, tn_scatter_mode how);

/* ---- dtypes ------------------------------------------------------------------------------------------------------ */
/* The dtype to which a and b are promoted, by the rule of ops.h. */
tn_dtype tn__promote(const tn_tensor *a, const tn_tensor *b);
/* Converts a and b to one dtype, recorded (real: integers to f32), then applies op. */
tn_tensor *tn__binary(const tn_op *op, tn_tensor *a, tn_tensor *b, bool real);
/* Like tn__binary, but writes the result over a; raises if the result does not have a's dtype and shape. */
tn_tensor *tn__binary_(const tn_op *op, tn_tensor *a, tn_tensor *b, bool real);
/* Converts the n operands of a product to the dtype they are promoted to, recorded; NULLs stay NULL. Under autocast f32
 * and bf16 are not converted here, but by autocast. */
void tn__promote_all(int n, tn_tensor **t);
/* For messages: "encoder.weight [24, 8]", or "[24, 8]" if t has no name. Returns buf; 300 bytes suffice. */
const char *tn__describe(const tn_tensor *t, char *buf, size_t size);

/* ---- reductions -------------------------------------------------------------------------------------------------- */
/* Checks tn_reduce_args, which all reductions share: raises if .biased is set without var, or .p (2, or 0 if not filled
 * in) without norm. */
bool tn__reduce_options(const char *caller, const tn_reduce_args *a, bool var, bool norm);
/* Wraps dims (none: all dims) and stores the result's shape in *to. False: raised. */
bool tn__reduced_shape(const char *op, tn_shape x, tn_dims *dims, bool keepdim, tn_shape *to);
/* A reduced result (or its gradient) as a view with dims of size 1, so that it broadcasts to shape x. Recorded. */
tn_tensor *tn__unreduced(tn_tensor *y, tn_shape x, tn_dims dims, bool keepdim);
/* For infer: result i is input 0 reduced over dims, of dtype dt. */
bool tn__infer_reduced(tn_ctx *c, int i, tn_dims dims, bool keepdim, tn_dtype dt);
/* For infer: no reduced dim may be empty. */
bool tn__need_elements(const tn_ctx *c, tn_dims dims);
/* After infer: dims as tn__reduce takes them; the number of elements reduced to one result. */
tn_dims tn__dims_of(const tn_tensor *x, tn_dims dims);
int64_t tn__count_of(tn_shape x, tn_dims dims);
/* t with its last k dims joined into one, for kernels that work on rows: a view if strides allow, otherwise a copy. It
 * calls an op: in a forward only between tn_no_grad_begin and tn_scope_end. */
tn_tensor *tn__joined(tn_tensor *t, int k);
/* The dtype of a kernel's statistics: f64 for f64, f32 for the others. */
static inline tn_dtype tn__wide(tn_dtype dt) { return dt == TN_F64 ? TN_F64 : TN_F32; }

/* ---- norms and dropout ------------------------------------------------------------------------------------------- */
/* The infer of input 0 normalised over its last dims; weight and bias are indices of inputs (-1: none). Result `stat`
 * has `numbers` values for each row. */
bool tn__infer_norm(tn_ctx *c, int weight, int bias, double eps, int stat, int numbers);
/* The arguments of the norms' kernels. */
typedef struct {
    double eps;
    bool   stream; /* non-temporal stores for results that the kernel does not read again */
} tn__norm_arguments;
/* stream is set if `tensors` tensors like x exceed the caches; never for bf16, whose rows are computed in f32 and then
 * rounded. */
tn__norm_arguments tn__norm_args(double eps, int tensors, const tn_tensor *x);
/* Layer norm's gradients over the last `over` dims, made of ops; gx and gw may be NULL. */
void tn__layer_norm_ops(tn_tensor *x, tn_tensor *weight, tn_tensor *gy, int over, double eps, tn_tensor **gx,
                        tn_tensor **gw);
/* Dropout with probability p: a call draws one block of its generator, at `position`, which is the seed of its mask.
 * Each sequence of a batch has a part of the mask to itself, so that its padding changes neither the mask nor the
 * numbers drawn later. */
tn__dropped tn__drop_of(double p, uint64_t seed, uint64_t position);
/* The masks of x's elements: all of them; or x is without padding, and its row i is row row[i] of a batch. */
typedef struct {
    tn__dropped    drop;
    const int64_t *row; /* or NULL */
    int64_t        per; /* elements of a sequence, with its padding */
} tn__drop_rows;
/* The mask of n elements from element `first` of the batch: the first of them that are in one sequence. */
typedef struct {
    tn__dropped drop;
    int64_t     first, n;
} tn__drop_part;
tn__drop_rows tn__drop_rows_of(tn__dropped drop, const tn_tensor *x, const tn_tensor *rows, int64_t length);
tn__drop_part tn__drop_part_of(const tn__drop_rows *a, int64_t first, int64_t n);
/* The places in the mask of attention's weights [B, ..., T, S], which depend on neither T nor S. */
tn__layout tn__drop_layout(tn_shape weights);
/* The op dropout: as tn_dropout_rows, rows may be NULL; of attention's weights. */
tn_tensor *tn__drop_at(tn_tensor *x, double p, uint64_t seed, uint64_t position, tn_tensor *rows, int64_t length);
tn_tensor *tn__drop_weights_at(tn_tensor *w, double p, uint64_t seed, uint64_t position);
bool       tn__need_probability(const tn_ctx *c, double p);

/* ---- backward ---------------------------------------------------------------------------------------------------- */
/* The derivatives of gelu and of gelu_tanh at x, made of ops. */
tn_tensor *tn__gelu_derivative(tn_tensor *x);
tn_tensor *tn__gelu_tanh_derivative(tn_tensor *x);
/* gᵀ x, the gradient of a weight [out, in] from g [rows, out] and x [rows, in] (ops/matmul.c). That of bf16 is f32: it
 * is not rounded if the weight was converted from f32 (run_node.c). Made of ops for gradients of gradients. */
tn_tensor *tn__weight_grad(const tn_back *b, tn_tensor *g, tn_tensor *x);

#endif

/* skeletons.h — the loops that run all kernels.
 *
 * A kernel receives contiguous elements of one dtype and cannot fail; strides, broadcasting, dtypes and threads are
 * handled only here. Kernels exist for f32, f64 and (where integers make sense) i64:
 *   - if any operand is floating, the kernel runs in f64 when one operand is f64, otherwise in f32; floating and bool
 *     operands arrive in that dtype, integer operands as int64_t;
 *   - otherwise all operands arrive as int64_t.
 * Results are converted back in the same way (bool: not equal to 0). */
#ifndef TENON_CORE_SKELETONS_SKELETONS_H
#define TENON_CORE_SKELETONS_SKELETONS_H

#include "core/tensor/strided_walk.h"

typedef void (*tn__kernel)(int64_t n, void *const *y, const void *const *x, const void *args);
typedef struct {
    tn__kernel f32, f64, i64;
} tn__kernel_set;
#define TN__REALS(k) ((tn__kernel_set){k##_f32, k##_f64, NULL})
#define TN__NUMBERS(k) ((tn__kernel_set){k##_f32, k##_f64, k##_i64})

enum { TN__MAX_STATE = 256 };
typedef struct {
    int               n;
    tn_tensor *const *t; /* at most TN__MAX_OPERANDS */
} tn__list;
#define TN__LIST(...) \
    ((tn__list){(int)(sizeof((tn_tensor *[]){__VA_ARGS__}) / sizeof(tn_tensor *)), (tn_tensor *[]){__VA_ARGS__}})

/* y = k(x), element by element; x broadcasts to y. y may be one of x (the same handle); otherwise they must not
 * overlap. Allocates nothing. */
void tn__map(tn__kernel_set k, tn__list y, tn__list x, const void *args);
/* Like tn__map, for kernels that need their position, `at`: that of their first element in the order of y's indices. */
typedef void (*tn__kernel_at)(int64_t at, int64_t n, void *const *y, const void *const *x, const void *args);
typedef struct {
    tn__kernel_at f32, f64, i64;
} tn__kernel_set_at;
#define TN__REALS_AT(k) ((tn__kernel_set_at){k##_f32, k##_f64, NULL})
void tn__map_at(tn__kernel_set_at k, tn__list y, tn__list x, const void *args);

/* Row by row along dim: k gets n = the length of x[0] along dim and pointers to whole rows. Operands may differ in
 * their length along dim (the kernel knows them from args); the other dims of x broadcast to y[0]'s. An operand with a
 * length of 1 along dim is a pointer to one element. A NULL operand arrives as a NULL pointer. May raise TN_ENOMEM. */
void tn__rows(tn__kernel_set k, int dim, tn__list y, tn__list x, const void *args);
/* Like tn__rows, with sums over the rows: for each tensor of sums (any shape, contiguous; or NULL) the kernel gets,
 * after the y's, that many doubles, to which it adds its row's share. Shares are added in parts whose borders depend on
 * the number of rows alone. If y[0] is absent, x[0] determines the rows. */
void tn__rows_sums(tn__kernel_set k, int dim, tn__list y, tn__list sums, tn__list x, const void *args);
/* Like tn__rows_sums, for sums of whole rows where speed matters: the kernel adds in its own dtype, a few rows of f32
 * at a time, which are then widened. It also gets its row's position, in the order of y[0]'s indices (or of x[0]'s). */
void tn__rows_columns(tn__kernel_set_at k, int dim, tn__list y, tn__list columns, tn__list x, const void *args);

/* Streaming reductions over any dims. For each result the elements arrive in order, in blocks whose borders depend on
 * the number of elements alone, and are folded into a state; states of fixed segments are merged in order. So the bits
 * depend neither on layout nor on threads. */
typedef struct {
    size_t state; /* bytes, at most TN__MAX_STATE */
    void (*init)(void *state, const void *args);
    void (*step)(int64_t n, int64_t at, void *state, const void *x, const void *args); /* x[at … at+n) of the row */
    void (*merge)(void *state, const void *later, const void *args);
    void (*finish)(int64_t n, const void *state, void *const *y, const void *args); /* n: the row's full length */
    bool lanes; /* the state is a tn__lanes, and step adds to it: adjacent rows are then added line by line */
} tn__reducer;
typedef struct {
    const tn__reducer *f32, *f64, *i64;
} tn__reducers;
#define TN__REDUCER(k, s, lanes)                                                                \
    {                                                                                           \
        sizeof(k##_state_##s), k##_init_##s, k##_step_##s, k##_merge_##s, k##_finish_##s, lanes \
    }
#define TN__REDUCER_PARTS(k, s) TN__REDUCER(k, s, false)
#define TN__REDUCER_OF_LANES(k, s) TN__REDUCER(k, s, true)
/* y[i] has the shape of x without dims, and is contiguous. dims: not empty, by tn__wrap_dims. May raise TN_ENOMEM. */
void tn__reduce(tn__reducers k, tn_dims dims, tn__list y, tn_tensor *x, const void *args);

/* By a mask (core/skeletons/mask.c) of any dtype. tn__mask_count: the number of elements that are not 0 in the mask
 * expanded to shape s. tn__mask_select: y, 1-d and of that length, = the elements of x where the mask is not 0, both
 * expanded to s. tn__mask_spread: the reverse: y = x's elements there, 0 elsewhere. */
int64_t tn__mask_count(const tn_tensor *mask, tn_shape s);
void    tn__mask_select(tn_tensor *y, const tn_tensor *x, const tn_tensor *mask, tn_shape s);
void    tn__mask_spread(tn_tensor *y, tn_tensor *x, const tn_tensor *mask);

/* By index (index.c); index is i64 or i32. tn__index_check raises "op: what 7 at [1, 2] is outside 0 … 4". */
bool tn__index_check(const char *op, const char *what, const tn_tensor *index, int64_t limit);
/* y[.., i, ..] = x[.., index[.., i, ..], ..] along dim; y has index's shape, other dims of x are not smaller. */
void tn__gather(tn_tensor *y, const tn_tensor *x, int dim, const tn_tensor *index);
/* y[.., index[.., i, ..], ..] = src[.., i, ..], or += and so forth, in the order of i. */
typedef enum { TN__SET, TN__ADD, TN__MULTIPLY, TN__LEAST, TN__MOST } tn__combine;
void tn__scatter(tn_tensor *y, int dim, const tn_tensor *index, const tn_tensor *src, tn__combine how);
/* Slices along dim, as numpy.take: in y and src that dim is replaced by the dims of index (or by one dim of size 1, for
 * a 0-d index). y[i] = x[index[i]]; and y[index[i]] += src[i] in the order of i, except for indices = skip. */
void tn__take_rows(tn_tensor *y, const tn_tensor *x, int dim, const tn_tensor *index);
void tn__add_rows(tn_tensor *y, int dim, const tn_tensor *index, const tn_tensor *src, int64_t skip);

/* ---- gradients that are kept as rows (adopt.c) ---- */

/* True if these are still rows of leaf; otherwise raises: a hook may have replaced leaf. */
bool tn__rows_fit(const tn_tensor *leaf, const tn_tensor *grad, const tn_tensor *rows);
/* Converts a gradient of leaf that is kept as rows to a dense one. */
bool tn__rows_to_dense(const tn_tensor *leaf, tn_tensor **grad, tn_tensor **rows);

#endif

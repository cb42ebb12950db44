/* skeletons.h — the loops that every kernel runs under.
 *
 * A kernel sees contiguous elements of one number type and cannot fail; strides, broadcasting, number types and
 * threads are dealt with here, once. Kernels exist for f32, f64 and (where integers make sense) i64:
 *   - if any operand is floating, the kernel runs in f64 when one operand is f64, else in f32; floating and bool
 *     operands arrive in that type, integer operands arrive as int64_t;
 *   - otherwise all operands arrive as int64_t.
 * Results are converted back the same way (bool: not equal to 0). */
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
    int        n;
    tn_tensor *t[TN__MAX_OPERANDS];
} tn__list;
#define TN__LIST(...) ((tn__list){(int)(sizeof((tn_tensor *[]){__VA_ARGS__}) / sizeof(tn_tensor *)), {__VA_ARGS__}})

/* y = k(x), element by element; x broadcasts to y. y may be one of x (the same handle); otherwise they do not overlap.
 * Allocates nothing. */
void tn__map(tn__kernel_set k, tn__list y, tn__list x, const void *args);
/* The same for kernels that must know where they are: `at` is the place of their first element in the order of y's
 * indices. */
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
/* The same, with sums over the rows: behind the y's the kernel finds, for each tensor of sums (any shape, contiguous;
 * or NULL), as many doubles, to which it adds its row's share. Shares are added in parts whose borders depend on the
 * number of rows alone. Where y[0] is absent, x[0] says which rows there are. */
void tn__rows_sums(tn__kernel_set k, int dim, tn__list y, tn__list sums, tn__list x, const void *args);
/* The same for sums of whole rows, where speed counts: the kernel adds in its own type, a few rows of f32 at a time,
 * and they are widened then. It also learns which row it has, in the order of y[0]'s indices (or of x[0]'s). */
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
    bool lanes; /* the state is a tn__lanes, and step adds to it: many rows side by side are then added line by line */
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
/* y[i] has as many elements as x without dims, and is contiguous. Reducing over nothing at all (an empty dims list) is
 * not meant: dims are wrapped and sorted, as tn__wrap_dims leaves them. May raise TN_ENOMEM. */
void tn__reduce(tn__reducers k, tn_dims dims, tn__list y, tn_tensor *x, const void *args);

/* By a mask (core/skeletons/compact.c), of any number type: how many elements are not 0 once it is expanded to shape
 * s; y, 1-d and that long, = the elements of x where it is not 0, both expanded to s; and back: y = x's elements
 * there, 0 elsewhere. */
int64_t tn__count(const tn_tensor *mask, tn_shape s);
void    tn__compact(tn_tensor *y, const tn_tensor *x, const tn_tensor *mask, tn_shape s);
void    tn__spread(tn_tensor *y, tn_tensor *x, const tn_tensor *mask);

/* By index (core/skeletons/index.c); index is i64 or i32. tn__index_check raises "op: what 7 at [1, 2] is outside 0 …
 * 4". */
bool tn__index_check(const char *op, const char *what, const tn_tensor *index, int64_t limit);
/* y[.., i, ..] = x[.., index[.., i, ..], ..] along dim; y has index's shape, x is at least as large in the
 * other dims. */
void tn__gather(tn_tensor *y, const tn_tensor *x, int dim, const tn_tensor *index);
/* y[.., index[.., i, ..], ..] += src[.., i, ..], in the order of i. */
void tn__scatter_add(tn_tensor *y, int dim, const tn_tensor *index, const tn_tensor *src);
/* Slices along dim, as numpy.take has them: in y and src that dim is replaced by the dims of index (or by one dim of
 * size 1, for a 0-d index). y[i] = x[index[i]]; and y[index[i]] += src[i] in the order of i, but for indices = skip. */
void tn__take_rows(tn_tensor *y, const tn_tensor *x, int dim, const tn_tensor *index);
void tn__add_rows(tn_tensor *y, int dim, const tn_tensor *index, const tn_tensor *src, int64_t skip);

/* ---- gradients that are kept as rows (adopt.c) ---- */

/* Are these still rows of leaf? Raises if not: a hook may have made another tensor of it. */
bool tn__rows_fit(const tn_tensor *leaf, const tn_tensor *grad, const tn_tensor *rows);
/* A gradient of leaf that is kept as rows becomes a dense one. */
bool tn__rows_spread(const tn_tensor *leaf, tn_tensor **grad, tn_tensor **rows);

#endif

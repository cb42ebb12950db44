/* elementwise.h — what ops on single elements have in common: forward, backward, tn_op, public function, kernels of one
 * loop, and rows of samples. What remains in an op's file is its formula, its derivative made of ops, and the samples
 * of its own; silu.c is a small example. Private.
 *
 * The macros paste the name f of an op: kernels are f_fwd and f_bwd, samples f_samples, and the derivative made of ops
 * is f_backward_ops. */
#ifndef TENON_AUTOGRAD_ROOMS_ELEMENTWISE_H
#define TENON_AUTOGRAD_ROOMS_ELEMENTWISE_H

#include "autograd/rooms/room.h"

/* ---- ops: `...` are further members of tn_op, set is REALS or NUMBERS (with integers) ---------------------------- */
/* y = f(x), without arguments. */
#define TN__UNARY(f, set, cast, ...)                                                            \
    TN__FORWARD(f, set, NULL, c->in[0])                                                         \
    TN__OP(f, 1, cast, .infer = TN__INFER_##set, .backward_ops = f##_backward_ops, __VA_ARGS__) \
    tn_tensor *tn_##f(tn_tensor *x) { return tn_apply(&tn__op_##f, x); }
/* y = f(x) of numbers, constant in steps: the gradient is 0. */
#define TN__STEP(f, infer_)                                                          \
    static void f##_backward_ops(tn_back *b) { b->gx[0] = tn_zeros_like(b->gy[0]); } \
    TN__FORWARD(f, NUMBERS, NULL, c->in[0])                                          \
    TN__OP(f, 1, TN_AS_IS, .infer = (infer_), .backward_ops = f##_backward_ops)      \
    tn_tensor *tn_##f(tn_tensor *x) { return tn_apply(&tn__op_##f, x); }
/* A bool for each number, without a gradient. */
#define TN__TEST(f)                                 \
    TN__FORWARD(f, NUMBERS, NULL, c->in[0])         \
    TN__OP(f, 1, TN_AS_IS, .infer = tn__infer_bool) \
    tn_tensor *tn_##f(tn_tensor *x) { return tn_apply(&tn__op_##f, x); }
/* y = f(x, k) for a plain number k: args_t is tn__scalar, or has the number under another name. The public function is
 * written in the op's file. */
typedef struct {
    double k;
} tn__scalar;
bool tn__infer_scalar(tn_ctx *c); /* tn__infer_numbers; k must be whole if x holds integers */
#define TN__SCALAR(f, set, cast, ...)      \
    TN__FORWARD(f, set, c->args, c->in[0]) \
    TN__OP(f, 1, cast, .args_size = sizeof(args_t), .backward_ops = f##_backward_ops, __VA_ARGS__)
/* y = f(a, b), broadcast; a and b are converted to one dtype. */
#define TN__BINARY(f, set, cast, ...)             \
    TN__FORWARD(f, set, NULL, c->in[0], c->in[1]) \
    TN__OP(f, 2, cast, __VA_ARGS__)               \
    tn_tensor *tn_##f(tn_tensor *a, tn_tensor *b) { return tn__binary(&tn__op_##f, a, b, false); }

#define TN__INFER_REALS tn__infer_real
#define TN__INFER_NUMBERS tn__infer_numbers
#define TN__FORWARD(f, set, arguments, ...)                                                 \
    static void f##_forward(tn_ctx *c)                                                      \
    {                                                                                       \
        tn__map(TN__##set(f##_fwd), TN__LIST(c->out[0]), TN__LIST(__VA_ARGS__), arguments); \
    }
#define TN__OP(f, n, cast, ...)                                                                        \
    const tn_op tn__op_##f = {TN__ROOM(#f, cast), .inputs = (n), .forward = f##_forward, __VA_ARGS__}; \
    TN__SAMPLES(f, f##_samples);
/* gx = f_bwd(saved, gy), written to `room`: a new tensor, or tn__grad_room(b), which may be gy's own memory. */
#define TN__BACKWARD(f, saved, room, arguments)                                                    \
    static void f##_backward(tn_back *b)                                                           \
    {                                                                                              \
        if ((b->gx[0] = (room)))                                                                   \
            tn__map(TN__REALS(f##_bwd), TN__LIST(b->gx[0]), TN__LIST(saved, b->gy[0]), arguments); \
    }

/* ---- kernels, in the section for one dtype ----------------------------------------------------------------------- */
#define TN__KERNEL(name) static void TN__(name)(int64_t n, void *const *out, const void *const *in, const void *args)
/* y[i] = an expression of x[i]; of a[i] and b[i]; of x[i] and the number k. gx[i] = an expression of gy[i] and v[i],
 * where v is the name of the saved tensor, x or y. */
#define TN__EACH(name, expression)                         \
    TN__KERNEL(name)                                       \
    {                                                      \
        const TN__REAL *x = in[0];                         \
        TN__REAL       *y = out[0];                        \
        (void)args, (void)x;                               \
        for (int64_t i = 0; i < n; i++) y[i] = expression; \
    }
#define TN__EACH_PAIR(name, expression)                    \
    TN__KERNEL(name)                                       \
    {                                                      \
        const TN__REAL *a = in[0], *b = in[1];             \
        TN__REAL       *y = out[0];                        \
        (void)args;                                        \
        for (int64_t i = 0; i < n; i++) y[i] = expression; \
    }
#define TN__EACH_SCALAR(name, expression)                                        \
    TN__KERNEL(name)                                                             \
    {                                                                            \
        const TN__REAL *x = in[0];                                               \
        TN__REAL       *y = out[0], k = (TN__REAL)((const tn__scalar *)args)->k; \
        for (int64_t i = 0; i < n; i++) y[i] = expression;                       \
    }
#define TN__EACH_GRAD(name, v, expression)                  \
    TN__KERNEL(name)                                        \
    {                                                       \
        const TN__REAL *v = in[0], *gy = in[1];             \
        TN__REAL       *gx = out[0];                        \
        (void)args;                                         \
        for (int64_t i = 0; i < n; i++) gx[i] = expression; \
    }
/* A function of core/kernels/vecmath.h for the whole array: f(n, y, x), and f(n, gx, v, gy). */
#define TN__ALL(name, f)           \
    TN__KERNEL(name)               \
    {                              \
        (void)args;                \
        TN__(f)(n, out[0], in[0]); \
    }
#define TN__ALL_GRAD(name, f)             \
    TN__KERNEL(name)                      \
    {                                     \
        (void)args;                       \
        TN__(f)(n, out[0], in[0], in[1]); \
    }
/* The first expression in the kernels of reals, the second in those of integers. Integers wrap. */
#define TN__EITHER(real, integer) TN__CAT(TN__EITHER, TN__IS_REAL)(real, integer)
#define TN__EITHER_1(real, integer) real
#define TN__EITHER_0(real, integer) integer
#define TN__WRAP(a, sign, b) (TN__REAL)((uint64_t)(a)sign(uint64_t)(b))

/* ---- rows of samples --------------------------------------------------------------------------------------------- */
/* clang-format off */
/* Four shapes for one input and five for two; `...` are the ranges, the same for all of them. */
#define TN__ROWS(...)                                                                                           \
    {.in = {{2, {3, 4}}}, __VA_ARGS__}, {.in = {{0, {0}}}, __VA_ARGS__}, {.in = {{3, {2, 0, 3}}}, __VA_ARGS__}, \
    {.in = {{3, {2, 1, 5}}}, __VA_ARGS__}
#define TN__ROWS_PAIR(...)                                                                            \
    {.in = {{2, {3, 4}}, {2, {3, 4}}}, __VA_ARGS__}, {.in = {{3, {2, 3, 4}}, {1, {4}}}, __VA_ARGS__}, \
    {.in = {{2, {3, 1}}, {3, {2, 1, 4}}}, __VA_ARGS__}, {.in = {{0, {0}}, {2, {2, 2}}}, __VA_ARGS__}, \
    {.in = {{2, {0, 3}}, {2, {1, 3}}}, __VA_ARGS__}
/* Away from 0, where functions like abs have a kink; far from integers, for steps; for tests; with a number k. */
#define TN__ROWS_NEAR_0                                                                                \
    {.in = {{2, {3, 4}}}, .low = {-2}, .high = {-0.5}}, {.in = {{0, {0}}}, .low = {0.5}, .high = {2}}, \
    {.in = {{3, {2, 0, 3}}}}, {.in = {{3, {2, 1, 5}}}, .low = {-3}, .high = {-0.5}},                   \
    {.in = {{2, {2, 3}}}, .low = {0.5}, .high = {40}}, TN__ROW_INT
#define TN__ROWS_STEP                                                                                      \
    {.in = {{2, {3, 4}}}, .low = {0.1}, .high = {0.4}}, {.in = {{0, {0}}}, .low = {-0.9}, .high = {-0.6}}, \
    {.in = {{3, {2, 0, 3}}}}, {.in = {{3, {2, 1, 5}}}, .low = {6.6}, .high = {6.9}},                       \
    {.in = {{2, {2, 3}}}, .low = {-7.4}, .high = {-7.1}}, TN__ROW_INT
#define TN__ROWS_TEST                                                                                                  \
    {.in = {{2, {3, 4}}}}, {.in = {{0, {0}}}}, {.in = {{2, {0, 3}}}}, {.in = {{3, {2, 1, 3}}}, .kind = {TN__ARG_INT}}, \
    {.in = {{1, {4}}}, .kind = {TN__ARG_MASK}}
#define TN__ROWS_SCALAR                                                                             \
    {.in = {{2, {3, 4}}}, .args = &(args_t){0.7}}, {.in = {{0, {0}}}, .args = &(args_t){-3}},       \
    {.in = {{2, {0, 4}}}, .args = &(args_t){2}}, {.in = {{3, {2, 1, 3}}}, .args = &(args_t){-1e3}}, \
    {.in = {{1, {5}}}, .args = &(args_t){1}}
#define TN__ROWS_SCALAR_INT(f)                                                                                       \
    {.in = {{2, {2, 3}}}, .args = &(args_t){-3}, .kind = {TN__ARG_INT}, .low = {-9}, .high = {9}}, TN__NOT_WHOLE(f), \
    {.in = {{1, {2}}}, .args = &(args_t){1e20}, .kind = {TN__ARG_INT},                                               \
     TN__FAILS(TN_EDTYPE, #f ": x is i64 and 1e+20 does not fit in it; convert x with tn_to(x, TN_F64)")},           \
    TN__NO_BOOL_K(f, 1)
#define TN__ROW_INT {.in = {{2, {2, 3}}}, .kind = {TN__ARG_INT}, .low = {-5}, .high = {6}}

/* Rows of errors; _K: with a number k as args. */
#define TN__REAL_ONLY(f) TN__REAL_ONLY_(f, NULL)
#define TN__REAL_ONLY_K(f, k) TN__REAL_ONLY_(f, &(args_t){k})
#define TN__REAL_ONLY_(f, arguments)                                 \
    {.in = {{1, {2}}}, .args = (arguments), .kind = {TN__ARG_INT}, \
     TN__FAILS(TN_EDTYPE, #f ": needs a floating tensor, got i64; convert it with tn_to(x, TN_F32)")}
#define TN__NO_BOOL(f) TN__NO_BOOL_(f, NULL)
#define TN__NO_BOOL_K(f, k) TN__NO_BOOL_(f, &(args_t){k})
#define TN__NO_BOOL_(f, arguments)                                    \
    {.in = {{1, {2}}}, .args = (arguments), .kind = {TN__ARG_MASK}, \
     TN__FAILS(TN_EDTYPE, #f ": does not support bool; convert it with tn_to(x, TN_I64)")}
#define TN__NO_BOOL_PAIR(f)                                                    \
    {.in = {{1, {4}}, {1, {4}}}, .kind = {TN__ARG_MASK, TN__ARG_MASK}, \
     TN__FAILS(TN_EDTYPE, #f ": does not support bool; convert it with tn_to(x, TN_I64)")}
#define TN__NOT_WHOLE(f)                                                     \
    {.in = {{1, {2}}}, .args = &(args_t){0.5}, .kind = {TN__ARG_INT}, \
     TN__FAILS(TN_EDTYPE, #f ": x is i64 and 0.5 is not a whole number; convert x with tn_to(x, TN_F32)")}
#define TN__NO_BROADCAST(f)         \
    {.in = {{1, {3}}, {1, {4}}}, \
     TN__FAILS(TN_ESHAPE, #f ": shapes [3] and [4] do not broadcast: dim -1 is 3 in one and 4 in the other")}
/* clang-format on */

#endif

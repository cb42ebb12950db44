/* op.h — what an op is: the struct that the library's own rooms and a user's ops fill in alike.
 *
 * The forward fills results that exist already and cannot fail; every mistake of the caller is found by infer, before
 * anything is allocated. Both see plain tensors: read them with tn_data, tn_shape_of and the like, or let a skeleton
 * (tn_op_map) deal with strides, number types and threads.
 *
 * The backward comes in two kinds. `backward` may use kernels and is the fast one. `backward_ops` is made of ops, so
 * that it can be recorded itself: that gives gradients of gradients. One of them is enough; without backward_ops,
 * asking for create_graph is an error; without either, recording the op is. */
#ifndef TENON_AUTOGRAD_OP_H
#define TENON_AUTOGRAD_OP_H

#include "../core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_op tn_op;

/* What infer decides for each result. */
typedef struct {
    tn_dtype dtype;
    tn_shape shape;
} tn_result;

/* One call of one op. */
typedef struct {
    const tn_op      *op;
    const void       *args;
    int               nin, nout;
    tn_tensor *const *in;     /* NULL where an optional input is absent */
    tn_result        *result; /* infer fills these ...                  */
    tn_tensor       **out;    /* ... and forward these                  */
} tn_ctx;

/* One backward step. A gradient may have any shape that broadcasts from in_shape: it is summed down to it, and
 * converted to the input's number type, by the engine. Leave gx[i] NULL for a gradient that is zero. */
typedef struct {
    const tn_op      *op;
    const void       *args;
    int               nin, nout;
    tn_tensor *const *in;       /* the saved inputs, NULL where not saved      */
    tn_tensor *const *out;      /* the saved results                           */
    tn_tensor *const *gy;       /* the results' gradients; NULL where none came, but never for an op of one result */
    const tn_shape   *in_shape; /* of every input, saved or not                */
    const tn_dtype   *in_dtype;
    const bool       *need;   /* whose gradient is wanted                    */
    tn_tensor       **gx;     /* to be filled where needed                   */
    void             *engine; /* the library's own                           */
} tn_back;

#define TN_ANY (-1)
#define TN_SAVE_IN(i) (1u << (i))         /* i < 15; bit 15: every input, however many */
#define TN_SAVE_OUT(i) (1u << (16 + (i))) /* i < 16 */

/* How an op takes its inputs under autocast (tn_autocast_begin). Conversions are recorded, and only f32 and bf16 are
 * converted: other number types stay, and so do the inputs of an in-place call. */
enum {
    TN_UNCHOSEN, /* as TN_AS_IS, but the library's own ops all choose: a test refuses this value */
    TN_AS_IS,    /* as they come, which may be some in f32 and some in bf16 */
    TN_JOIN,     /* all as f32 if one of them is: ops that want one number type */
    TN_WIDE,     /* as f32: sums of many terms, and functions that make small errors large */
};
/* The first n inputs as bf16, unless one of them is f64: factors and terms of products. The rest (masks) as they come.
 * TN_NARROW(TN_ANY): all. */
#define TN_NARROW(n) (0x100 + ((n) < 0 ? 0xff : (n)))

struct tn_op {
    size_t      size;     /* sizeof(tn_op): tells the library which fields exist */
    const char *name;     /* lives as long as any tape that holds the op */
    int         inputs;   /* TN_ANY: as many as the call has */
    int         outputs;  /* 0 means 1 */
    unsigned    optional; /* bit i: input i may be NULL */
    unsigned    saves;    /* what backward reads */
    /* If set, narrows saves for a call: need[i] tells whose gradient is wanted. */
    unsigned (*saves_for)(const bool *need);
    size_t args_size; /* the tape copies this many bytes of args ... */
    /* ... and, if args hold pointers, what they point to. Return false (raise) if out of memory. */
    bool (*args_copy)(void *to, const void *from);
    void (*args_free)(void *args);
    bool (*infer)(tn_ctx *c);
    void (*forward)(tn_ctx *c);
    void (*backward)(tn_back *b);
    void (*backward_ops)(tn_back *b);
    /* An op made of ops: called instead of allocation and forward, after infer; fills c->out. Needs no backward. */
    void (*compose)(tn_ctx *c);
    bool inplace;  /* its name with "_" exists: result 0 may be written over input 0, element by element */
    bool view;     /* the result shares input 0's memory; the library's own, see autograd/ops/permute.c */
    int  autocast; /* TN_AS_IS, TN_JOIN, TN_WIDE or TN_NARROW(n) */
};

/* Calls an op: results belong to the open scope; on error all out[] are NULL. */
TN_API tn_status tn_op_call(const tn_op *op, int nin, tn_tensor *const *in, int nout, tn_tensor **out,
                            const void *args);
/* The common case: one result, inputs listed in place: tn_apply(&op, x, y), tn_apply_args(&op, &args, x, y). */
TN_API tn_tensor *tn_op_apply(const tn_op *op, const void *args, int nin, tn_tensor *const *in);
/* result 0 written over in[0]; returns in[0]. */
TN_API tn_tensor *tn_op_apply_(const tn_op *op, const void *args, int nin, tn_tensor *const *in);

#ifndef __cplusplus
#define TN_COUNT_(...) ((int)(sizeof((tn_tensor *[]){__VA_ARGS__}) / sizeof(tn_tensor *)))
#define tn_apply(op, ...) tn_apply_args(op, NULL, __VA_ARGS__)
#define tn_apply_args(op, args, ...) tn_op_apply(op, args, TN_COUNT_(__VA_ARGS__), (tn_tensor *[]){__VA_ARGS__})
#define tn_apply_args_(op, args, ...) tn_op_apply_(op, args, TN_COUNT_(__VA_ARGS__), (tn_tensor *[]){__VA_ARGS__})
#endif
#define TN_ARG(c, field) (((const args_t *)(c)->args)->field) /* with `args_t` the room's own struct */

/* For infer: result `i` is like input `k`; the usual case is tn_infer_like(c, 0, 0). */
TN_API bool tn_infer_like(tn_ctx *c, int i, int k);
/* For infer: says "op: ..." and returns false. */
TN_API bool tn_infer_fail(const tn_ctx *c, tn_status code, const char *fmt, ...) TN_PRINTF(3, 4);

/* y = kernel(x) element by element, for user ops: strides, broadcasting and threads are dealt with. The kernel gets n
 * contiguous elements in f64 if one operand is f64, else in f32; only integers (not bool) arrive as int64_t. Some
 * operand must be floating; inputs may be NULL. */
typedef void (*tn_map_kernel)(int64_t n, void *const *y, const void *const *x, const void *args);
TN_API void tn_op_map(tn_map_kernel f32, tn_map_kernel f64, int ny, tn_tensor *const *y, int nx, tn_tensor *const *x,
                      const void *args);

/* The library's ops, for tests and tools. */
TN_API int          tn_op_count(void);
TN_API const tn_op *tn_op_at(int i);

#ifdef __cplusplus
}
#endif
#endif

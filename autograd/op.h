/* op.h — the definition of an op: the struct that the library's ops and custom ops fill in.
 *
 * The forward fills results that are already allocated, and cannot fail; infer finds every mistake of the caller before
 * anything is allocated. Both receive plain tensors: read them with tn_data and tn_shape_of, or let a skeleton
 * (tn_op_map) handle strides, dtypes and threads.
 *
 * The backward comes in two kinds. `backward` may use kernels and is the fast one. `backward_ops` is made of ops, so
 * that it can itself be recorded: this gives gradients of gradients. One of them is enough; without backward_ops,
 * create_graph is an error; without either, recording the op is an error. */
#ifndef TENON_AUTOGRAD_OP_H
#define TENON_AUTOGRAD_OP_H

#include "../core/core.h"

TN_C_BEGIN_

typedef struct tn_op tn_op;

/* The dtype and shape of a result, set by infer. */
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

/* One backward step. A gradient may have any shape that broadcasts from in_shape: the engine sums it to in_shape and
 * converts it to the input's dtype. Leave gx[i] NULL for a gradient that is zero. */
typedef struct {
    const tn_op      *op;
    const void       *args;
    int               nin, nout;
    tn_tensor *const *in;       /* the saved inputs, NULL where not saved      */
    tn_tensor *const *out;      /* the saved results                           */
    tn_tensor *const *gy;       /* the results' gradients; NULL: none, which never happens to an op of one result */
    const tn_shape   *in_shape; /* of every input, saved or not                */
    const tn_dtype   *in_dtype;
    const bool       *need;   /* inputs whose gradient is needed             */
    tn_tensor       **gx;     /* fill these where needed                     */
    void             *engine; /* private to the library                      */
} tn_back;

#define TN_ANY (-1)
#define TN_SAVE_IN(i) (1u << (i))         /* i < 15; bit 15: all inputs */
#define TN_SAVE_OUT(i) (1u << (16 + (i))) /* i < 16 */

/* How an op takes its inputs under autocast (tn_autocast_begin). Conversions are recorded. Only f32 and bf16 are
 * converted; other dtypes are unchanged, as are all inputs of an in-place call. */
enum {
    TN_UNCHOSEN, /* acts as TN_AS_IS; the library's own ops all choose another value, and a test checks that */
    TN_AS_IS,    /* unchanged: some inputs may be f32 and some bf16 */
    TN_JOIN,     /* all as f32 if one of them is: for ops that need one dtype */
    TN_WIDE,     /* as f32: for results that are sums of many terms, and functions that magnify small errors */
};
/* The first n inputs as bf16, unless one of them is f64: for factors and terms of products. The other inputs (masks)
 * are unchanged. TN_NARROW(TN_ANY): all inputs. */
#define TN_NARROW(n) (0x100 + ((n) < 0 ? 0xff : (n)))

struct tn_op {
    size_t      size;     /* sizeof(tn_op): tells the library which fields exist */
    const char *name;     /* must be valid as long as any tape that holds the op */
    int         inputs;   /* number of inputs; TN_ANY: any number */
    int         outputs;  /* number of results; 0: one */
    unsigned    optional; /* bit i: input i may be NULL */
    unsigned    saves;    /* tensors that backward reads: TN_SAVE_IN, TN_SAVE_OUT */
    /* If set, returns the saves of one call: need[i] is true if the gradient of input i is needed. */
    unsigned (*saves_for)(const bool *need);
    size_t args_size; /* number of bytes of args that the tape copies */
    /* If args hold pointers: copies the data that they point to. Return false (raise) if out of memory. */
    bool (*args_copy)(void *to, const void *from);
    void (*args_free)(void *args);
    bool (*infer)(tn_ctx *c);
    void (*forward)(tn_ctx *c);
    void (*backward)(tn_back *b);
    void (*backward_ops)(tn_back *b);
    /* For an op made of ops: called after infer, instead of allocation and forward; fills c->out. Needs no backward. */
    void (*compose)(tn_ctx *c);
    bool inplace;  /* the form with "_" exists: result 0 may overwrite input 0, element by element */
    bool view;     /* the result shares input 0's memory; only for the library, see autograd/ops/permute.c */
    int  autocast; /* TN_AS_IS, TN_JOIN, TN_WIDE or TN_NARROW(n) */
};

/* Calls an op: results belong to the open scope; on error all out[] are NULL. */
TN_API tn_status tn_op_call(const tn_op *op, int nin, tn_tensor *const *in, int nout, tn_tensor **out,
                            const void *args);
/* The common case: one result, inputs listed in place: tn_apply(&op, x, y), tn_apply_args(&op, &args, x, y). */
TN_API tn_tensor *tn_op_apply(const tn_op *op, const void *args, int nin, tn_tensor *const *in);
/* Writes result 0 over in[0] and returns in[0]. */
TN_API tn_tensor *tn_op_apply_(const tn_op *op, const void *args, int nin, tn_tensor *const *in);

#ifndef __cplusplus
#define TN_COUNT_(...) ((int)(sizeof((tn_tensor *[]){__VA_ARGS__}) / sizeof(tn_tensor *)))
#define tn_apply(op, ...) tn_apply_args(op, NULL, __VA_ARGS__)
#define tn_apply_args(op, args, ...) tn_op_apply(op, args, TN_COUNT_(__VA_ARGS__), (tn_tensor *[]){__VA_ARGS__})
#define tn_apply_args_(op, args, ...) tn_op_apply_(op, args, TN_COUNT_(__VA_ARGS__), (tn_tensor *[]){__VA_ARGS__})
#endif
#define TN_ARG(c, field) (((const args_t *)(c)->args)->field) /* args_t: the op's own struct */

/* For infer: gives result i the dtype and shape of input k; the usual call is tn_infer_like(c, 0, 0). */
TN_API bool tn_infer_like(tn_ctx *c, int i, int k);
/* For infer: raises "op: ..." and returns false. */
TN_API bool tn_infer_fail(const tn_ctx *c, tn_status code, const char *fmt, ...) TN_PRINTF(3, 4);

/* y = kernel(x) element by element, for custom ops: handles strides, broadcasting and threads. The kernel receives n
 * contiguous elements of each operand, in f64 if one operand is f64, else in f32; only integers (not bool) arrive as
 * int64_t. At least one operand must be floating; inputs may be NULL. */
typedef void (*tn_map_kernel)(int64_t n, void *const *y, const void *const *x, const void *args);
TN_API void tn_op_map(tn_map_kernel f32, tn_map_kernel f64, int ny, tn_tensor *const *y, int nx, tn_tensor *const *x,
                      const void *args);

/* The library's ops, for tests and tools. */
TN_API int          tn_op_count(void);
TN_API const tn_op *tn_op_at(int i);

TN_C_END_
#endif

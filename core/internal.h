/* internal.h — what core/ and autograd/ share and users do not see: the structs, the thread's state, layouts, memory
 * and the skeletons that every kernel runs under. Not installed. */
#ifndef TENON_CORE_INTERNAL_H
#define TENON_CORE_INTERNAL_H

#include "core/core.h"
#include "core/kernels/rows.h"
#include <stdatomic.h>

/* ---- the thread's state ------------------------------------------------------------------------------------------ */

enum { TN_PATH_MAX = 64 };
typedef struct {
    tn_status     error;    /* first, as every call reads it */
    bool          no_grad;  /* nothing is recorded           */
    bool          autocast; /* products are computed in bf16 */
    uint64_t      skipped;  /* calls refused since the error */
    tn_tensor   **stack;    /* the scope stack: one reference each */
    size_t        top, capacity;
    const char   *path[TN_PATH_MAX];
    int           path_depth; /* may exceed TN_PATH_MAX: the rest is counted, not named */
    int           threads;    /* tn_set_threads, 0: default */
    int           serial;     /* > 0: parallel loops stay on this thread */
    int64_t       shrink;    /* for tests: grains are divided by it, so that small tensors are shared out too; 0: off */
    tn_generator *generator; /* in use; NULL: own */
    tn_generator  own;
    uint64_t      id;         /* of this thread, 0 until asked for */
    struct tn__object *casts; /* autocast's copies of weights: they go with its scope */
} tn__thread;
extern _Thread_local tn__thread tn__self;

uint64_t tn__thread_id(void);
void     tn__thread_touch(void); /* has the thread's memory freed when it ends */

/* At the head of every call that the standing error must stop: counts the call as skipped. */
static inline bool tn__blocked(void)
{
    if (__builtin_expect(tn__self.error == TN_OK, 1)) return false;
    tn__self.skipped++;
    return true;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* 64-byte aligned, from the thread's cache or the allocator; the size is told again when it is given back. tn__mem_get
 * raises TN_ENOMEM. tn__mem_try does not (for code that can do without). */
void *tn__mem_get(size_t bytes);
void *tn__mem_zeroed(size_t bytes);
void *tn__mem_try(size_t bytes);
void  tn__mem_put(void *p, size_t bytes);
/* Operands of so many bytes in all are not found in a cache by who reads them next. Larger than most third caches; what
 * systems say of theirs is often the sum of all that the machine has. */
static inline bool tn__past_caches(int64_t bytes) { return bytes > (int64_t)64 << 20; }
/* Grows *p from old to bytes, keeping its contents; false (raised) leaves it as it was. */
bool  tn__mem_grow(void **p, size_t old_bytes, size_t bytes);
char *tn__strdup(const char *s); /* freed by tn__strfree */
void  tn__strfree(char *s);
void  tn__count_tensor(int by);
void  tn__cache_free(void); /* at the thread's end */

/* a + b, a * b; false if it would wrap or is negative */
static inline bool    tn__add_i64(int64_t a, int64_t b, int64_t *r) { return !__builtin_add_overflow(a, b, r); }
static inline bool    tn__mul_i64(int64_t a, int64_t b, int64_t *r) { return !__builtin_mul_overflow(a, b, r); }
static inline int64_t tn__min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tn__max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- layouts: shape, strides and offset, without data ------------------------------------------------------------ */

typedef struct {
    tn_shape shape;
    int64_t  stride[TN_MAX_DIMS]; /* in elements; 0 repeats */
    int64_t  offset;
} tn__layout;

/* Checks a shape from outside: dims not negative, at most 8, bytes within int64. Raises with op's name. */
bool       tn__shape_check(const char *op, tn_dtype dt, tn_shape s);
tn__layout tn__layout_of_shape(tn_shape s); /* contiguous, offset 0 */
bool       tn__layout_contiguous(const tn__layout *l);
/* A dim from outside, made non-negative; raises "op: dim 2 is out of range for a 2-d tensor". */
bool tn__wrap_dim(const char *op, int *dim, int ndim);
/* Each dim wrapped, no dim twice; n = 0 becomes all dims. Sorted. */
bool tn__wrap_dims(const char *op, tn_dims *dims, int ndim);
/* The shape that a and b broadcast to; raises "op: [2, 3] and [4] do not broadcast: dim ...". */
bool tn__broadcast(const char *op, tn_shape a, tn_shape b, tn_shape *to);
bool tn__broadcastable(tn_shape from, tn_shape to); /* from expands to to; raises nothing */
/* l seen as a tensor of shape to: new and size-1 dims get stride 0. The caller has checked. */
tn__layout tn__layout_expand(const tn__layout *l, tn_shape to);
tn__layout tn__layout_insert(tn__layout l, int at); /* with one more dim, of size 1, before dim `at` (0 … n) */
/* Are several elements one number in memory (an expanded dim, overlapping windows)? Exact for what views can make. */
bool tn__layout_repeats(const tn__layout *l);
/* The strides that show l's elements in order under another shape of as many elements; false if none exist. */
bool tn__layout_reshape(const tn__layout *l, tn_shape to, tn__layout *r);

/* ---- views (core/tensor/view.c): what each shows of x, as a layout; raise with op's name; y is not x -------------------- */

enum { TN__ALL_DIMS = 2147483647 }; /* TN_ALL of ops.h */
/* Puts the size that is meant by a -1 into *to, and checks that both have as many elements. */
bool tn__view_shape(const char *op, tn_shape from, tn_shape *to);
bool tn__view_flatten(const char *op, tn_shape x, int first, int last, tn_shape *to);
bool tn__view_squeeze(const char *op, tn_shape x, int dim, tn_shape *to);
bool tn__view_unsqueeze(const char *op, tn_shape x, int dim, tn_shape *to);
bool tn__view_permute(const char *op, const tn__layout *x, tn_dims order, tn__layout *y);
bool tn__view_transpose(const char *op, const tn__layout *x, int dim0, int dim1, tn__layout *y);
bool tn__view_expand(const char *op, const tn__layout *x, tn_shape to, tn__layout *y);
bool tn__view_slice(const char *op, const tn__layout *x, int dim, int64_t start, int64_t end, int64_t step,
                    tn__layout *y);
bool tn__view_narrow(const char *op, const tn__layout *x, int dim, int64_t start, int64_t length, tn__layout *y);
bool tn__view_select(const char *op, const tn__layout *x, int dim, int64_t index, tn__layout *y);
bool tn__view_diagonal(const char *op, const tn__layout *x, int64_t offset, int dim0, int dim1, tn__layout *y);
bool tn__view_unfold(const char *op, const tn__layout *x, int dim, int64_t size, int64_t step, tn__layout *y);

/* ---- storage and tensors ----------------------------------------------------------------------------------------- */

typedef struct {
    atomic_int            refs;
    _Atomic(uint32_t)     version; /* bumped by every write after creation */
    _Atomic(uint32_t)     taped;   /* the version after the last write that the tape recorded */
    _Atomic(uint32_t)     seen;    /* the matrix in it that was last multiplied by few rows (packed.c) */
    _Atomic(const char *) writer;  /* who wrote last, for messages */
    size_t                bytes;
    void                 *data;
    union {
        void (*release)(void *data, void *user); /* borrowed memory's owner */
        struct tn__packed *packed;               /* of memory that is not borrowed: its matrices, packed */
    };
    void *user;
    bool  borrowed;
} tn__storage;

/* What core holds for autograd without knowing it: anything with a count and a way to end. */
typedef struct tn__object {
    atomic_int refs;
    void (*end)(struct tn__object *);
} tn__object;
static inline void tn__object_drop(tn__object *o)
{
    if (o && atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) == 1) o->end(o);
}

struct tn_tensor {
    atomic_int   refs;
    tn_dtype     dtype;
    bool         leaf;   /* gradients are wanted: collected in grad */
    uint8_t      output; /* which of its node's results it is */
    uint32_t     seen;   /* the storage's version when made, or last changed through this handle */
    tn__storage *storage;
    tn__object  *node; /* the tape's record of the op that made it, NULL for leaves and constants */
    tn_tensor   *grad;
    tn_tensor   *rows; /* which rows grad has, i64 and rising, the others being zero; NULL: all */
    tn__object  *hooks;
    char        *name;
    tn__layout   l;
};

/* A new tensor in the open scope: contiguous, contents undefined. Raises. NULL while an error stands. */
tn_tensor *tn__new(tn_dtype dt, tn_shape s);
/* A new handle on t's storage under layout l; no node, not a leaf. */
tn_tensor *tn__alias(const tn_tensor *t, const tn__layout *l);
/* The same two, but owned by the caller (drop them with tn_drop), in no scope. */
tn_tensor *tn__new_owned(tn_dtype dt, tn_shape s);
tn_tensor *tn__alias_owned(const tn_tensor *t, const tn__layout *l);
/* Gives an owned reference to the open scope; on failure drops it and returns NULL. */
tn_tensor *tn__scoped(tn_tensor *t);
/* Are these still rows of leaf? Raises if not: a hook may have made another tensor of it. */
bool tn__rows_fit(const tn_tensor *leaf, const tn_tensor *grad, const tn_tensor *rows);
/* A gradient of leaf that is kept as rows becomes a dense one. */
bool tn__rows_spread(const tn_tensor *leaf, tn_tensor **grad, tn_tensor **rows);
void tn__written(tn_tensor *t, const char *who); /* bumps the version */

/* tn__new for a dtype and a shape from outside, which are checked; who is named in the message. */
tn_tensor *tn__make(const char *who, tn_dtype dt, tn_shape s);
bool       tn__given(const char *who, const char *what, const tn_tensor *t); /* false and raised: "who: what is NULL" */
/* Can dt hold v (cut towards zero for an integer type)? If not, raises with what v is called: "value", "low". */
bool tn__fits(const char *who, const char *what, tn_dtype dt, double v);
/* May the elements be written in place? Not if t is NULL, or shows an element twice; or, outside no-grad, if it is a
 * leaf or on the tape. Raises. */
bool tn__writable(const char *who, const tn_tensor *t);

static inline size_t tn__dtype_bytes(tn_dtype dt)
{
    static const uint8_t size[] = {
        [TN_F32] = 4, [TN_F64] = 8, [TN_BF16] = 2, [TN_I64] = 8, [TN_I32] = 4, [TN_U8] = 1, [TN_BOOL] = 1};
    return size[dt];
}
static inline void *tn__ptr(const tn_tensor *t) /* the first element */
{
    return (char *)t->storage->data + t->l.offset * (int64_t)tn__dtype_bytes(t->dtype);
}
static inline bool tn__is_float(tn_dtype dt) { return dt <= TN_BF16; }
/* A view that lives on the caller's stack and owns nothing: for the skeletons alone, never for an op or a scope. */
static inline tn_tensor tn__glance(const tn_tensor *t, const tn__layout *l)
{
    return (tn_tensor){.dtype = t->dtype, .storage = t->storage, .l = *l};
}

/* ---- the skeletons ------------------------------------------------------------------------------------------------ *
 * A kernel sees contiguous elements of one number type and cannot fail; strides, broadcasting, number types and
 * threads are dealt with here, once. Kernels exist for f32, f64 and (where integers make sense) i64:
 *   - if any operand is floating, the kernel runs in f64 when one operand is f64, else in f32; floating and bool
 *     operands arrive in that type, integer operands arrive as int64_t;
 *   - otherwise all operands arrive as int64_t.
 * Results are converted back the same way (bool: not equal to 0). */

typedef void (*tn__kernel)(int64_t n, void *const *y, const void *const *x, const void *args);
typedef struct {
    tn__kernel f32, f64, i64;
} tn__kernel_set;
#define TN_REALS(k) ((tn__kernel_set){k##_f32, k##_f64, NULL})
#define TN_NUMBERS(k) ((tn__kernel_set){k##_f32, k##_f64, k##_i64})

enum { TN_MAX_OPERANDS = 12, TN_MAX_STATE = 256 };
typedef struct {
    int        n;
    tn_tensor *t[TN_MAX_OPERANDS];
} tn__list;
#define TN_LIST(...) ((tn__list){(int)(sizeof((tn_tensor *[]){__VA_ARGS__}) / sizeof(tn_tensor *)), {__VA_ARGS__}})

/* y = k(x), element by element; x broadcasts to y. y may be one of x (the same handle); otherwise they do not overlap.
 * Allocates nothing. */
void tn__map(tn__kernel_set k, tn__list y, tn__list x, const void *args);
/* The same for kernels that must know where they are: `at` is the place of their first element in the order of y's
 * indices. */
typedef void (*tn__kernel_at)(int64_t at, int64_t n, void *const *y, const void *const *x, const void *args);
typedef struct {
    tn__kernel_at f32, f64, i64;
} tn__kernel_set_at;
#define TN_REALS_AT(k) ((tn__kernel_set_at){k##_f32, k##_f64, NULL})
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
    size_t state; /* bytes, at most TN_MAX_STATE */
    void (*init)(void *state, const void *args);
    void (*step)(int64_t n, int64_t at, void *state, const void *x, const void *args); /* x[at … at+n) of the row */
    void (*merge)(void *state, const void *later, const void *args);
    void (*finish)(int64_t n, const void *state, void *const *y, const void *args); /* n: the row's full length */
    bool lanes; /* the state is a tn__lanes, and step adds to it: many rows side by side are then added line by line */
} tn__reducer;
typedef struct {
    const tn__reducer *f32, *f64, *i64;
} tn__reducers;
#define TN_REDUCER(k, s, lanes)                                                                 \
    {                                                                                           \
        sizeof(k##_state_##s), k##_init_##s, k##_step_##s, k##_merge_##s, k##_finish_##s, lanes \
    }
#define TN_REDUCER_PARTS(k, s) TN_REDUCER(k, s, false)
#define TN_REDUCER_OF_LANES(k, s) TN_REDUCER(k, s, true)
/* y[i] has as many elements as x without dims, and is contiguous. Reducing over nothing at all (an empty dims list) is
 * not meant: dims are wrapped and sorted, as tn__wrap_dims leaves them. May raise TN_ENOMEM. */
void tn__reduce(tn__reducers k, tn_dims dims, tn__list y, tn_tensor *x, const void *args);

/* By a mask (core/skeletons/compact.c), of any number type: how many elements are not 0 once it is expanded to shape s; y, 1-d
 * and that long, = the elements of x where it is not 0, both expanded to s; and back: y = x's elements there, 0
 * elsewhere. */
int64_t tn__count(const tn_tensor *mask, tn_shape s);
void    tn__compact(tn_tensor *y, const tn_tensor *x, const tn_tensor *mask, tn_shape s);
void    tn__spread(tn_tensor *y, tn_tensor *x, const tn_tensor *mask);

/* By index (core/skeletons/index.c); index is i64 or i32. tn__index_check raises "op: what 7 at [1, 2] is outside 0 … 4". */
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

/* y = x with conversion; x broadcasts to y. */
void tn__copy(tn_tensor *y, const tn_tensor *x);
void tn__fill(tn_tensor *y, double value);

/* ---- threads (core/base/parallel.c, core/base/cpus.c) ------------------------------------------------------------------- */

/* Inside a body of tn_parallel_for: which of the workers, 0 … tn_threads()-1, runs it. 0 outside. */
int tn__worker(void);

/* What limits the number of threads, 0 where nothing is known; use is the least of them and at least 1. */
typedef struct {
    int use, allowed, cores, quota, asked; /* affinity mask, physical cores, cgroup rounded up, OMP_NUM_THREADS */
} tn__cpu_limits;
tn__cpu_limits tn__cpus(void);
int            tn__cgroup_cpus(const char *root); /* root: "" or, in a test, a folder that stands for / */
int            tn__cores(const char *root, const unsigned char *allowed, int cpus); /* allowed: one bit a CPU */
int            tn__env_threads(const char *text);

/* n elements from one dtype to another, strides in elements. */
void    tn__convert(int64_t n, void *y, tn_dtype ydt, int64_t ys, const void *x, tn_dtype xdt, int64_t xs);
double  tn__load(const void *p, tn_dtype dt);
int64_t tn__load_i64(const void *p, tn_dtype dt);
void    tn__store(void *p, tn_dtype dt, double v);
void    tn__store_i64(void *p, tn_dtype dt, int64_t v);

static inline float tn__bf16_to_f32(uint16_t h)
{
    union {
        uint32_t u;
        float    f;
    } b = {.u = (uint32_t)h << 16};
    return b.f;
}
static inline uint16_t tn__f32_to_bf16(float f) /* to nearest, ties to even; NaN stays NaN */
{
    union {
        float    f;
        uint32_t u;
    } b = {.f = f};
    if ((b.u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(b.u >> 16 | 0x40u);
    return (uint16_t)((b.u + 0x7fffu + (b.u >> 16 & 1u)) >> 16);
}

/* What printf("%f") and ("%e") wrote, with a point for whatever the locale has there (core/tensor/print.c). */
void tn__plain_point(char *s);

/* ---- GEMM (core/products/gemm.c) ------------------------------------------------------------------------------------------ */

/* c[i] = alpha · a[i] b[i] + beta · c[i] for each matrix of a batch: c [..., m, n], a [..., m, k], b [..., k, n]; the
 * leading dims of a and b broadcast to c's; any strides; one floating dtype. Each element's terms are added in an
 * order that depends on k, the dtype and the instruction set alone. beta = 0 does not read c. May raise TN_ENOMEM. */
void tn__gemm(double alpha, const tn_tensor *a, const tn_tensor *b, double beta, tn_tensor *c);
/* The same with something done to the sums while they are in the cache: v = a b + bias, pre = v, c = act(v) + more.
 * bias and more broadcast to c, pre is like c; each may be NULL. */
typedef enum { TN_ACT_NONE, TN_ACT_RELU, TN_ACT_GELU, TN_ACT_GELU_TANH } tn__act;
typedef struct {
    const tn_tensor *bias, *more;
    tn_tensor       *pre;
    tn__act          act;
} tn__epilogue;
void tn__gemm_with(const tn_tensor *a, const tn_tensor *b, tn_tensor *c, const tn__epilogue *e);
/* c = a b, where a term whose a is 0 counts as 0 even if its b is NaN or infinite: zeros of a select (core/
 * gemm_select.c). With finite b the same bits as tn__gemm. c is contiguous. */
void tn__gemm_finite(const tn_tensor *a, const tn_tensor *b, tn_tensor *c);

/* ---- attention (core/products/attention.c) -------------------------------------------------------------------------------- */

/* All tensors have the same leading dims, any strides; q, k, v, y and their gradients one floating type. */
typedef struct {
    const tn_tensor *q, *k, *v; /* [..., T, D], [..., S, D], [..., S, E] */
    const tn_tensor *mask[2];   /* [..., T, S], bool (true: blocked) or floating (added); or NULL */
    bool             causal;    /* query t sees the keys 0 … past + t */
    int64_t          past;
    double           scale;
    tn__dropped      drop; /* of element i of [..., T, S], where i is what draw has for its place */
    tn__layout       draw;
    const tn_tensor *y;    /* [..., T, E] */
    const tn_tensor *stat; /* [..., T, 2], f64 or f32: a row's largest score and 1 / Σ; dense */

    /* for the derivative; gradients that are not wanted are NULL */
    const tn_tensor *gy, *gq, *gk, *gv, *gs; /* gs [..., T, S]: of the scores, in the type of stat; zeros come in */

    const void *kernels; /* NULL: those in use; tests name another tn__kernel_table */
} tn__attention_call;

/* May raise TN_ENOMEM; then nothing has been written. */
void tn__attend(const tn__attention_call *c);      /* writes y and stat */
void tn__attend_back(const tn__attention_call *c); /* reads them, writes the gradients */

/* ---- convolutions (core/products/convolve.c) ------------------------------------------------------------------------------ */

/* Windows that slide over the rows [0] and columns [1] of images. */
typedef struct {
    int64_t size[2], stride[2], padding[2], dilation[2], groups;
} tn__windows;
/* x [N, C, H, W] and w [O, C/groups, size] make y [N, O, OH, OW], of one floating dtype and any strides; what is
 * written is contiguous. The caller has checked that all fit. May raise TN_ENOMEM.
 * y = x convolved with w + beta · y, where beta is 0 or 1; and, for the gradients, what a y contributes to x and w. */
void tn__convolve(const tn__windows *g, const tn_tensor *x, const tn_tensor *w, double beta, tn_tensor *y);
void tn__convolve_input(const tn__windows *g, tn_tensor *x, const tn_tensor *w, const tn_tensor *y);
void tn__convolve_weight(const tn__windows *g, const tn_tensor *x, tn_tensor *w, const tn_tensor *y);

/* ---- random numbers (core/tensor/generator.c) --------------------------------------------------------------------------- */

/* The four words of block `position` of generator `seed`; those of several blocks, one after the other. */
void tn__philox(uint64_t seed, uint64_t position, uint32_t out[4]);
void tn__philox_blocks(uint64_t seed, uint64_t position, int64_t blocks, uint32_t *out);
void tn__philox_words(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]); /* the bare function */

static inline uint64_t tn__word64(const uint32_t *w) { return (uint64_t)w[1] << 32 | w[0]; }
static inline double   tn__unit(uint64_t x) { return (double)(x >> 11) * 0x1p-53; } /* [0, 1) */
/* 0 … n-1 without bias, from `first`, which is the 64 bits at `word` (0 or 2) of block `position`; n at least 1. */
uint64_t tn__below(uint64_t seed, uint64_t position, int word, uint64_t first, uint64_t n);

#endif

/* core.h — tensors without gradients, and what every layer stands on: errors, scopes, memory, random numbers,
 * threads. The files that hold tensors (npy, safetensors) and JSON are in core/files.h, included at the end.
 *
 * Three rules, said once:
 *   1. The first error of a thread stands until tn_clear_error(). While it stands, calls return NULL (or the error's
 *      status) at once and change nothing; so check where it matters, not after each call.
 *   2. A tensor belongs to the scope it was made in and goes with it, unless it is returned outward or kept.
 *   3. NULL goes in and comes out: tn_drop(NULL), tn_item(NULL) and the like are harmless. */
#ifndef TENON_CORE_CORE_H
#define TENON_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(_WIN32) || !defined(__GNUC__)
#define TN_API
#define TN_PRINTF(fmt, args)
#define TN_CHECKED
#else
#define TN_API __attribute__((visibility("default")))
#define TN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define TN_CHECKED __attribute__((warn_unused_result))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

/* "0.1.0"; and one line on what is in use and why: version, compiler, instruction set, threads. */
TN_API const char *tn_version(void);
TN_API const char *tn_build_info(void);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

typedef enum {
    TN_OK = 0,
    TN_ENOMEM,       /* out of memory, or over the limit that the program set              */
    TN_EINVAL,       /* an argument that makes no sense                                    */
    TN_ESHAPE,       /* shapes that do not fit                                             */
    TN_EDTYPE,       /* number types that do not fit                                       */
    TN_EINDEX,       /* an index, a dim or a name that is not there                        */
    TN_ESTATE,       /* not now: a changed saved tensor, a spent tape, another thread's    */
    TN_EIO,          /* the operating system said no                                       */
    TN_EFORMAT,      /* a file or a text that breaks its format                            */
    TN_EUNSUPPORTED, /* valid, but Tenon does not do it                                    */
    TN_ENUMERIC      /* NaN or Inf where anomaly mode looks for it                         */
} tn_status;

TN_API tn_status   tn_error(void);         /* the standing error, or TN_OK                                        */
TN_API const char *tn_error_message(void); /* its text, "" if none; says how many later calls were skipped        */
TN_API void        tn_clear_error(void);
TN_API const char *tn_status_name(tn_status s); /* "TN_ESHAPE" */

/* Raises an error: keeps it if it is the first, calls the hook, returns the standing status. The text gets the module
 * path in front. User code may raise too. */
TN_API tn_status tn_raise(tn_status code, const char *fmt, ...) TN_PRINTF(2, 3);
TN_API void      tn_error_break(void); /* every first error passes here: a place for a breakpoint */

typedef void (*tn_error_hook)(tn_status code, const char *message, void *user);
TN_API void tn_on_error(tn_error_hook hook, void *user); /* of this thread; NULL ends it; for logs, it cannot veto */

/* Code that must run although an error stands, or that may fail without harm, goes between push and pop: push puts the
 * standing error aside, pop brings it back and forgets what happened between. */
typedef struct {
    tn_status code;
    uint64_t  skipped;
    char      text[1000];
} tn_error_state;
TN_API void tn_error_push(tn_error_state *aside);
TN_API void tn_error_pop(const tn_error_state *aside);

/* ---- number types and shapes ------------------------------------------------------------------------------------- */

typedef enum { TN_F32 = 0, TN_F64, TN_BF16, TN_I64, TN_I32, TN_U8, TN_BOOL } tn_dtype;
TN_API const char *tn_dtype_name(tn_dtype dt); /* "f32" */
TN_API size_t      tn_dtype_size(tn_dtype dt); /* bytes */
TN_API bool        tn_dtype_is_float(tn_dtype dt);

#define TN_MAX_DIMS 8
typedef struct {
    int     n;
    int64_t d[TN_MAX_DIMS];
} tn_shape; /* a plain value; also an index, and a list of strides */

/* A list of dims, e.g. for a reduction; negative dims count from the end. n = 0: all of them. */
typedef struct {
    int n;
    int d[TN_MAX_DIMS];
} tn_dims;

#ifndef __cplusplus
#define TN_SHAPE(...) \
    ((tn_shape){(int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}}) /* TN_SHAPE(2, 3) */
#define TN_DIMS(...) ((tn_dims){(int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), {__VA_ARGS__}})
#define TN_SCALAR ((tn_shape){0, {0}})
#endif

/* How calls with keywords are made, tn_linear_new(.in = 3, .out = 4): the macro fills a struct, whose defaults stand in
 * front of what the caller writes, so that what is written is meant, 0 too. A value without its name is refused by the
 * compiler (by clang if it comes first, by gcc anywhere): each such struct begins with `int zero_`, ends with `int end_`
 * and is TN_KEYWORDS_ONLY. In C++20 it is filled as tn_linear_config{.in = 3}; TN_IS gives its members the same
 * defaults there. Who fills one by hand in C begins with its defaults, which is what TN_X_DEFAULTS of tn_x_config (and TN_X_ARGS_DEFAULTS of tn_x_args) lists:
 *     tn_dropout_config c = {TN_DROPOUT_DEFAULTS};
 *     tn_bert_config    b = TN_WITH(tn_bert_config, TN_BERT_DEFAULTS, .vocab = 8000, .layers = 6);
 * Where there is no such list, all defaults are 0. */
#if defined(__cplusplus)
#define TN_KEYWORDS_ONLY
#define TN_IS(value) = value
#if defined(__clang__) /* says that C knows no such defaults, for a function that returns a struct with them */
#define TN_RETURNS_CONFIG_(...)                                                                      \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wreturn-type-c-linkage\"") \
        __VA_ARGS__ _Pragma("clang diagnostic pop")
#else
#define TN_RETURNS_CONFIG_(...) __VA_ARGS__
#endif
#else
#define TN_IS(value)
#define TN_RETURNS_CONFIG_(...) __VA_ARGS__
#if defined(__clang__)
#define TN_KEYWORDS_ONLY
#define TN_NAMED_ .end_ = 0 /* what follows the last member is excess, */
#define TN_CALL_(...)                                                                                    \
    __extension__({                                                                                      \
        _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Winitializer-overrides\"") \
            _Pragma("clang diagnostic error \"-Wexcess-initializers\"") __VA_ARGS__;                     \
        _Pragma("clang diagnostic pop")                                                                  \
    })
#else
#define TN_KEYWORDS_ONLY __attribute__((designated_init))
#define TN_NAMED_ .zero_ = 0 /* and what follows the first has no name */
#define TN_CALL_(...)                                                                        \
    __extension__({                                                                          \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"") \
            _Pragma("GCC diagnostic error \"-Wdesignated-init\"") __VA_ARGS__;               \
        _Pragma("GCC diagnostic pop")                                                        \
    })
#endif

/* For headers: what the macros are made of. The struct with defaults (TN_NO_DEFAULTS_: all are 0), then 1 to 4 members
 * that need no name and must be there, then those with names. `.zero_ = 0` comes behind, as `...` must not be empty. */
#define TN_NO_DEFAULTS_ .zero_ = 0
#define TN_WITH(type, defaults, ...) TN_CALL_((type){defaults, TN_NAMED_, __VA_ARGS__})
#define TN_NEW_(create, type, defaults, ...) TN_CALL_(create((type){defaults, TN_NAMED_, __VA_ARGS__}))
#define TN_ARGS1_(type, defaults, a_, a, ...) ((type){defaults, .a_ = (a), TN_NAMED_, __VA_ARGS__})
#define TN_ARGS2_(type, defaults, a_, b_, a, b, ...) ((type){defaults, .a_ = (a), .b_ = (b), TN_NAMED_, __VA_ARGS__})
#define TN_ARGS3_(type, defaults, a_, b_, c_, a, b, c, ...) \
    ((type){defaults, .a_ = (a), .b_ = (b), .c_ = (c), TN_NAMED_, __VA_ARGS__})
#define TN_ARGS4_(type, defaults, a_, b_, c_, d_, a, b, c, d, ...) \
    ((type){defaults, .a_ = (a), .b_ = (b), .c_ = (c), .d_ = (d), TN_NAMED_, __VA_ARGS__})
#endif

TN_API int64_t tn_shape_numel(tn_shape s); /* -1 if it does not fit in 63 bits */
TN_API bool    tn_shape_equal(tn_shape a, tn_shape b);
/* "[2, 3]" into buf; returns buf. 192 bytes always suffice. */
TN_API const char *tn_shape_text(tn_shape s, char *buf, size_t size);

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

typedef struct tn_tensor tn_tensor; /* opaque, reference-counted, owned by the open scope */

/* The modes of a thread, all off at first. Scopes put all of them back, and the workers of a parallel loop have those
 * of its caller. */
typedef struct {
    bool no_grad;  /* nothing is recorded           */
    bool autocast; /* products are computed in bf16 */
} tn_mode;

/* A watermark, not an allocation. Ending a scope drops every tensor made since it began, on this thread; it closes
 * scopes inside it that were left open, and restores the modes and the module path of its beginning. */
typedef struct {
    size_t  mark;
    int     path;
    tn_mode mode;
} tn_scope;
TN_API tn_scope   tn_scope_begin(void);
TN_API tn_scope   tn_no_grad_begin(void); /* a scope in which nothing is recorded */
TN_API void       tn_scope_end(tn_scope s);
TN_API tn_tensor *tn_scope_return(tn_scope s, tn_tensor *t); /* ends s; t lives on in the scope around it */
TN_API void       tn_scope_return_list(tn_scope s, int n, tn_tensor *const *t); /* the same for several */
TN_API tn_tensor *tn_keep(tn_tensor *t);                                        /* t outlives its scope ... */
TN_API void       tn_drop(tn_tensor *t);                                        /* ... until it is dropped  */
/* A tensor that is gone (its scope ended, or it was dropped too often) is an error where it is used, dropped or kept, until
 * 64 more have gone on this thread; later that may pass unnoticed. */
TN_API tn_tensor *tn_take(tn_tensor *t); /* tn_keep, but the scope forgets t: it lives until it is dropped, no longer */
TN_API bool       tn_grad_enabled(void);

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* Without "_of" the result is f32 (arange, randint, permutation: i64). */
TN_API tn_tensor *tn_empty_of(tn_dtype dt, tn_shape s); /* contents undefined */
TN_API tn_tensor *tn_zeros_of(tn_dtype dt, tn_shape s);
TN_API tn_tensor *tn_ones_of(tn_dtype dt, tn_shape s);
TN_API tn_tensor *tn_full_of(tn_dtype dt, tn_shape s, double value);
TN_API tn_tensor *tn_empty(tn_shape s);
TN_API tn_tensor *tn_zeros(tn_shape s);
TN_API tn_tensor *tn_ones(tn_shape s);
TN_API tn_tensor *tn_full(tn_shape s, double value);
TN_API tn_tensor *tn_empty_like(const tn_tensor *t); /* same dtype and shape */
TN_API tn_tensor *tn_zeros_like(const tn_tensor *t);
TN_API tn_tensor *tn_ones_like(const tn_tensor *t);
TN_API tn_tensor *tn_full_like(const tn_tensor *t, double value);
/* A 0-d f64: beside a tensor of any floating type it takes that type, so tn_pow(x, tn_scalar(3)) keeps x's. */
TN_API tn_tensor *tn_scalar(double value);
TN_API tn_tensor *tn_scalar_of(tn_dtype dt, double value);
TN_API tn_tensor *tn_arange(int64_t n);                                             /* 0 … n-1 */
TN_API tn_tensor *tn_arange_of(tn_dtype dt, double start, double end, double step); /* start, start+step, … < end */
TN_API tn_tensor *tn_linspace(double start, double end, int64_t steps);             /* both ends included */
TN_API tn_tensor *tn_linspace_of(tn_dtype dt, double start, double end, int64_t steps);
TN_API tn_tensor *tn_eye(int64_t rows, int64_t cols);
TN_API tn_tensor *tn_eye_of(tn_dtype dt, int64_t rows, int64_t cols);

/* From host memory: copied; or borrowed, in which case data must stay valid until release is called (NULL: never). When
 * tn_borrow fails, release is not called: the memory is still the caller's. */
TN_API tn_tensor *tn_from_data(tn_dtype dt, tn_shape s, const void *data);
TN_API tn_tensor *tn_borrow(tn_dtype dt, tn_shape s, void *data, void (*release)(void *data, void *user), void *user);

/* Readers work while an error stands. A position is counted in the order of the indices, whatever the strides; the
 * entries of an index may be negative, which counts from the end. */
TN_API tn_dtype  tn_dtype_of(const tn_tensor *t);
TN_API tn_shape  tn_shape_of(const tn_tensor *t);
TN_API int       tn_ndim(const tn_tensor *t);
TN_API int64_t   tn_size(const tn_tensor *t, int dim); /* -1 and an error for a dim that is not there */
TN_API int64_t   tn_numel(const tn_tensor *t);
TN_API tn_shape  tn_strides_of(const tn_tensor *t); /* in elements */
TN_API bool      tn_is_contiguous(const tn_tensor *t);
TN_API bool      tn_shares_memory(const tn_tensor *a, const tn_tensor *b); /* the same storage */
TN_API double    tn_item(const tn_tensor *t);                              /* the only element; NaN for NULL */
TN_API double    tn_get(const tn_tensor *t, int64_t position);
TN_API double    tn_get_at(const tn_tensor *t, tn_shape index);
TN_API int64_t   tn_get_i64(const tn_tensor *t, int64_t position);                                  /* exact for i64 */
TN_API tn_status tn_copy_out(const tn_tensor *t, tn_dtype dt, void *data, size_t bytes) TN_CHECKED; /* contiguous */

/* Writers bump the version that the tape checks. tn_data_mut does so at the call: write before the next op. */
TN_API const void *tn_data(const tn_tensor *t); /* the first element; mind tn_strides_of */
TN_API void       *tn_data_mut(tn_tensor *t);
TN_API tn_status   tn_set(tn_tensor *t, int64_t position, double value);
TN_API tn_status   tn_set_at(tn_tensor *t, tn_shape index, double value);
TN_API tn_status   tn_set_i64(tn_tensor *t, int64_t position, int64_t value);
TN_API tn_status   tn_copy_in(tn_tensor *t, tn_dtype dt, const void *data, size_t bytes); /* contiguous, into any t */
TN_API tn_status   tn_copy_from(tn_tensor *t, const tn_tensor *src); /* src broadcasts and converts; off the tape */
TN_API tn_status   tn_fill(tn_tensor *t, double value);
/* t becomes another tensor in place: whoever holds t sees src's memory, number type and shape from now on. Neither may
 * be the result of a recorded op. t keeps its name, its place as a leaf and its gradient. */
TN_API tn_status tn_adopt(tn_tensor *t, const tn_tensor *src);

/* A name for messages ("encoder.weight"); copied. */
TN_API tn_tensor  *tn_set_name(tn_tensor *t, const char *name);
TN_API const char *tn_name_of(const tn_tensor *t); /* "" if none */

/* As PyTorch shows it: rounded to 4 digits, columns aligned, summarised beyond 1000 elements. */
TN_API void tn_print(FILE *to, const tn_tensor *t);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* All memory of the library comes through here. alloc returns memory aligned to 64 bytes or NULL. To be set while
 * nothing of the library is alive; NULL brings back the default. */
typedef struct {
    void *(*alloc)(void *user, size_t bytes);
    void (*free)(void *user, void *p, size_t bytes);
    void *user;
} tn_allocator;
TN_API tn_status tn_set_allocator(const tn_allocator *a);

typedef struct {
    size_t   live;    /* bytes in use, of the process                      */
    size_t   peak;    /* the most that live has been since tn_reset_peak() */
    size_t   cached;  /* bytes kept for the next step by this thread       */
    size_t   limit;   /* 0: none                                           */
    uint64_t mallocs; /* calls of the allocator, ever                      */
    int64_t  tensors; /* tensor handles alive                              */
} tn_memory;
TN_API tn_memory tn_memory_now(void);
TN_API void      tn_reset_peak(void);
TN_API void      tn_set_memory_limit(size_t bytes); /* for live memory; 0: none. Beyond it: TN_ENOMEM */
TN_API void      tn_set_cache_limit(size_t bytes);  /* for each thread's cache; SIZE_MAX: none, 0: keep nothing */
TN_API void      tn_trim(void);                     /* gives this thread's cache back */

/* The same memory for structs of your own: zeroed, aligned to 64 bytes; NULL and TN_ENOMEM if there is none. The size
 * is told again when it is given back. Works while an error stands. */
TN_API void *tn_mem_get(size_t bytes) TN_CHECKED;
TN_API void  tn_mem_put(void *p, size_t bytes);

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* Philox 4x32-10, counter-based: a generator is a value that can be copied, saved and set back. What is drawn depends
 * on seed and position alone, for any number of threads. Each thread starts with its own generator of seed 0. */
typedef struct {
    uint64_t seed;
    uint64_t position; /* in blocks of four 32-bit words */
} tn_generator;
TN_API void          tn_seed(uint64_t seed);                      /* the current generator starts anew */
TN_API tn_generator *tn_current_generator(void);                  /* of this thread */
TN_API tn_generator *tn_use_generator(tn_generator *g);           /* returns the one before; NULL: the thread's own */
TN_API uint32_t      tn_random_u32(tn_generator *g);              /* plain numbers, one block a call */
TN_API double        tn_random_double(tn_generator *g);           /* [0, 1) */
TN_API int64_t       tn_random_below(tn_generator *g, int64_t n); /* 0 … n-1 without bias; 0 for n < 1 */

TN_API tn_tensor *tn_uniform(tn_shape s, double low, double high); /* [low, high) */
TN_API tn_tensor *tn_uniform_of(tn_dtype dt, tn_shape s, double low, double high);
TN_API tn_tensor *tn_normal(tn_shape s, double mean, double std);
TN_API tn_tensor *tn_normal_of(tn_dtype dt, tn_shape s, double mean, double std);
TN_API tn_tensor *tn_randint(tn_shape s, int64_t low, int64_t high); /* low … high-1 */
TN_API tn_tensor *tn_bernoulli(tn_shape s, double p);                /* 1 with probability p */
TN_API tn_tensor *tn_bernoulli_of(tn_dtype dt, tn_shape s, double p);
TN_API tn_tensor *tn_permutation(int64_t n);

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* How many threads a call of this thread may use. The default: the least of the affinity mask, the cgroup's quota, the
 * physical cores and OMP_NUM_THREADS. The results are the same bits for any number. 0 brings back the default. */
TN_API void tn_set_threads(int n);
TN_API int  tn_threads(void);

/* body(from, to, user) for the blocks [0, grain), [grain, 2·grain) … of [0, n); blocks may run at the same time. A body
 * may use the library, in the modes of the caller: what it makes goes with its block unless it is kept, and its error
 * comes back to the caller. One that draws random numbers uses a generator of its own for each block: that of the
 * thread which happens to run it would make the numbers depend on how many there are. */
TN_API void tn_parallel_for(int64_t n, int64_t grain, void (*body)(int64_t from, int64_t to, void *user), void *user);

/* The step of the module path: messages raised until the pop begin with it. tn_enter and tn_leave (nn) do this. */
TN_API void tn_path_push(const char *name); /* name must live until the pop */
TN_API void tn_path_pop(void);

#ifdef __cplusplus
} /* extern "C" */

template <class... T> inline tn_shape TN_SHAPE(T... d) { return tn_shape{(int)sizeof...(d), {(int64_t)d...}}; }
template <class... T> inline tn_dims  TN_DIMS(T... d) { return tn_dims{(int)sizeof...(d), {(int)d...}}; }
static const tn_shape                 TN_SCALAR = {0, {0}};
#endif

#include "files.h"
#endif

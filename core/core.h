/* core.h — tensors without gradients, and the services used by every layer: errors, scopes, memory, random numbers,
 * threads. Files of tensors (npy, safetensors) and JSON are in core/files.h, included at the end.
 *
 * Three rules:
 *   1. The first error of a thread is kept until tn_clear_error(). While it is set, calls return NULL (or the error's
 *      status) at once and change nothing; so check where you act on a result, not after each call.
 *   2. A tensor belongs to the scope it was made in and is freed with it, unless it is returned outward or kept.
 *   3. NULL is accepted and passed through: tn_drop(NULL) and tn_item(NULL) are harmless. */
#ifndef TENON_CORE_CORE_H
#define TENON_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "keywords.h"

/* On Windows a program that links tenon.dll may define TENON_DLL: its calls are then a jump shorter. */
#if defined(_WIN32) && defined(TN__EXPORTS)
#define TN_API __declspec(dllexport)
#elif defined(_WIN32) && defined(TENON_DLL)
#define TN_API __declspec(dllimport)
#elif !defined(_WIN32) && defined(__GNUC__)
#define TN_API __attribute__((visibility("default")))
#else
#define TN_API
#endif
#if defined(__MINGW32__) && !defined(__clang__)
#define TN_PRINTF(fmt, args) __attribute__((format(gnu_printf, fmt, args)))
#elif defined(__GNUC__)
#define TN_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define TN_PRINTF(fmt, args)
#endif
#ifdef __GNUC__
#define TN_CHECKED __attribute__((warn_unused_result))
#else
#define TN_CHECKED
#endif

/* Around the functions of a header: in C++ they have C's linkage. */
#ifdef __cplusplus
#define TN_C_BEGIN_ extern "C" {
#define TN_C_END_ }
#else
#define TN_C_BEGIN_
#define TN_C_END_
#endif

TN_C_BEGIN_

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 2
#define TN_VERSION_PATCH 0

/* "0.2.0"; one line on the compiler, instructions and threads in use, with reasons; true if bf16 products are fast. */
TN_API const char *tn_version(void);
TN_API const char *tn_build_info(void);
TN_API bool        tn_has_bf16(void);

/* ---- errors ------------------------------------------------------------------------------------------------------ */

typedef enum {
    TN_OK = 0,
    TN_ENOMEM,       /* out of memory, or over the limit that the program set */
    TN_EINVAL,       /* invalid argument */
    TN_ESHAPE,       /* shapes that do not fit */
    TN_EDTYPE,       /* dtypes that do not fit */
    TN_EINDEX,       /* an index, dim or name that does not exist */
    TN_ESTATE,       /* not allowed now: a saved tensor was changed, the tape is consumed or another thread's */
    TN_EIO,          /* the operating system reported a failure */
    TN_EFORMAT,      /* a file or a text that violates its format */
    TN_EUNSUPPORTED, /* valid, but not supported by Tenon */
    TN_ENUMERIC      /* NaN or Inf found by anomaly mode */
} tn_status;

TN_API tn_status   tn_error(void);         /* the error that is set, or TN_OK */
TN_API const char *tn_error_message(void); /* its text, "" if none, with the number of calls skipped since */
TN_API void        tn_clear_error(void);
TN_API const char *tn_status_name(tn_status s); /* "TN_ESHAPE" */

/* Raises an error: keeps it if it is the first, calls the hook, returns the status that is set. The text is prefixed
 * with the module path. User code may raise errors too. */
TN_API tn_status tn_raise(tn_status code, const char *fmt, ...) TN_PRINTF(2, 3);
#ifndef __cplusplus
/* The same, as the value of a function that fails: `return tn_raise_null(TN_EINVAL, "…");` */
#define tn_raise_false(...) ((void)tn_raise(__VA_ARGS__), false)
#define tn_raise_null(...) ((void)tn_raise(__VA_ARGS__), NULL)
#endif
/* The first line of a call that an error must stop: true, and the call counts as skipped, if an error is set. */
TN_API bool tn_blocked(void);
TN_API void tn_error_break(void); /* called for every first error: set a breakpoint here */

typedef void (*tn_error_hook)(tn_status code, const char *message, void *user);
TN_API void tn_on_error(tn_error_hook hook, void *user); /* of this thread; NULL removes it; for logs, it cannot veto */

/* Code that must run while an error is set, or that may fail without harm, goes between push and pop: push sets the
 * error aside, pop restores it and discards any error raised in between. */
typedef struct {
    tn_status code;
    uint64_t  skipped;
    char      text[1000];
} tn_error_state;
TN_API void tn_error_push(tn_error_state *aside);
TN_API void tn_error_pop(const tn_error_state *aside);

/* One step of the module path: messages raised until the pop start with it. tn_enter and tn_leave (nn) do this. */
TN_API void tn_path_push(const char *name); /* borrows name until the pop */
TN_API void tn_path_pop(void);

/* ---- dtypes and shapes ------------------------------------------------------------------------------------------- */

typedef enum { TN_F32 = 0, TN_F64, TN_BF16, TN_I64, TN_I32, TN_U8, TN_BOOL } tn_dtype;
TN_API const char *tn_dtype_name(tn_dtype dt); /* "f32" */
TN_API size_t      tn_dtype_size(tn_dtype dt); /* bytes */
TN_API bool        tn_dtype_is_float(tn_dtype dt);

/* Plain values: d[0] … d[n-1]. Write TN_SHAPE(2, 3) and TN_DIMS(1), or name the members: .n = 2, .d = {2, 3}. {2, 3},
 * {1} and {0} do not compile. */
#define TN_MAX_DIMS 8
typedef struct {
    TN_LIST_N_(n);
    int64_t d[TN_MAX_DIMS];
} TN_KEYWORDS_ONLY tn_shape; /* also used for an index and for strides */

/* A list of dims, e.g. for a reduction; negative dims count from the end. n = 0: all of them. */
typedef struct {
    TN_LIST_N_(n);
    int d[TN_MAX_DIMS];
} TN_KEYWORDS_ONLY tn_dims;

#ifndef __cplusplus
#define TN_SHAPE(...) ((tn_shape){.n = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .d = {__VA_ARGS__}})
#define TN_DIMS(...) ((tn_dims){.n = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), .d = {__VA_ARGS__}})
#define TN_SCALAR ((tn_shape){.n = 0})
#endif

TN_API int64_t tn_shape_numel(tn_shape s); /* -1 if it does not fit in 63 bits */
TN_API bool    tn_shape_equal(tn_shape a, tn_shape b);
/* "[2, 3]" into buf; returns buf. 192 bytes always suffice. */
TN_API const char *tn_shape_text(tn_shape s, char *buf, size_t size);

/* ---- scopes ------------------------------------------------------------------------------------------------------ */

typedef struct tn_tensor tn_tensor; /* opaque, reference-counted, owned by the open scope */

/* The modes of a thread, all off by default. Scopes restore them; the workers of a parallel loop use their caller's.
 * Without padding, because they are compared as bytes. */
typedef struct {
    bool     no_grad;  /* nothing is recorded */
    bool     trains;   /* without recording: a backward pass, or a forward that it repeats */
    bool     autocast; /* products are computed in bf16 */
    bool     blank;    /* uniform and normal draw nothing and leave contents undefined: a file is read next */
    uint16_t replay;   /* 1: ops are recorded by tn_replay_record; 2: and one infers its shapes */
    uint16_t look;     /* number of tn_look_begin observers of modules; 0 in the workers of a loop */
    const struct tn__replaced *replaced; /* tensors that ops use in place of others, from tn_functional_begin */
    const void                *module;   /* the module whose forward runs, or NULL */
} tn_mode;

/* A watermark, not an allocation. Ending a scope drops every tensor made on this thread since its start; it also ends
 * inner scopes left open, and restores the modes and the module path of its start. */
typedef struct {
    size_t  mark;
    int     path;
    tn_mode mode;
} tn_scope;
TN_API tn_scope   tn_scope_begin(void);
TN_API tn_scope   tn_no_grad_begin(void); /* a scope in which nothing is recorded */
TN_API void       tn_scope_end(tn_scope s);
TN_API tn_tensor *tn_scope_return(tn_scope s, tn_tensor *t); /* ends s; the outer scope then owns t */
TN_API void       tn_scope_return_list(tn_scope s, int n, tn_tensor *const *t); /* returns n tensors */
TN_API bool       tn_grad_enabled(void);
/* Owners of a tensor; the last one frees it. See also tn_adopt: t gets the elements of another tensor, not its owners.
 * Using a freed tensor (scope ended, dropped too often) is an error, until 64 more have been freed. */
TN_API tn_tensor *tn_keep(tn_tensor *t); /* adds the program as an owner: t outlives its scope, until tn_drop */
TN_API tn_tensor *tn_take(tn_tensor *t); /* makes the program the owner, not the scope: t lives until tn_drop */
TN_API void       tn_drop(tn_tensor *t); /* ends one ownership of tn_keep or tn_take */

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
TN_API tn_tensor *tn_empty_like(const tn_tensor *t); /* dtype and shape of t */
TN_API tn_tensor *tn_zeros_like(const tn_tensor *t);
TN_API tn_tensor *tn_ones_like(const tn_tensor *t);
TN_API tn_tensor *tn_full_like(const tn_tensor *t, double value);
/* A 0-d f64. Combined with a tensor of any floating dtype it takes that dtype: tn_pow(x, tn_scalar(3)) keeps x's. */
TN_API tn_tensor *tn_scalar(double value);
TN_API tn_tensor *tn_scalar_of(tn_dtype dt, double value);
TN_API tn_tensor *tn_arange(int64_t n);                                             /* 0 … n-1 */
TN_API tn_tensor *tn_arange_of(tn_dtype dt, double start, double end, double step); /* start, start+step, … < end */
TN_API tn_tensor *tn_linspace(double start, double end, int64_t steps);             /* both ends included */
TN_API tn_tensor *tn_linspace_of(tn_dtype dt, double start, double end, int64_t steps);
TN_API tn_tensor *tn_eye(int64_t rows, int64_t cols);
TN_API tn_tensor *tn_eye_of(tn_dtype dt, int64_t rows, int64_t cols);

/* From host memory. tn_from_data copies it. tn_borrow borrows it: data must stay valid until release is called (NULL:
 * never). If tn_borrow fails, it does not call release: the caller still owns the memory. */
TN_API tn_tensor *tn_from_data(tn_dtype dt, tn_shape s, const void *data);
TN_API tn_tensor *tn_borrow(tn_dtype dt, tn_shape s, void *data, void (*release)(void *data, void *user), void *user);

/* Readers work while an error is set. A position counts elements in the order of the indices, whatever the strides;
 * negative entries of an index count from the end. */
TN_API tn_dtype  tn_dtype_of(const tn_tensor *t);
TN_API tn_shape  tn_shape_of(const tn_tensor *t);
TN_API int       tn_ndim(const tn_tensor *t);
TN_API int64_t   tn_size(const tn_tensor *t, int dim); /* -1 and an error if t has no such dim */
TN_API int64_t   tn_numel(const tn_tensor *t);
TN_API tn_shape  tn_strides_of(const tn_tensor *t); /* in elements */
TN_API bool      tn_is_contiguous(const tn_tensor *t);
TN_API bool      tn_shares_memory(const tn_tensor *a, const tn_tensor *b); /* true if they share a storage */
TN_API double    tn_item(const tn_tensor *t);                              /* the only element; NaN for NULL */
TN_API double    tn_get(const tn_tensor *t, int64_t position);
TN_API double    tn_get_at(const tn_tensor *t, tn_shape index);
TN_API int64_t   tn_get_i64(const tn_tensor *t, int64_t position);                                  /* exact for i64 */
TN_API tn_status tn_copy_out(const tn_tensor *t, tn_dtype dt, void *data, size_t bytes) TN_CHECKED; /* contiguous */

/* Writers increment the version that the tape checks. tn_data_mut does so at the call: write before the next op. It
 * returns NULL and raises for a tensor that may not be written (an expanded tensor; a leaf or a tensor on the tape,
 * except under tn_no_grad_begin()), and while an error is set. */
TN_API const void *tn_data(const tn_tensor *t); /* the first element; see tn_strides_of */
TN_API void       *tn_data_mut(tn_tensor *t);
TN_API tn_status   tn_set(tn_tensor *t, int64_t position, double value);
TN_API tn_status   tn_set_at(tn_tensor *t, tn_shape index, double value);
TN_API tn_status   tn_set_i64(tn_tensor *t, int64_t position, int64_t value);
TN_API tn_status   tn_copy_in(tn_tensor *t, tn_dtype dt, const void *data, size_t bytes); /* contiguous, into any t */
TN_API tn_status   tn_copy_from(tn_tensor *t, const tn_tensor *src); /* src broadcasts and converts; off the tape */
TN_API tn_status   tn_fill(tn_tensor *t, double value);
/* Replaces t in place: every holder of t then sees src's memory, dtype and shape. Neither may be the result of a
 * recorded op. t keeps its name, its place as a leaf and its gradient. */
TN_API tn_status tn_adopt(tn_tensor *t, const tn_tensor *src);

/* Sets a name for messages ("encoder.weight"); copies it. */
TN_API tn_tensor  *tn_set_name(tn_tensor *t, const char *name);
TN_API const char *tn_name_of(const tn_tensor *t); /* "" if none */

/* Prints t as PyTorch does: rounded to 4 digits, columns aligned, summarised beyond 1000 elements. */
TN_API void tn_print(FILE *to, const tn_tensor *t);

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* Philox 4x32-10, counter-based: a generator is a value that can be copied, saved and restored. The numbers drawn
 * depend on seed and position alone, for any number of threads in a parallel loop.
 *
 * Each thread has its own generator. The main thread's (of the thread that loaded the library) starts with seed 0. The
 * seed of another thread is a hash of the last seed of the main thread's generator and of the number of threads whose
 * generator has been used since tn_seed set it:
 *     tn_seed(42); // in main, before the threads start: each thread draws other numbers
 *     tn_seed(43); // in a thread, as its first call: its own choice, whichever thread is first */
typedef struct {
    uint64_t seed;
    uint64_t position; /* in blocks of four 32-bit words */
} tn_generator;
TN_API void          tn_seed(uint64_t seed);                      /* restarts this thread's current generator */
TN_API tn_generator *tn_current_generator(void);                  /* of this thread */
TN_API tn_generator *tn_use_generator(tn_generator *g);           /* returns the one before; NULL: the thread's own */
TN_API uint32_t      tn_random_u32(tn_generator *g);              /* a plain number; uses one block per call */
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

TN_C_END_
#ifdef __cplusplus
template <class List, class Element, size_t N> inline List tn_listed_(const Element (&d)[N])
{
    List list = List();
    list.n = (int)N - 1;
    for (int i = 0; i < list.n; i++) list.d[i] = d[i];
    return list;
}
template <class... T> inline tn_shape TN_SHAPE(T... d) { return tn_listed_<tn_shape, int64_t>({(int64_t)d..., 0}); }
template <class... T> inline tn_dims  TN_DIMS(T... d) { return tn_listed_<tn_dims, int>({(int)d..., 0}); }
static const tn_shape                 TN_SCALAR = TN_SHAPE();
#endif

#include "files.h"
#include "gguf.h"
#include "q8.h"
#include "system.h"
#endif

/* module.h — what a module is: a struct that embeds tn_module first, registers its parameters and children as it
 * assigns them, and computes in a function of its own. Part of nn.h: include that. A module of your own:
 *
 *     typedef struct {
 *         tn_module  base;                                       // always first, always `base`
 *         tn_linear *up, *down;
 *     } mlp;
 *
 *     static tn_tensor *mlp_forward(mlp *m, tn_tensor *x)
 *     {
 *         if (!tn_ready(m)) return NULL;                         // how every forward opens
 *         tn_frame f = tn_enter(m);
 *         x = tn_gelu(tn_call(m->up, x));
 *         return tn_leave(f, tn_call(m->down, x));
 *     }
 *     TN_FORWARD(mlp);                                           // tn_call(m, x) runs mlp_forward
 *
 *     static mlp *mlp_new(int dim)
 *     {
 *         mlp *m = tn_module_new(mlp);
 *         if (!m) return NULL;
 *         m->up   = tn_child(m, "up",   tn_linear_new(.in = dim, .out = 4 * dim));
 *         m->down = tn_child(m, "down", tn_linear_new(.in = 4 * dim, .out = dim));
 *         return tn_built(m);
 *     }
 *
 * The parent owns its children, tn_free(root) frees them all. Where these calls take a module, any module's pointer
 * goes, and NULL, too: then they return NULL. A constructor that fails leaves nothing behind: no memory, and no draws
 * from the random generator. One thread may change a module, while no other uses it; many may run it. */
#ifndef TENON_NN_MODULE_H
#define TENON_NN_MODULE_H

#include "../autograd/autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_class tn_class;

typedef struct tn_module {
    struct tn__base *base; /* the library's own: what is registered, under which names */
    const tn_class  *kind;
    bool             training; /* true at first; tn_train and tn_eval set it */
} tn_module;

/* What all modules of one type share. TN_FORWARD and TN_MODULE make it; written out, it can do more. */
struct tn_class {
    size_t      size;                             /* sizeof(tn_class): tells the library which fields exist */
    const char *name;                             /* "Linear": how it is printed, and called in messages */
    size_t      bytes;                            /* of the module's struct */
    tn_tensor *(*forward)(void *m, tn_tensor *x); /* what tn_call runs, or NULL */
    void (*describe)(const void *m, char *text, size_t size); /* "in_features=1, ..." for tn_print_module */
    void (*copied)(void *m, const void *from);                /* after tn_copy: copies what only the class knows of */
    void (*freed)(void *m); /* before m is freed: frees what only the class knows of */
};

/* After the functions of type T, at file level: T_class, which tn_module_new(T) needs. With TN_FORWARD, tn_call runs
 * T_forward(T *m, tn_tensor *x); TN_MODULE is for modules whose forward has other arguments or results. */
#define TN_FORWARD(T)                                                                              \
    static inline tn_tensor *T##_virtual(void *m, tn_tensor *x) { return T##_forward((T *)m, x); } \
    TN_CLASS_(T, T##_virtual)
#define TN_MODULE(T) TN_CLASS_(T, NULL)
#define TN_CLASS_(T, forward)                                                                       \
    TN_STATIC_ASSERT_(offsetof(T, base) == 0, "the first member of a module is `tn_module base;`"); \
    static const tn_class T##_class = {sizeof(tn_class), #T, sizeof(T), forward, NULL, NULL, NULL}
#ifdef __cplusplus
#define TN_STATIC_ASSERT_ static_assert
#else
#define TN_STATIC_ASSERT_ _Static_assert
#endif

/* ---- building: what is assigned is registered ------------------------------------------------------------------- */

/* Names are PyTorch's: "weight"; and for lists "layers.0", as tn_name("layers.%d", i) makes them. */
TN_API void      *tn_module_create(const tn_class *kind); /* zeroed; every memory of it goes with tn_free */
TN_API void      *tn_module_built(void *m);               /* m if all went well; else frees it and returns NULL */
TN_API tn_tensor *tn_module_param(void *m, const char *name, tn_tensor *t);
TN_API tn_tensor *tn_module_weight(void *m, const char *name, tn_tensor *t);
TN_API tn_tensor *tn_module_buffer(void *m, const char *name, tn_tensor *t, bool saved);
TN_API tn_tensor *tn_module_buffer_rows(void *m, const char *name, tn_tensor *t);
TN_API void      *tn_module_child(void *m, const char *name, void *child);
TN_API void      *tn_module_share(void *m, const char *name, void *other);
TN_API tn_tensor *tn_module_tie(void *m, const char *name, tn_tensor *t);
TN_API tn_tensor *tn_module_tie_to(void *m, const char *name, const char *path);
TN_API void      *tn_module_array(void *m, int64_t n, size_t size);
TN_API void       tn_module_free(void *m);

/* A name put together as by printf, good until the eighth next call of this thread. */
TN_API const char *tn_name(const char *fmt, ...) TN_PRINTF(1, 2);

/* ---- running -------------------------------------------------------------------------------------------------- */

/* Every forward, whoever calls it, opens with `if (!tn_ready(m)) return NULL;` and `tn_frame f = tn_enter(m);`, and
 * ends with tn_leave. Behind the first, m is a whole module and no error stands, so that its members may be read;
 * results that go out by address it has set to NULL before. Between tn_enter and tn_leave stands a scope: what is made
 * inside goes unless the tape saved it, and messages begin with the module's path: "encoder.layers.3: ...". A forward
 * that fails has drawn nothing: with its end the random generator stands where it stood at its beginning. */
typedef struct {
    tn_scope      scope;
    tn_generator *generator; /* in use at the beginning, */
    tn_generator  began;     /* and where it stood       */
} tn_frame;
TN_API tn_frame   tn_module_enter(void *m);
TN_API tn_tensor *tn_leave(tn_frame f, tn_tensor *y); /* y lives on outside; NULL if an error stands */
TN_API void       tn_leave_list(tn_frame f, int n, tn_tensor **const *y);
TN_API bool tn_module_ready(const char *who, void *m); /* false: an error stands, or m is NULL or half built, raised */
TN_API tn_tensor *tn_module_call(void *m, tn_tensor *x);

/* Hooks around tn_call, in the order in which they came. What one returns replaces x or y; NULL leaves it as it is.
 * tn_remove_hooks removes all that were added with this user pointer. */
typedef tn_tensor *(*tn_before_hook)(tn_module *m, tn_tensor *x, void *user);
typedef tn_tensor *(*tn_after_hook)(tn_module *m, tn_tensor *x, tn_tensor *y, void *user);
TN_API tn_status tn_module_before(void *m, tn_before_hook hook, void *user);
TN_API tn_status tn_module_after(void *m, tn_after_hook hook, void *user);
TN_API void      tn_module_unhook(void *m, void *user);

/* ---- walking: for (tn_each p = tn_parameters(net); tn_next(&p);) printf("%s\n", p.name); ----------------------- */

enum { TN_NAME_BYTES = 256, TN_PATH_BYTES = 1024, TN_MAX_DEPTH = 48 }; /* a name, a path, modules within modules */

/* Which tensors, or else the modules. Each comes once, under its first name, unless TN_EACH_NAME is asked for. */
enum { TN_EACH_PARAMETER = 1, TN_EACH_BUFFER = 2, TN_EACH_SAVED = 4, TN_EACH_MODULE = 8, TN_EACH_NAME = 16 };

typedef struct {
    tn_tensor *tensor;                 /* NULL if modules were asked for */
    tn_module *module;                 /* the module, or the one that holds the tensor */
    bool       parameter, saved, rows; /* saved: it belongs to the state dict; rows: see tn_buffer_rows */
    char       name[TN_PATH_BYTES];    /* "layers.3.up.weight"; "" for the root */

    int      what_, depth_, nties_, length_; /* the library's own, from here on */
    uint64_t step_;
    struct {
        tn_module *m;
        int        at, length;
    } level_[TN_MAX_DEPTH];
    tn_tensor *tie_[8];
} tn_each;
TN_API tn_each tn_module_each(void *m, int what);
TN_API bool    tn_next(tn_each *e);

TN_API int64_t    tn_module_count(void *m, bool trainable);  /* elements of all parameters, or of those not frozen */
TN_API tn_module *tn_module_find(void *m, const char *path); /* "encoder.layers.3"; an error if not there */
TN_API tn_tensor *tn_module_find_tensor(void *m, const char *path); /* "encoder.layers.3.up.weight" */

/* ---- changing all of a module ------------------------------------------------------------------------------------ */

TN_API void      tn_module_train(void *m, bool on);
TN_API void      tn_module_freeze(void *m, bool on);
TN_API void      tn_module_zero_grad(void *m);
TN_API tn_status tn_module_to(void *m, tn_dtype dt); /* floating parameters, buffers and gradients, all or none */
/* For inference: the weights of products and tables become 8 bits, as llama.cpp's Q8_0 has them, a quarter of f32
 * (docs/quantisation.md). All or none; the rest is frozen, and m in eval mode. Call tn_to before it, if at all. */
TN_API tn_status tn_module_quantize(void *m);
TN_API void     *tn_module_copy(void *m);
TN_API void      tn_module_print(FILE *to, void *m);
TN_API void      tn_module_summary(FILE *to, void *m);

/* ---- containers -------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module base;
} tn_sequential, tn_module_list, tn_module_dict;
TN_API tn_sequential  *tn_sequential_new(void);  /* tn_call(net, x) calls one after the other */
TN_API tn_module_list *tn_module_list_new(void); /* children "0", "1", ... for your own forward to call */
TN_API tn_module_dict *tn_module_dict_new(void); /* children by name: tn_child(dict, "en", ...), tn_find(dict, "en") */
TN_API void           *tn_module_append(void *m, void *child); /* under the next number */
TN_API void           *tn_module_at(void *m, int64_t i);       /* negative: from the end */
TN_API int64_t         tn_module_length(void *m);

#ifdef __cplusplus
}
#endif

/* ---- the same with any module's pointer -------------------------------------------------------------------------- */

/* The sizeof lets the compiler refuse what is not a module; m is evaluated once. */
#define TN_ANY_MODULE_(m) ((void)sizeof((m)->base), (void *)(m))
#define TN_OF_MODULE_(type, defaults, m, ...) ((type){defaults, .module = TN_ANY_MODULE_(m), TN_NAMED_, __VA_ARGS__})
#ifdef __cplusplus
#define TN_SAME_(m, call) (static_cast<decltype(&*(m))>(call))
#else
#define TN_SAME_(m, call) ((__typeof__(m))(call))
#endif

#define tn_module_new(T) ((T *)tn_module_create(&T##_class))
#define tn_built(m) TN_SAME_(m, tn_module_built(TN_ANY_MODULE_(m)))

/* m->weight = tn_param(m, "weight", tn_normal(...)): gradients are collected; m owns it. NULL: there is none. */
#define tn_param(m, name, t) tn_module_param(TN_ANY_MODULE_(m), name, t)
/* The same for a matrix [out, in] that only tn_linear and tn_embedding read: tn_quantize may turn it. */
#define tn_weight(m, name, t) tn_module_weight(TN_ANY_MODULE_(m), name, t)
/* m->mean = tn_buffer(m, "running_mean", tn_zeros(...)): no parameter, but saved with them; or not saved. */
#define tn_buffer(m, name, t) tn_module_buffer(TN_ANY_MODULE_(m), name, t, true)
#define tn_buffer_unsaved(m, name, t) tn_module_buffer(TN_ANY_MODULE_(m), name, t, false)
/* Row i belongs to row i of the batch: ranks change those of their shards; see tn_replica_collect. */
#define tn_buffer_rows(m, name, t) tn_module_buffer_rows(TN_ANY_MODULE_(m), name, t)
/* m->up = tn_child(m, "up", tn_linear_new(...)): m owns it; if m is NULL or anything fails, the child is freed. */
#define tn_child(m, name, child) TN_SAME_(child, tn_module_child(TN_ANY_MODULE_(m), name, TN_ANY_MODULE_(child)))
/* A module that has an owner already, under a second name. It is freed when both owners are. */
#define tn_share(m, name, other) TN_SAME_(other, tn_module_share(TN_ANY_MODULE_(m), name, TN_ANY_MODULE_(other)))
/* A tensor that is registered elsewhere, under a second name: tn_tie_to(m, "head.weight", "words.weight"). Where the
 * name is taken, also inside a child, the tensor there and the members that point to it are replaced. tn_tie takes
 * the tensor itself; where that is reached through a child, m->words->weight, the child must not have failed. */
#define tn_tie(m, name, t) tn_module_tie(TN_ANY_MODULE_(m), name, t)
#define tn_tie_to(m, name, path) tn_module_tie_to(TN_ANY_MODULE_(m), name, path)
/* m->layers = tn_array(m, n, block *): n zeroed elements that go with m, and are copied with it. */
#define tn_array(m, n, type) ((type *)tn_module_array(TN_ANY_MODULE_(m), n, sizeof(type)))
#define tn_free(m) tn_module_free(TN_ANY_MODULE_(m))

#define tn_call(m, x) tn_module_call(TN_ANY_MODULE_(m), x)
#define tn_enter(m) tn_module_enter(TN_ANY_MODULE_(m))
/* For several results, by their addresses: tn_leave_n(f, &y, &h); they become NULL if an error stands. */
#ifdef __cplusplus
template <class... T> inline void tn_leave_n(tn_frame f, T... y)
{
    tn_tensor **const results[] = {y...};
    tn_leave_list(f, (int)sizeof...(y), results);
}
#else
#define tn_leave_n(f, ...)                                                                \
    tn_leave_list(f, (int)(sizeof((tn_tensor **[]){__VA_ARGS__}) / sizeof(tn_tensor **)), \
                  (tn_tensor * *[]){__VA_ARGS__})
#endif
#ifdef __clang_analyzer__ /* which cannot see into tn_module_ready */
#define tn_ready(m) ((m) && tn_module_ready(__func__, TN_ANY_MODULE_(m)))
#else
#define tn_ready(m) tn_module_ready(__func__, TN_ANY_MODULE_(m)) /* messages name the function that asks */
#endif
#define tn_before(m, hook, user) tn_module_before(TN_ANY_MODULE_(m), hook, user)
#define tn_after(m, hook, user) tn_module_after(TN_ANY_MODULE_(m), hook, user)
#define tn_remove_hooks(m, user) tn_module_unhook(TN_ANY_MODULE_(m), user)

#define tn_parameters(m) tn_module_each(TN_ANY_MODULE_(m), TN_EACH_PARAMETER)
#define tn_buffers(m) tn_module_each(TN_ANY_MODULE_(m), TN_EACH_BUFFER)
#define tn_modules(m) tn_module_each(TN_ANY_MODULE_(m), TN_EACH_MODULE)
#define tn_count(m) tn_module_count(TN_ANY_MODULE_(m), false)
#define tn_count_trainable(m) tn_module_count(TN_ANY_MODULE_(m), true)
#define tn_find(m, path) tn_module_find(TN_ANY_MODULE_(m), path)
#define tn_find_tensor(m, path) tn_module_find_tensor(TN_ANY_MODULE_(m), path)

#define tn_train(m, on) tn_module_train(TN_ANY_MODULE_(m), on)
#define tn_eval(m) tn_module_train(TN_ANY_MODULE_(m), false)
#define tn_freeze(m, on) tn_module_freeze(TN_ANY_MODULE_(m), on) /* frozen parameters collect no gradients */
#define tn_quantize(m) tn_module_quantize(TN_ANY_MODULE_(m))
#define tn_zero_grads(m) tn_module_zero_grad(TN_ANY_MODULE_(m))
/* A deep copy: every tensor and child anew, tied and shared ones tied and shared likewise. Members of the struct,
 * and of its tn_arrays, that pointed into the old tree point to their copies; all others are copied as they are. */
#define tn_copy(m) TN_SAME_(m, tn_module_copy(TN_ANY_MODULE_(m)))
#define tn_print_module(to, m) tn_module_print(to, TN_ANY_MODULE_(m)) /* as PyTorch prints it */
#define tn_summary(to, m) tn_module_summary(to, TN_ANY_MODULE_(m))    /* names, shapes, counts, bytes */

#define tn_append(m, child) TN_SAME_(child, tn_module_append(TN_ANY_MODULE_(m), TN_ANY_MODULE_(child)))
#define tn_at(m, i) tn_module_at(TN_ANY_MODULE_(m), i) /* block *b = tn_at(m->layers, 3) */
#define tn_length(m) tn_module_length(TN_ANY_MODULE_(m))

#endif

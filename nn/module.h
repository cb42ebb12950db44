/* module.h — the base of all modules. A module is a struct whose first member is a tn_module. Its constructor registers
 * parameters and children as it assigns them, and its forward function computes. Part of nn.h: include that. Example:
 *
 *     typedef struct {
 *         tn_module  base;                                       // always the first member, always called `base`
 *         tn_linear *up, *down;
 *     } mlp;
 *
 *     static tn_tensor *mlp_forward(mlp *m, tn_tensor *x)
 *     {
 *         if (!tn_ready(m)) return NULL;                         // every forward starts with these two lines
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
 * The parent owns its children; tn_free(root) frees them all. These calls accept a pointer to any type of module. They
 * also accept NULL, and then return NULL. A constructor that fails frees all its memory and restores the random
 * generator. A module may be changed by one thread while no other thread uses it; many threads may run it at once. */
#ifndef TENON_NN_MODULE_H
#define TENON_NN_MODULE_H

#include "../autograd/autograd.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_class tn_class;

typedef struct tn_module {
    struct tn__base *base; /* private: the registered parameters, buffers and children with their names */
    const tn_class  *kind;
    bool             training; /* initially true; tn_train and tn_eval set it */
} tn_module;

/* Shared by all modules of one type. TN_FORWARD and TN_MODULE define it; define it by hand to set more members. */
struct tn_class {
    size_t      size;                             /* sizeof(tn_class), by which the library checks the version */
    const char *name;                             /* "Linear": name of the type in printed modules and messages */
    size_t      bytes;                            /* size of the module's struct */
    tn_tensor *(*forward)(void *m, tn_tensor *x); /* run by tn_call; NULL: tn_call is not supported */
    void (*describe)(const void *m, char *text, size_t size); /* "in_features=1, ..." for tn_print_module */
    void (*copied)(void *m, const void *from); /* called at the end of tn_copy: copies memory of the type's own */
    void (*freed)(void *m);                    /* called before m is freed: frees memory of the type's own */
};

/* Define T_class, which tn_module_new(T) needs; at file level, after the functions of type T. With TN_FORWARD, tn_call
 * runs T_forward(T *m, tn_tensor *x). TN_MODULE is for forwards with other arguments or results. */
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

/* ---- building: register each member as it is assigned ----------------------------------------------------------- */

/* Names are PyTorch's: "weight"; in lists "layers.0", which tn_name("layers.%d", i) returns. */
TN_API void      *tn_module_create(const tn_class *kind); /* zeroed; tn_free frees it with all it owns */
TN_API void      *tn_module_built(void *m);               /* returns m; after an error frees m and returns NULL */
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

/* Formats a name as printf does. The string is valid until this thread has called tn_name eight more times. */
TN_API const char *tn_name(const char *fmt, ...) TN_PRINTF(1, 2);

/* ---- running -------------------------------------------------------------------------------------------------- */

/* Every forward starts with `if (!tn_ready(m)) return NULL;` and `tn_frame f = tn_enter(m);`, and ends with tn_leave.
 * After tn_ready returned true, m is completely built and no error is set, so its members may be read. A forward that
 * returns results through pointers sets them to NULL before tn_ready. tn_enter opens a scope and tn_leave ends it:
 * tensors created in between are freed unless the tape saved them, and messages start with the module's path:
 * "encoder.layers.3: ...". After a forward that failed, the random generator has the state it had before. */
typedef struct {
    tn_scope      scope;
    tn_generator *generator; /* the current generator at tn_enter, */
    tn_generator  began;     /* and a copy of its state then       */
} tn_frame;
TN_API tn_frame   tn_module_enter(void *m);
TN_API tn_tensor *tn_leave(tn_frame f, tn_tensor *y); /* moves y to the outer scope; NULL if an error is set */
TN_API void       tn_leave_list(tn_frame f, int n, tn_tensor **const *y);
TN_API bool       tn_module_ready(const char *who, void *m); /* false: an error is set, or m is NULL or incomplete */
TN_API tn_tensor *tn_module_call(void *m, tn_tensor *x);

/* Hooks run before or after each tn_call of m, in the order in which they were added. A hook's result replaces x or y;
 * NULL keeps it. tn_remove_hooks removes all hooks that were added with this user pointer. */
typedef tn_tensor *(*tn_before_hook)(tn_module *m, tn_tensor *x, void *user);
typedef tn_tensor *(*tn_after_hook)(tn_module *m, tn_tensor *x, tn_tensor *y, void *user);
TN_API tn_status tn_module_before(void *m, tn_before_hook hook, void *user);
TN_API tn_status tn_module_after(void *m, tn_after_hook hook, void *user);
TN_API void      tn_module_unhook(void *m, void *user);

/* ---- walking: for (tn_each p = tn_parameters(net); tn_next(&p);) printf("%s\n", p.name); ----------------------- */

enum { TN_NAME_BYTES = 256, TN_PATH_BYTES = 1024, TN_MAX_DEPTH = 48 }; /* size of a name, of a path; nested modules */

/* What tn_module_each visits: each tensor or module once, under its first name; with TN_EACH_NAME once per name. */
enum { TN_EACH_PARAMETER = 1, TN_EACH_BUFFER = 2, TN_EACH_SAVED = 4, TN_EACH_MODULE = 8, TN_EACH_NAME = 16 };

typedef struct {
    tn_tensor *tensor;                 /* NULL with TN_EACH_MODULE */
    tn_module *module;                 /* the module, or the one that owns the tensor */
    bool       parameter, saved, rows; /* saved: part of the state dict; rows: see tn_buffer_rows */
    char       name[TN_PATH_BYTES];    /* "layers.3.up.weight"; "" for the root */

    int      what_, depth_, nties_, length_; /* private, from here on */
    uint64_t step_;
    struct {
        tn_module *m;
        int        at, length;
    } level_[TN_MAX_DEPTH];
    tn_tensor *tie_[8];
} tn_each;
TN_API tn_each tn_module_each(void *m, int what);
TN_API bool    tn_next(tn_each *e);

TN_API int64_t    tn_module_count(void *m, bool trainable); /* elements of all parameters; trainable: not frozen ones */
TN_API tn_module *tn_module_find(void *m, const char *path);        /* "encoder.layers.3"; NULL (raised) if not found */
TN_API tn_tensor *tn_module_find_tensor(void *m, const char *path); /* "encoder.layers.3.up.weight" */

/* ---- changing a whole module ------------------------------------------------------------------------------------- */

TN_API void      tn_module_train(void *m, bool on);
TN_API void      tn_module_freeze(void *m, bool on);
TN_API void      tn_module_zero_grad(void *m);
TN_API tn_status tn_module_to(void *m, tn_dtype dt); /* converts floating parameters, buffers, gradients: all or none */
/* For inference: converts weights (tn_weight) to 8 bits, llama.cpp's Q8_0, a quarter of f32 (docs/quantisation.md). All
 * or none. Freezes the other parameters and sets eval mode. To change the dtype, call tn_module_to before. */
TN_API tn_status tn_module_quantize(void *m);
TN_API void     *tn_module_copy(void *m);
TN_API void      tn_module_print(FILE *to, void *m);
TN_API void      tn_module_summary(FILE *to, void *m);

/* ---- containers -------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_module base;
} tn_sequential, tn_module_list, tn_module_dict;
TN_API tn_sequential  *tn_sequential_new(void);  /* tn_call(net, x) calls the children one after the other */
TN_API tn_module_list *tn_module_list_new(void); /* children "0", "1", ..., called by your forward */
TN_API tn_module_dict *tn_module_dict_new(void); /* children by name: tn_child(dict, "en", ...), tn_find(dict, "en") */
TN_API void           *tn_module_append(void *m, void *child); /* registers child under the next number */
TN_API void           *tn_module_at(void *m, int64_t i);       /* child i; a negative i counts from the end */
TN_API int64_t         tn_module_length(void *m);

#ifdef __cplusplus
}
#endif

/* ---- macros that accept a pointer to any type of module ---------------------------------------------------------- */

/* The sizeof is a compile error if m is not a module; m is evaluated once. */
#define TN_ANY_MODULE_(m) ((void)sizeof((m)->base), (void *)(m))
#define TN_OF_MODULE_(type, defaults, m, ...) ((type){defaults, .module = TN_ANY_MODULE_(m), TN_NAMED_, __VA_ARGS__})
#ifdef __cplusplus
#define TN_SAME_(m, call) (static_cast<decltype(&*(m))>(call))
#else
#define TN_SAME_(m, call) ((__typeof__(m))(call))
#endif

#define tn_module_new(T) ((T *)tn_module_create(&T##_class))
#define tn_built(m) TN_SAME_(m, tn_module_built(TN_ANY_MODULE_(m)))

/* m->weight = tn_param(m, "weight", tn_normal(...)): m owns the tensor, which requires grad. NULL registers nothing. */
#define tn_param(m, name, t) tn_module_param(TN_ANY_MODULE_(m), name, t)
/* Registers a parameter [out, in] that only tn_linear and tn_embedding read; tn_quantize converts it. */
#define tn_weight(m, name, t) tn_module_weight(TN_ANY_MODULE_(m), name, t)
/* m->mean = tn_buffer(m, "running_mean", tn_zeros(...)): not a parameter, but part of the state dict; or not part. */
#define tn_buffer(m, name, t) tn_module_buffer(TN_ANY_MODULE_(m), name, t, true)
#define tn_buffer_unsaved(m, name, t) tn_module_buffer(TN_ANY_MODULE_(m), name, t, false)
/* A buffer whose row i belongs to row i of the batch: each rank changes the rows of its shards (tn_replica_collect). */
#define tn_buffer_rows(m, name, t) tn_module_buffer_rows(TN_ANY_MODULE_(m), name, t)
/* m->up = tn_child(m, "up", tn_linear_new(...)): m owns the child. If m is NULL or registering fails, frees it. */
#define tn_child(m, name, child) TN_SAME_(child, tn_module_child(TN_ANY_MODULE_(m), name, TN_ANY_MODULE_(child)))
/* Registers a module that already has an owner under a second name. It is freed with the last of its owners. */
#define tn_share(m, name, other) TN_SAME_(other, tn_module_share(TN_ANY_MODULE_(m), name, TN_ANY_MODULE_(other)))
/* Registers a tensor under a second name: tn_tie_to(m, "head.weight", "words.weight"). If the name exists, in m or in
 * a child, the tensor there is replaced, and so are all struct members that point to it. tn_tie takes the tensor
 * itself; if you reach it through a child, as in m->words->weight, check first that the child is not NULL. */
#define tn_tie(m, name, t) tn_module_tie(TN_ANY_MODULE_(m), name, t)
#define tn_tie_to(m, name, path) tn_module_tie_to(TN_ANY_MODULE_(m), name, path)
/* m->layers = tn_array(m, n, block *): n zeroed elements, freed with m and copied with it. */
#define tn_array(m, n, type) ((type *)tn_module_array(TN_ANY_MODULE_(m), n, sizeof(type)))
#define tn_free(m) tn_module_free(TN_ANY_MODULE_(m))

#define tn_call(m, x) tn_module_call(TN_ANY_MODULE_(m), x)
#define tn_enter(m) tn_module_enter(TN_ANY_MODULE_(m))
/* Ends a frame with several results: tn_leave_n(f, &y, &h). If an error is set, they become NULL. */
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
#ifdef __clang_analyzer__ /* it does not know that tn_module_ready returns false for NULL */
#define tn_ready(m) ((m) && tn_module_ready(__func__, TN_ANY_MODULE_(m)))
#else
#define tn_ready(m) tn_module_ready(__func__, TN_ANY_MODULE_(m)) /* messages name the calling function */
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
/* A deep copy; tied tensors and shared modules are tied and shared in the copy. Pointers in structs and tn_arrays that
 * pointed into m's tree point to the copies; all other members are copied bytewise. */
#define tn_copy(m) TN_SAME_(m, tn_module_copy(TN_ANY_MODULE_(m)))
#define tn_print_module(to, m) tn_module_print(to, TN_ANY_MODULE_(m)) /* as PyTorch prints it */
#define tn_summary(to, m) tn_module_summary(to, TN_ANY_MODULE_(m))    /* names, shapes, counts, bytes */

#define tn_append(m, child) TN_SAME_(child, tn_module_append(TN_ANY_MODULE_(m), TN_ANY_MODULE_(child)))
#define tn_at(m, i) tn_module_at(TN_ANY_MODULE_(m), i) /* block *b = tn_at(m->layers, 3) */
#define tn_length(m) tn_module_length(TN_ANY_MODULE_(m))

#endif

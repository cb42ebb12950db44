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
 * generator. A module may be changed by one thread while no other thread uses it; many threads may run it at once. Two
 * threads that train one module are an error, which is raised only if their tn_step or the ends of their tn_backward
 * overlap in time. If these alternate, no error is raised, as a module may be passed from one thread to another. */
#ifndef TENON_NN_MODULE_H
#define TENON_NN_MODULE_H

#include "../autograd/autograd.h"

TN_C_BEGIN_

typedef struct tn_class tn_class;
struct tn_rename;       /* nn/state.h */
struct tn_position_ops; /* nn/attention.h */
struct tn_router_ops;   /* nn/experts.h */

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
    const struct tn_lm_ops *lm;                /* functions of a language model (models/lm.h); NULL: not one */
    /* Copies the rules for the names of its weights in files (nn/state.h), at most `room`, and returns their number. */
    int (*names)(const void *m, struct tn_rename *rules, int room); /* NULL: no rules */
    const struct tn_position_ops *positions; /* functions of a part of attention; NULL: not one */
    const struct tn_router_ops   *router;    /* functions of a feed-forward with a router; NULL: not one */
};

/* Define T_class, which tn_module_new(T) needs; at file level, after the functions of type T. With TN_FORWARD, tn_call
 * runs T_forward(T *m, tn_tensor *x). TN_MODULE is for forwards with other arguments or results. */
#define TN_FORWARD(T)                                                                              \
    static inline tn_tensor *T##_virtual(void *m, tn_tensor *x) { return T##_forward((T *)m, x); } \
    TN_CLASS_(T, T##_virtual)
#define TN_MODULE(T) TN_CLASS_(T, NULL)
#define TN_CLASS_(T, forward)                                                                       \
    TN_STATIC_ASSERT_(offsetof(T, base) == 0, "the first member of a module is `tn_module base;`"); \
    static const tn_class T##_class = {                                                             \
        sizeof(tn_class), #T, sizeof(T), forward, NULL, NULL, NULL, NULL, NULL, NULL, NULL}
#ifdef __cplusplus
#define TN_STATIC_ASSERT_ static_assert
#else
#define TN_STATIC_ASSERT_ _Static_assert
#endif

/* ---- building: register each member as it is assigned ----------------------------------------------------------- */

TN_API void      *tn_module_create(const tn_class *kind); /* zeroed; tn_free frees it with all it owns */
TN_API void      *tn_module_built(void *m);               /* returns m; after an error frees m and returns NULL */
TN_API tn_tensor *tn_module_param(void *m, const char *name, tn_tensor *t);
TN_API tn_tensor *tn_module_weight(void *m, const char *name, tn_tensor *t);
TN_API tn_tensor *tn_module_buffer(void *m, const char *name, tn_tensor *t, bool saved);
TN_API void      *tn_module_child(void *m, const char *name, void *child);
TN_API void       tn_module_free(void *m);

#define tn_module_new(T) ((T *)tn_module_create(&T##_class))
#define tn_built(m) TN_SAME_(m, tn_module_built(TN_ANY_MODULE_(m)))
#define tn_free(m) tn_module_free(TN_ANY_MODULE_(m))
/* m->weight = tn_param(m, "weight", tn_normal(...)): m owns the tensor, which requires grad. NULL registers nothing. */
#define tn_param(m, name, t) tn_module_param(TN_ANY_MODULE_(m), name, t)
/* Registers a parameter [out, in] that only tn_linear and tn_embedding read; tn_quantize converts it. */
#define tn_weight(m, name, t) tn_module_weight(TN_ANY_MODULE_(m), name, t)
/* m->mean = tn_buffer(m, "running_mean", tn_zeros(...)): not a parameter, but part of the state dict; or not part. */
#define tn_buffer(m, name, t) tn_module_buffer(TN_ANY_MODULE_(m), name, t, true)
#define tn_buffer_unsaved(m, name, t) tn_module_buffer(TN_ANY_MODULE_(m), name, t, false)
/* m->up = tn_child(m, "up", tn_linear_new(...)): m owns the child. If m is NULL or registering fails, frees it. */
#define tn_child(m, name, child) TN_SAME_(child, tn_module_child(TN_ANY_MODULE_(m), name, TN_ANY_MODULE_(child)))

/* Names are PyTorch's: "weight"; in lists "layers.0", which tn_name("layers.%d", i) returns: it formats as printf does.
 * The string is valid until this thread has called tn_name eight more times. */
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
TN_API tn_tensor *tn_leave(tn_frame f, tn_tensor *y); /* moves y to the outer scope; NULL if an error is set. Several
                                                         results: tn_leave_n (module_tools.h) */
TN_API bool       tn_module_ready(const char *who, void *m); /* false: an error is set, or m is NULL or incomplete */
TN_API tn_tensor *tn_module_call(void *m, tn_tensor *x);
TN_API void       tn_module_train(void *m, bool on);

#define tn_enter(m) tn_module_enter(TN_ANY_MODULE_(m))
#define tn_call(m, x) tn_module_call(TN_ANY_MODULE_(m), x)
#define tn_train(m, on) tn_module_train(TN_ANY_MODULE_(m), on)
#define tn_eval(m) tn_module_train(TN_ANY_MODULE_(m), false)
#ifdef __clang_analyzer__ /* it does not know that tn_module_ready returns false for NULL */
#define tn_ready(m) ((m) && tn_module_ready(__func__, TN_ANY_MODULE_(m)))
#else
#define tn_ready(m) tn_module_ready(__func__, TN_ANY_MODULE_(m)) /* messages name the calling function */
#endif

TN_C_END_

/* ---- any module's pointer ---------------------------------------------------------------------------------------- */

/* The sizeof is a compile error if m is not a module; m is evaluated once. */
#define TN_ANY_MODULE_(m) ((void)sizeof((m)->base), (void *)(m))
#ifdef __cplusplus
#define TN_SAME_(m, call) (static_cast<decltype(&*(m))>(call))
#else
#define TN_SAME_(m, call) ((__typeof__(m))(call))
#endif

#include "module_tools.h"

#endif

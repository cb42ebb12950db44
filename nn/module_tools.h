/* module_tools.h — more about modules: second names of tensors and modules, walks, changes of a whole module, copies,
 * printing, hooks. Part of nn.h: include that. */
#ifndef TENON_NN_MODULE_TOOLS_H
#define TENON_NN_MODULE_TOOLS_H

#include "module.h"

TN_C_BEGIN_

/* ---- building: second names, arrays ------------------------------------------------------------------------------ */

TN_API void      *tn_module_share(void *m, const char *name, void *other);
TN_API tn_tensor *tn_module_tie(void *m, const char *name, tn_tensor *t);
TN_API tn_tensor *tn_module_tie_to(void *m, const char *name, const char *path);
TN_API void      *tn_module_array(void *m, int64_t n, size_t size);
TN_API tn_tensor *tn_module_buffer_rows(void *m, const char *name, tn_tensor *t);

/* Registers a module that already has an owner under a second name. It is freed with the last of its owners. */
#define tn_share(m, name, other) TN_SAME_(other, tn_module_share(TN_ANY_MODULE_(m), name, TN_ANY_MODULE_(other)))
/* Registers a tensor under a second name: tn_tie_to(m, "head.weight", "words.weight"). If the name exists, in m or in
 * a child, the tensor there is replaced, and so are all struct members that point to it. tn_tie takes the tensor
 * itself; if you reach it through a child, as in m->words->weight, check first that the child is not NULL. */
#define tn_tie(m, name, t) tn_module_tie(TN_ANY_MODULE_(m), name, t)
#define tn_tie_to(m, name, path) tn_module_tie_to(TN_ANY_MODULE_(m), name, path)
/* m->layers = tn_array(m, n, block *): n zeroed elements, freed with m and copied with it. */
#define tn_array(m, n, type) ((type *)tn_module_array(TN_ANY_MODULE_(m), n, sizeof(type)))
/* A buffer whose row i belongs to row i of the batch: each rank changes the rows of its shards (tn_replica_collect). */
#define tn_buffer_rows(m, name, t) tn_module_buffer_rows(TN_ANY_MODULE_(m), name, t)

/* ---- a forward with several results ------------------------------------------------------------------------------ */

TN_API void tn_leave_list(tn_frame f, int n, tn_tensor **const *y);

/* ---- limits of a call -------------------------------------------------------------------------------------------- */

/* Ends calls of this thread early: every call of a module first asks stop(user), and if that returns true, it raises
 * TN_ESTATE, so that a forward, also one of tn_bert_embed, returns NULL soon. NULL: nothing is asked. */
TN_API void tn_stop_when(bool (*stop)(void *user), void *user);

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

#define tn_parameters(m) tn_module_each(TN_ANY_MODULE_(m), TN_EACH_PARAMETER)
#define tn_buffers(m) tn_module_each(TN_ANY_MODULE_(m), TN_EACH_BUFFER)
#define tn_modules(m) tn_module_each(TN_ANY_MODULE_(m), TN_EACH_MODULE)
#define tn_count(m) tn_module_count(TN_ANY_MODULE_(m), false)
#define tn_count_trainable(m) tn_module_count(TN_ANY_MODULE_(m), true)
#define tn_find(m, path) tn_module_find(TN_ANY_MODULE_(m), path)
#define tn_find_tensor(m, path) tn_module_find_tensor(TN_ANY_MODULE_(m), path)

/* ---- changing a whole module ------------------------------------------------------------------------------------- */

TN_API void      tn_module_freeze(void *m, bool on);
TN_API void      tn_module_zero_grad(void *m);
TN_API tn_status tn_module_to(void *m, tn_dtype dt); /* converts floating parameters, buffers, gradients: all or none */
/* For inference or tn_lora: converts weights (tn_weight) to Q8_0, a quarter of f32 (docs/quantisation.md). All
 * or none. Freezes the other parameters and sets eval mode. To change the dtype, call tn_module_to before. */
TN_API tn_status tn_module_quantize(void *m);
/* The same with more options. activations: products also round each row of their input to 8 bits, which is faster and
 * gives the same bits on every CPU; a row of weights then has one scale (tn_int8_pack). bits: 8, or 4: Q4_0, an eighth
 * of f32, whose products round their input, too (tn_q4_pack); 0: 8. */
typedef struct tn_quantize_args {
    int   zero_;
    void *module;
    bool  activations;
    int   bits;
    int   end_;
} TN_KEYWORDS_ONLY tn_quantize_args;
TN_API tn_status   tn_quantize_run(tn_quantize_args c);
TN_API void       *tn_module_copy(void *m);
TN_API void        tn_module_print(FILE *to, void *m);
TN_API void        tn_module_summary(FILE *to, void *m);

#define tn_freeze(m, on) tn_module_freeze(TN_ANY_MODULE_(m), on) /* frozen parameters collect no gradients */
#define tn_zero_grads(m) tn_module_zero_grad(TN_ANY_MODULE_(m))
#define tn_quantize(...) /* tn_quantize(net), tn_quantize(net, .activations = true) */ \
    TN_CALL_(tn_quantize_run(TN_OF_MODULE_(tn_quantize_args, TN_NO_DEFAULTS_, __VA_ARGS__, TN_END_)))
/* A deep copy; tied tensors and shared modules are tied and shared in the copy. Pointers in structs and tn_arrays that
 * pointed into m's tree point to the copies; all other members are copied bytewise. */
#define tn_copy(m) TN_SAME_(m, tn_module_copy(TN_ANY_MODULE_(m)))
#define tn_print_module(to, m) tn_module_print(to, TN_ANY_MODULE_(m)) /* as PyTorch prints it */
#define tn_summary(to, m) tn_module_summary(to, TN_ANY_MODULE_(m))    /* names, shapes, counts, bytes */

/* ---- running with other tensors ---------------------------------------------------------------------------------- */

/* tn_call(m, x) with by[i] in place of of[i], parameters or buffers of m, of the same dtypes and shapes; see
 * tn_functional_begin, also for modules with other forwards. MAML, for example, takes a step on each task:
 *
 *     tn_tensor *w[8], *fast[8], *g[8];
 *     int        n = 0;
 *     for (tn_each p = tn_parameters(net); tn_next(&p);) w[n] = p.tensor, fast[n++] = p.tensor;
 *     tn_tensor *loss = tn_mse_loss(tn_functional_call(net, x, n, w, fast), y);
 *     tn_grad_of(loss, n, fast, g, .create_graph = true);
 *     for (int i = 0; i < n; i++) fast[i] = tn_sub(fast[i], tn_mul_scalar(g[i], 0.01));
 *     tn_backward(tn_mse_loss(tn_functional_call(net, vx, n, w, fast), vy)); // gradients of w */
TN_API tn_tensor *tn_module_functional_call(void *m, tn_tensor *x, int n, tn_tensor *const *of, tn_tensor *const *by);
#define tn_functional_call(m, x, n, of, by) tn_module_functional_call(TN_ANY_MODULE_(m), x, n, of, by)

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

/* Hooks run before or after each tn_call of m, in the order in which they were added. A hook's result replaces x or y;
 * NULL keeps it. tn_remove_hooks removes all hooks that were added with this user pointer. */
typedef tn_tensor *(*tn_before_hook)(tn_module *m, tn_tensor *x, void *user);
typedef tn_tensor *(*tn_after_hook)(tn_module *m, tn_tensor *x, tn_tensor *y, void *user);
TN_API tn_status tn_module_before(void *m, tn_before_hook hook, void *user);
TN_API tn_status tn_module_after(void *m, tn_after_hook hook, void *user);
TN_API void      tn_module_unhook(void *m, void *user);

#define tn_before(m, hook, user) tn_module_before(TN_ANY_MODULE_(m), hook, user)
#define tn_after(m, hook, user) tn_module_after(TN_ANY_MODULE_(m), hook, user)
#define tn_remove_hooks(m, user) tn_module_unhook(TN_ANY_MODULE_(m), user)

TN_C_END_

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

#endif

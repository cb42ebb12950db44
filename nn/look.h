/* look.h — observing a model while it runs: attention weights, the output of each head and the result of any module, by
 * path; with their gradients, and with changes by a callback. Also pruning of heads. Part of nn.h: include that.
 *
 *     tn_look *look = tn_look_new();
 *     tn_look_request(look, "**.self_attn.weights");                      // [B, heads, T, S] of every layer
 *     tn_look_request(look, "bert.encoder.layers.*", .grad = true);       // the result of each layer
 *     tn_scope   s = tn_look_begin(look);                              // observes this thread's models from here ...
 *     tn_tensor *loss = tn_scope_return(s, tn_bert_loss(bert, .ids = ids, .masked = where, .words = what)); // to here
 *     tn_look_backward(look, loss, NULL);                              // changes no parameter's gradient
 *     tn_tensor *w = tn_look_at(look, "bert.encoder.layers.2.self_attn.weights");
 *     tn_tensor *g = tn_look_grad_at(look, "bert.encoder.layers.2");
 *     tn_look_free(look);
 *
 * The result of a module has the module's path (the model's own result is not observed). A tn_mha also has the parts
 *     queries, keys, values   [B, heads, n, head_dim], as they enter the scores
 *     attn_mask                 the mask, for changes only: NULL, or the mask passed to tn_mha_forward
 *     weights                 [B, heads, T, S] after dropout
 *     heads                   output of each head before out_proj: [B, T, heads, head_dim]
 * Without a look, a call costs one test of a flag of the thread. Observing does not change results. A change callback
 * does, and so does .grad for the weights, which are then computed in full. Fused ops are replaced with single ops. */
#ifndef TENON_NN_LOOK_H
#define TENON_NN_LOOK_H

#include "attention.h"

TN_C_BEGIN_

typedef struct tn_look tn_look; /* used by one thread at a time */
TN_API tn_look        *tn_look_new(void);
TN_API void            tn_look_free(tn_look *l); /* call it outside of the look's scope */

/* Returns the tensor that replaces t, or NULL to keep t. An error raised here ends the forward. */
typedef tn_tensor *(*tn_look_change)(const char *path, tn_tensor *t, void *user);
typedef struct tn_look_request_args {
    int            zero_;
    const char    *path;   /* a pattern: "*" matches one part, "**" (at most once) any number of parts */
    bool           grad;   /* for tn_look_backward; the tensor becomes a leaf if it does not require grad */
    tn_look_change change; /* may be NULL; the tensor it returns is recorded */
    void          *user;   /* passed to change */
    int            end_;
} TN_KEYWORDS_ONLY tn_look_request_args;
TN_API tn_status   tn_look_request_run(tn_look *l, tn_look_request_args a);

/* Opens a scope in which the look observes this thread's modules; at most 8 looks at once. The look owns the recorded
 * tensors until it records the same path again or is cleared. Loops of tn_parallel_for are not observed. */
TN_API tn_scope tn_look_begin(tn_look *l);
TN_API void     tn_look_clear(tn_look *l); /* deletes the records, not the wanted paths */
/* Computes the gradients of all tensors recorded with .grad. seed: gradient of the loss; NULL if that is one value. */
TN_API tn_status tn_look_backward(tn_look *l, tn_tensor *loss, tn_tensor *seed);

/* Records: their number; the path of record i, in run order; tensor and gradient by path (NULL, raised: not
 * recorded). */
TN_API int64_t     tn_look_count(const tn_look *l);
TN_API const char *tn_look_name(const tn_look *l, int64_t i);
TN_API tn_tensor  *tn_look_at(const tn_look *l, const char *path);
TN_API tn_tensor  *tn_look_grad_at(const tn_look *l, const char *path);
TN_API int64_t     tn_look_times(const tn_look *l, const char *path); /* number of times recorded; the last is kept */
/* ---- heads ------------------------------------------------------------------------------------------------------- */

/* Returns m if it is a tn_mha, else NULL: for (tn_each e = tn_modules(net); tn_next(&e);) tn_mha_of(e.module). */
TN_API tn_mha *tn_mha_of(tn_module *m);
/* Removes these heads permanently: their rows of the input projections and their columns of the output projection. A
 * head keeps its original number when others are removed; one that was removed before is ignored. Heads that share keys
 * must be removed together; all heads may be (the output is then out_proj's bias). Create optimizers and caches again
 * afterwards. All or none. */
TN_API tn_status tn_mha_prune(tn_mha *m, int64_t n, const int64_t *heads);

TN_C_END_
#define tn_look_request(l, ...) \
    TN_CALL_(tn_look_request_run(l, TN_ARGS1_(tn_look_request_args, TN_NO_DEFAULTS_, path, __VA_ARGS__, TN_END_)))
#endif

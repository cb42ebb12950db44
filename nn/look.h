/* look.h — looking inside a model while it runs: what attention weighs, what each head gives, the result of any module,
 * by their paths; with gradients, and with changes of one's own. And heads taken out. Part of nn.h: include that.
 *
 *     tn_look *look = tn_look_new();
 *     tn_look_want(look, "**.self_attn.weights");                      // [B, heads, T, S] of every layer
 *     tn_look_want(look, "bert.encoder.layers.*", .grad = true);       // what each layer gives
 *     tn_scope   s = tn_look_begin(look);                              // this thread's models are watched ...
 *     tn_tensor *loss = tn_scope_return(s, tn_bert_loss(bert, .ids = ids, .masked = where, .words = what)); // to here
 *     tn_look_backward(look, loss, NULL);                              // no parameter is touched
 *     tn_tensor *w = tn_look_at(look, "bert.encoder.layers.2.self_attn.weights");
 *     tn_tensor *g = tn_look_grad_at(look, "bert.encoder.layers.2");
 *     tn_look_free(look);
 *
 * A module's result goes by the module's path (the model's own is what the call returns); of a tn_mha there are besides
 *     queries, keys, values   [B, heads, n, head_dim], as they are compared
 *     blocked                 the mask, for changes only: NULL, or as of tn_mha_forward
 *     weights                 [B, heads, T, S] after dropout
 *     heads                   what each head gives, before out_proj: [B, T, heads, head_dim] (.time_first: [T, B, ...])
 * Where nobody looks, a call costs one test of a flag of the thread. Looking changes no bits; a change does, and so do
 * gradients of the weights, which are then kept. Fused ops are called one by one. */
#ifndef TENON_NN_LOOK_H
#define TENON_NN_LOOK_H

#include "attention.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_look tn_look; /* of one thread at a time */
TN_API tn_look        *tn_look_new(void);
TN_API void            tn_look_free(tn_look *l); /* outside of its scope */

/* What takes the place of t, which goes by this path; NULL: t stays. An error raised here ends the forward. */
typedef tn_tensor *(*tn_look_change)(const char *path, tn_tensor *t, void *user);
typedef struct tn_look_want_args {
    int            zero_;
    const char    *path;   /* "*" stands for one part of it, one "**" for any number */
    bool           grad;   /* on the tape, for tn_look_backward: a leaf where nothing before it has gradients */
    tn_look_change change; /* what is noted is what it gives */
    void          *user;   /* for change */
    int            end_;
} TN_KEYWORDS_ONLY tn_look_want_args;
TN_API tn_status   tn_look_want_run(tn_look *l, tn_look_want_args a);

/* A scope in which this thread's modules are watched, by at most 8 at once. What is noted is the look's own until it
 * is noted anew or cleared. Loops of tn_parallel_for are not watched. */
TN_API tn_scope tn_look_begin(tn_look *l);
TN_API void     tn_look_clear(tn_look *l); /* forgets what was noted, not what is wanted */
/* The gradients of the loss (times seed, NULL for one number) with respect to all that was wanted with .grad. */
TN_API tn_status tn_look_backward(tn_look *l, tn_tensor *loss, tn_tensor *seed);

/* What was noted, in the order of the run; by its path (NULL, and an error, if it was not noted); and its gradient. */
TN_API int64_t     tn_look_count(const tn_look *l);
TN_API const char *tn_look_name(const tn_look *l, int64_t i);
TN_API tn_tensor  *tn_look_at(const tn_look *l, const char *path);
TN_API tn_tensor  *tn_look_grad_at(const tn_look *l, const char *path);
TN_API int64_t tn_look_times(const tn_look *l, const char *path); /* how often it ran: what is kept is of the last */
/* ---- heads ------------------------------------------------------------------------------------------------------- */

/* for (tn_each e = tn_modules(net); tn_next(&e);) if ((attn = tn_mha_of(e.module))) ...: NULL if it is no tn_mha. */
TN_API tn_mha *tn_mha_of(tn_module *m);
/* Takes these heads out for good: their rows of the projections go, and their columns of the last one. They are called
 * by the numbers that they had before any was taken out; one that has gone is passed over. Heads that share keys go
 * together. All may go: what is left is the last projection's bias. Make optimizers and caches anew. All or none. */
TN_API tn_status tn_mha_prune(tn_mha *m, int64_t n, const int64_t *heads);

#ifdef __cplusplus
}
#else
#define tn_look_want(l, ...) \
    TN_CALL_(tn_look_want_run(l, TN_ARGS1_(tn_look_want_args, TN_NO_DEFAULTS_, path, __VA_ARGS__, .zero_ = 0)))
#endif
#endif

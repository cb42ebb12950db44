/* experts.h — mixture of experts (Shazeer et al. 2017): many feed-forwards, of which each token uses the few that a
 * router chooses. Part of nn.h: include that. As the feed-forward of a model, and what its loss needs in addition:
 *
 *     tn_experts_config c = TN_EXPERTS(.experts = 8);
 *     tn_blocks *m = tn_blocks_new(.layers = 6, .dim = 256, .heads = 8, .feed_forward = tn_block_experts, .user = &c);
 *     tn_tensor *router[6], *y = tn_blocks_forward(m, x, .causal = true, .router = router);
 *     tn_tensor *loss = tn_add(tn_mse_loss(y, target), tn_router_loss(router, 6, .balance = 0.01, .z = 0.001));
 *
 * p = softmax(router(x)) over all experts; a token's output is Σ w_e · expert_e(x) over the `per_token` experts of
 * largest p. Tokens are ordered by expert, so that each expert is one product over its tokens, without padding. The
 * bits of a token's output depend neither on other tokens (without .capacity) nor on the number of threads. */
#ifndef TENON_NN_EXPERTS_H
#define TENON_NN_EXPERTS_H

#include "modules.h"

TN_C_BEGIN_

/* The weights w_e of a token's experts. Gradients reach the router through them alone. */
typedef enum {
    TN_EXPERT_WEIGHTS_USUAL = 0,    /* p for one expert per token, as in Switch; shares for several, as in Mixtral */
    TN_EXPERT_WEIGHTS_SHARES,       /* p divided by the sum of p over the token's experts */
    TN_EXPERT_WEIGHTS_PROBABILITIES /* p */
} tn_expert_weights;

typedef struct tn_experts_config {
    int               zero_;
    int64_t           dim;         /* width of x */
    int64_t ff        TN_IS(2048); /* width of each expert's hidden layer */
    int64_t           experts;     /* number of experts, at most 65536 */
    int64_t per_token TN_IS(2);
    tn_expert_weights weights;
    bool              gated; /* an expert is linear2(activation(gate(x)) · linear1(x)), as in tn_block */
    tn_tensor *(*activation)(tn_tensor *x); /* NULL: tn_relu */
    double dropout;                         /* dropout probability after the activation */
    double jitter; /* in training the router's input is multiplied by numbers in [1 - jitter, 1 + jitter) */
    /* In training an expert takes at most ⌈capacity · per_token · tokens / experts⌉ tokens; first choices and earlier
     * tokens come first. Experts that a token does not get add 0 to its output. 0: no limit. */
    double   capacity;
    bool     no_bias; /* of the experts; the router has none */
    tn_dtype dtype;
    int      end_;
} TN_KEYWORDS_ONLY tn_experts_config;
#define TN_EXPERTS_DEFAULTS .ff = 2048, .per_token = 2
typedef struct {
    tn_module base;
    tn_tensor *(*activation)(tn_tensor *x);
    int64_t         dim, experts, per_token;
    bool            shares; /* the weights of a token's experts have the sum 1 */
    double          jitter, capacity;
    tn_linear      *router;                   /* [experts, dim] */
    tn_module_list *gate, *linear1, *linear2; /* a tn_linear for each expert; gate: NULL without .gated */
    tn_dropout     *dropout;
} tn_experts;
TN_API tn_experts *tn_experts_create(tn_experts_config c);

/* The functions of a feed-forward that has a router, as tn_experts: a member of its class, for a block to run it. */
typedef struct tn_router_ops {
    /* Returns the result for x [..., dim], and in *router, unless it is NULL, the logits [tokens, width]. rows: NULL,
     * or i64 [tokens]: the tokens are these of a padded batch, flattened, of sequences of `length` tokens. */
    tn_tensor *(*run)(void *m, tn_tensor *x, tn_tensor *rows, int64_t length, tn_tensor **router);
    int64_t (*width)(const void *m);
    const char *name; /* its name in the block; NULL: "feed_forward" */
} tn_router_ops;

typedef struct tn_experts_args {
    int         zero_;
    tn_tensor  *x;      /* [..., dim] */
    tn_tensor **router; /* output, may be NULL: the router's logits [tokens, experts], f32, or f64 for an f64 x */
    int         end_;
} TN_KEYWORDS_ONLY tn_experts_args;
TN_API tn_tensor  *tn_experts_run(tn_experts *m, tn_experts_args a); /* [..., dim] */

/* balance · E Σ_e f_e P_e + z · mean(logsumexp(logits)²), with f_e the number of tokens that chose expert e and P_e the
 * sum of its p, both divided by the number of tokens, of all layers together. The first term is balance · per_token if
 * all experts have the same p, and more if they are used unequally (Fedus et al. 2022; for several layers as in Hugging
 * Face's Mixtral); the second one keeps logits small (Zoph et al. 2022). Usual values are 0.01 and 0.001. */
typedef struct tn_router_loss_args {
    int               zero_;
    tn_tensor *const *router; /* the logits of each layer; NULL for layers without experts */
    int64_t           layers;
    int64_t per_token TN_IS(2);
    double            balance, z;
    tn_tensor        *padding; /* bool [B, T], true: a token that does not count; NULL: none. Logits that are already
                                * without the rows of padding are taken as they are */
    int               end_;
} TN_KEYWORDS_ONLY tn_router_loss_args;
#define TN_ROUTER_LOSS_ARGS_DEFAULTS .per_token = 2
TN_API tn_tensor *tn_router_loss_run(tn_router_loss_args a);

TN_C_END_
/* Options for tn_block_experts: TN_EXPERTS(.experts = 8) */
#define TN_EXPERTS(...) TN_CALL_(TN_FILLED_(tn_experts_config, TN_EXPERTS_DEFAULTS, __VA_ARGS__))
#define tn_experts_new(...) TN_NEW_(tn_experts_create, tn_experts_config, TN_EXPERTS_DEFAULTS, __VA_ARGS__)
#define tn_experts_forward(m, ...) \
    TN_CALL_(tn_experts_run(m, TN_ARGS1_(tn_experts_args, TN_NO_DEFAULTS_, x, __VA_ARGS__, TN_END_)))
#define tn_router_loss(...)      \
    TN_CALL_(tn_router_loss_run( \
        TN_ARGS2_(tn_router_loss_args, TN_ROUTER_LOSS_ARGS_DEFAULTS, router, layers, __VA_ARGS__, TN_END_)))
#endif

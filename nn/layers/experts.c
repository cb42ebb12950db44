/* experts.c — a mixture of experts.
 *
 *   p = softmax(router(x)),  y = Σ w_e · expert_e(x) over the k experts e of largest p,  w = p or p / Σ p of these
 *
 * The pairs (token, expert) are ordered by expert (tn_route); each linear layer of all experts is then one op, a
 * product per expert over the rows of its tokens (tn_grouped_linear). A token's terms are added in the order of the
 * experts. The router computes in f32 also under autocast, as its softmax does, and its weight is never packed:
 * rounding would change the choice. */
#include "nn/experts.h"
#include "nn/base/look_private.h"
#include "nn/base/nn_private.h"
#include "nn/layers/fuse.h"

#include <math.h>

static const char *const who = "tn_experts_new";

static tn_tensor *experts_forward(void *self, tn_tensor *x) { return tn_experts_forward((tn_experts *)self, x); }
static void       experts_describe(const void *self, char *text, size_t size)
{
    const tn_experts *m = self;
    snprintf(text, size, "experts=%lld, per_token=%lld", (long long)m->experts, (long long)m->per_token);
}
static int64_t    experts_width(const void *self) { return ((const tn_experts *)self)->experts; }
static tn_tensor *experts_routed(void *m, tn_tensor *x, tn_tensor *rows, int64_t length, tn_tensor **router);

static const tn_router_ops ops = {.run = experts_routed, .width = experts_width, .name = "experts"};
static const tn_class      tn_experts_class = {.size = sizeof(tn_class),
                                               .name = "Experts",
                                               .bytes = sizeof(tn_experts),
                                               .forward = experts_forward,
                                               .describe = experts_describe,
                                               .router = &ops};

/* ---- building ---------------------------------------------------------------------------------------------------- */

static tn_module_list *linears(const tn_experts_config *c, int64_t in, int64_t out)
{
    tn_module_list *list = tn_module_list_new();
    for (int64_t i = 0; i < c->experts && tn_error() == TN_OK; i++)
        tn_append(list, tn_linear_new(.in = in, .out = out, .no_bias = c->no_bias, .dtype = c->dtype));
    return list;
}

tn_experts *tn_experts_create(tn_experts_config c)
{
    if (!tn__at_least(who, "dim", c.dim, 1) || !tn__at_least(who, "ff", c.ff, 1) ||
        !tn__within(who, "experts", c.experts, 1, 65536) || !tn__within(who, "per_token", c.per_token, 1, c.experts) ||
        !tn__probability(who, "dropout", c.dropout) || !tn__probability(who, "jitter", c.jitter) ||
        !tn__floating(who, c.dtype))
        return NULL;
    if ((unsigned)c.weights > TN_EXPERT_WEIGHTS_PROBABILITIES)
        return tn_raise_null(TN_EINVAL, "%s: .weights is %d; expected a tn_expert_weights", who, (int)c.weights);
    if (!(c.capacity >= 0 && c.capacity <= 1e6))
        return tn_raise_null(TN_EINVAL, "%s: .capacity is %s, but must be positive and at most 1e6, or 0 for no limit",
                             who, tn__format_number(c.capacity));
    tn_experts *m = tn_module_new(tn_experts);
    if (!m) return NULL;
    m->activation = c.activation ? c.activation : tn_relu;
    m->dim = c.dim, m->experts = c.experts, m->per_token = c.per_token;
    m->shares = c.weights == TN_EXPERT_WEIGHTS_SHARES || (!c.weights && c.per_token > 1);
    m->jitter = c.jitter, m->capacity = c.capacity;
    m->router = tn_child(m, "router", tn_linear_new(.in = c.dim, .out = c.experts, .no_bias = true, .dtype = c.dtype));
    if (m->router) tn__slot_of(&m->router->base, "weight")->weight = false; /* stays exact in tn_quantize and others */
    m->linear1 = tn_child(m, "linear1", linears(&c, c.dim, c.ff));
    if (c.gated) m->gate = tn_child(m, "gate", linears(&c, c.dim, c.ff));
    m->dropout = tn_child(m, "dropout", tn_dropout_new(.p = c.dropout));
    m->linear2 = tn_child(m, "linear2", linears(&c, c.ff, c.dim));
    return tn_built(m);
}

/* ---- a linear layer of all experts ------------------------------------------------------------------------------- */

/* True if the weights alone determine the layer's result. */
static bool is_plain(const tn_linear *m)
{
    return tn__is_linear(&m->base) && m->weight && !m->lora && !tn_is_packed(m->weight) && !m->base.base->hooks;
}

/* Each expert by itself: with weights in 8 bits, adapters, hooks. `of` is ascending. */
static tn_tensor *one_by_one(tn_module_list *list, tn_tensor *x, tn_tensor *of)
{
    const int64_t    n = tn_length(list), *index = tn_data(of), rows = tn_numel(of);
    const tn_linear *first = tn_at(list, 0);
    const size_t     bytes = (size_t)(n + 1) * sizeof(tn_tensor *);
    tn_tensor      **part = index ? tn_mem_get(bytes) : NULL, *y = NULL;
    int              count = 0;
    for (int64_t at = 0, end; part && at < rows && tn_error() == TN_OK; at = end) {
        const int64_t e = index[at];
        for (end = at + 1; end < rows && index[end] == e;) end++;
        part[count] = e < n ? tn_call((tn_linear *)tn_at(list, e), tn_narrow(x, 0, at, end - at))
                            : tn_zeros_of(tn_dtype_of(count ? part[0] : x), TN_SHAPE(end - at, first->out));
        count++;
    }
    if (!rows) y = tn_zeros_of(tn_dtype_of(x), TN_SHAPE(0, first->out));
    else if (part) y = tn_cat_list(0, count, part);
    if (part) tn_mem_put(part, bytes);
    return y;
}

/* Row i of the result is expert of[i]'s layer of row i of x; 0 for a row without an expert. */
static tn_tensor *layer(tn_module_list *list, tn_tensor *x, tn_tensor *of)
{
    const int64_t    n = tn_length(list);
    const tn_linear *first = tn_at(list, 0);
    bool             plain = !tn__look_active() && tn_error() == TN_OK;
    for (int64_t i = 0; i < n && plain; i++) plain = is_plain(tn_at(list, i));
    if (!plain) return tn_error() == TN_OK ? one_by_one(list, x, of) : NULL;
    const size_t bytes = (size_t)(2 * n) * sizeof(tn_tensor *);
    tn_tensor  **w = tn_mem_get(bytes), *y;
    if (!w) return NULL;
    for (int64_t i = 0; i < n; i++) {
        const tn_linear *m = tn_at(list, i);
        w[i] = m->weight, w[n + i] = m->bias;
    }
    y = tn_grouped_linear(x, of, (int)n, w, first->bias ? w + n : NULL);
    tn_mem_put(w, bytes);
    return y;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* Noise like x [tokens, dim], from 1 - j to 1 + j. As with dropout, each sequence has its own random numbers: those of
 * a row depend on its place in its sequence, not on the padding of others. The call draws one block. */
static tn_tensor *noise_like(tn_tensor *x, double j, tn__kept rows)
{
    const int64_t  n = tn_size(x, 0), *row = rows.index ? tn_data(rows.index) : NULL;
    const int64_t  seed = tn_random_below(NULL, INT64_MAX);
    tn_tensor     *to = tn_empty_of(tn_dtype_of(x), tn_shape_of(x));
    const tn_scope s = tn_no_grad_begin();
    for (int64_t at = 0, end; at < n && tn_error() == TN_OK; at = end) {
        const int64_t b = (row ? row[at] : at) / rows.length, first = row ? row[at] % rows.length : 0;
        for (end = at + 1; end < n && (row ? row[end] : end) / rows.length == b;) end++;
        tn_generator        g = {.seed = (uint64_t)seed, .position = (uint64_t)b << 40};
        tn_generator *const own = tn_use_generator(&g);
        tn_tensor *some = tn_uniform_of(tn_dtype_of(x), TN_SHAPE(first + end - at, tn_size(x, 1)), 1 - j, 1 + j);
        tn_use_generator(own);
        tn_copy_from(tn_narrow(to, 0, at, end - at), tn_narrow(some, 0, first, end - at));
    }
    tn_scope_end(s);
    return to;
}

/* The logits of x [tokens, dim]. */
static tn_tensor *logits_of(tn_experts *m, tn_tensor *x, tn__kept rows)
{
    const tn_scope s = tn_autocast_begin(false);
    const double   j = m->base.training ? m->jitter : 0;
    if (j > 0) x = tn_mul(x, noise_like(x, j, rows));
    x = tn_call(m->router, x);
    return tn_scope_return(s, x && tn_dtype_of(x) == TN_BF16 ? tn_to(x, TN_F32) : x);
}

/* The hidden layers' dropout. Row i is dropped like pair[i], in a padded batch like that of the token's padded row. */
static tn_tensor *dropped(tn_experts *m, tn_tensor *h, const tn_routes *r, tn__kept rows)
{
    const int64_t k = m->per_token;
    if (!m->base.training || m->dropout->p == 0) return tn_call(m->dropout, h);
    if (!rows.index) return tn__dropout(m->dropout, h, (tn__kept){r->pair, rows.length * k});
    tn_tensor *shift = tn_sub(tn_index_select(rows.index, 0, r->token), r->token);
    return tn__dropout(m->dropout, h, (tn__kept){tn_add(r->pair, tn_mul_scalar(shift, (double)k)), rows.length * k});
}

/* x [tokens, dim] */
static tn_tensor *mixed(tn_experts *m, tn_tensor *x, tn__kept rows, tn_tensor *logits)
{
    const int64_t   n = tn_size(x, 0), k = m->per_token;
    const double    share = (double)k * (double)n / (double)m->experts;
    const int64_t   most = m->base.training && m->capacity > 0 ? (int64_t)ceil(m->capacity * share) : 0;
    const tn_pair   top = tn_topk(tn_softmax(logits, -1), k, -1);
    const tn_routes r = tn_route(top.indices, m->experts, most);
    tn_tensor      *w = top.values, *in = tn_index_select(x, 0, r.token), *h, *y;
    if (m->shares) w = tn_div(w, tn_sum(w, .dims = TN_DIMS(-1), .keepdim = true));
    w = tn_index_select(tn_reshape(w, TN_SHAPE(n * k, 1)), 0, r.pair);
    h = m->activation(layer(m->gate ? m->gate : m->linear1, in, r.expert));
    if (m->gate) h = tn_mul(h, layer(m->linear1, in, r.expert));
    y = layer(m->linear2, dropped(m, h, &r, rows), r.expert);
    if (!y || !(w = tn_mul(y, w))) return NULL;
    return tn_to(tn_index_add(tn_zeros_of(tn_dtype_of(w), TN_SHAPE(n, m->dim)), 0, r.token, w), tn_dtype_of(y));
}

static tn_tensor *experts_routed(void *self, tn_tensor *x, tn_tensor *index, int64_t length, tn_tensor **router)
{
    tn_experts *m = self;
    tn__kept    rows = {index, length};
    char        text[192];
    tn_tensor  *logits = NULL, *y = NULL;
    if (router) *router = NULL;
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    const tn_shape s = x ? tn_shape_of(x) : TN_SHAPE(0);
    if (!x || !s.n || s.d[s.n - 1] != m->dim)
        tn_raise(TN_ESHAPE, "experts: x must be [..., %lld], got %s", (long long)m->dim,
                 x ? tn_shape_text(s, text, sizeof text) : "NULL");
    else {
        tn_tensor *flat = tn_reshape(x, TN_SHAPE(tn_numel(x) / m->dim, m->dim));
        if (!rows.index)
            rows.length = s.n > 2 && tn_numel(x) ? tn_numel(x) / m->dim / s.d[0] : tn_numel(x) / m->dim + 1;
        if (flat && (logits = logits_of(m, flat, rows))) y = tn_reshape(mixed(m, flat, rows, logits), s);
    }
    if (!router) return tn_leave(f, y);
    tn_leave_n(f, &y, &logits);
    *router = logits;
    return y;
}

tn_tensor *tn_experts_run(tn_experts *m, tn_experts_args a)
{
    if (a.router) *a.router = NULL;
    return tn_ready(m) ? experts_routed(m, a.x, NULL, 0, a.router) : NULL;
}

/* ---- the loss of the router -------------------------------------------------------------------------------------- */

/* The tokens of a layer that count. */
static tn_tensor *counted(tn_tensor *logits, tn_tensor *padding)
{
    const int64_t rows = padding ? tn_numel(padding) : 0;
    if (tn_ndim(logits) != 2 || (padding && tn_dtype_of(padding) != TN_BOOL))
        return tn_raise_null(TN_EINVAL, "tn_router_loss: expected logits [tokens, experts] and .padding of bool");
    if (!padding) return logits;
    tn_tensor *kept = tn_reshape(tn_nonzero(tn_logical_not(tn_reshape(padding, TN_SHAPE(rows)))), TN_SHAPE(-1));
    if (!kept || tn_size(logits, 0) == tn_numel(kept)) return kept ? logits : NULL;
    if (tn_size(logits, 0) == rows) return tn_index_select(logits, 0, kept);
    return tn_raise_null(TN_ESHAPE, "tn_router_loss: logits of %lld tokens; expected %lld, as .padding has, or %lld",
                         (long long)tn_size(logits, 0), (long long)rows, (long long)tn_numel(kept));
}

/* The number of choices of each expert, in p's dtype. */
static tn_tensor *choices(tn_tensor *p, int64_t per_token)
{
    const tn_scope s = tn_no_grad_begin();
    tn_tensor     *chosen = tn_one_hot(tn_topk(p, per_token, -1).indices, tn_size(p, -1));
    return tn_scope_return(s, tn_to(tn_sum(chosen, .dims = TN_DIMS(0, 1)), tn_dtype_of(p)));
}

static tn_tensor *sum_of(tn_tensor *a, tn_tensor *b) { return a ? tn_add(a, b) : b; }

tn_tensor *tn_router_loss_run(tn_router_loss_args a)
{
    if (tn_error() != TN_OK) return NULL;
    if (!a.router || a.layers < 0 || a.per_token < 1)
        return tn_raise_null(TN_EINVAL,
                             "tn_router_loss: %lld layers%s and .per_token %lld; expected an array of logits "
                             "and at least 1 expert per token",
                             (long long)a.layers, a.router ? "" : " at NULL", (long long)a.per_token);
    const tn_scope s = tn_scope_begin();
    tn_tensor     *f = NULL, *p = NULL, *z = NULL, *loss = tn_zeros(TN_SCALAR);
    int64_t        tokens = 0;
    for (int64_t i = 0; i < a.layers && tn_error() == TN_OK; i++) {
        tn_tensor *x = a.router[i] ? counted(a.router[i], a.padding) : NULL, *each;
        if (!x || !(each = tn_softmax(x, -1))) continue;
        if (p && tn_numel(p) != tn_size(x, 1)) {
            tn_raise(TN_ESHAPE, "tn_router_loss: layer %lld has %lld experts, the one before it %lld", (long long)i,
                     (long long)tn_size(x, 1), (long long)tn_numel(p));
            break;
        }
        tokens += tn_size(x, 0);
        if (a.balance != 0) f = sum_of(f, choices(each, a.per_token)), p = sum_of(p, tn_sum(each, .dims = TN_DIMS(0)));
        if (a.z != 0) z = sum_of(z, tn_sum(tn_square(tn_logsumexp(x, .dims = TN_DIMS(-1)))));
    }
    const double n = tokens > 0 ? (double)tokens : 1;
    if (f && p) loss = tn_add(loss, tn_mul_scalar(tn_sum(tn_mul(f, p)), a.balance * (double)tn_numel(p) / (n * n)));
    if (z) loss = tn_add(loss, tn_mul_scalar(z, a.z / n));
    return tn_scope_return(s, tn_error() == TN_OK ? loss : NULL);
}

/* reversible.c — reversible residual blocks: one node for all of them, which saves only their last results. Its
 * backward goes from the last block to the first:
 *
 *   h = g(y1) on a tape,  x2 = y2 - h,  gy1 += ∂h/∂y1 · gy2;   h = f(x2) on a tape,  x1 = y1 - h,  gy2 += ∂h/∂x2 · gy1
 *
 * Leaves used inside (parameters) collect in the running backward, as in checkpoint.c. */
#include "autograd/tape/history.h"
#include "autograd/tape/op_api.h"
#include "autograd/tape/unchanged.h"

#include <string.h>

/* For each half of a block: the generator's state before it, and the memo of its function. */
typedef struct {
    tn_generator before;
    tn_tensor   *memo;
} half;
typedef struct {
    tn_reversible_fn fn;
    int64_t          blocks;
    half            *halves; /* [2 · blocks], followed by the copy of the user's bytes */
    size_t           bytes;  /* size of halves and that copy */
    bool            *taken;  /* set when the node owns halves */
    tn_mode          mode;
    tn__used         used; /* filled by the first run, in the node's copy of these args */
} args_t;

static bool take_args(void *to, const void *from)
{
    (void)to;
    return *((const args_t *)from)->taken = true;
}
static void free_args(void *args)
{
    args_t *a = args;
    tn__used_free(&a->used);
    for (int64_t i = 0; i < 2 * a->blocks; i++) tn_drop(a->halves[i].memo);
    tn__mem_put(a->halves, a->bytes);
}

static bool infer(tn_ctx *c)
{
    (void)c;
    return true; /* not called: tn_reversible records the node itself */
}
static void forward(tn_ctx *c) { (void)c; }

/* The result of half i's function, of the shape of `like`, to which it is added; NULL: raised. Keeps fn's memo. */
static tn_tensor *run(const args_t *a, int64_t i, tn_tensor *x, const tn_tensor *like)
{
    char       s[192], t[192];
    tn_tensor *memo = a->halves[i].memo, *had = memo;
    tn_tensor *y = a->fn(i / 2, (int)(i % 2), x, &memo, a->halves + 2 * a->blocks);
    if (memo && memo != had && tn__self.error == TN_OK) a->halves[i].memo = tn_keep(memo), tn_drop(had);
    if (tn__self.error != TN_OK) return NULL;
    if (y && tn_shape_equal(y->l.shape, like->l.shape)) return y;
    return tn_raise_null(TN_ESHAPE, "tn_reversible: the function of block %lld returned %s, but it is added to %s",
                         (long long)(i / 2), y ? tn_shape_text(y->l.shape, s, sizeof s) : "NULL",
                         tn_shape_text(like->l.shape, t, sizeof t));
}

/* Runs half i again, on a tape. *h is its result. Returns the gradient of x, given the gradient g of the sum to which
 * the result was added; NULL: none, or raised. */
static tn_tensor *run_back(tn_back *b, int64_t i, tn_tensor *x, tn_tensor *g, tn_tensor **h)
{
    const args_t  *a = b->args;
    const uint64_t floor = tn__tape.seq;
    const tn_mode  mode = tn__self.mode;
    tn_generator   again = a->halves[i].before, *now = tn_use_generator(&again);
    tn_tensor     *leaf = tn_requires_grad(tn_detach(x)), *grad = NULL, *y = NULL;
    tn__self.mode = a->mode;
    if (leaf) y = run(a, i, leaf, x);
    if (y && !tn__up_to_date(y, "tn_reversible", "the function's result", -1)) y = NULL; /* written through a view */
    tn__self.mode = mode;
    *h = y ? tn_detach(y) : NULL;
    if (y && tn__needs_grad(y) && tn__self.error == TN_OK) {
        tn_tensor              *seed = tn_to(g, y->dtype);
        const tn__backward_pass p = {
            .roots = 1, .root = &y, .seed = &seed, .count = 1, .wrt = &leaf, .grad = &grad, .name = "tn_reversible"};
        if (seed) tn__backward_inside(&p, b->engine, floor);
    }
    tn_use_generator(now);
    return grad;
}

/* a + b, in a's dtype, or a if b is NULL; owned by the caller. */
static tn_tensor *sum(tn_tensor *a, tn_tensor *b) { return tn_keep(b ? tn_add(a, tn_to(b, tn_dtype_of(a))) : a); }

/* Drops *old and stores `now` there. */
static void replace(tn_tensor **old, tn_tensor *now)
{
    tn_drop(*old);
    *old = now;
}

static void backward(tn_back *b)
{
    const args_t *a = b->args;
    tn_tensor    *y[2], *g[2]; /* owned */
    if (!tn__used_unchanged(&a->used, "tn_reversible")) return;
    for (int k = 0; k < 2; k++) {
        y[k] = tn_keep(b->out[k]);
        g[k] = b->gy[k] ? tn_keep(b->gy[k]) : tn__new_owned(b->out[k]->dtype, b->out[k]->l.shape);
        if (g[k] && !b->gy[k]) tn__fill(g[k], 0);
    }
    for (int64_t i = 2 * a->blocks - 1; i >= 0 && tn__self.error == TN_OK; i--) {
        const int      to = (int)(i % 2), from = 1 - to; /* half 1 adds fn(y[0]) to y[1] */
        const tn_scope s = tn_scope_begin();
        tn_tensor     *h = NULL, *grad = run_back(b, i, y[from], g[to], &h);
        if (h && tn__self.error == TN_OK) {
            replace(&g[from], sum(g[from], grad));
            replace(&y[to], tn_keep(tn_to(tn_sub(y[to], h), b->out[to]->dtype)));
        }
        tn_scope_end(s);
    }
    for (int k = 0; k < 2; k++) {
        tn_drop(y[k]);
        if (tn__self.error == TN_OK) b->gx[k] = tn__scoped(g[k]);
        else tn_drop(g[k]);
    }
}

static const tn_op op = {.size = sizeof(tn_op),
                         .name = "reversible",
                         .inputs = 2,
                         .outputs = 2,
                         .saves = TN__SAVE_ALL_IN | TN__RUNS_AGAIN | TN_SAVE_OUT(0) | TN_SAVE_OUT(1),
                         .args_size = sizeof(args_t),
                         .args_copy = take_args,
                         .args_free = free_args,
                         .infer = infer,
                         .forward = forward,
                         .backward = backward};

/* Computes both results, owned by the caller. False: raised, both NULL. */
static bool run_all(const args_t *a, tn_tensor *const x[2], tn_tensor *y[2])
{
    tn_tensor *now[2] = {tn_keep(x[0]), tn_keep(x[1])};
    for (int64_t i = 0; i < 2 * a->blocks && tn__self.error == TN_OK; i++) {
        const int      to = (int)(i % 2);
        const tn_scope s = tn_no_grad_begin();
        a->halves[i].before = *tn_current_generator();
        tn_tensor *h = run(a, i, now[1 - to], now[to]), *sum_ = h ? tn_add(now[to], h) : NULL;
        tn_tensor *mine = sum_ ? tn_keep(tn_to(sum_, now[to]->dtype)) : NULL;
        tn_scope_end(s);
        if (mine) tn_drop(now[to]), now[to] = mine;
    }
    for (int k = 0; k < 2; k++) {
        if (tn__self.error == TN_OK) y[k] = tn__alias_owned(now[k], &now[k]->l);
        tn_drop(now[k]);
    }
    if (tn__self.error == TN_OK) return true;
    tn_drop(y[0]), tn_drop(y[1]);
    return y[0] = y[1] = NULL, false;
}

static bool fits(tn_reversible_fn fn, int64_t blocks, tn_tensor *const x[2])
{
    if (!fn || blocks < 1 || blocks > 1 << 20 || !x || !x[0] || !x[1])
        return tn_raise_false(TN_EINVAL, "tn_reversible: needs a function, from 1 to %d blocks, and two tensors",
                              1 << 20);
    for (int k = 0; k < 2; k++) {
        if (!tn__alive("tn_reversible", x[k])) return false;
        if (!tn__is_float(x[k]->dtype))
            return tn_raise_false(TN_EDTYPE, "tn_reversible: x[%d] must be floating, got %s", k,
                                  tn_dtype_name(x[k]->dtype));
        if (!tn__self.mode.no_grad && !tn__up_to_date(x[k], "tn_reversible", "x", k)) return false;
    }
    if (tn__self.mode.replaced && !tn__self.mode.no_grad)
        return tn_raise_false(TN_EUNSUPPORTED, "tn_reversible: cannot be recorded while tn_functional_begin replaces "
                                               "tensors; its backward would compute with the original ones");
    return true;
}

tn_status tn_reversible(tn_reversible_fn fn, const void *user, size_t bytes, int64_t blocks, tn_tensor *const x[2],
                        tn_tensor *y[2])
{
    if (y) y[0] = y[1] = NULL;
    if (tn__blocked()) return tn__self.error;
    if (!y) return tn_raise(TN_EINVAL, "tn_reversible: the array of results, y, is NULL");
    if (bytes > 1 << 20 || (bytes && !user))
        return tn_raise(TN_EINVAL, "tn_reversible: user has %zu bytes, at most 2^20 are copied", bytes);
    if (!fits(fn, blocks, x)) return tn__self.error;
    tn_generator      *g = tn_current_generator();
    const tn_generator before = *g;
    bool               taken = false;
    const size_t       front = 2 * (size_t)blocks * sizeof(half);
    args_t     args = {.fn = fn, .blocks = blocks, .bytes = front + bytes, .taken = &taken, .mode = tn__self.mode};
    tn_tensor *own[2] = {NULL, NULL};
    if (!(args.halves = tn__mem_zeroed(args.bytes))) return tn__self.error;
    if (bytes) memcpy(args.halves + 2 * blocks, user, bytes);
    const bool need[2] = {tn__needs_grad(x[0]), tn__needs_grad(x[1])}, taped = !tn__self.mode.no_grad;
    tn__node  *node = taped ? tn__record(&op, 2, x, 2, need, &args) : NULL;
    if (node) {
        tn__used *used = &((args_t *)node->args)->used;
        tn__used_begin(used);
        if (tn__record_saved(node, x, NULL)) run_all(&args, x, own);
        tn__used_end(used);
    } else if (!taped) {
        run_all(&args, x, own);
    }
    if (node && tn__self.error == TN_OK && !tn__record_results(node, own)) tn_drop(own[0]), tn_drop(own[1]);
    for (int k = 0; k < 2 && tn__self.error == TN_OK; k++) {
        if (node) {
            own[k]->node = &node->object, own[k]->output = (uint8_t)k, own[k]->unrecorded = false;
            atomic_fetch_add_explicit(&node->object.refs, 1, memory_order_relaxed);
        }
    }
    tn__node_drop(node);
    if (!taken) free_args(&args);
    for (int k = 0; k < 2 && tn__self.error == TN_OK; k++) y[k] = tn__scoped(own[k]), own[k] = NULL;
    if (tn__self.error == TN_OK) return TN_OK;
    *g = before; /* a failed call draws no random numbers */
    return y[0] = y[1] = NULL, tn__self.error;
}

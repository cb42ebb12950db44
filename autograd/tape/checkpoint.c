/* checkpoint.c — gradient checkpointing: a segment runs without a tape, and again, on the tape, when its gradient is
 * needed.
 *
 * The second run uses a copy of the generator from before the first, so that dropout draws the same mask. Leaves used
 * inside (parameters) collect in the running backward. The second run's backward adds to the gradients that the inputs
 * already have from later ops: so all sums have the same order as without a checkpoint. Replacements of parameters
 * (tn_functional_begin) are further inputs of the node: they get gradients, and the second run uses them. */
#include "autograd/tape/budget.h"
#include "autograd/tape/engine.h"
#include "autograd/tape/history.h"
#include "autograd/tape/op_api.h"
#include "autograd/tape/replaced.h"
#include "autograd/tape/unchanged.h"
#include "autograd/tape/unwind.h"

#include <string.h>

typedef struct {
    tn_segment   fn;
    void        *user;
    tn_generator before;
    tn_mode      mode;
    tn__used     used;   /* filled by the first run, in the node's copy of these args */
    tn_budget   *budget; /* the budget that chose segment `at`; may be NULL */
    int64_t      at;
    tn_tensor  **replaced; /* [count] of the tensors that the last inputs replace; only compared */
    int          count;
} args_t;

static void free_args(void *args)
{
    args_t *a = args;
    tn__used_free(&a->used);
    tn__mem_put(a->replaced, (size_t)a->count * sizeof *a->replaced);
}

static bool infer(tn_ctx *c)
{
    (void)c;
    return true; /* not called: tn_checkpoint records the node itself */
}
static void forward(tn_ctx *c) { (void)c; }

/* Moves the gradient that input i has from later ops to *to, so that sums have the same order as without a checkpoint;
 * NULL if it has none. */
static void take_gradient(const tn_back *b, int i, tn_tensor **to)
{
    tn__engine_run *r = ((void **)b->engine)[0];
    const tn__node *n = ((void **)b->engine)[1];
    bool            bad;
    tn_tensor     **has = tn__target(r, n, i, &bad);
    *to = has ? *has : NULL;
    if (has) *has = NULL;
}

static void backward(tn_back *b)
{
    const args_t *a = b->args;
    if (!tn__used_unchanged(&a->used, "tn_checkpoint")) return;
    tn_generator  again = a->before, *now = tn_use_generator(&again);
    uint64_t      floor = tn__tape.seq;
    const tn_mode mode = tn__self.mode;
    tn_tensor    *wrt_few[8], **wrt = wrt_few;
    char          x[192], y[192];
    int           count = 0, given = b->nin - a->count;
    size_t        bytes = 2 * (size_t)b->nin * sizeof *wrt;
    tn__replaced  by = {NULL, a->count, a->replaced, b->in + given};
    tn__self.mode = a->mode, tn__self.mode.replaced = a->count ? &by : NULL;
    tn__budget_before(a->budget, a->at);
    tn_budget     *open = tn__tape.budget;
    const tn_scope s = tn_scope_begin();
    tn__tape.budget = NULL;
    tn_tensor *out = tn_scope_return(s, a->fn(b->in, given, a->user));
    tn__tape.budget = open;
    tn__budget_after(a->budget, a->at, out);
    if (out && !tn__up_to_date(out, "tn_checkpoint", "the segment's result", -1)) out = NULL;
    if (out && out->node && tn__node_of(out)->seq <= floor)
        out = tn_view(out, out->l.shape); /* the segment returned an input: a view of it has a node of the second run */
    tn__self.mode = mode;
    if (tn__self.error != TN_OK) goto done;
    if (!out || !tn_shape_equal(out->l.shape, b->gy[0]->l.shape)) {
        tn_raise(
            TN_ESHAPE,
            "tn_checkpoint: the segment returned %s in its second run, and %s in its first; it must do the same each "
            "time",
            out ? tn_shape_text(out->l.shape, x, sizeof x) : "nothing", tn_shape_text(b->gy[0]->l.shape, y, sizeof y));
        goto done;
    }
    if (!tn__needs_grad(out)) goto done; /* in the second run nothing requires grad */
    if (b->nin > 4 && !(wrt = tn__mem_get(bytes))) goto done;
    tn_tensor **grad = wrt + b->nin;
    for (int i = 0; i < b->nin; i++)
        if (b->need[i]) take_gradient(b, i, grad + count), wrt[count++] = b->in[i];
    tn__backward_pass p = {.roots = 1,
                           .root = &out,
                           .seed = b->gy,
                           .count = count,
                           .wrt = wrt,
                           .grad = grad,
                           .adds = true,
                           .inputs = b->nin,
                           .input = b->in,
                           .create_graph = tn__creates_graph(b),
                           .name = "tn_checkpoint"};
    if (tn__backward_inside(&p, b->engine, floor) != TN_OK) goto done;
    for (int i = 0, k = 0; i < b->nin; i++)
        if (b->need[i]) b->gx[i] = grad[k++];
done:
    if (wrt != wrt_few) tn__mem_put(wrt, bytes);
    tn_use_generator(now);
}

static const tn_op op = {.size = sizeof(tn_op),
                         .name = "checkpoint",
                         .inputs = TN_ANY,
                         .saves = TN__SAVE_ALL_IN | TN__RUNS_AGAIN,
                         .args_size = sizeof(args_t),
                         .args_free = free_args,
                         .infer = infer,
                         .forward = forward,
                         .backward = backward,
                         .backward_ops = backward};

static void drop_node(tn__node **n) { tn__node_drop(*n); }

/* The first run, on `given` of the node's n inputs; the others replace of[]. Recorded before it runs, so that a segment
 * that overwrites its inputs is detected; and even if no input requires grad, since parameters inside may. */
static tn_tensor *first_run(const args_t *args, int given, int n, tn_tensor *const *in, tn_tensor *const *of)
{
    const size_t bytes = (size_t)(n - given) * sizeof *of;
    bool         few[16], *need = few;
    tn_tensor   *out = NULL;
    if (n > 16 && !(need = tn__mem_get((size_t)n))) return NULL;
    for (int i = 0; i < n; i++) need[i] = tn__needs_grad(in[i]);
    __attribute__((cleanup(drop_node))) tn__node *node = tn__record(&op, n, in, 1, need, args);
    if (need != few) tn__mem_put(need, (size_t)n);
    args_t *own = node ? node->args : NULL;
    if (own && bytes && (own->replaced = tn__mem_get(bytes))) own->count = n - given, memcpy(own->replaced, of, bytes);
    if (own && tn__self.error == TN_OK && tn__record_saved(node, in, NULL)) {
        tn_scope s = tn_no_grad_begin();
        tn__self.mode.trains = true;
        tn__used_begin(&own->used);
        tn_budget *open = tn__tape.budget;
        tn__tape.budget = NULL;
        tn_tensor *y = args->fn(in, given, args->user);
        tn__tape.budget = open;
        if (y && tn__self.error == TN_OK) tn__used_add(1, &y); /* a leaf of its own, which no op read */
        tn__used_end(&own->used);
        if (!y && tn__self.error == TN_OK) tn_raise(TN_EINVAL, "tn_checkpoint: the segment returned NULL");
        if (tn__self.error == TN_OK) out = tn__alias_owned(y, &y->l);
        tn_scope_end(s);
    }
    if (out && tn__is_float(out->dtype)) out->node = &node->object, out->unrecorded = false, node = NULL;
    return tn__scoped(out);
}

/* tn_checkpoint as segment `at` of b's pass; b may be NULL. */
static tn_tensor *checkpoint(tn_segment fn, void *user, int n, tn_tensor *const *in, tn_budget *b, int64_t at)
{
    if (tn__blocked()) return NULL;
    if (!fn || n < 0 || (n && !in))
        return tn_raise_null(TN_EINVAL, "tn_checkpoint: needs a function and an array of inputs");
    for (int i = 0; i < n; i++)
        if (!in[i]) return tn_raise_null(TN_EINVAL, "tn_checkpoint: input %d is NULL", i);
        else if (!tn__alive("tn_checkpoint", in[i])) return NULL;
        else if (!tn__self.mode.no_grad && !tn__up_to_date(in[i], "tn_checkpoint", "input", i)) return NULL;
    TN__UNWINDS   u = tn__unwind_begin();
    tn_generator *g = tn_current_generator();
    const args_t  args = {.fn = fn, .user = user, .before = *g, .mode = tn__self.mode, .budget = b, .at = at};
    const int     count = tn__replaced_list(NULL, NULL), all = n + count;
    const size_t  bytes = (size_t)(all + count) * sizeof *in;
    tn_tensor   **more = count ? tn__mem_get(bytes) : NULL, *out = NULL; /* more: inputs, replacements, replaced */
    if (count && !more) return NULL;
    for (int i = 0; i < n && more; i++) more[i] = tn__replacement(in[i]);
    if (more) in = more, tn__replaced_list(more + all, more + n);
    bool ready = true;
    for (int i = 0; more && !tn__self.mode.no_grad && i < all; i++)
        ready = ready && tn__up_to_date(more[i], "tn_checkpoint", "a replacement", -1);
    if (tn__self.mode.no_grad) out = fn(in, n, user);
    else if (ready) out = first_run(&args, n, all, in, more ? more + all : NULL);
    if (more) tn__mem_put(more, bytes);
    if (tn__self.error == TN_OK) return out;
    *g = args.before; /* a failed call draws no random numbers */
    return NULL;
}

tn_tensor *tn_checkpoint(tn_segment fn, void *user, int n, tn_tensor *const *in)
{
    return checkpoint(fn, user, n, in, NULL, 0);
}

tn_tensor *tn_recomputable(tn_segment fn, void *user, int n, tn_tensor *const *in)
{
    int64_t at;
    bool    recomputed;
    if (tn__blocked()) return NULL;
    if (!fn || n < 0 || (n && !in))
        return tn_raise_null(TN_EINVAL, "tn_recomputable: needs a function and an array of inputs");
    for (int i = 0; i < n; i++)
        if (!in[i]) return tn_raise_null(TN_EINVAL, "tn_recomputable: input %d is NULL", i);
    TN__UNWINDS u = tn__unwind_begin();
    tn_budget  *b = tn__tape.budget;
    if (!tn_budget_is_open() || !n) return fn(in, n, user);
    if (!tn__budget_segment(b, in[0], &at, &recomputed)) return NULL;
    if (recomputed) return checkpoint(fn, user, n, in, b, at);
    const tn_scope s = tn_scope_begin(); /* frees all that is not on the tape, as after a second run */
    tn__tape.budget = NULL;
    tn_tensor *y = tn_scope_return(s, fn(in, n, user));
    tn__tape.budget = b;
    return y;
}

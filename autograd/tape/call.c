/* call.c — the call of an op. The steps, in this order:
 *
 *   checks      the inputs are alive and, if in memory changed in place, have their current nodes
 *   infer       the op's rule: dtype and shape of each result, or an error
 *   allocation  the results; those of a view share the memory of input 0
 *   record      if an input requires grad: a node with the origins of the inputs and the tensors that backward reads
 *   forward     computes the results
 *   link        the results point to the node
 *
 * Everything that can fail comes before the forward, so that a failed call has changed nothing.
 *
 * In other files: call_inplace.c writes a result over input 0, autocast.c converts inputs, replaced.c replaces them,
 * anomaly.c looks for NaN, profile.c measures time, unchanged.c notes leaves. */
#include "autograd/tape/call.h"
#include "autograd/tape/history.h"
#include "autograd/tape/profile.h"
#include "autograd/tape/replaced.h"
#include "autograd/tape/replay.h"
#include "autograd/tape/unchanged.h"
#include "core/base/checks.h"
#include "core/base/parallel.h"

enum { LIMITS_AFTER = 256 }; /* calls: then the limits on the number of threads are read again */
enum { MOST_RESULTS = 255 };

/* Raises if the op is not filled in correctly, or the lists do not fit it. */
static tn_status check_op(const tn_op *op, int nin, tn_tensor *const *in, int nout, tn_tensor **out)
{
    if (!op || !op->name) return tn_raise(TN_EINVAL, "tn_op_call: the op is NULL or has no name");
    if (nin < 0) return tn_raise(TN_EINVAL, "%s: the number of inputs is %d", op->name, nin);
    if (nin && !in) return tn_raise(TN_EINVAL, "%s: the list of %d inputs is NULL", op->name, nin);
    if (nout < 1 || nout > MOST_RESULTS)
        return tn_raise(TN_EINVAL, "%s: %d results were requested; an op has 1 to %d", op->name, nout, MOST_RESULTS);
    if (!out) return tn_raise(TN_EINVAL, "%s: the list of results, out, is NULL", op->name);
    if (op->size != sizeof(tn_op)) {
        if (!op->size) return tn_raise(TN_EINVAL, "%s: the op's field .size is 0; set .size = sizeof(tn_op)", op->name);
        return tn_raise(TN_EUNSUPPORTED,
                        "%s: its tn_op has %zu bytes, this library's has %zu: it was compiled for another version",
                        op->name, op->size, sizeof(tn_op));
    }
    if (op->inputs != TN_ANY && op->inputs != nin)
        return tn_raise(TN_EINVAL, "%s: takes %d inputs, got %d", op->name, op->inputs, nin);
    if (op->outputs != TN_ANY && nout != (op->outputs ? op->outputs : 1))
        return tn_raise(TN_EINVAL, "%s: has %d results, %d were requested", op->name, op->outputs ? op->outputs : 1,
                        nout);
    if (!op->infer || !(op->forward || op->compose))
        return tn_raise(TN_EINVAL, "%s: the op has no .infer or no .forward", op->name);
    return TN_OK;
}

static tn_status check_input(const tn_op *op, int i, tn_tensor *x)
{
    if (__builtin_expect(!x, 0)) {
        if (i < 32 && op->optional & 1u << i) return TN_OK;
        return tn_raise(TN_EINVAL, "%s: input %d is NULL", op->name, i);
    }
    if (tn__object_freed(&x->object)) {
        char role[32];
        snprintf(role, sizeof role, "input %d", i);
        return tn__object_misused(op->name, role), tn__self.error;
    }
    if (tn__outdated(x) && !tn__self.mode.no_grad) tn__update_node(x, op->name, "input", i);
    return tn__self.error;
}

/* Checks the inputs, and sets o->record if one of them requires grad. */
static tn_status check_inputs(tn__call *o)
{
    const tn_ctx *c = &o->c;
    for (int i = 0; i < c->nin; i++) {
        if (check_input(c->op, i, c->in[i]) != TN_OK) return tn__self.error;
        o->need[i] = c->in[i] && tn__needs_grad(c->in[i]);
        o->record = o->record || o->need[i];
    }
    o->record = o->record && !tn__self.mode.no_grad;
    return tn__self.error;
}

/* Checks what infer decided, and whether the call is recorded. */
static tn_status check_results(tn__call *o)
{
    const tn_ctx *c = &o->c;
    bool          any_float = false;
    if (o->inplace && tn__check_target(c) != TN_OK) return tn__self.error;
    for (int i = 0; i < c->nout; i++) {
        const tn_result *r = &c->result[i];
        if (r->shape.n == -1)
            return tn_raise(TN_EINVAL, "%s: its infer left result %d without a shape", c->op->name, i);
        any_float = any_float || tn__is_float(r->dtype);
        if (!tn__shape_check(c->op->name, r->dtype, r->shape)) return tn__self.error;
    }
    o->record = o->record && any_float;
    if (o->record && !c->op->backward && !c->op->backward_ops)
        return tn_raise(TN_EUNSUPPORTED,
                        "%s: has no backward, so it cannot be recorded; give the op one, or call it on tn_detach(x) or "
                        "after tn_no_grad_begin()",
                        c->op->name);
    return TN_OK;
}

/* Allocates the results; a view shares its input's memory. */
static bool allocate(const tn_ctx *c)
{
    for (int i = 0; i < c->nout && !c->op->view; i++)
        if (!(c->out[i] = tn__new_owned(c->result[i].dtype, c->result[i].shape))) return false;
    return true;
}

/* Records the call: returns its node, to which the results are not linked yet; NULL: raised. */
static tn__node *record(const tn__call *o)
{
    const tn_ctx *c = &o->c;
    tn__node     *node = tn__record(c->op, c->nin, c->in, c->nout, o->need, c->args);
    if (!node) return NULL;
    if (tn__record_saved(node, c->in, NULL) && (c->op->view || tn__record_results(node, c->out))) return node;
    return tn__node_drop(node), NULL;
}

static tn_status compute(const tn_ctx *c)
{
    if (tn__compute(*c) == TN_OK && c->op->view && !c->out[0])
        tn_raise(TN_ENOMEM, "%s: no memory for a view", c->op->name);
    return tn__self.error;
}

/* Anomaly mode checks results. Not views: they compute no values, and their memory may not have been written yet. */
static bool finite(const tn_ctx *c)
{
    return !tn__tape.anomaly || tn__tape.inside || c->op->view || tn__results_finite(c);
}

/* Marks a view of a tensor on the tape that was made without recording. */
static void mark_view(const tn_ctx *c, tn__node *node)
{
    const tn_tensor *x = c->in[0];
    const bool       same = c->out[0]->storage == x->storage;
    if (node) node->copied = !same;
    else if (same && tn__self.mode.no_grad && (tn__needs_grad(x) || tn__outdated(x))) c->out[0]->unrecorded = true;
}

/* After the forward: links the results to their node, whose reference goes to the first of them. */
static void link_results(const tn_ctx *c, tn__node *node)
{
    if (c->op->view) mark_view(c, node);
    for (int i = 0, links = 0; node && i < c->nout; i++) {
        if (node->saved_out[i].t) node->saved_out[i].version = tn__version_of(c->out[i]); /* as forward left it */
        if (!tn__is_float(c->out[i]->dtype)) continue;
        if (links++) tn__object_keep(&node->object);
        c->out[i]->node = &node->object, c->out[i]->output = (uint8_t)i;
    }
}

/* Allocates, records, computes, links. The results belong to the open scope. */
static void run(const tn__call *o)
{
    const tn_ctx *c = &o->c;
    tn__node     *node = NULL;
    if (allocate(c) && (!o->record || (node = record(o))) && compute(c) == TN_OK && finite(c)) {
        link_results(c, node);
        node = NULL;
        if (__builtin_expect(tn__self.mode.replay, 0)) tn__replay_add(c, c->in, false);
    }
    tn__node_drop(node);
    bool ok = tn__self.error == TN_OK;
    for (int i = 0; i < c->nout; i++) {
        if (ok) ok = tn__scoped(c->out[i]) != NULL;
        else tn_drop(c->out[i]);
        if (!ok) c->out[i] = NULL;
    }
}

/* Runs an op made of ops. Its intermediate results are freed when it returns; after a failure the generator is
 * restored. */
static tn_status compose(tn_ctx *c)
{
    tn_generator      *g = tn_current_generator();
    const tn_generator before = *g;
    tn_scope           s = tn_scope_begin();
    c->op->compose(c);
    if (tn__self.error == TN_OK)
        for (int i = 0; i < c->nout; i++)
            if (!c->out[i]) tn_raise(TN_EINVAL, "%s: its compose left result %d empty", c->op->name, i);
    bool ok = tn__self.error == TN_OK;
    for (int i = 0; ok && i < c->nout; i++) tn_keep(c->out[i]);
    tn_scope_end(s);
    for (int i = 0; i < c->nout; i++) c->out[i] = ok ? tn__scoped(c->out[i]) : NULL;
    if (tn__self.error != TN_OK) *g = before;
    return tn__self.error;
}

/* Checks and runs the call, once the lists of o are allocated. */
static void carry_out(tn__call *o)
{
    tn_ctx *c = &o->c;
    if (check_inputs(o) != TN_OK) return;
    for (int i = 0; i < c->nout; i++) c->result[i].dtype = TN_F32, c->result[i].shape.n = -1;
    const uint16_t replay = tn__self.mode.replay;
    if (__builtin_expect(replay, 0)) tn__self.mode.replay = 2, tn__self.value_read = false;
    const bool inferred = c->op->infer(c);
    tn__self.mode.replay = replay;
    if (!inferred) {
        if (tn__self.error == TN_OK)
            tn_raise(TN_EINVAL, "%s: infer rejected the call without raising an error", c->op->name);
        return;
    }
    if (c->op->compose) compose(c);
    else if (check_results(o) != TN_OK) return;
    else if (o->inplace) tn__run_inplace(o);
    else run(o);
}

static tn_status checked(const tn_op *op, int nin, tn_tensor *const *in, int nout, tn_tensor **out, const void *args,
                         bool inplace)
{
    if (inplace && (!op->inplace || op->compose || nin < 1 || nin > TN__FEW))
        return tn_raise(TN_EINVAL, "%s: has no in-place form", op->name);
    if (inplace && !in[0]) return tn_raise(TN_EINVAL, "%s_: the target is NULL", op->name);
    tn__call o;
    o.c = (tn_ctx){.op = op, .args = args, .nin = nin, .nout = nout, .in = in, .result = o.result_few, .out = out};
    o.inplace = inplace, o.record = false, o.need = o.need_few, o.cast = NULL;
    if (!(__builtin_expect(tn__tape.used != NULL, 0) && !tn__used_add(nin, in)) && /* before autocast replaces inputs */
        !(nin > TN__FEW && !(o.need = tn__mem_get((size_t)nin))) &&
        !(nout > TN__FEW && !(o.c.result = tn__mem_get((size_t)nout * sizeof *o.c.result))) &&
        (__builtin_expect(!tn__self.mode.autocast, 1) || tn__autocast(&o) == TN_OK))
        carry_out(&o);
    for (int i = 0; tn__self.error != TN_OK && i < nout; i++) out[i] = NULL;
    if (o.need != o.need_few) tn__mem_put(o.need, (size_t)nin);
    if (o.c.result && o.c.result != o.result_few) tn__mem_put(o.c.result, (size_t)nout * sizeof *o.c.result);
    if (o.cast) tn__mem_put(o.cast, (size_t)nin * sizeof *o.cast);
    return tn__self.error;
}

static tn_status call(const tn_op *op, int nin, tn_tensor *const *in, int nout, tn_tensor **out, const void *args,
                      bool inplace)
{
    for (int i = 0; out && i < nout; i++) out[i] = NULL;
    if (tn__blocked()) return tn__self.error;
    if (__builtin_expect(++tn__self.calls % LIMITS_AFTER == 0, 0)) tn__threads_again();
    if (check_op(op, nin, in, nout, out) != TN_OK || !out) return tn__self.error;
    if (__builtin_expect(tn__self.mode.replay && !tn__tape.replay, 0)) /* in a worker of a parallel loop */
        return tn__unreplayable(op->name), tn__self.error;
    if (__builtin_expect(tn__self.mode.replaced != NULL, 0))
        return tn__call_replaced(op, nin, in, nout, out, args, inplace);
    if (__builtin_expect(!tn__tape.profile, 1)) return checked(op, nin, in, nout, out, args, inplace);
    tn__timed_begin(NULL, op->name, TN__TIMED_OP, false);
    const tn_status status = checked(op, nin, in, nout, out, args, inplace);
    if (status == TN_OK && !op->view) tn__timed_bytes(nin, in), tn__timed_bytes(nout, out);
    tn__timed_end();
    return status;
}

tn_status tn_op_call(const tn_op *op, int nin, tn_tensor *const *in, int nout, tn_tensor **out, const void *args)
{
    return call(op, nin, in, nout, out, args, false);
}

tn_tensor *tn_op_apply(const tn_op *op, const void *args, int nin, tn_tensor *const *in)
{
    tn_tensor *y;
    return call(op, nin, in, 1, &y, args, false), y;
}

tn_tensor *tn_op_apply_(const tn_op *op, const void *args, int nin, tn_tensor *const *in)
{
    tn_tensor *y;
    return call(op, nin, in, 1, &y, args, true), y;
}

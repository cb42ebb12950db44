/* call.c — the call of an op: checks, then allocation, then the record on the tape, then the forward. Everything that
 * can fail comes before the forward, so that a failed call has changed nothing. */
#include "core/base/checks.h"
#include "autograd/tape/profile.h"
#include "core/skeletons/skeletons.h"
#include "autograd/tape/tape.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

enum { FEW = 8, MOST_RESULTS = 255 }; /* lists of up to FEW inputs and results are on the stack */

bool tn_infer_fail(const tn_ctx *c, tn_status code, const char *fmt, ...)
{
    char    text[700];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt ? fmt : " ", ap);
    va_end(ap);
    tn_raise(code, "%s: %s", c ? c->op->name : "tn_infer_fail", text);
    return false;
}

bool tn_infer_like(tn_ctx *c, int i, int k)
{
    if (!tn__not_null("tn_infer_like", "the call", c)) return false;
    if (i < 0 || i >= c->nout || k < 0 || k >= c->nin || !c->in[k])
        return tn_infer_fail(c, TN_EINVAL, "its infer makes result %d of %d like input %d of %d, which does not exist",
                             i, c->nout, k, c->nin);
    c->result[i].dtype = c->in[k]->dtype;
    c->result[i].shape = c->in[k]->l.shape;
    return true;
}

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
    if (tn__object_gone(&x->object)) {
        char role[32];
        snprintf(role, sizeof role, "input %d", i);
        tn__object_misused(op->name, role);
        return tn__self.error;
    }
    if (tn__outdated(x) && !tn__self.mode.no_grad) tn__update_node(x, op->name, "input", i);
    return tn__self.error;
}

/* The leaf whose memory x shows: x itself, or the leaf that x is a recorded view of; NULL: no leaf. */
static const tn_tensor *leaf_under(const tn_tensor *x)
{
    if (x->leaf) return x;
    for (const tn__node *n = tn__node_of(x); n && n->op->view && n->nin; n = n->edge[0].node)
        if (n->edge[0].leaf) return n->edge[0].leaf->storage == x->storage ? n->edge[0].leaf : NULL;
    return NULL;
}

/* Checks that input 0 may be overwritten. Rejects a target that shows an element more than once (expanded dims), and a
 * leaf or a view of one: the leaf's gradient would no longer be that of its old value. */
static tn_status check_target(const tn_op *op, const tn_ctx *c)
{
    const tn_tensor *x = c->in[0], *leaf = tn__self.mode.no_grad ? NULL : leaf_under(x);
    char             a[192], b[192];
    if (leaf)
        return tn_raise(TN_ESTATE,
                        "%s_: %s%s%s%s collects gradients and cannot be overwritten on the tape; change it between "
                        "tn_no_grad_begin() and tn_scope_end()",
                        op->name, leaf == x ? "" : "the target is a view, and ", leaf->name ? "'" : "",
                        leaf->name  ? leaf->name
                        : leaf == x ? "this tensor"
                                    : "its base",
                        leaf->name ? "'" : "");
    if (x->storage->homed && !tn__may_write(op->name, x)) return tn__self.error;
    if (x->unrecorded && !tn__self.mode.no_grad)
        return tn_raise(
            TN_ESTATE,
            "%s_: the target is a view that was made after tn_no_grad_begin(), so the change would not be recorded "
            "for its base; make the view again while recording",
            op->name);
    if (!tn__layout_contiguous(&x->l) && tn__layout_repeats(&x->l))
        return tn_raise(
            TN_EINVAL,
            "%s_: several elements of the target share memory (it is expanded, or made of overlapping windows); "
            "tn_clone it first",
            op->name);
    if (c->result[0].dtype != x->dtype)
        return tn_raise(TN_EDTYPE, "%s_: the result is %s and cannot overwrite a tensor of %s", op->name,
                        tn_dtype_name(c->result[0].dtype), tn_dtype_name(x->dtype));
    if (!tn_shape_equal(c->result[0].shape, x->l.shape))
        return tn_raise(TN_ESHAPE, "%s_: the result has shape %s and cannot overwrite one of shape %s", op->name,
                        tn_shape_text(c->result[0].shape, a, sizeof a), tn_shape_text(x->l.shape, b, sizeof b));
    return TN_OK;
}

static bool same_place(const tn_tensor *a, const tn_tensor *b)
{
    if (a->dtype != b->dtype || a->l.offset != b->l.offset || !tn_shape_equal(a->l.shape, b->l.shape)) return false;
    return !memcmp(a->l.stride, b->l.stride, (size_t)a->l.shape.n * sizeof *a->l.stride);
}

static tn_tensor *copy_owned(const tn_tensor *x)
{
    tn_tensor *y = tn__new_owned(x->dtype, x->l.shape);
    if (y) tn__copy(y, x);
    return y;
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

/* The state of one call. Lists of up to FEW are inside it, so that a usual call allocates only its results. */
typedef struct {
    tn_ctx     c;
    bool       inplace, record;
    bool      *need; /* inputs that require grad */
    bool       need_few[FEW];
    tn_result  result_few[FEW];
    tn_tensor *cast_few[FEW], **cast; /* the inputs as converted by autocast, if on the heap */
} one_call;

/* The state of an in-place call, in addition to its target. */
typedef struct {
    tn_tensor *in[FEW];    /* the inputs, for forward */
    tn_tensor *apart[FEW]; /* copies of inputs that the result would overwrite before they are read */
    tn_tensor *original;   /* a copy of the target, if its backward reads it */
    tn_tensor *undo;       /* in anomaly mode: another copy, to restore the target if the result is rejected */
    tn__rebase rebase;     /* the change of the memory's history; */
    bool       rebased;    /* false: none yet */
} overwritten;

/* Under autocast: converts the inputs as the op's .autocast states. */
static tn_status cast_inputs(one_call *o)
{
    tn_ctx *c = &o->c;
    if (c->op->autocast <= TN_AS_IS || o->inplace || !c->nin) return TN_OK;
    tn_tensor **list = o->cast_few;
    if (c->nin > FEW && !(list = o->cast = tn__mem_get((size_t)c->nin * sizeof *list))) return tn__self.error;
    memcpy(list, c->in, (size_t)c->nin * sizeof *list);
    c->in = list;
    tn__autocast(c->op, c->nin, list);
    return tn__self.error;
}

/* Checks the inputs, and sets o->record if one of them requires grad. */
static tn_status check_inputs(one_call *o)
{
    const tn_ctx *c = &o->c;
    bool          homed = false;
    for (int i = 0; i < c->nin; i++) {
        if (check_input(c->op, i, c->in[i]) != TN_OK) return tn__self.error;
        homed = homed || (c->in[i] && c->in[i]->storage->homed);
        o->need[i] = c->in[i] && tn__needs_grad(c->in[i]);
        o->record = o->record || o->need[i];
    }
    o->record = o->record && !tn__self.mode.no_grad;
    if (__builtin_expect(homed, 0)) tn__bring(c->nin, c->in);
    return tn__self.error;
}

/* Checks what infer decided, and whether the call is recorded. */
static tn_status check_results(one_call *o)
{
    const tn_ctx *c = &o->c;
    bool          any_float = false;
    if (o->inplace && check_target(c->op, c) != TN_OK) return tn__self.error;
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
static bool allocate(const one_call *o, overwritten *w)
{
    const tn_ctx *c = &o->c;
    if (!o->inplace) {
        for (int i = 0; i < c->nout && !c->op->view; i++)
            if (!(c->out[i] = tn__new_owned(c->result[i].dtype, c->result[i].shape))) return false;
        return true;
    }
    c->out[0] = c->in[0];
    memcpy(w->in, c->in, (size_t)c->nin * sizeof *w->in);
    for (int i = 1; i < c->nin; i++) {
        const tn_tensor *x = c->in[i]; /* an input that overlaps the target's memory at other places is copied */
        if (!x || x->storage != c->in[0]->storage || same_place(x, c->in[0])) continue;
        if (!(w->in[i] = w->apart[i] = copy_owned(x))) return false;
    }
    return !tn__tape.anomaly || tn__tape.inside || (w->undo = copy_owned(c->in[0]));
}

/* Records the call: returns its node, to which the results are not linked yet; NULL: raised. */
static tn__node *written_down(const one_call *o, overwritten *w)
{
    const tn_ctx *c = &o->c;
    const tn_op  *op = c->op;
    tn__node     *node = tn__record(op, c->nin, c->in, c->nout, o->need, c->args);
    if (!node) return NULL;
    const unsigned saves = op->saves_for ? op->saves_for(o->need) : op->saves;
    if (o->inplace && saves & TN_SAVE_IN(0) && !(w->original = copy_owned(c->in[0]))) return tn__node_drop(node), NULL;
    if (w->original && c->in[0]->node) { /* for gradients of gradients the copy has the node of input 0 */
        w->original->node = c->in[0]->node, w->original->output = c->in[0]->output;
        atomic_fetch_add_explicit(&w->original->node->refs, 1, memory_order_relaxed);
    }
    if (!tn__record_saved(node, c->in, w->original) || (!op->view && !tn__record_results(node, c->out)))
        return tn__node_drop(node), NULL;
    if (o->inplace && !(w->rebased = tn__rebase_begin(&w->rebase, c->in[0], node))) return tn__node_drop(node), NULL;
    return node;
}

/* Marks a view of a tensor on the tape that was made without recording. */
static void look_at_view(const tn_ctx *c, tn__node *node)
{
    const tn_tensor *x = c->in[0];
    const bool       same = c->out[0]->storage == x->storage;
    if (node) node->copied = !same;
    else if (same && tn__self.mode.no_grad && (tn__needs_grad(x) || tn__outdated(x))) c->out[0]->unrecorded = true;
}

/* After the forward: raises the version of an overwritten target, and links the results to their node. */
static void attach(const one_call *o, overwritten *w, tn__node *node)
{
    const tn_ctx *c = &o->c;
    if (o->inplace) tn__written(c->in[0], c->op->name);
    if (c->op->view) look_at_view(c, node);
    for (int i = 0; node && i < c->nout; i++) /* saved results have the version that forward left */
        if (node->saved_out[i].t) node->saved_out[i].version = tn__version_of(c->out[i]);
    for (int i = 0; node && i < c->nout; i++) {
        tn_tensor *y = c->out[i];
        if (!tn__is_float(y->dtype)) continue;
        if (w->rebased && w->rebase.part) tn__node_link(y, &w->rebase.part->object, 0);
        else tn__node_link(y, &node->object, (uint8_t)i);
    }
    if (w->rebased) tn__rebase_commit(&w->rebase, c->in[0]);
}

/* Anomaly mode: raises if a result has a NaN or Inf; restores the target of an in-place op. Views are not checked: they
 * compute no values, and their memory may not have been written yet. */
static bool results_pass(const one_call *o, const overwritten *w)
{
    const tn_ctx *c = &o->c;
    for (int i = 0; tn__tape.anomaly && !tn__tape.inside && !c->op->view && i < c->nout; i++) {
        if (tn__check_finite(c->out[i], c->op->name, "the result")) continue;
        if (w->undo) tn__copy(c->in[0], w->undo);
        return false;
    }
    return true;
}

/* Runs the forward. It is not recorded when it calls ops or writes elements, and may write to a target on the tape. */
static tn_status compute(const one_call *o, const overwritten *w)
{
    const tn_op *op = o->c.op;
    tn_ctx       f = o->c;
    if (o->inplace) f.in = w->in;
    const bool no_grad = tn__self.mode.no_grad;
    const int  keep = errno; /* the C library's f64 functions set errno */
    tn__self.mode.no_grad = true;
    op->forward(&f);
    tn__self.mode.no_grad = no_grad;
    errno = keep;
    if (tn__self.error == TN_OK && op->view && !f.out[0]) tn_raise(TN_ENOMEM, "%s: no memory for a view", op->name);
    return tn__self.error;
}

/* Allocates, records, computes, links. The results belong to the open scope. */
static void run(const one_call *o)
{
    const tn_ctx *c = &o->c;
    tn__node     *node = NULL;
    overwritten   w;
    w.original = w.undo = NULL, w.rebased = false;
    memset(w.apart, 0, sizeof w.apart);
    if (allocate(o, &w) && (!o->record || (node = written_down(o, &w))) && compute(o, &w) == TN_OK &&
        results_pass(o, &w))
        attach(o, &w, node);
    if (w.rebased) tn__rebase_free(&w.rebase);
    tn__node_drop(node);
    tn_drop(w.original), tn_drop(w.undo);
    for (int i = 0; i < FEW; i++) tn_drop(w.apart[i]);
    bool ok = tn__self.error == TN_OK;
    for (int i = 0; i < c->nout && !o->inplace; i++) {
        if (ok) ok = tn__scoped(c->out[i]) != NULL;
        else tn_drop(c->out[i]);
        if (!ok) c->out[i] = NULL;
    }
}

/* Checks and runs the call, once the lists of o are allocated. */
static void carry_out(one_call *o)
{
    tn_ctx *c = &o->c;
    if (check_inputs(o) != TN_OK) return;
    for (int i = 0; i < c->nout; i++) c->result[i].dtype = TN_F32, c->result[i].shape.n = -1;
    if (!c->op->infer(c)) {
        if (tn__self.error == TN_OK)
            tn_raise(TN_EINVAL, "%s: infer rejected the call without raising an error", c->op->name);
        return;
    }
    if (c->op->compose) compose(c);
    else if (check_results(o) == TN_OK) run(o);
}

static tn_status checked(const tn_op *op, int nin, tn_tensor *const *in, int nout, tn_tensor **out, const void *args,
                         bool inplace)
{
    if (inplace && (!op->inplace || op->compose || nin < 1 || nin > FEW))
        return tn_raise(TN_EINVAL, "%s: has no in-place form", op->name);
    if (inplace && !in[0]) return tn_raise(TN_EINVAL, "%s_: the target is NULL", op->name);
    one_call o;
    o.c = (tn_ctx){.op = op, .args = args, .nin = nin, .nout = nout, .in = in, .result = o.result_few, .out = out};
    o.inplace = inplace, o.record = false, o.need = o.need_few, o.cast = NULL;
    if (!(__builtin_expect(tn__tape.used != NULL, 0) && !tn__used_add(nin, in)) && /* before autocast replaces inputs */
        !(nin > FEW && !(o.need = tn__mem_get((size_t)nin))) &&
        !(nout > FEW && !(o.c.result = tn__mem_get((size_t)nout * sizeof *o.c.result))) &&
        (__builtin_expect(!tn__self.mode.autocast, 1) || cast_inputs(&o) == TN_OK))
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
    if (check_op(op, nin, in, nout, out) != TN_OK || !out) return tn__self.error;
    if (__builtin_expect(!tn__tape.profile, 1)) return checked(op, nin, in, nout, out, args, inplace);
    tn__timed_begin(NULL, op->name, TN__TIMED_OP, false);
    const tn_status status = checked(op, nin, in, nout, out, args, inplace);
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
    call(op, nin, in, 1, &y, args, false);
    return y;
}

tn_tensor *tn_op_apply_(const tn_op *op, const void *args, int nin, tn_tensor *const *in)
{
    tn_tensor *y;
    call(op, nin, in, 1, &y, args, true);
    return y;
}

/* For tn_op_map: true if operand i, t, has or broadcasts to the shape of result 0. An absent input fits; the kernel
 * receives NULL for it. */
static bool fits(const tn_tensor *t, const tn_tensor *y0, int i, int ny)
{
    char a[192], b[192];
    if (i < ny ? t && tn_shape_equal(t->l.shape, y0->l.shape) : !t || tn__broadcastable(t->l.shape, y0->l.shape))
        return true;
    tn_raise(t ? TN_ESHAPE : TN_EINVAL, "tn_op_map: %s %d is %s and does not fit result 0, %s",
             i < ny ? "result" : "input", i < ny ? i : i - ny, t ? tn_shape_text(t->l.shape, a, sizeof a) : "NULL",
             y0 ? tn_shape_text(y0->l.shape, b, sizeof b) : "NULL");
    return false;
}

void tn_op_map(tn_map_kernel f32, tn_map_kernel f64, int ny, tn_tensor *const *y, int nx, tn_tensor *const *x,
               const void *args)
{
    tn__list out = {.n = ny}, in = {.n = nx};
    tn_dtype kt = TN_I64;
    if (tn__blocked()) return;
    if (ny < 1 || nx < 0 || ny > TN__MAX_OPERANDS || nx > TN__MAX_OPERANDS - ny || !y || (nx && !x)) {
        tn_raise(TN_EINVAL, "tn_op_map: takes 1 or more results and %d operands in all, got %d results and %d inputs%s",
                 TN__MAX_OPERANDS, ny, nx, y && (x || !nx) ? "" : ", and a list is NULL");
        return;
    }
    for (int i = 0; i < ny + nx; i++) {
        tn_tensor *t = i < ny ? (out.t[i] = y[i]) : (in.t[i - ny] = x[i - ny]);
        if (!fits(t, y[0], i, ny)) return;
        if (t && tn__is_float(t->dtype) && kt != TN_F64) kt = t->dtype == TN_F64 ? TN_F64 : TN_F32;
    }
    if (kt == TN_F32 ? !f32 : kt == TN_F64 ? !f64 : true)
        tn_raise(TN_EDTYPE, "tn_op_map: no kernel for %s; reject it in the op's infer",
                 kt == TN_I64 ? "integers alone" : tn_dtype_name(kt));
    else tn__map((tn__kernel_set){f32, f64, NULL}, out, in, args);
}

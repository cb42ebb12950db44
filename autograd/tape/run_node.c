/* run_node.c — the backward of one node: checks the saved tensors, calls the op's backward, sums the gradients to the
 * inputs' shapes and converts them to the inputs' dtypes. */
#include "autograd/tape/engine.h"
#include "autograd/tape/op_api.h"
#include "autograd/tape/profile.h"
#include "autograd/tape/unwind.h"

#include <errno.h>
#include <string.h>

/* g summed over the dims that broadcasting added, so that it has shape s; wide: the sum of bf16 is f32. */
static tn_tensor *sum_to(tn_tensor *g, tn_shape s, bool wide)
{
    if (!g || tn__same_shape(&g->l.shape, &s)) return g;
    tn_dims dims = {.n = 0};
    int     lead = g->l.shape.n - s.n;
    for (int i = 0; i < g->l.shape.n; i++)
        if (i < lead || (s.d[i - lead] == 1 && g->l.shape.d[i] != 1)) dims.d[dims.n++] = i;
    if (dims.n) g = wide ? tn__sum_wide(g, dims) : tn_sum_run((tn_reduce_args){.x = g, .dims = dims, .keepdim = true});
    return tn_reshape(g, s);
}

static tn_status check_version(const tn__node *n, const tn__saved *s, const char *role, int i)
{
    if (!s->t || atomic_load(&s->t->storage->version) == s->version) return TN_OK;
    const char *writer = atomic_load(&s->t->storage->writer);
    if (!strncmp(writer, "tn_", 3))
        return tn_raise(
            TN_ESTATE,
            "backward: %s changed in place the tensor saved by %s (%s %d); change it before the %s, or after the "
            "backward",
            writer, n->op->name, role, i, n->op->name);
    return tn_raise(TN_ESTATE,
                    "backward: %s_ changed in place the tensor saved by %s (%s %d); use %s, or move it before the %s",
                    writer, n->op->name, role, i, writer, n->op->name);
}

/* True if the gradient of a bf16 input may stay f32: the input was converted from f32, for this one is passed on, and
 * no caller sees it. So the gradient of a weight is never rounded to bf16. */
static bool may_be_f32(const tn__engine_run *r, const tn__node *n, int i)
{
    const tn__node *from = n->edge[i].node;
    return from && tn__is_conversion(from->op) && from->dtype[0] == TN_F32 && !from->watches &&
           (r->outer || !tn__is_target(r, from, n->edge[i].output));
}

/* g in the shape and dtype of input i of n. */
static tn_tensor *fitted(const tn__engine_run *r, const tn__node *n, int i, tn_tensor *g)
{
    char       a[192], b[192];
    const bool same = tn__same_shape(&g->l.shape, &n->shape[i]);
    if (same && g->dtype == n->dtype[i]) return g;
    const bool     wide = n->dtype[i] == TN_BF16 && (g->dtype == TN_F32 || !same) && may_be_f32(r, n, i);
    const tn_dtype dt = wide ? TN_F32 : n->dtype[i];
    if (same && g->dtype == dt) return g;
    if (!tn__broadcastable(n->shape[i], g->l.shape) || !tn__is_float(g->dtype))
        return tn_raise_null(TN_ESHAPE, "backward of %s: the gradient of input %d is %s %s, but the input is %s",
                             n->op->name, i, tn_dtype_name(g->dtype), tn_shape_text(g->l.shape, a, sizeof a),
                             tn_shape_text(n->shape[i], b, sizeof b));
    g = sum_to(g, n->shape[i], wide);
    return g && g->dtype != dt ? tn_to(g, dt) : g;
}

enum { FEW = 8 };

/* Fills in the arguments of the backward: the saved tensors, and the inputs whose gradient is needed. */
static tn_status fill(tn__engine_run *r, tn__node *n, bool *need, tn_tensor **in, tn_tensor **out)
{
    for (int i = 0; i < n->nin; i++) {
        need[i] = n->need[i] && tn__grad_needed(r, n, i);
        if (check_version(n, &n->saved_in[i], "input", i) != TN_OK) return tn__self.error;
        in[i] = n->saved_in[i].t;
    }
    for (int i = 0; i < n->nout; i++) {
        if (check_version(n, &n->saved_out[i], "result", i) != TN_OK) return tn__self.error;
        out[i] = n->saved_out[i].t;
        if (!r->p->create_graph || !out[i]) continue;
        if (!(out[i] = tn__alias(out[i], &out[i]->l))) return tn__self.error; /* it gets the result's node */
        out[i]->node = &n->object, out[i]->output = (uint8_t)i;
        atomic_fetch_add_explicit(&n->object.refs, 1, memory_order_relaxed);
    }
    return tn__self.error;
}

/* Adds the gradients returned by the backward to those of the nodes and leaves that the inputs came from. */
static void pass_on(tn__engine_run *r, tn__node *n, const bool *need, tn_tensor *const *gx, size_t mark)
{
    for (int i = 0; i < n->nin && tn__self.error == TN_OK; i++) {
        if (!need[i] || !gx[i]) continue;
        bool       bad;
        tn_tensor *g = fitted(r, n, i, gx[i]);
        if (!g || (tn__tape.anomaly && !tn__finite_gradient(n, i, g))) return;
        tn_tensor **to = tn__target(r, n, i, &bad);
        if (to && !*to) *to = tn__own_grad(n, gx, i, g, mark);
        else if (to && !tn__add_to(r, to, g)) return;
    }
}

tn_status tn__run_node(tn__engine_run *r, tn__node *n)
{
    const bool   graph = r->p->create_graph;
    tn_tensor   *few[3 * FEW], **in = few;
    bool         need_few[3 * FEW];
    const int    total = 2 * n->nin + n->nout;
    const size_t mark = tn__self.top;
    void (*fn)(tn_back *) = graph ? n->op->backward_ops : n->op->backward ? n->op->backward : n->op->backward_ops;
    if (!fn)
        return tn_raise(
            TN_EUNSUPPORTED,
            "%s: has no backward made of ops, so its gradient cannot be differentiated; give the op a .backward_ops",
            n->op->name);
    const size_t bytes = total > 3 * FEW ? (size_t)total * (sizeof *in + 1) : 0;
    if (bytes && !(in = tn__mem_get(bytes))) return tn__self.error;
    TN__HOLDS   held = {bytes ? in : NULL, bytes};
    tn_tensor **gx = in + n->nin, **out = gx + n->nin;
    bool       *need = in == few ? need_few : (bool *)(in + total);
    for (int i = 0; i < n->nin; i++) gx[i] = NULL;
    if (fill(r, n, need, in, out) == TN_OK) {
        void   *engine[2] = {r, n};
        tn_back b = {.op = n->op,
                     .args = n->args,
                     .nin = n->nin,
                     .nout = n->nout,
                     .in = in,
                     .out = out,
                     .gy = n->grad,
                     .in_shape = n->shape,
                     .in_dtype = n->dtype,
                     .need = need,
                     .gx = gx,
                     .engine = engine};
        tn__tape.inside++;
        const int keep = errno; /* the C library's f64 functions set errno */
        fn(&b);
        errno = keep;
        tn__tape.inside--;
        if (tn__tape.profile && !n->op->view) {
            tn__timed_bytes(n->nout, n->grad), tn__timed_bytes(n->nin, in);
            tn__timed_bytes(n->nout, out), tn__timed_bytes(n->nin, gx);
        }
        pass_on(r, n, need, gx, mark);
    }
    return tn__self.error;
}

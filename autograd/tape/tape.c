/* tape.c — nodes of the tape: recording an op for its backward, and freeing a node. */
#include "autograd/tape/tape.h"

#include <string.h>

_Thread_local tn__tape_state tn__tape;

static size_t aligned(size_t n) { return (n + 15) / 16 * 16; }

/* ---- freeing nodes ----------------------------------------------------------------------------------------------- */

void tn__node_release(tn__node *n)
{
    for (int i = 0; i < n->nin + n->nout; i++) tn_drop(n->saved_in[i].t), n->saved_in[i].t = NULL; /* and saved_out */
    n->spent = true;
}

static void end_one(tn__node *n)
{
    tn__node_release(n);
    for (int i = 0; i < n->nin; i++) {
        tn__node_drop(n->edge[i].node);
        tn_drop(n->edge[i].leaf);
    }
    for (int i = 0; i < n->nout; i++) tn_drop(n->grad[i]), tn_drop(n->kept[i]);
    if (n->op->args_free && n->args) n->op->args_free(n->args);
    while (n->watches) {
        tn__watch *w = n->watches;
        n->watches = w->next;
        tn__mem_put(w, sizeof *w);
    }
    tn__strfree(n->path);
    tn__mem_put(n, n->bytes);
}

/* Freeing a node drops tensors, which drops their nodes, down to the start of the tape. So nodes are queued, and only
 * the outermost call empties the queue: a tape of a million ops is freed with constant stack. */
static void node_end(tn__object *o)
{
    tn__node *n = (tn__node *)(void *)o;
    n->next = tn__tape.dead;
    tn__tape.dead = n;
    if (tn__tape.ending) return;
    tn__tape.ending = true;
    while ((n = tn__tape.dead)) {
        tn__tape.dead = n->next;
        end_one(n);
    }
    tn__tape.ending = false;
}

void tn__node_drop(tn__node *n) { tn__object_drop((tn__object *)n); }

void tn__node_link(tn_tensor *x, tn__object *node, uint8_t output)
{
    tn__node *old = tn__node_of(x);
    if (old) tn__move_retained(old, x->output, (tn__node *)node, output);
    atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    x->node = node, x->output = output;
    if (old) tn__node_drop(old);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

tn__node *tn__record(const tn_op *op, int nin, tn_tensor *const *in, int nout, const bool *need, const void *args)
{
    const size_t i = (size_t)nin, o = (size_t)nout;
    const size_t saved_at = sizeof(tn__node) + i * sizeof(tn__edge), grad_at = saved_at + (i + o) * sizeof(tn__saved);
    const size_t dtype_at = grad_at + 2 * o * sizeof(tn_tensor *), need_at = dtype_at + i * sizeof(tn_dtype);
    const size_t args_at = aligned(need_at + i), shape_at = (args_at + op->args_size + 7) / 8 * 8;
    const size_t bytes = shape_at + i * sizeof(tn_shape);
    char        *p = tn__mem_get(bytes);
    if (!p) return NULL;
    tn__node *n = (tn__node *)(void *)p;
    memset(p, 0, dtype_at);
    atomic_init(&n->object.refs, 1);
    n->object.end = node_end;
    n->thread = tn__thread_id();
    n->op = op, n->nin = nin, n->nout = (uint8_t)nout, n->bytes = bytes;
    n->generator = tn_current_generator(), n->before = *n->generator;
    n->saved_in = (tn__saved *)(void *)(p + saved_at), n->saved_out = n->saved_in + nin;
    n->grad = (tn_tensor **)(void *)(p + grad_at), n->kept = n->grad + nout;
    n->dtype = (tn_dtype *)(void *)(p + dtype_at);
    n->need = (bool *)(p + need_at);
    n->shape = (tn_shape *)(void *)(p + shape_at);
    for (int k = 0; k < nin; k++) {
        tn_tensor *x = in[k];
        n->need[k] = need[k];
        n->dtype[k] = x ? x->dtype : TN_F32;
        n->shape[k].n = x ? x->l.shape.n : 0;
        for (int d = 0; d < n->shape[k].n; d++) n->shape[k].d[d] = x->l.shape.d[d];
        if (!need[k] || !x) continue;
        if (x->leaf) {
            n->edge[k].leaf = tn_keep(x);
        } else {
            n->edge[k].node = tn__node_of(x), n->edge[k].output = x->output;
            atomic_fetch_add_explicit(&x->node->refs, 1, memory_order_relaxed);
        }
    }
    if (op->args_size && args) {
        void *to = p + args_at;
        memcpy(to, args, op->args_size);
        if (op->args_copy && !op->args_copy(to, args)) { /* args stays NULL: nothing to free */
            if (tn__self.error == TN_OK) tn_raise(TN_ENOMEM, "%s: its args could not be copied", op->name);
            return tn__node_drop(n), NULL;
        }
        n->args = to;
    }
    if (tn__tape.anomaly || tn__tape.profile) n->path = tn__path_copy(tn__tape.anomaly);
    if (tn__self.error != TN_OK) return tn__node_drop(n), NULL;
    n->seq = ++tn__tape.seq;
    return n;
}

/* A tensor saved for the backward is a new handle: an in-place op may later give the original another node, and a node
 * that held the original would then own itself. A leaf never gets a node and is saved directly. */
static tn_tensor *save(tn_tensor *x)
{
    if (x->leaf) return tn_keep(x);
    tn_tensor *a = tn__alias_guest(x);
    if (!a) return NULL;
    a->version = x->version;
    if (x->node) {
        a->node = x->node, a->output = x->output;
        atomic_fetch_add_explicit(&a->node->refs, 1, memory_order_relaxed);
    }
    return a;
}

bool tn__record_saved(tn__node *n, tn_tensor *const *in, tn_tensor *original)
{
    unsigned saves = n->op->saves_for ? n->op->saves_for(n->need) : n->op->saves;
    for (int i = 0; i < n->nin; i++) {
        bool wanted = (saves & TN__SAVE_ALL_IN) || (i < 15 && (saves & TN_SAVE_IN(i)));
        if (!wanted || !in[i]) continue;
        tn_tensor *x = i == 0 && original ? original : in[i];
        if (!(n->saved_in[i].t = x == original ? tn_keep(x) : save(x))) return false;
        n->saved_in[i].version = tn__version_of(x);
    }
    return true;
}

bool tn__record_results(tn__node *n, tn_tensor *const *out)
{
    for (int i = 0; i < n->nout; i++) {
        if (!(i < 16 && n->op->saves & TN_SAVE_OUT(i))) continue;
        /* a handle without the node, or the node would own itself */
        if (!(n->saved_out[i].t = tn__alias_guest(out[i]))) return false;
        n->saved_out[i].version = tn__version_of(out[i]);
    }
    return true;
}

/* ---- the path of the module that is running, for profiles and for errors of anomaly mode ------------------------- */

void tn__path_text(char *to, size_t size)
{
    to[0] = 0;
    size_t at = 0;
    int    depth = tn__self.path_depth < TN__PATH_MAX ? tn__self.path_depth : TN__PATH_MAX;
    for (int i = 0; i < depth && at + 1 < size; i++)
        if (tn__self.path[i]) at += (size_t)snprintf(to + at, size - at, "%s%s", at ? "." : "", tn__self.path[i]);
}

char *tn__path_copy(bool required)
{
    char buf[512], *p;
    tn__path_text(buf, sizeof buf);
    if (required) return tn__strdup(buf);
    if ((p = tn__mem_try(strlen(buf) + 1))) memcpy(p, buf, strlen(buf) + 1);
    return p;
}

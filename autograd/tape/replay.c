/* replay.c — records the calls of ops in a step, and runs their forwards again on the same tensors.
 *
 * While a step is recorded, the mode .replay is on, except within forwards: what a replay would not repeat (reading a
 * value, writing it except by an op) raises then (tn__unreplayable). Tensors that existed before the recording, or
 * that the step made without an op, are sources; the replay checks that they still have their memory and, if others
 * owned them, still have an owner: a layer whose weight has been replaced drops the old one. */
#include "autograd/tape/replay.h"
#include "autograd/replay.h"
#include "autograd/tape/call.h"
#include "autograd/tape/profile.h"
#include "core/base/checks.h"

#include <string.h>

typedef enum { FORWARD, IN_PLACE, VIEW, COPIED_VIEW } call_kind;

/* A call, which owns its results (IN_PLACE: result 0 is input 0 and owned elsewhere). Its lists are in one block:
 * inputs, results, what infer returned, args. */
typedef struct {
    call_kind kind;
    tn_ctx    c;     /* its results are those of the last infer */
    tn_tensor order; /* COPIED_VIEW, a view that had to copy: the result in the shape of the input */
    void     *block;
    size_t    bytes;
    bool      has_args;
    bool      infers; /* the rule for shapes may depend on values, or check them, such as indices */
} replayed;

typedef struct {
    tn_tensor   *t; /* owned */
    tn__storage *storage;
    void        *data;
    int          owners; /* at least this many, this replay included */
} source;

struct tn_replay {
    uint64_t   thread;
    replayed  *call;
    size_t     calls, room;
    source    *source;
    size_t     sources, source_room;
    tn_tensor *result;
};

static tn_tensor **ins(const replayed *k) { return k->block; }
static tn_tensor **outs(const replayed *k) { return ins(k) + k->c.nin; }

void tn_replay_free(tn_replay *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->calls; i++) {
        replayed *k = &r->call[i];
        for (int j = 0; j < k->c.nout && k->kind != IN_PLACE; j++) tn_drop(outs(k)[j]);
        if (k->has_args && k->c.op->args_free) k->c.op->args_free((void *)(uintptr_t)k->c.args);
        tn__mem_put(k->block, k->bytes);
    }
    for (size_t i = 0; i < r->sources; i++) tn_drop(r->source[i].t);
    tn__mem_put(r->call, r->room * sizeof *r->call);
    tn__mem_put(r->source, r->source_room * sizeof *r->source);
    tn_drop(r->result);
    tn__mem_put(r, sizeof *r);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

/* Room for another element of a list; false: raised. */
static bool grow(void **list, size_t used, size_t *room, size_t each)
{
    const size_t more = *room ? 2 * *room : 64;
    if (used < *room) return true;
    if (!tn__mem_grow(list, *room * each, more * each)) return false;
    *room = more;
    return true;
}

static bool is_result(const tn_replay *r, const tn_tensor *t)
{
    for (size_t i = r->calls; i-- > 0;)
        for (int j = 0; j < r->call[i].c.nout; j++)
            if (outs(&r->call[i])[j] == t) return true;
    return false;
}

/* Notes t as a source, unless it is a result of the step. */
static bool add_source(tn_replay *r, tn_tensor *t)
{
    if (!t) return true;
    for (size_t i = 0; i < r->sources; i++)
        if (r->source[i].t == t) return true;
    if (is_result(r, t)) return true;
    void *list = r->source;
    if (!grow(&list, r->sources, &r->source_room, sizeof *r->source)) return false;
    r->source = list;
    r->source[r->sources++] = (source){tn_keep(t), t->storage, t->storage->data, 1};
    return true;
}

/* Copies c's lists and args into a block of k's own. */
static bool copy_lists(replayed *k, const tn_ctx *c)
{
    const size_t in = (size_t)c->nin, out = (size_t)c->nout, results = (in + out) * sizeof(tn_tensor *);
    const size_t args = (results + out * sizeof *c->result + 15) & ~(size_t)15;
    k->bytes = args + c->op->args_size;
    char *p = k->block = tn__mem_zeroed(k->bytes);
    if (!p) return false;
    k->c = *c;
    memcpy(p, c->in, in * sizeof *c->in);
    for (size_t i = 0; i < out; i++) outs(k)[i] = k->kind == IN_PLACE ? c->out[i] : tn_keep(c->out[i]);
    k->c.in = ins(k), k->c.out = outs(k), k->c.result = (tn_result *)(void *)(p + results), k->c.args = NULL;
    memcpy(k->c.result, c->result, out * sizeof *c->result);
    if (c->op->args_size && c->args) {
        memcpy(p + args, c->args, c->op->args_size);
        k->has_args = !c->op->args_copy || c->op->args_copy(p + args, c->args);
        if (!k->has_args) {
            if (tn_error() == TN_OK)
                tn_raise(TN_ENOMEM, "tn_replay_record: args of %s could not be copied", c->op->name);
            return false;
        }
        k->c.args = p + args;
    }
    return true;
}

void tn__replay_add(const tn_ctx *c, tn_tensor *const *in, bool inplace)
{
    tn_replay *r = tn__tape.replay;
    void      *list = r->call;
    for (int i = 0; i < c->nin; i++)
        if (in[i] != c->in[i]) {
            tn_raise(TN_EUNSUPPORTED, "tn_replay_record: %s_ reads the memory that it overwrites; tn_clone input %d",
                     c->op->name, i);
            return;
        }
    for (int i = 0; i < c->nin; i++)
        if (!add_source(r, c->in[i])) return;
    if (!grow(&list, r->calls, &r->room, sizeof *r->call)) return;
    r->call = list;
    replayed *k = &r->call[r->calls];
    memset(k, 0, sizeof *k);
    k->kind = inplace ? IN_PLACE : FORWARD;
    k->infers = tn__self.value_read;
    for (int i = 0; i < c->nin; i++) k->infers = k->infers || (c->in[i] && !tn__is_float(c->in[i]->dtype));
    const tn_tensor *of = c->op->view ? c->in[0] : NULL;
    if (of) k->kind = c->out[0]->storage == of->storage ? VIEW : COPIED_VIEW;
    const bool copied = copy_lists(k, c);
    if (k->block) r->calls++; /* it is freed with the others */
    if (!copied || !of || k->kind != COPIED_VIEW) return;
    const tn__layout order = tn__layout_of_shape(of->l.shape);
    k->order = tn__stack_view(c->out[0], &order);
}

/* Runs the step; its result is the replay's. */
static void record(tn_replay *r, tn_tensor *(*step)(void *user), void *user)
{
    const tn_generator *g = tn_current_generator();
    const tn_generator  before = *g;
    const tn_scope      s = tn_no_grad_begin();
    tn__tape.replay = r, tn__self.mode.replay = 1;
    tn_tensor *y = step(user);
    tn__tape.replay = NULL;
    if (tn_error() == TN_OK) r->result = tn_keep(y);
    tn_scope_end(s);
    if (tn_error() != TN_OK) return;
    if (!r->result) tn_raise(TN_EINVAL, "tn_replay_record: the step returned NULL");
    else if (g != tn_current_generator() || g->seed != before.seed || g->position != before.position)
        tn_raise(TN_EUNSUPPORTED,
                 "tn_replay_record: the step draws random numbers, and a replay would repeat the same ones; draw them "
                 "before the step, or call tn_eval if it is dropout");
}

/* Raises if a call overwrites the memory of source s, which the step made without an op: nothing makes it again. */
static void check_constant(const tn_replay *r, const source *s)
{
    for (size_t i = 0; i < r->calls; i++) {
        const tn_ctx *c = &r->call[i].c;
        if (r->call[i].kind != IN_PLACE || c->out[0]->storage != s->storage || tn_error() != TN_OK) continue;
        tn_raise(
            TN_EUNSUPPORTED,
            "tn_replay_record: %s_ changes a tensor that the step makes without an op (tn_zeros, tn_full); a replay "
            "would change it again; use %s, or an op's result",
            c->op->name, c->op->name);
    }
}

tn_replay *tn_replay_record(tn_tensor *(*step)(void *user), void *user)
{
    if (tn__blocked() || tn__unreplayable("tn_replay_record")) return NULL;
    if (!tn__not_null("tn_replay_record", "step", (const void *)(uintptr_t)step)) return NULL;
    tn_replay *r = tn__mem_zeroed(sizeof *r);
    if (!r) return NULL;
    r->thread = tn__thread_id();
    record(r, step, user);
    for (size_t i = 0; i < r->sources; i++) { /* a constant that the step made has no other owner */
        const int mine = 1 + (r->source[i].t == r->result);
        r->source[i].owners = atomic_load(&r->source[i].t->object.refs) > mine ? mine + 1 : mine;
        if (r->source[i].owners == mine) check_constant(r, r->source + i);
    }
    if (tn_error() != TN_OK) tn_replay_free(r), r = NULL;
    return r;
}

/* ---- replaying --------------------------------------------------------------------------------------------------- */

static bool sources_are_there(const tn_replay *r)
{
    for (size_t i = 0; i < r->sources; i++) {
        const source *s = &r->source[i];
        const bool    moved = s->t->storage != s->storage || s->storage->data != s->data;
        if (moved || atomic_load_explicit(&s->t->object.refs, memory_order_relaxed) < s->owners) {
            char text[192];
            return tn_raise_false(TN_ESTATE,
                                  "tn_replay_run: %s %s%s%s, which the step used, has been %s since; record the step "
                                  "again",
                                  tn_dtype_name(s->t->dtype), tn_shape_text(s->t->l.shape, text, sizeof text),
                                  s->t->name ? " " : "", s->t->name ? s->t->name : "",
                                  moved ? "given other memory" : "freed by its owner");
        }
    }
    return true;
}

/* The tape must see that saved results have changed. Only this thread writes to them. */
static void overwritten(tn_tensor *t)
{
    t->version = atomic_load_explicit(&t->storage->version, memory_order_relaxed) + 1;
    atomic_store_explicit(&t->storage->version, t->version, memory_order_relaxed);
    atomic_store_explicit(&t->storage->writer, "tn_replay_run", memory_order_relaxed);
}

static bool same_shapes(replayed *k)
{
    tn_ctx *c = &k->c;
    char    now[192], before[192];
    for (int i = 0; i < c->nout; i++) c->result[i].dtype = TN_F32, c->result[i].shape.n = -1;
    if (!c->op->infer(c))
        return tn_error() == TN_OK ? tn_raise_false(TN_EINVAL, "%s: infer rejected the call", c->op->name) : false;
    for (int i = 0; i < c->nout; i++)
        if (c->result[i].dtype != c->out[i]->dtype || !tn__same_shape(&c->result[i].shape, &c->out[i]->l.shape))
            return tn_raise_false(TN_ESTATE,
                                  "tn_replay_run: the result of %s is now %s %s, and was %s %s when the step was "
                                  "recorded; record it again",
                                  c->op->name, tn_dtype_name(c->result[i].dtype),
                                  tn_shape_text(c->result[i].shape, now, sizeof now), tn_dtype_name(c->out[i]->dtype),
                                  tn_shape_text(c->out[i]->l.shape, before, sizeof before));
    return true;
}

static void run_again(replayed *k)
{
    if (k->kind == VIEW || (k->infers && !same_shapes(k))) return;
    if (k->kind == COPIED_VIEW) tn__copy(&k->order, k->c.in[0]);
    else k->c.op->forward(&k->c);
    for (int i = 0; i < k->c.nout; i++) overwritten(k->c.out[i]);
}

tn_tensor *tn_replay_run(tn_replay *r)
{
    if (tn__blocked() || tn__unreplayable("tn_replay_run") || !tn__not_null("tn_replay_run", "replay", r)) return NULL;
    if (r->thread != tn__thread_id())
        return tn_raise_null(TN_ESTATE,
                             "tn_replay_run: the step was recorded by another thread; record it in this one");
    if (!sources_are_there(r)) return NULL;
    const int  keep = errno; /* the C library's f64 functions set errno */
    const bool no_grad = tn__self.mode.no_grad;
    tn__self.mode.no_grad = true;
    for (size_t i = 0; i < r->calls && tn__self.error == TN_OK; i++) {
        replayed  *k = &r->call[i];
        const bool timed = tn__tape.profile && k->kind != VIEW;
        if (timed) tn__timed_begin(NULL, k->c.op->name, TN__TIMED_OP, false);
        run_again(k);
        if (timed) tn__timed_end();
        if (tn__tape.anomaly && !k->c.op->view && tn__self.error == TN_OK) tn__results_finite(&k->c);
    }
    tn__self.mode.no_grad = no_grad;
    errno = keep;
    return tn_error() == TN_OK ? r->result : NULL;
}

/* autocast.c — mixed precision: converts the inputs of an op to bf16 or f32, as the op's .autocast states (op.h).
 *
 * A weight (an f32 leaf) is converted once in an autocast scope: its bf16 copy is reused until the weight's version
 * changes. Each use of the copy has its own node, so that the gradients of the uses are added in f32. */
#include "autograd/tape/call.h"
#include "autograd/tape/op_api.h"

#include <string.h>

/* ---- weights ----------------------------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor *weight, *copy; /* owned */
    uint32_t   version;       /* the weight's version when it was copied */
} entry;

typedef struct {
    tn__object object;
    entry     *list;
    size_t     count, room;
} cache;

static void cache_end(tn__object *o)
{
    cache *c = (cache *)(void *)o;
    for (size_t i = 0; i < c->count; i++) tn_drop(c->list[i].weight), tn_drop(c->list[i].copy);
    tn__mem_put(c->list, c->room * sizeof *c->list);
    tn__mem_put(c, sizeof *c);
}

static void drop_casts(void) /* at the thread's end */
{
    tn__object_drop(tn__self.casts);
    tn__self.casts = NULL;
}

/* The weight's entry, whose copy may still be NULL; NULL: raised. */
static entry *place(tn_tensor *weight)
{
    cache *c = (cache *)(void *)tn__self.casts;
    if (!c) {
        if (!(c = tn__mem_zeroed(sizeof *c))) return NULL;
        atomic_init(&c->object.refs, 1);
        c->object.end = cache_end;
        tn__self.casts = &c->object;
        tn__at_thread_end(TN__END_CASTS, drop_casts);
    }
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].weight == weight) return c->list + i;
    if (c->count == c->room) {
        const size_t room = c->room ? 2 * c->room : 16;
        void        *list = c->list;
        if (!tn__mem_grow(&list, c->room * sizeof *c->list, room * sizeof *c->list)) return NULL;
        c->list = list, c->room = room;
    }
    c->list[c->count] = (entry){.weight = tn_keep(weight)};
    return c->list + c->count++;
}

/* The weight's copy, from the cache or new; NULL: raised. infer calls this first, so that the forward, which must not
 * fail, finds the copy in the cache. */
static tn_tensor *copy_of(tn_tensor *weight)
{
    const uint32_t version = atomic_load(&weight->storage->version);
    entry         *e = place(weight);
    if (!e || (e->copy && e->version == version)) return e ? e->copy : NULL;
    tn_tensor *copy = tn__new_owned(TN_BF16, weight->l.shape);
    if (!copy) return NULL;
    tn__copy(copy, weight);
    tn_drop(e->copy);
    e->copy = copy, e->version = version;
    return copy;
}

static bool infer(tn_ctx *c)
{
    c->result[0] = (tn_result){TN_BF16, c->in[0]->l.shape};
    return copy_of(c->in[0]) != NULL;
}
static void forward(tn_ctx *c)
{
    tn_tensor *copy = copy_of(c->in[0]);
    if (copy) c->out[0] = tn__alias_owned(copy, &copy->l);
}
static void backward_ops(tn_back *b) { b->gx[0] = tn_to(b->gy[0], TN_F32); }

/* Declared a view because its result shares the memory of the cached copy. */
static const tn_op of_weight = {TN__ROOM("autocast", TN_AS_IS), .inputs = 1, .infer = infer, .forward = forward,
                                .backward_ops = backward_ops,   .view = true};

/* ---- conversions ------------------------------------------------------------------------------------------------- */

/* True if one of them has dtype dt. */
static bool any(int n, tn_tensor *const *in, tn_dtype dt)
{
    for (int i = 0; i < n; i++)
        if (in[i] && in[i]->dtype == dt) return true;
    return false;
}

bool tn__autocast_covers(int n, tn_tensor *const *t)
{
    for (int i = 0; i < n; i++)
        if (t[i] && t[i]->dtype != TN_F32 && t[i]->dtype != TN_BF16) return false;
    return true;
}

static void narrowed(int n, tn_tensor **in)
{
    if (any(n, in, TN_F64)) return;
    for (int i = 0; i < n; i++)
        if (in[i] && in[i]->dtype == TN_F32) in[i] = in[i]->leaf ? tn_apply(&of_weight, in[i]) : tn_to(in[i], TN_BF16);
}
static void widened(int n, tn_tensor **in)
{
    for (int i = 0; i < n; i++)
        if (in[i] && in[i]->dtype == TN_BF16) in[i] = tn_to(in[i], TN_F32);
}

static void convert(const tn_op *op, int n, tn_tensor **in)
{
    const int first = op->autocast == TN_NARROW(TN_ANY) ? n : op->autocast - TN_NARROW(0);
    if (op->autocast >= TN_NARROW(0)) narrowed(first < n ? first : n, in);
    else if (op->autocast == TN_WIDE || (op->autocast == TN_JOIN && any(n, in, TN_F32))) widened(n, in);
}

tn_status tn__autocast(tn__call *o)
{
    tn_ctx *c = &o->c;
    if (c->op->autocast <= TN_AS_IS || o->inplace || !c->nin) return TN_OK;
    tn_tensor **list = o->cast_few;
    if (c->nin > TN__FEW && !(list = o->cast = tn__mem_get((size_t)c->nin * sizeof *list))) return tn__self.error;
    memcpy(list, c->in, (size_t)c->nin * sizeof *list);
    c->in = list;
    convert(c->op, c->nin, list);
    return tn__self.error;
}

tn_scope tn_autocast_begin(bool on)
{
    const tn_scope s = tn_scope_begin();
    tn__self.mode.autocast = on;
    return s;
}

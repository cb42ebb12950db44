/* autocast.c — mixed precision: converts the inputs of an op to bf16 or f32, as the op's .autocast states (op.h).
 *
 * A weight (an f32 leaf) is converted once in an autocast scope: its bf16 copy is reused until the weight's version
 * changes. Each use of the copy has its own node, so that the gradients of the uses are added in f32.
 *
 * At the end of the scope a copy whose use was recorded stays with the weight: the optimizer's pass over the weight
 * also writes the copy (casts.h), and the next scope finds it. The others are freed; under a memory limit, all are, so
 * that a step with recomputed segments never holds the copies of all weights. A call that would fail for memory frees
 * the copies that nothing reads. */
#include "autograd/tape/call.h"
#include "autograd/tape/casts.h"
#include "autograd/tape/op_api.h"

#include <string.h>

/* ---- copies that stay with their weights ------------------------------------------------------------------------- */

static atomic_flag lock = ATOMIC_FLAG_INIT; /* of .narrow of all tensors: threads may use the same weights */

/* Replaces the weight's copy; NULL: none. Returns the one before, which the caller owns, if it has this version. */
static tn_tensor *exchange(tn_tensor *weight, tn_tensor *copy, uint32_t version)
{
    while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) continue;
    tn_tensor *before = weight->narrow;
    const bool current = weight->narrow_version == version;
    weight->narrow = copy, weight->narrow_version = version;
    atomic_flag_clear_explicit(&lock, memory_order_release);
    if (current) return before;
    tn_drop(before);
    return NULL;
}

static uint32_t handles(const tn_tensor *t)
{
    return (uint32_t)atomic_load_explicit(&t->storage->refs, memory_order_acquire);
}

uint16_t *tn__cast_open(tn_tensor *t)
{
    const uint32_t version = atomic_load(&t->storage->version);
    if (!t->narrow || t->dtype != TN_F32 || !tn__layout_contiguous(&t->l)) return NULL;
    tn_tensor *copy = exchange(t, NULL, version);
    /* a tape that was kept reads the copy, or the weight is also written through another handle */
    if (copy && (handles(copy) > 1 || handles(t) > 1)) tn_drop(copy), copy = NULL;
    if (copy) tn_drop(exchange(t, copy, version));
    return copy ? tn__ptr(copy) : NULL;
}

void tn__cast_close(tn_tensor *t)
{
    t->narrow_version = atomic_load(&t->storage->version);
    tn__written(t->narrow, "an optimizer"); /* products may have kept the copy packed */
}

/* ---- copies in a scope ------------------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor *weight, *copy; /* owned */
    uint32_t   version;       /* the weight's version when it was copied */
    bool       recorded;      /* a use of the copy was recorded */
} entry;

typedef struct {
    tn__object object;
    entry     *list;
    size_t     count, room, last; /* last: the entry that is in use now, perhaps between infer and forward */
} cache;

static void cache_end(tn__object *o)
{
    cache     *c = (cache *)(void *)o;
    const bool keep = !tn_memory_now().limit;
    for (size_t i = 0; i < c->count; i++) {
        entry *e = &c->list[i];
        if (e->copy && e->recorded && keep) tn_drop(exchange(e->weight, e->copy, e->version));
        else tn_drop(e->copy);
        tn_drop(e->weight);
    }
    tn__mem_put(c->list, c->room * sizeof *c->list);
    tn__mem_put(c, sizeof *c);
}

static void drop_casts(void) /* at the thread's end */
{
    tn__object_drop(tn__self.casts);
    tn__self.casts = NULL;
}

/* Frees the copies that no tensor reads; false: there are none. */
static bool free_unused(void)
{
    cache *c = (cache *)(void *)tn__self.casts;
    bool   any = false;
    for (size_t i = 0; c && i < c->count; i++) {
        tn_tensor *copy = c->list[i].copy;
        if (!copy || i == c->last || handles(copy) > 1) continue;
        c->list[i].copy = NULL;
        tn_drop(copy);
        any = true;
    }
    return any;
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
        tn__mem_spare(free_unused);
    }
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].weight == weight) return c->list + (c->last = i);
    if (c->count == c->room) {
        const size_t room = c->room ? 2 * c->room : 16;
        void        *list = c->list;
        if (!tn__mem_grow(&list, c->room * sizeof *c->list, room * sizeof *c->list)) return NULL;
        c->list = list, c->room = room;
    }
    c->list[c->count] = (entry){.weight = tn_keep(weight)};
    return c->list + (c->last = c->count++);
}

/* The weight's copy, from the cache or new; NULL: raised. infer calls this first, so that the forward, which must not
 * fail, finds the copy in the cache. */
static tn_tensor *copy_of(tn_tensor *weight)
{
    const uint32_t version = atomic_load(&weight->storage->version);
    entry         *e = place(weight);
    if (e) e->recorded = e->recorded || !tn__self.mode.no_grad;
    if (!e || (e->copy && e->version == version)) return e ? e->copy : NULL;
    tn_tensor *copy = exchange(weight, NULL, version);
    if (!copy) {
        if (!(copy = tn__new_owned(TN_BF16, weight->l.shape))) return NULL;
        tn__copy(copy, weight);
    }
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

bool tn__is_conversion(const tn_op *op) { return op == &of_weight || op == &tn__op_to; }

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

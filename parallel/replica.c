/* replica.c — a rank's shards of a batch: runs them one after the other, each with its own gradients and random
 * numbers, and adds the gradients of siblings in the tree. */
#include "optim/norm.h"
#include "parallel/parallel_private.h"

#include <math.h>
#include <string.h>

enum { LINE = 64, MOST_BUCKET = 64 << 20 };

/* ---- creating and freeing ---------------------------------------------------------------------------------------- */

static bool check(const tn_replica_config *c)
{
    if (!c->world) return tn_raise_false(TN_EINVAL, "tn_replica_new: the world is NULL");
    if (tn_error() != TN_OK) return false;
    if (!c->module) tn_raise(TN_EINVAL, "tn_replica_new: the module is NULL");
    else if (c->fast && c->sparse)
        tn_raise(TN_EINVAL, "tn_replica_new: .sparse and .fast exclude each other: with .fast the transport adds all "
                            "gradients");
    else if (c->fast && tn_world_size(c->world) > 1 && !c->world->t.sum)
        tn_raise(TN_EUNSUPPORTED, "tn_replica_new: .fast needs a transport with .sum");
    else if (c->shards < tn_world_size(c->world) || c->shards > TN_SHARDS_MAX)
        tn_raise(TN_EINVAL,
                 "tn_replica_new: .shards is %d, but must be at least the number of ranks, %d, and at most %d",
                 c->shards, tn_world_size(c->world), TN_SHARDS_MAX);
    else if (c->bucket < LINE || c->bucket > MOST_BUCKET)
        tn_raise(TN_EINVAL, "tn_replica_new: .bucket is %lld, but must be from 64 bytes to 64 MiB",
                 (long long)c->bucket);
    return tn_error() == TN_OK && tn__clip_check("tn_replica_new", &c->clip);
}

static bool is_trained(const tn_each *p) { return p->parameter && tn_dtype_is_float(tn_dtype_of(p->tensor)); }

/* Sets the offset of each parameter's gradient: first those that are added in f32, then those in f64. */
static bool lay_out(tn_replica *r)
{
    for (tn_each p = tn_module_each(r->module, TN_EACH_PARAMETER); tn_next(&p);) r->places += is_trained(&p);
    if (!(r->place = tn_mem_get((size_t)r->places * sizeof *r->place + 1))) return false;
    int64_t n = 0;
    for (tn_each p = tn_module_each(r->module, TN_EACH_PARAMETER); tn_next(&p);)
        if (is_trained(&p))
            r->place[n++] = (tn__place){.t = tn_keep(p.tensor),
                                        .wide = tn_dtype_of(p.tensor) == TN_F64 ? TN_F64 : TN_F32,
                                        .n = tn_numel(p.tensor)};
    for (int f64 = 0; f64 < 2; f64++) {
        for (int64_t i = 0; i < n; i++) {
            tn__place *p = r->place + i;
            int64_t    bytes;
            if ((p->wide == TN_F64) != f64) continue;
            p->at = r->bytes;
            if (!tn__mul_i64(p->n, (int64_t)tn_dtype_size(p->wide), &bytes) ||
                !tn__add_i64(r->bytes, (bytes + LINE - 1) / LINE * LINE, &r->bytes))
                return tn_raise_false(TN_ENOMEM, "tn_replica_new: the parameters are too large");
        }
        r->bytes = (r->bytes + TN__BLOCK - 1) / TN__BLOCK * TN__BLOCK;
        if (!f64) r->f64_at = r->bytes;
    }
    for (int64_t i = 0; i < n; i++) /* the rank whose part has the middle of the parameter */
        r->place[i].owner =
            (int)((double)(r->place[i].at + r->place[i].n * 2) / ((double)r->bytes + 1) * tn_world_size(r->world));
    return true;
}

/* The maximum number of branches on the stack, including the newest leaf. */
static int depth_of(const tn_replica *r)
{
    tn__branch some[TN__BRANCHES];
    int        most = 1;
    for (int hi = r->lo; hi < r->hi; hi++) {
        const int n = tn__branches(r->shards, r->lo, hi, some) + 1;
        if (n > most) most = n;
    }
    return most;
}

static bool take_memory(tn_replica *r)
{
    const int     size = r->world->t.size, depth = depth_of(r);
    tn__branch    some[TN__BRANCHES];
    const int64_t most = (r->shards + size - 1) / size, numbers = (size + 1) * (most * 16 + r->places);
    const int64_t part = (r->bucket / LINE / size + 2) * LINE;
    int64_t       branches = 0;
    for (int i = 0; i < size; i++)
        branches +=
            tn__branches(r->shards, tn__first_shard(r->shards, i, size), tn__first_shard(r->shards, i + 1, size), some);
    const int64_t head = (4 * size * (int64_t)sizeof(int) + LINE - 1) / LINE * LINE;
    r->blocks = r->sparse && size > 1 ? r->bytes / TN__BLOCK : 0;
    if (size > 1)
        r->buffer_bytes = tn__max_i64(tn__max_i64(numbers, head + depth * (r->bucket + LINE) + branches * part),
                                      (size + 1) * r->blocks);
    if (!tn__mul_i64(depth, r->bytes, &r->memory_bytes))
        return tn_raise_false(TN_ENOMEM, "tn_replica_new: the gradients are too large");
    r->memory = tn__mem_zeroed((size_t)r->memory_bytes + 1); /* the gaps between parameters stay zero */
    r->losses = tn_mem_get((size_t)r->shards * 2 * sizeof *r->losses);
    r->has_grad = tn_mem_get((size_t)r->places + 1);
    r->buffer = tn_mem_get((size_t)r->buffer_bytes + 1);
    r->touched = tn_mem_get((size_t)r->blocks + 1);
    for (int i = 0; i < depth; i++) r->sum[i] = r->memory ? r->memory + i * r->bytes : NULL;
    return r->memory && r->losses && r->has_grad && r->buffer && r->touched;
}

void tn_replica_free(tn_replica *r)
{
    if (!r) return;
    tn__overlap_free(r);
    for (int64_t i = 0; r->place && i < r->places; i++) tn_drop(r->place[i].t);
    tn_mem_put(r->place, (size_t)r->places * sizeof *r->place + 1);
    if (r->memory) tn__mem_put(r->memory, (size_t)r->memory_bytes + 1);
    tn_mem_put(r->losses, (size_t)r->shards * 2 * sizeof *r->losses);
    tn_mem_put(r->has_grad, (size_t)r->places + 1);
    tn_mem_put(r->buffer, (size_t)r->buffer_bytes + 1);
    tn_mem_put(r->touched, (size_t)r->blocks + 1);
    tn_mem_put(r, sizeof *r);
}

/* False (raised) if the module has batch norms: each rank would have running statistics of its own. */
static bool keeps_no_statistics(const tn_replica_config *c)
{
    for (tn_each b = tn_module_each(c->module, TN_EACH_SAVED); c->world->t.size > 1 && tn_next(&b);) {
        const size_t n = strlen(b.name), of = strlen("running_mean");
        if (n >= of && !strcmp(b.name + n - of, "running_mean"))
            return tn_raise_false(
                TN_EUNSUPPORTED,
                "tn_replica_new: '%s' belongs to a batch norm, whose running statistics would differ between "
                "ranks; use a layer norm or a group norm",
                b.name);
    }
    return true;
}

static tn_replica *create(const tn_replica_config *c)
{
    tn_replica *r = check(c) && keeps_no_statistics(c) ? tn_mem_get(sizeof *r) : NULL;
    if (!r) return NULL;
    const int rank = c->world->t.rank, size = c->world->t.size;
    r->world = c->world, r->module = c->module, r->shards = c->shards, r->bucket = c->bucket / LINE * LINE;
    r->lo = tn__first_shard(c->shards, rank, size), r->hi = tn__first_shard(c->shards, rank + 1, size);
    r->zero = c->zero, r->fast = c->fast, r->sparse = c->sparse, r->clip = c->clip;
    r->next = -1, r->loss = r->norm = NAN;
    if (lay_out(r) && take_memory(r)) {
        if (!c->overlap || c->fast || c->sparse || size == 1 || (r->overlap = tn__overlap_new(r))) return r;
    }
    tn_replica_free(r);
    return NULL;
}

/* Compares the builds: another version, compiler or instruction set may compute other bits; another number of threads
 * does not, so the text is cut before it. */
static void same_build(tn_world *w)
{
    char text[200];
    snprintf(text, sizeof text, "%s", tn_build_info());
    char *end = strstr(text, " kernels");
    if (end) *end = 0;
    tn_world_check_same(w, "build of Tenon or instruction set (see tn_build_info)", text);
}

tn_replica *tn_replica_create(tn_replica_config c)
{
    tn_replica *r = create(&c);
    if (!c.world) return NULL;
    same_build(c.world);
    const int64_t numbers[] = {c.shards, c.bucket, c.zero, c.fast, c.sparse, c.overlap};
    const double  clip[] = {c.clip.norm, c.clip.largest, c.clip.value, c.clip.error_if_nonfinite};
    uint64_t      sum = tn__fnv1a_f64(TN__FNV1A, (int)(sizeof clip / sizeof *clip), clip);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sum = tn__fnv1a_i64(sum, numbers[i]);
    tn__world_begin(c.world, TN__REPLICA, sum, "other options (.shards, .bucket, ...)");
    if (tn_world_module_broadcast(c.world, c.module) == TN_OK) return r;
    tn_replica_free(r);
    return NULL;
}

/* ---- one shard --------------------------------------------------------------------------------------------------- */

/* The generator of a shard: its seed is splitmix64 of the batch's key and the shard. */
static tn_generator generator_of(const tn_replica *r, int shard)
{
    uint64_t z = r->key + UINT64_C(0x9E3779B97F4A7C15) * ((uint64_t)shard + 1);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return (tn_generator){.seed = z ^ (z >> 31)};
}

/* False (raised) if gradients wait for further ones. The exchange sets gradients, it does not add to them. */
static bool accumulates_nothing(const tn_replica *r)
{
    for (int64_t i = 0; i < r->places; i++)
        if (tn__grad_waits(r->place[i].t))
            return tn_raise_false(
                TN_EUNSUPPORTED,
                "tn_replica_next: the gradient of the batch before waits for an update, because its optimizer "
                "accumulates (tn_accumulate), which a replica does not support; use larger batches and multiply "
                ".shards instead");
    return true;
}

static void drop_gradients(const tn_replica *r)
{
    tn_error_state aside;
    tn_error_push(&aside);
    tn_module_zero_grad(r->module);
    tn_error_pop(&aside);
}

static void begin_batch(tn_replica *r)
{
    tn_generator *g = tn_current_generator();
    r->before = *g;
    r->key = (uint64_t)tn_random_u32(g) << 32;
    r->key |= tn_random_u32(g);
    r->after = *g;
    r->next = r->lo, r->waiting = 0, r->seconds = 0;
    memset(r->losses, 0, (size_t)r->shards * 2 * sizeof *r->losses);
    memset(r->has_grad, 0, (size_t)r->places);
    tn_module_zero_grad(r->module);
}

static void begin_shard(tn_replica *r, tn_part *p)
{
    p->shard = (tn_shard){.rank = r->next, .of = r->shards};
    p->scope_ = tn_scope_begin();
    p->open_ = true;
    *tn_current_generator() = generator_of(r, r->next);
}

tn_status tn_replica_backward(tn_replica *r, tn_tensor *loss, double weight)
{
    char text[192];
    if (tn__blocked()) return tn_error();
    if (!r || r->next < 0)
        return tn_raise(TN_ESTATE, "tn_replica_backward: no shard is open; call it in a loop of tn_replica_next");
    if (!loss || tn_numel(loss) != 1)
        return tn_raise(TN_ESHAPE, "tn_replica_backward: the loss is %s, but must be one value; see tn_mean",
                        loss ? tn_shape_text(tn_shape_of(loss), text, sizeof text) : "NULL");
    if (!(weight >= 0 && weight < INFINITY))
        return tn_raise(
            TN_EINVAL, "tn_replica_backward: weight is %g, but must be the number of rows that the loss is the mean of",
            weight);
    const double value = tn_item(loss);
    if (value - value != 0)
        return tn_raise(TN_ENUMERIC,
                        "the loss of shard %d of %d is %s; the weights are unchanged since the last step; a smaller "
                        "learning rate or clipping may help; tn_detect_anomaly(true) names the op",
                        r->next, r->shards, value != value ? "NaN" : "infinite");
    if (weight == 0) return TN_OK;
    r->losses[2 * r->next] += weight * value, r->losses[2 * r->next + 1] += weight;
    tn_tensor *seed = tn_full_like(loss, weight);
    if (!r->overlap || r->next < r->hi - 1) return tn_backward(loss, .seed = seed);
    if (tn__overlap_running(r))
        return tn_raise(TN_ESTATE,
                        "tn_replica_backward: with .overlap only one call per shard is possible, and this is the "
                        "second");
    r->part_called = true;
    if (!tn__world_begin(r->world, TN__PART, 0, NULL)) return tn_error();
    const double start = tn__seconds();
    if (!tn__replica_exchange_losses(r)) return tn_error();
    r->seconds += tn__seconds() - start;
    tn__overlap_start(r);
    return tn_backward_notify(loss, seed, tn__overlap_ready, r);
}

/* Pushes the gradients of the finished shard as the newest branch; then adds branches that are siblings. */
static void end_shard(tn_replica *r)
{
    if (tn__overlap_running(r)) {
        tn__overlap_complete(r);
        tn_module_zero_grad(r->module);
        r->next++;
        return;
    }
    const int top = r->waiting;
    for (int64_t i = 0; i < r->places; i++) {
        const tn__place *p = r->place + i;
        const size_t     bytes = (size_t)p->n * tn_dtype_size(p->wide);
        const tn_tensor *g = tn_grad(p->t);
        char            *to = r->sum[top] + p->at;
        if (g && tn_copy_out(g, p->wide, to, bytes) != TN_OK) return;
        if (g) r->has_grad[i] = 1;
        else memset(to, 0, bytes);
    }
    tn_module_zero_grad(r->module);
    r->branch[r->waiting++] = (tn__branch){r->next, r->next + 1};
    r->next++;
    for (int n = r->waiting; n > 1 && tn__siblings(r->shards, r->branch[n - 2], r->branch[n - 1]); n--) {
        tn__gradients_add(r, r->sum[n - 2], r->sum[n - 1], 0, r->bytes);
        r->branch[n - 2].hi = r->branch[n - 1].hi;
        r->waiting = n - 1;
    }
}

/* ---- the whole batch --------------------------------------------------------------------------------------------- */

/* Sets the parameters' gradients to the sums. Hooks were called for each shard's gradients. */
static void put_gradients(const tn_replica *r)
{
    for (int64_t i = 0; i < r->places && tn_error() == TN_OK; i++) {
        const tn__place *p = r->place + i;
        if (!r->has_grad[i]) continue;
        const tn_scope s = tn_scope_begin();
        tn_set_grad(p->t, tn_borrow(p->wide, tn_shape_of(p->t), r->sum[0] + p->at, NULL, NULL));
        tn_scope_end(s);
    }
}

/* Exchanges the gradients. With .overlap, a rank whose last shard is empty has not started sending yet; an error during
 * sending reaches the other ranks in the collective call after it. */
static bool exchange(tn_replica *r)
{
    if (!r->overlap) return tn__world_begin(r->world, TN__PART, 0, NULL) && tn__replica_exchange(r);
    if (!tn__overlap_running(r)) {
        if (r->part_called || !tn__world_begin(r->world, TN__PART, 0, NULL) || !tn__replica_exchange_losses(r))
            return false;
        tn__overlap_start_late(r);
    }
    tn__overlap_finish(r);
    return tn__world_begin(r->world, TN__PART, 0, NULL) && tn__replica_exchange_flags(r);
}

static void end_batch(tn_replica *r)
{
    const bool   begun = r->next >= 0;
    const double start = tn__seconds();
    if (exchange(r)) {
        r->seconds += tn__seconds() - start;
        put_gradients(r);
    }
    r->next = -1, r->part_called = false;
    if (begun) *tn_current_generator() = tn_error() == TN_OK ? r->after : r->before;
    if (tn_error() != TN_OK) drop_gradients(r);
}

bool tn_replica_next(tn_replica *r, tn_part *p)
{
    if (!r || !p) {
        if (tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_replica_next: %s is NULL", r ? "p" : "r");
        return false;
    }
    if (p->open_) {
        if (tn_error() == TN_OK || tn__overlap_running(r)) end_shard(r);
        tn_scope_end(p->scope_);
        p->open_ = false;
    } else if (tn_error() == TN_OK && accumulates_nothing(r)) {
        begin_batch(r);
    }
    if (tn_error() == TN_OK && r->next < r->hi) {
        begin_shard(r, p);
        return true;
    }
    end_batch(r);
    return false;
}

tn_shard tn_replica_shard(const tn_replica *r)
{
    return r ? (tn_shard){.rank = r->lo, .of = r->shards, .count = r->hi - r->lo} : (tn_shard){0};
}

void tn_replica_cancel(tn_replica *r, tn_part *p)
{
    if (!r || !p || !p->open_) return;
    if (tn__overlap_running(r)) tn__overlap_complete(r), tn__overlap_finish(r); /* the other ranks wait for it */
    tn_scope_end(p->scope_);
    *p = (tn_part){.open_ = false};
    r->next = -1, r->part_called = false;
    *tn_current_generator() = r->before;
    drop_gradients(r);
}

double tn_replica_loss(const tn_replica *r) { return r ? r->loss : NAN; }
double tn_replica_seconds(const tn_replica *r) { return r ? r->seconds : 0; }

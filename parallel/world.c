/* world.c — ranks and collective calls; an error of one rank becomes an error of all.
 *
 * Each collective call starts with an exchange of the ranks' status, the call, and a hash of its arguments. So a rank
 * with an error takes part in the next call of the other ranks, whichever call it makes itself, and ranks that make
 * different calls get an error instead of waiting for each other. */
#include "core/system/system.h"

#include "parallel/parallel_private.h"

#include <math.h>
#include <string.h>

enum { TEXT = 1000, PIECE = 1 << 30 };

static const char *const call_names[] = {
    "nothing",        "tn_world_barrier", "tn_world_gather", "tn_world_check_same", "tn_world_broadcast",
    "tn_replica_new", "tn_replica_next",  "tn_replica_step", "tn_replica_collect",  "tn_world_free"};

/* ---- a world ----------------------------------------------------------------------------------------------------- */

tn_world *tn_world_from_transport(tn_transport t)
{
    tn_world *w = NULL;
    if (!tn__blocked()) {
        if (t.size < 1 || t.rank < 0 || t.rank >= t.size)
            tn_raise(TN_EINVAL,
                     "tn_world_from_transport: .rank is %d, but must be from 0 to .size - 1, and .size is %d", t.rank,
                     t.size);
        else if (t.size > 1 && (!t.gather || !t.broadcast || !t.swap))
            tn_raise(TN_EINVAL, "tn_world_from_transport: more than one rank needs .gather, .broadcast and .swap");
        else if ((w = tn_mem_get(sizeof *w)) && !(w->all = tn_mem_get((size_t)t.size * sizeof *w->all)))
            tn_mem_put(w, sizeof *w), w = NULL;
    }
    if (!w) {
        if (t.free) t.free(t.user);
        return NULL;
    }
    w->t = t;
    return w;
}

tn_world *tn_world_single(void) { return tn_world_from_transport((tn_transport){.size = 1}); }

int tn_world_rank(const tn_world *w) { return w ? w->t.rank : 0; }
int tn_world_size(const tn_world *w) { return w ? w->t.size : 1; }

void tn_world_free(tn_world *w)
{
    if (!w) return;
    tn__world_begin(w, TN__FREE, 0, NULL);
    if (w->t.free) w->t.free(w->t.user);
    tn_mem_put(w->all, (size_t)w->t.size * sizeof *w->all);
    tn_mem_put(w, sizeof *w);
}

void tn_world_set_flag(tn_world *w, bool on)
{
    if (w) w->flag = on;
}
bool tn_world_flag(const tn_world *w) { return w && (w->t.size > 1 ? w->any_flag : w->flag); }

bool tn_world_is_local(const tn_world *w) { return !w || w->t.size == 1 || (w->t.near && !(w->rate > 0)); }

void tn_world_simulate_network(tn_world *w, double seconds, double bytes_per_second)
{
    if (w) w->latency = seconds, w->rate = bytes_per_second;
}

/* ---- the start of a collective call ------------------------------------------------------------------------------ */

bool tn__world_ok(tn_world *w, tn_status status)
{
    if (status == TN_OK && tn_error() == TN_OK) return true;
    w->broken = true;
    if (tn_error() == TN_OK) tn_raise(status, "the transport of rank %d failed, but raised no error", w->t.rank);
    return false;
}

void tn__world_delay(const tn_world *w, double start, int64_t bytes)
{
    const double rest = w->rate > 0 ? start + w->latency + (double)bytes / w->rate - tn__seconds() : 0;
    if (rest > 0) tn__sys_nap((int64_t)(rest * 1e9));
}

bool tn__world_broadcast(tn_world *w, void *data, int64_t bytes, int from)
{
    if (w->t.size == 1) return true;
    for (char *p = data; bytes > 0; p += PIECE, bytes -= PIECE)
        if (!tn__world_ok(w, w->t.broadcast(w->t.user, p, (int)tn__min_i64(bytes, PIECE), from))) return false;
    return true;
}

/* Raises the error of the first rank that has failed on all ranks. */
static void raise_everywhere(tn_world *w, int from, const tn_error_state *own)
{
    char text[TEXT] = "";
    if (from == w->t.rank) memcpy(text, own->text, sizeof text - 1);
    if (!tn__world_broadcast(w, text, sizeof text, from)) return;
    text[sizeof text - 1] = 0;
    tn_raise((tn_status)w->all[from].status, "rank %d: %s", from, text);
}

static int first_failed(const tn_world *w)
{
    for (int i = 0; i < w->t.size; i++)
        if (w->all[i].status != TN_OK) return i;
    return -1;
}

/* After no rank has failed: raises if the ranks' calls or arguments differ. */
static void compare_headers(const tn_world *w, const char *differs)
{
    const tn__call_header *a = w->all, *b;
    for (int i = 1; i < w->t.size; i++) {
        b = w->all + i;
        if (a->call != b->call) {
            tn_raise(TN_ESTATE, "rank 0 calls %s, but rank %d calls %s; all ranks must make the same calls",
                     call_names[a->call], i, call_names[b->call]);
            return;
        }
        if (a->hash != b->hash) {
            tn_raise(TN_EINVAL, "%s: rank %d has %s than rank 0", call_names[a->call], i,
                     differs ? differs : "other arguments");
            return;
        }
    }
}

static void exchange_headers(tn_world *w, tn__call_header mine, const char *differs, const tn_error_state *own)
{
    if (!tn__world_ok(w, w->t.gather(w->t.user, &mine, w->all, (int)sizeof mine))) return;
    w->any_flag = false;
    for (int i = 0; i < w->t.size; i++) {
        if (w->all[i].call == TN__FREE) w->broken = true; /* that rank takes part in no further call */
        w->any_flag = w->any_flag || w->all[i].flag;
    }
    const int failed = first_failed(w);
    if (failed >= 0) raise_everywhere(w, failed, own);
    else compare_headers(w, differs);
}

bool tn__world_begin(tn_world *w, tn__world_call call, uint64_t hash, const char *differs)
{
    if (w->t.size == 1 || w->broken) {
        if (w->broken && tn_error() == TN_OK && call != TN__FREE)
            tn_raise(TN_ESTATE, "%s: a rank has ended, or could not be reached; restart all ranks", call_names[call]);
        return tn_error() == TN_OK;
    }
    tn_error_state        aside;
    const tn_status       own = tn_error();
    const tn__call_header mine = {(int32_t)own, (int16_t)call, w->flag, hash};
    tn_error_push(&aside);
    exchange_headers(w, mine, differs, &aside);
    tn__error_first(&aside);
    return tn_error() == TN_OK;
}

/* ---- public collective calls ------------------------------------------------------------------------------------- */

static bool world_given(const tn_world *w, const char *who)
{
    if (!w && tn_error() == TN_OK) tn_raise(TN_EINVAL, "%s: the world is NULL", who);
    return w;
}

tn_status tn_world_barrier(tn_world *w)
{
    if (world_given(w, "tn_world_barrier")) tn__world_begin(w, TN__BARRIER, 0, NULL);
    return tn_error();
}

tn_status tn_world_gather(tn_world *w, double mine, double *all)
{
    for (int i = 0; all && i < tn_world_size(w); i++) all[i] = NAN;
    if (!world_given(w, "tn_world_gather")) return tn_error();
    if (!all && tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_world_gather: all is NULL");
    if (!tn__world_begin(w, TN__GATHER, 0, NULL) || !all) return tn_error();
    if (w->t.size == 1) all[0] = mine;
    else tn__world_ok(w, w->t.gather(w->t.user, &mine, all, (int)sizeof mine));
    return tn_error();
}

tn_status tn_world_check_same(tn_world *w, const char *what, const char *text)
{
    char differs[200];
    if (!world_given(w, "tn_world_check_same")) return tn_error();
    if ((!what || !text) && tn_error() == TN_OK) tn_raise(TN_EINVAL, "tn_world_check_same: what or text is NULL");
    snprintf(differs, sizeof differs, "another %s", what ? what : "");
    tn__world_begin(w, TN__SAME, text ? tn__fnv1a(TN__FNV1A, text, strlen(text)) : 0, differs);
    return tn_error();
}

/* ---- a module ---------------------------------------------------------------------------------------------------- */

/* FNV-1a of names, dtypes and shapes. */
static uint64_t hash_module(void *module)
{
    uint64_t h = TN__FNV1A;
    for (tn_each e = tn_module_each(module, TN_EACH_PARAMETER | TN_EACH_BUFFER); tn_next(&e);) {
        h = tn__fnv1a(h, e.name, strlen(e.name) + 1);
        h = tn__fnv1a_i64(h, tn_dtype_of(e.tensor));
        for (int d = 0; d < tn_ndim(e.tensor); d++) h = tn__fnv1a_i64(h, tn_size(e.tensor, d));
    }
    return h;
}

/* Makes the checks that may fail on a single rank, before the collective call. */
static void try_tensors(void *module)
{
    const tn_scope s = tn_no_grad_begin();
    for (tn_each e = tn_module_each(module, TN_EACH_PARAMETER | TN_EACH_BUFFER); tn_next(&e);) {
        if (tn_error() != TN_OK || !tn_numel(e.tensor)) continue;
        if (!tn_is_contiguous(e.tensor))
            tn_raise(TN_EUNSUPPORTED, "tn_world_broadcast: '%s' is not contiguous; register a contiguous copy", e.name);
        else (void)tn_data_mut(e.tensor);
    }
    tn_scope_end(s);
}

static void broadcast_tensors(tn_world *w, void *module)
{
    const tn_scope s = tn_no_grad_begin();
    for (tn_each e = tn_module_each(module, TN_EACH_PARAMETER | TN_EACH_BUFFER); tn_next(&e);) {
        const int64_t bytes = tn_numel(e.tensor) * (int64_t)tn_dtype_size(tn_dtype_of(e.tensor));
        if (bytes && !tn__world_broadcast(w, tn_data_mut(e.tensor), bytes, 0)) break;
    }
    tn_scope_end(s);
}

tn_status tn_world_module_broadcast(tn_world *w, void *module)
{
    if (!world_given(w, "tn_world_broadcast")) return tn_error();
    uint64_t hash = 0;
    if (module && tn_error() == TN_OK) try_tensors(module), hash = hash_module(module);
    if (!tn__world_begin(w, TN__BROADCAST, hash, "a module with other names, dtypes or shapes")) return tn_error();
    if (w->t.size == 1) return TN_OK;
    if (!tn__world_broadcast(w, tn_current_generator(), sizeof(tn_generator), 0)) return tn_error();
    if (module) broadcast_tensors(w, module);
    return tn_error();
}

/* profile.c — times ops and spans while a profile is open. Without one each op pays one branch, on tn__tape.profile.
 * Out of memory, a profile loses events and counts the lost ones; it never makes the profiled calls fail. */
#include "core/system/system.h"

#include "autograd/tape/profile.h"
#include "core/base/checksums.h"

#include <stdlib.h>
#include <string.h>

/* ---- entries: a module, a name and a kind ------------------------------------------------------------------------ */

static uint64_t hash_of(const char *module, const char *name, tn__timed_kind kind)
{
    return tn__fnv1a(tn__fnv1a(TN__FNV1A + (uint64_t)kind, module, strlen(module) + 1), name, strlen(name));
}

static char *text(const char *s)
{
    const size_t n = strlen(s) + 1;
    char        *p = tn__mem_try(n);
    if (p) memcpy(p, s, n);
    return p;
}

static int64_t slot_of(const tn_profile *p, uint64_t hash, const char *module, const char *name, tn__timed_kind kind)
{
    const uint64_t mask = 2 * (uint64_t)p->capacity - 1;
    for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
        const tn__timing *e = p->table[at] ? p->entry + p->table[at] - 1 : NULL;
        if (!e || (e->hash == hash && e->kind == kind && !strcmp(e->module, module) && !strcmp(e->name, name)))
            return (int64_t)at;
    }
}

static bool more_entries(tn_profile *p)
{
    const int64_t n = p->capacity ? 2 * p->capacity : 64;
    tn__timing   *entry = tn__mem_try((size_t)n * sizeof *entry);
    int32_t      *table = tn__mem_try(2 * (size_t)n * sizeof *table), *old = p->table;
    if (!entry || !table || n > INT32_MAX / 2) {
        tn__mem_put(entry, (size_t)n * sizeof *entry);
        tn__mem_put(table, 2 * (size_t)n * sizeof *table);
        return false;
    }
    if (p->entries) memcpy(entry, p->entry, (size_t)p->entries * sizeof *entry);
    memset(table, 0, 2 * (size_t)n * sizeof *table);
    tn__mem_put(p->entry, (size_t)p->capacity * sizeof *entry);
    tn__mem_put(old, 2 * (size_t)p->capacity * sizeof *old);
    p->entry = entry, p->table = table, p->capacity = n;
    for (int32_t i = 0; i < p->entries; i++)
        table[slot_of(p, entry[i].hash, entry[i].module, entry[i].name, entry[i].kind)] = i + 1;
    return true;
}

static int32_t entry_of(tn_profile *p, const char *module, const char *name, tn__timed_kind kind)
{
    const uint64_t hash = hash_of(module, name, kind);
    if (p->entries == p->capacity && !more_entries(p)) return -1;
    const int64_t at = slot_of(p, hash, module, name, kind);
    if (p->table[at]) return p->table[at] - 1;
    tn__timing e = {.module = text(module), .name = text(name), .hash = hash, .kind = kind};
    if (!e.module || !e.name) return tn__strfree(e.module), tn__strfree(e.name), -1;
    p->entry[p->entries] = e;
    p->table[at] = (int32_t)++p->entries;
    return p->table[at] - 1;
}

/* ---- timing ------------------------------------------------------------------------------------------------------ */

void tn__timed_begin(const char *module, const char *name, tn__timed_kind kind, bool backward)
{
    tn_profile *p = tn__tape.profile;
    char        path[512];
    if (p->depth++ >= TN__PROFILE_DEPTH) return;
    for (int i = p->depth - 2; i >= 0 && kind != TN__TIMED_INNER; i--) {
        const int32_t outer = p->open_calls[i].e.entry;
        if (outer < 0 || p->entry[outer].kind == TN__TIMED_SPAN) continue;
        kind = TN__TIMED_INNER, module = p->entry[outer].module, backward = p->open_calls[i].e.backward;
    }
    if (!module) tn__path_text(path, sizeof path), module = path;
    const int32_t entry = entry_of(p, module, name, kind);
    p->open_calls[p->depth - 1].inside = 0;
    p->open_calls[p->depth - 1].e =
        (tn__timed_event){.entry = entry, .backward = backward, .start = tn__sys_nanoseconds()};
}

void tn__timed_end(void)
{
    tn_profile *p = tn__tape.profile;
    if (!p || !p->depth || --p->depth >= TN__PROFILE_DEPTH) return; /* the profile was opened inside the op or span */
    tn__timed_event e = p->open_calls[p->depth].e;
    e.ns = tn__sys_nanoseconds() - e.start;
    if (p->depth) p->open_calls[p->depth - 1].inside += e.ns;
    if (e.entry >= 0) {
        tn__timing *t = p->entry + e.entry;
        t->calls[e.backward]++;
        t->ns[e.backward] += t->kind == TN__TIMED_SPAN ? e.ns - p->open_calls[p->depth].inside : e.ns;
    }
    if (p->events == p->event_capacity && p->events < TN__PROFILE_EVENTS) {
        const int64_t    n = p->events ? 2 * p->events : 1024;
        tn__timed_event *more = tn__mem_try((size_t)n * sizeof *more);
        if (more) {
            if (p->events) memcpy(more, p->event, (size_t)p->events * sizeof *more);
            tn__mem_put(p->event, (size_t)p->event_capacity * sizeof *more);
            p->event = more, p->event_capacity = n;
        }
    }
    if (e.entry >= 0 && p->events < p->event_capacity) p->event[p->events++] = e;
    else p->lost++;
}

/* The bytes of t's elements; those that broadcasting repeats count once. */
static int64_t bytes_of(const tn_tensor *t)
{
    int64_t n = (int64_t)tn__dtype_bytes(t->dtype);
    for (int i = 0; i < t->l.shape.n; i++)
        if (t->l.stride[i] || !t->l.shape.d[i]) n *= t->l.shape.d[i];
    return n;
}

void tn__timed_bytes(int n, tn_tensor *const *t)
{
    tn_profile *p = tn__tape.profile;
    if (!p || !p->depth || p->depth > TN__PROFILE_DEPTH) return;
    const tn__timed_event e = p->open_calls[p->depth - 1].e;
    for (int i = 0; i < n && e.entry >= 0; i++)
        if (t[i]) p->entry[e.entry].bytes[e.backward] += bytes_of(t[i]);
}

void tn_span_begin(const char *name)
{
    if (tn__tape.profile) tn__timed_begin(NULL, name ? name : "", TN__TIMED_SPAN, false);
}
void tn_span_end(void)
{
    if (tn__tape.profile) tn__timed_end();
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

tn_profile *tn_profile_begin(void)
{
    if (tn__blocked()) return NULL;
    if (tn__tape.profile)
        return tn_raise_null(TN_ESTATE, "tn_profile_begin: a profile of this thread is already open; end it first");
    tn_profile *p = tn__mem_zeroed(sizeof *p);
    if (!p) return NULL;
    p->thread = tn__thread_id(), p->open = true, p->began = tn__sys_nanoseconds();
    return tn__tape.profile = p;
}

tn_profile *tn_profile_from_env(void)
{
    const char *wish = getenv("TENON_PROFILE");
    if (!wish || !*wish || !strcmp(wish, "0")) return NULL;
    tn_profile *p = tn_profile_begin();
    if (!p) return NULL;
    p->by_bytes = !strcmp(wish, "bytes");
    if (!p->by_bytes && strcmp(wish, "1") != 0 && !(p->trace = tn__strdup(wish))) tn_profile_free(p), p = NULL;
    return p;
}

void tn_profile_end(tn_profile *p)
{
    if (!p || !p->open) return;
    if (p->thread != tn__thread_id()) {
        tn_raise(TN_ESTATE, "tn_profile_end: this profile belongs to another thread, which must end it");
        return;
    }
    p->ns = tn__sys_nanoseconds() - p->began;
    p->open = false, p->depth = 0;
    tn__tape.profile = NULL;
}

void tn_profile_free(tn_profile *p)
{
    if (!p) return;
    tn_profile_end(p);
    if (p->open) return;
    for (int64_t i = 0; i < p->entries; i++) tn__strfree(p->entry[i].module), tn__strfree(p->entry[i].name);
    tn__mem_put(p->entry, (size_t)p->capacity * sizeof *p->entry);
    tn__mem_put(p->table, 2 * (size_t)p->capacity * sizeof *p->table);
    tn__mem_put(p->event, (size_t)p->event_capacity * sizeof *p->event);
    tn__strfree(p->trace);
    tn__mem_put(p, sizeof *p);
}

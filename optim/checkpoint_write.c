/* checkpoint_write.c — the data of a checkpoint other than tensors, as JSON: the optimizer's groups and step counts,
 * its schedules, random generators. All checks come before the first change. */
#include "core/files/io.h"
#include "optim/checkpoint_private.h"

#include <stdarg.h>

/* ---- mismatches -------------------------------------------------------------------------------------------------- */

void tn__mismatch_missing(tn__mismatches *m, const char *name)
{
    if (!m->missing++) snprintf(m->first_missing, sizeof m->first_missing, "%s", name);
}
void tn__mismatch_unexpected(tn__mismatches *m, const char *name)
{
    if (!m->unexpected++) snprintf(m->first_unexpected, sizeof m->first_unexpected, "%s", name);
}
void tn__mismatch_other(tn__mismatches *m, const char *fmt, ...)
{
    va_list ap;
    if (m->other++) return;
    va_start(ap, fmt);
    vsnprintf(m->first_other, sizeof m->first_other, fmt, ap);
    va_end(ap);
}

bool tn__mismatch_none(const tn__mismatches *m, const char *path, const char *what, const char *others)
{
    char text[3][500] = {"", "", ""};
    if (!m->missing && !m->unexpected && !m->other) return true;
    if (m->missing)
        snprintf(text[0], sizeof text[0], "%lld name%s missing (%s%s)", (long long)m->missing,
                 m->missing > 1 ? "s" : "", m->first_missing, m->missing > 1 ? ", …" : "");
    if (m->unexpected)
        snprintf(text[1], sizeof text[1], "%s%lld unexpected (%s%s)", m->missing ? ", " : "", (long long)m->unexpected,
                 m->first_unexpected, m->unexpected > 1 ? ", …" : "");
    if (m->other)
        snprintf(text[2], sizeof text[2], "%s%lld %s: %s", m->missing || m->unexpected ? ", " : "", (long long)m->other,
                 others, m->first_other);
    return tn_raise_false(TN_EFORMAT, "tn_checkpoint_restore: '%s' holds another %s: %s%s%s", path, what, text[0],
                          text[1], text[2]);
}

/* ---- generators -------------------------------------------------------------------------------------------------- */

void tn__record_generator(tn_json_writer *w, const tn_generator *g)
{
    tn_json_open_object(w, NULL);
    tn_json_put_u64(w, "seed", g->seed);
    tn_json_put_u64(w, "position", g->position);
    tn_json_close(w);
}

void tn__generator_apply(tn_generator *g, const tn_json *record)
{
    const uint64_t seed = tn_json_u64(tn_json_need(record, "seed")),
                   position = tn_json_u64(tn_json_need(record, "position"));
    if (tn_error() == TN_OK) g->seed = seed, g->position = position;
}

/* ---- schedules, in order of creation ----------------------------------------------------------------------------- */

static int schedules(const tn_optimizer *o)
{
    int n = 0;
    for (const tn_schedule *s = o->schedules; s; s = s->next) n++;
    return n;
}
static tn_schedule *schedule_at(const tn_optimizer *o, int at)
{
    tn_schedule *s = o->schedules;
    for (int i = schedules(o) - 1; i > at; i--) s = s->next;
    return s;
}
static int place_of(const tn_optimizer *o, const tn_schedule *schedule)
{
    int i = schedules(o) - 1;
    for (const tn_schedule *s = o->schedules; s && s != schedule; s = s->next) i--;
    return i;
}

static void record_schedule(tn_json_writer *w, const tn_schedule *s)
{
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "kind", s->kind->name);
    tn_json_put_i64(w, "t", s->t);
    if (s->parent) tn_json_put_i64(w, "part_of", place_of(s->owner, s->parent));
    tn_json_open_array(w, "numbers");
    for (int i = 0; i < s->numbers; i++) tn_json_put_double(w, NULL, s->number[i]);
    tn_json_close(w);
    if (s->kind == &tn__plateau) {
        tn__json_put_number(w, "best", s->best);
        tn_json_put_i64(w, "worse", s->bad_values);
        tn_json_put_i64(w, "rest", s->cooldown_left);
        tn_json_put_i64(w, "reductions", s->reductions);
    }
    tn_json_close(w);
}

/* The index of the schedule that this one is a part of; -1: none. */
static int64_t part_of(const tn_json *record) { return tn_json_i64_or(tn_json_get(record, "part_of"), -1); }

static void schedule_fits(const tn_schedule *s, int at, const tn_json *r, bool keep, tn__mismatches *m)
{
    const char    *kind = tn_json_string(tn_json_need(r, "kind"));
    const tn_json *numbers = tn_json_need(r, "numbers");
    const int64_t  t = tn_json_i64(tn_json_need(r, "t"));
    tn__json_number(r, "best"), tn_json_i64(tn_json_get(r, "worse"));
    tn_json_i64(tn_json_get(r, "rest")), tn_json_i64(tn_json_get(r, "reductions"));
    if (tn_error() != TN_OK) return;
    if (strcmp(kind, s->kind->name) != 0 || part_of(r) != (s->parent ? place_of(s->owner, s->parent) : -1) || t < 0) {
        tn__mismatch_other(m, "schedule %d is %s, the file has %s%s", at, s->kind->name, kind,
                           strcmp(kind, s->kind->name) != 0 ? "" : ", joined differently");
        return;
    }
    if (keep) {
        if (!s->parent && s->kind != &tn__plateau) tn__schedule_check_step(s, t);
        return;
    }
    if (tn_json_count(numbers) != s->numbers) {
        tn__mismatch_other(m, "schedule %d (%s) has %d numbers, the file has %lld", at, kind, s->numbers,
                           (long long)tn_json_count(numbers));
        return;
    }
    for (int i = 0, name = 0; i < s->numbers; i++) {
        const double v = tn_json_double(tn_json_at(numbers, i));
        if (v != s->number[i])
            tn__mismatch_other(m, "schedule %d (%s) has %s %s, the file has %s", at, kind, s->kind->number[name],
                               tn__format_number(s->number[i]), tn__format_number(v));
        if (name < 8 && s->kind->number[name + 1]) name++;
    }
}

static void apply_schedule(tn_schedule *s, const tn_json *r)
{
    s->t = tn_json_i64(tn_json_get(r, "t"));
    s->best = tn__json_number(r, "best");
    s->bad_values = tn_json_i64(tn_json_get(r, "worse"));
    s->cooldown_left = tn_json_i64(tn_json_get(r, "rest"));
    s->reductions = tn_json_i64(tn_json_get(r, "reductions"));
}

/* ---- the optimizer ----------------------------------------------------------------------------------------------- */

static const struct {
    unsigned    bit;
    const char *name;
} flags[] = {{TN__NESTEROV, "nesterov"},   {TN__MAXIMIZE, "maximize"}, {TN__AMSGRAD, "amsgrad"},
             {TN__CENTERED, "centered"},   {TN__LAZY, "lazy"},         {TN__DECOUPLED, "decoupled"},
             {TN__MATCH_RMS, "match_rms"}, {TN__BF16, "bf16"}};
enum { FLAGS = sizeof flags / sizeof *flags };

void tn__record_optimizer(tn_json_writer *w, const char *key, const tn_optimizer *o)
{
    tn_json_open_object(w, key);
    tn_json_put_string(w, "kind", o->kind->name);
    for (int i = 0; i < FLAGS; i++) tn_json_put_bool(w, flags[i].name, o->flags & flags[i].bit);
    tn_json_put_i64(w, "steps", o->steps);
    tn_json_open_array(w, "groups");
    for (int g = 0; g < o->groups; g++) {
        tn_json_open_object(w, NULL);
        for (int i = 0; i < TN_OPTS; i++)
            if (tn__has(o, (tn_opt)i)) tn_json_put_double(w, tn__option_names[i], o->group[g].option[i]);
        tn_json_close(w);
    }
    tn_json_close(w);
    tn_json_open_array(w, "parameters");
    for (int64_t i = 0; i < o->weights; i++) {
        tn_json_open_object(w, NULL);
        tn_json_put_string(w, "name", o->weight[i].name);
        tn_json_put_i64(w, "group", o->weight[i].group);
        tn_json_put_i64(w, "steps", o->weight[i].steps);
        tn_json_close(w);
    }
    tn_json_close(w);
    tn_json_open_array(w, "schedules");
    for (int i = 0; i < schedules(o); i++) record_schedule(w, schedule_at(o, i));
    tn_json_close(w);
    if (o->follower) tn_json_put_i64(w, "follows", place_of(o, o->follower));
    tn_json_close(w);
}

static const tn_json *named(const tn_json *parameters, const char *name, int64_t likely)
{
    const tn_json *p = tn_json_at(parameters, likely);
    if (p && !strcmp(tn_json_string(tn_json_get(p, "name")), name)) return p;
    for (p = tn_json_first(parameters); p; p = tn_json_next(p))
        if (!strcmp(tn_json_string(tn_json_get(p, "name")), name)) return p;
    return NULL;
}

static void parameters_fit(const tn_optimizer *o, const tn_json *parameters, tn__mismatches *m)
{
    for (int64_t i = 0; i < o->weights; i++) {
        const tn__weight *w = o->weight + i;
        const tn_json    *p = named(parameters, w->name, i);
        if (!p) {
            tn__mismatch_missing(m, w->name);
            continue;
        }
        const int64_t group = tn_json_i64(tn_json_need(p, "group")), steps = tn_json_i64(tn_json_need(p, "steps"));
        if (group != w->group || steps < 0)
            tn__mismatch_other(m, "'%s' is in group %d, in the file in group %lld", w->name, w->group,
                               (long long)group);
    }
    if (tn_json_count(parameters) == o->weights && !m->missing) return;
    for (const tn_json *p = tn_json_first(parameters); p; p = tn_json_next(p)) {
        const char *name = tn_json_string(tn_json_get(p, "name"));
        bool        known = false;
        for (int64_t i = 0; i < o->weights && !known; i++) known = !strcmp(o->weight[i].name, name);
        if (!known) tn__mismatch_unexpected(m, name);
    }
}

static void groups_fit(const tn_optimizer *o, const tn_json *groups, bool keep, tn__mismatches *m)
{
    if (tn_json_count(groups) != o->groups)
        tn__mismatch_other(m, "there are %d groups, the file has %lld", o->groups, (long long)tn_json_count(groups));
    for (const tn_json *g = tn_json_first(groups); g && !keep; g = tn_json_next(g))
        for (int i = 0; i < TN_OPTS; i++) {
            if (!tn__has(o, (tn_opt)i)) continue;
            const double v = tn_json_double(tn_json_need(g, tn__option_names[i]));
            if (tn_error() == TN_OK) tn__option_check("tn_checkpoint_restore", o->kind, (tn_opt)i, v);
        }
}

bool tn__optimizer_fits(const tn_optimizer *o, const tn_json *record, const char *path, bool keep)
{
    tn__mismatches m = {0};
    const char    *kind = tn_json_string(tn_json_need(record, "kind"));
    const tn_json *list = tn_json_need(record, "schedules");
    if (tn_error() != TN_OK) return false;
    if (strcmp(kind, o->kind->name) != 0)
        return tn_raise_false(TN_EFORMAT, "tn_checkpoint_restore: '%s' was saved with %s, but this optimizer is %s",
                              path, kind, o->kind->name);
    for (int i = 0; i < FLAGS; i++) {
        const bool here = o->flags & flags[i].bit, there = tn_json_bool(tn_json_need(record, flags[i].name));
        if (here != there)
            tn__mismatch_other(&m, "%s is %s, in the file %s", flags[i].name, here ? "true" : "false",
                               there ? "true" : "false");
    }
    if (tn_json_i64(tn_json_need(record, "steps")) < 0)
        tn__mismatch_other(&m, "the file has a negative number of steps");
    parameters_fit(o, tn_json_need(record, "parameters"), &m);
    groups_fit(o, tn_json_need(record, "groups"), keep, &m);
    if (tn_json_count(list) != schedules(o))
        tn__mismatch_other(&m, "there are %d schedules, the file has %lld", schedules(o),
                           (long long)tn_json_count(list));
    else
        for (int i = 0; i < schedules(o) && tn_error() == TN_OK; i++)
            schedule_fits(schedule_at(o, i), i, tn_json_at(list, i), keep, &m);
    if (tn_json_i64_or(tn_json_get(record, "follows"), -1) != (o->follower ? place_of(o, o->follower) : -1))
        tn__mismatch_other(&m, "its steps are followed by %s, in the file by another one",
                           o->follower ? "a schedule" : "no schedule");
    return tn_error() == TN_OK && tn__mismatch_none(&m, path, "optimizer", "that differ");
}

void tn__optimizer_apply(tn_optimizer *o, const tn_json *record, bool keep)
{
    const tn_json *list = tn_json_get(record, "parameters"), *groups = tn_json_get(record, "groups");
    o->steps = tn_json_i64(tn_json_get(record, "steps"));
    o->waiting = 0, o->norm = NAN;
    for (int64_t i = 0; i < o->weights; i++)
        o->weight[i].steps = tn_json_i64(tn_json_get(named(list, o->weight[i].name, i), "steps"));
    for (int g = 0; g < o->groups && !keep; g++)
        for (int i = 0; i < TN_OPTS; i++)
            if (tn__has(o, (tn_opt)i))
                o->group[g].option[i] = tn_json_double(tn_json_get(tn_json_at(groups, g), tn__option_names[i]));
    list = tn_json_get(record, "schedules");
    for (int i = 0; i < schedules(o); i++) apply_schedule(schedule_at(o, i), tn_json_at(list, i));
    for (int i = 0; i < schedules(o) && keep; i++) {
        tn_schedule *s = schedule_at(o, i);
        if (!s->parent && (s->kind != &tn__plateau || schedules(o) == 1)) tn__schedule_set(s, s->t);
    }
}

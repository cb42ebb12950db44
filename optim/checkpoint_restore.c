/* checkpoint_restore.c — reads a checkpoint's tensors with their checksums, and restores a training run: first it
 * checks all names, shapes and counts, then it reads all values and checks their checksums, then it makes all
 * changes. */
#include "optim/checkpoint_private.h"
#include "core/products/q8_fits.h"

static const char who[] = "tn_checkpoint_restore";

/* ---- tensors with their checksums -------------------------------------------------------------------------------- */

static bool checksum_fits(const char *call, const tn_checkpoint_file *f, int64_t entry, uint32_t crc)
{
    const char *name = tn_safetensors_at(f->tensors, entry).name;
    const char *want = tn_json_string(tn_json_get(tn_json_get(f->record, "crc32"), name));
    char        is[9];
    tn__crc_text(crc, is);
    if (!strcmp(is, want)) return true;
    return tn_raise_false(TN_EFORMAT, "%s: '%s' is damaged: the CRC-32 of '%.100s' is %s, but should be %.16s", call,
                          f->path, name, is, want);
}

static tn_tensor *read_one(const char *call, const tn_checkpoint_file *f, int64_t entry)
{
    uint32_t   crc;
    tn_tensor *t = tn_safetensors_get_at(f->tensors, entry);
    if (!t) return NULL;
    tn__crc_tensors(1, &t, &crc);
    return checksum_fits(call, f, entry, crc) ? t : NULL;
}

tn_status tn_checkpoint_verify(const tn_checkpoint_file *f)
{
    if (tn__blocked()) return tn_error();
    if (!f) return tn_raise(TN_EINVAL, "tn_checkpoint_verify: the file is NULL");
    for (int64_t i = 0; i < tn_safetensors_count(f->tensors) && tn_error() == TN_OK; i++) {
        const tn_scope s = tn_scope_begin();
        read_one("tn_checkpoint_verify", f, i);
        tn_scope_end(s);
    }
    return tn_error();
}

tn_tensor *tn_checkpoint_tensor(const tn_checkpoint_file *f, const char *name)
{
    static const char call[] = "tn_checkpoint_tensor";
    char              full[TN__NAME_ROOM];
    if (tn__blocked()) return NULL;
    if (!f || !name) return tn_raise_null(TN_EINVAL, "%s: the %s is NULL", call, f ? "name" : "file");
    snprintf(full, sizeof full, "data.%s", name);
    const int64_t entry = tn_safetensors_find(f->tensors, full);
    if (entry < 0) return tn_raise_null(TN_EINDEX, "%s: '%s' has no tensor '%.100s' of .tensors", call, f->path, name);
    return read_one(call, f, entry);
}

/* ---- the planned changes ----------------------------------------------------------------------------------------- */

typedef struct {
    tn_tensor  *target; /* the tensor whose elements change; or NULL, if slot is set */
    tn_tensor **slot;   /* the pointer to replace with a new tensor; or NULL, if target is set */
    int64_t     entry;  /* index of the tensor in the file; -1: set the slot to NULL */
} change;

typedef struct {
    const tn_checkpoint_restore_args *c;
    const tn_checkpoint_file         *f;
    change                           *change;
    tn_tensor                       **now; /* the new values of each change */
    uint32_t                         *crc;
    bool                             *used; /* [entries]: the tensor of the file has a target */
    int64_t                           changes, room, entries;
    tn__mismatches                    mismatches;
} restore;

/* Plans the change of one tensor from the file's tensor of that name. A missing tensor is a mismatch or, for a slot,
 * means that the state does not exist. False: raised. */
static bool expect(restore *r, const char *prefix, const char *name, const char *suffix, tn_dtype dt, tn_shape shape,
                   change x)
{
    char       full[TN__NAME_ROOM], here[192], record_has[192];
    const bool optional = x.slot != NULL;
    snprintf(full, sizeof full, "%s%s%s%s", prefix, name, *suffix ? "." : "", suffix);
    const char *shown = full + strlen(prefix);
    x.entry = tn_safetensors_find(r->f->tensors, full);
    if (x.entry < 0 && !optional) {
        tn__mismatch_missing(&r->mismatches, shown);
        return true;
    }
    if (x.entry >= 0) {
        const tn_safetensors_entry e = tn_safetensors_at(r->f->tensors, x.entry);
        r->used[x.entry] = true;
        if (!tn_shape_equal(e.shape, shape) || !e.loadable || e.dtype != dt) {
            tn_shape_text(shape, here, sizeof here), tn_shape_text(e.shape, record_has, sizeof record_has);
            if (tn_shape_equal(e.shape, shape))
                tn__mismatch_other(&r->mismatches, "%s is %s, the file has %s", shown, tn_dtype_name(dt), e.stored);
            else tn__mismatch_other(&r->mismatches, "%s is %s, the file has %s", shown, here, record_has);
            return true;
        }
    }
    if (r->changes >= r->room) return tn_raise_false(TN_ESTATE, "%s: more names than were counted", who);
    r->change[r->changes++] = x;
    return true;
}

/* Adds the file's unused tensors with this prefix to the mismatches; true if there are none, else raises them. */
static bool part_fits(restore *r, const char *prefix, const char *what)
{
    for (int64_t i = 0; i < r->entries; i++) {
        const char *name = tn_safetensors_at(r->f->tensors, i).name;
        if (!r->used[i] && !strncmp(name, prefix, strlen(prefix)))
            tn__mismatch_unexpected(&r->mismatches, name + strlen(prefix));
    }
    const bool fits =
        tn_error() == TN_OK && tn__mismatch_none(&r->mismatches, r->f->path, what, "of another shape or dtype");
    r->mismatches = (tn__mismatches){0};
    return fits;
}

/* False (raised) if the tensor cannot be written, for example because it is expanded. */
static bool writable(tn_tensor *t) { return tn_is_contiguous(t) || !tn_numel(t) || tn_data_mut(t); }

/* True if the run had the same frozen parameter, of which the file has the checksum; else raises. */
static bool frozen_fits(const restore *r, const tn_each *e, const char *crc)
{
    char is[9];
    if (!tn__crc_of_tensor(e->tensor, is)) return false;
    if (!strcmp(is, crc)) return true;
    return tn_raise_false(TN_EFORMAT,
                          "%s: '%s' is from a run that trained another base model: the CRC-32 of the frozen '%s' is %s "
                          "here, but was %.16s there; open the run's own base model",
                          who, r->f->path, e->name, is, crc);
}

static bool module_fits(restore *r)
{
    const tn_json *frozen = tn_json_get(r->f->record, "frozen"), *crc;
    for (tn_each e = tn_module_each(r->c->module, TN_EACH_PARAMETER | TN_EACH_SAVED); tn_next(&e);)
        if (tn__is_frozen(&e) && (crc = tn_json_get(frozen, e.name))) {
            if (!frozen_fits(r, &e, tn_json_string(crc))) return false;
        } else if (!writable(e.tensor) || !expect(r, "model.", e.name, "", tn_dtype_of(e.tensor), tn_shape_of(e.tensor),
                                                  (change){.target = e.tensor}))
            return false;
    return part_fits(r, "model.", "model");
}

static bool optimizer_fits(restore *r)
{
    tn_optimizer *o = r->c->optimizer;
    for (int64_t i = 0; i < o->weights; i++) {
        tn__weight *w = o->weight + i;
        for (int k = 0; k < TN__STATES && o->kind->state[k].name; k++) {
            tn_shape shape;
            o->kind->state[k].shape(o, w, &shape);
            if (!expect(r, "optim.", w->name, o->kind->state[k].name, w->dtype == TN_F64 ? TN_F64 : TN_F32, shape,
                        (change){.slot = &w->state[k]}))
                return false;
        }
    }
    return part_fits(r, "optim.", "optimizer");
}

static bool ema_fits(restore *r)
{
    const tn_ema  *e = r->c->ema;
    const tn_json *record = tn_json_need(r->f->record, "ema");
    if (e->swapped)
        return tn_raise_false(TN_ESTATE, "%s: the averages are swapped with the weights; call tn_ema_swap first", who);
    if (tn_json_i64(tn_json_need(record, "updates")) < 0)
        return tn_raise_false(TN_EFORMAT, "%s: '%s' has a negative number of updates", who, r->f->path);
    if (tn_json_bool(tn_json_need(record, "mean")) != e->mean && tn_error() == TN_OK)
        tn_raise(TN_EFORMAT, "%s: '%s' was saved with averages %s .mean, but these are %s", who, r->f->path,
                 e->mean ? "without" : "with", e->mean ? "with it" : "without");
    const double decay = tn_json_double(tn_json_need(record, "decay"));
    tn_json_bool(tn_json_need(record, "warmup"));
    if (tn_error() == TN_OK && !(decay >= 0 && decay <= 1))
        tn_raise(TN_EFORMAT, "%s: '%s' has averages with a decay of %s, which must be from 0 to 1", who, r->f->path,
                 tn__format_number(decay));
    if (tn_error() != TN_OK) return false;
    for (int64_t i = 0; i < e->items; i++) {
        const tn__average *a = e->item + i;
        if (!expect(r, "ema.", a->name, "", tn_dtype_of(a->average), tn_shape_of(a->average),
                    (change){.target = a->average}))
            return false;
    }
    return part_fits(r, "ema.", "set of averages");
}

static bool generators_fit(const restore *r)
{
    const tn_json *list = tn_json_need(r->f->record, "generators");
    if (tn_error() == TN_OK && tn_json_count(list) != r->c->generator_count + 1)
        return tn_raise_false(
            TN_EFORMAT,
            "%s: '%s' has %lld random generators in addition to the current one, but .generator_count is "
            "%d",
            who, r->f->path, (long long)tn_json_count(list) - 1, r->c->generator_count);
    for (const tn_json *g = tn_json_first(list); g; g = tn_json_next(g)) {
        tn_generator trial;
        tn__generator_apply(&trial, g);
    }
    return tn_error() == TN_OK;
}

static bool record_has(const restore *r, const char *key, const char *what)
{
    if (tn_json_get(r->f->record, key)) return true;
    return tn_raise_false(TN_EFORMAT, "%s: '%s' was saved without %s", who, r->f->path, what);
}

static bool all_fits(restore *r)
{
    const tn_checkpoint_restore_args *c = r->c;
    return (!c->module || module_fits(r)) &&
           (!c->optimizer ||
            (record_has(r, "optimizer", "an optimizer") &&
             tn__optimizer_fits(c->optimizer, tn_json_get(r->f->record, "optimizer"), r->f->path, c->keep_options) &&
             optimizer_fits(r))) &&
           (!c->ema || (record_has(r, "ema", "averages (.ema)") && ema_fits(r))) && generators_fit(r);
}

/* Checks packed weights (8 bits or f16), whose original shape is part of their data. */
static bool packed_fit(restore *r)
{
    char is[TN__Q8_TEXT], other[TN__Q8_TEXT];
    for (int64_t i = 0; i < r->changes; i++) {
        const change *x = &r->change[i];
        if (!x->target || tn__q8_fits(x->target, r->now[i], is, other)) continue;
        const char *name = strchr(tn_safetensors_at(r->f->tensors, x->entry).name, '.') + 1; /* after "model." */
        tn__mismatch_other(&r->mismatches, "%s is %s, the file has %s", name, is, other);
    }
    return tn__mismatch_none(&r->mismatches, r->f->path, "model", "of another shape or dtype");
}

static bool read_all(restore *r)
{
    for (int64_t i = 0; i < r->changes; i++)
        if (r->change[i].entry >= 0 && !(r->now[i] = tn_safetensors_get_at(r->f->tensors, r->change[i].entry)))
            return false;
    tn__crc_tensors(r->changes, r->now, r->crc);
    for (int64_t i = 0; i < r->changes; i++)
        if (r->now[i] && !checksum_fits(who, r->f, r->change[i].entry, r->crc[i])) return false;
    return packed_fit(r);
}

/* ---- the change -------------------------------------------------------------------------------------------------- */

static void apply_ema(tn_ema *e, const tn_json *record, bool keep)
{
    e->updates = tn_json_i64(tn_json_get(record, "updates"));
    if (keep) return;
    e->decay = tn_json_double(tn_json_get(record, "decay"));
    e->warmup = tn_json_bool(tn_json_get(record, "warmup"));
}

static void commit(restore *r)
{
    const tn_checkpoint_restore_args *c = r->c;
    const tn_json                    *g = tn_json_get(r->f->record, "generators");
    for (int64_t i = 0; i < r->changes; i++) {
        const change *x = r->change + i;
        if (x->target) {
            (void)tn_copy_from(x->target, r->now[i]);
            continue;
        }
        tn_drop(*x->slot);
        *x->slot = tn_keep(r->now[i]);
    }
    if (c->module)
        for (tn_each e = tn_module_each(c->module, TN_EACH_PARAMETER); tn_next(&e);) tn_zero_grad(e.tensor);
    if (c->ema) apply_ema(c->ema, tn_json_get(r->f->record, "ema"), c->keep_options);
    if (c->optimizer) {
        for (int64_t i = 0; i < c->optimizer->weights; i++) {
            tn__weight *w = c->optimizer->weight + i;
            tn_zero_grad(w->t);
            w->from = 0, w->to = w->n;
        }
        tn__optimizer_apply(c->optimizer, tn_json_get(r->f->record, "optimizer"), c->keep_options);
    }
    if (!c->keep_generator) tn__generator_apply(tn_current_generator(), tn_json_at(g, 0));
    for (int i = 0; i < c->generator_count; i++) tn__generator_apply(c->generators[i], tn_json_at(g, i + 1));
}

static bool get_room(restore *r)
{
    r->entries = tn_safetensors_count(r->f->tensors);
    r->room = r->entries + (r->c->optimizer ? r->c->optimizer->weights * TN__STATES : 0) + 1;
    return (r->change = tn_mem_get((size_t)r->room * sizeof *r->change)) &&
           (r->now = tn_mem_get((size_t)r->room * sizeof *r->now)) &&
           (r->crc = tn_mem_get((size_t)r->room * sizeof *r->crc)) &&
           (r->used = tn_mem_get((size_t)r->entries * sizeof *r->used + 1));
}

tn_status tn_checkpoint_restore_run(tn_checkpoint_restore_args c)
{
    if (tn__blocked()) return tn_error();
    if (!c.file) return tn_raise(TN_EINVAL, "%s: the file is NULL", who);
    if (!c.module && !c.optimizer && !c.ema)
        return tn_raise(TN_EINVAL, "%s: nothing to restore; set .module, .optimizer or .ema", who);
    if (c.generator_count < 0 || !c.generator_count != !c.generators)
        return tn_raise(TN_EINVAL, "%s: .generator_count is %d, but .generators is %s", who, c.generator_count,
                        c.generators ? "set" : "NULL");
    restore        r = {.c = &c, .f = c.file};
    const tn_scope s = tn_no_grad_begin();
    if (get_room(&r) && all_fits(&r) && read_all(&r)) commit(&r);
    tn_scope_end(s);
    tn_mem_put(r.change, (size_t)r.room * sizeof *r.change);
    tn_mem_put(r.now, (size_t)r.room * sizeof *r.now);
    tn_mem_put(r.crc, (size_t)r.room * sizeof *r.crc);
    tn_mem_put(r.used, (size_t)r.entries * sizeof *r.used + 1);
    return tn_error();
}

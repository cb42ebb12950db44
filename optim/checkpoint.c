/* checkpoint.c — saving, opening and checking a training checkpoint. Restoring is in checkpoint_restore.c. */
#include "optim/checkpoint_private.h"

enum { SCHEMA = 1 };

/* ---- the tensors to save ----------------------------------------------------------------------------------------- */

typedef struct {
    const tn_checkpoint_save_args *c;
    int64_t                        count, room;
    tn_tensor                    **t;
    uint32_t                      *crc;
    tn_safetensors_writer         *file;
    tn_json_writer                *json;
    bool (*visit)(void *save, const char *name, const tn_tensor *t);
} save;

static bool visit(save *s, const char *prefix, const char *name, const char *dot, const char *suffix,
                  const tn_tensor *t)
{
    char full[TN__NAME_ROOM];
    if (snprintf(full, sizeof full, "%s%s%s%s", prefix, name, dot, suffix) >= (int)sizeof full)
        return tn_raise_false(TN_EINVAL, "tn_checkpoint_save: the name '%.60s...' is too long", full);
    return s->visit(s, full, t);
}

/* Visits all tensors to save, always in the same order; false: raised. */
static bool each(save *s)
{
    const tn_checkpoint_save_args *c = s->c;
    bool                           ok = true;
    s->count = 0;
    if (c->module)
        for (tn_each e = tn_module_each(c->module, TN_EACH_PARAMETER | TN_EACH_SAVED); ok && tn_next(&e);)
            ok = (c->trained_only && tn__is_frozen(&e)) || visit(s, "model.", e.name, "", "", e.tensor);
    for (int64_t i = 0; c->optimizer && ok && i < c->optimizer->weights; i++) {
        const tn__weight *w = c->optimizer->weight + i;
        for (int k = 0; ok && k < TN__STATES; k++)
            if (w->state[k]) ok = visit(s, "optim.", w->name, ".", c->optimizer->kind->state[k].name, w->state[k]);
    }
    for (int64_t i = 0; c->ema && ok && i < c->ema->items; i++)
        ok = visit(s, "ema.", c->ema->item[i].name, "", "", c->ema->item[i].average);
    for (int i = 0; ok && i < c->tensor_count; i++)
        ok = visit(s, "data.", c->tensors[i].name, "", "", c->tensors[i].tensor);
    return ok && tn_error() == TN_OK;
}

static bool count_one(void *user, const char *name, const tn_tensor *t)
{
    save *s = user;
    (void)name, (void)t;
    s->count++;
    return true;
}

static bool put_one(void *user, const char *name, const tn_tensor *t)
{
    save      *s = user;
    tn_tensor *dense = (tn_tensor *)(uintptr_t)t;
    if (s->count >= s->room) return false; /* cannot happen */
    if (!tn_is_contiguous(t)) {
        dense = tn_empty_of(tn_dtype_of(t), tn_shape_of(t));
        if (!dense || tn_copy_from(dense, t) != TN_OK) return false;
    }
    s->t[s->count++] = dense;
    return !s->file || tn_safetensors_put(s->file, name, dense) == TN_OK;
}

static bool record_crc(void *user, const char *name, const tn_tensor *t)
{
    save *s = user;
    char  text[9];
    (void)t;
    tn__crc_text(s->crc[s->count++], text);
    return tn_json_put_string(s->json, name, text) == TN_OK;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

static bool has_gradient(const char *name, const tn_tensor *t)
{
    if (!tn__gradient(t)) return false;
    tn_raise(TN_ESTATE,
             "tn_checkpoint_save: '%s' has a gradient that no step has used, and gradients are not saved; save after "
             "tn_step, or delete them with tn_zero_grads",
             name);
    return true;
}

static bool check_extras(const char *who, const tn_checkpoint_save_args *c)
{
    if (c->tensor_count < 0 || !c->tensor_count != !c->tensors)
        return tn_raise_false(TN_EINVAL, "%s: .tensor_count is %d, but .tensors is %s", who, c->tensor_count,
                              c->tensors ? "set" : "NULL");
    for (int i = 0; i < c->tensor_count; i++)
        if (!c->tensors[i].name || !c->tensors[i].tensor)
            return tn_raise_false(TN_EINVAL, "%s: .tensors[%d] has no %s", who, i,
                                  c->tensors[i].name ? "tensor" : "name");
    if (c->generator_count < 0 || !c->generator_count != !c->generators)
        return tn_raise_false(TN_EINVAL, "%s: .generator_count is %d, but .generators is %s", who, c->generator_count,
                              c->generators ? "set" : "NULL");
    return true;
}

static bool check(const tn_checkpoint_save_args *c)
{
    static const char who[] = "tn_checkpoint_save";
    if (c->step < 0)
        return tn_raise_false(TN_EINVAL, "%s: .step is %lld, but must not be negative", who, (long long)c->step);
    if (!c->module && !c->optimizer && !c->ema && !c->tensor_count)
        return tn_raise_false(TN_EINVAL, "%s: nothing to save; set .module, .optimizer, .ema or .tensors", who);
    if (!check_extras(who, c)) return false;
    if (c->ema && c->ema->swapped)
        return tn_raise_false(TN_ESTATE, "%s: the averages are swapped with the weights; call tn_ema_swap first", who);
    if (c->optimizer && c->optimizer->waiting)
        return tn_raise_false(TN_ESTATE, "%s: %lld of %lld parts (tn_accumulate) wait for the update; save after it",
                              who, (long long)c->optimizer->waiting, (long long)c->optimizer->accumulate);
    if (c->module)
        for (tn_each e = tn_module_each(c->module, TN_EACH_PARAMETER); tn_next(&e);)
            if (has_gradient(e.name, e.tensor)) return false;
    for (int64_t i = 0; c->optimizer && i < c->optimizer->weights; i++)
        if (has_gradient(c->optimizer->weight[i].name, c->optimizer->weight[i].t)) return false;
    return tn_error() == TN_OK;
}

/* Adds the program's JSON to the record as member `key`. */
static bool put_json(tn_json_writer *w, const char *where, const char *key, const char *text)
{
    if (!text) return true;
    tn_path_push(where);
    tn_json *v = tn_json_parse(text, strlen(text));
    tn_path_pop();
    if (v) tn_json_put(w, key, v);
    tn_json_free(v);
    return v != NULL;
}

/* The checksums of the frozen parameters. */
static bool put_frozen(const save *s)
{
    char crc[9];
    tn_json_open_object(s->json, "frozen");
    for (tn_each e = tn_module_each(s->c->module, TN_EACH_PARAMETER); tn_next(&e);)
        if (tn__is_frozen(&e) && tn__crc_of_tensor(e.tensor, crc)) tn_json_put_string(s->json, e.name, crc);
    tn_json_close(s->json);
    return tn_error() == TN_OK;
}

static bool put_record(save *s)
{
    const tn_checkpoint_save_args *c = s->c;
    tn_json_writer                *w = s->json;
    tn_json_open_object(w, NULL);
    tn_json_put_i64(w, "schema", SCHEMA);
    tn_json_put_string(w, "tenon", tn_version());
    tn_json_put_i64(w, "step", c->step);
    tn_json_open_array(w, "generators");
    tn__record_generator(w, tn_current_generator());
    for (int i = 0; i < c->generator_count; i++) tn__record_generator(w, c->generators[i]);
    tn_json_close(w);
    if (c->optimizer) tn__record_optimizer(w, "optimizer", c->optimizer);
    if (c->ema) {
        tn_json_open_object(w, "ema");
        tn_json_put_bool(w, "mean", c->ema->mean);
        tn_json_put_i64(w, "updates", c->ema->updates);
        tn_json_put_double(w, "decay", c->ema->decay);
        tn_json_put_bool(w, "warmup", c->ema->warmup);
        tn_json_close(w);
    }
    if (!put_json(w, "tn_checkpoint_save: .config", "config", c->config)) return false;
    if (!put_json(w, "tn_checkpoint_save: .data", "data", c->data)) return false;
    if (c->module && c->trained_only && !put_frozen(s)) return false;
    tn_json_open_object(w, "crc32");
    s->visit = record_crc;
    if (!each(s)) return false;
    tn_json_close(w);
    tn_json_close(w);
    return tn_error() == TN_OK;
}

/* The record as JSON, with the CRC-32 of each tensor. NULL: raised. */
static const char *record_text(save *s)
{
    s->visit = put_one;
    if (!each(s)) return NULL;
    tn__crc_tensors(s->count, s->t, s->crc);
    return put_record(s) ? tn_json_text(s->json, NULL) : NULL;
}

static bool write(save *s)
{
    char        crc[9];
    const char *text = (s->file = tn_safetensors_writer_new()) ? record_text(s) : NULL;
    if (!text) return false;
    tn__crc_of_text(text, crc);
    return tn_safetensors_note(s->file, TN__RECORD, text) == TN_OK &&
           tn_safetensors_note(s->file, TN__RECORD ".crc32", crc) == TN_OK &&
           tn_safetensors_save(s->file, s->c->path) == TN_OK;
}

/* Writes the file or, if `state` is not NULL, only sets it to the record. */
static tn_status run(const tn_checkpoint_save_args *c, tn_json **state)
{
    save s = {.c = c, .visit = count_one};
    if (tn__blocked() || !check(c) || !each(&s)) return tn_error();
    s.room = s.count;
    const size_t   tensors = (size_t)s.room * sizeof *s.t, crcs = (size_t)s.room * sizeof *s.crc;
    const tn_scope scope = tn_no_grad_begin();
    if ((s.t = tn_mem_get(tensors)) && (s.crc = tn_mem_get(crcs)) && (s.json = tn_json_writer_new(0))) {
        const char *text = state ? record_text(&s) : NULL;
        if (!state) write(&s);
        else if (text) *state = tn_json_parse(text, strlen(text));
    }
    tn_json_writer_free(s.json);
    tn_safetensors_writer_free(s.file);
    tn_mem_put(s.crc, crcs);
    tn_mem_put(s.t, tensors);
    tn_scope_end(scope);
    return tn_error();
}

tn_status tn_checkpoint_save_run(tn_checkpoint_save_args c)
{
    if (!tn__blocked() && !c.path) return tn_raise(TN_EINVAL, "tn_checkpoint_save: the path is NULL");
    return run(&c, NULL);
}

tn_json *tn_checkpoint_state_run(tn_checkpoint_save_args c)
{
    tn_json *state = NULL;
    run(&c, &state);
    return state;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static const char who[] = "tn_checkpoint_open";

static bool read_record(tn_checkpoint_file *f)
{
    const char *text = tn_safetensors_metadata(f->tensors, TN__RECORD),
               *crc = tn_safetensors_metadata(f->tensors, TN__RECORD ".crc32");
    char is[9];
    if (!text || !crc)
        return tn_raise_false(
            TN_EFORMAT, "%s: '%s' is a safetensors file, but not a training checkpoint: it lacks '%s' in its metadata",
            who, f->path, text ? TN__RECORD ".crc32" : TN__RECORD);
    tn__crc_of_text(text, is);
    if (strcmp(is, crc) != 0)
        return tn_raise_false(TN_EFORMAT, "%s: '%s' is damaged: the CRC-32 of its record is %s, but should be %.16s",
                              who, f->path, is, crc);
    if (!(f->record = tn_json_parse(text, strlen(text)))) return false;
    const int64_t schema = tn_json_i64(tn_json_need(f->record, "schema"));
    if (tn_error() == TN_OK && schema != SCHEMA)
        tn_raise(TN_EUNSUPPORTED, "%s: '%s' has schema %lld, but this library reads schema %d", who, f->path,
                 (long long)schema, SCHEMA);
    tn_json_i64(tn_json_need(f->record, "step"));
    return tn_error() == TN_OK;
}

/* True if every tensor has a checksum and every checksum a tensor. */
static bool list_fits(const tn_checkpoint_file *f)
{
    const tn_json *crc = tn_json_need(f->record, "crc32");
    int64_t        n = 0;
    for (const tn_json *v = tn_json_first(crc); v && tn_error() == TN_OK; v = tn_json_next(v), n++) {
        if (tn_safetensors_find(f->tensors, tn_json_key(v)) < 0)
            tn_raise(TN_EFORMAT, "%s: '%s' is damaged: it lacks the tensor '%.100s'", who, f->path, tn_json_key(v));
        tn_json_string(v);
    }
    if (tn_error() == TN_OK && n != tn_safetensors_count(f->tensors))
        tn_raise(TN_EFORMAT, "%s: '%s' is damaged: it has %lld tensors, but checksums for %lld", who, f->path,
                 (long long)tn_safetensors_count(f->tensors), (long long)n);
    return tn_error() == TN_OK;
}

tn_checkpoint_file *tn_checkpoint_open(const char *path)
{
    if (tn__blocked()) return NULL;
    tn_checkpoint_file *f = tn_mem_get(sizeof *f);
    if (!f) return NULL;
    snprintf(f->path, sizeof f->path, "%s", path ? path : "");
    if ((f->tensors = tn_safetensors_open(path)) && read_record(f) && list_fits(f)) return f;
    tn_checkpoint_close(f);
    return NULL;
}

void tn_checkpoint_close(tn_checkpoint_file *f)
{
    if (!f) return;
    tn_json_free(f->record);
    tn_safetensors_close(f->tensors);
    tn_mem_put(f, sizeof *f);
}

int64_t tn_checkpoint_step(const tn_checkpoint_file *f) { return f ? tn_json_i64(tn_json_get(f->record, "step")) : 0; }
const tn_json *tn_checkpoint_record(const tn_checkpoint_file *f) { return f ? f->record : NULL; }
const tn_json *tn_checkpoint_config(const tn_checkpoint_file *f) { return f ? tn_json_get(f->record, "config") : NULL; }
const tn_json *tn_checkpoint_data(const tn_checkpoint_file *f) { return f ? tn_json_get(f->record, "data") : NULL; }

/* fit_save.c — tn_fit's training checkpoints: its own data in them, and resuming from one. */
#include "core/files/io.h"
#include "models/fit/fit_private.h"

static void put_state(tn__fit *f, tn_json_writer *w)
{
    tn_json_open_object(w, NULL);
    tn_json_open_object(w, "fit");
    tn_json_put_i64(w, "epochs", f->r.epochs);
    tn_json_put_i64(w, "seen", f->seen);
    tn_json_put_i64(w, "worse", f->since_best);
    tn_json_put_i64(w, "best_step", f->r.best_step);
    tn_json_put_i64(w, "valid_at", f->valid_at);
    tn_json_put_bool(w, "owed", f->valid_due);
    tn_json_put_bool(w, "rising", f->c.rising);
    tn__json_put_number(w, "loss", f->r.loss);
    tn__json_put_number(w, "value", f->r.value);
    tn__json_put_number(w, "best", f->r.best);
    tn_json_close(w);
    if (f->c.train.save) {
        tn_json_open_object(w, "source");
        f->c.train.save(f->c.train.user, w);
        tn_json_close(w);
    }
    tn_json_close(w);
}

/* Adds a point to the record: the state that the file at path has. */
static bool record_point(tn__fit *f, const char *path, bool end)
{
    tn__run_entry       e = {.kind = TN__POINT, .end = end || f->valid_due};
    tn_checkpoint_file *file = tn_checkpoint_open(path);
    tn__record_sums(tn_checkpoint_record(file), NULL, e.sums);
    tn_checkpoint_close(file);
    return tn__record_put(f, e) && tn__record_flush(f, false);
}

bool tn__fit_save(tn__fit *f, bool end)
{
    char path[TN__FILE_ROOM];
    if (f->replica && tn_replica_collect(f->replica, f->c.optimizer) != TN_OK) return false;
    if (!tn__fit_is_writer(f)) return f->unsaved = false, f->unscheduled = -1, true;
    tn_json_writer *w = tn_json_writer_new(0);
    put_state(f, w);
    const char *state = tn_json_text(w, NULL);
    tn__folder_file(&f->folder, f->r.steps, path);
    if (state && tn__record_flush(f, true) &&
        tn_checkpoint_save(path, .module = f->c.module, .optimizer = f->c.optimizer, .ema = f->c.ema,
                           .step = f->r.steps, .config = f->c.config, .data = state,
                           .trained_only = tn__fit_trained_only(f)) == TN_OK &&
        record_point(f, path, end)) {
        f->unsaved = false;
        tn__folder_prune(&f->folder, f->r.steps, f->c.keep, f->unscheduled);
        f->unscheduled = -1;
    }
    tn_json_writer_free(w);
    if (f->replica) tn_replica_forget(f->replica, f->c.optimizer);
    if (tn_error() == TN_OK) tn__fit_report(f, TN_FIT_SAVED, path, false);
    return tn_error() == TN_OK;
}

/* ---- resuming ---------------------------------------------------------------------------------------------------- */

static bool read_state(tn__fit *f, const tn_json *state, const char *path)
{
    const tn_json *o = tn_json_need(state, "fit");
    f->r.epochs = tn_json_i64(tn_json_need(o, "epochs"));
    f->r.best_step = tn_json_i64(tn_json_need(o, "best_step"));
    f->seen = tn_json_i64(tn_json_need(o, "seen"));
    f->since_best = tn_json_i64(tn_json_need(o, "worse"));
    f->valid_at = tn_json_i64(tn_json_need(o, "valid_at"));
    f->valid_due = tn_json_bool(tn_json_need(o, "owed"));
    f->r.loss = tn__json_number(o, "loss"), f->r.value = tn__json_number(o, "value");
    f->r.best = tn__json_number(o, "best");
    const bool rising = tn_json_bool(tn_json_need(o, "rising"));
    if (tn_error() == TN_OK && f->r.best == f->r.best && tn__fit_validates(&f->c) && rising != f->c.rising)
        tn_raise(TN_EINVAL,
                 "tn_fit: '%.160s' is from a run whose best value is the %s (.rising), but this run's is the %s; use "
                 "the same .rising or another folder",
                 path, rising ? "largest" : "smallest", f->c.rising ? "largest" : "smallest");
    return tn_error() == TN_OK;
}

/* A value as text, shortened. */
static const char *text_of(const tn_json *v, char to[80])
{
    tn_json_writer *w = tn_json_writer_new(0);
    if (v) tn_json_put(w, NULL, v);
    const char *text = v ? tn_json_text(w, NULL) : "absent";
    snprintf(to, 80, "%s", text ? text : "");
    tn_json_writer_free(w);
    return to;
}

static bool differs(const tn_json *here, const tn_json *there, const char *key, const char *path)
{
    char a[80], b[80];
    text_of(here, a), text_of(there, b);
    if (tn_error() != TN_OK) return true;
    if (!strcmp(a, b)) return false;
    tn_raise(TN_EINVAL,
             "tn_fit: '%.160s' is from another run: its %.60s is %s, but this run's is %s; use the same value or "
             "another folder",
             path, key, b, a);
    return true;
}

/* True if both configs have the same keys with the same values; else raises. */
static bool same_config(const tn__fit *f, const tn_json *there, const char *path)
{
    if (!f->c.config) {
        if (!there || tn_json_type_of(there) == TN_JSON_NULL) return true;
        return tn_raise_false(
            TN_EINVAL,
            "tn_fit: '%.160s' is from a run with a .config, but this run has none; pass the same .config "
            "or use another folder",
            path);
    }
    tn_json *here = tn_json_parse(f->c.config, strlen(f->c.config));
    bool     same = here && there && tn_json_type_of(here) == tn_json_type_of(there);
    if (!same && tn_error() == TN_OK) differs(here, there, "config", path);
    if (same && tn_json_type_of(here) != TN_JSON_OBJECT) same = !differs(here, there, "config", path);
    for (const tn_json *v = tn_json_first(here); same && v; v = tn_json_next(v))
        same = !differs(v, tn_json_get(there, tn_json_key(v)), tn_json_key(v), path);
    for (const tn_json *v = tn_json_first(there); same && v; v = tn_json_next(v))
        same = tn_json_get(here, tn_json_key(v)) || !differs(NULL, v, tn_json_key(v), path);
    tn_json_free(here);
    return same && tn_error() == TN_OK;
}

/* True for errors that a damaged file causes. Others (no memory, an unreadable disk) say nothing about the file. */
static bool is_damage(tn_status s) { return s == TN_EFORMAT || s == TN_EUNSUPPORTED || s == TN_EINDEX; }

/* The newest intact checkpoint; damaged ones are skipped, with a TN_FIT_NOTE. */
static tn_checkpoint_file *newest_intact(tn__fit *f, int64_t step, char path[TN__FILE_ROOM])
{
    char note[1200] = "", first[700] = "";
    for (; step >= 0; step = tn__folder_newest(&f->folder, step)) {
        tn_checkpoint_file *file = tn_checkpoint_open(tn__folder_file(&f->folder, step, path));
        if (file && tn_checkpoint_verify(file) == TN_OK) return file;
        tn_checkpoint_close(file);
        if (!is_damage(tn_error())) return NULL;
        snprintf(note, sizeof note, "skipped: %s", tn_error_message());
        if (!*first) snprintf(first, sizeof first, "%.600s", tn_error_message());
        tn_clear_error();
        tn__fit_report(f, TN_FIT_NOTE, note, false);
        if (tn_error() != TN_OK) return NULL;
    }
    if (tn_error() == TN_OK)
        tn_raise(TN_EFORMAT,
                 "tn_fit: all checkpoints in '%.200s' are damaged; to start a new run, use another folder or empty "
                 "it; the newest: %s",
                 f->c.folder, first);
    return NULL;
}

/* True if an uninterrupted run would also have saved here. Else the next checkpoint replaces this one, so that the kept
 * checkpoints, which may be averaged, do not depend on interruptions. */
static bool was_due(const tn__fit *f)
{
    const tn_fit_args *c = &f->c;
    if (c->save_every) return f->r.steps % c->save_every == 0;
    return !f->r.steps || (tn__fit_validates(c) ? f->valid_due || f->valid_at == f->r.steps : !f->seen);
}

/* The caller's optimizer gets the checkpoint's options. A schedule's options are compared; for a rate without a
 * schedule a TN_FIT_NOTE reports the change. */
static bool note_learning_rate(tn__fit *f, double was, const char *path)
{
    const double lr = tn_lr(f->c.optimizer, 0);
    char         text[400];
    if (f->own || f->c.schedule || f->c.plateau || lr == was) return true;
    snprintf(text, sizeof text,
             "the learning rate is %g, from '%.160s', not this program's %g; to change it, call tn_set_lr at "
             "TN_FIT_START",
             lr, path, was);
    tn__fit_report(f, TN_FIT_NOTE, text, false);
    return tn_error() == TN_OK;
}

/* Rank 0 chooses the checkpoint; the other ranks open the same one. */
static tn_checkpoint_file *choose(tn__fit *f, int64_t newest, char path[TN__FILE_ROOM])
{
    tn_checkpoint_file *file = tn__fit_is_writer(f) ? newest_intact(f, newest, path) : NULL;
    double              step = (double)tn_checkpoint_step(file);
    if (!tn__fit_ranks_broadcast(f, &step) || file) return file;
    file = tn_checkpoint_open(tn__folder_file(&f->folder, (int64_t)step, path));
    if (file && tn_checkpoint_verify(file) == TN_OK) return file;
    tn_checkpoint_close(file);
    return NULL;
}

/* Restores the run. tn_fit's own optimizer keeps this call's options, so that a run can be extended. */
static bool restore_from(tn__fit *f, const tn_checkpoint_file *file, const char *path)
{
    tn_fit_args   *c = &f->c;
    const tn_json *data = tn_checkpoint_data(file), *source = tn_json_get(data, "source");
    bool           ok = file && same_config(f, tn_checkpoint_config(file), path) && read_state(f, data, path);
    if (ok && c->train.save && !source)
        tn_raise(TN_EFORMAT, "tn_fit: '%.200s' does not contain the position of .train, so the run cannot be resumed",
                 path);
    const double lr = tn_lr(c->optimizer, 0);
    ok = ok && tn_error() == TN_OK &&
         tn_checkpoint_restore(file, .module = c->module, .optimizer = c->optimizer, .ema = c->ema,
                               .keep_options = f->own != NULL) == TN_OK &&
         note_learning_rate(f, lr, path);
    if (ok && f->replica) tn_replica_forget(f->replica, c->optimizer);
    if (ok) {
        f->r.steps = tn_checkpoint_step(file);
        f->unsaved = false;
        if (!was_due(f)) f->unscheduled = f->r.steps;
        else if (f->valid_due) f->stepped = true; /* save again after the validation, as without the stop */
        if (c->train.begin) c->train.begin(c->train.user, source);
    }
    return ok && tn_error() == TN_OK;
}

static bool restore(tn__fit *f, int64_t newest)
{
    char                path[TN__FILE_ROOM];
    tn_checkpoint_file *file = choose(f, newest, path);
    const bool          ok = restore_from(f, file, path) && tn__record_begin(f, tn_checkpoint_record(file));
    tn_checkpoint_close(file);
    return ok;
}

bool tn__fit_resume(tn__fit *f)
{
    double newest = tn__fit_is_writer(f) ? (double)tn__folder_newest(&f->folder, INT64_MAX) : -1;
    if (newest >= 0 && !f->c.resume && tn_error() == TN_OK)
        tn_raise(TN_ESTATE,
                 "tn_fit: '%.200s' already contains a run of %lld steps; set .resume to continue it, or use another "
                 "folder",
                 f->c.folder, (long long)newest);
    if (tn_error() != TN_OK || !tn__fit_ranks_broadcast(f, &newest)) return false;
    if (newest >= 0) return restore(f, (int64_t)newest);
    if (f->c.train.begin) f->c.train.begin(f->c.train.user, NULL);
    return tn__record_begin(f, NULL);
}

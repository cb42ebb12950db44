/* record.c — see record.h. */
#include "core/system/system.h"

#include "record.h"

#include "messages.h"
#include "resume.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

record record_begin(const char *folder, int64_t steps, bool resume)
{
    return (record){.folder = folder,
                    .resume = resume,
                    .every = steps < 100 ? 1 : 10,
                    .bar = progress_begin("train", steps, "step")};
}

static tn_runlog *opened(const record *r, int64_t step)
{
    static const char *const columns[] = {"train/loss",        "valid/loss", "lr",         "norm",
                                          "tokens_per_second", "epoch",      "valid/score"};
    char                     jsonl[1024], csv[1024];
    return tn_runlog_open(.jsonl = in_folder(r->folder, "log.jsonl", jsonl),
                          .csv = in_folder(r->folder, "log.csv", csv), .columns = columns, .n = r->bar.score ? 7 : 6,
                          .resume = r->resume, .step = step);
}

void record_fit(const tn_fit_event *e, void *user)
{
    record *r = user;
    progress_fit(e, &r->bar);
    if (e->what == TN_FIT_START) r->log = opened(r, e->step);
    if (!r->log) return;
    if (e->what == TN_FIT_STEP) {
        r->items += e->items;
        if (e->step % r->every && e->step != e->steps) return;
        const char  *names[] = {"train/loss", "lr", "norm", "tokens_per_second", "epoch"};
        const double values[] = {e->loss, e->lr, e->norm, (double)r->items / fmax(e->seconds - r->seconds, 1e-9),
                                 (double)e->epoch};
        tn_runlog_put(r->log, e->step, 5, names, values);
        r->items = 0, r->seconds = e->seconds;
    } else if (e->what == TN_FIT_VALID) {
        const char  *names[] = {"valid/score", "valid/loss"};
        const double values[] = {e->value, e->measured};
        if (r->bar.score) tn_runlog_put(r->log, e->step, 2, names, values);
        else tn_runlog_put(r->log, e->step, 1, names + 1, &e->value);
    }
}

void record_end(record *r)
{
    if (r->folder) progress_end(&r->bar);
    tn_runlog_close(r->log);
    *r = (record){.log = NULL};
}

/* Locks the folder until the process ends, before anything in it is read. On a file system without locks, only tn_fit's
 * lock of the checkpoint folder protects a run. */
static bool record_lock(const char *folder)
{
    const int fd = tn__sys_open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0 || tn__sys_lock(fd) || errno != EWOULDBLOCK) return true;
    tn__sys_close(fd);
    return tn_raise_false(TN_ESTATE, "'%s' is in use by another run; wait for its end, or choose another folder",
                          folder);
}

/* Writes run.json. A run does this twice: at the start with "asked": null, and with the options as soon as it can be
 * resumed. False: raised. */
static bool write_run(const char *folder, const char *asked)
{
    char            path[1024];
    tn_json        *j = asked ? tn_json_parse(asked, strlen(asked)) : NULL;
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "made_by", tn_build_info());
    if (j) tn_json_put(w, "asked", j);
    else tn_json_put_null(w, "asked");
    resume_put(w, asked != NULL);
    tn_json_close(w);
    const bool fine = tn_error() == TN_OK && tn_json_save(w, in_folder(folder, "run.json", path)) == TN_OK;
    tn_json_writer_free(w);
    tn_json_free(j);
    return fine;
}

bool record_only_begun(const char *run)
{
    tn_json   *j = tn_json_load(run);
    const bool is = tn_json_type_of(tn_json_need(j, "asked")) == TN_JSON_NULL;
    tn_json_free(j);
    return is && tn_error() == TN_OK;
}

/* Does the folder have a training checkpoint? */
static bool has_checkpoint(const char *folder)
{
    char path[1024];
    DIR *d = opendir(in_folder(folder, "checkpoints", path));
    bool found = false;
    for (const struct dirent *e; d && !found && (e = readdir(d));) {
        const char *end = strrchr(e->d_name, '.');
        found = !strncmp(e->d_name, "step-", 5) && end && !strcmp(end, ".ckpt");
    }
    if (d) closedir(d);
    return found;
}

/* A run without checkpoints is complete (then there is a model: raises), or was killed before the first checkpoint. */
static bool check_not_complete(const char *folder)
{
    char path[1024];
    if (!file_exists(in_folder(folder, "model.safetensors", path)) &&
        !file_exists(in_folder(folder, "model.safetensors.index.json", path)))
        return tn_error() == TN_OK;
    return tn_raise_false(
        TN_EINVAL,
        "the training in '%s' is complete and its checkpoints were deleted; choose another folder for a new one",
        folder);
}

/* Deletes the temporary files of a killed process: ".model.safetensors.tmp.0123456789ab". Keeps those of
 * `bert eval` (".eval.tokens.tmp...."), which may be running in another process. */
static void delete_temporary_in(const char *folder)
{
    DIR *d = opendir(folder);
    char path[1024];
    for (const struct dirent *e; d && (e = readdir(d));) {
        const char *end = strstr(e->d_name, ".tmp.");
        if (e->d_name[0] == '.' && end && strlen(end) == 5 + 12 && strncmp(e->d_name, ".eval.", 6) != 0)
            tn__sys_unlink(in_folder(folder, e->d_name, path));
    }
    if (d) closedir(d);
}
static void delete_temporary(const char *folder)
{
    char path[1024];
    delete_temporary_in(folder), delete_temporary_in(in_folder(folder, "adapter", path));
}

static const char *const files[] = {"config.json",          "model.safetensors", "model.safetensors.index.json",
                                    "pytorch_model.bin",    "checkpoints",       "generation_config.json",
                                    "chat_template.jinja",  "tokenizer.json",    "vocab.txt",
                                    "vocab.json",           "merges.txt",        "special_tokens_map.json",
                                    "tokenizer_config.json"};
enum { FILES = sizeof files / sizeof *files, OF_MODEL = 5 /* the others are written again by every run */ };

bool record_lock_folder(const char *folder, bool *resume)
{
    if ((!*resume && !make_folder(folder)) || !record_lock(folder)) return false;
    char       path[1024];
    const bool ours = file_exists(in_folder(folder, "run.json", path)), bare = !has_checkpoint(folder);
    const bool again = ours && (record_only_begun(path) || (*resume && bare));
    if (tn_error() != TN_OK || (again && *resume && !check_not_complete(folder))) return false;
    if (*resume && !ours)
        return tn_raise_false(TN_EINVAL, "'%s' contains no run to resume; omit --resume to start a new one", folder);
    if (ours && !again && !*resume)
        return tn_raise_false(
            TN_EINVAL, "'%s' already contains a model; choose another folder, or continue its training with --resume",
            folder);
    if (ours && !again) return delete_temporary(folder), true;
    *resume = false;
    for (int i = 0; i < FILES; i++) {
        if (!file_exists(in_folder(folder, files[i], path)) || (again && bare && !strcmp(files[i], "checkpoints")))
            continue;
        if (!again || i < OF_MODEL)
            return tn_raise_false(TN_EINVAL,
                                  "'%s' contains another model, or a part of one: '%s'; choose another folder", folder,
                                  files[i]);
        tn__sys_unlink(path);
    }
    if (again) tn__sys_unlink(in_folder(folder, "valid.tokens", path)); /* the new start may have no validation text */
    delete_temporary(folder);
    return write_run(folder, NULL);
}

bool record_check_folder(const char *folder)
{
    char path[1024];
    if (!make_folder(folder)) return false;
    for (int i = 0; i < FILES && tn_error() == TN_OK; i++)
        if (file_exists(in_folder(folder, files[i], path)))
            tn_raise(TN_EINVAL, "'%s' already contains a model, or a part of one: '%s'; choose another folder", folder,
                     files[i]);
    return tn_error() == TN_OK;
}

bool record_run(const char *folder, bool resume, const tn_tokenizer *t, const char *asked)
{
    if (resume || tn_error() != TN_OK) return tn_error() == TN_OK;
    return (!t || tn_tokenizer_save(t, folder) == TN_OK) && write_run(folder, asked);
}

void record_forget(const char *folder)
{
    char path[1024];
    tn__sys_unlink(in_folder(folder, "run.json", path));
}

bool record_options(const char *folder) { return write_run(folder, NULL); }

tn_json *record_asked(const char *folder)
{
    char path[1024];
    return tn_json_load(in_folder(folder, "run.json", path));
}

int64_t record_steps(const char *folder)
{
    tn_json       *j = record_asked(folder);
    const tn_json *longer = tn_json_get(j, "steps");
    const int64_t  n = tn_json_i64(longer ? longer : tn_json_need(tn_json_need(j, "asked"), "steps"));
    tn_json_free(j);
    return n;
}

bool record_set_steps(const char *folder, int64_t steps)
{
    char            path[1024];
    tn_json        *j = record_asked(folder);
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    for (const tn_json *v = tn_json_first(j); v; v = tn_json_next(v))
        if (strcmp(tn_json_key(v), "steps") != 0) tn_json_put(w, tn_json_key(v), v);
    tn_json_put_i64(w, "steps", steps);
    tn_json_close(w);
    const bool fine = tn_error() == TN_OK && tn_json_save(w, in_folder(folder, "run.json", path)) == TN_OK;
    tn_json_writer_free(w), tn_json_free(j);
    return fine;
}

double record_number(const char *folder, const char *name)
{
    tn_json     *j = record_asked(folder);
    const double n = tn_json_double_or(tn_json_get(tn_json_get(j, "asked"), name), 0);
    tn_json_free(j);
    return n;
}
int64_t record_count(const char *folder, const char *name)
{
    const double n = record_number(folder, name);
    return n >= 0 && n < 0x1p53 ? (int64_t)n : 0;
}

/* Raises if `needed` bytes are not available; with force, prints a warning and returns true. */
static bool check_available(double needed, double there, bool force, tn_status status, const char *of,
                            const char *advice)
{
    const bool   large = needed >= 1 << 30;
    const double unit = large ? 1 << 30 : 1 << 20;
    char         numbers[120];
    if (!(there >= 0) || needed <= there) return true;
    snprintf(numbers, sizeof numbers, "about %.*f %s of %s, but %.*f are available", large, needed / unit,
             large ? "GiB" : "MiB", of, large, there / unit);
    if (force) tell("note: the training needs %s\n", numbers);
    else tn_raise(status, "the training needs %s; %s, or start anyway with --force", numbers, advice);
    return force;
}

bool record_memory(double bytes, bool force)
{
    return check_available(bytes, tn__sys_memory(), force, TN_ENOMEM, "memory", "reduce --batch, --length or --size");
}

bool record_space(const char *folder, double bytes, bool force)
{
    return check_available(bytes, tn__sys_space(folder), force, TN_EIO, "disk space",
                           "free some, choose an --out on another disk or a smaller --size");
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double step_seconds(void *module, tn_fit_args how)
{
    enum { WARM = 3, TIMED = 11 };
    tn_generator      *g = tn_current_generator();
    const tn_generator was = *g;
    how.module = module, how.lr = 1e-6;
    tn_module    *m = module;
    tn_optimizer *o = m ? (how.make ? how.make : tn_fit_adamw)(&how) : NULL;
    tn_budget    *budget = how.memory ? tn_budget_new(how.memory) : NULL;
    double        took[TIMED] = {0};
    tn_batch      b;
    for (int i = 0; o && i < WARM + TIMED && tn_error() == TN_OK; i++) {
        const tn_scope scope = tn_scope_begin();
        const double   began = seconds_now();
        if (!tn_source_next(&how.train, &b) && tn_error() == TN_OK) tn_source_next(&how.train, &b);
        do {
            const tn_scope pass = tn_scope_begin();
            tn_budget_begin(budget, tn_optimizer_missing(o));
            const tn_scope inner = tn_autocast_begin(how.autocast);
            tn_backward(tn_scope_return(inner, how.loss(module, &b, how.user)));
            tn_scope_end(pass);
        } while (tn_budget_again(budget));
        tn_step(o);
        tn_scope_end(scope);
        if (i >= WARM) took[i - WARM] = seconds_now() - began;
    }
    tn_budget_free(budget);
    tn_optimizer_free(o);
    tn_module_free(module);
    *g = was;
    qsort(took, TIMED, sizeof *took, by_size);
    return took[TIMED / 2]; /* the median: other load on the machine has little effect */
}

/* ---- files of a report ------------------------------------------------------------------------------------------- */

/* Reads up to n bytes from the start of a file. Returns their number; 0: no such file; -1: not a regular file. Does not
 * block on a pipe. */
static int first_bytes(const char *path, char *to, int n)
{
    struct stat st;
    const int   fd = tn__sys_open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd < 0) return file_exists(path) ? -1 : 0;
    const int got = tn__sys_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? (int)tn__sys_pread(fd, to, (size_t)n, 0) : -1;
    tn__sys_close(fd);
    return got;
}

bool record_check_file(const char *path, const char *begins, const char *what)
{
    char there[32] = "";
    if (tn_error() != TN_OK) return false;
    if (!first_bytes(path, there, (int)strlen(begins)) || !strcasecmp(there, begins)) return true;
    return tn_raise_false(TN_EINVAL, "'%s' already exists and does not contain %s; choose another name, or remove it",
                          path, what);
}

bool record_report(tn_report *r, const char *path)
{
    const bool fine =
        r && record_check_file(path, "<!doctype html>", "an HTML page") && tn_report_save(r, path) == TN_OK;
    tn_report_free(r);
    return fine;
}

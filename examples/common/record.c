/* record.c — what a training leaves behind. */
#define _GNU_SOURCE
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

record record_begin(const char *folder, int64_t steps, bool resume)
{
    return (record){.folder = folder, .resume = resume, .every = 10, .bar = progress_begin("train", steps, "step")};
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

/* The folder itself is locked, until the process ends: a second run must not even look at it before. Where the file
 * system has no such locks, tn_fit's in the folder of checkpoints is the only one. */
static bool record_lock(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    close(fd);
    tn_raise(TN_ESTATE, "'%s' is in use by another run: wait for its end, or choose another folder", folder);
    return false;
}

bool record_may_begin(const char *folder, bool resume)
{
    if ((!resume && !make_folder(folder)) || !record_lock(folder)) return false;
    static const char *const theirs[] = {"config.json",       "model.safetensors", "model.safetensors.index.json",
                                         "pytorch_model.bin", "tokenizer.json",    "vocab.txt",
                                         "vocab.json",        "checkpoints"};
    char                     path[1024];
    const bool               ours = is_there(in_folder(folder, "run.json", path));
    if (tn_error() != TN_OK || (ours && resume)) return tn_error() == TN_OK;
    if (resume)
        return tn_raise(TN_EINVAL, "'%s' holds no run to go on with: to begin one, leave --resume away", folder), false;
    if (ours)
        return tn_raise(TN_EINVAL, "'%s' holds a model already: choose another folder, or go on with --resume", folder),
               false;
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (is_there(in_folder(folder, theirs[i], path)))
            return tn_raise(TN_EINVAL,
                            "'%s' holds another model, or a part of one: there is '%s'; choose another folder", folder,
                            theirs[i]),
                   false;
    return true;
}

bool record_run(const char *folder, bool resume, const tn_tokenizer *t, const char *asked)
{
    char path[1024];
    if (resume || tn_error() != TN_OK) return tn_error() == TN_OK;
    tn_json        *j = tn_json_parse(asked, strlen(asked));
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    tn_json_put_string(w, "made_by", tn_build_info());
    tn_json_put(w, "asked", j);
    tn_json_close(w);
    const bool fine = tn_error() == TN_OK && tn_tokenizer_save(t, folder) == TN_OK &&
                      tn_json_save(w, in_folder(folder, "run.json", path)) == TN_OK;
    tn_json_writer_free(w);
    tn_json_free(j);
    return fine;
}

int64_t record_steps(const char *folder)
{
    char          path[1024];
    tn_json      *j = tn_json_load(in_folder(folder, "run.json", path));
    const int64_t n = tn_json_i64(tn_json_need(tn_json_need(j, "asked"), "steps"));
    tn_json_free(j);
    return n;
}

/* What the machine has, or the container if that is less. */
static double memory_there(void)
{
    char      text[32] = "";
    double    least = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE), most;
    FILE     *f = fopen("/sys/fs/cgroup/memory.max", "r");
    const int n = f ? (int)fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    if (n > 1 && tn_parse_double(text, (size_t)n - 1, &most) && most < least) least = most;
    return least;
}

bool record_memory(double bytes, bool force)
{
    const double there = memory_there(), gib = 1u << 30;
    if (!(there > 0) || bytes <= there) return true;
    if (force) fprintf(stderr, "memory   needs about %.1f GiB, and there are %.1f\n", bytes / gib, there / gib);
    else
        tn_raise(TN_ENOMEM,
                 "this needs about %.1f GiB of memory, and there are %.1f: make --batch, --length or --size smaller "
                 "(or --force it)",
                 bytes / gib, there / gib);
    return force;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double step_seconds(void *module, tn_source s, tn_fit_loss loss, bool autocast)
{
    enum { WARM = 3, TIMED = 11 };
    tn_generator      *g = tn_current_generator();
    const tn_generator was = *g;
    tn_module         *m = module;
    tn_optimizer      *o = m ? tn_adamw_new(m, .lr = 1e-6, .clip.norm = 1) : NULL;
    double             took[TIMED] = {0};
    tn_batch           b;
    for (int i = 0; o && i < WARM + TIMED && tn_error() == TN_OK; i++) {
        const tn_scope scope = tn_scope_begin();
        const double   began = seconds_now();
        if (!tn_source_next(&s, &b) && tn_error() == TN_OK) tn_source_next(&s, &b);
        const tn_scope inner = tn_autocast_begin(autocast);
        tn_backward(tn_scope_return(inner, loss(module, &b, NULL)));
        tn_step(o);
        tn_scope_end(scope);
        if (i >= WARM) took[i - WARM] = seconds_now() - began;
    }
    tn_optimizer_free(o);
    tn_module_free(module);
    *g = was;
    qsort(took, TIMED, sizeof *took, by_size);
    return took[TIMED / 2]; /* so that a moment in which the machine did something else does not count */
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *name, *shown;
    int64_t     n;
    double     *x, *y;
} curve;

static bool read_log(const char *folder, int curves, curve *c, tn_lines **lines)
{
    char path[1024];
    *lines = tn_lines_load(in_folder(folder, "log.jsonl", path));
    const int64_t rows = tn_lines_count(*lines);
    for (int k = 0; k < curves && tn_error() == TN_OK; k++) {
        c[k].x = tn_mem_get((size_t)(rows + 1) * sizeof(double));
        c[k].y = tn_mem_get((size_t)(rows + 1) * sizeof(double));
    }
    for (int64_t i = 0; i < rows && tn_error() == TN_OK; i++) {
        const tn_text line = tn_lines_at(*lines, i);
        tn_json      *row = tn_json_parse(line.at, line.bytes);
        for (int k = 0; k < curves; k++) {
            const tn_json *v = tn_json_get(row, c[k].name);
            if (!v || !c[k].x || !c[k].y) continue;
            c[k].x[c[k].n] = tn_json_double(tn_json_get(row, "step"));
            c[k].y[c[k].n++] = tn_json_double_or(v, NAN);
        }
        tn_json_free(row);
    }
    return tn_error() == TN_OK;
}

bool record_curves(tn_report *r, const char *folder)
{
    curve     c[] = {{.name = "train/loss", .shown = "training"},
                     {.name = "valid/loss", .shown = "validation"},
                     {.name = "lr", .shown = "learning rate"},
                     {.name = "valid/score", .shown = "validation"}};
    tn_lines *lines = NULL;
    if (read_log(folder, 4, c, &lines)) {
        const tn_series loss[] = {{.name = c[0].shown, .n = c[0].n, .x = c[0].x, .y = c[0].y, .smooth = 0.9},
                                  {.name = c[1].shown, .n = c[1].n, .x = c[1].x, .y = c[1].y}};
        const tn_series rate = {.name = c[2].shown, .n = c[2].n, .x = c[2].x, .y = c[2].y},
                        score = {.name = c[3].shown, .n = c[3].n, .x = c[3].x, .y = c[3].y};
        tn_report_curves(r, "Loss", "step", "nats", c[1].n ? 2 : 1, loss);
        if (score.n) tn_report_curves(r, "BLEU", "step", "", 1, &score);
        tn_report_curves(r, "Learning rate", "step", "", 1, &rate);
    }
    const size_t bytes = (size_t)(tn_lines_count(lines) + 1) * sizeof(double);
    for (int k = 0; k < 4; k++) {
        if (c[k].x) tn_mem_put(c[k].x, bytes);
        if (c[k].y) tn_mem_put(c[k].y, bytes);
    }
    tn_lines_free(lines);
    return tn_error() == TN_OK;
}

bool record_page(const char *folder, const char *title)
{
    char       path[1024];
    tn_report *r = tn_report_new(title);
    if (r && record_curves(r, folder) && tn_report_save(r, in_folder(folder, "report.html", path)) != TN_OK)
        path[0] = 0;
    tn_report_free(r);
    return tn_error() == TN_OK;
}

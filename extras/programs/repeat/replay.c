/* replay.c — see replay.h. */
#include "core/system/system.h"

#include "replay.h"

#include "programs/common/resume.h"

#include <stdlib.h>
#include <string.h>

/* The world of a run with shards is one rank: the bits are the same for any number of ranks. */
static void set_world(training *t, const char *run)
{
    const int64_t shards = record_count(run, "shards");
    t->asked.zero = false, t->asked.ranks = 0;
    if (shards && tn_error() == TN_OK) t->world = tn_world_single();
    if (shards) t->asked.shards = shards;
}

/* Raises if the bits of the run depend on a kind of kernels that this process does not use. */
static void check_kernels(const training *t, const char *run)
{
    if (strcmp(t->asked.dtype, "bf16") != 0 || tn_error() != TN_OK) return;
    tn_json *j = record_asked(run);
    (void)!record_same_kernels(tn_json_string_or(tn_json_get(j, "made_by"), ""),
                               "bf16"); /* the caller sees the error */
    tn_json_free(j);
}

int replay_open(const command *train, training *t, const char *run)
{
    char path[1024];
    int  code = file_exists(in_folder(run, "run.json", path)) ? resume_open(train, path) : 0;
    if (code || tn_error() != TN_OK) return code;
    if (!file_exists(path)) tn_raise(TN_EIO, "'%s' does not exist; it contains the options of the run", path);
    if (tn_error() != TN_OK || !resume_find_files()) return 0;
    set_world(t, run);
    t->asked.out = run, t->recorded = true;
    if (tn_error() == TN_OK) code = train_check(t);
    if (!code) check_kernels(t, run);
    return code;
}

void replay_close(training *t)
{
    train_free(t);
    tn_world_free(t->world);
    t->world = NULL;
}

/* ---- the temporary folder ---------------------------------------------------------------------------------------- */

bool replay_folder(char to[1024])
{
    const char *tmp = tn__sys_temporary();
    snprintf(to, 1024, "%.900s/tenon-replay-XXXXXX", tmp);
    if (mkdtemp(to)) return true;
    *to = 0;
    return tn_raise_false(TN_EIO, "cannot create a temporary folder in '%s'; set TMPDIR", tmp);
}

static void delete_folder(const char *folder, int depth)
{
    char        path[1024];
    DIR        *d = opendir(folder);
    struct stat st;
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        in_folder(folder, e->d_name, path);
        if (depth && !tn__sys_lstat(path, &st) && S_ISDIR(st.st_mode)) delete_folder(path, depth - 1);
        else tn__sys_unlink(path);
    }
    if (d) closedir(d);
    rmdir(folder);
}

void replay_delete(const char *folder)
{
    tn_error_state aside;
    tn_error_push(&aside);
    if (*folder) delete_folder(folder, 2);
    tn_error_pop(&aside);
}

/* ---- the run, made again ----------------------------------------------------------------------------------------- */

bool replay_texts(training *t, const char *folder)
{
    train_asked *a = &t->asked;
    a->out = folder, a->resume = false;
    t->fit = TN_WITH(tn_fit_args, TN_FIT_ARGS_DEFAULTS, .autocast = !strcmp(a->dtype, "bf16"), .lr = a->lr,
                     .memory = t->fit.memory);
    if (!train_read(t)) return false;
    t->tokens = train_tokenizer(t);
    return tn_error() == TN_OK && (!t->tokens || tn_tokenizer_save(t->tokens, folder) == TN_OK);
}

bool replay_model(training *t) { return t->kind->open(t) && (t->net = train_model(t)); }

int64_t replay_steps(const training *t, const char *run)
{
    const train_asked *a = &t->asked;
    return a->steps ? a->steps : a->epochs ? a->epochs * t->batches : record_count(run, "steps");
}

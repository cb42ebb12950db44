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

/* The word before " kernels:" in tn_build_info. */
static void kernels_of(const char *build, char to[32])
{
    const char *end = strstr(build, " kernels:"), *at = end;
    while (at && at > build && at[-1] != ' ') at--;
    snprintf(to, 32, "%.*s", at ? (int)(end - at) : 0, at ? at : "");
}

/* Raises if the bits of the run depend on a kind of kernels, such as avx2, that this process does not use. */
static void check_kernels(const training *t, const char *run)
{
    char here[32], there[32];
    if (strcmp(t->asked.dtype, "bf16") != 0 || tn_error() != TN_OK) return;
    tn_json *j = record_asked(run);
    kernels_of(tn_build_info(), here), kernels_of(tn_json_string_or(tn_json_get(j, "made_by"), ""), there);
    tn_json_free(j);
    if (tn_error() == TN_OK && strcmp(here, there) != 0)
        tn_raise(TN_EUNSUPPORTED,
                 "the bits of bf16 depend on the kind of CPU: the run was made with the %s kernels, but this process "
                 "uses %s; set TENON_ISA=%s if this CPU supports it",
                 there, here, there);
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

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static bool same_bytes(const char *a, const char *b)
{
    static char buffer[2][1 << 16];
    FILE       *f[2] = {fopen(a, "rb"), fopen(b, "rb")};
    bool        same = f[0] && f[1];
    for (size_t n = 1; same && n;) {
        n = fread(buffer[0], 1, sizeof *buffer, f[0]);
        same = n == fread(buffer[1], 1, sizeof *buffer, f[1]) && !memcmp(buffer[0], buffer[1], n);
    }
    for (int i = 0; i < 2; i++)
        if (f[i]) fclose(f[i]);
    return same;
}

static bool ends_with(tn_text line, const char *end)
{
    const size_t n = strlen(end);
    return line.bytes >= n && !memcmp(line.at + line.bytes - n, end, n);
}

/* True if each line of a SHA256SUMS is in the other one, except that of run.json, which reading run.json checks. */
static bool has_lines(const char *a, const char *b)
{
    tn_lines *of = tn_lines_load(a), *in = tn_lines_load(b);
    bool      all = of && in;
    for (int64_t i = 0; all && i < tn_lines_count(of); i++) {
        const tn_text line = tn_lines_at(of, i);
        bool          found = ends_with(line, "  run.json");
        for (int64_t k = 0; !found && k < tn_lines_count(in); k++) {
            const tn_text other = tn_lines_at(in, k);
            found = other.bytes == line.bytes && !memcmp(other.at, line.at, line.bytes);
        }
        all = found;
    }
    tn_lines_free(of), tn_lines_free(in);
    return all;
}

bool replay_same_file(const char *a, const char *b)
{
    const size_t n = strlen(a);
    return n >= 10 && !strcmp(a + n - 10, "SHA256SUMS") ? has_lines(a, b) && has_lines(b, a) : same_bytes(a, b);
}

bool replay_same_json(const tn_json *a, const tn_json *b, char text[2][100])
{
    tn_json_writer *w[2] = {tn_json_writer_new(0), tn_json_writer_new(0)};
    const char     *all[2];
    for (int i = 0; i < 2; i++) {
        const tn_json *v = i ? b : a;
        if (v) tn_json_put(w[i], NULL, v);
        if (!(all[i] = v ? tn_json_text(w[i], NULL) : "absent")) all[i] = "";
        snprintf(text[i], sizeof text[i], "%s", all[i]);
    }
    const bool same = !strcmp(all[0], all[1]);
    tn_json_writer_free(w[0]), tn_json_writer_free(w[1]);
    return same || tn_error() != TN_OK;
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

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static const char *checkpoint_name(int64_t step, char to[64])
{
    snprintf(to, 64, "step-%012lld.ckpt", (long long)step);
    return to;
}

int64_t replay_newest(const char *checkpoints, int64_t below, int64_t from)
{
    char            path[1024], name[64];
    int64_t         best = -1;
    struct dirent **e;
    const int       n = scandir(checkpoints, &e, NULL, NULL);
    for (int i = 0; i < n; i++) {
        const int64_t step = strncmp(e[i]->d_name, "step-", 5) ? -1 : strtoll(e[i]->d_name + 5, NULL, 10);
        const bool    is_one = step >= 0 && !strcmp(e[i]->d_name, checkpoint_name(step, name));
        if (is_one && step < below && step > best) best = step;
        if (is_one && step >= from) tn__sys_unlink(in_folder(checkpoints, name, path));
        free(e[i]);
    }
    if (n >= 0) free(e);
    return best;
}

bool replay_link(const char *from, const char *to)
{
    static char block[1 << 16];
    if (!link(from, to)) return true;
    FILE  *f = fopen(from, "rb"), *out = fopen(to, "wb");
    size_t n = 1;
    bool   fine = f && out;
    while (fine && n && (n = fread(block, 1, sizeof block, f))) fine = fwrite(block, 1, n, out) == n;
    fine = fine && !ferror(f);
    if (f) fclose(f);
    if (out && fclose(out)) fine = false;
    return fine || tn_raise_false(TN_EIO, "cannot copy '%s' to '%s'; check the disk space", from, to);
}

bool replay_before(replay *r, int64_t step)
{
    char source[1024], path[2][1024], name[64];
    if (!make_folder(in_folder(r->scratch, ".again", r->again))) return false;
    in_folder(r->run, "checkpoints", source);
    const int64_t there = r->whole ? -1 : replay_newest(source, step, INT64_MAX),
                  here = replay_newest(r->again, step, INT64_MAX), start = there > here ? there : here;
    if (start < 0 && r->h.first > 1)
        return tn_raise_false(TN_EIO,
                              "the record of '%s' starts at step %lld, and there is no training checkpoint before step "
                              "%lld",
                              r->run, (long long)r->h.first, (long long)step);
    replay_newest(r->again, 0, start + 1);
    tn__sys_unlink(in_folder(r->again, "record.jsonl", path[0]));
    checkpoint_name(start, name);
    if (start > here && !replay_link(in_folder(source, name, path[0]), in_folder(r->again, name, path[1])))
        return false;
    if (r->used) {
        tn_module_free(r->t->net);
        r->t->net = NULL; /* only one model is in memory at a time */
        r->t->net = train_model(r->t);
    }
    r->used = true, r->done = start < 0 ? 0 : start;
    return tn_error() == TN_OK;
}

int64_t replay_part(const replay *r, int64_t until, int64_t *end)
{
    const history *h = &r->h;
    for (int64_t p = 0; p < h->parts && r->done < until; p++) {
        *end = p + 1 < h->parts && h->part[p + 1].from < until ? h->part[p + 1].from : until;
        if (r->done < *end) return p;
    }
    return -1;
}

tn_fit_args replay_arguments(const replay *r, int64_t part)
{
    tn_fit_args f = train_fit_args(r->t, r->h.part[part].steps, r->again, r->config);
    f.resume = true, f.stop = &stop_flag;
    return f;
}

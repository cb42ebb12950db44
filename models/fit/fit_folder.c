/* fit_folder.c — the folder of training checkpoints: its lock, its list, its retention.
 *
 * The lock is on the file `lock`: the system releases it when the process ends. The file is not deleted. */
#include "core/system/system.h"

#include "models/fit/fit_private.h"

enum { DIGITS = 12, LONGEST = 800 };
static const char prefix[] = "step-", suffix[] = ".ckpt", best[] = "best.safetensors", record[] = "record.jsonl";

static bool fail(const char *path, const char *what, int code)
{
    const char *why = code == EACCES || code == EPERM     ? "permission denied"
                      : code == ENOENT                    ? "it does not exist"
                      : code == ENOTDIR || code == EEXIST ? "a part of the path is a file"
                      : code == ENOSPC || code == EDQUOT  ? "no space left"
                      : code == EROFS                     ? "it is on a read-only file system"
                                                          : "system error";
    return tn_raise_false(TN_EIO, "tn_fit: '%.200s': %s: %s (errno %d)", path, what, why, code);
}

static const char *join(const tn__folder *f, const char *name, char to[TN__FILE_ROOM])
{
    const size_t n = strlen(f->path);
    snprintf(to, TN__FILE_ROOM, "%s%s%s", f->path, n && f->path[n - 1] == '/' ? "" : "/", name);
    return to;
}

const char *tn__folder_file(const tn__folder *f, int64_t step, char to[TN__FILE_ROOM])
{
    char name[64];
    snprintf(name, sizeof name, "%s%0*lld%s", prefix, DIGITS, (long long)step, suffix);
    return join(f, name, to);
}
const char *tn__folder_best(const tn__folder *f, char to[TN__FILE_ROOM]) { return join(f, best, to); }
const char *tn__folder_record(const tn__folder *f, char to[TN__FILE_ROOM]) { return join(f, record, to); }

/* The step in a checkpoint's file name; -1: not a checkpoint. */
static int64_t step_of(const char *name)
{
    const size_t n = strlen(name), f = sizeof prefix - 1, b = sizeof suffix - 1;
    int64_t      step = 0;
    if (n != f + DIGITS + b || strncmp(name, prefix, f) != 0 || strcmp(name + n - b, suffix) != 0) return -1;
    for (size_t i = f; i < f + DIGITS; i++) {
        if (name[i] < '0' || name[i] > '9') return -1;
        step = 10 * step + (name[i] - '0');
    }
    return step;
}

/* True for a temporary file of a process killed while saving: ".step-000000000300.ckpt.tmp.0123456789ab". */
static bool is_temporary(const char *name)
{
    const char *tmp = strstr(name, ".tmp.");
    if (name[0] != '.' || !tmp || strlen(tmp) != 5 + 12) return false;
    const size_t n = (size_t)(tmp - name) - 1;
    char         of[64];
    if (n >= sizeof of) return false;
    memcpy(of, name + 1, n), of[n] = 0;
    return step_of(of) >= 0 || !strcmp(of, best) || !strcmp(of, record);
}

typedef struct {
    int64_t below, newest, oldest, count; /* checkpoints of steps below `below`: largest and smallest step, number */
    int64_t beyond;                       /* step of one that is not below; -1: none */
} survey;

/* Surveys the folder; false: raised. With tidy, removes temporary files of killed processes. */
static bool survey_folder(const tn__folder *f, survey *s, bool tidy)
{
    DIR *d = opendir(f->path);
    char file[TN__FILE_ROOM];
    s->newest = s->oldest = s->beyond = -1, s->count = 0;
    if (!d) return fail(f->path, "cannot open the folder", errno);
    for (const struct dirent *e; (e = readdir(d));) {
        const int64_t step = step_of(e->d_name);
        if (tidy && is_temporary(e->d_name)) tn__sys_unlink(join(f, e->d_name, file));
        if (step >= s->below) s->beyond = step;
        if (step < 0 || step >= s->below) continue;
        s->count++;
        if (step > s->newest) s->newest = step;
        if (s->oldest < 0 || step < s->oldest) s->oldest = step;
    }
    closedir(d);
    return true;
}

int64_t tn__folder_newest(const tn__folder *f, int64_t below)
{
    const int keep = errno;
    survey    s = {.below = below};
    survey_folder(f, &s, false);
    errno = keep;
    return s.newest;
}

static bool delete_checkpoint(const tn__folder *f, int64_t step)
{
    char file[TN__FILE_ROOM];
    return tn__sys_unlink(tn__folder_file(f, step, file)) == 0 || errno == ENOENT ||
           fail(file, "cannot remove an old checkpoint", errno);
}

/* Checkpoints beyond step were damaged, else this run would have resumed from them; it will write them again. */
void tn__folder_prune(const tn__folder *f, int64_t step, int64_t keep, int64_t unscheduled)
{
    const int was = errno;
    survey    s = {.below = step + 1};
    bool      ok = unscheduled < 0 || unscheduled >= step || delete_checkpoint(f, unscheduled);
    while (ok && survey_folder(f, &s, false) && (s.beyond >= 0 || s.count > keep))
        ok = delete_checkpoint(f, s.beyond >= 0 ? s.beyond : s.oldest);
    errno = was;
}

static bool create_folders(const char *path)
{
    char part[TN__FILE_ROOM];
    for (size_t i = 1; i <= strlen(path); i++) {
        if (path[i] && path[i] != '/') continue;
        memcpy(part, path, i), part[i] = 0;
        struct stat st;
        if (mkdir(part, 0777) != 0 && (errno != EEXIST || tn__sys_stat(part, &st) != 0 || !S_ISDIR(st.st_mode)))
            return fail(part, "cannot create the folder", errno);
    }
    return true;
}

/* Locks the folder; the lock file contains the owner's process id. False: raised. */
static bool lock_folder(tn__folder *f, const char *file)
{
    char text[32] = "";
    if ((f->lock = tn__sys_open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666)) < 0)
        return fail(file, "cannot open the lock file", errno);
    if (!tn__sys_lock(f->lock)) {
        if (errno != EWOULDBLOCK) return fail(file, "cannot lock it", errno);
        if (tn__sys_pread(f->lock, text, sizeof text - 1, 0) < 0) text[0] = 0;
        text[strcspn(text, "\n")] = 0;
        return tn_raise_false(
            TN_ESTATE,
            "tn_fit: '%.200s' is in use by another run (process %s); wait for its end, or use another folder", f->path,
            *text ? text : "unknown");
    }
    const int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(f->lock, 0) != 0 || tn__sys_pwrite(f->lock, text, (size_t)n, 0) != n)
        return fail(file, "cannot write to it", errno);
    return true;
}

bool tn__folder_open(tn__folder *f, const char *path)
{
    char   file[TN__FILE_ROOM];
    survey s = {0};
    *f = (tn__folder){.path = path, .lock = -1};
    if (!*path || strlen(path) > LONGEST)
        return tn_raise_false(TN_EINVAL, "tn_fit: .folder is a path of %zu bytes, but must have 1 to %d", strlen(path),
                              LONGEST);
    const int  keep = errno;
    const bool ok = create_folders(path) && lock_folder(f, join(f, "lock", file)) && survey_folder(f, &s, true);
    errno = keep;
    return ok;
}

void tn__folder_close(tn__folder *f)
{
    if (f->lock >= 0) tn__sys_close(f->lock);
    f->lock = -1;
}

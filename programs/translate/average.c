/* average.c — translate average: one model whose weights are the mean of several models, typically of the last training
 * checkpoints of a run; the mean is often better than each of them. */
#include "core/system/system.h"

#include "translate.h"

#include <string.h>

static const char *out;
static int64_t     newest;

/* ---- files to average -------------------------------------------------------------------------------------------- */

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

static bool add(weights *w, const char *path)
{
    if (w->n == MOST_WEIGHTS)
        return tn_raise_false(TN_EINVAL, "more than %d files to average; limit the files of a folder with --last N",
                              MOST_WEIGHTS);
    snprintf(w->path[w->n], sizeof w->path[0], "%s", path);
    w->from[w->n] = (tn_load_args){.path = w->path[w->n], .prefix = ends_with(path, ".ckpt") ? "model." : NULL};
    w->n++;
    return true;
}

/* Finds the newest `most` checkpoints of a folder and writes their names, oldest first. Names sort by step because all
 * steps have the same number of digits. Returns the number of names. */
static int checkpoints(const char *folder, int most, char name[][64])
{
    int  n = 0;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, "step-", 5) != 0 || !ends_with(e->d_name, ".ckpt") || strlen(e->d_name) >= 64) continue;
        int at = n;
        while (at > 0 && strcmp(name[at - 1], e->d_name) > 0) at--;
        if (n == most) {
            if (!at--) continue;
            memmove(name[0], name[1], (size_t)at * sizeof name[0]);
        } else {
            memmove(name[at + 1], name[at], (size_t)(n++ - at) * sizeof name[0]);
        }
        snprintf(name[at], sizeof name[0], "%s", e->d_name);
    }
    if (d) closedir(d);
    return n;
}

bool weights_add(weights *w, const char *from, int64_t last)
{
    static char name[MOST_WEIGHTS + 1][64];
    char        path[1024];
    const int   n = checkpoints(from, last > 0 && last < MOST_WEIGHTS ? (int)last : MOST_WEIGHTS, name);
    for (int i = 0; i < n && tn_error() == TN_OK; i++) add(w, in_folder(from, name[i], path));
    if (n || tn_error() != TN_OK) return tn_error() == TN_OK;
    if (file_exists(in_folder(from, "model.safetensors", path))) return add(w, path);
    if (ends_with(from, ".ckpt") || ends_with(from, ".safetensors")) return add(w, from);
    return tn_raise_false(
        TN_EINVAL, "'%s' contains no weights; name a model's folder, its folder of checkpoints, or one of its files",
        from);
}

bool weights_average(const weights *w, tn_seq2seq *net)
{
    for (int i = 0; i < w->n && tn_error() == TN_OK; i++) {
        if (!w->from[i].prefix) continue;
        tn_checkpoint_file *f = tn_checkpoint_open(w->path[i]);
        if (f && tn_checkpoint_verify(f) != TN_OK) break;
        tn_checkpoint_close(f);
    }
    return tn_error() == TN_OK && tn_load_mean(net, w->n, w->from) == TN_OK;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* The folder with config.json: the folder of the first weights, or its parent. */
static const char *remote_of(const weights *w, char model_dir[1024])
{
    char path[1024], folder[1024];
    snprintf(folder, sizeof folder, "%s", w->path[0]);
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
    else snprintf(folder, sizeof folder, ".");
    if (file_exists(in_folder(folder, "config.json", path))) snprintf(model_dir, 1024, "%s", folder);
    else in_folder(folder, "..", model_dir);
    return model_dir;
}

static int run(int count, char **operands)
{
    static weights w;
    char           path[1024], model_dir[1024];
    model          m = {.net = NULL};
    static char    name[1][64];
    bool           folders = !newest;
    for (int i = 0; i < count && tn_error() == TN_OK; i++) {
        folders = folders || checkpoints(operands[i], 1, name) > 0;
        weights_add(&w, operands[i], newest);
    }
    if (tn_error() == TN_OK && !folders) return program_stray("last", "folders of checkpoints, and no FROM is one");
    if (tn_error() == TN_OK && file_exists(in_folder(out, "model.safetensors", path)))
        tn_raise(TN_EINVAL, "'%s' already contains a model; choose another --out", out);
    if (tn_error() == TN_OK && model_open(remote_of(&w, model_dir), &m) && weights_average(&w, m.net) &&
        make_folder(out) && (!m.target || tn_tokenizer_save(m.target, out) == TN_OK) &&
        tn_tokenizer_save(m.tokens, out) == TN_OK && tn_seq2seq_save(m.net, out) == TN_OK) {
        printf("%s: mean of %d files\n", out, w.n);
        for (int i = 0; i < w.n && !settings.quiet; i++) printf("  %s\n", w.path[i]);
    }
    model_close(&m);
    return program_end();
}

static const option options[] = {
    OPTION_TEXT("out", 'o', "DIR", &out, "folder for the new model", .required = true),
    OPTION_INT("last", 0, "N", &newest, "use only the newest N checkpoints of each folder (default: all)", .least = 1,
               .most = MOST_WEIGHTS),
    {0},
};
const command average_command =
    COMMAND("average", "average the weights of several models or checkpoints", options, .operands = "FROM...",
            .least = 1, .most = MOST_WEIGHTS,
            .text = "FROM is a model's folder, a folder of checkpoints, or a file of either. All models must have the "
                    "same shape; configuration and tokenizer come from the first. A run keeps its last two "
                    "checkpoints, or the number given with 'translate train --average'.\n"
                    "\n"
                    "  translate average --out ende5 --last 5 ende/checkpoints\n"
                    "  translate average --out best ende/checkpoints/best.safetensors");

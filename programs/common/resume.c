/* resume.c — see resume.h. */
#include "core/system/system.h"

#include "resume.h"

#include "checksum.h"
#include "command_line.h"
#include "files.h"
#include "texts.h"

#include <stdlib.h>
#include <string.h>

enum { LONG = 2048 };

static const option *run_option(void)
{
    for (const option *o = now.command ? now.command->options : NULL; o && o->name; o++)
        if (o->resume == RESUME_FOLDER || o->resume == RESUME_FILE) return o;
    return NULL;
}

static const char *command_name(char to[128])
{
    snprintf(to, 128, "%s %s", now.name, now.command->name ? now.command->name : "");
    return to;
}

/* Are the contents of this option's files part of the run? */
static bool is_hashed(const option *o) { return o->resume == RESUME_SAME && o->value && !strcmp(o->value, "FILE"); }

/* ---- saving ------------------------------------------------------------------------------------------------------ */

/* The hash of a file, or of the names and contents in a folder. */
static uint64_t sum_of(uint64_t sum, const char *path, int depth)
{
    struct stat     st;
    struct dirent **e;
    char            inner[1024];
    if (tn__sys_stat(path, &st) || !S_ISDIR(st.st_mode) || depth > 32) return checksum_file(sum, path);
    const int n = scandir(path, &e, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (e[i]->d_name[0] != '.' && tn_error() == TN_OK)
            sum = sum_of(checksum_string(sum, e[i]->d_name), in_folder(path, e[i]->d_name, inner), depth + 1);
        free(e[i]);
    }
    if (n >= 0) free(e);
    return sum;
}

static void put_sums(tn_json_writer *w)
{
    const char *const *value;
    tn_json_open_array(w, "files");
    for (const option *o = now.command->options; o->name; o++) {
        if (!is_hashed(o)) continue;
        const int n = option_values(o, &value);
        for (int i = 0; i < n && tn_error() == TN_OK; i++) {
            if (!strcmp(value[i], "-")) continue;
            tn_json_open_object(w, NULL);
            tn_json_put_string(w, "option", o->name);
            texts_put(w, "path", value[i]);
            checksum_put(w, "sum", sum_of(CHECKSUM, value[i], 0));
            tn_json_close(w);
        }
    }
    tn_json_close(w);
}

static void keep_word(const option *o, const char *value)
{
    const size_t bytes = (o ? strlen(o->name) + 4 : 1) + (value ? strlen(value) : 0);
    char       **more = realloc(now.words, (size_t)(now.word_count + 1) * sizeof *more);
    char        *word = more ? keep_string(malloc(bytes)) : NULL;
    if (more) now.words = more;
    if (!word) return;
    snprintf(word, bytes, "%s%s%s%s", o ? "--" : "", o ? o->name : "", o && value ? "=" : "", value ? value : "");
    now.words[now.word_count++] = word;
}

void resume_keep(void)
{
    const char *const *value;
    char               text[LONG];
    for (const option *o = run_option() ? now.command->options : NULL; o && o->name; o++) {
        if (o->resume > RESUME_FREE || !program_given(o->name)) continue;
        const int n = option_values(o, &value);
        for (int i = 0; i < n; i++) keep_word(o, value[i]);
        if (!n && option_text(o, o->to, text, sizeof text)) keep_word(o, o->kind == KIND_FLAG ? NULL : text);
    }
    for (int i = 0; run_option() && i < now.operand_count; i++) keep_word(NULL, now.operands[i]);
}

void resume_put(tn_json_writer *w, bool sums)
{
    char text[LONG];
    if (!run_option()) return;
    tn_json_open_object(w, "options");
    tn_json_put_string(w, "of", command_name(text));
    texts_put(w, "folder", getcwd(text, sizeof text) ? text : "");
    tn_json_open_array(w, "words");
    for (int i = 0; i < now.word_count; i++) texts_put(w, NULL, now.words[i]);
    tn_json_close(w);
    if (sums) put_sums(w);
    tn_json_close(w);
}

const char *resume_command(const char *folder, char to[1200])
{
    snprintf(to, 1200, "%s %s --out %s --resume", now.program->name, now.command->name ? now.command->name : "",
             folder);
    return to;
}

bool resume_save(const char *path)
{
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    resume_put(w, true);
    tn_json_close(w);
    const bool fine = tn_error() == TN_OK && tn_json_save(w, path) == TN_OK;
    tn_json_writer_free(w);
    return fine;
}

/* ---- restoring --------------------------------------------------------------------------------------------------- */

/* A copy of a saved value. A path that is relative to another working folder is made absolute, unless
 * only the path that is relative to this one exists. */
static const char *restored(const option *o, const char *value, const char *folder)
{
    char        here[1024], path[1024];
    const char *from = value;
    if (is_path(o) && *value != '/' && getcwd(here, sizeof here) && strcmp(here, folder) != 0 &&
        snprintf(path, sizeof path, "%s/%s", folder, value) < (int)sizeof path &&
        (file_exists(path) || !file_exists(value)))
        from = path;
    char *copy = keep_string(strdup(from));
    return copy ? copy : "";
}

/* The option and the value of a saved word. NULL: raised. *value: NULL for a flag. */
static const option *option_of(const char *word, const char **value)
{
    char         name[LONGEST_NAME] = "";
    const size_t n = strlen(word) > 2 ? strcspn(word + 2, "=") : 0;
    if (n < sizeof name) snprintf(name, sizeof name, "%.*s", (int)n, word + 2);
    const option *o = exact_option(name);
    *value = word[2 + n] ? word + 3 + n : NULL;
    if (!o || (o->kind != KIND_FLAG) != (*value != NULL))
        return tn_raise_null(TN_EFORMAT, "the run has the option '%s', which '%s' does not have", word,
                             now.program->name);
    return o;
}

static bool restore_words(const tn_json *words, const char *folder)
{
    const bool  operands = now.operand_count > 0;
    const char *value;
    int         code = 0;
    for (const tn_json *v = tn_json_first(words); v && !code; v = tn_json_next(v)) {
        const char *word = tn_json_string(v);
        if (strncmp(word, "--", 2) != 0) {
            char **more = operands ? NULL : realloc(now.operands, (size_t)(now.operand_count + 2) * sizeof *more);
            if (more) now.operands = more, more[now.operand_count] = keep_string(strdup(word));
            if (more && more[now.operand_count]) more[++now.operand_count] = NULL;
            continue;
        }
        const option *o = option_of(word, &value);
        if (!o || tn_error() != TN_OK) return false;
        if (program_typed(o->name)) continue;
        if (value && !strcmp(value, "-"))
            return tn_raise_false(TN_EINVAL,
                                  "the run read --%s from standard input; pass the same text again, with --%s -",
                                  o->name, o->name);
        if (!value) set_flag(o);
        else code = set_option(o, restored(o, value, folder));
    }
    return !code;
}

/* The saved values of an option as one text, separated by blanks. False: it was not given. */
static bool saved_text(const option *o, const tn_json *words, char to[LONG])
{
    const size_t n = strlen(o->name);
    size_t       at = 0;
    for (const tn_json *v = tn_json_first(words); v && at < LONG; v = tn_json_next(v)) {
        const char *w = tn_json_string(v);
        if (strncmp(w, "--", 2) || strncmp(w + 2, o->name, n) || (w[2 + n] && w[2 + n] != '=')) continue;
        at += (size_t)snprintf(to + at, LONG - at, "%s%s", at ? " " : "", w[2 + n] ? w + 3 + n : "set");
    }
    return at > 0;
}

static void typed_text(const option *o, char to[LONG])
{
    const char *const *value;
    size_t             at = 0;
    const int          n = option_values(o, &value);
    if (!n) option_text(o, o->to, to, LONG);
    for (int i = 0; i < n && at < LONG; i++) at += (size_t)snprintf(to + at, LONG - at, "%s%s", i ? " " : "", value[i]);
}

/* Raises an error that names the options on the command line whose value differs from the run's. Files are compared by
 * their contents instead. */
static bool check_typed(const tn_json *words, const char *folder, const char *run)
{
    char   all[LONG] = "", here[LONG], there[LONG];
    size_t at = 0;
    int    differ = 0;
    for (int i = 0; now.command->options[i].name; i++) {
        const option *o = &now.command->options[i];
        const bool    is_folder = o->value && !strcmp(o->value, "DIR");
        if (o->resume != RESUME_SAME || !program_typed(o->name) || (is_path(o) && !is_folder)) continue;
        bool known = saved_text(o, words, there) ||
                     (i < MOST_OPTIONS && o->kind != KIND_LIST && option_text(o, &now.before[i], there, LONG));
        if (!known && o->kind == KIND_FLAG) known = true, snprintf(there, LONG, "not set");
        typed_text(o, here);
        if (!known || !strcmp(here, there) || (is_folder && same_file(here, restored(o, there, folder)))) continue;
        if (at < LONG)
            at += (size_t)snprintf(all + at, LONG - at, "%s--%s is %.300s in the run, %.300s here", differ ? "; " : "",
                                   o->name, there, here);
        differ++;
    }
    if (!differ) return true;
    return tn_raise_false(TN_EINVAL, "'%s' is another run: %s; omit %s to resume it, or choose another %s", run, all,
                          differ > 1 ? "them" : "it", run_option()->resume == RESUME_FOLDER ? "folder" : "file");
}

static const char *run_file(const option *o, char path[1024])
{
    const char *run = *(const char **)o->to;
    if (o->resume == RESUME_FOLDER) return in_folder(run, "run.json", path);
    if (snprintf(path, 1024, "%s.json", run) >= 1024) tn_raise(TN_EINVAL, "the name '%.40s...' is too long", run);
    return path;
}

int resume_restore(void)
{
    const option *o = run_option(), *flag = o ? exact_option("resume") : NULL;
    char          path[1024], name[128];
    if (!flag || !*(bool *)flag->to || !*(const char **)o->to || !file_exists(run_file(o, path))) return program_end();
    tn_json       *j = tn_json_load(path);
    const tn_json *saved = tn_json_get(j, "options"), *words = tn_json_get(saved, "words");
    const char    *of = tn_json_string_or(tn_json_get(saved, "of"), ""), *run = *(const char **)o->to;
    const char    *folder = tn_json_string_or(tn_json_get(saved, "folder"), "");
    bool           fine = tn_error() == TN_OK;
    if (fine && saved && strcmp(of, command_name(name)) != 0)
        fine =
            tn_raise_false(TN_EINVAL, "'%s' is a run of '%s', not of '%s'; resume it with that command", run, of, name);
    fine = fine && (!saved || (check_typed(words, folder, run) && restore_words(words, folder)));
    tn_json_free(j);
    if (fine) return 0;
    return tn_error() == TN_OK ? EXIT_USAGE : program_end();
}

int resume_open(const command *train, const char *path)
{
    char     name[128];
    tn_json *j = tn_json_load(path);
    now.command = train, now.typed = now.given_count;
    const tn_json *saved = tn_json_get(j, "options"), *asked = tn_json_get(j, "asked");
    const char    *of = tn_json_string_or(tn_json_get(saved, "of"), "");
    if (tn_error() == TN_OK && (!saved || tn_json_type_of(asked) == TN_JSON_NULL))
        tn_raise(TN_EINVAL, "the run of '%s' did not reach its first step, or is of an earlier version", path);
    if (tn_error() == TN_OK && strcmp(of, command_name(name)) != 0)
        tn_raise(TN_EUNSUPPORTED, "'%s' is of a run of '%s', but only runs of '%s' can be repeated", path, of, name);
    const bool fine = tn_error() == TN_OK &&
                      restore_words(tn_json_get(saved, "words"), tn_json_string_or(tn_json_get(saved, "folder"), ""));
    tn_json_free(j);
    return fine || tn_error() != TN_OK ? 0 : EXIT_USAGE;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static bool same_files_of(const option *o, const tn_json *files)
{
    const char *const *value;
    const tn_json     *v = tn_json_first(files);
    const int          n = option_values(o, &value);
    for (int i = 0; i < n && tn_error() == TN_OK; i++) {
        char sum[17];
        if (!strcmp(value[i], "-")) continue;
        while (v && strcmp(tn_json_string(tn_json_get(v, "option")), o->name) != 0) v = tn_json_next(v);
        const char *path = tn_json_string(tn_json_get(v, "path")), *was = tn_json_string(tn_json_get(v, "sum"));
        checksum_text(sum_of(CHECKSUM, value[i], 0), sum);
        if (tn_error() != TN_OK) return false;
        if (!v)
            return tn_raise_false(TN_EINVAL, "the run did not read '%s' of --%s; omit it to resume", value[i], o->name);
        if (strcmp(sum, was) != 0 && strcmp(path, value[i]) != 0 && program_typed(o->name))
            return tn_raise_false(TN_EINVAL,
                                  "--%s is '%s' in the run, '%s' here, with other contents; omit it to resume", o->name,
                                  path, value[i]);
        if (strcmp(sum, was) != 0)
            return tn_raise_false(TN_EINVAL,
                                  "'%s' of --%s has changed since the run started; restore it to resume, or start a "
                                  "new run",
                                  value[i], o->name);
        v = tn_json_next(v);
    }
    while (n && v && strcmp(tn_json_string(tn_json_get(v, "option")), o->name) != 0) v = tn_json_next(v);
    if (n && v)
        tn_raise(TN_EINVAL, "the run also read '%s' of --%s; omit --%s to resume with all its files",
                 tn_json_string(tn_json_get(v, "path")), o->name, o->name);
    return tn_error() == TN_OK;
}

bool resume_find_files(void)
{
    char   all[LONG] = "";
    size_t at = 0;
    for (const option *o = now.command->options; o->name; o++) {
        const char *const *value;
        const int n = o->resume == RESUME_SAME && is_path(o) && program_given(o->name) ? option_values(o, &value) : 0;
        for (int i = 0; i < n && at < LONG; i++)
            if (strcmp(value[i], "-") != 0 && !file_exists(value[i]))
                at += (size_t)snprintf(all + at, LONG - at, "%s'%.300s' of --%s", at ? ", " : "", value[i], o->name);
    }
    if (!at) return true;
    return tn_raise_false(TN_EIO, "missing: %s; the run read %s", all, strchr(all, ',') ? "these files" : "this file");
}

bool resume_same_files(void)
{
    char           path[1024];
    const option  *r = run_option();
    tn_json       *j = r && file_exists(run_file(r, path)) ? tn_json_load(path) : NULL;
    const tn_json *files = tn_json_get(tn_json_get(j, "options"), "files");
    for (const option *o = now.command ? now.command->options : NULL; files && o && o->name && tn_error() == TN_OK; o++)
        if (is_hashed(o)) same_files_of(o, files);
    tn_json_free(j);
    return tn_error() == TN_OK;
}

/* verify.c — PROGRAM verify DIR: repeats segments of a training and compares all bits with those of its folder.
 *
 * Everything is made again from the texts and options that run.json names, in a temporary folder: the tokenizer, the
 * batches, the initial weights. tn_verify repeats the segments; then the model that the final weights give is saved and
 * compared with the folder's, byte by byte. If a text has changed, the run is repeated from its beginning up to the
 * first step that differs. */
#include "core/system/system.h"

#include "programs/common/checksum.h"
#include "repeat.h"
#include "replay.h"
#include "programs/common/messages.h"
#include "programs/common/resume.h"

#include <stdlib.h>
#include <string.h>

static int64_t     segments, seed;
static const char *certificate, *against;

const option verify_options[] = {
    OPTION_INT("segments", 0, "K", &segments, "repeat K segments, chosen at random (default: all)", .least = 1,
               .most = 1e9),
    OPTION_INT("seed", 0, "N", &seed, "random seed of the choice of segments (default: from the clock)", .least = 1),
    OPTION_TEXT("certificate", 'o', "FILE", &certificate,
                "write the checksums of the run as JSON (default: certificate.json in DIR)"),
    OPTION_TEXT("against", 0, "FILE", &against,
                "also compare the run with a certificate, of the same training on another machine"),
    {0},
};

typedef struct {
    training       *t;
    const char     *run;
    char            scratch[1024], input[32], text[600];
    bool            differs;
    int64_t         step, last; /* step that differs; last step of the run */
    double          seconds;    /* training time of the run; 0: not known */
    progress        bar;
    tn_json_writer *w;        /* writes the certificate */
    tn_string       compared; /* names of the files that were compared, each after a line end */
} verification;

static bool differs(verification *v, int64_t step, const char *input, const char *text)
{
    if (v->differs) return false;
    v->differs = true, v->step = step;
    snprintf(v->input, sizeof v->input, "%s", input);
    snprintf(v->text, sizeof v->text, "%s", text);
    return false;
}

/* ---- the temporary folder ---------------------------------------------------------------------------------------- */

static bool make_scratch(verification *v)
{
    char path[1024], checkpoints[1024];
    if (!replay_folder(v->scratch)) return false;
    char      *real = realpath(in_folder(v->run, "checkpoints", checkpoints), NULL);
    const bool made = real && symlink(real, in_folder(v->scratch, "checkpoints", path)) == 0; /* translate reads them */
    free(real);
    return made || tn_raise_false(TN_EIO, "'%s' has no training checkpoints; they were deleted", v->run);
}

/* ---- comparing files --------------------------------------------------------------------------------------------- */

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

/* True if each line of a SHA256SUMS is in the other one, except that of run.json, which reading run.json checks, and
 * that of the certificate, which verify writes. */
static bool has_lines(const char *a, const char *b)
{
    tn_lines *of = tn_lines_load(a), *in = tn_lines_load(b);
    bool      all = of && in;
    for (int64_t i = 0; all && i < tn_lines_count(of); i++) {
        const tn_text line = tn_lines_at(of, i);
        bool          found = ends_with(line, "  run.json") || ends_with(line, "  certificate.json");
        for (int64_t k = 0; !found && k < tn_lines_count(in); k++) {
            const tn_text other = tn_lines_at(in, k);
            found = other.bytes == line.bytes && !memcmp(other.at, line.at, line.bytes);
        }
        all = found;
    }
    tn_lines_free(of), tn_lines_free(in);
    return all;
}

/* Compares a file of the temporary folder with that of the run. Adds its checksum to the certificate and its name to
 * those that were compared. */
static void same_file_of(verification *v, int64_t step, const char *input, const char *what, const char *name)
{
    char       here[1024], there[1024], text[400];
    const bool sums = !strcmp(name + (strlen(name) < 10 ? 0 : strlen(name) - 10), "SHA256SUMS");
    in_folder(v->scratch, name, here), in_folder(v->run, name, there);
    snprintf(text, sizeof text, "'%.200s' is %s", there, what);
    if (!file_exists(there)) tn_raise(TN_EIO, "missing: '%s', which the run wrote", there);
    else if (sums ? !has_lines(here, there) || !has_lines(there, here) : !same_bytes(here, there))
        differs(v, step, input, text);
    else if (!sums) checksum_put(v->w, name, checksum_file(CHECKSUM, here));
    tn_string_add(&v->compared, tn_text_of("\n")), tn_string_add(&v->compared, tn_text_of(name));
}

/* Compares the files of the temporary folder, and of folders in it, with those of the run, and deletes them. Caches of
 * token ids are not compared. last: also SHA256SUMS, which is complete with the model. */
static bool same_folder_in(verification *v, int64_t step, const char *input, const char *what, const char *in,
                           bool last)
{
    char            here[1024], path[1024];
    struct dirent **e;
    const int       n = scandir(*in ? in_folder(v->scratch, in, path) : v->scratch, &e, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(e[i]->d_name, '.');
        struct stat st;
        char        name[600];
        snprintf(name, sizeof name, "%.250s%s%.300s", in, *in ? "/" : "", e[i]->d_name);
        const bool exists = e[i]->d_name[0] != '.' && !tn__sys_lstat(in_folder(v->scratch, name, here), &st);
        const bool sums = !strcmp(e[i]->d_name, "SHA256SUMS"),
                   file = exists && S_ISREG(st.st_mode) && strcmp(dot ? dot : "", ".tokens") != 0 && (!sums || last);
        if (file && !v->differs && tn_error() == TN_OK) same_file_of(v, step, input, what, name);
        if (file) tn__sys_unlink(here);
        if (exists && S_ISDIR(st.st_mode) && !*in) same_folder_in(v, step, input, what, name, last);
        free(e[i]);
    }
    if (n >= 0) free(e);
    return !v->differs && tn_error() == TN_OK;
}
static bool same_folder(verification *v, int64_t step, const char *input, const char *what, bool last)
{
    return same_folder_in(v, step, input, what, "", last);
}

/* Prints the names of the run's files that were not compared: logs, pages and caches. */
static void print_rest(const verification *v, const char *in)
{
    char            path[1024], name[600], listed[620];
    struct dirent **e;
    const int       n = scandir(*in ? in_folder(v->run, in, path) : v->run, &e, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *file = e[i]->d_name;
        snprintf(name, sizeof name, "%.250s%s%.300s", in, *in ? "/" : "", file);
        snprintf(listed, sizeof listed, "\n%s", name);
        const char *at = v->compared.at ? strstr(v->compared.at, listed) : NULL;
        const bool  state = !strcmp(in, "checkpoints") && (!strncmp(file, "step-", 5) || !strcmp(file, "record.jsonl"));
        const bool  own = !*in && (!strcmp(file, "run.json") || !strcmp(file, "certificate.json"));
        if (!*in && !strcmp(file, "checkpoints")) print_rest(v, name);
        else if (file[0] != '.' && !state && !own &&
                 !(at && (!at[strlen(listed)] || strchr("\n/", at[strlen(listed)]))))
            tell(" %s", name);
        free(e[i]);
    }
    if (n >= 0) free(e);
}

/* ---- the run, made again ----------------------------------------------------------------------------------------- */

/* True if the files of the run have not changed; false, with the reason in `text`: they have, or raised. */
static bool same_files(char text[400])
{
    *text = 0;
    if (resume_same_files()) return true;
    if (tn_error() != TN_EINVAL) return false;
    snprintf(text, 400, "%.*s", (int)strcspn(tn_error_message(), ";"), tn_error_message());
    tn_clear_error();
    return false;
}

/* Tokenizer, batches and initial weights, in the temporary folder. False: raised, or they differ. */
static bool make_again(verification *v)
{
    training *t = v->t;
    if (!replay_texts(t, v->scratch)) return false;
    tn_json_open_object(v->w, "tokenizer");
    if (!same_folder(v, 0, "data", "another tokenizer than the one of the texts", false)) return false;
    tn_json_close(v->w);
    return (!t->tokens || tn_tokenizer_save(t->tokens, v->scratch) == TN_OK) && replay_model(t);
}

/* Compares the options that define the run with run.json. The checksum of a text is data, which is not compared if the
 * files are known to have changed. */
static bool same_options(verification *v, const char *config, bool changed)
{
    tn_json       *here = tn_json_parse(config, strlen(config)), *run = record_asked(v->run);
    const tn_json *asked = tn_json_get(run, "asked");
    char           text[2][100], all[400];
    for (const tn_json *m = tn_json_first(here); m && !v->differs; m = tn_json_next(m)) {
        const tn_json *sides[] = {m, tn_json_get(asked, tn_json_key(m))};
        for (int i = 0; i < 2; i++) {
            tn_json_writer *w = tn_json_writer_new(0);
            if (sides[i]) tn_json_put(w, NULL, sides[i]);
            const char *value = sides[i] ? tn_json_text(w, NULL) : "absent";
            snprintf(text[i], sizeof text[i], "%s", value ? value : "");
            tn_json_writer_free(w);
        }
        if (!strcmp(text[0], text[1]) || tn_error() != TN_OK) continue;
        const bool sum = tn_json_type_of(m) == TN_JSON_STRING && strlen(tn_json_string(m)) == 16;
        if (sum && changed) continue;
        snprintf(all, sizeof all, "%s%s is %s, in run.json %s", tn_json_key(m), sum ? "'s checksum" : "", text[0],
                 text[1]);
        differs(v, 0, sum ? "data" : !strcmp(tn_json_key(m), "lr") ? "learning rate" : "configuration", all);
    }
    if (!v->differs && tn_json_count(asked) > tn_json_count(here))
        differs(v, 0, "configuration", "run.json has more options than the run");
    tn_json_free(here), tn_json_free(run);
    return !v->differs && tn_error() == TN_OK;
}

static void on_plan(const tn_verify_plan *p, void *user)
{
    verification *v = user;
    char          time[16] = "";
    v->last = p->last;
    tn_json_put_i64(v->w, "segments_in_all", p->segments_in_all);
    tn_json_open_array(v->w, "segments");
    for (int64_t i = 0; i < p->segments; i++) {
        tn_json_open_array(v->w, NULL);
        for (int k = 0; k < 2; k++) tn_json_put_i64(v->w, NULL, p->segment[i][k]);
        tn_json_close(v->w);
    }
    tn_json_close(v->w);
    v->bar = progress_begin("verify", p->steps, "step");
    if (settings.quiet) return;
    tell("verify   %lld of %lld segments: %lld of %lld steps", (long long)p->segments, (long long)p->segments_in_all,
         (long long)p->steps, (long long)p->steps_in_all);
    if (v->seconds > 0 && p->steps_in_all)
        tell("; about %s, the time of as many steps of the training",
             progress_time(v->seconds * (double)p->steps / (double)p->steps_in_all, time));
    tell("\n");
}

static void on_event(const tn_fit_event *e, void *user)
{
    verification *v = user;
    if (e->what == TN_FIT_STEP) progress_at(&v->bar, v->bar.done + 1, "");
    if (v->t->on && tn_error() == TN_OK) v->t->on(v->t, e);
}

/* Repeats the segments; all of them, from the first step, if a text has changed. */
static bool repeat(verification *v, const char *config, const char *changed, int64_t *count)
{
    training   *t = v->t;
    char        folder[1024];
    tn_fit_args f = train_fit_args(t, record_steps(v->run), in_folder(v->run, "checkpoints", folder), config);
    f.on = on_event, f.on_user = v, f.stop = &stop_flag;
    stop_begin("ending");
    const tn_verify_result r = tn_verify(&f, .segments = *changed ? 0 : segments, .seed = (uint64_t)seed,
                                         .whole = *changed != 0, .plan = on_plan, .plan_user = v);
    if (v->bar.title) progress_end(&v->bar);
    if (r.why == TN_VERIFY_DIFFERS) differs(v, r.step, *changed ? "data" : r.input, *changed ? changed : r.text);
    *count = r.segments;
    return r.why == TN_VERIFY_IDENTICAL;
}

/* Compares the folder's model with the one that the final weights give. */
static bool same_model(verification *v)
{
    training  *t = v->t;
    char       path[1024];
    const bool stopped = !t->fit.patience && v->last < record_steps(v->run);
    if (!file_exists(in_folder(v->run, "config.json", path))) return tn_error() == TN_OK; /* the run was killed */
    tn_module_train(t->net, false);
    if (!t->kind->save(t, stopped ? TN_FIT_STOPPED : TN_FIT_DONE)) return false;
    tn_json_open_object(v->w, "model");
    if (!same_folder(v, v->last, "weights", "not of the model that the training ended with", true)) return false;
    tn_json_close(v->w);
    return tn_error() == TN_OK;
}

/* ---- the certificate --------------------------------------------------------------------------------------------- */

/* Copies the points of the record: the sums of the state at each training checkpoint. */
static void put_points(verification *v)
{
    char      folder[1024], path[1024];
    tn_lines *lines = tn_lines_load(in_folder(in_folder(v->run, "checkpoints", folder), "record.jsonl", path));
    tn_json_open_array(v->w, "points");
    for (int64_t i = 0; i < tn_lines_count(lines) && tn_error() == TN_OK; i++) {
        const tn_text line = tn_lines_at(lines, i);
        if (line.bytes < 8 || memcmp(line.at, "{\"point\"", 8) != 0) continue;
        tn_json *point = tn_json_parse(line.at, line.bytes);
        tn_json_put(v->w, NULL, point);
        tn_json_free(point);
    }
    tn_json_close(v->w);
    tn_lines_free(lines);
}

static void put_run(verification *v, const char *config)
{
    tn_json *asked = tn_json_parse(config, strlen(config)), *run = record_asked(v->run);
    tn_json_put_string(v->w, "certificate", "these parts of a training were repeated with the same bits");
    tn_json_put_string(v->w, "verified_by", tn_build_info());
    tn_json_put_i64(v->w, "steps", v->last);
    tn_json_put(v->w, "asked", asked);
    tn_json_put(v->w, "options", tn_json_get(run, "options"));
    put_points(v);
    tn_json_free(asked), tn_json_free(run);
}

/* Compares this run's certificate with another one: what both trainings computed. */
static bool same_certificate(verification *v, const char *text)
{
    static const char *const names[] = {"steps", "asked", "tokenizer", "points", "model"};
    tn_json                 *other = tn_json_load(against), *mine = tn_json_parse(text, strlen(text));
    for (size_t i = 0; i < sizeof names / sizeof *names && !v->differs && tn_error() == TN_OK; i++) {
        const tn_json *a = tn_json_need(mine, names[i]), *b = tn_json_get(other, names[i]), *x = tn_json_first(a),
                      *y = tn_json_first(b);
        for (int64_t k = 0; !v->differs && tn_error() == TN_OK && (!k || x || y);
             k++, x = tn_json_next(x), y = tn_json_next(y)) {
            char            note[400];
            tn_json_writer *w[2] = {tn_json_writer_new(0), tn_json_writer_new(0)};
            const char     *value[2];
            tn_json_put(w[0], NULL, x ? x : a), tn_json_put(w[1], NULL, y ? y : b ? b : mine);
            for (int s = 0; s < 2; s++) value[s] = tn_json_text(w[s], NULL);
            if (tn_error() == TN_OK && (strcmp(value[0], value[1]) != 0 || !x != !y)) {
                snprintf(note, sizeof note, "%s%s%s is %.100s, in '%.100s' %.100s", names[i],
                         *tn_json_key(x) ? "." : "", tn_json_key(x), value[0], against, value[1]);
                differs(v, tn_json_i64_or(tn_json_get(x, "point"), 0), "certificate", note);
            }
            tn_json_writer_free(w[0]), tn_json_writer_free(w[1]);
        }
    }
    tn_json_free(other), tn_json_free(mine);
    return !v->differs && tn_error() == TN_OK;
}

static bool write_certificate(verification *v)
{
    char        path[1024];
    const char *to = certificate ? certificate : in_folder(v->run, "certificate.json", path), *text;
    tn_json_close(v->w);
    if (!(text = tn_json_text(v->w, NULL)) || (against && !same_certificate(v, text))) return false;
    if (tn_json_save(v->w, to) != TN_OK) return false;
    if (settings.quiet) return true;
    tell("checksums %s\nnot compared:", to);
    print_rest(v, "");
    tell("; of run.json, its member \"run\", with times and the command\n");
    return true;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

/* The config of the run. With changed files, the one in run.json, so that the replay finds the first step that differs.
 */
static const char *config_of(const verification *v, bool changed, tn_json_writer *w)
{
    const char *config = train_describe(v->t, replay_steps(v->t, v->run), w);
    if (!config || !changed) return config;
    tn_json *run = record_asked(v->run);
    tn_json_writer_clear(w);
    tn_json_put(w, NULL, tn_json_get(run, "asked"));
    tn_json_free(run);
    return tn_json_text(w, NULL);
}

/* What changed files cause: an error in reading them, another tokenizer, or other batches. */
static bool blame_files(verification *v, const char *changed)
{
    char text[600];
    if (tn_error() == TN_EFORMAT || tn_error() == TN_EINVAL) tn_clear_error(), differs(v, 0, "data", changed);
    if (tn_error() != TN_OK) return false;
    if (!strcmp(v->input, "data")) snprintf(v->text, sizeof v->text, "%s", changed);
    snprintf(text, sizeof text, "%s; no batch contains the change", changed);
    return differs(v, 0, "data", text);
}

static bool verify(verification *v, int64_t *count)
{
    training       *t = v->t;
    char            changed[400];
    tn_json_writer *w = tn_json_writer_new(2);
    t->asked.out = v->run;
    if ((!same_files(changed) && !*changed) || !make_scratch(v)) return tn_json_writer_free(w), false;
    tn_json_open_object(v->w, NULL);
    bool        good = make_again(v);
    const char *config = good ? config_of(v, *changed, w) : NULL;
    good = config && same_options(v, config, *changed) && repeat(v, config, changed, count);
    if (*changed && (good || v->differs || tn_error() != TN_OK)) good = blame_files(v, changed);
    good = good && same_model(v) && tn_error() == TN_OK;
    if (good) put_run(v, config);
    good = good && write_certificate(v);
    tn_json_writer_free(w);
    t->kind->close(t);
    return good;
}

int verify_main(int n, char **operands)
{
    const command *train = program_command()->repeats;
    training      *t = train->training;
    const char    *run = operands[0];
    verification   v = {.t = t, .run = run};
    int64_t        count = 0;
    const int      code = replay_open(train, t, run);
    (void)n;
    if (tn_error() == TN_EFORMAT) { /* for example another SHA-256 */
        printf("differs at step 0: configuration: %s\n", tn_error_message());
        return EXIT_FAILED;
    }
    if (code) return code;
    if (certificate && tn_error() == TN_OK) (void)!may_write(certificate); /* program_end reports the error */
    if (!certificate && tn_error() == TN_OK && access(run, W_OK))
        tn_raise(TN_EIO, "cannot write into '%s'; choose a file for --certificate elsewhere", run);
    tn_json *j = tn_error() == TN_OK ? record_asked(run) : NULL;
    v.seconds = tn_json_double_or(tn_json_get(tn_json_get(j, "run"), "seconds"), 0);
    tn_json_free(j);
    const bool good = tn_error() == TN_OK && (v.w = tn_json_writer_new(2)) && verify(&v, &count);
    replay_delete(v.scratch);
    tn_json_writer_free(v.w), tn_string_free(&v.compared);
    replay_close(t);
    if (good) printf("identical %lld segments\n", (long long)count);
    if (!v.differs || tn_error() != TN_OK) return program_end();
    printf("differs at step %lld: %s: %s\n", (long long)v.step, v.input, v.text);
    return EXIT_FAILED;
}

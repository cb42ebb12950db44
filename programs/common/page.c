/* page.c — see page.h. */
#include "core/system/system.h"

#include "page.h"

#include "files.h"
#include "messages.h"
#include "progress.h"
#include "record.h"
#include "texts.h"
#include <math.h>
#include <string.h>

static bool add(tn_string *s, const char *text) { return tn_string_add(s, tn_text_of(text ? text : "")) == TN_OK; }

/* ---- a log ------------------------------------------------------------------------------------------------------- */

enum { LOSS, VALID, RATE, SCORE, CURVES };
typedef struct {
    char      name[2][80]; /* labels of the training and validation curves, if the log is another run's */
    double   *all;
    size_t    bytes;
    tn_series curve[CURVES];
} run_log;

static void log_close(run_log *l)
{
    if (l->all) tn_mem_put(l->all, l->bytes);
    l->all = NULL;
}

/* The next cell of a row; false: there are no more. */
static bool next_cell(tn_text row, size_t *at, tn_text *cell)
{
    if (*at > row.bytes) return false;
    const char *comma = memchr(row.at + *at, ',', row.bytes - *at);
    *cell = (tn_text){row.at + *at, (comma ? (size_t)(comma - row.at) : row.bytes) - *at};
    *at += cell->bytes + 1;
    return true;
}

/* Reads log.csv. A file that has not both steps and losses is rejected. */
static bool log_open(const char *path, run_log *l)
{
    enum { MOST = 32 };
    static const char *const columns[] = {"train/loss", "valid/loss", "lr", "valid/score", "step"};
    tn_lines                *lines = tn_lines_load(path);
    const int64_t            rows = tn_lines_count(lines);
    int                      is[MOST], n = 0, found = 0;
    tn_text                  cell, head = rows ? tn_lines_at(lines, 0) : tn_text_of("");
    *l = (run_log){.bytes = (size_t)(2 * CURVES * (rows + 1)) * sizeof(double)};
    for (size_t at = 0; n < MOST && next_cell(head, &at, &cell); n++) {
        is[n] = -1;
        for (int k = 0; k <= CURVES; k++)
            if (cell.bytes == strlen(columns[k]) && !memcmp(cell.at, columns[k], cell.bytes))
                is[n] = k, found |= 1 << k;
    }
    if (tn_error() == TN_OK && !(found & 1 << CURVES && found & (1 << LOSS | 1 << VALID)))
        tn_raise(TN_EFORMAT,
                 "'%s' is not the log of a training: expected columns step and train/loss; name the "
                 "log.csv of a run",
                 path);
    if (tn_error() == TN_OK) l->all = tn_mem_get(l->bytes);
    for (int k = 0; l->all && k < CURVES; k++)
        l->curve[k].x = l->all + 2 * k * (rows + 1), l->curve[k].y = l->curve[k].x + rows + 1;
    for (int64_t i = 1; l->all && i < rows; i++) {
        double value[CURVES + 1] = {NAN, NAN, NAN, NAN, NAN};
        size_t at = 0;
        for (int k = 0; k < n && next_cell(tn_lines_at(lines, i), &at, &cell); k++)
            if (is[k] >= 0 && !tn_parse_double(cell.at, cell.bytes, &value[is[k]])) value[is[k]] = NAN;
        for (int k = 0; k < CURVES; k++) {
            tn_series *c = &l->curve[k];
            if (isnan(value[k])) continue;
            l->all[2 * k * (rows + 1) + c->n] = value[CURVES];
            l->all[(2 * k + 1) * (rows + 1) + c->n++] = value[k];
        }
    }
    tn_lines_free(lines);
    return tn_error() == TN_OK;
}

bool run_check(const option_list *compare)
{
    run_log l = {.all = NULL};
    for (int i = 0; i < compare->count && log_open(compare->value[i], &l); i++) log_close(&l);
    log_close(&l);
    return tn_error() == TN_OK;
}

/* The best value of the validation, or the last loss of the training. */
typedef struct {
    const char *name; /* "validation loss" */
    double      value, step;
    bool        any;
} run_score;

static run_score best_of(const run_page *p)
{
    char      path[1024];
    run_log   l = {.all = NULL};
    run_score s = {p->score ? p->score : "validation loss", NAN, NAN, false};
    if (!file_exists(in_folder(p->folder, "log.csv", path)) || !log_open(path, &l)) return s;
    const tn_series *c = &l.curve[p->score && l.curve[SCORE].n ? SCORE : VALID];
    const bool       rising = p->rising && c == &l.curve[SCORE];
    if (c == &l.curve[VALID]) s.name = "validation loss";
    for (int64_t i = 0; i < c->n; i++)
        if (!s.any || (rising ? c->y[i] > s.value : c->y[i] < s.value)) s = (run_score){s.name, c->y[i], c->x[i], true};
    c = &l.curve[LOSS];
    if (!s.any && c->n) s = (run_score){"training loss", c->y[c->n - 1], c->x[c->n - 1], true};
    log_close(&l);
    return s;
}

/* ---- run.json ---------------------------------------------------------------------------------------------------- */

static tn_json *load_run(const char *folder)
{
    char path[1024];
    return tn_json_load(in_folder(folder, "run.json", path));
}

static void put_texts(tn_json_writer *w)
{
    const char *name[64];
    const int   n = program_files(name, 64);
    tn_json_open_array(w, "texts");
    for (int i = 0; i < n; i++) texts_put(w, NULL, name[i]);
    tn_json_close(w);
}

/* The members that the start knows. */
static void put_start(tn_json_writer *w, const run_start *s)
{
    const time_t now = time(NULL);
    struct tm    utc;
    char         date[32] = "";
    tn_string    line = {0};
    program_line(&line);
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    texts_put(w, "command", line.at ? line.at : "");
    tn_json_put_string(w, "date", date);
    put_texts(w);
    tn_json_put_i64(w, "parameters", (int64_t)s->parameters);
    if (s->vocabulary) tn_json_put_i64(w, "vocabulary", s->vocabulary);
    if (s->epochs > 0) tn_json_put_double(w, "epochs", s->epochs);
    tn_string_free(&line);
}

static void put_end(tn_json_writer *w, const tn_json *was, const run_page *p, double seconds)
{
    const run_score s = best_of(p);
    for (const tn_json *v = tn_json_first(was); v; v = tn_json_next(v))
        if (strcmp(tn_json_key(v), "seconds") != 0 && strcmp(tn_json_key(v), "score") != 0)
            tn_json_put(w, tn_json_key(v), v);
    tn_json_put_double(w, "seconds", round(10 * (seconds + tn_json_double_or(tn_json_get(was, "seconds"), 0))) / 10);
    if (!s.any) return;
    tn_json_open_object(w, "score");
    tn_json_put_string(w, "name", s.name);
    tn_json_put_double(w, "value", s.value);
    tn_json_put_i64(w, "step", (int64_t)s.step);
    tn_json_close(w);
}

/* The members of a run that is longer now: its command continues with this one. */
static void put_longer(tn_json_writer *w, const tn_json *was)
{
    tn_string line = {0};
    add(&line, tn_json_string_or(tn_json_get(was, "command"), "")), add(&line, " && "), program_line(&line);
    for (const tn_json *v = tn_json_first(was); v; v = tn_json_next(v))
        if (strcmp(tn_json_key(v), "command") != 0) tn_json_put(w, tn_json_key(v), v);
        else texts_put(w, "command", line.at ? line.at : "");
    tn_string_free(&line);
}

/* Writes run.json with another "run": of the end, if p is given; of the start, if s is; else of a longer run. */
static bool replace_run(const char *folder, const run_page *p, double seconds, const run_start *s)
{
    char            path[1024];
    tn_json        *j = load_run(folder);
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    for (const tn_json *v = tn_json_first(j); v; v = tn_json_next(v))
        if (strcmp(tn_json_key(v), "run") != 0) tn_json_put(w, tn_json_key(v), v);
    tn_json_open_object(w, "run");
    if (p) put_end(w, tn_json_get(j, "run"), p, seconds);
    else if (s) put_start(w, s);
    else put_longer(w, tn_json_get(j, "run"));
    tn_json_close(w), tn_json_close(w);
    const bool fine = tn_error() == TN_OK && tn_json_save(w, in_folder(folder, "run.json", path)) == TN_OK;
    tn_json_writer_free(w), tn_json_free(j);
    return fine;
}

bool run_begin(const char *folder, const run_start *s, bool longer)
{
    tn_json   *j = load_run(folder);
    const bool has = tn_json_get(j, "run") != NULL;
    tn_json_free(j);
    return tn_error() == TN_OK && ((has && !longer) || replace_run(folder, NULL, 0, has ? NULL : s));
}

bool run_end(const run_page *p, double seconds) { return replace_run(p->folder, p, seconds, NULL); }

/* ---- facts ------------------------------------------------------------------------------------------------------- */

enum { MODEL, DATA, COMMAND, DATE, TIME, STEPS, SEED, LIBRARY, FACTS };
static const char *const fact_name[FACTS] = {"model", "data", "command", "date", "time", "steps", "seed", "library"};

static double      number(const tn_json *in, const char *name) { return tn_json_double_or(tn_json_get(in, name), 0); }
static const char *string(const tn_json *in, const char *name) { return tn_json_string_or(tn_json_get(in, name), ""); }

/* 3221504 as "3,221,504". */
static const char *grouped(double n, char to[32])
{
    char digits[24], *at = to;
    snprintf(digits, sizeof digits, n >= 0 && n < 1e15 ? "%.0f" : "%.3g", n);
    const size_t k = strlen(digits);
    for (size_t i = 0; i < k; i++) {
        if (i && n >= 0 && n < 1e15 && (k - i) % 3 == 0) *at++ = ',';
        *at++ = digits[i];
    }
    *at = 0;
    return to;
}

static void add_model(tn_string *to, const tn_json *asked, const tn_json *run)
{
    char         text[160], n[32];
    const double layers = number(asked, "layers"), words = number(run, "vocabulary");
    snprintf(text, sizeof text, "%.40s: %.0f layer%s of width %.0f, %s parameters", string(asked, "size"), layers,
             layers == 1 ? "" : "s", number(asked, "dim"), grouped(number(run, "parameters"), n));
    add(to, text);
    snprintf(text, sizeof text, ", vocabulary of %s", grouped(words, n));
    if (words > 0) add(to, text);
    snprintf(text, sizeof text, ", %.8s", string(asked, "dtype"));
    add(to, text);
}

static void free_facts(tn_string fact[FACTS])
{
    for (int k = 0; k < FACTS; k++) tn_string_free(&fact[k]);
}

/* The facts of run.json; those that it does not have are empty. The caller frees them, after an error, too. */
static bool facts_of(const char *folder, tn_string fact[FACTS])
{
    char           text[64], n[32], time[16];
    tn_json       *j = load_run(folder);
    const tn_json *asked = tn_json_get(j, "asked"), *run = tn_json_get(j, "run");
    memset(fact, 0, FACTS * sizeof *fact);
    if (run) {
        add_model(&fact[MODEL], asked, run);
        for (const tn_json *v = tn_json_first(tn_json_get(run, "texts")); v; v = tn_json_next(v))
            add(&fact[DATA], fact[DATA].bytes ? ", " : ""), add(&fact[DATA], tn_json_string_or(v, ""));
        add(&fact[COMMAND], string(run, "command")), add(&fact[DATE], string(run, "date"));
        if (tn_json_get(run, "seconds")) add(&fact[TIME], progress_time(number(run, "seconds"), time));
        const double first = number(asked, "steps"), longer = number(j, "steps"), steps = longer > 0 ? longer : first;
        snprintf(text, sizeof text, "%s", grouped(steps, n));
        add(&fact[STEPS], text);
        const double epochs = number(run, "epochs") * steps / first;
        snprintf(text, sizeof text, epochs < 0.01 ? ", %.1g epochs of the data" : ", %.2f epochs of the data", epochs);
        if (epochs > 0 && isfinite(epochs)) add(&fact[STEPS], text);
        snprintf(text, sizeof text, "%.0f", number(asked, "seed"));
        add(&fact[SEED], text), add(&fact[LIBRARY], string(j, "made_by"));
    }
    tn_json_free(j);
    return tn_error() == TN_OK;
}

bool run_summary(tn_report *r, const run_page *p, const char *value, const char *caption)
{
    const run_score s = value ? (run_score){NULL, 0, 0, false} : best_of(p);
    char            best[32], about[160];
    tn_string       fact[FACTS];
    const char     *text[FACTS];
    if (!facts_of(p->folder, fact)) return free_facts(fact), false;
    for (int k = 0; k < FACTS; k++) text[k] = fact[k].bytes ? fact[k].at : NULL;
    if (s.any) {
        snprintf(best, sizeof best, "%.4g", s.value);
        snprintf(about, sizeof about, "%.80s at step %.0f%s", s.name, s.step, p->live ? "; the run continues" : "");
        value = best, caption = about;
    }
    tn_report_summary(r, value, caption, FACTS, fact_name, text);
    free_facts(fact);
    return tn_error() == TN_OK;
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

enum { MOST_RUNS = 8, FEW = 100 /* rows: a log without a running mean, which would lag */ };

/* Names the curves of another run by its folder. */
static void name_log(run_log *l, const char *path)
{
    const char *end = strrchr(path, '/'), *from = end;
    while (from && from > path && from[-1] != '/') from--;
    const int n = from ? (int)(end - from) : (int)strlen(path);
    snprintf(l->name[0], sizeof l->name[0], "%.*s, training", n > 60 ? 60 : n, from ? from : path);
    snprintf(l->name[1], sizeof l->name[1], "%.*s, validation", n > 60 ? 60 : n, from ? from : path);
    l->curve[LOSS].name = l->name[0], l->curve[VALID].name = l->name[1], l->curve[SCORE].name = l->name[1];
    l->curve[RATE].name = l->name[0];
}

/* The curves k, and if `also` is one, of all runs; empty ones are skipped. Returns their number. */
static int gather(const run_log *l, int runs, int k, int also, tn_series to[2 * MOST_RUNS])
{
    int n = 0;
    for (int i = 0; i < runs; i++) {
        if (l[i].curve[k].n) to[n++] = l[i].curve[k];
        if (also < CURVES && l[i].curve[also].n) to[n++] = l[i].curve[also];
    }
    if (!n) to[n++] = l[0].curve[k]; /* a run that has just started: an empty figure */
    return n;
}

bool run_curves(tn_report *r, const run_page *p)
{
    static const char *const scale[] = {"linear", "log loss", "log loss and log steps"};
    char                     path[1024];
    run_log                  l[MOST_RUNS];
    tn_series                s[2 * MOST_RUNS + 1];
    double                   unigram[] = {p->unigram, p->unigram}, steps[2];
    int                      runs = 0, others = p->compare ? p->compare->count : 0;
    if (!log_open(in_folder(p->folder, "log.csv", path), &l[runs++])) return false;
    l[0].curve[LOSS].name = "training (running mean)", l[0].curve[VALID].name = "validation";
    l[0].curve[RATE].name = "learning rate", l[0].curve[SCORE].name = p->score ? p->score : "score";
    for (int i = 0; i < others && runs < MOST_RUNS && tn_error() == TN_OK; i++)
        if (log_open(p->compare->value[i], &l[runs])) name_log(&l[runs], p->compare->value[i]), runs++;
    for (int i = 0; i < runs; i++) l[i].curve[LOSS].smooth = l[i].curve[LOSS].n < FEW ? 0 : 0.9;
    if (l[0].curve[LOSS].n < FEW) l[0].curve[LOSS].name = "training";
    int n = gather(l, runs, LOSS, VALID, s);
    if (p->unigram > 0 && s[0].n > 1) {
        steps[0] = s[0].x[0], steps[1] = s[0].x[s[0].n - 1];
        s[n++] = (tn_series){.name = "token frequencies alone", .n = 2, .x = steps, .y = unigram};
    }
    for (int k = 0; k < 3; k++) {
        tn_report_choice(r, "Loss", scale[k], k == 0);
        tn_report_scales(r, k > 1, k > 0);
        tn_report_curves(r, "", "step", "nats", n, s);
    }
    tn_report_choice_end(r), tn_report_scales(r, false, false);
    if (l[0].curve[VALID].n)
        tn_report_paragraph(r, l[0].curve[LOSS].smooth > 0
                                   ? "Why the training loss may lie above the validation loss: it is the running mean "
                                     "of steps, whose weights were worse, and it is measured with the run's dropout."
                                   : "Why the training loss may lie above the validation loss: each value is of one "
                                     "batch, with the run's dropout and the weights before that step.");
    n = gather(l, runs, SCORE, CURVES, s);
    if (s[0].n) tn_report_curves(r, p->score ? p->score : "score", "step", "", n, s);
    n = gather(l, runs, RATE, CURVES, s);
    tn_report_curves(r, "Learning rate", "step", "", n, s);
    for (int i = 0; i < runs; i++) log_close(&l[i]);
    return tn_error() == TN_OK;
}

const char *run_title(const run_page *p, char to[400])
{
    const char *slash = strrchr(p->folder, '/'), *name = slash && slash[1] ? slash + 1 : p->folder;
    snprintf(to, 400, "%.80s: %.300s", name, p->title);
    return to;
}

bool run_write(const run_page *p)
{
    enum { SECONDS = 20 };
    char       path[1024], title[400];
    tn_report *r = tn_report_new(run_title(p, title));
    if (p->live) tn_report_refresh(r, SECONDS);
    (void)!(run_summary(r, p, NULL, NULL) && run_curves(r, p));
    return record_report(r, in_folder(p->folder, "report.html", path));
}

/* ---- the card ---------------------------------------------------------------------------------------------------- */

static const char card_head[] = "---\nlibrary_name: tenon\n";

/* True if the card may be written: there is no README.md, or one that a run has written. */
static bool may_write_card(const char *path)
{
    if (!file_exists(path)) return true;
    tn_lines  *l = tn_lines_load(path);
    const bool ours = tn_lines_count(l) > 1 && !strncmp(tn_lines_at(l, 1).at, card_head + 4, strlen(card_head) - 5);
    tn_lines_free(l);
    return ours && tn_error() == TN_OK;
}

static void add_code(tn_string *to, const char *language, const char *text)
{
    add(to, "\n```"), add(to, language), add(to, "\n"), add(to, text), add(to, "\n```\n");
}

void run_line(const char *format, const char *folder, tn_string *to)
{
    char        named[512];
    const char *at;
    format = format ? message_name(format, named, sizeof named) : NULL, at = format ? strstr(format, "%s") : NULL;
    if (format) tn_string_add(to, (tn_text){format, at ? (size_t)(at - format) : strlen(format)});
    if (at) program_quote(folder, to), add(to, at + 2);
}

static void add_card(tn_string *to, const run_page *p, const tn_string fact[FACTS])
{
    const run_score s = best_of(p);
    char            text[200];
    tn_string       use = {0};
    const char *name = strrchr(p->folder, '/') && strrchr(p->folder, '/')[1] ? strrchr(p->folder, '/') + 1 : p->folder;
    add(to, card_head);
    if (p->tag) add(to, "pipeline_tag: "), add(to, p->tag), add(to, "\n");
    add(to, "tags:\n- tenon\n---\n\n# "), add(to, name), add(to, "\n\n"), add(to, p->title), add(to, ".\n\n");
    if (s.any) {
        snprintf(text, sizeof text, "- **score**: %.80s %.4g at step %.0f\n", s.name, s.value, s.step);
        add(to, text);
    }
    for (int k = 0; k < FACTS; k++)
        if (fact[k].bytes && k != COMMAND)
            add(to, "- **"), add(to, fact_name[k]), add(to, "**: "), add(to, fact[k].at), add(to, "\n");
    add(to,
        "\nThe curves of the training are in `report.html`, its options in `run.json`. The folder `checkpoints` may "
        "be deleted: only --resume, verify and debug read it.\n\n## Training\n");
    add_code(to, "sh", fact[COMMAND].at ? fact[COMMAND].at : "");
    add(to, "\n## Use\n");
    run_line(p->next, p->folder, &use);
    if (p->next) add_code(to, "sh", use.at);
    tn_string_free(&use);
    const char *load = p->load ? p->load
                               : "#include <tenon/tenon.h>\n\ntn_model m = tn_model_open(\"%s\"); /* its network and "
                                 "tokenizer; free them with tn_model_close(&m) */";
    const char *at = strstr(load, "%s");
    if (at) {
        tn_string_add(&use, (tn_text){load, (size_t)(at - load)}), add(&use, p->folder), add(&use, at + 2);
        add_code(to, "c", use.at);
    }
    tn_string_free(&use);
}

bool run_card(const run_page *p)
{
    char      path[1024];
    tn_string card = {0}, fact[FACTS];
    if (!may_write_card(in_folder(p->folder, "README.md", path))) return tn_error() == TN_OK;
    if (facts_of(p->folder, fact)) add_card(&card, p, fact);
    free_facts(fact);
    const bool fine = tn_error() == TN_OK && tn_file_write(path, card.at, card.bytes) == TN_OK;
    tn_string_free(&card);
    return fine;
}

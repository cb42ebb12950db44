/* test_fit_files.c — tn_fit's folder: its lock, which training checkpoints are kept, which one is resumed. After any
 * failure (a kill, a full disk, a file error, no memory) the existing files load, and resuming gives the same bits. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "tests/common/faults.h"
#include "tests/common/fit_case.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define USUAL(c)                                                                                                 \
    (c)->net, .train = (c)->train, .loss = fit_case_loss, .user = (c), .optimizer = (c)->o, .schedule = (c)->lr, \
              .ema = (c)->ema, .on = fit_case_listen, .on_user = (c)

/* The file names in a folder, sorted, without the lock file and the record. */
static const char *names(const char *folder)
{
    static char     text[1000];
    struct dirent **list;
    const int       n = scandir(folder, &list, NULL, alphasort);
    *text = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(list[i]->d_name, ".") != 0 && strcmp(list[i]->d_name, "..") != 0 &&
            strcmp(list[i]->d_name, "lock") != 0 && strcmp(list[i]->d_name, "record.jsonl") != 0)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", list[i]->d_name);
        free(list[i]);
    }
    if (n >= 0) free(list);
    return text;
}

static tn_fit_result run(fit_case *c, const char *folder, int64_t steps)
{
    return tn_fit(USUAL(c), .steps = steps, .folder = folder, .resume = true, .save_every = 2);
}

static void fit_done(tn_fit_result r) { ck_assert_msg(r.why == TN_FIT_DONE, "%s", tn_error_message()); }

/* ---- another call on the same folder ----------------------------------------------------------------------------- */

static void remember_rate(const tn_fit_event *e, void *user)
{
    fit_case_listen(e, user);
    ((fit_case *)user)->last.lr = e->lr;
}

/* With tn_fit's own optimizer, the options of this call are used. */
TEST(prolonged)
{
    const char   *folder = tn_test_file("prolonged");
    fit_case      c = fit_case_begin(0);
    tn_fit_result r = tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .steps = 8, .lr = 0.01,
                             .folder = folder, .resume = true, .on = remember_rate, .on_user = &c);
    fit_done(r);
    r = tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .steps = 16, .lr = 0.02, .warmup = 4,
               .decay = TN_DECAY_LINEAR, .folder = folder, .resume = true, .on = remember_rate, .on_user = &c);
    fit_done(r);
    ck_assert(r.begin == 8 && r.steps == 16);
    ck_assert_msg(fabs(c.last.lr - 0.02 / 12) < 1e-9, "lr at step 16: %g", c.last.lr); /* the last of 4 … 16 */
    fit_case_end(&c);
}

/* With the program's optimizer, the checkpoint's learning rate is used, and a note reports it. */
TEST(rate_of_the_checkpoint)
{
    const char *folder = tn_test_file("rate");
    fit_case    c = fit_case_begin(0);
    for (int i = 0; i < 3; i++) {
        tn_optimizer *o = tn_sgd_new(c.net, .lr = i == 1 ? 0.5 : 0.125);
        *c.note = 0;
        fit_done(tn_fit(c.net, .train = c.train, .loss = fit_case_loss, .user = &c, .optimizer = o, .steps = 2 + 2 * i,
                        .folder = folder, .resume = true, .on = fit_case_listen, .on_user = &c));
        ck_assert(tn_lr(o, 0) == 0.125);
        ck_assert_msg(i == 1 ? strstr(c.note, "the learning rate is 0.125, from '") && strstr(c.note, "program's 0.5;")
                             : !*c.note,
                      "%s", c.note);
        tn_optimizer_free(o);
    }
    fit_case_end(&c);
}

/* A flipped bit in any byte of best.safetensors. */
TEST(damaged_best)
{
    const char *folder = tn_test_file("damaged_best"), *file = tn_test_in(folder, "best.safetensors");
    fit_case    c = fit_case_begin(0);
    for (int i = 0; i < 20; i++) {
        tn_fit_result r = tn_fit(USUAL(&c), .valid = c.valid, .valid_every = 3, .restore_best = true, .steps = 6,
                                 .folder = folder, .resume = true);
        char          byte;
        FILE         *f = fopen(file, "r+b");
        ck_assert(f && !fseek(f, 0, SEEK_END));
        const long bytes = ftell(f), at = bytes - 1 - i * (bytes - 1) / 20;
        if (i % 2) { /* flipped in the previous round */
            ck_assert(r.why == TN_FIT_FAILED && tn_error() == TN_EFORMAT);
            if (i < 4)
                ck_assert_msg(strstr(tn_error_message(), "best.safetensors' is damaged: its checksum is"), "%s",
                              tn_error_message());
            tn_clear_error();
        } else {
            fit_done(r);
        }
        const long where = i % 2 ? bytes - 1 - (i - 1) * (bytes - 1) / 20 : at;
        ck_assert(!fseek(f, where, SEEK_SET) && fread(&byte, 1, 1, f) == 1 && !fseek(f, where, SEEK_SET));
        byte ^= 4;
        ck_assert(fwrite(&byte, 1, 1, f) == 1 && !fclose(f));
    }
    fit_case_end(&c);
}

static double always_better(void *net, void *user)
{
    static double value;
    (void)net, (void)user;
    return ++value;
}

/* A run killed between best.safetensors and its checkpoint: the file is newer than the run that resumes. */
TEST(best_of_another_step)
{
    const char *folder[2] = {tn_test_file("longer"), tn_test_file("shorter")};
    for (int i = 0; i < 3; i++) {
        fit_case      c = fit_case_begin(0);
        tn_fit_result r = tn_fit(USUAL(&c), .score = always_better, .rising = true, .valid_every = 3,
                                 .restore_best = true, .steps = i ? 3 : 6, .folder = folder[i > 0], .resume = true);
        if (i < 2) {
            fit_done(r);
            ck_assert_int_eq(r.best_step, i ? 3 : 6);
        } else {
            ck_assert(r.why == TN_FIT_FAILED);
            ck_error_has(TN_EFORMAT, "has the weights of step 6, but the best value of this run is of step 3");
        }
        fit_case_end(&c);
        if (i == 1)
            ck_assert_int_eq(
                rename(tn_test_in(folder[0], "best.safetensors"), tn_test_in(folder[1], "best.safetensors")), 0);
    }
}

/* ---- retention --------------------------------------------------------------------------------------------------- */

AROUND_TESTS(tn_faulty_files_begin, tn_faulty_files_end);

TEST(keeps_the_newest)
{
    const char *folder = tn_test_file("keep/in/a/folder/that/is/made");
    fit_case    c = fit_case_begin(0);
    fit_done(tn_fit(USUAL(&c), .steps = 9, .folder = folder, .save_every = 2, .keep = 3, .valid = c.valid,
                    .valid_every = 100));
    ck_assert_str_eq(names(folder), "best.safetensors step-000000000006.ckpt step-000000000008.ckpt "
                                    "step-000000000009.ckpt ");
    tn_ema_swap(c.ema);
    tn_sequential *best = tn_copy(c.net);
    ck_assert_int_eq(tn_load(best, tn_test_in(folder, "best.safetensors")), TN_OK);
    for (tn_each p = tn_parameters(c.net), q = tn_parameters(best); tn_next(&p) && tn_next(&q);)
        ck_assert(tn_same_bits(p.tensor, q.tensor)); /* validated once, at the end */
    tn_ema_swap(c.ema);
    tn_free(best);
    fit_case_end(&c);
}

/* A run that is stopped and resumed ends with the same checkpoints as an uninterrupted one: saved by steps, by
 * validations (one coincides with a stop), by epochs. `translate` averages the last checkpoints and depends on it. */
TEST(stops_leave_no_others)
{
    static const struct {
        int64_t save_every, valid_every;
    } ways[] = {{4, 0}, {0, 3}, {0, 0}};
    tn_generator chance = {.seed = 11};
    char         whole[1000];
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int parted = 0; parted < 9; parted++) {
            char          name[32];
            tn_fit_result r = {.why = TN_FIT_STOPPED};
            snprintf(name, sizeof name, "stops-%zu-%d", w, parted);
            const char *folder = tn_test_file(name);
            while (r.why == TN_FIT_STOPPED) {
                fit_case  c = fit_case_begin(0);
                tn_source valid = ways[w].valid_every ? c.valid : (tn_source){.next = NULL};
                c.stop_at = parted ? r.steps + 1 + tn_random_below(&chance, 9) : -1;
                c.stop_in_valid = parted && valid.next && tn_random_below(&chance, 2);
                r = tn_fit(USUAL(&c), .steps = 34, .folder = folder, .resume = true, .keep = 3, .valid = valid,
                           .save_every = ways[w].save_every, .valid_every = ways[w].valid_every, .stop = &c.stop);
                ck_assert_msg(r.why == TN_FIT_DONE || (parted && r.why == TN_FIT_STOPPED), "%s", tn_error_message());
                fit_case_end(&c);
            }
            if (!parted) snprintf(whole, sizeof whole, "%s", names(folder));
            ck_assert_msg(!strcmp(names(folder), whole), "way %zu: %s, not %s", w, names(folder), whole);
        }
}

TEST(removes_what_others_left)
{
    const char *folder = tn_test_folder("left");
    ck_assert_int_eq(tn_file_write(tn_test_in(folder, ".step-000000000300.ckpt.tmp.0123456789ab"), "x", 1), TN_OK);
    ck_assert_int_eq(tn_file_write(tn_test_in(folder, ".best.safetensors.tmp.0123456789ab"), "x", 1), TN_OK);
    ck_assert_int_eq(tn_file_write(tn_test_in(folder, ".mine.tmp.0123456789ab"), "x", 1), TN_OK);
    ck_assert_int_eq(tn_file_write(tn_test_in(folder, "step-1.ckpt"), "x", 1), TN_OK); /* not a name that tn_fit uses */
    fit_case c = fit_case_begin(0);
    fit_done(run(&c, folder, 1));
    ck_assert_str_eq(names(folder),
                     ".mine.tmp.0123456789ab step-000000000000.ckpt step-000000000001.ckpt step-1.ckpt ");
    fit_case_end(&c);
}

TEST(passes_over_what_is_damaged)
{
    const char *folder = tn_test_file("damaged"), *newest = tn_test_in(folder, "step-000000000004.ckpt");
    fit_case    whole = fit_case_begin(0), c = fit_case_begin(0);
    tn_seed(4);
    fit_done(tn_fit(USUAL(&whole), .steps = 8));
    tn_seed(4);
    fit_done(run(&c, folder, 4));
    fit_case_end(&c);
    ck_assert_int_eq(truncate(newest, 3000), 0);
    c = fit_case_begin(0);
    tn_fit_result r = run(&c, folder, 8);
    fit_done(r);
    ck_assert_int_eq(r.begin, 2);
    ck_assert_msg(strstr(c.note, "skipped: ") && strstr(c.note, "step-000000000004.ckpt"), "%s", c.note);
    ck_assert(fit_case_same_bits(&whole, &c));
    ck_assert_str_eq(names(folder), "step-000000000006.ckpt step-000000000008.ckpt ");
    fit_case_end(&c);
    ck_assert_int_eq(truncate(tn_test_in(folder, "step-000000000006.ckpt"), 0), 0);
    ck_assert_int_eq(truncate(tn_test_in(folder, "step-000000000008.ckpt"), 0), 0);
    c = fit_case_begin(0);
    ck_assert_int_eq(run(&c, folder, 8).why, TN_FIT_FAILED);
    ck_assert_int_eq(tn_error(), TN_EFORMAT);
    ck_assert_msg(strstr(tn_error_message(), "are damaged; to start a new run, use another folder or empty it; the "
                                             "newest: "),
                  "%s", tn_error_message());
    tn_clear_error();
    ck_assert_int_eq(c.told[TN_FIT_NOTE], 2);
    fit_case_end(&c), fit_case_end(&whole);
}

/* ---- the lock ---------------------------------------------------------------------------------------------------- */

static tn_status inner;
static char      inner_text[1100];

static tn_tensor *another_inside(void *module, const tn_batch *b, void *user)
{
    fit_case *c = user;
    if (!inner) {
        fit_case d = fit_case_begin(0);
        run(&d, tn_test_file("locked"), 1);
        inner = tn_error();
        snprintf(inner_text, sizeof inner_text, "%s", tn_error_message());
        tn_clear_error();
        fit_case_end(&d);
    }
    return fit_case_loss(module, b, c);
}

TEST(one_at_a_time)
{
    char     text[1200];
    fit_case c = fit_case_begin(0);
    inner = TN_OK;
    fit_done(tn_fit(c.net, .train = c.train, .loss = another_inside, .user = &c, .steps = 1,
                    .folder = tn_test_file("locked")));
    ck_assert_int_eq(inner, TN_ESTATE);
    snprintf(text, sizeof text,
             "tn_fit: '%s' is in use by another run (process %ld); wait for its end, or use another folder",
             tn_test_file("locked"), (long)getpid());
    ck_assert_str_eq(inner_text, text);
    fit_case_end(&c);
    c = fit_case_begin(0);
    ck_assert_int_eq(tn_fit(USUAL(&c), .steps = 2, .folder = tn_test_file("locked")).why, TN_FIT_FAILED);
    snprintf(text, sizeof text,
             "tn_fit: '%s' already contains a run of 1 steps; set .resume to continue it, or use another folder",
             tn_test_file("locked"));
    ck_error(TN_ESTATE, text);
    fit_case_end(&c);
}

TEST(another_config)
{
    const char *folder = tn_test_file("config");
    static const struct {
        const char *config, *says;
    } t[] = {{"{\"dim\": 8, \"heads\": 2}", NULL},
             {"{\"dim\": 9, \"heads\": 2}", "its dim is 8, but this run's is 9"},
             {"{\"dim\": 8}", "its heads is 2, but this run's is absent"},
             {"{\"dim\": 8, \"heads\": 2, \"x\": [1]}", "its x is absent, but this run's is [1]"},
             {"[]", "its config is {\"dim\":8,\"heads\":2}, but this run's is []"}};
    for (int i = 0; i < 5; i++) {
        fit_case      c = fit_case_begin(0);
        tn_fit_result r = tn_fit(USUAL(&c), .steps = 2 + i, .folder = folder, .resume = true, .config = t[i].config);
        ck_assert_int_eq(r.why, i ? TN_FIT_FAILED : TN_FIT_DONE);
        char text[1200];
        if (i) {
            snprintf(text, sizeof text, "tn_fit: '%s' is from another run: %s; use the same value or another folder",
                     tn_test_in(folder, "step-000000000002.ckpt"), t[i].says);
            ck_error(TN_EINVAL, text);
        }
        fit_case_end(&c);
    }
    fit_case c = fit_case_begin(0);
    ck_assert_int_eq(tn_fit(USUAL(&c), .steps = 9, .folder = folder, .resume = true).why, TN_FIT_FAILED);
    ck_error_has(TN_EINVAL, "is from a run with a .config, but this run has none");
    fit_case_end(&c);
    c = fit_case_begin(0);
    ck_assert_int_eq(tn_fit(USUAL(&c), .steps = 1, .folder = folder, .config = "{").why, TN_FIT_FAILED);
    ck_error_code(TN_EFORMAT);
    fit_case_end(&c);
}

TEST(no_folder)
{
    char     text[1200];
    fit_case c = fit_case_begin(0);
    ck_assert_int_eq(tn_file_write(tn_test_file("file"), "x", 1), TN_OK);
    ck_assert_int_eq(run(&c, tn_test_in(tn_test_file("file"), "run"), 1).why, TN_FIT_FAILED);
    snprintf(text, sizeof text, "tn_fit: '%s': cannot create the folder: a part of the path is a file (errno %d)",
             tn_test_file("file"), EEXIST);
    ck_error(TN_EIO, text);
    ck_assert_int_eq(run(&c, "", 1).why, TN_FIT_FAILED);
    ck_error(TN_EINVAL, "tn_fit: .folder is a path of 0 bytes, but must have 1 to 800");
    fit_case_end(&c);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

enum { STEPS = 6 };

static fit_case whole_run(void)
{
    fit_case c = fit_case_begin(0);
    tn_seed(8);
    fit_done(tn_fit(USUAL(&c), .steps = STEPS, .valid = c.valid, .valid_every = 3));
    return c;
}

static tn_fit_result whole_into(fit_case *c, const char *folder)
{
    return tn_fit(USUAL(c), .steps = STEPS, .valid = c->valid, .valid_every = 3, .folder = folder, .resume = true,
                  .save_every = 2);
}

AROUND_TESTS(NULL, NULL);

/* An allocation fails at some point of the run; the program continues, resumes, and gets the same bits. */
TEST(memory_fails)
{
    tn_faulty_memory_begin();
    tn_faulty_files_begin();
    const tn_scope scope = tn_scope_begin();
    fit_case       whole = whole_run();
    tn_generator   chance = {.seed = 2};
    const int64_t  tries = tn_test_slow() ? 20 : 100;
    int64_t        calls = 0, failed = 0;
    for (int64_t i = -1; i < tries; i++) {
        char folder[32];
        snprintf(folder, sizeof folder, "memory%lld", (long long)i);
        fit_case c = fit_case_begin(0);
        tn_seed(8);
        if (i >= 0) tn_fail_memory(i < 40 ? i : tn_random_below(&chance, calls), i % 2);
        else tn_fail_memory(-1, false);
        tn_fit_result r = whole_into(&c, tn_test_file(folder));
        if (i < 0) calls = tn_memory_calls();
        tn_fail_memory(-1, false);
        if (r.why == TN_FIT_FAILED) {
            ck_assert_msg(tn_error() == TN_ENOMEM, "%s", tn_error_message());
            tn_clear_error();
            failed++;
            for (tn_each p = tn_parameters(c.net); tn_next(&p);) ck_assert(!tn_grad(p.tensor));
            if (c.told[TN_FIT_SAVED]) tn_seed(77); /* no longer needed */
            else tn_seed(8);
            r = whole_into(&c, tn_test_file(folder));
        }
        fit_done(r);
        ck_assert_msg(fit_case_same_bits(&whole, &c), "failure %lld", (long long)i);
        fit_case_end(&c);
    }
    ck_assert_int_gt(failed, tries / 2);
    fit_case_end(&whole);
    tn_scope_end(scope);
    tn_faulty_files_end();
    tn_faulty_memory_end();
}

/* Each file operation fails once, or from then on: the run raises; saved files remain; resuming gives the same bits. */
TEST(files_fail)
{
    static const int codes[] = {EIO, ENOSPC};
    fit_case         whole = whole_run();
    int64_t          number = 0;
    for (int k = 0; k < 2; k++)
        for (int64_t at = 0, calls = 0; at <= calls; at += 3) {
            char     folder[32];
            fit_case c = fit_case_begin(0);
            snprintf(folder, sizeof folder, "files%lld", (long long)number++);
            tn_faulty_files_begin();
            tn_seed(8);
            tn_fail_file(at, codes[k], k);
            tn_fit_result r = whole_into(&c, tn_test_file(folder));
            calls = tn_file_calls();
            tn_fail_file(-1, 0, false);
            if (r.why == TN_FIT_FAILED) {
                ck_assert_msg(tn_error() == TN_EIO, "%s", tn_error_message());
                tn_clear_error();
                if (!c.told[TN_FIT_STEP]) tn_seed(8);
                r = whole_into(&c, tn_test_file(folder));
            }
            fit_done(r);
            ck_assert_msg(fit_case_same_bits(&whole, &c), "call %lld", (long long)at);
            ck_assert(!strstr(names(tn_test_file(folder)), ".tmp."));
            tn_faulty_files_end();
            fit_case_end(&c);
        }
    fit_case_end(&whole);
}

/* A disk that is full from the start is detected before the first step. The child kills itself on success, so that a
 * leak checker does not report its memory. */
TEST(disk_is_full)
{
    fit_case      c = fit_case_begin(0);
    const pid_t   child = fork();
    struct rlimit small = {2000, 2000};
    if (!child) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &small);
        tn_fit_result r = run(&c, tn_test_file("full"), 4);
        if (r.why == TN_FIT_FAILED && tn_error() == TN_EIO && !c.told[TN_FIT_STEP]) kill(getpid(), SIGKILL);
        _exit(1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_str_eq(names(tn_test_file("full")), "");
    fit_done(run(&c, tn_test_file("full"), 1));
    fit_case_end(&c);
}

AROUND_TESTS(tn_faulty_files_begin, tn_faulty_files_end);

/* A child trains and saves after each step until it is killed: its newest checkpoint is intact and never older than
 * before, and in the end the bits are those of an uninterrupted run. A run of more than MANY steps, as after long waits
 * on a busy machine, ends: each resume reads the record of all of them. */
TEST(killed_at_any_time)
{
    enum { MANY = 2000 };
    char          name[32] = "killed";
    const char   *folder = tn_test_file(name);
    tn_generator  chance = {.seed = 3};
    const int     kills = tn_test_slow() ? 20 : getenv("TENON_KILLS") ? atoi(getenv("TENON_KILLS")) : 200;
    int64_t       last = 0, news = 0, wait = 6000;
    tn_fit_result r = {.why = TN_FIT_FAILED};
    for (int i = 0; i < kills; i++) {
        const pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (!child) {
            fit_case c = fit_case_begin(0);
            tn_seed(6);
            tn_fit(USUAL(&c), .steps = 1000000, .folder = folder, .resume = true, .save_every = 1);
            _exit(2);
        }
        usleep((useconds_t)(500 + tn_random_below(&chance, wait)));
        kill(child, SIGKILL);
        int status = 0;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the child failed by itself: %d", status);
        fit_case c = fit_case_begin(0);
        tn_seed(6);
        r = tn_fit(USUAL(&c), .steps = 1000000, .folder = folder, .resume = true, .save_every = 1,
                   .stop = &(sig_atomic_t){1});
        ck_assert_msg(r.why == TN_FIT_STOPPED, "after kill %d: %s", i, tn_error_message());
        ck_assert_int_eq(c.told[TN_FIT_NOTE], 0);
        ck_assert_int_ge(r.steps, last);
        news += r.steps > last;
        wait = r.steps > last ? (wait > 8000 ? wait / 2 : 6000) : wait < 500000 ? wait * 2 : wait; /* a busy machine */
        last = r.steps;
        if (i == kills - 1 || last > MANY) {
            fit_case whole = fit_case_begin(0);
            whole.stop_at = last;
            tn_seed(6);
            if (last) tn_fit(USUAL(&whole), .steps = 1000000, .stop = &whole.stop);
            ck_assert(fit_case_same_bits(&whole, &c));
            fit_case_end(&whole);
            snprintf(name, sizeof name, "killed after %d", i);
            folder = tn_test_file(name), last = 0;
        }
        fit_case_end(&c);
    }
    printf("kills: %d at random moments of a run with a checkpoint each step, %lld left a newer one: each goes on\n",
           kills, (long long)news);
    ck_assert_msg(news > kills / 10, "only %lld of %d kills left something new", (long long)news, kills);
}

/* test_crash.c — the process is killed, or the power fails, while checkpoints are saved. Kills: before each system
 * call. Power failures: after each system call, with all, none or some of the data that were not synced on the disk, or
 * with a torn write. The checkpoint that is found is complete: the last one whose saving had ended, or the one being
 * saved. On a disk that reports a sync without doing it, that does not hold, and the test detects it.
 *
 * TENON_CRASH_STATES: minimum number of states to test; default 10,000. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "optim/optim.h"
#include "tests/common/crash_disk.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAVES = 4, WIDTH = 40 /* a weight has more than a block of 4096 bytes */ };
static const char *path = "run/last.ckpt";

typedef struct {
    tn_linear    *net;
    tn_optimizer *adam;
} training;

static training begin(void)
{
    tn_seed(3);
    training r = {.net = tn_linear_new(.in = WIDTH, .out = WIDTH)};
    r.adam = tn_adamw_new(r.net, .lr = 0.01);
    ck_assert_int_eq(tn_error(), TN_OK);
    return r;
}
static void end(training *r)
{
    tn_optimizer_free(r->adam);
    tn_free(r->net);
}
static void advance(training *r)
{
    const tn_scope s = tn_scope_begin();
    tn_backward(tn_sum(tn_call(r->net, tn_normal(TN_SHAPE(2, WIDTH), 0, 1))));
    ck_assert_int_eq(tn_step(r->adam), TN_OK);
    tn_scope_end(s);
}
/* Later checkpoints are longer, since their records are. */
static void save(training *r, int64_t step)
{
    char data[4000] = "{\"place\": \"";
    memset(data + 11, 'x', (size_t)(step * 700));
    memcpy(data + 11 + step * 700, "\"}", 3);
    ck_assert_msg(tn_checkpoint_save(path, .module = r->net, .optimizer = r->adam, .step = step, .data = data) == TN_OK,
                  "%s", tn_error_message());
}

static struct {
    float   weights[SAVES + 1][WIDTH * WIDTH]; /* the weights of each step */
    int64_t ended[SAVES + 1]; /* number of the call after which the saving of each checkpoint had ended */
} saved;

static void save_all(void)
{
    training r = begin();
    for (int step = 0; step <= SAVES; step++) {
        if (step) advance(&r);
        save(&r, step);
        if (!step) tn_crash_disk_settle();
        saved.ended[step] = tn_crash_disk_calls();
        memcpy(saved.weights[step], tn_data(r.net->weight), sizeof saved.weights[step]);
    }
    end(&r);
}

/* The step of the complete checkpoint that is found; -1: damaged or missing. */
static int64_t found(training *into)
{
    tn_checkpoint_file *f = tn_checkpoint_open(path);
    int64_t             step = -1;
    if (f && tn_checkpoint_restore(f, .module = into->net, .optimizer = into->adam) == TN_OK) {
        step = tn_checkpoint_step(f);
        if (step < 0 || step > SAVES ||
            memcmp(saved.weights[step], tn_data(into->net->weight), sizeof saved.weights[step]) != 0)
            step = -1;
    }
    tn_checkpoint_close(f);
    tn_clear_error();
    return step;
}

/* Number of states that violate the guarantee; number that have the checkpoint that was being saved. */
static int64_t wrong_states(int64_t least, int64_t *tried, int64_t *newer)
{
    tn_generator  chance = {.seed = 7};
    training      into = begin();
    const int64_t calls = tn_crash_disk_calls();
    int64_t       wrong = 0;
    for (int64_t round = 0; *tried < least; round++)
        for (int64_t n = 0; n <= calls; n++)
            for (int kind = round ? TN_CRASH_SOME : TN_CRASH_KEPT; kind < TN_CRASH_KINDS; kind++, ++*tried) {
                int64_t ended = 0;
                while (ended < SAVES && saved.ended[ended + 1] <= n) ended++;
                const tn_scope s = tn_scope_begin();
                tn_crash_disk_fail(n, (tn_crash_kind)kind, &chance);
                const int64_t step = found(&into);
                tn_crash_disk_mend();
                tn_scope_end(s);
                wrong += step != ended && step != ended + 1;
                *newer += step == ended + 1;
            }
    end(&into);
    return wrong;
}

TEST(every_state_is_whole)
{
    const char   *wish = getenv("TENON_CRASH_STATES");
    const int64_t least = tn_test_slow() ? 300 : wish ? atoll(wish) : 10000;
    int64_t       tried = 0, newer = 0;
    tn_crash_disk_begin(false);
    save_all();
    const int64_t wrong = wrong_states(least, &tried, &newer);
    tn_crash_disk_end();
    ck_assert_msg(!wrong, "%lld of %lld states are damaged, or older than what was saved", (long long)wrong,
                  (long long)tried);
    ck_assert_int_gt(newer, 0); /* a name may be on the disk before its folder is synced */
    printf("power failures: %lld states of %d saves of a checkpoint, all of them whole\n", (long long)tried, SAVES);
}

TEST(a_disk_that_lies_is_found_out)
{
    int64_t tried = 0, newer = 0;
    tn_crash_disk_begin(true);
    save_all();
    const int64_t wrong = wrong_states(300, &tried, &newer);
    tn_crash_disk_end();
    ck_assert_int_gt(wrong, 50);
}

/* ---- kills ------------------------------------------------------------------------------------------------------- */

static int64_t calls_left;
static void    before_call(void)
{
    if (calls_left-- == 0) raise(SIGKILL);
}
static int k_open(void *u, const char *name, int flags, unsigned mode)
{
    before_call();
    return tn_system_io()->open(u, name, flags, mode);
}
static int64_t k_write(void *u, int fd, const void *from, size_t n)
{
    before_call();
    return tn_system_io()->write(u, fd, from, n);
}
static int k_reserve(void *u, int fd, int64_t n)
{
    before_call();
    return tn_system_io()->reserve(u, fd, n);
}
static int k_fsync(void *u, int fd)
{
    before_call();
    return tn_system_io()->fsync(u, fd);
}
static int k_close(void *u, int fd)
{
    before_call();
    return tn_system_io()->close(u, fd);
}
static int k_rename(void *u, const char *from, const char *to)
{
    before_call();
    return tn_system_io()->rename(u, from, to);
}

/* A child is killed before each of its system calls: the old checkpoint is found, or the new one. */
FIRST_TEST(killed_at_every_call)
{
    int      status = 0, calls = 0, news = 0;
    tn_io    io = *tn_system_io();
    training r = begin(), into = begin();
    io.open = k_open, io.write = k_write, io.reserve = k_reserve, io.fsync = k_fsync, io.close = k_close;
    io.rename = k_rename;
    path = tn_test_file("killed.ckpt");
    memcpy(saved.weights[1], tn_data(r.net->weight), sizeof saved.weights[1]);
    save(&r, 1);
    tn_tensor *old = tn_file_read(path, 1 << 20);
    advance(&r);
    memcpy(saved.weights[2], tn_data(r.net->weight), sizeof saved.weights[2]);
    for (bool ended = false; !ended; calls++) {
        ck_assert_int_eq(tn_file_write(path, tn_data(old), (size_t)tn_numel(old)), TN_OK);
        const pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (!child) {
            calls_left = calls;
            if (tn_set_io(&io) == TN_OK) save(&r, 2);
            raise(tn_error() == TN_OK ? SIGUSR1 : SIGUSR2); /* no exit, since valgrind would look for leaks */
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFSIGNALED(status));
        ended = WTERMSIG(status) == SIGUSR1;
        ck_assert_msg(ended || WTERMSIG(status) == SIGKILL, "call %d: status %d", calls, status);
        const int64_t step = found(&into);
        ck_assert_msg(step == 2 || (step == 1 && !ended), "killed before call %d: %lld", calls, (long long)step);
        news += step == 2;
    }
    ck_assert_msg(calls > 10 && news >= 2, "%d calls, %d left the new one", calls, news);
    end(&r), end(&into);
    path = "run/last.ckpt";
}

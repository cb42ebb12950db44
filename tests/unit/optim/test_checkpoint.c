/* test_checkpoint.c — a resumed run gives the same bits as an uninterrupted one; after any failure while a checkpoint
 * is saved, the last complete one loads; a checkpoint that does not fit or is damaged changes nothing, and the error
 * names it. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "tests/common/faults.h"
#include "tests/common/optim_case.h"
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a training run with all parts of a checkpoint --------------------------------------------------------------- */

typedef struct {
    tn_sequential *net;
    tn_optimizer  *o;
    tn_ema        *ema;
    tn_schedule   *lr, *plateau;
    tn_generator   own;
    int64_t        step;
    double         place; /* position in the data, computed from the steps, as a loader would */
} training;

static training begin(const tn_case_kind *k, tn_dtype dt)
{
    training       r = {.net = tn_case_new(dt), .own = {.seed = 77}};
    const tn_scope s = tn_scope_begin();
    tn_buffer(r.net, "count", tn_zeros_of(TN_I64, TN_SCALAR));
    tn_scope_end(s);
    r.o = k->make(r.net);
    r.ema = tn_ema_new(r.net, .decay = 0.9, .warmup = true);
    tn_schedule *up = tn_warmup_lr_new(r.o, .warmup = 4, .steps = 40);
    r.plateau = tn_plateau_lr_new(r.o, .patience = 3, .factor = 0.5);
    r.lr = tn_chained_lr_new(r.o, .parts = {up, r.plateau});
    tn_schedule_follow(r.lr);
    tn_seed(5);
    ck_assert_msg(tn_error() == TN_OK, "%s: %s", k->name, tn_error_message());
    return r;
}

static void end(training *r)
{
    tn_ema_free(r->ema);
    tn_optimizer_free(r->o);
    tn_free(r->net);
}

/* Draws from both generators, uses the position in the data, changes a buffer. */
static void advance(training *r, const tn_case_kind *k, int64_t to)
{
    for (; r->step < to; r->step++) {
        for (int part = 0; part < k->parts; part++) {
            const tn_scope s = tn_scope_begin();
            tn_tensor     *loss = tn_scalar(0);
            int            i = 0;
            for (tn_each p = tn_parameters(r->net); tn_next(&p); i++) {
                if (i == 2 && r->step < 5) continue;
                tn_tensor   *c = tn_normal_of(tn_dtype_of(p.tensor), tn_shape_of(p.tensor), r->place, 1);
                const double x = tn_random_double(&r->own);
                loss = tn_add(loss, tn_mul_scalar(tn_sum(tn_mul(p.tensor, c)), x));
            }
            tn_backward(loss);
            tn_step(r->o);
            tn_scope_end(s);
        }
        tn_ema_update(r->ema);
        r->place = fmod(r->place + 0.37, 1);
        tn_tensor *count = tn_find_tensor(r->net, "count");
        tn_set_i64(count, 0, tn_get_i64(count, 0) + 1);
        if (r->step % 3 == 0) tn_plateau_step(r->plateau, 1);
    }
    ck_assert_msg(tn_error() == TN_OK, "%s: %s", k->name, tn_error_message());
}

static bool same_state(const tn_optimizer *a, tn_sequential *na, const tn_optimizer *b, tn_sequential *nb)
{
    static const char *const names[] = {"momentum_buffer", "exp_avg",  "exp_avg_sq", "max_exp_avg_sq", "sum",
                                        "square_avg",      "grad_avg", "row_var",    "col_var",        "variance"};
    for (tn_each p = tn_parameters(na), q = tn_parameters(nb); tn_next(&p) && tn_next(&q);)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            const tn_tensor *s = tn_optimizer_state(a, p.tensor, names[i]),
                            *t = tn_optimizer_state(b, q.tensor, names[i]);
            if (!s != !t || (s && !tn_same_bits(s, t))) return false;
        }
    for (int g = 0; g < tn_group_count(a); g++)
        if (tn_lr(a, g) != tn_lr(b, g)) return false;
    return tn_steps(a) == tn_steps(b) && tn_group_count(a) == tn_group_count(b);
}

static bool same(training *a, training *b)
{
    bool same = tn_case_same(a->net, b->net) && same_state(a->o, a->net, b->o, b->net) &&
                a->own.position == b->own.position &&
                tn_same_bits(tn_find_tensor(a->net, "count"), tn_find_tensor(b->net, "count")) &&
                tn_schedule_now(a->lr) == tn_schedule_now(b->lr);
    tn_ema_swap(a->ema), tn_ema_swap(b->ema);
    same = same && tn_case_same(a->net, b->net);
    tn_ema_swap(a->ema), tn_ema_swap(b->ema);
    return same;
}

static tn_status save(training *r, const char *path)
{
    char data[80], number[32];
    tn_format_double(r->place, number);
    snprintf(data, sizeof data, "{\"place\": %s}", number);
    return tn_checkpoint_save(path, .module = r->net, .optimizer = r->o, .ema = r->ema, .step = r->step, .data = data,
                              .config = "{\"dim\": 3}", .generators = (tn_generator *[]){&r->own},
                              .generator_count = 1);
}

static tn_status restore(training *r, const char *path)
{
    tn_checkpoint_file *f = tn_checkpoint_open(path);
    const tn_status     s = tn_checkpoint_restore(f, .module = r->net, .optimizer = r->o, .ema = r->ema,
                                                  .generators = (tn_generator *[]){&r->own}, .generator_count = 1);
    if (s == TN_OK) {
        r->step = tn_checkpoint_step(f);
        r->place = tn_json_double(tn_json_need(tn_checkpoint_data(f), "place"));
    }
    tn_checkpoint_close(f);
    return f ? s : tn_error();
}

/* ---- resuming is exact ------------------------------------------------------------------------------------------- */

enum { LAST = 24, STOPS = 20 };

static void resume(const tn_case_kind *k, tn_dtype dt)
{
    const char  *path = tn_test_file("resume.ckpt");
    tn_generator chance = {.seed = 11}, at_the_end;
    training     whole = begin(k, dt);
    advance(&whole, k, LAST);
    at_the_end = *tn_current_generator();
    for (int i = 0; i < (tn_test_slow() ? 3 : STOPS); i++) {
        const int64_t stop = 1 + tn_random_below(&chance, LAST - 1);
        training      first = begin(k, dt);
        advance(&first, k, stop);
        ck_assert_msg(save(&first, path) == TN_OK, "%s", tn_error_message());
        end(&first);
        training second = begin(k, dt);
        advance(&second, k, i % 3); /* the target need not be new */
        tn_seed(1234);
        ck_assert_msg(restore(&second, path) == TN_OK, "%s", tn_error_message());
        ck_assert_int_eq(second.step, stop);
        advance(&second, k, LAST);
        ck_assert_msg(same(&whole, &second), "%s %s, stopped after step %lld", k->name, tn_dtype_name(dt),
                      (long long)stop);
        ck_assert(tn_current_generator()->seed == at_the_end.seed &&
                  tn_current_generator()->position == at_the_end.position);
        end(&second);
    }
    end(&whole);
}

TEST_EACH(resumed_runs, TN_CASE_KINDS)
{
    tn_faulty_files_begin(); /* skips waiting for the disk */
    resume(tn_case_kinds + _i, TN_F32);
    if (_i % 4 == 0) resume(tn_case_kinds + _i, TN_F64);
    if (_i % 4 == 1) resume(tn_case_kinds + _i, TN_BF16);
    tn_faulty_files_end();
}

/* ---- kills during saving ----------------------------------------------------------------------------------------- */

static const tn_case_kind *adamw(void)
{
    for (int i = 0; i < TN_CASE_KINDS; i++)
        if (!strcmp(tn_case_kinds[i].name, "adamw")) return tn_case_kinds + i;
    return NULL;
}

/* A child saves one checkpoint after the other until it is killed. The file that is found is complete, and never older
 * than the one before. */
FIRST_TEST(killed_at_any_time)
{
    const int           kills = tn_test_slow() ? 20 : getenv("TENON_KILLS") ? atoi(getenv("TENON_KILLS")) : 200;
    const tn_case_kind *k = adamw();
    const char         *path = tn_test_file("killed.ckpt");
    tn_generator        chance = {.seed = 3};
    int64_t             last = 0, news = 0, wait = 6000;
    training            reference = begin(k, TN_F32), r = begin(k, TN_F32);
    ck_assert_int_eq(save(&r, path), TN_OK);
    end(&r);
    for (int i = 0; i < kills; i++) {
        const pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (!child) {
            r = begin(k, TN_F32);
            if (restore(&r, path) != TN_OK) _exit(2);
            for (;;) {
                advance(&r, k, r.step + 1);
                if (save(&r, path) != TN_OK) _exit(3);
            }
        }
        usleep((useconds_t)(500 + tn_random_below(&chance, wait)));
        kill(child, SIGKILL);
        int status = 0;
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "the child failed by itself: %d", status);
        r = begin(k, TN_F32);
        ck_assert_msg(restore(&r, path) == TN_OK, "after kill %d: %s", i, tn_error_message());
        ck_assert_int_ge(r.step, last);
        news += r.step > last;
        wait = r.step > last ? (wait > 8000 ? wait / 2 : 6000) : wait < 500000 ? wait * 2 : wait; /* a busy machine */
        last = r.step;
        end(&r);
    }
    printf("kills: %d at random moments of saving a checkpoint, %lld of them left a newer one: each loads\n", kills,
           (long long)news);
    ck_assert_msg(news > 20 || tn_test_slow(), "the children saved too little: %lld of %d left something new",
                  (long long)news, kills);
    r = begin(k, TN_F32); /* the result equals the steps of an uninterrupted run */
    restore(&r, path);
    advance(&reference, k, 0);
    tn_seed(5);
    advance(&reference, k, last);
    ck_assert(same(&reference, &r));
    end(&r), end(&reference);
}

/* ---- failing system calls and allocations ------------------------------------------------------------------------ */

/* At every failing system call, the file is the old one or the new one, and the program's state is unchanged. */
TEST(files_fail)
{
    static const int    codes[] = {EIO, ENOSPC, EINTR, TN_SHORT};
    const tn_case_kind *k = adamw();
    const char         *path = tn_test_file("faults.ckpt");
    training            old = begin(k, TN_F32), now = begin(k, TN_F32);
    advance(&old, k, 3);
    const tn_generator then = *tn_current_generator();
    for (int c = 0; c < 4; c++)
        for (int for_ever = 0; for_ever < 2; for_ever++)
            for (int64_t at = 0, calls = 0; at <= calls; at++) {
                tn_faulty_files_begin();
                *tn_current_generator() = then;
                ck_assert_int_eq(save(&old, path), TN_OK);
                end(&now);
                now = begin(k, TN_F32);
                advance(&now, k, 6);
                tn_fail_file(at, codes[c], for_ever);
                const tn_status s = save(&now, path);
                calls = tn_file_calls();
                tn_fail_file(-1, 0, false);
                ck_assert_msg(s == TN_OK || s == TN_EIO, "%s", tn_error_message());
                tn_clear_error();
                training back = begin(k, TN_F32);
                ck_assert_msg(restore(&back, path) == TN_OK, "call %lld: %s", (long long)at, tn_error_message());
                ck_assert(back.step == 6 ? same(&back, &now) : s != TN_OK && same(&back, &old));
                /* reading is all or nothing, too */
                end(&back);
                back = begin(k, TN_F32);
                advance(&back, k, 1);
                tn_sequential *before = tn_copy(back.net);
                tn_fail_file(at, codes[c], for_ever);
                if (restore(&back, path) != TN_OK) {
                    tn_clear_error();
                    ck_assert(tn_case_same(back.net, before) && tn_steps(back.o) == 1);
                }
                calls = calls > tn_file_calls() ? calls : tn_file_calls();
                tn_fail_file(-1, 0, false);
                tn_free(before);
                end(&back);
                tn_faulty_files_end();
            }
    end(&old), end(&now);
}

/* At every failing allocation of saving and restoring, nothing has changed, and the retry completes. */
TEST_EACH(memory_fails, TN_CASE_KINDS)
{
    const tn_case_kind *k = tn_case_kinds + _i;
    const char         *path = tn_test_file("memory.ckpt");
    tn_faulty_memory_begin();
    tn_faulty_files_begin();
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (int64_t at = 0, calls = 0; at <= calls; at += tn_test_slow() ? 5 : tn_test_whole() ? 1 : 2) {
            const tn_scope scope = tn_scope_begin();
            training       r = begin(k, TN_F32);
            advance(&r, k, 6);
            tn_fail_memory(at, for_ever);
            tn_status s = save(&r, path);
            calls = tn_memory_calls();
            tn_fail_memory(-1, false);
            ck_assert_msg(s == (at < calls ? TN_ENOMEM : TN_OK), "%s", tn_error_message());
            tn_clear_error();
            if (s != TN_OK) ck_assert_int_eq(save(&r, path), TN_OK);
            training back = begin(k, TN_F32);
            advance(&back, k, 2);
            training before = begin(k, TN_F32);
            advance(&before, k, 2);
            const tn_generator g = *tn_current_generator();
            tn_fail_memory(at, for_ever);
            s = restore(&back, path);
            calls = calls > tn_memory_calls() ? calls : tn_memory_calls();
            tn_fail_memory(-1, false);
            if (s != TN_OK) {
                tn_clear_error();
                ck_assert_msg(same(&back, &before), "allocation %lld", (long long)at);
                ck_assert(tn_current_generator()->position == g.position && tn_current_generator()->seed == g.seed);
                ck_assert_int_eq(restore(&back, path), TN_OK);
            }
            ck_assert(same(&back, &r));
            end(&r), end(&back), end(&before);
            tn_scope_end(scope);
        }
    tn_faulty_files_end();
    tn_faulty_memory_end();
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

static struct {
    int64_t at; /* the byte whose bit is flipped; -1: none */
    int     bit;
} damage = {-1, 0};

static int64_t damaged_read(void *user, int fd, void *to, size_t bytes, int64_t at)
{
    const int64_t n = tn_system_io()->pread(user, fd, to, bytes, at);
    if (damage.at >= at && damage.at < at + n)
        ((unsigned char *)to)[damage.at - at] ^= (unsigned char)(1 << damage.bit);
    return n;
}

/* Flips every bit of the header, and 10,000 bits of the data: detected, or without effect. */
TEST(bits_rot)
{
    const tn_case_kind *k = adamw();
    const char         *path = tn_test_file("rot.ckpt");
    training            r = begin(k, TN_F32), back = begin(k, TN_F32);
    tn_generator        chance = {.seed = 9};
    advance(&r, k, 6);
    ck_assert_int_eq(save(&r, path), TN_OK);
    const tn_tensor *bytes = tn_file_read(path, 1 << 20);
    const int64_t    size = tn_numel(bytes), header = 8 + tn_get_i64(bytes, 0) + 256 * tn_get_i64(bytes, 1);
    int64_t          found = 0, harmless = 0;
    ck_assert(header > 1000 && header < size);
    tn_io io = *tn_system_io();
    io.pread = damaged_read;
    ck_assert_int_eq(tn_set_io(&io), TN_OK);
    for (int64_t i = 0; i < header * 8 + 10000; i += tn_test_slow() ? 29 : 1) {
        const bool in_header = i < header * 8;
        damage.at = in_header ? i / 8 : header + tn_random_below(&chance, size - header);
        damage.bit = in_header ? (int)(i % 8) : (int)tn_random_below(&chance, 8);
        const tn_scope s = tn_scope_begin();
        if (restore(&back, path) != TN_OK) {
            ck_assert_msg(tn_error() == TN_EFORMAT || tn_error() == TN_EUNSUPPORTED || tn_error() == TN_EINDEX,
                          "byte %lld, bit %d: %s: %s", (long long)damage.at, damage.bit, tn_status_name(tn_error()),
                          tn_error_message());
            tn_clear_error();
            found++;
        } else {
            ck_assert_msg(in_header && same(&r, &back), "byte %lld, bit %d was not found", (long long)damage.at,
                          damage.bit);
            harmless++;
        }
        tn_scope_end(s);
    }
    damage.at = -1;
    ck_assert_int_eq(tn_set_io(NULL), TN_OK);
    printf("bit rot: %lld flips in a checkpoint, all of the header and 10000 of the data: %lld found, %lld harmless\n",
           (long long)(found + harmless), (long long)found, (long long)harmless);
    ck_assert_msg(harmless <= 64, "%lld flips did nothing, %lld were found", (long long)harmless,
                  (long long)found); /* in "format": "pt" */
    end(&r), end(&back);
}

/* ---- checkpoints that do not fit --------------------------------------------------------------------------------- */

static void refused(tn_checkpoint_restore_args c, tn_status code, const char *says)
{
    char text[1100];
    ck_assert_int_ne(tn_checkpoint_restore_run(c), TN_OK);
    snprintf(text, sizeof text, says, tn_test_file("fits.ckpt"));
    ck_error(code, text);
}

static tn_sequential *mlp(int dim, bool bias, tn_dtype dt)
{
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 3, .out = dim, .no_bias = !bias, .dtype = dt));
    tn_append(net, tn_linear_new(.in = 4, .out = 2, .dtype = dt));
    return net;
}

static void train_once(tn_sequential *net, tn_optimizer *o)
{
    const tn_scope s = tn_scope_begin();
    tn_backward(tn_sum(tn_call(net, tn_normal(TN_SHAPE(2, 3), 0, 1))));
    tn_step(o);
    tn_scope_end(s);
}

TEST(what_does_not_fit)
{
    const char    *path = tn_test_file("fits.ckpt");
    tn_sequential *net = mlp(4, true, TN_F32), *wide = mlp(5, true, TN_F32), *bare = mlp(4, false, TN_F32),
                  *f64 = mlp(4, true, TN_F64);
    tn_optimizer *o = tn_adamw_new(net, .lr = 0.1), *p;
    tn_cosine_lr_new(o, .steps = 100);
    train_once(net, o);
    ck_assert_int_eq(tn_checkpoint_save(path, .module = net, .optimizer = o), TN_OK);
    tn_sequential      *before = tn_copy(net);
    tn_checkpoint_file *f = tn_checkpoint_open(path);

    refused((tn_checkpoint_restore_args){.file = f, .module = wide}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another model: 2 of another shape or dtype: 0.weight is [5, 3], the "
            "file has [4, 3]");
    refused((tn_checkpoint_restore_args){.file = f, .module = bare}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another model: 1 unexpected (0.bias)");
    refused((tn_checkpoint_restore_args){.file = f, .module = f64}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another model: 4 of another shape or dtype: 0.weight is f64, the file "
            "has F32");
    tn_append(net, tn_linear_new(.in = 2, .out = 1));
    refused((tn_checkpoint_restore_args){.file = f, .module = net}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another model: 2 names missing (2.weight, …)");
    p = tn_adamw_new(net, .lr = 0.1);
    tn_cosine_lr_new(p, .steps = 100);
    refused((tn_checkpoint_restore_args){.file = f, .optimizer = p}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another optimizer: 2 names missing (2.weight, …)");
    tn_optimizer_free(p);
    p = tn_adamw_new(bare, .lr = 0.1);
    tn_cosine_lr_new(p, .steps = 100);
    refused((tn_checkpoint_restore_args){.file = f, .optimizer = p}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another optimizer: 1 unexpected (0.bias)");
    tn_optimizer_free(p);

    p = tn_sgd_new(before);
    refused((tn_checkpoint_restore_args){.file = f, .module = before, .optimizer = p}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' was saved with AdamW, but this optimizer is SGD");
    tn_optimizer_free(p);
    p = tn_adamw_new(before, .amsgrad = true);
    refused((tn_checkpoint_restore_args){.file = f, .optimizer = p}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another optimizer: 2 that differ: amsgrad is true, in the file false");
    tn_optimizer_free(p);
    p = tn_adamw_new(before);
    tn_no_decay(p);
    tn_cosine_lr_new(p, .steps = 100);
    refused((tn_checkpoint_restore_args){.file = f, .optimizer = p}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another optimizer: 3 that differ: "
            "'0.bias' is in group 1, in the file in group 0");
    tn_optimizer_free(p);

    /* different schedules are rejected, unless this program's options are kept */
    p = tn_adamw_new(before, .lr = 0.2);
    tn_schedule *s = tn_cosine_lr_new(p, .steps = 200);
    refused((tn_checkpoint_restore_args){.file = f, .optimizer = p}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another optimizer: 1 that differ: "
            "schedule 0 (cosine) has steps 200, the file has 100");
    ck_assert(tn_steps(p) == 0 && tn_lr(p, 0) == 0.2);
    ck_assert_int_eq(tn_checkpoint_restore(f, .optimizer = p, .keep_options = true), TN_OK);
    ck_assert(tn_steps(p) == 1 && tn_lr(p, 0) == tn_schedule_lr(s, tn_schedule_now(s), 0) &&
              tn_option(p, 0, TN_OPT_BASE_LR) == 0.2);
    tn_schedule_free(s);
    tn_linear_lr_new(p);
    refused((tn_checkpoint_restore_args){.file = f, .optimizer = p}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another optimizer: 1 that differ: "
            "schedule 0 is linear, the file has cosine");
    tn_optimizer_free(p);

    p = tn_adamw_new(before, .lazy = true);
    tn_cosine_lr_new(p, .steps = 100);
    refused((tn_checkpoint_restore_args){.file = f, .optimizer = p}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' holds another optimizer: 1 that differ: lazy is true, in the file false");
    tn_optimizer_free(p);

    tn_ema *e = tn_ema_new(before);
    refused((tn_checkpoint_restore_args){.file = f, .ema = e}, TN_EFORMAT,
            "tn_checkpoint_restore: '%s' was saved without averages (.ema)");
    tn_ema_swap(e);
    ck_assert_int_ne(tn_checkpoint_save(path, .ema = e), TN_OK);
    ck_error(TN_ESTATE, "tn_checkpoint_save: the averages are swapped with the weights; call tn_ema_swap first");
    tn_ema_free(e);
    refused((tn_checkpoint_restore_args){.file = f,
                                         .module = before,
                                         .generators = (tn_generator *[]){tn_current_generator()},
                                         .generator_count = 1},
            TN_EFORMAT,
            "tn_checkpoint_restore: '%s' has 0 random generators in addition to the current one, but "
            ".generator_count is 1");
    refused((tn_checkpoint_restore_args){.file = f}, TN_EINVAL,
            "tn_checkpoint_restore: nothing to restore; set .module, .optimizer or .ema");
    refused((tn_checkpoint_restore_args){.module = before}, TN_EINVAL, "tn_checkpoint_restore: the file is NULL");
    ck_assert_int_eq(tn_checkpoint_restore(f, .module = before), TN_OK);
    tn_checkpoint_close(f);
    tn_optimizer_free(o);
    tn_free(net), tn_free(wide), tn_free(bare), tn_free(f64), tn_free(before);
}

TEST(what_cannot_be_saved)
{
    const char    *path = tn_test_file("never.ckpt");
    tn_sequential *net = mlp(4, true, TN_F32);
    tn_optimizer  *o = tn_sgd_new(net);
#define FAILS(code, text, ...)                                    \
    do {                                                          \
        ck_assert_int_ne(tn_checkpoint_save(__VA_ARGS__), TN_OK); \
        ck_error(code, text);                                     \
        ck_assert_int_ne(access(path, F_OK), 0);                  \
    } while (0)
    FAILS(TN_EINVAL, "tn_checkpoint_save: the path is NULL", NULL, .module = net);
    FAILS(TN_EINVAL, "tn_checkpoint_save: .step is -5, but must not be negative", path, .module = net, .step = -5);
    FAILS(TN_EINVAL, "tn_checkpoint_save: nothing to save; set .module, .optimizer, .ema or .tensors", path);
    FAILS(TN_EFORMAT,
          "tn_checkpoint_save: .config: tn_json_parse: line 1, column 1 (byte 0): found 'n', expected a value", path,
          .module = net, .config = "no");
    FAILS(TN_EINVAL, "tn_checkpoint_save: .tensors[0] has no tensor", path, .tensors = &(tn_named){.name = "x"},
          .tensor_count = 1);
    FAILS(TN_EINVAL, "tn_checkpoint_save: .tensor_count is 1, but .tensors is NULL", path, .tensor_count = 1);
    FAILS(TN_EINVAL, "tn_checkpoint_save: .generator_count is 1, but .generators is NULL", path, .module = net,
          .generator_count = 1);
    FAILS(TN_EINVAL, "tn_checkpoint_save: .tensor_count is 0, but .tensors is set", path, .module = net,
          .tensors = &(tn_named){.name = "x", .tensor = tn_zeros(TN_SHAPE(1))});
    FAILS(TN_EINVAL, "tn_checkpoint_save: .generator_count is 0, but .generators is set", path, .module = net,
          .generators = (tn_generator *[]){tn_current_generator()});
    const tn_scope s = tn_scope_begin();
    tn_backward(tn_sum(tn_call(net, tn_ones(TN_SHAPE(2, 3)))));
    tn_scope_end(s);
    FAILS(TN_ESTATE,
          "tn_checkpoint_save: '0.weight' has a gradient that no step has used, and gradients are not saved; save "
          "after tn_step, or delete them with tn_zero_grads",
          path, .module = net);
    tn_zero_grads(net);
    tn_accumulate(o, 2);
    tn_step(o);
    FAILS(TN_ESTATE, "tn_checkpoint_save: 1 of 2 parts (tn_accumulate) wait for the update; save after it", path,
          .optimizer = o);
    tn_optimizer_free(o);
    tn_free(net);
}

TEST(what_is_no_checkpoint)
{
    const char *path = tn_test_file("fits.ckpt");
    ck_refused(tn_checkpoint_open(NULL), TN_EINVAL, "tn_safetensors_open: the path is NULL");
    tn_safetensors_writer *w = tn_safetensors_writer_new();
    tn_safetensors_put(w, "a", tn_ones(TN_SHAPE(2)));
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    ck_refused_has(tn_checkpoint_open(path), TN_EFORMAT,
                   "is a safetensors file, but not a training checkpoint: it lacks 'tenon.checkpoint' in "
                   "its metadata");
    tn_safetensors_note(w, "tenon.checkpoint", "{\"schema\": 1}");
    tn_safetensors_note(w, "tenon.checkpoint.crc32", "00000000");
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    ck_assert_ptr_null(tn_checkpoint_open(path));
    const char *said = tn_error_message();
    char        crc[9] = "";
    ck_assert(sscanf(strstr(said, "record is ") ? strstr(said, "record is ") : "", "record is %8[0-9a-f]", crc) == 1);
    tn_clear_error();
    tn_safetensors_note(w, "tenon.checkpoint.crc32", crc);
    ck_assert_int_eq(tn_safetensors_save(w, path), TN_OK);
    ck_assert_ptr_null(tn_checkpoint_open(path)); /* no step */
    ck_assert_int_ne(tn_error(), TN_OK);
    tn_clear_error();
    tn_safetensors_writer_free(w);
}

/* The number of updates of a mean tells when it started, that of other averages is their count. */
TEST(means_are_no_other_averages)
{
    const char    *path = tn_test_file("fits.ckpt");
    tn_sequential *net = mlp(4, true, TN_F32);
    for (int mean = 0; mean < 2; mean++) {
        tn_ema *e = tn_ema_new(net, .mean = mean), *alike = tn_ema_new(net, .mean = mean),
               *other = tn_ema_new(net, .mean = !mean);
        if (mean) tn_ema_start(e);
        for (int i = 0; i < 5; i++) tn_ema_update(e);
        ck_assert_int_eq(tn_checkpoint_save(path, .ema = e), TN_OK);
        tn_checkpoint_file *f = tn_checkpoint_open(path);
        refused((tn_checkpoint_restore_args){.file = f, .ema = other}, TN_EFORMAT,
                mean ? "tn_checkpoint_restore: '%s' was saved with averages with .mean, but these are without"
                     : "tn_checkpoint_restore: '%s' was saved with averages without .mean, but these are with it");
        ck_assert(tn_ema_started(other) == (mean == 1));
        ck_assert_int_eq(tn_checkpoint_restore(f, .ema = alike), TN_OK);
        ck_assert(tn_ema_started(alike));
        tn_checkpoint_close(f);
        tn_ema_free(e), tn_ema_free(alike), tn_ema_free(other);
    }
    tn_free(net);
}

/* Options of averages are restored like those of an optimizer's groups, unless this program's are kept. */
TEST(averages_have_their_options)
{
    const char    *path = tn_test_file("options.ckpt");
    tn_sequential *net = mlp(4, true, TN_F64);
    tn_tensor     *w = tn_find_tensor(net, "0.weight");
    tn_ema        *e[] = {tn_ema_new(net, .decay = 0.5), NULL};
    ck_assert_int_eq(tn_checkpoint_save(path, .ema = e[0]), TN_OK);
    tn_checkpoint_file *f = tn_checkpoint_open(path);
    const tn_scope      s = tn_no_grad_begin();
    for (int keep = 0; keep < 2; keep++) {
        const double was = tn_get(w, 0);
        e[1] = tn_ema_new(net, .decay = 0.75, .warmup = true); /* the warmup makes the first decay 0.1 */
        ck_assert_int_eq(tn_checkpoint_restore(f, .ema = e[1], .keep_options = keep), TN_OK);
        tn_set(w, 0, was + 1), tn_ema_update(e[1]), tn_ema_swap(e[1]);
        ck_assert_double_eq_tol(tn_get(w, 0), was + (keep ? 0.9 : 0.5), 1e-12);
        tn_set(w, 0, was), tn_ema_free(e[1]);
    }
    tn_scope_end(s), tn_checkpoint_close(f), tn_ema_free(e[0]), tn_free(net);
}

/* ---- other contents ---------------------------------------------------------------------------------------------- */

TEST(everything_comes_back)
{
    const char    *path = tn_test_file("all.ckpt");
    tn_sequential *net = mlp(4, true, TN_F32), *other = mlp(4, true, TN_F32);
    tn_tensor     *order = tn_permutation(7), *digits = tn_from_data(TN_U8, TN_SHAPE(9), "123456789");
    const tn_named own[] = {
        {"order", order}, {"digits", digits}, {"turned", tn_transpose(tn_uniform(TN_SHAPE(2, 3), 0, 1), 0, 1)}};
    tn_seed(40);
    tn_random_u32(NULL);
    ck_assert_int_eq(tn_checkpoint_save(path, .module = net, .step = 123, .config = "{\"dim\": [4, 2]}",
                                        .data = "[1.5, \"x\"]", .tensors = own, .tensor_count = 3),
                     TN_OK);
    tn_seed(0);
    tn_checkpoint_file *f = tn_checkpoint_open(path);
    ck_assert_msg(f && tn_checkpoint_verify(f) == TN_OK, "%s", tn_error_message());
    ck_assert_int_eq(tn_checkpoint_step(f), 123);
    ck_assert_int_eq(tn_json_i64(tn_json_at(tn_json_get(tn_checkpoint_config(f), "dim"), 1)), 2);
    ck_assert_double_eq(tn_json_double(tn_json_at(tn_checkpoint_data(f), 0)), 1.5);
    for (int i = 0; i < 3; i++) ck_assert(tn_same_bits(tn_checkpoint_tensor(f, own[i].name), own[i].tensor));
    ck_assert_int_eq(tn_checkpoint_restore(f, .module = other, .keep_generator = true), TN_OK);
    ck_assert(tn_case_same(net, other) && tn_current_generator()->seed == 0);
    ck_assert_int_eq(tn_checkpoint_restore(f, .module = other), TN_OK);
    ck_assert(tn_current_generator()->seed == 40 && tn_current_generator()->position == 1);
    ck_assert_ptr_null(tn_checkpoint_tensor(f, "none"));
    char text[600];
    snprintf(text, sizeof text, "tn_checkpoint_tensor: '%s' has no tensor 'none' of .tensors", path);
    ck_error(TN_EINDEX, text);
    tn_checkpoint_close(f);

    /* readable by other programs: the weights as a state dict, checksums as in zlib */
    tn_zero_grads(net);
    tn_sequential *third = mlp(4, true, TN_F32);
    ck_assert_int_eq(tn_load(third, path, .prefix = "model."), TN_OK);
    ck_assert(tn_case_same(net, third));
    tn_safetensors *raw = tn_safetensors_open(path);
    const char     *record = tn_safetensors_metadata(raw, "tenon.checkpoint");
    ck_assert_msg(record && strstr(record, "\"data.digits\":\"cbf43926\""), "%s", record ? record : "");
    ck_assert_str_eq(tn_safetensors_metadata(raw, "format"), "pt");
    tn_safetensors_close(raw);

    /* readers of NULL, and while an error is set */
    ck_assert(tn_checkpoint_step(NULL) == 0 && !tn_checkpoint_data(NULL) && !tn_checkpoint_config(NULL));
    tn_checkpoint_close(NULL);
    ck_assert_int_eq(tn_checkpoint_verify(NULL), TN_EINVAL);
    ck_assert_ptr_null(tn_checkpoint_open(path));
    ck_assert_int_ne(tn_checkpoint_save(path, .module = net), TN_OK);
    ck_error(TN_EINVAL, "tn_checkpoint_verify: the file is NULL");
    tn_free(net), tn_free(other), tn_free(third);
}

/* test_profile.c — profiles: what is counted under which name; that no time is counted twice; the trace; misuse; and
 * that a profile that is out of memory harms only itself. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* setenv, clock_gettime */
#endif
#include "optim/optim.h"
#include "tests/common/check_main.h"
#include "tests/common/faults.h"

#include <pthread.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The row of that module and name; a row of 0 calls if not found. */
static tn_profile_row row_of(const tn_profile *p, const char *module, const char *name)
{
    tn_profile_row r;
    for (int64_t i = 0; tn_profile_row_at(p, i, &r); i++)
        if (!strcmp(r.module, module) && !strcmp(r.name, name)) return r;
    return r;
}

static double total(const tn_profile *p)
{
    double         sum = 0;
    tn_profile_row r;
    for (int64_t i = 0; tn_profile_row_at(p, i, &r); i++) sum += r.seconds + r.backward_seconds;
    return sum;
}

typedef struct {
    tn_module  base;
    tn_linear *up, *down;
} net;

static tn_tensor *net_forward(net *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    return tn_leave(f, tn_call(m->down, tn_relu(tn_call(m->up, x))));
}
TN_FORWARD(net);

static net *net_new(void)
{
    net *m = tn_module_new(net);
    if (!m) return NULL;
    m->up = tn_child(m, "up", tn_linear_new(.in = 3, .out = 5));
    m->down = tn_child(m, "down", tn_linear_new(.in = 5, .out = 2));
    return tn_built(m);
}

static void steps(net *m, tn_optimizer *opt, int n)
{
    for (int i = 0; i < n; i++) {
        tn_scope s = tn_scope_begin();
        tn_backward(tn_sum(tn_call(m, tn_ones(TN_SHAPE(4, 3)))));
        if (opt) tn_step(opt);
        tn_scope_end(s);
    }
}

TEST(rows_are_by_module_and_op)
{
    net          *m = net_new();
    tn_optimizer *opt = tn_adamw_new(m);
    steps(m, opt, 1); /* not timed */
    const double start = now();
    tn_profile  *p = tn_profile_begin();
    steps(m, opt, 3);
    tn_profile_end(p);
    const double took = now() - start;
    steps(m, opt, 1); /* also not timed */

    tn_profile_row up = row_of(p, "up", "linear"), relu = row_of(p, "", "relu"), step = row_of(p, "", "tn_step");
    tn_profile_row down = row_of(p, "down", "linear"), back = row_of(p, "", "tn_backward");
    ck_assert(up.calls == 3 && up.backward_calls == 3 && !up.span);
    ck_assert(down.calls == 3 && down.backward_calls == 3);
    ck_assert(relu.calls == 3 && relu.backward_calls == 3);
    ck_assert(step.calls == 3 && step.backward_calls == 0 && step.span);
    ck_assert(back.calls == 3 && back.span);
    ck_assert(row_of(p, "", "sum").calls == 3);
    ck_assert(up.seconds > 0 && up.backward_seconds > 0 && back.seconds > 0);
    ck_assert_double_le(total(p), took);
    tn_profile_free(p);
    tn_optimizer_free(opt);
    tn_free(m);
}

/* attention is made of other ops: its forward includes them, its backward is counted as theirs. */
TEST(an_op_counts_whole)
{
    tn_tensor   *q = tn_requires_grad(tn_uniform(TN_SHAPE(2, 3, 4), -1, 1)), *w = NULL;
    const double start = now();
    tn_profile  *p = tn_profile_begin();
    tn_path_push("heads");
    tn_tensor *y = tn_attention(q, q, q, .weights = &w);
    tn_path_pop();
    tn_backward(tn_sum(tn_mul(y, y)));
    tn_profile_end(p);
    ck_assert_double_le(total(p), now() - start);
    ck_assert_int_eq(row_of(p, "heads", "attention").calls, 1);
    tn_profile_row r;
    int            forward = 0, backward = 0;
    for (int64_t i = 0; tn_profile_row_at(p, i, &r); i++)
        if (!strcmp(r.module, "heads")) forward += (int)r.calls, backward += (int)r.backward_calls;
    ck_assert_int_eq(forward, 1);
    ck_assert_int_ge(backward, 1);
    tn_profile_free(p);
}

static void spin(double seconds)
{
    for (double end = now() + seconds; now() < end;) {}
}

TEST(a_span_counts_without_what_is_inside)
{
    const double start = now();
    tn_profile  *p = tn_profile_begin();
    tn_span_begin("outer");
    tn_span_begin("inner");
    spin(0.01);
    tn_span_end();
    tn_exp(tn_ones(TN_SHAPE(100)));
    tn_span_end();
    tn_span_end(); /* one too many */
    tn_profile_end(p);
    ck_assert_double_ge(row_of(p, "", "inner").seconds, 0.01);
    ck_assert_int_eq(row_of(p, "", "outer").calls, 1);
    ck_assert_int_eq(row_of(p, "", "exp").calls, 1);
    ck_assert_double_le(total(p), now() - start); /* twice the inner one would be too much */
    tn_profile_free(p);
}

/* Spans deeper than the limit: only names are lost. */
TEST(spans_may_be_deep)
{
    tn_profile *p = tn_profile_begin();
    for (int i = 0; i < 200; i++) tn_span_begin("deep");
    tn_exp(tn_ones(TN_SHAPE(2)));
    for (int i = 0; i < 200; i++) tn_span_end();
    tn_exp(tn_ones(TN_SHAPE(2)));
    ck_assert_int_eq(row_of(p, "", "deep").calls, 64);
    ck_assert_int_eq(row_of(p, "", "exp").calls, 1);
    tn_profile_free(p); /* also ends it */
    ck_assert_ptr_null(tn_profile_from_env());
}

TEST(many_names)
{
    char        name[32];
    tn_profile *p = tn_profile_begin();
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 1000; i++) {
            snprintf(name, sizeof name, "span %d", i);
            tn_span_begin(name);
            tn_span_end();
        }
    tn_profile_end(p);
    for (int i = 0; i < 1000; i++) {
        tn_profile_row r;
        snprintf(name, sizeof name, "span %d", i);
        ck_assert(tn_profile_row_at(p, i, &r) && !strcmp(r.name, name) && r.calls == 2);
    }
    tn_profile_row none;
    ck_assert(!tn_profile_row_at(p, 1000, &none));
    tn_profile_free(p);
}

static int count(const tn_json *events, const char *name, const char *kind)
{
    int n = 0;
    for (const tn_json *e = tn_json_first(events); e; e = tn_json_next(e))
        n += !strcmp(tn_json_string(tn_json_get(e, "name")), name) &&
             !strcmp(tn_json_string(tn_json_get(e, "cat")), kind);
    return n;
}

TEST(the_trace_is_json)
{
    net        *m = net_new();
    tn_profile *p = tn_profile_begin();
    steps(m, NULL, 2);
    tn_span_begin("odd \"name\"\n\\");
    tn_span_end();
    tn_profile_end(p);
    const char *path = tn_test_file("trace.json");
    ck_assert_int_eq(tn_profile_trace(p, path), TN_OK);
    tn_json       *j = tn_json_load(path);
    const tn_json *events = tn_json_get(j, "traceEvents");
    ck_assert_int_eq(count(events, "linear", "forward"), 4);
    ck_assert_int_eq(count(events, "linear", "backward"), 4);
    ck_assert_int_eq(count(events, "tn_backward", "span"), 2);
    ck_assert_int_eq(count(events, "odd \"name\"\n\\", "span"), 1);
    ck_assert_int_eq(tn_json_i64(tn_json_get(j, "lostEvents")), 0);
    for (const tn_json *e = tn_json_first(events); e; e = tn_json_next(e)) {
        ck_assert_str_eq(tn_json_string(tn_json_get(e, "ph")), "X");
        ck_assert(tn_json_double(tn_json_get(e, "ts")) >= 0 && tn_json_double(tn_json_get(e, "dur")) >= 0);
        ck_assert_ptr_nonnull(tn_json_string(tn_json_get(tn_json_get(e, "args"), "module")));
    }
    tn_json_free(j);
    ck_assert_int_eq(tn_profile_trace(p, NULL), TN_EINVAL);
    tn_clear_error();
    tn_profile_free(p);
    tn_free(m);
}

static bool holds(FILE *f, const char *words)
{
    char line[512];
    rewind(f);
    while (fgets(line, sizeof line, f))
        if (strstr(line, words)) return true;
    return false;
}

TEST(the_environment_asks)
{
    net        *m = net_new();
    FILE       *f = tmpfile();
    const char *path = tn_test_file("from_env.json");
    unsetenv("TENON_PROFILE");
    ck_assert_ptr_null(tn_profile_from_env());
    setenv("TENON_PROFILE", "0", 1);
    ck_assert_ptr_null(tn_profile_from_env());
    ck_assert_int_eq(tn_profile_close(NULL, f), TN_OK);
    ck_assert_int_eq(ftell(f), 0);
    setenv("TENON_PROFILE", path, 1);
    tn_profile *p = tn_profile_from_env();
    unsetenv("TENON_PROFILE");
    ck_assert_ptr_nonnull(p);
    steps(m, NULL, 1);
    ck_assert_int_eq(tn_profile_close(p, f), TN_OK);
    ck_assert(holds(f, "  up  linear") && holds(f, "  -  relu") && holds(f, "  linear\n") && holds(f, "  down\n"));
    tn_json *j = tn_json_load(path);
    ck_assert_int_gt(tn_json_count(tn_json_get(j, "traceEvents")), 0);
    tn_json_free(j);
    fclose(f);
    tn_free(m);
}

/* An op counts its inputs and results once, in the backward the gradients and what it saved, too; views move nothing,
 * and what broadcasting repeats counts once. "bytes" orders the table by them. */
TEST(bytes_are_counted)
{
    char line[512];
    setenv("TENON_PROFILE", "bytes", 1);
    tn_profile *p = tn_profile_from_env();
    unsetenv("TENON_PROFILE");
    FILE      *f = tmpfile();
    tn_tensor *a = tn_requires_grad(tn_ones(TN_SHAPE(10, 20))), *b = tn_ones(TN_SHAPE(20));
    tn_backward(tn_sum(tn_mul(tn_transpose(a, 0, 1), tn_unsqueeze(b, 1))));
    const tn_profile_row mul = row_of(p, "", "mul"), sum = row_of(p, "", "sum");
    ck_assert_int_eq(mul.bytes, 4 * (200 + 20 + 200));
    ck_assert_int_eq(sum.bytes, 4 * (200 + 1));
    ck_assert_int_ge(mul.backward_bytes, 4 * (1 + 20 + 200)); /* the gradient of sum may be one value */
    ck_assert_int_le(mul.backward_bytes, 4 * (200 + 200 + 20 + 200));
    ck_assert_int_eq(row_of(p, "", "transpose").bytes + row_of(p, "", "unsqueeze").bytes, 0);
    for (int i = 0; i < 10; i++) tn_neg(tn_ones(TN_SHAPE(300, 400))); /* moves more than all of the above */
    ck_assert_int_eq(tn_profile_close(p, f), TN_OK);
    rewind(f);
    for (int i = 0; i < 5; i++) ck_assert_ptr_nonnull(fgets(line, sizeof line, f)); /* the first row */
    ck_assert_msg(strstr(line, "  neg\n") != NULL, "%s", line);
    ck_assert_msg(strstr(line, "        9 ") != NULL, "%s", line); /* 9.6 MB */
    fclose(f);
}

static void *elsewhere(void *p)
{
    tn_profile_end(p);
    const bool refused = tn_error() == TN_ESTATE;
    tn_clear_error();
    tn_profile_free(p); /* does nothing: it is still open */
    tn_clear_error();
    tn_scope s = tn_scope_begin();
    tn_exp(tn_ones(TN_SHAPE(2))); /* not timed: the profile is the other thread's */
    tn_scope_end(s);
    return refused ? p : NULL;
}

TEST(misuse)
{
    tn_profile *p = tn_profile_begin();
    ck_assert_ptr_null(tn_profile_begin());
    ck_assert_str_eq(tn_error_message(), "tn_profile_begin: a profile of this thread is already open; end it first");
    tn_clear_error();
    tn_profile_end(NULL);
    tn_profile_free(NULL);
    tn_profile_table(NULL, p);
    tn_profile_table(stdout, NULL);
    tn_profile_end(p);
    tn_profile_end(p);
    tn_profile_free(p);
    tn_span_begin("none is open");
    tn_span_end();
    tn_raise(TN_EINVAL, "first");
    ck_assert_ptr_null(tn_profile_begin());
    tn_clear_error();
}

TEST(another_thread)
{
    pthread_t   t;
    void       *refused;
    tn_profile *p = tn_profile_begin();
    ck_assert_int_eq(pthread_create(&t, NULL, elsewhere, p), 0);
    pthread_join(t, &refused);
    ck_assert_ptr_eq(refused, p);
    ck_assert_int_eq(row_of(p, "", "exp").calls, 0);
    tn_profile_free(p);
}

/* Each call of the allocator fails once: then a step works or reports that memory is out, and the profile is freed. */
BARE_TEST(without_memory)
{
    tn_faulty_memory_begin();
    int64_t reached = 0;
    for (int64_t k = 0, calls = 1; k < calls; k++) {
        tn_scope    s = tn_scope_begin();
        tn_tensor  *x = tn_requires_grad(tn_ones(TN_SHAPE(3)));
        tn_profile *p = tn_profile_begin();
        tn_fail_memory(k, false);
        tn_path_push("part");
        tn_tensor *y = tn_sum(tn_exp(tn_mul(x, x)));
        tn_path_pop();
        const bool worked = tn_backward(y) == TN_OK;
        reached = calls = tn_memory_calls();
        tn_fail_memory(-1, false);
        ck_assert(worked || tn_error() == TN_ENOMEM);
        tn_clear_error();
        if (worked) ck_assert_double_eq_tol(tn_get(tn_grad(x), 1), 2 * 2.718281828, 1e-5);
        tn_profile_free(p);
        tn_scope_end(s);
        tn_trim();
    }
    ck_assert_int_gt(reached, 10);
    tn_faulty_memory_end();
}

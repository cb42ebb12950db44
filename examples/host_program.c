/* host_program.c — Tenon inside a program of your own: threads with their own seeds, errors and memory limits, a small
 * stack, and fork.
 * Build: cc -O2 host_program.c -o host_program $(pkg-config --cflags --libs tenon) -pthread */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <tenon/tenon.h>
#include <unistd.h>

/* ---- the tensors of a thread ------------------------------------------------------------------------------------- */

static double train(void)
{
    const tn_scope s = tn_scope_begin();
    tn_linear     *layer = tn_linear_new(.in = 16, .out = 16);
    tn_optimizer  *opt = tn_adamw_new(layer, .lr = 1e-2);
    tn_tensor     *x = tn_normal(TN_SHAPE(64, 16), 0, 1);
    double         loss = 0;
    for (int step = 0; step < 10 && !tn_error(); step++) {
        const tn_scope one = tn_scope_begin();
        tn_tensor     *l = tn_mse_loss(tn_call(layer, x), tn_sin(x));
        loss = tn_item(l);
        tn_backward(l);
        tn_step(opt);
        tn_scope_end(one);
    }
    tn_optimizer_free(opt);
    tn_free(layer);
    tn_scope_end(s);
    return loss;
}

/* ---- threads and seeds ------------------------------------------------------------------------------------------- */

enum { THREADS = 8 };

typedef struct {
    int    index;
    double loss;
} job;

static void *run_job(void *arg)
{
    job *j = arg;
    tn_set_threads(1);
    tn_seed(100 + (uint64_t)j->index);
    j->loss = train();
    if (tn_error()) fprintf(stderr, "thread %d: %s\n", j->index, tn_error_message());
    return NULL;
}

static void run_jobs(job j[THREADS])
{
    pthread_t      thread[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 96 * 1024);
    for (int i = 0; i < THREADS; i++) j[i].index = i;
    for (int i = 0; i < THREADS; i++) pthread_create(&thread[i], &small, run_job, &j[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
    pthread_attr_destroy(&small);
}

/* ---- memory limits ----------------------------------------------------------------------------------------------- */

static int failures_within_limits(void)
{
    int failed = 0;
    for (size_t limit = 1; limit <= 20; limit++) {
        tn_set_memory_limit(limit << 14);
        train();
        failed += tn_error() == TN_ENOMEM;
        tn_clear_error();
    }
    tn_set_memory_limit(0);
    train();
    return tn_error() == TN_OK ? failed : -1;
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static int works_in_a_child(void)
{
    train();
    const pid_t child = fork();
    if (child == 0) _exit(train() > 0 && !tn_error() ? 0 : 1);
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    job first[THREADS] = {0}, again[THREADS] = {0};
    run_jobs(first);
    run_jobs(again);
    int same = 0, equal = 0;
    for (int i = 0; i < THREADS; i++) same += first[i].loss == again[i].loss;
    for (int i = 1; i < THREADS; i++) equal += first[i].loss == first[0].loss;
    printf("threads with the loss of the first run: %d of %d\n", same, THREADS);
    printf("threads with the loss of thread 0: %d\n", equal);
    const int failed = failures_within_limits();
    printf("some memory limits are too small: %s\n", failed > 0 && failed < 20 ? "yes" : "no");
    printf("trained in a child process: %s\n", works_in_a_child() ? "yes" : "no");
    return 0;
}

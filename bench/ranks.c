/* ranks.c — bench ranks: trains a workload with several processes under MPI, one thread each; one rank runs without
 * MPI. Prints one line of JSON, in which `weights` is the same for any number of ranks. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* setenv, getrusage */
#endif
#include "bench/bench.h"
#include "programs/common/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef BENCH_MPI
#define BENCH_WORLD tn_world_mpi
#else
#define BENCH_WORLD NULL
#endif
enum { SHARDS = 12, MOST_RANKS = 12 };

/* The batch sizes are multiples of the number of shards, so that all shards have the same number of rows. */
static const struct {
    const char     *name;
    bench_workload *run;
    int64_t         batch;
} jobs[] = {{"bert", bench_bert, 24},
            {"gpt", bench_gpt, 12},
            {"seq2seq", bench_seq2seq, 72},
            {"lstm", bench_lstm, 36},
            {"reduce", bench_reduce, 1}};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* ---- one rank ---------------------------------------------------------------------------------------------------- */

static int step(const bench_options *o, const bench_job *j, tn_replica *r, tn_optimizer *opt)
{
    const tn_scope s = tn_scope_begin();
    for (tn_part p = {0}; tn_replica_next(r, &p);) {
        tn_batch b = {0};
        double   weight = 0;
        tn_batch_cut(&b, p.shard, j->batch);
        if (!b.rows) continue;
        const tn_scope narrow = tn_autocast_begin(o->dtype == TN_BF16);
        tn_tensor     *l = tn_scope_return(narrow, j->part(j->job, b.first, b.rows, &weight));
        if (weight > 0) tn_replica_backward(r, l, weight);
    }
    tn_replica_step(r, opt);
    tn_scope_end(s);
    return tn_error() != TN_OK;
}

static tn_replica *replica_of(const bench_options *o, const bench_job *j, bool overlap)
{
    tn_world_simulate_network(o->world, o->delay_us * 1e-6, o->delay_mb * 1e6);
    return tn_replica_create((tn_replica_config){.world = o->world,
                                                 .module = j->module,
                                                 .shards = o->shards ? o->shards : SHARDS,
                                                 .bucket = 2 << 20,
                                                 .zero = o->zero,
                                                 .fast = o->fast,
                                                 .sparse = o->sparse,
                                                 .overlap = overlap});
}

/* The minimum time of the last exchange over the ranks, which is that of the rank that came last: the others' times
 * include their waiting for it. */
static double least_wait(tn_world *w, const tn_replica *r)
{
    double all[MOST_RANKS] = {0}, least = INFINITY;
    tn_world_gather(w, tn_replica_seconds(r), all);
    for (int i = 0; i < tn_world_size(w); i++) least = all[i] < least ? all[i] : least;
    return least;
}

/* MiB of the optimizer's state on this rank. */
static double state_mib(const tn_optimizer *opt, void *module)
{
    static const char *const names[] = {"exp_avg", "exp_avg_sq"};
    double                   bytes = 0;
    for (tn_each p = tn_module_each(module, TN_EACH_PARAMETER); tn_next(&p);)
        for (int k = 0; k < 2; k++) {
            const tn_tensor *t = tn_optimizer_state(opt, p.tensor, names[k]);
            if (t) bytes += (double)tn_numel(t) * (double)tn_dtype_size(tn_dtype_of(t));
        }
    return bytes / 1048576;
}

/* The resident memory of this process in MiB, on Linux; NaN on other systems. */
static double held_mib(void)
{
    char   line[128] = "";
    FILE  *f = fopen("/proc/self/statm", "r"); /* pages: address space, resident */
    char  *at = f && fgets(line, sizeof line, f) ? strchr(line, ' ') : NULL;
    double pages = at ? (double)strtoll(at, NULL, 10) : NAN;
    if (f) fclose(f);
    return pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

/* Trains the first half of the steps with an exchange after the backward pass, and the second half with an exchange
 * that overlaps it, unless --no-overlap is given; the bits are the same, and the difference is the hidden part. The
 * first step of each half does not count: it allocates the optimizer's state and finds which gradients can be early. */
int bench_train_ranks(const bench_options *o, FILE *json, const bench_job *j)
{
    tn_optimizer *opt = tn_adamw_new((tn_module *)j->module, .lr = 1e-4);
    const int64_t blocked = o->no_overlap || tn_world_size(o->world) == 1 ? o->steps : (o->steps + 1) / 2;
    tn_replica   *r = replica_of(o, j, false);
    double        waited[2] = {0, 0}, took[2] = {0, 0}, best[2] = {INFINITY, INFINITY}, first = NAN;
    int64_t       steps[2] = {0, 0};
    int           failed = !r || !opt;
    for (int64_t i = 0; i < o->steps && !failed; i++) {
        if (i == blocked) {
            tn_replica_free(r);
            if (!(r = replica_of(o, j, true))) break;
        }
        const double start = bench_now();
        failed = step(o, j, r, opt);
        if (!i) first = tn_replica_loss(r);
        if ((!i && o->steps > 1) || (i == blocked && o->steps > blocked + 1)) continue;
        const int    way = i >= blocked;
        const double now = bench_now() - start;
        waited[way] += least_wait(o->world, r), took[way] += now, best[way] = fmin(best[way], now), steps[way]++;
    }
    const int     way = steps[1] > 0;
    const double  before = steps[0] ? waited[0] / (double)steps[0] : NAN, now = waited[way] / (double)steps[way];
    struct rusage usage;
    double        rss[MOST_RANKS], state[MOST_RANKS] = {0}, held[MOST_RANKS] = {0};
    double        most = 0, state_most = 0, held_most = 0;
    char          hex[65] = "";
    getrusage(RUSAGE_SELF, &usage);
    if (tn_world_gather(o->world, (double)usage.ru_maxrss / 1024, rss) == TN_OK) {
        tn_world_gather(o->world, state_mib(opt, j->module), state);
        tn_world_gather(o->world, held_mib(), held);
        for (int i = 0; i < tn_world_size(o->world); i++)
            most = fmax(most, rss[i]), state_most = fmax(state_most, state[i]), held_most = fmax(held_most, held[i]);
        bench_sha256(j->module, hex);
        fprintf(
            json,
            "\"weights\": \"%s\", \"step_ms\": %.3f, \"best_ms\": %.3f, \"exchange_ms\": %.3f, \"hidden\": %.3f, "
            "\"blocked_ms\": %.3f, \"first_loss\": %.6f, \"last_loss\": %.6f, \"rss_mib\": %.0f, \"held_mib\": %.0f, "
            "\"state_mib\": %.2f",
            hex, took[way] / (double)steps[way] * 1e3, best[way] * 1e3, now * 1e3,
            way && before > now ? 1 - now / before : 0.0, (steps[0] ? before : now) * 1e3, first, tn_replica_loss(r),
            most, held_most, state_most);
    }
    tn_replica_free(r), tn_optimizer_free(opt);
    return tn_error() != TN_OK;
}

static int run(int which, bench_options *o, int ranks)
{
    char  *members = NULL;
    size_t size;
    FILE  *json = open_memstream(&members, &size);
    if (!json) return perror("bench"), 4;
    o->world = ranks_join(ranks, ranks, BENCH_WORLD);
    const int rank = tn_world_rank(o->world);
    if (!o->sizes.batch) o->sizes.batch = jobs[which].batch;
    int failed = tn_error() != TN_OK || jobs[which].run(o, json);
    fclose(json);
    tn_world_free(o->world);
    failed = failed || tn_error() != TN_OK;
    if (failed) fprintf(stderr, "bench: %s\n", tn_error_message());
    else if (!rank)
        printf("{\"workload\": \"%s\", \"ranks\": %d, \"steps\": %lld, \"threads\": %d, \"dtype\": \"%s\", "
               "\"version\": \"%s\", %s}\n",
               jobs[which].name, ranks, (long long)o->steps, tn_threads(), tn_dtype_name(o->dtype), tn_version(),
               members);
    free(members);
    return failed;
}

/* ---- all ranks --------------------------------------------------------------------------------------------------- */

#ifndef BENCH_MPI
/* The path of peers/bench_mpi in the folder of this program; argv[0] may lack the folder. */
static void peer_path(char *to, size_t size, const char *self)
{
    char          own[3000];
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length > 0) own[length] = 0;
    else snprintf(own, sizeof own, "%s", self);
    const char *slash = strrchr(own, '/');
    snprintf(to, size, "%.*speers/bench_mpi", slash ? (int)(slash + 1 - own) : 0, own);
}

static int launch(int ranks, int argc, char **argv)
{
    char path[4096];
    peer_path(path, sizeof path, argv[0]);
    ranks_launch(ranks, path, argc, argv);
    return fprintf(stderr, "bench: %s\n", tn_error_message()), 1;
}
#endif

static int usage(const char *word)
{
    fprintf(stderr,
            "bench: unknown option or invalid value: %s\n"
            "Usage: bench ranks --ranks K --workload bert|gpt|seq2seq|lstm|reduce --steps N [--dtype f32|bf16]\n"
            "                   [--zero] [--fast] [--sparse] [--no-overlap] [--shards N]\n"
            "                   [--delay MICROSECONDS,MB/S] [sizes]\n",
            word);
    return 2;
}

/* Parses "100,300": microseconds per message, megabytes per second. */
static bool delay(const char *text, bench_options *o)
{
    char *end;
    o->delay_us = strtod(text, &end);
    if (end == text || *end != ',') return false;
    o->delay_mb = strtod(text = end + 1, &end);
    return end > text && !*end && o->delay_us >= 0 && o->delay_mb > 0;
}

/* Sets the option of a flag; returns false for any other argument. */
static bool flag(const char *word, bench_options *o)
{
    const struct {
        const char *name;
        bool       *on;
    } all[] = {{"--zero", &o->zero}, {"--fast", &o->fast}, {"--sparse", &o->sparse}, {"--no-overlap", &o->no_overlap}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(word, all[i].name)) return *all[i].on = true;
    return false;
}

int bench_ranks(int argc, char **argv)
{
    bench_options o = {.self = argv[0], .threads = 1, .steps = 20};
    int           which = -1, ranks = 1;
    for (int i = 2, took; i < argc; i += took) {
        took = 2;
        if (i + 1 < argc && !strcmp(argv[i], "--workload")) {
            for (which = JOBS - 1; which >= 0 && strcmp(jobs[which].name, argv[i + 1]) != 0;) which--;
            if (which < 0) return usage(argv[i + 1]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--ranks")) {
            ranks = (int)strtol(argv[i + 1], NULL, 10);
            if (ranks < 1 || ranks > MOST_RANKS) return usage(argv[i + 1]);
        } else if (flag(argv[i], &o)) {
            took = 1;
        } else if (i + 1 < argc && !strcmp(argv[i], "--shards")) {
            o.shards = (int)strtol(argv[i + 1], NULL, 10);
            if (o.shards < 1 || o.shards > 4096) return usage(argv[i + 1]);
        } else if (i + 1 < argc && !strcmp(argv[i], "--delay")) {
            if (!delay(argv[i + 1], &o)) return usage(argv[i + 1]);
        } else if (!(took = bench_option(&o, argv + i))) {
            return usage(argv[i]);
        }
    }
    if (which < 0) return usage("--workload is missing");
    tn_set_threads(o.threads);
#ifndef BENCH_MPI
    if (ranks > 1) return launch(ranks, argc, argv);
#endif
    return run(which, &o, ranks);
}

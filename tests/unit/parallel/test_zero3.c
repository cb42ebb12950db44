/* test_zero3.c — sharded weights (.zero3), with threads as ranks: the same bits as without, less memory, and the
 * behaviour after errors. Ranks of MPI are in tests/project/mpi_bits.sh. */
#define _GNU_SOURCE /* mincore */
#include "tests/common/check_main.h"

#include "models/models.h"
#include "parallel/parallel_private.h"
#include "tests/common/errors.h"
#include "tests/common/thread_ranks.h"
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 150, DIM = 96, ROWS = 26, STEPS = 3, LAYERS = 3, ROOM = 500000 };
typedef struct {
    tn_module     base;
    tn_embedding *words;
    tn_linear    *layer[LAYERS], *out;
    tn_dropout   *drop;
    tn_experts   *experts; /* or NULL */
} net;

static tn_tensor *net_forward(net *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    const tn_frame f = tn_enter(m);
    x = tn_call(m->drop, tn_call(m->words, x));
    for (int i = 0; i < LAYERS; i++) x = tn_add(x, tn_gelu(tn_call(m->layer[i], x)));
    if (m->experts) x = tn_add(x, tn_call(m->experts, x));
    return tn_leave(f, tn_call(m->out, x));
}
TN_FORWARD(net);

static net *net_new(bool experts)
{
    net *m = tn_module_new(net);
    if (!m) return NULL;
    m->words = tn_child(m, "words", tn_embedding_new(.count = WORDS, .dim = DIM));
    for (int i = 0; i < LAYERS; i++)
        m->layer[i] = tn_child(m, tn_name("layer.%d", i), tn_linear_new(.in = DIM, .out = DIM));
    m->out = tn_child(m, "out", tn_linear_new(.in = DIM, .out = WORDS));
    m->drop = tn_child(m, "drop", tn_dropout_new(.p = 0.3));
    if (experts) m->experts = tn_child(m, "experts", tn_experts_new(.dim = DIM, .ff = 64, .experts = 4));
    return tn_built(m);
}

typedef struct {
    int      shards, fails; /* the rank that fails in step 1; -1: none */
    int64_t  resident, rows;
    bool     zero3, bf16, checkpoint, experts;
    tn_dtype dtype;
    char     weights[TN_THREAD_RANKS][ROOM];
    int64_t  bytes[TN_THREAD_RANKS];
    double   seen[TN_THREAD_RANKS]; /* a sum over a weight that each rank computes between two steps */
} job;
static const job usual = {.shards = 12, .rows = ROWS, .fails = -1, .dtype = TN_F32};

static tn_tensor *segment(tn_tensor *const *in, int n, void *user)
{
    (void)n;
    return tn_call((net *)user, in[0]);
}

static void learn(tn_world *w, tn_replica *r, net *m, tn_optimizer *o, job *j, int step)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *x = tn_randint(TN_SHAPE(j->rows), 0, WORDS), *y = tn_randint(TN_SHAPE(j->rows), 0, WORDS);
    for (tn_part p = {0}; tn_replica_next(r, &p);) {
        tn_batch b = {0};
        tn_batch_cut(&b, p.shard, j->rows);
        if (!b.rows) continue; /* such a rank reads no weight, and no rank waits for it */
        if (step == 1 && j->fails == tn_world_rank(w)) tn_raise(TN_ENOMEM, "no memory for shard %d", p.shard.rank);
        const tn_scope narrow = tn_autocast_begin(j->bf16);
        tn_tensor     *in = tn_narrow(x, 0, b.first, b.rows);
        tn_tensor     *scores = j->checkpoint ? tn_checkpoint(segment, m, 1, &in) : tn_call(m, in);
        tn_tensor     *l = tn_cross_entropy(tn_to(scores, TN_F64), tn_narrow(y, 0, b.first, b.rows));
        tn_replica_backward(r, tn_scope_return(narrow, l), (double)b.rows);
    }
    tn_replica_step(r, o);
    tn_scope_end(s);
}

static void keep_bits(tn_world *w, net *m, job *j)
{
    char    *to = j->weights[tn_world_rank(w)];
    int64_t *at = &j->bytes[tn_world_rank(w)];
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        const int64_t bytes = tn_numel(p.tensor) * (int64_t)tn_dtype_size(tn_dtype_of(p.tensor));
        ck_assert(*at + bytes <= ROOM);
        memcpy(to + *at, tn_data(p.tensor), (size_t)bytes);
        *at += bytes;
    }
}

static double sum_of(const tn_tensor *t)
{
    double         sum = 0;
    const tn_scope s = tn_no_grad_begin();
    sum = tn_item(tn_sum(tn_mul((tn_tensor *)(uintptr_t)t, (tn_tensor *)(uintptr_t)t)));
    tn_scope_end(s);
    return sum;
}

static void rank_body(tn_world *w, void *user)
{
    job *j = user;
    tn_seed((uint64_t)(3 + tn_world_rank(w))); /* different on each rank: all use rank 0's weights */
    net *m = net_new(j->experts);
    if (m && j->dtype != TN_F32) tn_module_to(m, j->dtype);
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    tn_replica   *r = tn_replica_new(w, m, .shards = j->shards, .zero3 = j->zero3, .resident = j->resident,
                                     .bucket = 4096, .clip.norm = 0.5);
    for (int i = 0; i < STEPS && tn_error() == TN_OK; i++) {
        learn(w, r, m, o, j, i);
        if (i == 1 && tn_error() == TN_OK) j->seen[tn_world_rank(w)] = sum_of(m->layer[1]->weight);
    }
    tn_replica_free(r);
    if (tn_error() == TN_OK) keep_bits(w, m, j);
    tn_optimizer_free(o);
    tn_free(m);
}

static void run(int ranks, job *j)
{
    char text[TN_THREAD_RANKS][1100];
    tn_thread_ranks(ranks, rank_body, j, 0, text);
    for (int i = 0; i < ranks; i++) ck_assert_str_eq(text[i], "");
}

/* Compared with one rank that has all weights: any number of ranks, any .resident. */
static void same_as_alone(const job *j)
{
    static job one, many;
    one = *j, one.zero3 = false;
    run(1, &one);
    ck_assert(one.bytes[0] > 200000);
    for (int ranks = 2; ranks <= 5; ranks++)
        for (int all = 0; all < 2; all++) {
            many = *j, many.zero3 = true, many.resident = all ? 256 << 20 : 0;
            run(ranks, &many);
            for (int i = 0; i < ranks; i++) {
                ck_assert_int_eq(many.bytes[i], one.bytes[0]);
                ck_assert_msg(!memcmp(many.weights[i], one.weights[0], (size_t)one.bytes[0]), "rank %d of %d", i,
                              ranks);
                ck_assert_double_eq(many.seen[i], one.seen[0]);
            }
        }
}

START_TEST(bits)
{
    static job j; /* too large for the stack */
    j = usual;
    same_as_alone(&j);
    j.bf16 = true;
    same_as_alone(&j);
    j.bf16 = false, j.checkpoint = true;
    same_as_alone(&j);
    j.checkpoint = false, j.dtype = TN_F64;
    same_as_alone(&j);
    j.dtype = TN_F32, j.experts = true; /* also experts without rows */
    same_as_alone(&j);
    j.experts = false, j.rows = 7; /* shards without rows */
    same_as_alone(&j);
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Number of a weight's pages that have memory. */
static int64_t pages_of(const void *at, int64_t bytes)
{
    unsigned char there[64];
    const int64_t page = sysconf(_SC_PAGESIZE), n = (bytes + page - 1) / page;
    int64_t       count = 0;
    ck_assert(n <= 64 && !((uintptr_t)at % (uintptr_t)page));
    ck_assert(!mincore((void *)(uintptr_t)at, (size_t)bytes, there));
    for (int64_t i = 0; i < n; i++) count += there[i] & 1;
    return count;
}

static void memory_body(tn_world *w, void *user)
{
    job          *j = user;
    const int64_t page = sysconf(_SC_PAGESIZE), bytes = DIM * DIM * 4;
    tn_seed(3);
    net          *m = net_new(false);
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    tn_replica   *r = tn_replica_new(w, m, .shards = j->shards, .zero3 = true, .resident = 0);
    learn(w, r, m, o, j, 0);
    ck_assert_int_eq(tn_error(), TN_OK);
    const void *at = tn_data(m->layer[0]->weight); /* fetched, and stays */
    ck_assert_int_eq(pages_of(at, bytes), (bytes + page - 1) / page);
    const double whole = sum_of(m->layer[0]->weight);
    ck_assert(whole > 0);
    learn(w, r, m, o, j, 2); /* until the next batch */
    ck_assert_int_le(pages_of(at, bytes), bytes / page / 4 + 2);
    tn_world_barrier(w);
    const tn_tensor *state = tn_optimizer_state(o, m->layer[0]->weight, "exp_avg");
    ck_assert(state && tn_numel(state) <= DIM * DIM / 4 + 64);
    ck_assert(tn_data(m->layer[0]->weight) == at && sum_of(m->layer[0]->weight) != whole);
    tn_replica_free(r);
    ck_assert(tn_data(m->layer[0]->weight) != at);
    tn_optimizer_free(o);
    tn_free(m);
}

START_TEST(a_part_of_the_memory)
{
    char text[TN_THREAD_RANKS][1100];
    job  j = usual;
    tn_thread_ranks(4, memory_body, &j, 0, text);
    for (int i = 0; i < 4; i++) ck_assert_str_eq(text[i], "");
}
END_TEST

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static const char *saved_at; /* set before the threads start */
static void        mistakes_body(tn_world *w, void *user)
{
    job *j = user;
    tn_seed(3);
    net          *m = net_new(false);
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2), *whole = tn_lamb_new(m, .lr = 1e-2);
    ck_assert(!tn_replica_new(w, m, .zero3 = true, .overlap = true));
    ck_error_has(TN_EINVAL, ".overlap and .zero3 exclude each other");
    tn_replica *r = tn_replica_new(w, m, .shards = j->shards, .zero3 = true);
    learn(w, r, m, o, j, 0);
    const tn_scope s = tn_no_grad_begin();
    tn_fill(m->layer[0]->weight, 1);
    ck_error_has(TN_ESTATE, "is a weight sharded over the ranks");
    tn_mul_scalar_(m->layer[0]->weight, 2);
    ck_error_has(TN_ESTATE, "tn_replica_whole");
    ck_assert(!tn_data_mut(m->layer[0]->weight));
    ck_error_has(TN_ESTATE, "tn_data_mut");
    tn_copy_from(tn_view(m->layer[0]->weight, TN_SHAPE(DIM * DIM)), tn_zeros(TN_SHAPE(1)));
    ck_error_has(TN_ESTATE, "sharded");
    tn_module_to(m, TN_BF16); /* all or none */
    ck_error_has(TN_ESTATE, "tn_module_to: this tensor (weight) is a weight");
    ck_assert_int_eq(tn_dtype_of(m->layer[0]->bias), TN_F32);
    tn_module_quantize(m);
    ck_error_has(TN_ESTATE, "tn_quantize: this tensor (weight) is a weight");
    ck_assert(tn_needs_grad(m->layer[0]->weight));
    tn_adopt(m->layer[0]->weight, tn_zeros(TN_SHAPE(1)));
    ck_error_has(TN_ESTATE, "tn_adopt");
    tn_fill(m->layer[0]->bias, 0); /* a small one, which each rank has */
    ck_assert_int_eq(tn_error(), TN_OK);
    tn_scope_end(s);
    if (tn_world_rank(w) == 1) ck_assert_int_eq(tn_save(m, saved_at), TN_OK); /* on this rank alone */
    net *saved = net_new(false);
    tn_world_barrier(w);
    ck_assert_int_eq(tn_load(saved, saved_at), TN_OK);
    ck_assert_double_eq(sum_of(saved->layer[0]->weight), sum_of(m->layer[0]->weight));
    ck_assert_double_eq(sum_of(saved->words->weight), sum_of(m->words->weight));
    const tn_scope u = tn_no_grad_begin();
    tn_fill(m->layer[0]->bias, 3);
    tn_scope_end(u);
    tn_load(m, saved_at); /* all or none */
    ck_error_has(TN_ESTATE, "tn_load: this tensor");
    ck_assert_double_eq(tn_get(m->layer[0]->bias, 0), 3);
    tn_free(saved);
    tn_step(o); /* a mistake: should be tn_replica_step; there are no gradients, so nothing happens */
    tn_clear_error();
    learn(w, r, m, whole, j, 0);
    ck_error_has(TN_EUNSUPPORTED, ".zero3 needs an optimizer that updates elements independently");
    ck_assert_int_eq(tn_replica_whole(r), TN_OK);
    const tn_scope t = tn_no_grad_begin();
    ck_assert_int_eq(tn_fill(m->layer[0]->weight, 0.5), TN_OK);
    tn_scope_end(t);
    learn(w, r, m, o, j, 0); /* sharded again */
    tn_replica_free(r);
    ck_assert_int_eq(tn_error(), TN_OK);
    ck_assert(fabs(tn_get(m->layer[0]->weight, 5) - 0.5) < 0.1);
    ck_assert_int_eq(tn_replica_whole(NULL), TN_EINVAL);
    tn_clear_error();
    tn_optimizer_free(o), tn_optimizer_free(whole);
    tn_free(m);
}

START_TEST(mistakes_are_told)
{
    char text[TN_THREAD_RANKS][1100];
    job  j = usual;
    saved_at = tn_test_file("spread.safetensors");
    tn_thread_ranks(3, mistakes_body, &j, 0, text);
    for (int i = 0; i < 3; i++) ck_assert_str_eq(text[i], "");
}
END_TEST

/* One rank fails in step 1: all get the error. After all have cleared it, the weights are those of the step before. */
static void failing_body(tn_world *w, void *user)
{
    job *j = user;
    tn_seed(3);
    net          *m = net_new(false);
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    tn_replica   *r = tn_replica_new(w, m, .shards = j->shards, .zero3 = true, .resident = j->resident);
    learn(w, r, m, o, j, 0);
    const double before = sum_of(m->out->weight);
    tn_world_barrier(w);
    learn(w, r, m, o, j, 1);
    ck_error_has(TN_ENOMEM, "no memory for shard");
    tn_replica_free(r);
    ck_assert_int_eq(tn_error(), TN_OK);
    ck_assert_double_eq(sum_of(m->out->weight), before);
    tn_optimizer_free(o);
    tn_free(m);
}

START_TEST(one_fails)
{
    char text[TN_THREAD_RANKS][1100];
    for (int rank = 0; rank < 3; rank++) {
        job j = usual;
        j.fails = rank;
        tn_thread_ranks(3, failing_body, &j, 0, text);
        for (int i = 0; i < 3; i++) ck_assert_str_eq(text[i], "");
    }
}
END_TEST

/* Rank 0 cannot use the first state that it receives. It still receives the rest, as the other ranks send it; they get
 * the error in the next collective call. A repetition succeeds. */
static tn_status (*rank_0_swap)(void *, const void *, const int *, const int *, void *, const int *, const int *);
static bool      damages; /* on rank 0 only */
static tn_status damaging_swap(void *user, const void *out, const int *out_bytes, const int *out_at, void *in,
                               const int *in_bytes, const int *in_at)
{
    const tn_status said = rank_0_swap(user, out, out_bytes, out_at, in, in_bytes, in_at);
    if (damages) memset(in, 0xff, 16);
    return damages = false, said;
}
static void damaged_body(tn_world *w, void *user)
{
    job *j = user;
    tn_seed(3);
    const bool    first = tn_world_rank(w) == 0;
    net          *m = net_new(false);
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    tn_replica   *r = tn_replica_new(w, m, .shards = j->shards, .zero = true, .zero3 = j->zero3);
    learn(w, r, m, o, j, 0);
    if (first) damages = true, rank_0_swap = w->t.swap, w->t.swap = damaging_swap;
    ck_assert_int_eq(tn_replica_collect(r, o), first ? TN_EINVAL : TN_OK);
    ck_assert(!first || !damages);
    tn_replica_forget(r, o);
    learn(w, r, m, o, j, 1);
    ck_error_has(TN_EINVAL, "the bytes are not a state of this parameter");
    ck_assert_msg(tn_replica_collect(r, o) == TN_OK, "%s", tn_error_message());
    tn_replica_forget(r, o);
    tn_replica_free(r);
    tn_optimizer_free(o);
    tn_free(m);
}

START_TEST(a_state_is_damaged)
{
    char text[TN_THREAD_RANKS][1100];
    job  j = usual;
    j.zero3 = _i;
    tn_thread_ranks(3, damaged_body, &j, 0, text);
    for (int i = 0; i < 3; i++) ck_assert_str_eq(text[i], "");
}
END_TEST

/* The transport fails at each call in turn: an error on all ranks, no weight that is silently zero, no deadlock. */
static void cut_body(tn_world *w, void *user)
{
    job *j = user;
    tn_seed(3);
    net          *m = net_new(false);
    tn_optimizer *o = tn_adamw_new(m, .lr = 1e-2);
    tn_replica   *r = tn_replica_new(w, m, .shards = j->shards, .zero3 = true);
    for (int i = 0; i < 2 && tn_error() == TN_OK; i++) learn(w, r, m, o, j, i);
    tn_replica_free(r);
    const tn_status status = tn_error();
    char            text[1000];
    snprintf(text, sizeof text, "%s", tn_error_message());
    tn_clear_error();
    double sum = m ? sum_of(m->layer[0]->weight) : 1;
    ck_assert(tn_error() == TN_OK ? sum > 1 : tn_error() == TN_ESTATE && strstr(tn_error_message(), "lost"));
    if (tn_error() != TN_OK) tn_clear_error();
    tn_optimizer_free(o);
    tn_free(m);
    if (status != TN_OK) tn_raise(status, "%s", text);
}

START_TEST(a_cut_line)
{
    char text[TN_THREAD_RANKS][1100];
    for (int at = 1; at < 60; at++) {
        job j = usual;
        j.shards = 3;
        tn_thread_ranks(3, cut_body, &j, at, text);
        for (int i = 0; i < 3 && text[0][0]; i++) ck_assert_msg(text[i][0], "call %d, rank %d", at, i);
    }
}
END_TEST

/* ---- tn_fit ------------------------------------------------------------------------------------------------------ */

static tn_tensor *fit_loss(void *module, const tn_batch *b, void *user)
{
    (void)user;
    return tn_cross_entropy(tn_call((net *)module, b->x), b->y);
}

typedef struct {
    char                  folder[200];
    bool                  zero3, stops; /* stops: after step 5 */
    volatile sig_atomic_t stop[TN_THREAD_RANKS];
    double                sum[TN_THREAD_RANKS];
} fit_job;

static void stop_at_5(const tn_fit_event *e, void *user)
{
    if (e->what == TN_FIT_STEP && e->step == 5) *(volatile sig_atomic_t *)user = 1;
}

static void fit_body(tn_world *w, void *user)
{
    fit_job               *j = user;
    const int              rank = tn_world_rank(w);
    volatile sig_atomic_t *stop = j->stop + rank;
    tn_seed(3);
    net          *m = net_new(false);
    tn_tensor    *x = tn_randint(TN_SHAPE(60), 0, WORDS), *y = tn_randint(TN_SHAPE(60), 0, WORDS);
    tn_dataset   *d = tn_dataset_new(.x = x, .y = y, .batch = 24, .shuffle = true);
    tn_dataset   *v = tn_dataset_new(.x = tn_narrow(x, 0, 0, 31), .y = tn_narrow(y, 0, 0, 31), .batch = 24);
    tn_fit_result a =
        tn_fit(m, .train = tn_dataset_source(d), .valid = tn_dataset_source(v), .loss = fit_loss, .steps = 12,
               .valid_every = 4, .save_every = 3, .world = w, .zero3 = j->zero3, .folder = j->folder, .resume = true,
               .restore_best = true, .on = j->stops ? stop_at_5 : NULL, .on_user = (void *)(uintptr_t)stop,
               .stop = j->stops ? stop : NULL);
    if (tn_error() == TN_OK) {
        ck_assert_int_eq(a.why, j->stops ? TN_FIT_STOPPED : TN_FIT_DONE);
        ck_assert(j->stops ? a.steps == 5 || a.steps == 6
                           : a.steps == 12); /* the flag takes effect at the next collective call */
        j->sum[rank] = sum_of(m->out->weight) + sum_of(m->words->weight);
    }
    tn_dataset_free(d), tn_dataset_free(v);
    tn_free(m);
}

/* Stops after step 5, and resumes with another number of ranks. */
static double fitted(const char *name, int ranks, bool zero3, int ranks_then)
{
    char    text[TN_THREAD_RANKS][1100];
    fit_job j = {.zero3 = zero3};
    snprintf(j.folder, sizeof j.folder, "%s", tn_test_file(name));
    for (int part = 0; part < 2; part++, ranks = ranks_then) {
        j.stops = !part && ranks != ranks_then;
        tn_thread_ranks(ranks, fit_body, &j, 0, text);
        for (int i = 0; i < ranks; i++) ck_assert_str_eq(text[i], "");
        for (int i = 1; i < ranks; i++) ck_assert_double_eq(j.sum[i], j.sum[0]);
        if (!j.stops) break;
    }
    return j.sum[0];
}

/* Validates, saves, resumes with another number of ranks, and ends with the best weights: the same bits. */
START_TEST(fit)
{
    const double alone = fitted("one", 1, false, 1);
    ck_assert(alone > 0);
    ck_assert_double_eq(fitted("three", 3, true, 3), alone);
    ck_assert_double_eq(fitted("four_two", 4, true, 2), alone);
    ck_assert_double_eq(fitted("two_one", 2, true, 1), alone);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("spread");
    TCase *c = tn_tcase(s, "ranks");
    tcase_add_test(c, bits);
    tcase_add_test(c, a_part_of_the_memory);
    tcase_add_test(c, mistakes_are_told);
    tcase_add_test(c, one_fails);
    tcase_add_loop_test(c, a_state_is_damaged, 0, 2);
    tcase_add_test(c, a_cut_line);
    tcase_add_test(c, fit);
    return tn_check_main(s);
}

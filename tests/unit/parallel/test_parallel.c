/* test_parallel.c — ranks, here threads: any number of ranks ends with the same bits, and an error of one rank is an
 * error of all. Ranks of MPI are in tests/project/mpi.sh. */
#include "tests/common/check_main.h"

#include "models/models.h"
#include "parallel/parallel_private.h"
#include "tests/common/thread_ranks.h"

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

/* The branches of a range are adjacent, and no two of them form one larger branch. */
TEST(branches_cover_a_range)
{
    for (int shards = 1; shards < 20; shards++)
        for (int lo = 0; lo < shards; lo++)
            for (int hi = lo + 1; hi <= shards; hi++) {
                tn__branch b[TN__BRANCHES];
                const int  n = tn__branches(shards, lo, hi, b);
                ck_assert(n > 0 && b[0].lo == lo && b[n - 1].hi == hi);
                for (int i = 0; i < n; i++) {
                    const tn__branch p = tn__branch_parent(shards, b[i]);
                    ck_assert(!i || b[i].lo == b[i - 1].hi);
                    ck_assert(p.hi == 0 || p.lo < lo || p.hi > hi);
                    ck_assert(p.hi > 0 || (lo == 0 && hi == shards));
                }
            }
    tn__branch b[TN__BRANCHES];
    ck_assert_int_eq(tn__branches(12, 0, 6, b), 1);
    ck_assert_int_eq(tn__branches(12, 3, 6, b), 1);
    ck_assert_int_eq(tn__branches(12, 4, 8, b), 3); /* 4, 5 and 6-7 */
    ck_assert(tn__branches(TN_SHARDS_MAX, 1, TN_SHARDS_MAX - 1, b) < TN__BRANCHES);
}

/* ---- the same bits ----------------------------------------------------------------------------------------------- */

/* An embedding, dropout, two layers; a last layer that is never used, and one that is frozen. */
enum { WORDS = 11, DIM = 6, ROWS = 26, STEPS = 4, ROOM = 8192, MANY = 150 };
typedef struct {
    tn_module     base;
    tn_embedding *words;
    tn_linear    *up, *down, *unused, *frozen;
    tn_dropout   *drop;
    bool          tied; /* tied: MANY words, of which WORDS are looked up, so that few blocks of the table change */
} net;
static tn_tensor *net_forward(net *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    x = tn_call(m->drop, tn_gelu(tn_call(m->up, tn_call(m->words, x))));
    if (m->tied) return tn_leave(f, tn_linear(tn_call(m->frozen, x), m->words->weight, NULL));
    return tn_leave(f, tn_call(m->down, tn_call(m->frozen, x)));
}
TN_FORWARD(net);
static net *net_new(bool sparse, bool tied)
{
    net *m = tn_module_new(net);
    if (!m) return NULL;
    m->tied = tied;
    m->words = tn_child(m, "words", tn_embedding_new(.count = tied ? MANY : WORDS, .dim = DIM, .sparse = sparse));
    m->up = tn_child(m, "up", tn_linear_new(.in = DIM, .out = DIM));
    m->down = tn_child(m, "down", tn_linear_new(.in = DIM, .out = WORDS));
    m->unused = tn_child(m, "unused", tn_linear_new(.in = DIM, .out = 2));
    m->frozen = tn_child(m, "frozen", tn_linear_new(.in = DIM, .out = DIM));
    m->drop = tn_child(m, "drop", tn_dropout_new(.p = 0.3));
    if (m->frozen) tn_freeze(m->frozen, true);
    return tn_built(m);
}

typedef struct {
    int     shards;
    int64_t bucket, rows;
    bool    bf16, sparse, clips, zero, fast, overlap,
        tied; /* sparse: of the embedding and of the replica; clips: .clip of the replica */
    tn_dtype     dtype;
    int          fails; /* the rank that fails in step 2; -1: none */
    bool         nan;   /* fails with a loss that is NaN */
    char         weights[TN_THREAD_RANKS][ROOM];
    int64_t      bytes[TN_THREAD_RANKS];
    int64_t      states[TN_THREAD_RANKS]; /* number of elements with optimizer state */
    double       loss[TN_THREAD_RANKS];
    tn_generator generator[TN_THREAD_RANKS];
} job;
static const job usual = {.shards = 12, .bucket = 256, .rows = ROWS, .fails = -1};

static void learn(tn_world *w, tn_replica *r, net *m, tn_optimizer *o, job *j, int step)
{
    const tn_scope s = tn_scope_begin();
    tn_tensor     *x = tn_randint(TN_SHAPE(j->rows), 0, WORDS), *y = tn_randint(TN_SHAPE(j->rows), 0, WORDS);
    for (tn_part p = {0}; tn_replica_next(r, &p);) {
        tn_batch b = {0};
        tn_batch_cut(&b, p.shard, j->rows);
        if (!b.rows) continue;
        const bool fails = step == 2 && j->fails == tn_world_rank(w);
        if (fails && !j->nan) tn_raise(TN_ENOMEM, "no memory for shard %d", p.shard.rank);
        const tn_scope narrow = tn_autocast_begin(j->bf16);
        tn_tensor     *in = tn_narrow(x, 0, b.first, b.rows);
        tn_tensor     *l = tn_cross_entropy(tn_call(m, in), tn_narrow(y, 0, b.first, b.rows));
        l = tn_scope_return(narrow, l);
        if (fails && j->nan) l = tn_mul_scalar(l, (double)NAN);
        tn_replica_backward(r, l, (double)b.rows);
    }
    if (j->clips) tn_replica_step(r, o);
    else tn_step(o);
    tn_scope_end(s);
}

static void keep_bits(tn_world *w, void *m, job *j)
{
    char    *to = j->weights[tn_world_rank(w)];
    int64_t *at = &j->bytes[tn_world_rank(w)];
    for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); tn_next(&p);) {
        const int64_t bytes = tn_numel(p.tensor) * (int64_t)tn_dtype_size(tn_dtype_of(p.tensor));
        ck_assert(tn_is_contiguous(p.tensor) && *at + bytes <= ROOM);
        memcpy(to + *at, tn_data(p.tensor), (size_t)bytes);
        *at += bytes;
    }
}

static void work(tn_world *w, void *user)
{
    job *j = user;
    tn_seed(7 + (uint64_t)tn_world_rank(w)); /* only rank 0's is used */
    net *m = net_new(j->sparse, j->tied);
    if (m && j->dtype != TN_F32) tn_module_to(m, j->dtype);
    tn_optimizer *o = tn_adamw_new(m, .lr = 0.05, .clip.norm = j->clips ? 0 : 0.2);
    tn_replica   *r = tn_replica_new(w, m, .shards = j->shards, .bucket = j->bucket, .zero = j->zero, .fast = j->fast,
                                     .sparse = j->sparse, .overlap = j->overlap, .clip.norm = j->clips ? 0.2 : 0);
    for (int i = 0; i < STEPS && tn_error() == TN_OK; i++) learn(w, r, m, o, j, i);
    const int rank = tn_world_rank(w);
    if (tn_error() == TN_OK) {
        j->loss[rank] = tn_replica_loss(r), j->generator[rank] = *tn_current_generator();
        ck_assert(!tn_optimizer_state(o, m->unused->weight, "exp_avg"));
        keep_bits(w, m, j);
        j->states[rank] = 0;
        for (tn_each p = tn_module_each(m, TN_EACH_PARAMETER); tn_next(&p);)
            j->states[rank] +=
                tn_optimizer_state(o, p.tensor, "exp_avg") ? tn_numel(tn_optimizer_state(o, p.tensor, "exp_avg")) : 0;
    }
    tn_replica_free(r), tn_optimizer_free(o), tn_free(m);
}

static void alone(job *j)
{
    tn_world          *w = tn_world_single();
    const tn_generator before = *tn_current_generator();
    work(w, j);
    *tn_current_generator() = before;
    tn_world_free(w);
    ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
}

static void compare(const job *like, bool all)
{
    static job one, many;
    char       text[TN_THREAD_RANKS][1100];
    one = *like;
    alone(&one);
    for (int size = all ? 1 : 3; size <= (all ? 6 : 4); size++) {
        many = *like;
        many.bucket = 256 << size; /* does not change the bits */
        tn_thread_ranks(size, work, &many, 0, text);
        for (int i = 0; i < size; i++) {
            ck_assert_str_eq(text[i], "");
            ck_assert(many.bytes[i] == one.bytes[0] && one.bytes[0] > 400);
            ck_assert_msg(!memcmp(many.weights[i], one.weights[0], (size_t)one.bytes[0]), "rank %d of %d", i, size);
            ck_assert(many.loss[i] == one.loss[0] && one.loss[0] > 0);
            ck_assert(!memcmp(&many.generator[i], &one.generator[0], sizeof one.generator[0]));
        }
    }
}

TEST_EACH(any_number_of_ranks, 18)
{
    job j = usual;
    if (_i == 1) j.bf16 = true;
    if (_i == 2) j.dtype = TN_BF16;
    if (_i == 3) j.dtype = TN_F64;
    if (_i == 5) j.rows = 5; /* some shards, and some ranks, have no rows */
    if (_i == 6) j.shards = 7;
    j.overlap = _i >= 7;
    if (_i == 8) j.bf16 = true;
    if (_i == 9) j.rows = 5;
    if (_i == 10) j.dtype = TN_F64;
    if (_i == 12) j.rows = 5;
    if (_i == 13) j.bf16 = true;
    if (_i == 14) j.dtype = TN_BF16;
    j.sparse = _i == 4 || _i == 15; /* .sparse disables .overlap */
    j.zero = j.clips = _i >= 16;
    j.tied = _i >= 11 && _i != 17;
    compare(&j, !_i || _i == 7 || _i == 11);
}

/* ZeRO-1 gives the same bits, and the state of each element is on one rank. Each rank has the same number of bytes of
 * all gradients, including frozen and unused parameters. */
TEST(a_share_of_the_state)
{
    static job plain, zero;
    char       text[TN_THREAD_RANKS][1100];
    plain = usual;
    plain.clips = true;
    zero = plain;
    zero.zero = true;
    alone(&plain);
    for (int size = 1; size <= 4; size++) {
        int64_t states = 0, most = 0;
        memset(zero.bytes, 0, sizeof zero.bytes);
        tn_thread_ranks(size, work, &zero, 0, text);
        for (int i = 0; i < size; i++) {
            ck_assert_str_eq(text[i], "");
            ck_assert_msg(!memcmp(zero.weights[i], plain.weights[0], (size_t)plain.bytes[0]), "rank %d of %d", i, size);
            states += zero.states[i], most = zero.states[i] > most ? zero.states[i] : most;
        }
        ck_assert(states == plain.states[0] && states > 150 && most <= 384 / size); /* 24 lines of 16 */
    }
}

/* Adds in the transport's order: nearly equal, the same on all ranks, and not the bits of one rank. */
TEST(the_fast_way)
{
    static job one, fast;
    char       text[TN_THREAD_RANKS][1100];
    one = fast = usual;
    fast.fast = true;
    alone(&one);
    tn_thread_ranks(3, work, &fast, 0, text);
    for (int i = 0; i < 3; i++) {
        ck_assert_str_eq(text[i], "");
        ck_assert(!memcmp(fast.weights[i], fast.weights[0], (size_t)one.bytes[0]));
        ck_assert(fabs(fast.loss[i] - one.loss[0]) < 1e-3);
    }
    ck_assert(memcmp(fast.weights[0], one.weights[0], (size_t)one.bytes[0]) != 0);
}

/* The gradients are those of the whole batch in one backward pass. */
static void one_batch(tn_world *w, void *user)
{
    net *m = net_new(false, false);
    tn_eval(m);
    tn_replica *r = tn_replica_new(w, m, .shards = 5);
    tn_tensor  *x = tn_randint(TN_SHAPE(ROWS), 0, WORDS), *y = tn_randint(TN_SHAPE(ROWS), 0, WORDS), *whole, *g;
    for (tn_part p = {0}; tn_replica_next(r, &p);) {
        tn_batch b = {0};
        tn_batch_cut(&b, p.shard, ROWS);
        tn_tensor *l = tn_cross_entropy(tn_call(m, tn_narrow(x, 0, b.first, b.rows)), tn_narrow(y, 0, b.first, b.rows));
        tn_replica_backward(r, l, (double)b.rows);
    }
    tn_tensor *l = tn_cross_entropy(tn_call(m, x), y);
    ck_assert(fabs(tn_item(l) - tn_replica_loss(r)) < 1e-6);
    for (tn_each p = tn_parameters(m); tn_next(&p);) {
        whole = tn_needs_grad(p.tensor) ? tn_grad_wrt(l = tn_cross_entropy(tn_call(m, x), y), p.tensor, false) : NULL;
        g = tn_grad(p.tensor);
        ck_assert_msg(!g == !whole, "%s", p.name);
        if (g) ck_assert_msg(tn_allclose(g, whole, 0, 1e-6), "%s", p.name);
    }
    (void)user;
    tn_replica_free(r), tn_free(m);
}

TEST(gradients_of_the_whole)
{
    char text[TN_THREAD_RANKS][1100];
    for (int size = 1; size < 4; size++) {
        tn_thread_ranks(size, one_batch, NULL, 0, text);
        for (int i = 0; i < size; i++) ck_assert_str_eq(text[i], "");
    }
}

/* The tape reports each leaf once, with its final gradient, the last layer first; a leaf with a hook not at all. */
typedef struct {
    int              n;
    const tn_tensor *leaf[8];
    float            first[8];
} told;
static void tell(const tn_tensor *leaf, const tn_tensor *grad, void *user)
{
    told *t = user;
    ck_assert(t->n < 8 && !tn_grad(leaf));
    t->leaf[t->n] = leaf, t->first[t->n++] = (float)tn_get(grad, 0);
}
static tn_tensor *leave_it(tn_tensor *grad, void *user)
{
    (void)grad, (void)user;
    return NULL;
}
TEST_EACH(the_tape_tells, 2)
{
    net       *m = net_new(false, _i);
    told       t = {0};
    tn_tensor *x = tn_randint(TN_SHAPE(ROWS), 0, WORDS), *y = tn_randint(TN_SHAPE(ROWS), 0, WORDS);
    tn_on_grad(m->up->bias, leave_it, NULL);
    tn_tensor *l = tn_cross_entropy(tn_call(m, x), y);
    ck_assert_int_eq(tn_backward_notify(l, NULL, tell, &t), TN_OK);
    if (_i) { /* up's weight, then the tied table, after its lookups */
        ck_assert(t.n == 2 && t.leaf[0] == m->up->weight && t.leaf[1] == m->words->weight);
        ck_assert((float)tn_get(tn_grad(m->words->weight), 0) == t.first[1]);
        tn_free(m);
        return;
    }
    ck_assert_int_eq(t.n, 4); /* down's two, up's weight, the table */
    ck_assert(t.leaf[0] == m->down->weight || t.leaf[0] == m->down->bias);
    ck_assert(t.leaf[2] == m->up->weight && t.leaf[3] == m->words->weight);
    for (int i = 0; i < t.n; i++) ck_assert((float)tn_get(tn_grad(t.leaf[i]), 0) == t.first[i]);
    ck_assert(tn_grad(m->up->bias) && !tn_grad(m->unused->weight));
    tn_free(m);
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

static bool begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }

/* If any rank fails, all end with its error message. */
TEST_EACH(an_error_reaches_all, 2)
{
    static job j;
    char       text[TN_THREAD_RANKS][1100], said[64];
    for (int nan = 0; nan < 2; nan++)
        for (int rank = 0; rank < 3; rank++) {
            j = usual;
            j.overlap = _i;
            j.fails = rank, j.nan = nan;
            tn_thread_ranks(3, work, &j, 0, text);
            for (int i = 0; i < 3; i++) {
                const char *what = nan ? "the loss of shard %d of 12 is NaN" : "no memory for shard %d";
                int         at = i == rank ? 0 : snprintf(said, sizeof said, "rank %d: ", rank);
                snprintf(said + at, sizeof said - (size_t)at, what, 4 * rank);
                ck_assert_msg(begins(text[i], said), "rank %d says %s, not %s", i, text[i], said);
            }
        }
}

/* The transport fails in its n-th call: no rank waits forever. */
TEST_EACH(a_line_that_is_cut, 2)
{
    static job j;
    char       text[TN_THREAD_RANKS][1100];
    for (int at = 1; at < 30; at += 4) {
        j = usual;
        j.overlap = _i;
        tn_thread_ranks(3, work, &j, at, text);
        for (int i = 0; i < 3; i++) ck_assert_msg(begins(text[i], "the line is cut"), "%d: %s", at, text[i]);
    }
}

/* One rank's schedule has another length: the rate of its first step is equal, that of its second is not. */
/* ---- after an error ---------------------------------------------------------------------------------------------- */

enum { BEFORE_BACKWARD, BEFORE_STEP, CANCELLED, HOW };

/* Step 1 of 3 fails on one rank, or all ranks cancel it; the error is cleared. The ranks go on with equal weights. */
static void fails_once(tn_world *w, void *user)
{
    const int     how = *(const int *)user % HOW, rank = tn_world_rank(w);
    tn_linear    *m = tn_linear_new(.in = 2, .out = 2);
    tn_optimizer *o = tn_sgd_new(m, .lr = 0.1);
    tn_replica   *r = tn_replica_new(w, m, .shards = 6, .overlap = *(const int *)user >= HOW);
    double        all[TN_THREAD_RANKS];
    for (int step = 0; step < 3; step++) {
        bool cancelled = false;
        for (tn_part p = {0}; !cancelled && tn_replica_next(r, &p);) {
            const tn_shard own = tn_replica_shard(r);
            if (step == 1 && how == BEFORE_BACKWARD && rank == 1) tn_raise(TN_EIO, "no data");
            tn_replica_backward(r, tn_sum(tn_square(tn_call(m, tn_ones(TN_SHAPE(1, 2))))), 1);
            if (step != 1 || how != CANCELLED || p.shard.rank != own.rank + own.count - 1) continue;
            tn_replica_cancel(r, &p);
            cancelled = true;
        }
        if (step == 1 && how == BEFORE_STEP && rank == 1) tn_raise(TN_EIO, "no data");
        if (!cancelled) tn_replica_step(r, o);
        ck_assert_msg((tn_error() == TN_OK) == (step != 1 || cancelled), "step %d: %s", step, tn_error_message());
        tn_clear_error();
        tn_world_gather(w, tn_item(tn_sum(m->weight)), all);
        for (int i = 0; i < tn_world_size(w); i++) ck_assert_double_eq(all[i], all[0]);
    }
    ck_assert_int_eq(tn_steps(o), 2);
    tn_replica_free(r), tn_optimizer_free(o), tn_free(m);
}

TEST_EACH(goes_on_after_an_error, 2 * HOW)
{
    char text[TN_THREAD_RANKS][1100];
    tn_thread_ranks(3, fails_once, &_i, 0, text);
    for (int i = 0; i < 3; i++) ck_assert_str_eq(text[i], "");
}

static int        calls;
static tn_tensor *negated(tn_tensor *g, void *user)
{
    (void)user, calls++;
    return tn_neg(g);
}

/* Hooks see the gradients of each shard, not their sum again. */
static void with_a_hook(tn_world *w, void *user)
{
    (void)user;
    tn_linear  *m = tn_linear_new(.in = 2, .out = 1);
    tn_replica *r = tn_replica_new(w, m, .shards = 2);
    tn_on_grad(m->weight, negated, NULL);
    calls = 0;
    for (tn_part p = {0}; tn_replica_next(r, &p);)
        tn_replica_backward(r, tn_sum(tn_call(m, tn_ones(TN_SHAPE(1, 2)))), 1);
    ck_assert(calls == 2 && tn_get(tn_grad(m->weight), 0) == -1);
    tn_replica_free(r), tn_free(m);
}

/* Optimizers that would do something else than without a replica. */
static void other_steps(tn_world *w, void *user)
{
    const bool    lazy = *(const bool *)user;
    tn_linear    *m = tn_linear_new(.in = 2, .out = 1);
    tn_optimizer *o = tn_adamw_new(m, .lazy = lazy);
    tn_replica   *r = tn_replica_new(w, m, .shards = 2, .zero = !lazy);
    for (tn_part p = {0}; tn_replica_next(r, &p);)
        if (lazy) tn_replica_backward(r, tn_sum(tn_call(m, tn_ones(TN_SHAPE(1, 2)))), 1);
    tn_replica_step(r, o);
    tn_replica_free(r), tn_optimizer_free(o), tn_free(m);
}

TEST(hooks_and_other_steps)
{
    char text[TN_THREAD_RANKS][1100];
    tn_thread_ranks(1, with_a_hook, NULL, 0, text);
    ck_assert_str_eq(text[0], "");
    for (int lazy = 0; lazy < 2; lazy++) {
        tn_thread_ranks(2, other_steps, &(bool){lazy}, 0, text);
        for (int i = 0; i < 2; i++)
            ck_assert_msg(strstr(text[i], lazy ? "tn_replica_step: the optimizer is .lazy"
                                               : "tn_step: none of the 2 parameters has a gradient"),
                          "%s", text[i]);
    }
}

/* The replica's own clipping is checked like an optimizer's, and may be .error_if_nonfinite alone. */
static void clip_in_the_replica(tn_world *w, void *user)
{
    tn_linear    *m = tn_linear_new(.in = 2, .out = 1);
    tn_optimizer *o = tn_sgd_new(m, .lr = 1);
    const bool    wrong = *(const bool *)user;
    tn_replica   *r =
        wrong ? tn_replica_new(w, m, .clip.norm = -1) : tn_replica_new(w, m, .clip.error_if_nonfinite = true);
    ck_assert_int_eq(r == NULL, wrong);
    for (tn_part p = {0}; r && tn_replica_next(r, &p);) /* finite losses, gradients of NaN */
        tn_replica_backward(r, tn_sum(tn_sqrt(tn_mul_scalar(m->weight, 0))), 1);
    if (r) tn_replica_step(r, o);
    if (r) ck_assert(isfinite(tn_get(m->weight, 0)));
    tn_replica_free(r), tn_optimizer_free(o), tn_free(m);
}

TEST(clipping_of_a_replica)
{
    static const char *const said[] = {
        "tn_clip_grads: the gradient of 'weight' has a NaN or Inf; nothing was changed",
        "tn_replica_new: .clip.norm is -1, but must not be negative; 0 disables clipping"};
    char text[TN_THREAD_RANKS][1100];
    for (int wrong = 0; wrong < 2; wrong++) {
        tn_thread_ranks(2, clip_in_the_replica, &(bool){wrong}, 0, text);
        for (int i = 0; i < 2; i++) ck_assert_str_eq(text[i], said[wrong]);
    }
}

static void step_differently(tn_world *w, tn_linear *m)
{
    tn_optimizer *o = tn_sgd_new(m, .lr = 1);
    tn_replica   *r = tn_replica_new(w, m, .shards = 3);
    tn_schedule_follow(tn_step_lr_new(o, .size = tn_world_rank(w) == 2 ? 1 : 2));
    for (int i = 0; i < 4 && tn_error() == TN_OK; i++) {
        for (tn_part p = {0}; tn_replica_next(r, &p);)
            tn_replica_backward(r, tn_sum(tn_call(m, tn_ones(TN_SHAPE(1, 2)))), 1);
        ck_assert_int_eq(tn_error(), TN_OK);
        tn_replica_step(r, o);
        ck_assert_int_eq(tn_error() == TN_OK, i == 0);
    }
    tn_replica_free(r);
    tn_optimizer_free(o);
}

static void differently(tn_world *w, void *user)
{
    const int  what = *(const int *)user, rank = tn_world_rank(w);
    double     all[3];
    net       *m = what == 3 && rank ? NULL : net_new(false, false);
    tn_linear *other = tn_linear_new(.in = 2, .out = 2);
    if (what == 0 && rank) tn_world_barrier(w);
    if (what == 0 && !rank) tn_world_gather(w, 1, all);
    if (what == 1) tn_replica_free(tn_replica_new(w, m, .shards = 5 + (rank == 2)));
    if (what == 2) tn_world_check_same(w, "file", rank == 1 ? "a" : "b");
    if (what == 3) tn_replica_free(rank ? tn_replica_new(w, other) : tn_replica_new(w, m));
    if (what == 4 && rank) tn_world_barrier(w); /* rank 0 has ended */
    if (what == 5) step_differently(w, other);
    if (what == 6) tn_replica_free(tn_replica_new(w, m, .clip.norm = 1 + (rank == 1)));
    if (what == 7) {
        tn_sequential *normed = tn_sequential_new();
        tn_append(normed, tn_batch_norm1d_new(.features = 2));
        tn_replica_free(tn_replica_new(w, normed));
        tn_free(normed);
    }
    tn_free(m), tn_free(other);
}

TEST(ranks_that_differ)
{
    static const char *const said[] = {
        "rank 0 calls tn_world_gather, but rank 1 calls tn_world_barrier; all ranks must make the same calls",
        "tn_replica_new: rank 2 has other options (.shards, .bucket, ...) than rank 0",
        "tn_world_check_same: rank 1 has another file than rank 0",
        "tn_world_broadcast: rank 1 has a module with other names, dtypes or shapes than rank 0",
        "rank 0 calls tn_world_free, but rank 1 calls tn_world_barrier; all ranks must make the same calls",
        "tn_replica_step: rank 2 has an optimizer of another kind, with another learning rate or other options than "
        "rank 0",
        "tn_replica_new: rank 1 has other options (.shards, .bucket, ...) than rank 0",
        ("tn_replica_new: '0.running_mean' belongs to a batch norm, whose running statistics would differ between "
         "ranks; use a layer norm or a group norm")};
    char text[TN_THREAD_RANKS][1100];
    for (int what = 0; what < 8; what++) {
        tn_thread_ranks(3, differently, &what, 0, text);
        for (int i = 0; i < 3; i++) ck_assert_msg(!strcmp(text[i], said[what]), "%d: %s", what, text[i]);
    }
}

static void sizes(tn_world *w, void *user)
{
    double all[4] = {0};
    (void)user;
    ck_assert_int_eq(tn_world_size(w), 4);
    ck_assert_int_eq(tn_world_gather(w, 10 + tn_world_rank(w), all), TN_OK);
    for (int i = 0; i < 4; i++) ck_assert(all[i] == 10 + i);
    tn_seed((uint64_t)tn_world_rank(w));
    tn_world_module_broadcast(w, NULL);
    ck_assert(tn_current_generator()->seed == 0 && tn_world_barrier(w) == TN_OK);
    /* An error that is cleared does not end the world. */
    if (tn_world_rank(w) == 3) tn_raise(TN_EIO, "no disk");
    ck_assert_int_eq(tn_world_barrier(w), TN_EIO);
    ck_assert_str_eq(tn_error_message(), tn_world_rank(w) == 3 ? "no disk" : "rank 3: no disk");
    tn_clear_error();
    ck_assert_int_eq(tn_world_barrier(w), TN_OK);
}

TEST(what_ranks_tell_each_other)
{
    char text[TN_THREAD_RANKS][1100];
    tn_thread_ranks(4, sizes, NULL, 0, text);
    for (int i = 0; i < 4; i++) ck_assert_str_eq(text[i], "");
}

TEST(mistakes)
{
    tn_world  *w = tn_world_single();
    tn_linear *m = tn_linear_new(.in = 2, .out = 1);
    ck_refused(tn_replica_new(NULL, m), TN_EINVAL, "tn_replica_new: the world is NULL");
    ck_refused(tn_replica_new(w, NULL), TN_EINVAL, "tn_replica_new: the module is NULL");
    ck_refused(tn_replica_new(w, m, .shards = 0), TN_EINVAL,
               "tn_replica_new: .shards is 0, but must be at least the number of ranks, 1, and at most 4096");
    ck_refused(tn_replica_new(w, m, .bucket = 1), TN_EINVAL,
               "tn_replica_new: .bucket is 1, but must be from 64 bytes to 64 MiB");
    ck_refused(tn_replica_new(w, m, .fast = true, .sparse = true), TN_EINVAL,
               "tn_replica_new: .sparse and .fast exclude each other: with .fast the transport adds all "
               "gradients");
    ck_refused(tn_world_from_transport((tn_transport){.size = 2}), TN_EINVAL,
               "tn_world_from_transport: more than one rank needs .gather, .broadcast and .swap");
    tn_replica *r = tn_replica_new(w, m, .shards = 2);
    tn_replica_backward(r, tn_scalar(1), 1);
    ck_error(TN_ESTATE, "tn_replica_backward: no shard is open; call it in a loop of tn_replica_next");
    for (tn_part p = {0}; tn_replica_next(r, &p);) tn_replica_backward(r, tn_ones(TN_SHAPE(2)), 1);
    ck_error(TN_ESHAPE, "tn_replica_backward: the loss is [2], but must be one value; see tn_mean");
    for (tn_part p = {0}; tn_replica_next(r, &p);) tn_replica_backward(r, tn_scalar(1), -1);
    ck_error(TN_EINVAL, "tn_replica_backward: weight is -1, but must be the number of rows that the loss is the mean "
                        "of");
    ck_refused(tn_replica_next(NULL, NULL), TN_EINVAL, "tn_replica_next: r is NULL");
    tn_replica_free(r), tn_free(m), tn_world_free(w);
    tn_world_free(NULL), tn_replica_free(NULL);
}

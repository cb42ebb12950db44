/* test_fit_ranks.c — tn_fit on several ranks, here threads: the same bits for any number of ranks, also if a run is
 * stopped or fails and is resumed with another number; an error of one rank is an error of all. */
#include "tests/common/check_main.h"

#include "extras.h"
#include "tests/common/thread_ranks.h"

enum { ROWS = 53, ROOM = 2048, RANKS = TN_THREAD_RANKS };
typedef struct {
    const char           *folder; /* NULL: none */
    int64_t               epochs, stop_at;
    int                   stops, raises; /* this rank: asks to stop at stop_at, or raises; -1: none */
    bool                  zero, own, whole_valid, bf16, averages;
    const char           *config;
    char                  weights[RANKS][ROOM];
    int64_t               bytes;
    tn_fit_result         r[RANKS];
    int                   saved[RANKS], steps[RANKS];
    volatile sig_atomic_t stop[RANKS];
} job;
static const job usual = {.epochs = 3, .stop_at = 13, .stops = -1, .raises = -1};

typedef struct {
    job *j;
    int  rank;
} listener;

static void listen(const tn_fit_event *e, void *user)
{
    const listener *l = user;
    job            *j = l->j;
    if (e->what == TN_FIT_SAVED) j->saved[l->rank]++;
    if (e->what != TN_FIT_STEP) return;
    j->steps[l->rank]++;
    if (e->step == j->stop_at && l->rank == j->stops) j->stop[l->rank] = 1;
    if (e->step == j->stop_at && l->rank == j->raises) tn_raise(TN_EIO, "rank %d has no disk", l->rank);
}

static tn_tensor *loss(void *module, const tn_batch *b, void *user)
{
    (void)user;
    return tn_mse_loss(tn_call((tn_sequential *)module, b->x), b->y);
}

static void work(tn_world *w, void *user)
{
    job           *j = user;
    const int      rank = tn_world_rank(w);
    const listener l = {j, rank};
    tn_seed(5 + (uint64_t)rank); /* rank 0's seed is used; the data are the same */
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 3, .out = 8));
    tn_append(net, tn_dropout_new(.p = 0.25));
    tn_append(net, tn_gelu_new());
    tn_append(net, tn_linear_new(.in = 8, .out = 2));
    tn_generator  own = {.seed = 9}, *before = tn_use_generator(&own);
    tn_tensor    *x = tn_normal(TN_SHAPE(ROWS, 3), 0, 1), *y = tn_normal(TN_SHAPE(ROWS, 2), 0, 1);
    tn_dataset   *rows = tn_dataset_new(.x = x, .y = y, .batch = 10, .shuffle = true, .seed = 3);
    tn_dataset   *held = tn_dataset_new(.x = x, .y = tn_add_scalar(y, 0.1), .batch = 15);
    tn_source     valid = tn_dataset_source(held);
    tn_optimizer *o = j->own ? tn_adamw_new(net, .lr = 0.02, .amsgrad = true) : NULL;
    tn_ema       *ema = j->averages ? tn_ema_new(net, .decay = 0.8) : NULL;
    tn_use_generator(before);
    if (j->whole_valid) valid.shard = NULL;
    tn_fit_args a = TN_WITH(tn_fit_args, TN_FIT_ARGS_DEFAULTS, .module = net, .train = tn_dataset_source(rows),
                            .loss = loss, .epochs = j->epochs, .valid = valid, .restore_best = true,
                            .autocast = j->bf16, .ema = ema, .on = listen, .on_user = (void *)(uintptr_t)&l,
                            .stop = &j->stop[rank], .world = w, .shards = 8, .zero = j->zero);
    if (j->folder) a.folder = j->folder, a.resume = true, a.save_every = 5, a.config = j->config;
    if (o) a.optimizer = o;
    else a.lr = 0.02, a.clip = 0.3;
    j->r[rank] = tn_fit_run(a);
    int64_t at = 0;
    for (tn_each p = tn_module_each(net, TN_EACH_PARAMETER); tn_next(&p);) {
        const size_t bytes = (size_t)tn_numel(p.tensor) * sizeof(float);
        ck_assert(at + (int64_t)bytes <= ROOM);
        if (tn_error() == TN_OK) memcpy(j->weights[rank] + at, tn_data(p.tensor), bytes);
        at += (int64_t)bytes;
    }
    if (rank == 0) j->bytes = at; /* the ranks are threads of one process */
    tn_ema_free(ema), tn_optimizer_free(o), tn_dataset_free(rows), tn_dataset_free(held), tn_free(net);
}

static void run(job *j, int ranks)
{
    char text[RANKS][1100];
    memset((void *)(uintptr_t)j->stop, 0, sizeof j->stop);
    memset(j->steps, 0, sizeof j->steps), memset(j->saved, 0, sizeof j->saved);
    tn_thread_ranks(ranks, work, j, 0, text);
    for (int i = 0; i < ranks; i++) ck_assert_msg(!*text[i], "rank %d of %d: %s", i, ranks, text[i]);
}

static void same(const job *a, const job *b, int ranks)
{
    for (int i = 0; i < ranks; i++) {
        const tn_fit_result *r = &b->r[i], *one = &a->r[0];
        ck_assert_msg(r->why == TN_FIT_DONE && r->steps == one->steps && r->epochs == one->epochs, "%d", (int)r->why);
        ck_assert(r->loss == one->loss && r->value == one->value && r->best == one->best);
        ck_assert(r->best_step == one->best_step && one->best > 0);
        ck_assert_msg(!memcmp(a->weights[0], b->weights[i], (size_t)a->bytes), "rank %d of %d", i, ranks);
    }
}

static void variant(job *j, int which)
{
    *j = usual;
    if (which == 1) j->own = true;
    if (which == 2) j->whole_valid = true;
    if (which == 3) j->bf16 = true;
    if (which == 4) j->averages = true;
    if (which == 5) j->zero = true;
}
enum { VARIANTS = 6 };

TEST_EACH(any_number_of_ranks, VARIANTS)
{
    static job one, many;
    variant(&one, _i), variant(&many, _i);
    run(&one, 1);
    ck_assert(one.r[0].steps == 18 && one.steps[0] == 18);
    for (int ranks = 2; ranks <= 4; ranks++) {
        run(&many, ranks);
        same(&one, &many, ranks);
    }
    variant(&many, 0);
    if (_i == 5) run(&many, 1), same(&one, &many, 1); /* .zero changes no bits */
}

/* Stopped on one rank, or by an error of one; then resumed with other numbers of ranks. */
TEST_EACH(goes_on_with_another_number, VARIANTS)
{
    static const int numbers[][3] = {{4, 3, 1}, {2, 1, 4}, {1, 4, 2}};
    static job       whole, parts;
    char             name[32], text[RANKS][1100];
    variant(&whole, _i);
    run(&whole, 2);
    for (int k = _i ? _i % 3 : 0; k < (_i ? _i % 3 + 1 : 3); k++) {
        const int first = numbers[k][0];
        variant(&parts, _i);
        snprintf(name, sizeof name, "ranks-%d-%d", _i, k);
        parts.folder = tn_test_file(name);
        parts.stops = first - 1;
        run(&parts, first);
        for (int i = 0; i < first; i++) {
            ck_assert(parts.r[i].why == TN_FIT_STOPPED && parts.r[i].steps == parts.r[0].steps);
            ck_assert(parts.r[i].steps >= 13 && parts.r[i].steps <= 14 && !parts.saved[i] == (i > 0));
        }
        memset((void *)(uintptr_t)parts.stop, 0, sizeof parts.stop);
        parts.stops = -1, parts.raises = numbers[k][1] - 1, parts.stop_at = 16;
        tn_thread_ranks(numbers[k][1], work, &parts, 0, text);
        for (int i = 0; i < numbers[k][1]; i++) {
            ck_assert(parts.r[i].why == TN_FIT_FAILED);
            ck_assert_msg(strstr(text[i], "has no disk"), "%s", text[i]);
        }
        parts.raises = -1;
        run(&parts, numbers[k][2]);
        ck_assert_int_eq(parts.r[0].begin, 15);
        same(&whole, &parts, numbers[k][2]);
    }
}

/* ---- carried states ---------------------------------------------------------------------------------------------- */

/* Columns of a text, of random lengths, with a recurrent model; each rank has the states of its columns. */
enum { TEXT = 1500, STEPS = 40 };
typedef struct {
    const char           *folder;
    bool                  stops; /* somewhere in an epoch */
    double                sum[RANKS], valid[RANKS];
    volatile sig_atomic_t stop[RANKS];
} carried_job;

static void stop_at_15(const tn_fit_event *e, void *user)
{
    if (e->what == TN_FIT_STEP && e->step == 15) *(volatile sig_atomic_t *)user = 1;
}

static void carried(tn_world *w, void *user)
{
    static int32_t         words[TEXT]; /* the same for all */
    carried_job           *j = user;
    const int              rank = tn_world_rank(w);
    volatile sig_atomic_t *stop = j->stop + rank;
    tn_world_barrier(w);
    for (int i = 0; rank == 0 && i < TEXT; i++) words[i] = (i * i + i / 7) % 23;
    tn_world_barrier(w);
    tn_seed(4);
    tn_carried_lm *m = tn_carried_lm_new(
        tn_rnn_lm_new(.vocab = 23, .dim = 6, .hidden = 8, .layers = 2, .dropout = 0.2, .weight_drop = 0.2), 7);
    tn_columns   *text = tn_columns_new(words, TEXT, .batch = 7, .length = 8, .vary = true, .seed = 3);
    tn_columns   *held = tn_columns_new(words, 90, .batch = 5, .length = 8);
    tn_fit_result a = tn_fit(m, .train = tn_columns_source(text), .valid = tn_columns_source(held),
                             .loss = tn_carried_lm_loss, .steps = STEPS, .save_every = 10, .world = w, .shards = 5,
                             .lr = 0.02, .folder = j->folder, .resume = true, .on = j->stops ? stop_at_15 : NULL,
                             .on_user = (void *)(uintptr_t)stop, .stop = j->stops ? stop : NULL);
    ck_assert(a.why == (j->stops ? TN_FIT_STOPPED : TN_FIT_DONE));
    j->valid[rank] = a.value, j->sum[rank] = 0;
    for (tn_each p = tn_parameters(m); tn_next(&p);)
        for (int64_t i = 0; i < tn_numel(p.tensor); i++) j->sum[rank] += tn_get(p.tensor, i) * (double)(i % 7 + 1);
    tn_columns_free(text), tn_columns_free(held), tn_free(m);
}

TEST(carried_states)
{
    static const int first[] = {3, 5, 2}, then[] = {2, 1, 4};
    char             text[RANKS][1100], name[32];
    carried_job      alone = {.folder = tn_test_file("carried")};
    tn_thread_ranks(1, carried, &alone, 0, text);
    ck_assert_msg(!*text[0] && alone.valid[0] > 0, "%s", text[0]);
    for (int k = 0; k < 3; k++) {
        carried_job j = {.stops = true};
        snprintf(name, sizeof name, "carried-%d", k);
        j.folder = tn_test_file(name);
        tn_thread_ranks(first[k], carried, &j, 0, text);
        ck_assert_msg(!*text[0], "%s", text[0]);
        j.stops = false;
        tn_thread_ranks(then[k], carried, &j, 0, text);
        for (int i = 0; i < then[k]; i++) {
            ck_assert_msg(!*text[i], "%s", text[i]);
            ck_assert_double_eq(j.sum[i], alone.sum[0]);
            ck_assert_double_eq(j.valid[i], alone.valid[0]);
        }
    }
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

/* A source that ignores .count, and one without .shard. */
typedef struct {
    tn_shard shard;
    bool     knows;
} source;
static bool next_of(void *user, tn_batch *b)
{
    source *s = user;
    tn_batch_cut(b, s->shard, 24);
    if (s->knows) tn_shard_next(&s->shard);
    b->x = tn_ones(TN_SHAPE(b->rows, 3)), b->y = tn_ones(TN_SHAPE(b->rows, 2));
    return tn_error() == TN_OK;
}
static void shard_of(void *user, tn_shard s) { ((source *)user)->shard = s; }

static void wrongly(tn_world *w, void *user)
{
    const int     what = *(const int *)user;
    source        own = {.knows = what != 1};
    tn_linear    *net = tn_linear_new(.in = 3, .out = 2);
    tn_optimizer *o = tn_adamw_new(net, .clip.norm = 1);
    tn_source     s = {.next = next_of, .shard = what == 0 ? NULL : shard_of, .user = &own};
    tn_fit_args   a =
        TN_WITH(tn_fit_args, TN_FIT_ARGS_DEFAULTS, .module = net, .train = s, .loss = loss, .steps = 2, .world = w);
    if (what == 2) a.accumulate = 2;
    if (what == 3) a.world = NULL, a.zero = true;
    if (what == 4) a.shards = 1;
    if (what == 5 && tn_world_rank(w)) a.shards = 24;
    if (what == 6) a.zero = true, a.optimizer = o;
    tn_fit_run(a);
    tn_optimizer_free(o), tn_free(net);
}

TEST(mistakes)
{
    static const char *const said[] = {
        "tn_source_shard: the source has no .shard function",
        ("tn_fit: .train returned rows 0 to 2 of 24 for shard 1 of 12; its .next must call tn_shard_next after each "
         "batch"),
        "tn_fit: .accumulate does not support .world; use larger batches and multiply .shards instead",
        "tn_fit: .shards and .zero need a .world",
        "tn_replica_new: .shards is 1, but must be at least the number of ranks, 2, and at most 4096",
        "tn_replica_new: rank 1 has other options (.shards, .bucket, ...) than rank 0",
        "tn_replica_step: with .zero the optimizer's own .clip would see only a part of the gradients; set .clip"};
    char text[RANKS][1100];
    for (int what = 0; what < 7; what++) {
        tn_thread_ranks(2, wrongly, &what, 0, text);
        ck_assert_msg(!strncmp(text[0], said[what], strlen(said[what])), "%d: %s", what, text[0]);
        ck_assert_msg(*text[1], "%d", what);
    }
}

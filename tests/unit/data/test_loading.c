/* test_loading.c — sources read ahead: the bits, the order and the positions of the source itself, also resumed,
 * sharded and after an error; the time that is hidden. Datasets split at random and drawn by weight. */
#include "tests/common/check_main.h"

#include "core/base/clock.h"
#include "data/data.h"
#include "tests/common/faults.h"

#include <time.h>

/* ---- a source ---------------------------------------------------------------------------------------------------- */

/* 13 batches an epoch, of 5 rows, the last of 2; fails at batch `fails`; takes `wait` seconds for a batch. */
typedef struct {
    int64_t  batch, epoch, fails;
    double   wait, waited;
    tn_shard shard;
} counted;
static double pause_for(double seconds)
{
    const double start = tn__seconds();
    nanosleep(&(struct timespec){0, (long)(seconds * 1e9)}, NULL);
    return tn__seconds() - start;
}
static bool counted_next(void *user, tn_batch *b)
{
    counted *c = user;
    if (c->wait > 0) c->waited += pause_for(c->wait);
    if (c->fails && c->batch == c->fails) return c->fails = 0, tn_raise(TN_EIO, "the file cannot be read"), false;
    if (c->batch == 13) return c->batch = 0, c->epoch++, false;
    tn_batch_cut(b, c->shard, c->batch == 12 ? 2 : 5);
    const double from = (double)(1000 * c->epoch + 5 * c->batch + b->first);
    b->x = tn_arange_of(TN_I64, from, from + (double)b->rows, 1);
    tn_batch_put(b, "all", tn_full(TN_SHAPE(3), from));
    if (tn_error() != TN_OK) return false;
    c->batch += tn_shard_next(&c->shard);
    return true;
}
static void counted_begin(void *user, const tn_json *at)
{
    counted *c = user;
    c->batch = at ? tn_json_i64(tn_json_need(at, "batch")) : 0,
    c->epoch = at ? tn_json_i64(tn_json_need(at, "epoch")) : 0;
    tn_shard_rewind(&c->shard);
}
static void counted_save(void *user, tn_json_writer *w)
{
    const counted *c = user;
    tn_json_put_i64(w, "batch", c->batch), tn_json_put_i64(w, "epoch", c->epoch);
}
static void      counted_shard(void *user, tn_shard s) { ((counted *)user)->shard = s; }
static tn_source source_of(counted *c)
{
    return (tn_source){counted_next, counted_begin, counted_save, counted_shard, .user = c, .batches = 13};
}

static const char *position(const tn_source *s, char text[80])
{
    tn_json_writer *w = tn_json_writer_new(0);
    size_t          bytes;
    tn_json_open_object(w, NULL), s->save(s->user, w), tn_json_close(w);
    snprintf(text, 80, "%s", tn_json_text(w, &bytes));
    tn_json_writer_free(w);
    return text;
}

/* The next n batches of both are the same, and so are their positions after each. */
static void same(const tn_source *a, const tn_source *b, int n)
{
    for (int i = 0; i < n; i++) {
        const tn_scope s = tn_scope_begin();
        char           ta[80], tb[80];
        tn_batch       u, v;
        ck_assert_int_eq(tn_source_next(a, &u), tn_source_next(b, &v));
        ck_assert_msg(tn_error() == TN_OK, "%s", tn_error_message());
        ck_assert(!u.x == !v.x && u.first == v.first && u.rows == v.rows && u.whole == v.whole);
        if (u.x) ck_assert(tn_same_bits(u.x, v.x) && tn_same_bits(tn_batch_get(&u, "all"), tn_batch_get(&v, "all")));
        ck_assert_str_eq(position(a, ta), position(b, tb));
        tn_scope_end(s);
    }
}

/* ---- read ahead -------------------------------------------------------------------------------------------------- */

TEST_EACH(the_same_batches, 4)
{
    counted      c = {0}, d = {0};
    tn_source    plain = source_of(&c), inner = source_of(&d);
    tn_prefetch *p = tn_prefetch_new(.source = &inner, .ahead = 1 + _i);
    tn_source    ahead = tn_prefetch_source(p);
    ck_assert_int_eq(ahead.batches, 13);
    same(&plain, &ahead, 33); /* beyond the end of two epochs */
    plain.begin(plain.user, NULL), ahead.begin(ahead.user, NULL);
    same(&plain, &ahead, 4);
    tn_json *at = tn_json_parse("{\"batch\":11,\"epoch\":2}", 22);
    plain.begin(plain.user, at), ahead.begin(ahead.user, at);
    tn_json_free(at);
    same(&plain, &ahead, 5);
    /* two of three parts of each batch, from the next batch on */
    const tn_shard shard = {.rank = 1, .of = 3, .count = 2};
    ck_assert(tn_source_shard(&plain, shard) == TN_OK && tn_source_shard(&ahead, shard) == TN_OK);
    same(&plain, &ahead, 31);
    tn_prefetch_free(p);
}

/* An error of the source is raised where its batch is due; then the batch is read again. */
TEST(errors_come_in_order)
{
    for (int64_t fails = 1; fails < 6; fails++) {
        counted      c = {0}, d = {.fails = fails};
        tn_source    plain = source_of(&c), inner = source_of(&d);
        tn_prefetch *p = tn_prefetch_new(.source = &inner, .ahead = 3);
        tn_source    ahead = tn_prefetch_source(p);
        tn_batch     b;
        same(&plain, &ahead, (int)fails);
        ck_refused(tn_source_next(&ahead, &b), TN_EIO, "the file cannot be read");
        same(&plain, &ahead, 20);
        tn_prefetch_free(p);
    }
}

/* A source as slow as a step: 90 % of its time must be hidden, and half of it where other tests run beside and a pause
 * has whole milliseconds, as on Windows. */
TEST(time_is_hidden)
{
    counted      c = {.wait = 0.01};
    tn_source    inner = source_of(&c);
    tn_prefetch *p = tn_prefetch_new(.source = &inner);
    tn_source    ahead = tn_prefetch_source(p);
    tn_batch     b;
    double       stepped = 0;
    tn_source_next(&ahead, &b); /* nothing can hide the first */
    c.waited = 0;
    const double start = tn__seconds();
    for (int i = 0; i < 39; i++) {
        const tn_scope s = tn_scope_begin();
        stepped += pause_for(0.0101);
        tn_source_next(&ahead, &b);
        tn_scope_end(s);
    }
    const double seconds = tn__seconds() - start;
    tn_prefetch_free(p);
    const double hidden = 1 - (seconds - stepped) / c.waited;
    printf("%.1f %% of the source's %.0f ms are hidden\n", 100 * hidden, 1e3 * c.waited);
    ck_assert_double_ge(hidden, tn_test_slow() ? 0.5 : 0.9);
}

TEST(prefetch_fails)
{
    counted   c = {0};
    tn_source s = source_of(&c), random = {.next = counted_next, .user = &c};
    ck_refused(tn_prefetch_new(.ahead = 2), TN_EINVAL, "tn_prefetch_new: .source is NULL");
    ck_refused(tn_prefetch_new(.source = &random), TN_EUNSUPPORTED,
               "tn_prefetch_new: the source has no .begin and .save, which restore a position");
    ck_refused(tn_prefetch_new(.source = &s, .ahead = 0), TN_EINVAL,
               "tn_prefetch_new: .ahead is 0, but must be from 1 to 64");
    tn_prefetch_free(NULL);
    ck_assert_ptr_null((void *)(uintptr_t)tn_prefetch_source(NULL).next);
}

BARE_TEST(memory_that_fails)
{
    tn_faulty_memory_begin();
    bool reached = true;
    for (int64_t n = 0; reached && n < 300; n++) {
        const tn_scope s = tn_scope_begin();
        counted        c = {0};
        tn_source      inner = source_of(&c);
        tn_fail_memory(n, true);
        tn_prefetch *p = tn_prefetch_new(.source = &inner);
        tn_source    ahead = tn_prefetch_source(p);
        tn_batch     b;
        for (int i = 0; i < 4 && p; i++) tn_source_next(&ahead, &b);
        reached = tn_error() != TN_OK;
        tn_fail_memory(-1, false);
        if (reached) ck_error_code(TN_ENOMEM);
        if (p && reached) {
            ck_assert(tn_source_next(&ahead, &b));
            ck_assert_int_eq(tn_get_i64(b.x, 0) % 5, 0);
        }
        tn_prefetch_free(p);
        tn_scope_end(s);
    }
    tn_faulty_memory_end();
}

/* ---- datasets ---------------------------------------------------------------------------------------------------- */

/* Counts the rows of an epoch of a dataset whose x is 0, 1, 2 …; returns their number. */
static int64_t count_rows(tn_dataset *d, int64_t *count)
{
    const tn_source s = tn_dataset_source(d);
    tn_batch        b;
    int64_t         n = 0;
    while (tn_source_next(&s, &b)) {
        ck_assert(tn_numel(b.x) == tn_numel(b.y));
        for (int64_t i = 0; i < tn_numel(b.x); i++, n++) {
            count[tn_get_i64(b.x, i)]++;
            ck_assert_int_eq(tn_get_i64(b.y, i), tn_get_i64(b.x, i)); /* rows stay together */
        }
    }
    return n;
}

TEST(splits)
{
    enum { ROWS = 103 };
    tn_tensor   *x = tn_arange(ROWS);
    tn_dataset  *all = tn_dataset_new(.x = x, .y = x, .batch = 10, .shuffle = true, .seed = 4), *part[3], *again[3];
    const double shares[3] = {0.7, 0.2, 0.1};
    ck_assert_int_eq(tn_random_split(all, 9, 3, shares, part), TN_OK);
    ck_assert_int_eq(tn_random_split(all, 9, 3, shares, again), TN_OK);
    tn_dataset_free(all); /* the parts keep the tensors */
    static const int64_t size[3] = {73, 20, 10}, batches[3] = {8, 2, 1};
    int64_t              count[ROWS] = {0};
    for (int i = 0; i < 3; i++) {
        int64_t one[ROWS] = {0}, two[ROWS] = {0};
        ck_assert_int_eq(tn_dataset_source(part[i]).batches, batches[i]);
        ck_assert_int_eq(count_rows(part[i], one), size[i]);
        count_rows(again[i], two);
        ck_assert(!memcmp(one, two, sizeof one));
        for (int k = 0; k < ROWS; k++) count[k] += one[k];
        tn_dataset_free(part[i]), tn_dataset_free(again[i]);
    }
    for (int k = 0; k < ROWS; k++) ck_assert_int_eq(count[k], 1);
}

TEST(drawn_by_weight)
{
    enum { ROWS = 20000 };
    tn_tensor *x = tn_arange(ROWS), *w = tn_zeros_of(TN_F64, TN_SHAPE(ROWS));
    for (int i = 0; i < ROWS; i++) tn_set(w, i, i % 4); /* sums: 0, 1, 2, 3 sixths */
    static int64_t count[ROWS], next[ROWS];
    tn_dataset    *d = tn_dataset_new(.x = x, .y = x, .weights = w, .seed = 3);
    double         of[4] = {0};
    ck_assert_int_eq(count_rows(d, count), ROWS);
    ck_assert_int_eq(count_rows(d, next), ROWS);
    ck_assert(memcmp(count, next, sizeof count)); /* another epoch, other draws */
    for (int i = 0; i < ROWS; i++) of[i % 4] += (double)count[i] / ROWS;
    ck_assert_double_eq(of[0], 0);
    for (int i = 1; i < 4; i++) { /* five standard deviations */
        const double share = i / 6.0;
        ck_assert_double_le(fabs(of[i] - share), 5 * sqrt(share * (1 - share) / ROWS));
    }
    tn_dataset *part[1];
    tn_random_split(d, 0, 1, (double[]){1}, part);
    ck_error(TN_EUNSUPPORTED, "tn_random_split: the dataset has .weights; split the original one");
    tn_dataset_free(d);
}

TEST(datasets_that_fail)
{
    tn_tensor  *x = tn_arange(5);
    tn_dataset *d = tn_dataset_new(.x = x), *part[2];
    ck_refused(tn_dataset_new(.x = x, .weights = tn_ones(TN_SHAPE(4))), TN_ESHAPE,
               "tn_dataset_new: .weights is [4], expected [5], one for each row");
    ck_refused(tn_dataset_new(.x = x, .weights = tn_zeros(TN_SHAPE(5))), TN_EINVAL,
               "tn_dataset_new: the weights add up to 0, expected a finite number above 0");
    ck_refused(tn_dataset_new(.x = x, .weights = tn_full(TN_SHAPE(5), -1)), TN_EINVAL,
               "tn_dataset_new: weight 0 is -1, expected a finite number of at least 0");
    part[0] = part[1] = d; /* all results are set, also after an error */
    tn_random_split(d, 0, 2, (double[]){0.5, 0.6}, part);
    ck_assert(!part[0] && !part[1]);
    ck_error(TN_EINVAL, "tn_random_split: the shares add up to 1.1, expected 1");
    tn_random_split(d, 0, 2, (double[]){1.5, -0.5}, part);
    ck_error(TN_EINVAL, "tn_random_split: share 0 is 1.5, expected 0 to 1");
    tn_random_split(NULL, 0, 2, (double[]){0.5, 0.5}, part);
    ck_error(TN_EINVAL, "tn_random_split: needs a dataset, 1 to 64 shares and an array for the results; got 2");
    ck_assert_int_eq(tn_random_split(d, 0, 1, (double[]){1}, part), TN_OK);
    tn_random_split(part[0], 0, 1, (double[]){1}, part + 1);
    ck_error(TN_EUNSUPPORTED, "tn_random_split: the dataset is itself a split; split the original one");
    tn_dataset_free(part[0]), tn_dataset_free(d);
}

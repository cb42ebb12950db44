/* test_generator.c — Philox compared with the published vectors, and the guarantees of the generator: the numbers that
 * a draw uses, for any number of threads, and that a failed draw uses none. */
#include "tests/common/check_main.h"

#include "core/core.h"
#include "core/tensor/random.h"
#include <pthread.h>

/* For loops: Check's own assertions each write to a pipe, whether they hold or not. */
#define EACH(holds) ((holds) ? (void)0 : ck_abort_msg("%s", #holds))

static void refused(const tn_tensor *t, tn_status code)
{
    ck_assert_ptr_null(t);
    ck_assert_int_eq(tn_error(), code);
    tn_clear_error();
}

/* ---- Philox --------------------------------------------------------------------------------------------------- */

TEST(known_answers) /* the kat_vectors of Random123 for philox4x32 with 10 rounds */
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } v[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
             {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
              {0xffffffff, 0xffffffff},
              {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
             {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
              {0xa4093822, 0x299f31d0},
              {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
        uint32_t out[4];
        tn__philox_words(v[i].counter, v[i].key, out);
        for (int k = 0; k < 4; k++) ck_assert_uint_eq(out[k], v[i].out[k]);
    }
    uint32_t out[4];
    tn__philox(0, 0, out);
    for (int k = 0; k < 4; k++) ck_assert_uint_eq(out[k], v[0].out[k]);
}

TEST(seed_and_position_are_key_and_counter)
{
    const uint64_t seed = 0x123456789abcdef0u, position = 0xfedcba9876543210u;
    const uint32_t counter[4] = {0x76543210u, 0xfedcba98u, 0, 0}, key[2] = {0x9abcdef0u, 0x12345678u};
    uint32_t       a[4], b[4];
    tn__philox(seed, position, a);
    tn__philox_words(counter, key, b);
    ck_assert_mem_eq(a, b, sizeof a);
}

TEST(blocks_in_bulk_are_the_same)
{
    static const uint64_t starts[] = {0, 5, 0xfffffff8u, UINT64_MAX - 7}; /* over the carry, and around the end */
    uint32_t              bulk[4 * 100], one[4];
    for (int s = 0; s < 4; s++) {
        for (int64_t n = 0; n <= 100; n += n < 40 ? 1 : 20) {
            memset(bulk, 0, sizeof bulk);
            tn__philox_blocks(42, starts[s], n, bulk);
            for (int64_t i = 0; i < n; i++) {
                tn__philox(42, starts[s] + (uint64_t)i, one);
                ck_assert_mem_eq(bulk + 4 * i, one, sizeof one);
            }
            for (int64_t i = 4 * n; i < 400; i++) EACH(bulk[i] == 0);
        }
    }
}

/* Of 2^64 words exactly the last 2^64 mod n are rejected. */
TEST(what_is_refused)
{
    static const struct {
        uint64_t n, refused;
    } rows[] = {{1, 0},         {2, 0}, {3, 1}, {10, 6}, {(uint64_t)1 << 63, 0}, {(uint64_t)3 << 62, (uint64_t)1 << 62},
                {UINT64_MAX, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const uint64_t n = rows[i].n, last = UINT64_MAX - rows[i].refused;
        ck_assert_uint_eq(tn__below(9, 4, 0, 0, n), 0);
        ck_assert_uint_eq(tn__below(9, 4, 0, last, n), n - 1); /* the end of a whole number of cycles */
        if (!rows[i].refused) continue;
        for (int word = 0; word <= 2; word += 2) { /* then the same words of the next attempt are used */
            uint32_t w[4];
            tn__philox_words((uint32_t[4]){4, 0, 1, 0}, (uint32_t[2]){9, 0}, w);
            ck_assert_uint_le(tn__word64(w + word), last);
            ck_assert_uint_eq(tn__below(9, 4, word, last + 1, n), tn__word64(w + word) % n);
            ck_assert_uint_eq(tn__below(9, 4, word, UINT64_MAX, n), tn__word64(w + word) % n);
        }
    }
}

/* ---- the generator -------------------------------------------------------------------------------------------- */

TEST(generators_are_values)
{
    tn_seed(7);
    ck_assert_uint_eq(tn_current_generator()->seed, 7);
    ck_assert_uint_eq(tn_current_generator()->position, 0);
    tn_normal(TN_SHAPE(10), 0, 1);
    tn_generator saved = *tn_current_generator();
    tn_tensor   *a = tn_uniform(TN_SHAPE(33), 0, 1);
    *tn_current_generator() = saved;
    tn_tensor *b = tn_uniform(TN_SHAPE(33), 0, 1);
    tn_tensor *c = tn_uniform(TN_SHAPE(33), 0, 1);
    ck_assert_mem_eq(tn_data(a), tn_data(b), 33 * sizeof(float));
    ck_assert_mem_ne(tn_data(b), tn_data(c), 33 * sizeof(float));

    tn_generator  mine = {.seed = 99};
    tn_generator *own = tn_current_generator();
    ck_assert_ptr_eq(tn_use_generator(&mine), own);
    ck_assert_ptr_eq(tn_current_generator(), &mine);
    tn_uniform(TN_SHAPE(5), 0, 1);
    ck_assert_uint_eq(mine.position, 2);
    ck_assert_ptr_eq(tn_use_generator(own), &mine);
    ck_assert_ptr_eq(tn_current_generator(), own);
    tn_use_generator(&mine);
    ck_assert_ptr_eq(tn_use_generator(NULL), &mine);
    ck_assert_ptr_eq(tn_current_generator(), own);
}

TEST(a_generator_is_taken_out_while_an_error_stands)
{
    tn_generator  mine = {.seed = 1};
    tn_generator *before = tn_use_generator(&mine);
    tn_raise(TN_EINVAL, "planted");
    tn_use_generator(before);
    ck_assert_ptr_eq(tn_current_generator(), before);
    tn_clear_error();
}

TEST(plain_numbers)
{
    tn_generator g = {.seed = 3, .position = 10};
    uint32_t     w[4];
    tn__philox(3, 10, w);
    ck_assert_uint_eq(tn_random_u32(&g), w[0]);
    ck_assert_uint_eq(g.position, 11);
    tn__philox(3, 11, w);
    ck_assert_double_eq(tn_random_double(&g), (double)((((uint64_t)w[1] << 32 | w[0]) >> 11)) / 9007199254740992.0);
    ck_assert_uint_eq(g.position, 12);
    tn__philox(3, 12, w);
    ck_assert_int_eq(tn_random_below(&g, 1 << 20), (int64_t)(w[0] & 0xfffff));
    ck_assert_uint_eq(g.position, 13);
    ck_assert_int_eq(tn_random_below(&g, 1), 0);
    ck_assert_int_eq(tn_random_below(&g, 0), 0);
    ck_assert_int_eq(tn_random_below(&g, -5), 0);
    ck_assert_uint_eq(g.position, 16);
    for (int i = 0; i < 10000; i++) {
        const double u = tn_random_double(&g);
        EACH(u >= 0 && u < 1);
    }
    tn_seed(5);
    tn_generator current = {.seed = 5};
    ck_assert_uint_eq(tn_random_u32(NULL), tn_random_u32(&current));
    ck_assert_uint_eq(tn_current_generator()->position, 1);
}

/* ---- the blocks that a draw uses, and draws that use none -------------------------------------------------------- */

TEST(positions)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 1000, 4096, 4097, 10001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const int64_t  n = sizes[i];
        const uint64_t quarter = (uint64_t)(n + 3) / 4, half = (uint64_t)(n + 1) / 2;
        tn_generator  *g = tn_current_generator();
        tn_seed(i), tn_uniform(TN_SHAPE(n), 0, 1);
        ck_assert_uint_eq(g->position, quarter);
        tn_seed(i), tn_uniform_of(TN_BF16, TN_SHAPE(n), 0, 1);
        ck_assert_uint_eq(g->position, quarter);
        tn_seed(i), tn_uniform_of(TN_F64, TN_SHAPE(n), 0, 1);
        ck_assert_uint_eq(g->position, half);
        tn_seed(i), tn_normal(TN_SHAPE(n), 0, 1);
        ck_assert_uint_eq(g->position, quarter);
        tn_seed(i), tn_normal_of(TN_F64, TN_SHAPE(n), 0, 1);
        ck_assert_uint_eq(g->position, half);
        tn_seed(i), tn_randint(TN_SHAPE(n), 0, 3 * ((int64_t)1 << 61)); /* rejects every fourth */
        ck_assert_uint_eq(g->position, half);
        tn_seed(i), tn_bernoulli(TN_SHAPE(n), 0.5);
        ck_assert_uint_eq(g->position, half);
        tn_seed(i), tn_permutation(n);
        ck_assert_uint_eq(g->position, half);
    }
}

TEST(elements_come_from_their_own_blocks) /* a long draw starts like a short one; the next follows */
{
    tn_seed(11);
    tn_tensor *all = tn_uniform(TN_SHAPE(5000), -1, 3), *all64 = tn_normal_of(TN_F64, TN_SHAPE(5000), 1, 2);
    tn_seed(11);
    tn_tensor *head = tn_uniform(TN_SHAPE(4096 + 4), -1, 3), *tail = tn_uniform(TN_SHAPE(900), -1, 3);
    tn_tensor *head64 = tn_normal_of(TN_F64, TN_SHAPE(2), 1, 2), *tail64 = tn_normal_of(TN_F64, TN_SHAPE(4998), 1, 2);
    for (int64_t i = 0; i < 5000; i++) {
        EACH(tn_get(all, i) == (i < 4100 ? tn_get(head, i) : tn_get(tail, i - 4100)));
        EACH(tn_get(all64, i) == (i < 2 ? tn_get(head64, i) : tn_get(tail64, i - 2)));
    }
    uint32_t w[4];
    tn__philox(11, 3, w);
    ck_assert_double_eq(tn_get(all, 13), (double)(float)(-1 + w[1] / 4294967296.0 * 4));
}

TEST(a_failed_draw_takes_nothing)
{
    tn_seed(1);
    tn_generator *g = tn_current_generator();
    g->position = 77;
    refused(tn_uniform(TN_SHAPE(4), 2, 1), TN_EINVAL);
    refused(tn_normal(TN_SHAPE(4), 0, -1), TN_EINVAL);
    refused(tn_randint(TN_SHAPE(4), 2, 2), TN_EINVAL);
    refused(tn_bernoulli(TN_SHAPE(4), 2), TN_EINVAL);
    refused(tn_permutation(-1), TN_EINVAL);
    refused(tn_uniform(TN_SHAPE(-1), 0, 1), TN_ESHAPE);

    tn_set_memory_limit(tn_memory_now().live + 1000);
    refused(tn_uniform(TN_SHAPE(100000), 0, 1), TN_ENOMEM);
    refused(tn_permutation(100000), TN_ENOMEM);
    tn_set_memory_limit(0);

    tn_raise(TN_EINVAL, "planted");
    ck_assert_ptr_null(tn_uniform(TN_SHAPE(4), 0, 1));
    ck_assert_ptr_null(tn_normal(TN_SHAPE(4), 0, 1));
    ck_assert_ptr_null(tn_randint(TN_SHAPE(4), 0, 1));
    ck_assert_ptr_null(tn_bernoulli(TN_SHAPE(4), 0.5));
    ck_assert_ptr_null(tn_permutation(4));
    ck_assert_uint_eq(tn_random_u32(NULL), 0);
    ck_assert_double_eq(tn_random_double(NULL), 0);
    ck_assert_int_eq(tn_random_below(NULL, 10), 0);
    tn_seed(5);
    ck_assert_str_eq(tn_error_message(), "planted (9 later calls skipped)");
    tn_clear_error();
    ck_assert_uint_eq(g->position, 77);
    ck_assert_uint_eq(g->seed, 1);
}

typedef struct {
    const char *name;
    tn_tensor *(*draw)(int64_t n);
} drawing;
static tn_tensor    *draw_u32(int64_t n) { return tn_uniform(TN_SHAPE(n), -2, 5); }
static tn_tensor    *draw_u64(int64_t n) { return tn_uniform_of(TN_F64, TN_SHAPE(n), -2, 5); }
static tn_tensor    *draw_u16(int64_t n) { return tn_uniform_of(TN_BF16, TN_SHAPE(n), -2, 5); }
static tn_tensor    *draw_n32(int64_t n) { return tn_normal(TN_SHAPE(n), 1, 2); }
static tn_tensor    *draw_n64(int64_t n) { return tn_normal_of(TN_F64, TN_SHAPE(n), 1, 2); }
static tn_tensor    *draw_n16(int64_t n) { return tn_normal_of(TN_BF16, TN_SHAPE(n), 1, 2); }
static tn_tensor    *draw_int(int64_t n) { return tn_randint(TN_SHAPE(n), -7, 3 * ((int64_t)1 << 61)); }
static tn_tensor    *draw_ber(int64_t n) { return tn_bernoulli_of(TN_U8, TN_SHAPE(n), 0.3); }
static tn_tensor    *draw_per(int64_t n) { return tn_permutation(n); }
static const drawing drawings[] = {{"uniform f32", draw_u32}, {"uniform f64", draw_u64}, {"uniform bf16", draw_u16},
                                   {"normal f32", draw_n32},  {"normal f64", draw_n64},  {"normal bf16", draw_n16},
                                   {"randint", draw_int},     {"bernoulli", draw_ber},   {"permutation", draw_per}};
enum { DRAWINGS = sizeof drawings / sizeof *drawings };

TEST_EACH(threads_do_not_matter, DRAWINGS)
{
    static const int     counts[] = {2, 7};
    static const int64_t sizes[] = {1, 4095, 4097, 100003};
    for (int s = 0; s < 4; s++) {
        tn_set_threads(1), tn_seed(123);
        tn_tensor   *one = drawings[_i].draw(sizes[s]);
        const size_t bytes = (size_t)sizes[s] * tn_dtype_size(tn_dtype_of(one));
        for (int c = 0; c < 2; c++) {
            tn_set_threads(counts[c]), tn_seed(123);
            ck_assert_mem_eq(tn_data(drawings[_i].draw(sizes[s])), tn_data(one), bytes);
        }
    }
}

/* The numbers must never change, on any machine. They were computed by another program, in Python, from the comment at
 * the head of core/tensor/random.c. */
TEST_EACH(frozen, DRAWINGS)
{
    static const double expected[DRAWINGS][5] = {
        {0x1.b77d3ep+0, 0x1.1020d2p+2, 0x1.097584p+0, -0x1.8cce3ap-4, -0x1.74013ap-1},
        {0x1.1020d2202ddf5p+2, -0x1.8cce39bf68a8p-4, -0x1.4ad1ac2dd0058p-3, 0x1.95da71d368158p+0, 0x1.99cb9a84606f2p+0},
        {0x1.b8p+0, 0x1.1p+2, 0x1.0ap+0, -0x1.8cp-4, -0x1.74p-1},
        {0x1.6188bp+1, -0x1.998f02p-2, 0x1.4aafe4p-1, 0x1.c7b758p+1, 0x1.6a0996p-1},
        {0x1.bd4cccd49f878p-1, 0x1.f11d8a40a3507p+0, -0x1.21639211c8ef2p+1, 0x1.7fd2a099244b7p-1, 0x1.2328e29e66252p+0},
        {0x1.62p+1, -0x1.9ap-2, 0x1.4ap-1, 0x1.c8p+1, 0x1.6ap-1},
        {0},
        {0, 1, 1, 0, 0},
        {3, 2, 4, 1, 0},
    };
    static const int64_t integers[5] = {INT64_C(6505098084938826006), INT64_C(5015204962323450309),
                                        INT64_C(4844819313641796267), INT64_C(2530799605287650330),
                                        INT64_C(2571378604151511562)};
    tn_seed(20240229);
    tn_tensor *t = drawings[_i].draw(5);
    for (int64_t k = 0; k < 5; k++) {
        if (drawings[_i].draw == draw_int) ck_assert_int_eq(tn_get_i64(t, k), integers[k]);
        else
            ck_assert_msg(tn_get(t, k) == expected[_i][k], "%s: element %d is %a", drawings[_i].name, (int)k,
                          tn_get(t, k));
    }
}

/* ---- threads ------------------------------------------------------------------------------------------------- */

enum { THREADS = 8 };
typedef struct {
    int      own; /* seed set by the thread itself; -1: none */
    uint64_t first;
} drawer;
static void *draw_one(void *arg)
{
    drawer *d = arg;
    if (d->own >= 0) tn_seed((uint64_t)d->own);
    d->first = (uint64_t)tn_random_u32(NULL) << 32;
    d->first |= tn_random_u32(NULL);
    return NULL;
}
static uint64_t in_thread(int own)
{
    pthread_t t;
    drawer    d = {own, 0};
    ck_assert_int_eq(pthread_create(&t, NULL, draw_one, &d), 0);
    pthread_join(t, NULL);
    return d.first;
}
static uint64_t here(void)
{
    drawer d = {-1, 0};
    draw_one(&d);
    return d.first;
}

TEST(threads_draw_other_numbers)
{
    uint64_t first[2][THREADS + 1];
    for (int seed = 0; seed < 2; seed++) {
        tn_seed((uint64_t)seed);
        for (int i = 0; i < THREADS; i++) first[seed][i] = in_thread(-1);
        first[seed][THREADS] = here(); /* threads leave the main thread's numbers unchanged */
        tn_seed((uint64_t)seed);
        ck_assert_uint_eq(here(), first[seed][THREADS]);
        for (int i = 0; i < THREADS; i++) ck_assert_uint_eq(in_thread(-1), first[seed][i]); /* from the seed again */
    }
    const uint64_t *all = first[0];
    for (int i = 0; i < 2 * THREADS + 2; i++) {
        for (int j = 0; j < i; j++) ck_assert_uint_ne(all[i], all[j]);
    }
}

TEST(a_thread_chooses_its_seed)
{
    tn_seed(5);
    const uint64_t five = here();
    tn_seed(1);
    ck_assert_uint_eq(in_thread(5), five); /* the numbers of the main thread with that seed */
    const uint64_t derived = in_thread(-1);
    tn_seed(1);
    in_thread(5);
    ck_assert_uint_eq(in_thread(-1), derived); /* and the other threads do not notice */
    tn_generator own = {.seed = 9}, *before = tn_use_generator(&own);
    tn_seed(7);
    tn_use_generator(before);
    tn_seed(1);
    ck_assert_uint_eq(in_thread(-1), derived); /* a seed of another generator is not the process's */
}

/* ---- errors --------------------------------------------------------------------------------------------------- */

TEST(errors)
{
    const tn_shape s = TN_SHAPE(2, 2);
    ck_refused(tn_uniform(s, 2, 1), TN_EINVAL, "tn_uniform: low 2 is above high 1");
    ck_refused(tn_uniform(s, NAN, 1), TN_EINVAL, "tn_uniform: low is nan, but must be finite");
    ck_refused(tn_uniform_of(TN_F64, s, 0, INFINITY), TN_EINVAL, "tn_uniform_of: high is inf, but must be finite");
    ck_refused(tn_uniform(s, 0, 1e39), TN_EINVAL, "tn_uniform: high 1e+39 is too large for f32");
    ck_refused(tn_uniform_of(TN_F64, s, -1e308, 1e308), TN_EINVAL,
               "tn_uniform_of: from low -1e+308 to high 1e+308 is more than an f64 can hold");
    ck_refused(tn_uniform_of(TN_I64, s, 0, 5), TN_EDTYPE,
               "tn_uniform_of: the result must be f32, f64 or bf16, not i64; for integers use tn_randint");
    refused(tn_uniform_of((tn_dtype)99, s, 0, 5), TN_EDTYPE);
    ck_refused(tn_normal(s, 0, -1), TN_EINVAL, "tn_normal: std is -1, but must not be negative");
    ck_refused(tn_normal(s, 0, NAN), TN_EINVAL, "tn_normal: std is nan, but must be finite");
    ck_refused(tn_normal_of(TN_BOOL, s, 0, 1), TN_EDTYPE,
               "tn_normal_of: the result must be f32, f64 or bf16, not bool; for integers use tn_randint");
    ck_refused(tn_randint(s, 5, 5), TN_EINVAL, "tn_randint: low 5 must be less than high 5, which is excluded");
    ck_refused(tn_bernoulli(s, 1.5), TN_EINVAL, "tn_bernoulli: p is 1.5, but must be from 0 to 1");
    ck_refused(tn_bernoulli_of(TN_BOOL, s, NAN), TN_EINVAL, "tn_bernoulli_of: p is nan, but must be from 0 to 1");
    ck_refused(tn_permutation(-2), TN_EINVAL, "tn_permutation: n is -2, but must not be negative");
    refused(tn_permutation(INT64_MAX), TN_ESHAPE);
    ck_refused(tn_normal(TN_SHAPE(2, -1), 0, 1), TN_ESHAPE, "tn_normal: [2, -1] has a negative size in dim 1");
}

/* test_surface.c — weights as a vector, filter-normalised directions, the loss over a plane with any number of threads
 * and resumed, the path of a training run; probes and CKA. */
#include "extras.h"
#include "tests/common/check_main.h"

static tn_sequential *net(void)
{
    tn_sequential *m = tn_sequential_new();
    tn_append(m, tn_linear_new(.in = 3, .out = 5));
    tn_append(m, tn_linear_new(.in = 5, .out = 2));
    return m;
}

TEST(a_vector_and_back)
{
    tn_sequential *m = net();
    tn_tensor     *v = tn_weights_vector(m), *x = tn_normal(TN_SHAPE(4, 3), 0, 1), *y = tn_call(m, x);
    ck_assert_int_eq(tn_numel(v), 3 * 5 + 5 + 5 * 2 + 2);
    ck_assert(tn_weights_set(m, tn_zeros_like(v)) == TN_OK);
    ck_assert_double_eq(tn_item(tn_norm(tn_call(m, x))), 0);
    ck_assert(tn_weights_set(m, v) == TN_OK);
    ck_assert(tn_allclose(tn_call(m, x), y, 0, 0));
    tn_weights_set(m, tn_zeros(TN_SHAPE(3)));
    ck_error(TN_ESHAPE, "tn_weights_set: the vector is [3], but the model has [32] parameters");
    tn_free(m);
}

TEST(filters_are_as_long_as_the_model_s)
{
    tn_sequential *m = net();
    tn_tensor     *d = tn_weights_direction(m, 3), *v = tn_weights_vector(m), *other = tn_weights_direction(m, 4);
    for (int64_t row = 0; row < 5; row++)
        ck_assert_double_eq_tol(tn_item(tn_norm(tn_narrow(d, 0, 3 * row, 3))),
                                tn_item(tn_norm(tn_narrow(v, 0, 3 * row, 3))), 1e-5);
    ck_assert_double_eq(tn_item(tn_norm(tn_narrow(d, 0, 15, 5))), 0); /* 0 for a bias */
    ck_assert(tn_allclose(d, tn_weights_direction(m, 3), 0, 0) && !tn_allclose(d, other, 0, 1e-3));
    tn_free(m);
}

/* |w - 1|², whose surface along two directions is known. */
static tn_tensor *far_from_one(void *m, void *user)
{
    (void)user;
    return tn_sum(tn_square(tn_add_scalar(tn_weights_vector(m), -1)));
}
static tn_tensor *unit(int64_t n, int64_t at)
{
    tn_tensor *d = tn_zeros(TN_SHAPE(n));
    tn_set(d, at, 1);
    return d;
}
TEST(a_known_surface)
{
    tn_sequential *m = net();
    const int64_t  n = tn_count(m);
    double         z[5 * 4], again[5 * 4];
    tn_weights_set(m, tn_ones(TN_SHAPE(n)));
    for (int threads = 1; threads <= 2; threads++) {
        double *to = threads == 1 ? z : again;
        tn_set_threads(threads);
        for (int i = 0; i < 20; i++) to[i] = NAN;
        tn_surface_args a = {.model = m,
                             .loss = far_from_one,
                             .x = unit(n, 0),
                             .y = unit(n, 20),
                             .nx = 5,
                             .ny = 4,
                             .x0 = -2,
                             .x1 = 2,
                             .y0 = 0,
                             .y1 = 3,
                             .values = to};
        a.most = threads == 2; /* one row per call, as if resumed */
        for (int k = 0; k < (threads == 2 ? 4 : 1); k++) ck_assert(tn_surface_run(a) == TN_OK);
    }
    tn_set_threads(0);
    fine();
    for (int i = 0; i < 20; i++) {
        ck_assert_double_eq_tol(z[i], (i % 5 - 2) * (i % 5 - 2) + (i / 5) * (i / 5), 1e-5);
        ck_assert(!memcmp(&z[i], &again[i], sizeof z[i]));
    }
    ck_assert(tn_allclose(tn_weights_vector(m), tn_ones(TN_SHAPE(n)), 0, 0)); /* the model is unchanged */
    tn_surface(.model = m, .loss = far_from_one, .x = unit(3, 0), .nx = 5, .values = z);
    ck_error(TN_ESHAPE, "tn_surface: the direction .x must be [32], one element per parameter");
    tn_surface(.model = m, .loss = far_from_one, .nx = 5, .values = z);
    ck_error(TN_EINVAL, "tn_surface: .x is missing");
    tn_free(m);
}

/* A random loss: it uses the caller's generator, not the thread's, and the same numbers at each point, so that a
 * direction of zeros gives a constant loss. */
static tn_tensor *dropped_out(void *m, void *user) { return (void)m, tn_sum(tn_dropout(user, 0.5)); }
TEST(a_loss_that_draws)
{
    tn_sequential *m = net();
    tn_tensor     *x = tn_arange(100), *still = tn_zeros(TN_SHAPE(tn_count(m)));
    double         z[2 * 8];
    tn_seed(7);
    for (int threads = 1; threads <= 4; threads++) {
        tn_set_threads(threads);
        for (int i = 0; i < 16; i++) z[i] = NAN;
        tn_surface(.model = m, .loss = dropped_out, .user = tn_to(x, TN_F32), .x = still, .y = still, .nx = 2, .ny = 8,
                   .values = z);
        const double want = tn_item(tn_sum(tn_dropout(tn_to(x, TN_F32), 0.5)));
        for (int i = 0; i < 16; i++) ck_assert_double_eq(z[i], want);
        tn_seed(7 + (uint64_t)threads);
    }
    tn_free(m);
}

TEST(the_way_of_a_training)
{
    tn_tensor *v[6], *d, *p;
    for (int i = 0; i < 6; i++) /* along (3, 4, 0) and a little of (0, 0, 1) */
        v[i] = tn_add(tn_mul_scalar(tn_reshape(tn_from_data(TN_F32, TN_SHAPE(3), (float[]){3, 4, 0}), TN_SHAPE(3)), i),
                      tn_mul_scalar(unit(3, 2), 0.3 * (i % 2)));
    ck_assert(tn_weights_path(6, v, &d, &p) == TN_OK);
    ck_assert_double_eq_tol(fabs(tn_get(d, 1)), 0.8, 1e-3);
    ck_assert_double_eq_tol(fabs(tn_get(d, 5)), 1, 1e-3);
    ck_assert_double_eq_tol(fabs(tn_get(p, 0)), 25, 1e-2);
    ck_assert_double_eq_tol(tn_get(p, 10), 0, 1e-6); /* the last vector is the origin of the plane */
    tn_tensor *none[] = {d, p};
    tn_weights_path(2, v, none, none + 1);
    ck_assert(!none[0] && !none[1]); /* results are set, also after an error */
    ck_error(TN_EINVAL, "tn_weights_path: n must be from 3 to 1024, and vectors, directions and places not NULL");
    tn_tensor *far[6]; /* the same, scaled so that squares overflow f32 */
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 6; i++) far[i] = tn_mul_scalar(v[i], k ? 1e25 : 1e-25);
        tn_tensor *e, *q;
        ck_assert(tn_weights_path(6, far, &e, &q) == TN_OK);
        for (int i = 0; i < 6; i++) ck_assert_double_eq_tol(tn_get(e, i), tn_get(d, i), 1e-4);
    }
    for (int i = 0; i < 6; i++) far[i] = tn_mul_scalar(v[1], i);
    tn_weights_path(6, far, &d, &p);
    ck_error(TN_ENUMERIC, "tn_weights_path: the vectors lie on one line and span no plane; pass more or other vectors");
    for (int i = 0; i < 6; i++) far[i] = v[1];
    tn_weights_path(6, far, &d, &p);
    ck_error(TN_ENUMERIC, "tn_weights_path: all vectors are equal");
}

TEST(probes_and_alignment)
{
    tn_tensor *x = tn_normal(TN_SHAPE(300, 6), 0, 1), *test = tn_normal(TN_SHAPE(200, 6), 0, 1);
    tn_tensor *y = tn_argmax(tn_narrow(x, 1, 0, 3), -1, false), *other = tn_argmax(tn_narrow(test, 1, 0, 3), -1, false);
    const double right = tn_probe(.x = x, .y = y, .test_x = test, .test_y = other, .steps = 200);
    const double none =
        tn_probe(.x = x, .y = tn_randint(TN_SHAPE(300), 0, 3), .test_x = test, .test_y = other, .steps = 200);
    fine();
    ck_assert_double_gt(right, 0.88);
    ck_assert_double_lt(none, 0.5);
    ck_assert_double_eq(right, tn_probe(.x = x, .y = y, .test_x = test, .test_y = other, .steps = 200));
    ck_assert_double_gt(tn_probe(.x = x, .y = y, .test_x = test, .test_y = other, .steps = 200, .hidden = 16), 0.88);
    /* rows without a class are not counted, and their vectors have no effect */
    tn_tensor *more_x = tn_cat(0, x, tn_full(TN_SHAPE(100, 6), 1e6)),
              *more = tn_cat(0, test, tn_full(TN_SHAPE(99, 6), 1e6)),
              *more_y = tn_cat(0, y, tn_full_of(TN_I64, TN_SHAPE(100), -100)),
              *more_other = tn_cat(0, other, tn_full_of(TN_I64, TN_SHAPE(99), -100));
    ck_assert_double_eq(right, tn_probe(.x = more_x, .y = more_y, .test_x = more, .test_y = more_other, .steps = 200));
    /* any scale of the vectors, but not constant columns */
    tn_tensor *small = tn_mul_scalar(x, 1e-12), *still = tn_mul_scalar(test, 1e-12);
    ck_assert_double_eq_tol(right, tn_probe(.x = small, .y = y, .test_x = still, .test_y = other, .steps = 200), 0.02);
    ck_assert(isnan(tn_probe(.x = x, .y = tn_full_of(TN_I64, TN_SHAPE(300), -100), .test_x = test, .test_y = other)));
    ck_error(TN_EINVAL, "tn_probe: .y has no class of at least 0");
    ck_assert(isnan(tn_probe(.x = tn_full_like(x, NAN), .y = y, .test_x = test, .test_y = other)));
    ck_error(TN_ENUMERIC, "tn_probe: .x or .test_x has values that are not finite");
    ck_assert(isnan(tn_cka(x, tn_ones(TN_SHAPE(300, 2)))));
    ck_error(TN_ENUMERIC, "tn_cka: the rows of one tensor are all equal, or not finite");
    ck_assert(isnan(tn_probe(.x = x, .y = other, .test_x = test, .test_y = other)));
    ck_error(TN_ESHAPE, "tn_probe: .x must be [N, D] and .y i64 [N], got [300, 6] and [200]");
    /* equal up to rotation and scale; and different ones */
    tn_tensor *turn = tn_eye(6, 6);
    ck_assert_double_eq_tol(tn_cka(x, tn_mul_scalar(tn_matmul(x, tn_flip(turn, TN_DIMS(0))), 3)), 1, 1e-9);
    ck_assert_double_lt(tn_cka(x, tn_normal(TN_SHAPE(300, 6), 0, 1)), 0.1);
}

/* test_gradcheck.c — the test of tn_gradcheck, on which the tests of all ops depend: it finds planted mistakes and
 * names their places, and reports none for correct gradients. */
#include "autograd/autograd.h"
#include "core/core.h"
#include "tests/common/check_main.h"

/* y = a² b with a backward that has one mistake. */
typedef enum { NOTHING, FACTOR, SIGN, ELEMENT, MISSING, SWAPPED, NOT_A_NUMBER, SECOND } mistake;

static bool like_input(tn_ctx *c) { return tn_infer_like(c, 0, 0); }
static void product(int64_t n, void *const *y, const void *const *x, const void *args)
{
    const double *a = x[0], *b = x[1];
    (void)args;
    for (int64_t i = 0; i < n; i++) ((double *)y[0])[i] = a[i] * a[i] * b[i];
}
static void forward(tn_ctx *c) { tn_op_map(NULL, product, 1, c->out, 2, c->in, NULL); }

static void backward(tn_back *b)
{
    tn_tensor *x = b->in[0], *y = b->in[1], *gx = tn_mul_scalar(tn_mul(x, y), 2), *gy = tn_square(x);
    switch (*(const mistake *)b->args) {
    case NOTHING: break;
    case FACTOR: gy = tn_mul_scalar(gy, 1 + 1e-5); break;
    case SIGN: gx = tn_neg(gx); break;
    case ELEMENT: {
        tn_scope s = tn_no_grad_begin();
        gy = tn_clone(gy);
        tn_set_at(gy, TN_SHAPE(1, 2), tn_get_at(gy, TN_SHAPE(1, 2)) + 1e-4);
        gy = tn_scope_return(s, gy);
        break;
    }
    case MISSING: gx = NULL; break;
    case SWAPPED: gy = tn_mul_scalar(tn_mul(x, y), 2), gx = tn_square(x); break;
    case NOT_A_NUMBER: gx = tn_mul_scalar(gx, (double)NAN); break;
    case SECOND: gx = tn_detach(gx); break; /* correct, but off the tape */
    }
    b->gx[0] = gx ? tn_mul(b->gy[0], gx) : NULL, b->gx[1] = tn_mul(b->gy[0], gy);
}

static const tn_op op = {.size = sizeof(tn_op),
                         .name = "planted",
                         .inputs = 2,
                         .saves = TN_SAVE_IN(0) | TN_SAVE_IN(1),
                         .args_size = sizeof(mistake),
                         .infer = like_input,
                         .forward = forward,
                         .backward_ops = backward};

static tn_tensor *planted(tn_tensor *const *in, int n, void *m) { return tn_op_apply(&op, m, n, in); }

static const struct {
    mistake     m;
    bool        second;
    const char *says; /* the start of the message; NULL: no error */
} rows[] = {
    {NOTHING, false, NULL},
    {NOTHING, true, NULL},
    {FACTOR, false, "planted: gradient of input 1 at [0, 0]: analytic "},
    {SIGN, false, "planted: gradient of input 0 at [0, 0]: analytic "},
    {ELEMENT, false, "planted: gradient of input 1 at [1, 2]: analytic "},
    {MISSING, false, "planted: gradient of input 0 at [0, 0]: analytic 0, "},
    {SWAPPED, false, "planted: gradient of input 0 at [0, 0]: analytic "},
    {NOT_A_NUMBER, false, "planted: gradient of input 0 at [0, 0]: analytic "},
    {SECOND, false, NULL},
    {SECOND, true, "second derivative of planted: gradient of input 0 at [0, 0]: analytic "},
};
enum { ROWS = sizeof rows / sizeof *rows };

TEST_EACH(mistakes_are_found, ROWS)
{
    mistake    m = rows[_i].m;
    tn_tensor *in[2] = {tn_uniform_of(TN_F64, TN_SHAPE(2, 3), 0.5, 2), tn_uniform_of(TN_F64, TN_SHAPE(2, 3), 0.5, 2)};
    const tn_status s =
        tn_gradcheck(planted, .count = 2, .inputs = in, .user = &m, .name = "planted", .second = rows[_i].second);
    if (!rows[_i].says) {
        ck_assert_msg(s == TN_OK, "%s", tn_error_message());
        return;
    }
    ck_assert_int_eq(s, TN_ENUMERIC);
    const char *from = strstr(rows[_i].says, ": analytic ") + strlen(": analytic ");
    ck_assert_msg(!strncmp(tn_error_message(), rows[_i].says, (size_t)(from - rows[_i].says)), "%s",
                  tn_error_message());
    ck_assert_ptr_nonnull(strstr(tn_error_message(), ", numeric "));
    ck_assert_ptr_nonnull(strstr(tn_error_message(), " (relative "));
    tn_clear_error();
}

/* The relative difference in the message: a factor of 1 + 1e-5 is a difference of 1e-5. */
TEST(how_far_it_is_off)
{
    mistake    m = FACTOR;
    tn_tensor *in[2] = {tn_full_of(TN_F64, TN_SHAPE(1), 1), tn_full_of(TN_F64, TN_SHAPE(1), 1)};
    double     analytic, numeric, relative;
    tn_gradcheck(planted, .count = 2, .inputs = in, .user = &m);
    ck_assert_int_eq(sscanf(tn_error_message(),
                            "function: gradient of input 1 at [0]: analytic %lf, numeric %lf (relative %lf)", &analytic,
                            &numeric, &relative),
                     3);
    ck_assert_double_eq_tol(analytic / numeric, 1 + 1e-5, 1e-8);
    ck_assert_double_eq_tol(relative, 1e-5, 1e-6);
    tn_clear_error();
    ck_assert_int_eq(tn_gradcheck(planted, .count = 2, .inputs = in, .user = &m, .rtol = 1e-4),
                     TN_OK); /* within the tolerance */
}

static tn_tensor *drawing(tn_tensor *const *in, int n, void *user)
{
    return (void)n, (void)user, tn_dropout(tn_square(in[0]), 0.5);
}
static tn_tensor *chosen(tn_tensor *const *in, int n, void *user)
{
    return (void)n, (void)user,
           tn_add(tn_sum(tn_index_select(in[0], 0, in[1])), tn_sum(tn_mul(tn_detach(in[2]), in[2])));
}

/* Calls that would compare nothing are rejected. */
static tn_tensor *of_one(tn_tensor *const *x, int n, void *user) { return (void)n, (void)user, tn_square(x[0]); }
TEST(what_it_refuses)
{
    tn_tensor *x = tn_ones_of(TN_F64, TN_SHAPE(2));
    const struct {
        double step, atol, rtol;
    } bad[] = {{0, 1e-8, 1e-6}, {NAN, 1e-8, 1e-6}, {1, 1e-8, 1e-6}, {1e-3, -1, 1e-6}, {1e-3, 1e-8, NAN}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tn_gradcheck(of_one, .input = x, .step = bad[i].step, .atol = bad[i].atol, .rtol = bad[i].rtol);
        ck_error(TN_EINVAL, "tn_gradcheck: .step must be between 0 and 1, .atol and .rtol not negative");
    }
    tn_gradcheck(of_one, .input = x, .inputs = &x, .count = 1);
    ck_error(TN_EINVAL, "tn_gradcheck: give its inputs as .input or as .count and .inputs, not both");
}

TEST(what_surrounds_it_stays)
{
    tn_tensor *x = tn_uniform(TN_SHAPE(20), 1, 2); /* f32 inputs: checked as f64 copies */
    tn_random_u32(NULL);
    const tn_generator before = *tn_current_generator();
    tn_scope           s = tn_no_grad_begin();
    ck_assert_int_eq(tn_gradcheck(drawing, .input = x, .second = true), TN_OK); /* draws the same numbers each time */
    ck_assert(!tn_grad_enabled());
    tn_scope_end(s);
    ck_assert_mem_eq(&before, tn_current_generator(), sizeof before);
    ck_assert(!tn_needs_grad(x) && !tn_grad(x));
    /* integers are passed unchanged; of the others those that require grad are checked, or all if none does */
    tn_tensor *in[3] = {tn_requires_grad(tn_ones(TN_SHAPE(3))), tn_arange(2), tn_ones(TN_SHAPE(2))};
    ck_assert_int_eq(tn_gradcheck(chosen, .count = 3, .inputs = in), TN_OK);
    in[0] = tn_ones(TN_SHAPE(3));
    ck_assert_int_eq(tn_gradcheck(chosen, .count = 3, .inputs = in), TN_ENUMERIC);
    ck_assert_msg(!strncmp(tn_error_message(), "function: gradient of input 2 at [0]: ", 38), "%s", tn_error_message());
    tn_clear_error();
}

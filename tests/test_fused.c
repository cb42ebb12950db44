/* test_fused.c — ops that do in one pass what several others do: the same as those, to the bit or as near as the order
 * of sums allows, with any options, and nothing kept that is promised not to be. */
#include "core/internal.h"
#include "tenon.h"
#include "tests/check_main.h"

#include <math.h>
#include <string.h>

static tn_tensor *leaf(tn_tensor *x)
{
    tn_requires_grad(x);
    return x;
}
static void same(const tn_tensor *a, const tn_tensor *b, const char *what)
{
    ck_assert_msg(a && b && tn_shape_equal(a->l.shape, b->l.shape) && a->dtype == b->dtype, "%s: %s", what,
                  tn_error_message());
    ck_assert_msg(!memcmp(tn__ptr(a), tn__ptr(b), (size_t)tn_numel(a) * tn__dtype_bytes(a->dtype)), "%s", what);
}

/* ---- add_dropout_norm -------------------------------------------------------------------------------------------- */

/* Loop: the number type, and whether the sum is used too. */
START_TEST(residual)
{
    const tn_dtype dt = _i % 2 ? TN_F64 : TN_F32;
    const double   p = _i / 4 ? 0 : 0.3;
    tn_seed(5);
    const tn_shape     s = TN_SHAPE(7, 5, 37);
    tn_tensor         *in[] = {leaf(tn_normal_of(dt, s, 0, 1)), leaf(tn_normal_of(dt, s, 0, 1)),
                               leaf(tn_normal_of(dt, TN_SHAPE(37), 1, 1)), leaf(tn_normal_of(dt, TN_SHAPE(37), 0, 1))};
    tn_tensor         *c = tn_normal_of(dt, s, 0, 1), *sum = NULL, *one[4], *other[4];
    const tn_generator before = *tn_current_generator();
    tn_tensor         *y = tn_add_dropout_norm(in[0], in[1], in[2], in[3], .p = p, .eps = 1e-5, .sum = &sum);
    const tn_generator after = *tn_current_generator();
    *tn_current_generator() = before;
    tn_tensor *sum2 = tn_add(in[0], tn_dropout(in[1], p)), *y2 = tn_layer_norm(sum2, in[2], in[3], 1e-5);
    ck_assert(after.position == tn_current_generator()->position && after.seed == before.seed);
    same(sum, sum2, "the sum"), same(y, y2, "the norm");
    if (_i & 2) y = tn_add(tn_square(y), tn_mul(sum, c)), y2 = tn_add(tn_square(y2), tn_mul(sum2, c));
    tn_grad_of(y, .seed = c, .count = 4, .wrt = in, .grad = one);
    tn_grad_of(y2, .seed = c, .count = 4, .wrt = in, .grad = other);
    for (int i = 0; i < 4; i++) same(one[i], other[i], "a gradient");
}
END_TEST

START_TEST(only_the_sum_is_used)
{
    tn_tensor *x = leaf(tn_normal(TN_SHAPE(3, 9), 0, 1)), *h = leaf(tn_normal(TN_SHAPE(3, 9), 0, 1)), *sum, *g[2];
    ck_assert(tn_add_dropout_norm(x, h, NULL, NULL, .p = 0.5, .eps = 1e-5, .sum = &sum));
    tn_grad_of(tn_sum(sum), .count = 2, .wrt = ((tn_tensor *[]){x, h}), .grad = g);
    for (int64_t i = 0; i < 27; i++) {
        ck_assert(tn_get(g[0], i) == 1);
        const double kept = tn_get(g[1], i);
        ck_assert(kept == 0 || kept == 2);
        ck_assert(tn_get(sum, i) == (double)((float)tn_get(x, i) + (float)(tn_get(h, i) * kept)));
    }
}
END_TEST

static tn_tensor *seen(tn_module *m, tn_tensor *x, void *user)
{
    (void)m;
    ++*(int *)user;
    return x;
}

/* A layer whose parts are watched takes them one by one: the same bits. Loop: which norm comes first. */
START_TEST(hooks_see_the_parts)
{
    int                           calls = 0;
    tn_transformer_encoder_layer *m =
        tn_transformer_encoder_layer_new(.dim = 12, .heads = 3, .ff = 20, .dropout = 0.2, .norm_first = _i);
    tn_tensor *x = tn_normal(TN_SHAPE(2, 5, 12), 0, 1);
    tn_train(m, true);
    tn_seed(3);
    tn_tensor *y = tn_transformer_encoder_layer_forward(m, x);
    tn_module_before(m->norm1, seen, &calls), tn_module_before(m->norm2, seen, &calls);
    tn_module_before(m->dropout1, seen, &calls), tn_module_before(m->dropout2, seen, &calls);
    tn_seed(3);
    same(y, tn_transformer_encoder_layer_forward(m, x), "with hooks");
    ck_assert_int_eq(calls, 4);
    tn_free(m);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fused");
    TCase *c = tn_tcase(s, "rows");
    tcase_add_loop_test(c, residual, 0, 8);
    tcase_add_test(c, only_the_sum_is_used);
    tcase_add_loop_test(c, hooks_see_the_parts, 0, 2);
    return tn_check_main(s);
}

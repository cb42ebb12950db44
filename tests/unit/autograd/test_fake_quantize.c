/* test_fake_quantize.c — rounding as products in int8 do: their values bit for bit, and the gradient, which passes
 * straight through. */
#include "autograd/autograd.h"
#include "core/kernels/kernels.h"
#include "core/q8.h"
#include "tests/common/check_main.h"

/* Rows of any width and size, as the kernel that rounds a product's input reads them. */
TEST(input)
{
    const tn__int8_kernels *kernels = tn__int8(tn__kernels());
    uint8_t                 q[1 << 10];
    float                   mixed[300], want[300];
    for (int64_t n = 1; n < 300; n += n < 20 ? 1 : 37) {
        tn_tensor   *x = tn_mul(tn_normal(TN_SHAPE(5, n), 0, 1), tn_exp(tn_normal(TN_SHAPE(5, 1), 0, 30)));
        tn_tensor   *y = tn_fake_quantize(x);
        const float *from = tn_data(x), *to = tn_data(y);
        fine();
        for (int64_t i = 0; i < 5; i++) {
            const float scale = kernels->quantize(n, from + i * n, q);
            for (int64_t k = 0; k < n; k++) mixed[k] = (float)(q[k] - 64) * scale;
            tn__int8_mix(n, mixed, want, true);
            for (int64_t k = 0; k < n; k++) ck_assert(to[i * n + k] == want[k]);
        }
    }
}

TEST(weights)
{
    for (int64_t n = 1; n < 70; n += 1 + n / 5) {
        tn_tensor *w = tn_mul(tn_normal(TN_SHAPE(17, n), 0, 1), tn_exp(tn_normal(TN_SHAPE(17, 1), 0, 5)));
        ck_assert(tn_allclose(tn_fake_quantize_weight(w), tn_unpack(tn_int8_pack(w)), 0, 0));
        fine();
    }
}

/* The product of rounded factors is the product in int8, except for the rounding of its sums. */
TEST(product)
{
    tn_tensor *x = tn_normal(TN_SHAPE(7, 96), 0, 2), *w = tn_normal(TN_SHAPE(33, 96), 0, 1);
    tn_tensor *y = tn_linear(tn_fake_quantize(x), tn_fake_quantize_weight(w), NULL);
    ck_assert(tn_allclose(y, tn_linear(x, tn_int8_pack(w), NULL), 1e-5, 1e-5));
}

TEST(special_values)
{
    tn_tensor *x = tn_from_data(TN_F32, TN_SHAPE(4, 2),
                                (float[]){1, NAN, INFINITY, 0, 0x1p-101f, -0x1p-102f, -127, 0.5f}),
              *y = tn_fake_quantize(x);
    for (int i = 0; i < 4; i++) ck_assert(isnan(tn_get(y, i)));
    ck_assert(tn_get(y, 4) == 0 && tn_get(y, 5) == 0);
    ck_assert(tn_get(y, 6) == (double)(-63 * (127.5f / 63)) && tn_get(y, 7) == 0); /* both mixed ones are -63 */
}

TEST_EACH(straight_through, 2)
{
    const tn_dtype dt = _i ? TN_F64 : TN_F32;
    for (int weight = 0; weight < 2; weight++) {
        tn_tensor *x = tn_requires_grad(tn_uniform_of(dt, TN_SHAPE(3, 4, 21), -2, 2)), *gx;
        tn_tensor *gy = tn_uniform_of(dt, TN_SHAPE(3, 4, 21), -1, 1);
        tn_tensor *y = weight ? tn_fake_quantize_weight(x) : tn_fake_quantize(x);
        tn_grad_of(y, 1, &x, &gx, .seed = gy);
        fine();
        ck_assert(tn_same_bits(gx, gy));
        /* at most half a step: |x| <= 2 in blocks of 16, so s <= 16 * 2 / 63; of weights 16 s, s <= 4 * 2 / 256 */
        ck_assert(!tn_same_bits(y, x) && tn_allclose(y, x, 0, 0.26));
        /* in the chain: of Σ y², 2 y, and its gradient again */
        tn_tensor *one[1], *two[1];
        tn_grad_of(tn_sum(tn_square(tn_fake_quantize(x))), 1, &x, one, .create_graph = true);
        ck_assert(tn_allclose(one[0], tn_mul_scalar(tn_fake_quantize(x), 2), 1e-6, 1e-6));
        tn_grad_of(tn_sum(one[0]), 1, &x, two);
        ck_assert(tn_allclose(two[0], tn_full_like(x, 2), 1e-6, 1e-6));
        fine();
    }
}

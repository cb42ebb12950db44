/* test_rope.c — rotary positions against plain loops: both kinds of pairs, every scaling as Hugging Face's transformers
 * computes it, positions from an offset and from a tensor; the same bits for a position in any context. */
#include "autograd/autograd.h"
#include "tests/common/check_main.h"

enum { B = 2, H = 3, T = 5, D = 8, R = 6 };

/* As in modeling_rope_utils.py: inv_freq first, then its scaling. */
static double frequency(tn_rope_config c, int i, double positions)
{
    const double pi = acos(-1.0);
    double       base = c.theta;
    if (c.scaling == TN_ROPE_DYNAMIC) {
        const double n = positions > (double)c.trained ? positions : (double)c.trained;
        base *= pow((c.factor * n / (double)c.trained) - (c.factor - 1), (double)c.dim / (double)(c.dim - 2));
    }
    const double inv = 1 / pow(base, 2.0 * i / (double)c.dim);
    if (c.scaling == TN_ROPE_LINEAR) return inv / c.factor;
    if (c.scaling != TN_ROPE_LLAMA3) return inv;
    const double wave = 2 * pi / inv, low = (double)c.trained / c.low, high = (double)c.trained / c.high;
    if (wave < high) return inv;
    if (wave > low) return inv / c.factor;
    const double smooth = ((double)c.trained / wave - c.low) / (c.high - c.low);
    return (1 - smooth) * inv / c.factor + smooth * inv;
}

static void check(tn_rope_config c, int64_t offset)
{
    tn_tensor *x = tn_uniform_of(TN_F64, TN_SHAPE(B, T, H, D), -1, 1);
    c.dim = R, c.dtype = TN_F64;
    tn_tensor *y = tn_rope(tn_transpose(x, 1, 2), tn_rope_angles(c, offset, T), c.interleaved);
    fine();
    for (int64_t n = 0; n < (int64_t)B * H * T * D; n++) {
        const int64_t d = n % D, t = n / D % T, h = n / D / T % H, b = n / D / T / H;
        double        want = tn_get_at(x, TN_SHAPE(b, t, h, d));
        if (d < R) {
            const int64_t pair = c.interleaved ? d / 2 : d % (R / 2), second = c.interleaved ? d % 2 : d / (R / 2);
            const int64_t other = c.interleaved ? d ^ 1 : (d + R / 2) % R;
            const double  phi = (double)(offset + t) * frequency(c, (int)pair, (double)(offset + T));
            const double  beside = tn_get_at(x, TN_SHAPE(b, t, h, other));
            want = want * cos(phi) + (second ? beside : -beside) * sin(phi);
        }
        ck_assert_double_eq_tol(tn_get(y, n), want, 1e-12);
    }
}

TEST(loops)
{
    const tn_rope_config kinds[] = {
        TN_ROPE(.dim = R),
        TN_ROPE(.interleaved = true),
        TN_ROPE(.theta = 500),
        TN_ROPE(.scaling = TN_ROPE_LINEAR, .factor = 4),
        TN_ROPE(.scaling = TN_ROPE_DYNAMIC, .factor = 2, .trained = 8, .interleaved = true),
        TN_ROPE(.theta = 50, .scaling = TN_ROPE_LLAMA3, .factor = 8, .trained = 64),
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (int64_t offset = 0; offset < 40; offset += 13) check(kinds[i], offset);
}

/* One position alone, several, and given by a tensor: the same bits. */
TEST(positions)
{
    const tn_rope_config c = TN_ROPE(.dim = R);
    tn_tensor *all = tn_rope_angles(c, 0, 40), *at = tn_from_data(TN_I64, TN_SHAPE(2, 2), (int64_t[]){3, 39, 0, 7});
    tn_tensor *named = tn_rope_angles_at(c, at);
    fine();
    for (int64_t i = 0; i < 4; i++) {
        tn_tensor *one = tn_rope_angles(c, tn_get_i64(at, i), 1);
        ck_assert(tn_same_bits(one, tn_narrow(all, 0, tn_get_i64(at, i), 1)));
        ck_assert(tn_same_bits(tn_select(one, 0, 0), tn_select(tn_view(named, TN_SHAPE(4, R)), 0, i)));
    }
    ck_assert(tn_same_bits(tn_rope_angles_at(c, tn_to(at, TN_I32)), named));
    ck_assert(tn_dtype_of(tn_rope(tn_zeros_of(TN_BF16, TN_SHAPE(40, R)), all, false)) == TN_BF16);
}

TEST(refused)
{
    const struct {
        tn_rope_config c;
        const char    *why;
    } bad[] = {
        {TN_ROPE(.dim = 3), "rope: .dim is 3, but must be even and at least 2"},
        {TN_ROPE(.dim = 4, .factor = 8), "rope: .factor is 8, but no .scaling is set; set .scaling or remove .factor"},
        {TN_ROPE(.dim = 4, .theta = 0), "rope: .theta is 0, but must be more than 0"},
        {TN_ROPE(.dim = 4, .scaling = TN_ROPE_LINEAR, .factor = -1), "rope: .factor is -1, but must be more than 0"},
        {TN_ROPE(.dim = 4, .scaling = TN_ROPE_DYNAMIC),
         "rope: .trained is 0, but this scaling needs the number of positions in training"},
        {TN_ROPE(.dim = 2, .scaling = TN_ROPE_DYNAMIC, .trained = 8),
         "rope: .dim is 2, but dynamic scaling needs at least 4"},
        {TN_ROPE(.dim = 4, .scaling = TN_ROPE_LLAMA3, .trained = 8, .low = 4),
         "rope: .low is 4 and .high 4, but 0 < .low < .high must hold"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_ptr_null(tn_rope_angles(bad[i].c, 0, 2));
        ck_assert_str_eq(tn_error_message(), bad[i].why);
        tn_clear_error();
    }
    const tn_rope_config c = TN_ROPE(.dim = 4);
    ck_assert_ptr_null(tn_rope_angles(c, -1, 2));
    ck_assert_str_eq(tn_error_message(),
                     "rope: 2 positions from -1 on: neither may be negative, and the sum must fit in 64 bits");
    tn_clear_error();
    ck_assert_ptr_null(tn_rope_angles_at(c, tn_ones(TN_SHAPE(2))));
    ck_assert_str_eq(tn_error_message(), "rope: positions must be i64 or i32, with fewer than 8 dims");
    tn_clear_error();
}

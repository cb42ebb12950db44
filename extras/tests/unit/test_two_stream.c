/* test_two_stream.c — XLNet's layers: gradients by differences; no gradient reaches what a target must not see; the
 * order of the text is the causal model; a memory replaces the text before; padding; threads; errors. */
#include "extras.h"
#include "tests/common/answers.h"

enum { ROWS = 2, LENGTH = 7, DIM = 6, LAYERS = 2 };
#define TWO(...) tn_two_stream_new(.layers = LAYERS, .dim = DIM, .heads = 3, .ff = 5, .eps = 1e-5, __VA_ARGS__)

/* Larger weights than the initial ones, so that no gradient is lost in rounding. */
static tn_two_stream *model(tn_dtype dt, bool causal, int64_t clamp, double dropout)
{
    tn_two_stream *m = TWO(.dtype = dt, .causal = causal, .clamp = clamp, .dropout = dropout);
    fine();
    const tn_scope s = tn_no_grad_begin();
    for (tn_each p = tn_parameters(m); tn_next(&p);)
        if (!strstr(p.name, "norm")) tn_copy_from(p.tensor, tn_normal_of(dt, tn_shape_of(p.tensor), 0, 0.4));
    tn_scope_end(s);
    return m;
}
static tn_tensor *text(tn_dtype dt, int64_t length) { return tn_normal_of(dt, TN_SHAPE(ROWS, length, DIM), 0, 1); }
#define I64(...) tn_from_data(TN_I64, TN_SHAPE(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]){__VA_ARGS__})
static tn_tensor *rows_of(tn_tensor *flat) { return tn_reshape(flat, TN_SHAPE(ROWS, -1)); }
static tn_tensor *segments(void) { return rows_of(I64(0, 0, 0, 1, 1, 1, 2, 0, 1, 1, 1, 1, 1, 2)); }
static tn_tensor *targets(void) { return I64(1, 4, 5, 7 + 0, 7 + 3); }
static tn_tensor *order(void) { return rows_of(I64(-1, 3, -1, -1, 0, 2, 1, 2, -1, -1, 0, -1, -1, 1)); }
static tn_tensor *padding(void)
{
    static const uint8_t is[ROWS * LENGTH] = {[2] = 1, [7 + 1] = 1, [7 + 5] = 1};
    return tn_from_data(TN_BOOL, TN_SHAPE(ROWS, LENGTH), is);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* in: x, g, the memory of both layers. Both streams. */
static tn_tensor *both(tn_tensor *const *in, int n, void *user)
{
    (void)n;
    tn_tensor *content, *blocked = tn_permutation_mask(order(), targets(), ROWS, LENGTH);
    tn_tensor *y = tn_two_stream_forward((tn_two_stream *)user, in[0], .blocked = blocked, .query = in[1],
                                         .key_padding_mask = padding(), .segments = segments(), .targets = targets(),
                                         .memory = in + 2, .content = &content);
    return y ? tn_cat(0, tn_reshape(content, TN_SHAPE(-1, DIM)), y) : NULL;
}
TEST_EACH(gradients, 3)
{
    tn_two_stream *m = model(TN_F64, _i == 1, _i == 2 ? 3 : 0, 0);
    tn_tensor     *in[16] = {text(TN_F64, LENGTH), tn_normal_of(TN_F64, TN_SHAPE(5, DIM), 0, 1), text(TN_F64, 4),
                             text(TN_F64, 4)};
    for (int i = 0; i < 4; i++) tn_requires_grad(in[i]);
    tn_each p = tn_parameters(m);
    for (int n = 16; n == 16 && ((_i == 0 && !tn_test_slow()) || !in[15]);) { /* other configs: the first parameters */
        for (n = 4; n < 16 && tn_next(&p); n++) in[n] = p.tensor;
        ck_assert_msg(tn_gradcheck(both, .count = n, .inputs = in, .user = m, .name = "two_stream") == TN_OK, "%s",
                      tn_error_message());
    }
    tn_free(m);
}

/* The gradient of a target's output: exactly 0 for its own token, for tokens of higher rank, for other rows and for
 * padding; not 0 for the tokens that it sees. A token that is not a target sees no token that is ranked. */
TEST(nothing_leaks)
{
    static const int64_t at[] = {1, 4, 5, 7 + 0, 7 + 3};
    tn_two_stream       *m = model(TN_F32, false, 0, 0);
    for (int target = 0; target < 5; target++) {
        tn_tensor *x = tn_requires_grad(text(TN_F32, LENGTH)), *content, *o = order(), *pad = padding();
        tn_tensor *y = tn_two_stream_forward(m, x, .blocked = tn_permutation_mask(o, targets(), ROWS, LENGTH),
                                             .query = tn_ones(TN_SHAPE(5, DIM)), .targets = targets(),
                                             .key_padding_mask = pad, .segments = segments(), .content = &content);
        tn_backward(tn_sum(tn_sin(tn_select(y, 0, target))));
        fine();
        const int64_t rank = tn_get_i64(o, at[target]), row = at[target] / LENGTH;
        for (int64_t i = 0; i < ROWS * LENGTH; i++) {
            const bool   seen = i / LENGTH == row && tn_get_i64(o, i) < rank && !tn_get_i64(pad, i);
            const double g = tn_item(
                tn_amax(tn_abs(tn_select(tn_reshape(tn_grad(x), TN_SHAPE(-1, DIM)), 0, i)), .dims = TN_DIMS(0)));
            ck_assert_msg(seen ? g > 1e-6 : g == 0, "target %d, token %d: %g", target, (int)i, g);
        }
        tn_tensor *other = tn_requires_grad(tn_clone(tn_detach(x)));
        tn_two_stream_forward(m, other, .blocked = tn_permutation_mask(o, targets(), ROWS, LENGTH),
                              .query = tn_ones(TN_SHAPE(5, DIM)), .targets = targets(), .content = &content);
        tn_backward(tn_sum(tn_sin(tn_select(tn_select(content, 0, 0), 0, 3)))); /* not a target, rank -1 */
        for (int64_t i = 0; i < LENGTH; i++) {
            const double g = tn_item(tn_sum(tn_abs(tn_select(tn_select(tn_grad(other), 0, 0), 0, i))));
            ck_assert_msg(tn_get_i64(o, i) < 0 ? g > 1e-6 : g == 0, "token %d: %g", (int)i, g);
        }
    }
    tn_free(m);
}

/* ---- the same as other computations ------------------------------------------------------------------------------ */

TEST(order_of_the_text_is_causal)
{
    tn_two_stream *a = model(TN_F32, true, 0, 0), *b = tn_copy(a);
    tn_tensor     *x = text(TN_F32, LENGTH), *all = tn_arange(ROWS * LENGTH), *content, *y[2];
    b->causal = false;
    tn_tensor *ranks = tn_remainder(rows_of(all), tn_full_of(TN_I64, TN_SHAPE(1), LENGTH));
    for (int i = 0; i < 2; i++)
        y[i] = tn_two_stream_forward(i ? b : a, x, .query = tn_ones(TN_SHAPE(ROWS * LENGTH, DIM)), .targets = all,
                                     .blocked = tn_permutation_mask(ranks, all, ROWS, LENGTH), .content = &content);
    ck_assert(tn_same_bits(content, tn_two_stream_forward(a, x, .segments = NULL)));
    ck_assert(tn_same_bits(y[0], y[1]));
    tn_free(a), tn_free(b);
}

/* Two segments, the second with the memory of the first, are one long text: of a causal model, and of an order in which
 * the first segment comes first. */
TEST_EACH(a_memory_is_the_text_before, 2)
{
    enum { FIRST = 4 };
    tn_two_stream *m = model(TN_F32, _i == 0, 0, 0);
    tn_tensor     *x = text(TN_F32, LENGTH), *memory[LAYERS], *parts[2];
    tn_tensor     *s = rows_of(I64(0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1));
    tn_tensor     *ranks = rows_of(I64(0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1));
    tn_tensor     *whole = _i == 0 ? NULL : tn_permutation_mask(ranks, tn_zeros_of(TN_I64, TN_SHAPE(0)), ROWS, LENGTH);
    parts[0] =
        tn_two_stream_forward(m, tn_narrow(x, 1, 0, FIRST), .segments = tn_narrow(s, 1, 0, FIRST), .memory_out = memory,
                              .blocked = whole ? tn_narrow(tn_narrow(whole, 1, 0, FIRST), 2, 0, FIRST) : NULL);
    ck_assert(memory[0] && memory[1] && tn_size(memory[1], 1) == FIRST);
    parts[1] = tn_two_stream_forward(
        m, tn_narrow(x, 1, FIRST, LENGTH - FIRST), .segments = tn_narrow(s, 1, FIRST, LENGTH - FIRST), .memory = memory,
        .blocked = whole ? tn_narrow(tn_narrow(whole, 1, FIRST, LENGTH - FIRST), 2, FIRST, LENGTH - FIRST) : NULL);
    fine();
    const double d = furthest(tn_cat_list(1, 2, parts), tn_two_stream_forward(m, x, .segments = s, .blocked = whole));
    ck_assert_msg(d <= 1e-6, "%g apart", d);
    tn_free(m);
}

/* .reuse and .memory_length select what is remembered; without gradients. */
TEST(what_is_remembered)
{
    tn_two_stream *m = model(TN_F32, false, 0, 0);
    tn_tensor     *x = tn_requires_grad(text(TN_F32, LENGTH)), *a[LAYERS], *b[LAYERS];
    tn_two_stream_forward(m, x, .memory_out = a, .reuse = 5);
    ck_assert(tn_same_bits(a[0], tn_narrow(x, 1, 0, 5)) && !tn_needs_grad(a[0]) && !tn_needs_grad(a[1]));
    tn_two_stream_forward(m, x, .memory = a, .memory_out = b, .reuse = 2, .memory_length = 6);
    ck_assert(tn_same_bits(b[0], tn_cat(1, tn_narrow(x, 1, 1, 4), tn_narrow(x, 1, 0, 2))));
    ck_assert_int_eq(tn_size(b[1], 1), 6);
    tn_free(m);
}

/* Rows do not depend on others or on padding at either end, within rounding; one token alone; no targets. */
TEST(rows_alone)
{
    tn_two_stream *m = model(TN_F32, false, 0, 0);
    tn_tensor     *x = text(TN_F32, LENGTH), *none = tn_zeros_of(TN_I64, TN_SHAPE(0)), *content;
    for (int end = 0; end < 2; end++) {
        uint8_t is[ROWS * LENGTH] = {0};
        is[end ? LENGTH - 1 : 0] = is[end ? LENGTH - 2 : 1] = 1;
        tn_tensor *pad = tn_from_data(TN_BOOL, TN_SHAPE(ROWS, LENGTH), is);
        tn_tensor *y = tn_two_stream_forward(m, x, .key_padding_mask = pad);
        tn_tensor *part = tn_narrow(tn_narrow(x, 0, 0, 1), 1, end ? 0 : 2, LENGTH - 2);
        tn_tensor *want = tn_narrow(tn_narrow(y, 0, 0, 1), 1, end ? 0 : 2, LENGTH - 2);
        ck_assert_double_le(furthest(tn_two_stream_forward(m, part, .segments = NULL), want), 2e-6);
    }
    tn_tensor *y =
        tn_two_stream_forward(m, x, .query = tn_zeros(TN_SHAPE(0, DIM)), .targets = none, .content = &content);
    ck_assert(tn_shape_equal(tn_shape_of(y), TN_SHAPE(0, DIM)));
    ck_assert(tn_same_bits(content, tn_two_stream_forward(m, x, .segments = NULL)));
    /* the only token does not see itself: the attention is 0, the result finite */
    y = tn_two_stream_forward(m, tn_narrow(x, 1, 0, 1), .query = tn_ones(TN_SHAPE(2, DIM)), .targets = I64(0, 1),
                              .blocked = tn_permutation_mask(NULL, I64(0, 1), ROWS, 1));
    ck_assert(y && isfinite(tn_item(tn_sum(y))));
    ck_assert(tn_same_bits(tn_select(y, 0, 0), tn_select(y, 0, 1)));
    tn_free(m);
}

TEST(threads)
{
    tn_tensor *y[3], *g[3];
    for (int i = 0; i < 3; i++) {
        tn_set_threads(i + 1);
        tn_seed(7);
        tn_two_stream *m = tn_two_stream_new(.layers = 1, .dim = 66, .heads = 3, .ff = 130, .dropout = 0.2);
        tn_tensor     *x = tn_normal(TN_SHAPE(5, 67, 66), 0, 1), *at = tn_arange(5 * 67);
        tn_tensor     *ranks = tn_reshape(at, TN_SHAPE(5, 67)), *mask = tn_permutation_mask(ranks, at, 5, 67);
        y[i] = tn_two_stream_forward(m, x, .blocked = mask, .query = tn_ones(TN_SHAPE(5 * 67, 66)), .targets = at,
                                     .segments = tn_remainder(ranks, tn_full_of(TN_I64, TN_SHAPE(1), 3)));
        tn_backward(tn_sum(tn_sin(y[i])));
        fine();
        const tn_two_stream_layer *layer = tn_at(m->layers, 0);
        g[i] = tn_clone(tn_grad(layer->r));
        ck_assert(tn_same_bits(y[i], y[0]) && tn_same_bits(g[i], g[0]));
        tn_free(m);
    }
}

/* ---- errors ------------------------------------------------------------------------------------------------------ */

TEST(errors)
{
    tn_two_stream *m = model(TN_F32, false, 0, 0);
    tn_tensor     *x = text(TN_F32, LENGTH), *memory[LAYERS] = {text(TN_F32, 2), text(TN_F32, 3)};
    ck_refused(TWO(.clamp = -1), TN_EINVAL, "tn_two_stream_new: .clamp is -1, but must be from 0 to 2147483647");
    ck_refused(tn_two_stream_new(.dim = 9, .heads = 3), TN_EINVAL,
               "tn_two_stream_new: .dim is 9, but must be even and a multiple of .heads, which is 3");
    ck_refused(tn_two_stream_forward(m, tn_ones(TN_SHAPE(2, DIM)), .segments = NULL), TN_ESHAPE,
               "two_stream: x must be [B, T, 6], got [2, 6]");
    ck_refused(tn_two_stream_forward(m, x, .targets = targets()), TN_EINVAL,
               "two_stream: .query and .targets must be set together");
    ck_refused(tn_two_stream_forward(m, x, .segments = targets()), TN_ESHAPE,
               "two_stream: .segments must be [2, 7], got i64 [5]");
    ck_refused(tn_two_stream_forward(m, x, .key_padding_mask = segments()), TN_ESHAPE,
               "two_stream: .key_padding_mask must be bool [2, 7], got i64 [2, 7]");
    ck_refused(tn_two_stream_forward(m, x, .blocked = padding()), TN_ESHAPE,
               "two_stream: .blocked must be bool [2, 7, 7], got bool [2, 7]");
    ck_refused(tn_two_stream_forward(m, x, .memory = memory), TN_ESHAPE,
               "two_stream: .memory must be [2, 2, 6], got f32 [2, 3, 6]");
    ck_refused(tn_two_stream_forward(m, x, .reuse = -1), TN_EINVAL,
               "two_stream: .memory_length is 0 and .reuse -1, but both must be at least 0");
    ck_refused(tn_two_stream_forward(m, x, .query = tn_ones(TN_SHAPE(1, DIM)), .targets = I64(14)), TN_EINDEX,
               "two_stream: target 0 is position 14, outside 0 … 13");
    ck_refused(tn_two_stream_forward(m, x, .query = tn_ones(TN_SHAPE(2, DIM)), .targets = I64(3)), TN_ESHAPE,
               "two_stream: .query must be [1, 6], got f32 [2, 6]");
    ck_refused(tn_permutation_mask(NULL, I64(9), 2, 3), TN_EINDEX,
               "tn_permutation_mask: target 0 is position 9, outside 0 … 5");
    ck_refused(tn_permutation_mask(tn_full_of(TN_I64, TN_SHAPE(2, 3), -1), I64(4), 2, 3), TN_EINVAL,
               "tn_permutation_mask: target 0, position 4, has the rank -1; expected at least 0");
    ck_refused(tn_permutation_mask(order(), targets(), 2, 3), TN_ESHAPE,
               "tn_permutation_mask: order must be [2, 3], got [2, 7]");
    tn_free(m);
}

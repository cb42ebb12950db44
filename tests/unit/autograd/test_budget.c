/* test_budget.c — memory budgets: segments give the same bits kept or recomputed, also where their inputs are used
 * elsewhere; the choice follows the size of the batch; errors; every allocation fails once. */
#include "tests/common/check_main.h"

#include "autograd/autograd.h"
#include "tests/common/faults.h"

enum { LAYERS = 6, WIDTH = 64 };

typedef struct {
    tn_tensor *w;
    int        kind; /* 1: a segment inside a segment; 2: keeps more than others */
    int        calls;
} layer;

/* Several uses of x, dropout, and an intermediate result that is wider than x. */
static tn_tensor *body(tn_tensor *const *in, int n, void *user)
{
    layer *l = user;
    l->calls++;
    if (l->kind == 1) {
        layer      inner = {.w = l->w};
        tn_tensor *y = tn_recomputable(body, &inner, n, in);
        l->calls += inner.calls - 1;
        return y;
    }
    tn_tensor *h = tn_dropout(tn_gelu(tn_linear(in[0], l->w, NULL)), 0.2);
    h = tn_mul(h, tn_sigmoid(tn_mul_scalar(h, 3)));
    for (int i = 0; l->kind == 2 && i < 4; i++) h = tn_sin(h);
    h = tn_matmul(h, l->w);
    if (n > 1) h = tn_add(h, in[1]);
    return tn_add(tn_add(in[0], h), tn_mul(in[0], tn_tanh(h)));
}

static tn_tensor *weight(int i)
{
    tn_seed((uint64_t)i + 1);
    return tn_requires_grad(tn_mul_scalar(tn_normal(TN_SHAPE(4 * WIDTH, WIDTH), 0, 1), 0.05));
}

/* A stack whose hidden states all enter the loss; `shared` is an input of all layers. */
static tn_tensor *stack(tn_tensor *x, tn_tensor *shared, layer *l)
{
    tn_tensor *sum = tn_mul_scalar(tn_sum(tn_square(shared)), 0.1);
    for (int i = 0; i < LAYERS; i++) {
        x = tn_recomputable(body, &l[i], 2, (tn_tensor *[]){x, shared});
        sum = tn_add(sum, tn_mul_scalar(tn_sum(tn_sin(x)), 0.1 * (i + 1)));
    }
    return sum;
}

typedef struct {
    tn_tensor       *loss, *grad[LAYERS + 2];
    tn_budget_report r;
    size_t           peak;
    int              calls, passes;
} pass;

static pass run(tn_budget *b, int64_t rows, int kind)
{
    pass     p = {.loss = NULL};
    layer    l[LAYERS];
    tn_scope s = tn_scope_begin();
    for (int i = 0; i < LAYERS; i++) l[i] = (layer){.w = weight(i), .kind = kind};
    tn_seed(9);
    tn_tensor *x = tn_requires_grad(tn_normal(TN_SHAPE(rows, WIDTH), 0, 1));
    tn_tensor *y = tn_requires_grad(tn_normal(TN_SHAPE(rows, WIDTH), 0, 1));
    tn_reset_peak();
    do {
        for (int i = 0; i < LAYERS; i++) l[i].calls = 0;
        p.passes++;
        tn_scope inner = tn_scope_begin();
        tn_budget_begin(b, 0);
        tn_tensor *loss = stack(tn_exp(x), tn_exp(y), l);
        p.loss = loss;
        tn_backward(loss);
        if (tn_error() == TN_OK) p.loss = tn_scope_return(inner, tn_detach(loss));
        else tn_scope_end(inner);
    } while (tn_budget_again(b));
    p.r = tn_budget_last(b), p.peak = tn_memory_now().peak;
    for (int i = 0; i < LAYERS; i++) p.grad[i] = tn_grad(l[i].w), p.calls += l[i].calls;
    p.grad[LAYERS] = tn_grad(x), p.grad[LAYERS + 1] = tn_grad(y);
    if (tn_error() != TN_OK) {
        tn_scope_end(s);
        return p;
    }
    tn_tensor *all[LAYERS + 3];
    for (int i = 0; i < LAYERS + 2; i++) all[i] = p.grad[i] = tn_clone(p.grad[i]);
    all[LAYERS + 2] = p.loss;
    tn_scope_return_list(s, LAYERS + 3, all);
    return p;
}

static void ck_same(const pass *a, const pass *b)
{
    ck_assert(tn_same_bits(a->loss, b->loss));
    for (int i = 0; i < LAYERS + 2; i++) ck_assert_msg(tn_same_bits(a->grad[i], b->grad[i]), "gradient %d", i);
}

TEST_EACH(same_bits, 2)
{
    static const double share[] = {0.5, 0.65, 0.8, 0.95, 1.2};
    const size_t        before = tn_memory_now().live;
    const pass          plain = run(NULL, 200, 0);
    int64_t             last = LAYERS;
    ck_assert_int_eq(plain.calls, LAYERS);
    for (int i = 0; i < 5; i++) {
        tn_budget *b = tn_budget_new(tn_memory_now().live + (size_t)(share[i] * (double)(plain.peak - before)));
        int64_t    chosen = 0;
        for (int k = 0; k < 3; k++) {
            const tn_scope s = tn_scope_begin();
            const pass     p = run(b, 200, _i);
            ck_assert_msg(tn_error() == TN_OK, "%d: %s", i, tn_error_message());
            ck_same(&plain, &p);
            ck_assert_uint_le(p.peak, p.r.bytes);
            ck_assert_int_eq(p.r.segments, LAYERS);
            ck_assert_int_eq(p.calls, LAYERS + p.r.recomputed); /* one run more in the backward */
            ck_assert(p.r.measured == !k && (k || p.r.recomputed == LAYERS));
            if (k) ck_assert_uint_le(p.peak, p.r.need);
            chosen = p.r.recomputed;
            tn_scope_end(s);
        }
        ck_assert_msg(chosen <= last && (i || chosen) && (i < 4 || !chosen), "%d: %lld", i, (long long)chosen);
        last = chosen;
        tn_budget_free(b);
    }
}

/* A larger batch is measured again; one that is slightly larger or smaller is not. */
TEST(sizes)
{
    enum { N = 9 };
    static const int64_t rows[N] = {40, 40, 44, 36, 120, 120, 40, 140, 4};
    static const bool    measured[N] = {true, false, false, false, true, false, false, false, false};
    pass                 plain[N];
    for (int i = 0; i < N; i++) plain[i] = run(NULL, rows[i], 0);
    tn_budget *b = tn_budget_new(tn_memory_now().live + (3u << 20));
    for (int i = 0; i < N; i++) {
        const tn_scope s = tn_scope_begin();
        const pass     p = run(b, rows[i], 0);
        ck_assert_msg(tn_error() == TN_OK, "%d: %s", i, tn_error_message());
        ck_same(&plain[i], &p);
        ck_assert_msg(p.r.measured == measured[i], "%d", i);
        tn_scope_end(s);
    }
    tn_budget_free(b);
}

static tn_tensor *smooth(tn_tensor *const *in, int n, void *user)
{
    tn_seed(5); /* the same dropout in each call */
    return tn_recomputable(body, user, n, in);
}

TEST(gradients)
{
    tn_seed(4);
    tn_tensor *in[2];
    for (int i = 0; i < 2; i++) in[i] = tn_to(tn_normal(TN_SHAPE(2, 8), 0, 1), TN_F64);
    layer      l = {.w = tn_requires_grad(tn_to(tn_normal(TN_SHAPE(8, 8), 0, 1), TN_F64))};
    tn_budget *b = tn_budget_new(tn_memory_now().live + (64u << 20));
    tn_budget_begin(b, 0); /* its first pass recomputes all segments */
    ck_assert_msg(tn_gradcheck(smooth, .count = 2, .inputs = in, .user = &l) == TN_OK, "%s", tn_error_message());
    ck_assert(!tn_budget_again(b));
    ck_assert_int_eq(tn_budget_last(b).recomputed, tn_budget_last(b).segments);
    tn_budget_free(b);
}

TEST(mistakes)
{
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(3, WIDTH))), *nil = NULL;
    ck_refused(tn_budget_new(0), TN_EINVAL, "tn_budget_new: the budget is 0 bytes, but must be above 0");
    ck_refused(tn_recomputable(NULL, NULL, 1, &x), TN_EINVAL,
               "tn_recomputable: needs a function and an array of inputs");
    ck_refused(tn_recomputable(body, NULL, -1, &x), TN_EINVAL,
               "tn_recomputable: needs a function and an array of inputs");
    ck_refused(tn_recomputable(body, NULL, 1, &nil), TN_EINVAL, "tn_recomputable: input 0 is NULL");
    ck_assert(!tn_budget_again(NULL) && !tn_budget_is_open() && tn_budget_begin(NULL, 3) == TN_OK);
    ck_assert_int_eq(tn_budget_last(NULL).segments, 0);
    tn_budget_free(NULL);

    tn_set_memory_limit((size_t)1 << 30);
    tn_budget *b = tn_budget_new((size_t)2 << 30), *c = tn_budget_new(1 << 20);
    ck_assert_uint_eq(tn_budget_last(b).bytes, (size_t)1 << 30);
    ck_fails(tn_budget_begin(c, 1 << 20), TN_ENOMEM,
             "tn_budget_begin: 1048576 bytes are needed later, but the budget is 1048576");
    tn_budget_free(c);
    ck_assert(!tn_budget_again(b));
    ck_assert_int_eq(tn_budget_begin(b, 0), TN_OK);
    ck_assert(tn_budget_is_open());
    ck_assert_int_ne(tn_budget_begin(b, 0), TN_OK);
    ck_error(TN_ESTATE, "tn_budget_begin: a budget of this thread is open; call tn_budget_again first");
    tn_budget_free(b); /* ends its pass */
    ck_assert(!tn_budget_is_open());
    ck_assert_uint_eq(tn_memory_now().limit, (size_t)1 << 30);
    tn_set_memory_limit(0);

    b = tn_budget_new(tn_memory_now().live + (1 << 18));
    tn_scope s = tn_scope_begin();
    run(b, 1000, 0);
    tn_scope_end(s);
    ck_error_has(TN_ENOMEM, "out of memory: ");
    tn_budget_free(b);
}

/* The bytes that the error states are those that are enough, whatever the budget was. */
TEST(the_error_states_the_need)
{
    size_t first = 0;
    for (int i = 0; i < 6; i++) {
        const size_t   live = tn_memory_now().live;
        const tn_scope s = tn_scope_begin();
        tn_budget     *b = tn_budget_new(live + (11u << 17) + (size_t)i * 32768);
        size_t         need = 0;
        run(b, 100, 0);
        ck_assert_int_eq(tn_error(), TN_ENOMEM);
        const char *text = strstr(tn_error_message(), "needs at least ");
        ck_assert_msg(text && sscanf(text, "needs at least %zu", &need) == 1, "%s", tn_error_message());
        tn_clear_error();
        tn_budget_free(b);
        tn_scope_end(s);
        if (!first) first = need - live;
        ck_assert_msg(need - live == first, "budget %d: %zu, before %zu", i, need - live, first);
    }
    for (int less = 0; less < 2; less++) {
        const tn_scope s = tn_scope_begin();
        tn_budget     *b = tn_budget_new(tn_memory_now().live + first - (size_t)(less * 4096));
        run(b, 100, 0);
        ck_assert_msg(tn_error() == (less ? TN_ENOMEM : TN_OK), "%s", tn_error_message());
        tn_clear_error();
        tn_budget_free(b);
        tn_scope_end(s);
    }
}

/* A pass that needs more than was measured fails, and is repeated with the same random numbers; later ones are not. */
TEST(a_low_estimate_is_corrected)
{
    const pass usual = run(NULL, 100, 0), more = run(NULL, 100, 2);
    tn_budget *b = tn_budget_new(tn_memory_now().live + (3u << 20));
    int64_t    before = 0;
    for (int i = 0; i < 5; i++) {
        const tn_scope s = tn_scope_begin();
        const pass     p = run(b, 100, i < 2 ? 0 : 2);
        ck_assert_msg(tn_error() == TN_OK, "%d: %s", i, tn_error_message());
        ck_same(&p, i < 2 ? &usual : &more);
        ck_assert_uint_le(p.peak, p.r.bytes);
        ck_assert_msg(i == 2 ? p.passes > 1 && p.r.recomputed > before : p.passes == 1, "%d: %d", i, p.passes);
        before = p.r.recomputed;
        tn_scope_end(s);
    }
    tn_budget_free(b);
}

static double twice(int i)
{
    double         sum = 0;
    const tn_scope s = tn_scope_begin();
    tn_budget     *b = tn_budget_new((size_t)64 << 20);
    for (int k = 0; b && k < 2 && tn_error() == TN_OK; k++) {
        const pass p = run(b, 10 + i, 0);
        if (tn_error() == TN_OK) sum += tn_item(p.loss) + tn_item(tn_sum(p.grad[LAYERS]));
    }
    tn_budget_free(b);
    tn_scope_end(s);
    return sum;
}

TEST(memory_fails) { tn_each_allocation_fails(twice, 0, tn_test_slow() ? 37 : tn_test_whole() ? 5 : 13, 5, 200); }

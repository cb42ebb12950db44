/* custom_model.c — a complete custom model: a pre-norm attention block in 26 lines, a causal language model of two such
 * blocks, trained with tn_fit to sort digits ("40731>01347"), saved, loaded and tested.
 * Build: cc -O2 custom_model.c -o custom_model $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <tenon/tenon.h>

typedef struct {
    tn_module      base;
    tn_layer_norm *norm1, *norm2;
    tn_mha        *attn;
    tn_linear     *up, *down;
} block;

static tn_tensor *block_forward(block *m, tn_tensor *x) /* [B, T, D] */
{
    if (!tn_ready(m)) return NULL;
    tn_frame   f = tn_enter(m);
    tn_tensor *h = tn_call(m->norm1, x);
    x = tn_add(x, tn_mha_forward(m->attn, h, h, h, .causal = true));
    return tn_leave(f, tn_add(x, tn_call(m->down, tn_gelu(tn_call(m->up, tn_call(m->norm2, x))))));
}
TN_FORWARD(block);

static block *block_new(int dim, int heads)
{
    block *m = tn_module_new(block);
    if (!m) return NULL;
    m->norm1 = tn_child(m, "norm1", tn_layer_norm_new(.dim = dim));
    m->attn = tn_child(m, "attn", tn_mha_new(.dim = dim, .heads = heads));
    m->norm2 = tn_child(m, "norm2", tn_layer_norm_new(.dim = dim));
    m->up = tn_child(m, "up", tn_linear_new(.in = dim, .out = 4 * dim));
    m->down = tn_child(m, "down", tn_linear_new(.in = 4 * dim, .out = dim));
    return tn_built(m);
}

enum { DIGITS = 5, TOKENS = 11, ARROW = 10, LENGTH = 2 * DIGITS, DIM = 32 };

static tn_sequential *model_new(void)
{
    tn_sequential *m = tn_sequential_new();
    tn_append(m, tn_embedding_new(.count = TOKENS, .dim = DIM));
    tn_append(m, tn_learned_positions_new(.dim = DIM, .length = LENGTH));
    for (int i = 0; i < 2; i++) tn_append(m, block_new(DIM, 4));
    tn_append(m, tn_layer_norm_new(.dim = DIM));
    tn_append(m, tn_linear_new(.in = DIM, .out = TOKENS));
    return m;
}

/* An endless source of batches: x "40731>0134", y the next token, or no target (-): "-----01347". */
static bool draw(void *user, tn_batch *b)
{
    const int64_t *rows = user;
    tn_tensor     *digits = tn_randint(TN_SHAPE(*rows, DIGITS), 0, 10), *sorted = tn_sort(digits, 1).values;
    tn_tensor     *arrow = tn_full_of(TN_I64, TN_SHAPE(*rows, 1), ARROW);
    tn_tensor     *all = tn_cat(1, digits, arrow, sorted); /* [B, 11] */
    b->x = tn_narrow(all, 1, 0, LENGTH);
    b->y = tn_cat(1, tn_full_of(TN_I64, TN_SHAPE(*rows, DIGITS), -100), sorted); /* -100: not counted */
    return tn_error() == TN_OK;
}

static tn_tensor *loss(void *module, const tn_batch *b, void *user)
{
    tn_sequential *m = module;
    (void)user;
    return tn_cross_entropy(tn_call(m, b->x), b->y);
}

static void report(const tn_fit_event *e, void *user)
{
    (void)user;
    if (e->what == TN_FIT_STEP && e->step % 100 == 0) printf("step %4lld  loss %.3f\n", (long long)e->step, e->loss);
}

/* Completes x [1, T] with the most likely token, DIGITS times. */
static tn_tensor *continue_greedily(tn_sequential *m, tn_tensor *x)
{
    for (int i = 0; i < DIGITS; i++) {
        tn_tensor *last = tn_select(tn_call(m, x), 1, -1); /* [1, TOKENS] */
        x = tn_cat(1, x, tn_argmax(last, -1, true));
    }
    return x;
}

/* Sorts 100 rows and prints the first five. Returns the number of rows sorted correctly. */
static int examine(tn_sequential *m)
{
    const tn_scope s = tn_no_grad_begin();
    int64_t        one = 1;
    int            right = 0;
    for (int i = 0; i < 100 && !tn_error(); i++) {
        tn_batch b = {0};
        draw(&one, &b);
        tn_tensor *y = continue_greedily(m, tn_narrow(b.x, 1, 0, DIGITS + 1)); /* [1, 11] */
        tn_tensor *answer = tn_narrow(y, 1, DIGITS + 1, DIGITS), *sorted = tn_narrow(b.y, 1, DIGITS, DIGITS);
        right += tn_item(tn_all(tn_eq(answer, sorted))) != 0;
        for (int k = 0; k <= LENGTH && i < 5; k++) printf("%c", k == DIGITS ? '>' : '0' + (int)tn_get_i64(y, k));
        if (i < 5) printf("\n");
    }
    tn_scope_end(s);
    return right;
}

int main(void)
{
    tn_seed(11);
    int64_t        rows = 64;
    tn_sequential *m = model_new();
    tn_fit_result  r =
        tn_fit(m, .train = {.next = draw, .user = &rows}, .loss = loss, .steps = 400, .lr = 3e-3, .on = report);
    if (r.why != TN_FIT_FAILED) tn_save(m, "sort.safetensors");

    tn_sequential *again = model_new();
    tn_load(again, "sort.safetensors");
    tn_eval(again);
    printf("%d of 100 sorted without a mistake\n", examine(again));
    if (tn_error() != TN_OK) fprintf(stderr, "%s\n", tn_error_message());
    tn_free(m), tn_free(again);
    return tn_error() != TN_OK;
}

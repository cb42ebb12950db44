/* 03_module.c — lesson 3: modules. A network as a custom struct: its parts, its summary, a training loop with an
 * optimizer, saving and loading. It learns which points are inside a ring. Explained line by line in
 * docs/guide/03_module.md.
 * Build: cc -O2 03_module.c -o 03_module $(pkg-config --cflags --libs tenon) */
#include <stdio.h>
#include <tenon/tenon.h>

typedef struct {
    tn_module  base;
    tn_linear *in, *hidden, *out;
} classifier;

static tn_tensor *classifier_forward(classifier *m, tn_tensor *x) /* [B, 2] → [B, 1] */
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    x = tn_silu(tn_call(m->in, x));                /* [B, width] */
    x = tn_add(x, tn_silu(tn_call(m->hidden, x))); /* [B, width] */
    return tn_leave(f, tn_call(m->out, x));
}
TN_FORWARD(classifier);

static classifier *classifier_new(int64_t width)
{
    classifier *m = tn_module_new(classifier);
    if (!m) return NULL;
    m->in = tn_child(m, "in", tn_linear_new(.in = 2, .out = width));
    m->hidden = tn_child(m, "hidden", tn_linear_new(.in = width, .out = width));
    m->out = tn_child(m, "out", tn_linear_new(.in = width, .out = 1));
    return tn_built(m);
}

static tn_tensor *inside_the_ring(tn_tensor *x) /* [B, 2] → [B, 1]: 1 or 0 */
{
    tn_tensor *r = tn_norm(x, .dims = TN_DIMS(1), .keepdim = true);
    return tn_to(tn_logical_and(tn_gt(r, tn_scalar(0.4)), tn_lt(r, tn_scalar(0.8))), TN_F32);
}

static void train(classifier *net)
{
    tn_optimizer *o = tn_adamw_new(net, .lr = 0.02);
    for (int step = 0; step <= 600; step++) {
        tn_scope   s = tn_scope_begin();
        tn_tensor *x = tn_uniform(TN_SHAPE(128, 2), -1, 1);
        tn_tensor *loss = tn_bce_with_logits(tn_call(net, x), inside_the_ring(x));
        tn_backward(loss);
        tn_step(o);
        if (step % 200 == 0) printf("step %3d  loss %.3f\n", step, tn_item(loss));
        tn_scope_end(s);
    }
    tn_optimizer_free(o);
}

typedef struct {
    classifier *net;
    tn_tensor  *point;
} question;

static tn_tensor *ask(void *user)
{
    question *q = user;
    return tn_call(q->net, q->point);
}

static void draw(classifier *net)
{
    tn_scope   s = tn_scope_begin();
    question   q = {net, tn_zeros(TN_SHAPE(1, 2))};
    tn_replay *r = tn_replay_record(ask, &q);
    for (int row = 0; row < 16; row++) {
        for (int col = 0; col < 32; col++) {
            const float point[] = {(float)(col - 15.5) / 16, (float)(row - 7.5) / 8};
            tn_copy_in(q.point, TN_F32, point, sizeof point);
            putchar(tn_item(tn_replay_run(r)) > 0 ? '#' : '.');
        }
        putchar('\n');
    }
    tn_replay_free(r);
    tn_scope_end(s);
}

int main(void)
{
    tn_seed(3);
    classifier *net = classifier_new(24);
    tn_print_module(stdout, net);
    printf("%lld parameters\n\n", (long long)tn_count(net));
    train(net);

    tn_save(net, "ring.safetensors");
    classifier *again = classifier_new(24);
    tn_load(again, "ring.safetensors");
    printf("\nwhat the loaded one thinks is inside the ring:\n");
    draw(again);

    int failed = tn_error() != TN_OK;
    if (failed) fprintf(stderr, "%s\n", tn_error_message());
    tn_free(again), tn_free(net);
    return failed;
}

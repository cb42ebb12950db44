/* diffusion.c — draws from noise: a denoising diffusion model (Ho and others, 2020) on a small U-Net. A drawing is
 * mixed with noise; the network learns to predict the noise. To draw, it starts with noise and removes a part of what
 * it predicts in each step (DDIM, Song and others, 2021). Its drawings are squares, crosses and frames.
 * Build: cc -O2 diffusion.c -o diffusion $(pkg-config --cflags --libs tenon) -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

enum { SIDE = 16, SIZE = 8, ROOM = SIDE + 1 - SIZE, C = 24, TIME = 48, BATCH = 32, LEVELS = 1000, DRAW = 40, SHOW = 4 };

/* Whether a square, a cross or a frame at (top, left) has ink at (y, x). */
static bool ink(int shape, int top, int left, int y, int x)
{
    const int v = y - top, h = x - left;
    if (v < 0 || h < 0 || v >= SIZE || h >= SIZE) return false;
    if (shape == 1) return (v + 1) / 2 == SIZE / 4 || (h + 1) / 2 == SIZE / 4;
    return shape == 0 || v < 2 || h < 2 || v >= SIZE - 2 || h >= SIZE - 2;
}

static tn_tensor *drawings(int64_t n) /* [n, 1, SIDE, SIDE]: 1 is ink, -1 paper */
{
    tn_tensor *t = tn_zeros(TN_SHAPE(n, 1, SIDE, SIDE));
    float     *pixel = tn_data_mut(t);
    for (int64_t i = 0; pixel && i < n; i++) {
        const int shape = (int)tn_random_below(NULL, 3);
        const int top = (int)tn_random_below(NULL, ROOM), left = (int)tn_random_below(NULL, ROOM);
        for (int j = 0; j < SIDE * SIDE; j++) *pixel++ = ink(shape, top, left, j / SIDE, j % SIDE) ? 1 : -1;
    }
    return t;
}

typedef struct {
    tn_module      base;
    tn_group_norm *norm1, *norm2;
    tn_conv2d     *conv1, *conv2, *skip;
    tn_linear     *time;
} stage;
typedef struct {
    tn_module      base;
    tn_linear     *time;
    tn_conv2d     *in, *out;
    stage         *fine, *coarse, *middle, *joined;
    tn_group_norm *norm;
} unet;

static tn_tensor *stage_run(stage *m, tn_tensor *x, tn_tensor *time)
{
    tn_tensor *y = tn_call(m->conv1, tn_silu(tn_call(m->norm1, x)));
    y = tn_add(y, tn_reshape(tn_call(m->time, time), TN_SHAPE(tn_size(x, 0), -1, 1, 1)));
    return tn_add(tn_call(m->skip, x), tn_call(m->conv2, tn_silu(tn_call(m->norm2, y))));
}

/* The noise in x, [N, 1, SIDE, SIDE]. level: i64 [N], from 0 (no noise) to LEVELS (only noise). */
static tn_tensor *unet_run(unet *m, tn_tensor *x, tn_tensor *level)
{
    tn_tensor *angle = tn_mul(tn_reshape(tn_to(level, TN_F32), TN_SHAPE(-1, 1)),
                              tn_exp(tn_mul_scalar(tn_arange_of(TN_F32, 0, TIME / 2, 1), -18.4 / TIME)));
    tn_tensor *time = tn_silu(tn_call(m->time, tn_cat(1, tn_sin(angle), tn_cos(angle))));
    tn_tensor *fine = stage_run(m->fine, tn_call(m->in, x), time);
    tn_tensor *coarse = stage_run(m->coarse, tn_avg_pool2d(fine, .size = 2), time);
    coarse = tn_interpolate(stage_run(m->middle, coarse, time), TN_SHAPE(SIDE, SIDE), TN_LINEAR, false);
    return tn_call(m->out, tn_silu(tn_call(m->norm, stage_run(m->joined, tn_cat(1, fine, coarse), time))));
}

static const tn_class stage_class = {.size = sizeof(tn_class), .name = "Stage", .bytes = sizeof(stage)};
static const tn_class unet_class = {.size = sizeof(tn_class), .name = "UNet", .bytes = sizeof(unet)};

static stage *stage_new(int64_t in, int64_t out)
{
    stage *m = tn_module_new(stage);
    if (!m) return NULL;
    m->norm1 = tn_child(m, "norm1", tn_group_norm_new(.groups = 8, .channels = in));
    m->conv1 = tn_child(m, "conv1", tn_conv2d_new(.in = in, .out = out, .size = 3, .padding = 1));
    m->time = tn_child(m, "time", tn_linear_new(.in = 2 * TIME, .out = out));
    m->norm2 = tn_child(m, "norm2", tn_group_norm_new(.groups = 8, .channels = out));
    m->conv2 = tn_child(m, "conv2", tn_conv2d_new(.in = out, .out = out, .size = 3, .padding = 1));
    m->skip = tn_child(m, "skip", tn_conv2d_new(.in = in, .out = out, .size = 1));
    return tn_built(m);
}

static unet *unet_new(void)
{
    unet *m = tn_module_new(unet);
    if (!m) return NULL;
    m->time = tn_child(m, "time", tn_linear_new(.in = TIME, .out = 2 * TIME));
    m->in = tn_child(m, "in", tn_conv2d_new(.in = 1, .out = C, .size = 3, .padding = 1));
    m->fine = tn_child(m, "fine", stage_new(C, C));
    m->coarse = tn_child(m, "coarse", stage_new(C, 2 * C));
    m->middle = tn_child(m, "middle", stage_new(2 * C, 2 * C));
    m->joined = tn_child(m, "joined", stage_new(3 * C, C));
    m->norm = tn_child(m, "norm", tn_group_norm_new(.groups = 8, .channels = C));
    m->out = tn_child(m, "out", tn_conv2d_new(.in = C, .out = 1, .size = 3, .padding = 1));
    return tn_built(m);
}

/* An image at a level is sqrt(s) · drawing + sqrt(1 - s) · noise with this s. */
static double share(int64_t level) { return pow(cos((double)level / LEVELS * 1.56), 2); }

static tn_tensor *loss_of(unet *m)
{
    tn_tensor *x = drawings(BATCH), *noise = tn_normal(tn_shape_of(x), 0, 1);
    tn_tensor *level = tn_zeros_of(TN_I64, TN_SHAPE(BATCH)), *s = tn_zeros(TN_SHAPE(BATCH, 1, 1, 1));
    for (int64_t i = 0; i < BATCH; i++) {
        tn_set_i64(level, i, 1 + (int64_t)tn_random_below(NULL, LEVELS));
        tn_set(s, i, share(tn_get_i64(level, i)));
    }
    x = tn_add(tn_mul(x, tn_sqrt(s)), tn_mul(noise, tn_sqrt(tn_rsub_scalar(s, 1))));
    return tn_mse_loss(unet_run(m, x, level), noise);
}

static tn_tensor *draw(unet *m, int64_t n)
{
    tn_tensor *x = tn_normal(TN_SHAPE(n, 1, SIDE, SIDE), 0, 1);
    for (int64_t i = DRAW; i > 0; i--) {
        const double s = share(i * LEVELS / DRAW), next = share((i - 1) * LEVELS / DRAW);
        tn_tensor   *noise = unet_run(m, x, tn_full_of(TN_I64, TN_SHAPE(n), (double)(i * LEVELS / DRAW)));
        tn_tensor   *guess = tn_mul_scalar(tn_sub(x, tn_mul_scalar(noise, sqrt(1 - s))), 1 / sqrt(s));
        guess = tn_clamp(guess, -1, 1);
        noise = tn_mul_scalar(tn_sub(x, tn_mul_scalar(guess, sqrt(s))), 1 / sqrt(1 - s));
        x = tn_add(tn_mul_scalar(guess, sqrt(next)), tn_mul_scalar(noise, sqrt(1 - next)));
    }
    return x;
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 1000;
    tn_seed(1);
    unet         *m = unet_new();
    tn_optimizer *opt = tn_adamw_new(m);
    double        sum = 0;
    for (int i = 1; i <= steps && !tn_error(); i++) {
        const tn_scope s = tn_scope_begin();
        tn_tensor     *loss = loss_of(m);
        tn_set_lr(opt, -1, 2e-3 * (1 - (i - 1.0) / steps));
        tn_backward(loss), tn_step(opt), sum += tn_item(loss);
        if (i % 100 == 0) printf("step %4d  loss %.4f\n", i, sum / 100), sum = 0;
        tn_scope_end(s);
    }
    tn_eval(m);
    const tn_scope s = tn_no_grad_begin();
    const float   *pixel = tn_data(draw(m, SHOW));
    for (int64_t y = 0; pixel && y < SIDE; y++, printf("\n"))
        for (int64_t i = 0; i < SHOW * SIDE; i++)
            printf("%s%s", i % SIDE ? "" : "  ", pixel[(i / SIDE * SIDE + y) * SIDE + i % SIDE] > 0 ? "##" : "..");
    if (tn_error()) fprintf(stderr, "%s\n", tn_error_message());
    tn_scope_end(s), tn_optimizer_free(opt), tn_free(m);
    return tn_error() != TN_OK;
}

/* from_pytorch.c — coming from PyTorch: 20 common tasks, on the left in PyTorch, on the right in Tenon. Ops, modules,
 * options and defaults have PyTorch's names; memory belongs to scopes, and errors are checked where you act on a
 * result. */
#include "show.h"

/* Make tensors
 *
 *     x = torch.zeros(2, 3)
 *     y = torch.tensor([1.0, 2.0, 3.0])
 *     i = torch.arange(3)
 *     print(x + y) */
EXAMPLE(make_tensors)
{
    tn_tensor *x = tn_zeros(TN_SHAPE(2, 3));
    tn_tensor *y = tn_from_data(TN_F32, TN_SHAPE(3), (float[]){1, 2, 3});
    tn_tensor *i = tn_arange(3); /* i64 */
    tn_print(stdout, tn_add(x, y));
    tn_print(stdout, i);
}

/* Shapes and views
 *
 *     x = torch.arange(6.).reshape(2, 3)
 *     print(x.T.shape, x[:, 1], x[0, 2].item()) */
EXAMPLE(shapes_and_views)
{
    tn_tensor *x = tn_reshape(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(2, 3));
    char       text[192];
    puts(tn_shape_text(tn_shape_of(tn_transpose(x, 0, 1)), text, sizeof text));
    tn_print(stdout, tn_select(x, 1, 1));
    printf("%g\n", tn_get_at(x, TN_SHAPE(0, 2)));
}

/* Arithmetic with broadcasting
 *
 *     y = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True) */
EXAMPLE(arithmetic_with_broadcasting)
{
    tn_tensor *x = tn_reshape(tn_arange_of(TN_F32, 0, 6, 1), TN_SHAPE(2, 3));
    tn_tensor *mean = tn_mean(x, .dims = TN_DIMS(-1), .keepdim = true);
    tn_tensor *std = tn_std(x, .dims = TN_DIMS(-1), .keepdim = true);
    tn_print(stdout, tn_div(tn_sub(x, mean), std));
}

/* Gradients
 *
 *     x = torch.ones(3, requires_grad=True)
 *     (x ** 2).sum().backward()
 *     print(x.grad) */
EXAMPLE(gradients)
{
    tn_tensor *x = tn_requires_grad(tn_ones(TN_SHAPE(3)));
    tn_backward(tn_sum(tn_square(x)));
    tn_print(stdout, tn_grad(x));
}

/* Without gradients
 *
 *     with torch.no_grad():
 *         y = net(x) */
EXAMPLE(without_gradients)
{
    tn_linear *net = tn_linear_new(.in = 2, .out = 1);
    tn_scope   s = tn_no_grad_begin();
    tn_tensor *y = tn_scope_return(s, tn_call(net, tn_ones(TN_SHAPE(1, 2)))); /* the scope ends here */
    printf("%d\n", tn_needs_grad(y));
    tn_free(net);
}

/* A network of layers
 *
 *     net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
 *     print(net) */
EXAMPLE(network_of_layers)
{
    tn_sequential *net = tn_sequential_new();
    tn_append(net, tn_linear_new(.in = 4, .out = 8));
    tn_append(net, tn_relu_new());
    tn_append(net, tn_linear_new(.in = 8, .out = 2));
    tn_print_module(stdout, net);
    tn_free(net);
}

/* A custom module
 *
 *     class Residual(nn.Module):
 *         def __init__(self, dim):
 *             super().__init__()
 *             self.fc = nn.Linear(dim, dim)
 *         def forward(self, x):
 *             return x + torch.relu(self.fc(x)) */
typedef struct {
    tn_module  base;
    tn_linear *fc;
} residual;

static tn_tensor *residual_forward(residual *m, tn_tensor *x)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    return tn_leave(f, tn_add(x, tn_relu(tn_call(m->fc, x))));
}
TN_FORWARD(residual);

static residual *residual_new(int64_t dim)
{
    residual *m = tn_module_new(residual);
    if (!m) return NULL;
    m->fc = tn_child(m, "fc", tn_linear_new(.in = dim, .out = dim));
    return tn_built(m);
}
EXAMPLE(custom_module)
{
    residual *m = residual_new(2);
    printf("%d values\n", (int)tn_numel(tn_call(m, tn_ones(TN_SHAPE(3, 2)))));
    tn_free(m);
}

/* A step of training
 *
 *     opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
 *     opt.zero_grad()
 *     loss = F.mse_loss(net(x), y)
 *     loss.backward()
 *     opt.step() */
EXAMPLE(step_of_training)
{
    tn_linear    *net = tn_linear_new(.in = 2, .out = 1);
    tn_optimizer *opt = tn_adamw_new(net, .lr = 1e-2);
    tn_tensor    *x = tn_ones(TN_SHAPE(4, 2)), *y = tn_zeros(TN_SHAPE(4, 1));
    tn_tensor    *loss = tn_mse_loss(tn_call(net, x), y);
    tn_backward(loss);
    tn_step(opt); /* also zeroes the gradients */
    printf("%d step\n", (int)tn_steps(opt));
    tn_optimizer_free(opt);
    tn_free(net);
}

/* A training loop
 *
 *     loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
 *     for epoch in range(20):
 *         for xb, yb in loader:
 *             ... # a step
 *     # or: a Trainer of another library */
static tn_tensor *squares(void *net, const tn_batch *b, void *user)
{
    (void)user;
    return tn_mse_loss(tn_call((tn_linear *)net, b->x), b->y);
}
EXAMPLE(training_loop)
{
    tn_linear    *net = tn_linear_new(.in = 1, .out = 1);
    tn_tensor    *x = tn_reshape(tn_linspace(-1, 1, 32), TN_SHAPE(32, 1)), *y = tn_mul_scalar(x, 2);
    tn_dataset   *data = tn_dataset_new(.x = x, .y = y, .batch = 8, .shuffle = true);
    tn_fit_result r = tn_fit(net, .train = tn_dataset_source(data), .loss = squares, .lr = 0.1, .epochs = 20);
    printf("%d steps, loss below 0.01: %d\n", (int)r.steps, r.loss < 0.01);
    tn_dataset_free(data);
    tn_free(net);
}

/* Learning rate schedules
 *
 *     sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=100)
 *     opt.step(); sched.step() */
EXAMPLE(learning_rate_schedules)
{
    tn_linear    *net = tn_linear_new(.in = 2, .out = 1);
    tn_optimizer *opt = tn_sgd_new(net, .lr = 1);
    tn_schedule  *sched = tn_cosine_lr_new(opt, .steps = 100);
    tn_schedule_step(sched);
    printf("%.4f\n", tn_lr(opt, 0));
    tn_optimizer_free(opt); /* frees the schedule */
    tn_free(net);
}

/* Clip gradients
 *
 *     nn.utils.clip_grad_norm_(net.parameters(), 1.0)
 *     opt.step() */
EXAMPLE(clip_gradients)
{
    tn_linear    *net = tn_linear_new(.in = 2, .out = 1);
    tn_optimizer *opt = tn_sgd_new(net, .lr = 0.1, .clip.norm = 1); /* in the same pass as the step */
    tn_backward(tn_sum(tn_call(net, tn_full(TN_SHAPE(1, 2), 100))));
    tn_step(opt);
    printf("norm before clipping above 1: %d\n", tn_grad_norm(opt) > 1);
    tn_optimizer_free(opt);
    tn_free(net);
}

/* Train and eval mode
 *
 *     net.eval()
 *     y = net(x)
 *     net.train() */
EXAMPLE(train_and_eval_mode)
{
    tn_dropout *drop = tn_dropout_new(.p = 0.5);
    tn_eval(drop);
    tn_print(stdout, tn_call(drop, tn_ones(TN_SHAPE(3))));
    tn_train(drop, true);
    tn_free(drop);
}

/* Save and load weights
 *
 *     save_file(net.state_dict(), "net.safetensors")
 *     net.load_state_dict(load_file("net.safetensors")) */
EXAMPLE(save_and_load_weights)
{
    tn_linear *net = tn_linear_new(.in = 2, .out = 1);
    tn_save(net, "net.safetensors"); /* PyTorch reads it, with the same names */
    tn_load(net, "net.safetensors");
    printf("%s\n", tn_status_name(tn_error()));
    tn_free(net);
}

/* Number of parameters
 *
 *     sum(p.numel() for p in net.parameters())
 *     for name, p in net.named_parameters():
 *         print(name, tuple(p.shape)) */
EXAMPLE(number_of_parameters)
{
    tn_linear *net = tn_linear_new(.in = 2, .out = 3);
    char       text[192];
    printf("%d\n", (int)tn_count(net));
    for (tn_each p = tn_parameters(net); tn_next(&p);)
        printf("%s %s\n", p.name, tn_shape_text(tn_shape_of(p.tensor), text, sizeof text));
    tn_free(net);
}

/* Freeze a part
 *
 *     for p in net.parameters():
 *         p.requires_grad_(False) */
EXAMPLE(freeze_a_part)
{
    tn_linear *net = tn_linear_new(.in = 2, .out = 3);
    tn_freeze(net, true);
    printf("%d\n", (int)tn_count_trainable(net));
    tn_free(net);
}

/* Attention with a causal mask
 *
 *     y = F.scaled_dot_product_attention(q, k, v, is_causal=True) */
EXAMPLE(attention_with_a_causal_mask)
{
    tn_tensor *q = tn_reshape(tn_arange_of(TN_F32, 0, 4, 1), TN_SHAPE(1, 2, 2));
    tn_print(stdout, tn_attention(q, q, q, .causal = true));
}

/* Classification: loss and accuracy
 *
 *     loss = F.cross_entropy(logits, target, ignore_index=-100)
 *     acc = (logits.argmax(-1) == target).float().mean() */
EXAMPLE(classification)
{
    tn_tensor *logits = tn_from_data(TN_F32, TN_SHAPE(2, 2), (float[]){2, 1, 0, 1});
    tn_tensor *target = tn_from_data(TN_I64, TN_SHAPE(2), (int64_t[]){0, 0});
    tn_tensor *right = tn_eq(tn_argmax(logits, -1, false), target);
    printf("%.4f %.2f\n", tn_item(tn_cross_entropy(logits, target)), tn_item(tn_mean(tn_to(right, TN_F32))));
}

/* Mixed precision
 *
 *     with torch.autocast("cpu", dtype=torch.bfloat16):
 *         loss = net(x).sum()
 *     loss.backward() */
EXAMPLE(mixed_precision)
{
    tn_linear *net = tn_linear_new(.in = 2, .out = 1);
    tn_scope   s = tn_autocast_begin(true);
    tn_tensor *loss = tn_scope_return(s, tn_sum(tn_call(net, tn_ones(TN_SHAPE(1, 2)))));
    tn_backward(loss);
    printf("%s\n", tn_dtype_name(tn_dtype_of(tn_grad(net->weight)))); /* weights and gradients stay f32 */
    tn_free(net);
}

/* Random seeds
 *
 *     torch.manual_seed(42)
 *     x = torch.randn(2, 2) */
EXAMPLE(random_seeds)
{
    tn_seed(42); /* the numbers are not those of PyTorch, and do not depend on threads */
    tn_print(stdout, tn_normal(TN_SHAPE(2, 2), 0, 1));
}

/* Exceptions
 *
 *     try:
 *         y = a @ b
 *     except RuntimeError as e:
 *         print(e) */
EXAMPLE(exceptions)
{
    tn_tensor *y = tn_matmul(tn_ones(TN_SHAPE(2, 3)), tn_ones(TN_SHAPE(2, 3)));
    if (!y) printf("%s\n", tn_error_message());
    tn_clear_error();
}

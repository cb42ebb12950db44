#!/usr/bin/python3
"""Writes modules.safetensors: the results of PyTorch for the modules of tests/unit/nn/test_golden_modules.c: outputs,
gradients of inputs and parameters, and the printed modules.

    /usr/bin/python3 tests/golden/modules.py        (Debian's python3-torch 1.13 and python3-numpy)

Modules that PyTorch 1.13 lacks are written here with its basic ops.
"""
import sys

sys.dont_write_bytecode = True
import torch
from torch import nn
from case import case, run, values


def simple(name, make, *shape):
    """Adds a case with a module of one input."""
    def f(k):
        return k.fill(make())(k.input("x", *shape))
    f.__name__ = name
    return case(f)


# ---- products ----
simple("linear", lambda: nn.Linear(5, 3), 2, 4, 5)
simple("linear_no_bias", lambda: nn.Linear(5, 3, bias=False), 4, 5)
simple("identity", lambda: nn.Identity(), 2, 3)


@case
def bilinear(k):
    m = k.fill(nn.Bilinear(3, 4, 2))
    return m(k.input("a", 5, 2, 3), k.input("b", 5, 2, 4))


@case
def bilinear_no_bias(k):
    m = k.fill(nn.Bilinear(3, 4, 2, bias=False))
    return m(k.input("a", 5, 3), k.input("b", 5, 4))


# ---- tables ----
INDEX = [[1, 4, 2, 2], [0, 5, 4, 0], [2, 2, 2, 2]]
FLAT, OFFSETS = [1, 4, 2, 2, 0, 5, 4, 2], [0, 3, 3, 5]


@case
def embedding(k):
    return k.fill(nn.Embedding(6, 3))(torch.tensor(INDEX))


@case
def embedding_padding(k):
    return k.fill(nn.Embedding(6, 3, padding_idx=2))(torch.tensor(INDEX))


def bag(name, mode, padding, offsets):
    def f(k):
        m = k.fill(nn.EmbeddingBag(6, 3, mode=mode, padding_idx=padding))
        return m(torch.tensor(FLAT), torch.tensor(OFFSETS)) if offsets else m(torch.tensor(INDEX))
    f.__name__ = name
    return case(f)


for mode in "mean", "sum", "max":
    bag("bag_" + mode, mode, None, False)
    bag("bag_" + mode + "_offsets", mode, None, True)
    bag("bag_" + mode + "_padding", mode, 2, False)
    bag("bag_" + mode + "_padding_offsets", mode, 2, True)


@case
def bag_last_offset(k):
    m = k.fill(nn.EmbeddingBag(6, 3, mode="sum", include_last_offset=True))
    return m(torch.tensor(FLAT), torch.tensor(OFFSETS + [8]))


@case
def bag_weights(k):
    return k.fill(nn.EmbeddingBag(6, 3, mode="sum"))(torch.tensor(FLAT), torch.tensor(OFFSETS), k.input("w", 8))


# ---- normalisation ----
simple("layer_norm", lambda: nn.LayerNorm(6), 2, 3, 6)
simple("layer_norm_plain", lambda: nn.LayerNorm(6, elementwise_affine=False, eps=1e-3), 2, 3, 6)
simple("layer_norm_two", lambda: nn.LayerNorm((3, 4)), 2, 3, 4)
simple("layer_norm_two_plain", lambda: nn.LayerNorm((3, 4), elementwise_affine=False), 2, 3, 4)


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=None):
        super().__init__()
        self.eps, self.dim = eps, dim
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        eps = torch.finfo(x.dtype).eps if self.eps is None else self.eps
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * self.weight

    def extra_repr(self):
        return "(%d,), eps=%s, elementwise_affine=True" % (self.dim, self.eps)


simple("rms_norm", lambda: RMSNorm(6, 1e-6), 2, 3, 6)


def batch_norm(name, make, shape, eval=False):
    def f(k):
        m = k.fill(make())
        if m.running_mean is not None:
            m.running_mean.copy_(values(name + "/mean", (3,)))
            m.running_var.copy_(1 + values(name + "/var", (3,)) / 2)
        if eval:
            m.eval()
        y = m(k.input("x", *shape))
        if m.running_mean is not None:
            k.weights["w"] = torch.stack([m.running_mean, m.running_var, m.num_batches_tracked.double().expand(3)])
        return y
    f.__name__ = name
    return case(f)


batch_norm("batch_norm1d", lambda: nn.BatchNorm1d(3), (5, 3))
batch_norm("batch_norm1d_3", lambda: nn.BatchNorm1d(3, momentum=0.3, eps=1e-3), (2, 3, 4))
batch_norm("batch_norm1d_cumulative", lambda: nn.BatchNorm1d(3, momentum=None), (5, 3))
batch_norm("batch_norm1d_eval", lambda: nn.BatchNorm1d(3), (5, 3, 2), eval=True)
batch_norm("batch_norm1d_plain", lambda: nn.BatchNorm1d(3, affine=False, track_running_stats=False), (5, 3))
batch_norm("batch_norm1d_plain_eval", lambda: nn.BatchNorm1d(3, track_running_stats=False), (5, 3), eval=True)
batch_norm("batch_norm2d", lambda: nn.BatchNorm2d(3), (2, 3, 4, 2))
batch_norm("batch_norm2d_eval", lambda: nn.BatchNorm2d(3), (2, 3, 4, 2), eval=True)
simple("group_norm", lambda: nn.GroupNorm(2, 6), 2, 6, 3)
simple("group_norm_plain", lambda: nn.GroupNorm(2, 6, affine=False), 2, 6)
simple("group_norm_images", lambda: nn.GroupNorm(6, 6, eps=1e-3), 2, 6, 2, 3)
simple("instance_norm1d", lambda: nn.InstanceNorm1d(3, affine=True), 2, 3, 4)
simple("instance_norm2d", lambda: nn.InstanceNorm2d(3), 2, 3, 4, 2)
simple("dropout_none", lambda: nn.Dropout(0.0), 2, 3)

# ---- convolution and pooling ----
simple("conv1d", lambda: nn.Conv1d(3, 4, 3), 2, 3, 9)
simple("conv1d_options", lambda: nn.Conv1d(4, 6, 3, stride=2, padding=2, dilation=2, groups=2, bias=False), 2, 4, 9)
simple("conv2d", lambda: nn.Conv2d(3, 4, 3), 2, 3, 5, 6)
simple("conv2d_options",
       lambda: nn.Conv2d(2, 4, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2), 1, 2, 6, 7)
simple("conv2d_square", lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1, dilation=2), 1, 2, 7, 7)
wn = nn.utils.weight_norm
simple("linear_normed", lambda: wn(nn.Linear(5, 3)), 2, 4, 5)
simple("conv1d_normed", lambda: wn(nn.Conv1d(4, 6, 3, padding=1, groups=2)), 2, 4, 5)
simple("conv2d_normed", lambda: wn(nn.Conv2d(2, 3, (3, 1))), 1, 2, 5, 4)
simple("conv_transpose1d", lambda: nn.ConvTranspose1d(3, 4, 3), 2, 3, 5)
simple("conv_transpose1d_options",
       lambda: nn.ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, dilation=2, groups=2, bias=False),
       2, 4, 5)
simple("conv_transpose1d_normed", lambda: wn(nn.ConvTranspose1d(3, 2, 4, stride=2, padding=1)), 2, 3, 5)
simple("conv_transpose2d", lambda: nn.ConvTranspose2d(3, 4, 3), 2, 3, 4, 3)
simple("conv_transpose2d_options",
       lambda: nn.ConvTranspose2d(2, 4, (3, 2), stride=(2, 3), padding=(1, 0), output_padding=(1, 2),
                                  dilation=(1, 2), groups=2), 1, 2, 3, 4)
simple("adaptive_avg_pool1d", lambda: nn.AdaptiveAvgPool1d(4), 2, 3, 9)
simple("adaptive_avg_pool2d", lambda: nn.AdaptiveAvgPool2d((2, 3)), 1, 2, 5, 8)
simple("adaptive_max_pool1d", lambda: nn.AdaptiveMaxPool1d(4), 2, 3, 9)
simple("adaptive_max_pool2d", lambda: nn.AdaptiveMaxPool2d(1), 1, 2, 5, 8)
simple("max_pool1d", lambda: nn.MaxPool1d(3, stride=2, padding=1), 2, 3, 9)
simple("max_pool1d_dilated", lambda: nn.MaxPool1d(2, dilation=3), 2, 3, 9)
simple("max_pool2d", lambda: nn.MaxPool2d(2), 1, 2, 6, 8)
simple("max_pool2d_options",
       lambda: nn.MaxPool2d((2, 3), stride=(2, 1), padding=(1, 0), dilation=(1, 2)), 1, 2, 6, 8)
simple("avg_pool1d", lambda: nn.AvgPool1d(3, stride=2, padding=1), 2, 3, 9)
simple("avg_pool2d", lambda: nn.AvgPool2d(2), 1, 2, 6, 8)
simple("avg_pool2d_options",
       lambda: nn.AvgPool2d((2, 3), stride=(2, 1), padding=(1, 0), count_include_pad=False), 1, 2, 6, 8)
simple("flatten", lambda: nn.Flatten(), 2, 3, 4)
simple("flatten_first", lambda: nn.Flatten(0, 1), 2, 3, 4)

# ---- activations ----
for name, make in [
        ("relu", nn.ReLU), ("selu", nn.SELU), ("silu", nn.SiLU), ("mish", nn.Mish), ("tanh", nn.Tanh),
        ("sigmoid", nn.Sigmoid), ("logsigmoid", nn.LogSigmoid), ("leaky_relu", nn.LeakyReLU),
        ("leaky_relu_02", lambda: nn.LeakyReLU(0.2)), ("elu", nn.ELU), ("elu_2", lambda: nn.ELU(2.0)),
        ("prelu", nn.PReLU), ("prelu_channels", lambda: nn.PReLU(4)),
        ("gelu", nn.GELU), ("gelu_tanh", lambda: nn.GELU(approximate="tanh")), ("softplus", nn.Softplus),
        ("softplus_3", lambda: nn.Softplus(3.0)), ("softmax", lambda: nn.Softmax(dim=-1)),
        ("softmax_0", lambda: nn.Softmax(dim=0)), ("log_softmax_1", lambda: nn.LogSoftmax(dim=1)), ("glu", nn.GLU)]:
    simple(name, make, 3, 4)


# ---- positions ----
class Sinusoidal(nn.Module):
    def __init__(self, dim, time_first=False):
        super().__init__()
        self.dim, self.time_first = dim, time_first

    def forward(self, x, start=0):
        steps = x.shape[0 if self.time_first else 1]
        i, t = torch.arange(self.dim), torch.arange(start, start + steps).double()[:, None]
        angle = t * torch.pow(torch.tensor(10000.0).double(), -(i // 2 * 2).double() / self.dim)
        pe = torch.where(i % 2 == 0, torch.sin(angle), torch.cos(angle))
        return x + (pe[:, None] if self.time_first else pe)


class Learned(nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(length, dim))

    def forward(self, x, start=0):
        return x + self.weight[start:start + x.shape[1]]


simple("sinusoidal", lambda: Sinusoidal(6), 2, 5, 6)
simple("sinusoidal_odd", lambda: Sinusoidal(5, True), 4, 2, 5)
simple("learned", lambda: Learned(7, 3), 2, 5, 3)


@case
def sinusoidal_from_9(k):
    return k.fill(Sinusoidal(6))(k.input("x", 2, 3, 6), 9)


@case
def learned_from_2(k):
    return k.fill(Learned(7, 3))(k.input("x", 2, 5, 3), 2)


# ---- losses ----
@case
def cosine_loss(k):
    m = k.fill(nn.CosineEmbeddingLoss(margin=0.25))
    return m(k.input("x", 5, 4), k.input("y", 5, 4), torch.tensor([1, -1, 1, -1, -1]))


# ---- language models before the Transformer ----
class Highway(nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        self.dim, self.layers = dim, nn.ModuleList(nn.Linear(dim, 2 * dim) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            a, b = layer(x).chunk(2, -1)
            g = torch.sigmoid(b)
            x = g * x + (1 - g) * torch.relu(a)
        return x

    def extra_repr(self):
        return f"dim={self.dim}"


class ScalarMix(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.weight, self.gamma = nn.Parameter(torch.zeros(count)), nn.Parameter(torch.tensor(1.0))

    def forward(self, *x):
        return self.gamma * sum(w * y for w, y in zip(torch.softmax(self.weight, 0), x))

    def extra_repr(self):
        return f"count={len(self.weight)}"


simple("highway", lambda: Highway(4, 2), 2, 3, 4)


@case
def scalar_mix(k):
    return k.fill(ScalarMix(3))(*(k.input(n, 2, 4) for n in "abc"))


ADAPTIVE = [0, 3, 5, 9, 11, 4, 2]


@case
def adaptive_softmax(k):
    m = k.fill(nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 9], div_value=2.0, head_bias=True))
    return torch.cat([y.reshape(-1) for y in m(k.input("x", 7, 8), torch.tensor(ADAPTIVE))])


@case
def adaptive_log_prob(k):
    return k.fill(nn.AdaptiveLogSoftmaxWithLoss(8, 12, [4, 9], div_value=2.0)).log_prob(k.input("x", 3, 8))


class NCELoss(nn.Module):
    """Noise-contrastive loss: counts, power 0.75, and three noise samples."""
    def __init__(self, counts):
        super().__init__()
        q = torch.tensor(counts, dtype=torch.float64) ** 0.75
        self.shift = torch.log(3 * q / q.sum())

    def forward(self, x, weight, bias, target, noise):
        s = x @ weight.T + bias - self.shift
        right, wrong = s.gather(1, target[:, None])[:, 0], s.gather(1, noise.expand(len(x), 3))
        return nn.functional.softplus(-right) + nn.functional.softplus(wrong).sum(1)


class NegativeSamplingLoss(NCELoss):
    def __init__(self, counts):
        super().__init__(counts)
        self.shift = 0


def sampled(name, kind, noise):
    def f(k):
        m = k.fill(kind([5, 1, 9, 2, 3]))
        return m(k.input("x", 4, 3), k.input("weight", 5, 3), k.input("bias", 5), torch.tensor([2, 0, 4, 2]),
                 torch.tensor(noise))
    f.__name__ = name
    return case(f)


sampled("nce", NCELoss, [0, 2, 1])
sampled("nce_rows", NCELoss, [[0, 2, 1], [3, 3, 0], [4, 1, 2], [0, 0, 2]])
sampled("negative_sampling", NegativeSamplingLoss, [0, 2, 1])

run(__file__, "modules")

#!/usr/bin/python3
"""Writes ops.safetensors: the values and gradients that PyTorch computes for the cases of
tests/unit/autograd/test_golden.c.

    /usr/bin/python3 tests/golden/ops.py        (PyTorch 2.15 and NumPy)

Inputs are not stored: both sides compute them from one formula (`values` below). The metadata describes the inputs of a
case, so that the C code contains only the call. Ops that PyTorch lacks are written here with basic ops, in f64.
"""
import json
import math
import os
import struct

import numpy as np
import torch
import torch.nn.functional as F

CASES = []


def values(seed, slot, n, low, high):
    i = np.arange(n, dtype=np.int64)
    u = ((i * 7919 + slot * 104729 + seed * 1299709 + 17) % 10007).astype(np.float64) / 10007.0
    return low + (high - low) * u


class Spec:
    def __init__(self, kind, shape, low, high):
        self.kind, self.shape, self.low, self.high = kind, shape, low, high

    def text(self):
        return "%s %s %r %r" % (self.kind, ",".join(map(str, self.shape)) or "-", float(self.low), float(self.high))

    def make(self, seed, slot, dtype):
        v = values(seed, slot, int(np.prod(self.shape)), self.low, self.high).reshape(self.shape)
        if self.kind == "i":
            return torch.from_numpy(np.array(np.floor(v), dtype=np.int64))
        if self.kind == "m":
            return torch.from_numpy(np.array(v < 0.5))
        if self.kind == "p":  # rows that sum to 1
            v = v / v.sum(-1, keepdims=True)
        t = torch.from_numpy(np.array(v)).to(dtype)
        return t.requires_grad_(self.kind in "rp")


def r(*shape, low=-2.0, high=2.0): return Spec("r", shape, low, high)      # real, with gradient
def c(*shape, low=-2.0, high=2.0): return Spec("c", shape, low, high)      # real, a constant
def p(*shape): return Spec("p", shape, 0.1, 1.0)
def i(*shape, low=0, high=2): return Spec("i", shape, low, high)
def m(*shape): return Spec("m", shape, 0.0, 1.0)


def case(name, fn, *specs, tol=None):
    CASES.append((name, fn, specs, tol))


# ---- arithmetic ----
for n, f in dict(add=torch.add, sub=torch.sub, mul=torch.mul, maximum=torch.maximum, minimum=torch.minimum).items():
    case(n, f, r(2, 3, 4), r(2, 3, 4))
    case(n + "_broadcast", f, r(3, 1), r(2, 1, 4))
    case(n + "_scalar_tensor", f, r(3, 4), r())
case("div", torch.div, r(2, 3, 4), r(2, 3, 4, low=0.5, high=2))
case("div_broadcast", torch.div, r(3, 1), r(2, 1, 4, low=-3, high=-0.5))
case("pow", torch.pow, r(3, 4, low=0.2, high=3), r(3, 4))
case("pow_broadcast", torch.pow, r(3, 1, low=0.2, high=3), r(4))
case("remainder", torch.remainder, r(3, 4, low=-5, high=5), c(4, low=0.7, high=2))
case("remainder_negative", torch.remainder, r(3, 4, low=-5, high=5), c(4, low=-2, high=-0.7))
case("add_scalar", lambda x: x + 0.7, r(3, 4))
case("mul_scalar", lambda x: x * -1.3, r(3, 4))
case("div_scalar", lambda x: x / 3, r(3, 4))
case("rsub_scalar", lambda x: 1 - x, r(3, 4))
case("pow_scalar_2", lambda x: x ** 2, r(3, 4))
case("pow_scalar_half", lambda x: x ** 0.5, r(3, 4, low=0.1, high=4))
case("pow_scalar_minus_3", lambda x: x ** -3.0, r(3, 4, low=0.5, high=2))
case("pow_scalar_0", lambda x: x ** 0.0, r(3, 4))

# ---- functions of one element ----
for n, f, low, high in [
        ("neg", torch.neg, -2, 2), ("abs", torch.abs, -2, 2), ("sign", torch.sign, -2, 2), ("exp", torch.exp, -5, 5),
        ("expm1", torch.expm1, -1e-3, 1e-3), ("log", torch.log, 0.01, 10), ("log1p", torch.log1p, -1e-3, 1e-3),
        ("sqrt", torch.sqrt, 0.01, 9), ("rsqrt", torch.rsqrt, 0.1, 9), ("square", torch.square, -3, 3),
        ("reciprocal", torch.reciprocal, 0.3, 4), ("sin", torch.sin, -7, 7), ("cos", torch.cos, -7, 7),
        ("tanh", torch.tanh, -3, 3), ("erf", torch.erf, -3, 3), ("floor", torch.floor, -5, 5), ("ceil", torch.ceil,
             -5, 5),
        ("round", torch.round, -5, 5), ("sigmoid", torch.sigmoid, -6, 6), ("logsigmoid", F.logsigmoid, -6, 6),
        ("relu", torch.relu, -2, 2), ("gelu", F.gelu, -5, 5), ("silu", F.silu, -6, 6)]:
    case(n, f, r(4, 6, low=low, high=high))
case("clamp", lambda x: torch.clamp(x, -1.1, 0.6), r(4, 6))
case("leaky_relu", lambda x: F.leaky_relu(x, 0.07), r(4, 6))
case("elu", lambda x: F.elu(x, 1.7), r(4, 6))
case("gelu_tanh", lambda x: F.gelu(x, approximate="tanh"), r(4, 6, low=-5, high=5))
case("softplus", lambda x: F.softplus(x, 1.5), r(4, 6, low=-5, high=5))
case("softplus_linear", lambda x: F.softplus(x, 1.0), r(4, 6, low=15, high=30))
case("glu", lambda x: F.glu(x, -1), r(3, 8))
case("glu_0", lambda x: F.glu(x, 0), r(4, 3, 2))

# ---- comparison and choice ----
for n in "eq ne lt le gt ge".split():
    case(n, getattr(torch, n), i(3, 4, high=3), i(3, 4, high=3))
for n in "and or xor".split():
    case("logical_" + n, getattr(torch, "logical_" + n), m(3, 4), m(3, 4))
case("logical_not", torch.logical_not, m(3, 4))
case("where", torch.where, m(3, 4), r(3, 4), r(3, 4))
case("where_broadcast", torch.where, m(3, 1), r(2, 1, 4), r(4))
case("masked_fill", lambda x, k: x.masked_fill(k, -7.5), r(2, 3, 4), m(3, 4))
case("masked_select", torch.masked_select, r(3, 4), m(3, 4))

case("isfinite", lambda x: torch.isfinite(torch.log(x)), c(3, 4))
case("isnan", lambda x: torch.isnan(torch.log(x)), c(3, 4))
case("allclose_no", lambda a, b: torch.tensor(torch.allclose(a, b, 1e-3, 1e-3)), c(3, 4), c(3, 4))
case("allclose_yes", lambda a: torch.tensor(torch.allclose(a, a + 1e-4, 1e-3, 1e-3)), c(3, 4))

# ---- reductions ----
for n, f in dict(sum=torch.sum, mean=torch.mean).items():
    case(n, f, r(3, 4, 5))
    case(n + "_1", lambda x, f=f: f(x, 1), r(3, 4, 5))
    case(n + "_02_keep", lambda x, f=f: f(x, (0, 2), keepdim=True), r(3, 4, 5))
case("prod", torch.prod, r(3, 4, low=0.5, high=2))
case("prod_1", lambda x: torch.prod(x, 1), r(3, 4))
case("prod_0_keep", lambda x: torch.prod(x, 0, keepdim=True), r(3, 4))
case("var", torch.var, r(3, 4, 5))
case("var_1_biased", lambda x: torch.var(x, 1, unbiased=False), r(3, 4, 5))
case("std", torch.std, r(3, 4, 5))
case("std_02_keep", lambda x: torch.std(x, (0, 2), keepdim=True), r(3, 4, 5))
case("amax", lambda x: torch.amax(x, (0, 1, 2)), r(3, 4, 5))
case("amax_1", lambda x: torch.amax(x, 1), r(3, 4, 5))
case("amin_02", lambda x: torch.amin(x, (0, 2)), r(3, 4, 5))
case("norm", torch.linalg.vector_norm, r(3, 4, 5))
case("norm_1", lambda x: torch.linalg.vector_norm(x, 1, 1), r(3, 4, 5))
case("norm_3", lambda x: torch.linalg.vector_norm(x, 3, (0, 2)), r(3, 4, 5))
case("norm_inf", lambda x: torch.linalg.vector_norm(x, math.inf, 2), r(3, 4, 5))
case("norm_0", lambda x: torch.linalg.vector_norm(x, 0, 1), c(3, 4))
case("logsumexp_1", lambda x: torch.logsumexp(x, 1), r(3, 4, 5))
case("logsumexp_02_keep", lambda x: torch.logsumexp(x, (0, 2), keepdim=True), r(3, 4, 5, low=50, high=90))
case("any_1", lambda x: torch.any(x, 1), m(3, 2))
case("all_1", lambda x: torch.all(x, 1), m(3, 2))
case("max_1", lambda x: torch.max(x, 1)[0], r(3, 4, 5))
case("max_1_indices", lambda x: torch.max(x, 1)[1], c(3, 4, 5))
case("min_0_keep", lambda x: torch.min(x, 0, keepdim=True)[0], r(3, 4, 5))
case("argmax", torch.argmax, c(3, 4, 5))
case("argmax_2", lambda x: torch.argmax(x, 2), c(3, 4, 5))
case("argmin_0_keep", lambda x: torch.argmin(x, 0, keepdim=True), c(3, 4, 5))
case("cumsum_0", lambda x: torch.cumsum(x, 0), r(5, 3))
case("cumsum_1", lambda x: torch.cumsum(x, 1), r(2, 6, 3))
for n, f in dict(softmax=torch.softmax, log_softmax=torch.log_softmax).items():
    case(n, lambda x, f=f: f(x, -1), r(3, 7))
    case(n + "_1", lambda x, f=f: f(x, 1), r(2, 5, 3))
    case(n + "_large", lambda x, f=f: f(x, 0), r(5, 3, low=800, high=804))

# ---- products ----
case("matmul", torch.matmul, r(3, 5), r(5, 4))
case("matmul_batched", torch.matmul, r(2, 3, 5), r(2, 5, 4))
case("matmul_broadcast", torch.matmul, r(2, 1, 3, 5), r(3, 5, 4))
case("matmul_shared", torch.matmul, r(2, 3, 5), r(5, 4))
case("matmul_vector_left", torch.matmul, r(5), r(2, 5, 4))
case("matmul_vector_right", torch.matmul, r(2, 3, 5), r(5))
case("matmul_dot", torch.matmul, r(6), r(6))
case("linear", F.linear, r(2, 3, 5), r(4, 5), r(4))
case("linear_no_bias", F.linear, r(3, 5), r(4, 5))
case("linear_vector", F.linear, r(5), r(4, 5), r(4))
case("outer", torch.outer, r(3), r(5))
for n, e, shapes in [
        ("ij_jk", "ij,jk->ik", [(3, 4), (4, 5)]), ("transpose", "ij->ji", [(3, 4)]), ("trace", "ii->", [(4, 4)]),
        ("diagonal", "ii->i", [(4, 4)]), ("batched", "bij,bjk->bik", [(2, 3, 4), (2, 4, 2)]),
        ("heads", "bhtd,bhsd->bhts", [(2, 2, 3, 4), (2, 2, 5, 4)]), ("outer", "i,j->ij", [(3,), (4,)]),
        ("ellipsis", "...ij,...jk->...ik", [(2, 3, 4), (4, 2)]), ("implicit", "ij,jk", [(3, 4), (4, 2)]),
        ("three", "ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]), ("sum", "ijk->j", [(2, 3, 4)]), ("bilinear",
             "bi,oij,bj->bo", [(2, 3), (4, 3, 5), (2, 5)])]:
    case("einsum_" + n, lambda *x, e=e: torch.einsum(e, *x), *[r(*s) for s in shapes])

# ---- views ----
case("reshape", lambda x: x.reshape(4, -1), r(2, 3, 4))
case("flatten", lambda x: x.flatten(1, 2), r(2, 3, 4))
case("permute", lambda x: x.permute(2, 0, 1), r(2, 3, 4))
case("transpose", lambda x: x.transpose(0, -1), r(2, 3, 4))
case("slice", lambda x: x[:, 1:6:2], r(2, 7))
case("slice_negative", lambda x: x[-4:-1], r(6, 2))
case("narrow", lambda x: x.narrow(1, 2, 3), r(2, 7))
case("select", lambda x: x.select(1, -2), r(2, 4, 3))
case("expand", lambda x: x.expand(2, 3, 4), r(3, 1))
case("squeeze", lambda x: x.squeeze(1), r(2, 1, 3))
case("unsqueeze", lambda x: x.unsqueeze(-1), r(2, 3))
case("diagonal", lambda x: x.diagonal(1, 0, 2), r(3, 2, 4))
case("diagonal_below", lambda x: x.diagonal(-1), r(4, 3))
case("unfold", lambda x: x.unfold(1, 3, 2), r(2, 8))

case("view", lambda x: x.view(4, -1), r(2, 3, 4))
case("clone", lambda x: x.clone(), r(2, 3))
case("contiguous", lambda x: x.t().contiguous(), r(2, 3))
case("copy", lambda x: torch.zeros(2, 3, dtype=x.dtype).copy_(x), r(3))
case("to", lambda x: x.to(torch.float64).to(x.dtype), r(2, 3))

# ---- joining, splitting, moving ----
case("cat_1", lambda a, b, c: torch.cat([a, b, c], 1), r(2, 3), r(2, 1), r(2, 2))
case("stack_1", lambda a, b: torch.stack([a, b], 1), r(2, 3), r(2, 3))
case("split_second", lambda x: torch.split(x, 3, 1)[1], r(2, 7))
case("chunk_last", lambda x: torch.chunk(x, 3, 0)[2], r(7, 2))
case("pad", lambda x: F.pad(x, (1, 2, 0, 3), value=0.5), r(2, 3))
case("pad_negative", lambda x: F.pad(x, (-1, 1)), r(2, 4))
case("tril", lambda x: torch.tril(x, -1), r(2, 4, 4))
case("triu", lambda x: torch.triu(x, 1), r(3, 5))
case("roll", lambda x: torch.roll(x, 2, 1), r(2, 5))
case("roll_back", lambda x: torch.roll(x, -7, 0), r(3, 2))
case("flip", lambda x: torch.flip(x, (0, 2)), r(2, 3, 4))
case("repeat", lambda x: x.repeat(2, 1, 3), r(2, 3))
case("repeat_interleave", lambda x: torch.repeat_interleave(x, 3, 1), r(2, 3))

# ---- by index ----
case("gather_1", lambda x, k: torch.gather(x, 1, k), r(3, 5), i(3, 4, high=5))
case("gather_0", lambda x, k: torch.gather(x, 0, k), r(3, 5), i(6, 2, high=3))
case("scatter_add", lambda x, k, s: torch.scatter_add(x, 1, k, s), r(3, 5), i(3, 4, high=5), r(3, 4))
case("index_select", lambda x, k: torch.index_select(x, 1, k), r(2, 5, 3), i(4, high=5))
case("index_add", lambda x, k, s: torch.index_add(x, 0, k, s), r(4, 3), i(6, high=4), r(6, 3))
case("take_along", lambda x, k: torch.take_along_dim(x, k, 1), r(3, 5), i(1, 4, high=5))
case("embedding", lambda w, k: F.embedding(k, w), r(6, 3), i(2, 4, high=6))
case("embedding_padding", lambda w, k: F.embedding(k, w, padding_idx=2), r(6, 3), i(2, 4, high=6))
case("one_hot", lambda k: F.one_hot(k, 5), i(2, 3, high=5))
case("sort", lambda x: torch.sort(x, 1)[0], r(3, 6))
case("sort_descending_indices", lambda x: torch.sort(x, 0, descending=True)[1], c(6, 3))
case("topk", lambda x: torch.topk(x, 3, 1)[0], r(3, 6))
case("topk_smallest_indices", lambda x: torch.topk(x, 2, 1, largest=False)[1], c(3, 6))
case("nonzero", torch.nonzero, i(3, 4, high=2))

# ---- more_ops.h ----
for n, f, low, high in [
        ("tan", torch.tan, -1.3, 1.3), ("asin", torch.asin, -0.9, 0.9), ("acos", torch.acos, -0.9, 0.9),
        ("atan", torch.atan, -5, 5), ("sinh", torch.sinh, -4, 4), ("cosh", torch.cosh, -4, 4),
        ("log2", torch.log2, 0.05, 9), ("log10", torch.log10, 0.05, 9)]:
    case(n, f, r(4, 6, low=low, high=high))
    case(n + "_strided", lambda x, f=f: f(x.transpose(0, 2)[1:, ::2]), r(3, 5, 7, low=low, high=high))
case("isinf", lambda x: torch.isinf(torch.log(x - x.abs())), c(3, 4))
case("prelu", F.prelu, r(2, 3, 5), r(3))
case("prelu_one", lambda x, w: F.prelu(x.transpose(0, 1), w), r(5, 2, 3), r(1))
for n, f in dict(atan2=torch.atan2, logaddexp=torch.logaddexp).items():
    case(n, f, r(3, 4), r(3, 4, low=0.5, high=2))
    case(n + "_broadcast", f, r(3, 1, low=-2, high=-0.3), r(2, 1, 5))
    case(n + "_strided", lambda a, b, f=f: f(a.transpose(0, 1), b[::2]), r(3, 5, low=0.2), r(9, 3))
case("floor_divide", torch.floor_divide, i(3, 4, low=-9, high=9), i(4, low=-4, high=-1))
case("floor_divide_real", torch.floor_divide, c(3, 4, low=-5, high=5), c(4, low=-1.7, high=-0.7))
case("cumprod_0", lambda x: torch.cumprod(x, 0), r(5, 3))
case("cumprod_1", lambda x: torch.cumprod(x.transpose(0, 2), 1), r(3, 7, 2))
case("cumprod_zeros", lambda x: torch.cumprod(F.relu(x), 1), r(4, 6))
case("weight_norm", lambda v, g: torch._weight_norm(v, g, 0), r(4, 3, 2), r(4, 1, 1))
case("weight_norm_last", lambda v, g: torch._weight_norm(v, g, 1), r(4, 3), r(1, 3))
# Indices without repetition: PyTorch leaves it open which of several elements stays.
case("scatter", lambda x, s: torch.scatter(x, 1, torch.tensor([[1, 4, 0], [2, 1, 3]]), s), r(3, 5), r(2, 3))
case("scatter_0", lambda x, s: torch.scatter(x.t(), 0, torch.tensor([[4, 0, 2]]), s.t()[:1]), r(3, 5), r(3, 4))
for n, how in dict(sum="sum", prod="prod", amin="amin", amax="amax").items():
    case("scatter_reduce_" + n, lambda x, k, s, how=how: torch.scatter_reduce(x, 1, k, s, how), r(3, 5),
         i(3, 7, high=5), r(3, 7))
case("index_put", lambda x, v: torch.index_put(x, (torch.tensor([2, 0, 1]), torch.tensor([1, 3, 0])), v), r(3, 4, 2),
     r(3, 2))
case("index_put_sum", lambda x, a, b, v: torch.index_put(x, (a, b), v, accumulate=True), r(3, 4, 2), i(2, 1, high=3),
     i(5, high=4), r(5, 2))
for how in "sum", "prod", "min", "max":
    case("segment_reduce_" + how, lambda x, how=how: torch.segment_reduce(x, how, lengths=torch.tensor([2, 3, 1])),
         r(6, 3, low=0.3))
case("segment_reduce_empty", lambda x: torch.segment_reduce(x, "sum", lengths=torch.tensor([2, 0, 3])), r(5))
case("argsort", lambda x: torch.argsort(x, 0), c(6, 3))
case("unique", lambda x: torch.unique(x), i(3, 7, low=-3, high=4))
case("unique_inverse", lambda x: torch.unique(x.t(), return_inverse=True)[1], i(3, 7, low=-3, high=4))
case("unique_counts", lambda x: torch.unique(x, return_counts=True)[1], i(3, 7, low=-3, high=4))
case("bincount", torch.bincount, i(11, high=6))
case("bincount_weights", lambda x, w: torch.bincount(x, w, 9), i(11, high=6), c(11))
case("conv_transpose1d", F.conv_transpose1d, r(2, 3, 5), r(3, 2, 4), r(2))
case("conv_transpose1d_options", lambda x, w: F.conv_transpose1d(x, w, None, 3, 2, 1, 2, 2), r(1, 4, 5), r(4, 2, 3))
case("conv_transpose2d", F.conv_transpose2d, r(2, 3, 3, 5), r(3, 2, 2, 3), r(2))
case("conv_transpose2d_options", lambda x, w, b: F.conv_transpose2d(x.transpose(2, 3), w, b, (2, 3), (1, 0), (1, 2), 2,
     (1, 2)), r(1, 4, 3, 5), r(4, 3, 3, 2), r(6))
for n in "avg", "max":
    pool1, pool2 = getattr(F, "adaptive_%s_pool1d" % n), getattr(F, "adaptive_%s_pool2d" % n)
    case("adaptive_%s_pool1d" % n, lambda x, f=pool1: f(x, 3), r(2, 3, 7))
    case("adaptive_%s_pool1d_more" % n, lambda x, f=pool1: f(x.transpose(0, 2), 5), r(3, 2, 4))
    case("adaptive_%s_pool2d" % n, lambda x, f=pool2: f(x, (3, 2)), r(2, 3, 7, 5))
    case("adaptive_%s_pool2d_more" % n, lambda x, f=pool2: f(x[:, ::2], (5, 3)), r(1, 3, 3, 7))
case("interpolate_nearest", lambda x: F.interpolate(x, (7,)), r(2, 3, 5))
case("interpolate_nearest_2d", lambda x: F.interpolate(x, (3, 11)), r(2, 3, 7, 5))
case("interpolate_linear", lambda x: F.interpolate(x, (7,), mode="linear"), r(2, 3, 5))
case("interpolate_bilinear", lambda x: F.interpolate(x.transpose(2, 3), (11, 3), mode="bilinear"), r(2, 3, 7, 5))
case("interpolate_bilinear_corners", lambda x: F.interpolate(x, (3, 9), mode="bilinear", align_corners=True),
     r(2, 3, 7, 5))
case("smooth_l1_loss", lambda x, t: F.smooth_l1_loss(x, t, beta=0.7), r(3, 5), r(3, 5))
case("smooth_l1_loss_0", lambda x, t: F.smooth_l1_loss(x, t, beta=0, reduction="sum"), r(3, 5), r(3, 5))
case("bce_loss", F.binary_cross_entropy, r(3, 5, low=0.05, high=0.95), c(3, 5, low=0, high=1))
case("bce_loss_weight", lambda x, t, w: F.binary_cross_entropy(x, t, w, reduction="sum"), r(3, 5, low=0.05, high=0.95),
     c(3, 5, low=0, high=1), c(5, low=0.2, high=2))
case("bce_loss_ends", lambda x, t: F.binary_cross_entropy(F.hardtanh(x, 0, 1), t, reduction="none"), c(3, 5),
     c(3, 5, low=0, high=1))
case("hinge_embedding_loss", lambda x, t: F.hinge_embedding_loss(x, t.sign(), 1.3), r(3, 5), c(3, 5))
case("triplet_margin_loss", lambda a, p, n: F.triplet_margin_loss(a, p, n, 0.9), r(5, 3), r(5, 3), r(5, 3))
case("triplet_margin_loss_none", lambda a, p, n: F.triplet_margin_loss(a, p, n, reduction="none"), r(2, 5, 3),
     r(2, 5, 3), r(2, 5, 3))
case("info_nce_loss", lambda q, k: F.cross_entropy(F.normalize(q) @ F.normalize(k).t() / 0.3, torch.arange(5)),
     r(5, 7), r(6, 7))

# ---- normalisation ----
case("layer_norm", lambda x, w, b: F.layer_norm(x, (6,), w, b, 1e-5), r(2, 3, 6), r(6), r(6))
case("layer_norm_plain", lambda x: F.layer_norm(x, (6,), None, None, 1e-5), r(4, 6))
case("layer_norm_two_dims", lambda x, w, b: F.layer_norm(x, (3, 4), w, b, 1e-5), r(2, 3, 4), r(3, 4), r(3, 4))
case("layer_norm_far", lambda x, w: F.layer_norm(x, (6,), w, None, 1e-12), r(3, 6, low=100, high=101), r(6), tol=3e-4)
case("rms_norm", lambda x, w: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w, r(3, 6), r(6))

case("dropout_none", lambda x: F.dropout(x, 0.0), r(3, 4))
case("dropout_all", lambda x: F.dropout(x, 1.0), r(3, 4))

# ---- convolution and pooling ----
case("conv1d", F.conv1d, r(2, 3, 9), r(4, 3, 3), r(4))
case("conv1d_options", lambda x, w: F.conv1d(x, w, None, 2, 2, 2, 1), r(2, 3, 9), r(4, 3, 3))
case("conv1d_groups", lambda x, w, b: F.conv1d(x, w, b, 1, 1, 1, 2), r(1, 4, 6), r(6, 2, 3), r(6))
case("conv2d", F.conv2d, r(2, 3, 5, 6), r(4, 3, 3, 2), r(4))
case("conv2d_options", lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2), (1, 2), 1), r(1, 2, 6, 7), r(3, 2, 3, 3), r(3))
case("conv2d_depthwise", lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 3), r(1, 3, 5, 5), r(3, 1, 3, 3))
case("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1), r(2, 3, 9))
case("max_pool2d", lambda x: F.max_pool2d(x, (2, 3), (2, 1), (1, 1), (1, 2)), r(1, 2, 6, 8))
case("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), r(2, 3, 9))
case("avg_pool2d", lambda x: F.avg_pool2d(x, (2, 3), (2, 1), (1, 1)), r(1, 2, 6, 8))
case("avg_pool2d_real", lambda x: F.avg_pool2d(x, (2, 3), (2, 1), (1, 1), count_include_pad=False), r(1, 2, 6, 8))

# ---- losses ----
case("cross_entropy", F.cross_entropy, r(5, 4), i(5, high=4))
case("cross_entropy_sum", lambda x, t: F.cross_entropy(x, t, reduction="sum"), r(5, 4), i(5, high=4))
case("cross_entropy_none", lambda x, t: F.cross_entropy(x, t, reduction="none"), r(5, 4), i(5, high=4))
case("cross_entropy_ignore", lambda x, t: F.cross_entropy(x, t, ignore_index=2), r(6, 4), i(6, high=4))
case("cross_entropy_weight", lambda x, t, w: F.cross_entropy(x, t, w), r(5, 4), i(5, high=4), c(4, low=0.2, high=2))
case("cross_entropy_smooth", lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), r(5, 4), i(5, high=4))
case("cross_entropy_smooth_weight_ignore", lambda x, t, w: F.cross_entropy(x, t, w, ignore_index=1,
     label_smoothing=0.2), r(6, 4), i(6, high=4), c(4, low=0.2, high=2))
case("cross_entropy_probabilities", F.cross_entropy, r(3, 4), p(3, 4))
case("cross_entropy_probabilities_smooth", lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.1), r(3, 4),
     p(3, 4), c(4, low=0.2, high=2))
case("cross_entropy_class_dim", F.cross_entropy, r(2, 4, 3), i(2, 3, high=4))
case("cross_entropy_last_dim", lambda x, t: F.cross_entropy(x.transpose(1, 2), t), r(2, 3, 4), i(2, 3, high=4))
case("nll_loss", lambda x, t: F.nll_loss(torch.log_softmax(x, 1), t), r(5, 4), i(5, high=4))
case("nll_loss_weight", lambda x, t, w: F.nll_loss(x, t, w, ignore_index=0), r(6, 4), i(6, high=4), c(4, low=0.2,
     high=2))
for red in "mean sum none".split():
    case("mse_loss_" + red, lambda a, b, red=red: F.mse_loss(a, b, reduction=red), r(3, 4), r(3, 4))
case("l1_loss", F.l1_loss, r(3, 4), r(3, 4))
case("huber_loss", lambda a, b: F.huber_loss(a, b, delta=0.7), r(3, 4), r(3, 4))
case("kl_div", lambda a, b: F.kl_div(torch.log_softmax(a, 1), b, reduction="sum"), r(3, 4), p(3, 4))
case("kl_div_log_batchmean", lambda a, b: F.kl_div(a, b, reduction="batchmean", log_target=True), r(3, 4), r(3, 4))
case("bce_with_logits", lambda a, b: F.binary_cross_entropy_with_logits(a, b), r(3, 4, low=-6, high=6), c(3, 4,
     low=0, high=1))
case("bce_with_logits_weights", lambda a, b, w, q: F.binary_cross_entropy_with_logits(a, b, w, pos_weight=q,
     reduction="sum"),
     r(3, 4), c(3, 4, low=0, high=1), c(3, 4, low=0.2, high=2), c(4, low=0.2, high=2))
case("cosine_similarity", lambda a, b: F.cosine_similarity(a, b, 1), r(3, 4), r(3, 4))


# ---- attention: PyTorch 1.13 has no public one ----
def attention(q, k, v, blocked=None, causal=False, scale=None):
    s = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if blocked is not None:
        s = s.masked_fill(blocked, -math.inf) if blocked.dtype == torch.bool else s + blocked
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    return torch.softmax(s, -1) @ v


QKV = r(2, 2, 3, 4), r(2, 2, 5, 4), r(2, 2, 5, 3)
case("attention", attention, *QKV)
case("attention_scale", lambda q, k, v: attention(q, k, v, scale=0.3), *QKV)
case("attention_causal", lambda q, k, v: attention(q, k, v, causal=True), r(2, 4, 4), r(2, 4, 4), r(2, 4, 4))
case("attention_blocked", lambda q, k, v, b: attention(q, k, v, torch.cat([b, torch.zeros(3, 1, dtype=torch.bool)],
     1)), *QKV, m(3, 4))
case("attention_additive", attention, *QKV, r(2, 1, 3, 5))


def write(path, tensors, metadata):
    names = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64", torch.bool: "BOOL"}
    order = sorted(tensors, key=lambda n: (-tensors[n].element_size(), n))
    header, at, blobs = {"__metadata__": dict(sorted(metadata.items()))}, 0, []
    for name in order:
        blob = tensors[name].contiguous().numpy().tobytes()
        header[name] = {"dtype": names[tensors[name].dtype], "shape": list(tensors[name].shape), "data_offsets": [at,
             at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def main():
    tensors, metadata = {}, {"format": "pt", "made by": "tests/golden/ops.py, torch " + torch.__version__}
    for seed, (name, fn, specs, tol) in enumerate(CASES):
        assert name not in metadata, name
        metadata[name] = "%d %g | %s" % (seed, tol or 0, " | ".join(s.text() for s in specs))
        for dtype, suffix in (torch.float64, "f64"), (torch.float32, "f32"):
            x = [s.make(seed, k, dtype) for k, s in enumerate(specs)]
            y = fn(*x)
            if not y.is_floating_point():
                if suffix == "f64":
                    tensors[name + "/y"] = y.detach()
                continue
            tensors["%s/%s/y" % (name, suffix)] = y.detach()
            if not y.requires_grad:
                continue
            y.backward(torch.from_numpy(values(seed, 99, y.numel(), -1, 1).reshape(tuple(y.shape))).to(dtype))
            for k, t in enumerate(x):
                if t.requires_grad and t.grad is not None:
                    tensors["%s/%s/g%d" % (name, suffix, k)] = t.grad
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops.safetensors")
    write(path, tensors, metadata)
    print("%d cases, %d tensors, %d bytes" % (len(CASES), len(tensors), os.path.getsize(path)))


main()

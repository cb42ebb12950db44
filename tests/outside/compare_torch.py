#!/usr/bin/env python3
"""Compares Tenon's ops with PyTorch's: random shapes, strides, dtypes and values; results and gradients.

    tests/outside/compare_torch.py LIBRARY [--count 5000] [--seed 1] [--op NAME,...] [--case K]

LIBRARY is a libtenon.so. Case k draws an op, tensors that are views of larger ones (slices, steps, transposed,
expanded) and their values, calls both libraries, and compares dtype, shape, values and the gradients of the base
tensors. A call that only one library rejects is a finding, too. Differences named in docs/departures.md are not drawn
or not compared; comments mark these places. --case K runs only case K. Tested with torch 2.15.0; exits with 77 if torch
is missing, with 1 if there are findings.
"""
import argparse
import collections
import math
import os
import random
import sys

sys.dont_write_bytecode = True
try:
    import torch
    import torch.nn.functional as F
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)
if tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 15):
    print("skipped: torch %s is older than 2.15, the version for comparison" % torch.__version__)
    sys.exit(77)
import warnings

import tenon_by_name as T

warnings.simplefilter("ignore")

TYPES = {torch.float32: T.F32, torch.float64: T.F64, torch.bfloat16: T.BF16, torch.int64: T.I64, torch.int32: T.I32,
         torch.uint8: T.U8, torch.bool: T.BOOL}
TORCH = {number: dtype for dtype, number in TYPES.items()}
FLOATS = [torch.float32, torch.float32, torch.float64, torch.bfloat16]
PRECISION = {torch.float32: 2e-5, torch.float64: 1e-11, torch.bfloat16: 2e-2}
SMALL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, -1e-39, 88.0, -88.0, 20.0]
HUGE = [math.inf, -math.inf, 1e30, -1e30]
# Values at which an op differs from PyTorch according to docs/departures.md are not drawn.
EDGES = {"edge": SMALL + HUGE + [math.nan], "no NaN": SMALL + HUGE, "nothing huge": SMALL + [math.nan]}
tn = None


def to_torch(handle):
    dtype, data = tn.bytes_of(handle)
    shape = tn.shape(handle)
    t = torch.frombuffer(bytearray(data), dtype=TORCH[dtype]) if data else torch.empty(0, dtype=TORCH[dtype])
    return t.reshape(shape)


def to_tenon(t):
    t = t.detach().contiguous()
    data = bytes(t.flatten().view(torch.uint8).numpy().tobytes()) if t.numel() else b"\0"
    keep = T.c.create_string_buffer(data, len(data) or 1)
    return tn.from_data(TYPES[t.dtype], tuple(t.shape), T.c.addressof(keep))


class Both:
    """A tensor in both libraries: t is PyTorch's, n is Tenon's handle."""

    def __init__(self, t, n):
        self.t, self.n = t, n


class Case:
    def __init__(self, seed, k):
        self.rng = random.Random("%d %d" % (seed, k))
        torch.manual_seed(seed * 1000003 + k)
        self.dtype = self.rng.choice(FLOATS)
        self.leaves, self.scale, self.grad, self.loose, self.tell = [], 1.0, True, 1.0, []

    def dims(self, low=0, high=4, most=7):
        n = self.rng.randint(low, high)
        size = lambda: self.rng.choice([1, 2, 3, 4, 5, most, self.rng.randint(1, 2 * most)])
        shape = tuple(size() for _ in range(n))
        if n and self.rng.random() < 0.02:
            at = self.rng.randrange(n)
            shape = shape[:at] + (0,) + shape[at + 1:]
        return shape

    def values(self, shape, dtype, kind):
        r = self.rng
        if dtype == torch.bool:
            return torch.rand(shape) < 0.5
        if not dtype.is_floating_point:
            low, high = (0, 200) if dtype == torch.uint8 else (-50, 50)
            low, high = (1, 9) if kind == "pos" else (low, high)
            return torch.randint(low, high, shape, dtype=dtype)
        t = torch.randn(shape, dtype=torch.float64) * 2
        if kind == "pos":
            t = t.abs() + 0.1
        elif kind == "unit":
            t = torch.rand(shape, dtype=torch.float64) * 1.8 - 0.9
        elif kind == "ties":
            t = t.round()
        elif kind == "apart":  # all different, so that sorting has one result
            t = torch.randperm(max(1, t.numel()))[: t.numel()].reshape(shape).double() / 8 - 3
        t = t.to(dtype)
        if kind in EDGES and t.numel() and r.random() < 0.4:
            flat = t.flatten()
            for _ in range(r.randint(1, 4)):
                flat[r.randrange(flat.numel())] = r.choice(EDGES[kind])
            t = flat.reshape(shape)
        return t

    def tensor(self, shape, dtype=None, kind="any", grad=None):
        """A view of the given shape into a leaf of some other layout, in both libraries."""
        r, dtype = self.rng, dtype or self.dtype
        grad = dtype.is_floating_point and self.grad if grad is None else grad
        how = r.choice(["plain", "plain", "permuted", "sliced", "stepped", "expanded", "both", "chosen"])
        n, steps, base = len(shape), [], list(shape)
        if how in ("sliced", "both", "stepped") and n:
            for dim in range(n):
                if r.random() < 0.6:
                    step = r.randint(2, 3) if how == "stepped" else 1
                    start = r.randint(0, 2)
                    steps.insert(0, ("slice", dim, start, start + shape[dim] * step, step))
                    base[dim] = start + shape[dim] * step + r.randint(0, 2)
        if how in ("permuted", "both") and n > 1:
            order = list(range(n))
            r.shuffle(order)
            steps.insert(0, ("permute", order))
            turned = [0] * n
            for i, o in enumerate(order):
                turned[o] = base[i]
            base = turned
        if how == "expanded" and n and 0 not in shape and kind != "apart":
            dim = r.randrange(n)
            steps.append(("expand", shape))
            base[dim] = 1
        if how == "chosen" and n < 5:
            at, size = r.randint(0, n), r.randint(1, 3)
            base.insert(at, size)
            steps.append(("select", at, r.randrange(size)))
        t = self.values(tuple(base), dtype, kind)
        n = to_tenon(t)
        if grad:
            t.requires_grad_()
            tn.requires_grad(n)
            self.leaves.append((t, n))
        if t.is_floating_point() and t.numel():
            finite = t.detach()[torch.isfinite(t.detach())].abs()
            self.scale = max(self.scale, float(finite[finite < 1e6].max()) if (finite < 1e6).any() else 1.0)
        self.tell.append("%s%s %s" % (str(dtype)[6:], list(shape), how))
        for step in steps:
            if step[0] == "slice":
                _, dim, start, end, by = step
                t = t[(slice(None),) * dim + (slice(start, end, by),)]
                n = tn.slice(n, dim, start, end, by)
            elif step[0] == "permute":
                t, n = t.permute(step[1]), tn.permute(n, step[1])
            elif step[0] == "expand":
                t, n = t.expand(step[1]), tn.expand(n, tuple(step[1]))
            else:
                t, n = t.select(step[1], step[2]), tn.select(n, step[1], step[2])
        return Both(t, n)

    def index(self, shape, below):
        return self.tensor_of(torch.randint(0, max(1, below), shape))

    def tensor_of(self, t):
        return Both(t, to_tenon(t))

    def dim(self, x):
        n = max(1, x.t.dim())
        d = self.rng.randrange(n)
        return d - n if self.rng.random() < 0.4 else d

    def like(self, shape):
        """A shape that broadcasts with the given one."""
        cut = self.rng.randint(0, len(shape))
        return tuple(1 if self.rng.random() < 0.3 else s for s in shape[cut if self.rng.random() < 0.5 else 0:])

    def some_dims(self, n):
        dims = [d for d in range(n) if self.rng.random() < 0.5]
        return [d - n if self.rng.random() < 0.3 else d for d in dims]


# ---- the ops: each returns a pair of calls ---------------------------------------------------------------------------

OPS = {}


def op(*names, weight=1):
    def keep(f):
        for name in names:
            OPS[name] = (f, weight)
        return f
    return keep


ONE = dict(neg=("edge", torch.neg), abs=("edge", torch.abs), sign=("edge", torch.sign), exp=("edge", torch.exp),
           expm1=("edge", torch.expm1), log=("pos", torch.log), log1p=("pos", torch.log1p), sqrt=("pos", torch.sqrt),
           rsqrt=("pos", torch.rsqrt), square=("edge", torch.square), reciprocal=("edge", torch.reciprocal),
           tan=("unit", torch.tan), asin=("unit", torch.asin), acos=("unit", torch.acos), atan=("edge", torch.atan),
           sinh=("any", torch.sinh), cosh=("any", torch.cosh), log2=("pos", torch.log2), log10=("pos", torch.log10),
           sin=("any", torch.sin), cos=("any", torch.cos), tanh=("edge", torch.tanh), erf=("edge", torch.erf),
           floor=("edge", torch.floor), ceil=("edge", torch.ceil), round=("edge", torch.round),
           sigmoid=("edge", torch.sigmoid), logsigmoid=("edge", F.logsigmoid), relu=("edge", torch.relu),
           gelu=("nothing huge", F.gelu), gelu_tanh=("nothing huge", lambda x: F.gelu(x, approximate="tanh")),
           silu=("nothing huge", F.silu),
           mish=("nothing huge", F.mish))


@op(*ONE)
def one(c, name):
    kind, f = ONE[name]
    x = c.tensor(c.dims(), kind=kind)
    return lambda: f(x.t), lambda: getattr(tn, name)(x.n)


@op("clamp", "leaky_relu", "elu", "softplus", "glu", "add_scalar", "mul_scalar", "div_scalar", "rsub_scalar",
        "pow_scalar")
def one_and_numbers(c, name):
    x = c.tensor(c.dims(1 if name == "glu" else 0), kind=dict(pow_scalar="pos", elu="no NaN").get(name, "edge"))
    a = c.rng.choice([0.5, 1.0, 2.0, 0.25, 3.0, 1.5])
    dim = c.dim(x)
    if name == "glu" and x.t.shape[dim] % 2:
        x = Both(torch.cat([x.t, x.t], dim), tn.cat_list(dim, 2, tn.list_of([x.n, x.n])))
    f = dict(clamp=lambda: (x.t.clamp(-a, a), tn.clamp(x.n, -a, a)),
             leaky_relu=lambda: (F.leaky_relu(x.t, a / 4), tn.leaky_relu(x.n, a / 4)),
             elu=lambda: (F.elu(x.t, a), tn.elu(x.n, a)), softplus=lambda: (F.softplus(x.t, a), tn.softplus(x.n, a)),
             glu=lambda: (F.glu(x.t, dim), tn.glu(x.n, dim)), add_scalar=lambda: (x.t + a, tn.add_scalar(x.n, a)),
             mul_scalar=lambda: (x.t * a, tn.mul_scalar(x.n, a)), div_scalar=lambda: (x.t / a, tn.div_scalar(x.n, a)),
             rsub_scalar=lambda: (a - x.t, tn.rsub_scalar(x.n, a)),
             pow_scalar=lambda: (x.t ** a, tn.pow_scalar(x.n, a)))[name]
    return f


TWO = dict(atan2=torch.atan2, logaddexp=torch.logaddexp, floor_divide=torch.floor_divide,
           add=torch.add, sub=torch.sub, mul=torch.mul, div=torch.div, pow=torch.pow, maximum=torch.maximum,
           minimum=torch.minimum, remainder=torch.remainder, eq=torch.eq, ne=torch.ne, lt=torch.lt, le=torch.le,
           gt=torch.gt,
           ge=torch.ge)


@op(*TWO, weight=2)
def two(c, name):
    types = list(TYPES)
    a = b = c.dtype
    if c.rng.random() < 0.4 and name != "pow":
        a, b = c.rng.choice(types), c.rng.choice(types)
    kind = dict(pow="pos", div="pos", remainder="pos", maximum="ties", minimum="ties", eq="ties", lt="ties")
    kind = dict(kind, atan2="pos", logaddexp="any", floor_divide="pos").get(name, "edge")
    if name in ("atan2", "logaddexp", "floor_divide"):
        a = b = c.dtype if name != "floor_divide" or c.rng.random() < 0.5 else c.rng.choice([torch.int64, torch.int32])
    if torch.bool in (a, b) and name in ("sub", "remainder") or (a, b) == (torch.bool, torch.bool):
        a = b = torch.float32  # bool minus bool: see docs/departures.md
    shape = c.dims()
    other = c.like(shape)
    if not (shape and other) and a.is_floating_point != b.is_floating_point:
        shape, other = (2,), (3, 2)  # integers with a 0-d floating tensor: see docs/departures.md
    x, y = c.tensor(shape, a, kind), c.tensor(other, b, kind)
    c.loose = 3
    if a != b:
        c.loose = 1000 if torch.bfloat16 in (a, b) else 3
    return lambda: TWO[name](x.t, y.t), lambda: getattr(tn, name)(x.n, y.n)


@op("logical_and", "logical_or", "logical_xor", "logical_not", "isfinite", "isnan", "isinf")
def truth(c, name):
    shape = c.dims()
    x, y = c.tensor(shape, torch.bool), c.tensor(c.like(shape), torch.bool)
    if name in ("isfinite", "isnan", "isinf"):
        x = c.tensor(shape, kind="edge", grad=False)
    if name in ("logical_and", "logical_or", "logical_xor"):
        return lambda: getattr(torch, name)(x.t, y.t), lambda: getattr(tn, name)(x.n, y.n)
    return lambda: getattr(torch, name)(x.t), lambda: getattr(tn, name)(x.n)


@op("where", "masked_fill", "masked_select")
def chosen(c, name):
    shape = c.dims()
    x, y, m = c.tensor(shape, kind="edge"), c.tensor(c.like(shape), kind="edge"), c.tensor(c.like(shape), torch.bool)
    if name == "where":
        return lambda: torch.where(m.t, x.t, y.t), lambda: tn.where(m.n, x.n, y.n)
    if name == "masked_fill":
        return lambda: x.t.masked_fill(m.t, -2.5), lambda: tn.masked_fill(x.n, m.n, -2.5)
    return lambda: x.t.masked_select(m.t), lambda: tn.masked_select(x.n, m.n)


def reduced(x, dims, keep, biased=False, p=2.0):
    a = T.Reduce()
    a.x, a.dims, a.keepdim, a.biased, a.p = x.n, T.filled(T.Dims, dims), keep, biased, p
    return a


@op("sum", "mean", "prod", "var", "std", "amax", "amin", "norm", "logsumexp", "any", "all", weight=2)
def reduction(c, name):
    dtype = c.dtype
    if name in ("sum", "prod", "amax", "amin") and c.rng.random() < 0.2:
        dtype = c.rng.choice([torch.int64, torch.int32])
    if name in ("any", "all"):
        dtype = torch.bool
    kind = dict(amax="ties", amin="ties", prod="unit", var="apart", std="apart").get(name, "any")
    x = c.tensor(c.dims(0, 4, 6), dtype, kind)
    dims, keep, biased = c.some_dims(x.t.dim()), c.rng.random() < 0.5, c.rng.random() < 0.5
    p = c.rng.choice([1.0, 2.0, 3.0, math.inf, 2.5, -math.inf, 0.0])
    every = dims or list(range(x.t.dim()))
    count = max(1, math.prod(x.t.shape[d] for d in every))
    c.scale *= math.sqrt(count) if name != "prod" else 1
    if name in ("var", "std") and count < 2:
        biased = True
    calls = dict(
        sum=lambda: x.t.sum(every, keepdim=keep), mean=lambda: x.t.mean(every, keepdim=keep),
        var=lambda: x.t.var(every, unbiased=not biased, keepdim=keep),
        std=lambda: x.t.std(every, unbiased=not biased, keepdim=keep), amax=lambda: x.t.amax(every, keepdim=keep),
        amin=lambda: x.t.amin(every, keepdim=keep), norm=lambda: torch.linalg.vector_norm(x.t, p, every, keepdim=keep),
        logsumexp=lambda: x.t.logsumexp(every, keepdim=keep), any=lambda: x.t.any(every, keepdim=keep),
        all=lambda: x.t.all(every, keepdim=keep))

    def prod():
        y = x.t.float() if dtype == torch.bfloat16 else x.t  # PyTorch rounds each bf16 product
        for d in sorted((d % max(1, x.t.dim()) for d in every), reverse=True):
            y = y.prod(d, keepdim=keep)
        y = y if every else y.prod()
        return y.to(dtype) if dtype == torch.bfloat16 else y
    if name == "std":
        c.loose = 50
    run = prod if name == "prod" else calls[name]
    biased, p = biased and name in ("var", "std"), p if name == "norm" else 2.0  # other ops reject them
    return run, lambda: getattr(tn, name + "_run")(reduced(x, dims, keep, biased, p))


@op("max", "min", "argmax", "argmin", "sort", "topk")
def places(c, name):
    whole = name == "topk"  # the order of equal values is unspecified, and bf16 has too few values
    x = c.tensor(c.dims(1), torch.float32 if whole else None, "apart" if whole else "ties")
    dim, keep, down = c.dim(x), c.rng.random() < 0.5, c.rng.random() < 0.5
    k = c.rng.randint(0, x.t.shape[dim]) if x.t.dim() else 1
    def pair(y):
        return y.values, y.indices
    if name in ("max", "min"):
        return lambda: pair(getattr(x.t, name)(dim, keepdim=keep)), lambda: pair(getattr(tn, name)(x.n, dim, keep))
    if name in ("argmax", "argmin"):
        return lambda: getattr(x.t, name)(dim, keepdim=keep), lambda: getattr(tn, name)(x.n, dim, keep)
    if name == "sort":
        a = T.Sort(x=x.n, dim=dim, descending=down)
        return lambda: pair(x.t.sort(dim=dim, descending=down, stable=True)), lambda: pair(tn.sort_run(a))
    a = T.Topk(x=x.n, k=k, dim=dim, smallest=down)
    return lambda: pair(x.t.topk(k, dim, largest=not down)), lambda: pair(tn.topk_run(a))


@op("cumsum", "softmax", "log_softmax", weight=2)
def along(c, name):
    x = c.tensor(c.dims(1))
    dim = c.dim(x)
    c.scale *= math.sqrt(max(1, x.t.shape[dim])) if name == "cumsum" else 1
    return lambda: getattr(torch, name)(x.t, dim), lambda: getattr(tn, name)(x.n, dim)


@op("matmul", "linear", "outer", "einsum", weight=3)
def product(c, name):
    m, k, n = (c.rng.choice([1, 2, 3, 5, 8, 17, 33, 70]) for _ in range(3))
    c.scale *= 4 * math.sqrt(k)
    if name == "outer":
        x, y = c.tensor((m,)), c.tensor((n,))
        return lambda: torch.outer(x.t, y.t), lambda: tn.outer(x.n, y.n)
    if name == "linear":
        x, w = c.tensor(c.dims(0, 2, 4) + (k,)), c.tensor((n, k))
        b = c.tensor((n,)) if c.rng.random() < 0.5 else None
        return (lambda: F.linear(x.t, w.t, b.t if b else None)), (lambda: tn.linear_run(x.n, w.n, b.n if b else None))
    if name == "einsum":
        equation, shapes = c.rng.choice([
            ("ij,jk->ik", ((m, k), (k, n))), ("bij,bkj->bik", ((3, m, k), (3, n, k))), ("ij->ji", ((m, k),)),
            ("ii->i", ((k, k),)), ("ij,j", ((m, k), (k,))), ("...ij,...jk->...ik", ((2, m, k), (k, n))),
            ("bhqd,bhkd->bhqk", ((2, 2, m, 5), (2, 2, n, 5))), ("i,j,k->ijk", ((m,), (3,), (n,))), ("ij,ij->", ((m,
            k), (m, k)))])
        xs = [c.tensor(s) for s in shapes]
        c.scale *= 4
        return (lambda: torch.einsum(equation, *[x.t for x in xs]),
                lambda: tn.einsum_list(T.c.c_char_p(equation.encode()), len(xs), tn.list_of([x.n for x in xs])))
    lead = c.dims(0, 2, 3)
    a = c.rng.choice([(k,), (m, k), lead + (m, k)])
    b = c.rng.choice([(k,), (k, n), c.like(lead) + (k, n)])
    x, y = c.tensor(a), c.tensor(b)
    return lambda: torch.matmul(x.t, y.t), lambda: tn.matmul(x.n, y.n)


@op("transpose", "permute", "narrow", "slice", "select", "expand", "squeeze", "unsqueeze", "diagonal", "unfold",
        "reshape",
    "flatten", "view", "clone", "to")
def view(c, name):
    x = c.tensor(c.dims(2 if name == "diagonal" else 1), c.rng.choice(list(TYPES)) if c.rng.random() < 0.3 else None)
    r, n = c.rng, x.t.dim()
    d, e = c.dim(x), c.dim(x)
    size = x.t.shape[d]
    if name == "permute":
        order = r.sample(range(n), n)
        return lambda: x.t.permute(order), lambda: tn.permute(x.n, order)
    if name == "transpose":
        return lambda: x.t.transpose(d, e), lambda: tn.transpose(x.n, d, e)
    if name == "narrow":
        start = r.randint(0, size)
        length = r.randint(0, size - start)
        return lambda: x.t.narrow(d, start, length), lambda: tn.narrow(x.n, d, start, length)
    if name == "slice":
        a, b, s = r.randint(-size - 2, size + 2), r.randint(-size - 2, size + 2), r.randint(1, 3)
        return lambda: x.t[(slice(None),) * (d % n) + (slice(a, b, s),)], lambda: tn.slice(x.n, d, a, b, s)
    if name == "select":
        i = r.randint(-size - 1, size)
        return lambda: x.t.select(d, i), lambda: tn.select(x.n, d, i)
    if name == "expand":
        to = tuple(r.randint(1, 3) for _ in range(r.randint(0, 2)))
        to += tuple(r.choice([-1, s]) if s != 1 else 4 for s in x.t.shape)
        return lambda: x.t.expand(to), lambda: tn.expand(x.n, to)
    if name == "squeeze":
        return lambda: x.t.squeeze(d), lambda: tn.squeeze(x.n, d)
    if name == "unsqueeze":
        at = r.randint(-n - 1, n)
        return lambda: x.t.unsqueeze(at), lambda: tn.unsqueeze(x.n, at)
    if name == "diagonal":
        off, d, e = r.randint(-3, 3), 0, n - 1
        return lambda: x.t.diagonal(off, d, e), lambda: tn.diagonal(x.n, off, d, e)
    if name == "unfold":
        width, step = r.randint(1, max(1, size)), r.randint(1, 3)
        return lambda: x.t.unfold(d, width, step), lambda: tn.unfold(x.n, d, width, step)
    if name in ("reshape", "view"):
        to = list(x.t.shape)
        if r.random() < 0.5 and n > 1:
            to = [to[0] * to[1]] + to[2:]
        elif to[-1] % 2 == 0 and to[-1]:
            to = to[:-1] + [2, to[-1] // 2]
        if x.t.numel() and r.random() < 0.5:
            to[r.randrange(len(to))] = -1
        return lambda: getattr(x.t, name)(to), lambda: getattr(tn, name)(x.n, tuple(to))
    if name == "flatten":
        a = r.randrange(n)
        b = r.randint(a, n - 1)
        return lambda: x.t.flatten(a, b), lambda: tn.flatten_run(x.n, a, b)
    if name == "clone":
        return lambda: x.t.clone(), lambda: tn.clone(x.n)
    dtype = r.choice(list(TYPES))
    if x.t.is_floating_point() and dtype == torch.uint8:
        dtype = torch.int64  # negative numbers to unsigned ones: undefined in PyTorch
    c.loose = 1000
    return lambda: x.t.to(dtype), lambda: tn.to(x.n, TYPES[dtype])


@op("cat", "stack", "pad", "tril", "triu", "roll", "flip", "repeat", "repeat_interleave")
def moved(c, name):
    x = c.tensor(c.dims(2 if name in ("tril", "triu") else 1),
            c.rng.choice(list(TYPES)) if c.rng.random() < 0.2 else None)
    r, n, d = c.rng, x.t.dim(), c.dim(x)
    if name in ("cat", "stack"):
        xs = [x]
        for _ in range(r.randint(0, 3)):
            shape = list(x.t.shape)
            if name == "cat":
                shape[d] = r.randint(0, 4)
            xs.append(c.tensor(tuple(shape), x.t.dtype))
        return (lambda: getattr(torch, name)([y.t for y in xs], d),
                lambda: getattr(tn, name + "_list")(d, len(xs), tn.list_of([y.n for y in xs])))
    if name == "pad":
        low = [r.randint(-1 if s > 2 else 0, 3) for s in x.t.shape]
        high = [r.randint(-1 if s > 2 else 0, 3) for s in x.t.shape]
        both = [v for i in reversed(range(n)) for v in (low[i], high[i])]
        return lambda: F.pad(x.t, both, value=1), lambda: tn.pad(x.n, tuple(low), tuple(high), 1.0)
    if name in ("tril", "triu"):
        k = r.randint(-4, 4)
        return lambda: getattr(torch, name)(x.t, k), lambda: getattr(tn, name)(x.n, k)
    if name == "roll":
        k = r.randint(-9, 9)
        return lambda: x.t.roll(k, d), lambda: tn.roll(x.n, k, d)
    if name == "flip":
        dims = c.some_dims(n) or [0]
        return lambda: x.t.flip(dims), lambda: tn.flip(x.n, dims)
    if name == "repeat":
        times = tuple(r.randint(1, 3) for _ in range(n + r.randint(0, 1)))
        return lambda: x.t.repeat(times), lambda: tn.repeat(x.n, times)
    k = r.randint(1, 3)
    return lambda: x.t.repeat_interleave(k, d), lambda: tn.repeat_interleave(x.n, k, d)


@op("gather", "scatter_add", "index_select", "index_add", "take_along", "embedding", "one_hot", "nonzero", weight=2)
def by_index(c, name):
    x = c.tensor(c.dims(1, 3))
    r, n, d = c.rng, x.t.dim(), c.dim(x)
    if 0 in x.t.shape:
        x = c.tensor((3, 4, 5)[:n])
    size = x.t.shape[d]
    c.loose = 10
    if name in ("gather", "take_along"):
        shape = [r.randint(1, s) for s in x.t.shape]
        if name == "take_along":
            shape = [s if r.random() < 0.6 else 1 for s in x.t.shape]
        shape[d] = r.randint(1, 6)
        i = c.index(tuple(shape), size)
        if name == "gather":
            return lambda: x.t.gather(d, i.t), lambda: tn.gather(x.n, d, i.n)
        return lambda: torch.take_along_dim(x.t, i.t, d), lambda: tn.take_along(x.n, i.n, d)
    if name == "scatter_add":
        shape = [r.randint(1, s) for s in x.t.shape]
        i, s = c.index(tuple(shape), size), c.tensor(tuple(shape))
        return lambda: x.t.scatter_add(d, i.t, s.t), lambda: tn.scatter_add(x.n, d, i.n, s.n)
    if name == "index_select":
        i = c.index((r.randint(0, 6),), size)
        return lambda: x.t.index_select(d, i.t), lambda: tn.index_select(x.n, d, i.n)
    if name == "index_add":
        shape = list(x.t.shape)
        shape[d] = r.randint(1, 6)
        i, s = c.index((shape[d],), size), c.tensor(tuple(shape))
        return lambda: x.t.index_add(d, i.t, s.t), lambda: tn.index_add(x.n, d, i.n, s.n)
    if name == "embedding":
        w, i = c.tensor((r.randint(1, 9), r.randint(1, 9))), c.dims(0, 3)
        i = c.index(i, w.t.shape[0])
        none = r.choice([-1, 0])
        return (lambda: F.embedding(i.t, w.t, padding_idx=None if none < 0 else none),
                lambda: tn.embedding_run(w.n, i.n, none, False))
    if name == "one_hot":
        i = c.index(c.dims(0, 2), 5)
        if not i.t.numel():
            i = c.index((3,), 5)
        most = r.choice([-1, 5, 9])
        return lambda: F.one_hot(i.t, most), lambda: tn.one_hot(i.n, most)
    x = c.tensor(c.dims(0, 3), kind="ties", grad=False)
    return lambda: x.t.nonzero(), lambda: tn.nonzero(x.n)


HOW = ["sum", "prod", "amin", "amax"]  # TN_SCATTER_SUM …; 0: TN_SCATTER_SET


@op("scatter", "scatter_reduce", "index_put", "segment_reduce", weight=2)
def scattered(c, name):
    r = c.rng
    shape = [r.randint(1, 5) for _ in range(r.randint(1, 3))]
    d, way = r.randrange(len(shape)), r.randrange(4)
    kind = "unit" if HOW[way] == "prod" else "apart" if way > 1 else "any"  # PyTorch shares ties in another way
    c.loose = 100 if HOW[way] == "prod" else 10
    if name == "segment_reduce":
        if c.dtype == torch.bfloat16:
            c.dtype = torch.float32
        lengths = [r.randint(0, 4) for _ in range(r.randint(1, 4))]
        x = c.tensor((sum(lengths), *shape[1:]), kind=kind)
        if way and 0 in lengths:
            lengths, x = [len(x.t)] if len(x.t) else lengths, x
        n = c.tensor_of(torch.tensor(lengths))
        if way and 0 in lengths:
            way = 0
        return (lambda: torch.segment_reduce(x.t.contiguous(), ["sum", "prod", "min", "max"][way], lengths=n.t),
                lambda: tn.segment_reduce(x.n, n.n, way + 1))
    if name == "index_put":
        x = c.tensor(shape, kind=kind)
        k = r.randint(1, len(shape))
        every = torch.randperm(math.prod(shape[:k]))[: r.randint(0, 6)]  # no place twice
        at = torch.unravel_index(every, shape[:k])
        add = r.random() < 0.5
        if add:
            at = tuple(torch.randint(0, s, (7,)) for s in shape[:k])
        i = [c.tensor_of(torch.tensor(t.tolist(), dtype=torch.int64)) for t in at]
        v = c.tensor((len(at[0]), *shape[k:]) if r.random() < 0.7 else tuple(shape[k:]))
        return (lambda: x.t.index_put(tuple(t.t for t in i), v.t, accumulate=add),
                lambda: tn.index_put(x.n, k, tn.list_of([t.n for t in i]), v.n, int(add)))
    if name == "scatter":
        x = c.tensor(shape)
        i = c.tensor_of(torch.rand(shape).argsort(d).narrow(d, 0, r.randint(1, shape[d])))  # no place twice
        s = c.tensor(tuple(i.t.shape))
        return lambda: x.t.scatter(d, i.t, s.t), lambda: tn.scatter(x.n, d, i.n, s.n)
    if c.dtype == torch.bfloat16:
        c.dtype = torch.float64  # PyTorch rounds each product
    both = c.tensor((2 * shape[0], *shape[1:]), kind=kind)
    x, s = (Both(both.t[k:k + shape[0]], tn.narrow(both.n, 0, k, shape[0])) for k in (0, shape[0]))
    i = c.index(tuple(shape), shape[d])
    return (lambda: x.t.scatter_reduce(d, i.t, s.t, HOW[way]), lambda: tn.scatter_reduce(x.n, d, i.n, s.n, way + 1))


@op("cumprod", "weight_norm", "prelu", "unique", "bincount", "argsort")
def along(c, name):
    r = c.rng
    if name == "bincount":
        x, w = c.index((r.randint(0, 9),), 6), None
        if x.t.numel() and r.random() < 0.5:  # empty: see docs/departures.md
            w = c.tensor(tuple(x.t.shape), torch.float64, grad=False)
        least = r.choice([0, 3, 9])
        return (lambda: torch.bincount(x.t, w.t if w else None, least),
                lambda: tn.bincount(x.n, w.n if w else None, least))
    if name == "unique":
        x, part = c.tensor(c.dims(0, 3), kind="ties", grad=False), r.randrange(3)
        names = ["values", "inverse", "counts"]
        return (lambda: torch.unique(x.t, return_inverse=True, return_counts=True)[part],
                lambda: getattr(tn.unique(x.n), names[part]))
    x = c.tensor(c.dims(1), kind="apart" if name == "argsort" else "unit" if name == "cumprod" else "any",
                 dtype=torch.float64 if name == "argsort" else None)
    if 0 in x.t.shape or name == "prelu" and x.t.dim() < 2:
        x = c.tensor((3, 4))
    d = c.dim(x)
    if name == "cumprod":
        c.loose = 50
        return lambda: x.t.cumprod(d), lambda: tn.cumprod(x.n, d)
    if name == "argsort":
        a = T.Sort()
        a.x, a.dim, a.descending = x.n, d, r.random() < 0.5
        return lambda: x.t.argsort(d, descending=bool(a.descending)), lambda: tn.argsort_run(a)
    if name == "prelu":
        w = c.tensor((r.choice([1, x.t.shape[1]]),))
        c.loose, c.scale = 10, c.scale * 4 * math.sqrt(x.t.numel())
        return lambda: F.prelu(x.t, w.t), lambda: tn.prelu(x.n, w.n)
    if c.dtype == torch.bfloat16:
        c.dtype = torch.float32
    x, d = c.tensor((3, r.randint(1, 5), 2), kind="pos"), r.choice([0, 2])  # PyTorch: the first or the last dim
    g = c.tensor(tuple(s if k == d else 1 for k, s in enumerate(x.t.shape)))
    c.loose = 20
    return lambda: torch._weight_norm(x.t, g.t, d), lambda: tn.weight_norm(x.n, g.n, d)


@op("layer_norm", "rms_norm", weight=2)
def norms(c, name):
    shape = c.dims(1, 4, 9)
    if 0 in shape:
        shape = (3, 5)
    k = c.rng.randint(1, len(shape))
    x, w, b = c.tensor(shape), c.tensor(shape[-k:]), c.tensor(shape[-k:])
    c.loose = 200  # rows of few elements: 1 / sqrt(var) may be large
    c.scale *= 4
    if name == "layer_norm":
        return (lambda: F.layer_norm(x.t, shape[-k:], w.t, b.t, 1e-3), lambda: tn.layer_norm_run(x.n, w.n, b.n, 1e-3))
    return lambda: F.rms_norm(x.t, shape[-k:], w.t, 1e-3), lambda: tn.rms_norm_run(x.n, w.n, 1e-3)


@op("conv1d", "conv2d", weight=4)
def convolution(c, name):
    r, flat = c.rng, name == "conv1d"
    groups = r.choice([1, 1, 2, 3])
    cin, cout, batch = groups * r.randint(1, 4), groups * r.randint(1, 4), r.randint(1, 3)
    two = range(1 if flat else 2)
    kernel, stride = [r.randint(1, 4) for _ in two], [r.randint(1, 3) for _ in two]
    padding, dilation = [r.randint(0, 3) for _ in two], [r.randint(1, 2) for _ in two]
    size = [max(1, (kernel[i] - 1) * dilation[i] + 1 - 2 * padding[i]) + r.randint(0, 9) for i in two]
    x, w = c.tensor((batch, cin, *size)), c.tensor((cout, cin // groups, *kernel))
    b = c.tensor((cout,)) if r.random() < 0.5 else None
    c.scale *= 4 * math.sqrt(cin * math.prod(kernel)) * 2
    a = T.Conv1d() if flat else T.Conv2d()
    a.x, a.weight, a.bias, a.groups = x.n, w.n, b.n if b else None, groups
    a.stride, a.padding, a.dilation = stride[0], padding[0], dilation[0]
    if not flat:
        a.stride_w, a.padding_w, a.dilation_w = stride[1], padding[1], dilation[1]
    f = F.conv1d if flat else F.conv2d
    return (lambda: f(x.t, w.t, b.t if b else None, stride, padding, dilation, groups),
            lambda: getattr(tn, name + "_run")(a))


@op("conv_transpose1d", "conv_transpose2d", weight=2)
def transposed_convolution(c, name):
    r, flat = c.rng, name.endswith("1d")
    groups = r.choice([1, 1, 2, 3])
    cin, cout, two = groups * r.randint(1, 4), r.randint(1, 4), range(1 if flat else 2)
    kernel, stride = [r.randint(1, 4) for _ in two], [r.randint(1, 3) for _ in two]
    dilation, more = [r.randint(1, 2) for _ in two], [r.randint(0, stride[i] - 1) for i in two]
    padding = [r.randint(0, (kernel[i] - 1) * dilation[i] // 2) for i in two]
    x = c.tensor((r.randint(1, 3), cin, *[r.randint(1, 6) for _ in two]))
    w, b = c.tensor((cin, cout, *kernel)), c.tensor((cout * groups,)) if r.random() < 0.5 else None
    c.scale *= 4 * math.sqrt(cin * math.prod(kernel)) * 2
    a = T.ConvTranspose1d() if flat else T.ConvTranspose2d()
    a.x, a.weight, a.bias, a.groups = x.n, w.n, b.n if b else None, groups
    a.stride, a.padding, a.output_padding, a.dilation = stride[0], padding[0], more[0], dilation[0]
    if not flat:
        a.stride_w, a.padding_w, a.output_padding_w, a.dilation_w = stride[1], padding[1], more[1], dilation[1]
    f = getattr(F, name)
    return (lambda: f(x.t, w.t, b.t if b else None, stride, padding, more, groups, dilation),
            lambda: getattr(tn, name + "_run")(a))


@op("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool1d", "adaptive_max_pool2d", "interpolate", weight=2)
def resized(c, name):
    r, most = c.rng, "max" in name
    two = range(r.randint(1, 2) if name == "interpolate" else 1 if name.endswith("1d") else 2)
    x = c.tensor((r.randint(1, 3), r.randint(1, 3), *[r.randint(1, 9) for _ in two]), kind="apart" if most else "any")
    size = [r.randint(1, 9) for _ in two]
    c.scale *= 4
    if name != "interpolate":
        return lambda: getattr(F, name)(x.t, size), lambda: getattr(tn, name)(x.n, *size)
    way, align = r.randint(0, 1), r.random() < 0.5
    mode = ["linear", "bilinear"][len(size) - 1] if way else "nearest"
    c.loose = 5
    return (lambda: F.interpolate(x.t, size, mode=mode, align_corners=align if way else None),
            lambda: tn.interpolate(x.n, tuple(size), way, bool(align and way)))


@op("smooth_l1_loss", "bce_loss", "hinge_embedding_loss", "triplet_margin_loss", "info_nce_loss", weight=2)
def further_losses(c, name):
    r, way = c.rng, c.rng.randint(0, 2)
    shape, kind, a = (r.randint(1, 6), r.randint(1, 6)), ["mean", "sum", "none"][way], r.choice([0.3, 1.0, 1.7])
    c.loose, c.scale = 10, c.scale * 4
    if c.dtype == torch.bfloat16:
        c.dtype = torch.float32  # made of ops, each of which rounds
    x, y, z = c.tensor(shape), c.tensor(shape), c.tensor(shape)
    if name == "smooth_l1_loss":
        return (lambda: F.smooth_l1_loss(x.t, y.t, reduction=kind, beta=a),
                lambda: tn.smooth_l1_loss(x.n, y.n, a, way))
    if name == "bce_loss":
        p, t = (Both(v.t.sigmoid(), tn.sigmoid(v.n)) for v in (x, y))
        w = c.tensor(shape[1:], grad=False) if r.random() < 0.5 else None
        return (lambda: F.binary_cross_entropy(p.t, t.t, w.t if w else None, reduction=kind),
                lambda: tn.bce_loss(p.n, t.n, w.n if w else None, way))
    if name == "hinge_embedding_loss":
        t = torch.where(torch.rand(shape) < 0.5, -1, 1).to(x.t.dtype)
        return (lambda: F.hinge_embedding_loss(x.t, t, a, reduction=kind),
                lambda: tn.hinge_embedding_loss(x.n, to_tenon(t), a, way))
    if name == "triplet_margin_loss":
        return (lambda: F.triplet_margin_loss(x.t, y.t, z.t, a, reduction=kind),
                lambda: tn.triplet_margin_loss(x.n, y.n, z.n, a, way))
    c.loose = 50
    rows = torch.arange(shape[0])
    return (lambda: F.cross_entropy(F.normalize(x.t) @ F.normalize(y.t).t() / a, rows, reduction=kind),
            lambda: tn.info_nce_loss(x.n, y.n, a, way))


@op("max_pool1d", "max_pool2d", "avg_pool1d", "avg_pool2d", weight=2)
def pooling(c, name):
    r, flat, most = c.rng, name.endswith("1d"), name.startswith("max")
    two = range(1 if flat else 2)
    size, stride = [r.randint(1, 4) for _ in two], [r.randint(1, 4) for _ in two]
    padding, dilation = [r.randint(0, s // 2) for s in size], [r.randint(1, 2) if most else 1 for _ in two]
    x = c.tensor((r.randint(1, 3), r.randint(1, 4), *[(size[i] - 1) * dilation[i] + 1 + r.randint(0, 8) for i in two]),
                 kind="apart" if most else "any")
    ignore = r.random() < 0.5 and not most
    a = T.Pool1d() if flat else T.Pool2d()
    a.x, a.ignore_padding = x.n, ignore
    a.size, a.stride, a.padding, a.dilation = size[0], stride[0], padding[0], dilation[0]
    if not flat:
        a.size_w, a.stride_w, a.padding_w, a.dilation_w = size[1], stride[1], padding[1], dilation[1]
    f = getattr(F, name)
    more = dict(dilation=dilation) if most else dict(count_include_pad=not ignore)
    return lambda: f(x.t, size, stride, padding, **more), lambda: getattr(tn, name + "_run")(a)


@op("cross_entropy", "nll_loss", weight=3)
def classes(c, name):
    r = c.rng
    n, width = r.randint(1, 9), r.randint(1, 12)
    more = c.dims(0, 2, 4)
    if 0 in more:
        more = ()
    x = c.tensor((n, width, *more))
    soft = name == "cross_entropy" and r.random() < 0.25
    way = r.randint(0, 2)
    smooth = r.choice([0.0, 0.1]) if name == "cross_entropy" else 0.0
    w = c.tensor((width,), kind="pos", grad=False) if r.random() < 0.4 else None
    if soft:
        y = c.tensor((n, width, *more), kind="pos", grad=False)
    else:
        t = torch.randint(0, width, (n, *more))
        if r.random() < 0.5:
            t[torch.rand(t.shape) < 0.3] = -100
        if (t == -100).all():
            t[...] = 0  # no target: 0 in Tenon, NaN in PyTorch; see docs/departures.md
        y = c.tensor_of(t)
    a = T.CrossEntropy()
    a.logits, a.target, a.weight, a.ignore_index, a.label_smoothing = x.n, y.n, w.n if w else None, -100, smooth
    a.reduction, a.class_dim = [0, 1, 2][way], 1
    c.scale *= 4
    c.loose = 5
    kind = ["mean", "sum", "none"][way]
    if name == "nll_loss":
        return lambda: F.nll_loss(x.t, y.t, w.t if w else None, reduction=kind), lambda: tn.nll_loss_run(a)
    return (lambda: F.cross_entropy(x.t, y.t, w.t if w else None, reduction=kind, label_smoothing=smooth),
            lambda: tn.cross_entropy_run(a))


@op("mse_loss", "l1_loss", "huber_loss", "kl_div", "bce_with_logits", "cosine_similarity", weight=2)
def losses(c, name):
    r = c.rng
    shape = c.dims(1)
    if 0 in shape:
        shape = (4,)
    x = c.tensor(shape)
    y = c.tensor(shape, kind="unit" if name == "bce_with_logits" else "pos" if name == "kl_div" else "any")
    way, delta = r.randint(0, 2), r.choice([1.0, 0.5, 2.0])
    kind = ["mean", "sum", "none"][way]
    c.scale *= 4 * math.sqrt(math.prod(shape))
    if name == "cosine_similarity":
        d = c.dim(x)
        return lambda: F.cosine_similarity(x.t, y.t, d, 1e-8), lambda: tn.cosine_similarity(x.n, y.n, d, 1e-8)
    a = T.Loss()
    a.input, a.target, a.reduction, a.delta = x.n, y.n, way, delta if name == "huber_loss" else 1.0
    if name == "bce_with_logits":
        w = c.tensor(shape, kind="pos", grad=False) if r.random() < 0.3 else None
        p = c.tensor(shape[-1:], kind="pos", grad=False) if r.random() < 0.3 else None
        a.weight, a.pos_weight = w.n if w else None, p.n if p else None
        f = lambda: F.binary_cross_entropy_with_logits(x.t, y.t, w.t if w else None, reduction=kind,
                                                       pos_weight=p.t if p else None)
    elif name == "kl_div":
        a.log_target = r.random() < 0.5
        f = lambda: F.kl_div(x.t, y.t, reduction=kind, log_target=a.log_target)
    elif name == "huber_loss":
        f = lambda: F.huber_loss(x.t, y.t, reduction=kind, delta=delta)
    else:
        f = lambda: getattr(F, name)(x.t, y.t, reduction=kind)
    return f, lambda: getattr(tn, name + "_run")(a)


@op("attention", weight=4)
def attention(c, name):
    r = c.rng
    lead = (r.randint(1, 3), r.randint(1, 3))
    t, s, d, e = (r.choice([1, 2, 3, 5, 8, 17, 40]) for _ in range(4))
    causal = r.random() < 0.4
    if causal:
        s = t
    q, k, v = c.tensor(lead + (t, d)), c.tensor(lead + (s, d)), c.tensor(lead + (s, e))
    a = T.Attention()
    a.q, a.k, a.v, a.causal, a.scale = q.n, k.n, v.n, causal, r.choice([-1.0, 0.3])
    mask = None
    if not causal and r.random() < 0.5:
        m = torch.rand((t, s)) < 0.3
        m[:, 0] = False  # a query without keys: 0 in Tenon, NaN in PyTorch; see docs/departures.md
        blocked = c.tensor_of(m)
        a.attn_mask, mask = blocked.n, ~m
    c.scale *= 4 * math.sqrt(d)
    c.loose = 4
    return (lambda: F.scaled_dot_product_attention(q.t, k.t, v.t, mask, is_causal=causal,
                                                   scale=None if a.scale < 0 else a.scale),
            lambda: tn.attention_run(a))


# ---- comparing -------------------------------------------------------------------------------------------------------

def differ(is_, should, precision, scale):
    if is_.dtype != should.dtype:
        return "%s, PyTorch's is %s" % (is_.dtype, should.dtype)
    if is_.shape != should.shape:
        return "shape %s, PyTorch's is %s" % (tuple(is_.shape), tuple(should.shape))
    if not is_.dtype.is_floating_point:
        bad = is_ != should
    else:
        a, b = is_.double(), should.double()
        bound = precision * (b.abs() + scale)
        bad = ~((a == b) | (a.isnan() & b.isnan()) | ((a - b).abs() <= bound))
    if bad.any():
        at = tuple(bad.nonzero()[0].tolist())
        return "%s at %s, PyTorch's is %s (%d of %d)" % (is_[at].item(), at, should[at].item(), bad.sum(), bad.numel())
    return None


def tried(call):
    try:
        return call(), None
    except (T.Failed, RuntimeError, IndexError, ValueError, TypeError) as problem:
        return None, str(problem) or "refused"


def one_case(c, name):
    """Describes a difference, or returns None."""
    both = OPS[name][0](c, name)
    if callable(both):  # calls both libraries itself
        result, failed = tried(both)
        if failed:
            return "refused: " + failed
        y, n = result
    else:
        (y, torch_says), (n, tenon_says) = tried(both[0]), tried(both[1])
        if torch_says and tenon_says:
            return None
        if torch_says or tenon_says:
            return "refused by %s alone: %s" % ("PyTorch" if torch_says else "Tenon", torch_says or tenon_says)
    if isinstance(y, tuple):
        problem = differ(to_torch(n[1]), y[1], 0, 0)
        if problem:
            return "indices: " + problem
        y, n = y[0], n[0]
    precision = PRECISION.get(y.dtype, 0) * c.loose
    problem = differ(to_torch(n), y.detach(), precision, c.scale * (0 if c.scale == 1 else 0.1))
    if problem:
        return problem
    if y.requires_grad != tn.needs_grad(n):
        return "on the tape here, not there: Tenon %s, PyTorch %s" % (tn.needs_grad(n), y.requires_grad)
    if not y.requires_grad:
        return None
    seed = torch.randn(y.shape, dtype=torch.float64).to(y.dtype)
    if tried(lambda: y.backward(seed) or True)[1]:
        return None  # a limit of PyTorch: "grad_input must be contiguous" of a pooling op
    a = T.Backward()
    a.root, a.seed = n, to_tenon(seed)
    _, failed = tried(lambda: tn.backward_run(a))
    if failed:
        return "backward refused: " + failed
    for i, (t, h) in enumerate(c.leaves):
        g = tn.grad(h)
        should = t.grad if t.grad is not None else torch.zeros_like(t)
        got = to_torch(g) if g else torch.zeros_like(t)
        precision = max(PRECISION[t.dtype], PRECISION.get(y.dtype, 0)) * c.loose
        finite = should[torch.isfinite(should)].double().abs()
        most = min(float(finite.max()), 1e4) if finite.numel() else 0
        problem = differ(got, should, precision, max(c.scale, most))
        if problem:
            return "gradient of input %d: %s" % (i, problem)
    return None


def main():
    global tn
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--op")
    parser.add_argument("--case", type=int)
    args = parser.parse_args()
    tn = T.Tenon(os.path.abspath(args.library))
    torch.set_num_threads(1)
    names = [name for name, (_, weight) in OPS.items() for _ in range(weight)]
    done, findings = collections.Counter(), []
    for k in range(args.count) if args.case is None else [args.case]:
        c = Case(args.seed, k)
        name = c.rng.choice(names)
        if args.op and name not in args.op.split(","):
            continue
        s = tn.scope_begin()
        problem = one_case(c, name)
        tn.scope_end(s)
        done[name] += 1
        if problem:
            findings.append((k, name))
            print("case %d, %s of %s: %s" % (k, name, ", ".join(c.tell), problem), flush=True)
    print("%d comparisons of %d ops with PyTorch %s, seed %d: %d findings"
          % (sum(done.values()), len(done), torch.__version__, args.seed, len(findings)))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

"""PyTorch as a contender of `bench kernels`: reads jobs and prints times; bench/peers/peer.h describes the protocol. It
does the same work as tenon.c: products into an existing result, forward passes that record a graph, backward passes by
autograd.grad on a retained graph, and the optimizer's step with clipping."""
import math
import re
import sys
import time

import torch
import torch.nn.functional as F

torch.manual_seed(0)
DTYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}


def leaf(*shape):
    return torch.empty(*shape).uniform_(-1, 1).requires_grad_()


def gemm(size, layout, dtype):
    *batch, m, n, k = size
    a = torch.empty(*batch, *((k, m) if layout[0] == "T" else (m, k))).uniform_(-1, 1).to(dtype)
    b = torch.empty(*batch, *((n, k) if layout[1] == "T" else (k, n))).uniform_(-1, 1).to(dtype)
    a = a.transpose(-2, -1) if layout[0] == "T" else a
    b = b.transpose(-2, -1) if layout[1] == "T" else b
    c = torch.empty(*batch, m, n, dtype=dtype)

    def run():
        with torch.no_grad():
            torch.matmul(a, b, out=c)
    return run


def attention(size, layout):
    """Attention as users of PyTorch 1.13 write it: matmul, softmax, matmul."""
    heads, t, d = size
    q, k, v = (leaf(8, heads // 8, t, d) for _ in range(3))
    g = torch.empty(8, heads // 8, t, d).uniform_(-1, 1)
    mask = torch.full((t, t), -math.inf).triu(1) if layout == "causal" else None

    def run():
        s = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d)
        if mask is not None:
            s = s + mask
        torch.autograd.grad(torch.matmul(s.softmax(-1), v), (q, k, v), g)
    return run, 4 * 4 * q.numel()


def extra_mib(run, results):
    """The peak memory in addition to the results, from the profiler's record of every allocation; -1: unknown."""
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as p:
        run()
    live = most = 0
    for e in p.profiler.kineto_results.events():  # in the order of time
        if e.name() == "[memory]":
            live += e.nbytes()
            most = max(most, live)
    return max(most - results, 0) / 2**20 if most else -1


def rows(kernel, size):
    n, d = size
    x = leaf(n, d)
    w, b = leaf(d), leaf(d)
    if kernel == "layer_norm":
        return lambda: F.layer_norm(x, (d,), w, b), (x, w, b)
    if kernel == "softmax":
        return lambda: x.softmax(-1), (x,)
    if kernel == "gelu":
        return lambda: F.gelu(x), (x,)
    if kernel == "add_dropout_norm":
        r = leaf(n, d)
        return lambda: F.layer_norm(x + F.dropout(r, 0.1), (d,), w, b), (x, r, w, b)
    return None, None


def adamw(count):
    p = [torch.nn.Parameter(torch.empty(count // 10).uniform_(-1, 1)) for _ in range(10)]
    g = [torch.empty(count // 10).uniform_(-1, 1) for _ in range(10)]
    opt = torch.optim.AdamW(p, 1e-4, weight_decay=0.01)

    def before():
        for a, b in zip(p, g):
            a.grad = b.clone()

    def run():
        torch.nn.utils.clip_grad_norm_(p, 1.0)
        opt.step()
    return run, before


def prepare(kernel, size, layout):
    """Returns (run, before, MiB), or None for an unknown kernel."""
    if kernel.startswith("gemm_"):
        return gemm(size, layout, DTYPES[kernel[5:]]), None, -1
    if kernel == "attention":
        run, results = attention(size, layout)
        run()
        return run, None, extra_mib(run, results)
    if kernel == "adamw":
        return *adamw(size[0]), -1
    if kernel == "cross_entropy":
        x, y = leaf(*size), torch.randint(0, size[1], (size[0],))
        return lambda: torch.autograd.grad(F.cross_entropy(x, y), x), None, -1
    name, way = kernel.rsplit("_", 1)
    if name == "embedding":
        w, index = leaf(size[0], size[1]), torch.randint(0, size[0], (size[2],))
        forward, wrt = lambda: F.embedding(index, w), (w,)
    elif name == "conv2d":  # 8x16x32x24 k3s1p1: N, C, side, O; a window of 3 by 3, stride 1, padding 1
        n, c, side, o = size
        k, stride, padding = (int(i) for i in re.findall("[0-9]+", layout))
        x, w, b = leaf(n, c, side, side), leaf(o, c, k, k), leaf(o)
        forward, wrt = lambda: F.conv2d(x, w, b, stride, padding), (x, w, b)
    else:
        forward, wrt = rows(name, size)
    if not forward:
        return None
    if way == "fwd":
        return forward, None, -1
    y = forward()
    g = torch.empty_like(y).uniform_(-1, 1)
    return lambda: torch.autograd.grad(y, wrt, g, retain_graph=True), None, -1


def best_call(run, before, seconds):
    now = time.perf_counter
    for _ in range(2):
        if before:
            before()
        start = now()
        run()
        took = now() - start
    calls = 1 if before else max(1, min(1000, int(50e-6 / took)))
    best, start = math.inf, now()
    while True:
        if before:
            before()
        at = now()
        for _ in range(calls):
            run()
        best = min(best, (now() - at) / calls)
        if now() - start >= seconds:
            return best


def main():
    print(f"ready PyTorch {torch.__version__}", flush=True)
    last, work = None, None
    for line in sys.stdin:
        kernel, size, layout, threads, seconds = line.split()
        if line.split()[:4] != last:
            torch.set_num_threads(int(threads))
            work = None
            try:
                work = prepare(kernel, [int(n) for n in size.split("x")], layout)
            except Exception as e:  # a kernel that this version of PyTorch does not support
                print(f"pytorch.py: {line.strip()}: {e}", file=sys.stderr)
            last = line.split()[:4]
        if work:
            run, before, mib = work
            print(f"ok {best_call(run, before, float(seconds)) * 1e9:.3f} {mib:.3f}", flush=True)
        else:
            print("no such kernel", flush=True)


main()

#!/usr/bin/python3
"""Writes optim.safetensors: 50 steps of each optimizer and each schedule in PyTorch, for
tests/unit/optim/test_optim.c and tests/unit/optim/test_schedule.c.

    /usr/bin/python3 tests/golden/optim.py      (PyTorch 2.15 and NumPy)

Weights and gradients are not stored: both sides compute them from one formula. Optimizers and schedules that PyTorch
lacks or computes otherwise (Adafactor, LAMB, Lion, the schedules of Transformers) are written here with its basic ops,
from the formulas in optim/*.c and schedule.h.
"""
import math
import os
import sys
import warnings

sys.dont_write_bytecode = True
import numpy as np
import torch
from case import write

warnings.filterwarnings("ignore")
STEPS, SHOWN = 50, [1, 2, 5, 10, 25, 50]
SHAPES = {"w": (3, 4), "b": (4,), "e": (5, 2), "c": (2, 3, 2)}


def values(seed, slot, shape, dtype):
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    u = ((i * 7919 + slot * 104729 + seed * 1299709 + 17) % 10007).astype(np.float64) / 10007.0
    return torch.from_numpy(np.array(-1 + 2 * u)).reshape(shape).to(dtype)


def start(dtype):
    return {n: values(0, k, s, dtype) for k, (n, s) in enumerate(SHAPES.items())}


def gradient(name, p, t, part=0):
    """The gradients of sum(c p) + p²/8; e has one only in some steps."""
    slot = list(SHAPES).index(name)
    if name == "e" and (t <= 4 or t % 3 == 0):
        return None
    return values(t + 100 * part, slot, p.shape, p.dtype) + p / 4


# ---- optimizers that PyTorch lacks or computes otherwise ----
class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                s = self.state[p]
                if not s:
                    s.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                s["t"] += 1
                s["m"].mul_(b1).add_(p.grad, alpha=1 - b1)
                s["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                m, v = s["m"] / (1 - b1 ** s["t"]), s["v"] / (1 - b2 ** s["t"])
                r = m / (v.sqrt() + group["eps"]) + group["weight_decay"] * p
                a, b = p.norm().item(), r.norm().item()
                p.sub_(r, alpha=group["lr"] * (a / b if a > 0 and b > 0 else 1))


class Adafactor(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad
                if g is None:
                    continue
                eps1 = torch.finfo(p.dtype).eps if group["eps"][0] is None else group["eps"][0]
                s = self.state[p]
                if not s:
                    s.update(t=0, row=torch.zeros_like(g.sum(-1, keepdim=True)), v=torch.zeros_like(g))
                    s["col"] = torch.zeros_like(g.sum(-2, keepdim=True)) if g.dim() > 1 else None
                s["t"] += 1
                c = s["t"] ** group["beta2_decay"]
                rms = p.norm().item() / p.numel() ** 0.5
                alpha = max(group["eps"][1], rms) * min(group["lr"], 1 / s["t"] ** 0.5)
                p.mul_(1 - group["lr"] * group["weight_decay"])
                if g.dim() > 1:
                    s["row"].mul_(1 - c).add_((g * g).mean(-1, keepdim=True), alpha=c)
                    s["col"].mul_(1 - c).add_((g * g).mean(-2, keepdim=True), alpha=c)
                    v = s["row"] @ s["col"] / s["row"].mean(-2, keepdim=True).clamp(min=eps1)
                else:
                    v = s["v"].mul_(1 - c).add_(g * g, alpha=c)
                u = g / v.clamp(min=eps1 * eps1).sqrt()
                p.sub_(u, alpha=alpha / max(1.0, u.norm().item() / (u.numel() ** 0.5 * group["d"])))


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.sub_((b1 * m + (1 - b1) * p.grad).sign(), alpha=group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)


class Muon:
    """torch.optim.Muon for matrices and AdamW for the rest. It converts to torch.bfloat16, which is replaced here."""
    def __init__(self, groups, betas=(0.9, 0.999), **options):
        params = groups[0]["params"]
        self.muon = torch.optim.Muon([p for p in params if p.dim() == 2], **options)
        self.rest = torch.optim.AdamW([p for p in params if p.dim() != 2], lr=options.get("lr", 1e-3), betas=betas,
                                      weight_decay=0.1)
        self.dtype = params[0].dtype

    def step(self):
        narrow, torch.bfloat16 = torch.bfloat16, self.dtype
        self.muon.step()
        torch.bfloat16 = narrow
        self.rest.step()


# ---- optimizers ----
O = torch.optim
OPTIMIZERS = {
    "sgd": lambda p: O.SGD(p, lr=0.1),
    "sgd_decay": lambda p: O.SGD(p, lr=0.1, weight_decay=0.1),
    "sgd_momentum": lambda p: O.SGD(p, lr=0.05, momentum=0.9, dampening=0.3, weight_decay=0.01),
    "sgd_nesterov": lambda p: O.SGD(p, lr=0.05, momentum=0.8, nesterov=True),
    "sgd_maximize": lambda p: O.SGD(p, lr=0.01, momentum=0.5, maximize=True, weight_decay=0.1),
    "adam": lambda p: O.Adam(p),
    "adam_options": lambda p: O.Adam(p, lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    "adam_amsgrad": lambda p: O.Adam(p, lr=0.02, betas=(0.8, 0.9), amsgrad=True),
    "adam_maximize": lambda p: O.Adam(p, lr=0.02, maximize=True, weight_decay=0.1),
    "adamw": lambda p: O.AdamW(p),
    "adamw_options": lambda p: O.AdamW(p, lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    "adamw_amsgrad": lambda p: O.AdamW(p, lr=0.02, betas=(0.8, 0.9), amsgrad=True),
    "adamw_no_decay": lambda p: O.AdamW(p, lr=0.02),
    "adamw_clip_norm": lambda p: O.AdamW(p, lr=0.02),
    "adamw_clip_value": lambda p: O.AdamW(p, lr=0.02),
    "sgd_clip_largest": lambda p: O.SGD(p, lr=0.1, momentum=0.9),
    "sgd_accumulate": lambda p: O.SGD(p, lr=0.1, momentum=0.9),
    "adagrad": lambda p: O.Adagrad(p),
    "adagrad_options": lambda p: O.Adagrad(p, lr=0.1, lr_decay=0.05, weight_decay=0.1, initial_accumulator_value=0.5,
         eps=1e-3),
    "rmsprop": lambda p: O.RMSprop(p),
    "rmsprop_options": lambda p: O.RMSprop(p, lr=0.02, alpha=0.9, eps=1e-3, weight_decay=0.1, momentum=0.5),
    "rmsprop_centered": lambda p: O.RMSprop(p, lr=0.005, alpha=0.9, centered=True, eps=1e-3),
    "rmsprop_all": lambda p: O.RMSprop(p, lr=0.005, alpha=0.9, centered=True, eps=1e-3, momentum=0.5),
    "adafactor": lambda p: Adafactor(p),
    "adafactor_options": lambda p: Adafactor(p, lr=0.05, beta2_decay=-0.5, eps=(1e-2, 0.1), d=2.0, weight_decay=0.1),
    "lamb": lambda p: Lamb(p),
    "lamb_options": lambda p: Lamb(p, lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    "nadam": lambda p: O.NAdam(p),
    "nadam_options": lambda p: O.NAdam(p, lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, momentum_decay=0.02,
                                       decoupled_weight_decay=True),
    "radam": lambda p: O.RAdam(p),
    "radam_options": lambda p: O.RAdam(p, lr=0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1),
    "radam_decoupled": lambda p: O.RAdam(p, lr=0.02, weight_decay=0.1, decoupled_weight_decay=True, maximize=True),
    "lion": lambda p: Lion(p),
    "lion_options": lambda p: Lion(p, lr=0.01, betas=(0.8, 0.95), weight_decay=0.1),
    "muon": lambda p: Muon(p),
    "muon_options": lambda p: Muon(p, lr=0.02, momentum=0.8, nesterov=False, adjust_lr_fn="match_rms_adamw",
                                   betas=(0.9, 0.95)),
    "ema": lambda p: O.SGD(p, lr=0.1),
}


def trajectory(name, dtype):
    torch.set_default_dtype(dtype)  # of NAdam's product of momenta
    params = {n: p.requires_grad_() for n, p in start(dtype).items()}
    groups = [{"params": list(params.values())}]
    if name == "adamw_no_decay":
        groups = [{"params": [p for p in params.values() if p.dim() > 1]},
                  {"params": [p for p in params.values() if p.dim() < 2], "weight_decay": 0.0}]
    opt, rows = OPTIMIZERS[name](groups), []
    average = {n: p.detach().clone() for n, p in params.items()}
    for t in range(1, STEPS + 1):
        for n, p in params.items():
            p.grad = gradient(n, p.detach(), t)
            if name == "sgd_accumulate" and p.grad is not None:
                p.grad = (p.grad + gradient(n, p.detach(), t, 1)) / 2
        if name == "adamw_clip_norm":
            torch.nn.utils.clip_grad_norm_(params.values(), 0.7)
        if name == "adamw_clip_value":
            torch.nn.utils.clip_grad_value_(params.values(), 0.3)
        if name == "sgd_clip_largest":
            torch.nn.utils.clip_grad_norm_(params.values(), 0.5, math.inf)
        opt.step()
        for n, p in params.items():
            average[n] += (1 - 0.9) * (p.detach() - average[n])
        if t in SHOWN:
            shown = (average if name == "ema" else params).values()
            rows.append(torch.cat([q.detach().reshape(-1).clone() for q in shown]))
    return torch.stack(rows)


# ---- L-BFGS: five steps of ten iterations on a loss that is not convex ----
LBFGS = {
    "fixed": dict(lr=0.3),
    "wolfe": dict(line_search_fn="strong_wolfe"),
    "wolfe_far": dict(line_search_fn="strong_wolfe", lr=3.0, max_eval=7),
}


def lbfgs(name):
    params, rows = [p.requires_grad_() for p in start(torch.float64).values()], []
    opt = torch.optim.LBFGS(params, max_iter=10, history_size=4, **LBFGS[name])

    def closure():
        opt.zero_grad()
        loss = 0.1 * sum(p.sum() for p in params) ** 2
        for k, p in enumerate(params):
            loss = loss + 0.3 * torch.cos(3 * p).sum() + (1 + k) / 2 * (p * p).sum()
        loss.backward()
        return loss
    for _ in range(5):
        loss = opt.step(closure)
        rows.append(torch.cat([loss.detach().reshape(1)] + [q.detach().reshape(-1).clone() for q in params]))
    return torch.stack(rows)


# ---- schedules ----
L = torch.optim.lr_scheduler


def warmup(up, steps, decay):
    def f(t):
        if t < up:
            return t / max(1, up)
        p = (t - up) / max(1, steps - up)
        return {"linear": max(0.0, 1 - p), "cosine": 0.5 * (1 + math.cos(math.pi * min(1, p))), "none": 1.0}[decay]
    return lambda o: L.LambdaLR(o, f)


def noam(dim, up, factor):
    return lambda o: L.LambdaLR(o, lambda t: factor * dim ** -0.5 * min(max(t, 1) ** -0.5, max(t, 1) * up ** -1.5))


SCHEDULES = {
    "constant": lambda o: L.ConstantLR(o),
    "constant_options": lambda o: L.ConstantLR(o, 0.25, 12),
    "linear": lambda o: L.LinearLR(o),
    "linear_options": lambda o: L.LinearLR(o, 0.1, 0.6, 20),
    "step": lambda o: L.StepLR(o, 7),
    "step_gamma": lambda o: L.StepLR(o, 10, 0.5),
    "multi_step": lambda o: L.MultiStepLR(o, [5, 17, 17, 40], 0.3),
    "exponential": lambda o: L.ExponentialLR(o, 0.93),
    "polynomial": lambda o: L.PolynomialLR(o, 30, 2.0),
    "cosine": lambda o: L.CosineAnnealingLR(o, 12, 0.01),
    "cosine_restarts": lambda o: L.CosineAnnealingWarmRestarts(o, 5, 2, 0.01),
    "cosine_restarts_same": lambda o: L.CosineAnnealingWarmRestarts(o, 9),
    "one_cycle": lambda o: L.OneCycleLR(o, [0.5, 0.05], STEPS),
    "one_cycle_options": lambda o: L.OneCycleLR(o, 0.4, STEPS, pct_start=0.4, anneal_strategy="linear",
         base_momentum=0.7,
                                                max_momentum=0.9, div_factor=10.0, final_div_factor=100.0),
    "one_cycle_three": lambda o: L.OneCycleLR(o, 0.4, STEPS, pct_start=0.35, three_phase=True),
    "lambda": lambda o: L.LambdaLR(o, [lambda t: 0.95 ** t, lambda t: 1 / (1 + t)]),
    "warmup": warmup(10, 40, "linear"),
    "warmup_cosine": warmup(10, 45, "cosine"),
    "warmup_none": warmup(8, 0, "none"),
    "noam": noam(512, 16, 2.0),
    "inverse_sqrt": lambda o: L.LambdaLR(o, lambda t: t / 12 if t < 12 else math.sqrt(12 / t)),
    "chained": lambda o: L.ChainedScheduler([L.LinearLR(o, 0.1, 1.0, 8), L.ExponentialLR(o, 0.95), L.StepLR(o, 20,
         0.5)]),
    "chained_cosine": lambda o: L.ChainedScheduler([L.ConstantLR(o, 0.5, 6), L.CosineAnnealingLR(o, 60)]),
    "sequential": lambda o: L.SequentialLR(o, [L.LinearLR(o, 0.1, 1.0, 10), L.CosineAnnealingLR(o, 25, 0.01),
                                               L.ExponentialLR(o, 0.9)], [10, 35]),
}
# Values for plateau: decreasing, constant, better, worse ...
PLATEAU = [10 / (1 + t) if t < 8 else 1.25 if t < 20 else 1.0 - 0.01 * t if t < 26 else 0.9 + 0.02 * (t % 3)
           for t in range(STEPS)]
PLATEAUS = {
    "plateau": lambda o: L.ReduceLROnPlateau(o),
    "plateau_options": lambda o: L.ReduceLROnPlateau(o, factor=0.5, patience=2, threshold=0.05, cooldown=3,
         min_lr=0.02),
    "plateau_rising": lambda o: L.ReduceLROnPlateau(o, mode="max", factor=0.5, patience=3, threshold=0.1,
         threshold_mode="abs", eps=0.02),
}


def lrs(name):
    p = [torch.nn.Parameter(torch.zeros(1)) for _ in range(2)]
    opt = torch.optim.SGD([{"params": [p[0]], "lr": 0.5}, {"params": [p[1]], "lr": 0.05}], lr=0.5, momentum=0.9)
    s = (SCHEDULES[name] if name in SCHEDULES else PLATEAUS[name])(opt)
    rows = []
    for t in range(STEPS + 1):
        rows.append([g["lr"] for g in opt.param_groups] + [opt.param_groups[0]["momentum"]])
        if t < STEPS:
            s.step(PLATEAU[t]) if name in PLATEAUS else s.step()
    return torch.tensor(rows, dtype=torch.float64)


def main():
    tensors = {}
    for name in OPTIMIZERS:
        tensors["optimizer/%s/f64" % name] = trajectory(name, torch.float64)
        tensors["optimizer/%s/f32" % name] = trajectory(name, torch.float32)
    for name in LBFGS:
        tensors["lbfgs/" + name] = lbfgs(name)
    for name in list(SCHEDULES) + list(PLATEAUS):
        tensors["schedule/" + name] = lrs(name)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optim.safetensors")
    write(path, tensors, {"format": "pt", "made by": "tests/golden/optim.py, torch " + torch.__version__})
    print("%d tensors, %d bytes" % (len(tensors), os.path.getsize(path)))


main()

#!/usr/bin/env python3
"""Compares random programs of views and in-place ops in Tenon and in PyTorch: values and gradients.

    tests/outside/compare_torch_programs.py LIBRARY [--count 2000] [--seed 1] [--program K]

A program starts with a leaf of 24 elements (f64) and tensors derived from it, makes views, writes to them in place and
under no-grad, uses them, retains gradients, and ends with a backward pass. Each step runs in both libraries. Tenon may
reject a step that PyTorch rejects, or compute it; a step that only Tenon rejects must be one of REFUSALS. Programs
whose backward pass is rejected do not count: --count is the number of complete comparisons. --program K prints the
steps of program K. Tested with torch 2.15.0; exits with 77 if torch is missing, with 1 if there are findings.
"""
import argparse
import collections
import os
import random
import sys

sys.dont_write_bytecode = True
try:
    import torch
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)
import compare_torch as one
import tenon_by_name as T
from compare_torch import Both, tried

# Messages of steps that only Tenon rejects, each named in docs/departures.md.
REFUSALS = ["view that was made after tn_no_grad_begin()", "several elements of the target share memory",
            "changed in place the tensor saved by div (result 0)"]
tn = None


class Program:
    def __init__(self, seed, k, tell):
        self.r, self.tell, self.steps = random.Random("%d %d" % (seed, k)), tell, []
        torch.manual_seed(seed * 7919 + k)
        self.all, self.leaves, self.retained, self.loss, self.refused = [], [], [], None, collections.Counter()

    def say(self, text):
        self.steps.append(text)
        if self.tell:
            print("   ", text)

    def leaf(self, shape):
        t = torch.rand(shape, dtype=torch.float64) + 0.3
        b = Both(t, one.to_tenon(t))
        b.t.requires_grad_()
        tn.requires_grad(b.n)
        self.leaves.append(b)
        return b

    def view(self, x):
        r, n = self.r, x.t.dim()
        shape = x.t.shape
        what = r.choice("narrow select slice transpose permute expand squeeze unsqueeze diagonal unfold view "
                        "reshape detach".split())
        d = r.randrange(n) if n else 0
        if n == 0 and what not in ("unsqueeze", "expand", "detach"):
            return None
        if what in ("narrow", "select") and shape[d] == 0 or what == "detach" and r.random() < 0.8:
            return None
        if what == "narrow":
            a = r.randrange(shape[d])
            args = (d, a, r.randint(1, shape[d] - a))
            both = lambda: x.t.narrow(*args), lambda: tn.narrow(x.n, *args)
        elif what == "select":
            args = (d, r.randrange(shape[d]))
            both = lambda: x.t.select(*args), lambda: tn.select(x.n, *args)
        elif what == "slice":
            args = (d, r.randint(0, 2), shape[d], r.randint(1, 2))
            both = lambda: x.t[(slice(None),) * d + (slice(*args[1:]),)], lambda: tn.slice(x.n, *args)
        elif what == "transpose":
            args = (d, r.randrange(n))
            both = lambda: x.t.transpose(*args), lambda: tn.transpose(x.n, *args)
        elif what == "permute":
            args = r.sample(range(n), n)
            both = lambda: x.t.permute(args), lambda: tn.permute(x.n, args)
        elif what == "expand":
            if n > 2:
                return None
            args = (2,) + tuple(shape)
            both = lambda: x.t.expand(args), lambda: tn.expand(x.n, args)
        elif what == "squeeze":
            args = (d,)
            both = lambda: x.t.squeeze(d), lambda: tn.squeeze(x.n, d)
        elif what == "unsqueeze":
            if n > 3:
                return None
            args = (r.randint(0, n),)
            both = lambda: x.t.unsqueeze(*args), lambda: tn.unsqueeze(x.n, *args)
        elif what == "diagonal":
            if n < 2:
                return None
            args = (r.randint(-1, 1), 0, n - 1)
            both = lambda: x.t.diagonal(*args), lambda: tn.diagonal(x.n, *args)
        elif what == "unfold":
            if shape[d] < 2 or n > 3:
                return None
            args = (d, 2, r.randint(1, 2))
            both = lambda: x.t.unfold(*args), lambda: tn.unfold(x.n, *args)
        elif what == "detach":
            args = ()
            both = lambda: x.t.detach(), lambda: tn.detach(x.n)
        else:
            args = (-1,) if r.random() < 0.6 or x.t.numel() % 2 else (2, x.t.numel() // 2)
            both = lambda: getattr(x.t, what)(*args), lambda: getattr(tn, what)(x.n, args)
        return self.both("%s%s" % (what, args), *both)

    def both(self, text, in_torch, in_tenon, inplace=False):
        """Runs a step in both libraries; None if one rejects it. Raises AssertionError if only Tenon does, for a
        reason that is not in REFUSALS."""
        self.say(text)
        if inplace:  # PyTorch runs first; whether a rejected step has written something is not checked
            (t, torch_says) = tried(in_torch)
            if torch_says:
                self.refused["PyTorch"] += 1
                return None
            (n, tenon_says) = tried(in_tenon)
            assert tenon_says is None, "Tenon alone refuses: " + tenon_says
        else:
            (t, torch_says), (n, tenon_says) = tried(in_torch), tried(in_tenon)
            if torch_says or tenon_says:
                assert torch_says, "Tenon alone refuses: " + tenon_says
                assert tenon_says, "PyTorch alone refuses: " + torch_says
                return None
        return Both(t, n)

    def partner(self, shape):
        for b in self.r.sample(self.all, len(self.all)):
            try:
                if torch.broadcast_shapes(b.t.shape, shape) == shape:
                    return b
            except RuntimeError:
                pass
        return self.leaves[1]

    def write(self, x):
        r = self.r
        w = self.partner(x.t.shape)
        kind = r.choice("add sub mul div copy mul_scalar add_scalar tanh sigmoid exp relu neg clamp masked_fill "
                        "sqrt".split())
        name = kind + "_"
        if kind in ("add", "sub", "mul", "div", "copy"):
            if tn.shares_memory(x.n, w.n) and (x.t.shape, x.t.stride(), x.t.storage_offset()) != (
                    w.t.shape, w.t.stride(), w.t.storage_offset()):
                w = Both(w.t.clone(), tn.clone(w.n))  # PyTorch may read overwritten elements: see docs/departures.md
            use = w if r.random() < 0.7 else Both(torch.tanh(w.t), tn.tanh(w.n))
            if kind == "div":
                use = Both(torch.exp(torch.tanh(w.t)), tn.exp(tn.tanh(w.n)))
            both = lambda: getattr(x.t, name)(use.t), lambda: getattr(tn, name)(x.n, use.n)
        elif kind in ("mul_scalar", "add_scalar"):
            k = r.choice([0.5, 1.25, -0.75])
            both = (lambda: x.t.mul_(k) if kind == "mul_scalar" else x.t.add_(k)), lambda: getattr(tn, name)(x.n, k)
        elif kind == "clamp":
            both = lambda: x.t.clamp_(-0.8, 0.8), lambda: tn.clamp_(x.n, -0.8, 0.8)
        elif kind == "masked_fill":
            m = torch.rand(x.t.shape) < 0.3
            h = one.to_tenon(m)
            both = lambda: x.t.masked_fill_(m, 0.25), lambda: tn.masked_fill_(x.n, h, 0.25)
        elif kind in ("exp", "sqrt"):
            if kind == "sqrt" and (not x.t.numel() or float(x.t.detach().min()) < 0.01) or kind == "exp" and \
                    x.t.numel() and float(x.t.detach().max()) > 2:
                return None
            both = lambda: getattr(x.t, name)(), lambda: getattr(tn, name)(x.n)
        else:
            both = lambda: getattr(x.t, name)(), lambda: getattr(tn, name)(x.n)
        if r.random() < 0.06:
            return self.unrecorded(name, *both)
        return self.both("in place: " + name, *both, inplace=True)

    def unrecorded(self, name, in_torch, in_tenon):
        s = tn.no_grad_begin()
        try:
            with torch.no_grad():
                return self.both("in place, no grad: " + name, in_torch, in_tenon, inplace=True)
        finally:
            tn.scope_end(s)

    def use(self, x):
        y = self.partner(x.t.shape)
        term = self.both("use", lambda: (torch.sin(x.t) * y.t).sum(),
                         lambda: tn.sum_run(one.reduced(Both(None, tn.mul(tn.sin(x.n), y.n)), [], False)))
        if term:
            self.loss = term if self.loss is None else Both(self.loss.t + term.t, tn.add(self.loss.n, term.n))

    def retain(self, x):
        if x.t.requires_grad and not x.t.is_leaf and not self.constant:
            self.both("retain", lambda: x.t.retain_grad() or True, lambda: tn.retain_grad(x.n) == 0)
            self.retained.append(x)

    def run(self):
        r = self.r
        shape = r.choice([(24,), (4, 6), (2, 3, 4)])
        x, w = self.leaf(shape), self.leaf(())
        start = Both(x.t * 1.0, tn.mul_scalar(x.n, 1.0))
        self.constant = r.random() < 0.3
        if self.constant:
            start = Both(start.t.detach(), tn.detach(start.n))
            self.say("starts with a constant")
        self.all = [start, w]
        for _ in range(r.randint(4, 16)):
            a = r.choice(self.all)
            what, made = r.random(), None
            if what < 0.4:
                made = self.view(a if r.random() < 0.9 else x)
            elif what < 0.7 and a is not w:
                self.write(a)
            elif what < 0.78:
                made = self.both("new", lambda: (torch.tanh(a.t) * w.t).contiguous(), lambda: tn.mul(tn.tanh(a.n), w.n))
            elif what < 0.85:
                self.retain(a)
            else:
                made = self.use(a)
            if made:
                self.all.append(made)
        for b in self.all:
            self.same("value", one.to_torch(b.n), b.t.detach())
            assert b.t.requires_grad == tn.needs_grad(b.n), "on the tape in one of them only"
        for b in r.sample(self.all, min(3, len(self.all))):
            self.use(b)
        if self.loss is None or not self.loss.t.requires_grad:
            return False
        _, torch_says = tried(lambda: self.loss.t.backward() or True)
        a = T.Backward()
        a.root = self.loss.n
        _, tenon_says = tried(lambda: tn.backward_run(a))
        if torch_says or tenon_says:
            self.refused["both" if torch_says and tenon_says else "PyTorch alone" if torch_says else "Tenon alone"] += 1
            if tenon_says and not torch_says:
                raise AssertionError("backward refused: " + tenon_says)
            return False
        for b in self.leaves + self.retained:
            g = tn.grad(b.n)
            self.same("gradient", one.to_torch(g) if g else torch.zeros_like(b.t),
                      b.t.grad if b.t.grad is not None else torch.zeros_like(b.t))
        return True

    def same(self, what, is_, should):
        scale = float(should.abs().max()) if should.numel() else 0
        problem = one.differ(is_, should, 1e-11, 1 + min(scale, 1e6))
        assert problem is None, "%s: %s" % (what, problem)


def main():
    global tn
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", type=int)
    args = parser.parse_args()
    tn = one.tn = T.Tenon(os.path.abspath(args.library))
    torch.set_num_threads(1)
    k = args.program or 0
    compared, findings, refused = 0, 0, collections.Counter()
    while compared < args.count and findings < 50:
        p = Program(args.seed, k, args.program is not None)
        s = tn.scope_begin()
        try:
            compared += p.run()
        except AssertionError as problem:
            if any(text in str(problem) for text in REFUSALS):
                refused["named in docs/departures.md"] += 1
            else:
                findings += 1
                print("program %d: %s, after: %s" % (k, problem, "; ".join(p.steps)), flush=True)
        tn.scope_end(s)
        refused += p.refused
        k += 1
        if args.program is not None:
            break
    print("%d programs of views and in-place ops compared with PyTorch %s, seed %d: %d findings (%d begun; rejected %s)"
          % (compared, torch.__version__, args.seed, findings, k, dict(refused)))
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()

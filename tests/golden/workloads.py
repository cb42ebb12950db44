#!/usr/bin/python3
"""Writes workloads.json: the loss and the gradient norm of each step of bench/'s training jobs in PyTorch, with odd
sizes and without dropout, for tests/unit/programs/test_workloads.c.

    /usr/bin/python3 tests/golden/workloads.py      (Debian's python3-torch 1.13 and python3-numpy)

The models are those of bench/peers/torch_workloads.py. Weights and token ids are not stored: both sides compute them,
the weights with the formula of case.py. Results are computed in f64; the script compares PyTorch's f32 with them.
"""
import argparse
import json
import os
import sys

sys.dont_write_bytecode = True
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../../bench/peers"))
import numpy as np
import torch
from torch import nn
import torch_workloads as jobs
from case import values

STEPS = 8
NAMES = {"dense.": "head.transform.dense.", "head_norm.": "head.transform.LayerNorm.", "bias": "head.bias"}


def ours(workload, name):
    for theirs, here in NAMES.items():
        if workload == "bert" and name.startswith(theirs):
            return here + name[len(theirs):]
    return name


def words(*shape):
    shape = shape or (jobs.o.batch, jobs.o.seq)
    h = 2166136261
    for c in ("%s/%d" % (jobs.o.workload, jobs.o.calls)).encode():
        h = (h ^ c) * 16777619 % 2**32
    jobs.o.calls += 1
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    return torch.from_numpy((i * 7919 + h) % 10007 % jobs.o.vocab).reshape(shape)


def train(model, loss):
    o = jobs.o
    model = model.to(o.type).eval()
    with torch.no_grad():
        for n, p in model.named_parameters():
            name = ours(o.workload, n)
            v = values(o.workload + "/" + name, tuple(p.shape))
            p.copy_(v * 0.1 if p.dim() > 1 else 1 + v / 2 if name.endswith("weight") else v)
        for m in model.modules():
            if isinstance(getattr(m, "mask", None), torch.Tensor):
                m.mask = m.mask.to(o.type)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01)
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        norms.append(float(nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
        optimizer.step()
        losses.append(float(value))
    return {"loss": losses, "norm": norms}


jobs.words, jobs.train, jobs.some = words, train, lambda of, n: torch.arange(n) * 37 % of
result = {"made by": "tests/golden/workloads.py, torch " + torch.__version__}
for workload, job in (("bert", jobs.bert), ("gpt", jobs.gpt), ("seq2seq", jobs.seq2seq), ("lstm", jobs.lstm)):
    for dtype in (torch.float64, torch.float32):
        jobs.o = argparse.Namespace(workload=workload, layers=3, d_model=96, heads=6, ffn=384, vocab=1003, batch=5,
                                    seq=33, calls=0, type=dtype, dtype="f32")
        r = job()
        if dtype == torch.float64:
            result[workload] = r
        for what in r:
            far = max(abs(a - b) / b for a, b in zip(r[what], result[workload][what]))
            assert far < 1e-5, "%s: PyTorch's f32 %s is %.2g away" % (workload, what, far)
    print(workload, result[workload]["loss"][0], result[workload]["loss"][-1])
with open(os.path.join(here, "workloads.json"), "w") as f:
    json.dump(result, f, indent=1)
    f.write("\n")

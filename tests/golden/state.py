#!/usr/bin/python3
"""Exchanges state dicts between PyTorch and Tenon, in both directions.

    /usr/bin/python3 tests/golden/state.py        (Debian's python3-torch 1.13 and python3-numpy)

Writes state_torch.safetensors, a state dict of PyTorch with the output of the module in the metadata;
tests/unit/nn/test_state.c loads and compares it. Also loads state_tenon.safetensors, which tests/unit/nn/test_state.c
writes if TENON_GOLDEN=write is set, into PyTorch's module with strict=True, and compares the output of the module with
Tenon's.
"""
import json
import os
import struct
import sys

sys.dont_write_bytecode = True
import numpy as np
import torch
from torch import nn
from case import values, write

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENS = torch.tensor([0, 3, 5, 3])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(6, 4)
        self.norm = nn.BatchNorm1d(4)
        self.mix = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.LayerNorm(4))
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x):
        return self.head(self.mix(self.norm(self.words(x))))


def read(path):
    with open(path, "rb") as f:
        n, = struct.unpack("<Q", f.read(8))
        header, data = json.loads(f.read(n)), f.read()
    types = {"F32": np.float32, "I64": np.int64}
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, v in header.items():
        begin, end = v["data_offsets"]
        tensors[name] = torch.from_numpy(np.frombuffer(data[begin:end], types[v["dtype"]]).reshape(v["shape"]).copy())
    return metadata, tensors


def main():
    m = Model()
    with torch.no_grad():
        for name, t in m.state_dict().items():
            v = values(name, tuple(t.shape))
            t.copy_(v.abs() * 8 + 0.5 if name.endswith(("var", "tracked")) else v)
    y = m.eval()(TOKENS)
    metadata = {"format": "pt", "made by": "tests/golden/state.py, torch " + torch.__version__,
                "answer": " ".join("%.9g" % v for v in y.flatten().tolist())}
    write(os.path.join(HERE, "state_torch.safetensors"), m.state_dict(), metadata)

    path = os.path.join(HERE, "state_tenon.safetensors")
    if not os.path.exists(path):
        print("state_tenon.safetensors is missing; run test_state with TENON_GOLDEN=write")
        return
    metadata, tensors = read(path)
    m = Model()
    m.load_state_dict(tensors, strict=True)
    y, want = m.eval()(TOKENS).flatten(), torch.tensor([float(v) for v in metadata["answer"].split()])
    off = float((y - want).abs().max() / want.abs().max())
    print("PyTorch with Tenon's state dict: off by %.2g" % off)
    assert off < 2e-6


main()

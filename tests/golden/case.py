"""Shared by the scripts that make golden data of modules: inputs and weights by formula, cases, the file.

Inputs and weights are not stored: the tests compute them from their names with the same formula
(tests/common/golden_case.c). The values are exact in f32, so that results computed in f64 serve for both f64 and f32.
"""
import json
import os
import struct

import numpy as np
import torch


def values(name, shape):
    h = 2166136261
    for c in name.encode():
        h = (h ^ c) * 16777619 % 2**32
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    return torch.from_numpy(((((i * 7919 + h) % 10007) - 5003) / 8192.0).reshape(shape))


class Case:
    """A case: names its inputs and modules, and fills them when they are named."""

    def __init__(self, name, matrices=1.0, dtype=torch.float64):
        self.name, self.matrices, self.dtype = name, matrices, dtype
        self.inputs, self.modules, self.weights = {}, [], {}

    def input(self, what, *shape):
        x = (2 * values(self.name + "/" + what, shape)).to(self.dtype).requires_grad_()
        self.inputs[what] = x
        return x

    def fill(self, module):
        module = module.to(self.dtype).train()
        with torch.no_grad():
            for n, p in module.named_parameters():
                v = values(self.name + "/" + n, tuple(p.shape))
                p.copy_(v * self.matrices if p.dim() > 1 else 1 + v / 2 if n.endswith("weight") else v)
        self.modules.append(module)
        return module


CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def write(path, tensors, metadata):
    names = {torch.float64: "F64", torch.float32: "F32", torch.int64: "I64", torch.bool: "BOOL"}
    header, at, blobs = {"__metadata__": metadata}, 0, []
    for name in sorted(tensors, key=lambda n: (-tensors[n].element_size(), n)):
        blob = tensors[name].detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": names[tensors[name].dtype], "shape": list(tensors[name].shape),
                        "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def results(k, fn):
    y = fn(k)
    y.backward(values(k.name + "/gy", tuple(y.shape)).to(k.dtype))
    out = {"y": y}
    out.update(k.weights)
    out.update(("grad/" + what, x.grad) for what, x in k.inputs.items())
    for m in k.modules:
        out.update(("grad/" + n, p.grad) for n, p in m.named_parameters())
    return {k.name + "/" + what: t.detach() for what, t in out.items()}


def run(script, stem, matrices=1.0, strays=None):
    """Runs all cases and writes the results to the folder of `script`; the text of each module goes into the metadata.
    `matrices` multiplies matrices. Fails if PyTorch's f32 results differ from the f64 results by more than the given
    tolerance, relative to the largest element."""
    made_by = "tests/golden/" + os.path.basename(script) + ", torch " + torch.__version__
    tensors, metadata = {}, {"format": "pt", "made by": made_by}
    for name, fn in CASES.items():
        k = Case(name, matrices)
        exact = results(k, fn)
        tensors.update(exact)
        for m in k.modules:
            metadata[name] = repr(m)
        if strays is not None:
            for n, t in results(Case(name, matrices, torch.float32), fn).items():
                far = ((t - exact[n]).abs().max() / exact[n].abs().max().clamp_min(1e-300)).item()
                assert far <= strays, "%s: PyTorch's f32 is %.2g away" % (n, far)
    path = os.path.join(os.path.dirname(os.path.abspath(script)), stem + ".safetensors")
    write(path, tensors, metadata)
    print("%d cases, %d tensors, %d bytes" % (len(CASES), len(tensors), os.path.getsize(path)))

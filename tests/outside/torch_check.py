#!/usr/bin/env python3
"""Checks that Tenon reads files of torch.save, in both formats: names, shapes and bits of random state dicts must be
equal, with views, shared storages, parameters and every dtype. Pickles that would run code must be rejected.

    tests/outside/torch_check.py build/libtenon.so [FILES]        a Python with torch (tested with 2.15.0)

Exits with 77 if torch is missing."""
import ctypes
import os
import random
import sys
import tempfile

try:
    import torch
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)

P, S, I = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64
lib = ctypes.CDLL(sys.argv[1])
for name, out, args in [("tn_torch_open", P, [S]), ("tn_safetensors_close", None, [P]),
                        ("tn_safetensors_count", I, [P]),
                        ("tn_safetensors_get", P, [P, S]), ("tn_data", P, [P]),
                        ("tn_size", I, [P, ctypes.c_int]), ("tn_ndim", ctypes.c_int, [P]), ("tn_drop", None, [P]),
                        ("tn_error_message", S, []), ("tn_clear_error", None, []), ("tn_dtype_of", ctypes.c_int, [P])]:
    f = getattr(lib, name)
    f.restype, f.argtypes = out, args

# the dtype that a type is read as, and its value in core.h
reads_as = {torch.float32: (0, torch.float32), torch.float64: (1, torch.float64), torch.bfloat16: (2, torch.bfloat16),
            torch.float16: (0, torch.float32), torch.int64: (3, torch.int64), torch.int32: (4, torch.int32),
            torch.int16: (4, torch.int32), torch.int8: (4, torch.int32), torch.uint8: (5, torch.uint8),
            torch.bool: (6, torch.bool)}


def wrong(text):
    print("WRONG:", text, (lib.tn_error_message() or b"").decode())
    sys.exit(1)


def some(r):
    shape = [r.randrange(0 if r.random() < 0.1 else 1, 7) for _ in range(r.randrange(5))]
    x = (torch.randn(shape, dtype=torch.float64) * 50).to(r.choice(list(reads_as)))
    for _ in range(r.randrange(4)):
        if not x.dim():
            break
        d = r.randrange(x.dim())
        x = r.choice([lambda: x.transpose(d, r.randrange(x.dim())), lambda: x.flatten(),
                      lambda: x[(slice(None),) * d + (slice(None, None, 2),)],
                      lambda: x.narrow(d, min(1, x.shape[d]), max(0, x.shape[d] - 1)),
                      lambda: x.select(d, 0) if x.shape[d] else x])()
    return torch.nn.Parameter(x) if x.is_floating_point() and r.random() < 0.3 else x


class Bad:
    def __reduce__(self):
        return (os.system, ("touch " + bad,))


files, tensors = int(sys.argv[2]) if len(sys.argv) > 2 else 300, 0
with tempfile.TemporaryDirectory() as folder:
    path, bad = os.path.join(folder, "a.bin"), os.path.join(folder, "ran")
    for seed in range(files):
        r = random.Random(seed)
        torch.manual_seed(seed)
        state = {"layer.%d.%s" % (i, r.choice("abc")): some(r) for i in range(r.randrange(1, 12))}
        state["tied"] = next(iter(state.values()))
        torch.save(state, path, _use_new_zipfile_serialization=seed % 2 == 0)
        f = lib.tn_torch_open(path.encode())
        if not f or lib.tn_safetensors_count(f) != len(state):
            wrong("seed %d" % seed)
        for name, x in state.items():
            t = lib.tn_safetensors_get(f, name.encode())
            number, kind = reads_as[x.dtype]
            shape = [lib.tn_size(t, d) for d in range(lib.tn_ndim(t))] if t else None
            if shape != list(x.shape) or lib.tn_dtype_of(t) != number:
                wrong("seed %d: %s" % (seed, name))
            flat = torch.empty(x.numel(), dtype=kind).copy_(x.detach().to(kind).reshape(-1))
            want = flat.view(torch.uint8).numpy().tobytes() if x.numel() else b""
            if want != ctypes.string_at(lib.tn_data(t), len(want)):
                wrong("seed %d: %s: other numbers" % (seed, name))
            lib.tn_drop(t)
            tensors += 1
        lib.tn_safetensors_close(f)
    for zipped in (True, False):
        torch.save({"a": torch.ones(2), "b": Bad()}, path, _use_new_zipfile_serialization=zipped)
        opened = lib.tn_torch_open(path.encode())
        if opened or b"nothing was executed" not in lib.tn_error_message() or os.path.exists(bad):
            wrong("a file that runs something")
        lib.tn_clear_error()
print("%d files, %d tensors: PyTorch's names, shapes and bits; pickles with code are rejected" % (files, tensors))

#!/usr/bin/env python3
"""Compares GGUF with PyPI's gguf: Tenon reads its files, and unpacked blocks must be equal to the bit; it reads Tenon's
files, including blocks of Q8_0.

    tests/outside/gguf_check.py build/libtenon.so [FILES]        a Python with gguf (tested with 0.19.0) and numpy

Exits with 77 if gguf is missing."""
import ctypes
import os
import sys
import tempfile

try:
    import gguf
    import numpy as np
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)

T = gguf.GGMLQuantizationType
lib = ctypes.CDLL(sys.argv[1])
P, S, I = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64
for name, out, args in [("tn_gguf_open", P, [S]), ("tn_gguf_close", None, [P]), ("tn_gguf_tensors", P, [P]),
                        ("tn_safetensors_get", P, [P, S]), ("tn_data", P, [P]), ("tn_numel", I, [P]),
                        ("tn_gguf_get_as", P, [P, S, ctypes.c_int]), ("tn_error_message", S, []),
                        ("tn_gguf_writer_new", P, []), ("tn_gguf_writer_free", None, [P]),
                        ("tn_gguf_writer_tensors", P, [P]), ("tn_safetensors_put", ctypes.c_int, [P, S, P]),
                        ("tn_gguf_save", ctypes.c_int, [P, S, S]), ("tn_gguf_put_string", ctypes.c_int, [P, S, S])]:
    f = getattr(lib, name)
    f.restype, f.argtypes = out, args


def wrong(text):
    print("WRONG:", text, (lib.tn_error_message() or b"").decode())
    sys.exit(1)


def numbers(g, name, count):
    t = lib.tn_safetensors_get(lib.tn_gguf_tensors(g), name.encode())
    if not t or lib.tn_numel(t) != count:
        wrong(name)
    return np.ctypeslib.as_array(ctypes.cast(lib.tn_data(t), ctypes.POINTER(ctypes.c_float)), (count,)).copy(), t


def raw(kind, rows, blocks, rng):
    per, size = gguf.GGML_QUANT_SIZES[kind]
    x = rng.integers(0, 256, (rows, blocks, size), dtype=np.uint8)
    for at in {T.Q4_0: [0], T.Q8_0: [0], T.Q4_K: [0, 2], T.Q6_K: [208]}[kind]:
        scale = rng.integers(0, 0x7c00, (rows, blocks, 1), dtype=np.uint16)  # any finite f16
        scale |= rng.integers(0, 2, scale.shape, dtype=np.uint16) << 15
        x[:, :, at:at + 2] = scale.astype("<u2").view(np.uint8)
    return x.reshape(rows, -1)


files, tensors, count = int(sys.argv[2]) if len(sys.argv) > 2 else 40, 0, 0
with tempfile.TemporaryDirectory() as folder:
    for seed in range(files):
        rng = np.random.default_rng(seed)
        path = os.path.join(folder, "a.gguf")
        w = gguf.GGUFWriter(path, "test")
        if seed % 3 == 0:
            w.add_custom_alignment(int(2 ** rng.integers(3, 12)))
        want = {}
        for kind in [T.Q4_0, T.Q8_0, T.Q4_K, T.Q6_K]:
            x = raw(kind, int(rng.integers(1, 40)), int(rng.integers(1, 30)), rng)
            want[kind.name] = gguf.quants.dequantize(x, kind)
            w.add_tensor(kind.name, x, raw_dtype=kind)
        half = rng.integers(0, 65536, (int(rng.integers(1, 99)), 7), dtype=np.uint16).view(np.float16)
        w.add_tensor("F16", half)
        want["F16"] = half.astype(np.float32)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()
        g = lib.tn_gguf_open(path.encode())
        if not g:
            wrong("seed %d" % seed)
        out = lib.tn_gguf_writer_new()
        lib.tn_gguf_put_string(out, b"general.architecture", b"test")
        for name, x in want.items():
            got, t = numbers(g, name, x.size)
            good = got.view(np.uint32) == x.ravel().view(np.uint32)
            if not (good | (np.isnan(got) & np.isnan(x.ravel()))).all():
                wrong("seed %d: %s: %d of %d numbers" % (seed, name, (~good).sum(), x.size))
            if name != "F16" and lib.tn_safetensors_put(lib.tn_gguf_writer_tensors(out), name.encode(), t):
                wrong("put")
            tensors, count = tensors + 1, count + x.size
        packed = ["F32", "BF16", "Q8_0"][seed % 3]
        if lib.tn_gguf_save(out, path.encode(), packed.encode()):
            wrong("save")
        for t in gguf.GGUFReader(path).tensors:
            x = want[t.name]
            if t.tensor_type.name != packed or tuple(reversed(t.shape.tolist())) != x.shape:
                wrong("%s is %s" % (t.name, t.tensor_type.name))
            mine = np.asarray(t.data).reshape(x.shape[0], -1).view(np.uint8)
            theirs = gguf.quants.quantize(x, t.tensor_type).reshape(x.shape[0], -1).view(np.uint8)
            if not (mine == theirs).all():
                wrong("seed %d: %s written as %s: %d bytes" % (seed, t.name, packed, (mine != theirs).sum()))
        lib.tn_gguf_writer_free(out)
        lib.tn_gguf_close(g)
print("%d files, %d tensors, %d numbers: the same bits; written back as F32, BF16 and Q8_0: the same bytes" %
      (files, tensors, count))

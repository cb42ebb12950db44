#!/usr/bin/env python3
"""Writes tests/golden/packed.gguf with PyPI's gguf (0.19.0, numpy 2.4.6): metadata values of every type, and tensors of
every type that Tenon reads; each packed tensor "NAME" has its unpacked values by gguf as "NAME.f32"."""
import sys
import numpy as np
import gguf

T = gguf.GGMLQuantizationType
V = gguf.GGUFValueType
rng = np.random.default_rng(16)


def packed(kind, rows, blocks):
    """Random bytes, which are valid blocks; the f16 scales are made small and finite."""
    per, size = gguf.GGML_QUANT_SIZES[kind]
    raw = rng.integers(0, 256, (rows, blocks, size), dtype=np.uint8)
    for at in {T.Q4_0: [0], T.Q8_0: [0], T.Q4_K: [0, 2], T.Q5_K: [0, 2],
               T.Q6_K: [208]}[kind]:
        scale = rng.standard_normal((rows, blocks, 1)).astype(np.float16)
        scale[0, 0, 0] = np.float16(3e-7)  # a subnormal
        raw[:, :, at:at + 2] = scale.view(np.uint8)
    return raw.reshape(rows, blocks * size)


def make(path):
    w = gguf.GGUFWriter(path, "test")
    for name, value, kind in [("u8", 250, V.UINT8), ("i8", -3, V.INT8), ("u16", 65000, V.UINT16),
                              ("i16", -300, V.INT16),
                              ("u32", 4000000000, V.UINT32), ("i32", -70000, V.INT32), ("f32", 0.1, V.FLOAT32),
                              ("bool", True, V.BOOL), ("string", "Käse", V.STRING), ("u64", 2**64 - 1, V.UINT64),
                              ("i64", -2**60, V.INT64), ("f64", 0.1, V.FLOAT64)]:
        w.add_key_value(name, value, kind)
    w.add_array("words", ["a", "", "zwölf"])
    w.add_array("floats", [0.5, -2.0, 3.25])
    w.add_array("ints", [1, -2, 3])
    plain = rng.standard_normal((3, 5)).astype(np.float32)
    for name, x, kind in [("F32", plain, None), ("F16", plain.astype(np.float16), None),
                          ("BF16", gguf.quants.quantize(plain, T.BF16), T.BF16),
                          ("I32", rng.integers(-9, 9, (2, 3), dtype=np.int32), None)]:
        w.add_tensor(name, x, raw_dtype=kind)
    w.add_tensor("F16.f32", plain.astype(np.float16).astype(np.float32))
    w.add_tensor("BF16.f32", gguf.quants.dequantize(gguf.quants.quantize(plain, T.BF16), T.BF16))
    for kind, blocks in [(T.Q4_0, 3), (T.Q8_0, 3), (T.Q4_K, 1), (T.Q6_K, 1)]:
        x = packed(kind, 2, blocks)
        w.add_tensor(kind.name, x, raw_dtype=kind)
        w.add_tensor(kind.name + ".f32", gguf.quants.dequantize(x, kind))
    x = (rng.standard_normal((2, 64)) * 10.0 ** rng.integers(-6, 4, (2, 1))).astype(np.float32)
    x[0, :32] = 0
    x[1, 3], x[1, 4] = 0.5, -0.5
    w.add_tensor("wide", x)
    w.add_tensor("wide.q8_0", gguf.quants.quantize(x, T.Q8_0), raw_dtype=T.Q8_0)
    w.add_tensor("other", rng.integers(0, 256, (1, 20), dtype=np.uint8), raw_dtype=T.Q4_1)
    x = packed(T.Q5_K, 2, 1)
    w.add_tensor("Q5_K", x, raw_dtype=T.Q5_K)
    w.add_tensor("Q5_K.f32", gguf.quants.dequantize(x, T.Q5_K))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


make(sys.argv[1] if len(sys.argv) > 1 else __file__.replace(".py", ".gguf"))

#!/usr/bin/python3
"""Prints tests/golden/print_texts.json: the tensors of tests/unit/core/test_print.c as PyTorch prints them.

    apt-get install python3-torch
    tests/golden/print_texts.py > tests/golden/print_texts.json

Made with torch 1.13 (Debian 12). The names of dtypes are Tenon's; everything else is PyTorch's text."""
import json
import math

import torch
import torch._tensor_str as ts

NAMES = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32",
         torch.uint8: "U8", torch.bool: "BOOL"}
add_suffixes = ts._add_suffixes


def with_our_names(text, suffixes, indent, force_newline):
    for dtype, name in NAMES.items():
        suffixes = [s.replace("dtype=" + str(dtype), "dtype=" + name.lower()) for s in suffixes]
    return add_suffixes(text, suffixes, indent, force_newline)


ts._add_suffixes = with_our_names

f32, f64, bf16, i64, i32, u8, boolean = NAMES
inf, nan = math.inf, math.nan
cases = []


def listed(dtype, shape, values, grad=False):
    """A tensor given by its values."""
    cases.append((dtype, shape, list(values), 0, 0, 0, grad))


def counted(dtype, shape, first, step, modulo=0):
    """A tensor of first + step * i, or of first + step * (i mod modulo) if modulo is not 0."""
    cases.append((dtype, shape, None, first, step, modulo, False))


# values of one format
listed(f32, (), [1])
listed(f32, (), [-2.5])
listed(f32, (), [0])
listed(f32, (), [-0.0])
listed(f32, (), [nan])
listed(f32, (), [inf])
listed(f32, (), [-inf])
listed(f32, (), [1e-5])
listed(f32, (), [1e8])
listed(f32, (), [100000008])
listed(f32, (), [123456.789])
listed(f64, (), [1e300])
listed(f64, (), [math.pi])
listed(bf16, (), [3.140625])
listed(i64, (), [-7])
listed(boolean, (), [1])
listed(f32, (3,), [1, 2, 3])
listed(f32, (3,), [-1, 20, 300])
listed(f32, (3,), [0, 0, 0])
listed(f32, (3,), [0, -0.0, 1])
listed(f32, (4,), [1, 2, 3, 4], grad=True)
listed(f32, (3,), [0.1, 0.2, 0.3])
listed(f32, (3,), [0.5, 100.25, -3.125])
listed(f32, (4,), [0.00004, 1, 2, 3])
listed(f32, (2,), [0.0001, 0.01])
listed(f64, (2,), [0.0001, 0.01])
listed(f32, (2,), [1, 1000])
listed(f32, (2,), [1, 1001])
listed(f32, (2,), [-1, -1001])
listed(f32, (2,), [0.5, 500])
listed(f32, (2,), [0.5, 500.5])
listed(f64, (3,), [1e8, 1e8, 1e8])
listed(f64, (3,), [1e8, 100000001, 1e8])
listed(f64, (3,), [1.5, 2.25, 1e-10])
listed(f64, (2,), [1e-300, 1e300])
listed(f64, (2,), [5e-324, 1.7976931348623157e308])
listed(f64, (4,), [0.00005, 0.12345, 0.99995, 0.99994999])
listed(f64, (4,), [0.03125, 2.00005, 1.00015, 1.00025])
# infinities and NaN
listed(f32, (3,), [1, inf, 2])
listed(f32, (3,), [1, nan, -inf])
listed(f32, (3,), [1.5, nan, -inf])
listed(f32, (3,), [nan, nan, nan])
listed(f32, (2,), [inf, -inf])
listed(f32, (4,), [1e-6, nan, inf, -1])
listed(f32, (2, 2), [0, inf, nan, 0])
# integers and bools
listed(i64, (3,), [1, 2, 3])
listed(i64, (4,), [-1, 10, -100, 1000])
listed(i32, (2, 2), [1, -2, 3, -4])
listed(u8, (5,), [0, 1, 10, 100, 255])
listed(boolean, (3,), [1, 0, 1])
listed(boolean, (2, 2), [1, 1, 1, 1])
listed(boolean, (2, 2), [0, 1, 0, 0])
# shapes
listed(f32, (1,), [7])
listed(f32, (1, 1), [7])
listed(f32, (1, 1, 1, 1), [7.5])
listed(f32, (2, 3), [1, 2, 3, 4, 5, 6])
listed(f32, (3, 1), [0.25, 12.5, -1])
listed(f64, (2, 2), [1, 2, 3, 4.5])
listed(bf16, (2, 2), [1, 2, 3, 4.5])
counted(f32, (2, 3, 4), 0, 1)
counted(f32, (2, 1, 2, 3), -5, 0.5)
counted(i64, (2, 2, 2, 2, 2), 0, 1)
counted(f32, (1, 1, 1, 1, 1, 1, 2, 2), 0, 1)
counted(f32, (12,), 0, 1)
counted(f32, (30,), 0, 1)
counted(f32, (30,), 0, 0.125)
counted(f64, (25,), 1, 1e4)
counted(i64, (40,), -20, 1)
counted(boolean, (20,), 0, 1, 2)
counted(f32, (2, 20), 0, 0.5)
counted(f64, (3, 9), -1, 0.25)
counted(f32, (2, 2, 2, 11), 0, 0.25)
counted(f64, (3,), 1e15, 1)
# no elements
listed(f32, (0,), [])
listed(f32, (0, 3), [])
listed(f32, (2, 0, 4), [])
listed(f64, (0,), [])
listed(i64, (0,), [])
listed(i64, (3, 0), [])
listed(boolean, (0,), [])
listed(f32, (0,), [], grad=True)
# the dtype does not fit on the line
for n in range(5, 9):
    counted(f64, (n,), 0.5, 1)
for n in range(14, 18):
    counted(u8, (n,), 0, 1)
counted(i32, (20,), 0, 1, 10)
counted(i32, (1, 1, 19), 0, 1, 10)
listed(f64, (8,), [1.5] * 8, grad=True)
listed(f32, (7,), [1.5] * 7, grad=True)
# more than 1000 elements
counted(u8, (1000,), 0, 1, 7)
counted(f32, (1001,), 0, 1)
counted(f64, (1001,), 0, 0.25)
counted(i64, (10, 101), 0, 1)
counted(i64, (7, 200), 0, 1)
counted(i64, (6, 200), 0, 1)
counted(f32, (1001, 1), 0, 0.5)
counted(f32, (2, 600), 0, 1)
counted(f32, (20, 20, 20), 0, 1)
counted(i32, (8, 1, 7, 20), -500, 1)
counted(boolean, (40, 40), 0, 1, 2)
counted(f32, (3, 3, 500), 0, 1, 7)
counted(u8, (7, 1, 7, 30), 0, 1, 250)
counted(f64, (5, 1, 300), 1e-3, 1e-3)


def number(v):
    v = float(v)
    return v if math.isfinite(v) else str(v)


rows = []
for dtype, shape, values, first, step, modulo, grad in cases:
    n = math.prod(shape)
    if values is None:
        i = torch.arange(n, dtype=torch.float64)
        if modulo:
            i = i % modulo
        t = first + step * i
        given = {"first": number(first), "step": number(step), "modulo": modulo}
    else:
        assert len(values) == n
        t = torch.tensor(values, dtype=torch.float64)
        given = {"values": [number(v) for v in values]}
    t = t.to(dtype).reshape(shape)
    t.requires_grad_(grad)
    row = {"dtype": NAMES[dtype].lower(), "shape": list(shape), **given, "grad": grad, "text": str(t) + "\n"}
    rows.append(json.dumps(row))
print("[\n" + ",\n".join(rows) + "\n]")

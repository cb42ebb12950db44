#!/usr/bin/env python3
"""Compares image functions with Pillow and Hugging Face's image processors, to the bit.

    tests/outside/images_check.py build/libtenon.so [ROUNDS]

Random images and sizes (400 rounds by default): tn_image_resize in u8 and f32, bilinear and bicubic, equals
Image.resize; tn_image_ready equals ViT's and DeiT's processors that use Pillow, with the files that they write; PGM,
PPM and PNG files of every kind that Pillow writes are read with the same values, and vice versa. Tested with Pillow
13.0.0 (older versions always resize the rows first, so that some bits differ) and transformers 5.23.0. Exits with 77 if
they are missing.
"""
import ctypes
import os
import random
import sys
import tempfile

sys.dont_write_bytecode = True
try:
    import numpy as np
    from PIL import Image
    from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)
from tenon_by_name import struct

P, S, I, N = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int
F32, I32, U8 = 0, 4, 5


class Processor(ctypes.Structure):
    _fields_ = [("sizes", I * 6), ("resample", N), ("scale", ctypes.c_double), ("mean", ctypes.c_double * 4),
                ("std", ctypes.c_double * 4)]


Shape, Scope = struct("tn_shape"), struct("tn_scope")
lib = ctypes.CDLL(sys.argv[1])
for name, out, args in [("tn_from_data", P, [N, Shape, P]), ("tn_data", P, [P]), ("tn_shape_of", Shape, [P]),
                        ("tn_dtype_of", N, [P]), ("tn_error_message", S, []), ("tn_image_load", P, [S, I, N]),
                        ("tn_image_save", N, [S, P]), ("tn_image_resize", P, [P, I, I, N]),
                        ("tn_image_ready", P, [P, P]), ("tn_image_processor_load", N, [S, P]),
                        ("tn_scope_begin", Scope, []), ("tn_scope_end", None, [Scope])]:
    f = getattr(lib, name)
    f.restype, f.argtypes = out, args
KINDS = {F32: np.float32, I32: np.int32, U8: np.uint8}


def wrong(text):
    print("WRONG:", text, (lib.tn_error_message() or b"").decode())
    sys.exit(1)


def tensor(x):
    x = np.ascontiguousarray(x)
    kind = {v: k for k, v in KINDS.items()}[x.dtype.type]
    return lib.tn_from_data(kind, Shape(x.ndim, (I * 8)(*x.shape)), x.ctypes.data_as(P))


def array(t):
    if not t:
        wrong("no tensor")
    shape = lib.tn_shape_of(t)
    size, kind = shape.d[:shape.n], KINDS[lib.tn_dtype_of(t)]
    pointer = ctypes.cast(lib.tn_data(t), ctypes.POINTER(np.ctypeslib.as_ctypes_type(kind)))
    return np.ctypeslib.as_array(pointer, tuple(size)).copy()


def some_image(rng, most=70):
    height, width = rng.integers(1, most, 2)
    return rng.integers(0, 256, (height, width, 3)).astype(np.uint8)


def resized(rng):
    image, (height, width) = some_image(rng), (int(v) for v in rng.integers(1, 90, 2))
    for how in (Image.BILINEAR, Image.BICUBIC):
        mine = array(lib.tn_image_resize(tensor(image.transpose(2, 0, 1)), height, width, int(how)))
        if not np.array_equal(mine, np.asarray(Image.fromarray(image).resize((width, height), how)).transpose(2, 0, 1)):
            wrong("u8 %s to %s, %d" % (image.shape, (height, width), how))
        real = rng.normal(size=image.shape[:2]).astype(np.float32)
        mine = array(lib.tn_image_resize(tensor(real), height, width, int(how)))
        if not np.array_equal(mine, np.asarray(Image.fromarray(real).resize((width, height), how))):
            wrong("f32 %s to %s, %d" % (image.shape, (height, width), how))


def made_ready(rng, folder):
    side = lambda: dict(zip(("height", "width"), (int(v) for v in rng.integers(1, 50, 2))))
    more = dict(image_mean=rng.random(3).tolist(), image_std=(0.1 + rng.random(3)).tolist())
    makes = [lambda: ViTImageProcessorPil(size=side()), lambda: ViTImageProcessorPil(size=side(), resample=3, **more),
             lambda: DeiTImageProcessorPil(size=side(), crop_size=side(), **more),
             lambda: DeiTImageProcessorPil(size={"shortest_edge": int(rng.integers(1, 40))}, crop_size=side()),
             lambda: ViTImageProcessorPil(do_resize=False, rescale_factor=1 / 127.5),
             lambda: ViTImageProcessorPil(size=side(), do_normalize=False)]
    p, image, mine = random.choice(makes)(), some_image(rng), Processor()
    p.save_pretrained(folder)
    if lib.tn_image_processor_load(folder.encode(), ctypes.byref(mine)):
        wrong("a processor's file")
    want = np.asarray(p(Image.fromarray(image), return_tensors="np")["pixel_values"][0], dtype=np.float32)
    if not np.array_equal(array(lib.tn_image_ready(tensor(image.transpose(2, 0, 1)), ctypes.byref(mine))), want):
        wrong("%s of %s" % (p, image.shape))


def files(rng, folder):
    image = some_image(rng, 20)
    whole, path = Image.fromarray(image), os.path.join(folder, "x.")
    forms = {"RGB": whole, "L": whole.convert("L"), "1": whole.convert("1"),
             "P": whole.quantize(int(rng.integers(2, 99))), "LA": whole.convert("LA"), "RGBA": whole.convert("RGBA"),
             "I;16": Image.fromarray(rng.integers(0, 65536, image.shape[:2]).astype(np.uint16))}
    for mode, form in forms.items():
        for end in ["png"] + ["ppm"] * (mode == "RGB") + ["pgm"] * (mode in ("L", "I;16")):
            form.save(path + end)
            deep = mode == "I;16"
            mine = array(lib.tn_image_load((path + end).encode(), 0, I32 if deep else U8))
            want = np.asarray(form if deep else form.convert({"1": "L", "P": "RGB"}.get(mode, mode)))
            want = want.transpose(2, 0, 1) if want.ndim == 3 else want[None]
            if not np.array_equal(mine, want.astype(mine.dtype)):
                wrong("%s in %s" % (mode, end))
            if lib.tn_image_save((path + end).encode(), tensor(mine)):
                wrong("saving %s as %s" % (mode, end))
            again = np.asarray(Image.open(path + end)).reshape(-1)
            if not np.array_equal(again, mine.reshape(len(mine), -1).T.reshape(-1)):
                wrong("%s that was saved as %s" % (mode, end))
            if mode in ("RGB", "L"):
                other = {"RGB": "L", "L": "RGB"}[mode]
                mine = array(lib.tn_image_load((path + end).encode(), 1 if other == "L" else 3, U8))
                want = np.asarray(form.convert(other))
                if not np.array_equal(mine, want[None] if other == "L" else want.transpose(2, 0, 1)):
                    wrong("%s read as %s" % (mode, other))


def main():
    rounds, rng = int(sys.argv[2]) if len(sys.argv) > 2 else 400, np.random.default_rng(5)
    random.seed(5)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            scope = lib.tn_scope_begin()
            resized(rng), made_ready(rng, folder), files(rng, folder)
            lib.tn_scope_end(scope)
    print("%d rounds: sizes, processors and files equal those of Pillow %s" % (rounds, Image.__version__))


main()

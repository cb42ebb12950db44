#!/usr/bin/env python3
"""Writes images resized by Pillow and preprocessed by Hugging Face's image processors.

    python3 tests/golden/images.py

Tested with Pillow 13.0.0 and transformers 5.23.0. Writes images.safetensors: small images; each in other sizes,
bilinear and bicubic; the output of ViT's and DeiT's processors; a colour image converted to grey; and the processors'
files in the metadata.
"""
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
import numpy as np
from PIL import Image
from safetensors.numpy import save_file
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = ((13, 17), (1, 1), (7, 40), (31, 3), (13, 5), (26, 34), (64, 64))
PROCESSORS = {
    "vit": ViTImageProcessorPil(size={"height": 12, "width": 9}),
    "deit": DeiTImageProcessorPil(size={"height": 16, "width": 16}, crop_size={"height": 11, "width": 13}),
    "shortest": DeiTImageProcessorPil(size={"shortest_edge": 10}, crop_size={"height": 12, "width": 9},
                                      image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225]),
    "plain": ViTImageProcessorPil(do_resize=False, do_normalize=False),
}


def main():
    rng = np.random.default_rng(3)
    answers, notes = {}, {}
    smooth = np.add.outer(np.add.outer(np.arange(13) * 9, np.arange(17) * 5), np.array([0, 40, 20])) % 256
    images = {"noise": rng.integers(0, 256, (13, 17, 3)), "smooth": smooth,
              "edges": rng.integers(0, 2, (13, 17, 3)) * 255}
    for name, image in images.items():
        image = image.astype(np.uint8)
        whole = Image.fromarray(image)
        answers[name] = image.transpose(2, 0, 1)
        answers[name + ".grey"] = np.asarray(whole.convert("L"))[None]
        for h, w in SIZES:
            for how, which in (("linear", Image.BILINEAR), ("cubic", Image.BICUBIC)):
                answers["%s.%s.%dx%d" % (name, how, h, w)] = np.asarray(whole.resize((w, h), which)).transpose(2, 0, 1)
                real = Image.fromarray(image[:, :, 0].astype(np.float32) / 255 - 0.25)
                answers["%s.%s.real.%dx%d" % (name, how, h, w)] = np.asarray(real.resize((w, h), which))
        for kind, p in PROCESSORS.items():
            answers[name + "." + kind] = np.asarray(p(whole, return_tensors="np")["pixel_values"][0], dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for kind, p in PROCESSORS.items():
            p.save_pretrained(folder)
            notes[kind] = json.dumps(json.load(open(os.path.join(folder, "preprocessor_config.json"))))
    save_file({k: np.ascontiguousarray(v) for k, v in answers.items()}, os.path.join(HERE, "images.safetensors"),
              {"format": "np", "made by": "tests/golden/images.py", **notes})


main()

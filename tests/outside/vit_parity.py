#!/usr/bin/env python3
"""Compares ViT and DeiT with Hugging Face transformers, at odd sizes.

    tests/outside/vit_parity.py BUILD

BUILD is a build folder of this project. Random models (3 layers, 6 heads, width 96, images of 35 pixels in patches of
5, batches of 3, also images of another size than the model's): hidden states and logits within 2e-5, gradients within
1e-5 of their largest element; a single image has the same bits; transformers loads the models that Tenon writes, with
the same outputs and labels. Tested with torch 2.15.0 and transformers 5.23.0. Exits with 77 if they are missing.
"""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
    from transformers import (DeiTConfig, DeiTForImageClassification, DeiTForImageClassificationWithTeacher, DeiTModel,
                              ViTConfig, ViTForImageClassification, ViTModel)
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = dict(hidden_size=96, intermediate_size=200, num_hidden_layers=3, num_attention_heads=6, image_size=35,
             patch_size=5, num_channels=3, initializer_range=0.1)
LABELS = {i: "class %d" % i for i in range(13)}
LABELLED = dict(id2label=LABELS, label2id={v: k for k, v in LABELS.items()})

MODELS = { # and the size of its images
    "ViT, classifier": (lambda: ViTForImageClassification(ViTConfig(**SIZES, **LABELLED)), 35, 35),
    "ViT, classifier, wider images": (lambda: ViTForImageClassification(ViTConfig(**SIZES, **LABELLED)), 35, 58),
    "ViT, classifier, small images": (lambda: ViTForImageClassification(ViTConfig(**SIZES, **LABELLED)), 21, 15),
    "ViT, two classes": (lambda: ViTForImageClassification(ViTConfig(**SIZES)), 35, 35),
    "ViT, pooler": (lambda: ViTModel(ViTConfig(**SIZES, pooler_output_size=11)), 35, 35),
    "ViT, pooler, other activation": (lambda: ViTModel(ViTConfig(**SIZES, hidden_act="gelu_new")), 43, 71),
    "ViT, vectors": (lambda: ViTModel(ViTConfig(**SIZES), add_pooling_layer=False), 35, 35),
    "DeiT, vectors": (lambda: DeiTModel(DeiTConfig(**SIZES), add_pooling_layer=False), 35, 35),
    "DeiT, classifier": (lambda: DeiTForImageClassification(DeiTConfig(**SIZES, **LABELLED)), 35, 35),
    "DeiT, classifier, other images": (lambda: DeiTForImageClassification(DeiTConfig(**SIZES, **LABELLED)), 56, 20),
    "DeiT, teacher": (lambda: DeiTForImageClassificationWithTeacher(DeiTConfig(**SIZES, **LABELLED)), 35, 35),
    "DeiT, teacher, other images": (lambda: DeiTForImageClassificationWithTeacher(DeiTConfig(**SIZES, **LABELLED)), 36,
                                    47),
}


def compiled(build, folder):
    program = os.path.join(folder, "vit_numbers")
    subprocess.check_call(["cc", "-std=c11", "-O1", "-I", os.path.join(build, "include"), "-o", program,
                           os.path.join(HERE, "vit_numbers.c"), os.path.join(build, "libtenon.a"), "-lutf8proc", "-lm",
                           "-pthread"])
    return program


def answers(m, x):
    y = m(x, interpolate_pos_encoding=True)
    base = getattr(m, m.base_model_prefix, m)
    vectors = base(x, interpolate_pos_encoding=True).last_hidden_state if base is not m else y.last_hidden_state
    if hasattr(y, "logits"):
        return vectors, y.logits
    return vectors, vectors if y.pooler_output is None else y.pooler_output


def check(program, name, make, height, width, folder):
    torch.manual_seed(11)
    m = make().eval()
    with torch.no_grad():  # also change biases, norms and tokens from their initial values
        for p in m.parameters():
            if p.dim() != 2:
                p.add_(torch.randn(p.shape) * 0.1)
    x = torch.randn(3, 3, height, width)
    model, out = os.path.join(folder, "model"), os.path.join(folder, "out")
    os.makedirs(out)
    m.save_pretrained(model)
    save_file({"x": x}, os.path.join(folder, "x.safetensors"))
    subprocess.check_call([program, model, os.path.join(folder, "x.safetensors"), out])
    numbers = load_file(os.path.join(out, "numbers.safetensors"))
    vectors, y = answers(m, x)
    (y.reshape(-1) * torch.arange(1, y.numel() + 1)).sum().backward()
    far = max((numbers["vectors"] - vectors).abs().max().item(), (numbers["y"] - y).abs().max().item())

    def reopened(what):
        return type(m).from_pretrained(os.path.join(out, what), output_loading_info=True, **more)

    more = dict(add_pooling_layer=False) if type(m).__name__.endswith("Model") and m.pooler is None else {}
    g, _ = reopened("grads")
    worst, compared = 0, 0
    of = dict(m.named_parameters())
    for (key, p), (_, q) in zip(m.named_parameters(), g.named_parameters()):
        if p.grad is not None:  # the gradient of a key's bias is only rounding error: relative to its weight's
            size = of[key.replace("k_proj.bias", "k_proj.weight")].grad.abs().max()
            worst = max(worst, ((q - p.grad).abs().max() / size).item())
            compared += 1
    written, report = reopened("saved")
    odd = [k for what in ("missing_keys", "unexpected_keys", "mismatched_keys") for k in report[what]]
    equal = all(torch.equal(p, q) for p, q in zip(m.state_dict().values(), written.state_dict().values()))
    labels = written.config.num_labels == m.config.num_labels and (
        m.config.num_labels == 2 or written.config.id2label == m.config.id2label)
    fine = far <= 2e-5 and worst <= 1e-5 and not odd and equal and (labels or more or "pooler" in name)
    print("%-32s numbers %.1e  %d gradients %.1e  written and read: %s%s" %
          (name, far, compared, worst, "the same" if equal else "OTHER", "" if fine else "  WRONG %s" % odd))
    return fine


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(2)
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(sys.argv[1], folder)
        for i, (name, (make, height, width)) in enumerate(MODELS.items()):
            fine = check(program, name, make, height, width, os.path.join(folder, str(i))) and fine
    return not fine


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Exchanges ViT and DeiT models between Hugging Face transformers and Tenon, in both directions.

    python3 tests/golden/vit.py

Tested with torch 2.15.0 and transformers 5.23.0. Writes vit/<name>, the directories of small models with random
weights, and vit/answers.safetensors: their outputs for images of the model's size and of another size, and the gradient
of the loss with respect to the position embeddings. Also opens vit/tenon, which extras/tests/unit/test_vit.c writes if
TENON_GOLDEN=write is set, and compares the outputs with those that Tenon stored there.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (DeiTConfig, DeiTForImageClassification, DeiTForImageClassificationWithTeacher, ViTConfig,
                          ViTForImageClassification, ViTModel)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "vit")
SIZES = dict(hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=3, image_size=9,
             patch_size=3, num_channels=2, initializer_range=0.3)
LABELS = {0: "a cat", 1: "a \"dog\"", 2: "Katze", 3: "Hündin", 4: "a cat"}
LABELLED = dict(id2label=LABELS, label2id={v: k for k, v in LABELS.items()})
MODELS = {
    "classifier": ViTForImageClassification(ViTConfig(**SIZES, **LABELLED)),
    "model": ViTModel(ViTConfig(**SIZES, pooler_output_size=7, hidden_act="relu")),
    "deit": DeiTForImageClassification(DeiTConfig(**SIZES, **LABELLED)),
    "teacher": DeiTForImageClassificationWithTeacher(DeiTConfig(**SIZES, num_labels=3)),
}
torch.manual_seed(7)
X, WIDE = torch.randn(2, 2, 9, 9), torch.randn(2, 2, 13, 19)


def numbers(m, name, x, **how):
    y = m(x, **how)
    return y.pooler_output if name == "model" else y.logits


def main():
    os.makedirs(HERE, exist_ok=True)
    answers = {"x": X, "wide": WIDE}
    for name, m in MODELS.items():
        m.eval()
        with torch.no_grad():
            for p in m.parameters():
                p.copy_(torch.randn(p.shape) * 0.3)
        path = os.path.join(HERE, name)
        shutil.rmtree(path, ignore_errors=True)
        m.save_pretrained(path)
        y = numbers(m, name, X)
        wide = numbers(m, name, WIDE, interpolate_pos_encoding=True)
        (wide * torch.arange(1, wide.numel() + 1).reshape(wide.shape)).sum().backward()
        base = getattr(m, m.base_model_prefix, m)
        answers[name + ".y"], answers[name + ".wide"] = y.detach(), wide.detach()
        answers[name + ".vectors"] = base(X).last_hidden_state.detach()
        answers[name + ".grad"] = base.embeddings.position_embeddings.grad
        if name == "teacher":
            both = m(X)
            answers["teacher.cls"] = both.cls_logits.detach()
            answers["teacher.taught"] = both.distillation_logits.detach()
    save_file({k: v.contiguous() for k, v in answers.items()}, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/vit.py"})

    for name in sorted(os.listdir(os.path.join(HERE, "tenon"))) if os.path.isdir(os.path.join(HERE, "tenon")) else []:
        path = os.path.join(HERE, "tenon", name)
        kind = transformers.AutoConfig.from_pretrained(path).architectures[0]
        m, report = getattr(transformers, kind).from_pretrained(path, output_loading_info=True)
        assert not any(report[k] for k in ("unexpected_keys", "mismatched_keys", "missing_keys")), report
        noted = load_file(os.path.join(path, "answers.safetensors"))
        with torch.no_grad():
            y = numbers(m.eval(), "model" if kind.endswith("Model") else name, noted["x"])
            worst = (y - noted["y"]).abs().max()
        print("vit/tenon/%s: a %s, largest difference %.1e, %s" % (name, kind, worst, m.config.id2label))
        assert worst <= 2e-5


main()

#!/usr/bin/env python3
"""Exchanges GPT-2 models between Hugging Face transformers and Tenon, in both directions.

    python3 tests/golden/gpt.py

Needs the packages of tests/golden/bert.py. Writes gpt/torch, the directory of a small model with random weights, and
gpt/answers.safetensors: its logits and generated tokens. Also opens gpt/tenon, which tests/unit/models/test_gpt.c
writes if TENON_GOLDEN=write is set, and compares the logits with those that Tenon stored there.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt")
CONFIG = dict(vocab_size=23, n_embd=16, n_layer=2, n_head=2, n_positions=24, bos_token_id=0, eos_token_id=0)
IDS = torch.tensor([[7, 8, 9, 3, 20, 21], [2, 22, 11, 1, 12, 3]])


def generated(m, **options):
    torch.manual_seed(0)
    return m.generate(IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=12, do_sample=False, pad_token_id=0,
                      return_dict_in_generate=True, output_scores=True, **options)


def main():
    os.makedirs(HERE, exist_ok=True)
    torch.manual_seed(5)
    m = GPT2LMHeadModel(GPT2Config(**CONFIG)).eval()
    with torch.no_grad():
        for p in m.parameters():
            p.add_(torch.randn(p.shape) * (0.3 if p.dim() == 1 else 0.25))
        m.transformer.wte.weight[0] *= 0.6  # so that not all texts end immediately
    path = os.path.join(HERE, "torch")
    shutil.rmtree(path, ignore_errors=True)
    m.save_pretrained(path, safe_serialization=True)
    for extra in os.listdir(path):
        if extra not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(path, extra))
    answers = {"ids": IDS}
    with torch.no_grad():
        answers["scores"] = m(IDS).logits
        answers["greedy"] = generated(m).sequences[:, IDS.shape[1]:]
        y = generated(m, num_beams=4, num_return_sequences=3, length_penalty=0.0, early_stopping=True)
        answers["beams"], answers["beams.scores"] = y.sequences[:, IDS.shape[1]:], y.sequences_scores
        answers["no_repeat"] = generated(m, num_beams=2, length_penalty=0.0, early_stopping=True, min_new_tokens=8,
                                         no_repeat_ngram_size=2).sequences[:, IDS.shape[1]:]
    save_file({k: v.contiguous() for k, v in answers.items()}, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/gpt.py"})
    print({k: v.tolist() for k, v in answers.items() if k != "scores"})

    ours = os.path.join(HERE, "tenon")
    if not os.path.isdir(ours):
        return print("gpt/tenon is missing; run test_gpt with TENON_GOLDEN=write")
    m, report = GPT2LMHeadModel.from_pretrained(ours, output_loading_info=True)
    assert not report["unexpected_keys"] and not report["mismatched_keys"], report
    assert all("lm_head" in k or ".attn." in k for k in report["missing_keys"]), report
    with torch.no_grad():
        worst = (m.eval()(IDS).logits - load_file(os.path.join(ours, "answers.safetensors"))["scores"]).abs().max()
    print("gpt/tenon: largest difference %.1e" % worst)
    assert worst <= 2e-5


main()

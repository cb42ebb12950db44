#!/usr/bin/env python3
"""Writes models whose heads were pruned by Hugging Face transformers, and opens models that Tenon has pruned.

    python3 tests/golden/pruned_heads.py

Needs transformers 4.x (5 has no prune_heads); tested with 4.46.3 and torch 2.15. Writes look/bert and look/gpt, the
small models of bert/pretraining and gpt/torch without some heads, and their outputs to look/answers.safetensors. Also
opens look/tenon-bert and look/tenon-gpt, which tests/unit/models/test_look_models.c writes if TENON_GOLDEN=write is
set, and compares the outputs with those that Tenon stored there.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
from safetensors.torch import load_file, save_file
from transformers import BertForPreTraining, GPT2LMHeadModel

HERE = os.path.dirname(os.path.abspath(__file__))
IDS = torch.tensor([[2, 7, 8, 9, 3, 20, 21, 3], [2, 20, 11, 1, 12, 3, 5, 6]])
answers = {"ids": IDS}


def answer(m):
    with torch.no_grad():
        return m.eval()(input_ids=IDS)[0]


os.makedirs(os.path.join(HERE, "look"), exist_ok=True)
for name, kind, path, heads in (("bert", BertForPreTraining, "bert/pretraining", {0: [1], 1: [0]}),
                                ("gpt", GPT2LMHeadModel, "gpt/torch", {1: [0]})):
    m = kind.from_pretrained(os.path.join(HERE, path), attn_implementation="eager")
    m.prune_heads(heads)
    answers[name] = answer(m).contiguous()
    to = os.path.join(HERE, "look", name)
    shutil.rmtree(to, ignore_errors=True)
    m.config._name_or_path = ""  # do not store a local path
    m.save_pretrained(to, safe_serialization=True)
    for extra in os.listdir(to):
        if extra not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(to, extra))
    ours = os.path.join(HERE, "look", "tenon-" + name)
    if os.path.isdir(ours):
        m, report = kind.from_pretrained(ours, output_loading_info=True, attn_implementation="eager")
        assert not any(report.values()), report
        worst = (answer(m) - load_file(os.path.join(ours, "answers.safetensors"))["scores"]).abs().max()
        print("tenon-%s: pruned %s, largest difference %.1e" % (name, m.config.pruned_heads, worst))
        assert worst <= 2e-5
    else:
        print("look/tenon-%s is missing; run test_look_models with TENON_GOLDEN=write" % name)
save_file(answers, os.path.join(HERE, "look", "answers.safetensors"),
          {"format": "pt", "made by": "tests/golden/pruned_heads.py"})

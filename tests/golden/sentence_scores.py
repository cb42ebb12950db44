#!/usr/bin/env python3
"""Prints the scores of sentences under small models of tests/golden, computed with transformers.

    python3 tests/golden/sentence_scores.py

Needs PyPI's torch 2.15.0 and transformers 5.24.0. tests/unit/models/test_sentence_scores.c holds the output.
The words w5 … w22 are the tokens 5 … 22; [CLS] 2, [SEP] 3, [MASK] 4.
"""
import os

import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

HERE = os.path.dirname(os.path.abspath(__file__))
TEXTS = [[5], [7, 8, 9, 10, 20, 21, 22], [19, 18, 5, 11], [18, 19, 5, 11]]


def masked(model, words):
    ids = torch.tensor([2, *words, 3])
    total = 0.0
    for i in range(1, len(words) + 1):
        x = ids.clone()
        x[i] = 4
        total += model(input_ids=x[None]).logits[0, i].double().log_softmax(-1)[ids[i]].item()
    return total


def causal(model, words):
    ids = torch.tensor([2, *words])
    logits = model(input_ids=ids[None]).logits[0].double().log_softmax(-1)
    return sum(logits[i - 1, ids[i]].item() for i in range(1, len(ids)))


with torch.no_grad():
    for name, kind, score in [("encoders/modernbert", AutoModelForMaskedLM, masked),
                              ("encoders/roberta", AutoModelForMaskedLM, masked),
                              ("gpt/torch", AutoModelForCausalLM, causal)]:
        model = kind.from_pretrained(os.path.join(HERE, name)).eval()
        print(name, ", ".join("%.6f" % score(model, t) for t in TEXTS))

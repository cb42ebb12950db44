#!/usr/bin/env python3
"""Writes subword.json: a small corpus, the merges that subword-nmt learns from it, and lines split by these.

    python3 -m venv venv && venv/bin/pip install subword-nmt==0.3.8 && venv/bin/python tests/golden/subword.py
"""
import io
import json
import os
import random

from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

random.seed(3)
STEMS = "low new wid fast slow über größ naïv краси 東 京都 aaaa abab xyz \u00e9".split()
ENDS = ["", "er", "est", "ly", "heit", "ere", "ого", "aa", "ab", ".", "-", "s"]
words = [random.choice(STEMS) + random.choice(ENDS) + random.choice(ENDS) for _ in range(150)]
weights = [1 / (i + 1) for i in range(len(words))]
lines = [" ".join(random.choices(words, weights, k=random.randint(1, 12))) for _ in range(120)]
corpus = "\n".join(lines) + "\n"
unseen = ["  lowerest  Newest ", "aaaaaaaaab ababababa", "", "x", "  ", "slowestly东京都 \u00fcber\u00fcber",
          "naïvest-größerly. ", "wid@@ est", "</w> a</w>"]


def learn(symbols, min_frequency=2, total_symbols=False):
    out = io.StringIO()
    learn_bpe(io.StringIO(corpus), out, symbols, min_frequency, total_symbols=total_symbols)
    return out.getvalue()


def apply(codes, text):
    bpe = BPE(io.StringIO(codes))
    return [bpe.process_line(line) for line in text]


codes = learn(120)
result = {
    "made_by": "subword-nmt 0.3.8",
    "corpus": lines,
    "unseen": unseen,
    "codes": codes,
    "few": learn(1000, 20),
    "total": learn(100, 2, True),
    "applied": apply(codes, lines),
    "applied_unseen": apply(codes, unseen),
}
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "subword.json")
with open(path, "w", encoding="utf-8") as f:
    json.dump(result, f, ensure_ascii=False, indent=0)
    f.write("\n")

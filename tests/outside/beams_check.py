#!/usr/bin/env python3
"""Compares beam search and greedy decoding with Hugging Face transformers, on random tables of logits.

    tests/outside/beams_check.py LIBRARY [--count 500] [--seed 1] [--case K]

LIBRARY is a libtenon.so. tests/golden/beams.py draws the tables and options: 1 to 8 beams, n-best, length penalties,
early stopping on and off, minimum length, n-grams that must not repeat, repetition penalty. Token ids must be equal,
scores within 2e-5, relative; texts that transformers fills in because too few tokens are allowed must be missing.
Tested with torch 2.15.0 and transformers 5.23.0; exits with 77 if they are missing, with 1 if there are findings.
"""
import argparse
import ctypes as c
import os
import random
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "golden")]
try:
    import torch
    import transformers
    import beams
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)
import tenon_by_name as T

transformers.logging.set_verbosity_error()
Generate, Generated = T.struct("tn_generate_args"), T.struct("tn_generated")
SCORES, REORDER = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_void_p), c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p)


class Kind(c.Structure):
    _fields_ = [("size", c.c_size_t), ("scores", SCORES), ("reorder", REORDER), ("free", c.c_void_p)]


class Decoding(c.Structure):
    _fields_ = [("kind", c.POINTER(Kind)), ("rows", c.c_int64), ("length", c.c_int64)]


def to_tenon(tn, t, dtype):
    data = c.create_string_buffer(t.contiguous().numpy().tobytes())
    return tn.from_data(dtype, tuple(t.shape), c.addressof(data))


def to_torch(tn, handle, dtype):
    return torch.frombuffer(bytearray(tn.bytes_of(handle)[1] or b"\0" * 8), dtype=dtype)[: tn.numel(handle)].reshape(
        tn.shape(handle))


def search(tn, logits, shift, prompt, o):
    table, shift, read = to_tenon(tn, logits, T.F32), to_tenon(tn, shift, T.F32), [0]

    def scores(_, tokens):
        rows, n = tn.shape(tokens)
        read[0] += n
        last = tn.reshape(tn.narrow(tokens, 1, n - 1, 1), (rows,))
        return tn.add(tn.index_select(table, 0, last), tn.select(shift, 0, read[0] - 1))

    kind = Kind(c.sizeof(Kind), SCORES(scores), REORDER(lambda *_: 0), None)
    d = Decoding(c.pointer(kind), len(prompt) * o["beams"], 64)
    a = Generate(from_=c.addressof(d), prompt=to_tenon(tn, prompt, T.I64), end=0, temperature=1.0, top_p=1.0, **o)
    g = tn.generate_run(a)
    return to_torch(tn, g.tokens, torch.int64), to_torch(tn, g.scores, torch.float64)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("library")
    p.add_argument("--count", type=int, default=500)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--case", type=int)
    a = p.parse_args()
    T.Tenon.RESULTS["generate_run"] = Generated
    tn, findings, texts = T.Tenon(a.library), 0, 0
    for k in range(a.count) if a.case is None else [a.case]:
        logits, shift, prompt, o = beams.random_case(random.Random("%d %d" % (a.seed, k)), 40)
        want, wanted = beams.search(logits, shift, prompt, o)
        scope = tn.scope_begin()
        got, scores = search(tn, logits, shift, prompt, o)
        tn.scope_end(scope)
        there = torch.isfinite(wanted)
        texts += int(there.sum())
        same = got.shape == want.shape and torch.equal(got, want) and torch.equal(there, torch.isfinite(scores))
        if not same or not torch.allclose(scores[there], wanted[there], 2e-5, 2e-5):
            findings += 1
            print("case %d: %s\n  transformers %s %s\n  Tenon        %s %s" % (
                k, o, want.tolist(), wanted.tolist(), got.tolist(), scores.tolist()))
    print("%d tables, %d texts, %d findings" % (k + 1 if a.case is None else 1, texts, findings))
    sys.exit(findings > 0)


main()

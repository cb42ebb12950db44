#!/usr/bin/env python3
"""Translates the lines of a text with `translate run` and CTranslate2, alternately, by beam search of width 5, in f32
and in int8, and prints the seconds of each, the ratio, and the fraction of lines with the same translation.

    build/bin/translate train --norm-first --size small --src train.en --tgt train.de --out ende --minutes 10
    bench/peers/python ctranslate2 bench/translate.py --model ende --text test.en

Both have the same weights: those of a model of `translate train --norm-first` with the tokenizer of its folder, so that
lengths are realistic. Both end a line's search when 5 translations have ended. CTranslate2 gets batches of lines sorted
by length, with the larger speed of two sizes. The times contain tokenization; of Tenon, the time of one line is
subtracted, which is that of loading. --shortlist also measures Tenon with short lists of tokens (`translate lexicon`).
Needs ctranslate2, tokenizers and safetensors, and build/bin/translate."""
import argparse
import json
import os
import subprocess
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TRANSLATE = os.path.join(os.path.dirname(HERE), "build", "bin", "translate")
BEAMS = 5


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True, help="folder of a model of `translate train --norm-first`")
    p.add_argument("--text", required=True, help="a sentence per line")
    p.add_argument("--lines", type=int, default=1000)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--turns", type=int, default=3, help="runs of each; the best counts")
    p.add_argument("--shortlist", action="store_true", help="also `translate run --shortlist`")
    p.add_argument("--translate", default=TRANSLATE, help="the program")
    return p.parse_args()


def converted(model, folder, words):
    """Saves the model in CTranslate2's format."""
    import ctranslate2
    from safetensors.numpy import load_file
    w = load_file(os.path.join(model, "model.safetensors"))
    with open(os.path.join(model, "config.json"), encoding="utf-8") as f:
        c = json.load(f)
    assert c.get("norm_first"), "the model must be trained with --norm-first"
    d, layers = w["out.weight"].shape[1], sum(k.endswith("norm3.weight") for k in w)
    spec = ctranslate2.specs.TransformerSpec.from_config(layers, c["heads"], pre_norm=True)
    at = np.arange(1024)[:, None] / 10000.0 ** (np.arange(0, d, 2)[None, :] / d)
    positions = np.stack([np.sin(at), np.cos(at)], 2).reshape(1024, d).astype(np.float32)

    def linear(to, name, first=0, n=None):
        joined = name.endswith("in_proj")
        weight, bias = (name + "_weight", name + "_bias") if joined else (name + ".weight", name + ".bias")
        rows = slice(first, None if n is None else first + n)
        to.weight, to.bias = w[weight][rows], w[bias][rows]

    def norm(to, name):
        to.gamma, to.beta = w[name + ".weight"], w[name + ".bias"]

    for name, side in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        for e in side.embeddings if isinstance(side.embeddings, list) else [side.embeddings]:
            e.weight = w["out.weight"]
        side.position_encodings.encodings = positions
        norm(side.layer_norm, "transformer.%s.norm" % name)
        for i, layer in enumerate(side.layer):
            p = "transformer.%s.layers.%d." % (name, i)
            linear(layer.self_attention.linear[0], p + "self_attn.in_proj")
            linear(layer.self_attention.linear[1], p + "self_attn.out_proj")
            norm(layer.self_attention.layer_norm, p + "norm1")
            if name == "decoder":
                linear(layer.attention.linear[0], p + "multihead_attn.in_proj", 0, d)
                linear(layer.attention.linear[1], p + "multihead_attn.in_proj", d, 2 * d)
                linear(layer.attention.linear[2], p + "multihead_attn.out_proj")
                norm(layer.attention.layer_norm, p + "norm2")
            norm(layer.ffn.layer_norm, p + ("norm3" if name == "decoder" else "norm2"))
            linear(layer.ffn.linear_0, p + "linear1"), linear(layer.ffn.linear_1, p + "linear2")
    spec.decoder.projection.weight = w["out.weight"]
    if "out.bias" in w:
        spec.decoder.projection.bias = w["out.bias"]
    spec.register_source_vocabulary(words), spec.register_target_vocabulary(words)
    spec.validate(), spec.optimize(), spec.save(folder)


def ctranslate2_of(folder, tokenizer, threads, kind):
    import ctranslate2
    m = ctranslate2.Translator(folder, device="cpu", compute_type=kind, inter_threads=1, intra_threads=threads)

    def run(lines, **size):
        texts = [e.tokens + ["</s>"] for e in tokenizer.encode_batch(lines, add_special_tokens=False)]
        done = m.translate_batch(texts, beam_size=BEAMS, **size)
        ids = [[tokenizer.token_to_id(t) for t in text.hypotheses[0]] for text in done]
        return tokenizer.decode_batch(ids)

    def timed(lines):
        best = None
        for size in (dict(max_batch_size=32), dict(max_batch_size=1024, batch_type="tokens")):
            start = time.perf_counter()
            said = run(lines, **size)
            seconds = time.perf_counter() - start
            best = min(best or seconds, seconds)
        return said, best

    return timed


def tenon_of(program, model, threads, dtype, more):
    def run(lines):
        start = time.perf_counter()
        command = [program, "run", "--model", model, "--dtype", dtype, "--threads", str(threads), "--quiet", "--beam",
                   str(BEAMS), "--early-stopping"] + more
        done = subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True, stdout=subprocess.PIPE)
        return done.stdout.split("\n")[:len(lines)], time.perf_counter() - start

    def timed(lines):
        load = min(run(lines[:1])[1] for _ in range(3))
        said, seconds = run(lines)
        return said, seconds - load

    return timed


def main():
    o = options()
    import ctranslate2
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(os.path.join(o.model, "tokenizer.json"))
    words = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    with open(o.text, encoding="utf-8") as f:
        lines = [line.strip() for line in f if line.strip()][:o.lines]
    best, said = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        converted(o.model, folder, words)
        runs = {}
        for ours, theirs in (("f32", "float32"), ("int8", "int8")):
            runs["Tenon " + ours] = tenon_of(o.translate, o.model, o.threads, ours, [])
            if o.shortlist:
                runs["Tenon %s short list" % ours] = tenon_of(o.translate, o.model, o.threads, ours, ["--shortlist"])
            runs["CTranslate2 " + ours] = ctranslate2_of(folder, tokenizer, o.threads, theirs)
        for _ in range(o.turns):
            for name, run in runs.items():
                said[name], seconds = run(lines)
                best[name] = min(best.get(name, seconds), seconds)
    print("%d lines, beam %d, %d threads, CTranslate2 %s" % (len(lines), BEAMS, o.threads, ctranslate2.__version__))
    for name, seconds in best.items():
        peer = "CTranslate2 " + name.split()[1]
        same = sum(a.strip() == b.strip() for a, b in zip(said[name], said[peer])) / len(lines)
        print("%-24s %7.3f s   speedup %5.2f   the same translation %.3f" % (name, seconds, best[peer] / seconds, same))


if __name__ == "__main__":
    main()

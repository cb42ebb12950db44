#!/usr/bin/env python3
"""Compares bench/run llama with llama.cpp, alternately, on the same GGUF files.

    PYTHON bench/llamacpp.py FOLDER [--threads 2] [--rounds 3] [--only F32,F16,Q8_0] [--page docs/performance.md]

FOLDER contains l110-F32.gguf, l110-F16.gguf and l110-Q8_0.gguf: a LLaMA of 12 layers of width 768 with 12 heads and a
vocabulary of 32,000; missing files are created with random weights. Prints a table, or writes it to the page as its
section "Compared with llama.cpp". Each round runs a process of llama.cpp and one of Tenon, which read a prompt of 512
tokens and generate 64 after two, several times; the best of all counts. Needs llama-cpp-python (tested with 0.3.36) and
gguf; without them it exits with 77."""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, "build", "bin", "bench")
L, D, H, V, FF, PROMPT, WRITTEN = 12, 768, 12, 32000, 2048, 512, 64
KINDS = {"F32": ("f32", 0), "F16": ("f16", 1), "Q8_0": ("q8_0", 7)}
HEADING = "## Compared with llama.cpp\n"


def make(path, kind):
    import gguf
    import numpy as np
    w, r = gguf.GGUFWriter(path, "llama"), np.random.default_rng(0)
    w.add_context_length(2 * PROMPT), w.add_embedding_length(D), w.add_block_count(L), w.add_feed_forward_length(FF)
    w.add_head_count(H), w.add_head_count_kv(H), w.add_layer_norm_rms_eps(1e-5), w.add_rope_dimension_count(D // H)
    w.add_vocab_size(V), w.add_file_type(KINDS[kind][1]), w.add_tokenizer_model("llama")
    w.add_token_list([b"<unk>", b"<s>", b"</s>"] + [b"<0x%02X>" % i for i in range(256)] +
                     [b"t%d" % i for i in range(V - 259)])
    w.add_token_scores([0.0] * V), w.add_token_types([2, 3, 3] + [6] * 256 + [1] * (V - 259))
    w.add_bos_token_id(1), w.add_eos_token_id(2)

    def put(name, *shape):
        a = (r.standard_normal(shape) * 0.02).astype(np.float32) if len(shape) > 1 else np.ones(shape, np.float32)
        if kind == "Q8_0" and len(shape) > 1:
            q8 = gguf.GGMLQuantizationType.Q8_0
            w.add_tensor(name + ".weight", gguf.quants.quantize(a, q8), raw_dtype=q8)
        else:
            w.add_tensor(name + ".weight", a.astype(np.float16) if kind == "F16" and len(shape) > 1 else a)

    put("token_embd", V, D), put("output_norm", D), put("output", V, D)
    for i in range(L):
        for name, shape in (("attn_norm", (D,)), ("ffn_norm", (D,)), ("attn_q", (D, D)), ("attn_k", (D, D)),
                            ("attn_v", (D, D)), ("attn_output", (D, D)), ("ffn_gate", (FF, D)), ("ffn_up", (FF, D)),
                            ("ffn_down", (D, FF))):
            put("blk.%d.%s" % (i, name), *shape)
    w.write_header_to_file(), w.write_kv_data_to_file(), w.write_tensors_to_file(), w.close()


def theirs(path, threads, plain):
    """Measures llama.cpp in this process and prints one line of JSON. plain: without repacked weights."""
    import llama_cpp
    usual = llama_cpp.llama_cpp.llama_model_default_params

    def as_in_file():
        params = usual()
        params.use_extra_bufts = False
        return params
    if plain:
        llama_cpp.llama_cpp.llama_model_default_params = as_in_file
    m = llama_cpp.Llama(path, n_ctx=2 * PROMPT, n_threads=threads, n_threads_batch=threads, n_batch=PROMPT,
                        verbose=False)
    token = prompt = 1e9
    for _ in range(3):
        m.reset()
        start = time.perf_counter()
        m.eval([7 * i % 30000 + 300 for i in range(PROMPT)])
        prompt = min(prompt, time.perf_counter() - start)
    for _ in range(5):
        m.reset()
        m.eval([1, 400])
        start = time.perf_counter()
        for i in range(WRITTEN):
            m.eval([500 + i])
        token = min(token, (time.perf_counter() - start) / WRITTEN)
    print(json.dumps({"tok_s": 1 / token, "prompt_tok_s": PROMPT / prompt, "version": llama_cpp.__version__}))


def last_json(command):
    r = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode == -signal.SIGILL and "--theirs" in command and "--plain" not in command:
        return dict(last_json(command + ["--plain"]), plain=True)  # 0.3.36 does so where a CPU has AMX, with Q8_0
    if r.returncode:
        sys.exit("%s\n%s" % (" ".join(command), r.stderr[-500:]))
    print(r.stdout.splitlines()[-1], file=sys.stderr)
    return json.loads(r.stdout.splitlines()[-1])


def measured(o, kind):
    path = os.path.join(o.folder, "l110-%s.gguf" % kind)
    if not os.path.exists(path):
        make(path, kind)
    best = {"tenon": {}, "llama.cpp": {}}
    for _ in range(o.rounds):
        for side, command in (("llama.cpp", [sys.executable, __file__, "--theirs", path]),
                             ("tenon", [BENCH, "llama", "--dtype", KINDS[kind][0], "--gguf", path, "--seconds", "2"])):
            for name, value in last_json(command + ["--threads", str(o.threads)]).items():
                better = isinstance(value, float) and name in best[side]
                best[side][name] = max(best[side][name], value) if better else value
    return best


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", nargs="?", default=".")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--only", default=",".join(KINDS))
    p.add_argument("--page")
    p.add_argument("--theirs", help=argparse.SUPPRESS)
    p.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    o = p.parse_args()
    try:
        import llama_cpp
    except ImportError:
        print("skipped: llama-cpp-python is not installed")
        sys.exit(77)
    if o.theirs:
        return theirs(o.theirs, o.threads, o.plain)
    rows, all_kinds = [], {kind: measured(o, kind) for kind in o.only.split(",")}
    plain = [kind for kind, best in all_kinds.items() if best["llama.cpp"].get("plain")]
    for kind, best in all_kinds.items():
        us, them = best["tenon"], best["llama.cpp"]
        rows.append("| %s | %.0f | %.0f | %.2f | %.0f | %.0f | %.2f | %.1f of %.1f: %.2f |" % (
            kind, us["tok_s"], them["tok_s"], us["tok_s"] / them["tok_s"], us["prompt_tok_s"], them["prompt_tok_s"],
            us["prompt_tok_s"] / them["prompt_tok_s"], us["gb_s"], us["read_gb_s"], us["gb_s"] / us["read_gb_s"]))
    text = "\n".join([
        HEADING,
        "Tokens per second of a LLaMA of 110 million weights (12 layers of 768, 12 heads, vocabulary 32,000) on the\n"
        "same GGUF file, with %d threads, alternating, the best of %d rounds (`bench/llamacpp.py`, llama-cpp-python\n"
        "%s): generating one by one, and reading a prompt of 512. GB/s: the weights read per token times tokens, and\n"
        "the rate at which the same number of threads reads memory in the same process: near 1, memory is the\n"
        "limit.%s\n" %
        (o.threads, o.rounds, llama_cpp.__version__, "\n(llama.cpp without its repacked weights, with which it ends "
         "with an illegal instruction on this machine: %s.)" % ", ".join(plain) if plain else ""),
        "| weights | Tenon writes | llama.cpp | speedup | Tenon reads | llama.cpp | speedup | GB/s of memory |",
        "|---|---|---|---|---|---|---|---|", *rows, ""])
    if not o.page:
        print(text)
        return
    with open(o.page, encoding="utf-8") as f:
        page = re.sub(r"## Compared with llama\.cpp\n.*?(?=\n## |\Z)", "", f.read(), flags=re.S)
    page = page.rstrip("\n") + "\n\n" + text
    with open(o.page, "w", encoding="utf-8") as f:
        f.write(page)


if __name__ == "__main__":
    main()

"""Checks the page of bench/run compare, with invented results: the section of this CPU's family is replaced, the others
are kept, and a library that is not installed is printed as "–". bench/test runs it."""
import contextlib
import io
import json
import os
import re
import tempfile
import types

import compare

info = "vendor_id\t: %s\ncpu family\t: %d\nmodel\t\t: %d\nmodel name\t: Some CPU\n\n"
for vendor, kind, model, name in (("AuthenticAMD", 25, 0x01, "Zen 3"), ("AuthenticAMD", 25, 0x21, "Zen 3"),
                                  ("AuthenticAMD", 25, 0x50, "Zen 3"), ("AuthenticAMD", 25, 0x11, "Zen 4"),
                                  ("AuthenticAMD", 25, 0x61, "Zen 4"), ("AuthenticAMD", 25, 0xa0, "Zen 4"),
                                  ("AuthenticAMD", 26, 0x02, "Zen 5"), ("GenuineIntel", 6, 0x8f, "Sapphire Rapids"),
                                  ("GenuineIntel", 6, 0xcf, "Sapphire Rapids"),
                                  ("GenuineIntel", 6, 0x55, "Some CPU")):
    assert compare.family(info % (vendor, kind, model)) == name, (vendor, kind, model)

missing, faster = {"ctranslate2"}, 1


def output(command, environment):
    """Invented results: Tenon takes 10 ms, PyTorch 30, compiled 20, another library 15."""
    words = ("bench: a warning\nCPU:      invented\nTenon:    Tenon; 2 threads: the default (cores 2); caches\n"
             "Peaks, measured:\n  peak_f32  baseline  1 threads    50.0 GFLOP/s\n"
             "  peak_bf16 avx512    1 threads    99.0 GFLOP/s\n"
             "  read      -         2 threads     50.0 GB/s\n")
    if "kernels" in command:
        said = [dict(kernel="gemm_f32", size=size, layout=layout, threads=threads, value=100, onednn=other, openblas=50)
                for size, other in (("8x8x8", 100), ("9x9x9", 200)) for layout in ("NN", "NT", "TN")
                for threads in (1, 2)]
        return types.SimpleNamespace(returncode=0, stdout="\n".join(map(json.dumps, said)), stderr=words)
    if "pass" in command:
        return types.SimpleNamespace(returncode=command[1] in missing, stdout="", stderr="")
    if command[0] == "ldd":
        return types.SimpleNamespace(returncode=0, stdout="", stderr="")
    tenon, workload = command[0] == compare.BENCH, command[1] if command[0] == compare.BENCH else command[3]
    ms = 10 / faster if tenon else 20 if "--compile" in command else 30 if command[1] == "torch" else 15
    r = dict(workload=workload, version="0.1.0" if tenon else command[1] + " 9.9", rss_mib=100 if tenon else 400)
    r.update({"bert": dict(step_ms=ms, gflop=0.75), "llama": dict(tok_s=1e3 / ms, prompt_tok_s=1e4 / ms, gb_s=9,
                                                                 read_gb_s=10)}.get(workload, dict(ms=ms)))
    return types.SimpleNamespace(returncode=0, stdout=json.dumps(r) + "\n", stderr="")


def section(page, name):
    return re.search(r"(?ms)^## %s\n.*?(?=^## |\Z)" % name, page).group().rstrip()


def has(page, *lines):
    for line in lines:
        assert line in page, "the page has no line '%s':\n%s" % (line, page)


compare.output = output
with tempfile.TemporaryDirectory() as folder:
    def run(name, *more):
        compare.this_family = lambda: name
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            compare.main(["--threads", "2", "--out", folder, *more])
        with open(os.path.join(folder, "performance.md"), encoding="utf-8") as f:
            return f.read()

    first = run("Zen 8", "--only", "bert,encoder-infer,seq2seq-infer,llama-f16")
    low = "0.38 (required: ≥ 0.7) **missed**"
    has(first, "| bert | 10.0 ms | 30.0 ms | 20.0 ms | – | 2.00 (required: ≥ 1.6) met | %s |" % low,
        "| encoder-infer | 10.00 ms | 30.00 ms | 20.00 ms | ONNX Runtime: 15.00 ms | 1.50 (required: ≥ 1.6) **",
        "| seq2seq-infer | 10.00 ms | – | – | – | – | – |",
        "| bert | 100 | 400 | 400 | – | 0.25 (required: ≤ 0.5) met | – |",
        "| NT | 2 | 100.0 | 0.71 | 2.00 | – | 0.71 (required: ≥ 1) **missed** | 0.50: 9x9x9 |",
        "| f16 | 100 | 67 | 1.50 (required: ≥ 1) met | 1000 | 667 | 1.50 (required: ≥ 1) met | 9.0 of 10.0 |",
        "compared with torch 9.9, onnxruntime 9.9,\nllama_cpp 9.9.", "### Growth of a training step", "### bf16",
        "### One thread and 2", "```\nCPU:      invented\nTenon:    Tenon; caches\nPeaks, measured:\n  peak_bf16",
        "![growth](performance-zen-8-growth.svg)")
    assert sorted(os.listdir(folder)) == ["performance-zen-8-growth.svg", "performance-zen-8.svg", "performance.md"]
    missing = {peer[1] for peer in compare.PEERS.values()}
    second = run("Zen 9", "--only", "bert", "--no-growth")
    has(second, "compared with no other library.", "| bert | 10.0 ms | – | – | – | – | %s |" % low)
    assert section(second, "Zen 8") == section(first, "Zen 8"), "the section of another family is changed"
    faster = 2
    third = run("Zen 8", "--only", "bert", "--no-growth")
    assert section(third, "Zen 9") == section(second, "Zen 9") and "| bert | 5.0 ms |" in section(third, "Zen 8")
    assert re.findall("(?m)^##? .*", third) == ["# Performance", "## Zen 8", "## Zen 9"], third

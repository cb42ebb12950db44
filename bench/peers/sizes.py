"""Sizes, options and timing of the workloads in other libraries: those of bench/, printed as the same line of JSON."""
import argparse
import json
import math
import os
import resource
import time

OWN = {
    "bert": dict(layers=4, d_model=256, heads=4, vocab=30522, batch=16, seq=128),
    "bert-small": dict(layers=2, d_model=128, heads=2, vocab=8000, batch=32, seq=64),
    "seq2seq": dict(layers=3, d_model=256, heads=8, vocab=8000, batch=64, seq=24),
    "gpt": dict(layers=6, d_model=256, heads=8, vocab=8000, batch=8, seq=256),
    "lstm": dict(layers=2, d_model=256, heads=1, vocab=8000, batch=32, seq=35),
    "encoder-infer": dict(layers=6, d_model=384, heads=12, vocab=30522, batch=1, seq=32),
    "gpt-gen": dict(layers=6, d_model=256, heads=8, vocab=8000, batch=1, seq=256),
    "seq2seq-infer": dict(layers=3, d_model=256, heads=8, vocab=8000, batch=16, seq=24),
    "llama": dict(layers=12, d_model=768, heads=12, vocab=32000, batch=1, seq=512, ffn=2048),
    "lora": dict(layers=12, d_model=768, heads=12, vocab=32000, batch=4, seq=256, ffn=2048),
    "overhead": dict(layers=1, d_model=4, heads=1, vocab=1, batch=1, seq=1),
}


def options(workloads, dtypes=("f32", "bf16"), flags=()):
    p = argparse.ArgumentParser()
    p.add_argument("workload", choices=list(workloads))
    p.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--dtype", choices=dtypes, default="f32")
    p.add_argument("--seconds", type=float, default=15)
    for name, words in flags:
        p.add_argument(name, help=words, **({} if name == "--gguf" else {"action": "store_true"}))
    for name in ("layers", "d-model", "heads", "ffn", "vocab", "batch", "seq"):
        p.add_argument("--" + name, type=int)
    o = p.parse_args()
    for name, value in OWN[o.workload].items():
        if not getattr(o, name):
            setattr(o, name, value)
    o.ffn = o.ffn or 4 * o.d_model
    return o


def best_of(run, least, seconds):
    """The shortest time of a run, in seconds, and the number of runs: at least `least`, for at least `seconds`."""
    best, n, end = math.inf, 0, time.perf_counter() + seconds
    while n < least or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        n += 1
    return best, n


def report(o, version, result):
    print(json.dumps(dict(workload=o.workload, **result, threads=o.threads, dtype=o.dtype, version=version,
                          rss_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)))

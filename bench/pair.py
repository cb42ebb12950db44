#!/usr/bin/env python3
"""bench/run pair OLD NEW: runs the workloads on two versions of Tenon alternately, each run in a separate process, and
fails if NEW is slower. OLD and NEW are revisions of this repository or folders with a checkout; both are built under
build/pair.

A round runs every workload on both versions, in odd rounds OLD first, in even rounds NEW first. The ratio of the two
times is computed within the round, so that a slow phase of the machine affects both. The result of a workload is the
median ratio of the rounds; it fails if the median is above 1 + --most / 100."""
import argparse
import os
import statistics
import sys

from compare import figure, last_json

WORKLOADS = ["bert", "seq2seq", "gpt", "lstm", "encoder-infer", "gpt-gen", "overhead"]


def options():
    p = argparse.ArgumentParser(prog="bench/run pair", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old", help="a revision or a folder with a checkout; bench/run builds it and passes its folder")
    p.add_argument("new", help="a revision or a folder with a checkout")
    p.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    p.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
    p.add_argument("--seconds", type=float, default=5, help="seconds per workload, version and round (default: 5)")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--most", type=float, default=3, help="maximum slowdown of NEW in percent (default: 3)")
    p.add_argument("--only", default=",".join(WORKLOADS), help="workloads, separated by commas")
    return p.parse_args()


def time_of(folder, workload, o):
    """The time of a step, a call, a token or an op, in the unit of the workload."""
    r = last_json([os.path.join(folder, "bin", "bench"), workload, "--threads", str(o.threads), "--dtype", o.dtype,
                   "--seconds", "%g" % o.seconds], None)
    return figure(r) if r else sys.exit("bench/run pair: %s failed in %s" % (workload, folder))


def main():
    o = options()
    workloads = o.only.split(",")
    ratios = {w: [] for w in workloads}
    for turn in range(o.rounds):
        for w in workloads:
            took = {}
            for which in ("old", "new") if turn % 2 == 0 else ("new", "old"):
                took[which] = time_of(getattr(o, which), w, o)
            ratios[w].append(took["new"] / took["old"])
    slower = 0
    print("%-14s %8s   new / old in each round, %d threads, %s" % ("workload", "median", o.threads, o.dtype))
    for w in workloads:
        median = statistics.median(ratios[w])
        late = median > 1 + o.most / 100
        slower += late
        print("%-14s %8.3f   %s%s" % (w, median, " ".join("%.3f" % r for r in ratios[w]), "   SLOWER" if late else ""))
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()

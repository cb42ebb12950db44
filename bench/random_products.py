#!/usr/bin/env python3
"""f32 products of random sizes, in Tenon and in the better of oneDNN and OpenBLAS.

    bench/run random-products [--draws N] [--threads N] [--seconds S] [--seed N]

Draws m, n and k between 8 and 4,096, each logarithm uniform, and one of the layouts NN, NT and TN. The contenders are
the programs of bench/peers; they run alternately, three windows each, and the best counts. Prints the geometric mean of
the ratios, the ratio below which the lowest 5 % are, and the lowest ten. A size of more than 4 GFLOP is drawn again."""
import argparse
import math
import pathlib
import random
import subprocess
import sys

WINDOWS, MOST = 3, 4e9
PEERS = ("onednn", "openblas")


class Contender:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.name = self.process.stdout.readline().removeprefix("ready ").strip()

    def seconds(self, job):
        print(job, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        return float(answer[1]) if answer and answer[0] == "ok" else math.inf


def draw(rng):
    while True:
        m, n, k = (round(math.exp(rng.uniform(math.log(8), math.log(4096)))) for _ in range(3))
        if 2.0 * m * n * k <= MOST:
            return m, n, k, rng.choice(("NN", "NT", "TN"))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "build")
    p.add_argument("--draws", type=int, default=1000)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=0.01, help="length of a window")
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    rng = random.Random(a.seed)
    programs = {name: a.build / "bin" / "peers" / name for name in ("tenon", *PEERS)}
    contenders = {name: Contender(path) for name, path in programs.items() if path.exists()}
    if len(contenders) < 2 or "tenon" not in contenders:
        sys.exit("random_products.py: neither oneDNN nor OpenBLAS is installed; see bench/run --install-peers")
    print(", ".join(c.name for c in contenders.values()))
    ratios = []
    for _ in range(a.draws):
        m, n, k, layout = draw(rng)
        job, best = f"gemm_f32 {m}x{n}x{k} {layout} {a.threads} {a.seconds}", dict.fromkeys(contenders, math.inf)
        for _ in range(WINDOWS):
            for name, c in contenders.items():
                best[name] = min(best[name], c.seconds(job))
        peer = min(best[name] for name in contenders if name != "tenon")
        ratios.append((peer / best["tenon"], f"{m}x{n}x{k} {layout}", 2.0 * m * n * k / best["tenon"]))
    ratios.sort()
    mean = math.exp(sum(math.log(r[0]) for r in ratios) / len(ratios))
    low = ratios[len(ratios) // 20][0]
    print(f"{a.draws} products, {a.threads} threads: geometric mean {mean:.3f}, lowest 5 % below {low:.2f}")
    for layout in ("NN", "NT", "TN"):
        part = [math.log(r[0]) for r in ratios if r[1].endswith(layout)]
        print(f"  {layout}: geometric mean {math.exp(sum(part) / max(len(part), 1)):.3f} of {len(part)}")
    for ratio, size, rate in ratios[:10]:
        print(f"  {ratio:.2f}  {size}  {rate:.0f} GFLOP/s")


if __name__ == "__main__":
    main()

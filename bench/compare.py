#!/usr/bin/env python3
"""bench/run compare: runs the workloads on Tenon and on PyTorch alternately, each run in a separate process, and writes
docs/performance.md with its charts. Without PyTorch it measures only Tenon.

Each pair alternates three times, and the best step of each counts. Both get the same number of threads. PyTorch gets
OpenBLAS's OpenMP build and its fastest core type, found by bench kernels in the same run. The rate of a step's
operations is compared with the matrix products of the best peer there."""
import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BENCH = os.path.join(ROOT, "build", "bin", "bench")
TURNS = 3

# The required speedups over PyTorch: if the best peer multiplies at 400 GFLOP/s or more, and otherwise.
ASKED = {"bert": (2.3, 1.6), "bert-small": (2.5, 1.6), "seq2seq": (2.0, 1.4), "gpt": (2.3, 1.6), "lstm": (1.8, 1.4),
         "encoder-infer": (2.5, 1.6), "gpt-gen": (2.5, 2.0), "overhead": (12, 12)}
LARGE = ("bert", "gpt", "seq2seq")
GROWTH = [
    ("sequence length, batch 2", "--seq", (128, 256, 512, 1024, 2048), ["--batch", "2"]),
    ("width", "--d-model", (128, 256, 512), []),
    ("depth", "--layers", (2, 4, 8), []),
    ("batch", "--batch", (4, 8, 16, 32), []),
    ("vocabulary", "--vocab", (8000, 30522, 61044), []),
]


def options():
    p = argparse.ArgumentParser(prog="bench/run compare", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    p.add_argument("--seconds", type=float, default=15, help="seconds per workload and contender (default: 15)")
    p.add_argument("--only", default=",".join(ASKED), help="workloads, separated by commas")
    p.add_argument("--no-growth", action="store_true", help="skip the tables of the growth of time and memory")
    p.add_argument("--out", default=os.path.join(ROOT, "docs"), help="folder for performance.md and its charts")
    return p.parse_args()


def kept_section(path):
    """The section that bench/llamacpp.py has written to the page, which this program keeps."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        found = re.search(r"## Compared with llama\.cpp\n.*?(?=\n## |\Z)", f.read(), re.S)
    return found.group() if found else ""


def last_json(command, environment):
    """Runs a command; returns the JSON object on the last line of its output, or None if it fails."""
    print("  " + " ".join(command[-8:]), file=sys.stderr)
    r = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if r.returncode:
        print(r.stderr[-500:], file=sys.stderr)
        return None
    return json.loads(r.stdout.splitlines()[-1])


class Machine:
    """The description of the machine, and the rate of matrix products of its best peer."""

    def __init__(self, threads):
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "OPENBLAS_", "LD_LIBRARY"))}
        self.environment = plain
        r = subprocess.run([BENCH, "kernels", "--json", "--threads", str(threads), "--seconds", "0.5", "--size",
                            "2048x1024x256", "--only", "gemm_f32 * %d" % threads],
                           env=plain, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
        lines = [json.loads(line) for line in r.stdout.splitlines()]
        self.rate = max(max(l.get("onednn", 0), l.get("openblas", 0)) for l in lines)
        self.own_rate = max(l["value"] for l in lines)
        self.peer = self.rate > 0
        self.words = re.sub(r"\nmet .*|\nMISSED .*|\n- .*", "", r.stderr).strip()
        found = re.search(r"^  read .* %d threads +([0-9.]+)" % threads, r.stderr, re.M)
        self.read = float(found.group(1))
        core = re.search(r"best with OPENBLAS_CORETYPE=(\w+)", r.stderr)
        self.torch_environment = dict(plain)
        if core:
            self.torch_environment["OPENBLAS_CORETYPE"] = core.group(1)
        blas = subprocess.run(["ldd", os.path.join(ROOT, "build/bin/peers/openblas")], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout
        folder = re.search(r"=> (.*)/libopenblas", blas)
        if folder:
            self.torch_environment["LD_LIBRARY_PATH"] = folder.group(1)
        self.torch = subprocess.run([os.path.join(HERE, "peers/python"), "-c", "pass"]).returncode == 0

    def run(self, side, workload, arguments):
        if side == "tenon":
            return last_json([BENCH, workload, *arguments], self.environment)
        script = [os.path.join(HERE, "peers", name) for name in ("python", "torch_workloads.py")]
        return last_json([*script, workload, *arguments], self.torch_environment) if self.torch else None


def figure(r):
    """The value to compare; lower is better."""
    if "step_ms" in r or "ms" in r:
        return r.get("step_ms", r.get("ms"))
    return r["ns_per_op_fwd_bwd"] if "ns_per_op_fwd_bwd" in r else 1e3 / r["tok_s"]


def in_words(r):
    if not r:
        return "–"
    if "step_ms" in r:
        return "%.1f ms" % r["step_ms"]
    if "ms" in r:
        return "%.2f ms" % r["ms"]
    return "%.0f ns" % r["ns_per_op_fwd_bwd"] if "ns_per_op_fwd_bwd" in r else "%.0f tokens/s" % r["tok_s"]


def alternate(machine, workload, arguments, seconds, turns=TURNS):
    best = {}
    for _ in range(turns):
        for side in ("tenon", "torch"):
            r = machine.run(side, workload, [*arguments, "--seconds", "%g" % (seconds / turns)])
            if r and (side not in best or figure(r) < figure(best[side])):
                best[side] = dict(r, rss_mib=max(r["rss_mib"], best.get(side, r)["rss_mib"]))
    return best


# ---- charts ----------------------------------------------------------------------------------------------------------

INK, TENON, TORCH, LINE = "var(--ink)", "var(--tenon)", "var(--torch)", "var(--line)"
STYLE = ("<style>:root{color-scheme:light dark;--ink:#444;--tenon:#2a6fb0;--torch:#b06a14;--line:#aaa}"
         "@media(prefers-color-scheme:dark){:root{--ink:#d5dae1;--tenon:#60a5fa;--torch:#fbbf24;--line:#667085}}"
         "</style>")


def svg(width, height, body):
    """A chart without a background, which follows the reader's light or dark setting."""
    head = ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" '
            'fill="%s">\n%s\n' % (width, height, INK, STYLE))
    return head + "\n".join(body) + "\n</svg>\n"


def text(x, y, words, anchor="start", more=""):
    return '<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>' % (x, y, anchor, more, words)


def legend(x, y):
    return [part for i, (name, colour) in enumerate((("Tenon", TENON), ("PyTorch", TORCH)))
            for part in ('<rect x="%d" y="%d" width="12" height="12" fill="%s"/>' % (x + 90 * i, y - 10, colour),
                         text(x + 90 * i + 17, y, name))]


def bars(results):
    """A chart of the time and memory of each workload, relative to PyTorch, which is the line at 1."""
    title = "Time and memory relative to PyTorch (the line at 1)"
    body, y, scale = [text(20, 24, title, more=' font-size="14"')], 50, 420
    pairs = [(w, r) for w, r in results.items() if "tenon" in r and "torch" in r]
    for workload, r in pairs:
        body.append(text(20, y + 14, workload))
        for i, (name, part) in enumerate((("time", figure(r["tenon"]) / figure(r["torch"])),
                                          ("memory", r["tenon"]["rss_mib"] / r["torch"]["rss_mib"]))):
            wide = scale * min(part, 1.1)
            body.append(text(168, y + 18 * i + 14, name, "end"))
            body.append('<rect x="175" y="%d" width="%.1f" height="12" fill="%s"/>' % (y + 18 * i + 4, wide, TENON))
            body.append(text(180 + wide, y + 18 * i + 14, "%.2f" % part))
        y += 46
    body.append('<path d="M%d 40V%d" stroke="%s" stroke-dasharray="4 3"/>' % (175 + scale, y, TORCH))
    return svg(660, y + 6, body)


def curves(growth):
    """A chart of step time and memory over each growing parameter, two panels per row."""
    body, top = legend(480, 24), 40
    body.append(text(20, 24, "Growth of a training step of bert", more=' font-size="14"'))
    for title, points in growth:
        for column, (name, of) in enumerate((("ms per step", figure), ("MiB", lambda r: r["rss_mib"]))):
            left, wide, high = 60 + 320 * column, 230, 110
            values = [(x, of(r[side]), side) for x, r in points for side in ("tenon", "torch") if side in r]
            if not values:
                continue
            most_x, most_y = max(v[0] for v in values), max(v[1] for v in values)
            body.append(text(left, top + 14, "%s: %s" % (title, name)))
            body.append('<path d="M%d %dv%dh%d" fill="none" stroke="%s"/>' % (left, top + 22, high, wide, LINE))
            body.append(text(left - 5, top + 32, "%.0f" % most_y, "end", ' font-size="10"'))
            free = 0
            for x in sorted({v[0] for v in values}):
                if wide * x / most_x < free:
                    continue
                free = wide * x / most_x + 28
                body.append(text(left + wide * x / most_x, top + high + 35, x, "middle", ' font-size="10"'))
            for side, colour in (("tenon", TENON), ("torch", TORCH)):
                line = [(left + wide * x / most_x, top + 22 + high * (1 - y / most_y))
                        for x, y, w in values if w == side]
                body.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' %
                            (" ".join("%.1f,%.1f" % p for p in line), colour))
                body += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (*p, colour) for p in line]
        top += 165
    return svg(660, top + 10, body)


# ---- the page --------------------------------------------------------------------------------------------------------

def table(head, rows):
    return "\n".join(["| %s |" % " | ".join(head), "|" + "---|" * len(head)] +
                     ["| %s |" % " | ".join(str(c) for c in row) for row in rows]) + "\n"


def mark(found, asked, least=True):
    return "%.2f (required: %s %g) %s" % (found, "≥" if least else "≤", asked,
                                       "met" if (found >= asked if least else found <= asked) else "**missed**")


def compared(machine, results):
    rows = []
    for w, r in results.items():
        t, p = r.get("tenon"), r.get("torch")
        times = mark(figure(p) / figure(t), ASKED[w][machine.rate < 400]) if t and p else "–"
        part = t["gflop_s"] / machine.rate if t and "gflop_s" in t and machine.peer else None
        roof = "–"
        if part is not None:
            roof = mark(part, 0.7) if w in LARGE else "%.2f" % part
        if t and "gb_s" in t:
            part = t["gb_s"] / machine.read  # required: the speedup, or this rate
            roof = "weights read at %.2f of the bandwidth (or: ≥ 0.8)" % part
        memory = "–"
        if t and p:
            ratio = t["rss_mib"] / p["rss_mib"]
            memory = mark(ratio, 0.5, False) if w in LARGE else "%.2f" % ratio
        rows.append((w, in_words(t), in_words(p), times, roof, "%d" % t["rss_mib"] if t else "–",
                     "%d" % p["rss_mib"] if p else "–", memory, t.get("mallocs_per_step", "–") if t else "–"))
    return table(("workload", "Tenon", "PyTorch", "speedup", "fraction of the best peer's GEMM rate", "Tenon MiB",
                  "PyTorch MiB", "Tenon / PyTorch", "mallocs per step"), rows)


def main():
    o = options()
    machine = Machine(o.threads)
    chosen = o.only.split(",")
    threads = ["--threads", str(o.threads)]
    results = {w: alternate(machine, w, threads, o.seconds) for w in ASKED if w in chosen}
    results = {w: r for w, r in results.items() if r}
    single = {w: alternate(machine, w, ["--threads", "1"], o.seconds) for w in ("bert", "gpt") if w in results}
    half = {w: alternate(machine, w, [*threads, "--dtype", "bf16"], o.seconds) for w in ("bert", "gpt") if w in results}
    growth = [] if o.no_growth else [
        (title, [(x, alternate(machine, "bert", [*threads, *more, name, str(x)], o.seconds / 5, 1)) for x in values])
        for title, name, values, more in GROWTH]

    versions = {side: next((r[side]["version"] for r in results.values() if side in r), "PyTorch (not installed)")
                for side in ("tenon", "torch")}
    page = ["# Performance\n",
            "Written by `bench/run compare --threads %d --seconds %g` on %s; Tenon %s compared with %s.\n"
            "[bench/README.md](../bench/README.md) describes what is measured and how: whole training steps and whole\n"
            "generations, each run a process of its own, alternating, the best of all steps.\n" %
            (o.threads, o.seconds, datetime.date.today(), versions["tenon"], versions["torch"]),
            "```\n%s\n%s %s\n```\n" % (machine.words, platform.system(), platform.release().split("-")[0]),
            "The best peer's products of 2048x1024x256 run at %.0f GFLOP/s on %d threads, Tenon's at %.0f.\n" %
            (machine.rate, o.threads, machine.own_rate) if machine.peer else "No peer for matrix products is found.\n",
            "## Compared with PyTorch\n", compared(machine, results)]
    if any("torch" in r and "tenon" in r for r in results.values()):
        page.append("![time and memory](performance.svg)\n")
    if single and o.threads > 1:
        page += ["## One thread and %d\n" % o.threads,
                 table(("workload", "1 thread", "%d threads" % o.threads, "speedup", "speedup of PyTorch"),
                       [(w, in_words(s.get("tenon")), in_words(results[w].get("tenon")),
                         mark(figure(s["tenon"]) / figure(results[w]["tenon"]), 1.8),
                         "%.2f" % (figure(s["torch"]) / figure(results[w]["torch"])) if "torch" in s else "–")
                        for w, s in single.items()])]
    if half:
        page += ["## bf16\n",
                 table(("workload", "f32", "bf16", "speedup", "PyTorch, bf16", "speedup of PyTorch"),
                       [(w, in_words(results[w].get("tenon")), in_words(h.get("tenon")),
                         mark(figure(results[w]["tenon"]) / figure(h["tenon"]), 1.4) if "tenon" in h else "–",
                         in_words(h.get("torch")),
                         "%.2f" % (figure(results[w]["torch"]) / figure(h["torch"])) if "torch" in h else "–")
                        for w, h in half.items()])]
    if growth:
        page.append("## Growth of a training step\n\n"
                    "The step of `bert`, except for the parameter named in each table.\n")
        for title, points in growth:
            page.append(table((title, "Tenon", "PyTorch", "speedup", "Tenon MiB", "PyTorch MiB"),
                              [(x, in_words(r.get("tenon")), in_words(r.get("torch")),
                                "%.2f" % (figure(r["torch"]) / figure(r["tenon"])) if len(r) == 2 else "–",
                                r["tenon"]["rss_mib"] if "tenon" in r else "–",
                                r["torch"]["rss_mib"] if "torch" in r else "–") for x, r in points]))
        page.append("![growth](performance-growth.svg)\n")

    page.append(kept_section(os.path.join(o.out, "performance.md")))
    os.makedirs(o.out, exist_ok=True)
    for name, content in (("performance.md", "\n".join(page)), ("performance.svg", bars(results)),
                          ("performance-growth.svg", curves(growth) if growth else "")):
        if content:
            with open(os.path.join(o.out, name), "w", encoding="utf-8") as f:
                f.write(content)
    print(os.path.relpath(os.path.join(o.out, "performance.md")))


if __name__ == "__main__":
    main()

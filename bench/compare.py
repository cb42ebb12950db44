#!/usr/bin/env python3
"""bench/run compare: runs the workloads on Tenon and on the other installed libraries, alternately, each run in a
separate process, and writes the section of this CPU's family in docs/performance.md, with its charts. The other
sections are kept. A library that is not installed is printed as "–".

All contenders of a workload run three times, one after the other, and the best run of each counts. All use the same
number of threads. `bench/run --install-peers` installs the other libraries (TENON_PEERS=FOLDER: another virtual
environment)."""
import argparse
import datetime
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BENCH = os.path.join(ROOT, "build", "bin", "bench")
CACHE = os.environ.get("TENON_PEERS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "tenon-peers")
TURNS = 3

# The other libraries: column of the tables, Python module, script and its options.
PEERS = {"eager": ("PyTorch", "torch", "torch_workloads.py", []),
         "compiled": ("compiled", "torch", "torch_workloads.py", ["--compile"]),
         "onnxruntime": ("ONNX Runtime", "onnxruntime", "other_workloads.py", []),
         "ctranslate2": ("CTranslate2", "ctranslate2", "other_workloads.py", []),
         "peft": ("PEFT", "peft", "peft_workloads.py", []),
         "llama.cpp": ("llama.cpp", "llama_cpp", "other_workloads.py", [])}
TRAINED = ("eager", "compiled")

# Name in the tables: workload and options of bench, contenders, and the required speedup over the fastest of them: if
# the best peer multiplies at 400 GFLOP/s or more, and otherwise. The values of 2 and more were set for PyTorch 1.13.
WORKLOADS = {
    "bert": ("bert", TRAINED, (2.3, 1.6)),
    "bert-small": ("bert-small", TRAINED, (2.5, 1.6)),
    "bert-base": ("bert --layers 12 --d-model 768 --heads 12 --batch 4 --seq 128", TRAINED, (1, 1)),
    "seq2seq": ("seq2seq", TRAINED, (2.0, 1.4)),
    "gpt": ("gpt", TRAINED, (2.3, 1.6)),
    "gpt2": ("gpt --layers 12 --d-model 768 --heads 12 --vocab 50257 --batch 4 --seq 128", TRAINED, (1, 1)),
    "lstm": ("lstm", TRAINED, (1.8, 1.4)),
    "encoder-infer": ("encoder-infer", (*TRAINED, "onnxruntime"), (2.5, 1.6)),
    "encoder-infer-32": ("encoder-infer --batch 32", (*TRAINED, "onnxruntime"), (1, 1)),
    "encoder-infer-int8": ("encoder-infer --dtype int8", ("onnxruntime",), (1, 1)),
    "encoder-infer-int8-32": ("encoder-infer --dtype int8 --batch 32", ("onnxruntime",), (1, 1)),
    "seq2seq-infer": ("seq2seq-infer", ("ctranslate2",), (1, 1)),
    "seq2seq-infer-int8": ("seq2seq-infer --dtype int8", ("ctranslate2",), (1, 1)),
    "gpt-gen": ("gpt-gen", ("eager", "ctranslate2"), (2.5, 2.0)),
    "lora": ("lora", ("peft",), (1, 1)),
    "lora-int8": ("lora --dtype int8", ("peft",), (1.5, 1.5)),
    "overhead": ("overhead", ("eager",), (12, 12)),
    "llama-f32": ("llama --dtype f32", ("llama.cpp",), (1, 1)),
    "llama-f16": ("llama --dtype f16", ("llama.cpp",), (1, 1)),
    "llama-q8_0": ("llama --dtype q8_0", ("llama.cpp",), (1, 1)),
    "llama-q4_k": ("llama --dtype q4_k", ("llama.cpp",), (1, 1)),
    "llama-1b-q4_k": ("llama --layers 22 --d-model 2048 --heads 32 --ffn 5632 --seq 128 --dtype q4_k", ("llama.cpp",),
                      (1, 1)),
}
LARGE = ("bert", "bert-base", "gpt", "gpt2", "seq2seq")
ASKED_RATE, ASKED_MEMORY, ASKED_THREADS, ASKED_BF16, ASKED_PRODUCTS = 0.7, 0.5, 1.8, 1.4, 1
GROWTH = [
    ("sequence length, batch 2", "--seq", (128, 256, 512, 1024, 2048), ["--batch", "2"]),
    ("width", "--d-model", (128, 256, 512), []),
    ("depth", "--layers", (2, 4, 8), []),
    ("batch", "--batch", (4, 8, 16, 32), []),
    ("vocabulary", "--vocab", (8000, 30522, 61044), []),
]


def options(arguments):
    p = argparse.ArgumentParser(prog="bench/run compare", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=min(2, os.cpu_count() or 1))
    p.add_argument("--seconds", type=float, default=15, help="seconds per workload and contender (default: 15)")
    p.add_argument("--only", default=",".join(WORKLOADS), help="workloads, separated by commas")
    p.add_argument("--no-growth", action="store_true", help="skip the tables of the growth of time and memory")
    p.add_argument("--out", default=os.path.join(ROOT, "docs"), help="folder for performance.md and its charts")
    o = p.parse_args(arguments)
    o.only = o.only.split(",")
    for w in o.only:
        if w not in WORKLOADS:
            p.error("unknown workload '%s'; the workloads are %s" % (w, ", ".join(WORKLOADS)))
    return o


def family(cpuinfo):
    """The name of a CPU's family, from the text of /proc/cpuinfo; of unknown ones, the name of the model."""
    fields = dict(re.findall(r"^(vendor_id|cpu family|model|model name)\s*: (.*)$", cpuinfo.split("\n\n")[0], re.M))
    kind, model = int(fields.get("cpu family", 0)), int(fields.get("model", 0))
    if fields.get("vendor_id") == "AuthenticAMD":
        if kind == 25:
            return "Zen 4" if model >> 4 in (1, 6, 7, 10) else "Zen 3"
        if kind == 26:
            return "Zen 5"
    if fields.get("vendor_id") == "GenuineIntel" and kind == 6 and model in (0x8f, 0xcf):
        return "Sapphire Rapids"  # 0xcf, Emerald Rapids, has the same cores
    return fields.get("model name", platform.machine())


def this_family():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            return family(f.read())
    except OSError:
        return platform.machine()


def output(command, environment):
    """Runs a command; returns its result with the members returncode, stdout and stderr."""
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def last_json(command, environment):
    """Runs a command; returns the JSON object on the last line of its output, or None if it fails."""
    print("  " + " ".join(command[-8:]), file=sys.stderr)
    r = output(command, environment)
    if r.returncode == -signal.SIGILL and "llama_cpp" in command and "--plain" not in command:
        return last_json([*command, "--plain"], environment)  # see llama() in peers/other_workloads.py
    if r.returncode:
        print(r.stderr[-500:], file=sys.stderr)
        return None
    return json.loads(r.stdout.splitlines()[-1])


class Machine:
    """The description of the machine, and the rate of matrix products of its best peer."""

    def __init__(self, threads):
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "OPENBLAS_", "LD_LIBRARY"))}
        self.environment, self.threads = plain, threads
        lines, words = self.kernels("0.5", "--size", "2048x1024x256", "--only", "gemm_f32 * %d" % threads)
        self.rate = max(best_blas(l) for l in lines)
        self.own_rate = max(l["value"] for l in lines)
        self.words = re.sub(r"\nmet .*|\nMISSED .*|\n- .*", "", words).strip()
        found = re.search(r"^  read .* %d threads +([0-9.]+)" % threads, words, re.M)
        self.read = float(found.group(1)) if found else 0
        core = re.search(r"best with OPENBLAS_CORETYPE=(\w+)", words)
        self.torch_environment = dict(plain)  # Debian's PyTorch gets the OpenMP build of OpenBLAS and its fastest core
        if core:
            self.torch_environment["OPENBLAS_CORETYPE"] = core.group(1)
        blas = output(["ldd", os.path.join(ROOT, "build/bin/peers/openblas")], None).stdout
        folder = re.search(r"=> (.*)/libopenblas", blas)
        if folder:
            self.torch_environment["LD_LIBRARY_PATH"] = folder.group(1)
        self.has = {m: not output([os.path.join(HERE, "peers/python"), m, "-c", "pass"], plain).returncode
                    for m in {peer[1] for peer in PEERS.values()}}
        if not all(self.has.values()):
            print("not installed: %s; bench/run --install-peers installs them" %
                  ", ".join(sorted(m for m in self.has if not self.has[m])), file=sys.stderr)

    def kernels(self, seconds, *arguments):
        r = output([BENCH, "kernels", "--json", "--threads", str(self.threads), "--seconds", seconds, *arguments],
                   self.environment)
        if r.returncode:
            sys.exit("bench/run compare: bench kernels failed:\n" + r.stderr[-500:])
        return [json.loads(line) for line in r.stdout.splitlines()], r.stderr

    def run(self, side, workload, arguments):
        if side == "tenon":
            return last_json([BENCH, workload, *arguments], self.environment)
        _, module, script, flags = PEERS[side]
        if not self.has[module]:
            return None
        return last_json([os.path.join(HERE, "peers/python"), module, os.path.join(HERE, "peers", script), workload,
                          *flags, *arguments],
                         self.torch_environment if module in ("torch", "peft") else self.environment)


def best_blas(line):
    return max(line.get(name, 0) for name in ("onednn", "openblas", "openblas_default"))


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


def alternate(machine, name, arguments, seconds, turns=TURNS, contenders=None):
    """The best result of each contender of a workload, with its largest memory. A contender that fails is not repeated.
    Tenon is the last, because llama.cpp creates the file that both read."""
    command, peers, _ = WORKLOADS[name]
    workload, *own = command.split()
    best, failed = {}, set()
    for _ in range(turns):
        for side in (*(contenders or peers), "tenon"):
            more = [*own, *arguments, "--seconds", "%g" % (seconds / turns)]
            size = "l110" if len(own) == 2 else name.rpartition("-")[0]
            file = os.path.join(CACHE, "%s-%s.gguf" % (size, own[-1])) if workload == "llama" else ""
            if side == "llama.cpp" or file and os.path.exists(file):
                more += ["--gguf", file]
            r = machine.run(side, workload, more) if side not in failed else None
            if not r:
                failed.add(side)
                continue
            old = best.get(side, r)
            best[side] = dict(min(r, old, key=figure), rss_mib=max(r["rss_mib"], old["rss_mib"]))
            if "prompt_tok_s" in r:
                best[side]["prompt_tok_s"] = max(r["prompt_tok_s"], old["prompt_tok_s"])
    return best


def others(r):
    return {side: found for side, found in r.items() if side != "tenon"}


def fastest(r, of=figure):
    """The lowest value of a contender other than Tenon; None without one."""
    return min(map(of, others(r).values()), default=None)


def memory(r):
    return r["rss_mib"]


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
    """A chart of the time and memory of each workload, relative to the best other library, which is the line at 1."""
    title = "Time and memory relative to the fastest and the smallest other library (the line at 1)"
    body, y, scale = [text(20, 24, title, more=' font-size="14"')], 50, 420
    for workload, r in results.items():
        if "tenon" not in r or len(r) == 1:
            continue
        body.append(text(20, y + 14, workload))
        for i, (name, of) in enumerate((("time", figure), ("memory", memory))):
            part = of(r["tenon"]) / fastest(r, of)
            wide = scale * min(part, 1.1)
            body.append(text(168, y + 18 * i + 14, name, "end"))
            body.append('<rect x="175" y="%d" width="%.1f" height="12" fill="%s"/>' % (y + 18 * i + 4, wide, TENON))
            body.append(text(180 + wide, y + 18 * i + 14, "%.2f" % part))
        y += 46
    body.append('<path d="M%d 40V%d" stroke="%s" stroke-dasharray="4 3"/>' % (175 + scale, y, TORCH))
    return svg(700, y + 6, body)


def curves(growth):
    """A chart of step time and memory over each growing parameter, two panels per row."""
    body, top = legend(480, 24), 40
    body.append(text(20, 24, "Growth of a training step of bert", more=' font-size="14"'))
    for title, points in growth:
        for column, (name, of) in enumerate((("ms per step", figure), ("MiB", memory))):
            left, wide, high = 60 + 320 * column, 230, 110
            values = [(x, of(r[side]), side) for x, r in points for side in ("tenon", "eager") if side in r]
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
            for side, colour in (("tenon", TENON), ("eager", TORCH)):
                line = [(left + wide * x / most_x, top + 22 + high * (1 - y / most_y))
                        for x, y, w in values if w == side]
                body.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' %
                            (" ".join("%.1f,%.1f" % p for p in line), colour))
                body += ['<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>' % (*p, colour) for p in line]
        top += 165
    return svg(660, top + 10, body)


# ---- the page --------------------------------------------------------------------------------------------------------

INTRO = """# Performance

Tenon compared with other libraries, a section for each family of CPUs. `bench/run compare` writes the section of the
family it runs on and keeps the others; [bench/README.md](../bench/README.md) describes the workloads and the method.

- Each run is a separate process. The contenders run one after the other, three times, with the same number of threads,
  and the best run of each counts. "–" is a library that is not installed, or that is not measured with the workload.
- **PyTorch** runs eagerly, **compiled** is the same code with `torch.compile`, whose compilation is not part of a step.
- **Speedup**: the time of the fastest other library divided by Tenon's.
- **GEMM rate**: the operations of a step per second, divided by those of the best peer's products of 2048x1024x256.
- **Memory**: the largest resident memory of the process, in MiB.
"""


def table(head, rows):
    return "\n".join(["| %s |" % " | ".join(head), "|" + "---|" * len(head)] +
                     ["| %s |" % " | ".join(str(c) for c in row) for row in rows]) + "\n"


def mark(found, asked, least=True):
    return "%.2f (required: %s %g) %s" % (found, "≥" if least else "≤", asked,
                                       "met" if (found >= asked if least else found <= asked) else "**missed**")


def ratio(above, below, form="%.2f"):
    return form % (above / below) if above and below else "–"


def with_others(r, words, none="–"):
    """A cell for each of PyTorch and PyTorch compiled, and one for the other libraries, with their names."""
    rest = ["%s: %s" % (PEERS[side][0], words(r[side])) for side in PEERS if side in r and side not in TRAINED]
    return [*(words(r[side]) if side in r else none for side in TRAINED), ", ".join(rest) or none]


def times(machine, results):
    rows = []
    for w, r in results.items():
        t, best, rate = r.get("tenon"), fastest(r), "–"
        if t and machine.rate and "gflop" in t and ("ms" in t or "step_ms" in t):
            part = t["gflop"] / figure(t) * 1e3 / machine.rate
            rate = mark(part, ASKED_RATE) if w in LARGE else "%.2f" % part
        elif t and "gb_s" in t and machine.read:
            rate = "weights read at %.2f of the bandwidth (or: ≥ 0.8)" % (t["gb_s"] / machine.read)
        rows.append((w, in_words(t), *with_others(r, in_words),
                     mark(best / figure(t), WORKLOADS[w][2][machine.rate < 400]) if t and best else "–", rate))
    return table(("workload", "Tenon", "PyTorch", "compiled", "other", "speedup", "GEMM rate"), rows)


def memories(results):
    rows = []
    for w, r in results.items():
        t, least = r.get("tenon"), fastest(r, memory)
        part = "–"
        if t and least:
            part = mark(memory(t) / least, ASKED_MEMORY, False) if w in LARGE else ratio(memory(t), least)
        rows.append((w, memory(t) if t else "–", *with_others(r, lambda s: "%d" % memory(s)), part,
                     t.get("mallocs_per_step", "–") if t else "–"))
    return table(("workload", "Tenon", "PyTorch", "compiled", "other", "Tenon / smallest", "mallocs per step"), rows)


def mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0


def products(machine, seconds):
    """The table of matrix products: geometric means over the sizes of bench kernels."""
    lines, _ = machine.kernels("%g" % min(0.3, seconds / 50), "--only", "gemm_f32 *")
    rows = []
    for layout in ("NN", "NT", "TN"):
        for threads in sorted({l["threads"] for l in lines}):
            some = [l for l in lines if (l["layout"], l["threads"]) == (layout, threads)]
            cells = []
            for of in (lambda l: l.get("onednn"), lambda l: max(l.get("openblas", 0), l.get("openblas_default", 0)),
                       lambda l: l.get("pytorch")):
                found = mean([l["value"] / of(l) for l in some if of(l)])
                cells.append("%.2f" % found if found else "–")
            both = [(l["value"] / best_blas(l), l["size"]) for l in some if best_blas(l)]
            rows.append((layout, threads, "%.1f" % mean([l["value"] for l in some]), *cells,
                         mark(mean([b[0] for b in both]), ASKED_PRODUCTS) if both else "–",
                         "%.2f: %s" % min(both) if both else "–"))
    return table(("layout", "threads", "Tenon, GFLOP/s", "/ oneDNN", "/ OpenBLAS", "/ PyTorch",
                  "/ the better of oneDNN and OpenBLAS", "lowest"), rows)


def llamas(results):
    rows = []
    for w, r in results.items():
        t, c = r.get("tenon", {}), r.get("llama.cpp", {})
        rows.append((w[6:], *(cell for name in ("tok_s", "prompt_tok_s") for cell in (
            ratio(t.get(name), 1, "%.0f"), ratio(c.get(name), 1, "%.0f"),
            mark(t[name] / c[name], WORKLOADS[w][2][0]) if t and c else "–")),
                     "%.1f of %.1f" % (t["gb_s"], t["read_gb_s"]) if t else "–"))
    return table(("weights", "Tenon generates", "llama.cpp", "speedup", "Tenon reads", "llama.cpp", "speedup",
                  "GB/s of memory"), rows)


def shorter(words):
    """The description of the machine by bench kernels, without warnings before it and its longest facts."""
    words = words[max(0, words.find("CPU:")):]
    return re.sub(r"(?m)( NO_LAPACKE.*(?=; best)|; \d+ threads: [^)\n]*\)|^  peak_\S+ +baseline.*\n)", "", words)


def slug(name):
    return "performance-" + re.sub("[^a-z0-9]+", "-", name.lower()).strip("-")


def merged(page, name, section):
    """The page with the section of this family replaced, or added at the end."""
    found = re.search(r"(?ms)^## .*", page)
    sections = re.findall(r"(?ms)^(## (.*?)\n.*?)(?=^## |\Z)", found.group()) if found else []
    new = {title: words.rstrip("\n") for words, title in sections}
    new[name] = section.rstrip("\n")
    return "\n".join([INTRO, "\n\n".join(new.values())]) + "\n"


def main(arguments=None):
    o = options(arguments)
    name, machine = this_family(), Machine(o.threads)
    threads = ["--threads", str(o.threads)]
    results = {w: alternate(machine, w, threads, o.seconds) for w in WORKLOADS if w in o.only}
    results = {w: r for w, r in results.items() if r}
    single = {w: alternate(machine, w, ["--threads", "1"], o.seconds) for w in ("bert", "gpt")
              if "tenon" in results.get(w, {})}
    bf16 = [*threads, "--dtype", "bf16"]
    half = {w: alternate(machine, w, bf16, o.seconds) for w in ("bert", "bert-small", "seq2seq", "gpt", "lstm")
            if "tenon" in results.get(w, {}) and "peak_bf16" in machine.words}
    growth = [] if o.no_growth else [
        (title, [(x, alternate(machine, "bert", [*threads, *more, option, str(x)], o.seconds / 5, 1, ["eager"]))
                 for x in values]) for title, option, values, more in GROWTH]

    versions = {side: next((r[side]["version"] for r in results.values() if side in r), None)
                for side in ("tenon", *PEERS)}
    peers = [versions[side] for side in PEERS if versions[side] and side != "compiled"]
    lists = {w: r for w, r in results.items() if not w.startswith("llama-")}
    page = ["## %s\n" % name,
            textwrap.fill("`bench/run compare --threads %d --seconds %g` on %s: Tenon %s compared with %s." %
                          (o.threads, o.seconds, datetime.date.today(), versions["tenon"],
                           ", ".join(peers) or "no other library"), 120) + "\n",
            "```\n%s\n%s %s\n```\n" % (shorter(machine.words), platform.system(), platform.release().split("-")[0]),
            "Matrix products of 2048x1024x256 run at %.0f GFLOP/s on %d threads in the better of oneDNN and\n"
            "OpenBLAS, and at %.0f in Tenon.\n" % (machine.rate, o.threads, machine.own_rate) if machine.rate
            else "Neither oneDNN nor OpenBLAS is installed.\n",
            "### Time\n", times(machine, lists)]
    if any("tenon" in r and len(r) > 1 for r in lists.values()):
        page.append("![time and memory](%s.svg)\n" % slug(name))
    page += ["### Memory\n", memories(lists)]
    page += ["### Matrix products\n",
             "Geometric means over the f32 sizes of `bench/run kernels`: Tenon's rate, and its ratio to that of a\n"
             "library.\n",
             products(machine, o.seconds)]
    if single and o.threads > 1:
        page += ["### One thread and %d\n" % o.threads,
                 table(("workload", "1 thread", "%d threads" % o.threads, "speedup", "speedup of PyTorch"),
                       [(w, in_words(s.get("tenon")), in_words(results[w].get("tenon")),
                         mark(figure(s["tenon"]) / figure(results[w]["tenon"]), ASKED_THREADS) if "tenon" in s else "–",
                         ratio(fastest(s), fastest(results[w]))) for w, s in single.items()])]
    if half:
        page += ["### bf16\n",
                 table(("workload", "f32", "bf16", "speedup", "PyTorch, bf16", "compiled, bf16", "over PyTorch"),
                       [(w, in_words(results[w].get("tenon")), in_words(h.get("tenon")),
                         mark(figure(results[w]["tenon"]) / figure(h["tenon"]), ASKED_BF16) if "tenon" in h else "–",
                         *with_others(h, in_words)[:2],
                         ratio(fastest(h), figure(h["tenon"])) if "tenon" in h else "–") for w, h in half.items()])]
    if len(lists) < len(results):
        page += ["### llama.cpp\n",
                 "Tokens per second of a LLaMA of 110 million weights (12 layers of 768, 12 heads, vocabulary 32,000)\n"
                 "from the same GGUF file: generating one by one, and reading a prompt of 512. 1b: 1.26 billion (22\n"
                 "layers of 2048, 32 heads), and a prompt of 128. GB/s of memory: the rate at which weights are read,\n"
                 "and at which the same number of threads reads memory.\n",
                 llamas({w: r for w, r in results.items() if w not in lists})]
    if growth:
        page.append("### Growth of a training step\n\n"
                    "The step of `bert`, except for the parameter named in each table.\n")
        for title, points in growth:
            page.append(table((title, "Tenon", "PyTorch", "speedup", "Tenon MiB", "PyTorch MiB"),
                              [(x, in_words(r.get("tenon")), in_words(r.get("eager")),
                                ratio(figure(r["eager"]), figure(r["tenon"])) if len(r) == 2 else "–",
                                *(memory(r[side]) if side in r else "–" for side in ("tenon", "eager")))
                               for x, r in points]))
        page.append("![growth](%s-growth.svg)\n" % slug(name))

    path, before = os.path.join(o.out, "performance.md"), ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            before = f.read()
    os.makedirs(o.out, exist_ok=True)
    for file, content in (("performance.md", merged(before, name, "\n".join(page))),
                          (slug(name) + ".svg", bars(lists)),
                          (slug(name) + "-growth.svg", curves(growth) if growth else "")):
        if content:
            with open(os.path.join(o.out, file), "w", encoding="utf-8") as f:
                f.write(content)
    print(os.path.relpath(path))


if __name__ == "__main__":
    main()

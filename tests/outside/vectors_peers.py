#!/usr/bin/env python3
"""Compares `vectors train` with word2vec.c, GloVe's programs and fastText: the same text, the same options.

    tests/outside/vectors_peers.py run OUT --build BUILD --text FILE --tests DIR [--word2vec PROGRAM] [--glove DIR]
                                   [--kinds skipgram,cbow,glove,fasttext] [--who ours,original] [--seeds 1,2,3]
                                   [--shuffle]
    tests/outside/vectors_peers.py table OUT
    tests/outside/vectors_peers.py speed OUT --build BUILD --text FILE [--word2vec PROGRAM] [--glove DIR] [--kinds ...]
                                   [--rounds 2] [--epochs 1]

Dimension 100, window 5, 5 negatives, sample 1e-4, minimum count 5, --epochs 5 (GloVe: 15, x_max 10). DIR contains
EN-WS-353-ALL.txt, EN-SIMLEX-999.txt, EN-MEN-TR-3k.txt, EN-RG-65.txt and questions-words.txt. `vectors similarity` and
`vectors analogy` evaluate the vectors of both sides. Each run adds a line to OUT/results.tsv and is not repeated;
`table` prints the means and the standard deviations of the originals: Tenon should not be worse than their mean minus
one standard deviation. word2vec.c has no seed, but its results depend on the number of threads: seed 1 is twelve
threads, seed 2 thirteen. Fewer threads are not representative: a thread that reaches the end of the text skips all
further epochs, so that the last thread's part is read only once (on one thread: WS-353 0.16, not 0.42). Its vectors are
initialised to the same values in every run: with --shuffle both sides read the text as lines of 1,000 words in an order
that depends on the seed, which also changes the initial values. `speed` runs both sides on one thread and Tenon on two,
alternately, and prints the best round: the words per second of the originals are their own output, GloVe's time is that
between its first and last iteration lines, and its counting time is that of its other three programs. Tested with
fasttext 0.9.3, word2vec.c 20c129af and GloVe 52f7dbc5. Exits with 77 if none of the originals is found.
"""
import argparse
import os
import random
import re
import statistics
import subprocess
import sys
import time

KINDS = ("skipgram", "cbow", "glove", "fasttext")
FILES = (("WS-353", "EN-WS-353-ALL.txt"), ("SimLex-999", "EN-SIMLEX-999.txt"), ("MEN", "EN-MEN-TR-3k.txt"),
         ("RG-65", "EN-RG-65.txt"), ("questions-words", "questions-words.txt"))


def ours(a, kind, seed, to):
    """The output of `vectors train`: words, seconds, words per second; and the seconds of counting."""
    epochs, more = (a.glove_epochs, ["--x-max", "10"]) if kind == "glove" else (a.epochs, [])
    said = subprocess.run([os.path.join(a.build, "bin/vectors"), "train", "--text", a.text, "--out", to, "--force",
                           "--no-progress", "--kind", kind,
                           "--dim", "100", "--window", "5", "--negatives", "5", "--sample", "1e-4",
                           "--epochs", str(epochs), "--threads", str(a.threads), "--seed", str(seed)] + more,
                          check=True, capture_output=True, text=True)
    counting = re.findall(r"counted in ([\d.]+) s", said.stderr)[0]
    return [float(x) for x in said.stdout.split()[1::2] + [counting]]


def word2vec(a, kind, to, threads):
    return subprocess.run([a.word2vec, "-train", a.text, "-output", to, "-cbow", str(int(kind == "cbow")), "-size",
                           "100", "-window", "5", "-negative", "5", "-hs", "0", "-sample", "1e-4", "-iter",
                           str(a.epochs), "-threads", str(threads), "-min-count", "5", "-binary", "0"],
                          check=True, capture_output=True, text=True).stdout


def glove_program(a, name):
    return os.path.join(a.glove, name)


def glove_files(a):
    return [os.path.join(a.out, "glove." + x) for x in ("vocab", "counts", "mixed")]


def glove_count(a, seed):
    """Runs the first three programs as in demo.sh; pairs are counted once and shuffled for each seed."""
    vocab, counts, mixed = glove_files(a)
    if not os.path.exists(counts):
        with open(a.text) as f, open(vocab, "w") as g:
            subprocess.check_call([glove_program(a, "vocab_count"), "-min-count", "5", "-verbose", "0"], stdin=f,
                                  stdout=g)
        with open(a.text) as f, open(counts + ".new", "w") as g:
            subprocess.check_call([glove_program(a, "cooccur"), "-memory", "2", "-vocab-file", vocab, "-verbose", "0",
                                   "-window-size", "5", "-overflow-file", os.path.join(a.out, "overflow")],
                                  stdin=f, stdout=g)
        os.rename(counts + ".new", counts)
    with open(counts) as f, open(mixed, "w") as g:
        subprocess.check_call([glove_program(a, "shuffle"), "-memory", "2", "-verbose", "0", "-seed", str(seed),
                               "-temp-file", os.path.join(a.out, "shuffle")], stdin=f, stdout=g)


def glove(a, seed, to):
    """The seconds per iteration, from the first iteration line to the last."""
    vocab, _, mixed = glove_files(a)
    p = subprocess.Popen([glove_program(a, "glove"), "-save-file", to[:-4], "-threads", str(a.threads), "-input-file",
                          mixed, "-x-max", "10", "-iter", str(a.glove_epochs), "-vector-size", "100", "-binary", "0",
                          "-vocab-file", vocab, "-verbose", "2", "-seed", str(seed)], stderr=subprocess.PIPE, text=True)
    ends = [time.time() for line in p.stderr if "iter:" in line]
    if p.wait():
        sys.exit("glove failed")
    os.rename(to[:-4] + ".txt", to)
    return (ends[-1] - ends[0]) / max(1, len(ends) - 1)


def fasttext(a, seed, to):
    from fasttext import FastText as f  # train_unsupervised() of 0.9.3 takes no seed, the class below it does
    args = dict(f.unsupervised_default, input=a.text, model="skipgram", dim=100, ws=5, neg=5, t=1e-4, epoch=a.epochs,
                thread=a.threads, minCount=5, lr=0.05, minn=3, maxn=6, seed=seed, verbose=0)
    asked = f._build_args(args, list(args))
    m = f._FastText(args=asked)
    f.fasttext.train(m.f, asked)
    with open(to, "w") as g:
        g.write("%d 100\n" % len(m.words))
        for w in m.words:
            g.write(w + " " + " ".join("%.6g" % x for x in m[w]) + "\n")


def shuffled(a, text, seed):
    words, to = open(text, encoding="utf-8").read().split(), os.path.join(a.out, "text.%d" % seed)
    lines = [words[i:i + 1000] for i in range(0, len(words), 1000)]
    random.Random(seed).shuffle(lines)
    with open(to, "w", encoding="utf-8") as f:
        f.writelines(" ".join(x) + "\n" for x in lines)
    return to


def is_there(a, kind):
    if kind in ("skipgram", "cbow"):
        return bool(a.word2vec)
    if kind == "glove":
        return bool(a.glove)
    try:
        import fasttext  # noqa: F401
        return True
    except ImportError:
        return False


def score(a, path):
    values = []
    for name, file in FILES:
        command = "analogy" if name == "questions-words" else "similarity"
        text = subprocess.run([os.path.join(a.build, "bin/vectors"), command, "--vectors", path, "-q",
                               os.path.join(a.tests, file)], check=True, capture_output=True, text=True).stdout
        values.append(float(text.strip().splitlines()[-1].split()[1]))
    return values


def known(out):
    path = os.path.join(out, "results.tsv")
    rows = [x.split("\t") for x in open(path).read().splitlines()] if os.path.exists(path) else []
    return {(r[0], r[1], int(r[2])): [float(x) for x in r[3:8]] for r in rows}


def run(a):
    os.makedirs(a.out, exist_ok=True)
    kinds, missing, text = a.kinds.split(","), 0, a.text
    for kind in kinds:
        for seed in map(int, a.seeds.split(",")):
            a.text = shuffled(a, text, seed) if a.shuffle else text
            for who in a.who.split(","):
                if (kind, who, seed) in known(a.out):
                    continue
                if who == "original" and not is_there(a, kind):
                    missing += 1
                    continue
                began, to = time.time(), os.path.join(a.out, "%s.%s.%d.vec" % (kind, who, seed))
                if who == "ours":
                    ours(a, kind, seed, to)
                elif kind == "glove":
                    glove_count(a, seed)
                    glove(a, seed, to)
                elif kind == "fasttext":
                    fasttext(a, seed, to)
                else:
                    word2vec(a, kind, to, 11 + seed)
                seconds, values = time.time() - began, score(a, to)
                if not a.keep:
                    os.remove(to)
                with open(os.path.join(a.out, "results.tsv"), "a") as f:
                    line = [kind, who, str(seed)] + ["%.4f" % x for x in values] + ["%.0f" % seconds]
                    f.write("\t".join(line) + "\n")
                print(kind, who, seed, *values, "%.0f s" % seconds, flush=True)
    if missing and not any(who == "original" for _, who, _ in known(a.out)):
        print("skipped: word2vec, GloVe and fastText are missing")
        sys.exit(77)


def table(a):
    rows, worse = known(a.out), 0
    print("| | " + " | ".join(name for name, _ in FILES) + " |\n|---|" + "---|" * len(FILES))
    for kind in KINDS:
        have = {who: [v for (k, w, _), v in rows.items() if (k, w) == (kind, who)] for who in ("ours", "original")}
        for who, label in (("ours", "`vectors`"), ("original", "the original")):
            cells = []
            for i in range(len(FILES)):
                v = [100 * x[i] for x in have[who]]
                cells.append("" if not v else "%.1f" % statistics.mean(v) if len(v) < 2 else
                             "%.1f ± %.1f" % (statistics.mean(v), statistics.stdev(v)))
                if who == "ours" and v and len(have["original"]) > 1:
                    o = [100 * x[i] for x in have["original"]]
                    if statistics.mean(v) < statistics.mean(o) - statistics.stdev(o):
                        cells[-1] += " ↓"
                        worse += 1
            print("| %s, %s, %d seeds | " % (kind, label, len(have[who])) + " | ".join(cells) + " |")
    sys.exit(worse > 0)


def rate_of_fasttext(a, to):
    """Runs in a separate process, because the rate is printed to standard error."""
    code = ("import fasttext; fasttext.train_unsupervised(%r, model='skipgram', dim=100, ws=5, neg=5, t=1e-4, "
            "epoch=%d, thread=%d, minCount=5, lr=0.05, minn=3, maxn=6, verbose=2)" % (a.text, a.epochs, a.threads))
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stderr
    return float(re.findall(r"words/sec/thread: *(\d+)", said)[-1])


def rates_of_original(a, kind, to):
    """Words per second in training and, for GloVe, seconds of counting."""
    if kind == "fasttext":
        return rate_of_fasttext(a, to), 0
    if kind != "glove":
        return 1000 * float(re.findall(r"Words/thread/sec: ([\d.]+)k", word2vec(a, kind, to, 1))[-1]), 0
    for path in glove_files(a):
        if os.path.exists(path):
            os.remove(path)
    began = time.time()
    glove_count(a, 1)
    counted = time.time() - began
    return a.words / glove(a, 1, to), counted


def speed(a):
    os.makedirs(a.out, exist_ok=True)
    to, there = os.path.join(a.out, "speed.vec"), 0
    print("| words per second | `vectors`, one thread | two | speedup | the original, one thread | Tenon / original |")
    print("|---|---|---|---|---|---|")
    for kind in a.kinds.split(","):
        one, two, original, counting, counts = [], [], [], [], []
        for _ in range(a.rounds):
            for a.threads, rates in ((1, one), (2, two)):
                words, _, rate, counted = ours(a, kind, 1, to)
                rates.append(rate)
                if a.threads == 1:
                    counting.append(counted)
                    a.words = words / (a.glove_epochs if kind == "glove" else a.epochs)
            a.threads = 1
            if is_there(a, kind):
                there += 1
                rate, counted = rates_of_original(a, kind, to)
                original.append(rate), counts.append(counted)
        best, theirs = max(one), max(original, default=0)
        print("| %s | %.0f | %.0f | %.2f | %s |" % (kind, best, max(two), max(two) / best,
              "%.0f | %.2f" % (theirs, best / theirs) if theirs else "not there |"), flush=True)
        if kind == "glove" and counts:
            print("\nGloVe counts in %.1f s, its authors' programs in %.1f s: %.2f times as fast" %
                  (min(counting), min(counts), min(counts) / min(counting)), flush=True)
    if not there:
        print("skipped: word2vec, GloVe and fastText are missing")
        sys.exit(77)


p = argparse.ArgumentParser()
sub = p.add_subparsers(dest="what", required=True)
r = sub.add_parser("run")
r.add_argument("out")
for name in ("build", "text", "tests"):
    r.add_argument("--" + name, required=True)
for name, kind, value in (("word2vec", str, None), ("glove", str, None), ("kinds", str, ",".join(KINDS)),
                          ("who", str, "ours,original"), ("seeds", str, "1,2,3"), ("epochs", int, 5),
                          ("glove-epochs", int, 15), ("threads", int, 2)):
    r.add_argument("--" + name, type=kind, default=value)
r.add_argument("--shuffle", action="store_true", help="shuffle the lines of the text by seed")
r.add_argument("--keep", action="store_true", help="keep the vectors: OUT/KIND.WHO.SEED.vec")
t = sub.add_parser("table")
t.add_argument("out")
v = sub.add_parser("speed")
v.add_argument("out")
for name in ("build", "text"):
    v.add_argument("--" + name, required=True)
for name, kind, value in (("word2vec", str, None), ("glove", str, None), ("kinds", str, "skipgram,cbow,fasttext,glove"),
                          ("rounds", int, 2), ("epochs", int, 1), ("glove-epochs", int, 3)):
    v.add_argument("--" + name, type=kind, default=value)
a = p.parse_args()
{"run": run, "table": table, "speed": speed}[a.what](a)

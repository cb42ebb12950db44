#!/usr/bin/env python3
"""Compares metrics of labels, numbers and tags with scikit-learn, SciPy and seqeval: random cases, with ties, constants
and invalid chunks.

    tests/outside/scores.py build/libtenon.so [CASES]      a Python with scikit-learn, scipy and seqeval
                                                           (tested with 1.9.1, 1.17.1 and 1.2.2)

Exits with 77 if one of them is missing."""
import ctypes
import math
import sys
import warnings

try:
    import numpy as np
    from scipy import stats
    from seqeval import metrics as seqeval
    from seqeval.scheme import IOB2
    from sklearn import metrics as sklearn
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)

warnings.simplefilter("ignore")
lib = ctypes.CDLL(sys.argv[1])
P, I, D, S = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double, ctypes.c_char_p


class Text(ctypes.Structure):
    _fields_ = [("at", S), ("bytes", ctypes.c_size_t)]


class Score(ctypes.Structure):
    _fields_ = [("gold", I), ("found", I), ("correct", I), ("precision", D), ("recall", D), ("f1", D)]


class Accuracy(ctypes.Structure):
    _fields_ = [("right", I), ("counted", I)]


for name, out, args in [("tn_f1", D, [ctypes.c_int, I, P, P]), ("tn_matthews", D, [I, P, P]),
                        ("tn_pearson", D, [I, P, P]), ("tn_spearman", D, [I, P, P]),
                        ("tn_entities_new", P, [ctypes.c_int]), ("tn_entities_free", None, [P]),
                        ("tn_entities_add", ctypes.c_int, [P, Text, Text]), ("tn_entities_of", Score, [P, S]),
                        ("tn_entities_end_sentence", None, [P]), ("tn_entities_tokens", Accuracy, [P])]:
    f = getattr(lib, name)
    f.restype, f.argtypes = out, args


def equal(what, case, ours, theirs):
    if not (math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-13) or (math.isnan(ours) and math.isnan(theirs))):
        print(f"WRONG: {what}, case {case}: {ours!r}, not {theirs!r}")
        sys.exit(1)


def two(f, x, y, *first):
    return f(*first, len(x), x.ctypes.data, y.ctypes.data)


def labels(case, rng):
    n, kinds = int(rng.integers(1, 60)), int(rng.integers(1, 7))
    for k, what in ((2, "two labels"), (kinds, "some labels")):
        gold = rng.integers(0, k, n)
        said = np.where(rng.random(n) < rng.random(), gold, rng.integers(0, k, n))
        if case % 7 == 0:
            gold[:] = gold[0]
        if case % 11 == 0:
            said[:] = said[0]
        gold, said = np.ascontiguousarray(gold, np.int64), np.ascontiguousarray(said, np.int64)
        if k == 2:
            equal("F1, binary", case, two(lib.tn_f1, gold, said, 0), sklearn.f1_score(gold, said, zero_division=0))
        for how, mean in ((1, "micro"), (2, "macro")):
            equal(f"F1, {mean}, {what}", case, two(lib.tn_f1, gold, said, how),
                  sklearn.f1_score(gold, said, average=mean, zero_division=0))
        equal("accuracy", case, two(lib.tn_f1, gold, said, 1), sklearn.accuracy_score(gold, said))
        equal(f"Matthews, {what}", case, two(lib.tn_matthews, gold, said), sklearn.matthews_corrcoef(gold, said))


def numbers(case, rng):
    n = int(rng.integers(2, 60))
    x = rng.integers(0, 6, n).astype(float) / 2 if case % 2 else rng.normal(size=n)  # with and without ties
    y = x * rng.normal() + rng.normal(size=n) if case % 3 else rng.integers(-2, 3, n).astype(float)
    if case % 13 == 0:
        y[:] = 0.1
    if case % 5 == 0:
        x, y = x * 1e200, y * 1e-200
    equal("Pearson", case, two(lib.tn_pearson, x, y), stats.pearsonr(x, y).statistic)
    equal("Spearman", case, two(lib.tn_spearman, x, y), stats.spearmanr(x, y).statistic)


def text(s):
    return Text(s.encode(), len(s.encode()))


def tags(case, rng):
    pool = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-x-y", "I-x-y"] + (["B", "I"] if case % 4 == 0 else [])
    gold, said = [], []
    for _ in range(int(rng.integers(1, 8))):
        gold.append([str(rng.choice(pool)) for _ in range(int(rng.integers(1, 12)))])
        said.append([g if rng.random() < 0.7 else str(rng.choice(pool)) for g in gold[-1]])
    for rule, how in ((0, {}), (1, {"mode": "strict", "scheme": IOB2})):
        if rule == 0 and case % 4 == 0:
            continue  # seqeval treats a tag without a type as type "_"
        e = lib.tn_entities_new(rule)
        for g, s in zip(gold, said):
            for a, b in zip(g, s):
                lib.tn_entities_add(e, text(a), text(b))
            lib.tn_entities_end_sentence(e)
        all_of, right = lib.tn_entities_of(e, None), lib.tn_entities_tokens(e)
        for ours, f in ((all_of.precision, seqeval.precision_score), (all_of.recall, seqeval.recall_score),
                        (all_of.f1, seqeval.f1_score)):
            equal(f"{f.__name__}, rule {rule}", case, ours, f(gold, said, zero_division=0, **how))
        equal("accuracy of tags", case, right.right / right.counted, seqeval.accuracy_score(gold, said))
        try:
            table = seqeval.classification_report(gold, said, output_dict=True, zero_division=0, **how)
        except ValueError:
            table = {}  # the result of seqeval without any entity
        for kind, row in table.items():
            if " avg" in kind:
                continue
            one = lib.tn_entities_of(e, kind.encode())
            for ours, theirs in ((one.precision, "precision"), (one.recall, "recall"), (one.f1, "f1-score"),
                                 (one.gold, "support")):
                equal(f"{theirs} of {kind}, rule {rule}", case, ours, row[theirs])
        lib.tn_entities_free(e)


cases = int(sys.argv[2]) if len(sys.argv) > 2 else 200
for case in range(cases):
    rng = np.random.default_rng(case)
    labels(case, rng), numbers(case, rng), tags(case, rng)
print(f"equal to scikit-learn, SciPy and seqeval: {cases} cases each of labels, numbers and tags")

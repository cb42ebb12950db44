#!/usr/bin/env python3
"""Writes golden/answers.json: random answers with their scores by SQuAD's rules, for tests/unit/data/test_answers.c.

    python3 tests/golden/answers.py

Needs only Python 3. The rules are those of the scripts evaluate-v1.1.py and evaluate-v2.0.py: lower case, no
punctuation, no articles, white space as one blank; words compared as bags; the best of several correct answers; for 2.0
also the best threshold on the probability of no answer.
"""
import collections
import json
import os
import random
import re
import string

random.seed(20)
WORDS = ("the The a A an AN cat's U.S. e-mail naïve Straße ΟΔΟΣ İstanbul 東京 ½ №5 x_y _ — the—end a\u0300 1,000 (see) "
         "[1] $5 100% « » … \u00a0 \u2003 \u3000 \u200b theory an-other 'a' \"the\" then Athe a.b.c ² ٣ ǅ "
         "ﬁn").split(" ")


def normal(s):
    s = "".join(c for c in s.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", s).split())


def f1(said, right, v2):
    a, b = normal(said).split(), normal(right).split()
    if v2 and (not a or not b):
        return float(a == b)
    same = sum((collections.Counter(a) & collections.Counter(b)).values())
    if not same:
        return 0.0
    p, r = same / len(a), same / len(b)
    return 2 * p * r / (p + r)


def text():
    return random.choice([" ", "  ", "\t", "\n"]).join(random.choice(WORDS) for _ in range(random.randint(0, 6)))


def near(s):
    words = s.split(" ")
    random.shuffle(words)
    return " ".join(w.upper() if random.random() < 0.3 else w for w in words if random.random() < 0.8)


rows = []
for _ in range(1000):
    right = [text() for _ in range(random.randint(1, 3))]
    said = near(random.choice(right)) if random.random() < 0.7 else text()
    one = (max(normal(said) == normal(r) for r in right), max(f1(said, r, False) for r in right))
    kept = [r for r in right if normal(r)] or [""]
    two = (max(normal(said) == normal(r) for r in kept), max(f1(said, r, True) for r in kept))
    rows.append({"said": said, "right": right, "words": normal(said), "v1": [int(one[0]), one[1]],
                 "v2": [int(two[0]), two[1]]})

thresholds = []
for n in (1, 2, 7, 50, 200):
    none = [random.randint(0, 20) / 20 for _ in range(n)]  # with ties
    answerable = [random.random() < 0.6 for _ in range(n)]
    empty = [random.random() < 0.3 for _ in range(n)]
    value = [(random.random() if a and not e else float(not a and e)) for a, e in zip(answerable, empty)]
    best = now = sum(not a for a in answerable)
    at = 0.0
    for i in sorted(range(n), key=lambda i: none[i]):
        now += value[i] if answerable[i] else 0 if empty[i] else -1
        if now > best:
            best, at = now, none[i]
    thresholds.append({"none": none, "value": value, "empty": empty, "answerable": answerable,
                       "best": 100 * best / n, "at": at})

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "answers.json")
with open(path, "w") as f:
    json.dump({"made by": "tests/golden/answers.py", "rows": rows, "thresholds": thresholds}, f, ensure_ascii=False,
              separators=(",", ":"))
    f.write("\n")
print(len(rows), os.path.getsize(path))

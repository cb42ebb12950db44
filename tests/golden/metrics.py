#!/usr/bin/env python3
"""Writes metrics.json: small corpora and the lines that sacreBLEU prints for them.

    python3 -m venv venv && venv/bin/pip install sacrebleu==2.5.1 && venv/bin/python tests/golden/metrics.py
"""
import json
import os
import random

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER

assert sacrebleu.__version__ == "2.5.1"
random.seed(7)

WORDS = ("the a cat dog sat on mat, hat. 1,000 3.14 -5 10-12 (see) [1] \"quoted\" don't it's U.S. e-mail a/b x=y "
         "100% $5 ÄPFEL Straße ΟΔΟΣ ΣΑΣ İstanbul naïve 東京 «oui» … – 1.000,5 ½ №5 ©2020 😀 &amp; &quot;so&quot; "
         "a&lt;b &amp;lt; <skipped> .5 5. ,, ... ?! :-) CO₂ +1 ǅ ﬁn").split()


def line(n):
    return " ".join(random.choice(WORDS) for _ in range(n))


def noisy(text):
    words = text.split()
    for _ in range(random.randint(0, 4)):
        if not words:
            break
        i = random.randrange(len(words))
        how = random.randint(0, 3)
        if how == 0:
            words.pop(i)
        elif how == 1:
            words.insert(i, random.choice(WORDS))
        elif how == 2:
            words[i] = random.choice(WORDS)
        else:  # move a phrase, which TER counts as a shift
            j = random.randint(i, min(len(words), i + 3))
            piece = words[i:j]
            del words[i:j]
            at = random.randint(0, len(words))
            words[at:at] = piece
    return " ".join(words)


def case(name, outputs, references):
    """references: a list of references for each line."""
    columns = [list(c) for c in zip(*references)]
    lines = []
    for tokenize in ("13a", "intl", "none"):
        for lowercase in (False, True):
            metric = BLEU(tokenize=tokenize, lowercase=lowercase)
            score = metric.corpus_score(outputs, columns)
            lines.append(score.format(width=4, signature=str(metric.get_signature())))
    for word_order in (0, 2):
        for lowercase in (False, True):
            metric = CHRF(word_order=word_order, lowercase=lowercase)
            score = metric.corpus_score(outputs, columns)
            lines.append(score.format(width=4, signature=str(metric.get_signature())))
    for case_sensitive in (False, True):
        metric = TER(case_sensitive=case_sensitive)
        score = metric.corpus_score(outputs, columns)
        lines.append(score.format(width=4, signature=str(metric.get_signature())))
    return {"name": name, "outputs": outputs, "references": references, "lines": lines}


cases = []
refs = [line(random.randint(1, 25)) for _ in range(30)]
cases.append(case("one reference", [noisy(r) for r in refs], [[r] for r in refs]))
cases.append(case("the same", refs, [[r] for r in refs]))
cases.append(case("two references", [noisy(r) for r in refs], [[noisy(r), noisy(r)] for r in refs]))
cases.append(case("three references", [noisy(r) for r in refs], [[noisy(r), noisy(r), noisy(noisy(r))] for r in refs]))
cases.append(case("nothing in common", ["x y z"], [["a b c d e"]]))
cases.append(case("an empty output", [""], [["a b c"]]))
cases.append(case("an empty reference", ["a b c"], [[""]]))
cases.append(case("nothing at all", [""], [[""]]))
cases.append(case("one word", ["Hello"], [["hello"]]))
cases.append(case("smoothed", ["the cat sat here and there", "no no"], [["the cat lay here and there"], ["no yes"]]))
cases.append(case("white space", ["  a\u00a0b\tc \u3000d ", "e\u2028f"], [["a b c d"], ["e f\u0085"]]))
long = line(150).split()
moved = long[100:108] + long[:40] + long[60:100] + long[40:60] + long[108:]
cases.append(case("a long line", [" ".join(moved)], [[" ".join(long)]]))
same = "a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b a b"
cases.append(case("many shifts", [same + " c"], [["c " + same.replace("a b a b", "b a a b")]]))
cases.append(case("lengths apart", ["one two three"], [[line(120) + " one two three"]]))
cases.append(case("lengths apart, the other way", [line(120)], [["one two"]]))

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "metrics.json")
with open(path, "w", encoding="utf-8") as f:
    json.dump({"made_by": "sacrebleu " + sacrebleu.__version__, "cases": cases}, f, ensure_ascii=False, indent=1)
    f.write("\n")

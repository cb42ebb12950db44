#!/usr/bin/env python3
"""Compares `bert score answers` with SQuAD's rules: 1,000 random answers with articles, punctuation and Unicode, also
to questions without answer, and the best thresholds.

    tests/outside/answers_check.py build/bin/bert squad_metrics.py

squad_metrics.py: transformers/data/metrics/squad_metrics.py of transformers 4.x, which contains evaluate-v2.0's
functions (tested with 4.46.3; 5 does not have it). Exits with 77 if it is missing."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

if len(sys.argv) < 3 or not os.path.exists(sys.argv[2]):
    print("skipped: squad_metrics.py of transformers 4.x is missing")
    sys.exit(77)

source = re.sub(r"^from \.\.\..*$|^logger = .*$", "", open(sys.argv[2], encoding="utf8").read(), flags=re.M)
theirs = {"__name__": "squad_metrics"}
exec(compile(source, sys.argv[2], "exec"), theirs)

random.seed(19)
WORDS = ("the The a A an AN cat's U.S. e-mail naïve Straße ΟΔΟΣ İstanbul 東京 ½ №5 x_y — the—end 1,000 (see) [1] $5 100% "
         "« » … theory an-other 'a' \"the\" Athe a.b.c ² ٣ ǅ ﬁn dog ran home").split(" ")


class Example:
    def __init__(self, number, answers):
        self.qas_id, self.answers = f"q{number}", [{"text": a} for a in answers]


def text(least):
    return random.choice([" ", "  ", "\u00a0", "\u3000"]).join(random.choice(WORDS)
                                                                for _ in range(random.randint(least, 6)))


def near(s):
    words = s.split(" ")
    random.shuffle(words)
    return " ".join(w.upper() if random.random() < 0.3 else w for w in words if random.random() < 0.8)


def ours(folder, examples, said, none=None):
    paragraphs = []
    for e in examples:
        context, answers = "", []
        for a in e.answers:
            answers.append({"text": a["text"], "answer_start": len(context)})
            context += a["text"] + " "
        question = {"id": e.qas_id, "question": "what", "answers": answers, "is_impossible": not answers}
        paragraphs.append({"context": context or "nothing", "qas": [question]})
    files = {"gold.json": {"data": [{"paragraphs": paragraphs}]}, "said.json": said, "none.json": none}
    for name, value in files.items():
        json.dump(value, open(os.path.join(folder, name), "w", encoding="utf8"), ensure_ascii=random.random() < 0.5)
    command = [os.path.abspath(sys.argv[1]), "score", "answers", "gold.json", "said.json", "--json"]
    return json.loads(subprocess.run(command + (["--none", "none.json"] if none else []), cwd=folder, check=True,
                                     capture_output=True, text=True).stdout)


def equal(what, a, b):
    if abs(a - b) > 1e-4:
        print(f"WRONG: {what}: {a}, not {b}")
        sys.exit(1)


with tempfile.TemporaryDirectory() as folder:
    for impossible in (0.0, 0.3):
        examples = [Example(i, [] if random.random() < impossible else [text(1) for _ in range(random.randint(1, 3))])
                    for i in range(1000)]
        if not impossible:  # an answer of articles only counts as an answer in 1.1, not in 2.0
            for e in examples:
                e.answers = [a for a in e.answers if theirs["normalize_answer"](a["text"])] or [{"text": "dog"}]
        said, none = {}, {}
        for e in examples:
            right = random.choice(e.answers)["text"] if e.answers else ""
            said[e.qas_id] = near(right) if random.random() < 0.7 else text(0)
            none[e.qas_id] = round(random.random(), 2)  # with ties
        exact, f1 = theirs["get_raw_scores"](examples, said)
        mean = theirs["make_eval_dict"](exact, f1)
        got = ours(folder, examples, said)
        equal("em", got["em"], mean["exact"]), equal("f1", got["f1"], mean["f1"])
        if impossible:
            has = {e.qas_id: bool(e.answers) for e in examples}
            got = ours(folder, examples, said, none)
            for name, scores in (("em", exact), ("f1", f1)):
                equal("best " + name, got[name], theirs["find_best_thresh"](said, scores, none, has)[0])
print("equal to evaluate-v2.0: 1,000 answers, and 1,000 with unanswerable questions and the best thresholds")

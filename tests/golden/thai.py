#!/usr/bin/env python3
"""Writes what the rules of WangchanBERTa's authors make of texts, those that need no dictionary of words.

    python3 tests/golden/thai.py

Tested with thaixtransformers 0.1.0, of which only the file preprocess.py is used. Writes thai.json: texts and results.
extras/tests/unit/test_thai.c reads it.
"""
import json
import os
import random
import sys
import types

for name, members in {"emoji": ["emoji_count"], "pythainlp": [], "pythainlp.tokenize": ["word_tokenize"],
                      "thaixtransformers.core": [], "thaixtransformers.roberta": []}.items():
    module = types.ModuleType(name)  # not installed: only the other rules use them
    for member in members:
        setattr(module, member, None)
    sys.modules[name] = module
import importlib.util  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = list("()[]{}") * 4 + list(" \n\t\\&;#'\".,!?-@<>") + [
    "  ", "<br />", "&lt;", "&gt;", "&apos;", "&amp;", "&nbsp;", "&quot;", "#39;", "#146;", "#36;", "\\n", "\\\"",
    " @.@ ", " @-@ ", " @,@ ", "&#65;", "&#x0e01;", "&#X41", "&#128;", "&#0;", "&#55296;", "&#1114112;",
    "&#99999999999;", "&#11;", "&#13;", "&#x;", "&#", "555555", "aaaa", "AAAAbbb", "\u0130", "\u00c9", "\u0e01\u0e32",
    "\u0e01\u0e32\u0e32\u0e32\u0e32\u0e32", "\u0e5a", "\u0e59", "\u0e01", "\u0e19\u0e49\u0e33", "\u3000", "\u00a0",
    "\u001c", "\U0001f600" * 4, "Hello", "x", "7"]
TEXTS = ["", " ", "\n\n", "hey() whats[;] up{*&} man(hey)", "Anbsp;amp;nbsp;B @.@ ", "\u0e01" + "\u0e32" * 5,
         "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35   :D", "((((", "))))", "(((a)))", "( (;) b (.) )", "a,b", "[(;)]",
         "( a )", "\u0e23\u0e32\u0e04\u0e32 1,200 \u0e1a\u0e32\u0e17 (\u0e23\u0e27\u0e21 VAT 7%)!!!!!"]


def main():
    source = importlib.util.find_spec("thaixtransformers").submodule_search_locations[0]
    spec = importlib.util.spec_from_file_location("preprocess", os.path.join(source, "preprocess.py"))
    rules = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rules)
    chance = random.Random(1)
    texts = TEXTS + ["".join(chance.choices(PARTS, k=chance.randint(1, 40))) for _ in range(600)]
    answers = [rules.process_transformers(text, tok_func=lambda t: [t], post_rules=[]) for text in texts]
    with open(os.path.join(HERE, "thai.json"), "w") as f:
        json.dump({"texts": texts, "answers": answers}, f, indent=0)


main()

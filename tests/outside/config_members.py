#!/usr/bin/env python3
"""Does each model's table of config.json name every member that transformers' config classes have?

    tests/outside/config_members.py [ROOT]

A member that changes numbers must be honoured, or refused where its value is another than the one that is done; one
that has no say in the numbers is a row of its own (TN_HF_ANY), or stands in BASE below. Seen with transformers 5.23.0.
Exits with 77 where transformers is not there.
"""
import dataclasses
import os
import re
import sys

try:
    import transformers
    from transformers import (AlbertConfig, BertConfig, DeiTConfig, DistilBertConfig, ElectraConfig, GPT2Config,
                              LlamaConfig, MistralConfig, Qwen2Config, ReformerConfig, RobertaConfig,
                              RobertaPreLayerNormConfig, ViTConfig, XLMRobertaConfig)
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)

# Members of the class that all share, and what stands in every file: none of them changes a number.
BASE = {
    "architectures": "read by nobody here: the weights' names decide",
    "chunk_size_feed_forward": "the same sums in pieces",
    "dtype": "everything is f32 here; the file's types are converted",
    "id2label": "of a head that is not read",
    "label2id": "of a head that is not read",
    "output_hidden_states": "what is returned",
    "problem_type": "of a head that is not read",
    "return_dict": "what is returned",
    "transformers_version": "who wrote it",
}
# Not fields of the class, but changing what it computes: every table must name them.
ALWAYS = ("model_type", "per_layer_config", "quantization_config")

TABLES = {  # a file, and the name of a table in it
    ("models/bert/bert_formats.c", "bert_rows"): (
        BertConfig, RobertaConfig, RobertaPreLayerNormConfig, XLMRobertaConfig),
    ("models/bert/bert_formats.c", "electra_rows"): (ElectraConfig,),
    ("models/bert/bert_formats.c", "albert_rows"): (AlbertConfig,),
    ("models/bert/bert_formats.c", "distilbert_rows"): (DistilBertConfig,),
    ("models/gpt/gpt.c", "members"): (GPT2Config,),
    ("models/llama/llama_config.c", "rows"): (LlamaConfig, MistralConfig, Qwen2Config),
    ("models/vit/vit_config.c", "rows"): (ViTConfig, DeiTConfig),
    ("models/reformer/reformer_config.c", "rows"): (ReformerConfig,),
}


def keys(path, table):
    """The top-level members that the rows of a table name, those of the macros among them."""
    text = open(path, encoding="utf-8").read()
    start = text.index("static const tn_hf_row %s[]" % table)
    rows = text[start:text.index("\n};", start)]
    for name, body in re.findall(r"#define ([A-Z_0-9]+)(?:\([^)]*\))?((?:.*\\\n)*.*)", text):
        if re.search(r"\b%s\b" % name, rows):
            rows += body
    found = re.findall(r'\{"([^"]+)", TN_HF_', rows) + re.findall(r'\b(?:TN_HF|PART|SIZE)\("([^"]+)"', rows)
    for also in re.findall(r'\.also = "([^"]+)"', rows):
        found += also.split()
    found += ["rope_parameters." + name for name in re.findall(r'NESTED\("([^"]+)"\)', rows)]
    return {key.split(".")[0] for key in found}


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    wrong = 0
    for (path, table), classes in TABLES.items():
        there = keys(os.path.join(root, path), table)
        for cls in classes:
            members = {f.name for f in dataclasses.fields(cls)} | set(ALWAYS)
            for name in sorted(members - there - set(BASE)):
                print("%s, %s: %s has '%s', which no row names" % (path, table, cls.__name__, name))
                wrong += 1
    if not wrong:
        print("transformers %s: every member of %s has a row" %
              (transformers.__version__, ", ".join(c.__name__ for t in TABLES.values() for c in t)))
    return wrong != 0


sys.exit(main())

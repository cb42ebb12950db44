#!/usr/bin/env python3
"""Checks that each model's table of config.json names every member of transformers' config classes.

    tests/outside/config_members.py [ROOT]

A member that changes results must be supported, or rejected unless it has the supported value; a member that does not
change results has a row with TN_HF_ANY or is listed in BASE below. Tested with transformers 5.24.0. Exits with 77 if
transformers is missing.
"""
import dataclasses
import os
import re
import sys

try:
    import transformers
    from transformers import (AlbertConfig, BartConfig, BertConfig, CamembertConfig, DebertaV2Config, DeiTConfig,
                              DistilBertConfig, ElectraConfig, Gemma2Config, Gemma3TextConfig, GPT2Config, GPTJConfig,
                              GPTNeoXConfig, LlamaConfig, M2M100Config, MarianConfig, MistralConfig, MixtralConfig,
                              Olmo2Config, Phi3Config, Qwen2Config, Qwen3Config, Qwen3MoeConfig, ReformerConfig,
                              RobertaConfig, RobertaPreLayerNormConfig, SmolLM3Config, ViTConfig, XLMRobertaConfig)
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)

# Members of the common base class, and members of every file: none of them changes results.
BASE = {
    "architectures": "not used: the names of the weights decide",
    "chunk_size_feed_forward": "the same sums, computed in chunks",
    "dtype": "computations are f32; the dtypes of the file are converted",
    "id2label": "for a head that is not read",
    "label2id": "for a head that is not read",
    "output_hidden_states": "selects return values",
    "problem_type": "for a head that is not read",
    "return_dict": "selects return values",
    "transformers_version": "version of the writer",
}
ALWAYS = ("model_type",)  # not a field of the class; models/files/hf_config.c rejects others for all models

TABLES = {  # (file, names of tables in it): config classes
    ("models/bert/bert_formats.c", "rows_of_all common"): (
        BertConfig, CamembertConfig, RobertaConfig, RobertaPreLayerNormConfig, XLMRobertaConfig),
    ("models/bert/bert_formats.c", "rows_of_all common electra_rows"): (ElectraConfig,),
    ("models/bert/bert_formats.c", "rows_of_all common albert_rows"): (AlbertConfig,),
    ("models/bert/bert_formats.c", "rows_of_all distilbert_rows"): (DistilBertConfig,),
    ("models/bert/bert_formats.c", "rows_of_all common deberta_rows"): (DebertaV2Config,),
    ("models/gpt/gpt.c", "members"): (GPT2Config,),
    ("models/llama/families.c", "rows_of_all common llama_rows"): (LlamaConfig,),
    ("models/llama/families.c", "rows_of_all common mistral_rows"): (MistralConfig,),
    ("models/llama/families.c", "rows_of_all common qwen2_rows"): (Qwen2Config,),
    ("models/llama/families.c", "rows_of_all common qwen3_rows"): (Qwen3Config,),
    ("models/llama/families.c", "rows_of_all common gemma2_rows"): (Gemma2Config,),
    ("models/llama/families.c", "rows_of_all common gemma3_rows"): (Gemma3TextConfig,),
    ("models/llama/families.c", "rows_of_all common olmo2_rows"): (Olmo2Config,),
    ("models/llama/families.c", "rows_of_all common smollm3_rows"): (SmolLM3Config,),
    ("models/llama/families.c", "rows_of_all common phi3_rows"): (Phi3Config,),
    ("models/llama/families.c", "rows_of_all common mixtral_rows"): (MixtralConfig,),
    ("models/llama/families.c", "rows_of_all common qwen3_moe_rows"): (Qwen3MoeConfig,),
    ("models/llama/families.c", "rows_of_all common neox_rows"): (GPTNeoXConfig,),
    ("models/llama/families.c", "rows_of_all gptj_rows"): (GPTJConfig,),
    ("models/seq2seq/families.c", "rows_of_all common bart_rows"): (BartConfig,),
    ("models/seq2seq/families.c", "rows_of_all common marian_rows"): (MarianConfig,),
    ("models/seq2seq/families.c", "rows_of_all common m2m_rows"): (M2M100Config,),
    ("extras/vit/vit_config.c", "rows"): (ViTConfig, DeiTConfig),
    ("extras/reformer/reformer_config.c", "rows"): (ReformerConfig,),
}


def keys(path, tables):
    """The top-level members in the rows of tables, including those in macros."""
    text = open(path, encoding="utf-8").read()
    rows = ""
    for table in tables.split():
        start = re.search(r"static const tn_hf_row +%s\[\]" % table, text).start()
        rows += text[start:text.index("};\n", start)]
    for name, body in 2 * re.findall(r"#define ([A-Z_0-9]+)(?:\([^)]*\))?((?:.*\\\n)*.*)", text):
        if re.search(r"\b%s\b" % name, rows):
            rows += body
    found = [key for keys in re.findall(r'\{[\s\\]*"([^"]+)",[\s\\]*TN_HF_', rows) for key in keys.split()]
    found += re.findall(r'\b(?:TN_HF|TN__IDS|PART|SIZE|CAP|EPS|TOKEN|PROBABILITY|COUNT)\("([^"]+)"', rows)
    for several in re.findall(r'(?:\.also = |\bTN__UNUSED\(\s*)((?:"[^"]+"[\s\\]*)+)', rows):
        found += several.replace('"', " ").split()
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

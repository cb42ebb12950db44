#!/usr/bin/env python3
"""Writes the token ids of transformers' tokenizers that are made of a SentencePiece model.

    python3 tests/golden/spm_classes.py

Tested with transformers 5.24.0 and sentencepiece 0.2.3. Writes spm_classes/<name>, folders with a small model and a
config.json: DeBERTa's, CamemBERT's, XLM-RoBERTa's, and "wangchan", a CamemBERT whose model has the user-defined symbols
<mask> and <_>; and spm_classes/answers.json: the ids of texts and of pairs. tests/unit/data/test_spm_classes.c reads
them.
"""
import io
import json
import os
import shutil
import tempfile

import sentencepiece
from transformers import AutoTokenizer

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spm_classes")
LINES = ["The keys to the old cabinets are in the house.", "She sells sea shells; he reads old books, and so on.",
         "Le café est à côté de la gare.", "1, 2, 3: the ship sails at 12.45 (or later)!"] * 8
TEXTS = ["The old  keys are here.", " \t\tshe\nreads [MASK] <mask> books",
         "caf\u00e9 cafe\u0301 \uff21\uff22 x\u3000y", "<s>the</s> [CLS]ship[SEP]", "a<_>b <_> c",
         "\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e the \U0001f600", "", "   ",
         "in\rthe\u00a0house \u00a0 now", "old <pad> [PAD] <unk> [UNK]  <mask>"]
OWN = dict(pad_id=0, bos_id=1, eos_id=2, unk_id=3, pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]",
           unk_piece="[UNK]")
CASES = {
    "deberta": ("spm.model", {"model_type": "deberta-v2"}, {}, OWN),
    "lower": ("spm.model", {}, {"tokenizer_class": "DebertaV2Tokenizer", "do_lower_case": True}, OWN),
    "camembert": ("sentencepiece.bpe.model", {"model_type": "camembert"}, {}, {}),
    "xlm-roberta": ("sentencepiece.bpe.model", {}, {"tokenizer_class": "XLMRobertaTokenizer"}, {}),
    "wangchan": ("sentencepiece.bpe.model", {"model_type": "camembert"}, {}, dict(
        user_defined_symbols=["<mask>", "<_>"])),
}


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    answers = {"texts": TEXTS}
    for name, (file, config, options, more) in CASES.items():
        path = os.path.join(HERE, name)
        os.makedirs(path)
        model = io.BytesIO()
        with tempfile.TemporaryDirectory() as folder:  # the model contains the name of the file of rules
            os.chdir(folder)
            with open("rules.tsv", "w") as rules:  # full-width A and B, ideographic space
                rules.write("FF21\t41\nFF22\t42\n3000\t20\n")
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(LINES), model_writer=model, vocab_size=90, model_type="unigram", minloglevel=2,
                hard_vocab_limit=False, normalization_rule_tsv="rules.tsv", **more)
            os.chdir(HERE)
        with open(os.path.join(path, file), "wb") as f:
            f.write(model.getvalue())
        for other, content in (("config.json", config), ("tokenizer_config.json", options)):
            with open(os.path.join(path, other), "w") as f:
                json.dump(content, f)
        t = AutoTokenizer.from_pretrained(path)
        answers[name] = {"class": type(t).__name__, "size": len(t), "ids": [t(text).input_ids for text in TEXTS],
                         "pair": t(TEXTS[0], TEXTS[1]).input_ids}
        print(name, type(t), len(t), len(model.getvalue()))
    with open(os.path.join(HERE, "answers.json"), "w") as f:
        json.dump(answers, f)


main()

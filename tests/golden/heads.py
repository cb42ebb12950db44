#!/usr/bin/env python3
"""Writes small models with the task heads of Hugging Face's BERT, their outputs, losses and gradients.

    python3 tests/golden/heads.py [DIRECTORY ...]

Needs PyPI's torch 2.15, transformers 5.23 and safetensors. Writes heads/<name>, directories of small models with random
weights, and heads/answers.safetensors: ids, targets, logits, losses and gradients, computed in f64 without dropout.
Opens each given DIRECTORY with the class that its config.json names; no weight may be missing.
"""
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
import transformers
from safetensors.torch import save_file
from transformers import (AlbertConfig, AlbertForSequenceClassification, BertConfig, BertForMultipleChoice,
                          BertForQuestionAnswering, BertForSequenceClassification, BertForTokenClassification,
                          DistilBertConfig, DistilBertForMultipleChoice, ElectraConfig, ElectraForMultipleChoice,
                          ElectraForSequenceClassification, ModernBertConfig, ModernBertForQuestionAnswering,
                          ModernBertForSequenceClassification, RobertaConfig, RobertaForMultipleChoice,
                          RobertaForSequenceClassification)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "heads")
CONFIG = dict(vocab_size=37, hidden_size=18, num_hidden_layers=2, num_attention_heads=3, intermediate_size=23,
              max_position_embeddings=11, type_vocab_size=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
IDS = torch.tensor([[2, 7, 8, 9, 3, 20, 3], [2, 30, 31, 3, 11, 3, 0], [2, 4, 36, 3, 0, 0, 0]])
TYPES = torch.tensor([[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 0, 0, 0, 0]])
CHOICES = torch.stack([IDS, IDS.flip(0), (IDS * 5 + 1) % 37 * (IDS != 0)], 1)
KEPT = ("classifier", "sequence_summary", "qa_outputs", "pooler", "layer.1.output.dense",
        "layer.0.attention.self.query", "word_embeddings", "head.", "layers.1.mlp.Wo", "layers.0.attn.Wo",
        "tok_embeddings")
CASES = {
    "classes": (BertForSequenceClassification, dict(num_labels=5, id2label={i: "l%d" % i for i in range(5)},
                                                    problem_type="single_label_classification"),
                torch.tensor([4, 0, 2])),
    "several": (BertForSequenceClassification, dict(num_labels=3, problem_type="multi_label_classification"),
                torch.tensor([[1., 0, 1], [0, 0, 0], [0, 1, 1]])),
    "number": (BertForSequenceClassification, dict(num_labels=1, problem_type="regression"),
               torch.tensor([0.5, -2.0, 3.25])),
    "tags": (BertForTokenClassification, dict(num_labels=7),
             torch.tensor([[-100, 1, 0, 6, -100, 3, -100], [-100, 2, -100, -100, 5, -100, -100],
                           [-100, 4, 4, -100, -100, -100, -100]])),
    "answers": (BertForQuestionAnswering, {}, torch.tensor([[1, 3], [0, 0], [2, 2]])),
    "choices": (BertForMultipleChoice, {}, torch.tensor([2, 0, 1])),
    "roberta": (RobertaForSequenceClassification, dict(num_labels=4), torch.tensor([3, 0, 2])),
    "albert": (AlbertForSequenceClassification, dict(num_labels=4), torch.tensor([3, 0, 2])),
    "electra": (ElectraForSequenceClassification, dict(num_labels=4), torch.tensor([3, 0, 2])),
    "modern": (ModernBertForSequenceClassification, dict(num_labels=4), torch.tensor([3, 0, 2])),
    "modern-answers": (ModernBertForQuestionAnswering, {}, torch.tensor([[1, 3], [0, 0], [2, 2]])),
    "choices-roberta": (RobertaForMultipleChoice, {}, torch.tensor([2, 0, 1])),
    "choices-distilbert": (DistilBertForMultipleChoice, {}, torch.tensor([2, 0, 1])),
    "choices-electra": (ElectraForMultipleChoice, {}, torch.tensor([2, 0, 1])),
}


def config_of(kind, config):
    if kind.__name__.startswith("Distil"):
        return DistilBertConfig(vocab_size=37, dim=18, n_layers=2, n_heads=3, hidden_dim=23,
                                max_position_embeddings=11, dropout=0.0, attention_dropout=0.0,
                                seq_classif_dropout=0.0)
    if kind.__name__.startswith("Roberta"):  # positions are counted from that of the padding
        return RobertaConfig(**{**config, "max_position_embeddings": 13, "pad_token_id": 0, "type_vocab_size": 1})
    if kind.__name__.startswith("Albert"):
        return AlbertConfig(**config, embedding_size=12, classifier_dropout_prob=0.0, hidden_act="gelu")
    if kind.__name__.startswith("Electra"):
        return ElectraConfig(**config, embedding_size=12, summary_last_dropout=0.0)
    if kind.__name__.startswith("Modern"):
        names = ("hidden_dropout_prob", "attention_probs_dropout_prob", "type_vocab_size")
        return ModernBertConfig(**{k: v for k, v in config.items() if k not in names}, local_attention=4,
                                classifier_pooling="mean", pad_token_id=0, bos_token_id=2, eos_token_id=3)
    return BertConfig(**config)


def main():
    os.makedirs(HERE, exist_ok=True)
    out = {"ids": IDS, "types": TYPES, "choices.ids": CHOICES}
    for name, (kind, more, target) in CASES.items():
        torch.manual_seed(len(name))
        config = {**CONFIG, **more}
        config.setdefault("id2label", {i: "LABEL_%d" % i for i in range(config.pop("num_labels", 2))})
        config.pop("num_labels", None)
        config["label2id"] = {v: k for k, v in config["id2label"].items()}
        m = kind(config_of(kind, config)).eval()
        with torch.no_grad():
            for p in m.parameters():
                p.add_(torch.randn(p.shape) * (0.3 if p.dim() == 1 else 0.2))
            m.get_input_embeddings().weight[0] = 0
        path = os.path.join(HERE, name)
        shutil.rmtree(path, ignore_errors=True)
        m.save_pretrained(path)
        m = m.double()
        ids = CHOICES if name.startswith("choices") else IDS
        types = TYPES[:, None].repeat(1, 3, 1) if name.startswith("choices") else TYPES
        inputs = dict(input_ids=ids, token_type_ids=types, attention_mask=(ids != 0).long())
        if "roberta" in name or "distilbert" in name or "modern" in name:
            del inputs["token_type_ids"]
        if "answers" in name:
            y = m(**inputs, start_positions=target[:, 0], end_positions=target[:, 1])
            scores = torch.stack([y.start_logits, y.end_logits], -1)
        else:
            if target.is_floating_point():
                target = target.double()
            y = m(**inputs, labels=target)
            scores = y.logits
        y.loss.backward()
        out[name + ".target"], out[name + ".scores"], out[name + ".loss"] = target, scores.detach(), y.loss.detach()
        for n, p in m.named_parameters():
            if any(k in n for k in KEPT):
                out[name + ".grad." + n] = p.grad
        print(name, y.loss.item())
    save_file({k: v.contiguous() for k, v in out.items()}, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/heads.py, transformers " + transformers.__version__})
    for path in sys.argv[1:]:
        with open(os.path.join(path, "config.json")) as f:
            kind = getattr(transformers, json.load(f)["architectures"][0])
        m, report = kind.from_pretrained(path, output_loading_info=True)
        assert not any(report.values()), (path, report)
        print(path, kind.__name__, m.config.id2label)


main()

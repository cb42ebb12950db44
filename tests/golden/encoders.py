#!/usr/bin/env python3
"""Writes small RoBERTa, XLM-RoBERTa, DistilBERT, ALBERT, ELECTRA and ModernBERT models of transformers.

    python3 tests/golden/encoders.py

Needs PyPI's torch 2.15.0 and transformers 5.23.0. Writes encoders/<kind>, directories of small models with random
weights, and their outputs to encoders/answers.safetensors, for rows with padding at the end, at the beginning, and
without padding. tests/unit/models/test_encoders.c reads them.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
from safetensors.torch import save_file
from transformers import (AlbertConfig, AlbertForPreTraining, DistilBertConfig, DistilBertForMaskedLM, ElectraConfig,
                          ElectraForMaskedLM, ElectraForPreTraining, ModernBertConfig, ModernBertForMaskedLM,
                          RobertaConfig, RobertaForMaskedLM, XLMRobertaConfig, XLMRobertaModel)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "encoders")
SIZES = dict(vocab_size=37, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
             max_position_embeddings=12, pad_token_id=1, bos_token_id=2, eos_token_id=3)
NARROW = dict(SIZES, embedding_size=6)
IDS = torch.tensor([[2, 7, 8, 9, 3, 20, 21, 3], [2, 30, 31, 3, 11, 3, 1, 1], [1, 1, 4, 36, 2, 5, 3, 33]])
REAL = (IDS != 1).long()
TYPES = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1]])

MODELS = {
    "roberta": lambda: RobertaForMaskedLM(RobertaConfig(**SIZES, type_vocab_size=1, layer_norm_eps=1e-5)),
    "xlm-roberta": lambda: XLMRobertaModel(XLMRobertaConfig(**SIZES, type_vocab_size=1, hidden_act="gelu_new")),
    "distilbert": lambda: DistilBertForMaskedLM(DistilBertConfig(
        vocab_size=37, dim=12, n_layers=2, n_heads=3, hidden_dim=20, max_position_embeddings=12, pad_token_id=1,
        activation="relu", seq_classif_dropout=0.25)),
    "albert": lambda: AlbertForPreTraining(AlbertConfig(**dict(NARROW, num_hidden_layers=5), num_hidden_groups=2)),
    "electra-generator": lambda: ElectraForMaskedLM(ElectraConfig(**NARROW, hidden_act="relu")),
    "modernbert": lambda: ModernBertForMaskedLM(ModernBertConfig(
        **dict(SIZES, num_hidden_layers=4), local_attention=5, classifier_pooling="mean", global_rope_theta=50.0,
        local_rope_theta=20.0)),
    "electra-discriminator": lambda: ElectraForPreTraining(ElectraConfig(**NARROW, classifier_dropout=0.3)),
}


def main():
    answers = {"ids": IDS, "types": TYPES, "real": REAL}
    shutil.rmtree(HERE, ignore_errors=True)
    for name, make in MODELS.items():
        torch.manual_seed(len(name))
        m = make().eval()
        with torch.no_grad():  # biases other than 0 and norms other than 1
            for p in m.parameters():
                p.add_(torch.randn(p.shape) * (0.3 if p.dim() == 1 else 0.2))
        path = os.path.join(HERE, name)
        m.save_pretrained(path)
        for extra in set(os.listdir(path)) - {"config.json", "model.safetensors"}:
            os.remove(os.path.join(path, extra))
        more = {} if "roberta" in name or name in ("distilbert", "modernbert") else {"token_type_ids": TYPES}
        with torch.no_grad():
            y = m(input_ids=IDS, attention_mask=REAL, **more)
        if name == "albert":
            answers[name + ".words"], answers[name + ".next"] = y.prediction_logits, y.sop_logits
        elif name == "xlm-roberta":
            answers[name + ".y"], answers[name + ".pooled"] = y.last_hidden_state, y.pooler_output
        else:
            answers[name + (".replaced" if name == "electra-discriminator" else ".words")] = y.logits
        if name == "roberta":  # padding that is not masked is attended to and has a position
            with torch.no_grad():
                answers["roberta.unmasked"] = m(input_ids=IDS).logits
    save_file({k: v.contiguous() for k, v in answers.items()}, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/encoders.py"})


main()

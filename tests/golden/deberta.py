#!/usr/bin/env python3
"""Writes small DeBERTa v2 and v3 models of transformers, their outputs and gradients.

    python3 tests/golden/deberta.py [DIRECTORY ...]

Tested with torch 2.15.0 and transformers 5.24.0. Writes deberta/<name>, directories of models with random weights;
deberta/<name>.grad, the same with the gradient of the loss in place of each weight; and deberta/answers.safetensors:
ids, padding, outputs in f64 without dropout, and the rows of relative positions for several tables. "decoder" has the
position embeddings of the enhanced mask decoder and "replaced" the head for replaced tokens, which transformers
ignores: their results are computed here, the former with transformers' layers. Opens each given DIRECTORY with the
class that its config.json names; no weight may be missing.
"""
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import (DebertaV2Config, DebertaV2ForMaskedLM, DebertaV2ForMultipleChoice,
                          DebertaV2ForQuestionAnswering, DebertaV2ForSequenceClassification,
                          DebertaV2ForTokenClassification)
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "deberta")
SIZES = dict(vocab_size=29, hidden_size=15, num_hidden_layers=2, num_attention_heads=3, intermediate_size=19,
             max_position_embeddings=14, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
V3 = dict(SIZES, relative_attention=True, position_buckets=4, norm_rel_ebd="layer_norm", share_att_key=True,
          pos_att_type=["p2c", "c2p"], position_biased_input=False, legacy=False)
IDS = torch.tensor([[2, 7, 8, 9, 3, 20, 21, 3, 12, 13, 14], [2, 28, 27, 3, 11, 3, 15, 3, 0, 0, 0]])
TYPES = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1, 0, 1, 1], [0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]])
CHOICES = torch.stack([IDS, IDS.flip(0), (IDS * 5 + 1) % 29 * (IDS != 0)], 1)
CASES = {
    "v3": (DebertaV2ForMaskedLM, V3),
    "decoder": (DebertaV2ForMaskedLM, V3),
    "replaced": (DebertaV2ForMaskedLM, V3),
    "own": (DebertaV2ForMaskedLM, dict(V3, share_att_key=False, position_buckets=-1, max_relative_positions=4)),
    "p2c": (DebertaV2ForMaskedLM, dict(V3, pos_att_type="p2c", share_att_key=False, norm_rel_ebd="none", legacy=True,
                                       position_biased_input=True, type_vocab_size=2, hidden_act="relu")),
    "c2p": (DebertaV2ForMaskedLM, dict(V3, pos_att_type="c2p", embedding_size=6, legacy=True, position_buckets=6,
                                       max_relative_positions=9)),
    "absolute": (DebertaV2ForMaskedLM, dict(SIZES, legacy=False)),
    "classes": (DebertaV2ForSequenceClassification, dict(V3, num_labels=4)),
    "tags": (DebertaV2ForTokenClassification, dict(V3, num_labels=5)),
    "answers": (DebertaV2ForQuestionAnswering, V3),
    "choices": (DebertaV2ForMultipleChoice, V3),
}
TABLES = ((256, 512), (32, 128), (8, 9), (20, 50), (6, 1000), (3, 7))


def enhanced(m, position, real):
    """The logits after the enhanced mask decoder (He et al. 2021): the last layer twice, from position + its input."""
    e = m.deberta.encoder
    layers = m.deberta(input_ids=IDS, attention_mask=real, output_hidden_states=True).hidden_states
    hidden = layers[-2]
    query = position[None, :IDS.shape[1]] + hidden
    for _ in range(2):
        query = e.layer[-1](hidden, e.get_attention_mask(real), query_states=query,
                            relative_pos=e.get_rel_pos(hidden), rel_embeddings=e.get_rel_embedding())[0]
    return m.lm_predictions(query, m.deberta.embeddings.word_embeddings)


def replaced(m, more, real):
    """The logits of replaced tokens, as in DeBERTa's head LMMaskPredictionHead."""
    y = m.deberta(input_ids=IDS, attention_mask=real).last_hidden_state
    y = torch.nn.functional.layer_norm(y + y[:, :1], y.shape[-1:], more["mask_predictions.LayerNorm.weight"],
                                       more["mask_predictions.LayerNorm.bias"], 1e-7)
    y = torch.nn.functional.gelu(y @ more["mask_predictions.dense.weight"].T + more["mask_predictions.dense.bias"])
    return y @ more["mask_predictions.classifier.weight"].T + more["mask_predictions.classifier.bias"]


def added(name):
    """The weights that transformers ignores."""
    if name == "decoder":
        return {"deberta.embeddings.position_embeddings.weight": torch.randn(14, 15)}
    if name != "replaced":
        return {}
    shapes = {"dense.weight": (15, 15), "dense.bias": (15,), "LayerNorm.weight": (15,), "LayerNorm.bias": (15,),
              "classifier.weight": (1, 15), "classifier.bias": (1,)}
    return {"mask_predictions." + k: torch.randn(s) for k, s in shapes.items()}


def scores_of(name, m, more, real, ids):
    inputs = dict(input_ids=ids, attention_mask=real)
    if m.config.type_vocab_size:
        inputs["token_type_ids"] = TYPES
    if name == "decoder":
        return enhanced(m, *more.values(), real)
    if name == "replaced":
        return replaced(m, more, real)
    y = m(**inputs)
    return torch.stack([y.start_logits, y.end_logits], -1) if name == "answers" else y.logits


def main():
    answers = {"ids": IDS, "types": TYPES, "choices": CHOICES, "padding": IDS == 0}
    shutil.rmtree(HERE, ignore_errors=True)
    for name, (kind, config) in CASES.items():
        torch.manual_seed(len(name))
        m = kind(DebertaV2Config(**config)).eval()
        with torch.no_grad():
            for p in m.parameters():
                p.add_(torch.randn(p.shape) * (0.3 if p.dim() == 1 else 0.4))
            m.get_input_embeddings().weight[0] = 0
        path = os.path.join(HERE, name)
        m.save_pretrained(path)
        file = os.path.join(path, "model.safetensors")
        more = added(name)
        save_file({**load_file(file), **more}, file, {"format": "pt"})
        more = {k: v.double().requires_grad_() for k, v in more.items()}
        m = m.double()
        ids = CHOICES if name == "choices" else IDS
        y = scores_of(name, m, more, (ids != 0).long(), ids)
        if name == "v3":
            answers["v3.y"] = m.deberta(input_ids=IDS, attention_mask=(IDS != 0).long()).last_hidden_state
        per_token = name not in ("classes", "choices")
        seed = torch.randn(y.shape, dtype=torch.float64) * ((ids != 0)[..., None] if per_token else 1)
        (y * seed).sum().backward()
        answers[name + ".scores"], answers[name + ".seed"] = y, seed
        shutil.copytree(path, path + ".grad")
        grads = {**dict(m.named_parameters()), **more}
        kept = load_file(file)
        save_file({k: (torch.zeros_like(kept[k]) if grads[k].grad is None else grads[k].grad.float()).contiguous()
                   for k in kept}, os.path.join(path + ".grad", "model.safetensors"), {"format": "pt"})
        for folder in (path, path + ".grad"):
            for extra in set(os.listdir(folder)) - {"config.json", "model.safetensors"}:
                os.remove(os.path.join(folder, extra))
        print(name, y.abs().max().item())
    far = torch.arange(-1100, 1101)
    for buckets, distance in TABLES:
        rows = make_log_bucket_position(far, buckets, distance).long() + buckets
        answers["rows.%d.%d" % (buckets, distance)] = rows.clamp(0, 2 * buckets - 1)
    answers = {k: (v.float() if v.is_floating_point() else v).detach().contiguous() for k, v in answers.items()}
    save_file(answers, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/deberta.py, transformers " + transformers.__version__})


def open_all(paths):
    for path in paths:
        with open(os.path.join(path, "config.json")) as f:
            kind = getattr(transformers, json.load(f)["architectures"][0])
        m, report = kind.from_pretrained(path, output_loading_info=True)
        assert not report["missing_keys"] and not report["mismatched_keys"], (path, report)
        print(path, kind.__name__, sorted(report["unexpected_keys"]))


open_all(sys.argv[1:]) if sys.argv[1:] else main()

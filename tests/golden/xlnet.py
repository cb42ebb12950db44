#!/usr/bin/env python3
"""Writes small XLNet models of transformers, their outputs, memory and gradients.

    python3 tests/golden/xlnet.py

Needs PyPI's torch 2.15.0 and transformers 5.24.0. Writes xlnet/model and xlnet/<head>, directories of small models with
random weights, and xlnet/answers.safetensors, computed in f64: two segments of a text, with padding at either end, a
random order and the memory of the first one for the second; the gradients of their loss; the same model as "uni" and
with clamp_len. extras/tests/unit/test_xlnet.c reads them.

transformers leaves a query that sees no key with the mean of all values, also of those it must not see; no query here
is like that.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
import transformers
from safetensors.torch import save_file
from transformers import (XLNetConfig, XLNetForMultipleChoice, XLNetForQuestionAnsweringSimple,
                          XLNetForSequenceClassification, XLNetForTokenClassification, XLNetLMHeadModel)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "xlnet")
SIZES = dict(vocab_size=31, d_model=12, n_layer=2, n_head=3, d_inner=19)
SEP, CLS, PAD = 4, 3, 5
IDS = torch.tensor([[[7, 8, 9, 20, 21, 30, SEP, CLS], [PAD, PAD, 11, 6, 29, 17, SEP, CLS],
                     [12, 13, 18, SEP, CLS, PAD, PAD, PAD]],
                    [[22, 10, 9, 8, SEP, 24, SEP, CLS], [6, 6, 7, 28, 27, 26, SEP, CLS],
                     [PAD, 12, 10, 14, 19, 23, SEP, CLS]]])
TYPES = torch.where(IDS == CLS, 2, 0) + torch.tensor([[[0] * 8] * 3, [[0, 0, 0, 0, 0, 1, 1, 0]] + [[0] * 8] * 2])
TARGETS = [torch.tensor([1, 2, 5, 8 + 4, 16 + 1]), torch.tensor([0, 3, 8 + 2, 8 + 3, 8 + 5, 16 + 4])]


def orders(ids, targets):
    """Ranks of the tokens to predict and of SEP and CLS; -1 for the others."""
    order = torch.full(ids.shape, -1)
    order.view(-1)[targets] = 0
    order[(ids == SEP) | (ids == CLS)] = 0
    for row in order:
        places = (row == 0).nonzero().flatten()
        row[places] = torch.randperm(len(places))
    return order


def inputs(ids, types, order, targets):
    """The arguments of transformers for this order, and the rows of the result that are targets."""
    is_target = torch.zeros(ids.numel(), dtype=torch.bool)
    is_target[targets] = True
    sees = order + (~is_target.view(ids.shape)).long()
    rows = [targets[targets // 8 == i] % 8 for i in range(len(ids))]
    mapping = torch.zeros(len(ids), max(len(r) for r in rows), 8)
    for i, r in enumerate(rows):
        mapping[i, torch.arange(len(r)), r] = 1
    perm = (sees[:, :, None] <= order[:, None, :]).double()
    return dict(input_ids=ids, token_type_ids=types, attention_mask=(ids != PAD).double(), perm_mask=perm,
                target_mapping=mapping.double()), mapping.sum(2) > 0


def random(m):
    with torch.no_grad():
        for p in m.parameters():
            p.add_(torch.randn(p.shape) * (0.3 if p.dim() == 1 else 0.2))
    positions = m.transformer.relative_positional_encoding  # f32, also in an f64 model, which cannot use it
    m.transformer.relative_positional_encoding = lambda *a, **k: positions(*a, **k).to(m.dtype)
    return m.eval()


def keep(m, name):
    path = os.path.join(HERE, name)
    m.save_pretrained(path)
    for extra in set(os.listdir(path)) - {"config.json", "model.safetensors"}:
        os.remove(os.path.join(path, extra))


def language(out):
    torch.manual_seed(3)
    m = random(XLNetLMHeadModel(XLNetConfig(**SIZES, mem_len=9, reuse_len=5)))
    keep(m, "model")
    m = m.double()
    mems, loss = None, 0
    for i in range(2):
        out["ids.%d" % i], out["types.%d" % i], out["targets.%d" % i] = IDS[i], TYPES[i], TARGETS[i]
        order = out["order.%d" % i] = orders(IDS[i], TARGETS[i])
        given, rows = inputs(IDS[i], TYPES[i], order, TARGETS[i])
        plain = {k: given[k] for k in ("input_ids", "token_type_ids", "attention_mask")}
        out["content.%d" % i] = m(**plain, mems=mems, use_mems=True).logits
        y = m(**given, mems=mems, use_mems=True)
        out["query.%d" % i], mems = y.logits[rows], y.mems
        for k, mem in enumerate(mems):
            out["memory.%d.%d" % (i, k)] = mem.transpose(0, 1)
        loss = loss + torch.nn.functional.cross_entropy(y.logits[rows], IDS[i].view(-1)[TARGETS[i]])
    loss.backward()
    out["loss"] = loss
    for name, p in m.named_parameters():
        out["grad." + name] = p.grad
    for name, changes in (("uni", dict(attn_type="uni")), ("clamped", dict(clamp_len=3))):
        for k, v in changes.items():
            setattr(m.transformer, k, v)
        if name == "uni":  # transformers cannot add a padding mask of several rows to its causal one
            del plain["attention_mask"]
        out[name] = m(**plain, use_mems=False).logits
        m.transformer.attn_type = "bi"


def heads(out):
    # padding on the left only: the summary is the last position
    more = dict(SIZES, n_layer=1, summary_last_dropout=0.0, dropout=0.0)
    for name, kind, config, labels in (
            ("classes", XLNetForSequenceClassification, dict(num_labels=4), dict(labels=torch.tensor([3, 0, 2]))),
            ("tags", XLNetForTokenClassification, dict(num_labels=3),
             dict(labels=torch.where(IDS[1] == PAD, -100, IDS[1] % 3))),
            ("answers", XLNetForQuestionAnsweringSimple, {},
             dict(start_positions=torch.tensor([1, 2, 0]), end_positions=torch.tensor([3, 2, 4]))),
            ("choices", XLNetForMultipleChoice, {}, dict(labels=torch.tensor([2, 0, 1])))):
        torch.manual_seed(len(name))
        m = random(kind(XLNetConfig(**more, **config)))
        keep(m, name)
        m = m.double()
        plain = dict(input_ids=IDS[1], token_type_ids=TYPES[1], attention_mask=(IDS[1] != PAD).double())
        if name == "choices":
            plain = {k: torch.stack([v, v.flip(0), v.roll(1, 0)], 1) for k, v in plain.items()}
        y = m(**plain, **labels)
        scores = torch.stack([y.start_logits, y.end_logits], -1) if name == "answers" else y.logits
        y.loss.backward()
        out[name + ".scores"], out[name + ".loss"] = scores, y.loss
        out[name + ".target"] = labels.get("labels", torch.stack(list(labels.values()), 1))
        out[name + ".grad"] = m.transformer.word_embedding.weight.grad


def main():
    shutil.rmtree(HERE, ignore_errors=True)
    os.makedirs(HERE)
    out = {}
    language(out)
    heads(out)
    out = {k: (v.detach().float() if v.is_floating_point() else v).contiguous() for k, v in out.items()}
    save_file(out, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/xlnet.py, transformers " + transformers.__version__})


main()

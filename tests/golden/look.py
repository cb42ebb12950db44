#!/usr/bin/env python3
"""Computes head importance, attention rollout, attention flow and integrated gradients with PyTorch, NumPy and SciPy.

    python3 tests/golden/look.py

Tested with torch 2.15, transformers 5.23, numpy 2, scipy 1.17. Reads the small models bert/pretraining, gpt/torch and
llama/llama in this folder, and writes look.safetensors, which tests/unit/models/test_look_models.c reads.
"""
import os
import sys

sys.dont_write_bytecode = True
import numpy as np
import torch

torch.set_num_threads(1)
from safetensors.torch import save_file
from scipy.optimize import linprog
from transformers import BertForMaskedLM, GPT2LMHeadModel, LlamaForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
out = {}


def watch(modules, heads):
    """Records the input of each output projection, [B, T, heads, D], with its gradient."""
    kept = []

    def hook(module, args):
        if args[0].requires_grad:
            args[0].retain_grad()
            kept.append(args[0])
    for m in modules:
        m.register_forward_pre_hook(hook)
    return kept


def importance(kept, heads, groups):
    """The mean over the texts of |Σ over tokens and dims of head · gradient|, times the number of texts."""
    rows = []
    for x in kept:
        b, t, _ = x.shape
        dot = (x.detach() * x.grad).double().view(b, t, groups, heads // groups, -1).sum((1, 3, 4))  # [B, groups]
        rows.append((dot.abs() * b).mean(0))
    return torch.stack(rows)


def bert():
    m = BertForMaskedLM.from_pretrained(os.path.join(HERE, "bert/pretraining"), attn_implementation="eager").eval()
    ids = torch.tensor([[2, 7, 8, 9, 3, 20, 21, 3], [2, 30, 31, 3, 11, 3, 0, 0], [2, 4, 36, 3, 0, 0, 0, 0]])
    real = (ids != 0).long()
    where, what = torch.tensor([1, 2, 10, 17, 18]), torch.tensor([5, 6, 7, 8, 9])
    kept = watch([layer.attention.output.dense for layer in m.bert.encoder.layer], 2)
    scores = m(input_ids=ids, attention_mask=real).logits.view(-1, m.config.vocab_size)
    torch.nn.functional.cross_entropy(scores[where], what).backward()
    out.update({"bert.ids": ids, "bert.where": where, "bert.what": what, "bert.importance": importance(kept, 2, 2)})
    flows(m, ids[:1], real[:1])
    integrated(m, ids[:1])


def flows(m, ids, real):
    weights = [w.detach().double().numpy()[0] for w in m(input_ids=ids, output_attentions=True).attentions]
    t = weights[0].shape[-1]
    a = [w.mean(0) + np.eye(t) for w in weights]
    a = [x / x.sum(-1, keepdims=True) for x in a]
    rollout = np.eye(t)
    for x in a:
        rollout = x @ rollout
    out["rollout"] = torch.tensor(rollout)
    # the maximum flow as a linear program: a flow for each edge; inflow equals outflow at each token
    edges = [(l, i, j) for l in range(len(a)) for i in range(t) for j in range(t)]
    flow = np.zeros((t, t))
    for source in range(t):
        for sink in range(t):
            c = np.zeros(len(edges))
            keep = np.zeros(((len(a) - 1) * t, len(edges)))
            bounds = []
            for k, (l, i, j) in enumerate(edges):
                top, bottom = l == len(a) - 1, l == 0
                open_ = (not top or i == source) and (not bottom or j == sink)
                bounds.append((0, a[l][i, j] if open_ else 0))
                if bottom:
                    c[k] = -1
                if not top:
                    keep[l * t + i, k] -= 1
                if not bottom:
                    keep[(l - 1) * t + j, k] += 1
            y = linprog(c, A_eq=keep, b_eq=np.zeros(len(keep)), bounds=bounds, method="highs")
            assert y.status == 0, y.message
            flow[source, sink] = -y.fun
    out["flow"] = torch.tensor(flow / flow.sum(-1, keepdims=True))


def integrated(m, ids):
    """Of the log-probability of token 5 at position 1, from zero vectors as the baseline, with 800 steps."""
    words = m.get_input_embeddings()(ids).detach()
    total, steps = torch.zeros_like(words, dtype=torch.float64), 800

    def score(x):
        return torch.log_softmax(m(inputs_embeds=x).logits[0, 1], -1)[5]
    for k in range(steps):
        x = (words * ((k + 0.5) / steps)).requires_grad_()
        total += torch.autograd.grad(score(x), x)[0].double() / steps
    out["integrated"] = (total * words.double()).sum(-1)
    with torch.no_grad():
        out["difference"] = (score(words) - score(torch.zeros_like(words))).double().view(1)
    x = words.clone().requires_grad_()
    out["gradient"] = (torch.autograd.grad(score(x), x)[0] * words).sum(-1).double()


def writers():
    ids = torch.tensor([[7, 8, 9, 3, 20, 21], [2, 22, 11, 1, 12, 3]])
    for name, kind, path in (("gpt", GPT2LMHeadModel, "gpt/torch"), ("llama", LlamaForCausalLM, "llama/llama3")):
        m = kind.from_pretrained(os.path.join(HERE, path), attn_implementation="eager").eval()
        c = m.config
        layers = m.transformer.h if name == "gpt" else m.model.layers
        layers = [x.attn.c_proj if name == "gpt" else x.self_attn.o_proj for x in layers]
        kept = watch(layers, c.num_attention_heads)
        scores = m(ids).logits
        torch.nn.functional.cross_entropy(scores[:, :-1].reshape(-1, c.vocab_size), ids[:, 1:].reshape(-1)).backward()
        groups = getattr(c, "num_key_value_heads", None) or c.num_attention_heads
        out[name + ".ids"], out[name + ".importance"] = ids, importance(kept, c.num_attention_heads, groups)


bert()
writers()
save_file({k: v.clone().contiguous() for k, v in out.items()}, os.path.join(HERE, "look.safetensors"),
          {"format": "pt", "made by": "tests/golden/look.py"})
for k, v in out.items():
    print(k, v.tolist())

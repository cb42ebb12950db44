#!/usr/bin/python3
"""Writes transformer.safetensors: what PyTorch computes with the modules of tests/test_attention_modules.c and
tests/test_transformer.c: outputs, attention weights, gradients of inputs and parameters.

    /usr/bin/python3 tests/golden/transformer.py        (Debian's python3-torch 1.13 and python3-numpy)

Inputs and weights are in no file: both sides compute them from one formula (values, below) of their names. Its numbers
are exact in f32, so that one set of results, made in f64, is what f64 and f32 are both compared with. What PyTorch lacks
is written here with its basic ops.
"""
import json
import math
import os
import struct

import numpy as np
import torch
from torch import nn

D, H, FF = 8, 2, 12      # width, heads, inner width
B, T, S = 2, 4, 5        # batch, queries, keys


def values(name, shape):
    h = 2166136261
    for c in name.encode():
        h = (h ^ c) * 16777619 % 2**32
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    return torch.from_numpy(((((i * 7919 + h) % 10007) - 5003) / 8192.0).reshape(shape))


class Case:
    """Names what takes part; inputs and modules are filled as they are named."""

    def __init__(self, name):
        self.name, self.inputs, self.modules, self.weights = name, {}, [], {}

    def input(self, what, *shape):
        x = (2 * values(self.name + "/" + what, shape)).requires_grad_()
        self.inputs[what] = x
        return x

    def fill(self, module):
        module = module.double().train()
        with torch.no_grad():
            for n, p in module.named_parameters():
                v = values(self.name + "/" + n, tuple(p.shape))
                p.copy_(1 + v / 2 if p.dim() == 1 and n.endswith("weight") else v)
        self.modules.append(module)
        return module


CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


# ---- masks: true is blocked ----
def padding(n):  # [B, n]: the second sentence is shorter by two
    return torch.tensor([[False] * n, [False] * (n - 2) + [True] * 2])


def holes(t, s):  # [t, s]: no query sees nothing
    return torch.tensor([[j > 0 and (3 * i + 5 * j) % 4 == 0 for j in range(s)] for i in range(t)])


def causal(n):
    return torch.ones(n, n, dtype=torch.bool).triu(1)


# ---- multi-head attention ----
@case
def mha_self(k):
    m = k.fill(nn.MultiheadAttention(D, H, batch_first=True))
    x = k.input("x", B, T, D)
    y, k.weights["w"] = m(x, x, x)
    return y


@case
def mha_masked(k):
    m = k.fill(nn.MultiheadAttention(D, H, batch_first=True))
    x = k.input("x", B, T, D)
    y, k.weights["w"] = m(x, x, x, key_padding_mask=padding(T), attn_mask=holes(T, T), average_attn_weights=False)
    return y


@case
def mha_causal(k):
    m = k.fill(nn.MultiheadAttention(D, 4, batch_first=True))
    x = k.input("x", B, T, D)
    return m(x, x, x, attn_mask=causal(T))[0]


@case
def mha_cross(k):
    m = k.fill(nn.MultiheadAttention(D, H, batch_first=True))
    q, memory = k.input("query", B, T, D), k.input("memory", B, S, D)
    y, k.weights["w"] = m(q, memory, memory, key_padding_mask=padding(S))
    return y


@case
def mha_added(k):  # a floating mask for each head of each sentence, with a gradient
    m = k.fill(nn.MultiheadAttention(D, H, batch_first=True))
    q, key, v = k.input("query", B, T, D), k.input("key", B, S, D), k.input("value", B, S, D)
    return m(q, key, v, attn_mask=k.input("mask", B * H, T, S))[0]


@case
def mha_sizes(k):
    m = k.fill(nn.MultiheadAttention(D, H, kdim=6, vdim=10, batch_first=True))
    q, key, v = k.input("query", B, T, D), k.input("key", B, S, 6), k.input("value", B, S, 10)
    y, k.weights["w"] = m(q, key, v, average_attn_weights=False)
    return y


@case
def mha_time_first(k):
    m = k.fill(nn.MultiheadAttention(D, H, bias=False))
    q, memory = k.input("query", T, B, D), k.input("memory", S, B, D)
    y, k.weights["w"] = m(q, memory, memory, key_padding_mask=padding(S))
    return y


@case
def mha_time_first_self(k):
    m = k.fill(nn.MultiheadAttention(D, H))
    x = k.input("x", T, B, D)
    return m(x, x, x)[0]


# ---- the Transformer ----
def layer(kind, **more):
    return kind(D, H, FF, dropout=0.0, batch_first=True, **more)


@case
def encoder_layer(k):
    m = k.fill(layer(nn.TransformerEncoderLayer))
    return m(k.input("x", B, T, D), src_mask=holes(T, T), src_key_padding_mask=padding(T))


@case
def encoder_layer_first(k):
    m = k.fill(layer(nn.TransformerEncoderLayer, activation="gelu", norm_first=True, layer_norm_eps=1e-3))
    return m(k.input("x", B, T, D), src_mask=causal(T))


@case
def decoder_layer(k):
    m = k.fill(layer(nn.TransformerDecoderLayer))
    return m(k.input("x", B, T, D), k.input("memory", B, S, D), tgt_mask=causal(T), memory_mask=holes(T, S),
             tgt_key_padding_mask=padding(T), memory_key_padding_mask=padding(S))


@case
def decoder_layer_first(k):
    m = k.fill(layer(nn.TransformerDecoderLayer, activation="gelu", norm_first=True))
    return m(k.input("x", B, T, D), k.input("memory", B, S, D), tgt_mask=causal(T))


@case
def encoder(k):  # as of BERT, without a final norm
    m = k.fill(nn.TransformerEncoder(layer(nn.TransformerEncoderLayer, activation="gelu"), 2))
    return m(k.input("x", B, T, D), src_key_padding_mask=padding(T))


@case
def encoder_first(k):  # as of GPT
    m = k.fill(nn.TransformerEncoder(layer(nn.TransformerEncoderLayer, activation="gelu", norm_first=True), 3, nn.LayerNorm(D)))
    return m(k.input("x", B, T, D), mask=causal(T))


@case
def decoder(k):
    m = k.fill(nn.TransformerDecoder(layer(nn.TransformerDecoderLayer), 2, nn.LayerNorm(D)))
    return m(k.input("x", B, T, D), k.input("memory", B, S, D), tgt_mask=causal(T), memory_key_padding_mask=padding(S))


@case
def transformer(k):
    m = k.fill(nn.Transformer(D, H, 2, 2, FF, 0.0, batch_first=True))
    return m(k.input("src", B, S, D), k.input("tgt", B, T, D), tgt_mask=causal(T), src_key_padding_mask=padding(S),
             tgt_key_padding_mask=padding(T), memory_key_padding_mask=padding(S))


@case
def transformer_first(k):
    m = k.fill(nn.Transformer(D, H, 1, 2, FF, 0.0, activation="gelu", norm_first=True))
    return m(k.input("src", S, B, D), k.input("tgt", T, B, D), tgt_mask=causal(T), src_mask=holes(S, S), memory_mask=holes(T, S))


# ---- what PyTorch lacks ----
class MlmHead(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(words))
        self.transform = nn.ModuleDict({"dense": nn.Linear(D, D), "LayerNorm": nn.LayerNorm(D, eps=1e-12)})
        self.decoder = nn.Linear(D, words, bias=False)

    def forward(self, x):
        x = self.transform["LayerNorm"](nn.functional.gelu(self.transform["dense"](x)))
        return self.decoder(x) + self.bias


@case
def mlm_head(k):
    return k.fill(MlmHead(11))(k.input("x", B, T, D))


def weighted(k, scores, blocked, memory):
    if blocked is not None:
        scores = scores.masked_fill(blocked.unsqueeze(1), -math.inf)
    k.weights["w"] = torch.softmax(scores, -1)
    return k.weights["w"] @ memory


@case
def dot_attention(k):
    q, memory = k.input("query", B, T, D), k.input("memory", B, S, D)
    return weighted(k, q @ memory.transpose(1, 2), padding(S), memory)


@case
def dot_attention_general(k):
    m = k.fill(nn.ModuleDict({"query_proj": nn.Linear(6, D, bias=False)}))
    q, memory = k.input("query", B, T, 6), k.input("memory", B, S, D)
    return weighted(k, m["query_proj"](q) @ memory.transpose(1, 2) / math.sqrt(D), padding(S), memory)


class Additive(nn.Module):
    def __init__(self):
        super().__init__()
        self.query_proj = nn.Linear(6, 7, bias=False)
        self.memory_proj = nn.Linear(D, 7)
        self.score = nn.Linear(7, 1, bias=False)

    def forward(self, q, memory):
        return self.score(torch.tanh(self.query_proj(q).unsqueeze(2) + self.memory_proj(memory).unsqueeze(1))).squeeze(3)


@case
def additive_attention(k):
    m = k.fill(Additive())
    q, memory = k.input("query", B, T, 6), k.input("memory", B, S, D)
    return weighted(k, m(q, memory), padding(S), memory)


@case
def additive_attention_one(k):
    m = k.fill(Additive())
    q, memory = k.input("query", B, 6), k.input("memory", B, S, D)
    y = weighted(k, m(q.unsqueeze(1), memory), None, memory)
    k.weights["w"] = k.weights["w"].squeeze(1)
    return y.squeeze(1)


def write(path, tensors, metadata):
    header, at, blobs = {"__metadata__": metadata}, 0, []
    for name in sorted(tensors):
        blob = tensors[name].detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F64", "shape": list(tensors[name].shape), "data_offsets": [at, at + len(blob)]}
        at += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def main():
    tensors = {}
    for name, fn in CASES.items():
        k = Case(name)
        y = fn(k)
        y.backward(values(name + "/gy", tuple(y.shape)))
        tensors[name + "/y"] = y
        for what, w in k.weights.items():
            tensors[name + "/" + what] = w
        for what, x in k.inputs.items():
            tensors[name + "/grad/" + what] = x.grad
        for m in k.modules:
            for n, p in m.named_parameters():
                tensors[name + "/grad/" + n] = p.grad
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transformer.safetensors")
    write(path, tensors, {"format": "pt", "made by": "tests/golden/transformer.py, torch " + torch.__version__})
    print("%d cases, %d tensors, %d bytes" % (len(CASES), len(tensors), os.path.getsize(path)))


main()

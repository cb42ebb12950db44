#!/usr/bin/python3
"""Writes transformer.safetensors: the results of PyTorch for the modules of tests/unit/nn/test_attention_modules.c and
tests/unit/nn/test_transformer.c: outputs, attention weights, gradients of inputs and parameters.

    /usr/bin/python3 tests/golden/transformer.py        (Debian's python3-torch 1.13 and python3-numpy)

Matrices have the scale of PyTorch's initialisation: with twice that scale, PyTorch's f32 differs from its f64 by 2.8e-6
of the largest element, with this scale by 1e-6, which case.py checks. Modules that PyTorch lacks are written here with
its basic ops.
"""
import math
import sys

sys.dont_write_bytecode = True
import torch
from torch import nn
from case import case, run

D, H, FF = 8, 2, 12      # width, heads, inner width
B, T, S = 2, 4, 5        # batch, queries, keys


# ---- masks: true is masked ----
def padding(n):  # [B, n]: the second sequence is shorter by two
    return torch.tensor([[False] * n, [False] * (n - 2) + [True] * 2])


def holes(t, s):  # [t, s]: each query attends to at least one key
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
def mha_added(k):  # a floating mask for each head of each sequence, with a gradient
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
def encoder(k):  # like BERT, without a final norm
    m = k.fill(nn.TransformerEncoder(layer(nn.TransformerEncoderLayer, activation="gelu"), 2))
    return m(k.input("x", B, T, D), src_key_padding_mask=padding(T))


@case
def encoder_first(k):  # like GPT
    one = layer(nn.TransformerEncoderLayer, activation="gelu", norm_first=True)
    m = k.fill(nn.TransformerEncoder(one, 3, nn.LayerNorm(D)))
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
    return m(k.input("src", S, B, D), k.input("tgt", T, B, D), tgt_mask=causal(T), src_mask=holes(S, S),
             memory_mask=holes(T, S))


# ---- modules that PyTorch lacks ----
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
        e = torch.tanh(self.query_proj(q).unsqueeze(2) + self.memory_proj(memory).unsqueeze(1))
        return self.score(e).squeeze(3)


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


run(__file__, "transformer", matrices=0.5, strays=1.2e-6)

#!/usr/bin/env python3
"""Writes the logits, losses and gradients of ConvS2S, ByteNet and GNMT, written here from their papers with PyTorch.

    python3 tests/golden/translators.py

Tested with torch 2.15.0. Writes translators/<kind>, directories of random models in Tenon's format;
translators/<kind>.grad, the same with the gradient of the loss in place of each weight; and
translators/answers.safetensors: source, target, logits, losses, alignments. ConvS2S follows fairseq's fconv:
convolutions are conv1d of [B, C, T], a decoder's input is padded on the left; each weight is g v / |v|.
"""
import json
import math
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "translators")
WORDS, DIM, PADDING = (17, 15), 10, 0
CONVS2S = dict(layers=3, decoder_layers=2, kernel=3, decoder_kernel=4)
BYTENET = dict(layers=7, decoder_layers=6, kernel=4, decoder_kernel=3)
STACKS = dict(layers=4, decoder_layers=4)
C = math.sqrt(0.5)


def conv(x, weight, bias, size, left, right, dilation=1):
    """weight [out, size * in]: the tokens of a window one after another."""
    w = weight.view(weight.shape[0], size, -1).transpose(1, 2)
    return F.conv1d(F.pad(x.transpose(1, 2), (left, right)), w, bias, dilation=dilation).transpose(1, 2)


class Slowed(torch.autograd.Function):
    """fairseq's GradMultiply"""
    @staticmethod
    def forward(ctx, x, k):
        ctx.k = k
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None


class Normed(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight_v = nn.Parameter(torch.randn(outputs, inputs))
        self.weight_g = nn.Parameter(torch.rand(outputs, 1) + 0.5)
        self.bias = nn.Parameter(torch.randn(outputs) * 0.1)

    def weight(self):
        return self.weight_v * self.weight_g / self.weight_v.pow(2).sum(1, keepdim=True).sqrt()

    def forward(self, x):
        return F.linear(x, self.weight(), self.bias)


def named(module, path, child):
    """Registers `child` under a path with dots, as modules in modules."""
    *parents, last = path.split(".")
    for p in parents:
        if not hasattr(module, p):
            module.add_module(p, nn.Module())
        module = getattr(module, p)
    module.add_module(last, child)
    return child


class Table(nn.Module):
    def __init__(self, rows, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, dim) * 0.5)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source, self.target = Table(WORDS[0], DIM), Table(WORDS[1], DIM)
        self.out = nn.Module()
        self.out.bias = nn.Parameter(torch.randn(WORDS[1]) * 0.2)

    def words(self, table, ids):
        return F.embedding(ids, table.weight, padding_idx=PADDING)

    def forward(self, source, target):
        y, weights = self.run(source, target)
        return F.linear(y, self.target.weight, self.out.bias), weights


class ConvS2S(Translator):
    options = dict(CONVS2S, positions=12)

    def __init__(self):
        super().__init__()
        self.positions, self.target_positions = Table(14, DIM), Table(14, DIM)
        self.parts = {}
        for side, n, k in (("encoder", CONVS2S["layers"], CONVS2S["kernel"]),
                           ("decoder", CONVS2S["decoder_layers"], CONVS2S["decoder_kernel"])):
            for name in ("enter", "leave"):
                self.parts[side, name] = named(self, side + "." + name, Normed(DIM, DIM))
            for i in range(n):
                self.parts[side, i, "conv"] = named(self, "%s.%d.conv" % (side, i), Normed(k * DIM, 2 * DIM))
                if side == "decoder":
                    for name in ("query", "context"):
                        self.parts[side, i, name] = named(self, "%s.%d.%s" % (side, i, name), Normed(DIM, DIM))

    def run(self, source, target):
        p, padding = self.parts, source == PADDING
        e = self.words(self.source, source) + self.positions.weight[2:2 + source.shape[1]]
        x, k = p["encoder", "enter"](e), CONVS2S["kernel"]
        for i in range(CONVS2S["layers"]):
            c = p["encoder", i, "conv"]
            y = x.masked_fill(padding[:, :, None], 0)
            y = F.glu(conv(y, c.weight(), c.bias, k, (k - 1) // 2, k // 2), -1)
            x = (y + x) * C
        z = p["encoder", "leave"](x).masked_fill(padding[:, :, None], 0)
        z = Slowed.apply(z, 1 / (2 * CONVS2S["decoder_layers"]))
        values = (z + e) * C
        length = (~padding).sum(1)[:, None, None].to(x.dtype)
        e = self.words(self.target, target) + self.target_positions.weight[2:2 + target.shape[1]]
        x, k, seen = p["decoder", "enter"](e), CONVS2S["decoder_kernel"], []
        for i in range(CONVS2S["decoder_layers"]):
            c = p["decoder", i, "conv"]
            y = F.glu(conv(x, c.weight(), c.bias, k, k - 1, 0), -1)
            q = (p["decoder", i, "query"](y) + e) * C
            w = (q @ z.transpose(1, 2)).masked_fill(padding[:, None], -math.inf).softmax(-1)
            a = (w @ values) * (length * length.rsqrt())
            x = ((p["decoder", i, "context"](a) + y) * C + x) * C
            seen.append(w)
        return p["decoder", "leave"](x), sum(seen) / len(seen)


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        half = DIM // 2
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(DIM), nn.LayerNorm(half), nn.LayerNorm(half)
        self.narrow, self.conv, self.wide = nn.Linear(DIM, half), nn.Linear(size * half, half), nn.Linear(half, DIM)

    def forward(self, x, size, dilation, causal, padding):
        y = self.narrow(self.norm1(x).relu())
        y = self.norm2(y).relu()
        if padding is not None:
            y = y.masked_fill(padding, 0)
        left = (size - 1) * dilation if causal else (size - 1) // 2 * dilation
        y = conv(y, self.conv.weight, self.conv.bias, size, left, (size - 1) * dilation - left, dilation)
        return x + self.wide(self.norm3(y).relu())


class ByteNet(Translator):
    options = BYTENET

    def __init__(self):
        super().__init__()
        self.blocks = [[named(self, "%s.%d" % (side, i), Block(BYTENET[kernel])) for i in range(BYTENET[layers])]
                       for side, layers, kernel in (("encoder", "layers", "kernel"),
                                                    ("decoder", "decoder_layers", "decoder_kernel"))]
        self.norms = [named(self, side + ".norm", nn.LayerNorm(DIM)) for side in ("encoder", "decoder")]
        self.leave = [named(self, "decoder.leave", nn.Linear(DIM, DIM))]

    def run(self, source, target):
        lengths = [math.ceil(1.2 * n - 1e-9) for n in (source != PADDING).sum(1).tolist()]
        width = max(lengths + [target.shape[1]])
        x = F.pad(self.words(self.source, source), (0, 0, 0, max(width - source.shape[1], 0))) * math.sqrt(DIM)
        padding = torch.arange(x.shape[1])[None] >= torch.tensor(lengths)[:, None]
        for i, b in enumerate(self.blocks[0]):
            x = b(x, BYTENET["kernel"], 2 ** (i % 5), False, padding[:, :, None])
        x = self.norms[0](x).masked_fill(padding[:, :, None], 0)[:, :target.shape[1]]
        x = x + self.words(self.target, target) * math.sqrt(DIM)
        for i, b in enumerate(self.blocks[1]):
            x = b(x, BYTENET["decoder_kernel"], 2 ** (i % 5), True, None)
        return self.leave[0](self.norms[1](x).relu()), None


class GNMT(Translator):
    options = STACKS

    def __init__(self):
        super().__init__()
        n = STACKS["layers"]
        self.up = [named(self, "encoder.%d" % i, nn.LSTM(DIM if i != 1 else 2 * DIM, DIM, batch_first=True,
                                                         bidirectional=i == 0)) for i in range(n)]
        self.cell = [named(self, "decoder.0", nn.LSTMCell(2 * DIM, DIM))]
        self.down = [None] + [named(self, "decoder.%d" % i, nn.LSTM(2 * DIM, DIM, batch_first=True))
                              for i in range(1, n)]
        self.attention = nn.Module()
        self.attention.query_proj = nn.Linear(DIM, DIM, bias=False)
        self.attention.memory_proj = nn.Linear(DIM, DIM)
        self.attention.score = nn.Linear(DIM, 1, bias=False)

    def run(self, source, target):
        lengths, n, a = (source != PADDING).sum(1), STACKS["layers"], self.attention
        packed = nn.utils.rnn.pack_padded_sequence
        x, states = self.words(self.source, source), []
        for i, m in enumerate(self.up):
            y, (h, c) = m(packed(x, lengths, batch_first=True, enforce_sorted=False))
            y = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=source.shape[1])[0]
            states.append((h[-1], c[-1]))
            x = x + y if i > 1 else y
        memory, keys = x, a.memory_proj(x)
        words, (h, c) = self.words(self.target, target), states[0]
        ys, contexts, weights = [], [], []
        for t in range(target.shape[1]):
            e = a.score((a.query_proj(h)[:, None] + keys).tanh())[:, :, 0]
            w = e.masked_fill(source == PADDING, -math.inf).softmax(-1)
            contexts.append((w[:, :, None] * memory).sum(1))
            h, c = self.cell[0](torch.cat([words[:, t], contexts[-1]], 1), (h, c))
            ys.append(h), weights.append(w)
        x, context = torch.stack(ys, 1), torch.stack(contexts, 1)
        for i in range(1, n):
            y = self.down[i](torch.cat([x, context], 2), tuple(s[None] for s in states[i]))[0]
            x = x + y if i > 1 else y
        return x, torch.stack(weights, 1)


def write(folder, config, tensors):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=2, sort_keys=True)
        f.write("\n")
    save_file({k: v.detach().float().contiguous() for k, v in tensors.items()},
              os.path.join(folder, "model.safetensors"), {"format": "pt"})


def main():
    torch.manual_seed(7)
    source = torch.randint(4, WORDS[0], (3, 7))
    source[:, -1], source[1, 4], source[1, 5:], source[2, 1], source[2, 2:] = 3, 3, 0, 3, 0
    target = torch.randint(4, WORDS[1], (3, 11))
    target[:, 0], target[:, -1], target[1, 5], target[1, 6:] = 2, 3, 3, 0
    answers = {"source": source, "target": target}
    for kind, make in (("convs2s", ConvS2S), ("bytenet", ByteNet), ("gnmt", GNMT)):
        m = make()
        with torch.no_grad():
            for name, p in m.named_parameters():
                if "norm" in name and name.endswith("weight"):
                    p.copy_(1 + 0.3 * torch.randn(p.shape))
                elif p.dim() == 1 and "out" not in name:
                    p.copy_(0.2 * torch.randn(p.shape))
            m.source.weight[PADDING] = 0
            m.target.weight[PADDING] = 0
            for p in m.parameters():
                p.copy_(p.float())
        m.double()
        logits, weights = m(source, target[:, :-1])
        loss = F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=PADDING)
        loss.backward()
        config = dict(m.options, model_type="tenon-seq2seq", kind=kind, source_words=WORDS[0],
                      target_words=WORDS[1], dim=DIM, dropout=0.0, padding=PADDING, begin=2, end=3)
        write(os.path.join(HERE, kind), config, m.state_dict())
        write(os.path.join(HERE, kind + ".grad"), config, {k: p.grad for k, p in m.named_parameters()})
        answers[kind + ".logits"], answers[kind + ".loss"] = logits.detach().float(), loss.detach().float()
        if weights is not None:
            answers[kind + ".alignment"] = weights.detach().float()
        print(kind, "%d parameters, loss %.6f" % (sum(p.numel() for p in m.parameters()), loss.item()))
    save_file({k: v.contiguous() for k, v in answers.items()}, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/translators.py"})


main()

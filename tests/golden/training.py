#!/usr/bin/python3
"""Writes training.safetensors: the losses of 20 training steps, and the gradient norms before clipping, in PyTorch for
the five models of tests/unit/optim/test_golden_training.c.

    /usr/bin/python3 tests/golden/training.py       (Debian's python3-torch 1.13 and python3-numpy)

Weights and tokens are not stored: both sides compute them from the formula of case.py. Results are computed in f64; the
script also prints the deviation of PyTorch's f32.
"""
import math
import os
import sys
import warnings

sys.dont_write_bytecode = True
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from case import Case, write

warnings.filterwarnings("ignore")
STEPS, V, D, H, FF = 20, 29, 16, 4, 32
B, S, T = 4, 7, 6
L = torch.optim.lr_scheduler


def tokens(name, step, low, high, *shape):
    """Four batches, repeated in a cycle."""
    h = 2166136261
    for c in ("%s/%d" % (name, step % 4)).encode():
        h = (h ^ c) * 16777619 % 2**32
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    return torch.from_numpy(low + (i * 7919 + h) % 10007 % (high - low)).reshape(shape)


def padded(name, step, n):
    """Token ids from 3; sequence b is shorter by b tokens and padded with 0."""
    x = tokens(name, step, 3, V, B, n)
    for b in range(B):
        x[b, n - b:] = 0
    return x


def shifted(y, start=1):
    """The decoder's input for the target y."""
    return torch.cat([torch.full((y.shape[0], 1), start), y[:, :-1]], 1)


def warmup(up, steps, decay):
    def f(t):
        if t < up:
            return t / up
        p = (t - up) / (steps - up)
        return 1 - p if decay == "linear" else 0.5 * (1 + math.cos(math.pi * p))
    return lambda o: L.LambdaLR(o, f)


def sinusoids(n, dtype):
    i, t = torch.arange(D), torch.arange(n).double()[:, None]
    angle = t * torch.pow(torch.tensor(10000.0).double(), -(i // 2 * 2).double() / D)
    return torch.where(i % 2 == 0, torch.sin(angle), torch.cos(angle)).to(dtype)


class Seq2Seq(nn.Module):
    """Encoder-decoder Transformer, as in "Attention is all you need"."""
    clip = 1.0

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(V, D), nn.Embedding(V, D)
        self.transformer = nn.Transformer(D, H, 2, 2, FF, 0.0, batch_first=True)
        self.out = nn.Linear(D, V)

    def optimizer(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
        return opt, L.LambdaLR(opt, lambda t: 0.5 * D ** -0.5 * min(max(t, 1) ** -0.5, max(t, 1) * 8 ** -1.5))

    def embed(self, table, x):
        e = table(x) * math.sqrt(D)
        return e + sinusoids(x.shape[1], e.dtype)

    def loss(self, step):
        x, y = padded("seq2seq/x", step, S), padded("seq2seq/y", step, T)
        read = shifted(y)
        mask = torch.ones(T, T, dtype=torch.bool).triu(1)
        h = self.transformer(self.embed(self.source, x), self.embed(self.target, read), tgt_mask=mask,
                             src_key_padding_mask=x == 0, tgt_key_padding_mask=read == 0,
                             memory_key_padding_mask=x == 0)
        return F.cross_entropy(self.out(h).transpose(1, 2), y, ignore_index=0, label_smoothing=0.1)


class Bert(nn.Module):
    """Encoder with an MLM head that is tied to the embedding; only masked positions are projected to the vocabulary."""
    clip = 1.0

    def __init__(self):
        super().__init__()
        self.words, self.segments = nn.Embedding(V, D), nn.Embedding(2, D)
        self.positions = nn.Embedding(S, D)
        self.norm = nn.LayerNorm(D, eps=1e-12)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, FF, 0.0, "gelu", batch_first=True), 2)
        self.head = nn.Module()
        self.head.bias = nn.Parameter(torch.zeros(V))
        self.head.transform = nn.ModuleDict({"dense": nn.Linear(D, D), "LayerNorm": nn.LayerNorm(D, eps=1e-12)})
        self.head.decoder = nn.Linear(D, V, bias=False)
        self.head.decoder.weight = self.words.weight

    def optimizer(self):
        vectors = [p for p in self.parameters() if p.dim() < 2]
        matrices = [p for p in self.parameters() if p.dim() > 1]
        opt = torch.optim.AdamW([{"params": matrices}, {"params": vectors, "weight_decay": 0.0}], lr=5e-3,
                                weight_decay=0.05)
        return opt, warmup(4, STEPS, "linear")(opt)

    def loss(self, step):
        x = padded("bert/x", step, S)
        blocked = x == 0
        where = torch.tensor([b * S + (b + step % 4) % (S - B) for b in range(B)] + [2 * S + 4])
        target = x.reshape(-1)[where]
        x = x.reshape(-1).index_fill(0, where, 2).reshape(B, S)
        segments = (torch.arange(S) >= 3).long().expand(B, S)
        e = self.norm(self.words(x) + self.positions.weight + self.segments(segments))
        h = self.encoder(e, src_key_padding_mask=blocked).reshape(-1, D)[where]
        h = self.head.transform["LayerNorm"](F.gelu(self.head.transform["dense"](h)))
        return F.cross_entropy(self.head.decoder(h) + self.head.bias, target)


class Gpt(nn.Module):
    """Decoder without cross-attention, pre-norm; the output is tied to the embedding."""
    clip = 0.5

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(V, D), nn.Embedding(S, D)
        layer = nn.TransformerEncoderLayer(D, H, FF, 0.0, "gelu", batch_first=True, norm_first=True)
        self.decoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(D))

    def optimizer(self):
        opt = torch.optim.AdamW(self.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.1)
        return opt, warmup(3, STEPS + 5, "cosine")(opt)

    def loss(self, step):
        x = tokens("gpt", step, 0, V, B, S + 1)
        mask = torch.ones(S, S, dtype=torch.bool).triu(1)
        h = self.decoder(self.words(x[:, :-1]) + self.positions.weight, mask=mask)
        return F.cross_entropy(F.linear(h, self.words.weight).transpose(1, 2), x[:, 1:])


class LstmLm(nn.Module):
    """Language model that starts each step with the states of the previous step."""
    clip = 0.25

    def __init__(self):
        super().__init__()
        self.words, self.lstm, self.out = nn.Embedding(V, D), nn.LSTM(D, 20, 2, batch_first=True), nn.Linear(20, V)
        self.states = None

    def optimizer(self):
        opt = torch.optim.AdamW(self.parameters(), lr=5e-3)
        return opt, L.StepLR(opt, 6, 0.5)

    def loss(self, step):
        x = tokens("lstm_lm", step, 0, V, B, S + 1)
        y, states = self.lstm(self.words(x[:, :-1]), self.states)
        self.states = [s.detach() for s in states]
        return F.cross_entropy(self.out(y).transpose(1, 2), x[:, 1:])


class Bahdanau(nn.Module):
    """Bidirectional GRU, and a GRU that attends to it for each output token."""
    clip = 1.0

    def __init__(self):
        super().__init__()
        self.source, self.target = nn.Embedding(V, D), nn.Embedding(V, D)
        self.encoder = nn.GRU(D, 10, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(20, 12)
        self.attention = nn.Module()
        self.attention.query_proj = nn.Linear(12, 14, bias=False)
        self.attention.memory_proj = nn.Linear(20, 14)
        self.attention.score = nn.Linear(14, 1, bias=False)
        self.cell = nn.GRUCell(D + 20, 12)
        self.out = nn.Linear(12 + 20 + D, V)

    def optimizer(self):
        opt = torch.optim.AdamW(self.parameters(), lr=1e-3)
        return opt, L.OneCycleLR(opt, 1e-2, STEPS + 1)

    def loss(self, step):
        x, y = padded("bahdanau/x", step, S), padded("bahdanau/y", step, T)
        packed = pack_padded_sequence(self.source(x), (x != 0).sum(1), True, enforce_sorted=False)
        memory, last = self.encoder(packed)
        memory = pad_packed_sequence(memory, True, total_length=S)[0]
        h = torch.tanh(self.bridge(torch.cat([last[0], last[1]], 1)))
        keys, words, said = self.attention.memory_proj(memory), self.target(shifted(y)), []
        for t in range(T):
            e = self.attention.score(torch.tanh(self.attention.query_proj(h).unsqueeze(1) + keys)).squeeze(2)
            w = torch.softmax(e.masked_fill(x == 0, -math.inf), 1)
            seen = (w.unsqueeze(1) @ memory).squeeze(1)
            h = self.cell(torch.cat([words[:, t], seen], 1), h)
            said.append(self.out(torch.cat([h, seen, words[:, t]], 1)))
        return F.cross_entropy(torch.stack(said, 2), y, ignore_index=0)


MODELS = {"seq2seq": (Seq2Seq, 0.4), "bert": (Bert, 0.4), "gpt": (Gpt, 0.4), "lstm_lm": (LstmLm, 0.6),
          "bahdanau": (Bahdanau, 0.6)}


def train(name, dtype):
    make, matrices = MODELS[name]
    net = Case(name, matrices, dtype).fill(make())
    opt, schedule = net.optimizer()
    losses, norms = [], []
    for step in range(STEPS):
        opt.zero_grad()
        loss = net.loss(step)
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(net.parameters(), net.clip).item())
        losses.append(loss.item())
        opt.step()
        schedule.step()
    return {name + "/losses": torch.tensor(losses, dtype=torch.float64),
            name + "/norms": torch.tensor(norms, dtype=torch.float64)}


tensors = {}
for name in MODELS:
    exact = train(name, torch.float64)
    tensors.update(exact)
    for n, t in train(name, torch.float32).items():
        print("%-18s f32 differs by %.2g; %s" % (n, ((t - exact[n]) / exact[n]).abs().max(),
                                                " ".join("%.4f" % v for v in exact[n][::5].tolist())))
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "training.safetensors")
write(path, tensors, {"format": "pt", "made by": "tests/golden/training.py, torch " + torch.__version__})
print("%d tensors, %d bytes" % (len(tensors), os.path.getsize(path)))

#!/usr/bin/python3
"""Writes rnn.safetensors: the results of PyTorch for the recurrent networks of tests/unit/nn/test_golden_rnn.c: outputs
and last states, concatenated, and gradients of inputs, initial states and parameters.

    /usr/bin/python3 tests/golden/rnn.py        (Debian's python3-torch 1.13 and python3-numpy)
"""
import sys

sys.dont_write_bytecode = True
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from case import case, run

B, T, IN, H = 3, 5, 4, 6
LENGTHS = [3, 5, 1]
SEED = 2017


def flat(*t):
    return torch.cat([x.reshape(-1) for x in t])


def states(out):
    return flat(*out) if isinstance(out, tuple) else flat(out)


def network(name, make, lengths=False, given=False):
    """Runs a network on x, optionally with lengths and initial states."""
    def f(k):
        m = k.fill(make())
        n = m.num_layers * (2 if m.bidirectional else 1)
        x = k.input("x", *((B, T, IN) if m.batch_first else (T, B, IN)))
        first = None
        if given:
            first = k.input("h0", n, B, H)
            if m.mode == "LSTM":
                first = first, k.input("c0", n, B, H)
        if lengths:
            x = pack_padded_sequence(x, torch.tensor(LENGTHS), m.batch_first, enforce_sorted=False)
        y, last = m(x, first)
        if lengths:
            y = pad_packed_sequence(y, m.batch_first, total_length=T)[0]
        return flat(y, states(last))
    f.__name__ = name
    return case(f)


for name, kind in ("rnn", nn.RNN), ("lstm", nn.LSTM), ("gru", nn.GRU):
    network(name, lambda kind=kind: kind(IN, H, batch_first=True))
    network(name + "_given", lambda kind=kind: kind(IN, H, 2, bias=False), given=True)
    network(name + "_lengths", lambda kind=kind: kind(IN, H, 2, batch_first=True), lengths=True, given=True)
    network(name + "_both", lambda kind=kind: kind(IN, H, 2, bidirectional=True), lengths=True)
    network(name + "_both_given", lambda kind=kind: kind(IN, H, bidirectional=True, batch_first=True), True, True)
network("rnn_relu", lambda: nn.RNN(IN, H, nonlinearity="relu", bidirectional=True), lengths=True, given=True)
network("lstm_dropout", lambda: nn.LSTM(IN, H, dropout=0.25, batch_first=True))  # one layer: no dropout between layers


def projected(name, layers, both, bias=True):
    """An LSTM with proj_size, lengths and initial states."""
    def f(k):
        m = k.fill(nn.LSTM(IN, H, layers, bias=bias, bidirectional=both, proj_size=2))
        n = layers * (2 if both else 1)
        x = pack_padded_sequence(k.input("x", T, B, IN), torch.tensor(LENGTHS), enforce_sorted=False)
        y, last = m(x, (k.input("h0", n, B, 2), k.input("c0", n, B, H)))
        return flat(pad_packed_sequence(y, total_length=T)[0], states(last))
    f.__name__ = name
    return case(f)


projected("lstm_proj", 1, False)
projected("lstm_proj_both", 2, True)
projected("lstm_proj_plain", 2, False, bias=False)


def philox(seed, position):
    """The four words of a block of Philox 4x32-10, Tenon's generator (core/tensor/generator.c)."""
    low = 2**32 - 1
    c, k = [position & low, position >> 32, 0, 0], [seed & low, seed >> 32]
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k[0], b & low, a >> 32 ^ c[3] ^ k[1], a & low]
        k = [(k[0] + 0x9E3779B9) & low, (k[1] + 0xBB67AE85) & low]
    return c


def kept(w, p, seed, position):
    """Tenon's dropout mask of w: 0 or 1 / (1 - p). The given block seeds its generator; also returns the next block."""
    blocks = -(-w.numel() // 16) * 2  # two for 16 elements: the lower halves of their eight words, then the upper ones
    low, high = philox(seed, position)[:2]
    words = [word for i in range(blocks) for word in philox(high << 32 | low, i)]
    bits = [words[i // 16 * 8 + i % 8] >> (16 if i % 16 >= 8 else 0) & 0xffff for i in range(w.numel())]
    mask = torch.tensor([b >= round(p * 2**16) for b in bits]).reshape(w.shape)
    assert mask.any() and not mask.all()
    return mask.to(w.dtype) / (1 - p), position + 1


def weight_dropped(name, make, p, lengths=False):
    """DropConnect of the recurrent weights (AWD-LSTM), with Tenon's masks after tn_seed(SEED)."""
    def f(k):
        m, position = k.fill(make()), 0
        for i, n in enumerate(m._flat_weights_names):
            if n.startswith("weight_hh"):
                mask, position = kept(m._flat_weights[i], p, SEED, position)
                m._flat_weights[i] = m._flat_weights[i] * mask
        n = m.num_layers * (2 if m.bidirectional else 1)
        x, first = k.input("x", T, B, m.input_size), k.input("h0", n, B, m.proj_size or m.hidden_size)
        if m.mode == "LSTM":
            first = first, k.input("c0", n, B, m.hidden_size)
        if lengths:
            x = pack_padded_sequence(x, torch.tensor(LENGTHS), enforce_sorted=False)
        y, last = m(x, first)
        if lengths:
            y = pad_packed_sequence(y, total_length=T)[0]
        return flat(y, states(last))
    f.__name__ = name
    return case(f)


weight_dropped("lstm_weight_drop", lambda: nn.LSTM(3, 7), 0.5)
weight_dropped("lstm_weight_drop_both", lambda: nn.LSTM(3, 5, 2, bidirectional=True), 0.3, lengths=True)
weight_dropped("lstm_weight_drop_proj", lambda: nn.LSTM(3, 5, 2, bias=False, proj_size=3), 0.25)
weight_dropped("gru_weight_drop", lambda: nn.GRU(3, 5, 2), 0.3, lengths=True)  # 75 weights: 19 blocks of 4
weight_dropped("rnn_weight_drop", lambda: nn.RNN(3, 5, 2, bidirectional=True), 0.5)


def cell(name, make, given=True):
    def f(k):
        m = k.fill(make())
        x, first = k.input("x", B, IN), None
        if given:
            first = k.input("h", B, H)
            if isinstance(m, nn.LSTMCell):
                first = first, k.input("c", B, H)
        return states(m(x, first))
    f.__name__ = name
    return case(f)


cell("rnn_cell", lambda: nn.RNNCell(IN, H))
cell("rnn_cell_relu", lambda: nn.RNNCell(IN, H, nonlinearity="relu"))
cell("lstm_cell", lambda: nn.LSTMCell(IN, H))
cell("gru_cell", lambda: nn.GRUCell(IN, H))
cell("lstm_cell_zero", lambda: nn.LSTMCell(IN, H, bias=False), False)
cell("gru_cell_zero", lambda: nn.GRUCell(IN, H), False)

run(__file__, "rnn", strays=1.2e-6)

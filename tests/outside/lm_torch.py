#!/usr/bin/env python3
"""The LSTM language model of `lm train` in PyTorch, to compare quality and speed.

    lm_torch.py train --train FILE --valid FILE [--test FILE] [--vocab 10000] [--size 200] [--layers 2] [--epochs 6] ...
    lm_torch.py check DIR FILE        measure a model of `lm train` with PyTorch: prints "perplexity N"

Recipe, the defaults of `lm train --optimizer adam`: words separated by white space, <eos> at the end of each line, the
most frequent words and <unk>; parallel columns with carried states; an LSTM with tied embeddings, the same dropout mask
for a whole sequence; AdamW, gradients clipped to 1, warm-up over a tenth of the steps, then linear decay to 0. Prints
words per second, and perplexities with the state carried through ten columns. Tested with torch 2.15. Exits with 77 if
PyTorch is missing.
"""
import argparse
import collections
import json
import math
import os
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    print("skipped: PyTorch is missing")
    sys.exit(77)


def words_of(path):
    return [w for line in open(path, encoding="utf-8") for w in line.split() + ["<eos>"]]


def locked(x, p, training):
    """Dropout of x [T, B, n] with the same mask in all steps."""
    if not training or p == 0:
        return x
    return x * x.new_empty(1, x.size(1), x.size(2)).bernoulli_(1 - p) / (1 - p)


class Model(nn.Module):
    def __init__(self, vocab, dim, hidden, layers, dropout, tied=True, cell="lstm"):
        super().__init__()
        kind = {"lstm": nn.LSTM, "gru": nn.GRU, "elman": nn.RNN}[cell]
        width = [dim] + [hidden] * (layers - 1) + [dim if tied else hidden]
        self.encoder = nn.Embedding(vocab, dim)
        self.rnns = nn.ModuleList(kind(width[i], width[i + 1]) for i in range(layers))
        self.decoder = nn.Linear(width[-1], vocab)
        if tied:
            self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        if not tied:
            nn.init.uniform_(self.decoder.weight, -0.1, 0.1)
        self.dropout = dropout

    def forward(self, x, states):
        y, after = locked(self.encoder(x), self.dropout, self.training), []
        for rnn, state in zip(self.rnns, states):
            y, s = rnn(y, state)
            after.append(tuple(t.detach() for t in s) if isinstance(s, tuple) else s.detach())
            y = locked(y, self.dropout, self.training)
        return self.decoder(y), after


def columns(ids, batch):
    n = len(ids) // batch
    return torch.tensor(ids[:n * batch]).view(batch, n).t().contiguous()


@torch.no_grad()
def perplexity(model, data, length):
    model.eval()
    states, total, count = [None] * len(model.rnns), 0.0, 0
    for at in range(0, len(data) - 1, length):
        n = min(length, len(data) - 1 - at)
        y, states = model(data[at:at + n], states)
        total += nn.functional.cross_entropy(y.flatten(0, 1), data[at + 1:at + 1 + n].flatten(), reduction="sum").item()
        count += data[at + 1:at + 1 + n].numel()
    model.train()
    return math.exp(total / count)


def opened(folder, dropout=0):
    """Loads a model of `lm train` and its vocabulary."""
    import struct
    config = json.load(open(os.path.join(folder, "config.json")))
    number = json.load(open(os.path.join(folder, "tokenizer.json")))["model"]["vocab"]
    raw = open(os.path.join(folder, "model.safetensors"), "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    head = json.loads(raw[8:8 + size])
    state = {}
    for name, t in head.items():
        if name != "__metadata__":
            b, e = t["data_offsets"]
            data = bytearray(raw[8 + size + b:8 + size + e])
            state[name] = torch.frombuffer(data, dtype=torch.float32).view(t["shape"])
    tied = config.get("tie_word_embeddings", True)
    model = Model(config["vocab_size"], config["embedding_size"], config["hidden_size"], config["num_layers"], dropout,
                  tied, config["cell"])
    if tied:
        state["decoder.weight"] = state["encoder.weight"]
    model.load_state_dict(state)
    return model, number


def check(a):
    """Perplexity as in `lm eval`: one column, from start to end."""
    model, number = opened(a.dir)
    ids = [number.get(w, 0) for w in words_of(a.file)]
    print(f"perplexity {perplexity(model, columns(ids, 1), 256):.4f}")


def train(a):
    words = words_of(a.train)
    counts = [p for p in collections.Counter(words).items() if p[0] not in ("<eos>", "<unk>")]
    common = [w for w, _ in sorted(counts, key=lambda p: (-p[1], p[0].encode()))[:a.vocab]]
    number = {w: i for i, w in enumerate(["<unk>", "<eos>"] + common)}
    ids = {name: [number.get(w, 0) for w in words_of(path)] for name, path in
           (("train", a.train), ("valid", a.valid), ("test", a.test)) if path}
    torch.manual_seed(a.seed)
    model = Model(len(number), a.size, a.hidden or a.size, a.layers, a.dropout)
    if a.init:
        model, theirs = opened(a.init, a.dropout)
        assert theirs == number, "the words' numbers are others"
    data, valid = columns(ids["train"], a.batch), columns(ids["valid"], 10)
    steps = a.steps or a.epochs * math.ceil((len(data) - 1) / a.length)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() < 2]
    o = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0}], lr=a.lr)
    warm = int(0.1 * steps) + 1
    lr = torch.optim.lr_scheduler.LambdaLR(o, lambda t: t / warm if t < warm else (steps - t) / (steps - warm))
    step, spent, seen, best = 0, 0.0, 0, None
    while step < steps:
        states = [None] * a.layers
        for at in range(0, len(data) - 1, a.length):
            if step == steps:
                break
            began = time.perf_counter()
            n = min(a.length, len(data) - 1 - at)
            y, states = model(data[at:at + n], states)
            loss = nn.functional.cross_entropy(y.flatten(0, 1), data[at + 1:at + 1 + n].flatten())
            o.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1)
            o.step()
            lr.step()
            if a.every and (step + 1) % a.every == 0:
                print(f"step {step + 1}: loss {loss.item():.4f}")
            spent, seen, step = spent + time.perf_counter() - began, seen + n * a.batch, step + 1
        if a.steps and step == steps and not a.measure:
            break
        value = perplexity(model, valid, a.length)
        if best is None or value < best:
            best, kept = value, {k: v.clone() for k, v in model.state_dict().items()}
        print(f"step {step} of {steps}: train loss {loss.item():.4f}, valid perplexity {value:.2f}", flush=True)
    print(f"words per second {seen / spent:.0f}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    if best is not None:
        print(f"valid perplexity {best:.4f}")
        if a.test:
            model.load_state_dict(kept)
            print(f"test perplexity {perplexity(model, columns(ids['test'], 10), a.length):.4f}")


p = argparse.ArgumentParser()
p.add_argument("--threads", type=int, default=0)
sub = p.add_subparsers(dest="what", required=True)
t = sub.add_parser("train")
for name, kind, value in (("train", str, None), ("valid", str, None), ("test", str, None), ("vocab", int, 10000),
                          ("size", int, 200), ("hidden", int, 0), ("layers", int, 2), ("dropout", float, 0.2),
                          ("epochs", int, 6), ("steps", int, 0), ("batch", int, 20), ("length", int, 35),
                          ("lr", float, 1e-3),
                          ("seed", int, 1)):
    t.add_argument("--" + name, type=kind, default=value, required=value is None and name != "test")
t.add_argument("--init", help="initialise from a model of `lm train --steps 1 --lr 1e-9`")
t.add_argument("--every", type=int, default=0, help="print the loss every N steps")
t.add_argument("--measure", action="store_true", help="with --steps: also validate at the end")
c = sub.add_parser("check")
c.add_argument("dir")
c.add_argument("file")
a = p.parse_args()
if a.threads:
    torch.set_num_threads(a.threads)
(train if a.what == "train" else check)(a)

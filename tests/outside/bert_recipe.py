#!/usr/bin/env python3
"""The recipes of `bert train` in plain PyTorch: is a loss the recipe's, or a fault of the library?

    bert train --text TEXT... --valid FILE --out RUN --size mini --batch 16 --steps 500 --dtype f32
    tests/outside/bert_recipe.py RUN TEXT... --valid FILE

Trains the same recipe as the run in the folder RUN, on the same texts, with the run's tokenizer, size, batch, steps and
learning rate, but with its own initial weights, order and masks. Prints the last validation loss of both, and the mean
training loss of the last tenth of the steps, of which the run's log has only every tenth step. Prints "equal" if the
validation losses are within --within of each other. Needs PyTorch and the tokenizers package. No line of it is
Tenon's: --objective modernbert (rotary positions, gated feed-forward, norms first, no biases, Muon) and
--objective roberta (learned positions, feed-forward with GELU, norms first, dropout) are written out below."""
import argparse
import csv
import json
import math
import pathlib
import random

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer
from torch import nn


class Layer(nn.Module):
    def __init__(self, dim, heads, ff, modern, first, dropout, eps):
        super().__init__()
        self.heads, self.modern, self.dropout = heads, modern, dropout
        self.norm1 = nn.Identity() if modern and first else norm(dim, modern, eps)
        self.norm2 = norm(dim, modern, eps)
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=not modern), nn.Linear(dim, dim, bias=not modern)
        self.up = nn.Linear(dim, 2 * ff if modern else ff, bias=not modern)
        self.down = nn.Linear(ff, dim, bias=not modern)

    def forward(self, x, hidden, angles):
        b, t, dim = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        if self.modern:
            q, k = turn(q, *angles), turn(k, *angles)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(dim // self.heads)).masked_fill(hidden, -math.inf)
        weights = F.dropout(scores.softmax(-1), self.dropout, self.training)
        x = x + F.dropout(self.out((weights @ v).transpose(1, 2).reshape(b, t, dim)), self.dropout, self.training)
        h = self.up(self.norm2(x))
        if self.modern:
            gated, linear = h.chunk(2, -1)
            h = F.gelu(gated) * linear
        else:
            h = F.gelu(h)
        return x + F.dropout(self.down(h), self.dropout, self.training)


def norm(dim, modern, eps):
    n = nn.LayerNorm(dim, eps=eps)
    if modern:
        n.bias.requires_grad_(False)
    return n


def turn(x, cos, sin):
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


class Model(nn.Module):
    def __init__(self, vocab, dim, layers, heads, ff, modern, dropout, eps, positions=512):
        super().__init__()
        self.modern, self.dropout = modern, dropout
        self.words = nn.Embedding(vocab, dim)
        self.places = None if modern else nn.Embedding(positions, dim)
        self.types = None if modern else nn.Embedding(2, dim)
        self.norm, self.last = norm(dim, modern, eps), norm(dim, modern, eps)
        self.layers = nn.ModuleList(Layer(dim, heads, ff, modern, i == 0, dropout, eps) for i in range(layers))
        self.dense, self.head_norm = nn.Linear(dim, dim, bias=not modern), norm(dim, modern, eps)
        self.bias = nn.Parameter(torch.zeros(vocab))
        half = dim // heads // 2
        angle = torch.arange(positions)[:, None] / 1e4 ** (torch.arange(half) / half)[None]
        self.angles = [torch.cat((f, f), -1) for f in (angle.cos(), angle.sin())]
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.normal_(p, 0, 0.02)
        for m in self.modules():
            if isinstance(m, nn.Linear) and m.bias is not None:
                nn.init.zeros_(m.bias)

    def forward(self, ids, padding, at):
        t = ids.shape[1]
        x = self.words(ids)
        if not self.modern:
            x = x + self.places.weight[:t] + self.types.weight[0]
        x = F.dropout(self.norm(x), self.dropout, self.training)
        hidden = padding[:, None, None, :]
        for layer in self.layers:
            x = layer(x, hidden, [a[:t] for a in self.angles])
        x = self.head_norm(F.gelu(self.dense(self.last(x).flatten(0, 1)[at])))
        return x @ self.words.weight.T + self.bias


def examples(files, tokenizer, length):
    """Full sentences of one document, as many as fit, between [CLS] and [SEP]."""
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    made, now = [], []

    def end():
        if now:
            made.append([cls] + now + [sep])
            now.clear()

    for file in files:
        lines = pathlib.Path(file).read_text(encoding="utf-8").split("\n")
        for line, code in zip(lines, tokenizer.encode_batch(lines, add_special_tokens=False)):
            if not line.strip() or len(now) + len(code.ids) > length - 2:
                end()
            ids = code.ids
            while len(ids) > length - 2:
                made.append([cls] + ids[:length - 2] + [sep])
                ids = ids[length - 2:]
            now.extend(ids)
        end()
    return made


def batches(made, size, seed):
    """Examples of similar lengths together, the batches in a random order, again and again."""
    draw = random.Random(seed)
    while True:
        order = sorted(range(len(made)), key=lambda i: (len(made[i]), draw.random()))
        groups = [order[i:i + size] for i in range(0, len(order), size)]
        draw.shuffle(groups)
        for group in groups:
            yield [made[i] for i in group]


def tensors(rows, draw, rate, vocab, mask, special):
    width = max(map(len, rows))
    ids, at, want = torch.zeros(len(rows), width, dtype=torch.long), [], []
    padding = torch.ones(len(rows), width, dtype=torch.bool)
    for r, row in enumerate(rows):
        row = list(row)
        padding[r, :len(row)] = False
        places = [i for i, token in enumerate(row) if token not in special]
        for i in sorted(draw.sample(places, max(int(len(places) * rate + 0.5), 1)) if places else []):
            at.append(r * width + i), want.append(row[i])
            u = draw.random()
            row[i] = mask if u < 0.8 else draw.randrange(len(special), vocab) if u < 0.9 else row[i]
        ids[r, :len(row)] = torch.tensor(row)
    return ids, padding, torch.tensor(at), torch.tensor(want)


def optimizers_of(net, modern):
    """AdamW; of modernbert, Muon for the matrices."""
    muon = [p for p in net.parameters() if modern and p.ndim == 2 and p is not net.words.weight]
    rest = [p for p in net.parameters() if all(p is not m for m in muon)]
    adamw = torch.optim.AdamW(rest, lr=1, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    if not modern:
        return [adamw]
    return [adamw, torch.optim.Muon(muon, lr=1, weight_decay=0.01, momentum=0.95, adjust_lr_fn="match_rms_adamw")]


def logged(run, column):
    with open(run / "log.csv", newline="") as f:
        return [(int(r["step"]), float(r[column])) for r in csv.DictReader(f) if r[column]]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("run", type=pathlib.Path)
    p.add_argument("texts", nargs="+")
    p.add_argument("--valid", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--within", type=float, default=0.01)
    a = p.parse_args()
    asked = json.loads((a.run / "run.json").read_text())["asked"]
    config = json.loads((a.run / "config.json").read_text())
    tokenizer = Tokenizer.from_file(str(a.run / "tokenizer.json"))
    modern, steps, vocab = asked["objective"] == "modernbert", asked["steps"], tokenizer.get_vocab_size()
    mask = tokenizer.token_to_id("[MASK]")
    special = {tokenizer.token_to_id(f"[{t}]") for t in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    torch.manual_seed(a.seed)
    net = Model(vocab, asked["dim"], asked["layers"], asked["heads"], config["intermediate_size"], modern,
                asked["dropout"], config.get("norm_eps", config.get("layer_norm_eps", 1e-12)))
    train, held = (examples(f, tokenizer, asked["length"]) for f in (a.texts, [a.valid]))
    optimizers = optimizers_of(net, modern)
    draw, source, last = random.Random(a.seed), batches(train, asked["batch"], a.seed), []
    warmup = int(asked["warmup"] * steps) + 1
    for step in range(steps):
        rate = min((step + 1) / warmup, max((steps - step) / (steps - warmup), 0))
        for o in optimizers:
            o.param_groups[0]["lr"] = asked["lr"] * rate
        ids, padding, at, want = tensors(next(source), draw, 0.3 if modern else 0.15, vocab, mask, special)
        loss = F.cross_entropy(net(ids, padding, at), want)
        net.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        for o in optimizers:
            o.step()
        if step >= 0.9 * steps:
            last.append(loss.item())
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)
    net.eval()
    total = count = 0
    with torch.no_grad():
        for i in range(0, len(held), 64):
            ids, padding, at, want = tensors(held[i:i + 64], draw, 0.15, vocab, mask, special)
            total += F.cross_entropy(net(ids, padding, at), want, reduction="sum").item()
            count += len(want)
    here = {"train": sum(last) / len(last), "valid": total / count}
    there = [v for s, v in logged(a.run, "train/loss") if s > 0.9 * steps]
    there = {"train": sum(there) / len(there), "valid": logged(a.run, "valid/loss")[-1][1]}
    off = abs(here["valid"] / there["valid"] - 1)
    for k in here:
        print(f"{k}: PyTorch {here[k]:.4f}, run {there[k]:.4f}, ratio {here[k] / there[k]:.4f}")
    print("equal" if off <= a.within else "different")
    return off > a.within


if __name__ == "__main__":
    raise SystemExit(main())

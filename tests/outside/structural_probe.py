#!/usr/bin/env python3
"""Compares `look probe --trees` with PyTorch: the structural probe on one layer of a BERT.

    python3 tests/outside/structural_probe.py LOOK MODEL TRAIN.conllu TEST.conllu [LAYER [SENTENCES [RANK]]]

LOOK is Tenon's program. Tested with torch 2.15 and transformers 5.24. The recipe is that of Hewitt and Manning (2019),
with other random weights and batches than Tenon's. Fails if UUAS, DSpr, root or NSpr differ by 2 points or more.
"""
import subprocess
import sys

sys.dont_write_bytecode = True
try:
    import numpy as np
    import torch
    from transformers import AutoTokenizer, BertModel
except ImportError as e:
    print("skipped: %s" % e)
    sys.exit(77)

PUNCTUATION = ["''", ",", ".", ":", "``", "-LRB-", "-RRB-"]


def sentences(path, most):
    words, found = [], []
    for line in open(path, encoding="utf-8").read().split("\n"):
        if line and not line.startswith("#"):
            f = line.split("\t")
            if f[0].isdigit():
                words.append((f[1], int(f[6]) - 1, f[4]))
        elif not line:
            if 2 <= len(words) <= 100:
                found.append(words)
            words = []
        if len(found) == most:
            break
    return found


def gold(words):
    n, head = len(words), [w[1] for w in words]

    def path(i):
        return [i] + (path(head[i]) if head[i] >= 0 else [])
    up = [path(i) for i in range(n)]
    far = np.array([[len(set(up[i]) ^ set(up[j])) for j in range(n)] for i in range(n)], np.float32)
    return far, np.array([len(u) - 1 for u in up], np.float32)


def vectors(path, texts, layer):
    tokens, m, out = AutoTokenizer.from_pretrained(path), BertModel.from_pretrained(path).eval(), []
    for words in texts:
        e = tokens(" ".join(w[0] for w in words), return_offsets_mapping=True, return_tensors="pt")
        ends = np.cumsum([len(w[0]) + 1 for w in words]) - 1
        of = [-1 if a == b else int(np.searchsorted(ends, a, "right")) for a, b in e.pop("offset_mapping")[0].tolist()]
        with torch.no_grad():
            h = m(**e, output_hidden_states=True).hidden_states[layer][0]
        out.append(torch.stack([h[[p for p, k in enumerate(of) if k == i]].mean(0) for i in range(len(words))]))
    return out


def predict(b, h, depth):
    y = h @ b.T
    return (y ** 2).sum(-1) if depth else ((y[:, None] - y[None]) ** 2).sum(-1)


def train(data, rank, depth):
    fit = [d for i, d in enumerate(data) if i % 10 != 9]
    valid = [d for i, d in enumerate(data) if i % 10 == 9]
    torch.manual_seed(1)
    b = torch.nn.Parameter(torch.empty(rank, data[0][0].shape[1]).uniform_(-0.05, 0.05))
    opt = torch.optim.Adam([b], lr=1e-3)
    rate = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, factor=0.1, patience=0)

    def loss(d):
        return ((predict(b, d[0], depth) - d[2 if depth else 1]).abs() / len(d[0]) ** (1 if depth else 2)).sum()
    least, best, at = np.inf, b.detach().clone(), 0
    for epoch in range(40):
        order = torch.randperm(len(fit)).tolist()
        for k in range(0, len(fit), 20):
            opt.zero_grad()
            part = order[k:k + 20]
            (sum(loss(fit[i]) for i in part) / len(part)).backward()
            opt.step()
        with torch.no_grad():
            value = float(sum(loss(d) for d in valid) / len(valid))
        rate.step(value)
        if value < least - 1e-4:
            least, best, at = value, b.detach().clone(), epoch
        elif epoch >= at + 5:
            break
    return best


def edges(far, words):
    keep = [i for i, w in enumerate(words) if w[2] not in PUNCTUATION]
    group, found = {i: i for i in keep}, set()
    for _, i, j in sorted((far[i][j], i, j) for i in keep for j in keep if i < j):
        if group[i] != group[j]:
            was = group[j]
            group = {k: group[i] if g == was else g for k, g in group.items()}
            found.add((i, j))
    return found


def ranks(x):
    order, r = np.argsort(x, kind="stable"), np.empty(len(x))
    r[order] = np.arange(len(x))
    for v in np.unique(x):
        r[x == v] = r[x == v].mean()
    return r


def spearman(x, y):
    a, b = ranks(x), ranks(y)
    return float(np.corrcoef(a, b)[0, 1]) if a.std() and b.std() else 0.0


def mean(by):
    return 100 * np.mean([np.mean(v) for n, v in by.items() if 5 <= n <= 50])


def main(look, path, text, test, layer=3, most=500, rank=128):
    torch.set_num_threads(2)
    layer, most, rank = int(layer), int(most), int(rank)
    sets = [sentences(f, most) for f in (text, test)]
    h = [vectors(path, s, layer) for s in sets]
    scale = torch.cat(h[0]).pow(2).mean().sqrt()
    data = [[(x / scale, *map(torch.tensor, gold(w))) for x, w in zip(x, s)] for x, s in zip(h, sets)]
    far_probe, deep_probe = train(data[0], rank, False), train(data[0], rank, True)
    right = total = roots = all_roots = 0
    far_by, deep_by = {}, {}
    for (x, far, deep), words in zip(data[1], sets[1]):
        n, keep = len(words), [i for i, w in enumerate(words) if w[2] not in PUNCTUATION]
        p, d = predict(far_probe, x, False).numpy(), predict(deep_probe, x, True).numpy()
        g = edges(far.numpy(), words)
        right, total = right + len(g & edges(p, words)), total + len(g)
        if keep:
            roots += keep[int(np.argmin(d[keep]))] == keep[int(np.argmin(deep.numpy()[keep]))]
            all_roots += 1
        far_by.setdefault(n, []).extend(spearman(p[i], far.numpy()[i]) for i in range(n))
        deep_by.setdefault(n, []).append(spearman(d, deep.numpy()))
    ours = [100 * right / total, mean(far_by), 100 * roots / all_roots, mean(deep_by)]
    out = subprocess.run([look, "probe", "--trees", "--model", path, "--text", text, "--test", test, "--sentences",
                          str(most), "--rank", str(rank)], capture_output=True, text=True, check=True).stdout
    line = next(x for x in out.split("\n") if x.startswith("%d\t" % layer)).split("\t")
    theirs = [float(x) for x in line[1:5]]
    print("PyTorch", ["%.2f" % x for x in ours], "Tenon", ["%.2f" % x for x in theirs])
    return int(max(abs(a - b) for a, b in zip(ours, theirs)) >= 2)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
"""Compares `look probe --heads` with PyTorch: the syntactic heads of a BERT.

    python3 tests/outside/syntactic_heads.py LOOK MODEL SENTENCES.conllu [COUNT]

LOOK is Tenon's program. Tested with torch 2.15 and transformers 5.23. The words of a CoNLL-U sentence are joined with
spaces; attention to a word is the sum over its tokens, attention from a word the mean; [CLS], [SEP] and the word itself
are excluded (Clark et al. 2019). Fails if a number differs by 0.001 or more.
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


def sentences(path, most):
    words, found = [], []
    for line in open(path, encoding="utf-8").read().split("\n"):
        if line and not line.startswith("#"):
            f = line.split("\t")
            if f[0].isdigit():
                words.append((f[1], int(f[6]) - 1, f[7].split(":")[0]))
        elif not line:
            if 2 <= len(words) <= 100:
                found.append(words)
            words = []
        if len(found) == most:
            break
    return found


def main(look, path, conllu, most=500):
    torch.set_num_threads(1)
    tokens = AutoTokenizer.from_pretrained(path)
    m = BertModel.from_pretrained(path, attn_implementation="eager").eval()
    directed, undirected, by, seen, n = 0, 0, {}, {}, 0
    for words in sentences(conllu, most):
        e = tokens(" ".join(w[0] for w in words), return_offsets_mapping=True, return_tensors="pt")
        ends = np.cumsum([len(w[0]) + 1 for w in words]) - 1
        of = [-1 if a == b else int(np.searchsorted(ends, a, "right")) for a, b in e.pop("offset_mapping")[0].tolist()]
        with torch.no_grad():
            w = torch.stack(m(**e, output_attentions=True).attentions)[:, 0].double().numpy()  # [layers, heads, T, T]
        to = np.zeros((len(of), len(words)))
        for p, k in enumerate(of):
            if k >= 0:
                to[p, k] = 1
        mean = to / np.maximum(to.sum(0), 1)
        a = np.einsum("pi,lhpq,qj->lhij", mean, w, to)
        a[:, :, range(len(words)), range(len(words))] = -1
        best = a.argmax(-1)  # [layers, heads, words]
        for i, (_, head, relation) in enumerate(words):
            if head < 0:
                continue
            right = best[:, :, i] == head
            back = np.vectorize(lambda j: words[j][1] == i)(best[:, :, i])
            directed, undirected, n = directed + right, undirected + (right | back), n + 1
            by[relation] = by.get(relation, 0) + right
            seen[relation] = seen.get(relation, 0) + 1
    ours = subprocess.run([look, "probe", "--heads", "--model", path, "--text", conllu, "--sentences", str(most)],
                          capture_output=True, text=True, check=True).stdout.split("\n")[1:-1]
    heads, worst = directed.shape[1], 0
    for k, line in enumerate(ours):
        f, l, h = line.split("\t"), k // heads, k % heads
        want = [directed[l, h] / n, undirected[l, h] / n, by[f[4]][l, h] / seen[f[4]]]
        apart = max(abs(x - y) for x, y in zip(want, (float(f[2]), float(f[3]), float(f[5]))))
        worst = max(worst, apart)
        if apart >= 0.001:
            print("layer %d, head %d: %s here, '%s' there" % (l, h, want, line))
    print("%d heads, %d words: largest difference %.5f" % (len(ours), n, worst))
    for line in sorted(ours, key=lambda x: -float(x.split("\t")[2]))[:8]:
        print(line)
    return int(worst >= 0.001)


sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], *(int(x) for x in sys.argv[4:5])))

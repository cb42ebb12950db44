"""The workloads of bench/ in PyTorch, written like user code: the same models, sizes, losses, clipping and optimizer,
measured in the same way and printed as the same line of JSON. bench/compare.py runs it alternately with Tenon.

    bench/peers/python torch bench/peers/torch_workloads.py bert --threads 2 --seconds 5

--compile: by torch.compile, for training steps and encoder-infer. It needs a C++ compiler and Python's headers.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

from sizes import best_of, options, report

DROPOUT = 0.1
o = None  # the options of the run


def words(*shape):
    return torch.randint(0, o.vocab, shape or (o.batch, o.seq))


def some(of, n):
    return torch.randperm(of)[:n]


def encoder(norm_first):
    layer = nn.TransformerEncoderLayer(o.d_model, o.heads, o.ffn, DROPOUT, "gelu", batch_first=True,
                                       norm_first=norm_first)
    return nn.TransformerEncoder(layer, o.layers)


def causal_mask():
    return nn.Transformer.generate_square_subsequent_mask(o.seq)


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        d = o.d_model
        self.words, self.segments = nn.Embedding(o.vocab, d), nn.Embedding(2, d)
        self.positions = nn.Embedding(max(512, o.seq), d)
        self.norm, self.drop, self.encoder = nn.LayerNorm(d), nn.Dropout(DROPOUT), encoder(False)
        self.dense, self.head_norm = nn.Linear(d, d), nn.LayerNorm(d)
        self.bias = nn.Parameter(torch.zeros(o.vocab))

    def forward(self, x, segments, where):
        x = self.words(x) + self.positions(torch.arange(x.shape[1])) + self.segments(segments)
        x = self.encoder(self.drop(self.norm(x))).flatten(0, 1)[where]
        return F.linear(self.head_norm(F.gelu(self.dense(x))), self.words.weight, self.bias)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(o.vocab, o.d_model), nn.Embedding(o.seq, o.d_model)
        self.encoder, self.norm, self.mask = encoder(True), nn.LayerNorm(o.d_model), causal_mask()

    def forward(self, x):
        x = self.words(x) + self.positions(torch.arange(x.shape[1]))
        return F.linear(self.norm(self.encoder(x, self.mask)), self.words.weight)


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.mask = nn.Embedding(o.vocab, o.d_model), causal_mask()
        self.transformer = nn.Transformer(o.d_model, o.heads, o.layers, o.layers, o.ffn, DROPOUT, batch_first=True)

    def forward(self, x, y, padding):
        k = math.sqrt(o.d_model)
        h = self.transformer(self.words(x) * k, self.words(y) * k, tgt_mask=self.mask, src_key_padding_mask=padding,
                             memory_key_padding_mask=padding)
        return F.linear(h, self.words.weight)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(o.vocab, o.d_model), nn.Linear(o.d_model, o.vocab)
        self.lstm = nn.LSTM(o.d_model, o.d_model, o.layers, batch_first=True)

    def forward(self, x):
        return self.out(self.lstm(self.words(x))[0])


def autocast():
    return torch.autocast("cpu", torch.bfloat16, enabled=o.dtype == "bf16")


def compiled(function):
    return torch.compile(function) if o.compile else function


def train(model, loss):
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01)
    loss = compiled(loss)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            value = loss()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for _ in range(3):
        step()
    best, n = best_of(step, 3, o.seconds)
    return dict(step_ms=round(best * 1e3, 3), tok_s=round(o.batch * o.seq / best), steps=n,
                params=sum(p.numel() for p in model.parameters()))


def bert():
    m, x, segments = Bert(), words(), torch.zeros(o.batch, o.seq, dtype=torch.long)
    tokens = o.batch * o.seq
    masked = tokens * 15 // 100
    where, y = some(tokens, masked), words(masked)
    return train(m, lambda: F.cross_entropy(m(x, segments, where), y))


def gpt():
    m, x, y = Gpt(), words(), words()
    return train(m, lambda: F.cross_entropy(m(x).flatten(0, 1), y.flatten()))


def seq2seq():
    m, x, y, z = Translator(), words(), words(), words()
    padding = (torch.arange(o.seq) >= o.seq * 5 // 6).expand(o.batch, o.seq)
    return train(m, lambda: F.cross_entropy(m(x, y, padding).flatten(0, 1), z.flatten(), label_smoothing=0.1))


def lstm():
    m, x, y = Lstm(), words(), words()
    return train(m, lambda: F.cross_entropy(m(x).flatten(0, 1), y.flatten()))


def encoder_infer():
    m, x, where = Bert().eval(), words(), torch.arange(4)
    segments = torch.zeros(o.batch, o.seq, dtype=torch.long)
    forward = compiled(m)
    with torch.no_grad(), autocast():
        forward(x, segments, where)
        best, _ = best_of(lambda: forward(x, segments, where), 60, o.seconds)
    return dict(ms=round(best * 1e3, 4), tok_s=round(o.batch * o.seq / best),
                params=sum(p.numel() for p in m.parameters()))


def gpt_gen():
    """One token at a time, with explicit code: PyTorch's own layers have no key-value cache."""
    d, heads, length = o.d_model, o.heads, o.seq - 6
    m = Gpt().eval()

    def generate(n):
        keys, values = ([torch.zeros(1, heads, o.seq, d // heads) for _ in m.encoder.layers] for _ in range(2))
        token = torch.zeros(1, 1, dtype=torch.long)
        for i in range(n):
            x = m.words(token) + m.positions(torch.tensor([[i]]))
            for layer, k, v in zip(m.encoder.layers, keys, values):
                a = layer.self_attn
                q, k[:, :, i], v[:, :, i] = F.linear(layer.norm1(x), a.in_proj_weight, a.in_proj_bias).view(
                    1, 3, heads, d // heads).unbind(1)
                s = q.unsqueeze(2) @ k[:, :, :i + 1].transpose(2, 3) / math.sqrt(d // heads)
                x = x + a.out_proj((s.softmax(-1) @ v[:, :, :i + 1]).transpose(1, 2).reshape(1, 1, d))
                x = x + layer.linear2(F.gelu(layer.linear1(layer.norm2(x))))
            token = F.linear(m.norm(x), m.words.weight).argmax(-1)

    with torch.inference_mode(), autocast():
        generate(20)
        best, _ = best_of(lambda: generate(length), 3, o.seconds)
    return dict(tok_s=round(length / best, 1), params=sum(p.numel() for p in m.parameters()))


def overhead():
    x = torch.ones(4, 4, requires_grad=True)

    def run():
        y = x
        for _ in range(1000):
            y = y * 0.999 + 0.001
        y.sum().backward()

    run()
    best, _ = best_of(run, 50, o.seconds)
    return dict(ns_per_op_fwd_bwd=round(best / 2000 * 1e9, 1))


JOBS = {"bert": bert, "bert-small": bert, "seq2seq": seq2seq, "gpt": gpt, "lstm": lstm, "encoder-infer": encoder_infer,
        "gpt-gen": gpt_gen, "overhead": overhead}


def main():
    global o
    o = options(JOBS, flags=[("--compile", "by torch.compile")])
    if o.compile and JOBS[o.workload] in (gpt_gen, overhead):
        raise SystemExit("torch_workloads.py: --compile is for training steps and encoder-infer, not " + o.workload)
    torch.manual_seed(0)
    torch.set_num_threads(o.threads)
    report(o, "PyTorch " + torch.__version__, JOBS[o.workload]())


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the outputs and gradients of T5's relative positions in Hugging Face transformers.

    python3 tests/golden/t5.py

Tested with torch 2.15.0 and transformers 5.23.0. Writes t5.safetensors: an encoder's weights under Hugging Face's
names, x, its padding mask, the result y, and the gradients of x and of the table of buckets; and the buckets of
distances, bidirectional and causal, for several tables.
"""
import os
import sys

sys.dont_write_bytecode = True
import torch
from safetensors.torch import save_file
from transformers import T5Config, T5EncoderModel
from transformers.models.t5.modeling_t5 import T5Attention

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = T5Config(vocab_size=5, d_model=10, d_kv=4, d_ff=14, num_layers=2, num_heads=3, dropout_rate=0,
                  relative_attention_num_buckets=8, relative_attention_max_distance=9, feed_forward_proj="gated-silu")
TABLES = ((32, 128), (8, 9), (20, 50), (6, 1000))


def main():
    torch.manual_seed(3)
    m = T5EncoderModel(CONFIG).eval()
    with torch.no_grad():
        for name, p in m.named_parameters():
            p.copy_(torch.randn(p.shape) * (0.5 if p.dim() > 1 else 0.2) + (1 if p.dim() == 1 else 0))
    x = torch.randn(2, 13, CONFIG.d_model, requires_grad=True)
    there = torch.ones(2, 13, dtype=torch.long)
    there[1, 10:] = 0
    y = m(inputs_embeds=x, attention_mask=there).last_hidden_state
    seed = torch.randn(y.shape) * there[:, :, None]
    (y * seed).sum().backward()
    out = {k: v for k, v in m.state_dict().items() if k.startswith("encoder.block") or "final" in k}
    table = m.encoder.block[0].layer[0].SelfAttention.relative_attention_bias.weight
    out.update({"x": x, "key_padding_mask": there == 0, "y": y, "seed": seed, "grad.x": x.grad,
                "grad.table": table.grad})
    far = torch.arange(-300, 301)
    for buckets, distance in TABLES:
        for both in (True, False):
            out["buckets.%d.%d.%s" % (buckets, distance, "both" if both else "causal")] = \
                T5Attention._relative_position_bucket(far, bidirectional=both, num_buckets=buckets,
                                                      max_distance=distance).to(torch.uint8)
    save_file({k: v.detach().contiguous() for k, v in out.items()}, os.path.join(HERE, "t5.safetensors"),
              {"format": "pt", "made by": "tests/golden/t5.py"})
    print({k: tuple(v.shape) for k, v in out.items()})


main()

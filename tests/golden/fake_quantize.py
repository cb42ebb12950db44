"""Writes fake_quantize.safetensors: PyTorch's fake_quantize_per_channel_affine of rows, with the scales of Tenon's int8
(docs/quantisation.md), and its gradient for the cotangent g. Packages: torch 2.15, numpy, safetensors.

    python3 tests/golden/fake_quantize.py
"""
import os

import torch
from safetensors.torch import save_file

torch.manual_seed(3)
x, w, g = torch.randn(6, 37), torch.randn(5, 40) * torch.rand(5, 1), torch.randn(6, 37)
pairs = w.abs().reshape(5, 5, 2, 2, 2).sum((2, 4)).amax((1, 2))  # columns 8 i + {0, 1, 4, 5} and 8 i + {2, 3, 6, 7}
x.requires_grad_()


def rounded(t, scale, most):
    zeros = torch.zeros(len(t), dtype=torch.int32)
    return torch.fake_quantize_per_channel_affine(t, scale.detach(), zeros, 0, -most, most)


y = rounded(x, x.abs().amax(1) / 127, 127)
y.backward(g)
save_file({"x": x.detach(), "y": y.detach(), "g": g, "gx": x.grad, "w": w, "yw": rounded(w, pairs / 126, 126)},
          os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_quantize.safetensors"))

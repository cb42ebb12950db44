"""Tenon from Python: tensors that share memory with NumPy and PyTorch, autograd, models and tokenizers, over the C
library libtenon and without other requirements.

    import tenon

    x = tenon.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x.softmax(1) * x).sum().backward()
    print(x.grad.numpy())

    model = tenon.open("bert-base-uncased")
    print(model.embed(["Time flies.", "Fruit flies."]))
"""
from . import ops
from ._declarations import VERSION as __version__
from ._library import Error
from .models import Batch, Encoding, Model, Tokenizer, load, look, open, save
from .ops import *
from ._tensor import (
    Dtype,
    Tensor,
    arange,
    autocast,
    build_info,
    empty,
    eye,
    from_dlpack,
    from_numpy,
    full,
    grad,
    linspace,
    memory,
    no_grad,
    normal,
    ones,
    ones_like,
    permutation,
    randint,
    seed,
    set_threads,
    tensor,
    uniform,
    zeros,
    zeros_like,
)

f32, f64, bf16, i64, i32, u8 = Dtype.f32, Dtype.f64, Dtype.bf16, Dtype.i64, Dtype.i32, Dtype.u8

#!/usr/bin/env python3
"""Writes tests/golden/torch_files/: files of torch.save 2.15.0 in both formats, and the same tensors as safetensors."""
import collections
import os
import numpy as np
import torch
from safetensors.torch import save_file

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_files")
os.makedirs(here, exist_ok=True)
torch.manual_seed(5)
x = torch.arange(24, dtype=torch.float32).reshape(4, 6) / 8
state = collections.OrderedDict()
state["whole"] = x
state["turned"] = x.t()
state["part"] = x[1:3, ::2]
state["scalar"] = torch.tensor(1.5)
state["empty"] = torch.empty(0, 3)
for kind in ["float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8"]:
    state[kind] = torch.tensor([1, 2, 100]).to(getattr(torch, kind))
state["bool"] = torch.tensor([True, False, True])
state["parameter"] = torch.nn.Parameter(torch.tensor([[1.0, -2.0]]))
state._metadata = collections.OrderedDict([("", {"version": 1})])
torch.save(state, os.path.join(here, "new.bin"))
torch.save(state, os.path.join(here, "old.bin"), _use_new_zipfile_serialization=False)
torch.save({"epoch": 3, "lr": 0.1, "state_dict": state, "names": ["a", "b"]}, os.path.join(here, "checkpoint.bin"))
wide = {k: v.detach().clone().contiguous() for k, v in state.items()}
save_file(wide, os.path.join(here, "same.safetensors"))

#!/usr/bin/env python3
"""Writes a small Reformer of Hugging Face transformers, with the hash rotations of a fixed seed.

    python3 tests/golden/reformer.py

Tested with torch 2.15.0 and transformers 5.23.0. Writes reformer/model, the directory of a small model with random
weights, and reformer/answers.safetensors: the logits and the loss of a text that needs padding, and, in training mode
without dropout, the gradients of a text of the model's maximum length.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
from safetensors.torch import save_file
from transformers import ReformerConfig, ReformerModelWithLMHead

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reformer")
os.makedirs(HERE, exist_ok=True)
torch.manual_seed(7)
m = ReformerModelWithLMHead(ReformerConfig(
    vocab_size=29, hidden_size=12, feed_forward_size=20, attn_layers=["local", "lsh", "lsh"], num_attention_heads=2,
    attention_head_size=8, max_position_embeddings=32, axial_pos_shape=[4, 8], axial_pos_embds_dim=[4, 8],
    lsh_attn_chunk_length=8, local_attn_chunk_length=4, num_buckets=4, num_hashes=2, hash_seed=5, is_decoder=True,
    hidden_dropout_prob=0.0, lsh_attention_probs_dropout_prob=0.0, local_attention_probs_dropout_prob=0.0)).eval()
with torch.no_grad():
    for key, p in m.named_parameters():
        if key != "lm_head.bias":  # this release reads it but does not add it
            p.copy_(torch.randn(p.shape) * 0.3 + (1 if "norm.weight" in key else 0))
path = os.path.join(HERE, "model")
shutil.rmtree(path, ignore_errors=True)
m.save_pretrained(path)
for extra in os.listdir(path):
    if extra == "generation_config.json":
        os.remove(os.path.join(path, extra))
ids, long = torch.randint(1, 29, (2, 19)), torch.randint(1, 29, (2, 32))
y = m(ids, labels=ids)
answers = {"ids": ids, "long": long, "scores": y.logits.detach(), "loss": y.loss.detach()}
m.train()
m(long, labels=long).loss.backward()
for key, p in m.named_parameters():
    if p.grad is not None:
        answers["grad." + key] = p.grad
save_file({k: v.contiguous() for k, v in answers.items()}, os.path.join(HERE, "answers.safetensors"),
          {"format": "pt", "made by": "tests/golden/reformer.py"})

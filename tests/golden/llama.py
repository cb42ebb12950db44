#!/usr/bin/env python3
"""Exchanges LLaMA, Mistral and Qwen2 models between Hugging Face transformers and Tenon, in both directions.

    python3 tests/golden/llama.py

Tested with torch 2.13.0 and transformers 5.23.0. Writes llama/<name>, the directories of small models with random
weights, and llama/answers.safetensors: their logits, the gradient of the loss with respect to the embedding, and
generated tokens. Also opens llama/tenon, which tests/unit/models/test_llama.c writes if TENON_GOLDEN=write is set, and
compares the logits with those that Tenon stored there.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
from safetensors.torch import load_file, save_file
from transformers import (AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM,
                          Qwen2Config, Qwen2ForCausalLM)

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llama")
SIZES = dict(vocab_size=29, hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=2, max_position_embeddings=16, initializer_range=0.3, bos_token_id=0, eos_token_id=0)
LLAMA3 = dict(rope_type="llama3", rope_theta=50.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=3.0,
              original_max_position_embeddings=8)
MODELS = {
    "llama3": LlamaForCausalLM(LlamaConfig(**SIZES, head_dim=6, rope_parameters=LLAMA3, attention_bias=True,
                                           mlp_bias=True, tie_word_embeddings=True)),
    "mistral": MistralForCausalLM(MistralConfig(**SIZES, sliding_window=5)),
    "qwen2": Qwen2ForCausalLM(Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=4, max_window_layers=1)),
}
torch.manual_seed(7)
IDS = torch.randint(1, 29, (2, 11))


def main():
    os.makedirs(HERE, exist_ok=True)
    answers = {"ids": IDS}
    for name, m in MODELS.items():
        m.eval()
        with torch.no_grad():
            for p in m.parameters():
                p.copy_(torch.randn(p.shape) * 0.3 + (1 if p.dim() == 1 and "layernorm" in name else 0))
        path = os.path.join(HERE, name)
        shutil.rmtree(path, ignore_errors=True)
        m.save_pretrained(path, max_shard_size="12KB" if name == "qwen2" else "1GB")
        for extra in os.listdir(path):
            if extra == "generation_config.json":
                os.remove(os.path.join(path, extra))
        y = m(IDS, labels=IDS)
        y.loss.backward()
        answers[name + ".scores"], answers[name + ".loss"] = y.logits.detach(), y.loss.detach()
        answers[name + ".grad"] = m.model.embed_tokens.weight.grad
        out = m.generate(IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=8, do_sample=False, pad_token_id=0,
                         eos_token_id=None)
        answers[name + ".greedy"] = out[:, IDS.shape[1]:]
    save_file({k: v.contiguous() for k, v in answers.items()}, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/llama.py"})

    for name in sorted(os.listdir(os.path.join(HERE, "tenon"))) if os.path.isdir(os.path.join(HERE, "tenon")) else []:
        path = os.path.join(HERE, "tenon", name)
        m, report = AutoModelForCausalLM.from_pretrained(path, output_loading_info=True)
        assert not report["unexpected_keys"] and not report["mismatched_keys"], report
        assert all("lm_head" in k for k in report["missing_keys"]), report
        with torch.no_grad():
            worst = (m.eval()(IDS).logits - load_file(os.path.join(path, "answers.safetensors"))["scores"]).abs().max()
        print("llama/tenon/%s: a %s, largest difference %.1e" % (name, type(m).__name__, worst))
        assert worst <= 2e-5


main()

#!/usr/bin/env python3
"""Writes small models of LLaMA's relatives with transformers, for tests/unit/models/test_llama_families.c.

    python3 tests/golden/families.py

Tested with torch 2.15.0 and transformers 5.24.0. Writes families/<name>, directories with random weights;
families/<name>.grad, the same with the gradient of the loss in place of each weight; and families/answers.safetensors:
logits, losses and generated tokens.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
import transformers as hf
from safetensors.torch import save_file

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "families")
SIZES = dict(vocab_size=19, hidden_size=16, intermediate_size=10, num_hidden_layers=3, num_attention_heads=4,
             max_position_embeddings=16, initializer_range=0.3, bos_token_id=0, eos_token_id=0, pad_token_id=None)
GROUPED = dict(num_key_value_heads=2)
LOCAL = ["sliding_attention", "full_attention", "sliding_attention"]
MODELS = {
    "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**SIZES, **GROUPED, head_dim=6, use_sliding_window=True,
                                                        sliding_window=4, layer_types=LOCAL)),
    "gemma2": lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(**SIZES, **GROUPED, head_dim=6, query_pre_attn_scalar=5,
                                                           sliding_window=4, attn_logit_softcapping=1.5,
                                                           final_logit_softcapping=2.0)),
    "gemma3": lambda: hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(
        **SIZES, **GROUPED, head_dim=6, query_pre_attn_scalar=5, sliding_window=4, layer_types=LOCAL,
        rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 30.0},
                         "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 100.0}})),
    "olmo2": lambda: hf.Olmo2ForCausalLM(hf.Olmo2Config(**SIZES, **GROUPED)),
    "smollm3": lambda: hf.SmolLM3ForCausalLM(hf.SmolLM3Config(**{**SIZES, "pad_token_id": 3}, **GROUPED,
                                                              no_rope_layers=[1, 0, 1])),
    "phi3": lambda: hf.Phi3ForCausalLM(hf.Phi3Config(**SIZES, **GROUPED, sliding_window=4,
                                                     rope_parameters={"rope_type": "default", "rope_theta": 50.0,
                                                                      "partial_rotary_factor": 0.5})),
    "neox": lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**{**SIZES, "num_attention_heads": 2},
                                                           tie_word_embeddings=False)),
    "neox_in_turn": lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**SIZES,
                                                                   use_parallel_residual=False, attention_bias=False,
                                                                   tie_word_embeddings=True, rotary_pct=0.5)),
    "gptj": lambda: hf.GPTJForCausalLM(hf.GPTJConfig(vocab_size=19, n_embd=18, n_layer=3, n_head=3, n_positions=32,
                                                     rotary_dim=4, bos_token_id=0, eos_token_id=0,
                                                     initializer_range=0.3)),
    "mixtral": lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**SIZES, **GROUPED, head_dim=6, num_local_experts=5,
                                                              num_experts_per_tok=2, sliding_window=4,
                                                              router_aux_loss_coef=0.5)),
    "qwen3_moe": lambda: hf.Qwen3MoeForCausalLM(hf.Qwen3MoeConfig(**SIZES, **GROUPED, num_experts=4,
                                                                  num_experts_per_tok=2, moe_intermediate_size=6)),
}
torch.set_num_threads(1)
torch.manual_seed(7)
IDS = torch.randint(1, 19, (2, 11))


def main():
    os.makedirs(HERE, exist_ok=True)
    answers = {"ids": IDS}
    for name, make in MODELS.items():
        m = make().eval()
        if hasattr(m, "set_experts_implementation"):
            m.set_experts_implementation("eager")  # others need sizes that are multiples of four
        with torch.no_grad():
            for p in m.parameters():
                p.copy_(torch.randn(p.shape) * 0.3 + (p.dim() == 1 and p.mean() == 1))
        path = os.path.join(HERE, name)
        for folder in (path, path + ".grad"):
            shutil.rmtree(folder, ignore_errors=True)
        m.save_pretrained(path)
        out = m.generate(IDS, attention_mask=torch.ones_like(IDS), max_new_tokens=8, do_sample=False, pad_token_id=0,
                         eos_token_id=None)
        answers[name + ".greedy"] = out[:, IDS.shape[1]:]
        y = m.double()(IDS, labels=IDS)
        y.loss.backward()
        answers[name + ".scores"], answers[name + ".loss"] = y.logits.detach().float(), y.loss.detach().float()
        if name == "mixtral":
            answers[name + ".balance"] = m(IDS, labels=IDS, output_router_logits=True).aux_loss.detach().float()
        with torch.no_grad():
            for p in m.parameters():
                p.copy_(p.grad)
        m.float().save_pretrained(path + ".grad")
        for folder in (path, path + ".grad"):
            if os.path.exists(os.path.join(folder, "generation_config.json")):
                os.remove(os.path.join(folder, "generation_config.json"))
    save_file({k: v.contiguous() for k, v in answers.items()}, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/families.py"})


main()

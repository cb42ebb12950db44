#!/usr/bin/env python3
"""Compares GGUF files of all families with llama.cpp: random models of transformers, converted by `gpt convert`.

    tests/outside/gguf_families.py BUILD [NAME]

BUILD is a build folder of this project; NAME selects the families whose name contains it. llama.cpp's logits of a text
of 24 tokens must be within 1e-5 of the largest one of transformers', or 1e-3 with GELU, which it rounds to f16; it does
not read GPT-J. The file read back by `gpt convert` must have the tensors of the directory, bit for bit. Tested with
torch 2.15.0, transformers 5.24.0 and llama_cpp 0.3.36. Exits with 77 if they are missing, with 1 if one differs."""
import os
import subprocess
import sys
import tempfile
import warnings

sys.dont_write_bytecode = True
try:
    import llama_cpp
    import numpy
    import tokenizers
    import torch
    import transformers as hf
    from safetensors.torch import load_file
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)

SIZES = dict(vocab_size=300, hidden_size=64, intermediate_size=96, num_hidden_layers=4, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, max_position_embeddings=64, pad_token_id=None, bos_token_id=0,
             eos_token_id=0)
OLD = dict(vocab_size=300, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
           max_position_embeddings=64, bos_token_id=0, eos_token_id=0)
FAMILIES = {
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES)),
    "qwen2": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(**{**SIZES, "head_dim": 16})),
    "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**SIZES, tie_word_embeddings=True)),
    "olmo2": lambda: hf.Olmo2ForCausalLM(hf.Olmo2Config(**SIZES)),
    "smollm3": lambda: hf.SmolLM3ForCausalLM(hf.SmolLM3Config(**SIZES)),
    "phi3": lambda: hf.Phi3ForCausalLM(hf.Phi3Config(**{**SIZES, "pad_token_id": 0})),
    "gemma2": lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(**SIZES, query_pre_attn_scalar=16, sliding_window=8)),
    "gemma3": lambda: hf.Gemma3ForCausalLM(hf.Gemma3TextConfig(**SIZES, query_pre_attn_scalar=16, sliding_window=8)),
    "mixtral": lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**SIZES, num_local_experts=5, num_experts_per_tok=2)),
    "qwen3_moe": lambda: hf.Qwen3MoeForCausalLM(hf.Qwen3MoeConfig(
        **SIZES, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=32, norm_topk_prob=True)),
    "gpt_neox": lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**OLD)),
    "gptj": lambda: hf.GPTJForCausalLM(hf.GPTJConfig(vocab_size=300, n_embd=64, n_layer=3, n_head=4, n_positions=64,
                                                     n_inner=96, rotary_dim=8, bos_token_id=0, eos_token_id=0)),
    "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=300, n_embd=64, n_layer=3, n_head=4, n_positions=64,
                                                     bos_token_id=0, eos_token_id=0)),
}
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../README.md")
IDS = [(7 * i * i + 3 * i + 5) % 61 + 3 for i in range(24)]


def tokenizer(folder):
    """GPT-2's kind, with 300 tokens."""
    level = tokenizers.pre_tokenizers.ByteLevel
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer, t.decoder = level(add_prefix_space=False), tokenizers.decoders.ByteLevel()
    how = dict(vocab_size=300, show_progress=False, initial_alphabet=level.alphabet())
    t.train([PAGE], tokenizers.trainers.BpeTrainer(special_tokens=["<|endoftext|>"], **how))
    t.save(folder + "/tokenizer.json")


def convert(build, path, to):
    done = subprocess.run([os.path.join(build, "bin", "gpt"), "convert", "--quiet", "--model", path, "--out", to],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout.strip() if done.returncode else ""


def check(build, name, folder):
    """A text that describes the difference; empty: none."""
    torch.manual_seed(5)
    m = FAMILIES[name]().eval()
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(torch.randn(p.shape) * 0.2 + (p.dim() == 1 and p.mean() == 1))
        m.save_pretrained(folder + "/hf")
        tokenizer(folder + "/hf")
        theirs = m(torch.tensor([IDS])).logits[0].float().numpy()
    said = convert(build, folder + "/hf", folder + "/a.gguf") or convert(build, folder + "/a.gguf", folder + "/back")
    if said:
        return said
    was, now = load_file(folder + "/hf/model.safetensors"), load_file(folder + "/back/model.safetensors")
    for key in was:
        rounded = name.startswith("gemma") and "norm" in key  # GGUF has 1 + w
        if not torch.allclose(was[key], now[key], rtol=0, atol=1.2e-7 if rounded else 0):
            return "%s differs" % key
    if name == "gptj":  # llama.cpp does not read it
        return ""
    try:
        other = llama_cpp.Llama(folder + "/a.gguf", n_ctx=64, n_threads=1, logits_all=True, verbose=False,
                                type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32)
    except ValueError as e:
        return "llama.cpp: %s" % e
    other.eval(IDS)
    ours = numpy.array(other.scores[: len(IDS)])
    off = abs(ours - theirs).max() / abs(theirs).max()
    print("%-10s largest difference %.1e of the largest logit" % (name, off))
    exact = "silu" in (getattr(m.config, "hidden_act", ""), getattr(m.config, "hidden_activation", None))
    return "" if off <= (1e-5 if exact else 1e-3) else "other logits"


def main():
    warnings.simplefilter("ignore")
    hf.logging.set_verbosity_error(), hf.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    bad = 0
    for name in FAMILIES:
        if len(sys.argv) < 3 or sys.argv[2] in name:
            with tempfile.TemporaryDirectory() as folder:
                said = check(sys.argv[1], name, folder)
            if said:
                bad = 1
                print("%-10s WRONG: %s" % (name, said))
    return bad


if __name__ == "__main__":
    sys.exit(main())

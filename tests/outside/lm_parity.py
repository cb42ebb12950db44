#!/usr/bin/env python3
"""Compares GPT-2, LLaMA with each scaling of its positions and its relatives, and Reformer with Hugging Face
transformers, at odd sizes.

    tests/outside/lm_parity.py BUILD [NAME]

BUILD is a build folder of this project; NAME selects the models whose name contains it. Random models (3 layers, 6
heads, 2 key heads, width 96, vocabulary 1,003, sequences of 33): logits within 2e-5, gradients within 1e-5 of their
largest element; logits with a cache, token by token, and of a single row have the same bits; transformers loads the
models that Tenon writes, with the same logits. Tested with torch 2.15.0 and transformers 5.24.0. Exits with 77 if they
are missing."""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
try:
    import torch
    import transformers
    from safetensors.torch import load_file, save_file
    import transformers as hf
    from transformers import (AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
                              MistralConfig, MistralForCausalLM, Qwen2Config, Qwen2ForCausalLM, ReformerConfig,
                              ReformerModelWithLMHead)
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
T, VOCAB = 33, 1003
SIZES = dict(vocab_size=VOCAB, hidden_size=96, intermediate_size=200, num_hidden_layers=3, num_attention_heads=6,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=0, initializer_range=0.1)


def llama(rope=None, **more):
    return LlamaForCausalLM(LlamaConfig(**{**SIZES, **more}, rope_parameters=rope))


def reformer(**more):
    sizes = dict(vocab_size=VOCAB, hidden_size=96, feed_forward_size=200, attn_layers=["local", "lsh", "lsh"],
                 num_attention_heads=6, attention_head_size=16, max_position_embeddings=64, axial_pos_shape=[8, 8],
                 axial_pos_embds_dim=[32, 64], lsh_attn_chunk_length=8, local_attn_chunk_length=4, num_buckets=4,
                 num_hashes=2, hash_seed=5, is_decoder=True, hidden_dropout_prob=0.0,
                 lsh_attention_probs_dropout_prob=0.0, local_attention_probs_dropout_prob=0.0, initializer_range=0.1)
    return ReformerModelWithLMHead(ReformerConfig(**{**sizes, **more}))


WINDOW = dict(sliding_window=7)
LOCAL = ["sliding_attention", "full_attention", "sliding_attention"]
THETAS = {"sliding_attention": {"rope_type": "default", "rope_theta": 1000.0},
          "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 10000.0}}


def gemma(make, config, **more):
    return make(config(**{**SIZES, **WINDOW, "head_dim": 20, "query_pre_attn_scalar": 13, **more}))


def neox(**more):
    return hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**{**SIZES, **more}))


def gptj(**more):
    sizes = dict(vocab_size=VOCAB, n_embd=96, n_layer=3, n_head=6, n_positions=64, rotary_dim=10, bos_token_id=0,
                 eos_token_id=0, initializer_range=0.1)
    return hf.GPTJForCausalLM(hf.GPTJConfig(**{**sizes, **more}))


MODELS = {
    "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**SIZES, head_dim=20)),
    "qwen3, window, biases, tied": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(
        **SIZES, **WINDOW, use_sliding_window=True, max_window_layers=1, attention_bias=True,
        tie_word_embeddings=True)),
    "qwen3, mixed layers": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**SIZES, **WINDOW, use_sliding_window=True,
                                                                      layer_types=LOCAL)),
    "gemma2": lambda: gemma(hf.Gemma2ForCausalLM, hf.Gemma2Config),
    "gemma2, untied, biases, low caps": lambda: gemma(
        hf.Gemma2ForCausalLM, hf.Gemma2Config, tie_word_embeddings=False, attention_bias=True,
        attn_logit_softcapping=0.7, final_logit_softcapping=1.3, layer_types=LOCAL[:2] + LOCAL[1:2]),
    "gemma2, no caps": lambda: gemma(hf.Gemma2ForCausalLM, hf.Gemma2Config, attn_logit_softcapping=None,
                                     final_logit_softcapping=None),
    "gemma3": lambda: gemma(hf.Gemma3ForCausalLM, hf.Gemma3TextConfig, layer_types=LOCAL, rope_parameters=THETAS),
    "gemma3, untied, local alone": lambda: gemma(hf.Gemma3ForCausalLM, hf.Gemma3TextConfig,
                                                 tie_word_embeddings=False, final_logit_softcapping=2.0),
    "olmo2": lambda: hf.Olmo2ForCausalLM(hf.Olmo2Config(**SIZES)),
    "olmo2, tied, biases": lambda: hf.Olmo2ForCausalLM(hf.Olmo2Config(**SIZES, tie_word_embeddings=True,
                                                                      attention_bias=True)),
    "smollm3": lambda: hf.SmolLM3ForCausalLM(hf.SmolLM3Config(**SIZES, pad_token_id=5, no_rope_layers=[1, 0, 1])),
    # in a layer without positions, a bias of the keys has the gradient 0, of which there is no relative error
    "smollm3, biases, untied": lambda: hf.SmolLM3ForCausalLM(hf.SmolLM3Config(
        **SIZES, pad_token_id=5, no_rope_layer_interval=4, attention_bias=True, mlp_bias=True,
        tie_word_embeddings=False)),
    "smollm3, every second, windows": lambda: hf.SmolLM3ForCausalLM(hf.SmolLM3Config(
        **SIZES, **WINDOW, pad_token_id=5, use_sliding_window=True, no_rope_layers=[1, 0, 1],
        layer_types=LOCAL)),
    "phi3": lambda: hf.Phi3ForCausalLM(hf.Phi3Config(**SIZES, pad_token_id=5)),
    "phi3, window, partial, tied": lambda: hf.Phi3ForCausalLM(hf.Phi3Config(
        **SIZES, **WINDOW, pad_token_id=5, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.75})),
    "mixtral": lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**SIZES, num_local_experts=5)),
    "mixtral, window, tied, all experts": lambda: hf.MixtralForCausalLM(hf.MixtralConfig(
        **SIZES, **WINDOW, head_dim=24, num_local_experts=3, num_experts_per_tok=3, tie_word_embeddings=True)),
    "qwen3_moe": lambda: hf.Qwen3MoeForCausalLM(hf.Qwen3MoeConfig(**SIZES, num_experts=7, num_experts_per_tok=3,
                                                                  moe_intermediate_size=50)),
    "qwen3_moe, window, shares, biases": lambda: hf.Qwen3MoeForCausalLM(hf.Qwen3MoeConfig(
        **SIZES, **WINDOW, use_sliding_window=True, num_experts=6, num_experts_per_tok=6, norm_topk_prob=True,
        moe_intermediate_size=70, attention_bias=True)),
    "neox": lambda: neox(),
    "neox, in turn, tied, no biases": lambda: neox(use_parallel_residual=False, tie_word_embeddings=True,
                                                   attention_bias=False, hidden_act="relu"),
    "gptj": lambda: gptj(),
    "gptj, tied, wide": lambda: gptj(tie_word_embeddings=True, n_inner=70, rotary_dim=16),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_embd=96, n_layer=3, n_head=6, n_positions=64,
                                               bos_token_id=0, eos_token_id=0, initializer_range=0.1)),
    "llama": lambda: llama(),
    "llama, tied, biases, wide heads": lambda: llama(tie_word_embeddings=True, attention_bias=True, mlp_bias=True,
                                                     head_dim=24),
    "llama, padding": lambda: llama(pad_token_id=7, bos_token_id=3, eos_token_id=[5, 9]),
    "llama, padding counted from the end, tied": lambda: llama(pad_token_id=-1, tie_word_embeddings=True),
    "mistral, padding": lambda: MistralForCausalLM(MistralConfig(**SIZES, pad_token_id=7)),
    "qwen2, padding": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES, pad_token_id=7)),
    "gpt2, token ids": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_embd=96, n_layer=3, n_head=6,
                                                          n_positions=64, bos_token_id=1, eos_token_id=[5, 9],
                                                          pad_token_id=7, initializer_range=0.1)),
    "llama, linear": lambda: llama(dict(rope_type="linear", factor=4.0, rope_theta=1000.0)),
    "llama, dynamic": lambda: llama(dict(rope_type="dynamic", factor=2.0, rope_theta=10000.0)),
    "llama, dynamic, growing": lambda: llama(dict(rope_type="dynamic", factor=2.0, rope_theta=10000.0),
                                             max_position_embeddings=20),
    "llama, llama3": lambda: llama(dict(rope_type="llama3", factor=8.0, rope_theta=500000.0, low_freq_factor=1.0,
                                        high_freq_factor=4.0, original_max_position_embeddings=16)),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**SIZES, sliding_window=7)),
    "mistral, no window": lambda: MistralForCausalLM(MistralConfig(**SIZES, sliding_window=None)),
    "reformer": lambda: reformer(),
    "reformer, hashing alone, 3 rounds": lambda: reformer(attn_layers=["lsh"] * 3, num_hashes=3, num_buckets=None),
    "reformer, two numbers of buckets": lambda: reformer(num_buckets=[4, 2], num_hashes=2, axial_pos_embds=False,
                                                         chunk_size_feed_forward=8, hidden_act="gelu"),
    "reformer, local alone": lambda: reformer(attn_layers=["local"] * 3, local_num_chunks_before=2),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES)),
    "qwen2, window": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=5,
                                                          max_window_layers=2, tie_word_embeddings=True)),
}


def compiled(build, folder):
    program = os.path.join(folder, "lm_numbers")
    subprocess.check_call(["cc", "-std=c11", "-O1", "-I", os.path.join(build, "include"), "-o", program,
                           os.path.join(HERE, "lm_numbers.c"), os.path.join(build, "libtenon.a"), "-lutf8proc", "-lm",
                           "-pthread"])
    return program


def plain(m):
    if hasattr(m, "set_experts_implementation"):
        m.set_experts_implementation("eager")  # the others need sizes that are multiples of four
    return m


def merged(grads):
    """The gradients of experts, joined as transformers holds them."""
    for key in [k for k in grads if re.search(r"\.experts\.0\.(w1|gate_proj)\.weight", k)]:
        mixtral = key.endswith("w1.weight")
        layer = key.split("experts.0")[0]
        names = ("w1", "w3", "w2") if mixtral else ("gate_proj", "up_proj", "down_proj")
        count = sum(k.startswith(layer + "experts.") and k.endswith(names[2] + ".weight") for k in grads)
        gate, up, down = ([grads["%sexperts.%d.%s.weight" % (layer, e, n)] for e in range(count)] for n in names)
        layer = layer.replace("block_sparse_moe", "mlp")
        grads[layer + "experts.gate_up_proj"] = torch.stack([torch.cat(pair) for pair in zip(gate, up)])
        grads[layer + "experts.down_proj"] = torch.stack(down)
        if mixtral:
            grads[layer + "gate.weight"] = grads[layer.replace("mlp", "block_sparse_moe") + "gate.weight"]
    return grads


def check(program, name, make, folder):
    torch.manual_seed(11)
    m = plain(make().eval())
    with torch.no_grad():  # also change biases and norms from their initial values
        for key, p in m.named_parameters():
            # Reformer's lm_head.bias is of no use beside lm_head.decoder.bias
            if p.dim() == 1 and (key != "lm_head.bias" or "gptj" in name):
                p.add_(torch.randn(p.shape) * 0.1)
            if key.startswith("reformer.embeddings") and p.dim() == 2:
                p.mul_(8)  # what is computed back from results near 1 is as exact as they are, however small it is
    ids = torch.randint(0, VOCAB, (2, T))
    ids[:, ::5], ids[:, 1] = 7, VOCAB - 1  # the padding tokens
    model, out = os.path.join(folder, "model"), os.path.join(folder, "out")
    os.makedirs(out)
    m.save_pretrained(model, max_shard_size="300KB" if "qwen2" in name else "1GB")
    save_file({"ids": ids}, os.path.join(folder, "ids.safetensors"))
    # positions that grow with the text turn a cached key by what the text was when it was read, here as there
    subprocess.check_call([program, model, os.path.join(folder, "ids.safetensors"), out] +
                          ["--growing"] * ("growing" in name))
    numbers = load_file(os.path.join(out, "numbers.safetensors"))
    y = m(ids, labels=ids)
    if name.startswith("reformer"):  # its gradients need training mode, and a text of all positions
        y = y.__class__(logits=y.logits.detach(), loss=y.loss.detach())
        long = torch.randint(0, VOCAB, (2, 64))
        save_file({"ids": long}, os.path.join(folder, "long.safetensors"))
        os.makedirs(os.path.join(folder, "long"))
        subprocess.check_call([program, model, os.path.join(folder, "long.safetensors"), os.path.join(folder, "long")])
        m.train()
        for layer in m.reformer.encoder.layers:  # which the first text has set, where the config leaves it open
            if getattr(layer.attention.self_attention, "num_buckets", 0) and make().config.num_buckets is None:
                layer.attention.self_attention.num_buckets = None
        m(long, labels=long).loss.backward()
        m.eval()
    else:
        y.loss.backward()
    longer = "long" if name.startswith("reformer") else "out"
    grads = merged(load_file(os.path.join(folder, longer, "grads", "model.safetensors")))
    worst, compared = 0, 0
    for key, p in m.named_parameters():
        key = "embed_out.weight" if key == "lm_head.weight" and "embed_out.weight" in grads else key  # GPT-NeoX
        if key == "lm_head.bias" and "gptj" not in name:
            compared += 1
        elif key in grads:
            worst = max(worst, ((grads[key] - p.grad).abs().max() / p.grad.abs().max()).item())
            compared += 1
    written, report = AutoModelForCausalLM.from_pretrained(os.path.join(out, "saved"), output_loading_info=True)
    plain(written)
    with torch.no_grad():
        again = (written.eval()(ids).logits - y.logits).abs().max().item()
    scores = (numbers["logits"] - y.logits).abs().max().item()
    loss = abs(numbers["loss"].item() - y.loss.item())
    kept = all(getattr(written.config, k) == getattr(m.config, k) for k in ("bos_token_id", "eos_token_id"))
    pads = [c.pad_token_id for c in (written.config, m.config)]
    kept = kept and (pads[0] == pads[1] or pads[0] == VOCAB + pads[1])
    odd = [k for k in list(report["missing_keys"]) + list(report["unexpected_keys"]) if "lm_head" not in k]
    fine = (scores <= 2e-5 and worst <= 1e-5 and loss <= 1e-5 and again <= 2e-5 and not odd and kept and
            type(written) is type(m) and compared == len(list(m.named_parameters())))
    wrong = "" if fine else "  WRONG %s%s" % (odd, "" if kept else " token ids")
    print("%-34s scores %.1e  loss %.1e  %d gradients %.1e  written and read %.1e%s" %
          (name, scores, loss, compared, worst, again, wrong))
    return fine


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(2)
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(sys.argv[1], folder)
        for i, (name, make) in enumerate((n, m) for n, m in MODELS.items() if sys.argv[2:3] == [] or sys.argv[2] in n):
            fine = check(program, name, make, os.path.join(folder, str(i))) and fine
    return not fine


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes golden/beams.safetensors: beam searches of Hugging Face transformers, for tests/unit/models/test_beams.c.

    python3 tests/golden/beams.py

Needs torch 2.15.0, transformers 5.23.0, safetensors and numpy. The model is a table of logits, indexed by the last
token, plus one indexed by its position, so that no two texts have equal scores; token 0 ends a text.
tests/outside/beams_check.py compares 500 more tables.
"""
import os
import random
import sys

sys.dont_write_bytecode = True
import torch
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

OPTIONS = ("beams best most least no_repeat length_penalty repetition_penalty early_stopping").split()


class TableConfig(PretrainedConfig):
    model_type = "table"


class Table(PreTrainedModel, GenerationMixin):
    config_class = TableConfig
    main_input_name = "input_ids"
    _supports_cache_class = False

    def __init__(self, logits, shift):
        super().__init__(TableConfig(vocab_size=len(logits), bos_token_id=1, eos_token_id=0, pad_token_id=0,
                                     num_hidden_layers=1))
        self.table, self.shift = torch.nn.Parameter(logits), torch.nn.Parameter(shift)

    def forward(self, input_ids, attention_mask=None, **_):
        return CausalLMOutput(logits=self.table[input_ids] + self.shift[:input_ids.shape[1]])

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **_):
        return {"input_ids": input_ids}


def random_case(r, widest):
    """Tables, prompts and options. With early stopping the vocabulary is so large that each step has `beams` live
    texts: with fewer, transformers counts its placeholders as finished texts."""
    o = dict(beams=r.randint(1, 8), most=r.randint(1, 12),
             length_penalty=r.choice([-1.0, 0.0, 0.3, 0.7, 1.0, 1.0, 2.0]), early_stopping=r.random() < 0.4,
             repetition_penalty=1.0, no_repeat=0)
    o["best"], o["least"] = r.randint(1, o["beams"]), r.choice([0, 0, 0, min(o["most"], 3)])
    if o["beams"] > 1:
        o["repetition_penalty"], o["no_repeat"] = r.choice([1.0, 1.0, 1.5]), r.choice([0, 0, 0, 2])
    smallest = o["beams"] + o["most"] + 2 if o["early_stopping"] else 3
    vocab = r.randint(smallest, max(widest, smallest))
    g = torch.Generator().manual_seed(r.randrange(2**31))
    logits = torch.randn(vocab, vocab, generator=g) * r.choice([0.5, 1, 2, 4])
    logits[:, 0] += r.choice([-2, 0, 1, 2])
    shift = torch.randn(16, vocab, generator=g) / 2
    prompt = torch.randint(1, vocab, (r.randint(1, 3), r.randint(1, 3)), generator=g)
    return logits, shift, prompt, o


def search(logits, shift, prompt, o):
    """Tokens [B, best, N] without the end, followed by -1, and scores [B, best]; -inf for a missing text."""
    y = Table(logits, shift).eval().generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, num_beams=o["beams"],
        num_return_sequences=o["best"], max_new_tokens=o["most"], min_new_tokens=o["least"] or None,
        length_penalty=o["length_penalty"] if o["beams"] > 1 else None, no_repeat_ngram_size=o["no_repeat"] or None,
        early_stopping=o["early_stopping"] if o["beams"] > 1 else None, repetition_penalty=o["repetition_penalty"],
        return_dict_in_generate=True, output_scores=True, output_logits=True, use_cache=False)
    new = y.sequences[:, prompt.shape[1]:]
    if o["beams"] > 1:
        scores = y.sequences_scores.double()
    else:  # greedy decoding
        scores = torch.zeros(len(new), dtype=torch.float64)
        for t, step in enumerate(y.logits):
            alive = (new[:, :t] != 0).all(1)
            scores += torch.where(alive, step.log_softmax(-1).gather(1, new[:, t:t + 1])[:, 0], 0.0)
    tokens = torch.where((new == 0).cumsum(1) > 0, -1, new)
    missing = scores < -1e6  # a placeholder
    tokens[missing], scores[missing] = -1, -float("inf")
    longest = int((tokens >= 0).sum(1).max())
    return (tokens[:, :longest].reshape(len(prompt), o["best"], longest), scores.reshape(len(prompt), o["best"]))


def main():
    from safetensors.torch import save_file
    r, out = random.Random(50), {}
    for i in range(60):
        logits, shift, prompt, o = random_case(r, 14)
        tokens, scores = search(logits, shift, prompt, o)
        parts = dict(logits=logits, shift=shift, prompt=prompt, tokens=tokens, scores=scores,
                     options=torch.tensor([float(o[n]) for n in OPTIONS], dtype=torch.float64))
        out.update(("%02d/%s" % (i, k), v.contiguous()) for k, v in parts.items())
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "beams.safetensors")
    save_file(out, path, {"format": "pt", "made by": "tests/golden/beams.py"})
    print("%d bytes" % os.path.getsize(path))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the outputs and gradients of T5's relative positions, and of whole models, in Hugging Face transformers.

    python3 tests/golden/t5.py

Tested with torch 2.15.0 and transformers 5.24.0. Writes t5.safetensors: an encoder's weights under Hugging Face's
names, x, its padding mask, the result y, and the gradients of x and of the table of buckets; and the buckets of
distances, bidirectional and causal, for several tables. Writes t5/<name>, directories of random models: "t5" (tied,
relu), "t5_v1_1" as old files of T5 v1.1 (tie_word_embeddings is false), "flan" as transformers 5.24 writes it
(tie_word_embeddings is true, but there is a lm_head.weight); t5/<name>.grad, the same with the gradient of the loss in
place of each weight; t5/answers.safetensors: logits, losses and generated tokens; and t5/tokens.json: pieces of a
SentencePiece model with their scores, and the ids and decoded texts of T5Tokenizer.
"""
import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
from safetensors.torch import save_file
from transformers import T5Config, T5EncoderModel, T5ForConditionalGeneration, T5Tokenizer
from transformers.models.t5.modeling_t5 import T5Attention

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = T5Config(vocab_size=5, d_model=10, d_kv=4, d_ff=14, num_layers=2, num_heads=3, dropout_rate=0,
                  relative_attention_num_buckets=8, relative_attention_max_distance=9, feed_forward_proj="gated-silu")
TABLES = ((32, 128), (8, 9), (20, 50), (6, 1000))
SIZES = dict(vocab_size=23, d_model=10, d_kv=6, d_ff=14, num_layers=3, num_decoder_layers=2, num_heads=3,
             dropout_rate=0.1, relative_attention_num_buckets=8, relative_attention_max_distance=9,
             decoder_start_token_id=0)
MODELS = {"t5": {}, "t5_v1_1": dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
          "flan": dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False)}


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
    models()
    tokens()


def weights(m, untied):
    """The tensors of a file: without the tables that are always tied."""
    return {k: v.detach().float().contiguous() for k, v in m.state_dict().items()
            if "embed_tokens" not in k and (untied or k != "lm_head.weight")}


def write(folder, config, tensors):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f, indent=2, sort_keys=True)
        f.write("\n")
    save_file(tensors, os.path.join(folder, "model.safetensors"), {"format": "pt"})


def models():
    here = os.path.join(HERE, "t5")
    torch.manual_seed(5)
    source = torch.randint(2, SIZES["vocab_size"], (3, 9))
    source[:, -1], source[1, 5], source[1, 6:] = 1, 1, 0
    labels = torch.randint(2, SIZES["vocab_size"], (3, 6))
    labels[:, -1], labels[2, 3], labels[2, 4:] = 1, 1, 0
    answers = {"source": source, "target": torch.cat([torch.zeros(3, 1, dtype=torch.long), labels], 1)}
    for name, more in MODELS.items():
        untied = name != "t5"
        m = T5ForConditionalGeneration(T5Config(**SIZES, **more)).eval()
        if untied:
            m.lm_head.weight = torch.nn.Parameter(torch.empty_like(m.shared.weight))
        with torch.no_grad():
            for p in m.parameters():
                p.copy_(torch.randn(p.shape) * 0.3 + (p.dim() == 1))
        config = json.loads(m.config.to_json_string(use_diff=True))
        if name == "t5_v1_1":
            config["tie_word_embeddings"] = config.pop("scale_decoder_outputs")
        write(os.path.join(here, name), config, weights(m, untied))
        again = T5ForConditionalGeneration.from_pretrained(os.path.join(here, name))
        there = source != 0
        with torch.no_grad():
            want = m(input_ids=source, attention_mask=there, labels=labels).logits
            assert torch.equal(want, again(input_ids=source, attention_mask=there, labels=labels).logits), name
        for beams in (1, 5):
            out = m.generate(source, attention_mask=there, num_beams=beams, max_new_tokens=7, do_sample=False,
                             decoder_start_token_id=0, eos_token_id=1, pad_token_id=0)
            answers["%s.beams%d" % (name, beams)] = torch.nn.functional.pad(out[:, 1:], (0, 8 - out.shape[1]))
        m.double()
        y = m(input_ids=source, attention_mask=there, labels=labels.masked_fill(labels == 0, -100),
              decoder_input_ids=answers["target"][:, :-1])
        y.loss.backward()
        answers[name + ".logits"], answers[name + ".loss"] = y.logits.detach().float(), y.loss.detach().float()
        with torch.no_grad():
            for p in m.parameters():
                p.copy_(p.grad)
        write(os.path.join(here, name + ".grad"), config, weights(m, untied))
    save_file({k: v.contiguous() for k, v in answers.items()}, os.path.join(here, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/t5.py"})


def tokens():
    letters = "abcdefghijklmnopqrstuvwxyz.,'<>_/0123456789é"
    words = ["▁the", "▁cat", "▁s", "at", "▁on", "▁mat", "er", "in", "▁a", "▁extra", "id", "<", "▁▁", "ing"]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.5)]
    pieces += [(w, -3.0 - 0.37 * i) for i, w in enumerate(w for w in words if len(w) > 1)]
    pieces += [(c, -6.0 - 0.11 * i) for i, c in enumerate(letters)]
    t = T5Tokenizer(vocab=pieces + [("<extra_id_%d>" % i, 0.0) for i in range(99, -1, -1)])
    texts = ["the cat sat on the mat.", "", "   ", "  the   cat\tsat\n\non ", "The <extra_id_0> sat on <extra_id_1>",
             "a<extra_id_99>b <extra_id_100>", "</s> in the text</s>", "<pad><unk>", "café éé", "ab漢字cd 漢",
             "▁the▁cat", "a ▁ b", "no-break\u00a0space and\u3000wide", "x\u200by", "<extra_id_5", "1 2 34,5"]
    cases = []
    for text in texts:
        ids = t(text).input_ids
        cases.append({"text": text, "ids": ids, "bare": t(text, add_special_tokens=False).input_ids,
                      "decoded": t.decode(ids, skip_special_tokens=True)})
    with open(os.path.join(HERE, "t5", "tokens.json"), "w", encoding="utf-8") as f:
        json.dump({"pieces": [p for p, _ in pieces], "scores": [s for _, s in pieces], "cases": cases}, f,
                  ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


main()

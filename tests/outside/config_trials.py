#!/usr/bin/env python3
"""Changes members of the config.json of tiny models of all families, and opens the model that Tenon saves again.

    tests/outside/config_trials.py LIBRARY [SEED [COUNT [FILTER]]]

LIBRARY is a libtenon.so; without the numbers: 1 300. FILTER is a part of the names of the models, which are those of
the four *_parity.py. Tenon opens each changed folder, or rejects it; its results must be those of transformers within
1e-4 of the largest. The folder that it saves must open in transformers without missing or unexpected keys, with the
same results and the same token ids that the config's class has.
Tested with torch 2.15.0 and transformers 5.24.0; exits with 77 if they are missing, with 1 if there are findings.
"""
import dataclasses
import json
import logging
import os
import random
import shutil
import sys
import tempfile
import warnings

sys.dont_write_bytecode = True
os.environ["HF_HUB_OFFLINE"] = "1"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "python")]
import encoders_parity  # these exit with 77 if a package is missing
import lm_parity
import seq2seq_parity
import vit_parity

import torch
import transformers as hf

os.environ["TENON_LIBRARY"] = os.path.abspath(sys.argv[1])
import tenon
import tenon.models

VOCAB = 1003
DEBERTA = dict(vocab_size=VOCAB, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=60,
               max_position_embeddings=40, initializer_range=0.2, relative_attention=True,
               pos_att_type=["p2c", "c2p"], type_vocab_size=0)
MODELS = {"enc " + name: make for name, make in encoders_parity.MODELS.items()}
MODELS.update(("lm " + name, make) for name, make in lm_parity.MODELS.items())
MODELS.update(("s2s " + name, make) for name, make in seq2seq_parity.MODELS.items())
MODELS.update(("vit " + name, row[0]) for name, row in vit_parity.MODELS.items() if "images" not in name)
MODELS["enc deberta v3"] = lambda: hf.DebertaV2ForMaskedLM(hf.DebertaV2Config(
    **DEBERTA, position_buckets=8, norm_rel_ebd="layer_norm", share_att_key=True, position_biased_input=False))
MODELS["enc deberta v2"] = lambda: hf.DebertaV2Model(hf.DebertaV2Config(
    **dict(DEBERTA, type_vocab_size=2), max_relative_positions=-1))
IDS = ["bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_eos_token_id",
       "forced_bos_token_id", "sep_token_id", "cls_token_id", "mask_token_id"]
ACTIVATIONS = ["gelu", "gelu_new", "relu", "silu", "swish", "tanh", "gelu_fast", "gelu_pytorch_tanh", "mish", "sigmoid",
               "quick_gelu", "linear", "gelu_python", "", None]
ROPE = ["factor", "rope_theta", "partial_rotary_factor", "attention_factor", "rope_type", "type"]
ADDED = IDS + ["rope_theta", "rope_scaling", "partial_rotary_factor", "head_dim", "rotary_pct", "sliding_window",
               "use_sliding_window", "layer_types", "scale_attn_weights", "scale_decoder_outputs", "attention_bias",
               "position_embedding_type", "is_decoder", "tie_word_embeddings", "num_labels", "dtype", "pruned_heads",
               "quantization_config", "layer_norm_eps", "rms_norm_eps", "qkv_bias", "pooler_act", "hidden_act"]


def other_value(r, key, v):
    if isinstance(v, bool):
        return r.choice([not v, not v, not v, None, int(not v), "true"])
    if isinstance(v, int):
        return r.choice([None, 0, 3, 4, 17, -1, [5, 9], [5], [], 2000, v + 1] if key in IDS else
                        [0, 1, -1, v + 1, v - 1, v * 2, v // 2, None, r.randint(0, 12), v + .5, str(v), [v], 10**9])
    if isinstance(v, float):
        return r.choice([0, v * 2, v / 2, 1e-12, 1, -1, None, v * 1.1, v + .25, "x", 0.5, int(v), 1e6])
    if isinstance(v, str):
        return r.choice(ACTIVATIONS if "act" in key else ACTIVATIONS[:4] + [
            "default", "", "linear", "mean", "cls", "dynamic", None, 0, "yarn", "full_attention", "sliding_attention"])
    if v is None:
        return r.choice([0, 1, 2, 5, True, False, .5, [], "x", {}, 4, 8, -1, "gelu"])
    if isinstance(v, list):
        return r.choice([None, [], v[:-1], v + v[:1], v[::-1], [other_value(r, "", x) for x in v[:1]] + v[1:]])
    name, some = r.choice(sorted(v) or ROPE), r.choice([2.0, 1000.0, .5, "linear", "default", "dynamic"])
    return r.choice([None, {}, {k: x for k, x in v.items() if k != name}, dict(v, **{r.choice(ROPE): some}),
                     dict(v, **{name: other_value(r, name, v.get(name))})])


def change(r, config):
    """Another config, and what was changed."""
    k, to = r.random(), dict(config)
    if k < 0.12:
        key = r.choice([x for x in ADDED if x not in config])
        to[key] = other_value(r, key, r.choice([None, True, 3, .5, "gelu"]))
    else:
        key = r.choice([x for x in config if x not in ("model_type", "architectures", "transformers_version")])
        if k < 0.25:
            return to, "no %s (%s)" % (key, json.dumps(to.pop(key)))
        to[key] = other_value(r, key, config[key])
    return to, "%s: %s" % (key, json.dumps(to[key]))


def close(a, b):
    if a.shape != b.shape or not torch.isfinite(a).all():
        return a.shape == b.shape and not torch.isfinite(b).all()
    return bool((a - b).abs().max() <= 1e-4 * max(1, a.abs().max()))


def one_id(v):
    return v[0] if isinstance(v, list) and len(v) == 1 else v


class Family:
    def __init__(self, name, make, folder):
        self.name, self.kind, self.path = name, name.split()[0], os.path.join(folder, "first")
        torch.manual_seed(5)
        m = make().eval()
        for p in (p for p in m.parameters() if p.dim() == 1):
            p.data.add_(torch.randn(p.shape) * 0.1)
        shutil.rmtree(self.path, ignore_errors=True)
        m.save_pretrained(self.path)
        self.cls, self.known = type(m), {}
        self.inputs = [torch.randint(0, VOCAB, (2, n)) for n in ([20, 9] if self.kind == "s2s" else [21])]
        self.inputs[0][:, 5], self.inputs[0][1, -4:] = 4, 1  # tokens that may become the padding
        if self.kind == "vit":
            self.inputs = [torch.randn(2, 3, m.config.image_size, m.config.image_size)]
        with open(os.path.join(self.path, "config.json"), encoding="utf-8") as f:
            self.config = json.load(f)

    def theirs(self, path):
        """The results of transformers, the token ids, and the keys that are missing or unexpected."""
        m, info = self.cls.from_pretrained(path, output_loading_info=True, dtype=torch.float32)
        odd = [k for part in ("missing_keys", "unexpected_keys", "mismatched_keys") for k in info[part]]
        if hasattr(m, "set_experts_implementation"):
            m.set_experts_implementation("eager")
        m, x, pad = m.eval(), self.inputs, m.config.pad_token_id if self.kind == "s2s" else None
        with torch.no_grad():
            if self.kind == "enc":
                y = getattr(m, m.base_model_prefix, m)(x[0], attention_mask=torch.ones_like(x[0]))[0]
            elif self.kind == "s2s":
                mask = None if pad is None else (x[0] != pad).long()
                y = m(input_ids=x[0], attention_mask=mask, decoder_input_ids=x[1]).logits
            else:
                y = m(x[0])
                y = y.get("logits", y.get("last_hidden_state"))
        ids = {f.name: one_id(getattr(m.config, f.name)) for f in dataclasses.fields(m.config) if f.name in IDS}
        return y, ids, odd

    def ours(self, path, to):
        m = tenon.models.open(path, no_tokenizer=True)
        with tenon.no_grad():
            y = torch.from_dlpack(m(*[tenon.from_dlpack(x) for x in self.inputs])).clone()
        m.save(to)
        return y

    def trial(self, config, changed, saved):
        """What came out, and if that is a finding."""
        for path in (changed, saved):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.path, changed), os.makedirs(saved)
        with open(os.path.join(changed, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        try:
            y = self.ours(changed, saved)
        except tenon.Error as problem:
            return "rejected", str(problem) if config == self.config else None
        try:
            want, ids, odd = self.theirs(changed)
        except Exception:
            return "transformers fails", None
        if odd:
            return "transformers lacks weights", None
        if not close(want, y):
            if not close(want, self.theirs(changed)[0]):  # Reformer without hash_seed draws other hashes in each call
                return "transformers is random", None
            return "DIFFERENT", True
        try:
            again, kept, odd = self.theirs(saved)
        except Exception as problem:
            return "SAVED FAILS", repr(problem)
        lost = {k: (ids[k], kept[k]) for k in ids if ids[k] != kept[k]}
        if lost or not close(want, again):
            return "SAVED DIFFERENT", lost or True
        return "equal", None if all("lm_head.bias" in k or "shared" in k for k in map(str, odd)) else odd


def main(seed=1, count=300, names=""):
    models, tally, findings = {n: m for n, m in MODELS.items() if names in n}, {}, 0
    folder = tempfile.mkdtemp(prefix="config")
    try:
        for at, (name, make) in enumerate(models.items()):
            family, r = Family(name, make, folder), random.Random(1000 * seed + at)
            for i in range(max(2, -(-count // len(models)))):
                config, what = change(r, family.config) if i else (family.config, "unchanged")
                result, why = family.trial(config, os.path.join(folder, "changed"), os.path.join(folder, "saved"))
                tally[result] = tally.get(result, 0) + 1
                if why:
                    findings += 1
                    print("%s, %s: %s, %s" % (name, what, result, why), flush=True)
    finally:
        shutil.rmtree(folder)
    print("%d members: %s" % (sum(tally.values()), ", ".join("%s %d" % row for row in sorted(tally.items()))))
    return findings > 0


if __name__ == "__main__":
    hf.utils.logging.set_verbosity_error(), hf.utils.logging.disable_progress_bar(), logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1), tenon.set_threads(1)
    sys.exit(main(*[int(a) for a in sys.argv[2:4]], *sys.argv[4:5]))

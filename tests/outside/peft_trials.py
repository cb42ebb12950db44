#!/usr/bin/env python3
"""Compares random adapters of PEFT and of Tenon, in both directions, and changes members of adapter_config.json.

    tests/outside/peft_trials.py LIBRARY [SEED [COUNT [MEMBERS]]]

LIBRARY is a libtenon.so; without the numbers: 1 30 60. COUNT adapters in each direction, of tiny random models of nine
kinds. tn_lora and tn_peft_save with random names, ranks, parts trained completely and tasks: PEFT must open the adapter
without missing keys, with the same results within 1e-4 of the largest (or as near to PEFT's in f64 as PEFT's in f32
are, within a factor of 2), and so must tn_peft_load. PEFT with random options: tn_peft_load gives PEFT's results, or an
error; so for each module of a model, alone in modules_to_save. Then MEMBERS adapters of PEFT with one changed member of
their file: the error must name the member. The end lists the errors. Tested with torch 2.15.0, transformers 5.24.0 and
peft 0.21.2; exits with 77 if they are missing, with 1 if there are findings.
"""
import ctypes as c
import json
import logging
import os
import random
import re
import shutil
import sys
import tempfile
import warnings

sys.dont_write_bytecode = True
os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import torch
    import transformers as hf
    from peft import LoraConfig, PeftModel, get_peft_model
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)
os.environ["TENON_LIBRARY"] = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))
import tenon
import tenon.models

LIB, CALL = tenon._library.dll, tenon._library.call
SIZES = dict(vocab_size=60, num_attention_heads=2, num_hidden_layers=2, hidden_size=16, intermediate_size=24,
             max_position_embeddings=40, initializer_range=0.3)
DEBERTA = dict(SIZES, num_labels=3, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8,
               norm_rel_ebd="layer_norm", share_att_key=True, type_vocab_size=0, position_biased_input=False)
T5 = dict(vocab_size=60, d_model=16, d_kv=6, d_ff=20, num_layers=2, num_heads=2, decoder_start_token_id=0)
BART = dict(vocab_size=60, d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, init_std=0.3,
            decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=20, max_position_embeddings=40)
MODELS = {  # name: class, config, PEFT's task
    "llama": (hf.LlamaForCausalLM, hf.LlamaConfig(**SIZES, num_key_value_heads=1), "CAUSAL_LM"),
    "gpt2": (hf.GPT2LMHeadModel, hf.GPT2Config(vocab_size=60, n_embd=16, n_layer=2, n_head=2), "CAUSAL_LM"),
    "bert": (hf.BertForSequenceClassification, hf.BertConfig(**SIZES, num_labels=3), "SEQ_CLS"),
    "bert-tags": (hf.BertForTokenClassification, hf.BertConfig(**SIZES, num_labels=4), "TOKEN_CLS"),
    "bert-answers": (hf.BertForQuestionAnswering, hf.BertConfig(**SIZES), "QUESTION_ANS"),
    "deberta": (hf.DebertaV2ForSequenceClassification, hf.DebertaV2Config(**DEBERTA), "SEQ_CLS"),
    "t5": (hf.T5ForConditionalGeneration, hf.T5Config(**T5, feed_forward_proj="gated-gelu"), "SEQ_2_SEQ_LM"),
    "bart": (hf.BartForConditionalGeneration, hf.BartConfig(**BART), "SEQ_2_SEQ_LM"),
    "vit": (hf.ViTForImageClassification, hf.ViTConfig(**{k: v for k, v in SIZES.items() if k != "vocab_size"},
                                                       image_size=8, patch_size=4, num_labels=3), None),
}
TASKS = ["CAUSAL_LM", "SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS", "SEQ_2_SEQ_LM", "FEATURE_EXTRACTION"]
HEADS = ["classifier", "score", "qa_outputs", "pooler", "lm_head", "layernorm"]
PATTERNS = [r".*\.(q_proj|query|q|c_attn|query_proj)$", r".*\.0\..*(dense|fc1|wo|c_proj|down_proj)",
            ".*(attn|attention|Attention).*(dense|out_proj|o|v|v_proj|c_proj)"]
ODD = [None, True, False, 0, 1, -1, 3.5, "", "x", "none", "all", "all-linear", ".*", [], ["x"], ["layer", "layers"],
       [0], [1], {}, {"dense": 3}, {".*": 2}, "gaussian", "pissa", "olora", "LORA", "ADALORA", "lora_only", *TASKS]


def struct(name, members):
    kinds = dict(i=c.c_int, q=c.c_int64, d=c.c_double, p=c.c_void_p, z=c.c_char_p)
    return type(name, (c.Structure,), dict(_fields_=[("m%d" % i, kinds[k]) for i, k in enumerate(members)]))


LORA, SAVE = struct("tn_lora_args", "ipqdzzppi"), struct("tn_peft_save_args", "izzi")


class Base:
    """A model of transformers in a folder, inputs for it, and the names of its linear layers and of all modules."""

    def __init__(self, name, folder):
        self.name, self.path, (self.kind, config, self.task) = name, os.path.join(folder, name), MODELS[name]
        torch.manual_seed(3)
        m = self.kind(config).eval()
        for p in (p for p in m.parameters() if p.dim() == 1):
            p.data.add_(torch.randn(p.shape) * 0.1)
        m.save_pretrained(self.path)
        self.every = [n for n, _ in m.named_modules() if n]
        self.linear = [n for n, q in m.named_modules() if type(q).__name__ in ("Linear", "Conv1D")]
        ids = [torch.randint(4, 60, (2, n)) for n in (9, 7)]
        self.inputs = [torch.randn(2, 3, 8, 8)] if name == "vit" else ids if name in ("t5", "bart") else ids[:1]

    def fresh(self, dtype=torch.float32):
        return self.kind.from_pretrained(self.path, dtype=torch.float32).to(dtype).eval()

    def in_peft(self, adapter, dtype=torch.float32):
        """The results of PEFT's model, and its complaints."""
        names = ["pixel_values"] if self.name == "vit" else ["input_ids", "decoder_input_ids"]
        inputs = [x.to(dtype) if x.is_floating_point() else x for x in self.inputs]
        with warnings.catch_warnings(record=True) as said, torch.no_grad():
            warnings.simplefilter("always")
            y = PeftModel.from_pretrained(self.fresh(dtype), adapter).to(dtype).eval()(**dict(zip(names, inputs)))
        y = torch.stack((y.start_logits, y.end_logits), -1) if hasattr(y, "start_logits") else y.logits
        return y, [str(w.message) for w in said if "missing" in str(w.message).lower()]

    def in_tenon(self, change):
        """The results of Tenon's model after change(model); an error is a tenon.Error."""
        m = tenon.models.open(self.path, no_tokenizer=True)
        change(m)
        with tenon.no_grad():
            return torch.from_dlpack(m(*[tenon.from_dlpack(x) for x in self.inputs])).clone()

    def loaded(self, adapter):
        return self.in_tenon(lambda m: CALL(LIB.tn_module_peft_load, c.c_void_p(m.module), adapter.encode()))

    def agree(self, adapter, theirs, ours):
        """True if the results are close, or if Tenon's are as near as PEFT's to those of PEFT in f64: large adapters
        may magnify the rounding of both."""
        if theirs.shape != ours.shape or not torch.isfinite(ours).all():
            return False
        if close(theirs, ours):
            return True
        exact = self.in_peft(adapter, torch.float64)[0]
        return bool((ours - exact).abs().max() <= 2 * (theirs - exact).abs().max())

    def some(self, r, most):
        """Names of linear layers: their last part, last two parts, or the whole names."""
        names = [x.split(".") for x in r.sample(self.linear, min(r.randint(1, most), len(self.linear)))]
        return sorted({".".join(p[-r.choice([1, 1, 1, 2, len(p)]):]) for p in names})


def close(a, b):
    return a.shape == b.shape and bool(torch.isfinite(b).all()) and (a - b).abs().max() <= 1e-4 * max(1, a.abs().max())


def draw_write(r, base):
    """What tn_lora and tn_peft_save shall do, as a text, and a function that does it."""
    names = None if r.random() < 0.2 else ",".join(base.some(r, 4))
    trained = None if r.random() < 0.6 else r.choice(HEADS[:5] + [r.choice(base.every)])
    task = None if r.random() < 0.4 else base.task if r.random() < 0.7 else r.choice(TASKS)
    rank, alpha, text = r.randint(1, 5), r.choice([0, 1, 5, 8]), [t and t.encode() for t in (names, trained, task)]

    def write(m, adapter):
        CALL(LIB.tn_lora_run, LORA(0, m.module, rank, alpha, *text[:2]))
        free = {n: torch.randn(p.shape) * 0.3 for n, p in m.named_parameters() if p.requires_grad}
        m.load_state_dict(free, strict=False)
        CALL(LIB.tn_peft_save_run, c.c_void_p(m.module), adapter.encode(), SAVE(0, text[2]))

    return "%s: %s, rank %d, trained %s, task %s" % (base.name, names, rank, trained, task), write


def make_in_peft(base, adapter, o):
    """Writes an adapter of PEFT with random values; False: its options exclude each other."""
    try:
        m = get_peft_model(base.fresh(), LoraConfig(**o)).eval()
    except Exception:
        return False
    for name, p in m.named_parameters():
        if "lora_" in name or "modules_to_save" in name:
            p.data.copy_(torch.randn(p.shape) * 0.3)
    m.save_pretrained(adapter)
    return True


def write_in_peft(r, base, adapter):
    """Writes the first adapter that PEFT can make; returns its options."""
    while True:
        k = r.random()
        o = dict(r=r.randint(1, 5), lora_alpha=r.choice([1, 2, 5, 8]), fan_in_fan_out=base.name == "gpt2")
        o["target_modules"] = "all-linear" if k < 0.15 else base.some(r, 4) if k < 0.85 else r.choice(PATTERNS)
        more = dict(exclude_modules=r.choice([base.some(r, 2), r".*\.1\..*", "classifier"]), use_rslora=True,
                    rank_pattern={base.some(r, 1)[0]: r.randint(1, 5)}, modules_to_save=[r.choice(HEADS + base.every)],
                    alpha_pattern={base.some(r, 1)[0]: r.randint(1, 9)}, layers_to_transform=r.choice([0, [0], [0, 1]]),
                    task_type=base.task if r.random() < 0.9 else r.choice(TASKS), use_dora=r.random() < 0.3,
                    init_lora_weights=r.choice([False, "gaussian", "pissa", "olora", "orthogonal"]))
        o.update({name: value for name, value in more.items() if r.random() < (0.5 if name == "task_type" else 0.13)})
        if make_in_peft(base, adapter, o):
            return "%s: %s" % (base.name, json.dumps(o))


def change_member(r, base, adapter):
    """Changes or removes a member of adapter_config.json; returns its name and what was done."""
    path = os.path.join(adapter, "adapter_config.json")
    with open(path, encoding="utf-8") as f:
        members = json.load(f)
    name = r.choice(sorted(members) + ["an_unknown_member"])
    members[name] = r.choice(ODD + [base.some(r, 2), base.some(r, 1)[0], HEADS[:1]])
    what = "%s: %s" % (name, json.dumps(members[name]))
    if r.random() < 0.1:
        what = "no " + name
        del members[name]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(members, f)
    return name, what


class Trials:
    def __init__(self):
        self.tally, self.reasons, self.findings = {}, {}, 0

    def end(self, way, result, what, finding=False):
        self.tally[way, result] = self.tally.get((way, result), 0) + 1
        self.findings += finding
        if finding:
            print("%s, %s: %s" % (way, result, what), flush=True)

    def rejected(self, way, what, problem, member=""):
        text = re.sub(r"^'[^']*': ", "", str(problem))
        reason = re.sub(r"'[^']*'|\"[^\"]*\"|-?\d+(\.\d+)?", "_", text)[:100]
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        self.end(way, "rejected", "%s: %s" % (what, text), finding=member not in text)

    def write(self, r, base, adapter):
        what, write = draw_write(r, base)
        try:
            ours = base.in_tenon(lambda m: write(m, adapter))
        except tenon.Error as problem:
            return self.rejected("write", what, problem)
        try:
            theirs, missing = base.in_peft(adapter)
        except Exception as problem:
            return self.end("write", "PEFT fails", "%s: %r" % (what, problem), finding=True)
        good = base.agree(adapter, theirs, ours) and not missing and close(ours, base.loaded(adapter))
        return self.end("write", "equal" if good else "DIFFERENT", what, finding=not good)

    def read(self, way, base, adapter, what, member=""):
        try:
            ours = base.loaded(adapter)
        except tenon.Error as problem:
            return self.rejected(way, what, problem, member)
        try:
            good = base.agree(adapter, base.in_peft(adapter)[0], ours)
        except Exception as problem:
            return self.end(way, "PEFT fails", "%s: %r" % (what, problem))
        return self.end(way, "equal" if good else "DIFFERENT", what, finding=not good)

    def save_each(self, base, adapter):
        """Reads adapters of one layer, beside one module that is trained completely: for each module of the model."""
        for module in base.every:
            apart = [name for name in base.linear if not (name + ".").startswith(module + ".")]
            o = dict(r=2, fan_in_fan_out=base.name == "gpt2", target_modules=apart[:1], modules_to_save=[module])
            what = "%s: %s" % (base.name, json.dumps(o))
            shutil.rmtree(adapter, ignore_errors=True)
            if apart and make_in_peft(base, adapter, o):
                self.read("each module", base, adapter, what)

    def supported(self, base, adapter):
        try:
            return base.loaded(adapter) is not None
        except tenon.Error:
            return False

    def run(self, folder, seed, count, members):
        r, adapter, bases = random.Random(seed), os.path.join(folder, "adapter"), [Base(n, folder) for n in MODELS]
        for base in bases:
            self.save_each(base, adapter)
        for i in range(2 * count + members):
            base = bases[(i if i >= 2 * count else i // 2) % len(bases)]
            shutil.rmtree(adapter, ignore_errors=True)
            os.makedirs(adapter)
            torch.manual_seed(r.randrange(1 << 30))
            if i < 2 * count and i % 2:
                self.write(r, base, adapter)
                continue
            what, name, way = write_in_peft(r, base, adapter), "", "read"
            if i >= 2 * count:
                while not self.supported(base, adapter):  # the error must be that of the change
                    shutil.rmtree(adapter)
                    what = write_in_peft(r, base, adapter)
                (name, change), way = change_member(r, base, adapter), "member"
                what = "%s of %s" % (change, what)
            self.read(way, base, adapter, what, name)
        for reason, n in sorted(self.reasons.items(), key=lambda x: -x[1]):
            print("%5d  %s" % (n, reason))
        print("; ".join("%s: %s %d" % (*key, n) for key, n in sorted(self.tally.items())))
        return self.findings > 0


if __name__ == "__main__":
    hf.utils.logging.set_verbosity_error(), hf.utils.logging.disable_progress_bar(), logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1), tenon.set_threads(1)
    place = tempfile.mkdtemp(prefix="peft")
    try:
        sys.exit(Trials().run(place, *[int(a) for a in (sys.argv[2:] + ["1", "30", "60"][len(sys.argv) - 2:])]))
    finally:
        shutil.rmtree(place)

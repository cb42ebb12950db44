#!/usr/bin/env python3
"""Exchanges LoRA adapters between Hugging Face's PEFT and Tenon, in both directions.

    python3 tests/golden/lora.py

Tested with torch 2.15.0, transformers 5.24.0 and peft 0.21.2. Writes lora/<name>, adapters with random weights of the
models in llama, gpt, heads, families, vit, encoder_decoders and t5, and lora/answers.safetensors, their logits. Also
opens lora/tenon/<name>, which extras/tests/unit/test_peft.c writes if TENON_GOLDEN=write is set, and compares the
logits with those that Tenon stored there.
"""
import os
import shutil
import sys

sys.dont_write_bytecode = True
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import (AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForSeq2SeqLM,
                          AutoModelForSequenceClassification)

GOLDEN = os.path.dirname(os.path.abspath(__file__))
HERE = os.path.join(GOLDEN, "lora")
CASES = {  # the base, its class, the options of the adapter
    "llama": ("llama/llama3", AutoModelForCausalLM,
              dict(r=3, lora_alpha=6, target_modules="all-linear", task_type="CAUSAL_LM")),
    "llama-rs": ("llama/qwen2", AutoModelForCausalLM,
                 dict(r=4, lora_alpha=5, target_modules=["q_proj", "v_proj"], use_rslora=True, task_type="CAUSAL_LM")),
    "gpt": ("gpt/torch", AutoModelForCausalLM,
            dict(r=2, lora_alpha=4, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True, task_type="CAUSAL_LM")),
    "bert": ("heads/classes", AutoModelForSequenceClassification,
             dict(r=3, lora_alpha=6, target_modules=["query", "value", "output.dense"], task_type="SEQ_CLS")),
    "phi3": ("families/phi3", AutoModelForCausalLM,
             dict(r=3, lora_alpha=6, target_modules=["qkv_proj", "gate_up_proj", "down_proj"], task_type="CAUSAL_LM")),
    "neox": ("families/neox", AutoModelForCausalLM,
             dict(r=2, lora_alpha=6, target_modules=["query_key_value", "dense"], task_type="CAUSAL_LM")),
    "vit": ("vit/classifier", AutoModelForImageClassification,
            dict(r=2, lora_alpha=5, target_modules=["q_proj", "v_proj", "o_proj", "fc1"],
                 modules_to_save=["classifier"])),
    "bart": ("encoder_decoders/bart", AutoModelForSeq2SeqLM,
             dict(r=2, lora_alpha=4, target_modules=["q_proj", "encoder_attn.v_proj", "fc1"],
                  task_type="SEQ_2_SEQ_LM")),
    "t5": ("t5/flan", AutoModelForSeq2SeqLM,
           dict(r=3, lora_alpha=5, target_modules=["q", "v", "wi_0", "wo"], task_type="SEQ_2_SEQ_LM")),
    # written by Tenon only: PEFT reads adapters of each expert, and writes others, of parameters that join them
    "mixtral": ("families/mixtral", AutoModelForCausalLM, None),
    "qwen3_moe": ("families/qwen3_moe", AutoModelForCausalLM, None),
}


def logits(model, x):
    """Of token ids, or of images, which are not integers. A decoder reads the encoder's ids, too."""
    more = {"decoder_input_ids": x} if model.config.is_encoder_decoder else {}
    return model(**{"pixel_values" if x.is_floating_point() else "input_ids": x}, **more).logits


def main():
    torch.manual_seed(11)
    answers = {}
    for name, (base, kind, options) in ((n, c) for n, c in CASES.items() if c[2]):
        path = os.path.join(HERE, name)
        model = get_peft_model(kind.from_pretrained(os.path.join(GOLDEN, base)), LoraConfig(**options)).eval()
        with torch.no_grad():
            for key, p in model.named_parameters():
                if "lora_B" in key or "modules_to_save" in key:
                    p.copy_(torch.randn(p.shape) * 0.3)
            ids = torch.randn(2, 2, 9, 9) if name == "vit" else \
                torch.randint(4, 17, (2, 9)) if options.get("task_type") == "SEQ_2_SEQ_LM" else \
                torch.randint(1, 19 if base.startswith("families") else 20, (2, 9))
            answers[name + ".ids"], answers[name + ".scores"] = ids, logits(model, ids)
        shutil.rmtree(path, ignore_errors=True)
        model.save_pretrained(path)
        os.remove(os.path.join(path, "README.md"))
        config = os.path.join(path, "adapter_config.json")
        with open(config, encoding="utf-8") as f:
            text = f.read().replace(os.path.join(GOLDEN, base), base)  # no path of this machine
        with open(config, "w", encoding="utf-8") as f:
            f.write(text)
    save_file({k: v.contiguous() for k, v in answers.items()}, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/lora.py"})

    theirs = os.path.join(HERE, "tenon")
    for name in sorted(os.listdir(theirs)) if os.path.isdir(theirs) else []:
        base, kind, _ = CASES[name]
        path = os.path.join(theirs, name)
        base = kind.from_pretrained(os.path.join(GOLDEN, base))
        if name in ("mixtral", "qwen3_moe"):
            base.set_experts_implementation("eager")  # others need sizes that are multiples of four
        model = PeftModel.from_pretrained(base, path).eval()
        with torch.no_grad():
            saved = load_file(os.path.join(path, "answers.safetensors"))
            worst = (logits(model, saved["ids"]) - saved["scores"]).abs().max()
        print("lora/tenon/%s: largest difference %.1e" % (name, worst))
        assert worst <= 2e-5


main()

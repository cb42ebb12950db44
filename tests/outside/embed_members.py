#!/usr/bin/env python3
"""Changes each member of sentence-transformers' files and compares `bert embed` with sentence-transformers.

    tests/outside/embed_members.py build/bin/bert

A tiny BERT with random weights, Pooling, Dense and Normalize. Each changed folder must give the vectors of
sentence-transformers, within 1e-5, or an error that names the member. Tested with sentence-transformers 6.2.0,
transformers 5.23.0 and torch 2.15.0; exits with 77 if they are missing, with 1 if there are findings.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import numpy as np
    import torch
    import transformers
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast
except ImportError as missing:
    print("skipped: %s" % missing)
    sys.exit(77)

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog query : passage sat on mat s ##s ##e b c d e".split()
LINES = ["the cat sat on the mat", "a dog", "", "The Cats sat: a query on a mat, the dog sat on the cat on the mat"]
ROOT, BERT, POOL, DENSE, NORM = ("config_sentence_transformers.json", "sentence_bert_config.json",
                                 "1_Pooling/config.json", "2_Dense/config.json", "3_Normalize/config.json")
PROMPTS = {"prompts": {"query": "query: ", "empty": "", "none": None}}
# File, changed members, and the member that an error must name; None: the vectors must be equal.
CHANGES = [
    (ROOT, {}, None),
    (ROOT, {**PROMPTS, "default_prompt_name": "query"}, None),
    (ROOT, {**PROMPTS, "default_prompt_name": "empty"}, None),
    (ROOT, {**PROMPTS, "default_prompt_name": "none"}, None),
    (ROOT, {**PROMPTS, "default_prompt_name": None}, None),
    (ROOT, {**PROMPTS, "default_prompt_name": "absent"}, "default_prompt_name"),
    (ROOT, {"truncate_dim": 7}, None),
    (ROOT, {"truncate_dim": 99}, None),
    (ROOT, {"truncate_dim": None}, None),
    (ROOT, {"truncate_dim": -3}, "truncate_dim"),
    (ROOT, {**PROMPTS, "default_prompt_name": "query", "truncate_dim": 1}, None),
    (ROOT, {"similarity_fn_name": "dot"}, None),
    (ROOT, {"model_type": "SparseEncoder"}, "model_type"),
    (BERT, {"max_seq_length": 6}, None),
    (BERT, {"max_seq_length": None}, None),
    (BERT, {"do_lower_case": True}, None),
    (BERT, {"transformer_task": "fill-mask"}, "transformer_task"),
    (BERT, {"module_output_name": "sentence_embedding"}, "module_output_name"),
    (BERT, {"modality_config": {"text": {"method": "forward", "method_output_name": "pooler_output"}}},
     "method_output_name"),
    (BERT, {"processing_kwargs": {"text": {"max_length": 4}}}, "processing_kwargs"),
    (BERT, {"query_length": 4}, "query_length"),
    (BERT, {"config_args": {"num_hidden_layers": 1}}, "config_args"),
    (BERT, {"tokenizer_args": {"do_lower_case": False}}, "tokenizer_args"),
    (BERT, {"model_args": {"torch_dtype": "bfloat16"}}, "torch_dtype"),
    (BERT, {"model_args": {"attn_implementation": "eager"}}, None),
    (POOL, {"pooling_mode": "cls"}, None),
    (POOL, {"pooling_mode": ["max"]}, None),
    (POOL, {"pooling_mode": ["max", "cls"]}, "pooling modes"),
    (POOL, {"pooling_mode": "lasttoken"}, "lasttoken"),
    (POOL, {"include_prompt": False}, None),  # without a prompt
    (DENSE, {"activation_function": "torch.nn.modules.linear.Identity"}, None),
    (DENSE, {"activation_function": "torch.nn.modules.activation.ReLU"}, None),
    (DENSE, {"activation_function": "torch.nn.modules.activation.Softmax"}, "Softmax"),
    (DENSE, {"use_residual": True}, "use_residual"),
    (DENSE, {"module_output_name": "other"}, "module_output_name"),
    (DENSE, {"module_input_name": "token_embeddings"}, "token_embeddings"),
    (NORM, {"module_output_name": "other"}, "module_output_name"),
    (NORM, {"module_input_name": "token_embeddings"}, "module_input_name"),
]


def make(folder):
    os.makedirs(folder + "/encoder")
    with open(folder + "/encoder/vocab.txt", "w") as f:
        f.write("\n".join(WORDS) + "\n")
    BertTokenizerFast(folder + "/encoder/vocab.txt").save_pretrained(folder + "/encoder")
    torch.manual_seed(1)
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                 max_position_embeddings=32)
    BertModel(BertConfig(vocab_size=len(WORDS), initializer_range=0.3, **sizes)).save_pretrained(folder + "/encoder")
    parts = [Transformer(folder + "/encoder", max_seq_length=20), Pooling(32, "mean"), Dense(32, 24), Normalize()]
    SentenceTransformer(modules=parts, device="cpu").save(folder + "/model")
    return folder + "/model"


def change(folder, name, members):
    with open(os.path.join(folder, name)) as f:
        config = json.load(f)
    with open(os.path.join(folder, name), "w") as f:
        json.dump({**config, **members}, f)


def finding(bert, folder, named):
    done = subprocess.run([bert, "embed", "--model", folder, "--json"] + LINES, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if named:
        return None if done.returncode and named in done.stderr else "%d: %s" % (done.returncode, done.stderr[:300])
    if done.returncode:
        return done.stderr[:300]
    ours = np.array([json.loads(line) for line in done.stdout.splitlines()])
    theirs = SentenceTransformer(folder, device="cpu").encode(LINES)
    if ours.shape != theirs.shape:
        return "%s, expected %s" % (ours.shape, theirs.shape)
    far = np.abs(ours - theirs).max()
    return None if far <= 1e-5 else "off by %.2g" % far


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    findings = 0
    with tempfile.TemporaryDirectory() as top:
        model = make(top)
        for name, members, named in CHANGES:
            folder = os.path.join(top, "changed")
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(model, folder)
            change(folder, name, members)
            problem = finding(sys.argv[1], folder, named)
            if problem:
                findings += 1
                print("%s %s: %s" % (name, json.dumps(members), problem))
        change(model, ROOT, {**PROMPTS, "default_prompt_name": "query"})
        change(model, POOL, {"include_prompt": False})
        problem = finding(sys.argv[1], model, "include_prompt")
        if problem:
            findings += 1
            print("include_prompt: %s" % problem)
    print("%d changes, %d findings" % (len(CHANGES) + 1, findings))
    return findings > 0


sys.exit(main())

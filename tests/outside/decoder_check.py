#!/usr/bin/env python3
"""Checks that other libraries read Tenon's model files: stories260K is read from llama2.c's files and saved as GGUF and
as a directory; llama.cpp must generate the same greedy text from the first, transformers from the second, with the same
token ids of texts.

    tests/outside/decoder_check.py build/libtenon.so STORIES260K     a Python with llama_cpp (seen with 0.3.36),
                                                                     transformers (5.23.0) and torch (2.15.0)

Exits with 77 if one of them or the data is missing."""
import ctypes
import os
import sys
import tempfile

data = sys.argv[2] if len(sys.argv) > 2 else ""
try:
    import torch
    import transformers
    import llama_cpp
    if not os.path.exists(data + "/stories260K.bin"):
        raise ImportError("stories260K is not there")
except ImportError as e:
    print("skipped:", e)
    sys.exit(77)
from tenon_by_name import struct

lib = ctypes.CDLL(sys.argv[1])
S = ctypes.c_char_p
Model, Config = struct("tn_model"), struct("tn_model_config", {"tokenizer": S})
SaveArgs = struct("tn_model_save_args", {"type": S})
lib.tn_error_message.restype = S
lib.tn_model_open_run.restype, lib.tn_model_open_run.argtypes = Model, [S, Config]
lib.tn_model_save_run.argtypes = [ctypes.POINTER(Model), S, SaveArgs]


def wrong(text):
    print("WRONG:", text)
    sys.exit(1)


want = open(data + "/expected_greedy.txt").read().rstrip("\n")
with tempfile.TemporaryDirectory() as folder:
    config = Config(tokenizer=(data + "/tok512.bin").encode())
    d = lib.tn_model_open_run((data + "/stories260K.bin").encode(), config)
    os.mkdir(folder + "/hf")
    for path, kind in [("hf", None), ("f32.gguf", b"f32"), ("bf16.gguf", b"bf16"), ("q8_0.gguf", b"q8_0")]:
        path = folder + "/" + path
        if not d.module or lib.tn_model_save_run(ctypes.byref(d), path.encode(), SaveArgs(type=kind)):
            wrong("%s: %s" % (path, lib.tn_error_message().decode()))
    for kind in ["f32", "bf16", "q8_0"]:
        m = llama_cpp.Llama(folder + "/%s.gguf" % kind, n_ctx=256, n_threads=1, verbose=False)
        ids, said = [1], b""
        for t in m.generate([1], temp=0.0):
            ids.append(t)
            if t == 1 or len(ids) > 200:
                break
        text = m.detokenize(ids).decode()
        text = text[1:] if text.startswith(" ") else text
        print("llama.cpp %-5s %s" % (kind, "the same text" if text == want else "another text: " + text[:60] + "…"))
        if kind == "f32" and text != want:
            wrong("llama.cpp writes " + text)
        for prompt in ["Once upon a time", "Zoë's 3 cats,\n  said \"no\"!", "日本"]:
            if kind == "f32":
                theirs = m.tokenize(prompt.encode())
                mine = transformers.AutoTokenizer.from_pretrained(folder + "/hf")(prompt)["input_ids"]
                if theirs != mine:
                    wrong("%r: llama.cpp %s, transformers %s" % (prompt, theirs, mine))
    a = transformers.AutoModelForCausalLM.from_pretrained(folder + "/hf", dtype=torch.float32)
    t = transformers.AutoTokenizer.from_pretrained(folder + "/hf")
    out = a.generate(torch.tensor([[1]]), max_new_tokens=200, do_sample=False, eos_token_id=1, pad_token_id=0)
    text = t.decode(out[0], skip_special_tokens=True).strip()
    print("transformers %s" % ("the same text" if text == want else "another text: " + text))
    if text != want:
        wrong("transformers")

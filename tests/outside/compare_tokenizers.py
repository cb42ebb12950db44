#!/usr/bin/env python3
"""Compares Tenon's tokenizers with Hugging Face's: mutated tokenizer.json and tokenizer_config.json files.

    python3 -m venv VENV && VENV/bin/pip install tokenizers==0.23.3 transformers==5.23.0
    VENV/bin/python tests/outside/compare_tokenizers.py LIBRARY [--count 5000] [--seed 1] [--kind folder] [--case K]

LIBRARY is a libtenon.so. Case k takes a tokenizer of one kind (WordPiece, byte-level BPE, Metaspace BPE, Unigram,
WordLevel, BPE with affixes) with its normalizer, pre_tokenizer, post_processor, decoder and added tokens, and changes
one to three members: deletes one, changes a value or its type, takes another enum value, adds a component. Both
libraries read the result; if both accept it, the token ids, the type ids of a pair and the decoded texts (with and
without special tokens) of 60 texts are compared. A case is
    equal      no difference
    rejected   by Tenon; --rejected prints the messages
    invalid    rejected by the reference
    different  a fault: printed, and the exit status is 1
The kind "folder" also mutates tokenizer_config.json, special_tokens_map.json and added_tokens.json, and compares with
transformers' AutoTokenizer. truncation and padding of a file are not applied: Tenon's caller sets them. Cases run in
a process of their own, because a panic may abort the reference. Exits with 77 if a reference is missing.
"""
import argparse
import collections
import contextlib
import copy
import ctypes as c
import io
import json
import os
import random
import re
import sys
import tempfile

sys.dont_write_bytecode = True
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"
try:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)

import tenon_by_name as T

LESSON = """The keys to the cabinet are on the table. The chicken crossed the road because it wanted to. Is it covid?
She said: "I've never seen 1,024 newer, lower, wider and wider things!" They're lower than the lowest, they'll see.
El niño comió jalapeños en el café; la niña también comió. ÅNGSTRÖM and Ångström, naïve façade, coöperate. K k A a
Быстрая лиса прыгает через ленивую собаку. 快速的狐狸跳过懒狗 🙂 = mc² ½ ﬁne [CLS] x^2 a|b (y) don't I'M we'd <b> #3
""" * 2
TEXTS = [
    "", " ", "  ", "a", "A", "K", "the", "The keys to the cabinet are on the table.", "COVID covid Covid xcovid covidx",
    "I've never seen 1,024 newer, lower things!", "they're  the   lowest ", "  leading and trailing  ", "café", "CAFÉ",
    "cafe\u0301 e\u0301", "El niño comió jalapeños", "ÅNGSTRÖM Ångström \u212bngstr\u00f6m", "naïve façade",
    "Быстрая лиса", "快速的狐狸 mixed中文with", "🙂👍🏽 👨‍👩‍👧", "½ ² ① ﬁne Ⅳ", "İstanbul", "tab\tand\nline\r\nend", "\n",
    "a\u00a0b\u3000c\u2028d", "zero\u200bwidth\ufeff soft\u00adhyphen", "\u0301x \u0301", "a\u0000b\u0001c", "\ufffd",
    "[CLS] the [SEP] [MASK] x[MASK]y", "<s> the </s> <unk> <pad>", "<|endoftext|>the<|endoftext|>", "▁the ▁ a▁b",
    "<x>a<x>",
    "<x> the <x>", "a<x>", " <x>", "<x>", "the<x> the", "##x ##ing x##ing", "Ġthe Ġ", "don't I'M we'd 'll it'S", "'",
    "x'",
    "1234567 12 345", "x^2 a|b (y) <b> #3 $5 `c` _d_", "aaaa AaAa", "un the_keys", "...,!? a.b,c", "the keys." * 3,
    "ing",
    "<0x41> <0x0A>", "नमस्ते दुनिया", "שלום עולם", "السلام", "ไทย", "\u1100\u1161\u11a8 각",
    "x\u0323\u0301 x\u0301\u0323",
    "don’t “quotes” … —", "b" * 130, "A ! n't 's 've , . ? do not", " , a ,b", "é", "ａｂｃ ＡＢＣ", "\x7f\x80", "𝔘𝔫𝔦",
    "ǅ ß ẞ ſ",
]
PAIRS = [("the keys", "are on the table."), ("", "x"), ("a", ""), ("<x> the", " covid")]
CONTENTS = ["<x>", "covid", "COVID", "café", "the", "a", "A", "K", "é", " x", "x ", "ing", "##ing", "##x", "▁the",
            "Ġthe",
            "Ġ", "▁", " ", "[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "<s>", "</s>", "<unk>", "<pad>",
            "<|endoftext|>",
            "the keys", "e\u0301", "İ", "ﬁ", "<0x41>", "</w>", "the</w>", ".", "'s", "\n", "12", "快", "x", "🙂", ","]


# ---- Tenon ----

Arguments, Decoded, Config, String = (T.struct("tn_" + name) for name in (
    "encode_args", "decode_args", "tokenizer_config", "string"))
Encoding = T.struct("tn_encoding", {"id": c.POINTER(c.c_int32), "segment": c.POINTER(c.c_uint8)})


class Ours:
    """A tokenizer of Tenon: from the text of a tokenizer.json, or from a path."""

    def __init__(self, tn, text=None, path=None):
        self.tn, self.encoding, self.t = tn, tn.encoding_new(), None
        if path:
            self.path = c.create_string_buffer(path.encode())
            self.t = tn.tokenizer_load_run(c.addressof(self.path), Config())
        else:
            data = text.encode("utf-8", "surrogatepass")
            keep = c.create_string_buffer(data, len(data) + 1)
            self.t = tn.tokenizer_parse(c.addressof(keep), len(data))

    def close(self):
        self.tn.encoding_free(self.encoding)
        self.tn.tokenizer_free(self.t)

    def encode(self, text, pair=None, bare=False):
        data, other = text.encode(), (pair or "").encode()
        keep, keep_other = c.create_string_buffer(data, len(data) + 1), c.create_string_buffer(other, len(other) + 1)
        o = Arguments(bare=bare)
        if pair is not None:
            o.pair, o.pair_bytes = c.addressof(keep_other), len(other)
        self.tn.tokenizer_encode_run(self.t, self.encoding, c.addressof(keep), len(data), o)
        e = c.cast(self.encoding, c.POINTER(Encoding)).contents
        return e.id[: e.n], [e.segment[i] for i in range(e.n)]

    def decode(self, ids, skip):
        to, array = String(), (c.c_int32 * max(1, len(ids)))(*ids)
        self.tn.tokenizer_decode_run(self.t, c.addressof(array), len(ids), Decoded(keep_special=not skip),
                                     c.addressof(to))
        text = c.string_at(to.at, to.bytes).decode() if to.at else ""
        self.tn.string_free(c.addressof(to))
        return text


# ---- tokenizers of all kinds ----

def trained(model, trainer, normalizer=None, splitter=None):
    t = Tokenizer(model)
    if normalizer:
        t.normalizer = normalizer
    if splitter:
        t.pre_tokenizer = splitter
    with contextlib.redirect_stderr(io.StringIO()):
        t.train_from_iterator(LESSON.split("\n"), trainer)
    return json.loads(t.to_str())


def added(content, number, special, **flags):
    token = dict(id=number, content=content, single_word=False, lstrip=False, rstrip=False, normalized=not special,
                 special=special)
    token.update(flags)
    return token


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SIGNS = ["<pad>", "<s>", "</s>", "<unk>"]
BYTES = ["<0x%02X>" % b for b in range(256)]
GPT4 = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
        "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
QWEN = GPT4.replace("{1,3}", "")
BERT = dict(type="BertNormalizer", clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
LEVEL = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
SPACE = dict(type="Metaspace", replacement="▁", prepend_scheme="always", split=True)
STRING = dict(type="Replace", pattern=dict(String=" "), content="▁")
BACK = dict(type="Replace", pattern=dict(String="▁"), content=" ")
STRIP = dict(type="Strip", content=" ", start=1, stop=0)


def split(regex, behavior="Isolated", invert=False, kind="Regex"):
    return dict(type="Split", pattern={kind: regex}, behavior=behavior, invert=invert)


def template(single, pair, ids):
    def parts(text):
        made = []
        for part in text.split():
            name, _, kind = part.partition(":")
            if name in "$A$B":
                made.append(dict(Sequence=dict(id=name[1], type_id=int(kind or 0))))
            else:
                made.append(dict(SpecialToken=dict(id=name, type_id=int(kind or 0))))
        return made
    special = {t: dict(id=t, ids=[i], tokens=[t]) for t, i in ids}
    return dict(type="TemplateProcessing", single=parts(single), pair=parts(pair), special_tokens=special)


def sequence(key, *parts):
    return {"type": "Sequence", key: [copy.deepcopy(p) for p in parts]}


NORMALIZERS = [None, BERT, dict(BERT, lowercase=False, strip_accents=False), dict(BERT, strip_accents=True,
                                                                                  lowercase=False),
               dict(BERT, clean_text=False, handle_chinese_chars=False), dict(type="NFC"), dict(type="NFD"),
               dict(type="NFKC"), dict(type="NFKD"), dict(type="Lowercase"), dict(type="StripAccents"),
               dict(type="Strip", strip_left=True, strip_right=True), dict(type="Prepend", prepend="▁"), STRING,
               dict(type="Replace", pattern=dict(Regex=" {2,}"), content=" "), dict(type="Nmt"), dict(type="ByteLevel"),
               dict(type="Replace", pattern=dict(String="the"), content="K"),
               sequence("normalizers", dict(type="Prepend", prepend="▁"), STRING),
               sequence("normalizers", dict(type="NFD"), dict(type="Lowercase"), dict(type="StripAccents")),
               sequence("normalizers"), dict(type="Precompiled", precompiled_charsmap="")]
SPLITTERS = [None, dict(type="BertPreTokenizer"), dict(type="WhitespaceSplit"), dict(type="Whitespace"), LEVEL,
             dict(LEVEL, add_prefix_space=True), dict(LEVEL, use_regex=False), SPACE,
             dict(SPACE, prepend_scheme="first"), dict(SPACE, prepend_scheme="never"), dict(SPACE, split=False),
             dict(SPACE, replacement="_"), dict(type="Digits", individual_digits=True),
             dict(type="Punctuation", behavior="Isolated"), dict(type="CharDelimiterSplit", delimiter="a"),
             dict(type="UnicodeScripts"), dict(type="FixedLength", length=3), split(" ", "MergedWithPrevious",
                                                                                    kind="String"),
             split(" ", "Removed", kind="String"), split(GPT4), split("the|ing"),
             sequence("pretokenizers", split(GPT4), dict(LEVEL, use_regex=False)),
             sequence("pretokenizers", split(QWEN), dict(LEVEL, use_regex=False)),
             sequence("pretokenizers", dict(type="WhitespaceSplit"), SPACE),
             sequence("pretokenizers", dict(type="Digits", individual_digits=False), LEVEL), sequence("pretokenizers"),
             sequence("pretokenizers", LEVEL), sequence("pretokenizers", SPACE)]
BERT_PROCESSOR = dict(type="BertProcessing", sep=["[SEP]", 3], cls=["[CLS]", 2])
PROCESSORS = [None, LEVEL, BERT_PROCESSOR, dict(type="RobertaProcessing", sep=["</s>", 2], cls=["<s>", 1],
                                                trim_offsets=True,
                                                add_prefix_space=False),
              template("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", [("[CLS]", 2), ("[SEP]", 3)]),
              template("<s> $A </s>", "<s> $A </s> $B:1 </s>:1", [("<s>", 1), ("</s>", 2)]),
              template("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)]), template("$A", "$A $B:1", []),
              sequence("processors", LEVEL), sequence("processors", LEVEL, template("<s> $A", "<s> $A <s> $B:1",
                                                                                    [("<s>", 1)])),
              sequence("processors")]
DECODERS = [None, dict(type="WordPiece", prefix="##", cleanup=True), dict(type="WordPiece", prefix="##", cleanup=False),
            dict(type="BPEDecoder", suffix="</w>"), LEVEL, SPACE, dict(SPACE, prepend_scheme="never"),
            dict(type="ByteFallback"), dict(type="Fuse"), BACK, STRIP, dict(STRIP, start=0), dict(STRIP, content="a"),
            dict(type="CTC", pad_token="<pad>", word_delimiter_token="|", cleanup=True),
            sequence("decoders", BACK, dict(type="ByteFallback"), dict(type="Fuse"), STRIP),
            sequence("decoders", BACK, dict(type="ByteFallback"), dict(type="Fuse")),
            sequence("decoders", BACK, dict(type="Fuse"), STRIP), sequence("decoders", BACK, STRIP),
            sequence("decoders", SPACE), sequence("decoders", dict(type="ByteFallback"), SPACE),
            sequence("decoders", LEVEL), sequence("decoders"),
            sequence("decoders", dict(type="WordPiece", prefix="##", cleanup=True))]
COMPONENTS = dict(normalizer=NORMALIZERS, pre_tokenizer=SPLITTERS, post_processor=PROCESSORS, decoder=DECODERS)
PARTS = dict(normalizers=NORMALIZERS, pretokenizers=SPLITTERS, processors=PROCESSORS, decoders=DECODERS)


def completed(base, **parts):
    base.update(truncation=None, padding=None)
    for key in COMPONENTS:
        base[key] = copy.deepcopy(parts.get(key))
    base["added_tokens"] = parts.get("added_tokens", base["added_tokens"])
    return base


def bases():
    made = {}
    for name, lower in ("uncased", True), ("cased", False):
        normal = dict(BERT, lowercase=lower)
        base = trained(models.WordPiece(unk_token="[UNK]"),
                       trainers.WordPieceTrainer(vocab_size=260, special_tokens=SPECIAL, show_progress=False),
                       normalizers.BertNormalizer(lowercase=lower), pre_tokenizers.BertPreTokenizer())
        made[name] = completed(base, normalizer=normal, pre_tokenizer=SPLITTERS[1], post_processor=PROCESSORS[4],
                               decoder=DECODERS[1])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = lambda special, n=420, **more: trainers.BpeTrainer(vocab_size=n, special_tokens=special,
                                                                show_progress=False, **more)
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    end = ["<|endoftext|>"]
    made["gpt2"] = completed(trained(models.BPE(), trainer(end, initial_alphabet=alphabet), None, level),
                             pre_tokenizer=LEVEL, post_processor=LEVEL, decoder=LEVEL)
    made["roberta"] = completed(trained(models.BPE(), trainer(SIGNS + ["<mask>"], initial_alphabet=alphabet), None,
                                        level),
                                pre_tokenizer=dict(LEVEL, add_prefix_space=True), post_processor=PROCESSORS[3],
                                decoder=LEVEL)
    base = trained(models.BPE(ignore_merges=True), trainer(end + ["<s>"], initial_alphabet=alphabet), None, level)
    made["llama3"] = completed(base, pre_tokenizer=SPLITTERS[21], post_processor=PROCESSORS[9], decoder=LEVEL)
    base = trained(models.BPE(), trainer(end, initial_alphabet=alphabet), None, level)
    made["qwen2"] = completed(base, normalizer=dict(type="NFC"), pre_tokenizer=SPLITTERS[22], post_processor=LEVEL,
                              decoder=LEVEL)
    for name, affixes in ("suffixed", dict(end_of_word_suffix="</w>")), ("prefixed",
                                                                         dict(continuing_subword_prefix="##")):
        base = trained(models.BPE(unk_token="[UNK]", **affixes), trainer(SPECIAL, 300, **affixes),
                       normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
        made[name] = completed(base, normalizer=BERT, pre_tokenizer=SPLITTERS[1], decoder=DECODERS[3])
        base = trained(models.BPE(**affixes), trainer(end, initial_alphabet=alphabet, **affixes), None, level)
        made["bytes " + name] = completed(base, pre_tokenizer=LEVEL, post_processor=LEVEL, decoder=LEVEL)
        base = trained(models.BPE(unk_token="<unk>", **affixes), trainer(SIGNS, 300, **affixes), None,
                       pre_tokenizers.Metaspace())
        made["spaces " + name] = completed(base, pre_tokenizer=SPACE, decoder=SPACE)
    base = trained(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True), trainer(SIGNS + BYTES, 560), None,
                   pre_tokenizers.Metaspace())
    made["llama"] = completed(copy.deepcopy(base), normalizer=NORMALIZERS[18], post_processor=PROCESSORS[6],
                              decoder=DECODERS[14])
    made["llama new"] = completed(copy.deepcopy(base), pre_tokenizer=dict(SPACE, prepend_scheme="first", split=False),
                                  post_processor=PROCESSORS[6], decoder=DECODERS[14])
    made["gemma"] = completed(base, normalizer=STRING, pre_tokenizer=SPLITTERS[17], post_processor=PROCESSORS[6],
                              decoder=DECODERS[15])
    base = trained(models.BPE(unk_token="<unk>"), trainer(SIGNS, 320), None, pre_tokenizers.Metaspace())
    made["spaces"] = completed(base, pre_tokenizer=SPACE, decoder=SPACE)
    unigram = trainers.UnigramTrainer(vocab_size=200, special_tokens=SIGNS, unk_token="<unk>", show_progress=False)
    base = trained(models.Unigram(), unigram, None, pre_tokenizers.Metaspace())
    made["t5"] = completed(copy.deepcopy(base), pre_tokenizer=SPLITTERS[23], decoder=SPACE,
                           post_processor=template("$A </s>", "$A </s> $B </s>", [("</s>", 2)]))
    made["xlmr"] = completed(base, normalizer=dict(type="NFKC"), pre_tokenizer=SPACE, decoder=SPACE,
                             post_processor=PROCESSORS[5])
    base = trained(models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer(special_tokens=SPECIAL), None,
                   pre_tokenizers.Whitespace())
    made["words"] = completed(base, pre_tokenizer=SPLITTERS[3], post_processor=PROCESSORS[4])
    return made


# ---- mutations ----

VALUES = [None, True, False, 0, 1, 2, 3, -1, 7, 100, 1000000, 0.5, "", " ", "a", "the", "▁", "##", "</w>", "[UNK]",
          "<unk>",
          "<s>", "[CLS]", "never", "first", "always", "_", "▁▁", {}, [], ["a"], {"a": 1}, "Isolated", "Removed", "1.0"]
MEMBERS = ["add_prefix_space", "prepend_scheme", "trim_offsets", "use_regex", "lowercase", "strip_accents", "split",
           "replacement", "content", "start", "stop", "prefix", "suffix", "cleanup", "behavior", "invert", "dropout",
           "unk_token", "unk_id", "byte_fallback", "ignore_merges", "fuse_unk", "continuing_subword_prefix",
           "end_of_word_suffix", "max_input_chars_per_word", "single_word", "lstrip", "rstrip", "normalized", "special",
           "strip_left", "strip_right", "pattern", "prepend", "type", "unknown_member", "sep", "cls", "single", "pair"]


def paths(v, at=()):
    """All (parent path, key) below v; of the vocabulary and the merges only a few."""
    items = list(v.items()) if isinstance(v, dict) else list(enumerate(v)) if isinstance(v, list) else []
    if at and at[-1] in ("vocab", "merges"):
        items = items[:2] + items[-2:]
    for key, child in items:
        yield at, key
        yield from paths(child, at + (key,))


def at_path(v, path):
    for key in path:
        v = v[key]
    return v


def component(r, kind):
    return copy.deepcopy(r.choice(COMPONENTS[kind]))


def new_added(r, v):
    vocab = v["model"].get("vocab", {}) if isinstance(v.get("model"), dict) else {}
    size = len(vocab) if isinstance(vocab, (dict, list)) else 0
    listed = enumerate(vocab if isinstance(vocab, list) else [])
    names = vocab if isinstance(vocab, dict) else {x[0]: i for i, x in listed if isinstance(x, list) and x}
    content = r.choice(CONTENTS if r.random() < 0.75 or not names else list(names))
    tokens = v.get("added_tokens")
    tokens = tokens if isinstance(tokens, list) else []
    known = {t.get("content"): t.get("id") for t in tokens if isinstance(t, dict)}
    ids = [t.get("id", 0) for t in tokens if isinstance(t, dict) and isinstance(t.get("id"), int)]
    number = known.get(content, names.get(content, max([size - 1] + ids) + 1))
    flip = lambda: r.random() < 0.35
    return added(content, number if r.random() < 0.97 else r.randrange(size + 3), flip(), single_word=flip(),
                 lstrip=flip(),
                 rstrip=flip(), normalized=r.random() < 0.5)


def changed(r, v):
    if isinstance(v, bool):
        return not v if r.random() < 0.8 else r.choice(VALUES)
    if isinstance(v, int) and r.random() < 0.6:
        return v + r.choice([-1, 1, 2])
    if isinstance(v, float) and r.random() < 0.7:
        return v + r.choice([-1.0, 0.5, 3.0])
    if isinstance(v, str) and r.random() < 0.5:
        return r.choice(CONTENTS)
    return copy.deepcopy(r.choice(VALUES))


def mutate(r, v):
    """Changes one member of v; returns what was done."""
    what = r.random()
    if what < 0.22:
        tokens = v.get("added_tokens")
        if isinstance(tokens, list):
            token = new_added(r, v)
            tokens.insert(len(tokens) if r.random() < 0.9 else r.randrange(len(tokens) + 1), token)
            return "added %s" % json.dumps(token, ensure_ascii=False)
    if what < 0.42:
        kind = r.choice(list(COMPONENTS))
        v[kind] = component(r, kind)
        return "%s = %s" % (kind, json.dumps(v[kind], ensure_ascii=False)[:150])
    if what < 0.50:
        lists = [p + (k,) for p, k in paths(v) if k in PARTS and isinstance(at_path(v, p + (k,)), list)]
        if lists:
            path = r.choice(lists)
            part = copy.deepcopy(r.choice([x for x in PARTS[path[-1]] if x]))
            parts = at_path(v, path)
            parts.insert(r.randrange(len(parts) + 1), part)
            return "%s + %s" % (".".join(map(str, path)), json.dumps(part, ensure_ascii=False)[:150])
    if what < 0.58 and isinstance(v.get("model"), dict):
        key, value = r.choice([("dropout", None), ("dropout", 0.0), ("unk_token", "[UNK]"), ("unk_token", "<unk>"),
                               ("unk_token", None), ("unk_token", "a"), ("continuing_subword_prefix", "##"),
                               ("continuing_subword_prefix", ""), ("continuing_subword_prefix", None), ("unk_id", 0),
                               ("continuing_subword_prefix", "▁"), ("end_of_word_suffix", "</w>"), ("unk_id", None),
                               ("end_of_word_suffix", ""), ("end_of_word_suffix", None), ("fuse_unk", True),
                               ("fuse_unk", False), ("byte_fallback", True), ("byte_fallback", False),
                               ("ignore_merges", True), ("ignore_merges", False), ("max_input_chars_per_word", 3),
                               ("max_input_chars_per_word", 100)])
        v["model"][key] = value
        return "model.%s = %r" % (key, value)
    everything = list(paths(v))
    # top-level members and the vocabulary are rarer than they would be
    weights = [0.3 if not p else 0.15 if "vocab" in p or "merges" in p else 1 for p, _ in everything]
    if not everything:
        return "nothing"
    path, key = r.choices(everything, weights)[0]
    parent, name = at_path(v, path), ".".join(map(str, path + (key,)))
    if what < 0.68:
        if isinstance(parent, dict):
            parent.pop(key)
        else:
            parent.pop(key)
        return "without %s" % name
    if what < 0.76 and isinstance(parent, dict):
        new = r.choice(MEMBERS)
        parent[new] = copy.deepcopy(r.choice(VALUES))
        return "%s: %s = %r" % (".".join(map(str, path)), new, parent[new])
    parent[key] = changed(r, parent[key])
    return "%s = %s" % (name, json.dumps(parent[key], ensure_ascii=False)[:80])


# ---- comparison ----

def error_of(e):
    return "%s: %s" % (type(e).__name__, str(e).split("\n")[0][:160])


def compare(r, ours, theirs, size):
    """Returns the first difference, or None; theirs has encode(text, pair, bare) and decode(ids, skip)."""
    def both(what, reference, own):
        try:
            theirs.at("theirs")
            expected = reference()
        except BaseException:
            return None  # this text is invalid in the reference
        theirs.at("ours")
        try:
            got = own()
        except T.Failed as e:
            return None if "not support" in str(e) else "%s: %s, expected %s" % (what, e, expected)
        return None if got == expected else "%s: %r, expected %r" % (what, got, expected)
    for text in TEXTS:
        for bare in False, True:
            found = both("encode %r%s" % (text, ", bare" if bare else ""), lambda: theirs.encode(text, None, bare)[0],
                         lambda: ours.encode(text, None, bare)[0])
            if found:
                return found
            try:
                ids = theirs.encode(text, None, bare)[0]
            except BaseException:
                continue
            for skip in False, True:
                found = both("decode %r of %r%s" % (ids, text, ", skipping" if skip else ""),
                             lambda: theirs.decode(ids, skip), lambda: ours.decode(ids, skip))
                if found:
                    return found
    for text, pair in [p for p in PAIRS if p[1] or theirs.pairs_may_be_empty]:
        found = both("encode %r and %r" % (text, pair), lambda: theirs.encode(text, pair, False),
                     lambda: ours.encode(text, pair))
        if found:
            return found
    for _ in range(20):
        ids = [r.randrange(size) if r.random() < 0.5 else r.randrange(max(0, size - 8), size)
               for _ in range(r.randrange(1, 6))] if size else []
        for skip in False, True:
            found = both("decode %r%s" % (ids, ", skipping" if skip else ""), lambda: theirs.decode(ids, skip),
                         lambda: ours.decode(ids, skip))
            if found:
                return found
    return None


class Theirs:
    stage, pairs_may_be_empty = None, True

    def at(self, name):
        self.stage.write(name + "\n")
        self.stage.flush()

    def __init__(self, text):
        self.t = Tokenizer.from_str(text)
        self.t.no_truncation()
        self.t.no_padding()

    def encode(self, text, pair, bare):
        e = self.t.encode(text, pair, add_special_tokens=not bare)
        return e.ids, e.type_ids

    def decode(self, ids, skip):
        return self.t.decode(ids, skip_special_tokens=skip)

    def size(self):
        return max(self.t.get_vocab(True).values(), default=-1) + 1


def case_json(tn, r, made):
    name = r.choice(list(made))
    v = copy.deepcopy(made[name])
    steps = [name] + [mutate(r, v) for _ in range(r.choice([0, 1, 1, 1, 2, 2, 3]))]
    text = json.dumps(v, ensure_ascii=False)
    try:
        Theirs.stage.write("theirs\n")
        Theirs.stage.flush()
        theirs = Theirs(text)
    except BaseException as e:
        return "invalid", error_of(e), steps, text
    try:
        ours = Ours(tn, text)
    except T.Failed as e:
        return "rejected", str(e), steps, text
    found = compare(r, ours, theirs, theirs.size())
    ours.close()
    return ("different", found, steps, text) if found else ("equal", "", steps, text)


# ---- folders ----

CLASSES = {"uncased": "BertTokenizer", "cased": "BertTokenizerFast", "gpt2": "GPT2Tokenizer",
           "roberta": "RobertaTokenizer",
           "qwen2": "Qwen2Tokenizer", "llama new": "LlamaTokenizer"}
ROLES = ["pad_token", "unk_token", "cls_token", "sep_token", "mask_token", "bos_token", "eos_token"]
OPTIONS = dict(do_lower_case=[True, False], strip_accents=[True, False, None], tokenize_chinese_chars=[True, False],
               do_basic_tokenize=[True, False], never_split=[None, [], ["the"]], add_prefix_space=[True, False, None],
               trim_offsets=[True, False], add_bos_token=[True, False], add_eos_token=[True, False],
               clean_up_tokenization_spaces=[True, False], split_special_tokens=[True, False, None], errors=["replace"],
               model_max_length=[512, 1e30], legacy=[True, False], padding_side=["left", "right"], use_fast=[True,
                                                                                                             False],
               model_input_names=[["input_ids"]], additional_special_tokens=[["<x>"], ["the"], [], None],
               extra_special_tokens=[["<x>"], {"image_token": "<x>"}, ["a"]], image_token=["<x>"], sp_model_kwargs=[{}],
               add_dummy_prefix_space=[True], spaces_between_special_tokens=[True, False], unknown_member=[1],
               tokenizer_class=["PreTrainedTokenizerFast", "TokenizersBackend"])


def role(r, v):
    text = r.choice(CONTENTS + list(v["model"]["vocab"])[:12]) if isinstance(v["model"]["vocab"], dict) else "<x>"
    if text.startswith("$"):  # transformers' templates take it for the text: add_bos_token with "$" repeats the text
        text = "<x>"
    if r.random() < 0.6:
        return text if r.random() < 0.8 else None
    token = added(text, 0, r.random() < 0.5, lstrip=r.random() < 0.3, rstrip=r.random() < 0.3)
    token.pop("id")
    token["__type"] = "AddedToken"
    return token


def case_folder(tn, r, made):
    name = r.choice(list(CLASSES) + ["llama3", "gemma", "t5", "xlmr", "spaces", "uncased", "gpt2"])
    v = copy.deepcopy(made[name])
    lists = name in ("uncased", "cased", "gpt2", "roberta", "qwen2") and r.random() < 0.35
    config = dict(tokenizer_class=CLASSES.get(name, "PreTrainedTokenizerFast"))
    # transformers rebuilds the tokenizers of named classes, with these defaults; Tenon follows tokenizer.json
    fixed = {"uncased": dict(do_lower_case=True), "cased": dict(do_lower_case=False), "llama new": {}}.get(
        name, dict(add_prefix_space=name == "roberta"))
    config.update(fixed)
    for t in v["added_tokens"]:
        for key in ROLES:
            if t["content"].strip("[]<>|").lower() == key[:3] and r.random() < 0.8:
                config[key] = t["content"]
    special, steps, more = {}, [name, "lists" if lists else "json", config["tokenizer_class"]], None
    for _ in range(r.choice([0, 1, 1, 2, 2, 3])):
        what = r.random()
        if what < 0.45:
            key = r.choice(list(OPTIONS))
            config[key] = copy.deepcopy(r.choice(OPTIONS[key]))
        elif what < 0.7:
            key = r.choice(ROLES)
            config[key] = role(r, v)
        elif what < 0.78:
            key = r.choice([k for k in config if k not in fixed] + ["legacy"])
            config.pop(key, None)
        elif what < 0.86:
            key = r.choice(ROLES)
            special[key] = role(r, v)
            steps.append("special_tokens_map %s = %r" % (key, special[key]))
            continue
        elif what < 0.9:
            token = new_added(r, v)
            more = {token["content"]: token["id"]}
            steps.append("added_tokens.json %s" % more)
            continue
        elif what < 0.95:
            tokens = [copy.deepcopy(t) for t in v["added_tokens"] if isinstance(t, dict) and "id" in t]
            tokens.append(new_added(r, v))
            config["added_tokens_decoder"] = {str(t.pop("id")): t for t in tokens}
            key = "added_tokens_decoder"
        elif not lists and config.get("tokenizer_class") not in CLASSES.values():
            steps.append(mutate(r, v))
            continue
        else:
            key = r.choice(list(OPTIONS))
            config[key] = copy.deepcopy(r.choice(VALUES))
        steps.append("%s = %s" % (key, json.dumps(config.get(key, "(deleted)"), ensure_ascii=False)[-170:]))
    with tempfile.TemporaryDirectory() as folder:
        def put(name, value):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        put("tokenizer_config.json", config)
        if special:
            put("special_tokens_map.json", special)
        if more:
            put("added_tokens.json", more)
        if not lists:
            put("tokenizer.json", v)
        elif v["model"]["type"] == "WordPiece":
            put("vocab.txt", "".join(t + "\n" for t in v["model"]["vocab"]))
        else:
            put("vocab.json", v["model"]["vocab"])
            put("merges.txt", "#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in v["model"]["merges"]))
        try:
            Theirs.stage.write("theirs\n")
            Theirs.stage.flush()
            theirs = TheirFolder(folder)
        except BaseException as e:
            return "invalid", error_of(e), steps, ""
        try:
            ours = Ours(tn, path=folder)
        except T.Failed as e:
            return "rejected", str(e).replace(folder, ""), steps, ""
    found = compare(r, ours, theirs, theirs.size())
    ours.close()
    return ("different", found, steps, json.dumps(config)) if found else ("equal", "", steps, "")


class TheirFolder(Theirs):
    pairs_may_be_empty = False

    def __init__(self, folder):
        from transformers import AutoTokenizer
        self.t = AutoTokenizer.from_pretrained(folder)

    def encode(self, text, pair, bare):
        e = self.t(text, pair, add_special_tokens=not bare, return_token_type_ids=True, truncation=False)
        return e["input_ids"], e["token_type_ids"]

    def decode(self, ids, skip):
        return self.t.decode(ids, skip_special_tokens=skip)

    def size(self):
        return max(self.t.get_vocab().values(), default=-1) + 1


def results(kind, tn, seed, cases, made):
    """Runs the cases in a process of its own, because a panic may abort the reference; then continues after it."""
    while cases:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            with os.fdopen(writing, "w") as to:
                for k in cases:
                    Theirs.stage = to
                    r = random.Random("%d %d" % (seed, k))
                    to.write(json.dumps((case_json if kind == "json" else case_folder)(tn, r, made)) + "\n")
                    to.flush()
            os._exit(0)
        os.close(writing)
        done, stage = 0, ""
        with os.fdopen(reading) as lines:
            for line in lines:
                if not line.startswith("["):
                    stage = line.strip()
                    continue
                yield cases[done], json.loads(line)
                done += 1
        status = os.waitpid(child, 0)[1]
        cases = cases[done:]
        if cases and status:
            yield cases[0], ["invalid" if stage == "theirs" else "different", "aborted in %s" % stage, [], ""]
            cases = cases[1:]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("library")
    p.add_argument("--count", type=int, default=5000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--kind", default="json", choices=["json", "folder"])
    p.add_argument("--case", type=int)
    p.add_argument("--rejected", action="store_true")
    p.add_argument("--most", type=int, default=20, help="stop after N differences")
    args = p.parse_args()
    tn = T.Tenon(args.library)
    made, counts, why = bases(), collections.Counter(), collections.Counter()
    cases = [args.case] if args.case is not None else list(range(args.count))
    for k, (verdict, detail, steps, text) in results(args.kind, tn, args.seed, cases, made):
        counts[verdict] += 1
        if verdict == "rejected":
            why[re.sub(r"\d+|'[^']*'", "_", detail)] += 1
        if args.case is not None:
            print(text)
        if verdict == "different" or args.case is not None:
            print("case %d: %s\n    %s" % (k, "; ".join(steps), detail))
        if counts["different"] >= args.most:
            break
    for text, n in why.most_common() if args.rejected else []:
        print("%6d %s" % (n, text))
    print(", ".join("%d %s" % (counts[x], x) for x in ("equal", "rejected", "invalid", "different")))
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())

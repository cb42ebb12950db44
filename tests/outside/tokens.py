#!/usr/bin/env python3
"""Compares `tokenize` with reference libraries: the token ids of the same lines, and decoding.

    python3 -m venv VENV && VENV/bin/pip install sentencepiece==0.2.3 tokenizers==0.23.3 transformers==5.23.0
    VENV/bin/python tests/outside/tokens.py build/bin/tokenize sentencepiece MODEL [TEXT...]   a .model
    VENV/bin/python tests/outside/tokens.py build/bin/tokenize bpe TEXT      SentencePiece's kinds, trained here
    VENV/bin/python tests/outside/tokens.py build/bin/tokenize json FILE     a tokenizer.json
    VENV/bin/python tests/outside/tokens.py build/bin/tokenize kinds TEXT    tokenizer.json of all kinds, trained here
    VENV/bin/python tests/outside/tokens.py build/bin/tokenize train TEXT    Unigram's training

--lines N: number of generated lines of Unicode (default: 20000). --also FILE: the lines of FILE, too; may be repeated.
Exits with 77 if a reference is missing, with 1 if a line differs.
"""
import argparse
import io
import os
import random
import subprocess
import sys
import tempfile

try:
    import sentencepiece as spm
    import tokenizers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

WORDS = """the keys to the cabinet are on the table isn't I'VE they'll we'd 12 345 6,789 3.14159 2026-11-21 HTTPServer
naïve café ÅNGSTRÖM Größe Straße İstanbul Быстрая лиса собаку
γρήγορη αλεπού Ὀδυσσεύς 快速的狐狸 日本語のテキスト
カタカナ ｶﾅ 한국어 문장입니다 여우와 नमस्ते दुनिया हिन्दी
السلام عليكم שלום עולם
ไทยภาษา ﬁne ﬀ Ⅳ ① ½ ² ㍿ ﷺ 🙂 👍🏽 👨‍👩‍👧 🇩🇪
e\u0301 c\u0327\u0301 \u212b \u2126
\u1100\u1161\u11a8 \u200b \u00ad \ufeff \u00a0 \u3000 \u2028 \u2581
a\u2581b <s> </s> <unk> <0x41> <|endoftext|> [MASK] don’t “quotes” … – —
100€ £5 №9 ™ x^2 a|b #tag @user http://a.b/c?d=e&f=g
foo_bar fooBar  def  return( [i+1]; /* */ // \\n\t""".split(" ")
RANGES = [(0x20, 0x7F)] * 6 + [(0xA0, 0x250), (0x300, 0x370), (0x370, 0x400), (0x400, 0x530), (0x590, 0x700),
          (0x900, 0xD80), (0xE00, 0xE80), (0x1100, 0x1200), (0x1E00, 0x2000), (0x2000, 0x2200), (0x2460, 0x2500),
          (0x3000, 0x3100), (0x4E00, 0x9FA0), (0xAC00, 0xD7A4), (0xF900, 0xFB00), (0xFB00, 0xFE00), (0xFE30, 0xFF00),
          (0xFF00, 0xFFF0), (0x1D400, 0x1D800), (0x1F300, 0x1F650), (0x20000, 0x20100)]
STABLE = {}


def assigned(c):
    """Characters assigned in Unicode 12 or earlier, on which references of different age agree."""
    import unicodedata
    return unicodedata.category(chr(c)) not in ("Cn", "Cs") and unicodedata.ucd_3_2_0.category(chr(c)) != "Cn"


def letter(r):
    while True:
        c = r.randrange(*r.choice(RANGES))
        if c not in STABLE:
            STABLE[c] = c not in (10, 13, 0) and assigned(c)
        if STABLE[c]:
            return chr(c)


def lines(n, seed=1):
    r = random.Random(seed)
    made = []
    for _ in range(n):
        line = ""
        for _ in range(r.randrange(1, 12)):
            kind = r.random()
            if kind < 0.5:
                line += r.choice(WORDS)
            elif kind < 0.9:
                line += "".join(letter(r) for _ in range(r.randrange(1, 8)))
            else:
                line += r.choice("abgt. '1\u2581") * r.randrange(1, 9)
            line += " " * r.choice([0, 1, 1, 1, 1, 2, 3])
        made.append(line.replace("\n", " ").replace("\r", " "))
    return made


def run(args, text):
    done = subprocess.run(args, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        raise SystemExit(f"{' '.join(args)} ends with {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def ours(tokenize, model, texts, *more):
    out = run([tokenize, "encode", "--model", model, *more], ("\n".join(texts) + "\n").encode())
    return [[int(x) for x in line.split()] for line in out.decode().split("\n")[:-1]]


def compare(name, texts, mine, theirs, show):
    wrong = [i for i in range(len(texts)) if i >= len(mine) or mine[i] != theirs[i]]
    print(f"{name}: {len(texts)} lines, {sum(map(len, theirs))} tokens, {len(wrong)} lines differ")
    for i in wrong[:5]:
        print("   ", repr(texts[i]))
        print("      ours  ", [show(x) for x in mine[i]])
        print("      theirs", [show(x) for x in theirs[i]])
    return bool(wrong)


def back(tokenize, model, texts, ids, expected, name):
    out = run([tokenize, "decode", "--model", model], "".join(" ".join(map(str, x)) + "\n" for x in ids).encode())
    got = out.decode().split("\n")[:-1]
    wrong = [i for i in range(len(texts)) if got[i] != expected[i]]
    print(f"{name}: decoded, {len(wrong)} lines differ")
    for i in wrong[:5]:
        print("   ", ids[i][:20], repr(got[i]), repr(expected[i]))
    return bool(wrong)


def check_model(o, model, files):
    sp = spm.SentencePieceProcessor(model_file=model)
    bad = False
    for name, texts in [(f, open(f, encoding="utf-8", newline="").read().split("\n")[:-1]) for f in files] + \
            [("lines of Unicode", lines(o.lines) + o.real)]:
        theirs = sp.encode(texts)
        bad |= compare(name, texts, ours(o.tokenize, model, texts), theirs, sp.id_to_piece)
        bad |= back(o.tokenize, model, texts, theirs, [t.replace("\n", " ") for t in sp.decode(theirs)], name)
    return bad


IDENTITY, RAW, BARE = dict(normalization_rule_name="identity"), dict(remove_extra_whitespaces=False), \
    dict(add_dummy_prefix=False)
BYTES, SYMBOLS = dict(byte_fallback=True), dict(user_defined_symbols=["<sep>", "ab", "\u2581the"])
SETTINGS = [  # of a .model: how texts are normalised, what precedes them, what happens to unknown characters
    {}, {**BYTES, **IDENTITY, **RAW}, SYMBOLS, {**BYTES, **BARE}, {**BARE, **RAW}, {**BARE, **IDENTITY}, RAW,
    {**IDENTITY, **BARE, **RAW}, {**IDENTITY, **SYMBOLS}, dict(normalization_rule_name="nfkc"),
    {**BYTES, **dict(normalization_rule_name="nmt_nfkc_cf")},
    {**BARE, **RAW, **SYMBOLS, **dict(normalization_rule_name="nfkc_cf")}]  # treat_whitespace_as_suffix is rejected


def train_sentencepiece(text, folder, **how):
    """Trains on the lines of the text; no path of this machine is stored in the model."""
    made = io.BytesIO()
    with open(text, encoding="utf-8") as f:
        spm.SentencePieceTrainer.train(sentence_iterator=(line.rstrip("\n") for line in f), model_writer=made,
                                       minloglevel=2, **how)
    path = os.path.join(folder, "m.model")
    with open(path, "wb") as f:
        f.write(made.getvalue())
    return path


def check_json(o, path, name):
    t = tokenizers.Tokenizer.from_file(path)
    texts = lines(o.lines) + o.real
    theirs = [e.ids for e in t.encode_batch(texts, add_special_tokens=False)]
    bad = compare(name, texts, ours(o.tokenize, path, texts), theirs, t.id_to_token)
    expected = [s.replace("\n", " ") for s in t.decode_batch(theirs)]
    ids = [x for x, s in zip(theirs, expected) if "\ufffd" not in s]
    return bad | back(o.tokenize, path, ids, ids, [s for s in expected if "\ufffd" not in s], name)


PATTERNS = {  # of published tokenizer.json files
    "gpt4": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
             r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}"
              r"| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "gpt2": r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
}


def sentence_kinds(text, folder):
    """Tokenizers of SentencePiece's kinds, as transformers converts them from a .model."""
    from sentencepiece import sentencepiece_model_pb2 as pb
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    path = train_sentencepiece(text, folder, model_type="bpe", vocab_size=5000, byte_fallback=True,
                               normalization_rule_name="identity", remove_extra_whitespaces=False)
    proto = pb.ModelProto()
    proto.ParseFromString(open(path, "rb").read())
    vocab = {p.piece: i for i, p in enumerate(proto.pieces)}
    scores = {p.piece: p.score for p in proto.pieces}
    merges = []
    for piece in vocab:
        local = [(piece[:i], piece[i:]) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
        merges += [(scores[piece], -vocab[piece], x) for x in sorted(local, key=lambda x: (vocab[x[0]], vocab[x[1]]))]
    merges = [x[2] for x in sorted(merges, key=lambda x: (x[0], x[1]), reverse=True)]
    plain = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]

    def llama(normalizer, pre, decoder):
        t = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        if normalizer:
            t.normalizer = normalizer
        if pre:
            t.pre_tokenizer = pre
        t.decoder = decoders.Sequence(decoder)
        t.add_special_tokens([AddedToken(x, normalized=False) for x in ("<unk>", "<s>", "</s>")])
        return t

    strip = [decoders.Strip(" ", 1, 0)]
    yield "llama", llama(normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]),
                         None, plain + strip)
    yield "llama, new", llama(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False), plain + strip)
    yield "gemma", llama(normalizers.Replace(" ", "\u2581"), pre_tokenizers.Split(" ", "merged_with_previous"), plain)
    path = train_sentencepiece(text, folder, model_type="unigram", vocab_size=5000)
    proto.ParseFromString(open(path, "rb").read())
    pieces = [(p.piece, p.score) for p in proto.pieces]
    charsmap = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)

    def unigram(steps, pre):
        t = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=False))
        t.normalizer = normalizers.Sequence(steps)
        t.pre_tokenizer = pre
        t.decoder = decoders.Metaspace()
        t.add_special_tokens([AddedToken(x, normalized=False) for x in ("<unk>", "<s>", "</s>")] +
                             [AddedToken("<mask>", lstrip=True, normalized=False)])
        return t

    yield "t5", unigram([charsmap, normalizers.Strip(False, True), normalizers.Replace(Regex(" {2,}"), "\u2581")],
                        pre_tokenizers.Metaspace())
    yield "xlm-roberta", unigram([charsmap, normalizers.Replace(Regex(" {2,}"), " ")], pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]))
    yield "albert", unigram([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
                             normalizers.StripAccents(), normalizers.Lowercase(), charsmap,
                             normalizers.Replace(Regex(" {2,}"), " ")], pre_tokenizers.Metaspace())


def byte_kinds(text):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from tokenizers import trainers

    def trained(pre, normalizer=None):
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre
        if normalizer:
            t.normalizer = normalizer
        t.decoder = decoders.ByteLevel()
        t.train([text], trainers.BpeTrainer(vocab_size=2500, show_progress=False, special_tokens=["<|endoftext|>"],
                                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        return t

    yield "gpt2", trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
    t = trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
    t.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True)])
    t.add_tokens([AddedToken("café", single_word=True), AddedToken("keys", rstrip=True, lstrip=True), "the"])
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
    yield "roberta", t
    t = trained(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizers.NFC())  # ModernBERT, Pythia
    t.add_tokens([" " * n for n in range(24, 1, -1)] + ["|||IP_ADDRESS|||"])
    t.add_special_tokens(["<|padding|>", "[UNK]", "[CLS]", "[SEP]", "[PAD]", AddedToken("[MASK]", lstrip=True)])
    yield "modernbert", t
    yield "smollm", trained(pre_tokenizers.Sequence([pre_tokenizers.Digits(True),
                                                     pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    for name, pattern in PATTERNS.items():
        for form in (None, normalizers.NFC()):
            split = pre_tokenizers.Split(Regex(pattern), "isolated")
            t = trained(pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False,
                                                                                 use_regex=False)]), form)
            yield name + (", NFC" if form else ""), t


def wordpiece_kinds(text):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    for name, lower in (("bert, uncased", True), ("bert, cased", False)):
        t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        t.normalizer = normalizers.BertNormalizer(lowercase=lower)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        t.decoder = decoders.WordPiece()
        t.train([text], trainers.WordPieceTrainer(vocab_size=2500, show_progress=False, special_tokens=special))
        t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        yield name, t


def training_text(path, folder):
    """The text, and lines of Unicode, so that vocabularies have tokens of many scripts."""
    made = os.path.join(folder, "training.txt")
    with open(path, encoding="utf-8") as f, open(made, "w", encoding="utf-8") as to:
        to.write(f.read() + "\n" + "\n".join(lines(600, seed=2)) + "\n")
    return made


def check_training(o, text, folder):
    """Compares a Unigram vocabulary of 1,000 with the reference trainer's: tokens, likelihood of the text, time."""
    import time
    began = time.process_time()
    theirs = spm.SentencePieceProcessor(model_file=train_sentencepiece(text, folder, vocab_size=1000, num_threads=1))
    middle = time.process_time()
    run([o.tokenize, "train", "--type", "unigram", "--size", "1000", "--out", folder, "--force", text], b"")
    ended = os.times()
    mine = spm.SentencePieceProcessor(model_file=os.path.join(folder, "tokenizer.model"))
    pieces = [{sp.id_to_piece(i) for i in range(1000)} for sp in (theirs, mine)]
    texts = open(text, encoding="utf-8").read().split("\n")
    sums = [sum(sp.get_score(i) for x in sp.encode(texts) for i in x) for sp in (theirs, mine)]
    share, off = len(pieces[0] & pieces[1]) / 1000, (sums[1] - sums[0]) / abs(sums[0])
    print(f"shared pieces {share:.1%}, log-likelihood {sums[0]:.0f} and ours {sums[1]:.0f} ({off:+.3%}), "
          f"CPU {middle - began:.2f} s and ours {ended.children_user + ended.children_system:.2f} s")
    return share < 0.97 or abs(off) > 0.001


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tokenize")
    p.add_argument("what", choices=["sentencepiece", "bpe", "json", "kinds", "train"])
    p.add_argument("files", nargs="*")
    p.add_argument("--lines", type=int, default=20000)
    p.add_argument("--also", action="append", default=[])
    o = p.parse_args()
    o.real = [line for f in o.also for line in open(f, encoding="utf-8").read().replace("\r", "").split("\n")]
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        if o.what == "sentencepiece":
            bad = check_model(o, o.files[0], o.files[1:])
        elif o.what == "bpe":
            text = training_text(o.files[0], folder)
            for i, how in enumerate(SETTINGS):
                both = ("bpe", "unigram")
                for kind in both if i < 4 else both[i % 2:][:1]:
                    print(kind, how, flush=True)
                    bad |= check_model(o, train_sentencepiece(text, folder, model_type=kind, vocab_size=4000,
                                                              **how), [])
        elif o.what == "train":
            bad = check_training(o, o.files[0], folder)
        elif o.what == "json":
            bad = check_json(o, o.files[0], o.files[0])
        elif o.what == "kinds":
            text = training_text(o.files[0], folder)
            for kinds in (wordpiece_kinds(text), sentence_kinds(text, folder), byte_kinds(text)):
                for name, t in kinds:
                    if o.files[1:] and name not in o.files[1:]:
                        continue
                    path = os.path.join(folder, "tokenizer.json")
                    t.save(path)
                    bad |= check_json(o, path, name)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())

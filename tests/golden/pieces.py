#!/usr/bin/env python3
"""Writes pieces.json: the output of Hugging Face's tokenizers for a small text in several scripts;
tests/unit/data/test_tokenizer*.c compare Tenon's output with it.

    python3 -m venv VENV && VENV/bin/pip install tokenizers==0.23.3
    VENV/bin/python tests/golden/pieces.py                                      write the file
    VENV/bin/python tests/golden/pieces.py --check build/bin/tokenize [FILE...] compare `tokenize`: each Unicode scalar
        value alone and between letters, random text in many scripts, training; and FILEs, line by line

Stores token ids and the byte ranges of tokens. For equal counts, Hugging Face's WordPiece trainer chooses a pair at
random; therefore the vocabulary is computed here by its definition, with ties broken by spelling.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import unicodedata

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TEXT = """The keys to the cabinet are on the table. The chicken crossed the road because it wanted to.
The ship will ship the boxes; the bank of the river isn't the bank on the corner, is it?
She said: "I've never seen 1,024 newer, lower, wider and wider things!" They're lower than the lowest, they'll see.
El niño comió jalapeños en el café; la niña también comió. ÅNGSTRÖM and Ångström, naïve façade, coöperate.
Größe, Straße, Übermut: die Größe der Straße. İstanbul'da ılık bir gün. Œuvre complète; l'été à Besançon.
Быстрая лиса прыгает через ленивую собаку. Быстрая собака прыгает, ленивая лиса спит. Ёжик и йод.
Η γρήγορη αλεπού πηδά πάνω από το τεμπέλικο σκυλί. Ὀδυσσεύς καὶ Ὅμηρος· ὁδὸς ἄνω κάτω μία καὶ ὡυτή.
快速的狐狸跳过懒狗。我們在學習中文,很有意思!日本語のテキストもあります。カタカナとひらがな。
빠른 갈색 여우가 게으른 개를 뛰어넘습니다. 한국어 문장입니다. 여우와 개.
नमस्ते दुनिया, यह हिन्दी में एक वाक्य है। दुनिया बड़ी है।
السلام عليكم يا عالم، هذه جملة عربية. שלום עולם, זה משפט בעברית.
e = mc² ± ½ ≈ 3.14159… – “quoted” ‘text’ — 100€ £5 ¥7 №9 ™ ﬁne ﬀ Ⅳ ① 🙂👍🏽👨‍👩‍👧 a\u0301b c\u0327\u0301d
"""
CASES = [
    "", " ", "  \t ", "a", "The keys to the cabinet", "unwanted", "isn't it? I'VE they'll y'all 're'",
    "  two  spaces   three", "tabs\tand\u00a0nbsp\u3000wide", "ends in spaces   ", "\u200bzero\u200bwidth\ufeff",
    "soft\u00adhyphen", "a\u0000b\u0001c", "replacement \ufffd character", "private \ue000 use \U000f0000",
    "[CLS] is [SEP] special [MASK].", "[cls] is not", "x[MASK]y<|endoftext|>z <|endoftext|>",
    "naïve café ÅNGSTRÖM", "e\u0301\u0301 a\u0323\u0301 \u0301alone", "İstanbul ǅ ǈ",
    "Ὀδυσσεύς ΟΔΥΣΣΕΥΣ", "學習中文 mixed中文with", "한국어 문장", "नमस्ते",
    "שלום", "🙂👍🏽👨‍👩‍👧", "1,024 3.14159 ½ ² ① Ⅳ",
    "don't stop—believing… “quotes”", "ﬁne Ａ１ ｶﾅ", "\u0378 unassigned \U000e0fff", "a" * 99,
    "b" * 100, "c" * 101, "d" * 300, "the" * 40, "line\nbreaks\r\nand\u2028more\u2029",
    "\u302e\u302b marks \U0001d15f\U0001d165\U0001d16e", "\u1734\u166d\U000111c9",
    "\U0001e944 \u2e52 young \u0afa marks", "Ω\u212b\u2126 \u1f79 \u0344 \u037e \u1fef", "CamelCaseAndACRONYMS",
    "under_score x^2 a|b $5 `c`",
]


def scalars():
    return [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def by_definition(counts, size, least, prefix="##"):
    """WordPiece's vocabulary: the most frequent pair becomes a token; ties by the spelling of the left, then right."""
    vocab = dict.fromkeys(BERT)
    vocab.update(dict.fromkeys(sorted({c for w in counts for c in w})))
    vocab.update(dict.fromkeys(sorted({prefix + c for w in counts for c in w[1:]})))
    words = {w: [w[0]] + [prefix + c for c in w[1:]] for w in counts}
    while len(vocab) < size:
        pairs = {}
        for w, s in words.items():
            for p in zip(s, s[1:]):
                pairs[p] = pairs.get(p, 0) + counts[w]
        top = max(pairs.values(), default=0)
        if top < least:
            break
        a, b = min((p for p in pairs if pairs[p] == top), key=lambda p: (p[0].encode(), p[1].encode()))
        new = a + b[len(prefix):]
        vocab[new] = None
        for w, s in words.items():
            i = 0
            while i + 1 < len(s):
                if (s[i], s[i + 1]) == (a, b):
                    s[i:i + 2] = [new]
                i += 1
    return list(vocab)


def words_of(t, text):
    counts = {}
    for w, _ in t.pre_tokenizer.pre_tokenize_str(t.normalizer.normalize_str(text)):
        counts[w] = counts.get(w, 0) + 1
    return counts


def bert(vocab, lower):
    t = Tokenizer(models.WordPiece({v: i for i, v in enumerate(vocab)}, unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lower)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.add_special_tokens([s for s in BERT if s in vocab])
    if "[CLS]" in vocab:
        ids = [(s, vocab.index(s)) for s in ("[CLS]", "[SEP]")]
        t.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ids)
    return t


def new_bert(lower):
    return bert(["[UNK]"], lower)


def new_bpe():
    t = Tokenizer(models.BPE(unk_token="[UNK]", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.BertNormalizer()
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.BPEDecoder()
    return t


def new_bytes(space=False, trim=False):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    t.post_processor = processors.ByteLevel(trim_offsets=trim)
    t.decoder = decoders.ByteLevel()
    return t


def train_bpe(t, files, size, least):
    t.train(files, trainers.BpeTrainer(vocab_size=size, min_frequency=least, limit_alphabet=1000, show_progress=False,
                                       special_tokens=BERT, end_of_word_suffix="</w>"))


def train_bytes(t, files, size, least):
    t.train(files, trainers.BpeTrainer(vocab_size=size, min_frequency=least, show_progress=False,
                                       special_tokens=["<|endoftext|>"],
                                       initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))


def chinese(c):
    ranges = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
              (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F))
    return any(a <= ord(c) <= b for a, b in ranges)


def punctuation(c):
    n = ord(c)
    return (33 <= n <= 47 or 58 <= n <= 64 or 91 <= n <= 96 or 123 <= n <= 126 or
            unicodedata.category(c).startswith("P"))


def slow_words(text, lower):
    """An independent implementation of the rules of the older tokenizer in Python."""
    clean = ""
    for c in text:
        kind = unicodedata.category(c)
        if c in "\t\n\r" or kind == "Zs":
            clean += " "
        elif ord(c) not in (0, 0xFFFD) and kind[0] != "C":
            clean += " " + c + " " if chinese(c) else c
    words = []
    for w in unicodedata.normalize("NFC", clean).split():
        if lower:
            w = "".join(c for c in unicodedata.normalize("NFD", w.lower()) if unicodedata.category(c) != "Mn")
        words += "".join(" " + c + " " if punctuation(c) else c for c in w).split()
    return words


def slow_ids(vocab, text, lower):
    ids = []
    for w in slow_words(text, lower):
        got, at = [], 0
        while at < len(w) <= 100:
            end = next((k for k in range(len(w), at, -1) if ("##" if at else "") + w[at:k] in vocab), None)
            if end is None:
                break
            got.append(vocab[("##" if at else "") + w[at:end]])
            at = end
        ids += got if at == len(w) else [vocab["[UNK]"]]
    return ids


def spans(text, e):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [[at[a], at[b]] for a, b in e.offsets]


def case(t, text, pair=None):
    e = t.encode(text, pair, add_special_tokens=pair is not None)
    x = {"text": text, "ids": e.ids, "decoded": t.decode(e.ids)}
    if pair is None:
        x["spans"] = spans(text, e)
    else:
        x.update(pair=pair, types=e.type_ids)
    return x


def write():
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as f:
        f.write(TEXT)
        f.flush()
        bpe, byte, spaced = new_bpe(), new_bytes(), new_bytes(True, True)
        train_bpe(bpe, [f.name], 400, 2)
        for t in byte, spaced:
            train_bytes(t, [f.name], 400, 2)
    vocabs = [by_definition(words_of(new_bert(lower), TEXT), 500, 2) for lower in (True, False)]
    ours = {"uncased": bert(vocabs[0], True), "cased": bert(vocabs[1], False), "bpe": bpe, "bytes": byte,
            "spaced": spaced}
    out = {"text": TEXT, "tokenizers": []}
    for name, t in ours.items():
        # after a special token Hugging Face assigns a byte of the text to the added space; Tenon does not
        cases = [case(t, x) for x in CASES + TEXT.split("\n") if name != "spaced" or "<|" not in x]
        if name in ("uncased", "cased"):
            cases += [case(t, a, b) for a, b in (("The keys", "are on the table."), ("", "x"), ("a", ""))]
        out["tokenizers"].append({"name": name, "json": t.to_str(), "cases": cases})
    vocab = ours["uncased"].get_vocab()
    plain = [x for x in CASES + TEXT.split("\n") if not any(s in x for s in BERT)]
    cases = [{"text": x, "ids": slow_ids(vocab, x, True)} for x in plain]
    out["tokenizers"].append({"name": "slow", "json": ours["uncased"].to_str(), "cases": cases})
    with open(os.path.join(HERE, "pieces.json"), "w", encoding="utf-8") as f:
        json.dump(out, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


# ---- comparison with the program ----


def ours(program, model, lines, *options):
    text = "".join(x + "\n" for x in lines).encode()
    command = [program, "encode", "--model", model, *options]
    out = subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True)
    return [[int(i) for i in x.split()] for x in out.stdout.decode().split("\n")[:-1]]


def compare(what, program, t, model, lines, *options, known=()):
    theirs = [e.ids for e in t.encode_batch(lines, add_special_tokens=False)]
    got = ours(program, model, lines, *options)
    different = [x for x, a, b in zip(lines, theirs, got) if a != b and x not in known]
    print("%s: %d lines, %d different%s" % (what, len(lines), len(different) + abs(len(theirs) - len(got)),
                                            "".join("\n  " + ascii(x) for x in different[:5])))
    return not different and len(theirs) == len(got)


def soup(seed, n):
    rnd = random.Random(seed)
    ranges = [(0x20, 0x7E)] * 3 + [(0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x590, 0x6FF),
              (0x900, 0xDFF), (0xE00, 0xEFF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1E00, 0x1FFF),
              (0x2000, 0x206F),
              (0x2070, 0x2BFF), (0x3000, 0x30FF), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xF900, 0xFAFF),
              (0xFE00, 0xFFEF),
              (0x1D100, 0x1D1FF), (0x1F300, 0x1F6FF), (0x20000, 0x20100), (0x302A, 0x302F)]
    lines = []
    for _ in range(n):
        s = ""
        while len(s) < rnd.randint(0, 60):
            a, b = rnd.choice(ranges)
            s += "".join(chr(rnd.randint(a, b)) for _ in range(rnd.randint(1, 6)))
            s += rnd.choice(["", "", " ", "  ", "\t", "'s", "'ll ", " the ", "Hello"])
        lines.append(s)
    return lines


def check(program, files):
    good = True
    lines = soup(1, 20000) + [x for f in files for x in open(f, encoding="utf-8").read().split("\n")]
    with tempfile.TemporaryDirectory() as d:
        pieces = ["[UNK]"] + [p + chr(c) for c in scalars() if c not in (0, 10, 13) for p in ("", "##")]
        alone = [x for c in scalars() if c != 10 for x in (chr(c), "a" + chr(c) + "b")]
        # Capitals of Unicode 16 and 17, which utf8proc 2.8 (Unicode 15) does not know.
        young = [0x1C89, 0xA7CB, 0xA7CC, 0xA7CE, 0xA7D2, 0xA7D4, 0xA7DA, 0xA7DC, *range(0x10D50, 0x10D66),
                 *range(0x16EA0, 0x16EB9)]
        known = {x for c in young for x in (chr(c), "a" + chr(c) + "b")}
        for lower in (True, False):
            t, model = bert(pieces, lower), os.path.join(d, "t.json")
            t.save(model)
            good &= compare("scalar values, lower %s" % lower, program, t, model, alone, known=known)
            good &= compare("text, lower %s" % lower, program, t, model, lines)
            vocab = t.get_vocab()
            old = [x for x in alone + lines if all(unicodedata.category(c) != "Cn" and c != "\r" for c in x)]
            got = ours(program, model, old, "--slow")
            wrong = [x for x, ids in zip(old, got) if ids != slow_ids(vocab, x, lower)]
            print("slow, lower %s: %d lines, %d different" % (lower, len(got), len(wrong)), *map(ascii, wrong[:5]))
            good &= not wrong
        text = os.path.join(d, "text")
        with open(text, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + TEXT)
        # fewer letters than the limit, at which Hugging Face chooses among equal counts at random
        with open(text + ".plain", "w", encoding="utf-8") as f:
            f.write("\n".join(lines[20000:]) + TEXT)
        for kind, t, train in ("bpe", new_bpe(), train_bpe), ("byte-bpe", new_bytes(), train_bytes):
            out = os.path.join(d, kind)
            source, least = (text + ".plain", 30) if kind == "bpe" else (text, 2)
            train(t, [source], 3000, least)
            subprocess.run([program, "train", "--type", kind, "--size", "3000", "--min-count", str(least), "--out", out,
                            source], check=True)
            mine = json.load(open(os.path.join(out, "tokenizer.json"), encoding="utf-8"))["model"]
            hers = json.loads(t.to_str())["model"]
            # ties are broken by the ids of letters with a suffix, which are random in Hugging Face's trainer
            same = mine["merges"] == hers["merges"] if kind == "byte-bpe" else set(mine["vocab"]) == set(hers["vocab"])
            print("training %s: %d merges, %s" % (kind, len(mine["merges"]), "the same" if same else "DIFFERENT"))
            good &= same
            mine = Tokenizer.from_file(os.path.join(out, "tokenizer.json"))
            good &= compare("text, " + kind, program, mine, out, lines)
    return good


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        sys.exit(not check(sys.argv[2], sys.argv[3:]))
    write()

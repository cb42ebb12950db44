#!/usr/bin/env python3
"""Compares BART, Marian, M2M-100, NLLB, T5, T5 v1.1 and Flan-T5 with Hugging Face transformers, at odd sizes.

    tests/outside/seq2seq_parity.py BUILD [NAME]

BUILD is a build folder of this project; NAME selects the models whose name contains it. Random models (3 and 2 layers,
6 and 4 heads, width 96, vocabulary 1,003, sources of 33 tokens with padding): logits within 2e-5, gradients within 1e-5
of their largest element; logits with a cache, token by token, and of a single row have the same bits; transformers
loads the models that Tenon writes, with the same logits. Directories with tokenizers, trained on this project's pages:
2,000 lines of text and of random characters have the same token ids, and 200 lines of text are translated to the same
ids, greedily and with 5 beams; and `translate run` prints their text. Tested with torch 2.15.0, transformers 5.24.0 and
sentencepiece 0.2. Exits with 77 if they are missing."""
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings

sys.dont_write_bytecode = True
try:
    import sentencepiece
    import tokenizers
    import torch
    import transformers as hf
    from safetensors.torch import load_file, save_file
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
S, T, VOCAB = 33, 21, 1003
SIZES = dict(d_model=96, encoder_layers=3, decoder_layers=2, encoder_attention_heads=6, decoder_attention_heads=4,
             encoder_ffn_dim=200, decoder_ffn_dim=150, max_position_embeddings=64, init_std=0.1)
IDS = dict(vocab_size=VOCAB, bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2)


def bart(**more):
    return hf.BartForConditionalGeneration(hf.BartConfig(**{**SIZES, **IDS, **more}))


def marian(**more):
    last = dict(bos_token_id=None, pad_token_id=VOCAB - 1, eos_token_id=0, decoder_start_token_id=VOCAB - 1)
    return hf.MarianMTModel(hf.MarianConfig(**{**SIZES, **IDS, **last, **more}))


def m2m(**more):
    return hf.M2M100ForConditionalGeneration(hf.M2M100Config(**{**SIZES, **IDS, **more}))


def t5(**more):
    sizes = dict(vocab_size=VOCAB, d_model=96, d_kv=20, d_ff=200, num_layers=3, num_decoder_layers=2, num_heads=5,
                 relative_attention_num_buckets=10, relative_attention_max_distance=25, initializer_factor=0.5,
                 decoder_start_token_id=0)
    m = hf.T5ForConditionalGeneration(hf.T5Config(**{**sizes, **more}))
    if "tie_word_embeddings" in more:
        m.lm_head.weight = torch.nn.Parameter(torch.randn(m.shared.weight.shape) * 0.1)
    return m


MODELS = {
    "t5": lambda: t5(),
    "t5 v1.1": lambda: t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "t5, gated-silu, 32 buckets": lambda: t5(feed_forward_proj="gated-silu", relative_attention_num_buckets=32,
                                             relative_attention_max_distance=128, layer_norm_epsilon=1e-5),
    "bart": lambda: bart(),
    "bart, untied, scaled, relu": lambda: bart(tie_word_embeddings=False, scale_embedding=True,
                                               activation_function="relu"),
    "marian": lambda: marian(activation_function="swish", scale_embedding=True),
    "marian, two vocabularies": lambda: marian(share_encoder_decoder_embeddings=False, decoder_vocab_size=VOCAB + 4),
    "marian, untied": lambda: marian(tie_word_embeddings=False),
    "m2m": lambda: m2m(),
    "m2m, untied, not scaled, gelu": lambda: m2m(tie_word_embeddings=False, scale_embedding=False,
                                                 activation_function="gelu", pad_token_id=5),
}


def compiled(build, folder):
    program = os.path.join(folder, "seq2seq_numbers")
    subprocess.check_call(["cc", "-std=c11", "-O1", "-I", os.path.join(build, "include"), "-o", program,
                           os.path.join(HERE, "seq2seq_numbers.c"), os.path.join(build, "libtenon.a"), "-lutf8proc",
                           "-lm", "-pthread"])
    return program


def randomise(m):
    with torch.no_grad():  # also change biases and norms from their initial values
        for p in m.parameters():
            if p.dim() == 1:
                p.add_(torch.randn(p.shape) * 0.1)
        if getattr(m, "final_logits_bias", None) is not None:
            m.final_logits_bias.copy_(torch.randn(m.final_logits_bias.shape))


def check(program, name, make, folder):
    torch.manual_seed(11)
    m = make().eval()
    randomise(m)
    c = m.config
    source, target = torch.randint(3, VOCAB - 1, (3, S)), torch.randint(3, VOCAB - 1, (3, T))
    target[:, 0] = c.decoder_start_token_id
    for row, (s, t) in enumerate(((S, T), (20, 9), (4, 3))):
        source[row, s - 1], target[row, t - 1] = c.eos_token_id, c.eos_token_id
        source[row, s:], target[row, t:] = c.pad_token_id, c.pad_token_id
    model, out = os.path.join(folder, "model"), os.path.join(folder, "out")
    os.makedirs(out)
    m.save_pretrained(model)
    save_file({"source": source, "target": target}, os.path.join(folder, "ids.safetensors"))
    subprocess.check_call([program, model, os.path.join(folder, "ids.safetensors"), out])
    numbers = load_file(os.path.join(out, "numbers.safetensors"))
    grads = load_file(os.path.join(out, "grads", "model.safetensors"))
    mask = (source != c.pad_token_id).long()
    read, labels = target[:, :-1], target[:, 1:]
    labels = labels.masked_fill(labels == c.pad_token_id, -100)
    y = m(source, attention_mask=mask, decoder_input_ids=read).logits
    loss = torch.nn.functional.cross_entropy(y.flatten(0, 1), labels.flatten())
    loss.backward()
    kept = labels != -100  # logits after the end are of no use, and are 0 here where padding is skipped
    worst, compared, due = 0, 0, 0
    for key, p in m.named_parameters():
        if p.grad is None:
            continue
        due += 1
        if key in grads:
            most = p.grad.abs().max().item()
            if not key.endswith("k_proj.bias"):  # 0: it adds the same to all scores of a query
                worst = max(worst, (grads[key] - p.grad).abs().max().item() / most)
            compared += 1
    written, report = hf.AutoModelForSeq2SeqLM.from_pretrained(os.path.join(out, "saved"), output_loading_info=True)
    with torch.no_grad():
        z = written.eval()(source, attention_mask=mask, decoder_input_ids=read).logits
    again = (z - y)[kept].abs().max().item()
    scores = (numbers["logits"] - y)[kept].abs().max().item()
    losses = abs(numbers["loss"].item() - loss.item())
    same = [k for k in c.to_dict() if k not in ("dtype", "transformers_version", "torch_dtype", "architectures",
                                                "_name_or_path") and getattr(written.config, k) != getattr(c, k)]
    odd = [k for k in list(report["missing_keys"]) + list(report["unexpected_keys"]) if k != "model.shared.weight"]
    fine = (scores <= 2e-5 and worst <= 1e-5 and losses <= 1e-5 and again <= 2e-5 and not odd and not same and
            type(written) is type(m) and compared == due)
    print("%-30s scores %.1e  loss %.1e  %d gradients %.1e  written and read %.1e%s" %
          (name, scores, losses, compared, worst, again, "" if fine else "  WRONG %s %s" % (odd, same)))
    return fine


# ---- directories with tokenizers ------------------------------------------------------------------------------------

def texts():
    lines = []
    for path in sorted(glob.glob(os.path.join(HERE, "..", "..", "docs", "**", "*.md"), recursive=True)):
        lines += [x.strip() for x in open(path, encoding="utf-8") if 8 < len(x.strip()) < 120]
    random.Random(3).shuffle(lines)
    return lines


def random_lines(n):
    r = random.Random(5)
    ranges = ((32, 126), (32, 126), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x5ff), (0x900, 0xdff), (0x2000, 0x206f),
              (0x2500, 0x25ff), (0x3040, 0x30ff), (0x4e00, 0x9fff), (0xff00, 0xffef), (0x1f600, 0x1f64f))
    special = ["<extra_id_0>", "<extra_id_99>", "</s>", "<pad>", "<unk>", ">>fra<<", "__en__", "\u2581", "  ", "<s>",
               ">>", "<<", "eng_Latn", "<mask>"]
    lines = []
    for _ in range(n):
        parts = []
        for _ in range(r.randint(1, 25)):
            parts.append(r.choice(special) if r.random() < 0.08 else chr(r.randint(*r.choice(ranges))))
        line = "".join(parts).replace("\x85", " ").replace("\u2028", " ").replace("\u2029", " ")
        if line.strip():
            lines.append(line)
    return lines


def pieces(folder, lines, kind, size, **more):
    path = os.path.join(folder, "m")
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_prefix=path, vocab_size=size,
                                             model_type=kind, minloglevel=2, num_threads=1, **more)
    os.remove(path + ".vocab")
    return path + ".model"


def marian_folder(folder, lines, separate=False):
    vocabs = []
    for name, part in (("source", lines[::2]), ("target", [x.upper() for x in lines[1::2]])):
        path = pieces(folder, part, "unigram", 500)
        p = sentencepiece.SentencePieceProcessor(model_file=path)
        vocabs.append([p.id_to_piece(i) for i in range(p.vocab_size())][3:])
        os.rename(path, os.path.join(folder, name + ".spm"))
    lists = []
    for some in (vocabs if separate else [vocabs[0][:-20] + vocabs[1]]):
        vocab = {"</s>": 0, "<unk>": 1}
        for piece in some + [">>fra<<", "\u4e2d", "\u2581\u4e2d"]:
            vocab.setdefault(piece, len(vocab))
        vocab["<pad>"] = len(vocab)
        lists.append(vocab)
    names = [os.path.join(folder, x) for x in ("source.spm", "target.spm", "vocab.json", "target_vocab.json")]
    for path, vocab in zip(names[2:], lists):
        json.dump(vocab, open(path, "w"))
    t = hf.MarianTokenizer(*names[:3], target_vocab_file=names[3] if separate else None, separate_vocabs=separate)
    t.save_pretrained(folder)
    n = [len(v) for v in lists]
    m = marian(vocab_size=n[0], decoder_vocab_size=n[-1], share_encoder_decoder_embeddings=not separate,
               pad_token_id=n[-1] - 1 if not separate else min(n) - 1, eos_token_id=0,
               decoder_start_token_id=n[-1] - 1 if not separate else min(n) - 1,
               forced_eos_token_id=0, max_position_embeddings=256, init_std=0.3)
    m.generation_config.bad_words_ids = [[m.config.pad_token_id]]
    m.generation_config.renormalize_logits = not separate
    return t, m, {}


def m2m_folder(folder, lines):
    path = pieces(folder, lines, "bpe", 600)
    p = sentencepiece.SentencePieceProcessor(model_file=path)
    vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    for i in range(p.vocab_size() - 10):
        vocab.setdefault(p.id_to_piece(i), len(vocab))
    os.rename(path, os.path.join(folder, "sentencepiece.bpe.model"))
    json.dump(vocab, open(os.path.join(folder, "vocab.json"), "w"))
    t = hf.M2M100Tokenizer(os.path.join(folder, "vocab.json"), os.path.join(folder, "sentencepiece.bpe.model"),
                           src_lang="de", tgt_lang="fr")
    t.save_pretrained(folder)
    m = m2m(vocab_size=len(vocab) + 108, max_position_embeddings=256, init_std=0.3)
    return t, m, dict(forced_bos_token_id=t.get_lang_id("fr"))


def nllb_folder(folder, lines):
    vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    trained = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    trained.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    trained.train_from_iterator(lines, tokenizers.trainers.BpeTrainer(vocab_size=600, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    for piece in sorted(model["vocab"], key=model["vocab"].get):
        vocab.setdefault(piece, len(vocab))
    t = hf.NllbTokenizer(vocab=vocab, merges=[tuple(x) for x in model["merges"]], src_lang="deu_Latn",
                         tgt_lang="fra_Latn")
    t.save_pretrained(folder)
    m = m2m(vocab_size=len(t), max_position_embeddings=256, init_std=0.3)
    return t, m, dict(forced_bos_token_id=t.convert_tokens_to_ids("fra_Latn"))


def bart_folder(folder, lines):
    trained = tokenizers.ByteLevelBPETokenizer()
    trained.train_from_iterator(lines, vocab_size=700, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
                                show_progress=False)
    model = json.loads(trained._tokenizer.to_str())["model"]
    t = hf.BartTokenizer(vocab=model["vocab"], merges=[tuple(x) for x in model["merges"]])
    t.save_pretrained(folder)
    m = bart(vocab_size=len(t), max_position_embeddings=256, init_std=0.3, forced_eos_token_id=2)
    m.generation_config.no_repeat_ngram_size = 3
    m.generation_config.length_penalty, m.generation_config.num_beams = 2.0, 4
    return t, m, {}


def t5_folder(folder, lines, untied=False):
    path = pieces(folder, lines, "unigram", 500, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    os.rename(path, os.path.join(folder, "spiece.model"))
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump({"tokenizer_class": "T5Tokenizer", "extra_ids": 100}, f)
    more = dict(feed_forward_proj="gated-gelu", tie_word_embeddings=False) if untied else {}
    m = t5(vocab_size=600, initializer_factor=1.0, **more)
    if untied:
        hf.T5Tokenizer.from_pretrained(folder).save_pretrained(folder)
        os.remove(os.path.join(folder, "spiece.model"))
    return None, m, {}


FOLDERS = {"t5 with spiece.model": t5_folder,
           "t5 v1.1 with tokenizer.json": lambda folder, lines: t5_folder(folder, lines, True),
           "marian with tokenizers": marian_folder,
           "marian with two vocabularies": lambda folder, lines: marian_folder(folder, lines, True),
           "m2m with tokenizer": m2m_folder, "nllb with tokenizer": nllb_folder, "bart with tokenizer": bart_folder}


def said(program, folder, path, beams, most):
    rows = []
    out = subprocess.run([program, folder, path, str(beams), str(most)], check=True, stdout=subprocess.PIPE)
    for row in out.stdout.decode("utf-8", "replace").split("\n")[:-1]:
        rows.append([[int(x) for x in part.split()] for part in row.split("|", 2)[:2]] + [row.split("|", 2)[2]])
    return rows


def translated(m, t, lines, beams, most, how):
    rows = []
    end = {m.config.eos_token_id, m.config.pad_token_id}
    for i in range(0, len(lines), 25):
        batch = t(lines[i:i + 25], return_tensors="pt", padding=True)
        batch.pop("token_type_ids", None)
        with torch.no_grad():
            out = m.generate(**batch, num_beams=beams, max_new_tokens=most, max_length=None, **how)
        rows += [without(end, row) for row in out[:, 1:].tolist()]
    return rows


def without(end, row):
    """The row without padding and end tokens at its end, which transformers cannot tell from padding."""
    while row and row[-1] in end:
        row = row[:-1]
    return row


def check_folder(program, build, name, make, folder):
    os.makedirs(folder)
    torch.manual_seed(13)
    lines = texts()
    t, m, how = make(folder, lines)
    m.eval()
    randomise(m)
    m.save_pretrained(folder)
    t = hf.AutoTokenizer.from_pretrained(folder)
    path = os.path.join(folder, "lines.txt")
    many = lines[:1000] + random_lines(1000)
    open(path, "w", encoding="utf-8", newline="\n").write("\n".join(many) + "\n")
    different = [(x, a[0], b) for x, a, b in zip(many, said(program, folder, path, 1, 0), t(many)["input_ids"])
                 if a[0] != b]
    open(path, "w", encoding="utf-8", newline="\n").write("\n".join(lines[:200]) + "\n")
    wrong = []
    for beams in (1, 5):
        here = said(program, folder, path, beams, 24)
        there = translated(m, t, lines[:200], beams, 24, how)
        run = subprocess.run([os.path.join(build, "bin", "translate"), "run", "--quiet", "--model", folder, "--beam",
                              str(beams), "--longest", "24"] , stdin=open(path, "rb"), stdout=subprocess.PIPE,
                             check=True).stdout.decode("utf-8", "replace").split("\n")[:-1]
        wrong.append(sum(without({m.config.pad_token_id}, a[1]) != b for a, b in zip(here, there)))
        words = [x for x, i in t.get_vocab().items() if x.startswith("__") and x.endswith("__")]
        codes = set(t.convert_tokens_to_ids(words)) | set(how.values()) if "m2m" in name else set()
        codes |= {i for row in there for i in row if i >= len(t)} if "m2m" in name else set()
        decoded = t.batch_decode([[i for i in row if i not in codes] for row in there], skip_special_tokens=True)
        clean = lambda x: " ".join(x.replace("\x00", " ").replace("\r", " ").replace("\n", " ").split())
        wrong.append(sum(clean(a) != clean(b) for a, b in zip(run, decoded)) + abs(len(run) - 200))
    fine = not different and not any(wrong)
    print("%-30s %d lines: %d of other ids; 200 translated: %d differ, text %d; 5 beams: %d, text %d%s" %
          (name, len(many), len(different), *wrong, "" if fine else "  WRONG %s" % (different[:2],)))
    return fine


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    warnings.simplefilter("ignore")
    hf.utils.logging.set_verbosity_error()
    hf.utils.logging.disable_progress_bar()
    torch.set_num_threads(2)
    fine, only = True, sys.argv[2] if len(sys.argv) > 2 else ""
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(sys.argv[1], folder)
        for i, (name, make) in enumerate((n, m) for n, m in MODELS.items() if only in n):
            fine = check(program, name, make, os.path.join(folder, str(i))) and fine
        for i, (name, make) in enumerate((n, m) for n, m in FOLDERS.items() if only in n):
            fine = check_folder(program, sys.argv[1], name, make, os.path.join(folder, "f%d" % i)) and fine
    return not fine


if __name__ == "__main__":
    sys.exit(main())

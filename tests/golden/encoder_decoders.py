#!/usr/bin/env python3
"""Writes small encoder-decoders with transformers, for tests/unit/models/test_encoder_decoders.c.

    python3 tests/golden/encoder_decoders.py

Tested with torch 2.15.0, transformers 5.24.0 and sentencepiece 0.2. Writes encoder_decoders/<name>, directories with
random weights; encoder_decoders/<name>.grad, the same with the gradient of the loss in place of each weight;
encoder_decoders/answers.safetensors: logits, losses and generated tokens; marian_tokens and m2m_tokens, directories
with a tokenizer, too, and their translations of lines.txt; and encoder_decoders/tokens.json: lines and their token ids.
"""
import io
import json
import os
import re
import shutil
import sys
import warnings

sys.dont_write_bytecode = True
import sentencepiece
import torch
import transformers as hf
from safetensors.torch import save_file

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "encoder_decoders")
SIZES = dict(d_model=12, encoder_layers=2, decoder_layers=3, encoder_attention_heads=3, decoder_attention_heads=2,
             encoder_ffn_dim=10, decoder_ffn_dim=14, max_position_embeddings=20, init_std=0.3, dropout=0.0,
             attention_dropout=0.0, encoder_layerdrop=0.0, decoder_layerdrop=0.0)
TEXT = ["the cat sat on the mat", "a dog ran to the cat", "the man saw a dog", "le chat est sur le tapis",
        "un chien court vers le chat", "l'homme a vu un chien", "three dogs and a cat ran",
        "der Hund sah die Katze"] * 3
LINES = ["the cat ran to a dog", "", " two  spaces ", "a cat, 7 dogs!", "un homme vers le tapis", "中文 and é ﬁ",
         ">>fra<< the cat", ">>xyz<<a dog", ">>", ">><< cat", "x </s> y <pad> <unk> <s>", "the__en__ cat __fr__ a",
         "Katze\tund\u00a0Hund", "\u2581the\u2581 cat", "ab\u0301c \U0001f600"]
IDS = torch.tensor([[5, 9, 13, 7, 11, 4, 2], [8, 6, 5, 2, 1, 1, 1]])
TARGET = torch.tensor([[2, 7, 10, 6, 3, 8, 2], [2, 4, 12, 2, 1, 1, 1]])


def pieces(folder, lines, kind, size, **more):
    path, model = os.path.join(folder, "m.model"), io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(  # with a model_prefix, the model would contain this path
        sentence_iterator=iter(lines), model_writer=model, vocab_size=size, model_type=kind, hard_vocab_limit=False,
        minloglevel=2, num_threads=1, **more)
    with open(path, "wb") as f:
        f.write(model.getvalue())
    return path


def marian_tokenizer(folder, separate=False):
    os.makedirs(folder, exist_ok=True)
    vocab = {"</s>": 0, "<unk>": 1}
    both = []
    for name, lines in (("source", TEXT[0::2]), ("target", TEXT[1::2])):
        path = pieces(folder, lines, "unigram", 40)
        p = sentencepiece.SentencePieceProcessor(model_file=path)
        both.append([p.id_to_piece(i) for i in range(p.vocab_size())])
        os.rename(path, os.path.join(folder, name + ".spm"))
    # as for OPUS-MT: some pieces are not in the list, and some of the list are in neither model
    for piece in both[0][:-3] + both[1] + [">>fra<<", "\u4e2d\u6587", "\u2581\u4e2d\u6587"]:
        if piece not in ("<s>", "</s>", "<unk>"):
            vocab.setdefault(piece, len(vocab))
    vocab["<pad>"] = len(vocab)
    json.dump(vocab, open(os.path.join(folder, "vocab.json"), "w"))
    t = hf.MarianTokenizer(os.path.join(folder, "source.spm"), os.path.join(folder, "target.spm"),
                           os.path.join(folder, "vocab.json"), source_lang="eng", target_lang="fra")
    t.save_pretrained(folder)
    return t


def m2m_tokenizer(folder):
    os.makedirs(folder, exist_ok=True)
    path = pieces(folder, TEXT, "bpe", 60)
    p = sentencepiece.SentencePieceProcessor(model_file=path)
    vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    for i in range(p.vocab_size() - 2):
        vocab.setdefault(p.id_to_piece(i), len(vocab))
    os.rename(path, os.path.join(folder, "sentencepiece.bpe.model"))
    json.dump(vocab, open(os.path.join(folder, "vocab.json"), "w"))
    t = hf.M2M100Tokenizer(os.path.join(folder, "vocab.json"), os.path.join(folder, "sentencepiece.bpe.model"),
                           src_lang="fr", tgt_lang="de")
    t.save_pretrained(folder)
    return t


def models():
    bart = dict(SIZES, vocab_size=19, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
                forced_eos_token_id=2)
    marian = dict(SIZES, vocab_size=19, pad_token_id=1, eos_token_id=2, decoder_start_token_id=1, forced_eos_token_id=2)
    m2m = dict(SIZES, vocab_size=19, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2)
    return {
        "bart": hf.BartForConditionalGeneration(hf.BartConfig(**bart)),
        "bart_untied": hf.BartForConditionalGeneration(hf.BartConfig(**{**bart, "scale_embedding": True,
                                                                        "activation_function": "relu",
                                                                        "forced_eos_token_id": None},
                                                                     tie_word_embeddings=False)),
        "marian": hf.MarianMTModel(hf.MarianConfig(**marian, activation_function="swish", scale_embedding=True)),
        "marian_apart": hf.MarianMTModel(hf.MarianConfig(**marian, decoder_vocab_size=17,
                                                         share_encoder_decoder_embeddings=False)),
        "m2m": hf.M2M100ForConditionalGeneration(hf.M2M100Config(**m2m)),
    }


def write_lines(name, lines):
    with open(os.path.join(HERE, name), "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(" ".join(x.split()) + "\n" for x in lines))


def translate(name, t, how):
    """Writes a model for a tokenizer, and its translations of lines.txt."""
    n = len(json.load(open(os.path.join(HERE, name, "vocab.json"))))
    sizes = {**SIZES, "max_position_embeddings": 64, "tie_word_embeddings": False}
    if name == "marian_tokens":
        c = hf.MarianConfig(**sizes, vocab_size=n, pad_token_id=n - 1, eos_token_id=0, decoder_start_token_id=n - 1,
                            forced_eos_token_id=0)
        m = hf.MarianMTModel(c)
        m.generation_config.bad_words_ids = [[n - 1]]
    else:
        m = hf.M2M100ForConditionalGeneration(hf.M2M100Config(**sizes, vocab_size=n + 108))
    m.generation_config.max_length, m.generation_config.num_beams = 14, 4
    m.generation_config.no_repeat_ngram_size = 1
    with torch.no_grad():
        for p in m.parameters():
            if p.requires_grad:
                p.copy_(torch.randn(p.shape) * 0.6 + (p.dim() == 1 and p.mean() == 1))
        m.lm_head.weight[n:] = 0  # few languages
    m.eval().save_pretrained(os.path.join(HERE, name))
    batch = t(TEXT[:8], return_tensors="pt", padding=True)
    for beams in (1, 4):
        out = m.generate(**batch, num_beams=beams, **how)
        said = t.batch_decode(out, skip_special_tokens=True)
        write_lines("%s.beams%d" % (name, beams), [re.sub("__[a-z]+__", "", x) for x in said])  # languages


def main():
    torch.set_num_threads(1)
    torch.manual_seed(7)
    warnings.simplefilter("ignore")
    shutil.rmtree(HERE, ignore_errors=True)
    os.makedirs(HERE)
    answers = {"source": IDS, "target": TARGET}
    for name, m in models().items():
        m = m.eval()
        with torch.no_grad():
            for p in m.parameters():
                if p.requires_grad:  # Marian's positions are constants
                    p.copy_(torch.randn(p.shape) * 0.3 + (p.dim() == 1 and p.mean() == 1))
            if hasattr(m, "final_logits_bias"):
                m.final_logits_bias.copy_(torch.randn(m.final_logits_bias.shape))
        g = m.generation_config
        g.max_length, g.num_beams, g.length_penalty = 12, 3, 1.5
        if name == "marian":
            g.bad_words_ids, g.renormalize_logits = [[1], [7]], True
        if name == "marian_apart":
            g.bad_words_ids = [[1]]
        if name == "m2m":
            g.forced_bos_token_id, g.early_stopping = 14, True
        if name == "bart":
            g.no_repeat_ngram_size, g.min_length, g.repetition_penalty = 2, 4, 1.2
        path = os.path.join(HERE, name)
        m.save_pretrained(path)
        mask = (IDS != 1).long()
        target = TARGET.clone()
        target[:, 0] = m.config.decoder_start_token_id
        for beams in (1, 3):
            out = m.generate(IDS, attention_mask=mask, num_beams=beams)[:, 1:]
            answers["%s.beams%d" % (name, beams)] = out
        labels = target[:, 1:].masked_fill(target[:, 1:] == 1, -100)
        y = m.double()(IDS, attention_mask=mask, decoder_input_ids=target[:, :-1])
        # Marian's own loss needs equal sizes of both vocabularies
        loss = torch.nn.functional.cross_entropy(y.logits.flatten(0, 1), labels.flatten())
        loss.backward()
        answers[name + ".scores"], answers[name + ".loss"] = y.logits.detach().float(), loss.detach().float()
        with torch.no_grad():
            for p in m.parameters():
                p.copy_(p.grad if p.grad is not None else torch.zeros_like(p))
        m.float().save_pretrained(path + ".grad")
        os.remove(os.path.join(path + ".grad", "generation_config.json"))
    tokens = []
    write_lines("lines.txt", TEXT[:8])
    for name, t in (("marian_tokens", marian_tokenizer(os.path.join(HERE, "marian_tokens"))),
                    ("m2m_tokens", m2m_tokenizer(os.path.join(HERE, "m2m_tokens")))):
        how = {} if name == "marian_tokens" else dict(forced_bos_token_id=t.get_lang_id("de"))
        translate(name, t, how)
        for text in LINES:
            ids = t(text)["input_ids"]
            said = t(text_target=text)["input_ids"]
            tokens.append({"tokenizer": name, "text": text, "ids": ids, "target": said,
                           "decoded": t.decode(ids[name == "m2m_tokens":], skip_special_tokens=True)})
    json.dump(tokens, open(os.path.join(HERE, "tokens.json"), "w"), indent=0)
    save_file({k: v.contiguous() for k, v in answers.items()}, os.path.join(HERE, "answers.safetensors"),
              {"format": "pt", "made by": "tests/golden/encoder_decoders.py"})


main()

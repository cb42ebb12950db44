#!/usr/bin/env python3
"""Compares BERT, RoBERTa, XLM-RoBERTa, DistilBERT, ALBERT, ELECTRA, ModernBERT and XLNet with transformers, at odd
sizes.

    tests/outside/encoders_parity.py BUILD [NAME...]

BUILD is a build folder of this project; names select some of the models below. Random models (3 layers, 6 heads, width
90, inner width 203, vocabulary 1,003, sequences of 33 with padding at either end), the reference in f64: hidden states
and logits within 2e-5; gradients of the training loss within 1e-5 of the largest element, or within 1.5 times the
deviation of the reference in f32; state dicts unchanged after a round trip; transformers opens the models that Tenon
writes, with the same logits. With a tokenizer of each kind, `bert fill` finds the same tokens with the same
probabilities, and `bert embed` the same vectors. Tested with torch 2.15.0 and transformers 5.23.0. Exits with 77 if
they are missing.
"""
import copy
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
try:
    import torch
    import transformers as tf
    from safetensors.torch import load_file, save_file
    from tokenizers import (AddedToken, ByteLevelBPETokenizer, Tokenizer, decoders, models, normalizers,
                            pre_tokenizers, processors, trainers)
except ImportError as problem:
    print("skipped: %s" % problem)
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
B, T, VOCAB, PAD = 4, 33, 1003, 1
SIZES = dict(vocab_size=VOCAB, hidden_size=90, intermediate_size=203, num_hidden_layers=3, num_attention_heads=6,
             max_position_embeddings=40, pad_token_id=PAD, bos_token_id=0, eos_token_id=2, initializer_range=0.1)
DISTIL = dict(vocab_size=VOCAB, dim=90, hidden_dim=203, n_layers=3, n_heads=6, max_position_embeddings=40,
              pad_token_id=PAD, initializer_range=0.1)
ONE = dict(SIZES, type_vocab_size=1, layer_norm_eps=1e-5)
NARROW = dict(SIZES, embedding_size=31)
XLNET = dict(vocab_size=VOCAB, d_model=90, d_inner=203, n_layer=3, n_head=6, pad_token_id=PAD, initializer_range=0.1)
MODERN = dict(SIZES, num_attention_heads=5, local_attention=14)

MODELS = {
    "bert": lambda: tf.BertForPreTraining(tf.BertConfig(**SIZES)),
    "bert, gelu_new": lambda: tf.BertForMaskedLM(tf.BertConfig(**SIZES, hidden_act="gelu_new")),
    "roberta-prelayernorm": lambda: tf.RobertaPreLayerNormForMaskedLM(tf.RobertaPreLayerNormConfig(**SIZES)),
    "roberta": lambda: tf.RobertaForMaskedLM(tf.RobertaConfig(**ONE)),
    "roberta, two segments, relu": lambda: tf.RobertaForMaskedLM(tf.RobertaConfig(**SIZES, hidden_act="relu")),
    "roberta, encoder": lambda: tf.RobertaModel(tf.RobertaConfig(**ONE)),
    "xlm-roberta": lambda: tf.XLMRobertaForMaskedLM(tf.XLMRobertaConfig(**ONE)),
    "camembert": lambda: tf.CamembertForMaskedLM(tf.CamembertConfig(**ONE)),
    "distilbert": lambda: tf.DistilBertForMaskedLM(tf.DistilBertConfig(**DISTIL)),
    "distilbert, sinusoids": lambda: tf.DistilBertModel(tf.DistilBertConfig(**DISTIL, sinusoidal_pos_embds=True)),
    "albert": lambda: tf.AlbertForPreTraining(tf.AlbertConfig(**NARROW)),
    "albert, groups": lambda: tf.AlbertForMaskedLM(tf.AlbertConfig(**dict(NARROW, num_hidden_layers=7),
                                                                   num_hidden_groups=3)),
    "albert, as wide": lambda: tf.AlbertModel(tf.AlbertConfig(**SIZES, embedding_size=90, hidden_act="gelu")),
    "electra, generator": lambda: tf.ElectraForMaskedLM(tf.ElectraConfig(**NARROW, hidden_act="relu")),
    "electra, discriminator": lambda: tf.ElectraForPreTraining(tf.ElectraConfig(**NARROW)),
    "electra, as wide": lambda: tf.ElectraForPreTraining(tf.ElectraConfig(**SIZES, embedding_size=90,
                                                                          hidden_act="gelu_new")),
    "electra, encoder": lambda: tf.ElectraModel(tf.ElectraConfig(**NARROW)),
    "modernbert": lambda: tf.ModernBertForMaskedLM(tf.ModernBertConfig(**MODERN)),
    "modernbert, relu": lambda: tf.ModernBertForMaskedLM(tf.ModernBertConfig(
        **dict(MODERN, num_hidden_layers=5), global_attn_every_n_layers=2, global_rope_theta=300.0,
        local_rope_theta=70.0, hidden_activation="relu", classifier_pooling="mean")),
    "modernbert, encoder": lambda: tf.ModernBertModel(tf.ModernBertConfig(**dict(
        MODERN, layer_types=["full_attention"] * 3, norm_eps=1e-3))),
    "xlnet": lambda: tf.XLNetLMHeadModel(tf.XLNetConfig(**XLNET)),
    "xlnet, clamped, relu": lambda: tf.XLNetLMHeadModel(tf.XLNetConfig(**XLNET, clamp_len=7, ff_activation="relu")),
    "xlnet, encoder": lambda: tf.XLNetModel(tf.XLNetConfig(**XLNET)),
}


# XLNet's positions are f32 also in an f64 model, which cannot use them.
positions = tf.XLNetModel.relative_positional_encoding
tf.XLNetModel.relative_positional_encoding = lambda m, *a, **k: positions(m, *a, **k).to(m.dtype)


def compiled(build, folder):
    program = os.path.join(folder, "encoder_numbers")
    subprocess.check_call(["cc", "-std=c11", "-O1", "-I", os.path.join(build, "include"), "-o", program,
                           os.path.join(HERE, "encoder_numbers.c"), os.path.join(build, "libtenon.a"), "-lutf8proc",
                           "-lm", "-pthread"] + (["-lpng"] if has_png(build) else []))
    return program


def has_png(build):
    return "png_create" in subprocess.run(["nm", os.path.join(build, "libtenon.a")], capture_output=True,
                                          text=True).stdout


def batch(m):
    """Ids with padding at the end, at the start, and none; and the targets."""
    ids = torch.randint(2, VOCAB, (B, T))
    ids[0, 20:], ids[1, :5] = PAD, PAD
    real = (ids != PAD).long()
    has_types = getattr(m.config, "type_vocab_size", 1) > 1 or m.config.model_type == "xlnet"
    types = torch.randint(0, 2, (B, T)) if has_types else torch.zeros(B, T, dtype=torch.long)
    places = torch.tensor([3, 11, T + 7, 2 * T, 3 * T + 32])
    labels = torch.full((B * T,), -100)
    labels[places] = torch.randint(2, VOCAB, (len(places),))
    order = torch.full((B * T,), -1)
    order[places] = torch.tensor([1, 0, 0, 0, 0])
    return {"ids": ids, "real": real, "types": types, "order": order.view(B, T), "masked": places,
            "words": labels[places],
            "next": torch.randint(0, 2, (B,)), "replaced": torch.rand(B, T) < 0.3}, labels.view(B, T), has_types


def in_order(m, data, labels):
    """XLNet's loss over the targets, which see those before them in the order and all other tokens."""
    order, target = data["order"], labels >= 0
    sees = torch.where(target, order, order + 1)
    mapping, wanted = torch.zeros(B, 2, T), torch.full((B, 2), -100)
    for row in range(B):
        for i, at in enumerate(target[row].nonzero().flatten()):
            mapping[row, i, at], wanted[row, i] = 1, labels[row, at]
    y = m(input_ids=data["ids"], attention_mask=data["real"], token_type_ids=data["types"],
          perm_mask=(sees[:, :, None] <= order[:, None, :]).to(m.dtype), target_mapping=mapping.to(m.dtype))
    return torch.nn.functional.cross_entropy(y.logits.flatten(0, 1), wanted.flatten())


def reference(m, data, labels, has_types):
    """The outputs of transformers, under Tenon's names."""
    more = {"token_type_ids": data["types"]} if has_types else {}
    name = type(m).__name__
    base = getattr(m, m.base_model_prefix, m)
    if name == "BertForPreTraining":
        more.update(labels=labels, next_sentence_label=data["next"])
    elif name == "AlbertForPreTraining":
        more.update(labels=labels, sentence_order_label=data["next"])
    elif name == "ElectraForPreTraining":
        more.update(labels=data["replaced"].long())
    elif "MaskedLM" in name:
        more.update(labels=labels)
    seen = {}
    hook = base.register_forward_hook(lambda _, __, y: seen.update(y=y.last_hidden_state,
                                                                   pooled=getattr(y, "pooler_output", None)))
    y = m(input_ids=data["ids"], attention_mask=data["real"], **more)
    hook.remove()
    out = {k: v for k, v in seen.items() if v is not None}
    if "PreTraining" in name and "Electra" not in name:
        out["words"] = y.prediction_logits
        out["next"] = y.sop_logits if "Albert" in name else y.seq_relationship_logits
    elif "ElectraForPreTraining" == name:
        out["replaced"] = y.logits
    elif "MaskedLM" in name:
        out["words"] = y.logits
    if "LMHead" in name:
        out["words"], loss = y.logits, in_order(m, data, labels)
    elif "loss" in y and y.loss is not None:
        loss = y.loss
    else:
        loss = (out["y"] * data["real"].unsqueeze(2)).square().mean()
        if "pooled" in out:
            loss = loss + out["pooled"].square().mean()
    return out, loss


def apart(name, got, want, real):
    if name in ("y", "words", "replaced"):
        got = got.view(want.shape)
        got, want = got[real.bool()], want[real.bool()]
    return (got - want).abs().max().item()


def in_file(m, there):
    """Each parameter with its tensor in a file, found by one of its names, with or without the model's prefix."""
    names = {}
    for key, p in m.named_parameters(remove_duplicate=False):
        names.setdefault(p, []).extend((key, m.base_model_prefix + "." + key))
    return [(keys, p, next((there[k] for k in keys if k in there), None)) for p, keys in names.items()]


def gradients(m, there):
    """The maximum relative difference. The gradient of a key's bias is only rounding error: it is compared relative to
    that of the query's bias."""
    worst, compared, named = 0, 0, dict(m.named_parameters())
    for keys, p, ours in in_file(m, there):
        if ours is None or p.grad is None:
            continue
        beside = named.get(keys[0].replace("key.bias", "query.bias").replace("k_lin.bias", "q_lin.bias"), p)
        worst = max(worst, ((ours - p.grad).abs().max() / beside.grad.abs().max()).item())
        compared += 1
    return worst, compared, len([p for p in m.parameters() if p.grad is not None])


def same_weights(m, there):
    """The parameters that are missing in a file or differ."""
    return [keys[0] for keys, p, ours in in_file(m, there) if ours is None or not torch.equal(ours, p)]


def check(program, name, make, folder):
    torch.manual_seed(11)
    m = make().eval()
    with torch.no_grad():  # also change biases and norms from their initial values
        for p in m.parameters():
            if p.dim() == 1:
                p.add_(torch.randn(p.shape) * 0.1)
    data, labels, has_types = batch(m)
    model, out = os.path.join(folder, "model"), os.path.join(folder, "out")
    os.makedirs(out)
    m.save_pretrained(model)
    put = {k: v for k, v in data.items() if k != "types" or has_types}
    save_file(put, os.path.join(folder, "batch.safetensors"))
    subprocess.check_call([program, model, os.path.join(folder, "batch.safetensors"), out])
    numbers = load_file(os.path.join(out, "numbers.safetensors"))
    exact = copy.deepcopy(m).double()
    want, loss = reference(exact, data, labels, has_types)
    loss.backward()
    scores = {k: apart(k, numbers[k], v, data["real"]) for k, v in want.items() if k in numbers}
    unseen = sorted(set(numbers) - {"loss"} - set(scores))
    reference(m, data, labels, has_types)[1].backward()
    own = gradients(exact, {k: p.grad for k, p in m.named_parameters() if p.grad is not None})[0]
    worst, compared, parameters = gradients(exact, load_file(os.path.join(out, "grads", "model.safetensors")))
    changed = same_weights(m, load_file(os.path.join(out, "saved", "model.safetensors")))
    written, report = type(m).from_pretrained(os.path.join(out, "saved"), output_loading_info=True)
    with torch.no_grad():
        again, _ = reference(written.eval().double(), data, labels, has_types)
    again = max((again[k] - want[k]).abs().max().item() for k in want)
    odd = list(report["missing_keys"]) + list(report["unexpected_keys"])
    off = abs(numbers["loss"].item() - loss.item()) / max(1, abs(loss.item()))
    fine = (max(scores.values()) <= 2e-5 and worst <= max(1e-5, 1.5 * own) and off <= 1e-5 and again == 0 and
            not odd and not changed and not unseen and compared == parameters)
    print("%-28s %s  loss %.1e  %d gradients %.1e (theirs %.1e)%s" %
          (name, "  ".join("%s %.1e" % s for s in scores.items()), off, compared, worst, own,
           "" if fine else "  WRONG %s %s %s %s of %s, again %g" % (odd, changed, unseen, compared, parameters, again)))
    return fine


# ---- with texts ------------------------------------------------------------------------------------------------------

FOUR = ["<s>", "<pad>", "</s>", "<unk>"]


def corpus():
    texts = []
    for at in ("README.md", "CONTRIBUTING.md", "SECURITY.md"):
        with open(os.path.join(HERE, "..", "..", at), encoding="utf-8") as f:
            texts += f.read().splitlines()
    return texts


def word_pieces(kind):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=600, special_tokens=[
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    return kind(vocab=t.get_vocab())


def byte_pieces():
    t = ByteLevelBPETokenizer()
    t.train_from_iterator(corpus(), vocab_size=600, special_tokens=FOUR + ["<mask>"])
    model = json.loads(t.to_str())["model"]
    return tf.RobertaTokenizer(vocab=model["vocab"], merges=[tuple(x) for x in model["merges"]])


def modern_pieces():
    t = Tokenizer(models.BPE())
    t.normalizer, t.pre_tokenizer = normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=600, show_progress=False, special_tokens=special,
                                                        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_tokens([" " * n for n in range(9, 1, -1)])
    t.add_special_tokens([AddedToken("[MASK]", lstrip=True)])
    t.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]",
                                                     [("[CLS]", 2), ("[SEP]", 3)])
    return tf.PreTrainedTokenizerFast(tokenizer_object=t, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                      sep_token="[SEP]", mask_token=AddedToken("[MASK]", lstrip=True),
                                      model_input_names=["input_ids", "attention_mask"])


def unigram(kind, first, lower):
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    lines = [x.lower() for x in corpus()] if lower else corpus()
    t.train_from_iterator(lines, trainers.UnigramTrainer(vocab_size=500, unk_token="<unk>", special_tokens=["<unk>"]))
    pieces = [tuple(x) for x in json.loads(t.to_str())["model"]["vocab"] if x[0] != "<unk>"]
    return kind(vocab=[(x, 0.0) for x in first] + pieces)


TOKENIZERS = {
    "bert": (lambda: word_pieces(tf.BertTokenizer), lambda v: tf.BertForMaskedLM(tf.BertConfig(**v)), 0),
    "distilbert": (lambda: word_pieces(tf.DistilBertTokenizer), lambda v: tf.DistilBertForMaskedLM(tf.DistilBertConfig(
        vocab_size=v["vocab_size"], dim=90, hidden_dim=203, n_layers=3, n_heads=6, initializer_range=0.1)), 0),
    "roberta": (byte_pieces, lambda v: tf.RobertaForMaskedLM(tf.RobertaConfig(**v, type_vocab_size=1)), 1),
    "xlm-roberta": (lambda: unigram(tf.XLMRobertaTokenizer, FOUR + ["<mask>"], False),
                    lambda v: tf.XLMRobertaForMaskedLM(tf.XLMRobertaConfig(**v, type_vocab_size=1)), 1),
    "camembert": (lambda: unigram(tf.CamembertTokenizer, ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED",
                                                          "<s>", "</s>", "<mask>"], False),
                  lambda v: tf.CamembertForMaskedLM(tf.CamembertConfig(**v, type_vocab_size=1)), 1),
    "albert": (lambda: unigram(tf.AlbertTokenizer, ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"], True),
               lambda v: tf.AlbertForMaskedLM(tf.AlbertConfig(**v, embedding_size=31)), 0),
    "electra": (lambda: word_pieces(tf.BertTokenizer),
                lambda v: tf.ElectraForMaskedLM(tf.ElectraConfig(**v, embedding_size=31)), 0),
}
TOKENIZERS["xlnet"] = (lambda: unigram(tf.XLNetTokenizer, ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>",
                                                           "<eod>", "<eop>"], False),
                       lambda v: tf.XLNetLMHeadModel(tf.XLNetConfig(**dict(XLNET, vocab_size=v["vocab_size"],
                                                                           pad_token_id=5))), 5)
TOKENIZERS["modernbert"] = (modern_pieces, lambda v: tf.ModernBertForMaskedLM(tf.ModernBertConfig(
    **dict(v, num_attention_heads=5), local_attention=14)), 0)
TEXTS = ["The keys {} the table.", "A tensor is {} an error, {}.", "naïve  Café {}!"]


def with_texts(build, name, folder):
    make, model, pad = TOKENIZERS[name]
    torch.manual_seed(5)
    t = make()
    m = model(dict(SIZES, vocab_size=len(t), max_position_embeddings=80, pad_token_id=pad)).eval()
    t.save_pretrained(folder), m.save_pretrained(folder)
    bert, worst, wrong = os.path.join(build, "bin", "bert"), 0, 0
    types = {"return_token_type_ids": True} if name == "xlnet" else {}  # not returned otherwise; that of <cls> is 2
    for text in TEXTS:
        text = text.replace("{}", t.mask_token)
        ours = json.loads(subprocess.check_output([bert, "fill", "--model", folder, "--json", "--top", "3", text]))
        tokens = t(text, return_tensors="pt", **types)
        masks = tokens["input_ids"][0] == t.mask_token_id
        with torch.no_grad():
            if name == "xlnet":  # no token sees those at the masks
                p = m(**tokens, perm_mask=masks.float().expand(1, len(masks), -1),
                      target_mapping=torch.eye(len(masks))[masks][None]).logits[0].softmax(-1)
            else:
                p = m(**tokens).logits[0].softmax(-1)[masks]
        best = p.topk(3)
        wrong += [x["id"] for x in ours] != best.indices.flatten().tolist()
        worst = max([worst] + [abs(x["probability"] - y) for x, y in zip(ours, best.values.flatten().tolist())])
    lines = [x for x in corpus() if x.strip()][:60]
    out = subprocess.run([bert, "embed", "--model", folder, "--json"], input="\n".join(lines) + "\n", text=True,
                         stdout=subprocess.PIPE, check=True).stdout
    vectors = torch.tensor([json.loads(x) for x in out.splitlines()])
    tokens = t(lines, return_tensors="pt", padding=True, truncation=True, **types,
               max_length=512 if name == "xlnet" else 80 - (pad + 1 if pad else 0))
    with torch.no_grad():
        y = getattr(m, m.base_model_prefix)(**tokens).last_hidden_state
    real = tokens["attention_mask"].unsqueeze(2).float()
    want = torch.nn.functional.normalize((y * real).sum(1) / real.sum(1))
    apart_ = (vectors - want).abs().max().item() if vectors.shape == want.shape else float("inf")
    fine = not wrong and worst <= 1e-5 and apart_ <= 2e-5
    print("%-28s probabilities of blanks %.1e  vectors of %d lines %.1e%s" %
          (name + ", texts", worst, len(lines), apart_, "" if fine else "  WRONG: %d" % wrong))
    return fine


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tf.utils.logging.set_verbosity_error()
    tf.utils.logging.disable_progress_bar()
    torch.set_num_threads(2)
    fine, some = True, sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(sys.argv[1], folder)
        for i, (name, make) in enumerate(MODELS.items()):
            if not some or name in some:
                fine = check(program, name, make, os.path.join(folder, str(i))) and fine
        for name in TOKENIZERS:
            if not some or name + ", texts" in some:
                fine = with_texts(sys.argv[1], name, os.path.join(folder, "texts-" + name)) and fine
    return not fine


if __name__ == "__main__":
    sys.exit(main())

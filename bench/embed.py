#!/usr/bin/env python3
"""Embeds the lines of a text with `bert embed`, ONNX Runtime and sentence-transformers, alternately, and prints the
seconds of each, also as a multiple of Tenon's. All have the same model, MiniLM's shape (6 layers of width 384) with
random weights, and mean pooling; their vectors are compared.

    bench/peers/python sentence_transformers bench/embed.py --vocab vocab.txt --text sentences.txt

Needs sentence-transformers 6, onnx and onnxruntime, and build/bin/bert. ONNX Runtime gets its fused operators and
batches of 32 lines sorted by length, padded to the longest one, as sentence-transformers makes them. The times are
without loading: of Tenon, the time of all lines less that of one line."""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
BERT = os.path.join(os.path.dirname(HERE), "build", "bin", "bert")
BATCH, DIM, LAYERS, HEADS, FF, LONGEST = 32, 384, 6, 12, 1536, 256


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--vocab", required=True, help="BERT's vocab.txt")
    p.add_argument("--text", required=True, help="a sentence per line")
    p.add_argument("--lines", type=int, default=1000)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--turns", type=int, default=3, help="runs of each; the best counts")
    return p.parse_args()


def model_folder(vocab, folder):
    """Saves a model in sentence-transformers' format."""
    import shutil
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from transformers import BertConfig, BertModel, BertTokenizerFast
    shutil.copy(vocab, os.path.join(folder, "vocab.txt"))
    tokenizer = BertTokenizerFast.from_pretrained(folder, do_lower_case=True, model_max_length=LONGEST)
    torch.manual_seed(1)
    plain = os.path.join(folder, "bert")
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=DIM, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                        intermediate_size=FF)
    BertModel(config).save_pretrained(plain), tokenizer.save_pretrained(plain)
    both = [modules.Transformer(plain, max_seq_length=LONGEST), modules.Pooling(DIM)]
    SentenceTransformer(modules=both, device="cpu").save(os.path.join(folder, "model"))
    return os.path.join(folder, "model")


def onnx_graph(model, path):
    """The encoder with ONNX Runtime's fused operators; positions are an input, because they depend on the length."""
    from onnx import TensorProto, helper, numpy_helper, save
    weight = {k: v.detach().numpy() for k, v in model.state_dict().items()}
    nodes, values = [], []

    def value(a):
        values.append(numpy_helper.from_array(np.ascontiguousarray(a, np.float32), "v%d" % len(values)))
        return values[-1].name

    def node(op, *inputs, **attributes):
        fused = op in ("Attention", "BiasGelu", "SkipLayerNormalization")
        nodes.append(helper.make_node(op, inputs, ["n%d" % len(nodes)], domain="com.microsoft" if fused else "",
                                      **attributes))
        return nodes[-1].output[0]

    def of(name):
        return value(weight[name])

    def matrix(*names):
        return value(np.concatenate([weight[n + ".weight"] for n in names]).T)

    def bias(*names):
        return value(np.concatenate([weight[n + ".bias"] for n in names]))

    e = "embeddings."
    table = value(weight[e + "position_embeddings.weight"] + weight[e + "token_type_embeddings.weight"][0])
    x = node("Add", node("Gather", of(e + "word_embeddings.weight"), "ids"), node("Gather", table, "positions"))
    x = node("LayerNormalization", x, of(e + "LayerNorm.weight"), of(e + "LayerNorm.bias"), epsilon=1e-12)
    for i in range(LAYERS):
        p = "encoder.layer.%d." % i
        three = [p + "attention.self." + n for n in ("query", "key", "value")]
        a = node("Attention", x, matrix(*three), bias(*three), "mask", num_heads=HEADS)
        a = node("MatMul", a, matrix(p + "attention.output.dense"))
        n = p + "attention.output.LayerNorm"
        x = node("SkipLayerNormalization", a, x, of(n + ".weight"), of(n + ".bias"), bias(p + "attention.output.dense"),
                 epsilon=1e-12)
        h = node("BiasGelu", node("MatMul", x, matrix(p + "intermediate.dense")), bias(p + "intermediate.dense"))
        n = p + "output.LayerNorm"
        x = node("SkipLayerNormalization", node("MatMul", h, matrix(p + "output.dense")), x, of(n + ".weight"),
                 of(n + ".bias"), bias(p + "output.dense"), epsilon=1e-12)
    inputs = [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", "length"]),
              helper.make_tensor_value_info("positions", TensorProto.INT64, ["length"]),
              helper.make_tensor_value_info("mask", TensorProto.INT32, ["batch", "length"])]
    out = helper.make_tensor_value_info(x, TensorProto.FLOAT, ["batch", "length", DIM])
    graph = helper.make_graph(nodes, "bert", inputs, [out], values)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    save(helper.make_model(graph, ir_version=10, opset_imports=sets), path)


def onnxruntime_of(transformer, path, threads):
    import onnxruntime
    onnx_graph(transformer.auto_model, path)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    tokenizer = transformer.tokenizer

    def embed(lines):
        ids = tokenizer(lines, truncation=True, max_length=LONGEST)["input_ids"]
        order = sorted(range(len(ids)), key=lambda i: -len(ids[i]))
        out = np.empty((len(lines), DIM), np.float32)
        for at in range(0, len(order), BATCH):
            some = order[at:at + BATCH]
            width = len(ids[some[0]])
            rows, mask = np.zeros((len(some), width), np.int64), np.zeros((len(some), width), np.int32)
            for k, i in enumerate(some):
                rows[k, :len(ids[i])], mask[k, :len(ids[i])] = ids[i], 1
            y = session.run(None, {"ids": rows, "mask": mask, "positions": np.arange(width)})[0]
            y = (y * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
            out[some] = y / np.linalg.norm(y, axis=1, keepdims=True)
        return out

    return embed


def tenon_of(folder, scratch, threads, dtype):
    def timed(lines):
        start = time.perf_counter()
        subprocess.run([BERT, "embed", "--model", folder, "--dtype", dtype, "--threads", str(threads), "--quiet",
                        "--out", os.path.join(scratch, "v.npy")], input="\n".join(lines) + "\n", text=True, check=True)
        return time.perf_counter() - start

    def embed(lines):
        load = min(timed(lines[:1]) for _ in range(3))
        seconds = timed(lines) - load
        v = np.load(os.path.join(scratch, "v.npy"))
        return v / np.linalg.norm(v, axis=1, keepdims=True), seconds

    return embed


def main():
    o = options()
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if o.threads == 1 else "true"
    import torch
    from sentence_transformers import SentenceTransformer
    torch.set_num_threads(o.threads)
    with open(o.text, encoding="utf-8", errors="replace") as f:
        lines = [line.strip() for line in f if line.strip()][:o.lines]
    with tempfile.TemporaryDirectory() as folder:
        path = model_folder(o.vocab, folder)
        st = SentenceTransformer(path, device="cpu")
        ort = onnxruntime_of(st[0], os.path.join(folder, "bert.onnx"), o.threads)
        runs = {"tenon": tenon_of(path, folder, o.threads, "f32"),
                "tenon int8": tenon_of(path, folder, o.threads, "int8"), "onnxruntime": ort,
                "sentence-transformers": lambda x: st.encode(x, batch_size=BATCH, normalize_embeddings=True)}
        best, vectors = {}, {}
        for _ in range(o.turns):
            for name, run in runs.items():
                start = time.perf_counter()
                v = run(lines)
                v, seconds = v if isinstance(v, tuple) else (v, time.perf_counter() - start)
                best[name], vectors[name] = min(best.get(name, seconds), seconds), v
    for name, seconds in best.items():
        cosine = (vectors[name] * vectors["onnxruntime"]).sum(1)
        print("%-22s %7.3f s  %5.2f times tenon, %5.2f times tenon int8   cosine with onnxruntime %.6f" %
              (name, seconds, seconds / best["tenon"], seconds / best["tenon int8"], cosine.min()))


if __name__ == "__main__":
    main()

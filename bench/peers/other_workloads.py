"""Inference workloads of bench/ in ONNX Runtime, CTranslate2 and llama.cpp, with random weights, printed as the same
line of JSON. bench/compare.py runs them alternately with Tenon.

    bench/peers/python onnxruntime bench/peers/other_workloads.py encoder-infer --threads 2 --seconds 5

encoder-infer runs on ONNX Runtime with its fused operators, with --dtype int8 after its dynamic quantisation,
seq2seq-infer and gpt-gen on CTranslate2, and llama on llama.cpp with the GGUF file of --gguf, which is created if it
does not exist."""
import os
import tempfile
import time

import numpy as np

from sizes import best_of, options, report

o = None  # the options of the run
FEW = 4   # positions that encoder-infer projects to the vocabulary
BEAMS = 5
RANDOM = np.random.default_rng(0)


def in_child(make, path):
    """Calls make(path) in a child process, so that its memory is not that of the measured library."""
    if os.fork() == 0:
        make(path)
        os._exit(0)
    if os.wait()[1]:
        raise SystemExit("other_workloads.py: %s cannot be created" % path)


def weights(*shape):
    return (RANDOM.standard_normal(shape, np.float32) * 0.02).astype(np.float32)


def bert_graph(path):
    """BERT's encoder and its masked-LM head, with the fused operators to which ONNX Runtime's optimizer converts it."""
    from onnx import TensorProto, helper, numpy_helper, save
    nodes, values, d, f = [], [], o.d_model, o.ffn

    def value(array):
        values.append(numpy_helper.from_array(array, "v%d" % len(values)))
        return values[-1].name

    def node(op, *inputs, **attributes):
        fused = op in ("Attention", "BiasGelu", "SkipLayerNormalization")
        nodes.append(helper.make_node(op, inputs, ["n%d" % len(nodes)], domain="com.microsoft" if fused else "",
                                      **attributes))
        return nodes[-1].output[0]

    def vector(n, one=0):
        return value(np.full(n, one, np.float32))

    def matrix(n, k):
        return value(weights(n, k))

    words = matrix(o.vocab, d)
    x = node("Add", node("Gather", words, "ids"), value(weights(1, o.seq, d)))
    x = node("LayerNormalization", x, vector(d, 1), vector(d), epsilon=1e-5)
    for _ in range(o.layers):
        a = node("Attention", x, matrix(d, 3 * d), vector(3 * d), num_heads=o.heads)
        a = node("MatMul", a, matrix(d, d))
        x = node("SkipLayerNormalization", a, x, vector(d, 1), vector(d), vector(d), epsilon=1e-5)
        h = node("BiasGelu", node("MatMul", x, matrix(d, f)), vector(f))
        h = node("MatMul", h, matrix(f, d))
        x = node("SkipLayerNormalization", h, x, vector(d, 1), vector(d), vector(d), epsilon=1e-5)
    x = node("Gather", node("Reshape", x, value(np.array([-1, d]))), value(np.arange(FEW)))
    x = node("BiasGelu", node("MatMul", x, matrix(d, d)), vector(d))
    x = node("LayerNormalization", x, vector(d, 1), vector(d), epsilon=1e-5)
    x = node("Gemm", x, words, vector(o.vocab), transB=1)
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [o.batch, o.seq])
    logits = helper.make_tensor_value_info(x, TensorProto.FLOAT, [FEW, o.vocab])
    graph = helper.make_graph(nodes, "bert", [ids], [logits], values)
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    save(helper.make_model(graph, ir_version=10, opset_imports=sets), path)


def quantised_graph(path):
    from onnx import TensorProto
    from onnxruntime.quantization import QuantType, quantize_dynamic
    bert_graph(path + ".f32")
    quantize_dynamic(path + ".f32", path, weight_type=QuantType.QInt8,
                     extra_options={"DefaultTensorType": TensorProto.FLOAT})


def encoder_infer():
    import onnxruntime
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = o.threads, 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bert.onnx")
        in_child(quantised_graph if o.dtype == "int8" else bert_graph, path)
        session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    ids = RANDOM.integers(0, o.vocab, (o.batch, o.seq))
    best, _ = best_of(lambda: session.run(None, {"ids": ids}), 60, o.seconds)
    return "ONNX Runtime " + onnxruntime.__version__, dict(ms=round(best * 1e3, 4), tok_s=round(o.batch * o.seq / best))


def fill(layer, d, f):
    """Sets the weights of a layer of CTranslate2."""
    def linear(to, n, k):
        to.weight, to.bias = weights(n, k), np.zeros(n, np.float32)

    def norm(of):
        of.gamma, of.beta = np.ones(d, np.float32), np.zeros(d, np.float32)

    for name in ("self_attention", "attention"):
        attention = getattr(layer, name, None)
        if attention:
            norm(attention.layer_norm)
            parts = (3, 1) if len(attention.linear) == 2 else (1, 2, 1)
            for to, n in zip(attention.linear, parts):
                linear(to, n * d, d)
    norm(layer.ffn.layer_norm)
    linear(layer.ffn.linear_0, f, d)
    linear(layer.ffn.linear_1, d, f)


def stack(of, words):
    """Sets the weights of CTranslate2's encoder or decoder."""
    for embeddings in of.embeddings if isinstance(of.embeddings, list) else [of.embeddings]:
        embeddings.weight = words
    for layer in of.layer:
        fill(layer, o.d_model, o.ffn)
    if hasattr(of, "layer_norm"):
        of.layer_norm.gamma, of.layer_norm.beta = np.ones(o.d_model, np.float32), np.zeros(o.d_model, np.float32)
    if hasattr(of, "projection"):
        of.projection.weight = words


def opened(kind, spec_of):
    import ctranslate2

    def save(path):
        spec = spec_of(ctranslate2.specs, ["<unk>", "<s>", "</s>"] + ["t%d" % i for i in range(o.vocab - 3)])
        spec.validate(), spec.optimize(), spec.save(path)

    with tempfile.TemporaryDirectory() as folder:
        in_child(save, folder)
        kinds = {"int8": "int8"}
        return "CTranslate2 " + ctranslate2.__version__, getattr(ctranslate2, kind)(
            folder, device="cpu", compute_type=kinds.get(o.dtype, "float32"), inter_threads=1, intra_threads=o.threads)


def translator(specs, vocabulary):
    spec, words = specs.TransformerSpec.from_config(o.layers, o.heads, pre_norm=False), weights(o.vocab, o.d_model)
    stack(spec.encoder, words), stack(spec.decoder, words)
    spec.register_source_vocabulary(vocabulary), spec.register_target_vocabulary(vocabulary)
    return spec


def seq2seq_infer():
    """Translation of a batch by beam search, each text into as many tokens as it has."""
    version, m = opened("Translator", translator)
    texts = [["t%d" % i for i in row] for row in RANDOM.integers(0, o.vocab - 3, (o.batch, o.seq))]

    def run():
        done = m.translate_batch(texts, beam_size=BEAMS, min_decoding_length=o.seq, max_decoding_length=o.seq)
        assert all(len(text.hypotheses[0]) == o.seq for text in done)

    run()
    best, _ = best_of(run, 3, o.seconds)
    return version, dict(ms=round(best * 1e3, 4), tok_s=round(o.batch * o.seq / best))


def gpt(specs, vocabulary):
    spec = specs.TransformerDecoderModelSpec.from_config(o.layers, o.heads, activation=specs.Activation.GELU)
    stack(spec.decoder, weights(o.vocab, o.d_model))
    spec.decoder.scale_embeddings = False
    spec.decoder.position_encodings.encodings = weights(o.seq, o.d_model)
    spec.register_vocabulary(vocabulary)
    return spec


def gpt_gen():
    version, m = opened("Generator", gpt)
    length = o.seq - 6

    def run():
        done = m.generate_batch([["<s>"]], max_length=length, min_length=length, include_prompt_in_result=False)
        assert len(done[0].sequences[0]) == length

    run()
    best, _ = best_of(run, 3, o.seconds)
    return version, dict(tok_s=round(length / best, 1))


def gguf_file(path):
    """A LLaMA with random weights. It is renamed at the end, so that an interrupted run leaves no part of a file."""
    import gguf
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    d, head = o.d_model, o.d_model // o.heads
    w = gguf.GGUFWriter(path + ".part", "llama")
    w.add_context_length(2 * o.seq), w.add_embedding_length(d), w.add_block_count(o.layers)
    w.add_feed_forward_length(o.ffn), w.add_head_count(o.heads), w.add_head_count_kv(o.heads)
    w.add_layer_norm_rms_eps(1e-5), w.add_rope_dimension_count(head), w.add_vocab_size(o.vocab)
    w.add_file_type({"f32": 0, "f16": 1, "q8_0": 7, "q4_k": 15}[o.dtype]), w.add_tokenizer_model("llama")
    w.add_token_list([b"<unk>", b"<s>", b"</s>"] + [b"<0x%02X>" % i for i in range(256)] +
                     [b"t%d" % i for i in range(o.vocab - 259)])
    w.add_token_scores([0.0] * o.vocab), w.add_token_types([2, 3, 3] + [6] * 256 + [1] * (o.vocab - 259))
    w.add_bos_token_id(1), w.add_eos_token_id(2)

    def blocks(kind, rows, width):
        """Random blocks, since gguf cannot convert weights: all bits are valid; d and e give weights of about 0.02."""
        size, r = gguf.GGML_QUANT_SIZES[kind], np.random.default_rng(rows + width)
        b = r.integers(0, 256, (rows * width // size[0], size[1]), dtype=np.uint8)
        if kind == gguf.GGMLQuantizationType.Q4_K:
            b[:, :4] = np.array([8e-5, 6e-4], np.float16).view(np.uint8)
        else:
            b[:, 208:] = np.array([1.5e-5], np.float16).view(np.uint8)
        return b.reshape(rows, -1)

    def put(name, *shape):
        if o.dtype == "q4_k" and len(shape) > 1:  # a part in Q6_K, as in llama.cpp's Q4_K_M
            more = name.endswith(("output", "ffn_down", "attn_v")) and not name.endswith("attn_output")
            kind = gguf.GGMLQuantizationType.Q6_K if more else gguf.GGMLQuantizationType.Q4_K
            w.add_tensor(name + ".weight", blocks(kind, *shape), raw_dtype=kind)
            return
        a = weights(*shape) if len(shape) > 1 else np.ones(shape, np.float32)
        if o.dtype == "q8_0" and len(shape) > 1:
            q8 = gguf.GGMLQuantizationType.Q8_0
            w.add_tensor(name + ".weight", gguf.quants.quantize(a, q8), raw_dtype=q8)
        else:
            w.add_tensor(name + ".weight", a.astype(np.float16) if o.dtype == "f16" and len(shape) > 1 else a)

    put("token_embd", o.vocab, d), put("output_norm", d), put("output", o.vocab, d)
    for i in range(o.layers):
        for name, shape in (("attn_norm", (d,)), ("ffn_norm", (d,)), ("attn_q", (d, d)), ("attn_k", (d, d)),
                            ("attn_v", (d, d)), ("attn_output", (d, d)), ("ffn_gate", (o.ffn, d)),
                            ("ffn_up", (o.ffn, d)), ("ffn_down", (d, o.ffn))):
            put("blk.%d.%s" % (i, name), *shape)
    w.write_header_to_file(), w.write_kv_data_to_file(), w.write_tensors_to_file(), w.close()
    os.replace(path + ".part", path)


def llama():
    """--plain: without repacked weights; 0.3.36 ends with an illegal instruction where a CPU has AMX, with Q8_0."""
    import llama_cpp
    if not os.path.exists(o.gguf):
        in_child(gguf_file, o.gguf)
    usual, written = llama_cpp.llama_cpp.llama_model_default_params, 64

    def as_in_file():
        params = usual()
        params.use_extra_bufts = False
        return params
    if o.plain:
        llama_cpp.llama_cpp.llama_model_default_params = as_in_file
    m = llama_cpp.Llama(o.gguf, n_ctx=2 * o.seq, n_threads=o.threads, n_threads_batch=o.threads, n_batch=o.seq,
                        verbose=False)
    tokens, best = [7 * i % 30000 + 300 for i in range(o.seq)], 1e9

    def prompt():
        m.reset()
        m.eval(tokens)

    prompt_s, _ = best_of(prompt, 2, o.seconds / 2)
    end = time.perf_counter() + o.seconds / 2
    while best == 1e9 or time.perf_counter() < end:
        m.reset()
        m.eval([1, 400])
        start = time.perf_counter()
        for i in range(written):
            m.eval([500 + i])
        best = min(best, (time.perf_counter() - start) / written)
    version = "llama.cpp (llama-cpp-python %s%s)" % (llama_cpp.__version__, ", weights not repacked" * o.plain)
    return version, dict(tok_s=round(1 / best, 1), prompt_tok_s=round(o.seq / prompt_s, 1))


def main():
    global o
    jobs = {"encoder-infer": encoder_infer, "seq2seq-infer": seq2seq_infer, "gpt-gen": gpt_gen, "llama": llama}
    o = options(jobs, ("f32", "f16", "q8_0", "q4_k", "int8"), [("--gguf", "file of the workload llama"),
                                                       ("--plain", "llama.cpp without repacked weights")])
    if o.workload == "llama" and not o.gguf:
        raise SystemExit("other_workloads.py: llama needs --gguf FILE")
    report(o, *jobs[o.workload]())


if __name__ == "__main__":
    main()

"""Models of any family, tokenizers, files of tensors, and what happens inside a model."""
import ctypes
from collections import namedtuple
from ctypes import POINTER, byref, c_char_p, c_int32, c_uint8, c_void_p, cast
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _library, _tensor as tensor
from ._declarations import ENUMS
from ._library import Error, call, constant, enum, filled, kept, lib, type_of
from ._signatures import STRUCTS, signature
from .ops import Function
from ._tensor import Tensor, owned

Texts = Union[str, Sequence[str]]
FAMILIES = {1: "encoder", 2: "tuned", 3: "decoder", 4: "seq2seq", 5: "images"}
CHOSEN = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_int64, ctypes.c_int64, c_void_p)  # tn_generate's .each
FORWARD = {
    "encoder": "tn_bert_run",
    "tuned": "tn_tuned_run",
    "decoder": "tn_lm_run",
    "seq2seq": "tn_seq2seq_run",
    "images": "tn_module_call",
}


def options(struct: str, keywords: Dict[str, Any], held: List[Any]) -> Any:
    """A struct of C with the values of keywords; strings and enums are converted. `held` keeps what it points to."""
    s = filled(struct)
    members = {m.name: m.type for m in STRUCTS[struct]}
    for name, value in keywords.items():
        kind = members.get(name.rstrip("_"))
        if kind is None or name in ("zero_", "end_"):
            raise TypeError("no option %r; there are %s" % (name, ", ".join(sorted(set(members) - {"zero_", "end_"}))))
        if kind == "tn_tensor *":
            held.append(tensor.operand(value))
            value = held[-1].handle
        elif kind == "char *":
            value = text(value) if value is not None else None
        elif kind in ENUMS:
            value = enum(kind, value)
        setattr(s, name.rstrip("_"), value)
    return s


def text(value: Any) -> bytes:
    """A text for C, which ends at a NUL."""
    data = str(value).encode("utf8", "surrogateescape")
    if b"\0" in data:
        raise ValueError("the text contains a NUL character")
    return data


def strings(values: Sequence[str]) -> Any:
    return (c_char_p * len(values))(*[text(v) for v in values])


# ---- tokenizers ----

Encoding = namedtuple("Encoding", "ids starts ends words segments special")
Batch = namedtuple("Batch", "ids key_padding_mask segments")


class Tokenizer:
    """Converts text to token ids and back. `path` is a folder, a tokenizer.json, a .model or a vocab.txt."""

    def __init__(self, path: str, **config: Any) -> None:
        """Options: those of tn_tokenizer_load (data/tokenizer.h), for example lowercase=True."""
        held: List[Any] = []
        self.handle = None
        self.owner: Any = None  # of the handle: a model, or None: this object
        self.handle = call(lib.tn_tokenizer_load_run, text(path), options("tn_tokenizer_config", config, held))

    @classmethod
    def train(cls, texts: Texts, **how: Any) -> "Tokenizer":
        """Learns a vocabulary. Options: those of tn_tokenizer_train_text, for example kind="bpe", vocab_size=1000."""
        data = "\n".join([texts] if isinstance(texts, str) else texts).encode()
        held: List[Any] = []
        how_ = options("tn_tokenizer_train_args", how, held)
        return cls._of(call(lib.tn_tokenizer_train_text_run, data, len(data), how_), None)

    @classmethod
    def _of(cls, handle: int, owner: Any) -> "Tokenizer":
        t = object.__new__(cls)
        t.handle, t.owner = handle, owner
        return t

    def __del__(self, free=lib.tn_tokenizer_free, ending=tensor.sys.is_finalizing) -> None:
        if self.handle and self.owner is None and not ending():
            free(self.handle)

    def __len__(self) -> int:
        return lib.tn_tokenizer_size(self.handle)

    def token(self, id: int) -> str:
        """The token as the files spell it ("##ing"); "" for an id without a token."""
        return lib.tn_tokenizer_token(self.handle, id).decode("utf8", "replace")

    def id(self, token: str) -> Optional[int]:
        """The id of a token as the files spell it; None: no such token."""
        found = lib.tn_tokenizer_id(self.handle, text(token))
        return None if found < 0 else found

    @property
    def special(self) -> Dict[str, int]:
        """Token ids by role: pad, unknown, first, separator, mask, last."""
        s = lib.tn_tokenizer_special(self.handle)
        return {name: getattr(s, name) for name, _ in s._fields_ if getattr(s, name) >= 0}

    def encoding(self, a: str, pair: Optional[str] = None, **how: Any) -> Encoding:
        """Token ids and, for each, the bytes of the text that it comes from, the word's index, the segment, and whether
        the template added it. Options: those of tn_tokenizer_encode, for example max_length=128, bare=True."""
        held: List[Any] = []
        data = a.encode("utf8", "surrogateescape")
        args = options("tn_encode_args", how, held)
        if pair is not None:
            second = pair.encode("utf8", "surrogateescape")
            args.pair, args.pair_bytes = second, len(second)
        made = _library.lib.tn_encoding_new()
        _library.check()
        try:
            call(lib.tn_tokenizer_encode_run, self.handle, made, data, len(data), args)
            e = type_of("tn_encoding").from_address(made)
            types = dict(id=c_int32, start=c_int32, end=c_int32, word=c_int32, segment=c_uint8, special=c_uint8)
            return Encoding(*[cast(getattr(e, n), POINTER(t))[: e.n] if e.n else [] for n, t in types.items()])
        finally:
            lib.tn_encoding_free(made)

    def encode(self, a: str, pair: Optional[str] = None, **how: Any) -> List[int]:
        """The token ids of a text, or of two texts."""
        return self.encoding(a, pair, **how).ids

    def batch(self, texts: Sequence[str], **how: Any) -> Batch:
        """Texts as tensors [n, T], padded to the longest: ids, the padding mask (true is padding), and segments."""
        held: List[Any] = []
        to = type_of("tn_token_batch")()

        def run():
            args = options("tn_encode_args", how, held)
            lib.tn_tokenizer_batch_run(self.handle, byref(to), len(texts), strings(texts), args)
            return to

        kept(run)
        return Batch(owned(to.ids), owned(to.key_padding_mask), owned(to.segments))

    def decode(self, ids: Any, keep_special: bool = False, keep_spaces: bool = False) -> str:
        """The text of token ids."""
        ids = ids.view(-1).tolist() if isinstance(ids, Tensor) else list(ids)
        s = type_of("tn_string")()
        try:
            args = filled("tn_decode_args", keep_special=keep_special, keep_spaces=keep_spaces)
            for i, id in enumerate(ids):
                if not -(2**31) <= id < 2**31:  # C reports ids of 32 bits
                    raise Error("tn_tokenizer_decode: ids[%d] is %d, expected a token id from 0 to %d"
                                % (i, id, len(self) - 1), "TN_EINDEX")
            call(lib.tn_tokenizer_decode_run, self.handle, (c_int32 * len(ids))(*ids), len(ids), args, byref(s))
            return ctypes.string_at(s.at, s.bytes).decode("utf8", "replace") if s.bytes else ""
        finally:
            lib.tn_string_free(byref(s))

    def save(self, folder: str) -> None:
        """Writes the files of Hugging Face's tokenizers into an existing folder."""
        call(lib.tn_tokenizer_save, self.handle, text(folder))


# ---- models ----


class Opened:
    """The tn_model that a Model and its tokenizers share; the last of them closes it."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __del__(self, close=lib.tn_model_close, ending=tensor.sys.is_finalizing) -> None:
        if not ending():
            close(byref(self.model))


class Model:
    """A model with its tokenizer, opened by `open`. Its tensors and its tokenizer may outlive it."""

    def __init__(self, path: str, **config: Any) -> None:
        held: List[Any] = []
        lib.tn_extras_register()
        model = lib.tn_model_open_run(text(path), options("tn_model_config", config, held))
        _library.check()
        self._opened = Opened(model)
        self.module: int = model.module
        self.family: str = FAMILIES[model.family]
        self.type: str = (model.type or b"").decode()
        self.tokenizer = Tokenizer._of(model.tokenizer, self._opened) if model.tokenizer else None
        self.target = Tokenizer._of(model.target, self._opened) if model.target else self.tokenizer
        self._forward = Function(signature(FORWARD[self.family], outputs=False), leading=1)

    def __repr__(self) -> str:
        return _library.text_of(lib.tn_module_print, self.module).rstrip()

    def __call__(self, *inputs: Any, **keywords: Any) -> Tensor:
        """The forward pass: hidden states of an encoder, logits of the others. Keywords are those of the C call, for
        example key_padding_mask. Under no_grad() nothing is recorded."""
        return self._forward(self.module, *inputs, **keywords)

    def save(self, path: str, **how: Any) -> None:
        """Writes the model and its tokenizer to an existing folder, or to a path that ends in .gguf."""
        held: List[Any] = []
        call(lib.tn_model_save_run, byref(self._opened.model), text(path), options("tn_model_save_args", how, held))

    # ---- text ----

    def _tokens(self, prompt: Any) -> Tensor:
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise Error("generate: the model has no tokenizer; pass token ids, or open it with tokenizer=PATH")
            prompt = self.tokenizer.encode(prompt)
        ids = tensor.operand(prompt)
        return ids.unsqueeze(0) if ids.ndim == 1 else ids

    def generate(self, prompt: Any, tokens: int = 100, **how: Any) -> Any:
        """Continues a text (a language model) or translates it (seq2seq). A list of texts gives a list; token ids,
        [T] or [B, T], give the tensor of the new ids [B, best, N], in which -1 follows the end. Greedy by default;
        options are those of tn_generate (models/generate.h): sample=True, temperature=0.8, top_p=0.9, beams=4 …
        each=function is called with each new token id of a language model; False ends the text. end=ID replaces the
        model's end tokens; beams support one end token."""
        if isinstance(prompt, (list, tuple)) and prompt and isinstance(prompt[0], str):
            return [self.generate(p, tokens, **how) for p in prompt]
        ids = self._tokens(prompt)
        made = self._generated(ids, tokens, how)
        if not isinstance(prompt, str):
            return made
        words = made[0, 0].tolist()
        ends = self._ends(how)
        words = words[: next((i for i, w in enumerate(words) if w < 0 or w in ends), len(words))]
        assert self.target is not None  # `prompt` was encoded
        return self.target.decode(words)

    def _ends(self, how: Dict[str, Any]) -> List[int]:
        """The ids that end a text, each once: the option `end`, or those of the model and of its tokenizer."""
        if "end" in how:
            return [how["end"]]
        ends = self._opened.model.ends
        more = cast(ends.at, POINTER(c_int32))[: ends.n] if ends.n else []
        last = self.tokenizer.special.get("last") if self.tokenizer else None
        return [i for i in more if i != last] + ([last] if last is not None else [])

    def _generated(self, ids: Tensor, tokens: int, how: Dict[str, Any]) -> Tensor:
        held: List[Any] = [ids]
        each, how = how.get("each"), {n: v for n, v in how.items() if n != "each"}
        args = options("tn_generate_args", {"most": tokens, **how}, held)
        if self.family == "seq2seq":
            return owned(kept(lambda: first(lib.tn_seq2seq_generate_run(self.module, ids.handle, args))))
        if self.family != "decoder":
            raise Error("generate: a model of the family %r does not generate text" % self.family)
        rows, length = ids.shape
        ends = self._ends(how)
        if len(ends) > 1 and args.beams > 1:
            raise Error("generate: the model has %d end tokens, but beams support one; pass end=ID" % len(ends))
        if ends:
            args.end = ends[-1]
        raised: List[BaseException] = []

        def chosen(row, token, user):
            try:
                return (each is None or each(token) is not False) and token not in ends
            except BaseException as e:  # also Ctrl-C; it must not pass through C
                raised.append(e)
                return False

        if each or len(ends) > 1:
            held.append(CHOSEN(chosen))
            args.each = cast(held[-1], c_void_p)
        decoding = lib.tn_lm_decoding(self.module, rows * args.beams, length + tokens)
        _library.check()
        try:
            setattr(args, "from", decoding)
            args.prompt = ids.handle
            made = owned(kept(lambda: first(lib.tn_generate_run(args))))
            if raised:
                raise raised[0]
            return made
        finally:
            lib.tn_decoding_free(decoding)

    def embed(self, texts: Texts, pooling: str = "mean") -> Tensor:
        """Vectors of norm 1, [n, dim], of an encoder. pooling: "mean", "first" or "max" over tokens."""
        if self.family != "encoder" or self.tokenizer is None:
            raise Error("embed: needs an encoder with a tokenizer, this is %r; family='encoder' opens that of a "
                        "tuned model" % self.family)
        many = [texts] if isinstance(texts, str) else texts
        return owned(kept(lib.tn_bert_embed, self.module, self.tokenizer.handle, len(many), strings(many),
                          enum("tn_bert_pooling", pooling)))

    # ---- weights ----

    def _each(self, what: int) -> Iterator[Tuple[str, Tensor]]:
        e = lib.tn_module_each(self.module, what)
        while lib.tn_next(byref(e)):
            yield e.name.decode(), owned(lib.tn_keep(e.tensor))
        _library.check()

    def named_parameters(self) -> Iterator[Tuple[str, Tensor]]:
        """The parameters, without copies, each under its first name."""
        return self._each(constant("TN_EACH_PARAMETER"))

    def parameters(self) -> List[Tensor]:
        return [t for _, t in self.named_parameters()]

    def state_dict(self) -> Dict[str, Tensor]:
        """Parameters and saved buffers by name, without copies."""
        saved = constant("TN_EACH_PARAMETER") | constant("TN_EACH_SAVED") | constant("TN_EACH_NAME")
        return dict(self._each(saved))

    def load_state_dict(self, state: Dict[str, Any], strict: bool = True) -> None:
        """Copies values by name. Names and shapes are checked first; nothing changes if one does not fit."""
        own = self.state_dict()
        missing, extra = [n for n in own if n not in state], [n for n in state if n not in own]
        if strict and (missing or extra):
            raise Error("load_state_dict: missing are %s; unexpected are %s" % (missing or "none", extra or "none"))
        values = {n: tensor.operand(v) for n, v in state.items() if n in own}
        for name, value in values.items():
            if value.shape != own[name].shape:
                raise Error("load_state_dict: %s has shape %s, expected %s" % (name, value.shape, own[name].shape),
                            "TN_ESHAPE")
        with tensor.no_grad():
            for name, value in values.items():
                call(lib.tn_copy_from, own[name].handle, value.handle)

    def train(self, on: bool = True) -> "Model":
        """Training mode: dropout is active."""
        call(lib.tn_module_train, self.module, on)
        return self

    def eval(self) -> "Model":
        return self.train(False)

    def zero_grad(self) -> None:
        call(lib.tn_module_zero_grad, self.module)


def first(generated: Any) -> Optional[int]:
    return generated.tokens


def open(path: str, **config: Any) -> Model:
    """Opens a model of any type: a folder in Hugging Face's format, a .gguf file or llama2.c's .bin. Options are those
    of tn_model_open (models/model.h): tokenizer=PATH, packed=True, family="encoder" …"""
    return Model(path, **config)


# ---- activations ----


class look:
    """Records the results of modules by path, while models run in the `with` block. In a pattern, "*" matches one part
    of a path and "**" any number of parts. Attention has the parts queries, keys, values, weights and heads.

        with tenon.look("**.self_attn.weights") as seen:
            model(ids)
        for path, weights in seen.items(): ...
    """

    def __init__(self, *paths: str, grad: bool = False) -> None:
        """grad: also record the gradients that `backward` of this object computes."""
        self.handle = lib.tn_look_new()
        _library.check()
        for path in paths:
            call(lib.tn_look_request_run, self.handle, filled("tn_look_request_args", path=text(path), grad=grad))

    def __del__(self, free=lib.tn_look_free, ending=tensor.sys.is_finalizing) -> None:
        if getattr(self, "handle", None) and not ending():
            free(self.handle)

    def __enter__(self) -> "look":
        self._scope = lib.tn_look_begin(self.handle)
        _library.check()
        return self

    def __exit__(self, *raised: Any) -> None:
        _library.scope_end(self._scope)

    def backward(self, loss: Tensor) -> None:
        """Computes the gradients of the recorded tensors; changes no parameter's gradient."""
        call(lib.tn_look_backward, self.handle, loss.handle, None)

    def keys(self) -> List[str]:
        """The recorded paths, in the order in which the modules ran."""
        return [lib.tn_look_name(self.handle, i).decode() for i in range(lib.tn_look_count(self.handle))]

    def __len__(self) -> int:
        return lib.tn_look_count(self.handle)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __getitem__(self, path: str) -> Tensor:
        return owned(kept(lib.tn_look_at, self.handle, text(path)))

    def grad(self, path: str) -> Tensor:
        return owned(kept(lib.tn_look_grad_at, self.handle, text(path)))

    def items(self) -> List[Tuple[str, Tensor]]:
        return [(path, self[path]) for path in self.keys()]


# ---- files of tensors ----


def save(tensors: Dict[str, Any], path: str) -> None:
    """Writes tensors by name to a safetensors file: the old file or the complete new one remains."""
    w = lib.tn_safetensors_writer_new()
    _library.check()
    try:
        for name, t in tensors.items():
            call(lib.tn_safetensors_put, w, text(name), tensor.operand(t).handle)
        call(lib.tn_safetensors_save, w, text(path))
    finally:
        lib.tn_safetensors_writer_free(w)


def load(path: str) -> Dict[str, Tensor]:
    """The tensors of a safetensors file, of its index, or of a state dict that torch.save wrote (.bin, .pt, .pth)."""
    pickled = str(path).endswith((".bin", ".pt", ".pth"))
    f = (lib.tn_torch_open if pickled else lib.tn_safetensors_open)(text(path))
    _library.check()
    try:
        found = {}
        for i in range(lib.tn_safetensors_count(f)):
            name = lib.tn_safetensors_at(f, i).name.decode()
            found[name] = owned(kept(lib.tn_safetensors_get_at, f, i))
        return found
    finally:
        lib.tn_safetensors_close(f)

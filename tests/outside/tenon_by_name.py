"""libtenon.so through ctypes: tn.exp(x) calls tn_exp. For scripts that compare Tenon with another library.

The Python type of an argument selects its C type: an int or a bool is an integer, a float a double, a tuple a tn_shape,
a list a tn_dims, a Struct is passed by value. A tensor is a number, the address of its handle; NULL is None.
"""
import ctypes as c
import os
import re

F32, F64, BF16, I64, I32, U8, BOOL = range(7)
BYTES = [4, 8, 2, 8, 4, 1, 1]


def declarations():
    """The enums and structs in the Python package's table, which the build of the library writes."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "tenon", "_declarations.py")
    with open(path, encoding="utf-8") as f:
        table = {}
        exec(compile(f.read(), path, "exec"), table)
    structs = table["STRUCTS"].replace("\n    ", " ").split("\n")[1:-1]
    return table["ENUMS"], dict(line.split(": ", 1) for line in structs)


ENUMS, STRUCTS = declarations()
KINDS = dict(bool=c.c_bool, int=c.c_int, int32_t=c.c_int32, int64_t=c.c_int64, uint8_t=c.c_uint8, uint64_t=c.c_uint64,
             size_t=c.c_size_t, float=c.c_float, double=c.c_double, **dict.fromkeys(ENUMS, c.c_int))


def struct(name, pointers=None):
    """The struct of the C library. A member called from is from_. pointers: types of members; others are void *."""
    if name in KINDS:
        return KINDS[name]
    members = []
    for text in STRUCTS[name].split("; "):
        kind, star, member, count = re.match(r"(\w+) (\**)(\w+)(?:\[(\d+)\])?", text).groups()
        if kind == "required":
            continue
        of = (pointers or {}).get(member, c.c_void_p) if star else struct(kind)
        members.append(("from_" if member == "from" else member, of * int(count) if count else of))
    KINDS[name] = type(name, (c.Structure,), dict(_fields_=members))
    return KINDS[name]


Shape, Dims, Pair, Uniques, Scope, Sort, Topk, Reduce, Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d, Pool1d, \
    Pool2d, CrossEntropy, Loss, Attention, Backward = (struct("tn_" + name) for name in (
        "shape", "dims", "pair", "uniques", "scope", "sort_args", "topk_args", "reduce_args", "conv1d_args",
        "conv2d_args", "conv_transpose1d_args", "conv_transpose2d_args", "pool1d_args", "pool2d_args",
        "cross_entropy_args", "loss_args", "attention_args", "backward_args"))


def filled(kind, numbers):
    to = kind()
    to.n = len(numbers)
    for i, number in enumerate(numbers):
        to.d[i] = number
    return to


def passed(value):
    if value is None:
        return c.c_void_p(None)
    if isinstance(value, (bool, int)):
        return c.c_int64(value if value < 2**63 else value - 2**64)
    if isinstance(value, float):
        return c.c_double(value)
    if isinstance(value, tuple):
        return filled(Shape, value)
    if isinstance(value, list):
        return filled(Dims, value)
    return value


class Failed(Exception):
    """Raised when an error of the library is set; the error has been cleared."""


class Tenon:
    # Functions that do not return a tensor.
    RESULTS = dict(error=c.c_int, error_message=c.c_char_p, clear_error=None, scope_begin=Scope, no_grad_begin=Scope,
                   scope_end=None, shape_of=Shape, strides_of=Shape, dtype_of=c.c_int, numel=c.c_int64, item=c.c_double,
                   copy_out=c.c_int, backward_run=c.c_int, retain_grad=c.c_int, max=Pair, min=Pair,
                   sort_run=Pair, topk_run=Pair,
                   unique=Uniques, needs_grad=c.c_bool, shares_memory=c.c_bool, set_threads=None,
                   version=c.c_char_p)

    def __init__(self, path):
        self.library = c.CDLL(path)

    def __getattr__(self, name):
        function = self.library["tn_" + name]
        function.restype = self.RESULTS.get(name, c.c_void_p)

        def call(*args):
            result = function(*[passed(a) for a in args])
            if self.library.tn_error():
                self.library.tn_error_message.restype = c.c_char_p
                text = self.library.tn_error_message().decode("utf-8", "replace")
                self.library.tn_clear_error()
                raise Failed(text)
            return result

        setattr(self, name, call)
        return call

    def list_of(self, tensors):
        return (c.c_void_p * len(tensors))(*tensors)

    def shape(self, t):
        s = self.shape_of(t)
        return tuple(s.d[: s.n])

    def bytes_of(self, t):
        dtype = self.dtype_of(t)
        room = c.create_string_buffer(max(1, BYTES[dtype] * self.numel(t)))
        self.copy_out(t, dtype, c.addressof(room), BYTES[dtype] * self.numel(t))
        return dtype, room.raw[: BYTES[dtype] * self.numel(t)]

"""libtenon.so through ctypes: tn.exp(x) calls tn_exp. For scripts that compare Tenon with another library.

The Python type of an argument selects its C type: an int or a bool is an integer, a float a double, a tuple a tn_shape,
a list a tn_dims, a Struct is passed by value. A tensor is a number, the address of its handle; NULL is None.
"""
import ctypes as c

F32, F64, BF16, I64, I32, U8, BOOL = range(7)
BYTES = [4, 8, 2, 8, 4, 1, 1]


class Shape(c.Structure):
    _fields_ = [("n", c.c_int), ("d", c.c_int64 * 8)]


class Dims(c.Structure):
    _fields_ = [("n", c.c_int), ("d", c.c_int * 8)]


class Pair(c.Structure):
    _fields_ = [("values", c.c_void_p), ("indices", c.c_void_p)]


class Uniques(c.Structure):
    _fields_ = [("values", c.c_void_p), ("inverse", c.c_void_p), ("counts", c.c_void_p)]


class Scope(c.Structure):
    _fields_ = [("mark", c.c_size_t), ("path", c.c_int), ("no_grad", c.c_bool), ("autocast", c.c_bool),
                ("replay", c.c_uint8), ("blank", c.c_bool), ("look", c.c_uint8)]


def struct(name, fields):
    kinds = dict(p=c.c_void_p, n=c.c_int64, i=c.c_int, b=c.c_bool, f=c.c_double, D=Dims, S=Shape)
    layout = [("zero_", c.c_int)] + [(n, kinds[k]) for n, k in (f.split(":") for f in fields.split())]
    return type(name, (c.Structure,), dict(_fields_=layout + [("end_", c.c_int)]))


Sort = struct("Sort", "x:p dim:i descending:b")
Topk = struct("Topk", "x:p k:n dim:i smallest:b")
Reduce = struct("Reduce", "x:p dims:D keepdim:b biased:b p:f")
Conv1d = struct("Conv1d", "x:p weight:p bias:p stride:n padding:n dilation:n groups:n")
Conv2d = struct("Conv2d", "x:p weight:p bias:p stride:n stride_w:n padding:n padding_w:n dilation:n "
                          "dilation_w:n groups:n")
ConvTranspose1d = struct("ConvTranspose1d", "x:p weight:p bias:p stride:n padding:n output_padding:n dilation:n "
                                            "groups:n")
ConvTranspose2d = struct("ConvTranspose2d", "x:p weight:p bias:p stride:n stride_w:n padding:n padding_w:n "
                                            "output_padding:n output_padding_w:n dilation:n dilation_w:n groups:n")
Pool1d = struct("Pool1d", "x:p size:n stride:n padding:n dilation:n ignore_padding:b")
Pool2d = struct("Pool2d", "x:p size:n size_w:n stride:n stride_w:n padding:n padding_w:n dilation:n dilation_w:n "
                          "ignore_padding:b")
CrossEntropy = struct("CrossEntropy", "logits:p target:p weight:p ignore_index:n label_smoothing:f reduction:i "
                                      "class_dim:i counted:p")
Loss = struct("Loss", "input:p target:p reduction:i weight:p pos_weight:p delta:f log_target:b batchmean:b")
Attention = struct("Attention", "q:p k:p v:p int8:b attn_mask:p key_padding_mask:p causal:b past:n window:n offsets:p "
                                "key_offsets:p longest:n key_longest:n dropout:f scale:f cap:f order:D weights:p")
Backward = struct("Backward", "root:p seed:p count:i roots:p seeds:p retain:b")


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

"""Tensor: a handle of a tensor of the library, zero-copy to and from NumPy, buffers and DLPack; autograd; creation.

A Tensor owns one reference of the library (tn_keep), which it drops when Python frees it. Each call into the library is
a scope of its own, so that nothing else remains (ADR 0063)."""
import contextlib
import ctypes
import enum
import gc
import math
import sys
from array import array
from ctypes import POINTER, addressof, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from . import _library
from ._library import call, filled, kept, lib, sizes

if TYPE_CHECKING:
    from .ops import Methods
else:
    Methods = object  # ops.py adds the ops


class Dtype(enum.IntEnum):
    """The dtypes of tensors. A function also accepts their names, and NumPy's and PyTorch's dtypes."""

    f32 = 0
    f64 = 1
    bf16 = 2
    i64 = 3
    i32 = 4
    u8 = 5
    bool = 6

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


# dtype: the letter of struct and array, NumPy's kind and bytes, DLPack's code and bits
LAYOUTS: Dict[Dtype, Tuple[Any, str, Tuple[int, int]]] = {
    Dtype.f32: ("f", "f4", (2, 32)),
    Dtype.f64: ("d", "f8", (2, 64)),
    Dtype.bf16: ("", "", (4, 16)),
    Dtype.i64: ("q", "i8", (0, 64)),
    Dtype.i32: ("i", "i4", (0, 32)),
    Dtype.u8: ("B", "u1", (1, 8)),
    Dtype.bool: ("?", "b1", (6, 8)),
}
INTEGERS = (Dtype.i64, Dtype.i32, Dtype.u8)
NAMES = {
    "float32": "f32",
    "float64": "f64",
    "float": "f32",
    "double": "f64",
    "bfloat16": "bf16",
    "int64": "i64",
    "int": "i64",
    "int32": "i32",
    "uint8": "u8",
    "bool_": "bool",
}
ORDER = "<" if sys.byteorder == "little" else ">"
OF_NUMPY = {(ORDER if kind[-1:] != "1" else "|") + kind: d for d, (_, kind, _) in LAYOUTS.items() if kind}
OF_DLPACK = {code: d for d, (_, _, code) in LAYOUTS.items()}
OF_FORMAT = {letter: d for d, (letter, _, _) in LAYOUTS.items() if letter}
OF_FORMAT["l"] = Dtype.i64 if ctypes.sizeof(ctypes.c_long) == 8 else Dtype.i32


def dtype_of(value: Any) -> Dtype:
    """A Dtype, its name ("f32"), or a dtype of NumPy, PyTorch or Python (float: f32, int: i64)."""
    if isinstance(value, Dtype):
        return value
    name = getattr(value, "__name__", str(value)).split(".")[-1]
    name = NAMES.get(name, name)
    if name not in Dtype.__members__:
        raise TypeError("%r is not a dtype; expected one of %s" % (value, ", ".join(Dtype.__members__)))
    return Dtype[name]


def bytes_of(dtype: Dtype) -> int:
    return LAYOUTS[dtype][2][1] // 8


def owned(handle: Optional[int]) -> Any:
    """A Tensor for a handle that the caller owns; None for NULL."""
    if not handle:
        return None
    t = object.__new__(Tensor)
    t.handle = handle
    return t


class Tensor(Methods):
    """A tensor of the library. Create one with tensor(), zeros() or from_numpy()."""

    __slots__ = ("handle", "__weakref__")
    handle: int

    def __init__(self) -> None:
        raise TypeError("create tensors with tenon.tensor(), tenon.zeros() or tenon.from_numpy()")

    def __del__(self, drop=_library.drop, ending=sys.is_finalizing) -> None:
        if hasattr(self, "handle") and not ending():  # at the end of the process nothing may call back
            drop(self.handle)

    # ---- properties ----

    @property
    def shape(self) -> Tuple[int, ...]:
        s = lib.tn_shape_of(self.handle)
        return tuple(s.d[: s.n])

    @property
    def strides(self) -> Tuple[int, ...]:
        """In elements."""
        s = lib.tn_strides_of(self.handle)
        return tuple(s.d[: s.n])

    @property
    def ndim(self) -> int:
        return lib.tn_ndim(self.handle)

    @property
    def dtype(self) -> Dtype:
        return Dtype(lib.tn_dtype_of(self.handle))

    @property
    def numel(self) -> int:
        return lib.tn_numel(self.handle)

    @property
    def T(self) -> "Tensor":
        """The dims in reverse order, a view."""
        return self.permute(*reversed(range(self.ndim)))

    def is_contiguous(self) -> bool:
        return lib.tn_is_contiguous(self.handle)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return lib.tn_data(self.handle) or 0

    def item(self) -> Union[float, int, bool]:
        """The value of the only element."""
        if self.dtype in (Dtype.i64, Dtype.i32, Dtype.u8, Dtype.bool):
            if self.numel == 1:
                value = call(lib.tn_get_i64, self.handle, 0)
                return bool(value) if self.dtype is Dtype.bool else value
        return call(lib.tn_item, self.handle)

    def tolist(self) -> Any:
        """The elements as nested lists."""
        dtype, shape = self.dtype, self.shape
        if dtype is Dtype.bf16:
            dtype = Dtype.f32
        size = bytes_of(dtype) * self.numel
        data = (c_uint8 * size)()
        call(lib.tn_copy_out, self.handle, dtype, data, size)
        flat: Any = memoryview(data).cast("B").cast(LAYOUTS[dtype][0]).tolist() if size else []
        for k in range(len(shape) - 1, 0, -1):
            flat = [flat[i * shape[k] : (i + 1) * shape[k]] for i in range(math.prod(shape[:k]))]
        return flat if shape else flat[0]

    def __repr__(self) -> str:
        return _library.text_of(lib.tn_print, self.handle).rstrip()

    # ---- autograd ----

    @property
    def requires_grad(self) -> bool:
        """True for a leaf, and for a tensor that was computed from one on the tape."""
        return lib.tn_needs_grad(self.handle)

    def requires_grad_(self, on: bool = True) -> "Tensor":
        """Makes the tensor a leaf, which collects gradients; or no longer one."""
        call(lib.tn_requires_grad if on else lib.tn_freeze_tensor, self.handle)
        return self

    @property
    def grad(self) -> Optional["Tensor"]:
        """The collected gradient. Assign None to drop it."""
        return owned(kept(lib.tn_grad, self.handle))

    @grad.setter
    def grad(self, value: None) -> None:
        if value is not None:
            raise ValueError("a gradient can only be set to None")
        call(lib.tn_zero_grad, self.handle)

    def backward(self, seed: Optional["Tensor"] = None, retain: bool = False) -> None:
        """Adds to the gradients of the leaves, and consumes the tape unless `retain`."""
        seed_handle = seed.handle if seed is not None else None
        call(lib.tn_backward_run, filled("tn_backward_args", root=self.handle, seed=seed_handle, retain=retain))

    def detach(self) -> "Tensor":
        """A tensor with the same memory, off the tape."""
        return owned(kept(lib.tn_detach, self.handle))

    # ---- memory shared with Python ----

    @property
    def __array_interface__(self) -> dict:
        """NumPy's arrays share the memory. One of a tensor on the tape, or with elements in common, is read-only."""
        dtype = self.dtype
        if dtype is Dtype.bf16:
            raise TypeError("NumPy has no bf16; convert the tensor with .to('f32') or use DLPack")
        item, strides, shape = bytes_of(dtype), self.strides, self.shape
        shared = any(not s and n > 1 for s, n in zip(strides, shape))
        kind = LAYOUTS[dtype][1]
        return {
            "version": 3,
            "shape": shape,
            "typestr": (ORDER if item > 1 else "|") + kind,
            "data": (self.data_ptr(), self.requires_grad or shared),
            "strides": tuple(s * item for s in strides),
        }

    def numpy(self) -> Any:
        """A NumPy array of the same memory."""
        import numpy

        return numpy.asarray(self)

    def buffer(self) -> memoryview:
        """A memoryview of the same memory. The tensor must be contiguous; read-only if the tensor is on the tape."""
        dtype, shape = self.dtype, self.shape
        if not self.is_contiguous() or not LAYOUTS[dtype][0]:
            raise BufferError("only contiguous tensors of NumPy's dtypes have a buffer; call .contiguous() or .to()")
        view = self.raw()
        view = view.cast(LAYOUTS[dtype][0], shape) if self.numel else view.cast(LAYOUTS[dtype][0])
        return view.toreadonly() if self.requires_grad else view

    def __buffer__(self, flags: int) -> memoryview:  # the buffer protocol from Python 3.12
        return self.buffer()

    def __dlpack_device__(self) -> Tuple[int, int]:
        return CPU, 0

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None):
        """A capsule "dltensor" with the same memory; its consumer keeps the tensor alive."""
        if dl_device not in (None, (CPU, 0)):
            raise BufferError("device %r: tensors are in the memory of the CPU" % (dl_device,))
        if self.requires_grad:
            raise BufferError("the tape does not notice writes through DLPack; export .detach()")
        t = self.clone() if copy else self
        shape, strides = t.shape, t.strides
        dims, steps = (c_int64 * max(1, len(shape)))(*shape), (c_int64 * max(1, len(shape)))(*strides)
        managed = DLManaged()
        view = managed.tensor
        view.data, view.device[:], view.ndim = t.data_ptr() or None, (CPU, 0), len(shape)
        (view.code, view.bits), view.lanes = LAYOUTS[t.dtype][2], 1
        view.shape, view.strides = ctypes.cast(dims, POINTER(c_int64)), ctypes.cast(steps, POINTER(c_int64))
        managed.context = _library.lend((t, dims, steps, managed))
        managed.deleter = ctypes.cast(dlpack_delete, c_void_p)
        sweep_capsules()
        capsules.append(capsule_new(addressof(managed), DLTENSOR, None))
        return capsules[-1]

    # ---- indexing ----

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a 0-d tensor has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator["Tensor"]:
        return (self.select(0, i) for i in range(len(self)))

    def __getitem__(self, key: Any) -> "Tensor":
        """Numbers, slices, None and ... make views; a bool tensor selects elements, a list selects slices of a dim."""
        if is_array(key) and (key := operand(key)).dtype is Dtype.bool:
            return self.masked_select(key)
        keys = list(key) if isinstance(key, tuple) else [key]
        places = [i for i, k in enumerate(keys) if k is Ellipsis]
        used = sum(k is not None and k is not Ellipsis for k in keys)
        if len(places) > 1 or used > self.ndim:
            raise IndexError("%d indices for a tensor of %d dims" % (used, self.ndim))
        at = places[0] if places else len(keys)
        keys[at : at + 1] = [slice(None)] * (self.ndim - used)
        x, dim = self, 0
        for k in keys:
            if k is None:
                x = x.unsqueeze(dim)
            elif isinstance(k, slice):
                if k != slice(None):
                    start, stop, step = k.indices(x.shape[dim])
                    if step < 1:
                        raise ValueError("the step %d of a slice is not positive; call flip()" % step)
                    x = x.slice(dim, start, max(start, stop), step)
            elif is_array(k):
                x = x.index_select(dim, operand(k))
            else:
                x = x.select(dim, k)
                continue
            dim += 1
        return x

    def __setitem__(self, key: Any, value: Any) -> None:
        """Writes into the memory of the view; recorded on the tape."""
        if is_array(key):
            mask = operand(key)
            if mask.dtype is not Dtype.bool or not isinstance(value, (int, float)):
                raise TypeError("only `x[mask] = number` is supported for a tensor as index; see index_copy and where")
            self.masked_fill_(mask, value)
        elif isinstance(key, tuple) and any(is_array(k) for k in key):  # self[key] is a copy
            raise TypeError("an assignment through a list or an array among several indices is not supported; use "
                            "index_copy or where")
        else:
            self[key].copy_(value)

    # ---- operators: a number never widens the dtype ----

    def __add__(self, o):
        return self.add_scalar(o) if is_scalar(o, self) else self.add(o)

    __radd__ = __add__

    def __sub__(self, o):
        return self.add_scalar(-o) if is_scalar(o, self) else self.sub(o)

    def __rsub__(self, o):
        return self.rsub_scalar(o) if is_scalar(o, self) else operand(o).sub(self)

    def __mul__(self, o):
        return self.mul_scalar(o) if is_scalar(o, self) else self.mul(o)

    __rmul__ = __mul__

    def __truediv__(self, o):
        return self.div_scalar(o) if isinstance(o, (int, float)) else self.div(o)

    def __rtruediv__(self, o):
        return operand(o).div(self)

    def __pow__(self, o):
        return self.pow_scalar(o) if is_scalar(o, self) else self.pow(o)

    def __rpow__(self, o):
        return operand(o).pow(self)

    def __mod__(self, o):
        return self.remainder(o)

    def __matmul__(self, o):
        return self.matmul(o)

    def __rmatmul__(self, o):
        return operand(o).matmul(self)

    def __iadd__(self, o):
        return self.add_scalar_(o) if is_scalar(o, self) else self.add_(o)

    def __isub__(self, o):
        return self.add_scalar_(-o) if is_scalar(o, self) else self.sub_(o)

    def __imul__(self, o):
        return self.mul_scalar_(o) if is_scalar(o, self) else self.mul_(o)

    def __itruediv__(self, o):
        return self.div_scalar_(o) if isinstance(o, (int, float)) else self.div_(o)

    def __neg__(self):
        return self.neg()

    def __abs__(self):
        return self.abs()

    def __lt__(self, o):
        return self.lt(o)

    def __le__(self, o):
        return self.le(o)

    def __gt__(self, o):
        return self.gt(o)

    def __ge__(self, o):
        return self.ge(o)

    def __eq__(self, o):
        return NotImplemented if o is None or isinstance(o, str) else self.eq(o)

    def __ne__(self, o):
        return NotImplemented if o is None or isinstance(o, str) else self.ne(o)

    __hash__ = object.__hash__

    def __and__(self, o):
        return self.logical_and(o)

    def __or__(self, o):
        return self.logical_or(o)

    def __xor__(self, o):
        return self.logical_xor(o)

    def __invert__(self):
        return self.logical_not()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype not in INTEGERS and self.dtype is not Dtype.bool:
            raise TypeError("only integer tensors can be an index, got one of %s" % self.dtype)
        return int(self)

    __array_priority__ = 1000  # array * tensor is a tensor

    def __copy__(self) -> "Tensor":
        return self.clone()

    def __deepcopy__(self, memo: Any) -> "Tensor":
        return self.clone()

    def __reduce__(self):
        if self.requires_grad:
            raise TypeError("a tensor on the tape cannot be pickled; detach() it")
        return restored, (self.dtype.name, self.shape, bytes(self.contiguous().raw()))

    def raw(self) -> memoryview:
        """The bytes of a contiguous tensor of any dtype. The view owns `data`, which owns the tensor."""
        data = (c_uint8 * (self.numel * bytes_of(self.dtype))).from_address(self.data_ptr() or addressof(EMPTY))
        setattr(data, "of", self)
        return memoryview(data).cast("B")


def restored(dtype: str, shape: Tuple[int, ...], data: bytes) -> Tensor:
    return owned(kept(lib.tn_from_data, Dtype[dtype], sizes("tn_shape", shape), data))


EMPTY = c_uint8()

# ---- from Python's objects ----


def is_array(value: Any) -> bool:
    """True for what indexes by elements: a tensor, an array or a list; false for numbers, also those of NumPy."""
    if isinstance(value, (Tensor, list)):
        return isinstance(value, list) or value.ndim > 0
    return getattr(value, "ndim", 1) > 0 and (hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__"))


def is_scalar(value: Any, x: Tensor) -> bool:
    """True for a number that C's ops of x and a scalar accept as a double. False for an int above 2**53 if x has an
    integer dtype: a double would lose digits, so that the int becomes an i64 tensor. An int outside i64 is a scalar."""
    if not isinstance(value, int):
        return isinstance(value, float)
    return abs(value) <= 2**53 or x.dtype not in INTEGERS or not -(2**63) <= value < 2**63


def operand(value: Any) -> Tensor:
    """A tensor as it is; a number as a 0-d tensor, which does not widen another floating one; else tensor(value)."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return restored("i64", (), value.to_bytes(8, sys.byteorder, signed=True))
    if isinstance(value, (bool, float)):
        return owned(kept(lib.tn_scalar_of, Dtype.bool if isinstance(value, bool) else Dtype.f64, value))
    return tensor(value)


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A copy of a number, of nested lists, of an array or of another tensor. Floating numbers become f32."""
    if isinstance(data, Tensor):
        t = data.detach().clone()
    elif hasattr(data, "__dlpack__") and not hasattr(data, "__array_interface__"):
        t = from_dlpack(data).clone()
    elif isinstance(data, (list, tuple, bool, int, float)) and not hasattr(data, "__array_interface__"):
        t = of_list(data)
    else:
        view = memoryview(data)
        letter = view.format.lstrip("@=" + ORDER)
        if letter not in OF_FORMAT:
            raise TypeError("the format %r of the array is not supported; convert it to f32, f64, i64, i32, u8 or bool"
                            % view.format)
        t = restored(OF_FORMAT[letter].name, view.shape or (), view.tobytes())
    if dtype is not None and dtype_of(dtype) != t.dtype:
        t = t.to(dtype)
    return t.requires_grad_() if requires_grad else t


def of_list(data: Any) -> Tensor:
    level: List[Any] = [data]
    shape: List[int] = []
    while level and isinstance(level[0], (list, tuple)):
        if any(not isinstance(x, (list, tuple)) or len(x) != len(level[0]) for x in level):
            raise ValueError("the lists at depth %d do not all have %d elements" % (len(shape), len(level[0])))
        shape.append(len(level[0]))
        level = [y for x in level for y in x]
    if level and all(isinstance(x, bool) for x in level):
        return restored("bool", tuple(shape), bytes(level))
    if level and all(isinstance(x, int) for x in level):
        return restored("i64", tuple(shape), array("q", level).tobytes())
    return restored("f32", tuple(shape), array("f", level).tobytes())


def shared(address: int, shape: Any, strides: Sequence[int], dtype: Dtype, number: int, release: Any) -> Tensor:
    """A tensor over memory that `release` returns. strides: in bytes; a permutation of contiguous ones."""
    item = bytes_of(dtype)
    order = sorted(range(len(shape)), key=lambda i: (shape[i] > 1, -strides[i]))
    expected = item
    for i in reversed(order):
        if shape[i] > 1 and strides[i] != expected and 0 not in shape:
            raise ValueError("shape %s with strides of %s bytes: elements are not adjacent; copy with tenon.tensor()"
                             % (tuple(shape), tuple(strides)))
        expected *= shape[i]
    released = ctypes.cast(release, c_void_p)
    inner = sizes("tn_shape", [shape[i] for i in order])
    t = owned(kept(lib.tn_borrow, dtype, inner, address, released, number))
    return t if order == sorted(order) else t.permute([order.index(i) for i in range(len(order))])


def from_numpy(data: Any) -> Tensor:
    """A tensor with the memory of an array, or of any object with a writable buffer, which it keeps alive."""
    if not hasattr(data, "__array_interface__"):
        return from_buffer(data)
    about = data.__array_interface__
    dtype = OF_NUMPY.get(about["typestr"])
    if dtype is None:
        raise TypeError("NumPy's dtype %s is not supported; convert it to float32, float64, int64, int32, uint8 or bool"
                        % about["typestr"])
    if about["data"][1]:
        raise ValueError("the array is read-only; copy it with tenon.tensor()")
    shape, strides = about["shape"], about.get("strides")
    if strides is None:
        strides = [bytes_of(dtype)] * len(shape)
        for i in reversed(range(len(shape) - 1)):
            strides[i] = strides[i + 1] * shape[i + 1]
    return lent(about["data"][0], shape, strides, dtype, data)


def from_buffer(data: Any) -> Tensor:
    view = memoryview(data)
    letter = view.format.lstrip("@=" + ORDER)
    if view.readonly or letter not in OF_FORMAT:
        raise ValueError("the buffer is read-only or has the format %r; copy it with tenon.tensor()" % view.format)
    address = addressof(c_uint8.from_buffer(view.cast("B"))) if view.nbytes else 0
    return lent(address, view.shape or (), view.strides or (), OF_FORMAT[letter], view)


def lent(address: int, shape: Sequence[int], strides: Sequence[int], dtype: Dtype, owner: Any) -> Tensor:
    number = _library.lend(owner)
    try:
        return shared(address, shape, strides, dtype, number, _library.returned)
    except BaseException:
        _library.lent.pop(number, None)  # tn_borrow does not call release if it fails
        raise


# ---- DLPack ----

CPU = 1


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p),
        ("device", c_int32 * 2),
        ("ndim", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("offset", c_uint64),
    ]


class DLManaged(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", c_void_p), ("deleter", c_void_p)]


DLTENSOR, USED = ctypes.create_string_buffer(b"dltensor"), ctypes.create_string_buffer(b"used_dltensor")
capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = ctypes.py_object, [c_void_p, c_void_p, c_void_p]
capsule_valid = ctypes.pythonapi.PyCapsule_IsValid
capsule_valid.argtypes = [c_void_p, c_char_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = c_void_p, [c_void_p, c_char_p]
capsule_rename = ctypes.pythonapi.PyCapsule_SetName
capsule_rename.argtypes = [ctypes.py_object, c_void_p]


@_library.callback(ctypes.CFUNCTYPE(None, c_void_p))
def dlpack_delete(managed, lent=_library.lent, DLManaged=DLManaged):
    lent.pop(DLManaged.from_address(managed).context, None)


# Capsules that may still be in use. They have no destructor: it would also run while an exception is set, which a
# function in Python then loses (NumPy before 1.25 rejects bool so). Instead, the next export and the garbage collector
# look for capsules of which only this list is left, and free the tensors that no consumer took.
capsules: List[Any] = []


def sweep_capsules(phase="stop", info=None, capsules=capsules, count=sys.getrefcount, lent=_library.lent,
                   valid=capsule_valid, pointer=capsule_pointer, DLManaged=DLManaged):
    for i in range(len(capsules) - 1, -1, -1) if phase == "stop" else ():
        if count(capsules[i]) <= 2:  # the list's and the argument's
            if valid(id(capsules[i]), b"dltensor"):
                lent.pop(DLManaged.from_address(pointer(id(capsules[i]), b"dltensor")).context, None)
            del capsules[i]


gc.callbacks.append(sweep_capsules)


@_library.callback(ctypes.CFUNCTYPE(None, c_void_p, c_void_p))
def dlpack_returned(data, managed, DLManaged=DLManaged, kind=ctypes.CFUNCTYPE(None, c_void_p)):
    deleter = DLManaged.from_address(managed).deleter
    if deleter:
        kind(deleter)(managed)


def from_dlpack(data: Any) -> Tensor:
    """A tensor with the memory of another library's, which it keeps alive."""
    if hasattr(data, "__dlpack_device__") and data.__dlpack_device__()[0] != CPU:
        raise BufferError("the array is not in the memory of the CPU")
    capsule = data.__dlpack__() if hasattr(data, "__dlpack__") else data
    if not capsule_valid(id(capsule), b"dltensor"):
        raise BufferError("expected a capsule \"dltensor\" that has not been used")
    address = capsule_pointer(id(capsule), b"dltensor")
    view = DLManaged.from_address(address).tensor
    shape = view.shape[: view.ndim]
    dtype = OF_DLPACK.get((view.code, view.bits)) if view.lanes == 1 else None
    if dtype is None:
        raise TypeError("DLPack's dtype (code %d, %d bits) is not supported" % (view.code, view.bits))
    strides = [1] * view.ndim
    if view.strides:
        strides = view.strides[: view.ndim]
    else:
        for i in reversed(range(view.ndim - 1)):
            strides[i] = strides[i + 1] * shape[i + 1]
    at = (view.data or 0) + view.offset
    t = shared(at, shape, [s * bytes_of(dtype) for s in strides], dtype, address, dlpack_returned)
    capsule_rename(capsule, addressof(USED))
    return t


# ---- creation ----


def made(function: str, *arguments: Any) -> Tensor:
    return owned(kept(getattr(lib, function), *arguments))


def empty(*shape: Any, dtype: Any = "f32") -> Tensor:
    return made("tn_empty_of", dtype_of(dtype), sizes("tn_shape", shape))


def zeros(*shape: Any, dtype: Any = "f32") -> Tensor:
    return made("tn_zeros_of", dtype_of(dtype), sizes("tn_shape", shape))


def ones(*shape: Any, dtype: Any = "f32") -> Tensor:
    return made("tn_ones_of", dtype_of(dtype), sizes("tn_shape", shape))


def full(shape: Any, value: float, dtype: Any = "f32") -> Tensor:
    return made("tn_full_of", dtype_of(dtype), sizes("tn_shape", shape), value)


def zeros_like(t: Tensor) -> Tensor:
    return made("tn_zeros_like", t.handle)


def ones_like(t: Tensor) -> Tensor:
    return made("tn_ones_like", t.handle)


def arange(start: float, end: Optional[float] = None, step: float = 1, dtype: Any = "i64") -> Tensor:
    start, end = (0, start) if end is None else (start, end)
    return made("tn_arange_of", dtype_of(dtype), start, end, step)


def linspace(start: float, end: float, steps: int, dtype: Any = "f32") -> Tensor:
    return made("tn_linspace_of", dtype_of(dtype), start, end, steps)


def eye(rows: int, columns: Optional[int] = None, dtype: Any = "f32") -> Tensor:
    return made("tn_eye_of", dtype_of(dtype), rows, rows if columns is None else columns)


def uniform(*shape: Any, low: float = 0.0, high: float = 1.0, dtype: Any = "f32") -> Tensor:
    return made("tn_uniform_of", dtype_of(dtype), sizes("tn_shape", shape), low, high)


def normal(*shape: Any, mean: float = 0.0, std: float = 1.0, dtype: Any = "f32") -> Tensor:
    return made("tn_normal_of", dtype_of(dtype), sizes("tn_shape", shape), mean, std)


def randint(low: int, high: int, shape: Any) -> Tensor:
    return made("tn_randint", sizes("tn_shape", shape), low, high)


def permutation(n: int) -> Tensor:
    return made("tn_permutation", n)


# ---- autograd and modes ----


def grad(
    root: Tensor,
    wrt: Sequence[Tensor],
    seed: Optional[Tensor] = None,
    retain: bool = False,
    create_graph: bool = False,
) -> List[Optional[Tensor]]:
    """The gradients of root with respect to tensors; None where root does not depend on one. No leaf changes."""
    of, to = (c_void_p * len(wrt))(*[t.handle for t in wrt]), (c_void_p * len(wrt))()
    arguments = filled("tn_grad_of_args", root=root.handle, count=len(wrt), wrt=addressof(of), grad=addressof(to),
                       seed=seed.handle if seed is not None else None, retain=retain, create_graph=create_graph)

    def run():
        lib.tn_grad_of_run(arguments)
        for handle in to:
            _library.keep(handle)

    kept(run)
    return [owned(handle) for handle in to]


@contextlib.contextmanager
def mode(begin: Any, *arguments: Any) -> Iterator[None]:
    s = begin(*arguments)
    try:
        yield
    finally:
        _library.scope_end(s)


def no_grad() -> Any:
    """`with tenon.no_grad():` nothing is recorded, and leaves may be changed in place."""
    return mode(lib.tn_no_grad_begin)


def autocast(on: bool = True) -> Any:
    """`with tenon.autocast():` products are computed in bf16."""
    return mode(lib.tn_autocast_begin, on)


def seed(value: int) -> None:
    """Restarts the random numbers of this thread."""
    lib.tn_seed(value)


def set_threads(n: int) -> None:
    """The number of threads for calls of this thread; 0: the default. Results have the same bits for any number."""
    lib.tn_set_threads(n)


def memory() -> Dict[str, int]:
    """Memory of the library in the process: live, peak, cached (of this thread), limit, packed
    (copies of weights) in bytes; mallocs; tensors."""
    m = lib.tn_memory_now()
    return {name: getattr(m, name) for name, _ in m._fields_}


def build_info() -> str:
    """One line on the compiler, the instructions and the threads in use."""
    return lib.tn_build_info().decode()

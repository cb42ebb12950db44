"""Finds and loads libtenon, declares its functions to ctypes, and turns its errors into exceptions."""
import ctypes
import os
import re
import sys
import tempfile
import threading
from ctypes import byref, c_bool, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t
from ctypes import c_uint8, c_uint16, c_uint64
from ctypes import c_void_p
from typing import Any, Dict, List

from . import _declarations
from ._signatures import FUNCTIONS, STRUCTS

BASE = {
    "void": None,
    "bool": c_bool,
    "char": ctypes.c_char,
    "int": c_int,
    "int32_t": c_int32,
    "int64_t": c_int64,
    "uint8_t": c_uint8,
    "uint16_t": c_uint16,
    "uint64_t": c_uint64,
    "size_t": c_size_t,
    "float": c_float,
    "double": c_double,
}
MINOR = ".".join(_declarations.VERSION.split(".")[:2])  # the ABI is that of a minor version
SONAME = {"win32": "tenon-%s.dll", "darwin": "libtenon.%s.dylib"}.get(sys.platform, "libtenon.so.%s") % MINOR


class Error(RuntimeError):
    """An error of the library. `status` is its code's name, for example "TN_ESHAPE"."""

    def __init__(self, message, status="TN_EINVAL"):
        super().__init__(message)
        self.status = status


def load():
    """The library: TENON_LIBRARY, the copy in this package, that of the checkout which contains this package, or the
    one that is installed in the system."""
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(here, SONAME), os.path.join(here, "..", "..", "build", SONAME)]
    path = os.environ.get("TENON_LIBRARY") or next((p for p in places if os.path.exists(p)), SONAME)
    try:
        loaded = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(
            "tenon: cannot load %s (%s); install libtenon, set TENON_LIBRARY to its path, or build it and install this "
            "package again" % (path, e)
        ) from None
    loaded.tn_version.restype = c_char_p
    version = loaded.tn_version().decode()
    if not version.startswith(MINOR + "."):
        raise ImportError("tenon: %s has version %s, but this package needs %s" % (path, version, MINOR))
    return loaded


dll = load()
types: Dict[str, Any] = {}  # name: ctypes.Structure


def type_of(name):
    """The ctypes type of a C type."""
    array = re.match(r"(.*)\[(\d+)\]$", name)
    if array:
        return type_of(array[1]) * int(array[2])
    if name == "char *":
        return c_char_p
    if "*" in name:
        return c_void_p
    if name in _declarations.ENUMS:
        return c_int
    if name in BASE:
        return BASE[name]
    if name not in types:
        fields = [(m.name, type_of(m.type)) for m in STRUCTS[name]]
        types[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return types[name]


def filled(name, **values):
    """A struct with C's defaults and these values."""
    s = type_of(name)()
    for m in STRUCTS[name]:
        if m.default is not None:
            kind = type_of(m.type)
            setattr(s, m.name, float(m.default) if kind is c_double else constant(m.default))
    for member, value in values.items():
        setattr(s, member, value)
    return s


def constant(text):
    for members in _declarations.ENUMS.values():
        if text in members:
            return members[text]
    return _declarations.CONSTANTS[text] if text in _declarations.CONSTANTS else int(text, 0)


def sizes(name, value):
    """A tn_shape or a tn_dims of a number, a sequence, or None: no dims."""
    s = type_of(name)()
    values = () if value is None else [value] if hasattr(value, "__index__") else list(value)
    if len(values) == 1 and not hasattr(values[0], "__index__"):
        values = list(values[0])  # x.view((2, 3))
    if len(values) > len(s.d):
        raise ValueError("%d dims, at most %d are supported" % (len(values), len(s.d)))
    s.n = len(values)
    s.d[: s.n] = values
    return s


def enum(name, value):
    """A value of an enum by its name in lower case, without the prefix that the names share: "mean"."""
    members = _declarations.ENUMS[name]
    prefix = os.path.commonprefix(list(members))
    choices = {m[prefix.rindex("_") + 1 :].lower(): v for m, v in members.items()}
    if isinstance(value, bool) and "yes" in choices:
        return choices["yes" if value else "no"]
    if isinstance(value, str):
        if value not in choices:
            raise ValueError("%r is not one of %s" % (value, ", ".join(choices)))
        return choices[value]
    return int(value)


class Library:
    """The C functions by name, with their types. A call through it raises nothing; see `call`."""

    def __getattr__(self, name):
        result, arguments = FUNCTIONS[name]
        function = getattr(dll, name)
        function.restype = type_of(result)
        function.argtypes = [type_of(a.type) for a in arguments]
        setattr(self, name, function)
        return function


lib = Library()
failed, scope_begin, scope_end, keep, drop = (
    lib.tn_error,
    lib.tn_scope_begin,
    lib.tn_scope_end,
    lib.tn_keep,
    lib.tn_drop,
)


def check():
    """Raises the library's error of this thread, if one is set, and clears it."""
    status = failed()
    if status:
        message = lib.tn_error_message().decode("utf8", "replace")
        name = lib.tn_status_name(status).decode()
        lib.tn_clear_error()
        raise Error(message, name)


def call(function, *arguments):
    """Calls a C function whose results, if any, are not tensors. Tensors that it makes are freed."""
    s = scope_begin()
    try:
        result = function(*arguments)
    finally:
        scope_end(s)
    check()
    return result


def kept(function, *arguments):
    """Calls a function that returns a tensor or a struct with tensors; the caller owns them until `drop`."""
    s = scope_begin()
    try:
        result = function(*arguments)
        if type(result) is int:
            keep(result)
        elif isinstance(result, ctypes.Structure):
            for name, kind in result._fields_:
                if kind is c_void_p:
                    keep(getattr(result, name))
    finally:
        scope_end(s)
    check()
    return result


immortal: List[Any] = []  # callbacks of C: never freed, since C may call them until the process ends


def callback(kind):
    """Decorates a function that C calls. An exception in it must not leave it."""

    def decorate(function):
        thunk = kind(function)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thunk))
        immortal.append(thunk)
        return thunk

    return decorate


lent: Dict[int, Any] = {}  # what C borrows, by a number
lent_lock = threading.Lock()
lent_last = 0


def lend(what):
    """Keeps an object until `returned` is called with the number."""
    global lent_last
    with lent_lock:
        lent_last += 1
        lent[lent_last] = what
        return lent_last


@callback(ctypes.CFUNCTYPE(None, c_void_p, c_void_p))
def returned(data, number, lent=lent):
    lent.pop(number, None)


def text_of(print_to, *arguments):
    """The text that a function of the library prints to a FILE: in memory, or on Windows on the disk."""
    if sys.platform == "win32":
        return text_of_file(print_to, *arguments)
    libc = ctypes.CDLL(None)
    libc.open_memstream.restype, libc.open_memstream.argtypes = c_void_p, [c_void_p, c_void_p]
    libc.fclose.argtypes = libc.free.argtypes = [c_void_p]
    at, size = c_void_p(), c_size_t()
    stream = libc.open_memstream(byref(at), byref(size))
    if not stream:
        raise MemoryError
    print_to(stream, *arguments)
    libc.fclose(stream)
    text = ctypes.string_at(at.value, size.value).decode("utf8", "replace")
    libc.free(at)
    return text


def text_of_file(print_to, *arguments):
    libc = ctypes.CDLL("ucrtbase")  # the C library of the wheel's library
    libc.fopen.restype, libc.fopen.argtypes, libc.fclose.argtypes = c_void_p, [c_char_p, c_char_p], [c_void_p]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text")
        stream = libc.fopen(os.fsencode(path), b"wb")
        if not stream:
            raise OSError("cannot write " + path)
        print_to(stream, *arguments)
        libc.fclose(stream)
        with open(path, encoding="utf8", errors="replace") as f:
            return f.read()

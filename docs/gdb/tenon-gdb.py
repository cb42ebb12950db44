"""Shows tensors in gdb: dtype, shape and values instead of an address.

    (gdb) source docs/gdb/tenon-gdb.py
    (gdb) p t
    $1 = f32 [2, 3] leaf 'weight' 0x5555555592c0
    [[ 0.5, -1, 2],
     [ 3, 4.25, nan]]

Works for tn_tensor and pointers to it. Needs debug information (the dev preset has it), but no running process: a core
file is sufficient. It only reads memory and calls no function of the program.
"""

import struct

import gdb
import gdb.printing

EDGE = 3  # elements shown at each end of a dim of a large tensor
LIMIT = 200  # maximum elements of a tensor that is shown completely

# In the order of tn_dtype: name, bytes per element, format code of struct.
DTYPES = [("f32", 4, "f"), ("f64", 8, "d"), ("bf16", 2, "H"), ("i64", 8, "q"), ("i32", 4, "i"), ("u8", 1, "B"),
          ("bool", 1, "B")]


def number(raw, dtype):
    name, _, code = DTYPES[dtype]
    (v,) = struct.unpack("=" + code, raw)
    if name == "bf16":
        (v,) = struct.unpack("=f", struct.pack("=I", v << 16))
    if name == "bool":
        return "true" if v else "false"
    return "%.5g" % v if name in ("f32", "f64", "bf16") else str(v)


def values(data, dtype, shape, strides, offset):
    """The elements as nested lists; of large tensors, only the elements at the ends."""
    size = DTYPES[dtype][1]
    memory = gdb.selected_inferior()
    total = 1
    for d in shape:
        total *= d

    def element(at):
        return number(memory.read_memory(data + at * size, size).tobytes(), dtype)

    def block(dim, at, indent):
        if dim == len(shape):
            return element(at)
        n = shape[dim]
        shown = range(n)
        cut = total > LIMIT and n > 2 * EDGE
        if cut:
            shown = list(range(EDGE)) + list(range(n - EDGE, n))
        parts = [block(dim + 1, at + i * strides[dim], indent + 1) for i in shown]
        if cut:
            parts.insert(EDGE, "...")
        between = ", " if dim == len(shape) - 1 else ",\n" + " " * (indent + 1)
        return "[" + between.join(parts) + "]"

    return block(0, offset, 0)


class TensorPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        t = self.value
        if t.type.strip_typedefs().code == gdb.TYPE_CODE_PTR:
            if int(t) == 0:
                return "NULL tensor"
            t = t.dereference()
        try:
            return self.describe(t)
        except gdb.MemoryError as error:
            return "tensor at 0x%x, unreadable: %s" % (int(t.address), error)

    @staticmethod
    def describe(t):
        layout, dtype = t["l"], int(t["dtype"])
        n = int(layout["shape"]["n"])
        if not 0 <= n <= 8 or not 0 <= dtype < len(DTYPES):
            return "not a tensor (%d dims, dtype %d) at 0x%x" % (n, dtype, int(t.address))
        shape = [int(layout["shape"]["d"][i]) for i in range(n)]
        strides = [int(layout["stride"][i]) for i in range(n)]
        offset = int(layout["offset"])
        words = [DTYPES[dtype][0], str(shape)]
        dense, step = True, 1
        for i in reversed(range(n)):
            dense = dense and (shape[i] == 1 or strides[i] == step)
            step *= shape[i]
        if not dense or offset:
            words.append("strides %s offset %d" % (strides, offset))
        if t["leaf"]:
            words.append("leaf")
        if int(t["node"]):
            words.append("on the tape")
        if int(t["grad"]):
            words.append("has a gradient")
        if int(t["name"]):
            words.append("'%s'" % t["name"].string())
        words.append("0x%x" % int(t.address))
        data = int(t["storage"].dereference()["data"])
        return " ".join(words) + "\n" + values(data, dtype, shape, strides, offset)


class TensorPrinters(gdb.printing.PrettyPrinter):
    def __call__(self, value):
        kind = value.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_PTR:
            kind = kind.target().strip_typedefs()
        if kind.code == gdb.TYPE_CODE_STRUCT and kind.tag == "tn_tensor":
            return TensorPrinter(value)
        return None


gdb.printing.register_pretty_printer(gdb.current_objfile(), TensorPrinters("tenon"), replace=True)

"""All ops of the library by name, made from the table of declarations. Arguments are tensors, numbers or nested lists;
options are keywords, as in C. ops.pyi shows the signatures; help() shows the C prototype."""
import builtins
import ctypes
import inspect
import operator
from collections import namedtuple
from ctypes import c_int64, c_void_p

from . import _declarations, _library, _signatures, _tensor as tensor
from ._library import lib
from ._signatures import REQUIRED

# Results of several tensors, as Pair(values, indices)
RESULTS = {n: namedtuple(_signatures.python_name(n), [m.name for m in s]) for n, s in _signatures.RESULTS.items()}


def handle(value, held):
    """The pointer of a tensor; other values become one, which lives as long as `held`."""
    if value is None:
        return None
    t = value if isinstance(value, tensor.Tensor) else tensor.operand(value)
    held.append(t)
    return t.handle


def string(value, held):
    return None if value is None else value.encode()


def number(kind):
    if kind in _declarations.ENUMS and kind != "tn_dtype":
        return lambda value, held: _library.enum(kind, value)
    wants = {"tn_dtype": tensor.dtype_of, "double": float, "bool": bool}.get(kind, operator.index)
    return lambda value, held: wants(value)


def converter(kind):
    if kind in ("tn_shape", "tn_dims"):
        return lambda value, held: _library.sizes(kind, value)
    return {"tn_tensor *": handle, "char *": string}.get(kind) or number(kind)


class Function:
    """Calls one C function with Python's arguments. With `leading`, that many C arguments are passed as they are."""

    def __init__(self, signature, leading=0):
        self.signature = s = signature
        self.parameters = s.parameters[leading:]
        self.leading = leading
        self.function = getattr(lib, s.function)
        self.index = {p.name: i for i, p in enumerate(self.parameters)}
        self.defaults = [p.default for p in self.parameters]
        self.convert = [None if p.type in ("output", "tn_tensor **") else converter(p.type) for p in self.parameters]
        self.spread = bool(self.parameters) and self.parameters[-1].type in ("tn_shape", "tn_dims")
        self.split = s.result == "int"
        kinds = [a.type for a in s.arguments]
        owners = [p.owner for p in s.parameters]
        self.plain = owners == sorted(owners) and len(kinds) == len(s.parameters) and "tn_tensor **" not in kinds

    def values(self, args, keywords):
        """The value of each parameter."""
        count, name = len(self.parameters), self.signature.name
        if len(args) > count:
            if not self.spread:
                raise TypeError("%s takes at most %d arguments, got %d" % (name, count, len(args)))
            args = args[: count - 1] + (args[count - 1 :],)  # x.view(2, 3)
        values = list(args) + self.defaults[len(args) :]
        for key, value in keywords.items():
            i = self.index.get(key, self.index.get("dims") if key == "dim" else None)
            if i is None:
                raise TypeError("%s has no argument %r; it has %s" % (name, key, ", ".join(self.index)))
            if i < len(args):
                raise TypeError("%s got %r twice" % (name, key))
            values[i] = value
        missing = [p.name for p, v in zip(self.parameters, values) if v is REQUIRED]
        if missing:
            raise TypeError("%s needs the arguments %s" % (name, ", ".join(missing)))
        return values

    def __call__(self, *args, **keywords):
        leading, args = args[: self.leading], args[self.leading :]
        held, outputs = [], []
        complete = len(args) == len(self.parameters) and not keywords
        values = args if complete else self.values(args, keywords)
        if self.plain and not leading:  # arguments as in C
            arguments = [convert(v, held) for convert, v in zip(self.convert, values)]
            return self.result(_library.kept(self.function, *arguments), ())
        plain, structs = {i: v for i, v in enumerate(leading)}, {}
        for p, convert, value in zip(self.parameters, self.convert, values):
            kind = self.signature.arguments[p.owner].type
            if p.type == "tn_tensor **":
                plain[p.owner] = (c_void_p * len(value))(*[handle(v, held) for v in value])
                plain[p.owner - 1] = len(value)
            elif kind not in _signatures.STRUCTS or kind in ("tn_shape", "tn_dims"):
                plain[p.owner] = convert(value, held)
            else:
                s = structs.setdefault(p.owner, None) or _library.type_of(kind)()
                structs[p.owner] = s
                if p.type != "output":
                    setattr(s, p.name, convert(value, held))
                elif value:
                    outputs.append(c_int64() if p.name == "counted" else c_void_p())
                    setattr(s, p.name, ctypes.addressof(outputs[-1]))
        if self.split:
            return self.views(plain, values)
        plain.update(structs)
        arguments = [plain[i] for i in range(len(self.signature.arguments))]
        return self.result(_library.kept(self.run, arguments, outputs), outputs)

    def run(self, arguments, outputs):
        result = self.function(*arguments)
        for o in outputs:
            if isinstance(o, c_void_p):
                _library.keep(o)
        return result

    def result(self, result, outputs):
        if self.signature.result == "tn_tensor *":
            result = tensor.owned(result)
        elif self.signature.result in RESULTS:
            made = RESULTS[self.signature.result]
            result = made(*[tensor.owned(getattr(result, name)) for name in made._fields])
        if outputs:
            return (result,) + tuple(o.value if isinstance(o, c_int64) else tensor.owned(o.value) for o in outputs)
        return result

    def views(self, plain, values):
        """The list that tn_split or tn_chunk stores."""
        room = builtins.max((1, values[1]) + values[0].shape)  # `max` is an op here
        out = (c_void_p * room)()
        count = len(self.signature.arguments)
        plain[count - 2], plain[count - 1] = room, out

        def run():
            n = self.function(*[plain[i] for i in range(count)])
            for i in range(n):
                _library.keep(out[i])
            return [n]  # not a handle

        return [tensor.owned(out[i]) for i in range(_library.kept(run)[0])]


def make(signature):
    """A plain function, so that it has a name, a signature and a text for help()."""
    bound = Function(signature)

    def op(*args, **keywords):
        return bound(*args, **keywords)

    op.__name__ = op.__qualname__ = signature.name
    op.__module__ = __name__
    op.__doc__ = "C: " + _signatures.prototype(signature)
    kinds = inspect.Parameter
    op.__signature__ = inspect.Signature(
        [
            kinds(p.name, kinds.POSITIONAL_OR_KEYWORD, default=kinds.empty if p.default is REQUIRED else p.default)
            for p in signature.parameters
        ]
    )
    return op


for _signature in _signatures.OPS.values():
    _op = make(_signature)
    globals()[_signature.name] = _op
    if _signature.is_method:
        setattr(tensor.Tensor, _signature.name, _op)
__all__ = list(_signatures.OPS)

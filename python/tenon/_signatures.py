"""The table of declarations as Python sees it: structs, and a signature for each op. Needs no library."""
import re
from collections import namedtuple

from . import _declarations

ALL = 2147483647  # TN_ALL: all dims

# Defaults of PyTorch where C has no optional arguments.
DEFAULTS = {
    "allclose": {"rtol": 1e-5, "atol": 1e-8},
    "argmax": {"dim": ALL},
    "argmin": {"dim": ALL},
    "cat": {"dim": 0},
    "chunk": {"dim": 0},
    "clamp": {"low": float("-inf"), "high": float("inf")},
    "clamp_": {"low": float("-inf"), "high": float("inf")},
    "cosine_similarity": {"dim": 1, "eps": 1e-8},
    "diagonal": {"offset": 0, "dim0": 0, "dim1": 1},
    "dropout": {"p": 0.5},
    "elu": {"alpha": 1.0},
    "embedding": {"padding": -1},
    "flatten": {"first": 0, "last": -1},
    "glu": {"dim": -1},
    "layer_norm": {"weight": None, "bias": None, "eps": 1e-5},
    "leaky_relu": {"slope": 0.01},
    "one_hot": {"classes": -1},
    "pad": {"value": 0.0},
    "slice": {"start": 0, "end": 2**63 - 1, "step": 1},
    "softplus": {"beta": 1.0},
    "split": {"dim": 0},
    "squeeze": {"dim": ALL},
    "stack": {"dim": 0},
    "sort": {"dim": -1},
    "topk": {"dim": -1},
    "tril": {"diagonal": 0},
    "triu": {"diagonal": 0},
}
# Members of structs of arguments through which an op returns a second result: pass True to get a tuple.
OUTPUTS = {"weights", "sum", "counted"}

REQUIRED = object()
Declared = namedtuple("Declared", "type name default")  # type: "double", "tn_tensor *", "int[8]"
Parameter = namedtuple("Parameter", "name type default owner")  # owner: the index of its struct or argument in C
Signature = namedtuple("Signature", "name function result arguments parameters is_method")
HINTS = {
    "tn_tensor *": "Optional[Operand]",
    "tn_tensor **": "Sequence[Operand]",
    "tn_shape": "Shape",
    "tn_dims": "Shape",
    "tn_dtype": "Any",
    "char *": "str",
    "bool": "bool",
    "double": "float",
    "output": "bool",
}


def declared(text):
    base, stars, name, array, default = re.match(r"(\w+) (\**)(\w+)(?:\[(\d+)\])?(?: = (.+))?$", text).groups()
    return Declared(base + (" " + stars if stars else "") + ("[%s]" % array if array else ""), name, default)


def lines(text):
    """The declarations of a text, where indented lines continue the one before."""
    return text.replace("\n    ", " ").split("\n")[1:-1]


def parse_structs():
    structs, required = {}, {}
    for line in lines(_declarations.STRUCTS):
        name, members = line.split(": ", 1)
        members = members.split("; ")
        if members[-1].startswith("required "):
            required[name] = int(members.pop().split()[1])
        structs[name] = [declared(m) for m in members]
    return structs, required


def parse_functions(text):
    functions = {}
    for line in lines(text):
        head, params = line[:-1].split("(", 1)
        head = declared(head)
        functions[head.name] = (head.type, [declared(p) for p in params.split(", ") if p and p != "..."])
    return functions


STRUCTS, NEEDED = parse_structs()
FUNCTIONS = parse_functions(_declarations.OPS + _declarations.FUNCTIONS[1:])


def members(struct, owner, outputs):
    """The parameters of a struct of keyword arguments."""
    for i, m in enumerate(x for x in STRUCTS[struct] if x.name not in ("zero_", "end_")):
        default = m.default
        if m.type in ("tn_tensor **", "int64_t *") and outputs and m.name in OUTPUTS:
            yield Parameter(m.name, "output", False, owner)
        elif "*" in m.type and m.type not in ("tn_tensor *", "char *"):
            continue  # of C only
        elif i < NEEDED.get(struct, 0) and m.name != "bias":
            yield Parameter(m.name, m.type, REQUIRED, owner)
        elif m.type == "bool":
            yield Parameter(m.name, m.type, default == "true", owner)
        elif "*" in m.type or m.type in ("tn_shape", "tn_dims"):
            yield Parameter(m.name, m.type, None, owner)
        elif m.type == "double":
            yield Parameter(m.name, m.type, float(default or 0), owner)
        else:
            yield Parameter(m.name, m.type, int(default) if default and default.lstrip("-").isdigit() else 0, owner)


def signature(function, outputs=True):
    """The Python signature of a C function: structs of arguments are keywords, a count and its list are one list."""
    result, arguments = FUNCTIONS[function]
    name = re.sub(r"_(run|list|create)$", "", function[3:])
    parameters = []
    for i, a in enumerate(arguments):
        if a.type in STRUCTS and a.type.endswith(("_args", "_config")):
            parameters += members(a.type, i, outputs)
        elif a.type == "int" and a.name in ("n", "room"):
            continue  # of a list, which follows
        elif a.type == "tn_tensor **" and a.name == "out":
            continue
        else:
            default = {"bool": False, "tn_reduction": 0}.get(a.type, None if a.name == "bias" else REQUIRED)
            parameters.append(Parameter("tensors" if a.name == "in" else a.name, a.type, default, i))
    given = DEFAULTS.get(name, {})
    parameters = [p._replace(default=given.get(p.name, p.default)) for p in parameters]
    parameters.sort(key=lambda p: p.default is not REQUIRED)  # stable: required ones first
    is_method = bool(parameters) and parameters[0].type == "tn_tensor *"
    return Signature(name, function, result, arguments, parameters, is_method)


def python_name(struct):
    """The name of a struct of results: Pair of tn_pair."""
    return struct[3:].title().replace("_", "")


def prototype(s):
    """The C prototype, for help()."""
    arguments = ("%s%s%s" % (a.type, "" if a.type.endswith("*") else " ", a.name) for a in s.arguments)
    return "%s%s%s(%s)" % (s.result, "" if s.result.endswith("*") else " ", s.function, ", ".join(arguments))


def stub(s, indent):
    """The line of a .pyi file; indented: a method."""
    parts = []
    for i, p in enumerate(s.parameters):
        if indent and not i:
            parts.append("self")
            continue
        hint = HINTS.get(p.type, "Union[str, int]" if p.type in _declarations.ENUMS else "int")
        default = "" if p.default is REQUIRED else " = ..."
        parts.append("%s: %s%s" % (p.name, hint, default))
        if p.type in ("tn_shape", "tn_dims") and p.default is REQUIRED and i == len(s.parameters) - 1:
            parts[-1] = "*%s: Shape" % p.name
    result = {"tn_tensor *": "Tensor", "bool": "bool", "int": "List[Tensor]"}.get(s.result) or python_name(s.result)
    if any(p.type == "output" for p in s.parameters):
        result = "Any"
    line = "%sdef %s(%s) -> %s: ..." % (" " * indent, s.name, ", ".join(parts), result)
    if len(line) <= 120:
        return line
    inner = "\n".join(" " * (indent + 4) + part + "," for part in parts)
    return "%sdef %s(\n%s\n%s) -> %s: ..." % (" " * indent, s.name, inner, " " * indent, result)


OPS = {s.name: s for s in map(signature, parse_functions(_declarations.OPS))}
RESULTS = {s.result: STRUCTS[s.result] for s in OPS.values() if s.result in STRUCTS}

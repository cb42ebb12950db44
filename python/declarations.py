#!/usr/bin/env python3
"""Writes tenon/_declarations.py and tenon/ops.pyi from the public headers: the functions that the package calls, their
structs, and all constants. The build of the library runs it after a change of a header, and so does backend.py."""
import importlib
import pathlib
import re
import sys
import textwrap
import types

here = pathlib.Path(__file__).resolve().parent
OPS_OF_EXTRAS = {"lsh_attention"}
# Headers of autograd/ that do not declare ops.
NOT_OPS = {"autograd", "op", "recompute", "replay", "steps", "tools"}
# Structs that are only passed by pointer, as handles.
OPAQUE = {"tn_bert", "tn_tuned", "tn_seq2seq", "tn_vit", "tn_lm", "tn_decoding", "tn_decoding_kind", "tn_module"}
INDENT = {"subsequent_indent": "    ", "break_long_words": False, "break_on_hyphens": False}
HINTS = """# Written by python/declarations.py from the headers; do not edit.
from typing import Any, List, NamedTuple, Optional, Sequence, Union

from ._tensor import Tensor

Operand = Union[Tensor, float, int, bool, Sequence[Any], Any]
Shape = Union[int, Sequence[int]]

%s

%s

class Methods:
%s

class Function:
    def __init__(self, signature: Any, leading: int = ...) -> None: ...
    def __call__(self, *args: Any, **keywords: Any) -> Any: ...
"""


def text_of(path):
    """A header without comments, without C++ and without directives."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text("utf8"), flags=re.S).replace("\\\n", " ")
    lines, kept = [], [True]  # kept: for each open #if, whether its lines count
    for line in text.split("\n"):
        directive = re.match(r"\s*#\s*(\w+)\s*(.*)", line)
        if not directive:
            if all(kept):
                lines.append(line)
        elif directive[1] in ("if", "ifdef", "ifndef"):
            cplusplus = "__cplusplus" in directive[2] and directive[1] != "ifndef" and "!defined" not in directive[2]
            kept.append(not cplusplus)
        elif directive[1] in ("else", "elif"):
            kept[-1] = not kept[-1]
        elif directive[1] == "endif":
            kept.pop()
    return "\n".join(lines)


def split(text, by=","):
    """The parts of a list, where a separator inside brackets does not count."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == by and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [" ".join(p.split()) for p in parts if p.strip()]


def declarators(text):
    """`tn_tensor *x, *weight TN_IS(1)` as triples of type, name and default."""
    base, found = None, []
    if re.search(r"\(\s*\*", text):  # a pointer to a function
        return [("void *", re.search(r"\(\s*\*\s*(\w+)", text)[1], None)]
    for part in split(text):
        part, default = re.sub(r"\s*TN_IS\(([^()]*)\)", "", part), re.search(r"TN_IS\(([^()]*)\)", part)
        part = re.sub(r"\b(const|struct)\b", "", re.sub(r"\bTN_LIST_N_\(n\)", "int n", part))
        if base is None:
            base, part = re.match(r"\s*(\w+)(.*)", part).groups()
        stars, name, array = re.match(r"([\s*]*)(\w*)\s*((?:\[[^]]*\])*)", part).groups()
        found.append(((base + " " + "".join(stars.split())).strip() + array, name, default and default[1].strip()))
    return found


class Headers:
    def __init__(self, root):
        listed = re.search(r"set\(TENON_HEADERS\s(.*?)\)", (root / "CMakeLists.txt").read_text("utf8"), re.S)[1].split()
        self.required, self.callbacks = {}, set()
        self.constants, self.structs, self.functions, self.enums, self.ops = {}, {}, {}, {}, []
        for name in listed:
            folder, _, file = name[:-2].partition("/")
            self.read(root / name, folder == "autograd" and file not in NOT_OPS or file in OPS_OF_EXTRAS)
        self.ops = [name for name in self.ops if self.offered(name)]

        numbers = re.findall(r"define TN_VERSION_\w+ +(\d+)", (root / "core/core.h").read_text("utf8"))
        self.version = ".".join(numbers)

    def read(self, path, ops):
        text = text_of(path)
        for m in re.finditer(r"\benum\s*\w*\s*\{(.*?)\}\s*(\w*)\s*;", text, re.S):
            members, value = {}, -1
            for part in split(m[1]):
                name, _, given = (p.strip() for p in part.partition("="))
                value = self.value(given) if given else value + 1
                members[name] = self.constants[name] = value
            self.enums[m[2]] = members
        for m in re.finditer(r"^#\s*define (TN_\w+) (\d+)\s", path.read_text("utf8"), re.M):
            self.constants[m[1]] = int(m[2])
        self.callbacks |= set(re.findall(r"\btypedef [^;{}]*\(\*(\w+)\)\(", text))
        joined = path.read_text("utf8").replace("\\\n", " ")
        for m in re.finditer(r"TN_ARGS(\d)_\(\s*(\w+_args),", joined):
            self.required[m[2]] = max(int(m[1]), self.required.get(m[2], 0))
        for m in re.finditer(r"\btypedef struct\s*\w*\s*\{", text):
            end, depth = m.end(), 1
            while depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            name = re.match(r"\s*(?:TN_KEYWORDS_ONLY)?\s*(\w+)\s*;", text[end:])
            if name:
                self.struct(name[1], text[m.end() : end - 1])
        for m in re.finditer(r"\bTN_API\s+([^;{}()]*?)(tn_\w+)\s*\(", text):
            end, depth = m.end(), 1
            while depth:
                depth += {"(": 1, ")": -1}.get(text[end], 0)
                end += 1
            result = declarators(m[1])[0][0]
            body = " ".join(text[m.end() : end - 1].split())
            params = [] if body == "void" else [p if p == "..." else declarators(p)[0] for p in split(body)]
            self.functions[m[2]] = (result, params)
            if ops:
                self.ops.append(m[2])

    def offered(self, name):
        """True if Python can call an op: tensors, lists of them, numbers and options in, tensors or a bool out."""
        result, params = self.functions[name]
        names, lists = [], 0
        for p in params:
            if p == "..." or p[0] in self.callbacks or "*" in p[0] and not re.match(r"(tn_tensor|char) \*|", p[0])[1]:
                return False
            lists += "**" in p[0]
            names += [m[1] for m in self.structs[p[0]]] if p[0].endswith(("_args", "_config")) else [p[1]]
        of_tensors = result in self.structs and all(m[0] == "tn_tensor *" for m in self.structs[result])
        listed = result == "int" and params[-1][1] == "out"  # tn_split
        return len(set(names)) == len(names) and lists < 2 and (
            result in ("tn_tensor *", "bool") or of_tensors or listed
        )

    def value(self, text):
        """A constant, a number, or a product of them."""
        product = 1
        for factor in text.split("*"):
            factor = factor.strip()
            product *= self.constants[factor] if factor in self.constants else int(factor, 0)
        return product

    def struct(self, name, body):
        members = []
        for part in split(body, ";"):
            inner = re.match(r"(struct|union) \{(.*)\} ?(\w*) ?((?:\[[^]]*\])?)$", part, re.S)
            if inner and inner[1] == "union":  # of pointers, which have one size
                members += declarators(split(inner[2], ";")[0])
            elif inner:
                self.struct(name + "_" + inner[3], inner[2])
                members.append((name + "_" + inner[3] + inner[4], inner[3], None))
            elif part:
                members += declarators(part)
        sized = lambda kind: re.sub(r"\[(\w+)\]", lambda m: "[%d]" % self.value(m[1]), kind)
        self.structs[name] = [(sized(kind), member, default) for kind, member, default in members]


def needed(headers, functions):
    """The structs and the enums that these functions take or return; a struct follows those that it contains."""
    structs, enums = [], {}

    def add(kind):
        kind = re.sub(r"[*[].*", "", kind).strip()
        if kind in headers.structs and kind not in structs and kind not in OPAQUE:
            for member in headers.structs[kind]:
                add(member[0])
            structs.append(kind)
        elif kind in headers.enums:
            enums[kind] = headers.enums[kind]

    for name in functions:
        result, params = headers.functions[name]
        for kind in [result] + [p[0] for p in params if p != "..."]:
            add(kind)
    return structs, enums


def member(kind, name, default=None, callbacks=()):
    kind = "void *" if kind in callbacks else kind
    base, stars, array = re.match(r"(\w+) ?(\**)(\[\d+\])?$", kind).groups()
    return "%s %s%s%s%s" % (base, stars, name, array or "", "" if default is None else " = " + default)


def prototype(headers, name):
    result, params = headers.functions[name]
    params = ", ".join(p if p == "..." else member(p[0], p[1], None, headers.callbacks) for p in params)
    return "%s(%s)" % (member(result, name), params)


def table(headers):
    sources = [p.read_text("utf8") for p in sorted((here / "tenon").glob("*.py")) if p.name != "_declarations.py"]
    named = sorted(set(re.findall(r"\b(?:tn|TN)_\w+", "".join(sources))))
    functions = headers.ops + [n for n in named if n in headers.functions and n not in headers.ops]
    structs, enums = needed(headers, functions)
    lines = ['"""The declarations that the package uses. Written by python/declarations.py; do not edit."""', ""]
    lines += ["VERSION = %r" % headers.version, "CONSTANTS = {"]
    lines += ["    %r: %d," % (n, headers.constants[n]) for n in named if n in headers.constants] + ["}", "ENUMS = {"]
    lines += textwrap.wrap("".join("%r: %r, " % e for e in enums.items()), 110, **INDENT)
    lines += ["}", "# The last word of a struct: the number of members that C's macro requires.", 'STRUCTS = """']
    for name in structs:
        text = name + ": " + "; ".join(member(*m, headers.callbacks) for m in headers.structs[name])
        required = headers.required.get(name)
        lines += textwrap.wrap(text + ("" if required is None else "; required %d" % required), 118, **INDENT)
    for title, names in (("OPS", headers.ops), ("FUNCTIONS", functions[len(headers.ops) :])):
        lines += ['"""', title + ' = """']
        for name in names:
            lines += textwrap.wrap(prototype(headers, name), 118, **INDENT)
    return "\n".join(lines + ['"""', ""])


def hints():
    """ops.pyi: the functions of ops.py, and the same as methods of Tensor."""
    package = types.ModuleType("tenon")  # without tenon/__init__.py, which loads the library
    package.__path__ = [str(here / "tenon")]
    sys.modules["tenon"] = package
    sys.modules.pop("tenon._declarations", None), sys.modules.pop("tenon._signatures", None)
    signatures = importlib.import_module("tenon._signatures")
    functions, methods = [], []
    for s in signatures.OPS.values():
        functions.append(signatures.stub(s, 0))
        if s.is_method:
            methods.append(signatures.stub(s, 4))
    results = [
        "class %s(NamedTuple):\n%s" % (signatures.python_name(n), "\n".join("    %s: Tensor" % m.name for m in members))
        for n, members in signatures.RESULTS.items()
    ]
    return HINTS % ("\n\n".join(results), "\n".join(functions), "\n".join(methods))


def write():
    """Writes the files that are missing or have other contents."""
    headers = Headers(here.parent)
    for name, make in (("_declarations.py", lambda: table(headers)), ("ops.pyi", hints)):
        path, text = here / "tenon" / name, make()
        if not path.exists() or path.read_text("utf8") != text:
            path.write_text(text, "utf8")


if __name__ == "__main__":
    write()

"""Finds the example of each public name: the shortest function of the lessons, programs and unit tests that uses it, or
a part of one of the pages in docs/site/examples, with its output. All of them are compiled and run by tests.
"""
import glob
import os
import re
import textwrap

import api as reader

EXAMPLE = re.compile(r"^EXAMPLE\((\w+)\)\s*\{(?:\n(.*?)^\}|[ \t]*([^\n]*)\}[ \t]*$)", re.M | re.S)
PIECE = re.compile(r"^(?:[A-Z_]*TEST(?:_EACH|_ROWS)?\((\w+)[^\n{]*\)"
                   r"|(?!typedef\b|struct\b|enum\b|#|EXAMPLE\b)[A-Za-z_][^;{}#=()\n]*?\b(\w+)"
                   r"\((?:[^;{}()]|\([^;{}()]*\))*\))\s*\{(.*?)^\}", re.M | re.S)


class Example:
    def __init__(self, file, name, text, output="", note="", ran=""):
        self.file, self.name, self.text, self.output, self.note, self.ran = file, name, text, output, note, ran
        self.names = set(reader.NAME.findall(re.sub(r'"(?:\\.|[^"\\])*"|/\*.*?\*/', " ", text, flags=re.S)))


def outputs(root):
    path = os.path.join(root, "docs/site/examples/outputs.txt")
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf8") as f:
        parts = re.split(r"^==== (\w+) (\w+)\n", f.read(), flags=re.M)
    return {(parts[i], parts[i + 1]): parts[i + 2].rstrip("\n") for i in range(1, len(parts) - 2, 3)}


def own(root):
    """The examples of docs/site/examples by file, in their order."""
    said, found, heads = outputs(root), {}, {}
    for path in sorted(glob.glob(os.path.join(root, "docs/site/examples/*.c"))):
        stem = os.path.splitext(os.path.basename(path))[0]
        with open(path, encoding="utf8") as f:
            text = f.read()
        head = re.match(r"/\* \w+\.c — (.*?)\*/\n", text, re.S)
        body = text[head.end():] if head else text
        found[stem], at = [], 0
        for m in EXAMPLE.finditer(body):  # before it: its heading, and functions that it calls
            before = body[at:m.start()]
            note = re.search(r"^/\*.*?\*/\n", before, re.M | re.S)
            helpers = re.sub(r'#include "show.h"\n', "", before.replace(note[0], "") if note else before).strip()
            code = textwrap.dedent(m[2]) if m[2] is not None else m[3].strip()
            text = (helpers + "\n\n" if helpers else "") + code.rstrip()
            found[stem].append(Example("docs/site/examples/%s.c" % stem, m[1], text, said.get((stem, m[1]), ""),
                                       reader.plain(note[0]) if note else "", "project.site"))
            at = m.end()
        heads[stem] = " ".join(reader.plain("/*%s*/" % head[1]).split()) if head else ""
    return found, heads


def test_of(path):
    """The test that runs a file."""
    parts = path.split("/")
    stem = os.path.splitext(parts[-1])[0]
    if parts[0] == "tests":
        return "unit." + stem[len("test_"):]
    if len(parts) == 2:
        return "project.readme" if stem == "readme" else "project.guide"
    return "project." + parts[-2]


def elsewhere(root):
    """Functions of lessons, programs and unit tests."""
    for pattern in ("examples/*.c", "examples/*/*.c", "programs/*.c", "programs/*/*.c",
                    "extras/programs/*/*.c", "tests/unit/*/test_*.c", "extras/tests/unit/test_*.c"):
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            name = os.path.relpath(path, root)
            if name.startswith("programs/common/"):
                continue
            with open(path, encoding="utf8") as f:
                text = f.read()
            for m in PIECE.finditer(text):
                yield Example(name, m[1] or m[2], m[0], ran=test_of(name))


def expanded(body, api):
    """The names in the body of a macro, and in those of the private macros that it calls."""
    names = reader.NAME.findall(body)
    for name in names:  # grows
        if name in api.private:
            names += [n for n in reader.NAME.findall(api.private[name]) if n not in names]
    return names


def used(names, api):
    """The names, and those that their macros expand to, and the structs of the functions."""
    out, work = set(), list(names)
    while work:
        name = work.pop()
        s = api.symbols.get(name)
        if name in out or not s:
            continue
        out.add(name)
        for one in [s] + s.also:
            if one.kind in ("call", "macro"):
                work += expanded(one.body, api)
                if one.owner:
                    work += [n for n in re.findall(r"\bTN_[A-Z0-9_]+_DEFAULTS\b", one.body)]
            if one.kind == "function":
                work += [n for n in reader.NAME.findall(" ".join(one.params) + " " + one.result)
                         if api.symbols.get(n) and api.symbols[n].kind not in ("function", "call")]
    return out


def excerpt(example, name, api, context=7):
    """The lines of a function around a use of a name."""
    lines = example.text.split("\n")
    if len(lines) <= 2 * context + 2:
        return example.text
    words = {name} | {n for n in example.names if name in used([n], api)}
    at = next((i for i, line in enumerate(lines) if words & set(reader.NAME.findall(line))), 0)
    first, last = max(0, at - context), min(len(lines), at + context)
    shown = lines[first:last]
    indent = min((len(x) - len(x.lstrip()) for x in shown if x.strip()), default=0)
    return "\n".join((["…"] if first else []) + [x[indent:] for x in shown] + (["…"] if last < len(lines) else []))


def library(api, best):
    """Names that only the library itself uses: the lines around a use, in a file that its unit tests run."""
    for path, text in sorted(api.sources.texts.items()):
        lines = text.split("\n")
        for i, line in enumerate(lines):
            for name in reader.NAME.findall(line) if not line.startswith((" *", "/*")) else ():
                s = api.symbols.get(name)
                if s and not s.example and name not in best and (s.kind != "function" or line[:1] in " \t"):
                    shown = "\n".join(["…"] + lines[max(0, i - 4):i + 5] + ["…"])
                    example = Example(path, name, shown, ran="unit tests of %s" % path.split("/")[0])
                    s.level, s.example = "run", (example, textwrap.dedent(shown))


def assign(api, root):
    """Sets symbol.example to (example, text) and symbol.level to own, run or near."""
    api.examples, api.example_heads = own(root)
    best = {}

    def offer(level, example, names):
        size = len(example.text)
        for name in names:
            direct = name in example.names
            key = (level, not direct, size)
            if name not in best or key < best[name][0]:
                best[name] = (key, example)
    for stem, list_ in api.examples.items():
        for e in list_:
            offer(0 if not stem.startswith(("from_", "mistakes")) else 1, e, used(e.names, api))
    for e in elsewhere(root):
        offer(3 if e.file.startswith("tests/") else 2, e, used(e.names, api))
    for name, s in api.symbols.items():
        if name in best:
            key, e = best[name]
            s.level = "own" if key[0] <= 1 else "run"
            s.example = (e, e.text if key[0] <= 1 else excerpt(e, name, api))
    library(api, best)
    related = {}
    for s in api.symbols.values():  # an enum and its constants; a struct and its members' types; callbacks
        for name in reader.NAME.findall(s.code):
            if name != s.name and name in api.symbols:
                related.setdefault(name, []).append(s.name)
                related.setdefault(s.name, []).append(name)
    for name, s in api.symbols.items():
        if not s.example:
            near = [api.symbols[n] for n in related.get(name, ()) if api.symbols[n].example]
            near.sort(key=lambda t: (t.level != "own", len(t.example[1]), t.name))
            if near:
                s.level, s.example = "near", near[0].example

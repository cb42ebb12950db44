"""The files of the site that are not pages: tenon_api.json, names.js for the search, man(3) pages, PyTorch's names."""
import json
import os
import re

import api as reader
import contract
import pages


def torch_names(api, root):
    """Sets symbol.torch: from pytorch.txt, and from the tables of docs/guide/pytorch.md."""
    found = {}
    with open(os.path.join(root, "docs/site/pytorch.txt"), encoding="utf8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                name, *others = line.split()
                found.setdefault(name, []).extend(others)
    with open(os.path.join(root, "docs/guide/pytorch.md"), encoding="utf8") as f:
        for line in f:
            if not line.startswith("| `"):
                continue
            torch, ours = line.strip("| \n").split(" | ")[:2]
            words = [re.sub(r"[(=].*", "", w).strip() for w in re.findall(r"`([^`]*)`", torch)]
            words = [w for w in words if re.match(r"[\w.]+$", w)]
            names = re.findall(r"`(tn_\w+|TN_\w+)", ours)
            if len(words) == len(names):
                pairs = zip(names, ([w] for w in words))
            else:
                pairs = ((n, words) for n in names)
            for name, list_ in pairs:
                found.setdefault(name, []).extend(list_)
    for name, list_ in found.items():
        if name in api.symbols:
            s = api.symbols[name]
            s.torch = list(dict.fromkeys(list_))
    for s in api.symbols.values():  # a macro and its function have the same names
        if s.kind == "call" and s.owner in api.symbols:
            both = list(dict.fromkeys(s.torch + api.symbols[s.owner].torch))
            s.torch = both


def departures(api, root):
    """The paragraphs of docs/departures.md by the op that they name in their first words."""
    with open(os.path.join(root, "docs/departures.md"), encoding="utf8") as f:
        items = re.findall(r"^- ((?:.+\n)(?:  .*\n)*)", f.read(), re.M)
    found = {}
    common = {"to", "all", "any", "view", "where", "add", "copy", "select", "max", "min", "round", "sum", "mean", "pad"}
    for item in items:
        text = " ".join(re.sub(r"[*`]", "", item).split())
        head = " ".join(text.split()[:40])
        for op in api.ops:
            if re.search(r"\btn_%s\b" % op, head) or op not in common and re.search(r"\b%s\b" % op, head):
                found.setdefault(op, []).append(text)
    api.departures = found


def as_json(api):
    out = []
    for s in sorted(api.symbols.values(), key=lambda s: s.name):
        one = {"name": s.name, "kind": s.kind, "header": s.header, "section": s.section, "declaration": s.code,
               "comment": s.comment, "pytorch": s.torch, "contract": dict(contract.contract(s, api)),
               "page": "api/%s.html" % s.name}
        if s.kind == "function":
            one.update(result=s.result, parameters=s.params)
        if s.kind == "call":
            one.update(parameters=s.params, function=s.owner, synopsis=s.synopsis)
        if s.members:
            one["members"] = s.members
        if s.errors:
            one["errors"] = [{"code": c, "text": t} for c, t in s.errors]
        if s.op:
            one["op"] = s.op
        if s.example:
            e, text = s.example
            one["example"] = {"text": text, "output": e.output, "file": e.file, "name": e.name, "run_by": e.ran,
                              "level": s.level}
        out.append(one)
    return {"version": 1, "headers": {h: api.heads[h].split("\n\n")[0] for h in api.headers}, "names": out}


def by_kind(api):
    return sorted(api.symbols.values(), key=lambda s: (pages.ORDER[s.kind], len(s.name), s.name))


def search_names(api):
    rows = [[s.name, "api/%s.html" % s.name, pages.one_line(s, api), s.torch] for s in by_kind(api)]
    return "const NAMES = %s;\n" % json.dumps(rows, ensure_ascii=False, separators=(",", ":")).replace("],[", "],\n[")


# ---- man(3) ----


def mdoc(text, literal=False):
    """Text for mdoc(7): a line that starts with a dot or a quote, and backslashes, would be requests. Outside of
    literal text each sentence is on a line of its own."""
    lines = []
    if not literal:
        text = re.sub(r"\n\s*\n", "\n", text)
        text = re.sub(r"([.!?][)\"']*)[ \t]+(?=\S)", r"\1\n", text)
    for line in text.replace("\\", "\\e").split("\n"):
        line = line.rstrip()
        lines.append("\\&" + line if line[:1] in (".", "'") else line)
    return "\n".join(lines)


def paragraphs(text):
    out = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.split("\n")
        if any(x.startswith("    ") for x in lines):
            out.append(".Bd -literal\n%s\n.Ed" % mdoc(block, True))
        elif block.strip():
            out.append(mdoc("\n".join(x.strip() for x in lines)))
    return re.sub(r"\n\.Pp\n\.Bd", "\n.Bd", "\n.Pp\n".join(out))


def man_page(s, api, date, version):
    target = api.symbols.get(s.owner) if s.kind == "call" and s.owner else None
    code = (s.synopsis or s.code) + ("\n" + target.code if target else "")
    out = ['.\\" Written by docs/site/build from %s.' % s.header, ".Dd %s" % date, ".Dt %s 3" % s.name.upper(),
           ".Os Tenon %s" % version, ".Sh NAME", ".Nm %s" % s.name,
           ".Nd %s" % (mdoc(pages.one_line(s, api), True).rstrip(".") or "see below"), ".Sh SYNOPSIS",
           ".In tenon/tenon.h", ".Bd -literal", mdoc(code, True), ".Ed", ".Sh DESCRIPTION"]
    text = "\n\n".join(x for x in (s.lead, s.tail, target.lead if target else "", target.tail if target else "") if x)
    out.append(paragraphs(text) or mdoc(pages.one_line(s, api)) or "See %s." % s.header)
    for field, value in contract.contract(s, api):
        if value:
            out += [".Ss %s" % field, ".Bd -literal\n%s\n.Ed" % mdoc(value, True) if "\n" in value else mdoc(value)]
        if field == "Errors" and s.errors:
            out.append(".Bl -tag -width TN_ENUMERIC")
            for code_, text in s.errors:
                out += [".It Dv %s" % code_, mdoc(text)]
            out.append(".El")
    if s.example:
        e, text = s.example
        out += [".Sh EXAMPLES", ".Bd -literal", mdoc(text, True), ".Ed"]
        if e.output:
            out += ["It prints:", ".Bd -literal", mdoc(e.output, True), ".Ed"]
    return "\n".join(out) + "\n"


def write_man(api, out, root):
    with open(os.path.join(root, "core/core.h"), encoding="utf8") as f:
        version = ".".join(re.findall(r"^#define TN_VERSION_[A-Z]+ +(\d+)", f.read(), re.M))
    with open(os.path.join(root, "docs/man/bert.1"), encoding="utf8") as f:
        date = re.search(r"^\.Dd (.*)", f.read(), re.M)[1]
    os.makedirs(os.path.join(out, "man3"), exist_ok=True)
    for s in api.symbols.values():
        if s.kind in ("function", "call"):
            with open(os.path.join(out, "man3", s.name + ".3"), "w", encoding="utf8") as f:
                f.write(man_page(s, api, date, version))

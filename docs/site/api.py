"""The public names of Tenon's headers: kind, declaration, comment, members, defaults; and what the sources say of each
function: the op that it calls, the errors that it raises. `read(root)` returns an Api. Only text is read: no compiler.
"""
import glob
import os
import re

STRING = r'"(?:\\.|[^"\\])*"'
COMMENT = re.compile(r"/\*.*?\*/", re.S)
NAME = re.compile(r"\b(?:tn|TN)_[A-Za-z0-9]\w*")
FOLDERS = ("core", "autograd", "nn", "optim", "data", "parallel", "models", "extras")


class Symbol:
    """A public name. kind: function, call (macro with arguments), macro, struct, enum, constant, callback, type."""

    def __init__(self, name, kind, header, line, code, lead, tail, section):
        self.name, self.kind, self.header, self.line, self.code = name, kind, header, line, code
        self.lead, self.tail, self.section = lead, tail, section
        self.result, self.params, self.members, self.body, self.owner = "", [], [], "", ""
        self.guard, self.records = "", False  # see read()
        self.synopsis = ""  # of a call: how it is written
        self.group = ""  # the comment of an earlier declaration of its paragraph
        self.op = self.source = self.example = self.defaults = None
        self.also, self.macros, self.errors, self.torch, self.level = [], [], [], [], ""

    @property
    def comment(self):
        return " ".join(x for x in (self.lead, self.tail) if x)


class Api:
    def __init__(self):
        self.symbols, self.headers, self.heads, self.notes = {}, [], {}, {}
        self.forms = {}  # their parameters
        self.private = {}  # the bodies of macros that only headers use: TN_CALL_ and others

    def add(self, s):
        old = self.symbols.get(s.name)
        if not old:
            self.symbols[s.name] = s
        elif old.kind == "type" and s.kind == "struct":  # the definition of an opaque type
            s.also = old.also
            self.symbols[s.name] = s
        elif old.kind != s.kind and s.kind != "type":
            old.also.append(s)


def plain(comment):
    """The text of a comment without its stars."""
    text = re.sub(r"\A/\*+|\*+/\Z", "", comment.strip())
    lines = [re.sub(r"^[ \t]*\*? ?", "", line) if i else line for i, line in enumerate(text.split("\n"))]
    return "\n".join(line.rstrip() for line in lines).strip()


# ---- the preprocessor's conditions, for C on Linux with gcc ----

KNOWN = {"TN_KEYWORDS_": "11", "__GNUC__": "12", "__STDC_VERSION__": "201112"}


def holds(kind, text):
    if kind in ("ifdef", "ifndef"):
        name = text.split()[0]
        there = name in KNOWN
        guard = name.startswith("TENON_")
        return (there or guard and kind == "ifndef") if kind == "ifdef" else not there
    text = COMMENT.sub("", text).replace("\\\n", " ")
    text = re.sub(r"defined\s*\(?\s*(\w+)\s*\)?", lambda m: "1" if m[1] in KNOWN else "0", text)
    text = re.sub(r"[A-Za-z_]\w*", lambda m: KNOWN.get(m[0], "0"), text)
    text = re.sub(r"(\d)[uUlL]+", r"\1", text).replace("&&", " and ").replace("||", " or ")
    text = re.sub(r"!(?!=)", " not ", text)
    return bool(eval(text, {"__builtins__": {}}))  # digits and operators only


PIECE = re.compile(r'(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<directive>^[ \t]*#(?:[^\n]*\\\n)*[^\n]*)|(?P<string>%s)'
                   r'|(?P<break>\n[ \t]*(?=\n))|(?P<other>[^/"\n#]+|.|\n)' % STRING, re.S | re.M)


def pieces(text):
    """(kind, text, line) of the parts that the preprocessor keeps."""
    stack, at = [], 1
    for m in PIECE.finditer(text):
        kind, piece, line = m.lastgroup, m[0], at
        at += piece.count("\n")
        if kind == "directive":
            d = re.match(r"[ \t]*#[ \t]*(\w+)[ \t]*(.*)", piece, re.S)
            if d and d[1] in ("if", "ifdef", "ifndef"):
                on = holds(d[1], d[2])
                stack.append([on, on])
                continue
            if d and d[1] == "elif":
                stack[-1][0] = not stack[-1][1] and holds("if", d[2])
                stack[-1][1] |= stack[-1][0]
                continue
            if d and d[1] == "else":
                stack[-1] = [not stack[-1][1], True]
                continue
            if d and d[1] == "endif":
                stack.pop()
                continue
        if all(on for on, _ in stack):
            yield kind, piece, line


# ---- declarations ----


def split(text, by=","):
    """The parts of a list, at depth 0."""
    out, depth, part = [], 0, ""
    for c in text:
        depth += c in "([{"
        depth -= c in ")]}"
        if c == by and depth == 0:
            out.append(part.strip())
            part = ""
        else:
            part += c
    return out + [part.strip()] if part.strip() else out


def members_of(body):
    """(declaration, names, default, comment) of each member of a struct."""
    out = []
    for m in re.finditer(r"((?:[^;{}/]|/(?!\*)|\{[^{}]*\}|/\*.*?\*/)*?);[ \t]*(/\*.*?\*/)?", body, re.S):
        raw = m[1]
        said = [plain(c) for c in COMMENT.findall(raw)] + ([plain(m[2])] if m[2] else [])
        text = " ".join(COMMENT.sub(" ", raw).split())
        text = re.sub(r"TN_LIST_N_\((\w+)\)", r"int \1", text)
        defaults = re.findall(r"(\w+)\s+TN_IS\(([^()]*(?:\([^()]*\))?[^()]*)\)", text)
        text = re.sub(r"\s*TN_IS\([^()]*(?:\([^()]*\))?[^()]*\)", "", text)
        names = re.findall(r"\(\*\s*(?:const\s+)?(\w+)\)", text) or \
            [n for n in (re.findall(r"(\w+)\s*(?:\[[^]]*\]\s*)*$", part) for part in split(text)) for n in n]
        names = [n for n in names if n not in ("zero_", "end_")]
        if names:
            out.append({"type": text, "names": names, "default": dict(defaults),
                        "comment": " ".join(" ".join(said).split())})
    return out


def enumerators(body):
    """(name, value, comment)."""
    out = []
    text = body
    for m in re.finditer(r"\b(TN_\w+)\s*(=\s*[^,/}]+)?\s*(,?)\s*(/\*.*?\*/)?", COMMENT.sub(lambda c: c[0], text), re.S):
        out.append((m[1], (m[2] or "").lstrip("= ").strip(), plain(m[4]) if m[4] else ""))
    return out


def declare(api, header, code, raw, line, lead, tail, section):
    """Adds the names of one declaration. code: without comments."""
    def add(name, kind, **more):
        s = Symbol(name, kind, header, line, raw, lead, tail, section)
        for key, value in more.items():
            setattr(s, key, value)
        api.add(s)
        return s

    flat = " ".join(code.split())
    if flat in ("", "TN_C_BEGIN_", "TN_C_END_"):
        return
    body = re.search(r"\{(.*)\}", raw, re.S)
    m = re.match(r"(typedef )?enum( \w+)? ?\{.*\} ?(\w+)?$", flat)
    if m:
        inner = enumerators(body[1])
        if m[3]:
            add(m[3], "enum", members=[{"type": n, "names": [n], "default": {n: v} if v else {}, "comment": c}
                                       for n, v, c in inner])
        for n, v, c in inner:
            add(n, "constant", owner=m[3] or "", body=v, tail=c or tail)
        return
    m = re.match(r"typedef struct( \w+)? ?\{.*\} ?(?:TN_\w+ )?([\w, ]+)$", flat)
    if m:
        for name in re.split(r",\s*", m[2].strip()):
            add(name, "struct", members=members_of(body[1]))
        return
    m = re.match(r"struct (\w+) ?\{.*\}( TN_\w+)?$", flat)
    if m:
        add(m[1], "struct", members=members_of(body[1]))
        return
    m = re.match(r"typedef .*\(\*(\w+)\)\((.*)\)$", flat)
    if m:
        add(m[1], "callback", params=split(m[2]))
        return
    if flat.startswith("typedef "):
        for name in NAME.findall(flat)[-1 - flat.count(","):]:
            add(name, "type")
        return
    m = re.match(r"(?:TN_API |static inline |extern )(.*?)\b(tn_\w+)\((.*)$", flat)
    if m:
        depth, end = 1, 0
        for end, c in enumerate(m[3]):
            depth += c == "("
            depth -= c == ")"
            if depth == 0:
                break
        params = [p for p in split(m[3][:end]) if p != "void"]
        add(m[2], "function", result=m[1].strip(), params=params, code=raw.strip().replace("TN_API ", "", 1))


def read_header(api, root, header):
    with open(os.path.join(root, header), encoding="utf8") as f:
        text = f.read()
    text = re.sub(r"TN_RETURNS_CONFIG_\(\s*(TN_API.*?;)\s*\)", r"\1", text, flags=re.S)
    api.heads[header] = plain(COMMENT.match(text)[0])
    section = lead = ""
    code = raw = ""
    start, said, fresh, last = 0, [], False, None
    depth = led = 0
    done = []  # the symbols of the last declaration, which a comment after it belongs to

    def finish():
        nonlocal code, raw, said, done, led
        before = len(api.symbols)
        declare(api, header, code.strip().rstrip(";"), raw.strip(), start, lead, " ".join(said), section)
        done = list(api.symbols.values())[before:]
        for s in done:  # a comment belongs to the declaration after it, and may hold for those after that
            s.lead, s.group = (s.lead, "") if led < 1 else ("", s.lead)
        led += len(done)
        code, raw, said = "", "", []

    first = True
    for kind, piece, line in pieces(text):
        if kind == "comment":
            if first:
                first = False
                continue
            heading = re.match(r"/\* ---- (.*?) --+ ?\*(/|\n)", piece)
            if heading:
                section, lead = heading[1], ""
                if heading[2] != "/":
                    api.notes[header, section] = plain(piece[piece.index("\n") + 1:])
            elif code.strip():
                raw += piece
                if depth == 0:
                    said.append(" ".join(plain(piece).split()))
            elif last == line and done:  # on the line of the declaration
                for s in done:
                    if s.kind != "constant" or not s.tail:
                        s.tail = (s.tail + " " + " ".join(plain(piece).split())).strip()
                    s.code += " " + piece if s.kind != "constant" else ""
            else:
                lead, led = plain(piece), 0
            continue
        if kind == "directive":
            m = re.match(r"[ \t]*#[ \t]*define[ \t]+(\w+)(\([^)]*\))?[ \t]*(.*)", piece, re.S)
            if m and m[1].isupper() and m[1].endswith("_"):
                api.forms[m[1]] = [] if header == "core/keywords.h" else split((m[2] or "")[1:-1])
                api.private[m[1]] = " ".join(COMMENT.sub("", m[3]).replace("\\\n", " ").split())
            if m and NAME.match(m[1]) and not (m[1].isupper() and m[1].endswith("_")) and not m[1].startswith("TN__"):
                value = COMMENT.sub("", m[3]).replace("\\\n", " ")
                trailing = [plain(c) for c in COMMENT.findall(m[3])]
                s = Symbol(m[1], "call" if m[2] else "macro", header, line, piece.strip(), lead,
                           " ".join(trailing), section)
                s.params = split(m[2][1:-1]) if m[2] else []
                s.body = " ".join(value.split())
                s.lead, s.group = (lead, "") if led < 1 else ("", lead)
                led += 1
                api.add(s)
                done = [s]
                last = line + piece.count("\n")
            continue
        if kind == "break":
            if not code.strip():
                lead, led, done = "", 0, []
            continue
        if not code.strip() and piece.strip():
            start = line
        for i, c in enumerate(piece):
            depth += c in "({["
            depth -= c in ")}]"
            code += c
            raw += c
            inline = c == "}" and depth == 0 and re.match(r"\s*(static )?inline ", code)
            if depth == 0 and (c == ";" or inline):
                finish()
                last = line + piece[:i].count("\n")
            elif code.strip() in ("TN_C_BEGIN_", "TN_C_END_") and c == "\n":
                code = raw = ""
        if piece == "\n" and not code.strip():
            code = raw = ""


# ---- the sources ----

FUNCTION = re.compile(r"^(?!typedef\b|struct\b|enum\b|#|else\b|case\b|extern\b)[A-Za-z_][^;{}#=()]*?\b(\w+)"
                      r"\(((?:[^;{}()]|\([^;{}()]*\))*)\)\s*\{(.*?)(?:\}[ \t]*$|^\})", re.M | re.S)
RAISES = re.compile(r"\b(?:tn_raise\w*|tn_infer_fail|tn__\w*(?:fail|raise|wrong|error)\w*)\(\s*(?:[^\"();]*?,\s*)?"
                    r"(TN_E[A-Z]+)\s*,\s*((?:%s|\s|PRI\w+)+)" % STRING)


def joined(literals):
    text = "".join(s[1:-1] for s in re.findall(STRING, re.sub(r"PRI\w+", '"d"', literals)))
    return text.replace('\\"', '"').replace("\\n", " ")


class Sources:
    def __init__(self, root):
        self.functions = {}  # name -> [(path, body)]
        self.texts = {}
        for folder in FOLDERS:
            for path in sorted(glob.glob(os.path.join(root, folder, "**", "*.c"), recursive=True)):
                name = os.path.relpath(path, root)
                with open(path, encoding="utf8") as f:
                    text = self.texts[name] = f.read()
                for m in self.split_functions(text):
                    self.functions.setdefault(m[0], []).append((name, m[1]))
                # the public functions that the macros of autograd/rooms/elementwise.h define
                for kind, op in re.findall(r"^TN__(UNARY|STEP|TEST|BINARY)\((\w+)", text, re.M):
                    call = "tn__binary" if kind == "BINARY" else "tn_apply"
                    self.functions.setdefault("tn_" + op, []).append((name, "return %s(&tn__op_%s);" % (call, op)))

    @staticmethod
    def split_functions(text):
        for m in FUNCTION.finditer(text):
            yield m[1], m[3]

    def body(self, name, near=None):
        found = self.functions.get(name, [])
        return next((x for x in found if x[0] == near), found[0] if found and not near else None)

    def callers_of(self, words, api):
        """The (path, name) of functions whose body has one of the words, and of those that call them."""
        callers, found = {}, set()
        macros = {s.name: set(NAME.findall(s.body)) for s in api.symbols.values() if s.kind == "call"}
        for name, bodies in self.functions.items():
            for path, body in bodies:
                called = set(re.findall(r"\b([a-z_]\w*)\b", body))
                called |= {n for m in called & macros.keys() for n in macros[m]}
                if called & words or "tn__blocked" in words and "if (tn_error() != TN_OK" in body:
                    found.add((path, name))
                for callee in called & self.functions.keys():
                    near = [p for p, _ in self.functions[callee] if p == path] or \
                        [p for p, _ in self.functions[callee] if callee.startswith("tn_")]
                    for p in near:
                        callers.setdefault((p, callee), []).append((path, name))
        direct, work = set(found), list(found)
        while work:
            for caller in callers.get(work.pop(), ()):
                if caller not in found:
                    found.add(caller)
                    work.append(caller)
        return direct, found

    def errors(self, name):
        """(code, text) of the errors raised by a function, the static functions that it calls in its file, and the
        private functions that these call."""
        first = self.body(name)
        if not first:
            return []
        out, seen, work = [], {name}, [(first, 0)]
        while work:
            (path, body), depth = work.pop(0)
            for m in RAISES.finditer(body):
                item = (m[1], joined(m[2]))
                if item[1] and item not in out:
                    out.append(item)
            for callee in re.findall(r"\b([a-z_]\w*)\(", body):
                if callee in seen or callee.startswith("tn_") and not callee.startswith("tn__"):
                    continue
                near = self.body(callee, path)
                far = self.body(callee) if depth < 1 and callee.startswith("tn__") else None
                if near or far:
                    seen.add(callee)
                    work.append((near or far, depth + (not near)))
        return out


def synopsis(s, api):
    """How a call with keywords is written: tn_attention(q, k, v, .option = value, …). Otherwise the macro itself."""
    text = s.body
    for name in NAME.findall(s.body):
        text += " " + api.private.get(name, "")
    target = api.symbols.get(s.owner)
    m = re.search(r"TN_(ARGS\d|OF_MODULE|NEW|FILLED)_\((?:tn_\w+_create, )?(tn_\w+),\s*(\w+)(.*)", text)
    form = next((api.forms[n] for n in NAME.findall(s.body) if len(api.forms.get(n, ())) > 1), None)
    if not (m or form) or not target or "__VA_ARGS__" not in text:
        return s.code
    given = [p for p in form or s.params if p != "..."]
    if form:
        pass
    elif m[1].startswith("ARGS"):
        given += [w for w in re.findall(r"\w+", m[4].split("__VA_ARGS__")[0])]
    elif m[1] == "OF_MODULE":
        given.append("module")
    space = "" if target.result.endswith("*") else " "
    return "%s%s%s(%s);" % (target.result, space, s.name, ", ".join(given + [".option = value", "…"]))


def read_ops(root):
    """The facts about each op that the test has measured: see ops.txt."""
    ops = {}
    with open(os.path.join(root, "docs/site/ops.txt"), encoding="utf8") as f:
        for line in f:
            if line.startswith("#"):
                continue
            if " ! " in line:
                op, code, text = line.rstrip("\n").split(" ! ", 2)
                ops[op]["errors"].append((code, text))
            elif line.strip():
                fields = [x.strip() for x in line.split("|")]
                ops[fields[0]] = dict(zip(("inputs", "outputs", "orders", "flags", "autocast", "dtypes", "strides"),
                                          fields[1:]), errors=[])
    return ops


def headers_of(root):
    with open(os.path.join(root, "CMakeLists.txt"), encoding="utf8") as f:
        return re.search(r"set\(TENON_HEADERS\s+(.*?)\)", f.read(), re.S)[1].split()


def read(root):
    api = Api()
    api.headers = headers_of(root)
    for header in api.headers:
        read_header(api, root, header)
    api.sources = sources = Sources(root)
    api.ops = read_ops(root)
    applied = {"tn_apply", "tn_apply_args", "tn_apply_args_", "tn_op_call", "tn_op_apply", "tn_op_apply_"}
    guarded, guarding = sources.callers_of(applied | {"tn__blocked", "tn_module_ready"}, api)
    recording = sources.callers_of(applied, api)[1]
    rooms = {}  # op -> its file
    for path, text in sources.texts.items():
        if path.startswith("autograd/ops/"):
            for op in re.findall(r"\btn__op_(\w+)\s*=", text) + re.findall(r"TN__ROOM\(\"(\w+)\"", text) + \
                    re.findall(r"^TN__(?:UNARY|STEP|TEST|SCALAR|BINARY|OP)\((\w+)", text, re.M):
                rooms.setdefault(op, path)
    for s in api.symbols.values():
        if s.kind != "function":
            continue
        found = sources.body(s.name)
        s.source = found[0] if found else None
        place = (s.source, s.name)
        s.guard = "call" if place in guarded else "inside" if place in guarding else "" if found else "call"
        if re.search(r"[Ww]orks? while an error is set", s.comment + s.group):
            s.guard = ""
        s.records = place in recording
        base = re.sub(r"(_run)?_?$", "", s.name[3:])
        called = re.findall(r"tn__op_(\w+)", found[1]) if found else []
        if base in api.ops and (base in called or not called or s.header == "autograd/ops.h"):
            s.op = base
        elif called and called[0] in api.ops and s.header.startswith("autograd/"):
            s.op = called[0]
        errors = sources.errors(s.name)
        if s.op:
            s.guard = "call"
            s.source = rooms.get(s.op, s.source)
            errors = api.ops[s.op]["errors"] or errors
        s.errors = errors
    for s in api.symbols.values():
        m = re.search(r"_(?:DEFAULTS)$", s.name)
        if s.kind in ("call", "macro") and not m:  # the function that does the work, and the struct of its options
            names = NAME.findall(s.body)
            for name in names + [x for n in names for x in NAME.findall(api.private.get(n, ""))]:
                t = api.symbols.get(name)
                if t and t.kind == "function" and not s.owner:
                    s.owner = name
                    s.op = t.op
                    s.errors, s.source = t.errors, t.source
                    s.synopsis = synopsis(s, api)
                    s.section = t.section if t.header == s.header else s.section
                    t.macros.append(s)
    return api

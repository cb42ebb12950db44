"""The HTML of the site: a page for each name and each header, the pages of docs/, of examples, the cheat sheet."""
import html
import os
import re

import api as reader
import contract
import lessons
import markdown
import summary
from summary import one_line

KIND = {"function": "function", "call": "call (macro)", "macro": "macro", "struct": "struct", "enum": "enumeration",
        "constant": "constant", "callback": "type of a callback", "type": "opaque type"}
ORDER = {"call": 0, "function": 1, "struct": 2, "type": 3, "enum": 4, "callback": 5, "macro": 6, "constant": 7}


def esc(text):
    return html.escape(text, quote=False)


class Site:
    def __init__(self, api, root, out):
        self.api, self.root, self.out = api, root, out
        self.pages = {}  # path in the site -> (title, text of the page)
        self.sources = {}  # a Markdown file -> its page
        self.images = set()
        self.man = []  # (program, what it does)

    # ---- links ----

    def code(self, text, up):
        """Code with each public name linked to its page."""
        def one(m):
            return '<a href="%sapi/%s.html">%s</a>' % (up, m[0], m[0]) if m[0] in self.api.symbols else m[0]
        return reader.NAME.sub(one, esc(text))

    def prose(self, text, up):
        """A comment: paragraphs, lists of lines, and code where it is indented."""
        out = []
        for block in re.split(r"\n\s*\n", text):
            if not block.strip():
                continue
            lines, i = block.split("\n"), 0
            while i < len(lines):
                is_code = lines[i].startswith("    ")
                j = i
                while j < len(lines) and lines[j].startswith("    ") == is_code:
                    j += 1
                part = lines[i:j]
                if is_code:
                    out.append("<pre>%s</pre>" % self.code("\n".join(x[4:] for x in part), up))
                elif any(re.match(r"\s*(-|\d[.])\s", x) for x in part):
                    out.append('<div class="formula">%s</div>' % self.code("\n".join(part), up))
                else:
                    out.append("<p>%s</p>" % self.code(" ".join(x.strip() for x in part), up))
                i = j
        return "\n".join(out)

    # ---- the frame of a page ----

    def add(self, path, title, body, side=""):
        self.pages[path] = (title, body, side)

    def write(self):
        for path, (title, body, side) in self.pages.items():
            up = "../" * path.count("/")
            nav = ('<nav class="side" aria-label="Pages"><details open><summary>Pages</summary>%s</details></nav>' %
                   side.replace('href="%s"' % (up + path), 'class="here" href="%s"' % (up + path))) if side else ""
            text = FRAME % {"title": esc(title), "up": up, "body": body, "nav": nav, "sided": " side" if nav else ""}
            target = os.path.join(self.out, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf8") as f:
                f.write(text)


FRAME = """<!DOCTYPE html>
<html lang="en" data-root="%(up)s">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%(title)s — Tenon</title>
<link rel="stylesheet" href="%(up)ssite.css">
<script src="%(up)snames.js" defer></script>
<script src="%(up)sfind.js" defer></script>
<script src="%(up)ssite.js" defer></script>
</head>
<body>
<header>
<b><a href="%(up)sindex.html">Tenon</a></b>
<a href="%(up)sstart.html">Start</a>
<a href="%(up)sdocs/guide/README.html">Guide</a>
<a href="%(up)sref/index.html">Reference</a>
<a href="%(up)scheatsheet.html">Cheat sheet</a>
<form role="search"><input id="search" type="search" placeholder="Search: how to save a model, nn.Linear …"
aria-label="Search all pages, also by the names of PyTorch" autocomplete="off"><ul id="found"></ul></form>
<button id="theme" type="button" aria-label="Light or dark">◐</button>
</header>
<div class="page%(sided)s">
%(nav)s
<main>
%(body)s
</main>
</div>
</body>
</html>
"""


# ---- the reference ----


def row(head, body):
    return "<tr><th scope=\"row\">%s</th><td>%s</td></tr>" % (esc(head), body)


def symbol_page(site, s):
    api, up = site.api, "../"
    out = ["<h1>%s</h1>" % esc(s.name),
           '<p class="kind">%s in <a href="../ref/%s">%s</a>%s</p>' % (
               " and ".join(KIND[x.kind] for x in [s] + s.also), header_page(s.header), s.header,
               " — " + esc(s.section) if s.section else "")]
    target = api.symbols.get(s.owner) if s.kind == "call" and s.owner else None
    line = one_line(s, api)
    out.append('<p class="lead">%s</p>' % site.code(line, up))
    for one in [s] + s.also:
        code = one.name if one.kind == "constant" and len(one.code) > 800 else one.synopsis or one.code
        out.append("<pre>%s</pre>" % site.code(code, up))
    if target:
        out.append("<pre>%s</pre>" % site.code(target.code, up))
        if s.synopsis != s.code:
            out.append("<details><summary>The macro</summary><pre>%s</pre></details>" % site.code(s.code, up))
    for one in [s, target] + s.also if target else [s] + s.also:
        text = "\n\n".join(x for x in (one.lead, one.tail) if x)
        if text and " ".join(text.split()).rstrip(".").lower() not in line.lower():
            out.append(site.prose(text, up))
    for text in [x for x in (s.group, target.group if target else "") if x][:1]:
        out.append('<details><summary>The comment before this group of declarations</summary>%s</details>' %
                   site.prose(text, up))
    note = api.notes.get((s.header, s.section))
    if note:
        out.append('<details><summary>About this section: %s</summary>%s</details>' % (esc(s.section),
                                                                                     site.prose(note, up)))
    if s.torch:
        out.append("<p>In PyTorch: %s</p>" % ", ".join("<code>%s</code>" % esc(t) for t in s.torch))
    args = options_of(s, target, api)
    if args:
        rows = []
        for m in args.members:
            zero = "" if args.kind == "enum" else zero_of(m["type"], api)
            given = ", ".join("%s: %s" % i for i in m["default"].items()) if len(m["names"]) > 1 else \
                "".join(m["default"].values())
            rows.append("<tr><td><code>%s</code></td><td><code>%s</code></td><td>%s</td></tr>" % (
                site.code(m["type"], up), esc(given or zero),
                site.code(m["comment"], up)))
        is_options = args.name.endswith(("_config", "_args"))
        title = "Values" if args.kind == "enum" else "Options" if is_options else "Members"
        out.append('<h2>%s</h2>%s<div class="wide"><table><thead><tr><th>Member</th><th>%s</th><th>Meaning</th></tr>'
                   '</thead><tbody>%s</tbody></table></div>' % (
                       title, "" if args is s else "<p>Members of %s.</p>" % site.code(args.name, up),
                       "Value" if args.kind == "enum" else "Default", "".join(rows)))
    out.append('<h2>Contract</h2><div class="wide"><table class="contract"><tbody>%s</tbody></table></div>' % "".join(
        row(field, '<div class="formula">%s</div>' % site.code(text, up) if "\n" in text else site.code(text, up))
        for field, text in contract.contract(s, api)))
    if s.errors:
        rows = "".join("<tr><td>%s</td><td>%s</td></tr>" % (site.code(code, up), esc(text)) for code, text in s.errors)
        out.append('<h3>Errors</h3><p class="dim">In the place of %%s, %%d and %%lld there is a name or a number.</p>'
                   '<div class="wide"><table><tbody>%s</tbody></table></div>' % rows)
    if s.example:
        example, text = s.example
        out.append("<h2>Example</h2>")
        if s.level == "near":
            out.append('<p class="dim">The nearest one: it uses a related name.</p>')
        out.append("<pre>%s</pre>" % site.code(text, up))
        if example.output:
            out.append('<p class="dim">Output:</p><pre class="text">%s</pre>' % esc(example.output))
        out.append('<p class="dim">From %s, run by the test %s.</p>' % (esc(example.file), esc(example.ran)))
    near = [x for x in api.symbols.values() if x.section == s.section and x.header == s.header and x is not s]
    related = [api.symbols[n] for n in dict.fromkeys(reader.NAME.findall(s.code + " " + s.comment)) if n in api.symbols
               and n != s.name] + s.macros
    names = list(dict.fromkeys(x.name for x in related + near))[:24]
    if names:
        out.append("<h2>See also</h2><p>%s</p>" % ", ".join('<a href="%s.html">%s</a>' % (n, n) for n in names))
    site.add("api/%s.html" % s.name, s.name, "\n".join(out))


def zero_of(kind, api):
    """How 0 is written for a member of a type."""
    if "*" in kind:
        return "NULL"
    t = api.symbols.get(re.sub(r"^const ", "", kind).split(" ")[0])
    if t:
        return t.members[0]["names"][0] if t.kind == "enum" and t.members else "NULL" if t.kind == "callback" else "{0}"
    return "false" if kind.startswith("bool ") else "0"


def options_of(s, target, api):
    """The struct whose members are the options of a call, or the struct or enum itself."""
    for one in [s] + s.also:
        if one.kind in ("struct", "enum") and one.members:
            return one
    for one in (target, s):
        for param in one.params if one else ():
            t = api.symbols.get(re.sub(r"[ *]*\w+$", "", param))
            if t and t.kind == "struct" and t.name.endswith(("_config", "_args")):
                return t
    return None


def header_page(header):
    return header.replace("/", "_").replace(".h", ".html")


def reference(site):
    api, side = site.api, []
    for header in api.headers:
        names = [s for s in api.symbols.values() if s.header == header]
        out = ["<h1>%s</h1>" % header, site.prose(api.heads[header], "../")]
        sections = {}  # in the order of the header
        for s in names:
            if not (s.kind == "constant" and s.owner) and not s.name.endswith("_DEFAULTS"):
                sections.setdefault(s.section, []).append('<dt><a href="../api/%s.html">%s</a></dt><dd>%s</dd>' % (
                    s.name, s.name, site.code(one_line(s, api), "../")))
        for section, rows in sections.items():
            out.append("<h2>%s</h2>" % esc(section) if section else "")
            out.append('<dl class="names">%s</dl>' % "\n".join(rows))
        site.add("ref/" + header_page(header), header, "\n".join(out))
        line = api.heads[header].split(" — ", 1)[-1].split(". ")[0].split(":")[0]
        side.append('<dt><a href="%s">%s</a></dt><dd>%s (%d names)</dd>' % (
            header_page(header), header, esc(" ".join(line.split())), len(names)))
    count = {k: sum(s.kind == k for s in api.symbols.values()) for k in KIND}
    site.add("ref/index.html", "Reference", "<h1>Reference</h1><p>Everything that <code>&lt;tenon/tenon.h&gt;</code> "
             "declares: %s. Search by Tenon's or PyTorch's names at the top of each page (press /).</p>"
             '<p>A list for programs: <a href="../tenon_api.json">tenon_api.json</a>. On one sheet: the '
             '<a href="../cheatsheet.html">cheat sheet</a>.</p><dl class="names">%s</dl>' % (
                 ", ".join("%d × %s" % (n, KIND[k]) for k, n in count.items() if n), "".join(side)))
    for s in api.symbols.values():
        symbol_page(site, s)


# ---- the pages of docs/ ----


class Link:
    """How a page in Markdown refers to other files."""

    def __init__(self, site, source):
        self.site, self.folder = site, os.path.dirname(source)
        self.up = "../" * site.sources[source].count("/")

    def target(self, link):
        if re.match(r"[a-z]+:|#", link):
            return link
        path, _, part = link.partition("#")
        path = os.path.normpath(os.path.join(self.folder, path))
        found = self.site.sources.get(path) or self.site.sources.get(os.path.join(path, "README.md"))
        if not found and re.fullmatch(r"docs/man/\w+\.1", path):
            found = path[:-2] + ".html"
        if found:
            return self.up + found + ("#" + part if part else "")
        if path in self.site.api.headers:
            return self.up + "ref/" + header_page(path)
        if re.search(r"\.(png|svg)$", path):
            self.site.images.add(path)
            return self.up + path
        return None

    def code(self, text):
        return "<code>%s</code>" % self.site.code(text, self.up)

    def block(self, text, language):
        return self.site.code(text, self.up) if language in ("c", "", "text") else esc(text)


TOP = ("README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "packaging/README.md")


def markdown_pages(site):
    files = [f for f in TOP if os.path.exists(os.path.join(site.root, f))]
    for folder in ("docs", "docs/guide", "docs/adr"):
        there = sorted(os.listdir(os.path.join(site.root, folder)))
        files += ["%s/%s" % (folder, f) for f in there if f.endswith(".md")]
    for f in files:
        site.sources[f] = "index.html" if f == "README.md" else f[:-3] + ".html"
    start = "docs/site/start.md"
    site.sources[start] = "start.html"
    texts = {}
    for f in files + [start]:
        with open(os.path.join(site.root, f), encoding="utf8") as file:
            text = re.sub(r"^\{\{(.*?)\}\}$", lambda m: program(site, m[1]), file.read(), flags=re.M)
        texts[f] = markdown.convert(text, Link(site, f))
    site.titles = {f: t for f, (t, _) in texts.items()}
    guide = guide_side(site, site.titles)
    for path, (title, body, side) in site.pages.items():  # the manual pages
        site.pages[path] = (title, body, guide.replace("@UP@", "../../"))
    for f, (title, body) in texts.items():
        path = site.sources[f]
        up = "../" * path.count("/")
        if f == "README.md":
            body = body.replace("</h1>", "</h1>" + CARDS, 1)
        lesson = os.path.basename(f)[:-3] + ".c"
        if lesson in lessons.TITLES:
            body = body.replace("</h1>", '</h1><p><a href="../../run/%s">Change its numbers and run it in the browser'
                                '</a></p>' % lesson.replace(".c", ".html"), 1)
        is_adr = f.startswith("docs/adr/")
        site.add(path, title or f, body, guide.replace("@UP@", up) if not is_adr else "")


CARDS = """<ul class="cards">
<li><a href="start.html"><strong>Getting started</strong></a><br>Build, the first program, where to go next.</li>
<li><a href="run/readme.html"><strong>Programs that run</strong></a><br>In this browser, with numbers to change.</li>
<li><a href="coming_from_pytorch.html"><strong>Coming from PyTorch</strong></a><br>20 tasks, side by side.</li>
<li><a href="coming_from_ggml.html"><strong>Coming from ggml</strong></a><br>10 tasks, side by side.</li>
<li><a href="mistakes.html"><strong>Mistakes and messages</strong></a><br>What an error says, and what to change.</li>
<li><a href="ref/index.html"><strong>Reference</strong></a><br>Each name with its contract and an example.</li>
<li><a href="cheatsheet.html"><strong>Cheat sheet</strong></a><br>All calls on four sheets.</li>
</ul>"""


def program(site, path):
    """A program of the repository as a block of C, without its first comment."""
    with open(os.path.join(site.root, path), encoding="utf8") as f:
        return "```c\n%s```" % re.sub(r"\A/\*.*?\*/\n", "", f.read(), flags=re.S)


def guide_side(site, titles):
    def items(pairs):
        return "<ul>%s</ul>" % "".join('<li><a href="@UP@%s">%s</a></li>' % (p, esc(t)) for p, t in pairs)
    first = [("start.html", "Getting started"), ("run/readme.html", "Programs that run"),
             ("coming_from_pytorch.html", "Coming from PyTorch"), ("coming_from_ggml.html", "Coming from ggml"),
             ("mistakes.html", "Mistakes and messages")]
    with open(os.path.join(site.root, "docs/guide/README.md"), encoding="utf8") as f:
        order = list(dict.fromkeys("docs/guide/" + m for m in re.findall(r"\]\((\w+\.md)\)", f.read())))
    order = [f for f in order if f in titles] + [f for f in sorted(titles) if f.startswith("docs/guide/") and
                                                 f not in order and not f.endswith("README.md")]
    more = [f for f in titles if f.startswith("docs/") and f.count("/") == 1 and not f.endswith("README.md")]
    more += ["CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "packaging/README.md", "docs/adr/README.md"]
    return items(first) + "Guide" + items([("docs/guide/README.html", "Overview")] + [
        (site.sources[f], titles[f]) for f in order]) + "Programs" + items([
            ("docs/man/%s.html" % n, n) for n, _ in site.man]) + "More" + items([
                (site.sources[f], titles[f]) for f in more])


# ---- pages of examples ----


def words_of(name):
    return name.replace("_", " ").capitalize()


def example_pages(site):
    api = site.api
    mistakes = "%d mistakes and the messages you get" % len(api.examples["mistakes"])
    heads = {"from_pytorch": ("coming_from_pytorch.html", "Coming from PyTorch", "PyTorch", "python"),
             "from_ggml": ("coming_from_ggml.html", "Coming from ggml", "ggml", "c"),
             "mistakes": ("mistakes.html", mistakes, "", "")}
    side = guide_side(site, site.titles).replace("@UP@", "")
    for stem, (path, title, other, _) in heads.items():
        text = api.example_heads[stem]
        text = text[0].upper() + text[1:]
        out = ["<h1>%s</h1><p>%s</p>" % (title, site.code(text, ""))]
        if stem == "from_pytorch":
            out.append('<p>All names: <a href="docs/guide/pytorch.html">PyTorch\'s names and Tenon\'s</a>. '
                       'Differences: <a href="docs/departures.html">where Tenon differs</a>.</p>')
        for e in api.examples[stem]:
            note, _, left = e.note.partition("\n\n")
            left = "\n".join(line[4:] if line.startswith("    ") else line for line in left.split("\n"))
            if other:
                out.append('<h2 id="%s">%s</h2><div class="two"><div><h3>%s</h3><pre>%s</pre></div><div><h3>Tenon</h3>'
                           '<pre>%s</pre></div></div>' % (e.name, esc(note), other, esc(left), site.code(e.text, "")))
                out.append('<p class="dim">It prints:</p><pre class="text">%s</pre>' % esc(e.output))
            else:
                out.append('<h2 id="%s">%s</h2><p>%s</p><pre>%s</pre><p class="dim">The message:</p>'
                           '<pre class="text">%s</pre>' % (
                               e.name, esc(words_of(e.name)), site.code(" ".join(e.note.split()), ""),
                               site.code(e.text, ""), esc(e.output)))
        site.add(path, title, "\n".join(out), side)


# ---- the cheat sheet ----

SHEETS = (("tensors, files, ranks", ("core/", "parallel/")), ("gradients and ops", ("autograd/",)),
          ("modules and training", ("nn/", "optim/")), ("data and models", ("data/", "models/")))


def cheat(line):
    """A line of at most 60 characters: whole, its first clauses, or cut at a word."""
    line = line.rstrip(".")
    if len(line) <= 60:
        return line
    clauses = [m.start() for m in re.finditer(r"[;:,(] ?", line) if 24 < m.start() <= 60 and
               summary.balanced(line[:m.start()])]
    return line[:clauses[-1]].rstrip() if clauses else line[:line.rfind(" ", 0, 58)] + " …"


def cheat_sheet(site):
    """Four sheets: what a user calls, without functions that macros call and without what only tools need."""
    api = site.api
    out = ['<h1 class="noprint">Cheat sheet</h1><p class="noprint">Each call with a line. Printed, it is four '
           'sheets of A3.</p>']
    for title, prefixes in SHEETS:
        out.append('<section class="sheet"><h2>Tenon: %s</h2>' % title)
        for header in api.headers:
            if not header.startswith(prefixes):
                continue
            sections = {}
            for s in api.symbols.values():
                hidden = s.kind == "function" and s.macros or s.kind not in ("function", "call") or s.name.isupper()
                if s.header == header and not hidden:
                    sections.setdefault(s.section, []).append(s)
            for section, names in sections.items():
                out.append("<h3>%s%s</h3>" % (header, esc(": " + section.split(":")[0]) if section else ""))
                for s in names:
                    line = one_line(s, api)
                    out.append('<p><code><a href="api/%s.html">%s</a></code> %s</p>' % (
                        s.name, s.name, esc(cheat(line))))
        out.append("</section>")
    site.add("cheatsheet.html", "Cheat sheet", "\n".join(out))

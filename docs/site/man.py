"""The manual pages of docs/man, mdoc(7) as they use it, to HTML: sections, lists, literal text, options, references.
"""
import html
import os
import re

PUNCTUATION = set(".,:;)]?!")
MACROS = {"Fl", "Ar", "Cm", "Nm", "Op", "Pa", "Xr", "Ql", "Li", "Pq", "Ev", "Dv", "Dq", "Va", "Sx", "Ic", "Fn", "Dl"}
QUOTED = {"Ql": ("‘", "’"), "Pq": ("(", ")"), "Dq": ("“", "”"), "Op": ("[", "]")}


def plain(text):
    text = re.sub(r"\\\((..)", lambda m: {"em": "—", "en": "–"}.get(m[1], ""), text.replace("\\&", ""))
    return html.escape(text.replace("\\-", "-").replace("\\e", "\\").replace("\\ ", "\u00a0"), quote=False)


class Page:
    def __init__(self, name, names):
        self.name, self.names = name, names

    def code(self, text):
        return "<code>%s</code>" % text

    def spans(self, words, i=0):
        """The HTML of words[i:] as a list of (text, sticks): sticks if no space precedes it."""
        out = []
        while i < len(words):
            w = words[i]
            if w in ("Op", "Pq", "Dq", "Ql") and i + 1 < len(words):
                j = len(words)
                while j > i + 1 and words[j - 1] in PUNCTUATION:
                    j -= 1
                left, right = QUOTED[w]
                inner = self.joined(self.spans(words[i + 1:j]))
                out.append((left + (self.code(inner) if w == "Ql" else inner) + right, False))
                i = j
            elif w in MACROS:
                j = i + 1
                while j < len(words) and words[j] not in MACROS and words[j] not in PUNCTUATION and words[j] != "|":
                    j += 1
                part = [plain(x) for x in words[i + 1:j]]
                out.append((self.macro(w, part), False))
                i = j
            else:
                out.append((plain(w), w in PUNCTUATION))
                i += 1
        return out

    def macro(self, w, part):
        if w == "Fl":
            return self.code(" ".join("-" + x for x in part) or "-")
        if w == "Ar":
            return "<var>%s</var>" % (" ".join(part) or "file …")
        if w == "Nm":
            return self.code(" ".join(part) or self.name)
        if w == "Xr":
            text = "%s(%s)" % (part[0], part[1] if len(part) > 1 else "1")
            return '<a href="%s.html">%s</a>' % (part[0], text) if part[0] in self.names else text
        if w in ("Sx", "Dq"):
            return " ".join(part)
        return self.code(" ".join(part))

    @staticmethod
    def joined(spans):
        out = ""
        for text, sticks in spans:
            out += text if sticks or not out or out.endswith("(") else " " + text
        return out

    def line(self, text):
        quoted = re.findall(r'"[^"]*"|\S+', text)
        return self.joined(self.spans([q[1:-1] if q[0] == '"' and len(q) > 1 else q for q in quoted]))

    def convert(self, text):
        out, prose, literal, seen, section = [], [], False, {"search": 1, "found": 1, "theme": 1}, ""

        def flush():
            if prose:
                out.append("<p>%s</p>" % " ".join(prose))
                prose.clear()
        entry = []  # for each open list: is a <dd> open?
        for raw in text.split("\n"):
            if raw.startswith('.\\"') or raw.startswith((".Dd", ".Dt", ".Os")) or not raw and not literal:
                continue
            if literal and not raw.startswith(".Ed"):
                out.append(plain(raw) + "\n")
                continue
            m = re.match(r"\.(\w+) ?(.*)", raw)
            name, rest = (m[1], m[2]) if m else ("", raw)
            if name in ("Sh", "Ss"):
                flush()
                title = rest.strip('"')
                place = re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
                seen[place] = seen.get(place, 0) + 1
                place += "-%d" % seen[place] if seen[place] > 1 else ""
                tag = "h2" if name == "Sh" else "h3"
                section = title if name == "Sh" else section
                title = title.capitalize() if name == "Sh" else title
                out.append('<%s id="%s">%s</%s>' % (tag, place, plain(title), tag))
            elif name == "Pp":
                flush()
            elif name == "Nd":
                prose.append("— " + plain(rest))
            elif name == "Bd" or name == "Dl":
                flush()
                out.append("<pre>" + (plain(rest) + "</pre>" if name == "Dl" else ""))
                literal = name == "Bd"
            elif name == "Ed":
                out.append("</pre>")
                literal = False
            elif name == "Bl":
                flush()
                out.append('<dl class="options">')
                entry.append(False)
            elif name == "It":
                flush()
                out.append("%s<dt>%s</dt><dd>" % ("</dd>" if entry[-1] else "", self.line(rest)))
                entry[-1] = True
            elif name == "El":
                flush()
                out.append("%s</dl>" % ("</dd>" if entry.pop() else ""))
            elif name:
                if name == "Nm" and not rest and section == "SYNOPSIS":  # each form on its line
                    flush()
                prose.append(self.line(raw[1:]))
            else:
                prose.append(plain(raw))
        flush()
        return "\n".join(out).replace("<pre>\n", "<pre>")


def man_pages(site):
    """Adds docs/man/NAME.html for each manual page of a program. Returns their names."""
    folder = os.path.join(site.root, "docs/man")
    names = sorted(f[:-2] for f in os.listdir(folder) if f.endswith(".1"))
    for name in names:
        with open(os.path.join(folder, name + ".1"), encoding="utf8") as f:
            text = f.read()
        body = Page(name, names).convert(text)
        summary = re.search(r"^\.Nd (.*)", text, re.M)[1]
        site.man.append((name, summary))
        site.add("docs/man/%s.html" % name, "%s: %s" % (name, summary),
                 '<h1>%s</h1><div class="man">%s</div>' % (name, body), "@MAN@")
    return names

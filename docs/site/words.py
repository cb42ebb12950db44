"""The index of the search over the text of all pages: words.js, which docs/site/find.js reads.

A unit is a page of the reference, or a section of another page (a command of a manual page). Each word of a unit has a
weight: occurrences, more in titles, saturated and divided by length as in BM25. find.js multiplies it by the rarity of
the word. `stem` is the same function in both files; tests/project/site.sh compares them.
"""
import html
import json
import re
import unicodedata

STOP = set("a about all also am an and any are as at be been but by can did do does for from get got had has have how "
           "i if in into is it its me my no not of on one or our own see so such that the their them then there these "
           "they this to use used uses using want was we what when where which who why will with you your".split())
# Parts of public names, in full.
FULL = {"grad": "gradient", "grads": "gradients", "lr": "learning rate", "init": "initial", "lm": "language model",
        "mha": "multi head attention", "op": "operation operator", "fit": "train training", "config": "options",
        "mlm": "masked language model", "param": "parameter", "params": "parameters", "mul": "multiply",
        "div": "divide", "matmul": "matrix product multiply", "cat": "concatenate", "rope": "rotary positions"}
TITLE, HEADING, SUMMARY, TEXT, CODE = 6, 4, 2, 1, 0.3  # weight of an occurrence


def stem(word):
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and word[-2] not in "sui":
        word = word[:-1]
    if len(word) > 7 and word.endswith("ation"):
        word = word[:-5]
    elif len(word) > 5 and word.endswith("ing"):
        word = word[:-3]
    elif len(word) > 4 and word.endswith("ed"):
        word = word[:-2]
    elif len(word) > 4 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] + "z" if len(word) > 4 and word.endswith("is") else word


def words(text):
    text = unicodedata.normalize("NFKD", text.lower())
    text = "".join(c for c in text if not unicodedata.combining(c))
    return [stem(w) for w in re.findall(r"[a-z0-9]+", text.replace("tn_", " ")) if w not in STOP and len(w) < 25]


def factor(path, title):
    """How likely a newcomer looks for this page."""
    if path.startswith("api/"):
        internal = title.isupper() or re.search(r"_(run|create|args|forward|DEFAULTS)$", title)
        return 0.45 if internal else 0.7 if title.startswith("TN_") or title.endswith("_config") else 1
    if path in ("docs/results.html", "docs/performance.html", "docs/quality.html"):
        return 0.6
    if path.startswith("docs/adr/") or path in ("CHANGELOG.html", "CONTRIBUTING.html", "SECURITY.html"):
        return 0.4
    if path.startswith("docs/guide/"):
        return 0.7 if re.search(r"lectures|key_files|internals|README", path) else 1.5
    if path.startswith("docs/man/"):
        return 1.1
    return 1.3 if path in ("start.html", "index.html", "mistakes.html") else 0.9


def bare(text):
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def sections(path, title, body):
    """(place, heading, text, code) of each section of a page; the first has no heading."""
    parts = re.split(r'<h[23] id="([^"]+)">(.*?)</h[23]>', body)
    if path.startswith("docs/adr/"):
        parts = [re.sub(r"<h[23][^>]*>", " ", body)]
    for i in range(0, len(parts), 3):
        place, heading = (parts[i - 2], bare(parts[i - 1])) if i else ("", "")
        code = " ".join(re.findall(r"<pre.*?</pre>", parts[i], re.S))
        yield place, heading, bare(re.sub(r"<(pre|h1).*?</\1>", " ", parts[i], flags=re.S)), bare(code)


def units_of(site, names):
    """(row for words.js, weights of the words, length): first the names, in the order of names.js, without a row."""
    for s, summary in names:
        full = " ".join(FULL.get(part, "") for part in s.name.lower().split("_"))
        fields = [(s.name, TITLE), (full, TITLE), (" ".join(s.torch), HEADING), (summary, SUMMARY), (s.comment, TEXT),
                  (" ".join(t for _, t in s.errors), CODE)]
        yield None, fields, factor("api/", s.name)
    for path, (title, body, _) in site.pages.items():
        if path.startswith("api/") or path == "cheatsheet.html":
            continue
        for place, heading, text, code in sections(path, title, body):
            shown = "%s › %s" % (title, heading) if heading else title
            cut = text if len(text) < 110 else text[:text.rfind(" ", 0, 108)] + " …"
            fields = [(title, TITLE if not heading else TITLE / 2), (heading, HEADING), (text, TEXT), (code, CODE)]
            yield [shown, path + ("#" + place if place else ""), cut], fields, factor(path, title)


def index(site, names):
    """The text of words.js. names: (symbol, summary) in the order of names.js."""
    rows, postings, all_units = [], {}, list(units_of(site, names))
    sizes = [sum(len(words(t)) for t, w in fields if w >= TEXT) for _, fields, _ in all_units]
    mean = sum(sizes) / len(sizes)
    for unit, ((row, fields, scale), size) in enumerate(zip(all_units, sizes)):
        rows += [row] if row else []
        weight = {}
        for text, w in fields:
            for word in words(text):
                weight[word] = weight.get(word, 0) + w
        for word, w in weight.items():
            value = round(10 * scale * 2.2 * w / (w + 1.2 * (0.6 + 0.4 * size / mean)))
            if value:
                postings.setdefault(word, []).append((unit, value))
    packed = {}
    for word in sorted(postings):  # the distance to the unit before, and the weight, in base 36
        last, out = 0, []
        for unit, value in postings[word]:
            out.append("%s.%s" % (base36(unit - last), base36(value)) if unit - last else "." + base36(value))
            last = unit
        packed[word] = " ".join(out)
    return "const WORDS = %s;\n" % json.dumps({"first": len(names), "rows": rows, "words": packed}, ensure_ascii=False,
                                              separators=(",", ":"))


def base36(n):
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return digits[n] if n < 36 else base36(n // 36) + digits[n % 36]

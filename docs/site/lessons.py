"""README's program and the lessons as pages that run: the numbers of run/constants.txt become fields in the source.

    docs/site/lessons.py DIR     writes the programs for packaging/wasm: each number is a call of page_constant(), which
                                 the page answers; a loss of which the gradient is computed is passed to page_loss();
                                 `main` has the program's name
"""
import base64
import gzip
import html
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBER = r"-?\d[\d.]*(?:e-?\d+)?"
TITLES = {"readme.c": "Fit sin(x)", "01_tensor.c": "1. Tensors", "02_autograd.c": "2. Gradients",
          "03_module.c": "3. Modules", "04_training.c": "4. Training", "05_custom_op.c": "5. A custom op"}
FIELD = re.compile("\x01(\\d+)\x02")


class Lesson:
    """A program: its text with \\x01k\\x02 in place of the number k, and the names and values of the numbers."""

    def __init__(self, root, name):
        self.name, self.stem, self.fields, places = name, name[:-2], [], []
        with open(os.path.join(root, "examples", name), encoding="utf8") as f:
            source = f.read()
        for label, fragments in self.constants():
            values = set()
            for fragment in fragments:
                before, number, after = re.match("(.*)\\{(%s)\\}(.*)" % NUMBER, fragment).groups()
                found = source.count(before + number + after)
                if found != 1:
                    sys.exit("constants.txt: '%s' is %d times in %s, expected once" % (fragment, found, name))
                start = source.index(before + number + after) + len(before)
                values.add(number)
                places.append(((start, start + len(number)), len(self.fields)))
            if len(values) != 1:
                sys.exit("constants.txt: '%s' of %s has the values %s, expected one" % (label, name, sorted(values)))
            self.fields.append((label, values.pop()))
        self.text = source
        for (start, end), k in sorted(places, reverse=True):
            self.text = self.text[:start] + "\x01%d\x02" % k + self.text[end:]

    def constants(self):
        with open(os.path.join(HERE, "run/constants.txt"), encoding="utf8") as f:
            parts = re.split(r"^(\w+\.c)\n", f.read(), flags=re.M)
        rows = parts[parts.index(self.name) + 1].strip().split("\n")
        return [(row.split(" | ")[0], row.split(" | ")[1:]) for row in rows]

    def c(self):
        """The program with calls in place of the numbers."""
        text = FIELD.sub(r"page_constant(\1)", self.text).replace("% page_constant", "% (int)page_constant")
        text = text.replace("tn_backward(loss);", "page_loss(tn_item(loss)), tn_backward(loss);")
        return '#include "page.h"\n#define main main_%s\n%s' % (self.stem, text)


def read(root):
    return [Lesson(root, name) for name in TITLES]


PROGRAM = """#include "page.h"
%s
int main(int argc, char **argv)
{
    (void)argc;
%s    return 2;
}
"""


def write_programs(root, out):
    lessons, declared, chosen = read(root), "", ""
    for lesson in lessons:
        with open(os.path.join(out, lesson.name), "w", encoding="utf8") as f:
            f.write(lesson.c())
        declared += "int main_%s(void);\n" % lesson.stem
        chosen += '    if (!strcmp(argv[0], "%s")) return main_%s();\n' % (lesson.stem, lesson.stem)
    with open(os.path.join(out, "lessons.c"), "w", encoding="utf8") as f:
        f.write(PROGRAM % (declared, chosen))


# ---- pages ----

HOW = """<p class="dim">This copy of the site was made without the compiled programs, so the page cannot run. To make
one that can: <code>pip install ziglang</code>, <code>packaging/wasm build/wasm</code>,
<code>docs/site/build OUT_DIR build/wasm</code>.</p>"""
RUN = """<p class="run"><button id="run" type="button" disabled>Run</button>
<button id="stop" type="button" disabled>Stop</button>%s <span id="state" class="dim" role="status">loading …</span></p>
"""
RESET = ' <button id="reset" type="button">Original numbers</button>'


def field(lesson, k):
    label, value = lesson.fields[k]
    return '<input class="number" data-k="%d" value="%s" size="%d" aria-label="%s" title="%s" spellcheck="false">' % (
        k, value, max(2, len(value)), html.escape(label), html.escape(label))


def page(site, lesson, runs):
    up = "../"
    code = site.code(lesson.text, up)
    if runs:
        code = FIELD.sub(lambda m: field(lesson, int(m[1])), code)
    else:
        code = FIELD.sub(lambda m: lesson.fields[int(m[1])][1], code)
    guide = "" if lesson.stem == "readme" else \
        '<p>The lesson explains it line by line: <a href="%sdocs/guide/%s.html">%s</a>.</p>' % (
            up, lesson.stem, TITLES[lesson.name])
    out = ["<h1>%s</h1>" % TITLES[lesson.name],
           "<p>The program <code>examples/%s</code>, compiled to WebAssembly, runs in this page, without a server. "
           "Change the numbers in its fields.</p>%s" % (lesson.name, guide)]
    if runs:
        out += [RUN % RESET, '<div id="curve"></div><pre id="output" class="text" aria-label="Output"></pre>']
    else:
        out.append(HOW)
    out.append("<pre>%s</pre>" % code)
    if runs:
        out.append(NOTE)
        out.append(scripts("lessons.js", lesson.stem))
    site.add("run/%s.html" % lesson.stem, TITLES[lesson.name], "\n".join(out), links(up))


NOTE = '<p id="bits" class="dim"></p>'


def scripts(data, program):
    return '<script src="wasi.js" defer></script>' \
        '<script src="page.js" defer data-program="%s" data-wasm="%s"></script>' % (program, data)


def links(up):
    rows = [("run/%s.html" % name[:-2], title) for name, title in TITLES.items()]
    rows.append(("run/models.html", "Your own model"))
    return "Programs that run<ul>%s</ul>" % "".join('<li><a href="%s%s">%s</a></li>' % (up, p, t) for p, t in rows)


def add_pages(site, wasm):
    """wasm: the folder that packaging/wasm wrote; None: pages that do not run."""
    for lesson in read(site.root):
        page(site, lesson, wasm is not None)
    with open(os.path.join(HERE, "run/models.html"), encoding="utf8") as f:
        text = f.read()
    has = wasm is not None and os.path.exists(os.path.join(wasm, "models.wasm"))
    text = text.replace("{{run}}", MODELS + NOTE + scripts("models.js", "models") if has else HOW)
    site.add("run/models.html", "Your own model", text, links("../"))


MODELS = """<p class="run"><label>Folder <input id="folder" type="file" webkitdirectory></label>
<label>or files <input id="files" type="file" multiple></label></p>
<p><label for="text">Text</label><textarea id="text" rows="3">Once upon a time</textarea></p>
<p class="run"><label>Tokens <input id="tokens" class="small" value="100" size="4"></label>
<label>Temperature <input id="temperature" class="small" value="0.8" size="4"></label>
<label>Seed <input id="seed" class="small" value="1" size="4"></label></p>
""" + RUN % "" + """<pre id="output" class="text" aria-label="Output"></pre>"""


def write_scripts(wasm, out):
    """The compiled programs, compressed, as scripts: a page of a file cannot read other files."""
    for name in ("wasi.js", "page.js"):
        with open(os.path.join(HERE, "run", name), encoding="utf8") as f, \
                open(os.path.join(out, "run", name), "w", encoding="utf8") as to:
            to.write(f.read())
    for stem in ("lessons", "models"):
        path = os.path.join(wasm, stem + ".wasm")
        if os.path.exists(path):
            with open(path, "rb") as f:
                data = base64.b64encode(gzip.compress(f.read(), 9, mtime=0)).decode()
            with open(os.path.join(out, "run", stem + ".js"), "w", encoding="utf8") as f:
                f.write('loaded("%s");\n' % data)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    write_programs(os.path.dirname(os.path.dirname(HERE)), sys.argv[1])

"""Opens the pages of OUT/run as files in Chromium and runs their programs: see lessons.sh.

    lessons.py OUT FOLDER STORIES    FOLDER has PROGRAM.expected, story.expected, blank.expected and the model bert/
"""
import os
import re
import sys

from browser import Browser

out, folder, stories = map(os.path.abspath, sys.argv[1:4])
PROGRAMS = ("readme", "01_tensor", "02_autograd", "03_module", "04_training", "05_custom_op")
STATE, OUTPUT = "document.getElementById('state').textContent", "document.getElementById('output').textContent"
found = []


def numbers(text):
    return [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?(?:e[-+]\d+)?", text)]


def same(ours, theirs):
    """Equal words, and numbers that differ by at most one in the last digit that a program prints, or 2 %: the
    functions exp, sin and log of another C library round other values of f64."""
    words = [re.sub(r"[-+]?\d[\d.]*(e[-+]\d+)?", "0", t).split() for t in (ours, theirs)]
    pairs = list(zip(numbers(ours), numbers(theirs)))
    return words[0] == words[1] and all(abs(a - b) <= max(0.02 * abs(b), 1.01e-3) for a, b in pairs)


def finish(b, seconds=30):
    b.until("/^(finished|failed|stopped)/.test(%s)" % STATE, seconds)
    return b.ask(STATE)


def click(b, id):
    b.ask("document.getElementById('%s').click()" % id)


def expected(name):
    path = os.path.join(folder, name + ".expected")
    return open(path, encoding="utf8").read() if os.path.exists(path) else None


def lesson(b, name):
    b.open("file://%s/run/%s.html" % (out, name))
    b.until(STATE + " === 'ready'", 20)
    paint = b.ask("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    click(b, "run")
    state = finish(b)
    b.picture(os.path.join(folder, name + ".png"))
    curve = b.ask("document.querySelector('#curve polyline')?.getAttribute('points').split(' ').length || 0")
    b.size(400, 900)
    if b.ask("document.documentElement.scrollWidth > innerWidth"):
        found.append("%s scrolls sideways at 400 pixels" % name)
    print("%s: first paint %.0f ms, %s, %d points" % (name, paint, state, curve))
    text, here = b.ask(OUTPUT), expected(name)
    if not state.startswith("finished") or here is not None and not same(text, here):
        found.append("%s: '%s', and it prints:\n%s\nexpected:\n%s" % (name, state, text, here))
    if paint > 1000:
        found.append("%s: the first paint took %.0f ms, at most 1000" % (name, paint))
    if name == "readme" and float(state.split()[-2]) > 3:
        found.append("README's program took longer than 3 s: %s" % state)
    if (curve < 3) != (name == "01_tensor"):
        found.append("%s: the curve has %d points" % (name, curve))


def change(b, label, value):
    b.ask("""(() => { const f = document.querySelector('.number[aria-label="%s"]'); f.value = '%s';
        f.dispatchEvent(new Event('input')); })()""" % (label, value))


def changes(b):
    """Other numbers, a wrong one, an endless run, multiply-adds that round twice."""
    b.open("file://%s/run/readme.html" % out)
    b.until(STATE + " === 'ready'", 20)
    change(b, "width", "8")
    widths = b.ask("[...document.querySelectorAll('.number')].filter(f => f.value === '8').length")
    change(b, "print every", "100")
    click(b, "run")
    finish(b)
    lines = b.ask(OUTPUT).strip().split("\n")
    if widths != 2 or len(lines) != 11 or expected("readme").split("\n")[1] in lines:
        found.append("other numbers have no effect: %d fields of width, %s" % (widths, lines))
    change(b, "width", "-1")
    click(b, "run")
    if not finish(b).startswith("failed") or "tn_linear" not in b.ask(OUTPUT):
        found.append("a width of -1: '%s' and '%s'" % (b.ask(STATE), b.ask(OUTPUT)))
    change(b, "width", "x")
    click(b, "run")
    if "not a number" not in b.ask(STATE):
        found.append("a width of x: '%s'" % b.ask(STATE))
    click(b, "reset")
    change(b, "steps", "1e12")
    click(b, "run")
    b.until(OUTPUT + ".length > 0", 10)
    click(b, "stop")
    if not finish(b).startswith("stopped"):
        found.append("Stop: '%s'" % b.ask(STATE))
    b.open("file://%s/index.html" % out)
    b.open("file://%s/run/readme.html#plain" % out)
    b.until(STATE + " === 'ready'", 20)
    click(b, "run")
    state = finish(b)
    print("without relaxed SIMD: %s" % state)
    if not same(b.ask(OUTPUT), expected("readme")) or "rounds twice" not in b.ask("document.body.textContent"):
        found.append("without relaxed SIMD: '%s', and it prints:\n%s" % (state, b.ask(OUTPUT)))


def own_model(b, name, selector, paths, text, tokens):
    here = expected(name)
    if here is None:
        print("SKIPPED in part: no %s.expected" % name)
        return
    b.open("file://%s/run/models.html" % out)
    b.until(STATE + " === 'ready'", 20)
    b.choose(selector, paths)
    for id, value in (("text", text), ("tokens", tokens), ("temperature", "0")):
        b.ask("document.getElementById('%s').value = '%s'" % (id, value))
    click(b, "run")
    state = finish(b, 60)
    b.picture(os.path.join(folder, name + ".png"))
    print("%s: %s" % (name, state))
    if not same(b.ask(OUTPUT).strip(), here.strip()):
        found.append("%s: '%s', and it prints:\n%s\nexpected:\n%s" % (name, state, b.ask(OUTPUT), here))


with Browser() as browser:
    for program in PROGRAMS:
        lesson(browser, program)
    changes(browser)
    story = [stories + "/stories260K.bin", stories + "/tok512.bin"]
    own_model(browser, "story", "#files", story, "Once upon a time", "60")
    own_model(browser, "blank", "#folder", [folder + "/bert"], "the cat [MASK] the dog", "0")
sizes = {f: os.path.getsize("%s/run/%s" % (out, f)) for f in ("lessons.js", "models.js", "page.js", "wasi.js")}
lessons = sum(sizes.values()) - sizes["models.js"]
print("lessons: %d bytes in files, %d in base64; models: %d" % (lessons, sizes["lessons.js"], sizes["models.js"]))
if lessons > 600000:
    found.append("the pages of the lessons load %d bytes, at most 600000" % lessons)
for f in found:
    print(f)
sys.exit(len(found) > 0)

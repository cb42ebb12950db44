#!/usr/bin/env bash
# docs/site/build: the reference has a page, a contract and an example for each public name, also for those that the
# compiler sees in the headers; no link is broken, pages are well-formed, the search finds names of Tenon and PyTorch.
# The code of the pages in docs/site/examples prints what outputs.txt records, and the facts about ops in ops.txt are
# those of the registry; `site.sh --fix` writes both files. With node: the search answers each question of
# docs/site/questions.txt in its first three results. In Chromium, if installed: five pages at 400, 800 and 1300
# pixels, light and dark, do not scroll sideways and have enough contrast, and the cheat sheet prints as four pages.
. "$(dirname "$0")/common.sh"
need python3
fresh site
program=$build/bin/tests/site_examples
[ -x "$program" ] || { echo "SKIPPED: site_examples is not built" && exit 77; }
recorded=$root/docs/site

mkdir run
(cd run && "$program" 2>&1 && "$program" ops >../ops) | sed 's/[[:blank:]]*$//' >outputs || wrong "site_examples fails"
sed -i 's/[[:blank:]]*$//; s/  */ /g' ops
sed -i '1i # op | inputs | results | derivatives | forms | autocast | dtypes | strides; op ! error ! text. Written by\
# tests/project/site.sh --fix from the registry of ops.' ops
if [ "${1:-}" = --fix ]; then
    cp outputs "$recorded/examples/outputs.txt"
    cp ops "$recorded/ops.txt"
fi
grep -q '^==== mistakes ' outputs || wrong "the examples were not run: $(head -n 3 outputs)"
! grep -B3 '^error that the example does not show' outputs || wrong "an example raises an error"
diff "$recorded/examples/outputs.txt" outputs >difference ||
    wrong "examples do not print outputs.txt; if they are right, run tests/project/site.sh --fix: $(head difference)"
diff "$recorded/ops.txt" ops >difference ||
    wrong "ops.txt differs from the registry; run tests/project/site.sh --fix: $(head difference)"

"$recorded/build" "$PWD/out" >log 2>&1 || { wrong "docs/site/build fails: $(tail -n 5 log)" && exit 1; }

# The names that the preprocessor sees, without those that only headers use.
echo '#include <tenon/extras.h>' >all.c
"${CC:-cc}" -std=c11 -E -dD -I "$build/include" all.c >all.i
awk -v root="$root" -f "$root/tests/project/names.awk" all.i | awk '{ print $2 }' |
    grep -E '^(tn|TN)_[A-Za-z0-9]' | grep -vE '^(TN|tn)_.*_$|_class$' | sort -u >seen

cat >check.py <<'END'
import collections, html.parser, json, os, re, sys
out, seen = sys.argv[1], set(open(sys.argv[2]).read().split())
wrong = []
api = json.load(open(os.path.join(out, "tenon_api.json"), encoding="utf8"))
names = {n["name"]: n for n in api["names"]}
for name in sorted(seen - set(names)):
    wrong.append("%s is declared, but not in tenon_api.json" % name)
FIELDS = {"function": ("Result", "Tape", "Dtypes", "Strides", "In place", "Threads", "Errors", "Determinism", "Formula",
                       "Differences from PyTorch")}
FIELDS["call"] = FIELDS["function"]
for name, n in sorted(names.items()):
    page = os.path.join(out, "api", name + ".html")
    text = open(page, encoding="utf8").read() if os.path.exists(page) else ""
    if not text:
        wrong.append("%s has no page" % name)
        continue
    fields = FIELDS.get(n["kind"], ("Result", "Threads", "Errors"))
    if n["kind"] == "call" and not n["function"]:
        fields = ("Result", "Threads", "Errors")
    for field in fields:
        if not n["contract"].get(field) or ">%s</th>" % field not in text:
            wrong.append("%s: the contract says nothing about: %s" % (name, field))
    if name not in ("TN_API", "TN_MODULE") and ("example" not in n or "<h2>Example</h2>" not in text):
        wrong.append("%s has no example: no lesson, program, unit test or page uses it" % name)
    if "op" in n and not n.get("errors") and n["contract"]["Dtypes"].endswith("rejected."):
        wrong.append("%s rejects dtypes, but lists no error" % name)
levels = collections.Counter((n.get("example") or {}).get("level") for n in names.values())
print("%d names; examples: %s" % (len(names), ", ".join("%s %d" % i for i in sorted(levels.items(), key=str))))
VOID = {"meta", "link", "input", "br", "img", "hr"}
class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.path, self.open, self.links, self.ids, self.faults, self.text = path, [], [], set(), [], 0
    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if a.get("id") and a["id"] in self.ids:
            self.faults.append("id %s twice" % a["id"])
        self.ids.add(a.get("id"))
        for key in ("href", "src"):
            if key in a:
                self.links.append(a[key])
        if tag == "img" and not a.get("alt"):
            self.faults.append("an image without a text")
        if tag == "p" and "p" in self.open or tag in ("div", "pre", "table", "ul", "h2") and "p" in self.open:
            self.faults.append("<%s> inside <p>" % tag)
        if tag not in VOID:
            self.open.append(tag)
    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append("</%s> closes another element" % tag)

pages = {}
for folder, _, files in os.walk(out):
    for f in files:
        if f.endswith(".html"):
            path = os.path.relpath(os.path.join(folder, f), out)
            p = pages[path] = Page(path)
            p.feed(open(os.path.join(out, path), encoding="utf8").read())
            if p.open:
                p.faults.append("<%s> is not closed" % p.open[-1])
for path, p in sorted(pages.items()):
    wrong += ["%s: %s" % (path, f) for f in p.faults[:3]]
    for link in p.links:
        if re.match(r"(https?|mailto):", link):
            if not re.search(r"href=\"%s\"" % re.escape(link), open(os.path.join(out, path)).read()):
                wrong.append("%s loads %s" % (path, link))
            continue
        target, _, part = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(os.path.join(out, target)):
            wrong.append("%s: broken link to %s" % (path, link))
        elif part and target in pages and part not in pages[target].ids:
            wrong.append("%s: no place %s" % (path, link))
outside = [l for p in pages.values() for l in p.links if re.match(r"https?:.*\.(js|css|woff2?)$", l)]
wrong += ["a page loads %s" % l for l in outside]

script = open(os.path.join(out, "names.js"), encoding="utf8").read()
rows = json.loads(script[len("const NAMES = "):].rstrip().rstrip(";"))
if {r[0] for r in rows} != set(names):
    wrong.append("the search knows other names than tenon_api.json")
torch = {t for r in rows for t in r[3]}
for ours, theirs in (("tn_gelu", "torch.nn.functional.gelu"), ("tn_linear_new", "torch.nn.Linear"),
                     ("tn_adamw_new", "torch.optim.AdamW"), ("tn_seed", "torch.manual_seed")):
    if not any(r[0] == ours and theirs in r[3] for r in rows):
        wrong.append("the search does not find %s as %s" % (ours, theirs))
for line in open(sys.argv[3], encoding="utf8"):
    if line.strip() and not line.startswith("#") and line.split()[0] not in names:
        wrong.append("pytorch.txt: there is no %s" % line.split()[0])
for page, least in (("coming_from_pytorch.html", 20), ("coming_from_ggml.html", 10), ("mistakes.html", 20)):
    text = open(os.path.join(out, page), encoding="utf8").read()
    if text.count("<h2 id=") < least or '<pre class="text"></pre>' in text:
        wrong.append("%s has %d of %d parts with output" % (page, text.count("<h2 id="), least))
print("%d pages, %d links, %d names of PyTorch" % (len(pages), sum(len(p.links) for p in pages.values()), len(torch)))
print("".join("! %s\n" % w for w in wrong), end="")
END
# Each name has a sentence, which no other name has, and each option a meaning.
summaries() # FOLDER: of docs/site
{
    PYTHONDONTWRITEBYTECODE=1 python3 -c 'import sys; sys.path.insert(0, sys.argv[1])
import api, summary
names = api.read(sys.argv[2])
summary.load(names, sys.argv[2], sys.argv[1])
print("\n".join(summary.wrong(names)), end="")' "$1" "$root"
}
findings < <(summaries "$recorded" | head -n 20)
cp -r "$recorded" planted_site
sed -i 's/^tn_version .*/tn_version "0.2.0"; all/; s/^tn_ones /tn_onse /' planted_site/summaries.txt
sed -i 's/^beta1 /beta7 /' planted_site/meanings.txt
summaries planted_site >said
for fault in 'tn_version has no sentence' 'tn_onse does not exist' 'tn_adam_config.beta1, beta2 has no meaning' \
    'no option needs beta7'; do
    grep -q "$fault" said || wrong "site.sh does not see a fault that was planted: $fault"
done

python3 check.py out seen "$recorded/pytorch.txt" >said || wrong "check.py fails: $(cat said)"
grep -v '^!' said || true
findings < <(sed -n 's/^! //p' said | head -n 40)

# The search over the text of all pages: 30 questions, with typos, and words that no page has.
size=$(gzip -c out/words.js | wc -c)
[ "$size" -lt 300000 ] || wrong "the index of the search, words.js, has $size bytes in gzip, more than 300,000"
if command -v node >/dev/null; then
    cat >ask.js <<'END'
const fs = require('fs'), vm = require('vm'), [out, asked] = process.argv.slice(2);
const code = ['names.js', 'words.js', 'find.js'].map(f => fs.readFileSync(out + '/' + f, 'utf8')).join('\n');
const site = vm.runInContext(code + ';({ search, stem, asked })', vm.createContext({}));
const pages = query => site.search(query).map(e => e[1].split('#')[0]);
const swapped = word => word.length < 6 ? word : word.slice(0, 2) + word[3] + word[2] + word.slice(4);
let good = 0, typos = 0, all = 0;
for (const line of fs.readFileSync(asked, 'utf8').split('\n').filter(l => l && l[0] !== '#')) {
    const [query, list] = line.split(' | '), right = list.split(' ');
    if (!right.some(p => fs.existsSync(out + '/' + p))) console.log('! no page of an answer exists: ' + query);
    all++;
    if (pages(query).slice(0, 3).some(p => right.includes(p))) good++;
    else console.log('! "' + query + '" finds: ' + pages(query).slice(0, 5).join(' '));
    if (pages(query.split(' ').map(swapped).join(' ')).slice(0, 3).some(p => right.includes(p))) typos++;
}
console.log('search: ' + good + ' of ' + all + ' questions; with two letters of each long word swapped: ' + typos);
if (all < 30) console.log('! only ' + all + ' questions');
if (typos < all * 0.75) console.log('! with typos only ' + typos + ' questions are answered');
if (site.search('zzxqywv').length) console.log('! a word that no page has finds something');
for (const line of fs.readFileSync('stems', 'utf8').trim().split('\n')) {
    const [word, stem] = line.split(' ');
    if (site.stem(word) !== stem)
        console.log('! find.js: ' + word + ' is ' + site.stem(word) + ', in words.py ' + stem);
}
END
    PYTHONDONTWRITEBYTECODE=1 python3 - "$recorded" "$root/README.md" >stems <<'END'
import re, sys
sys.path.insert(0, sys.argv[1])
import words
for w in sorted(set(re.findall("[a-z]+", open(sys.argv[2], encoding="utf8").read().lower()))):
    print(w, words.stem(w))
END
    node ask.js out "$recorded/questions.txt" >said || wrong "ask.js fails: $(cat said)"
    grep -v '^!' said || true
    findings < <(sed -n 's/^! //p' said | head -n 20)
    sed 's#docs/guide/train_your_own_gpt.html#start.html#' "$recorded/questions.txt" >other # a fault that is planted
    node ask.js out other | grep -q '^! "train my own gpt" finds' || wrong "ask.js does not see a wrong answer"
else
    echo "SKIPPED in part: node is not installed, so no question was asked"
fi

if command -v mandoc >/dev/null; then
    findings < <(find out/man3 -name '*.3' -print0 | xargs -0 mandoc -T lint -W warning 2>&1 | head -n 10 || true)
fi

# Test of the check: faults planted in a copy must be found.
mkdir -p planted/api
cp out/names.js out/tenon_api.json out/*.html planted/
cp out/api/tn_re*.html planted/api/
sed -i 's/>Threads</>Thread</; s/href="tn_exp.html"/href="tn_exq.html"/; s/<\/main>//' planted/api/tn_relu.html
echo tn_nowhere >>seen
python3 check.py planted seen "$recorded/pytorch.txt" >said || true
for fault in 'tn_gelu has no page' 'tn_relu: the contract says nothing about: Threads' 'broken link to tn_exq.html' \
    'tn_nowhere is declared' 'closes another element'; do
    grep -qF "$fault" said || wrong "site.sh does not see a fault that was planted: $fault"
done

if ! command -v chromium >/dev/null; then
    echo "SKIPPED in part: chromium is not installed, so no page was looked at"
    exit $wrong
fi
cat >asked.js <<'END'
window.addEventListener('load', () => setTimeout(() => {
    const page = document.documentElement, said = [];
    const light = c => { const v = c.match(/[\d.]+/g).slice(0, 3).map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 :
        Math.pow((x + 0.055) / 1.055, 2.4)); return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
    const back = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
        if (!/, 0\)$|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
    if (page.scrollWidth > innerWidth) said.push('scrolls sideways: ' + page.scrollWidth);
    for (const e of document.querySelectorAll('main p, main a, main td, main th, main pre, main h1, .dim, header a')) {
        if (!e.getClientRects().length) continue;
        const a = light(getComputedStyle(e).color), b = light(back(e));
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) { said.push('contrast ' + contrast.toFixed(1) + ' of ' + e.tagName); break; }
    }
    for (const [query, name] of [['torch.nn.functional.gelu', 'tn_gelu'], ['nn.Linear', 'tn_linear_new'],
        ['tn_softmax', 'tn_softmax'], ['AdamW', 'tn_adamw_new']]) {
        const first = search(query).slice(0, 4).map(e => e[0]);
        if (!first.includes(name)) said.push('search ' + query + ': ' + first);
    }
    if (document.querySelector('.sheet')) { /* as it is printed, on A3 */
        for (const rule of [...document.styleSheets[0].cssRules].filter(r => r.conditionText === 'print'))
            for (const inner of rule.cssRules) if (inner.selectorText)
                document.styleSheets[0].insertRule(inner.cssText, document.styleSheets[0].cssRules.length);
        for (const sheet of document.querySelectorAll('.sheet'))
            if (sheet.scrollWidth > sheet.clientWidth + 1 || sheet.clientWidth > 1525)
                said.push(sheet.firstChild.textContent + ': ' + sheet.scrollWidth + ' of ' + sheet.clientWidth);
    }
    field.value = 'layer_norm', field.dispatchEvent(new Event('input'));
    if (!found.querySelector('a')) said.push('the search shows nothing');
    document.title = 'said ' + (said.join('; ') || 'fine');
}, 50));
END
cd out
script=$(tr '\n' ' ' <../asked.js | sed 's/[&,\\]/\\&/g')
views=(index.html api/tn_attention.html coming_from_pytorch.html docs/guide/01_tensor.html ref/autograd_ops.html)
{
    echo '<title>wait</title><script>const all = []; let left = 0;'
    echo "function asked(url, width, theme) { left++; const f = document.createElement('iframe');"
    echo "f.style = 'border:0;height:900px;width:' + width + 'px'; f.src = url; document.documentElement.append(f);"
    echo "f.onload = () => { f.contentDocument.documentElement.dataset.theme = theme; setTimeout(() => {"
    echo "all.push(url + ' ' + width + ' ' + theme + ': ' + f.contentDocument.title);"
    echo "if (!--left) document.title = all.join(' | '); }, 400); }; }"
    for page in "${views[@]}"; do
        for width in 400 800 1300; do
            for theme in light dark; do
                sed "s/<html /<html data-theme=\"$theme\" /; s,</head>,<script>$script</script></head>," "$page" \
                    >"${page%.html}-$theme.html"
                echo "asked('${page%.html}-$theme.html', $width, '$theme');"
            done
        done
    done
    sed "s,</head>,<script>$script</script></head>," cheatsheet.html >sheet.html
    echo "asked('sheet.html', 1519, 'light');" # 402 millimetres
    echo '</script>'
} >frame.html
chromium --headless --no-sandbox --disable-gpu --allow-file-access-from-files --virtual-time-budget=20000 \
    --dump-dom "file://$PWD/frame.html" 2>/dev/null | sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p' |
    tr '|' '\n' >../viewed
[ "$(grep -c 'said fine' ../viewed)" = 31 ] || wrong "in Chromium: $(grep -v 'said fine' ../viewed | head -n 5)"
chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf=sheet.pdf \
    "file://$PWD/cheatsheet.html" 2>/dev/null || true
sheets=$(grep -ac '/Type */Page\b' sheet.pdf || true)
[ "$sheets" = 4 ] || wrong "the cheat sheet has $sheets pages, expected 4"
exit $wrong

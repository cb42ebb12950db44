#!/usr/bin/env bash
# Pages in a browser (Chromium, without a network): on a page 400 pixels wide, no letter of a figure has fewer than 10
# pixels and the page does not scroll sideways; every figure has a name. The script shows values under the pointer, and
# the head that is clicked. The page's policy allows no other script (test_report checks that it allows its own).
. "$(dirname "$0")/common.sh"
need chromium
fresh pages
test=$build/bin/tests/test_report
[ -x "$test" ] || { echo "SKIPPED: test_report is not built" && exit 77; }
CK_FORK=no TENON_TEST_REPORT=$PWD/page.html "$test" >/dev/null || wrong "test_report fails"

cat >asked.js <<'END'
window.addEventListener('load', () => {
    const said = [], page = document.documentElement;
    const small = [...document.querySelectorAll('svg text')].filter(t => t.getClientRects().length).map(t => {
        const m = t.getScreenCTM();
        return parseFloat(getComputedStyle(t).fontSize) * Math.hypot(m.c, m.d);
    });
    said.push('letters ' + (Math.min(...small) >= 10 ? 'fine' : Math.min(...small)));
    said.push('width ' + (page.scrollWidth > innerWidth ? page.scrollWidth : 'fine'));
    said.push('names ' + document.querySelectorAll('svg[role]:not([aria-label])').length);
    const plot = document.querySelector('svg.v'), box = plot.getBoundingClientRect();
    const values = () => [...plot.parentNode.querySelectorAll('output')].map(o => o.textContent.trim()).join(' ');
    said.push('before ' + values());
    plot.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width / 2, clientY: box.top + 9}));
    said.push('after ' + values());
    const heads = document.querySelectorAll('.b'), large = document.querySelector('[data-a]');
    heads[1].dispatchEvent(new MouseEvent('click'));
    said.push('head ' + large.closest('figure').querySelector('output').textContent + ', ' +
        (large.querySelectorAll('path').length > 20));
    const map = document.querySelector('svg.map'), near = () => map.parentNode.querySelector('output').textContent;
    const search = map.parentNode.querySelector('input');
    [...map.querySelectorAll('.b')].find(b => b.textContent === 'keys').dispatchEvent(new MouseEvent('click'));
    said.push('near ' + near() + ', ' + map.querySelectorAll('.u').length);
    search.value = 'ta', search.dispatchEvent(new Event('input'));
    said.push('search ' + near() + ', ' + !search.parentNode.hidden);
    document.title = said.join('; ');
});
END
# asked WIDTH SED: the title that the questions give a page of this width; the page, changed by SED, is in a frame
asked()
{
    sed -e "$2" page.html | grep -v '^</html>' >asked.html
    { echo '<script>' && cat asked.js && echo '</script></html>'; } >>asked.html
    echo "<iframe id=f src=asked.html style='border:0;width:$1px;height:900px'></iframe><script>
        window.onload = () => setTimeout(() => document.title = f.contentDocument.title, 200)</script>" >frame.html
    chromium --headless --no-sandbox --disable-gpu --allow-file-access-from-files --virtual-time-budget=5000 \
        --dump-dom "file://$PWD/frame.html" 2>/dev/null | sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p'
}
all='letters fine; width fine; names 0; before –; after 2.093 2.212 1500; head layer 1, head 2, true; '
all+='near keys: to 0.75, the 0.50, 3; search 1 of 12 words, true'
for width in 400 800 1300; do
    said=$(asked $width '/Content-Security-Policy/d')
    [ "$said" = "$all" ] || wrong "at $width pixels: '$said'"
done
said=$(asked 400 's/x/x/')
[ -z "$said" ] || [ "$said" = "A small BERT" ] || wrong "the page runs a foreign script: '$said'"
exit $wrong

// The search box, whose results find.js makes, the menu on a narrow screen, and the choice of a light or dark page.
'use strict';
const root = document.documentElement, field = document.getElementById('search');
const found = document.getElementById('found');
function note(text) {
    const item = document.createElement('li');
    item.className = 'note', item.textContent = text;
    return item;
}
function show() {
    const results = search(field.value);
    if (field.value.trim() && !results.length) {
        found.replaceChildren(note('Nothing found for “' + field.value.trim() + '”. Try other or fewer words.'));
        return;
    }
    found.replaceChildren(...results.map(e => {
        const item = document.createElement('li'), link = document.createElement('a');
        const small = document.createElement('small');
        link.href = root.dataset.root + e[1];
        link.textContent = e[0];
        small.textContent = [e[3].join(', '), e[2]].filter(Boolean).join(' — ');
        link.append(small);
        item.append(link);
        return item;
    }));
}
// The index of the text of all pages is loaded when it is needed.
function load() {
    if (document.getElementById('words')) return;
    const script = document.createElement('script');
    script.id = 'words', script.src = root.dataset.root + 'words.js', script.onload = show;
    document.head.append(script);
}
field.addEventListener('focus', load);
field.addEventListener('input', () => { load(), show(); });
field.form.addEventListener('submit', event => {
    event.preventDefault();
    const first = found.querySelector('a');
    if (first) location.href = first.href;
});
document.addEventListener('keydown', event => {
    if (event.key === '/' && document.activeElement !== field) { event.preventDefault(); field.focus(); }
    if (event.key === 'Escape') { field.value = ''; show(); field.blur(); }
});
// On a narrow screen the list of pages is a closed menu above the page; without this script it is open, below it.
const side = document.querySelector('nav.side');
if (side && innerWidth < 1000) side.classList.add('menu'), side.querySelector('details').open = false;
document.getElementById('theme').addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' :
        matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    try { localStorage.setItem('theme', root.dataset.theme); } catch (e) { /* a page of a file may have no storage */ }
});
try {
    if (localStorage.getItem('theme')) root.dataset.theme = localStorage.getItem('theme');
} catch (e) { /* a page of a file may have no storage */ }

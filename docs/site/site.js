// Search by Tenon's and PyTorch's names, and the choice of a light or dark page. NAMES is in names.js: for each name
// [name, page, one line, PyTorch's names].
'use strict';
const root = document.documentElement, field = document.getElementById('search');
const found = document.getElementById('found');
const plain = text => text.toLowerCase()
    .replace(/^(torch|nn|f|optim|tensor|functional|init|utils|lr_scheduler)\.(?=.)/g, '').replace(/^tn_/, '')
    .replace(/[^a-z0-9]/g, '');
function last(text) { return plain(text.split('.').pop()); }
function rank(query, entry) { // smaller is better; 0: no match
    const q = last(query), name = plain(entry[0]);
    if (!q) return 0;
    if (entry[0].toLowerCase() === query.toLowerCase()) return 1;
    if (entry[3].some(t => t.toLowerCase() === query.toLowerCase())) return 2;
    if (entry[3].some(t => last(t) === q)) return 3;
    if (name === q) return 4;
    if (name.startsWith(q)) return 5 + name.length / 100;
    if (name.includes(q)) return 7 + name.length / 100;
    return entry[3].some(t => plain(t).includes(q)) ? 9 : 0;
}
function search(query) {
    return NAMES.map(e => [rank(query.trim(), e), e]).filter(r => r[0]).sort((a, b) => a[0] - b[0] || a[1][0].length -
        b[1][0].length).slice(0, 30).map(r => r[1]);
}
function show() {
    found.replaceChildren(...search(field.value).map(e => {
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
field.addEventListener('input', show);
field.form.addEventListener('submit', event => {
    event.preventDefault();
    const first = found.querySelector('a');
    if (first) location.href = first.href;
});
document.addEventListener('keydown', event => {
    if (event.key === '/' && document.activeElement !== field) { event.preventDefault(); field.focus(); }
    if (event.key === 'Escape') { field.value = ''; show(); field.blur(); }
});
document.getElementById('theme').addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' :
        matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    try { localStorage.setItem('theme', root.dataset.theme); } catch (e) { /* a page of a file may have no storage */ }
});
try {
    if (localStorage.getItem('theme')) root.dataset.theme = localStorage.getItem('theme');
} catch (e) { /* a page of a file may have no storage */ }

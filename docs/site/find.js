// The search: NAMES (names.js) are the public names, [name, page, one line, PyTorch's names]; WORDS (words.js) is the
// index of the words of all pages, which docs/site/words.py explains. No DOM here: a test runs this file in node.
'use strict';
const STOP = new Set(('a about all also am an and any are as at be been but by can did do does for from get got had ' +
    'has have how i if in into is it its me my no not of on one or our own see so such that the their them then there ' +
    'these they this to use used uses using want was we what when where which who why will with you your').split(' '));
// Words that a newcomer uses for those of the pages.
const ALIKE = { download: ['getting'], install: ['build'], compil: ['build'], setup: ['start', 'build'],
    picture: ['image'], photo: ['image'], visualiz: ['draw', 'look'], visualis: ['draw', 'look'], plot: ['draw', 'report'],
    crash: ['error', 'mistake'], bug: ['mistake'], meaning: ['message'], exception: ['error'],
    finetun: ['tun'], classify: ['classifier', 'classific'], classific: ['classify'], classifier: ['classify'],
    hf: ['hugging'], huggingface: ['hugging', 'face'], ram: ['memory'], cpu: ['thread'], core: ['thread'],
    gpu: ['portability', 'cpu'], speed: ['fast'], slow: ['fast', 'speed'], continu: ['resume'], restart: ['resume'],
    force: ['rule', 'constrain', 'constraint'], computer: ['machine'], machin: ['cluster', 'process'],
    node: ['cluster'], server: ['host'], numpy: ['python'], store: ['sav'], writ: ['custom'], layer: ['modul'],
    operator: ['op'], similar: ['cosin'], reproducibl: ['bit', 'seed'], determinist: ['bit'] };
const plain = text => text.toLowerCase()
    .replace(/^(torch|nn|f|optim|tensor|functional|init|utils|lr_scheduler)\.(?=.)/g, '').replace(/^tn_/, '')
    .replace(/[^a-z0-9]/g, '');
const last = text => plain(text.split('.').pop());
function rank(query, entry) { // of a name; smaller is better; 0: no match
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
function named(query, most) { // the names that match: [rank, entry]
    return /\s/.test(query.trim()) ? [] : NAMES.map(e => [rank(query.trim(), e), e])
        .filter(r => r[0] && r[0] < most).sort((a, b) => a[0] - b[0] || a[1][0].length - b[1][0].length);
}
function stem(word) { // as in words.py
    const end = (n, s) => word.length > n && word.endsWith(s);
    if (end(4, 'ies')) word = word.slice(0, -3) + 'y';
    else if (end(3, 's') && !'sui'.includes(word.at(-2))) word = word.slice(0, -1);
    if (end(7, 'ation')) word = word.slice(0, -5);
    else if (end(5, 'ing')) word = word.slice(0, -3);
    else if (end(4, 'ed')) word = word.slice(0, -2);
    else if (end(4, 'e')) word = word.slice(0, -1);
    if (word.length > 4 && word.at(-1) === word.at(-2) && !'lsz'.includes(word.at(-1))) word = word.slice(0, -1);
    return end(4, 'is') ? word.slice(0, -1) + 'z' : word;
}
function asked(query) { // the words of a query, stemmed
    const found = query.toLowerCase().normalize('NFKD').replace(/[\u0300-\u036f]/g, '').replaceAll('tn_', ' ')
        .match(/[a-z0-9]+/g) || [];
    const kept = found.filter(w => !STOP.has(w));
    return [...new Set((kept.length ? kept : found).map(stem))];
}
function distance(a, b, most) { // edits, a swap of neighbours counted as one; above most: most + 1
    let before = [], row = [...Array(b.length + 1).keys()];
    for (let i = 1; i <= a.length; i++) {
        const next = [i];
        let least = i;
        for (let j = 1; j <= b.length; j++) {
            next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] !== b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
                next[j] = Math.min(next[j], before[j - 2] + 1);
            least = Math.min(least, next[j]);
        }
        if (least > most) return most + 1;
        before = row, row = next;
    }
    return row[b.length];
}
function meant(word) { // words of the index and how well they match: [[word, 0..1]]
    const list = WORDS.words, out = [];
    if (list[word] !== undefined) out.push([word, 1]);
    for (const other of ALIKE[word] || []) if (list[stem(other)] !== undefined) out.push([stem(other), 0.6]);
    if (out.length || word.length < 3) return out;
    const most = word.length < 5 ? 1 : 2;
    for (const other in list) {
        if (other.startsWith(word)) out.push([other, 0.8]);
        else if (Math.abs(other.length - word.length) <= most) {
            const d = distance(word, other, most);
            if (d <= most) out.push([other, d === 1 ? 0.6 : 0.3]);
        }
    }
    const best = Math.max(0, ...out.map(m => m[1]));
    return out.filter(m => m[1] >= best / 1.5).slice(0, 20);
}
function textual(query) { // units by score: [[unit, score]]
    const score = new Map(), hits = new Map(), all = asked(query), units = WORDS.first + WORDS.rows.length;
    for (const word of all) {
        const best = new Map();
        for (const [other, match] of meant(word)) {
            const list = WORDS.words[other].split(' ');
            const rare = Math.log(1 + units / list.length);
            let unit = 0;
            for (const item of list) {
                const [step, weight] = item.split('.');
                unit += step ? parseInt(step, 36) : 0;
                best.set(unit, Math.max(best.get(unit) || 0, match * rare * parseInt(weight, 36)));
            }
        }
        for (const [unit, s] of best)
            score.set(unit, (score.get(unit) || 0) + s), hits.set(unit, (hits.get(unit) || 0) + 1);
    }
    const kept = [...score].map(([u, s]) => [u, s * (hits.get(u) / all.length) ** 1.5]).sort((a, b) => b[1] - a[1])
        .slice(0, 200);
    for (const one of kept) { // several words of the query in one title
        const title = new Set(asked(one[0] < WORDS.first ? NAMES[one[0]][0] : WORDS.rows[one[0] - WORDS.first][0]));
        one[1] *= 1 + 0.3 * all.filter(w => title.has(w)).length;
    }
    return kept.sort((a, b) => b[1] - a[1]);
}
function search(query) { // [title, page, line, PyTorch's names], best first, one for each page
    const out = new Map(), add = e => { const page = e[1].split('#')[0]; if (!out.has(page)) out.set(page, e); };
    if (!query.trim()) return [];
    named(query, 5).forEach(r => add(r[1]));
    const words = typeof WORDS === 'undefined' ? [] : textual(query).slice(0, 60);
    const strong = named(query, 99);
    if (/[_.]/.test(query)) strong.forEach(r => add(r[1]));
    words.forEach(([u]) => add(u < WORDS.first ? NAMES[u] : [...WORDS.rows[u - WORDS.first], []]));
    strong.forEach(r => add(r[1]));
    return [...out.values()].slice(0, 30);
}
if (typeof module !== 'undefined') module.exports = { search, stem, asked };

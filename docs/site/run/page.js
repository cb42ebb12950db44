// A page with a program: runs it in a worker, or in the page where a browser allows none, with the numbers of the
// fields; shows its output and draws the losses that it prints.
'use strict';
(() => { // other scripts of the page have functions of these names
const script = document.currentScript.dataset, byId = id => document.getElementById(id);
const output = byId('output'), state = byId('state'), numbers = [...document.querySelectorAll('.number')];
const FAILED = 'the program stopped: ';
let program, running; // the bytes of the program; the worker
let started = 0, losses = [];

function base64(text) {
    const s = atob(text), b = new Uint8Array(s.length);
    for (let i = 0; i < s.length; i++) b[i] = s.charCodeAt(i);
    return b;
}
// Called by the script with the compressed program.
window.loaded = async text => {
    const stream = new Blob([base64(text)]).stream().pipeThrough(new DecompressionStream('gzip'));
    program = new Uint8Array(await new Response(stream).arrayBuffer());
    const fused = WebAssembly.validate(program) && location.hash !== '#plain';
    byId('bits').textContent = fused ?
        'This browser multiplies and adds in one step where the CPU does: the results have the bits of a build for ' +
        'such CPUs.' : 'This browser lacks relaxed SIMD. Each multiply-add rounds twice and is slower, so the ' +
        'results differ in the last digits from those of a build for CPUs with multiply-add.';
    say('ready');
};
function say(text) {
    state.textContent = text;
    const busy = text.startsWith('running');
    byId('run').disabled = busy || !program, byId('stop').disabled = !busy;
}

// ---- a run ----

// In a worker: the task is a message. send receives {text} and {losses}, then {code} or {error}.
function perform(task, send) {
    try {
        let losses = [], sent = performance.now();
        const flush = () => { send({losses}), losses = [], sent = performance.now(); };
        const calls = {constant: i => task.numbers[i], print: (fd, text) => send({fd, text}),
            loss: v => { losses.push(v); if (performance.now() > sent + 50) flush(); }};
        const code = wasi(task.program, {...task, ...calls});
        flush(), send({code});
    } catch (e) {
        send({error: String(e)});
    }
}
function run(task, ended) {
    output.textContent = '', losses = [], started = performance.now();
    say('running …');
    const receive = m => {
        if (m.text !== undefined) return show(m.text);
        if (m.losses) return losses.push(...m.losses), draw();
        const time = ((performance.now() - started) / 1000).toFixed(2) + ' s';
        running = null;
        if (m.error) show('\n' + FAILED + m.error + '\n');
        say((m.error || m.code ? 'failed after ' : 'finished in ') + time);
        if (ended) ended(m);
    };
    task = {program, plain: location.hash === '#plain', numbers: [], files: {}, ...task};
    try {
        const source = wasi + ';' + perform + ';onmessage = e => perform(e.data, m => postMessage(m));';
        running = new Worker(URL.createObjectURL(new Blob([source], {type: 'text/javascript'})));
        running.onmessage = e => receive(e.data);
        running.onerror = e => receive({error: e.message});
        running.postMessage(task);
    } catch (e) { // the page shows its state before it computes
        setTimeout(() => perform(task, receive), 50);
    }
}
function stop() {
    if (running) running.terminate();
    running = null;
    say('stopped');
}
function show(text) {
    output.append(text);
    draw();
}

// ---- the curve ----

// Points of the curve: the losses of all steps, or those that the program prints, as "step 200  loss 0.5" or "beta 2".
function points() {
    const every = Math.ceil(losses.length / 1000);
    if (every) return {label: 'loss', at: losses.map((v, i) => [i, v]).filter((p, i) => i % every === 0)};
    const rows = [...output.textContent.matchAll(/^step *(\d+)  (loss|beta) (-?\d\S*)/gm)];
    return {label: rows.length ? rows[0][2] : '', at: rows.map(r => [+r[1], +r[3]])};
}
const short = v => Math.abs(v) >= 0.01 || v === 0 ? String(+v.toFixed(3)) : v.toExponential(1);
function draw() {
    if (!byId('curve')) return;
    const p = points();
    p.at = p.at.filter(a => isFinite(a[1]));
    if (p.at.length < 2) return byId('curve').replaceChildren();
    const W = 640, H = 240, L = 60, B = 30, values = p.at.map(a => a[1]);
    const least = Math.min(...values), most = Math.max(...values);
    const log = least > 0 && most > 20 * least, scale = log ? Math.log : v => v;
    const last = p.at[p.at.length - 1][0] || 1, low = scale(least), high = scale(most);
    const x = v => L + (W - L - 16) * v / last, y = v => 12 + (H - B - 12) * (high - scale(v)) / (high - low || 1);
    const spots = p.at.map(a => [x(a[0]).toFixed(1), y(a[1]).toFixed(1)]);
    const mark = (v, at) => `<line x1="${L}" x2="${W - 16}" y1="${at}" y2="${at}" class="grid"/>` +
        `<text x="${L - 6}" y="${at + 4}" text-anchor="end">${short(v)}</text>`;
    const middle = log ? Math.exp((low + high) / 2) : (low + high) / 2;
    byId('curve').innerHTML = `<svg viewBox="0 0 ${W} ${H}" role="img" aria-label="${p.label} at each printed step">` +
        [most, middle, least].map(v => mark(v, y(v))).join('') +
        `<polyline points="${spots.join(' ')}"/>` +
        (spots.length > 50 ? [] : spots).map(s => `<circle cx="${s[0]}" cy="${s[1]}" r="2.5"/>`).join('') + `<text x="${L}" y="${H - 8}">step 0</text><text x="${W - 16}" y="${H - 8}"
        text-anchor="end">${last}</text><text x="${W / 2}" y="${H - 8}" text-anchor="middle">${p.label}${log ?
        ', logarithmic' : ''}</text></svg>`;
}

// ---- the page of a lesson ----

for (const field of numbers) {
    field.addEventListener('input', () => { // one number at several places
        for (const f of numbers) if (f.dataset.k === field.dataset.k) f.value = field.value;
        for (const f of numbers) f.classList.toggle('wrong', f.value.trim() === '' || !isFinite(f.value));
    });
    field.addEventListener('keydown', e => { if (e.key === 'Enter' && !byId('run').disabled) byId('run').click(); });
}
function start() {
    const values = [];
    for (const f of numbers) values[f.dataset.k] = +f.value;
    if (numbers.some(f => f.classList.contains('wrong'))) return say('one of the fields is not a number');
    run({args: [script.program], numbers: values});
}
if (numbers.length) {
    byId('run').addEventListener('click', start);
    byId('reset').addEventListener('click', () => {
        for (const f of numbers) f.value = f.defaultValue, f.classList.remove('wrong');
    });
}
byId('stop').addEventListener('click', stop);

// ---- the page of models ----

// The files by path, and which of them are the model and its tokenizer: a folder with config.json or a single file.
async function model(chosen) {
    const files = {}, names = chosen.map(f => 'model/' + f.name), end = /\.(gguf|bin)$/;
    for (const f of chosen) files['model/' + f.name] = new Uint8Array(await f.arrayBuffer());
    if (names.includes('model/config.json')) return {files, path: 'model', tokenizer: ''};
    const size = n => files[n].length, path = names.filter(n => end.test(n)).sort((a, b) => size(b) - size(a))[0];
    if (!path) throw Error('no config.json, .gguf or .bin file is among the chosen files');
    return {files, path, tokenizer: names.filter(n => n !== path && /\.(bin|model|json)$/.test(n))[0] || ''};
}
async function useModel() {
    const chosen = [...byId('folder').files, ...byId('files').files].filter(
        f => f.webkitRelativePath.split('/').length < 3); // without training checkpoints, which are in a folder below
    try {
        if (!chosen.length) throw Error('choose a folder or files first');
        const m = await model(chosen), value = id => byId(id).value.trim();
        run({files: m.files, args: ['models', m.path, m.tokenizer, byId('text').value, value('tokens'),
            value('temperature'), value('seed')]});
    } catch (e) {
        say(e.message);
    }
}
if (byId('files')) byId('run').addEventListener('click', useModel);
addEventListener('load', () => { // after the page is shown
    const s = document.createElement('script');
    s.src = script.wasm, s.onerror = () => say(script.wasm + ' is missing'), document.head.append(s);
});
})();

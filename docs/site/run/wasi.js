// A small WASI (wasi_snapshot_preview1): runs a program with arguments and files in memory, in a page, a worker or node.
// It is one function, because a worker receives it as text.
'use strict';

// Runs a program to its end and returns its exit code. o: args; files, {path: Uint8Array}, which become those that the
// program leaves; print(fd, text); constant(i), the numbers that a reader may change; loss(value), called at each step.
// plain: see without_madd.
function wasi(bytes, o) {
    const OK = 0, EBADF = 8, EEXIST = 20, EINVAL = 28, EISDIR = 31, ENOENT = 44, ENOSYS = 52, ENOTDIR = 54,
        ENOTEMPTY = 55, IS_TERMINAL = 2, IS_FOLDER = 3, IS_FILE = 4;

    // Multiply-adds (f32x4 and f64x2.relaxed_madd, three bytes) become calls of the program's functions plain_f32 and
    // plain_f64, which round twice, in three bytes, too.
    function without_madd(old) {
        const b = old.slice(), index = {};
        let at = 8;
        const number = () => { let v = 0, s = 0; do v |= (b[at] & 127) << s, s += 7; while (b[at++] & 128); return v; };
        while (at < b.length) {
            const id = b[at++], end = number() + at;
            if (id === 7) for (let n = number(); n--;) { // exports, which are before the code
                const length = number(), name = String.fromCharCode(...b.subarray(at, at += length));
                at++, index[name] = number();
            }
            if (id === 10) for (; at < end - 2; at++) {
                const f = b[at] !== 0xfd || b[at + 2] !== 2 ? -1 : b[at + 1] === 0x85 ? index.plain_f32 :
                    b[at + 1] === 0x87 ? index.plain_f64 : -1;
                if (f >= 0) b[at] = 0x10, b[at + 1] = f & 127 | 128, b[at + 2] = f >> 7;
            }
            at = end;
        }
        return b;
    }
    const module = new WebAssembly.Module(WebAssembly.validate(bytes) && !o.plain ? bytes : without_madd(bytes));

    // ---- files: nodes by path; a folder has no data ----
    let inodes = 1, memory;
    const node = data => ({data, size: data ? data.length : 0, inode: inodes++});
    const tree = new Map([['', node(null)]]), text = new TextEncoder();
    const decoders = [0, 1, 2].map(() => new TextDecoder());
    const parent = p => p.slice(0, Math.max(0, p.lastIndexOf('/')));
    const inside = p => [...tree.keys()].filter(k => k && parent(k) === p);
    for (const [path, data] of Object.entries(o.files || {})) {
        const parts = path.split('/');
        for (let i = 1; i < parts.length; i++)
            if (!tree.has(parts.slice(0, i).join('/'))) tree.set(parts.slice(0, i).join('/'), node(null));
        tree.set(path, node(data));
    }
    const open = [{kind: 0}, {kind: IS_TERMINAL}, {kind: 0}, {kind: IS_FOLDER, path: '', node: tree.get('')}];

    const view = () => new DataView(memory.buffer), u8 = (at, n) => new Uint8Array(memory.buffer, at, n);
    const string = (at, n) => new TextDecoder().decode(u8(at, n).slice());
    const put32 = (at, v) => view().setUint32(at, v, true), put64 = (at, v) => view().setBigUint64(at, BigInt(v), true);
    const resolve = (fd, at, n) => {
        const parts = [];
        for (const p of (open[fd].path + '/' + string(at, n)).split('/'))
            if (p === '..') parts.pop(); else if (p && p !== '.') parts.push(p);
        return parts.join('/');
    };
    const vectors = (at, n) => Array.from({length: n}, (_, i) =>
        [view().getUint32(at + 8 * i, true), view().getUint32(at + 8 * i + 4, true)]);
    const stat = (at, n, kind) => {
        u8(at, 64).fill(0), put64(at + 8, n ? n.inode : 0), put64(at + 24, 1);
        view().setUint8(at + 16, n ? n.data ? IS_FILE : IS_FOLDER : kind), put64(at + 32, n ? n.size : 0);
        return OK;
    };
    const resize = (n, size) => {
        if (size > n.data.length) {
            const more = new Uint8Array(Math.max(size, 2 * n.data.length));
            more.set(n.data.subarray(0, n.size)), n.data = more;
        }
        if (size < n.size) n.data.fill(0, size, n.size);
        n.size = size;
    };
    const read = (f, list, n, from, out) => {
        let at = from;
        for (const [to, size] of vectors(list, n)) {
            const part = f.node ? f.node.data.subarray(at, Math.min(at + size, f.node.size)) : [];
            u8(to, part.length).set(part), at += part.length;
        }
        put32(out, at - from);
        return at;
    };
    const write = (f, list, n, from, out) => {
        let at = from;
        for (const [source, size] of vectors(list, n)) {
            if (at + size > f.node.size) resize(f.node, at + size);
            f.node.data.set(u8(source, size), at), at += size;
        }
        put32(out, at - from);
        return at;
    };
    const lists = (items, pointers, bytes) => {
        for (const item of items) {
            const b = text.encode(item + '\0');
            put32(pointers, bytes), u8(bytes, b.length).set(b), pointers += 4, bytes += b.length;
        }
        return OK;
    };
    const file = fd => open[fd] && open[fd].node && open[fd].node.data ? open[fd] : null;
    const now = clock => BigInt(Math.round((clock ? performance.now() : Date.now()) * 1e6));

    const calls = {
        args_sizes_get: (n, size) => (put32(n, o.args.length), put32(size, text.encode(o.args.join()).length + 1), OK),
        args_get: (pointers, to) => lists(o.args, pointers, to),
        environ_sizes_get: (n, size) => (put32(n, 1), put32(size, 11), OK),
        environ_get: (pointers, to) => lists(['LANG=UTF-8'], pointers, to),
        clock_time_get: (clock, _, at) => (put64(at, now(clock)), OK),
        clock_res_get: (_, at) => (put64(at, 1000), OK),
        random_get: (at, n) => {
            for (let i = 0; i < n; i += 65536) crypto.getRandomValues(u8(at + i, Math.min(65536, n - i)));
            return OK;
        },
        proc_exit: code => { throw {exit: code}; },
        sched_yield: () => OK,
        poll_oneoff: (from, to, n, out) => { // a nap ends at once
            u8(to, 32 * n).fill(0), put64(to, view().getBigUint64(from, true)), put32(out, 1);
            return OK;
        },
        fd_close: fd => open[fd] ? (delete open[fd], OK) : EBADF,
        fd_sync: () => OK, fd_datasync: () => OK, fd_advise: () => OK, fd_filestat_set_times: () => OK,
        fd_fdstat_set_flags: () => OK,
        fd_fdstat_get: (fd, at) => {
            if (!open[fd]) return EBADF;
            u8(at, 24).fill(0), view().setUint8(at, open[fd].kind), put64(at + 8, fd < 3 ? 0x40n : 0xffffffffn);
            view().setUint16(at + 2, open[fd].append ? 1 : 0, true), put64(at + 16, 0xffffffffn);
            return OK;
        },
        fd_prestat_get: (fd, at) => fd === 3 ? (put32(at, 0), put32(at + 4, 1), OK) : EBADF,
        fd_prestat_dir_name: (fd, at) => (u8(at, 1)[0] = 47, OK),
        fd_filestat_get: (fd, at) => open[fd] ? stat(at, open[fd].node, open[fd].kind) : EBADF,
        fd_filestat_set_size: (fd, size) => file(fd) ? (resize(open[fd].node, Number(size)), OK) : EINVAL,
        fd_read: (fd, list, n, out) => {
            if (!open[fd]) return EBADF;
            const end = read(open[fd], list, n, open[fd].at || 0, out);
            return open[fd].at = end, OK;
        },
        fd_pread: (fd, list, n, from, out) => file(fd) ? (read(open[fd], list, n, Number(from), out), OK) : EBADF,
        fd_write: (fd, list, n, out) => {
            const f = open[fd];
            if (!f) return EBADF;
            if (!f.node) {
                const parts = vectors(list, n);
                for (const [at, size] of parts) o.print(fd, decoders[fd].decode(u8(at, size).slice(), {stream: true}));
                return put32(out, parts.reduce((sum, p) => sum + p[1], 0)), OK;
            }
            return f.at = write(f, list, n, f.append ? f.node.size : f.at, out), OK;
        },
        fd_pwrite: (fd, list, n, from, out) => file(fd) ? (write(open[fd], list, n, Number(from), out), OK) : EBADF,
        fd_tell: (fd, out) => file(fd) ? (put64(out, open[fd].at), OK) : EBADF,
        fd_seek: (fd, offset, whence, out) => {
            if (!file(fd)) return open[fd] ? 70 : EBADF; // ESPIPE
            const f = open[fd], to = Number(offset) + [0, f.at, f.node.size][whence];
            return to < 0 ? EINVAL : (f.at = to, put64(out, to), OK);
        },
        fd_readdir: (fd, at, size, cookie, out) => {
            const start = at, names = inside(open[fd].path).sort();
            for (let i = Number(cookie); i < names.length && at < start + size; i++) {
                const name = text.encode(names[i].slice(names[i].lastIndexOf('/') + 1));
                const entry = new Uint8Array(24 + name.length), v = new DataView(entry.buffer), n = tree.get(names[i]);
                v.setBigUint64(0, BigInt(i + 1), true), v.setBigUint64(8, BigInt(n.inode), true);
                v.setUint32(16, name.length, true), v.setUint8(20, n.data ? IS_FILE : IS_FOLDER), entry.set(name, 24);
                const part = entry.subarray(0, start + size - at);
                u8(at, part.length).set(part), at += part.length;
            }
            return put32(out, at - start), OK;
        },
        path_open: (fd, _, name, length, how, rights, inherited, flags, out) => {
            const path = resolve(fd, name, length), folder = tree.get(parent(path));
            let n = tree.get(path);
            if (!n && !(how & 1) || !folder) return ENOENT;
            if (n && how & 4) return EEXIST;
            if (n && !n.data && how & 8) return EISDIR;
            if (n && n.data && how & 2 || folder.data) return ENOTDIR;
            if (!n) tree.set(path, n = node(new Uint8Array(0)));
            if (how & 8) resize(n, 0);
            let to = 3;
            while (open[to]) to++;
            open[to] = {kind: n.data ? IS_FILE : IS_FOLDER, path, node: n, at: 0, append: flags & 1};
            return put32(out, to), OK;
        },
        path_filestat_get: (fd, _, name, length, at) => {
            const n = tree.get(resolve(fd, name, length));
            return n ? stat(at, n) : ENOENT;
        },
        path_create_directory: (fd, name, length) => {
            const path = resolve(fd, name, length);
            return tree.has(path) ? EEXIST : !tree.has(parent(path)) ? ENOENT : (tree.set(path, node(null)), OK);
        },
        path_unlink_file: (fd, name, length) => {
            const path = resolve(fd, name, length), n = tree.get(path);
            return !n ? ENOENT : !n.data ? EISDIR : (tree.delete(path), OK);
        },
        path_remove_directory: (fd, name, length) => {
            const path = resolve(fd, name, length), n = tree.get(path);
            return !n ? ENOENT : n.data ? ENOTDIR : inside(path).length ? ENOTEMPTY : (tree.delete(path), OK);
        },
        path_rename: (fd, name, length, fd2, name2, length2) => {
            const from = resolve(fd, name, length), to = resolve(fd2, name2, length2);
            if (!tree.has(from) || !tree.has(parent(to))) return ENOENT;
            for (const key of [...tree.keys()].filter(k => k === from || k.startsWith(from + '/'))) {
                const n = tree.get(key);
                tree.delete(key), tree.set(to + key.slice(from.length), n);
            }
            return OK;
        },
    };
    const imports = {page: {constant: i => o.constant(i), loss: v => o.loss(v)}, wasi_snapshot_preview1: {}};
    for (const i of WebAssembly.Module.imports(module)) // what is not here fails
        if (i.module !== 'page') imports[i.module][i.name] = calls[i.name] || (() => ENOSYS);
    const program = new WebAssembly.Instance(module, imports);
    memory = program.exports.memory;
    let code = 0;
    try {
        program.exports._start();
    } catch (e) {
        if (e.exit === undefined) throw e;
        code = e.exit;
    }
    o.files = {};
    for (const [path, n] of tree) if (n.data) o.files[path] = n.data.subarray(0, n.size);
    return code;
}
if (typeof module !== 'undefined') module.exports = wasi;

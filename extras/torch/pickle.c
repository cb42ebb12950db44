/* pickle.c — a stack machine that reads pickles of protocol 2 of state dicts: numbers, strings, tuples, lists, dicts,
 * and only those global names that are in a table here. Calling a name makes a value that stores its arguments; nothing
 * is executed. */
#include "extras/torch/pickle.h"
#include "core/base/memory.h"
#include "core/base/thread.h"

#include <string.h>

static bool fail(tn__pickle *p, size_t at, const char *what)
{
    if (tn__self.error == TN_OK) tn_raise(TN_EFORMAT, "%s: byte %zu of the pickle: %s", p->label, at, what);
    return false;
}

/* ---- tables that grow -------------------------------------------------------------------------------------------- */

static bool room(tn__pickle *p, void **at, int64_t *have, int64_t need, size_t each)
{
    if (need <= *have) return true;
    if (need > TN__PY_MOST) return fail(p, p->at, "more than 4,000,000 values");
    int64_t now = *have ? *have : 256;
    while (now < need) now *= 2;
    if (!tn__mem_grow(at, (size_t)*have * each, (size_t)now * each)) return false;
    *have = now;
    return true;
}

static int32_t new_value(tn__pickle *p, tn__py_value v)
{
    void *at = p->value;
    if (!room(p, &at, &p->value_room, p->values + 1, sizeof v)) return -1;
    p->value = at;
    p->value[p->values] = v;
    return (int32_t)p->values++;
}
static bool push(tn__pickle *p, int32_t v)
{
    void *at = p->stack;
    if (v < 0 || !room(p, &at, &p->stack_room, p->stacked + 1, sizeof *p->stack)) return false;
    p->stack = at;
    p->stack[p->stacked++] = v;
    return true;
}
static bool push_value(tn__pickle *p, tn__py_value v) { return push(p, new_value(p, v)); }
static bool push_number(tn__pickle *p, tn__py_kind kind, int64_t n)
{
    return push_value(p, (tn__py_value){.kind = kind, .n = n, .first = -1, .last = -1});
}

static bool append(tn__pickle *p, int32_t to, int32_t key, int32_t value)
{
    void *at = p->node;
    if (!room(p, &at, &p->node_room, p->nodes + 1, sizeof *p->node)) return false;
    p->node = at;
    const int32_t i = (int32_t)p->nodes++;
    p->node[i] = (tn__py_node){key, value, -1};
    tn__py_value *v = &p->value[to];
    if (v->first < 0) v->first = i;
    else p->node[v->last].next = i;
    v->last = i, v->n++;
    return true;
}

void tn__pickle_free(tn__pickle *p)
{
    tn__mem_put(p->value, (size_t)p->value_room * sizeof *p->value);
    tn__mem_put(p->node, (size_t)p->node_room * sizeof *p->node);
    tn__mem_put(p->stack, (size_t)p->stack_room * sizeof *p->stack);
    tn__mem_put(p->memo, (size_t)p->memo_room * sizeof *p->memo);
    p->value = NULL, p->node = NULL, p->stack = p->memo = NULL;
    p->value_room = p->node_room = p->stack_room = p->memo_room = 0;
}

int32_t tn__pickle_item(const tn__pickle *p, int32_t of, int64_t i)
{
    int32_t k = p->value[of].first;
    while (k >= 0 && i-- > 0) k = p->node[k].next;
    return k < 0 ? -1 : p->node[k].value;
}

/* ---- bytes ------------------------------------------------------------------------------------------------------- */

static bool have(tn__pickle *p, uint64_t bytes)
{
    if (bytes <= p->n - p->at) return true;
    if (bytes > (uint64_t)p->size - p->at) return fail(p, p->at, "the pickle is truncated");
    p->short_ = true;
    return false;
}
static bool number(tn__pickle *p, int bytes, uint64_t *v)
{
    if (!have(p, (uint64_t)bytes)) return false;
    *v = 0;
    for (int i = bytes - 1; i >= 0; i--) *v = *v << 8 | p->p[p->at + (size_t)i];
    p->at += (size_t)bytes;
    return true;
}
static bool text(tn__pickle *p, int length_bytes, tn__py_kind kind)
{
    uint64_t n;
    if (!number(p, length_bytes, &n) || !have(p, n)) return false;
    p->at += (size_t)n;
    return push_value(p, (tn__py_value){kind, -1, -1, (int64_t)n, (const char *)p->p + p->at - n});
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *element;
    int         is;
} names[] = {
    {"collections\nOrderedDict\n", NULL, TN__PY_DICT_CLASS},
    {"torch._utils\n_rebuild_tensor_v2\n", NULL, TN__PY_REBUILD},
    {"torch._utils\n_rebuild_parameter\n", NULL, TN__PY_PARAMETER},
    {"torch\nFloatStorage\n", "F32", TN__PY_TYPE},
    {"torch\nDoubleStorage\n", "F64", TN__PY_TYPE},
    {"torch\nHalfStorage\n", "F16", TN__PY_TYPE},
    {"torch\nBFloat16Storage\n", "BF16", TN__PY_TYPE},
    {"torch\nLongStorage\n", "I64", TN__PY_TYPE},
    {"torch\nIntStorage\n", "I32", TN__PY_TYPE},
    {"torch\nShortStorage\n", "I16", TN__PY_TYPE},
    {"torch\nCharStorage\n", "I8", TN__PY_TYPE},
    {"torch\nByteStorage\n", "U8", TN__PY_TYPE},
    {"torch\nBoolStorage\n", "BOOL", TN__PY_TYPE},
};

static bool name(tn__pickle *p)
{
    const size_t start = p->at;
    int          lines = 0;
    while (lines < 2) {
        if (!have(p, 1)) return false;
        if (p->at - start > 512) return fail(p, start, "a name of more than 512 bytes");
        lines += p->p[p->at++] == '\n';
    }
    const char  *at = (const char *)p->p + start;
    const size_t n = p->at - start;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].name) != n || memcmp(names[i].name, at, n) != 0) continue;
        const int element = names[i].element ? tn__element_of_name(names[i].element, strlen(names[i].element)) : 0;
        return push_number(p, TN__PY_GLOBAL, names[i].is + element);
    }
    char shown[TN__QUOTED];
    return tn_raise_false(
        TN_EUNSUPPORTED,
        "%s: byte %zu of the pickle: the name %s is not used by state dicts of plain tensors, which alone are "
        "read; nothing was executed",
        p->label, start, tn__quote(shown, at, n - 1, 100));
}

/* ---- the stack --------------------------------------------------------------------------------------------------- */

static bool pop(tn__pickle *p, int32_t *v)
{
    if (!p->stacked || p->value[p->stack[p->stacked - 1]].kind == TN__PY_MARK)
        return fail(p, p->at - 1, "a value is popped from an empty stack");
    *v = p->stack[--p->stacked];
    return true;
}
/* The number of values above the last mark; -1: raised. */
static int64_t above_mark(tn__pickle *p)
{
    int64_t n = 0;
    while (n < p->stacked && p->value[p->stack[p->stacked - 1 - n]].kind != TN__PY_MARK) n++;
    return n < p->stacked ? n : (fail(p, p->at - 1, "a mark is missing"), -1);
}

static bool tuple(tn__pickle *p, int64_t n, bool marked)
{
    if (n < 0) return false;
    if (n + marked > p->stacked) return fail(p, p->at - 1, "a value is popped from an empty stack");
    const int32_t t = new_value(p, (tn__py_value){.kind = TN__PY_TUPLE, .first = -1, .last = -1});
    if (t < 0) return false;
    for (int64_t i = p->stacked - n; i < p->stacked; i++) {
        if (p->value[p->stack[i]].kind == TN__PY_MARK)
            return fail(p, p->at - 1, "a value is popped from an empty stack");
        if (!append(p, t, -1, p->stack[i])) return false;
    }
    p->stacked -= n + marked;
    return push(p, t);
}

/* Puts the n values on top into the list or dict below them (and below a mark). */
static bool put_items(tn__pickle *p, int64_t n, bool marked, tn__py_kind kind)
{
    if (n < 0) return false;
    const int64_t below = p->stacked - n - marked - 1;
    const int     step = kind == TN__PY_DICT ? 2 : 1;
    if (below < 0 || p->value[p->stack[below]].kind != kind || n % step)
        return fail(p, p->at - 1,
                    kind == TN__PY_DICT ? "pairs for a value that is not a dict"
                                        : "items for a value that is not a list");
    for (int64_t i = p->stacked - n; i < p->stacked; i += step)
        if (!append(p, p->stack[below], step == 2 ? p->stack[i] : -1, p->stack[i + step - 1])) return false;
    p->stacked = below + 1;
    return true;
}

/* A call: a name with its arguments. */
static bool called(tn__pickle *p)
{
    int32_t arguments, of;
    if (!pop(p, &arguments) || !pop(p, &of)) return false;
    if (p->value[of].kind != TN__PY_GLOBAL || p->value[arguments].kind != TN__PY_TUPLE)
        return fail(p, p->at - 1, "it calls a value that is not a name");
    if (p->value[of].n == TN__PY_DICT_CLASS && !p->value[arguments].n)
        return push_value(p, (tn__py_value){.kind = TN__PY_DICT, .first = -1, .last = -1});
    if (p->value[of].n == TN__PY_REBUILD)
        return push_value(p, (tn__py_value){.kind = TN__PY_TENSOR, .first = arguments, .last = -1});
    const int32_t inner = p->value[of].n == TN__PY_PARAMETER ? tn__pickle_item(p, arguments, 0) : -1;
    if (inner < 0 || p->value[inner].kind != TN__PY_TENSOR)
        return fail(p, p->at - 1, "it calls a name with wrong arguments");
    return push(p, inner);
}

static bool remembered(tn__pickle *p, int bytes, bool put)
{
    uint64_t i;
    if (!number(p, bytes, &i)) return false;
    if (!put) {
        if (i >= (uint64_t)p->memo_room || p->memo[i] < 0)
            return fail(p, p->at - 1, "it reads a memo entry that was not stored");
        return push(p, p->memo[i]);
    }
    int32_t v;
    if (!pop(p, &v) || !push(p, v)) return false;
    if (i >= TN__PY_MOST) return fail(p, p->at - 1, "it stores more than 4,000,000 memo entries");
    const int64_t had = p->memo_room;
    void         *at = p->memo;
    if (!room(p, &at, &p->memo_room, (int64_t)i + 1, sizeof *p->memo)) return false;
    p->memo = at;
    for (int64_t k = had; k < p->memo_room; k++) p->memo[k] = -1;
    p->memo[i] = v;
    return true;
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static bool whole(tn__pickle *p, int bytes, bool sign)
{
    uint64_t v;
    if (!number(p, bytes, &v)) return false;
    return push_number(p, TN__PY_INT, sign ? (int64_t)(int32_t)(uint32_t)v : (int64_t)v);
}

/* An integer of any length; one of more than 8 bytes (a magic number) is kept as its bytes. */
static bool long_integer(tn__pickle *p)
{
    uint64_t n, v = 0;
    if (!number(p, 1, &n) || !have(p, n)) return false;
    const unsigned char *at = p->p + p->at;
    p->at += (size_t)n;
    if (n > 8) return push_value(p, (tn__py_value){TN__PY_STRING, -1, -1, (int64_t)n, (const char *)at});
    for (uint64_t i = 0; i < n; i++) v |= (uint64_t)at[i] << 8 * i;
    if (n && n < 8 && at[n - 1] & 0x80) v |= UINT64_MAX << 8 * n;
    return push_number(p, TN__PY_INT, (int64_t)v);
}

static bool leaf(tn__pickle *p, unsigned char op)
{
    switch (op) {
    case 'N': return push_number(p, TN__PY_NONE, 0);
    case 0x88: return push_number(p, TN__PY_BOOL, 1);
    case 0x89: return push_number(p, TN__PY_BOOL, 0);
    case 'K': return whole(p, 1, false);
    case 'M': return whole(p, 2, false);
    case 'J': return whole(p, 4, true);
    case 0x8a: return long_integer(p);
    case 'G': return have(p, 8) && (p->at += 8, push_number(p, TN__PY_FLOAT, 0)); /* no tensor needs one */
    case 'X':
    case 'T': return text(p, 4, TN__PY_STRING);
    case 'U':
    case 0x8c: return text(p, 1, TN__PY_STRING);
    case 'c': return name(p);
    case '}': return push_value(p, (tn__py_value){.kind = TN__PY_DICT, .first = -1, .last = -1});
    case ']': return push_value(p, (tn__py_value){.kind = TN__PY_LIST, .first = -1, .last = -1});
    case ')': return push_value(p, (tn__py_value){.kind = TN__PY_TUPLE, .first = -1, .last = -1});
    case '(': return push_number(p, TN__PY_MARK, 0);
    default: break;
    }
    if (tn__self.error != TN_OK) return false;
    return tn_raise_false(TN_EUNSUPPORTED,
                          "%s: byte %zu of the pickle: the instruction 0x%02x, which state dicts do not need", p->label,
                          p->at - 1, op);
}

static bool step(tn__pickle *p, unsigned char op)
{
    int32_t v;
    switch (op) {
    case 't': return tuple(p, above_mark(p), true);
    case 0x85: return tuple(p, 1, false);
    case 0x86: return tuple(p, 2, false);
    case 0x87: return tuple(p, 3, false);
    case 'q': return remembered(p, 1, true);
    case 'r': return remembered(p, 4, true);
    case 'h': return remembered(p, 1, false);
    case 'j': return remembered(p, 4, false);
    case 's': return put_items(p, 2, false, TN__PY_DICT);
    case 'u': return put_items(p, above_mark(p), true, TN__PY_DICT);
    case 'a': return put_items(p, 1, false, TN__PY_LIST);
    case 'e': return put_items(p, above_mark(p), true, TN__PY_LIST);
    case 'R': return called(p);
    case 'b': return pop(p, &v); /* the state of an OrderedDict: its metadata */
    case 'Q':
        if (!pop(p, &v)) return false;
        if (p->value[v].kind != TN__PY_TUPLE) return fail(p, p->at - 1, "a persistent id that is not a tuple");
        return push_value(p, (tn__py_value){.kind = TN__PY_STORAGE, .first = v, .last = -1});
    default: return leaf(p, op);
    }
}

static bool of_protocol_2(tn__pickle *p, uint64_t version)
{
    if (version == 2) return true;
    if (tn__self.error != TN_OK) return false;
    return tn_raise_false(
        TN_EUNSUPPORTED,
        "%s: byte %zu of the pickle: protocol %d, expected 2, the default of torch.save; torch.load the file and "
        "torch.save it without pickle_protocol",
        p->label, p->at - 1, (int)version);
}

int64_t tn__pickle_next(tn__pickle *p)
{
    uint64_t op, version;
    p->stacked = 0, p->short_ = false;
    for (int64_t i = 0; i < p->memo_room; i++) p->memo[i] = -1;
    if (!number(p, 1, &op) || (op != 0x80 && !fail(p, p->at - 1, "it does not start as a pickle of protocol 2")) ||
        !number(p, 1, &version) || !of_protocol_2(p, version))
        return -1;
    while (number(p, 1, &op) && op != '.')
        if (!step(p, (unsigned char)op)) return -1;
    int32_t v = -1;
    if (tn__self.error != TN_OK || p->short_ || !pop(p, &v)) return -1;
    return p->stacked ? (fail(p, p->at - 1, "unused values remain"), -1) : v;
}

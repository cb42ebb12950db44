/* chat_values.c — values of a running chat template: texts, lists, dicts, with Python's rules. */
#include "extras/chat/chat_values.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool tn__chat_fail(const tn__chat_vm *v, const char *fmt, ...)
{
    char    text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return tn_raise_false(TN_EINVAL, "chat template, line %d: %s", v->step ? (int)v->step->line : 0, text);
}

void *tn__chat_get(tn__chat_vm *v, size_t bytes)
{
    if (tn_error() != TN_OK) return NULL;
    const size_t all = sizeof(tn__chat_block) + bytes;
    if (bytes > TN__CHAT_MEMORY || (v->used += all) > TN__CHAT_MEMORY)
        return tn__chat_fail(v, "the values need more than %d MiB", TN__CHAT_MEMORY >> 20), NULL;
    tn__chat_block *b = tn_mem_get(all);
    if (!b) return NULL;
    *b = (tn__chat_block){v->memory, all};
    v->memory = b;
    return b + 1;
}

bool tn__value_is(tn__value x, const char *text)
{
    return x.type == V_TEXT && (size_t)x.n == strlen(text) && !memcmp(x.text, text, (size_t)x.n);
}

bool tn__value_truth(const tn__chat_vm *v, tn__value x)
{
    if (x.type == V_DICT) return x.members->n > 0 || x.members->is_namespace;
    (void)v;
    return x.type >= V_BOOL && (x.type == V_LOOP || x.n != 0);
}

/* The elements of a list or, alternately, keys and values. */
static const tn__value *elements(tn__value x, int64_t *n)
{
    *n = x.type == V_DICT ? x.members->n : x.n;
    return x.type == V_DICT ? x.members->at : x.list;
}

enum { PER_STEP = 256 }; /* bytes or values */
void tn__chat_count(tn__chat_vm *v, tn__value x)
{
    if (x.type == V_TEXT || x.type == V_LIST) v->steps += x.n / PER_STEP;
    if (x.type == V_DICT) v->steps += x.members->n / PER_STEP;
}

/* The same list or dict, or equal scalars. Comparing texts counts as steps. */
static bool same(tn__chat_vm *v, tn__value x, tn__value y)
{
    if (tn__is_numeric(x) && tn__is_numeric(y)) return x.n == y.n;
    if (x.type != y.type) return false;
    if (x.type == V_TEXT && x.n != y.n) return false;
    if (x.type == V_TEXT) return tn__chat_count(v, x), !memcmp(x.text, y.text, (size_t)x.n);
    if (x.type == V_LIST) return x.n == y.n && (x.n == 0 || x.list == y.list);
    return x.type <= V_NONE || (x.type == V_DICT && x.members == y.members);
}

bool tn__value_equal(tn__chat_vm *v, tn__value x, tn__value y)
{
    int64_t n, m;
    if (same(v, x, y)) return true;
    if (x.type != y.type || (x.type != V_LIST && x.type != V_DICT)) return false;
    const tn__value *a = elements(x, &n), *b = elements(y, &m);
    bool             equal = n == m;
    for (int64_t i = 0; equal && i < n && v->steps <= TN__CHAT_STEPS; i++) {
        int64_t k = i;
        if (x.type == V_DICT && i % 2 == 0) /* the value of this key in y */
            for (i++, k = 1; k < m && !same(v, a[i - 1], b[k - 1]);) k += 2;
        v->steps += k / PER_STEP;
        if (k < m && a[i].type == b[k].type && (a[i].type == V_LIST || a[i].type == V_DICT) && !same(v, a[i], b[k]))
            return tn__chat_fail(v, "comparing nested lists or dicts is not supported");
        equal = k < m && same(v, a[i], b[k]);
    }
    return equal;
}

/* Where the end of x starts that is the largest in the order of bytes, or the reverse order, and the period of it. */
static int64_t largest_end(tn__value x, bool reverse, int64_t *period)
{
    int64_t start = 0, other = 1, same = 0, p = 1; /* start's end and other's have `same` equal bytes, mod p */
    while (other + same < x.n) {
        const unsigned char a = (unsigned char)x.text[start + same], b = (unsigned char)x.text[other + same];
        if (a == b) {
            if (++same == p) other += p, same = 0;
        } else if ((a > b) != reverse) {
            other += same + 1, same = 0, p = other - start;
        } else {
            start = other++, same = 0, p = 1;
        }
    }
    *period = p;
    return start;
}

/* Where text x is in `in`, or -1: the two-way algorithm of Crochemore and Perrin (1991), in linear time and without
 * memory for any two texts, which memmem of C libraries does not promise. x is compared from `cut` to its end, where it
 * cannot match twice within its period, then backwards from `cut`. */
static int64_t search(tn__value x, const char *in, int64_t n)
{
    int64_t p, q, cut = largest_end(x, false, &p), other = largest_end(x, true, &q), known = 0;
    if (other > cut) cut = other, p = q;
    const bool periodic = cut + p <= x.n && !memcmp(x.text, x.text + p, (size_t)cut);
    if (!periodic) p = (cut > x.n - cut ? cut : x.n - cut) + 1;
    for (int64_t at = 0; at <= n - x.n;) {
        int64_t i = known > cut ? known : cut; /* the first `known` bytes of x match here */
        if (!known && x.n) {
            const char *next = memchr(in + at + cut, x.text[cut], (size_t)(n - x.n - at + 1));
            if (!next) return -1;
            at = next - in - cut;
        }
        while (i < x.n && x.text[i] == in[at + i]) i++;
        if (i < x.n) {
            at += i - cut + 1, known = 0;
            continue;
        }
        for (i = cut; i > known && x.text[i - 1] == in[at + i - 1];) i--;
        if (i <= known) return at;
        at += p, known = periodic ? x.n - p : 0;
    }
    return -1;
}

int64_t tn__place_of(tn__value x, tn__value in, int64_t from)
{
    if (x.n > in.n - from) return -1;
    const int64_t at = search(x, in.text + from, in.n - from);
    return at < 0 ? -1 : from + at;
}

bool tn__value_contains(tn__chat_vm *v, tn__value x, tn__value in)
{
    if (in.type == V_TEXT && x.type == V_TEXT) return tn__place_of(x, in, 0) >= 0;
    if (in.type == V_UNDEFINED) return false;
    if (in.type == V_DICT && !in.members->is_namespace) return tn__value_member(v, in, x).type != V_UNDEFINED;
    if (in.type != V_LIST) return tn__chat_fail(v, "'in' needs a text, a list or a dict");
    for (int64_t i = 0; i < in.n && v->steps <= TN__CHAT_STEPS; i++)
        if (tn__value_equal(v, in.list[i], x)) return true;
    return false;
}

static int64_t characters(tn__value x)
{
    int64_t n = 0;
    for (int64_t i = 0; i < x.n; i++) n += (x.text[i] & 0xc0) != 0x80;
    return n;
}

int64_t tn__value_length(const tn__chat_vm *v, tn__value x)
{
    if (x.type == V_TEXT) return characters(x);
    if (x.type == V_LIST) return x.n;
    (void)v;
    return x.type == V_DICT && !x.members->is_namespace ? x.members->n / 2 : -1;
}

tn__value tn__new_list(tn__chat_vm *v, int64_t n)
{
    const int64_t most = n >= 0 && n < TN__CHAT_MEMORY ? n : TN__CHAT_MEMORY; /* of which tn__chat_get raises */
    tn__value    *list = tn__chat_get(v, (size_t)(most + 1) * sizeof *list);
    return list ? (tn__value){.type = V_LIST, .n = n, .list = list} : (tn__value){.type = V_UNDEFINED};
}

tn__value tn__new_dict(tn__chat_vm *v)
{
    tn__members *m = tn__chat_get(v, sizeof *m);
    if (!m) return (tn__value){.type = V_UNDEFINED};
    *m = (tn__members){.n = 0};
    return (tn__value){.type = V_DICT, .members = m};
}

void tn__set_member(tn__chat_vm *v, tn__value x, tn__value key, tn__value value)
{
    if (tn_error() != TN_OK || x.type != V_DICT) return;
    tn__members *m = x.members;
    tn__chat_count(v, x);
    for (int64_t i = 0; i < m->n; i += 2)
        if (same(v, m->at[i], key)) {
            m->at[i + 1] = value;
            return;
        }
    if (m->n == m->room) {
        const int64_t room = m->room ? 2 * m->room : 8;
        tn__value    *more = tn__chat_get(v, (size_t)room * sizeof *more);
        if (!more) return;
        if (m->n) memcpy(more, m->at, (size_t)m->n * sizeof *more);
        m->at = more, m->room = room;
    }
    m->at[m->n] = key, m->at[m->n + 1] = value, m->n += 2;
}

static tn__value loop_member(const tn__loop *l, int64_t depth, tn__value key)
{
    const int64_t i = l->at, n = l->list.n;
    if (tn__value_is(key, "depth")) return tn__integer_value(depth + 1);
    if (tn__value_is(key, "depth0")) return tn__integer_value(depth);
    if (tn__value_is(key, "index")) return tn__integer_value(i + 1);
    if (tn__value_is(key, "index0")) return tn__integer_value(i);
    if (tn__value_is(key, "revindex")) return tn__integer_value(n - i);
    if (tn__value_is(key, "revindex0")) return tn__integer_value(n - i - 1);
    if (tn__value_is(key, "first")) return tn__bool_value(i == 0);
    if (tn__value_is(key, "last")) return tn__bool_value(i == n - 1);
    if (tn__value_is(key, "length")) return tn__integer_value(n);
    if (tn__value_is(key, "previtem") && i > 0) return l->list.list[i - 1];
    if (tn__value_is(key, "nextitem") && i + 1 < n) return l->list.list[i + 1];
    return (tn__value){.type = V_UNDEFINED};
}

tn__value tn__value_member(tn__chat_vm *v, tn__value x, tn__value key)
{
    if (x.type == V_LOOP)
        return x.n < v->loops ? loop_member(&v->loop[x.n], x.n, key) : (tn__value){.type = V_UNDEFINED};
    if (x.type != V_LIST) tn__chat_count(v, x);
    if (x.type == V_DICT)
        for (int64_t i = 0; i < x.members->n; i += 2)
            if (same(v, x.members->at[i], key)) return x.members->at[i + 1];
    if ((x.type == V_LIST || x.type == V_TEXT) && key.type == V_INTEGER) {
        const int64_t n = tn__value_length(v, x), i = key.n < 0 ? key.n + n : key.n;
        if (i >= 0 && i < n) return x.type == V_LIST ? x.list[i] : tn__substring(x, i, i + 1);
    }
    return (tn__value){.type = V_UNDEFINED};
}

tn__value tn__substring(tn__value x, int64_t from, int64_t to)
{
    int64_t begin = 0, end, i = 0;
    for (; begin < x.n && i < from; i++) do
            begin++;
        while (begin < x.n && (x.text[begin] & 0xc0) == 0x80);
    for (end = begin; end < x.n && i < to; i++) do
            end++;
        while (end < x.n && (x.text[end] & 0xc0) == 0x80);
    return tn__text_value(x.text + begin, (size_t)(end - begin));
}

static int64_t bound(tn__value x, int64_t n, int64_t otherwise, int64_t low, int64_t high)
{
    if (!tn__is_numeric(x)) return otherwise;
    const int64_t i = x.n < 0 ? x.n + n : x.n;
    return i < low ? low : i > high ? high : i;
}

tn__value tn__value_slice(tn__chat_vm *v, tn__value x, tn__value from, tn__value to, tn__value by)
{
    const int64_t n = tn__value_length(v, x), step = tn__is_numeric(by) ? by.n : 1;
    tn__chat_count(v, x);
    if (n < 0 || x.type == V_DICT || step == 0)
        return tn__chat_fail(v, "a slice needs a text or a list, and a step other than 0"), x;
    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    const int64_t a = bound(from, n, step < 0 ? high : low, low, high),
                  b = bound(to, n, step < 0 ? low : high, low, high);
    const int64_t count = step > 0 ? (b > a ? (b - a + step - 1) / step : 0) : (a > b ? (a - b - step - 1) / -step : 0);
    if (x.type == V_TEXT && step == 1) return tn__substring(x, a, b > a ? b : a);
    if (x.type == V_TEXT) return tn__chat_fail(v, "a slice of a text with a step is not supported"), x;
    tn__value y = tn__new_list(v, count);
    for (int64_t i = 0; y.type == V_LIST && i < count; i++) y.list[i] = x.list[a + i * step];
    return y;
}

/* ---- as text ----------------------------------------------------------------------------------------------------- */

void tn__write_value(tn__chat_vm *v, tn__value x, tn_string *to)
{
    char number[32];
    switch (x.type) {
    case V_UNDEFINED: return;
    case V_NONE: tn_string_add(to, tn_text_of("None")); return;
    case V_BOOL: tn_string_add(to, tn_text_of(x.n ? "True" : "False")); return;
    case V_INTEGER:
        snprintf(number, sizeof number, "%lld", (long long)x.n);
        tn_string_add(to, tn_text_of(number));
        return;
    case V_TEXT: tn_string_add(to, (tn_text){x.text, (size_t)x.n}); return;
    default: tn__chat_fail(v, "writing a list or a dict without tojson is not supported");
    }
}

static void write_quoted(tn__value x, tn_string *to)
{
    char u[8];
    tn_string_add(to, tn_text_of("\""));
    for (int64_t i = 0; i < x.n; i++) {
        const char        c = x.text[i];
        static const char from[] = "\"\\\n\r\t\b\f", is[] = "\"\\nrtbf";
        const char       *e = c ? strchr(from, c) : NULL;
        if (e) snprintf(u, sizeof u, "\\%c", is[e - from]);
        else if ((unsigned char)c < 32) snprintf(u, sizeof u, "\\u%04x", (unsigned)c);
        else u[0] = c, u[1] = 0;
        tn_string_add(to, (tn_text){u, strlen(u)});
    }
    tn_string_add(to, tn_text_of("\""));
}

/* A value without lists and dicts in it. */
static void write_scalar(tn__chat_vm *v, tn__value x, tn_string *to)
{
    if (x.type == V_TEXT) write_quoted(x, to);
    else if (x.type == V_NONE || x.type == V_UNDEFINED) tn_string_add(to, tn_text_of("null"));
    else if (x.type == V_BOOL) tn_string_add(to, tn_text_of(x.n ? "true" : "false"));
    else if (x.type == V_INTEGER) tn__write_value(v, x, to);
    else tn__chat_fail(v, "tojson of nested lists and dicts is not supported");
}

void tn__write_json(tn__chat_vm *v, tn__value x, tn_string *to)
{
    const bool dict = x.type == V_DICT;
    if (x.type != V_LIST && !dict) {
        write_scalar(v, x, to);
        return;
    }
    const tn__value *at = dict ? x.members->at : x.list;
    const int64_t    n = dict ? x.members->n : x.n;
    tn_string_add(to, tn_text_of(dict ? "{" : "["));
    for (int64_t i = 0; i < n; i++) {
        const bool quoted = dict && i % 2 == 0 && at[i].type != V_TEXT; /* a key is a text */
        if (i) tn_string_add(to, tn_text_of(dict && i % 2 ? ": " : ", "));
        if (quoted) tn_string_add(to, tn_text_of("\""));
        write_scalar(v, at[i], to);
        if (quoted) tn_string_add(to, tn_text_of("\""));
    }
    tn_string_add(to, tn_text_of(dict ? "}" : "]"));
}

tn__value tn__kept_text(tn__chat_vm *v, tn_string *s)
{
    char *copy = tn__chat_get(v, s->bytes + 1);
    if (copy && s->bytes) memcpy(copy, s->at, s->bytes);
    const tn__value x = copy ? tn__text_value(copy, s->bytes) : (tn__value){.type = V_UNDEFINED};
    tn_string_free(s);
    return x;
}

tn__value tn__value_joined(tn__chat_vm *v, tn__value x, tn__value y)
{
    char *both = tn__chat_get(v, (size_t)(x.n + y.n) + 1);
    if (!both) return x;
    memcpy(both, x.text, (size_t)x.n), memcpy(both + x.n, y.text, (size_t)y.n);
    return tn__text_value(both, (size_t)(x.n + y.n));
}

bool tn__chat_blank(uint32_t c) { return tn_is_space(c) || (c >= 0x1c && c <= 0x1f); }

/* True if the character of text x at *at, which is advanced, is one of those to strip. */
static bool strips(tn__value x, size_t *at, const tn__value *chars)
{
    const uint32_t c = tn_utf8_next(x.text, (size_t)x.n, at, NULL);
    if (!chars) return tn__chat_blank(c);
    for (size_t i = 0; i < (size_t)chars->n;)
        if (tn_utf8_next(chars->text, (size_t)chars->n, &i, NULL) == c) return true;
    return false;
}

tn__value tn__value_stripped(tn__value x, const tn__value *chars, bool left, bool right)
{
    for (size_t at = 0; left && x.n && strips(x, &at, chars); at = 0) x.text += at, x.n -= (int64_t)at;
    while (right && x.n) {
        size_t at = (size_t)x.n - 1, begin;
        while (at && (x.text[at] & 0xc0) == 0x80) at--;
        begin = at;
        if (!strips(x, &at, chars)) break;
        x.n = (int64_t)begin;
    }
    return x;
}

/* pattern.c — see pattern.h. A backtracking matcher that walks over the pattern itself. Whether a whole text matches
 * does not depend on greedy or lazy quantifiers. */
#include "extras/peft/pattern.h"

#include <string.h>

enum { STEPS = 1 << 20, DEPTH = 2000, REPEATS = 1000, BYTES = 4000 };

/* A part of the pattern: [at, end). */
typedef struct {
    const char *at, *end;
} span;
typedef struct {
    const char *text;
    int         steps, depth;
    bool        unknown; /* other syntax, or too many steps */
} matcher;
/* What follows: the atom `min` to `max` times, then `rest`, then `next`. from: where the last repetition started. */
typedef struct rest {
    span               atom, rest;
    int                min, max;
    const char        *from;
    const struct rest *next;
} rest;

bool tn__pattern_is_plain(const char *pattern) { return !strpbrk(pattern, "\\^$*+?()[]{}|"); }

static bool fail(matcher *m) { return m->unknown = true, false; }

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_word(char c) { return c == '_' || is_digit(c) || is_letter(c); }

/* ---- atoms ------------------------------------------------------------------------------------------------------- */

/* The end of the atom at p.at: a group, a set, an escaped or plain character; NULL: none. */
static const char *atom_end(span p)
{
    const char *c = p.at + 1;
    if (strchr("*+?{}|)]", *p.at)) return NULL;
    if (*p.at == '\\') return c < p.end ? c + 1 : NULL;
    if (*p.at == '[') {
        c += *c == '^';
        for (c += *c == ']'; c < p.end && *c != ']'; c++) c += *c == '\\';
        return c < p.end ? c + 1 : NULL;
    }
    if (*p.at != '(') return c;
    while (c && c < p.end && *c != ')') c = strchr("([\\", *c) ? atom_end((span){c, p.end}) : c + 1;
    return c && c < p.end ? c + 1 : NULL;
}

/* True if the escape "\e" matches c. */
static bool is_escaped(matcher *m, char e, char c)
{
    if (e == 'd' || e == 'w') return e == 'd' ? is_digit(c) : is_word(c);
    return is_word(e) ? fail(m) : c == e;
}

static bool is_in_set(matcher *m, span set, char c)
{
    const bool  negated = set.at[1] == '^';
    bool        in = false;
    const char *p = set.at + 1 + negated, *end = set.end - 1;
    while (p < end && !m->unknown) {
        const bool escaped = *p == '\\';
        const char low = p[escaped];
        p += 1 + escaped;
        if (escaped && is_word(low)) in |= is_escaped(m, low, c);
        else if (p + 1 < end && *p == '-') in |= p[1] == '\\' ? fail(m) : low <= c && c <= p[1], p += 2;
        else in |= low == c;
    }
    return in != negated;
}

static bool is_one(matcher *m, span atom, char c)
{
    if (!c) return false;
    if (*atom.at == '[') return is_in_set(m, atom, c);
    return *atom.at == '\\' ? is_escaped(m, atom.at[1], c) : *atom.at == '.' || *atom.at == c;
}

/* Reads the quantifier at *at. False: other syntax. */
static bool quantifier(span p, const char **at, int *min, int *max)
{
    const char *c = *at;
    *min = 1, *max = 1;
    if (c == p.end || !strchr("*+?{", *c)) return true;
    *min = *c == '+', *max = *c == '?' ? 1 : 1 << 30;
    if (*c == '{') {
        const bool low = is_digit(c[1]);
        for (c++; is_digit(*c) && *min <= REPEATS; c++) *min = 10 * *min + (*c - '0');
        if (*c != ',') *max = *min;
        else if (is_digit(*++c))
            for (*max = 0; is_digit(*c) && *max <= REPEATS; c++) *max = 10 * *max + (*c - '0');
        if (!low || *c != '}' || *min > REPEATS || *max < *min) return false;
    }
    c++;
    c += c < p.end && *c == '?';
    *at = c;
    return c == p.end || !strchr("*+?{", *c);
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

static bool again(matcher *m, const rest *r, const char *s);

/* True if the text from s is the sequence p, then next. */
static bool sequence(matcher *m, span p, const char *s, const rest *next)
{
    if (p.at == p.end) return next ? again(m, next, s) : !*s;
    const bool bound = *p.at == '\\' && p.at[1] == 'b';
    if (*p.at == '^' || *p.at == '$' || bound) {
        const bool before = s > m->text && is_word(s[-1]);
        const bool here = bound ? before != is_word(*s) : *p.at == '^' ? s == m->text : !*s;
        return here && sequence(m, (span){p.at + 1 + bound, p.end}, s, next);
    }
    rest        r = {.atom = p, .next = next};
    const char *end = r.atom.end = atom_end(p);
    if (!end || !quantifier(p, &end, &r.min, &r.max)) return fail(m);
    r.rest = (span){end, p.end};
    return again(m, &r, s);
}

/* True if the text from s is one of p's alternatives, then next. */
static bool alternatives(matcher *m, span p, const char *s, const rest *next)
{
    for (const char *c = p.at;; c++) {
        const char *start = c;
        while (c && c < p.end && *c != '|') c = strchr("*+?{}", *c) ? c + 1 : atom_end((span){c, p.end});
        if (!c) return fail(m);
        if (sequence(m, (span){start, c}, s, next)) return true;
        if (c == p.end || m->unknown) return false;
    }
}

/* True if the text from s is further repetitions of r's atom, then what follows them. */
static bool again(matcher *m, const rest *r, const char *s)
{
    bool found = false;
    if (m->steps++ > STEPS || m->depth++ > DEPTH) return fail(m);
    if (r->max > 0 && (r->from != s || r->min > 0)) {
        rest more = *r;
        more.min -= more.min > 0, more.max--, more.from = s;
        span inner = {r->atom.at + 1, r->atom.end - 1};
        if (*r->atom.at != '(') found = is_one(m, r->atom, *s) && again(m, &more, s + 1);
        else if (*inner.at != '?') found = alternatives(m, inner, s, &more);
        else found = inner.at[1] == ':' ? inner.at += 2, alternatives(m, inner, s, &more) : fail(m);
    }
    if (!found && !m->unknown && !r->min) found = sequence(m, r->rest, s, r->next);
    m->depth--;
    return found;
}

int tn__pattern_matches(const char *pattern, const char *text)
{
    matcher    m = {.text = text};
    const span all = {pattern, pattern + strlen(pattern)};
    const bool found = all.end - all.at <= BYTES ? alternatives(&m, all, text, NULL) : fail(&m);
    return m.unknown ? -1 : found;
}

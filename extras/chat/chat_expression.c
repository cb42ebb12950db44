/* chat_expression.c — the tokens and expressions of chat templates.
 *
 * Expressions become steps in the order of evaluation with a stack of open brackets and pending operators, so nothing
 * here calls itself, and the depth is limited. `x if c else y` needs the steps of c before those of x: they are
 * exchanged, which relative jumps allow. */
#include "extras/chat/chat_parser.h"

#include <stdarg.h>
#include <string.h>

enum { MOST_STEPS = 1 << 17, NUMBER_MOST = 1000000000, COMPARISON = 5 /* the rank of == and others */, NEGATION = 9 };

bool tn__parse_fail(const tn__parser *p, const char *fmt, ...)
{
    char    text[240];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return tn_raise_false(TN_EUNSUPPORTED, "chat template, line %d: %s", p->line, text);
}

int tn__parse_emit(tn__parser *p, uint8_t op, int count, int32_t a, int32_t b)
{
    tn_chat *c = p->c;
    if (tn_error() != TN_OK) return 0;
    if (c->steps == c->room) {
        const int      room = c->room ? 2 * c->room : 64;
        tn__chat_step *more = room <= MOST_STEPS ? tn_mem_get((size_t)room * sizeof *more) : NULL;
        if (!more) return tn__parse_fail(p, "the template has more than %d steps", MOST_STEPS), 0;
        if (c->steps) memcpy(more, c->step, (size_t)c->steps * sizeof *more);
        tn_mem_put(c->step, (size_t)c->room * sizeof *more);
        c->step = more, c->room = room;
    }
    c->step[c->steps] = (tn__chat_step){.op = op, .count = (int16_t)count, .a = a, .b = b, .line = p->line};
    return c->steps++;
}
void tn__parse_land(tn__parser *p, int at)
{
    if (tn_error() == TN_OK) p->c->step[at].a = p->c->steps - at - 1;
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

/* The digits of \x, \u and \U in s[2 …] from its backslash, as a number; -1 sets the error. */
static int64_t hexadecimal(const tn__parser *p, const char *s, size_t n, size_t digits)
{
    static const char hex[] = "0123456789abcdef";
    int64_t           code = 0;
    for (size_t at = 2; at < 2 + digits; at++) {
        const char *d = at < n && s[at] ? strchr(hex, s[at] >= 'A' ? s[at] | 32 : s[at]) : NULL;
        if (!d) return tn__parse_fail(p, "'\\%c' in a string needs %zu hexadecimal digits", s[1], digits), -1;
        code = 16 * code + (d - hex);
    }
    if (code >= 0xd800 && code < 0xe000) tn__parse_fail(p, "a surrogate in a string is not supported");
    else if (code > 0x10ffff) tn__parse_fail(p, "'\\U' in a string is beyond 10ffff");
    return code;
}

/* Decodes an escape of a string, s[0 … n - 1] from its backslash, as Python does; returns its bytes. A backslash before
 * another character stays. *code: the character, or -1: none. */
static size_t escape(const tn__parser *p, const char *s, size_t n, int64_t *code)
{
    static const char from[] = "nrtabfv\\'\"", is[] = "\n\r\t\a\b\f\v\\'\"";
    const char        kind = n > 1 ? s[1] : 0, *e = kind ? strchr(from, kind) : NULL;
    const size_t      digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    size_t            at = 1;
    *code = '\\';
    if (kind >= '0' && kind <= '7') {
        for (*code = 0; at < n && at < 4 && s[at] >= '0' && s[at] <= '7'; at++) *code = 8 * *code + s[at] - '0';
        return at;
    }
    if (digits) return *code = hexadecimal(p, s, n, digits), 2 + digits;
    if (kind == 'N') tn__parse_fail(p, "names of characters in a string, '\\N', are not supported");
    if (kind == '\n') *code = -1;
    else if (e) *code = is[e - from];
    else return 1;
    return 2;
}

/* A string from p->at, which is at its quote. With escapes it is copied to the end of c->text: never longer. */
static bool string(tn__parser *p)
{
    tn_chat    *c = p->c;
    const char *s = c->text;
    const char  quote = s[p->at];
    size_t      end = p->at + 1, to = c->bytes;
    bool        plain = true;
    for (; end < p->n && s[end] != quote; end++) {
        p->line += s[end] == '\n';
        if (s[end] == '\\') end++, plain = false;
    }
    if (end >= p->n) return tn__parse_fail(p, "a string has no end");
    p->t = (tn__chat_token){.kind = T_STRING, .a = (int32_t)p->at + 1, .b = (int32_t)(end - p->at - 1)};
    for (size_t i = p->at + 1; !plain && i < end && tn_error() == TN_OK;) {
        int64_t code;
        if (s[i] != '\\') c->text[c->bytes++] = s[i++];
        else if (i += escape(p, s + i, end - i, &code), code >= 0 && tn_error() == TN_OK)
            c->bytes += (size_t)tn_utf8_put((uint32_t)code, c->text + c->bytes);
    }
    if (!plain) p->t.a = (int32_t)to, p->t.b = (int32_t)(c->bytes - to);
    p->at = end + 1;
    return tn_error() == TN_OK;
}

static bool is_word(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z' ? true : c == '_' || (c >= '0' && c <= '9'); }

/* An integer of n characters from `here`. */
static bool number(tn__parser *p, const char *here, size_t n, bool point)
{
    p->t.kind = T_NUMBER;
    if (point) return tn__parse_fail(p, "numbers with a point are not supported");
    for (size_t i = 0; i < n; i++) {
        if (here[i] < '0' || here[i] > '9' || p->t.number > NUMBER_MOST / 10)
            return tn__parse_fail(p, "'%.*s' is not an integer up to %d", (int)n, here, NUMBER_MOST);
        p->t.number = 10 * p->t.number + here[i] - '0';
    }
    return true;
}

/* True for operators of two characters. */
static bool is_pair(const char *here)
{
    return strchr("=!<>", here[0]) ? here[1] == '=' : here[0] == here[1] && strchr("/*", here[0]);
}

/* The end of a tag; `}}` within a dict is two brackets. */
static bool at_end(const tn__parser *p, const char *here, size_t left)
{
    const size_t sign = (*here == '-' || *here == '+') && left > 2;
    return left >= 2 + sign && here[sign + 1] == '}' && (here[sign] == '%' || (here[sign] == '}' && !p->braces));
}

bool tn__parse_next(tn__parser *p)
{
    const char *s = p->c->text;
    while (p->at < p->n && strchr(" \t\n\r", s[p->at])) p->line += s[p->at++] == '\n';
    if (p->at >= p->n) return tn__parse_fail(p, "a tag has no end");
    const char  *here = s + p->at;
    const size_t left = p->n - p->at;
    if (at_end(p, here, left)) return p->t = (tn__chat_token){.kind = T_END}, true;
    if (*here == '"' || *here == '\'') return string(p);
    size_t n = 0;
    while (n < left && is_word(here[n])) n++;
    p->t = (tn__chat_token){.kind = n ? T_NAME : T_OTHER, .a = (int32_t)p->at, .b = 1};
    if (n && *here >= '0' && *here <= '9') {
        if (!number(p, here, n, n < left && here[n] == '.')) return false;
    } else if (!n) n = left > 1 && is_pair(here) ? 2 : 1;
    p->t.b = (int32_t)n;
    p->at += n;
    return true;
}

bool tn__parse_is(const tn__parser *p, const char *text)
{
    return (p->t.kind == T_NAME || p->t.kind == T_OTHER) && (size_t)p->t.b == strlen(text) &&
           !memcmp(p->c->text + p->t.a, text, (size_t)p->t.b);
}
/* ---- expressions ------------------------------------------------------------------------------------------------- */

static bool push(tn__parser *p, tn__entry e)
{
    if (p->depth == TN__CHAT_DEPTH)
        return tn__parse_fail(p, "an expression is nested more than %d deep", TN__CHAT_DEPTH);
    e.start = p->c->steps + (e.kind == AND || e.kind == OR);
    p->stack[p->depth++] = e;
    p->operand = true;
    return true;
}

/* Emits the pending operators of at least this rank. */
static void reduce(tn__parser *p, int rank)
{
    for (; p->depth; p->depth--) {
        const tn__entry *e = &p->stack[p->depth - 1];
        if (e->kind < BINARY || e->kind > OR || e->rank < rank) return;
        if (e->kind == BINARY) tn__parse_emit(p, STEP_BINARY, 0, e->a, e->b);
        else if (e->kind == NOT) tn__parse_emit(p, STEP_NOT, 0, 0, 0);
        else if (e->kind == NEGATE) tn__parse_emit(p, STEP_NEGATE, 0, 0, 0);
        else tn__parse_land(p, e->at);
    }
}

/* The steps from `start` are x and, from `cond`, c: now c, a jump, x and a jump, whose index is returned. */
static int exchange(tn__parser *p, int start, int cond)
{
    const int x = cond - start, c = p->c->steps - cond;
    tn__parse_emit(p, STEP_JUMP, 0, 0, 0), tn__parse_emit(p, STEP_JUMP, 0, 0, 0);
    if (tn_error() != TN_OK) return 0;
    tn__chat_step *s = p->c->step + start;
    /* x c _ _ to c f x j: reverse both, then each part */
    for (int pass = 0; pass < 3; pass++) {
        int from = pass == 2 ? c : 0, to = pass == 0 ? x + c : pass == 1 ? c : c + x;
        for (to--; from < to; from++, to--) {
            const tn__chat_step k = s[from];
            s[from] = s[to], s[to] = k;
        }
    }
    memmove(s + c + 1, s + c, (size_t)x * sizeof *s);
    s[c] = (tn__chat_step){.op = STEP_JUMP_FALSE, .a = x + 1, .line = p->line};
    s[c + x + 1] = (tn__chat_step){.op = STEP_JUMP, .line = p->line};
    return start + c + x + 1;
}

/* Completes x if c, without an else: it is undefined if c is false. */
static void end_if(tn__parser *p)
{
    const tn__entry e = p->stack[--p->depth];
    const int       at = exchange(p, e.at, e.start);
    tn__parse_emit(p, STEP_NAME, 0, 0, 0), tn__parse_land(p, at);
}

/* Completes everything back to the innermost open bracket. */
static void finish(tn__parser *p)
{
    for (reduce(p, 0); p->depth && p->stack[p->depth - 1].kind >= IF; reduce(p, 0)) {
        if (p->stack[p->depth - 1].kind == IF) end_if(p);
        else tn__parse_land(p, p->stack[--p->depth].at);
    }
}

/* The first step of the operand or part that is being read. */
static int part_start(const tn__parser *p, int first)
{
    for (int i = p->depth - 1; i >= 0; i--)
        if (p->stack[i].kind <= CALL || p->stack[i].kind == ELSE) return p->stack[i].start;
    return first;
}

static bool binary(tn__parser *p, int rank, int32_t a, int32_t b)
{
    reduce(p, rank + (rank == COMPARISON));
    const tn__entry *e = p->depth ? &p->stack[p->depth - 1] : NULL;
    if (rank == COMPARISON && e && e->kind == BINARY && e->rank == rank)
        return tn__parse_fail(p, "chained comparisons are not supported; join them with 'and'");
    reduce(p, rank);
    return push(p, (tn__entry){.kind = BINARY, .rank = rank, .a = a, .b = b}) && tn__parse_next(p);
}

static bool open_call(tn__parser *p, uint8_t op, int32_t a, int32_t b, bool negated)
{
    return push(p, (tn__entry){.kind = CALL, .op = op, .a = a, .b = b, .negated = negated}) && tn__parse_next(p);
}

/* After '|' or 'is': a name, perhaps with arguments. -x | f is (-x) | f. */
static bool filter_or_test(tn__parser *p, uint8_t op)
{
    reduce(p, NEGATION);
    if (!tn__parse_next(p)) return false;
    const bool negated = op == STEP_TEST && tn__parse_is(p, "not");
    if (negated && !tn__parse_next(p)) return false;
    if (p->t.kind != T_NAME) return tn__parse_fail(p, "expected the name of a %s", op == STEP_TEST ? "test" : "filter");
    const tn__chat_token t = p->t;
    if (!tn__parse_next(p)) return false;
    if (tn__parse_is(p, "(")) return open_call(p, op, t.a, t.b, negated);
    tn__parse_emit(p, op, 0, t.a, t.b);
    if (negated) tn__parse_emit(p, STEP_NOT, 0, 0, 0);
    return tn_error() == TN_OK;
}

/* A '(' after an operand: a call of the name or member before it. */
static bool call(tn__parser *p)
{
    tn__chat_step *last = p->c->steps ? &p->c->step[p->c->steps - 1] : NULL;
    if (!last || (last->op != STEP_NAME && last->op != STEP_MEMBER))
        return tn__parse_fail(p, "only names can be called");
    const tn__chat_step s = *last;
    p->c->steps--;
    return open_call(p, s.op == STEP_NAME ? STEP_CALL : STEP_METHOD, s.a, s.b, false);
}

/* The steps of a complete bracket. */
static void close_bracket(tn__parser *p, tn__entry e)
{
    if (e.kind == INDEX && e.op) {
        for (; e.count < 3; e.count++) tn__parse_emit(p, STEP_NONE, 0, 0, 0);
        tn__parse_emit(p, STEP_SLICE, 0, 0, 0);
    } else if (e.kind == INDEX) tn__parse_emit(p, STEP_INDEX, 0, 0, 0);
    else if (e.kind == LIST || (e.kind == GROUP && e.named)) tn__parse_emit(p, STEP_LIST, e.count, 0, 0);
    else if (e.kind == DICT) tn__parse_emit(p, STEP_DICT, e.count / 2, 0, 0);
    else if (e.kind == CALL) {
        const int at = tn__parse_emit(p, e.op, e.count, e.a, e.b);
        if (tn_error() == TN_OK) p->c->step[at].named = (uint8_t)e.named;
        if (e.negated) tn__parse_emit(p, STEP_NOT, 0, 0, 0);
    }
}

static bool close(tn__parser *p)
{
    static const char closing[] = {[GROUP] = ')', [LIST] = ']', [DICT] = '}', [INDEX] = ']', [CALL] = ')'};
    const char        c = p->c->text[p->t.a];
    finish(p);
    if (!p->depth) return tn__parse_fail(p, "'%c' closes nothing", c);
    tn__entry e = p->stack[--p->depth];
    if (closing[e.kind] != c) return tn__parse_fail(p, "'%c' closes another bracket", c);
    if (p->operand && (e.kind == GROUP ? !e.count : e.kind == INDEX && !e.op))
        return tn__parse_fail(p, "an operand is missing");
    if (p->operand && e.kind == INDEX) tn__parse_emit(p, STEP_NONE, 0, 0, 0), p->operand = false;
    e.count += !p->operand;
    p->braces -= e.kind == DICT;
    if (e.kind == DICT && e.count % 2) return tn__parse_fail(p, "a dict needs a value for each key");
    close_bracket(p, e);
    p->operand = false;
    return tn_error() == TN_OK && tn__parse_next(p);
}

/* ',' or ':' between the parts of a bracket. */
static bool separate(tn__parser *p)
{
    const bool colon = tn__parse_is(p, ":");
    finish(p);
    tn__entry *e = p->depth ? &p->stack[p->depth - 1] : NULL;
    if (!e || e->kind > CALL || (colon ? e->kind != DICT && e->kind != INDEX : e->kind == INDEX))
        return tn__parse_fail(p, "'%s' is not expected here", colon ? ":" : ",");
    if (p->operand && !(colon && e->kind == INDEX))
        return tn__parse_fail(p, "an operand is missing before '%s'", colon ? ":" : ",");
    if (p->operand) tn__parse_emit(p, STEP_NONE, 0, 0, 0);
    if (e->kind == INDEX) e->op = 1;
    if (e->kind == GROUP) e->named = 1; /* (x,) is a list */
    if (++e->count > 1000 || (e->kind == INDEX && e->count > 2))
        return tn__parse_fail(p, "a bracket has too many parts");
    e->start = p->c->steps, p->operand = true;
    return tn__parse_next(p);
}

/* A name as an operand: a variable, a constant, or the name of an argument. */
static bool name(tn__parser *p)
{
    static const struct {
        const char *text;
        uint8_t     op;
    } constants[] = {{"true", STEP_TRUE},   {"True", STEP_TRUE}, {"false", STEP_FALSE},
                     {"False", STEP_FALSE}, {"none", STEP_NONE}, {"None", STEP_NONE}};
    const tn__chat_token t = p->t;
    tn__entry           *e = p->depth ? &p->stack[p->depth - 1] : NULL;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (tn__parse_is(p, constants[i].text))
            return tn__parse_emit(p, constants[i].op, 0, 0, 0), p->operand = false, tn__parse_next(p);
    if (!tn__parse_next(p)) return false;
    if (e && e->kind == CALL && tn__parse_is(p, "=")) {
        tn__parse_emit(p, STEP_STRING, 0, t.a, t.b);
        e->count++, e->named++, e->start = p->c->steps;
        return e->named < 100 ? tn__parse_next(p) : tn__parse_fail(p, "a call has too many arguments");
    }
    tn__parse_emit(p, STEP_NAME, 0, t.a, t.b);
    return p->operand = false, tn_error() == TN_OK;
}

static bool read_operand(tn__parser *p)
{
    const tn__chat_token t = p->t;
    if (t.kind == T_STRING) {
        tn__parse_emit(p, STEP_STRING, 0, t.a, t.b);
        p->operand = false;
        if (!tn__parse_next(p)) return false;
        while (p->t.kind == T_STRING) { /* 'a' 'b' */
            tn__parse_emit(p, STEP_STRING, 0, p->t.a, p->t.b);
            tn__parse_emit(p, STEP_BINARY, 0, -1, 0);
            if (!tn__parse_next(p)) return false;
        }
        return tn_error() == TN_OK;
    }
    if (t.kind == T_NUMBER)
        return tn__parse_emit(p, STEP_INTEGER, 0, t.number, 0), p->operand = false, tn__parse_next(p);
    if (tn__parse_is(p, "not")) return push(p, (tn__entry){.kind = NOT, .rank = 4}) && tn__parse_next(p);
    if (t.kind == T_NAME) return name(p);
    if (tn__parse_is(p, "-")) return push(p, (tn__entry){.kind = NEGATE, .rank = NEGATION}) && tn__parse_next(p);
    if (tn__parse_is(p, "(")) return push(p, (tn__entry){.kind = GROUP}) && tn__parse_next(p);
    if (tn__parse_is(p, "[")) return push(p, (tn__entry){.kind = LIST}) && tn__parse_next(p);
    if (tn__parse_is(p, "{")) return p->braces++, push(p, (tn__entry){.kind = DICT}) && tn__parse_next(p);
    if (tn__parse_is(p, ")") || tn__parse_is(p, "]") || tn__parse_is(p, "}")) return close(p); /* of an empty bracket */
    if (tn__parse_is(p, ":")) return separate(p);
    return tn__parse_fail(p, "expected a value%s%.*s%s", t.kind == T_END ? "" : " instead of '",
                          t.kind == T_END ? 0 : (int)t.b, t.kind == T_END ? "" : p->c->text + t.a,
                          t.kind == T_END ? "" : "'");
}

/* The rank of an operator between two operands; 0: not one. */
static int rank_of(const tn__parser *p)
{
    static const struct {
        const char *text;
        int         rank;
    } ranks[] = {{"==", COMPARISON}, {"!=", COMPARISON}, {"<", COMPARISON}, {">", COMPARISON}, {"<=", COMPARISON},
                 {">=", COMPARISON}, {"in", COMPARISON}, {"+", 6},          {"-", 6},          {"~", 7},
                 {"*", 8},           {"/", 8},           {"//", 8},         {"%", 8}};
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        if (tn__parse_is(p, ranks[i].text)) return ranks[i].rank;
    return 0;
}

/* x if …: what follows is the condition. In `x if c if d`, x if c is the x of d. */
static bool condition(tn__parser *p, int first)
{
    reduce(p, 0);
    if (p->depth && p->stack[p->depth - 1].kind == IF) end_if(p);
    return push(p, (tn__entry){.kind = IF, .at = part_start(p, first)}) && tn__parse_next(p);
}

static bool otherwise(tn__parser *p)
{
    reduce(p, 0);
    tn__entry *e = &p->stack[p->depth - 1];
    const int  at = exchange(p, e->at, e->start);
    *e = (tn__entry){.kind = ELSE, .at = at, .start = p->c->steps};
    return p->operand = true, tn__parse_next(p);
}

/* The innermost IF that waits for its else, within the innermost bracket. */
static bool has_if(const tn__parser *p)
{
    int i = p->depth - 1;
    while (i >= 0 && p->stack[i].kind >= BINARY && p->stack[i].kind <= OR) i--;
    return i >= 0 && p->stack[i].kind == IF;
}

static bool not_in(tn__parser *p)
{
    const int32_t a = p->t.a;
    if (!tn__parse_next(p)) return false;
    return tn__parse_is(p, "in") ? binary(p, COMPARISON, a, 3) : tn__parse_fail(p, "expected 'in' after 'not'");
}

static bool logical(tn__parser *p, bool both)
{
    reduce(p, both ? 3 : 2);
    const int at = tn__parse_emit(p, both ? STEP_AND : STEP_OR, 0, 0, 0);
    return push(p, (tn__entry){.kind = both ? AND : OR, .rank = both ? 3 : 2, .at = at}) && tn__parse_next(p);
}

static bool member(tn__parser *p)
{
    if (!tn__parse_next(p) || (p->t.kind != T_NAME && p->t.kind != T_NUMBER))
        return tn__parse_fail(p, "expected a name after '.'");
    return tn__parse_emit(p, STEP_MEMBER, 0, p->t.a, p->t.b), tn__parse_next(p);
}

/* Reads an operator with its own rule, or a bracket. *more: false if it is neither. */
static bool special(tn__parser *p, int first, bool conditional, bool *more)
{
    if (tn__parse_is(p, "[")) return push(p, (tn__entry){.kind = INDEX}) && tn__parse_next(p);
    if (tn__parse_is(p, ")") || tn__parse_is(p, "]") || tn__parse_is(p, "}")) return close(p);
    if (tn__parse_is(p, "else") && has_if(p)) return otherwise(p);
    if (tn__parse_is(p, "if") && (conditional || p->depth)) return condition(p, first);
    if (p->depth && (tn__parse_is(p, ",") || tn__parse_is(p, ":"))) return separate(p);
    return *more = false, true;
}

/* Reads what follows an operand. *more: false at the end of the expression. */
static bool after_operand(tn__parser *p, int first, bool conditional, bool *more)
{
    const int rank = rank_of(p);
    *more = true;
    if (rank) return binary(p, rank, p->t.a, p->t.b);
    if (tn__parse_is(p, "not")) return not_in(p);
    if (tn__parse_is(p, "and") || tn__parse_is(p, "or")) return logical(p, tn__parse_is(p, "and"));
    if (tn__parse_is(p, "|")) return filter_or_test(p, STEP_FILTER);
    if (tn__parse_is(p, "is")) return filter_or_test(p, STEP_TEST);
    if (tn__parse_is(p, "(")) return call(p);
    return tn__parse_is(p, ".") ? member(p) : special(p, first, conditional, more);
}

/* Reads an expression; p->t is the token after it. conditional: it may be `x if c else y`. */
bool tn__parse_expression(tn__parser *p, bool conditional)
{
    const int first = p->c->steps;
    p->depth = 0, p->operand = true, p->braces = 0;
    for (bool more = true; more;) {
        if (!(p->operand ? read_operand(p) : after_operand(p, first, conditional, &more))) return false;
    }
    finish(p);
    if (p->depth) return tn__parse_fail(p, "a bracket is not closed");
    return tn_error() == TN_OK;
}

/* chat_run.c — runs a chat template, the steps of chat_private.h, within its limits. */
#include "extras/chat/chat_values.h"

#include <string.h>

/* ---- the stack and variables ------------------------------------------------------------------------------------- */

static void push(tn__chat_vm *v, tn__value x)
{
    if (v->depth == TN__CHAT_STACK) tn__chat_fail(v, "an expression has too many parts");
    else v->stack[v->depth++] = x;
}
static tn__value pop(tn__chat_vm *v)
{
    if (v->depth > 0) return v->stack[--v->depth];
    tn__chat_fail(v, "an operand is missing");
    return (tn__value){.type = V_UNDEFINED};
}

static tn__value text_at(const tn__chat_vm *v, int32_t a, int32_t b)
{
    return tn__text_value(v->c->text + a, (size_t)b);
}

/* Variables are looked up from the innermost loop outwards. from: the first to compare. -1: not found. */
static int find(const tn__chat_vm *v, tn__value name, int from)
{
    for (int i = v->names - 1; i >= from; i--)
        if (v->variable[i].bytes == (size_t)name.n && !memcmp(v->variable[i].name, name.text, (size_t)name.n)) return i;
    return -1;
}

/* Sets a variable of the innermost loop or {% set %} block, or outside of them. */
static void set(tn__chat_vm *v, tn__value name, tn__value x)
{
    const int in_loop = v->loops ? v->loop[v->loops - 1].names : 0,
              in_block = v->captures ? v->capture[v->captures - 1].names : 0,
              at = find(v, name, in_loop > in_block ? in_loop : in_block);
    if (at >= 0) {
        v->variable[at].value = x;
        return;
    }
    if (v->names == TN__CHAT_NAMES) {
        tn__chat_fail(v, "more than %d variables", TN__CHAT_NAMES);
        return;
    }
    v->variable[v->names].name = name.text, v->variable[v->names].bytes = (size_t)name.n;
    v->variable[v->names++].value = x;
}

static tn__value value_of(const tn__chat_vm *v, tn__value name)
{
    static const char *const others[] = {"pad_token", "unk_token", "sep_token", "cls_token", "mask_token"};
    const int                at = find(v, name, 0);
    for (size_t i = 0; at < 0 && i < sizeof others / sizeof *others; i++)
        if (tn__value_is(name, others[i])) tn__chat_fail(v, "'%s' is not supported", others[i]);
    return at < 0 ? (tn__value){.type = V_UNDEFINED} : v->variable[at].value;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static tn__value arithmetic(tn__chat_vm *v, char op, bool two, tn__value x, tn__value y)
{
    int64_t n = 0;
    if (!tn__is_numeric(x) || !tn__is_numeric(y)) return tn__chat_fail(v, "'%c' needs two numbers", op), x;
    if (op == '/' && !two)
        return tn__chat_fail(v, "'/' gives numbers with a point, which are not supported; use '//'"), x;
    if (op == '+') n = x.n + y.n;
    else if (op == '-') n = x.n - y.n;
    else if (op == '*') n = x.n * y.n;
    else if (!y.n) return tn__chat_fail(v, "division by 0"), x;
    else {
        const int64_t q = x.n / y.n - (x.n % y.n != 0 && (x.n < 0) != (y.n < 0)); /* rounded down */
        n = op == '/' ? q : x.n - q * y.n;
    }
    if (n > INT32_MAX || n < INT32_MIN) return tn__chat_fail(v, "a number is beyond 2^31"), x;
    return tn__integer_value(n);
}

static int order(tn__chat_vm *v, tn__value x, tn__value y)
{
    if (tn__is_numeric(x) && tn__is_numeric(y)) return (x.n > y.n) - (x.n < y.n);
    if (x.type != V_TEXT || y.type != V_TEXT) return tn__chat_fail(v, "'<' and '>' need two numbers or two texts"), 0;
    const int c = memcmp(x.text, y.text, (size_t)(x.n < y.n ? x.n : y.n));
    return c ? c : (x.n > y.n) - (x.n < y.n);
}

static tn__value as_text(tn__chat_vm *v, tn__value x)
{
    tn_string s = {0};
    if (x.type == V_TEXT) return x;
    tn__write_value(v, x, &s);
    return tn__kept_text(v, &s);
}

static tn__value lists(tn__chat_vm *v, tn__value x, tn__value y)
{
    tn__value z = tn__new_list(v, x.n + y.n);
    for (int64_t i = 0; z.type == V_LIST && i < z.n; i++) z.list[i] = i < x.n ? x.list[i] : y.list[i - x.n];
    return z;
}

static tn__value binary(tn__chat_vm *v, const tn__chat_step *s, tn__value x, tn__value y)
{
    const char c = s->a < 0 ? '~' : v->c->text[s->a]; /* 'a' 'b' */
    const bool two = s->b == 2;
    tn__chat_count(v, x), tn__chat_count(v, y);
    if (c == '=') return tn__bool_value(tn__value_equal(v, x, y));
    if (c == '!') return tn__bool_value(!tn__value_equal(v, x, y));
    if (c == 'i') return tn__bool_value(tn__value_contains(v, x, y));
    if (c == 'n') return tn__bool_value(!tn__value_contains(v, x, y));
    if (c == '<') return tn__bool_value(order(v, x, y) < two);
    if (c == '>') return tn__bool_value(order(v, x, y) > -two);
    if (c == '~') return tn__value_joined(v, as_text(v, x), as_text(v, y));
    if (c == '+' && x.type == V_TEXT && y.type == V_TEXT) return tn__value_joined(v, x, y);
    if (c == '+' && x.type == V_LIST && y.type == V_LIST) return lists(v, x, y);
    if (c == '+' && (x.type == V_TEXT || y.type == V_TEXT))
        return tn__chat_fail(v, "'+' joins two texts, but one operand is %s",
                             x.type == V_UNDEFINED || y.type == V_UNDEFINED ? "undefined" : "not a text"),
               x;
    return arithmetic(v, c, two, x, y);
}

/* x.name or x[i]: of undefined an error, of none undefined, as in Jinja. */
static tn__value member(tn__chat_vm *v, tn__value x, tn__value key)
{
    if (x.type == V_UNDEFINED)
        tn__chat_fail(v, "'%.*s' of a value that is not defined", key.type == V_TEXT ? (int)key.n : 4,
                      key.type == V_TEXT ? key.text : "item");
    return tn__value_member(v, x, key);
}

static tn__value collect(tn__chat_vm *v, int count, bool dict)
{
    const int n = dict ? 2 * count : count;
    tn__value x = dict ? tn__new_dict(v) : tn__new_list(v, n);
    if (v->depth < n) tn__chat_fail(v, "an operand is missing");
    if (tn_error() != TN_OK) return x;
    const tn__value *at = v->stack + v->depth - n;
    for (int i = 0; i < n; i += 1 + dict)
        if (dict) tn__set_member(v, x, at[i], at[i + 1]);
        else x.list[i] = at[i];
    v->depth -= n;
    return x;
}

static tn__value call(tn__chat_vm *v, const tn__chat_step *s)
{
    const int n = s->count + (s->op != STEP_CALL);
    if (v->depth < n) return tn__chat_fail(v, "an operand is missing"), (tn__value){.type = V_UNDEFINED};
    v->depth -= n;
    for (int i = 0; i < n; i++) tn__chat_count(v, v->stack[v->depth + i]);
    return tn__chat_call(v, s, n, v->stack + v->depth);
}

/* The variables of the loop for its item. */
static void item(tn__chat_vm *v, const tn__chat_step *names, int count)
{
    const tn__loop *l = &v->loop[v->loops - 1];
    const tn__value x = l->list.list[l->at];
    v->names = l->names;
    set(v, tn__text_value("loop", 4), (tn__value){.type = V_LOOP, .n = v->loops - 1});
    if (count > 1 && (x.type != V_LIST || x.n != count)) tn__chat_fail(v, "an item does not have %d parts", count);
    for (int i = 0; i < count && tn_error() == TN_OK; i++)
        set(v, text_at(v, names[i].a, names[i].b), count > 1 ? x.list[i] : x);
}

/* Starts a loop; returns the number of steps to skip. */
static int32_t start_loop(tn__chat_vm *v, const tn__chat_step *s)
{
    tn__value x = pop(v);
    if (x.type == V_DICT) { /* its keys */
        tn__value keys = tn__new_list(v, x.members->n / 2);
        for (int64_t i = 0; keys.type == V_LIST && i < keys.n; i++) keys.list[i] = x.members->at[2 * i];
        x = keys;
    }
    if (x.type == V_UNDEFINED && tn_error() == TN_OK) return s->a; /* no items */
    if (x.type != V_LIST) return tn__chat_fail(v, "'for' needs a list"), 0;
    if (!x.n) return s->a;
    if (v->loops == TN__CHAT_LOOPS) return tn__chat_fail(v, "loops are nested more than %d deep", TN__CHAT_LOOPS), 0;
    v->loop[v->loops++] = (tn__loop){.list = x, .names = v->names};
    item(v, s + 1, s->count);
    return s->count;
}

static int32_t next_turn(tn__chat_vm *v, const tn__chat_step *s)
{
    if (!v->loops) return tn__chat_fail(v, "a loop is missing"), 0;
    tn__loop            *l = &v->loop[v->loops - 1];
    const tn__chat_step *body = s + 1 + s->a; /* after the STEP_FOR and the names */
    if (++l->at >= l->list.n) return v->names = l->names, v->loops--, 0;
    const int count = body[-1].op == STEP_NAME && body[-2].op == STEP_NAME ? 2 : 1;
    item(v, body - count, count);
    return s->a;
}

static void write(tn__chat_vm *v, tn__value x)
{
    tn__write_value(v, x, v->to);
    if (v->to->bytes - v->before > TN__CHAT_MEMORY)
        tn__chat_fail(v, "the text has more than %d MiB", TN__CHAT_MEMORY >> 20);
}

static void capture(tn__chat_vm *v)
{
    if (v->captures == TN__CHAT_LOOPS) tn__chat_fail(v, "'set' is nested more than %d deep", TN__CHAT_LOOPS);
    else {
        v->capture[v->captures].bytes = v->to->bytes;
        v->capture[v->captures++].names = v->names;
    }
}
static void captured(tn__chat_vm *v)
{
    if (!v->captures) {
        tn__chat_fail(v, "'endset' has no beginning");
        return;
    }
    const size_t from = v->capture[--v->captures].bytes;
    tn_string    s = {0};
    v->names = v->capture[v->captures].names;
    tn_string_add(&s, (tn_text){v->to->at ? v->to->at + from : "", v->to->bytes - from});
    v->to->bytes = from;
    push(v, tn__kept_text(v, &s));
}

/* Steps that push one value. */
static tn__value constant(tn__chat_vm *v, const tn__chat_step *s)
{
    switch (s->op) {
    case STEP_STRING: return text_at(v, s->a, s->b);
    case STEP_INTEGER: return tn__integer_value(s->a);
    case STEP_TRUE: return tn__bool_value(true);
    case STEP_FALSE: return tn__bool_value(false);
    case STEP_NAME: return value_of(v, text_at(v, s->a, s->b));
    default: return (tn__value){.type = V_NONE};
    }
}

/* Steps that take values from the stack and push one. */
static tn__value computed(tn__chat_vm *v, const tn__chat_step *s)
{
    tn__value x, y, z;
    switch (s->op) {
    case STEP_MEMBER: return member(v, pop(v), text_at(v, s->a, s->b));
    case STEP_INDEX: return y = pop(v), x = pop(v), member(v, x, y);
    case STEP_SLICE: return z = pop(v), y = pop(v), x = pop(v), tn__value_slice(v, pop(v), x, y, z);
    case STEP_LIST: return collect(v, s->count, false);
    case STEP_DICT: return collect(v, s->count, true);
    case STEP_CALL:
    case STEP_METHOD:
    case STEP_FILTER:
    case STEP_TEST: return call(v, s);
    case STEP_NOT: return tn__bool_value(!tn__value_truth(v, pop(v)));
    case STEP_NEGATE: return arithmetic(v, '-', false, tn__integer_value(0), pop(v));
    case STEP_BINARY: return y = pop(v), x = pop(v), binary(v, s, x, y);
    default: return constant(v, s);
    }
}

/* Runs one step; returns the number of steps to skip. */
static int32_t run(tn__chat_vm *v, const tn__chat_step *s)
{
    tn__value x, y;
    switch (s->op) {
    case STEP_TEXT: return write(v, text_at(v, s->a, s->b)), 0;
    case STEP_PRINT: return write(v, pop(v)), 0;
    case STEP_AND:
    case STEP_OR:
        x = pop(v);
        if (tn__value_truth(v, x) != (s->op == STEP_OR)) return 0;
        return push(v, x), s->a;
    case STEP_JUMP: return s->a;
    case STEP_JUMP_FALSE: return tn__value_truth(v, pop(v)) ? 0 : s->a;
    case STEP_SET: return set(v, text_at(v, s->a, s->b), pop(v)), 0;
    case STEP_SET_MEMBER:
        y = pop(v), x = pop(v);
        if (!tn__is_namespace(x)) tn__chat_fail(v, "only a namespace has members to set");
        if (y.type == V_LOOP) tn__chat_fail(v, "'loop' in a namespace is not supported");
        return tn__set_member(v, x, text_at(v, s->a, s->b), y), 0;
    case STEP_FOR: return start_loop(v, s);
    case STEP_NEXT: return next_turn(v, s);
    case STEP_CAPTURE: return capture(v), 0;
    case STEP_CAPTURED: return captured(v), 0;
    default: return push(v, computed(v, s)), 0;
    }
}

/* ---- a conversation ---------------------------------------------------------------------------------------------- */

static void define(tn__chat_vm *v, const char *name, tn__value x) { set(v, tn__text_value(name, strlen(name)), x); }
static void define_token(tn__chat_vm *v, const char *name, const char *text)
{
    if (text) define(v, name, tn__text_value(text, strlen(text)));
}

static void define_all(tn__chat_vm *v, int64_t n, const tn_message *m)
{
    tn__value list = tn__new_list(v, n);
    for (int64_t i = 0; list.type == V_LIST && i < n && tn_error() == TN_OK; i++) {
        list.list[i] = tn__new_dict(v);
        tn__set_member(v, list.list[i], tn__text_value("role", 4), tn__text_value(m[i].role, strlen(m[i].role)));
        tn__set_member(v, list.list[i], tn__text_value("content", 7),
                       tn__text_value(m[i].content, strlen(m[i].content)));
    }
    define(v, "messages", list);
    define(v, "add_generation_prompt", tn__bool_value(v->args.answer));
    define(v, "tools", (tn__value){.type = V_NONE}), define(v, "documents", (tn__value){.type = V_NONE});
    define_token(v, "bos_token", v->args.begin), define_token(v, "eos_token", v->args.end);
}

tn_status tn_chat_text_run(const tn_chat *c, int64_t n, const tn_message *messages, tn_string *to, tn_chat_args a)
{
    static const char *const who = "tn_chat_text";
    if (tn_blocked()) return tn_error();
    if (!c || !to || n < 0 || (n && !messages))
        return tn_raise(TN_EINVAL, "%s: %s", who, n < 0 ? "n is negative" : "a pointer is NULL");
    for (int64_t i = 0; i < n; i++)
        if (!messages[i].role || !messages[i].content)
            return tn_raise(TN_EINVAL, "%s: message %lld has no %s", who, (long long)i,
                            messages[i].role ? "content" : "role");
    tn__chat_vm *v = tn_mem_get(sizeof *v);
    if (!v) return tn_error();
    memset(v, 0, offsetof(tn__chat_vm, stack));
    v->c = c, v->args = a, v->to = to, v->before = to->bytes;
    define_all(v, n, messages);
    for (int64_t at = 0; at >= 0 && at < c->steps && tn_error() == TN_OK;) {
        v->step = &c->step[at];
        if (v->steps++ >= TN__CHAT_STEPS)
            tn__chat_fail(v, "more than %d steps: does the template loop?", TN__CHAT_STEPS);
        else at += 1 + run(v, v->step);
    }
    const size_t before = v->before;
    for (tn__chat_block *b = v->memory, *next; b; b = next) next = b->next, tn_mem_put(b, b->bytes);
    tn_mem_put(v, sizeof *v);
    if (tn_error() == TN_OK) tn_string_add(to, (tn_text){"", 0});
    else if (to->at) to->at[to->bytes = before] = 0;
    return tn_error();
}

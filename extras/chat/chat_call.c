/* chat_call.c — the functions, methods, filters and tests of chat templates. */
#include "extras/chat/chat_values.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>

/* The arguments of a call: those by position, and those by name after them. */
typedef struct {
    tn__chat_vm     *v;
    const tn__value *a;
    int              n, named; /* by position; pairs by name */
} arguments;

static tn__value argument(const arguments *c, int at, const char *name, tn__value otherwise)
{
    if (at < c->n) return c->a[at];
    for (int i = 0; i < c->named; i++)
        if (tn__value_is(c->a[c->n + 2 * i], name)) return c->a[c->n + 2 * i + 1];
    return otherwise;
}
static const tn__value undefined = {.type = V_UNDEFINED}, none = {.type = V_NONE};

static bool is_missing(const arguments *c) { return c->n && c->a[0].type == V_UNDEFINED; }

/* Argument 0 as a text; an empty one (raised) otherwise. To filters undefined is an empty one, as in Jinja. */
static tn__value text_of(const arguments *c)
{
    if (c->n && c->a[0].type == V_TEXT) return c->a[0];
    if (is_missing(c) && c->v->step->op == STEP_FILTER) return tn__text_value("", 0);
    tn__chat_fail(c->v, "expected a text%s", is_missing(c) ? ", the value is undefined" : "");
    return tn__text_value("", 0);
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static tn__value strip_both(const arguments *c)
{
    const tn__value chars = argument(c, 1, "chars", none);
    return tn__value_stripped(text_of(c), chars.type == V_TEXT ? &chars : NULL, true, true);
}
static tn__value strip_left(const arguments *c)
{
    const tn__value chars = argument(c, 1, "chars", none);
    return tn__value_stripped(text_of(c), chars.type == V_TEXT ? &chars : NULL, true, false);
}
static tn__value strip_right(const arguments *c)
{
    const tn__value chars = argument(c, 1, "chars", none);
    return tn__value_stripped(text_of(c), chars.type == V_TEXT ? &chars : NULL, false, true);
}

static bool has_case(uint32_t c)
{
    const utf8proc_int32_t u = (utf8proc_int32_t)c;
    return utf8proc_toupper(u) != u || utf8proc_tolower(u) != u;
}

/* ASCII letters in another case: 'u' upper, 'l' lower, 'c' capitalize, 't' Python's title, 'T' Jinja's filter title,
 * whose words begin after white space and some punctuation. */
static tn__value in_case(const arguments *c, char how)
{
    const tn__value x = text_of(c);
    char           *to = tn__chat_get(c->v, (size_t)x.n + 1);
    bool            begins = true;
    for (size_t at = 0, from = 0; to && at < (size_t)x.n; from = at) {
        const uint32_t u = tn_utf8_next(x.text, (size_t)x.n, &at, NULL), l = u | 32;
        const bool     letter = u < 128 && l >= 'a' && l <= 'z';
        if (letter)
            to[from] = (char)(how == 'u' || ((how | 32) == 't' && begins) || (how == 'c' && !from) ? u & ~32u : l);
        else memcpy(to + from, x.text + from, at - from);
        if (u >= 128 && has_case(u))
            return tn__chat_fail(c->v, "changing the case of letters outside ASCII is not supported"), x;
        begins = how == 'T' ? tn__chat_blank(u) || (u < 128 && u && strchr("-({[<", (int)u)) : !letter;
    }
    return to ? tn__text_value(to, (size_t)x.n) : x;
}
static tn__value upper(const arguments *c) { return in_case(c, 'u'); }
static tn__value lower(const arguments *c) { return in_case(c, 'l'); }
static tn__value capitalize(const arguments *c) { return in_case(c, 'c'); }
static tn__value title(const arguments *c) { return in_case(c, 't'); }
static tn__value title_filter(const arguments *c) { return in_case(c, 'T'); }

/* True if the text begins, or ends, with argument 1. */
static tn__value has_end(const arguments *c, bool begin)
{
    const tn__value x = text_of(c), y = argument(c, 1, "", none);
    if (y.type != V_TEXT) return tn__chat_fail(c->v, "'%s' needs a text", begin ? "startswith" : "endswith"), x;
    return tn__bool_value(y.n <= x.n && !memcmp(x.text + (begin ? 0 : x.n - y.n), y.text, (size_t)y.n));
}
static tn__value starts_with(const arguments *c) { return has_end(c, true); }
static tn__value ends_with(const arguments *c) { return has_end(c, false); }

static tn__value replace(const arguments *c)
{
    const tn__value x = text_of(c), old = argument(c, 1, "old", none), now = argument(c, 2, "new", none);
    tn_string       s = {0};
    int64_t         from = 0, at;
    if (old.type != V_TEXT || now.type != V_TEXT || !old.n)
        return tn__chat_fail(c->v, "'replace' needs two texts, the first not empty"), x;
    for (; (at = tn__place_of(old, x, from)) >= 0 && s.bytes <= TN__CHAT_MEMORY; from = at + old.n)
        tn_string_add(&s, (tn_text){x.text + from, (size_t)(at - from)}),
            tn_string_add(&s, (tn_text){now.text, (size_t)now.n});
    tn_string_add(&s, (tn_text){x.text + from, (size_t)(x.n - from)});
    return tn__kept_text(c->v, &s);
}

static tn__value split(const arguments *c)
{
    const tn__value x = text_of(c), by = argument(c, 1, "sep", none);
    int64_t         parts = 1, at = 0, from = 0;
    if (by.type != V_TEXT || !by.n) return tn__chat_fail(c->v, "'split' needs a text to split at"), x;
    for (; (at = tn__place_of(by, x, at)) >= 0; at += by.n) parts++;
    tn__value y = tn__new_list(c->v, parts);
    for (int64_t i = 0; y.type == V_LIST && i < parts; i++, from = at + by.n) {
        at = i + 1 < parts ? tn__place_of(by, x, from) : x.n;
        y.list[i] = tn__text_value(x.text + from, (size_t)(at - from));
    }
    return y;
}

/* ---- lists, dicts, others ---------------------------------------------------------------------------------------- */

static tn__value join(const arguments *c)
{
    const tn__value by = argument(c, 1, "d", tn__text_value("", 0));
    tn_string       s = {0};
    if (is_missing(c)) return tn__text_value("", 0);
    if (!c->n || c->a[0].type != V_LIST || by.type != V_TEXT)
        return tn__chat_fail(c->v, "'join' needs a list"), undefined;
    for (int64_t i = 0; i < c->a[0].n && s.bytes <= TN__CHAT_MEMORY; i++) {
        if (i) tn_string_add(&s, (tn_text){by.text, (size_t)by.n});
        tn__write_value(c->v, c->a[0].list[i], &s);
    }
    return tn__kept_text(c->v, &s);
}

static tn__value length(const arguments *c)
{
    const int64_t n = !c->n ? -1 : is_missing(c) ? 0 : tn__value_length(c->v, c->a[0]);
    if (n < 0) tn__chat_fail(c->v, "the value has no length");
    return tn__integer_value(n);
}

/* A list, or the keys of a dict. */
static tn__value as_list(const arguments *c)
{
    const tn__value x = c->n ? c->a[0] : undefined;
    if (is_missing(c)) return tn__new_list(c->v, 0);
    if (x.type != V_DICT) {
        if (x.type != V_LIST) tn__chat_fail(c->v, "'list' needs a list or a dict");
        return x;
    }
    tn__value y = tn__new_list(c->v, x.members->n / 2);
    for (int64_t i = 0; y.type == V_LIST && i < y.n; i++) y.list[i] = x.members->at[2 * i];
    return y;
}
static tn__value end_of(const arguments *c, int64_t at)
{
    const bool dict = c->n && c->a[0].type == V_DICT;
    return c->n ? tn__value_member(c->v, dict ? as_list(c) : c->a[0], tn__integer_value(at)) : undefined;
}
static tn__value first(const arguments *c) { return end_of(c, 0); }
static tn__value last(const arguments *c) { return end_of(c, -1); }

static tn__value otherwise(const arguments *c)
{
    const tn__value x = c->n ? c->a[0] : undefined, empty = argument(c, 2, "boolean", none);
    const bool      missing = x.type == V_UNDEFINED || (tn__value_truth(c->v, empty) && !tn__value_truth(c->v, x));
    return missing ? argument(c, 1, "default_value", tn__text_value("", 0)) : x;
}

static tn__value as_text(const arguments *c)
{
    tn_string s = {0};
    if (c->n) tn__write_value(c->v, c->a[0], &s);
    return tn__kept_text(c->v, &s);
}
static tn__value to_json(const arguments *c)
{
    tn_string s = {0};
    if (!c->n || c->a[0].type == V_UNDEFINED)
        return tn__chat_fail(c->v, "'tojson' of a value that is not defined"), undefined;
    tn__write_json(c->v, c->a[0], &s);
    return tn__kept_text(c->v, &s);
}
static tn__value same(const arguments *c) { return c->n ? c->a[0] : undefined; }

static tn__value get(const arguments *c)
{
    if (!c->n || c->a[0].type != V_DICT) return tn__chat_fail(c->v, "'get' needs a dict"), undefined;
    const tn__value x = tn__value_member(c->v, c->a[0], argument(c, 1, "key", none));
    return x.type == V_UNDEFINED ? argument(c, 2, "default", none) : x;
}

static tn__value items(const arguments *c)
{
    if (is_missing(c) && c->v->step->op == STEP_FILTER) return tn__new_list(c->v, 0);
    if (!c->n || c->a[0].type != V_DICT) return tn__chat_fail(c->v, "'items' needs a dict"), undefined;
    const tn__members *m = c->a[0].members;
    tn__value          y = tn__new_list(c->v, m->n / 2);
    for (int64_t i = 0; y.type == V_LIST && i < y.n; i++) {
        y.list[i] = tn__new_list(c->v, 2);
        if (y.list[i].type == V_LIST) y.list[i].list[0] = m->at[2 * i], y.list[i].list[1] = m->at[2 * i + 1];
        else y.n = i;
    }
    return y;
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static tn__value raise_text(const arguments *c)
{
    const tn__value x = c->n ? c->a[0] : undefined;
    return tn__chat_fail(c->v, "%.*s", x.type == V_TEXT ? (int)(x.n < 250 ? x.n : 250) : 0,
                         x.type == V_TEXT ? x.text : ""),
           undefined;
}

static tn__value new_dict(const arguments *c)
{
    tn__value x = tn__new_dict(c->v);
    for (int i = 0; i < c->named; i++) tn__set_member(c->v, x, c->a[c->n + 2 * i], c->a[c->n + 2 * i + 1]);
    return x;
}

static tn__value new_namespace(const arguments *c)
{
    const tn__value x = new_dict(c);
    if (x.type == V_DICT) x.members->is_namespace = true;
    return x;
}

static tn__value range(const arguments *c)
{
    const tn__value a = argument(c, 0, "", none), b = argument(c, 1, "", none);
    const int64_t   from = b.type == V_INTEGER ? a.n : 0, to = b.type == V_INTEGER ? b.n : a.n;
    if (a.type != V_INTEGER || c->n > 2) return tn__chat_fail(c->v, "'range' needs one or two integers"), undefined;
    tn__value y = tn__new_list(c->v, to > from ? to - from : 0);
    for (int64_t i = 0; y.type == V_LIST && i < y.n; i++) y.list[i] = tn__integer_value(from + i);
    return y;
}

/* strftime in English, whatever the locale. */
static tn__value date(const arguments *c)
{
    static const char *const        months[] = {"January", "February", "March",     "April",   "May",      "June",
                                                "July",    "August",   "September", "October", "November", "December"},
                             *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                              "Thursday", "Friday", "Saturday"};
    const tn__value                 x = text_of(c);
    const struct tm *const          t = c->v->args.now;
    tn_string                       s = {0};
    char                            part[32];
    if (!t) return tn__chat_fail(c->v, "the template writes the date; pass .now, for example localtime(&t)"), x;
    if (t->tm_mon < 0 || t->tm_mon > 11 || t->tm_wday < 0 || t->tm_wday > 6)
        return tn__chat_fail(c->v, ".now is not a date"), x;
    for (int64_t i = 0; i < x.n; i++) {
        const char k = x.text[i] == '%' && i + 1 < x.n ? x.text[++i] : 0;
        if (k == 'd') snprintf(part, sizeof part, "%02d", t->tm_mday);
        else if (k == 'm') snprintf(part, sizeof part, "%02d", t->tm_mon + 1);
        else if (k == 'Y') snprintf(part, sizeof part, "%d", t->tm_year + 1900);
        else if (k == 'y') snprintf(part, sizeof part, "%02d", t->tm_year % 100);
        else if (k == 'B') snprintf(part, sizeof part, "%s", months[t->tm_mon]);
        else if (k == 'b') snprintf(part, sizeof part, "%.3s", months[t->tm_mon]);
        else if (k == 'A') snprintf(part, sizeof part, "%s", days[t->tm_wday]);
        else if (k == 'a') snprintf(part, sizeof part, "%.3s", days[t->tm_wday]);
        else if (k == 'H') snprintf(part, sizeof part, "%02d", t->tm_hour);
        else if (k == 'M') snprintf(part, sizeof part, "%02d", t->tm_min);
        else if (k == 'S') snprintf(part, sizeof part, "%02d", t->tm_sec);
        else if (k) tn__chat_fail(c->v, "'%%%c' of strftime_now is not supported", k);
        else part[0] = x.text[i], part[1] = 0;
        tn_string_add(&s, tn_text_of(part));
    }
    return tn__kept_text(c->v, &s);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static tn__value_type type_of(const arguments *c) { return c->n ? c->a[0].type : V_UNDEFINED; }
static tn__value      is_defined(const arguments *c) { return tn__bool_value(type_of(c) != V_UNDEFINED); }
static tn__value      is_undefined(const arguments *c) { return tn__bool_value(type_of(c) == V_UNDEFINED); }
static tn__value      is_null(const arguments *c) { return tn__bool_value(type_of(c) == V_NONE); }
static tn__value      is_string(const arguments *c) { return tn__bool_value(type_of(c) == V_TEXT); }
static tn__value      is_number(const arguments *c) { return tn__bool_value(c->n && tn__is_numeric(c->a[0])); }
static tn__value      is_integer(const arguments *c) { return tn__bool_value(type_of(c) == V_INTEGER); }
static tn__value      is_boolean(const arguments *c) { return tn__bool_value(type_of(c) == V_BOOL); }
static tn__value      is_true(const arguments *c) { return tn__bool_value(type_of(c) == V_BOOL && c->a[0].n); }
static tn__value      is_false(const arguments *c) { return tn__bool_value(type_of(c) == V_BOOL && !c->a[0].n); }
static tn__value      is_mapping(const arguments *c)
{
    return tn__bool_value(type_of(c) == V_DICT && !tn__is_namespace(c->a[0]));
}
static tn__value is_sequence(const arguments *c) /* undefined is an empty one */
{
    const tn__value_type t = type_of(c);
    return tn__bool_value(t == V_UNDEFINED || (t >= V_TEXT && t <= V_DICT && !(c->n && tn__is_namespace(c->a[0]))));
}
/* The remainder of argument 0 by 2. */
static int64_t half(const arguments *c)
{
    if (!c->n || !tn__is_numeric(c->a[0])) return tn__chat_fail(c->v, "'odd' and 'even' need a number"), 0;
    return c->a[0].n & 1;
}
static tn__value is_odd(const arguments *c) { return tn__bool_value(half(c)); }
static tn__value is_even(const arguments *c) { return tn__bool_value(!half(c)); }
static tn__value is_equal(const arguments *c)
{
    return tn__bool_value(c->n == 2 && tn__value_equal(c->v, c->a[0], c->a[1]));
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static const struct {
    uint8_t     op;
    const char *name;
    tn__value (*run)(const arguments *c);
    int         most;  /* number of arguments by position, the operand included */
    const char *names; /* of arguments by name, each after a space, " ": none; NULL: any */
} functions[] = {
    {STEP_CALL, "raise_exception", raise_text, 1, " "},
    {STEP_CALL, "namespace", new_namespace, 0, NULL},
    {STEP_CALL, "dict", new_dict, 0, NULL},
    {STEP_CALL, "range", range, 2, " "},
    {STEP_CALL, "strftime_now", date, 1, " format"},
    {STEP_METHOD, "strip", strip_both, 2, " "},
    {STEP_METHOD, "lstrip", strip_left, 2, " "},
    {STEP_METHOD, "rstrip", strip_right, 2, " "},
    {STEP_METHOD, "upper", upper, 1, " "},
    {STEP_METHOD, "lower", lower, 1, " "},
    {STEP_METHOD, "title", title, 1, " "},
    {STEP_METHOD, "capitalize", capitalize, 1, " "},
    {STEP_METHOD, "startswith", starts_with, 2, " "},
    {STEP_METHOD, "endswith", ends_with, 2, " "},
    {STEP_METHOD, "replace", replace, 3, " "},
    {STEP_METHOD, "split", split, 2, " sep"},
    {STEP_METHOD, "get", get, 3, " "},
    {STEP_METHOD, "items", items, 1, " "},
    {STEP_FILTER, "trim", strip_both, 2, " chars"},
    {STEP_FILTER, "upper", upper, 1, " "},
    {STEP_FILTER, "lower", lower, 1, " "},
    {STEP_FILTER, "title", title_filter, 1, " "},
    {STEP_FILTER, "capitalize", capitalize, 1, " "},
    {STEP_FILTER, "replace", replace, 3, " old new"},
    {STEP_FILTER, "length", length, 1, " "},
    {STEP_FILTER, "count", length, 1, " "},
    {STEP_FILTER, "first", first, 1, " "},
    {STEP_FILTER, "last", last, 1, " "},
    {STEP_FILTER, "join", join, 2, " d"},
    {STEP_FILTER, "default", otherwise, 3, " default_value boolean"},
    {STEP_FILTER, "d", otherwise, 3, " default_value boolean"},
    {STEP_FILTER, "string", as_text, 1, " "},
    {STEP_FILTER, "tojson", to_json, 1, " "},
    {STEP_FILTER, "safe", same, 1, " "},
    {STEP_FILTER, "list", as_list, 1, " "},
    {STEP_FILTER, "items", items, 1, " "},
    {STEP_TEST, "defined", is_defined, 1, " "},
    {STEP_TEST, "undefined", is_undefined, 1, " "},
    {STEP_TEST, "none", is_null, 1, " "},
    {STEP_TEST, "string", is_string, 1, " "},
    {STEP_TEST, "number", is_number, 1, " "},
    {STEP_TEST, "integer", is_integer, 1, " "},
    {STEP_TEST, "boolean", is_boolean, 1, " "},
    {STEP_TEST, "true", is_true, 1, " "},
    {STEP_TEST, "false", is_false, 1, " "},
    {STEP_TEST, "mapping", is_mapping, 1, " "},
    {STEP_TEST, "sequence", is_sequence, 1, " "},
    {STEP_TEST, "iterable", is_sequence, 1, " "},
    {STEP_TEST, "odd", is_odd, 1, " "},
    {STEP_TEST, "even", is_even, 1, " "},
    {STEP_TEST, "equalto", is_equal, 2, " "},
    {STEP_TEST, "eq", is_equal, 2, " "},
};

/* True if the arguments' number and names are those of functions[i]; else raises. */
static bool fit(const arguments *c, size_t i, const char *kind)
{
    const char *name = functions[i].name, *names = functions[i].names;
    const int   operand = functions[i].op != STEP_CALL;
    if (c->n > functions[i].most)
        return tn__chat_fail(c->v, "the %s '%s' with %d arguments is not supported", kind, name, c->n - operand);
    for (int k = 0; names && k < c->named; k++) {
        const tn__value x = c->a[c->n + 2 * k];
        const char     *at = names;
        while (*at && (strncmp(at + 1, x.text, (size_t)x.n) != 0 || (at[x.n + 1] && at[x.n + 1] != ' ')))
            at += 1 + strcspn(at + 1, " ");
        if (!*at)
            return tn__chat_fail(c->v, "the argument '%.*s' of the %s '%s' is not supported", (int)x.n, x.text, kind,
                                 name);
    }
    return true;
}

tn__value tn__chat_call(tn__chat_vm *v, const tn__chat_step *s, int n, const tn__value *a)
{
    static const char *const kinds[] = {"function", "method", "filter", "test"};
    const tn__value          name = tn__text_value(v->c->text + s->a, (size_t)s->b);
    const arguments          c = {v, a, n - 2 * s->named, s->named};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].op == s->op && tn__value_is(name, functions[i].name))
            return fit(&c, i, kinds[s->op - STEP_CALL]) ? functions[i].run(&c) : undefined;
    tn__chat_fail(v, "the %s '%.*s' is not supported", kinds[s->op - STEP_CALL], (int)name.n, name.text);
    return undefined;
}

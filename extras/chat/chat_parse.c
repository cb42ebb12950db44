/* chat_parse.c — reads a chat template: Jinja's text and tags become the steps of chat_private.h. White space is that
 * of trim_blocks and lstrip_blocks, as in transformers. */
#include "extras/chat/chat_parser.h"

#include <string.h>

enum { MOST_TEXT = 1 << 20 };

static bool need(tn__parser *p, const char *text)
{
    if (tn__parse_is(p, text)) return tn__parse_next(p);
    return tn__parse_fail(p, "expected '%s' before '%.*s'", text, p->t.kind == T_END ? 3 : (int)p->t.b,
                          p->t.kind == T_END ? "end" : p->c->text + p->t.a);
}

/* ---- tags -------------------------------------------------------------------------------------------------------- */

static tn__open_tag *innermost(tn__parser *p, const char *kinds, const char *tag)
{
    tn__open_tag *b = p->blocks ? &p->open[p->blocks - 1] : NULL;
    if (b && strchr(kinds, b->kind)) return b;
    return tn__parse_fail(p, "'%s' has no beginning", tag), NULL;
}
static bool open_block(tn__parser *p, tn__open_tag b)
{
    if (p->blocks == TN__CHAT_DEPTH) return tn__parse_fail(p, "tags are nested more than %d deep", TN__CHAT_DEPTH);
    p->open[p->blocks++] = b;
    return true;
}

/* A jump to the end of block b. */
static void jump_to_end(tn__parser *p, tn__open_tag *b) { b->ends = tn__parse_emit(p, STEP_JUMP, 0, b->ends, 0); }
static void end_block(tn__parser *p, const tn__open_tag *b)
{
    for (int at = b->ends, before; at >= 0 && tn_error() == TN_OK; at = before)
        before = p->c->step[at].a, tn__parse_land(p, at);
    p->blocks--;
}

static bool tag_if(tn__parser *p)
{
    if (!tn__parse_next(p) || !tn__parse_expression(p, true)) return false;
    return open_block(p, (tn__open_tag){.kind = 'i', .at = tn__parse_emit(p, STEP_JUMP_FALSE, 0, 0, 0), .ends = -1});
}
static bool tag_elif(tn__parser *p)
{
    tn__open_tag *b = innermost(p, "i", "elif");
    if (!b || b->at < 0) return b ? tn__parse_fail(p, "'elif' after 'else'") : false;
    jump_to_end(p, b), tn__parse_land(p, b->at);
    if (!tn__parse_next(p) || !tn__parse_expression(p, true)) return false;
    b->at = tn__parse_emit(p, STEP_JUMP_FALSE, 0, 0, 0);
    return true;
}

static void end_turn(tn__parser *p, tn__open_tag *b)
{
    const int body = tn_error() == TN_OK ? b->at + 1 + p->c->step[b->at].count : 0;
    tn__parse_emit(p, STEP_NEXT, 0, body - p->c->steps - 1, 0);
}
static bool tag_else(tn__parser *p)
{
    tn__open_tag *b = innermost(p, "if", "else");
    if (!b || b->at < 0) return b ? tn__parse_fail(p, "a second 'else'") : false;
    if (b->kind == 'f') end_turn(p, b), b->kind = 'e';
    jump_to_end(p, b), tn__parse_land(p, b->at);
    return b->at = -1, tn__parse_next(p);
}
static bool tag_endif(tn__parser *p)
{
    tn__open_tag *b = innermost(p, "i", "endif");
    if (!b) return false;
    if (b->at >= 0) tn__parse_land(p, b->at);
    return end_block(p, b), tn__parse_next(p);
}

static bool tag_for(tn__parser *p)
{
    tn__chat_token names[2];
    int            n = 0;
    do {
        if (!tn__parse_next(p) || p->t.kind != T_NAME || n == 2)
            return tn__parse_fail(p, "expected one or two names after 'for'");
        names[n++] = p->t;
        if (!tn__parse_next(p)) return false;
    } while (tn__parse_is(p, ","));
    if (!need(p, "in") || !tn__parse_expression(p, false)) return false;
    if (p->t.kind != T_END) return tn__parse_fail(p, "'if' and 'recursive' of 'for' are not supported");
    const int at = tn__parse_emit(p, STEP_FOR, n, 0, 0);
    for (int i = 0; i < n; i++) tn__parse_emit(p, STEP_NAME, 0, names[i].a, names[i].b);
    return open_block(p, (tn__open_tag){.kind = 'f', .at = at, .ends = -1});
}
static bool tag_endfor(tn__parser *p)
{
    tn__open_tag *b = innermost(p, "fe", "endfor");
    if (!b) return false;
    if (b->kind == 'f') end_turn(p, b), tn__parse_land(p, b->at);
    return end_block(p, b), tn__parse_next(p);
}

static bool tag_set(tn__parser *p)
{
    if (!tn__parse_next(p) || p->t.kind != T_NAME) return tn__parse_fail(p, "expected a name after 'set'");
    const tn__chat_token t = p->t;
    tn__chat_token       member = {.kind = T_END};
    if (!tn__parse_next(p)) return false;
    if (tn__parse_is(p, ".")) {
        if (!tn__parse_next(p) || p->t.kind != T_NAME) return tn__parse_fail(p, "expected a name after '.'");
        member = p->t;
        tn__parse_emit(p, STEP_NAME, 0, t.a, t.b);
        if (!tn__parse_next(p)) return false;
    }
    if (p->t.kind == T_END && member.kind == T_END) {
        tn__parse_emit(p, STEP_CAPTURE, 0, 0, 0);
        return open_block(p, (tn__open_tag){.kind = 's', .at = -1, .ends = -1, .a = t.a, .b = t.b});
    }
    if (!need(p, "=") || !tn__parse_expression(p, true)) return false;
    if (member.kind == T_NAME) tn__parse_emit(p, STEP_SET_MEMBER, 0, member.a, member.b);
    else tn__parse_emit(p, STEP_SET, 0, t.a, t.b);
    return true;
}
static bool tag_endset(tn__parser *p)
{
    tn__open_tag *b = innermost(p, "s", "endset");
    if (!b) return false;
    tn__parse_emit(p, STEP_CAPTURED, 0, 0, 0), tn__parse_emit(p, STEP_SET, 0, b->a, b->b);
    return end_block(p, b), tn__parse_next(p);
}
/* A block with its own variables. */
static bool tag_generation(tn__parser *p)
{
    tn__parse_emit(p, STEP_CAPTURE, 0, 0, 0);
    return open_block(p, (tn__open_tag){.kind = 'g', .at = -1, .ends = -1}) && tn__parse_next(p);
}
static bool tag_endgeneration(tn__parser *p)
{
    const tn__open_tag *b = innermost(p, "g", "endgeneration");
    if (!b) return false;
    tn__parse_emit(p, STEP_CAPTURED, 0, 0, 0), tn__parse_emit(p, STEP_PRINT, 0, 0, 0);
    return end_block(p, b), tn__parse_next(p);
}

static const struct {
    const char *name;
    bool (*read)(tn__parser *p);
} tags[] = {{"if", tag_if},
            {"elif", tag_elif},
            {"else", tag_else},
            {"endif", tag_endif},
            {"for", tag_for},
            {"endfor", tag_endfor},
            {"set", tag_set},
            {"endset", tag_endset},
            {"generation", tag_generation},
            {"endgeneration", tag_endgeneration}};

static bool statement(tn__parser *p)
{
    if (!tn__parse_next(p)) return false;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (tn__parse_is(p, tags[i].name)) return tags[i].read(p);
    return tn__parse_fail(p, "the tag '%.*s' is not supported", p->t.kind == T_END ? 0 : (int)p->t.b,
                          p->t.kind == T_END ? "" : p->c->text + p->t.a);
}

/* Writes the text up to a tag at `to`. bare: without blanks at its end; line: without those at its line's start. */
static void text(tn__parser *p, size_t from, size_t to, bool bare, bool line)
{
    const char *s = p->c->text;
    size_t      end = to;
    while (bare && end > from && strchr(" \t\n\r", s[end - 1])) end--;
    if (line && !bare) {
        while (end > from && (s[end - 1] == ' ' || s[end - 1] == '\t')) end--;
        if (end && s[end - 1] != '\n') end = to; /* other text is before it in the line */
    }
    if (end > from) tn__parse_emit(p, STEP_TEXT, 0, (int32_t)from, (int32_t)(end - from));
}

static bool comment(tn__parser *p)
{
    const char *s = p->c->text;
    while (p->at + 1 < p->n && !(s[p->at] == '#' && s[p->at + 1] == '}')) p->line += s[p->at++] == '\n';
    return p->at + 1 < p->n || tn__parse_fail(p, "a comment has no end");
}

/* Reads what is within a tag of this kind, up to its end. */
static bool inner(tn__parser *p, char kind)
{
    if (kind == '#') return comment(p);
    if (kind == '%' ? !statement(p) : !tn__parse_next(p) || !tn__parse_expression(p, true)) return false;
    if (kind == '{') tn__parse_emit(p, STEP_PRINT, 0, 0, 0);
    if (p->t.kind == T_END) return true;
    return tn__parse_fail(p, "'%.*s' is not expected here", (int)p->t.b, p->c->text + p->t.a);
}

/* Reads one tag at p->at, which starts with a brace, and the end of its line or blanks after it. */
static bool tag(tn__parser *p)
{
    const char *s = p->c->text;
    const char  kind = s[p->at + 1], sign = p->at + 2 < p->n ? s[p->at + 2] : 0;
    p->at += kind != '#' && (sign == '-' || sign == '+') ? 3 : 2;
    if (!inner(p, kind)) return false;
    const char before = kind == '#' ? s[p->at - 1] : s[p->at], close = kind == '{' ? '}' : kind;
    if (kind != '#' && (before == '-' || before == '+')) p->at++;
    if (s[p->at] != close) return tn__parse_fail(p, "the tag does not end as it starts");
    p->at += 2;
    while (before == '-' && p->at < p->n && strchr(" \t\n\r", s[p->at])) p->line += s[p->at++] == '\n';
    if (kind != '{' && before != '-' && before != '+' && p->at < p->n && s[p->at] == '\n') p->at++, p->line++;
    return tn_error() == TN_OK;
}

static bool read_all(tn__parser *p)
{
    const char *s = p->c->text;
    for (size_t from = 0; p->at < p->n;) {
        while (p->at < p->n && !(s[p->at] == '{' && p->at + 1 < p->n && strchr("{%#", s[p->at + 1])))
            p->line += s[p->at++] == '\n';
        const char sign = p->at + 2 < p->n ? s[p->at + 2] : 0;
        text(p, from, p->at, sign == '-', p->at < p->n && s[p->at + 1] != '{' && sign != '+');
        if (p->at >= p->n) break;
        if (!tag(p)) return false;
        from = p->at;
    }
    if (p->blocks) return tn__parse_fail(p, "a tag is not closed");
    return tn_error() == TN_OK;
}

tn_chat *tn_chat_parse(const char *template, size_t bytes)
{
    if (tn_blocked()) return NULL;
    if (!template) return tn_raise_null(TN_EINVAL, "tn_chat_parse: the template is NULL");
    if (bytes > (size_t)MOST_TEXT)
        return tn_raise_null(TN_EUNSUPPORTED, "tn_chat_parse: the template has %zu bytes, but at most %d are supported",
                             bytes, (int)MOST_TEXT);
    if (memchr(template, 0, bytes)) return tn_raise_null(TN_EFORMAT, "tn_chat_parse: the template contains a NUL byte");
    const size_t room = 2 * bytes + 8;
    tn_chat     *c = tn_mem_get(sizeof *c);
    tn__parser  *p = tn_mem_get(sizeof *p);
    if (c) *c = (tn_chat){.text_room = room, .text = tn_mem_get(room)};
    if (c && p && c->text) {
        for (size_t i = 0; i < bytes; i++) { /* all line ends become \n, as in Jinja */
            if (template[i] == '\n' && i && template[i - 1] == '\r') continue;
            c->text[c->bytes++] = template[i] == '\r' ? '\n' : template[i];
        }
        *p = (tn__parser){.c = c, .n = c->bytes, .line = 1};
        if (p->n && c->text[p->n - 1] == '\n') p->n--; /* as Jinja */
        read_all(p);
    }
    if (p) tn_mem_put(p, sizeof *p);
    if (tn_error() != TN_OK) tn_chat_free(c), c = NULL;
    return c;
}

void tn_chat_free(tn_chat *c)
{
    if (!c) return;
    tn_mem_put(c->step, (size_t)c->room * sizeof *c->step);
    tn_mem_put(c->text, c->text_room);
    tn_mem_put(c, sizeof *c);
}

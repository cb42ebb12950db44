/* chat_parser.h — the state of reading a chat template, and its expressions. Shared by chat_parse.c and
 * chat_expression.c. */
#ifndef TENON_EXTRAS_CHAT_CHAT_PARSER_H
#define TENON_EXTRAS_CHAT_CHAT_PARSER_H

#include "extras/chat/chat_private.h"

enum { TN__CHAT_DEPTH = 64 };

typedef enum { T_END, T_NAME, T_STRING, T_NUMBER, T_OTHER } tn__token_kind;
typedef struct {
    tn__token_kind kind;
    int32_t        a, b; /* the text, of a string in c->text */
    int32_t        number;
} tn__chat_token;

/* An open bracket (the first ones), a pending operator, or half of a conditional expression. */
typedef enum { GROUP, LIST, DICT, INDEX, CALL, BINARY, NOT, NEGATE, AND, OR, IF, ELSE } tn__entry_kind;
typedef struct {
    tn__entry_kind kind;
    int     rank, at, start; /* rank of an operator; a step to complete; the first step of the part that is open */
    int     count, named;
    int32_t a, b;
    uint8_t op;
    bool    negated;
} tn__entry;

/* An open {% if %}, {% for %} or {% set %}: `at` is a jump to complete at its next part, `ends` a list of those at its
 * end, linked by their .a. */
typedef struct {
    char    kind; /* 'i', 'f', 'e' (the else of a for), 's', 'g' (generation) */
    int     at, ends;
    int32_t a, b;
} tn__open_tag;

typedef struct {
    tn_chat       *c;
    size_t         n, at; /* of the template; of the next character */
    int            line, depth, blocks, braces;
    bool           operand; /* an operand is expected */
    tn__chat_token t;
    tn__entry      stack[TN__CHAT_DEPTH];
    tn__open_tag   open[TN__CHAT_DEPTH];
} tn__parser;

/* Raises "chat template, line 3: ..."; false. */
bool tn__parse_fail(const tn__parser *p, const char *fmt, ...) TN_PRINTF(2, 3);
int  tn__parse_emit(tn__parser *p, uint8_t op, int count, int32_t a, int32_t b); /* the index of the new step */
void tn__parse_land(tn__parser *p, int at); /* lets the jump at step `at` end at the next step */
bool tn__parse_next(tn__parser *p); /* reads the next token of a tag to p->t; at its end T_END, which is not read */
bool tn__parse_is(const tn__parser *p, const char *text); /* p->t is this name or operator */
/* Reads an expression; p->t is the token after it. conditional: it may be `x if c else y`. */
bool tn__parse_expression(tn__parser *p, bool conditional);

#endif

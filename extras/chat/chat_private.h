/* chat_private.h — a chat template as data: the steps of a stack machine. Shared by chat_parse.c and chat_run.c. */
#ifndef TENON_EXTRAS_CHAT_CHAT_PRIVATE_H
#define TENON_EXTRAS_CHAT_CHAT_PRIVATE_H

#include "extras/chat.h"

/* In comments: what a step takes from the stack, and leaves there. */
typedef enum {
    STEP_TEXT,    /* writes text a, b                                         */
    STEP_PRINT,   /* x:          writes x                                     */
    STEP_STRING,  /* -> the text a, b                                         */
    STEP_INTEGER, /* -> a                                                     */
    STEP_TRUE,    /* -> True; the same for the next two                        */
    STEP_FALSE,
    STEP_NONE,
    STEP_NAME,   /* -> the variable a, b                                     */
    STEP_MEMBER, /* x:          -> x.name                                    */
    STEP_INDEX,  /* x, i:       -> x[i]                                      */
    STEP_SLICE,  /* x, from, to, by: -> x[from:to:by]                        */
    STEP_LIST,   /* `count` values -> a list                                 */
    STEP_DICT,   /* `count` keys and values -> a dict                        */
    STEP_CALL,   /* arguments:  -> name(arguments)                           */
    STEP_METHOD, /* x, arguments: -> x.name(arguments)                       */
    STEP_FILTER, /* x, arguments: -> x | name(arguments)                     */
    STEP_TEST,   /* x, arguments: -> x is name(arguments)                    */
    STEP_NOT,    /* x:          -> not x                                     */
    STEP_NEGATE, /* x:          -> -x                                        */
    STEP_BINARY, /* x, y:       -> x OP y; OP: the characters a, b           */
    STEP_AND,    /* x:          jumps and keeps x if it is false, else drops it; STEP_OR if it is true */
    STEP_OR,
    STEP_JUMP,       /* to a, from the next step; all jumps are relative         */
    STEP_JUMP_FALSE, /* x:          if x is false                                */
    STEP_SET,        /* x:          name = x                                     */
    STEP_SET_MEMBER, /* object, x:  object.name = x                              */
    STEP_FOR,        /* list:       a loop; jumps to a if it is empty; `count` names follow as STEP_NAME */
    STEP_NEXT,       /* the next turn: jumps to a; or drops the loop             */
    STEP_CAPTURE,    /* what is written from here is kept …                      */
    STEP_CAPTURED    /* -> … as a text                                           */
} tn__chat_op;

typedef struct {
    uint8_t op, named; /* named: of the arguments, the last ones, each a STEP_STRING and a value */
    int16_t count;     /* arguments: places on the stack, including those of names */
    int32_t a, b, line;
} tn__chat_step;

struct tn_chat {
    tn__chat_step *step;
    int            steps, room;
    char          *text; /* the template and, after it, strings with escapes replaced */
    size_t         bytes, text_room;
};

#endif

/* constrain.h — the arguments of a rule for the next token, prepared by main.c. */
#ifndef TENON_EXAMPLES_CONSTRAIN_CONSTRAIN_H
#define TENON_EXAMPLES_CONSTRAIN_CONSTRAIN_H

#include <tenon/tenon.h>

typedef struct {
    int        count; /* arguments after the prompt */
    char     **words;
    tn_ids    *ids;    /* [count]: the tokens of each */
    int64_t    known;  /* tokens with a text */
    tn_string *text;   /* [known]: the text that each token adds */
    int32_t    end;    /* the token that ends a text; -1: none */
    tn_json   *schema; /* json: the first argument; else NULL */
} rules;

/* Each is an .adjust of tn_generate; user: the rules. */
tn_status prefix(const tn_next_token *next, void *user);
tn_status ban(const tn_next_token *next, void *user);
tn_status answers(const tn_next_token *next, void *user);
tn_status json(const tn_next_token *next, void *user);

/* Reads a value of the schema: see schema.c. An unsupported or unsatisfiable schema is an error. */
const char *schema_value(const char *at, const tn_json *schema, bool *open);

#endif

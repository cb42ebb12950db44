/* chat_values.h — the values of a running chat template. Shared by chat_run.c, chat_call.c and chat_values.c. */
#ifndef TENON_EXTRAS_CHAT_CHAT_VALUES_H
#define TENON_EXTRAS_CHAT_CHAT_VALUES_H

#include "extras/chat/chat_private.h"

typedef enum { V_UNDEFINED, V_NONE, V_BOOL, V_INTEGER, V_TEXT, V_LIST, V_DICT, V_LOOP } tn__value_type;
typedef struct tn__value tn__value;

/* A dict or namespace, keys and values in turn, which may grow. */
typedef struct {
    tn__value *at;
    int64_t    n, room;
    bool       is_namespace;
} tn__members;

struct tn__value {
    tn__value_type type;
    int64_t        n; /* of a boolean and an integer; bytes of a text; values of a list; number of a loop */
    union {
        const char  *text;
        tn__value   *list;
        tn__members *members;
    };
};

/* Memory of one run: freed as a whole. */
typedef struct tn__chat_block {
    struct tn__chat_block *next;
    size_t                 bytes;
} tn__chat_block;
enum {
    TN__CHAT_MEMORY = 16 << 20,
    TN__CHAT_STEPS = 1000000,
    TN__CHAT_STACK = 2048,
    TN__CHAT_NAMES = 256,
    TN__CHAT_LOOPS = 32
};

typedef struct {
    tn__value list;
    int64_t   at;
    int       names; /* number of variables before the loop */
} tn__loop;

typedef struct {
    const tn_chat       *c;
    const tn__chat_step *step; /* that runs */
    tn_chat_args         args;
    tn__chat_block      *memory;
    size_t               used;
    int64_t              steps;
    tn_string           *to;
    size_t               before; /* bytes of *to that are not of this run */
    struct {
        size_t bytes; /* of *to, and the number of variables, before the block */
        int    names;
    } capture[TN__CHAT_LOOPS];
    int       captures, depth, names, loops;
    tn__value stack[TN__CHAT_STACK];
    tn__loop  loop[TN__CHAT_LOOPS];
    struct {
        const char *name;
        size_t      bytes;
        tn__value   value;
    } variable[TN__CHAT_NAMES];
} tn__chat_vm;

/* Raises "chat template, line 3: …"; false. */
bool  tn__chat_fail(const tn__chat_vm *v, const char *fmt, ...) TN_PRINTF(2, 3);
void *tn__chat_get(tn__chat_vm *v, size_t bytes); /* NULL: raised */

static inline tn__value tn__text_value(const char *text, size_t n)
{
    return (tn__value){.type = V_TEXT, .n = (int64_t)n, .text = text};
}
static inline tn__value tn__bool_value(bool b) { return (tn__value){.type = V_BOOL, .n = b}; }
static inline tn__value tn__integer_value(int64_t n) { return (tn__value){.type = V_INTEGER, .n = n}; }
static inline bool      tn__is_numeric(tn__value x) { return x.type == V_BOOL || x.type == V_INTEGER; }
static inline bool      tn__is_namespace(tn__value x) { return x.type == V_DICT && x.members->is_namespace; }
bool                    tn__value_is(tn__value x, const char *text); /* the text */

bool tn__value_truth(const tn__chat_vm *v, tn__value x);
/* Counts as steps what it takes to read the text, or the values of the list or dict. */
void tn__chat_count(tn__chat_vm *v, tn__value x);
bool tn__value_equal(tn__chat_vm *v, tn__value x, tn__value y); /* raises for nested lists and dicts */
/* The byte of text `in` where text x is, at or after `from`; -1: none. Takes linear time. */
int64_t   tn__place_of(tn__value x, tn__value in, int64_t from);
bool      tn__value_contains(tn__chat_vm *v, tn__value x, tn__value in);
int64_t   tn__value_length(const tn__chat_vm *v, tn__value x);          /* -1: it has none. Of a text: characters */
tn__value tn__value_member(tn__chat_vm *v, tn__value x, tn__value key); /* undefined: missing */
tn__value tn__new_list(tn__chat_vm *v, int64_t n);
tn__value tn__new_dict(tn__chat_vm *v);
void      tn__set_member(tn__chat_vm *v, tn__value x, tn__value key, tn__value value);
tn__value tn__substring(tn__value text, int64_t from, int64_t to); /* by characters */
/* x[from:to:by] with Python's rules. */
tn__value tn__value_slice(tn__chat_vm *v, tn__value x, tn__value from, tn__value to, tn__value by);
/* Appends str(x). */
void tn__write_value(tn__chat_vm *v, tn__value x, tn_string *to);
void tn__write_json(tn__chat_vm *v, tn__value x, tn_string *to);
/* A text of the run from a string, which is emptied. */
tn__value tn__kept_text(tn__chat_vm *v, tn_string *s);
tn__value tn__value_joined(tn__chat_vm *v, tn__value x, tn__value y);
bool      tn__chat_blank(uint32_t c); /* white space of Python's str.split() */
/* Text x without the characters at its ends that are in `chars`; NULL: white space. */
tn__value tn__value_stripped(tn__value x, const tn__value *chars, bool left, bool right);

/* chat_call.c: a STEP_CALL, STEP_METHOD, STEP_FILTER or STEP_TEST; a[0 … n - 1]: its arguments, with x first except for
 * STEP_CALL; the last 2 · named are names and values. */
tn__value tn__chat_call(tn__chat_vm *v, const tn__chat_step *s, int n, const tn__value *a);

#endif

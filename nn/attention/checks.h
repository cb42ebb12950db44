/* checks.h — checks of arguments that the files of attention share. Private to nn/attention. */
#ifndef TENON_NN_ATTENTION_CHECKS_H
#define TENON_NN_ATTENTION_CHECKS_H

#include "core/core.h"

/* A combination of arguments or options that cannot be. */
typedef struct {
    bool        wrong;
    tn_status   code;
    const char *says;      /* with a %lld for each number */
    int64_t     number[5]; /* for the message */
} tn__mistake;
#define TN__IF(cond, c, text)                        \
    {                                                \
        .wrong = (cond), .code = (c), .says = (text) \
    }
#define TN__IF_N(cond, c, text, ...)                                            \
    {                                                                           \
        .wrong = (cond), .code = (c), .says = (text), .number = { __VA_ARGS__ } \
    }
/* Raises "who: says" for the first that is wrong, and returns false; true if there is none. */
bool tn__no_mistake(const char *who, int n, const tn__mistake *list);
#define TN__NO_MISTAKE(who, ...)                                                           \
    tn__no_mistake(who, (int)(sizeof((tn__mistake[]){__VA_ARGS__}) / sizeof(tn__mistake)), \
                   (const tn__mistake[]){__VA_ARGS__})

/* Both raise TN_ESHAPE and return false: "who: what [2, 3] must be …", and "who: …, got f32 [2, 3]", without the dtype
 * unless dtype is true. t may be NULL. The dots are the format. */
bool tn__wrong_shape(const char *who, const char *what, const tn_tensor *t, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool tn__unexpected(const char *who, const tn_tensor *t, bool dtype, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif

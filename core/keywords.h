/* keywords.h — how calls with keyword arguments work. Part of core.h: include that.
 *
 * tn_linear_new(.in = 3, .out = 4): the macro fills a struct and puts the defaults before the caller's initialisers, so
 * that the caller's values always apply, 0 included. A value without its name does not compile (clang rejects it if it
 * is the first, gcc anywhere): each such struct starts with `int zero_`, ends with `int end_` and is TN_KEYWORDS_ONLY.
 * In C++20, write tn_linear_config{.in = 3}, or fill tn_linear_config c{}; TN_IS gives its members the same defaults
 * there. To fill a struct in C, start from its defaults: TN_X_DEFAULTS of tn_x_config (TN_X_ARGS_DEFAULTS of
 * tn_x_args):
 *     tn_dropout_config c = {TN_DROPOUT_DEFAULTS};
 *     tn_bert_config    b = TN_WITH(tn_bert_config, TN_BERT_DEFAULTS, .vocab = 8000, .layers = 6);
 * If there is no such list, all defaults are 0. */
#ifndef TENON_CORE_KEYWORDS_H
#define TENON_CORE_KEYWORDS_H

#include <stddef.h>

#if defined(__cplusplus)
#define TN_KEYWORDS_ONLY
#define TN_IS(value) = value
#if defined(__clang__) /* clang warns that C has no such defaults where a function returns a struct with them */
#define TN_RETURNS_CONFIG_(...)                                                                      \
    _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wreturn-type-c-linkage\"") \
        __VA_ARGS__ _Pragma("clang diagnostic pop")
#else
#define TN_RETURNS_CONFIG_(...) __VA_ARGS__
#endif
#else
#define TN_IS(value)
#define TN_RETURNS_CONFIG_(...) __VA_ARGS__
#if defined(__clang__)
#define TN_KEYWORDS_ONLY
#define TN_NAMED_ .end_ = 0 /* anything after the last member is excess */
#define TN_CALL_(...)                                                                                    \
    __extension__({                                                                                      \
        _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Winitializer-overrides\"") \
            _Pragma("clang diagnostic error \"-Wexcess-initializers\"") __VA_ARGS__;                     \
        _Pragma("clang diagnostic pop")                                                                  \
    })
#else
#define TN_KEYWORDS_ONLY __attribute__((designated_init))
#define TN_NAMED_ .zero_ = 0 /* and a value after the first has no name */
#define TN_CALL_(...)                                                                        \
    __extension__({                                                                          \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"") \
            _Pragma("GCC diagnostic error \"-Wdesignated-init\"") __VA_ARGS__;               \
        _Pragma("GCC diagnostic pop")                                                        \
    })
#endif

/* For headers: the building blocks of these macros. First the struct's defaults (TN_NO_DEFAULTS_: all 0), then 1 to 4
 * required members without names, then the named ones. `.zero_ = 0` precedes them because `...` must not be empty. */
#define TN_NO_DEFAULTS_ .zero_ = 0
#define TN_WITH(type, defaults, ...) TN_CALL_((type){defaults, TN_NAMED_, __VA_ARGS__})
#define TN_NEW_(create, type, defaults, ...) TN_CALL_(create((type){defaults, TN_NAMED_, __VA_ARGS__}))
#define TN_ARGS1_(type, defaults, a_, a, ...) ((type){defaults, .a_ = (a), TN_NAMED_, __VA_ARGS__})
#define TN_ARGS2_(type, defaults, a_, b_, a, b, ...) ((type){defaults, .a_ = (a), .b_ = (b), TN_NAMED_, __VA_ARGS__})
#define TN_ARGS3_(type, defaults, a_, b_, c_, a, b, c, ...) \
    ((type){defaults, .a_ = (a), .b_ = (b), .c_ = (c), TN_NAMED_, __VA_ARGS__})
#define TN_ARGS4_(type, defaults, a_, b_, c_, d_, a, b, c, d, ...) \
    ((type){defaults, .a_ = (a), .b_ = (b), .c_ = (c), .d_ = (d), TN_NAMED_, __VA_ARGS__})
#endif

#endif

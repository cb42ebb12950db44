/* keywords.h — how calls with keyword arguments work. Part of core.h: include that.
 *
 * tn_linear_new(.in = 3, .out = 4): the macro fills a struct and puts the defaults before the caller's initialisers, so
 * that the caller's values always apply, 0 included. A value without its name does not compile (clang rejects it if it
 * is the first, gcc anywhere): each such struct starts with `int zero_`, ends with `int end_` and is TN_KEYWORDS_ONLY.
 * In C++20 the same calls work, with the names in the order of the struct. In any C++ you can fill a struct that starts
 * with the defaults, tn_linear_config c{}; c.in = 3; and pass it to tn_linear_create: the function's name ends in
 * _create for tn_x_new, and in _run for other calls. TN_IS gives the members their defaults there. To fill a struct in
 * C, start from its defaults: TN_X_DEFAULTS of tn_x_config (TN_X_ARGS_DEFAULTS of tn_x_args):
 *     tn_dropout_config c = {TN_DROPOUT_DEFAULTS};
 *     tn_bert_config    b = TN_WITH(tn_bert_config, TN_BERT_DEFAULTS, .vocab = 8000, .layers = 6);
 * If there is no such list, all defaults are 0. */
#ifndef TENON_CORE_KEYWORDS_H
#define TENON_CORE_KEYWORDS_H

#include <stddef.h>

/* The calls with keywords: 11 in C, 20 in C++20; 0 in older C++, where the structs are filled by hand. */
#if !defined(__cplusplus)
#define TN_KEYWORDS_ 11
#elif __cplusplus >= 202002L
#define TN_KEYWORDS_ 20
#else
#define TN_KEYWORDS_ 0
#endif

#if defined(__cplusplus)
#define TN_KEYWORDS_ONLY
class tn_only_by_name_
{ /* no number converts to it */
  protected:
    int n_;
};
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
            _Pragma("clang diagnostic error \"-Wexcess-initializers\"")                                  \
                _Pragma("clang diagnostic error \"-Wmissing-braces\"") __VA_ARGS__;                      \
        _Pragma("clang diagnostic pop")                                                                  \
    })
#else
#define TN_KEYWORDS_ONLY __attribute__((designated_init))
#pragma GCC diagnostic error "-Wdesignated-init" /* concerns only structs with that attribute */
#define TN_NAMED_ .zero_ = 0                     /* and a value after the first has no name */
#define TN_CALL_(...)                                                                        \
    __extension__({                                                                          \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Woverride-init\"") \
            _Pragma("GCC diagnostic error \"-Wmissing-braces\"") __VA_ARGS__;                \
        _Pragma("GCC diagnostic pop")                                                        \
    })
#endif
#endif

/* The first member `int n` of a list {n, d[]}. A value without a name there, {2, 3}, does not compile: gcc has the
 * attribute TN_KEYWORDS_ONLY for that, clang and C++ find a member that takes no value. */
#if defined(__cplusplus)
#define TN_LIST_N_(n)              \
    union {                        \
        tn_only_by_name_ by_name_; \
        int              n;        \
    }
#elif defined(__clang__)
#define TN_LIST_N_(n)                                                                          \
    union {                                                                                    \
        int by_name_ __attribute__((unavailable("write TN_SHAPE(...), TN_DIMS(...), or .n"))); \
        int n;                                                                                 \
    }
#else
#define TN_LIST_N_(n) int n
#endif

/* For headers: the building blocks of these macros. First the struct's defaults (TN_NO_DEFAULTS_: all 0), then 1 to 4
 * required members without names, then the named ones. TN_END_ follows them because `...` must not be empty. In C++20
 * the members have their defaults already, and designators must be in the order of the struct. */
#if TN_KEYWORDS_ == 20
#if defined(__clang__) /* it only warns of values without a name and of names in another order */
#define TN_CALL_(...)                                                                        \
    (_Pragma("clang diagnostic push") _Pragma("clang diagnostic error \"-Wc99-designator\"") \
         _Pragma("clang diagnostic error \"-Wreorder-init-list\"") __VA_ARGS__ _Pragma("clang diagnostic pop"))
#else
#pragma GCC system_header /* g++ warns of members that a designated initializer leaves at their defaults */
#define TN_CALL_(...) (__VA_ARGS__)
#endif
#define TN_END_ .end_ = 0
#define TN_FILLED_(type, defaults, ...) (type{.zero_ = 0 __VA_OPT__(, ) __VA_ARGS__})
#define TN_WITH(type, defaults, ...) TN_CALL_(type{.zero_ = 0 __VA_OPT__(, ) __VA_ARGS__})
#define TN_NEW_(create, type, defaults, ...) TN_CALL_(create(type{.zero_ = 0 __VA_OPT__(, ) __VA_ARGS__}))
#define TN_ARGS1_(type, defaults, a_, a, ...) (type{.a_ = (a), __VA_ARGS__})
#define TN_ARGS2_(type, defaults, a_, b_, a, b, ...) (type{.a_ = (a), .b_ = (b), __VA_ARGS__})
#define TN_ARGS3_(type, defaults, a_, b_, c_, a, b, c, ...) (type{.a_ = (a), .b_ = (b), .c_ = (c), __VA_ARGS__})
#define TN_ARGS4_(type, defaults, a_, b_, c_, d_, a, b, c, d, ...) \
    (type{.a_ = (a), .b_ = (b), .c_ = (c), .d_ = (d), __VA_ARGS__})
#define TN_OF_MODULE_(type, defaults, m, ...) (type{.module = TN_ANY_MODULE_(m), __VA_ARGS__})
#elif !TN_KEYWORDS_
#define TN_CALL_(...) calls_with_keywords_need_cpp20()
#define TN_NEW_(...) calls_with_keywords_need_cpp20()
#define TN_WITH(...) calls_with_keywords_need_cpp20()
#else
#define TN_END_ .zero_ = 0
#define TN_NO_DEFAULTS_ .zero_ = 0
#define TN_FILLED_(type, defaults, ...) ((type){defaults, TN_NAMED_, __VA_ARGS__})
#define TN_WITH(type, defaults, ...) TN_CALL_((type){defaults, TN_NAMED_, __VA_ARGS__})
#define TN_NEW_(create, type, defaults, ...) TN_CALL_(create((type){defaults, TN_NAMED_, __VA_ARGS__}))
#define TN_ARGS1_(type, defaults, a_, a, ...) ((type){defaults, .a_ = (a), TN_NAMED_, __VA_ARGS__})
#define TN_ARGS2_(type, defaults, a_, b_, a, b, ...) ((type){defaults, .a_ = (a), .b_ = (b), TN_NAMED_, __VA_ARGS__})
#define TN_ARGS3_(type, defaults, a_, b_, c_, a, b, c, ...) \
    ((type){defaults, .a_ = (a), .b_ = (b), .c_ = (c), TN_NAMED_, __VA_ARGS__})
#define TN_ARGS4_(type, defaults, a_, b_, c_, d_, a, b, c, d, ...) \
    ((type){defaults, .a_ = (a), .b_ = (b), .c_ = (c), .d_ = (d), TN_NAMED_, __VA_ARGS__})
#define TN_OF_MODULE_(type, defaults, m, ...) ((type){defaults, .module = TN_ANY_MODULE_(m), TN_NAMED_, __VA_ARGS__})
#endif

#endif

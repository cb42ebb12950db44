/* real.h — instantiates the kernel section of a room, once for each number type.
 *
 * The room defines TN_TEMPLATE as its own path (and TN_WITH_I64 if integers make sense) and includes this file; the
 * section under `#ifdef TN_REAL` is then compiled with
 *     TN_REAL   float, double or int64_t      TN_(name)  name_f32, name_f64, name_i64
 *     TN_IS_REAL 1, or 0 for int64_t          TN_M(exp)  expf, exp (real types only) */
#define TN_CAT_(a, b) a##_##b
#define TN_CAT(a, b) TN_CAT_(a, b)
#define TN_(name) TN_CAT(name, TN_SUFFIX)

#define TN_REAL float
#define TN_SUFFIX f32
#define TN_IS_REAL 1
#define TN_M(name) name##f
#include TN_TEMPLATE
#undef TN_REAL
#undef TN_SUFFIX
#undef TN_IS_REAL
#undef TN_M

#define TN_REAL double
#define TN_SUFFIX f64
#define TN_IS_REAL 1
#define TN_M(name) name
#include TN_TEMPLATE
#undef TN_REAL
#undef TN_SUFFIX
#undef TN_IS_REAL
#undef TN_M

#ifdef TN_WITH_I64
#define TN_REAL int64_t
#define TN_SUFFIX i64
#define TN_IS_REAL 0
#define TN_M(name) tn_no_##name##_for_integers
#include TN_TEMPLATE
#undef TN_REAL
#undef TN_SUFFIX
#undef TN_IS_REAL
#undef TN_M
#endif

#undef TN_TEMPLATE
#undef TN_CAT
#undef TN_CAT_
#undef TN_

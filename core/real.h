/* real.h — instantiates the kernel section of a room, once for each dtype.
 *
 * The room defines TN__TEMPLATE as its own path (and TN__WITH_I64 if integers make sense) and includes this file; the
 * section under `#ifdef TN__REAL` is then compiled with
 *     TN__REAL   float, double or int64_t      TN__(name)  name_f32, name_f64, name_i64
 *     TN__IS_REAL 1, or 0 for int64_t          TN__M(exp)  expf, exp (real types only) */
#define TN__CAT_(a, b) a##_##b
#define TN__CAT(a, b) TN__CAT_(a, b)
#define TN__(name) TN__CAT(name, TN__SUFFIX)

#define TN__REAL float
#define TN__SUFFIX f32
#define TN__IS_REAL 1
#define TN__M(name) name##f
#include TN__TEMPLATE
#undef TN__REAL
#undef TN__SUFFIX
#undef TN__IS_REAL
#undef TN__M

#define TN__REAL double
#define TN__SUFFIX f64
#define TN__IS_REAL 1
#define TN__M(name) name
#include TN__TEMPLATE
#undef TN__REAL
#undef TN__SUFFIX
#undef TN__IS_REAL
#undef TN__M

#ifdef TN__WITH_I64
#define TN__REAL int64_t
#define TN__SUFFIX i64
#define TN__IS_REAL 0
#define TN__M(name) tn_no_##name##_for_integers
#include TN__TEMPLATE
#undef TN__REAL
#undef TN__SUFFIX
#undef TN__IS_REAL
#undef TN__M
#endif

#undef TN__TEMPLATE
#undef TN__CAT
#undef TN__CAT_
#undef TN__

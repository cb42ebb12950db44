/* dtype.c — the public calls on dtypes. */
#include "core/base/dtype.h"

const char *tn_dtype_name(tn_dtype dt)
{
    static const char *const name[] = {"f32", "f64", "bf16", "i64", "i32", "u8", "bool"};
    return (size_t)dt < sizeof name / sizeof *name ? name[dt] : "unknown dtype";
}
size_t tn_dtype_size(tn_dtype dt) { return (size_t)dt <= TN_BOOL ? tn__dtype_bytes(dt) : 0; }
bool   tn_dtype_is_float(tn_dtype dt) { return tn__is_float(dt); }

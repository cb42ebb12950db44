/* convert.h — conversion of elements between dtypes (convert.c). */
#ifndef TENON_CORE_TENSOR_CONVERT_H
#define TENON_CORE_TENSOR_CONVERT_H

#include "core/core.h"

/* Converts n elements from xdt to ydt; strides in elements. */
void    tn__convert(int64_t n, void *y, tn_dtype ydt, int64_t ys, const void *x, tn_dtype xdt, int64_t xs);
double  tn__load(const void *p, tn_dtype dt);
int64_t tn__load_i64(const void *p, tn_dtype dt);
void    tn__store(void *p, tn_dtype dt, double v);
void    tn__store_i64(void *p, tn_dtype dt, int64_t v);

#endif

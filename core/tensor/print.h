/* print.h — numbers as text, whatever the locale (print.c). */
#ifndef TENON_CORE_TENSOR_PRINT_H
#define TENON_CORE_TENSOR_PRINT_H

#include "core/core.h"

/* What printf("%f") and ("%e") wrote, with a point for whatever the locale has there (core/tensor/print.c). */
void tn__plain_point(char *s);

#endif

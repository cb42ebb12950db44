/* print.h — numbers as text, independent of the locale (print.c). */
#ifndef TENON_CORE_TENSOR_PRINT_H
#define TENON_CORE_TENSOR_PRINT_H

#include "core/core.h"

/* Replaces the locale's decimal point by '.' in a text written by printf("%f") or ("%e") (core/tensor/print.c). */
void tn__c_decimal_point(char *s);

#endif

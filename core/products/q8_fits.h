/* q8_fits.h — the check that loading makes of weights of 8 bits and of f16 (q8.c). Private to Tenon. */
#ifndef TENON_CORE_PRODUCTS_Q8_FITS_H
#define TENON_CORE_PRODUCTS_Q8_FITS_H

#include "core/core.h"

/* The shape of a tensor of 8-bit or f16 weights does not determine the matrix: it is u8 of one dim, the last panel is
 * padded, and matrices of different shapes have equal lengths. Returns true if the elements of `now`, of t's shape, may
 * replace t's: if t is not such a weight, or if both have the same kind, shape and dtype. If false, the texts describe
 * both. */
enum { TN__Q8_TEXT = 224 };
bool tn__q8_fits(const tn_tensor *t, const tn_tensor *now, char is[TN__Q8_TEXT], char other[TN__Q8_TEXT]);

#endif

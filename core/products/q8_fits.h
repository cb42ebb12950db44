/* q8_fits.h — what loading asks of weights of 8 bits and of f16 (q8.c). Private to Tenon. */
#ifndef TENON_CORE_PRODUCTS_Q8_FITS_H
#define TENON_CORE_PRODUCTS_Q8_FITS_H

#include "core/core.h"

/* Of a weight of 8 bits or f16 the tensor's own shape says little: it is u8 of one dim, the last panel is filled up,
 * and matrices of different shapes are of one length. May the elements of now, of t's own shape, take the place of
 * t's? They may where t is no such weight; else now must be one of the same kind, shape and type. If not, what each of
 * them is stands in the texts. */
enum { TN__Q8_TEXT = 224 };
bool tn__q8_fits(const tn_tensor *t, const tn_tensor *now, char is[TN__Q8_TEXT], char other[TN__Q8_TEXT]);

#endif

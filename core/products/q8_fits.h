/* q8_fits.h — packed weights for loading: the check of their shapes, and weights from the blocks of files (q8.c).
 * Private to Tenon. */
#ifndef TENON_CORE_PRODUCTS_Q8_FITS_H
#define TENON_CORE_PRODUCTS_Q8_FITS_H

#include "core/core.h"

/* The shape of a tensor of 8-bit or f16 weights does not determine the matrix: it is u8 of one dim, the last panel is
 * padded, and matrices of different shapes have equal lengths. Returns true if the elements of `now`, of t's shape, may
 * replace t's: if t is not such a weight, or if both have the same kind, shape and dtype. If false, the texts describe
 * both. */
enum { TN__Q8_TEXT = 224 };
bool tn__q8_fits(const tn_tensor *t, const tn_tensor *now, char is[TN__Q8_TEXT], char other[TN__Q8_TEXT]);

/* A new packed weight in the open scope for a type of files: "Q4_0", "Q4_K", "Q5_K", "Q6_K", "Q8_0" or "F16"; its rows
 * are then written with tn__packed_put, in any order. NULL and no error: another type, or rows of this width are not
 * whole blocks. row: bytes of a row in the file. */
tn_tensor *tn__packed_new(const char *who, const char *type, tn_dtype dt, tn_shape s, size_t *row);
/* Writes n rows, of `row` bytes each. False: raised, a weight of F16 is not finite. */
bool tn__packed_put(const char *who, tn_tensor *t, int64_t first, int64_t n, const void *from);

#endif

/* convolve.h — convolutions and their gradients (convolve.c). */
#ifndef TENON_CORE_PRODUCTS_CONVOLVE_H
#define TENON_CORE_PRODUCTS_CONVOLVE_H

#include "core/tensor/tensor.h"

/* Sliding windows over the rows [0] and columns [1] of images. */
typedef struct {
    int64_t size[2], stride[2], padding[2], dilation[2], groups;
} tn__windows;
/* x [N, C, H, W] and w [O, C/groups, size] give y [N, O, OH, OW], of one floating dtype and any strides; written
 * tensors are contiguous. The caller has checked that shapes match. May raise TN_ENOMEM. tn__convolve: y = x convolved
 * with w + bias [O], which may be NULL. The other two compute the gradients of x and w from y's. */
void tn__convolve(const tn__windows *g, const tn_tensor *x, const tn_tensor *w, const tn_tensor *bias, tn_tensor *y);
/* tn__convolve without columns (convolve_rows.c). False: not for these windows, dtypes and layouts, or slower. */
bool tn__convolve_rows(const tn__windows *g, const tn_tensor *x, const tn_tensor *w, const tn_tensor *bias,
                       tn_tensor *y);
void tn__convolve_input(const tn__windows *g, tn_tensor *x, const tn_tensor *w, const tn_tensor *y);
void tn__convolve_weight(const tn__windows *g, const tn_tensor *x, tn_tensor *w, const tn_tensor *y);

#endif

/* windows.h — shared code of convolutions and poolings: windows that slide over the last dims of [N, C, L] or
 * [N, C, H, W]. One-dimensional windows are those of an image with one row. */
#ifndef TENON_AUTOGRAD_ROOMS_WINDOWS_H
#define TENON_AUTOGRAD_ROOMS_WINDOWS_H

#include "autograd/rooms/room.h"
#include "core/base/window2d.h"
#include "core/products/convolve.h"

/* The windows of a pooling. */
tn__windows tn__pool_windows(const tn_pool2d_args *a);
tn__windows tn__pool_windows_1d(const tn_pool1d_args *a);

/* Stores in out[] the number of windows that fit on images of size in[0] by in[1]. False: raised, the windows are
 * invalid or too large. dims: 1 or 2, for messages. */
bool tn__windows_fit(const tn_ctx *c, const tn__windows *w, int dims, const int64_t in[2], int64_t out[2]);

/* The args of conv2d_input_grad and conv2d_weight_grad; in: the size of the images. */
typedef struct {
    tn__windows windows;
    int64_t     in[2];
} tn__conv_grad;

/* infer of convolutions: inputs x, weight and bias (or none); args are tn__windows without size. */
bool tn__infer_convolution(tn_ctx *c, int dims);
/* The args of poolings. */
typedef struct {
    tn__windows windows;
    bool        ignore_padding; /* averages: divide by the number of elements that are not padding */
    int64_t     in[2];          /* for avg_pool2d_grad: the size of the images                      */
} tn__pool;
/* For maxima, which never take padding: raises if .ignore_padding is set. */
bool tn__no_ignore_padding(const char *caller, bool ignore_padding);
/* infer of poolings: input x, args are tn__pool. */
bool tn__infer_pool(tn_ctx *c, int dims);
/* tn__windows_fit for poolings: also raises if a window has no element inside the image. */
bool tn__pool_fit(const tn_ctx *c, const tn__windows *w, int dims, const int64_t in[2], int64_t out[2]);

/* The args of the kernels of poolings: an image of size in[0] by in[1], and out[0] by out[1] windows on it. */
typedef struct {
    tn__pool p;
    int64_t  in[2], out[2];
} tn__image;
/* The taps first … end-1 of window o are inside the image; tap k is at *start + k · dilation. */
static inline void tn__taps(const tn__image *m, int dim, int64_t o, int64_t *start, int64_t *first, int64_t *end)
{
    const tn__windows *w = &m->p.windows;
    const int64_t      step = w->dilation[dim];
    *start = o * w->stride[dim] - w->padding[dim];
    *first = *start < 0 ? (-*start + step - 1) / step : 0;
    *end = *start >= m->in[dim] ? 0 : tn__min_i64(w->size[dim], (m->in[dim] - *start + step - 1) / step);
}

/* [N, C, L] → [N, C, 1, L] and back, recorded. */
static inline tn_tensor *tn__as_rows(tn_tensor *x) { return tn_unsqueeze(x, 2); }
static inline tn_tensor *tn__from_rows(tn_tensor *x) { return tn_squeeze(x, 2); }

/* For poolings: x [N, C, H, W] as [N, C, H · W], itself or a copy in the open scope. NULL on error. */
tn_tensor *tn__images(tn_tensor *x);

#endif

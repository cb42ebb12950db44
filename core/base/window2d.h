/* window2d.h — reads the options of a 2-d window, for ops and modules. */
#ifndef TENON_CORE_BASE_WINDOW2D_H
#define TENON_CORE_BASE_WINDOW2D_H

#include <stdint.h>

/* .stride and .stride_w, for example: a width of -1 means equal to the height. */
static inline void tn__window2d(int64_t height, int64_t width, int64_t to[2])
{
    to[0] = height;
    to[1] = width == -1 ? height : width;
}
/* For options where 0 means equal to another option: a pooling's stride is then its size. */
static inline void tn__window2d_or(const int64_t otherwise[2], int64_t to[2])
{
    for (int i = 0; i < 2; i++)
        if (to[i] == 0) to[i] = otherwise[i];
}

#endif

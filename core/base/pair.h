/* pair.h — how the options of a window in two dims are read, by the ops and by the modules. */
#ifndef TENON_CORE_BASE_PAIR_H
#define TENON_CORE_BASE_PAIR_H

#include <stdint.h>

/* .stride and .stride_w, and so on: a width of -1 is like the height. */
static inline void tn__pair(int64_t height, int64_t width, int64_t to[2])
{
    to[0] = height;
    to[1] = width == -1 ? height : width;
}
/* Where 0 means that it is like another option: a pooling's stride like its size. */
static inline void tn__pair_or(const int64_t otherwise[2], int64_t to[2])
{
    for (int i = 0; i < 2; i++)
        if (to[i] == 0) to[i] = otherwise[i];
}

#endif

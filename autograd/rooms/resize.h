/* resize.h — what interpolate and resize share. */
#ifndef TENON_AUTOGRAD_ROOMS_RESIZE_H
#define TENON_AUTOGRAD_ROOMS_RESIZE_H

#include "autograd/rooms/room.h"

typedef struct {
    int     dim;
    int64_t before, after; /* elements of dim */
    bool    align_corners;
    bool    transposed; /* the derivative: from `after` elements back to `before` */
} tn__resize;

#endif

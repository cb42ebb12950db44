/* images_private.h — what the files of data/images share: limits, and an image whose rows arrive one by one. Private.
 * */
#ifndef TENON_DATA_IMAGES_IMAGES_PRIVATE_H
#define TENON_DATA_IMAGES_IMAGES_PRIVATE_H

#include "core/base/toolbox.h"
#include "core/files/io.h"
#include "data/images.h"

#include <string.h>

/* Of one image; and what deflate makes of a byte at the most, so that a small file cannot ask for much memory. */
enum { TN__IMAGE_SIDE = 65535, TN__IMAGE_PIXELS = 1 << 27, TN__INFLATION = 1032 };

/* Within those limits? Raises. */
bool tn__image_sides(const char *label, int64_t width, int64_t height);

/* ---- rows of samples become a tensor (raster.c) ------------------------------------------------------------------ */

typedef struct {
    tn_tensor     *image; /* [channels, height, width], of the scope that is open */
    unsigned char *data;
    tn_dtype       dtype;
    int64_t        width, height;
    int            stored, channels; /* channels of the file, and of the image */
    int64_t        largest;          /* sample of the file */
    double        *value;            /* of each sample, in the image */
    double         opaque;
} tn__raster;
/* Samples from 0 to `largest`; channels 0: as many as are stored. Raises. */
bool tn__raster_begin(tn__raster *r, const char *label, int64_t width, int64_t height, int stored, int64_t largest,
                      int64_t channels, tn_dtype dt);
void tn__raster_row(tn__raster *r, int64_t y, const uint16_t *samples); /* width · stored, none above `largest` */
/* The image; NULL if an error stands. */
tn_tensor *tn__raster_end(tn__raster *r);

/* n samples of a channel as floats: (x · scale - mean) / std; p NULL: from 0 to 1. */
void tn__image_normalize(const tn_image_processor *p, int channel, int64_t n, const unsigned char *x, float *y);

/* ---- formats ----------------------------------------------------------------------------------------------------- */

tn_tensor *tn__pnm_read(const char *label, const unsigned char *data, size_t bytes, int64_t channels, tn_dtype dt);
tn_tensor *tn__png_read(const char *label, const unsigned char *data, size_t bytes, int64_t channels, tn_dtype dt);

/* An image to be written: its samples, one pixel behind the other, u8 or, big-endian, 16 bits. */
typedef struct {
    unsigned char *data;
    size_t         bytes;
    int64_t        width, height;
    int            channels, depth;
} tn__pixels;
tn_status tn__png_write(const char *label, const char *path, const tn__pixels *p);

/* What gzip made of a file's bytes, `bytes` of them and no more; or only the first ones, where `some`. Raises. */
bool tn__gunzip(const char *label, const unsigned char *data, size_t size, void *to, size_t bytes, bool some);

#endif

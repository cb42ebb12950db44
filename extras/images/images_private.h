/* images_private.h — shared by the files of extras/images: limits, and an image built row by row. Private. */
#ifndef TENON_EXTRAS_IMAGES_IMAGES_PRIVATE_H
#define TENON_EXTRAS_IMAGES_IMAGES_PRIVATE_H

#include "extras/images.h"

#include <stdio.h>
#include <string.h>

/* Limits of one image, and deflate's maximum expansion per byte, so that a small file cannot request much memory. */
enum { TN__IMAGE_SIDE = 65535, TN__IMAGE_PIXELS = 1 << 27, TN__INFLATION = 1032 };

/* Checks these limits. Raises. */
bool tn__image_sides(const char *label, int64_t width, int64_t height);

/* Raises if v is outside low … high. */
bool tn__image_within(const char *who, const char *what, int64_t v, int64_t low, int64_t high);

/* Writes "tn_idx_load: 'path'", with which every message about a file starts. */
enum { TN__IMAGE_LABEL = 280 };
static inline const char *tn__image_label(char to[TN__IMAGE_LABEL], const char *who, const char *path)
{
    snprintf(to, TN__IMAGE_LABEL, "%s: '%s'", who, path);
    return to;
}

static inline int64_t tn__lesser(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tn__greater(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- rows of samples to a tensor (raster.c) ---------------------------------------------------------------------- */

typedef struct {
    tn_tensor     *image; /* [channels, height, width], of the open scope */
    unsigned char *data;
    tn_dtype       dtype;
    int64_t        width, height;
    int            stored, channels; /* channels of the file and of the image */
    int64_t        largest;          /* maximum sample of the file */
    double        *value;            /* value in the image of each sample */
    double         opaque;
} tn__raster;
/* Samples are 0 … `largest`; channels 0: as stored. Raises. */
bool tn__raster_begin(tn__raster *r, const char *label, int64_t width, int64_t height, int stored, int64_t largest,
                      int64_t channels, tn_dtype dt);
void tn__raster_row(tn__raster *r, int64_t y, const uint16_t *samples); /* width · stored, none above `largest` */
/* Returns the image; NULL if an error is set. */
tn_tensor *tn__raster_end(tn__raster *r);

/* Converts n samples of a channel to floats: (x · scale - mean) / std; p NULL: 0 … 1. */
void tn__image_normalize(const tn_image_processor *p, int channel, int64_t n, const unsigned char *x, float *y);

/* ---- formats ----------------------------------------------------------------------------------------------------- */

tn_tensor *tn__pnm_read(const char *label, const unsigned char *data, size_t bytes, int64_t channels, tn_dtype dt);
tn_tensor *tn__png_read(const char *label, const unsigned char *data, size_t bytes, int64_t channels, tn_dtype dt);

/* An image to write: its samples pixel by pixel, u8 or 16 bits big-endian. */
typedef struct {
    unsigned char *data;
    size_t         bytes;
    int64_t        width, height;
    int            channels, depth;
} tn__pixels;
tn_status tn__png_write(const char *label, const char *path, const tn__pixels *p);

/* Decompresses a gzip file of exactly `bytes` bytes, or only its first `bytes` if `some`. Raises. */
bool tn__gunzip(const char *label, const unsigned char *data, size_t size, void *to, size_t bytes, bool some);

#endif

/* raster.c — converts rows of samples, stored pixel by pixel as in files, to a tensor with separate channels, with the
 * requested number of channels and dtype. */
#include "extras/images/images_private.h"

#include <math.h>

bool tn__image_sides(const char *label, int64_t width, int64_t height)
{
    if (width < 1 || height < 1)
        return tn_raise_false(TN_EFORMAT, "%s: an image of %lld x %lld pixels is empty", label, (long long)width,
                              (long long)height);
    if (width <= TN__IMAGE_SIDE && height <= TN__IMAGE_SIDE && width * height <= TN__IMAGE_PIXELS) return true;
    return tn_raise_false(TN_EUNSUPPORTED, "%s: %lld x %lld pixels are too many: at most %d per side and %d in total",
                          label, (long long)width, (long long)height, TN__IMAGE_SIDE, TN__IMAGE_PIXELS);
}

bool tn__image_within(const char *who, const char *what, int64_t v, int64_t low, int64_t high)
{
    if (v >= low && v <= high) return true;
    return tn_raise_false(TN_EINVAL, "%s: .%s is %lld, but must be from %lld to %lld", who, what, (long long)v,
                          (long long)low, (long long)high);
}

bool tn__raster_begin(tn__raster *r, const char *label, int64_t width, int64_t height, int stored, int64_t largest,
                      int64_t channels, tn_dtype dt)
{
    if (!channels) channels = stored;
    *r = (tn__raster){.dtype = dt, .width = width, .height = height, .stored = stored, .channels = (int)channels};
    if (!tn__image_sides(label, width, height)) return false;
    const double most = dt == TN_U8 ? 255 : dt == TN_I32 ? 65535 : 1;
    r->opaque = most, r->largest = largest;
    r->value = tn_mem_get((size_t)(largest + 1) * sizeof *r->value);
    r->image = tn_empty_of(dt, TN_SHAPE(channels, height, width));
    r->data = r->image ? tn_data_mut(r->image) : NULL;
    if (!r->value || !r->data) return false;
    for (int64_t v = 0; v <= largest; v++) {
        const double part = (double)v / (double)largest * most;
        r->value[v] = dt == TN_F32 ? part : rint(part);
    }
    return true;
}

/* Pillow's weights of red, green and blue, in units of 1/65536. */
static double grey_of(const double *rgb, tn_dtype dt)
{
    const double sum = 19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2];
    return dt == TN_F32 ? sum / 65536 : floor((sum + 32768) / 65536);
}

/* Converts a pixel to another number of channels. */
static void convert(const tn__raster *r, double v[4])
{
    const bool   from_colour = r->stored > 2, to_colour = r->channels > 2, from_opacity = r->stored % 2 == 0;
    const double opacity = from_opacity ? v[r->stored - 1] : r->opaque;
    if (from_colour && !to_colour) v[0] = grey_of(v, r->dtype);
    if (!from_colour && to_colour) v[1] = v[2] = v[0];
    if (r->channels % 2 == 0) v[r->channels - 1] = opacity;
}

void tn__raster_row(tn__raster *r, int64_t y, const uint16_t *samples)
{
    const int64_t plane = r->width * r->height;
    for (int64_t x = 0; x < r->width; x++, samples += r->stored) {
        double v[4] = {0};
        for (int c = 0; c < r->stored; c++) v[c] = r->value[samples[c]];
        if (r->stored != r->channels) convert(r, v);
        for (int c = 0; c < r->channels; c++) {
            const int64_t at = c * plane + y * r->width + x;
            if (r->dtype == TN_U8) r->data[at] = (unsigned char)v[c];
            else if (r->dtype == TN_I32) ((int32_t *)(void *)r->data)[at] = (int32_t)v[c];
            else ((float *)(void *)r->data)[at] = (float)v[c];
        }
    }
}

tn_tensor *tn__raster_end(tn__raster *r)
{
    if (r->value) tn_mem_put(r->value, (size_t)(r->largest + 1) * sizeof *r->value);
    r->value = NULL;
    return tn_error() == TN_OK ? r->image : NULL;
}

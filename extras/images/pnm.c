/* pnm.c — reads PGM and PPM as Netpbm defines them: "P5 3 2 255" with white space between, comments from # to the end
 * of a line, one character of white space, then the samples, row by row, pixel by pixel: one byte each or, if the
 * maximum is above 255, two, high byte first. P2 and P3 store decimal numbers with white space between. */
#include "extras/images/images_private.h"

typedef struct {
    const char          *label;
    const unsigned char *data;
    size_t               bytes, at;
} reader;

static bool blank(unsigned char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void skip(reader *r)
{
    while (r->at < r->bytes && (blank(r->data[r->at]) || r->data[r->at] == '#')) {
        const bool comment = r->data[r->at++] == '#';
        while (comment && r->at < r->bytes && r->data[r->at] != '\n' && r->data[r->at] != '\r') r->at++;
    }
}

/* Reads the next number, at most `most`; -1: raised. */
static int64_t number(reader *r, const char *name, int64_t most)
{
    skip(r);
    int64_t v = 0, digits = 0;
    for (; r->at < r->bytes && r->data[r->at] >= '0' && r->data[r->at] <= '9' && v <= most; r->at++, digits++)
        v = 10 * v + (r->data[r->at] - '0');
    if (digits && v <= most) return v;
    if (digits) tn_raise(TN_EFORMAT, "%s: byte %zu: %s is larger than %lld", r->label, r->at, name, (long long)most);
    else if (r->at < r->bytes) tn_raise(TN_EFORMAT, "%s: byte %zu: %s is not a number", r->label, r->at, name);
    else tn_raise(TN_EFORMAT, "%s: the file ends at byte %zu, expected %s", r->label, r->at, name);
    return -1;
}

/* True if the file is long enough for `samples` samples, checked so that a header alone cannot allocate memory. */
static bool holds(const reader *r, int64_t samples, bool plain, int64_t largest)
{
    const int64_t left = (int64_t)(r->bytes - r->at), need = plain ? 2 * samples - 1 : samples * (1 + (largest > 255));
    if (left >= need) return true;
    return tn_raise_false(TN_EFORMAT, "%s: the file has %lld bytes of samples, expected at least %lld for its size",
                          r->label, (long long)left, (long long)need);
}

/* Reads one row of n samples; false: raised. */
static bool row(reader *r, bool plain, int64_t largest, int64_t n, uint16_t *to)
{
    for (int64_t i = 0; i < n; i++) {
        const size_t at = r->at;
        int64_t      v;
        if (plain) {
            if ((v = number(r, "a sample", largest)) < 0) return false;
        } else {
            v = r->data[r->at++];
            if (largest > 255) v = v << 8 | r->data[r->at++];
        }
        if (v > largest)
            return tn_raise_false(TN_EFORMAT, "%s: byte %zu: a sample is %lld, above the maximum %lld", r->label, at,
                                  (long long)v, (long long)largest);
        to[i] = (uint16_t)v;
    }
    return true;
}

/* Only white space may follow the image. */
static void end(reader *r)
{
    while (r->at < r->bytes && blank(r->data[r->at])) r->at++;
    if (r->at < r->bytes)
        tn_raise(TN_EUNSUPPORTED, "%s: data after the image, at byte %zu; only files with one image are supported",
                 r->label, r->at);
}

tn_tensor *tn__pnm_read(const char *label, const unsigned char *data, size_t bytes, int64_t channels, tn_dtype dt)
{
    reader        r = {label, data, bytes, 2};
    const bool    plain = data[1] < '4';
    const int     stored = data[1] == '3' || data[1] == '6' ? 3 : 1;
    const int64_t width = number(&r, "the width", INT32_MAX),
                  height = width < 0 ? -1 : number(&r, "the height", INT32_MAX),
                  largest = height < 0 ? -1 : number(&r, "the maximum sample", 65535);
    if (largest < 0 || !tn__image_sides(label, width, height)) return NULL;
    if (!largest) return tn_raise_null(TN_EFORMAT, "%s: the maximum sample is 0", label);
    if (r.at >= bytes || !blank(data[r.at]))
        return tn_raise_null(TN_EFORMAT, "%s: byte %zu: white space is missing after the maximum sample", label, r.at);
    r.at++;
    if (!holds(&r, width * height * stored, plain, largest)) return NULL;
    tn__raster   to;
    const size_t line = (size_t)(width * stored) * sizeof(uint16_t);
    uint16_t    *samples = tn_mem_get(line);
    if (samples && tn__raster_begin(&to, label, width, height, stored, largest, channels, dt)) {
        for (int64_t y = 0; y < height && row(&r, plain, largest, width * stored, samples); y++)
            tn__raster_row(&to, y, samples);
        if (tn_error() == TN_OK) end(&r);
    }
    if (samples) tn_mem_put(samples, line);
    return samples ? tn__raster_end(&to) : NULL;
}

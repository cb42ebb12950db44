/* resize.c — resizes as Pillow's Image.resize does (and so Hugging Face's image processors): along each
 * row, then along each column. With s = old / new, at least 1 for the filter f,
 *
 *   y[i] = Σ_j f((j + ½ - c) / s) x[j] / Σ_j f((j + ½ - c) / s),   c = (i + ½) old / new
 *
 * summed over the j within the filter's support: 1 for bilinear, 2 for bicubic with a = -½. For u8 the weights are
 * multiples of 2^-22, and the result of each direction is rounded to u8. */
#include "extras/images/images_private.h"

#include <math.h>

enum { PRECISION = 22 }; /* fractional bits: 32 less 8 for the sample and 2 for bicubic's overshoot */

static double bilinear(double x) { return fabs(x) < 1 ? 1 - fabs(x) : 0; }
static double bicubic(double x)
{
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* For each output position: the first input position, the number of inputs and their weights. */
typedef struct {
    int64_t  n, most;
    int64_t *from, *count;
    double  *weight; /* [n, most] */
} weights;

static void weights_free(weights *w)
{
    if (w->from) tn_mem_put(w->from, (size_t)(2 * w->n) * sizeof *w->from);
    if (w->weight) tn_mem_put(w->weight, (size_t)(w->n * w->most) * sizeof *w->weight);
}

static bool weights_make(weights *w, int64_t old, int64_t new, tn_resample how)
{
    const double scale = (double)old / (double)new, wide = fmax(scale, 1);
    const double support = (how == TN_BICUBIC ? 2 : 1) * wide;
    *w = (weights){.n = new, .most = (int64_t)ceil(support) * 2 + 1};
    w->from = tn_mem_get((size_t)(2 * new) * sizeof *w->from);
    w->weight = tn_mem_get((size_t)(new * w->most) * sizeof *w->weight);
    if (!w->from || !w->weight) return false;
    w->count = w->from + new;
    for (int64_t i = 0; i < new; i++) {
        const double  center = ((double)i + 0.5) * scale, by = 1 / wide;
        const int64_t first = tn__greater((int64_t)(center - support + 0.5), 0);
        const int64_t end = tn__lesser((int64_t)(center + support + 0.5), old);
        double       *k = w->weight + i * w->most, sum = 0;
        w->from[i] = first, w->count[i] = end - first;
        for (int64_t j = 0; j < end - first; j++) {
            const double x = ((double)(j + first) - center + 0.5) * by;
            k[j] = how == TN_BICUBIC ? bicubic(x) : bilinear(x);
            sum += k[j];
        }
        for (int64_t j = 0; j < end - first; j++)
            if (sum != 0) k[j] /= sum;
    }
    return true;
}

/* Rounds the weights to integers, in place. */
static void weights_round(weights *w)
{
    for (int64_t i = 0; i < w->n * w->most; i++) {
        const bool in = i % w->most < w->count[i / w->most];
        w->weight[i] = in ? trunc(w->weight[i] * (1 << PRECISION) + (w->weight[i] < 0 ? -0.5 : 0.5)) : 0;
    }
}

/* Resamples one line of samples, `step` apart, to w->n samples. */
static void line_u8(const weights *w, const unsigned char *x, int64_t step, unsigned char *y, int64_t to_step)
{
    for (int64_t i = 0; i < w->n; i++) {
        const double        *k = w->weight + i * w->most;
        const unsigned char *from = x + w->from[i] * step;
        double               sum = 1 << (PRECISION - 1); /* small integers: exact */
        for (int64_t j = 0; j < w->count[i]; j++) sum += from[j * step] * k[j];
        sum = floor(sum / (1 << PRECISION));
        y[i * to_step] = (unsigned char)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
    }
}
static void line_f32(const weights *w, const float *x, int64_t step, float *y, int64_t to_step)
{
    for (int64_t i = 0; i < w->n; i++) {
        const double *k = w->weight + i * w->most;
        const float  *from = x + w->from[i] * step;
        double        sum = 0;
        for (int64_t j = 0; j < w->count[i]; j++) sum += (double)from[j * step] * k[j];
        y[i * to_step] = (float)sum;
    }
}
static void line(bool bytes, const weights *w, const void *x, int64_t at, int64_t step, void *y, int64_t to,
                 int64_t to_step)
{
    if (bytes) line_u8(w, (const unsigned char *)x + at, step, (unsigned char *)y + to, to_step);
    else line_f32(w, (const float *)x + at, step, (float *)y + to, to_step);
}

/* The order of the directions affects the rounding of u8. As in Pillow 13: columns first if the height shrinks by more
 * than twice as much as the width. */
static bool columns_first(int64_t height, int64_t width, const weights *h, const weights *w)
{
    return height > h->n && height - h->n > 2 * (width - w->n);
}

static void rows_of(bool bytes, const weights *w, const void *x, int64_t from, int64_t rows, int64_t width, void *y,
                    int64_t to)
{
    for (int64_t r = 0; r < rows; r++) line(bytes, w, x, from + r * width, 1, y, to + r * w->n, 1);
}
static void columns_of(bool bytes, const weights *h, const void *x, int64_t from, int64_t columns, void *y, int64_t to)
{
    for (int64_t c = 0; c < columns; c++) line(bytes, h, x, from + c, columns, y, to + c, columns);
}

/* Resizes n planes of [height, width]; `between` holds the result of the first direction. A direction whose size does
 * not change is skipped. */
static void planes(bool bytes, int64_t n, int64_t height, int64_t width, const weights *w, const weights *h,
                   const void *x, void *between, void *y)
{
    const size_t size = bytes ? 1 : sizeof(float);
    const bool   across = w->n != width, down = h->n != height;
    for (int64_t p = 0; p < n; p++) {
        const int64_t from = p * height * width, to = p * h->n * w->n;
        if (!across && !down)
            memcpy((unsigned char *)y + (size_t)to * size, (const unsigned char *)x + (size_t)from * size,
                   (size_t)(height * width) * size);
        else if (!down) rows_of(bytes, w, x, from, height, width, y, to);
        else if (!across) columns_of(bytes, h, x, from, width, y, to);
        else if (columns_first(height, width, h, w)) {
            columns_of(bytes, h, x, from, width, between, 0);
            rows_of(bytes, w, between, 0, h->n, width, y, to);
        } else {
            rows_of(bytes, w, x, from, height, width, between, 0);
            columns_of(bytes, h, between, 0, w->n, y, to);
        }
    }
}

tn_tensor *tn_image_resize(const tn_tensor *image, int64_t height, int64_t width, tn_resample how)
{
    static const char who[] = "tn_image_resize";
    char              text[192];
    if (tn_blocked()) return NULL;
    if (!image) return tn_raise_null(TN_EINVAL, "%s: the image is NULL", who);
    tn_shape   s = tn_shape_of(image);
    const bool bytes = tn_dtype_of(image) == TN_U8;
    if (s.n < 2 || (!bytes && tn_dtype_of(image) != TN_F32) || tn_shape_numel(s) == 0)
        return tn_raise_null(TN_ESHAPE, "%s: expected an image in u8 or f32 [..., H, W], not %s %s", who,
                             tn_dtype_name(tn_dtype_of(image)), tn_shape_text(s, text, sizeof text));
    if (!tn__image_within(who, "height", height, 1, TN__IMAGE_SIDE) ||
        !tn__image_within(who, "width", width, 1, TN__IMAGE_SIDE))
        return NULL;
    if (how != TN_BILINEAR && how != TN_BICUBIC)
        return tn_raise_null(TN_EINVAL, "%s: how is %d, expected TN_BILINEAR or TN_BICUBIC", who, (int)how);
    const int64_t  h = s.d[s.n - 2], w = s.d[s.n - 1], n = tn_shape_numel(s) / (h * w);
    const tn_scope scope = tn_scope_begin();
    tn_tensor     *x = tn_empty_like(image), *y;
    weights        across = {.n = 0}, down = {.n = 0};
    s.d[s.n - 2] = height, s.d[s.n - 1] = width;
    y = tn_empty_of(tn_dtype_of(image), s);
    tn_tensor *between = tn_empty_of(tn_dtype_of(image), TN_SHAPE(tn__greater(h * width, height * w)));
    if (between && tn_copy_from(x, image) == TN_OK && weights_make(&across, w, width, how) &&
        weights_make(&down, h, height, how)) {
        if (bytes) weights_round(&across), weights_round(&down);
        planes(bytes, n, h, w, &across, &down, tn_data(x), tn_data_mut(between), tn_data_mut(y));
    }
    weights_free(&across), weights_free(&down);
    return tn_scope_return(scope, tn_error() == TN_OK ? y : NULL);
}

tn_tensor *tn_image_center_crop(const tn_tensor *image, int64_t height, int64_t width)
{
    static const char who[] = "tn_image_center_crop";
    char              text[192];
    if (tn_blocked()) return NULL;
    if (!image) return tn_raise_null(TN_EINVAL, "%s: the image is NULL", who);
    tn_shape s = tn_shape_of(image);
    if (s.n < 2)
        return tn_raise_null(TN_ESHAPE, "%s: expected an image [..., H, W], not %s", who,
                             tn_shape_text(s, text, sizeof text));
    if (!tn__image_within(who, "height", height, 1, TN__IMAGE_SIDE) ||
        !tn__image_within(who, "width", width, 1, TN__IMAGE_SIDE))
        return NULL;
    const int64_t h = s.d[s.n - 2], w = s.d[s.n - 1], n = h && w ? tn_shape_numel(s) / (h * w) : 0;
    /* top, left: start in the old image; down, right: start in the new one, half of the excess, rounded up */
    const int64_t top = tn__greater(0, (h - height) / 2), left = tn__greater(0, (w - width) / 2);
    const int64_t down = height > h ? (height - h + 1) / 2 : 0, right = width > w ? (width - w + 1) / 2 : 0;
    const int64_t rows = tn__lesser(h, height);
    const size_t  size = tn_dtype_size(tn_dtype_of(image)), bytes = (size_t)tn__lesser(w, width) * size;
    s.d[s.n - 2] = height, s.d[s.n - 1] = width;
    const tn_scope       scope = tn_scope_begin();
    tn_tensor           *x = tn_empty_like(image), *y = tn_zeros_of(tn_dtype_of(image), s);
    const unsigned char *from = y && tn_copy_from(x, image) == TN_OK ? tn_data(x) : NULL;
    unsigned char       *to = from ? tn_data_mut(y) : NULL;
    for (int64_t p = 0; to && p < n; p++)
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + (size_t)((p * height + down + r) * width + right) * size,
                   from + (size_t)((p * h + top + r) * w + left) * size, bytes);
    return tn_scope_return(scope, tn_error() == TN_OK ? y : NULL);
}

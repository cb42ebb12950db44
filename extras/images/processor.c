/* processor.c — preprocessing of images for a model, and preprocessor_config.json, which describes it. Results equal
 * Hugging Face's processors that use Pillow, bit for bit. */
#include "extras/images/images_private.h"

#include <math.h>

/* ---- an image ---------------------------------------------------------------------------------------------------- */

static double or_else(double v, double otherwise) { return v == 0 ? otherwise : v; }

static bool valid_processor(const char *who, const tn_image_processor *p)
{
    bool fine = tn__image_within(who, "channels", p->channels, 1, 4) &&
                tn__image_within(who, "height", p->height, 0, TN__IMAGE_SIDE) &&
                tn__image_within(who, "width", p->width, 0, TN__IMAGE_SIDE) &&
                tn__image_within(who, "shortest", p->shortest, 0, TN__IMAGE_SIDE) &&
                tn__image_within(who, "crop_height", p->crop_height, 0, TN__IMAGE_SIDE) &&
                tn__image_within(who, "crop_width", p->crop_width, 0, TN__IMAGE_SIDE);
    if (fine && (!p->height != !p->width || !p->crop_height != !p->crop_width || (p->shortest && p->height)))
        return tn_raise_false(
            TN_EINVAL,
            "%s: set .height and .width together, and .crop_height and .crop_width; or .shortest instead "
            "of the first two",
            who);
    for (int c = 0; fine && c < p->channels; c++)
        if (!isfinite(p->mean[c]) || !isfinite(p->std[c]) || !isfinite(p->scale))
            return tn_raise_false(TN_EINVAL, "%s: .scale, .mean and .std must be finite", who);
    return fine;
}

/* u8 with the requested channels: grey to red, green and blue, or colour to grey. */
static tn_tensor *with_channels(const tn_tensor *image, int64_t channels)
{
    const int64_t stored = tn_size(image, 0), height = tn_size(image, 1), width = tn_size(image, 2);
    tn_tensor    *x = tn_empty_like(image);
    if (!x || tn_copy_from(x, image) != TN_OK || stored == channels) return x;
    const unsigned char *from = tn_data(x);
    const size_t         line = (size_t)(width * stored) * sizeof(uint16_t);
    uint16_t            *row = tn_mem_get(line);
    tn__raster           r;
    if (!row) return NULL;
    if (tn__raster_begin(&r, "tn_image_ready", width, height, (int)stored, 255, channels, TN_U8))
        for (int64_t y = 0; y < height; y++) {
            for (int64_t i = 0; i < width * stored; i++) row[i] = from[(i % stored * height + y) * width + i / stored];
            tn__raster_row(&r, y, row);
        }
    tn_mem_put(row, line);
    return tn__raster_end(&r);
}

/* The target size: of both sides, or of the shorter one. */
static void target(const tn_image_processor *p, int64_t height, int64_t width, int64_t *h, int64_t *w)
{
    *h = p->height ? p->height : height, *w = p->width ? p->width : width;
    if (!p->shortest) return;
    const int64_t small = tn__lesser(height, width), large = tn__greater(height, width);
    const int64_t longer = (int64_t)((double)(p->shortest * large) / (double)small);
    *h = height < width ? p->shortest : longer, *w = height < width ? longer : p->shortest;
}

void tn__image_normalize(const tn_image_processor *p, int channel, int64_t n, const unsigned char *x, float *y)
{
    float       value[256];
    const float mean = p ? (float)p->mean[channel] : 0, std = p ? (float)or_else(p->std[channel], 1) : 1;
    for (int v = 0; v < 256; v++) {
        const float scaled = (float)(v * or_else(p ? p->scale : 0, 1.0 / 255));
        value[v] = (scaled - mean) / std;
    }
    for (int64_t i = 0; i < n; i++) y[i] = value[x[i]];
}

tn_tensor *tn_image_ready(const tn_tensor *image, const tn_image_processor *p)
{
    static const char who[] = "tn_image_ready";
    char              text[192];
    int64_t           height, width;
    if (tn_blocked()) return NULL;
    if (!image || !p) return tn_raise_null(TN_EINVAL, "%s: %s is NULL", who, image ? "the processor" : "the image");
    if (!valid_processor(who, p)) return NULL;
    const tn_shape s = tn_shape_of(image);
    if (s.n != 3 || s.d[0] < 1 || s.d[0] > 4 || tn_dtype_of(image) != TN_U8 || !tn_numel(image))
        return tn_raise_null(TN_ESHAPE, "%s: expected an image in u8 [1 to 4, H, W], not %s %s", who,
                             tn_dtype_name(tn_dtype_of(image)), tn_shape_text(s, text, sizeof text));
    const tn_scope scope = tn_scope_begin();
    tn_tensor     *x = with_channels(image, p->channels);
    target(p, s.d[1], s.d[2], &height, &width);
    if (x && (height != s.d[1] || width != s.d[2]))
        x = tn_image_resize(x, height, width, p->resample ? p->resample : TN_BILINEAR);
    if (x && p->crop_height) x = tn_image_center_crop(x, p->crop_height, p->crop_width);
    tn_tensor *y = x ? tn_empty(tn_shape_of(x)) : NULL;
    float     *to = y ? tn_data_mut(y) : NULL;
    if (to) {
        const unsigned char *from = tn_data(x);
        const int64_t        plane = tn_size(x, 1) * tn_size(x, 2);
        for (int c = 0; c < p->channels; c++) tn__image_normalize(p, c, plane, from + c * plane, to + c * plane);
    }
    return tn_scope_return(scope, tn_error() == TN_OK ? y : NULL);
}

/* ---- preprocessor_config.json ------------------------------------------------------------------------------------ */

static const char file[] = "preprocessor_config.json";

static bool path_of(const char *who, const char *dir, char path[1024])
{
    if (!dir) return tn_raise_false(TN_EINVAL, "%s: the directory is NULL", who);
    if (snprintf(path, 1024, "%s/%s", dir, file) < 1024) return true;
    return tn_raise_false(TN_EINVAL, "%s: the path of '%s' is too long", who, file);
}

static int64_t side(const tn_json *v, const char *path, const char *key)
{
    const int64_t n = tn_json_i64(v);
    if (tn_error() == TN_OK && (n < 1 || n > TN__IMAGE_SIDE))
        tn_raise(TN_EFORMAT, "'%s': %s is %lld, expected 1 to %d", path, key, (long long)n, TN__IMAGE_SIDE);
    return n;
}

/* 224, {"height": 224, "width": 224} or, if shortest is not NULL, {"shortest_edge": 224}. */
static void size_of(const tn_json *v, const char *path, const char *key, int64_t *height, int64_t *width,
                    int64_t *shortest)
{
    if (tn_json_type_of(v) != TN_JSON_OBJECT) {
        *height = *width = side(v, path, key);
        return;
    }
    const tn_json *edge = tn_json_get(v, "shortest_edge");
    *height = *width = 0;
    if (tn_json_get(v, "longest_edge") || (edge && !shortest))
        tn_raise(TN_EUNSUPPORTED, "'%s': %s has %s, which is not supported", path, key,
                 edge && !shortest ? "shortest_edge" : "longest_edge");
    else if (edge) *shortest = side(edge, path, key);
    else *height = side(tn_json_need(v, "height"), path, key), *width = side(tn_json_need(v, "width"), path, key);
}

/* One number per channel, or one for all; a list's length is the number of channels. */
static void each_channel(const tn_json *v, const char *path, const char *key, tn_image_processor *p, double to[4])
{
    const bool    list = tn_json_type_of(v) == TN_JSON_ARRAY;
    const int64_t n = list ? tn_json_count(v) : 4;
    if (n < 1 || n > 4) tn_raise(TN_EFORMAT, "'%s': %s has %lld numbers, expected 1 to 4", path, key, (long long)n);
    for (int64_t c = 0; c < n && tn_error() == TN_OK; c++) {
        to[c] = tn_json_double(list ? tn_json_at(v, c) : v);
        if (to == p->std && !(to[c] > 0))
            tn_raise(TN_EFORMAT, "'%s': %s[%lld] is not above 0", path, key, (long long)c);
    }
    if (list) p->channels = n;
}

/* The defaults of the processor with this name, ViT's or DeiT's, for members missing in the file. */
static bool defaults(const tn_json *doc, const char *path, tn_image_processor *p)
{
    const char *type = tn_json_string_or(tn_json_get(doc, "image_processor_type"), NULL);
    if (!type) type = tn_json_string_or(tn_json_get(doc, "feature_extractor_type"), "ViTImageProcessor");
    if (tn_error() != TN_OK) return false;
    const bool  deit = !strncmp(type, "DeiT", 4);
    const char *rest = type + (deit ? 4 : 3);
    if ((!deit && strncmp(type, "ViT", 3) != 0) ||
        (strcmp(rest, "ImageProcessor") && strcmp(rest, "ImageProcessorFast") && strcmp(rest, "ImageProcessorPil") &&
         strcmp(rest, "FeatureExtractor")))
        return tn_raise_false(TN_EUNSUPPORTED,
                              "'%s': the type %s is not supported; expected ViTImageProcessor or DeiTImageProcessor",
                              path, type);
    *p = (tn_image_processor){.channels = 3,
                              .height = deit ? 256 : 224,
                              .resample = deit ? TN_BICUBIC : TN_BILINEAR,
                              .scale = 1.0 / 255,
                              .crop_height = deit ? 224 : 0};
    p->width = p->height, p->crop_width = p->crop_height;
    for (int c = 0; c < 4; c++) p->mean[c] = p->std[c] = 0.5;
    return true;
}

static bool does(const tn_json *doc, const char *key, bool otherwise)
{
    return tn_json_bool_or(tn_json_get(doc, key), otherwise);
}

static void read_members(const tn_json *doc, const char *path, tn_image_processor *p)
{
    static const char *const never[] = {"do_pad", "do_flip_channel_order", "do_reduce_labels", "do_thumbnail"};
    const bool               crops = p->crop_height > 0;
    const tn_json           *v;
    if ((v = tn_json_get(doc, "size"))) size_of(v, path, "size", &p->height, &p->width, &p->shortest);
    if ((v = tn_json_get(doc, "crop_size")) && tn_json_type_of(v) != TN_JSON_NULL)
        size_of(v, path, "crop_size", &p->crop_height, &p->crop_width, NULL);
    if ((v = tn_json_get(doc, "resample"))) {
        const int64_t how = tn_json_i64(v);
        if (tn_error() == TN_OK && how != TN_BILINEAR && how != TN_BICUBIC)
            tn_raise(TN_EUNSUPPORTED, "'%s': resample is %lld; expected 2 (bilinear) or 3 (bicubic)", path,
                     (long long)how);
        p->resample = how == TN_BICUBIC ? TN_BICUBIC : TN_BILINEAR;
    }
    if ((v = tn_json_get(doc, "rescale_factor"))) p->scale = tn_json_double(v);
    if ((v = tn_json_get(doc, "image_mean"))) each_channel(v, path, "image_mean", p, p->mean);
    if ((v = tn_json_get(doc, "image_std"))) each_channel(v, path, "image_std", p, p->std);
    if (!does(doc, "do_resize", true)) p->height = p->width = p->shortest = 0;
    if (!does(doc, "do_center_crop", crops)) p->crop_height = p->crop_width = 0;
    if (!does(doc, "do_rescale", true)) p->scale = 1;
    for (int c = 0; c < 4 && !does(doc, "do_normalize", true); c++) p->mean[c] = 0, p->std[c] = 1;
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (does(doc, never[i], false))
            tn_raise(TN_EUNSUPPORTED, "'%s': %s is true, which is not supported", path, never[i]);
}

tn_status tn_image_processor_load(const char *dir, tn_image_processor *p)
{
    static const char    who[] = "tn_image_processor_load";
    const tn_json_limits limits = {.depth = 32, .bytes = 1 << 20, .values = 10000};
    tn_image_processor   found;
    char                 path[1024];
    if (tn_blocked() || !path_of(who, dir, path)) return tn_error();
    if (!p) return tn_raise(TN_EINVAL, "%s: p is NULL", who);
    tn_json *doc = tn_json_load_within(path, limits);
    if (doc && tn_json_type_of(doc) != TN_JSON_OBJECT)
        tn_raise(TN_EFORMAT, "'%s' does not contain a JSON object", path);
    if (doc && tn_error() == TN_OK && defaults(doc, path, &found)) read_members(doc, path, &found);
    tn_json_free(doc);
    if (tn_error() == TN_OK && valid_processor(who, &found)) *p = found;
    return tn_error();
}

static void put_size(tn_json_writer *w, const char *key, int64_t height, int64_t width)
{
    tn_json_open_object(w, key);
    tn_json_put_i64(w, "height", height);
    tn_json_put_i64(w, "width", width);
    tn_json_close(w);
}
static void put_channels(tn_json_writer *w, const char *key, int64_t n, const double *v, double otherwise)
{
    tn_json_open_array(w, key);
    for (int64_t c = 0; c < n; c++) tn_json_put_double(w, NULL, or_else(v[c], otherwise));
    tn_json_close(w);
}

tn_status tn_image_processor_save(const tn_image_processor *p, const char *dir)
{
    static const char who[] = "tn_image_processor_save";
    char              path[1024];
    if (tn_blocked() || !path_of(who, dir, path)) return tn_error();
    if (!p) return tn_raise(TN_EINVAL, "%s: p is NULL", who);
    if (!valid_processor(who, p)) return tn_error();
    tn_json_writer *w = tn_json_writer_new(2);
    tn_json_open_object(w, NULL);
    if (p->crop_height) put_size(w, "crop_size", p->crop_height, p->crop_width);
    tn_json_put_bool(w, "do_center_crop", p->crop_height > 0);
    tn_json_put_bool(w, "do_normalize", true);
    tn_json_put_bool(w, "do_rescale", true);
    tn_json_put_bool(w, "do_resize", p->height || p->shortest);
    put_channels(w, "image_mean", p->channels, p->mean, 0);
    tn_json_put_string(w, "image_processor_type", p->crop_height ? "DeiTImageProcessor" : "ViTImageProcessor");
    put_channels(w, "image_std", p->channels, p->std, 1);
    tn_json_put_i64(w, "resample", p->resample ? p->resample : TN_BILINEAR);
    tn_json_put_double(w, "rescale_factor", or_else(p->scale, 1.0 / 255));
    if (p->height) put_size(w, "size", p->height, p->width);
    if (p->shortest) {
        tn_json_open_object(w, "size");
        tn_json_put_i64(w, "shortest_edge", p->shortest);
        tn_json_close(w);
    }
    tn_json_close(w);
    if (tn_error() == TN_OK && tn_json_save_with_sha256(w, path) != TN_OK) {} /* an error is set */
    tn_json_writer_free(w);
    return tn_error();
}

/* image_file.c — image files: detects the format and calls its reader or writer. */
#include "extras/images/images_private.h"
#include "data/lines.h"

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Formats recognised by their first bytes but not supported. */
static const struct {
    const char *bytes, *name;
    size_t      at, n;
} unsupported[] = {
    {"\xff\xd8\xff", "JPEG", 0, 3},
    {"GIF8", "GIF", 0, 4},
    {"BM", "BMP", 0, 2},
    {"WEBP", "WebP", 8, 4},
    {"II*\0", "TIFF", 0, 4},
    {"MM\0*", "TIFF", 0, 4},
    {"P1", "PBM", 0, 2},
    {"P4", "PBM", 0, 2},
    {"P7", "PAM", 0, 2},
    {"ftypavif", "AVIF", 4, 8},
    {"ftyphei", "HEIF", 4, 7},
};

static tn_tensor *decoded(const char *label, const unsigned char *data, size_t bytes, int64_t channels, tn_dtype dt)
{
    if (bytes > 2 && data[0] == 'P' && strchr("2356", data[1]) && (strchr(" \t\n\v\f\r#", data[2])))
        return tn__pnm_read(label, data, bytes, channels, dt);
    if (bytes >= 8 && !memcmp(data, "\x89PNG\r\n\x1a\n", 8)) return tn__png_read(label, data, bytes, channels, dt);
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (bytes >= unsupported[i].at + unsupported[i].n &&
            !memcmp(data + unsupported[i].at, unsupported[i].bytes, unsupported[i].n))
            return tn_raise_null(TN_EUNSUPPORTED,
                                 "%s: the file is %s; convert it to PGM, PPM or PNG, for example with ImageMagick",
                                 label, unsupported[i].name);
    return tn_raise_null(
        TN_EFORMAT, "%s: not an image: the first bytes are neither those of PGM or PPM (P2, P3, P5, P6) nor of PNG",
        label);
}

static bool valid_request(const char *who, int64_t channels, tn_dtype dt)
{
    if (channels < 0 || channels > 4)
        return tn_raise_false(TN_EINVAL, "%s: channels is %lld, expected 0 to 4", who, (long long)channels);
    if (dt == TN_U8 || dt == TN_I32 || dt == TN_F32) return true;
    return tn_raise_false(TN_EINVAL, "%s: the dtype is %s, expected u8, i32 or f32", who, tn_dtype_name(dt));
}

tn_tensor *tn_image_read(const void *data, size_t bytes, int64_t channels, tn_dtype dt)
{
    static const char who[] = "tn_image_read";
    if (tn_blocked() || !valid_request(who, channels, dt)) return NULL;
    if (!data && bytes) return tn_raise_null(TN_EINVAL, "%s: data is NULL, but bytes is %zu", who, bytes);
    const tn_scope scope = tn_scope_begin(); /* frees a partly read image */
    return tn_scope_return(scope, decoded(who, data ? data : "", bytes, channels, dt));
}

enum { FILE_MAX = 1 << 30 };

tn_tensor *tn_image_load(const char *path, int64_t channels, tn_dtype dt)
{
    static const char who[] = "tn_image_load";
    char              label[TN__IMAGE_LABEL];
    if (tn_blocked() || !valid_request(who, channels, dt)) return NULL;
    const tn_scope s = tn_scope_begin();
    tn_tensor     *file = tn_file_read(path, FILE_MAX);
    tn_tensor     *image = NULL;
    if (file) image = decoded(tn__image_label(label, who, path), tn_data(file), (size_t)tn_numel(file), channels, dt);
    return tn_scope_return(s, image);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static bool ends(const char *path, const char *with)
{
    const size_t n = strlen(path), k = strlen(with);
    return n > k && !strcmp(path + n - k, with);
}

/* Gathers the samples in the order of files. */
static bool gather(const char *label, const tn_tensor *image, tn__pixels *p)
{
    const bool     deep = tn_dtype_of(image) == TN_I32;
    const int64_t  plane = p->width * p->height;
    unsigned char *to;
    p->bytes = (size_t)(plane * p->channels) << deep;
    to = p->data = tn_mem_get(p->bytes);
    for (int64_t at = 0; to && at < plane; at++)
        for (int c = 0; c < p->channels; c++) {
            const int64_t v = tn_get_i64(image, c * plane + at);
            if (v < 0 || v > 65535)
                return tn_raise_false(TN_EINVAL, "%s: a sample is %lld, expected 0 to 65535", label, (long long)v);
            if (deep) *to++ = (unsigned char)(v >> 8);
            *to++ = (unsigned char)v;
        }
    return to != NULL;
}

static tn_status pnm_write(const char *label, const char *path, const tn__pixels *p)
{
    char      head[64];
    tn_string file = {0};
    (void)label;
    snprintf(head, sizeof head, "P%d\n%lld %lld\n%d\n", p->channels == 3 ? 6 : 5, (long long)p->width,
             (long long)p->height, p->depth == 8 ? 255 : 65535);
    tn_string_add(&file, tn_text_of(head));
    tn_string_add(&file, (tn_text){(const char *)p->data, p->bytes});
    const tn_status status = tn_error() == TN_OK ? tn_file_write(path, file.at, file.bytes) : tn_error();
    tn_string_free(&file);
    return status;
}

/* Checks the format chosen by the name, and whether the image fits it. False: raised. */
static bool writable(const char *label, const char *path, const tn_tensor *image, bool *png)
{
    char           text[192];
    const int      n = tn_ndim(image);
    const int64_t  channels = n == 3 ? tn_size(image, 0) : 1;
    const tn_dtype dt = tn_dtype_of(image);
    const bool     pgm = ends(path, ".pgm"), ppm = ends(path, ".ppm");
    *png = ends(path, ".png");
    if ((n != 2 && n != 3) || channels < 1 || channels > 4 || (dt != TN_I32 && dt != TN_U8))
        tn_raise(TN_ESHAPE, "%s: expected an image in u8 or i32, [H, W] or [1 to 4, H, W], not %s %s", label,
                 tn_dtype_name(dt), tn_shape_text(tn_shape_of(image), text, sizeof text));
    else if (!pgm && !ppm && !*png) tn_raise(TN_EINVAL, "%s: the file name must end in .pgm, .ppm or .png", label);
    else if (!*png && channels != (pgm ? 1 : 3))
        tn_raise(TN_EINVAL, "%s: %s has %d channels, this image %lld; .png takes any number", label,
                 pgm ? ".pgm" : ".ppm", pgm ? 1 : 3, (long long)channels);
    return tn_error() == TN_OK && tn__image_sides(label, tn_size(image, -1), tn_size(image, -2));
}

tn_status tn_image_save(const char *path, const tn_tensor *image)
{
    static const char who[] = "tn_image_save";
    char              label[TN__IMAGE_LABEL];
    bool              png;
    if (tn_blocked()) return tn_error();
    if (!path || !image) return tn_raise(TN_EINVAL, "%s: %s is NULL", who, path ? "the image" : "the path");
    if (!writable(tn__image_label(label, who, path), path, image, &png)) return tn_error();
    tn__pixels p = {.width = tn_size(image, -1),
                    .height = tn_size(image, -2),
                    .channels = tn_ndim(image) == 3 ? (int)tn_size(image, 0) : 1,
                    .depth = tn_dtype_of(image) == TN_I32 ? 16 : 8};
    if (gather(label, image, &p)) (png ? tn__png_write : pnm_write)(label, path, &p);
    if (p.data) tn_mem_put(p.data, p.bytes);
    return tn_error();
}

/* images.h — images as tensors [C, H, W]: 1 channel is grey, 3 are red, green and blue, one more is opacity. Image
 * files, resizing as Hugging Face's image processors do it, and batches with random shifts and flips. Part of extras.h.
 *
 *     tn_image_processor p;                                           // preprocessor_config.json
 *     tn_tensor *x = tn_image_processor_load("vit-base", &p) == TN_OK // f32 [3, 224, 224]
 *                        ? tn_image_ready(tn_image_load("cat.png", 0, TN_U8), &p)
 *                        : NULL;
 *
 *     tn_tensor *x = tn_idx_load("t10k-images-idx3-ubyte.gz"), *y = tn_idx_load("t10k-labels-idx1-ubyte.gz");
 *     tn_images *train = tn_images_new(.x = x, .y = y, .shuffle = true, .padding = 2); // tn_images_source(train) */
#ifndef TENON_EXTRAS_IMAGES_H
#define TENON_EXTRAS_IMAGES_H
#include "../data/source.h"
TN_C_BEGIN_

/* Reads PGM, PPM (plain and binary, samples up to 65535) and PNG; the first bytes decide. channels: 1 … 4, converted as
 * Pillow does; 0: as in the file. dt: TN_U8 with values 0 … 255, TN_I32 0 … 65535 or TN_F32 0 … 1. At most 65,535
 * pixels per side and 2^27 in total. PNG needs Tenon built with libpng; IDX in gzip needs its zlib. */
TN_API tn_tensor *tn_image_load(const char *path, int64_t channels, tn_dtype dt);
TN_API tn_tensor *tn_image_read(const void *data, size_t bytes, int64_t channels, tn_dtype dt);
/* The file name's ending chooses the format: .pgm, .ppm or .png; 8 bits for u8 [C, H, W] (or [H, W]), 16 for i32. */
TN_API tn_status  tn_image_save(const char *path, const tn_tensor *image) TN_CHECKED;
TN_API tn_tensor *tn_idx_load(const char *path); /* IDX, MNIST's format, also in gzip: any dtype, at most 8 dims */
TN_API tn_status  tn_idx_save(const char *path, const tn_tensor *t) TN_CHECKED;

typedef enum { TN_BILINEAR = 2, TN_BICUBIC = 3 } tn_resample; /* values as in Pillow */
/* u8 or f32 [..., H, W]. tn_image_resize equals Pillow 13's Image.resize bit for bit; tn_image_center_crop crops around
 * the centre, padded with 0 where the image is smaller. */
TN_API tn_tensor *tn_image_resize(const tn_tensor *image, int64_t height, int64_t width, tn_resample how);
TN_API tn_tensor *tn_image_center_crop(const tn_tensor *image, int64_t height, int64_t width);
/* Preprocessing of an image for a model: resize, crop, (x · scale - mean) / std. 0 skips a step, except that it means
 * 1/255 for scale, 1 for std and TN_BILINEAR for resample. Its file is preprocessor_config.json, of ViT or DeiT. */
typedef struct {
    int64_t     channels, height, width, shortest; /* shortest: shorter side, instead of both */
    int64_t     crop_height, crop_width;
    tn_resample resample;
    double      scale, mean[4], std[4];
} tn_image_processor;
TN_API tn_status  tn_image_processor_load(const char *dir, tn_image_processor *p) TN_CHECKED;
TN_API tn_status  tn_image_processor_save(const tn_image_processor *p, const char *dir) TN_CHECKED;
TN_API tn_tensor *tn_image_ready(const tn_tensor *image, const tn_image_processor *p); /* u8 to f32 */

/* Images as a source: x f32 [n, C, H, W], y i64 [n], field "index" i64 [n], the images' indices. The random changes of
 * an image depend only on the seed, the epoch and its index, so that shards read what one process reads. */
typedef struct tn_images_config {
    int                       zero_;
    tn_tensor                *x, *y;                    /* u8 [N, H, W] or [N, C, H, W]; integers [N], or NULL */
    const tn_image_processor *processor;                /* its scale, mean and std; NULL: values 0 … 1 */
    int64_t batch             TN_IS(32), padding;       /* padding: maximum random shift in pixels, filled with 0 */
    bool                      flip, shuffle, drop_last; /* flip: mirror left and right with probability 0.5 */
    uint64_t                  seed;
    int                       end_;
} TN_KEYWORDS_ONLY       tn_images_config;
typedef struct tn_images tn_images;
TN_API tn_images        *tn_images_create(tn_images_config c);
TN_API tn_source         tn_images_source(tn_images *s);
TN_API void              tn_images_free(tn_images *s);
#define TN_IMAGES_DEFAULTS .batch = 32
TN_C_END_
#define tn_images_new(...) TN_NEW_(tn_images_create, tn_images_config, TN_IMAGES_DEFAULTS, __VA_ARGS__)
#endif
